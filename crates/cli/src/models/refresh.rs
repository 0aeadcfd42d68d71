//! `windlass models refresh`: asks the providers for their models and remembers what they tell.

use super::learnt::Learnt;
use super::{http, provider};
use crate::choose;
use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::local::{self, CANDIDATES};
use crate::terminal::{harmless, print};
use crate::words::count;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use windlass::llm::{self, Listed};
use windlass::{Provider, Providers};
use windlass_kernel::ModelFailure;

/// Names shown of what is new or gone.
const MAX_NAMED: usize = 8;

pub async fn refresh(desk: &Desk, only: Option<&str>) -> Ended {
    let config = &desk.settings.config;
    let mut providers = choose::providers(config, &desk.environment)?;
    let names = match only {
        // An address says where one provider is: the one that the model of a run would be asked of.
        None if config.text("base_url").is_some() => {
            let model = choose::model(config, &desk.environment, &mut providers)?;
            model.split_once('/').map(|(name, _)| providers.name_of(name)).into_iter().collect()
        }
        Some(name) => {
            choose::to_address(config, &mut providers, name)?;
            provider(&providers, name)?;
            vec![providers.name_of(name)]
        }
        None => configured(desk, &providers),
    };
    if names.is_empty() {
        let message =
            "no provider is configured: set a key such as ANTHROPIC_API_KEY, start a local server, or name one";
        return Err(Failure::new(Code::NoModel, message));
    }
    let mut asked = ask(desk, &providers, &names)?;
    let mut worked = 0;
    while let Some((name, here, answer)) = asked.next().await {
        match answer {
            Ok(listed) => {
                worked += 1;
                print(&harmless(&take(desk, &providers, &name, &here, &listed)?));
            }
            Err(failure) => print(&harmless(&format!("{name}: {}\n", failure.message))),
        }
    }
    Ok(if worked > 0 { Code::Done } else { Code::Failed })
}

/// Those with a key, those of the user's own, and local servers that answer.
fn configured(desk: &Desk, providers: &Providers) -> Vec<String> {
    let own = desk.settings.config.names("providers");
    let answering = local::look(&CANDIDATES);
    let is_in_use = |name: &String| {
        let here = providers.get(name).ok().flatten().filter(|here| !here.base_url.is_empty());
        let answers = answering.iter().any(|one| one.provider == name);
        here.is_some_and(|here| here.has_key() || answers || own.contains(&name.as_str()))
    };
    providers.names().into_iter().filter(is_in_use).collect()
}

type Answer = (String, Provider, Result<Vec<Listed>, ModelFailure>);

/// Asks all at once; whoever drops it asks no more.
fn ask(
    desk: &Desk,
    providers: &Providers,
    names: &[String],
) -> Result<FuturesUnordered<impl Future<Output = Answer>>, Failure> {
    let asked = FuturesUnordered::new();
    for name in names {
        let (name, here) = (name.clone(), provider(providers, name)?);
        let http = http(desk, &here)?;
        asked.push(async move {
            let listed = llm::list(&http, here.protocol, here.endpoint(&name, None)).await;
            (name, here, listed)
        });
    }
    Ok(asked)
}

/// Remembers what was told, and says what is new and what is gone.
fn take(desk: &Desk, providers: &Providers, name: &str, here: &Provider, listed: &[Listed]) -> Result<String, Failure> {
    let info = providers.catalog().provider(name);
    let known = |model: &str| info.as_ref().and_then(|info| info.model(model));
    let new: Vec<&str> =
        listed.iter().map(|model| model.name.as_str()).filter(|model| known(model).is_none()).collect();
    // A dated name stands for the one without.
    let covers = |model: &str| listed.iter().any(|one| known(&one.name).is_some_and(|known| known.name == model));
    let models = info.iter().flat_map(|info| &info.models);
    let gone: Vec<&str> = models.map(|model| model.name.as_str()).filter(|model| !covers(model)).collect();
    let mut learnt = Learnt::read(&desk.environment, name)?;
    learnt.place(providers.catalog(), name, here);
    // What is known of a name without its date must not be hidden by an entry that knows less.
    let own = listed.iter().filter(|model| known(&model.name).is_none_or(|known| known.name == model.name));
    own.for_each(|model| learnt.told(model));
    let names: BTreeSet<&str> = listed
        .iter()
        .flat_map(|model| [Some(model.name.as_str()), known(&model.name).map(|known| known.name.as_str())])
        .flatten()
        .collect();
    learnt.keep(&names);
    learnt.write()?;
    let mut line = format!("{name}: {}", count(listed.len() as u64, "model"));
    for (what, names) in [("new", &new), ("gone", &gone)] {
        if !names.is_empty() {
            line += &format!("; {} {what}: {}", names.len(), some(names));
        }
    }
    Ok(line + "\n")
}

fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
