//! The fenced blocks of a Markdown page that hold commands, and what is said of them.

use anyhow::{Result, bail};

/// A `sh` block, and the `text output` block that follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Line of its fence, from 1.
    pub line: usize,
    pub commands: String,
    pub mark: Mark,
    /// What must stand in its output; `…` stands for anything.
    pub output: Option<String>,
}

/// What a block's info string says after `sh`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// `sh`: for the reader's own hands.
    #[default]
    Plain,
    /// `sh test [mock=NAME] [exit=N]`
    Test { mock: Option<String>, exit: i32 },
}

/// Words that begin a command no test can run: they install, fetch, or start what this project does not own.
const INSTALLS: [&str; 8] =
    ["git clone", "cargo install", "cargo xtask", "cargo run", "cargo build", "ollama", "apt-get", "rustup"];

/// What shows that a command wants a real model.
const WANTS_MODEL: [&str; 4] = ["_API_KEY", "_BASE_URL", "--base-url", "--model"];

/// All `sh` blocks of a page, in order.
pub fn blocks(markdown: &str) -> Result<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(String, String, usize)> = None;
    // A `text output` block belongs to the block right before it.
    let mut last_is_command = false;
    for (at, line) in markdown.lines().enumerate() {
        match (&mut open, line.trim().strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.trim().to_string(), String::new(), at + 1)),
            (Some(_), Some("")) => {
                let Some((info, body, line)) = open.take() else { continue };
                last_is_command = close(&mut blocks, &info, body, line, last_is_command)?;
            }
            (Some((_, body, _)), _) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, None) => {}
        }
    }
    if let Some((info, _, line)) = open {
        bail!("line {line}: the block `{info}` never ends");
    }
    Ok(blocks)
}

/// Keeps a finished fence if it matters; tells whether output may follow it.
fn close(blocks: &mut Vec<Block>, info: &str, body: String, line: usize, after_command: bool) -> Result<bool> {
    let mut words = info.split_whitespace();
    match words.next() {
        Some("sh") => {
            let mark = mark(words, line)?;
            blocks.push(Block { line, commands: body, mark, output: None });
            Ok(true)
        }
        Some("bash" | "shell" | "console") => bail!("line {line}: commands stand in a block marked `sh`, not `{info}`"),
        Some("text") if words.next() == Some("output") => {
            let Some(block) = blocks.last_mut().filter(|block| after_command && block.mark != Mark::Plain) else {
                bail!("line {line}: `text output` follows no `sh test` block");
            };
            block.output = Some(body);
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn mark<'a>(mut words: impl Iterator<Item = &'a str>, line: usize) -> Result<Mark> {
    match words.next() {
        None => return Ok(Mark::Plain),
        Some("test") => {}
        Some(word) => bail!("line {line}: `{word}` after `sh`: only `test` may stand there"),
    }
    let (mut mock, mut exit) = (None, 0);
    for word in words {
        match word.split_once('=') {
            Some(("mock", name)) => mock = Some(name.to_string()),
            Some(("exit", code)) if code.parse::<u8>().is_ok() => exit = code.parse()?,
            _ => bail!("line {line}: `{word}` after `sh test`: known are mock=NAME and exit=N"),
        }
    }
    Ok(Mark::Test { mock, exit })
}

/// Why a block that is not tested may stay so; none: it must be tested.
pub fn excuse(commands: &str) -> Option<&'static str> {
    let mut lines = commands.lines().map(str::trim_start);
    if lines.any(|line| INSTALLS.iter().any(|word| line.starts_with(word))) {
        return Some("installs or builds");
    }
    WANTS_MODEL.iter().any(|word| commands.contains(word)).then_some("needs a model of the reader's own")
}

/// Whether `wanted` stands in `output`: line by line without regard to blanks at line ends, `…` matching anything.
pub fn contains(output: &str, wanted: &str) -> bool {
    let clean = |text: &str| text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let (output, wanted) = (clean(output), clean(wanted));
    let mut rest = output.as_str();
    wanted.split('…').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Say:\n\n```sh test mock=port exit=3\nwindlass -p hi\n```\n\nIt says:\n\n```text output\nhello …\n```\n\n```sh\nexport ANTHROPIC_API_KEY=…\n```\n\n```toml\na = 1\n```\n";

    #[test]
    fn commands_are_found_with_their_marks_and_output() {
        let blocks = blocks(PAGE).unwrap();
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].mark, Mark::Test { mock: Some("port".into()), exit: 3 });
        assert_eq!((blocks[0].line, blocks[0].commands.as_str()), (3, "windlass -p hi\n"));
        assert_eq!(blocks[0].output.as_deref(), Some("hello …\n"));
        assert_eq!(blocks[1].mark, Mark::Plain);
    }

    #[test]
    fn a_mark_that_nothing_reads_is_refused() {
        let error = |page: &str| blocks(page).unwrap_err().to_string();
        assert_eq!(error("```sh tset\n```\n"), "line 1: `tset` after `sh`: only `test` may stand there");
        assert!(error("```sh test mok=a\n```\n").contains("known are mock=NAME and exit=N"));
        assert!(error("```bash\nls\n```\n").contains("marked `sh`"));
        assert!(error("```text output\na\n```\n").contains("follows no `sh test` block"));
        assert!(error("```sh\nls\n").contains("never ends"));
    }

    #[test]
    fn only_what_no_test_can_run_is_excused() {
        assert!(excuse("git clone https://example.org/windlass\ncd windlass\n").is_some());
        assert!(excuse("export OPENAI_API_KEY=sk-…\nwindlass\n").is_some());
        assert_eq!(excuse("windlass sessions\n"), None);
    }

    #[test]
    fn an_ellipsis_matches_anything_and_nothing_else_does() {
        let output = "read config.toml  12 ms\nedit config.toml  +1 −1\n3 model calls\n";
        assert!(contains(output, "read config.toml …\nedit config.toml …\n3 model calls\n"));
        assert!(contains(output, "3 model calls"));
        assert!(!contains(output, "4 model calls"));
        assert!(!contains(output, "3 model calls … edit"));
    }
}
