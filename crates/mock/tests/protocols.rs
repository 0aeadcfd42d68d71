//! The protocols beside Messages and Chat Completions, as they come over the wire.

mod common;

use common::*;
use serde_json::{Value, json};
use windlass_mock::Server;

const MIXED: &str = r#"
[[step]]
blocks = [
  { thinking = "hm", signature = "c2ln" },
  { redacted_thinking = "x9" },
  { text = "naïve 😀" },
  { tool = "read", id = "t1", input = { path = "a" } },
  { tool = "bash", input = { command = "ls" } },
]
usage = { input = 7, output = 9, cache_read = 3, cache_write = 2, reasoning = 1 }
"#;

#[test]
fn a_responses_stream() {
    let answer = Talk::new(RESPONSES, "go").ask(&start(MIXED));
    assert!(answer.head.contains("content-type: text/event-stream") && answer.whole);
    let events = answer.events();
    let brief = |event: &Value| {
        let mut event = event.clone();
        let status = event.pointer("/response/status").cloned();
        if let Some(status) = status {
            event["response"] = status;
        }
        event.as_object_mut().unwrap().remove("type");
        event.to_string()
    };
    let numbers: Vec<u64> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let lines: Vec<String> =
        names.iter().zip(&events).map(|(name, event)| format!("{name} {}", brief(event))).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    response.created {"response":"in_progress","sequence_number":0}
    response.in_progress {"response":"in_progress","sequence_number":1}
    response.output_item.added {"item":{"id":"rs_0_0","type":"reasoning","summary":[]},"sequence_number":2,"output_index":0}
    response.reasoning_summary_part.added {"part":{"type":"summary_text","text":""},"sequence_number":3,"item_id":"rs_0_0","output_index":0,"summary_index":0}
    response.reasoning_summary_text.delta {"delta":"hm","sequence_number":4,"item_id":"rs_0_0","output_index":0,"summary_index":0}
    response.reasoning_summary_text.done {"text":"hm","sequence_number":5,"item_id":"rs_0_0","output_index":0,"summary_index":0}
    response.reasoning_summary_part.done {"part":{"type":"summary_text","text":"hm"},"sequence_number":6,"item_id":"rs_0_0","output_index":0,"summary_index":0}
    response.output_item.done {"item":{"id":"rs_0_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln"},"sequence_number":7,"output_index":0}
    response.output_item.added {"item":{"id":"rs_0_1","type":"reasoning","summary":[],"encrypted_content":"x9"},"sequence_number":8,"output_index":1}
    response.output_item.done {"item":{"id":"rs_0_1","type":"reasoning","summary":[],"encrypted_content":"x9"},"sequence_number":9,"output_index":1}
    response.output_item.added {"item":{"id":"msg_0_2","type":"message","status":"in_progress","content":[],"role":"assistant"},"sequence_number":10,"output_index":2}
    response.content_part.added {"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""},"sequence_number":11,"item_id":"msg_0_2","output_index":2,"content_index":0}
    response.output_text.delta {"logprobs":[],"sequence_number":12,"item_id":"msg_0_2","output_index":2,"content_index":0,"delta":"naïve 😀"}
    response.output_text.done {"logprobs":[],"sequence_number":13,"item_id":"msg_0_2","output_index":2,"content_index":0,"text":"naïve 😀"}
    response.content_part.done {"part":{"type":"output_text","annotations":[],"logprobs":[],"text":"naïve 😀"},"sequence_number":14,"item_id":"msg_0_2","output_index":2,"content_index":0}
    response.output_item.done {"item":{"id":"msg_0_2","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"naïve 😀"}],"role":"assistant"},"sequence_number":15,"output_index":2}
    response.output_item.added {"item":{"id":"fc_0_3","type":"function_call","status":"in_progress","arguments":"","call_id":"t1","name":"read"},"sequence_number":16,"output_index":3}
    response.function_call_arguments.delta {"delta":"{\"path\":\"a\"}","sequence_number":17,"item_id":"fc_0_3","output_index":3}
    response.function_call_arguments.done {"arguments":"{\"path\":\"a\"}","sequence_number":18,"item_id":"fc_0_3","output_index":3}
    response.output_item.done {"item":{"id":"fc_0_3","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"t1","name":"read"},"sequence_number":19,"output_index":3}
    response.output_item.added {"item":{"id":"fc_0_4","type":"function_call","status":"in_progress","arguments":"","call_id":"toolu_0_1","name":"bash"},"sequence_number":20,"output_index":4}
    response.function_call_arguments.delta {"delta":"{\"command\":\"ls\"}","sequence_number":21,"item_id":"fc_0_4","output_index":4}
    response.function_call_arguments.done {"arguments":"{\"command\":\"ls\"}","sequence_number":22,"item_id":"fc_0_4","output_index":4}
    response.output_item.done {"item":{"id":"fc_0_4","type":"function_call","status":"completed","arguments":"{\"command\":\"ls\"}","call_id":"toolu_0_1","name":"bash"},"sequence_number":23,"output_index":4}
    response.completed {"response":"completed","sequence_number":24}
    "#);
    let end = &events.last().unwrap()["response"];
    assert_eq!(end["output"], whole(RESPONSES)["output"]);
}

fn whole(path: &'static str) -> Value {
    Talk { stream: false, ..Talk::new(path, "go") }.ask(&start(MIXED)).json()
}

#[test]
fn whole_answers() {
    let texts: Vec<String> = [RESPONSES, GEMINI, BEDROCK, VERTEX].map(|path| whole(path).to_string()).into();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    {"id":"resp_000001","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"metadata":{},"model":"m","output":[{"id":"rs_0_0","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"c2ln"},{"id":"rs_0_1","type":"reasoning","summary":[],"encrypted_content":"x9"},{"id":"msg_0_2","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"naïve 😀"}],"role":"assistant"},{"id":"fc_0_3","type":"function_call","status":"completed","arguments":"{\"path\":\"a\"}","call_id":"t1","name":"read"},{"id":"fc_0_4","type":"function_call","status":"completed","arguments":"{\"command\":\"ls\"}","call_id":"toolu_0_1","name":"bash"}],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":21}}
    {"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"naïve 😀"},{"functionCall":{"name":"read","args":{"path":"a"},"id":"t1"},"thoughtSignature":"c2ln"},{"functionCall":{"name":"bash","args":{"command":"ls"},"id":"toolu_0_1"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":8,"totalTokenCount":21,"cachedContentTokenCount":3,"thoughtsTokenCount":1},"modelVersion":"m","responseId":"000001"}
    {"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"x9"},{"type":"text","text":"naïve 😀"},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"toolu_0_1","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":9,"output_tokens_details":{"thinking_tokens":1}}}
    {"id":"msg_000001","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"x9"},{"type":"text","text":"naïve 😀"},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}},{"type":"tool_use","id":"toolu_0_1","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":9,"output_tokens_details":{"thinking_tokens":1}}}
    "#);
}

#[test]
fn a_gemini_stream() {
    let answer = Talk::new(GEMINI, "go").ask(&start(MIXED));
    insta::assert_snapshot!(answer.text(), @r#"
    data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12,"totalTokenCount":12},"modelVersion":"m","responseId":"000001"}

    data: {"candidates":[{"content":{"parts":[{"text":"naïve 😀"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12,"totalTokenCount":12},"modelVersion":"m","responseId":"000001"}

    data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{"path":"a"},"id":"t1"},"thoughtSignature":"c2ln"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12,"totalTokenCount":12},"modelVersion":"m","responseId":"000001"}

    data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"bash","args":{"command":"ls"},"id":"toolu_0_1"}}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12,"totalTokenCount":12},"modelVersion":"m","responseId":"000001"}

    data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":8,"totalTokenCount":21,"cachedContentTokenCount":3,"thoughtsTokenCount":1},"modelVersion":"m","responseId":"000001"}
    "#);
}

#[test]
fn bedrock_and_vertex_send_anthropics_events() {
    let server = start(MIXED);
    let events = |path| Talk::new(path, "go").ask(&server).events();
    let plain = events(ANTHROPIC);
    let same = |other: Vec<Value>| {
        let text = json!(other).to_string();
        text.replace("msg_000002", "msg_000001").replace("msg_000003", "msg_000001")
    };
    assert_eq!(same(events(BEDROCK)), json!(plain).to_string());
    assert_eq!(same(events(VERTEX)), json!(plain).to_string());
    let answer = Talk::new(BEDROCK, "go").ask(&server);
    assert!(answer.head.contains("content-type: application/vnd.amazon.eventstream"));
    let (headers, _) = &frames(&answer.body)[0];
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    let expected =
        [pair(":event-type", "chunk"), pair(":content-type", "application/json"), pair(":message-type", "event")];
    assert_eq!(headers, &expected);
}

#[test]
fn stop_words_are_each_vendors_own() {
    let words = |stop: &str| {
        let server = start(&format!("[[step]]\nstop = \"{stop}\"\nblocks = [{{ text = \"no\" }}]"));
        let ask = |path| Talk { stream: false, ..Talk::new(path, "go") }.ask(&server).json();
        let (responses, gemini) = (ask(RESPONSES), ask(GEMINI));
        let reason = &responses["incomplete_details"]["reason"];
        let part = &responses["output"][0]["content"][0]["type"];
        let finish = &gemini["candidates"][0]["finishReason"];
        let (claude, status) = (&ask(BEDROCK)["stop_reason"], &responses["status"]);
        format!("{claude} | {status} {reason} {part} | {finish}")
    };
    let all = ["end_turn", "max_tokens", "refusal", "content_filter", "MALFORMED_FUNCTION_CALL"].map(words);
    insta::assert_snapshot!(all.join("\n"), @r#"
    "end_turn" | "completed" null "output_text" | "STOP"
    "max_tokens" | "incomplete" "max_output_tokens" "output_text" | "MAX_TOKENS"
    "refusal" | "completed" null "refusal" | "SAFETY"
    "content_filter" | "incomplete" "content_filter" "output_text" | "content_filter"
    "MALFORMED_FUNCTION_CALL" | "incomplete" "MALFORMED_FUNCTION_CALL" "output_text" | "MALFORMED_FUNCTION_CALL"
    "#);
    let refuses = start("[[step]]\nstop = \"refusal\"\nblocks = [{ text = \"no\" }]");
    let text = Talk::new(RESPONSES, "go").ask(&refuses).text();
    for event in ["response.refusal.delta", "response.refusal.done", "response.completed"] {
        assert!(text.contains(&format!("event: {event}\n")), "{event} in {text}");
    }
}

#[test]
fn gemini_cannot_say_arguments_that_are_no_object() {
    let server = start("[[step]]\nblocks = [{ text = \"x\" }, { tool = \"bash\", raw_input = '{\"comm' }]");
    let answer = Talk::new(GEMINI, "go").ask(&server);
    assert!(!answer.text().contains("functionCall\""), "{}", answer.text());
    assert_eq!(answer.events().last().unwrap()["candidates"][0]["finishReason"], "MALFORMED_FUNCTION_CALL");
    let native = start("[[step]]\nblocks = [{ native = { type = \"web_search_call\", id = \"w\" } }]");
    assert!(Talk::new(GEMINI, "go").ask(&native).error().contains("`native` block"));
    let events = Talk::new(RESPONSES, "go").ask(&native).events();
    assert_eq!(events[2]["item"], json!({"type": "web_search_call", "id": "w"}));
}

#[test]
fn a_gemini_signature_goes_out_with_what_follows_the_thinking_and_must_come_back() {
    let script = "[[step]]\nparallel = 2\nblocks = [{ thinking = \"hm\", signature = \"c2ln\" }, { tool = \"read\" }]\n\
        [[step]]\nblocks = [{ text = \"done\", signature = \"dGV4dA==\" }]";
    let server = start(script);
    let mut talk = Talk::new(GEMINI, "go");
    let reply = talk.turn(&server);
    assert_eq!((&reply["parts"][0]["thought"], &reply["parts"][1]["thoughtSignature"]), (&json!(true), &json!("c2ln")));
    assert!(reply["parts"][2].get("thoughtSignature").is_none());
    talk.results("x", false);
    let without = |change: fn(&mut Value)| {
        let mut talk = talk.clone();
        change(&mut talk.messages[1]["parts"][1]);
        talk.ask(&server)
    };
    let lost = without(|part| drop(part.as_object_mut().unwrap().remove("thoughtSignature")));
    assert!(lost.error().starts_with("400 Function call is missing a thought_signature"), "{}", lost.error());
    let other = without(|part| part["thoughtSignature"] = json!("b3RoZXI="));
    assert!(other.error().starts_with("400 Thought signature is not valid"), "{}", other.error());
    assert_eq!(without(|part| part["thoughtSignature"] = json!("skip_thought_signature_validator")).status, 200);
    assert!(talk.ask(&server).text().contains(r#"{"text":"","thoughtSignature":"dGV4dA=="}"#));
    assert_eq!(talk.turn(&server)["parts"], json!([{"text": "done", "thoughtSignature": "dGV4dA=="}]));
}

#[test]
fn responses_take_back_what_they_sent() {
    let server = start(&format!("{MIXED}\n[[step]]\nblocks = [{{ text = \"done\" }}]"));
    let mut talk = Talk::new(RESPONSES, "go");
    talk.turn(&server);
    talk.results("x", false);
    assert_eq!(talk.turn(&server)[0]["content"][0]["text"], "done");
    talk.messages.retain(|item| item["type"] != "function_call_output");
    assert_eq!(talk.ask(&server).error(), "400 No tool output found for function call t1.");
}

fn keys(path: &str, headers: &str, server: &Server) -> Answer {
    let talk = ALL.map(|path| Talk::new(path, "go"));
    let body = talk.iter().find(|talk| talk.path.split('?').next() == path.split('?').next()).unwrap().body();
    exchange(server, "POST", path, headers, &body.to_string())
}

#[test]
fn each_vendors_key() {
    let server = start("key = \"k\"\n[[step]]\nblocks = []");
    let signed = |key: &str| {
        let scope = format!("Credential={key}/20260102/us-east-1/bedrock/aws4_request");
        let signature = "0".repeat(64);
        format!(
            "x-amz-date: 20260102T030405Z\r\nauthorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host;x-amz-date, \
             Signature={signature}\r\n"
        )
    };
    let good = signed("k");
    let bearer = "authorization: Bearer k\r\n";
    for (path, headers) in [
        (RESPONSES, bearer),
        (GEMINI, "x-goog-api-key: k\r\n"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse&key=k", ""),
        (GEMINI, bearer),
        (BEDROCK, good.as_str()),
        (BEDROCK, bearer),
        (VERTEX, bearer),
    ] {
        assert_eq!(keys(path, headers, &server).status, 200, "{path} {headers}");
    }
    let (other, unsigned) = (signed("z"), good.replace("Signature=0000", "Signature="));
    let (undated, elsewhere) = (good.replace("x-amz-date: ", "x-date: "), good.replace("/bedrock/", "/s3/"));
    let refused = [
        (RESPONSES, ""),
        (GEMINI, ""),
        (GEMINI, "x-goog-api-key: z\r\n"),
        (VERTEX, "x-api-key: k\r\n"),
        (BEDROCK, ""),
        (BEDROCK, other.as_str()),
        (BEDROCK, unsigned.as_str()),
        (BEDROCK, undated.as_str()),
        (BEDROCK, elsewhere.as_str()),
    ]
    .map(|(path, headers)| keys(path, headers, &server).error());
    insta::assert_snapshot!(refused.join("\n"), @r#"
    401 You didn't provide an API key. Send it as: Authorization: Bearer YOUR_KEY.
    403 Method doesn't allow unregistered callers. Send a key as x-goog-api-key.
    400 API key not valid. Please pass a valid API key.
    401 Request is missing required authentication credential: Authorization: Bearer TOKEN.
    403 Missing Authentication Token
    403 The security token included in the request is invalid.
    403 Authorization requires a Signature of 64 hexadecimal digits.
    403 Authorization requires an x-amz-date header of the Credential's day.
    403 Authorization must have Credential=KEY/DAY/REGION/bedrock/aws4_request.
    "#);
}

#[test]
fn errors_have_each_vendors_shape() {
    let bodies = |status: u16| {
        let server = start(&format!("[[step]]\nstatus = {status}\nerror = {{ message = \"no\" }}"));
        [RESPONSES, GEMINI, BEDROCK, VERTEX].map(|path| {
            let answer = Talk::new(path, "go").ask(&server);
            let kind = answer.head.lines().find_map(|line| line.strip_prefix("x-amzn-errortype: "));
            format!("{} {} {}", answer.status, kind.unwrap_or_default(), answer.text())
        })
    };
    insta::assert_snapshot!([bodies(429), bodies(400), bodies(529)].concat().join("\n"), @r#"
    429  {"error":{"message":"no","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}
    429  {"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}
    429 throttlingexception {"message":"no"}
    429  {"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}
    400  {"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}
    400  {"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}
    400 validationexception {"message":"no"}
    400  {"type":"error","error":{"type":"invalid_request_error","message":"no"},"request_id":"req_000004"}
    529  {"error":{"message":"no","type":"server_error","param":null,"code":null}}
    529  {"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}
    529 serviceunavailableexception {"message":"no"}
    529  {"type":"error","error":{"type":"overloaded_error","message":"no"},"request_id":"req_000004"}
    "#);
    let server = start(
        "[[step]]\nblocks = [{ text = \"x\" }]\nerror_event = { after_events = 1, message = \"full\" }\n\
         [[conversation]]\nmatch = 'fails'\n[[conversation.step]]\nblocks = []\n\
         error_event = { type = \"response.failed\", code = \"rate_limit_exceeded\", message = \"full\" }",
    );
    let last = |path, prompt: &str| Talk::new(path, prompt).ask(&server).events().pop().unwrap();
    assert_eq!(last(BEDROCK, "go"), json!({"exception": "serviceUnavailableException", "message": "full"}));
    assert_eq!(last(GEMINI, "go"), json!({"error": {"code": 503, "message": "full", "status": "UNAVAILABLE"}}));
    assert_eq!(last(VERTEX, "go")["error"]["type"], "overloaded_error");
    let error =
        json!({"type": "error", "sequence_number": 1, "code": "server_error", "message": "full", "param": null});
    assert_eq!(last(RESPONSES, "go"), error);
    let failed = last(RESPONSES, "fails");
    assert_eq!((&failed["type"], &failed["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(failed["response"]["error"], json!({"code": "rate_limit_exceeded", "message": "full"}));
}

#[test]
fn hosted_bodies_are_checked() {
    let server = start("[[step]]\nblocks = []");
    let ask = |path: &'static str, change: fn(&mut Value)| {
        let mut body = Talk::new(path, "go").body();
        change(&mut body);
        post(&server, path, &body).error()
    };
    for path in [BEDROCK, VERTEX] {
        assert_eq!(ask(path, |body| body["model"] = json!("m")), "400 model: Extra inputs are not permitted");
        assert!(ask(path, |body| body["anthropic_version"] = json!("x")).starts_with("400 anthropic_version: Input"));
    }
    assert_eq!(ask(BEDROCK, |body| body["stream"] = json!(true)), "400 stream: Extra inputs are not permitted");
    let bare = post(&server, "/v1beta/models/m:streamGenerateContent", &Talk::new(GEMINI, "go").body());
    assert!(bare.error().contains("?alt=sse"), "{}", bare.error());
}

#[test]
fn lists_of_models() {
    let server = start("models = [\"a\", \"b\"]\n[[step]]\nblocks = []");
    let get = |path| exchange(&server, "GET", path, "", "").json();
    let gemini = get("/v1beta/models");
    assert_eq!(
        (&gemini["models"][1]["name"], &gemini["models"][0]["inputTokenLimit"]),
        (&json!("models/b"), &json!(1048576))
    );
    assert_eq!(get("/v1/models?key=k")["models"][0]["name"], "models/a");
    assert_eq!(get("/api/tags")["models"][1]["name"], "b");
    assert_eq!(get("/v1/models")["data"][0]["id"], "a");
    let counted = exchange(&server, "POST", "/v1beta/models/a:countTokens", "", "12345").json();
    assert_eq!(counted["totalTokens"], 2);
}

#[test]
fn a_dump_has_the_head_beside_the_body() {
    let folder = tempfile::tempdir().unwrap();
    let script = windlass_mock::Script::parse("[[step]]\nblocks = []").unwrap();
    let dump = Some(folder.path().to_path_buf());
    let server = Server::start(windlass_mock::Options { script, dump, ..Default::default() }).unwrap();
    let body = Talk::new(GEMINI, "go").body().to_string();
    exchange(&server, "POST", "/v1beta/models/m%3A:generateContent?key=k&x=%20", "x-two: 1\r\nX-Two: 2\r\n", &body);
    let head: Value = serde_json::from_slice(&std::fs::read(folder.path().join("00001.head.json")).unwrap()).unwrap();
    assert_eq!((&head["method"], &head["path"]), (&json!("POST"), &json!("/v1beta/models/m%3A:generateContent")));
    assert_eq!(head["query"], "key=k&x=%20");
    let twos: Vec<&Value> = head["headers"].as_array().unwrap().iter().filter(|pair| pair[0] == "x-two").collect();
    assert_eq!(twos, [&json!(["x-two", "1"]), &json!(["x-two", "2"])]);
    assert_eq!(std::fs::read_to_string(folder.path().join("00001.json")).unwrap(), body);
    assert_eq!(server.requests()[0].query, "key=k&x=%20");
}
