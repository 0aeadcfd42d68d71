//! What goes wrong between a vendor and its client, in every protocol.

mod common;

use common::*;
use std::io::{Read, Write};

const BLOCKS: &str = "blocks = [{ text = \"hello\" }, { tool = \"read\", input = { path = \"ünder\" } }]";

fn with(keys: &str) -> windlass_mock::Server {
    start(&format!("[[step]]\n{keys}\n{BLOCKS}"))
}

#[test]
fn pace_changes_no_word_in_any_protocol() {
    for path in ALL {
        let expected = Talk::new(path, "go").ask(&with("")).said();
        assert!(expected.contains("hello") && expected.contains("ünder"), "{expected} on {path}");
        for pace in ["fragment = 1", "split = 7", "crlf = true\nping_every = 2", "gap_ms = 1", "body_delay_ms = 5"] {
            let answer = Talk::new(path, "go").ask(&with(pace));
            assert_eq!(answer.said(), expected, "{pace} on {path}");
            assert!(answer.whole);
        }
    }
}

#[test]
fn a_cut_falls_where_it_was_told_to_in_every_protocol() {
    for path in ALL {
        let cut = |place: &str| {
            let answer = Talk::new(path, "go").ask(&with(&format!("cut = {{ {place} }}")));
            assert!(!answer.whole, "{place} on {path}");
            answer
        };
        assert_eq!(cut("after_events = 3").events().len(), 3);
        assert_eq!(cut("in_block = 0, after_chars = 3").said(), "hel");
        assert_eq!(cut("after_bytes = 50").body.len(), 50);
        let inside = cut("in_block = 1, after_chars = 5").said();
        assert_eq!(inside, if path == GEMINI { "hello" } else { "hello{\"pat" }, "on {path}");
    }
}

#[test]
fn a_split_with_a_gap_drips() {
    let answer = Talk::new(RESPONSES, "go").ask(&start("[[step]]\nraw_stream = \"abcdef\"\nsplit = 2\ngap_ms = 1"));
    assert_eq!((answer.text().as_str(), answer.chunks), ("abcdef", vec![2, 2, 2]));
}

#[test]
fn gzip_comes_event_by_event_if_it_is_taken() {
    let server = with("gzip = true\ngap_ms = 1");
    for path in ALL {
        let talk = Talk::new(path, "go");
        let plain = talk.ask(&server);
        assert!(!plain.head.contains("content-encoding"));
        let headers = "anthropic-version: 1\r\nauthorization: Bearer k\r\naccept-encoding: gzip\r\n";
        let packed = exchange(&server, "POST", path, headers, &talk.body().to_string());
        assert!(packed.head.contains("content-encoding: gzip"), "{}", packed.head);
        assert_eq!(packed.chunks.len(), plain.chunks.len() + 1, "an event in each, and the end, on {path}");
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut body).unwrap();
        assert_eq!(common::Answer { body, ..packed }.said(), plain.said());
        // What came of the first event can be read before the second is there.
        let mut first = flate2::write::GzDecoder::new(Vec::new());
        first.write_all(&packed_first(&server, path, headers, &talk)).unwrap();
        first.flush().unwrap();
        assert_eq!(first.get_ref().len(), plain.chunks[0], "on {path}");
    }
}

fn packed_first(server: &windlass_mock::Server, path: &str, headers: &str, talk: &Talk) -> Vec<u8> {
    let answer = exchange(server, "POST", path, headers, &talk.body().to_string());
    answer.body[..answer.chunks[0]].to_vec()
}

#[test]
fn a_whole_answer_is_compressed_too() {
    let server = with("gzip = true");
    let talk = Talk { stream: false, ..Talk::new(OPENAI, "go") };
    let headers = "authorization: Bearer k\r\naccept-encoding: gzip\r\n";
    let packed = exchange(&server, "POST", OPENAI, headers, &talk.body().to_string());
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("hello") && packed.whole);
}

