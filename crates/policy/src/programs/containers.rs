//! docker and its kin: what reaches out of the container, and whose words are whose.

use super::act::Act;
use super::options::{ANYTHING, Table};
use crate::deed::{FileHow, Reach};
use crate::shell::Word;

const DOCKER: Table = Table {
    names: "docker,podman,nerdctl,docker-compose,podman-compose,buildah,skopeo,lxc,lxd,incus,ctr,crictl,\
                runc",
    loads: "-vHc --volume --mount --host --context --config --volumes-from --device --cap-add \
                --security-opt --pid --ipc --uts --userns --cgroupns --cgroup-parent --env-file \
                --entrypoint --add-host --tlscacert --tlscert --tlskey --log-driver --log-opt --runtime \
                --storage-opt --use-api-socket --bind --output --secret --ssh --build-context --sysctl \
                --annotation --root --hooks-dir --rootfs --network --net --device-cgroup-rule \
                --volume-driver",
    flags: "-d --build --detach --force-recreate --no-build --no-cache --remove-orphans --rm",
    dares: "--privileged --oom-kill-disable --publish-all --tls",
    ..ANYTHING
};

pub(super) fn judge(act: &mut Act, name: &str) -> bool {
    if !DOCKER.is_named(name) {
        return false;
    }
    let words = act.deed.argv.clone();
    containers(act, &words);
    true
}

fn containers(act: &mut Act, words: &[Word]) {
    let looks = [
        "ps", "images", "version", "info", "logs", "inspect", "top", "stats", "port", "diff", "history", "events",
        "search",
    ];
    let first = words.iter().skip(1).find(|word| !word.text.starts_with('-')).map_or("", |word| &word.text);
    if matches!(first, "run" | "create" | "exec" | "build" | "buildx" | "compose") || !looks.contains(&first) {
        return containers_that_run(act, words, first);
    }
    let options = act.judge_options(&DOCKER, words, 1);
    if act.deed.sharp.is_empty() && options.operands.first().is_some_and(|at| looks.contains(&&words[*at].text[..])) {
        act.deed.reach = Reach::Looks;
    }
}

/// Only the options before the image are docker's own; what follows is the container's command.
fn containers_that_run(act: &mut Act, words: &[Word], first: &str) {
    let is_compose = first == "compose" || words[0].text.ends_with("-compose");
    let mut end = words.len();
    if matches!(first, "run" | "create" | "exec") {
        let valued = [
            "-e",
            "-p",
            "-w",
            "-u",
            "--name",
            "--env",
            "--publish",
            "--workdir",
            "--user",
            "--rm=",
            "-m",
            "--memory",
            "--cpus",
            "--platform",
            "--label",
            "-l",
            "-h",
            "--hostname",
            "--restart",
            "--pull",
            "--entrypoint",
            "-v",
            "--volume",
            "--mount",
            "--network",
            "--net",
        ];
        let mut at = words.iter().position(|word| word.text == first).map_or(1, |at| at + 1);
        while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
            at += 1 + usize::from(valued.contains(&&word.text[..]));
        }
        end = (at + 1).min(words.len());
    }
    act.judge_options(&DOCKER, &words[..end], 1);
    if let Some(last) = words.last().filter(|word| first == "cp" && !word.text.contains(':')) {
        act.file(FileHow::Write, last);
    }
    if is_compose {
        let is_own = |(at, word): &(usize, &Word)| {
            word.text.starts_with('-') || word.text == "compose" || words[at - 1].text.starts_with('-')
        };
        let settings = |word: &Word| {
            ["-f", "--file", "--project-directory", "--env-file"].iter().any(|name| word.text.starts_with(name))
        };
        let own = words.iter().enumerate().skip(1).take_while(is_own);
        for (at, word) in own.filter(|(_, word)| settings(word)) {
            let value =
                word.text.split_once('=').map(|(_, value)| Word::known(value)).or_else(|| words.get(at + 1).cloned());
            if !value.is_some_and(|value| act.place.holds(&value)) {
                act.sharp(at, format!("`{}` takes settings from elsewhere", word.text));
            }
        }
    }
    act.deed.reach = Reach::Anything;
}
