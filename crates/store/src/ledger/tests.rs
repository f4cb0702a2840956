//! What needs the inside: a full disk, writes that share a transaction.

use super::*;
use crate::record::{ReceiptState, SessionOrigin, StepState};
use crate::testing::{Word, private_directory, receipt};

fn open(directory: &Path, max_pages: Option<u32>) -> Ledger {
    Ledger::open_bounded(directory, Arc::new(Word("own")), Check::Whole, 1, max_pages).unwrap()
}

#[test]
fn a_full_disk_refuses_the_write_and_keeps_what_was_stored() {
    let directory = private_directory();
    drop(open(directory.path(), None));
    let ledger = open(directory.path(), Some(40));
    let mut stored = 0;
    let refused = loop {
        let mut record = receipt(&format!("action-{stored}"));
        record.input_json = "x".repeat(5000);
        match ledger.insert_receipt(record) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1000, "the bound does not hold");
    };
    assert_eq!(refused, StoreError::DiskFull { path: directory.path().join("ledger.sqlite3") });
    assert!(stored > 3);
    assert_eq!(ledger.receipts_open().unwrap().len(), stored);
    assert_eq!(ledger.receipt(&format!("action-{stored}")).unwrap(), None, "not even a part of it is stored");

    drop(ledger);
    let ledger = open(directory.path(), None);
    assert_eq!(ledger.receipts_open().unwrap().len(), stored);
    ledger.insert_receipt(receipt("with room again")).unwrap();
}

