//! The chat's sessions: opened with the first prompt, taken up, listed, left.

use super::*;

impl Chat {
    pub(super) async fn follow(&mut self, handle: Handle, before: Seq) -> Result<(), Failure> {
        let state = handle.state().await.map_err(failed_send)?;
        self.view = View::of(self.taste(), &state);
        self.busy = !state.is_idle();
        self.tally = Tally::default();
        let asking = state.asking();
        self.questions = asking
            .map(|(call, question)| Waiting { call: call.id.clone(), question: Box::new(question.clone()) })
            .collect();
        self.cap = state.paused();
        let follower = handle.follow(before.next());
        self.open = Some(Following { handle, follower });
        Ok(())
    }

    pub(super) async fn take_up(&mut self, which: &Which) -> Result<(), Failure> {
        let Open { session, before } = self.desk.open(which, true).await?;
        self.follow(session.handle().clone(), before).await?;
        let Some(open) = &self.open else { return Ok(()) };
        let state = open.handle.state().await.map_err(failed_send)?;
        self.greet(&state.model).map_err(closed)?;
        self.say(&history(&state, self.look))?;
        Ok(())
    }

    /// As `take_up`, but a failure is told and the chat goes on where it was.
    pub(super) async fn attempt(&mut self, which: &Which) -> Result<Then, Failure> {
        let found = match self.desk.find(which).await {
            Ok(found) => found,
            Err(failure) => return self.complain(&failure.message),
        };
        let here = self.open.as_ref().map(|open| open.handle.session());
        if found.as_ref().map(|found| found.session) == here {
            return self.say("  this is the one");
        }
        let before = self.open.take();
        match self.take_up(which).await {
            Ok(()) => {
                if let Some(before) = before {
                    before.handle.close().await;
                }
                Ok(Then::GoOn)
            }
            Err(failure) => {
                self.open = before;
                self.complain(&failure.message)
            }
        }
    }

    pub(super) async fn change_model(&mut self, name: &str) -> Result<Then, Failure> {
        if name.is_empty() {
            return self.complain("say which: /model PROVIDER/NAME");
        }
        if self.busy {
            return self.complain("the session is in the middle of a turn: press Ctrl-C first");
        }
        let before = self.desk.flags.model.replace(name.to_owned());
        match self.with_model().await {
            Ok(()) => self.say(&format!("  from here on {}", harmless(name))),
            Err(failure) => {
                self.desk.flags.model = before;
                self.desk.reload()?;
                self.complain(&failure.message)
            }
        }
    }

    /// A session that is open is laid down and taken up again: its agent is made for one model's address.
    pub(super) async fn with_model(&mut self) -> Result<(), Failure> {
        self.desk.reload()?;
        self.desk.agent(true)?;
        let Some(open) = self.open.take() else { return Ok(()) };
        open.handle.close().await;
        let which = Which::Id(open.handle.session().to_string());
        let Open { session, before } = self.desk.open(&which, true).await?;
        self.follow(session.handle().clone(), before).await
    }

    pub(super) async fn list(&mut self) -> Result<Then, Failure> {
        let cwd = self.desk.folder.display().to_string();
        let sessions = self.desk.store.sessions(SessionFilter { cwd: Some(cwd), limit: Some(LISTED) }).await?;
        let lines: Vec<String> = sessions
            .iter()
            .map(|one| format!("  {}  {}  {}", one.session, clock::minute(one.updated_at), one_line(&one.title, 60)))
            .collect();
        match lines.is_empty() {
            true => self.say("  there is no session in this folder yet"),
            false => self.say(&format!("{}\n  /resume ID goes on with one", lines.join("\n"))),
        }
    }

    pub(super) async fn history(&mut self) -> Result<Then, Failure> {
        let Some(open) = &self.open else { return self.say("  nothing was said yet") };
        let state = open.handle.state().await.map_err(failed_send)?;
        self.say(&history(&state, self.look))
    }

    /// Interrupts what is under way, and lays the session down.
    pub(super) async fn leave(&mut self) {
        let Some(Following { handle, follower }) = &mut self.open else { return };
        // A turn that waits at a cap stays parked: who comes back is asked again.
        let works = self.busy && self.cap.is_none();
        if works && handle.send(Command::Interrupt { by: "exit".into() }).await.is_ok() {
            let ended = async {
                while let Some(Ok(frame)) = follower.next().await {
                    if matches!(&frame, Frame::Record(record) if matches!(record.event, Event::TurnFinished { .. })) {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(LEAVE_WITHIN, ended).await;
        }
        handle.close().await;
        let _ = self.printer.end_line();
    }
}

/// What was said so far, by whom.
fn history(state: &State, look: Look) -> String {
    let mut lines = vec![];
    for message in &state.messages {
        for block in &message.content {
            match (message.role, block) {
                // What was rendered around a prompt was never typed.
                (Role::User, ContentBlock::Text { text }) if text.starts_with("<userContext>") => {}
                (Role::User, ContentBlock::Text { text }) => {
                    lines.push(look.paint(Shade::Bold, &format!("> {}", harmless(text.trim()))).into_owned());
                }
                (Role::Assistant, ContentBlock::Text { text }) => lines.push(harmless(text.trim()).into_owned()),
                (_, ContentBlock::ToolUse(call)) => lines.push(format!("  {}", words::call(&call.name, &call.input))),
                _ => {}
            }
        }
    }
    if lines.is_empty() { "  nothing was said yet".into() } else { lines.join("\n") }
}
