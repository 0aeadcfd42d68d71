//! What a request must look like: chooses a step (`when`) or is demanded by one (`expect`).

use crate::request::Request;
use regex::Regex;
use serde::de::{Deserializer, Visitor};
use std::fmt;

/// A regular expression, compiled as the script is read.
#[derive(Clone, Debug)]
pub struct Pattern(pub Regex);

impl<'de> serde::Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pattern, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Pattern;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a regular expression")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pattern, E> {
                let error = |e: regex::Error| {
                    // The last line is the reason; those before it draw an arrow.
                    let reason = e.to_string();
                    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    E::custom(format!("`{text}` is no regular expression: {reason}"))
                };
                Regex::new(text).map(Pattern).map_err(error)
            }
        }
        from.deserialize_str(Text)
    }
}

/// Every key that is given must hold.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    contains: Option<String>,
    absent: Option<String>,
    regex: Option<Pattern>,
    first_user: Option<Pattern>,
    last_user: Option<Pattern>,
    system: Option<Pattern>,
    tool_result: Option<Pattern>,
    tool_result_error: Option<bool>,
    model: Option<Pattern>,
    tools: Vec<String>,
    absent_tools: Vec<String>,
    round: Option<usize>,
}

impl Condition {
    /// Whether no key is given: it would hold for every request.
    pub fn is_empty(&self) -> bool {
        let Condition { contains, absent, regex, first_user, last_user, system, tool_result, model, .. } = self;
        let patterns = [regex, first_user, last_user, system, tool_result, model];
        contains.is_none()
            && absent.is_none()
            && patterns.iter().all(|pattern| pattern.is_none())
            && self.tool_result_error.is_none()
            && self.round.is_none()
            && self.tools.is_empty()
            && self.absent_tools.is_empty()
    }

    /// The first key that does not hold, in words; none if all do.
    pub fn unmet(&self, request: &Request) -> Option<String> {
        self.unmet_facts(request).or_else(|| self.unmet_patterns(request)).or_else(|| self.unmet_texts(request))
    }

    fn unmet_facts(&self, request: &Request) -> Option<String> {
        if let Some(round) = self.round.filter(|round| *round != request.round()) {
            return Some(format!("round = {round}: the request is of round {}", request.round()));
        }
        if let Some(tool) = self.tools.iter().find(|tool| !request.offers(tool)) {
            return Some(format!("tools: the request does not offer `{tool}`"));
        }
        if let Some(tool) = self.absent_tools.iter().find(|tool| request.offers(tool)) {
            return Some(format!("absent_tools: the request offers `{tool}`"));
        }
        let failed = self.tool_result_error.filter(|wanted| *wanted != request.newest_result_failed());
        failed.map(|wanted| match wanted {
            true => "tool_result_error = true: no newest tool result is an error".to_string(),
            false => format!("tool_result_error = false: a tool failed: {}", excerpt(&request.newest_results())),
        })
    }

    fn unmet_patterns(&self, request: &Request) -> Option<String> {
        let look = |key: &str, pattern: &Option<Pattern>, text: fn(&Request) -> String| {
            let Pattern(regex) = pattern.as_ref()?;
            let text = text(request);
            let unmet = || format!("{key} = '{regex}' matches nothing in: {}", excerpt(&text));
            (!regex.is_match(&text)).then(unmet)
        };
        look("model", &self.model, |request| request.model.as_deref().unwrap_or_default().to_string())
            .or_else(|| look("first_user", &self.first_user, |request| request.first_user_text()))
            .or_else(|| look("last_user", &self.last_user, |request| request.last_user_text()))
            .or_else(|| look("tool_result", &self.tool_result, |request| request.newest_results()))
            .or_else(|| look("system", &self.system, |request| request.system_text()))
    }

    fn unmet_texts(&self, request: &Request) -> Option<String> {
        if self.contains.is_none() && self.absent.is_none() && self.regex.is_none() {
            return None;
        }
        let text = request.all_text();
        if let Some(wanted) = self.contains.as_ref().filter(|wanted| !text.contains(*wanted)) {
            return Some(format!("contains = \"{wanted}\": it stands nowhere in the request"));
        }
        if let Some(unwanted) = self.absent.as_ref().filter(|unwanted| text.contains(*unwanted)) {
            return Some(format!("absent = \"{unwanted}\": it stands in the request"));
        }
        let regex = self.regex.as_ref().filter(|Pattern(regex)| !regex.is_match(&text));
        regex.map(|Pattern(regex)| format!("regex = '{regex}' matches nothing in the request"))
    }
}

/// The beginning of a text, for an error message.
pub fn excerpt(text: &str) -> String {
    const CHARS: usize = 200;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
