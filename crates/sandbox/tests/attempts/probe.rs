//! What a command might try: each probe ends well if it succeeded, and says why if not.

use rustix::process::{Pid, Signal, kill_process, setsid};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long a network probe waits.
const WAIT: Duration = Duration::from_secs(5);

pub fn run(words: &[&str]) -> ExitCode {
    let done = match words {
        ["write", path] => fs::write(path, "written"),
        ["read", path] => fs::read(path).map(drop),
        ["tcp", port] => TcpStream::connect(("127.0.0.1", number(port))).map(drop),
        ["udp", port] => udp(number(port)),
        ["abstract", name] => {
            SocketAddr::from_abstract_name(name).and_then(|name| UnixStream::connect_addr(&name)).map(drop)
        }
        ["unix", path] => UnixStream::connect(path).map(drop),
        ["signal", pid] => signal(pid),
        ["swap", link, inside, outside] => swap(Path::new(link), inside, outside),
        ["daemon", beat] => daemon(beat),
        ["beat", beat] => heartbeat(Path::new(beat)),
        ["unshare"] => unshare(),
        ["mount", target] => rustix::mount::mount_bind("/", *target).map_err(io::Error::from),
        ["remount", target] => remount(target),
        ["open-to-write", path] => fs::OpenOptions::new().write(true).open(path).map(drop),
        ["get", url, proxy] => get(url, proxy),
        ["big", path, bytes] => fs::write(path, vec![0; bytes.parse().unwrap()]),
        ["variable", name] => std::env::var(name).map(drop).map_err(io::Error::other),
        _ => Err(io::Error::other(format!("no such probe: {words:?}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn number(port: &str) -> u16 {
    port.parse().unwrap()
}

/// Sends, and waits for the answer that shows it arrived.
fn udp(port: u16) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(WAIT))?;
    socket.send_to(b"hello", ("127.0.0.1", port))?;
    socket.recv(&mut [0; 8]).map(drop)
}

fn signal(pid: &str) -> io::Result<()> {
    let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).map_err(io::Error::from)
}

/// Swaps a link between a folder inside and one outside while writing through it.
fn swap(link: &Path, inside: &str, outside: &str) -> io::Result<()> {
    let other = link.with_extension("other");
    let mut last = Ok(());
    for round in 0..200 {
        for target in [inside, outside] {
            _ = fs::remove_file(&other);
            std::os::unix::fs::symlink(target, &other)?;
            fs::rename(&other, link)?;
            last = fs::write(link.join(format!("through-{round}")), "written");
        }
    }
    last
}

/// Leaves a process behind that belongs to nobody.
fn daemon(beat: &str) -> io::Result<()> {
    let own = std::env::current_exe()?;
    let script = format!("exec setsid '{}' probe beat '{beat}' </dev/null >/dev/null 2>&1 &", own.display());
    let status = Command::new("setsid").args(["sh", "-c", &script]).stdin(Stdio::null()).status()?;
    let until = Instant::now() + WAIT;
    while !Path::new(beat).exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    if status.success() && Path::new(beat).exists() { Ok(()) } else { Err(io::Error::other("it did not start")) }
}

fn heartbeat(beat: &Path) -> io::Result<()> {
    // Already a leader where it came from `setsid`.
    _ = setsid();
    let until = Instant::now() + Duration::from_secs(60);
    let mut file = fs::OpenOptions::new().create(true).append(true).open(beat)?;
    while Instant::now() < until {
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// By a program, since the call itself is no business of safe code.
fn unshare() -> io::Result<()> {
    succeeded(Command::new("unshare").args(["--user", "--map-root-user", "true"]))
}

fn remount(target: &str) -> io::Result<()> {
    succeeded(Command::new("mount").args(["-o", "remount,bind,rw", target]))
}

fn succeeded(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

/// Fetches by the proxy that the environment names, or directly.
fn get(url: &str, proxy: &str) -> io::Result<()> {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let (address, target) = match std::env::var("http_proxy") {
        Ok(proxy) => (proxy.trim_start_matches("http://").to_owned(), url.to_owned()),
        Err(_) if proxy == "if-any" => (authority.to_owned(), format!("/{path}")),
        Err(error) => return Err(io::Error::other(error)),
    };
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(WAIT))?;
    let request = format!("GET {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(io::Error::other(answer)) }
}
