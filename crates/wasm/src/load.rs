//! The folders that tools are dropped into: each tool found or complained of by name, and none keeps another from loading.

use crate::component::{Component, component_file};
use crate::host::Host;
use crate::manifest::Manifest;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a tool.
pub const MANIFEST: &str = "tool.toml";
/// Tools taken from one folder.
const MAX_TOOLS: usize = 200;
/// Bytes of a manifest, and of a schema beside it.
const TEXT_BYTES: u64 = 256 << 10;
/// Bytes of a component.
pub(crate) const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// A folder of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub standing: Standing,
}

/// Whether what lies in a folder may run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Trusted,
    /// Its tools are told of and not loaded.
    Untrusted,
}

#[derive(Default)]
pub struct Found {
    pub tools: Vec<Arc<Component>>,
    /// What could not be loaded, a sentence each.
    pub complaints: Vec<String>,
}

/// The tools in `folders`, the first folder's first. `taken` are the names of built-in tools, which no other may bear.
pub fn load(folders: &[Folder], taken: &[String], host: &Arc<Host>) -> Found {
    let mut found = Found::default();
    let mut owners: BTreeMap<String, PathBuf> = BTreeMap::new();
    for folder in folders {
        let tools = match tools_in(&folder.path) {
            Ok(tools) => tools,
            Err(error) => {
                found.complaints.push(format!("{}: its tools can't be listed: {error}", folder.path.display()));
                continue;
            }
        };
        if folder.standing == Standing::Untrusted {
            found.complaints.extend(untrusted(folder, &tools));
            continue;
        }
        for tool in tools {
            let loaded = open(&tool).and_then(|manifest| free(manifest, &tool, taken, &owners));
            match loaded {
                Ok(manifest) => {
                    owners.insert(manifest.name.clone(), tool.clone());
                    found.tools.push(Arc::new(Component::new(manifest, tool, host.clone())));
                }
                Err(why) => found.complaints.push(format!("the tool in {} is not loaded: {why}", tool.display())),
            }
        }
    }
    found
}

/// The folders below `folder` that hold a manifest, by name.
fn tools_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut tools: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        // What begins with a dot is an installation that was broken off.
        .filter(|path| !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")))
        .filter(|path| path.join(MANIFEST).exists())
        .collect();
    tools.sort();
    tools.truncate(MAX_TOOLS);
    Ok(tools)
}

fn untrusted(folder: &Folder, tools: &[PathBuf]) -> Option<String> {
    let names: Vec<_> = tools.iter().filter_map(|tool| tool.file_name()).map(|name| name.to_string_lossy()).collect();
    (!names.is_empty())
        .then(|| format!("{}: not loaded until this folder is trusted: {}", folder.path.display(), names.join(", ")))
}

fn free(
    manifest: Manifest,
    tool: &Path,
    taken: &[String],
    owners: &BTreeMap<String, PathBuf>,
) -> Result<Manifest, String> {
    let name = &manifest.name;
    if tool.file_name().is_none_or(|folder| folder != name.as_str()) {
        return Err(format!("its manifest calls it {name}; name the folder so, too"));
    }
    if taken.contains(name) {
        return Err(format!("{name} is the name of a built-in tool; give this one another"));
    }
    match owners.get(name) {
        Some(owner) => Err(format!("{} is called {name}, too, and was first; rename one of the two", owner.display())),
        None => Ok(manifest),
    }
}

/// Reads the manifest in `folder` and looks whether its component is there.
fn open(folder: &Path) -> Result<Manifest, String> {
    let manifest = read_manifest(folder)?;
    let file = component_file(folder, &manifest.name);
    match file.is_file() {
        true => Ok(manifest),
        false => Err(format!("there is no {}; build it and put it there", file.display())),
    }
}

/// The manifest in `folder`, checked.
pub(crate) fn read_manifest(folder: &Path) -> Result<Manifest, String> {
    let text = |name: &str| {
        let bytes = read_bounded(&folder.join(name), TEXT_BYTES).map_err(|why| format!("{name}: {why}"))?;
        String::from_utf8(bytes).map_err(|_| format!("{name} is no UTF-8 text"))
    };
    Manifest::parse(&text(MANIFEST)?, text).map_err(|why| format!("{MANIFEST}: {why}"))
}

