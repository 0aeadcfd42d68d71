//! Stories of command lines taken apart.

use super::*;

/// Commands as their words, joined by `·`; a computed word in `<…>`, a pattern in `[…]`.
fn told(text: &str) -> Vec<String> {
    let shown = |word: &Word| match word.kind {
        WordKind::Known if word.tilde => format!("({})", word.text),
        WordKind::Known => word.text.clone(),
        WordKind::Glob => format!("[{}]", word.text),
        WordKind::Unknown => format!("<{}>", word.text),
    };
    let joined = |command: &Simple| command.words.iter().map(shown).collect::<Vec<_>>().join("·");
    script(text).commands.iter().map(joined).collect()
}

fn doubts(text: &str) -> String {
    script(text).doubts.join("; ")
}

#[test]
fn a_program_is_found_however_it_is_spelled() {
    for (text, expected) in [
        (r#"r"m" -r\f"#, "rm·-rf"),
        (r"\rm x", "rm·x"),
        (r"$'\x72m' -rf", "rm·-rf"),
        ("X=1 rm x", "rm·x"),
        (">f rm x", "rm·x"),
        ("2>&1 rm x", "rm·x"),
        ("! rm x", "rm·x"),
        ("time rm x", "rm·x"),
        ("time -p X=1 rm x", "rm·x"),
    ] {
        assert_eq!((told(text), doubts(text)), (vec![expected.into()], String::new()), "{text}");
    }
}

#[test]
fn a_program_that_braces_spell_is_found_though_the_parser_fails() {
    assert!(told("{rm,-rf,/}").contains(&"rm·-rf·/".into()));
    assert!(doubts("{rm,-rf,/}").contains("cannot be parsed"));
}

#[test]
fn what_a_substitution_runs_is_found_wherever_it_stands() {
    for text in [
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"a `rm x`\"",
        "echo $(echo $(echo $(rm x)))",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<< \"$(rm x)\"",
        "echo ${y:-$(rm x)}",
        "echo \"${y:-$(rm x)}\"",
        "echo $((1 + a[$(rm x)]))",
        "a=$(rm x)",
        "a=(1 $(rm x))",
        "export A=$(rm x)",
        "a[$(rm x)]=1",
        "ls > $(rm x)",
        "ls > \"a$(rm x)\"",
        "[[ -f $(rm x) ]]",
        "[ -f $(rm x) ]",
        "(( a[$(rm x)] ))",
        "diff <(rm x) y",
        "ls > >(rm x)",
        "for f in $(rm x); do ls; done",
        "for ((i=$(rm x); i<1; i++)); do ls; done",
        "case $(rm x) in a) ls;; esac",
        "case a in $(rm x)) ls;; esac",
        "case a in a) rm x;; esac",
        "if ls; then rm x; fi",
        "while rm x; do ls; done",
        "f() { rm x; }",
        "coproc rm x",
        "{ (rm x) & } | ls",
        "ls | tee >(rm x)",
        "echo a{b,$(rm x)}",
        "cat <<EOF\n`rm x`\nEOF",
        "ls; rm x 'never closed",
        "ls\nrm x",
        "ls &rm x",
        "ls ||rm x",
        "echo a # '\nrm x",
    ] {
        let found = told(text).iter().any(|command| command.starts_with("rm·x"));
        assert!(found, "{text}: {:?}", told(text));
    }
}

#[test]
fn words_are_known_patterns_or_computed() {
    for (text, expected) in [
        ("a '*' \\* \"*\"", "a·*·*·*"),
        ("a * b? [ab]c '['", "a·[*]·[b?]·[[ab]c]·["),
        ("a \"*\"* 'a?'*", "a·[[*]*]·[a[?]*]"),
        ("a ~ ~/x ~ann/y '~' x~", "a·(~)·(~/x)·(~ann/y)·~·x~"),
        ("a $HOME/x \"${HOME}/y\"", "a·<$HOME/x>·<${HOME}/y>"),
        ("a $? $# $$ $1 $@", "a·<$?>·<$#>·<$$>·<$1>·<$@>"),
        ("a $((1+2)) $(ls)", "a·<$((1+2))>·<$(ls)>"),
        ("$x a", "<$x>·a"),
        ("a {1..3} {b,$x}", "a·1·2·3·b·<$x>"),
        ("a of=~/x --to=~/x", "a·<of=~/x>·--to=~/x"),
        ("a $'\\xff'", "a·<\\xff>"),
        ("a {1..999999}", "a·<{1..999999}>"),
        ("[[ -f x && $y == b* ]]", "[[·-f·x·&&·<$y>·==·[b*]·]]"),
        ("[ -f x ]", "[·-f·x·]"),
        ("((1 + 2))", "((·1 + 2·))"),
        ("export X=1 'Y=a b'", "export·X=1·Y=a b"),
    ] {
        assert_eq!(told(text).first().map(String::as_str), Some(expected), "{text}");
        assert_eq!(doubts(text), "", "{text}");
    }
}

#[test]
fn a_loop_over_constants_is_written_out() {
    for (text, expected) in [
        ("for f in a b; do wc -l \"$f\"; done", vec!["wc·-l·a", "wc·-l·b"]),
        ("for f in *.rs; do wc -l \"$f\" $f; done", vec!["wc·-l·[*.rs]·<$f>"]),
        ("for f in a 'b c'; do ls $f; done", vec!["ls·a", "ls·<$f>"]),
        ("for f in a; do for g in 1 2; do ls $f$g; done; done", vec!["ls·a1", "ls·a2"]),
        ("for f in a; do f=b; ls $f; done", vec!["", "ls·<$f>"]),
        ("for f in a; do read f; ls $f; done", vec!["read·f", "ls·<$f>"]),
        ("for f in a; do ls ${f:=b}; done", vec!["ls·<${f:=b}>"]),
        ("for f in $x; do ls $f; done", vec!["ls·<$f>"]),
        ("for f; do ls $f; done", vec!["ls·<$f>"]),
        ("declare -n f=g; for f in a; do ls $f; done", vec!["declare·-n·f=g", "ls·<$f>"]),
        ("for f in {1..33}; do ls $f; done", vec!["ls·<$f>"]),
        ("for f in a; do ls; done; ls $f", vec!["ls", "ls·<$f>"]),
        ("for f in ~/x; do ls \"$f/y\" \"a$f\"; done", vec!["ls·(~/x/y)·<a$f>"]),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn redirections_are_told_apart() {
    let redirects = |text: &str| -> Vec<String> {
        let shown = |redirect: &Redirect| format!("{:?} {}", redirect.kind, redirect.target.text);
        script(text).commands.iter().flat_map(|command| command.redirects.iter().map(shown)).collect()
    };
    for (text, expected) in [
        ("a > f", vec!["Write f"]),
        ("a >> f < g", vec!["Write f", "Read g"]),
        ("a >| f", vec!["Write f"]),
        ("a &> f", vec!["Write f"]),
        ("a &>> f", vec!["Write f"]),
        ("a >& f", vec!["Write f"]),
        ("a 2> f b", vec!["Write f"]),
        ("a > 'f g' b", vec!["Write f g"]),
        ("a 2>&1 >&2 1>&- 2>&1-", vec![]),
        ("a <<EOF\nx\nEOF", vec![]),
        ("{ a; } > f", vec!["Write f"]),
        ("a | b > f", vec!["Write f"]),
        ("> f", vec!["Write f"]),
        ("a > $x", vec!["Write $x"]),
        ("a > {b,c}", vec!["Write {b,c}"]),
    ] {
        assert_eq!(redirects(text), expected, "{text}");
    }
}

#[test]
fn where_input_comes_from_is_known() {
    let inputs =
        |text: &str| -> Vec<Input> { script(text).commands.into_iter().map(|command| command.input).collect() };
    assert_eq!(inputs("a | sh"), [Input::Inherited, Input::Pipe]);
    assert_eq!(inputs("a | { sh; }"), [Input::Inherited, Input::Pipe]);
    assert_eq!(inputs("sh < f"), [Input::File]);
    assert_eq!(inputs("sh <<< 'a b'"), [Input::Text(Some("a b\n".into()))]);
    assert_eq!(inputs("sh <<< $x"), [Input::Text(None)]);
    assert_eq!(inputs("sh <<'E'\nls $x\nE"), [Input::Text(Some("ls $x\n".into()))]);
    assert_eq!(inputs("sh <<E\nls $x\nE"), [Input::Text(None)]);
    assert_eq!(inputs("sh <<-E\n\tls\n\tE"), [Input::Text(Some("ls\n".into()))]);
    assert_eq!(inputs("a && sh <<E\nls\nE\nb"), [Input::Inherited, Input::Text(Some("ls\n".into())), Input::Inherited]);
    assert_eq!(inputs("while read x; do sh; done < f"), [Input::File, Input::File, Input::File]);
}

#[test]
fn subshells_are_told_apart() {
    let scopes =
        |text: &str| -> Vec<Vec<u32>> { script(text).commands.into_iter().map(|command| command.scope).collect() };
    let found = scopes("cd a; (cd b; (cd c)); (cd d) | cd e; { cd f; } & cd g");
    let [a, b, c, d, e, f, g] = &found[..] else { panic!("{found:?}") };
    assert!(a.is_empty() && g.is_empty());
    assert_eq!((b.len(), c.len(), d.len(), e.len(), f.len()), (1, 2, 2, 1, 1));
    assert_eq!(b[0], c[0]);
    assert!(b[0] != d[0] && d[0] != e[0] && e[0] != f[0]);
}

#[test]
fn what_is_not_read_for_sure_is_in_doubt() {
    for (text, why) in [
        ("ls 'x", "quote at byte 3 (line 1) is not closed"),
        ("ls\necho \"x", "double quote at byte 8 (line 2)"),
        ("ls $(x", "not closed"),
        ("ls )", "closes nothing"),
        ("ls; }", "`}`"),
        ("if ls", "cannot be parsed"),
        ("ls ; ; ls", "follows an operator"),
        ("ls \\", "ends with a backslash"),
        ("cat <<EOF\nx", "not ended by a line `EOF`"),
        ("f() { ls; }", "defines a function, `f`"),
        ("function f { ls; }", "defines a function, `f`"),
        ("coproc ls", "coprocess"),
        ("ls {fd}> f", "named descriptor"),
        ("ls $[1]", "old form of arithmetic"),
        ("ls $\"x\"", "two ways"),
        ("ls `a \\`b\\``", "backquotes"),
        ("ls \"${x:-'}'}\"", "two ways"),
        ("r\\\nm x", "two ways"),
        ("ls\u{202e}", "U+202E"),
        ("ls\r\n", "U+000D"),
        ("x='a[$(rm y)]'", "arithmetic would run"),
    ] {
        assert!(doubts(text).contains(why), "{text:?}: {}", doubts(text));
    }
    assert!(doubts(&"(".repeat(1000)).contains("cannot be parsed"));
    assert!(doubts(&"$(".repeat(1000)).contains(NESTS_DEEPER));
    assert!(doubts(&"a".repeat(MAX_BYTES + 1)).contains("65536"));
}

#[test]
fn only_one_bare_command_has_words() {
    let known = |text: &str| words(text).map(|words| words.into_iter().map(|word| word.text).collect::<Vec<_>>());
    assert_eq!(known(" git  'commit' -m\n"), Some(vec!["git".into(), "commit".into(), "-m".into()]));
    for text in ["", "a; b", "a | b", "a > f", "X=1 a", "a $x", "(a)", "a &", "! a", "time a", "a <<< b", "a # b"] {
        assert_eq!(known(text), None, "{text}");
    }
}

#[test]
fn an_outline_shows_commands_and_what_runs_in_them() {
    let outline = tree("X=1 git commit -m \"$(cat m)\" > log && for f in *.rs; do wc \"$f\"; done | sort");
    insta::assert_snapshot!(outline, @r#"
    command X=1 git commit -m "$(cat m)" > log
      sets X to `1`
      word `git`
      word `commit`
      word `-m`
      word `$(cat m)`, computed
      writes `log`
      command cat m
        word `cat`
        word `m`
      command wc "$f"
        word `wc`
        word `*.rs`, a pattern
      command sort
        word `sort`
        input from a pipe
    "#);
}

#[test]
fn a_constant_here_document_in_a_quoted_word_is_known() {
    let known = |text: &str| {
        let script = script(text);
        let first = script.commands.iter().find(|command| !command.repeats)?;
        let word = first.words.last()?;
        (script.doubts.is_empty() && word.kind == WordKind::Known).then(|| word.text.clone())
    };
    let commit = "git commit -m \"$(cat <<'EOF'\nAdd `x` to $(y)\n\nMore \"words\".\nEOF\n)\"";
    assert_eq!(known(commit).as_deref(), Some("Add `x` to $(y)\n\nMore \"words\"."));
    for text in [
        "git commit -m \"$(cat <<EOF\n$(touch x)\nEOF\n)\"",
        "git commit -m $(cat <<'EOF'\na b\nEOF\n)",
        "git commit -m \"$(cat f <<'EOF'\na\nEOF\n)\"",
        "git commit -m \"$(cat <<'EOF'\na\nEOF\ntouch x\n)\"",
        "git commit -m \"$(cat <<'EOF' | sh\na\nEOF\n)\"",
        "git commit -m \"$(dog <<'EOF'\na\nEOF\n)\"",
    ] {
        assert_eq!(known(text), None, "{text}");
    }
}

#[test]
fn a_dash_before_a_here_document_is_a_word() {
    for (text, expected) in [
        ("git commit -F - <<'E'\na\nE", "git·commit·-F·-"),
        ("cat - <<E\na\nE", "cat·-"),
        ("cat - <<-E\n\ta\n\tE", "cat·-"),
        ("cat -<<E\na\nE", "cat·-"),
        ("sh - <<< a", "sh·-"),
    ] {
        assert_eq!(told(text).first().map(String::as_str), Some(expected), "{text}");
        assert_eq!(doubts(text), "", "{text}");
    }
}
