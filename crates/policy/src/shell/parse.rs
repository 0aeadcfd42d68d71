//! Text to [`Script`].

use super::{Script, Word};

/// Bytes of a command line that are parsed; a longer one is a doubt.
pub const MAX_BYTES: usize = 64 * 1024;

/// Takes `text` apart; never fails: what is not known is said in its doubts.
pub fn script(text: &str) -> Script {
    Script { commands: vec![], doubts: vec![format!("{} bytes are not parsed", text.len())] }
}

/// The words of one simple command without assignments, redirections or anything to be computed; none if it is more.
pub fn words(text: &str) -> Option<Vec<Word>> {
    let script = script(text);
    script.commands.into_iter().next().map(|command| command.words)
}
