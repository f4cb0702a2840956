//! The pending batch: its identity, how it is shown, and when a decision on it is still good.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Value, json};

use crate::branch::{Answer, Branch};
pub use crate::display;
use crate::jcs;
use crate::log::{ActionRecord, LogEvent};
use crate::redact::Redactor;
use crate::refusal::{Refusal, RefusalCode};

/// Version of the digest's content.
const APPROVAL_VERSION: u32 = 1;
/// Offers remembered for one session; older ones are answered as if never made.
pub const MAX_OFFERS: usize = 64;
/// Tokens remembered for one offer.
const MAX_READERS: usize = 64;

/// What an action would run under, besides the branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding<'a> {
    /// The session.
    pub session_id: &'a str,
    /// Random for each server start, so that a restart voids what was shown.
    pub server_start_id: &'a str,
    /// Resolved directory the agent works in.
    pub workdir: &'a str,
    /// Kind of the confirmation policy.
    pub policy: &'a str,
}

/// One action of a batch, as it counts for the digest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionBasis<'a> {
    /// The server's event id.
    pub event_id: &'a str,
    /// Tool that would run.
    pub tool: &'a str,
    /// What would run, exactly.
    pub arguments: &'a Value,
}

/// Everything an approval id stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalBasis<'a> {
    /// Where it would run.
    pub binding: Binding<'a>,
    /// The server's `leaf_event_id`.
    pub branch_head: Option<&'a str>,
    /// Every action, in order.
    pub actions: Vec<ActionBasis<'a>>,
}

impl<'a> ApprovalBasis<'a> {
    /// What waits on this branch for a decision; `None` when nothing does.
    pub fn of(binding: Binding<'a>, branch: &Branch<'a>) -> Option<Self> {
        let actions: Vec<ActionBasis<'a>> = branch.batch().into_iter().filter_map(action_basis).collect();
        if actions.is_empty() { None } else { Some(Self { binding, branch_head: branch.leaf(), actions }) }
    }

    /// The ids of its actions, in order.
    pub fn event_ids(&self) -> Vec<String> {
        self.actions.iter().map(|action| action.event_id.to_owned()).collect()
    }
}

fn action_basis(event: &LogEvent) -> Option<ActionBasis<'_>> {
    let (record, arguments) = event.executable()?;
    Some(ActionBasis { event_id: &event.event_id, tool: &record.tool, arguments })
}

/// SHA-256 over the canonical JSON of the basis, 64 lower-case hexadecimal digits.
pub fn approval_id(basis: &ApprovalBasis<'_>) -> String {
    let actions: Vec<Value> = basis
        .actions
        .iter()
        .map(|action| json!({"event_id": action.event_id, "tool": action.tool, "arguments": action.arguments}))
        .collect();
    jcs::digest(&json!({
        "v": APPROVAL_VERSION,
        "session_id": basis.binding.session_id,
        "server_start_id": basis.binding.server_start_id,
        "workdir": basis.binding.workdir,
        "policy": basis.binding.policy,
        "branch_head": basis.branch_head,
        "actions": actions,
    }))
}

/// How much of a batch is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Bounded, and redacted by field name: for lists.
    Bounded,
    /// Nothing cut, redacted by value only: for the approver who decides.
    Full,
}

/// One action as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownAction {
    /// The server's event id.
    pub event_id: String,
    /// Tool that would run.
    pub tool: String,
    /// What would run, redacted and bounded as flagged.
    pub arguments: Value,
    /// The agent's own risk word.
    pub claimed_risk: Option<String>,
    /// The agent's own summary.
    pub claimed_summary: Option<String>,
    /// Something was replaced by a mark.
    pub redacted: bool,
    /// Something was cut.
    pub truncated: bool,
    /// Characters that hide, reorder or repaint text were made visible.
    pub deceptive_text: bool,
    /// A live secret stands in it.
    pub holds_secret: bool,
    /// Its accept was sent before and no answer is known: only rejectable.
    pub in_doubt: bool,
}

