//! How hard a Gemini model is to think: by a level in its newer generations, by a budget in 2.5.

use crate::effort::{effort_of, word};
use crate::endpoint::Target;
use serde_json::{Value, json};
use windlass_kernel::{Effort, Parameters};

/// The first version that thinks by levels, signs its calls and takes media in tools' results.
const NEWER: (u32, u32) = (3, 0);
/// The version that thinks by a budget.
const BUDGETED: (u32, u32) = (2, 5);
/// The levels that every newer model takes.
const LEVELS: [&str; 3] = ["low", "medium", "high"];

/// What a request says of thinking.
#[derive(Default)]
pub(super) struct Thinking {
    pub config: Option<Value>,
    /// Tokens of the answer's limit that go to thinking, where that is known.
    budget: u32,
}

impl Thinking {
    pub(super) fn of(target: &Target, parameters: &Parameters) -> Thinking {
        let known = target.endpoint.efforts.as_deref().filter(|words| !words.is_empty());
        if known.is_some() || is_newer(&target.model) {
            return by_level(parameters, known);
        }
        match Range::of(&target.model) {
            Some(range) => by_budget(parameters, range),
            None => as_asked(parameters),
        }
    }

    /// The limit of the answer: the budget is part of it; where that leaves no room, it is the answer's part alone.
    pub(super) fn limit(&self, max_tokens: u32) -> u32 {
        if max_tokens <= self.budget { max_tokens.saturating_add(self.budget) } else { max_tokens }
    }
}

/// Whether the model is of the third generation or a later one.
pub(super) fn is_newer(model: &str) -> bool {
    version(model).is_some_and(|version| version >= NEWER)
}

/// The version in a model's name, such as `gemini-2.5-flash`; names without one stand for the newest.
fn version(model: &str) -> Option<(u32, u32)> {
    let rest = bare(model).strip_prefix("gemini-")?;
    let number = rest.split('-').next().unwrap_or(rest);
    if rest.ends_with("-latest") && !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(NEWER);
    }
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The name without the folder it lives in.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// Newer models always think; the least they can is their lowest level.
fn by_level(parameters: &Parameters, known: Option<&[String]>) -> Thinking {
    let every = LEVELS.map(str::to_owned);
    let level = effort_of(parameters).and_then(|effort| word(effort, Some(known.unwrap_or(&every))));
    let mut config = json!({ "includeThoughts": true });
    if let Some(level) = level {
        config["thinkingLevel"] = level.to_uppercase().into();
    }
    Thinking { config: Some(config), budget: 0 }
}

/// The budgets that a model takes, in tokens.
struct Range {
    /// What stands for no thinking at all.
    off: u32,
    least: u32,
    most: u32,
    /// Whether it thinks without being told to.
    thinks: bool,
}

impl Range {
    /// None if the model is not known to think by a budget.
    fn of(model: &str) -> Option<Range> {
        let name = bare(model);
        let speaks_only = !["-image", "-tts", "-audio"].iter().any(|kind| name.contains(kind));
        if version(model) != Some(BUDGETED) || !speaks_only {
            return None;
        }
        Some(match name {
            name if name.contains("-pro") => Range { off: 128, least: 128, most: 32_768, thinks: true },
            name if name.contains("-lite") => Range { off: 0, least: 512, most: 24_576, thinks: false },
            _ => Range { off: 0, least: 1, most: 24_576, thinks: true },
        })
    }

    fn fit(&self, tokens: u32) -> u32 {
        if tokens == 0 { self.off } else { tokens.clamp(self.least, self.most) }
    }
}

fn by_budget(parameters: &Parameters, range: Range) -> Thinking {
    let asked = parameters.thinking_tokens.or(parameters.effort.map(tokens_of));
    let Some(budget) = asked.map(|tokens| range.fit(tokens)) else {
        return Thinking { config: range.thinks.then(|| json!({ "includeThoughts": true })), budget: 0 };
    };
    // To ask for the thoughts of a model that does not think is an error.
    let config = match budget {
        0 => json!({ "thinkingBudget": 0 }),
        _ => json!({ "includeThoughts": true, "thinkingBudget": budget }),
    };
    Thinking { config: Some(config), budget }
}

/// The budget that an effort stands for.
fn tokens_of(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 24_576,
        Effort::Max => 32_768,
    }
}

