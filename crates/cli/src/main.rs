//! The `windlass` command: flags and configuration in, sessions and their events out.
//!
//! What is absent: no decision about what runs (that is the policy's), no loop (the runtime's), no protocol (the
//! model library's). It is the only crate that reads the environment, the home and the working folder.

mod address;
mod args;
mod aws;
mod bench;
mod brought;
mod cap;
mod catalog;
mod chat;
mod choose;
mod clock;
mod config;
mod cost;
mod demo;
mod desk;
mod doctor;
mod effective;
mod environment;
mod exit;
mod extensions;
mod fetch;
mod git_check;
mod git_file;
mod git_index;
mod git_settings;
mod headless;
mod heard;
mod hooks;
mod kept;
mod key_command;
mod keyboard;
mod keys;
mod lines;
mod local;
mod log;
mod mask;
mod mock;
mod models;
mod near;
mod notes;
mod output;
mod own_check;
mod policy;
mod policy_test;
mod printer;
mod project;
mod prompt;
mod question;
mod rules;
mod sandbox;
mod secrets;
mod send;
mod sessions;
mod settings;
mod signals;
mod state;
mod telemetry;
mod terminal;
mod tool;
mod trust;
mod trust_command;
mod view;
mod web;
mod words;

use args::{Ask, Flags, Line, ModelsVerb, Noun, PolicyVerb, ToolVerb};
use clap::Parser;
use desk::{Desk, Which};
use environment::Environment;
use exit::{Code, Ended, Failure};
use std::future::Future;
use std::io::{self, Write};

fn main() {
    // Before all else: this program is also what keeps the wall around a command.
    windlass_sandbox::enter(std::env::args_os().skip(1));
    let ended = run(Line::parse());
    let code = ended.unwrap_or_else(|failure| {
        if !failure.message.is_empty() {
            terminal::tell(&secrets::masked(&format!("windlass: {failure}")));
        }
        failure.code
    });
    let _ = io::stdout().flush();
    // What is acknowledged is stored, and sessions were laid down: nothing is left to be waited for.
    std::process::exit(code as i32);
}

fn run(line: Line) -> Ended {
    let Line { noun, ask, flags } = line;
    if noun.is_some() && ask != Ask::default() {
        let message = "-p, -c, -r and what goes with them begin a run of their own: leave them or the command away";
        return Err(Failure::usage(message));
    }
    if matches!(noun, Some(Noun::Mock(_) | Noun::Demo(_))) && flags != Flags::default() {
        let message = "mock and demo open no session of yours: the flags of one (--model, --yes, --config, …) say nothing there, leave them away";
        return Err(Failure::usage(message));
    }
    let environment = Environment::look()?;
    let desk = |environment| Desk::new(flags.clone(), environment);
    match noun {
        None if ask.prompt.is_some() => {
            let prompt = prompt::assemble(&ask, &environment)?;
            alone(headless::run(desk(environment)?, &ask, prompt))
        }
        None => together(chat::run(desk(environment)?, headless::which(&ask))),
        Some(Noun::Resume { id }) => together(chat::run(desk(environment)?, Which::Id(id))),
        Some(Noun::Sessions { all, json }) => alone(sessions::list(&desk(environment)?, all, json)),
        Some(Noun::Cost(bill)) => alone(cost::show(&desk(environment)?, &bill)),
        Some(Noun::Log { id, json, from }) => alone(log::show(&desk(environment)?, &id, json, from)),
        Some(Noun::State { id, at, json }) => alone(state::show(&desk(environment)?, &id, at, json)),
        Some(Noun::Send { id, text }) => alone(send::send(&desk(environment)?, &id, &text)),
        Some(Noun::Tool { verb: ToolVerb::List { json } }) => {
            tool::list(&Desk::without_store(flags, environment)?, json)
        }
        Some(Noun::Tool { verb: ToolVerb::Run { name, input, json } }) => {
            together(tool::run(&desk(environment)?, &name, &input, json))
        }
        Some(Noun::Tool { verb: ToolVerb::New { name, dir } }) => {
            let dir = dir.map_or(environment.cwd.clone(), |dir| environment.cwd.join(dir));
            extensions::scaffold(&name, &dir)
        }
        Some(Noun::Tool { verb: ToolVerb::Install { folder, component, project } }) => {
            let wish = extensions::Wish { folder, component, in_project: project };
            extensions::install(&Desk::without_store(flags, environment)?, &wish)
        }
        Some(Noun::Policy { verb: PolicyVerb::Explain { what, input, json, times } }) => {
            let form = policy::Form { as_json: json, times };
            policy::explain(&Desk::without_store(flags, environment)?, &what, input.as_deref(), form)
        }
        Some(Noun::Policy { verb: PolicyVerb::Test { file, json } }) => policy_test::run(&environment, &file, json),
        Some(Noun::Policy { verb: PolicyVerb::Replay { session, json } }) => {
            alone(policy::replay(&desk(environment)?, &session, json))
        }
        Some(Noun::Trust(wish)) => trust_command::run(&wish, &flags, &environment),
        Some(Noun::Fetch(wish)) => alone(fetch::run(&Desk::without_store(flags, environment)?, &wish)),
        Some(Noun::Models { verb }) => models(&Desk::without_store(flags, environment)?, verb),
        Some(Noun::Mock(stage)) => alone(mock::serve(stage)),
        Some(Noun::Demo(wish)) => alone(demo::run(wish, environment)),
        Some(Noun::Doctor) => alone(doctor::examine(flags, environment)),
        Some(Noun::Config) => effective::show(&Desk::without_store(flags, environment)?),
        Some(Noun::Bench { sessions, prompt }) => alone(bench::run(desk(environment)?, sessions, &prompt)),
    }
}

fn models(desk: &Desk, verb: ModelsVerb) -> Ended {
    match verb {
        ModelsVerb::List { provider, all, json } => models::list(desk, provider.as_deref(), all, json),
        ModelsVerb::Refresh { provider } => alone(models::interruptible(models::refresh(desk, provider.as_deref()))),
        ModelsVerb::Test { model, json } => alone(models::interruptible(models::test(desk, &model, json))),
    }
}

/// On this thread: the quickest start for one session.
fn alone(work: impl Future<Output = Ended>) -> Ended {
    block_on(tokio::runtime::Builder::new_current_thread(), work)
}

/// On two threads: where many sessions run, or a person must not wait for a tool.
fn together(work: impl Future<Output = Ended>) -> Ended {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2);
    block_on(builder, work)
}

fn block_on(mut builder: tokio::runtime::Builder, work: impl Future<Output = Ended>) -> Ended {
    let runtime = builder.enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::new(Code::Failed, format!("no runtime could be started: {error}")))?;
    let ended = runtime.block_on(work);
    // Dropping it would wait for blocking threads; the process ends now anyway.
    std::mem::forget(runtime);
    ended
}
