//! The secrets that the environment and the configuration hold, by their names.

use crate::config::Config;
use crate::environment::Environment;
use std::sync::Arc;
use windlass_tools::{Patterns, Secrets, Wish, is_like_a_secret};

/// What a variable's name ends with if its value is a secret.
const ENDINGS: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "_PASS", "_PAT", "CREDENTIALS"];
/// What it may have in its middle.
const MIDDLES: [&str; 4] = ["SECRET_", "PASSWORD_", "_TOKEN_", "API_KEY_"];
/// What the name of a header has in it.
const HEADERS: [&str; 6] = ["authorization", "key", "token", "secret", "cookie", "password"];

/// What is kept out of logs and outputs.
pub fn load(config: &Config, environment: &Environment) -> Arc<Secrets> {
    let texts = |path: &str| -> Vec<String> { config.texts(path).into_iter().map(|(text, _)| text).collect() };
    let (further, plain) = (texts("secrets.variables"), texts("secrets.plain"));
    let own = |name: &&str| config.at(&["providers", name, "key_variable"]).and_then(|entry| entry.value.as_text());
    let search = config.text("web_search.key_variable");
    let keys: Vec<&str> = config.names("providers").iter().filter_map(own).chain(search).collect();
    let is_secret = |name: &str| {
        let named = keys.contains(&name) || further.iter().any(|further| further == name);
        (named || is_telling(name)) && !plain.iter().any(|plain| plain == name)
    };
    let variables = environment.variables.iter().filter(|(name, _)| is_secret(name));
    let mut values: Vec<(String, String)> = variables.map(|(name, value)| (name.clone(), value.clone())).collect();
    for path in config.names("providers").iter().map(|name| format!("providers.{name}.headers")) {
        values.extend(config.texts(&path).iter().flat_map(|(header, _)| of_header(header)));
    }
    values.extend(config.texts("otel.headers").iter().flat_map(|(header, _)| of_header(header)));
    let collector = environment.variable(crate::telemetry::HEADERS_VARIABLE).unwrap_or_default();
    values.extend(collector.split(',').flat_map(of_header));
    values.retain(|(_, value)| is_like_a_secret(value));
    let patterns = match config.text("secrets.patterns") {
        Some("off") => Patterns::Off,
        Some("everywhere") => Patterns::Everywhere,
        _ => Patterns::Outputs,
    };
    Arc::new(Secrets::new(Wish { patterns, prefixes: texts("secrets.prefixes"), values }))
}

/// Whether a variable of this name holds a secret.
fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || MIDDLES.iter().any(|middle| name.contains(middle))
}

/// What is secret of a header, written `NAME: VALUE` or `NAME=VALUE`: its value, and what stands behind its scheme.
fn of_header(header: &str) -> Vec<(String, String)> {
    let Some((name, value)) = header.split_once([':', '=']) else { return vec![] };
    let (name, value) = (name.trim(), value.trim());
    if !HEADERS.iter().any(|part| name.to_ascii_lowercase().contains(part)) {
        return vec![];
    }
    let behind = value.rsplit_once(' ').map(|(_, token)| token);
    behind.into_iter().chain([value]).map(|value| (name.to_owned(), value.to_owned())).collect()
}

/// A failure's words without the secrets of the environment: whoever failed may have had no configuration yet.
pub fn masked(message: &str) -> String {
    let Ok(environment) = Environment::look() else { return message.to_owned() };
    let secrets = load(&Config::default(), &environment);
    secrets.redact(message, windlass_tools::Source::Output).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_secret() {
        for name in
            ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "NPM_TOKEN", "API_KEY_2", "GH_PAT", "PASSWORD"]
        {
            assert!(is_telling(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENIZERS_PARALLELISM", "PWD"] {
            assert!(!is_telling(name), "{name}");
        }
    }

    #[test]
    fn a_headers_value_and_its_token_are_secret_if_its_name_says_so() {
        let pair = |value: &str| ("Authorization".to_owned(), value.to_owned());
        assert_eq!(of_header("Authorization: Bearer abc-1"), [pair("abc-1"), pair("Bearer abc-1")]);
        assert_eq!(of_header("X-Title: my program"), []);
    }
}
