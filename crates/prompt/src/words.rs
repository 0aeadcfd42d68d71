//! The languages the built-in prompts are written in.

use crate::{chinese, english};
use serde::{Deserialize, Serialize};

/// The language of the built-in prompts; the model answers in the language it is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Locale {
    #[default]
    En,
    Zh,
}

/// Every built-in text of the system prompt, in one language.
pub(crate) struct Words {
    pub role: &'static str,
    pub behaviour: &'static str,
    pub tools: &'static str,
    pub no_tools: &'static str,
    pub data: &'static str,
    pub output_title: &'static str,
    pub output: &'static str,
    pub markdown: &'static str,
    pub json: &'static str,
    pub prose: &'static str,
    pub project: &'static str,
    pub cut: &'static str,
    pub context_title: &'static str,
    pub cwd: &'static str,
    pub platform: &'static str,
    pub date: &'static str,
    pub git: &'static str,
    pub nobody: &'static str,
}

impl Locale {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Locale::En => &english::WORDS,
            Locale::Zh => &chinese::WORDS,
        }
    }
}
