//! An observer is called with each record, in order, and never before it is durable.

mod common;

use common::*;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex};
use windlass::kernel::*;
use windlass::store::{MemoryStore, Store};

#[tokio::test]
async fn an_observer_hears_every_record_once_it_is_stored() {
    let workshop = Workshop::playing("[[step]]\nblocks = [{ text = 'done' }]");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let heard: Arc<Mutex<Vec<Record>>> = Arc::default();
    let (shelf, kept) = (store.clone(), heard.clone());
    let observer = move |record: &Record| {
        let stored = shelf.read(record.session, record.seq, 1).now_or_never().unwrap().unwrap();
        assert_eq!(stored, std::slice::from_ref(record));
        kept.lock().unwrap().push(record.clone());
    };
    let agent = workshop.agent().store(store.clone()).observer(observer).build().unwrap();
    let session = agent.open().await.unwrap();
    soon(session.submit("go on").await.unwrap().finish()).await.unwrap();
    let stored = log(&store, session.id()).await;
    assert_eq!(*heard.lock().unwrap(), stored);
}
