//! A cap that is reached: how it is told, and what lets the turn go on.

use crate::words::grouped;
use windlass_kernel::{Cap, CapScope, Caps, Dollars, ReachedCap, SessionId};

/// Why the turn waits, and the command that goes on.
pub fn explain(cap: &ReachedCap, session: SessionId) -> String {
    let key = match cap.scope {
        CapScope::Session => "session",
        CapScope::Day => "day",
        CapScope::Tree => "tree",
    };
    let raised = raised(cap);
    let flag = match (raised.micro_usd, raised.tokens, cap.scope) {
        (Some(micro), _, CapScope::Session) if raised.micro_usd != cap.cap.micro_usd => {
            format!("--max-cost {}", dollars(micro))
        }
        (Some(micro), ..) if raised.micro_usd != cap.cap.micro_usd => {
            format!("--config caps.{key}_usd={}", dollars(micro))
        }
        (_, tokens, _) => format!("--config caps.{key}_tokens={}", tokens.unwrap_or_default()),
    };
    let midnight = if cap.scope == CapScope::Day { ", and so does the next day" } else { "" };
    format!("paused: {cap}; windlass -r {session} -p {flag} goes on{midnight}")
}

/// The cap to go on with, in words: `$0.02`, or `2,400 tokens`.
pub fn limit(cap: &ReachedCap) -> String {
    let raised = raised(cap);
    match raised.micro_usd.filter(|_| raised.micro_usd != cap.cap.micro_usd) {
        Some(micro) => Dollars(micro).to_string(),
        None => format!("{} tokens", grouped(raised.tokens.unwrap_or_default())),
    }
}

/// Twice the cap, and at least twice what was spent; what is not reached stays.
pub fn raised(reached: &ReachedCap) -> Cap {
    let twice = |cap: Option<u64>, spent: u64| {
        cap.map(|cap| if spent >= cap { cap.max(spent).max(1).saturating_mul(2) } else { cap })
    };
    Cap {
        micro_usd: twice(reached.cap.micro_usd, reached.spent.micro_usd),
        tokens: twice(reached.cap.tokens, reached.spent.tokens),
    }
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
        let said = |cap| explain(&cap, id).replace(&id.to_string(), "ID");
        assert_eq!(
            said(of(CapScope::Session, Some(10_000), None)),
            "paused: the session has cost $0.0123 (cap $0.01); windlass -r ID -p --max-cost 0.0246 goes on"
        );
        assert_eq!(
            said(of(CapScope::Session, Some(90_000), Some(1_000))),
            "paused: the session has taken 1234 tokens (cap 1000); windlass -r ID -p --config caps.session_tokens=2468 \
             goes on"
        );
        assert_eq!(
            said(of(CapScope::Day, Some(12_000), None)),
            "paused: the sessions of today (UTC) have cost $0.0123 (cap $0.012); windlass -r ID -p --config \
             caps.day_usd=0.0246 goes on, and so does the next day"
        );
        assert!(said(of(CapScope::Tree, None, Some(7))).contains("--config caps.tree_tokens=2468 "));
    }

    #[test]
    fn only_what_is_reached_is_raised() {
        let reached = of(CapScope::Session, Some(10_000), Some(5_000));
        assert_eq!(raised(&reached), Cap { micro_usd: Some(24_600), tokens: Some(5_000) });
        assert_eq!(limit(&reached), "$0.0246");
        let caps = raise(Caps::default(), &of(CapScope::Tree, None, Some(1_000)));
        assert_eq!(caps.tree, Cap { micro_usd: None, tokens: Some(2_468) });
        assert!(caps.session.is_open());
        let nothing = ReachedCap { spent: Spending::default(), ..of(CapScope::Session, Some(0), None) };
        assert_eq!(raised(&nothing).micro_usd, Some(2), "a cap of nothing is raised to something");
    }
}
