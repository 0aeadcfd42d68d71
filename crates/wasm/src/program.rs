//! One call of a component: run on a thread that may block, stopped when it is called back, every end turned into data.

use crate::confine::{Grant, Guest, OUTPUT_BYTES, Streams};
use crate::host::words;
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;
use wasmtime_wasi::p2::bindings::CommandPre;

/// How often a running component is looked at: it stops this long after it was called back.
const TICK: Duration = Duration::from_millis(10);

/// A compiled component.
#[derive(Clone)]
pub(crate) struct Program {
    engine: Engine,
    ready: Arc<CommandPre<Guest>>,
}

/// A component that is made ready when it is first wanted; clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Option<Program>>>);

impl Kept {
    /// The program; if `make` fails, the next call tries again.
    pub async fn get(
        &self,
        make: impl FnOnce() -> Result<Program, String> + Send + 'static,
    ) -> Result<Program, String> {
        let kept = self.0.clone();
        let made = tokio::task::spawn_blocking(move || {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            match &*kept {
                Some(program) => Ok(program.clone()),
                None => Ok(kept.insert(make()?).clone()),
            }
        });
        made.await.map_err(|error| format!("it could not be loaded: {error}"))?
    }
}

/// How a call ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Ended {
    /// What it printed.
    Well(Vec<u8>),
    /// What the model is told.
    Badly(String),
}

impl Program {
    pub fn new(engine: Engine, ready: CommandPre<Guest>) -> Program {
        Program { engine, ready: Arc::new(ready) }
    }

    /// Runs it on `input`. If this is dropped, the component stops within a tick, too.
    pub async fn run(&self, grant: Grant, input: Bytes, cancel: &CancellationToken) -> Ended {
        let reins = Reins { engine: self.engine.clone(), stop: cancel.child_token() };
        let (program, stop, handle) = (self.clone(), reins.stop.clone(), Handle::current());
        let mut call = tokio::task::spawn_blocking(move || handle.block_on(program.act(grant, input, stop)));
        loop {
            tokio::select! {
                joined = &mut call => return joined.unwrap_or_else(|error| Ended::Badly(format!("it broke off: {error}"))),
                () = tokio::time::sleep(TICK) => reins.engine.increment_epoch(),
            }
        }
    }

    async fn act(&self, grant: Grant, input: Bytes, stop: CancellationToken) -> Ended {
        let (guest, streams) = match Guest::new(&grant, input) {
            Ok(made) => made,
            Err(error) => return Ended::Badly(words(&error)),
        };
        let mut store = Store::new(&self.engine, guest);
        store.limiter(|guest| &mut guest.limiter);
        if let Err(error) = store.set_fuel(grant.fuel) {
            return Ended::Badly(words(&error));
        }
        store.set_epoch_deadline(1);
        let called_back = stop.clone();
        store.epoch_deadline_callback(move |_| match called_back.is_cancelled() {
            true => Ok(UpdateDeadline::Interrupt),
            false => Ok(UpdateDeadline::Continue(1)),
        });
        let result = tokio::select! {
            biased;
            // Waiting on a host's clock, no code runs that the epoch could interrupt.
            () = stop.cancelled() => Err(Trap::Interrupt.into()),
            result = self.command(&mut store) => result,
        };
        let wants_memory = store.data().limiter.refused;
        ended(result, wants_memory, &grant, &streams)
    }

    async fn command(&self, store: &mut Store<Guest>) -> wasmtime::Result<Result<(), ()>> {
        let command = self.ready.instantiate_async(&mut *store).await?;
        command.wasi_cli_run().call_run(store).await
    }
}

/// Stops the call when nobody waits for it any more.
struct Reins {
    engine: Engine,
    stop: CancellationToken,
}

impl Drop for Reins {
    fn drop(&mut self) {
        self.stop.cancel();
        self.engine.increment_epoch();
    }
}

fn ended(result: wasmtime::Result<Result<(), ()>>, wants_memory: bool, grant: &Grant, streams: &Streams) -> Ended {
    let (out, too_much) = streams.out.take();
    let result = match result {
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(I32Exit(0)) => Ok(Ok(())),
            Some(_) => Ok(Err(())),
            None => Err(error),
        },
        result => result,
    };
    if let Ok(Ok(())) = result {
        return Ended::Well(out);
    }
    let complaints = streams.complaints.take().0;
    let said = String::from_utf8_lossy(&complaints).trim().to_owned();
    let why = match &result {
        _ if too_much => format!("it printed more than {OUTPUT_BYTES} bytes and was stopped; ask for less at a time"),
        _ if wants_memory => format!(
            "it needs more than the {} MB of memory it is granted (memory_mb in its manifest); give it less to do",
            grant.memory_bytes >> 20
        ),
        Ok(_) => return Ended::Badly(failure(said, &out)),
        Err(error) => trapped(error, grant),
    };
    Ended::Badly(if said.is_empty() { why } else { format!("{why}\n{said}") })
}

/// What a tool that failed has said of it.
fn failure(said: String, out: &[u8]) -> String {
    let printed = String::from_utf8_lossy(out);
    match (said.is_empty(), printed.trim()) {
        (true, "") => "it failed and did not say why".into(),
        (true, printed) => printed.to_owned(),
        (false, _) => said,
    }
}

fn trapped(error: &wasmtime::Error, grant: &Grant) -> String {
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => format!(
            "it used up its {} units of fuel (fuel in its manifest) and was stopped; give it less to do",
            grant.fuel
        ),
        Some(Trap::Interrupt) => "it was stopped; what it did before is not known".into(),
        Some(Trap::UnreachableCodeReached) => "it broke off (a panic, as a rule); this is a fault of the tool".into(),
        Some(trap) => format!("it broke off ({trap}); this is a fault of the tool"),
        None => format!("it broke off ({}); this is a fault of the tool", words(error)),
    }
}
