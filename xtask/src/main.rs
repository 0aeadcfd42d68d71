//! The project's own chores, as `cargo xtask NAME`.

mod flags;
mod project;
mod scan;
mod sim;
mod tidy;

use anyhow::{Result, bail};

/// A chore: its name, what it does, and its door.
type Chore = (&'static str, &'static str, fn(&[String]) -> Result<()>);

const CHORES: [Chore; 2] =
    [("tidy", "check what the house asks of its code", tidy::run), ("sim", "let chance at the kernel", sim::run)];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
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
