//! Failures of a call, told by what to do about them.

use crate::Auth;
use crate::endpoint::Target;
use crate::said::{Said, milliseconds, said, shortened};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::{Duration, SystemTime};
use windlass_kernel::{FailureKind, ModelFailure};

/// A shorter key is none of any vendor's, and would be cut out of innocent words.
const MIN_HIDDEN_KEY: usize = 8;

impl Target {
    /// The provider answered with a status that is no success.
    pub(crate) fn refused(&self, url: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ModelFailure {
        let said = said(body);
        let code = status.as_u16();
        let kind = said.kind(Some(code));
        let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
        let mut message = format!("{} answered {code}{reason}", self.endpoint.provider);
        if !said.message.is_empty() {
            message += &format!(": {}", said.message);
        }
        if let Some(way_out) = self.way_out(url, status, headers, kind) {
            message += &format!("; {way_out}");
        }
        let retry_after_ms = retry_after_ms(headers).or(said.retry_after_ms);
        ModelFailure { status: Some(code), retry_after_ms, ..self.failure(kind, message) }
    }

    fn way_out(&self, url: &str, status: StatusCode, headers: &HeaderMap, kind: FailureKind) -> Option<String> {
        let provider = &self.endpoint.provider;
        if status.is_redirection() {
            let to = headers.get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            return Some(format!("it sends on from {url} to {to}: give the right address with --base-url"));
        }
        let key = match self.endpoint.key_hint.as_str() {
            "" => format!("the API key of `{provider}`"),
            hint => format!("the key in {hint}"),
        };
        Some(match (kind, status.as_u16()) {
            (FailureKind::Auth, _) if matches!(self.endpoint.auth, Auth::None) => {
                format!("no key was given: set {key}, or check --base-url (asked {url})")
            }
            (FailureKind::Auth, _) => format!("check {key}, or --base-url (asked {url})"),
            (FailureKind::TooLong, _) => "the conversation must become shorter: compact it".into(),
            (FailureKind::Invalid, 404) => {
                format!("check the model's name `{}` and --base-url (asked {url})", self.model)
            }
            _ => return None,
        })
    }

    /// The provider reported an error in its stream.
    pub(crate) fn reported(&self, said: Said) -> ModelFailure {
        let words = if said.words.is_empty() { String::new() } else { format!("{}: ", said.words) };
        let message = format!("{} broke off its answer: {words}{}", self.endpoint.provider, said.message);
        let (status, retry_after_ms) = (said.status, said.retry_after_ms);
        ModelFailure { status, retry_after_ms, ..self.failure(said.kind(None), message) }
    }

    /// The answer is a success, but no stream.
    pub(crate) fn not_a_stream(&self, url: &str, content_type: &str, wanted: &str, body: &[u8]) -> ModelFailure {
        if content_type.contains("json") && !is_whole_answer(body) {
            let said = said(body);
            if !said.words.is_empty() || body.windows(7).any(|window| window == b"\"error\"") {
                return self.reported(said);
            }
        }
        let start: String = shortened(&String::from_utf8_lossy(body)).chars().take(200).collect();
        let message = format!(
            "{url} answered with `{content_type}` instead of `{wanted}`, so it is no streaming API of this \
             kind, or a proxy stands before it: check --base-url; it began with: {start}"
        );
        self.failure(FailureKind::Invalid, message)
    }

    /// The provider could not be reached, or its connection broke before it answered.
    pub(crate) fn unreachable(&self, url: &str, error: &reqwest::Error) -> ModelFailure {
        if error.is_connect() && error.is_timeout() {
            let waited = Duration::from_millis(self.http.clocks().connect_ms);
            return self.silent(url, "a connection", waited);
        }
        let cause = cause(error);
        let tls = chain(error).find_map(|error| error.downcast_ref::<rustls::Error>());
        // By an alert it is the other side that breaks off, as balancers do when they are restarted.
        if let Some(certificate) = tls.filter(|error| !matches!(error, rustls::Error::AlertReceived(_))) {
            let message = format!(
                "cannot trust {url}: {certificate}; check --base-url, the machine's clock and its root certificates"
            );
            return self.failure(FailureKind::Invalid, message);
        }
        let verb = if error.is_connect() { "reach" } else { "talk to" };
        self.failure(FailureKind::Transient, format!("cannot {verb} {url}: {cause}"))
    }

    /// Nothing came for as long as one waits.
    pub(crate) fn silent(&self, url: &str, what: &str, waited: Duration) -> ModelFailure {
        let message = format!("{url} stalled: {} ms passed without {what}", waited.as_millis());
        self.failure(FailureKind::Stalled, message)
    }

    /// The stream ended, or broke for `cause`, too early.
    pub(crate) fn cut(&self, url: &str, cause: Option<&reqwest::Error>) -> ModelFailure {
        let why = cause.map(|error| format!(": {}", self::cause(error))).unwrap_or_default();
        self.failure(FailureKind::Transient, format!("the stream ended before the message was whole ({url}){why}"))
    }

    /// An event of the stream makes no sense.
    pub(crate) fn unreadable(&self, url: &str, cause: &str) -> ModelFailure {
        self.failure(FailureKind::Transient, format!("the stream of {url} cannot be read: {cause}"))
    }

    pub(crate) fn invalid(&self, message: String) -> ModelFailure {
        self.failure(FailureKind::Invalid, message)
    }

    /// A failure whose message does not hold the key, even if the provider repeats it.
    fn failure(&self, kind: FailureKind, message: String) -> ModelFailure {
        let message = match &self.endpoint.auth {
            Auth::Key(key) if key.expose().len() >= MIN_HIDDEN_KEY => message.replace(key.expose(), "[key]"),
            // AWS repeats the signed headers, and the token among them, where a signature is wrong.
            Auth::Aws(keys) => {
                let secrets = [Some(&keys.secret_access_key), keys.session_token.as_ref()];
                let long = secrets.into_iter().flatten().filter(|secret| secret.len() >= MIN_HIDDEN_KEY);
                long.fold(message, |message, secret| message.replace(secret.as_str(), "[key]"))
            }
            _ => message,
        };
        ModelFailure { kind, message, status: None, retry_after_ms: None }
    }
}

/// Whether a body is the answer of a server that does not stream: it has words for its type and status, too.
fn is_whole_answer(body: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return false };
    let value = value.get(0).unwrap_or(&value);
    let holds = |name: &str| value.get(name).is_some_and(|part| !part.is_null());
    !holds("error") && ["content", "choices", "output", "candidates"].into_iter().any(holds)
}

