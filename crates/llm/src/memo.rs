//! What was encoded for a session before, so that its history is serialised once.

use crate::calls::Calls;
use crate::text_tools::Retold;
use crate::{Request, SystemSection, ToolSpec};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::{Message, Role};

/// How many providers' encodings are kept side by side: the session's own and the one it fell back to.
const MAX_KEPT: usize = 2;

/// Encoded messages of one session. Clones share what they keep.
#[derive(Clone, Default)]
pub struct Memo {
    kept: Arc<Mutex<Vec<Kept>>>,
    calls: Calls,
    retold: Retold,
}

/// The transcript as one protocol writes it for one provider.
struct Kept {
    protocol: &'static str,
    provider: String,
    manner: u32,
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
    /// What else the bytes depend on: another number, another encoding.
    fn manner(&self) -> u32 {
        0
    }
    /// System prompt and tools, up to and with the opening bracket of the messages.
    fn head(&self, system: &[SystemSection], tools: &[ToolSpec]) -> Vec<u8>;
    fn message(&self, message: &Message, blobs: &HashMap<String, Bytes>) -> Parts;
}

pub(crate) struct Encoded {
    pub head: Bytes,
    pub messages: Vec<Parts>,
}

impl Memo {
    /// What was put into other words before it was encoded.
    pub(crate) fn retold(&self) -> &Retold {
        &self.retold
    }

    /// What is known of the calls in the messages as they are sent.
    pub(crate) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The request's encoding; only what was not encoded before costs work.
    pub(crate) fn encode<E: Encode>(&self, wire: &E, request: &Request) -> Encoded {
        // A panic while encoding leaves whole entries only, so a poisoned lock guards nothing broken.
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.iter().position(|kept| kept.is_of(wire));
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
    fn is_of<E: Encode>(&self, wire: &E) -> bool {
        self.protocol == E::PROTOCOL && self.provider == wire.provider() && self.manner == wire.manner()
    }

    fn new<E: Encode>(wire: &E, request: &Request) -> Kept {
        Kept {
            protocol: E::PROTOCOL,
            provider: wire.provider().to_owned(),
            manner: wire.manner(),
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

/// Bytes that stay for the session's life, without the room they grew in.
pub(crate) fn packed(mut bytes: Vec<u8>) -> Bytes {
    bytes.shrink_to_fit();
    bytes.into()
}

#[cfg(test)]
mod tests {
    use crate::anthropic::Messages;
    use crate::openai_chat::Chat;
    use crate::protocol::Protocol;
    use crate::responses::Responses;
    use crate::testing::*;
    use crate::{Memo, Request};
    use serde_json::json;
    use std::sync::Arc;
    use windlass_kernel::{ContentBlock, Message};

    /// A text that is large enough to be sent as it lies.
    fn large(letter: &str) -> ContentBlock {
        ContentBlock::text(letter.repeat(5_000))
    }

    fn talk(count: usize) -> Request {
        let say = |n: usize| match n % 2 {
            0 => Message::user(vec![large("u")]),
            _ => Message::assistant(vec![large("a")]),
        };
        request((0..count).map(say).collect())
    }

    /// Where the large pieces of the body lie, in order.
    fn places<P: Protocol>(request: &Request) -> Vec<*const u8> {
        let body = P::encode(&target("anthropic"), request).into_body();
        body.segments().filter(|segment| segment.len() > 4_900).map(|segment| segment.as_ptr()).collect()
    }

    fn only_the_new_is_encoded<P: Protocol>() {
        let mut request = talk(10);
        let before = places::<P>(&request);
        assert_eq!(before.len(), 10);
        assert_eq!(places::<P>(&request), before, "nothing new, nothing encoded");
        request.messages.push(Arc::new(Message::user(vec![large("n")])));
        let after = places::<P>(&request);
        assert_eq!(after[..10], before);
        assert_eq!(after.len(), 11);
    }

    #[test]
    fn a_further_message_leaves_the_bytes_of_the_earlier_ones() {
        only_the_new_is_encoded::<Messages>();
        only_the_new_is_encoded::<Chat>();
        only_the_new_is_encoded::<Responses>();
    }

    #[test]
    fn after_a_compaction_what_follows_the_first_difference_is_dropped() {
        let mut request = talk(6);
        let before = places::<Messages>(&request);
        let summary = Arc::new(Message::user(vec![large("s")]));
        request.messages.splice(2..4, [summary]);
        let after = places::<Messages>(&request);
        assert_eq!(after[..2], before[..2]);
        let fresh = Request { memo: Memo::default(), ..request.clone() };
        assert_eq!(body::<Messages>("anthropic", &request), body::<Messages>("anthropic", &fresh));
    }

    #[test]
    fn one_memo_serves_several_protocols_and_providers() {
        let request = talk(4);
        let before = places::<Messages>(&request);
        for provider in ["anthropic", "openai", "elsewhere"] {
            let fresh = Request { memo: Memo::default(), ..request.clone() };
            assert_eq!(body::<Chat>(provider, &request), body::<Chat>(provider, &fresh));
            assert_eq!(body::<Messages>(provider, &request), body::<Messages>(provider, &fresh));
        }
        assert_ne!(places::<Messages>(&request), before, "the oldest of too many encodings was given up");
    }

    #[test]
    fn changed_tools_and_prompts_show_in_the_next_request() {
        let mut request = talk(2);
        let before = places::<Messages>(&request);
        request.tools = [].into();
        assert!(body::<Messages>("anthropic", &request)["tools"].is_null());
        let mut system = request.system.to_vec();
        system[1].text = "Another folder.".into();
        request.system = system.into();
        assert_eq!(body::<Messages>("anthropic", &request)["system"][1]["text"], json!("Another folder."));
        assert_eq!(places::<Messages>(&request), before, "the messages were not touched");
    }

    #[test]
    fn the_breakpoint_does_not_change_the_kept_bytes() {
        let mut request = talk(1);
        let prefix = |request: &Request| -> Vec<u8> {
            let body = Messages::encode(&target("anthropic"), request).into_body();
            body.segments().flat_map(|segment| segment.to_vec()).collect()
        };
        let first = prefix(&request);
        request.messages.push(Arc::new(Message::assistant(vec![ContentBlock::text("Yes.")])));
        let second = prefix(&request);
        let mark = br#","cache_control":{"type":"ephemeral"}}]}]}"#;
        let common = first.len() - mark.len();
        assert_eq!(first[common..], mark[..]);
        assert_eq!(first[..common], second[..common]);
    }
}
