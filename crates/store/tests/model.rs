//! Random lives of a few sessions, on the file and on a model of it that fits on a screen.

mod common;

use common::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use windlass_kernel::*;
use windlass_store::*;

const SESSIONS: usize = 2;

#[derive(Clone, Debug)]
enum Act {
    Claim {
        session: usize,
    },
    /// Appends `events` through the newest fence, or through the one `older` claims before it.
    Append {
        session: usize,
        older: usize,
        behind: u64,
        events: usize,
        sync: bool,
    },
    /// Sends the last accepted batch once more.
    Repeat {
        session: usize,
    },
    Leave {
        session: usize,
        input: u128,
    },
    /// Moves all that is in the inbox to the log.
    Take {
        session: usize,
    },
    /// Ends the process without releasing anything, and opens the file again.
    Crash,
}

fn act() -> impl Strategy<Value = Act> {
    let session = 0..SESSIONS;
    prop_oneof![
        2 => session.clone().prop_map(|session| Act::Claim { session }),
        6 => (session.clone(), prop_oneof![6 => Just(0), 1 => Just(1)], prop_oneof![6 => Just(0), 1 => 1..3u64],
              0..4usize, any::<bool>())
            .prop_map(|(session, older, behind, events, sync)| Act::Append { session, older, behind, events, sync }),
        1 => session.clone().prop_map(|session| Act::Repeat { session }),
        3 => (session.clone(), 0..12u128).prop_map(|(session, input)| Act::Leave { session, input }),
        2 => session.prop_map(|session| Act::Take { session }),
        1 => Just(Act::Crash),
    ]
}

/// What one session must look like.
struct Model {
    session: SessionId,
    fences: Vec<Fence>,
    log: Vec<Record>,
    inbox: Vec<Input>,
    taken: BTreeSet<InputId>,
    last: Option<Batch>,
}

impl Model {
    fn head(&self) -> u64 {
        self.log.len() as u64
    }

    fn fence(&self, older: usize) -> Fence {
        self.fences[self.fences.len().saturating_sub(1 + older)]
    }

    /// Whether `batch` must be accepted; then it is in the log.
    fn append(&mut self, batch: &Batch) -> bool {
        if batch.fence != self.fence(0) || batch.expected.0 != self.head() {
            return false;
        }
        self.log.extend(records_of(batch));
        self.inbox.retain(|input| !batch.consumed.contains(&input.id));
        self.taken.extend(&batch.consumed);
        self.last = Some(batch.clone());
        true
    }
}

async fn play(store: &SqliteStore, models: &mut [Model], act: Act) -> Result<(), TestCaseError> {
    match act {
        Act::Claim { session } => {
            let fence = store.claim(models[session].session).await.unwrap();
            prop_assert_eq!(fence.epoch, models[session].fence(0).epoch + 1);
            models[session].fences.push(fence);
        }
        Act::Append { session, older, behind, events, sync } => {
            let model = &mut models[session];
            let expected = model.head().saturating_sub(behind);
            let mut next = batch(model.fence(older), expected, (0..events).map(|n| said(&n.to_string())));
            next.sync = sync;
            let outcome = store.append(next.clone()).await;
            prop_assert_eq!(outcome.is_ok(), model.append(&next), "{:?}", outcome);
        }
        Act::Repeat { session } => {
            let model = &models[session];
            let Some(last) = model.last.clone() else { return Ok(()) };
            let again = last.fence == model.fence(0) && (!last.records.is_empty() || last.expected.0 == model.head());
            let outcome = store.append(last).await;
            prop_assert_eq!(outcome.is_ok(), again, "{:?}", outcome);
        }
        Act::Leave { session, input } => {
            let model = &mut models[session];
            let id = InputId(uuid::Uuid::from_u128(input));
            let new = !model.taken.contains(&id) && model.inbox.iter().all(|queued| queued.id != id);
            let input = Input { id, command: Command::Interrupt { by: "x".into() }, at: 1 };
            prop_assert_eq!(store.enqueue(model.session, input.clone()).await.unwrap(), new);
            if new {
                model.inbox.push(input);
            }
        }
        Act::Take { session } => {
            let model = &mut models[session];
            let inbox = store.inbox(model.session).await.unwrap();
            let interrupted = inbox.iter().map(|input| said(&input.id.0.to_string()));
            let mut moved = batch(model.fence(0), model.head(), interrupted);
            moved.consumed = inbox.iter().map(|input| input.id).collect();
            store.append(moved.clone()).await.unwrap();
            prop_assert!(model.append(&moved));
        }
        Act::Crash => unreachable!("the caller opens the file again"),
    }
    Ok(())
}

async fn live(path: &Path, acts: Vec<Act>) -> Result<(), TestCaseError> {
    let mut store = open(path);
    let mut models = vec![];
    for _ in 0..SESSIONS {
        let fence = store.create(session()).await.unwrap();
        let (log, inbox, taken) = (vec![], vec![], BTreeSet::new());
        models.push(Model { session: fence.session, fences: vec![fence], log, inbox, taken, last: None });
    }
    for act in acts {
        match act {
            Act::Crash => store = open(path),
            act => play(&store, &mut models, act).await?,
        }
        for model in &models {
            prop_assert_eq!(&whole(&store, model.session).await, &model.log);
            prop_assert_eq!(&store.inbox(model.session).await.unwrap(), &model.inbox);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s1_30_any_life_of_a_session_leaves_the_log_the_model_says(acts in prop::collection::vec(act(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(live(&folder.path().join("sessions.db"), acts))?;
    }
}
