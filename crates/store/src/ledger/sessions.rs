//! Sessions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::audit::Notary;
use crate::error::StoreError;
use crate::ledger::{chain, entry};
use crate::record::SessionRecord;

const COLUMNS: &str = "session_id, workspace, title, origin, parent_session_id, baseline_event_id, created_at_ms, \
                       closed_at_ms, changed_by, changed_at_ms";

pub(crate) fn put(connection: &Connection, notary: &dyn Notary, record: &SessionRecord) -> Result<(), StoreError> {
    let stored = get(connection, &record.session_id)?;
    if stored.as_ref().is_some_and(|stored| stored.workspace != record.workspace) {
        return Err(StoreError::Conflict {
            what: "session",
            id: record.session_id.clone(),
            reason: "it is known with another workspace",
        });
    }
    // The time it was first stored is kept.
    let created_at_ms = stored.map_or(record.created_at_ms, |stored| stored.created_at_ms);
    write(connection, notary, &SessionRecord { created_at_ms, ..record.clone() })
}

pub(crate) fn close(
    connection: &Connection,
    notary: &dyn Notary,
    id: &str,
    closed_at_ms: i64,
    caller: &str,
) -> Result<(), StoreError> {
    let stored = get(connection, id)?.ok_or_else(|| StoreError::NotFound { what: "session", id: id.to_owned() })?;
    if stored.closed_at_ms.is_some() {
        return Ok(());
    }
    let closed = SessionRecord {
        closed_at_ms: Some(closed_at_ms),
        changed_by: caller.to_owned(),
        changed_at_ms: closed_at_ms,
        ..stored
    };
    write(connection, notary, &closed)
}

fn write(connection: &Connection, notary: &dyn Notary, record: &SessionRecord) -> Result<(), StoreError> {
    let link = chain::append(connection, notary, &entry::session(record))?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (session_id, workspace, title, origin, parent_session_id, baseline_event_id, \
             created_at_ms, closed_at_ms, changed_by, changed_at_ms, link) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
             ON CONFLICT (session_id) DO UPDATE SET title = excluded.title, origin = excluded.origin, \
             parent_session_id = excluded.parent_session_id, baseline_event_id = excluded.baseline_event_id, \
             closed_at_ms = excluded.closed_at_ms, changed_by = excluded.changed_by, \
             changed_at_ms = excluded.changed_at_ms, link = excluded.link",
        )?
        .execute(params![
            record.session_id,
            record.workspace,
            record.title,
            record.origin,
            record.parent_session_id,
            record.baseline_event_id,
            record.created_at_ms,
            record.closed_at_ms,
            record.changed_by,
            record.changed_at_ms,
            link,
        ])?;
    Ok(())
}

pub(crate) fn get(connection: &Connection, id: &str) -> Result<Option<SessionRecord>, StoreError> {
    Ok(connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE session_id = ?1"))?
        .query_row([id], from_row)
        .optional()?)
}

pub(crate) fn all(connection: &Connection) -> Result<Vec<SessionRecord>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions ORDER BY rowid"))?;
    let records = statement.query_map([], from_row)?.collect::<Result<_, _>>()?;
    Ok(records)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        session_id: row.get(0)?,
        workspace: row.get(1)?,
        title: row.get(2)?,
        origin: row.get(3)?,
        parent_session_id: row.get(4)?,
        baseline_event_id: row.get(5)?,
        created_at_ms: row.get(6)?,
        closed_at_ms: row.get(7)?,
        changed_by: row.get(8)?,
        changed_at_ms: row.get(9)?,
    })
}
