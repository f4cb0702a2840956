//! Asking the real gate on what a session has read.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rules::approval::{AcceptRequest, ApprovalBasis, ApprovalBook, Binding, approval_id, check_reject};
use rules::branch::active_branch;
use rules::canary::{CanaryId, CanaryResult};
use rules::gate::{GateInput, StepGrant, StepRequest, gate};
use rules::log::ExecutionStatus;
use rules::quiet::QuietState;
use rules::redact::Redactor;
use rules::refusal::{Refusal, RefusalCode};
use serde_json::Value;

use crate::gatepost::Offer;
use crate::log::{EventId, Ids, name};
use crate::reading::{Reading, read};
use crate::setup::Driver;
use crate::world::World;

const SESSION_IDS: [&str; 2] = ["0b23a082-3c53-4ae3-98a6-3fb16b88db40", "6a3b1c52-8d9e-4f60-9a7b-2c4d5e6f7081"];
const WORKDIR: &str = "/work";
const POLICY: &str = "AlwaysConfirm";
const TOKEN: &str = "owner";
const LIFETIME_MS: u64 = 1000;

struct Surroundings {
    canaries: Vec<CanaryResult>,
    redactor: Redactor,
    /// Why a session takes no step once the tripwire spoke.
    blocked: Refusal,
}

thread_local! {
    static GOOD: OnceCell<Surroundings> = const { OnceCell::new() };
    /// Books by what stands in them.
    static BOOKS: RefCell<HashMap<Vec<Rc<str>>, Rc<ApprovalBook>>> = RefCell::default();
}

fn surroundings<T>(with: impl FnOnce(&Surroundings) -> T) -> T {
    let holds =
        |canary| CanaryResult { canary, passed: true, code: None, detail: String::new(), evidence: Value::Null };
    GOOD.with(|good| {
        with(good.get_or_init(|| Surroundings {
            canaries: CanaryId::ALL.map(holds).to_vec(),
            redactor: Redactor::new(Vec::new()),
            blocked: Refusal::new(RefusalCode::UnreviewedAction, "an action ran that nobody accepted"),
        }))
    })
}

fn start_id(start: u8) -> String {
    format!("start-{start}")
}

/// What a step would be for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ask {
    Message,
    Run,
    Condense,
    Accept(Offer),
}

impl World {
    /// What the session has read, as the rules see it.
    pub(crate) fn reading(&self, at: usize) -> Rc<Reading> {
        let session = &self.sessions[at];
        read(&self.servers[at].log[..session.read], session.leaf, !self.setup.guards.matcher)
    }

    /// The batch that stood at that head.
    pub(crate) fn offered(&self, at: usize, head: EventId) -> Rc<Reading> {
        read(&self.servers[at].log[..self.sessions[at].read], Some(head), !self.setup.guards.matcher)
    }

    /// The approval id of an offer.
    fn identity(&self, at: usize, offer: Offer) -> Option<Rc<str>> {
        let reading = self.offered(at, offer.head);
        reading.approval(at, offer.start, || {
            let (branch, start) = (reading.branch(), start_id(offer.start));
            ApprovalBasis::of(binding(at, &start), &branch).map(|basis| approval_id(&basis).into())
        })
    }

    /// The book with the session's offers, and with one more.
    fn book(&self, at: usize, more: Option<Offer>) -> Rc<ApprovalBook> {
        let offers: Vec<Offer> = self.sessions[at].offers.iter().copied().chain(more).collect();
        let ids: Vec<Rc<str>> = offers.iter().filter_map(|offer| self.identity(at, *offer)).collect();
        BOOKS.with_borrow_mut(|books| {
            let make = || {
                let mut book = ApprovalBook::new(LIFETIME_MS);
                for offer in &offers {
                    let reading = self.offered(at, offer.head);
                    let (branch, start) = (reading.branch(), start_id(offer.start));
                    ApprovalBasis::of(binding(at, &start), &branch).map(|basis| book.offer(&basis, 0));
                }
                Rc::new(book)
            };
            Rc::clone(books.entry(ids).or_insert_with(make))
        })
    }

    /// The gate's word on a step.
    pub(crate) fn ask(&self, at: usize, ask: Ask) -> Result<StepGrant, Refusal> {
        let guards = self.setup.guards;
        let session = &self.sessions[at];
        let reading = self.reading(at);
        let named = match ask {
            Ask::Accept(offer) if guards.bound => Some(offer),
            Ask::Accept(offer) => Some(self.unbound(at, offer)),
            Ask::Message | Ask::Run | Ask::Condense => None,
        };
        let start = start_id(self.start);
        let book = self.book(at, named);
        let approval = named.and_then(|named| self.identity(at, named)).unwrap_or_default();
        let blind = !guards.pending && !matches!(ask, Ask::Accept(_));
        let branch = if blind { active_branch(&[], None).expect("empty") } else { reading.branch() };
        let sent = if guards.sent { session.sent.names() } else { Default::default() };
        // Whoever calls the server directly does not wait for anything.
        let alone = self.setup.driver == Driver::Gatepost;
        let quiet = if guards.quiet && alone { session.quiet.state() } else { QuietState::Quiet };
        let status = if alone { session.status } else { ExecutionStatus::Idle };
        surroundings(|good| {
            let request = match ask {
                Ask::Message => StepRequest::Message,
                Ask::Run => StepRequest::Run,
                Ask::Condense => StepRequest::Condense,
                Ask::Accept(_) => StepRequest::Accept(AcceptRequest {
                    approval_id: &approval,
                    token_name: TOKEN,
                    server_start_id: &start,
                    workdir: WORKDIR,
                    policy: POLICY,
                    now_ms: 1,
                    book: &book,
                    redactor: &good.redactor,
                }),
            };
            gate(&GateInput {
                session_id: SESSION_IDS[at],
                request,
                branch: &branch,
                status,
                quiet,
                sent: &sent,
                blocked: session.blocked.then_some(&good.blocked),
                canaries: &good.canaries,
            })
        })
    }

    /// With ids that stand for the actions alone, an old offer of the same actions is as good as the present one.
    fn unbound(&self, at: usize, offer: Offer) -> Offer {
        let present = self.sessions[at].leaf.filter(|_| self.reading(at).batch == self.offered(at, offer.head).batch);
        present.map_or(offer, |head| Offer { start: self.start, head })
    }

    /// Whether the batch of that offer can be rejected now.
    pub(crate) fn may_reject(&self, at: usize, offer: Offer) -> bool {
        let session = &self.sessions[at];
        let waits = session.waits(&self.reading(at).batch);
        let present = session.leaf.filter(|_| waits).map(|head| Offer { start: self.start, head });
        let current = present.and_then(|present| self.identity(at, present));
        let named = self.identity(at, offer).unwrap_or_default();
        check_reject(&named, current.as_deref(), &self.book(at, present)).is_ok()
    }
}

fn binding<'a>(at: usize, start: &'a str) -> Binding<'a> {
    Binding { session_id: SESSION_IDS[at], server_start_id: start, workdir: WORKDIR, policy: POLICY }
}

/// The ids that a grant names.
pub(crate) fn granted(grant: &StepGrant) -> Ids {
    let named: Vec<EventId> = grant.event_ids().iter().filter_map(|id| crate::log::id_of(id)).collect();
    debug_assert!(grant.event_ids().iter().zip(&named).all(|(word, id)| *word == name(*id)));
    Ids::of(&named)
}
