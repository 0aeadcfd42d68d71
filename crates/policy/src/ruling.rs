//! What is said of each part of a call: by the rules first, then by what is known of commands and files.

use crate::ask::Ask;
use crate::call::{Call, Found};
use crate::deed::{Deed, FileHow, Reach};
use crate::mode;
use crate::path;
use crate::policy::Policy;
use crate::predicate::Fit;
use crate::rule::{Choice, Part, Rule, Source};
use windlass_kernel::{PermissionMode, Verdict};

/// What is said of one part.
#[derive(Clone, Debug)]
pub(crate) struct Ruling<'a> {
    pub verdict: Verdict,
    pub stage: &'static str,
    pub rule: Option<&'a Rule>,
    pub reason: String,
    /// No answer given earlier satisfies it.
    pub always: bool,
    /// No rule that an answer could add would satisfy it.
    pub doubtful: bool,
    pub subject: Subject<'a>,
}

/// What a ruling is about.
#[derive(Clone, Debug)]
pub(crate) enum Subject<'a> {
    Whole,
    Deed(&'a Deed),
    File { path: Option<String>, and_below: bool, reads: bool, shown: String },
    Doubt,
}

impl<'a> Ruling<'a> {
    fn new(verdict: Verdict, stage: &'static str, reason: impl Into<String>, subject: Subject<'a>) -> Ruling<'a> {
        Ruling { verdict, stage, rule: None, reason: reason.into(), always: false, doubtful: false, subject }
    }

    fn by(rule: &'a Rule, verdict: Verdict, subject: Subject<'a>) -> Ruling<'a> {
        let text = rule.text();
        let why = rule.description.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let reason = match (verdict, rule.choice) {
            (Verdict::Deny, _) => format!(
                "the rule `{text}` denies it{why}; do not try it again, do without it or tell the person what you need"
            ),
            (Verdict::Ask, Choice::Deny) => {
                format!("the rule `{text}` may deny it{why}: what it would do is only known when it runs")
            }
            (Verdict::Ask, _) => format!("the rule `{text}` wants a person to be asked{why}"),
            _ => format!("the rule `{text}` allows it{why}"),
        };
        let stage = if rule.source == Source::BuiltIn { "built-in" } else { "rule" };
        let always = rule.choice == Choice::AlwaysAsk;
        Ruling { rule: Some(rule), always, ..Ruling::new(verdict, stage, reason, subject) }
    }

    /// The part as people read it.
    pub fn shown(&self, tool: &str) -> String {
        match &self.subject {
            Subject::Whole => tool.into(),
            Subject::Deed(deed) => deed.shown.clone(),
            Subject::File { reads: true, shown, .. } => format!("reads {shown}"),
            Subject::File { shown, .. } => format!("writes {shown}"),
            Subject::Doubt => "the whole command".into(),
        }
    }

    /// What rules are held against.
    pub fn part(&self) -> Option<Part<'_>> {
        Some(match &self.subject {
            Subject::Whole => Part::Whole,
            Subject::Deed(deed) => Part::Deed(deed),
            Subject::File { path, and_below, reads, .. } => {
                let file = crate::rule::FileAt { path: path.as_deref(), and_below: *and_below };
                if *reads { Part::Reads(file) } else { Part::Writes(file) }
            }
            Subject::Doubt => return None,
        })
    }
}

/// The rulings of every part of the call; never empty.
pub(crate) fn rulings<'a>(policy: &'a Policy, call: &'a Call<'a>) -> Vec<Ruling<'a>> {
    let Some(reading) = call.reading() else { return vec![of_whole(policy, call)] };
    let doubt = |text: &'a String| Ruling {
        doubtful: true,
        ..Ruling::new(Verdict::Ask, "shell", text.clone(), Subject::Doubt)
    };
    let mut all: Vec<Ruling> = reading.doubts.iter().map(doubt).collect();
    for deed in &reading.deeds {
        let ruling = of_deed(policy, call, deed);
        let grant = ruling.as_ref().filter(|ruling| ruling.verdict == Verdict::Allow).and_then(|ruling| ruling.rule);
        let files = call.files(deed).into_iter().map(|file| of_file(policy, call, file, grant));
        all.extend(files);
        all.extend(ruling);
    }
    if all.is_empty() {
        all.push(Ruling::new(Verdict::Ask, "default", "it runs a command", Subject::Whole));
    }
    all
}

