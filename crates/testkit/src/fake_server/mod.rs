//! A fake Agent Server: it keeps to what was observed of the real one, and misbehaves as a [`Plan`] says.
//!
//! It runs inside a test on a given listener ([`FakeServer`]), or as a process that a daemon launches in place of the
//! real one ([`install`]). Its model plays the script of the messages, as the scripted model does.

mod command;
mod conversation;
mod cut;
mod deform;
mod environment;
mod install;
mod journal;
mod latch;
mod launched;
mod log;
mod plan;
mod routes;
mod serve;
mod server;
mod stream;
mod tools;

pub use install::{install, install_distributions, requests_of_operation, routes_asked, set_plan};
pub use journal::{Entry, journal};
pub use latch::Executed;
pub use launched::main as launched_main;
pub use plan::{Announcement, ControlAnswer, Fault, Keys, Plan, RouteFault, StreamPlan};
pub use server::RecordedRequest;

pub(crate) use log::Log;

use latch::Latch;
use server::Server;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A fake server inside this process, on a thread of its own. It ends when it is stopped or dropped.
pub struct FakeServer {
    port: u16,
    server: Arc<Server>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeServer {
    /// Serves on a listener that the caller bound, with this session key.
    ///
    /// Its latch is in force unless the plan says otherwise: [`FakeServer::grant`] stands for the daemon.
    ///
    /// # Errors
    /// When no thread is to be had.
    pub fn start(listener: TcpListener, plan: Plan, session_key: &str) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let latch = Arc::new(Latch::new(plan.has_no_latch, None));
        let server = Arc::new(Server::new(plan, vec![session_key.to_owned()], latch, None, None));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&server);
        let thread = std::thread::Builder::new().name("fake-server".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve::serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        })?;
        Ok(Self { port, server, stop: Some(stop), thread: Some(thread) })
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the plan; faults are counted anew. Whether the latch is in force stays as it was at the start.
    pub fn set_plan(&self, plan: Plan) {
        self.server.set_plan(plan);
    }

    /// Lets these actions run, once.
    pub fn grant(&self, event_ids: &[String]) {
        self.server.latch.grant(event_ids);
    }

    /// The requests so far, oldest first; the oldest of many are forgotten.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }

    /// The actions that ran, a lone finish or think aside, oldest first.
    #[must_use]
    pub fn executed(&self) -> Vec<Executed> {
        self.server.latch.executed()
    }

    /// Ends the server, its connections and its runs, and waits for its thread.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.end();
    }
}
