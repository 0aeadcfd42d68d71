//! How the program ends: the documented codes, and errors that carry one.

use crate::words::count;
use std::fmt;
use std::process::ExitCode;
use windlass_kernel::End;
use windlass_store::StoreError;

/// What an exit code says; the same table stands in `--help` and in the guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Done = 0,
    /// The turn or the tool failed.
    Failed = 1,
    /// A flag, a configuration or an id is wrong.
    Usage = 2,
    /// The policy refused.
    Denied = 3,
    /// No model is configured, or its key is missing.
    NoModel = 4,
    /// The store can't be used, or another process holds the session.
    Store = 5,
    /// A limit was reached: turns, tokens, output or time; or a cap, at which the turn waits.
    Limit = 6,
    Interrupted = 130,
}

/// Why the program ends early: the code, and a message with the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

pub type Ended = Result<Code, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let code = match error {
            StoreError::NoSuchSession(_) => Code::Usage,
            _ => Code::Store,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// The code of a turn's end.
pub fn code_of(end: &End) -> Code {
    match end {
        End::Done => Code::Done,
        End::Interrupted => Code::Interrupted,
        End::PermissionBlocked { .. } => Code::Denied,
        End::MaxTurns { .. } | End::Deadline | End::OutputLimit { .. } | End::TokenLimit { .. } => Code::Limit,
        End::Refused | End::ModelError { .. } | End::InvalidAnswer { .. } => Code::Failed,
        End::ToolErrors { .. } | End::CrashLoop { .. } => Code::Failed,
    }
}

/// A turn's end in words, with the way out; none if all is well.
pub fn explain(end: &End) -> Option<String> {
    Some(match end {
        End::Done => return None,
        End::Interrupted => "interrupted; the session is kept".into(),
        End::MaxTurns { turns } => {
            format!(
                "stopped after {} (--max-turns); -c -p \"go on\" with a higher limit goes on",
                count(u64::from(*turns), "model call")
            )
        }
        End::Deadline => "the time for this turn is over; -c -p \"go on\" goes on".into(),
        End::Refused => "the model refused to answer; say it in other words".into(),
        End::ModelError { message } => format!("the model failed: {message}"),
        End::InvalidAnswer { problem } => {
            format!("the answer does not satisfy the JSON Schema, also after the model was told so: {problem}")
        }
        End::OutputLimit { continuations } => format!(
            "the answer hit its output limit {} times; raise max_output_tokens or ask for less at once",
            continuations + 1
        ),
        End::ToolErrors { rounds } => {
            format!("every tool call failed for {rounds} rounds in a row; see the lines above")
        }
        End::PermissionBlocked { denials } => {
            format!("{denials} calls in a row were denied; the lines above name the rule or flag that would allow each")
        }
        End::TokenLimit { used } => {
            format!("the session's token budget is spent ({used} tokens); begin a new session or raise it")
        }
        End::CrashLoop { reopened } => {
            format!(
                "the process died {reopened} times on this turn without getting anywhere; say what to do differently"
            )
        }
    })
}

/// The table of codes for `--help`.
pub const HELP: &str = "\
Exit codes:
  0    done
  1    the turn or the tool failed (model error, refused, wrong answer, tool errors)
  2    bad usage, configuration or session id
  3    denied: the policy blocked the work
  4    no model configured, or its key is missing
  5    the store can't be used, or another process holds the session
  6    a limit was reached (turns, tokens, output, time), or a cap on what may be spent
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_help() {
        let codes = [
            Code::Done,
            Code::Failed,
            Code::Usage,
            Code::Denied,
            Code::NoModel,
            Code::Store,
            Code::Limit,
            Code::Interrupted,
        ];
        for code in codes {
            let number = code as u8;
            assert!(HELP.lines().any(|line| line.trim_start().starts_with(&format!("{number} "))), "{number}");
        }
    }

    #[test]
    fn an_end_that_is_not_well_is_explained() {
        assert_eq!(explain(&End::Done), None);
        let text = explain(&End::MaxTurns { turns: 2 }).unwrap();
        assert!(text.contains('2') && text.contains("--max-turns"), "{text}");
        assert_eq!(code_of(&End::PermissionBlocked { denials: 3 }), Code::Denied);
    }
}
