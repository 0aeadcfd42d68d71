//! What many seeds amount to.

#[derive(Clone, Copy, Default)]
pub struct Counts {
    pub events: u64,
    pub crashes: u64,
    pub rounds: u64,
    pub tool_runs: u64,
    pub turns: u64,
    pub interrupts: u64,
    pub rejected: u64,
    pub switches: u64,
    pub snips: u64,
    pub pauses: u64,
    pub cache_breaks: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.crashes += other.crashes;
        self.rounds += other.rounds;
        self.tool_runs += other.tool_runs;
        self.turns += other.turns;
        self.interrupts += other.interrupts;
        self.rejected += other.rejected;
        self.switches += other.switches;
        self.snips += other.snips;
        self.pauses += other.pauses;
        self.cache_breaks += other.cache_breaks;
    }
}
