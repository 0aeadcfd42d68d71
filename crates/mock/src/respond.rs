//! From a request's bytes to what is answered: routes, the vendor's checks, the script.

use crate::answer::{self, Given};
use crate::choose::{self, Tally};
use crate::log::Line;
use crate::play::{Player, Source, Wire};
use crate::refusal::Refusal;
use crate::request::{Protocol, Request};
use crate::script::{Fault, Key, MessageReply, Pace, Reply, Script, Step};
use crate::template::{self, Names};
use crate::{anthropic, check, openai};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

/// What goes back: a head, and what makes its body.
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub source: Source,
    pub pace: Pace,
    pub fault: Option<Fault>,
}

/// A request as it came in.
pub struct Asked<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a Bytes,
    pub seq: u64,
}

/// The protocol that a path speaks, if it asks a model.
pub fn protocol(path: &str) -> Option<Protocol> {
    let path = path.trim_end_matches('/');
    if path.ends_with("/messages") {
        Some(Protocol::Anthropic)
    } else if path.ends_with("/chat/completions") {
        Some(Protocol::OpenAi)
    } else {
        None
    }
}

/// Answers any request; what was found goes into the log line.
pub fn respond(script: &Script, tally: &Tally, asked: &Asked, line: &mut Line) -> Response {
    let mut response = match protocol(asked.path).filter(|_| asked.method == Method::POST) {
        Some(protocol) => {
            line.protocol = Some(protocol.as_str());
            let answered = model(script, tally, protocol, asked, line);
            answered.unwrap_or_else(|refusal| refused(&refusal, protocol, asked.seq, line))
        }
        None => route(script, asked, line),
    };
    line.status = response.status.as_u16();
    let id = HeaderValue::from_str(&request_id(asked.seq)).expect("digits and letters are a header value");
    response.headers.entry("request-id").or_insert(id.clone());
    response.headers.entry("x-request-id").or_insert(id);
    response
}

fn request_id(seq: u64) -> String {
    format!("req_{seq:06}")
}

fn whole(status: u16, kind: &'static str, body: impl Into<Bytes>) -> Response {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
    // Parsing has seen that a script's status is one.
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Response { status, headers, source: Source::Whole(body.into()), pace: Pace::default(), fault: None }
}

/// Refuses a request before it is looked into.
pub fn refuse(refusal: &Refusal, asked: &Asked, line: &mut Line) -> Response {
    line.status = refusal.status;
    refused(refusal, protocol(asked.path).unwrap_or(Protocol::Anthropic), asked.seq, line)
}

fn refused(refusal: &Refusal, protocol: Protocol, seq: u64, line: &mut Line) -> Response {
    line.error = Some(refusal.message.clone());
    let body = refusal.body(protocol, &request_id(seq)).to_string();
    whole(refusal.status, "application/json", body)
}

/// What asks no model.
fn route(script: &Script, asked: &Asked, line: &mut Line) -> Response {
    let path = asked.path.trim_end_matches('/');
    let get = asked.method == Method::GET || asked.method == Method::HEAD;
    if get && path.is_empty() {
        return whole(200, "application/json", json!({"ok": true}).to_string());
    }
    if get && path.ends_with("/models") {
        return whole(200, "application/json", models(&script.models).to_string());
    }
    if asked.method == Method::POST && path.ends_with("/messages/count_tokens") {
        let tokens = asked.body.len().div_ceil(4);
        return whole(200, "application/json", json!({"input_tokens": tokens}).to_string());
    }
    let (method, path) = (asked.method, asked.path);
    let ways = "POST …/messages, …/messages/count_tokens, …/chat/completions; GET …/models, /";
    let refusal = Refusal::new(404, format!("no route for {method} {path}: there are {ways}"));
    refused(&refusal, Protocol::Anthropic, asked.seq, line)
}

