//! Receipts and their steps.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::audit::Notary;
use crate::error::StoreError;
use crate::ledger::{chain, entry};
use crate::record::{ReceiptRecord, StepRecord};

const COLUMNS: &str = "client_action_id, session_id, operation_id, fingerprint, caller, state, code, detail, \
                       input_json, result_json, created_at_ms, updated_at_ms, request_id";

/// The version of the file from which on receipts name their request.
const REQUEST_IDS_SINCE: i64 = 5;

/// INVARIANT I5: the primary key decides which of two equal requests is the first.
pub(crate) fn insert(connection: &Connection, notary: &dyn Notary, record: &ReceiptRecord) -> Result<(), StoreError> {
    if let Some(stored) = get(connection, &record.client_action_id)? {
        return Err(StoreError::AlreadyExists { record: Box::new(stored) });
    }
    let link = chain::append(connection, notary, &entry::receipt(record))?;
    connection
        .prepare_cached(
            "INSERT INTO receipts (client_action_id, session_id, operation_id, fingerprint, caller, state, code, \
             detail, input_json, result_json, created_at_ms, updated_at_ms, request_id, link) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            record.client_action_id,
            record.session_id,
            record.operation_id,
            record.fingerprint,
            record.caller,
            record.state,
            record.code,
            record.detail,
            record.input_json,
            record.result_json,
            record.created_at_ms,
            record.updated_at_ms,
            record.request_id,
            link,
        ])?;
    put_steps(connection, &record.client_action_id, &record.steps)
}

pub(crate) fn update(connection: &Connection, notary: &dyn Notary, record: &ReceiptRecord) -> Result<(), StoreError> {
    let id = &record.client_action_id;
    let stored = get(connection, id)?.ok_or_else(|| StoreError::NotFound { what: "receipt", id: id.clone() })?;
    if let Some(reason) = contradiction(&stored, record) {
        return Err(StoreError::Conflict { what: "receipt", id: id.clone(), reason });
    }
    let link = chain::append(connection, notary, &entry::receipt(record))?;
    connection
        .prepare_cached(
            "UPDATE receipts SET state = ?2, code = ?3, detail = ?4, result_json = ?5, updated_at_ms = ?6, link = ?7 \
             WHERE client_action_id = ?1",
        )?
        .execute(params![
            id,
            record.state,
            record.code,
            record.detail,
            record.result_json,
            record.updated_at_ms,
            link
        ])?;
    put_steps(connection, id, &record.steps)
}

/// Why `next` cannot follow `stored`, if it cannot.
fn contradiction(stored: &ReceiptRecord, next: &ReceiptRecord) -> Option<&'static str> {
    let asked = |record: &ReceiptRecord| {
        (
            record.session_id.clone(),
            record.operation_id.clone(),
            record.fingerprint.clone(),
            record.caller.clone(),
            record.input_json.clone(),
            record.created_at_ms,
            record.request_id.clone(),
        )
    };
    if stored.state.is_final() {
        return Some("it is final");
    }
    if asked(stored) != asked(next) {
        return Some("what was asked differs from what is stored");
    }
    if next.steps.len() < stored.steps.len() {
        return Some("a recorded step is missing");
    }
    let changed = stored
        .steps
        .iter()
        .zip(&next.steps)
        .any(|(before, after)| before.name != after.name || !before.state.may_become(after.state));
    changed.then_some("a recorded step was changed")
}

fn put_steps(connection: &Connection, id: &str, steps: &[StepRecord]) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO receipt_steps (client_action_id, ordinal, name, state, code, detail) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT DO UPDATE SET state = excluded.state, code = excluded.code, detail = excluded.detail",
    )?;
    for (ordinal, step) in (0_i64..).zip(steps) {
        statement.execute(params![id, ordinal, step.name, step.state, step.code, step.detail])?;
    }
    Ok(())
}

pub(crate) fn get(connection: &Connection, id: &str) -> Result<Option<ReceiptRecord>, StoreError> {
    get_from(connection, COLUMNS, id)
}

/// The same of a file of this version, which is checked before it is brought up to date.
pub(crate) fn get_of_version(
    connection: &Connection,
    version: i64,
    id: &str,
) -> Result<Option<ReceiptRecord>, StoreError> {
    if version >= REQUEST_IDS_SINCE {
        return get(connection, id);
    }
    get_from(connection, &COLUMNS.replace("request_id", "NULL"), id)
}

fn get_from(connection: &Connection, columns: &str, id: &str) -> Result<Option<ReceiptRecord>, StoreError> {
    let found = connection
        .prepare_cached(&format!("SELECT {columns} FROM receipts WHERE client_action_id = ?1"))?
        .query_row([id], from_row)
        .optional()?;
    found.map(|record| with_steps(connection, record)).transpose()
}

pub(crate) fn open(connection: &Connection) -> Result<Vec<ReceiptRecord>, StoreError> {
    // rowid is the order of insertion; a clock may go back.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM receipts WHERE state IN ('queued', 'in_flight') ORDER BY rowid"
    ))?;
    let records = statement.query_map([], from_row)?.collect::<Result<Vec<_>, _>>()?;
    records.into_iter().map(|record| with_steps(connection, record)).collect()
}

fn with_steps(connection: &Connection, mut record: ReceiptRecord) -> Result<ReceiptRecord, StoreError> {
    record.steps = connection
        .prepare_cached(
            "SELECT name, state, code, detail FROM receipt_steps WHERE client_action_id = ?1 ORDER BY ordinal",
        )?
        .query_map([&record.client_action_id], |row| {
            Ok(StepRecord { name: row.get(0)?, state: row.get(1)?, code: row.get(2)?, detail: row.get(3)? })
        })?
        .collect::<Result<_, _>>()?;
    Ok(record)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<ReceiptRecord> {
    Ok(ReceiptRecord {
        client_action_id: row.get(0)?,
        session_id: row.get(1)?,
        operation_id: row.get(2)?,
        fingerprint: row.get(3)?,
        caller: row.get(4)?,
        state: row.get(5)?,
        code: row.get(6)?,
        detail: row.get(7)?,
        input_json: row.get(8)?,
        result_json: row.get(9)?,
        steps: Vec::new(),
        created_at_ms: row.get(10)?,
        updated_at_ms: row.get(11)?,
        request_id: row.get(12)?,
    })
}
