//! SQLite's errors, told by what to do about them.

use crate::StoreError;
use rusqlite::ErrorCode;
use std::path::Path;

/// Free bytes below which a failed write is put down to a full disk.
const FREE_BYTES_MIN: u64 = 64 * 1024;

pub(super) fn explain(path: &str, error: rusqlite::Error) -> StoreError {
    let detail = error.to_string();
    let message = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => return StoreError::Full { path: path.to_owned() },
        // Not every full disk or quota comes as SQLITE_FULL: the -shm file's growth fails as an I/O error.
        Some(ErrorCode::SystemIoFailure) if is_full(path) => return StoreError::Full { path: path.to_owned() },
        Some(ErrorCode::SystemIoFailure) => format!("reading or writing it failed ({detail}): check the disk"),
        Some(ErrorCode::NotADatabase) => "it is no database: move that file away, or name another one".into(),
        Some(ErrorCode::DatabaseCorrupt) => format!(
            "the file is corrupt ({detail}): copy it away with its -wal neighbour, then save what is left with \
             `sqlite3 {path} .recover`"
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "it is read-only: make the file and its folder writable for you".into()
        }
        Some(ErrorCode::CannotOpen) => {
            format!("it can't be opened ({detail}): it must be a file, in a folder that you may write to")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "another process has kept it locked for {} s: try again, or end that process",
            super::schema::BUSY_TIMEOUT_MS / 1000
        ),
        Some(ErrorCode::TooBig) => "a single value is larger than SQLite can hold (1 GB)".into(),
        _ => detail,
    };
    StoreError::Unavailable { path: path.to_owned(), message }
}

/// Whether the failure lies in the request itself or in the file, not in another writer having been first.
pub(super) fn is_of_the_file(error: &StoreError) -> bool {
    matches!(error, StoreError::Full { .. } | StoreError::Unavailable { .. })
}

fn is_full(path: &str) -> bool {
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < FREE_BYTES_MIN)
}
