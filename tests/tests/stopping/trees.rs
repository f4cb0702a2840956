//! A short run of trees that end in every way; the long one, also with the real server, is `leftovers` of `testkit`.

use std::collections::BTreeSet;
use testkit::leftovers::{Blow, Load, Options, run};
use testkit::verdict::Findings;

#[test]
fn nothing_is_left_of_a_tree_however_it_ends_and_a_bystander_lives() {
    let summary = run(&Options { stand_in: 1, server: 0 }, &|line| eprintln!("{line}")).unwrap();
    assert!(summary.is_sound(), "{}", summary.text());
    let means: BTreeSet<&str> = summary.rows.iter().map(|row| row.means.as_str()).collect();
    // A cgroup can be delegated by root, where the unified hierarchy may be written.
    assert!(means.contains("scope") && means.contains("walk"), "{means:?}");
    let by_scope = summary.rows.iter().filter(|row| row.means == "scope").count();
    assert_eq!(by_scope, Blow::ALL.len() * Load::ALL.len());
    // It was about something: each tree had more than a server and its guards.
    assert!(summary.rows.iter().all(|row| row.most_processes > 3), "{}", summary.json());
}
