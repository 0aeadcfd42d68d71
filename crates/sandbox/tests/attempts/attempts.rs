//! The attempts, and the run of all of them.

use crate::stage::{Stage, Victim, beats, echo, open_to_all, still, until, web};
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Command, ExitCode};
use windlass_sandbox::{Kind, Network};

type Attempt = (&'static str, fn(&mut Stage));

const ATTEMPTS: [Attempt; 24] = [
    ("ordinary work is done", ordinary_work),
    ("write outside", write_outside),
    ("write beside the workspace in a place within temp", write_temp),
    ("read a denied file", read_denied),
    ("read a secret of the home", read_secret),
    ("reach a server by TCP", tcp),
    ("reach a server by UDP", udp),
    ("reach an abstract socket", abstract_socket),
    ("reach a socket in /tmp", socket_in_temp),
    ("signal another process", signal),
    ("escape by swapping a link", swap),
    ("leave a daemon behind", daemon),
    ("outlive the program that is killed", killed_caller),
    ("write a hook that was not there", new_hook),
    ("put another folder in the repository's place", moved_repository),
    ("write the repository's configuration", git_config),
    ("lead git to another configuration", commondir),
    ("write the workspace's own configuration", own_config),
    ("make namespaces or mounts", namespaces),
    ("turn a knob of the machine", knobs),
    ("read the caller's environment", environment),
    ("write more than the limit", limits),
    ("reach only listed hosts by the proxy", hosts),
    ("reach the network where it is on", network_on),
];

/// Makes every attempt against every wall there is.
pub fn all(root: &Path) -> ExitCode {
    let user = rustix::process::geteuid();
    let (mut count, mut failed, mut walls) = (0, vec![], vec![]);
    for kind in Kind::ALL {
        let stage = Stage::new(root, kind);
        let wall = stage.wall();
        if let Some((_, why)) = wall.found(&stage.spec()).fallen.first() {
            println!("{} is not to be had here (user {}): {why}", kind.name(), user.as_raw());
            continue;
        }
        walls.push(format!("{} (user {})", kind.name(), user.as_raw()));
        for (name, attempt) in ATTEMPTS {
            count += 1;
            let mut stage = Stage::new(root, kind);
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| attempt(&mut stage)));
            println!("{} {}: {name}", if held.is_ok() { "ok    " } else { "FAILED" }, kind.name());
            if held.is_err() {
                failed.push(format!("{}: {name} (user {})", kind.name(), user.as_raw()));
            }
        }
    }
    println!("\nwalls: {}\n{count} tests, 0 skipped", walls.join(", "));
    let passed = count - failed.len();
    println!(
        "test result: {}. {passed} passed; {} failed",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len()
    );
    failed.iter().for_each(|line| println!("failed: {line}"));
    let others = !user.is_root() || as_nobody(root);
    if failed.is_empty() && !walls.is_empty() && others { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same, as a user without any rights, from a copy of this program that such a user can start.
fn as_nobody(root: &Path) -> bool {
    let folder = tempfile::Builder::new().prefix("nobody").tempdir_in(root).unwrap();
    open_to_all(folder.path());
    let own = folder.path().join("attempts");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&own)
        .arg("as-nobody")
        .arg(folder.path())
        .status();
    status.unwrap().success()
}

/// An attempt that succeeds without the wall and fails behind it; `undo` is called between the two.
fn tried(stage: &Stage, probe: &[&str], undo: impl Fn()) {
    let outside = stage.outside(probe);
    assert!(outside.succeeded, "without a wall: {}", outside.said);
    undo();
    let inside = stage.inside(probe);
    assert!(!inside.succeeded, "behind the wall it worked: {}", inside.said);
}

/// The same for a line of a shell, where it counts whether `path` came about.
fn wrote(stage: &Stage, line: &str, path: &str, undo: impl Fn()) {
    stage.shell_outside(line);
    assert!(Path::new(path).exists(), "without a wall {path} did not come about");
    undo();
    let said = stage.shell_inside(line).said;
    assert!(!Path::new(path).exists(), "behind the wall {path} came about: {said}");
}

