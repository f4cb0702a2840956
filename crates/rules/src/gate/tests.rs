use super::*;
use crate::approval::{ApprovalBasis, ApprovalBook, Binding};
use crate::branch::active_branch;
use crate::canary::CanaryId;
use crate::canary::tests::all_good;
use crate::log::{ActionRecord, ExemptKind, LogEventKind};
use crate::redact::Redactor;
use crate::testing::{Log, action, command, error, exempt, observation, record, user};
use serde_json::json;

const SESSION: &str = "0b23a082-3c53-4ae3-98a6-3fb16b88db40";
const LIFETIME_MS: u64 = 1000;

/// A state in which everything may go out; each test spoils one thing.
struct Setup {
    log: Log,
    leaf: Option<String>,
    status: ExecutionStatus,
    quiet: QuietState,
    sent: BTreeSet<String>,
    blocked: Option<Refusal>,
    canaries: Vec<CanaryResult>,
    redactor: Redactor,
    book: ApprovalBook,
    start: String,
    workdir: String,
    policy: String,
    now_ms: u64,
    token: String,
}

impl Setup {
    fn new(events: &[(&str, LogEventKind)]) -> Self {
        Self {
            log: Log::line(events),
            leaf: events.last().map(|(id, _)| (*id).to_owned()),
            status: ExecutionStatus::Idle,
            quiet: QuietState::Quiet,
            sent: BTreeSet::new(),
            blocked: None,
            canaries: all_good(),
            redactor: Redactor::new(vec![("model".into(), "sk-live-12345".into())]),
            book: ApprovalBook::new(LIFETIME_MS),
            start: "start".into(),
            workdir: "/w".into(),
            policy: "AlwaysConfirm".into(),
            now_ms: 10,
            token: "owner".into(),
        }
    }

    fn idle() -> Self {
        Self::new(&[("r", LogEventKind::Other), ("u", user("hi"))])
    }

    fn waiting() -> Self {
        Self { status: ExecutionStatus::WaitingForConfirmation, ..Self::new(&[("u", user("hi")), ("a", action("c"))]) }
    }

    fn branch(&self) -> Branch<'_> {
        active_branch(self.log.events(), self.leaf.as_deref()).unwrap()
    }

    fn offer(&mut self) -> String {
        let Self { log, leaf, book, start, workdir, policy, now_ms, .. } = self;
        let branch = active_branch(log.events(), leaf.as_deref()).unwrap();
        let binding = Binding { session_id: SESSION, server_start_id: start, workdir, policy };
        book.offer(&ApprovalBasis::of(binding, &branch).unwrap(), *now_ms).approval_id
    }

    fn ask(&self, request: StepRequest<'_>) -> Result<StepGrant, Refusal> {
        gate(&GateInput {
            session_id: SESSION,
            request,
            branch: &self.branch(),
            status: self.status,
            quiet: self.quiet,
            sent: &self.sent,
            blocked: self.blocked.as_ref(),
            canaries: &self.canaries,
        })
    }

    fn accept(&self, approval_id: &str) -> Result<StepGrant, Refusal> {
        self.ask(StepRequest::Accept(AcceptRequest {
            approval_id,
            token_name: &self.token,
            server_start_id: &self.start,
            workdir: &self.workdir,
            policy: &self.policy,
            now_ms: self.now_ms,
            book: &self.book,
            redactor: &self.redactor,
        }))
    }

    fn plain_calls(&self) -> [(StepCause, Result<StepGrant, Refusal>); 3] {
        [
            (StepCause::Message, self.ask(StepRequest::Message)),
            (StepCause::Run, self.ask(StepRequest::Run)),
            (StepCause::Condense, self.ask(StepRequest::Condense)),
        ]
    }
}

#[track_caller]
fn refuses(result: Result<StepGrant, Refusal>, code: RefusalCode) {
    assert_eq!(result.expect_err("refused").code, code);
}

