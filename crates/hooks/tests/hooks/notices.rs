//! Notifications: nobody waits for them, and yet they are owned.

use crate::stage::{Stage, gone, notice, table};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass_hooks::{EventName, Hooks, MAX_NOTICES, Notices, Verdict};

fn hooks(command: &str) -> Arc<Hooks> {
    Arc::new(table(EventName::Notification, json!([{"matcher": "permission_prompt", "command": command}])))
}

#[tokio::test]
async fn a_notification_is_told_while_others_go_on() {
    let stage = Stage::new();
    let mut notices = Notices::default();
    assert!(notices.tell(&hooks("cat > told"), notice(), stage.origin(), stage.launch()));
    assert!(notices.finished().is_empty());
    let outcomes = notices.settle(Duration::from_secs(60)).await;
    assert_eq!(outcomes[0].ran[0].verdict, Verdict::WentOn);
    assert!(stage.read("told").contains(r#""message":"bash needs approval","notification_type":"permission_prompt""#));
}

#[tokio::test]
async fn what_went_wrong_comes_to_light_later() {
    let stage = Stage::new();
    let mut notices = Notices::default();
    notices.tell(&hooks("exit 9"), notice(), stage.origin(), stage.launch());
    let mut outcomes = Vec::new();
    while outcomes.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        outcomes = notices.finished();
    }
    assert_eq!(outcomes[0].messages[0].text, "failed: exit code 9; Notification goes on without it");
}

#[tokio::test]
async fn too_many_at_once_are_dropped() {
    let stage = Stage::new();
    let (mut notices, hooks) = (Notices::default(), hooks("while [ ! -e go ]; do sleep 0.01; done"));
    let mut tell = || notices.tell(&hooks, notice(), stage.origin(), stage.launch());
    let told = (0..=MAX_NOTICES).map(|_| tell()).filter(|told| *told).count();
    assert_eq!(told, MAX_NOTICES);
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(notices.settle(Duration::from_secs(60)).await.len(), MAX_NOTICES);
}

#[tokio::test]
async fn what_still_runs_at_the_end_is_killed() {
    let stage = Stage::new();
    let mut notices = Notices::default();
    notices.tell(&hooks("echo $$ > pids; sleep 300"), notice(), stage.origin(), stage.launch());
    let pids = stage.numbers("pids", 1).await;
    assert!(notices.settle(Duration::from_millis(1)).await.is_empty());
    gone(&pids).await;
    notices.tell(&hooks("echo $$ > pids2; sleep 300"), notice(), stage.origin(), stage.launch());
    let pids = stage.numbers("pids2", 1).await;
    drop(notices);
    gone(&pids).await;
}
