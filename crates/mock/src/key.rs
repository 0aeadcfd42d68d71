//! The key a request must bring: looked for as the vendor does, before anything else.

use crate::refusal::Refusal;
use crate::respond::Asked;
use crate::route::{self, Protocol};
use crate::script::Key;

/// Hexadecimal digits of a signature.
const SIGNATURE_DIGITS: usize = 64;

/// Refuses a request without the headers that its protocol wants.
pub fn admit(key: &Key, protocol: Protocol, asked: &Asked) -> Result<(), Refusal> {
    let text = |name: &str| asked.headers.get(name).and_then(|value| value.to_str().ok());
    if protocol == Protocol::Anthropic && !asked.headers.contains_key("anthropic-version") {
        return Err(Refusal::invalid("anthropic-version: header is required"));
    }
    if *key == Key::None {
        return Ok(());
    }
    let signed = text("authorization").and_then(|value| value.strip_prefix("AWS4-HMAC-SHA256 "));
    let own = match protocol {
        Protocol::Anthropic => text("x-api-key"),
        Protocol::Gemini => text("x-goog-api-key").or_else(|| route::query(asked.query, "key")),
        Protocol::Bedrock => signed.map(|signed| access_key(signed, text("x-amz-date"))).transpose()?,
        Protocol::OpenAi | Protocol::Responses | Protocol::Vertex => None,
    };
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let given = own.or(bearer).filter(|given| !given.is_empty()).ok_or_else(|| missing(protocol))?;
    match key {
        Key::Exactly(key) if key != given => Err(wrong(protocol)),
        _ => Ok(()),
    }
}

/// The access key's id of a signed request; the signature itself is for those to check who know the secret.
fn access_key<'r>(signed: &'r str, date: Option<&str>) -> Result<&'r str, Refusal> {
    let part = |name: &str| signed.split(", ").find_map(|part| part.trim().strip_prefix(name)).unwrap_or_default();
    let incomplete = |what: &str| Refusal {
        kind: Some("IncompleteSignatureException".into()),
        ..Refusal::new(403, format!("Authorization {what}"))
    };
    let scope: Vec<&str> = part("Credential=").split('/').collect();
    let [id, day, region, "bedrock", "aws4_request"] = scope[..] else {
        return Err(incomplete("must have Credential=KEY/DAY/REGION/bedrock/aws4_request."));
    };
    if id.is_empty() || region.is_empty() {
        return Err(incomplete("has a Credential without a key or a region."));
    }
    if !part("SignedHeaders=").split(';').any(|header| header == "host") {
        return Err(incomplete("must sign the header `host` (SignedHeaders)."));
    }
    let signature = part("Signature=");
    if signature.len() != SIGNATURE_DIGITS || !signature.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(incomplete("requires a Signature of 64 hexadecimal digits."));
    }
    match date {
        Some(date) if date.starts_with(day) && !day.is_empty() => Ok(id),
        _ => Err(incomplete("requires an x-amz-date header of the Credential's day.")),
    }
}

fn missing(protocol: Protocol) -> Refusal {
    match protocol {
        Protocol::Anthropic => Refusal::new(401, "x-api-key header is required"),
        Protocol::OpenAi | Protocol::Responses => {
            Refusal::new(401, "You didn't provide an API key. Send it as: Authorization: Bearer YOUR_KEY.")
        }
        Protocol::Gemini => {
            Refusal::new(403, "Method doesn't allow unregistered callers. Send a key as x-goog-api-key.")
        }
        Protocol::Bedrock => {
            let kind = Some("MissingAuthenticationTokenException".into());
            Refusal { kind, ..Refusal::new(403, "Missing Authentication Token") }
        }
        Protocol::Vertex => {
            Refusal::new(401, "Request is missing required authentication credential: Authorization: Bearer TOKEN.")
        }
    }
}

fn wrong(protocol: Protocol) -> Refusal {
    match protocol {
        Protocol::Anthropic => Refusal::new(401, "invalid x-api-key"),
        Protocol::OpenAi | Protocol::Responses => Refusal::new(401, "Incorrect API key provided."),
        Protocol::Gemini => Refusal::new(400, "API key not valid. Please pass a valid API key."),
        Protocol::Bedrock => {
            let kind = Some("UnrecognizedClientException".into());
            Refusal { kind, ..Refusal::new(403, "The security token included in the request is invalid.") }
        }
        Protocol::Vertex => Refusal::new(401, "Request had invalid authentication credentials."),
    }
}
