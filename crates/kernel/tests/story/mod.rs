//! A session told line by line: each line is something that happens, and the kernel says what follows. The story plays
//! the runtime: it judges calls at once, by the name of their tool, and ends turns that nobody has to check.
//!
//! ```text
//! prompt TEXT | note TEXT | wake TEXT | interrupt | deadline | compact | clear | crash
//! text TEXT | thinking TEXT | heard TEXT (broken off) | use ID TOOL | stop REASON | fail KIND TEXT | silenced
//! wait MS TEXT (overloaded, and asks to be left alone so long) | usage INPUT READ WRITTEN (of every answer from now on)
//! ok ID TEXT | error ID TEXT | abort ID TEXT (takes its siblings along) | stopped ID | big ID BYTES (a long result)
//! allow ID | deny ID [NOTE] | answer ID WORDS
//! object TEXT | agree (the stop checks) | summary UPTO TEXT | no-summary TEXT | no-summary-yet KIND TEXT
//! want TEXT (a prompt with a schema) | repair TEXT | unfit TEXT (the answer does not fit, again or for good)
//! cap SCOPE TOKENS | elsewhere SCOPE TOKENS (spent) | model NAME | section NAME LETTER | tools LETTER (of a hash)
//! ```
#![allow(dead_code)] // Each test file uses its own part.

use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;
use windlass_kernel::*;

/// Steps one line may lead to.
const STEPS_PER_LINE: usize = 100;

pub struct Story {
    pub state: State,
    pub log: Vec<Record>,
    /// The stop checks are a room of their own, and answer with `object` or `agree`.
    pub checks: bool,
    /// Tokens the model's window holds.
    pub window: Option<u64>,
    sections: Vec<Section>,
    tools: BlobRef,
    usage: Usage,
    epoch: u64,
    inputs: u64,
}

/// A story under the default profile.
pub fn tell(script: &str) -> Story {
    Story::new(Profile::default()).tell(script)
}

/// A story under the profile called `name`.
pub fn tell_as(name: &str, script: &str) -> Story {
    Story::new(Profile::named(name).expect("a named profile")).tell(script)
}

impl Story {
    pub fn new(profile: Profile) -> Story {
        let mut story = Story {
            state: State::default(),
            log: vec![],
            checks: false,
            window: None,
            sections: vec![Section { name: "role".into(), blob: blob("a", 120) }],
            tools: blob("b", 900),
            usage: spent().usage,
            epoch: 1,
            inputs: 0,
        };
        let mode = PermissionMode::Default;
        let (cwd, agent, model) = ("/work".into(), "build".into(), "mock/scripted".into());
        let (parent, forked_from, profile) = (None, None, Box::new(profile));
        story.happen(None, Event::Opened { parent, forked_from, cwd, agent, model, mode, profile });
        story
    }

    pub fn checked(mut self) -> Story {
        self.checks = true;
        self
    }

