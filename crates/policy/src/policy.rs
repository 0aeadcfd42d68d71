//! Who decides, in which order.

use crate::ask::{Ask, Check, Opinion, PartOpinion, Proposal};
use crate::call::Call;
use crate::floor::HardFloor;
use crate::mode;
use crate::places::Places;
use crate::predicate::Fit;
use crate::propose::{propose, shell_word};
use crate::rule::{Choice, Rule, RuleError, RuleSpec, Source};
use crate::ruling::{Ruling, Subject, rulings};
use crate::stock;
use std::fmt;
use std::sync::{Arc, OnceLock};
use windlass_kernel::{PermissionMode, Verdict};

/// Everything that decides what may run, read once.
#[derive(Clone, Default)]
pub struct Policy {
    pub(crate) rules: Vec<Rule>,
    /// Rules that a person answered with, kept for longer than a session: they satisfy asks.
    answers: Vec<Rule>,
    with_built_in: bool,
    built_in: OnceLock<Vec<Rule>>,
    default: Option<Verdict>,
    places: Places,
    checks: Vec<Arc<dyn Check>>,
}

impl Policy {
    /// Reads rules of the user's own; the first that cannot be read is the error.
    pub fn new(allow: &[String], deny: &[String], ask: &[String]) -> Result<Policy, RuleError> {
        let mut policy = Policy::default();
        for (texts, choice) in [(allow, Choice::Allow), (deny, Choice::Deny), (ask, Choice::Ask)] {
            for text in texts {
                policy.rules.push(Rule::deciding(text, choice, Source::User)?);
            }
        }
        Ok(policy)
    }

    /// Adds a rule.
    pub fn with_rule(mut self, rule: Rule) -> Policy {
        self.rules.push(rule);
        self
    }

    /// Adds a rule that a person answered with: it satisfies asks, and overrides nothing.
    pub fn with_answer(mut self, rule: &str) -> Result<Policy, RuleError> {
        self.answers.push(Rule::deciding(rule, Choice::Allow, Source::User)?);
        Ok(self)
    }

    /// Lets commands that only look inside the workspace run unasked ([`built_in_rules`](crate::built_in_rules)).
    pub fn with_built_in(mut self) -> Policy {
        self.with_built_in = true;
        self
    }

    /// What is decided where neither a rule nor the mode speaks; without this, a person is asked.
    pub fn with_default(mut self, verdict: Verdict) -> Policy {
        self.default = Some(verdict);
        self
    }

    /// Tells where home and the folders for temporary files are.
    pub fn with_places(mut self, places: Places) -> Policy {
        self.places = places;
        self
    }

    /// Adds an opinion of code.
    pub fn with_check(mut self, check: Arc<dyn Check>) -> Policy {
        self.checks.push(check);
        self
    }

