//! Gemini, read and written. The shared tests decode under the provider's name `anthropic`, so it is used here too.

use super::Gemini;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::testing::*;
use crate::{Memo, Quirk, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{ContentBlock, Effort, Message, Parameters, Signature, ToolChoice};

const CALLS: &str = include_str!("../../streams/gemini/calls.sse");
const OLDER_CALLS: &str = include_str!("../../streams/gemini/older_calls.sse");
const SEALED_TEXT: &str = include_str!("../../streams/gemini/sealed_text.sse");
const RAN_CODE: &str = include_str!("../../streams/gemini/ran_code.sse");
const OUT_OF_ROOM: &str = include_str!("../../streams/gemini/out_of_room.sse");

fn named(model: &str) -> Target {
    Target { model: model.into(), ..target("anthropic") }
}

fn body_for(model: &str, request: &Request) -> Value {
    Gemini::encode(&named(model), request).into_body().json()
}

fn contents(model: &str, messages: Vec<Message>) -> Value {
    body_for(model, &request(messages))["contents"].take()
}

fn hello() -> Message {
    Message::user(vec![ContentBlock::text("Hello")])
}

#[test]
fn s2_20_thoughts_text_and_calls_come_as_blocks() {
    insta::assert_snapshot!(story::<Gemini>(CALLS), @r#"
    started r-1 gemini-3.8-flash
    0 begins: Thinking
    0 Thinking("**Reading the files**\n\nI need both of them.\n")
    0 ends: {"type":"thinking","thinking":"**Reading the files**\n\nI need both of them.\n"}
    1 begins: Text
    1 Text("I look at 👋 both.")
    1 ends: {"type":"text","text":"I look at 👋 both."}
    2 begins: call fc-8a of read
    2 Input("{\"path\":\"a.toml\",\"limit\":20}")
    2 ends: {"type":"tool_use","id":"fc-8a","name":"read","input":{"path":"a.toml","limit":20},"signature":{"by":"anthropic","text":"EuQBCuEBAdHtim/+Zg=="}}
    3 begins: call fc-8b of read
    3 Input("{\"path\":\"b.toml\"}")
    3 ends: {"type":"tool_use","id":"fc-8b","name":"read","input":{"path":"b.toml"}}
    finished ToolUse Some("STOP") {"input":20,"cache_read":100,"output":74,"reasoning":44}
    "#);
}

#[test]
fn a_message_and_its_answers_go_back_with_the_same_values() {
    let heard = heard::<Gemini>(CALLS);
    let answers = vec![result("fc-8a", vec![ContentBlock::text("A")], false), result("fc-8b", vec![], true)];
    let talk = vec![hello(), heard.clone(), Message::user(answers)];
    insta::assert_json_snapshot!(contents("gemini-3.8-flash", talk), @r#"
    [
      {
        "role": "user",
        "parts": [
          {
            "text": "Hello"
          }
        ]
      },
      {
        "role": "model",
        "parts": [
          {
            "text": "I look at 👋 both."
          },
          {
            "functionCall": {
              "id": "fc-8a",
              "name": "read",
              "args": {
                "path": "a.toml",
                "limit": 20
              }
            },
            "thoughtSignature": "EuQBCuEBAdHtim/+Zg=="
          },
          {
            "functionCall": {
              "id": "fc-8b",
              "name": "read",
              "args": {
                "path": "b.toml"
              }
            }
          }
        ]
      },
      {
        "role": "user",
        "parts": [
          {
            "functionResponse": {
              "id": "fc-8a",
              "name": "read",
              "response": {
                "output": "A"
              }
            }
          },
          {
            "functionResponse": {
              "id": "fc-8b",
              "name": "read",
              "response": {
                "error": "(no output)"
              }
            }
          }
        ]
      }
    ]
    "#);
}

#[test]
fn s4_07_calls_without_ids_get_some_that_do_not_go_back() {
    insta::assert_snapshot!(story::<Gemini>(OLDER_CALLS), @r#"
    started r-3 gemini-2.5-flash
    0 begins: call call_1 of read
    0 Input("{\"path\":\"a\"}")
    0 ends: {"type":"tool_use","id":"call_1","name":"read","input":{"path":"a"}}
    1 begins: call call_2 of ls
    1 ends: {"type":"tool_use","id":"call_2","name":"ls","input":{}}
    finished ToolUse Some("STOP") {"input":50,"output":12}
    "#);
    let answers = vec![result("call_1", vec![ContentBlock::text("A")], false), result("call_2", vec![image()], false)];
    let talk = vec![hello(), heard::<Gemini>(OLDER_CALLS), Message::user(answers)];
    insta::assert_json_snapshot!(contents("gemini-2.5-flash", talk), @r#"
    [
      {
        "role": "user",
        "parts": [
          {
            "text": "Hello"
          }
        ]
      },
      {
        "role": "model",
        "parts": [
          {
            "functionCall": {
              "name": "read",
              "args": {
                "path": "a"
              }
            }
          },
          {
            "functionCall": {
              "name": "ls",
              "args": {}
            }
          }
        ]
      },
      {
        "role": "user",
        "parts": [
          {
            "functionResponse": {
              "name": "read",
              "response": {
                "output": "A"
              }
            }
          },
          {
            "functionResponse": {
              "name": "ls",
              "response": {
                "output": "(attached)"
              }
            }
          },
          {
            "inlineData": {
              "mimeType": "image/png",
              "data": "cGljdHVyZQ=="
            }
          }
        ]
      }
    ]
    "#);
}

#[test]
fn ids_of_earlier_calls_are_not_given_again() {
    let request = request(vec![hello(), Message::assistant(vec![call("call_1", "read", json!({}))])]);
    let mut decoder = Gemini::decoder(&named("gemini-2.5-flash"), &request);
    let twice = br#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"x","name":"ls"}},{"functionCall":{"id":"x","name":"ls"}}]}}]}"#;
    crate::protocol::Decode::event(&mut decoder, &crate::sse::SseEvent { event: b"", data: twice }).unwrap();
    let events = tell(&crate::protocol::Decode::take(&mut decoder));
    assert!(events.contains("call x of ls") && events.contains("call call_2 of ls"), "{events}");
}

#[test]
fn the_signature_of_a_text_goes_back_with_it() {
    insta::assert_snapshot!(story::<Gemini>(SEALED_TEXT), @r#"
    started r-2 gemini-3.1-pro-preview
    0 begins: Text
    0 Text("Well, yes.")
    0 ends: {"type":"text","text":"Well, yes."}
    1 begins: Thinking
    1 ends: {"type":"thinking","thinking":"","signature":"c2VhbC0x","by":"anthropic"}
    2 begins: Thinking
    2 ends: {"type":"redacted_thinking","data":"c2VhbC0y","by":"anthropic"}
    finished EndTurn Some("STOP") {"input":11,"output":4}
    "#);
    insta::assert_json_snapshot!(contents("gemini-3.1-pro-preview", vec![hello(), heard::<Gemini>(SEALED_TEXT)]), @r#"
    [
      {
        "role": "user",
        "parts": [
          {
            "text": "Hello"
          }
        ]
      },
      {
        "role": "model",
        "parts": [
          {
            "text": "Well, yes.",
            "thoughtSignature": "c2VhbC0x"
          },
          {
            "text": "",
            "thoughtSignature": "c2VhbC0y"
          }
        ]
      }
    ]
    "#);
}

#[test]
fn parts_that_only_google_knows_go_back_verbatim() {
    insta::assert_snapshot!(story::<Gemini>(RAN_CODE), @r#"
    started r-4 
    0 begins: Text
    0 Text("I compute it. ")
    0 ends: {"type":"text","text":"I compute it. "}
    1 begins: Native
    1 ends: {"type":"native","provider":"anthropic","value":{"executableCode":{"language":"PYTHON","code":"print(6*7)\n"},"thoughtSignature":"eA=="}}
    2 begins: Native
    2 ends: {"type":"native","provider":"anthropic","value":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n"}}}
    3 begins: Text
    3 Text("It is 42.")
    3 ends: {"type":"text","text":"It is 42."}
    finished EndTurn Some("STOP") {"input":40,"output":25,"reasoning":5}
    "#);
    let parts = contents("gemini-2.5-flash", vec![hello(), heard::<Gemini>(RAN_CODE)])[1]["parts"].take();
    insta::assert_snapshot!(parts, @r#"[{"text":"I compute it. "},{"executableCode":{"language":"PYTHON","code":"print(6*7)\n"},"thoughtSignature":"eA=="},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n"}},{"text":"It is 42."}]"#);
}

#[test]
fn an_answer_without_room_is_whole() {
    insta::assert_snapshot!(story::<Gemini>(OUT_OF_ROOM), @r#"
    started r-7 
    0 begins: Thinking
    0 Thinking("Hmm")
    0 ends: {"type":"thinking","thinking":"Hmm","signature":"dGhvdWdodA==","by":"anthropic"}
    1 begins: Text
    1 Text("The answer")
    1 ends: {"type":"text","text":"The answer"}
    finished MaxTokens Some("MAX_TOKENS") {"input":7,"output":92,"reasoning":90}
    "#);
    let parts = contents("gemini-2.5-flash", vec![hello(), heard::<Gemini>(OUT_OF_ROOM)])[1]["parts"].take();
    insta::assert_snapshot!(parts, @r#"[{"text":"Hmm","thought":true,"thoughtSignature":"dGhvdWdodA=="},{"text":"The answer"}]"#);
}

#[test]
fn refusals_and_silence_are_messages_too() {
    insta::assert_snapshot!(story::<Gemini>(include_str!("../../streams/gemini/refused_prompt.sse")), @r#"
    started r-5 gemini-2.5-pro
    finished Refusal Some("PROHIBITED_CONTENT") {"input":7,"output":0}
    "#);
    insta::assert_snapshot!(story::<Gemini>(include_str!("../../streams/gemini/broken_off.sse")), @r#"
    started r-6 
    0 begins: Text
    0 Text("Once upon")
    0 ends: {"type":"text","text":"Once upon"}
    finished Refusal Some("SAFETY") {"input":7,"output":2}
    "#);
    insta::assert_snapshot!(story::<Gemini>(include_str!("../../streams/gemini/empty.sse")), @r#"
    started r-8 gemini-2.5-pro
    finished EndTurn Some("STOP") {"input":7,"output":0}
    "#);
}

fn decoded(chunks: &[&str]) -> Result<String, String> {
    let stream: String = chunks.iter().map(|data| format!("data: {data}\n\n")).collect();
    decode::<Gemini>(&[stream.as_bytes()]).map(|batches| tell(&merged(batches)))
}

#[test]
fn reasons_to_stop_are_mapped_and_kept() {
    let last = |reason: &str| {
        let chunk =
            format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"finishReason":"{reason}"}}]}}"#);
        let told = decoded(&[&chunk])?;
        Ok::<_, String>(told.lines().last().unwrap().split(" {").next().unwrap().to_owned())
    };
    let reasons = ["STOP", "MAX_TOKENS", "RECITATION", "SPII", "TOO_MANY_TOOL_CALLS", "A_NEW_WORD"];
    insta::assert_snapshot!(reasons.map(|reason| last(reason).unwrap()).join("\n"), @r#"
    finished EndTurn Some("STOP")
    finished MaxTokens Some("MAX_TOKENS")
    finished Refusal Some("RECITATION")
    finished Refusal Some("SPII")
    finished Other Some("TOO_MANY_TOOL_CALLS")
    finished Other Some("A_NEW_WORD")
    "#);
    for slip in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE"] {
        assert_eq!(last(slip).unwrap_err(), "reported: the model's message cannot be used");
    }
    assert_eq!(last("FINISH_REASON_UNSPECIFIED").unwrap_err(), "cut");
}

#[test]
fn a_stream_that_ends_without_a_reason_is_cut() {
    let text = r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#;
    assert_eq!(decoded(&[text]).unwrap_err(), "cut");
    assert_eq!(decoded(&[]).unwrap_err(), "cut");
    assert_eq!(decoded(&[r#"{"usageMetadata":{"promptTokenCount":3}}"#]).unwrap_err(), "cut");
}

#[test]
fn errors_in_the_stream_are_reported() {
    let busy = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
    assert_eq!(decoded(&[busy]).unwrap_err(), "reported: The model is overloaded.");
    let slip = r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: read("}]}"#;
    assert_eq!(decoded(&[slip]).unwrap_err(), "reported: Malformed function call: read(");
    let nameless = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{}}}]}}]}"#;
    assert_eq!(decoded(&[nameless]).unwrap_err(), "broken: a function call without a name");
}

#[test]
fn what_is_null_or_absent_is_nothing() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":null,"thought":true},{},{"text":"a","thought":null,"functionCall":null},{"text":"","thought":true}],"role":null},"finishReason":"STOP","finishMessage":null}],"promptFeedback":{},"usageMetadata":{"promptTokenCount":null},"error":null}"#;
    insta::assert_snapshot!(decoded(&[chunk]).unwrap(), @r#"
    started  
    0 begins: Text
    0 Text("a")
    0 ends: {"type":"text","text":"a"}
    finished EndTurn Some("STOP") {"input":0,"output":0}
    "#);
    let nulls = r#"{"candidates":[{"content":null,"finishReason":"STOP"}],"promptFeedback":null,"usageMetadata":null}"#;
    insta::assert_snapshot!(decoded(&[nulls]).unwrap(), @r#"
    started  
    finished EndTurn Some("STOP") {"input":0,"output":0}
    "#);
}

#[test]
fn s2_04_requests_go_to_the_models_stream_and_carry_max_tokens() {
    let path = |model: &str| Gemini::path(&named(model)).into_owned();
    assert_eq!(path("gemini-2.5-flash"), "/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(path("tunedModels/mine"), "/tunedModels/mine:streamGenerateContent?alt=sse");
    assert_eq!(Gemini::key_header("k"), ("x-goog-api-key", "k".to_owned()));
    insta::assert_json_snapshot!(body_for("gemini-2.5-flash", &request(vec![hello()])), @r#"
    {
      "generationConfig": {
        "maxOutputTokens": 1000,
        "thinkingConfig": {
          "includeThoughts": true
        }
      },
      "tools": [
        {
          "functionDeclarations": [
            {
              "name": "read",
              "description": "Reads a file.",
              "parametersJsonSchema": {
                "type": "object",
                "properties": {
                  "path": {
                    "type": "string"
                  }
                }
              }
            }
          ]
        }
      ],
      "systemInstruction": {
        "parts": [
          {
            "text": "The base.\n\nThe folder."
          }
        ]
      },
      "contents": [
        {
          "role": "user",
          "parts": [
            {
              "text": "Hello"
            }
          ]
        }
      ]
    }
    "#);
    let bare = Request { system: [].into(), tools: [].into(), ..request(vec![hello()]) };
    insta::assert_snapshot!(body_for("large-1", &bare), @r#"{"generationConfig":{"maxOutputTokens":1000},"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}"#);
}

#[test]
fn sampling_thinking_and_the_choice_of_tools_are_told() {
    let told = |model: &str, parameters: Parameters| {
        let mut body = body_for(model, &Request { parameters, ..request(vec![hello()]) });
        format!("{} {}", body["generationConfig"].take(), body["toolConfig"].take())
    };
    let parameters = Parameters {
        max_tokens: 500,
        temperature: Some(0.5),
        top_p: Some(0.9),
        thinking_tokens: Some(2_000),
        effort: Some(Effort::High),
        tool_choice: ToolChoice::Tool { name: "read".into() },
    };
    let any = Parameters { tool_choice: ToolChoice::Any, ..Parameters::default() };
    let none = Parameters { tool_choice: ToolChoice::None, ..Parameters::default() };
    let lines = [
        told("gemini-2.5-flash", parameters.clone()),
        told("gemini-3.8-flash", parameters.clone()),
        told("large-1", any),
        told("large-1", none),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"maxOutputTokens":2500,"temperature":0.5,"topP":0.9,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2000}} {"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}}
    {"maxOutputTokens":500,"temperature":0.5,"topP":0.9,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}} {"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["read"]}}
    {"maxOutputTokens":0} {"functionCallingConfig":{"mode":"ANY"}}
    {"maxOutputTokens":0} {"functionCallingConfig":{"mode":"NONE"}}
    "#);
    let mut cool = named("gemini-4-argon");
    cool.endpoint.quirks = vec![Quirk::NoTemperature];
    let request = Request { parameters, tools: [].into(), ..request(vec![hello()]) };
    let mut body = Gemini::encode(&cool, &request).into_body().json();
    insta::assert_snapshot!(body["generationConfig"].take(), @r#"{"maxOutputTokens":500,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}"#);
    assert_eq!(body["toolConfig"], Value::Null, "there is no tool to choose");
}

#[test]
fn the_answers_schema_is_told_as_a_format_or_in_words() {
    let schema =
        json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}});
    let told = |target: &Target, request: Request| {
        let request = Request { output_schema: Some(Arc::new(schema.clone())), memo: Memo::default(), ..request };
        let mut body = Gemini::encode(target, &request).into_body().json();
        let config = body["generationConfig"].take();
        let format = [&config["responseMimeType"], &config["responseJsonSchema"]].map(Value::to_string).join(" ");
        format!("{format} | {}", body["systemInstruction"].take())
    };
    let asked = || request(vec![hello()]);
    let (newer, older) = (named("gemini-3.8-flash"), named("gemini-2.5-flash"));
    let mut loose = named("gemini-3.8-flash");
    loose.endpoint.quirks = vec![Quirk::SchemaAsJson];
    let lines = [
        told(&newer, asked()),
        told(&older, Request { tools: [].into(), ..asked() }),
        told(&older, asked()),
        told(&older, Request { system: [].into(), ..asked() }),
        told(&loose, asked()),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r##"
    "application/json" {"type":"object","properties":{"n":{"type":"integer"}}} | {"parts":[{"text":"The base.\n\nThe folder."}]}
    "application/json" {"type":"object","properties":{"n":{"type":"integer"}}} | {"parts":[{"text":"The base.\n\nThe folder."}]}
    null null | {"parts":[{"text":"The base.\n\nThe folder."},{"text":"\n\nYour final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/N\"}},\"$defs\":{\"N\":{\"type\":\"integer\"}}}"}]}
    null null | {"parts":[{"text":"\n\nYour final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/N\"}},\"$defs\":{\"N\":{\"type\":\"integer\"}}}"}]}
    "application/json" null | {"parts":[{"text":"The base.\n\nThe folder."},{"text":"\n\nYour final answer is one JSON object and nothing else. It satisfies this JSON Schema: {\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/N\"}},\"$defs\":{\"N\":{\"type\":\"integer\"}}}"}]}
    "##);
}

/// A message of a person, one of a model with two calls, and what the calls brought.
fn media() -> Vec<Message> {
    let mut lost = document();
    if let ContentBlock::Document { blob, .. } = &mut lost {
        blob.hash = "gone".into();
    }
    let failed = vec![ContentBlock::text("no such file"), ContentBlock::text(" "), lost];
    vec![
        Message::user(vec![ContentBlock::text("See"), image(), document(), ContentBlock::text(" ")]),
        Message::assistant(vec![call("a", "read<x>", json!({"n": 1})), call("b", "ls", json!("{broken"))]),
        Message::user(vec![result("a", vec![image(), document()], false), result("b", failed, true)]),
        Message::user(vec![ContentBlock::text("Go on.")]),
    ]
}

#[test]
fn newer_models_take_media_within_results_and_calls_of_others() {
    insta::assert_json_snapshot!(contents("gemini-3.8-flash", media()), @r#"
    [
      {
        "role": "user",
        "parts": [
          {
            "text": "See"
          },
          {
            "inlineData": {
              "mimeType": "image/png",
              "data": "cGljdHVyZQ=="
            }
          },
          {
            "text": "plan.pdf:"
          },
          {
            "inlineData": {
              "mimeType": "application/pdf",
              "data": "cGljdHVyZQ=="
            }
          }
        ]
      },
      {
        "role": "model",
        "parts": [
          {
            "functionCall": {
              "id": "a",
              "name": "read_x_",
              "args": {
                "n": 1
              }
            },
            "thoughtSignature": "skip_thought_signature_validator"
          },
          {
            "functionCall": {
              "id": "b",
              "name": "ls",
              "args": {
                "unparsed": "{broken"
              }
            }
          }
        ]
      },
      {
        "role": "user",
        "parts": [
          {
            "functionResponse": {
              "id": "a",
              "name": "read_x_",
              "response": {
                "output": "plan.pdf:"
              },
              "parts": [
                {
                  "inlineData": {
                    "mimeType": "image/png",
                    "data": "cGljdHVyZQ=="
                  }
                },
                {
                  "inlineData": {
                    "mimeType": "application/pdf",
                    "data": "cGljdHVyZQ=="
                  }
                }
              ]
            }
          },
          {
            "functionResponse": {
              "id": "b",
              "name": "ls",
              "response": {
                "error": "no such file\n[document (application/pdf, 7 bytes) that is no longer available]"
              }
            }
          },
          {
            "text": "Go on."
          }
        ]
      }
    ]
    "#);
}

#[test]
fn older_models_take_media_behind_the_results() {
    insta::assert_json_snapshot!(contents("gemini-2.5-pro", media())[2], @r#"
    {
      "role": "user",
      "parts": [
        {
          "functionResponse": {
            "id": "a",
            "name": "read_x_",
            "response": {
              "output": "(attached)"
            }
          }
        },
        {
          "functionResponse": {
            "id": "b",
            "name": "ls",
            "response": {
              "error": "no such file\n[document (application/pdf, 7 bytes) that is no longer available]"
            }
          }
        },
        {
          "inlineData": {
            "mimeType": "image/png",
            "data": "cGljdHVyZQ=="
          }
        },
        {
          "text": "plan.pdf:"
        },
        {
          "inlineData": {
            "mimeType": "application/pdf",
            "data": "cGljdHVyZQ=="
          }
        },
        {
          "text": "Go on."
        }
      ]
    }
    "#);
}

#[test]
fn what_belongs_to_others_does_not_go_out() {
    let of = |by: Option<&str>, thinking: &str| ContentBlock::Thinking {
        thinking: thinking.into(),
        signature: Some("c2ln".into()),
        by: by.map(str::to_owned),
    };
    let mut foreign = call("a", "ls", json!({}));
    if let ContentBlock::ToolUse(call) = &mut foreign {
        call.signature = Some(Box::new(Signature { by: "elsewhere".into(), text: "c2ln".into() }));
    }
    let message = Message::assistant(vec![
        of(None, "old"),
        of(Some("elsewhere"), "hm"),
        ContentBlock::Thinking { thinking: "unsigned".into(), signature: None, by: None },
        ContentBlock::RedactedThinking { data: "x".into(), by: Some("elsewhere".into()) },
        ContentBlock::Native { provider: "elsewhere".into(), value: json!({"type": "x"}) },
        ContentBlock::text("Said."),
        of(Some("elsewhere"), ""),
        foreign,
    ]);
    let talk = vec![hello(), message, Message::user(vec![result("a", vec![], false)])];
    insta::assert_snapshot!(contents("gemini-2.5-flash", talk)[1], @r#"{"role":"model","parts":[{"text":"Said."},{"functionCall":{"id":"a","name":"ls","args":{}}}]}"#);
    let only_thoughts = Message::assistant(vec![of(Some("elsewhere"), "hm")]);
    let says = contents("gemini-2.5-flash", vec![hello(), only_thoughts, hello()]);
    assert_eq!(says.as_array().unwrap().len(), 1, "{says}");
}

#[test]
fn only_the_new_is_encoded_and_each_generation_by_its_own_rules() {
    let large = |letter: &str| ContentBlock::text(letter.repeat(5_000));
    let places = |request: &Request, model: &str| -> Vec<*const u8> {
        let body = Gemini::encode(&named(model), request).into_body();
        body.segments().filter(|segment| segment.len() > 4_900).map(|segment| segment.as_ptr()).collect()
    };
    let mut request = request(vec![Message::user(vec![large("u")]), Message::assistant(vec![large("a")])]);
    let before = places(&request, "gemini-2.5-pro");
    assert_eq!(before.len(), 2);
    request.messages.push(Arc::new(Message::user(vec![large("n")])));
    assert_eq!(places(&request, "gemini-2.5-pro")[..2], before, "what was said is not encoded again");
    let newer = places(&request, "gemini-3.8-flash");
    assert_ne!(newer[..2], before, "another generation has another encoding");
    assert_eq!(places(&request, "gemini-2.5-pro")[..2], before, "and both are kept");
}

#[test]
fn a_model_without_pictures_gets_words_in_their_place() {
    let lines = |model: &str| {
        let lines = without_media::<Gemini>(named(model))["contents"].take();
        lines.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(lines("gemini-2.5-pro"), @r#"
    {"role":"user","parts":[{"text":"See"},{"text":"[image (image/png, 7 bytes): this model takes no images]"},{"text":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}]}
    {"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{}}},{"functionCall":{"id":"b","name":"read","args":{}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"output":"a.png\n[image (image/png, 7 bytes): this model takes no images]"}}},{"functionResponse":{"id":"b","name":"read","response":{"output":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}}}]}
    "#);
    insta::assert_snapshot!(lines("gemini-3.8-flash"), @r#"
    {"role":"user","parts":[{"text":"See"},{"text":"[image (image/png, 7 bytes): this model takes no images]"},{"text":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}]}
    {"role":"model","parts":[{"functionCall":{"id":"a","name":"read","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"b","name":"read","args":{}}}]}
    {"role":"user","parts":[{"functionResponse":{"id":"a","name":"read","response":{"output":"a.png\n[image (image/png, 7 bytes): this model takes no images]"}}},{"functionResponse":{"id":"b","name":"read","response":{"output":"[document (application/pdf, 7 bytes): this model takes no PDFs]"}}}]}
    "#);
}
