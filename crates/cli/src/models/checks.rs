//! What a model is asked to show what it can do.

use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use windlass::llm::{Delta, Memo, Model, ModelEvent, Request, SystemSection, ToolSpec};
use windlass_kernel::{ContentBlock, Message, ModelFailure, Parameters, ToolChoice, ToolResult, ToolUse, Usage};
use windlass_store::blob_ref;

/// Tokens an answer may have: enough for a model that thinks first.
const MAX_TOKENS: u32 = 4096;
/// The reading of every meter, which a model can know from the tool alone.
const READING: u64 = 48_172;
const METER: &str = "read_meter";
/// 64 by 64 dots of plain red.
const RED: &[u8] = include_bytes!("red.png");

/// What a check came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Ok,
    /// It answered, but not with this; what it did in its place.
    No(String),
    Failed(ModelFailure),
}

/// A model under test, and what it took so far.
pub struct Subject {
    pub model: Arc<dyn Model>,
    pub usage: Usage,
    pub max_tokens: u32,
}

/// A whole answer, and in how many pieces its text came.
struct Heard {
    blocks: Vec<ContentBlock>,
    pieces: usize,
}

impl Heard {
    fn text(&self) -> String {
        windlass_kernel::text_of(&self.blocks)
    }

    fn calls(&self) -> Vec<&ToolUse> {
        let calls = self.blocks.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(call),
            _ => None,
        });
        calls.collect()
    }
}

/// Makes a check's outcome of what went wrong, if anything did.
fn outcome(done: Result<Result<(), String>, ModelFailure>) -> Outcome {
    match done {
        Ok(Ok(())) => Outcome::Ok,
        Ok(Err(instead)) => Outcome::No(instead),
        Err(failure) => Outcome::Failed(failure),
    }
}

impl Subject {
    pub fn new(model: Arc<dyn Model>, max_output: Option<u64>) -> Subject {
        let most = max_output.and_then(|most| u32::try_from(most).ok()).unwrap_or(MAX_TOKENS);
        Subject { model, usage: Usage::default(), max_tokens: MAX_TOKENS.min(most) }
    }

    /// Text arrives in more than one piece.
    pub async fn streams(&mut self) -> Outcome {
        let ask = Message::user(vec![ContentBlock::text("Write the numbers from one to forty as words, in one line.")]);
        outcome(self.ask(vec![ask], Wants::Words).await.map(|heard| match heard.pieces {
            0 => Err("no text came".into()),
            1 => Err("all text came at once".into()),
            _ => Ok(()),
        }))
    }

    /// A tool is called with arguments that fit, and its result is used.
    pub async fn calls_tools(&mut self) -> Outcome {
        outcome(self.reads_meter().await)
    }

    async fn reads_meter(&mut self) -> Result<Result<(), String>, ModelFailure> {
        let text = format!("What does meter 7 read? Ask the tool {METER}, then tell me the number.");
        let mut messages = vec![Message::user(vec![ContentBlock::text(text)])];
        let heard = self.ask(messages.clone(), Wants::Tools).await?;
        let calls = heard.calls();
        if calls.is_empty() {
            return Ok(Err("no tool was called".into()));
        }
        if let Some(bad) = calls.iter().find(|call| call.name != METER || call.input["meter"] != 7) {
            return Ok(Err(format!("a call was {}({})", bad.name, bad.input)));
        }
        let result = |call: &&ToolUse| {
            let content = vec![ContentBlock::text(format!("Meter 7 reads {READING}."))];
            ContentBlock::ToolResult(ToolResult { tool_use_id: call.id.clone(), content, is_error: false })
        };
        let results = calls.iter().map(result).collect();
        messages.push(Message::assistant(heard.blocks.clone()));
        messages.push(Message::user(results));
        let said = self.ask(messages, Wants::Tools).await?.text();
        let digits: String = said.chars().filter(char::is_ascii_digit).collect();
        Ok(if digits.contains(&READING.to_string()) { Ok(()) } else { Err("the tool's result was not used".into()) })
    }

    /// One message calls several tools.
    pub async fn calls_several(&mut self) -> Outcome {
        let text =
            format!("Read the meters 1, 2 and 3 with the tool {METER}: call it three times at once, in one message.");
        let ask = Message::user(vec![ContentBlock::text(text)]);
        outcome(self.ask(vec![ask], Wants::Tools).await.map(|heard| match heard.calls().len() {
            0 => Err("no tool was called".into()),
            1 => Err("one call came, not three".into()),
            _ => Ok(()),
        }))
    }

    /// A picture is seen.
    pub async fn sees_images(&mut self) -> Outcome {
        let image = ContentBlock::Image { media_type: "image/png".into(), blob: blob_ref(RED) };
        let text = ContentBlock::text("Which colour is this picture? Answer with one word.");
        outcome(self.ask(vec![Message::user(vec![image, text])], Wants::Words).await.map(|heard| {
            let said = heard.text().to_lowercase();
            if said.contains("red") { Ok(()) } else { Err("it did not see that the picture is red".into()) }
        }))
    }

    /// An answer keeps to a schema.
    pub async fn keeps_schema(&mut self) -> Outcome {
        let text = "Name the capital of France and the number of letters in its name, as the schema has it.";
        let ask = Message::user(vec![ContentBlock::text(text)]);
        outcome(self.ask(vec![ask], Wants::Schema).await.map(|heard| {
            match serde_json::from_str::<Value>(&heard.text()) {
                Ok(Value::Object(map)) if map.len() == 2 && map["city"].is_string() && map["letters"].is_u64() => {
                    Ok(())
                }
                Ok(_) => Err("its JSON does not fit the schema".into()),
                Err(_) => Err("its answer is no JSON".into()),
            }
        }))
    }

    async fn ask(&mut self, messages: Vec<Message>, wants: Wants) -> Result<Heard, ModelFailure> {
        let mut events = self.model.call(request(messages, wants, self.max_tokens));
        let mut heard = Heard { blocks: vec![], pieces: 0 };
        while let Some(batch) = events.next().await {
            for event in batch? {
                match event {
                    ModelEvent::Delta { delta: Delta::Text(_), .. } => heard.pieces += 1,
                    ModelEvent::BlockFinished { block, .. } => heard.blocks.push(block),
                    ModelEvent::Finished { usage, .. } => self.usage.add(&usage),
                    _ => {}
                }
            }
        }
        Ok(heard)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Words,
    Tools,
    Schema,
}

fn request(messages: Vec<Message>, wants: Wants, max_tokens: u32) -> Request {
    let system = SystemSection { name: "base".into(), text: "Do exactly what you are asked to.".into(), fixed: true };
    let meter = json!({
        "type": "object", "properties": { "meter": { "type": "integer", "description": "The meter's number." } },
        "required": ["meter"], "additionalProperties": false
    });
    let tool = ToolSpec { name: METER.into(), description: "Reads a meter.".into(), schema: meter };
    let answer = json!({
        "type": "object", "properties": { "city": { "type": "string" }, "letters": { "type": "integer" } },
        "required": ["city", "letters"], "additionalProperties": false
    });
    Request {
        system: [system].into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: if wants == Wants::Tools { [tool].into() } else { Arc::default() },
        parameters: Parameters { max_tokens, tool_choice: ToolChoice::Auto, ..Parameters::default() },
        output_schema: (wants == Wants::Schema).then(|| Arc::new(answer)),
        cache_key: "models-test".into(),
        blobs: Arc::new(HashMap::from([(blob_ref(RED).hash, RED.into())])),
        memo: Memo::default(),
    }
}
