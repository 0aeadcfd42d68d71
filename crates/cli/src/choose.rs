//! Which model speaks, and where: from what was said, else from the keys there are, else from what answers here.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::{Code, Failure};
use crate::local::{self, Answering};
use crate::near;
use crate::{aws, catalog, key_command};
use std::sync::Arc;
use windlass::llm::{ApiKey, Auth, ToolCalls};
use windlass::{Protocol, Provider, Providers, Variable};

/// An example of a model's name, for messages.
const EXAMPLE: &str = "anthropic/claude-sonnet-4-5";

/// The providers, with the addresses and keys that hold here.
pub fn providers(config: &Config, environment: &Environment) -> Result<Providers, Failure> {
    let catalog = catalog::load(environment)?;
    let mut providers = Providers::of(catalog, keys_of(environment)).with_key_command(Arc::new(key_command::source));
    for name in config.names("providers") {
        let provider = own(config, environment, name, &providers)?;
        providers.set(name, provider);
    }
    let addresses = [("anthropic", "ANTHROPIC_BASE_URL"), ("openai", "OPENAI_BASE_URL")];
    for (name, variable) in addresses {
        if let Some(url) = environment.variable(variable) {
            move_to(config, &mut providers, name, url, variable)?;
        }
    }
    Ok(providers)
}

fn keys_of(environment: &Environment) -> Variable {
    let environment = environment.clone();
    Arc::new(move |name| environment.variable(name).map(str::to_owned).or_else(|| aws::variable(&environment, name)))
}

/// `[providers.NAME]`, over what is known by that name.
fn own(config: &Config, environment: &Environment, name: &str, providers: &Providers) -> Result<Provider, Failure> {
    let entry = |key: &str| config.at(&["providers", name, key]);
    let text = |key: &str| entry(key).and_then(|entry| entry.value.as_text());
    let known = match text("base_url") {
        Some(url) => providers.moved(name, url),
        // A part of its address that nobody gives is not missed where --base-url gives it all.
        None => match (providers.get(name), config.text("base_url")) {
            (Ok(Some(known)), Some(url)) if known.base_url.is_empty() => providers.moved(name, url),
            (Ok(known), _) => known,
            (Err(_), Some(url)) => providers.moved(name, url),
            (Err(problem), None) => return Err(Failure::usage(problem)),
        },
    };
    let Some(url) = text("base_url").map(str::to_owned).or_else(|| known.as_ref().map(|known| known.base_url.clone()))
    else {
        return Err(Failure::usage(format!(
            "[providers.{name}] has no base_url: say where it is, for example \
             base_url = \"http://127.0.0.1:8000/v1\""
        )));
    };
    check_url(&url, &format!("providers.{name}.base_url"))?;
    let usual = text("protocol").and_then(protocol_named).or(known.as_ref().map(|known| known.protocol));
    let (protocol, base_url) = spoken(&url, usual);
    let mut provider = Provider { base_url, protocol, ..known.unwrap_or_else(|| Provider::at(protocol, "")) };
    if let Some(variable) = text("key_variable") {
        provider.auth = environment.variable(variable).map_or(Auth::None, |key| Auth::Key(ApiKey::new(key)));
        provider.key_hint = variable.to_owned();
        provider.needs_key = true;
    } else if let Some(command) = text("key_command") {
        provider.auth = Auth::Source(key_command::source(command));
        provider.key_hint = format!("what `{command}` prints");
    }
    provider.tool_calls = text("tool_calls").map(|how| if how == "text" { ToolCalls::Text } else { ToolCalls::Native });
    for (header, source) in config.texts(&format!("providers.{name}.headers")) {
        let Some((name, value)) = header.split_once(':') else {
            return Err(Failure::usage(format!("{source}: `{header}` is no header: write \"NAME: VALUE\"")));
        };
        provider.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(provider)
}

fn protocol_named(name: &str) -> Option<Protocol> {
    match name {
        // The word of earlier configurations.
        "openai" => Some(Protocol::Chat),
        name => Protocol::ALL.into_iter().find(|protocol| protocol.name() == name),
    }
}

/// The variables of the environment that hold keys of providers: no child process sees them.
pub fn key_variables<'a>(config: &Config, environment: &'a Environment, providers: &Providers) -> Vec<&'a str> {
    let own = |name: &str| config.at(&["providers", name, "key_variable"]).and_then(|entry| entry.value.as_text());
    let own: Vec<&str> = config.names("providers").into_iter().filter_map(own).collect();
    let is_key = |name: &&str| providers.catalog().is_key_variable(name) || own.contains(name);
    environment.variables.keys().map(String::as_str).filter(is_key).collect()
}