/// One list that both vendors' clients can read.
fn models(names: &[String]) -> Value {
    let model = |name: &String| {
        json!({"id": name, "type": "model", "object": "model", "display_name": name, "owned_by": "mock",
            "created": 1_700_000_000, "created_at": "2023-11-14T22:13:20Z"})
    };
    let data: Vec<Value> = names.iter().map(model).collect();
    json!({"object": "list", "data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

fn model(
    script: &Script,
    tally: &Tally,
    protocol: Protocol,
    asked: &Asked,
    line: &mut Line,
) -> Result<Response, Refusal> {
    admit(&script.key, protocol, asked.headers)?;
    let request = Request::read(asked.body)
        .map_err(|e| Refusal::invalid(format!("the body is not the JSON of a request: {e}")))?;
    line.model = request.model.as_deref().unwrap_or_default().to_string();
    line.stream = request.stream.unwrap_or(false);
    line.messages = request.messages().len();
    line.tool_results = request.result_count();
    line.round = request.round();
    check::check(protocol, &request)?;
    let talk = choose::talk(script, &request);
    line.sid.clone_from(&talk.sid);
    let choice = choose::choose(&talk, &request, tally)?;
    let step = choice.step;
    line.step = Some(step.name.clone());
    demand(step, &request)?;
    let names = names(step, &request, talk.sid)?;
    let given = Given { request: &request, body_bytes: asked.body.len(), names, nth: choice.nth };
    play(step, protocol, given, asked.seq, line)
}

/// Looks for the key, as the vendor does before anything else.
fn admit(key: &Key, protocol: Protocol, headers: &HeaderMap) -> Result<(), Refusal> {
    if protocol == Protocol::Anthropic && !headers.contains_key("anthropic-version") {
        return Err(Refusal::invalid("anthropic-version: header is required"));
    }
    if *key == Key::None {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let own = text("x-api-key").filter(|_| protocol == Protocol::Anthropic);
    let missing = match protocol {
        Protocol::Anthropic => "x-api-key header is required",
        Protocol::OpenAi => "You didn't provide an API key. Send it as: Authorization: Bearer YOUR_KEY.",
    };
    let given = own.or(bearer).filter(|given| !given.is_empty()).ok_or_else(|| Refusal::new(401, missing))?;
    match key {
        Key::Exactly(key) if key != given => {
            let wrong =
                if protocol == Protocol::Anthropic { "invalid x-api-key" } else { "Incorrect API key provided." };
            Err(Refusal::new(401, wrong))
        }
        _ => Ok(()),
    }
}

/// What the step wants of the request.
fn demand(step: &Step, request: &Request) -> Result<(), Refusal> {
    if let Some(tool) = step.needs_tools.iter().find(|tool| !request.offers(tool)) {
        let message = format!("the script calls tool \"{tool}\", which the request does not offer");
        return Err(Refusal::invalid(format!("{message} ({})", step.name)));
    }
    for condition in &step.expect {
        if let Some(unmet) = condition.unmet(request) {
            return Err(Refusal::invalid(format!("the script expects of the request ({}): {unmet}", step.name)));
        }
    }
    Ok(())
}

fn names(step: &Step, request: &Request, sid: String) -> Result<Names, Refusal> {
    let mut names = Names::from([("i".into(), request.round().to_string()), ("sid".into(), sid)]);
    for (name, capture) in &step.captures {
        let text = capture.take(name, request);
        let text = text.map_err(|e| Refusal::invalid(format!("the script's {e} ({})", step.name)))?;
        names.insert(name.clone(), text);
    }
    Ok(names)
}

fn play(step: &Step, protocol: Protocol, mut given: Given, seq: u64, line: &mut Line) -> Result<Response, Refusal> {
    let mut response = match &step.reply {
        Reply::Message(reply) => message(step, reply, protocol, &mut given, seq)?,
        Reply::Error { refusal, headers } => {
            let mut response = refused(refusal, protocol, seq, line);
            response.headers.extend(headers.clone());
            response
        }
        Reply::Raw { status, headers, body } => {
            // A raw body has no calls: it is the first and only one of its message.
            given.names.extend([("k".into(), "0".into()), ("n".into(), given.nth.to_string())]);
            let body = template::fill(body, &given.names).into_owned();
            let mut response = whole(*status, "text/plain; charset=utf-8", body);
            response.headers.extend(headers.clone());
            response
        }
    };
    response.pace = step.pace;
    response.fault.clone_from(&step.fault);
    Ok(response)
}

fn message(
    step: &Step,
    reply: &MessageReply,
    protocol: Protocol,
    given: &mut Given,
    seq: u64,
) -> Result<Response, Refusal> {
    let native = reply.blocks.iter().any(|block| matches!(block, crate::script::Block::Native(_)));
    if native && protocol == Protocol::OpenAi {
        let message =
            format!("the script answers with a `native` block, which this protocol does not have ({})", step.name);
        return Err(Refusal::invalid(message));
    }
    let request = given.request;
    let id = format!("{seq:06}");
    let model = request.model.as_deref().unwrap_or_default().to_string();
    let chunk_head = openai::chunk_head(&id, &model);
    let include_usage = request.stream_options.as_ref().is_some_and(|options| options.include_usage);
    let wire = Wire { protocol, id, model, include_usage, chunk_head };
    let answer = answer::answer(step, reply, given);
    let mut response = if request.stream.unwrap_or(false) {
        let mut response = whole(200, "text/event-stream; charset=utf-8", Bytes::new());
        response.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response.source = Source::Events(Box::new(Player::new(wire, answer, step.pace, step.fault.clone())));
        response
    } else {
        let body = match protocol {
            Protocol::Anthropic => anthropic::message(&wire, &answer),
            Protocol::OpenAi => openai::completion(&wire, &answer),
        };
        whole(200, "application/json", body.to_string())
    };
    response.headers.extend(reply.headers.clone());
    Ok(response)
}
