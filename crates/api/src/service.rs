//! From a parsed head to a reply: route, token, role, then the resource; one log line a request.

use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{Method, Request};
use hyper::body::Incoming;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::{Roles, authorize, authorize_owner};
use session::view::Caller;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;

use crate::attempt::Attempt;
use crate::backend::Backend;
use crate::limits::Limits;
use crate::query::Query;
use crate::refusals::Refusals;
use crate::reply::{self, Reply};
use crate::routes::{self, Access, Endpoint, NoRoute, PathParameters};
use crate::{request, resource};

/// What all connections share.
pub(crate) struct Service<B> {
    pub(crate) backend: B,
    pub(crate) limits: Limits,
    pub(crate) refusals: Refusals,
    pub(crate) polls: Arc<Semaphore>,
    pub(crate) mutations: Arc<Semaphore>,
    pub(crate) stopping: watch::Receiver<bool>,
}

/// A request that passed route, token and role.
pub(crate) struct Exchange<'a, B> {
    pub(crate) service: &'a Arc<Service<B>>,
    pub(crate) endpoint: Endpoint,
    pub(crate) caller: Caller,
    pub(crate) attempt: &'a Attempt,
    pub(crate) parameters: PathParameters,
    pub(crate) query: Query,
    pub(crate) parts: Parts,
    pub(crate) body: Incoming,
}

/// A reply and, for the log, who got it.
struct Outcome {
    reply: Reply,
    caller: String,
}

impl Outcome {
    fn anonymous(reply: Reply) -> Self {
        Self { reply, caller: "-".to_owned() }
    }
}

