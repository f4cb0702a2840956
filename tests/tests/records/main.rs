//! The durable records as clients meet them: checked behind the socket, damaged, altered, read without a daemon.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod audit;
mod bounds;
mod clock;
mod damage;
mod full_disk;
mod owed;
mod starts;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use testkit::daemon::{Client, Daemon, Home, Setup};

/// A directory whose daemon has no Agent Server: receipts of reads and refusals are all it takes.
fn home() -> Home {
    home_with(|_setup| {})
}

fn home_with(change: impl FnOnce(&mut Setup)) -> Home {
    let mut setup = Setup::without_server();
    change(&mut setup);
    Home::new(setup).unwrap()
}

/// Signs as the daemon of a home does.
struct OfHome(host::sign::SigningKey);

impl store::Notary for OfHome {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message)
    }

    fn is_own(&self, message: &[u8], signature: &[u8]) -> bool {
        host::sign::verify(&self.0.public_key(), message, signature).is_ok()
    }
}

fn notary(home: &Home) -> Arc<dyn store::Notary> {
    Arc::new(OfHome(host::sign::SigningKey::load_or_create(&home.state().join("signing.key")).unwrap()))
}

/// A receipt of a read that is over, as a daemon writes it at that time.
fn final_receipt(client_action_id: &str, session_id: Option<&str>, at_ms: i64) -> store::ReceiptRecord {
    store::ReceiptRecord {
        client_action_id: client_action_id.to_owned(),
        session_id: session_id.map(str::to_owned),
        operation_id: "provider.usage.read".into(),
        fingerprint: "f".repeat(64),
        caller: "owner".into(),
        state: store::ReceiptState::Applied,
        code: None,
        detail: None,
        input_json: "{}".into(),
        result_json: None,
        steps: Vec::new(),
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
        request_id: None,
    }
}

/// The files of the ledger, or of whatever else begins so, with their content.
fn files(home: &Home, start: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(home.state()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with(start) && entry.file_type().unwrap().is_file() {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// Which files came, went or changed. Who holds the daemon's lock is written into it, and does not count.
fn changed(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let names = before.keys().chain(after.keys()).filter(|name| *name != "daemon.lock");
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

fn ledger(home: &Home) -> PathBuf {
    home.state().join("ledger.sqlite3")
}

/// A request that is refused before it has a receipt, and so is a link.
fn refused(daemon: &Daemon, id: &str) {
    let body = json!({"operation_id": "session.title.set", "input": {"title": "t"}, "client_action_id": id});
    let path = "/v1/sessions/00000000-0000-4000-8000-00000000dead/actions";
    assert!(daemon.client().post(path, &body).unwrap().status >= 400);
}

/// Runs a statement on a database that nobody uses, as someone with an editor would.
fn edit(path: &std::path::Path, sql: &str) {
    let script =
        "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.commit()\nc.close()\n";
    let status = std::process::Command::new("python3").args(["-c", script]).arg(path).arg(sql).status().unwrap();
    assert!(status.success(), "{sql}");
}

fn get(client: &Client, path: &str) -> Value {
    client.get(path).unwrap().expect_status(200).unwrap()
}
