//! What an answer quotes of its request: a regular expression's first group over a part of the request.

use crate::condition::{Pattern, excerpt};
use crate::request::Request;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer, value::StrDeserializer};
use std::fmt;

#[derive(Clone, Debug)]
pub struct Capture {
    pub regex: Pattern,
    pub from: Source,
}

/// The part of the request that is looked through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The tool results that answer the model's last message.
    #[default]
    Newest,
    /// All tool results, oldest first.
    Results,
    /// The last text of a person.
    User,
    FirstUser,
    System,
    /// Every text of the request, oldest first.
    All,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    regex: Pattern,
    #[serde(default)]
    from: Source,
}

impl<'de> serde::Deserialize<'de> for Capture {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Capture, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Capture;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a regular expression or { regex = \"…\", from = \"…\" }")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Capture, E> {
                let regex = <Pattern as serde::Deserialize>::deserialize(StrDeserializer::new(text))?;
                with_group(Capture { regex, from: Source::Newest })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Capture, A::Error> {
                let Table { regex, from } = serde::Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                with_group(Capture { regex, from })
            }
        }
        from.deserialize_any(Either)
    }
}

fn with_group<E: serde::de::Error>(capture: Capture) -> Result<Capture, E> {
    match capture.regex.0.captures_len() {
        1 => Err(E::custom(format!("`{}` captures nothing: put the wanted part in (…)", capture.regex.0))),
        _ => Ok(capture),
    }
}

impl Capture {
    /// The first group's text, or why there is none.
    pub fn take(&self, name: &str, request: &Request) -> Result<String, String> {
        let (text, place) = match self.from {
            Source::Newest => (request.newest_results(), "the newest tool results"),
            Source::Results => (request.all_results(), "the tool results"),
            Source::User => (request.last_user_text(), "the last user text"),
            Source::FirstUser => (request.first_user_text(), "the first user text"),
            Source::System => (request.system_text(), "the system prompt"),
            Source::All => (request.all_text(), "the request"),
        };
        let found = self.regex.0.captures(&text).and_then(|captures| captures.get(1));
        let regex = &self.regex.0;
        found
            .map(|found| found.as_str().to_string())
            .ok_or_else(|| format!("capture `{name}` = '{regex}' matches nothing in {place}: {}", excerpt(&text)))
    }
}
