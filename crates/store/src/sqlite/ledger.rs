//! The ledger: written with the events it comes from, read as lines or as sums.

use super::db::{Db, int, key, nat};
use crate::upcast::event_of;
use crate::{LedgerFilter, LedgerKey, SpentScope, StoreError};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, named_params};
use uuid::Uuid;
use windlass_kernel::*;

/// Puts one entry of `session`'s log into the ledger.
pub(super) fn enter(db: &Db, session: SessionId, entry: &LedgerEntry) -> Result<(), StoreError> {
    write(&db.connection, session, entry).map_err(|error| db.explain(error))
}

fn write(connection: &Connection, session: SessionId, entry: &LedgerEntry) -> rusqlite::Result<()> {
    match entry {
        LedgerEntry::Called(line) => {
            let sql = "INSERT INTO ledger (session, work, at, provider, model, role, attempt, root, agent)
                       SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(root, id), agent FROM session WHERE id = ?1
                       ON CONFLICT DO NOTHING";
            let LedgerLine { work, at, provider, model, role, attempt, .. } = &**line;
            let (work, at, role) = (int(work.0), int(*at), Name(*role));
            connection.prepare_cached(sql)?.execute((key(session), work, at, provider, model, role, attempt))?;
        }
        LedgerEntry::Ended(end) => write_end(connection, session, end)?,
        LedgerEntry::Lost => {
            let sql = "UPDATE ledger SET outcome = 'lost' WHERE session = ?1 AND outcome = 'open'";
            connection.prepare_cached(sql)?.execute([key(session)])?;
        }
    }
    Ok(())
}

fn write_end(connection: &Connection, session: SessionId, end: &LedgerEnd) -> rusqlite::Result<()> {
    let sql = "UPDATE ledger SET outcome = :outcome, input = :input, cache_read = :cache_read,
               cache_write = :cache_write, output = :output, reasoning = :reasoning, tokens = :tokens, cost = :cost,
               estimated = :estimated, unpriced = :unpriced, first_token_ms = :first_token, took_ms = max(0, :at - at)
               WHERE session = :session AND work = :work AND outcome = 'open'";
    let Spent { usage, cost_micro_usd, first_token_ms, estimated } = end.spent;
    connection.prepare_cached(sql)?.execute(named_params! {
        ":session": key(session),
        ":work": int(end.work.0),
        ":at": int(end.at),
        ":outcome": Name(end.outcome),
        ":input": int(usage.input),
        ":cache_read": int(usage.cache_read),
        ":cache_write": int(usage.cache_write),
        ":output": int(usage.output),
        ":reasoning": int(usage.reasoning),
        ":tokens": int(usage.context()),
        ":cost": cost_micro_usd.map(int),
        ":estimated": estimated,
        ":unpriced": end.unpriced,
        ":first_token": first_token_ms.map(int),
    })?;
    Ok(())
}

/// Fills an empty ledger from the logs. What can't be read is left out: it is told of where the log is read.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    // Every event begins with its type.
    let mut events = connection.prepare(
        r#"SELECT session, seq, at, v, body FROM event
           WHERE body GLOB '{"type":"model_*' OR body GLOB '{"type":"compact*' OR body GLOB '{"type":"reopened"*'
           ORDER BY session, seq"#,
    )?;
    let mut rows = events.query(())?;
    while let Some(row) = rows.next()? {
        let Ok(event) = event_of(row.get(3)?, row.get_ref(4)?.as_bytes()?) else { continue };
        let session = SessionId(Uuid::from_bytes(row.get(0)?));
        let record = Record {
            v: SCHEMA_VERSION,
            tenant: String::new(),
            session,
            seq: Seq(nat(row.get(1)?)),
            id: EventId(Uuid::nil()),
            epoch: 0,
            at: nat(row.get(2)?),
            cause: None,
            event,
        };
        if let Some(entry) = LedgerEntry::of(&record, "", session) {
            write(connection, session, &entry)?;
        }
    }
    Ok(())
}

