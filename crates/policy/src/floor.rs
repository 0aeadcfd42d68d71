//! The hard floor: what is refused in every mode and by no rule allowed. Only what is sure to be ruin stands here.

use crate::ask::{Ask, Check, Opinion};
use crate::path;
use crate::segments::{Reading, Segment, base};
use windlass_kernel::Verdict;

/// Refuses the recursive deletion of `/`, a home, the workspace's root or a folder above it, the formatting and
/// overwriting of disks, and fork bombs.
#[derive(Clone, Copy, Debug, Default)]
pub struct HardFloor;

impl Check for HardFloor {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let danger = danger(ask.command()?, ask.workspace)?;
        let reason = format!("refused in every mode: {danger}");
        Some(Opinion::new(Verdict::Deny, "floor", reason))
    }
}

/// What `command` would ruin, if that is sure.
fn danger(command: &str, workspace: &str) -> Option<String> {
    if is_fork_bomb(command) {
        return Some("it is a fork bomb".into());
    }
    let reading = Reading::of(&command.replace("$(pwd)", "$PWD").replace("`pwd`", "$PWD"));
    if reading.tangled {
        return Some("it nests commands deeper than can be judged; put the inner ones into a script file".into());
    }
    reading.passes.iter().find_map(|pass| {
        let mut place = Place { workspace, folder: path::absolute(workspace, "") };
        pass.iter().find_map(|segment| place.danger_of(segment))
    })
}

/// A function whose body pipes itself into itself in the background: `f(){ f|f& };f`.
fn is_fork_bomb(command: &str) -> bool {
    let tight: String = command.chars().filter(|sign| !sign.is_whitespace()).collect();
    tight.match_indices("(){").any(|(at, opening)| {
        let name = tight[..at].rsplit([';', '&', '|', '(', ')', '{', '}']).next().unwrap_or_default();
        let body = &tight[at + opening.len()..];
        let loops = || body.strip_prefix(name)?.strip_prefix('|')?.strip_prefix(name)?.strip_prefix('&');
        !name.is_empty() && loops().is_some()
    })
}

/// Where a command line has got to, as its `cd`s say.
struct Place<'a> {
    workspace: &'a str,
    /// Absolute, or from `~`.
    folder: String,
}

