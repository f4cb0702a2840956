//! Accepts, recorded before they are sent: an action that has one is never approvable again.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::record::{AcceptRecord, AcceptState};

/// INVARIANT I1: all actions of the batch are free, or none is recorded.
pub(crate) fn record(
    connection: &Connection,
    session_id: &str,
    approval_id: &str,
    event_ids: &[String],
    sent_at_ms: i64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO sent_accepts (session_id, event_id, approval_id, state, sent_at_ms, updated_at_ms) \
         VALUES (?1, ?2, ?3, 'sent', ?4, ?4) ON CONFLICT DO NOTHING",
    )?;
    for event_id in event_ids {
        if statement.execute(params![session_id, event_id, approval_id, sent_at_ms])? == 0 {
            return Err(StoreError::AcceptAlreadySent { event_id: event_id.clone() });
        }
    }
    Ok(())
}

pub(crate) fn set_state(
    connection: &Connection,
    session_id: &str,
    event_id: &str,
    state: AcceptState,
    at_ms: i64,
) -> Result<(), StoreError> {
    let before: AcceptState = connection
        .prepare_cached("SELECT state FROM sent_accepts WHERE session_id = ?1 AND event_id = ?2")?
        .query_row(params![session_id, event_id], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::NotFound { what: "accept", id: event_id.to_owned() })?;
    let follows = match before {
        AcceptState::Sent => true,
        AcceptState::InDoubt => state != AcceptState::Sent,
        AcceptState::Answered => state == AcceptState::Answered,
    };
    if !follows {
        let reason = "what is known of it cannot be taken back";
        return Err(StoreError::Conflict { what: "accept", id: event_id.to_owned(), reason });
    }
    connection
        .prepare_cached(
            "UPDATE sent_accepts SET state = ?3, updated_at_ms = ?4 WHERE session_id = ?1 AND event_id = ?2",
        )?
        .execute(params![session_id, event_id, state, at_ms])?;
    Ok(())
}

pub(crate) fn withdraw(connection: &Connection, session_id: &str, approval_id: &str) -> Result<usize, StoreError> {
    Ok(connection
        .prepare_cached("DELETE FROM sent_accepts WHERE session_id = ?1 AND approval_id = ?2 AND state = 'sent'")?
        .execute([session_id, approval_id])?)
}

pub(crate) fn of_session(connection: &Connection, session_id: &str) -> Result<Vec<AcceptRecord>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT session_id, event_id, approval_id, state, sent_at_ms, updated_at_ms FROM sent_accepts \
         WHERE session_id = ?1 ORDER BY sent_at_ms, event_id",
    )?;
    let records = statement
        .query_map([session_id], |row| {
            Ok(AcceptRecord {
                session_id: row.get(0)?,
                event_id: row.get(1)?,
                approval_id: row.get(2)?,
                state: row.get(3)?,
                sent_at_ms: row.get(4)?,
                updated_at_ms: row.get(5)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(records)
}
