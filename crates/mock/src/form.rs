//! A script as it is written: the TOML shapes, and the checks that turn them into a [`Script`].

use crate::block_form::{BlockForm, block};
use crate::capture::Capture;
use crate::condition::{Condition, Pattern};
use crate::refusal::Refusal;
use crate::script::*;
use crate::template;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Range;
use toml::Spanned;

/// Bytes of a made-up text's deltas where `chunk` is not given.
const CHUNK_BYTES: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptForm {
    auth: Option<Auth>,
    key: Option<Spanned<String>>,
    sid: Option<Spanned<Pattern>>,
    #[serde(default)]
    repeat: bool,
    models: Option<Vec<String>>,
    #[serde(default)]
    pace: PaceForm,
    #[serde(default)]
    step: Vec<Spanned<StepForm>>,
    #[serde(default)]
    conversation: Vec<Spanned<ConversationForm>>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auth {
    Key,
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversationForm {
    #[serde(rename = "match")]
    first_user: Pattern,
    name: Option<String>,
    #[serde(default)]
    repeat: bool,
    #[serde(default)]
    step: Vec<Spanned<StepForm>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepForm {
    name: Option<String>,
    when: Option<Spanned<Condition>>,
    times: Option<NonZeroU32>,
    #[serde(default)]
    expect: Vec<Spanned<Condition>>,
    #[serde(default)]
    capture: BTreeMap<String, Spanned<Capture>>,
    #[serde(default)]
    needs_tools: Vec<String>,
    #[serde(default)]
    unoffered: bool,
    blocks: Option<Vec<Spanned<BlockForm>>>,
    rounds: Option<NonZeroUsize>,
    parallel: Option<NonZeroUsize>,
    text_bytes: Option<NonZeroUsize>,
    chunk: Option<NonZeroUsize>,
    stop: Option<String>,
    usage: Option<UsageForm>,
    status: Option<Spanned<u16>>,
    #[serde(default)]
    headers: BTreeMap<String, Spanned<String>>,
    error: Option<ErrorForm>,
    content_type: Option<Spanned<String>>,
    body: Option<Spanned<String>>,
    raw_stream: Option<Spanned<Texts>>,
    order: Option<Vec<usize>>,
    garble: Option<Spanned<Garble>>,
    #[serde(default)]
    bom: bool,
    #[serde(default)]
    gzip: bool,
    cut: Option<Spanned<PlaceForm>>,
    hang: Option<Spanned<PlaceForm>>,
    error_event: Option<ErrorEventForm>,
    delay_ms: Option<u64>,
    body_delay_ms: Option<u64>,
    gap_ms: Option<u64>,
    fragment: Option<NonZeroUsize>,
    split: Option<NonZeroUsize>,
    crlf: Option<LineEnd>,
    ping_every: Option<NonZeroUsize>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PaceForm {
    delay_ms: Option<u64>,
    body_delay_ms: Option<u64>,
    gap_ms: Option<u64>,
    fragment: Option<NonZeroUsize>,
    split: Option<NonZeroUsize>,
    crlf: Option<LineEnd>,
    ping_every: Option<NonZeroUsize>,
}

/// One text or many.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ErrorForm {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
    code: Option<String>,
    param: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ErrorEventForm {
    after_events: usize,
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
    code: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PlaceForm {
    after_events: Option<usize>,
    after_bytes: Option<usize>,
    in_block: Option<usize>,
    after_chars: Option<usize>,
    before_answer: bool,
    reset: bool,
}

/// A mistake at a place of the text; lines are counted at the very end.
type Mistake = (Range<usize>, String);

pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let error = |(span, message): Mistake| {
        let end = span.start.min(text.len());
        ScriptError { line: text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count() + 1, message }
    };
    let form: ScriptForm = toml::from_str(text).map_err(|e: toml::de::Error| {
        let mut message = e.message().trim().replace('\n', "; ");
        // The reader's words for a wrong value leave out the value; the line shows it.
        let value = e.span().and_then(|span| text.get(span)).unwrap_or_default();
        let short = !value.is_empty() && value.len() < 100 && !value.contains('\n');
        if short && !message.contains(value.trim_matches(['"', '\''])) {
            message = format!("`{value}`: {message}");
        }
        error((e.span().unwrap_or(0..0), message))
    })?;
    script(form).map_err(error)
}

fn script(form: ScriptForm) -> Result<Script, Mistake> {
    let key = match (form.auth, form.key) {
        (Some(Auth::None), Some(key)) => {
            return Err((key.span(), "`key` is never read with `auth = \"none\"`: leave one of them out".into()));
        }
        (Some(Auth::None), None) => Key::None,
        (_, Some(key)) => Key::Exactly(key.into_inner()),
        (_, None) => Key::Any,
    };
    if let Some(sid) = form.sid.as_ref().filter(|sid| sid.get_ref().0.captures_len() == 1) {
        return Err((sid.span(), format!("`{}` captures nothing: put the session's id in (…)", sid.get_ref().0)));
    }
    let mut conversations = Vec::new();
    for conversation in form.conversation {
        let span = conversation.span();
        let ConversationForm { first_user, name, repeat, step } = conversation.into_inner();
        if step.is_empty() {
            return Err((span, "the conversation has no [[conversation.step]]".into()));
        }
        let prefix = format!("{}/", name.unwrap_or_else(|| format!("conversation {}", conversations.len() + 1)));
        conversations.push(Conversation { first_user, flow: flow(step, repeat, &prefix, &form.pace)? });
    }
    if form.step.is_empty() && conversations.is_empty() {
        return Err((0..0, "the script has no [[step]]".into()));
    }
    let default = flow(form.step, form.repeat, "", &form.pace)?;
    let models = form.models.unwrap_or_else(|| vec!["mock".into()]);
    Ok(Script { key, models, sid: form.sid.map(Spanned::into_inner), conversations, default })
}

fn flow(forms: Vec<Spanned<StepForm>>, repeat: bool, prefix: &str, pace: &PaceForm) -> Result<Flow, Mistake> {
    let mut steps = Vec::with_capacity(forms.len());
    let mut last = 0..0;
    for form in forms {
        last = form.span();
        let number = steps.len() + 1;
        steps.push(step(form, prefix, number, pace)?);
    }
    if repeat && !steps.iter().any(Step::has_place) {
        return Err((last, "`repeat` has nothing to repeat: every step has `when` or `times`".into()));
    }
    Ok(Flow { repeat, steps })
}

fn step(form: Spanned<StepForm>, prefix: &str, number: usize, defaults: &PaceForm) -> Result<Step, Mistake> {
    let span = form.span();
    let mut form = form.into_inner();
    combinations(&form).map_err(|message| (span.clone(), message))?;
    let captures = std::mem::take(&mut form.capture);
    let known: Vec<&str> = template::KNOWN.into_iter().chain(captures.keys().map(String::as_str)).collect();
    let taken = captures.iter().find(|(name, _)| template::KNOWN.contains(&name.as_str()));
    if let Some((name, capture)) = taken {
        return Err((capture.span(), format!("a capture cannot be named `{name}`: it always has its own meaning")));
    }
    let reply = reply(&mut form, &known, &span)?;
    let garbled = form.garble.as_ref().and_then(|garble| Some((garble.span(), garble.get_ref().with.as_ref()?)));
    if let Some((span, with)) = garbled {
        template::check(with, &known).map_err(|message| (span, message))?;
    }
    let fault = fault(&mut form, &reply)?;
    let name = form.name.take().unwrap_or_else(|| format!("step {number}"));
    let mut step = Step {
        name: format!("{prefix}{name}"),
        pace: pace(&form, defaults),
        warp: Warp { order: form.order, garble: form.garble.map(Spanned::into_inner), bom: form.bom },
        gzip: form.gzip,
        when: form.when.map(|when| filled(when, "when")).transpose()?,
        times: form.times.map(NonZeroU32::get),
        expect: form.expect.into_iter().map(|expect| filled(expect, "expect")).collect::<Result<_, _>>()?,
        captures: captures.into_iter().map(|(name, capture)| (name, capture.into_inner())).collect(),
        needs_tools: form.needs_tools,
        rounds: form.rounds.map_or(1, NonZeroUsize::get),
        parallel: form.parallel.map_or(1, NonZeroUsize::get),
        reply,
        fault,
    };
    if !form.unoffered {
        let called: Vec<String> = step.called_tools().map(str::to_string).collect();
        step.needs_tools.extend(called);
    }
    Ok(step)
}

fn filled(condition: Spanned<Condition>, key: &str) -> Result<Condition, Mistake> {
    match condition.get_ref().is_empty() {
        true => Err((condition.span(), format!("`{key}` is empty: name what the request must have"))),
        false => Ok(condition.into_inner()),
    }
}

/// Keys that say nothing, or contradict each other, in one step.
fn combinations(form: &StepForm) -> Result<(), String> {
    let message = form.blocks.is_some() || form.text_bytes.is_some();
    let fault = [form.cut.is_some(), form.hang.is_some(), form.error_event.is_some()];
    let failed = form.status.as_ref().is_some_and(|status| *status.get_ref() != 200) || form.error.is_some();
    let calls = form.blocks.iter().flatten().any(|block| block.get_ref().tool.is_some());
    let unread = |given: bool, key: &str, why: &str| if given { Err(format!("`{key}` {why}")) } else { Ok(()) };
    let raw = form.body.is_some() || form.raw_stream.is_some();
    if !message && !failed && !raw && !fault.contains(&true) {
        let ways = "`blocks`, `text_bytes`, `raw_stream`, `status`, `body`, `cut` or `hang`";
        return Err(format!("the step says nothing: give it {ways}"));
    }
    unread(message && failed, "blocks", "are never sent with an error: leave out `status` and `error`, or them")?;
    unread(message && form.body.is_some(), "body", "takes the place of `blocks` and `text_bytes`: give one of them")?;
    unread(form.error.is_some() && form.body.is_some(), "error", "is never sent with `body`: give one of them")?;
    let with_stream = message || failed || form.body.is_some();
    unread(form.raw_stream.is_some() && with_stream, "raw_stream", "takes the place of any other answer: give one")?;
    unread(form.order.is_some() && !message, "order", "needs the events of `blocks` or `text_bytes`")?;
    unread(form.garble.is_some() && !message, "garble", "needs the events of `blocks` or `text_bytes`")?;
    unread(form.bom && (failed || form.body.is_some()), "bom", "needs a stream")?;
    let inside = [&form.cut, &form.hang].into_iter().flatten().any(|place| place.get_ref().in_block.is_some());
    unread(form.order.is_some() && inside, "in_block", "has no place in another `order`: give `after_events`")?;
    unread(!message && form.stop.is_some(), "stop", "needs `blocks` or `text_bytes`")?;
    unread(!message && form.usage.is_some(), "usage", "needs `blocks` or `text_bytes`")?;
    unread(form.chunk.is_some() && form.text_bytes.is_none(), "chunk", "needs `text_bytes`")?;
    unread(form.parallel.is_some() && !calls, "parallel", "needs a `tool` block to repeat")?;
    unread(form.unoffered && !calls, "unoffered", "needs a `tool` block")?;
    unread(form.rounds.is_some() && form.when.is_some(), "rounds", "needs a place in the order: leave out `when`")?;
    unread(form.rounds.is_some() && form.times.is_some(), "rounds", "needs a place in the order: leave out `times`")?;
    unread(
        fault.iter().filter(|given| **given).count() > 1,
        "cut, hang, error_event",
        "exclude each other: an answer breaks once",
    )
}

fn pace(form: &StepForm, defaults: &PaceForm) -> Pace {
    let size = |own: Option<NonZeroUsize>, default: Option<NonZeroUsize>| own.or(default).map(NonZeroUsize::get);
    Pace {
        delay_ms: form.delay_ms.or(defaults.delay_ms).unwrap_or(0),
        body_delay_ms: form.body_delay_ms.or(defaults.body_delay_ms).unwrap_or(0),
        gap_ms: form.gap_ms.or(defaults.gap_ms).unwrap_or(0),
        fragment: size(form.fragment, defaults.fragment),
        split: size(form.split, defaults.split),
        line_end: form.crlf.or(defaults.crlf).unwrap_or_default(),
        ping_every: size(form.ping_every, defaults.ping_every),
    }
}

fn reply(form: &mut StepForm, known: &[&str], span: &Range<usize>) -> Result<Reply, Mistake> {
    let status = match &form.status {
        Some(status) if !(200..=599).contains(status.get_ref()) => {
            return Err((status.span(), format!("status {} is none of 200 to 599", status.get_ref())));
        }
        Some(status) => *status.get_ref(),
        None if form.error.is_some() => 500,
        None => 200,
    };
    let headers = headers(form)?;
    if let Some(body) = form.body.take() {
        template::check(body.get_ref(), known).map_err(|message| (body.span(), message))?;
        return Ok(Reply::Raw { status, headers, body: body.into_inner() });
    }
    if let Some(texts) = form.raw_stream.take() {
        let span = texts.span();
        let events = match texts.into_inner() {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        };
        let quoted = events.iter().try_for_each(|text| template::check(text, known));
        quoted.map_err(|message| (span, message))?;
        return Ok(Reply::Stream { events, headers });
    }
    if status != 200 || form.error.is_some() {
        if status < 400 {
            return Err((span.clone(), format!("status {status} is no error: give the answer with `body`")));
        }
        let ErrorForm { kind, message, code, param } = form.error.take().unwrap_or_default();
        let message = message.unwrap_or_else(|| format!("the script answers {status}"));
        return Ok(Reply::Error { refusal: Refusal { status, message, kind, code, param }, headers });
    }
    let mut blocks = Vec::new();
    for form in form.blocks.take().unwrap_or_default() {
        let span = form.span();
        blocks.push(block(form.into_inner(), known).map_err(|message| (span, message))?);
    }
    Ok(Reply::Message(MessageReply {
        blocks,
        text_bytes: form.text_bytes.map_or(0, NonZeroUsize::get),
        chunk: form.chunk.map_or(CHUNK_BYTES, NonZeroUsize::get),
        stop: form.stop.take(),
        usage: form.usage.unwrap_or_default(),
        headers,
    }))
}

fn headers(form: &mut StepForm) -> Result<HeaderMap, Mistake> {
    let mut map = HeaderMap::new();
    let mut given = std::mem::take(&mut form.headers);
    given.extend(form.content_type.take().map(|kind| ("content-type".to_string(), kind)));
    for (name, value) in given {
        let key = HeaderName::try_from(&name).map_err(|_| (value.span(), format!("`{name}` is no header name")))?;
        let text = HeaderValue::try_from(value.get_ref())
            .map_err(|_| (value.span(), format!("`{}` is no header value", value.get_ref())))?;
        map.insert(key, text);
    }
    Ok(map)
}

fn fault(form: &mut StepForm, reply: &Reply) -> Result<Option<Fault>, Mistake> {
    if let Some(event) = form.error_event.take() {
        let ErrorEventForm { after_events, kind, message, code } = event;
        let message = message.unwrap_or_else(|| "the script breaks off here".into());
        let refusal = Refusal { status: 529, message, kind, code, param: None };
        return Ok(Some(Fault { at: Place::Events(after_events), how: Break::Event(refusal) }));
    }
    if let Some(cut) = form.cut.take() {
        let how = if cut.get_ref().reset { Break::Reset } else { Break::Close };
        let at = place(cut.get_ref(), reply).map_err(|message| (cut.span(), format!("cut: {message}")))?;
        return Ok(Some(Fault { at, how }));
    }
    let Some(hang) = form.hang.take() else { return Ok(None) };
    if hang.get_ref().reset {
        return Err((hang.span(), "hang: `reset` goes with `cut`".into()));
    }
    let at = place(hang.get_ref(), reply).map_err(|message| (hang.span(), format!("hang: {message}")))?;
    Ok(Some(Fault { at, how: Break::Hang }))
}

fn place(form: &PlaceForm, reply: &Reply) -> Result<Place, String> {
    if form.after_chars.is_some() != form.in_block.is_some() {
        return Err("`in_block` and `after_chars` go together".into());
    }
    let block = form.in_block.zip(form.after_chars).map(|(index, chars)| Place::Block { index, chars });
    let events = form.after_events.map(Place::Events);
    let bytes = form.after_bytes.map(Place::Bytes);
    let before = form.before_answer.then_some(Place::BeforeAnswer);
    let mut places = [events, bytes, block, before].into_iter().flatten();
    let (Some(place), None) = (places.next(), places.next()) else {
        return Err(
            "needs exactly one of `after_events`, `after_bytes`, `in_block` with `after_chars`, `before_answer`".into(),
        );
    };
    match (place, reply) {
        (Place::Block { index, .. }, Reply::Message(message)) => {
            let blocks = message.blocks.len() + usize::from(message.text_bytes > 0);
            let calls = message.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
            if index >= blocks && !calls {
                return Err(format!("in_block = {index}: the step has {blocks} blocks, counted from 0"));
            }
        }
        (Place::Block { .. }, Reply::Stream { .. }) => {
            return Err("the events of `raw_stream` have no blocks: give `after_events` or `after_bytes`".into());
        }
        (Place::Block { .. } | Place::Events(_), Reply::Raw { .. } | Reply::Error { .. }) => {
            return Err("an answer without events breaks `after_bytes` or `before_answer`".into());
        }
        _ => {}
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(toml: &str) -> String {
        parse(toml).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line_and_the_value() {
        let texts = [
            "",
            "[[step]]\nbloks = []",
            "[[step]]\nname = \"a\"\n",
            "[[step]]\nblocks = [{ txt = \"x\" }]",
            "[[step]]\nblocks = [\n  { text = \"x\", tool = \"read\" },\n]",
            "[[step]]\nblocks = [{ text = \"x ${port}\" }]",
            "[[step]]\nblocks = [{ tool = \"r\", input = { at = 2026-01-01 } }]",
            "[[step]]\nblocks = [{ tool = \"r\", input = {}, raw_input = \"\" }]",
            "[[step]]\n\ncapture = { port = 'port = (\\d+' }\nblocks = []",
            "[[step]]\ncapture = { port = 'port' }\nblocks = []",
            "[[step]]\ncapture = { port = { regex = '(x)', from = \"sky\" } }\nblocks = []",
            "[[step]]\ncapture = { i = '(x)' }\nblocks = []",
            "[[step]]\ntext_bytes = 10\nchunk = 0",
            "[[step]]\nblocks = []\ngap_ms = -1",
            "[[step]]\nblocks = []\nwhen = {}",
            "[[step]]\nblocks = []\nwhen = { tool_result = '(' }",
            "[[step]]\nblocks = []\nrounds = 2\ntimes = 1",
            "[[step]]\nblocks = []\nparallel = 2",
            "[[step]]\nstatus = 42",
            "[[step]]\nstatus = 302",
            "[[step]]\nstatus = 500\nblocks = []",
            "[[step]]\nstatus = 429\nheaders = { \"retry after\" = \"1\" }",
            "[[step]]\nblocks = []\ncut = { after_events = 1, after_bytes = 2 }",
            "[[step]]\nblocks = []\ncut = { in_block = 3, after_chars = 2 }",
            "[[step]]\nbody = \"x\"\ncut = { after_events = 1 }",
            "[[step]]\nblocks = []\ncrlf = \"lfcr\"",
            "[[step]]\nblocks = []\nraw_stream = []",
            "[[step]]\nraw_stream = 3",
            "[[step]]\n\nraw_stream = [\"${x}\"]",
            "[[step]]\nraw_stream = []\norder = [1]",
            "[[step]]\nblocks = [{ text = \"x\" }]\norder = [1]\ncut = { in_block = 0, after_chars = 1 }",
            "[[step]]\nraw_stream = []\ncut = { in_block = 0, after_chars = 1 }",
            "[[step]]\nblocks = []\ngarble = { event = 1, with = \"${x}\" }",
            "[[step]]\nbody = \"x\"\nbom = true",
            "[[step]]\nblocks = [{ redacted_thinking = \"x\", signature = \"y\" }]",
            "[[step]]\nblocks = []\ncut = { after_events = 1 }\nhang = { after_events = 1 }",
            "auth = \"none\"\nkey = \"k\"\n[[step]]\nblocks = []",
            "sid = 'x'\n[[step]]\nblocks = []",
            "[[conversation]]\nmatch = 'x'",
            "repeat = true\n[[step]]\nblocks = []\ntimes = 1",
        ];
        let errors: Vec<String> = texts.iter().map(|text| error(text)).collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        script line 1: the script has no [[step]]
        script line 2: unknown field `bloks`, expected one of `name`, `when`, `times`, `expect`, `capture`, `needs_tools`, `unoffered`, `blocks`, `rounds`, `parallel`, `text_bytes`, `chunk`, `stop`, `usage`, `status`, `headers`, `error`, `content_type`, `body`, `raw_stream`, `order`, `garble`, `bom`, `gzip`, `cut`, `hang`, `error_event`, `delay_ms`, `body_delay_ms`, `gap_ms`, `fragment`, `split`, `crlf`, `ping_every`
        script line 1: the step says nothing: give it `blocks`, `text_bytes`, `raw_stream`, `status`, `body`, `cut` or `hang`
        script line 2: unknown field `txt`, expected one of `text`, `thinking`, `signature`, `redacted_thinking`, `tool`, `id`, `input`, `raw_input`, `native`
        script line 3: a block has exactly one of `text`, `thinking`, `redacted_thinking`, `tool`, `native`
        script line 2: `${port}` is unknown here: known are i, k, n, sid; add it to the step's `capture`, or write `$${port}` for the text itself
        script line 2: JSON has no dates: write "2026-01-01" in quotes
        script line 2: `input` and `raw_input` exclude each other
        script line 3: `port = (\d+` is no regular expression: unclosed group
        script line 2: `port` captures nothing: put the wanted part in (…)
        script line 2: unknown variant `sky`, expected one of `newest`, `results`, `user`, `first_user`, `system`, `all`
        script line 2: a capture cannot be named `i`: it always has its own meaning
        script line 3: invalid value: integer `0`, expected a nonzero usize
        script line 3: invalid value: integer `-1`, expected u64
        script line 3: `when` is empty: name what the request must have
        script line 3: `(` is no regular expression: unclosed group
        script line 1: `rounds` needs a place in the order: leave out `times`
        script line 1: `parallel` needs a `tool` block to repeat
        script line 2: status 42 is none of 200 to 599
        script line 1: status 302 is no error: give the answer with `body`
        script line 1: `blocks` are never sent with an error: leave out `status` and `error`, or them
        script line 3: `retry after` is no header name
        script line 3: cut: needs exactly one of `after_events`, `after_bytes`, `in_block` with `after_chars`, `before_answer`
        script line 3: cut: in_block = 3: the step has 0 blocks, counted from 0
        script line 3: cut: an answer without events breaks `after_bytes` or `before_answer`
        script line 3: invalid value: string "lfcr", expected true, false, "cr", "lf" or "crlf"
        script line 1: `raw_stream` takes the place of any other answer: give one
        script line 2: `3`: expected a text or a list of texts
        script line 3: `${x}` is unknown here: known are i, k, n, sid; add it to the step's `capture`, or write `$${x}` for the text itself
        script line 1: `order` needs the events of `blocks` or `text_bytes`
        script line 1: `in_block` has no place in another `order`: give `after_events`
        script line 3: cut: the events of `raw_stream` have no blocks: give `after_events` or `after_bytes`
        script line 3: `${x}` is unknown here: known are i, k, n, sid; add it to the step's `capture`, or write `$${x}` for the text itself
        script line 1: `bom` needs a stream
        script line 2: `signature` needs `thinking`, `text` or `tool`
        script line 1: `cut, hang, error_event` exclude each other: an answer breaks once
        script line 2: `key` is never read with `auth = "none"`: leave one of them out
        script line 1: `x` captures nothing: put the session's id in (…)
        script line 1: the conversation has no [[conversation.step]]
        script line 2: `repeat` has nothing to repeat: every step has `when` or `times`
        "#);
    }

    #[test]
    fn a_step_gets_its_name_and_its_tools() {
        let script = parse(
            "[pace]\ngap_ms = 5\nfragment = 3\n[[step]]\nblocks = [{ tool = \"read\" }]\ngap_ms = 0\n\
             [[conversation]]\nname = \"side\"\nmatch = 'x'\n[[conversation.step]]\nunoffered = true\n\
             blocks = [{ tool = \"read\" }]",
        )
        .unwrap();
        let (step, side) = (&script.default.steps[0], &script.conversations[0].flow.steps[0]);
        assert_eq!((step.name.as_str(), side.name.as_str()), ("step 1", "side/step 1"));
        assert_eq!((step.needs_tools.len(), side.needs_tools.len()), (1, 0));
        assert_eq!((step.pace.gap_ms, step.pace.fragment, side.pace.gap_ms), (0, Some(3), 5));
    }
}
