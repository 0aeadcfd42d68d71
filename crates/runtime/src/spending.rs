//! What other sessions have spent, looked up where a cap asks for it.

use crate::Setup;
use windlass_kernel::*;
use windlass_store::SpentScope;

/// What the store says of the spending that `caps` look at, where it tells `state` something new: for the first time,
/// when a cap turns out to be reached or not to be any more, and when a new day begins. So an idle log does not grow.
pub(crate) async fn news(setup: &Setup, session: SessionId, state: &State, caps: Caps) -> Vec<Event> {
    let now = (setup.world.now)();
    let asked = [(CapScope::Day, SpentScope::Since(now - now % DAY_MS)), (CapScope::Tree, SpentScope::Tree(session))];
    let mut events = vec![];
    for (scope, of) in asked.into_iter().filter(|(scope, _)| !caps.of(*scope).is_open()) {
        // A store that fails here will fail, and say so, at the next append.
        let Ok(spent) = setup.store.spent(of).await else { continue };
        if is_news(state, scope, caps.of(scope), spent) {
            events.push(Event::SpendingSeen { scope, spent });
        }
    }
    events
}

fn is_news(state: &State, scope: CapScope, cap: Cap, spent: Spending) -> bool {
    let known = state.spending(scope);
    // Less than is known: what was spent yesterday does not count any more.
    let less = known.micro_usd > spent.micro_usd || known.tokens > spent.tokens;
    !state.seen.contains_key(&scope) || cap.is_reached(known) != cap.is_reached(spent) || less
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: u64) -> Spending {
        Spending { tokens, micro_usd: 0 }
    }

    #[test]
    fn only_what_changes_something_is_news() {
        let cap = Cap { tokens: Some(100), micro_usd: None };
        let mut state = State::default();
        assert!(is_news(&state, CapScope::Day, cap, tokens(0)), "never seen");
        state.seen.insert(CapScope::Day, Seen { spent: tokens(40), own: tokens(0) });
        assert!(!is_news(&state, CapScope::Day, cap, tokens(40)));
        assert!(!is_news(&state, CapScope::Day, cap, tokens(99)), "others spend, and there is some left");
        assert!(is_news(&state, CapScope::Day, cap, tokens(100)), "others have reached it");
        assert!(is_news(&state, CapScope::Day, cap, tokens(39)), "a new day");
        state.totals.usage.input = 70;
        assert!(!is_news(&state, CapScope::Day, cap, tokens(110)), "what was spent here is known");
        assert!(is_news(&state, CapScope::Day, cap, tokens(0)), "a new day");
    }
}
