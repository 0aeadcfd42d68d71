//! The difference between two texts, for people and for counting.

use crate::output::head;
use similar::{DiffTag, TextDiff};
use std::time::Duration;

/// Time after which a diff becomes coarse instead of exact.
const DEADLINE: Duration = Duration::from_millis(200);
/// Bytes of a diff that are kept.
const DIFF_LIMIT_BYTES: usize = 20_000;
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Diff {
    pub added: usize,
    pub removed: usize,
    /// Unified, `DIFF_LIMIT_BYTES` at most.
    pub text: String,
}

/// The unified diff from `old` to `new`, headed by `name`.
pub(crate) fn diff(name: &str, old: &str, new: &str) -> Diff {
    renamed(name, name, old, new)
}

/// As [`diff`], of a file that goes from one name to another; of the same text, only the names.
pub(crate) fn renamed(from: &str, to: &str, old: &str, new: &str) -> Diff {
    let changes = TextDiff::configure().timeout(DEADLINE).diff_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for op in changes.ops() {
        match op.tag() {
            DiffTag::Equal => {}
            _ => (added, removed) = (added + op.new_range().len(), removed + op.old_range().len()),
        }
    }
    let mut text = changes.unified_diff().context_radius(CONTEXT_LINES).header(from, to).to_string();
    if text.is_empty() && from != to {
        text = format!("--- {from}\n+++ {to}\n");
    }
    Diff { added, removed, text: bounded(text) }
}

fn bounded(text: String) -> String {
    if text.len() <= DIFF_LIMIT_BYTES {
        return text;
    }
    let kept = head(&text, DIFF_LIMIT_BYTES);
    format!("{kept}\n[… {} bytes of the diff left out …]\n", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_shown() {
        let diff = diff("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\nfour\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        insta::assert_snapshot!(diff.text, @r"
        --- a.txt
        +++ a.txt
        @@ -1,3 +1,4 @@
         one
        -two
        +2
         three
        +four
        ");
    }

    #[test]
    fn a_huge_diff_is_cut() {
        let diff = diff("a.txt", "", &"line\n".repeat(50_000));
        assert_eq!(diff.added, 50_000);
        assert!(diff.text.len() < DIFF_LIMIT_BYTES + 100);
        assert!(diff.text.ends_with("bytes of the diff left out …]\n"));
    }
}
