//! Whose rule wins: sources, priorities, conditions, answers, and opinions of code.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::{PermissionMode, Verdict};
use windlass_policy::{Ask, Check, Choice, Opinion, Policy, Rule, RuleSpec, Source, planned};

use Choice::{Allow, AlwaysAsk, Deny};
use Source::{Managed, Project, Session, User};

fn rule(text: &str, decision: Choice, priority: i64, source: Source) -> Rule {
    let spec = RuleSpec { tool: text.into(), decision, priority, ..RuleSpec::default() };
    Rule::read(&spec, source).unwrap()
}

fn policy(rules: Vec<Rule>) -> Policy {
    rules.into_iter().fold(Policy::default(), Policy::with_rule)
}

fn decide_in(policy: &Policy, mode: PermissionMode, interactive: bool, tool: &str, input: Value) -> Opinion {
    let plan = planned(tool, &input);
    policy.decide(&Ask { tool, input: &input, plan: &plan, mode, workspace: "/work/app", interactive, grants: &[] })
}

fn bash(policy: &Policy, command: &str) -> Opinion {
    decide_in(policy, PermissionMode::Default, true, "bash", json!({ "command": command }))
}

#[test]
fn a_lower_source_never_overrides_a_higher_sources_deny() {
    for (denier, allower, verdict) in [
        (Managed, User, Verdict::Deny),
        (User, Project, Verdict::Deny),
        (User, Session, Verdict::Deny),
        (Project, Session, Verdict::Deny),
        (Session, User, Verdict::Allow),
        (User, Managed, Verdict::Allow),
        (User, User, Verdict::Allow),
    ] {
        let policy = policy(vec![rule("bash(make:*)", Deny, 0, denier), rule("bash(make:*)", Allow, 1_000, allower)]);
        assert_eq!(bash(&policy, "make all").verdict, verdict, "{denier:?} denies, {allower:?} allows at 1000");
    }
}

#[test]
fn then_the_highest_priority_decides_then_no_before_ask_before_yes() {
    let ask = |priority| rule("bash(make:*)", Choice::Ask, priority, User);
    let allow = |priority| rule("bash(make:*)", Allow, priority, User);
    let deny = |priority| rule("bash(make:*)", Deny, priority, User);
    for (rules, verdict) in [
        (vec![allow(1), ask(1), deny(1)], Verdict::Deny),
        (vec![allow(1), ask(1)], Verdict::Ask),
        (vec![ask(1), allow(2), deny(1)], Verdict::Allow),
        (vec![deny(-5), ask(0)], Verdict::Ask),
    ] {
        assert_eq!(bash(&policy(rules.clone()), "make").verdict, verdict, "{rules:?}");
    }
}

#[test]
fn a_deny_that_only_may_be_meant_asks_and_no_lower_yes_helps() {
    let policy = policy(vec![rule("bash", Allow, 0, User), rule("bash(rm:*)", Deny, 0, User)]);
    for command in ["$tool -rf x", "a=rm; $a x", "r* x"] {
        assert_eq!(bash(&policy, command).verdict, Verdict::Ask, "{command}");
    }
    assert_eq!(bash(&policy, "echo $x").verdict, Verdict::Allow, "echo is no rm, whatever it says");
}

#[test]
fn what_is_asked_every_time_no_answer_and_no_mode_satisfies() {
    let policy = policy(vec![rule("bash(git push:*)", AlwaysAsk, 0, User)]).with_answer("bash(git push:*)").unwrap();
    for mode in [PermissionMode::Default, PermissionMode::Bypass, PermissionMode::Auto] {
        let opinion = decide_in(&policy, mode, true, "bash", json!({"command": "git push"}));
        assert_eq!((opinion.verdict, opinion.always_ask), (Verdict::Ask, true), "{mode:?}");
        assert!(opinion.proposed.is_empty(), "nothing is offered that could not hold");
    }
    let refused = decide_in(&policy, PermissionMode::DontAsk, true, "bash", json!({"command": "git push"}));
    assert_eq!(refused.verdict, Verdict::Deny);
    assert!(refused.reason.contains("dont-ask mode asks nobody"), "{}", refused.reason);
}

