//! What the agent tries in order to escape, by its own means on the real server: nothing gets through, and with every layer
//! taken away everything does. Layer by layer it is the work of the tool `escapes` of `testkit`.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use testkit::escapes::{ATTEMPTS, Attempt, Came, Layer, Options, Summary, run};
use testkit::verdict::Findings;

/// One server at a time.
static TURN: Mutex<()> = Mutex::new(());

/// Without these layers, and those attempts only of which it is said.
fn play(taken: &[Layer], is_wanted: impl Fn(&Attempt) -> bool) -> Summary {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let names = ATTEMPTS.iter().filter(|attempt| is_wanted(attempt)).map(|attempt| attempt.name.to_owned());
    // Development has a test of its own.
    let options = Options { without: taken.to_vec(), development: false, only: Some(names.collect()) };
    let summary = run(&options, &|line| eprintln!("{line}")).unwrap();
    let wanted = ATTEMPTS.iter().filter(|attempt| is_wanted(attempt)).count();
    assert!(wanted > 0 && summary.results.len() == wanted, "{}", summary.text());
    summary
}

fn not_through(summary: &Summary) -> Vec<(&'static str, &Came)> {
    summary.results.iter().filter(|(_, came)| **came != Came::GotThrough).map(|(name, came)| (*name, came)).collect()
}

#[test]
fn nothing_that_the_agent_tries_gets_through() {
    let summary = play(&[], |_| true);
    assert!(summary.is_sound() && summary.leftover_processes == 0, "{}", summary.text());
}

#[test]
fn without_the_layers_everything_gets_through() {
    let summary = play(&Layer::ALL, |attempt| attempt.attacks.is_none());
    assert_eq!(not_through(&summary), [], "nothing is shown by an attempt that never gets through");
    assert_eq!(summary.level, "weak");
}

#[test]
fn without_the_other_layers_what_attacks_one_gets_through() {
    for attacked in ATTEMPTS.iter().filter_map(|attempt| attempt.attacks).collect::<BTreeSet<_>>() {
        let others: Vec<Layer> = Layer::ALL.into_iter().filter(|layer| *layer != attacked).collect();
        let summary = play(&others, |attempt| attempt.attacks == Some(attacked));
        assert_eq!(not_through(&summary), [], "nothing is shown by an attempt that never gets through");
    }
}
