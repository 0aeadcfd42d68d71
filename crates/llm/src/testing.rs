//! What the tests of the protocols share.

use crate::endpoint::Target;
use crate::frames::Frames;
use crate::protocol::{Decode, Progress, Protocol, Unreadable};
use crate::{
    ApiKey, Auth, BlockKind, Delta, Endpoint, Http, HttpOptions, Memo, ModelEvent, Quirk, Request, SystemSection,
    ToolSpec,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use windlass_kernel::{BlobRef, CallId, ContentBlock, Message, Parameters, ToolResult, ToolUse};

pub(crate) fn target(provider: &str) -> Target {
    Target {
        http: Http::new(HttpOptions::default()).unwrap(),
        endpoint: Endpoint {
            provider: provider.into(),
            base_url: "http://127.0.0.1:1".into(),
            auth: Auth::Key(ApiKey::new("key")),
            ..Endpoint::default()
        },
        model: "large-1".into(),
    }
}

/// The target with these quirks.
pub(crate) fn quirky(provider: &str, quirks: &[Quirk]) -> Target {
    let mut target = target(provider);
    target.endpoint.quirks = quirks.to_vec();
    target
}

/// A request with one fixed and one changing section, one tool and one picture among its blobs.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let section = |name: &str, fixed| SystemSection { name: name.into(), text: format!("The {name}."), fixed };
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    Request {
        system: [section("base", true), section("folder", false)].into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [ToolSpec { name: "read".into(), description: "Reads a file.".into(), schema }].into(),
        parameters: Parameters { max_tokens: 1000, ..Parameters::default() },
        output_schema: None,
        cache_key: "session-1".into(),
        blobs: Arc::new(HashMap::from([("hash".to_owned(), Bytes::from_static(b"picture"))])),
        memo: Memo::default(),
    }
}

pub(crate) fn body<P: Protocol>(provider: &str, request: &Request) -> Value {
    body_for::<P>(&target(provider), request)
}

pub(crate) fn body_for<P: Protocol>(target: &Target, request: &Request) -> Value {
    P::encode(target, request).into_body().json()
}

pub(crate) fn messages<P: Protocol>(provider: &str, request: &Request) -> Value {
    body::<P>(provider, request)["messages"].take()
}

pub(crate) fn call(id: &str, name: &str, input: Value) -> ContentBlock {
    ContentBlock::ToolUse(ToolUse { id: CallId::from(id), name: name.into(), input, signature: None })
}

pub(crate) fn result(id: &str, content: Vec<ContentBlock>, is_error: bool) -> ContentBlock {
    ContentBlock::ToolResult(ToolResult { tool_use_id: CallId::from(id), content, is_error })
}

pub(crate) fn image() -> ContentBlock {
    ContentBlock::Image { media_type: "image/png".into(), blob: BlobRef { hash: "hash".into(), bytes: 7 } }
}

pub(crate) fn document() -> ContentBlock {
    ContentBlock::Document {
        media_type: "application/pdf".into(),
        blob: BlobRef { hash: "hash".into(), bytes: 7 },
        title: Some("plan.pdf".into()),
    }
}

/// What is sent of pictures and documents, told and brought by a tool, to a model that takes neither. What it takes
/// otherwise goes out as ever, from the same memo.
pub(crate) fn without_media<P: Protocol>(mut target: Target) -> Value {
    let request = request(vec![
        Message::user(vec![ContentBlock::text("See"), image(), document()]),
        Message::assistant(vec![call("a", "read", json!({})), call("b", "read", json!({}))]),
        Message::user(vec![
            result("a", vec![ContentBlock::text("a.png"), image()], false),
            result("b", vec![document()], false),
        ]),
    ]);
    let count = |body: &Value| body.to_string().matches("cGljdHVyZQ==").count();
    let mut sent = |quirks: &[Quirk]| {
        target.endpoint.quirks = quirks.to_vec();
        body_for::<P>(&target, &request)
    };
    let whole = sent(&[]);
    assert_eq!(count(&whole), 4);
    let neither = sent(&[Quirk::NoImages, Quirk::NoPdfs]);
    assert_eq!(count(&neither), 0, "{neither}");
    assert_eq!(count(&sent(&[Quirk::NoImages])), 2);
    assert_eq!(count(&sent(&[Quirk::NoPdfs])), 2);
    assert_eq!(sent(&[]), whole);
    neither
}

