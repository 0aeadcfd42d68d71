//! What a request shows to be let in.

use crate::body::SegmentBody;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sigv4::{Letter, sign};
use crate::{ApiKey, Auth, AwsKeys};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use std::time::SystemTime;
use windlass_kernel::{FailureKind, ModelFailure};

/// Adds the key, or the signature over the rest of the request, to `headers`.
pub(crate) async fn authorize<P: Protocol>(
    target: &Target,
    url: &Url,
    body: &SegmentBody,
    headers: &mut HeaderMap,
) -> Result<(), ModelFailure> {
    let asked;
    let key: &ApiKey = match &target.endpoint.auth {
        Auth::None => return Ok(()),
        Auth::Aws(keys) => return signed(target, keys, url, body, headers),
        Auth::Key(key) => key,
        Auth::Source(source) => {
            let refused = |why: String| {
                let message = format!("no key for {}: {why}", target.endpoint.provider);
                ModelFailure { kind: FailureKind::Auth, message, status: None, retry_after_ms: None }
            };
            asked = (source.0)().await.map_err(refused)?;
            &asked
        }
    };
    let (name, value) = P::key_header(key.expose());
    let mut value = HeaderValue::try_from(value).map_err(|_| {
        target.invalid("the API key holds a character that no header may hold: check where it is set".into())
    })?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

fn signed(
    target: &Target,
    keys: &AwsKeys,
    url: &Url,
    body: &SegmentBody,
    headers: &mut HeaderMap,
) -> Result<(), ModelFailure> {
    let signature = sign(keys, &Letter { url, headers, body }, SystemTime::now());
    let signature = signature.map_err(|cause| {
        let id = &keys.access_key_id;
        target.invalid(format!("the request cannot be signed with the AWS key `{id}`: {cause}"))
    })?;
    headers.extend(signature);
    Ok(())
}
