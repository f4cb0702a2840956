//! The daemon's starts.

use rusqlite::{Connection, OptionalExtension};

use crate::error::StoreError;

pub(crate) fn count(connection: &Connection) -> Result<u64, StoreError> {
    let sql = "UPDATE daemon_starts SET number = number + 1 RETURNING number";
    let number: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    number.map(i64::unsigned_abs).ok_or_else(|| StoreError::damaged("it does not count the daemon's starts"))
}
