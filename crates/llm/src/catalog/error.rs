//! What can be wrong with a file of the catalog.

use crate::PriceError;

/// Why a file of the catalog is not taken, or an address not known.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CatalogError {
    /// Not TOML, or a key or word that the catalog does not have.
    #[error("catalog file `{file}`, line {line} (`{says}`): {problem}")]
    Unreadable { file: String, line: usize, says: String, problem: String },
    #[error("catalog file `{file}`: {what}")]
    Refused { file: String, what: String },
    #[error("catalog file `{file}`, model `{model}`: {what}")]
    Model { file: String, model: String, what: String },
    #[error("catalog file `{file}`, model `{model}`: {error}")]
    Price { file: String, model: String, error: PriceError },
    #[error(
        "the address of `{provider}` needs {{{part}}}: set {variables}, or give the provider a base_url without it"
    )]
    Unfilled { provider: String, part: String, variables: String },
}
