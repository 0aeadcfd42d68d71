//! `bash`: a command in a shell, in a process group of its own that never outlives a call that was stopped.

use crate::args::{normalise, parse};
use crate::blocking::blocking;
use crate::collector::{Collected, Collector};
use crate::launch::{Started, launch};
use crate::orphans::kill_leftovers;
use crate::output::{BLOB_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, blob, lossy, scratch_file, whole_chars};
use crate::process::{Group, record};
use crate::{Confirm, Confirmation, Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::MissedTickBehavior;
use windlass_kernel::{Access, CallPlan, OnCrash, QuestionKind};
use windlass_sandbox::Kind;

/// Milliseconds a command may take where neither the call nor the configuration says otherwise.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// Milliseconds a call may ask for, where the configuration sets no limit.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// Bytes of the output limit kept free for the words around a command's output.
const WORDS_BYTES: usize = 1_000;
/// How long output is awaited after the shell has ended: a background child may hold the pipe for ever.
const DRAIN: Duration = Duration::from_millis(100);
/// How long the keeper of a wall is awaited that was told to end its command: its grace, the kill, and clearing up.
const KEEPER_WAIT: Duration = Duration::from_millis(1_200);
/// Time between two reports of new output.
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Bytes of new output in one report; of more, the newest are told.
const REPORT_BYTES: usize = 8 << 10;
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

pub(crate) struct Bash;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The command, as typed into a shell.
    command: String,
    /// Milliseconds it may take, 600000 at most; 120000 if not given.
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS))]
    timeout_ms: Option<u64>,
    /// Only once the sandbox was in the way: why the command must run without it. The user is asked.
    outside_sandbox: Option<String>,
}

#[async_trait]
impl Tool for Bash {
    fn name(&self) -> &str {
        "bash"
    }

    fn description(&self) -> &str {
        "Run a shell command in the workspace and give its output (stdout and stderr as they came) and exit code. There \
         is no input to it, and each call is a new shell: cd and variables do not last. In the sandbox, what is left in \
         the background ends with the call, and /tmp is not the one that other tools see: share files in the workspace."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, _input: &Value, _workspace: &Workspace) -> CallPlan {
        let (paths, tags) = (Vec::new(), vec!["exec".into()]);
        CallPlan { access: Access::Write, paths, tags, on_crash: OnCrash::Unknown }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &[])
    }

    fn confirm(&self, input: &Value) -> Confirm {
        match parse(input) {
            Ok(Args { outside_sandbox: None, .. }) => Confirm::AsPolicySays,
            _ => Confirm::Always,
        }
    }

    fn confirmation(&self, input: &Value, workspace: &Workspace) -> Option<Confirmation> {
        let Args { command, outside_sandbox, .. } = parse(input).ok()?;
        let outside = outside_sandbox.map(|why| format!(", OUTSIDE THE SANDBOX, because: {why}"));
        let impact = format!("runs in {}{}", workspace.cwd.display(), outside.unwrap_or_default());
        Some(Confirmation { kind: QuestionKind::Approval, preview: command, impact, options: Vec::new() })
    }

    fn timeout_ms(&self) -> u64 {
        DEFAULT_TIMEOUT_MS
    }

    /// What the call asks for; a configured limit is the default and the most it gets.
    fn limit_ms(&self, input: &Value, configured: Option<u64>) -> u64 {
        let asked = parse(input).ok().and_then(|Args { timeout_ms, .. }| timeout_ms);
        asked.or(configured).unwrap_or(DEFAULT_TIMEOUT_MS).min(configured.unwrap_or(MAX_TIMEOUT_MS))
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let args: Args = match parse(&input) {
            Ok(args) => args,
            Err(why) => return ToolOutput::error(why),
        };
        if args.command.contains('\0') {
            return ToolOutput::error("the command holds a NUL character; write it as an escape the shell knows");
        }
        match Shell::start(&args, run).await {
            Ok(shell) => shell.follow(run).await,
            Err(error) => ToolOutput::error(not_started(run, &error)),
        }
    }
}

fn not_started(run: &ToolRun, error: &io::Error) -> String {
    let cwd = &run.workspace.cwd;
    match cwd.is_dir() {
        true if error.kind() == io::ErrorKind::NotFound => {
            format!("no shell could be started ({error}); bash or sh must be in PATH")
        }
        true => format!("the command was not started: {error}"),
        false => format!("no shell could be started: the workspace {} is gone", cwd.display()),
    }
}

