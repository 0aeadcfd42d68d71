//! What the watch keeps of bad weather: failures in a row, the model that speaks, what was left out of the prompt, and
//! a window that is full.

use super::watch::Seen;
use windlass_kernel::*;

/// Results of fewer bytes stay.
const MIN_LEFT_OUT_BYTES: usize = 256;

#[derive(Default)]
pub struct Weather {
    model: String,
    speaking: Option<String>,
    window: Option<u64>,
    /// Tokens of the newest whole answer's context; 0 once the messages before it were cut.
    context: u64,
    turn: Turns,
}

/// Of the open turn.
#[derive(Default)]
struct Turns {
    begun: u32,
    errors: u32,
    stalls: u32,
    overloads: u32,
    first: Option<ModelFailure>,
    newest: Option<FailureKind>,
    wait_ms: Option<u64>,
    fell_back: bool,
    /// Why the first model gave way.
    before: Option<String>,
    snips: u32,
    compactions: u32,
    cut: bool,
}

impl Weather {
    pub fn turn_opens(&mut self) {
        self.turn = Turns::default();
    }

    /// Model calls that began in the turn, whatever came of them.
    pub fn begun(&self) -> u32 {
        self.turn.begun
    }

    pub fn set_model(&mut self, model: &str) {
        (self.model, self.speaking) = (model.to_owned(), None);
    }

    pub fn messages_were_cut(&mut self) {
        self.context = 0;
    }

    pub fn called(&mut self, called: &ModelCalled) -> Seen {
        self.window = called.window;
        let name = format!("{}/{}", called.provider, called.model);
        let wanted = self.speaking.as_ref().unwrap_or(&self.model);
        if called.role == ModelRole::Main && name != *wanted {
            return Err(format!("{name} is called where {wanted} should speak"));
        }
        Ok(())
    }

    pub fn answered(&mut self, stop: StopReason, usage: &Usage) {
        self.context = usage.context();
        let Turns { begun, fell_back, snips, compactions, .. } = self.turn;
        let before = self.turn.before.take();
        let cut = stop == StopReason::MaxTokens;
        self.turn = Turns { begun, fell_back, before, snips, compactions, cut, ..Turns::default() };
    }

    pub fn failed(&mut self, error: &ModelFailure) {
        let turn = &mut self.turn;
        turn.errors += 1;
        turn.newest = Some(error.kind);
        turn.stalls += u32::from(error.kind == FailureKind::Stalled);
        turn.overloads = if error.kind == FailureKind::Overloaded { turn.overloads + 1 } else { 0 };
        turn.wait_ms = error.retry_after_ms;
        let outranks = |first: &ModelFailure| first.kind.is_worth_retrying() && !error.kind.is_worth_retrying();
        if turn.first.as_ref().is_none_or(outranks) {
            turn.first = Some(error.clone());
        }
    }

    /// Trying the same model again is in vain, or takes too long.
    fn is_used_up(&self, profile: &Profile) -> bool {
        let (turn, retry) = (&self.turn, &profile.retry);
        turn.errors >= profile.max_model_errors
            || turn.stalls > retry.max_stalls
            || turn.wait_ms.is_some_and(|wait| wait > retry.max_wait_ms)
    }

