use super::*;
use crate::Prices;
use std::collections::BTreeSet;

fn all() -> Vec<Arc<ProviderInfo>> {
    Catalog::default().providers()
}

fn refused(name: &str, text: &str) -> String {
    Catalog::default().with(name, text).unwrap_err().to_string()
}

#[test]
fn every_file_is_read_and_there_are_enough() {
    let providers = all();
    assert!(providers.len() >= 24, "{} providers", providers.len());
    for provider in &providers {
        assert!(
            provider.source.is_some() && provider.checked.is_some(),
            "{} says not where it was read",
            provider.name
        );
        assert_eq!(
            provider.models.is_empty(),
            provider.local,
            "{}: only local ones leave their models open",
            provider.name
        );
    }
}

#[test]
fn names_are_in_order_and_stand_for_one_provider() {
    let catalog = Catalog::default();
    assert!(catalog.names().is_sorted());
    let mut names = BTreeSet::new();
    for provider in catalog.providers() {
        for name in [&provider.name].into_iter().chain(&provider.aliases) {
            assert!(names.insert(name.clone()), "{name} stands for two providers");
            assert_eq!(
                Catalog::default().provider(name).unwrap().name,
                provider.name,
                "{name} is found without the rest"
            );
        }
    }
}

#[test]
fn addresses_are_safe_and_parts_can_be_filled() {
    for provider in all() {
        let scheme = if provider.local { "http://127.0.0.1:" } else { "https://" };
        assert!(provider.base_url.starts_with(scheme), "{}", provider.base_url);
        assert!(!provider.base_url.ends_with('/'), "{}", provider.base_url);
        let address = provider.address(|_| Some("x".into())).unwrap();
        assert!(!address.contains(['{', '}']), "{address}");
        let keyless = provider.key_variables.is_empty() && provider.key_command.is_none();
        assert_eq!(keyless, provider.local, "{} needs a key, or is local", provider.name);
    }
}

#[test]
fn the_usual_model_is_one_of_the_models_and_calls_tools() {
    for provider in all().iter().filter(|provider| !provider.local) {
        let usual = provider.usual.as_deref().expect("each has one");
        let model = provider.models.iter().find(|model| model.name == usual).expect(usual);
        assert!(model.can.contains(&Ability::Tools) || provider.name == "perplexity", "{usual}");
    }
}

#[test]
fn prices_and_limits_are_sane() {
    for model in all().iter().flat_map(|provider| &provider.models) {
        let name = format!("{}/{}", model.provider, model.name);
        assert!(model.window >= model.max_output || model.window.is_none(), "{name}");
        assert!(model.window.is_none_or(|window| (8_000..=10_000_000).contains(&window)), "{name}");
        assert!(model.effort.is_empty() || model.can.contains(&Ability::Thinking), "{name}");
        let Some(prices) = model.prices else { continue };
        assert!(0 < prices.input && prices.input <= prices.output, "{name}");
        assert!(prices.cache_read <= prices.input, "{name}");
        assert!(prices.output <= 200_000_000, "{name}: more than any model costs");
        let Some(above) = prices.above else { continue };
        assert!(prices.input < above.input && prices.output < above.output && above.input <= above.output, "{name}");
        assert!(above.cache_read <= above.input && prices.cache_read <= above.cache_read, "{name}");
        assert!(model.window.is_some_and(|window| above.tokens < window), "{name}");
    }
}

#[test]
fn one_provider_is_asked_for_and_one_file_is_read() {
    let catalog = Catalog::default();
    assert_eq!(catalog.provider("gemini").unwrap().name, "google");
    assert!(catalog.provider("antropic").is_none());
    let read = catalog.entries.iter().filter(|entry| entry.read.get().is_some());
    assert_eq!(read.map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["google"]);
}

#[test]
fn a_model_is_found_with_its_date_version_and_region() {
    let catalog = Catalog::default();
    let found = |name: &str| catalog.model(name).map(|model| format!("{}/{}", model.provider, model.name));
    assert_eq!(found("anthropic/claude-sonnet-4-5-20250929").as_deref(), Some("anthropic/claude-sonnet-4-5"));
    assert_eq!(found("gemini/gemini-2.5-pro").as_deref(), Some("google/gemini-2.5-pro"));
    assert_eq!(
        found("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0").as_deref(),
        Some("bedrock/global.anthropic.claude-haiku-4-5-20251001-v1:0")
    );
    assert_eq!(found("vertex/claude-haiku-4-5").as_deref(), Some("vertex/claude-haiku-4-5@20251001"));
    assert_eq!(found("openrouter/z-ai/glm-5.2").as_deref(), Some("openrouter/z-ai/glm-5.2"));
    assert_eq!(found("anthropic/claude-sonnet"), None);
    assert_eq!(found("claude-sonnet-4-5"), None);
}

