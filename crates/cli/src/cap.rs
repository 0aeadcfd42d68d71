//! A cap that is reached: how it is told, and what lets the turn go on.

use crate::args::Flags;
use crate::mask;
use crate::words::grouped;
use windlass_kernel::{Cap, CapScope, Caps, Dollars, ReachedCap, SessionId};

/// More dollars no flag takes, in millionths; more tokens no file can say.
const MOST_MICRO_USD: u64 = 1_000_000_000_000;
const MOST_TOKENS: u64 = 1_000_000_000_000_000_000;

/// Keys given with `--config` without which the session would be sought, spoken or paid for elsewhere.
const CARRIED: [&str; 5] = ["model=", "base_url=", "providers.", "prices.", "store.path="];

/// Why the turn waits, and the command that goes on: with what was said of the model here.
pub fn explain(cap: &ReachedCap, session: SessionId, flags: &Flags) -> String {
    let words = carried(flags).chain(raising(cap));
    let words: Vec<String> = words.map(|word| shell_word(&word)).collect();
    let midnight = if cap.scope == CapScope::Day { ", and so does the next day" } else { "" };
    format!("paused: {cap}; windlass -r {session} -p {} goes on{midnight}", words.join(" "))
}

fn carried(flags: &Flags) -> impl Iterator<Item = String> {
    let said = [("--model", &flags.model), ("--base-url", &flags.base_url)];
    let said = said.into_iter().filter_map(|(flag, value)| value.as_ref().map(|value| (flag, value)));
    let keys = flags.config.iter().filter(|entry| is_carried(entry));
    said.chain(keys.map(|entry| ("--config", entry))).flat_map(|(flag, value)| [flag.to_owned(), shown(flag, value)])
}

/// What is printed ends up in other people's logs: a password within an address is left out.
fn shown(flag: &str, value: &str) -> String {
    match value.split_once('=') {
        _ if flag == "--base-url" => mask::address(value),
        Some((key, url)) if key.trim().ends_with("base_url") => format!("{key}={}", mask::address(url)),
        _ => value.to_owned(),
    }
}

/// Headers stay behind: a key may stand in them.
fn is_carried(entry: &str) -> bool {
    let key = entry.split('=').next().unwrap_or_default().trim();
    CARRIED.iter().any(|known| entry.trim_start().starts_with(known)) && !key.ends_with(".headers")
}

/// The flags that raise what is reached.
fn raising(reached: &ReachedCap) -> impl Iterator<Item = String> {
    let key = match reached.scope {
        CapScope::Session => "session",
        CapScope::Day => "day",
        CapScope::Tree => "tree",
    };
    let Cap { micro_usd, tokens } = raised(reached);
    let money = micro_usd.filter(|_| micro_usd != reached.cap.micro_usd).map(|micro| match reached.scope {
        CapScope::Session => ["--max-cost".into(), dollars(micro)],
        CapScope::Day | CapScope::Tree => ["--config".into(), format!("caps.{key}_usd={}", dollars(micro))],
    });
    let tokens = tokens.filter(|_| tokens != reached.cap.tokens);
    let tokens = tokens.map(|tokens| ["--config".into(), format!("caps.{key}_tokens={tokens}")]);
    money.into_iter().chain(tokens).flatten()
}

/// `word` as a POSIX shell reads it back.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The cap to go on with, in words: `$0.02`, or `2,400 tokens`.
pub fn limit(cap: &ReachedCap) -> String {
    let raised = raised(cap);
    match raised.micro_usd.filter(|_| raised.micro_usd != cap.cap.micro_usd) {
        Some(micro) => Dollars(micro).to_string(),
        None => format!("{} tokens", grouped(raised.tokens.unwrap_or_default())),
    }
}

/// Twice the cap, and at least twice what was spent, as a round number; what is not reached stays.
pub fn raised(reached: &ReachedCap) -> Cap {
    let twice = |cap: Option<u64>, spent: u64, most: u64| {
        let higher = |cap: u64| round(cap.max(spent).max(1).saturating_mul(2)).min(most);
        cap.map(|cap| if spent >= cap { higher(cap) } else { cap })
    };
    Cap {
        micro_usd: twice(reached.cap.micro_usd, reached.spent.micro_usd, MOST_MICRO_USD),
        tokens: twice(reached.cap.tokens, reached.spent.tokens, MOST_TOKENS),
    }
}

/// The next number of two significant digits, this or a higher one.
fn round(number: u64) -> u64 {
    let places = number.checked_ilog10().unwrap_or(0).saturating_sub(1);
    let unit = 10_u64.pow(places);
    number.div_ceil(unit).saturating_mul(unit)
}