impl Place<'_> {
    fn danger_of(&mut self, segment: &Segment) -> Option<String> {
        if let Some(disk) = segment.targets.iter().find(|target| is_disk(target)) {
            return Some(format!("it overwrites the disk {disk}"));
        }
        segment.programs.iter().find_map(|start| {
            let arguments = &segment.words[start + 1..];
            match base(&segment.words[*start]) {
                "cd" | "pushd" => self.enter(arguments),
                "rm" => self.danger_of_rm(arguments),
                "find" => self.danger_of_find(arguments),
                "dd" => danger_of_dd(arguments),
                name if name == "mkfs" || name.starts_with("mkfs.") => Some(format!("`{name}` formats a disk")),
                _ => None,
            }
        })
    }

    fn enter(&mut self, arguments: &[String]) -> Option<String> {
        match arguments.iter().find(|word| *word == "-" || !word.starts_with('-')) {
            Some(word) if word == "-" => {}
            Some(word) => self.folder = self.resolve(word),
            None => self.folder = "~".into(),
        }
        None
    }

    fn danger_of_rm(&self, arguments: &[String]) -> Option<String> {
        let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
        let (front, after) = (&arguments[..end], arguments.get(end + 1..).unwrap_or_default());
        if !front.iter().any(|word| is_recursive(word)) {
            return None;
        }
        let targets = front.iter().filter(|word| !word.starts_with('-')).chain(after);
        targets.into_iter().find_map(|target| self.danger_of_deleting(target))
    }

    /// `find FOLDER -delete` or `-exec rm`, where nothing but its depth narrows what is found.
    fn danger_of_find(&self, arguments: &[String]) -> Option<String> {
        let act = arguments.iter().position(|word| matches!(&word[..], "-delete" | "-exec" | "-execdir"))?;
        let deletes = arguments[act] == "-delete" || arguments.get(act + 1).is_some_and(|word| base(word) == "rm");
        let narrowing = arguments.iter().position(|word| word.starts_with(['-', '!'])).unwrap_or(act);
        let narrows = |word: &String| {
            let harmless = matches!(&word[..], "-depth" | "-xdev" | "-mount" | "-mindepth" | "-print");
            !harmless && word.parse::<u32>().is_err()
        };
        if !deletes || arguments[narrowing..act].iter().any(narrows) {
            return None;
        }
        match &arguments[..narrowing] {
            [] => self.danger_of_deleting("."),
            folders => folders.iter().find_map(|folder| self.danger_of_deleting(folder)),
        }
    }

    fn danger_of_deleting(&self, target: &str) -> Option<String> {
        if target.is_empty() {
            return None;
        }
        let spot = self.resolve(target);
        let depth = spot.split('/').count();
        let is_home = spot == "~"
            || matches!(&spot[..], "/root" | "/home" | "/Users")
            || depth == 3 && (spot.starts_with("/home/") || spot.starts_with("/Users/"));
        let root = path::absolute(self.workspace, "");
        let what = if spot == "/" {
            "the whole file system"
        } else if is_home {
            "a home folder"
        } else if spot == root {
            "the whole workspace"
        } else if root.strip_prefix(&spot).is_some_and(|rest| rest.starts_with('/')) {
            "a folder above the workspace"
        } else {
            return None;
        };
        Some(format!("deleting `{target}` deletes {what}; name the files below it that must go"))
    }

    /// The folder or file a word means: absolute or from `~`. A last part of stars means what holds it.
    fn resolve(&self, word: &str) -> String {
        let (start, rest) = self.start(word);
        let mut parts: Vec<&str> = Vec::new();
        for part in start.split('/').skip(1).chain(rest.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        while parts.last().is_some_and(|part| matches!(*part, "*" | ".*" | "**")) {
            parts.pop();
        }
        match (start.starts_with('~'), parts.is_empty()) {
            (true, true) => "~".into(),
            (true, false) => format!("~/{}", parts.join("/")),
            (false, _) => format!("/{}", parts.join("/")),
        }
    }

    /// What a word starts from, and the rest of it.
    fn start<'w>(&'w self, word: &'w str) -> (&'w str, &'w str) {
        for (name, from) in [("$HOME", "~"), ("${HOME}", "~"), ("$PWD", &self.folder), ("${PWD}", &self.folder)] {
            if let Some(rest) = word.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                return (from, rest);
            }
        }
        match word.strip_prefix('~') {
            Some(rest) => ("~", rest.split_once('/').map_or("", |(_, rest)| rest)),
            None if word.starts_with('/') => ("/", word),
            None => (&self.folder, word),
        }
    }
}

fn is_recursive(word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(name) => !name.is_empty() && "recursive".starts_with(name),
        None => word.strip_prefix('-').is_some_and(|signs| signs.contains(['r', 'R'])),
    }
}

fn danger_of_dd(arguments: &[String]) -> Option<String> {
    let disk = arguments.iter().filter_map(|word| word.strip_prefix("of=")).find(|target| is_disk(target))?;
    Some(format!("it overwrites the disk {disk}"))
}

