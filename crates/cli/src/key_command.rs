//! Keys that a command prints: tokens that run out, such as those of `gcloud auth print-access-token`.

use futures_util::future::BoxFuture;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use windlass::llm::{ApiKey, KeySource};

/// How long a key that was printed is used before the command runs again. `gcloud` prints a token that it has until
/// that is about to run out: it may have no more than five minutes left.
const KEY_KEPT: Duration = Duration::from_secs(4 * 60);
/// How long a failure is told again before the command runs again: the sessions that wait for one key fail together,
/// and not one after the other.
const FAILURE_KEPT: Duration = Duration::from_secs(5);
/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Characters of its error output that are told.
const SHOWN_CHARS: usize = 300;

/// What the command brought, and when.
struct Printed {
    key: Result<String, String>,
    at: Instant,
}

impl Printed {
    /// Whether it still holds at `now`.
    fn holds(&self, now: Instant) -> bool {
        let kept = if self.key.is_ok() { KEY_KEPT } else { FAILURE_KEPT };
        now.saturating_duration_since(self.at) < kept
    }
}

/// A key that is being printed.
type Printing = BoxFuture<'static, Result<String, String>>;

/// The key of a provider that `command` prints.
pub fn source(command: &str) -> KeySource {
    let text = text_source(command);
    KeySource(Arc::new(move || {
        let printing = text();
        Box::pin(async move { printing.await.map(ApiKey::new) })
    }))
}

/// Runs `command` in a shell when a key is first wanted, and again when the last one is old.
pub fn text_source(command: &str) -> Arc<dyn Fn() -> Printing + Send + Sync> {
    let printed: Arc<Mutex<Option<Printed>>> = Arc::default();
    let command: Arc<str> = command.into();
    Arc::new(move || {
        let (printed, command) = (printed.clone(), command.clone());
        Box::pin(async move {
            // Held while the command runs, so that calls side by side run it once.
            let mut printed = printed.lock().await;
            if let Some(last) = printed.as_ref().filter(|last| last.holds(Instant::now())) {
                return last.key.clone();
            }
            let key = print(&command).await;
            *printed = Some(Printed { key: key.clone(), at: Instant::now() });
            key
        })
    })
}

/// The command and all that it started: they die with this value, unless they were let go.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

async fn print(command: &str) -> Result<String, String> {
    let failed = |why: String| {
        format!("run `{command}` by hand until it prints one, or name another model with --model; here it {why}")
    };
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // In a group of its own, so that nothing it starts outlives the wait for it.
    let child = shell.process_group(0).kill_on_drop(true).spawn();
    let child = child.map_err(|error| failed(format!("can't be run: {error}")))?;
    let number = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group(number.and_then(Pid::from_raw));
    let output = match tokio::time::timeout(PATIENCE, child.wait_with_output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(failed(format!("can't be read: {error}"))),
        Err(_) => return Err(failed(format!("printed no key within {} s", PATIENCE.as_secs()))),
    };
    // It ended by itself, and its number may soon be another's.
    group.0 = None;
    let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(SHOWN_CHARS).collect();
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !key.is_empty() {
        true => Ok(key),
        false if said.is_empty() => Err(failed(format!("printed no key ({})", output.status))),
        false => Err(failed(format!("printed no key ({}): {said}", output.status))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that notes each of its runs in a file and then does `then`.
    fn noted(folder: &tempfile::TempDir, then: &str) -> String {
        format!("echo run >> '{}'; {then}", folder.path().join("runs").display())
    }

    fn runs(folder: &tempfile::TempDir) -> usize {
        std::fs::read_to_string(folder.path().join("runs")).unwrap().lines().count()
    }

    #[tokio::test]
    async fn sessions_side_by_side_share_one_run_and_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(&noted(&folder, "echo sk-1"));
        let (one, other) = tokio::join!((source.0)(), (source.0)());
        assert_eq!((one, other), (Ok(ApiKey::new("sk-1")), Ok(ApiKey::new("sk-1"))));
        assert_eq!(runs(&folder), 1);
    }

    #[tokio::test]
    async fn sessions_side_by_side_share_one_failure() {
        let folder = tempfile::tempdir().unwrap();
        let source = source(&noted(&folder, "echo 'log in first' >&2; exit 3"));
        let failures = futures_util::future::join_all((0..200).map(|_| (source.0)())).await;
        let told = "printed no key (exit status: 3): log in first";
        assert!(failures.iter().all(|failure| failure.as_ref().unwrap_err().ends_with(told)), "{failures:?}");
        assert_eq!(runs(&folder), 1);
    }

    /// Whether the process whose number is in the file `pid` still runs.
    fn runs_still(folder: &tempfile::TempDir) -> bool {
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
        let state = String::from_utf8(state.stdout).unwrap();
        !state.trim().is_empty() && !state.trim().starts_with('Z')
    }

    #[tokio::test]
    async fn what_a_command_started_dies_when_nobody_waits_for_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let source = source(&format!("sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pid.display()));
        let started = async {
            while !pid.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(runs_still(&folder));
        };
        tokio::select! {
            key = (source.0)() => panic!("{key:?}"),
            () = started => {}
        }
        while runs_still(&folder) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_failure_says_first_what_to_do() {
        let failure = (source("exit 3").0)().await.unwrap_err();
        let told = "run `exit 3` by hand until it prints one, or name another model with --model; here it printed no key \
                    (exit status: 3)";
        assert_eq!(failure, told);
    }

    #[test]
    fn a_key_holds_for_minutes_and_a_failure_for_seconds() {
        let at = Instant::now();
        let (key, failure) = (Ok("sk-1".to_owned()), Err("no".to_owned()));
        let held = |key: &Result<String, String>, after| Printed { key: key.clone(), at }.holds(at + after);
        let moment = Duration::from_millis(1);
        assert_eq!([held(&key, KEY_KEPT - moment), held(&key, KEY_KEPT)], [true, false]);
        assert_eq!([held(&failure, FAILURE_KEPT - moment), held(&failure, FAILURE_KEPT)], [true, false]);
    }
}