/// Shows one action of a batch; `None` for an event that proposes no executable action.
///
/// `sent` holds the ids of every action whose accept was ever sent.
pub fn show(event: &LogEvent, redactor: &Redactor, detail: Detail, sent: &BTreeSet<String>) -> Option<ShownAction> {
    let (record, arguments) = event.executable()?;
    let ActionRecord { tool, claimed_risk, claimed_summary, .. } = record;
    let holds_secret = redactor.contains_secret(arguments) || redactor.redact_text(tool).1;
    let (shown, redacted) = match detail {
        Detail::Bounded => redactor.redact_value(arguments),
        Detail::Full => redactor.redact_known(arguments),
    };
    let (shown, deceptive) = display::visible_value(&shown);
    let (arguments, truncated) = match detail {
        Detail::Bounded => display::bounded(&shown, display::LIST_BYTES),
        Detail::Full => (shown, false),
    };
    let mut deceptive_text = deceptive;
    let mut words = |text: &str| {
        let (text, deceptive) = display::visible(&redactor.redact_text(text).0);
        deceptive_text |= deceptive;
        text
    };
    let (tool, claimed_risk, claimed_summary) =
        (words(tool), claimed_risk.as_deref().map(&mut words), claimed_summary.as_deref().map(&mut words));
    Some(ShownAction {
        event_id: event.event_id.clone(),
        tool,
        arguments,
        claimed_risk,
        claimed_summary,
        redacted: redacted || holds_secret,
        truncated,
        deceptive_text,
        holds_secret,
        in_doubt: sent.contains(&event.event_id),
    })
}

/// A batch that was offered for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its identity.
    pub approval_id: String,
    /// Its actions, in order.
    pub event_ids: Vec<String>,
    /// From this time on (milliseconds, the caller's clock) it can only be rejected.
    pub expires_at_ms: u64,
    shown_in_full_to: BTreeSet<String>,
}

/// The offers of one session, newest last.
#[derive(Debug, Clone)]
pub struct ApprovalBook {
    lifetime_ms: u64,
    offers: VecDeque<Offer>,
}

impl ApprovalBook {
    /// With offers that stay good for `lifetime_ms`.
    pub fn new(lifetime_ms: u64) -> Self {
        Self { lifetime_ms, offers: VecDeque::new() }
    }

    /// Notes that this batch waits. Its time runs from the first note.
    pub fn offer(&mut self, basis: &ApprovalBasis<'_>, now_ms: u64) -> Offer {
        let id = approval_id(basis);
        if let Some(known) = self.find(&id) {
            return known.clone();
        }
        if self.offers.len() == MAX_OFFERS {
            self.offers.pop_front();
        }
        let offer = Offer {
            approval_id: id,
            event_ids: basis.event_ids(),
            expires_at_ms: now_ms.saturating_add(self.lifetime_ms),
            shown_in_full_to: BTreeSet::new(),
        };
        self.offers.push_back(offer.clone());
        offer
    }

    /// Notes that the holder of this token fetched the batch in full.
    pub fn note_shown_in_full(&mut self, approval_id: &str, token_name: &str) {
        if let Some(offer) = self.offers.iter_mut().find(|offer| offer.approval_id == approval_id)
            && offer.shown_in_full_to.len() < MAX_READERS
        {
            offer.shown_in_full_to.insert(token_name.to_owned());
        }
    }

    /// The offer of that id.
    pub fn find(&self, approval_id: &str) -> Option<&Offer> {
        self.offers.iter().find(|offer| offer.approval_id == approval_id)
    }
}

/// Whether a rejection that names `approval_id` is about what waits now. It needs neither quiet nor canaries, and an
/// expired, doubtful or secret-holding batch can be rejected.
///
/// # Errors
/// `nothing_pending`, `approval_superseded` or `approval_not_found`.
pub fn check_reject(approval_id: &str, current: Option<&str>, book: &ApprovalBook) -> Result<(), Refusal> {
    match current {
        Some(current) if current == approval_id => Ok(()),
        Some(current) if book.find(approval_id).is_some() => Err(Refusal::new(
            RefusalCode::ApprovalSuperseded,
            format!("this batch was superseded by {current}; look at that one and reject it"),
        )),
        None if book.find(approval_id).is_some() => {
            Err(Refusal::new(RefusalCode::NothingPending, "nothing waits for a decision any more"))
        }
        Some(_) | None => Err(never_offered()),
    }
}

/// Who accepts what, and what it is checked against.
#[derive(Debug, Clone, Copy)]
pub struct AcceptRequest<'a> {
    /// The batch that was looked at.
    pub approval_id: &'a str,
    /// Name of the token that accepts.
    pub token_name: &'a str,
    /// Random for the server start that the accept would be sent to.
    pub server_start_id: &'a str,
    /// Resolved directory, from the same read as the branch.
    pub workdir: &'a str,
    /// Kind of the confirmation policy, from the same read as the branch.
    pub policy: &'a str,
    /// Now, on the clock of the book.
    pub now_ms: u64,
    /// What was offered.
    pub book: &'a ApprovalBook,
    /// Knows the live secrets.
    pub redactor: &'a Redactor,
}

