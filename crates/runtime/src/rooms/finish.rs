//! Asks the stop checks whether the turn may end.

use crate::StopCheck;
use crate::report::Reporter;
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;

pub(crate) async fn check(checks: Vec<StopCheck>, state: State, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
    let end = state.turn.as_ref().and_then(|turn| turn.finishing.as_ref()).map_or(End::Done, |it| it.end.clone());
    // A check may look at files or run tests: it has a thread of its own, and may be left behind there.
    let asked = tokio::task::spawn_blocking(move || checks.iter().find_map(|check| check(&state)));
    let event = tokio::select! {
        _ = cancel.cancelled() => Event::TurnFinished { work, end: End::Interrupted },
        objection = asked => match objection {
            Ok(Some(text)) => Event::StopBlocked { work, text },
            // A check that panics has no objection to make.
            Ok(None) | Err(_) => Event::TurnFinished { work, end },
        },
    };
    reporter.fact(event).await;
}
