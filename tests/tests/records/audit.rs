//! The chain of receipts through the daemon and without one.

use super::{changed, edit, files, get, home, ledger, refused};
use gatepost_tests::Faked;
use serde_json::{Value, json};
use testkit::fake_server::Plan;

fn kinds(page: &Value) -> Vec<(String, String)> {
    let entries = page["entries"].as_array().unwrap();
    let word = |entry: &Value, name: &str| entry["entry"][name].as_str().unwrap_or_default().to_owned();
    entries.iter().map(|entry| (word(entry, "kind"), word(entry, "state"))).collect()
}

#[test]
fn what_was_asked_decided_and_done_is_in_the_chain_and_no_word_of_it() {
    let faked = Faked::new(Plan::default());
    let scene = faked.scene();
    let session = scene.session();
    let marker = scene.marker("audit");
    let approval = session.propose(&marker.directive());
    session.approve_to_end(&approval);
    let reply = scene.client().post(&session.path("/actions"), &json!({"operation_id": "session.explode"})).unwrap();
    assert!(reply.status >= 400);
    assert!(scene.client().delete(&session.path("")).unwrap().status == 200);
    let page = get(scene.client(), "/v1/audit?limit=500");
    let found = kinds(&page);
    for (kind, state) in [
        ("ledger", ""),
        ("session", "open"),
        ("receipt", "in_flight"),
        ("receipt", "applied"),
        ("accept", "sent"),
        ("accept", "answered"),
        ("refusal", ""),
        ("session", "closed"),
    ] {
        assert!(found.contains(&(kind.to_owned(), state.to_owned())), "no {kind} {state}: {found:?}");
    }
    let text = page.to_string();
    assert!(!text.contains(&marker.directive()) && text.contains(session.id()), "{text}");
    let verdict = get(scene.client(), "/v1/audit/verification");
    assert_eq!((&verdict["intact"], &verdict["broken"]), (&json!(true), &Value::Null), "{verdict}");
    assert_eq!(verdict["links"], page["head"]["n"]);
    scene.finish();
}

#[test]
fn the_same_is_told_with_a_daemon_and_without_and_nothing_is_written_for_it() {
    let home = home();
    let none = home.run(&["audit", "--json"]).unwrap();
    assert_eq!(none.code, Some(3), "{none:?}");
    assert_eq!(files(&home, "").into_keys().collect::<Vec<_>>(), Vec::<String>::new(), "something was made");
    assert_eq!(home.run(&["audit", "--limit", "3", "verify"]).unwrap().code, Some(2));
    let daemon = home.serve().unwrap();
    for id in ["one", "two", "three"] {
        refused(&daemon, id);
    }
    let list = |more: &[&str]| {
        let told = home.run(&[&["audit", "--json"], more].concat()).unwrap();
        assert_eq!(told.code, Some(0), "{told:?}");
        told.json()
    };
    let [online, newest, verified] = [list(&["--after", "0"]), list(&["--limit", "2"]), list(&["verify"])];
    assert_eq!(online["entries"].as_array().unwrap().len(), 4);
    assert_eq!(newest["entries"][0]["n"], 3);
    let text = home.run(&["audit"]).unwrap();
    assert!(text.stdout.contains("refusal") && text.stdout.contains("two"), "{text:?}");
    assert!(daemon.stop().unwrap().status.success());
    let before = files(&home, "");
    assert_eq!([list(&["--after", "0"]), list(&["--limit", "2"]), list(&["verify"])], [online, newest, verified]);
    assert_eq!(changed(&before, &files(&home, "")), Vec::<String>::new());
}

#[test]
fn the_first_broken_link_is_named_without_a_daemon() {
    let home = home();
    let daemon = home.serve().unwrap();
    for number in 0..6 {
        refused(&daemon, &format!("refused-{number}"));
    }
    assert!(daemon.stop().unwrap().status.success());
    edit(
        &ledger(&home),
        "DROP TRIGGER audit_links_do_not_change;
         UPDATE audit SET entry = replace(entry, 'refused-2', 'altered') WHERE n = 4;",
    );
    let before = files(&home, "ledger");
    let told = home.run(&["audit", "verify", "--json"]).unwrap();
    let object = told.json();
    assert_eq!((told.code, &object["error"]["code"]), (Some(4), &json!("chain_broken")), "{told:?}");
    assert_eq!((&object["broken"]["n"], &object["broken"]["fault"]), (&json!(4), &json!("digest")), "{told:?}");
    let words = home.run(&["audit", "verify"]).unwrap();
    assert!(words.stderr.contains("link 4"), "{words:?}");
    assert_eq!(changed(&before, &files(&home, "ledger")), Vec::<String>::new());
}
