//! Sessions.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::StoreError;
use crate::record::SessionRecord;

const COLUMNS: &str = "session_id, workspace, title, origin, parent_session_id, baseline_event_id, created_at_ms, \
                       closed_at_ms";

pub(crate) fn put(connection: &Connection, record: &SessionRecord) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached(
            "INSERT INTO sessions (session_id, workspace, title, origin, parent_session_id, baseline_event_id, \
             created_at_ms, closed_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
             ON CONFLICT (session_id) DO UPDATE SET title = excluded.title, origin = excluded.origin, \
             parent_session_id = excluded.parent_session_id, baseline_event_id = excluded.baseline_event_id, \
             closed_at_ms = excluded.closed_at_ms WHERE workspace = excluded.workspace",
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
        ])?;
    if changed == 0 {
        return Err(StoreError::Conflict {
            what: "session",
            id: record.session_id.clone(),
            reason: "it is known with another workspace",
        });
    }
    Ok(())
}

pub(crate) fn close(connection: &Connection, id: &str, closed_at_ms: i64) -> Result<(), StoreError> {
    let changed = connection
        .prepare_cached("UPDATE sessions SET closed_at_ms = coalesce(closed_at_ms, ?2) WHERE session_id = ?1")?
        .execute(params![id, closed_at_ms])?;
    if changed == 0 { Err(StoreError::NotFound { what: "session", id: id.to_owned() }) } else { Ok(()) }
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
    })
}
