//! What a model call is told, kept between calls so that each pays only for what is new.

use crate::review::Reviewer;
use crate::{ModelFacts, Setup};
use bytes::Bytes;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::*;
use windlass_llm::{Memo, Model, Prices, Request, SystemSection, ToolSpec};
use windlass_store::{StoreError, blob_ref};
use windlass_tools::{Entry, Source};

pub(crate) struct Briefing {
    setup: Arc<Setup>,
    session: SessionId,
    memo: Memo,
    model: Option<(String, Arc<dyn Model>)>,
    facts: Option<(String, Arc<ModelFacts>)>,
    offer: Option<Arc<Offer>>,
    /// Blobs of prompt and tools that the store has already.
    stored: HashSet<String>,
    /// Bytes of the pictures and documents in the transcript, by hash.
    media: Arc<HashMap<String, Bytes>>,
}

/// The fixed part of every request, made anew only when the tools change, and shared by the sessions of a folder.
pub(crate) struct Offer {
    cwd: String,
    entries: Vec<Arc<Entry>>,
    system: Arc<[SystemSection]>,
    tools: Arc<[ToolSpec]>,
    sections: Vec<Section>,
    tools_blob: BlobRef,
    blobs: Vec<(BlobRef, Bytes)>,
}

/// All that the model room needs.
pub(crate) struct Speech {
    pub model: Result<Arc<dyn Model>, String>,
    pub request: Request,
    pub prices: Option<Prices>,
    /// Failed attempts just before this one, and how long the provider asked to wait.
    pub failed: u32,
    pub retry_after_ms: Option<u64>,
    pub retry: Retry,
}

/// The same for the compaction room.
pub(crate) struct Summary {
    pub speech: Speech,
    /// Messages the summary will stand for; none: there is no safe place to cut.
    pub upto: Option<usize>,
}

impl Briefing {
    pub fn new(setup: Arc<Setup>, session: SessionId) -> Briefing {
        Briefing {
            setup,
            session,
            memo: Memo::default(),
            model: None,
            facts: None,
            offer: None,
            stored: HashSet::new(),
            media: Arc::default(),
        }
    }

    /// What goes into the log about the call that `step` begins, and the blobs it names that are new.
    pub fn describe(&mut self, work: Seq, step: &Step, state: &State) -> (ModelCalled, Vec<(BlobRef, Bytes)>) {
        let role = match (step, &state.parent) {
            (Step::Compact, _) => ModelRole::Compaction,
            (_, Some(_)) => ModelRole::Subagent,
            (_, None) => ModelRole::Main,
        };
        let speaking = state.speaking_model();
        let facts = self.facts(speaking);
        let (provider, model) = speaking.split_once('/').unwrap_or(("", speaking));
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let parameters = parameters(&self.setup, state, &facts);
        let attempt = 1 + match role {
            ModelRole::Compaction => state.compaction_errors,
            _ => state.turn.as_ref().map_or(0, |turn| turn.model_errors),
        };
        let offer = offer(&mut self.offer, &self.setup, state, &facts);
        let sections = offer.sections.clone();
        let tools = offer.tools_blob.clone();
        let new = offer.blobs.iter().filter(|(blob, _)| self.stored.insert(blob.hash.clone())).cloned().collect();
        let window = facts.window;
        (ModelCalled { work, role, provider, model, parameters, attempt, sections, tools, window }, new)
    }

    /// The next thing to ask the model.
    pub fn speech(&mut self, state: &State) -> Speech {
        let turn = state.turn.as_ref();
        let memo = self.memo.clone();
        let facts = self.facts(state.speaking_model());
        let offer = offer(&mut self.offer, &self.setup, state, &facts);
        let request = Request {
            system: offer.system.clone(),
            messages: state.transcript(),
            tools: offer.tools.clone(),
            parameters: parameters(&self.setup, state, &facts),
            output_schema: turn.and_then(|turn| turn.output_schema.clone()),
            cache_key: self.session.to_string(),
            blobs: self.media.clone(),
            memo,
        };
        Speech {
            model: self.model(state.speaking_model()),
            request,
            prices: facts.prices,
            failed: turn.map_or(0, |turn| turn.model_errors),
            retry_after_ms: turn.and_then(|turn| turn.retry_after_ms),
            retry: state.profile.retry.clone(),
        }
    }

