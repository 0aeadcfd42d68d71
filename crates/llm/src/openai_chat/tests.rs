//! Chat Completions, read and written.

use super::Chat;
use crate::testing::*;
use crate::{Quirk, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Effort, Message, Parameters, Signature, ToolChoice, ToolUse};

fn stream(chunks: &[&str]) -> String {
    chunks.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// A chunk with this delta.
fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"chat-1","object":"chat.completion.chunk","model":"large-1","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null}}"#
    )
}

/// The stream of these deltas, ended for `reason` and with usage.
fn said(deltas: &[&str], reason: &str) -> String {
    let mut chunks: Vec<String> = deltas.iter().map(|text| delta(text)).collect();
    chunks.push(format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#));
    chunks.push(USAGE.into());
    chunks.push("[DONE]".into());
    stream(&chunks.iter().map(String::as_str).collect::<Vec<_>>())
}

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":50,"total_tokens":170,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":20}}}"#;

const GOLDEN: &[&str] = &[
    r#"{"role":"assistant","content":""}"#,
    r#"{"reasoning_content":"Let me "}"#,
    r#"{"reasoning_content":"\"see\"…","reasoning":"\"see\"…"}"#,
    r#"{"content":"I look at \ud83d\udc4b "}"#,
    r#"{"content":"grün."}"#,
    r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": \"a"}},{"index":1,"id":"b","type":"function","function":{"name":"read","arguments":"{\"pa"}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":".toml\"}"}}]}"#,
    r#"{"tool_calls":[{"index":1,"function":{"arguments":"th\": \"b\"}"}}]}"#,
];

#[test]
fn s2_20_calls_in_mixed_fragments_are_assembled_per_block() {
    insta::assert_snapshot!(story::<Chat>(&said(GOLDEN, "tool_calls")), @r#"
    started chat-1 large-1
    0 begins: Thinking
    0 Thinking("Let me \"see\"…")
    0 ends: {"type":"thinking","thinking":"Let me \"see\"…"}
    1 begins: Text
    1 Text("I look at 👋 grün.")
    1 ends: {"type":"text","text":"I look at 👋 grün."}
    2 begins: call a of read
    3 begins: call b of read
    2 Input("{\"path\": \"a.toml\"}")
    2 ends: {"type":"tool_use","id":"a","name":"read","input":{"path":"a.toml"}}
    3 Input("{\"path\": \"b\"}")
    3 ends: {"type":"tool_use","id":"b","name":"read","input":{"path":"b"}}
    finished ToolUse Some("tool_calls") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
}

#[test]
fn s4_04_calls_and_their_answers_go_back_with_the_same_values() {
    let answers = vec![result("a", vec![ContentBlock::text("A")], false), result("b", vec![], true)];
    let request = request(vec![heard::<Chat>(&said(GOLDEN, "tool_calls")), Message::user(answers)]);
    insta::assert_json_snapshot!(messages::<Chat>("openai", &request), @r#"
    [
      {
        "role": "system",
        "content": "The base.\n\nThe folder."
      },
      {
        "role": "assistant",
        "content": "I look at 👋 grün.",
        "tool_calls": [
          {
            "id": "a",
            "type": "function",
            "function": {
              "name": "read",
              "arguments": "{\"path\":\"a.toml\"}"
            }
          },
          {
            "id": "b",
            "type": "function",
            "function": {
              "name": "read",
              "arguments": "{\"path\":\"b\"}"
            }
          }
        ]
      },
      {
        "role": "tool",
        "tool_call_id": "a",
        "content": "A"
      },
      {
        "role": "tool",
        "tool_call_id": "b",
        "content": "error: (no output)"
      }
    ]
    "#);
}

#[test]
fn a_call_ends_when_the_next_begins() {
    let deltas = [
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}]}"#,
        r#"{"content":"Done."}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&deltas, "stop")), @r#"
    started chat-1 large-1
    0 begins: call a of read
    0 Input("{\"path\":\"a\"}")
    0 ends: {"type":"tool_use","id":"a","name":"read","input":{"path":"a"}}
    1 begins: call b of read
    1 Input("{}")
    1 ends: {"type":"tool_use","id":"b","name":"read","input":{}}
    2 begins: Text
    2 Text("Done.")
    2 ends: {"type":"text","text":"Done."}
    finished ToolUse Some("stop") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
}

