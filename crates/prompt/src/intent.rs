//! What a prompt is for, in a line.

/// Characters of an intent.
pub const INTENT_CHARS: usize = 200;

/// Sentences that only greet.
const GREETINGS: [&str; 12] = [
    "hi",
    "hello",
    "hey",
    "hi there",
    "hello there",
    "good morning",
    "good evening",
    "thanks",
    "你好",
    "您好",
    "嗨",
    "早上好",
];

/// The first sentence of a prompt that says something: no greeting, no bare marks or fences. It ends at its line's end,
/// at `。！？`, at `!` or `?` before a space, at `.` before a space and a capital, or after [`INTENT_CHARS`].
pub fn extract_intent(prompt: &str) -> Option<String> {
    let lines = prompt.lines().map(|line| line.trim().trim_start_matches(['#', '>', '-', '*', '`', ' ']));
    let sentence = lines.flat_map(sentences).find(|sentence| says_something(sentence))?;
    Some(match sentence.char_indices().nth(INTENT_CHARS) {
        None => sentence.into(),
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
    })
}

fn says_something(sentence: &str) -> bool {
    let plain = sentence.trim_end_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase();
    plain.chars().any(char::is_alphanumeric) && !GREETINGS.contains(&&plain[..])
}

fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let end = sentence_end(rest);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        (!sentence.is_empty()).then(|| sentence.trim())
    })
}

/// Where the first sentence of `text` ends, in bytes.
fn sentence_end(text: &str) -> usize {
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        let mut next = text[end..].chars();
        let ends = match sign {
            '。' | '！' | '？' => true,
            '!' | '?' => next.next().is_some_and(char::is_whitespace),
            '.' => next.next().is_some_and(char::is_whitespace) && next.next().is_some_and(|sign| !sign.is_lowercase()),
            _ => false,
        };
        if ends {
            return end;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_06_the_intent_is_the_first_sentence_that_says_something() {
        for (prompt, expected) in [
            ("set the port to 9090", Some("set the port to 9090")),
            ("Hi! Please set the port. Then restart it.", Some("Please set the port.")),
            ("Hello,\n\n  fix the test in src/a.rs\nit fails since monday", Some("fix the test in src/a.rs")),
            ("look at e.g. config.toml first", Some("look at e.g. config.toml first")),
            ("why does v1.2 fail? it worked before", Some("why does v1.2 fail?")),
            ("你好！把端口改成 9090。然后重启", Some("把端口改成 9090。")),
            ("# Task\nmore", Some("Task")),
            ("```\nlet x = 1;\n```", Some("let x = 1;")),
            ("---", None),
            ("hello", None),
            (" \n ", None),
            ("", None),
        ] {
            assert_eq!(extract_intent(prompt).as_deref(), expected, "{prompt:?}");
        }
    }

    #[test]
    fn s0_06_a_long_intent_is_cut_between_characters() {
        let intent = extract_intent(&"端".repeat(INTENT_CHARS + 1)).unwrap();
        assert_eq!(intent, "端".repeat(INTENT_CHARS) + "…");
        assert_eq!(extract_intent(&"x".repeat(INTENT_CHARS)).unwrap(), "x".repeat(INTENT_CHARS));
    }
}