    /// The older part of the transcript, and the request to sum it up.
    pub fn summary(&mut self, state: &State) -> Summary {
        let mut speech = self.speech(state);
        let upto = state.split();
        let instructions = state.compaction_asked.as_ref().and_then(|wish| wish.instructions.as_deref());
        let ask = Message::user(vec![ContentBlock::text(windlass_prompt::summary_request(instructions))]);
        let older = &state.messages[state.boundary..upto.unwrap_or(state.boundary)];
        speech.request.messages = state.summary.iter().chain(older).cloned().chain([Arc::new(ask)]).collect();
        // It is another conversation: what it encodes must not push out what the session's own has.
        speech.request.memo = Memo::default();
        speech.request.output_schema = None;
        speech.failed = state.compaction_errors;
        speech.retry_after_ms = state.compaction_wait_ms;
        Summary { speech, upto }
    }

    /// The model that answers in a person's place.
    pub fn reviewer(&self, state: &State) -> Reviewer {
        let name = self.setup.reviewer.clone().unwrap_or_else(|| state.model.clone());
        let (model, facts) = match state.mode {
            PermissionMode::Auto => ((self.setup.models.find)(&name), (self.setup.models.facts)(&name)),
            _ => (Err("only mode auto has a reviewing model".to_owned()), ModelFacts::default()),
        };
        Reviewer { name, model, facts: Arc::new(facts) }
    }

    fn model(&mut self, name: &str) -> Result<Arc<dyn Model>, String> {
        if let Some((known, model)) = &self.model
            && known == name
        {
            return Ok(model.clone());
        }
        let model = (self.setup.models.find)(name)?;
        self.model = Some((name.to_owned(), model.clone()));
        Ok(model)
    }

    fn facts(&mut self, name: &str) -> Arc<ModelFacts> {
        match &self.facts {
            Some((known, facts)) if known == name => facts.clone(),
            _ => {
                let facts = Arc::new((self.setup.models.facts)(name));
                self.facts.insert((name.to_owned(), facts)).1.clone()
            }
        }
    }

    /// Keeps the bytes of the pictures and documents in `blocks`, as far as they are among `blobs`.
    pub fn keep_media(&mut self, blocks: &[ContentBlock], blobs: &[(BlobRef, Bytes)]) {
        if blobs.is_empty() {
            return;
        }
        let mut wanted = BTreeSet::new();
        collect_media(blocks, &mut wanted);
        for (blob, bytes) in blobs.iter().filter(|(blob, _)| wanted.contains(blob)) {
            Arc::make_mut(&mut self.media).insert(blob.hash.clone(), bytes.clone());
        }
    }

    /// Gets the pictures and documents of a session that is taken up.
    pub async fn load_media(&mut self, state: &State) -> Result<(), StoreError> {
        let mut wanted = BTreeSet::new();
        let pending = state.pending.iter().map(|input| &input.message);
        for message in state.transcript().iter().chain(pending) {
            collect_media(&message.content, &mut wanted);
        }
        for blob in wanted {
            if let Some(bytes) = self.setup.store.blob(&blob.hash).await? {
                Arc::make_mut(&mut self.media).insert(blob.hash, bytes);
            }
        }
        Ok(())
    }
}

fn collect_media(blocks: &[ContentBlock], into: &mut BTreeSet<BlobRef>) {
    for block in blocks {
        match block {
            ContentBlock::Image { blob, .. } | ContentBlock::Document { blob, .. } => {
                into.insert(blob.clone());
            }
            ContentBlock::ToolResult(result) => collect_media(&result.content, into),
            _ => {}
        }
    }
}