#[test]
fn a_users_file_lies_over_ours() {
    let text = r#"
        base_url = "https://gateway.example.com"
        usual = "claude-own"
        [[model]]
        name = "claude-sonnet-4-5"
        input = 2.5
        quirks = ["no-temperature"]
        [[model]]
        name = "claude-own"
        window = 32_000
    "#;
    let ours = Catalog::default();
    let catalog = ours.clone().with("claude", text).unwrap();
    let provider = catalog.provider("anthropic").unwrap();
    assert_eq!(provider.base_url, "https://gateway.example.com");
    assert_eq!(provider.protocol, WireProtocol::Anthropic);
    assert_eq!(provider.usual.as_deref(), Some("claude-own"));
    let sonnet = catalog.model("anthropic/claude-sonnet-4-5").unwrap();
    assert_eq!(sonnet.prices, Some(Prices::from_dollars(2.5, 15.0, 0.3, 3.75).unwrap()));
    assert_eq!((sonnet.window, sonnet.quirks.len()), (Some(200_000), 1));
    assert_eq!(catalog.model("anthropic/claude-own").unwrap().prices, None);
    assert_eq!(catalog.names(), ours.names());
    assert!(ours.model("anthropic/claude-own").is_none());
}

#[test]
fn a_model_whose_abilities_lack_pictures_refuses_them() {
    let text = r#"
        [[model]]
        name = "words"
        can = ["tools"]
        [[model]]
        name = "sight"
        can = ["images"]
        [[model]]
        name = "untold"
    "#;
    let catalog = Catalog::default().with("ollama", text).unwrap();
    let refused = |model: &str| {
        let quirks = catalog.model(model).unwrap().quirks;
        [Quirk::NoImages, Quirk::NoPdfs].map(|quirk| quirks.contains(&quirk))
    };
    assert_eq!(refused("ollama/words"), [true, true]);
    assert_eq!(refused("ollama/sight"), [false, true]);
    assert_eq!(refused("ollama/untold"), [false, false]);
    assert_eq!(refused("anthropic/claude-sonnet-4-5"), [false, false]);
    assert_eq!(refused("openai/gpt-6-sol"), [false, false], "Responses knows documents");
    // What is laid over decides: whoever knows better says so.
    let better = catalog.clone().with("ollama", "[[model]]\nname = \"words\"\ncan = [\"images\", \"pdfs\"]").unwrap();
    assert!(!better.model("ollama/words").unwrap().quirks.contains(&Quirk::NoImages));
}

#[test]
fn a_second_file_lies_over_the_first() {
    let first =
        Catalog::default().with("ollama", "[[model]]\nname = \"qwen\"\nwindow = 8_192\ncan = [\"tools\"]").unwrap();
    let both = first.with("ollama", "[[model]]\nname = \"qwen\"\ntool_calls = \"text\"").unwrap();
    let model = both.model("ollama/qwen").unwrap();
    assert_eq!((model.window, model.tool_calls), (Some(8_192), ToolCalls::Text));
    assert!(model.can.contains(&Ability::Tools) && model.quirks.contains(&Quirk::ReasoningEffort));
}

#[test]
fn a_new_name_defines_a_provider() {
    let text = r#"
        aliases = ["house"]
        protocol = "chat"
        base_url = "http://{host}:9000/v1"
        fill = { host = ["HOUSE_HOST", "HOSTNAME"] }
        [[model]]
        name = "large"
        input = 1
        output = 4
        above = { tokens = 100_000, input = 2, output = 8 }
    "#;
    let catalog = Catalog::default().with("acme", text).unwrap();
    assert!(catalog.names().is_sorted() && catalog.names().contains(&"acme"));
    let house = catalog.provider("house").unwrap();
    assert_eq!(house.title, "acme");
    let set = |name: &str| (name == "HOSTNAME").then(|| "box".to_owned()).or(Some(String::new()));
    assert_eq!(house.address(set).unwrap(), "http://box:9000/v1");
    // What is read from a cache has no price of its own here: it costs what other input costs.
    let prices = Prices::from_dollars(1.0, 4.0, 1.0, 1.0).unwrap();
    let long = Prices::from_dollars(2.0, 8.0, 2.0, 2.0).unwrap();
    assert_eq!(catalog.model("acme/large").unwrap().prices, Some(prices.with_above(100_000, long)));
}

