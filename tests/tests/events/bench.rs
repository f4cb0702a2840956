//! A short run of the benchmark: each figure can be taken, and what is a count is within its bound. How long anything takes is
//! not asserted. The long one is `bench` of `testkit`.

use testkit::bench::{Options, Summary, run};
use testkit::verdict::Findings;

fn bench(parts: &[&str]) -> Summary {
    let options = Options { only: parts.iter().map(|part| (*part).to_owned()).collect(), quick: true };
    run(&options, &|line| eprintln!("{line}")).unwrap()
}

fn names(summary: &Summary) -> Vec<&str> {
    summary.figures.iter().map(|figure| figure.name).collect()
}

#[test]
fn each_figure_is_taken_on_the_fake_server_and_counts_are_within_their_bounds() {
    let summary = bench(&["size", "listen", "requests", "snapshot", "poll", "delivery", "idle", "memory"]);
    let expected = [
        "binary_size",
        "start_to_listening",
        "requests_snapshot",
        "requests_poll",
        "requests_operation",
        "requests_double_operation",
        "snapshot_in_a_crowd",
        "poll_nothing_new",
        "poll_one_event",
        "frame_to_reader_p99",
        "idle_context_switches",
        "idle_cpu",
        "memory_idle",
        "memory_full",
    ];
    assert_eq!(names(&summary), expected);
    for figure in &summary.figures {
        assert!(figure.value.is_finite(), "{figure:?}");
        if figure.unit == "requests" {
            assert!(figure.within, "{figure:?}");
        }
    }
    // What an operation asks is more than nothing, so it was counted.
    assert!(summary.figure("requests_operation").is_some_and(|figure| figure.value > 0.0));
    let object = summary.json();
    assert!(object["within_bounds"].is_boolean(), "{object}");
    assert!(object["figures"].as_array().unwrap().iter().all(|figure| figure["bound"].is_number()), "{object}");
}

#[test]
fn each_figure_is_taken_on_the_real_server() {
    let summary = bench(&["latency", "recovery", "spare"]);
    let (with, without) =
        (["new_workspace_with_spare", "crash_with_spare"], ["new_workspace_to_ready", "crash_to_ready"]);
    assert_eq!(names(&summary), [["latency_title", "latency_prompt"], without, with].concat());
    assert!(summary.figures.iter().all(|figure| figure.value.is_finite()), "{summary:?}");
}