/// What is asked of the model: never more output than it gives, or than the session's token budget still holds.
fn parameters(setup: &Setup, state: &State, facts: &ModelFacts) -> Parameters {
    let mut parameters = setup.parameters.clone();
    let most = facts.max_output.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX);
    parameters.max_tokens = parameters.max_tokens.min(most);
    // Forced again after its result, a call would never end; forced to call, the model would sum nothing up.
    if state.compacting.is_some() || state.turn.as_ref().is_some_and(|turn| turn.model_calls > 0) {
        parameters.tool_choice = ToolChoice::Auto;
    }
    if let Some(budget) = state.profile.max_session_tokens {
        let left = budget.saturating_sub(state.totals.usage.context()).max(1);
        parameters.max_tokens = parameters.max_tokens.min(u32::try_from(left).unwrap_or(u32::MAX));
    }
    // Thinking is part of the output, and something must be left to say.
    parameters.thinking_tokens = parameters.thinking_tokens.filter(|thinking| *thinking < parameters.max_tokens);
    parameters
}

/// The offer last made: sessions side by side mostly want the same.
#[derive(Default)]
pub struct Offers(Mutex<Option<Arc<Offer>>>);

/// The offer for `state`: the one kept, or the one last made for anybody, unless the tools or the folder are others.
fn offer<'a>(kept: &'a mut Option<Arc<Offer>>, setup: &Setup, state: &State, facts: &ModelFacts) -> &'a Arc<Offer> {
    let mut entries = setup.tools.offered(&state.disabled_tools, &facts.habits);
    // What is denied whatever it is given, no model needs to hear of.
    entries.retain(|entry| !setup.policy.hides(entry.name()));
    let same = |offer: &Arc<Offer>| {
        offer.cwd == state.cwd
            && offer.entries.len() == entries.len()
            && offer.entries.iter().zip(&entries).all(|(old, new)| Arc::ptr_eq(old, new))
    };
    if !kept.as_ref().is_some_and(same) {
        *kept = None;
    }
    kept.get_or_insert_with(|| {
        let mut last = setup.offers.0.lock().unwrap_or_else(PoisonError::into_inner);
        match last.as_ref().filter(|offer| same(offer)) {
            Some(offer) => offer.clone(),
            None => last.insert(Arc::new(make_offer(setup, &entries, state.cwd.clone()))).clone(),
        }
    })
}

fn make_offer(setup: &Setup, entries: &[Arc<Entry>], cwd: String) -> Offer {
    let spec = |entry: &Arc<Entry>| ToolSpec {
        name: entry.name().to_owned(),
        description: setup.secrets.redact(entry.tool.description(), Source::Speech).into_owned(),
        schema: entry.schema().clone(),
    };
    let tools: Arc<[ToolSpec]> = entries.iter().map(spec).collect();
    let mut facts = setup.prompt.clone();
    facts.cwd = cwd.clone();
    facts.tools = tools.iter().map(|tool| (tool.name.clone(), tool.description.clone())).collect();
    let system: Arc<[SystemSection]> = windlass_prompt::system(&facts)
        .into_iter()
        .map(|section| SystemSection {
            name: section.name.to_string(),
            text: setup.secrets.redact(&section.text, Source::Speech).into_owned(),
            fixed: section.fixed,
        })
        .collect();
    let mut blobs = vec![];
    let mut keep = |bytes: Vec<u8>| {
        let blob = blob_ref(&bytes);
        blobs.push((blob.clone(), Bytes::from(bytes)));
        blob
    };
    let section = |section: &SystemSection| (section.name.clone(), section.text.clone().into_bytes());
    let sections = system.iter().map(section).map(|(name, text)| Section { name, blob: keep(text) }).collect();
    let list: Vec<_> = tools.iter().map(as_json).collect();
    let tools_blob = keep(Value::from(list).to_string().into_bytes());
    let entries = entries.to_vec();
    Offer { cwd, entries, system, tools, sections, tools_blob, blobs }
}

fn as_json(tool: &ToolSpec) -> Value {
    serde_json::json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
}
