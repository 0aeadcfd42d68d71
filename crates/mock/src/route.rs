//! Which protocol a path speaks, and what it says of the request.

/// The wire protocol a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAi,
    /// OpenAI Responses.
    Responses,
    Gemini,
    /// Anthropic Messages on Amazon Bedrock.
    Bedrock,
    /// Anthropic Messages on Google Vertex AI.
    Vertex,
}

impl Protocol {
    /// The protocol's word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Anthropic => "anthropic",
            Protocol::OpenAi => "openai",
            Protocol::Responses => "responses",
            Protocol::Gemini => "gemini",
            Protocol::Bedrock => "bedrock",
            Protocol::Vertex => "vertex",
        }
    }

    /// Whether requests and answers are Anthropic Messages, whoever serves them.
    pub fn is_messages(self) -> bool {
        matches!(self, Protocol::Anthropic | Protocol::Bedrock | Protocol::Vertex)
    }
}

/// A path that asks a model.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub protocol: Protocol,
    /// The model's name, where it stands in the path.
    pub model: Option<String>,
    /// Whether the answer streams; read only where the path names the model, else the body says it.
    pub stream: bool,
}

/// The route of a path, if it asks a model.
pub fn route(path: &str) -> Option<Route> {
    let path = path.trim_end_matches('/');
    let plain = [
        ("/messages", Protocol::Anthropic),
        ("/chat/completions", Protocol::OpenAi),
        ("/responses", Protocol::Responses),
    ];
    if let Some((_, protocol)) = plain.into_iter().find(|(end, _)| path.ends_with(end)) {
        return Some(Route { protocol, model: None, stream: false });
    }
    let (folder, last) = path.rsplit_once('/')?;
    let hosted = |protocol, model, stream| Some(Route { protocol, model: Some(decoded(model)), stream });
    if let Some((_, model)) = folder.split_once("/model/") {
        return match last {
            "invoke-with-response-stream" => hosted(Protocol::Bedrock, model, true),
            "invoke" => hosted(Protocol::Bedrock, model, false),
            _ => None,
        };
    }
    let (model, act) = last.rsplit_once(':')?;
    let claude = folder.ends_with("/publishers/anthropic/models");
    match act {
        "streamGenerateContent" if folder.ends_with("/models") => hosted(Protocol::Gemini, model, true),
        "generateContent" if folder.ends_with("/models") => hosted(Protocol::Gemini, model, false),
        "streamRawPredict" if claude => hosted(Protocol::Vertex, model, true),
        "rawPredict" if claude && model != "count-tokens" => hosted(Protocol::Vertex, model, false),
        _ => None,
    }
}

/// The value of a key of the query.
pub fn query<'q>(query: &'q str, key: &str) -> Option<&'q str> {
    query.split('&').filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// A segment of a path without its percent signs.
fn decoded(segment: &str) -> String {
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match hex.filter(|_| byte == b'%') {
            Some(value) => {
                out.push(value);
                rest = &tail[2..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_the_protocol_the_model_and_the_stream() {
        let said = |path| route(path).map(|r| format!("{} {:?} {}", r.protocol.as_str(), r.model, r.stream));
        let paths = [
            "/v1/messages",
            "/base/v1/chat/completions/",
            "/v1/responses",
            "/v1beta/models/gemini-x:streamGenerateContent",
            "/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
            "/model/us.anthropic.claude-x-v1%3A0/invoke-with-response-stream",
            "/model/arn:aws:bedrock:r:1:profile%2Fx/invoke",
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:streamRawPredict",
            "/publishers/anthropic/models/count-tokens:rawPredict",
            "/model/x/converse",
            "/v1/models",
        ];
        let all: Vec<String> = paths.iter().map(|path| said(path).unwrap_or_else(|| "none".into())).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        anthropic None false
        openai None false
        responses None false
        gemini Some("gemini-x") true
        gemini Some("g") false
        bedrock Some("us.anthropic.claude-x-v1:0") true
        bedrock Some("arn:aws:bedrock:r:1:profile/x") false
        vertex Some("claude-x@1") true
        none
        none
        none
        "#);
        assert_eq!((query("alt=sse&key=k", "key"), query("alt=sse", "key")), (Some("k"), None));
    }
}