#[test]
fn an_address_says_what_it_needs() {
    let catalog = Catalog::default();
    let provider = catalog.provider("bedrock").unwrap();
    insta::assert_snapshot!(provider.address(|_| None).unwrap_err(), @"the address of `bedrock` needs {region}: set AWS_REGION or AWS_DEFAULT_REGION, or give the provider a base_url without it");
    let proxied = catalog.with("bedrock", "base_url = \"https://proxy.example.com\"").unwrap();
    assert_eq!(proxied.provider("aws").unwrap().address(|_| None).unwrap(), "https://proxy.example.com");
}

#[test]
fn a_bad_file_is_told_apart_by_line_key_and_way_out() {
    insta::assert_snapshot!(refused("acme", "protocol = \"chat\""), @r#"catalog file `acme`: base_url is absent: a new provider needs one, such as "https://api.example.com/v1""#);
    insta::assert_snapshot!(refused("acme", "base_url = \"https://x.example\""), @r#"catalog file `acme`: protocol is absent: a new provider needs one, such as "chat" or "anthropic""#);
    insta::assert_snapshot!(refused("openai", "title = \"x\"\nquirks = [\"odd\"]"), @r#"catalog file `openai`, line 2 (`quirks = ["odd"]`): unknown variant `odd`, expected one of `max-completion-tokens`, `no-stream-usage`, `cache-key`, `cache-marks`, `reasoning-effort`, `enable-thinking`, `thinking-switch`, `reasoning-back`, `schema-as-json`, `short-ids`, `no-temperature`, `no-thinking`, `adaptive-thinking`, `bound-thinking`, `no-images`, `no-pdfs`"#);
    insta::assert_snapshot!(refused("openai", "prise = 1"), @"catalog file `openai`, line 1 (`prise = 1`): unknown field `prise`, expected one of `title`, `aliases`, `protocol`, `base_url`, `key_variables`, `key_command`, `local`, `quirks`, `usual`, `source`, `checked`, `fill`, `model`");
    insta::assert_snapshot!(refused("openai", "base_url = \"ftp://x\""), @r#"catalog file `openai`: base_url = "ftp://x" is no address: begin it with https:// or http://"#);
    insta::assert_snapshot!(refused("openai", "base_url = \"https://{zone}.example\""), @r#"catalog file `openai`: nothing fills {zone} in base_url: write fill = { zone = ["VARIABLE"] }"#);
    insta::assert_snapshot!(refused("bedrock", "fill = { region = [] }"), @"catalog file `bedrock`: fill.region names no environment variable: give one at least");
    insta::assert_snapshot!(refused("openai", "aliases = [\"gemini\"]"), @r#"catalog file `openai`: "gemini" already stands for `google`: choose another alias"#);
    insta::assert_snapshot!(refused("a/b", "protocol = \"chat\"\nbase_url = \"https://x.example\""), @r#"catalog file `a/b`: "a/b" is no name of a provider: leave out slashes and spaces"#);
}

#[test]
fn a_bad_model_is_named() {
    let refused = |model: &str| refused("ollama", &format!("[[model]]\nname = \"m\"\n{model}"));
    insta::assert_snapshot!(refused("input = -1\noutput = 2"), @"catalog file `ollama`, model `m`: a price of -1 for input is none: give US dollars per million tokens, from 0 to 1000000");
    insta::assert_snapshot!(refused("input = 1"), @"catalog file `ollama`, model `m`: input has a price and output has none: give both, or neither");
    insta::assert_snapshot!(refused("cache_read = 1"), @"catalog file `ollama`, model `m`: it has further prices but none for input and output: give these too");
    insta::assert_snapshot!(refused("window = 0"), @"catalog file `ollama`, model `m`: window = 0 leaves no room: give its tokens, or leave the key out where unknown");
    insta::assert_snapshot!(refused("window = \"big\""), @r#"catalog file `ollama`, line 3 (`window = "big"`): invalid type: string "big", expected u64"#);
    insta::assert_snapshot!(refused("effort = [\"hard\"]"), @r#"catalog file `ollama`, model `m`: "hard" is no word of effort: known are none, minimal, low, medium, high, xhigh, max"#);
    insta::assert_snapshot!(refused("[[model]]\nname = \"m\""), @"catalog file `ollama`: model `m` is there twice: write it once");
    insta::assert_snapshot!(refused("[[model]]\nwindow = 1"), @r#"catalog file `ollama`, model ``: a model needs a name: write name = "…" under [[model]]"#);
    insta::assert_snapshot!(refused("[[model]]\nname = \"\""), @r#"catalog file `ollama`, model ``: a model needs a name: write name = "…" under [[model]]"#);
}
