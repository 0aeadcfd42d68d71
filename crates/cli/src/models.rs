//! `windlass models`: which there are, what is new, and what one can do.

mod checks;
mod learnt;
mod list;
mod refresh;
mod test;

pub use list::list;
pub use refresh::refresh;
pub use test::test;

use crate::desk::Desk;
use crate::exit::{Code, Ended, Failure};
use crate::near;
use crate::signals::Signals;
use windlass::llm::{Http, HttpOptions};
use windlass::{Provider, Providers};

/// Does `work` until it is done or somebody asks for an end: what it waits for is dropped then, and a command that prints
/// a key dies with it.
pub async fn interruptible(work: impl Future<Output = Ended>) -> Ended {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = work => ended,
        _ = signals.next() => Ok(Code::Interrupted),
    }
}

/// The provider of this name, or why it can't be spoken to.
fn provider(providers: &Providers, name: &str) -> Result<Provider, Failure> {
    match providers.get(name) {
        Err(lacks) => Err(Failure::new(Code::NoModel, lacks)),
        Ok(Some(provider)) if provider.base_url.is_empty() => Err(Failure::usage(format!(
            "{name} has no address: give it one with --base-url URL or [providers.{name}] base_url = \"URL\""
        ))),
        Ok(Some(provider)) => Ok(provider),
        Ok(None) => {
            let names = providers.names();
            let hint = near::hint(name, names.iter().map(String::as_str));
            Err(Failure::usage(format!("there is no provider `{name}`{hint}; `windlass models list --all` shows them")))
        }
    }
}

/// Connections to `provider`, with the clocks and the proxy that hold here.
fn http(desk: &Desk, provider: &Provider) -> Result<Http, Failure> {
    let proxy = desk.environment.proxy_for(&provider.base_url).map(str::to_owned);
    let options = HttpOptions { clocks: desk.settings.clocks, proxy, ..HttpOptions::default() };
    Http::new(options).map_err(|error| Failure::usage(error.to_string()))
}
