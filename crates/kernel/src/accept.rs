//! Command → event, or why not. Reads the state, changes nothing.

use crate::*;

impl State {
    pub fn accept(&self, command: &Command) -> Result<Event, Rejected> {
        match command.clone() {
            Command::Prompt(prompt) => {
                self.fresh(prompt.input)?;
                // A result that nobody called for would make every later request wrong.
                if let Some(block) = prompt.blocks.iter().find(|block| !block.is_input()) {
                    return Err(Rejected::ForeignBlock { kind: block.kind().into() });
                }
                let says_something =
                    |block: &ContentBlock| !matches!(block, ContentBlock::Text { text } if text.trim().is_empty());
                if !prompt.blocks.iter().any(says_something) {
                    return Err(Rejected::Empty);
                }
                Ok(Event::Prompted(prompt))
            }
            Command::Note { input, text, wakes } => {
                self.fresh(input)?;
                if text.trim().is_empty() {
                    return Err(Rejected::Empty);
                }
                Ok(Event::Noted { input, text, wakes })
            }
            Command::Clear { input } => {
                self.fresh(input)?;
                if self.turn.is_some() || self.compacting.is_some() {
                    return Err(Rejected::Busy);
                }
                Ok(Event::Cleared { input })
            }
            Command::Compact { instructions } => self.accept_compact(instructions),
            Command::Interrupt { by } => self.accept_interrupt(by),
            Command::Answer(answer) => self.accept_answer(answer),
            Command::Configure(change) => self.accept_configure(change),
            Command::ChangeTools { change, tools } => {
                let disabled = |tool: &String| self.disabled_tools.contains(tool);
                let changes = match change {
                    ToolsChange::Enabled => tools.iter().any(disabled),
                    ToolsChange::Disabled => !tools.iter().all(disabled),
                    ToolsChange::Registered | ToolsChange::Unregistered => !tools.is_empty(),
                };
                if changes { Ok(Event::ToolsChanged { change, tools }) } else { Err(Rejected::NoChange) }
            }
        }
    }

    fn fresh(&self, input: InputId) -> Result<(), Rejected> {
        if self.inputs.contains(&input) { Err(Rejected::Repeated(input)) } else { Ok(()) }
    }

    fn accept_compact(&self, instructions: Option<String>) -> Result<Event, Rejected> {
        if self.compacting.is_some() || self.compaction_asked.is_some() {
            return Err(Rejected::AlreadyCompacting);
        }
        if self.messages.len() == self.boundary {
            return Err(Rejected::NothingToCompact);
        }
        Ok(Event::CompactionAsked { instructions })
    }

    fn accept_interrupt(&self, by: String) -> Result<Event, Rejected> {
        match (&self.turn, self.compacting) {
            (Some(turn), _) if turn.halt.is_some() => Err(Rejected::AlreadyInterrupted),
            (Some(_), _) => Ok(Event::Interrupted { by }),
            (None, Some(task)) if task.halted => Err(Rejected::AlreadyInterrupted),
            (None, Some(_)) => Ok(Event::Interrupted { by }),
            (None, None) => Err(Rejected::NothingToInterrupt),
        }
    }

    /// The first answer to a question wins; it must name the very question that is open.
    fn accept_answer(&self, answer: Box<Answered>) -> Result<Event, Rejected> {
        let call = answer.call.clone();
        let Some((_, question)) = self.asking().find(|(asking, _)| asking.id == call) else {
            return Err(Rejected::NotAsked { call });
        };
        if question.hash != answer.hash {
            return Err(Rejected::OtherQuestion { call, expected: question.hash.clone() });
        }
        match (question.kind, &answer.decision) {
            (QuestionKind::Words, Decision::Allow) => Err(Rejected::WantsWords { call }),
            (QuestionKind::Approval, Decision::Words { .. }) => Err(Rejected::WantsDecision { call }),
            _ => Ok(Event::Answered(answer)),
        }
    }

    fn accept_configure(&self, change: Box<Configured>) -> Result<Event, Rejected> {
        // To name the session's own model again is the way back from a fallback that stays.
        let model = change.model.as_ref().is_some_and(|model| *model != self.model || self.speaking.is_some());
        let mode = change.mode.is_some_and(|mode| mode != self.mode);
        let profile = change.profile.as_ref().is_some_and(|profile| **profile != self.profile);
        let caps = change.caps.is_some_and(|caps| caps.over(&self.profile.caps) != self.profile.caps);
        if model || mode || profile || caps { Ok(Event::Configured(change)) } else { Err(Rejected::NoChange) }
    }
}
