//! The rounds in which the sessions of a server that rest are looked at.

use std::sync::Arc;
use std::time::Duration;

use process::launch::MAX_LOG_ENDS;
use rules::resting::must_read;

use crate::frames::Link;
use crate::server::VerifiedServer;
use crate::session::Session;
use crate::shared::Shared;

/// Looks at the sessions of a server that rest until the server is gone. One request tells where the logs of many end;
/// those in which something may have happened, and those whose turn it is, are read, one after the other over one connection.
///
/// INVARIANT I1: what ran unasked in one of them goes unnoticed no longer than between two rounds.
pub(crate) async fn watch_resting(shared: Arc<Shared>, server: Arc<VerifiedServer>) {
    let look_every = Duration::from_secs(shared.settings.events.rest_read_s);
    let mut round = 0_u64;
    loop {
        tokio::select! {
            () = tokio::time::sleep(look_every) => {}
            () = server.gone() => return,
        }
        round = round.wrapping_add(1);
        let rests = |session: &Arc<Session>| session.follows(&server) && session.frames().link() == Link::Resting;
        let resting: Vec<Arc<Session>> = shared.sessions().into_iter().filter(rests).collect();
        for some in resting.chunks(MAX_LOG_ENDS) {
            look_at(some, round, &server).await;
        }
    }
}

async fn look_at(sessions: &[Arc<Session>], round: u64, server: &Arc<VerifiedServer>) {
    let ids: Vec<&str> = sessions.iter().map(|session| session.id().as_str()).collect();
    // Without an answer all are read.
    let told = server.owned().control().log_ends(&ids).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "where the logs of sessions at rest end was not told");
        Vec::new()
    });
    for (at, session) in sessions.iter().enumerate() {
        let (known, told) = (session.rests_at(), told.get(at).and_then(Option::as_deref));
        if !must_read(session.id().as_str(), round, known.as_deref(), told) {
            continue;
        }
        // One that cannot be read is read again at the next round; operations read for themselves.
        if let Err(refusal) = session.read_at_rest(server).await {
            tracing::debug!(session = session.id().as_str(), %refusal, "a session at rest could not be read");
        }
    }
}
