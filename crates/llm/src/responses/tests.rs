//! The Responses API, read and written.

use super::Responses;
use crate::testing::*;
use crate::{Quirk, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Effort, Message, Parameters, ToolChoice};

/// The stream of these events, each under its name.
fn stream(events: &[&str]) -> String {
    let named = |data: &&str| {
        let event: Value = serde_json::from_str(data).unwrap();
        format!("event: {}\ndata: {data}\n\n", event["type"].as_str().unwrap())
    };
    events.iter().map(named).collect()
}

/// The stream of these events between a beginning and a whole end.
fn said(events: &[&str]) -> String {
    stream(&[&[CREATED], events, &[COMPLETED]].concat())
}

fn last(stream: &str) -> String {
    story::<Responses>(stream).lines().last().unwrap().to_owned()
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"large-1","output":[],"usage":null,"error":null,"incomplete_details":null}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","sequence_number":99,"response":{"id":"resp_1","object":"response","status":"completed","model":"large-1","output":[],"error":null,"incomplete_details":null,"usage":{"input_tokens":120,"input_tokens_details":{"cached_tokens":80,"cache_write_tokens":10},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":170}}}"#;

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"Z0FBQUFB\u003d\u003d","summary":[{"type":"summary_text","text":"**Plan**\n\nLet me \"see\"."},{"type":"summary_text","text":"Both."}]}"#;

/// Reasoning with a summary of two parts, words, and two calls whose fragments are mixed.
fn golden() -> String {
    let reasoned = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{REASONING}}}"#);
    said(&[
        r#"{"type":"response.in_progress","response":{"id":"resp_1","status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"Z0"}}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Plan**\n\nLet me","obfuscation":"x8"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":" \"see\"."}"#,
        r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Plan**\n\nLet me \"see\"."}"#,
        r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Both."}"#,
        &reasoned,
        r#"{"type":"keepalive","sequence_number":9}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"phase":"commentary","role":"assistant"}}"#,
        r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"I look at \ud83d\udc4b ","logprobs":[]}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"grün.","logprobs":[]}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"I look at 👋 grün."}"#,
        r#"{"type":"response.content_part.done","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"I look at 👋 grün."}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"I look at 👋 grün."}],"role":"assistant"}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_a","name":"read"}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_b","name":"read"}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\": \"a"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{\"path\": \"b\"}"}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"completed","arguments":"{\"path\": \"b\"}","call_id":"call_b","name":"read"}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":".toml\"}"}"#,
        r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"path\": \"a.toml\"}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\": \"a.toml\"}","call_id":"call_a","name":"read"}}"#,
    ])
}

