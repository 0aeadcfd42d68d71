//! A call as the host words it, and what it gets back.

use crate::{Reports, Root, Secrets, Tool, ToolOutput, ToolRun, Workspace, edit::Edit, read::Read, write::Write};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use windlass_kernel::{BlobRef, CallId, ContentBlock, FileSeen, SessionId};

/// One call.
#[derive(Deserialize)]
pub struct Wanted {
    tool: Name,
    input: Value,
    session: SessionId,
    call: CallId,
    cwd: PathBuf,
    /// The path that is meant, and where it leads with every link followed.
    end: (PathBuf, PathBuf),
    paths: Vec<String>,
    seen: BTreeMap<String, String>,
    marks: BTreeSet<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Read,
    Write,
    Edit,
}

/// A tool's output; the bytes of its blobs as base64.
#[derive(Serialize)]
pub struct Answer {
    is_error: bool,
    blocks: Vec<ContentBlock>,
    value: Option<Value>,
    files: Vec<FileSeen>,
    blobs: Vec<(BlobRef, String)>,
}

pub fn answer(wanted: Wanted) -> Answer {
    let Wanted { tool, input, session, call, cwd, end, paths, seen, marks } = wanted;
    let root = Arc::new(Root::new(cwd.clone(), end));
    let (scratch, env, secrets) = (PathBuf::new(), Arc::default(), Arc::new(Secrets::new(marks)));
    let run = ToolRun {
        workspace: Arc::new(Workspace { session, cwd, root, scratch, env, wall: Arc::default(), secrets }),
        idempotency_key: format!("{session}:{}", call.0),
        call,
        cancel: Default::default(),
        paths,
        seen: Arc::new(seen),
        reports: Reports::none(),
    };
    let output = match tool {
        Name::Read => at_once(Read.call(input, &run)),
        Name::Write => at_once(Write.call(input, &run)),
        Name::Edit => at_once(Edit.call(input, &run)),
    };
    let ToolOutput { is_error, blocks, value, files, blobs, .. } = output;
    let blobs = blobs.into_iter().map(|(name, bytes)| (name, STANDARD.encode(bytes))).collect();
    Answer { is_error, blocks, value, files, blobs }
}

/// What a future gives that never waits: here all work is done where it is asked for.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("nothing in a component is waited for"),
    }
}