fn ordinary_work(stage: &mut Stage) {
    let line = "set -e; echo one > file; mkdir -p a/b; mv file a/b/; ln -s a link; cat link/b/file; \
        t=$(mktemp); echo two > $t; cat $t; echo three > /dev/null; (echo four | cat); git init -q sub 2>/dev/null; \
        cd sub; git config user.name x; git config user.email x@example.org; echo y > y; git add y; git commit -qm y; \
        git log --format=%s";
    let tried = stage.shell_inside(line);
    assert_eq!((tried.succeeded, tried.said.as_str()), (true, "one\ntwo\nfour\ny\n"));
    assert_eq!(fs::read_to_string(stage.work("a/b/file")).unwrap(), "one\n");
    assert!(!Path::new(&stage.work(".windlass")).exists() && !Path::new(&stage.work(".git")).exists());
    let status = stage.shell_inside("exit 7");
    assert!(!status.succeeded && status.said.is_empty());
}

fn write_outside(stage: &mut Stage) {
    let path = stage.text("outside/file");
    tried(stage, &["write", &path], || fs::remove_file(&path).unwrap());
    assert!(!Path::new(&path).exists());
    let above = stage.text("home/.bashrc");
    tried(stage, &["write", &above], || fs::remove_file(&above).unwrap());
    assert!(!Path::new(&above).exists());
}

fn write_temp(stage: &mut Stage) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let workspace = folder.path().join("work");
    fs::create_dir(&workspace).unwrap();
    stage.workspace = workspace;
    let path = folder.path().join("beside").display().to_string();
    tried(stage, &["write", &path], || fs::remove_file(&path).unwrap());
    assert!(!Path::new(&path).exists());
    assert!(stage.inside(&["write", &stage.work("within")]).succeeded);
    assert_eq!(fs::read_to_string(stage.work("within")).unwrap(), "written");
}

fn read_denied(stage: &mut Stage) {
    let (file, folder) = (stage.path("outside/denied"), stage.path("home/work/hidden"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "secret").unwrap();
    fs::write(folder.join("deep"), "secret").unwrap();
    stage.unreadable = vec![file.clone(), folder.clone()];
    for path in [file, folder.join("deep")] {
        tried(stage, &["read", &path.display().to_string()], || ());
        assert!(!stage.shell_inside(&format!("cat '{}'", path.display())).said.contains("secret"));
    }
}

fn read_secret(stage: &mut Stage) {
    tried(stage, &["read", &stage.text("home/.ssh/id_ed25519")], || ());
}

fn tcp(stage: &mut Stage) {
    tried(stage, &["tcp", &web().to_string()], || ());
}

fn udp(stage: &mut Stage) {
    tried(stage, &["udp", &echo().to_string()], || ());
}

fn abstract_socket(stage: &mut Stage) {
    let name = format!("attempt-{}-{}", std::process::id(), stage.kind.name());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    tried(stage, &["abstract", &name], || ());
}

fn socket_in_temp(stage: &mut Stage) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    open_to_all(folder.path());
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    tried(stage, &["unix", &path.display().to_string()], || ());
}

fn signal(stage: &mut Stage) {
    let mut first = Victim::new();
    assert!(stage.outside(&["signal", &first.0.id().to_string()]).succeeded);
    assert!(first.0.wait().unwrap().code().is_none());
    let mut second = Victim::new();
    assert!(!stage.inside(&["signal", &second.0.id().to_string()]).succeeded);
    // All that can be signalled: behind a wall that is less than without one.
    stage.shell_inside("kill -9 -1");
    assert!(second.lives());
}

fn swap(stage: &mut Stage) {
    fs::create_dir(stage.work("inner")).unwrap();
    let (link, inner, outer) = (stage.work("link"), stage.work("inner"), stage.text("outside"));
    tried(stage, &["swap", &link, &inner, &outer], || {
        fs::remove_file(&link).unwrap();
        assert_eq!(fs::read_dir(&outer).unwrap().count(), 200);
        fs::read_dir(&outer).unwrap().flatten().for_each(|entry| fs::remove_file(entry.path()).unwrap());
    });
    assert_eq!(fs::read_dir(&outer).unwrap().count(), 0);
}

fn daemon(stage: &mut Stage) {
    let beat = stage.workspace.join("beat");
    let path = beat.display().to_string();
    assert!(stage.outside(&["daemon", &path]).succeeded);
    assert!(beats(&beat), "without a wall the daemon lives on");
    still(&beat);
    assert!(until(|| !beats(&beat)));
    fs::remove_file(&beat).unwrap();
    assert!(stage.inside(&["daemon", &path]).succeeded);
    assert!(beat.exists() && !beats(&beat), "behind the wall it ends with its call");
}

