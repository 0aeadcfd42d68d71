//! The repositories that a git index names within its own: git looks into them, and so into their settings.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Bytes of an index that are read.
const MAX_BYTES: u64 = 256 << 20;
/// The type of an entry that is a repository, as its mode has it.
const GITLINK: u32 = 0o160000;
const TYPE: u32 = 0o170000;
/// Bytes in front of an entry's mode, and from there to its object's name.
const TO_MODE: usize = 24;
const TO_OBJECT: usize = 16;
/// That an entry has further flags.
const EXTENDED: u16 = 0x4000;

/// The paths of entries that are repositories; none if an index can't be read. `wide_ids`: objects are named by
/// SHA-256.
pub fn repositories(git_dir: &Path, wide_ids: bool) -> Option<Vec<PathBuf>> {
    let mut found = vec![];
    for entry in fs::read_dir(git_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name != "index" && !name.starts_with("sharedindex.") {
            continue;
        }
        let meta = fs::metadata(entry.path()).ok().filter(|meta| meta.is_file() && meta.len() <= MAX_BYTES)?;
        let bytes = if meta.len() == 0 { continue } else { fs::read(entry.path()).ok()? };
        found.extend(links(&bytes, if wide_ids { 32 } else { 20 })?);
    }
    Some(found)
}

fn links(index: &[u8], id_bytes: usize) -> Option<Vec<PathBuf>> {
    let version = whole(index, 4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path, mut found) = (12, Vec::new(), vec![]);
    for _ in 0..whole(index, 8)? {
        let mode = whole(index, at + TO_MODE)?;
        let flags_at = at + TO_MODE + TO_OBJECT + id_bytes;
        let flags = u16::from_be_bytes(index.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let mut name_at = flags_at + if version > 2 && flags & EXTENDED != 0 { 4 } else { 2 };
        if version == 4 {
            let (taken, past) = varint(index, name_at)?;
            path.truncate(path.len().checked_sub(taken)?);
            name_at = past;
        } else {
            path.clear();
        }
        let name = index.get(name_at..)?.split(|byte| *byte == 0).next()?;
        path.extend_from_slice(name);
        let end = name_at + name.len();
        // Padded with one to eight NULs to a multiple of eight, but for version 4.
        at = if version == 4 { end + 1 } else { at + (end - at + 8) / 8 * 8 };
        if mode & TYPE == GITLINK {
            found.push(PathBuf::from(OsString::from_vec(path.clone())));
        }
    }
    Some(found)
}

fn whole(index: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?))
}

/// A number of as many bytes as it needs, and where it ends.
fn varint(index: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *index.get(at)?;
    let mut number = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *index.get(at)?;
        number = number.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((number, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A repository with a few files and another repository among them.
    fn repository(version: &str, format: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).current_dir(dir.path()).env("HOME", dir.path());
            command.env("GIT_CONFIG_NOSYSTEM", "1");
            assert!(command.output().unwrap().status.success(), "git {arguments:?}");
        };
        git(&["init", "-q", &format!("--object-format={format}")]);
        for name in ["a", "docs/b", "docs/bc", "inner-not", "z"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        git(&["add", "."]);
        let id = if format == "sha256" { "1".repeat(64) } else { "1".repeat(40) };
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},docs/inner")]);
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{id},third")]);
        git(&["update-index", "--index-version", version]);
        dir
    }

    #[test]
    fn repositories_in_an_index_of_gits_own_are_found() {
        for (version, format) in [("2", "sha1"), ("3", "sha1"), ("4", "sha1"), ("2", "sha256"), ("4", "sha256")] {
            let dir = repository(version, format);
            let found = repositories(&dir.path().join(".git"), format == "sha256").unwrap();
            assert_eq!(found, [Path::new("docs/inner"), Path::new("third")], "{version} {format}");
        }
    }

    #[test]
    fn what_is_no_index_is_not_taken_for_an_empty_one() {
        assert_eq!(links(b"", 20), None);
        assert_eq!(links(b"DIRC\0\0\0\x09\0\0\0\0", 20), None);
        assert_eq!(links(b"DIRC\0\0\0\x02\0\0\0\x05short", 20), None);
        assert_eq!(links(b"DIRC\0\0\0\x02\0\0\0\0", 20), Some(vec![]));
    }
}