pub(crate) fn read_component(file: &Path) -> Result<Vec<u8>, String> {
    read_bounded(file, MAX_COMPONENT_BYTES)
}

fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, String> {
    // A pipe in a file's place must not hold anybody up.
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(no_wait).open(path).map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err("it is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > limit_bytes {
        return Err(format!("it has more than {limit_bytes} bytes; make it smaller"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stage {
        dir: tempfile::TempDir,
    }

    impl Stage {
        fn new() -> Stage {
            Stage { dir: tempfile::tempdir().unwrap() }
        }

        fn tool(&self, folder: &str, name: &str) {
            let place = self.dir.path().join(folder);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join(MANIFEST), format!("name = {name:?}\ndescription = \"Does.\"")).unwrap();
            fs::write(place.join(format!("{name}.wasm")), "").unwrap();
        }

        fn load(&self, folders: &[(&str, Standing)]) -> (Vec<String>, String) {
            let folder =
                |(path, standing): &(&str, Standing)| Folder { path: self.dir.path().join(path), standing: *standing };
            let folders: Vec<Folder> = folders.iter().map(folder).collect();
            let found = load(&folders, &["read".into()], &Arc::new(Host::new(None)));
            let names = found.tools.iter().map(|tool| tool.folder().strip_prefix(self.dir.path()).unwrap());
            let names = names.map(|folder| folder.display().to_string()).collect();
            (names, found.complaints.join("\n").replace(&self.dir.path().display().to_string(), "TMP"))
        }
    }

    const BOTH: [(&str, Standing); 2] = [("project", Standing::Trusted), ("global", Standing::Trusted)];

    #[test]
    fn tools_of_the_project_come_first_and_folders_that_are_not_there_hold_none() {
        let stage = Stage::new();
        assert_eq!(stage.load(&BOTH), (Vec::new(), String::new()));
        stage.tool("global/b", "b");
        stage.tool("project/z", "z");
        stage.tool("project/.new-1", "y");
        fs::create_dir(stage.dir.path().join("project/empty")).unwrap();
        assert_eq!(stage.load(&BOTH), (vec!["project/z".into(), "global/b".into()], String::new()));
    }

    #[test]
    fn clashes_and_broken_manifests_are_told_by_name_and_the_others_load() {
        let stage = Stage::new();
        stage.tool("project/a", "a");
        stage.tool("global/a", "a");
        stage.tool("global/read", "read");
        stage.tool("global/other", "own");
        stage.tool("global/bare", "bare");
        fs::remove_file(stage.dir.path().join("global/bare/bare.wasm")).unwrap();
        stage.tool("global/typo", "typo");
        fs::write(stage.dir.path().join("global/typo/tool.toml"), "name = \"typo\"\ndescripton = 1").unwrap();
        stage.tool("global/whole", "whole");
        let (names, complaints) = stage.load(&BOTH);
        assert_eq!(names, ["project/a", "global/whole"]);
        insta::assert_snapshot!(complaints, @r#"
        the tool in TMP/global/a is not loaded: TMP/project/a is called a, too, and was first; rename one of the two
        the tool in TMP/global/bare is not loaded: there is no TMP/global/bare/bare.wasm; build it and put it there
        the tool in TMP/global/other is not loaded: its manifest calls it own; name the folder so, too
        the tool in TMP/global/read is not loaded: read is the name of a built-in tool; give this one another
        the tool in TMP/global/typo is not loaded: tool.toml: TOML parse error at line 2, column 1
          |
        2 | descripton = 1
          | ^^^^^^^^^^
        unknown field `descripton`, expected one of `name`, `description`, `input_schema`, `capabilities`, `limits`
        "#);
    }

    #[test]
    fn an_untrusted_folder_is_told_of_and_not_loaded() {
        let stage = Stage::new();
        stage.tool("project/a", "a");
        stage.tool("project/b", "b");
        let (names, complaints) = stage.load(&[("project", Standing::Untrusted), ("none", Standing::Untrusted)]);
        assert!(names.is_empty());
        insta::assert_snapshot!(complaints, @"TMP/project: not loaded until this folder is trusted: a, b");
    }
}