#[test]
fn what_a_higher_source_wants_asked_every_time_is_not_displaced_from_below() {
    for (choice, verdict, always) in
        [(Allow, Verdict::Ask, true), (Choice::Ask, Verdict::Ask, true), (Deny, Verdict::Deny, false)]
    {
        let rules = vec![rule("bash(make:*)", AlwaysAsk, 0, User), rule("bash(make:*)", choice, 50, Project)];
        let opinion = bash(&policy(rules), "make");
        assert_eq!((opinion.verdict, opinion.always_ask), (verdict, always), "{choice:?} from below");
    }
}

#[test]
fn an_answer_satisfies_asks_and_overrides_no_deny() {
    let asks = policy(vec![rule("bash(make:*)", Choice::Ask, 9, Managed)]).with_answer("bash(make:*)").unwrap();
    assert_eq!((bash(&asks, "make").verdict, &*bash(&asks, "make").stage), (Verdict::Allow, "grant"));
    let denies = policy(vec![rule("bash(make:*)", Deny, 0, Session)]).with_answer("bash(make:*)").unwrap();
    assert_eq!(bash(&denies, "make").verdict, Verdict::Deny);
    assert_eq!(bash(&asks, "make && rm x").verdict, Verdict::Ask, "each part needs its own");
}

#[test]
fn a_rule_holds_in_its_modes_and_where_somebody_is_or_is_not() {
    let spec = |mode: Vec<PermissionMode>, interactive| RuleSpec {
        tool: "bash(make:*)".into(),
        decision: Allow,
        mode,
        interactive,
        ..RuleSpec::default()
    };
    let in_auto = policy(vec![Rule::read(&spec(vec![PermissionMode::Auto], None), User).unwrap()]);
    let make = || json!({"command": "make"});
    assert_eq!(decide_in(&in_auto, PermissionMode::Auto, true, "bash", make()).verdict, Verdict::Allow);
    assert_eq!(decide_in(&in_auto, PermissionMode::Default, true, "bash", make()).verdict, Verdict::Ask);
    let alone = policy(vec![Rule::read(&spec(vec![], Some(false)), User).unwrap()]);
    assert_eq!(decide_in(&alone, PermissionMode::Default, false, "bash", make()).verdict, Verdict::Allow);
    assert_eq!(decide_in(&alone, PermissionMode::Default, true, "bash", make()).verdict, Verdict::Ask);
}

