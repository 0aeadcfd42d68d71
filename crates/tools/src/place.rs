//! Which file a path means: as it was named, and where links lead from there.

use crate::file::{missing, shown};
use crate::links::{follow_links, within};
use crate::root::{Root, is_link};
use crate::{ToolRun, Workspace};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

/// A file or folder that a call means.
#[derive(Debug)]
pub(crate) struct Place {
    /// Absolute, without `.` and `..`.
    pub named: PathBuf,
    /// The same with every link followed, told below the workspace's folder if it is there: what is opened, and what the
    /// file is remembered by.
    pub real: PathBuf,
    /// What is there; none: nothing that could be looked at.
    pub meta: Option<Metadata>,
}

/// What one call can reach: the workspace and, once it was judged, the paths it may open and the files it knows.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub workspace: &'a Workspace,
    judged: Option<Judged<'a>>,
}

#[derive(Clone, Copy)]
struct Judged<'a> {
    paths: &'a [String],
    seen: &'a BTreeMap<String, String>,
}

impl<'a> Reach<'a> {
    pub(crate) fn of(run: &'a ToolRun) -> Reach<'a> {
        Reach { workspace: &run.workspace, judged: Some(Judged { paths: &run.paths, seen: &run.seen }) }
    }

    /// Before a call is judged: to see what it would change, for a person to be shown.
    pub(crate) fn looking(workspace: &'a Workspace) -> Reach<'a> {
        Reach { workspace, judged: None }
    }

    /// The place that `path` means, if tools may know of it and if it is where it was when the call was judged.
    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        let place = Place::find(self.workspace, path)?;
        let root = &self.workspace.root;
        let is_folder = place.meta.as_ref().is_some_and(Metadata::is_dir);
        let hidden = root.hidden_by(&place.real, is_folder).or_else(|| match place.named == place.real {
            true => None,
            false => root.hidden_by(&place.named, is_folder),
        });
        let name = shown(self.workspace, &place.named);
        if let Some(by) = hidden {
            let way_out = "do without it, or ask the person to change that file";
            return Err(format!("{name} is hidden from tools by {by}; {way_out}"));
        }
        match self.judged {
            Some(judged) if !judged.paths.iter().any(|path| Path::new(path) == place.real) => Err(format!(
                "{name} now leads to {}, which is not what was allowed; call again if that is what you mean",
                shown(self.workspace, &place.real)
            )),
            _ => Ok(place),
        }
    }

    /// The place of a file to be written; a path that was surely meant otherwise than it would be taken makes no file.
    pub(crate) fn place_to_write(&self, path: &str) -> Result<Place, String> {
        let place = self.place(path)?;
        if place.meta.is_some() {
            return Ok(place);
        }
        if path.ends_with('/') {
            return Err(format!("{path} ends with a slash, as folders do; name the file to write in it"));
        }
        let first = path.split('/').next().filter(|first| is_unexpanded(first, path));
        match first.filter(|first| self.workspace.root.probe(&self.workspace.cwd.join(first)).is_err()) {
            None => Ok(place),
            Some(first) => Err(format!(
                "`{first}` is not expanded here, and no folder is called so; write the absolute path, or one that starts \
                 at the workspace"
            )),
        }
    }

    /// What the session knows the file by this name to hold; outside a judged call, nothing.
    pub(crate) fn seen(&self, place: &Place) -> Option<&'a String> {
        self.judged?.seen.get(&*place.real.to_string_lossy())
    }

    pub(crate) fn is_judged(&self) -> bool {
        self.judged.is_some()
    }
}

fn is_unexpanded(first: &str, path: &str) -> bool {
    path == "~" || (first.len() < path.len() && (first.starts_with(['~', '$']) || path.contains("://")))
}

impl Place {
    fn find(workspace: &Workspace, path: &str) -> Result<Place, String> {
        if path.contains('\0') {
            return Err(format!("{} holds a NUL, which no path can", path.escape_default()));
        }
        let named = resolve(workspace, path);
        let (real, meta) = trace(&workspace.root, &named)?;
        if real.to_str().is_none() {
            return Err(format!("{path} leads to a name that is not UTF-8; use bash for it"));
        }
        Ok(Place { named, real, meta })
    }

    /// What is there, or words for that it is not.
    pub(crate) fn present(&self, workspace: &Workspace) -> Result<&Metadata, String> {
        self.meta.as_ref().ok_or_else(|| missing(workspace, self))
    }
}

/// The absolute path that `path` means: relative to the workspace, without `.` and `..`; `~` is a name like any other.
pub(crate) fn resolve(workspace: &Workspace, path: &str) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in workspace.cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
    }
    resolved
}

