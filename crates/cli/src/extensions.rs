//! Tools that lie in folders: registered beside the built-in ones, made from a template, installed after a look.

use crate::config::Config;
use crate::desk::Desk;
use crate::environment::Environment;
use crate::exit::{Ended, Failure};
use crate::terminal::harmless;
use crate::trust;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of tools below the configuration's folder, and below a project's `.windlass`.
const EXTENSIONS: &str = "extensions";

/// What a build without the feature says.
const LACKS: &str = "this build of windlass runs no WebAssembly tools: take a released one, or build with \
                     `--features wasm`";

/// A tool that somebody wants installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub folder: PathBuf,
    pub component: Option<PathBuf>,
    /// For this project alone.
    pub in_project: bool,
}

/// The built-in tools that can run in a component.
const BOXABLE: [&str; 3] = ["read", "write", "edit"];
/// The profile that has them do so, unless the configuration says otherwise.
const BOXING_PROFILE: &str = "s3-box";

/// The built-in tools that the configuration wants run in a component.
pub fn boxed(config: &Config) -> Result<Vec<&'static str>, Failure> {
    let wish = |name: &str| config.at(&["tools", name, "sandbox"]).map(|entry| (entry.value.as_text(), &entry.source));
    for name in config.names("tools") {
        if let Some((Some("wasm"), source)) = wish(name).filter(|_| !BOXABLE.contains(&name)) {
            return Err(Failure::usage(format!(
                "tools.{name}.sandbox ({source}): no component is made of {name}; {} run in one",
                BOXABLE.join(", ")
            )));
        }
    }
    let by_profile = config.text("profile") == Some(BOXING_PROFILE);
    let wanted = |name: &&str| wish(name).map_or(by_profile, |(sandbox, _)| sandbox == Some("wasm"));
    let boxed: Vec<&str> = BOXABLE.into_iter().filter(wanted).collect();
    if boxed.is_empty() || cfg!(feature = "wasm") {
        return Ok(boxed);
    }
    Err(Failure::usage(format!(
        "{} should run in a component ({}), and {LACKS}; or set tools.NAME.sandbox = \"none\" for each",
        boxed.join(", "),
        if by_profile { "profile s3-box" } else { "tools.NAME.sandbox" }
    )))
}

/// Where the tools lie that a project brings.
pub struct ProjectTools<'a> {
    pub folder: &'a Path,
    /// The copy of those that were trusted.
    pub trusted: Option<&'a Path>,
}

fn own_folder(environment: &Environment) -> PathBuf {
    environment.config_dir.join(EXTENSIONS)
}

fn project_folder(folder: &Path) -> PathBuf {
    folder.join(crate::brought::FOLDER).join(EXTENSIONS)
}

#[cfg(feature = "wasm")]
pub use with_wasm::{Extensions, install, scaffold, told};

#[cfg(feature = "wasm")]
mod with_wasm {
    use super::*;
    use crate::exit::Code;
    use crate::terminal::{print, tell};
    use crate::trust_command::OF_A_CALL;
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{self, BufRead, Write};
    use std::sync::{Arc, Mutex, PoisonError};
    use windlass_tools::{Tools, builtin};
    use windlass_wasm::{Folder, Found, Host, MANIFEST, Manifest, Parcel, Standing, load, template};

    /// Runs the tools that lie in folders.
    pub struct Extensions {
        host: Arc<Host>,
        /// What was complained of already.
        told: Mutex<BTreeSet<String>>,
    }

    impl Extensions {
        /// Nothing is read or made before it is asked for.
        pub fn new(environment: &Environment) -> Extensions {
            let cache = environment.data_dir.join("components");
            Extensions { host: Arc::new(Host::new(Some(cache))), told: Mutex::default() }
        }

        /// Adds the tools for sessions in `folder`; what can't be loaded is told once.
        pub fn register(&self, tools: &Tools, environment: &Environment, project: &ProjectTools) {
            let found = self.find(&tools.names(), environment, project);
            for complaint in found.complaints {
                if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(complaint.clone()) {
                    tell(&harmless(&format!("windlass: {complaint}")));
                }
            }
            found.tools.into_iter().for_each(|tool| tools.register(tool));
        }

