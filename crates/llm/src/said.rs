//! What a provider says went wrong, in any vendor's shape and words, and what that means.

use serde_json::Value;
use windlass_kernel::FailureKind;

/// The most of a provider's own message that is repeated, in characters.
pub(crate) const MAX_SAID_CHARS: usize = 2_000;

/// How the vendors say that a prompt is too long, in lower case.
const TOO_LONG: [&str; 10] = [
    "context_length_exceeded",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the available context size",
    "exceeds the context window",
    "input token count",
    "request_too_large",
];

/// How they name an account that is empty.
const EMPTY: [&str; 2] = ["insufficient_quota", "exceeded_current_quota"];

/// How OpenAI and Groq say that one request is more than a minute may bring: waiting does not help.
const OVER_A_MINUTE: [&str; 2] = ["request too large for", "tokens per min"];

/// How they bar words, places or uses, in lower case: another key of the same account would not be let in either.
const BARRED: [&str; 6] = ["moderation", "region", "country", "territory", "policy", "policies"];
/// What such words stand beside where it is the key's rights that are wanting: AWS names the policy that gives none.
const RIGHTS: [&str; 2] = ["not authorized to perform", "credential"];

/// How they say that a key is wrong, in lower case.
const WRONG_KEY: [&str; 3] = ["api_key_invalid", "api key not valid", "incorrect api key provided"];

/// How they name their overload, or ours, in lower case.
const OVERLOADED: [&str; 7] =
    ["overloaded", "rate_limit", "too_many_requests", "slow_down", "throttling", "unavailable", "resource_exhausted"];
/// How they name a key that is wrong or may not do what was asked.
const AUTH: [&str; 6] =
    ["authentication", "permission", "accessdenied", "unauthenticated", "unauthorized", "invalid_api_key"];
/// How they name an error of the request's own.
const INVALID: [&str; 12] = [
    "invalid_request",
    "invalid_prompt",
    "policy",
    "image",
    "not_found",
    "billing",
    "badrequest",
    "validationexception",
    "invalid_argument",
    "failed_precondition",
    "out_of_range",
    "missing_thought_signature",
];

/// What a provider says went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Its words for the kind of error, joined by spaces.
    pub words: String,
    pub message: String,
    /// The status it names in the body.
    pub status: Option<u16>,
    /// How long it asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Reads an error of any vendor's shape: `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`.
pub(crate) fn said(body: &[u8]) -> Said {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Said { message: shortened(&String::from_utf8_lossy(body)), ..Said::default() };
    };
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let words = ["type", "code", "status"].map(|name| error[name].as_str().unwrap_or_default());
    let words = words.into_iter().chain(reason_of_details(&error["details"]));
    let message = [error, &error["message"], &error["detail"], &value["message"]]
        .into_iter()
        .find_map(Value::as_str)
        .map_or_else(|| error.to_string(), str::to_owned);
    let status = [&error["code"], &error["status"]].into_iter().find_map(Value::as_u64);
    let retry_after_ms = wait_of_details(&error["details"]).or_else(|| wait_of_words(&message));
    Said {
        words: words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "),
        message: shortened(&message),
        status: status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status)),
        retry_after_ms,
    }
}

/// Google's `ErrorInfo`: `{"reason": "API_KEY_INVALID"}` among the details.
fn reason_of_details(details: &Value) -> Option<&str> {
    details.as_array()?.iter().find_map(|detail| detail["reason"].as_str())
}

/// Google's `RetryInfo`: `{"retryDelay": "34.5s"}` among the details.
fn wait_of_details(details: &Value) -> Option<u64> {
    let delay = details.as_array()?.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    milliseconds(delay.strip_suffix('s')?, 1_000.0)
}

/// OpenAI's and Groq's "Please try again in 1.2s", "in 20ms" or "in 1m26.4s".
fn wait_of_words(message: &str) -> Option<u64> {
    let (_, mut rest) = message.split_once("try again in ")?;
    let mut wait_ms = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, unit_ms) = UNITS.into_iter().find(|(unit, _)| behind.starts_with(unit))?;
        wait_ms = Some(milliseconds(number, unit_ms)?.saturating_add(wait_ms.unwrap_or(0)));
        rest = &behind[unit.len()..];
    }
    wait_ms
}

/// Units of time in milliseconds; `ms` before `m`, which it begins with.
const UNITS: [(&str, f64); 4] = [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0)];

pub(crate) fn milliseconds(number: &str, unit_ms: f64) -> Option<u64> {
    Some((number.parse::<f64>().ok()?.max(0.0) * unit_ms).ceil() as u64)
}

pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_SAID_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Said {
    pub(crate) fn kind(&self, status: Option<u16>) -> FailureKind {
        let text = format!("{} {}", self.words, self.message).to_lowercase();
        let says = |phrase: &&str| text.contains(*phrase);
        if TOO_LONG.iter().any(says) || OVER_A_MINUTE.iter().all(says) {
            return FailureKind::TooLong;
        }
        // Google and xAI answer 400 to a wrong key.
        if WRONG_KEY.iter().any(says) {
            return FailureKind::Auth;
        }
        // The account is empty: waiting does not fill it.
        if EMPTY.iter().any(|word| self.words.contains(word)) {
            return FailureKind::Invalid;
        }
        match status.or(self.status) {
            Some(403) if BARRED.iter().any(says) && !RIGHTS.iter().any(says) => FailureKind::Invalid,
            Some(status) => kind_of_status(status),
            None => kind_of_words(&self.words),
        }
    }
}

fn kind_of_status(status: u16) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        413 => FailureKind::TooLong,
        429 | 503 | 529 => FailureKind::Overloaded,
        // 424: Bedrock's model failed, not the request.
        408 | 409 | 424 | 500.. => FailureKind::Transient,
        _ => FailureKind::Invalid,
    }
}

/// The vendors do not agree on capitals. Words that are in no list, such as `INTERNAL` and `DEADLINE_EXCEEDED`, pass by.
fn kind_of_words(words: &str) -> FailureKind {
    let words = words.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if has(&OVERLOADED) {
        FailureKind::Overloaded
    } else if has(&AUTH) {
        FailureKind::Auth
    } else if has(&INVALID) {
        FailureKind::Invalid
    } else {
        FailureKind::Transient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_out_of_words() {
        let wait = |words: &str| wait_of_words(&format!("Rate limit reached. Please try again in {words}"));
        assert_eq!(
            ["1.2s. Visit", "20ms.", "6m0s.", "1m26.4s. Need more?", "1h0m3s"].map(wait),
            [Some(1_200), Some(20), Some(360_000), Some(86_400), Some(3_603_000)]
        );
        assert_eq!(["a few minutes", "5 apples", "3", ""].map(wait), [None; 4]);
    }
}
