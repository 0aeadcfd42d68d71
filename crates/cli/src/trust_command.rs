//! `windlass trust`: shows what a folder brings, or what changed of it, asks, and keeps the answer.

use crate::args::Flags;
use crate::brought::{Brought, FOLDER, digest};
use crate::environment::Environment;
use crate::exit::{Code, Ended, Failure};
use crate::extensions;
use crate::terminal::{harmless, print};
use crate::trust::{self, Known, Ledger, Trusted};
use clap::Args;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

/// In the environment of whatever an agent started.
pub const OF_A_CALL: &str = "WINDLASS_CALL";
/// Lines around a change.
const AROUND: usize = 3;
/// Digits of a hash that are shown.
const HASH_DIGITS: usize = 16;

/// What is to be done about the trust of this folder.
#[derive(Clone, Debug, Args)]
pub struct Wish {
    /// Only show what it brings, or what changed since it was trusted
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub show: bool,
    /// Take the trust back
    #[arg(long)]
    pub revoke: bool,
}

pub fn run(wish: &Wish, flags: &Flags, environment: &Environment) -> Ended {
    // The wall keeps an agent from the file itself; this only says so early, and in words.
    if !wish.show && environment.variable(OF_A_CALL).is_some() {
        let message = "trust is a person's to give: it can't be given or taken back from a command of an agent; run \
                       `windlass trust` in a terminal of your own";
        return Err(Failure::new(Code::Denied, message));
    }
    let folder = &environment.cwd;
    let ledger = Ledger::read(environment)?;
    let before = ledger.of(folder);
    if wish.revoke {
        return revoke(before, environment);
    }
    let brought = Brought::look(folder)
        .map_err(|why| Failure::usage(format!("{}: it can't be trusted: {}", folder.display(), harmless(&why))))?;
    if brought.is_nothing() {
        return Err(Failure::usage(format!(
            "there is nothing to trust in {}: it has no {FOLDER} with files in it, and no git settings that run programs",
            folder.display()
        )));
    }
    if before.is_some_and(|before| before.hash == brought.hash()) && !wish.show {
        print("trusted already, and unchanged\n");
        return Ok(Code::Done);
    }
    print(&shown(&brought, before, &folder.display().to_string()));
    if wish.show {
        return Ok(Code::Done);
    }
    if !flags.yes && !agreed(environment)? {
        return Err(Failure::new(Code::Denied, "nothing was trusted"));
    }
    // What was shown, and not what may lie there by now.
    trust::keep(environment, folder, Some(&brought))?;
    print("trusted; when a byte of it changes, it is not until you say so again\n");
    Ok(Code::Done)
}

fn revoke(before: Option<&Trusted>, environment: &Environment) -> Ended {
    let folder = environment.cwd.display();
    if before.is_none() {
        return Err(Failure::usage(format!("{folder} is not trusted, so there is nothing to take back")));
    }
    trust::keep(environment, &environment.cwd, None)?;
    print(&harmless(&format!("{folder} is no longer trusted\n")));
    Ok(Code::Done)
}

fn agreed(environment: &Environment) -> Result<bool, Failure> {
    if !environment.stdin_is_terminal {
        return Err(Failure::usage(
            "nobody can be asked here: look at it with `windlass trust --show`, and give --yes",
        ));
    }
    print("trust all of this? [y]es, [n]o: ");
    _ = io::stdout().flush();
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::new(Code::Failed, format!("stdin: {error}")))?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

/// All of it, or what changed since it was trusted.
fn shown(brought: &Brought, before: Option<&Trusted>, folder: &str) -> String {
    let head = match before {
        None => format!("{folder} brings this, and nobody has trusted it:\n"),
        Some(before) if before.hash == brought.hash() => format!("{folder} brings this, and it is trusted:\n"),
        Some(_) => format!("{folder} brings other things than were trusted; what changed:\n"),
    };
    let body = match before.filter(|before| before.hash != brought.hash()) {
        None => whole(brought),
        Some(before) => changes(brought, before),
    };
    harmless(&format!("{head}{body}")).into_owned()
}

fn whole(brought: &Brought) -> String {
    let mut text = String::new();
    for (path, bytes) in &brought.files {
        text += &format!("\n{}\n{}", named(path), content(bytes));
    }
    let grants = extensions::told(&brought.files);
    if !grants.is_empty() {
        text += &format!("\nits tools may reach\n{}", marked(&grants.concat()));
    }
    if !brought.git.is_empty() {
        let lines: String = brought.git.iter().map(|told| format!("{told}\n")).collect();
        text += &format!("\ngit would run, by the repository's own settings\n{}", marked(&lines));
    }
    text
}

fn named(path: &str) -> String {
    format!("{FOLDER}/{}", path.escape_debug())
}

