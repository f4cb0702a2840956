//! What made a real Agent Server run a command that nobody had approved, tried through gatepost as an attacker or a careless
//! client would. Each attack must be refused with its code and leave its marker absent; approving then does run the
//! command, so that its absence before means something.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod agent;
mod content;
mod decisions;
mod history;
mod model;
mod restarts;
mod waiting;

use gatepost_tests::{Scenarios, Scene};

#[test]
fn known_attacks_on_the_real_server() {
    let mut scene = Scene::with(|setup| {
        setup.tables = format!("[approval]\nexpires_min = 2\nreviewed_content = {}\n", content::reviewed());
    });
    let mut scenarios = Scenarios::new();
    // Offered first, so that it is too old by the end.
    let old = decisions::offer_early(&scene);
    let mut play = |name: &str, scenario: fn(&Scene)| scenarios.play(name, || scenario(&scene));
    play("a prompt while an action waits", waiting::prompt);
    play("a resume while an action waits", waiting::resume);
    play("a fork while an action waits, then going on there", waiting::fork);
    play("a compaction while an action waits", waiting::compact);
    play("an interrupt while an action waits, then going on", waiting::interrupt);
    play("everything at once while an action waits", waiting::storm);
    play("a prompt that was queued before an action waited", waiting::queued_prompt);
    play("a fork while an approved command runs", waiting::fork_while_it_runs);
    play("a rewind to an action that was executed", history::executed);
    play("a rewind to an action that was rejected", history::rejected);
    play("a rewind to before an action, then going on", history::before);
    play("a rewind into an executed batch", history::within_a_batch);
    play("one acceptance sent again and again", decisions::accepted_again);
    play("two acceptances at the same time", decisions::accepted_at_once);
    play("an acceptance of a batch that was replaced", decisions::superseded);
    play("an acceptance of what was never offered", decisions::never_offered);
    play("an acceptance of another session's batch", decisions::of_another_session);
    play("a call that reuses the id of a failed one", model::reused_call_id);
    play("a call that reuses the id of an executed one", model::reused_executed_id);
    play("words of the model that hide what will run", model::deceptive);
    play("a call of a sub-agent", model::sub_agent);
    play("a batch that holds a live secret", model::secret);
    play("the agent approves its own action", agent::approves_itself);
    play("plugins and hooks in a workspace", content::refused_at_the_start);
    play("a plugin that appears in the workspace of a session", content::appears_later);
    play("reviewed content is not loaded", content::reviewed_is_not_loaded);
    play("an acceptance from before the server was killed", restarts::server_killed);
    scenarios.play("an acceptance that comes too late", || decisions::expired(&old));
    scenarios.play("an acceptance from before the daemon stopped, and a policy edited meanwhile", || {
        restarts::daemon_restarted(&mut scene);
    });
    scenarios.finish();
    scene.finish();
}

#[test]
fn sub_agent_tools_cannot_be_configured() {
    model::sub_agent_tools_refused();
}
