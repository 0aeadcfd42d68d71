//! The same wall built by `bwrap`, for systems that let only known programs make namespaces.

use crate::guarded::Guarded;
use crate::keeper::{INNER, NO_WALL, Report, Told, refuse, walled};
use crate::mounts::{KNOBS, OF_RUN, OWN_FOLDERS, RESOLVERS};
use crate::namespaces::has_own_rights;
use crate::plan::{Plan, Reach};
use crate::{inside, raw, relay};
use rustix::process::Pid;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Where it is looked for; not in `PATH`, which a project may lead astray.
const PLACES: [&str; 4] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];
/// Where this program lies behind the wall.
const SELF: &str = "/run/windlass";
/// The descriptors of the keeper's that the last step behind the wall goes on with.
const PROXY: RawFd = 30;
const REPORT: RawFd = 31;

pub(crate) fn program() -> Option<&'static str> {
    PLACES.into_iter().find(|place| Path::new(place).is_file())
}

pub(crate) fn start(
    plan: &Plan,
    guarded: &Guarded,
    command: &[OsString],
    proxy: Option<UnixStream>,
    report: Report,
) -> Result<Pid, String> {
    let program = program().ok_or("there is no bwrap")?;
    let own = std::fs::read_link("/proc/self/exe").map_err(|error| format!("/proc/self/exe: {error}"))?;
    let mut line: Vec<OsString> = vec![program.into()];
    line.extend(view(plan, guarded, &own)?);
    let told = serde_json::to_string(plan).map_err(|error| error.to_string())?;
    line.extend(["--", SELF, INNER, &told].map(OsString::from));
    line.extend_from_slice(command);
    let outer = Plan { cwd: "/".into(), trial: false, ..plan.clone() };
    walled(&outer, &line, report, |report| {
        let give = |from: RawFd, to: RawFd| raw::give(from, to).map_err(|error| error.to_string());
        proxy.as_ref().map_or(Ok(()), |proxy| give(proxy.as_raw_fd(), PROXY))?;
        give(report.as_raw_fd(), REPORT)
    })
}

/// The arguments that build the view; the order is that of the mounts.
fn view(plan: &Plan, guarded: &Guarded, own: &Path) -> Result<Vec<OsString>, String> {
    let mut line = Line(vec![]);
    line.words(&["--die-with-parent", "--unshare-pid", "--unshare-ipc"]);
    if plan.reach != Reach::Everything {
        line.words(&["--unshare-net"]);
    }
    line.words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    if rustix::process::geteuid().is_root() {
        for path in KNOBS.into_iter().filter(|path| Path::new(path).exists()) {
            line.words(&["--ro-bind", path, path]);
        }
    }
    line.words(&["--tmpfs", "/run"]);
    let resolvers = RESOLVERS.iter().filter(|_| plan.reach == Reach::Everything);
    for path in OF_RUN.iter().chain(resolvers) {
        line.words(&["--ro-bind-try", path, path]);
    }
    line.bind("--ro-bind", own, Path::new(SELF));
    temp(plan, &mut line)?;
    let mut roots: Vec<&PathBuf> = plan.roots().collect();
    roots.sort();
    roots.into_iter().for_each(|root| line.bind("--bind", root, root));
    guarded.pinned.iter().for_each(|path| line.bind("--bind", path, path));
    guarded.fixed.iter().for_each(|(path, _)| line.bind("--ro-bind", path, path));
    // What lies in the real `/tmp` or `/run` is not there behind the wall, unless a root shows it.
    let is_seen = |path: &&PathBuf| {
        let hidden = OWN_FOLDERS
            .iter()
            .any(|own| path.starts_with(own) && !plan.roots().any(|root| Path::new(own).starts_with(root)));
        !hidden || plan.roots().any(|root| path.starts_with(root))
    };
    for path in plan.unreadable.iter().filter(is_seen) {
        if path.is_dir() {
            line.words(&["--perms", "0000", "--tmpfs"]).paths(&[path]).words(&["--remount-ro"]).paths(&[path]);
        } else {
            line.bind("--ro-bind", Path::new("/dev/null"), path);
        }
    }
    Ok(line.0)
}

/// The session's folder as `/tmp`, with the way to what lies in the real one.
fn temp(plan: &Plan, line: &mut Line) -> Result<(), String> {
    let [tmp, _] = OWN_FOLDERS.map(Path::new);
    if plan.roots().any(|root| tmp.starts_with(root)) {
        return Ok(());
    }
    line.bind("--bind", &plan.temp, tmp);
    let scratch = plan.temp.parent().filter(|scratch| scratch.starts_with(tmp));
    for path in plan.roots().map(PathBuf::as_path).chain(scratch) {
        let Ok(rest) = path.strip_prefix(tmp) else { continue };
        std::fs::create_dir_all(plan.temp.join(rest)).map_err(|error| format!("{}: {error}", plan.temp.display()))?;
        let mut parts = rest.components();
        if let (Some(first), Some(_)) = (parts.next(), parts.next()) {
            line.bind("--ro-bind", &plan.temp.join(first), &tmp.join(first));
        }
    }
    scratch.into_iter().for_each(|scratch| line.bind("--ro-bind", scratch, scratch));
    Ok(())
}

struct Line(Vec<OsString>);

impl Line {
    fn words(&mut self, words: &[&str]) -> &mut Line {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn paths(&mut self, paths: &[&Path]) -> &mut Line {
        self.0.extend(paths.iter().map(OsString::from));
        self
    }

    fn bind(&mut self, how: &str, from: &Path, to: &Path) {
        self.words(&[how]).paths(&[from, to]);
    }
}

/// The last step, behind bubblewrap's wall: what is left is done by this program itself.
pub(crate) fn inner(plan: &Plan, command: &[OsString]) -> i32 {
    let Ok(report) = raw::inherited(REPORT) else { return refuse("it was started without a keeper") };
    let report = Report::from(report);
    let set_up = || {
        if matches!(plan.reach, Reach::Proxy(_)) {
            let proxy = raw::inherited(PROXY).map_err(|error| error.to_string())?;
            relay::hand_over(&UnixStream::from(proxy))?;
        }
        inside::harden(plan, has_own_rights())?;
        inside::check(plan)
    };
    match set_up() {
        Ok(()) if plan.trial => report.send(&Told::Ended(0)),
        Ok(()) => {
            eprintln!("windlass: {}", inside::become_program(plan, command));
            return crate::keeper::NOT_FOUND;
        }
        Err(why) => report.send(&Told::Failed(why)),
    }
    NO_WALL
}
