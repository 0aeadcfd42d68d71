//! What is protected, secret and harmless without anybody saying so.

use std::path::{Path, PathBuf};

/// Files a shell, an editor or git runs things from, below the home.
const START_FILES: [&str; 22] = [
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
    ".inputrc",
    ".xprofile",
    ".gitconfig",
    ".vimrc",
    ".npmrc",
    ".pypirc",
    ".netrc",
];

/// Folders of the same kind.
const START_FOLDERS: [&str; 7] =
    [".config/fish", ".config/git", ".config/nvim", ".config/autostart", ".config/systemd", ".ssh", ".local/bin"];

/// What holds keys and passwords, below the home.
const SECRETS: [&str; 24] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/sops",
    ".config/doctl",
    ".kube",
    ".docker/config.json",
    ".docker/desktop",
    ".netrc",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
    ".password-store",
    ".local/share/keyrings",
];

/// Variables a child gets by their whole name.
const VARIABLES: [&str; 53] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "TZ",
    "PWD",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    "CI",
    "DEBIAN_FRONTEND",
    "SOURCE_DATE_EPOCH",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CC",
    "CXX",
    "LD",
    "AR",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYENV_ROOT",
    "CONDA_PREFIX",
    "NVM_DIR",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "GEM_HOME",
    "DOTNET_ROOT",
    "SSL_CERT_FILE",
];

/// Beginnings of variables a child gets.
const FAMILIES: [&str; 7] = ["LC_", "CARGO_", "RUST", "NODE_", "npm_config_", "GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Words in a name that say it holds a secret, whatever family it is of.
const SECRET_WORDS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "SESSION"];

/// Whether the variable `name` may be inherited without being named in the configuration.
pub fn inherits(name: &str) -> bool {
    let known = VARIABLES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
    let loud = name.to_ascii_uppercase();
    // The name of an author is no authorisation.
    let secret = SECRET_WORDS.iter().any(|word| loud.replace("AUTHOR", "").contains(word));
    known && !secret
}

/// Paths below `home` that may not be read.
pub fn secrets(home: &Path) -> Vec<PathBuf> {
    SECRETS.iter().map(|path| home.join(path)).collect()
}

pub(crate) fn start_files(home: &Path) -> impl Iterator<Item = PathBuf> {
    START_FILES.iter().map(|path| home.join(path))
}

pub(crate) fn start_folders(home: &Path) -> impl Iterator<Item = PathBuf> {
    START_FOLDERS.iter().map(|path| home.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_by_a_list_and_secrets_never() {
        let all = ["PATH", "LC_ALL", "CARGO_HOME", "RUSTFLAGS", "GIT_AUTHOR_NAME", "NODE_OPTIONS", "npm_config_cache"];
        assert_eq!(all.iter().filter(|name| !inherits(name)).count(), 0);
        let none = [
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "CARGO_REGISTRY_TOKEN",
            "CARGO_REGISTRIES_MINE_TOKEN",
            "NODE_AUTH_TOKEN",
            "npm_config__authToken",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "LD_PRELOAD",
            "GITHUB_TOKEN",
            "DATABASE_URL",
        ];
        assert_eq!(none.iter().filter(|name| inherits(name)).count(), 0);
    }
}
