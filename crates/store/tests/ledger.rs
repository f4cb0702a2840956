//! The ledger through its public face: reopening, races, rules of what may follow what.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use store::{
    AcceptState, ReceiptRecord, ReceiptState, SessionOrigin, SessionRecord, StepRecord, StepState, StoreError,
};

mod support;

use support::open_ledger;

const CHILD_DIRECTORY: &str = "STORE_TEST_CHILD_DIRECTORY";

fn private_directory() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn step(name: &str, state: StepState) -> StepRecord {
    StepRecord { name: name.into(), state, code: None, detail: None }
}

fn receipt(id: &str) -> ReceiptRecord {
    ReceiptRecord {
        client_action_id: id.into(),
        session_id: None,
        operation_id: "provider.auth.read".into(),
        fingerprint: "0".repeat(64),
        caller: "owner".into(),
        state: ReceiptState::Queued,
        code: None,
        detail: None,
        input_json: "{}".into(),
        result_json: None,
        steps: Vec::new(),
        created_at_ms: 1_700_000_000_000,
        updated_at_ms: 1_700_000_000_000,
        request_id: Some("request-1".into()),
    }
}

fn session(id: &str, workspace: &str) -> SessionRecord {
    SessionRecord {
        session_id: id.into(),
        workspace: workspace.into(),
        title: Some("title".into()),
        origin: SessionOrigin::Forked,
        parent_session_id: Some("parent".into()),
        baseline_event_id: Some("event".into()),
        created_at_ms: 1,
        closed_at_ms: None,
        changed_by: "owner".into(),
        changed_at_ms: 1,
    }
}

fn reason(error: StoreError) -> &'static str {
    let StoreError::Conflict { reason, .. } = error else { panic!("{error}") };
    reason
}

#[test]
fn everything_is_there_after_reopening() {
    let directory = private_directory();
    let mut full = receipt("full");
    full.session_id = Some("s".into());
    full.state = ReceiptState::Applied;
    full.code = Some("code".into());
    full.detail = Some("détail «»".into());
    full.result_json = Some("{\"a\":1}".into());
    full.steps = vec![
        step("reject", StepState::Done),
        StepRecord {
            name: "send_message".into(),
            state: StepState::Failed,
            code: Some("c".into()),
            detail: Some("d".into()),
        },
    ];
    {
        let ledger = open_ledger(directory.path()).unwrap();
        ledger.insert_receipt(full.clone()).unwrap();
        ledger.insert_receipt(receipt("open")).unwrap();
        ledger.put_session(session("s", "/w")).unwrap();
        ledger.record_accept("s", "approval", &["e1".into(), "e2".into()], 5).unwrap();
    }
    let ledger = open_ledger(directory.path()).unwrap();
    assert_eq!(ledger.receipt("full").unwrap(), Some(full));
    assert_eq!(ledger.receipt("open").unwrap(), Some(receipt("open")));
    assert_eq!(ledger.receipts_open().unwrap(), vec![receipt("open")]);
    assert_eq!(ledger.sessions().unwrap(), vec![session("s", "/w")]);
    assert_eq!(ledger.accepts("s").unwrap().len(), 2);
    assert_eq!(ledger.receipt("other").unwrap(), None);
}

#[test]
#[ignore = "run by what_was_answered_survives_a_kill in a process of its own"]
fn child_inserts_until_it_is_killed() {
    let directory = PathBuf::from(std::env::var_os(CHILD_DIRECTORY).expect("set by the parent"));
    let ledger = open_ledger(&directory).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in 0..100_000 {
                    let mut record = receipt(&format!("{writer}-{number}"));
                    record.steps = vec![step("send_message", StepState::Intent)];
                    ledger.insert_receipt(record).unwrap();
                    println!("answered {writer}-{number}");
                }
            });
        }
    });
}

