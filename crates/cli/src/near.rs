//! The known word nearest to one that was mistyped.

/// The word of `known` that is at most two slips away from `word`, the nearest first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = known.into_iter().map(|candidate| (slips(word, candidate), candidate));
    close
        .filter(|(slips, candidate)| *slips <= 2.min(candidate.len() / 2))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, it)| it)
}

/// ` (did you mean …?)`, or nothing.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

/// Letters to add, drop or change, or neighbours to swap, to make one word of the other.
fn slips(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_or_two_are_forgiven() {
        let known = ["model", "max_turns", "locale"];
        assert_eq!(nearest("max_turn", known), Some("max_turns"));
        assert_eq!(nearest("modle", known), Some("model"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(hint("lokale", known), " (did you mean `locale`?)");
        assert_eq!(hint("x", known), "");
    }
}
