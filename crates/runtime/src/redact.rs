//! What an event says, without the secrets in it: the walk over every text that a record may hold.
//!
//! Left as they are: names, ids, hashes and paths; pictures and documents; what a provider wants back unchanged (signed
//! thinking, native blocks, signatures).

use bytes::Bytes;
use windlass_kernel::*;
use windlass_store::blob_ref;
use windlass_tools::{Secrets, Source};

/// Puts marks in the place of secrets in `event` and in those of `blobs` that it names as text. The match is whole on
/// purpose: who adds an event decides what of it is looked at.
pub(crate) fn redact(secrets: &Secrets, event: &mut Event, blobs: &mut [(BlobRef, Bytes)]) {
    let speech = |text: &mut String| secrets.redact_string(text, Source::Speech);
    let output = |text: &mut String| secrets.redact_string(text, Source::Output);
    match event {
        Event::Prompted(prompted) => prompt(secrets, prompted, blobs),
        Event::CompactionAsked { instructions } => instructions.iter_mut().for_each(speech),
        Event::Noted { text, .. } | Event::StopBlocked { text, .. } => output(text),
        Event::BlockFinished { block: said, .. } => block(secrets, said, Source::Speech),
        Event::ModelFailed { error, .. } => output(&mut error.message),
        Event::Judged(judged) => {
            secrets.redact_string(&mut judged.reason, Source::Question);
            judged.input.iter_mut().for_each(|input| secrets.redact_value(input, Source::Speech));
            judged.context.iter_mut().for_each(output);
            judged.review.iter_mut().for_each(|review| output(&mut review.reason));
        }
        Event::HookRan(ran) => {
            output(&mut ran.message);
            output(&mut ran.printed);
            secrets.redact_string(&mut ran.hook, Source::Question);
        }
        Event::Asked { question, .. } => ask(secrets, question),
        Event::Answered(answered) => answer(secrets, answered),
        Event::ToolFinished(finished) => {
            finished.blocks.iter_mut().for_each(|said| block(secrets, said, Source::Output));
            finished.value.iter_mut().for_each(|value| secrets.redact_value(value, Source::Output));
            finished.output.iter_mut().for_each(|whole| blob(secrets, whole, blobs, Source::Output));
        }
        Event::Compacted { summary, .. } => speech(summary),
        Event::CompactionFailed { message, error, .. } => {
            output(message);
            error.iter_mut().for_each(|error| output(&mut error.message));
        }
        // Made of what stands in the log already.
        Event::Began { .. } => {}
        Event::TurnFinished { end, .. } => match end {
            End::ModelError { message: text } | End::InvalidAnswer { problem: text } => output(text),
            _ => {}
        },
        Event::Opened { .. } | Event::Reopened { .. } | Event::Configured(_) | Event::ToolsChanged { .. } => {}
        Event::Cleared { .. } | Event::Interrupted { .. } | Event::DeadlinePassed => {}
        Event::ModelCalled(_) | Event::CacheBroke(_) | Event::SpendingSeen { .. } => {}
        Event::ModelFinished { .. } | Event::ModelCancelled { .. } | Event::ToolStarted(_) => {}
    }
}

fn prompt(secrets: &Secrets, prompted: &mut Prompted, blobs: &mut [(BlobRef, Bytes)]) {
    let Prompted { blocks, context, intent, constraints, data, .. } = prompted;
    blocks.iter_mut().for_each(|said| block(secrets, said, Source::Speech));
    let texts = context.iter_mut().chain(intent).chain(constraints);
    texts.for_each(|text| secrets.redact_string(text, Source::Speech));
    if let Some(data) = data {
        secrets.redact_value(&mut data.schema, Source::Speech);
        blob(secrets, &mut data.blob, blobs, Source::Speech);
    }
}

fn block(secrets: &Secrets, block: &mut ContentBlock, source: Source) {
    match block {
        ContentBlock::Text { text } | ContentBlock::Thinking { thinking: text, signature: None, .. } => {
            secrets.redact_string(text, source);
        }
        ContentBlock::ToolUse(tool_use) => secrets.redact_value(&mut tool_use.input, source),
        ContentBlock::ToolResult(result) => {
            result.content.iter_mut().for_each(|inner| self::block(secrets, inner, source));
        }
        ContentBlock::Document { title, .. } => {
            title.iter_mut().for_each(|title| secrets.redact_string(title, source));
        }
        ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => {}
        ContentBlock::Image { .. } | ContentBlock::Native { .. } => {}
    }
}

fn ask(secrets: &Secrets, question: &mut Question) {
    let texts = [&mut question.preview, &mut question.impact, &mut question.reason].into_iter();
    let parts = question.parts.iter_mut().flat_map(|part| [&mut part.part, &mut part.reason]);
    let texts =
        texts.chain(parts).chain(&mut question.proposed).chain(&mut question.covers).chain(&mut question.options);
    texts.for_each(|text| secrets.redact_string(text, Source::Question));
}

