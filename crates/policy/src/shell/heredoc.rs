//! Where a here-document ends.

/// A here-document whose lines are still to come.
#[derive(Debug)]
pub(super) struct Heredoc {
    end: String,
    strips: bool,
    /// Its delimiter is quoted, so nothing in it is expanded.
    pub quoted: bool,
}

/// The text of `$(cat <<'END' … END)`, the way in which long messages are written: a quoted here-document and nothing
/// else, so the text stands in the command.
pub(super) fn constant(source: &str) -> Option<String> {
    let rest = source.strip_prefix("$(cat <<'")?.strip_suffix(')')?;
    let (end, body) = rest.split_once("'\n")?;
    if end.is_empty() || !end.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let heredoc = Heredoc { end: end.into(), strips: false, quoted: true };
    let (text_ends, line_ends) = heredoc.find_end(body, 0).ok()?;
    // A substitution loses the line breaks at its end.
    body[line_ends..].trim().is_empty().then(|| body[..text_ends].trim_end_matches('\n').into())
}

impl Heredoc {
    /// One that a line ends which is `word` without its quotes; with `strips`, tabs may stand before it.
    pub(super) fn ended_by(word: &str, strips: bool) -> Result<Heredoc, String> {
        if word.contains(['$', '`']) {
            return Err("has a here-document whose end is computed".into());
        }
        let is_quote = |sign: &char| matches!(sign, '\'' | '"' | '\\');
        let quoted = word.chars().any(|sign| is_quote(&sign));
        Ok(Heredoc { end: word.chars().filter(|sign| !is_quote(sign)).collect(), strips, quoted })
    }

    /// Where its lines, from `start` on, end, and where the line that ends it does.
    pub(super) fn find_end(&self, text: &str, start: usize) -> Result<(usize, usize), String> {
        let mut at = start;
        let mut joined = false;
        for line in text[start..].split('\n') {
            let bare = if self.strips { line.trim_start_matches('\t') } else { line };
            let is_end = bare == self.end;
            if is_end && !joined {
                return Ok((at, at + line.len()));
            }
            if is_end || joined && line.ends_with(&self.end) && !self.end.is_empty() {
                return Err(format!("has a line broken before `{}`, the end of a here-document", self.end));
            }
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            joined = !self.quoted && backslashes % 2 == 1;
            at += line.len() + 1;
        }
        Err(format!("cannot be parsed: the here-document is not ended by a line `{}`", self.end))
    }
}
