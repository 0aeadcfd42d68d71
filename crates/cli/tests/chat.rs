//! The line chat, driven through pipes: each line waits for its turn.

mod common;
use common::*;

/// Answers by the last prompt; a command for `go`, a question for `ask`.
const TALK: &str = r#"
[[step]]
when = { last_user = 'hello' }
blocks = [{ text = "Hi there." }]
[[step]]
when = { last_user = 'fail' }
status = 400
error = { message = "the model is out of order" }
[[step]]
blocks = [{ text = "What?" }]
"#;

#[test]
fn a_conversation_goes_line_by_line() {
    let stage = Stage::new("repeat = true\n[[step]]\nblocks = [{ text = \"Yes.\" }]\n");
    let told = stage.type_in(&[], "one\ntwo\nexit\nnever\n").code(0);
    assert_eq!(told.out.matches("Yes.\n").count(), 2, "{}", told.out);
    assert_eq!(told.out.matches("1 round, 0 tool runs,").count(), 2, "{}", told.out);
    let asked = stage.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].contains("one") && asked[1].contains("two"));
}

#[test]
fn s4_02_special_commands_are_for_the_chat() {
    let stage = Stage::new(HELLO);
    let told = stage.type_in(&[], "help\n/help\n/history\nhello you\n/history\n/clear\n/history\nquit\n").code(0);
    assert_eq!(told.out.matches("/resume [ID]").count(), 2, "{}", told.out);
    assert!(told.out.contains("  nothing was said yet"));
    assert!(told.out.contains("> hello you\nHello from the model.\n"), "{}", told.out);
    assert!(told.out.contains("forgotten: the conversation begins anew"));
    assert_eq!(stage.asked().len(), 1, "only the prompt went to the model (S0-05)");
}

#[test]
fn s0_05_a_command_makes_no_model_call() {
    let stage = Stage::new(HELLO);
    stage.type_in(&[], "/clear\n/compact\n/resume\n/hlep\nexit\n").code(0).out_has("did you mean /help?");
    assert!(stage.server.requests().is_empty());
    assert!(stage.run(&["sessions", "--json"]).code(0).out.contains("[]"), "who only looks in leaves no session");
}

#[test]
fn s0_03_resume_lists_sessions_and_goes_on_with_one() {
    let stage = Stage::new(HELLO);
    stage.run(&["-p", "my name is Ada"]).code(0);
    let id = stage.newest();
    let told = stage.type_in(&[], &format!("/resume\n/resume {id}\nwho am I?\n/resume nonsense\nexit\n")).code(0);
    let told = told.out_has(&format!("  {id}")).out_has("> my name is Ada\nHello from the model.\n");
    told.out_has("there is no session `nonsense`");
    assert!(stage.asked()[1].contains("my name is Ada") && stage.asked()[1].contains("who am I?"));
}

#[test]
fn s4_05_a_failed_run_prints_an_error_and_the_chat_goes_on() {
    let stage = Stage::new(TALK);
    let told = stage.type_in(&[], "fail\n/clear\nhello\nexit\n").code(0);
    assert!(told.out.contains("the model is out of order"), "{}", told.out);
    assert!(told.out.contains("Hi there."), "{}", told.out);
}

#[test]
fn an_approval_shows_the_command_and_takes_yes() {
    let stage = Stage::new(&runner("touch made.txt"));
    let told = stage.type_in(&[], "go\nwhat?\ny\nexit\n").code(0).out_has("may this run? bash touch made.txt");
    let told = told.out_has("[y]es once, for this [s]ession, ").out_has("`what?` is no answer").out_has("That was it.");
    let folder = stage.work().canonicalize().expect("the folder is there");
    told.out_has(&format!(" in {}", folder.display()));
    assert!(stage.work().join("made.txt").exists());
}

#[test]
fn a_no_goes_to_the_model_with_its_word() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.type_in(&[], "go\nn use make instead\nexit\n").code(0).out_has("That was it.");
    assert!(!stage.work().join("made.txt").exists());
    assert!(stage.asked()[1].contains("use make instead"), "{}", stage.asked()[1]);
}

/// The same command twice: once a prompt.
fn twice() -> Stage {
    Stage::new(&runner("touch made.txt").repeat(2))
}