/// How the shell ended.
enum Ended {
    Itself(ExitStatus),
    Stopped,
}

struct Shell {
    child: Child,
    group: Group,
    pipe: pipe::Receiver,
    collector: Collector,
    /// Output not yet reported.
    news: Vec<u8>,
    start: Started,
}

impl Shell {
    async fn start(args: &Args, run: &ToolRun) -> io::Result<Shell> {
        let (reader, writer) = io::pipe()?;
        let within = args.outside_sandbox.is_none();
        let (child, start) = launch(&args.command, run, writer, within).await?;
        let pid = child.id().unwrap_or(0);
        let group = Group::of(pid).ok_or_else(|| io::Error::other("the shell ended at once"))?;
        run.reports.spawned(record(pid));
        let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let Workspace { secrets, .. } = &*run.workspace;
        let file = scratch_file(&run.workspace, &run.call);
        let collector = Collector::new(OUTPUT_LIMIT_BYTES - WORDS_BYTES, file, secrets.clone());
        Ok(Shell { child, group, pipe, collector, news: Vec::new(), start })
    }

    /// Takes the output until the shell ends or the call is called back.
    async fn follow(mut self, run: &ToolRun) -> ToolOutput {
        let ended = self.listen(run).await;
        let mut background = None;
        if let Ok(Ended::Itself(_)) = ended {
            // What it left running was put in the background on purpose.
            self.group.let_go();
            background = self.group.alive().then(|| self.group.number());
        } else {
            self.stop(run).await;
        }
        self.drain().await;
        let collected = self.collector.finish();
        let failed = !matches!(&ended, Ok(Ended::Itself(status)) if status.success());
        let wall = &run.workspace.wall;
        let denied = self.start.is_walled().then(|| wall.denied(failed, &collected.text)).flatten();
        let notes = [end_words(&ended), background.map(background_words), denied].into_iter().flatten().collect();
        let told = Told { ended, background, notes, wall: self.start.is_walled().then(|| wall.standing()).flatten() };
        match collected.whole {
            Some(_) => blocking(move || told.output(collected)).await,
            None => told.output(collected),
        }
    }

    async fn listen(&mut self, run: &ToolRun) -> io::Result<Ended> {
        let mut ticks = tokio::time::interval(REPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0; READ_BYTES];
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                () = run.cancel.cancelled() => return Ok(Ended::Stopped),
                status = self.child.wait() => return status.map(Ended::Itself),
                _ = ticks.tick(), if !self.news.is_empty() => self.report(run),
                read = self.pipe.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(n) => self.take(&buffer[..n]),
                },
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.news.extend(self.collector.push(bytes));
        let surplus = self.news.len().saturating_sub(REPORT_BYTES);
        self.news.drain(..surplus);
    }

    fn report(&mut self, run: &ToolRun) {
        let end = whole_chars(&self.news);
        if end > 0 {
            run.reports.progress(lossy(&self.news[..end]).into_owned());
            self.news.drain(..end);
        }
    }

    /// Ends the shell, its group, and what left the group but bears the call's mark.
    async fn stop(&mut self, run: &ToolRun) {
        let Shell { child, group, start, .. } = self;
        // The shell is waited for meanwhile, so that it does not linger as a zombie.
        _ = tokio::join!(child.wait(), group.stop());
        group.let_go();
        if start.is_walled() {
            // The wall's keeper has heard, and ends the rest; it holds the pipe until it has cleared up.
            self.drain_for(KEEPER_WAIT).await;
        }
        let (session, call) = (run.workspace.session, run.call.clone());
        blocking(move || kill_leftovers(session, &call, None)).await;
    }

    /// Takes what is still in the pipe.
    async fn drain(&mut self) {
        self.drain_for(DRAIN).await;
    }

    async fn drain_for(&mut self, limit: Duration) {
        let mut buffer = vec![0; READ_BYTES];
        let rest = async {
            while let Ok(n @ 1..) = self.pipe.read(&mut buffer).await {
                self.collector.push(&buffer[..n]);
            }
        };
        // Time running out is no failure: a background child holds the pipe, and says no more that matters here.
        _ = tokio::time::timeout(limit, rest).await;
    }
}