/// Of the rules that match, the one that decides, and what: a higher source's no first, then the highest priority,
/// then no before ask before yes. A no that only may be meant asks.
pub(crate) fn winner<'a>(rules: &'a [Rule], call: &Call, part: Part) -> Option<(&'a Rule, Verdict)> {
    let matching = rules.iter().filter_map(|rule| match (rule.fit(call, part), rule.choice) {
        (Fit::No, _) | (Fit::Maybe, Choice::Allow) => None,
        (Fit::Maybe, Choice::Deny) => Some((rule, Verdict::Ask)),
        _ => Some((rule, rule.verdict())),
    });
    let matching: Vec<(&Rule, Verdict)> = matching.collect();
    let highest =
        |choice: Choice| matching.iter().filter(|(rule, _)| rule.choice == choice).map(|(rule, _)| rule.source).min();
    let (no, every_time) = (highest(Choice::Deny), highest(Choice::AlwaysAsk));
    // Neither a higher source's no nor what it wants asked every time is displaced by less from below.
    let stands = |(rule, _): &(&Rule, Verdict)| {
        let yields = |source: Option<Source>| source.is_none_or(|source| source >= rule.source);
        match rule.choice {
            Choice::Deny => true,
            Choice::AlwaysAsk => yields(no),
            Choice::Allow | Choice::Ask => yields(no) && yields(every_time),
        }
    };
    let rank = |verdict: Verdict| match verdict {
        Verdict::Deny | Verdict::Invalid => 2,
        Verdict::Ask => 1,
        Verdict::Allow => 0,
    };
    // Of equals the one written first.
    let key = |(rule, verdict): &(&Rule, Verdict)| (rule.priority, rank(*verdict), rule.choice == Choice::AlwaysAsk);
    matching.iter().copied().filter(stands).fold(None, |best: Option<(&Rule, Verdict)>, next| match best {
        Some(best) if key(&best) >= key(&next) => Some(best),
        _ => Some(next),
    })
}

fn of_whole<'a>(policy: &'a Policy, call: &'a Call<'a>) -> Ruling<'a> {
    let ask = call.ask;
    match winner(&policy.rules, call, Part::Whole) {
        Some((rule, Verdict::Allow)) => match unspelled(ask, rule) {
            Some(path) => {
                let reason = format!(
                    "`{path}` is a file by which code may run later, and the rule `{}` does not name it",
                    rule.text()
                );
                Ruling::new(Verdict::Ask, "file", reason, Subject::Whole)
            }
            None => Ruling::by(rule, Verdict::Allow, Subject::Whole),
        },
        Some((rule, verdict)) => Ruling::by(rule, verdict, Subject::Whole),
        None => match mode::everyday(ask, call.places) {
            Some((verdict, reason)) => Ruling::new(verdict, "mode", reason, Subject::Whole),
            None => Ruling::new(Verdict::Ask, "default", fallback(ask), Subject::Whole),
        },
    }
}

/// The first path a writer would change that is protected and that the rule does not name.
fn unspelled<'a>(ask: &Ask<'a>, rule: &Rule) -> Option<&'a str> {
    if !ask.has_tag("fs.write") {
        return None;
    }
    ask.plan.paths.iter().map(String::as_str).find(|path| path::is_protected(path) && !rule.spells(path))
}

fn of_deed<'a>(policy: &'a Policy, call: &'a Call<'a>, deed: &'a Deed) -> Option<Ruling<'a>> {
    let subject = Subject::Deed(deed);
    let doubt = || {
        let doubt = deed.doubts.first()?.clone();
        Some(Ruling { doubtful: true, ..Ruling::new(Verdict::Ask, "shell", doubt, Subject::Deed(deed)) })
    };
    if deed.argv.is_empty() {
        return doubt();
    }
    match winner(&policy.rules, call, Part::Deed(deed)) {
        Some((rule, Verdict::Allow)) if rule.is_bare() && !policy.refuses_commands() => {
            return Some(Ruling::by(rule, Verdict::Allow, subject));
        }
        Some((rule, Verdict::Allow)) => {
            return Some(doubt().unwrap_or_else(|| Ruling::by(rule, Verdict::Allow, subject)));
        }
        Some((rule, verdict)) => return Some(Ruling::by(rule, verdict, subject)),
        None => {}
    }
    if let Some(doubt) = doubt() {
        return Some(doubt);
    }
    if is_plain_test(deed) {
        return Some(Ruling::new(Verdict::Allow, "shell", "`[[` only compares", subject));
    }
    if deed.reach == Reach::Looks
        && let Some((rule, Verdict::Allow)) = winner(policy.built_in(), call, Part::Deed(deed))
    {
        return Some(Ruling::by(rule, Verdict::Allow, subject));
    }
    let reason = match deed.sharp.first() {
        Some(sharp) => format!("no rule allows `{}`: {}", deed.shown, sharp.why),
        None if has_unknown(deed) => {
            format!("no rule allows `{}`: some of its words are only known when it runs", deed.shown)
        }
        None => format!("no rule allows `{}`", deed.shown),
    };
    Some(Ruling::new(Verdict::Ask, "default", reason, subject))
}