#[test]
fn s2_20_calls_in_mixed_fragments_are_assembled_per_block_and_end_in_order() {
    insta::assert_snapshot!(story::<Responses>(&golden()), @r#"
    started resp_1 large-1
    0 begins: Thinking
    0 Thinking("**Plan**\n\nLet me \"see\".\n\nBoth.")
    0 ends: {"type":"thinking","thinking":"**Plan**\n\nLet me \"see\".\n\nBoth.","signature":"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"Z0FBQUFB\\u003d\\u003d\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"**Plan**\\n\\nLet me \\\"see\\\".\"},{\"type\":\"summary_text\",\"text\":\"Both.\"}]}","by":"anthropic"}
    1 begins: Text
    1 Text("I look at 👋 grün.")
    1 ends: {"type":"text","text":"I look at 👋 grün."}
    2 begins: call call_a of read
    3 begins: call call_b of read
    2 Input("{\"path\": \"a.toml\"}")
    2 ends: {"type":"tool_use","id":"call_a","name":"read","input":{"path":"a.toml"}}
    3 Input("{\"path\": \"b\"}")
    3 ends: {"type":"tool_use","id":"call_b","name":"read","input":{"path":"b"}}
    finished ToolUse Some("completed") {"input":30,"cache_read":80,"cache_write":10,"output":50,"reasoning":20}
    "#);
}

#[test]
fn s4_04_a_message_goes_back_as_it_came() {
    let answers = vec![result("call_a", vec![ContentBlock::text("A")], false), result("call_b", vec![], true)];
    let request = request(vec![heard::<Responses>(&golden()), Message::user(answers)]);
    let bytes: Vec<u8> = {
        let body = super::encode::encode(&target("anthropic"), &request).into_body();
        body.segments().flat_map(|segment| segment.to_vec()).collect()
    };
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains(REASONING), "the reasoning goes back byte by byte: {text}");
    insta::assert_snapshot!(text.split_once(REASONING).unwrap().1, @r#",{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look at 👋 grün."}]},{"type":"function_call","call_id":"call_a","name":"read","arguments":"{\"path\":\"a.toml\"}"},{"type":"function_call","call_id":"call_b","name":"read","arguments":"{\"path\":\"b\"}"},{"type":"function_call_output","call_id":"call_a","output":"A"},{"type":"function_call_output","call_id":"call_b","output":"error: (no output)"}]}"#);
    let mut elsewhere = body::<Responses>("elsewhere", &request);
    assert_eq!(elsewhere["input"][2].take()["type"], "message", "nobody else sees it");
}

#[test]
fn a_stream_without_fragments_is_read_from_its_whole_items() {
    let events = [
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","arguments":"{}","call_id":"call_a","name":"ls"}}"#,
    ];
    insta::assert_snapshot!(story::<Responses>(&said(&events)), @r#"
    started resp_1 large-1
    0 begins: Thinking
    0 Thinking("Hm.")
    0 ends: {"type":"thinking","thinking":"Hm."}
    1 begins: call call_a of ls
    1 Input("{}")
    1 ends: {"type":"tool_use","id":"call_a","name":"ls","input":{}}
    finished ToolUse Some("completed") {"input":30,"cache_read":80,"cache_write":10,"output":50,"reasoning":20}
    "#);
    let end = r#"{"type":"response.completed","response":{"id":"resp_2","model":"small-1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}]}}"#;
    insta::assert_snapshot!(story::<Responses>(&stream(&[end])), @r#"
    started resp_2 small-1
    0 begins: Text
    0 Text("Hi")
    0 ends: {"type":"text","text":"Hi"}
    finished EndTurn Some("completed") {"input":0,"output":0}
    "#);
}

#[test]
fn open_reasoning_is_heard_and_not_sent_back() {
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"Hm."}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":null}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi"}"#,
    ];
    let stream = said(&events);
    insta::assert_snapshot!(story::<Responses>(&stream), @r#"
    started resp_1 large-1
    0 begins: Thinking
    0 Thinking("Hm.")
    0 ends: {"type":"thinking","thinking":"Hm."}
    1 begins: Text
    1 Text("Hi")
    1 ends: {"type":"text","text":"Hi"}
    finished EndTurn Some("completed") {"input":30,"cache_read":80,"cache_write":10,"output":50,"reasoning":20}
    "#);
    let body = body::<Responses>("anthropic", &request(vec![heard::<Responses>(&stream)]));
    assert_eq!(body["input"].as_array().unwrap().len(), 3, "{body}");
}

#[test]
fn items_of_an_unknown_kind_are_kept_and_sent_back() {
    let item =
        r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rust"}}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}"#,
        r#"{"type":"response.code_interpreter_call_code.delta","output_index":0,"delta":"x"}"#,
        &done,
    ];
    let stream = said(&events);
    insta::assert_snapshot!(story::<Responses>(&stream), @r#"
    started resp_1 large-1
    0 begins: Native
    0 ends: {"type":"native","provider":"anthropic","value":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rust"}}}
    finished EndTurn Some("completed") {"input":30,"cache_read":80,"cache_write":10,"output":50,"reasoning":20}
    "#);
    let request = request(vec![heard::<Responses>(&stream)]);
    let sent = |provider| body::<Responses>(provider, &request)["input"][2].clone();
    assert_eq!(sent("anthropic"), serde_json::from_str::<Value>(item).unwrap());
    assert_eq!(sent("elsewhere"), Value::Null);
}

#[test]
fn reasons_to_stop_are_mapped_and_kept() {
    let begun = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
    ];
    let ended = |reason: &str| {
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}}}}}}"#
        );
        last(&stream(&[&begun[..], &[&end]].concat()))
    };
    let none = r#"{"input":0,"output":0}"#;
    assert_eq!(ended("max_output_tokens"), format!(r#"finished MaxTokens Some("max_output_tokens") {none}"#));
    assert_eq!(ended("content_filter"), format!(r#"finished Refusal Some("content_filter") {none}"#));
    assert_eq!(ended("steered"), format!(r#"finished Other Some("steered") {none}"#));
    assert!(last(&said(&begun)).starts_with(r#"finished EndTurn Some("completed")"#));
    assert!(last(&golden()).starts_with(r#"finished ToolUse Some("completed")"#));
    let refusal = [begun[0], r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#];
    assert!(last(&said(&refusal)).starts_with(r#"finished Refusal Some("completed")"#));
}

#[test]
fn a_stream_is_whole_with_its_own_end_only() {
    let heard = |events: &[&str]| decode::<Responses>(&[stream(events).as_bytes()]).map(|batches| batches.len());
    let item = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[]}}"#;
    assert_eq!(heard(&[CREATED, item]).unwrap_err(), "cut");
    assert_eq!(heard(&[]).unwrap_err(), "cut");
    let done = format!("{}data: [DONE]\n\n", stream(&[CREATED, item]));
    assert_eq!(decode::<Responses>(&[done.as_bytes()]).unwrap_err(), "cut");
    let stray = r#"{"type":"response.output_text.delta","output_index":7,"delta":"x"}"#;
    assert_eq!(heard(&[CREATED, stray]).unwrap_err(), "broken: item 7 was never started, or is over");
}

#[test]
fn errors_in_the_stream_are_reported() {
    let error = |event: &str| decode::<Responses>(&[stream(&[event]).as_bytes()]).unwrap_err();
    let failed = r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"Please try again in 1.2s."}}}"#;
    assert_eq!(error(failed), "reported: Please try again in 1.2s.");
    let flat = r#"{"type":"error","code":"context_length_exceeded","message":"too long","param":"input"}"#;
    assert_eq!(error(flat), "reported: too long");
    let nested =
        r#"{"type":"error","error":{"type":"invalid_request_error","code":"insufficient_quota","message":"empty"}}"#;
    assert_eq!(error(nested), "reported: empty");
}

#[test]
fn a_stream_that_breaks_off_anywhere_before_its_end_is_no_message() {
    let golden = golden();
    let end = golden.find("event: response.completed").unwrap();
    for at in 0..=end {
        assert!(decode::<Responses>(&[&golden.as_bytes()[..at]]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_model_that_does_not_think_gets_no_reasoning_and_one_that_does_gets_it_again() {
    let reasoning = |quirks: &[Quirk], request: &Request| {
        let input = body_for::<Responses>(&quirky("openai", quirks), request)["input"].take();
        input.as_array().unwrap().iter().filter(|item| item["type"] == "reasoning").count()
    };
    let request = talk();
    assert_eq!(
        [reasoning(&[], &request), reasoning(&[Quirk::NoThinking], &request), reasoning(&[], &request)],
        [1, 0, 1]
    );
}

#[test]
fn an_id_longer_than_the_api_takes_is_mended_in_call_and_output_alike() {
    let id = "x".repeat(65);
    let request = request(vec![
        Message::assistant(vec![call(&id, "read", json!({}))]),
        Message::user(vec![result(&id, vec![], false)]),
    ]);
    let input = body::<Responses>("openai", &request)["input"].take();
    let ids: Vec<&str> = input.as_array().unwrap().iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert!(ids.len() == 2 && ids[0] == ids[1] && ids[0].len() <= 64, "{ids:?}");
}

/// What a person, a model and its tools can say.
fn talk() -> Request {
    let native = ContentBlock::Native { provider: "anthropic".into(), value: json!({"type": "server_tool_use"}) };
    let thought = |signature: Option<&str>, by: Option<&str>| ContentBlock::Thinking {
        thinking: "hm".into(),
        signature: signature.map(str::to_owned),
        by: by.map(str::to_owned),
    };
    let sealed = r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e"}"#;
    request(vec![
        Message::user(vec![ContentBlock::text("What is"), ContentBlock::text(" "), image(), document()]),
        Message::assistant(vec![
            thought(None, None),
            thought(Some(sealed), Some("anthropic")),
            thought(Some("base64=="), None),
            native,
            thought(Some(sealed), Some("openai")),
            ContentBlock::text("I look."),
            call("a", "functions.read", json!({})),
            call("b", "read", json!("{broken")),
        ]),
        Message::user(vec![
            result("a", vec![ContentBlock::text("A picture:"), image()], false),
            result("b", vec![ContentBlock::text("no such file")], true),
            ContentBlock::text("Go on."),
        ]),
        Message::assistant(vec![ContentBlock::text("Yes"), thought(Some(sealed), Some("openai"))]),
    ])
}

#[test]
fn every_kind_of_content_has_its_item() {
    insta::assert_json_snapshot!(body::<Responses>("openai", &talk())["input"], @r#"
    [
      {
        "type": "message",
        "role": "developer",
        "content": [
          {
            "type": "input_text",
            "text": "The base."
          }
        ]
      },
      {
        "type": "message",
        "role": "developer",
        "content": [
          {
            "type": "input_text",
            "text": "The folder."
          }
        ]
      },
      {
        "type": "message",
        "role": "user",
        "content": [
          {
            "type": "input_text",
            "text": "What is"
          },
          {
            "type": "input_image",
            "image_url": "data:image/png;base64,cGljdHVyZQ==",
            "detail": "auto"
          },
          {
            "type": "input_file",
            "filename": "plan.pdf",
            "file_data": "data:application/pdf;base64,cGljdHVyZQ=="
          }
        ]
      },
      {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "encrypted_content": "e"
      },
      {
        "type": "message",
        "role": "assistant",
        "content": [
          {
            "type": "output_text",
            "text": "I look."
          }
        ]
      },
      {
        "type": "function_call",
        "call_id": "a",
        "name": "functions_read",
        "arguments": "{}"
      },
      {
        "type": "function_call",
        "call_id": "b",
        "name": "read",
        "arguments": "{\"unparsed\":\"{broken\"}"
      },
      {
        "type": "function_call_output",
        "call_id": "a",
        "output": [
          {
            "type": "input_text",
            "text": "A picture:"
          },
          {
            "type": "input_image",
            "image_url": "data:image/png;base64,cGljdHVyZQ==",
            "detail": "auto"
          }
        ]
      },
      {
        "type": "function_call_output",
        "call_id": "b",
        "output": "error: no such file"
      },
      {
        "type": "message",
        "role": "user",
        "content": [
          {
            "type": "input_text",
            "text": "Go on."
          }
        ]
      },
      {
        "type": "message",
        "role": "assistant",
        "content": [
          {
            "type": "output_text",
            "text": "Yes"
          }
        ]
      }
    ]
    "#);
}

#[test]
fn s2_04_requests_stream_and_carry_max_tokens() {
    let request = Request { system: [].into(), ..request(vec![Message::user(vec![ContentBlock::text("Hello")])]) };
    insta::assert_json_snapshot!(body::<Responses>("openai", &request), @r#"
    {
      "model": "large-1",
      "stream": true,
      "store": false,
      "max_output_tokens": 1000,
      "include": [
        "reasoning.encrypted_content"
      ],
      "reasoning": {
        "summary": "auto"
      },
      "tool_choice": "auto",
      "parallel_tool_calls": true,
      "tools": [
        {
          "type": "function",
          "name": "read",
          "description": "Reads a file.",
          "parameters": {
            "type": "object",
            "properties": {
              "path": {
                "type": "string"
              }
            }
          },
          "strict": false
        }
      ],
      "input": [
        {
          "type": "message",
          "role": "user",
          "content": [
            {
              "type": "input_text",
              "text": "Hello"
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn every_setting_is_written_as_the_provider_takes_it() {
    let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    let parameters = Parameters {
        max_tokens: 9,
        temperature: Some(0.0),
        top_p: Some(0.5),
        thinking_tokens: Some(20_000),
        effort: None,
        tool_choice: ToolChoice::Tool { name: "read".into() },
    };
    let request = Request { parameters, output_schema: Some(Arc::new(schema)), ..request(vec![]) };
    let said = |quirks: &[Quirk]| {
        let mut body = body_for::<Responses>(&quirky("vendor", quirks), &request);
        for name in ["tools", "model", "stream", "store"] {
            body.as_object_mut().unwrap().shift_remove(name);
        }
        body.to_string()
    };
    use Quirk::*;
    insta::assert_snapshot!(said(&[NoThinking]), @r#"{"max_output_tokens":9,"temperature":0.0,"top_p":0.5,"text":{"format":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true,"type":"json_schema"}},"tool_choice":{"type":"function","name":"read"},"parallel_tool_calls":true,"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"The base."}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"The folder."}]}]}"#);
    insta::assert_snapshot!(said(&[CacheKey, NoTemperature]), @r#"{"max_output_tokens":9,"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto","effort":"high"},"prompt_cache_key":"session-1","text":{"format":{"name":"answer","schema":{"type":"object","properties":{},"required":[],"additionalProperties":false},"strict":true,"type":"json_schema"}},"tool_choice":{"type":"function","name":"read"},"parallel_tool_calls":true,"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"The base."}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"The folder."}]}]}"#);
    insta::assert_snapshot!(said(&[SchemaAsJson, NoThinking, NoTemperature]), @r#"{"max_output_tokens":9,"text":{"format":{"type":"json_object"}},"tool_choice":{"type":"function","name":"read"},"parallel_tool_calls":true,"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"The base."}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"The folder."}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"Your final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{},\"required\":[],\"additionalProperties\":false}"}]}]}"#);
}

#[test]
fn effort_and_choice_are_said_in_the_providers_words() {
    let said = |effort, tool_choice, efforts: &[&str]| {
        let mut target = target("openai");
        target.endpoint.efforts = Some(efforts.iter().map(|word| (*word).to_owned()).collect());
        let mut request = request(vec![]);
        request.parameters = Parameters { effort, tool_choice, ..request.parameters };
        let body = body_for::<Responses>(&target, &request);
        format!("{} {}", body["reasoning"], body["tool_choice"])
    };
    let words = ["none", "low", "high", "xhigh"];
    assert_eq!(said(Some(Effort::Max), ToolChoice::Any, &words), r#"{"summary":"auto","effort":"xhigh"} "required""#);
    assert_eq!(said(Some(Effort::None), ToolChoice::None, &words), r#"{"summary":"auto","effort":"none"} "none""#);
    assert_eq!(said(Some(Effort::High), ToolChoice::Auto, &[]), r#"{"summary":"auto"} "auto""#);
}

#[test]
fn a_model_without_pictures_gets_words_in_their_place() {
    let lines = without_media::<Responses>(target("openai"))["input"].take();
    let lines: Vec<String> = lines.as_array().unwrap().iter().map(Value::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"type":"message","role":"developer","content":[{"type":"input_text","text":"The base."}]}
    {"type":"message","role":"developer","content":[{"type":"input_text","text":"The folder."}]}
    {"type":"message","role":"user","content":[{"type":"input_text","text":"See"},{"type":"input_text","text":"[image (image/png, 7 bytes): this model takes no images]"},{"type":"input_text","text":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}]}
    {"type":"function_call","call_id":"a","name":"read","arguments":"{}"}
    {"type":"function_call","call_id":"b","name":"read","arguments":"{}"}
    {"type":"function_call_output","call_id":"a","output":"a.png\n[image (image/png, 7 bytes): this model takes no images]"}
    {"type":"function_call_output","call_id":"b","output":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}
    "#);
}
