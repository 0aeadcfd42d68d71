//! `windlass fetch` and the `web_fetch` tool against a table of URLs: what is refused, what is not, and what servers on
//! loopback heard of it.

mod common;
mod pages;

use common::*;
use pages::Pages;
use serde::Deserialize;
use serde_json::{Value, json};

const TABLES: [(&str, &str); 6] = [
    ("forms", include_str!("urls/forms.toml")),
    ("addresses", include_str!("urls/addresses.toml")),
    ("names", include_str!("urls/names.toml")),
    ("redirects", include_str!("urls/redirects.toml")),
    ("answers", include_str!("urls/answers.toml")),
    ("tool", include_str!("urls/tool.toml")),
];

/// Kinds of errors that are a rule's and no failure of the network.
const REFUSALS: [&str; 9] =
    ["url", "scheme", "userinfo", "host", "port", "address", "downgrade", "elsewhere", "redirects"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    via: Via,
    row: Vec<Row>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Via {
    #[default]
    Fetch,
    Tool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    url: String,
    allow: Option<Vec<String>>,
    #[serde(default)]
    resolve: Vec<String>,
    #[serde(default)]
    flags: Vec<String>,
    /// `ok`, `status` (a page, but of an error), `usage`, or the error's kind.
    expect: String,
    /// In the text, or in the error's message.
    has: Option<String>,
    lacks: Option<String>,
    title: Option<String>,
    #[serde(rename = "final")]
    final_url: Option<String>,
    bytes: Option<u64>,
    truncated: Option<bool>,
    status: Option<u64>,
    asked: Option<Asked>,
}

/// What the servers heard: the requests, or how many.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Asked {
    Count(usize),
    Each(Vec<String>),
}

/// The result of a row, whichever way it was run.
struct Seen {
    code: i32,
    /// The text of the page, or the error's message; what a wrong use says on stderr.
    text: String,
    /// The page, or null.
    page: Value,
    kind: String,
}

