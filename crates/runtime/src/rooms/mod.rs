//! The rooms: each takes values, does one step, and reports. No room calls another.

pub mod compact;
pub mod finish;
pub mod judge;
pub mod model;
pub mod tool;