        /// Puts those of the built-in `tools` that are in `boxed` into a component.
        pub fn enclose(&self, tools: &Tools, boxed: &[&str]) {
            let enclosed = boxed.iter().filter_map(|name| tools.get(name));
            let enclosed = enclosed.filter_map(|entry| windlass_wasm::boxed(entry.tool.clone(), &self.host));
            enclosed.for_each(|tool| tools.register(tool));
        }

        /// What each of them may reach, in words, by its name.
        pub fn grants(&self, environment: &Environment, project: &ProjectTools) -> BTreeMap<String, Vec<String>> {
            let found = self.find(&builtin_names(), environment, project);
            found.tools.iter().map(|tool| (tool.manifest().name.clone(), tool.manifest().grants())).collect()
        }

        fn find(&self, taken: &[String], environment: &Environment, project: &ProjectTools) -> Found {
            let project = match project.trusted {
                // As they were when they were trusted, whatever lies in the project by now.
                Some(copy) => Folder { path: copy.to_owned(), standing: Standing::Trusted },
                None => Folder { path: project_folder(project.folder), standing: Standing::Untrusted },
            };
            let own = Folder { path: own_folder(environment), standing: Standing::Trusted };
            load(&[project, own], taken, &self.host)
        }
    }

    fn builtin_names() -> Vec<String> {
        builtin().iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// `windlass tool new`: the files of a tool that builds and runs as it is.
    fn check_name(name: &str) -> Result<(), Failure> {
        let is_web = windlass_web::TOOL_NAMES.contains(&name);
        match is_web || builtin_names().iter().any(|known| known == name) {
            true => Err(Failure::usage(format!("{name} is the name of a built-in tool; give this one another"))),
            false => Ok(()),
        }
    }

    pub fn scaffold(name: &str, below: &Path) -> Ended {
        check_name(name)?;
        let files = template(name).map_err(Failure::usage)?;
        let folder = below.join(name);
        let failed = |error: io::Error| Failure::new(Code::Failed, format!("{}: {error}", folder.display()));
        fs::create_dir_all(below).map_err(failed)?;
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let message = format!("{} is there already; take another name or --dir", folder.display());
                return Err(Failure::usage(message));
            }
            made => made.map_err(failed)?,
        }
        for (path, text) in files {
            let path = folder.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text)).map_err(failed)?;
        }
        print(&format!(
            "made {}; next, in it:\n  cargo build --target wasm32-wasip2 --release\n  windlass tool install .\n",
            folder.display()
        ));
        Ok(Code::Done)
    }

    /// `windlass tool install`: shows what a tool may reach, asks, and puts it where sessions find it.
    pub fn install(desk: &Desk, wish: &Wish) -> Ended {
        if desk.environment.variable(OF_A_CALL).is_some() {
            let message = "what a tool may reach is a person's to grant: run `windlass tool install` in a terminal of \
                           your own";
            return Err(Failure::new(Code::Denied, message));
        }
        let resolve = |path: &Path| desk.environment.cwd.join(path);
        let component = wish.component.as_deref().map(resolve);
        let parcel = Parcel::open(&resolve(&wish.folder), component.as_deref()).map_err(Failure::usage)?;
        let name = &parcel.manifest.name;
        check_name(name)?;
        let extensions = match wish.in_project {
            true => project_folder(&desk.folder),
            false => own_folder(&desk.environment),
        };
        let place = parcel.place(&extensions);
        print(&shown(&parcel, &place));
        parcel.check(&desk.extensions.host).map_err(Failure::usage)?;
        if !desk.flags.yes && !agreed(desk)? {
            return Err(Failure::new(Code::Denied, format!("{name} was not installed")));
        }
        let failed = |error| Failure::new(Code::Failed, format!("{}: {error}", extensions.display()));
        parcel.install(&extensions).map_err(failed)?;
        if wish.in_project {
            print("installed; it is loaded once this folder is trusted as it is now: `windlass trust`\n");
            return Ok(Code::Done);
        }
        print(&format!("installed; `windlass tool run {name} JSON` runs it, and new sessions have it\n"));
        Ok(Code::Done)
    }

    /// What the tools among a project's files may reach, in words, a text for each.
    pub fn told(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
        let manifests = files.keys().filter_map(|path| path.strip_suffix(MANIFEST));
        let folders = manifests.filter(|folder| folder.starts_with(trust::EXTENSIONS));
        let text = |folder: &str, name: &str| {
            let bytes = files.get(&format!("{folder}{name}")).ok_or_else(|| format!("there is no {name}"))?;
            std::str::from_utf8(bytes).map_err(|_| format!("{name} is no UTF-8 text"))
        };
        folders
            .map(|folder| {
                let read = text(folder, MANIFEST)
                    .and_then(|own| Manifest::parse(own, |name| text(folder, name).map(str::to_owned)));
                match read {
                    Ok(manifest) => format!("{}\n  {}\n", manifest.name, manifest.grants().join("\n  ")),
                    Err(why) => format!("{folder}: it will not be loaded: {why}\n"),
                }
            })
            .collect()
    }

    fn shown(parcel: &Parcel, place: &Path) -> String {
        let first = parcel.manifest.description.lines().next().unwrap_or_default();
        let grants: String = parcel.manifest.grants().iter().map(|grant| format!("  {grant}\n")).collect();
        let replaces = if place.exists() { ", in place of the one there" } else { "" };
        harmless(&format!("{}: {first}\n{grants}into {}{replaces}\n", parcel.manifest.name, place.display()))
            .into_owned()
    }

    fn agreed(desk: &Desk) -> Result<bool, Failure> {
        if !desk.environment.stdin_is_terminal {
            return Err(Failure::usage("nobody can be asked here: look at what it may reach, and give --yes"));
        }
        print("install it? [y]es, [n]o: ");
        _ = io::stdout().flush();
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|error| Failure::new(Code::Failed, format!("stdin: {error}")))?;
        Ok(matches!(line.trim(), "y" | "yes"))
    }
}

