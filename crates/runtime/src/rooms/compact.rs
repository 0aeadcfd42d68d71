//! Has the older part of the conversation summed up by a model call of its own.

use crate::Setup;
use crate::briefing::{Speech, Summary};
use crate::hooking::{self, Hooking};
use crate::listening::Listening;
use crate::report::{Item, Reporter};
use crate::rooms::model::backoff;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;
use windlass_hooks::{Decision, EventName, Origin, PreCompact, Trigger};
use windlass_kernel::*;

/// Why there is no summary, and what the attempt took.
struct Failed {
    message: String,
    error: Option<Box<ModelFailure>>,
    spent: Spent,
}

/// Hooks that want to hear of the compaction first.
pub(crate) struct Asked {
    hooking: Hooking,
    origin: Origin,
    trigger: Trigger,
    instructions: String,
}

impl Asked {
    pub fn of(setup: &Setup, session: SessionId, state: &State) -> Option<Asked> {
        let wish = state.compaction_asked.as_ref();
        let (trigger, word) = if wish.is_some() { (Trigger::Manual, "manual") } else { (Trigger::Auto, "auto") };
        let hooking = setup.hooking.as_ref().filter(|hooking| hooking.wants(EventName::PreCompact, word))?.clone();
        let instructions = wish.and_then(|wish| wish.instructions.clone()).unwrap_or_default();
        Some(Asked { hooking, origin: hooking::origin(session, state), trigger, instructions })
    }

    /// Why the compaction does not take place, if hooks are against it.
    async fn objection(self, cancel: &CancellationToken, reporter: &Reporter) -> Option<String> {
        let Asked { hooking, origin, trigger, instructions } = self;
        let event = windlass_hooks::Event::PreCompact(PreCompact { trigger, custom_instructions: instructions });
        let (outcome, facts) = hooking.ask(event, &origin, cancel).await;
        reporter.send(facts.into_iter().map(Item::Fact).collect(), vec![]).await;
        match outcome.decision {
            Decision::Block { hook, reason } | Decision::Stop { hook, reason } => {
                Some(format!("the hook `{hook}` does not let it take place: {reason}"))
            }
            _ => None,
        }
    }
}

pub(crate) async fn compact(summary: Summary, asked: Option<Asked>, cancel: CancellationToken, reporter: Reporter) {
    let work = reporter.work;
    let objection = match asked {
        Some(asked) => asked.objection(&cancel, &reporter).await,
        None => None,
    };
    if let Some(message) = objection {
        return reporter.fact(Event::CompactionFailed { work, message, error: None, spent: None }).await;
    }
    let Some(upto) = summary.upto else {
        let message = "there is no place to cut: the newest messages are kept as they are".into();
        return reporter.fact(Event::CompactionFailed { work, message, error: None, spent: None }).await;
    };
    let event = match sum_up(work, summary.speech, &cancel).await {
        Ok((text, spent)) => Event::Compacted { work, upto, summary: windlass_prompt::summary_message(&text), spent },
        Err(Failed { message, error, spent }) => {
            Event::CompactionFailed { work, message, error, spent: Some(Box::new(spent)) }
        }
    };
    reporter.fact(event).await;
}

/// The model's summary. A call it makes all the same is left out; no text at all is a failure.
async fn sum_up(work: Seq, speech: Speech, cancel: &CancellationToken) -> Result<(String, Spent), Failed> {
    let nothing = |message: String| Failed { message, error: None, spent: Spent::default() };
    let wait = backoff(&speech.retry, speech.failed, speech.retry_after_ms, work);
    if cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
        return Err(nothing("cancelled".into()));
    }
    let model = speech.model.map_err(nothing)?;
    let mut listening = Listening::to(&*model, speech.request, speech.prices);
    let mut blocks = vec![];
    loop {
        let Some(read) = cancel.run_until_cancelled(listening.stream.next()).await else {
            return Err(Failed { spent: listening.reckoned(), ..nothing("cancelled".into()) });
        };
        for item in listening.hear(work, read).0 {
            match item {
                Item::Fact(Event::BlockFinished { block, .. }) => blocks.push(block),
                Item::Fact(Event::ModelFinished { spent, .. }) => return summary_of(&blocks, spent),
                Item::Fact(Event::ModelFailed { error, spent, .. }) => {
                    return Err(Failed { message: error.message.clone(), error: Some(Box::new(error)), spent });
                }
                _ => {}
            }
        }
    }
}

fn summary_of(blocks: &[ContentBlock], spent: Spent) -> Result<(String, Spent), Failed> {
    let text = text_of(blocks);
    match text.trim().is_empty() {
        true => Err(Failed { message: "the model gave no summary".into(), error: None, spent }),
        false => Ok((text, spent)),
    }
}
