//! AWS's Signature Version 4 over a request whose body lies in segments.

use crate::AwsKeys;
use crate::body::SegmentBody;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_v4};
use aws_sigv4::sign::v4::SigningParams;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::SystemTime;

/// The service's name in signatures.
const SERVICE: &str = "bedrock";

/// A POST as it will be sent.
pub(crate) struct Letter<'a> {
    pub url: &'a Url,
    pub headers: &'a HeaderMap,
    pub body: &'a SegmentBody,
}

/// The headers that sign `letter` for the minutes around `time`.
pub(crate) fn sign(
    keys: &AwsKeys,
    letter: &Letter<'_>,
    time: SystemTime,
) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let secret = keys.secret_access_key.clone();
    let identity = Credentials::new(&keys.access_key_id, secret, keys.session_token.clone(), None, "windlass").into();
    // The path is encoded once more for the signature, as all services but S3 want it.
    let params = SigningParams::builder()
        .identity(&identity)
        .region(&keys.region)
        .name(SERVICE)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let mut headers = Vec::with_capacity(letter.headers.len());
    for (name, value) in letter.headers {
        let value =
            value.to_str().map_err(|_| format!("the header `{name}` holds more than plain ASCII: change its value"))?;
        headers.push((name.as_str(), value));
    }
    let body = SignableBody::Precomputed(hash(letter.body));
    let request = SignableRequest::new("POST", letter.url.as_str(), headers.into_iter(), body);
    let signed = request.and_then(|request| sign_v4(request, &params)).map_err(|error| chain(&error))?;
    let (headers, _) = signed.into_parts().0.into_parts();
    let headers = headers.into_iter().map(|header| {
        let mut value = HeaderValue::try_from(header.value())
            .map_err(|_| format!("`{}` would hold a character that no header may hold", header.name()))?;
        value.set_sensitive(true);
        Ok((HeaderName::from_static(header.name()), value))
    });
    headers.collect()
}

/// The SHA-256 of the whole body, in hex; its segments are read where they lie.
fn hash(body: &SegmentBody) -> String {
    let mut hash = Sha256::new();
    body.segments().for_each(|segment| hash.update(segment));
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::Bedrock;
    use crate::body::Segments;
    use crate::post::address;
    use crate::protocol::Protocol;
    use crate::testing::target;
    use std::time::Duration;

    /// 2026-01-02 03:04:05 UTC.
    const TIME: Duration = Duration::from_secs(1_767_323_045);
    const SCOPE: &str = "Credential=AKIDEXAMPLE/20260102/eu-central-1/bedrock/aws4_request";

    fn signature(model: &str, token: Option<&str>, body: &[&'static [u8]]) -> HeaderMap {
        let keys = AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: token.map(str::to_owned),
            region: "eu-central-1".into(),
        };
        let mut target = target("bedrock");
        target.model = model.into();
        target.endpoint.base_url = "https://bedrock-runtime.eu-central-1.amazonaws.com".into();
        let url = address(&target, &target.endpoint.base_url, &Bedrock::path(&target)).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("application/vnd.amazon.eventstream"));
        let mut segments = Segments::default();
        body.iter().for_each(|piece| segments.share(&bytes::Bytes::from_static(piece)));
        let letter = Letter { url: &url, headers: &headers, body: &segments.into_body() };
        sign(&keys, &letter, SystemTime::UNIX_EPOCH + TIME).unwrap().into_iter().collect()
    }

    /// The signatures below are botocore's (1.44), which shares no code with this crate: with its clock held at `TIME`,
    /// `SigV4Auth(Credentials(id, secret, token), "bedrock", "eu-central-1").add_auth(request)`, where the request is
    /// `AWSRequest("POST", host + "/model/" + quote(model, safe="") + "/invoke-with-response-stream", headers, body)`.
    #[test]
    fn signatures_are_those_of_another_signer() {
        let is_signed = |model: &str, wanted: &str| {
            let headers = signature(model, None, &[br#"{"max_tokens":1}"#]);
            assert_eq!(headers["x-amz-date"], "20260102T030405Z");
            let signed = "SignedHeaders=accept;content-type;host;x-amz-date";
            assert_eq!(headers["authorization"], format!("AWS4-HMAC-SHA256 {SCOPE}, {signed}, Signature={wanted}"));
            assert!(headers["authorization"].is_sensitive());
        };
        is_signed("anthropic.claude-sonnet-5", "0f544f065cfe751e73a0b00f18fec273760e49f26aee85608a8c6c60b13d8f71");
        is_signed(
            "global.anthropic.claude-haiku-4-5-20251001-v1:0",
            "d83431f5a31bdfe925402309aa35e103ce6824e211fe76e63b7d5fd4639e018b",
        );
        is_signed(
            "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-5",
            "7557ca2c785f520cda80f6f9ea5df32b03d4bbcaf0412c79b70d1d9ff55aa62a",
        );
    }

    #[test]
    fn a_session_token_is_sent_and_signed() {
        let headers = signature("anthropic.claude-sonnet-5", Some("session/token+="), &[br#"{"max_tokens":1}"#]);
        let signed = "SignedHeaders=accept;content-type;host;x-amz-date;x-amz-security-token";
        let wanted = "1ff015a91ce63a158d0e8cdae1e3e8100e17cfa7b3a872c05e41ff6cdb4d9f25";
        assert_eq!(headers["authorization"], format!("AWS4-HMAC-SHA256 {SCOPE}, {signed}, Signature={wanted}"));
        assert_eq!(headers["x-amz-security-token"], "session/token+=");
        assert!(headers["x-amz-security-token"].is_sensitive());
    }

    #[test]
    fn a_body_in_segments_is_signed_as_one() {
        let headers = signature("anthropic.claude-sonnet-5", None, &[&[b'a'; 5_000], &[b'b'; 5_000]]);
        let signature = headers["authorization"].to_str().unwrap().rsplit('=').next().unwrap();
        assert_eq!(signature, "1dab37921675fdbaecd85963a3bd024344a8a2b3bd01ac1ea978731fae85fe81");
    }
}