fn killed_caller(stage: &mut Stage) {
    let beat = stage.workspace.join("beat");
    let own = std::env::current_exe().unwrap();
    let line = format!("'{0}' probe daemon '{1}'; sleep 300", own.display(), beat.display());
    // Without a wall: the caller is a shell.
    let mut caller = Command::new("sh").args(["-c", &format!("{line}; true")]).spawn().unwrap();
    assert!(until(|| beat.exists() && beats(&beat)));
    caller.kill().unwrap();
    caller.wait().unwrap();
    assert!(beats(&beat), "without a wall the daemon outlives its caller");
    still(&beat);
    assert!(until(|| !beats(&beat)));
    fs::remove_file(&beat).unwrap();
    let mut caller = Command::new(own).args(["caller", stage.kind.name(), &stage.text("home"), &line]).spawn().unwrap();
    assert!(until(|| beat.exists() && beats(&beat)));
    caller.kill().unwrap();
    caller.wait().unwrap();
    assert!(until(|| !beats(&beat)), "behind the wall it ends with the program");
    assert!(until(|| !Path::new(&stage.work(".windlass")).exists()), "no stand-in stays");
}

fn new_hook(stage: &mut Stage) {
    // Where there is no repository yet, where there is one without hooks, and where there is one below.
    let hook = stage.work(".git/hooks/pre-commit");
    let undo = || fs::remove_dir_all(stage.work(".git")).unwrap();
    wrote(stage, "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit", &hook, undo);
    assert!(!Path::new(&stage.work(".git")).exists());
    stage.repository();
    let undo = || fs::remove_dir_all(stage.work(".git/hooks")).unwrap();
    wrote(stage, "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit", &hook, undo);
    assert!(!Path::new(&stage.work(".git/hooks")).exists(), "no stand-in stays");
    fs::create_dir(stage.work("a")).unwrap();
    fs::rename(stage.work(".git"), stage.work("a/.git")).unwrap();
    let undo = || fs::remove_dir_all(stage.work("a/.git/hooks")).unwrap();
    let hook = stage.work("a/.git/hooks/pre-push");
    wrote(stage, "mkdir -p a/.git/hooks; echo evil > a/.git/hooks/pre-push", &hook, undo);
}

fn moved_repository(stage: &mut Stage) {
    stage.repository();
    let hook = stage.work(".git/hooks/pre-commit");
    let line = "mv .git was; mkdir -p .git/hooks; cp -r was/. .git/; echo evil > .git/hooks/pre-commit";
    wrote(stage, line, &hook, || {
        fs::remove_dir_all(stage.work("was")).unwrap();
        fs::remove_dir_all(stage.work(".git/hooks")).unwrap();
    });
    assert!(Path::new(&stage.work(".git/HEAD")).exists() || stage.kind == Kind::Landlock);
}

fn git_config(stage: &mut Stage) {
    stage.repository();
    let config = stage.work(".git/config");
    let before = fs::read_to_string(&config).unwrap();
    for line in [
        "echo '[core] fsmonitor = evil' >> .git/config",
        "echo '[core] fsmonitor = evil' > new; mv -f new .git/config",
        "git config core.fsmonitor evil",
        "rm -f .git/config; ln -s /etc/hostname .git/config",
    ] {
        stage.shell_outside(line);
        let changed = fs::read_to_string(&config).unwrap_or_default();
        assert_ne!(changed, before, "without a wall: {line}");
        _ = fs::remove_file(&config);
        fs::write(&config, &before).unwrap();
        let said = stage.shell_inside(line).said;
        assert_eq!(fs::read_to_string(&config).unwrap(), before, "behind the wall: {line}: {said}");
    }
}

fn commondir(stage: &mut Stage) {
    stage.repository();
    let path = stage.work(".git/commondir");
    wrote(stage, "echo ../evil > .git/commondir", &path, || fs::remove_file(&path).unwrap());
    let told = stage.shell_inside("echo ../evil > .git/commondir").said;
    assert!(told.contains("is protected by the sandbox: what the command did to it was undone"), "{told}");
}

