//! `windlass send ID TEXT`: a prompt left for a session, whoever has it open.

use crate::desk::{self, Desk, new_input};
use crate::exit::{Code, Ended, Failure};
use crate::terminal::print;
use crate::{clock, secrets};
use windlass_kernel::{Command, ContentBlock, Origin, Prompted};
use windlass_store::Input;
use windlass_tools::Source;

pub async fn send(desk: &Desk, id: &str, text: &str) -> Ended {
    if text.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty: say what is to be done"));
    }
    let found = desk::find(&*desk.store, id).await?;
    let input = new_input();
    let secrets = secrets::load(&desk.settings.config, &desk.environment);
    let prompt = Prompted {
        input,
        origin: Origin::Inbox,
        // It lies in the store before a session looks at it.
        blocks: vec![ContentBlock::text(secrets.redact(text, Source::Speech))],
        context: None,
        data: None,
        intent: None,
        constraints: vec![],
        output_schema: None,
    };
    let input = Input { id: input, command: Command::Prompt(Box::new(prompt)), at: clock::now_ms() };
    desk.store.enqueue(found.session, input).await?;
    let who = match found.held_by {
        Some(pid) => format!("process {pid} has the session open and takes it up within a second"),
        None => format!("nobody has the session open: `windlass resume {}` takes it up", found.session),
    };
    print(&format!("left for session {}; {who}\n", found.session));
    Ok(Code::Done)
}