/// Ends a task when the connection that waits for it is gone.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<B: Backend> Service<B> {
    /// Answers one request. Never fails, and never takes the connection down with a panic.
    pub(crate) async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (id, refusal) = match request::id(request.headers()) {
            Ok(id) => (id, None),
            Err(refusal) => (session::request::fresh(), Some(refusal)),
        };
        session::request::within(id, self.serve_within(request, refusal)).await
    }

    async fn serve_within(self: Arc<Self>, request: Request<Incoming>, refusal: Option<Refusal>) -> Reply {
        let started = Instant::now();
        let method = log_name(request.method());
        let found = refusal.map_or_else(|| find(&request), |refusal| Err(Box::new(reply::problem(&refusal, None))));
        let (template, outcome) = match found {
            Ok((endpoint, parameters)) => (endpoint.template(), self.isolate(endpoint, parameters, request).await),
            Err(reply) => ("unmatched", Outcome::anonymous(*reply)),
        };
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let status = outcome.reply.status().as_u16();
        tracing::info!(method, route = template, status, ms, caller = outcome.caller, "request");
        outcome.reply
    }

    /// Runs the request on a task of its own: a panic becomes a 500, and a client that hangs up cancels reads only.
    async fn isolate(
        self: Arc<Self>,
        endpoint: Endpoint,
        parameters: PathParameters,
        request: Request<Incoming>,
    ) -> Outcome {
        let permit = if endpoint.mutates() {
            match Arc::clone(&self.mutations).try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => return Outcome::anonymous(reply::problem(&too_many("mutations under way"), None)),
            }
        } else {
            None
        };
        let is_read = permit.is_none();
        let task = session::request::spawn(async move {
            let outcome = self.respond(endpoint, parameters, request).await;
            drop(permit);
            outcome
        });
        let guard = is_read.then(|| AbortOnDrop(task.abort_handle()));
        let joined = task.await;
        drop(guard);
        match joined {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(route = endpoint.template(), panicked = error.is_panic(), "a request handler was lost");
                Outcome::anonymous(reply::problem(&reply::internal(), None))
            }
        }
    }

    async fn respond(
        self: Arc<Self>,
        endpoint: Endpoint,
        parameters: PathParameters,
        request: Request<Incoming>,
    ) -> Outcome {
        let (parts, body) = request.into_parts();
        let caller = match self.identify(endpoint, &parts) {
            Ok(caller) => caller,
            Err(refusal) => return Outcome::anonymous(reply::problem(&refusal, None)),
        };
        let name = caller.name.clone();
        let session_id = parameters.session_id.clone();
        let attempt = Attempt::default();
        let result = match self.admit(endpoint, &caller, &parts) {
            Ok(query) => {
                let exchange =
                    Exchange { service: &self, endpoint, caller, attempt: &attempt, parameters, query, parts, body };
                resource::respond(exchange).await
            }
            Err(refusal) => Err(refusal),
        };
        let reply = match result {
            Ok(reply) => reply,
            Err(refusal) => {
                if endpoint.mutates() {
                    let refused = attempt.refused(endpoint, &name, session_id.as_deref(), refusal.code);
                    self.backend.note_refusal(refused).await;
                }
                // After a conflict the client decides again, on the generation that holds now.
                let helps = refusal.code.http_status() == 409;
                let generation = session_id.filter(|_| helps).and_then(|id| self.backend.generation(&id));
                reply::problem(&refusal, generation)
            }
        };
        Outcome { reply, caller: name }
    }

    fn identify(&self, endpoint: Endpoint, parts: &Parts) -> Result<Caller, Refusal> {
        match endpoint.access() {
            Access::Open => Ok(Caller { name: "-".to_owned(), roles: Roles::NONE }),
            Access::Role(_) | Access::Owner | Access::ByOperation => {
                self.authenticate(request::bearer(&parts.headers).unwrap_or_default())
            }
        }
    }

    /// Who holds this token; nothing is said about why it is not taken.
    pub(crate) fn authenticate(&self, bearer: &str) -> Result<Caller, Refusal> {
        let known = if bearer.is_empty() { None } else { self.backend.authenticate(bearer) };
        known.ok_or_else(unauthenticated)
    }

    fn admit(&self, endpoint: Endpoint, caller: &Caller, parts: &Parts) -> Result<Query, Refusal> {
        match endpoint.access() {
            Access::Open | Access::ByOperation => {}
            Access::Role(role) => authorize(caller.roles, role)?,
            Access::Owner => authorize_owner(caller.roles)?,
        }
        if endpoint.method() == Method::POST {
            request::require_json(&parts.headers)?;
        } else {
            request::require_no_body(&parts.headers)?;
        }
        Query::parse(parts.uri.query(), endpoint.query_names())
    }

    /// Resolves once this token is not taken any more.
    pub(crate) async fn revoked(&self, bearer: &str) {
        let mut changes = self.backend.token_changes();
        while self.backend.authenticate(bearer).is_some() {
            if changes.changed().await.is_err() {
                // Nothing will change any more.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Resolves once shutdown has begun.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.clone();
        // An error says that the sender is gone, which is the end as well.
        drop(stopping.wait_for(|stop| *stop).await);
    }

    /// Whether shutdown has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// A place among the waiting polls.
    pub(crate) fn waiting_place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.polls)
            .try_acquire_owned()
            .map_err(|_| Refusal::new(RefusalCode::TooManyWaiting, "too many polls wait: try again shortly"))
    }
}

/// Nothing is said about why a token is not taken.
pub(crate) fn unauthenticated() -> Refusal {
    Refusal::new(RefusalCode::Unauthenticated, "a valid bearer token is required")
}

/// One more than the bound.
pub(crate) fn too_many(what: &str) -> Refusal {
    Refusal::new(RefusalCode::TooManyConnections, format!("too many {what}: try again shortly"))
}

fn find(request: &Request<Incoming>) -> Result<(Endpoint, PathParameters), Box<Reply>> {
    let segments = request::segments(request.uri()).map_err(|refusal| Box::new(reply::problem(&refusal, None)))?;
    routes::find(request.method(), &segments).map_err(|no_route| {
        Box::new(match no_route {
            NoRoute::Path => reply::problem(&Refusal::new(RefusalCode::NotFound, "there is no such path"), None),
            NoRoute::Method(endpoints) => reply::method_not_allowed(&routes::allow(endpoints)),
        })
    })
}

/// A method as the log shows it; a client's own words stay out of the log.
fn log_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}
