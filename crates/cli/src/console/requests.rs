//! What is asked of the daemon, each in a task of its own that says what came of it.

use std::time::{Duration, Instant};

use api_types::{ActionRequest, Approval, ApprovalList, EventPage, ExitCode, Receipt, SessionList, SessionSnapshot};
use tokio::sync::mpsc;

use super::model::{Asked, Look, Message, Trouble, Waits};
use crate::acceptable::is_digest;
use crate::daemon::Daemon;
use crate::failure::Failure;
use crate::sanitize;
use crate::transport::encoded;

/// Between two looks at the list of sessions, which costs no server anything.
const LIST_EVERY: Duration = Duration::from_secs(2);
/// Between two tries while nothing answers: longer each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(10);
/// How long a read may take, and one that may have to start a server first.
const READ_WITHIN: Duration = Duration::from_secs(30);
const LOOK_WITHIN: Duration = Duration::from_secs(180);
const HOLD: Duration = Duration::from_secs(20);
const PAGE_EVENTS: usize = 200;
/// Between two pages: a daemon that does not hold a poll is not asked without a pause.
const PAGE_PAUSE: Duration = Duration::from_millis(20);
/// How long a receipt is followed, and how often.
const FOLLOW_WITHIN: Duration = Duration::from_secs(3_600);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(super) type Outbox = mpsc::Sender<Message>;

fn trouble(failure: &Failure) -> Trouble {
    let words = format!("{}: {}", sanitize::line(&failure.code), sanitize::line(&failure.detail));
    Trouble { exit: failure.exit, words, passes: failure.passes() }
}

