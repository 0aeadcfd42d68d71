//! `windlass sessions`: what there is to go on with.

use crate::clock;
use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{one_line, print, print_json};
use windlass_store::{SessionFilter, SessionInfo};

pub async fn list(desk: &Desk, all: bool, json: bool) -> Ended {
    let cwd = desk.folder.display().to_string();
    let filter = SessionFilter { cwd: (!all).then(|| cwd.clone()), limit: None };
    let sessions = desk.store.sessions(filter).await?;
    if json {
        let text = serde_json::to_string_pretty(&sessions)
            .map_err(|error| Failure::new(Code::Failed, format!("the sessions can't be written as JSON: {error}")))?;
        print_json(&format!("{text}\n"));
        return Ok(Code::Done);
    }
    if sessions.is_empty() {
        let hint = if all { "" } else { "; --all lists those of other folders" };
        let place = if all { String::new() } else { format!(" in {cwd}") };
        print(&format!("no sessions{place} yet{hint}\n"));
    }
    let lines: Vec<String> = sessions.iter().map(|session| line(session, all)).collect();
    print(&lines.concat());
    Ok(Code::Done)
}

fn line(session: &SessionInfo, all: bool) -> String {
    let held = session.held_by.map(|pid| format!("  (open in process {pid})")).unwrap_or_default();
    let place = if all { format!("  {}", one_line(&session.cwd, 60)) } else { String::new() };
    let (at, title) = (clock::minute(session.updated_at), one_line(&session.title, 60));
    format!("{}  {at}  {:>6} events{place}  {title}{held}\n", session.session, session.events)
}
