//! Paths as text: made normal without looking at the disk, and matched by globs.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Files by which a shell or a tool of the developer runs code later, wherever they stand.
const PROTECTED_NAMES: [&str; 18] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".envrc",
    ".gitconfig",
    "config.fish",
];
const PROTECTED_FOLDERS: [&str; 2] = [".git", ".windlass"];

/// `path` made absolute from `workspace`, without `.`, `..` and doubled slashes.
pub(crate) fn absolute(workspace: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { workspace };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `path` relative to `workspace` (`.` for the root itself); none if it lies outside.
pub(crate) fn inside(workspace: &str, path: &str) -> Option<String> {
    // A workspace that is no absolute path would make the file system's root the workspace.
    if !workspace.starts_with('/') {
        return None;
    }
    let (root, path) = (absolute(workspace, ""), absolute(workspace, path));
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    match rest.strip_prefix('/') {
        Some("") => Some(".".into()),
        Some(relative) => Some(relative.into()),
        None => rest.is_empty().then(|| ".".into()),
    }
}

/// Whether writing `path` would change what runs later without being asked. Letter case does not hide a name.
pub(crate) fn is_protected(path: &str) -> bool {
    let path = path.to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    PROTECTED_NAMES.contains(&name) || path.split('/').any(|part| PROTECTED_FOLDERS.contains(&part))
}

/// A glob over paths: relative to the workspace, or absolute.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    is_absolute: bool,
    globs: GlobSet,
}

impl PathPattern {
    /// Reads a glob; says what is wrong with it and the way out.
    pub(crate) fn parse(text: &str) -> Result<PathPattern, String> {
        if text.starts_with('~') {
            return Err("`~` is not expanded here: write the absolute path".into());
        }
        if text.len() > 1 && text.ends_with('/') {
            return Err(format!("a rule matches files: write `{text}**` for everything below"));
        }
        let is_absolute = text.starts_with('/');
        let normal = normal_glob(text, is_absolute)?;
        let mut globs = GlobSetBuilder::new();
        let folder = normal.strip_suffix("/**").filter(|folder| !folder.is_empty());
        for glob in [Some(normal.as_str()), folder].into_iter().flatten() {
            let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
            globs.add(glob.map_err(|error| format!("{} (escape a literal sign as in `[*]`)", error.kind()))?);
        }
        Ok(PathPattern { is_absolute, globs: globs.build().map_err(|error| error.to_string())? })
    }

    pub(crate) fn matches(&self, workspace: &str, path: &str) -> bool {
        if self.is_absolute {
            return self.globs.is_match(absolute(workspace, path));
        }
        inside(workspace, path).is_some_and(|relative| self.globs.is_match(relative))
    }
}

fn normal_glob(text: &str, is_absolute: bool) -> Result<String, String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                Some(last) if last.contains(['*', '?', '[', '{']) => {
                    return Err(format!("`..` after `{last}` has no one meaning: write the path without `..`"));
                }
                Some(_) => {}
                None if is_absolute => {}
                None => return Err("it leaves the workspace: write the absolute path".into()),
            },
            part => parts.push(part),
        }
    }
    match (is_absolute, parts.is_empty()) {
        (true, _) => Ok(format!("/{}", parts.join("/"))),
        (false, true) => Ok(".".into()),
        (false, false) => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_normal_by_its_text() {
        for (path, expected) in [
            ("src/main.rs", Some("src/main.rs")),
            ("./src//a/../b.rs", Some("src/b.rs")),
            ("/work/app/x", Some("x")),
            ("/work/app", Some(".")),
            (".", Some(".")),
            ("..", None),
            ("src/../../app2/x", None),
            ("/work/app2/x", None),
            ("/work/app/../app/x", Some("x")),
            ("/etc/passwd", None),
        ] {
            assert_eq!(inside("/work/app", path).as_deref(), expected, "{path}");
            assert_eq!(inside("/work/app/", path).as_deref(), expected, "{path}");
        }
        assert_eq!(inside("/", "/etc/passwd").as_deref(), Some("etc/passwd"));
        for workspace in ["", ".", "work/app"] {
            assert_eq!(inside(workspace, "/etc/passwd"), None, "{workspace:?}");
        }
    }

    #[test]
    fn protected_files_are_known_wherever_they_stand() {
        for path in [".git/hooks/pre-commit", "sub/.GIT/config", ".windlass/config.toml", "home/.bashrc", ".Zshrc"] {
            assert!(is_protected(path), "{path}");
        }
        for path in [".gitignore", ".github/workflows/ci.yml", "src/git/mod.rs", "bashrc"] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn a_glob_keeps_to_its_folder() {
        for (glob, path, expected) in [
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", true),
            ("src/**", "srcs/a", false),
            ("src/*", "src/a/b.rs", false),
            ("./src/../lib/*.rs", "lib/a.rs", true),
            ("**", "/etc/passwd", false),
            ("**/*.rs", "../other/a.rs", false),
            ("/etc/**", "../../etc/passwd", true),
            ("/work/app/src/*", "src/a.rs", true),
            ("{a,b}.txt", "b.txt", true),
            ("a[*].txt", "a*.txt", true),
            ("a[*].txt", "ab.txt", false),
        ] {
            let pattern = PathPattern::parse(glob).unwrap();
            assert_eq!(pattern.matches("/work/app", path), expected, "{glob} on {path}");
        }
    }
}