/// `caps` with the one that is reached raised.
pub fn raise(mut caps: Caps, reached: &ReachedCap) -> Caps {
    let cap = match reached.scope {
        CapScope::Session => &mut caps.session,
        CapScope::Day => &mut caps.day,
        CapScope::Tree => &mut caps.tree,
    };
    *cap = raised(reached);
    caps
}

/// As a flag takes it: `0.02`.
fn dollars(micro: u64) -> String {
    Dollars(micro).to_string().trim_start_matches('$').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_kernel::Spending;

    fn of(scope: CapScope, micro_usd: Option<u64>, tokens: Option<u64>) -> ReachedCap {
        ReachedCap { scope, cap: Cap { micro_usd, tokens }, spent: Spending { micro_usd: 12_300, tokens: 1_234 } }
    }

    #[test]
    fn a_pause_says_what_was_spent_and_what_goes_on() {
        let id = SessionId(Default::default());
        let said = |cap| explain(&cap, id, &Flags::default()).replace(&id.to_string(), "ID");
        assert_eq!(
            said(of(CapScope::Session, Some(10_000), None)),
            "paused: the session has cost $0.0123 (cap $0.01); windlass -r ID -p --max-cost 0.025 goes on"
        );
        assert_eq!(
            said(of(CapScope::Session, Some(90_000), Some(1_000))),
            "paused: the session has taken 1234 tokens (cap 1000); windlass -r ID -p --config caps.session_tokens=2500 \
             goes on"
        );
        assert_eq!(
            said(of(CapScope::Day, Some(12_000), None)),
            "paused: the sessions of today (UTC) have cost $0.0123 (cap $0.012); windlass -r ID -p --config \
             caps.day_usd=0.025 goes on, and so does the next day"
        );
        assert!(said(of(CapScope::Tree, None, Some(7))).contains("--config caps.tree_tokens=2500 "));
    }

    #[test]
    fn the_command_says_where_the_model_is_as_a_shell_reads_it() {
        let flags = Flags {
            model: Some("chat/it's mine".into()),
            base_url: Some("http://127.0.0.1:9/v1".into()),
            config: vec![
                "prices.\"chat/x\".input=3".into(),
                "locale=en".into(),
                "providers.x.headers=[\"k: s\"]".into(),
            ],
            ..Flags::default()
        };
        let cap = of(CapScope::Session, Some(10_000), Some(1_000));
        let said = explain(&cap, SessionId(Default::default()), &flags);
        let command = "-p --model 'chat/it'\\''s mine' --base-url http://127.0.0.1:9/v1 \
                       --config 'prices.\"chat/x\".input=3' --max-cost 0.025 --config caps.session_tokens=2500 goes on";
        assert!(said.ends_with(command), "{said}");
        let flags = Flags { base_url: Some("http://me:secret@h/v1".into()), ..Flags::default() };
        let said = explain(&cap, SessionId(Default::default()), &flags);
        assert!(said.contains("--base-url 'http://…@h/v1' "), "{said}");
    }

    #[test]
    fn a_raised_cap_is_round_and_one_that_a_flag_takes() {
        assert_eq!([0, 7, 99, 100, 101, 24_680, u64::MAX].map(round)[..6], [0, 7, 99, 100, 110, 25_000]);
        let huge = Spending { micro_usd: u64::MAX, tokens: u64::MAX };
        let reached = ReachedCap { spent: huge, ..of(CapScope::Session, Some(1), Some(1)) };
        assert_eq!(raised(&reached), Cap { micro_usd: Some(MOST_MICRO_USD), tokens: Some(MOST_TOKENS) });
        assert!(explain(&reached, SessionId(Default::default()), &Flags::default()).contains("--max-cost 1000000.00 "));
    }

    #[test]
    fn only_what_is_reached_is_raised() {
        let reached = of(CapScope::Session, Some(10_000), Some(5_000));
        assert_eq!(raised(&reached), Cap { micro_usd: Some(25_000), tokens: Some(5_000) });
        assert_eq!(limit(&reached), "$0.025");
        let caps = raise(Caps::default(), &of(CapScope::Tree, None, Some(1_000)));
        assert_eq!(caps.tree, Cap { micro_usd: None, tokens: Some(2_500) });
        assert!(caps.session.is_open());
        let nothing = ReachedCap { spent: Spending::default(), ..of(CapScope::Session, Some(0), None) };
        assert_eq!(raised(&nothing).micro_usd, Some(2), "a cap of nothing is raised to something");
    }
}