/// Lists the sessions for ever; it ends when nobody takes what it says.
pub(super) async fn list(daemon: Daemon, outbox: Outbox) {
    let mut retry = FIRST_RETRY;
    loop {
        let listed: Result<SessionList, Failure> = daemon.get("/v1/sessions", READ_WITHIN).await;
        let pause = next_pause(listed.is_ok().then_some(LIST_EVERY), &mut retry);
        let listed = listed.map(|list| list.sessions).map_err(|failure| trouble(&failure));
        if outbox.send(Message::Listed(listed)).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

fn next_pause(after_success: Option<Duration>, retry: &mut Duration) -> Duration {
    match after_success {
        Some(pause) => {
            *retry = FIRST_RETRY;
            pause
        }
        None => {
            let pause = *retry;
            *retry = (*retry * 2).min(LONGEST_RETRY);
            pause
        }
    }
}

/// Follows a session's events from the beginning on, over every loss of the daemon.
pub(super) async fn follow(daemon: Daemon, outbox: Outbox, opening: u64, session_id: String) {
    let mut after: Option<String> = None;
    let mut retry = FIRST_RETRY;
    loop {
        let cursor = after.as_deref().map(|cursor| format!("&after={}", encoded(cursor))).unwrap_or_default();
        let target = format!(
            "/v1/sessions/{}/events?limit={PAGE_EVENTS}&wait_ms={}{cursor}",
            encoded(&session_id),
            HOLD.as_millis()
        );
        let page: Result<EventPage, Failure> = daemon.get(&target, HOLD + READ_WITHIN).await;
        let pause = next_pause(page.is_ok().then_some(PAGE_PAUSE), &mut retry);
        if let Ok(page) = &page {
            after = Some(page.next_cursor.clone());
        }
        let page = page.map_err(|failure| trouble(&failure));
        if outbox.send(Message::Page { opening, page }).await.is_err() {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Looks at a session: its snapshot first, then what waits, so that whatever changes in between makes a decision stale.
pub(super) async fn look(daemon: Daemon, outbox: Outbox, opening: u64, session_id: String, known: Option<u64>) {
    let look = look_at(&daemon, &session_id, known).await.map(Box::new).map_err(|failure| trouble(&failure));
    outbox.send(Message::Looked { opening, look }).await.ok();
}

/// Says that it is time to look again.
pub(super) async fn look_later(outbox: Outbox, opening: u64, failed_looks: u32) {
    tokio::time::sleep(pause_after(failed_looks)).await;
    outbox.send(Message::LookDue { opening }).await.ok();
}

/// The pause after so many tries that failed in a row: twice as long each time, up to [`LONGEST_RETRY`].
fn pause_after(failed: u32) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    (FIRST_RETRY * (1 << doublings)).min(LONGEST_RETRY)
}

async fn look_at(daemon: &Daemon, session_id: &str, known: Option<u64>) -> Result<Look, Failure> {
    let path = format!("/v1/sessions/{}", encoded(session_id));
    let snapshot: SessionSnapshot = daemon.get(&path, LOOK_WITHIN).await?;
    // Reading a batch tells the daemon that its files were shown as they are now: it is read when it is about to be shown, and
    // not again while nothing has moved.
    let waits = if snapshot.pending_actions == 0 {
        Waits::Nothing
    } else if known == Some(snapshot.capability_generation) {
        Waits::AsKnown
    } else {
        pending(daemon, &path, session_id).await?
    };
    Ok(Look { snapshot, waits })
}

async fn pending(daemon: &Daemon, path: &str, session_id: &str) -> Result<Waits, Failure> {
    let list: ApprovalList = daemon.get(&format!("{path}/approvals"), LOOK_WITHIN).await?;
    let mut approvals = list.approvals;
    let Some(listed) = approvals.pop() else { return Ok(Waits::Nothing) };
    if !approvals.is_empty() || !is_digest(&listed.approval_id) {
        return Err(Failure::malformed("a list of approvals"));
    }
    let target = format!("{path}/approvals/{}?full=true", listed.approval_id);
    match daemon.get::<Approval>(&target, LOOK_WITHIN).await {
        Ok(approval) if approval.approval_id == listed.approval_id && approval.session_id == session_id => {
            Ok(Waits::Batch { approval: Box::new(approval), in_full: true })
        }
        Ok(_) => Err(Failure::malformed("the approval that was asked for")),
        // Without the role to approve, the list's view with its flags must do.
        Err(failure) if failure.exit == ExitCode::NotPermitted => {
            Ok(Waits::Batch { approval: Box::new(listed), in_full: false })
        }
        Err(failure) => Err(failure),
    }
}

/// Asks for an operation, once, and follows its receipt.
pub(super) async fn act(daemon: Daemon, outbox: Outbox, asked: Asked) {
    let action_id = uuid::Uuid::new_v4().to_string();
    let (opening, operation) = (asked.opening, asked.operation);
    let request = ActionRequest {
        operation_id: operation.to_owned(),
        input: asked.input,
        capability_generation: asked.generation,
        client_action_id: Some(action_id.clone()),
    };
    let target = format!("/v1/sessions/{}/actions", encoded(&asked.session_id));
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut said = None;
    let mut receipt: Result<Receipt, Failure> = daemon.post(&target, &request, LOOK_WITHIN).await;
    loop {
        let (state, over) = match &receipt {
            Ok(receipt) => (Some(receipt.state), receipt.state.is_final() || begun.elapsed() > FOLLOW_WITHIN),
            Err(_) => (None, true),
        };
        if over || said != state {
            said = state;
            let receipt = receipt.map(Box::new).map_err(|failure| unknown(&failure, &action_id));
            if outbox.send(Message::Outcome { opening, operation, receipt }).await.is_err() || over {
                return;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        receipt = daemon.get(&format!("/v1/actions/{action_id}"), READ_WITHIN).await.map_err(|mut failure: Failure| {
            // It was taken on, so whatever keeps us from reading of it leaves it unknown.
            failure.exit = ExitCode::Unknown;
            failure
        });
    }
}

fn unknown(failure: &Failure, action_id: &str) -> Trouble {
    let mut told = trouble(failure);
    if told.exit == ExitCode::Unknown {
        told.words = format!("outcome unknown, see `gatepost receipt {action_id}`: {}", told.words);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let seconds: Vec<f64> = [1, 2, 3, 5, 6, u32::MAX].map(|failed| pause_after(failed).as_secs_f64()).to_vec();
        assert_eq!(seconds, [0.5, 1.0, 2.0, 8.0, 10.0, 10.0]);
    }
}
