//! The hard floor: what is refused in every mode and by no rule allowed. Only what is sure to be ruin stands here.

use crate::ask::{Ask, Check, Opinion};
use crate::call::Call;
use crate::deed::{self, Deed, FileHow, Reading};
use crate::path;
use crate::shell::{NESTS_DEEPER, Word, WordKind};
use windlass_kernel::Verdict;

/// Refuses the recursive deletion of `/`, a home, a folder the system lives in, the workspace's root or a folder above
/// it, giving such folders away (`chmod -R`, `mv`), the formatting and overwriting of disks, and fork bombs.
#[derive(Clone, Copy, Debug, Default)]
pub struct HardFloor;

impl HardFloor {
    pub(crate) fn check_call(&self, call: &Call) -> Option<Opinion> {
        let home = call.places.home.as_deref();
        refusal(call.ask.command()?, call.reading()?, Roots { workspace: call.ask.workspace, home })
    }
}

impl Check for HardFloor {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        let command = ask.command()?;
        let reading = deed::read(command, ask.workspace);
        refusal(command, &reading, Roots { workspace: ask.workspace, home: None })
    }
}

fn refusal(command: &str, reading: &Reading, roots: Roots) -> Option<Opinion> {
    let danger = danger(command, reading, roots)?;
    Some(Opinion::new(Verdict::Deny, "floor", format!("refused in every mode: {danger}")))
}

/// What `command` would ruin, if that is sure.
fn danger(command: &str, reading: &Reading, roots: Roots) -> Option<String> {
    if is_fork_bomb(command) {
        return Some("it is a fork bomb".into());
    }
    let doubts = || reading.doubts.iter().chain(reading.deeds.iter().flat_map(|deed| &deed.doubts));
    if doubts().any(|doubt| doubt.contains(NESTS_DEEPER)) {
        return Some("it nests commands deeper than can be judged; put the inner ones into a script file".into());
    }
    let mut before: Option<&Deed> = None;
    reading.deeds.iter().find_map(|deed| {
        let fed = before.replace(deed).map(echoed).unwrap_or_default();
        danger_of_deed(deed, fed, roots)
    })
}

/// A function whose body pipes itself into itself in the background: `f(){ f|f& };f`.
fn is_fork_bomb(command: &str) -> bool {
    if !command.contains('|') || !command.contains('(') {
        return false;
    }
    let tight: String = command.chars().filter(|sign| !sign.is_whitespace()).collect();
    tight.match_indices("(){").any(|(at, opening)| {
        let name = tight[..at].rsplit([';', '&', '|', '(', ')', '{', '}']).next().unwrap_or_default();
        let body = &tight[at + opening.len()..];
        let loops = || body.strip_prefix(name)?.strip_prefix('|')?.strip_prefix(name)?.strip_prefix('&');
        !name.is_empty() && loops().is_some()
    })
}

/// The words an `echo` gives to what it is piped into.
fn echoed(deed: &Deed) -> &[Word] {
    match deed.argv.split_first() {
        Some((program, words)) if matches!(base(&program.text), "echo" | "printf") => words,
        _ => &[],
    }
}

/// A program's name without its folder.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn danger_of_deed(deed: &Deed, fed: &[Word], roots: Roots) -> Option<String> {
    let written = deed.files.iter().filter(|file| file.how != FileHow::Read);
    if let Some(disk) = written.map(|file| &file.path.text).find(|path| is_disk(path)) {
        return Some(format!("it overwrites the disk {disk}"));
    }
    let spot = Spot { roots, folder: deed.folder.as_deref() };
    let name = |words: &[Word]| words.first().map(|word| base(&word.text).to_owned());
    // Of a `find`, the order of the words counts, which other spellings change.
    let is_find = name(&deed.argv).is_some_and(|name| name == "find");
    let also = deed.also.iter().filter(|words| !is_find || name(words).is_none_or(|name| name != "find"));
    std::iter::once(&deed.argv).chain(also).find_map(|words| spot.danger_of(words, fed))
}

