//! `ask_user`: a question of the model to the person; the answer is the result.

use crate::args::{normalise, parse};
use crate::{Confirm, Confirmation, Tool, ToolOutput, ToolRun, Workspace, schema};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use windlass_kernel::{Access, CallPlan, OnCrash, QuestionKind};

pub(crate) struct AskUser;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The question, with what a person needs to know to answer it.
    question: String,
    /// Answers to choose from; the person may give another.
    options: Option<Vec<String>>,
}

#[async_trait]
impl Tool for AskUser {
    fn name(&self) -> &str {
        "ask_user"
    }

    fn description(&self) -> &str {
        "Ask the person a question and wait for the answer. Only for what you cannot find out and must not guess."
    }

    fn schema(&self) -> Value {
        schema::of::<Args>()
    }

    fn plan(&self, _input: &Value, _workspace: &Workspace) -> CallPlan {
        CallPlan { access: Access::Read, paths: Vec::new(), tags: vec!["ask".into()], on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, input: Value) -> Value {
        normalise(input, &[])
    }

    /// The answer is the result: without one there is nothing to run.
    fn confirm(&self, _: &Value) -> Confirm {
        Confirm::Always
    }

    fn confirmation(&self, input: &Value, _workspace: &Workspace) -> Option<Confirmation> {
        let Args { question, options } = parse(input).ok()?;
        Some(Confirmation {
            kind: QuestionKind::Words,
            preview: question,
            impact: String::new(),
            options: options.unwrap_or_default(),
        })
    }

    /// The answer to the confirmation is the result; who gets here let the call run without asking.
    async fn call(&self, _input: Value, _run: &ToolRun) -> ToolOutput {
        ToolOutput::error("nobody answered; go on with what is known, and say what was assumed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Stage;
    use serde_json::json;

    #[tokio::test]
    async fn s4_11_the_question_is_what_the_person_sees_whatever_the_mode() {
        let mut stage = Stage::new();
        let input = json!({"question": "Which port?", "options": ["80", "8080"]});
        let asked = AskUser.confirmation(&input, &stage.workspace).unwrap();
        assert_eq!((asked.kind, AskUser.confirm(&input)), (QuestionKind::Words, Confirm::Always));
        assert_eq!((asked.preview.as_str(), asked.options.len()), ("Which port?", 2));
        assert!(stage.error(AskUser, input).await.starts_with("nobody answered"));
    }
}
