//! Hooks played whole: real shells, real inputs, answers in every form.

mod answers;
mod config;
mod guide;
mod limits;
mod notices;
mod row;
mod schemas;
mod stage;
