//! The words the stories in this folder are told in.
#![allow(dead_code)] // Each test binary uses its own part.

use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;
use windlass_kernel::*;
use windlass_store::*;

pub const BOOT: &str = "this-boot";

/// A worker of this process; each call is another start of it.
pub fn worker() -> Worker {
    worker_of(std::process::id())
}

pub fn worker_of(pid: u32) -> Worker {
    Worker { id: Uuid::now_v7().to_string(), pid, started: 0, boot_id: BOOT.into() }
}

pub fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, worker()).unwrap()
}

pub fn session() -> SessionId {
    SessionId(Uuid::now_v7())
}

pub fn input_id() -> InputId {
    InputId(Uuid::now_v7())
}

pub fn opened(cwd: &str) -> Event {
    Event::Opened {
        parent: None,
        forked_from: None,
        cwd: cwd.into(),
        agent: "coder".into(),
        model: "some/model".into(),
        mode: PermissionMode::Default,
        profile: Box::default(),
    }
}

pub fn prompted(input: InputId, text: &str) -> Event {
    Event::Prompted(Box::new(prompt(input, text)))
}

pub fn prompt(input: InputId, text: &str) -> Prompted {
    Prompted {
        input,
        origin: Origin::Inbox,
        blocks: vec![ContentBlock::text(text)],
        context: None,
        data: None,
        intent: None,
        constraints: vec![],
        output_schema: None,
    }
}

pub fn said(text: &str) -> Event {
    Event::BlockFinished { work: Seq(1), index: 0, block: ContentBlock::text(text), partial: false }
}

/// As `opened`, for a sub-agent of `parent`.
pub fn opened_by(parent: Option<SessionId>) -> Event {
    let mut event = opened("/work");
    if let Event::Opened { parent: by, .. } = &mut event {
        *by = parent.map(|session| Parent { session, call: "call".into() });
    }
    event
}

/// An attempt to ask `model`, `PROVIDER/NAME`.
pub fn called(work: u64, model: &str, attempt: u32) -> Event {
    let (provider, model) = model.split_once('/').unwrap();
    Event::ModelCalled(Box::new(ModelCalled {
        work: Seq(work),
        role: ModelRole::Main,
        provider: provider.into(),
        model: model.into(),
        parameters: Parameters::default(),
        attempt,
        sections: vec![],
        tools: blob_ref(b"[]"),
        window: None,
    }))
}

pub fn finished(work: u64, spent: Spent) -> Event {
    Event::ModelFinished { work: Seq(work), stop: StopReason::EndTurn, raw_stop: None, spent }
}

pub fn tokens(input: u64, cost_micro_usd: Option<u64>) -> Spent {
    Spent { usage: Usage { input, ..Usage::default() }, cost_micro_usd, ..Spent::default() }
}

/// A batch that puts `events` after `expected`; each second of a session's life holds one event.
pub fn batch(fence: Fence, expected: u64, events: impl IntoIterator<Item = Event>) -> Batch {
    let record = |(i, event)| {
        let seq = expected + 1 + i as u64;
        Arc::new(Record {
            v: SCHEMA_VERSION,
            tenant: "local".into(),
            session: fence.session,
            seq: Seq(seq),
            id: EventId(Uuid::now_v7()),
            epoch: fence.epoch,
            at: seq * 1000,
            cause: (seq > 1).then_some(Seq(1)),
            event,
        })
    };
    let records = events.into_iter().enumerate().map(record).collect();
    Batch { fence, expected: Seq(expected), records, blobs: vec![], consumed: vec![], sync: false }
}

pub fn says(fence: Fence, expected: u64, text: &str) -> Batch {
    batch(fence, expected, [said(text)])
}

pub fn records_of(batch: &Batch) -> Vec<Record> {
    batch.records.iter().map(|record| Record::clone(record)).collect()
}

pub async fn whole(store: &dyn Store, session: SessionId) -> Vec<Record> {
    store.read(session, Seq(1), usize::MAX).await.unwrap()
}

/// What a log says, event by event.
pub async fn texts(store: &dyn Store, session: SessionId) -> Vec<String> {
    whole(store, session).await.iter().map(|record| text_of_event(&record.event)).collect()
}

pub fn text_of_event(event: &Event) -> String {
    match event {
        Event::BlockFinished { block: ContentBlock::Text { text }, .. } => text.clone(),
        Event::Prompted(prompted) => format!("prompt: {}", text_of(&prompted.blocks)),
        Event::Opened { .. } => "opened".into(),
        other => panic!("no story here tells {other:?}"),
    }
}
