//! Which model speaks, and where: from what was said, else from the keys there are, else from what answers here.

use crate::config::Config;
use crate::environment::Environment;
use crate::exit::{Code, Failure};
use crate::local::{self, Answering};
use crate::{address, aws, catalog, key_command, near, web};
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
    let usual = text("protocol").and_then(protocol_named).or(known.as_ref().map(|known| known.protocol));
    let (protocol, base_url) = match usual {
        // A protocol's own name, whose address --base-url gives when it is used.
        Some(protocol) if url.is_empty() && text("base_url").is_none() => (protocol, url),
        usual => {
            address::check(&url, &format!("providers.{name}.base_url"))?;
            spoken(&url, usual)
        }
    };
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
        provider.headers.push(address::header(&header, source)?);
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
    let own = config.names("providers").into_iter().filter_map(own);
    let own: Vec<&str> = own.chain(web::key_variable(config)).collect();
    let is_key = |name: &&str| providers.catalog().is_key_variable(name) || own.contains(name);
    environment.variables.keys().map(String::as_str).filter(is_key).collect()
}

/// The model that speaks, as `PROVIDER/NAME`; `providers` get the address it is to be had at.
pub fn model(config: &Config, environment: &Environment, providers: &mut Providers) -> Result<String, Failure> {
    let url = config.text("base_url");
    if let Some(url) = url {
        address::check(url, &source(config, "base_url"))?;
    }
    let Some(wanted) = config.text("model") else {
        return match url {
            Some(url) => at_url(config, providers, url, None),
            None => unsaid(environment, providers, &local::CANDIDATES),
        };
    };
    let (provider, rest) = wanted.split_once('/').map_or((wanted, None), |(provider, name)| (provider, Some(name)));
    if is_known(provider, providers) {
        let model = in_full(wanted, providers).ok_or_else(|| match rest {
            None => Failure::usage(format!("{}: {}", source(config, "model"), no_usual(provider))),
            Some(_) => bad_model(config, wanted, providers),
        })?;
        to_address(config, providers, provider)?;
        return Ok(model);
    }
    match url {
        // Models of servers of one's own often have slashes in their names.
        Some(url) if !wanted.is_empty() => at_url(config, providers, url, Some(wanted)),
        _ => Err(bad_model(config, wanted, providers)),
    }
}

/// Moves the provider to where `base_url` says that the model is, if it says so.
pub fn to_address(config: &Config, providers: &mut Providers, provider: &str) -> Result<(), Failure> {
    match config.text("base_url") {
        Some(url) => move_to(config, providers, provider, url, &source(config, "base_url")),
        None => Ok(()),
    }
}

/// Whether a provider goes by this name, be it one whose address lacks a part.
fn is_known(provider: &str, providers: &Providers) -> bool {
    !provider.is_empty() && !matches!(providers.get(provider), Ok(None))
}

/// `PROVIDER/NAME`, also of a provider's name alone, which means its usual model.
fn in_full(wanted: &str, providers: &Providers) -> Option<String> {
    match wanted.split_once('/') {
        Some((provider, name)) => (is_known(provider, providers) && !name.is_empty()).then(|| wanted.to_owned()),
        None => providers.catalog().provider(wanted)?.usual.as_ref().map(|usual| format!("{wanted}/{usual}")),
    }
}

fn no_usual(provider: &str) -> String {
    format!("{provider} is a provider without a usual model: write {provider}/NAME")
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

/// The model to fall back on, in full: found wanting now, and not when it is needed. `source` says where it was named.
pub fn fallback(wanted: &str, model: &str, providers: &Providers, source: &str) -> Result<String, Failure> {
    let refused = |why: &str| Failure::usage(format!("{source}: {why}"));
    let (provider, _) = wanted.split_once('/').unwrap_or((wanted, ""));
    let Some(full) = in_full(wanted, providers) else {
        return Err(refused(&match (is_known(provider, providers), wanted.contains('/')) {
            (true, false) => no_usual(provider),
            (false, true) if !provider.is_empty() => {
                format!("`{wanted}`: there is no provider `{provider}`{}", known_near(provider, providers))
            }
            _ => format!(
                "`{wanted}` names no model{}: write PROVIDER/NAME, for example {EXAMPLE}",
                known_near(wanted, providers)
            ),
        }));
    };
    let by_name = |model: &str| model.split_once('/').map(|(name, rest)| (providers.name_of(name), rest.to_owned()));
    if by_name(&full) == by_name(model) {
        return Err(refused(&format!("{full} is the model itself: name another to fall back on, or leave it away")));
    }
    let unusable = |failure: Failure| Failure { message: format!("{source} {full}: {}", failure.message), ..failure };
    check_key(&full, providers).map_err(unusable).map(|()| full)
}

fn known_near(word: &str, providers: &Providers) -> String {
    near::hint(word, providers.names().iter().map(String::as_str))
}

fn at_url(config: &Config, providers: &mut Providers, url: &str, name: Option<&str>) -> Result<String, Failure> {
    let (protocol, _) = spoken(url, None);
    let provider = if protocol == Protocol::Anthropic { "anthropic" } else { "openai" };
    move_to(config, providers, provider, url, &source(config, "base_url"))?;
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
    address::check(url, source)?;
    let Some(mut provider) = providers.moved(name, url) else { return Ok(()) };
    let own = providers.name_of(name);
    let is_said = [name, &own].iter().any(|name| config.at(&["providers", name, "protocol"]).is_some());
    if own == "openai" && !is_said {
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
            known_near(provider, providers),
            names.join(", ")
        ),
        _ => format!(
            "{source}: `{wanted}` names no model{}: write PROVIDER/NAME, for example {EXAMPLE} or ollama/qwen3",
            known_near(wanted, providers)
        ),
    })
}

