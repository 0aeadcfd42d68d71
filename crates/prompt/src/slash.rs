//! Slash commands: what a person typed that is not for the model.

/// Commands the session itself carries out.
const SESSION: [&str; 2] = ["clear", "compact"];
/// Commands a front end carries out.
const FRONT_END: [&str; 6] = ["help", "exit", "quit", "history", "resume", "model"];
/// Edits between a name and the nearest known one, beyond which none is near.
const NEAR: usize = 2;

/// What an input is, by its first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slash {
    /// `/clear`: forget what was said so far.
    Clear,
    /// `/compact [INSTRUCTIONS]`: replace what was said by a summary.
    Compact { instructions: Option<String> },
    /// For the front end to carry out.
    FrontEnd { name: String, arguments: String },
    /// It looks like a command and is none; `near` is the known one closest to it.
    Unknown { name: String, near: Option<&'static str> },
    /// For the model.
    NotACommand,
}

/// Reads an input. Only one that begins with `/` and a word of small letters and dashes is a command: paths, and inputs
/// with a space in front, are for the model.
pub fn parse_slash(text: &str) -> Slash {
    let Some(rest) = text.strip_prefix('/') else { return Slash::NotACommand };
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let (name, arguments) = (name.to_string(), arguments.trim());
    let is_word = name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-');
    if !is_word || name.is_empty() || name.starts_with('-') {
        return Slash::NotACommand;
    }
    match &name[..] {
        "clear" if arguments.is_empty() => Slash::Clear,
        // It takes no words: rather ask what was meant than forget the conversation for it.
        "clear" => Slash::Unknown { name: format!("clear {arguments}"), near: Some("clear") },
        "compact" => Slash::Compact { instructions: (!arguments.is_empty()).then(|| arguments.into()) },
        known if FRONT_END.contains(&known) => Slash::FrontEnd { name, arguments: arguments.into() },
        unknown => Slash::Unknown { near: nearest(unknown), name },
    }
}

fn nearest(name: &str) -> Option<&'static str> {
    let known = SESSION.iter().chain(&FRONT_END);
    let begun = || known.clone().find(|known| name.len() > 1 && known.starts_with(name));
    let close = || known.clone().map(|known| (edits(name, known), known)).filter(|(edits, _)| *edits <= NEAR).min();
    begun().or_else(|| close().map(|(_, known)| known)).copied()
}

/// How many letters must be put in, taken out or changed to get from one word to the other.
fn edits(from: &str, to: &str) -> usize {
    if from.len().abs_diff(to.len()) > NEAR {
        return NEAR + 1;
    }
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_03_slash_commands_are_recognised() {
        let unknown = |name: &str, near| Slash::Unknown { name: name.into(), near };
        let front_end =
            |name: &str, arguments: &str| Slash::FrontEnd { name: name.into(), arguments: arguments.into() };
        let compact = |words: Option<&str>| Slash::Compact { instructions: words.map(str::to_string) };
        for (text, expected) in [
            ("/clear", Slash::Clear),
            ("/clear \n", Slash::Clear),
            ("/clear the cache folder", unknown("clear the cache folder", Some("clear"))),
            ("/compact", compact(None)),
            ("/compact keep the\nerror texts ", compact(Some("keep the\nerror texts"))),
            ("/resume 12ab", front_end("resume", "12ab")),
            ("/help", front_end("help", "")),
            ("/model anthropic/x", front_end("model", "anthropic/x")),
            ("/quit", front_end("quit", "")),
            ("/claer", unknown("claer", Some("clear"))),
            ("/comp now", unknown("comp", Some("compact"))),
            ("/hlep me", unknown("hlep", Some("help"))),
            ("/deploy", unknown("deploy", None)),
            ("/usr/bin/x is missing", Slash::NotACommand),
            ("/etc/", Slash::NotACommand),
            ("/README.md is wrong", Slash::NotACommand),
            ("/", Slash::NotACommand),
            ("/ clear", Slash::NotACommand),
            ("//clear", Slash::NotACommand),
            ("/-x", Slash::NotACommand),
            ("/clear2", Slash::NotACommand),
            (" /clear", Slash::NotACommand),
            ("clear", Slash::NotACommand),
            ("what does /clear do", Slash::NotACommand),
            ("", Slash::NotACommand),
        ] {
            assert_eq!(parse_slash(text), expected, "{text:?}");
        }
    }
}
