//! The ladder: who decides, in which order.

use crate::ask::{Ask, Check, Opinion};
use crate::floor::HardFloor;
use crate::mode::{EverydayMode, RulingMode};
use crate::propose::{propose, shell_word};
use crate::rule::{AllowRules, AskRules, DenyRules, Grants, RuleError};
use windlass_kernel::Verdict;

/// The rules of a session's owner, read once.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    allow: AllowRules,
    deny: DenyRules,
    ask: AskRules,
}

impl Policy {
    /// Reads the rules; the first that cannot be read is the error.
    pub fn new(allow: &[String], deny: &[String], ask: &[String]) -> Result<Policy, RuleError> {
        Ok(Policy { allow: AllowRules::parse(allow)?, deny: DenyRules::parse(deny)?, ask: AskRules::parse(ask)? })
    }

    /// Read from the top: the first rung with an opinion decides.
    fn ladder(&self) -> [&dyn Check; 7] {
        [
            &HardFloor,    // ruin is refused, whatever anybody says
            &self.deny,    // a written no stands in every mode
            &RulingMode,   // plan: no changes; bypass: yes to everything else
            &Grants,       // a person's answer satisfies asks
            &self.ask,     // a written question comes before a written yes
            &self.allow,   // a written yes
            &EverydayMode, // readers, and with accept-edits files, inside the workspace
        ]
    }

    /// Decides whether the call may run; never fails, and asks where nothing speaks for the call.
    pub fn decide(&self, ask: &Ask) -> Opinion {
        let opinion = self.ladder().iter().find_map(|check| check.check(ask)).unwrap_or_else(|| fallback(ask));
        if opinion.verdict != Verdict::Ask {
            return opinion;
        }
        let opinion = Opinion { proposed: propose(ask), ..opinion };
        if ask.interactive { opinion } else { refuse(opinion, ask) }
    }
}

/// The opinion where no rung has one: ask.
fn fallback(ask: &Ask) -> Opinion {
    let reason = if ask.executes() {
        "it runs a command"
    } else if ask.has_tag("net") {
        "it reaches the network"
    } else if ask.has_tag("fs.write") {
        "it writes files"
    } else {
        "it may change something"
    };
    Opinion::new(Verdict::Ask, "default", reason)
}

/// Where nobody can be asked, an ask is a no that names what would make it a yes.
fn refuse(opinion: Opinion, ask: &Ask) -> Opinion {
    let way_out = match (&opinion.rule, opinion.proposed.first()) {
        (Some(rule), _) => format!("take the ask rule {} out, or use --yes", shell_word(rule)),
        (None, Some(rule)) => format!("allow it with --allow {} or --yes", shell_word(rule)),
        (None, None) if ask.command().is_some() => {
            "no rule can allow a command with shell operators: run its parts one by one, or use --yes".into()
        }
        (None, None) => format!("allow it with --allow {} or --yes", shell_word(ask.tool)),
    };
    let reason = format!("{} needs approval and nobody can be asked here ({}); {way_out}", ask.tool, opinion.reason);
    Opinion { verdict: Verdict::Deny, reason, ..opinion }
}
