//! What may be spent before somebody is asked.

use crate::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Caps of a session, of a day (all sessions of the store, by the day of UTC), and of an agent with its sub-agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    #[serde(skip_serializing_if = "Cap::is_open")]
    pub session: Cap,
    #[serde(skip_serializing_if = "Cap::is_open")]
    pub day: Cap,
    #[serde(skip_serializing_if = "Cap::is_open")]
    pub tree: Cap,
}

/// A cap in money, in tokens, in both (the first that is reached counts) or in nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cap {
    /// Millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapScope {
    Session,
    Day,
    Tree,
}

/// A cap, and what had been spent when it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedCap {
    pub scope: CapScope,
    pub cap: Cap,
    pub spent: Spending,
}

/// What was seen to be spent in a cap's scope, and what the session itself had spent in all by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub spent: Spending,
    pub own: Spending,
}

impl fmt::Display for ReachedCap {
    /// As "the session has cost $0.018 (cap $0.01)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self.scope {
            CapScope::Session => "the session has",
            CapScope::Day => "the sessions of today (UTC) have",
            CapScope::Tree => "the agent and its sub-agents have",
        };
        match self.cap.micro_usd.filter(|cap| self.spent.micro_usd >= *cap) {
            Some(cap) => write!(f, "{who} cost {} (cap {})", Dollars(self.spent.micro_usd), Dollars(cap)),
            None => {
                write!(f, "{who} taken {} tokens (cap {})", self.spent.tokens, self.cap.tokens.unwrap_or_default())
            }
        }
    }
}

/// An amount in millionths, told exactly and to the cent at least.
pub struct Dollars(pub u64);

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % 1_000_000);
        let exact = fraction.trim_end_matches('0');
        write!(f, "${}.{exact:0<2}", self.0 / 1_000_000)
    }
}

impl Cap {
    pub fn is_open(&self) -> bool {
        *self == Cap::default()
    }

    pub fn is_reached(&self, spent: Spending) -> bool {
        self.micro_usd.is_some_and(|cap| spent.micro_usd >= cap) || self.tokens.is_some_and(|cap| spent.tokens >= cap)
    }
}

impl Caps {
    pub const SCOPES: [CapScope; 3] = [CapScope::Session, CapScope::Day, CapScope::Tree];

    /// These caps where they say something, and those of `base` where they do not.
    pub fn over(&self, base: &Caps) -> Caps {
        let cap = |own: Cap, base: Cap| Cap {
            micro_usd: own.micro_usd.or(base.micro_usd),
            tokens: own.tokens.or(base.tokens),
        };
        Caps { session: cap(self.session, base.session), day: cap(self.day, base.day), tree: cap(self.tree, base.tree) }
    }

    pub fn of(&self, scope: CapScope) -> Cap {
        match scope {
            CapScope::Session => self.session,
            CapScope::Day => self.day,
            CapScope::Tree => self.tree,
        }
    }
}

impl Totals {
    pub fn spending(&self) -> Spending {
        Spending { micro_usd: self.cost_micro_usd, tokens: self.usage.context() }
    }
}

impl State {
    /// What is known to be spent in `scope`: as last seen, and what the session has spent since.
    pub fn spending(&self, scope: CapScope) -> Spending {
        let own = self.totals.spending();
        if scope == CapScope::Session {
            return own;
        }
        let seen = self.seen.get(&scope).copied().unwrap_or_default();
        Spending {
            micro_usd: seen.spent.micro_usd.saturating_add(own.micro_usd.saturating_sub(seen.own.micro_usd)),
            tokens: seen.spent.tokens.saturating_add(own.tokens.saturating_sub(seen.own.tokens)),
        }
    }

    /// The first cap that forbids another model call.
    pub fn reached_cap(&self) -> Option<ReachedCap> {
        Caps::SCOPES.into_iter().find_map(|scope| {
            let (cap, spent) = (self.profile.caps.of(scope), self.spending(scope));
            cap.is_reached(spent).then_some(ReachedCap { scope, cap, spent })
        })
    }

    /// Whether the turn waits for a cap to be raised.
    pub fn paused(&self) -> Option<ReachedCap> {
        let paused = self.turn.as_ref()?.paused?;
        let reached = self.reached_cap()?;
        ((reached.scope, reached.cap) == (paused.scope, paused.cap)).then_some(reached)
    }
}
