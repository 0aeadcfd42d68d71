//! A turn that waits at a cap: whether it may spend more is asked, and the answer is carried out.

use super::*;

impl Chat {
    /// Whether somebody is asked something.
    pub(super) fn asks(&self) -> bool {
        !self.questions.is_empty() || self.cap.is_some()
    }

    pub(super) fn ask_for_more(&mut self) -> io::Result<()> {
        let Some(reached) = self.cap else { return Ok(()) };
        self.printer.line(&self.look.paint(Shade::Bold, &format!("  paused: {reached}")))?;
        self.printer.ask(&format!("  raise the cap to {}? [y/N] ", cap::limit(&reached)))
    }

    /// Yes raises the cap, and no ends the turn.
    pub(super) async fn answer_cap(&mut self, reached: &ReachedCap, line: &str) -> Result<Then, Failure> {
        let Some(open) = &self.open else { return Ok(Then::GoOn) };
        let command = match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => {
                let caps = open.handle.state().await.map_err(failed_send)?.profile.caps;
                let caps = Some(cap::raise(caps, reached));
                Command::Configure(Box::new(Configured { caps, ..Configured::default() }))
            }
            "" | "n" | "no" => Command::Interrupt { by: "cap".into() },
            "exit" | "quit" => return Ok(Then::Leave(Code::Done)),
            _ => return self.complain(&format!("`{}` is no answer", harmless(line))),
        };
        match open.handle.send(command).await {
            Ok(_) => {
                self.cap = None;
                self.prompted = false;
                Ok(Then::GoOn)
            }
            // A new day began meanwhile, or somebody else was first.
            Err(windlass_runtime::SendError::Rejected(why)) => {
                self.cap = None;
                self.complain(&why.to_string())
            }
            Err(error) => Err(failed_send(error)),
        }
    }

    /// Nobody types any more, and the turn waits at a cap: it is left there.
    pub(super) fn parked(&mut self) -> io::Result<Option<Code>> {
        let (Some(reached), Some(open)) = (self.cap, &self.open) else { return Ok(None) };
        let text = cap::explain(&reached, open.handle.session(), &self.desk.flags);
        self.printer.line(&self.look.paint(Shade::Red, &text))?;
        Ok(Some(Code::Limit))
    }
}
