//! A component that tries what it is told to: `{"do": WHAT, "on": WHICH}` on stdin.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, process};

static CALLS: AtomicU32 = AtomicU32::new(0);

fn main() {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
    let words: Vec<&str> = input.split('"').collect();
    let (what, on) = (words[3], words.get(7).copied().unwrap_or_default());
    match attempt(what, on) {
        Ok(said) => println!("{said}"),
        Err(why) => {
            eprintln!("{why}");
            process::exit(1);
        }
    }
}

fn attempt(what: &str, on: &str) -> Result<String, String> {
    let told = |error: std::io::Error| format!("{on}: {:?}", error.kind());
    Ok(match what {
        "say" => on.to_owned(),
        "json" => "{\"answer\": 42}".to_owned(),
        "nothing" => String::new(),
        "read" => fs::read_to_string(on).map_err(told)?,
        "write" => fs::write(on, "written").map(|()| "written".to_owned()).map_err(told)?,
        "remove" => fs::remove_file(on).map(|()| "removed".to_owned()).map_err(told)?,
        "list" => {
            let mut names: Vec<String> =
                fs::read_dir(on).map_err(told)?.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.join(" ")
        }
        "env" => env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
        "arguments" => env::args().collect::<Vec<_>>().join(" "),
        "connect" => TcpStream::connect(on).map(|_| "connected".to_owned()).map_err(told)?,
        "send" => {
            let socket = UdpSocket::bind("0.0.0.0:0").map_err(told)?;
            socket.send_to(b"x", on).map(|_| "sent".to_owned()).map_err(told)?
        }
        "resolve" => format!("{:?}", on.to_socket_addrs().map_err(told)?.next()),
        "year" => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            (1970 + since.as_secs() / 31_556_952).to_string()
        }
        "count" => (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string(),
        "spin" => spin(),
        "work" => (0..5_000_000u64).fold(1u64, |sum, n| std::hint::black_box(sum.wrapping_mul(n | 1))).to_string(),
        "sleep" => {
            let begun = Instant::now();
            std::thread::sleep(Duration::from_millis(on.parse().unwrap()));
            (begun.elapsed() >= Duration::from_millis(1)).to_string()
        }
        "take" => {
            let megabytes: usize = on.parse().unwrap();
            let taken: Vec<Vec<u8>> = (0..megabytes).map(|_| vec![1; 1 << 20]).collect();
            format!("{} MB", std::hint::black_box(taken).len())
        }
        "print" => {
            let line = [b'x'; 1024];
            for _ in 0..on.parse::<usize>().unwrap() {
                std::io::stdout().write_all(&line).map_err(told)?;
            }
            String::new()
        }
        "complain" => {
            for _ in 0..on.parse::<usize>().unwrap() {
                eprintln!("{}", "complaint ".repeat(100));
            }
            "went well all the same".to_owned()
        }
        "open" => {
            let files: Result<Vec<fs::File>, _> = (0..5_000).map(|_| fs::File::open(on)).collect();
            format!("{} files", files.map_err(told)?.len())
        }
        "panic" => panic!("the wheels came off"),
        "recurse" => recurse(&mut [0; 64]).to_string(),
        other => return Err(format!("{other} is unknown")),
    })
}

fn spin() -> ! {
    loop {
        std::hint::black_box(());
    }
}

#[allow(unconditional_recursion)]
fn recurse(bytes: &mut [u8; 64]) -> u64 {
    let mut more = std::hint::black_box(*bytes);
    more[0] = more[0].wrapping_add(1);
    recurse(&mut more) + u64::from(std::hint::black_box(&more)[1])
}
