//! From a request's bytes to what is answered: routes, the vendor's checks, the script.

use crate::answer::{self, Answer, Given};
use crate::choose::{self, Tally};
use crate::log::Line;
use crate::play::{Gzip, Source};
use crate::player::{Player, Wire};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::route::{self, Protocol, Route};
use crate::script::{Fault, Garble, MessageReply, Pace, Reply, Script, Step};
use crate::template::{self, Names};
use crate::{anthropic, bedrock, check, gemini, gemini_input, key, models, openai, responses};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use std::cell::Cell;

const JSON: &str = "application/json";

/// Where Bedrock names an error.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

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
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a Bytes,
    pub seq: u64,
}

/// Answers any request; what was found goes into the log line.
pub fn respond(script: &Script, tally: &Tally, asked: &Asked, line: &mut Line) -> Response {
    let route = route::route(asked.path).filter(|_| asked.method == Method::POST);
    let mut response = match &route {
        Some(route) => {
            line.protocol = Some(route.protocol.as_str());
            let answered = model(script, tally, route, asked, line);
            answered.unwrap_or_else(|refusal| refused(&refusal, route.protocol, asked.seq, line))
        }
        None => other(script, asked, line),
    };
    line.status = response.status.as_u16();
    let id = HeaderValue::from_str(&request_id(asked.seq)).expect("digits and letters are a header value");
    if route.is_some_and(|route| route.protocol == Protocol::Bedrock) {
        response.headers.entry("x-amzn-requestid").or_insert(id.clone());
    }
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
    let protocol = route::route(asked.path).map_or(Protocol::Anthropic, |route| route.protocol);
    refused(refusal, protocol, asked.seq, line)
}

fn refused(refusal: &Refusal, protocol: Protocol, seq: u64, line: &mut Line) -> Response {
    line.error = Some(refusal.message.clone());
    let body = refusal.body(protocol, &request_id(seq)).to_string();
    let mut response = whole(refusal.status, JSON, body);
    if protocol == Protocol::Bedrock {
        response.headers.extend(HeaderValue::from_str(refusal.exception()).map(|kind| (ERROR_TYPE, kind)));
    }
    response
}

/// What asks no model.
fn other(script: &Script, asked: &Asked, line: &mut Line) -> Response {
    let path = asked.path.trim_end_matches('/');
    let get = asked.method == Method::GET || asked.method == Method::HEAD;
    if get && path.is_empty() {
        return whole(200, JSON, json!({"ok": true}).to_string());
    }
    if let Some(list) = models::list(&script.models, asked).filter(|_| get) {
        return whole(200, JSON, list.to_string());
    }
    let counts = [
        ("/messages/count_tokens", "input_tokens"),
        ("/models/count-tokens:rawPredict", "input_tokens"),
        (":countTokens", "totalTokens"),
    ];
    let count = counts.into_iter().find(|(end, _)| path.ends_with(end));
    if let Some((_, key)) = count.filter(|_| asked.method == Method::POST) {
        return whole(200, JSON, json!({key: asked.body.len().div_ceil(4)}).to_string());
    }
    let (method, path) = (asked.method, asked.path);
    let ways = "POST …/messages, …/messages/count_tokens, …/chat/completions, …/responses, \
                …/models/MODEL:streamGenerateContent, …/models/MODEL:generateContent, \
                …/model/MODEL/invoke-with-response-stream, …/model/MODEL/invoke, \
                …/publishers/anthropic/models/MODEL:streamRawPredict, …:rawPredict; GET …/models, …/api/tags, /";
    let refusal = Refusal::new(404, format!("no route for {method} {path}: there are {ways}"));
    refused(&refusal, Protocol::Anthropic, asked.seq, line)
}

fn model(script: &Script, tally: &Tally, route: &Route, asked: &Asked, line: &mut Line) -> Result<Response, Refusal> {
    let protocol = route.protocol;
    key::admit(&script.key, protocol, asked)?;
    if protocol == Protocol::Gemini && route.stream && route::query(asked.query, "alt") != Some("sse") {
        return Err(Refusal::invalid("the stream comes as server-sent events only: ask for it with ?alt=sse"));
    }
    let request = Request::read(route, asked.body)
        .map_err(|e| Refusal::invalid(format!("the body is not the JSON of a request: {e}")))?;
    line.model = request.model.as_deref().unwrap_or_default().to_string();
    line.stream = request.stream.unwrap_or(false);
    line.messages = request.messages().len();
    line.tool_results = request.result_count();
    line.round = request.round();
    check::check(protocol, &request)?;
    let talk = choose::talk(script, &request);
    line.sid.clone_from(&talk.sid);
    if protocol == Protocol::Gemini {
        gemini_input::signatures(talk.flow, &request)?;
    }
    let choice = choose::choose(&talk, &request, tally)?;
    let step = choice.step;
    line.step = Some(step.name.clone());
    demand(step, &request)?;
    let names = names(step, &request, talk.sid)?;
    let given = Given { request: &request, body_bytes: asked.body.len(), names, nth: choice.nth };
    let mut response = play(step, protocol, given, asked.seq, line)?;
    let accepted = asked.headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if step.gzip && accepted.is_some_and(|accepted| accepted.contains("gzip")) {
        compress(&mut response);
    }
    Ok(response)
}

