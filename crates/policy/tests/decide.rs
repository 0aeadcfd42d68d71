//! What the policy decides, as tables.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_kernel::{Access, CallPlan, PermissionMode, Verdict};
use windlass_policy::{Ask, Opinion, Policy, Proposal};

use PermissionMode::{AcceptEdits, Bypass, Default as Plain, Plan};
use Verdict::{Allow, Ask as Asks, Deny};

/// One call with what its tool says of it.
#[derive(Clone)]
struct Call {
    tool: &'static str,
    input: Value,
    plan: CallPlan,
}

fn call(tool: &'static str, access: Access, tags: &[&str], paths: &[&str], input: Value) -> Call {
    let owned = |list: &[&str]| list.iter().map(|text| text.to_string()).collect();
    Call { tool, input, plan: CallPlan { access, tags: owned(tags), paths: owned(paths), ..CallPlan::default() } }
}

fn bash(command: &str) -> Call {
    call("bash", Access::Write, &["exec"], &[], json!({"command": command}))
}

fn read(path: &str) -> Call {
    call("read", Access::Read, &["fs.read"], &[path], json!({"path": path}))
}

fn edit(path: &str) -> Call {
    call("edit", Access::Write, &["fs.write"], &[path], json!({"path": path, "old": "a", "new": "b"}))
}

fn rules(list: &[&str]) -> Vec<String> {
    list.iter().map(|rule| rule.to_string()).collect()
}

fn policy(allow: &[&str], deny: &[&str], ask: &[&str]) -> Policy {
    Policy::new(&rules(allow), &rules(deny), &rules(ask)).unwrap()
}

fn decide_with(policy: &Policy, mode: PermissionMode, grants: &[String], interactive: bool, call: &Call) -> Opinion {
    let Call { tool, input, plan } = call;
    policy.decide(&Ask { tool, input, plan, mode, workspace: "/work/app", interactive, grants })
}

fn decide(policy: &Policy, mode: PermissionMode, call: &Call) -> Opinion {
    decide_with(policy, mode, &[], true, call)
}

fn written(proposed: Vec<Proposal>) -> Vec<String> {
    proposed.into_iter().map(|proposal| proposal.rule).collect()
}

