//! What a collector hears of sessions.

mod common;
use common::*;
use std::time::Duration;
use windlass_otel::{Options, Telemetry};

const WITHIN: Duration = Duration::from_secs(20);

/// Follows `records` to the end.
fn follow(options: Options, records: &[windlass_kernel::Record]) -> windlass_otel::Delivery {
    let telemetry = Telemetry::start(options).unwrap();
    records.iter().for_each(|record| telemetry.observe(record));
    telemetry.shutdown(WITHIN)
}

#[test]
fn a_turn_is_a_tree_of_calls_and_tools() {
    let collector = Collector::start(200);
    let delivery = follow(collector.options(), &golden("v1-first-voyage"));
    assert_eq!((delivery.sent, delivery.lost()), (6, 0), "{delivery:?}");
    insta::assert_snapshot!(tree(&collector.spans()), @r#"
    invoke_agent build [Internal] 0 to 27
        gen_ai.agent.name=build
        gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
        gen_ai.operation.name=invoke_agent
        gen_ai.usage.input_tokens=300
        gen_ai.usage.output_tokens=60
        windlass.cost_usd=0.0018
      chat scripted [Client] 2 to 10
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mock
          gen_ai.request.max_tokens=8192
          gen_ai.request.model=scripted
          gen_ai.request.stream=true
          gen_ai.response.finish_reasons=["tool_use"]
          gen_ai.response.time_to_first_chunk=0.04
          gen_ai.usage.input_tokens=100
          gen_ai.usage.output_tokens=20
          windlass.attempt=1
          windlass.cost_usd=0.0006
          windlass.role=main
      execute_tool read [Internal] 9 to 12
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
          gen_ai.operation.name=execute_tool
          gen_ai.tool.call.id=c1
          gen_ai.tool.name=read
          gen_ai.tool.type=function
      chat scripted [Client] 14 to 18
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mock
          gen_ai.request.max_tokens=8192
          gen_ai.request.model=scripted
          gen_ai.request.stream=true
          gen_ai.response.finish_reasons=["tool_use"]
          gen_ai.response.time_to_first_chunk=0.04
          gen_ai.usage.input_tokens=100
          gen_ai.usage.output_tokens=20
          windlass.attempt=1
          windlass.cost_usd=0.0006
          windlass.role=main
      execute_tool edit [Internal] 20 to 21
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
          gen_ai.operation.name=execute_tool
          gen_ai.tool.call.id=c2
          gen_ai.tool.name=edit
          gen_ai.tool.type=function
      chat scripted [Client] 23 to 25
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0001-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mock
          gen_ai.request.max_tokens=8192
          gen_ai.request.model=scripted
          gen_ai.request.stream=true
          gen_ai.response.finish_reasons=["end_turn"]
          gen_ai.response.time_to_first_chunk=0.04
          gen_ai.usage.input_tokens=100
          gen_ai.usage.output_tokens=20
          windlass.attempt=1
          windlass.cost_usd=0.0006
          windlass.role=main
    "#);
    insta::assert_snapshot!(points(&collector.metrics()), @r"
    gen_ai.client.inference.duration (s) 14 of 3, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted
    gen_ai.client.inference.time_to_first_chunk (s) 0.12 of 3, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted
    gen_ai.client.inference.usage.cache_read.input_tokens ({token}) = 0: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.cache_write.input_tokens ({token}) = 0: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.input_tokens ({token}) = 300: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.output_tokens ({token}) = 60: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.reasoning.output_tokens ({token}) = 0: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.modality=unknown
    gen_ai.client.operation.duration (s) 14 of 3, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted
    gen_ai.client.operation.time_to_first_chunk (s) 0.12 of 3, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted
    gen_ai.client.token.usage ({token}) 300 of 3, up to 67108864: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.type=input
    gen_ai.client.token.usage ({token}) 60 of 3, up to 67108864: gen_ai.operation.name=chat; gen_ai.provider.name=mock; gen_ai.request.model=scripted; gen_ai.token.type=output
    ");
}

#[test]
fn what_goes_wrong_is_an_error_of_its_class() {
    let collector = Collector::start(200);
    let failed = r#"{"type":"model_failed","work":3,"error":{"kind":"overloaded","message":"come back later","status":529},"usage":{"input":0,"output":0}}"#;
    let events = [
        r#"{"type":"opened","cwd":"/w","agent":"build","model":"mistral/large","mode":"default","profile":{"name":"default"}}"#,
        r#"{"type":"prompted","input":"00000000-0000-0000-0000-000000000001","origin":"terminal","blocks":[{"type":"text","text":"go"}]}"#,
        &called(3, 1),
        failed,
        &called(5, 2),
        r#"{"type":"block_finished","work":5,"index":0,"block":{"type":"tool_use","id":"c1","name":"bash","input":{"command":"exit 1"}}}"#,
        r#"{"type":"model_finished","work":5,"stop":"tool_use","usage":{"input":7,"cache_read":90,"cache_write":3,"output":20,"reasoning":8}}"#,
        r#"{"type":"tool_started","work":8,"call":"c1","access":"write","on_crash":"unknown","idempotency_key":"k"}"#,
        r#"{"type":"tool_finished","work":8,"call":"c1","outcome":"error","blocks":[{"type":"text","text":"secret"}],"took_ms":5}"#,
        &called(10, 1),
        r#"{"type":"model_cancelled","work":10,"usage":{"input":0,"output":0}}"#,
        r#"{"type":"turn_finished","work":12,"end":{"type":"interrupted"}}"#,
    ];
    follow(collector.options(), &log(1, &events));
    insta::assert_snapshot!(tree(&collector.spans()), @r#"
    invoke_agent build [Internal] 0 to 10 ERROR ""
        error.type=interrupted
        gen_ai.agent.name=build
        gen_ai.conversation.id=00000000-0000-0000-0000-000000000001
        gen_ai.operation.name=invoke_agent
        gen_ai.usage.cache_read.input_tokens=90
        gen_ai.usage.cache_write.input_tokens=3
        gen_ai.usage.input_tokens=100
        gen_ai.usage.output_tokens=20
        gen_ai.usage.reasoning.output_tokens=8
      chat large [Client] 1 to 2 ERROR "come back later"
          error.type=overloaded
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0000-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mistral_ai
          gen_ai.request.max_tokens=100
          gen_ai.request.model=large
          gen_ai.request.stream=true
          gen_ai.request.temperature=0.5
          gen_ai.response.finish_reasons=["error"]
          http.response.status_code=529
          windlass.attempt=1
          windlass.role=main
      chat large [Client] 3 to 5
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0000-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mistral_ai
          gen_ai.request.max_tokens=100
          gen_ai.request.model=large
          gen_ai.request.stream=true
          gen_ai.request.temperature=0.5
          gen_ai.response.finish_reasons=["tool_use"]
          gen_ai.usage.cache_read.input_tokens=90
          gen_ai.usage.cache_write.input_tokens=3
          gen_ai.usage.input_tokens=100
          gen_ai.usage.output_tokens=20
          gen_ai.usage.reasoning.output_tokens=8
          windlass.attempt=2
          windlass.role=main
      execute_tool bash [Internal] 6 to 7 ERROR ""
          error.type=tool_error
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0000-0000-000000000001
          gen_ai.operation.name=execute_tool
          gen_ai.tool.call.id=c1
          gen_ai.tool.name=bash
          gen_ai.tool.type=function
      chat large [Client] 8 to 9 ERROR "the call was called back"
          error.type=cancelled
          gen_ai.agent.name=build
          gen_ai.conversation.id=00000000-0000-0000-0000-000000000001
          gen_ai.operation.name=chat
          gen_ai.provider.name=mistral_ai
          gen_ai.request.max_tokens=100
          gen_ai.request.model=large
          gen_ai.request.stream=true
          gen_ai.request.temperature=0.5
          gen_ai.response.finish_reasons=["error"]
          windlass.attempt=1
          windlass.role=main
    "#);
    insta::assert_snapshot!(points(&collector.metrics()), @r"
    gen_ai.client.inference.duration (s) 1 of 1, up to 81.92: error.type=cancelled; gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.inference.duration (s) 1 of 1, up to 81.92: error.type=overloaded; gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.inference.duration (s) 2 of 1, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.inference.usage.cache_read.input_tokens ({token}) = 90: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.cache_write.input_tokens ({token}) = 3: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.input_tokens ({token}) = 100: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.output_tokens ({token}) = 20: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.modality=unknown
    gen_ai.client.inference.usage.reasoning.output_tokens ({token}) = 8: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.modality=unknown
    gen_ai.client.operation.duration (s) 1 of 1, up to 81.92: error.type=cancelled; gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.operation.duration (s) 1 of 1, up to 81.92: error.type=overloaded; gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.operation.duration (s) 2 of 1, up to 81.92: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large
    gen_ai.client.token.usage ({token}) 100 of 1, up to 67108864: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.type=input
    gen_ai.client.token.usage ({token}) 20 of 1, up to 67108864: gen_ai.operation.name=chat; gen_ai.provider.name=mistral_ai; gen_ai.request.model=large; gen_ai.token.type=output
    ");
}

fn called(work: u64, attempt: u32) -> String {
    format!(
        r#"{{"type":"model_called","work":{work},"role":"main","provider":"mistral","model":"large","parameters":{{"max_tokens":100,"temperature":0.5}},
        "attempt":{attempt},"sections":[],"tools":{{"hash":"0","bytes":0}}}}"#
    )
}

#[test]
fn content_goes_along_only_where_it_is_wanted() {
    let (silent, open) = (Collector::start(200), Collector::start(200));
    let records = golden("v1-first-voyage");
    follow(silent.options(), &records);
    follow(Options { capture_content: true, ..open.options() }, &records);
    let bytes =
        |collector: &Collector| -> Vec<u8> { collector.seen().into_iter().flat_map(|seen| seen.body).collect() };
    let heard =
        |collector: &Collector, text: &str| bytes(collector).windows(text.len()).any(|at| at == text.as_bytes());
    for said in ["set the port to 9090", "port = 8080", "The port is 9090 now.", "where is it"] {
        assert!(!heard(&silent, said), "{said}");
        assert!(heard(&open, said), "{said}");
    }
    let content: Vec<String> = tree(&open.spans())
        .lines()
        .filter(|line| line.contains("messages=") || line.contains("call.arg") || line.contains("call.res"))
        .map(|line| line.trim().to_owned())
        .collect();
    insta::assert_snapshot!(content.join("\n"), @r#"
    gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"set the port to 9090"}]}]
    gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"The port is 9090 now."}]}]
    gen_ai.input.messages=[{"role":"user","parts":[{"type":"text","content":"set the port to 9090"}]}]
    gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"reasoning","content":"where is it"},{"type":"text","content":"I look."},{"type":"tool_call","id":"c1","name":"read","arguments":{"path":"read"}}]}]
    gen_ai.tool.call.arguments={"path":"read"}
    gen_ai.tool.call.result=port = 8080
    gen_ai.input.messages=[{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"port = 8080"}]}]
    gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"tool_call","id":"c2","name":"edit","arguments":{"path":"edit"}}]}]
    gen_ai.tool.call.arguments={"path":"edit"}
    gen_ai.tool.call.result=+1 -1
    gen_ai.input.messages=[{"role":"tool","parts":[{"type":"tool_call_response","id":"c2","response":"+1 -1"}]}]
    gen_ai.output.messages=[{"role":"assistant","parts":[{"type":"text","content":"The port is 9090 now."}]}]
    "#);
}

