//! Which model speaks, and where: from what was said, else from the keys there are, else from what answers here.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::{Code, Failure};
use crate::local::{self, Answering};
use crate::near;
use windlass::llm::ApiKey;
use windlass::{Protocol, Provider, Providers};

/// What is asked for where a key names a provider and nothing names a model.
const ANTHROPIC_MODEL: &str = "anthropic/claude-sonnet-4-5";
const OPENAI_MODEL: &str = "openai/gpt-5";

/// The providers, with the addresses and keys that hold here.
pub fn providers(config: &Config, environment: &Environment) -> Result<Providers, Failure> {
    let mut providers = Providers::known();
    for name in config.names("providers") {
        let provider = own(config, name, providers.get(name))?;
        providers.set(name, provider);
    }
    let addresses = [("anthropic", "ANTHROPIC_BASE_URL"), ("openai", "OPENAI_BASE_URL")];
    for (name, variable) in addresses {
        if let Some(url) = environment.variable(variable) {
            move_to(&mut providers, name, url, variable)?;
        }
    }
    let names: Vec<String> = providers.names().map(str::to_owned).collect();
    for name in names {
        if let Some(provider) = providers.get_mut(&name) {
            provider.key = environment.variable(&provider.key_variable).map(ApiKey::new);
        }
    }
    Ok(providers)
}

/// `[providers.NAME]`, over what is known by that name.
fn own(config: &Config, name: &str, known: Option<&Provider>) -> Result<Provider, Failure> {
    let text = |key: &str| config.at(&["providers", name, key]).and_then(|entry| entry.value.as_text());
    let Some(url) = text("base_url").map(str::to_owned).or_else(|| known.map(|known| known.base_url.clone())) else {
        return Err(Failure::usage(format!(
            "[providers.{name}] has no base_url: say where it is, for example \
             base_url = \"http://127.0.0.1:8000/v1\""
        )));
    };
    check_url(&url, &format!("providers.{name}.base_url"))?;
    let protocol = match text("protocol") {
        Some("anthropic") => Protocol::Anthropic,
        Some(_) => Protocol::OpenAiChat,
        None => known.map_or_else(|| protocol_of(&url), |known| known.protocol),
    };
    let variable = text("key_variable").map(str::to_owned);
    let key_variable = variable.clone().or_else(|| known.map(|known| known.key_variable.clone())).unwrap_or_default();
    let needs_key = variable.is_some() || (text("base_url").is_none() && known.is_some_and(|known| known.needs_key));
    Ok(Provider { needs_key, key_variable, ..Provider::at(protocol, normal(&url, protocol)) })
}

/// The model that speaks, as `PROVIDER/NAME`; `providers` get the address it is to be had at.
pub fn model(config: &Config, environment: &Environment, providers: &mut Providers) -> Result<String, Failure> {
    let url = config.text("base_url");
    if let Some(url) = url {
        check_url(url, &source(config, "base_url"))?;
    }
    let Some(wanted) = config.text("model") else {
        return match url {
            Some(url) => at_url(providers, url, None),
            None => unsaid(environment, providers, &local::CANDIDATES),
        };
    };
    let known = wanted.split_once('/').filter(|(provider, _)| providers.get(provider).is_some());
    match (known, url) {
        (Some((_, "")), _) => Err(bad_model(config, wanted, providers)),
        (Some((provider, _)), Some(url)) => {
            move_to(providers, provider, url, "--base-url")?;
            Ok(wanted.to_owned())
        }
        (Some(_), None) => Ok(wanted.to_owned()),
        // Models of servers of one's own often have slashes in their names.
        (None, Some(url)) if !wanted.is_empty() => at_url(providers, url, Some(wanted)),
        _ => Err(bad_model(config, wanted, providers)),
    }
}

/// That the provider of `model` is known and has its key.
pub fn check_key(model: &str, providers: &Providers) -> Result<(), Failure> {
    let (name, _) = model.split_once('/').unwrap_or((model, ""));
    let Some(provider) = providers.get(name) else {
        return Err(Failure::usage(format!(
            "the session's model {model} has no provider {name} here: name another with --model"
        )));
    };
    if !provider.needs_key || provider.key.is_some() {
        return Ok(());
    }
    let message = format!(
        "{name} needs a key: set {}, or name another model with --model; `windlass demo` works without one",
        provider.key_variable
    );
    Err(Failure::new(Code::NoModel, message))
}