#[test]
fn s4_07_servers_without_numbers_ids_or_reasons_are_understood() {
    // Neither ids nor numbers, arguments whole, once as an object.
    let bare = [
        r#"{"tool_calls":[{"function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}"#,
        r#"{"tool_calls":[{"function":{"name":"read","arguments":{"path":"b"}}}]}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&bare, "stop")), @r#"
    started chat-1 large-1
    0 begins: call call_1 of read
    0 Input("{\"path\":\"a\"}")
    0 ends: {"type":"tool_use","id":"call_1","name":"read","input":{"path":"a"}}
    1 begins: call call_2 of read
    1 Input("{\"path\":\"b\"}")
    1 ends: {"type":"tool_use","id":"call_2","name":"read","input":{"path":"b"}}
    finished ToolUse Some("stop") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
    // The same number for every call, told apart by ids; null arguments.
    let same_number = [
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":null}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"ls","arguments":"{}"}}]}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&same_number, "tool_calls")), @r#"
    started chat-1 large-1
    0 begins: call a of ls
    1 begins: call b of ls
    0 ends: {"type":"tool_use","id":"a","name":"ls","input":{}}
    1 Input("{}")
    1 ends: {"type":"tool_use","id":"b","name":"ls","input":{}}
    finished ToolUse Some("tool_calls") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
    // The same number and no ids at all.
    let same_number = [
        r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]}"#,
        r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"read","arguments":"{\"path\":\"b\"}"}}]}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&same_number, "tool_calls")), @r#"
    started chat-1 large-1
    0 begins: call call_1 of read
    0 Input("{\"path\":\"a\"}")
    0 ends: {"type":"tool_use","id":"call_1","name":"read","input":{"path":"a"}}
    1 begins: call call_2 of read
    1 Input("{\"path\":\"b\"}")
    1 ends: {"type":"tool_use","id":"call_2","name":"read","input":{"path":"b"}}
    finished ToolUse Some("tool_calls") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
    // Ids without numbers, and the name after the first arguments.
    let late_name = [
        r#"{"tool_calls":[{"id":"a","function":{"arguments":"{\"path\":"}}]}"#,
        r#"{"tool_calls":[{"id":"a","function":{"name":"read"}}]}"#,
        r#"{"tool_calls":[{"id":"a","function":{"arguments":"\"a\"}"}}]}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&late_name, "tool_calls")), @r#"
    started chat-1 large-1
    0 begins: call a of read
    0 Input("{\"path\":\"a\"}")
    0 ends: {"type":"tool_use","id":"a","name":"read","input":{"path":"a"}}
    finished ToolUse Some("tool_calls") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
}

