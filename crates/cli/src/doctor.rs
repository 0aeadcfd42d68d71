//! `windlass doctor`: what is there, what is missing, and whether the sessions are whole.

use crate::args::Flags;
use crate::desk::Desk;
use crate::environment::Environment;
use crate::exit::{Code, Ended, Failure};
use crate::local::{self, CANDIDATES};
use crate::settings::PROJECT_CONFIG;
use crate::terminal::print;
use crate::trust::{self, Standing};
use crate::{choose, kept, sandbox, words};
use windlass_kernel::{SCHEMA_VERSION, State};
use windlass_store::{SessionFilter, SessionInfo};

/// Sessions whose logs are folded: the newest.
const FOLDED: usize = 20;

pub async fn examine(flags: Flags, environment: Environment) -> Ended {
    let desk = Desk::without_store(flags.clone(), environment.clone())?;
    print(&format!(
        "windlass {}, event schema {SCHEMA_VERSION}\n\n{}{}",
        env!("CARGO_PKG_VERSION"),
        files(&desk),
        models(&desk)?
    ));
    print(&sandbox::report(&desk));
    print("\nstore\n");
    // Last, so that all the rest is told even if it fails.
    let desk = Desk::new(flags, environment)?;
    let sessions = desk.store.sessions(SessionFilter::default()).await?;
    let count = words::count(sessions.len() as u64, "session");
    print(&format!("  {} opens, {count}\n", desk.settings.store_path.display()));
    let wounds = fold(&desk, &sessions).await;
    if wounds.is_empty() {
        print(&format!("  {} folded: whole\n", words::count(sessions.len().min(FOLDED) as u64, "newest log")));
        return Ok(Code::Done);
    }
    print(&wounds.concat());
    let wounded = words::count(wounds.len() as u64, "session");
    Err(Failure::new(Code::Store, format!("not whole: {wounded}; `windlass log ID` shows what can be read of each")))
}

fn files(desk: &Desk) -> String {
    let environment = &desk.environment;
    let files = [environment.user_config(), kept::file(environment), desk.folder.join(PROJECT_CONFIG)];
    let lines = files.iter().map(|file| {
        let there = if file.exists() { "read" } else { "not there" };
        format!("  {} ({there})\n", file.display())
    });
    let notes: String = desk.notes().iter().map(|note| format!("  {note}\n")).collect();
    let standing = match desk.settings.project.standing {
        Standing::Trusted => format!("  what this folder brings is trusted ({})\n", trust::file(environment).display()),
        Standing::Untrusted | Standing::Changed => String::new(),
    };
    format!("configuration\n{}{standing}{notes}", lines.collect::<String>())
}

fn models(desk: &Desk) -> Result<String, Failure> {
    let (config, environment) = (&desk.settings.config, &desk.environment);
    let mut providers = choose::providers(config, environment)?;
    let mut text = String::from("\nkeys\n");
    for name in providers.names() {
        // What lacks a part of its address is not in use here.
        let Ok(Some(provider)) = providers.get(&name) else { continue };
        if !provider.key_hint.is_empty() {
            let set = if provider.has_key() { "set" } else { "not set" };
            text += &format!("  {name:<16} {} is {set}\n", provider.key_hint);
        }
    }
    text += "\nlocal servers\n";
    let answering = local::look(&CANDIDATES);
    for candidate in &CANDIDATES {
        let found = answering.iter().find(|one| one.provider == candidate.provider);
        let found = found.map_or("does not answer".to_owned(), |found| match found.models.len() {
            0 => "answers, and has no model".to_owned(),
            _ => format!("has {}", found.models.join(", ")),
        });
        text += &format!("  {:<12} 127.0.0.1:{} {found}\n", candidate.title, candidate.port);
    }
    text += "\nmodel\n";
    text += &match choose::model(config, environment, &mut providers) {
        Ok(model) => match choose::check_key(&model, &providers) {
            Ok(()) => format!("  {model}\n"),
            Err(failure) => format!("  {model}: {}\n", failure.message),
        },
        Err(failure) => format!("  {}\n", failure.message),
    };
    Ok(text)
}

/// What is wrong with the newest sessions, a line each.
async fn fold(desk: &Desk, sessions: &[SessionInfo]) -> Vec<String> {
    let mut wounds = vec![];
    for session in sessions.iter().take(FOLDED) {
        let (records, damage) = desk.store.salvage(session.session).await;
        let state = State::fold(&records);
        let wound = damage.map(|damage| damage.to_string()).or_else(|| state.check().err());
        wounds.extend(wound.map(|wound| format!("  {}: {wound}\n", session.session)));
    }
    wounds
}
