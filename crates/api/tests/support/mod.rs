//! A fake controller, the real server around it on a temporary socket, and a client that sends any bytes.

mod canned;
mod fake;
mod wire;

use std::time::Duration;

use api::{Limits, PeerVerdict, ServeReport};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use fake::Fake;
pub(crate) use wire::{Connection, Reply, Request};

/// The one session that the fake knows.
pub(crate) const SESSION: &str = "00000000-0000-4000-8000-000000000001";
/// Generation it is at.
pub(crate) const GENERATION: u64 = 7;
/// The batch that waits.
pub(crate) const APPROVAL: &str = "00000000000000000000000000000000000000000000000000000000000000aa";
pub(crate) const OWNER: &str = "owner-token";

/// The real server around a fake controller.
pub(crate) struct Running {
    pub(crate) fake: Fake,
    socket: std::path::PathBuf,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<ServeReport>,
    _directory: tempfile::TempDir,
}

impl Running {
    pub(crate) fn start(limits: Limits) -> Self {
        Self::start_with(limits, |_: std::os::fd::BorrowedFd<'_>| PeerVerdict::Admit)
    }

    pub(crate) fn start_with(limits: Limits, peers: impl api::PeerPolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let fake = Fake::default();
        let backend = fake.clone();
        let task = tokio::spawn(api::serve(listener, backend, peers, limits, async move {
            drop(stopped.await);
        }));
        Self { fake, socket, stop: Some(stop), task, _directory: directory }
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection { stream: UnixStream::connect(&self.socket).await.unwrap(), buffer: Vec::new() }
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Reply {
        let mut connection = self.connect().await;
        connection.write(&request.bytes()).await;
        connection.reply(request.method == "HEAD").await.expect("a reply")
    }

    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn stop(mut self) -> ServeReport {
        self.begin_stop();
        tokio::time::timeout(Duration::from_secs(20), self.task).await.expect("stops in time").unwrap()
    }
}