/// What a filter wants, as a condition in `:session`, `:from` and `:to` that an index can serve.
fn wanted(of: &LedgerFilter) -> String {
    let session = if of.session.is_some() { "session = :session" } else { ":session IS NULL" };
    format!("{session} AND at >= :from AND at < :to")
}

/// A time that SQLite's integers hold.
fn time(at: u64) -> i64 {
    at.min(i64::MAX as u64) as i64
}

pub(super) fn lines(db: &Db, of: LedgerFilter) -> Result<Vec<LedgerLine>, StoreError> {
    let order = "(:at IS NULL OR (at, session, work) > (:at, :behind, :work)) ORDER BY at, session, work LIMIT :limit";
    let columns = "session, work, root, at, agent, provider, model, role, attempt, outcome, input, cache_read,
                   cache_write, output, reasoning, cost, estimated, unpriced, first_token_ms, took_ms";
    let mut statement = db.statement(&format!("SELECT {columns} FROM ledger WHERE {} AND {order}", wanted(&of)))?;
    let limit = of.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = statement.query_map(
        named_params! {
            ":session": of.session.map(key),
            ":from": time(of.from.unwrap_or(0)),
            ":to": time(of.to.unwrap_or(u64::MAX)),
            ":at": of.after.map(|after| int(after.at)),
            ":behind": of.after.map(|after| key(after.session)),
            ":work": of.after.map(|after| int(after.work.0)),
            ":limit": limit,
        },
        line,
    );
    rows.and_then(|rows| rows.collect()).map_err(|error| db.explain(error))
}

fn line(row: &Row<'_>) -> rusqlite::Result<LedgerLine> {
    let session = |at: usize| row.get(at).map(|bytes| SessionId(Uuid::from_bytes(bytes)));
    let number = |at: usize| row.get(at).map(nat);
    let perhaps = |at: usize| row.get::<_, Option<i64>>(at).map(|number| number.map(nat));
    Ok(LedgerLine {
        session: session(0)?,
        work: Seq(number(1)?),
        root: session(2)?,
        at: number(3)?,
        agent: row.get(4)?,
        provider: row.get(5)?,
        model: row.get(6)?,
        role: row.get::<_, Name<ModelRole>>(7)?.0,
        attempt: row.get(8)?,
        outcome: row.get::<_, Name<CallOutcome>>(9)?.0,
        usage: usage(row, 10)?,
        cost_micro_usd: perhaps(15)?,
        estimated: row.get(16)?,
        unpriced: row.get(17)?,
        first_token_ms: perhaps(18)?,
        took_ms: perhaps(19)?,
    })
}

/// The five columns from `first` on.
fn usage(row: &Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input: nat(row.get(first)?),
        cache_read: nat(row.get(first + 1)?),
        cache_write: nat(row.get(first + 2)?),
        output: nat(row.get(first + 3)?),
        reasoning: nat(row.get(first + 4)?),
    })
}

pub(super) fn sums(db: &Db, of: LedgerFilter, by: LedgerKey) -> Result<Vec<LedgerSum>, StoreError> {
    let same = match by {
        LedgerKey::Day => "at / 86400000",
        LedgerKey::Model => "provider || '/' || model",
        LedgerKey::Agent => "agent",
    };
    let mut statement = db.statement(&format!(
        "SELECT {same}, count(*), sum(input), sum(cache_read), sum(cache_write), sum(output), sum(reasoning),
         coalesce(sum(cost), 0), sum(unpriced), sum(estimated), coalesce(sum(cost) FILTER (WHERE estimated), 0)
         FROM ledger WHERE {} GROUP BY 1 ORDER BY 1",
        wanted(&of)
    ))?;
    let sum = |row: &Row<'_>| {
        Ok(LedgerSum {
            key: if by == LedgerKey::Day { utc_day(nat(row.get(0)?) * DAY_MS) } else { row.get(0)? },
            calls: nat(row.get(1)?),
            usage: usage(row, 2)?,
            cost_micro_usd: nat(row.get(7)?),
            unpriced_calls: nat(row.get(8)?),
            estimated_calls: nat(row.get(9)?),
            estimated_micro_usd: nat(row.get(10)?),
        })
    };
    let (from, to) = (time(of.from.unwrap_or(0)), time(of.to.unwrap_or(u64::MAX)));
    let bound = named_params! { ":session": of.session.map(key), ":from": from, ":to": to };
    let rows = statement.query_map(bound, sum);
    rows.and_then(|rows| rows.collect()).map_err(|error| db.explain(error))
}

