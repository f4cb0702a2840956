//! Accepts connections, within bounds, until told to stop; then drains them within a deadline.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rules::peer::PeerRefusal;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};

use crate::backend::Backend;
use crate::limits::{BUFFER_MAX_BYTES, HEAD_MAX_BYTES, HEADERS_MAX, Limits};
use crate::peer::{PeerPolicy, PeerVerdict};
use crate::refusals::Refusals;
use crate::reply;
use crate::service::{Service, too_many};
use crate::stall::Stall;

/// Connections over the bound that are told so at once; further ones are closed without a word.
const TOLD_TOO_MANY: usize = 16;
/// How long a connection over the bound may take to be told so.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after an accept that failed, as it does while descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What became of the connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeReport {
    /// Connections that were served.
    pub served: u64,
    /// Connections that the peer check refused.
    pub refused_peers: u64,
    /// Connections over the bound.
    pub over_bound: u64,
    /// Connections cut off when the drain deadline was reached.
    pub cut_off: usize,
    /// Mutations still under way at the drain deadline; they were not cancelled.
    pub mutations_left: usize,
}

/// Serves until `shutdown` resolves, then stops accepting, ends streams and waiting polls, and lets requests finish for
/// `limits.drain`. The listener is dropped as soon as shutdown begins; removing its path is the caller's.
pub async fn serve<B, P, S>(listener: UnixListener, backend: B, peers: P, limits: Limits, shutdown: S) -> ServeReport
where
    B: Backend,
    P: PeerPolicy,
    S: Future<Output = ()> + Send,
{
    let (stop, stopping) = watch::channel(false);
    let service = Arc::new(Service {
        backend,
        refusals: Refusals::default(),
        polls: Arc::new(Semaphore::new(limits.waiting_polls)),
        mutations: Arc::new(Semaphore::new(limits.mutations)),
        limits,
        stopping,
    });
    let mut door = Door {
        places: Arc::new(Semaphore::new(service.limits.connections)),
        told: Arc::new(Semaphore::new(TOLD_TOO_MANY)),
        service,
        peers,
        connections: JoinSet::new(),
        report: ServeReport::default(),
    };
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = door.connections.join_next() => log_lost(ended),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => door.admit(stream),
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    stop.send_replace(true);
    door.drain().await
}

/// The accepting side's state.
struct Door<B, P> {
    service: Arc<Service<B>>,
    peers: P,
    places: Arc<Semaphore>,
    told: Arc<Semaphore>,
    connections: JoinSet<()>,
    report: ServeReport,
}

impl<B: Backend, P: PeerPolicy> Door<B, P> {
    /// INVARIANT I9: the peer is decided here, before a byte is read. A check that panics refuses.
    fn admit(&mut self, stream: UnixStream) {
        let verdict =
            std::panic::catch_unwind(AssertUnwindSafe(|| self.peers.check(stream.as_fd()))).unwrap_or_else(|_| {
                PeerVerdict::Refuse { reason: PeerRefusal::CheckFailed, detail: "the peer check failed".to_owned() }
            });
        match verdict {
            PeerVerdict::Admit => {}
            PeerVerdict::Refuse { reason, detail } => {
                self.service.refusals.note(reason, &detail);
                return;
            }
        }
        let service = Arc::clone(&self.service);
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            self.report.served += 1;
            self.connections.spawn(async move {
                converse(stream, service).await;
                drop(place);
            });
            return;
        }
        self.report.over_bound += 1;
        if let Ok(place) = Arc::clone(&self.told).try_acquire_owned() {
            self.connections.spawn(async move {
                tell_too_many(stream).await;
                drop(place);
            });
        }
    }

    async fn drain(mut self) -> ServeReport {
        let mutations = Arc::clone(&self.service.mutations);
        let all = u32::try_from(self.service.limits.mutations).unwrap_or(u32::MAX);
        let finished = tokio::time::timeout(self.service.limits.drain, async {
            while let Some(ended) = self.connections.join_next().await {
                log_lost(ended);
            }
            mutations.acquire_many(all).await.map(drop)
        })
        .await;
        self.report.refused_peers = self.service.refusals.count();
        if finished.is_err() {
            self.report.cut_off = self.connections.len();
            self.report.mutations_left = self.service.limits.mutations.saturating_sub(mutations.available_permits());
            self.connections.shutdown().await;
        }
        self.report
    }
}

async fn converse<B: Backend>(stream: UnixStream, service: Arc<Service<B>>) {
    let watched = Arc::clone(&service);
    let io = TokioIo::new(Stall::new(stream, service.limits.write_stall));
    let head_timeout = service.limits.head_timeout;
    let handler = service_fn(move |request: Request<Incoming>| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.serve(request).await) }
    });
    let connection = builder(head_timeout).serve_connection(io, handler);
    tokio::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = watched.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn tell_too_many(stream: UnixStream) {
    let handler = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(reply::problem(&too_many("connections"), None))
    });
    let io = TokioIo::new(Stall::new(stream, TELL_TIMEOUT));
    let connection = builder(TELL_TIMEOUT).keep_alive(false).serve_connection(io, handler);
    match tokio::time::timeout(TELL_TIMEOUT, connection).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection over the bound ended early"),
    }
}

/// The head timeout runs while a kept connection is idle as well, and so bounds that too.
fn builder(head_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_MAX_BYTES)
        .max_buf_size(BUFFER_MAX_BYTES);
    builder
}

fn log_lost(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a connection was lost to a panic");
    }
}
