//! Tokens in the ledger: once a name, revoked for good, and no change of a row unseen.

use super::*;
use crate::migrate;
use crate::testing::{Word, private_directory};

fn open(directory: &Path) -> Result<Ledger, StoreError> {
    Ledger::open(directory, Arc::new(Word("own")), Check::Whole, 77)
}

fn token(name: &str, digit: &str) -> TokenRecord {
    TokenRecord {
        name: name.into(),
        token_sha256: digit.repeat(64),
        roles: "observer+operator".into(),
        created_at_ms: 5,
        revoked_at_ms: None,
    }
}

#[test]
fn a_name_is_used_once_and_a_revoked_token_stays_revoked() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    ledger.insert_token(token("a", "1")).unwrap();
    ledger.insert_token(token("b", "2")).unwrap();
    assert!(matches!(ledger.insert_token(token("a", "3")), Err(StoreError::Conflict { what: "token", .. })));
    ledger.revoke_token("a", 7).unwrap();
    ledger.revoke_token("a", 8).unwrap();
    assert!(matches!(ledger.revoke_token("c", 8), Err(StoreError::NotFound { what: "token", .. })));
    assert!(matches!(ledger.insert_token(token("a", "3")), Err(StoreError::Conflict { what: "token", .. })));
    drop(ledger);
    let ledger = open(directory.path()).unwrap();
    let revoked = TokenRecord { revoked_at_ms: Some(7), ..token("a", "1") };
    assert_eq!(ledger.tokens().unwrap(), [revoked, token("b", "2")]);
    let verdict = ledger.verify().unwrap();
    // Its beginning, two made, one revoked.
    assert_eq!((verdict.links, verdict.rows, verdict.broken), (4, 2, None));
}

/// A token that somebody gives rights, brings back or puts in is found before it is used.
#[test]
fn each_change_of_a_row_by_hand_is_found() {
    for change in [
        "UPDATE tokens SET name = 'c' WHERE name = 'a'",
        "UPDATE tokens SET token_sha256 = replace(token_sha256, '1', '9') WHERE name = 'a'",
        "UPDATE tokens SET roles = 'approver' WHERE name = 'a'",
        "UPDATE tokens SET created_at_ms = 4 WHERE name = 'a'",
        "UPDATE tokens SET revoked_at_ms = NULL WHERE name = 'a'",
        "UPDATE tokens SET link = 0 WHERE name = 'b'",
        "DELETE FROM tokens WHERE name = 'b'",
        "INSERT INTO tokens VALUES ('c', replace(hex(zeroblob(32)), '0', 'a'), 'approver', 1, NULL, 0)",
        "INSERT INTO tokens SELECT 'c', replace(token_sha256, '1', 'a'), 'approver', 1, NULL, link FROM tokens LIMIT 1",
    ] {
        let directory = private_directory();
        let ledger = open(directory.path()).unwrap();
        ledger.insert_token(token("a", "1")).unwrap();
        ledger.insert_token(token("b", "2")).unwrap();
        ledger.revoke_token("a", 7).unwrap();
        drop(ledger);
        let connection = Connection::open(directory.path().join(file::LEDGER_FILE)).unwrap();
        assert_eq!(connection.execute(change, []).unwrap(), 1, "{change}");
        drop(connection);
        assert!(matches!(open(directory.path()), Err(StoreError::Damaged { .. })), "{change}");
    }
}

#[test]
fn a_ledger_of_before_is_taken_over() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::migrate(&mut connection, &migrate::LEDGER[..3], &|_, _| Ok(())).unwrap();
    migrate::migrate(&mut connection, migrate::LEDGER, &|_, _| Ok(())).unwrap();
    assert_eq!(tokens::all(&connection).unwrap(), []);
}
