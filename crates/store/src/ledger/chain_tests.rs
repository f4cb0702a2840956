//! The chain: what becomes a link, and that no change of the file around it stays unseen.

use rusqlite::types::Value;

use super::*;
use crate::audit::{Broken, Fault};
use crate::migrate;
use crate::record::{ReceiptState, SessionOrigin, StepState};
use crate::testing::{self, PLAIN, Word, private_directory};

fn notary() -> Arc<dyn Notary> {
    Arc::new(Word("own"))
}

fn open(directory: &Path) -> Result<Ledger, StoreError> {
    Ledger::open(directory, notary(), Check::Whole, 77)
}

fn receipt(id: &str) -> ReceiptRecord {
    ReceiptRecord {
        session_id: Some("s".into()),
        input_json: "{\"text\":\"what was said\"}".into(),
        ..testing::receipt(id)
    }
}

fn session(id: &str) -> SessionRecord {
    SessionRecord {
        session_id: id.into(),
        workspace: "/w".into(),
        title: Some("title".into()),
        origin: SessionOrigin::Attached,
        parent_session_id: Some("p".into()),
        baseline_event_id: Some("b".into()),
        created_at_ms: 1,
        closed_at_ms: None,
        changed_by: "owner".into(),
        changed_at_ms: 1,
    }
}

/// Every kind of change once.
fn fill(ledger: &Ledger) {
    ledger.put_session(session("s")).unwrap();
    ledger.insert_receipt(receipt("a")).unwrap();
    ledger.insert_receipt(receipt("b")).unwrap();
    let mut done = receipt("a");
    (done.state, done.code, done.detail) = (ReceiptState::Rejected, Some("c".into()), Some("d".into()));
    (done.result_json, done.updated_at_ms) = (Some("{}".into()), 5);
    (done.steps[0].state, done.steps[0].code) = (StepState::Failed, Some("c".into()));
    done.steps[0].detail = Some("d".into());
    ledger.update_receipt(done).unwrap();
    ledger.record_accept("s", "approval", &["e1".into(), "e2".into()], 1).unwrap();
    ledger.set_accept_state("s", "e1", AcceptState::Answered, 2).unwrap();
    ledger.record_accept("s", "unsent", &["e3".into()], 1).unwrap();
    assert_eq!(ledger.withdraw_unsent_accept("s", "unsent").unwrap(), 1);
    ledger.record_accept("s", "again", &["e3".into()], 3).unwrap();
    ledger.record_accept("s", "gone", &["e4".into()], 3).unwrap();
    assert_eq!(ledger.withdraw_unsent_accept("s", "gone").unwrap(), 1);
    ledger.note_refusal(refused()).unwrap();
    ledger.close_session("s", 9, "owner").unwrap();
}

fn refused() -> RefusedRequest {
    RefusedRequest {
        request: "POST /v1/actions".into(),
        caller: "owner".into(),
        client_action_id: Some("never".into()),
        session_id: None,
        operation_id: None,
        code: "unknown_operation".into(),
        at_ms: 8,
    }
}

const LINKS: u64 = 15;

fn kinds(ledger: &Ledger) -> Vec<String> {
    let kind = |link: &crate::audit::Link| {
        let entry: serde_json::Value = serde_json::from_str(&link.entry).unwrap();
        entry["kind"].as_str().unwrap().to_owned()
    };
    ledger.audit(0, 500).unwrap().links.iter().map(kind).collect()
}

/// A filled ledger, changed by hand, and what is found then: while it is verified, and when it is opened.
fn after(tamper: impl Fn(&Connection)) -> Option<Broken> {
    let directory = private_directory();
    fill(&open(directory.path()).unwrap());
    let path = directory.path().join(file::LEDGER_FILE);
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;").unwrap();
    for trigger in ["audit_links_do_not_change", "audit_links_do_not_go"] {
        connection.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    tamper(&connection);
    let found = Walk::whole(&connection, &Word("own")).unwrap().broken;
    drop(connection);
    match (open(directory.path()), &found) {
        (Ok(ledger), None) => assert_eq!(ledger.verify().unwrap().broken, None),
        (Err(StoreError::Damaged { reason, .. }), Some(broken)) => assert_eq!(reason, broken.to_string()),
        (opened, found) => panic!("{found:?}, and opened: {opened:?}"),
    }
    found
}

fn execute(connection: &Connection, sql: &str) {
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

#[test]
fn every_change_and_every_refusal_is_a_link_and_the_chain_holds() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    assert_eq!(kinds(&ledger), ["ledger"]);
    fill(&ledger);
    let expected = [
        "ledger", "session", "receipt", "receipt", "receipt", "accept", "accept", "accept", "accept", "accept",
        "accept", "accept", "accept", "refusal", "session",
    ];
    assert_eq!(kinds(&ledger), expected);
    let verdict = ledger.verify().unwrap();
    assert_eq!((verdict.links, verdict.rows, verdict.broken), (LINKS, 6, None));
    assert_eq!(ledger.receipt("never").unwrap(), None, "a refusal uses no key");
    drop(ledger);
    assert_eq!(after(|_| ()), None);
}

#[test]
fn the_chain_holds_no_content() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    fill(&ledger);
    let text: String = ledger.audit(0, 500).unwrap().links.into_iter().map(|link| link.entry).collect();
    assert!(!text.contains("what was said") && !text.contains("title\":\"title"), "{text}");
}

