//! Numbers, times and calls as people read them.

use crate::terminal::one_line;
use serde_json::Value;
use windlass_kernel::{Tally, Usage};

/// Characters of a call's arguments in a line.
const CALL_CHARS: usize = 80;

/// `3 ms`, `1.2 s`, `2 m 5 s`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=59_999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} m {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// `1,234`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 round`, `2 rounds`.
pub fn count(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `$0.0123`; a cost that is not known is never nothing.
pub fn cost(micro_usd: Option<u64>) -> String {
    match micro_usd {
        None => "cost unknown".into(),
        Some(micro) if micro < 100 => format!("${}.{:06}", micro / 1_000_000, micro % 1_000_000),
        Some(micro) => format!("${}.{:04}", micro / 1_000_000, (micro % 1_000_000 + 50).min(999_999) / 100),
    }
}

/// What `usage` cost; `~` before a cost that stands on estimates. Where nothing was taken, no price is missing.
pub fn cost_of(usage: &Usage, micro_usd: Option<u64>, estimated: bool) -> String {
    match micro_usd {
        None if *usage == Usage::default() => "no cost".into(),
        Some(_) if estimated => format!("~{}", cost(micro_usd)),
        _ => cost(micro_usd),
    }
}

/// `3 model calls, 2 tool runs`.
pub fn calls(model_calls: u32, tool_runs: u32) -> String {
    format!("{}, {}", count(model_calls.into(), "model call"), count(tool_runs.into(), "tool run"))
}

/// The last line of a turn: rounds, tokens, cost, time.
pub fn summary(tally: &Tally) -> String {
    let Usage { input, cache_read, cache_write, output, .. } = tally.usage;
    format!(
        "{}, {}, {} tokens in, {} out, {}, {}",
        count(tally.model_calls.into(), "round"),
        count(tally.tool_runs.into(), "tool run"),
        grouped(input + cache_read + cache_write),
        grouped(output),
        cost_of(&tally.usage, tally.cost_micro_usd, tally.estimated),
        duration(tally.took_ms)
    )
}

/// A call in a line: the tool and what it is about.
pub fn call(name: &str, input: &Value) -> String {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    let about = match name {
        "bash" => text("command").map(str::to_owned),
        "read" | "write" | "edit" | "ls" => text("path").or_else(|| text("file_path")).map(str::to_owned),
        "glob" | "grep" => text("pattern").map(|pattern| match text("path") {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        }),
        "ask_user" => text("question").map(str::to_owned),
        _ => None,
    };
    let about = about.unwrap_or_else(|| match input {
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => other.to_string(),
    });
    // A model chooses the name, too.
    format!("{} {}", one_line(name, 40), one_line(&about, CALL_CHARS)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([duration(3), duration(1_250), duration(125_000)], ["3 ms", "1.2 s", "2 m 5 s"]);
        assert_eq!([grouped(7), grouped(1_234), grouped(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([count(1, "round"), count(2, "round")], ["1 round", "2 rounds"]);
    }

    #[test]
    fn s3_48_an_unknown_cost_is_never_zero() {
        assert_eq!(cost(None), "cost unknown");
        assert_eq!([cost(Some(12_345)), cost(Some(7)), cost(Some(2_500_000))], ["$0.0123", "$0.000007", "$2.5000"]);
    }

    #[test]
    fn a_cost_that_is_estimated_is_marked() {
        let usage = Usage { input: 1, ..Usage::default() };
        assert_eq!(cost_of(&usage, Some(12_345), true), "~$0.0123");
        assert_eq!(cost_of(&usage, None, true), "cost unknown");
        assert_eq!(cost_of(&Usage::default(), None, false), "no cost");
    }

    #[test]
    fn a_call_is_told_by_what_it_is_about() {
        assert_eq!(call("edit", &json!({"path": "a.txt", "old": "x", "new": "y"})), "edit a.txt");
        assert_eq!(call("bash", &json!({"command": "cargo test\nrm x"})), "bash cargo test…");
        assert_eq!(call("grep", &json!({"pattern": "x", "path": "src"})), "grep x in src");
        assert_eq!(call("deploy", &json!({"to": 1})), "deploy {\"to\":1}");
        assert_eq!(call("ls", &json!({})), "ls");
        assert_eq!(call("evil\x1b[2J", &json!({})), "evil␛[2J");
    }
}
