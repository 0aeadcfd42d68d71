//! The hooks of one event, asked one after the other.

use crate::child::{End, Finished, Order};
use crate::config::{Hook, Hooks};
use crate::event::{EventName, Trigger};
use crate::input::{Event, Origin, Stop, SubagentStop};
use crate::launch::Launch;
use crate::outcome::{Decision, Message, Outcome, Ran};
use crate::reply::Reply;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

impl Hooks {
    /// Asks those that want `event`, in order. The first that blocks or ends the turn is the last that is asked, but
    /// after a tool has run all are. A rewritten input is what the next one is told. Takes as long as the hooks' times
    /// together at most.
    ///
    /// Called back, it ends what runs, within a second, and decides [`Decision::Stop`]; dropped, it kills it.
    pub async fn run(&self, mut event: Event, origin: &Origin, launch: &Launch, cancel: &CancellationToken) -> Outcome {
        let subject = event.subject(origin).to_owned();
        let mut outcome = Outcome::default();
        for hook in self.wanting(event.name(), &subject) {
            let order = Order { line: &hook.command, limit: hook.timeout, cwd: &origin.cwd, launch, cancel };
            let reply = ask(hook, &event, origin, order, &mut outcome.ran).await;
            if outcome.take(hook, reply, &mut event).is_break() {
                break;
            }
        }
        outcome.settle(&event);
        outcome
    }
}

async fn ask(hook: &Hook, event: &Event, origin: &Origin, order: Order<'_>, ran: &mut Vec<Ran>) -> Reply {
    let finished = match event.told(origin) {
        Ok(input) => order.run(&input).await,
        Err(error) => Finished::lost(format!("its input cannot be written: {error}")),
    };
    let reply = Reply::of(hook, &finished);
    ran.push(Ran {
        hook: hook.name.clone(),
        event: hook.event,
        tool_use_id: event.tool_use_id().map(str::to_owned),
        verdict: reply.verdict,
        reason: reply.reason.clone(),
        exit_code: if let End::Code(code) = finished.end { Some(code) } else { None },
        took_ms: finished.took_ms,
        rewrote: reply.updated_input.is_some(),
        stdout: reply.stdout.clone(),
    });
    reply
}

impl Outcome {
    /// Adds a reply; breaks if no further hook is to be asked.
    fn take(&mut self, hook: &Hook, reply: Reply, event: &mut Event) -> ControlFlow<()> {
        let messages = reply.notes.into_iter().map(|text| Message { hook: hook.name.clone(), text });
        self.messages.extend(messages);
        self.contexts.extend(reply.context);
        if let (Some(input), Event::PreToolUse(call)) = (reply.updated_input, event) {
            call.tool_input = input.clone();
            self.updated_input = Some(input);
            // What an earlier hook allowed was another input.
            if matches!(self.decision, Decision::Allow { .. }) {
                self.decision = Decision::GoOn;
            }
        }
        let ends = match reply.decision {
            Decision::Stop { .. } => true,
            Decision::Block { .. } => hook.event != EventName::PostToolUse,
            _ => false,
        };
        self.decision = std::mem::take(&mut self.decision).join(reply.decision);
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Takes back what the event does not let a hook do.
    fn settle(&mut self, event: &Event) {
        let Decision::Block { hook, .. } = &self.decision else {
            if matches!(self.decision, Decision::Stop { .. }) {
                self.updated_input = None;
            }
            return;
        };
        self.updated_input = None;
        let text = match event {
            Event::Stop(Stop { stop_hook_active: true, .. })
            | Event::SubagentStop(SubagentStop { stop_hook_active: true, .. }) => {
                "wants the turn to go on once more, and it has gone on once: it ends here"
            }
            Event::PreCompact(compaction) if compaction.trigger == Trigger::Auto => {
                "would keep the conversation as it is, but the model's window is full: it is compacted"
            }
            _ => return,
        };
        self.messages.push(Message { hook: hook.clone(), text: text.into() });
        self.decision = Decision::GoOn;
    }
}
