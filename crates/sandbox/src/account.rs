//! What is said of a wall: what it keeps, what it does not, and that it was in the way.

use crate::settings::{Kind, Network, Settings};

/// Words that hardly mean anything else, and count even where the command as a whole succeeded.
const PLAIN_WORDS: [&str; 4] = [
    "Read-only file system",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "windlass: the sandbox",
];
/// Words by which programs say that something was refused.
const REFUSALS: [&str; 7] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
    "EROFS",
    "EACCES",
    "EPERM",
];
/// Words by which they say that the network is not there.
const UNREACHABLE: [&str; 12] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "nodename nor servname",
    "ENOTFOUND",
    "ENETUNREACH",
    "EAI_AGAIN",
    "failed to lookup address",
    "Could not resolve proxy",
    "CONNECT tunnel failed",
    "windlass: the sandbox",
];

/// What is not covered, a sentence each.
pub(crate) fn gaps(kind: Option<Kind>, settings: &Settings) -> Vec<String> {
    let Some(kind) = kind else {
        return vec!["Nothing is kept: a command can do whatever you can do yourself.".into()];
    };
    let mut gaps: Vec<&str> = Vec::new();
    if kind == Kind::Landlock {
        gaps.extend([
            "Protected files (.git/hooks, .git/config, .windlass and the like) are put back after each call, not kept from \
             being changed during it.",
            "Other processes can be seen, though not signalled on Linux 6.12 or newer and not looked into.",
            "Folders around an unreadable path cannot be listed.",
            "/tmp cannot be written; TMPDIR names the session's own folder.",
        ]);
        gaps.push(match settings.network {
            Network::On => "The network is open.",
            Network::Off if settings.hosts.is_empty() => "Servers on this machine cannot be tried, either.",
            Network::Off => "A list of hosts needs namespaces: the listed hosts cannot be reached.",
        });
    } else {
        gaps.push(
            "What can be read is all you can read, but for the unreadable paths; a Unix socket outside /tmp and /run can be \
             spoken to.",
        );
        gaps.push(match settings.network {
            Network::On => "The network is open, and servers on this machine can be spoken to.",
            Network::Off if settings.hosts.is_empty() => "Nothing of the network can be reached.",
            Network::Off => "What is sent to the listed hosts is not looked at.",
        });
        gaps.push("Repositories more than three folders deep, or made by the command itself, are not protected.");
    }
    gaps.push("Memory and processor time are not shared out.");
    gaps.into_iter().map(str::to_owned).collect()
}

/// What a wall keeps, in half a sentence.
fn keeps(kind: Kind, settings: &Settings) -> String {
    let temp = if kind.is_full() { "/tmp, which is its own" } else { "$TMPDIR" };
    let network = match (settings.network, kind.is_full() && !settings.hosts.is_empty()) {
        (Network::On, _) => "",
        (Network::Off, true) => "; of the network only the listed hosts are reached",
        (Network::Off, false) => "; there is no network",
    };
    let further: Vec<String> = settings.writable.iter().map(|path| path.display().to_string()).collect();
    let further = if further.is_empty() { String::new() } else { format!(", {}", further.join(", ")) };
    format!(
        "a command writes in the workspace and {temp}{further}, but not in .git/hooks, .git/config, .windlass and shell start \
         files{network}"
    )
}

/// What the model is told of a command that may have met the wall.
pub(crate) fn denied(kind: Kind, settings: &Settings, failed: bool, output: &str) -> Option<String> {
    let refused = REFUSALS.iter().any(|words| output.contains(words));
    let unreachable = settings.network == Network::Off && UNREACHABLE.iter().any(|words| output.contains(words));
    let missing = kind.is_full() && output.contains("/tmp/") && output.contains("No such file or directory");
    let plain = PLAIN_WORDS.iter().any(|words| output.contains(words));
    if !(plain || failed && (refused || unreachable || missing)) {
        return None;
    }
    Some(format!(
        "[sandbox ({}): {}. If it must be done all the same, call again with outside_sandbox saying why: the user is asked]",
        kind.name(),
        keeps(kind, settings)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Choice, Limits};

    fn settings(network: Network, hosts: &[&str]) -> Settings {
        Settings {
            program: "/proc/self/exe".into(),
            choice: Choice::Auto,
            require: false,
            home: None,
            writable: vec!["/cache".into()],
            protected: vec![],
            unreadable: vec![],
            network,
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            limits: Limits::default(),
        }
    }

    #[test]
    fn only_what_looks_like_the_wall_is_told_with_the_way_out() {
        let off = settings(Network::Off, &[]);
        let told = |failed, output| denied(Kind::Namespaces, &off, failed, output);
        assert_eq!(told(true, "error: expected `;`"), None);
        assert_eq!(told(false, "grep: x: Permission denied"), None);
        for output in [
            "cp: x: Permission denied",
            "curl: (6) Could not resolve host: x",
            "cat: /tmp/x: No such file or directory",
        ] {
            assert!(told(true, output).is_some(), "{output}");
        }
        insta::assert_snapshot!(told(false, "sh: 1: cannot create /etc/x: Read-only file system").unwrap(), @"[sandbox (namespaces): a command writes in the workspace and /tmp, which is its own, /cache, but not in .git/hooks, .git/config, .windlass and shell start files; there is no network. If it must be done all the same, call again with outside_sandbox saying why: the user is asked]");
        let hosts = settings(Network::Off, &["docs.rs"]);
        let listed = denied(Kind::Namespaces, &hosts, true, "Permission denied").unwrap();
        assert!(listed.contains("; of the network only the listed hosts are reached. If"), "{listed}");
        let on = settings(Network::On, &[]);
        assert_eq!(denied(Kind::Landlock, &on, true, "Name or service not known"), None);
    }

    #[test]
    fn what_is_not_covered_depends_on_the_wall() {
        let off = settings(Network::Off, &["docs.rs"]);
        assert_eq!(gaps(None, &off), ["Nothing is kept: a command can do whatever you can do yourself."]);
        assert!(gaps(Some(Kind::Landlock), &off).join(" ").contains("the listed hosts cannot be reached"));
        assert!(
            gaps(Some(Kind::Bubblewrap), &off).join(" ").contains("What is sent to the listed hosts is not looked at.")
        );
    }
}
