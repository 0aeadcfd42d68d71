//! Has the older part of the conversation summed up by a model call of its own.

use crate::briefing::Summary;
use crate::report::Reporter;
use futures_util::StreamExt;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_kernel::*;
use windlass_llm::ModelEvent;

pub(crate) async fn compact(summary: Summary, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
    let Some(upto) = summary.upto else {
        let message = "there is no place to cut: the newest messages are kept as they are".into();
        return reporter.fact(Event::CompactionFailed { work, message }).await;
    };
    let event = tokio::select! {
        _ = cancel.cancelled() => Err("cancelled".to_owned()),
        said = sum_up(summary) => said,
    };
    reporter
        .fact(match event {
            Ok((text, spent)) => {
                Event::Compacted { work, upto, summary: windlass_prompt::summary_message(&text), spent }
            }
            Err(message) => Event::CompactionFailed { work, message },
        })
        .await;
}

/// The model's summary. A call it makes all the same is left out; no text at all is a failure.
async fn sum_up(summary: Summary) -> Result<(String, Spent), String> {
    let speech = summary.speech;
    let sent = Instant::now();
    let mut stream = speech.model?.call(speech.request);
    let (mut blocks, mut spent) = (vec![], Spent::default());
    while let Some(read) = stream.next().await {
        for event in read.map_err(|failure| failure.message)? {
            match event {
                ModelEvent::BlockFinished { block, .. } => blocks.push(block),
                ModelEvent::Delta { .. } if spent.first_token_ms.is_none() => {
                    spent.first_token_ms = Some(sent.elapsed().as_millis() as u64);
                }
                ModelEvent::Finished { usage, .. } => {
                    spent.usage = usage;
                    // No usage is no price: nobody said what the call took.
                    let prices = speech.prices.filter(|_| usage != Usage::default());
                    spent.cost_micro_usd = prices.map(|prices| prices.cost_micro_usd(&usage));
                }
                _ => {}
            }
        }
    }
    let text = text_of(&blocks);
    if text.trim().is_empty() { Err("the model gave no summary".into()) } else { Ok((text, spent)) }
}
