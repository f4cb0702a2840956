use super::*;
use crate::branch::active_branch;
use crate::log::ExemptKind;
use crate::log::LogEventKind;
use crate::testing::{Log, action, command, error, exempt, observation, user};
use proptest::prelude::*;

const BINDING: Binding<'static> =
    Binding { session_id: "s", server_start_id: "start", workdir: "/w", policy: "AlwaysConfirm" };

fn plain() -> Redactor {
    Redactor::new(Vec::new())
}

fn basis_of(log: &Log, leaf: &str) -> Option<(String, Vec<String>)> {
    let branch = active_branch(log.events(), Some(leaf)).unwrap();
    ApprovalBasis::of(BINDING, &branch).map(|basis| (approval_id(&basis), basis.event_ids()))
}

#[test]
fn a_batch_is_everything_that_waits() {
    let log = Log::line(&[("a", action("c1")), ("b", action("c2")), ("e", error("c1")), ("c", action("c3"))]);
    assert_eq!(basis_of(&log, "c").unwrap().1, ["b", "c"]);
    assert_eq!(basis_of(&Log::line(&[("u", user("hi"))]), "u"), None);
    assert_eq!(basis_of(&Log::line(&[("f", exempt("c", ExemptKind::Finish))]), "f"), None);
}

/// The content that is digested, spelt out: anyone can compute the id again.
#[test]
fn the_id_is_the_digest_of_this_very_text() {
    let arguments = json!({"kind": "TerminalAction", "command": "ls"});
    let actions = vec![ActionBasis { event_id: "e1", tool: "terminal", arguments: &arguments }];
    let basis = ApprovalBasis { binding: BINDING, branch_head: Some("e1"), actions };
    let text = concat!(
        r#"{"actions":[{"arguments":{"command":"ls","kind":"TerminalAction"},"event_id":"e1","tool":"terminal"}],"#,
        r#""branch_head":"e1","policy":"AlwaysConfirm","server_start_id":"start","session_id":"s","v":1,"workdir":"/w"}"#
    );
    assert_eq!(approval_id(&basis), jcs::sha256_hex(text.as_bytes()));
    assert_eq!(approval_id(&basis).len(), 64);
}

#[derive(Debug, Clone, PartialEq)]
struct Owned {
    words: Vec<String>,
    head: Option<String>,
    actions: Vec<(String, String, Value)>,
}

impl Owned {
    fn id(&self) -> String {
        approval_id(&ApprovalBasis {
            binding: Binding {
                session_id: &self.words[0],
                server_start_id: &self.words[1],
                workdir: &self.words[2],
                policy: &self.words[3],
            },
            branch_head: self.head.as_deref(),
            actions: self
                .actions
                .iter()
                .map(|(event_id, tool, arguments)| ActionBasis { event_id, tool, arguments })
                .collect(),
        })
    }
}

fn any_basis() -> impl Strategy<Value = Owned> {
    let action = (".{0,4}", ".{0,4}", (any::<i64>(), ".{0,6}").prop_map(|(n, text)| json!({"n": n, "command": text})));
    (prop::collection::vec(".{0,4}", 4), prop::option::of(".{0,4}"), prop::collection::vec(action, 1..4))
        .prop_map(|(words, head, actions)| Owned { words, head, actions })
}

proptest! {
    #[test]
    fn every_field_counts(basis in any_basis(), which in 0..9_usize, at in any::<prop::sample::Index>()) {
        let mut other = basis.clone();
        let index = at.index(basis.actions.len());
        match which {
            0..=3 => other.words[which].push('x'),
            4 => other.head = other.head.map_or(Some(String::new()), |head| Some(head + "x")),
            5 => other.actions[index].0.push('x'),
            6 => other.actions[index].1.push('x'),
            7 => other.actions[index].2["command"] = json!(format!("{} ", other.actions[index].2["command"])),
            _ => { other.actions.remove(index); }
        }
        prop_assert_ne!(basis.id(), other.id());
        let mut reordered = basis.clone();
        reordered.actions.reverse();
        prop_assert_eq!(reordered.id() == basis.id(), reordered.actions == basis.actions);
    }

    #[test]
    fn different_bases_have_different_ids(left in any_basis(), right in any_basis()) {
        prop_assert_eq!(left.id() == right.id(), left == right);
    }
}

#[test]
fn a_batch_is_shown_bounded_in_lists_and_whole_to_the_approver() {
    let long = "x".repeat(display::LIST_BYTES + 1);
    let log = Log::line(&[("a", command("c", &long))]);
    let event = &log.events()[0];
    let none = BTreeSet::new();
    let bounded = show(event, &plain(), Detail::Bounded, &none).unwrap();
    assert!(bounded.truncated && !bounded.redacted && !bounded.deceptive_text && !bounded.in_doubt);
    let full = show(event, &plain(), Detail::Full, &none).unwrap();
    assert!(!full.truncated);
    assert_eq!(full.arguments["command"], long);
    assert!(show(event, &plain(), Detail::Full, &BTreeSet::from(["a".to_owned()])).unwrap().in_doubt);
    assert_eq!(show(&Log::line(&[("u", user("x"))]).events()[0], &plain(), Detail::Full, &none), None);
}

