//! Brace expansion: `{a,b}` and `{1..3}` are constant, so they are expanded.

use super::word::Sign;

/// Words that one word may become.
const MAX_WORDS: usize = 256;
/// Signs of all of them together.
const MAX_SIGNS: usize = 16 * 1024;

/// What `{…}` in `signs` make of it; none if that is not sure, or too much.
pub(super) fn expand(signs: Vec<Sign>) -> Option<Vec<Vec<Sign>>> {
    let dots = |signs: &[Sign]| signs.windows(2).any(|pair| pair == [Sign::Plain('.'), Sign::Plain('.')]);
    if !signs.contains(&Sign::Plain('{')) || !signs.contains(&Sign::Plain(',')) && !dots(&signs) {
        return Some(vec![signs]);
    }
    let mut todo = vec![(signs, 0)];
    let mut done: Vec<Vec<Sign>> = Vec::new();
    let mut spent = 0;
    while let Some((signs, from)) = todo.pop() {
        spent += signs.len();
        if done.len() + todo.len() >= MAX_WORDS || spent > MAX_SIGNS {
            return None;
        }
        let Some(open) = (from..signs.len()).find(|at| signs[*at] == Sign::Plain('{')) else {
            done.push(signs);
            continue;
        };
        let close = closing(&signs, open)?;
        let (before, inner, after) = (&signs[..open], &signs[open + 1..close], &signs[close + 1..]);
        let Some(choices) = choices(inner)? else {
            todo.push((signs, close + 1));
            continue;
        };
        if choices.len() > MAX_WORDS {
            return None;
        }
        for choice in choices.into_iter().rev() {
            todo.push(([before, &choice, after].concat(), open));
        }
    }
    Some(done)
}

/// The `}` that closes the `{` at `open`; none where braces do not pair, which shells read by rules of their own.
fn closing(signs: &[Sign], open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, sign) in signs.iter().enumerate().skip(open) {
        match sign {
            Sign::Plain('{') => depth += 1,
            Sign::Plain('}') if depth == 1 => return Some(at),
            Sign::Plain('}') => depth -= 1,
            _ => {}
        }
    }
    None
}

/// What the inside of a pair of braces stands for: nothing but itself, or one of these; the outer none: not sure.
fn choices(inner: &[Sign]) -> Option<Option<Vec<Vec<Sign>>>> {
    let mut depth = 0;
    let mut parts: Vec<Vec<Sign>> = vec![Vec::new()];
    for sign in inner {
        match sign {
            Sign::Plain('{') => depth += 1,
            Sign::Plain('}') => depth -= 1,
            _ => {}
        }
        match sign {
            Sign::Plain(',') if depth == 0 => parts.push(Vec::new()),
            sign => parts.last_mut()?.push(sign.clone()),
        }
    }
    if parts.len() > 1 {
        return Some(Some(parts));
    }
    // `{a{b,c}}` keeps its outer braces; `{}` and `{x}` are themselves.
    if inner.contains(&Sign::Plain('{')) {
        return None;
    }
    let dots = inner.windows(2).any(|pair| pair == [Sign::Plain('.'), Sign::Plain('.')]);
    if !dots { Some(None) } else { sequence(inner).map(Some) }
}

/// `1..3`, `a..e`, `1..9..2`; none if it is another thing with two dots, or quoted.
fn sequence(inner: &[Sign]) -> Option<Vec<Vec<Sign>>> {
    let text: Option<String> =
        inner.iter().map(|sign| if let Sign::Plain(sign) = sign { Some(*sign) } else { None }).collect();
    let text = text?;
    let mut parts = text.split("..");
    let (first, last, step) = (parts.next()?, parts.next()?, parts.next().unwrap_or("1"));
    if parts.next().is_some() {
        return None;
    }
    let step = number(step)?.abs().max(1);
    let values: Vec<String> = match (number(first), number(last)) {
        (Some(from), Some(to)) => {
            let padded =
                |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
            let width = if padded(first) || padded(last) { first.len().max(last.len()) } else { 0 };
            run(from, to, step)?.into_iter().map(|value| format!("{value:0width$}")).collect()
        }
        _ => {
            let letter = |text: &str| text.chars().next().filter(|sign| text.len() == 1 && sign.is_ascii_alphabetic());
            let (from, to) = (letter(first)?, letter(last)?);
            // Between the cases lie signs that mean something to a shell.
            if from.is_ascii_lowercase() != to.is_ascii_lowercase() {
                return None;
            }
            let letters = run(i64::from(u32::from(from)), i64::from(u32::from(to)), step)?;
            letters
                .into_iter()
                .filter_map(|value| u8::try_from(value).ok())
                .map(|sign| char::from(sign).into())
                .collect()
        }
    };
    Some(values.into_iter().map(|value| value.chars().map(Sign::Plain).collect()).collect())
}

fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|sign| sign.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn run(from: i64, to: i64, step: i64) -> Option<Vec<i64>> {
    let count = usize::try_from((to - from).abs() / step).ok().filter(|count| *count < MAX_WORDS)?;
    let step = if to < from { -step } else { step };
    Some(std::iter::successors(Some(from), |value| Some(value + step)).take(count + 1).collect())
}
