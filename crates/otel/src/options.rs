//! Where telemetry goes, and how much of it.

use std::fmt;

/// How telemetry is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The collector's base address; `/v1/traces` and `/v1/metrics` are added to it.
    pub endpoint: String,
    /// Sent with every request: names and values.
    pub headers: Vec<(String, String)>,
    pub service_name: String,
    /// Further attributes of the resource: names and values.
    pub resource: Vec<(String, String)>,
    /// Prompts, answers, arguments and results go along; without, only names, counts and times.
    pub capture_content: bool,
    /// Milliseconds between two exports.
    pub export_every_ms: u64,
    /// Milliseconds an export may take.
    pub export_timeout_ms: u64,
    /// Spans that wait or are under way; what comes beyond that is dropped and counted.
    pub max_waiting_spans: usize,
    /// The proxy's address; none: no proxy, whatever the environment says.
    pub proxy: Option<String>,
}

/// Why telemetry cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error("telemetry can't go to `{0}`: give the collector's base address, like http://127.0.0.1:4318")]
    Endpoint(String),
    #[error("the header `{0}` can't be sent: its name or its value holds a character that no header may hold")]
    Header(String),
    #[error("the proxy for telemetry can't be used ({0}): give an address like http://127.0.0.1:3128")]
    Proxy(String),
    #[error("telemetry can't be sent: {0}; mend it, or take `otel.endpoint` away")]
    Client(String),
}

impl Default for Options {
    fn default() -> Options {
        Options {
            endpoint: "http://127.0.0.1:4318".into(),
            headers: vec![],
            service_name: "windlass".into(),
            resource: vec![],
            capture_content: false,
            export_every_ms: 5_000,
            export_timeout_ms: 10_000,
            max_waiting_spans: 4_096,
            proxy: None,
        }
    }
}

impl fmt::Debug for Options {
    /// Headers hold keys, and proxies passwords: their values are not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Options")
            .field("endpoint", &self.endpoint)
            .field("headers", &headers)
            .field("service_name", &self.service_name)
            .field("resource", &self.resource)
            .field("capture_content", &self.capture_content)
            .field("export_every_ms", &self.export_every_ms)
            .field("export_timeout_ms", &self.export_timeout_ms)
            .field("max_waiting_spans", &self.max_waiting_spans)
            .field("proxy", &self.proxy.is_some())
            .finish()
    }
}
