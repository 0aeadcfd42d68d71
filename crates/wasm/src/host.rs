//! What compiles components and runs them: made when the first is called, never before.

use crate::cache::Cache;
use crate::confine::Guest;
use crate::program::{Kept, Program};
use sha2::{Digest, Sha256};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine};
use wasmtime_wasi::p2;
use wasmtime_wasi::p2::bindings::CommandPre;

/// Runs components. Shared by `Arc` between the tools of a process.
pub struct Host {
    cache: Option<Cache>,
    machine: OnceLock<Result<Machine, String>>,
    compiled: AtomicUsize,
    /// The component of the file tools.
    pub(crate) files: Kept,
}

struct Machine {
    engine: Engine,
    linker: Linker<Guest>,
}

impl Host {
    /// Does nothing yet. `cache` is a folder for compiled components, this host's own; none: each process compiles anew.
    pub fn new(cache: Option<PathBuf>) -> Host {
        Host {
            cache: cache.map(Cache::new),
            machine: OnceLock::new(),
            compiled: AtomicUsize::new(0),
            files: Kept::default(),
        }
    }

    /// How many components were compiled here, and not found compiled.
    pub fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    /// A component ready to run, or what it lacks. Takes seconds for a large one that was never seen: call it where
    /// blocking does no harm.
    pub(crate) fn program(&self, bytes: &[u8]) -> Result<Program, String> {
        let machine = self.machine.get_or_init(Machine::make).as_ref().map_err(Clone::clone)?;
        let component = self.component(&machine.engine, bytes)?;
        let ready = machine.linker.instantiate_pre(&component).and_then(CommandPre::new);
        let ready = ready.map_err(|error| {
            format!("it is no component for wasi:cli 0.2 alone ({}); build it for wasm32-wasip2", words(&error))
        })?;
        Ok(Program::new(machine.engine.clone(), ready))
    }

    fn component(&self, engine: &Engine, bytes: &[u8]) -> Result<Component, String> {
        let Some(cache) = &self.cache else { return self.compile(engine, bytes) };
        let key = key(engine, bytes);
        if let Some(component) = cache.load(engine, &key) {
            return Ok(component);
        }
        let component = self.compile(engine, bytes)?;
        if let Ok(code) = component.serialize() {
            // What could not be kept is compiled again.
            _ = cache.store(&key, &code);
        }
        Ok(component)
    }

    fn compile(&self, engine: &Engine, bytes: &[u8]) -> Result<Component, String> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Component::from_binary(engine, bytes)
            .map_err(|error| format!("it can't be compiled ({}); build it for wasm32-wasip2", words(&error)))
    }
}

impl Machine {
    fn make() -> Result<Machine, String> {
        let mut config = Config::new();
        config.consume_fuel(true).epoch_interruption(true);
        // Addresses in a component's code help nobody who is told of a trap.
        config.wasm_backtrace_max_frames(None);
        let engine = Engine::new(&config).map_err(|error| format!("no component can run here: {}", words(&error)))?;
        let mut linker = Linker::new(&engine);
        p2::add_to_linker_async(&mut linker).map_err(|error| words(&error))?;
        Ok(Machine { engine, linker })
    }
}

/// The name of what `engine` makes of `bytes`: another content, version or setting is another name.
fn key(engine: &Engine, bytes: &[u8]) -> String {
    let mut made_by = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut made_by);
    format!("{:x}-{:016x}", Sha256::digest(bytes), made_by.finish())
}

/// An error with its causes, on one line.
pub(crate) fn words(error: &wasmtime::Error) -> String {
    error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect::<Vec<_>>().join(": ")
}
