//! `windlass state ID`: what a log amounts to, now or as of any of its events.

use crate::desk::{self, Desk};
use crate::exit::{Code, Ended, Failure};
use crate::lines::caps_in_words;
use crate::terminal::{harmless, print, print_json, tell};
use crate::words;
use serde::Serialize;
use windlass_kernel::{Caps, QueryState, ReachedCap, Role, State};

/// The state as it is shown: its eight fields, and where there is something to say, with whom and whether it goes on.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    view: QueryState,
    /// The session's own model.
    #[serde(skip)]
    model: &'a str,
    /// The one that speaks in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    speaking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caps: Option<Caps>,
    /// The cap that the turn waits at.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<ReachedCap>,
}

pub async fn show(desk: &Desk, id: &str, at: Option<u64>, json: bool) -> Ended {
    let session = desk::find(&*desk.store, id).await?.session;
    let (records, damage) = desk.store.salvage(session).await;
    let last = records.last().map_or(0, |record| record.seq.0);
    let at = at.unwrap_or(last);
    if at == 0 || at > last {
        return Err(Failure::usage(format!("--at {at}: the log of session {session} has the events 1 to {last}")));
    }
    if let Some(damage) = &damage {
        tell(&format!("windlass: {damage}"));
    }
    let state = State::fold(records.iter().take_while(|record| record.seq.0 <= at));
    let shown = Shown {
        view: state.view(),
        model: &state.model,
        speaking: state.speaking.as_deref(),
        caps: Some(state.profile.caps).filter(|caps| *caps != Caps::default()),
        paused: state.paused(),
    };
    match json {
        true => print_json(&as_json(&shown)?),
        false => print(&readable(&shown)),
    }
    Ok(if damage.is_some() { Code::Store } else { Code::Done })
}

fn as_json(shown: &Shown<'_>) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(shown);
    let text =
        text.map_err(|error| Failure::new(Code::Failed, format!("the state can't be written as JSON: {error}")))?;
    Ok(text + "\n")
}

fn readable(shown: &Shown<'_>) -> String {
    let Shown { view, model, speaking, caps, paused } = shown;
    let by = |role: Role| view.messages.iter().filter(|message| message.role == role).count() as u64;
    let pending: Vec<String> = view
        .pending_tool_summary
        .iter()
        .map(|call| format!("{} ({}, {})", harmless(&call.name), call.id, call.phase))
        .collect();
    let tracking = &view.auto_compact_tracking;
    let speaks = match speaking {
        Some(other) => format!("{other}, in the place of {model}"),
        None => (*model).to_owned(),
    };
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    [
        format!("messages                        {} of the user, {} of the model", by(Role::User), by(Role::Assistant)),
        format!("turn_count                      {}", view.turn_count),
        format!(
            "auto_compact_tracking           {} tokens of context, boundary at message {}{}",
            words::grouped(tracking.context_tokens),
            tracking.boundary,
            if tracking.compacting { ", summing up" } else { "" }
        ),
        format!("pending_tool_summary            {}", or_none(pending.join(", "))),
        format!("stop_hook_active                {}", view.stop_hook_active),
        format!("max_output_recovery_count       {}", view.max_output_recovery_count),
        format!("has_attempted_reactive_compact  {}", view.has_attempted_reactive_compact),
        format!("transition_reason               {}", view.transition_reason.unwrap_or("none")),
        format!("model                           {}", harmless(&speaks)),
        format!("caps                            {}", or_none(caps.as_ref().map(caps_in_words).unwrap_or_default())),
        format!("paused                          {}\n", or_none(paused.map(|cap| cap.to_string()).unwrap_or_default())),
    ]
    .join("\n")
}
