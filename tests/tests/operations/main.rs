//! Every operation of the catalog on the real server, driven through the API alone. One daemon, one server.

#![expect(clippy::unwrap_used, reason = "the helpers of a test file end the test as the tests do")]

mod approvals;
mod batches;
mod branches;
mod console;
mod control;
mod events;
mod prompts;
mod provider;
mod requests;
mod sessions;

use gatepost_tests::{Scenarios, Scene};

/// A further reviewed model of the configuration.
const SECOND_MODEL: &str = "openai/second";

#[test]
fn every_operation_on_the_real_server() {
    let scene = Scene::with(|setup| setup.model = format!("choices = [\"{SECOND_MODEL}\"]"));
    let mut scenarios = Scenarios::new();
    let mut play = |name: &str, scenario: fn(&Scene)| scenarios.play(name, || scenario(&scene));
    play("starting again with the same id is the same session", sessions::start_twice);
    play("a snapshot says everything", sessions::snapshot);
    play("a session that was closed can be taken up again", sessions::close_and_attach);
    play("closing with delete removes the conversation", sessions::close_and_delete);
    play("a prompt is answered by a text", prompts::text_reply);
    play("a key is used once", prompts::replay);
    play("a decision on an old generation is refused", prompts::generation);
    play("prompts wait their turn", prompts::queued_in_order);
    play("an interrupt cancels what waits", prompts::queue_cancelled);
    play("a session whose model failed goes on", prompts::after_a_model_error);
    play("a batch is shown as it will run, and accepted", approvals::shown_and_accepted);
    play("a batch is rejected", approvals::rejected);
    play("a long command must be read in full first", approvals::read_in_full);
    play("the editor asks too", approvals::editor);
    play("three actions are decided at once, in order", batches::three_at_once);
    play("three actions are rejected at once", batches::three_rejected);
    play("a prompt may take the place of a batch", batches::prompt_instead);
    play("finish and think alone ask nothing, beside a command they wait", batches::exempt_alone_only);
    play("a running turn is interrupted, then resumed", control::interrupt_turn);
    play("a running command is interrupted", control::interrupt_command);
    play("the context is compacted", control::compact);
    play("the model is changed to a reviewed one", control::model);
    play("the title is changed", control::title);
    play("a fork carries nothing pending and acts for itself", branches::fork);
    play("a fork needs a safe point and an id of its own", branches::fork_refused);
    play("a rewind forgets the later turns", branches::rewind);
    play("a rewind is refused while running and for what is no safe point", branches::rewind_refused);
    play("the provider is read about", provider::reads);
    play("events of every kind come in order, in pages of any size", events::complete);
    play("a poll waits for events", events::long_poll);
    play("a foreign cursor starts over", events::foreign_cursor);
    play("events can be streamed", events::streamed);
    play("the attestation is signed", events::attestation);
    play("in the console a batch is read, asked about and approved", console::prompt_read_approve);
    play("in the console a batch is rejected with a reason", console::reject);
    play("the console leaves the terminal as it found it", console::left_as_found);
    play("a panic leaves the terminal as it was found", console::panics);
    play("the console is refused where it cannot be shown", console::refused);
    play("an operation asks little of the server, and each change once", requests::bounded);
    play("a look at a session in which nothing changed asks nothing of the server", requests::none_for_a_look);
    scenarios.finish();
    scene.finish();
}