/// A model of which nothing is known is told what was asked, and nothing where nothing was.
fn as_asked(parameters: &Parameters) -> Thinking {
    match (parameters.effort, parameters.thinking_tokens) {
        (_, Some(0)) | (Some(Effort::None), None) => by_budget_of(0),
        (_, Some(tokens)) => by_budget_of(tokens),
        (Some(effort), None) => {
            let level = word(effort, None).map(str::to_uppercase);
            Thinking { config: Some(json!({ "includeThoughts": true, "thinkingLevel": level })), budget: 0 }
        }
        (None, None) => Thinking::default(),
    }
}

fn by_budget_of(tokens: u32) -> Thinking {
    let parameters = Parameters { thinking_tokens: Some(tokens), ..Parameters::default() };
    by_budget(&parameters, Range { off: 0, least: 1, most: u32::MAX, thinks: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::target;

    fn told(model: &str, effort: Option<Effort>, thinking_tokens: Option<u32>) -> String {
        let target = Target { model: model.into(), ..target("google") };
        let parameters = Parameters { effort, thinking_tokens, ..Parameters::default() };
        Thinking::of(&target, &parameters).config.map_or("nothing".into(), |config| config.to_string())
    }

    #[test]
    fn names_tell_the_version() {
        let names = ["gemini-2.5-pro", "models/gemini-3.8-flash", "gemini-4-argon", "gemini-flash-latest"];
        assert_eq!(names.map(version), [Some((2, 5)), Some((3, 8)), Some((4, 0)), Some((3, 0))]);
        let others = ["gemini-1.5-pro-latest", "gemini-robotics-er-1.5-preview", "gemma-3-27b-it"];
        assert_eq!(others.map(version), [Some((1, 5)), None, None]);
    }

    #[test]
    fn newer_models_are_told_a_level() {
        let lines: Vec<String> = [
            (None, None),
            (Some(Effort::None), None),
            (Some(Effort::Medium), Some(0)),
            (Some(Effort::Max), None),
            (None, Some(1_000)),
            (None, Some(32_000)),
        ]
        .map(|(effort, tokens)| told("gemini-3.8-flash", effort, tokens))
        .into();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"includeThoughts":true}
        {"includeThoughts":true,"thinkingLevel":"LOW"}
        {"includeThoughts":true,"thinkingLevel":"MEDIUM"}
        {"includeThoughts":true,"thinkingLevel":"HIGH"}
        {"includeThoughts":true,"thinkingLevel":"LOW"}
        {"includeThoughts":true,"thinkingLevel":"HIGH"}
        "#);
        let mut lite = Target { model: "gemini-3.1-flash-lite".into(), ..target("google") };
        lite.endpoint.efforts = Some(["minimal", "low", "medium", "high"].map(str::to_owned).into());
        let least = Parameters { effort: Some(Effort::None), ..Parameters::default() };
        assert_eq!(Thinking::of(&lite, &least).config.unwrap()["thinkingLevel"], "MINIMAL");
    }

    #[test]
    fn older_models_are_told_a_budget_that_they_take() {
        let asked =
            [(None, None), (Some(Effort::None), None), (Some(Effort::Max), None), (Some(Effort::Low), Some(100))];
        let line = |model: &str| asked.map(|(effort, tokens)| told(model, effort, tokens)).join(" ");
        let models = ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-flash-image"];
        insta::assert_snapshot!(models.map(line).join("\n"), @r#"
        {"includeThoughts":true} {"includeThoughts":true,"thinkingBudget":128} {"includeThoughts":true,"thinkingBudget":32768} {"includeThoughts":true,"thinkingBudget":128}
        {"includeThoughts":true} {"thinkingBudget":0} {"includeThoughts":true,"thinkingBudget":24576} {"includeThoughts":true,"thinkingBudget":100}
        nothing {"thinkingBudget":0} {"includeThoughts":true,"thinkingBudget":24576} {"includeThoughts":true,"thinkingBudget":512}
        nothing {"thinkingBudget":0} {"includeThoughts":true,"thinkingLevel":"MAX"} {"includeThoughts":true,"thinkingBudget":100}
        "#);
        assert_eq!(told("gemini-2.0-flash", None, Some(0)), r#"{"thinkingBudget":0}"#);
    }

    #[test]
    fn the_answer_keeps_its_room_beside_the_budget() {
        let target = Target { model: "gemini-2.5-flash".into(), ..target("google") };
        let parameters = Parameters { thinking_tokens: Some(2_000), ..Parameters::default() };
        let thinking = Thinking::of(&target, &parameters);
        assert_eq!([1_000, 2_000, 2_001].map(|limit| thinking.limit(limit)), [3_000, 4_000, 2_001]);
    }
}
