//! When a tool may start, by the profile.

use super::watch::Seen;
use windlass_kernel::*;

/// Holds the start of call `id` against the profile's promise.
pub fn may_start(state: &State, id: &CallId) -> Seen {
    let tools = &state.profile.tools;
    let round = state.turn.as_ref().and_then(|turn| turn.round.as_ref());
    let Some(round) = round else { return Err(format!("call {id} begins outside a round")) };
    let Some(place) = round.calls.iter().position(|call| call.id == *id) else {
        return Err(format!("call {id} begins and is not of this round"));
    };
    let (call, before) = (&round.calls[place], &round.calls[..place]);
    let running: Vec<_> = round.calls.iter().filter(|call| matches!(call.phase, Phase::Running { .. })).collect();
    if running.len() >= tools.max_parallel.max(1) as usize {
        return Err(format!("call {id} begins as number {} of {}", running.len() + 1, tools.max_parallel));
    }
    if round.aborted {
        return Err(format!("call {id} begins although a sibling failed"));
    }
    if round.ended == Some(Ended::Cut) && call.writes() {
        return Err(format!("writer {id} begins although its message was cut"));
    }
    let early = match tools.start {
        _ if round.ended.is_some() => false,
        ToolStart::MessageEnd => true,
        ToolStart::ReadersAtBlockEnd => call.writes(),
        ToolStart::BlockEnd => false,
    };
    if early {
        return Err(format!("call {id} begins before its message ended"));
    }
    let out_of_turn = match tools.order {
        ToolOrder::All => false,
        ToolOrder::Serial => !running.is_empty() || !before.iter().all(Call::is_done),
        ToolOrder::Partition if call.writes() => !running.is_empty() || !before.iter().all(Call::is_done),
        ToolOrder::Partition => before.iter().any(|call| call.writes() && !call.is_done()),
    };
    if out_of_turn { Err(format!("call {id} begins before calls it must wait for")) } else { Ok(()) }
}
