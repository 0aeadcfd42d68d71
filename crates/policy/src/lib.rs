//! Pure permission decisions: may this call run, must a person be asked, or is it refused, and why.
//!
//! [`Policy::decide`] takes a call apart (a command line into its commands and the files they use), lets the rules
//! speak of every part, and follows the worst: a no before an ask before a yes. [`Policy::explain`] tells the way.
//!
//! What is absent: no I/O, no clock, no prompting; whoever asks does what the answer says. Paths are judged by their
//! text: symbolic links are not followed here (tools name the resolved path, too). What a script or a program does with
//! its input is not known here: the sandbox is the second wall.

mod arguments;
mod ask;
mod call;
mod command;
pub mod deed;
mod example;
mod explain;
mod floor;
mod host;
mod mode;
mod path;
mod places;
mod policy;
mod predicate;
pub mod programs;
mod propose;
mod rule;
mod ruling;
pub mod shell;
mod stock;
mod subject;

pub use ask::{Ask, Check, Opinion, PartOpinion, Proposal};
pub use example::planned;
pub use explain::{ExplainedPart, ExplainedRule, Explanation};
pub use floor::HardFloor;
pub use places::Places;
pub use policy::Policy;
pub use rule::{Choice, Rule, RuleError, RuleSpec, Source};
pub use stock::built_in_rules;
pub use subject::tool_name;