#[test]
fn s0_22_every_call_is_allowed_asked_or_denied_with_a_reason() {
    let policy = policy(&["bash(cargo test:*)", "edit(src/**)"], &["bash(rm:*)"], &["bash(cargo publish:*)"]);
    let rows: Vec<String> = [
        bash("cargo test --all"),
        bash("cargo build"),
        bash("cargo publish --dry-run"),
        bash("cargo test; rm -rf x"),
        bash("rm -rf /"),
        read("src/main.rs"),
        read("/etc/passwd"),
        edit("src/main.rs"),
        edit("Cargo.toml"),
    ]
    .iter()
    .map(|call| {
        let Opinion { verdict, stage, rule, reason, proposed, .. } = decide(&policy, Plain, call);
        let proposed = written(proposed);
        format!("{verdict:?} | {stage} | {} | {reason} | {proposed:?}", rule.unwrap_or_default())
    })
    .collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    Allow | rule | bash(cargo test:*) | the rule `bash(cargo test:*)` allows it | []
    Ask | default |  | no rule allows `cargo build` | ["bash(cargo build:*)"]
    Ask | rule | bash(cargo publish:*) | `cargo publish --dry-run`: the rule `bash(cargo publish:*)` wants a person to be asked | ["bash(cargo publish:*)"]
    Deny | rule | bash(rm:*) | `rm -rf x`: the rule `bash(rm:*)` denies it; do not try it again, do without it or tell the person what you need | []
    Deny | floor |  | refused in every mode: deleting `/` deletes the whole file system; name the files below it that must go | []
    Allow | mode |  | it only reads, inside the workspace | []
    Ask | mode |  | it reads /etc/passwd, which is outside the workspace | ["read(/etc/passwd)"]
    Allow | rule | edit(src/**) | the rule `edit(src/**)` allows it | []
    Ask | default |  | it writes files | ["edit(Cargo.toml)"]
    "#);
}

#[test]
fn s0_25_a_denial_has_words_for_the_model() {
    let denied = decide(&policy(&[], &["bash(curl:*)"], &[]), Plain, &bash("sudo curl x"));
    assert_eq!((denied.verdict, denied.rule.as_deref()), (Deny, Some("bash(curl:*)")));
    assert_eq!(
        denied.reason,
        "`sudo curl x`: the rule `bash(curl:*)` denies it; do not try it again, do without it or tell the person what you need"
    );
}

#[test]
fn s0_26_what_may_do_harm_needs_a_person() {
    let policy = Policy::default();
    let unknown = call("deploy", Access::Write, &[], &[], json!({}));
    let fetch = call("web_fetch", Access::Read, &["net"], &[], json!({"url": "https://x"}));
    let question = call("ask_user", Access::Read, &["ask"], &[], json!({"question": "which?"}));
    let listing = call("ls", Access::Read, &["fs.read"], &[], json!({}));
    for (call, plain, edits, plan, bypass) in [
        (read("a"), Allow, Allow, Allow, Allow),
        (listing, Allow, Allow, Allow, Allow),
        (question, Allow, Allow, Allow, Allow),
        (read("../other/a"), Asks, Asks, Asks, Allow),
        (read("/work/app2/a"), Asks, Asks, Asks, Allow),
        (edit("a"), Asks, Allow, Deny, Allow),
        (edit("/work/app/a"), Asks, Allow, Deny, Allow),
        (edit("../a"), Asks, Asks, Deny, Allow),
        (edit("x/../../a"), Asks, Asks, Deny, Allow),
        (edit(".git/hooks/pre-commit"), Asks, Asks, Deny, Allow),
        (edit("sub/.GIT/config"), Asks, Asks, Deny, Allow),
        (edit(".windlass/config.toml"), Asks, Asks, Deny, Allow),
        (edit(".bashrc"), Asks, Asks, Deny, Allow),
        (bash("ls"), Asks, Asks, Asks, Allow),
        (bash("make"), Asks, Asks, Deny, Allow),
        (bash("rm -rf /"), Deny, Deny, Deny, Deny),
        (fetch, Asks, Asks, Asks, Allow),
        (unknown, Asks, Asks, Deny, Allow),
    ] {
        for (mode, expected) in [(Plain, plain), (AcceptEdits, edits), (Plan, plan), (Bypass, bypass)] {
            let opinion = decide(&policy, mode, &call);
            assert_eq!(opinion.verdict, expected, "{} {} in {mode:?}: {opinion:?}", call.tool, call.input);
        }
    }
}

#[test]
fn the_ladder_is_read_from_the_top() {
    let all = policy(&["bash"], &["bash(rm:*)"], &["bash(git push:*)"]);
    let wide = rules(&["bash"]);
    for (mode, grants, command, expected) in [
        (Plain, &[][..], "ls", (Allow, "rule")),
        (Plain, &[], "git push", (Asks, "rule")),
        (Plain, &wide, "git push", (Allow, "grant")),
        (Plain, &wide, "rm x", (Deny, "rule")),
        (Plain, &wide, "rm -rf ~", (Deny, "floor")),
        (Bypass, &[], "git push", (Allow, "mode")),
        (Bypass, &[], "rm x", (Deny, "rule")),
        (Bypass, &wide, "rm -rf ~", (Deny, "floor")),
        (Plan, &wide, "ls", (Allow, "rule")),
        (Plan, &wide, "make", (Deny, "mode")),
    ] {
        let opinion = decide_with(&all, mode, grants, true, &bash(command));
        assert_eq!((opinion.verdict, &opinion.stage[..]), expected, "{command} in {mode:?}");
    }
}

#[test]
fn rules_go_by_tool_tag_path_and_arguments() {
    let trade = |amount: u32| call("trade", Access::Write, &["net"], &[], json!({"symbol": "X", "amount": amount}));
    for (allow, call, expected) in [
        ("edit", edit("/anywhere"), Allow),
        ("Edit(src/**)", edit("/work/app/src/a/b.rs"), Allow),
        ("edit(src/**)", edit("src/../Cargo.toml"), Asks),
        ("edit(**)", edit("../x"), Asks),
        ("edit(/etc/hosts)", edit("/etc/hosts"), Allow),
        ("write(src/**)", edit("src/a"), Asks),
        ("fs.write(src/**)", edit("src/a"), Allow),
        ("fs.write", edit("src/a"), Allow),
        ("read(/var/log/*)", read("/var/log/syslog"), Allow),
        ("exec", bash("anything | at all"), Allow),
        ("bash(*)", bash("anything | at all"), Allow),
        ("trade", trade(5), Allow),
        ("net", trade(5), Allow),
        (r#"trade({"amount":5,"symbol":"X"})"#, trade(5), Allow),
        (r#"trade(*"symbol":"X"*)"#, trade(5), Allow),
        (r#"trade(*"amount":5,*)"#, trade(50), Asks),
    ] {
        assert_eq!(decide(&policy(&[allow], &[], &[]), Plain, &call).verdict, expected, "{allow} for {}", call.input);
    }
}

#[test]
fn a_denied_path_is_denied_by_every_spelling() {
    let policy = policy(&["edit", "read"], &["fs.read(secrets/**)", "edit(secrets/**)"], &[]);
    for path in ["secrets/key", "./secrets//key", "a/../secrets/key", "/work/app/secrets/key", "secrets"] {
        assert_eq!(decide(&policy, Bypass, &read(path)).verdict, Deny, "read {path}");
        assert_eq!(decide(&policy, Bypass, &edit(path)).verdict, Deny, "edit {path}");
    }
}

#[test]
fn s4_21_the_default_asks_where_no_rule_matches() {
    let none = policy(&["trade"], &["trade_all"], &[]);
    let opinion = decide(&none, Plain, &call("cancel_jobs", Access::Write, &[], &[], json!({})));
    assert_eq!((opinion.verdict, &opinion.stage[..], opinion.rule), (Asks, "default", None));
}

#[test]
fn s4_22_headless_ask_becomes_deny() {
    let rows: Vec<String> = [
        bash("cargo test --all"),
        bash("cargo test | tail"),
        bash("echo \"it's\""),
        edit("src/a b.rs"),
        read("/etc/hosts"),
        call("deploy", Access::Write, &[], &[], json!({"to": "prod"})),
        bash("git push"),
    ]
    .iter()
    .map(|call| {
        let opinion = decide_with(&policy(&[], &[], &["bash(git push:*)"]), Plain, &[], false, call);
        assert_eq!(opinion.verdict, Deny);
        opinion.reason
    })
    .collect();
    insta::assert_snapshot!(rows.join("\n"), @r#"
    bash needs approval and nobody can be asked here (no rule allows `cargo test --all`); allow it with --allow 'bash(cargo test:*)' or --yes
    bash needs approval and nobody can be asked here (no rule allows `cargo test`); allow it with --allow 'bash(cargo test:*)' --allow 'bash(tail:*)' or --yes
    bash needs approval and nobody can be asked here (no rule allows `echo "it's"`); allow it with --allow 'bash(echo:*)' or --yes
    edit needs approval and nobody can be asked here (it writes files); allow it with --allow 'edit(src/a b.rs)' or --yes
    read needs approval and nobody can be asked here (it reads /etc/hosts, which is outside the workspace); allow it with --allow 'read(/etc/hosts)' or --yes
    deploy needs approval and nobody can be asked here (it may change something); allow it with --allow 'deploy({"to":"prod"})' or --yes
    bash needs approval and nobody can be asked here (`git push`: the rule `bash(git push:*)` wants a person to be asked); take the ask rule 'bash(git push:*)' out, or use --yes
    "#);
}

#[test]
fn always_proposes_the_narrowest_useful_rule() {
    for (call, expected) in [
        (bash("cargo test --all"), &["bash(cargo test:*)"][..]),
        (bash("git commit -m 'a b'"), &["bash(git commit:*)"]),
        (bash("npm run build --x"), &["bash(npm run build:*)"]),
        (bash("npm run"), &["bash(npm run)"]),
        (bash("git -C x status"), &["bash(git status:*)"]),
        (bash("git config user.name x"), &["bash(git config user.name x)"]),
        (bash("ls -la *.rs"), &["bash(ls:*)"]),
        (bash("ls *"), &["bash(ls:*)"]),
        (bash("echo \"it's\""), &["bash(echo:*)"]),
        (bash("python script.py --x"), &["bash(python script.py --x)"]),
        (bash("sudo cargo test"), &["bash(sudo cargo test)"]),
        (bash("find src -delete"), &["bash(find src -delete)"]),
        (bash("cargo test && cargo fmt"), &["bash(cargo test:*)", "bash(cargo fmt:*)"]),
        (bash("cargo test > out"), &["edit(out)", "bash(cargo test:*)"]),
        (bash("cargo test && $x"), &[]),
        (bash("python3 --version"), &["bash(python3 --version)"]),
        (bash("git stash list"), &["bash(git stash list:*)"]),
        (bash("systemctl status x"), &["bash(systemctl status x)"]),
        (edit("src/a.rs"), &["edit(src/a.rs)"]),
        (edit("/work/app/src/[a].rs"), &["edit(src/[[]a[]].rs)"]),
        (edit("~x"), &["edit(./~x)"]),
        (read("/etc/hosts"), &["read(/etc/hosts)"]),
        (call("move", Access::Write, &["fs.write"], &["a", "b"], json!({})), &[]),
        (call("edit", Access::Write, &["fs.write"], &["a", "b"], json!({})), &["edit({a,b})"]),
        (call("t", Access::Write, &[], &[], json!({"b": 1, "a": "x"})), &[r#"t({"a":"x","b":1})"#, "t"]),
        (call("t", Access::Write, &[], &[], json!({"a": "*"})), &["t"]),
        (call("shell", Access::Write, &["exec"], &[], json!({"command": "cargo test"})), &["exec(cargo test:*)"]),
    ] {
        let proposed = written(decide(&Policy::default(), Plain, &call).proposed);
        assert_eq!(proposed, rules(expected), "{} {}", call.tool, call.input);
    }
}

#[test]
fn a_grant_that_cannot_be_read_allows_nothing() {
    let opinion = decide_with(&Policy::default(), Plain, &rules(&["bash(a | b)", "bash("]), true, &bash("a | b"));
    assert_eq!((opinion.verdict, &opinion.stage[..]), (Asks, "default"));
}

/// Commands made of pieces that mean something to a shell or to a rule.
fn any_command() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "cargo",
        "test",
        "rm",
        "-rf",
        "/",
        "~",
        ".",
        "..",
        "*",
        "$HOME",
        "sudo",
        "env",
        "sh",
        "-c",
        "eval",
        "find",
        "cd",
        "-exec",
        "-delete",
        "'",
        "\"",
        "\\",
        "`",
        "$(",
        "(",
        ")",
        "{",
        "}",
        ",",
        ";",
        "&",
        "|",
        ">",
        "<",
        "<<",
        "#",
        "!",
        "\n",
        "\t",
        " ",
        " ",
        " ",
        "=",
        "X=1",
        "$'",
        "é",
        "\u{200b}",
        "dd",
        "of=/dev/sda",
        ":",
        "--",
        "-",
        "5",
    ]);
    prop_oneof![prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat()), any::<String>()]
}

/// Whether bash would compute something in `command`: a substitution or a variable outside of single quotes.
fn is_computed(command: &str) -> bool {
    let (mut quote, mut escaped) = (None, false);
    let begins = |sign: Option<&char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric() || "_({".contains(*sign));
    let mut signs = command.chars().peekable();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            _ if std::mem::take(&mut escaped) => {}
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), sign) if open == sign => quote = None,
            (None | Some('"'), '`') => return true,
            (None | Some('"'), '$') if begins(signs.peek()) => return true,
            // What stands behind it is no command any more.
            (None, '#') => return false,
            _ => {}
        }
    }
    false
}

fn strength(verdict: Verdict) -> u8 {
    match verdict {
        Allow => 0,
        Asks => 1,
        _ => 2,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn deciding_never_panics(command in any_command(), path in any::<String>(), rule in any::<String>()) {
        let rule = [rule];
        let policy = Policy::new(&rule, &rule, &rule).unwrap_or_default();
        for call in [bash(&command), read(&path), edit(&path)] {
            for mode in [Plain, AcceptEdits, Plan, Bypass] {
                decide_with(&policy, mode, &rule, false, &call);
            }
        }
    }

    #[test]
    fn an_allow_pattern_never_allows_what_is_computed(command in any_command(), tail in any_command()) {
        let policy = policy(&["bash(cargo test:*)", "bash(cargo *)", "bash(rm:*)", "bash(find:*)"], &[], &[]);
        for command in [command, format!("cargo test {tail}")] {
            // A value that is computed and goes nowhere is nothing: `a=$HOME; cargo test`.
            if is_computed(&command) && !command.contains('=') {
                prop_assert_ne!(decide(&policy, Plain, &bash(&command)).verdict, Allow);
            }
        }
    }

    #[test]
    fn one_more_deny_rule_never_makes_a_deny_an_allow(command in any_command(), mode in 0..4usize) {
        let mode = [Plain, AcceptEdits, Plan, Bypass][mode];
        let before = decide(&policy(&["bash"], &["bash(rm:*)"], &["bash(cargo:*)"]), mode, &bash(&command)).verdict;
        for deny in ["bash(sudo:*)", "bash", "bash(cargo test)", "edit(**)"] {
            let after = decide(&policy(&["bash"], &["bash(rm:*)", deny], &["bash(cargo:*)"]), mode, &bash(&command));
            prop_assert!(before != Deny || after.verdict == Deny);
            prop_assert!(strength(after.verdict) >= strength(before), "{after:?}");
        }
    }

    #[test]
    fn a_proposed_rule_allows_its_call_when_granted(command in any_command(), path in "[a-z~*\\[\\]{}., /]{1,12}") {
        for call in [bash(&command), edit(&path)] {
            let opinion = decide(&Policy::default(), Plain, &call);
            let proposed = written(opinion.proposed);
            let together = opinion.together && !proposed.is_empty();
            let grants = if together { vec![proposed] } else { proposed.into_iter().map(|rule| vec![rule]).collect() };
            for rules in grants {
                let again = decide_with(&Policy::default(), Plain, &rules, true, &call);
                prop_assert_eq!(again.verdict, Allow, "{:?}", rules);
            }
        }
    }
}