    pub fn tell(mut self, script: &str) -> Story {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.line(line);
        }
        assert_eq!(State::fold(&self.log), self.state, "the fold of the log is the state");
        self
    }

    /// The story as if only its first records had been stored.
    pub fn up_to(mut self, records: usize) -> Story {
        self.log.truncate(records);
        self.state = State::fold(&self.log);
        self
    }

    fn line(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (id, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let (call, text) = (CallId::from(id), rest.to_owned());
        match verb {
            "prompt" => {
                let input = self.fresh();
                self.wish(prompt(input, rest));
            }
            "want" => {
                let input = self.fresh();
                self.wish(wanting(input, rest));
            }
            "note" | "wake" => {
                let input = self.fresh();
                self.wish(Command::Note { input, text, wakes: verb == "wake" });
            }
            "interrupt" => self.wish(Command::Interrupt { by: "terminal".into() }),
            "compact" => self.wish(Command::Compact { instructions: None }),
            "clear" => {
                let input = self.fresh();
                self.wish(Command::Clear { input });
            }
            "allow" | "deny" | "answer" => {
                let decision = match verb {
                    "allow" => Decision::Allow,
                    "deny" => Decision::Deny { note: more.into() },
                    _ => Decision::Words { text: more.into() },
                };
                self.wish(Command::Answer(Box::new(self.answer(&call, decision))));
            }
            "crash" => self.crash(),
            "deadline" => self.report(Event::DeadlinePassed),
            "text" => self.block(ContentBlock::text(rest), false),
            "heard" => self.block(ContentBlock::text(rest), true),
            "thinking" => {
                let (signature, by) = (Some("s".into()), Some("mock/scripted".into()));
                self.block(ContentBlock::Thinking { thinking: text, signature, by }, false);
            }
            "use" => {
                let input = json!({ "path": more });
                self.block(
                    ContentBlock::ToolUse(ToolUse { id: call, name: more.into(), input, signature: None }),
                    false,
                );
            }
            "stop" => {
                let stop = serde_json::from_value(json!(rest)).expect("a stop reason");
                let (work, raw_stop, spent) = (self.speaking(), Some(text), Spent { usage: self.usage, ..spent() });
                let at = self.at(self.state.head.next());
                if let Some(broke) = self.state.cache_miss(work, &spent.usage, at) {
                    self.happen(Some(work), Event::CacheBroke(Box::new(broke)));
                }
                self.report(Event::ModelFinished { work, stop, raw_stop, spent });
            }
            "fail" => self.failed(serde_json::from_value(json!(id)).expect("a kind of failure"), more, None),
            "wait" => self.failed(FailureKind::Overloaded, more, Some(number(id))),
            "usage" => {
                let mut numbers = rest.split(' ').map(number);
                let mut next = || numbers.next().expect("three numbers");
                self.usage = Usage { input: next(), cache_read: next(), cache_write: next(), ..spent().usage };
            }
            "silenced" => self.report(Event::ModelCancelled { work: self.speaking(), spent: Spent::default() }),
            "ok" => self.finished(call, Outcome::Ok, more, false),
            "error" => self.finished(call, Outcome::Error, more, false),
            "abort" => self.finished(call, Outcome::Error, more, true),
            "stopped" => self.finished(call, Outcome::Cancelled, "Cancelled.", false),
            "big" => self.finished(call, Outcome::Ok, &"x".repeat(number(more) as usize), false),
            "object" | "repair" => {
                self.report(Event::StopBlocked { work: self.finishing(), text, repair: verb == "repair" });
            }
            "unfit" => {
                let end = End::InvalidAnswer { problem: text };
                self.report(Event::TurnFinished { work: self.finishing(), end });
            }
            "agree" => self.report(Event::TurnFinished { work: self.finishing(), end: End::Done }),
            "summary" => {
                let (upto, summary) = (id.parse().expect("a number of messages"), more.into());
                self.report(Event::Compacted { work: self.compacting(), upto, summary, spent: spent() });
            }
            "no-summary" => self.report(Event::CompactionFailed {
                work: self.compacting(),
                message: text,
                error: None,
                spent: None,
            }),
            _ => self.setting(verb, id, more),
        }
    }

    /// Lines about what surrounds the conversation.
    fn setting(&mut self, verb: &str, name: &str, more: &str) {
        let scope = || serde_json::from_value(json!(name)).expect("the scope of a cap");
        match verb {
            "cap" => {
                let mut caps = self.state.profile.caps;
                let cap = match scope() {
                    CapScope::Session => &mut caps.session,
                    CapScope::Day => &mut caps.day,
                    CapScope::Tree => &mut caps.tree,
                };
                cap.tokens = Some(number(more));
                let change = Configured { caps: Some(caps), ..Configured::default() };
                self.wish(Command::Configure(Box::new(change)));
            }
            "elsewhere" => {
                let spent = Spending { micro_usd: 0, tokens: number(more) };
                self.report(Event::SpendingSeen { scope: scope(), spent });
            }
            "model" => {
                let change = Configured { model: Some(name.into()), ..Configured::default() };
                self.wish(Command::Configure(Box::new(change)));
            }
            "section" => {
                self.sections.retain(|section| section.name != name);
                self.sections.push(Section { name: name.into(), blob: blob(more, 120) });
            }
            "tools" => self.tools = blob(name, 900),
            "no-summary-yet" => {
                let kind = serde_json::from_value(json!(name)).expect("a kind of failure");
                let error = ModelFailure { kind, message: more.into(), status: None, retry_after_ms: None };
                let (work, message, error) = (self.compacting(), more.into(), Some(Box::new(error)));
                self.report(Event::CompactionFailed { work, message, error, spent: Some(Box::new(spent())) });
            }
            _ => panic!("the story has no word {verb:?}"),
        }
    }

    fn fresh(&mut self) -> InputId {
        self.inputs += 1;
        InputId(Uuid::from_u64_pair(3, self.inputs))
    }

    /// A wish that is granted, and what follows.
    pub fn wish(&mut self, command: Command) {
        let event = self.state.accept(&command).unwrap_or_else(|no| panic!("{command:?}: {no}"));
        self.report(event);
    }

    /// A fact, and what follows.
    pub fn report(&mut self, event: Event) {
        let cause = serde_json::to_value(&event).ok().and_then(|event| event["work"].as_u64()).map(Seq);
        self.happen(cause, event);
        for _ in 0..STEPS_PER_LINE {
            let Some(step) = self.state.next_step() else { return };
            let cause = Some(self.state.head);
            let work = self.happen(cause, Event::Began { step: step.clone() });
            for event in self.prelude(work, &step) {
                self.happen(Some(work), event);
            }
        }
        panic!("the ladder does not come to rest:\n{}", self.told());
    }

    /// Stores a fact; nothing follows from it yet.
    pub fn happen(&mut self, cause: Option<Seq>, event: Event) -> Seq {
        let seq = self.state.head.next();
        let record = Record {
            v: SCHEMA_VERSION,
            tenant: "local".into(),
            session: SessionId(Uuid::from_u64_pair(1, 1)),
            seq,
            id: EventId(Uuid::from_u64_pair(2, seq.0)),
            epoch: self.epoch,
            at: self.at(seq),
            cause,
            event,
        };
        self.state.apply(&record);
        self.log.push(record);
        if let Err(broken) = self.state.check() {
            panic!("{broken}\n{}", self.told());
        }
        seq
    }

    fn at(&self, seq: Seq) -> u64 {
        1_760_000_000_000 + seq.0 * 1_000
    }

    fn crash(&mut self) {
        self.state = State::fold(&self.log);
        self.epoch += 1;
        self.report(Event::Reopened { worker: "second".into() });
    }

    fn prelude(&mut self, work: Seq, step: &Step) -> Vec<Event> {
        match step {
            Step::CallModel => {
                let called = self.model_called(work, ModelRole::Main);
                let tokens = self.state.sent.as_ref().map_or(0, |sent| sent.tokens);
                let broke = self.state.cache_break(&called).map(|cause| CacheBroke { work, cause, tokens });
                let broke = broke.map(|broke| Event::CacheBroke(Box::new(broke)));
                [Event::ModelCalled(Box::new(called))].into_iter().chain(broke).collect()
            }
            Step::Compact => vec![Event::ModelCalled(Box::new(self.model_called(work, ModelRole::Compaction)))],
            Step::Judge { call } => judge(work, self.state.call(call).expect("a call of this round")),
            Step::RunTool { call } => vec![started(work, self.state.call(call).expect("a call of this round"))],
            Step::Finish { end, checks } if !(*checks && self.checks) => {
                vec![Event::TurnFinished { work, end: end.clone() }]
            }
            _ => vec![],
        }
    }

    fn model_called(&self, work: Seq, role: ModelRole) -> ModelCalled {
        let (provider, model) = self.state.speaking_model().split_once('/').expect("PROVIDER/NAME");
        ModelCalled {
            work,
            role,
            provider: provider.into(),
            model: model.into(),
            parameters: Parameters { max_tokens: 8_192, ..Parameters::default() },
            attempt: self.state.turn.as_ref().map_or(0, |turn| turn.model_errors) + 1,
            sections: self.sections.clone(),
            tools: self.tools.clone(),
            window: self.window,
        }
    }

    fn failed(&mut self, kind: FailureKind, message: &str, retry_after_ms: Option<u64>) {
        let error = ModelFailure { kind, message: message.into(), status: Some(500), retry_after_ms };
        self.report(Event::ModelFailed { work: self.speaking(), error, spent: Spent::default() });
    }

    fn round(&self) -> &Round {
        self.state.turn.as_ref().and_then(|turn| turn.round.as_ref()).expect("an open round")
    }

    pub fn speaking(&self) -> Seq {
        self.round().work
    }

    fn finishing(&self) -> Seq {
        self.state.turn.as_ref().and_then(|turn| turn.finishing.as_ref()).expect("a turn that finishes").work
    }

    fn compacting(&self) -> Seq {
        self.state.compacting.expect("a compaction under way").work
    }

    fn block(&mut self, block: ContentBlock, partial: bool) {
        let (work, index) = (self.speaking(), self.round().blocks.len() as u32);
        self.report(Event::BlockFinished { work, index, block, partial });
    }

    fn finished(&mut self, call: CallId, outcome: Outcome, text: &str, aborts_siblings: bool) {
        let running = self.state.call(&call).unwrap_or_else(|| panic!("no call {call} in\n{}", self.told()));
        let Phase::Running { work, .. } = running.phase else { panic!("{call} does not run:\n{}", self.told()) };
        self.report(tool_finished(work, call, outcome, text, aborts_siblings));
    }

    /// An answer to the question that call `id` asks.
    pub fn answer(&self, id: &CallId, decision: Decision) -> Answered {
        let question = self.state.asking().find(|(call, _)| call.id == *id).map(|(_, question)| question.hash.clone());
        let hash = question.unwrap_or_else(|| panic!("{id} asks nothing:\n{}", self.told()));
        let (scope, rule, changed, by) = (Scope::Once, None, None, "terminal".into());
        Answered { call: id.clone(), hash, decision, scope, rule, more_rules: vec![], changed, by }
    }

    /// The story as the log tells it, a line per event, without what only goes with a step.
    pub fn told(&self) -> String {
        self.log.iter().filter_map(|record| line_of(&record.event)).collect::<Vec<_>>().join("\n")
    }

    /// Only what the kernel decided.
    pub fn steps(&self) -> String {
        let began = self.log.iter().filter(|record| matches!(record.event, Event::Began { .. }));
        began.filter_map(|record| line_of(&record.event)).collect::<Vec<_>>().join("\n")
    }

    /// What the model would be shown now, a line per block.
    pub fn transcript(&self) -> String {
        let lines = self.state.transcript();
        let lines = lines.iter().flat_map(|message| message.content.iter().map(move |block| (message.role, block)));
        let line = |(role, block): (Role, &ContentBlock)| match role {
            Role::User => format!("user: {}", block_line(block)),
            Role::Assistant => format!("model: {}", block_line(block)),
        };
        lines.map(line).collect::<Vec<_>>().join("\n")
    }

    pub fn count(&self, wanted: impl Fn(&Step) -> bool) -> usize {
        let steps = self.log.iter().filter_map(|record| match &record.event {
            Event::Began { step } => Some(step),
            _ => None,
        });
        steps.filter(|step| wanted(step)).count()
    }

    pub fn model_calls(&self) -> usize {
        self.count(|step| *step == Step::CallModel)
    }

    pub fn tool_runs(&self) -> usize {
        self.count(|step| matches!(step, Step::RunTool { .. }))
    }

    pub fn end(&self) -> &End {
        self.state.last_end.as_ref().expect("a turn that ended")
    }

    /// The calls that run now, in call order.
    pub fn running(&self) -> Vec<&str> {
        let calls = self.round().calls.iter();
        calls.filter(|call| matches!(call.phase, Phase::Running { .. })).map(|call| call.id.0.as_str()).collect()
    }
}

