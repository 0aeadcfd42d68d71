//! Tools for models whose calls come out as text: the tools are described in the system prompt, calls are read out of
//! the answer, and the history is told in the same words.
//!
//! `retell` makes of a request one without tools; `find` reads text as it streams (`form` knows how calls are written,
//! `scan` where a JSON object ends); `answer` makes of a model's events those with calls.
//!
//! What is absent: no guess at calls in thinking, and none at names that were not offered. Between two calls blanks are
//! no text of their own.

mod answer;
mod find;
mod form;
mod retell;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use retell::Retold;

use crate::call_ids::CallIds;
use crate::{Model, ModelStream, Request};
use answer::Answer;
use futures_util::{StreamExt, future};
use retell::{offered, retell};
use std::sync::Arc;

/// `model` with tools told and called in text.
pub fn text_tools(model: Arc<dyn Model>) -> Arc<dyn Model> {
    Arc::new(TextTools { model })
}

struct TextTools {
    model: Arc<dyn Model>,
}

impl Model for TextTools {
    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> ModelStream {
        let ids = CallIds::behind(&request.memo.retold().calls, &request.messages);
        let mut answer = Answer::new(self.model.provider(), offered(&request), ids);
        let events = self.model.call(retell(request));
        let events = events.map(move |batch| batch.map(|events| answer.read(events)));
        // What only held text back tells nothing.
        events.filter(|batch| future::ready(!matches!(batch, Ok(events) if events.is_empty()))).boxed()
    }
}
