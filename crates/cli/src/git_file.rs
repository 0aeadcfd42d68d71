//! A file of git's settings, read as git reads it: where the two differed, a setting could hide.

use std::iter::Peekable;
use std::str::Chars;

/// One setting; section and key in lower case.
#[derive(Debug, PartialEq)]
pub struct Setting {
    /// `core`, or `diff.NAME`.
    pub section: String,
    pub key: String,
    pub value: String,
}

/// The settings of a text; none if git would refuse it.
pub fn settings(text: &str) -> Option<Vec<Setting>> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut signs = text.chars().peekable();
    let mut section = String::new();
    let mut found = vec![];
    while let Some(sign) = signs.next() {
        match sign {
            '#' | ';' => skip_line(&mut signs),
            '[' => section = head(&mut signs)?,
            sign if is_blank(sign) => {}
            sign if sign.is_ascii_alphabetic() => {
                let mut key = String::from(sign.to_ascii_lowercase());
                while let Some(sign) = signs.next_if(|sign| sign.is_ascii_alphanumeric() || *sign == '-') {
                    key.push(sign.to_ascii_lowercase());
                }
                let value = value(&mut signs)?;
                found.push(Setting { section: section.clone(), key, value });
            }
            _ => return None,
        }
    }
    Some(found)
}

fn is_blank(sign: char) -> bool {
    matches!(sign, ' ' | '\t' | '\n' | '\r')
}

/// To the end of the line, past any `\` at it.
fn skip_line(signs: &mut Peekable<Chars>) {
    while signs.next_if(|sign| *sign != '\n').is_some() {}
}

/// `core]` or `diff "NAME"]`: the section.
fn head(signs: &mut Peekable<Chars>) -> Option<String> {
    let mut name = String::new();
    loop {
        match signs.next()? {
            ']' => return (!name.is_empty()).then_some(name),
            ' ' | '\t' | '\r' => break,
            sign if sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.') => name.push(sign.to_ascii_lowercase()),
            _ => return None,
        }
    }
    while signs.next_if(|sign| matches!(sign, ' ' | '\t' | '\r')).is_some() {}
    signs.next_if_eq(&'"')?;
    name.push('.');
    loop {
        match signs.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => match signs.next()? {
                '\n' => return None,
                sign => name.push(sign),
            },
            sign => name.push(sign),
        }
    }
    signs.next_if_eq(&']').map(|_| name)
}

/// ` = VALUE` to the end of the line; without a value a key is on.
fn value(signs: &mut Peekable<Chars>) -> Option<String> {
    while signs.next_if(|sign| matches!(sign, ' ' | '\t')).is_some() {}
    match signs.next() {
        None | Some('\n') => return Some("true".into()),
        Some('=') => {}
        Some(_) => return None,
    }
    let (mut value, mut quoted) = (String::new(), false);
    loop {
        match signs.next() {
            None | Some('\n') if quoted => return None,
            None | Some('\n') => return Some(value.trim().to_owned()),
            Some('#' | ';') if !quoted => skip_line(signs),
            Some('"') => quoted = !quoted,
            Some('\\') => match signs.next() {
                None | Some('\n') => {}
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some('n') => value.push('\n'),
                Some(sign @ ('\\' | '"')) => value.push(sign),
                Some(_) => return None,
            },
            Some(sign) => value.push(sign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What git itself reads, in the form of ours; none: it refuses.
    fn by_git(text: &str) -> Option<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, text).unwrap();
        let mut git = Command::new("git");
        let told = git.args(["config", "--list", "--null", "--file"]).arg(&file).output().unwrap();
        let text = String::from_utf8(told.stdout).unwrap();
        let entries = text.split_terminator('\0').map(|entry| match entry.split_once('\n') {
            Some((key, value)) => format!("{key}={}", value.trim()),
            None => format!("{entry}=true"),
        });
        told.status.success().then(|| entries.collect())
    }

    fn by_us(text: &str) -> Option<Vec<String>> {
        let told = |one: Setting| format!("{}.{}={}", one.section, one.key, one.value);
        settings(text).map(|settings| settings.into_iter().map(told).collect())
    }

    #[test]
    fn git_and_we_read_the_same() {
        for text in [
            "[core]\n\tfsmonitor = ./watch\n",
            "[CORE] FsMonitor=\"./a;b\" # so\n",
            "# a comment \\\n[diff]\nexternal = x\n",
            "[core]\n# \\\nfsmonitor = x\n",
            "[core]\na = b\\\\\nfsmonitor = x\n",
            "[core]\na = b\\\nc\nfsmonitor = x ; no \\\nd = e",
            "[diff \"a]b\"] textconv = t\n[diff.old]\ncommand=c",
            "[filter \"a\\\"b\\\\c\"]\r\n\tclean = c\r\n",
            "\u{feff}[core]\nbare\n",
            "[core]a=1\n[a.B \"C\"]d=2",
            "[core]\nkey = \"a # b\" c\nother = a\\tb\\nc\n",
            "[core]\nfs monitor = x\n",
            "[core]\nx = \"open\n",
            "[core]\nx = \\q\n",
            "[ core ]\nx = 1\n",
            "[core\nx = 1\n",
            "[core]\n=x\n",
            "[diff \"a\nb\"]\nx = 1\n",
            "[include]\npath = ../evil",
            "[core] ; [diff]\nexternal = x\n",
            "[core]\n[]\n",
        ] {
            assert_eq!(by_us(text), by_git(text), "{text:?}");
        }
    }
}
