//! An agent: a model, its tools and its rules, ready to open sessions.

use crate::{AgentBuilder, Answer, Prompt, RunError, Session};
use std::sync::Arc;
use windlass_kernel::{Configured, SessionId};
use windlass_runtime::{NewSession, Setup};
use windlass_store::StoreError;

#[derive(Clone)]
pub struct Agent {
    pub(crate) setup: Arc<Setup>,
    pub(crate) defaults: NewSession,
}

impl Agent {
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Opens a new session.
    pub async fn open(&self) -> Result<Session, StoreError> {
        let new = NewSession { session: SessionId((self.setup.world.id)()), ..self.defaults.clone() };
        let handle = windlass_runtime::Session::create(self.setup.clone(), new).await?;
        Ok(Session::new(handle, self.setup.world.id.clone()))
    }

    /// Takes up a session where its log ends; what was under way goes on.
    pub async fn resume(&self, session: SessionId) -> Result<Session, StoreError> {
        self.resume_with(session, Configured::default()).await
    }

    /// The same under another model, mode or profile, which hold before anything goes on.
    pub async fn resume_with(&self, session: SessionId, change: Configured) -> Result<Session, StoreError> {
        let handle = windlass_runtime::Session::resume(self.setup.clone(), session, change).await?;
        Ok(Session::new(handle, self.setup.world.id.clone()))
    }

    /// Runs one prompt in a new session to the end of its turn, blocking the calling thread. Not for use inside an
    /// async runtime: there, `open` a session and await [`Session::run`].
    pub fn run(&self, prompt: impl Into<Prompt>) -> Result<Answer, RunError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let session = self.open().await?;
            let answer = session.run(prompt).await;
            session.handle().close().await;
            answer
        })
    }

    /// Everything the agent's sessions share.
    pub fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }
}
