//! One run and what it took: the process's own figures joined with the server's log.

use crate::mock::Request;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds at each end that are looked at apart.
const ENDS: usize = 10;

/// What `measure` wrote: CLOCK_MONOTONIC nanoseconds, CPU of the process and its children, peak memory.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Report {
    pub spawned: u64,
    pub exited: u64,
    pub cpu_us: u64,
    pub peak_kb: u64,
    pub code: i32,
}

/// The figures of one run; times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// From the start of the process to its first request.
    pub start_ms: f64,
    /// From an answer's last byte to the next request, for each round in turn.
    pub rounds_ms: Vec<f64>,
    /// From the last answer's last byte to the end of the process.
    pub exit_ms: f64,
    pub cpu_s: f64,
    pub peak_mb: f64,
    /// From the first request to the last byte of the last answer.
    pub active_s: f64,
    /// The server's own share of `active_s`, summed.
    pub server_ms: f64,
    pub connections: usize,
    pub requests: usize,
    /// Commits that were fsynced, as the log implies them.
    pub syncs: Option<usize>,
}

const NS_PER_MS: f64 = 1e6;

impl Sample {
    pub fn of(report: Report, requests: &[Request]) -> Sample {
        let span = |from: u64, to: u64| to.saturating_sub(from) as f64 / NS_PER_MS;
        let first = requests.iter().map(|request| request.at.body).min().unwrap_or(report.spawned);
        let last = requests.iter().map(|request| request.at.last).max().unwrap_or(report.exited);
        let mut sessions: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
        requests.iter().for_each(|request| sessions.entry(&request.sid).or_default().push(request));
        let mut rounds_ms = Vec::new();
        for session in sessions.values_mut() {
            session.sort_by_key(|request| request.at.body);
            rounds_ms.extend(session.windows(2).map(|pair| span(pair[0].at.last, pair[1].at.body)));
        }
        Sample {
            start_ms: span(report.spawned, first),
            rounds_ms,
            exit_ms: span(last, report.exited),
            cpu_s: report.cpu_us as f64 / 1e6,
            peak_mb: report.peak_kb as f64 / 1024.0,
            active_s: span(first, last) / 1e3,
            server_ms: requests.iter().map(|request| span(request.at.body, request.at.last)).sum(),
            connections: requests.iter().map(|request| request.conn).collect::<BTreeSet<_>>().len(),
            requests: requests.len(),
            syncs: None,
        }
    }
}

/// The rounds of many runs: all, the first ten of each, the last ten of each.
pub fn rounds(samples: &[Sample]) -> [Vec<f64>; 3] {
    let all = samples.iter().flat_map(|sample| sample.rounds_ms.iter().copied()).collect();
    let first = samples.iter().flat_map(|sample| sample.rounds_ms.iter().take(ENDS).copied()).collect();
    let last = samples.iter().flat_map(|sample| sample.rounds_ms.iter().rev().take(ENDS).copied()).collect();
    [all, first, last]
}

/// The middle value, or the mean of the two middle ones; none of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::At;

    fn request(sid: &str, conn: u64, body: u64, last: u64) -> Request {
        let at = At { body: body * 1_000_000, last: last * 1_000_000 };
        Request { conn, at, sid: sid.into(), step: None, status: 200, gone: false, error: None }
    }

    #[test]
    fn a_round_is_from_the_answers_end_to_the_next_request_of_its_session() {
        let report = Report { spawned: 0, exited: 40_000_000, cpu_us: 1500, peak_kb: 2048, code: 0 };
        let requests = [request("a", 1, 5, 6), request("b", 2, 6, 8), request("a", 1, 9, 10), request("b", 2, 20, 30)];
        let sample = Sample::of(report, &requests);
        assert_eq!((sample.start_ms, sample.exit_ms, sample.active_s), (5.0, 10.0, 0.025));
        assert_eq!(sample.rounds_ms, [3.0, 12.0]);
        assert_eq!((sample.connections, sample.requests, sample.server_ms), (2, 4, 14.0));
        assert_eq!((sample.cpu_s, sample.peak_mb), (0.0015, 2.0));
    }

    #[test]
    fn the_ends_are_taken_of_each_run() {
        let run = |from: u32| Sample { rounds_ms: (from..from + 30).map(f64::from).collect(), ..Sample::default() };
        let [all, first, last] = rounds(&[run(0), run(100)]);
        assert_eq!((all.len(), first.len(), last.len()), (60, 20, 20));
        assert_eq!(median(first), Some(54.5));
        assert_eq!(last[0], 29.0);
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0])), (None, Some(2.0)));
    }
}
