//! The Messages API, read and written.

use super::Messages;
use crate::testing::*;
use crate::{Delta, ModelEvent};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Message, Parameters};

/// Events as the API sends them: name and data.
fn stream(events: &[&str]) -> String {
    let name =
        |data: &str| serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
    events.iter().map(|data| format!("event: {}\ndata: {data}\n\n", name(data))).collect()
}

const GOLDEN: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"large-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me \"see\""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"…\n"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b3BhcXVl"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look at \ud83d\udc4b "}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"grün."}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"read","input":{}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a"}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":".toml\"}"}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":" \"b\"}"}}"#,
    r#"{"type":"content_block_stop","index":4}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":77}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn s2_20_text_and_calls_are_mixed_and_fragments_assembled_per_block() {
    insta::assert_snapshot!(story::<Messages>(&stream(GOLDEN)), @r#"
    started msg_1 large-1
    0 begins: Thinking
    0 Thinking("Let me \"see\"…\n")
    0 ends: {"type":"thinking","thinking":"Let me \"see\"…\n","signature":"c2ln"}
    1 begins: Thinking
    1 ends: {"type":"redacted_thinking","data":"b3BhcXVl"}
    2 begins: Text
    2 Text("I look at 👋 grün.")
    2 ends: {"type":"text","text":"I look at 👋 grün."}
    3 begins: call toolu_1 of read
    4 begins: call toolu_2 of read
    3 Input("{\"path\": \"a.toml\"}")
    3 ends: {"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a.toml"}}
    4 Input("{\"path\": \"b\"}")
    4 ends: {"type":"tool_use","id":"toolu_2","name":"read","input":{"path":"b"}}
    finished ToolUse Some("tool_use") {"input":12,"cache_read":100,"cache_write":5,"output":77}
    "#);
}

#[test]
fn thinking_text_and_calls_go_back_with_the_same_values() {
    let mut message = messages::<Messages>("anthropic", &request(vec![heard::<Messages>(&stream(GOLDEN))]));
    assert_eq!(
        message[0].take(),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Let me \"see\"…\n", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"type": "text", "text": "I look at 👋 grün."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.toml"}},
            {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b"}, "cache_control": {"type": "ephemeral"}},
        ]})
    );
}

const SEARCH: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_2","model":"large-1","usage":{"input_tokens":3,"output_tokens":0}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" \"tides\"}"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","encrypted_content":"eA=="}]}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"compaction","content":null,"log":"a"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"compaction_delta","content":"So far"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"compaction_delta","content":": tides.","log":"b"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"High","citations":[]}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"url":"https://example.com"}}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":" at noon."}}"#,
    r#"{"type":"content_block_stop","index":3}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"input_tokens":4,"output_tokens":9}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn blocks_of_unknown_kinds_are_kept_with_their_deltas() {
    insta::assert_snapshot!(story::<Messages>(&stream(SEARCH)), @r#"
    started msg_2 large-1
    0 begins: Native
    0 ends: {"type":"native","provider":"anthropic","value":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"tides"}}}
    1 begins: Native
    1 ends: {"type":"native","provider":"anthropic","value":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com","encrypted_content":"eA=="}]}}
    2 begins: Native
    2 ends: {"type":"native","provider":"anthropic","value":{"type":"compaction","content":"So far: tides.","log":"ab"}}
    3 begins: Text
    3 Text("High at noon.")
    3 ends: {"type":"text","text":"High at noon."}
    finished Pause Some("pause_turn") {"input":4,"output":9}
    "#);
}

#[test]
fn unknown_blocks_go_back_to_their_own_provider_only() {
    let request = request(vec![heard::<Messages>(&stream(SEARCH))]);
    let kinds = |provider: &str| {
        let sent = messages::<Messages>(provider, &request);
        let blocks = sent[0]["content"].as_array().unwrap().clone();
        blocks.into_iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kinds("anthropic"), ["server_tool_use", "web_search_tool_result", "compaction", "text"]);
    assert_eq!(kinds("elsewhere"), ["text"]);
    let sent = messages::<Messages>("anthropic", &request);
    assert_eq!(
        sent[0]["content"][0],
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}})
    );
}

