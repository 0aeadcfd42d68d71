//! Any events in any order, sensible or not: `apply` is total, and no state has a call without exactly one result.

use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;
use windlass_kernel::*;

fn work() -> impl Strategy<Value = Seq> {
    (0..30u64).prop_map(Seq)
}

fn call() -> impl Strategy<Value = CallId> {
    (0..6u8).prop_map(|n| CallId(format!("c{n}")))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("text".to_owned())]
}

fn input() -> impl Strategy<Value = InputId> {
    (0..6u64).prop_map(|n| InputId(Uuid::from_u64_pair(0, n)))
}

fn block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        2 => text().prop_map(ContentBlock::text),
        1 => text().prop_map(|thinking| ContentBlock::Thinking { thinking, signature: None }),
        1 => call().prop_map(|id| ContentBlock::ToolResult(ToolResult { tool_use_id: id, content: vec![], is_error: true })),
        4 => call().prop_map(|id| ContentBlock::ToolUse(ToolUse { id, name: "read".into(), input: json!({}) })),
    ]
}

fn plan() -> impl Strategy<Value = CallPlan> {
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    let on_crash = prop_oneof![Just(OnCrash::Repeat), Just(OnCrash::Unknown), Just(OnCrash::Rejoin)];
    (access, on_crash).prop_map(|(access, on_crash)| CallPlan { access, on_crash, ..CallPlan::default() })
}

fn spent() -> impl Strategy<Value = Spent> {
    prop_oneof![Just(0), Just(100), Just(u64::MAX)]
        .prop_map(|input| Spent { usage: Usage { input, output: input, ..Usage::default() }, ..Spent::default() })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Done), Just(End::Interrupted), Just(End::TokenLimit { used: 1 })]
}

