//! What people, timers and other programs ask of the session.

use super::habits::{MODELS, caps, profile};
use super::world::World;
use std::sync::Arc;
use uuid::Uuid;
use windlass_kernel::*;

impl World {
    /// A wish as it may come at any moment; the session may turn it down.
    pub fn wish(&mut self) -> Command {
        let asking: Vec<CallId> = self.state.asking().map(|(call, _)| call.id.clone()).collect();
        if !asking.is_empty() && self.random.one_in(3) {
            let call = asking[self.random.below(asking.len())].clone();
            return self.answer(&call);
        }
        if self.state.paused().is_some() && self.random.coin() {
            return if self.random.one_in(4) {
                Command::Interrupt { by: "terminal".into() }
            } else {
                self.raise_caps()
            };
        }
        if self.state.turn.is_some() && self.random.one_in(self.habits.interrupt_in) {
            return Command::Interrupt { by: "terminal".into() };
        }
        match self.random.below(16) {
            0..=6 => self.prompt(),
            7 | 8 => {
                let (input, text) = self.input("news");
                Command::Note { input, text, wakes: self.random.coin() }
            }
            9 | 10 => Command::Compact { instructions: None },
            11 if self.random.one_in(4) => Command::Clear { input: self.input("clear").0 },
            12 => self.configure(),
            13 => {
                let change = self.random.of(&[ToolsChange::Enabled, ToolsChange::Disabled]);
                Command::ChangeTools { change, tools: vec!["fetch".into()] }
            }
            14 => {
                // An answer to a question that is not open, or not any more.
                let call = self.state.call_ids.iter().next().cloned();
                self.answer(&call.unwrap_or_else(|| "c0".into()))
            }
            _ => self.prompt(),
        }
    }

    pub fn prompt(&mut self) -> Command {
        let (input, text) = self.input("prompt");
        let blocks = vec![ContentBlock::text(text)];
        let (context, data, intent, constraints) = (None, None, None, vec![]);
        let output_schema = self.random.one_in(4).then(|| Arc::new(serde_json::json!({ "type": "object" })));
        let origin = Origin::Terminal;
        let prompted = Prompted { input, origin, blocks, context, data, intent, constraints, output_schema };
        Command::Prompt(Box::new(prompted))
    }

    /// Mostly far enough; now and then to caps that are in the way again.
    pub fn raise_caps(&mut self) -> Command {
        let high = Cap { micro_usd: Some(u64::MAX), tokens: Some(u64::MAX) };
        let caps = match self.random.one_in(self.habits.mistakes_in) {
            true => caps(&mut self.random),
            false => Caps { session: high, day: high, tree: high },
        };
        Command::Configure(Box::new(Configured { caps: Some(caps), ..Configured::default() }))
    }

    /// News of what other sessions have spent.
    pub fn spending(&mut self) -> Event {
        let scope = self.random.of(&[CapScope::Day, CapScope::Tree]);
        let spent = Spending { micro_usd: self.random.below(10_000) as u64, tokens: self.random.below(9_000) as u64 };
        Event::SpendingSeen { scope, spent }
    }

    /// A fresh name for an input, now and then one that was used before.
    fn input(&mut self, what: &str) -> (InputId, String) {
        if !self.random.one_in(self.habits.mistakes_in) {
            self.next_input += 1;
        }
        (InputId(Uuid::from_u64_pair(9, self.next_input)), format!("{what} {}", self.next_input))
    }

    fn configure(&mut self) -> Command {
        let profile = self.random.one_in(3).then(|| {
            let tools = self.state.profile.tools.clone();
            Box::new(Profile { tools, ..profile(&mut self.random, None) })
        });
        let mode = Some(self.random.of(&[PermissionMode::Default, PermissionMode::Plan, PermissionMode::Bypass]));
        let model = self.random.one_in(4).then(|| self.random.of(&MODELS[..2]).into());
        let caps = self.random.one_in(8).then(|| caps(&mut self.random));
        Command::Configure(Box::new(Configured { model, mode, profile, caps }))
    }

    /// Mostly the right answer; now and then to another question, or of the wrong kind.
    pub fn answer(&mut self, id: &CallId) -> Command {
        let question = self.state.asking().find(|(call, _)| call.id == *id).map(|(_, question)| question.clone());
        let mut hash = question.as_ref().map_or("none".into(), |question| question.hash.clone());
        if self.random.one_in(self.habits.mistakes_in) {
            hash.push('?');
        }
        let words = question.is_some_and(|question| question.kind == QuestionKind::Words);
        let words = words ^ self.random.one_in(self.habits.mistakes_in);
        let text = format!("answer to {id}");
        let decision = match self.random.below(4) {
            0 => Decision::Deny { note: String::new() },
            _ if words => Decision::Words { text },
            1 => Decision::Deny { note: text },
            _ => Decision::Allow,
        };
        let plan = self.state.call(id).and_then(|call| call.plan.clone()).unwrap_or_default();
        let changed = self.random.one_in(4).then(|| Changed { input: serde_json::json!({ "changed": true }), plan });
        let (scope, rule) = (Scope::Once, None);
        let call = id.clone();
        let (more_rules, by) = (vec![], "terminal".into());
        Command::Answer(Box::new(Answered { call, hash, decision, scope, rule, more_rules, changed, by }))
    }
}
