//! Every check, one after the other on one server: each is tried whatever became of the one before.

use super::stage::Stage;
use super::{branches, conversations, events, identity, latch, life, profiles, steps, stops, stream};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One check, with its name.
struct Check {
    name: &'static str,
    run: fn(Arc<Stage>) -> Running,
}

/// The longest that one check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(120);

macro_rules! checks {
    ($($module:ident :: $check:ident,)+) => {
        [$(Check {
            name: concat!(stringify!($module), "::", stringify!($check)),
            run: |stage| Box::pin($module::$check(stage)),
        },)+]
    };
}

/// Runs every check, then those that take the server down.
pub(crate) async fn run(stage: Stage) {
    let checks = checks![
        identity::says_title_and_versions_without_a_key,
        identity::only_the_configured_key_is_let_in,
        identity::initialisation_is_closed,
        identity::listens_on_the_inherited_socket_alone,
        identity::a_route_outside_the_contract_is_not_there,
        identity::the_measures_of_the_startup_module_hold,
        profiles::a_model_profile_never_shows_its_key,
        profiles::an_agent_profile_keeps_its_id_and_counts_revisions,
        profiles::the_model_can_be_switched_to_another_profile,
        conversations::creating_is_idempotent_by_id,
        conversations::the_state_shows_what_the_canaries_read,
        conversations::what_is_not_there_is_answered_so,
        conversations::a_title_has_at_most_200_characters,
        conversations::a_deleted_one_is_gone,
        events::pages_come_in_append_order_and_begin_with_the_page_id,
        events::an_unknown_page_id_starts_from_the_beginning,
        events::parents_form_one_tree_and_state_updates_hang_off_it,
        events::a_turn_shows_running_and_then_a_terminal_status,
        events::a_text_stands_in_the_message,
        events::the_ends_of_many_logs_are_where_reads_of_them_end,
        stream::a_wrong_key_and_an_unknown_conversation_close_with_their_codes,
        stream::the_first_frame_is_a_whole_state,
        stream::what_is_transient_is_never_in_the_log,
        steps::a_step_call_answers_before_the_status_moves,
        steps::one_accept_runs_every_call_of_a_reply,
        steps::a_run_on_a_finished_conversation_does_nothing,
        steps::a_run_while_running_is_refused,
        steps::an_accept_while_running_does_nothing,
        steps::an_accept_with_nothing_pending_starts_a_turn,
        steps::a_lone_finish_or_think_never_waits,
        steps::bad_arguments_are_answered_by_tool_call_id,
        steps::a_message_while_the_last_step_runs_is_stored_and_not_read,
        steps::condense_answers_when_it_is_done_and_leaves_the_status,
        steps::a_failing_model_ends_in_error_and_silence_in_stuck,
        stops::a_run_is_settled_only_once_its_task_has_ended,
        stops::a_reject_answers_each_action_and_leaves_idle,
        stops::a_reject_with_nothing_pending_does_nothing,
        stops::an_interrupt_pauses_and_answers_by_tool_call_id,
        stops::an_interrupt_of_what_is_over_writes_nothing,
        branches::navigate_moves_the_head_and_writes_nothing,
        branches::a_fork_from_a_parent_carries_nothing_pending,
        branches::a_whole_fork_carries_what_is_pending,
        branches::a_reused_tool_call_id_hides_nothing,
        latch::a_message_with_run_is_held,
        latch::a_run_is_held,
        latch::an_accept_without_a_grant_is_held,
        latch::a_run_of_a_whole_fork_is_held,
        latch::a_condense_is_held,
        latch::a_prompt_after_an_interrupt_is_held,
        latch::a_granted_accept_runs_once_and_not_again_after_a_rewind,
        latch::a_rejected_action_is_held_after_a_rewind,
        latch::a_revoked_or_partial_grant_lets_nothing_run,
    ];
    let only = std::env::var("GATEPOST_SCENARIO").ok();
    let stage = Arc::new(stage);
    let mut failed = Vec::new();
    for check in checks.iter().filter(|check| only.as_ref().is_none_or(|only| check.name.contains(only.as_str()))) {
        let begun = Instant::now();
        let done = tokio::time::timeout(CHECK_LIMIT, tokio::spawn((check.run)(Arc::clone(&stage)))).await;
        let passed = matches!(done, Ok(Ok(())));
        let word = if passed { "passed" } else { "FAILED" };
        eprintln!("{}: {}: {word} after {:.1} s", stage.kind().name(), check.name, begun.elapsed().as_secs_f64());
        if !passed {
            failed.push(check.name);
        }
    }
    let kind = stage.kind();
    let stage = Arc::into_inner(stage).expect("every check has let go of the stage");
    if only.as_ref().is_none_or(|only| "life".contains(only.as_str())) {
        life::a_killed_server_comes_back_as_it_was(stage).await;
    } else {
        stage.stop().await;
    }
    assert!(failed.is_empty(), "{}: {} checks failed: {failed:#?}", kind.name(), failed.len());
}