/// Folders that must stay.
#[derive(Clone, Copy, Debug)]
struct Roots<'a> {
    workspace: &'a str,
    /// Absolute, where it is known.
    home: Option<&'a str>,
}

/// Where a command runs; the folder is absolute or from `~`.
#[derive(Clone, Copy)]
struct Spot<'a> {
    roots: Roots<'a>,
    folder: Option<&'a str>,
}

/// A folder that must stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Everything,
    Home,
    System,
    Workspace,
    Above,
}

impl Root {
    fn name(self) -> &'static str {
        match self {
            Root::Everything => "the whole file system",
            Root::Home => "a home folder",
            Root::System => "a folder the system lives in",
            Root::Workspace => "the whole workspace",
            Root::Above => "a folder above the workspace",
        }
    }
}

impl<'a> Spot<'a> {
    fn danger_of(self, words: &[Word], fed: &[Word]) -> Option<String> {
        let (program, arguments) = words.split_first()?;
        match base(&program.text) {
            "rm" => self.danger_of_rm(arguments),
            "find" => self.danger_of_find(arguments),
            "xargs" => {
                let start = arguments.iter().position(|word| base(&word.text) == "rm")?;
                self.danger_of_rm(&[&arguments[start + 1..], fed].concat())
            }
            "chmod" | "chown" | "chgrp" | "setfacl" => self.danger_of_giving(arguments, base(&program.text)),
            "mv" => self.danger_of_mv(arguments),
            "rsync" => self.danger_of_rsync(arguments),
            "dd" => danger_of_dd(arguments),
            "shred" | "blkdiscard" | "mkswap" | "mke2fs" => danger_of_disk(arguments),
            "wipefs" if has_option(arguments, 'a', "all") => danger_of_disk(arguments),
            "sgdisk" if has_option(arguments, 'Z', "zap-all") => danger_of_disk(arguments),
            name if name == "mkfs" || name.starts_with("mkfs.") => Some(format!("`{name}` formats a disk")),
            _ => None,
        }
    }

    fn danger_of_rm(self, arguments: &[Word]) -> Option<String> {
        if !is_recursive(arguments, &['r', 'R']) {
            return None;
        }
        operands(arguments).find_map(|target| self.danger_of_deleting(target))
    }

    /// `find FOLDER -delete` or `-exec rm`, where nothing but its depth narrows what is found.
    fn danger_of_find(self, arguments: &[Word]) -> Option<String> {
        let text = |at: usize| arguments.get(at).map_or("", |word| &word.text);
        let act = arguments.iter().position(|word| matches!(&word.text[..], "-delete" | "-exec" | "-execdir"))?;
        let deletes = text(act) == "-delete" || base(text(act + 1)) == "rm";
        let narrowing = arguments.iter().position(|word| word.text.starts_with(['-', '!'])).unwrap_or(act);
        // Files alone, or folders alone, are still all of them.
        let mut tests = arguments[narrowing..act].iter().map(|word| &word.text[..]);
        let mut narrows = false;
        while let Some(test) = tests.next() {
            match test {
                "-depth" | "-xdev" | "-mount" | "-print" => {}
                "-mindepth" | "-type" => narrows |= tests.next().is_none(),
                _ => narrows = true,
            }
        }
        if !deletes || narrows {
            return None;
        }
        match &arguments[..narrowing] {
            [] => self.danger_of_deleting(&Word::known(".")),
            folders => folders.iter().find_map(|folder| self.danger_of_deleting(folder)),
        }
    }

    fn danger_of_deleting(self, target: &Word) -> Option<String> {
        let what = self.root(target)?.name();
        Some(format!("deleting `{}` deletes {what}; name the files below it that must go", target.text))
    }

