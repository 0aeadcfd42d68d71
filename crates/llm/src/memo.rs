//! What was encoded for a session before, so that its history is serialised once.

use crate::{Request, SystemSection, ToolSpec};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::{BlobRef, Message, Role};

/// How many providers' encodings are kept side by side: the session's own and the one it fell back to.
const MAX_KEPT: usize = 2;

/// Encoded messages of one session. Clones share what they keep.
#[derive(Clone, Default)]
pub struct Memo(Arc<Mutex<Vec<Kept>>>);

/// The transcript as one protocol writes it for one provider.
struct Kept {
    protocol: &'static str,
    provider: String,
    system: Arc<[SystemSection]>,
    tools: Arc<[ToolSpec]>,
    head: Bytes,
    messages: Vec<(Arc<Message>, Parts)>,
}

/// One encoded message: JSON objects joined by commas.
#[derive(Clone)]
pub(crate) struct Parts {
    pub role: Role,
    /// The results of tool calls, which stand before everything else of their side's say.
    pub results: Bytes,
    pub others: Bytes,
    /// A cache breakpoint may stand on the last object.
    pub markable: bool,
}

impl Parts {
    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty() && self.others.is_empty()
    }
}

/// How a protocol writes what is worth keeping.
pub(crate) trait Encode {
    const PROTOCOL: &'static str;
    fn provider(&self) -> &str;
    /// System prompt and tools, up to and with the opening bracket of the messages.
    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8>;
    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts;
}

pub(crate) struct Encoded {
    pub head: Bytes,
    pub messages: Vec<Parts>,
}

impl Memo {
    /// The request's encoding; only what was not encoded before costs work.
    pub(crate) fn encode<E: Encode>(&self, wire: &E, request: &Request) -> Encoded {
        // A panic while encoding leaves whole entries only, so a poisoned lock guards nothing broken.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|kept| kept.protocol == E::PROTOCOL && kept.provider == wire.provider());
        let kept = match place {
            Some(place) => &mut all[place],
            None => {
                if all.len() == MAX_KEPT {
                    all.remove(0);
                }
                all.push(Kept::new(wire, request));
                all.last_mut().expect("one was just pushed")
            }
        };
        kept.update_head(wire, request);
        kept.update_messages(wire, request);
        Encoded { head: kept.head.clone(), messages: kept.messages.iter().map(|(_, parts)| parts.clone()).collect() }
    }
}

impl Kept {
    fn new<E: Encode>(wire: &E, request: &Request) -> Kept {
        Kept {
            protocol: E::PROTOCOL,
            provider: wire.provider().to_owned(),
            system: request.system.clone(),
            tools: request.tools.clone(),
            head: wire.head(&request.system, &request.tools).into(),
            messages: Vec::new(),
        }
    }

    fn update_head<E: Encode>(&mut self, wire: &E, request: &Request) {
        let same = (Arc::ptr_eq(&self.system, &request.system) || self.system == request.system)
            && (Arc::ptr_eq(&self.tools, &request.tools) || self.tools == request.tools);
        if !same {
            self.head = wire.head(&request.system, &request.tools).into();
        }
        self.system = request.system.clone();
        self.tools = request.tools.clone();
    }

    fn update_messages<E: Encode>(&mut self, wire: &E, request: &Request) {
        let known = self.messages.iter().zip(&request.messages).take_while(|((had, _), now)| Arc::ptr_eq(had, now));
        let known = known.count();
        self.messages.truncate(known);
        for message in &request.messages[known..] {
            self.messages.push((message.clone(), wire.message(message, &request.blobs)));
        }
    }
}

/// What stands in the place of a picture or document whose bytes are lost: the session goes on without them.
pub(crate) fn missing(what: &str, media_type: &str, blob: &BlobRef) -> String {
    format!("[{what} ({media_type}, {} bytes) that is no longer available]", blob.bytes)
}