fn is_disk(target: &str) -> bool {
    const DISKS: [&str; 11] = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md"];
    let target = path::absolute("/", target);
    target.strip_prefix("/dev/").is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ruin_is_refused_however_it_is_spelled() {
        for command in [
            "rm -rf /",
            "rm -r -f /",
            "rm -fr //",
            "rm / -rf",
            "rm -rf -- /",
            "rm --recursive --force /",
            "rm --rec /",
            "rm -Rf /.",
            "rm -rf /*",
            "rm -rf /home/../",
            "rm -rf --no-preserve-root /",
            "rm -fr ~",
            "rm -rf ~/",
            "rm -rf ~/*",
            "rm -rf ~/.*",
            "rm -rf ~root",
            "rm -rf ~/x/..",
            "rm -rf $HOME",
            "rm -rf \"$HOME\"",
            "rm -rf \"${HOME}/\"*",
            "rm -rf /home/ann",
            "rm -rf /root/",
            "sudo rm -rf /*",
            "sudo -u root /bin/rm -rf /",
            "\\rm -rf /",
            "r''m -r\"f\" /",
            "X=1 rm -rf /",
            "true; rm -rf /",
            "true && (rm -rf /)",
            "echo $(rm -rf /)",
            "sh -c 'rm -rf /'",
            "eval \"rm -rf /\"",
            "bash -c \"sudo rm -rf ~\"",
            "timeout 5 rm -rf /",
            "{rm,-rf,/}",
            "rm -rf {/,x}",
            "rm -rf / > /dev/null 2>&1",
            ">/dev/null rm -rf /",
            "if true; then rm -rf /; fi",
            "cd / && rm -rf .",
            "cd / && rm -rf *",
            "cd /; rm -rf ./*",
            "cd && rm -rf *",
            "cd ~ && rm -rf .",
            "cd .. && rm -rf *",
            "cd ../.. && sudo rm -rf \"$PWD\"",
            "rm -rf .",
            "rm -rf ./",
            "rm -rf *",
            "rm -rf ..",
            "rm -rf ../app",
            "rm -rf /work/app",
            "rm -rf /work/app/*",
            "rm -rf /work",
            "rm -rf src /",
            "rm -rf $(pwd)",
            "rm -rf \"`pwd`\"",
            "find / -delete",
            "find ~ -mindepth 1 -delete",
            "find . -delete",
            "find -delete",
            "find / -exec rm -rf {} +",
            "mkfs /dev/sda1",
            "sudo mkfs.ext4 -F /dev/sda1",
            "dd if=/dev/zero of=/dev/sda bs=1M",
            "dd of=/dev/nvme0n1 if=x",
            "cat x > /dev/sda",
            ":(){ :|:& };:",
            ":() { : | : & } ; :",
            "bomb() {\n bomb | bomb &\n}; bomb",
        ] {
            assert!(danger(command, "/work/app").is_some(), "{command}");
        }
    }

    #[test]
    fn the_reason_says_what_would_be_lost() {
        for (command, lost) in [
            ("rm -rf /", "the whole file system"),
            ("cd src && rm -rf /*", "the whole file system"),
            ("cd src && rm -rf ~", "a home folder"),
            ("cd src && rm -rf ..", "the whole workspace"),
            ("cd src && rm -rf ../*", "the whole workspace"),
            ("rm -rf ../../work/*", "a folder above the workspace"),
        ] {
            let danger = danger(command, "/work/app").unwrap_or_default();
            assert!(danger.contains(lost), "{command}: {danger}");
        }
    }

    #[test]
    fn what_is_not_sure_to_be_ruin_is_left_to_the_rules() {
        for command in [
            "rm -rf target",
            "rm -rf ./target/*",
            "rm -f /",
            "rm -rf \"\"",
            "rm -rf /tmp/x",
            "rm -rf ~/.cache/x",
            "rm -rf /work/other",
            "rm -rf /work/app2",
            "rm -rf /home/ann/project/target",
            "rm notes.txt",
            "cd target && rm -rf *",
            "cd /tmp && rm -rf x",
            "cd /tmp/build && rm -rf .",
            "rmdir /",
            "echo 'rm -rf /'",
            "git commit -m \"never rm -rf / again\"",
            "grep -rf /dev/null /",
            "find . -name '*.tmp' -delete",
            "find target -delete",
            "find / -name core",
            "dd if=/dev/zero of=disk.img",
            "dd if=/dev/sda of=/dev/null",
            "cat x > /dev/null",
            "f() { g | g & }; f",
            "ls /",
        ] {
            assert_eq!(danger(command, "/work/app"), None, "{command}");
        }
    }
}
