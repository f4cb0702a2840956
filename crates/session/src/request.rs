//! The id of the request that work is done for: it stands in replies, in receipts and in every line that is logged meanwhile.

use rules::request_id::RequestId;
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

tokio::task_local! {
    static CURRENT: RequestId;
}

/// An id of our own, when a client sends none: random.
#[must_use]
pub fn fresh() -> RequestId {
    RequestId::of_number(uuid::Uuid::new_v4().as_u128())
}

/// Does the work for the request of this id.
pub async fn within<F: Future>(id: RequestId, work: F) -> F::Output {
    // At the highest level, so that lines of every level stand in it.
    let span = tracing::error_span!("request", request_id = id.as_str());
    CURRENT.scope(id, work).instrument(span).await
}

/// The request that the calling task works for, if it does for one.
#[must_use]
pub fn current() -> Option<RequestId> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Does the work on a task of its own, for the same request.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let work = work.instrument(Span::current());
    match current() {
        Some(id) => tokio::spawn(CURRENT.scope(id, work)),
        None => tokio::spawn(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_id_is_known_within_and_on_tasks_of_it_and_nowhere_else() {
        assert_eq!(current(), None);
        let id = fresh();
        assert_eq!(id.as_str().len(), 32);
        assert_ne!(fresh(), id);
        let (here, there, outside) = within(id.clone(), async {
            (current(), spawn(async { current() }).await.unwrap(), tokio::spawn(async { current() }).await.unwrap())
        })
        .await;
        assert_eq!((here, there, outside), (Some(id.clone()), Some(id), None));
        assert_eq!(spawn(async { current() }).await.unwrap(), None);
    }
}
