//! What a component is put into for one call: a store of its own, with limits, and only what it was granted.

use crate::manifest::Access;
use crate::sink::{Beyond, Sink};
use bytes::Bytes;
use cap_std::fs::Dir;
use std::path::Path;
use std::time::Duration;
use wasmtime::{ResourceLimiter, Result};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, HostWallClock, ResourceTable, WasiCtx, WasiCtxView, WasiView};

/// Bytes a call may print.
pub(crate) const OUTPUT_BYTES: usize = 8 << 20;
/// Bytes of complaints (stderr) that are kept.
const COMPLAINT_BYTES: usize = 16 << 10;
/// Files, folders and streams a call may have open.
const MAX_RESOURCES: usize = 1_000;
/// Entries of one table of functions.
const MAX_TABLE_ENTRIES: usize = 1 << 20;
/// Modules inside a component, each with its tables and memories.
const MAX_PARTS: usize = 200;

/// What one call is given.
pub(crate) struct Grant {
    /// Becomes the program's own name.
    pub name: String,
    pub dirs: Vec<OpenDir>,
    pub env: Vec<(String, String)>,
    pub clock: bool,
    pub memory_bytes: usize,
    pub fuel: u64,
}

/// An opened folder and the path the component knows it by.
pub(crate) struct OpenDir {
    pub dir: Dir,
    pub path: String,
    pub access: Access,
}

/// What the store holds.
pub(crate) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    pub limiter: Limiter,
}

/// The ends of a call's streams that stay outside.
pub(crate) struct Streams {
    pub out: Sink,
    pub complaints: Sink,
}

impl Guest {
    pub fn new(grant: &Grant, input: Bytes) -> Result<(Guest, Streams)> {
        let out = Sink::new(OUTPUT_BYTES, Beyond::Stops);
        let complaints = Sink::new(COMPLAINT_BYTES, Beyond::Dropped);
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true).allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        wasi.stdin(MemoryInputPipe::new(input)).stdout(out.clone()).stderr(complaints.clone());
        wasi.arg(&grant.name).envs(&grant.env);
        if !grant.clock {
            wasi.wall_clock(Stopped);
        }
        for dir in &grant.dirs {
            let perms = if dir.access == Access::Write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            reached(&dir.dir, |path| wasi.preopened_dir(path, &dir.path, perms).map(|_| ()))?;
        }
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        let limiter = Limiter { limit_bytes: grant.memory_bytes, used_bytes: 0, refused: false };
        Ok((Guest { wasi: wasi.build(), table, limiter }, Streams { out, complaints }))
    }
}

/// Hands on a path that leads to the opened folder itself, whatever its name leads to by now.
fn reached(dir: &Dir, open: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    use std::os::fd::AsRawFd;
    // macOS has no such paths for folders, and so no components with folders.
    open(Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())))
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// The clock of a tool that is told no date: it stands at the beginning of 1970.
struct Stopped;

impl HostWallClock for Stopped {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// Holds all memories of a call together to its limit.
pub(crate) struct Limiter {
    limit_bytes: usize,
    used_bytes: usize,
    /// Whether it asked for more.
    pub refused: bool,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let used = self.used_bytes.saturating_add(desired.saturating_sub(current));
        let fits = used <= self.limit_bytes;
        if fits {
            self.used_bytes = used;
        }
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(desired <= MAX_TABLE_ENTRIES)
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_PARTS
    }
}