#[test]
fn many_deltas_of_one_read_are_one() {
    let fragments = (0..1_000).map(|n| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{n} "}}}}"#)
    });
    let mut events = vec![GOLDEN[0].to_owned()];
    events.push(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.into());
    events.extend(fragments);
    let start = stream(&events.iter().map(String::as_str).collect::<Vec<_>>());
    let end = stream(&[r#"{"type":"content_block_stop","index":0}"#, GOLDEN[22], GOLDEN[23]]);
    let batches = decode::<Messages>(&[start.as_bytes(), end.as_bytes()]).unwrap();
    assert_eq!(batches[0].len(), 3);
    assert!(
        matches!(&batches[0][2], ModelEvent::Delta { index: 0, delta: Delta::Text(text) } if text.ends_with("998 999 "))
    );
    assert_eq!(batches[1].len(), 1, "the end of the block adds no second delta");
}

#[test]
fn a_message_is_whole_once_its_stop_reason_is_known() {
    assert!(decode::<Messages>(&[stream(&GOLDEN[..23]).as_bytes()]).is_ok());
    for end in 0..=22 {
        assert_eq!(decode::<Messages>(&[stream(&GOLDEN[..end]).as_bytes()]).unwrap_err(), "cut");
    }
}

#[test]
fn an_error_event_ends_the_message_with_its_cause() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let events = stream(&[GOLDEN[0], error]);
    assert_eq!(decode::<Messages>(&[events.as_bytes()]).unwrap_err(), "reported: Overloaded");
}