#[test]
fn a_quiet_session_takes_every_plain_step() {
    let mut setup = Setup::idle();
    for status in ExecutionStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        setup.status = status;
        for (cause, result) in setup.plain_calls() {
            let grant = result.unwrap();
            assert_eq!((grant.session_id(), grant.cause(), grant.event_ids()), (SESSION, cause, &[][..]));
        }
    }
    let empty = Setup { leaf: None, ..Setup::new(&[]) };
    assert!(empty.ask(StepRequest::Message).is_ok());
}

#[test]
fn an_accept_names_every_action_of_the_batch() {
    let mut setup = Setup::new(&[("a", action("c1")), ("f", exempt("c2", ExemptKind::Finish)), ("b", action("c3"))]);
    let id = setup.offer();
    let grant = setup.accept(&id).unwrap();
    assert_eq!((grant.cause(), grant.event_ids()), (StepCause::Accept, &["a".to_owned(), "f".into(), "b".into()][..]));
}

#[test]
fn nothing_but_an_accept_goes_out_while_something_is_pending() {
    let setup = Setup::waiting();
    for (_, result) in setup.plain_calls() {
        refuses(result, RefusalCode::ApprovalPending);
    }
    // The same after an interrupt, in a fork, after a rewind onto the action: whatever the status says.
    for status in [ExecutionStatus::Paused, ExecutionStatus::Idle, ExecutionStatus::Finished, ExecutionStatus::Error] {
        for (_, result) in (Setup { status, ..Setup::waiting() }).plain_calls() {
            refuses(result, RefusalCode::ApprovalPending);
        }
    }
    let mut navigated = Setup::new(&[("u", user("hi")), ("a", action("c")), ("o", observation("a"))]);
    navigated.leaf = Some("a".into());
    for (_, result) in navigated.plain_calls() {
        refuses(result, RefusalCode::ApprovalPending);
    }
    let reused = Setup::new(&[("e", error("c")), ("a", action("c"))]);
    for (_, result) in reused.plain_calls() {
        refuses(result, RefusalCode::ApprovalPending);
    }
}

#[test]
fn a_lone_finish_hinders_nothing_and_cannot_be_accepted() {
    let mut setup = Setup::new(&[("u", user("hi")), ("f", exempt("c", ExemptKind::Finish))]);
    for (_, result) in setup.plain_calls() {
        assert!(result.is_ok());
    }
    refuses(setup.accept("anything"), RefusalCode::ApprovalNotFound);
    setup.sent.insert("f".into());
    refuses(setup.ask(StepRequest::Run), RefusalCode::ApprovalInDoubt);
}

#[test]
fn whatever_is_wrong_stops_every_step() {
    type Spoil = fn(&mut Setup);
    let spoils: [(RefusalCode, Spoil); 8] = [
        (RefusalCode::SessionBlocked, |setup| {
            setup.blocked = Some(Refusal::new(RefusalCode::UnreviewedAction, "why"));
        }),
        (RefusalCode::CanaryFailed, |setup| setup.canaries.clear()),
        (RefusalCode::PolicyWeak, |setup| {
            setup.canaries.push(crate::canary::policy("NeverConfirm"));
        }),
        (RefusalCode::SessionRunning, |setup| setup.status = ExecutionStatus::Running),
        (RefusalCode::SessionClosed, |setup| setup.status = ExecutionStatus::Deleting),
        (RefusalCode::UpstreamMalformed, |setup| setup.status = ExecutionStatus::Unknown),
        (RefusalCode::SessionNotQuiet, |setup| setup.quiet = QuietState::AwaitingStart),
        (RefusalCode::SessionNotQuiet, |setup| setup.quiet = QuietState::AwaitingEnd),
    ];
    for (code, spoil) in spoils {
        let mut idle = Setup::idle();
        spoil(&mut idle);
        for (_, result) in idle.plain_calls() {
            refuses(result, code);
        }
        let mut waiting = Setup::waiting();
        let id = waiting.offer();
        assert!(waiting.accept(&id).is_ok());
        spoil(&mut waiting);
        refuses(waiting.accept(&id), code);
    }
}

