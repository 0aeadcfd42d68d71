//! The one place that looks at the process's surroundings: variables, home, working folder, terminals, identity.

use crate::exit::Failure;
use crate::git_check;
use crate::terminal::Look;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use windlass_store::Worker;

/// No variable moves it: who could, could take it away.
const MANAGED_CONFIG: &str = "/etc/windlass/config.toml";

/// What was found when the program started.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Every variable that is UTF-8.
    pub variables: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// What whoever runs the machine insists on.
    pub managed_config: PathBuf,
    /// Holds `config.toml` and `rules.toml`.
    pub config_dir: PathBuf,
    /// Holds `windlass.db` and `scratch/`.
    pub data_dir: PathBuf,
    /// A person types.
    pub stdin_is_terminal: bool,
    pub stdout: Look,
    pub stderr: Look,
}

impl Environment {
    pub fn look() -> Result<Environment, Failure> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::usage(format!("the working folder can't be used ({error}): change to one that is there"))
        })?;
        let (config_dir, data_dir) = folders(&variables)?;
        let no_color = variables.get("NO_COLOR").is_some_and(|value| !value.is_empty())
            || variables.get("TERM").is_some_and(|term| term == "dumb");
        Ok(Environment {
            cwd,
            managed_config: MANAGED_CONFIG.into(),
            config_dir,
            data_dir,
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout: Look::of(&io::stdout(), no_color),
            stderr: Look::of(&io::stderr(), no_color),
            variables,
        })
    }

    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The variables a child process gets: those of the stock list and those `further` names, but never one that holds
    /// a provider's key.
    pub fn for_children<'a>(
        &self,
        key_variables: impl IntoIterator<Item = &'a str>,
        further: &[String],
    ) -> BTreeMap<String, String> {
        let keys: Vec<&str> = key_variables.into_iter().collect();
        let given = |name: &String| windlass_sandbox::inherits(name) || further.contains(name);
        let variables = self.variables.iter().filter(|(name, _)| given(name) && !keys.contains(&name.as_str()));
        let mut variables = variables.map(|(name, value)| (name.clone(), value.clone())).collect();
        git_check::calm(&mut variables);
        variables
    }

    /// The proxy for `url`, by the usual variables; never one for this machine itself.
    pub fn proxy_for(&self, url: &str) -> Option<&str> {
        let (scheme, rest) = url.split_once("://")?;
        let host = host_of(rest);
        let local = host == "localhost" || host == "::1" || host.starts_with("127.");
        let spared = ["NO_PROXY", "no_proxy"].iter().find_map(|name| self.variable(name)).unwrap_or_default();
        if local || spared.split(',').any(|pattern| spares(pattern.trim(), host)) {
            return None;
        }
        let names: &[&str] = match scheme {
            "https" => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
            _ => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
        };
        names.iter().find_map(|name| self.variable(name))
    }

    /// The user's own configuration.
    pub fn user_config(&self) -> PathBuf {
        self.config_dir.join("config.toml")
    }

    /// A path that begins with `~/` lies in the home folder; others start in the working folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.variable("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => self.cwd.join(path),
        }
    }
}

/// This process, as it stands in the store and the log.
pub fn worker() -> Worker {
    let pid = std::process::id();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold spaces, so fields are counted after its end.
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19)?.parse().ok());
    Worker { id: uuid::Uuid::now_v7().to_string(), pid, started: started.unwrap_or(0), boot_id }
}

/// Where configuration and data are: `WINDLASS_HOME`, else the XDG folders, else those below the home.
fn folders(variables: &BTreeMap<String, String>) -> Result<(PathBuf, PathBuf), Failure> {
    let given = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = given("WINDLASS_HOME") {
        let home = std::path::absolute(&home).unwrap_or(home);
        return Ok((home.clone(), home.join("data")));
    }
    let below = |variable: &str, usual: &str| {
        // The XDG specification has relative paths ignored.
        let xdg = given(variable).filter(|path| path.is_absolute());
        let dir = xdg.or_else(|| Some(given("HOME")?.join(usual)));
        dir.map(|dir| dir.join("windlass")).ok_or_else(|| {
            Failure::usage(
                "there is no HOME and no XDG folder: set WINDLASS_HOME to a folder for configuration and sessions",
            )
        })
    };
    Ok((below("XDG_CONFIG_HOME", ".config")?, below("XDG_DATA_HOME", ".local/share")?))
}

/// `host` of `user@host:port/path`.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    match address.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, _)) => inner,
        None => address.split(':').next().unwrap_or_default(),
    }
}

/// Whether a word of `NO_PROXY` means `host`.
fn spares(pattern: &str, host: &str) -> bool {
    let domain = pattern.trim_start_matches("*.").trim_start_matches('.');
    pattern == "*" || (!domain.is_empty() && (host == domain || host.ends_with(&format!(".{domain}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Environment {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (config_dir, data_dir) = folders(&variables).unwrap();
        let (stdout, stderr) = (Look::default(), Look::default());
        let managed_config = "/nowhere/managed.toml".into();
        let cwd = "/work".into();
        Environment { variables, cwd, managed_config, config_dir, data_dir, stdin_is_terminal: false, stdout, stderr }
    }

    #[test]
    fn folders_follow_the_variables() {
        let home = with(&[("HOME", "/home/ada")]);
        assert_eq!(home.user_config(), Path::new("/home/ada/.config/windlass/config.toml"));
        assert_eq!(home.data_dir, Path::new("/home/ada/.local/share/windlass"));
        let xdg = with(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "relative")]);
        assert_eq!(xdg.user_config(), Path::new("/c/windlass/config.toml"));
        assert_eq!(xdg.data_dir, Path::new("/home/ada/.local/share/windlass"));
        let own = with(&[("WINDLASS_HOME", "/w")]);
        assert_eq!((own.user_config(), own.data_dir), ("/w/config.toml".into(), "/w/data".into()));
        assert!(folders(&BTreeMap::new()).unwrap_err().message.contains("WINDLASS_HOME"));
    }

    #[test]
    fn the_proxy_is_the_one_for_the_address() {
        let environment = with(&[
            ("HOME", "/h"),
            ("HTTPS_PROXY", "http://p:1"),
            ("http_proxy", "http://p:2"),
            ("NO_PROXY", "example.org, .intern"),
        ]);
        assert_eq!(environment.proxy_for("https://api.anthropic.com"), Some("http://p:1"));
        assert_eq!(environment.proxy_for("http://models.lan:80/v1"), Some("http://p:2"));
        for spared in ["http://127.0.0.1:1/v1", "http://[::1]:1", "https://example.org", "https://a.intern/x"] {
            assert_eq!(environment.proxy_for(spared), None, "{spared}");
        }
        assert_eq!(environment.proxy_for("https://notexample.org"), Some("http://p:1"));
    }

    #[test]
    fn children_get_what_is_listed_and_never_a_providers_key() {
        let aws = ("AWS_SECRET_ACCESS_KEY", "s");
        let environment = with(&[("HOME", "/h"), ("OPENAI_API_KEY", "sk"), ("PATH", "/bin"), aws, ("DATABASE", "d")]);
        let further = ["OPENAI_API_KEY", "DATABASE"].map(str::to_owned);
        // What git is told is ours.
        let names = |further| {
            let names = environment.for_children(["OPENAI_API_KEY"], further).into_keys();
            names.filter(|name| !name.starts_with("GIT_")).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["HOME", "PATH"]);
        assert_eq!(names(&further), ["DATABASE", "HOME", "PATH"]);
    }
}
