//! Compiled components on disk: by content and by what compiled them, and trusted only where nobody else can write.

use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Files kept; the oldest go.
const MAX_FILES: usize = 64;
/// Bytes of a file that are read: what is larger is none of ours.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of the hash that stands before the code.
const HASH_BYTES: usize = 32;

/// A folder of compiled components.
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub fn new(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// The component kept under `key`; none where there is none, or where it cannot be trusted to be ours.
    pub fn load(&self, engine: &Engine, key: &str) -> Option<Component> {
        let file = read_ours(&self.folder, &self.file(key)).ok()?;
        let (hash, code) = file.split_at_checked(HASH_BYTES)?;
        if Sha256::digest(code).as_slice() != hash {
            return None;
        }
        deserialise(engine, code)
    }

    /// Keeps `code` under `key`. A cache that cannot be written costs time and nothing else.
    pub fn store(&self, key: &str, code: &[u8]) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        // Such a file is readable and writable by its owner alone.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        file.write_all(&Sha256::digest(code))?;
        file.write_all(code)?;
        file.persist(self.file(key)).map_err(|error| error.error)?;
        self.prune()
    }

    fn file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.cwasm"))
    }

    fn prune(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = fs::read_dir(&self.folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "cwasm"))
            .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(MAX_FILES);
        files.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }
}

/// The bytes of a file that we alone can have written: our own, closed to others, in a folder that is so, too, and no
/// link. They are read once, so nothing changes them after they were checked.
fn read_ours(folder: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let own = rustix::process::geteuid().as_raw();
    let foreign = || io::Error::from(io::ErrorKind::PermissionDenied);
    let folder = fs::symlink_metadata(folder)?;
    if !folder.is_dir() || folder.uid() != own || folder.mode() & 0o022 != 0 {
        return Err(foreign());
    }
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file: File = OpenOptions::new().read(true).custom_flags(no_links).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != own || meta.mode() & 0o077 != 0 || meta.len() > MAX_BYTES {
        return Err(foreign());
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[allow(unsafe_code)]
fn deserialise(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: the bytes must be what `Engine::precompile_component` gave. They come from a file that only this user can
    // have written, in a folder of the same kind that is written by `Cache::store` alone, and they are as long and as
    // whole as when it wrote them. The engine itself refuses those of another version or other settings.
    unsafe { Component::deserialize(engine, code) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn engine() -> Engine {
        Engine::default()
    }

    fn kept() -> (tempfile::TempDir, Cache, Engine) {
        let folder = tempfile::tempdir().unwrap();
        let (cache, engine) = (Cache::new(folder.path().join("made")), engine());
        cache.store("key", &engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap()).unwrap();
        (folder, cache, engine)
    }

    #[test]
    fn what_is_kept_is_found_again_and_closed_to_others() {
        let (_folder, cache, engine) = kept();
        assert!(cache.load(&engine, "key").is_some());
        assert!(cache.load(&engine, "other").is_none());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&cache.folder), mode(&cache.file("key"))), (0o700, 0o600));
    }

    #[test]
    fn a_file_that_others_may_have_written_is_not_run() {
        let (_folder, cache, engine) = kept();
        let mode = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(&cache.file("key"), 0o620);
        assert!(cache.load(&engine, "key").is_none());
        mode(&cache.file("key"), 0o600);
        mode(&cache.folder, 0o777);
        assert!(cache.load(&engine, "key").is_none());
        mode(&cache.folder, 0o700);
        assert!(cache.load(&engine, "key").is_some());
        symlink(cache.file("key"), cache.file("link")).unwrap();
        assert!(cache.load(&engine, "link").is_none());
    }

    #[test]
    fn a_file_that_was_changed_or_cut_is_not_run() {
        let (_folder, cache, engine) = kept();
        let whole = fs::read(cache.file("key")).unwrap();
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bytes in [&changed[..], &whole[..whole.len() - 1], &whole[..HASH_BYTES - 1], b""] {
            fs::write(cache.file("key"), bytes).unwrap();
            assert!(cache.load(&engine, "key").is_none());
        }
    }

    #[test]
    fn the_oldest_go() {
        let (_folder, cache, _) = kept();
        File::options().write(true).open(cache.file("key")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        for number in 0..MAX_FILES + 3 {
            cache.store(&format!("k{number}"), b"code").unwrap();
        }
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), MAX_FILES);
        assert!(cache.file(&format!("k{}", MAX_FILES + 2)).exists());
        assert!(!cache.file("key").exists());
    }
}
