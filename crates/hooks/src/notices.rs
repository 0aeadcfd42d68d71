//! Notifications: told without anybody waiting, but owned and bounded.

use crate::config::Hooks;
use crate::input::{Event, Notification, Origin};
use crate::launch::Launch;
use crate::outcome::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Most notifications on their way at once; more are dropped.
pub const MAX_NOTICES: usize = 8;

/// Notifications on their way; what still runs is killed when this is dropped.
#[derive(Debug, Default)]
pub struct Notices {
    running: JoinSet<Outcome>,
}

impl Notices {
    /// Starts the hooks that want the notification, and returns at once. False if too many are on their way, and then
    /// no hook is told.
    pub fn tell(&mut self, hooks: &Arc<Hooks>, notice: Notification, origin: Origin, launch: Launch) -> bool {
        if self.running.len() >= MAX_NOTICES {
            return false;
        }
        let hooks = hooks.clone();
        self.running.spawn(async move {
            hooks.run(Event::Notification(notice), &origin, &launch, &CancellationToken::new()).await
        });
        true
    }

    /// What has come of those that are over, without waiting; call it before [`Notices::tell`] to make room.
    pub fn finished(&mut self) -> Vec<Outcome> {
        std::iter::from_fn(|| self.running.try_join_next()).flatten().collect()
    }

    /// Waits for what is on its way, for `limit` at most, and kills the rest.
    pub async fn settle(&mut self, limit: Duration) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        let rest = async {
            while let Some(joined) = self.running.join_next().await {
                outcomes.extend(joined);
            }
        };
        _ = tokio::time::timeout(limit, rest).await;
        self.running.shutdown().await;
        outcomes
    }
}
