//! Tools that reach the web: pages fetched behind an address check, and searches.
//!
//! One fetch, hop by hop: a [`Target`](target) is read from the URL and judged by the list of hosts, its name is
//! looked up once, every address of the answer is judged, and only those addresses are dialled. Each redirect begins
//! anew at the first of these.
//!
//! What is absent: no rule is read and nobody is asked (that is the policy's), no cookie is kept, no password is sent,
//! no script is run, nothing is cached, no proxy is used for pages (it would look names up by itself), and no
//! environment is read.

mod address;
mod backend;
mod body;
mod clean;
mod dial;
mod error;
mod fetch;
mod hosts;
mod markdown;
mod resolver;
mod search;
mod search_tool;
mod tags;
mod target;
mod tool;

pub use address::{canonical, not_public};
pub use backend::Backend;
pub use error::{FetchError, Reason};
pub use fetch::{Fetcher, Form, Hop, Limits, MAX_HEADER_BYTES, Page};
pub use hosts::{Hosts, Reach};
pub use resolver::Resolver;
pub use search::{Found, Key, Search, SearchError};
pub use search_tool::WebSearch;
pub use tool::WebFetch;

/// The names of this crate's tools.
pub const TOOL_NAMES: [&str; 2] = [tool::NAME, search_tool::NAME];
