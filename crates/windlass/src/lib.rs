//! Windlass as a library: build an agent, submit a prompt, follow its events.
//!
//! ```no_run
//! let agent = windlass::Agent::builder().cwd(std::env::current_dir()?).model("ollama/qwen3").build()?;
//! let answer = agent.run("What is in this folder?")?;
//! println!("{}", answer.text);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A session is an append-only log of events: whatever a program shows, counts or stores can be had from the frames
//! of [`Session::submit`]. What is absent: no environment, home or configuration file is read here; keys, addresses
//! and folders are given to the [`AgentBuilder`].

mod agent;
mod answer;
mod builder;
mod prompt;
mod providers;
mod session;
mod world;

pub use agent::Agent;
pub use answer::{Answer, RunError};
pub use builder::{AgentBuilder, BuildError};
pub use prompt::Prompt;
pub use providers::{KeyCommand, Provider, Providers, Variable};
pub use session::{Session, Turn};
pub use windlass_llm::WireProtocol as Protocol;

pub use async_trait::async_trait;
pub use windlass_hooks as hooks;
pub use windlass_kernel as kernel;
pub use windlass_llm as llm;
pub use windlass_policy as policy;
pub use windlass_prompt as prompts;
pub use windlass_runtime as runtime;
pub use windlass_store as store;
pub use windlass_tools as tools;

/// The guide's page on the library, so that its code is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Guide;