    /// Whether a tool is denied wholly, so that no model needs to hear of it.
    pub fn hides(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| rule.denies_wholly(tool))
    }

    /// The rules, in the order they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Some rule denies commands, or asks of them: what only shows when it runs could be meant.
    pub(crate) fn refuses_commands(&self) -> bool {
        self.rules.iter().any(|rule| rule.choice != Choice::Allow && rule.is_of_commands())
    }

    pub(crate) fn built_in(&self) -> &[Rule] {
        if !self.with_built_in {
            return &[];
        }
        self.built_in.get_or_init(stock::rules)
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Decides whether the call may run; never fails, and asks where nothing speaks for the call.
    pub fn decide(&self, ask: &Ask) -> Opinion {
        let call = Call::new(ask, &self.places);
        self.decide_call(&call)
    }

    /// Read from the top: the first that has the last word decides.
    pub(crate) fn decide_call(&self, call: &Call) -> Opinion {
        let ask = call.ask;
        if let Some(ruin) = HardFloor.check_call(call) {
            return ruin;
        }
        let checked = self.checked(ask);
        if let Some(no) = checked.as_ref().filter(|opinion| opinion.verdict == Verdict::Deny) {
            return no.clone();
        }
        let rulings: Vec<Ruling> = rulings(self, call).into_iter().map(|ruling| self.answered(call, ruling)).collect();
        let worst = worst(&rulings);
        if worst.verdict == Verdict::Deny {
            return opinion(worst);
        }
        if let Some(reason) = mode::refused_by_plan(call) {
            return Opinion::new(Verdict::Deny, "mode", reason);
        }
        if ask.mode == PermissionMode::Bypass && !worst.always {
            let reason = "bypass mode allows what no rule denies and the hard floor does not refuse";
            return Opinion::new(Verdict::Allow, "mode", reason);
        }
        match (checked, worst) {
            (Some(said), worst) if said.verdict == Verdict::Ask && worst.verdict != Verdict::Ask => {
                self.asked(call, said, &rulings)
            }
            (Some(said), worst) if said.verdict == Verdict::Allow && is_open(worst) => said,
            (_, worst) if worst.verdict == Verdict::Ask => self.by_default(call, worst, &rulings),
            (_, worst) => opinion(worst),
        }
    }

    fn checked(&self, ask: &Ask) -> Option<Opinion> {
        let opinions = self.checks.iter().filter_map(|check| check.check(ask));
        // A no before an ask before a yes.
        opinions.max_by_key(|opinion| match opinion.verdict {
            Verdict::Deny | Verdict::Invalid => 2,
            Verdict::Ask => 1,
            Verdict::Allow => 0,
        })
    }

    /// The ruling, or the yes of a person who was asked about the same before.
    pub(crate) fn answered<'a>(&'a self, call: &Call, ruling: Ruling<'a>) -> Ruling<'a> {
        if ruling.verdict != Verdict::Ask || ruling.always {
            return ruling;
        }
        let Some(given) = self.answer(call, &ruling) else { return ruling };
        let reason = format!("a person allowed `{given}`");
        Ruling { verdict: Verdict::Allow, stage: "grant", rule: None, reason, ..ruling }
    }

    fn answer(&self, call: &Call, ruling: &Ruling) -> Option<String> {
        let part = ruling.part()?;
        let covers = |rule: &Rule| (rule.is_bare() || !ruling.doubtful) && rule.fit(call, part) == Fit::Sure;
        if let Some(rule) = self.answers.iter().find(|rule| covers(rule)) {
            return Some(rule.text().into());
        }
        // A grant for another tool is passed over before its pattern is built.
        let grants = call.ask.grants.iter().filter(|grant| may_name(grant, call.ask));
        let mut rules = grants.filter_map(|grant| Rule::deciding(grant, Choice::Allow, Source::Session).ok());
        rules.find(covers).map(|rule| rule.text().into())
    }

    fn by_default(&self, call: &Call, worst: &Ruling, rulings: &[Ruling]) -> Opinion {
        match self.default {
            Some(Verdict::Allow) if is_open(worst) => {
                Opinion::new(Verdict::Allow, "default", "the default decision allows what no rule speaks of")
            }
            Some(Verdict::Deny) if is_open(worst) => {
                let reason = format!("the default decision denies what no rule allows ({})", worst.reason);
                Opinion::new(Verdict::Deny, "default", reason)
            }
            _ => self.asked(call, opinion(worst), rulings),
        }
    }

    /// The question put to a person, or the no where none is there.
    fn asked(&self, call: &Call, opinion: Opinion, rulings: &[Ruling]) -> Opinion {
        let ask = call.ask;
        let parts = match rulings {
            [_] => vec![],
            many => many.iter().map(|ruling| part_opinion(ruling, ask.tool)).collect(),
        };
        let proposed = if opinion.always_ask { vec![] } else { propose(call, rulings) };
        let asking = rulings.iter().filter(|ruling| ruling.verdict == Verdict::Ask).count();
        let opinion = Opinion { proposed, together: asking > 1, parts, ..opinion };
        // What is asked every time, no model answers in a person's place.
        let reviewed = ask.mode == PermissionMode::Auto && !opinion.always_ask;
        let nobody = !ask.interactive && !reviewed;
        if nobody || ask.mode == PermissionMode::DontAsk { refuse(opinion, ask) } else { opinion }
    }
}

