//! What people, timers and other programs ask of the session.

use super::habits::profile;
use super::world::World;
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
        Command::Prompt(Box::new(Prompted {
            input,
            origin: Origin::Terminal,
            blocks,
            context,
            data,
            intent,
            constraints,
        }))
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
        Command::Configure(Box::new(Configured { model: None, mode, profile }))
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
        Command::Answer(Box::new(Answered { call, hash, decision, scope, rule, changed, by: "terminal".into() }))
    }
}