    fn danger_of_giving(self, arguments: &[Word], program: &str) -> Option<String> {
        if !is_recursive(arguments, &['R']) {
            return None;
        }
        let mut found = operands(arguments).filter_map(|target| Some((target, self.root(target)?)));
        let (target, root) = found.find(|(_, root)| !matches!(root, Root::Workspace | Root::Above))?;
        Some(format!("`{program}` on all of `{}` changes {}; name what is below it", target.text, root.name()))
    }

    fn danger_of_mv(self, arguments: &[Word]) -> Option<String> {
        let mut sources: Vec<&Word> = operands(arguments).collect();
        if !arguments.iter().any(|word| word.text.starts_with("-t") || word.text.starts_with("--target")) {
            sources.pop();
        }
        let mut found = sources.into_iter().filter_map(|source| Some((source, self.root(source)?)));
        // The files of a workspace may be moved about in it; the folder itself may not go.
        let stays = |source: &Word, root: Root| source.kind == WordKind::Glob && root == Root::Workspace;
        let (source, root) = found.find(|(source, root)| !stays(source, *root))?;
        Some(format!("moving `{}` moves {} away", source.text, root.name()))
    }

    fn danger_of_rsync(self, arguments: &[Word]) -> Option<String> {
        let deletes = |word: &Word| word.text.starts_with("--del");
        let target = operands(arguments).last().filter(|_| arguments.iter().any(deletes))?;
        let root = self.root(target).filter(|root| *root != Root::Workspace)?;
        Some(format!("`--delete` into `{}` empties {}", target.text, root.name()))
    }

    /// The folder that must stay which a word names, or all that is in it.
    fn root(self, target: &Word) -> Option<Root> {
        let spot = self.resolve(target)?;
        let is_user = spot.split('/').count() == 3 && (spot.starts_with("/home/") || spot.starts_with("/Users/"));
        let root = path::absolute(self.roots.workspace, "");
        let home = self.roots.home.map(|home| path::absolute(home, ""));
        if spot == "/" {
            Some(Root::Everything)
        } else if spot == "~"
            || matches!(&spot[..], "/root" | "/home" | "/Users")
            || is_user
            || home == Some(spot.clone())
        {
            Some(Root::Home)
        } else if spot == root {
            Some(Root::Workspace)
        } else if SYSTEM.contains(&&spot[..]) {
            Some(Root::System)
        } else {
            root.strip_prefix(&spot).is_some_and(|rest| rest.starts_with('/')).then_some(Root::Above)
        }
    }

    /// The folder or file a word means: absolute or from `~`. A last part of stars means what holds it.
    fn resolve(self, word: &Word) -> Option<String> {
        if word.text.is_empty() {
            return None;
        }
        let (start, rest) = self.start(word)?;
        let mut parts: Vec<&str> = Vec::new();
        for part in start.split('/').skip(1).chain(rest.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let is_known = word.kind == WordKind::Known;
        while !is_known && parts.last().is_some_and(|part| matches!(*part, "*" | ".*" | "**" | "?*" | "*.*" | ".[!.]*"))
        {
            parts.pop();
        }
        match (start.starts_with('~'), parts.is_empty()) {
            (true, true) => Some("~".into()),
            (true, false) => Some(format!("~/{}", parts.join("/"))),
            (false, _) => Some(format!("/{}", parts.join("/"))),
        }
    }

    /// What a word starts from, and the rest of it; none if that is not known.
    fn start<'w>(self, word: &'w Word) -> Option<(&'a str, &'w str)> {
        let text = &word.text[..];
        if word.tilde {
            return Some(("~", text.split_once('/').map_or("", |(_, rest)| rest)));
        }
        if text.starts_with('/') {
            return Some(("/", text));
        }
        if word.kind != WordKind::Unknown {
            return Some((self.folder?, text));
        }
        let here = ["$PWD", "${PWD}", "$(pwd)", "`pwd`"].map(|name| (name, self.folder));
        let names = [("$HOME", Some("~")), ("${HOME}", Some("~"))].into_iter().chain(here);
        for (name, from) in names {
            if let Some(rest) = text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                return Some((from?, rest));
            }
        }
        None
    }
}

