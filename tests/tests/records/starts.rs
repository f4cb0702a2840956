//! The start: listening before the records are checked, whole after a stop that was not in order, one daemon a state.

use super::{edit, final_receipt, home, ledger, notary, refused};
use serde_json::json;
use std::time::{Duration, Instant};
use store::{Check, Ledger};
use testkit::daemon::{Client, Home, Reply};

/// Receipts whose check takes a while even on a fast machine: their inputs are hashed again.
fn make_much(home: &Home) {
    let ledger = Ledger::open(&home.state(), notary(home), Check::Whole, 1).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let ledger = &ledger;
            scope.spawn(move || {
                for number in 0..1500 {
                    let record = final_receipt(&format!("much-{writer}-{number}"), None, 1);
                    ledger.insert_receipt(record).unwrap();
                }
            });
        }
    });
    ledger.close().unwrap();
}

fn is_checking(ready: &Reply) -> bool {
    ready.status == 503 && ready.body["reasons"][0]["code"] == "records_checking"
}

/// What was refused while the daemon checked, until it was ready.
fn watch_start(home: &Home) -> Vec<(u16, serde_json::Value)> {
    let (socket, token) = (home.socket(), home.owner_token().unwrap());
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        let daemon = scope.spawn(|| home.serve().unwrap());
        let client = Client::new(&socket).with_token(&token);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let Ok(ready) = client.get("/v1/readyz") else {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            };
            if !is_checking(&ready) {
                break;
            }
            // Each at once after the other: a start may be over between two of them.
            let paths = ["/v1/sessions", "/v1/actions/x", "/v1/audit", "/v1/audit/verification"];
            let mut replies = vec![ready];
            replies.extend(paths.iter().map(|path| client.get(path).unwrap()));
            let body = json!({"operation_id": "provider.usage.read", "input": {}, "client_action_id": "early"});
            replies.push(client.post("/v1/actions", &body).unwrap());
            replies.push(client.get("/v1/status").unwrap());
            if is_checking(&client.get("/v1/readyz").unwrap()) {
                seen.extend(replies.into_iter().map(|reply| (reply.status, reply.body)));
            }
        }
        drop(daemon.join().unwrap());
    });
    seen
}

#[test]
fn it_listens_before_its_records_are_checked_and_does_nothing_until_then() {
    let home = home();
    assert!(home.serve().unwrap().stop().unwrap().status.success());
    make_much(&home);
    let seen = watch_start(&home);
    assert!(!seen.is_empty(), "the daemon was never seen to check");
    for round in seen.chunks(7) {
        assert_eq!(round[0].0, 503);
        assert_eq!(round[0].1["reasons"][0]["code"], "records_checking", "{:?}", round[0]);
        for (status, body) in &round[1..6] {
            assert_eq!((*status, &body["code"], &body["retryable"]), (503, &json!("records_checking"), &json!(true)));
        }
        assert_eq!((round[6].0, &round[6].1["state"]), (200, &json!("starting")));
        assert_eq!(round[6].1["findings"][0]["code"], "records_checking");
    }
}

#[test]
fn everything_is_checked_after_a_kill_and_not_after_an_orderly_stop() {
    let home = home();
    let daemon = home.serve().unwrap();
    refused(&daemon, "one");
    assert!(daemon.stop().unwrap().status.success());
    let daemon = home.serve().unwrap();
    assert!(daemon.log().unwrap().contains("whole=false"), "{}", daemon.log().unwrap());
    daemon.kill().unwrap();
    std::fs::remove_file(home.path().join("daemon.log")).unwrap();
    let daemon = home.serve().unwrap();
    assert!(daemon.log().unwrap().contains("whole=true"), "{}", daemon.log().unwrap());
    assert!(daemon.stop().unwrap().status.success());
    // In order, and touched since.
    edit(&ledger(&home), "CREATE TABLE touched (n); DROP TABLE touched;");
    std::fs::remove_file(home.path().join("daemon.log")).unwrap();
    let daemon = home.serve().unwrap();
    assert!(daemon.log().unwrap().contains("whole=true"), "{}", daemon.log().unwrap());
}

#[test]
fn a_second_daemon_is_refused_while_the_first_one_checks_and_while_it_is_blocked() {
    let home = home();
    assert!(home.serve().unwrap().stop().unwrap().status.success());
    std::fs::write(ledger(&home), "this is no database").unwrap();
    let first = home.serve_until("/v1/healthz").unwrap();
    let told = home.run(&["serve", "--json"]).unwrap();
    assert_eq!((told.code, told.json()["error"]["code"].as_str()), (Some(6), Some("already_running")), "{told:?}");
    assert!(first.stop().unwrap().status.success());
    assert_eq!(std::fs::read(ledger(&home)).unwrap(), b"this is no database");
}
