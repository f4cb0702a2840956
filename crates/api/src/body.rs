//! Reads a request body within its bounds.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use rules::refusal::{Refusal, RefusalCode};

/// The whole body, or why it was not taken.
pub(crate) async fn read(body: Incoming, max_bytes: usize, timeout: Duration) -> Result<Bytes, Refusal> {
    let too_large =
        || Refusal::new(RefusalCode::BodyTooLarge, format!("the body is larger than {max_bytes} bytes: send less"));
    if body.size_hint().lower() > u64::try_from(max_bytes).unwrap_or(u64::MAX) {
        return Err(too_large());
    }
    match tokio::time::timeout(timeout, Limited::new(body, max_bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Refusal::new(RefusalCode::BadRequest, "the body broke off")),
        Err(_) => Err(Refusal::new(
            RefusalCode::RequestTimeout,
            format!("the body did not arrive within {} s", timeout.as_secs()),
        )),
    }
}
