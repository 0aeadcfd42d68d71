//! The proxy for listed hosts: one for the whole program, outside every wall, on listeners that come from behind them.

use crate::hosts::{HostPattern, Hosts, split};
use crate::relay;

use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net as unix;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Connections at once, of all calls together; further ones wait.
const CONNECTIONS: usize = 128;
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Time a client has for its request's head.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// Time for the name and the connection of one host.
const CONNECT_WAIT: Duration = Duration::from_secs(20);
/// Longest life of one connection.
const CONNECTION_LIFE: Duration = Duration::from_secs(3_600);
/// Addresses of a host that are tried.
const ADDRESSES: usize = 4;

/// Lives as long as its value.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub name: String,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Starts it on the runtime of the caller.
    pub fn start(hosts: Vec<HostPattern>) -> io::Result<Proxy> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|_| io::Error::other("hosts can be let through only from within an asynchronous runtime"))?;
        let name = format!("windlass-proxy-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let listener = unix::UnixListener::bind_addr(&unix::SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        let _inside = runtime.enter();
        let listener = UnixListener::from_std(listener)?;
        let door = Door { hosts: Hosts(hosts), room: Semaphore::new(CONNECTIONS) };
        let task = runtime.spawn(keepers(listener, Arc::new(door)));
        Ok(Proxy { name, _task: AbortOnDropHandle::new(task) })
    }
}

struct Door {
    hosts: Hosts,
    room: Semaphore,
}

/// Serves every keeper until it is gone.
async fn keepers(listener: UnixListener, door: Arc<Door>) {
    let mut walls = JoinSet::new();
    loop {
        tokio::select! {
            Ok((keeper, _)) = listener.accept() => {
                // Nobody but this user's own processes is answered.
                let own = rustix::process::geteuid().as_raw();
                if keeper.peer_cred().is_ok_and(|peer| peer.uid() == own || own == 0) {
                    walls.spawn(wall(keeper, door.clone()));
                }
            }
            Some(_) = walls.join_next() => {}
        }
    }
}

/// Answers on the listener of one wall until its keeper ends.
async fn wall(keeper: UnixStream, door: Arc<Door>) {
    let Ok(Some(listener)) = keeper.async_io(Interest::READABLE, || relay::take(&keeper)).await else { return };
    let listener = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    let Ok(listener) = listener else { return };
    let mut clients = JoinSet::new();
    let gone = async {
        let mut byte = [0];
        let mut keeper = keeper;
        // Whatever comes of it: it ended, or has nothing more to say.
        _ = keeper.read(&mut byte).await;
    };
    tokio::pin!(gone);
    loop {
        tokio::select! {
            () = &mut gone => return,
            Ok((client, _)) = listener.accept(), if clients.len() < CONNECTIONS => {
                let door = door.clone();
                clients.spawn(async move {
                    let _room = door.room.acquire().await;
                    // A client that breaks off has itself to blame; it is told where it can be told.
                    _ = timeout(CONNECTION_LIFE, serve(client, &door.hosts)).await;
                });
            }
            Some(_) = clients.join_next() => {}
        }
    }
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    host: String,
    port: u16,
    /// What the host is sent first; none for a tunnel.
    head: Option<Vec<u8>>,
}