pub fn prompt(input: InputId, text: &str) -> Command {
    prompt_for(input, text, None)
}

/// A prompt whose answer is to fit a schema; the text is its title.
fn wanting(input: InputId, text: &str) -> Command {
    prompt_for(input, text, Some(Arc::new(json!({ "type": "object", "title": text }))))
}

fn prompt_for(input: InputId, text: &str, output_schema: Option<Arc<Value>>) -> Command {
    let (origin, blocks) = (Origin::Terminal, vec![ContentBlock::text(text)]);
    let (context, data, intent, constraints) = (None, None, None, vec![]);
    let prompted = Prompted { input, origin, blocks, context, data, intent, constraints, output_schema };
    Command::Prompt(Box::new(prompted))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn blob(name: &str, bytes: u64) -> BlobRef {
    BlobRef { hash: format!("{name:0>64}"), bytes }
}

pub fn spent() -> Spent {
    let usage = Usage { input: 100, output: 20, ..Usage::default() };
    Spent { usage, cost_micro_usd: Some(600), first_token_ms: Some(40), estimated: false }
}

/// The policy of the story: the tool's name says what may be done.
fn judge(work: Seq, call: &Call) -> Vec<Event> {
    let (access, on_crash) = match call.name.as_str() {
        "read" | "ask_user" | "nothing" | "peek" => (Access::Read, OnCrash::Repeat),
        "fetch" => (Access::Read, OnCrash::Unknown),
        "agent" => (Access::Write, OnCrash::Rejoin),
        _ => (Access::Write, OnCrash::Unknown),
    };
    let (verdict, reason) = match call.name.as_str() {
        "forbidden" => (Verdict::Deny, "forbidden by rule"),
        "nothing" => (Verdict::Invalid, "Unknown tool: nothing"),
        "ask_user" | "danger" | "peek" => (Verdict::Ask, ""),
        _ => (Verdict::Allow, ""),
    };
    let plan = CallPlan { access, on_crash, ..CallPlan::default() };
    let (stage, rule, reason, input) = ("rule".into(), Some(format!("{}(**)", call.name)), reason.into(), None);
    let watched = call.name == "watched";
    let context = watched.then(|| "A hook says: mind the gap.".to_owned());
    let review =
        watched.then(|| Box::new(Review { allows: Some(true), reason: "it is asked for".into(), spent: spent() }));
    let judged = Judged { work, call: call.id.clone(), verdict, stage, rule, reason, input, context, review, plan };
    let asked = (verdict == Verdict::Ask).then(|| Event::Asked {
        call: call.id.clone(),
        question: Box::new(Question {
            hash: format!("hash-{}", call.id),
            kind: if call.name == "ask_user" { QuestionKind::Words } else { QuestionKind::Approval },
            preview: format!("{} {}", call.name, call.input),
            proposed: vec![format!("{}(**)", call.name)],
            ..Question::default()
        }),
    });
    let hook = watched.then(|| {
        Event::HookRan(Box::new(HookRan {
            on: "PreToolUse".into(),
            hook: "look".into(),
            call: Some(call.id.clone()),
            outcome: HookOutcome::Passed,
            message: String::new(),
            printed: "{}".into(),
            rewrote: false,
            took_ms: 7,
        }))
    });
    let called = watched.then(|| {
        Event::ModelCalled(Box::new(ModelCalled {
            work,
            role: ModelRole::Review,
            provider: "mock".into(),
            model: "reviewer".into(),
            parameters: Parameters::default(),
            attempt: 1,
            sections: vec![],
            tools: blob("b", 2),
            window: None,
        }))
    });
    hook.into_iter().chain(called).chain([Event::Judged(Box::new(judged))]).chain(asked).collect()
}

fn started(work: Seq, call: &Call) -> Event {
    Event::ToolStarted(Box::new(ToolStarted {
        work,
        call: call.id.clone(),
        plan: call.plan.clone().unwrap_or_default(),
        idempotency_key: format!("00000000-0000-0001-0000-000000000001:{work}"),
        process: None,
    }))
}

pub fn tool_finished(work: Seq, call: CallId, outcome: Outcome, text: &str, aborts_siblings: bool) -> Event {
    Event::ToolFinished(Box::new(ToolFinished {
        work,
        call,
        outcome,
        blocks: vec![ContentBlock::text(text)],
        value: None,
        output: None,
        files: vec![],
        aborts_siblings,
        took_ms: 12,
    }))
}

fn line_of(event: &Event) -> Option<String> {
    Some(match event {
        Event::Opened { .. } | Event::ModelCalled(_) | Event::ToolStarted(_) => return None,
        Event::Began { step } => format!("  {}", step_line(step)),
        Event::Reopened { .. } => "reopened".into(),
        Event::Prompted(prompt) => format!("prompted: {}", text_of(&prompt.blocks)),
        Event::Noted { text, .. } => format!("noted: {text}"),
        Event::Interrupted { .. } => "interrupted".into(),
        Event::BlockFinished { block, partial: true, .. } => format!("heard: {}", block_line(block)),
        Event::BlockFinished { block, .. } => format!("block: {}", block_line(block)),
        Event::ModelFinished { stop, .. } => format!("model finished: {stop:?}"),
        Event::ModelFailed { error, .. } => format!("model failed: {}", error.message),
        Event::ModelCancelled { .. } => "model cancelled".into(),
        Event::HookRan(ran) => format!("hook {}: {:?}", ran.hook, ran.outcome),
        Event::Judged(judged) => format!("judged {}: {:?}", judged.call, judged.verdict),
        Event::Asked { call, .. } => format!("asked {call}"),
        Event::Answered(answer) => format!("answered {}: {:?}", answer.call, answer.decision),
        Event::ToolFinished(done) => format!("finished {}: {:?}", done.call, done.outcome),
        Event::Compacted { upto, .. } => format!("compacted up to {upto}"),
        Event::StopBlocked { text, repair: true, .. } => format!("to be repaired: {text}"),
        Event::StopBlocked { text, .. } => format!("stop blocked: {text}"),
        Event::CacheBroke(broke) => format!("cache broke: {:?}, {} tokens", broke.cause, broke.tokens),
        Event::SpendingSeen { scope, spent } => format!("spent elsewhere: {} tokens ({scope:?})", spent.tokens),
        Event::TurnFinished { end, .. } => format!("turn finished: {end:?}"),
        Event::Configured(_) => "configured".into(),
        Event::ToolsChanged { .. } => "tools changed".into(),
        Event::Cleared { .. } => "cleared".into(),
        Event::CompactionAsked { .. } => "compaction asked".into(),
        Event::CompactionFailed { .. } => "compaction failed".into(),
        Event::DeadlinePassed => "deadline passed".into(),
    })
}

fn step_line(step: &Step) -> String {
    match step {
        Step::CallModel => "call model".into(),
        Step::Judge { call } => format!("judge {call}"),
        Step::RunTool { call } => format!("run {call}"),
        Step::Close { calls, why } => {
            let calls: Vec<_> = calls.iter().map(|call| call.0.as_str()).collect();
            format!("close {} ({why:?})", calls.join(", "))
        }
        Step::Cancel { work } => format!("cancel {work}"),
        Step::Compact => "compact".into(),
        Step::Snip { calls } => {
            let calls: Vec<_> = calls.iter().map(|call| call.0.as_str()).collect();
            format!("snip {}", calls.join(", "))
        }
        Step::SwitchModel { model, why } => format!("switch to {model} ({why:?})"),
        Step::Pause { cap } => format!("pause at {:?}: {} tokens", cap.scope, cap.spent.tokens),
        Step::Finish { end, checks } => format!("finish {end:?}{}", if *checks { ", checks first" } else { "" }),
    }
}

fn block_line(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => text.clone(),
        ContentBlock::Thinking { thinking, .. } => format!("({thinking})"),
        ContentBlock::ToolUse(tool_use) => format!("[{} {}]", tool_use.id, tool_use.name),
        ContentBlock::ToolResult(result) => {
            let mark = if result.is_error { "!" } else { "" };
            format!("[{}{mark}] {}", result.tool_use_id, text_of(&result.content))
        }
        other => format!("{other:?}"),
    }
}