fn profile() -> impl Strategy<Value = Profile> {
    let small = 0..3u32;
    (0..Profile::NAMES.len(), small.clone(), small.clone(), small.clone(), small, any::<bool>()).prop_map(
        |(name, turns, errors, denials, parallel, budget)| {
            let mut profile = Profile::named(Profile::NAMES[name]).unwrap();
            (profile.max_turns, profile.max_model_errors, profile.max_denials) = (turns, errors, denials);
            profile.max_tool_error_rounds = Some(errors);
            profile.max_session_tokens = budget.then_some(200);
            profile.keep_last = turns as usize;
            profile.tools.max_parallel = parallel;
            profile
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let why =
        prop_oneof![Just(CloseReason::Interrupted), Just(CloseReason::OutcomeUnknown), Just(CloseReason::MessageCut)];
    prop_oneof![
        3 => Just(Step::CallModel),
        2 => call().prop_map(|call| Step::Judge { call }),
        2 => call().prop_map(|call| Step::RunTool { call }),
        1 => (prop::collection::vec(call(), 0..4), why).prop_map(|(calls, why)| Step::Close { calls, why }),
        1 => work().prop_map(|work| Step::Cancel { work }),
        1 => Just(Step::Compact),
        1 => (end(), any::<bool>()).prop_map(|(end, checks)| Step::Finish { end, checks }),
    ]
}

fn judged() -> impl Strategy<Value = Event> {
    use Verdict::*;
    let verdict = prop_oneof![Just(Allow), Just(Ask), Just(Deny), Just(Invalid)];
    (work(), call(), verdict, plan()).prop_map(|(work, call, verdict, plan)| {
        let (stage, reason) = ("rule".into(), "no".into());
        Event::Judged(Box::new(Judged { work, call, verdict, stage, rule: None, reason, input: None, plan }))
    })
}

fn asked() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![Just(QuestionKind::Approval), Just(QuestionKind::Words)];
    (call(), kind).prop_map(|(call, kind)| {
        let (hash, preview, impact, rule) = ("h".into(), String::new(), String::new(), None);
        let question = Question { hash, kind, preview, impact, rule, proposed: vec![], options: vec![] };
        Event::Asked { call, question: Box::new(question) }
    })
}

fn answer() -> impl Strategy<Value = Answered> {
    let decision = prop_oneof![
        Just(Decision::Allow),
        text().prop_map(|note| Decision::Deny { note }),
        text().prop_map(|text| Decision::Words { text }),
    ];
    (call(), decision, prop::option::of(plan())).prop_map(|(call, decision, plan)| {
        let changed = plan.map(|plan| Changed { input: json!({}), plan });
        Answered { call, hash: "h".into(), decision, scope: Scope::Session, rule: None, changed, by: "t".into() }
    })
}

fn tool_finished() -> impl Strategy<Value = Event> {
    use Outcome::*;
    let outcome = prop_oneof![Just(Ok), Just(Error), Just(Denied), Just(Cancelled), Just(NotRun), Just(Unknown)];
    (work(), call(), outcome, any::<bool>()).prop_map(|(work, call, outcome, aborts_siblings)| {
        let (blocks, value, output, files) = (vec![], None, None, vec![]);
        Event::ToolFinished(Box::new(ToolFinished {
            work,
            call,
            outcome,
            blocks,
            value,
            output,
            files,
            aborts_siblings,
            took_ms: 0,
        }))
    })
}

fn failed() -> impl Strategy<Value = Event> {
    use FailureKind::*;
    let kind = prop_oneof![Just(Transient), Just(Overloaded), Just(TooLong), Just(Auth), Just(Invalid)];
    (work(), kind, spent()).prop_map(|(work, kind, spent)| {
        let error = ModelFailure { kind, message: "x".into(), status: None, retry_after_ms: None };
        Event::ModelFailed { work, error, spent }
    })
}

fn finished() -> impl Strategy<Value = Event> {
    use StopReason::*;
    let stop = prop_oneof![Just(EndTurn), Just(ToolUse), Just(MaxTokens), Just(Refusal), Just(Pause), Just(Other)];
    (work(), stop, spent()).prop_map(|(work, stop, spent)| Event::ModelFinished { work, stop, raw_stop: None, spent })
}

fn command() -> impl Strategy<Value = Command> {
    let prompted = (input(), prop::collection::vec(block(), 0..3)).prop_map(|(input, blocks)| {
        let (origin, context, data, intent, constraints) = (Origin::Library, None, None, None, vec![]);
        Command::Prompt(Box::new(Prompted { input, origin, blocks, context, data, intent, constraints }))
    });
    let tools = prop_oneof![Just(ToolsChange::Enabled), Just(ToolsChange::Disabled), Just(ToolsChange::Registered)];
    prop_oneof![
        4 => prompted,
        2 => (input(), text(), any::<bool>()).prop_map(|(input, text, wakes)| Command::Note { input, text, wakes }),
        1 => input().prop_map(|input| Command::Clear { input }),
        1 => Just(Command::Compact { instructions: None }),
        2 => Just(Command::Interrupt { by: "t".into() }),
        2 => answer().prop_map(|answer| Command::Answer(Box::new(answer))),
        1 => profile().prop_map(|profile| {
            let profile = Some(Box::new(profile));
            Command::Configure(Box::new(Configured { profile, ..Configured::default() }))
        }),
        1 => tools.prop_map(|change| Command::ChangeTools { change, tools: vec!["read".into()] }),
    ]
}

/// What the same command would be as a fact, whether it could be accepted or not.
fn as_fact(command: Command) -> Event {
    match command {
        Command::Prompt(prompt) => Event::Prompted(prompt),
        Command::Note { input, text, wakes } => Event::Noted { input, text, wakes },
        Command::Clear { input } => Event::Cleared { input },
        Command::Compact { instructions } => Event::CompactionAsked { instructions },
        Command::Interrupt { by } => Event::Interrupted { by },
        Command::Answer(answer) => Event::Answered(answer),
        Command::Configure(change) => Event::Configured(change),
        Command::ChangeTools { change, tools } => Event::ToolsChanged { change, tools },
    }
}

fn event() -> impl Strategy<Value = Event> {
    let began = || step().prop_map(|step| Event::Began { step });
    let heard = (work(), block(), prop::bool::weighted(0.2)).prop_map(|(work, block, partial)| Event::BlockFinished {
        work,
        index: 0,
        block,
        partial,
    });
    prop_oneof![
        6 => began(),
        4 => command().prop_map(as_fact),
        6 => heard,
        2 => finished(),
        1 => failed(),
        1 => (work(), spent()).prop_map(|(work, spent)| Event::ModelCancelled { work, spent }),
        3 => judged(),
        1 => asked(),
        3 => tool_finished(),
        1 => (work(), 0..12usize, spent()).prop_map(|(work, upto, spent)| {
            Event::Compacted { work, upto, summary: "s".into(), spent }
        }),
        1 => work().prop_map(|work| Event::CompactionFailed { work, message: "x".into() }),
        1 => work().prop_map(|work| Event::StopBlocked { work, text: "x".into() }),
        1 => (work(), end()).prop_map(|(work, end)| Event::TurnFinished { work, end }),
        1 => Just(Event::Reopened { worker: "w".into() }),
        1 => Just(Event::DeadlinePassed),
        1 => profile().prop_map(|profile| Event::Opened {
            parent: None,
            forked_from: None,
            cwd: "/".into(),
            agent: "a".into(),
            model: "m".into(),
            mode: PermissionMode::Default,
            profile: Box::new(profile),
        }),
    ]
}

/// A report is of some work at random, or of one that is really under way: chance alone would hardly ever meet one.
fn aim(event: &mut Event, state: &State, pick: usize) {
    let works = state.in_flight();
    let Some(aimed) = works.get(pick % (2 * works.len()).max(1)) else { return };
    match event {
        Event::BlockFinished { work, .. }
        | Event::ModelFinished { work, .. }
        | Event::ModelFailed { work, .. }
        | Event::ModelCancelled { work, .. }
        | Event::Compacted { work, .. }
        | Event::CompactionFailed { work, .. }
        | Event::StopBlocked { work, .. }
        | Event::TurnFinished { work, .. }
        | Event::Began { step: Step::Cancel { work } } => *work = *aimed,
        Event::Judged(judged) => judged.work = *aimed,
        Event::ToolFinished(done) => done.work = *aimed,
        _ => {}
    }
}

fn record(seq: Seq, event: Event) -> Record {
    Record {
        v: SCHEMA_VERSION,
        tenant: "local".into(),
        session: SessionId(Uuid::nil()),
        seq,
        id: EventId(Uuid::from_u64_pair(1, seq.0)),
        epoch: 1,
        at: seq.0,
        cause: None,
        event,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_events_in_any_order_fold_to_a_state_that_can_be_loaded(
        events in prop::collection::vec((event(), 0..8usize), 0..120),
        wishes in prop::collection::vec(command(), 1..4),
    ) {
        let mut state = State::default();
        let mut log = Vec::new();
        for (mut event, pick) in events {
            aim(&mut event, &state, pick);
            let record = record(state.head.next(), event);
            state.apply(&record);
            log.push(record);
            if let Err(broken) = state.check() {
                return Err(TestCaseError::fail(broken));
            }
            let _ = (state.next_step(), state.split(), state.view());
            for wish in &wishes {
                let _ = state.accept(wish);
            }
        }
        prop_assert!(check_pairs(&state.transcript()).is_ok());
        prop_assert_eq!(State::fold(&log), state);
    }

    #[test]
    fn any_state_comes_to_rest_once_its_steps_are_taken(
        events in prop::collection::vec((event(), 0..8usize), 0..80),
    ) {
        let mut state = State::default();
        for (mut event, pick) in events {
            aim(&mut event, &state, pick);
            state.apply(&record(state.head.next(), event));
        }
        let mut steps = 0;
        while let Some(step) = state.next_step() {
            steps += 1;
            prop_assert!(steps < 100, "the ladder does not come to rest: {:?}", step);
            let work = state.head.next();
            state.apply(&record(work, Event::Began { step: step.clone() }));
            let follows = match step {
                Step::Judge { call } => {
                    let (verdict, stage, plan) = (Verdict::Allow, "rule".into(), CallPlan::default());
                    let judged = Judged { work, call, verdict, stage, rule: None, reason: "".into(), input: None, plan };
                    Event::Judged(Box::new(judged))
                }
                Step::Finish { end, checks: false } => Event::TurnFinished { work, end },
                _ => continue,
            };
            state.apply(&record(state.head.next(), follows));
        }
    }

    #[test]
    fn a_state_comes_back_from_a_snapshot_as_it_was(
        events in prop::collection::vec((event(), 0..8usize), 0..60),
    ) {
        let mut state = State::default();
        for (mut event, pick) in events {
            aim(&mut event, &state, pick);
            let record = record(state.head.next(), event);
            let line = serde_json::to_string(&record).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Record>(&line).unwrap(), &record);
            state.apply(&record);
        }
        let written = serde_json::to_vec(&state).unwrap();
        prop_assert_eq!(serde_json::from_slice::<State>(&written).unwrap(), state);
    }
}
