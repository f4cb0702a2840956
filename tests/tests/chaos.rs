//! A short run of clients and readers on the real server while the daemon dies at a point of each class and its server is
//! killed; the long one is `chaos` of `testkit`.

use testkit::chaos::{Options, run};
use testkit::verdict::Findings;

#[test]
fn nothing_is_lost_or_done_twice_when_the_daemon_dies_around_a_write_or_a_call() {
    let points = ["after:ledger.insert_receipt:1", "after:journal.append:2", "after:call.send_message:1"];
    let options =
        Options { rounds: 1, seed: 20_261_130, first: 0, at: points.map(str::to_owned).to_vec(), one_server: true };
    let summary = run(&options, &|line| eprintln!("{line}")).unwrap();
    assert!(summary.is_sound(), "{}", summary.text());
    // It was about something: the daemon died at each of the points, and its server at random.
    for point in points {
        let (point, _) = point.rsplit_once(':').unwrap();
        assert_eq!(summary.kills_by.get(&format!("daemon {point}")), Some(&1), "{:?}", summary.kills_by);
    }
    assert_eq!(summary.kills_by.get("server"), Some(&1), "{:?}", summary.kills_by);
    assert!(summary.lost_replies > 0 && summary.receipts_by.get("applied") > Some(&3), "{}", summary.json());
    // The judge saw what the server itself holds.
    assert!(summary.upstream_mutations > 3 && summary.verdict.events_expected > 20, "{}", summary.json());
}
