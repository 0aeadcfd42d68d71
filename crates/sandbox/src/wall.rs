//! The wall, as the rest of the program knows it.

use crate::account;
use crate::settings::{Choice, Kind, Settings, Spec};
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// What keeps processes in. Which one stands is found when the first process is started.
#[derive(Debug, Default)]
pub struct Wall {
    /// None: there is to be no wall.
    settings: Option<Settings>,
    found: OnceLock<Found>,
    #[cfg(target_os = "linux")]
    proxy: std::sync::Mutex<Option<crate::proxy::Proxy>>,
}

/// Which wall stands, and why the stronger ones do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub kind: Option<Kind>,
    /// Those that were tried and did not stand, with the reason.
    pub fallen: Vec<(Kind, String)>,
}

impl Wall {
    pub fn new(settings: Settings) -> Wall {
        let settings = Some(settings).filter(|settings| settings.choice != Choice::Off || settings.require);
        Wall { settings, ..Wall::default() }
    }

    /// None: processes run as they always do.
    pub fn none() -> Wall {
        Wall::default()
    }

    /// Whether there is to be one at all.
    pub fn is_wanted(&self) -> bool {
        self.settings.is_some()
    }

    /// Which wall stands; the first call tries them, for some milliseconds, and blocks meanwhile.
    pub fn found(&self, spec: &Spec) -> &Found {
        self.found.get_or_init(|| self.settings.as_ref().map(|settings| find(settings, spec)).unwrap_or_default())
    }

    /// The wall that was found to stand, if one was looked for.
    pub fn standing(&self) -> Option<Kind> {
        self.found.get().and_then(|found| found.kind)
    }

    /// `command`, behind the wall. Its program, arguments and folder are kept, and of the environment what it names
    /// itself: nothing is inherited. Inputs and outputs are to be set on what is returned. The command ends with all it
    /// started when the process that is started here ends or is killed. An error: it must not run. Blocks for some
    /// microseconds, the first time for some milliseconds. Where hosts are listed it must be called from within a tokio
    /// runtime, which serves their proxy.
    pub fn enclose(&self, command: Command, spec: &Spec) -> io::Result<Command> {
        let Some(settings) = &self.settings else { return Ok(command) };
        let found = self.found(spec);
        match found.kind {
            Some(kind) if kind.is_full() || !settings.require => self.behind(kind, settings, &command, spec),
            None if settings.choice == Choice::Auto && !settings.require => Ok(command),
            _ => Err(io::Error::other(format!("no wall as strong as was asked for stands{}", reasons(found)))),
        }
    }

    /// What is not covered by what stands, in plain sentences.
    pub fn gaps(&self, spec: &Spec) -> Vec<String> {
        match &self.settings {
            Some(settings) => account::gaps(self.found(spec).kind, settings),
            None => vec!["Nothing is kept: a command can do whatever you can do yourself.".into()],
        }
    }

    /// What to tell the model of a command whose `output` looks as if it had met the wall.
    pub fn denied(&self, failed: bool, output: &str) -> Option<String> {
        account::denied(self.standing()?, self.settings.as_ref()?, failed, output)
    }
}