/// `[[ … ]]` is syntax of the shell, of which no rule could speak.
fn is_plain_test(deed: &Deed) -> bool {
    deed.reach == Reach::Looks && deed.argv.first().is_some_and(|word| word.text == "[[" && !word.quoted)
}

fn has_unknown(deed: &Deed) -> bool {
    deed.argv.iter().any(|word| word.kind == crate::shell::WordKind::Unknown)
}

fn of_file<'a>(policy: &'a Policy, call: &'a Call<'a>, file: Found, grant: Option<&'a Rule>) -> Ruling<'a> {
    let reads = file.how == FileHow::Read;
    let part = if reads { Part::Reads(file.at()) } else { Part::Writes(file.at()) };
    let won = winner(&policy.rules, call, part);
    let rest = by_place(call, &file, grant);
    let Found { path, and_below, shown, .. } = file;
    let subject = Subject::File { path, and_below, reads, shown };
    match won {
        Some((rule, Verdict::Allow)) => {
            let path = match &subject {
                Subject::File { path: Some(path), .. } => path,
                _ => return Ruling::by(rule, Verdict::Allow, subject),
            };
            if !reads && path::is_protected(path) && !rule.spells(path) {
                let reason = format!(
                    "`{path}` is a file by which code may run later, and the rule `{}` does not name it",
                    rule.text()
                );
                return Ruling::new(Verdict::Ask, "file", reason, subject);
            }
            Ruling::by(rule, Verdict::Allow, subject)
        }
        Some((rule, verdict)) => Ruling::by(rule, verdict, subject),
        None => {
            let (verdict, stage, reason) = rest;
            Ruling::new(verdict, stage, reason, subject)
        }
    }
}

/// What is said of a file no rule speaks of: by where it lies and how the command comes to use it.
fn by_place(call: &Call, file: &Found, grant: Option<&Rule>) -> (Verdict, &'static str, String) {
    let (ask, shown) = (call.ask, &file.shown);
    let bare = grant.is_some_and(Rule::is_bare);
    let built_in = grant.is_some_and(|rule| rule.source == Source::BuiltIn);
    let Some(path) = &file.path else {
        return match (file.how, bare) {
            (FileHow::Read, _) if !built_in => {
                (Verdict::Allow, "file", "the command's own rule covers its files".into())
            }
            (FileHow::Read, _) => {
                (Verdict::Ask, "file", format!("it reads `{shown}`: which file that is, is only known when it runs"))
            }
            (_, true) => (Verdict::Allow, "file", "the command's own rule covers its files".into()),
            _ => (Verdict::Ask, "file", format!("it writes `{shown}`: which file that is, is only known when it runs")),
        };
    };
    let inside = path::inside(ask.workspace, path).is_some();
    if file.how == FileHow::Read {
        return match () {
            () if call.places.is_sensitive(ask.workspace, path) => {
                (Verdict::Ask, "file", format!("it reads {path}, where secrets are kept"))
            }
            () if built_in && !inside && !call.places.is_temporary(path) => {
                (Verdict::Ask, "file", format!("it reads {path}, which is outside the workspace"))
            }
            () => (Verdict::Allow, "file", "reading it is part of the command".into()),
        };
    }
    let scratch = file.how != FileHow::Edit && !file.climbs && call.places.is_scratch(ask.workspace, path);
    if path::is_protected(path) {
        return (Verdict::Ask, "file", format!("it writes {path}, by which code may run later"));
    }
    if !inside && !scratch {
        return (Verdict::Ask, "file", format!("it writes {path}, which is outside the workspace"));
    }
    if file.how != FileHow::Edit || bare {
        return (Verdict::Allow, "file", "writing there is part of the command".into());
    }
    if ask.mode == PermissionMode::AcceptEdits {
        return (Verdict::Allow, "mode", "accept-edits mode: it writes inside the workspace".into());
    }
    (Verdict::Ask, "file", format!("it edits `{shown}`, and no rule allows that: `edit({shown})` would"))
}

/// Why a call is asked about for which nothing speaks.
fn fallback(ask: &Ask) -> &'static str {
    if ask.executes() {
        "it runs a command"
    } else if ask.has_tag("net") {
        "it reaches the network"
    } else if ask.has_tag("fs.write") {
        "it writes files"
    } else {
        "it may change something"
    }
}
