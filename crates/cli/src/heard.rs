//! What a headless run hears of its session: the count of its turn, and what of its words is the answer.

use windlass_kernel::{ContentBlock, End, Event, ModelRole, Record, Step, Tally};
use windlass_runtime::json_part;

/// Feed it every record of the run in order.
#[derive(Debug, Default)]
pub struct Heard {
    pub tally: Tally,
    /// Those that answered, as `PROVIDER/NAME`, in the order they came in.
    pub models: Vec<String>,
    /// The answer is to satisfy a JSON Schema.
    wants_json: bool,
    /// The model that was asked last.
    asked: String,
    /// The newest words broke off.
    broke_off: bool,
}

impl Heard {
    pub fn new(wants_json: bool) -> Heard {
        Heard { wants_json, ..Heard::default() }
    }

    pub fn add(&mut self, record: &Record) {
        self.tally.add(record);
        match &record.event {
            Event::Prompted(prompted) => self.wants_json |= prompted.output_schema.is_some(),
            Event::ModelCalled(called) if called.role != ModelRole::Compaction => {
                self.asked = format!("{}/{}", called.provider, called.model);
            }
            Event::Began { step: Step::CallModel } => self.broke_off = false,
            Event::BlockFinished { block: ContentBlock::Text { .. }, partial, .. } => self.broke_off = *partial,
            Event::ModelFinished { .. } if !self.models.contains(&self.asked) => self.models.push(self.asked.clone()),
            _ => {}
        }
    }

    /// The answer as far as there is one: nothing that broke off, and nothing of a turn that failed, was called back or
    /// is not over.
    pub fn answer(&self) -> &str {
        let text = &self.tally.text;
        match &self.tally.end {
            _ if self.broke_off => "",
            None | Some(End::Interrupted | End::ModelError { .. }) => "",
            Some(End::Done) if self.wants_json => json_part(text),
            _ => text,
        }
    }

    /// The answer for whoever reads stdout: with a schema, JSON that satisfies it or nothing.
    pub fn final_text(&self) -> &str {
        let fits = !self.wants_json || self.tally.end == Some(End::Done);
        if fits { self.answer() } else { "" }
    }

    /// What the model had said when it broke off.
    pub fn broken_off(&self) -> Option<&str> {
        (self.broke_off && !self.tally.text.is_empty()).then_some(&self.tally.text)
    }
}