async fn serve(mut client: TcpStream, hosts: &Hosts) -> io::Result<()> {
    let (head, rest) = match timeout(HEAD_WAIT, read_head(&mut client)).await {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return Err(error),
        Err(_) => return answer(&mut client, "408 Request Timeout", "the request did not come in time").await,
    };
    let Some(wish) = wish(&head) else {
        return answer(&mut client, "400 Bad Request", "this proxy takes CONNECT and plain http:// requests").await;
    };
    let host = match reach(&wish, hosts).await {
        Ok(host) => host,
        Err(why) => return answer(&mut client, "403 Forbidden", &why).await,
    };
    let mut host = host;
    match &wish.head {
        Some(head) => host.write_all(head).await?,
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    host.write_all(&rest).await?;
    copy_bidirectional(&mut client, &mut host).await.map(drop)
}

async fn answer(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("windlass: {why}\n");
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all((head + &body).as_bytes()).await?;
    client.shutdown().await
}

/// The head of a request up to its empty line, and what came after it.
async fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut read = Vec::with_capacity(1 << 10);
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            let head = String::from_utf8(read).map_err(|_| io::Error::other("the head is no text"))?;
            return Ok((head, rest));
        }
        if read.len() > HEAD_BYTES || client.read_buf(&mut read).await? == 0 {
            return Err(io::Error::other("the head has no end"));
        }
    }
}

fn wish(head: &str) -> Option<Wish> {
    let (first, fields) = head.split_once("\r\n")?;
    let [method, target, version] = first.split(' ').collect::<Vec<_>>().try_into().ok()?;
    if method == "CONNECT" {
        let (host, port) = split(target)?;
        return Some(Wish { host: host.to_owned(), port: port?, head: None });
    }
    let rest = target.strip_prefix("http://")?;
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    if authority.contains('@') {
        return None;
    }
    let (host, port) = split(authority)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    // One request, one connection: the next may be meant for another host.
    let mut sent = format!("{method} {slash}{path} {version}\r\nConnection: close\r\n");
    for field in fields.trim_end().split("\r\n").filter(|field| !field.is_empty()) {
        let name = field.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !["connection", "proxy-connection", "proxy-authorization", "keep-alive"].contains(&name.as_str()) {
            sent += field;
            sent += "\r\n";
        }
    }
    sent += "\r\n";
    Some(Wish { host: host.to_owned(), port: port.unwrap_or(80), head: Some(sent.into_bytes()) })
}

/// Connects to a listed host, at an address it may have: looked at, then dialled, with nothing looked up between.
async fn reach(wish: &Wish, hosts: &Hosts) -> Result<TcpStream, String> {
    let Wish { host, port, .. } = wish;
    if !hosts.names(host, *port) {
        return Err(format!(
            "{host}:{port} is not among the hosts that may be reached; the user can add it to sandbox.hosts"
        ));
    }
    let work = async {
        let found = tokio::net::lookup_host((host.trim_end_matches('.'), *port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| format!("{host}: {error}"))?.collect();
        let mut last = format!("{host} has no address");
        for address in found.into_iter().take(ADDRESSES) {
            if !hosts.leads_to(host, address.ip(), *port) {
                last = format!("{host} leads to {}, which is no public address and not listed itself", address.ip());
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = format!("{host} ({}): {error}", address.ip()),
            }
        }
        Err(last)
    };
    timeout(CONNECT_WAIT, work)
        .await
        .unwrap_or_else(|_| Err(format!("{host} did not answer in {} s", CONNECT_WAIT.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_tunnels_or_sent_on_for_one_connection() {
        let tunnel = wish("CONNECT docs.rs:443 HTTP/1.1\r\nHost: docs.rs\r\n\r\n").unwrap();
        assert_eq!(tunnel, Wish { host: "docs.rs".into(), port: 443, head: None });
        let head = "GET http://docs.rs?q=1 HTTP/1.1\r\nHost: docs.rs\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n";
        let plain = wish(head).unwrap();
        let sent = String::from_utf8(plain.head.unwrap()).unwrap();
        assert_eq!(sent, "GET /?q=1 HTTP/1.1\r\nConnection: close\r\nHost: docs.rs\r\n\r\n");
        for bad in [
            "GET / HTTP/1.1\r\n\r\n",
            "CONNECT docs.rs HTTP/1.1\r\n\r\n",
            "GET http://a@b/ HTTP/1.1\r\n\r\n",
            "x\r\n\r\n",
        ] {
            assert_eq!(wish(bad), None, "{bad}");
        }
    }
}
