//! `cargo xtask docs`: runs every command of the README and the guide, and looks for the output they promise.

mod page;

use crate::flags::Flags;
use crate::mock::Mock;
use crate::project::{self, Project, Scratch};
use anyhow::{Context, Result, bail};
use page::{Block, Mark};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Seconds that one block may take.
const BLOCK_SECONDS: u64 = 60;
/// Milliseconds between looks at whether a block has ended.
const POLL_MS: u64 = 5;

/// How many blocks held, and how many did not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    pub passed: usize,
    pub failed: usize,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut flags = Flags::new("docs", args);
    let build = !flags.has("--built");
    flags.end("--built")?;
    let project = Project::find()?;
    if build {
        project::run(project.cargo().args(["build", "--package", "windlass-cli"]))?;
    }
    let sum = check(&project)?;
    if sum.failed > 0 {
        bail!("docs: {} of {} command blocks fail", sum.failed, sum.passed + sum.failed);
    }
    Ok(())
}

/// Runs the blocks of every page against the debug build.
pub fn check(project: &Project) -> Result<Sum> {
    let mut pages = vec![project.root.join("README.md")];
    pages.extend(project::files(&project.root.join("docs/guide"), &["md"])?);
    let mut sum = Sum::default();
    for page in pages {
        let name = project.relative(&page).display().to_string();
        let blocks = page::blocks(&project::read(&page)?).with_context(|| name.clone())?;
        let stage = Stage::set(project, &name)?;
        for block in blocks {
            let place = format!("{name}:{}", block.line);
            match stage.play(&block) {
                Ok(word) => {
                    println!("ok    {place}  {word}");
                    sum.passed += usize::from(block.mark != Mark::Plain);
                }
                Err(error) => {
                    println!("FAIL  {place}  {error:#}");
                    sum.failed += 1;
                }
            }
        }
    }
    Ok(sum)
}

/// Where one page's blocks run, one after the other: a folder, a home, and `windlass` first in PATH.
struct Stage<'p> {
    project: &'p Project,
    folder: Scratch,
}

impl Stage<'_> {
    fn set<'p>(project: &'p Project, page: &str) -> Result<Stage<'p>> {
        let folder = project.scratch(&page.replace('/', "-"))?;
        for name in ["home", "bin", "project"] {
            std::fs::create_dir(folder.join(name))?;
        }
        let binary = project.built("debug", "windlass");
        std::os::unix::fs::symlink(&binary, folder.join("bin/windlass"))
            .with_context(|| format!("linking {}", binary.display()))?;
        Ok(Stage { project, folder })
    }

    /// Runs a block; tells what was done, or why it does not hold.
    fn play(&self, block: &Block) -> Result<String> {
        let Mark::Test { mock, exit } = &block.mark else {
            let first = block.commands.lines().next().unwrap_or_default();
            return match page::excuse(&block.commands) {
                Some(why) => Ok(format!("not run, {why}: {first}")),
                None => bail!("`{first}` can be run: mark its block `sh test`"),
            };
        };
        let mock = mock.as_ref().map(|name| self.mock(name)).transpose()?;
        let (status, said) = self.shell(&block.commands, mock.as_ref())?;
        if status.code() != Some(*exit) {
            bail!("ended with {status}, not with {exit}; it said:\n{said}");
        }
        if let Some(wanted) = block.output.as_ref().filter(|wanted| !page::contains(&said, wanted)) {
            bail!("the page promises:\n{wanted}it said:\n{said}");
        }
        Ok(block.commands.lines().next().unwrap_or_default().to_string())
    }

    fn mock(&self, name: &str) -> Result<Mock> {
        let script = self.project.root.join("docs/scripts").join(format!("{name}.toml"));
        Mock::start(&self.project.built("debug", "windlass"), &script, &self.folder.join("mock.jsonl"), None)
    }

    fn shell(&self, commands: &str, mock: Option<&Mock>) -> Result<(ExitStatus, String)> {
        let said = self.folder.join("said.txt");
        let out = std::fs::File::create(&said)?;
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", commands]).current_dir(self.folder.join("project")).stdin(Stdio::null());
        shell.stdout(out.try_clone()?).stderr(out).env_clear();
        let inherited = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{inherited}", self.folder.join("bin").display()));
        shell.env("HOME", self.folder.join("home")).env("LANG", "C.UTF-8").env("TERM", "dumb");
        // What a command leaves in the temporary folder goes with the stage.
        shell.env("TMPDIR", self.folder.join("home"));
        if let Some(mock) = mock {
            shell.env("ANTHROPIC_BASE_URL", &mock.url).env("ANTHROPIC_API_KEY", "dummy");
        }
        let status = within(&mut shell, Duration::from_secs(BLOCK_SECONDS))?;
        Ok((status, read_lossy(&said)?))
    }
}

/// Runs a command to its end, or until the time is over; what it started goes with it.
fn within(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let mut child = command.process_group(0).spawn().with_context(|| project::shown(command))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            None if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(POLL_MS)),
            status => break status,
        }
    };
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()?;
    status.with_context(|| format!("it did not end within {} s", limit.as_secs()))
}

fn read_lossy(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A page's blocks played against a `windlass` that only says where it is and what it was given.
    fn played(page: &str) -> Vec<Result<String, String>> {
        let target = tempfile::tempdir().unwrap();
        let binary = target.path().join("debug/windlass");
        std::fs::create_dir(target.path().join("debug")).unwrap();
        std::fs::write(&binary, "#!/bin/sh\necho \"windlass $* in $(basename $PWD) of $HOME\"\n").unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let project = Project { root: target.path().into(), target: target.path().into() };
        let stage = Stage::set(&project, "docs/guide/page.md").unwrap();
        let play = |block| stage.play(&block).map_err(|error| error.to_string());
        page::blocks(page).unwrap().into_iter().map(play).collect()
    }

    #[test]
    fn a_block_runs_in_a_folder_and_a_home_of_its_page() {
        let page = "```sh test\nwindlass -p hi > said.txt\n```\n```sh test\ncat said.txt\n```\n```text output\nwindlass -p hi in project of …/home\n```\n";
        let played = played(page);
        assert_eq!(played, [Ok("windlass -p hi > said.txt".to_string()), Ok("cat said.txt".to_string())]);
    }

    #[test]
    fn a_block_that_does_not_hold_says_why() {
        let played = played(
            "```sh test\nwindlass\n```\n```text output\nsomething else\n```\n```sh test exit=2\nwindlass\n```\n```sh test\nwindlas\n```\n```sh\nwindlass\n```\n",
        );
        let errors: Vec<String> = played.into_iter().map(Result::unwrap_err).collect();
        assert!(errors[0].starts_with("the page promises:\nsomething else\nit said:\nwindlass "), "{errors:?}");
        assert!(errors[1].starts_with("ended with exit status: 0, not with 2"), "{errors:?}");
        assert!(errors[2].contains("not found"), "{errors:?}");
        assert_eq!(errors[3], "`windlass` can be run: mark its block `sh test`");
    }
}
