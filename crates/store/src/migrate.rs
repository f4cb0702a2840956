//! Numbered migrations: the file's `user_version` is the number of the last one applied.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::StoreError;

/// The ledger's migrations, in order; one that was released is never edited.
pub(crate) const LEDGER: &[&str] = &[
    include_str!("migrations/ledger_0001.sql"),
    include_str!("migrations/ledger_0002.sql"),
    include_str!("migrations/ledger_0003.sql"),
    include_str!("migrations/ledger_0004.sql"),
    include_str!("migrations/ledger_0005.sql"),
];

/// The journal's migrations, in order; one that was released is never edited.
pub(crate) const JOURNAL: &[&str] = &[
    include_str!("migrations/journal_0001.sql"),
    include_str!("migrations/journal_0002.sql"),
    include_str!("migrations/journal_0003.sql"),
    include_str!("migrations/journal_0004.sql"),
];

/// The number of the newest migration.
pub(crate) fn newest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// The number of the last migration that the file has.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// What a migration does that SQL cannot; gets the version that the file had.
pub(crate) type Complete<'a> = &'a dyn Fn(&Connection, usize) -> Result<(), StoreError>;

/// Applies what is missing, all of it or nothing, `complete` included.
pub(crate) fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
    complete: Complete<'_>,
) -> Result<(), StoreError> {
    let present = usize::try_from(version(connection)?).unwrap_or(usize::MAX);
    let missing = migrations.get(present..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in missing {
        transaction.execute_batch(migration)?;
    }
    complete(&transaction, present)?;
    transaction.pragma_update(None, "user_version", newest(migrations))?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE t (a INTEGER) STRICT; INSERT INTO t VALUES (7);";
    const SECOND: &str = "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 1;";

    fn nothing(_: &Connection, _: usize) -> Result<(), StoreError> {
        Ok(())
    }

    fn sum(connection: &Connection) -> i64 {
        connection.query_row("SELECT sum(a + b) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_empty_file_gets_every_migration() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST, SECOND], &nothing).unwrap();
        assert_eq!(version(&connection).unwrap(), 2);
        assert_eq!(sum(&connection), 8);
    }

    #[test]
    fn an_older_file_gets_only_what_is_missing_and_keeps_its_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST], &nothing).unwrap();
        connection.execute("INSERT INTO t VALUES (10)", []).unwrap();
        migrate(&mut connection, &[FIRST, SECOND], &nothing).unwrap();
        migrate(&mut connection, &[FIRST, SECOND], &nothing).unwrap();
        assert_eq!(version(&connection).unwrap(), 2);
        assert_eq!(sum(&connection), 19);
    }

    #[test]
    fn a_migration_that_fails_leaves_the_file_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST], &nothing).unwrap();
        assert!(migrate(&mut connection, &[FIRST, SECOND, "CREATE TABLE t (again INTEGER)"], &nothing).is_err());
        assert_eq!(version(&connection).unwrap(), 1);
        assert!(connection.prepare("SELECT b FROM t").is_err(), "the second migration must be undone as well");
    }

    #[test]
    fn every_released_schema_applies_to_an_empty_file() {
        for migrations in [LEDGER, JOURNAL] {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection, migrations, &nothing).unwrap();
            assert_eq!(version(&connection).unwrap(), newest(migrations));
        }
    }
}
