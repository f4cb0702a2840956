//! Damaged records: the ledger is left as it is and nothing is done; the journal is set aside and begun anew.

use super::{changed, edit, files, get, home, ledger, refused};
use gatepost_tests::{Faked, LIMIT, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt as _;
use testkit::daemon::{Daemon, Home};
use testkit::fake_server::Plan;

/// A home whose ledger and journal hold something, after an orderly stop.
fn used() -> Home {
    let home = home();
    let daemon = home.serve().unwrap();
    for number in 0..30 {
        refused(&daemon, &format!("refused-{number}"));
    }
    assert!(daemon.stop().unwrap().status.success());
    home
}

/// Starts on damaged records and waits until that is known.
fn serve_damaged(home: &Home, name: &str) -> Daemon {
    let daemon = home.serve_until("/v1/healthz").unwrap();
    wait_until("the damage is found", LIMIT, || {
        let ready = daemon.client().get("/v1/readyz").unwrap();
        assert_eq!(ready.status, 503, "{name}: {}", ready.text);
        (ready.body["reasons"][0]["code"] != "records_checking").then_some(())
    });
    daemon
}

/// What is done to a ledger that nobody has open.
type Damage = Box<dyn Fn(&Home)>;

fn damages() -> Vec<(&'static str, Damage)> {
    let rewrite = |change: fn(&mut Vec<u8>)| -> Damage {
        Box::new(move |home: &Home| {
            let mut bytes = fs::read(ledger(home)).unwrap();
            change(&mut bytes);
            fs::write(ledger(home), bytes).unwrap();
        })
    };
    vec![
        ("no database", rewrite(|bytes| *bytes = b"this is no database".to_vec())),
        ("empty", rewrite(Vec::clear)),
        ("zeros", rewrite(|bytes| bytes.fill(0))),
        ("truncated", rewrite(|bytes| bytes.truncate(bytes.len() / 2))),
        (
            "one bit in an entry",
            rewrite(|bytes| {
                // Wherever it stands: a page may hold what it held before, where nothing reads it any more.
                for at in 0..bytes.len() - 11 {
                    if bytes[at..].starts_with(b"\"kind\":\"ref") {
                        bytes[at + 9] ^= 1;
                    }
                }
            }),
        ),
        (
            "a journal in its place",
            Box::new(|home| {
                fs::copy(home.state().join("journal.sqlite3"), ledger(home)).unwrap();
            }),
        ),
        (
            "a link that is gone",
            Box::new(|home| {
                edit(&ledger(home), "DROP TRIGGER audit_links_do_not_go; DELETE FROM audit WHERE n = 5;");
            }),
        ),
        (
            "its first version, without a chain",
            Box::new(|home| {
                edit(
                    &ledger(home),
                    "DROP TABLE audit; DROP TABLE audit_head; ALTER TABLE receipts DROP COLUMN link; \
                     ALTER TABLE sessions DROP COLUMN link; ALTER TABLE sent_accepts DROP COLUMN link; \
                     ALTER TABLE sessions DROP COLUMN changed_by; ALTER TABLE sessions DROP COLUMN changed_at_ms; \
                     PRAGMA user_version = 1;",
                );
            }),
        ),
        (
            "another key",
            Box::new(|home| {
                fs::remove_file(home.state().join("signing.key")).unwrap();
            }),
        ),
        (
            "a log without its file",
            Box::new(|home| {
                fs::rename(ledger(home), home.state().join("ledger.sqlite3-wal")).unwrap();
            }),
        ),
    ]
}

#[test]
fn on_a_damaged_ledger_the_daemon_stays_and_refuses_and_leaves_every_byte() {
    for (name, damage) in damages() {
        let home = used();
        damage(&home);
        let before = files(&home, "ledger");
        let daemon = serve_damaged(&home, name);
        let client = daemon.client();
        let ready = client.get("/v1/readyz").unwrap();
        assert_eq!(ready.body["reasons"][0]["code"], "ledger_damaged", "{name}: {}", ready.text);
        let status = get(client, "/v1/status");
        let finding = &status["findings"][0];
        assert_eq!((&status["state"], &finding["code"]), (&json!("blocked"), &json!("ledger_damaged")), "{name}");
        assert!(finding["remedy"].as_str().unwrap().contains("ledger set-aside"), "{name}: {finding}");
        assert!(finding["detail"].as_str().unwrap().contains("ledger.sqlite3"), "{name}: {finding}");
        let told = home.run(&["status", "--json"]).unwrap();
        assert_eq!(told.code, Some(4), "{name}: {told:?}");
        let start = json!({"workspace": home.workspace()});
        let act = json!({"operation_id": "provider.usage.read", "input": {}, "client_action_id": "a"});
        for reply in [client.post("/v1/sessions", &start), client.post("/v1/actions", &act), client.get("/v1/sessions")]
        {
            let reply = reply.unwrap();
            assert_eq!((reply.status, &reply.body["code"]), (503, &json!("ledger_damaged")), "{name}: {}", reply.text);
        }
        assert!(daemon.stop().unwrap().status.success(), "{name}");
        assert_eq!(changed(&before, &files(&home, "ledger")), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_damaged_ledger_is_set_aside_when_that_is_meant_and_a_good_one_never() {
    let home = used();
    let set_aside = |more: &[&str]| home.run(&[&["ledger", "set-aside", "--json"], more].concat()).unwrap();
    let forget = ["--forget-what-was-accepted"];
    let good = set_aside(&forget);
    assert_eq!((good.code, &good.json()["error"]["code"]), (Some(6), &json!("ledger_good")), "{good:?}");
    edit(&ledger(&home), "UPDATE audit_head SET n = n - 1;");
    let damaged = files(&home, "ledger");
    let daemon = serve_damaged(&home, "another head");
    assert_eq!(set_aside(&forget).code, Some(6), "a daemon runs");
    assert!(daemon.stop().unwrap().status.success());
    let asked = set_aside(&[]);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.json()["error"]["detail"].as_str().unwrap().contains("accepted"), "{asked:?}");
    assert_eq!(changed(&damaged, &files(&home, "ledger")), Vec::<String>::new());
    let done = set_aside(&forget);
    assert_eq!(done.code, Some(0), "{done:?}");
    let aside = std::path::PathBuf::from(done.json()["set_aside"].as_str().unwrap());
    assert_eq!(Some(&fs::read(&aside).unwrap()), damaged.get("ledger.sqlite3"));
    let daemon = home.serve().unwrap();
    assert_eq!(get(daemon.client(), "/v1/audit")["head"]["n"], 1, "a chain was begun anew");
    assert!(aside.exists());
}

/// A start after an orderly stop looks at little: what the daemon itself met must not be passed over by that.
#[test]
fn damage_that_is_met_while_the_daemon_runs_is_looked_for_by_the_next_start() {
    let home = used();
    let daemon = home.serve().unwrap();
    let bytes = fs::read(ledger(&home)).unwrap();
    let file = fs::OpenOptions::new().write(true).open(ledger(&home)).unwrap();
    // Wherever it stands; in the middle of the chain, which a start after an orderly stop does not read.
    let link = b"\"refused-3\"";
    for at in (0..bytes.len() - link.len()).filter(|at| bytes[*at..].starts_with(link)) {
        file.write_all_at(b"R", u64::try_from(at + 1).unwrap()).unwrap();
    }
    let clean = home.state().join("records.clean");
    assert!(daemon.stop().unwrap().status.success() && clean.exists(), "nobody met it");
    let daemon = home.serve().unwrap();
    assert_eq!(get(daemon.client(), "/v1/audit/verification")["intact"], false);
    assert!(daemon.stop().unwrap().status.success());
    assert!(!clean.exists());
    let daemon = serve_damaged(&home, "met while it ran");
    let ready = daemon.client().get("/v1/readyz").unwrap();
    assert_eq!(ready.body["reasons"][0]["code"], "ledger_damaged", "{}", ready.text);
    assert!(daemon.stop().unwrap().status.success());
}

/// Events of a session are read from the server again, and a reader of the old file is told to start over.
#[test]
fn a_damaged_journal_is_set_aside_and_no_old_cursor_is_taken_for_a_new_one() {
    let faked = Faked::new(Plan::default());
    let mut scene = faked.scene();
    let session = scene.session();
    let proposed = session.propose(&scene.marker("journal").directive());
    let (id, before) = (session.id().to_owned(), session.events());
    let cursor = before[before.len() / 2].cursor.clone();
    scene.stop_daemon();
    let path = scene.home().state().join("journal.sqlite3");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&path, &bytes).unwrap();
    scene.serve_again();
    let kept: Vec<(String, Vec<u8>)> = files(scene.home(), "journal.sqlite3.damaged-").into_iter().collect();
    assert_eq!(kept.len(), 1, "{:?}", kept.iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert_eq!(kept[0].1, bytes);
    let status = get(scene.client(), "/v1/status");
    assert!(status["notes"][0].as_str().unwrap().contains(&kept[0].0), "{}", status["notes"]);
    assert!(scene.daemon().log().unwrap().contains(&kept[0].0));
    let session = scene.take_up(&id);
    let of_server = |events: &[api_types::Event]| -> Vec<String> {
        events.iter().filter(|event| event.event_id.len() == 36).map(|event| event.event_id.clone()).collect()
    };
    assert_eq!(session.snapshot().pending_actions, proposed.actions.len());
    let page = session.page(Some(&cursor), 1000, std::time::Duration::ZERO);
    assert_eq!(page.resync.map(|resync| resync.reason).as_deref(), Some("epoch_changed"));
    let again: Vec<String> = of_server(&session.events());
    let missing: Vec<String> = of_server(&before).into_iter().filter(|id| !again.contains(id)).collect();
    assert!(missing.len() < before.len(), "nothing was read again: {missing:?}");
    let told: Value = get(scene.client(), "/v1/audit/verification");
    assert_eq!(told["intact"], true, "the ledger is another file");
    scene.finish();
}
