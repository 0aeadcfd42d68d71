//! How a shell is started: behind the wall, whose keeper ends everything, or bare, with a thread whose end kills it.

use crate::blocking::blocking;
use crate::process::{Group, MARK, mark};
use crate::{ToolRun, Workspace};
use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{Command as Plain, Stdio};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use windlass_sandbox::Spec;

/// Bytes of stack of the thread that forks: it does nothing else.
const ANCHOR_STACK_BYTES: usize = 256 << 10;
/// The folder below a session's scratch that is temp for its commands.
const TEMP: &str = "tmp";

/// What a running shell depends on.
pub(crate) enum Started {
    /// The wall's keeper ends it with all it started.
    Walled,
    /// The thread that forked it ends when this is dropped.
    Bare { _anchor: oneshot::Sender<()> },
}

impl Started {
    pub fn is_walled(&self) -> bool {
        matches!(self, Started::Walled)
    }
}

/// Starts `line` in a shell, behind the session's wall if `within` and if there is one.
pub(crate) async fn launch(
    line: &str,
    run: &ToolRun,
    output: PipeWriter,
    within: bool,
) -> io::Result<(Child, Started)> {
    let workspace = &run.workspace;
    let shell = shell(workspace).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "neither is there"))?;
    let mut plain = Plain::new(shell);
    plain.arg("-c").arg(line).current_dir(&workspace.cwd).env_clear().envs(workspace.env.iter());
    plain.env(MARK, mark(workspace.session, &run.call));
    if !within || !workspace.wall.is_wanted() {
        return bare(plain, output).await;
    }
    let wall = workspace.wall.clone();
    let spec = Spec { workspace: workspace.cwd.clone(), temp: workspace.scratch.join(TEMP) };
    let enclosed = blocking(move || wall.enclose(plain, &spec)).await?;
    if workspace.wall.standing().is_none() {
        return bare(enclosed, output).await;
    }
    let child = wired(enclosed, output)?.spawn()?;
    Ok((child, Started::Walled))
}

/// bash, or else sh, where the environment's `PATH` has it.
fn shell(workspace: &Workspace) -> Option<String> {
    let path = workspace.env.get("PATH")?;
    let places = |name: &'static str| path.split(':').map(move |folder| Path::new(folder).join(name));
    let found = ["bash", "sh"].into_iter().flat_map(places).find(|program| program.is_file())?;
    // A folder of PATH may be meant from the workspace.
    Some(workspace.cwd.join(found).display().to_string())
}

fn wired(command: Plain, output: PipeWriter) -> io::Result<Command> {
    let mut command = Command::from(command);
    let errors = output.try_clone()?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0).kill_on_drop(true);
    Ok(command)
}

async fn bare(command: Plain, output: PipeWriter) -> io::Result<(Child, Started)> {
    let mut command = wired(command, output)?;
    die_with_parent(&mut command);
    let (child, anchor) = fork(command).await?;
    Ok((child, Started::Bare { _anchor: anchor }))
}

/// Has the kernel kill the child when this process dies, however it dies.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    let parent = getpid();
    let arm = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // Died between the fork and the line above: the signal will not come.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec, `arm` makes two system calls and neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(arm);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

/// Forks from a thread that lives until the returned sender is dropped: the kernel takes the end of the *thread* that
/// forked for the parent's death, and threads of a runtime may end at any time.
async fn fork(mut command: Command) -> io::Result<(Child, oneshot::Sender<()>)> {
    let runtime = tokio::runtime::Handle::current();
    let (tell, told) = oneshot::channel();
    let (anchor, over) = oneshot::channel::<()>();
    let work = move || {
        let _inside = runtime.enter();
        let forked = command.spawn();
        // Closes this process's copies of the pipe's end: the reader is to see its end when the children close theirs.
        drop(command);
        match tell.send(forked) {
            Ok(()) => _ = over.blocking_recv(),
            // Nobody waits any more: dropping the group kills it.
            Err(Ok(child)) => drop(child.id().and_then(Group::of)),
            Err(Err(_)) => {}
        }
    };
    std::thread::Builder::new().name("fork".into()).stack_size(ANCHOR_STACK_BYTES).spawn(work)?;
    let child = told.await.map_err(|_| io::Error::other("the thread that forks died"))??;
    Ok((child, anchor))
}
