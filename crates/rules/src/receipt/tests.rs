use super::*;
use serde_json::json;

#[test]
fn a_fingerprint_counts_session_operation_and_input() {
    let input = json!({"text": "hi", "on_pending": "refuse"});
    let reordered = json!({"on_pending": "refuse", "text": "hi"});
    let base = fingerprint(Some("s"), OperationId::PromptSend, &input);
    assert_eq!(base, fingerprint(Some("s"), OperationId::PromptSend, &reordered));
    for other in [
        fingerprint(None, OperationId::PromptSend, &input),
        fingerprint(Some("t"), OperationId::PromptSend, &input),
        fingerprint(Some("s"), OperationId::Resume, &input),
        fingerprint(Some("s"), OperationId::PromptSend, &json!({"text": "ho", "on_pending": "refuse"})),
    ] {
        assert_ne!(base, other);
    }
    let text = r#"{"input":{"on_pending":"refuse","text":"hi"},"operation_id":"session.prompt.send","session_id":"s"}"#;
    assert_eq!(base, jcs::sha256_hex(text.as_bytes()));
}

#[test]
fn only_legal_moves() {
    use ReceiptState::{Applied, InFlight, OutcomeUnknown, Queued, Rejected};
    let legal =
        [(Queued, InFlight), (Queued, Rejected), (InFlight, Applied), (InFlight, Rejected), (InFlight, OutcomeUnknown)];
    for from in ReceiptState::ALL {
        assert_eq!(ReceiptState::parse(from.as_str()), Some(from));
        assert_eq!(serde_json::to_value(from).unwrap(), from.as_str());
        for to in ReceiptState::ALL {
            assert_eq!(from.transition(to).is_ok(), legal.contains(&(from, to)), "{from:?} {to:?}");
            assert!(!from.is_final() || from.transition(to).is_err());
        }
    }
}

#[test]
fn a_step_is_sent_at_most_once() {
    use StepState::{Done, Failed, Intent, NotSent, Unknown};
    let legal =
        [(Intent, Done), (Intent, Failed), (Intent, Unknown), (Intent, NotSent), (Unknown, Done), (Unknown, Failed)];
    for from in StepState::ALL {
        assert_eq!(StepState::parse(from.as_str()), Some(from));
        assert_eq!(serde_json::to_value(from).unwrap(), from.as_str());
        for to in StepState::ALL {
            assert_eq!(from.transition(to).is_ok(), legal.contains(&(from, to)), "{from:?} {to:?}");
        }
    }
}

#[test]
fn what_will_not_go_on_is_never_sent_again() {
    use StepState::{Done, Failed, Intent, NotSent, Unknown};
    assert_eq!(unfinished(ReceiptState::Queued, &[]), Unfinished::Deliver);
    for done in [ReceiptState::Applied, ReceiptState::Rejected, ReceiptState::OutcomeUnknown] {
        assert_eq!(unfinished(done, &[("reject", Intent)]), Unfinished::Nothing);
    }
    let in_flight = |steps: &[(&str, StepState)]| unfinished(ReceiptState::InFlight, steps);
    let stopped = |done: &[&str]| Unfinished::Stopped { done: done.iter().map(|name| (*name).to_owned()).collect() };
    let seek =
        |steps: &[&str]| Unfinished::SeekEvidence { steps: steps.iter().map(|name| (*name).to_owned()).collect() };
    assert_eq!(in_flight(&[]), stopped(&[]));
    assert_eq!(in_flight(&[("reject", Intent)]), seek(&["reject"]));
    assert_eq!(in_flight(&[("reject", Done)]), stopped(&["reject"]));
    assert_eq!(in_flight(&[("reject", Failed), ("send_message", NotSent)]), stopped(&[]));
    assert_eq!(in_flight(&[("reject", Done), ("send_message", Unknown)]), seek(&["send_message"]));
}