/// The first of the worst.
pub(crate) fn worst<'r, 'a>(rulings: &'r [Ruling<'a>]) -> &'r Ruling<'a> {
    let rank = |ruling: &Ruling| match ruling.verdict {
        Verdict::Deny | Verdict::Invalid => (3, false),
        Verdict::Ask => (2, ruling.always),
        // Of what is allowed, a written yes says more than where a file lies.
        Verdict::Allow => (1, ruling.rule.is_some()),
    };
    let mut best = &rulings[0];
    for ruling in rulings {
        if rank(ruling) > rank(best) {
            best = ruling;
        }
    }
    best
}

/// Nothing but the absence of a rule speaks against it.
fn is_open(ruling: &Ruling) -> bool {
    ruling.verdict == Verdict::Ask && ruling.stage == "default" && !ruling.doubtful
}

fn opinion(ruling: &Ruling) -> Opinion {
    let of_many = |reason: &str| match &ruling.subject {
        Subject::Deed(deed) if ruling.rule.is_some() && ruling.verdict != Verdict::Allow => {
            format!("`{}`: {reason}", deed.shown)
        }
        _ => reason.to_owned(),
    };
    Opinion {
        rule: ruling.rule.map(|rule| rule.text().to_owned()),
        always_ask: ruling.always,
        ..Opinion::new(ruling.verdict, ruling.stage, of_many(&ruling.reason))
    }
}

fn part_opinion(ruling: &Ruling, tool: &str) -> PartOpinion {
    PartOpinion { part: ruling.shown(tool), verdict: ruling.verdict, reason: ruling.reason.clone() }
}

fn may_name(grant: &str, ask: &Ask) -> bool {
    let name = crate::subject::tool_name(grant.split('(').next().unwrap_or(grant).trim());
    name == ask.tool || ask.has_tag(&name) || matches!(&*name, "edit" | "read" | "*") || name.contains("__")
}

/// Where nobody can be asked, an ask is a no that names what would make it a yes.
fn refuse(opinion: Opinion, ask: &Ask) -> Opinion {
    let allows = |proposal: &Proposal| format!("--allow {}", shell_word(&proposal.rule));
    let way_out = match (&opinion.rule, opinion.proposed.first()) {
        (Some(rule), _) => format!("take the ask rule {} out, or use --yes", shell_word(rule)),
        (None, Some(_)) if opinion.together => {
            let all: Vec<String> = opinion.proposed.iter().map(allows).collect();
            format!("allow it with {} or --yes", all.join(" "))
        }
        (None, Some(proposal)) => format!("allow it with {} or --yes", allows(proposal)),
        (None, None) if ask.command().is_some() => {
            "allow each of its commands by a rule of its own, run them one by one, or use --yes".into()
        }
        (None, None) if ask.plan.paths.is_empty() => {
            format!("allow it with --allow {} or --yes", shell_word(ask.tool))
        }
        (None, None) => "allow each of its paths by a rule, or use --yes".into(),
    };
    let why_nobody = match ask.mode {
        PermissionMode::DontAsk => "dont-ask mode asks nobody",
        _ => "nobody can be asked here",
    };
    let reason = format!("{} needs approval and {why_nobody} ({}); {way_out}", ask.tool, opinion.reason);
    Opinion { verdict: Verdict::Deny, reason, proposed: vec![], ..opinion }
}

impl Rule {
    /// Reads `tool` or `tool(pattern)` as a rule that decides `choice`.
    pub fn deciding(text: &str, choice: Choice, source: Source) -> Result<Rule, RuleError> {
        Rule::read(&RuleSpec { tool: text.into(), decision: choice, ..RuleSpec::default() }, source)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("rules", &self.rules).field("answers", &self.answers).finish_non_exhaustive()
    }
}
