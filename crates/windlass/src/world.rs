//! The world an embedded agent lives in unless it is given another: the machine's clock, UTC, random ids.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;
use windlass_runtime::World;

pub(crate) fn of_this_machine() -> World {
    World { now: Arc::new(now_ms), id: Arc::new(Uuid::now_v7), local_time: Arc::new(utc) }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

fn utc(at_ms: u64) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms as i64).unwrap_or_default();
    at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}
