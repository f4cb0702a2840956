//! Replies as the bodies that the API promises.

use serde::Serialize;
use serde::de::DeserializeOwned;
use testkit::daemon::Reply;

/// The body as a value of its type, which must hold every field of the body and no other.
///
/// # Panics
/// When the status is another one or the body is not of this type.
#[track_caller]
#[expect(clippy::panic, reason = "a reply outside the contract ends the test")]
pub fn typed<T: DeserializeOwned + Serialize>(reply: &Reply, statuses: &[u16]) -> T {
    assert!(statuses.contains(&reply.status), "expected one of {statuses:?}, got {}: {}", reply.status, reply.text);
    let value: T = match serde_json::from_value(reply.body.clone()) {
        Ok(value) => value,
        Err(error) => panic!("the reply is not of its type ({error}): {}", reply.text),
    };
    match serde_json::to_value(&value) {
        Ok(again) => assert_eq!(again, reply.body, "the reply has other fields than its type"),
        Err(error) => panic!("the reply cannot be written again: {error}"),
    }
    value
}