    /// The model that must take over now.
    fn due<'a>(&self, profile: &'a Profile) -> Option<&'a str> {
        let other = profile.fallback.as_ref().map(|fallback| fallback.model.as_str())?;
        let is_speaking = self.speaking.as_ref().unwrap_or(&self.model) == other;
        let failed = self.turn.newest.is_some_and(FailureKind::is_worth_retrying);
        let overloaded = self.turn.overloads >= profile.retry.overloads_before_fallback;
        let due = failed && !is_speaking && !self.turn.fell_back && (overloaded || self.is_used_up(profile));
        due.then_some(other)
    }

    fn is_to_go_back(&self, profile: &Profile) -> bool {
        let stays = profile.fallback.as_ref().is_some_and(|fallback| fallback.back == FallbackBack::Never);
        self.speaking.is_some() && self.turn.begun == 0 && !self.turn.fell_back && !stays
    }

    pub fn may_call(&mut self, profile: &Profile) -> Seen {
        let turn = &self.turn;
        if let Some(kind) = turn.newest {
            let tries = format!("{} failures, {} of silence, newest {kind:?}", turn.errors, turn.stalls);
            if !kind.is_worth_retrying() || self.is_used_up(profile) {
                return Err(format!("a model call begins after {tries}, asked to wait {:?}", turn.wait_ms));
            }
        }
        if let Some(other) = self.due(profile) {
            return Err(format!("a model call begins where {other} should have taken over"));
        }
        if self.is_to_go_back(profile) {
            return Err("a new turn goes on with the fallback model".into());
        }
        self.turn.begun += 1;
        Ok(())
    }

    pub fn switches(&mut self, model: &str, why: SwitchReason, profile: &Profile) -> Seen {
        let right = match why {
            SwitchReason::Back => model == self.model && self.is_to_go_back(profile),
            SwitchReason::Overloaded | SwitchReason::Failed => self.due(profile) == Some(model),
        };
        if !right {
            return Err(format!("{model} takes over ({why:?}) without a reason, or a second time in the turn"));
        }
        self.speaking = (model != self.model).then(|| model.to_owned());
        let turn = &mut self.turn;
        turn.fell_back = self.speaking.is_some();
        turn.before = turn.first.take().map(|first| first.message).filter(|_| turn.fell_back);
        (turn.errors, turn.stalls, turn.overloads, turn.newest, turn.wait_ms) = (0, 0, 0, None, None);
        Ok(())
    }

    /// Which results are to be left out, and how many bytes each had.
    pub fn snips(&mut self, state: &State, calls: &[CallId]) -> Result<Vec<usize>, String> {
        if self.turn.snips > 0 || self.turn.newest != Some(FailureKind::TooLong) {
            return Err("results are left out twice in a turn, or for no reason".into());
        }
        let long = long_results(state);
        let half = long.iter().map(|(_, bytes)| bytes).sum::<usize>().div_ceil(2);
        let (mut ids, mut bytes, mut free) = (vec![], vec![], 0);
        for (id, size) in long {
            if free >= half {
                break;
            }
            free += size;
            ids.push(id);
            bytes.push(size);
        }
        if calls != ids {
            return Err(format!("{calls:?} are left out where {ids:?} are half of the bytes"));
        }
        self.turn.snips += 1;
        (self.turn.first, self.turn.newest) = (None, None);
        Ok(bytes)
    }

    fn is_full(&self, profile: &Profile) -> bool {
        let percent = u64::from(profile.compact_at_percent);
        self.window.is_some_and(|window| self.context * 100 >= window * percent)
    }

    pub fn compacts(&mut self, profile: &Profile) -> Seen {
        if !self.turn.cut || self.turn.compactions > 0 || !self.is_full(profile) {
            return Err(format!("a compaction that nobody asked for, the {}. of the turn", self.turn.compactions + 1));
        }
        self.turn.compactions += 1;
        Ok(())
    }

    pub fn may_end(&self, end: &End, state: &State) -> Seen {
        let (turn, profile) = (&self.turn, &state.profile);
        match (end, turn.newest) {
            (End::OutputLimit { .. }, _) if turn.compactions == 0 && self.is_full(profile) => {
                Err("a turn gives up at the output limit although the window is full".into())
            }
            (End::ModelError { .. }, None) => Err("a turn gives up on a model that has not failed".into()),
            (End::ModelError { .. }, Some(kind)) if kind.is_worth_retrying() && !self.is_used_up(profile) => {
                Err(format!("a turn gives up after {} failures", turn.errors))
            }
            (End::ModelError { .. }, _) if self.due(profile).is_some() => {
                Err("a turn gives up although another model could speak".into())
            }
            (End::ModelError { .. }, Some(FailureKind::TooLong))
                if turn.snips == 0 && !long_results(state).is_empty() =>
            {
                Err("a turn gives up although results could be left out".into())
            }
            (End::ModelError { message }, _)
                if !turn.first.as_ref().is_some_and(|first| message.contains(&first.message))
                    || !turn
                        .before
                        .as_ref()
                        .or(turn.first.as_ref().map(|it| &it.message))
                        .is_some_and(|it| message.starts_with(it)) =>
            {
                Err(format!("{message:?} is not the first true cause: {:?}", turn.first))
            }
            _ => Ok(()),
        }
    }
}

/// The results worth leaving out, oldest first.
fn long_results(state: &State) -> Vec<(CallId, usize)> {
    let blocks = state.messages[state.boundary..].iter().flat_map(|message| &message.content);
    let results = blocks.filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some((result.tool_use_id.clone(), text_of(&result.content).len())),
        _ => None,
    });
    results.filter(|(_, bytes)| *bytes >= MIN_LEFT_OUT_BYTES).collect()
}

/// Nothing but the results of `calls` may be other than it was.
pub fn only_left_out(before: &[std::sync::Arc<Message>], after: &[std::sync::Arc<Message>], calls: &[CallId]) -> Seen {
    for (before, after) in before.iter().zip(after) {
        let same = |(before, after): (&ContentBlock, &ContentBlock)| match (before, after) {
            (ContentBlock::ToolResult(before), ContentBlock::ToolResult(after)) => {
                let (call, is_error) = (&before.tool_use_id, before.is_error);
                let kept = before.content == after.content || calls.contains(call);
                *call == after.tool_use_id && is_error == after.is_error && kept
            }
            _ => before == after,
        };
        if before.content.len() != after.content.len() || !before.content.iter().zip(&after.content).all(same) {
            return Err(format!("leaving results out changed {before:?} to {after:?}"));
        }
    }
    Ok(())
}
