use super::*;
use std::collections::BTreeSet;

#[test]
fn spellings_are_unique_and_serialise_alike() {
    let names: BTreeSet<&str> = RefusalCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names.len(), RefusalCode::ALL.len());
    for code in RefusalCode::ALL.iter().copied() {
        assert!(code.as_str().bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()), "{code}");
        assert_eq!(RefusalCode::parse(code.as_str()), Some(code));
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert_eq!(serde_json::from_value::<RefusalCode>(code.as_str().into()).unwrap(), code);
        assert!(code.meaning().ends_with('.'), "{code}");
    }
    assert_eq!(RefusalCode::parse("nonsense"), None);
}

/// The promise to clients, written down a second time on purpose.
#[test]
fn the_status_of_every_code() {
    let table: &[(u16, &[&str])] = &[
        (400, &["malformed_json", "idempotency_key_conflict", "cursor_invalid", "bad_request"]),
        (401, &["unauthenticated"]),
        (403, &["not_permitted", "peer_refused"]),
        (
            404,
            &[
                "not_found",
                "session_not_found",
                "action_not_found",
                "conversation_not_found",
                "token_not_found",
                "approval_not_found",
            ],
        ),
        (405, &["method_not_allowed"]),
        (408, &["request_timeout"]),
        (
            409,
            &[
                "token_exists",
                "too_many_tokens",
                "session_exists",
                "session_closed",
                "approval_superseded",
                "approval_not_shown_in_full",
                "approval_holds_secret",
                "named_file_changed",
                "approval_pending",
                "approval_in_doubt",
                "nothing_pending",
                "generation_stale",
                "action_in_flight",
                "session_running",
                "session_not_quiet",
                "session_blocked",
                "not_advertised",
                "interrupted",
                "stopped_before_step",
                "canary_failed",
                "version_mismatch",
                "listener_not_inherited",
                "startup_module_missing",
                "authentication_open",
                "init_open",
                "installation_altered",
                "policy_weak",
                "agent_kind_refused",
                "tool_not_configured",
                "hooks_present",
                "mcp_present",
                "plugins_present",
                "profile_mismatch",
                "workspace_content",
                "workspace_not_local",
                "workspace_mismatch",
                "unreviewed_action",
                "confinement_too_weak",
            ],
        ),
        (410, &["approval_expired"]),
        (413, &["body_too_large"]),
        (415, &["unsupported_media_type"]),
        (
            422,
            &[
                "unknown_operation",
                "unknown_field",
                "missing_field",
                "wrong_type",
                "too_long",
                "empty",
                "invalid_value",
                "generation_missing",
                "client_action_id_reused",
                "not_a_safe_point",
                "model_not_reviewed",
                "workspace_outside_roots",
                "workspace_not_found",
            ],
        ),
        (500, &["store_failed", "internal"]),
        (502, &["branch_unreadable", "upstream_refused", "upstream_unreachable", "upstream_malformed"]),
        (
            503,
            &[
                "records_checking",
                "ledger_damaged",
                "disk_full",
                "records_read_only",
                "queue_full",
                "server_limit",
                "too_many_connections",
                "too_many_waiting",
                "server_not_installed",
                "server_start_failed",
                "server_crash_looping",
                "server_unavailable",
                "configuration_invalid",
                "shutting_down",
            ],
        ),
        (504, &["outcome_unknown", "no_evidence", "upstream_timeout"]),
    ];
    let mut seen = 0;
    for (status, names) in table {
        for name in *names {
            let code = RefusalCode::parse(name).unwrap_or_else(|| panic!("{name} is not a code"));
            assert_eq!(code.http_status(), *status, "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, RefusalCode::ALL.len());
}

#[test]
fn only_passing_states_are_worth_a_retry() {
    let retryable: BTreeSet<&str> =
        RefusalCode::ALL.iter().filter(|code| code.retryable()).map(|code| code.as_str()).collect();
    let expected: BTreeSet<&str> = [
        "request_timeout",
        "action_in_flight",
        "session_running",
        "session_not_quiet",
        "queue_full",
        "server_limit",
        "too_many_connections",
        "too_many_waiting",
        "server_start_failed",
        "server_crash_looping",
        "server_unavailable",
        "upstream_unreachable",
        "upstream_timeout",
        "shutting_down",
        "records_checking",
        "disk_full",
        "store_failed",
    ]
    .into();
    assert_eq!(retryable, expected);
}

#[test]
fn a_refusal_prints_code_and_detail() {
    let refusal = Refusal::new(RefusalCode::TooLong, "`text` has 300000 bytes");
    assert_eq!(refusal.to_string(), "too_long: `text` has 300000 bytes");
}

/// The documentation lists every code, and no other, with its status and the remedy that the daemon gives.
#[test]
fn the_documentation_lists_every_code_with_its_status_and_its_remedy() {
    let page = include_str!("../../../../docs/operations.md");
    let mut documented = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" |").map(str::trim).collect();
        let [code, status, _exit, again, meaning, remedy] = cells[..] else { continue };
        let code = RefusalCode::parse(code.trim_matches(['|', ' ', '`'])).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(status, code.http_status().to_string(), "{code}");
        assert_eq!(again == "yes", code.retryable(), "{code}");
        assert_eq!(meaning, code.meaning().trim(), "{code}");
        assert_eq!(without_links(remedy), code.remedy(), "{code}");
        assert!(code.remedy().len() > 3, "{code}");
        assert!(documented.insert(code), "{code} stands twice");
    }
    let missing: Vec<_> = RefusalCode::ALL.iter().filter(|code| !documented.contains(code)).collect();
    assert!(missing.is_empty(), "not documented: {missing:?}");
}

/// `[words](#place)` is `words`.
fn without_links(text: &str) -> String {
    let Some((before, after)) = text.split_once("](") else { return text.to_owned() };
    let (Some((ahead, words)), Some((_, behind))) = (before.rsplit_once('['), after.split_once(')')) else {
        return text.to_owned();
    };
    format!("{ahead}{words}{}", without_links(behind))
}
