//! The Messages API behind Bedrock and Vertex.

use super::tests::{GOLDEN, HIDDEN, stream};
use super::{Bedrock, Messages, Vertex, multi_region};
use crate::eventstream::tests::{chunk, exception};
use crate::post::address;
use crate::protocol::Protocol;
use crate::testing::*;
use crate::{Auth, AwsKeys, ModelEvent, Quirk, Request};
use http::{HeaderMap, StatusCode};
use windlass_kernel::{ContentBlock, Effort, FailureKind, Message, Parameters};

fn frames(events: &[&str]) -> Vec<u8> {
    events.iter().flat_map(|event| chunk(event)).collect()
}

#[test]
fn the_same_events_tell_the_same_story_in_frames() {
    let last =
        r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":50}}"#;
    let events: Vec<&str> = HIDDEN[..HIDDEN.len() - 1].iter().copied().chain([last]).collect();
    assert_eq!(story::<Bedrock>(frames(&events)), story::<Messages>(stream(HIDDEN)));
    assert_eq!(story::<Vertex>(stream(HIDDEN)), story::<Messages>(stream(HIDDEN)));
    let whole = |batches: Result<Vec<Vec<ModelEvent>>, String>| tell(&merged(batches.unwrap()));
    let framed = whole(decode::<Bedrock>(&[&frames(GOLDEN)]));
    assert_eq!(framed, whole(decode::<Messages>(&[stream(GOLDEN).as_bytes()])));
}

#[test]
fn a_stream_of_frames_that_ends_early_is_cut() {
    let bytes = frames(GOLDEN);
    assert_eq!(decode::<Bedrock>(&[&bytes[..bytes.len() / 2]]).unwrap_err(), "cut");
}

