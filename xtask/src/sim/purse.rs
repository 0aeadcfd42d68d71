//! What the watch keeps of spending, and of the caps on it.

use super::watch::Seen;
use std::collections::BTreeMap;
use windlass_kernel::*;

#[derive(Default)]
pub struct Purse {
    own: Spending,
    /// What was seen elsewhere, less what the session itself had spent by then.
    elsewhere: BTreeMap<CapScope, (i128, i128)>,
    /// The cap at which the turn waits.
    paused: Option<(CapScope, Cap)>,
}

impl Purse {
    pub fn spend(&mut self, spent: &Spent) {
        self.own.tokens += spent.usage.context();
        self.own.micro_usd += spent.cost_micro_usd.unwrap_or(0);
    }

    pub fn seen(&mut self, scope: CapScope, spent: Spending) {
        let less = |all: u64, own: u64| i128::from(all) - i128::from(own);
        let elsewhere = (less(spent.micro_usd, self.own.micro_usd), less(spent.tokens, self.own.tokens));
        self.elsewhere.insert(scope, elsewhere);
    }

    fn spent(&self, scope: CapScope) -> (i128, i128) {
        let elsewhere = self.elsewhere.get(&scope).copied().unwrap_or_default();
        let (micro_usd, tokens) = if scope == CapScope::Session { (0, 0) } else { elsewhere };
        (micro_usd + i128::from(self.own.micro_usd), tokens + i128::from(self.own.tokens))
    }

    fn is_reached(&self, scope: CapScope, cap: Cap) -> bool {
        let (micro_usd, tokens) = self.spent(scope);
        cap.micro_usd.is_some_and(|most| micro_usd >= i128::from(most))
            || cap.tokens.is_some_and(|most| tokens >= i128::from(most))
    }

    /// The first cap that is reached.
    fn reached(&self, caps: &Caps) -> Option<(CapScope, Cap)> {
        let all = [(CapScope::Session, caps.session), (CapScope::Day, caps.day), (CapScope::Tree, caps.tree)];
        all.into_iter().find(|(scope, cap)| self.is_reached(*scope, *cap))
    }

    pub fn may_call(&mut self, caps: &Caps) -> Seen {
        self.paused = None;
        match self.reached(caps) {
            Some(cap) => Err(format!("a model call begins although a cap is reached: {cap:?}")),
            None => Ok(()),
        }
    }

    pub fn pauses(&mut self, cap: &ReachedCap, caps: &Caps) -> Seen {
        let named = Some((cap.scope, cap.cap));
        if named != self.reached(caps) {
            return Err(format!("a turn waits at {cap:?}, and that is not the first cap reached"));
        }
        if named == self.paused {
            return Err(format!("it is told twice that the turn waits at {named:?}"));
        }
        self.paused = named;
        Ok(())
    }

    /// The turn waits for somebody to raise a cap.
    pub fn waits(&self, caps: &Caps) -> bool {
        self.paused.is_some() && self.paused == self.reached(caps)
    }

    pub fn turn_opens(&mut self) {
        self.paused = None;
    }
}
