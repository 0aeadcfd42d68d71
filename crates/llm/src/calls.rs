//! What is known of a session's tool calls, so that no request looks through the whole transcript for it.

use crate::call_ids::number;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_kernel::{ContentBlock, Message, ToolUse};

/// The calls of one transcript. Clones share what they know.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Known>>);

/// What is known of the messages that were read.
#[derive(Default)]
pub(crate) struct Known {
    read: Vec<Read>,
    /// The names of the tools called, by the calls' ids; the newest last, should an id come twice.
    names: HashMap<String, Vec<String>>,
}

struct Read {
    message: Arc<Message>,
    /// The highest number of an id made here, in this message and those before it.
    highest: u64,
}

impl Calls {
    /// What is known of `messages`; only those that were not read before are read.
    pub(crate) fn of(&self, messages: &[Arc<Message>]) -> MutexGuard<'_, Known> {
        // A panic leaves whole entries only, so a poisoned lock guards nothing broken.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known.common(messages);
        known.forget_behind(kept);
        messages[kept..].iter().for_each(|message| known.read(message));
        known
    }
}

impl Known {
    /// The highest number of an id made here; 0 if there is none.
    pub(crate) fn highest(&self) -> u64 {
        self.read.last().map_or(0, |read| read.highest)
    }

    /// The name of the tool that the call of this id was for.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.names.get(id)?.last().map(String::as_str)
    }

    /// How many of `messages` are those that were read.
    fn common(&self, messages: &[Arc<Message>]) -> usize {
        self.read.iter().zip(messages).take_while(|(read, now)| Arc::ptr_eq(&read.message, now)).count()
    }

    fn read(&mut self, message: &Arc<Message>) {
        let mut highest = self.highest();
        for call in calls_of(message) {
            highest = highest.max(number(&call.id.0).unwrap_or(0));
            self.names.entry(call.id.0.clone()).or_default().push(call.name.clone());
        }
        self.read.push(Read { message: message.clone(), highest });
    }

    fn forget_behind(&mut self, kept: usize) {
        for read in self.read.drain(kept..).rev() {
            for call in calls_of(&read.message) {
                if let Some(names) = self.names.get_mut(&call.id.0) {
                    names.pop();
                    if names.is_empty() {
                        self.names.remove(&call.id.0);
                    }
                }
            }
        }
    }
}

fn calls_of(message: &Message) -> impl Iterator<Item = &ToolUse> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;
    use serde_json::json;

    fn said(id: &str, name: &str) -> Arc<Message> {
        Arc::new(Message::assistant(vec![call(id, name, json!({}))]))
    }

    #[test]
    fn only_new_messages_are_read() {
        let calls = Calls::default();
        let mut messages: Vec<Arc<Message>> = (1..=10).map(|n| said(&format!("call_{n}"), "ls")).collect();
        assert_eq!(calls.of(&messages).highest(), 10);
        messages.push(said("call_11", "read"));
        // What is common with the request before is not read again: it is one message that is.
        assert_eq!(calls.0.lock().unwrap().common(&messages), 10);
        assert_eq!(calls.of(&messages).name("call_11"), Some("read"));
        assert_eq!(calls.0.lock().unwrap().common(&messages), 11);
        assert_eq!(calls.of(&messages).highest(), 11);
    }

    #[test]
    fn what_left_the_transcript_is_forgotten() {
        let calls = Calls::default();
        let (first, second, third) = (said("a", "ls"), said("call_7", "read"), said("a", "grep"));
        assert_eq!(calls.of(&[first.clone(), second.clone(), third]).name("a"), Some("grep"));
        let known = calls.of(&[first.clone(), second]);
        assert_eq!((known.name("a"), known.name("call_7"), known.highest()), (Some("ls"), Some("read"), 7));
        drop(known);
        let known = calls.of(&[first]);
        assert_eq!((known.name("a"), known.name("call_7"), known.highest()), (Some("ls"), None, 0));
        drop(known);
        assert!(calls.of(&[]).names.is_empty());
    }
}
