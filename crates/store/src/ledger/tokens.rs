//! Tokens of clients: what they may do, and the digest by which one is known.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::audit::Notary;
use crate::error::StoreError;
use crate::ledger::{chain, entry};
use crate::record::TokenRecord;

const COLUMNS: &str = "name, token_sha256, roles, created_at_ms, revoked_at_ms";

pub(crate) fn insert(connection: &Connection, notary: &dyn Notary, record: &TokenRecord) -> Result<(), StoreError> {
    if get(connection, &record.name)?.is_some() {
        return Err(StoreError::Conflict { what: "token", id: record.name.clone(), reason: "the name is taken" });
    }
    let link = chain::append(connection, notary, &entry::token(record))?;
    connection
        .prepare_cached(
            "INSERT INTO tokens (name, token_sha256, roles, created_at_ms, revoked_at_ms, link) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            record.name,
            record.token_sha256,
            record.roles,
            record.created_at_ms,
            record.revoked_at_ms,
            link
        ])?;
    Ok(())
}

/// One that is revoked already is left as it is.
pub(crate) fn revoke(
    connection: &Connection,
    notary: &dyn Notary,
    name: &str,
    revoked_at_ms: i64,
) -> Result<(), StoreError> {
    let stored = get(connection, name)?.ok_or_else(|| StoreError::NotFound { what: "token", id: name.to_owned() })?;
    if stored.revoked_at_ms.is_some() {
        return Ok(());
    }
    let revoked = TokenRecord { revoked_at_ms: Some(revoked_at_ms), ..stored };
    let link = chain::append(connection, notary, &entry::token(&revoked))?;
    connection.prepare_cached("UPDATE tokens SET revoked_at_ms = ?2, link = ?3 WHERE name = ?1")?.execute(params![
        name,
        revoked_at_ms,
        link
    ])?;
    Ok(())
}

pub(crate) fn get(connection: &Connection, name: &str) -> Result<Option<TokenRecord>, StoreError> {
    Ok(connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM tokens WHERE name = ?1"))?
        .query_row([name], from_row)
        .optional()?)
}

pub(crate) fn all(connection: &Connection) -> Result<Vec<TokenRecord>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM tokens ORDER BY rowid"))?;
    let records = statement.query_map([], from_row)?.collect::<Result<_, _>>()?;
    Ok(records)
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<TokenRecord> {
    Ok(TokenRecord {
        name: row.get(0)?,
        token_sha256: row.get(1)?,
        roles: row.get(2)?,
        created_at_ms: row.get(3)?,
        revoked_at_ms: row.get(4)?,
    })
}