/// The model that speaks, as `PROVIDER/NAME`; `providers` get the address it is to be had at.
pub fn model(config: &Config, environment: &Environment, providers: &mut Providers) -> Result<String, Failure> {
    let url = config.text("base_url");
    if let Some(url) = url {
        check_url(url, &source(config, "base_url"))?;
    }
    let Some(wanted) = config.text("model") else {
        return match url {
            Some(url) => at_url(config, providers, url, None),
            None => unsaid(environment, providers, &local::CANDIDATES),
        };
    };
    let (provider, name) = wanted.split_once('/').unwrap_or(("", wanted));
    let is_known = !provider.is_empty() && !matches!(providers.get(provider), Ok(None));
    match url {
        _ if is_known && name.is_empty() => Err(bad_model(config, wanted, providers)),
        Some(url) if is_known => {
            move_to(config, providers, provider, url, "--base-url")?;
            Ok(wanted.to_owned())
        }
        None if is_known => Ok(wanted.to_owned()),
        // Models of servers of one's own often have slashes in their names.
        Some(url) if !wanted.is_empty() => at_url(config, providers, url, Some(wanted)),
        _ => match providers.catalog().provider(wanted).and_then(|info| info.usual.clone()) {
            Some(usual) => Ok(format!("{wanted}/{usual}")),
            None => Err(bad_model(config, wanted, providers)),
        },
    }
}

/// That the provider of `model` is known and has its key.
pub fn check_key(model: &str, providers: &Providers) -> Result<(), Failure> {
    let (name, _) = model.split_once('/').unwrap_or((model, ""));
    let Some(provider) = providers.get(name).map_err(|problem| Failure::new(Code::NoModel, problem))? else {
        return Err(Failure::usage(format!(
            "the session's model {model} has no provider {name} here: name another with --model"
        )));
    };
    if provider.base_url.is_empty() {
        return Err(Failure::usage(format!("{model}: say where {name} is spoken, with --base-url URL")));
    }
    if !provider.needs_key || provider.has_key() {
        return Ok(());
    }
    let message = format!(
        "{name} needs a key: set {}, or name another model with --model; `windlass demo` works without one",
        provider.key_hint
    );
    Err(Failure::new(Code::NoModel, message))
}

/// The same of a fallback model: found wanting now, and not when it is needed.
pub fn check_fallback(model: &str, providers: &Providers) -> Result<(), Failure> {
    let known =
        model.split_once('/').is_some_and(|(name, rest)| !rest.is_empty() && !matches!(providers.get(name), Ok(None)));
    if !known {
        return Err(Failure::usage(format!(
            "--fallback-model {model}: it names no model: write PROVIDER/NAME, for example {EXAMPLE}"
        )));
    }
    check_key(model, providers)
        .map_err(|failure| Failure { message: format!("--fallback-model {model}: {}", failure.message), ..failure })
}

fn at_url(config: &Config, providers: &mut Providers, url: &str, name: Option<&str>) -> Result<String, Failure> {
    let (protocol, _) = spoken(url, None);
    let provider = if protocol == Protocol::Anthropic { "anthropic" } else { "openai" };
    move_to(config, providers, provider, url, "--base-url")?;
    Ok(name.map_or_else(|| usual(providers, provider), |name| format!("{provider}/{name}")))
}

/// What is asked for where a key names a provider and nothing names a model.
fn usual(providers: &Providers, provider: &str) -> String {
    let info = providers.catalog().provider(provider);
    let model = info.and_then(|info| info.usual.clone()).unwrap_or_else(|| "default".into());
    format!("{provider}/{model}")
}

/// A server of one's own may want no key. Most of those that are called `openai` imitate Chat Completions.
fn move_to(config: &Config, providers: &mut Providers, name: &str, url: &str, source: &str) -> Result<(), Failure> {
    check_url(url, source)?;
    let Some(mut provider) = providers.moved(name, url) else { return Ok(()) };
    let is_said = config.at(&["providers", name, "protocol"]).is_some();
    if name == "openai" && !is_said {
        provider.protocol = Protocol::Chat;
        provider.quirks.clear();
    }
    (provider.protocol, provider.base_url) = spoken(url, Some(provider.protocol));
    providers.set(name, provider);
    Ok(())
}

