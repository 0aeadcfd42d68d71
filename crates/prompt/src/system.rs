//! The system prompt: named sections in order, the fixed ones before the dynamic ones.

use crate::clip::clip;
use crate::words::{Locale, Words};

/// Bytes of one project file that enter the prompt.
pub const PROJECT_BYTES: usize = 32 * 1024;
/// Bytes of the git snapshot that enter the prompt.
pub const GIT_BYTES: usize = 4 * 1024;
/// Bytes of a tool's description in the tool guide; the whole of it goes with the tool's schema.
const DESCRIPTION_BYTES: usize = 160;

/// What the system prompt is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The agent's own prompt; stands before everything else.
    pub agent_prompt: Option<String>,
    /// Said instead of our own role and behaviour.
    pub system_prompt: Option<String>,
    /// Added at the very end; replaces nothing.
    pub append: Option<String>,
    pub style: OutputStyle,
    /// Name and description of the tools offered, in any order.
    pub tools: Vec<(String, String)>,
    pub project: Vec<ProjectFile>,
    pub cwd: String,
    pub platform: String,
    /// The day, as `2026-04-21`: with no finer time the dynamic part changes once a day at most.
    pub date: String,
    pub git: Option<String>,
    /// Whether there is a person who could be asked.
    pub interactive: bool,
    pub locale: Locale,
}

/// The form answers are to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputStyle {
    #[default]
    Markdown,
    Json,
    Prose,
    /// In the words of whoever set it.
    Custom(String),
}

/// A file in which a project says how work is done there (`AGENTS.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    pub path: String,
    pub text: String,
}

/// One named part of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: &'static str,
    pub text: String,
    /// Before the dynamic boundary: the same bytes over the whole session, so that a provider may cache it.
    pub fixed: bool,
}

/// The system prompt for `facts`. Its text is the sections' texts joined by a blank line; no section is empty.
pub fn system(facts: &Facts) -> Vec<Section> {
    let words = facts.locale.words();
    let own = |text: &str| facts.system_prompt.is_none().then(|| text.to_string());
    let fixed = [
        ("agent", facts.agent_prompt.clone()),
        ("role", own(words.role).or_else(|| facts.system_prompt.clone())),
        ("behaviour", own(words.behaviour)),
        ("tools", Some(tools(facts, words))),
        ("data", Some(words.data.into())),
        ("output", Some(output(facts, words))),
        ("project", project(facts, words)),
    ];
    let dynamic = [("context", Some(context(facts, words))), ("append", facts.append.clone())];
    let section = |fixed: bool| {
        move |(name, text): (&'static str, Option<String>)| {
            let text = text?.trim().to_string();
            (!text.is_empty()).then_some(Section { name, text, fixed })
        }
    };
    fixed.into_iter().filter_map(section(true)).chain(dynamic.into_iter().filter_map(section(false))).collect()
}

fn tools(facts: &Facts, words: &Words) -> String {
    if facts.tools.is_empty() {
        return words.no_tools.into();
    }
    let mut tools: Vec<_> = facts.tools.iter().collect();
    tools.sort();
    let line = |(name, description): &(String, String)| format!("\n- `{name}`: {}", headline(description));
    let lines: String = tools.into_iter().map(line).collect();
    format!("{}{lines}", words.tools)
}

/// The first sentence of a description.
fn headline(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    let end = line.find(". ").map(|at| at + 1).or_else(|| line.find('。').map(|at| at + '。'.len_utf8()));
    let (text, cut) = clip(&line[..end.unwrap_or(line.len())], DESCRIPTION_BYTES);
    if cut { format!("{text}…") } else { text.into() }
}

fn output(facts: &Facts, words: &Words) -> String {
    let style = match &facts.style {
        OutputStyle::Markdown => words.markdown,
        OutputStyle::Json => words.json,
        OutputStyle::Prose => words.prose,
        OutputStyle::Custom(text) => text.trim(),
    };
    format!("{}\n{}\n{style}", words.output_title, words.output)
}

fn project(facts: &Facts, words: &Words) -> Option<String> {
    let files: String =
        facts.project.iter().filter(|file| !file.text.trim().is_empty()).map(|file| quoted(file, words)).collect();
    (!files.is_empty()).then(|| format!("{}{files}", words.project))
}

/// A project file between tags that its own text cannot close.
fn quoted(file: &ProjectFile, words: &Words) -> String {
    let (text, cut) = clip(file.text.trim(), PROJECT_BYTES);
    let text = text.replace("</projectFile", "<\\/projectFile");
    let path = file.path.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let rest = if cut { format!("\n{}", words.cut) } else { String::new() };
    format!("\n\n<projectFile path=\"{path}\">\n{text}{rest}\n</projectFile>")
}

fn context(facts: &Facts, words: &Words) -> String {
    let mut text = words.context_title.to_string();
    for (label, value) in [(words.cwd, &facts.cwd), (words.platform, &facts.platform), (words.date, &facts.date)] {
        if !value.is_empty() {
            text.push_str(&format!("\n- {label}: {value}"));
        }
    }
    if let Some(git) = facts.git.as_deref().map(str::trim).filter(|git| !git.is_empty()) {
        let (git, cut) = clip(git, GIT_BYTES);
        let rest = if cut { "\n…" } else { "" };
        text.push_str(&format!("\n- {}:\n{git}{rest}", words.git));
    }
    if !facts.interactive {
        text.push_str(&format!("\n\n{}", words.nobody));
    }
    text
}
