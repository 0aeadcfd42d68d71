//! Any events in any order, sensible or not: `apply` is total, and no state has a call without exactly one result.

use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
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
        1 => (text(), by()).prop_map(|(thinking, by)| ContentBlock::Thinking { thinking, signature: by.clone(), by }),
        1 => by().prop_map(|by| ContentBlock::RedactedThinking { data: "d".into(), by }),
        1 => call().prop_map(|id| ContentBlock::ToolResult(ToolResult { tool_use_id: id, content: vec![], is_error: true })),
        4 => (call(), by()).prop_map(|(id, by)| {
            let signature = by.map(|by| Box::new(Signature { by, text: "s".into() }));
            ContentBlock::ToolUse(ToolUse { id, name: "read".into(), input: json!({}), signature })
        }),
    ]
}

/// Who thought or signed it.
fn by() -> impl Strategy<Value = Option<String>> {
    prop::option::of(model())
}

fn model() -> impl Strategy<Value = String> {
    prop_oneof![Just("m/one".to_owned()), Just("m/two".to_owned())]
}

fn plan() -> impl Strategy<Value = CallPlan> {
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    let on_crash = prop_oneof![Just(OnCrash::Repeat), Just(OnCrash::Unknown), Just(OnCrash::Rejoin)];
    (access, on_crash).prop_map(|(access, on_crash)| CallPlan { access, on_crash, ..CallPlan::default() })
}

fn spent() -> impl Strategy<Value = Spent> {
    let price = prop_oneof![Just(None), Just(Some(0)), Just(Some(u64::MAX))];
    (tokens(), tokens(), price, any::<bool>()).prop_map(|(input, cache_read, cost_micro_usd, estimated)| {
        let usage = Usage { input, cache_read, cache_write: cache_read, output: input, reasoning: 0 };
        Spent { usage, cost_micro_usd, first_token_ms: None, estimated }
    })
}

fn tokens() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(100), Just(5_000), Just(u64::MAX)]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Done),
        Just(End::Interrupted),
        Just(End::TokenLimit { used: 1 }),
        Just(End::InvalidAnswer { problem: "x".into() }),
    ]
}

fn scope() -> impl Strategy<Value = CapScope> {
    prop_oneof![Just(CapScope::Session), Just(CapScope::Day), Just(CapScope::Tree)]
}

fn cap() -> impl Strategy<Value = Cap> {
    let limit = || prop_oneof![3 => Just(None), 1 => tokens().prop_map(Some)];
    (limit(), limit()).prop_map(|(micro_usd, tokens)| Cap { micro_usd, tokens })
}

fn caps() -> impl Strategy<Value = Caps> {
    (cap(), cap(), cap()).prop_map(|(session, day, tree)| Caps { session, day, tree })
}

fn spending() -> impl Strategy<Value = Spending> {
    (tokens(), tokens()).prop_map(|(micro_usd, tokens)| Spending { micro_usd, tokens })
}

fn fallback() -> impl Strategy<Value = Option<Fallback>> {
    let back = prop_oneof![Just(FallbackBack::NextTurn), Just(FallbackBack::Never)];
    prop::option::of((model(), back).prop_map(|(model, back)| Fallback { model, back }))
}

fn profile() -> impl Strategy<Value = Profile> {
    let small = 0..3u32;
    let limits = (0..Profile::NAMES.len(), small.clone(), small.clone(), small.clone(), small.clone(), any::<bool>());
    (limits, fallback(), prop_oneof![3 => Just(Caps::default()), 1 => caps()], small).prop_map(
        |((name, turns, errors, denials, parallel, budget), fallback, caps, few)| {
            let mut profile = Profile::named(Profile::NAMES[name]).unwrap();
            (profile.fallback, profile.caps, profile.retry.max_stalls) = (fallback, caps, few);
            profile.retry.overloads_before_fallback = few;
            profile.max_continuations = few;
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
        1 => prop::collection::vec(call(), 0..4).prop_map(|calls| Step::Snip { calls }),
        1 => model().prop_map(|model| Step::SwitchModel { model, why: SwitchReason::Failed }),
        1 => (scope(), cap(), spending()).prop_map(|(scope, cap, spent)| Step::Pause { cap: ReachedCap { scope, cap, spent } }),
        1 => (end(), any::<bool>()).prop_map(|(end, checks)| Step::Finish { end, checks }),
    ]
}

fn judged() -> impl Strategy<Value = Event> {
    use Verdict::*;
    let verdict = prop_oneof![Just(Allow), Just(Ask), Just(Deny), Just(Invalid)];
    (work(), call(), verdict, plan()).prop_map(|(work, call, verdict, plan)| {
        let (stage, reason) = ("rule".into(), "no".into());
        Event::Judged(Box::new(Judged {
            work,
            call,
            verdict,
            stage,
            rule: None,
            reason,
            input: None,
            context: None,
            review: None,
            plan,
        }))
    })
}

fn asked() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![Just(QuestionKind::Approval), Just(QuestionKind::Words)];
    (call(), kind).prop_map(|(call, kind)| {
        let (hash, preview, impact, rule) = ("h".into(), String::new(), String::new(), None);
        let question = Question { hash, kind, preview, impact, rule, ..Question::default() };
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
        let (hash, scope, by) = ("h".into(), Scope::Session, "t".into());
        Answered { call, hash, decision, scope, rule: None, more_rules: vec![], changed, by }
    })
}