#[test]
fn a_write_that_is_refused_leaves_no_link() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    fill(&ledger);
    ledger.insert_receipt(receipt("a")).unwrap_err();
    ledger.update_receipt(receipt("a")).unwrap_err();
    ledger.record_accept("s", "x", &["e9".into(), "e1".into()], 1).unwrap_err();
    ledger.close_session("unknown", 1, "owner").unwrap_err();
    assert_eq!(ledger.audit(0, 1).unwrap().head.n, LINKS);
    assert_eq!(ledger.verify().unwrap().broken, None);
}

#[test]
fn a_page_goes_on_where_the_last_one_ended() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    fill(&ledger);
    let mut seen = Vec::new();
    loop {
        let page = ledger.audit(seen.last().copied().unwrap_or(0), 4).unwrap();
        assert!(page.links.len() <= 4 && page.head.n == LINKS);
        if page.links.is_empty() {
            break;
        }
        seen.extend(page.links.iter().map(|link| link.n));
    }
    assert_eq!(seen, (1..=LINKS).collect::<Vec<_>>());
    assert_eq!(ledger.audit(0, usize::MAX).unwrap().links.len(), 15);
    assert_eq!(ledger.audit(u64::MAX, 1).unwrap().links, []);
}

#[test]
fn each_column_of_a_row_is_found_when_it_is_changed() {
    let directory = private_directory();
    fill(&open(directory.path()).unwrap());
    let connection = Connection::open(directory.path().join(file::LEDGER_FILE)).unwrap();
    let mut changed = 0;
    for (table, row, newest) in [
        ("receipts", "client_action_id = 'a'", 5),
        ("receipt_steps", "client_action_id = 'a'", 5),
        ("sessions", "session_id = 's'", 15),
        ("sent_accepts", "event_id = 'e1'", 8),
    ] {
        let sql = format!("SELECT name, type FROM pragma_table_info('{table}')");
        let columns: Vec<(String, String)> = connection
            .prepare(&sql)
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (column, kind) in columns {
            // An order of steps of one is no statement; the link of a row is changed below.
            if column == "ordinal" || column == "link" {
                continue;
            }
            let value = match (column.as_str(), kind.as_str()) {
                ("state", _) if table == "receipts" => Value::from("applied".to_owned()),
                ("state", _) if table == "sent_accepts" => Value::from("sent".to_owned()),
                ("state", _) => Value::from("done".to_owned()),
                ("origin", _) => Value::from("created".to_owned()),
                (_, "INTEGER") => Value::from(4242),
                _ => Value::from("other".to_owned()),
            };
            let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {row}");
            let broken = after(|connection| assert_eq!(connection.execute(&sql, [value.clone()]).unwrap(), 1));
            let broken = broken.unwrap_or_else(|| panic!("{table}.{column} was changed unseen"));
            assert!(matches!(broken.fault, Fault::RowDiffers | Fault::RowMissing), "{table}.{column}: {broken}");
            let at_key = broken.fault == Fault::RowMissing;
            assert!(at_key || broken.n == newest, "{table}.{column}: {broken}");
            changed += 1;
        }
    }
    assert_eq!(changed, 13 + 5 + 10 + 6);
}

#[test]
fn each_field_of_a_link_is_found_when_it_is_changed() {
    let find = |sql: &str| after(|connection| execute(connection, sql)).map(|broken| (broken.n, broken.fault));
    let cases = [
        ("UPDATE audit SET n = 90 WHERE n = 4", 4, Fault::Gap),
        ("UPDATE audit SET n = 90 WHERE n = 15", 15, Fault::Gap),
        ("UPDATE audit SET entry = replace(entry, 'owner', 'other') WHERE n = 4", 4, Fault::Digest),
        ("UPDATE audit SET digest = zeroblob(32) WHERE n = 4", 4, Fault::Digest),
        ("UPDATE audit_head SET n = 14", 15, Fault::Head),
        ("UPDATE audit_head SET n = 16", 16, Fault::Gap),
        ("UPDATE audit_head SET digest = zeroblob(32)", 15, Fault::Head),
        ("UPDATE audit_head SET signature = x'00'", 15, Fault::Signature),
        ("DELETE FROM audit_head", 15, Fault::Signature),
        ("DELETE FROM audit WHERE n = 1", 1, Fault::Gap),
        ("DELETE FROM audit WHERE n = 7", 7, Fault::Gap),
        ("DELETE FROM audit WHERE n = 15", 15, Fault::Gap),
        ("DELETE FROM audit WHERE n > 5", 6, Fault::Gap),
        ("DELETE FROM audit", 1, Fault::Gap),
    ];
    for (sql, n, fault) in cases {
        assert_eq!(find(sql), Some((n, fault)), "{sql}");
    }
}

