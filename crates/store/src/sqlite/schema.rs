//! The tables, and how a file comes to have them.

use super::{SqliteOptions, error, ledger};
use crate::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};

/// Milliseconds to wait for another process's transaction.
pub(super) const BUSY_TIMEOUT_MS: u64 = 5000;

/// Pages of log before they are moved to the main file: 4 MiB. A checkpoint costs two fsyncs, so few of them; but
/// the next start reads what is left of the log, so not too few.
const CHECKPOINT_PAGES: u32 = 1000;
/// KiB of pages a connection keeps: logs are written at their ends and read once, so there is little to keep.
const CACHE_KIB: u32 = 512;

/// Marks the file as ours, so that another program's database is not filled with our tables.
const APPLICATION_ID: i32 = 0x776e_646c;

/// Each entry leads from the version that is its index to the next; entries are for ever.
const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE tenant (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

    -- One row per process that holds or held a session.
    CREATE TABLE worker (
        id TEXT PRIMARY KEY, pid INTEGER NOT NULL, started INTEGER NOT NULL, boot_id TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- epoch: of the newest claim, under which alone can be appended. owner: the worker that claimed; null: nobody.
    CREATE TABLE session (
        id BLOB PRIMARY KEY, tenant TEXT NOT NULL, epoch INTEGER NOT NULL, owner TEXT, parent BLOB,
        cwd TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX session_owner ON session (owner) WHERE owner IS NOT NULL;

    -- With a rowid: every session's new rows go to the same few last pages, so a group of many sessions writes less.
    CREATE TABLE event (
        session BLOB NOT NULL, seq INTEGER NOT NULL, epoch INTEGER NOT NULL, id BLOB NOT NULL, at INTEGER NOT NULL,
        v INTEGER NOT NULL, cause INTEGER, body TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT;

    -- place: the order of arrival; clocks of several processes may disagree.
    CREATE TABLE inbox (
        place INTEGER PRIMARY KEY, session BLOB NOT NULL, id BLOB NOT NULL, body TEXT NOT NULL, at INTEGER NOT NULL,
        UNIQUE (session, id)
    ) STRICT;

    -- Inputs that are in a log: the same input sent again is refused.
    CREATE TABLE taken (session BLOB NOT NULL, id BLOB NOT NULL, PRIMARY KEY (session, id)) STRICT, WITHOUT ROWID;

    CREATE TABLE blob (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
",
    "
    -- root: the session at the root of its agent tree; null until it is opened.
    ALTER TABLE session ADD COLUMN root BLOB;
    ALTER TABLE session ADD COLUMN agent TEXT NOT NULL DEFAULT '';
    UPDATE session SET agent = coalesce((
        SELECT json_extract(body, '$.agent') FROM event WHERE session = session.id AND seq = 1 AND json_valid(body)
    ), '');
    WITH RECURSIVE tree(id, root) AS (
        SELECT id, coalesce(parent, id) FROM session WHERE parent IS NULL OR parent NOT IN (SELECT id FROM session)
        UNION ALL
        SELECT session.id, tree.root FROM tree JOIN session ON session.parent = tree.id
    ) UPDATE session SET root = tree.root FROM tree WHERE tree.id = session.id;

    -- One row per model call, made with its events and from nothing else. tokens: of all classes. With a rowid, and with
    -- no index on root, for the same reason as event: each page that a group touches is written anew.
    CREATE TABLE ledger (
        session BLOB NOT NULL, work INTEGER NOT NULL, root BLOB NOT NULL, at INTEGER NOT NULL, agent TEXT NOT NULL,
        provider TEXT NOT NULL, model TEXT NOT NULL, role TEXT NOT NULL, attempt INTEGER NOT NULL,
        outcome TEXT NOT NULL DEFAULT 'open', input INTEGER NOT NULL DEFAULT 0, cache_read INTEGER NOT NULL DEFAULT 0,
        cache_write INTEGER NOT NULL DEFAULT 0, output INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0, cost INTEGER, estimated INTEGER NOT NULL DEFAULT 0,
        unpriced INTEGER NOT NULL DEFAULT 1, first_token_ms INTEGER, took_ms INTEGER,
        PRIMARY KEY (session, work)
    ) STRICT;
    -- What a day's sessions spent is asked every second: this answers it without the table.
    CREATE INDEX ledger_at ON ledger (at, cost, tokens);
    -- What a tree spent is that of its sessions.
    CREATE INDEX session_root ON session (root);
",
];

/// The version from which on there is a ledger; older files have theirs filled from their logs.
const LEDGER_SINCE: usize = 2;

/// The writing connection to a file that has this build's tables.
pub(super) fn open(path: &Path, options: SqliteOptions) -> Result<Connection, StoreError> {
    let shown = path.display().to_string();
    make_file(path).map_err(|error| StoreError::Unavailable {
        path: shown.clone(),
        message: format!("it can't be made ({error}): its folder must be one that you may write to"),
    })?;
    let explain = |error| error::explain(&shown, error);
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(explain)?;
    match prepare_in_time(&mut connection).map_err(explain)? {
        Tables::Ours => {}
        Tables::Newer(found) => {
            return Err(StoreError::Newer { path: shown, found, known: MIGRATIONS.len() as u32 });
        }
        Tables::Strange => {
            let message = "it is another program's database: name another file".into();
            return Err(StoreError::Unavailable { path: shown, message });
        }
    }
    configure(&connection, options).map_err(explain)?;
    Ok(connection)
}

/// Whose tables stand in a file; an empty one is ours to fill.
enum Tables {
    Ours,
    Newer(u32),
    Strange,
}

/// A connection with the settings that all have.
pub(super) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // With a folder in front no name is one that SQLite gives a meaning of its own, as `:memory:` or `file:…`.
    let path = if path.is_relative() { &Path::new(".").join(path) } else { path };
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    // The last process to close would move the whole log to the main file: that is the next start's affair, if any.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Otherwise SQLite compiles a prepared query anew whenever a bound value changes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

// Logs hold what was typed and read, so the file is its owner's alone; SQLite gives its neighbours the same mode.
// An existing file must not be opened here: closing it would drop this process's SQLite locks on it.
fn make_file(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut new = std::fs::OpenOptions::new();
    new.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    match new.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// What stands in the file, seen at one moment: another process may be making the tables right now.
fn look(connection: &mut Connection) -> rusqlite::Result<(u32, Tables)> {
    let moment = connection.transaction()?;
    let found = version(&moment)?;
    let id: i32 = moment.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let new =
        found == 0 && moment.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))?;
    let tables = if !new && id != APPLICATION_ID {
        Tables::Strange
    } else if found as usize > MIGRATIONS.len() {
        Tables::Newer(found)
    } else {
        Tables::Ours
    };
    Ok((found, tables))
}

// Of several processes that make one file at the same time, SQLite refuses some without waiting, lest they wait for
// each other. Every step looks first whether it is needed, so all of them can be tried again.
fn prepare_in_time(connection: &mut Connection) -> rusqlite::Result<Tables> {
    let until = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS);
    loop {
        match prepare(connection) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return done,
        }
    }
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<Tables> {
    let (found, tables) = look(connection)?;
    if !matches!(tables, Tables::Ours) {
        return Ok(tables);
    }
    if found == 0 {
        // The switch to WAL writes one page and fsyncs it. No journal on disk is needed for that: there is nothing
        // yet to roll back to.
        connection.execute_batch("PRAGMA journal_mode = MEMORY")?;
    }
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA journal_mode = WAL")?;
    if (found as usize) < MIGRATIONS.len() {
        migrate(connection)?;
    }
    Ok(tables)
}

fn configure(connection: &Connection, options: SqliteOptions) -> rusqlite::Result<()> {
    // fullfsync: where fsync alone does not reach the disk (macOS), ask for what does.
    connection.execute_batch(&format!(
        "PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}; PRAGMA cache_size = -{CACHE_KIB}; PRAGMA fullfsync = ON"
    ))?;
    if let Some(pages) = options.max_pages {
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been first.
    let found = version(&transaction)? as usize;
    for sql in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(sql)?;
    }
    // With today's tables: how a line is written may change, what the logs say does not.
    if (1..LEDGER_SINCE).contains(&found) {
        ledger::fill(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len().max(found) as u32)?;
    transaction.commit()
}
