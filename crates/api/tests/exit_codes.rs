//! Every refusal of the product leads to a meant exit code.

use api_types::ExitCode;
use rules::refusal::RefusalCode;

#[test]
fn every_refusal_has_its_exit_code() {
    let mut groups: Vec<(ExitCode, Vec<&str>)> = ExitCode::ALL.iter().map(|exit| (*exit, Vec::new())).collect();
    for code in RefusalCode::ALL {
        let exit = ExitCode::of_refusal(code.as_str(), code.http_status());
        let group = groups.iter_mut().find(|(known, _)| *known == exit).unwrap();
        group.1.push(code.as_str());
    }
    let of = |exit: ExitCode| groups.iter().find(|(known, _)| *known == exit).unwrap().1.join(" ");
    assert_eq!(of(ExitCode::Done), "");
    assert_eq!(of(ExitCode::DaemonNotRunning), "");
    assert_eq!(of(ExitCode::NotPermitted), "unauthenticated not_permitted peer_refused");
    assert_eq!(of(ExitCode::Unknown), "request_timeout outcome_unknown no_evidence upstream_timeout");
    assert_eq!(
        of(ExitCode::Conflict),
        "token_exists too_many_tokens session_exists session_closed approval_superseded approval_expired approval_not_shown_in_full \
         approval_holds_secret named_file_changed approval_pending approval_in_doubt nothing_pending generation_stale \
         client_action_id_reused action_in_flight session_running session_not_quiet not_a_safe_point not_advertised"
    );
    assert_eq!(
        of(ExitCode::Failed),
        "not_found session_not_found action_not_found conversation_not_found token_not_found approval_not_found model_not_reviewed \
         interrupted stopped_before_step queue_full server_limit too_many_connections too_many_waiting \
         upstream_refused upstream_unreachable upstream_malformed shutting_down store_failed internal"
    );
    assert_eq!(
        of(ExitCode::Usage),
        "unknown_operation unknown_field missing_field wrong_type too_long empty invalid_value malformed_json \
         body_too_large unsupported_media_type method_not_allowed idempotency_key_conflict cursor_invalid bad_request \
         generation_missing workspace_not_found"
    );
    assert_eq!(
        of(ExitCode::Blocked),
        "session_blocked branch_unreadable canary_failed version_mismatch listener_not_inherited \
         startup_module_missing authentication_open init_open installation_altered policy_weak agent_kind_refused \
         tool_not_configured hooks_present mcp_present plugins_present profile_mismatch workspace_content \
         workspace_outside_roots workspace_not_local workspace_mismatch unreviewed_action confinement_too_weak \
         server_not_installed server_start_failed server_crash_looping server_unavailable \
         configuration_invalid records_checking ledger_damaged disk_full records_read_only"
    );
}
