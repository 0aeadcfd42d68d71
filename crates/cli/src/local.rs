//! Looking for a model server on this machine; only where nothing else names a model.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Milliseconds a look may take in all.
pub const LOOK_MS: u64 = 300;
/// Bytes of an answer that are read.
const ANSWER_BYTES: usize = 1 << 20;

/// A server that many people run at a port everybody knows.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The provider's name.
    pub provider: &'static str,
    pub title: &'static str,
    pub port: u16,
    /// Where it lists its models.
    pub path: &'static str,
}

/// A server that answered, and the models it has.
#[derive(Clone, Debug, PartialEq)]
pub struct Answering {
    pub provider: &'static str,
    pub title: &'static str,
    pub port: u16,
    pub models: Vec<String>,
}

pub const CANDIDATES: [Candidate; 4] = [
    Candidate { provider: "ollama", title: "Ollama", port: 11434, path: "/api/tags" },
    Candidate { provider: "lmstudio", title: "LM Studio", port: 1234, path: "/v1/models" },
    Candidate { provider: "llamacpp", title: "llama.cpp", port: 8080, path: "/v1/models" },
    Candidate { provider: "vllm", title: "vLLM", port: 8000, path: "/v1/models" },
];

/// Asks all candidates at once; those that answered within 300 ms, in their order.
pub fn look(candidates: &[Candidate]) -> Vec<Answering> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = candidates.iter().map(|candidate| scope.spawn(|| ask(candidate))).collect();
        asked.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    })
}

fn ask(candidate: &Candidate) -> Option<Answering> {
    let until = Instant::now() + Duration::from_millis(LOOK_MS);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, candidate.port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_millis(LOOK_MS)).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(LOOK_MS))).ok()?;
    // HTTP/1.0: the answer comes whole and ends with the connection.
    let head = format!(
        "GET {} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nAccept: application/json\r\n\r\n",
        candidate.path, candidate.port
    );
    stream.write_all(head.as_bytes()).ok()?;
    let models = models(&read(&mut stream, until)?)?;
    Some(Answering { provider: candidate.provider, title: candidate.title, port: candidate.port, models })
}

/// What comes until the connection, the time or the limit ends.
fn read(stream: &mut TcpStream, until: Instant) -> Option<Vec<u8>> {
    let mut answer = vec![];
    let mut piece = [0; 16 * 1024];
    while answer.len() < ANSWER_BYTES {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
        let Some(left) = left else { break };
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
    Some(answer)
}

/// The names in an answer of Ollama's (`models[].name`) or of the others (`data[].id`).
fn models(answer: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    if head.split_ascii_whitespace().nth(1) != Some("200") {
        return None;
    }
    let body: Value = serde_json::from_str(body.trim()).ok()?;
    let (list, name) = match (body.get("models"), body.get("data")) {
        (_, Some(data)) => (data, "id"),
        (Some(models), None) => (models, "name"),
        _ => return None,
    };
    let names = list.as_array()?.iter().filter_map(|model| model.get(name)?.as_str());
    Some(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn serving(answer: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        port
    }

    fn at(port: u16) -> Candidate {
        Candidate { port, ..CANDIDATES[0] }
    }

    #[test]
    fn servers_that_answer_tell_their_models() {
        let ollama = serving("HTTP/1.0 200 OK\r\n\r\n{\"models\":[{\"name\":\"qwen3:8b\"},{\"name\":\"other\"}]}");
        let vllm = serving("HTTP/1.0 200 OK\r\n\r\n{\"data\":[{\"id\":\"meta/llama\"}]}");
        let stranger = serving("HTTP/1.0 404 Not Found\r\n\r\nnothing here");
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let found = look(&[at(ollama), at(vllm), at(stranger), at(closed)]);
        let models: Vec<&[String]> = found.iter().map(|one| &*one.models).collect();
        assert_eq!(models, [vec!["qwen3:8b".to_owned(), "other".into()], vec!["meta/llama".to_owned()]]);
    }

    #[test]
    fn a_server_that_says_nothing_is_passed_over() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(look(&[at(silent.local_addr().unwrap().port())]), []);
    }
}
