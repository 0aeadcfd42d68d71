//! What a request shows to be let in.

use crate::body::SegmentBody;
use crate::endpoint::Target;
use crate::protocol::Protocol;
use crate::sigv4::{Letter, sign};
use crate::{ApiKey, Auth, AwsKeys, Endpoint, KeySource};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use windlass_kernel::{FailureKind, ModelFailure};

/// How long a source may take to give a key.
const KEY_TIMEOUT: Duration = Duration::from_secs(60);

/// The target with the key that holds now, where one has to be asked for: only a key that is known can be kept out of
/// messages.
pub(crate) async fn with_key(target: Arc<Target>) -> Result<Arc<Target>, ModelFailure> {
    let Auth::Source(source) = &target.endpoint.auth else { return Ok(target) };
    let auth = Auth::Key(ask(&target, source).await?);
    let endpoint = Endpoint { auth, ..target.endpoint.clone() };
    Ok(Arc::new(Target { http: target.http.clone(), endpoint, model: target.model.clone() }))
}

async fn ask(target: &Target, source: &KeySource) -> Result<ApiKey, ModelFailure> {
    let given = match timeout(KEY_TIMEOUT, (source.0)()).await {
        Ok(given) => given,
        Err(_) => Err(format!("its source gave none within {} s", KEY_TIMEOUT.as_secs())),
    };
    given.map_err(|why| {
        let message = format!("no key for {}: {why}", target.endpoint.provider);
        ModelFailure { kind: FailureKind::Auth, message, status: None, retry_after_ms: None }
    })
}

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
            asked = ask(target, source).await?;
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
