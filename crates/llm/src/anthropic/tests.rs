//! The Messages API, read and written.

use super::Messages;
use crate::protocol::Protocol;
use crate::testing::*;
use crate::{Delta, ModelEvent, Quirk, Request, SystemSection};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Effort, Message, Parameters, ToolChoice};

/// Events as the API sends them: name and data.
pub(super) fn stream(events: &[&str]) -> String {
    let name =
        |data: &str| serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
    events.iter().map(|data| format!("event: {}\ndata: {data}\n\n", name(data))).collect()
}

pub(super) const GOLDEN: &[&str] = &[
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
    0 ends: {"type":"thinking","thinking":"Let me \"see\"…\n","signature":"c2ln","by":"anthropic"}
    1 begins: Thinking
    1 ends: {"type":"redacted_thinking","data":"b3BhcXVl","by":"anthropic"}
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
    2147483651 begins: Native
    2147483651 ends: {"type":"native","provider":"anthropic","value":{"type":"text","text":"High at noon.","citations":[{"url":"https://example.com"}]}}
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
          "text": "The folder.",
          "cache_control": {
            "type": "ephemeral"
          }
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

/// The fields of the body that say how to think, choose and answer.
fn asked(quirks: &[Quirk], parameters: Parameters) -> String {
    let sent = body_for::<Messages>(&quirky("anthropic", quirks), &Request { parameters, ..request(vec![]) });
    let Value::Object(fields) = sent else { panic!("{sent}") };
    let not_asked = ["model", "stream", "system", "tools", "messages"];
    Value::from_iter(fields.into_iter().filter(|(name, _)| !not_asked.contains(&name.as_str()))).to_string()
}

fn budget_of(effort: Option<Effort>, thinking_tokens: Option<u32>, max_tokens: u32) -> Value {
    let sent = asked(&[], Parameters { max_tokens, effort, thinking_tokens, ..Parameters::default() });
    serde_json::from_str::<Value>(&sent).unwrap()["thinking"]["budget_tokens"].take()
}

#[test]
fn effort_is_a_budget_that_leaves_room_for_the_answer() {
    use Effort::*;
    let budgets = [None, Minimal, Low, Medium, High, Max].map(|effort| budget_of(Some(effort), Option::None, 64_000));
    assert_eq!(budgets, [json!(null), json!(1_024), json!(4_096), json!(10_000), json!(32_000), json!(48_000)]);
    assert_eq!(budget_of(Some(High), Option::None, 8_000), 6_000);
    assert_eq!(budget_of(Some(High), Option::None, 1_365), json!(null), "too little is no thinking");
    assert_eq!(budget_of(Some(Max), Option::None, u32::MAX), json!(3_221_225_471_u32));
    assert_eq!(budget_of(Option::None, Some(2_000), 5_000), 2_000);
    assert_eq!(budget_of(Option::None, Some(9_000), 5_000), 3_750);
    assert_eq!(budget_of(Option::None, Some(10), 5_000), 1_024, "the API takes no smaller one");
    assert_eq!(budget_of(Option::None, Some(0), 5_000), json!(null));
    assert_eq!(budget_of(Some(Low), Some(2_000), 64_000), 4_096, "the word goes first");
}

#[test]
fn adaptive_models_are_told_a_word() {
    use Quirk::*;
    let of = |quirks: &[Quirk], effort| asked(quirks, Parameters { max_tokens: 9, effort, ..Parameters::default() });
    let adaptive = [AdaptiveThinking, ThinkingSwitch];
    insta::assert_snapshot!(of(&adaptive, None), @r#"{"max_tokens":9}"#);
    insta::assert_snapshot!(of(&adaptive, Some(Effort::None)), @r#"{"max_tokens":9,"thinking":{"type":"disabled"}}"#);
    insta::assert_snapshot!(of(&adaptive, Some(Effort::Minimal)), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}"#);
    insta::assert_snapshot!(of(&adaptive, Some(Effort::Max)), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}}"#);
    let always = [AdaptiveThinking];
    insta::assert_snapshot!(of(&always, None), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"}}"#);
    insta::assert_snapshot!(of(&always, Some(Effort::None)), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}"#);
    let bound = [AdaptiveThinking, ThinkingSwitch, BoundThinking];
    insta::assert_snapshot!(of(&bound, Some(Effort::Medium)), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"medium"}}"#);
    insta::assert_snapshot!(asked(&adaptive, Parameters { max_tokens: 9, thinking_tokens: Some(30_000), ..Parameters::default() }), @r#"{"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}"#);
}

#[test]
fn sampling_settings_go_where_nobody_thinks_or_minds() {
    let of = |quirks: &[Quirk], effort| {
        let (temperature, top_p) = (Some(0.5), Some(0.9));
        asked(quirks, Parameters { max_tokens: 9_000, temperature, top_p, effort, ..Parameters::default() })
    };
    insta::assert_snapshot!(of(&[], None), @r#"{"max_tokens":9000,"temperature":0.5,"top_p":0.9}"#);
    insta::assert_snapshot!(of(&[], Some(Effort::Low)), @r#"{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":4096}}"#);
    insta::assert_snapshot!(of(&[Quirk::NoTemperature], None), @r#"{"max_tokens":9000}"#);
    insta::assert_snapshot!(of(&[Quirk::AdaptiveThinking, Quirk::ThinkingSwitch], Some(Effort::None)), @r#"{"max_tokens":9000,"temperature":0.5,"top_p":0.9,"thinking":{"type":"disabled"}}"#);
}

#[test]
fn a_forced_choice_of_tools_does_without_thinking() {
    let of = |quirks: &[Quirk], tool_choice| {
        let effort = Some(Effort::High);
        asked(quirks, Parameters { max_tokens: 9_000, effort, tool_choice, ..Parameters::default() })
    };
    let read = ToolChoice::Tool { name: "read".into() };
    insta::assert_snapshot!(of(&[], ToolChoice::Auto), @r#"{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":6750}}"#);
    insta::assert_snapshot!(of(&[], ToolChoice::None), @r#"{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":6750},"tool_choice":{"type":"none"}}"#);
    insta::assert_snapshot!(of(&[], ToolChoice::Any), @r#"{"max_tokens":9000,"tool_choice":{"type":"any"}}"#);
    insta::assert_snapshot!(of(&[], read.clone()), @r#"{"max_tokens":9000,"tool_choice":{"type":"tool","name":"read"}}"#);
    insta::assert_snapshot!(of(&[Quirk::AdaptiveThinking], read), @r#"{"max_tokens":9000,"tool_choice":{"type":"tool","name":"read"},"output_config":{"effort":"high"}}"#);
    let parameters = Parameters { max_tokens: 9, tool_choice: ToolChoice::Any, ..Parameters::default() };
    let without_tools = Request { parameters, tools: [].into(), ..request(vec![]) };
    assert!(body::<Messages>("anthropic", &without_tools)["tool_choice"].is_null(), "there is nothing to choose from");
}

#[test]
fn calls_made_without_thinking_are_answered_without_a_budget_for_it() {
    let thought = |by: &str| ContentBlock::Thinking {
        thinking: "hm".into(),
        signature: Some("c2ln".into()),
        by: Some(by.into()),
    };
    let thinks = |said: Vec<ContentBlock>, answer: ContentBlock| {
        let mut request = request(vec![Message::assistant(said), Message::user(vec![answer])]);
        request.parameters = Parameters { max_tokens: 9_000, thinking_tokens: Some(2_000), ..Parameters::default() };
        body::<Messages>("anthropic", &request)["thinking"].is_object()
    };
    let (call, answer) = (call("a", "read", json!({})), result("a", vec![], false));
    assert!(thinks(vec![thought("anthropic"), call.clone()], answer.clone()));
    assert!(!thinks(vec![call.clone()], answer.clone()), "made by force");
    assert!(!thinks(vec![thought("elsewhere"), call], answer), "made by another model");
    assert!(thinks(vec![ContentBlock::text("Done.")], ContentBlock::text("And now?")));
}

#[test]
fn ids_that_the_api_refuses_are_mended_in_calls_and_results_alike() {
    let sent = messages::<Messages>(
        "anthropic",
        &request(vec![
            Message::assistant(vec![call("functions.read:0", "read", json!({}))]),
            Message::user(vec![result("functions.read:0", vec![], false)]),
        ]),
    );
    let id = &sent[0]["content"][0]["id"];
    assert!(id.as_str().unwrap().starts_with("functions_read_0_"), "{id}");
    assert_eq!(sent[1]["content"][0]["tool_use_id"], *id);
}

#[test]
fn the_shape_of_the_answer_stands_beside_the_effort_and_before_what_is_kept() {
    let schema = json!({"type": "object", "properties": {"year": {"type": "integer"}}});
    let request = Request { output_schema: Some(Arc::new(schema)), ..request(vec![]) };
    let sent = body::<Messages>("anthropic", &request);
    insta::assert_snapshot!(sent["output_config"], @r#"{"format":{"type":"json_schema","schema":{"type":"object","properties":{"year":{"type":"integer"}},"additionalProperties":false}}}"#);
    let text = sent.to_string();
    assert!(text.find("output_config") < text.find("system"));
}

#[test]
fn features_in_trial_are_listed_once_beside_the_users_own() {
    let mut target = target("anthropic");
    assert_eq!(Messages::quirk_header(&target), None);
    target.endpoint.quirks = vec![Quirk::BoundThinking];
    let own = "thinking-binding-controls-2026-08-01";
    assert_eq!(Messages::quirk_header(&target), Some(("anthropic-beta", own.to_owned())));
    target.endpoint.headers = vec![("Anthropic-Beta".into(), format!("one, two,{own}"))];
    assert_eq!(Messages::quirk_header(&target), Some(("anthropic-beta", format!("one,two,{own}"))));
}

#[test]
fn one_side_speaks_once_and_results_come_first() {
    let thought = ContentBlock::Thinking { thinking: "unsigned".into(), signature: None, by: None };
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
            "title": "plan.pdf",
            "cache_control": {
              "type": "ephemeral"
            }
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
    let request = Request { blobs: Arc::default(), ..request(vec![Message::user(vec![image()])]) };
    let sent = messages::<Messages>("anthropic", &request);
    assert_eq!(sent[0]["content"][0]["text"], json!("[image (image/png, 7 bytes) that is no longer available]"));
}

#[test]
fn a_model_without_pictures_gets_words_in_their_place() {
    let lines = without_media::<Messages>(target("anthropic"))["messages"].take();
    let lines: Vec<String> = lines.as_array().unwrap().iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"role":"user","content":[{"type":"text","text":"See"},{"type":"text","text":"[image (image/png, 7 bytes): this model takes no images]"},{"type":"text","text":"[document (application/pdf, 7 bytes): this model takes no PDFs]","cache_control":{"type":"ephemeral"}}]}
    {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"read","input":{}},{"type":"tool_use","id":"b","name":"read","input":{}}]}
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a.png"},{"type":"text","text":"[image (image/png, 7 bytes): this model takes no images]"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}],"cache_control":{"type":"ephemeral"}}]}
    "#);
}

/// `value` without its marks, and how many there were.
fn unmarked(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => {
            let own = usize::from(fields.shift_remove("cache_control").is_some());
            own + fields.values_mut().map(unmarked).sum::<usize>()
        }
        Value::Array(items) => items.iter_mut().map(unmarked).sum(),
        _ => 0,
    }
}

#[test]
fn breakpoints_are_four_at_most_and_nothing_but_they_change_from_call_to_call() {
    let mut request = request(vec![Message::user(vec![ContentBlock::text("One")])]);
    let mut before: Vec<Value> = vec![];
    for round in 0..6 {
        let mut sent = body::<Messages>("anthropic", &request);
        let newest = sent["messages"].as_array().unwrap().len() - 1;
        let is_marked = |place: usize| sent["messages"][place].to_string().contains("cache_control");
        assert!(is_marked(newest));
        assert_eq!(newest.checked_sub(2).map(is_marked), newest.checked_sub(2).map(|_| true), "the newest of before");
        let marks = unmarked(&mut sent);
        assert_eq!(marks, if round == 0 { 3 } else { 4 });
        let Value::Array(said) = sent["messages"].take() else { panic!("{sent}") };
        assert_eq!(said[..before.len()], before);
        before = said;
        let id = format!("call-{round}");
        request.messages.push(Arc::new(Message::assistant(vec![call(&id, "read", json!({}))])));
        request.messages.push(Arc::new(Message::user(vec![result(&id, vec![ContentBlock::text("A")], false)])));
    }
}

#[test]
fn the_kept_bytes_hold_no_mark_that_moves() {
    let mut request = request(vec![Message::user(vec![ContentBlock::text("One")])]);
    let mut bytes = |more: Vec<Message>| {
        request.messages.extend(more.into_iter().map(Arc::new));
        let body = Messages::encode(&target("anthropic"), &request).into_body();
        body.segments().flat_map(|segment| segment.to_vec()).collect::<Vec<u8>>()
    };
    let turn =
        || vec![Message::assistant(vec![ContentBlock::text("Two")]), Message::user(vec![ContentBlock::text("Go on.")])];
    let mark = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    let plain = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(mark, "");
    let (first, second, third) = (plain(bytes(vec![])), plain(bytes(turn())), plain(bytes(turn())));
    assert!(second.starts_with(first.trim_end_matches("]}")), "{second}");
    assert!(third.starts_with(second.trim_end_matches("]}")), "{third}");
}

#[test]
fn breakpoints_cover_the_tools_and_what_stays_of_the_prompt() {
    let marked = |sections: &[(&str, bool)]| {
        let section =
            |(text, fixed): &(&str, bool)| SystemSection { name: "s".into(), text: (*text).into(), fixed: *fixed };
        let system = sections.iter().map(section).collect();
        let mut sent = body::<Messages>("anthropic", &Request { system, ..request(vec![]) });
        let is_marked = |block: &Value| block["cache_control"].is_object();
        let system = sent["system"].take();
        let texts = system.as_array().into_iter().flatten().filter(|block| is_marked(block));
        let texts: Vec<&str> = texts.map(|block| block["text"].as_str().unwrap()).collect();
        format!("{texts:?}, tools: {}", is_marked(&sent["tools"][0]))
    };
    assert_eq!(marked(&[("a", true), ("b", true)]), r#"["b"], tools: false"#);
    assert_eq!(marked(&[("a", true), ("b", false), ("c", false)]), r#"["a", "c"], tools: false"#);
    assert_eq!(marked(&[("a", false)]), r#"["a"], tools: true"#);
    assert_eq!(marked(&[]), "[], tools: true");
}

#[test]
fn thinking_at_the_end_of_a_paused_message_is_not_marked() {
    let thinking = ContentBlock::Thinking { thinking: "hm".into(), signature: Some("s".into()), by: None };
    let request = request(vec![Message::assistant(vec![ContentBlock::text("One"), thinking])]);
    assert!(!messages::<Messages>("anthropic", &request).to_string().contains("cache_control"));
}

#[test]
fn text_goes_back_with_its_citations_and_to_others_without() {
    let request = request(vec![heard::<Messages>(&stream(SEARCH))]);
    let last =
        |provider: &str| messages::<Messages>(provider, &request)[0]["content"].as_array().unwrap().last().cloned();
    let cited = json!({"type": "text", "text": "High at noon.", "citations": [{"url": "https://example.com"}]});
    assert_eq!(last("anthropic"), Some(cited));
    let mut other = last("elsewhere").unwrap();
    unmarked(&mut other);
    assert_eq!(other, json!({"type": "text", "text": "High at noon."}));
}

#[test]
fn thinking_goes_back_to_whom_it_is_signed_by() {
    let request = request(vec![heard::<Messages>(&stream(GOLDEN))]);
    let first = |provider: &str| messages::<Messages>(provider, &request)[0]["content"][0]["type"].clone();
    assert_eq!(first("anthropic"), "thinking");
    assert_eq!(first("bedrock"), "text");
}

/// Thinking whose text is not shown, its cost, and an answer that ran into its limit.
pub(super) const HIDDEN: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_3","model":"large-1","usage":{"input_tokens":3,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"It begins"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":9,"output_tokens":50,"output_tokens_details":{"thinking_tokens":40}}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn thinking_that_is_not_shown_is_kept_and_counted() {
    insta::assert_snapshot!(story::<Messages>(stream(HIDDEN)), @r#"
    started msg_3 large-1
    0 begins: Thinking
    0 ends: {"type":"thinking","thinking":"","signature":"c2ln","by":"anthropic"}
    1 begins: Text
    1 Text("It begins")
    1 ends: {"type":"text","text":"It begins"}
    finished MaxTokens Some("max_tokens") {"input":3,"cache_read":9,"output":50,"reasoning":40}
    "#);
    let sent = messages::<Messages>("anthropic", &request(vec![heard::<Messages>(&stream(HIDDEN))]));
    assert_eq!(sent[0]["content"][0], json!({"type": "thinking", "thinking": "", "signature": "c2ln"}));
}

#[test]
fn a_refusal_is_told_as_one() {
    let events = stream(&[
        GOLDEN[0],
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":"bio","explanation":null}},"usage":{"output_tokens":4}}"#,
        GOLDEN[23],
    ]);
    insta::assert_snapshot!(story::<Messages>(events), @r#"
    started msg_1 large-1
    finished Refusal Some("refusal") {"input":12,"cache_read":100,"cache_write":5,"output":4}
    "#);
}

/// A server that speaks the protocol in its own way: no ids, no usage, no block ends, arguments at once, event names
/// absent.
#[test]
fn what_a_server_leaves_out_is_done_without() {
    let events = [
        r#"{"type":"message_start","message":{}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text"}}"#,
        r#"{"type":"content_block_delta","delta":{"text":"On it."}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}}"#,
        r#"{"type":"something_new","index":null,"delta":null}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":null}"#,
    ];
    let events: String = events
        .iter()
        .filter(|event| !event.contains("null,\"delta\""))
        .map(|event| format!("data:{event}\r\n\r\n"))
        .collect();
    insta::assert_snapshot!(story::<Messages>(events), @r#"
    started  
    0 begins: Text
    1 begins: call c1 of read
    0 Text("On it.")
    0 ends: {"type":"text","text":"On it."}
    1 Input("{\"path\":\"a\"}")
    1 ends: {"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}
    finished ToolUse Some("tool_use") {"input":0,"output":0}
    "#);
}
