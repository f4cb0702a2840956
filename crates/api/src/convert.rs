//! From the controller's views to reply bodies, field by field: a field that is added to a view does not leak by itself.

use api_types as body;
use rules::canary::CanaryScope;
use rules::catalog::CatalogEntry;
use rules::operation::Risk;
use rules::refusal::Refusal;
use rules::standing::{
    self, CanaryReport, CanaryStanding, DaemonState, ServerStanding, SessionStanding, SpareStanding,
};
use session::view;

pub(crate) fn reason(refusal: Refusal) -> body::Reason {
    finding_as_reason(view::Finding::of(refusal))
}

fn finding_as_reason(finding: view::Finding) -> body::Reason {
    body::Reason { code: finding.code.as_str().to_owned(), detail: finding.detail, remedy: finding.remedy }
}

/// What is to be done about a state: what its reason says, else the state.
fn remedy(reason: Option<&Refusal>, of_state: Option<&'static str>) -> Option<String> {
    standing::remedy(reason, of_state).map(str::to_owned)
}

pub(crate) fn session_summary(view: view::SessionSummary) -> body::SessionSummary {
    body::SessionSummary {
        session_id: view.session_id,
        workspace: view.workspace,
        title: view.title,
        state: session_state(view.state),
        status: view.status,
        pending_actions: view.pending_actions,
        remedy: remedy(view.blocked_reason.as_ref(), view.state.remedy()),
        blocked_reason: view.blocked_reason.map(reason),
        created_at: view.created_at,
    }
}

pub(crate) fn session_snapshot(view: view::SessionSnapshot) -> body::SessionSnapshot {
    let summary = view.summary;
    let advertised = |operation: view::AdvertisedOperation| body::AdvertisedOperation {
        operation_id: operation.operation_id.as_str().to_owned(),
        needs_generation: operation.needs_generation,
    };
    body::SessionSnapshot {
        session_id: summary.session_id,
        workspace: summary.workspace,
        title: summary.title,
        state: session_state(summary.state),
        remedy: remedy(summary.blocked_reason.as_ref(), summary.state.remedy()),
        status: summary.status,
        pending_actions: summary.pending_actions,
        created_at: summary.created_at,
        capability_generation: view.capability_generation,
        observed_at: view.observed_at,
        valid_until: view.valid_until,
        advertised_operations: view.advertised_operations.into_iter().map(advertised).collect(),
        choices: body::Choices {
            rewind: view.rewind_choices.into_iter().map(rewind_choice).collect(),
            model: view.model_choices,
            acknowledge: view.acknowledge_choices.into_iter().map(block_choice).collect(),
        },
        values: view.values,
        canaries: view.canaries.into_iter().map(canary).collect(),
        blocked_reason: summary.blocked_reason.map(reason),
        cursor: view.cursor,
    }
}

fn rewind_choice(view: view::RewindChoice) -> body::RewindChoice {
    body::RewindChoice { turn: view.turn, event_id: view.event_id, text: view.text, at: view.at }
}

fn block_choice(view: view::BlockChoice) -> body::BlockChoice {
    body::BlockChoice { block_id: view.block_id, observation_ids: view.observation_ids }
}

pub(crate) fn approval(view: view::Approval) -> body::Approval {
    body::Approval {
        approval_id: view.approval_id,
        session_id: view.session_id,
        expires_at: view.expires_at,
        actions: view.actions.into_iter().map(pending_action).collect(),
        holds_secret: view.holds_secret,
        complete: view.complete,
        confinement_level: view.confinement_level,
        named_files: view
            .named_files
            .into_iter()
            .map(|file| body::NamedFile { path: file.path, sha256: file.sha256, changed: file.changed })
            .collect(),
        background_processes: view
            .background_processes
            .into_iter()
            .map(|process| body::BackgroundProcess { pid: process.pid, name: process.name })
            .collect(),
        notes: view.notes,
    }
}

fn pending_action(view: view::PendingAction) -> body::PendingAction {
    body::PendingAction {
        event_id: view.event_id,
        tool: view.tool,
        arguments: view.arguments,
        agent_risk: view.agent_risk,
        agent_summary: view.agent_summary,
        redacted: view.redacted,
        truncated: view.truncated,
        deceptive_text: view.deceptive_text,
        in_doubt: view.in_doubt,
    }
}

