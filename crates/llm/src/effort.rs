//! How hard a model is to think, in the words that it takes.

use windlass_kernel::{Effort, Parameters};

/// The vendors' words, weakest first; a word's place is its strength.
const WORDS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// Budgets below this many tokens are little thinking, where only words are taken.
const LOW_BELOW: u32 = 4_096;
/// And below this many, a middling one.
const MEDIUM_BELOW: u32 = 16_384;

/// The effort asked for: by its word, or by a budget where there is no word.
pub(crate) fn effort_of(parameters: &Parameters) -> Option<Effort> {
    let of_budget = |tokens| match tokens {
        0 => Effort::None,
        1..LOW_BELOW => Effort::Low,
        LOW_BELOW..MEDIUM_BELOW => Effort::Medium,
        _ => Effort::High,
    };
    parameters.effort.or(parameters.thinking_tokens.map(of_budget))
}

/// The word nearest to `effort` among `known`, the weaker of two; none if the model takes no word. Where it is not
/// known what the model takes, the effort's own word.
pub(crate) fn word(effort: Effort, known: Option<&[String]>) -> Option<&str> {
    let wanted = strength(effort);
    let Some(known) = known else { return Some(WORDS[wanted]) };
    let ranked = known.iter().filter_map(|word| Some((WORDS.iter().position(|own| own == word)?, word)));
    ranked.min_by_key(|(strength, _)| (strength.abs_diff(wanted), *strength)).map(|(_, word)| word.as_str())
}

fn strength(effort: Effort) -> usize {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 1,
        Effort::Low => 2,
        Effort::Medium => 3,
        Effort::High => 4,
        Effort::Max => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_taken() {
        let known = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (openai, deepseek) = (known(&["none", "low", "medium", "high", "xhigh"]), known(&["high", "max"]));
        assert_eq!(word(Effort::Max, Some(&openai)), Some("xhigh"));
        assert_eq!(word(Effort::Minimal, Some(&openai)), Some("none"));
        assert_eq!(word(Effort::Low, Some(&deepseek)), Some("high"));
        assert_eq!(word(Effort::Max, Some(&[])), None);
        assert_eq!(word(Effort::Max, None), Some("max"));
    }

    #[test]
    fn a_budget_stands_for_a_word() {
        let of = |tokens| effort_of(&Parameters { thinking_tokens: Some(tokens), ..Parameters::default() });
        assert_eq!(
            [0, 1_024, 8_000, 32_000].map(of),
            [Effort::None, Effort::Low, Effort::Medium, Effort::High].map(Some)
        );
        let both = Parameters { thinking_tokens: Some(0), effort: Some(Effort::Max), ..Parameters::default() };
        assert_eq!(effort_of(&both), Some(Effort::Max));
        assert_eq!(effort_of(&Parameters::default()), None);
    }
}