#[test]
fn a_yes_for_the_project_is_kept_for_the_folder_and_an_always_for_all() {
    let stage = twice();
    let told = stage.type_in(&[], "go\np\ngo on\nexit\n").code(0);
    assert_eq!(told.out.matches("may this run?").count(), 1, "{}", told.out);
    assert_eq!(told.out.matches("That was it.").count(), 2, "{}", told.out);
    let kept = std::fs::read_to_string(stage.home().join("rules.toml")).expect("the rule was kept");
    assert!(kept.contains("bash(touch made.txt)"), "{kept}");
    stage.run(&["config"]).code(0).out_has("rules.kept += \"bash(touch made.txt)\"");
    let elsewhere = stage.work().join("other");
    std::fs::create_dir(&elsewhere).expect("a folder can be made");
    let shown = told_in(&stage, &elsewhere, &["config"]);
    assert!(!shown.out.contains("touch"), "{}", shown.out);

    let stage = twice();
    stage.type_in(&[], "go\na\ngo on\nexit\n").code(0);
    let elsewhere = stage.work().join("other");
    std::fs::create_dir(&elsewhere).expect("a folder can be made");
    told_in(&stage, &elsewhere, &["config"]).out_has("rules.kept += \"bash(touch made.txt)\"");
}

fn told_in(stage: &Stage, folder: &std::path::Path, arguments: &[&str]) -> Told {
    told(stage.command(arguments).current_dir(folder).output().expect("the binary runs"))
}

#[test]
fn a_session_rule_ends_with_the_session() {
    let stage = twice();
    let told = stage.type_in(&[], "go\ns\ngo on\nexit\n").code(0);
    assert_eq!(told.out.matches("may this run?").count(), 1, "{}", told.out);
    assert!(stage.work().join("made.txt").exists() && !stage.home().join("rules.toml").exists());
}

#[test]
fn the_models_question_is_answered_by_number_or_words() {
    let script = "[[step]]\nblocks = [{ tool = \"ask_user\", input = { question = \"Which colour?\", \
                  options = [\"red\", \"blue\"] } }]\n\
                  [[step]]\ncapture = { colour = '(blue|green)' }\nblocks = [{ text = \"You like ${colour}.\" }]\n";
    let told = Stage::new(script).type_in(&[], "go\n2\nexit\n").code(0);
    told.out_has("  Which colour?\n    1  red\n    2  blue\n").out_has("You like blue.");
    Stage::new(script).type_in(&[], "go\ngreen\nexit\n").code(0).out_has("You like green.");
}

#[test]
fn when_nobody_types_any_more_questions_are_denied_and_it_ends() {
    let stage = Stage::new(&runner("touch made.txt"));
    stage.type_in(&[], "go\n").code(0).out_has("That was it.");
    assert!(!stage.work().join("made.txt").exists());
}

#[test]
fn the_model_can_be_changed_in_the_middle() {
    let stage = Stage::new(HELLO);
    let told = stage.type_in(&[], "one\n/model anthropic/other\ntwo\n/model nonsense\nexit\n").code(0);
    told.out_has("from here on anthropic/other").out_has("`nonsense` names no model");
    let asked = stage.asked();
    assert!(asked[1].contains("\"anthropic/other\"") || asked[1].contains("\"other\""), "{}", asked[1]);
    assert!(asked[1].contains("one"));
}

#[test]
fn a_chat_without_a_model_does_not_begin() {
    let stage = Stage::new(HELLO);
    let mut command = stage.bare(&["--model", "groq/llama"]);
    told(command.output().expect("the binary runs")).code(4).err_has("groq needs a key");
}

#[test]
fn the_chat_says_that_a_session_is_open_elsewhere() {
    let stage = Stage::new("[[step]]\ndelay_ms = 60000\nblocks = [{ text = \"late\" }]\n");
    let child = stage.start_until_asked(&["-p", "slow"], 1);
    stage.type_in(&["-c"], "hello\n").code(5).err_has("is open in process");
    let told_here = stage.type_in(&[], &format!("/resume {}\nexit\n", stage.newest())).code(0);
    told_here.out_has("is open in process");
    signal(&child, "TERM");
    told(child.wait_with_output().expect("it ends")).code(130);
}

#[test]
fn a_diff_is_shown_before_an_edit() {
    let script = "[[step]]\nblocks = [{ tool = \"read\", input = { path = \"a.txt\" } }]\n\
                  [[step]]\nblocks = [{ tool = \"edit\", input = { path = \"a.txt\", old = \"one\", new = \"two\" } }]\n\
                  [[step]]\nblocks = [{ text = \"Edited.\" }]\n";
    let stage = Stage::new(script);
    stage.write("a.txt", "one\n");
    let told = stage.type_in(&["-v"], "go\ny\nexit\n").code(0).out_has("    -one\n    +two");
    told.out_has("  edit a.txt  +1 −1  ");
    assert_eq!(stage.read("a.txt"), "two\n");
}

#[test]
fn no_model_without_a_price_is_taken_under_a_cap_in_dollars() {
    let stage = Stage::new(HELLO);
    let typed = "hi\n/model anthropic/unheard-of\nhi again\nexit\n";
    let told = stage.type_in(&["--max-cost", "1"], typed).code(0);
    let told = told.out_has("no price of anthropic/unheard-of is known");
    assert!(!told.out.contains("from here on"), "{}", told.out);
    assert!(stage.asked().iter().all(|body| !body.contains("unheard-of")));
}
