//! Ctrl-C and its kin as values.

use crate::exit::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass::Prompt;
use windlass_kernel::{Command, Seq};
use windlass_runtime::{Handle, SendError};

/// The signals that ask the program to stop.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Ctrl-C: stop what you are doing.
    Interrupt,
    /// Stop, and leave.
    Terminate,
}

impl Signals {
    /// From here on these signals end nothing by themselves.
    pub fn listen() -> Result<Signals, Failure> {
        let on = |kind| signal(kind).map_err(|error| Failure::usage(format!("signals can't be listened to: {error}")));
        Ok(Signals {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
            _ = self.hang_up.recv() => Asked::Terminate,
        }
    }
}

/// Sends `prompt`. Hooks may take their time over it: a signal calls them back, and then it goes no further.
pub async fn send(handle: &Handle, prompt: Prompt) -> Result<Result<Seq, SendError>, Failure> {
    let mut signals = Signals::listen()?;
    let (command, blobs) = prompt.into_command(crate::desk::new_input);
    let mut sending = std::pin::pin!(handle.send_with(command, blobs));
    loop {
        tokio::select! {
            sent = &mut sending => return Ok(sent),
            _ = signals.next() => {
                // Refused where no turn is under way yet, which is as it should be.
                let _ = handle.send(Command::Interrupt { by: "signal".into() }).await;
            }
        }
    }
}
