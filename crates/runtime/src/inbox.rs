//! Where wishes become facts: slash commands are expanded, prompts get their context.

use crate::Setup;
use bytes::Bytes;
use serde_json::Value;
use windlass_kernel::*;
use windlass_prompt::{Slash, UserContext};

/// What a command from outside amounts to: a slash command in a prompt is the command it names.
/// `told`: what hooks have the model told beside it.
pub(crate) fn expand(
    setup: &Setup,
    command: Command,
    told: Option<String>,
    blobs: &[(BlobRef, Bytes)],
) -> Result<Command, Rejected> {
    let mut prompt = match command {
        Command::Prompt(prompt) => prompt,
        Command::ChangeTools { change, ref tools } => return known(setup, change, tools).map(|()| command),
        command => return Ok(command),
    };
    let text = text_of(&prompt.blocks);
    match windlass_prompt::parse_slash(&text) {
        Slash::Clear => return Ok(Command::Clear { input: prompt.input }),
        Slash::Compact { instructions } => return Ok(Command::Compact { instructions }),
        Slash::FrontEnd { name, .. } => {
            let hint = "it is a command of the terminal, not of the session".to_owned();
            return Err(Rejected::UnknownCommand { name, hint });
        }
        Slash::Unknown { name, near } => {
            let hint = near.map_or("/help lists those there are".to_owned(), |near| format!("did you mean /{near}?"));
            return Err(Rejected::UnknownCommand { name, hint });
        }
        Slash::NotACommand => {}
    }
    if prompt.intent.is_none() {
        prompt.intent = windlass_prompt::extract_intent(&text);
    }
    if prompt.context.is_none() {
        prompt.context = Some(context(setup, &prompt, blobs));
    }
    if let (Some(context), Some(told)) = (&mut prompt.context, told) {
        context.push('\n');
        context.push_str(&told);
    }
    Ok(Command::Prompt(prompt))
}

fn context(setup: &Setup, prompt: &Prompted, blobs: &[(BlobRef, Bytes)]) -> String {
    let bytes = prompt.data.as_ref().and_then(|data| blobs.iter().find(|(blob, _)| *blob == data.blob));
    let data: Option<Value> = bytes.and_then(|(_, bytes)| serde_json::from_slice(bytes).ok());
    windlass_prompt::user_context(&UserContext {
        current_time: (setup.world.local_time)((setup.world.now)()),
        intent: prompt.intent.as_deref(),
        data: data.as_ref(),
        constraints: &prompt.constraints,
    })
}

/// Refuses a change of tools that are not there. One that was taken away is expected to be gone.
fn known(setup: &Setup, change: ToolsChange, tools: &[String]) -> Result<(), Rejected> {
    let stranger = tools.iter().find(|name| setup.tools.get(name).is_none());
    match stranger.filter(|_| change != ToolsChange::Unregistered) {
        Some(name) => Err(Rejected::UnknownTool { name: name.clone(), known: setup.tools.names().join(", ") }),
        None => Ok(()),
    }
}