/// What is to be told of a command that ended.
struct Told {
    ended: io::Result<Ended>,
    /// Its group, if something in it still runs.
    background: Option<u32>,
    notes: Vec<String>,
    /// The wall it ran behind.
    wall: Option<Kind>,
}

impl Told {
    /// The words and the value.
    fn output(self, collected: Collected) -> ToolOutput {
        let status = if let Ok(Ended::Itself(status)) = &self.ended { Some(*status) } else { None };
        let value = json!({
            "exit_code": status.and_then(|status| status.code()),
            "signal": status.and_then(|status| status.signal()),
            "output_bytes": collected.total,
            "output_file": collected.whole,
            "background_group": self.background,
            "sandbox": self.wall.map(Kind::name),
        });
        let mut text = collected.text;
        if text.trim().is_empty() {
            text = "[no output]".into();
        }
        for note in self.notes {
            text += if text.ends_with('\n') { "" } else { "\n" };
            text += &note;
        }
        let is_error = !status.is_some_and(|status| status.success());
        let mut output = ToolOutput { is_error, value: Some(value), ..ToolOutput::text(text) };
        let small = collected.total <= BLOB_LIMIT_BYTES;
        if let Some(bytes) = collected.whole.filter(|_| small).and_then(|whole| std::fs::read(whole).ok()) {
            let (reference, bytes) = blob(Bytes::from(bytes));
            output.output = Some(reference.clone());
            output.blobs.push((reference, bytes));
        }
        output
    }
}

fn end_words(ended: &io::Result<Ended>) -> Option<String> {
    match ended {
        Ok(Ended::Itself(status)) if status.success() => None,
        Ok(Ended::Itself(status)) => Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("[exit code {code}]"),
            (None, Some(signal)) => format!("[ended by signal {signal}]"),
            (None, None) => "[ended in an unknown way]".into(),
        }),
        Ok(Ended::Stopped) => Some("[stopped before it ended, with all it had started]".into()),
        Err(error) => Some(format!("[stopped: its end could not be awaited: {error}]")),
    }
}