fn own_config(stage: &mut Stage) {
    let path = stage.work(".windlass/config.toml");
    let line = "mkdir -p .windlass; echo 'permission_mode = \"bypass\"' > .windlass/config.toml";
    wrote(stage, line, &path, || fs::remove_dir_all(stage.work(".windlass")).unwrap());
    assert!(!Path::new(&stage.work(".windlass")).exists(), "no stand-in stays");
    fs::create_dir(stage.work(".windlass")).unwrap();
    wrote(stage, line, &path, || fs::remove_file(&path).unwrap());
    assert!(Path::new(&stage.work(".windlass")).exists(), "what was there stays");
}

fn namespaces(stage: &mut Stage) {
    tried(stage, &["unshare"], || ());
    if rustix::process::geteuid().is_root() {
        let target = stage.work("target");
        fs::create_dir(&target).unwrap();
        tried(stage, &["mount", &target], || {
            assert!(Command::new("umount").args(["-l", &target]).status().unwrap().success());
        });
    }
    assert!(!stage.inside(&["remount", "/"]).succeeded);
}

fn knobs(stage: &mut Stage) {
    assert!(!stage.inside(&["open-to-write", "/proc/sys/kernel/core_pattern"]).succeeded);
    if rustix::process::geteuid().is_root() {
        tried(stage, &["open-to-write", "/proc/sys/kernel/core_pattern"], || ());
        let node = stage.work("node");
        wrote(stage, "mknod node b 7 0", &node, || fs::remove_file(&node).unwrap());
    }
}

fn environment(stage: &mut Stage) {
    let mut caller = Command::new("sleep").arg("300").env("SOME_API_KEY", "sk-1").spawn().unwrap();
    let path = format!("/proc/{}/environ", caller.id());
    let outside = stage.shell_outside(&format!("cat {path}"));
    let inside = stage.shell_inside(&format!("cat {path}"));
    caller.kill().unwrap();
    caller.wait().unwrap();
    assert!(outside.said.contains("sk-1") && !inside.said.contains("sk-1"), "{}", inside.said);
    // Nothing is inherited that the command does not name.
    let mut plain = stage.command("sh", &["-c", "echo $SOME_API_KEY"]);
    plain.env("SOME_API_KEY", "sk-2");
    assert!(stage.behind(plain).said.contains("sk-2"));
    assert!(!stage.shell_inside("env").said.contains("CARGO"));
}

fn limits(stage: &mut Stage) {
    stage.limits.file_bytes = 1 << 20;
    tried(stage, &["big", &stage.work("big"), "2000000"], || ());
    assert!(stage.inside(&["big", &stage.work("small"), "500000"]).succeeded);
    stage.limits.processes = 1_000;
    stage.limits.open_files = 100;
    assert_eq!(stage.shell_inside("ulimit -n; ulimit -c").said, "100\n0\n");
}

fn hosts(stage: &mut Stage) {
    let (listed, other) = (web(), web());
    stage.hosts = vec![format!("localhost:{listed}"), format!("named.invalid:{other}")];
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _inside = runtime.enter();
    let get = |host: &str, port: u16| format!("http://{host}:{port}/");
    for port in [listed, other] {
        assert!(stage.outside(&["get", &get("localhost", port), "if-any"]).succeeded);
    }
    // One wall for all: its proxy goes on from call to call.
    let wall = stage.wall();
    let own = std::env::current_exe().unwrap().display().to_string();
    let inside = |url: &str| {
        let command = stage.command(&own, &["probe", "get", url, "needed"]);
        let output = wall.enclose(command, &stage.spec()).unwrap().output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if !stage.kind.is_full() {
        assert!(!inside(&get("localhost", listed)).0, "no hosts without namespaces");
        return;
    }
    for _ in 0..2 {
        assert_eq!(inside(&get("localhost", listed)), (true, String::new()));
    }
    let (reached, said) = inside(&get("localhost", other));
    assert!(!reached && said.contains("is not among the hosts that may be reached"), "{said}");
    let (reached, said) = inside(&get("127.0.0.1", listed));
    assert!(!reached && said.contains("403"), "{said}");
    assert!(!inside(&get("named.invalid", other)).0);
    // Around the proxy there is no way.
    assert!(!stage.inside(&["tcp", &listed.to_string()]).succeeded);
}

fn network_on(stage: &mut Stage) {
    stage.network = Network::On;
    let port = web().to_string();
    assert!(stage.inside(&["tcp", &port]).succeeded);
}
