//! `windlass fetch`: a page, through the same checks as the tool, within the hosts that are named.

use crate::args::PageWish;
use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::terminal::{harmless, print, print_json, tell};
use crate::web::USER_AGENT;
use crate::words::count;
use serde_json::json;
use windlass_web::{FetchError, Fetcher, Form, Hosts, Limits, Page, Reach, Reason, Resolver};

pub async fn run(desk: &Desk, wish: &PageWish) -> Ended {
    let fetcher = Fetcher {
        reach: reach(desk, wish)?,
        resolver: Resolver::with(&wish.resolve).map_err(|why| Failure::usage(format!("--resolve {why}")))?,
        limits: limits(desk, wish),
        user_agent: USER_AGENT.into(),
    };
    let form = if wish.raw { Form::Source } else { Form::Readable };
    match fetcher.fetch(&wish.url, form).await {
        Ok(page) => Ok(show(&page, wish.json)),
        Err(error) => fail(with_way_out(error, &fetcher.reach), wish.json),
    }
}

/// The hosts named by flags, else the configured ones, else none: nobody is asked here.
fn reach(desk: &Desk, wish: &PageWish) -> Result<Reach, Failure> {
    match &desk.settings.web.reach {
        listed @ Reach::Listed(_) if wish.allow_host.is_empty() => Ok(listed.clone()),
        _ => {
            let hosts = Hosts::parse(&wish.allow_host);
            hosts.map(Reach::Listed).map_err(|why| Failure::usage(format!("--allow-host {why}")))
        }
    }
}

fn limits(desk: &Desk, wish: &PageWish) -> Limits {
    let usual = desk.settings.web.limits;
    Limits {
        max_bytes: wish.max_bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usual.max_bytes),
        total_ms: wish.timeout_ms.unwrap_or(usual.total_ms),
        ..usual
    }
}

/// A refusal names the flag that would allow what was refused.
fn with_way_out(error: FetchError, reach: &Reach) -> FetchError {
    let hint = match (error.reason, error.address) {
        (Reason::Host, _) if *reach == Reach::Listed(Hosts::default()) => {
            "; no host is allowed yet: name each with --allow-host HOST, or --allow-host '*' for any public host"
                .to_owned()
        }
        (Reason::Host | Reason::Port, _) => "; the flag for it is --allow-host HOST[:PORT]".into(),
        (Reason::Address, Some(address)) => format!("; the flag for it is --allow-host {address}"),
        _ => return error,
    };
    FetchError { message: error.message + &hint, ..error }
}

fn show(page: &Page, as_json: bool) -> Code {
    if as_json {
        print_json(&format!("{}\n", json!(page)));
    } else {
        print(&format!("{}\n", harmless(page.text.trim_end())));
        if page.final_url != page.url && page.hops.len() > 1 {
            let redirects = count(page.hops.len() as u64 - 1, "redirect");
            tell(&format!("windlass: found at {} after {redirects}", page.final_url));
        }
        if page.truncated {
            tell(&format!("windlass: the page goes on after {} bytes; --max-bytes reads more", page.bytes));
        }
        if page.status >= 400 {
            tell(&format!("windlass: the server answered {}", page.status));
        }
    }
    if page.status >= 400 { Code::Failed } else { Code::Done }
}

fn fail(error: FetchError, as_json: bool) -> Ended {
    let code = if error.reason.is_refusal() { Code::Denied } else { Code::Failed };
    if as_json {
        print_json(&format!("{}\n", json!({"error": error})));
        return Ok(code);
    }
    Err(Failure::new(code, harmless(&error.message)))
}