#[test]
fn the_table_of_urls_holds() {
    let (stage, pages) = (Stage::new(HELLO), Pages::serve());
    let (mut rows, mut passed, mut wrong) = (0, 0, vec![]);
    for (table, text) in TABLES {
        let text = text.replace("PORT", &pages.port.to_string());
        let Table { via, row } = toml::from_str(&text).unwrap_or_else(|error| panic!("{table}: {error}"));
        for row in row {
            rows += 1;
            passed += usize::from(row.expect == "ok");
            pages.forget();
            let seen = run(&stage, via, &row);
            if let Err(why) = check(&row, &seen, &pages.heard()) {
                wrong.push(format!("{table}: {}: {}: {why}", row.name, row.url));
            }
        }
    }
    println!("{rows} rows, {passed} of them allowed, {} wrong, 0 skipped", wrong.len());
    assert!(wrong.is_empty(), "{} of {rows} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 100 && passed >= 25, "{rows} rows, {passed} allowed");
}

fn run(stage: &Stage, via: Via, row: &Row) -> Seen {
    match via {
        Via::Fetch => run_fetch(stage, row),
        Via::Tool => run_tool(stage, row),
    }
}

fn run_fetch(stage: &Stage, row: &Row) -> Seen {
    let mut arguments = vec!["fetch".to_owned(), "--json".into()];
    for host in row.allow.iter().flatten() {
        arguments.extend(["--allow-host".into(), host.clone()]);
    }
    let usual = "pages.test=127.0.0.1".to_owned();
    let is_given = row.resolve.iter().any(|answer| answer.starts_with("pages.test="));
    for answer in row.resolve.iter().chain(Some(&usual).filter(|_| !is_given)) {
        arguments.extend(["--resolve".into(), answer.clone()]);
    }
    arguments.extend(row.flags.iter().cloned());
    arguments.extend(["--".into(), row.url.clone()]);
    let told = stage.run_bare(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let page: Value = serde_json::from_str(&told.out).unwrap_or_default();
    let text = [&page["text"], &page["error"]["message"]].into_iter().find_map(Value::as_str).unwrap_or(&told.err);
    let kind = page["error"]["kind"].as_str().unwrap_or_default().to_owned();
    Seen { code: told.code, text: text.to_owned(), kind, page }
}

fn run_tool(stage: &Stage, row: &Row) -> Seen {
    let input = json!({"url": row.url}).to_string();
    let mut arguments: Vec<String> = ["tool", "run", "web_fetch", &input, "--json", "--yes"].map(String::from).into();
    if let Some(hosts) = &row.allow {
        let list = toml::Value::from(hosts.clone());
        arguments.extend(["--config".into(), format!("tools.web_fetch.allowed_hosts={list}")]);
    }
    arguments.extend(row.flags.iter().cloned());
    let told = stage.run_bare(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let output: Value = serde_json::from_str(&told.out).unwrap_or_default();
    let kind = output["value"]["error"]["kind"].as_str().unwrap_or_default().to_owned();
    let text = output["text"].as_str().unwrap_or(&told.err).to_owned();
    // A refusal is an error of the tool, whose code says no more.
    let code = if REFUSALS.contains(&kind.as_str()) && told.code == 1 { 3 } else { told.code };
    Seen { code, text, kind, page: output["value"].clone() }
}

fn check(row: &Row, seen: &Seen, heard: &[String]) -> Result<(), String> {
    let same = |what: &str, wanted: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug| {
        let (wanted, got) = (format!("{wanted:?}"), format!("{got:?}"));
        if wanted == got {
            Ok(())
        } else {
            Err(format!("{what} should be {wanted}, is {got}; it said: {}", cut(&seen.text)))
        }
    };
    let (kind, code) = match row.expect.as_str() {
        "ok" => ("", 0),
        "status" => ("", 1),
        "usage" => ("", 2),
        kind if REFUSALS.contains(&kind) => (kind, 3),
        kind => (kind, 1),
    };
    same("the kind", &kind, &seen.kind.as_str())?;
    same("the exit code", &code, &seen.code)?;
    if let Some(text) = row.has.iter().find(|text| !seen.text.contains(text.as_str())) {
        return Err(format!("lacks {text:?}: {}", cut(&seen.text)));
    }
    if let Some(text) = row.lacks.iter().find(|text| seen.text.contains(text.as_str())) {
        return Err(format!("should lack {text:?}: {}", cut(&seen.text)));
    }
    for (field, wanted) in [
        ("title", row.title.as_ref().map(|text| json!(text))),
        ("final_url", row.final_url.as_ref().map(|text| json!(text))),
        ("bytes", row.bytes.map(|bytes| json!(bytes))),
        ("truncated", row.truncated.map(|truth| json!(truth))),
        ("status", row.status.map(|status| json!(status))),
    ] {
        wanted.map_or(Ok(()), |wanted| same(field, &wanted, &seen.page[field]))?;
    }
    match &row.asked {
        Some(Asked::Count(count)) => same("the number of requests", count, &heard.len()),
        Some(Asked::Each(requests)) => same("what was requested", requests, &heard.to_vec()),
        // Who is refused is not even dialled.
        None if REFUSALS.contains(&kind) || code == 2 => {
            same("what was requested", &Vec::<String>::new(), &heard.to_vec())
        }
        None => Ok(()),
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}

#[test]
fn a_page_goes_to_stdout_and_what_else_is_to_say_to_stderr() {
    let (stage, pages) = (Stage::new(HELLO), Pages::serve());
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", pages.port);
    let told = stage.run_bare(&["fetch", &at("/hello"), "--allow-host", "127.0.0.1"]).code(0);
    assert_eq!((told.out.trim_end(), told.err.as_str()), (format!("hello at 127.0.0.1:{}", pages.port).as_str(), ""));
    let told = stage.run_bare(&["fetch", &at("/to?/hello"), "--allow-host", "127.0.0.1"]).code(0);
    told.err_has("found at http://127.0.0.1:").err_has("/hello after 1 redirect");
    let cut = ["fetch", &at("/big?100"), "--allow-host", "127.0.0.1", "--max-bytes", "10"];
    stage.run_bare(&cut).code(0).err_has("the page goes on after 10 bytes; --max-bytes reads more");
    let told = stage.run_bare(&["fetch", &at("/hello")]).code(3);
    assert_eq!(told.out, "");
    told.err_has("no host is allowed yet: name each with --allow-host HOST");
}

#[test]
fn the_configured_hosts_hold_where_no_flag_names_one() {
    let (stage, pages) = (Stage::new(HELLO), Pages::serve());
    stage.configure("[tools.web_fetch]\nallowed_hosts = [\"127.0.0.2\"]\n");
    let at = |host: &str| format!("http://{host}:{}/hello", pages.port);
    stage.run_bare(&["fetch", &at("127.0.0.2")]).code(0).out_has("hello");
    stage.run_bare(&["fetch", &at("127.0.0.1")]).code(3).err_has("127.0.0.1 is not an allowed host");
    stage.run_bare(&["fetch", &at("127.0.0.2"), "--allow-host", "127.0.0.1"]).code(3);
    stage.configure("[tools.web_fetch]\nallowed_hosts = [\"no host\"]\n");
    stage.run_bare(&["fetch", &at("127.0.0.2")]).code(2).err_has("config.toml:2: `no host` is no host");
}

#[test]
fn the_tool_asks_before_it_reaches_the_network() {
    let (stage, pages) = (Stage::new(HELLO), Pages::serve());
    let input = json!({"url": format!("http://127.0.0.1:{}/hello", pages.port)}).to_string();
    let listed = "tools.web_fetch.allowed_hosts=['127.0.0.1']";
    let told = stage.run_bare(&["tool", "run", "web_fetch", &input, "--config", listed]).code(3);
    told.err_has("web_fetch needs approval");
    assert_eq!(pages.heard(), Vec::<String>::new());
    stage.run_bare(&["tool", "run", "web_fetch", &input, "--config", listed, "--allow", "web_fetch"]).code(0);
    assert_eq!(pages.heard(), ["127.0.0.1/hello"]);
}

#[test]
fn a_search_is_offered_once_it_is_configured() {
    let (stage, pages) = (Stage::new(HELLO), Pages::serve());
    let list = stage.run_bare(&["tool", "list"]).code(0);
    assert!(list.out.contains("web_fetch(url, [raw])") && !list.out.contains("web_search"), "{}", list.out);
    let base = format!("http://127.0.0.1:{}/searx", pages.port);
    stage.configure(&format!(
        "[web_search]\nbackend = \"searxng\"\nbase_url = \"{base}\"\nkey_command = \"echo sk-9\"\n"
    ));
    stage.run_bare(&["tool", "list"]).code(0).out_has("web_search(query, [max_results])");
    let told = stage.run_bare(&["tool", "run", "web_search", r#"{"query": "winches"}"#, "--yes"]).code(0);
    told.out_has("1. Winches\n   https://winches.example/\n   all about them").out_has("Bearer sk-9");
    stage.configure("[web_search]\nbackend = \"brave\"\n");
    let told = stage.run_bare(&["tool", "run", "web_search", r#"{"query": "winches"}"#, "--yes"]).code(1);
    told.err_has("BRAVE_API_KEY is not set");
    stage.configure("[web_search]\nbackend = \"searxng\"\n");
    stage.run_bare(&["tool", "list"]).code(2).err_has("config.toml:2: SearXNG is a server of your own: say where");
}
