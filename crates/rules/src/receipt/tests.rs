use super::*;
use serde_json::json;

fn receipt(state: ReceiptState) -> Receipt {
    let about = NewReceipt {
        client_action_id: "c1",
        session_id: Some("s"),
        operation_id: OperationId::PromptSend,
        input: &json!({"text": "hi"}),
        now: "t0",
    };
    Receipt::new(about, state)
}

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
fn a_receipt_answers_the_same_request_only() {
    let receipt = receipt(ReceiptState::Queued);
    assert!(receipt.check_same(&fingerprint(Some("s"), OperationId::PromptSend, &json!({"text": "hi"}))).is_ok());
    let refusal = receipt.check_same("other").unwrap_err();
    assert_eq!((refusal.code, refusal.code.http_status()), (RefusalCode::ClientActionIdReused, 422));
}

#[test]
fn a_receipt_records_its_life() {
    let mut receipt = receipt(ReceiptState::Queued);
    assert!(receipt.begin_step("send_message", "t1").is_err());
    receipt.advance(ReceiptState::InFlight, None, "t1").unwrap();
    let first = receipt.begin_step("reject", "t2").unwrap();
    assert!(receipt.begin_step("send_message", "t2").is_err());
    receipt.end_step(first, StepState::Done, None, "t3").unwrap();
    assert!(receipt.end_step(first, StepState::Done, None, "t3").is_err());
    assert!(receipt.end_step(9, StepState::Done, None, "t3").is_err());
    let second = receipt.begin_step("send_message", "t4").unwrap();
    receipt.end_step(second, StepState::Failed, Some(RefusalCode::UpstreamRefused), "t5").unwrap();
    let why = Refusal::new(RefusalCode::UpstreamRefused, "the server answered 500");
    receipt.advance(ReceiptState::Rejected, Some(why), "t6").unwrap();
    assert_eq!((receipt.code, receipt.updated_at.as_str()), (Some(RefusalCode::UpstreamRefused), "t6"));
    assert!(receipt.advance(ReceiptState::Applied, None, "t7").is_err());
    let stored = serde_json::to_string(&receipt).unwrap();
    assert_eq!(serde_json::from_str::<Receipt>(&stored).unwrap(), receipt);
}

#[test]
fn after_a_crash_nothing_is_sent_again() {
    assert_eq!(receipt(ReceiptState::Queued).after_crash(), AfterCrash::Deliver);
    for done in [ReceiptState::Applied, ReceiptState::Rejected, ReceiptState::OutcomeUnknown] {
        assert_eq!(receipt(done).after_crash(), AfterCrash::Nothing);
    }
    let mut running = receipt(ReceiptState::InFlight);
    assert_eq!(running.after_crash(), AfterCrash::Stopped { done: vec![] });
    let step = running.begin_step("reject", "t").unwrap();
    assert_eq!(running.after_crash(), AfterCrash::SeekEvidence { steps: vec!["reject".into()] });
    running.end_step(step, StepState::Done, None, "t").unwrap();
    assert_eq!(running.after_crash(), AfterCrash::Stopped { done: vec!["reject".into()] });
    let step = running.begin_step("send_message", "t").unwrap();
    running.end_step(step, StepState::Unknown, Some(RefusalCode::UpstreamTimeout), "t").unwrap();
    assert_eq!(running.after_crash(), AfterCrash::SeekEvidence { steps: vec!["send_message".into()] });
}