/// The paths a call on `path` touches, to be judged: as given, and where links lead if that is elsewhere.
pub(crate) fn touched(workspace: &Workspace, path: &str) -> Vec<String> {
    let named = resolve(workspace, path);
    let mut paths = vec![named.to_string_lossy().into_owned()];
    // Where they lead nowhere, the call will fail.
    if let Ok(real) = follow(&workspace.root, &named)
        && real != named
    {
        paths.push(real.to_string_lossy().into_owned());
    }
    paths
}

/// Where `named` leads with every link followed, also where its last parts do not exist yet.
pub(crate) fn follow(root: &Root, named: &Path) -> Result<PathBuf, String> {
    Ok(trace(root, named)?.0)
}

/// The same, and what is there.
fn trace(root: &Root, named: &Path) -> Result<(PathBuf, Option<Metadata>), String> {
    match root.probe(named) {
        Err(error) if is_link(&error) => {
            let real = follow_links(root, named)?;
            let meta = root.probe(&real).ok();
            Ok((real, meta))
        }
        // Not one link was met, be something there or not.
        found => Ok((within(root, named), found.ok())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;
    use crate::glob::Glob;
    use crate::grep::Grep;
    use crate::ls::Ls;
    use crate::read::Read;
    use crate::stage::Stage;
    use crate::write::Write;
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    fn real(stage: &Stage, name: &str) -> String {
        let cwd = stage.workspace.cwd.display().to_string();
        match follow(&stage.workspace.root, &stage.path(name)) {
            Ok(path) => path.display().to_string().replace(&cwd, "CWD"),
            Err(why) => why.replace(&cwd, "CWD"),
        }
    }

    #[test]
    fn paths_start_at_the_workspace_and_tilde_is_a_name() {
        let stage = Stage::new();
        let cwd = &stage.workspace.cwd;
        assert_eq!(resolve(&stage.workspace, "a/./b/../c"), cwd.join("a/c"));
        assert_eq!(resolve(&stage.workspace, "~/x"), cwd.join("~/x"));
        assert_eq!(resolve(&stage.workspace, "/etc/../../hosts"), Path::new("/hosts"));
        assert_eq!(resolve(&stage.workspace, ""), *cwd);
    }

    #[test]
    fn a_link_is_known_by_where_it_leads_and_both_ends_are_touched() {
        let stage = Stage::new();
        stage.file("real.txt", "x");
        symlink("real.txt", stage.path("link.txt")).unwrap();
        symlink("/nowhere/at/all", stage.path("out")).unwrap();
        let path = |name: &str| stage.path(name).display().to_string();
        assert_eq!(touched(&stage.workspace, "link.txt"), [path("link.txt"), path("real.txt")]);
        assert_eq!(touched(&stage.workspace, "out"), [path("out"), "/nowhere/at/all".into()]);
        assert_eq!(touched(&stage.workspace, "new/file"), [path("new/file")]);
    }

    #[test]
    fn links_are_followed_as_the_system_follows_them() {
        let stage = Stage::new();
        stage.file("sub/deep/a.txt", "x");
        for (name, target) in [
            ("one", "two"),
            ("two", "sub/deep"),
            ("up", "sub/deep/../deep/a.txt"),
            ("round", "round"),
            ("dangling", "not/yet"),
            ("through", "two/../deep/a.txt"),
            ("slashes", "./sub//deep/"),
        ] {
            symlink(target, stage.path(name)).unwrap();
        }
        for name in ["one/a.txt", "up", "through", "slashes/a.txt"] {
            assert_eq!(real(&stage, name), "CWD/sub/deep/a.txt", "{name}");
        }
        assert_eq!(real(&stage, "dangling/x"), "CWD/not/yet/x");
        assert_eq!(real(&stage, "round"), "CWD/round leads in a circle of links, or through too many");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_s_own_links_are_not_taken() {
        let stage = Stage::new();
        for path in ["/proc/self/root/etc/hostname", "/proc/self/cwd/a.txt", "/dev/fd/0", "/dev/stdin"] {
            let why = follow(&stage.workspace.root, Path::new(path)).unwrap_err();
            assert!(why.starts_with(&format!("{path} goes by /proc/")) && why.ends_with("it leads to"), "{why}");
        }
    }

    #[test]
    fn a_linked_workspace_keeps_its_own_name() {
        let stage = Stage::new();
        stage.file("a.txt", "x");
        symlink("a.txt", stage.path("link")).unwrap();
        let folder = stage.folder.path().join("linked");
        symlink(&stage.workspace.cwd, &folder).unwrap();
        let root = Arc::new(Root::new(&folder));
        let workspace = Workspace { cwd: folder.clone(), root, ..(*stage.workspace).clone() };
        let named = |name: &str| follow(&workspace.root, &resolve(&workspace, name)).unwrap();
        assert_eq!(named("a.txt"), folder.join("a.txt"));
        assert_eq!(named("link"), folder.join("a.txt"));
        assert_eq!(named(&stage.path("link").display().to_string()), folder.join("a.txt"));
    }

    /// Plans a call, changes what is there, then makes the call.
    async fn changed(stage: &mut Stage, tool: impl Tool, input: Value, change: impl FnOnce(&Stage)) -> String {
        let paths = tool.plan(&input, &stage.workspace).paths;
        let run = ToolRun { paths, ..stage.next_run() };
        change(stage);
        let output = tool.call(input, &run).await;
        assert!(output.is_error, "{output:?}");
        stage.plain(&output)
    }

    fn relink(stage: &Stage, target: &str, name: &str) {
        _ = fs::remove_file(stage.path(name));
        symlink(target, stage.path(name)).unwrap();
    }

    #[tokio::test]
    async fn a_path_that_leads_elsewhere_than_was_judged_is_not_taken() {
        let mut stage = Stage::new();
        stage.file("a.txt", "an apple\n");
        stage.file("sub/b.txt", "a pear\n");
        relink(&stage, "a.txt", "link");
        let (read, write) = (json!({"path": "link"}), json!({"path": "sub/b.txt", "content": "x"}));
        let told = [
            changed(&mut stage, Read, read.clone(), |stage| relink(stage, "sub/b.txt", "link")).await,
            changed(&mut stage, Read, read, |stage| relink(stage, "/etc/hostname", "link")).await,
            changed(&mut stage, Read, json!({"path": "a.txt"}), |stage| relink(stage, "sub/b.txt", "a.txt")).await,
            changed(&mut stage, Write, write.clone(), |stage| {
                fs::rename(stage.path("sub"), stage.path("bus")).unwrap();
                relink(stage, "../scratch", "sub");
            })
            .await,
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        link now leads to sub/b.txt, which is not what was allowed; call again if that is what you mean
        link now leads to /etc/hostname, which is not what was allowed; call again if that is what you mean
        a.txt now leads to sub/b.txt, which is not what was allowed; call again if that is what you mean
        sub/b.txt now leads to TMP/scratch/b.txt, which is not what was allowed; call again if that is what you mean
        ");
        assert!(!stage.workspace.scratch.exists());
    }

    #[test]
    fn a_link_put_there_at_the_last_moment_is_not_followed() {
        let stage = Stage::new();
        stage.file("a.txt", "an apple\n");
        stage.file("other", "another's\n");
        let input = "a.txt";
        let place = Reach::looking(&stage.workspace).place(input).unwrap();
        relink(&stage, "other", "a.txt");
        let why = crate::file::open(&stage.workspace, &place).unwrap_err();
        assert_eq!(why, "could not read a.txt: it now leads through a link that was not there when this was allowed");
        assert!(stage.workspace.root.write(&place.real, b"x", None).is_err());
        assert_eq!(stage.read("other"), "another's\n");
    }

    #[tokio::test]
    async fn what_is_hidden_is_left_out_of_lists_and_searches() {
        let mut stage = Stage::new();
        for name in ["open.txt", "secret.txt", "vault/gold.txt", "sub/secret.txt", "sub/plain.txt"] {
            stage.file(name, "apple\n");
        }
        stage.file(".windlassignore", "secret.txt\nvault/\n");
        symlink("vault/gold.txt", stage.path("link")).unwrap();
        insta::assert_snapshot!(stage.text(Ls, json!({})).await, @r"
        sub/
        .windlassignore 18
        open.txt 6
        ");
        let mut found = stage.text(Glob, json!({"pattern": "*"})).await.lines().map(str::to_owned).collect::<Vec<_>>();
        found.sort();
        assert_eq!(found, [".windlassignore", "open.txt", "sub/plain.txt"]);
        insta::assert_snapshot!(stage.text(Grep, json!({"pattern": "apple"})).await, @r"
        open.txt:1:apple
        sub/plain.txt:1:apple
        ");
        insta::assert_snapshot!(stage.text(Glob, json!({"pattern": "*", "path": "sub"})).await, @"sub/plain.txt");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "secret.tx"})).await, @"secret.tx does not exist; look with ls or glob");
        insta::assert_snapshot!(stage.error(Read, json!({"path": "sub/secret.txt"})).await, @"sub/secret.txt is hidden from tools by .windlassignore, line 1; do without it, or ask the person to change that file");
    }

    #[tokio::test]
    async fn a_pipe_or_socket_is_refused_without_waiting() {
        let mut stage = Stage::new();
        rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(stage.path("socket")).unwrap();
        for name in ["pipe", "socket"] {
            let told = stage.error(Read, json!({"path": name})).await;
            assert_eq!(told, format!("{name} is a device, pipe or socket, no regular file"));
            stage.error(Write, json!({"path": name, "content": ""})).await;
        }
        assert_eq!(stage.text(Grep, json!({"pattern": "x"})).await.lines().count(), 1, "a search passes them by");
    }
}
