//! How one seed's world is inclined. Drawn per seed, so that over many seeds rare mixtures come up too.

use super::random::Random;
use windlass_kernel::*;

/// Tokens a message takes: in some worlds too few for a cache to be worth a word.
const SCALES: [u64; 2] = [1, 200];
/// The session's own model, and those it may fall back on.
pub const MODELS: [&str; 3] = ["m/own", "m/two", "m/three"];

/// `…_in`: happens once in so many occasions; 0 is never.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Rounds of chance before the world calms down.
    pub ticks: usize,
    /// Ask the ladder after each fact, not only after all that came in together.
    pub eager: bool,
    pub judging: Judging,
    pub stop_checks: StopChecks,
    pub crash_in: usize,
    /// Crashes there may be in all, so that every story ends.
    pub crashes_left: usize,
    pub hang_in: usize,
    pub deaf_in: usize,
    pub model_fails_in: usize,
    pub tool_fails_in: usize,
    /// A message calls tools.
    pub calls_in: usize,
    pub deny_in: usize,
    pub ask_in: usize,
    pub outside_in: usize,
    pub interrupt_in: usize,
    /// A tool use comes under an id that was used before.
    pub same_id_in: usize,
    /// People name things that are not, or not any more.
    pub mistakes_in: usize,
    /// A reply hits its output limit.
    pub cut_in: usize,
    /// An answer does not fit the wanted schema.
    pub unfit_in: usize,
    /// The system prompt or the tool list changes.
    pub drift_in: usize,
    /// The provider has lost what it kept.
    pub forgets_in: usize,
    /// Tokens a message takes, and the model's window in messages; 0: not known.
    pub scale: u64,
    pub window: u64,
}

/// Where calls are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judging {
    /// In the batch that begins it.
    AtOnce,
    /// In a room of its own.
    InRoom,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopChecks {
    Pass,
    BlockSometimes,
    BlockAlways,
}

impl Habits {
    pub fn draw(random: &mut Random) -> Habits {
        Habits {
            ticks: 30 + random.below(120),
            eager: random.coin(),
            judging: random.of(&[Judging::AtOnce, Judging::AtOnce, Judging::InRoom, Judging::Either]),
            stop_checks: random.of(&[StopChecks::Pass, StopChecks::BlockSometimes, StopChecks::BlockAlways]),
            crash_in: random.of(&[0, 3, 10, 40, 150]),
            crashes_left: 4 + random.below(20),
            hang_in: random.of(&[0, 0, 6, 25]),
            deaf_in: random.of(&[0, 2, 6]),
            model_fails_in: random.of(&[0, 2, 8, 8]),
            tool_fails_in: random.of(&[0, 2, 8]),
            calls_in: random.of(&[1, 1, 2, 4]),
            deny_in: random.of(&[0, 2, 10]),
            ask_in: random.of(&[0, 3, 10]),
            outside_in: random.of(&[3, 8, 20]),
            interrupt_in: random.of(&[0, 2, 3, 10]),
            same_id_in: random.of(&[0, 0, 12]),
            mistakes_in: random.of(&[10, 30]),
            cut_in: random.of(&[0, 0, 2]),
            unfit_in: random.of(&[0, 2, 4]),
            drift_in: random.of(&[0, 8, 50]),
            forgets_in: random.of(&[0, 10]),
            scale: random.of(&SCALES),
            window: random.of(&[0, 20, 60]),
        }
    }

    /// Nothing breaks any more: what is under way comes to its end.
    pub fn calm(&mut self) {
        self.crash_in = 0;
        self.hang_in = 0;
        self.deaf_in = 0;
        self.model_fails_in = 0;
        self.tool_fails_in = 0;
        self.deny_in = 0;
        self.ask_in = 0;
        self.calls_in = 0;
        self.interrupt_in = 0;
        self.same_id_in = 0;
        self.mistakes_in = 0;
        self.cut_in = 0;
        self.unfit_in = 0;
    }
}

/// One of the named profiles, with limits drawn near enough to be met.
pub fn profile(random: &mut Random, named: Option<&str>) -> Profile {
    let name = named.unwrap_or_else(|| random.of(&Profile::NAMES));
    let mut profile = Profile::named(name).expect("the name was looked at when it was read");
    if random.one_in(3) {
        profile.max_turns = 1 + random.below(12) as u32;
    }
    if random.one_in(3) {
        profile.max_stop_blocks = random.below(4) as u32;
    }
    if random.one_in(3) {
        profile.max_reopens = 1 + random.below(4) as u32;
    }
    if random.one_in(4) {
        profile.max_tool_error_rounds = Some(1 + random.below(3) as u32);
    }
    if random.one_in(8) {
        profile.max_session_tokens = Some((200 + random.below(4_000) as u64) * random.of(&SCALES));
    }
    if random.coin() {
        let back = random.of(&[FallbackBack::NextTurn, FallbackBack::NextTurn, FallbackBack::Never]);
        profile.fallback = Some(Fallback { model: random.of(&MODELS[1..]).into(), back });
    }
    if random.one_in(3) {
        profile.max_model_errors = 1 + random.below(6) as u32;
        profile.retry.max_stalls = random.below(3) as u32;
        profile.retry.overloads_before_fallback = 1 + random.below(3) as u32;
    }
    if random.one_in(4) {
        profile.caps = caps(random);
    }
    profile.compact_at_percent = random.of(&[90, 60, 20]);
    profile.keep_last = random.of(&[0, 1, 2, profile.keep_last]);
    profile.tools.max_parallel = random.of(&[1, 2, 5]);
    if random.one_in(4) {
        profile.tools.start = random.of(&[ToolStart::MessageEnd, ToolStart::ReadersAtBlockEnd, ToolStart::BlockEnd]);
        profile.tools.order = random.of(&[ToolOrder::Partition, ToolOrder::All, ToolOrder::Serial]);
        profile.tools.on_sibling_error = random.of(&[OnSiblingError::Continue, OnSiblingError::AbortSiblings]);
    }
    profile
}

/// Caps near enough to be met.
pub fn caps(random: &mut Random) -> Caps {
    let mut cap = || match random.below(4) {
        0 => Cap { tokens: Some(random.below(4_000) as u64 * random.of(&SCALES)), micro_usd: None },
        1 => Cap { tokens: None, micro_usd: Some(random.below(20_000) as u64) },
        _ => Cap::default(),
    };
    Caps { session: cap(), day: cap(), tree: cap() }
}
