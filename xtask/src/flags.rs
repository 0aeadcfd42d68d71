//! A chore's arguments: `--name value`, `--name`, and the words between.

use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// What is left to be read of a chore's arguments.
pub struct Flags {
    chore: &'static str,
    left: Vec<String>,
}

impl Flags {
    pub fn new(chore: &'static str, args: &[String]) -> Flags {
        Flags { chore, left: args.to_vec() }
    }

    /// The value after `name`, if it was given.
    pub fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>> {
        let Some(at) = self.left.iter().position(|word| word == name) else { return Ok(None) };
        self.left.remove(at);
        if at >= self.left.len() {
            bail!("{name} wants a value");
        }
        let word = self.left.remove(at);
        let value = word.parse().ok().with_context(|| format!("{name} cannot be {word:?}"))?;
        Ok(Some(value))
    }

    /// Whether `name` was given.
    pub fn has(&mut self, name: &str) -> bool {
        let at = self.left.iter().position(|word| word == name);
        at.map(|at| self.left.remove(at)).is_some()
    }

    /// Refuses what nobody has read.
    pub fn end(self, known: &str) -> Result<()> {
        match self.left.first() {
            Some(word) => bail!("`cargo xtask {}` does not know {word:?}: it takes {known}", self.chore),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::new("bench", &line.split_whitespace().map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn values_and_switches_are_taken_in_any_order() {
        let mut flags = flags("--json out.json --quick --runs 7");
        assert_eq!(flags.value::<usize>("--runs").unwrap(), Some(7));
        assert!(flags.has("--quick"));
        assert_eq!(flags.value::<String>("--json").unwrap().as_deref(), Some("out.json"));
        assert_eq!(flags.value::<String>("--only").unwrap(), None);
        flags.end("--runs N").unwrap();
    }

    #[test]
    fn a_wrong_word_is_named_with_what_is_known() {
        assert_eq!(flags("--runs").value::<usize>("--runs").unwrap_err().to_string(), "--runs wants a value");
        let error = flags("--runs many").value::<usize>("--runs").unwrap_err();
        assert_eq!(error.to_string(), r#"--runs cannot be "many""#);
        let error = flags("--run 7").end("--runs N").unwrap_err();
        assert_eq!(error.to_string(), r#"`cargo xtask bench` does not know "--run": it takes --runs N"#);
    }
}
