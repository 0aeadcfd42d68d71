//! Which tool call may start now.

use crate::*;

/// The first call of `round`, in call order, that may start.
pub fn startable(round: &Round, profile: &ToolProfile) -> Option<CallId> {
    let running = round.calls.iter().filter(|call| matches!(call.phase, Phase::Running { .. })).count();
    if running >= profile.max_parallel.max(1) as usize {
        return None;
    }
    let may_start = |(place, call): &(usize, &Call)| {
        call.phase == Phase::Allowed
            && message_allows(round, call, profile.start)
            && order_allows(&round.calls[..*place], call, running, profile.order)
    };
    round.calls.iter().enumerate().find(may_start).map(|(_, call)| call.id.clone())
}

/// A writer waits for the whole message, unless the profile says otherwise: a cut stream must not have changed anything.
fn message_allows(round: &Round, call: &Call, start: ToolStart) -> bool {
    match start {
        _ if round.ended.is_some() => true,
        ToolStart::BlockEnd => true,
        ToolStart::ReadersAtBlockEnd => !call.writes(),
        ToolStart::MessageEnd => false,
    }
}

/// A reader waits for the writers before it, a writer for everything before it: each sees what the model thinks it sees.
fn order_allows(before: &[Call], call: &Call, running: usize, order: ToolOrder) -> bool {
    match order {
        ToolOrder::All => true,
        ToolOrder::Serial => running == 0 && before.iter().all(Call::is_done),
        ToolOrder::Partition if call.writes() => running == 0 && before.iter().all(Call::is_done),
        ToolOrder::Partition => before.iter().all(|earlier| earlier.is_done() || !earlier.writes()),
    }
}