#[test]
fn every_single_canary_is_needed() {
    for canary in CanaryId::ALL {
        let mut setup = Setup::waiting();
        let id = setup.offer();
        setup.canaries.retain(|result| result.canary != canary);
        refuses(setup.accept(&id), RefusalCode::CanaryFailed);
        setup.canaries.push(CanaryResult::unreadable(canary, "timeout"));
        refuses(setup.accept(&id), RefusalCode::CanaryFailed);
        refuses(setup.ask(StepRequest::Message), RefusalCode::CanaryFailed);
    }
}

#[test]
fn an_action_whose_accept_was_sent_is_never_accepted_again() {
    let mut setup = Setup::new(&[("a", action("c1")), ("b", action("c2"))]);
    let id = setup.offer();
    setup.sent.insert("b".into());
    refuses(setup.accept(&id), RefusalCode::ApprovalInDoubt);
    for (_, result) in setup.plain_calls() {
        refuses(result, RefusalCode::ApprovalInDoubt);
    }
}

#[test]
fn an_accept_is_good_for_exactly_what_was_shown() {
    let mut setup = Setup::waiting();
    let id = setup.offer();
    refuses(setup.accept("0000"), RefusalCode::ApprovalNotFound);
    for change in [
        (|setup: &mut Setup| setup.start = "another start".into()) as fn(&mut Setup),
        |setup| setup.workdir = "/elsewhere".into(),
        |setup| setup.policy = "ConfirmRisky".into(),
        |setup| {
            setup.log.push("b", Some("a"), action("c2"));
            setup.leaf = Some("b".into());
        },
        |setup| setup.log = Log::line(&[("u", user("hi")), ("a", command("c", "rm -rf /"))]),
    ] {
        let mut changed = Setup::waiting();
        changed.offer();
        change(&mut changed);
        refuses(changed.accept(&id), RefusalCode::ApprovalSuperseded);
    }
    let mut answered = Setup::waiting();
    answered.offer();
    answered.log.push("o", Some("a"), observation("a"));
    answered.leaf = Some("o".into());
    refuses(answered.accept(&id), RefusalCode::NothingPending);
    // Never offered here, even though it is what waits.
    refuses(Setup::waiting().accept(&id), RefusalCode::ApprovalNotFound);
}

#[test]
fn a_refusal_says_what_changed() {
    let mut setup = Setup::waiting();
    let id = setup.offer();
    setup.log.push("b", Some("a"), action("c2"));
    setup.log.push("c", Some("b"), action("c3"));
    setup.leaf = Some("c".into());
    let now = setup.offer();
    let detail = setup.accept(&id).unwrap_err().detail;
    assert!(detail.contains("2 actions came and 0 went") && detail.contains(&now), "{detail}");
}

#[test]
fn an_offer_expires() {
    let mut setup = Setup::waiting();
    let id = setup.offer();
    setup.now_ms += LIFETIME_MS - 1;
    assert!(setup.accept(&id).is_ok());
    setup.now_ms += 1;
    refuses(setup.accept(&id), RefusalCode::ApprovalExpired);
}

#[test]
fn a_live_secret_makes_a_batch_rejectable_only() {
    for text in ["echo sk-live-12345", "echo c2stbGl2ZS0xMjM0NQ== | base64 -d"] {
        let mut setup = Setup::new(&[("a", action("c1")), ("b", command("c2", text))]);
        let id = setup.offer();
        setup.book.note_shown_in_full(&id, "owner");
        refuses(setup.accept(&id), RefusalCode::ApprovalHoldsSecret);
    }
}

#[test]
fn what_was_cut_or_redacted_must_have_been_fetched_in_full_by_the_same_token() {
    let long = command("c", &"x".repeat(100_000));
    let named = LogEventKind::Action(ActionRecord { action: Some(json!({"password": "hunter2"})), ..record("c") });
    for kind in [long, named] {
        let mut setup = Setup::new(&[("a", kind)]);
        let id = setup.offer();
        refuses(setup.accept(&id), RefusalCode::ApprovalNotShownInFull);
        setup.book.note_shown_in_full(&id, "somebody else");
        refuses(setup.accept(&id), RefusalCode::ApprovalNotShownInFull);
        setup.book.note_shown_in_full(&id, "owner");
        assert!(setup.accept(&id).is_ok());
    }
}
