//! Chat Completions, read and written.

use super::Chat;
use super::decode::first_free_call;
use crate::Request;
use crate::testing::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, Parameters};

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
fn ids_made_here_come_behind_those_of_the_conversation() {
    assert_eq!(first_free_call(&[]), 1);
    let calls = vec![call("call_7", "ls", json!({})), call("call_x", "ls", json!({})), call("z9", "ls", json!({}))];
    assert_eq!(first_free_call(&[Arc::new(Message::assistant(calls))]), 8);
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
      "max_completion_tokens": 1000,
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
fn s4_07_other_servers_get_the_older_word_for_the_limit() {
    let parameters = Parameters { max_tokens: 9, temperature: Some(0.0), thinking_tokens: Some(5) };
    let request = Request { parameters, system: [].into(), tools: [].into(), ..request(vec![]) };
    insta::assert_json_snapshot!(body::<Chat>("ollama", &request), @r#"
    {
      "model": "large-1",
      "stream": true,
      "stream_options": {
        "include_usage": true
      },
      "max_tokens": 9,
      "temperature": 0.0,
      "messages": []
    }
    "#);
}

#[test]
fn results_come_first_and_pictures_in_a_message_of_their_own() {
    let native = ContentBlock::Native { provider: "anthropic".into(), value: json!({"type": "server_tool_use"}) };
    let thought = ContentBlock::Thinking { thinking: "hm".into(), signature: None };
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