pub fn source(config: &Config, key: &str) -> String {
    config.get(key).map_or_else(|| key.to_owned(), |entry| entry.source.clone())
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
            managed_config: "/nowhere/managed.toml".into(),
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
    fn a_protocol_of_openai_takes_its_key_or_another_with_headers() {
        let provider = |flags: &[&str], variables: &[(&str, &str)]| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            let config = Config { layers: vec![from_flags(&flags).unwrap()] };
            let environment = environment(variables);
            let mut providers = providers(&config, &environment).unwrap();
            model(&config, &environment, &mut providers).unwrap();
            providers.get("chat").unwrap().unwrap()
        };
        let variables = [("OPENAI_API_KEY", "sk-open"), ("K", "sk-k")];
        let is = |auth: &Auth, key: &str| matches!(auth, Auth::Key(held) if *held == ApiKey::new(key));
        let bare = provider(&["model=chat/m", "base_url=http://h:1/v1"], &variables);
        assert!(is(&bare.auth, "sk-open") && bare.key_hint == "OPENAI_API_KEY", "{bare:?}");
        let headers = "providers.chat.headers=[\"X-Team: red\"]";
        let flags = ["model=chat/m", "base_url=http://h:1/v1", headers];
        let with_headers = provider(&flags, &variables);
        assert!(is(&with_headers.auth, "sk-open"), "{with_headers:?}");
        assert_eq!(with_headers.headers, [("X-Team".to_owned(), "red".to_owned())]);
        let own = provider(&[flags.as_slice(), &["providers.chat.key_variable=K"]].concat(), &variables);
        assert!(is(&own.auth, "sk-k") && own.key_hint == "K" && own.headers.len() == 1, "{own:?}");
        // What is said of it keeps nobody from another model.
        assert!(chosen(&["model=ollama/q", headers], &[]).starts_with("ollama/q at"));
    }

    #[test]
    fn a_provider_alone_means_its_usual_model_at_any_address() {
        let at = |name: &str| chosen(&["base_url=http://h:1/v1", &format!("model={name}")], &[]);
        assert_eq!(at("anthropic"), "anthropic/claude-sonnet-5-5 at http://h:1");
        assert_eq!(at("openai"), "openai/gpt-6.1-sol at http://h:1/v1");
        assert_eq!(at("gemini"), "gemini/gemini-3.8-flash at http://h:1/v1");
        assert_eq!(at("google"), "google/gemini-3.8-flash at http://h:1/v1");
        assert_eq!(at("bedrock"), "bedrock/global.anthropic.claude-sonnet-5 at http://h:1/v1");
        assert_eq!(at("llama3"), "openai/llama3 at http://h:1/v1");
        let unusual = choose(&["base_url=http://h:1/v1", "model=ollama"], &[]).unwrap_err().message;
        assert!(unusual.contains("ollama is a provider without a usual model: write ollama/NAME"), "{unusual}");
    }

    #[test]
    fn a_fallback_is_looked_at_before_it_is_needed() {
        let environment = environment(&[("ANTHROPIC_API_KEY", "k"), ("GROQ_API_KEY", "k")]);
        let providers = providers(&Config::default(), &environment).unwrap();
        let look = |wanted: &str| fallback(wanted, "anthropic/claude-sonnet-5-5", &providers, "--fallback-model");
        assert_eq!(look("groq").unwrap(), "groq/openai/gpt-oss-120b");
        assert_eq!(look("groq/x").unwrap(), "groq/x");
        let refused = |wanted: &str| look(wanted).unwrap_err();
        let unkeyed = refused("deepseek/deepseek-chat");
        assert_eq!(unkeyed.code, Code::NoModel);
        assert!(
            unkeyed.message.contains("--fallback-model deepseek/deepseek-chat: deepseek needs a key: set DEEPSEEK")
        );
        assert!(refused("nonesuch/x").message.contains("there is no provider `nonesuch`"));
        assert!(refused("antropic").message.contains("names no model (did you mean `anthropic`?)"));
        assert!(refused("").message.contains("`` names no model: write PROVIDER/NAME"));
        assert!(refused("ollama").message.contains("write ollama/NAME"));
        assert!(refused("claude").message.contains("is the model itself"));
    }

    #[test]
    fn what_is_wrong_is_named_with_the_way_out() {
        let message = |flag: &str| choose(&[flag], &[]).unwrap_err().message;
        assert!(message("model=antropic/x").contains("`antropic` (did you mean `anthropic`?)"));
        assert!(message("model=sonnet").contains("`sonnet` names no model: write PROVIDER/NAME"));
        assert!(message("model=antropic").contains("`antropic` names no model (did you mean `anthropic`?)"));
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