#[cfg(not(feature = "wasm"))]
pub use without_wasm::{Extensions, install, scaffold, told};

#[cfg(not(feature = "wasm"))]
mod without_wasm {
    use super::*;
    use crate::terminal::tell;
    use std::sync::Once;
    use windlass_tools::Tools;

    /// What this build has no use for.
    pub struct Extensions {
        told: Once,
    }

    impl Extensions {
        pub fn new(_environment: &Environment) -> Extensions {
            Extensions { told: Once::new() }
        }

        /// Says once that tools which could be loaded are not there.
        pub fn register(&self, _tools: &Tools, environment: &Environment, project: &ProjectTools) {
            let trusted = project.trusted.map(|_| project_folder(project.folder));
            let mut folders = [trusted, Some(own_folder(environment))].into_iter().flatten();
            if let Some(folder) = folders.find(|folder| folder.is_dir()) {
                let message = format!("windlass: the tools in {} are not loaded: {LACKS}", folder.display());
                self.told.call_once(|| tell(&harmless(&message)));
            }
        }

        /// None are wanted so: where some are, this build says that it can't.
        pub fn enclose(&self, _tools: &Tools, _boxed: &[&str]) {}

        pub fn grants(&self, _environment: &Environment, _project: &ProjectTools) -> BTreeMap<String, Vec<String>> {
            BTreeMap::new()
        }
    }

    /// That the tools among a project's files are of no use here.
    pub fn told(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
        let is_tool = files.keys().any(|path| path.starts_with(trust::EXTENSIONS));
        is_tool.then(|| format!("{LACKS}\n")).into_iter().collect()
    }

    pub fn scaffold(_name: &str, _below: &Path) -> Ended {
        Err(Failure::usage(LACKS))
    }

    pub fn install(_desk: &Desk, _wish: &Wish) -> Ended {
        Err(Failure::usage(LACKS))
    }
}
