//! Pure permission decisions: may this call run, must a person be asked, or is it refused, and why.
//!
//! [`Policy::decide`] walks one ladder of [`Check`]s; the first that has an opinion decides, and its [`Opinion`]
//! names the stage, the rule and the reason.
//!
//! What is absent: no I/O, no clock, no prompting; whoever asks does what the answer says. Paths are judged by
//! their text: symbolic links are not followed, `~` is not expanded. Commands are cut at metacharacters, not
//! parsed: what cannot be read for sure is never allowed by a pattern, and what a variable or a script would do
//! is not known here. A search that starts above a denied folder is not caught by a rule on that folder.

mod arguments;
mod ask;
mod command;
pub mod deed;
mod floor;
mod mode;
mod path;
mod policy;
pub mod programs;
mod propose;
mod rule;
mod segments;
pub mod shell;
mod words;

pub use ask::{Ask, Check, Opinion};
pub use floor::HardFloor;
pub use mode::{EverydayMode, RulingMode};
pub use policy::Policy;
pub use rule::{AllowRules, AskRules, DenyRules, Grants, Rule, RuleError};
