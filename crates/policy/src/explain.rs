//! The whole way to a decision, for people: the parse, every part, every rule that matched, and what decided.

use crate::ask::{Ask, Opinion};
use crate::call::Call;
use crate::policy::{Policy, worst};
use crate::predicate::Fit;
use crate::rule::{Choice, Rule, Source};
use crate::ruling::{Ruling, rulings, winner};
use crate::shell;
use serde::Serialize;
use windlass_kernel::Verdict;

/// How a decision came about.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    pub opinion: Opinion,
    /// A command line as it was parsed.
    pub tree: Option<String>,
    pub parts: Vec<ExplainedPart>,
}

/// One part of a call and the rules that speak of it.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedPart {
    pub part: String,
    pub verdict: Verdict,
    pub stage: String,
    pub reason: String,
    /// Of the parts, the one the decision follows.
    pub decides: bool,
    pub rules: Vec<ExplainedRule>,
}

/// A rule that matches a part.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedRule {
    pub rule: String,
    pub source: Source,
    pub decision: Choice,
    pub priority: i64,
    /// It only may mean the part: enough to ask.
    pub may: bool,
    /// Of the rules, the one that won.
    pub decides: bool,
}

impl Policy {
    /// Decides as [`decide`](Policy::decide) does, and tells how.
    pub fn explain(&self, ask: &Ask) -> Explanation {
        let call = Call::new(ask, self.places());
        let rulings: Vec<Ruling> =
            rulings(self, &call).into_iter().map(|ruling| self.answered(&call, ruling)).collect();
        let decisive = worst(&rulings);
        let parts =
            rulings.iter().map(|ruling| self.explained(&call, ruling, std::ptr::eq(ruling, decisive))).collect();
        Explanation { opinion: self.decide_call(&call), tree: ask.command().map(shell::tree), parts }
    }

    fn explained(&self, call: &Call, ruling: &Ruling, decides: bool) -> ExplainedPart {
        let part = ruling.part();
        let own = part.and_then(|part| winner(&self.rules, call, part));
        let won = own.or_else(|| part.and_then(|part| winner(self.built_in(), call, part))).map(|(rule, _)| rule);
        let all = self.rules.iter().chain(self.built_in());
        let matching = all.filter_map(|rule| {
            let fit = rule.fit(call, part?);
            (fit != Fit::No).then(|| explained_rule(rule, fit, won.is_some_and(|won| std::ptr::eq(won, rule))))
        });
        ExplainedPart {
            part: ruling.shown(call.ask.tool),
            verdict: ruling.verdict,
            stage: ruling.stage.into(),
            reason: ruling.reason.clone(),
            decides,
            rules: matching.collect(),
        }
    }
}

fn explained_rule(rule: &Rule, fit: Fit, decides: bool) -> ExplainedRule {
    ExplainedRule {
        rule: rule.text().into(),
        source: rule.source,
        decision: rule.choice,
        priority: rule.priority,
        may: fit == Fit::Maybe,
        decides,
    }
}
