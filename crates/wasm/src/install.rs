//! A tool on its way into a folder of tools: looked at first, then copied whole or not at all.

use crate::component::component_file;
use crate::host::Host;
use crate::load::{MANIFEST, read_component, read_manifest};
use crate::manifest::Manifest;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where `cargo build --target wasm32-wasip2 --release` puts a component.
const BUILT: &str = "target/wasm32-wasip2/release";

/// A tool that may be installed.
pub struct Parcel {
    pub manifest: Manifest,
    /// The folder it comes from.
    from: PathBuf,
    component: Vec<u8>,
}

impl Parcel {
    /// Opens the tool in `folder`; its component is `component`, or lies beside the manifest or where it is built.
    pub fn open(folder: &Path, component: Option<&Path>) -> Result<Parcel, String> {
        let manifest = read_manifest(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let file = match component {
            Some(file) => file.to_owned(),
            None => find_component(folder, &manifest.name)?,
        };
        let component = read_component(&file).map_err(|why| format!("{}: {why}", file.display()))?;
        Ok(Parcel { manifest, from: folder.to_owned(), component })
    }

    /// That the component can run at all. It is compiled; the first call finds it so.
    pub fn check(&self, host: &Host) -> Result<(), String> {
        let made = host.program(&self.component);
        made.map(|_| ()).map_err(|why| format!("the component of {}: {why}", self.manifest.name))
    }

    /// Where it will lie below `extensions`.
    pub fn place(&self, extensions: &Path) -> PathBuf {
        extensions.join(&self.manifest.name)
    }

    /// Copies it there; one of its name is replaced.
    pub fn install(&self, extensions: &Path) -> io::Result<()> {
        fs::create_dir_all(extensions)?;
        let new = tempfile::Builder::new().prefix(".new-").tempdir_in(extensions)?;
        for file in [Some(MANIFEST), self.manifest.schema_file.as_deref()].into_iter().flatten() {
            fs::copy(self.from.join(file), new.path().join(file))?;
        }
        fs::write(component_file(new.path(), &self.manifest.name), &self.component)?;
        fs::set_permissions(new.path(), Permissions::from_mode(0o755))?;
        let place = self.place(extensions);
        if place.exists() {
            let old = tempfile::Builder::new().prefix(".old-").tempdir_in(extensions)?;
            fs::rename(&place, old.path().join(&self.manifest.name))?;
        }
        fs::rename(new.path(), place)?;
        // It bears another name now: nothing is left to be removed.
        _ = new.keep();
        Ok(())
    }
}

/// The newer of the two places a component may lie in: who builds again does not want the old one.
fn find_component(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let places = [component_file(folder, name), component_file(&folder.join(BUILT), name)];
    let changed = |file: &PathBuf| file.metadata().and_then(|meta| meta.modified()).ok();
    let newest = places.iter().filter(|file| file.is_file()).max_by_key(|file| changed(file));
    newest.cloned().ok_or_else(|| {
        format!(
            "there is neither {} nor {}; run `cargo build --target wasm32-wasip2 --release` in {}, or say where it is",
            places[0].display(),
            places[1].display(),
            folder.display()
        )
    })
}
