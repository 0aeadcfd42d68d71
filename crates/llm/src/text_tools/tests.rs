//! Calls in text, read and told.

use super::answer::Answer;
use super::retell::retell;
use super::text_tools;
use crate::call_ids::CallIds;
use crate::calls::Calls;
use crate::openai_chat::Chat;
use crate::protocol::Protocol;
use crate::testing::{call, image, merged, quirky, request, result, target, tell};
use crate::{BlockKind, Delta, Model, ModelEvent, ModelStream, Quirk, Request, ToolSpec};
use futures_util::{StreamExt, stream};
use proptest::prelude::*;
use serde_json::json;
use std::sync::{Arc, Mutex};
use windlass_kernel::{CallId, ContentBlock, Message, StopReason, ToolChoice, ToolUse, Usage};

fn tools() -> Arc<[ToolSpec]> {
    let read = json!({"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}});
    let tool = |name: &str, schema| ToolSpec { name: name.into(), description: format!("To {name}."), schema };
    [tool("ls", json!({"type": "object"})), tool("read", read)].into()
}

fn ids(history: &[Arc<Message>]) -> CallIds {
    CallIds::behind(&Calls::default(), history)
}

fn said(index: u32, pieces: &[&str]) -> Vec<ModelEvent> {
    let mut events = vec![ModelEvent::BlockStarted { index, kind: BlockKind::Text }];
    let delta = |piece: &&str| ModelEvent::Delta { index, delta: Delta::Text((*piece).to_owned()) };
    events.extend(pieces.iter().map(delta));
    events.push(ModelEvent::BlockFinished { index, block: ContentBlock::text(pieces.concat()) });
    events
}

fn finished(stop: StopReason) -> ModelEvent {
    ModelEvent::Finished { stop, raw_stop: None, usage: Usage::default() }
}

/// What is made of the events, when each comes alone.
fn heard(events: Vec<ModelEvent>, stop: StopReason) -> Vec<ModelEvent> {
    let mut answer = Answer::new("local", tools(), ids(&[]));
    let events = events.into_iter().chain([finished(stop)]);
    merged(events.map(|event| answer.read(vec![event])).collect())
}

fn of(pieces: &[&str]) -> Vec<ModelEvent> {
    heard(said(0, pieces), StopReason::EndTurn)
}

/// Reads `text` whole, cut at every place and character by character, which must not matter; one block in a line, text
/// in quotes.
fn story(text: &str) -> String {
    let whole = of(&[text]);
    for (at, _) in text.char_indices() {
        assert_eq!(of(&[&text[..at], &text[at..]]), whole, "cut at {at}");
    }
    let ends = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    assert_eq!(of(&ends.collect::<Vec<_>>()), whole, "character by character");
    brief(&whole)
}

fn brief(events: &[ModelEvent]) -> String {
    let lines = events.iter().filter_map(|event| match event {
        ModelEvent::BlockFinished { block: ContentBlock::Text { text }, .. } => Some(format!("{text:?}")),
        ModelEvent::BlockFinished { block: ContentBlock::ToolUse(call), .. } => {
            Some(format!("{} = {} {}", call.id.0, call.name, call.input))
        }
        ModelEvent::BlockFinished { block, .. } => Some(serde_json::to_string(block).unwrap()),
        ModelEvent::Finished { stop, .. } => Some(format!("{stop:?}")),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// That `text` goes through as it is.
fn stays_text(text: &str) {
    assert_eq!(story(text), format!("{text:?}\nEndTurn"));
}

#[test]
fn a_tagged_object_is_a_call_and_the_text_around_it_stays() {
    let text =
        "Let me see.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"ä}<\"}}\n</tool_call>\n\nSo.";
    insta::assert_snapshot!(story(text), @r#"
    "Let me see.\n"
    call_1 = read {"path":"ä}<"}
    "\n\nSo."
    ToolUse
    "#);
    insta::assert_snapshot!(tell(&of(&[text])), @r#"
    0 begins: Text
    0 Text("Let me see.\n")
    0 ends: {"type":"text","text":"Let me see.\n"}
    1 begins: call call_1 of read
    1 Input("{\"path\":\"ä}<\"}")
    1 ends: {"type":"tool_use","id":"call_1","name":"read","input":{"path":"ä}<"}}
    2 begins: Text
    2 Text("\n\nSo.")
    2 ends: {"type":"text","text":"\n\nSo."}
    finished ToolUse None {"input":0,"output":0}
    "#);
}

#[test]
fn several_calls_of_one_message_have_ids_of_their_own() {
    let one = "<tool_call>{\"name\":\"ls\"}</tool_call>";
    insta::assert_snapshot!(story(&format!("{one}\n{one} {one}\n")), @"
    call_1 = ls {}
    call_2 = ls {}
    call_3 = ls {}
    ToolUse
    ");
    let history = [Arc::new(Message::assistant(vec![call("call_7", "ls", json!({}))]))];
    let mut answer = Answer::new("local", tools(), ids(&history));
    let events = answer.read(said(0, &[one]));
    assert!(
        matches!(&events[0], ModelEvent::BlockStarted { kind: BlockKind::ToolUse { id, .. }, .. } if id == "call_8")
    );
}

#[test]
fn a_function_tag_with_an_object_or_parameters_is_a_call() {
    insta::assert_snapshot!(story("<function=read>{\"path\": \"a\"}</function>"), @r#"
    call_1 = read {"path":"a"}
    ToolUse
    "#);
    let parameters = "<parameter=path>\n12\n</parameter>\n<parameter=lines>\n12\n</parameter>\n";
    insta::assert_snapshot!(story(&format!("<function=read>\n{parameters}</function>")), @r#"
    call_1 = read {"path":"12","lines":12}
    ToolUse
    "#);
    insta::assert_snapshot!(
        story(&format!("I look.\n\n<tool_call>\n<function=read>\n{parameters}</function>\n</tool_call>")), @r#"
    "I look.\n\n"
    call_1 = read {"path":"12","lines":12}
    ToolUse
    "#);
    insta::assert_snapshot!(story("<tool_call><function=ls></function></tool_call><function=ls></function>"), @"
    call_1 = ls {}
    call_2 = ls {}
    ToolUse
    ");
    let several = "<parameter=path>if a < b {\n\n  \"</parameter\"\n}</parameter>";
    insta::assert_snapshot!(story(&format!("<function=read>{several}</function>")), @r#"
    call_1 = read {"path":"if a < b {\n\n  \"</parameter\"\n}"}
    ToolUse
    "#);
}

#[test]
fn a_list_behind_its_mark_is_calls() {
    insta::assert_snapshot!(
        story("Well. [TOOL_CALLS] [{\"name\":\"ls\",\"arguments\":{}}, {\"name\":\"read\",\"arguments\":{\"path\":\"]\"}}]"), @r#"
    "Well. "
    call_1 = ls {}
    call_2 = read {"path":"]"}
    ToolUse
    "#);
    insta::assert_snapshot!(story("[TOOL_CALLS]ls{}[TOOL_CALLS]read[ARGS]{\"path\": \"a\"}"), @r#"
    call_1 = ls {}
    call_2 = read {"path":"a"}
    ToolUse
    "#);
}

#[test]
fn an_object_behind_a_python_tag_is_a_call() {
    insta::assert_snapshot!(
        story("<|python_tag|>{\"type\": \"function\", \"name\": \"read\", \"parameters\": {\"path\": \"a\"}}"), @r#"
    call_1 = read {"path":"a"}
    ToolUse
    "#);
}

#[test]
fn a_fence_of_nothing_but_a_call_is_one() {
    insta::assert_snapshot!(
        story("Here:\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"`\"}}\n```\nDone."), @r#"
    "Here:\n"
    call_1 = read {"path":"`"}
    "\nDone."
    ToolUse
    "#);
    insta::assert_snapshot!(story("```tool_call\n{\"name\": \"ls\", \"parameters\": {}}\n```"), @"
    call_1 = ls {}
    ToolUse
    ");
    stays_text("```json\n{\"name\": \"ls\"}\n```");
    stays_text("```json\n{\"name\": \"ls\", \"arguments\": {}}\n{}\n```");
    stays_text("a ```json\n{\"name\": \"ls\", \"arguments\": {}}\n``` b");
    stays_text("```json\n{\"name\": \"ls\", \"version\": 2, \"arguments\": {}}\n```");
}

#[test]
fn a_message_of_nothing_but_a_call_is_one() {
    insta::assert_snapshot!(story("\n{\"name\": \"read\", \"parameters\": {\"path\": \"a\nb\"}} \n"), @r#"
    call_1 = read {"path":"a\nb"}
    ToolUse
    "#);
    stays_text("Here: {\"name\": \"ls\", \"arguments\": {}}");
    stays_text("{\"name\": \"ls\", \"arguments\": {}} is a call");
    stays_text("{\"name\": \"ls\", \"arguments\": 1}");
}

#[test]
fn what_only_looks_like_a_call_stays_text() {
    let texts = [
        "<tool_call>{\"name\": \"rm\", \"arguments\": {}}</tool_call>",
        "Write <tool_call> and then <tool_cal",
        "<<tool_call>nothing</tool_call>",
        "<tool_call>{\"name\": \"ls\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"ls\"} and so on",
        "<tool_call>{\"arguments\": {}}</tool_call>",
        "<function=rm>{}</function> <function=ls> <function=ls><parameter=a",
        "[TOOL_CALLS] [] [TOOL_CALLS]rm{} [TOOL_CALLS] [{\"name\":\"rm\",\"arguments\":{}}]",
        "<|python_tag|>print(1) <|python",
        "a < b && c[0] > `d` ``e`` ```f``` {\"g\": 1}",
        "{\"name\": \"Ünï\", \"arguments\": {}}",
        "  \n ",
        "😀<tool_call>😀",
    ];
    texts.into_iter().for_each(stays_text);
}

#[test]
fn a_false_start_does_not_hide_the_call_behind_it() {
    let one = "<tool_call>{\"name\":\"ls\"}</tool_call>";
    insta::assert_snapshot!(story(&format!("<tool_call><{one}")), @r#"
    "<tool_call><"
    call_1 = ls {}
    ToolUse
    "#);
    insta::assert_snapshot!(story(&format!("<tool_call>{{\"name\": \"ls\" {one}")), @r#"
    "<tool_call>{\"name\": \"ls\" "
    call_1 = ls {}
    ToolUse
    "#);
    insta::assert_snapshot!(story(&format!("````json\n{one}")), @r#"
    "````json\n"
    call_1 = ls {}
    ToolUse
    "#);
}

#[test]
fn a_call_that_is_cut_off_stays_text() {
    let whole = "Well: <tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}";
    for cut in 1..whole.len() {
        let events = heard(said(0, &[&whole[..cut]]), StopReason::MaxTokens);
        assert_eq!(brief(&events), format!("{:?}\nMaxTokens", &whole[..cut]));
    }
    let last = format!("{whole}\n</tool_");
    assert_eq!(brief(&of(&[&last])), brief(&of(&[whole])), "only the closing tag is missing");
    let list = "[TOOL_CALLS] [{\"name\":\"ls\",\"arguments\":{}}, ";
    assert_eq!(brief(&of(&[list])), format!("{list:?}\nEndTurn"));
    let parameters = "<function=read><parameter=path>a</parameter>";
    assert_eq!(brief(&of(&[parameters])), format!("{parameters:?}\nEndTurn"));
}

#[test]
fn calls_within_thinking_are_thoughts_and_native_calls_pass() {
    let thought = "<tool_call>{\"name\":\"ls\"}</tool_call>".to_owned();
    let thinking = ContentBlock::Thinking { thinking: thought.clone(), signature: None, by: None };
    let kind = |id: &str| BlockKind::ToolUse { id: id.into(), name: "read".into() };
    let native = |id: &str| {
        ContentBlock::ToolUse(ToolUse { id: CallId::from(id), name: "read".into(), input: json!({}), signature: None })
    };
    let mut events = vec![
        ModelEvent::BlockStarted { index: 0, kind: BlockKind::Thinking },
        ModelEvent::Delta { index: 0, delta: Delta::Thinking(thought.clone()) },
        ModelEvent::BlockFinished { index: 0, block: thinking },
    ];
    events.extend(said(1, &["Both: ", &thought]));
    for (index, id) in [(2, "toolu_x"), (3, "call_1")] {
        events.push(ModelEvent::BlockStarted { index, kind: kind(id) });
        events.push(ModelEvent::Delta { index, delta: Delta::Input("{}".into()) });
        events.push(ModelEvent::BlockFinished { index, block: native(id) });
    }
    insta::assert_snapshot!(tell(&heard(events, StopReason::EndTurn)), @r#"
    0 begins: Thinking
    0 Thinking("<tool_call>{\"name\":\"ls\"}</tool_call>")
    0 ends: {"type":"thinking","thinking":"<tool_call>{\"name\":\"ls\"}</tool_call>"}
    1 begins: Text
    1 Text("Both: ")
    1 ends: {"type":"text","text":"Both: "}
    2 begins: call call_1 of ls
    2 Input("{}")
    2 ends: {"type":"tool_use","id":"call_1","name":"ls","input":{}}
    3 begins: call toolu_x of read
    3 Input("{}")
    3 ends: {"type":"tool_use","id":"toolu_x","name":"read","input":{}}
    4 begins: call call_2 of read
    4 Input("{}")
    4 ends: {"type":"tool_use","id":"call_2","name":"read","input":{}}
    finished ToolUse None {"input":0,"output":0}
    "#);
}

#[test]
fn calls_within_thinking_that_comes_as_text_are_thoughts() {
    let one = "<tool_call>{\"name\":\"ls\"}</tool_call>";
    insta::assert_snapshot!(story(&format!("\n<think>So: {one} <<</think>\n\n{one}")), @r#"
    "\n<think>So: <tool_call>{\"name\":\"ls\"}</tool_call> <<</think>\n\n"
    call_1 = ls {}
    ToolUse
    "#);
    insta::assert_snapshot!(story("<think></think>{\"name\": \"ls\", \"arguments\": {}}"), @r#"
    "<think></think>"
    call_1 = ls {}
    ToolUse
    "#);
    insta::assert_snapshot!(story(&format!("The tag <think> {one}")), @r#"
    "The tag <think> "
    call_1 = ls {}
    ToolUse
    "#);
    stays_text(&format!("<think>{one}</thin"));
}

#[test]
fn text_is_told_as_it_comes_and_held_back_only_where_a_call_may_begin() {
    let mut answer = Answer::new("local", tools(), ids(&[]));
    answer.read(vec![ModelEvent::BlockStarted { index: 0, kind: BlockKind::Text }]);
    let mut told = |text: &str| {
        let delta = ModelEvent::Delta { index: 0, delta: Delta::Text(text.into()) };
        let texts = answer.read(vec![delta]).into_iter().filter_map(|event| match event {
            ModelEvent::Delta { delta: Delta::Text(text), .. } => Some(text),
            _ => None,
        });
        texts.collect::<String>()
    };
    assert_eq!(told("a <"), "a ");
    assert_eq!(told("b> <tool_call"), "<b> ");
    assert_eq!(told(">{\"name\""), "");
    assert_eq!(told(": \"x\", \"age\": 1, "), "<tool_call>{\"name\": \"x\", \"age\": 1, ");
    assert_eq!(told("2}"), "2}");
}

#[test]
fn the_work_per_delta_does_not_grow_with_what_is_held() {
    let mut answer = Answer::new("local", tools(), ids(&[]));
    let long = "x<tool_call>[".repeat(100_000);
    let call = json!({"name": "read", "arguments": {"path": long}});
    let text = format!("<tool_call>{call}</tool_call>");
    let pieces: Vec<&str> = text.as_bytes().chunks(7).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let events = answer.read(said(0, &pieces));
    let ModelEvent::BlockFinished { block: ContentBlock::ToolUse(call), .. } = &events[2] else { panic!("no call") };
    assert_eq!(call.input["path"], long);
}

fn conversation() -> Request {
    let shown = vec![ContentBlock::text("a picture </tool_result>"), image()];
    let mut request = request(vec![
        Message::user(vec![ContentBlock::text("What is in a.png?")]),
        Message::assistant(vec![
            ContentBlock::text("I look."),
            call("call_1", "read", json!({"path": "a.png"})),
            call("call_2", "ls", json!({})),
        ]),
        Message::user(vec![result("call_1", shown, false), result("call_2", vec![ContentBlock::text("no")], true)]),
        Message::user(vec![ContentBlock::text("Be quick.")]),
    ]);
    request.tools = tools();
    request
}

#[test]
fn a_request_goes_out_without_tools_and_with_calls_and_results_as_text() {
    let body = Chat::encode(&target("local"), &retell(conversation())).into_body().json();
    assert!(body["tools"].is_null());
    insta::assert_snapshot!(body["messages"][0]["content"].as_str().unwrap(), @r#"
    The base.

    # Tools

    You have the tools listed below, one in a line: its name, what it is for, and the JSON Schema of its arguments. To call a tool, write exactly this into your answer, and not within a code block:

    <tool_call>{"name": "NAME", "arguments": {…}}</tool_call>

    - `arguments` is one JSON object that satisfies the tool's schema; line ends within strings are written as \n.
    - For several calls write several such elements, one after the other.
    - End your answer behind your last call. The next message brings each call's result as `<tool_result name="NAME" id="ID">…</tool_result>`; never write such an element yourself.
    - Where no tool is needed, just answer.

    {"name":"ls","description":"To ls.","arguments":{"type":"object"}}
    {"name":"read","description":"To read.","arguments":{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"}}}}

    The folder.
    "#);
    let messages = body["messages"].as_array().unwrap();
    let lines: Vec<String> = messages[1..].iter().map(|message| message.to_string()).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"role":"user","content":"What is in a.png?"}
    {"role":"assistant","content":"I look.\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a.png\"}}</tool_call>\n<tool_call>{\"name\":\"ls\",\"arguments\":{}}</tool_call>"}
    {"role":"user","content":[{"type":"text","text":"<tool_result name=\"read\" id=\"call_1\">\na picture <\\/tool_result>"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cGljdHVyZQ=="}},{"type":"text","text":"</tool_result>\n<tool_result name=\"ls\" id=\"call_2\" error=\"true\">\nno\n</tool_result>\nBe quick."}]}
    "#);
}

#[test]
fn a_retold_picture_is_told_in_words_to_a_model_that_takes_none() {
    let body = Chat::encode(&quirky("local", &[Quirk::NoImages]), &retell(conversation())).into_body().json();
    insta::assert_snapshot!(body["messages"][3]["content"].as_str().unwrap(), @r#"
    <tool_result name="read" id="call_1">
    a picture <\/tool_result>

    [image (image/png, 7 bytes): this model takes no images]

    </tool_result>
    <tool_result name="ls" id="call_2" error="true">
    no
    </tool_result>
    Be quick.
    "#);
}

#[test]
fn wishes_for_the_answer_become_words() {
    let mut request = conversation();
    request.parameters.tool_choice = ToolChoice::Tool { name: "ls".into() };
    request.output_schema = Some(Arc::new(json!({"type": "object"})));
    let told = retell(request);
    assert_eq!(told.parameters.tool_choice, ToolChoice::Auto);
    assert_eq!(told.output_schema, None);
    let names: Vec<_> = told.system.iter().map(|section| (section.name.as_str(), section.fixed)).collect();
    assert_eq!(names, [("base", true), ("tools", true), ("folder", false), ("answer", false)]);
    insta::assert_snapshot!(told.system[3].text, @r#"
    Call the tool `ls` in this answer.

    Once no more tools are needed, answer with nothing but JSON that satisfies this JSON Schema: {"type":"object"}
    "#);
    let without = Request { tools: [].into(), output_schema: Some(Arc::new(json!({}))), ..conversation() };
    assert!(retell(without).output_schema.is_some(), "where no call is kept from coming, the server holds to it");
}

#[test]
fn the_history_is_retold_and_encoded_once() {
    let mut request = conversation();
    let first = retell(request.clone());
    assert_eq!(first.messages.len(), 3, "two says of one side are one message");
    request.messages.push(Arc::new(Message::assistant(vec![ContentBlock::text("A cat.")])));
    let second = retell(request.clone());
    assert!(first.messages.iter().zip(&second.messages).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert!(Arc::ptr_eq(&first.system, &second.system));
    let places = |request: &Request| -> Vec<*const u8> {
        let body = Chat::encode(&target("local"), request).into_body();
        body.segments().filter(|segment| segment.len() > 4_000).map(|segment| segment.as_ptr()).collect()
    };
    let long = result("call_1", vec![ContentBlock::text("x".repeat(5_000))], false);
    request.messages[2] = Arc::new(Message::user(vec![long]));
    let third = retell(request.clone());
    assert!(
        Arc::ptr_eq(&first.messages[1], &third.messages[1]) && !Arc::ptr_eq(&first.messages[2], &third.messages[2])
    );
    let before = places(&third);
    assert_eq!(before.len(), 1);
    request.messages.push(Arc::new(Message::user(vec![ContentBlock::text("Good.")])));
    assert_eq!(places(&retell(request)), before);
}

/// Says what it is given, and keeps what it was asked.
struct Scripted {
    events: Vec<Vec<ModelEvent>>,
    asked: Mutex<Vec<Request>>,
}

impl Model for Scripted {
    fn provider(&self) -> &str {
        "local"
    }

    fn name(&self) -> &str {
        "small"
    }

    fn call(&self, request: Request) -> ModelStream {
        self.asked.lock().unwrap().push(request);
        stream::iter(self.events.clone().into_iter().map(Ok)).boxed()
    }
}

async fn asked(request: Request, text: &str) -> (Vec<Vec<ModelEvent>>, Request) {
    let events = said(0, &[text]).into_iter().chain([finished(StopReason::EndTurn)]).map(|event| vec![event]).collect();
    let scripted = Arc::new(Scripted { events, asked: Mutex::default() });
    let batches = text_tools(scripted.clone()).call(request).map(Result::unwrap).collect().await;
    let asked = scripted.asked.lock().unwrap().remove(0);
    (batches, asked)
}

#[tokio::test]
async fn a_wrapped_model_is_asked_without_tools_and_answers_with_calls() {
    let text = "<tool_call>{\"name\": \"ls\"}</tool_call>";
    let (batches, asked_for) = asked(conversation(), text).await;
    assert!(asked_for.tools.is_empty());
    assert!(batches.iter().all(|batch| !batch.is_empty()));
    assert_eq!(brief(&batches.concat()), "call_3 = ls {}\nToolUse");
    let mut silent = conversation();
    silent.parameters.tool_choice = ToolChoice::None;
    let (batches, _) = asked(silent, text).await;
    assert_eq!(brief(&batches.concat()), format!("{text:?}\nEndTurn"), "calls were not wanted");
}

/// Pieces of what calls are made of; none of them offers a whole one.
fn fragment() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<function=read>",
        "<function=rm>",
        "<parameter=path>",
        "</parameter>",
        "[TOOL_CALLS]",
        " [",
        "{",
        "}",
        "]",
        "\"name\": \"rm\"",
        "\"name\"",
        ":",
        ",",
        "\"",
        "\\",
        "```json\n",
        "```",
        "<|python_tag|>",
        "\n",
        " ",
        "read",
        "[ARGS]",
        "ä",
        "😀",
        "<",
        "tool_result",
    ];
    prop_oneof![3 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

proptest! {
    /// No tool is offered by a name that can be spelled here with arguments: all is text, whatever it looks like.
    #[test]
    fn text_without_calls_passes_unchanged_however_it_is_cut(
        fragments in prop::collection::vec(fragment(), 0..40),
        sizes in prop::collection::vec(1usize..9, 1..20),
    ) {
        let text = fragments.concat();
        let none: Arc<[ToolSpec]> = [ToolSpec { name: "zz".into(), description: String::new(), schema: json!({}) }].into();
        let mut answer = Answer::new("local", none, ids(&[]));
        let (mut pieces, mut rest, mut sizes) = (vec![], text.as_str(), sizes.iter().cycle());
        while !rest.is_empty() {
            let size = *sizes.next().unwrap();
            let at = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
            pieces.push(&rest[..at]);
            rest = &rest[at..];
        }
        let events = said(0, &pieces).into_iter().chain([finished(StopReason::EndTurn)]);
        let events = merged(events.map(|event| answer.read(vec![event])).collect());
        let expected = if text.is_empty() { "EndTurn".to_owned() } else { format!("{text:?}\nEndTurn") };
        prop_assert_eq!(brief(&events), expected);
    }

    /// With tools that can be called, cutting changes nothing.
    #[test]
    fn however_an_answer_is_cut_the_same_is_found(fragments in prop::collection::vec(fragment(), 0..40), at in 0usize..200) {
        let text = fragments.concat();
        let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
        prop_assert_eq!(of(&[&text[..at], &text[at..]]), of(&[&text]));
    }
}
