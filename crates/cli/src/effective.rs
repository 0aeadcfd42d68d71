//! `windlass config`: what holds here, and where each value comes from.

use crate::config::{Config, Entry, shown};
use crate::desk::Desk;
use crate::exit::{Code, Ended};
use crate::keys::Value;
use crate::settings::PROJECT_CONFIG;
use crate::terminal::{harmless, print};
use crate::{choose, kept, mask};
use std::collections::BTreeSet;

pub fn show(desk: &Desk) -> Ended {
    let config = &desk.settings.config;
    let rows = rows(config);
    let width = rows.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0).min(70);
    let mut text = String::new();
    for (value, source) in rows {
        text += &format!("{value:<width$}  # {source}\n");
    }
    let mut providers = choose::providers(config, &desk.environment)?;
    text += &match choose::model(config, &desk.environment, &mut providers) {
        Ok(model) if config.get("model").is_none() => format!("{:<width$}  # chosen\n", format!("model = \"{model}\"")),
        Ok(_) => String::new(),
        Err(failure) => format!("# {}\n", failure.message.replace('\n', "\n# ")),
    };
    let files = [desk.environment.user_config(), kept::file(&desk.environment), desk.folder.join(PROJECT_CONFIG)];
    for file in files {
        let there = if file.exists() { "read" } else { "not there" };
        text += &format!("# {} ({there})\n", file.display());
    }
    text += &project(desk);
    print(&harmless(&text));
    Ok(Code::Done)
}

/// What of the project's own file is not in use, and what stands of its trust.
fn project(desk: &Desk) -> String {
    let withheld = desk.settings.config.layers.iter().flat_map(|layer| &layer.withheld);
    let mut text: String = withheld
        .map(|entry| {
            let path: Vec<&str> = entry.path.iter().map(String::as_str).collect();
            let value = harmless_value(&path, &entry.value).to_string().replace('\n', " ");
            format!("# not in use: {} = {value}  # {}\n", shown(&entry.path), entry.source)
        })
        .collect();
    desk.notes().iter().for_each(|note| text += &format!("# {note}\n"));
    text
}

/// Every value that holds, as TOML, with its source.
fn rows(config: &Config) -> Vec<(String, String)> {
    let paths: BTreeSet<&Vec<String>> =
        config.layers.iter().flat_map(|layer| &layer.entries).map(|entry| &entry.path).collect();
    let mut rows = vec![];
    for path in paths {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match config.at(&parts) {
            // Lists add up: each of their layers is shown.
            Some(Entry { value: Value::Texts(_), .. }) => {
                let texts = config.texts(&path.join(".")).into_iter();
                rows.extend(texts.map(|(text, source)| {
                    let text = harmless_value(&parts, &Value::Text(text));
                    (format!("{} += {text}", shown(path)), source.to_owned())
                }));
            }
            Some(entry) => {
                let value = harmless_value(&parts, &entry.value);
                rows.push((format!("{} = {value}", shown(path)), entry.source.clone()));
            }
            None => {}
        }
    }
    rows
}

/// The value as it may be shown: headers and addresses may hold keys.
fn harmless_value(path: &[&str], value: &Value) -> Value {
    match (path, value) {
        ([.., "headers"], Value::Text(header)) => Value::Text(mask::header(header)),
        ([.., "base_url" | "endpoint"], Value::Text(url)) => Value::Text(mask::address(url)),
        _ => value.clone(),
    }
}
