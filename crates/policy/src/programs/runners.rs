//! Package managers and version managers that run a program named behind a word of theirs: `npm exec X`, `uv run X`.
//!
//! Their own rule is about packages; a wildcard does not take in the word by which they run others.

use super::act::Act;
use crate::deed::Sharp;
use crate::shell::Word;

/// Programs, and the words (of one or two parts) by which they run what is named behind them.
const RUNNERS: [(&str, &str); 13] = [
    ("npm,pnpm,yarn,bun,cnpm", "exec,x,dlx,create,init,explore"),
    ("uv,rye,hatch,pdm,poetry,pipenv,pipx,conda,mamba,micromamba,pixi", "run,tool run,shell,exec,runpip"),
    ("bundle,composer,rbenv,pyenv,nodenv,goenv,jenv,asdf,mise,rtx,direnv,fnm,devbox,opam,stack", "exec,x,shell,run"),
    ("direnv", "allow,permit,grant"),
    ("volta,rustup,dotenvx,doppler,infisical,chamber,op,heroku,flyctl,fly,vercel", "run,exec"),
    ("nvm", "exec,run"),
    ("nix", "run,shell,develop,bundle"),
    ("nix-shell", "--run,--command"),
    ("kubectl,oc", "exec,run,debug,attach,proxy,port-forward"),
    ("docker,podman,nerdctl", "exec,compose exec,compose run,container exec"),
    ("docker-compose,podman-compose", "exec,run"),
    ("cabal,dotnet,swift,mvn,gradle", "exec,tool run"),
    ("gh", "extension exec,codespace ssh"),
];

/// Words that mean something with nothing named behind them.
const ALONE: [&str; 5] = ["allow", "permit", "grant", "shell", "develop"];

/// Marks the word by which the command runs another.
pub(super) fn see(act: &mut Act, name: &str) {
    let words: Vec<&Word> = act.deed.argv.iter().collect();
    let Some(at) = runs_at(&words, name) else { return };
    if act.deed.sharp.iter().any(|sharp| sharp.at == at) {
        return;
    }
    let why = format!("`{name} {}` runs what is named behind it", words[at].text);
    act.deed.sharp.push(Sharp { at, why });
}

/// The place of the (last) word that says so; options of the program may stand before it.
fn runs_at(words: &[&Word], name: &str) -> Option<usize> {
    let plain: Vec<usize> = (1..words.len()).filter(|at| !words[*at].text.starts_with('-')).collect();
    let is = |at: usize, text: &str| words[at].text == text;
    let mut ways = RUNNERS.iter().filter(|(names, _)| names.split(',').any(|own| own == name));
    ways.find_map(|(_, ways)| {
        ways.split(',').find_map(|way| match way.split_once(' ') {
            _ if way.starts_with('-') => (1..words.len()).find(|at| is(*at, way)),
            Some((first, second)) => {
                let at = *plain.get(1)?;
                (is(plain[0], first) && is(at, second)).then_some(at)
            }
            // A value of an option may stand before it: the first two words could be meant.
            None => plain.iter().take(2).copied().find(|at| is(*at, way) && names_more(words, *at, &plain)),
        })
    })
}

/// It stands first or behind an option, and what it wants is named behind it.
fn names_more(words: &[&Word], at: usize, plain: &[usize]) -> bool {
    (plain[0] == at || words[at - 1].text.starts_with('-') || words[plain[0] - 1].text.starts_with('-'))
        && (at + 1 < words.len() || ALONE.contains(&&*words[at].text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_runs_others_is_found() {
        for (text, expected) in [
            ("npm exec x", Some(1)),
            ("npm exec -c x", Some(1)),
            ("npm --silent exec x", Some(2)),
            ("npm --loglevel silent exec x", Some(3)),
            ("npm run exec", None),
            ("npm init", None),
            ("npm init vite", Some(1)),
            ("npm install x", None),
            ("yarn dlx x", Some(1)),
            ("uv run pytest", Some(1)),
            ("uv tool run x", Some(2)),
            ("uv tool list", None),
            ("uv pip install run", None),
            ("bundle exec rake", Some(1)),
            ("bundle install", None),
            ("docker compose exec web sh", Some(2)),
            ("docker exec web sh", Some(1)),
            ("docker ps", None),
            ("kubectl exec pod -- sh", Some(1)),
            ("kubectl -n default exec pod -- sh", Some(3)),
            ("kubectl get pods", None),
            ("nix-shell -p x --run y", Some(3)),
        ] {
            let words: Vec<Word> = text.split(' ').map(Word::known).collect();
            let words: Vec<&Word> = words.iter().collect();
            assert_eq!(runs_at(&words, &words[0].text), expected, "{text}");
        }
    }
}
