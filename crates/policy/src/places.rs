//! Where a path lies, as far as rules and modes care.

use crate::path;

/// Folders the policy knows besides the workspace; absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub home: Option<String>,
    /// Folders for what is thrown away: commands may write there as in the workspace.
    pub temporary: Vec<String>,
}

/// Files whose content is a secret by its place, below a home or the root.
const SENSITIVE_AT_HOME: [&str; 17] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/windlass",
    ".docker/config.json",
    ".git-credentials",
    ".kube",
    ".local/share/keyrings",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".cargo/credentials.toml",
    ".bash_history",
];
const SENSITIVE: [&str; 6] =
    ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/proc/kcore", "/dev/mem"];

impl Places {
    /// `word` (as a command names a file) made absolute from `folder`; none if it cannot be told.
    pub(crate) fn absolute(&self, folder: Option<&str>, word: &str, tilde: bool) -> Option<String> {
        let from_home = |rest: &str| Some(path::absolute(self.home.as_deref()?, rest.trim_start_matches('/')));
        if tilde {
            let rest = word.strip_prefix('~')?;
            return (rest.is_empty() || rest.starts_with('/')).then(|| from_home(rest)).flatten();
        }
        if word.starts_with('/') {
            return Some(path::absolute("/", word));
        }
        match folder? {
            at if at.starts_with('/') => Some(path::absolute(at, word)),
            at => from_home(&format!("{}/{word}", at.strip_prefix('~')?)),
        }
    }

    /// Whether commands may write at `path` as they may in the workspace: not beside a workspace that is temporary, too.
    pub(crate) fn is_scratch(&self, workspace: &str, path: &str) -> bool {
        let first = |path: &str, folder: &str| {
            let rest = path.strip_prefix(folder).filter(|rest| rest.starts_with('/'))?;
            rest.split('/').nth(1).map(str::to_owned)
        };
        let beside = |folder: &String| first(path, folder).is_some_and(|own| first(workspace, folder) == Some(own));
        self.is_temporary(path) && !self.temporary.iter().any(beside)
    }

    /// Whether `path` lies in a folder for what is thrown away.
    pub(crate) fn is_temporary(&self, path: &str) -> bool {
        self.temporary.iter().any(|folder| below(path, folder) && path != folder)
    }

    /// Whether what `path` holds is a secret by its place.
    pub(crate) fn is_sensitive(&self, workspace: &str, path: &str) -> bool {
        let at_home = self
            .home
            .iter()
            .any(|home| SENSITIVE_AT_HOME.iter().any(|secret| below(path, &path::absolute(home, secret))));
        let name = path.rsplit('/').next().unwrap_or_default();
        let of_process = path.starts_with("/proc/") && matches!(name, "environ" | "mem" | "cmdline" | "maps");
        let anywhere = SENSITIVE.iter().any(|secret| below(path, secret)) && path::inside(workspace, path).is_none();
        at_home || of_process || anywhere
    }
}

/// Whether `path` is `folder` or lies in it; both absolute and normal.
pub(crate) fn below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder == "/")
}
