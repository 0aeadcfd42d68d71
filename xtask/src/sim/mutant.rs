//! Brains that make one mistake each. The simulator is only worth what it catches, so each mistake is put back and
//! must be found; they are made around the kernel, not in it.

use super::storm;
use windlass_kernel::*;

/// The kernel, or the kernel with one mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brain(pub Option<Mutant>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    FinishingBeforeInterrupt,
    TurnBeforeIdle,
    NoWorkIds,
    DeadStreamDropped,
    DeadStreamDroppedWriters,
    InputOnlyQueued,
    NoReopened,
    EndlessChecks,
    WriterPasses,
    CompletionOrder,
    UnknownRerun,
    NoGrace,
    InterruptLeavesCalls,
    CarelessSplit,
    NoteUndoesInterrupt,
    ChildLeftAlone,
    LimitOpensTurns,
    BlocksAreProgress,
    SwitchKeepsCounts,
    NoWayBack,
    StallsWithoutEnd,
    StallIsATurn,
    SnipsAgain,
    PauseForgotten,
    CapsIgnored,
    WantedIsTaken,
    RepairIsAnObjection,
    RetryForgetsChange,
    CutIsExpectedCached,
    /// Not a mistake for pairs: shown to be safe.
    WritersAtBlockEnd,
}

impl Mutant {
    pub const ALL: [Mutant; 30] = {
        use Mutant::*;
        [
            FinishingBeforeInterrupt,
            TurnBeforeIdle,
            NoWorkIds,
            DeadStreamDropped,
            DeadStreamDroppedWriters,
            InputOnlyQueued,
            NoReopened,
            EndlessChecks,
            WriterPasses,
            CompletionOrder,
            UnknownRerun,
            NoGrace,
            InterruptLeavesCalls,
            CarelessSplit,
            NoteUndoesInterrupt,
            ChildLeftAlone,
            LimitOpensTurns,
            BlocksAreProgress,
            SwitchKeepsCounts,
            NoWayBack,
            StallsWithoutEnd,
            StallIsATurn,
            SnipsAgain,
            PauseForgotten,
            CapsIgnored,
            WantedIsTaken,
            RepairIsAnObjection,
            RetryForgetsChange,
            CutIsExpectedCached,
            WritersAtBlockEnd,
        ]
    };

    /// The mistake in words.
    pub fn words(self) -> &'static str {
        match self {
            Mutant::FinishingBeforeInterrupt => "a turn that is finishing is left alone, interrupted or not",
            Mutant::TurnBeforeIdle => "without a turn there is nothing to do",
            Mutant::NoWorkIds => "the model's reports name no work",
            Mutant::DeadStreamDropped => "a dead stream drops its message although its tools ran",
            Mutant::DeadStreamDroppedWriters => "the same, with writers at block end",
            Mutant::InputOnlyQueued => "input that arrives while finishing is only queued",
            Mutant::NoReopened => "nothing says that the process died",
            Mutant::EndlessChecks => "stop checks are asked again without limit",
            Mutant::WriterPasses => "a writer passes calls made before it",
            Mutant::CompletionOrder => "results stand in order of completion",
            Mutant::UnknownRerun => "a call whose outcome is unknown runs again",
            Mutant::NoGrace => "nobody answers for a room that is deaf",
            Mutant::InterruptLeavesCalls => "an interrupt leaves calls open that never began",
            Mutant::CarelessSplit => "compaction parts a call from its result",
            Mutant::NoteUndoesInterrupt => "a note opens a turn although the user interrupted",
            Mutant::ChildLeftAlone => "a call that lives on elsewhere is not taken up again in a halted turn",
            Mutant::LimitOpensTurns => "input opens a turn that the same limit ends, again and again",
            Mutant::BlocksAreProgress => "a block of a message that never ends counts as progress",
            Mutant::SwitchKeepsCounts => "the fallback model inherits the failures of the one before",
            Mutant::NoWayBack => "a new turn goes on with the fallback model",
            Mutant::StallsWithoutEnd => "an attempt that stalls is made again without end",
            Mutant::StallIsATurn => "an attempt that stalls counts as a turn",
            Mutant::SnipsAgain => "results are left out again and again",
            Mutant::PauseForgotten => "a crash forgets that the turn waits at a cap",
            Mutant::CapsIgnored => "a cap that is reached is passed over",
            Mutant::WantedIsTaken => "an answer that is to fit a schema is taken as it is",
            Mutant::RepairIsAnObjection => "a repair uses up an objection of the stop checks",
            Mutant::RetryForgetsChange => "a retry forgets that the prompt's beginning changed",
            Mutant::CutIsExpectedCached => "messages that were cut are expected in the cache",
            Mutant::WritersAtBlockEnd => "writers at block end (no mistake: safe for pairs)",
        }
    }

    pub fn is_safe(self) -> bool {
        self == Mutant::WritersAtBlockEnd
    }
}

impl Brain {
    /// Whether somebody answers for rooms that do not hear they are called back.
    pub fn answers_for_the_deaf(self) -> bool {
        self.0 != Some(Mutant::NoGrace)
    }

    /// The profile a world with this brain must have for the mistake to be possible at all.
    pub fn bend(self, profile: &mut Profile) {
        match self.0 {
            Some(Mutant::DeadStreamDroppedWriters | Mutant::WritersAtBlockEnd) => {
                profile.tools.start = ToolStart::BlockEnd;
            }
            Some(Mutant::WriterPasses) => profile.tools.order = ToolOrder::Partition,
            _ => {}
        }
    }

    pub fn fold(self, records: &[Record]) -> State {
        let mut state = State::default();
        for record in records {
            self.apply(&mut state, record);
        }
        state
    }

