//! The WebSocket of a conversation.

use super::stage::Stage;
use agent_contract::wire::is_transient;
use agent_contract::{CloseReason, EventStream, SessionId, StreamItem};
use rules::log::ExecutionStatus;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const FRAME_LIMIT: Duration = Duration::from_secs(20);

async fn next(stream: &mut EventStream) -> StreamItem {
    tokio::time::timeout(FRAME_LIMIT, stream.next()).await.expect("a frame in time")
}

pub(crate) async fn a_wrong_key_and_an_unknown_conversation_close_with_their_codes(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let mut stream = stage.stranger().open_stream(&talk.id).await.unwrap();
    assert_eq!(next(&mut stream).await, StreamItem::Closed(CloseReason::BadKey), "4001");
    let unknown = SessionId::parse(&uuid::Uuid::new_v4().to_string()).unwrap();
    let mut stream = stage.client.open_stream(&unknown).await.unwrap();
    assert_eq!(next(&mut stream).await, StreamItem::Closed(CloseReason::UnknownConversation), "4004");
}

pub(crate) async fn the_first_frame_is_a_whole_state(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let mut stream = stage.client.open_stream(&talk.id).await.unwrap();
    let StreamItem::Event(first) = next(&mut stream).await else { panic!("the stream closed") };
    assert_eq!(first["key"], "full_state", "{first}");
    assert!(is_transient(&first));
}

pub(crate) async fn what_is_transient_is_never_in_the_log(stage: Arc<Stage>) {
    let talk = stage.talk().await;
    let mut stream = stage.client.open_stream(&talk.id).await.unwrap();
    talk.turn("say: one two three four five", ExecutionStatus::Finished).await;
    let log = talk.log().await;
    let ids: Vec<&str> = log.iter().filter_map(|event| event["id"].as_str()).collect();
    let mut frames: Vec<Value> = Vec::new();
    // Everything that was appended was published; the last one tells that nothing more is to come.
    while frames.iter().filter(|frame| !is_transient(frame)).count() < ids.len() - 1 {
        let StreamItem::Event(frame) = next(&mut stream).await else { panic!("the stream closed: {frames:#?}") };
        frames.push(frame);
        if frames.last().unwrap()["id"].as_str() == ids.last().copied() {
            break;
        }
    }
    let (transient, appended): (Vec<&Value>, Vec<&Value>) = frames.iter().partition(|frame| is_transient(frame));
    assert!(transient.iter().any(|frame| frame["kind"] == "StreamingDeltaEvent"), "{frames:#?}");
    assert!(transient.iter().any(|frame| frame["key"] == "full_state"), "{frames:#?}");
    for frame in transient {
        assert!(frame["id"].as_str().is_none_or(|id| !ids.contains(&id)), "it was appended: {frame}");
    }
    let order: Vec<usize> = appended
        .iter()
        .map(|frame| ids.iter().position(|id| frame["id"] == **id).unwrap_or_else(|| panic!("not appended: {frame}")))
        .collect();
    assert!(order.is_sorted(), "the stream and the log differ in order: {order:?}");
}