/// Folders without which the system does not start.
const SYSTEM: [&str; 16] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/var",
    "/Applications",
    "/Library",
    "/System",
];

/// The words that are no options.
fn operands(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    let (front, after) = (&arguments[..end], arguments.get(end + 1..).unwrap_or_default());
    front.iter().filter(|word| !word.text.starts_with('-')).chain(after)
}

fn is_recursive(arguments: &[Word], letters: &[char]) -> bool {
    arguments.iter().take_while(|word| word.text != "--").any(|word| match word.text.strip_prefix("--") {
        Some(name) => !name.is_empty() && "recursive".starts_with(name),
        None => word.text.strip_prefix('-').is_some_and(|signs| signs.contains(letters)),
    })
}

fn has_option(arguments: &[Word], letter: char, name: &str) -> bool {
    arguments.iter().any(|word| match word.text.strip_prefix("--") {
        Some(own) => own == name,
        None => word.text.strip_prefix('-').is_some_and(|signs| signs.contains(letter)),
    })
}

fn danger_of_dd(arguments: &[Word]) -> Option<String> {
    let disk = arguments.iter().filter_map(|word| word.text.strip_prefix("of=")).find(|target| is_disk(target))?;
    Some(format!("it overwrites the disk {disk}"))
}

fn danger_of_disk(arguments: &[Word]) -> Option<String> {
    let disk = operands(arguments).find(|target| is_disk(&target.text))?;
    Some(format!("it overwrites the disk {}", disk.text))
}

fn is_disk(target: &str) -> bool {
    const DISKS: [&str; 11] = ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md"];
    let target = path::absolute("/", target);
    target.strip_prefix("/dev/").is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn danger(command: &str, workspace: &str) -> Option<String> {
        super::danger(command, &deed::read(command, workspace), Roots { workspace, home: Some("/data/ann") })
    }

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
            "find / -type f -delete",
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
            "xargs rm -rf / < list",
            "echo / | xargs rm -rf",
            "printf '%s' ~ | xargs -n 1 rm -r -f",
            "rm -rf /data/ann",
            "rm -rf /etc",
            "sudo rm -rf /usr/* /tmp/x",
            "rm -rf /bin /lib",
            "rm -rf /boot /var",
            "rm -rf $'/'",
            "$'\\x72m' -rf /",
            "rm -rf \"`pwd`\"/*",
            "for f in / /tmp; do rm -rf \"$f\"; done",
            "rm -rf / <<EOF\n$(ls)\nEOF",
            "cat <<EOF\n$(rm -rf /)\nEOF",
            "(cd /; ls); rm -rf *",
            "rm -rf / 'never closed",
            "busybox rm -rf /",
            "env X=1 nice rm -rf /",
            "chmod -R 777 /",
            "chmod -R 000 ~",
            "chown -R nobody /etc",
            "mv ~ /tmp/x",
            "mv /* /tmp",
            "mv /work/app /tmp",
            "rsync -a --delete empty/ /",
            "shred /dev/sda",
            "wipefs -a /dev/nvme0n1",
            "tee /dev/sda < image",
            "cp image /dev/sda",
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
            "(cd /); rm -rf target",
            "cd $BUILD && rm -rf *",
            "rm -rf '$HOME'",
            "rm -rf \"$TARGET\"",
            "rm -rf '*'",
            "rm -rf /etc/nginx/sites-enabled/x",
            "rm -rf /var/tmp/x",
            "chmod -R u+w .",
            "chown -R me target",
            "chmod 755 /",
            "mv * ../old",
            "mv src lib",
            "mv a /",
            "rsync -a --delete src/ backup/",
            "rsync -a --delete src/ .",
            "wipefs /dev/sda",
            "shred secret.txt",
            "echo / | xargs ls",
            "ls /",
        ] {
            assert_eq!(danger(command, "/work/app"), None, "{command}");
        }
    }
}