/// Decodes a stream that comes in `pieces`; one batch of events per piece.
pub(crate) fn decode<P: Protocol>(pieces: &[&[u8]]) -> Result<Vec<Vec<ModelEvent>>, String> {
    let mut decoder = P::decoder(&target("anthropic"), &request(vec![]));
    let (mut sse, mut batches) = (P::Frames::default(), Vec::new());
    for place in 0..=pieces.len() {
        match pieces.get(place) {
            Some(piece) => sse.push(piece),
            None => sse.finish(),
        }
        while let Some(event) = sse.next()? {
            decoder.event(&event).map_err(|error| match error {
                Unreadable::Reported(said) => format!("reported: {}", said.message),
                Unreadable::Broken(cause) => format!("broken: {cause}"),
            })?;
            if decoder.progress() == Progress::Ended {
                break;
            }
        }
        batches.push(decoder.take());
    }
    if !decoder.end() {
        return Err("cut".into());
    }
    batches.push(decoder.take());
    Ok(batches)
}

/// The same events with one delta per block, right before its end.
pub(crate) fn merged(batches: Vec<Vec<ModelEvent>>) -> Vec<ModelEvent> {
    let mut deltas: BTreeMap<u32, Delta> = BTreeMap::new();
    let mut events = Vec::new();
    for event in batches.into_iter().flatten() {
        match event {
            ModelEvent::Delta { index, delta } => match (deltas.get_mut(&index), delta) {
                (Some(Delta::Text(had)), Delta::Text(more)) => had.push_str(&more),
                (Some(Delta::Thinking(had)), Delta::Thinking(more)) => had.push_str(&more),
                (Some(Delta::Input(had)), Delta::Input(more)) => had.push_str(&more),
                (None, delta) => drop(deltas.insert(index, delta)),
                (had, delta) => panic!("block {index} changed its kind: {had:?}, then {delta:?}"),
            },
            ModelEvent::BlockFinished { index, .. } => {
                events.extend(deltas.remove(&index).map(|delta| ModelEvent::Delta { index, delta }));
                events.push(event);
            }
            event => events.push(event),
        }
    }
    assert!(deltas.is_empty(), "deltas of blocks that never ended: {deltas:?}");
    events
}

/// Decodes `stream` whole and cut at every byte, which must not matter, and tells it one event a line.
pub(crate) fn story<P: Protocol>(stream: impl AsRef<[u8]>) -> String {
    let bytes = stream.as_ref();
    let whole = merged(decode::<P>(&[bytes]).unwrap());
    for at in 0..=bytes.len() {
        let cut = merged(decode::<P>(&[&bytes[..at], &bytes[at..]]).unwrap());
        assert_eq!(cut, whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(merged(decode::<P>(&single).unwrap()), whole, "byte by byte");
    tell(&whole)
}

pub(crate) fn tell(events: &[ModelEvent]) -> String {
    let mut out = String::new();
    for event in events {
        let line = match event {
            ModelEvent::Accepted { body_bytes } => format!("accepted {body_bytes}"),
            ModelEvent::Started { id, model, .. } => format!("started {id} {model}"),
            ModelEvent::BlockStarted { index, kind: BlockKind::ToolUse { id, name } } => {
                format!("{index} begins: call {id} of {name}")
            }
            ModelEvent::BlockStarted { index, kind } => format!("{index} begins: {kind:?}"),
            ModelEvent::Delta { index, delta } => format!("{index} {delta:?}"),
            ModelEvent::BlockFinished { index, block } => {
                format!("{index} ends: {}", serde_json::to_string(block).unwrap())
            }
            ModelEvent::Finished { stop, raw_stop, usage } => {
                format!("finished {stop:?} {raw_stop:?} {}", serde_json::to_string(usage).unwrap())
            }
        };
        writeln!(out, "{line}").unwrap();
    }
    out
}

/// The blocks of a decoded stream, as the next request would carry them.
pub(crate) fn heard<P: Protocol>(stream: &str) -> Message {
    let events = merged(decode::<P>(&[stream.as_bytes()]).unwrap());
    Message::assistant(
        events
            .into_iter()
            .filter_map(|event| match event {
                ModelEvent::BlockFinished { block, .. } => Some(block),
                _ => None,
            })
            .collect(),
    )
}
