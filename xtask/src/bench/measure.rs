//! Runs one program and tells what it took: `measure REPORT PROGRAM ARGS…` writes REPORT as JSON.
//!
//! A process of its own and as small as can be: the peak memory that the system reports for a child begins with what
//! its parent had when it forked.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::process::{Command, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(report), Some(program)) = (args.next(), args.next()) else {
        return Err("say: measure REPORT PROGRAM ARGS…".into());
    };
    let mut command = Command::new(&program);
    command.args(args).stdin(Stdio::null());
    let spawned = monotonic_ns()?;
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    let exited = monotonic_ns()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu_us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let code = status.code().unwrap_or(-1);
    let peak_kb = usage.max_rss();
    let told =
        format!(r#"{{"spawned":{spawned},"exited":{exited},"cpu_us":{cpu_us},"peak_kb":{peak_kb},"code":{code}}}"#);
    std::fs::write(report, told)?;
    Ok(())
}

fn monotonic_ns() -> nix::Result<i64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds())
}