fn tool_finished() -> impl Strategy<Value = Event> {
    use Outcome::*;
    let outcome = prop_oneof![Just(Ok), Just(Error), Just(Denied), Just(Cancelled), Just(NotRun), Just(Unknown)];
    let bytes = prop_oneof![Just(0), Just(300), Just(usize::MAX)];
    (work(), call(), outcome, any::<bool>(), bytes).prop_map(|(work, call, outcome, aborts_siblings, bytes)| {
        let blocks = match bytes {
            0 => vec![],
            300 => vec![ContentBlock::text("x".repeat(300))],
            bytes => {
                let blob = BlobRef { hash: "a".repeat(64), bytes: bytes as u64 };
                vec![ContentBlock::Image { media_type: "image/png".into(), blob }]
            }
        };
        let (value, output, files) = (None, None, vec![]);
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
    let kind = prop_oneof![
        2 => Just(Transient),
        4 => Just(Overloaded),
        2 => Just(Stalled),
        4 => Just(TooLong),
        1 => Just(Auth),
        1 => Just(Invalid),
    ];
    let asked = prop_oneof![4 => Just(None), 1 => Just(Some(10)), 1 => Just(Some(u64::MAX))];
    (work(), kind, spent(), asked).prop_map(|(work, kind, spent, retry_after_ms)| {
        let error = ModelFailure { kind, message: "x".into(), status: None, retry_after_ms };
        Event::ModelFailed { work, error, spent }
    })
}

fn finished() -> impl Strategy<Value = Event> {
    use StopReason::*;
    let stop = prop_oneof![Just(EndTurn), Just(ToolUse), Just(MaxTokens), Just(Refusal), Just(Pause), Just(Other)];
    (work(), stop, spent()).prop_map(|(work, stop, spent)| Event::ModelFinished { work, stop, raw_stop: None, spent })
}

fn command() -> impl Strategy<Value = Command> {
    let prompted = (input(), prop::collection::vec(block(), 0..3), any::<bool>()).prop_map(|(input, blocks, wants)| {
        let (origin, context, data, intent, constraints) = (Origin::Library, None, None, None, vec![]);
        let output_schema = wants.then(|| Arc::new(json!({ "type": "object" })));
        let prompted = Prompted { input, origin, blocks, context, data, intent, constraints, output_schema };
        Command::Prompt(Box::new(prompted))
    });
    let configured = (prop::option::of(profile()), prop::option::of(model()), prop::option::of(caps()));
    let tools = prop_oneof![Just(ToolsChange::Enabled), Just(ToolsChange::Disabled), Just(ToolsChange::Registered)];
    prop_oneof![
        4 => prompted,
        2 => (input(), text(), any::<bool>()).prop_map(|(input, text, wakes)| Command::Note { input, text, wakes }),
        1 => input().prop_map(|input| Command::Clear { input }),
        1 => Just(Command::Compact { instructions: None }),
        2 => Just(Command::Interrupt { by: "t".into() }),
        2 => answer().prop_map(|answer| Command::Answer(Box::new(answer))),
        2 => configured.prop_map(|(profile, model, caps)| {
            let profile = profile.map(Box::new);
            Command::Configure(Box::new(Configured { profile, model, caps, mode: None }))
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

fn called() -> impl Strategy<Value = Event> {
    let role = prop_oneof![3 => Just(ModelRole::Main), 1 => Just(ModelRole::Compaction)];
    let blob = || (0..2u8).prop_map(|n| BlobRef { hash: n.to_string().repeat(64), bytes: 9 });
    let window = prop_oneof![Just(None), Just(Some(0)), Just(Some(200)), Just(Some(u64::MAX))];
    let sections = prop::collection::vec((text(), blob()).prop_map(|(name, blob)| Section { name, blob }), 0..3);
    (work(), role, model(), sections, blob(), window).prop_map(|(work, role, model, sections, tools, window)| {
        let (parameters, provider) = (Parameters::default(), "m".into());
        let called = ModelCalled { work, role, provider, model, parameters, attempt: 1, sections, tools, window };
        Event::ModelCalled(Box::new(called))
    })
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
        1 => work().prop_map(|work| Event::CompactionFailed { work, message: "x".into(), error: None, spent: None }),
        1 => (work(), any::<bool>()).prop_map(|(work, repair)| Event::StopBlocked { work, text: "x".into(), repair }),
        3 => called(),
        1 => (scope(), spending()).prop_map(|(scope, spent)| Event::SpendingSeen { scope, spent }),
        1 => work().prop_map(|work| {
            let cause = CacheBreak::Miss { read: 0, idle_ms: 9 };
            Event::CacheBroke(Box::new(CacheBroke { work, cause, tokens: 9 }))
        }),
        1 => (work(), end()).prop_map(|(work, end)| Event::TurnFinished { work, end }),
        1 => Just(Event::Reopened { worker: "w".into() }),
        1 => Just(Event::DeadlinePassed),
        1 => profile().prop_map(|profile| Event::Opened {
            parent: None,
            forked_from: None,
            cwd: "/".into(),
            agent: "a".into(),
            model: "m/one".into(),
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
            let _ = (state.next_step(), state.split(), state.view(), state.reached_cap(), state.paused());
            if let Event::ModelCalled(called) = &log.last().unwrap().event {
                let _ = (state.cache_break(called), state.cache_miss(called.work, &Usage::default(), 0));
            }
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
                    let judged = Judged {
                        work,
                        call,
                        verdict,
                        stage,
                        rule: None,
                        reason: "".into(),
                        input: None,
                        context: None,
                        review: None,
                        plan,
                    };
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
