//! Ids of tool calls: made here where a provider gives none, mended where another provider would refuse them.

use crate::calls::Calls;
use std::borrow::Cow;
use std::sync::Arc;
use windlass_kernel::Message;

const PREFIX: &str = "call_";
/// Characters of an id that the strictest protocols take.
const MAX_ID: usize = 64;
/// Characters of a longer or stranger id that are kept before its hash.
const KEPT: usize = 40;

/// Gives ids that none of a session's calls has.
pub(crate) struct CallIds {
    next: u64,
}

impl CallIds {
    /// Ids behind those of the calls in `messages`, of which `calls` knows what was read before.
    pub(crate) fn behind(calls: &Calls, messages: &[Arc<Message>]) -> CallIds {
        CallIds { next: calls.of(messages).highest().saturating_add(1) }
    }

    pub(crate) fn make(&mut self) -> String {
        self.next += 1;
        format!("{PREFIX}{}", self.next - 1)
    }
}

/// Whether the id may have been made here, so that its provider does not know it.
pub(crate) fn is_made_here(id: &str) -> bool {
    number(id).is_some()
}

/// The number of an id that was made here.
pub(crate) fn number(id: &str) -> Option<u64> {
    id.strip_prefix(PREFIX)?.parse().ok()
}

/// An id as every protocol takes it, always the same for the same id. Some vendors give ids such as `functions.read:0`;
/// sent as they are, another vendor would refuse each request that holds one.
pub(crate) fn wire_id(id: &str) -> Cow<'_, str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !id.is_empty() && id.len() <= MAX_ID && id.chars().all(fits) {
        return Cow::Borrowed(id);
    }
    let kept: String = id.chars().take(KEPT).map(|letter| if fits(letter) { letter } else { '_' }).collect();
    Cow::Owned(format!("{kept}_{:016x}", hash(id)))
}

/// FNV-1a, which never changes: what is made of it stands in what the providers have cached.
pub(crate) fn hash(id: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    id.bytes().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;
    use serde_json::json;

    #[test]
    fn ids_made_here_come_behind_those_of_the_conversation() {
        assert_eq!(CallIds::behind(&Calls::default(), &[]).make(), "call_1");
        let calls = ["call_7", "call_x", "z9"].map(|id| call(id, "ls", json!({})));
        let mut ids = CallIds::behind(&Calls::default(), &[Arc::new(Message::assistant(calls.into()))]);
        assert_eq!([ids.make(), ids.make()], ["call_8", "call_9"]);
        assert!(is_made_here("call_8") && !is_made_here("call_x"));
    }

    #[test]
    fn an_id_that_a_protocol_refuses_is_mended_and_stays_its_own() {
        assert_eq!(wire_id("toolu_01-a"), "toolu_01-a");
        assert_eq!(wire_id(&"a".repeat(MAX_ID)), "a".repeat(MAX_ID));
        let strange =
            ["functions.read:0", "functions_read_0", "functions.read.0", "", &"é".repeat(90), &"a".repeat(65)];
        let mended: std::collections::BTreeSet<String> = strange.iter().map(|id| wire_id(id).into_owned()).collect();
        assert_eq!(mended.len(), strange.len(), "{mended:?}");
        for id in &mended {
            assert_eq!(wire_id(id), id.as_str(), "what was mended is taken");
        }
    }
}
