//! The figures side by side: floor, binary, their ratio, and what is aimed at.

use super::Samples;
use super::sample::{Sample, median, rounds};
use super::scenario::{SESSIONS, Scenario};

/// One line of the table: what, in which unit, how it is got from a scenario's samples, and the aim.
struct Line {
    what: &'static str,
    unit: &'static str,
    scenario: Scenario,
    figure: fn(&[Sample]) -> Option<f64>,
    aim: &'static str,
}

const fn line(
    what: &'static str,
    unit: &'static str,
    scenario: Scenario,
    figure: fn(&[Sample]) -> Option<f64>,
    aim: &'static str,
) -> Line {
    Line { what, unit, scenario, figure, aim }
}

fn of(samples: &[Sample], pick: fn(&Sample) -> f64) -> Option<f64> {
    median(samples.iter().map(pick).collect())
}

fn all_rounds(samples: &[Sample]) -> Option<f64> {
    median(rounds(samples)[0].clone())
}

fn first_rounds(samples: &[Sample]) -> Option<f64> {
    median(rounds(samples)[1].clone())
}

fn last_rounds(samples: &[Sample]) -> Option<f64> {
    median(rounds(samples)[2].clone())
}

fn connections(samples: &[Sample]) -> Option<f64> {
    of(samples, |sample| sample.connections as f64)
}

const LINES: [Line; 20] = [
    line("start → first request", "ms", Scenario::Plain, |s| of(s, |s| s.start_ms), "≤ 15"),
    line("last byte → exit", "ms", Scenario::Plain, |s| of(s, |s| s.exit_ms), "≤ 5"),
    line("one answer: CPU", "s", Scenario::Plain, |s| of(s, |s| s.cpu_s), ""),
    line("one answer: peak memory", "MB", Scenario::Plain, |s| of(s, |s| s.peak_mb), ""),
    line("a round of 20 (read 4 KB)", "ms", Scenario::Read20, all_rounds, "≤ 0.9"),
    line("connections of a session", "", Scenario::Read20, connections, "1"),
    line("a round of 100", "ms", Scenario::Read100, all_rounds, "≤ 0.9"),
    line("  rounds 1–10", "ms", Scenario::Read100, first_rounds, ""),
    line("  rounds 91–100", "ms", Scenario::Read100, last_rounds, "≤ 1.2"),
    line("100 rounds: CPU", "s", Scenario::Read100, |s| of(s, |s| s.cpu_s), "≤ 0.10"),
    line("100 rounds: peak memory", "MB", Scenario::Read100, |s| of(s, |s| s.peak_mb), "≤ 20"),
    line("100 rounds: the server's own", "ms", Scenario::Read100, |s| of(s, |s| s.server_ms), ""),
    line("a round that writes", "ms", Scenario::Write20, all_rounds, ""),
    line("a round that runs a command", "ms", Scenario::Bash20, all_rounds, ""),
    line("2 MB in 20-byte deltas: CPU", "s", Scenario::Stream, |s| of(s, |s| s.cpu_s), ""),
    line("  its peak memory", "MB", Scenario::Stream, |s| of(s, |s| s.peak_mb), ""),
    line("  from request to last byte", "s", Scenario::Stream, |s| of(s, |s| s.active_s), ""),
    line("200 sessions × 10 rounds", "/s", Scenario::Sessions, |s| of(s, |s| SESSIONS as f64 / s.active_s), "≥ 400"),
    line("  their CPU", "s", Scenario::Sessions, |s| of(s, |s| s.cpu_s), ""),
    line("  their peak memory", "MB", Scenario::Sessions, |s| of(s, |s| s.peak_mb), "≤ 60"),
];

pub fn print(samples: &Samples, binary_mb: f64) {
    println!("{:<32} {:>10} {:>10} {:>7}  aim", "medians", "floor", "windlass", "ratio");
    for line in &LINES {
        let figure = |subject| samples.get(&(line.scenario, subject)).and_then(|samples| (line.figure)(samples));
        print_line(line.what, line.unit, figure("floor"), figure("windlass"), line.aim);
    }
    let over = |subject| over_plain(samples, subject);
    print_line("2 MB in deltas: CPU over plain", "s", over("floor"), over("windlass"), "≤ 0.15");
    println!("{:<32} {:>10} {:>10.1} {:>7}  {:<7} MB", "the binary", "", binary_mb, "", "≤ 40");
    for scenario in [Scenario::Read100, Scenario::Write20, Scenario::Bash20] {
        let runs = samples.get(&(scenario, "windlass")).map_or(&[][..], Vec::as_slice);
        if let Some(syncs) = runs.iter().find_map(|sample| sample.syncs) {
            println!("fsyncs of {}: {syncs}", scenario.name());
        }
    }
}

/// What the long answer costs more than a short one.
fn over_plain(samples: &Samples, subject: &'static str) -> Option<f64> {
    let cpu = |scenario| samples.get(&(scenario, subject)).and_then(|samples| of(samples, |sample| sample.cpu_s));
    Some(cpu(Scenario::Stream)? - cpu(Scenario::Plain)?)
}

fn print_line(what: &str, unit: &str, floor: Option<f64>, own: Option<f64>, aim: &str) {
    let Some(own) = own else { return };
    let ratio = floor.filter(|floor| *floor > 0.0).map_or(String::new(), |floor| format!("{:.1}×", own / floor));
    let floor = floor.map_or(String::new(), shown);
    println!("{what:<32} {floor:>10} {:>10} {ratio:>7}  {aim:<7} {unit}", shown(own));
}

/// Three digits that matter.
fn shown(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middle if middle >= 10.0 => format!("{figure:.1}"),
        one if one >= 1.0 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        assert_eq!([0.0912, 1.234, 12.34, 1438.2].map(shown), ["0.091", "1.23", "12.3", "1438"]);
    }

    #[test]
    fn every_scenario_has_a_line() {
        for scenario in super::super::scenario::ALL {
            assert!(LINES.iter().any(|line| line.scenario == scenario), "{}", scenario.name());
        }
    }

    #[test]
    fn the_long_answer_is_counted_over_the_short_one() {
        let cpu = |cpu_s| vec![Sample { cpu_s, ..Sample::default() }];
        let samples = [((Scenario::Plain, "floor"), cpu(0.01)), ((Scenario::Stream, "floor"), cpu(0.05))].into();
        assert!((over_plain(&samples, "floor").unwrap() - 0.04).abs() < 1e-9);
        assert_eq!(over_plain(&samples, "windlass"), None);
    }
}