fn reasons(found: &Found) -> String {
    let reasons: Vec<String> = found.fallen.iter().map(|(kind, why)| format!("{}: {why}", kind.name())).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

#[cfg(not(target_os = "linux"))]
fn find(_settings: &Settings, _spec: &Spec) -> Found {
    Found { kind: None, fallen: vec![(Kind::Namespaces, "walls are built on Linux only".into())] }
}

#[cfg(not(target_os = "linux"))]
impl Wall {
    fn behind(&self, _kind: Kind, _settings: &Settings, _command: &Command, _spec: &Spec) -> io::Result<Command> {
        Err(io::Error::other("walls are built on Linux only"))
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::find;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Choice, Command, Found, Kind, Settings, Spec, Wall, io};
    use crate::keeper::KEEPER;
    use crate::plan::{Plan, Reach};
    use crate::proxy::Proxy;
    use crate::settings::Network;
    use crate::{bubblewrap, relay, secrets};
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};
    use std::process::Stdio;
    use std::sync::PoisonError;

    /// Names of the machine itself.
    const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

    /// Bytes of a fallen wall's own words that are kept.
    const REASON_BYTES: usize = 300;

    pub(crate) fn find(settings: &Settings, spec: &Spec) -> Found {
        let wanted = |kind: &Kind| match settings.choice {
            Choice::Auto => true,
            Choice::Only(one) => one == *kind,
            Choice::Off => false,
        };
        let mut found = Found::default();
        for kind in Kind::ALL.into_iter().filter(wanted) {
            match try_out(kind, settings, spec) {
                Ok(()) => {
                    found.kind = Some(kind);
                    break;
                }
                Err(why) => found.fallen.push((kind, why.to_string())),
            }
        }
        found
    }

    /// Has the keeper put a wall up, try it from within, and take it down.
    fn try_out(kind: Kind, settings: &Settings, spec: &Spec) -> io::Result<()> {
        if kind == Kind::Bubblewrap && bubblewrap::program().is_none() {
            return Err(io::Error::other("bwrap is not installed"));
        }
        let plan = Plan { trial: true, ..plan(kind, settings, spec, &spec.workspace)? };
        let mut keeper = keeper(settings, &plan)?;
        let output = keeper.env_clear().stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("windlass: the sandbox could not be put up, nothing ran: ");
        Err(io::Error::other(said.chars().take(REASON_BYTES).collect::<String>()))
    }

    fn keeper(settings: &Settings, plan: &Plan) -> io::Result<Command> {
        let mut keeper = Command::new(&settings.program);
        keeper.arg(KEEPER).arg(serde_json::to_string(plan)?);
        Ok(keeper)
    }

    fn plan(kind: Kind, settings: &Settings, spec: &Spec, cwd: &Path) -> io::Result<Plan> {
        let workspace = spec.workspace.canonicalize().map_err(|error| named(&spec.workspace, &error))?;
        if workspace.parent().is_none() {
            let why =
                "the workspace is /: a wall around everything is none; open a folder, or set sandbox.wall to none";
            return Err(io::Error::other(why));
        }
        std::fs::create_dir_all(&spec.temp).map_err(|error| named(&spec.temp, &error))?;
        let temp = spec.temp.canonicalize().map_err(|error| named(&spec.temp, &error))?;
        let there =
            |paths: &[PathBuf]| -> Vec<PathBuf> { paths.iter().filter_map(|path| path.canonicalize().ok()).collect() };
        let home = settings.home.as_ref().and_then(|home| home.canonicalize().ok());
        let mut unreadable = there(&settings.unreadable);
        unreadable.extend(there(&home.as_deref().map(secrets).unwrap_or_default()));
        // Who works in such a folder means to read it.
        unreadable.retain(|path| !workspace.starts_with(path) && !temp.starts_with(path));
        unreadable.sort();
        unreadable.dedup();
        let mut writable = there(&settings.writable);
        writable.retain(|path| path.parent().is_some());
        let protected =
            settings.protected.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
        let reach = if settings.network == Network::On { Reach::Everything } else { Reach::Nothing };
        let (parent, limits) = (std::process::id(), settings.limits);
        let cwd = cwd.canonicalize().map_err(|error| named(cwd, &error))?;
        Ok(Plan {
            kind,
            parent,
            cwd,
            workspace,
            temp,
            writable,
            protected,
            unreadable,
            home,
            reach,
            limits,
            trial: false,
        })
    }

    fn named(path: &Path, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    }

    impl Wall {
        pub(super) fn behind(
            &self,
            kind: Kind,
            settings: &Settings,
            command: &Command,
            spec: &Spec,
        ) -> io::Result<Command> {
            let cwd = command.get_current_dir().unwrap_or(&spec.workspace);
            let mut plan = plan(kind, settings, spec, cwd)?;
            if plan.reach == Reach::Nothing && kind.is_full() && !settings.hosts.is_empty() {
                plan.reach = Reach::Proxy(self.proxy(settings)?);
            }
            let mut walled = keeper(settings, &plan)?;
            walled.arg(command.get_program()).args(command.get_args()).current_dir(&plan.cwd).env_clear();
            for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
                walled.env(name, value);
            }
            let temp = if kind.is_full() { OsStr::new("/tmp") } else { plan.temp.as_os_str() };
            walled.env("TMPDIR", temp);
            if matches!(plan.reach, Reach::Proxy(_)) {
                let proxy = format!("http://127.0.0.1:{}", relay::PORT);
                for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
                    walled.env(name, &proxy);
                }
                // What the command serves itself is reached past the proxy, but for what is listed of this machine.
                let listed = |name: &&str| settings.hosts.iter().any(|host| host.means(name));
                let past: Vec<&str> = OWN_NAMES.into_iter().filter(|name| !listed(name)).collect();
                for name in ["NO_PROXY", "no_proxy"] {
                    walled.env(name, past.join(","));
                }
                walled.env("NODE_USE_ENV_PROXY", "1");
            }
            Ok(walled)
        }

        /// The name of the one proxy for the listed hosts, started when it is first asked for.
        fn proxy(&self, settings: &Settings) -> io::Result<String> {
            let mut proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(running) = proxy.as_ref() {
                return Ok(running.name.clone());
            }
            Ok(proxy.insert(Proxy::start(settings.hosts.clone())?).name.clone())
        }
    }
}
