//! OpenTelemetry for sessions: traces and metrics by the GenAI conventions, sent by OTLP over HTTP.
//!
//! The log tells everything, so this is a follower of it: [`Telemetry::observe`] takes each record once it is durable
//! and makes spans and measurements of it, with the records' own times.
//!
//! What is absent: no gRPC, no logs signal, no sampling, no propagation to model providers. Endpoint, headers, resource
//! and intervals come as values; no environment is read for them.

mod book;
mod content;
mod gate;
mod measures;
pub mod names;
mod options;
mod span;
mod telemetry;
mod wire;

pub use options::{Options, StartError};
pub use telemetry::{Delivery, Telemetry};
