//! Where attempts are made: a home, a workspace and a folder outside, and ways to start a probe with and without a wall.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use windlass_sandbox::{Choice, Kind, Limits, Network, Settings, Spec, Wall};

/// Makes the attempts in `root`. A wall hides the real `/tmp`, and others cannot enter every home: a program that lies in
/// such a place makes them as a copy elsewhere.
pub fn in_sight(root: &Path) -> ExitCode {
    let own = std::env::current_exe().unwrap();
    let is_closed = |folder: &Path| fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
    let is_hidden = |path: &Path| path.starts_with("/tmp") || path.ancestors().skip(1).any(is_closed);
    if !is_hidden(&own) && !is_hidden(&root.join("work")) {
        return crate::attempts::all(root);
    }
    let folder = tempfile::Builder::new().prefix("walls").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("attempts");
    fs::copy(own, &copy).unwrap();
    let ended = Command::new(copy).arg("in").arg(folder.path()).status().unwrap();
    if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a probe gave: whether it succeeded, and what it said.
pub struct Tried {
    pub succeeded: bool,
    pub said: String,
}

pub struct Stage {
    folder: tempfile::TempDir,
    pub kind: Kind,
    /// Changes to the wall before it is built.
    pub hosts: Vec<String>,
    pub network: Network,
    pub limits: Limits,
    pub unreadable: Vec<PathBuf>,
    pub workspace: PathBuf,
}

impl Stage {
    pub fn new(root: &Path, kind: Kind) -> Stage {
        let folder = tempfile::Builder::new().prefix("wall").tempdir_in(root).unwrap();
        let path = folder.path().canonicalize().unwrap();
        for name in ["home/work", "home/.ssh", "outside"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("home/.ssh/id_ed25519"), "secret").unwrap();
        let (hosts, unreadable, limits) = (vec![], vec![], Limits::default());
        Stage { folder, kind, hosts, network: Network::Off, limits, unreadable, workspace: path.join("home/work") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A path in the workspace.
    pub fn work(&self, name: &str) -> String {
        self.workspace.join(name).display().to_string()
    }

    pub fn repository(&self) {
        let git = self.workspace.join(".git");
        for name in ["objects", "refs/heads"] {
            fs::create_dir_all(git.join(name)).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
    }

    pub fn wall(&self) -> Wall {
        Wall::new(Settings {
            program: "/proc/self/exe".into(),
            choice: Choice::Only(self.kind),
            require: false,
            home: Some(self.path("home")),
            writable: vec![],
            protected: vec![],
            unreadable: self.unreadable.clone(),
            network: self.network,
            hosts: self.hosts.iter().map(|host| host.parse().unwrap()).collect(),
            limits: self.limits,
        })
    }

    pub fn spec(&self) -> Spec {
        Spec { workspace: self.workspace.clone(), temp: self.path("scratch/tmp") }
    }

    /// A program in the workspace, with no more environment than it takes.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        command
            .args(arguments)
            .current_dir(&self.workspace)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"));
        command
    }

    fn probe(&self, arguments: &[&str]) -> Command {
        let own = std::env::current_exe().unwrap().display().to_string();
        self.command(&own, &[&["probe"], arguments].concat())
    }

    pub fn outside(&self, arguments: &[&str]) -> Tried {
        tried(self.probe(arguments))
    }

    pub fn inside(&self, arguments: &[&str]) -> Tried {
        self.behind(self.probe(arguments))
    }

    pub fn behind(&self, command: Command) -> Tried {
        tried(self.wall().enclose(command, &self.spec()).unwrap())
    }

    pub fn shell_outside(&self, line: &str) -> Tried {
        tried(self.command("sh", &["-c", line]))
    }

    pub fn shell_inside(&self, line: &str) -> Tried {
        self.behind(self.command("sh", &["-c", line]))
    }
}

fn tried(mut command: Command) -> Tried {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Tried { succeeded: output.status.success(), said: String::from_utf8_lossy(&said).into_owned() }
}

/// A process that starts a shell line behind a wall and waits, to be killed while it does.
pub fn caller(kind: &str, home: &str, line: &str) -> ExitCode {
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).unwrap();
    let home = PathBuf::from(home);
    let settings = Settings {
        program: "/proc/self/exe".into(),
        choice: Choice::Only(kind),
        require: false,
        home: Some(home.clone()),
        writable: vec![],
        protected: vec![],
        unreadable: vec![],
        network: Network::Off,
        hosts: vec![],
        limits: Limits::default(),
    };
    let spec = Spec { workspace: home.join("work"), temp: home.with_file_name("scratch").join("tmp") };
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir(&spec.workspace);
    let status = Wall::new(settings).enclose(command, &spec).unwrap().status();
    if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Waits, within reason, until something holds.
pub fn until(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Whether something still writes to `beat`.
pub fn beats(beat: &Path) -> bool {
    let length = || fs::metadata(beat).map_or(0, |there| there.len());
    let before = length();
    std::thread::sleep(Duration::from_millis(120));
    length() > before
}

/// Kills the processes whose numbers, as this namespace counts them, stand in `beat`.
pub fn still(beat: &Path) {
    let pids = fs::read_to_string(beat).unwrap_or_default();
    for pid in pids.lines().last().and_then(|pid| pid.parse().ok()).and_then(rustix::process::Pid::from_raw).into_iter()
    {
        _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// A process to be signalled.
pub struct Victim(pub Child);

impl Victim {
    pub fn new() -> Victim {
        Victim(Command::new("sleep").arg("300").spawn().unwrap())
    }

    pub fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A server that answers every HTTP request, and its port.
pub fn web() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            _ = client.read(&mut [0; 1_024]);
            _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
        }
    });
    port
}

/// A server that echoes datagrams, and its port.
pub fn echo() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((n, from)) = socket.recv_from(&mut buffer) {
            _ = socket.send_to(&buffer[..n], from);
        }
    });
    port
}

/// Lets everybody use a folder.
pub fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
}