    pub fn next_step(self, state: &State) -> Option<Step> {
        match self.0 {
            Some(Mutant::FinishingBeforeInterrupt)
                if state.turn.as_ref().is_some_and(|turn| turn.finishing.is_some()) =>
            {
                None
            }
            Some(Mutant::TurnBeforeIdle) if state.turn.is_none() => None,
            Some(Mutant::EndlessChecks) => match state.next_step()? {
                Step::Finish { end: End::Done, .. } => Some(Step::Finish { end: End::Done, checks: true }),
                step => Some(step),
            },
            Some(Mutant::WriterPasses) => state.next_step().or_else(|| writer(state)),
            Some(Mutant::InterruptLeavesCalls) => {
                state.next_step().filter(|step| !matches!(step, Step::Close { why: CloseReason::Interrupted, .. }))
            }
            Some(Mutant::ChildLeftAlone) => match state.next_step()? {
                Step::RunTool { call } if is_halted(state) => {
                    Some(Step::Close { calls: vec![call], why: CloseReason::Interrupted })
                }
                step => Some(step),
            },
            Some(mutant) => Some(storm::step(mutant, state.next_step()?)),
            None => state.next_step(),
        }
    }

    pub fn apply(self, state: &mut State, record: &Record) {
        match self.0 {
            Some(Mutant::NoWorkIds) => state.apply(&of_open_round(state, record)),
            Some(Mutant::DeadStreamDropped | Mutant::DeadStreamDroppedWriters) => {
                forget_calls(state, &record.event);
                state.apply(record);
            }
            Some(Mutant::NoReopened) if matches!(record.event, Event::Reopened { .. }) => {
                (state.head, state.epoch) = (record.seq, record.epoch);
            }
            Some(Mutant::UnknownRerun) => {
                state.apply(record);
                rerun_lost(state);
            }
            Some(Mutant::InputOnlyQueued) => {
                state.apply(record);
                if matches!(record.event, Event::TurnFinished { .. }) {
                    state.turn.take_if(|turn| turn.opened_by == record.seq);
                }
            }
            Some(Mutant::CompletionOrder) => {
                state.apply(record);
                for call in calls(state) {
                    call.sort_by_key(|call| !call.is_done());
                }
            }
            Some(Mutant::CarelessSplit) => {
                let compacting = state.compacting.is_some();
                state.apply(record);
                if compacting && state.compacting.is_none() && matches!(record.event, Event::Compacted { .. }) {
                    state.boundary = state.messages.len().saturating_sub(1 + state.profile.keep_last);
                }
            }
            Some(Mutant::NoteUndoesInterrupt) => {
                state.apply(record);
                let noted = state.turn.is_none() && state.pending.iter().any(|input| input.wakes);
                if noted && matches!(record.event, Event::TurnFinished { .. }) {
                    state.turn = opened(record);
                }
            }
            Some(Mutant::LimitOpensTurns) => {
                let pending = state.pending.clone();
                state.apply(record);
                if matches!(record.event, Event::TurnFinished { .. }) && state.pending.is_empty() && !pending.is_empty()
                {
                    state.messages.truncate(state.messages.len() - pending.len());
                    (state.pending, state.turn) = (pending, opened(record));
                }
            }
            Some(Mutant::BlocksAreProgress) => {
                state.apply(record);
                if matches!(record.event, Event::BlockFinished { .. }) {
                    state.reopens = 0;
                }
            }
            Some(mutant) => storm::apply(mutant, state, record),
            None => state.apply(record),
        }
    }
}

fn calls(state: &mut State) -> impl Iterator<Item = &mut Vec<Call>> {
    state.turn.iter_mut().filter_map(|turn| turn.round.as_mut()).map(|round| &mut round.calls)
}

fn is_halted(state: &State) -> bool {
    state.turn.as_ref().is_some_and(|turn| turn.halt.is_some())
}

fn writer(state: &State) -> Option<Step> {
    let turn = state.turn.as_ref().filter(|turn| turn.halt.is_none())?;
    let round = turn.round.as_ref().filter(|round| round.ended.is_some() && !round.aborted)?;
    let call = round.calls.iter().find(|call| call.phase == Phase::Allowed && call.writes())?;
    Some(Step::RunTool { call: call.id.clone() })
}

fn of_open_round(state: &State, record: &Record) -> Record {
    let mut record = record.clone();
    let open = state.turn.as_ref().and_then(|turn| turn.round.as_ref()).map(|round| round.work);
    if let Event::BlockFinished { work, .. }
    | Event::ModelFinished { work, .. }
    | Event::ModelFailed { work, .. }
    | Event::ModelCancelled { work, .. } = &mut record.event
    {
        *work = open.unwrap_or(*work);
    }
    record
}

fn forget_calls(state: &mut State, event: &Event) {
    let round = state.turn.as_mut().and_then(|turn| turn.round.as_mut());
    let Some(round) = round.filter(|round| round.ended.is_none()) else { return };
    let dies = match event {
        Event::ModelFailed { work, .. } => *work == round.work,
        Event::Reopened { .. } => true,
        _ => false,
    };
    if dies {
        round.calls.clear();
    }
}

fn rerun_lost(state: &mut State) {
    for call in calls(state).flatten() {
        let rejoins = call.plan.as_ref().is_some_and(|plan| plan.on_crash == OnCrash::Rejoin);
        if matches!(call.phase, Phase::Lost { .. }) && !rejoins {
            call.phase = Phase::Allowed;
        }
    }
}

/// A turn as a note that arrived with `record` would open it.
fn opened(record: &Record) -> Option<Box<Turn>> {
    let event = Event::Noted { input: InputId(record.id.0), text: String::new(), wakes: true };
    let mut state = State::default();
    state.apply(&Record { event, ..record.clone() });
    state.turn
}
