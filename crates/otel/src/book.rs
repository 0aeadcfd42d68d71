//! From records to spans: what is open in each session, and what its records begin and end.

use crate::content::{self, Messages};
use crate::measures::{Measured, Measures, all_input};
use crate::names;
use crate::span::{Open, Start};
use opentelemetry::trace::{SpanContext, SpanKind};
use opentelemetry::{Array, StringValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use serde::Serialize;
use std::collections::HashMap;
use windlass_kernel::*;

/// Sessions kept in mind. Beyond that the idle ones are forgotten: their later turns have no agent's name.
const SESSIONS: usize = 10_000;

pub(crate) struct Book {
    pub tracer: SdkTracer,
    pub measures: Measures,
    pub capture: bool,
    pub sessions: HashMap<SessionId, Page>,
}

/// One session: who it is, and what is under way in it.
#[derive(Default)]
pub(crate) struct Page {
    agent: Option<String>,
    parent: Option<Parent>,
    turn: Option<Turn>,
    /// Model calls by their work: one may run between turns, to compact.
    chats: HashMap<Seq, Chat>,
    tools: HashMap<Seq, (CallId, Open)>,
    /// What the model is told next.
    heard: Messages,
    /// Milliseconds since the Unix epoch, of the newest record.
    at: u64,
}

struct Turn {
    span: Open,
    asked: HashMap<CallId, Asked>,
    spent: Spent,
    /// The last answer, for the turn's own output.
    answer: Option<String>,
}

/// A call that the model made.
struct Asked {
    tool: String,
    /// Its arguments as JSON; none where content is not captured.
    arguments: Option<String>,
}

struct Chat {
    span: Open,
    provider: String,
    model: String,
    said: Vec<serde_json::Value>,
}

impl Book {
    /// False: there are too many sessions under way to follow this one.
    pub fn read(&mut self, record: &Record) -> bool {
        let known = self.sessions.contains_key(&record.session);
        if !known && self.sessions.len() >= SESSIONS {
            self.sessions.retain(|_, page| page.is_busy());
            if self.sessions.len() >= SESSIONS {
                return false;
            }
        }
        let mut page = self.sessions.remove(&record.session).unwrap_or_default();
        page.at = record.at;
        self.enter(&mut page, record);
        self.sessions.insert(record.session, page);
        true
    }

    /// Ends everything that is open, at the last that was heard of it.
    pub fn close(&mut self) {
        for (_, mut page) in self.sessions.drain() {
            page.leave();
        }
    }

    fn enter(&mut self, page: &mut Page, record: &Record) {
        match &record.event {
            Event::Opened { agent, parent, .. } => {
                page.agent = Some(agent.clone());
                page.parent = parent.clone();
            }
            Event::Reopened { .. } => page.leave(),
            Event::Prompted(prompt) => self.prompted(page, record, prompt),
            Event::Noted { text, wakes, .. } => {
                self.hear(page, "user", || vec![content::part(&ContentBlock::text(text))]);
                if *wakes && page.turn.is_none() {
                    self.open_turn(page, record);
                }
            }
            Event::ModelCalled(called) => self.model_called(page, record, called),
            Event::BlockFinished { work, block, .. } => self.block_finished(page, *work, block),
            Event::ModelFinished { work, stop, raw_stop, spent } => {
                let reason = raw_stop.clone().unwrap_or_else(|| word(stop));
                self.end_chat(page, *work, spent, Ok(reason));
            }
            Event::ModelFailed { work, error, spent } => {
                if let (Some(chat), Some(status)) = (page.chats.get_mut(work), error.status) {
                    chat.span.set(names::HTTP_STATUS, i64::from(status));
                }
                self.end_chat(page, *work, spent, Err((&word(&error.kind), &error.message)));
            }
            Event::ModelCancelled { work, spent } => {
                self.end_chat(page, *work, spent, Err((names::CANCELLED, "the call was called back")));
            }
            Event::Compacted { work, spent, .. } => self.end_chat(page, *work, spent, Ok("stop".into())),
            Event::CompactionFailed { work, message, spent, .. } => {
                let spent = spent.as_deref().copied().unwrap_or_default();
                self.end_chat(page, *work, &spent, Err((names::COMPACTION_FAILED, message)));
            }
            Event::Judged(judged) => page.changed(&judged.call, judged.input.as_ref()),
            Event::Answered(answer) => page.changed(&answer.call, answer.changed.as_ref().map(|change| &change.input)),
            Event::ToolStarted(started) => self.tool_started(page, record, started),
            Event::ToolFinished(finished) => self.tool_finished(page, finished),
            Event::TurnFinished { end, .. } => page.turn_finished(end),
            _ => {}
        }
    }

    fn hear(&self, page: &mut Page, role: &str, parts: impl FnOnce() -> Vec<serde_json::Value>) {
        if self.capture {
            page.heard.push(role, parts());
        }
    }

    fn prompted(&self, page: &mut Page, record: &Record, prompt: &Prompted) {
        let context = prompt.context.as_ref().map(ContentBlock::text);
        let said = prompt.blocks.iter().filter(|block| block.is_input());
        if context.is_none() && said.clone().next().is_none() {
            return;
        }
        self.hear(page, "user", || content::parts(context.iter().chain(said)));
        if page.turn.is_none() {
            self.open_turn(page, record);
        }
    }

    fn open_turn(&self, page: &mut Page, record: &Record) {
        let above = page.parent.as_ref().and_then(|parent| self.call_of(parent)).cloned();
        let (of, kind, at) = (page.agent.clone(), SpanKind::Internal, record.at);
        let start = Start { operation: names::INVOKE_AGENT, of, kind, at };
        let mut span = Open::begin(&self.tracer, above.as_ref(), start);
        span.set(names::CONVERSATION, record.session.to_string());
        span.set_some(names::AGENT, page.agent.clone());
        if !matches!(record.event, Event::Prompted(_) | Event::Noted { .. }) {
            span.set(names::TAKEN_UP, true);
        }
        span.set_some(names::INPUT_MESSAGES, page.heard.shown());
        page.turn = Some(Turn { span, asked: HashMap::new(), spent: Spent::default(), answer: None });
    }

    /// The call of another session that this one works for, if it is open here.
    fn call_of(&self, parent: &Parent) -> Option<&SpanContext> {
        let tools = &self.sessions.get(&parent.session)?.tools;
        tools.values().find(|(call, _)| *call == parent.call).map(|(_, span)| span.context())
    }

    fn model_called(&self, page: &mut Page, record: &Record, called: &ModelCalled) {
        // A turn that went on when its session was taken up has no opening here.
        if page.turn.is_none() && called.role != ModelRole::Compaction {
            self.open_turn(page, record);
        }
        let above = page.turn.as_ref().map(|turn| turn.span.context());
        let (of, kind, at) = (Some(called.model.clone()), SpanKind::Client, record.at);
        let mut span = Open::begin(&self.tracer, above, Start { operation: names::CHAT, of, kind, at });
        let provider = names::provider(&called.provider).to_owned();
        span.set(names::PROVIDER, provider.clone());
        span.set(names::CONVERSATION, record.session.to_string());
        span.set_some(names::AGENT, page.agent.clone());
        span.set(names::REQUEST_MODEL, called.model.clone());
        span.set(names::REQUEST_STREAM, true);
        span.set(names::REQUEST_MAX_TOKENS, i64::from(called.parameters.max_tokens));
        span.set_some(names::REQUEST_TEMPERATURE, called.parameters.temperature);
        span.set_some(names::REQUEST_TOP_P, called.parameters.top_p);
        span.set(names::ATTEMPT, i64::from(called.attempt));
        span.set(names::ROLE, word(&called.role));
        if called.role != ModelRole::Compaction {
            span.set_some(names::INPUT_MESSAGES, page.heard.take());
        }
        let chat = Chat { span, provider, model: called.model.clone(), said: vec![] };
        page.chats.insert(called.work, chat);
    }

    fn block_finished(&self, page: &mut Page, work: Seq, block: &ContentBlock) {
        if let (ContentBlock::ToolUse(call), Some(turn)) = (block, &mut page.turn) {
            let arguments = self.capture.then(|| content::arguments(&call.input));
            turn.asked.insert(call.id.clone(), Asked { tool: call.name.clone(), arguments });
        }
        if let Some(chat) = page.chats.get_mut(&work).filter(|_| self.capture) {
            chat.said.push(content::part(block));
        }
    }

    fn end_chat(&self, page: &mut Page, work: Seq, spent: &Spent, end: Result<String, (&str, &str)>) {
        let Some(mut chat) = page.chats.remove(&work) else { return };
        let (reason, error) = match end {
            Ok(reason) => (reason, None),
            Err((class, words)) => {
                chat.span.fail(class, words);
                ("error".to_owned(), Some(class))
            }
        };
        chat.span.set(names::FINISH_REASONS, Value::Array(Array::String(vec![StringValue::from(reason)])));
        tell_spent(&mut chat.span, spent);
        let mut said = Messages::default();
        said.push("assistant", chat.said);
        let said = said.take();
        chat.span.set_some(names::OUTPUT_MESSAGES, said.clone());
        if let Some(turn) = &mut page.turn {
            turn.spent.usage.add(&spent.usage);
            if let Some(cost) = spent.cost_micro_usd {
                turn.spent.cost_micro_usd = Some(turn.spent.cost_micro_usd.unwrap_or(0).saturating_add(cost));
            }
            turn.answer = said.or(turn.answer.take());
        }
        let took_s = page.at.saturating_sub(chat.span.began) as f64 / 1000.0;
        self.measures.take(&Measured { provider: &chat.provider, model: &chat.model, took_s, spent: *spent, error });
        chat.span.end(page.at);
    }

    fn tool_started(&self, page: &mut Page, record: &Record, started: &ToolStarted) {
        // Told again once its process is known.
        if page.tools.contains_key(&started.work) {
            return;
        }
        if page.turn.is_none() {
            self.open_turn(page, record);
        }
        let Some(turn) = &page.turn else { return };
        let asked = turn.asked.get(&started.call);
        let tool = asked.map(|asked| asked.tool.clone());
        let (of, kind, at) = (tool.clone(), SpanKind::Internal, record.at);
        let start = Start { operation: names::EXECUTE_TOOL, of, kind, at };
        let mut span = Open::begin(&self.tracer, Some(turn.span.context()), start);
        span.set(names::CONVERSATION, record.session.to_string());
        span.set_some(names::AGENT, page.agent.clone());
        span.set_some(names::TOOL, tool);
        span.set(names::TOOL_TYPE, "function");
        span.set(names::TOOL_CALL, started.call.to_string());
        span.set_some(names::TOOL_ARGUMENTS, asked.and_then(|asked| asked.arguments.clone()));
        page.tools.insert(started.work, (started.call.clone(), span));
    }

    fn tool_finished(&self, page: &mut Page, finished: &ToolFinished) {
        self.hear(page, "tool", || vec![content::response(&finished.call, &finished.blocks)]);
        let Some((_, mut span)) = page.tools.remove(&finished.work) else { return };
        if self.capture {
            span.set(names::TOOL_RESULT, content::result(&finished.blocks));
        }
        if finished.outcome != Outcome::Ok {
            // The words are content: they may hold what the tool printed.
            let class = if finished.outcome == Outcome::Error {
                names::TOOL_FAILED.to_owned()
            } else {
                word(&finished.outcome)
            };
            span.fail(&class, "");
        }
        span.end(page.at);
    }
}

impl Page {
    fn is_busy(&self) -> bool {
        self.turn.is_some() || !self.chats.is_empty() || !self.tools.is_empty()
    }

    /// Other arguments run than those the model gave.
    fn changed(&mut self, call: &CallId, input: Option<&serde_json::Value>) {
        let asked = self.turn.as_mut().and_then(|turn| turn.asked.get_mut(call));
        if let (Some(input), Some(arguments)) = (input, asked.and_then(|asked| asked.arguments.as_mut())) {
            *arguments = content::arguments(input);
        }
    }

    fn turn_finished(&mut self, end: &End) {
        self.leave_rooms();
        let Some(mut turn) = self.turn.take() else { return };
        if *end != End::Done {
            turn.span.fail(&tag(end), "");
        }
        self.end_turn(turn);
    }

    fn end_turn(&mut self, mut turn: Turn) {
        tell_spent(&mut turn.span, &turn.spent);
        turn.span.set_some(names::OUTPUT_MESSAGES, turn.answer);
        turn.span.end(self.at);
    }

    /// Whatever is open goes on elsewhere, or nowhere.
    fn leave(&mut self) {
        self.leave_rooms();
        if let Some(mut turn) = self.turn.take() {
            turn.span.fail(names::LEFT, "the session was left in the middle of the turn");
            self.end_turn(turn);
        }
    }

    fn leave_rooms(&mut self) {
        let chats = self.chats.drain().map(|(_, chat)| chat.span);
        for mut span in chats.chain(self.tools.drain().map(|(_, (_, span))| span)) {
            span.fail(names::LEFT, "nothing was heard of its end");
            span.end(self.at);
        }
    }
}

fn tell_spent(span: &mut Open, spent: &Spent) {
    let usage = &spent.usage;
    if *usage != Usage::default() {
        span.set(names::INPUT_TOKENS, whole(all_input(usage)));
        span.set(names::OUTPUT_TOKENS, whole(usage.output));
    }
    let applicable = |tokens: u64| (tokens > 0).then(|| whole(tokens));
    span.set_some(names::CACHE_READ_TOKENS, applicable(usage.cache_read));
    span.set_some(names::CACHE_WRITE_TOKENS, applicable(usage.cache_write));
    span.set_some(names::REASONING_TOKENS, applicable(usage.reasoning));
    span.set_some(names::TIME_TO_FIRST_CHUNK, spent.first_token_ms.map(|ms| ms as f64 / 1000.0));
    span.set_some(names::COST, spent.cost_micro_usd.map(|micro| micro as f64 / 1e6));
}

fn whole(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

/// A variant without fields, as it is written in the log.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| Some(value.as_str()?.to_owned())).unwrap_or_default()
}

/// How a turn ended, as it is written in the log.
fn tag(end: &End) -> String {
    let value = serde_json::to_value(end).unwrap_or_default();
    value["type"].as_str().unwrap_or_default().to_owned()
}
