//! A request answered with an error, in the vendor's own shape.

use crate::request::Protocol;
use serde_json::{Value, json};

/// Why a request gets an error instead of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    /// The vendor's word for the error; none: the one that goes with the status.
    pub kind: Option<String>,
    /// OpenAI only.
    pub code: Option<String>,
    /// OpenAI only: the part of the request that is wrong.
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
            Protocol::Anthropic => json!({"type": "error", "error": self.error(protocol), "request_id": request_id}),
            Protocol::OpenAi => json!({"error": self.error(protocol)}),
        }
    }

    /// The error object alone, as it also stands in an SSE error event.
    pub fn error(&self, protocol: Protocol) -> Value {
        let kind = self.kind.as_deref().unwrap_or_else(|| default_kind(protocol, self.status));
        match protocol {
            Protocol::Anthropic => json!({"type": kind, "message": self.message}),
            Protocol::OpenAi => {
                let code = self.code.as_deref().or_else(|| default_code(self.status));
                json!({"message": self.message, "type": kind, "param": self.param, "code": code})
            }
        }
    }
}

fn default_kind(protocol: Protocol, status: u16) -> &'static str {
    match (protocol, status) {
        (Protocol::Anthropic, 401) => "authentication_error",
        (Protocol::Anthropic, 403) => "permission_error",
        (Protocol::Anthropic, 404) => "not_found_error",
        (Protocol::Anthropic, 413) => "request_too_large",
        (Protocol::Anthropic, 429) => "rate_limit_error",
        (Protocol::Anthropic, 504) => "timeout_error",
        (Protocol::Anthropic, 529) => "overloaded_error",
        (Protocol::Anthropic, 500..) => "api_error",
        (Protocol::OpenAi, 429) => "rate_limit_error",
        (Protocol::OpenAi, 500..) => "server_error",
        _ => "invalid_request_error",
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
