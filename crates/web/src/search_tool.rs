//! `web_search`: what there is on the web.

use crate::backend::MAX_RESULTS;
use crate::search::{Found, Search};
use crate::tool::FROM_OUTSIDE;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_kernel::{Access, CallPlan, OnCrash};
use windlass_tools::{Tool, ToolOutput, ToolRun, Workspace};

pub(crate) const NAME: &str = "web_search";
/// Results where the call says nothing.
const USUAL_RESULTS: usize = 8;
/// Characters of a snippet.
const SNIPPET_CHARS: usize = 500;
/// Milliseconds a call has beyond the search's own, so that the search says itself what took too long.
const GRACE_MS: u64 = 1_000;

/// Searches the web for a model.
pub struct WebSearch(pub Search);

#[derive(Deserialize)]
struct Args {
    query: String,
    max_results: Option<usize>,
}

#[async_trait]
impl Tool for WebSearch {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Search the web. Gives titles, addresses and snippets; web_fetch reads what is at an address."
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in a few words.", "minLength": 1, "maxLength": 400},
                "max_results": {
                    "type": "integer",
                    "description": "How many results; 8 if not given.",
                    "minimum": 1,
                    "maximum": MAX_RESULTS,
                },
            },
            "required": ["query"],
        })
    }

    fn plan(&self, _: &Value, _: &Workspace) -> CallPlan {
        CallPlan { access: Access::Read, paths: vec![], tags: vec!["net".into()], on_crash: OnCrash::Repeat }
    }

    fn normalise(&self, mut input: Value) -> Value {
        if let Some(fields) = input.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        input
    }

    fn timeout_ms(&self) -> u64 {
        self.0.total_ms + GRACE_MS
    }

    /// What is configured is the search's own limit.
    fn limit_ms(&self, _: &Value, _: Option<u64>) -> u64 {
        self.timeout_ms()
    }

    async fn call(&self, input: Value, run: &ToolRun) -> ToolOutput {
        let args = match Args::deserialize(&input) {
            Ok(args) => args,
            Err(error) => return ToolOutput::error(format!("wrong arguments: {error}")),
        };
        let found = tokio::select! {
            found = self.0.search(&args.query, args.max_results.unwrap_or(USUAL_RESULTS)) => found,
            () = run.cancel.cancelled() => return ToolOutput::error("nothing was searched"),
        };
        match found {
            Ok(found) => {
                ToolOutput { value: Some(json!({"results": found})), ..ToolOutput::text(told(&args.query, &found)) }
            }
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

fn told(query: &str, found: &[Found]) -> String {
    if found.is_empty() {
        return format!("nothing was found for `{query}`; try other words");
    }
    let rows = found.iter().zip(1..).map(|(one, number)| {
        let snippet: String = one.snippet.chars().take(SNIPPET_CHARS).collect();
        format!("{number}. {}\n   {}\n   {snippet}\n", one.title, one.url)
    });
    format!("{FROM_OUTSIDE}\n\n{}", rows.collect::<String>())
}
