//! A request answered with an error, in the vendor's own shape.

use crate::route::Protocol;
use serde_json::{Value, json};

/// Why a request gets an error instead of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    /// The vendor's word for the error; none: the one that goes with the status.
    pub kind: Option<String>,
    /// OpenAI's protocols only.
    pub code: Option<String>,
    /// OpenAI's protocols only: the part of the request that is wrong.
    pub param: Option<String>,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), kind: None, code: None, param: None }
    }

    /// A request the vendor would not take.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(400, message)
    }

    pub fn with_param(mut self, param: impl Into<String>) -> Refusal {
        self.param = Some(param.into());
        self
    }

    /// The error's body.
    pub fn body(&self, protocol: Protocol, request_id: &str) -> Value {
        match protocol {
            Protocol::Vertex if self.is_hosts() => json!({"error": self.google()}),
            Protocol::Anthropic | Protocol::Vertex => {
                json!({"type": "error", "error": self.event(Protocol::Anthropic), "request_id": request_id})
            }
            Protocol::OpenAi | Protocol::Responses => json!({"error": self.event(protocol)}),
            Protocol::Gemini => json!({"error": self.google()}),
            Protocol::Bedrock => json!({"message": self.message}),
        }
    }

    /// The word of Bedrock's header that names the error.
    pub fn exception(&self) -> &str {
        self.word(exception)
    }

    /// The vendor's word for the error: Anthropic's words are put in its own, any other goes out as it is.
    fn word(&self, own: fn(u16) -> &'static str) -> &str {
        match self.kind.as_deref() {
            None => own(self.status),
            Some(kind) => status(kind).map_or(kind, own),
        }
    }

    /// The error object alone, as it also stands in a stream.
    pub fn event(&self, protocol: Protocol) -> Value {
        let kind = self.kind.as_deref().unwrap_or_else(|| default_kind(protocol, self.status));
        match protocol {
            Protocol::Anthropic | Protocol::Vertex => json!({"type": kind, "message": self.message}),
            Protocol::OpenAi | Protocol::Responses => {
                let code = self.code.as_deref().or_else(|| default_code(self.status));
                json!({"message": self.message, "type": kind, "param": self.param, "code": code})
            }
            Protocol::Gemini => self.google(),
            Protocol::Bedrock => {
                // In a stream the exceptions' names begin with a small letter.
                let word = self.exception();
                let (first, rest) = word.split_at(word.ceil_char_boundary(1));
                json!({"type": first.to_lowercase() + rest, "message": self.message})
            }
        }
    }

    /// On Vertex, errors that are answered before the model's own server sees the request.
    fn is_hosts(&self) -> bool {
        matches!(self.status, 401 | 403 | 404 | 429)
    }

    fn google(&self) -> Value {
        // Google has no 529.
        let code = if self.status == 529 { 503 } else { self.status };
        json!({"code": code, "message": self.message, "status": self.word(google_status)})
    }
}

fn default_kind(protocol: Protocol, status: u16) -> &'static str {
    match (protocol, status) {
        (Protocol::OpenAi | Protocol::Responses, 429) => "rate_limit_error",
        (Protocol::OpenAi | Protocol::Responses, 500..) => "server_error",
        (Protocol::OpenAi | Protocol::Responses, _) => "invalid_request_error",
        (_, 401) => "authentication_error",
        (_, 403) => "permission_error",
        (_, 404) => "not_found_error",
        (_, 413) => "request_too_large",
        (_, 429) => "rate_limit_error",
        (_, 504) => "timeout_error",
        (_, 529) => "overloaded_error",
        (_, 500..) => "api_error",
        _ => "invalid_request_error",
    }
}

/// The status that goes with Anthropic's word for an error.
fn status(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

fn google_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

fn exception(status: u16) -> &'static str {
    match status {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 | 529 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    }
}

fn default_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        404 => Some("not_found"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    }
}