#[test]
fn exceptions_end_the_stream_with_what_to_do_about_them() {
    let failure = |word: &str, payload: &str| {
        let bytes = [chunk(GOLDEN[0]), exception(word, payload)].concat();
        let (mut frames, target) = (<Bedrock as Protocol>::Frames::default(), target("bedrock"));
        let mut decoder = Bedrock::decoder(&target, &request(vec![]));
        crate::frames::Frames::push(&mut frames, &bytes);
        loop {
            let event = crate::frames::Frames::next(&mut frames).unwrap().expect("an exception");
            match crate::protocol::Decode::event(&mut decoder, &event) {
                Ok(()) => {}
                Err(crate::protocol::Unreadable::Reported(said)) => return target.reported(said),
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    let kind = |word: &str| failure(word, r#"{"message":"m"}"#).kind;
    assert_eq!(kind("throttlingException"), FailureKind::Overloaded);
    assert_eq!(kind("serviceUnavailableException"), FailureKind::Overloaded);
    assert_eq!(kind("accessDeniedException"), FailureKind::Auth);
    assert_eq!(kind("internalServerException"), FailureKind::Transient);
    assert_eq!(kind("modelTimeoutException"), FailureKind::Transient);
    assert_eq!(kind("modelStreamErrorException"), FailureKind::Transient);
    assert_eq!(kind("validationException"), FailureKind::Invalid);
    let long = failure("validationException", r#"{"message":"Input is too long for requested model."}"#);
    assert_eq!(long.kind, FailureKind::TooLong);
    insta::assert_snapshot!(long.message, @"bedrock broke off its answer: validationException: Input is too long for requested model.");
    let inner = r#"{"message":"The model failed.","originalStatusCode":503,"originalMessage":"No room."}"#;
    let inner = failure("modelStreamErrorException", inner);
    assert_eq!((inner.kind, inner.status), (FailureKind::Overloaded, Some(503)));
    insta::assert_snapshot!(inner.message, @"bedrock broke off its answer: modelStreamErrorException: No room.");
    assert_eq!(failure("internalServerException", "no JSON").message.rsplit(": ").next(), Some("no JSON"));
}

#[test]
fn what_aws_repeats_of_a_request_is_not_shown() {
    let mut target = target("bedrock");
    let (access_key_id, region) = ("AKIDEXAMPLE".into(), "eu-central-1".into());
    let (secret_access_key, session_token) = ("a-secret-key".into(), Some("a-session-token".into()));
    target.endpoint.auth = Auth::Aws(AwsKeys { access_key_id, secret_access_key, session_token, region });
    let body = br#"{"message":"The canonical string should have been x-amz-security-token:a-session-token"}"#;
    let failure = target.refused("https://x/", StatusCode::FORBIDDEN, &HeaderMap::new(), body);
    assert_eq!(failure.kind, FailureKind::Auth);
    insta::assert_snapshot!(failure.message, @"bedrock answered 403 Forbidden: The canonical string should have been x-amz-security-token:[key]; check the API key of `bedrock`, or --base-url (asked https://x/)");
}

#[test]
fn the_model_stands_in_the_path() {
    let paths = |name: &str| {
        let mut target = target("any");
        target.model = name.into();
        format!("{} {}", Bedrock::path(&target), Vertex::path(&target))
    };
    insta::assert_snapshot!(paths("anthropic.claude-haiku-4-5-20251001-v1:0"), @"/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream /publishers/anthropic/models/anthropic.claude-haiku-4-5-20251001-v1%3A0:streamRawPredict");
    insta::assert_snapshot!(paths("claude-sonnet-5@default"), @"/model/claude-sonnet-5%40default/invoke-with-response-stream /publishers/anthropic/models/claude-sonnet-5@default:streamRawPredict");
    insta::assert_snapshot!(paths("arn:aws:bedrock:eu-west-1:1:inference-profile/x y"), @"/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx%20y/invoke-with-response-stream /publishers/anthropic/models/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx%20y:streamRawPredict");
    let mut target = target("vertex");
    target.endpoint.base_url = "https://x/v1/projects/p/locations/global/publishers/anthropic/".into();
    insta::assert_snapshot!(address(&target, &target.endpoint.base_url, &Vertex::path(&target)).unwrap(), @"https://x/v1/projects/p/locations/global/publishers/anthropic/models/large-1:streamRawPredict");
}

#[test]
fn names_for_several_regions_have_hosts_of_their_own() {
    let host =
        |region: &str| multi_region(&format!("https://{region}-aiplatform.googleapis.com/v1/locations/{region}"));
    assert_eq!(host("europe-west1"), "https://europe-west1-aiplatform.googleapis.com/v1/locations/europe-west1");
    assert_eq!(host("global"), "https://aiplatform.googleapis.com/v1/locations/global");
    assert_eq!(host("us"), "https://aiplatform.us.rep.googleapis.com/v1/locations/us");
    assert_eq!(host("eu"), "https://aiplatform.eu.rep.googleapis.com/v1/locations/eu");
}

/// The body's fields before the conversation.
fn opening<P: Protocol>(quirks: &[Quirk], headers: &[(&str, &str)]) -> String {
    let mut target = target("cloud");
    target.endpoint.quirks = quirks.to_vec();
    target.endpoint.headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let parameters = Parameters { max_tokens: 9, effort: Some(Effort::Low), ..Parameters::default() };
    let request = Request { parameters, ..request(vec![Message::user(vec![ContentBlock::text("Hi")])]) };
    let sent = P::encode(&target, &request).into_body().json().to_string();
    sent.split_once(",\"system\"").unwrap().0.to_owned()
}

#[test]
fn the_body_says_the_version_and_not_the_model() {
    insta::assert_snapshot!(opening::<Bedrock>(&[], &[]), @r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":9"#);
    insta::assert_snapshot!(opening::<Vertex>(&[], &[]), @r#"{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9"#);
    let trial = [("anthropic-beta", "one,two")];
    insta::assert_snapshot!(opening::<Bedrock>(&[Quirk::AdaptiveThinking, Quirk::BoundThinking], &trial), @r#"{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one","two","thinking-binding-controls-2026-08-01"],"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"low"}"#);
    insta::assert_snapshot!(opening::<Vertex>(&[Quirk::AdaptiveThinking], &trial), @r#"{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}"#);
    assert_eq!(Bedrock::quirk_header(&target("bedrock")), None);
}

#[test]
fn keys_to_the_clouds_are_bearers() {
    assert_eq!(Bedrock::key_header("k"), ("authorization", "Bearer k".to_owned()));
    assert_eq!(Vertex::key_header("k"), ("authorization", "Bearer k".to_owned()));
}

#[test]
fn many_frames_of_one_read_are_one_delta() {
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#;
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let events: Vec<&str> = [GOLDEN[0], begin].into_iter().chain([delta; 500]).collect();
    let end = frames(&[r#"{"type":"content_block_stop","index":0}"#, GOLDEN[22], GOLDEN[23]]);
    let batches = decode::<Bedrock>(&[&frames(&events), &end]).unwrap();
    assert_eq!(batches[0].len(), 3);
    assert!(matches!(batches[1][0], ModelEvent::BlockFinished { index: 0, .. }));
}