fn background_words(group: u32) -> String {
    format!("[something it started still runs; to end it: kill -- -{group}]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{processes, stat};
    use crate::stage::Stage;
    use crate::{Entry, Finished, Reports, ToolReport, ToolSettings, run};
    use std::sync::Arc;
    use tokio_util::sync::CancellationToken;
    use windlass_kernel::{Outcome, text_of};

    async fn started(
        stage: &mut Stage,
        command: &str,
        settings: ToolSettings,
        cancel: Option<CancellationToken>,
    ) -> Finished {
        let entry = Entry::new(Arc::new(Bash), settings);
        let mut tool_run = stage.next_run();
        tool_run.cancel = cancel.unwrap_or(tool_run.cancel);
        run(&entry, json!({"command": command}), tool_run).await
    }

    /// The process numbers a command wrote into `name`.
    fn numbers(stage: &Stage, name: &str) -> Vec<u32> {
        stage.read(name).split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    fn alive(pid: &u32) -> bool {
        stat(*pid).is_some_and(|stat| stat.alive)
    }

    /// Waits until `name` holds `count` words.
    async fn written(stage: &Stage, name: &str, count: usize) {
        while std::fs::read_to_string(stage.path(name)).unwrap_or_default().split_whitespace().count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    const FAMILY: &str =
        "sleep 300 & echo $! >> pids; (sleep 300; :) & echo $! >> pids; echo $$ >> pids; echo begun; wait";

    #[tokio::test]
    async fn output_comes_as_written_and_success_is_silent() {
        let mut stage = Stage::new();
        assert_eq!(
            stage.text(Bash, json!({"command": "echo one; echo two >&2; echo three"})).await,
            "one\ntwo\nthree\n"
        );
        assert_eq!(stage.text(Bash, json!({"command": "true"})).await, "[no output]");
        assert_eq!(stage.text(Bash, json!({"command": "pwd; cat"})).await, "TMP/work\n");
        assert!(!stage.workspace.scratch.exists());
    }

    #[tokio::test]
    async fn s4_12_a_failure_is_told_with_its_output_and_code() {
        let mut stage = Stage::new();
        let output = stage.call(Bash, json!({"command": "echo oh no; exit 3"})).await;
        assert!(output.is_error);
        assert_eq!(stage.plain(&output), "oh no\n[exit code 3]");
        let value = output.value.unwrap();
        assert_eq!(
            (&value["exit_code"], &value["signal"], &value["output_bytes"]),
            (&json!(3), &json!(null), &json!(6))
        );
        assert_eq!(stage.error(Bash, json!({"command": "kill -9 $$"})).await, "[no output]\n[ended by signal 9]");
    }

    #[tokio::test]
    async fn only_the_given_environment_and_the_mark_are_there() {
        let mut stage = Stage::new();
        let text =
            stage.text(Bash, json!({"command": "env | cut -d= -f1 | grep -vE '^(PWD|OLDPWD|SHLVL|_)$' | sort"})).await;
        assert_eq!(text, "LANG\nPATH\nWINDLASS_CALL\n");
        let text = stage.text(Bash, json!({"command": "echo $WINDLASS_CALL"})).await;
        assert_eq!(text, format!("{}/call_2\n", stage.workspace.session));
    }

    #[tokio::test]
    async fn the_process_is_told_at_once_and_news_while_it_runs() {
        let mut stage = Stage::new();
        let (heard, go) = (stage.reports.clone(), stage.path("go"));
        let listen = move |report: ToolReport| {
            if matches!(report, ToolReport::Progress(_)) {
                std::fs::write(&go, "").unwrap();
            }
            heard.lock().unwrap().push(report);
        };
        let tool_run = ToolRun { reports: Reports(Arc::new(listen)), ..stage.next_run() };
        let waits_to_be_heard = json!({"command": "echo begun; while [ ! -e go ]; do sleep 0.01; done"});
        assert!(!Bash.call(waits_to_be_heard, &tool_run).await.is_error);
        let reports = stage.reports.lock().unwrap();
        let [ToolReport::Spawned(process), ToolReport::Progress(text)] = reports.as_slice() else {
            panic!("{reports:?}")
        };
        assert!(process.pid > 0);
        assert_eq!(process.started > 0, cfg!(target_os = "linux"));
        assert_eq!(text, "begun\n");
    }

    #[tokio::test]
    async fn s4_10_a_command_past_its_time_dies_with_all_it_started() {
        let mut stage = Stage::new();
        let settings = ToolSettings { timeout_ms: Some(1_500), ..ToolSettings::default() };
        let finished = started(&mut stage, FAMILY, settings, None).await;
        assert_eq!(finished.outcome, Outcome::Error);
        insta::assert_snapshot!(stage.plain(&finished.output), @r"
        timed out after 1500 ms; do less in one call, or have the limit raised (tools.bash.timeout_ms)
        begun
        [stopped before it ended, with all it had started]
        ");
        let pids = numbers(&stage, "pids");
        assert_eq!(pids.len(), 3);
        assert!(!pids.iter().any(alive), "{pids:?}");
    }

    #[tokio::test]
    async fn a_cancelled_command_is_dead_with_its_group_even_if_it_is_deaf_to_asking() {
        let mut stage = Stage::new();
        let cancel = CancellationToken::new();
        let deaf = format!("trap '' TERM; {FAMILY}");
        let watched = stage.path("pids");
        let stop = async {
            while std::fs::read_to_string(&watched).unwrap_or_default().split_whitespace().count() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        let (finished, ()) =
            tokio::join!(started(&mut stage, &deaf, ToolSettings::default(), Some(cancel.clone())), stop);
        assert_eq!(finished.outcome, Outcome::Cancelled);
        let text = text_of(&finished.output.blocks);
        assert!(text.starts_with("cancelled while it ran\nbegun\n[stopped before it ended"), "{text}");
        let pids = numbers(&stage, "pids");
        assert!(!pids.iter().any(alive), "{pids:?}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_left_the_group_is_found_by_its_mark_when_the_call_is_stopped() {
        let mut stage = Stage::new();
        let settings = ToolSettings { timeout_ms: Some(1_500), ..ToolSettings::default() };
        started(&mut stage, "setsid sh -c 'echo $$ > pids; sleep 300; :' & wait", settings, None).await;
        let pids = numbers(&stage, "pids");
        assert!(pids.len() == 1 && !alive(&pids[0]), "{pids:?}");
    }

    #[tokio::test]
    async fn a_dropped_call_takes_its_group_along() {
        let mut stage = Stage::new();
        let call = tokio::spawn({
            let entry = Entry::new(Arc::new(Bash), ToolSettings::default());
            let tool_run = stage.next_run();
            async move { run(&entry, json!({"command": FAMILY}), tool_run).await }
        });
        written(&stage, "pids", 3).await;
        call.abort();
        let pids = numbers(&stage, "pids");
        while pids.iter().any(alive) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_background_child_does_not_hold_up_the_call_and_is_told_of() {
        let mut stage = Stage::new();
        let output = stage.call(Bash, json!({"command": "sleep 300 & echo started"})).await;
        let group = output.value.as_ref().unwrap()["background_group"].as_u64().unwrap();
        let text = format!("started\n[something it started still runs; to end it: kill -- -{group}]");
        assert_eq!(stage.plain(&output), text);
        assert!(processes().any(|process| process.group == group as u32 && process.alive));
        assert_eq!(kill_leftovers(stage.workspace.session, &"call_1".into(), None), 1);
    }

    #[tokio::test]
    async fn s1_21_long_output_keeps_its_ends_and_the_file_has_the_whole() {
        let mut stage = Stage::new();
        let output = stage.call(Bash, json!({"command": "seq 1 50000"})).await;
        let text = stage.plain(&output);
        assert!(text.len() <= OUTPUT_LIMIT_BYTES, "{}", text.len());
        assert!(text.starts_with("1\n2\n") && text.ends_with("49999\n50000\n"));
        assert!(text.contains("bytes left out; the whole is in TMP/scratch/call_1.txt"));
        let whole: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(std::fs::read_to_string(stage.workspace.scratch.join("call_1.txt")).unwrap(), whole);
        assert_eq!(output.output.as_ref(), Some(&output.blobs[0].0));
        assert_eq!(output.blobs[0].1, whole.as_bytes());
        let range = json!({"path": "../scratch/call_1.txt", "offset": 25_000, "limit": 1});
        assert!(stage.text(crate::read::Read, range).await.starts_with("25000\t25000\n"));
    }

    #[tokio::test]
    async fn without_bash_sh_does_and_without_either_it_is_said() {
        let mut stage = Stage::new();
        let shells = stage.path("shells");
        std::fs::create_dir(&shells).unwrap();
        std::os::unix::fs::symlink("/bin/sh", shells.join("sh")).unwrap();
        for (path, expected) in
            [(shells.display().to_string(), "hello\n"), ("/nowhere".into(), "no shell could be started")]
        {
            let env = Arc::new([("PATH".to_owned(), path)].into());
            let workspace = Arc::new(Workspace { env, ..(*stage.workspace).clone() });
            let tool_run = ToolRun { workspace, ..stage.next_run() };
            let output = Bash.call(json!({"command": "echo hello"}), &tool_run).await;
            assert!(text_of(&output.blocks).starts_with(expected), "{output:?}");
        }
    }

    #[test]
    fn s4_10_the_call_asks_for_time_and_the_configuration_caps_it() {
        let limit = |asked: Option<u64>, configured| {
            Bash.limit_ms(&json!({"command": "make", "timeout_ms": asked}), configured)
        };
        assert_eq!(limit(None, None), 120_000);
        assert_eq!(limit(Some(300_000), None), 300_000);
        assert_eq!(limit(Some(900_000), None), 600_000);
        assert_eq!(limit(None, Some(10_000)), 10_000);
        assert_eq!(limit(Some(300_000), Some(10_000)), 10_000);
        assert_eq!(limit(Some(5), Some(10_000)), 5);
    }

    #[test]
    fn s0_21_s4_11_every_command_is_a_writer_and_shown_as_it_is() {
        let stage = Stage::new();
        let input = json!({"command": "ls"});
        let plan = Bash.plan(&input, &stage.workspace);
        assert_eq!((plan.access, plan.on_crash, plan.tags), (Access::Write, OnCrash::Unknown, vec!["exec".to_owned()]));
        let asked = Bash.confirmation(&input, &stage.workspace).unwrap();
        assert_eq!(asked.preview, "ls");
        assert_eq!(asked.impact, format!("runs in {}", stage.workspace.cwd.display()));
    }
}
