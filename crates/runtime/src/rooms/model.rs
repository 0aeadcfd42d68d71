//! Asks the model, and reports what it says as it says it.

use crate::briefing::Speech;
use crate::listening::Listening;
use crate::report::Reporter;
use futures_util::StreamExt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;

/// Time a stream has, after the message is whole, to end by itself so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(500);

pub(crate) async fn speak(speech: Speech, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
    let wait = backoff(&speech.retry, speech.failed, speech.retry_after_ms, work);
    if !wait.is_zero() && cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
        return reporter.fact(Event::ModelCancelled { work, spent: Spent::default() }).await;
    }
    let model = match speech.model {
        Ok(model) => model,
        Err(message) => return reporter.fact(failed(work, FailureKind::Invalid, message)).await,
    };
    let mut listening = Listening::to(&*model, speech.request, speech.prices);
    loop {
        let read = tokio::select! {
            biased;
            _ = cancel.cancelled() => {
                let spent = listening.reckoned();
                return reporter.fact(Event::ModelCancelled { work, spent }).await;
            }
            read = listening.stream.next() => read,
        };
        let (items, over) = listening.hear(work, read);
        reporter.send(items, vec![]).await;
        if over {
            break;
        }
    }
    let _ = tokio::time::timeout(DRAIN, async { while listening.stream.next().await.is_some() {} }).await;
}

/// How long to wait before an attempt that follows `failed` others. Spread by up to a quarter, so that sessions that
/// failed together do not come back together; by the work's number, for nothing here rolls dice.
pub(crate) fn backoff(retry: &Retry, failed: u32, retry_after_ms: Option<u64>, work: Seq) -> Duration {
    if failed == 0 {
        return Duration::ZERO;
    }
    // Asked to wait for nothing, one would use all attempts up at once.
    let wait_ms = retry_after_ms.filter(|asked| *asked > 0).unwrap_or_else(|| {
        let doubled = retry.base_ms.saturating_mul(1 << (failed - 1).min(20));
        doubled.saturating_add((doubled / 4).saturating_mul(work.0.wrapping_mul(0x9E37_79B9) % 256) / 256)
    });
    Duration::from_millis(wait_ms.min(retry.max_wait_ms))
}

fn failed(work: Seq, kind: FailureKind, message: String) -> Event {
    let error = ModelFailure { kind, message, status: None, retry_after_ms: None };
    Event::ModelFailed { work, error, spent: Spent::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_stay_within_a_quarter_and_the_limit() {
        let retry = Retry::default();
        let backoff = |failed, asked, work| backoff(&retry, failed, asked, Seq(work)).as_millis();
        assert_eq!(backoff(0, Some(5_000), 1), 0);
        for work in 1..100 {
            for (failed, base) in [(1, 500), (2, 1_000), (3, 2_000)] {
                let wait = backoff(failed, None, work);
                assert!((base..=base * 5 / 4).contains(&wait), "{failed} failures: {wait} ms");
            }
        }
        assert_eq!(backoff(1, Some(1_500), 9), 1_500);
        assert_eq!(backoff(2, Some(0), 9), backoff(2, None, 9));
        assert_eq!(backoff(1_000, None, 9), 60_000);
    }
}