#[test]
fn events_come_in_another_order_twice_or_not_at_all() {
    for path in ALL {
        let plain = Talk::new(path, "go").ask(&with("")).events();
        let other = Talk::new(path, "go").ask(&with("order = [0, 2, 1, 1]")).events();
        assert_eq!(other, [0, 2, 1, 1].map(|at: usize| plain[at].clone()), "on {path}");
        let error = Talk::new(path, "go").ask(&with("order = [99]")).error();
        assert_eq!(error, format!("400 {} (step 1)", missing(event_count(path))), "on {path}");
    }
    let pings = Talk::new(ANTHROPIC, "go").ask(&with("order = [0, 1]\nping_every = 1")).events();
    assert_eq!(
        pings.iter().map(|event| event["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["message_start", "ping", "content_block_start"]
    );
}

fn missing(count: usize) -> String {
    format!("the script's `order` names an event that the answer does not have: it has {count}, counted from 0")
}

/// Events of the answer, the end mark of Chat Completions among them.
fn event_count(path: &'static str) -> usize {
    Talk::new(path, "go").ask(&with("")).events().len() + usize::from(path == OPENAI)
}

#[test]
fn one_event_is_garbled() {
    for path in [ANTHROPIC, OPENAI, RESPONSES, GEMINI, VERTEX] {
        let plain = Talk::new(path, "go").ask(&with("")).text();
        let spoilt = Talk::new(path, "a").ask(&with("garble = { event = 1, with = '{\"half ${i}' }")).text();
        let differing: Vec<(&str, &str)> = plain.lines().zip(spoilt.lines()).filter(|(a, b)| a != b).collect();
        assert_eq!(differing.iter().map(|(_, b)| *b).collect::<Vec<_>>(), ["data: {\"half 0"], "on {path}");
        let flipped = Talk::new(path, "go").ask(&with("garble = { event = 1 }")).body;
        assert_eq!(flipped.iter().zip(plain.as_bytes()).filter(|(a, b)| a != b).count(), 1);
    }
    let spoilt = Talk::new(BEDROCK, "go").ask(&with("garble = { event = 1, with = \"no JSON\" }"));
    assert!(spoilt.whole && frames(&spoilt.body).len() == event_count(BEDROCK));
    let flipped = Talk::new(BEDROCK, "go").ask(&with("garble = { event = 1 }"));
    let checked = std::panic::catch_unwind(|| frames(&flipped.body));
    assert!(checked.is_err(), "a checksum tells");
}

#[test]
fn a_raw_stream_is_sent_letter_by_letter() {
    for path in ALL {
        let server = start("[[step]]\ngap_ms = 1\nraw_stream = [\": ${i}\\n\", \"data: {\\n\\n\"]");
        let answer = Talk::new(path, "go").ask(&server);
        assert_eq!((answer.text().as_str(), answer.chunks.len(), answer.whole), (": 0\ndata: {\n\n", 2, true));
        let kind = if path == BEDROCK { "application/vnd.amazon.eventstream" } else { "text/event-stream" };
        assert!(answer.head.contains(kind));
        let whole = Talk { stream: false, ..Talk::new(path, "go") }.ask(&server);
        assert!(whole.head.contains("content-type: application/json"));
        let nothing = Talk::new(path, "go").ask(&start("[[step]]\nraw_stream = []"));
        assert_eq!((nothing.status, nothing.body.len(), nothing.whole), (200, 0, true));
        assert!(nothing.head.contains(kind));
    }
    let error = Talk::new(BEDROCK, "go").ask(&start(
        "[[step]]\nraw_stream = []\nerror_event = { type = \"modelStreamErrorException\", message = \"lost\" }",
    ));
    assert_eq!(error.events(), [serde_json::json!({"exception": "modelStreamErrorException", "message": "lost"})]);
}

#[test]
fn the_streams_type_its_line_ends_and_its_byte_order_mark() {
    for path in ALL {
        let plain = Talk::new(path, "go").ask(&with("")).body;
        let other = Talk::new(path, "go").ask(&with("content_type = \"text/plain\""));
        assert!(other.head.contains("content-type: text/plain") && !other.head.contains("event"), "{}", other.head);
        let lines = |end: &str| Talk::new(path, "go").ask(&with(&format!("bom = true\ncrlf = {end}"))).body;
        if path == BEDROCK {
            assert_eq!(lines("\"cr\"").len(), plain.len(), "frames have no lines");
            continue;
        }
        let text = String::from_utf8(plain.clone()).unwrap();
        assert_eq!(lines("\"cr\""), format!("\u{feff}{}", text.replace('\n', "\r")).into_bytes());
        assert_eq!(lines("true"), lines("\"crlf\""));
        assert_eq!(lines("\"lf\"").len(), plain.len() + 3);
    }
}

#[test]
fn the_head_is_there_before_a_body_that_is_late() {
    let server = with("body_delay_ms = 60_000");
    let headers = "anthropic-version: 1\r\nauthorization: Bearer k\r\n";
    let mut stream = send(&server, "POST", ANTHROPIC, headers, &Talk::new(ANTHROPIC, "go").body().to_string());
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
}