/// Whether the batch that waits on `branch` now is the one that was looked at, and may be accepted.
pub(crate) fn check_accept(
    session_id: &str,
    request: &AcceptRequest<'_>,
    branch: &Branch<'_>,
    sent: &BTreeSet<String>,
) -> Result<Vec<String>, Refusal> {
    let binding = Binding {
        session_id,
        server_start_id: request.server_start_id,
        workdir: request.workdir,
        policy: request.policy,
    };
    let offered = request.book.find(request.approval_id);
    let Some(basis) = ApprovalBasis::of(binding, branch) else {
        let detail = "nothing waits for a decision";
        return Err(offered.map_or_else(never_offered, |_| Refusal::new(RefusalCode::NothingPending, detail)));
    };
    let offer = offered.ok_or_else(never_offered)?;
    // INVARIANT I1: what is accepted is what was shown, derived again from the read just before sending.
    if approval_id(&basis) != request.approval_id {
        return Err(superseded(offer, &basis));
    }
    let event_ids = basis.event_ids();
    if let Some(doubtful) = event_ids.iter().find(|event_id| sent.contains(*event_id)) {
        let detail =
            format!("an accept of action {doubtful} was sent before and its outcome is unknown; reject the batch");
        return Err(Refusal::new(RefusalCode::ApprovalInDoubt, detail));
    }
    if request.now_ms >= offer.expires_at_ms {
        let detail = "the batch was offered too long ago; reject it and prompt again";
        return Err(Refusal::new(RefusalCode::ApprovalExpired, detail));
    }
    let shown: Vec<ShownAction> =
        branch.batch().into_iter().filter_map(|event| show(event, request.redactor, Detail::Bounded, sent)).collect();
    if shown.len() != event_ids.len() || shown.iter().any(|action| action.holds_secret) {
        let detail = "the batch holds a live secret of gatepost's own; reject it";
        return Err(Refusal::new(RefusalCode::ApprovalHoldsSecret, detail));
    }
    let whole = shown.iter().all(|action| !action.redacted && !action.truncated);
    if !whole && !offer.shown_in_full_to.contains(request.token_name) {
        let detail = "the batch was shown cut or redacted; fetch it with `full=true` under the same token, then accept";
        return Err(Refusal::new(RefusalCode::ApprovalNotShownInFull, detail));
    }
    Ok(event_ids)
}

fn never_offered() -> Refusal {
    Refusal::new(RefusalCode::ApprovalNotFound, "no batch of this approval id was offered; list the approvals again")
}

fn superseded(offer: &Offer, now: &ApprovalBasis<'_>) -> Refusal {
    let event_ids = now.event_ids();
    let added = event_ids.iter().filter(|event_id| !offer.event_ids.contains(event_id)).count();
    let gone = offer.event_ids.iter().filter(|event_id| !event_ids.contains(event_id)).count();
    let changed = match (added, gone) {
        (0, 0) => "its content, its place in the conversation or the server behind it changed".to_owned(),
        (_, _) => format!("{added} actions came and {gone} went"),
    };
    let detail = format!("the batch is no longer what was shown: {changed}; look at {} instead", approval_id(now));
    Refusal::new(RefusalCode::ApprovalSuperseded, detail)
}

/// Ids of pending actions whose accept was sent and whose outcome is unknown, in order.
pub fn in_doubt(branch: &Branch<'_>, sent: &BTreeSet<String>) -> Vec<String> {
    branch
        .pending()
        .into_iter()
        .map(|event| event.event_id.clone())
        .filter(|event_id| sent.contains(event_id))
        .collect()
}

/// What is known of an accept that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptEvidence {
    /// An action of it is not answered yet.
    Awaited,
    /// Every action ran.
    Ran,
    /// Every action was rejected before it could run.
    Rejected,
    /// Every action is answered, and what ran of them cannot be told: an error, which a restart leaves too, stands for
    /// one, or some ran and some did not.
    Unclear,
}

/// What the answers to the actions of one accept say together. An accept is applied when it is seen that all of it ran;
/// that the server answered success says nothing.
pub fn accept_evidence(answers: &[Option<Answer>]) -> AcceptEvidence {
    let all = |answer| answers.iter().all(|given| *given == Some(answer));
    if answers.iter().any(Option::is_none) {
        AcceptEvidence::Awaited
    } else if all(Answer::Observed) {
        AcceptEvidence::Ran
    } else if all(Answer::Rejected) {
        AcceptEvidence::Rejected
    } else {
        AcceptEvidence::Unclear
    }
}

#[cfg(test)]
mod tests;
