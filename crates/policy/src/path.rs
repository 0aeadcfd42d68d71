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
/// Files that hide others from tools: who may write them may see all.
const IGNORE_FILES: [&str; 6] =
    [".windlassignore", ".aiignore", ".aiexclude", ".cursorignore", ".codeiumignore", ".geminiignore"];

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
    // A tool takes `~` for a name, whoever wrote it for a home: it is no reason to say yes.
    if is_from_home(path) {
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

/// Whether `path` begins as what a shell takes for a home folder.
fn is_from_home(path: &str) -> bool {
    path == "~" || path.starts_with("~/")
}

/// Whether writing `path` would change what runs later without being asked, or what is hidden from tools. No spelling
/// that some file system takes for the same hides a name.
pub(crate) fn is_protected(path: &str) -> bool {
    let path = folded(path);
    let mut parts = path.split('/').map(|part| part.trim_end_matches(['.', ' ']));
    let is_name = |name: &str| PROTECTED_NAMES.contains(&name) || IGNORE_FILES.contains(&name);
    parts.clone().next_back().is_some_and(is_name) || parts.any(|part| PROTECTED_FOLDERS.contains(&part))
}

/// Whether a part of a path, folded, is a name that [`is_protected`] looks for.
fn protects(part: &str) -> bool {
    PROTECTED_NAMES.contains(&part) || PROTECTED_FOLDERS.contains(&part) || IGNORE_FILES.contains(&part)
}

/// `path` without what does not tell names apart everywhere: letter case, fullwidth forms, characters of no width.
fn folded(path: &str) -> String {
    let seen = path.chars().filter(|sign| !is_unseen(*sign)).map(|sign| match sign {
        '\u{2024}' | '\u{fe52}' | '\u{3002}' | '\u{ff61}' => '.',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(sign as u32 - 0xfee0).unwrap_or(sign),
        sign => sign,
    });
    // Up first: letters such as the long s and ligatures only meet the plain ones there.
    seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether a file system that folds names may leave the character out.
fn is_unseen(sign: char) -> bool {
    matches!(sign,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// A glob over paths: relative to the workspace, or absolute.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    is_absolute: bool,
    /// From the home folder, which only who decides knows.
    from_home: bool,
    /// The folders in front that hold no special sign.
    fixed: String,
    globs: GlobSet,
}

impl PathPattern {
    /// Reads a glob; says what is wrong with it and the way out.
    pub(crate) fn parse(text: &str) -> Result<PathPattern, String> {
        let from_home = text.strip_prefix("~/");
        if from_home.is_none() && text.starts_with('~') {
            return Err("only `~/` is known, the home of who runs this: write the absolute path".into());
        }
        let text = from_home.unwrap_or(text);
        if text.len() > 1 && text.ends_with('/') {
            return Err(format!("a rule matches files: write `{text}**` for everything below"));
        }
        let is_absolute = text.starts_with('/');
        let normal = normal_glob(text, is_absolute)?;
        let folders = normal.split('/').take_while(|part| !part.contains(['*', '?', '[', '{', '\\']));
        let fixed = folders.collect::<Vec<_>>().join("/");
        let mut globs = GlobSetBuilder::new();
        let folder = normal.strip_suffix("/**").filter(|folder| !folder.is_empty());
        for glob in [Some(normal.as_str()), folder].into_iter().flatten() {
            let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
            globs.add(glob.map_err(|error| format!("{} (escape a literal sign as in `[*]`)", error.kind()))?);
        }
        let globs = globs.build().map_err(|error| error.to_string())?;
        Ok(PathPattern { is_absolute, from_home: from_home.is_some(), fixed, globs })
    }

    pub(crate) fn matches(&self, place: &Place, path: &str) -> bool {
        let from = if self.from_home { place.home } else { Some(place.workspace) };
        let path = match (is_from_home(path), place.home) {
            (true, Some(home)) => absolute(home, path[1..].trim_start_matches('/')),
            (true, None) => return false,
            (false, _) => absolute(place.workspace, path),
        };
        if self.is_absolute {
            return self.globs.is_match(path);
        }
        from.and_then(|from| inside(from, &path)).is_some_and(|relative| self.globs.is_match(relative))
    }

    /// Whether anything at or below `folder` (absolute) could match.
    pub(crate) fn reaches_into(&self, place: &Place, folder: &str) -> bool {
        let from = match (self.is_absolute, self.from_home) {
            (true, _) => "/",
            (false, true) => match place.home {
                Some(home) => home,
                None => return false,
            },
            (false, false) => place.workspace,
        };
        let fixed = absolute(from, &self.fixed);
        let is_below = |path: &str, folder: &str| {
            folder == "/" || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_below(&fixed, folder) || is_below(folder, &fixed)
    }

    /// Whether the rule's own text names what makes `path` protected.
    pub(crate) fn spells_protected(&self, text: &str, path: &str) -> bool {
        let (text, path) = (text.to_lowercase(), folded(path));
        let mut named = path.split('/').map(|part| part.trim_end_matches(['.', ' '])).filter(|part| protects(part));
        named.all(|part| text.contains(part))
    }
}

/// Where relative patterns start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub workspace: &'a str,
    pub home: Option<&'a str>,
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
        for path in [
            ".g\u{200c}it/config",
            "\u{feff}.git/hooks/x",
            "\u{ff0e}\u{ff47}\u{ff49}\u{ff54}/config",
            ".GI\u{200d}T/config",
            ".bashr\u{2060}c",
            ".windla\u{17f}\u{17f}/config.toml",
            ".git./config",
            ".git /config",
            "a/.CursorIgnore",
            ".windlassignore",
        ] {
            assert!(is_protected(path), "{path:?}");
        }
        for path in [".gitignore", ".github/workflows/ci.yml", "src/git/mod.rs", "bashrc"] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn a_rule_must_name_what_protects_a_file_however_it_is_spelled() {
        for (rule, path, expected) in [
            ("edit(.git/hooks/**)", ".git/hooks/x", true),
            ("edit(.git/hooks/**)", ".GIT/hooks/x", true),
            ("edit(**)", ".git/config", false),
            ("edit(**)", ".g\u{200d}it/config", false),
            ("edit(**)", "\u{ff0e}\u{ff47}\u{ff49}\u{ff54}/config", false),
            ("edit(**)", ".git./config", false),
            ("edit(**)", ".windlassignore", false),
            ("edit(.windlassignore)", ".windlassignore", true),
        ] {
            let pattern = PathPattern::parse("**").unwrap();
            assert_eq!(pattern.spells_protected(rule, path), expected, "{rule} on {path}");
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
            ("~/notes/**", "/home/ann/notes/a", true),
            ("~/notes/**", "notes/a", false),
            ("~/notes/**", "~/notes/a", true),
            ("**", "~/a", false),
            ("**", "~", false),
            ("/home/ann/**", "~/a", true),
            ("src/**", "~/src/a", false),
        ] {
            let pattern = PathPattern::parse(glob).unwrap();
            let place = Place { workspace: "/work/app", home: Some("/home/ann") };
            assert_eq!(pattern.matches(&place, path), expected, "{glob} on {path}");
        }
    }
}
