//! `windlass bench`: one prompt in many sessions at once, for measuring.

use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{print, tell};
use windlass::Agent;
use windlass_kernel::{End, PermissionMode};

/// What stands for the number of the session.
const PLACE: &str = "{sid}";
/// Failures told one by one.
const TOLD: usize = 5;

pub async fn run(mut desk: Desk, sessions: u32, prompt: &str) -> Ended {
    desk.settings.mode = PermissionMode::Bypass;
    let (agent, _) = desk.agent(false)?;
    let mut running = tokio::task::JoinSet::new();
    for number in 0..sessions {
        let (agent, prompt) = (agent.clone(), prompt.replace(PLACE, &number.to_string()));
        running.spawn(async move { one(&agent, prompt).await.map_err(|why| format!("session {number}: {why}")) });
    }
    let mut failures = vec![];
    while let Some(ended) = running.join_next().await {
        failures.extend(ended.map_err(|error| error.to_string()).and_then(|ended| ended).err());
    }
    failures.iter().take(TOLD).for_each(|failure| tell(&format!("windlass: {failure}")));
    print(&format!("done {}\n", sessions as usize - failures.len()));
    match failures.len() {
        0 => Ok(Code::Done),
        failed => Err(Failure::new(Code::Failed, format!("{failed} of {sessions} sessions failed"))),
    }
}

async fn one(agent: &Agent, prompt: String) -> Result<(), String> {
    let session = agent.open().await.map_err(|error| error.to_string())?;
    let answer = session.run(prompt).await.map_err(|error| error.to_string());
    session.handle().close().await;
    match answer?.end {
        End::Done => Ok(()),
        end => Err(crate::exit::explain(&end).unwrap_or_default()),
    }
}