#[test]
fn events_that_break_the_protocol_are_named() {
    let error = |event: &str| decode::<Messages>(&[stream(&[event]).as_bytes()]).unwrap_err();
    let delta = r#"{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}"#;
    assert_eq!(error(delta), "broken: block 7 was never started");
    assert_eq!(error(r#"{"type":"content_block_start","index":0}"#), "broken: content_block_start without a block");
    assert!(decode::<Messages>(&[b"data: {half\n\n"]).unwrap_err().starts_with("broken: key must be a string"));
}

#[test]
fn arguments_that_are_no_json_stay_text_and_go_back_inside_an_object() {
    let events = stream(&[
        GOLDEN[0],
        GOLDEN[13],
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": "}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        GOLDEN[22],
    ]);
    let message = heard::<Messages>(&events);
    let ContentBlock::ToolUse(call) = &message.content[0] else { panic!("{message:?}") };
    assert_eq!(call.input, json!("{\"path\": "));
    let sent = messages::<Messages>("anthropic", &request(vec![message]));
    assert_eq!(sent[0]["content"][0]["input"], json!({"unparsed": "{\"path\": "}));
}

#[test]
fn s2_04_requests_stream_and_carry_max_tokens() {
    let request = request(vec![Message::user(vec![ContentBlock::text("Hello"), ContentBlock::text(" \n")])]);
    insta::assert_json_snapshot!(body::<Messages>("anthropic", &request), @r#"
    {
      "model": "large-1",
      "stream": true,
      "max_tokens": 1000,
      "system": [
        {
          "type": "text",
          "text": "The base.",
          "cache_control": {
            "type": "ephemeral"
          }
        },
        {
          "type": "text",
          "text": "The folder."
        }
      ],
      "tools": [
        {
          "name": "read",
          "description": "Reads a file.",
          "input_schema": {
            "type": "object",
            "properties": {
              "path": {
                "type": "string"
              }
            }
          }
        }
      ],
      "messages": [
        {
          "role": "user",
          "content": [
            {
              "type": "text",
              "text": "Hello",
              "cache_control": {
                "type": "ephemeral"
              }
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn parameters_are_sent_as_the_api_wants_them() {
    let sent = |parameters: Parameters| {
        let mut body = body::<Messages>("anthropic", &crate::Request { parameters, ..request(vec![]) });
        ["max_tokens", "temperature", "thinking"].map(|name| body[name].take().to_string()).join(" ")
    };
    let of = |max_tokens, temperature, thinking_tokens| Parameters { max_tokens, temperature, thinking_tokens };
    assert_eq!(sent(of(500, Some(0.5), None)), "500 0.5 null");
    assert_eq!(sent(of(5000, Some(0.5), Some(2000))), r#"5000 null {"type":"enabled","budget_tokens":2000}"#);
    assert_eq!(sent(of(500, None, Some(2000))), r#"2500 null {"type":"enabled","budget_tokens":2000}"#);
}

#[test]
fn one_side_speaks_once_and_results_come_first() {
    let thought = ContentBlock::Thinking { thinking: "unsigned".into(), signature: None };
    let request = request(vec![
        Message::user(vec![image(), ContentBlock::text("What is this?"), document()]),
        Message::assistant(vec![thought.clone(), call("a", "read", json!({})), call("b", "read", json!({}))]),
        Message::user(vec![
            ContentBlock::text("By the way"),
            result("a", vec![ContentBlock::text("A"), image()], false),
        ]),
        Message::assistant(vec![thought]),
        Message::user(vec![result("b", vec![], true), ContentBlock::text("Go on.")]),
    ]);
    insta::assert_json_snapshot!(messages::<Messages>("anthropic", &request), @r#"
    [
      {
        "role": "user",
        "content": [
          {
            "type": "image",
            "source": {
              "type": "base64",
              "media_type": "image/png",
              "data": "cGljdHVyZQ=="
            }
          },
          {
            "type": "text",
            "text": "What is this?"
          },
          {
            "type": "document",
            "source": {
              "type": "base64",
              "media_type": "application/pdf",
              "data": "cGljdHVyZQ=="
            },
            "title": "plan.pdf"
          }
        ]
      },
      {
        "role": "assistant",
        "content": [
          {
            "type": "tool_use",
            "id": "a",
            "name": "read",
            "input": {}
          },
          {
            "type": "tool_use",
            "id": "b",
            "name": "read",
            "input": {}
          }
        ]
      },
      {
        "role": "user",
        "content": [
          {
            "type": "tool_result",
            "tool_use_id": "a",
            "content": [
              {
                "type": "text",
                "text": "A"
              },
              {
                "type": "image",
                "source": {
                  "type": "base64",
                  "media_type": "image/png",
                  "data": "cGljdHVyZQ=="
                }
              }
            ]
          },
          {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [
              {
                "type": "text",
                "text": "the tool failed without a word"
              }
            ],
            "is_error": true
          },
          {
            "type": "text",
            "text": "By the way"
          },
          {
            "type": "text",
            "text": "Go on.",
            "cache_control": {
              "type": "ephemeral"
            }
          }
        ]
      }
    ]
    "#);
}

#[test]
fn a_lost_picture_leaves_a_note() {
    let request = crate::Request { blobs: Arc::default(), ..request(vec![Message::user(vec![image()])]) };
    let sent = messages::<Messages>("anthropic", &request);
    assert_eq!(sent[0]["content"][0]["text"], json!("[image (image/png, 7 bytes) that is no longer available]"));
}

#[test]
fn breakpoints_stand_on_the_fixed_prompt_and_the_newest_message() {
    let mut request = request(vec![Message::user(vec![ContentBlock::text("One")])]);
    let marks = |request: &crate::Request| {
        let body = body::<Messages>("anthropic", request);
        let text = body.to_string();
        (text.matches("cache_control").count(), body)
    };
    let (count, first) = marks(&request);
    assert_eq!(count, 2);
    assert!(first["system"][0]["cache_control"].is_object());
    assert!(first["messages"][0]["content"][0]["cache_control"].is_object());
    request.messages.push(Arc::new(Message::assistant(vec![ContentBlock::text("Two")])));
    request.messages.push(Arc::new(Message::user(vec![result("a", vec![], false)])));
    let (count, second) = marks(&request);
    assert_eq!(count, 2, "the mark has moved on");
    assert!(second["messages"][2]["content"][0]["cache_control"].is_object());
}

#[test]
fn thinking_at_the_end_of_a_paused_message_is_not_marked() {
    let thinking = ContentBlock::Thinking { thinking: "hm".into(), signature: Some("s".into()) };
    let request = request(vec![Message::assistant(vec![ContentBlock::text("One"), thinking])]);
    assert!(!messages::<Messages>("anthropic", &request).to_string().contains("cache_control"));
}
