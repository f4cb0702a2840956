//! Accepts, recorded before they are sent: an action that has one is never approvable again.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::audit::Notary;
use crate::error::StoreError;
use crate::ledger::{chain, entry};
use crate::record::{AcceptRecord, AcceptState};

const COLUMNS: &str = "session_id, event_id, approval_id, state, sent_at_ms, updated_at_ms";

/// INVARIANT I1: all actions of the batch are free, or none is recorded.
pub(crate) fn record(
    connection: &Connection,
    notary: &dyn Notary,
    session_id: &str,
    approval_id: &str,
    event_ids: &[String],
    sent_at_ms: i64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO sent_accepts (session_id, event_id, approval_id, state, sent_at_ms, updated_at_ms, link) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT DO NOTHING",
    )?;
    for event_id in event_ids {
        let accept = AcceptRecord {
            session_id: session_id.to_owned(),
            event_id: event_id.clone(),
            approval_id: approval_id.to_owned(),
            state: AcceptState::Sent,
            sent_at_ms,
            updated_at_ms: sent_at_ms,
        };
        let link = chain::append(connection, notary, &entry::accept(&accept))?;
        let values = params![session_id, event_id, approval_id, accept.state, sent_at_ms, link];
        if statement.execute(values)? == 0 {
            // The links of this batch are undone with it.
            return Err(StoreError::AcceptAlreadySent { event_id: event_id.clone() });
        }
    }
    Ok(())
}

pub(crate) fn set_state(
    connection: &Connection,
    notary: &dyn Notary,
    session_id: &str,
    event_id: &str,
    state: AcceptState,
    at_ms: i64,
) -> Result<(), StoreError> {
    let stored = get(connection, session_id, event_id)?
        .ok_or_else(|| StoreError::NotFound { what: "accept", id: event_id.to_owned() })?;
    let follows = match stored.state {
        AcceptState::Sent => true,
        AcceptState::InDoubt => state != AcceptState::Sent,
        AcceptState::Answered => state == AcceptState::Answered,
    };
    if !follows {
        let reason = "what is known of it cannot be taken back";
        return Err(StoreError::Conflict { what: "accept", id: event_id.to_owned(), reason });
    }
    let next = AcceptRecord { state, updated_at_ms: at_ms, ..stored };
    let link = chain::append(connection, notary, &entry::accept(&next))?;
    connection
        .prepare_cached(
            "UPDATE sent_accepts SET state = ?3, updated_at_ms = ?4, link = ?5 WHERE session_id = ?1 AND event_id = ?2",
        )?
        .execute(params![session_id, event_id, state, at_ms, link])?;
    Ok(())
}

pub(crate) fn withdraw(
    connection: &Connection,
    notary: &dyn Notary,
    session_id: &str,
    approval_id: &str,
) -> Result<usize, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "DELETE FROM sent_accepts WHERE session_id = ?1 AND approval_id = ?2 AND state = 'sent' RETURNING {COLUMNS}"
    ))?;
    let withdrawn = statement.query_map([session_id, approval_id], from_row)?.collect::<Result<Vec<_>, _>>()?;
    for accept in &withdrawn {
        chain::append(connection, notary, &entry::accept_withdrawn(accept))?;
    }
    Ok(withdrawn.len())
}

pub(crate) fn get(
    connection: &Connection,
    session_id: &str,
    event_id: &str,
) -> Result<Option<AcceptRecord>, StoreError> {
    Ok(connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM sent_accepts WHERE session_id = ?1 AND event_id = ?2"))?
        .query_row(params![session_id, event_id], from_row)
        .optional()?)
}

pub(crate) fn of_session(connection: &Connection, session_id: &str) -> Result<Vec<AcceptRecord>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM sent_accepts WHERE session_id = ?1 ORDER BY sent_at_ms, event_id"
    ))?;
    let records = statement.query_map([session_id], from_row)?.collect::<Result<_, _>>()?;
    Ok(records)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<AcceptRecord> {
    Ok(AcceptRecord {
        session_id: row.get(0)?,
        event_id: row.get(1)?,
        approval_id: row.get(2)?,
        state: row.get(3)?,
        sent_at_ms: row.get(4)?,
        updated_at_ms: row.get(5)?,
    })
}
