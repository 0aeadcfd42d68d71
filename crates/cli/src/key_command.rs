//! Keys that a command prints: tokens that run out, such as those of `gcloud auth print-access-token`.

use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use windlass::llm::{ApiKey, KeySource};

/// How long a key that was printed is used before the command runs again; the vendors' tokens live an hour.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Characters of its error output that are told.
const SHOWN_CHARS: usize = 300;

/// Runs `command` in a shell when a key is first wanted, and again when the last one is old.
pub fn source(command: &str) -> KeySource {
    let kept: Arc<Mutex<Option<(Instant, ApiKey)>>> = Arc::default();
    let command: Arc<str> = command.into();
    KeySource(Arc::new(move || {
        let (kept, command) = (kept.clone(), command.clone());
        Box::pin(async move {
            // Held while the command runs, so that calls side by side run it once.
            let mut kept = kept.lock().await;
            if let Some((at, key)) = kept.as_ref().filter(|(at, _)| at.elapsed() < KEPT) {
                let _ = at;
                return Ok(key.clone());
            }
            let key = print(&command).await?;
            *kept = Some((Instant::now(), key.clone()));
            Ok(key)
        })
    }))
}

async fn print(command: &str) -> Result<ApiKey, String> {
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, shell.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("`{command}` can't be run: {error}")),
        Err(_) => return Err(format!("`{command}` printed no key within {} s", PATIENCE.as_secs())),
    };
    let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(SHOWN_CHARS).collect();
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !key.is_empty() {
        true => Ok(ApiKey::new(key)),
        false => Err(format!("`{command}` printed no key ({}): {said}", output.status)),
    }
}