pub(crate) fn receipt(view: view::ReceiptView) -> body::Receipt {
    let step = |step: view::ReceiptStep| body::ReceiptStep { name: step.name, state: step.state, code: step.code };
    body::Receipt {
        state: receipt_state(&view.state),
        client_action_id: view.client_action_id,
        session_id: view.session_id,
        operation_id: view.operation_id,
        code: view.code,
        detail: view.detail,
        steps: view.steps.into_iter().map(step).collect(),
        result: view.result,
        created_at: view.created_at,
        updated_at: view.updated_at,
        request_id: view.request_id,
        replayed: view.replayed,
    }
}

/// A state that is not known promises nothing.
fn receipt_state(word: &str) -> body::ReceiptState {
    match word {
        "queued" => body::ReceiptState::Queued,
        "in_flight" => body::ReceiptState::InFlight,
        "applied" => body::ReceiptState::Applied,
        "rejected" => body::ReceiptState::Rejected,
        _ => body::ReceiptState::OutcomeUnknown,
    }
}

pub(crate) fn event_page(view: view::EventPage) -> body::EventPage {
    body::EventPage {
        events: view.events.into_iter().map(event).collect(),
        next_cursor: view.next_cursor,
        resync: view.resync.map(|resync| body::Resync { reason: resync.reason, first_cursor: resync.first_cursor }),
    }
}

fn event(view: view::EventView) -> body::Event {
    body::Event {
        cursor: view.cursor,
        seq: view.seq,
        session_id: view.session_id,
        event_id: view.event_id,
        at: view.at,
        kind: event_kind(&view.kind),
        payload: view.payload,
    }
}

fn event_kind(word: &str) -> body::EventKind {
    match word {
        "user_message" => body::EventKind::UserMessage,
        "agent_message" => body::EventKind::AgentMessage,
        "tool_call" => body::EventKind::ToolCall,
        "tool_result" => body::EventKind::ToolResult,
        "approval_requested" => body::EventKind::ApprovalRequested,
        "approval_resolved" => body::EventKind::ApprovalResolved,
        "status" => body::EventKind::Status,
        "usage" => body::EventKind::Usage,
        "lifecycle" => body::EventKind::Lifecycle,
        _ => body::EventKind::Other,
    }
}

pub(crate) fn attestation(view: view::Attestation) -> body::Attestation {
    body::Attestation { document: view.document, signature: view.signature, public_key: view.public_key }
}

pub(crate) fn readiness(view: view::Readiness) -> body::Readiness {
    body::Readiness { ready: view.ready, reasons: view.reasons.into_iter().map(finding_as_reason).collect() }
}

pub(crate) fn probe(view: view::ProbeView) -> body::Probe {
    let action =
        |action: view::SetupAction| body::SetupAction { id: action.id, command: action.command, needed: action.needed };
    body::Probe {
        available: view.available,
        reasons: view.reasons.into_iter().map(finding_as_reason).collect(),
        setup_actions: view.setup_actions.into_iter().map(action).collect(),
    }
}

pub(crate) fn status(view: view::StatusView, refused_peers: body::RefusedPeers) -> body::Status {
    let finding = |finding: view::Finding| body::Finding {
        code: finding.code.as_str().to_owned(),
        detail: finding.detail,
        remedy: finding.remedy,
    };
    body::Status {
        state: overall_state(view.state),
        remedy: view.state.remedy().map(str::to_owned),
        gatepost_version: view.gatepost_version,
        pid: view.pid,
        contract_version: view.contract_version,
        installed: view.installed,
        servers: view.servers.into_iter().map(server).collect(),
        spare: view.spare.map(spare),
        sessions: view.sessions.into_iter().map(session_summary).collect(),
        confinement_level: view.confinement_level,
        confinement_missing: view.confinement_missing,
        confinement_notes: view.confinement_notes,
        refused_peers,
        findings: view.findings.into_iter().map(finding).collect(),
        notes: view.notes,
    }
}

const fn overall_state(state: DaemonState) -> body::OverallState {
    match state {
        DaemonState::Ready => body::OverallState::Ready,
        DaemonState::Degraded => body::OverallState::Degraded,
        DaemonState::Blocked => body::OverallState::Blocked,
        DaemonState::Starting => body::OverallState::Starting,
        DaemonState::Stopping => body::OverallState::Stopping,
    }
}