fn compress(response: &mut Response) {
    match &mut response.source {
        Source::Events(_, gzip) => *gzip = Some(Gzip::new()),
        Source::Whole(body) => *body = Gzip::whole(body),
    }
    response.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
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
            let body = literal(body, &mut given);
            let mut response = whole(*status, "text/plain; charset=utf-8", body);
            response.headers.extend(headers.clone());
            response
        }
        Reply::Stream { events, headers } => {
            let tape = events.iter().map(|text| literal(text, &mut given).into_bytes()).collect();
            let wire = wire(protocol, &given, seq, &Answer::default());
            let player = Player::new(wire, Answer::default(), step.pace, &step.warp, step.fault.clone());
            let mut response = streamed(protocol, player.with_tape(tape));
            if !given.request.stream.unwrap_or(false) {
                response.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
            }
            response.headers.extend(headers.clone());
            response
        }
    };
    response.pace = step.pace;
    response.fault.clone_from(&step.fault);
    Ok(response)
}

/// A text that is sent as it stands. It has no calls: it is the first and only one of its message.
fn literal(text: &str, given: &mut Given) -> String {
    given.names.extend([("k".into(), "0".into()), ("n".into(), given.nth.to_string())]);
    template::fill(text, &given.names).into_owned()
}

fn wire(protocol: Protocol, given: &Given, seq: u64, answer: &Answer) -> Wire {
    let id = format!("{seq:06}");
    let model = given.request.model.as_deref().unwrap_or_default().to_string();
    let include_usage = given.request.stream_options.as_ref().is_some_and(|options| options.include_usage);
    let (chunk_head, chunk_tail) = match protocol {
        Protocol::OpenAi => (openai::chunk_head(&id, &model), openai::chunk_tail(include_usage)),
        Protocol::Gemini => (gemini::chunk_head(), gemini::chunk_tail(&id, &model, &answer.usage)),
        _ => Default::default(),
    };
    let refuses = answer.stop == "refusal";
    let round = given.request.round();
    Wire { protocol, id, model, round, include_usage, chunk_head, chunk_tail, refuses, sequence: Cell::new(0) }
}

fn streamed(protocol: Protocol, player: Player) -> Response {
    let kind = if protocol == Protocol::Bedrock { bedrock::CONTENT_TYPE } else { "text/event-stream; charset=utf-8" };
    let mut response = whole(200, kind, Bytes::new());
    response.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.source = Source::Events(Box::new(player), None);
    response
}

fn message(
    step: &Step,
    reply: &MessageReply,
    protocol: Protocol,
    given: &mut Given,
    seq: u64,
) -> Result<Response, Refusal> {
    let native = reply.blocks.iter().any(|block| matches!(block, crate::script::Block::Native(_)));
    if native && matches!(protocol, Protocol::OpenAi | Protocol::Gemini) {
        let message =
            format!("the script answers with a `native` block, which this protocol does not have ({})", step.name);
        return Err(Refusal::invalid(message));
    }
    let answer = answer::answer(step, reply, given);
    let wire = wire(protocol, given, seq, &answer);
    let mut response = if given.request.stream.unwrap_or(false) {
        streamed(protocol, player(step, wire, answer, given)?)
    } else {
        let body = match protocol {
            Protocol::Anthropic | Protocol::Bedrock | Protocol::Vertex => anthropic::message(&wire, &answer),
            Protocol::OpenAi => openai::completion(&wire, &answer),
            Protocol::Responses => responses::response(&wire, &answer),
            Protocol::Gemini => gemini::whole(&wire, &answer),
        };
        whole(200, JSON, body.to_string())
    };
    response.headers.extend(reply.headers.clone());
    Ok(response)
}

fn player(step: &Step, wire: Wire, answer: Answer, given: &Given) -> Result<Player, Refusal> {
    let mut warp = step.warp.clone();
    if let Some(Garble { with: Some(with), .. }) = &mut warp.garble {
        *with = template::fill(with, &given.names).into_owned();
    }
    let player = Player::new(wire, answer, step.pace, &warp, step.fault.clone());
    let Some(order) = &warp.order else { return Ok(player) };
    player.with_order(order).map_err(|count| {
        let rule = format!("the script's `order` names an event that the answer does not have: it has {count}");
        Refusal::invalid(format!("{rule}, counted from 0 ({})", step.name))
    })
}
