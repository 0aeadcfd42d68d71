//! Texts made to fit.

/// `text` without blanks around it, and no more than `limit` bytes of it; says how many were left out.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}… [{} bytes left out]", &text[..end], text.len() - end)
}

/// The word of `known` that is nearest to `word`, in spelling alone, if it is near at all.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let bare = |text: &str| -> Vec<char> {
        text.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let word = bare(word);
    let near = known.iter().map(|candidate| (slips(&word, &bare(candidate)), *candidate));
    near.filter(|(slips, candidate)| *slips * 3 <= candidate.len()).min_by_key(|(slips, _)| *slips).map(|(_, it)| it)
}

/// Letters to add, drop or change to make one word of the other.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let changed = before + usize::from(left != right);
            before = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_letters_and_says_so() {
        assert_eq!(clip(" short \n", 10), "short");
        assert_eq!(clip("ääää", 5), "ää… [4 bytes left out]");
    }

    #[test]
    fn case_and_dashes_do_not_count_and_slips_count_little() {
        let known = ["PreToolUse", "PostToolUse", "Stop"];
        assert_eq!(nearest("pre_tool_use", &known), Some("PreToolUse"));
        assert_eq!(nearest("PreTolUse", &known), Some("PreToolUse"));
        assert_eq!(nearest("stopp", &known), Some("Stop"));
        assert_eq!(nearest("banana", &known), None);
    }
}