#[test]
fn what_was_answered_survives_a_kill() {
    for answers in [1, 20, 100] {
        let directory = private_directory();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "child_inserts_until_it_is_killed", "--nocapture"])
            .env(CHILD_DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered: Vec<String> = Vec::new();
        while answered.len() < answers {
            let line = lines.next().expect("the child goes on").unwrap();
            answered.extend(line.split("answered ").nth(1).map(str::to_owned));
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let ledger = open_ledger(directory.path()).unwrap();
        for id in answered {
            let found = ledger.receipt(&id).unwrap().unwrap_or_else(|| panic!("{id} was answered and is lost"));
            assert_eq!(found.steps, vec![step("send_message", StepState::Intent)]);
        }
        for open in ledger.receipts_open().unwrap() {
            assert_eq!(open.steps.len(), 1, "a receipt without its step: {}", open.client_action_id);
        }
    }
}

#[test]
fn of_many_callers_with_one_key_exactly_one_wins() {
    const KEYS: usize = 20;
    const CALLERS: usize = 16;
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    let start = Barrier::new(CALLERS);
    let won: Vec<Vec<usize>> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (ledger, start) = (ledger.clone(), &start);
                scope.spawn(move || {
                    start.wait();
                    let mut won = Vec::new();
                    for key in 0..KEYS {
                        let mut record = receipt(&format!("key-{key}"));
                        record.caller = format!("caller-{caller}");
                        match ledger.insert_receipt(record) {
                            Ok(()) => won.push(key),
                            Err(StoreError::AlreadyExists { record }) => {
                                assert_eq!(record.client_action_id, format!("key-{key}"));
                                assert_ne!(record.caller, format!("caller-{caller}"));
                            }
                            Err(other) => panic!("{other}"),
                        }
                    }
                    won
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    for key in 0..KEYS {
        let winners: Vec<_> = (0..CALLERS).filter(|caller| won[*caller].contains(&key)).collect();
        assert_eq!(winners.len(), 1, "key {key}: {winners:?}");
        let stored = ledger.receipt(&format!("key-{key}")).unwrap().unwrap();
        assert_eq!(stored.caller, format!("caller-{}", winners[0]));
    }
}

#[test]
fn a_receipt_goes_forward_and_never_back() {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    let mut record = receipt("a");
    assert_eq!(ledger.update_receipt(record.clone()), Err(StoreError::NotFound { what: "receipt", id: "a".into() }));
    ledger.insert_receipt(record.clone()).unwrap();
    record.state = ReceiptState::InFlight;
    record.steps = vec![step("reject", StepState::Intent)];
    ledger.update_receipt(record.clone()).unwrap();
    record.steps = vec![step("reject", StepState::Done), step("send_message", StepState::Unknown)];
    ledger.update_receipt(record.clone()).unwrap();

    let mut wrong = record.clone();
    wrong.steps.pop();
    assert_eq!(reason(ledger.update_receipt(wrong).unwrap_err()), "a recorded step is missing");
    for (index, name, state) in
        [(0, "reject", StepState::Failed), (0, "other", StepState::Done), (1, "send_message", StepState::Intent)]
    {
        let mut wrong = record.clone();
        wrong.steps[index] = step(name, state);
        assert_eq!(reason(ledger.update_receipt(wrong).unwrap_err()), "a recorded step was changed");
    }
    let asked: [fn(&mut ReceiptRecord); 6] = [
        |record| record.session_id = Some("other".into()),
        |record| record.operation_id = "other".into(),
        |record| record.fingerprint = "1".repeat(64),
        |record| record.caller = "other".into(),
        |record| record.input_json = "[]".into(),
        |record| record.created_at_ms = 0,
    ];
    for change in asked {
        let mut wrong = record.clone();
        change(&mut wrong);
        assert_eq!(reason(ledger.update_receipt(wrong).unwrap_err()), "what was asked differs from what is stored");
    }
    assert_eq!(ledger.receipt("a").unwrap(), Some(record.clone()), "no refused update left anything");

    record.steps[1] = step("send_message", StepState::Done);
    record.state = ReceiptState::Applied;
    record.updated_at_ms += 1;
    ledger.update_receipt(record.clone()).unwrap();
    assert_eq!(ledger.receipts_open().unwrap(), Vec::new());
    for state in [ReceiptState::InFlight, ReceiptState::Applied, ReceiptState::Rejected] {
        let mut wrong = record.clone();
        wrong.state = state;
        assert_eq!(reason(ledger.update_receipt(wrong).unwrap_err()), "it is final");
    }
    assert_eq!(ledger.receipt("a").unwrap(), Some(record));
}

#[test]
fn open_receipts_come_in_the_order_they_were_stored() {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    for (number, id) in ["z", "a", "m"].into_iter().enumerate() {
        let mut record = receipt(id);
        record.created_at_ms -= i64::try_from(number).unwrap();
        ledger.insert_receipt(record).unwrap();
    }
    let ids: Vec<_> = ledger.receipts_open().unwrap().into_iter().map(|record| record.client_action_id).collect();
    assert_eq!(ids, ["z", "a", "m"]);
}

#[test]
fn a_session_keeps_its_workspace_and_may_be_opened_again() {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    let mut record = session("s", "/w");
    ledger.put_session(record.clone()).unwrap();
    record.title = None;
    ledger.put_session(record.clone()).unwrap();
    assert_eq!(ledger.session("s").unwrap(), Some(record.clone()));
    assert_eq!(
        reason(ledger.put_session(session("s", "/elsewhere")).unwrap_err()),
        "it is known with another workspace"
    );
    ledger.close_session("s", 9, "owner").unwrap();
    ledger.close_session("s", 10, "owner").unwrap();
    assert_eq!(ledger.session("s").unwrap().unwrap().closed_at_ms, Some(9));
    ledger.put_session(record.clone()).unwrap();
    assert_eq!(ledger.sessions().unwrap(), vec![record]);
    assert_eq!(ledger.close_session("t", 1, "owner"), Err(StoreError::NotFound { what: "session", id: "t".into() }));
}

#[test]
fn an_accept_is_recorded_once_and_whole() {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    ledger.record_accept("s", "first", &["e1".into()], 1).unwrap();
    assert_eq!(
        ledger.record_accept("s", "second", &["e0".into(), "e1".into()], 2),
        Err(StoreError::AcceptAlreadySent { event_id: "e1".into() })
    );
    assert_eq!(ledger.accepts("s").unwrap().len(), 1, "e0 must not be recorded alone");
    ledger.record_accept("fork", "third", &["e1".into()], 3).unwrap();

    for (state, allowed) in [
        (AcceptState::Sent, true),
        (AcceptState::InDoubt, true),
        (AcceptState::Sent, false),
        (AcceptState::Answered, true),
        (AcceptState::InDoubt, false),
        (AcceptState::Sent, false),
        (AcceptState::Answered, true),
    ] {
        assert_eq!(ledger.set_accept_state("s", "e1", state, 4).is_ok(), allowed, "{state:?}");
    }
    assert_eq!(ledger.withdraw_unsent_accept("s", "first").unwrap(), 0, "an answered one stays");
    assert_eq!(ledger.withdraw_unsent_accept("fork", "third").unwrap(), 1);
    assert_eq!(ledger.accepts("fork").unwrap(), Vec::new());
    assert_eq!(
        ledger.set_accept_state("s", "e9", AcceptState::Answered, 4),
        Err(StoreError::NotFound { what: "accept", id: "e9".into() })
    );
}

#[test]
fn of_many_accepts_of_one_action_exactly_one_is_recorded() {
    let directory = private_directory();
    let ledger = open_ledger(directory.path()).unwrap();
    let wins = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..16)
            .map(|sender| {
                let ledger = ledger.clone();
                scope.spawn(move || ledger.record_accept("s", &format!("a{sender}"), &["e".into()], 1).is_ok())
            })
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(wins, 1);
}

#[test]
fn the_stored_words_are_read_back() {
    for word in ["queued", "in_flight", "applied", "rejected", "outcome_unknown"] {
        assert_eq!(ReceiptState::parse(word).unwrap().as_str(), word);
    }
    for word in ["intent", "done", "failed", "unknown", "not_sent"] {
        assert_eq!(StepState::parse(word).unwrap().as_str(), word);
    }
    assert_eq!(ReceiptState::parse("Queued"), None);
}