#[test]
fn s4_20_arguments_are_matched_by_expression_and_by_condition() {
    let spec = RuleSpec {
        tool: "trade".into(),
        decision: Allow,
        args: Some(r#""symbol":"(ACME|EMCA)""#.into()),
        when: vec!["args.amount < 1000".into(), "args.side in [\"buy\", \"sell\"]".into()],
        ..RuleSpec::default()
    };
    let policy = policy(vec![Rule::read(&spec, User).unwrap()]);
    for (input, verdict) in [
        (json!({"symbol": "ACME", "amount": 5, "side": "buy"}), Verdict::Allow),
        (json!({"side": "sell", "amount": 999.5, "symbol": "EMCA"}), Verdict::Allow),
        (json!({"symbol": "ACME", "amount": 1000, "side": "buy"}), Verdict::Ask),
        (json!({"symbol": "ACME", "amount": 5, "side": "give"}), Verdict::Ask),
        (json!({"symbol": "OTHER", "amount": 5, "side": "buy"}), Verdict::Ask),
        (json!({"symbol": "ACME", "amount": {"n": 5}, "side": "buy"}), Verdict::Ask),
    ] {
        let opinion = decide_in(&policy, PermissionMode::Default, true, "trade", input.clone());
        assert_eq!(opinion.verdict, verdict, "{input}");
    }
    let bad = RuleSpec { args: Some("(".into()), ..spec };
    assert!(Rule::read(&bad, User).unwrap_err().to_string().contains("no regular expression"));
}

/// Nothing is deployed on the day of rest.
struct NoDeploys;

impl Check for NoDeploys {
    fn check(&self, ask: &Ask) -> Option<Opinion> {
        match (ask.tool, ask.input.get("day").and_then(Value::as_str)) {
            ("deploy", Some("sunday")) => Some(Opinion::new(Verdict::Deny, "check", "not on Sundays")),
            ("deploy", Some("friday")) => Some(Opinion::new(Verdict::Ask, "check", "on a Friday?")),
            ("deploy", Some("monday")) => Some(Opinion::new(Verdict::Allow, "check", "on Mondays")),
            _ => None,
        }
    }
}

#[test]
fn s4_20_code_may_have_an_opinion_of_its_own() {
    let on = |policy: &Policy, day: &str| {
        let opinion = decide_in(policy, PermissionMode::Default, true, "deploy", json!({ "day": day }));
        (opinion.verdict, opinion.stage)
    };
    let plain = Policy::default().with_check(Arc::new(NoDeploys));
    let allowed = policy(vec![rule("deploy", Allow, 0, User)]).with_check(Arc::new(NoDeploys));
    let denied = policy(vec![rule("deploy", Deny, 0, User)]).with_check(Arc::new(NoDeploys));
    for (policy, day, expected) in [
        (&plain, "sunday", (Verdict::Deny, "check")),
        (&plain, "monday", (Verdict::Allow, "check")),
        (&plain, "tuesday", (Verdict::Ask, "default")),
        (&allowed, "sunday", (Verdict::Deny, "check")),
        (&allowed, "friday", (Verdict::Ask, "check")),
        (&allowed, "tuesday", (Verdict::Allow, "rule")),
        (&denied, "monday", (Verdict::Deny, "rule")),
    ] {
        let (verdict, stage) = on(policy, day);
        assert_eq!((verdict, &*stage), expected, "{day}");
    }
    let opinion = decide_in(&plain, PermissionMode::Bypass, true, "deploy", json!({"day": "sunday"}));
    assert_eq!(opinion.verdict, Verdict::Deny, "a no of code stands in every mode");
}

#[test]
fn names_of_other_clients_families_servers_and_tags_are_known() {
    let allowed = |text: &str, tool: &str, input: Value| {
        let policy = policy(vec![rule(text, Allow, 0, User)]);
        decide_in(&policy, PermissionMode::Default, true, &windlass_policy::tool_name(tool), input).verdict
            == Verdict::Allow
    };
    let path = |path: &str| json!({ "path": path });
    for (text, tool, input, expected) in [
        ("Bash(npm run test:*)", "Bash", json!({"command": "npm run test --x"}), true),
        ("Edit(src/**)", "Write", path("src/a.rs"), true),
        ("edit(src/**)", "edit", path("src/../Cargo.toml"), false),
        ("write(src/**)", "edit", path("src/a.rs"), false),
        ("edit(**)", "edit", path(".git/hooks/pre-commit"), false),
        ("edit(.git/hooks/*)", "edit", path(".git/hooks/pre-commit"), true),
        ("Read(/etc/hosts)", "read", path("/etc/hosts"), true),
        ("WebFetch(domain:docs.rs)", "web_fetch", json!({"url": "https://docs.rs/x"}), true),
        ("web_fetch(domain:docs.rs)", "web_fetch", json!({"url": "https://docs.rs@evil.example/"}), false),
        ("mcp__github__get_issue", "mcp__github__get_issue", json!({}), true),
        ("mcp__github", "mcp__github__delete_repo", json!({}), true),
        ("mcp__github__get_*", "mcp__github__delete_repo", json!({}), false),
        ("mcp__git", "mcp__github__get_issue", json!({}), false),
        ("fs.read", "edit", path("a"), false),
        ("*", "anything", json!({}), true),
    ] {
        assert_eq!(allowed(text, tool, input.clone()), expected, "{text} on {tool} {input}");
    }
}

#[test]
fn a_deny_of_writing_a_file_means_every_way_to_write_it() {
    let policy = policy(vec![
        rule("bash", Allow, 0, User),
        rule("edit", Allow, 0, User),
        rule("edit(secret/**)", Deny, 0, User),
    ]);
    for (tool, input) in [
        ("edit", json!({"path": "secret/a"})),
        ("write", json!({"path": "/work/app/secret/a"})),
        ("bash", json!({"command": "echo x > secret/a"})),
        ("bash", json!({"command": "cd secret && tee a"})),
        ("bash", json!({"command": "cp a secret/b"})),
        ("bash", json!({"command": "sed -i s/a/b/ secret/a"})),
    ] {
        let opinion = decide_in(&policy, PermissionMode::Default, true, tool, input.clone());
        assert_eq!(opinion.verdict, Verdict::Deny, "{tool} {input}: {opinion:?}");
    }
    let below = decide_in(&policy, PermissionMode::Default, true, "bash", json!({"command": "rm -r secret"}));
    assert_eq!(below.verdict, Verdict::Deny);
    let above = decide_in(&policy, PermissionMode::Default, true, "bash", json!({"command": "rm -rf build ."}));
    assert_ne!(above.verdict, Verdict::Allow, "what holds it may not go unasked");
}