#[test]
fn a_full_disk_under_many_writers_answers_each_truly() {
    let directory = private_directory();
    let ledger = open(directory.path(), Some(60));
    let answers: Vec<(String, bool)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let ledger = &ledger;
                scope.spawn(move || {
                    let store = |number: usize| {
                        let mut record = receipt(&format!("{writer}-{number}"));
                        record.input_json = "x".repeat(3000);
                        let id = record.client_action_id.clone();
                        match ledger.insert_receipt(record) {
                            Ok(()) => (id, true),
                            Err(StoreError::DiskFull { .. }) => (id, false),
                            Err(other) => panic!("{other}"),
                        }
                    };
                    (0..20).map(store).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(answers.iter().any(|(_, stored)| *stored) && answers.iter().any(|(_, stored)| !*stored));
    for (id, stored) in answers {
        assert_eq!(ledger.receipt(&id).unwrap().is_some(), stored, "{id}");
    }
}

#[test]
fn a_failing_write_of_a_batch_takes_no_other_with_it() {
    let directory = private_directory();
    let ledger = open(directory.path(), None);
    std::thread::scope(|scope| {
        // Holds the writer until the others wait, so that they share a transaction.
        let gate = std::sync::Arc::new(std::sync::Barrier::new(2));
        let (entered, worker) = (gate.clone(), ledger.worker.clone());
        scope.spawn(move || {
            worker.read(move |_| {
                entered.wait();
                std::thread::sleep(std::time::Duration::from_millis(100));
                Ok(())
            })
        });
        gate.wait();
        for number in 0..16 {
            let ledger = &ledger;
            scope.spawn(move || {
                let mut record = receipt(&format!("action-{number}"));
                if number % 2 == 1 {
                    record.client_action_id = "unknown".into();
                    assert!(matches!(ledger.update_receipt(record), Err(StoreError::NotFound { .. })));
                } else {
                    ledger.insert_receipt(record).unwrap();
                }
            });
        }
    });
    assert_eq!(ledger.receipts_open().unwrap().len(), 8);
}

/// A receipt that could not be closed stays what it was: nothing says that it was done, or that it was not.
#[test]
fn a_session_and_the_receipt_of_its_change_are_stored_both_or_neither() {
    let directory = private_directory();
    let ledger = open(directory.path(), None);
    let session = SessionRecord {
        session_id: "session".into(),
        workspace: "/w".into(),
        title: None,
        origin: SessionOrigin::Created,
        parent_session_id: None,
        baseline_event_id: None,
        created_at_ms: 1,
        closed_at_ms: None,
        changed_by: "owner".into(),
        changed_at_ms: 1,
    };
    ledger.put_session(session.clone()).unwrap();
    ledger.insert_receipt(receipt("a")).unwrap();
    let titled = SessionRecord { title: Some("t".into()), ..session.clone() };
    let applied = ReceiptRecord { state: ReceiptState::Applied, ..receipt("a") };
    let stored = || (ledger.session("session").unwrap().unwrap(), ledger.receipt("a").unwrap().unwrap());

    let elsewhere = SessionRecord { workspace: "/elsewhere".into(), ..titled.clone() };
    assert!(ledger.put_session_with_receipt(elsewhere, applied.clone()).is_err());
    assert!(ledger.put_session_with_receipt(titled.clone(), receipt("b")).is_err());
    assert_eq!(stored(), (session, receipt("a")));
    ledger.put_session_with_receipt(titled.clone(), applied.clone()).unwrap();
    assert_eq!(stored(), (titled, applied));
    assert_eq!(ledger.verify().unwrap().broken, None);
}

#[test]
fn what_a_full_disk_cut_off_is_in_no_link_and_no_receipt() {
    let directory = private_directory();
    let ledger = open(directory.path(), Some(60));
    ledger.insert_receipt(receipt("a")).unwrap();
    let mut done = receipt("a");
    done.state = ReceiptState::Applied;
    done.steps[0].state = StepState::Done;
    done.result_json = Some("x".repeat(1_000_000));
    assert!(matches!(ledger.update_receipt(done.clone()), Err(StoreError::DiskFull { .. })));
    let mut large = receipt("b");
    large.input_json = "x".repeat(1_000_000);
    assert!(matches!(ledger.insert_receipt(large), Err(StoreError::DiskFull { .. })));
    let as_it_was = |ledger: &Ledger| {
        assert_eq!(ledger.receipt("a").unwrap(), Some(receipt("a")));
        assert_eq!(ledger.receipt("b").unwrap(), None);
        let verdict = ledger.verify().unwrap();
        assert_eq!((verdict.links, verdict.rows, verdict.broken), (2, 1, None));
    };
    as_it_was(&ledger);
    drop(ledger);
    let ledger = open(directory.path(), None);
    as_it_was(&ledger);
    ledger.update_receipt(done).unwrap();
    assert_eq!(ledger.verify().unwrap().links, 3);
}

#[test]
fn a_clock_that_goes_back_changes_no_order_and_breaks_no_link() {
    let directory = private_directory();
    let ledger = open(directory.path(), None);
    for (id, at_ms) in [("first", 3_600_000), ("second", 0), ("third", -5), ("fourth", i64::MAX)] {
        let record = ReceiptRecord { created_at_ms: at_ms, updated_at_ms: at_ms, ..receipt(id) };
        ledger.insert_receipt(record).unwrap();
    }
    let ids: Vec<String> =
        ledger.receipts_open().unwrap().into_iter().map(|receipt| receipt.client_action_id).collect();
    assert_eq!(ids, ["first", "second", "third", "fourth"]);
    let links = ledger.audit(1, 9).unwrap().links;
    for (id, link) in ids.iter().zip(links) {
        assert!(link.entry.contains(&format!("\"client_action_id\":\"{id}\"")), "{}", link.entry);
    }
    drop(ledger);
    assert_eq!(open(directory.path(), None).verify().unwrap().broken, None);
}

#[test]
fn starts_are_counted_on_over_every_opening() {
    let directory = private_directory();
    let (mut before, ledger) = (0, open(directory.path(), None));
    let first = ledger.count_start().unwrap();
    drop(ledger);
    for _ in 0..3 {
        let number = open(directory.path(), None).count_start().unwrap();
        assert!(number > before && number > first && number < 1 << 23, "{number} after {before}");
        before = number;
    }
}

/// One that did not count starts yet, nor linked tokens, nor named requests. That a ledger is to be brought up to date lets nothing in it pass.
#[test]
fn a_ledger_of_the_version_before_is_verified_and_brought_up_to_date() {
    for (change, is_sound) in [
        ("", true),
        ("UPDATE receipts SET caller = 'x';", false),
        ("INSERT INTO tokens VALUES ('x', hex(zeroblob(32)), 'approver', 1, NULL);", false),
    ] {
        let directory = private_directory();
        open(directory.path(), None).insert_receipt(ReceiptRecord { request_id: None, ..receipt("kept") }).unwrap();
        let connection = Connection::open(directory.path().join(file::LEDGER_FILE)).unwrap();
        let undone = "DROP TABLE daemon_starts; ALTER TABLE tokens DROP COLUMN link; \
                      ALTER TABLE receipts DROP COLUMN request_id; PRAGMA user_version = 2;";
        let before = format!("{undone} {change}");
        connection.execute_batch(&before).unwrap();
        drop(connection);
        let opened = Ledger::open(directory.path(), Arc::new(Word("own")), Check::Whole, 1);
        match opened {
            Ok(ledger) => {
                assert!(is_sound && ledger.count_start().is_ok() && ledger.receipt("kept").unwrap().is_some())
            }
            Err(error) => assert!(!is_sound && matches!(error, StoreError::Damaged { .. }), "{error}"),
        }
    }
}