#[test]
fn every_golden_log_makes_whole_trees() {
    for name in ["v1-asked", "v1-crash", "v1-cut", "v1-hand-written", "v1-interrupt", "v1-long", "v1-sibling-abort"] {
        let collector = Collector::start(200);
        let delivery = follow(collector.options(), &golden(name));
        let spans = collector.spans();
        assert_eq!((delivery.sent, delivery.lost()), (spans.len() as u64, 0), "{name}");
        let calls = |word: &str| spans.iter().filter(|span| span.name.starts_with(word)).count();
        let records = golden(name);
        let of = |kind: &str| {
            let types = records.iter().map(|record| serde_json::to_value(&record.event).unwrap()["type"].clone());
            types.filter(|found| found == kind).count()
        };
        assert_eq!(calls("chat "), of("model_called"), "{name}");
        assert!(calls("invoke_agent") >= of("turn_finished"), "{name}");
        for span in &spans {
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{name}: {}", span.name);
            let below = spans.iter().any(|other| other.span_id == span.parent_span_id);
            assert!(below || !span.name.starts_with("execute_tool"), "{name}: {} hangs nowhere", span.name);
        }
    }
}

#[test]
fn a_sub_agents_turn_hangs_below_the_call_that_opened_it() {
    let collector = Collector::start(200);
    let call = r#"{"type":"tool_use","id":"c1","name":"agent","input":{}}"#;
    let above = log(
        1,
        &[
            r#"{"type":"opened","cwd":"/w","agent":"main","model":"m/m","mode":"default","profile":{"name":"default"}}"#,
            r#"{"type":"noted","input":"00000000-0000-0000-0000-000000000001","text":"go","wakes":true}"#,
            &format!(r#"{{"type":"block_finished","work":3,"index":0,"block":{call}}}"#),
            r#"{"type":"tool_started","work":8,"call":"c1","idempotency_key":"k"}"#,
        ],
    );
    let parent = r#"{"session":"00000000-0000-0000-0000-000000000001","call":"c1"}"#;
    let below = log(
        2,
        &[
            &format!(
                r#"{{"type":"opened","parent":{parent},"cwd":"/w","agent":"scout","model":"m/m","mode":"default","profile":{{"name":"default"}}}}"#
            ),
            r#"{"type":"noted","input":"00000000-0000-0000-0000-000000000002","text":"go","wakes":true}"#,
            r#"{"type":"turn_finished","work":3,"end":{"type":"done"}}"#,
        ],
    );
    follow(collector.options(), &[above, below].concat());
    let names: Vec<String> =
        tree(&collector.spans()).lines().filter(|line| line.contains('[')).map(str::to_owned).collect();
    assert!(names[0].starts_with("invoke_agent main"), "{names:?}");
    assert!(names[1].starts_with("  execute_tool agent"), "{names:?}");
    assert!(names[2].starts_with("    invoke_agent scout"), "{names:?}");
}

#[test]
fn a_turn_taken_up_from_another_process_has_a_span_too() {
    let collector = Collector::start(200);
    let records = golden("v1-crash");
    let at = records.iter().position(|record| matches!(record.event, windlass_kernel::Event::Reopened { .. })).unwrap();
    follow(collector.options(), &records[at..]);
    let text = tree(&collector.spans());
    assert!(text.starts_with("invoke_agent [Internal]") && text.contains("windlass.taken_up=true"), "{text}");
}

#[test]
fn requests_carry_the_resource_and_the_headers() {
    let collector = Collector::start(200);
    let options = Options {
        headers: vec![("x-key".into(), "one".into())],
        service_name: "harbour".into(),
        resource: vec![("deployment.environment.name".into(), "test".into())],
        ..collector.options()
    };
    assert!(!format!("{options:?}").contains("one"));
    follow(options, &golden("v1-first-voyage"));
    for seen in collector.seen() {
        assert_eq!(seen.headers["x-key"], "one");
        assert_eq!(seen.headers["content-type"], "application/x-protobuf");
    }
    let version = env!("CARGO_PKG_VERSION");
    let wanted = format!("deployment.environment.name=test; service.name=harbour; service.version={version}");
    assert_eq!(collector.resource(), wanted);
}

#[test]
fn what_there_is_no_room_for_is_dropped_and_counted() {
    let collector = Collector::start(200);
    let options = Options { max_waiting_spans: 4, ..collector.options() };
    // An address where nobody answers holds the queue up.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options { endpoint: format!("http://{}", silent.local_addr().unwrap()), ..options };
    let telemetry = Telemetry::start(options).unwrap();
    for _ in 0..10 {
        golden("v1-first-voyage").iter().for_each(|record| telemetry.observe(record));
    }
    assert_eq!(telemetry.dropped(), 10 * 6 - 4);
    let delivery = telemetry.shutdown(Duration::from_millis(50));
    assert_eq!((delivery.sent, delivery.dropped, delivery.failed + delivery.unsent), (0, 56, 4));
}

#[test]
fn a_dead_endpoint_holds_nobody_up() {
    // Bound and never accepted: requests go out, and no answer comes back.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    // An hour: if the end waited for the export, this test would not come to its own.
    let options = Options { endpoint, export_timeout_ms: 3_600_000, ..Options::default() };
    let telemetry = Telemetry::start(options).unwrap();
    golden("v1-first-voyage").iter().for_each(|record| telemetry.observe(record));
    let delivery = telemetry.shutdown(Duration::from_millis(100));
    assert_eq!((delivery.sent, delivery.unsent), (0, 6));
    std::mem::forget(telemetry);
}

#[test]
fn a_collector_that_refuses_is_told_of() {
    let collector = Collector::start(401);
    let delivery = follow(collector.options(), &golden("v1-first-voyage"));
    assert_eq!((delivery.sent, delivery.failed), (0, 6));
    assert!(delivery.error.as_deref().is_some_and(|error| error.contains("401")), "{delivery:?}");
}

#[test]
fn what_comes_after_the_end_is_nowhere() {
    let collector = Collector::start(200);
    let telemetry = Telemetry::start(collector.options()).unwrap();
    let records = golden("v1-first-voyage");
    // Left in the middle: the turn and the model call are open.
    records[..5].iter().for_each(|record| telemetry.observe(record));
    telemetry.shutdown(WITHIN);
    records[5..].iter().for_each(|record| telemetry.observe(record));
    assert_eq!(telemetry.shutdown(WITHIN).sent, 2);
    assert_eq!(tree(&collector.spans()).matches("error.type=left").count(), 2);
}

#[test]
fn a_wrong_endpoint_is_refused_at_the_start() {
    let options = Options { endpoint: "collector:4318".into(), ..Options::default() };
    let error = Telemetry::start(options).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "telemetry can't go to `collector:4318`: give the collector's base address, like http://127.0.0.1:4318"
    );
}