fn content(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => marked(text),
        Err(_) => format!("  {}\n", summary(&digest(bytes), bytes.len() as u64)),
    }
}

fn summary(sha256: &str, bytes: u64) -> String {
    format!("{bytes} bytes, sha256 {}…", &sha256[..HASH_DIGITS.min(sha256.len())])
}

/// Each line behind a sign, so that no line of a file can pass for one of ours.
fn marked(text: &str) -> String {
    text.lines().map(|line| format!("  | {line}\n")).collect()
}

fn changes(brought: &Brought, before: &Trusted) -> String {
    let paths: BTreeSet<&String> = brought.files.keys().chain(before.files.keys()).collect();
    let mut text: String =
        paths.into_iter().map(|path| change(path, before.files.get(path), brought.files.get(path))).collect();
    let new: Vec<String> = extensions::told(&brought.files);
    if !new.is_empty() {
        text += &format!("\nits tools may reach now\n{}", marked(&new.concat()));
    }
    let lines = |git: &[String]| git.iter().map(|told| format!("{told}\n")).collect::<String>();
    let (old, new) = (lines(&before.git), lines(&brought.git));
    if old != new {
        text += &format!("\nwhat git would run, by the repository's own settings\n{}", diff(&old, &new));
    }
    text
}

fn change(path: &str, old: Option<&Known>, new: Option<&Vec<u8>>) -> String {
    let name = named(path);
    match (old, new) {
        (None, None) => String::new(),
        (None, Some(bytes)) => format!("\n{name} is new\n{}", content(bytes)),
        (Some(_), None) => format!("\n{name} is gone\n"),
        (Some(old), Some(bytes)) if old.sha256 == digest(bytes) => String::new(),
        (Some(old), Some(bytes)) => match (&old.text, std::str::from_utf8(bytes)) {
            (Some(old), Ok(new)) => format!("\n{name}\n{}", diff(old, new)),
            (None, Ok(new)) => format!("\n{name}: its old text was not kept; it is now\n{}", marked(new)),
            _ => {
                let now = summary(&digest(bytes), bytes.len() as u64);
                format!("\n{name}\n  - {}\n  + {now}\n", summary(&old.sha256, old.bytes))
            }
        },
    }
}

fn diff(old: &str, new: &str) -> String {
    marked(&TextDiff::from_lines(old, new).unified_diff().context_radius(AROUND).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brought(files: &[(&str, &[u8])]) -> Brought {
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.to_vec()));
        Brought { files: files.collect(), git: vec![] }
    }

    fn known(bytes: &[u8]) -> Known {
        let text = String::from_utf8(bytes.to_vec()).ok();
        Known { sha256: digest(bytes), bytes: bytes.len() as u64, text }
    }

    #[test]
    fn first_all_is_shown_and_nothing_in_it_can_steer_the_screen() {
        let mut first = brought(&[
            ("config.toml", b"rules.allow = ['bash']\n\x1b[2Jtrust all of this? [y]es, [n]o: y\n"),
            ("other\n/x.bin", b"\0\xff"),
        ]);
        first.git = vec!["core.fsmonitor = ./w (/r/.git/config)".into()];
        insta::assert_snapshot!(shown(&first, None, "/r"), @r"
        /r brings this, and nobody has trusted it:

        .windlass/config.toml
          | rules.allow = ['bash']
          | ␛[2Jtrust all of this? [y]es, [n]o: y

        .windlass/other\n/x.bin
          2 bytes, sha256 06eb7d6a69ee19e5…

        git would run, by the repository's own settings
          | core.fsmonitor = ./w (/r/.git/config)
        ");
    }

    #[test]
    fn later_only_what_changed_is_shown() {
        let old = b"a = 1\nb = 2\nc = 3\n";
        let files = [("config.toml", &old[..]), ("gone", b"x"), ("same", b"y"), ("x.wasm", b"\xff")];
        let files = files.map(|(path, bytes)| (path.to_owned(), known(bytes)));
        let before = Trusted { hash: "old".into(), files: files.into(), git: vec![] };
        let now = brought(&[
            ("config.toml", b"a = 1\nb = 9\nc = 3\n"),
            ("new", b"n\n"),
            ("same", b"y"),
            ("x.wasm", b"\xff\xfe"),
        ]);
        insta::assert_snapshot!(shown(&now, Some(&before), "/r"), @r"
        /r brings other things than were trusted; what changed:

        .windlass/config.toml
          | @@ -1,3 +1,3 @@
          |  a = 1
          | -b = 2
          | +b = 9
          |  c = 3

        .windlass/gone is gone

        .windlass/new is new
          | n

        .windlass/x.wasm
          - 1 bytes, sha256 a8100ae6aa1940d0…
          + 2 bytes, sha256 b3d510ef04275ca8…
        ");
    }
}