fn unsaid(
    environment: &Environment,
    providers: &Providers,
    candidates: &[local::Candidate],
) -> Result<String, Failure> {
    let given = |names: [&str; 2]| names.iter().any(|name| environment.variable(name).is_some());
    if given(["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]) {
        return Ok(usual(providers, "anthropic"));
    }
    if given(["OPENAI_API_KEY", "OPENAI_BASE_URL"]) {
        return Ok(usual(providers, "openai"));
    }
    let answering = local::look(candidates);
    let first = answering.iter().find_map(|one| Some(format!("{}/{}", one.provider, one.models.first()?)));
    first.ok_or_else(|| Failure::new(Code::NoModel, no_model(providers, &answering)))
}

fn no_model(providers: &Providers, answering: &[Answering]) -> String {
    let keyed = |name: &String| matches!(providers.get(name), Ok(Some(provider)) if provider.has_key());
    let mut message = String::from("no model is configured and no local server answers");
    if let Some(empty) = answering.first() {
        message = format!("no model is configured; {} answers here but has no model: pull one first", empty.title);
    } else if let Some(name) = providers.names().into_iter().find(keyed) {
        message = format!("a key for {name} is set; say which of its models to use: --model {name}/NAME");
    }
    message
        + "\n  set ANTHROPIC_API_KEY or OPENAI_API_KEY,\n  \
           or start a local server (for example `ollama run qwen3`),\n  \
           or name a model: --model PROVIDER/NAME, --base-url URL,\n  \
           or watch the agent at work without any of it: windlass demo"
}

fn bad_model(config: &Config, wanted: &str, providers: &Providers) -> Failure {
    let source = source(config, "model");
    let names = providers.names();
    let way_out = "give others their address with --base-url or [providers.NAME]";
    Failure::usage(match wanted.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => format!(
            "{source}: there is no provider `{provider}`{}; known are {}; {way_out}",
            near::hint(provider, names.iter().map(String::as_str)),
            names.join(", ")
        ),
        _ => format!("{source}: `{wanted}` names no model: write PROVIDER/NAME, for example {EXAMPLE} or ollama/qwen3"),
    })
}

fn source(config: &Config, key: &str) -> String {
    config.get(key).map_or_else(|| key.to_owned(), |entry| entry.source.clone())
}

fn check_url(url: &str, source: &str) -> Result<(), Failure> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let fine = host.is_some_and(|host| !host.is_empty() && !host.starts_with(['/', ':']))
        && !url.contains(char::is_whitespace);
    if fine {
        return Ok(());
    }
    Err(Failure::usage(format!("{source}: `{url}` is no address of a model: write it like http://127.0.0.1:11434/v1")))
}