#[test]
fn links_that_were_made_anew_are_found_by_the_signature() {
    // The tail is cut off, or an entry is replaced, and everything after it is computed again; only the key is missing.
    let rebuild = |connection: &Connection, keep: i64| {
        let mut before = chain::BEFORE_FIRST;
        execute(connection, &format!("DELETE FROM audit WHERE n > {keep}"));
        let entries: Vec<(i64, String)> = connection
            .prepare("SELECT n, entry FROM audit ORDER BY n")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (n, entry) in entries {
            before = chain::digest_of(&before, &entry);
            connection.execute("UPDATE audit SET digest = ?2 WHERE n = ?1", rusqlite::params![n, before]).unwrap();
        }
        let sql = "UPDATE audit_head SET n = ?1, digest = ?2";
        connection.execute(sql, rusqlite::params![keep, before]).unwrap();
    };
    // Link 14 is a refusal: no row tells of it.
    let cut = after(|connection| {
        rebuild(connection, 13);
        execute(connection, "UPDATE sessions SET closed_at_ms = NULL, changed_at_ms = 1, link = 2");
    });
    assert_eq!(cut.map(|broken| (broken.n, broken.fault)), Some((13, Fault::Signature)));
    let replaced = after(|connection| {
        execute(connection, "UPDATE audit SET entry = replace(entry, 'unknown_operation', 'x') WHERE n = 14");
        execute(connection, "INSERT INTO audit VALUES (16, '', zeroblob(32))");
        rebuild(connection, 15);
    });
    assert_eq!(replaced.map(|broken| (broken.n, broken.fault)), Some((15, Fault::Signature)));
    let foreign = after(|connection| {
        let head = chain::head(connection).unwrap().unwrap();
        let message = crate::audit::ChainHead::message(15, &entry::hex(&head.digest));
        connection.execute("UPDATE audit_head SET signature = ?1", [Word("other").sign(&message)]).unwrap();
    });
    assert_eq!(foreign.map(|broken| (broken.n, broken.fault)), Some((15, Fault::Signature)));
}

#[test]
fn swapped_lost_and_added_rows_are_found() {
    let find = |sql: &str| {
        let broken = after(|connection| execute(connection, sql)).unwrap_or_else(|| panic!("unseen: {sql}"));
        (broken.n, broken.fault)
    };
    let swap = "UPDATE receipts SET client_action_id = CASE client_action_id WHEN 'a' THEN 'b' ELSE 'a' END";
    // Both at once would collide on the way.
    let swapped = after(|connection| {
        execute(connection, "UPDATE receipts SET client_action_id = 'c' WHERE client_action_id = 'a'");
        execute(connection, "UPDATE receipts SET client_action_id = 'a' WHERE client_action_id = 'b'");
        execute(connection, "UPDATE receipts SET client_action_id = 'b' WHERE client_action_id = 'c'");
    });
    assert!(swapped.is_some(), "{swap}");
    assert_eq!(find("DELETE FROM receipts WHERE client_action_id = 'b'"), (4, Fault::RowMissing));
    assert_eq!(find("DELETE FROM sessions"), (2, Fault::RowMissing));
    assert_eq!(find("DELETE FROM sent_accepts WHERE event_id = 'e2'"), (7, Fault::RowMissing));
    assert_eq!(find("DELETE FROM sent_accepts WHERE event_id = 'e3'"), (11, Fault::RowMissing));
    let put_back =
        "INSERT INTO sent_accepts SELECT session_id, 'e4', 'gone', 'sent', 3, 3, 12 FROM sent_accepts LIMIT 1";
    assert_eq!(find(put_back), (13, Fault::RowDiffers), "what was withdrawn is gone");
    assert_eq!(find("DELETE FROM receipt_steps WHERE client_action_id = 'b'"), (4, Fault::RowDiffers));
    assert_eq!(find("INSERT INTO receipt_steps VALUES ('b', 1, 'n', 'done', NULL, NULL)"), (4, Fault::RowDiffers));
    // An older link: the row goes back to what it once was.
    let back = after(|connection| {
        execute(connection, "UPDATE receipt_steps SET state = 'intent', code = NULL, detail = NULL");
        execute(
            connection,
            "UPDATE receipts SET state = 'in_flight', code = NULL, detail = NULL, result_json = NULL, updated_at_ms = 1, \
             link = 3 WHERE client_action_id = 'a'",
        );
    });
    assert_eq!(back.map(|broken| (broken.n, broken.fault)), Some((5, Fault::RowDiffers)));
    assert_eq!(find("UPDATE receipts SET link = 14 WHERE client_action_id = 'b'"), (14, Fault::NoLink));
    assert_eq!(find("UPDATE receipts SET link = 99 WHERE client_action_id = 'b'"), (99, Fault::NoLink));
    let added = "INSERT INTO receipts SELECT 'new', session_id, operation_id, fingerprint, caller, state, code, detail, \
                 input_json, result_json, created_at_ms, updated_at_ms, 0, NULL FROM receipts WHERE client_action_id = 'b'";
    assert_eq!(find(added), (0, Fault::NoLink));
    let accept = "INSERT INTO sent_accepts VALUES ('s', 'e9', 'a', 'sent', 1, 1, 0)";
    assert_eq!(find(accept), (0, Fault::NoLink));
}