#[test]
fn the_full_view_lifts_names_but_never_live_secrets() {
    let redactor = Redactor::new(vec![("model".into(), "sk-live-12345".into())]);
    let record = ActionRecord {
        action: Some(json!({"password": "hunter2", "command": "echo sk-live-12345"})),
        claimed_summary: Some("prints sk-live-12345\u{202e}".into()),
        ..crate::testing::record("c")
    };
    let log = Log::line(&[("a", LogEventKind::Action(record))]);
    let none = BTreeSet::new();
    let bounded = show(&log.events()[0], &redactor, Detail::Bounded, &none).unwrap();
    assert_eq!(bounded.arguments, json!({"password": "«redacted»", "command": "echo «secret:model»"}));
    let full = show(&log.events()[0], &redactor, Detail::Full, &none).unwrap();
    assert_eq!(full.arguments, json!({"password": "hunter2", "command": "echo «secret:model»"}));
    assert!(full.holds_secret && full.redacted && full.deceptive_text);
    assert_eq!(full.claimed_summary.as_deref(), Some("prints «secret:model»⟨U+202E⟩"));
}

#[test]
fn an_offer_keeps_its_first_time_and_old_ones_are_forgotten() {
    let mut book = ApprovalBook::new(1000);
    let arguments = json!({});
    let offer = |book: &mut ApprovalBook, event_id: &str, now_ms| {
        let actions = vec![ActionBasis { event_id, tool: "t", arguments: &arguments }];
        book.offer(&ApprovalBasis { binding: BINDING, branch_head: None, actions }, now_ms)
    };
    let first = offer(&mut book, "a", 5);
    assert_eq!(first.expires_at_ms, 1005);
    assert_eq!(offer(&mut book, "a", 900).expires_at_ms, 1005);
    for number in 0..MAX_OFFERS {
        offer(&mut book, &format!("n{number}"), 10);
    }
    assert_eq!(book.find(&first.approval_id), None);
    assert_eq!(book.offers.len(), MAX_OFFERS);
    for number in 0..200 {
        let id = book.offers[0].approval_id.clone();
        book.note_shown_in_full(&id, &format!("token{number}"));
    }
    assert_eq!(book.offers[0].shown_in_full_to.len(), MAX_READERS);
    book.note_shown_in_full("unknown", "token");
}

#[test]
fn a_rejection_must_be_about_what_waits() {
    let log = Log::line(&[("a", action("c"))]);
    let branch = active_branch(log.events(), Some("a")).unwrap();
    let mut book = ApprovalBook::new(1);
    let known = book.offer(&ApprovalBasis::of(BINDING, &branch).unwrap(), 0).approval_id;
    let code = |named: &str, current: Option<&str>| check_reject(named, current, &book).unwrap_err().code;
    assert!(check_reject(&known, Some(&known), &book).is_ok());
    assert_eq!(code(&known, Some("other")), RefusalCode::ApprovalSuperseded);
    assert_eq!(code(&known, None), RefusalCode::NothingPending);
    assert_eq!(code("unknown", Some(&known)), RefusalCode::ApprovalNotFound);
    assert_eq!(code("unknown", None), RefusalCode::ApprovalNotFound);
    assert!(check_reject("seen now", Some("seen now"), &book).is_ok());
}

#[test]
fn doubt_is_a_sent_accept_without_an_answer() {
    let log = Log::line(&[("a", action("c1")), ("b", action("c2")), ("o", observation("a"))]);
    let branch = active_branch(log.events(), Some("o")).unwrap();
    let sent = BTreeSet::from(["a".to_owned(), "b".to_owned(), "z".to_owned()]);
    assert_eq!(in_doubt(&branch, &sent), ["b"]);
    assert!(in_doubt(&branch, &BTreeSet::new()).is_empty());
}

#[test]
fn an_accept_is_applied_when_all_of_it_was_seen_to_run() {
    let (ran, failed, rejected) = (Some(Answer::Observed), Some(Answer::Failed), Some(Answer::Rejected));
    let all = [None, ran, failed, rejected];
    for first in all {
        for second in all {
            let expected = match (first, second) {
                (None, _) | (_, None) => AcceptEvidence::Awaited,
                (Some(Answer::Observed), Some(Answer::Observed)) => AcceptEvidence::Ran,
                (Some(Answer::Rejected), Some(Answer::Rejected)) => AcceptEvidence::Rejected,
                (Some(_), Some(_)) => AcceptEvidence::Unclear,
            };
            assert_eq!(accept_evidence(&[first, second]), expected, "{first:?} {second:?}");
        }
    }
    assert_eq!(accept_evidence(&[failed]), AcceptEvidence::Unclear);
}
