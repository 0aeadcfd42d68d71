//! Who may append: the session's epoch, and the process that holds it.

use super::db::{Db, int, key, nat};
use crate::{Fence, StoreError};
use rusqlite::OptionalExtension;
use windlass_kernel::{Seq, SessionId};

/// The tenant of a session until its first event names one.
const TENANT: &str = "local";

/// The process that opens a store, told from every other one, also of earlier boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// New for each start of a process.
    pub id: String,
    pub pid: u32,
    /// Clock ticks after boot, as in `/proc/PID/stat`; 0: not known.
    pub started: u64,
    pub boot_id: String,
}

impl Worker {
    /// Whether this worker is another process than `asking`, and lives.
    pub(super) fn is_other_and_lives(&self, asking: &Worker) -> bool {
        let same = self.id == asking.id || (self.pid == asking.pid && self.started == asking.started);
        !same && self.lives(&asking.boot_id)
    }

    pub(super) fn lives(&self, boot_id: &str) -> bool {
        self.boot_id == boot_id && is_running(self.pid, self.started)
    }
}

/// Whether process `pid` runs and began at `started`.
///
/// The one place in the library that looks around by itself: who holds a session is written in the file, whether
/// that process still lives only the system knows, and it must be asked while the file is locked.
fn is_running(pid: u32, started: u64) -> bool {
    let exists = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).is_some_and(|pid| {
        // Somebody else's process refuses the question, and exists.
        !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
    });
    if !exists {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => state_and_start(&stat)
            .is_none_or(|(state, start)| !matches!(state, "Z" | "X") && (started == 0 || start == started)),
        // Systems without /proc: the number alone must do.
        Err(_) => true,
    }
}

// The name in brackets may hold spaces and brackets, so fields are counted after its end.
fn state_and_start(stat: &str) -> Option<(&str, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

pub(super) fn create(db: &Db, session: SessionId) -> Result<Fence, StoreError> {
    let made = db.execute(
        "INSERT INTO session (id, tenant, epoch) VALUES (?1, ?2, 0) ON CONFLICT DO NOTHING",
        (key(session), TENANT),
    )?;
    if made == 0 {
        let head = head(db, session)?;
        if head > Seq(0) {
            return Err(StoreError::Conflict { session, head });
        }
    }
    claim(db, session)
}

pub(super) fn claim(db: &Db, session: SessionId) -> Result<Fence, StoreError> {
    let (epoch, owner) = holder(db, session)?;
    if let Some(owner) = owner.filter(|owner| owner.is_other_and_lives(&db.worker)) {
        return Err(StoreError::Held { session, pid: owner.pid });
    }
    sign_in(db)?;
    let epoch = epoch + 1;
    db.execute("UPDATE session SET epoch = ?2, owner = ?3 WHERE id = ?1", (key(session), int(epoch), &db.worker.id))?;
    Ok(Fence { session, epoch })
}

pub(super) fn release(db: &Db, fence: Fence) -> Result<(), StoreError> {
    let Fence { session, epoch } = fence;
    let changed =
        db.execute("UPDATE session SET owner = NULL WHERE id = ?1 AND epoch = ?2", (key(session), int(epoch)))?;
    if changed == 1 {
        return Ok(());
    }
    holder(db, session)?;
    Err(StoreError::Fenced { session, epoch })
}

/// The log's head; 0 if it is empty.
fn head(db: &Db, session: SessionId) -> Result<Seq, StoreError> {
    let mut statement = db.statement("SELECT coalesce(max(seq), 0) FROM event WHERE session = ?1")?;
    let head = statement.query_row([key(session)], |row| row.get(0)).map_err(|error| db.explain(error))?;
    Ok(Seq(nat(head)))
}

fn holder(db: &Db, session: SessionId) -> Result<(u64, Option<Worker>), StoreError> {
    let mut statement = db.statement(
        "SELECT epoch, worker.id, pid, started, boot_id
         FROM session LEFT JOIN worker ON worker.id = session.owner WHERE session.id = ?1",
    )?;
    let found = statement.query_row([key(session)], |row| Ok((nat(row.get(0)?), worker(row, 1)?))).optional();
    found.map_err(|error| db.explain(error))?.ok_or(StoreError::NoSuchSession(session))
}

/// The worker in the four columns from `first` on, if there is one.
pub(super) fn worker(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Option<Worker>> {
    let Some(id) = row.get(first)? else { return Ok(None) };
    Ok(Some(Worker { id, pid: row.get(first + 1)?, started: nat(row.get(first + 2)?), boot_id: row.get(first + 3)? }))
}

fn sign_in(db: &Db) -> Result<(), StoreError> {
    let Worker { id, pid, started, boot_id } = &db.worker;
    let new = db.execute(
        "INSERT INTO worker (id, pid, started, boot_id) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        (id, pid, int(*started), boot_id),
    )?;
    if new == 1 {
        // Once per process: rows of earlier ones that hold nothing. One that lives signs in again when it claims.
        db.execute(
            "DELETE FROM worker WHERE id <> ?1 AND NOT EXISTS (SELECT 1 FROM session WHERE owner = worker.id)",
            [id],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_number_and_its_start() {
        let pid = std::process::id();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, started) = state_and_start(&stat).unwrap();
        assert!(is_running(pid, started));
        assert!(is_running(pid, 0), "an unknown start is taken to be the same");
        assert!(!is_running(pid, started + 1), "a later process with the same number is another one");
        assert!(!is_running(0, 0));
        assert!(!is_running(u32::MAX, 0));
    }

    #[test]
    fn a_dead_process_that_nobody_waited_for_does_not_run() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        assert!(is_running(pid, 0));
        child.kill().unwrap();
        let zombie = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ");
        while !zombie() {
            std::thread::yield_now();
        }
        assert!(!is_running(pid, 0));
        child.wait().unwrap();
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        assert_eq!(state_and_start(stat), Some(("S", 4711)));
    }
}
