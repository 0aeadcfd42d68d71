//! Reading a command that is simple for sure: plain words and plain quotes, nothing a shell would act on.

/// One word after quote removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    /// Whether any part of it stood in quotes.
    pub quoted: bool,
}

/// The words of `text`; none where anything else than one simple command might be meant.
pub(crate) fn simple(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut rest = text.chars();
    while let Some(sign) = rest.next() {
        match sign {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_with(Word::empty);
                word.quoted = true;
                read_quoted(&mut rest, sign, &mut word.text)?;
            }
            '#' if word.is_none() => return None,
            sign if is_meta(sign) || is_hidden(sign) => return None,
            sign => word.get_or_insert_with(Word::empty).text.push(sign),
        }
    }
    words.extend(word);
    let first = words.first()?;
    // NAME=value in front would change what the program does.
    (!first.text.is_empty() && !first.text.contains('=')).then_some(words)
}

impl Word {
    fn empty() -> Word {
        Word { text: String::new(), quoted: false }
    }
}

fn read_quoted(rest: &mut std::str::Chars, quote: char, into: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            sign if sign == quote => return Some(()),
            '$' | '`' | '\\' if quote == '"' => return None,
            sign if is_hidden(sign) => return None,
            sign => into.push(sign),
        }
    }
}

fn is_meta(sign: char) -> bool {
    matches!(sign, ';' | '&' | '|' | '<' | '>' | '$' | '\\' | '`' | '(' | ')' | '{' | '}' | '!')
}

/// Signs a person reading the command would not see as what they are: line ends, escapes, bidi, zero width.
pub(crate) fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(sign, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
        || matches!(sign, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(sign, '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_and_plain_quotes_are_read() {
        for (text, expected) in [
            ("cargo test", vec!["cargo", "test"]),
            ("  git  commit -m 'a; b $x' ", vec!["git", "commit", "-m", "a; b $x"]),
            ("echo \"it's fine\"", vec!["echo", "it's fine"]),
            ("c\"ar\"go te'st'", vec!["cargo", "test"]),
            ("ls *.rs src/[ab]?", vec!["ls", "*.rs", "src/[ab]?"]),
            ("grep '' a#b", vec!["grep", "", "a#b"]),
        ] {
            let words: Vec<String> = simple(text).unwrap().into_iter().map(|word| word.text).collect();
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn whatever_a_shell_would_act_on_is_not_simple() {
        for text in [
            "",
            "a; b",
            "a && b",
            "a | b",
            "a > b",
            "a < b",
            "a $x",
            "a \"$x\"",
            "a `b`",
            "a \"`b`\"",
            "a $(b)",
            "a \\b",
            "a {b,c}",
            "(a)",
            "a\nb",
            "a\rb",
            "a 'b\nc'",
            "a 'b",
            "a \"b",
            "# a",
            "a #b",
            "! a",
            "X=1 a",
            "'' a",
            "a \u{202e}b",
            "a\u{200b}",
        ] {
            assert_eq!(simple(text), None, "{text:?}");
        }
    }
}
