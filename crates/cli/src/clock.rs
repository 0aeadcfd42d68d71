//! The time of day where the user is.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// As ISO 8601 with the user's offset, to the second.
pub fn iso(at_ms: u64) -> String {
    format(at_ms, "%Y-%m-%dT%H:%M:%S%:z")
}

/// The user's day, as `2026-04-21`.
pub fn day(at_ms: u64) -> String {
    format(at_ms, "%Y-%m-%d")
}

/// For a listing, to the minute.
pub fn minute(at_ms: u64) -> String {
    format(at_ms, "%Y-%m-%d %H:%M")
}

/// For a table, to the second.
pub fn second(at_ms: u64) -> String {
    format(at_ms, "%Y-%m-%d %H:%M:%S")
}

/// For a log, to the millisecond.
pub fn exact(at_ms: u64) -> String {
    format(at_ms, "%Y-%m-%d %H:%M:%S%.3f")
}

fn format(at_ms: u64, form: &str) -> String {
    let at = Timestamp::from_millisecond(at_ms as i64).unwrap_or_default();
    at.to_zoned(TimeZone::system()).strftime(form).to_string()
}