/// The protocol spoken at `url` and the base that its paths stand behind. An address may end with the path itself, which
/// tells the protocol; else `usual` is spoken, or what the `/v1` at its end tells.
fn spoken(url: &str, usual: Option<Protocol>) -> (Protocol, String) {
    let url = url.trim_end_matches('/');
    let endings = [
        ("/chat/completions", Protocol::Chat),
        ("/responses", Protocol::Responses),
        ("/messages", Protocol::Anthropic),
    ];
    let told = endings.into_iter().find_map(|(path, protocol)| Some((protocol, url.strip_suffix(path)?)));
    let (protocol, base) = told.unwrap_or_else(|| {
        let by_end = if url.ends_with("/v1") { Protocol::Chat } else { Protocol::Anthropic };
        (usual.unwrap_or(by_end), url)
    });
    // Messages addresses go without `/v1`, whoever writes it.
    let base = if protocol == Protocol::Anthropic { base.strip_suffix("/v1").unwrap_or(base) } else { base };
    (protocol, base.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_flags;
    use crate::terminal::Look;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment {
            variables: variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            cwd: "/".into(),
            config_dir: "/c".into(),
            data_dir: "/d".into(),
            stdin_is_terminal: false,
            stdout: Look::default(),
            stderr: Look::default(),
        }
    }

    /// The model and its address.
    fn choose(flags: &[&str], variables: &[(&str, &str)]) -> Result<(String, String), Failure> {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let config = Config { layers: vec![from_flags(&flags)?] };
        let environment = environment(variables);
        let mut providers = providers(&config, &environment)?;
        let model = model(&config, &environment, &mut providers)?;
        check_key(&model, &providers)?;
        let url = providers.get(model.split('/').next().unwrap()).unwrap().unwrap().base_url;
        Ok((model, url))
    }

    fn chosen(flags: &[&str], variables: &[(&str, &str)]) -> String {
        let (model, url) = choose(flags, variables).unwrap();
        format!("{model} at {url}")
    }

    #[test]
    fn s4_03_address_key_and_model_come_from_flags_and_environment() {
        let key = ("ANTHROPIC_API_KEY", "k");
        assert_eq!(chosen(&[], &[key]), "anthropic/claude-sonnet-5-5 at https://api.anthropic.com");
        assert_eq!(chosen(&[], &[("OPENAI_BASE_URL", "http://h:1/v1/")]), "openai/gpt-6.1-sol at http://h:1/v1");
        assert_eq!(
            chosen(&[], &[("ANTHROPIC_BASE_URL", "http://h:1/v1")]),
            "anthropic/claude-sonnet-5-5 at http://h:1"
        );
        assert_eq!(chosen(&["model=ollama/qwen3"], &[key]), "ollama/qwen3 at http://127.0.0.1:11434/v1");
    }

    #[test]
    fn an_address_tells_its_protocol() {
        assert_eq!(chosen(&["base_url=http://h:1/v1"], &[]), "openai/gpt-6.1-sol at http://h:1/v1");
        assert_eq!(chosen(&["base_url=http://h:1"], &[]), "anthropic/claude-sonnet-5-5 at http://h:1");
        assert_eq!(chosen(&["base_url=http://h/v1", "model=meta/llama"], &[]), "openai/meta/llama at http://h/v1");
        assert_eq!(chosen(&["base_url=http://h/v1", "model=anthropic/x"], &[]), "anthropic/x at http://h");
    }

    #[test]
    fn providers_of_ones_own_are_like_the_known_ones() {
        let flags = ["model=lab/m", "providers.lab.base_url=http://lab/v1", "providers.lab.key_variable=LAB_KEY"];
        assert_eq!(chosen(&flags, &[("LAB_KEY", "k")]), "lab/m at http://lab/v1");
        let missing = choose(&flags, &[]).unwrap_err();
        assert_eq!(missing.code, Code::NoModel);
        assert!(missing.message.contains("set LAB_KEY"), "{}", missing.message);
        let nowhere = choose(&["model=lab/m", "providers.lab.protocol=openai"], &[]).unwrap_err();
        assert!(nowhere.message.contains("[providers.lab] has no base_url"), "{}", nowhere.message);
    }

    #[test]
    fn a_protocols_name_is_a_provider_at_any_address() {
        let flags = ["model=responses/m", "base_url=http://h:1/v1", "providers.responses.key_variable=K"];
        assert_eq!(chosen(&flags, &[("K", "k")]), "responses/m at http://h:1/v1");
        let flags = ["model=vertex/m", "base_url=http://h:1/x", "providers.vertex.key_variable=K"];
        assert_eq!(chosen(&flags, &[("K", "k")]), "vertex/m at http://h:1/x");
        assert!(choose(&["model=chat/m"], &[]).unwrap_err().message.contains("with --base-url"));
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        let message = |flag: &str| choose(&[flag], &[]).unwrap_err().message;
        assert!(message("model=antropic/x").contains("`antropic` (did you mean `anthropic`?)"));
        assert!(message("model=sonnet").contains("`sonnet` names no model: write PROVIDER/NAME"));
        assert!(message("model=openai/").contains("names no model"));
        assert!(message("base_url=localhost:11434").contains("write it like http://127.0.0.1:11434/v1"));
        assert!(message("model=groq/x").contains("set GROQ_API_KEY"));
    }

    #[test]
    fn without_anything_it_says_what_to_do() {
        let environment = environment(&[("DEEPSEEK_API_KEY", "k")]);
        let providers = providers(&Config::default(), &environment).unwrap();
        let error = unsaid(&environment, &providers, &[]).unwrap_err();
        assert_eq!(error.code, Code::NoModel);
        insta::assert_snapshot!(error.message, @"
        a key for deepseek is set; say which of its models to use: --model deepseek/NAME
          set ANTHROPIC_API_KEY or OPENAI_API_KEY,
          or start a local server (for example `ollama run qwen3`),
          or name a model: --model PROVIDER/NAME, --base-url URL,
          or watch the agent at work without any of it: windlass demo
        ");
    }
}