/// Whatever is compared first.
#[test]
fn of_several_broken_links_the_first_is_named() {
    let (receipt, accept) = (
        "UPDATE receipts SET caller = 'x' WHERE client_action_id = 'b'",
        "UPDATE sent_accepts SET sent_at_ms = 99 WHERE event_id = 'e1'",
    );
    let session = "UPDATE sessions SET title = 'x'";
    for (changes, first) in [
        ([session, accept], 8),
        ([session, receipt], 4),
        (["UPDATE audit SET entry = 'x' WHERE n = 10", accept], 8),
        (["UPDATE audit SET entry = 'x' WHERE n = 7", accept], 7),
        (["UPDATE audit_head SET signature = x'00'", accept], 8),
        (["DELETE FROM receipts WHERE client_action_id = 'a'", receipt], 3),
    ] {
        let broken = after(|connection| changes.iter().for_each(|sql| execute(connection, sql))).unwrap();
        assert_eq!(broken.n, first, "{changes:?}: {broken}");
    }
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    ["z", "a"].iter().for_each(|event| ledger.record_accept("s", "x", &[(*event).to_owned()], 1).unwrap());
    drop(ledger);
    let connection = Connection::open(directory.path().join(file::LEDGER_FILE)).unwrap();
    execute(&connection, "DELETE FROM sent_accepts");
    assert_eq!(Walk::whole(&connection, &Word("own")).unwrap().broken.unwrap().n, 2, "the accept that was sent first");
}

#[test]
fn a_link_cannot_be_changed_or_removed_by_a_statement_of_ours() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    for sql in ["UPDATE audit SET entry = ''", "DELETE FROM audit"] {
        let refused = ledger.worker.write(|connection| Ok(connection.execute(sql, [])?)).unwrap_err();
        assert!(matches!(&refused, StoreError::Database { detail } if detail.contains("never")), "{refused}");
    }
}

/// Whoever takes the chain away does not get the rest signed anew.
#[test]
fn a_ledger_without_a_chain_is_refused_and_left_as_it_is() {
    let directory = private_directory();
    let first = file::FileKind { migrations: &migrate::LEDGER[..1], oldest: 1, ..file::LEDGER };
    let (path, connection) = file::open(directory.path(), &first, &PLAIN).unwrap();
    connection.execute_batch("INSERT INTO sent_accepts VALUES ('s', 'e', 'x', 'in_doubt', 1, 2);").unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let damaged =
        |error: &StoreError| matches!(error, StoreError::Damaged { reason, .. } if reason.contains("version 1"));
    assert!(damaged(&open(directory.path()).unwrap_err()));
    assert!(damaged(&OfflineLedger::open(directory.path(), Arc::new(Word("own"))).unwrap_err()));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_verification_of_many_steps_is_not_disturbed_by_writers() {
    let directory = private_directory();
    let ledger = open(directory.path()).unwrap();
    for number in 0..450 {
        ledger.insert_receipt(receipt(&number.to_string())).unwrap();
    }
    std::thread::scope(|scope| {
        let writer = ledger.clone();
        scope.spawn(move || {
            for number in 0..200 {
                let mut done = receipt(&number.to_string());
                done.state = ReceiptState::OutcomeUnknown;
                writer.update_receipt(done).unwrap();
                writer.insert_receipt(receipt(&format!("new-{number}"))).unwrap();
            }
        });
        for _ in 0..5 {
            let verdict = ledger.verify().unwrap();
            assert_eq!(verdict.broken, None);
            assert!(verdict.links >= 451 && verdict.rows >= 450);
        }
    });
    assert_eq!(ledger.verify().unwrap().links, 851);
}
