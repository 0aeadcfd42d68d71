//! Pure permission decisions.
//!
//! What is absent: no I/O, no clock, no prompting; whoever asks does what the answer says.