fn at_url(providers: &mut Providers, url: &str, name: Option<&str>) -> Result<String, Failure> {
    let (provider, usual) = match protocol_of(url) {
        Protocol::OpenAiChat => ("openai", OPENAI_MODEL),
        Protocol::Anthropic => ("anthropic", ANTHROPIC_MODEL),
    };
    move_to(providers, provider, url, "--base-url")?;
    Ok(name.map_or_else(|| usual.to_owned(), |name| format!("{provider}/{name}")))
}

/// A server of one's own may want no key.
fn move_to(providers: &mut Providers, name: &str, url: &str, source: &str) -> Result<(), Failure> {
    check_url(url, source)?;
    if let Some(provider) = providers.get_mut(name) {
        provider.base_url = normal(url, provider.protocol);
        provider.needs_key = false;
    }
    Ok(())
}

fn unsaid(
    environment: &Environment,
    providers: &Providers,
    candidates: &[local::Candidate],
) -> Result<String, Failure> {
    let given = |names: [&str; 2]| names.iter().any(|name| environment.variable(name).is_some());
    if given(["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]) {
        return Ok(ANTHROPIC_MODEL.to_owned());
    }
    if given(["OPENAI_API_KEY", "OPENAI_BASE_URL"]) {
        return Ok(OPENAI_MODEL.to_owned());
    }
    let answering = local::look(candidates);
    let first = answering.iter().find_map(|one| Some(format!("{}/{}", one.provider, one.models.first()?)));
    first.ok_or_else(|| Failure::new(Code::NoModel, no_model(providers, &answering)))
}

fn no_model(providers: &Providers, answering: &[Answering]) -> String {
    let keyed = |name: &&str| providers.get(name).is_some_and(|provider| provider.key.is_some());
    let mut message = String::from("no model is configured and no local server answers");
    if let Some(empty) = answering.first() {
        message = format!("no model is configured; {} answers here but has no model: pull one first", empty.title);
    } else if let Some(name) = providers.names().find(keyed) {
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
    let names: Vec<&str> = providers.names().collect();
    let way_out = "give others their address with --base-url or [providers.NAME]";
    Failure::usage(match wanted.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => format!(
            "{source}: there is no provider `{provider}`{}; known are {}; {way_out}",
            near::hint(provider, names.iter().copied()),
            names.join(", ")
        ),
        _ => format!(
            "{source}: `{wanted}` names no model: write PROVIDER/NAME, for example {ANTHROPIC_MODEL} or ollama/qwen3"
        ),
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

fn protocol_of(url: &str) -> Protocol {
    match url.trim_end_matches('/').ends_with("/v1") {
        true => Protocol::OpenAiChat,
        false => Protocol::Anthropic,
    }
}

/// Messages addresses go without `/v1`, whoever writes it.
fn normal(url: &str, protocol: Protocol) -> String {
    let url = url.trim_end_matches('/');
    match protocol {
        Protocol::Anthropic => url.strip_suffix("/v1").unwrap_or(url).to_owned(),
        Protocol::OpenAiChat => url.to_owned(),
    }
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
        let url = providers.get(model.split('/').next().unwrap()).unwrap().base_url.clone();
        Ok((model, url))
    }

    fn chosen(flags: &[&str], variables: &[(&str, &str)]) -> String {
        let (model, url) = choose(flags, variables).unwrap();
        format!("{model} at {url}")
    }

    #[test]
    fn s4_03_address_key_and_model_come_from_flags_and_environment() {
        let key = ("ANTHROPIC_API_KEY", "k");
        assert_eq!(chosen(&[], &[key]), "anthropic/claude-sonnet-4-5 at https://api.anthropic.com");
        assert_eq!(chosen(&[], &[("OPENAI_BASE_URL", "http://h:1/v1/")]), "openai/gpt-5 at http://h:1/v1");
        assert_eq!(
            chosen(&[], &[("ANTHROPIC_BASE_URL", "http://h:1/v1")]),
            "anthropic/claude-sonnet-4-5 at http://h:1"
        );
        assert_eq!(chosen(&["model=ollama/qwen3"], &[key]), "ollama/qwen3 at http://127.0.0.1:11434/v1");
    }

    #[test]
    fn an_address_tells_its_protocol() {
        assert_eq!(chosen(&["base_url=http://h:1/v1"], &[]), "openai/gpt-5 at http://h:1/v1");
        assert_eq!(chosen(&["base_url=http://h:1"], &[]), "anthropic/claude-sonnet-4-5 at http://h:1");
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
