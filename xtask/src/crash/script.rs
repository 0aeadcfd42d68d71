//! The voyage that is interrupted: 20 rounds, each with its own calls, answered by place and so the same after a crash.

/// Rounds before the last word.
pub const ROUNDS: usize = 20;
/// What the model is asked at first.
pub const PROMPT: &str = "Go through the list.";
/// What the model says at the end.
pub const LAST_WORD: &str = "All twenty are done.";
/// The file that each command adds its own line to.
pub const LEDGER: &str = "ledger.txt";
/// Files there are to read.
pub const FILES: usize = 4;

/// The model's script. Words come slowly enough to be cut, and commands live long enough to be orphaned.
pub fn script() -> String {
    let mut script = String::from("[pace]\ngap_ms = 1\nfragment = 8\n");
    for round in 0..ROUNDS {
        let text = format!("{{ text = \"Round {round}: this is what I am going to do now.\" }}");
        let calls = calls(round).join(", ");
        script.push_str(&format!("\n[[step]]\nblocks = [{text}, {calls}]\n"));
    }
    script.push_str(&format!("\n[[step]]\nblocks = [{{ text = \"{LAST_WORD}\" }}]\n"));
    script
}

/// The calls of a round: reads, writes, quick commands, commands with a child in the background, and two at once.
fn calls(round: usize) -> Vec<String> {
    let read = format!("{{ tool = \"read\", input = {{ path = \"f{}.txt\" }} }}", round % FILES);
    let write =
        format!("{{ tool = \"write\", input = {{ path = \"out{round}.txt\", content = \"line {round}\\n\" }} }}");
    let bash = |command: String| format!("{{ tool = \"bash\", input = {{ command = '{command}' }} }}");
    let line = line(round);
    match round % 5 {
        0 => vec![bash(format!("echo {line} >> {LEDGER}"))],
        1 => vec![read],
        2 => vec![bash(format!("sleep 20 & child=$!; sleep 0.1; echo {line} >> {LEDGER}; sleep 0.1; kill $child"))],
        3 => vec![write],
        _ => vec![read, bash(format!("echo {line} >> {LEDGER}; sleep 0.05"))],
    }
}

/// The line that the command of a round adds to the ledger.
pub fn line(round: usize) -> String {
    format!("call-{round}-end")
}

/// The ledger line that a command writes, if it is one of the script's.
pub fn line_of(command: &str) -> Option<String> {
    let at = command.find("call-")?;
    let end = command[at..].find("-end")?;
    Some(command[at..at + end + "-end".len()].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_line_of_its_own() {
        let script = script();
        assert_eq!(script.matches("[[step]]").count(), ROUNDS + 1);
        let commands: Vec<String> = (0..ROUNDS).flat_map(calls).filter(|call| call.contains("bash")).collect();
        let lines: std::collections::BTreeSet<_> = commands.iter().filter_map(|command| line_of(command)).collect();
        assert_eq!(lines.len(), commands.len());
        assert_eq!(line_of("echo call-7-end >> ledger.txt").as_deref(), Some("call-7-end"));
        assert_eq!(line_of("ls"), None);
    }
}