const SPENT_SINCE: &str = "SELECT coalesce(sum(cost), 0), coalesce(sum(tokens), 0) FROM ledger WHERE at >= ?1";
const SPENT_IN_TREE: &str = "SELECT coalesce(sum(cost), 0), coalesce(sum(tokens), 0) FROM ledger
                             WHERE session IN (SELECT id FROM session
                                 WHERE root = coalesce((SELECT root FROM session WHERE id = ?1), ?1))";

pub(super) fn spent(db: &Db, scope: SpentScope) -> Result<Spending, StoreError> {
    let read = |row: &Row<'_>| Ok(Spending { micro_usd: nat(row.get(0)?), tokens: nat(row.get(1)?) });
    let found = match scope {
        SpentScope::Since(from) => db.statement(SPENT_SINCE)?.query_row([time(from)], read),
        SpentScope::Tree(session) => db.statement(SPENT_IN_TREE)?.query_row([key(session)], read),
    };
    found.map_err(|error| db.explain(error))
}

/// A word of the log's schema in a column.
struct Name<T>(T);

impl ToSql for Name<ModelRole> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.name().to_sql()
    }
}

impl ToSql for Name<CallOutcome> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.name().to_sql()
    }
}

impl FromSql for Name<ModelRole> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Name<ModelRole>> {
        let name = value.as_str()?;
        ModelRole::ALL.into_iter().find(|role| role.name() == name).map(Name).ok_or(FromSqlError::InvalidType)
    }
}

impl FromSql for Name<CallOutcome> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Name<CallOutcome>> {
        let name = value.as_str()?;
        CallOutcome::ALL.into_iter().find(|outcome| outcome.name() == name).map(Name).ok_or(FromSqlError::InvalidType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::{SqliteOptions, schema};
    use rusqlite::Params;

    fn plan(connection: &Connection, sql: &str, params: impl Params) -> String {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map(params, |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_is_asked_every_second_is_answered_by_indexes() {
        let folder = tempfile::tempdir().unwrap();
        let connection = schema::open(&folder.path().join("sessions.db"), SqliteOptions::default()).unwrap();
        let since = plan(&connection, SPENT_SINCE, [0]);
        assert!(since.contains("COVERING INDEX ledger_at (at>?)"), "{since}");
        let tree = plan(&connection, SPENT_IN_TREE, [vec![0u8; 16]]);
        assert!(tree.contains("session_root (root=?)") && tree.contains("(session=?)"), "{tree}");
        assert!(!tree.contains("SCAN"), "{tree}");
    }

    #[test]
    fn lines_of_a_session_or_a_time_are_found_without_a_look_at_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let connection = schema::open(&folder.path().join("sessions.db"), SqliteOptions::default()).unwrap();
        let all = LedgerFilter::default();
        let mine = LedgerFilter { session: Some(SessionId(Uuid::nil())), ..all };
        for (of, index) in [(mine, "(session=?)"), (all, "INDEX ledger_at (at>? AND at<?)")] {
            let sql = format!("SELECT agent FROM ledger WHERE {}", wanted(&of));
            let bound = named_params! { ":session": of.session.map(key), ":from": 0, ":to": 9 };
            let plan = plan(&connection, &sql, bound);
            assert!(plan.contains(index), "{plan}");
        }
    }
}
