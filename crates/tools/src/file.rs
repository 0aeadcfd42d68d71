//! Files as the tools meet them: what they are called, what is in them, and words for what cannot be read.

use crate::Workspace;
pub(crate) use crate::blocking::blocking;
use crate::place::Place;
use crate::root::{GONE, is_link};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::str::Utf8Chunk;

/// Bytes beyond which a file is not taken in whole.
pub(crate) const HUGE_BYTES: u64 = 10 << 20;
/// Bytes up to which a file is read where the call runs: a hop to another thread would take longer.
pub(crate) const INLINE_BYTES: u64 = 256 << 10;
/// Bytes at a file's start that are searched for a NUL.
const BINARY_PROBE_BYTES: usize = 8 << 10;
/// Names offered for one that does not exist.
const MAX_CLOSE_NAMES: usize = 5;
/// Entries of a folder looked at for close names.
const MAX_LOOKED_AT: usize = 5_000;

pub(crate) const BOM: &str = "\u{feff}";

/// The path as a model should see it: relative inside the workspace, else absolute; what no line of text can hold is
/// escaped.
pub(crate) fn shown(workspace: &Workspace, path: &Path) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
        Ok(rest) => printable(rest.as_os_str()),
        Err(_) => printable(path.as_os_str()),
    }
}

/// A name in one line: control characters, and bytes that are no UTF-8, as `\n` or `\xff`.
pub(crate) fn printable(name: &OsStr) -> String {
    match name.to_str() {
        Some(text) if !text.contains(char::is_control) => text.into(),
        _ => name.as_encoded_bytes().utf8_chunks().map(escaped).collect(),
    }
}

fn escaped(chunk: Utf8Chunk<'_>) -> String {
    let valid = chunk.valid().chars().map(|sign| match sign.is_control() || sign == '\\' {
        true => sign.escape_default().to_string(),
        false => sign.to_string(),
    });
    let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
    valid.chain(invalid).collect()
}

/// That a regular file is there; if it is missing, a folder or a device, words that say the way out.
pub(crate) fn regular<'a>(workspace: &Workspace, place: &'a Place) -> Result<&'a Metadata, String> {
    let name = shown(workspace, &place.named);
    match place.present(workspace)? {
        meta if meta.is_file() => Ok(meta),
        meta if meta.is_dir() => Err(format!("{name} is a folder; use ls to list it")),
        _ => Err(format!("{name} is a device, pipe or socket, no regular file")),
    }
}

/// Opens the regular file at `place`, and says how many bytes it has.
pub(crate) fn open(workspace: &Workspace, place: &Place) -> Result<(File, u64), String> {
    // What it was when it was looked at: a device would feel being opened.
    regular(workspace, place)?;
    match workspace.root.read(&place.real) {
        Ok((file, meta)) => Ok((file, meta.len())),
        Err(error) => Err(failed("read", &shown(workspace, &place.named), &error)),
    }
}

/// All that `file` holds, which has `bytes`, if that is not too much.
pub(crate) fn whole(file: File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut held = Vec::with_capacity(bytes.min(HUGE_BYTES) as usize + 1);
    file.take(HUGE_BYTES + 1).read_to_end(&mut held)?;
    match held.len() as u64 > HUGE_BYTES {
        true => Err(io::Error::other(format!("it goes on beyond {HUGE_BYTES} bytes"))),
        false => Ok(held),
    }
}

/// What could not be done with a file, and why.
pub(crate) fn failed(what: &str, name: &str, error: &io::Error) -> String {
    match is_link(error) {
        true => {
            format!("could not {what} {name}: it now leads through a link that was not there when this was allowed")
        }
        false => format!("could not {what} {name}: {error}"),
    }
}

/// Words for a place where nothing is: what is there, to choose from.
pub(crate) fn missing(workspace: &Workspace, place: &Place) -> String {
    let (name, path) = (shown(workspace, &place.named), &place.real);
    if workspace.root.is_gone() && path.starts_with(&workspace.cwd) {
        return format!("{name} cannot be looked for: {GONE}");
    }
    if *path != place.named {
        return format!("{name} leads to {}, and nothing is there", shown(workspace, path));
    }
    let is_folder = |path: &Path| workspace.root.probe(path).is_ok_and(|meta| meta.is_dir());
    let there = path.ancestors().skip(1).find(|ancestor| is_folder(ancestor)).unwrap_or(Path::new("/"));
    if path.parent() != Some(there) {
        let lost = path.strip_prefix(there).ok().and_then(|rest| rest.components().next());
        let lost = printable(lost.map_or(OsStr::new(""), |part| part.as_os_str()));
        return format!(
            "{name} does not exist: there is no {lost} in {}; look with ls or glob",
            shown(workspace, there)
        );
    }
    match close_names(workspace, path, there).as_slice() {
        [] => format!("{name} does not exist; look with ls or glob"),
        names => format!("{name} does not exist; close names in that folder: {}", names.join(", ")),
    }
}

fn close_names(workspace: &Workspace, path: &Path, folder: &Path) -> Vec<String> {
    let wanted = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let Ok(names) = workspace.root.names(folder) else { return Vec::new() };
    let mut close: Vec<(u32, String)> = names
        .take(MAX_LOOKED_AT)
        .filter_map(|name| name.into_string().ok())
        .map(|name| ((likeness(&wanted, &name.to_lowercase()) * 1000.0) as u32, name))
        .filter(|(score, _)| *score >= 500)
        .collect();
    close.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let open = close.into_iter().filter(|(_, name)| workspace.root.hidden_by(&folder.join(name), false).is_none());
    open.take(MAX_CLOSE_NAMES).map(|(_, name)| told_apart(&wanted, &name)).collect()
}

/// The name; with its characters spelt out where two may look the same and not be.
fn told_apart(wanted: &str, name: &str) -> String {
    match wanted.is_ascii() && name.is_ascii() {
        true => printable(OsStr::new(name)),
        false => format!("{} (that is {})", printable(OsStr::new(name)), name.escape_default()),
    }
}

/// How alike two names are: swapped letters are the commonest slip, and leave short names no pair in common.
fn likeness(a: &str, b: &str) -> f32 {
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    if letters(a) == letters(b) { 1.0 } else { similarity(a, b) }
}

/// How alike two short texts are, 0 to 1: the share of letter pairs they have in common.
pub(crate) fn similarity(a: &str, b: &str) -> f32 {
    let pairs = |text: &str| -> Vec<[char; 2]> {
        let mut pairs: Vec<_> = text.chars().zip(text.chars().skip(1)).map(|(a, b)| [a, b]).collect();
        pairs.sort_unstable();
        pairs
    };
    let (a, b) = (pairs(a), pairs(b));
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    2.0 * common as f32 / (a.len() + b.len()).max(1) as f32
}

/// Whether the bytes are no text: a NUL near the start.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_name_is_one_line_of_text() {
        for (name, expected) in [
            (&b"plain \\ name"[..], r"plain \ name"),
            ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
            (b"caf\xe9.txt", r"caf\xe9.txt"),
            (b"two\nlines\\n", r"two\nlines\\n"),
            (b"\x1b[2J", r"\u{1b}[2J"),
        ] {
            assert_eq!(printable(OsStr::from_bytes(name)), expected);
        }
    }
}