#[test]
fn a_stream_is_whole_with_a_reason_or_a_done() {
    let text = delta(r#"{"content":"Hi"}"#);
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
    let whole = |chunks: &[&str]| decode::<Chat>(&[stream(chunks).as_bytes()]).map(|batches| tell(&merged(batches)));
    insta::assert_snapshot!(whole(&[&text, stop]).unwrap(), @r#"
    started chat-1 large-1
    0 begins: Text
    0 Text("Hi")
    0 ends: {"type":"text","text":"Hi"}
    finished MaxTokens Some("length") {"input":0,"output":0}
    "#);
    insta::assert_snapshot!(whole(&[&text, "[DONE]"]).unwrap(), @r#"
    started chat-1 large-1
    0 begins: Text
    0 Text("Hi")
    0 ends: {"type":"text","text":"Hi"}
    finished EndTurn None {"input":0,"output":0}
    "#);
    assert_eq!(whole(&[&text]).unwrap_err(), "cut");
    assert_eq!(whole(&["[DONE]"]).unwrap_err(), "cut");
    assert_eq!(whole(&[]).unwrap_err(), "cut");
    let without_blank_line = format!("data: {text}\n\ndata: {stop}");
    assert!(decode::<Chat>(&[without_blank_line.as_bytes()]).is_ok());
}

#[test]
fn reasons_to_stop_are_mapped_and_kept() {
    let last = |deltas: &[&str], reason: &str| story::<Chat>(&said(deltas, reason)).lines().last().unwrap().to_owned();
    let text = r#"{"content":"Hi"}"#;
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}"#;
    let start = |line: String| line.split(" {").next().unwrap().to_owned();
    assert_eq!(start(last(&[text], "stop")), r#"finished EndTurn Some("stop")"#);
    assert_eq!(start(last(&[call], "stop")), r#"finished ToolUse Some("stop")"#);
    assert_eq!(start(last(&[text], "tool_calls")), r#"finished EndTurn Some("tool_calls")"#);
    assert_eq!(start(last(&[text], "content_filter")), r#"finished Refusal Some("content_filter")"#);
    assert_eq!(start(last(&[text], "eos")), r#"finished Other Some("eos")"#);
    assert_eq!(start(last(&[r#"{"refusal":"No."}"#], "stop")), r#"finished Refusal Some("stop")"#);
}

#[test]
fn errors_in_the_stream_are_reported() {
    let error = |data: &str| decode::<Chat>(&[stream(&[data]).as_bytes()]).unwrap_err();
    assert_eq!(error(r#"{"error":{"message":"out of memory","type":"server_error"}}"#), "reported: out of memory");
    assert_eq!(error(r#"{"object":"error","message":"bad template","code":400}"#), "reported: bad template");
    let named = "event: error\ndata: {\"message\": \"gone\"}\n\n";
    assert_eq!(decode::<Chat>(&[named.as_bytes()]).unwrap_err(), "reported: gone");
    let nameless = said(&[r#"{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}"#], "tool_calls");
    assert_eq!(decode::<Chat>(&[nameless.as_bytes()]).unwrap_err(), "broken: a tool call without a name");
}

#[test]
fn s2_04_requests_stream_and_carry_max_tokens() {
    let request = request(vec![Message::user(vec![ContentBlock::text("Hello")])]);
    insta::assert_json_snapshot!(body::<Chat>("openai", &request), @r#"
    {
      "model": "large-1",
      "stream": true,
      "stream_options": {
        "include_usage": true
      },
      "max_tokens": 1000,
      "tools": [
        {
          "type": "function",
          "function": {
            "name": "read",
            "description": "Reads a file.",
            "parameters": {
              "type": "object",
              "properties": {
                "path": {
                  "type": "string"
                }
              }
            }
          }
        }
      ],
      "messages": [
        {
          "role": "system",
          "content": "The base.\n\nThe folder."
        },
        {
          "role": "user",
          "content": "Hello"
        }
      ]
    }
    "#);
}

#[test]
fn results_come_first_and_pictures_in_a_message_of_their_own() {
    let native = ContentBlock::Native { provider: "anthropic".into(), value: json!({"type": "server_tool_use"}) };
    let thought = thought(None, None);
    let failed = |text: &str| vec![ContentBlock::text(text)];
    let request = request(vec![
        Message::user(vec![ContentBlock::text("What is"), ContentBlock::text("this?"), ContentBlock::text(" ")]),
        Message::assistant(vec![
            thought.clone(),
            native,
            ContentBlock::text("I look."),
            call("a", "read", json!({})),
            call("b", "read", json!("{broken")),
            call("c", "read", json!({"path": "c"})),
        ]),
        Message::user(vec![result("a", vec![image()], false), result("b", failed("no such file"), true)]),
        Message::user(vec![result("c", failed("Error: no such file"), true), document(), ContentBlock::text("Go on.")]),
        Message::assistant(vec![thought]),
    ]);
    insta::assert_json_snapshot!(messages::<Chat>("openai", &request), @r#"
    [
      {
        "role": "system",
        "content": "The base.\n\nThe folder."
      },
      {
        "role": "user",
        "content": "What is\n\nthis?"
      },
      {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
          {
            "id": "a",
            "type": "function",
            "function": {
              "name": "read",
              "arguments": "{}"
            }
          },
          {
            "id": "b",
            "type": "function",
            "function": {
              "name": "read",
              "arguments": "{\"unparsed\":\"{broken\"}"
            }
          },
          {
            "id": "c",
            "type": "function",
            "function": {
              "name": "read",
              "arguments": "{\"path\":\"c\"}"
            }
          }
        ]
      },
      {
        "role": "tool",
        "tool_call_id": "a",
        "content": "(shown in the next message)"
      },
      {
        "role": "tool",
        "tool_call_id": "b",
        "content": "error: no such file"
      },
      {
        "role": "tool",
        "tool_call_id": "c",
        "content": "Error: no such file"
      },
      {
        "role": "user",
        "content": [
          {
            "type": "image_url",
            "image_url": {
              "url": "data:image/png;base64,cGljdHVyZQ=="
            }
          }
        ]
      },
      {
        "role": "user",
        "content": [
          {
            "type": "file",
            "file": {
              "filename": "plan.pdf",
              "file_data": "data:application/pdf;base64,cGljdHVyZQ=="
            }
          },
          {
            "type": "text",
            "text": "Go on."
          }
        ]
      }
    ]
    "#);
}

fn thought(signature: Option<&str>, by: Option<&str>) -> ContentBlock {
    let (signature, by) = (signature.map(str::to_owned), by.map(str::to_owned));
    ContentBlock::Thinking { thinking: "hm".into(), signature, by }
}

/// What stands in the request besides the messages and the tools.
fn settings(quirks: &[Quirk], request: &Request) -> String {
    let mut body = body_for::<Chat>(&quirky("vendor", quirks), request);
    for name in ["messages", "tools", "model", "stream"] {
        body.as_object_mut().unwrap().shift_remove(name);
    }
    body.to_string()
}

#[test]
fn s4_07_every_setting_is_written_as_the_server_takes_it() {
    let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let parameters = Parameters {
        max_tokens: 9,
        temperature: Some(0.0),
        top_p: Some(0.5),
        thinking_tokens: Some(5_000),
        effort: None,
        tool_choice: ToolChoice::Tool { name: "read".into() },
    };
    let request = Request { parameters, output_schema: Some(Arc::new(schema)), ..request(vec![]) };
    insta::assert_snapshot!(settings(&[], &request), @r#"{"stream_options":{"include_usage":true},"max_tokens":9,"temperature":0.0,"top_p":0.5,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true}},"tool_choice":{"type":"function","function":{"name":"read"}}}"#);
    use Quirk::*;
    let openai = [MaxCompletionTokens, CacheKey, ReasoningEffort, NoTemperature];
    insta::assert_snapshot!(settings(&openai, &request), @r#"{"stream_options":{"include_usage":true},"max_completion_tokens":9,"reasoning_effort":"medium","prompt_cache_key":"session-1","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true}},"tool_choice":{"type":"function","function":{"name":"read"}}}"#);
    insta::assert_snapshot!(settings(&[EnableThinking, SchemaAsJson, NoStreamUsage], &request), @r#"{"max_tokens":9,"temperature":0.0,"top_p":0.5,"enable_thinking":true,"thinking_budget":5000,"response_format":{"type":"json_object"},"tool_choice":{"type":"function","function":{"name":"read"}}}"#);
    insta::assert_snapshot!(settings(&[ThinkingSwitch, ReasoningEffort, NoStreamUsage, NoTemperature], &request), @r#"{"max_tokens":9,"thinking":{"type":"enabled"},"reasoning_effort":"medium","response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true}},"tool_choice":{"type":"function","function":{"name":"read"}}}"#);
}

#[test]
fn effort_is_said_by_a_switch_or_a_word() {
    use Quirk::*;
    let said = |quirks: &[Quirk], effort| {
        let mut target = quirky("vendor", quirks);
        target.endpoint.efforts = Some(vec!["high".into(), "max".into()]);
        let mut request = request(vec![]);
        request.parameters.effort = effort;
        let body = body_for::<Chat>(&target, &request);
        ["thinking", "enable_thinking", "thinking_budget", "reasoning_effort"]
            .map(|name| body[name].to_string())
            .join(" ")
    };
    let deepseek = [ThinkingSwitch, ReasoningEffort];
    assert_eq!(said(&deepseek, None), "null null null null");
    assert_eq!(said(&deepseek, Some(Effort::None)), r#"{"type":"disabled"} null null null"#);
    assert_eq!(said(&deepseek, Some(Effort::Low)), r#"{"type":"enabled"} null null "high""#);
    assert_eq!(said(&[EnableThinking], Some(Effort::None)), "null false null null");
    assert_eq!(said(&[ReasoningEffort], Some(Effort::Max)), r#"null null null "max""#);
    assert_eq!(said(&[], Some(Effort::Max)), "null null null null");
}

#[test]
fn a_choice_of_tools_is_said_where_there_are_tools() {
    let said = |choice, has_tools: bool| {
        let mut request = request(vec![]);
        request.parameters.tool_choice = choice;
        if !has_tools {
            request.tools = [].into();
        }
        body::<Chat>("vendor", &request)["tool_choice"].to_string()
    };
    assert_eq!(said(ToolChoice::Auto, true), "null");
    assert_eq!(said(ToolChoice::None, true), r#""none""#);
    assert_eq!(said(ToolChoice::Any, true), r#""required""#);
    assert_eq!(said(ToolChoice::Any, false), "null");
}

#[test]
fn a_schema_goes_as_words_where_the_server_knows_none() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let told = |quirks: &[Quirk], system: &[&str]| {
        let mut request = request(vec![Message::user(vec![ContentBlock::text("Hi")])]);
        request.output_schema = Some(Arc::new(schema.clone()));
        let keep = |section: &&crate::SystemSection| system.contains(&section.name.as_str());
        request.system = request.system.iter().filter(keep).cloned().collect();
        let body = body_for::<Chat>(&quirky("vendor", quirks), &request);
        (body["response_format"].to_string(), body["messages"][0].to_string())
    };
    use Quirk::*;
    insta::assert_snapshot!(told(&[], &[]).0, @r#"{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"a":{"type":"string"}}},"strict":false}}"#);
    let (format, system) = told(&[SchemaAsJson], &["base"]);
    assert_eq!(format, r#"{"type":"json_object"}"#);
    insta::assert_snapshot!(system, @r#"{"role":"system","content":"The base.\n\nYour final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"}"#);
    insta::assert_snapshot!(told(&[SchemaAsJson], &[]).1, @r#"{"role":"system","content":"Your final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"}"#);
    insta::assert_snapshot!(told(&[SchemaAsJson, CacheMarks], &["base"]).1, @r#"{"role":"system","content":[{"type":"text","text":"The base.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Your final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"}]}"#);
}

#[test]
fn marks_stand_behind_the_fixed_prompt_and_the_newest_message() {
    let marked = |messages: Vec<Message>| {
        let body = body_for::<Chat>(&quirky("vendor", &[Quirk::CacheMarks]), &request(messages));
        body["messages"].as_array().unwrap().iter().map(|message| format!("{message}\n")).collect::<String>()
    };
    let asked = Message::user(vec![ContentBlock::text("Hi")]);
    let called = Message::assistant(vec![call("a", "read", json!({}))]);
    let answered = Message::user(vec![result("a", vec![ContentBlock::text("A")], false)]);
    insta::assert_snapshot!(marked(vec![asked.clone()]), @r#"
    {"role":"system","content":[{"type":"text","text":"The base.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"The folder."}]}
    {"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}
    "#);
    insta::assert_snapshot!(marked(vec![asked.clone(), called.clone(), answered]), @r#"
    {"role":"system","content":[{"type":"text","text":"The base.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"The folder."}]}
    {"role":"user","content":[{"type":"text","text":"Hi"}]}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}}]}
    "#);
    let pictured = Message::user(vec![result("a", vec![image()], false)]);
    insta::assert_snapshot!(marked(vec![asked, called, pictured]), @r#"
    {"role":"system","content":[{"type":"text","text":"The base.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"The folder."}]}
    {"role":"user","content":[{"type":"text","text":"Hi"}]}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"(shown in the next message)"}]}
    {"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,cGljdHVyZQ=="},"cache_control":{"type":"ephemeral"}}]}
    "#);
}

#[test]
fn a_mark_moves_on_and_leaves_the_bytes_before_it() {
    let target = quirky("vendor", &[Quirk::CacheMarks]);
    let bytes = |request: &Request| -> Vec<u8> {
        super::encode::encode(&target, request).into_body().segments().flat_map(|segment| segment.to_vec()).collect()
    };
    let mut request = request(vec![Message::user(vec![ContentBlock::text("Hi")])]);
    let first = bytes(&request);
    request.messages.push(Arc::new(Message::assistant(vec![ContentBlock::text("Yes.")])));
    request.messages.push(Arc::new(Message::user(vec![ContentBlock::text("Go on.")])));
    let second = bytes(&request);
    let mark = br#","cache_control":{"type":"ephemeral"}}]}]}"#;
    let common = first.len() - mark.len();
    assert!(first.ends_with(mark) && second.ends_with(mark));
    assert_eq!(first[..common], second[..common]);
}

#[test]
fn ids_are_shortened_alike_for_a_call_and_its_result() {
    let request = request(vec![
        Message::assistant(vec![call("call_1", "read", json!({})), call("D681PevKs", "read", json!({}))]),
        Message::user(vec![result("call_1", vec![], false), result("D681PevKs", vec![], false)]),
    ]);
    let body = body_for::<Chat>(&quirky("mistral", &[Quirk::ShortIds]), &request);
    let messages = &body["messages"];
    let ids = [0, 1].map(|at| messages[1]["tool_calls"][at]["id"].as_str().unwrap().to_owned());
    assert_eq!(ids, ["9Gd2dIMCT", "D681PevKs"]);
    assert_eq!([2, 3].map(|at| messages[at]["tool_call_id"].as_str().unwrap().to_owned()), ids);
}

#[test]
fn thoughts_go_back_where_the_server_wants_them() {
    let request = request(vec![
        Message::assistant(vec![thought(None, None), call("a", "read", json!({}))]),
        Message::assistant(vec![thought(Some("sealed"), Some("anthropic")), call("b", "read", json!({}))]),
        Message::assistant(vec![thought(None, None), ContentBlock::text("Done.")]),
        Message::assistant(vec![ContentBlock::text("Done.")]),
    ]);
    let thoughts = |quirks: &[Quirk]| {
        let body = body_for::<Chat>(&quirky("deepseek", quirks), &request);
        let said = body["messages"].as_array().unwrap()[1..].iter();
        said.map(|message| message["reasoning_content"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(thoughts(&[Quirk::ReasoningBack]), [json!("hm"), json!(""), json!("hm"), Value::Null]);
    assert_eq!(thoughts(&[]), vec![Value::Null; 4]);
}

#[test]
fn content_as_a_list_of_parts_is_read() {
    let deltas = [
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me "}]}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"see."}],"closed":true}]}"#,
        r#"{"content":[{"type":"text","text":"I \"look\""},{"type":"text","text":" here."}]}"#,
        r#"{"content":" There."}"#,
        r#"{"content":null,"tool_calls":null}"#,
    ];
    insta::assert_snapshot!(story::<Chat>(&said(&deltas, "stop")), @r#"
    started chat-1 large-1
    0 begins: Thinking
    0 Thinking("Let me see.")
    0 ends: {"type":"thinking","thinking":"Let me see."}
    1 begins: Text
    1 Text("I \"look\" here. There.")
    1 ends: {"type":"text","text":"I \"look\" here. There."}
    finished EndTurn Some("stop") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
}

const DETAILED: &[&str] = &[
    r#"{"reasoning":"Let me ","reasoning_details":[{"type":"reasoning.text","text":"Let me ","format":"anthropic-claude-v1","index":0}]}"#,
    r#"{"reasoning":"see.","reasoning_details":[{"type":"reasoning.text","text":"see.","format":"anthropic-claude-v1","index":0}]}"#,
    r#"{"reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"c2VhbA==","format":"anthropic-claude-v1","index":0}]}"#,
    r#"{"content":"I look."}"#,
    r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]}"#,
    r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"ZGF0YQ==","id":"a","format":"google-gemini-v1","index":0}]}"#,
];

#[test]
fn s4_04_details_of_reasoning_go_back_to_their_own_provider() {
    let stream = said(DETAILED, "tool_calls");
    insta::assert_snapshot!(story::<Chat>(&stream), @r#"
    started chat-1 large-1
    0 begins: Thinking
    0 Thinking("Let me see.")
    0 ends: {"type":"thinking","thinking":"Let me see.","signature":"[{\"type\":\"reasoning.text\",\"format\":\"anthropic-claude-v1\",\"index\":0,\"text\":\"Let me see.\",\"signature\":\"c2VhbA==\"}]","by":"anthropic"}
    1 begins: Text
    1 Text("I look.")
    1 ends: {"type":"text","text":"I look."}
    2 begins: call a of read
    2 Input("{}")
    2 ends: {"type":"tool_use","id":"a","name":"read","input":{}}
    3 begins: Thinking
    3 ends: {"type":"thinking","thinking":"","signature":"[{\"type\":\"reasoning.encrypted\",\"id\":\"a\",\"format\":\"google-gemini-v1\",\"index\":0,\"data\":\"ZGF0YQ==\"}]","by":"anthropic"}
    finished ToolUse Some("tool_calls") {"input":20,"cache_read":100,"output":50,"reasoning":20}
    "#);
    let request = request(vec![heard::<Chat>(&stream)]);
    insta::assert_snapshot!(messages::<Chat>("anthropic", &request)[1]["reasoning_details"].to_string(), @r#"[{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"text":"Let me see.","signature":"c2VhbA=="},{"type":"reasoning.encrypted","id":"a","format":"google-gemini-v1","index":0,"data":"ZGF0YQ=="}]"#);
    assert!(messages::<Chat>("elsewhere", &request)[1]["reasoning_details"].is_null());
}

#[test]
fn s4_04_a_seal_on_a_call_goes_back_to_its_own_provider() {
    let deltas = [
        r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2VhbA=="}}}]}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","type":"function","extra_content":{"google":{"thought_signature":"early"}}}]}"#,
        r#"{"tool_calls":[{"index":1,"function":{"name":"read","arguments":"{}"}}]}"#,
    ];
    let message = heard::<Chat>(&said(&deltas, "tool_calls"));
    let sealed = |block: &ContentBlock| match block {
        ContentBlock::ToolUse(ToolUse { signature: Some(signature), .. }) => Signature::clone(signature),
        other => panic!("{other:?}"),
    };
    let seals: Vec<Signature> = message.content.iter().map(sealed).collect();
    assert_eq!(
        seals.iter().map(|seal| (&*seal.by, &*seal.text)).collect::<Vec<_>>(),
        [("anthropic", "c2VhbA=="), ("anthropic", "early")]
    );
    let request = request(vec![message]);
    let extra = |provider| messages::<Chat>(provider, &request)[1]["tool_calls"][0]["extra_content"].to_string();
    assert_eq!(extra("anthropic"), r#"{"google":{"thought_signature":"c2VhbA=="}}"#);
    assert_eq!(extra("elsewhere"), "null");
}

#[test]
fn usage_is_read_wherever_it_stands_and_counted_without_overlap() {
    let text = delta(r#"{"content":"Hi"}"#);
    let counted = |chunks: &[&str]| {
        let stream = stream(&[&[text.as_str()], chunks, &["[DONE]"]].concat());
        story::<Chat>(&stream).lines().last().unwrap().rsplit_once(' ').unwrap().1.to_owned()
    };
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let written = r#"{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":50}}}"#;
    assert_eq!(counted(&[stop, written]), r#"{"input":20,"cache_read":30,"cache_write":50,"output":5}"#);
    let deepseek = r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64}}"#;
    assert_eq!(counted(&[deepseek]), r#"{"input":36,"cache_read":64,"output":5}"#);
    let moonshot =
        r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":8,"completion_tokens":5}}]}"#;
    assert_eq!(counted(&[moonshot]), r#"{"input":8,"output":5}"#);
    let beside = r#"{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":5,"total_tokens":20,"completion_tokens_details":{"reasoning_tokens":7}}}"#;
    assert_eq!(counted(&[stop, beside]), r#"{"input":8,"output":12,"reasoning":7}"#);
}

#[test]
fn a_server_that_gives_up_has_not_answered() {
    let stream = said(&[r#"{"content":"Hi"}"#], "insufficient_system_resource");
    assert_eq!(decode::<Chat>(&[stream.as_bytes()]).unwrap_err(), "reported: the server gave its answer up");
}

#[test]
fn one_memo_serves_models_of_different_manners() {
    let request = request(vec![
        Message::user(vec![ContentBlock::text("Hi")]),
        Message::assistant(vec![thought(None, None), call("call_1", "read", json!({}))]),
    ]);
    for quirk in [Quirk::CacheMarks, Quirk::ReasoningBack, Quirk::ShortIds] {
        let fresh = Request { memo: crate::Memo::default(), ..request.clone() };
        let target = quirky("vendor", &[quirk]);
        assert_eq!(body_for::<Chat>(&target, &request), body_for::<Chat>(&target, &fresh));
        assert_ne!(body_for::<Chat>(&target, &fresh), body::<Chat>("vendor", &request));
    }
}

#[test]
fn a_model_without_pictures_gets_words_in_their_place() {
    let lines = without_media::<Chat>(target("local"))["messages"].take();
    let lines: Vec<String> = lines.as_array().unwrap().iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"role":"system","content":"The base.\n\nThe folder."}
    {"role":"user","content":"See\n\n[image (image/png, 7 bytes): this model takes no images]\n\n[document (application/pdf, 7 bytes): this model takes no PDFs]"}
    {"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]}
    {"role":"tool","tool_call_id":"a","content":"a.png\n[image (image/png, 7 bytes): this model takes no images]"}
    {"role":"tool","tool_call_id":"b","content":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}
    "#);
}
