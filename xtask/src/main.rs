//! The project's own chores, as `cargo xtask NAME`.

mod bench;
mod clients;
mod crash;
mod demo;
mod dist;
mod docs;
mod faults;
mod flags;
mod machine;
mod mock;
mod project;
mod scan;
mod shell;
mod sim;
mod spec;
mod test;
mod tidy;
mod walls;

use anyhow::{Result, bail};
use std::process::ExitCode;

/// A chore: its name, what it does, and its door.
type Chore = (&'static str, &'static str, fn(&[String]) -> Result<()>);

const CHORES: [Chore; 12] = [
    ("demo", "watch an agent change a file, without a key", demo::run),
    ("test", "set up the machine, then check everything", test::run),
    ("docs", "run the commands of the README and the guide", docs::run),
    ("tidy", "check what the house asks of its code", tidy::run),
    ("spec", "print every requirement with its tests", spec::run),
    ("sim", "let chance at the kernel", sim::run),
    ("crash", "kill the agent at random and look what is lost", crash::run),
    ("faults", "play the model's bad days against the command", faults::run),
    ("shell", "hold dangerous and benign calls against the policy", shell::run),
    ("walls", "try to get through the sandbox", walls::run),
    ("bench", "measure what the agent costs, beside the floor", bench::run),
    ("dist", "build the archive that is handed out", dist::run),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else { bail!("which chore?\n{}", usage()) };
    match CHORES.iter().find(|(chore, ..)| chore == name) {
        Some((_, _, run)) => run(rest),
        None if ["help", "--help", "-h"].contains(&name.as_str()) => {
            println!("{}", usage());
            Ok(())
        }
        None => bail!("there is no chore {name:?}\n{}", usage()),
    }
}

fn usage() -> String {
    let lines: Vec<String> = CHORES.iter().map(|(name, what, _)| format!("  cargo xtask {name:<7} {what}")).collect();
    lines.join("\n")
}