fn answer(secrets: &Secrets, answered: &mut Answered) {
    let Answered { decision, rule, more_rules, changed, .. } = answered;
    match decision {
        Decision::Deny { note: text } | Decision::Words { text } => secrets.redact_string(text, Source::Speech),
        Decision::Allow => {}
    }
    rule.iter_mut().chain(more_rules).for_each(|rule| secrets.redact_string(rule, Source::Question));
    changed.iter_mut().for_each(|changed| secrets.redact_value(&mut changed.input, Source::Speech));
}

/// A text beside the log: it gets another name with its other bytes.
fn blob(secrets: &Secrets, reference: &mut BlobRef, blobs: &mut [(BlobRef, Bytes)], source: Source) {
    let Some((name, bytes)) = blobs.iter_mut().find(|(name, _)| name == reference) else { return };
    if let std::borrow::Cow::Owned(clean) = secrets.redact_bytes(bytes, source) {
        *name = blob_ref(&clean);
        *bytes = Bytes::from(clean);
        *reference = name.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_tools::Wish;

    const KEY: &str = "Xy7-provider-key-0042";
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    fn secrets() -> Secrets {
        Secrets::new(Wish { values: vec![("MODEL_KEY".into(), KEY.into())], ..Wish::default() })
    }

    fn redacted(mut event: Event, blobs: &mut [(BlobRef, Bytes)]) -> String {
        redact(&secrets(), &mut event, blobs);
        serde_json::to_string(&event).unwrap()
    }

    fn finished(blocks: Vec<ContentBlock>, output: Option<BlobRef>) -> Event {
        let value = Some(json!({"lines": [format!("{KEY} {TOKEN}")], TOKEN: 1}));
        Event::ToolFinished(Box::new(ToolFinished {
            work: Seq(3),
            call: "call_1".into(),
            outcome: Outcome::Ok,
            blocks,
            value,
            output,
            files: vec![],
            aborts_siblings: false,
            took_ms: 1,
        }))
    }

    #[test]
    fn a_result_its_value_and_its_blob_hold_no_secret() {
        let bytes = Bytes::from(format!("all of it: {TOKEN}"));
        let picture = Bytes::from_static(b"\x89PNG ghp_0123456789abcdefghijABCDEFGHIJ012345");
        let (whole, shown) = (blob_ref(&bytes), blob_ref(&picture));
        let mut blobs = [(whole.clone(), bytes), (shown.clone(), picture.clone())];
        let image = ContentBlock::Image { media_type: "image/png".into(), blob: shown.clone() };
        let blocks = vec![ContentBlock::text(format!("a {KEY} b {TOKEN} c")), image];
        let text = redacted(finished(blocks, Some(whole.clone())), &mut blobs);
        assert!(text.contains("a [redacted: MODEL_KEY] b [redacted: github token] c"), "{text}");
        assert!(!text.contains(KEY) && !text.contains(TOKEN) && !text.contains(&whole.hash), "{text}");
        assert_eq!(blobs[0].0, blob_ref(b"all of it: [redacted: github token]"));
        assert!(text.contains(&blobs[0].0.hash), "{text}");
        assert_eq!(blobs[1], (shown, picture), "media are left as they are");
    }

    #[test]
    fn a_models_words_and_arguments_lose_known_keys_and_keep_what_only_looks_like_one() {
        let tool_use = ToolUse {
            id: "c".into(),
            name: "bash".into(),
            input: json!({"command": format!("{KEY} {TOKEN}")}),
            signature: None,
        };
        let event =
            Event::BlockFinished { work: Seq(3), index: 0, block: ContentBlock::ToolUse(tool_use), partial: false };
        let text = redacted(event, &mut []);
        assert!(text.contains(&format!("[redacted: MODEL_KEY] {TOKEN}")), "{text}");
    }

    #[test]
    fn what_a_provider_wants_back_unchanged_is_left() {
        let signed = ContentBlock::Thinking { thinking: KEY.into(), signature: Some(KEY.into()), by: None };
        let native = ContentBlock::Native { provider: "p".into(), value: json!({"encrypted_content": KEY}) };
        for block in [signed, native] {
            let event = Event::BlockFinished { work: Seq(3), index: 0, block, partial: false };
            assert_eq!(redacted(event.clone(), &mut []), serde_json::to_string(&event).unwrap());
        }
    }

    #[test]
    fn failures_and_questions_hold_no_secret_and_hide_no_command() {
        let message = format!("401 for {TOKEN}: {KEY}");
        let error = ModelFailure { kind: FailureKind::Auth, message, status: None, retry_after_ms: None };
        let text = redacted(Event::ModelFailed { work: Seq(3), error, spent: Spent::default() }, &mut []);
        assert!(text.contains("401 for [redacted: github token]: [redacted: MODEL_KEY]"), "{text}");

        let preview = format!("echo {TOKEN}\n-----BEGIN PRIVATE KEY-----\nrm -rf x\n-----END PRIVATE KEY-----");
        let question = Question {
            hash: "h".into(),
            kind: QuestionKind::Approval,
            preview,
            proposed: vec![format!("bash(echo {KEY})")],
            ..Question::default()
        };
        let text = redacted(Event::Asked { call: "c".into(), question: Box::new(question) }, &mut []);
        assert!(text.contains("echo [redacted: github token]") && text.contains("rm -rf x"), "{text}");
        assert!(text.contains("bash(echo [redacted: MODEL_KEY])"), "{text}");
    }
}