const fn session_state(state: SessionStanding) -> body::SessionState {
    match state {
        SessionStanding::Starting => body::SessionState::Starting,
        SessionStanding::Ready => body::SessionState::Ready,
        SessionStanding::Blocked => body::SessionState::Blocked,
        SessionStanding::CrashLooping => body::SessionState::CrashLooping,
        SessionStanding::Stopped => body::SessionState::Stopped,
    }
}

fn server(view: view::ServerView) -> body::Server {
    body::Server {
        workspace: view.workspace,
        state: server_state(view.state),
        remedy: remedy(view.reason.as_ref(), view.state.remedy()),
        version: view.version,
        server_start_id: view.server_start_id,
        launch_config_digest: view.launch_config_digest,
        pid: view.pid,
        canaries: view.canaries.into_iter().map(canary).collect(),
        reason: view.reason.map(reason),
        failures_in_a_row: view.failures_in_a_row,
        next_try_at: view.next_try_at,
    }
}

fn spare(view: view::SpareView) -> body::Spare {
    body::Spare {
        state: match view.state {
            SpareStanding::None => body::SpareState::None,
            SpareStanding::Starting => body::SpareState::Starting,
            SpareStanding::Waiting => body::SpareState::Waiting,
            SpareStanding::Failed => body::SpareState::Failed,
        },
        remedy: remedy(view.reason.as_ref(), view.state.remedy()),
        pid: view.pid,
        reason: view.reason.map(reason),
        next_try_at: view.next_try_at,
    }
}

const fn server_state(state: ServerStanding) -> body::ServerState {
    match state {
        ServerStanding::Stopped => body::ServerState::Stopped,
        ServerStanding::Starting => body::ServerState::Starting,
        ServerStanding::Ready => body::ServerState::Ready,
        ServerStanding::Stopping => body::ServerState::Stopping,
        ServerStanding::CrashLooping => body::ServerState::CrashLooping,
        ServerStanding::Failed => body::ServerState::Failed,
    }
}

/// The evidence stays here: its digest stands in the attestation.
fn canary(view: CanaryReport) -> body::Canary {
    body::Canary {
        canary: view.canary.as_str().to_owned(),
        scope: scope(view.canary.scope()).to_owned(),
        state: canary_state(view.state),
        remedy: remedy(view.refusal.as_ref(), view.state.remedy()),
        passed: view.passed,
        code: view.refusal.map(|refusal| refusal.code.as_str().to_owned()),
        detail: view.detail,
    }
}

const fn canary_state(state: CanaryStanding) -> body::CanaryState {
    match state {
        CanaryStanding::Starting => body::CanaryState::Starting,
        CanaryStanding::Ready => body::CanaryState::Ready,
        CanaryStanding::Degraded => body::CanaryState::Degraded,
        CanaryStanding::Blocked => body::CanaryState::Blocked,
        CanaryStanding::CrashLooping => body::CanaryState::CrashLooping,
        CanaryStanding::Stopped => body::CanaryState::Stopped,
    }
}

const fn scope(scope: CanaryScope) -> &'static str {
    match scope {
        CanaryScope::Installation => "installation",
        CanaryScope::Server => "server",
        CanaryScope::Session => "session",
    }
}

pub(crate) fn catalog(entries: Vec<CatalogEntry>) -> body::Catalog {
    let entry = |entry: CatalogEntry| body::CatalogEntry {
        operation_id: entry.operation_id.as_str().to_owned(),
        summary: entry.summary.to_owned(),
        role: entry.role.to_owned(),
        risk: risk(entry.risk).to_owned(),
        inputs: entry.inputs.into_iter().map(input_field).collect(),
    };
    body::Catalog { operations: entries.into_iter().map(entry).collect() }
}

const fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::ReadOnly => "read_only",
        Risk::Reversible => "reversible",
        Risk::LiftsBlock => "lifts_block",
        Risk::StopsWork => "stops_work",
        Risk::CausesActions => "causes_actions",
        Risk::RunsActions => "runs_actions",
    }
}

fn input_field(field: rules::catalog::InputField) -> body::InputField {
    body::InputField {
        name: field.name.to_owned(),
        type_name: field.type_name.to_owned(),
        required: field.required,
        max_bytes: field.max_bytes,
        values: field.values.iter().map(|value| (*value).to_owned()).collect(),
        doc: field.doc.to_owned(),
    }
}