/// The error and its causes, outermost first.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| inner(*error))
}

fn inner<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    // An I/O error made from another one hides it from `source`.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// The innermost cause: the one that says what happened.
pub(crate) fn cause(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// How long the provider asks to wait: by header in milliseconds, seconds or as a date. A date is compared with the
/// answer's own, or with the clock here where that has none.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let in_ms = ["retry-after-ms", "x-ms-retry-after-ms"].into_iter().find_map(text);
    if let Some(ms) = in_ms.and_then(|text| milliseconds(text, 1.0)) {
        return Some(ms);
    }
    let after = text("retry-after")?;
    milliseconds(after, 1_000.0).or_else(|| {
        let until = httpdate::parse_http_date(after).ok()?;
        let own = text("date").and_then(|date| httpdate::parse_http_date(date).ok());
        let now = own.unwrap_or_else(SystemTime::now);
        u64::try_from(until.duration_since(now).unwrap_or_default().as_millis()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::MAX_SAID_CHARS;
    use crate::{ApiKey, Endpoint, Http, HttpOptions};

    const URL: &str = "https://api.example.com/v1/messages";

    fn target(provider: &str, key: Option<&str>) -> Target {
        Target {
            http: Http::new(HttpOptions::default()).unwrap(),
            endpoint: Endpoint {
                provider: provider.into(),
                base_url: "https://api.example.com".into(),
                auth: key.map_or(Auth::None, |key| Auth::Key(ApiKey::new(key))),
                key_hint: key.map_or("", |_| "ANTHROPIC_API_KEY").into(),
                ..Endpoint::default()
            },
            model: "large-1".into(),
        }
    }

    fn refused(status: u16, body: &str) -> ModelFailure {
        let status = StatusCode::from_u16(status).unwrap();
        target("anthropic", Some("sk-12345678")).refused(URL, status, &HeaderMap::new(), body.as_bytes())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn statuses_are_told_by_reaction() {
        use FailureKind::*;
        let kinds = [
            (400, Invalid),
            (401, Auth),
            (402, Invalid),
            (403, Auth),
            (404, Invalid),
            (408, Transient),
            (409, Transient),
            (413, TooLong),
            (422, Invalid),
            (429, Overloaded),
            (500, Transient),
            (502, Transient),
            (503, Overloaded),
            (504, Transient),
            (529, Overloaded),
            (307, Invalid),
        ];
        for (status, kind) in kinds {
            let failure = refused(status, r#"{"error": {"message": "no"}}"#);
            assert_eq!((failure.kind, failure.status), (kind, Some(status)));
        }
    }

    #[test]
    fn a_prompt_that_is_too_long_is_known_by_any_vendors_words() {
        let bodies = [
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
            r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        ];
        for body in bodies {
            assert_eq!(refused(400, body).kind, FailureKind::TooLong, "{body}");
        }
    }

    #[test]
    fn messages_name_the_status_the_vendors_words_and_the_way_out() {
        let said =
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-12345678"}}"#;
        insta::assert_snapshot!(refused(401, said).message, @"anthropic answered 401 Unauthorized: invalid x-api-key [key]; check the key in ANTHROPIC_API_KEY, or --base-url (asked https://api.example.com/v1/messages)");
        insta::assert_snapshot!(refused(529, "").message, @"anthropic answered 529");
        let target = target("ollama", None);
        let refused = |status: u16, headers: &HeaderMap, body: &str| {
            target.refused(URL, StatusCode::from_u16(status).unwrap(), headers, body.as_bytes()).message
        };
        let none = HeaderMap::new();
        insta::assert_snapshot!(refused(404, &none, r#"{"error":"model 'large-1' not found"}"#), @"ollama answered 404 Not Found: model 'large-1' not found; check the model's name `large-1` and --base-url (asked https://api.example.com/v1/messages)");
        insta::assert_snapshot!(refused(401, &none, r#"{"detail":"Not authenticated"}"#), @"ollama answered 401 Unauthorized: Not authenticated; no key was given: set the API key of `ollama`, or check --base-url (asked https://api.example.com/v1/messages)");
        insta::assert_snapshot!(refused(308, &headers(&[("location", "https://elsewhere.example/")]), ""), @"ollama answered 308 Permanent Redirect; it sends on from https://api.example.com/v1/messages to https://elsewhere.example/: give the right address with --base-url");
        insta::assert_snapshot!(refused(502, &none, "<html>bad gateway</html>"), @"ollama answered 502 Bad Gateway: <html>bad gateway</html>");
        insta::assert_snapshot!(refused(422, &none, r#"{"detail":[{"loc":["body","model"],"msg":"field required"}]}"#), @r#"ollama answered 422 Unprocessable Entity: {"detail":[{"loc":["body","model"],"msg":"field required"}]}"#);
    }

    #[test]
    fn a_request_that_is_more_than_a_minute_may_bring_is_too_long() {
        let body = |message: &str| {
            format!(
                r#"{{"error":{{"message":"{message}","type":"tokens","param":null,"code":"rate_limit_exceeded"}}}}"#
            )
        };
        let over = body(
            "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.",
        );
        assert_eq!(refused(429, &over).kind, FailureKind::TooLong);
        let busy = body(
            "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 4500. Please try again in 7s.",
        );
        assert_eq!(
            (refused(429, &busy).kind, refused(429, &busy).retry_after_ms),
            (FailureKind::Overloaded, Some(7_000))
        );
    }

    #[test]
    fn what_is_barred_is_not_blamed_on_the_key() {
        let body = |message: &str| format!(r#"{{"error":{{"code":403,"message":"{message}"}}}}"#);
        let barred = [
            "Your chosen model requires moderation and your input was flagged for violence",
            "Country, region, or territory not supported",
            "The model is not available in your region",
            "This content is against our usage policy",
        ];
        for message in barred {
            let failure = refused(403, &body(message));
            assert_eq!(failure.kind, FailureKind::Invalid, "{message}");
            assert_eq!(failure.message, format!("anthropic answered 403 Forbidden: {message}"));
            assert_eq!(target("openrouter", None).reported(said(body(message).as_bytes())).kind, FailureKind::Invalid);
        }
        let rights = [
            "User: arn:aws:iam::1:user/a is not authorized to perform: bedrock:InvokeModel because no identity-based policy allows the action",
            "Credential should be scoped to a valid region.",
            "Permission denied",
        ];
        for message in rights {
            assert_eq!(refused(403, &body(message)).kind, FailureKind::Auth, "{message}");
        }
    }

    #[test]
    fn an_empty_account_is_not_waited_for() {
        let body = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        assert_eq!(refused(429, body).kind, FailureKind::Invalid);
        let body = r#"{"error":{"message":"Your account is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}"#;
        assert_eq!(refused(429, body).kind, FailureKind::Invalid);
    }

    #[test]
    fn a_wrong_key_is_known_by_its_words_where_the_status_does_not_tell() {
        let body = r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key elsewhere."}"#;
        assert_eq!(refused(400, body).kind, FailureKind::Auth);
    }

    #[test]
    fn errors_in_the_stream_are_told_by_their_words() {
        let kind = |body: &str| target("anthropic", None).reported(said(body.as_bytes())).kind;
        let error = |word: &str| format!(r#"{{"type":"error","error":{{"type":"{word}","message":"m"}}}}"#);
        assert_eq!(kind(&error("overloaded_error")), FailureKind::Overloaded);
        assert_eq!(kind(&error("rate_limit_error")), FailureKind::Overloaded);
        assert_eq!(kind(&error("api_error")), FailureKind::Transient);
        assert_eq!(kind(&error("authentication_error")), FailureKind::Auth);
        assert_eq!(kind(&error("invalid_request_error")), FailureKind::Invalid);
        assert_eq!(kind(&error("request_too_large")), FailureKind::TooLong);
        assert_eq!(kind(r#"{"error":{"code":503,"message":"no slot"}}"#), FailureKind::Overloaded);
        assert_eq!(kind(r#"{"error":{"type":"server_error","message":"m"}}"#), FailureKind::Transient);
        let openai = |code: &str| kind(&format!(r#"{{"type":"error","code":"{code}","message":"m","param":null}}"#));
        assert_eq!(openai("server_is_overloaded"), FailureKind::Overloaded);
        assert_eq!(openai("slow_down"), FailureKind::Overloaded);
        assert_eq!(openai("Throttling.RateQuota"), FailureKind::Overloaded);
        assert_eq!(openai("too_many_requests"), FailureKind::Overloaded);
        assert_eq!(openai("insufficient_quota"), FailureKind::Invalid);
        assert_eq!(openai("invalid_prompt"), FailureKind::Invalid);
        assert_eq!(openai("context_length_exceeded"), FailureKind::TooLong);
        assert_eq!(openai("server_error"), FailureKind::Transient);
    }

    #[test]
    fn googles_words_are_known() {
        let wrong_key = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}"#;
        assert_eq!(refused(400, wrong_key).kind, FailureKind::Auth);
        let busy = r#"[{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
        assert_eq!(
            (refused(429, busy).kind, refused(429, busy).retry_after_ms),
            (FailureKind::Overloaded, Some(34_500))
        );
        let kind = |word: &str| {
            let body = format!(r#"{{"error":{{"message":"m","status":"{word}"}}}}"#);
            target("google", None).reported(said(body.as_bytes())).kind
        };
        let words = ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNAUTHENTICATED"];
        use FailureKind::*;
        assert_eq!(words.map(kind), [Overloaded, Overloaded, Invalid, Auth, Auth]);
        let passing = ["DEADLINE_EXCEEDED", "INTERNAL", "MALFORMED_FUNCTION_CALL"];
        assert_eq!(passing.map(kind), [Transient; 3]);
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let ms = |pairs: &[(&'static str, &str)]| retry_after_ms(&headers(pairs));
        assert_eq!(ms(&[("retry-after", "7")]), Some(7_000));
        assert_eq!(ms(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(ms(&[("retry-after", "7"), ("retry-after-ms", "250")]), Some(250));
        let until = ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT");
        assert_eq!(ms(&[until, ("date", "Wed, 21 Oct 2026 07:28:00 GMT")]), Some(30_000));
        assert_eq!(ms(&[until, ("date", "Wed, 21 Oct 2026 07:29:00 GMT")]), Some(0));
        // Without the answer's own date the clock here counts, for which this one is long past.
        assert_eq!(ms(&[("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")]), Some(0));
        assert_eq!(ms(&[("retry-after", "soon")]), None);
        assert_eq!(ms(&[]), None);
    }

    #[test]
    fn the_innermost_cause_is_found_through_io_errors() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens");
        assert_eq!(cause(&io::Error::other(refused)), "nobody listens");
    }

    #[test]
    fn a_long_message_is_shortened() {
        let failure = refused(500, &"é".repeat(10_000));
        assert!(failure.message.chars().count() < MAX_SAID_CHARS + 100);
    }
}
