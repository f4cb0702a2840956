//! Every request goes through here: it is built from the contract, carries the key, is sent at most once unless it is a
//! read, and is answered within its time and size or not at all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use host::Secret;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use rules::passage::{Kind, Passage, Side, Watch};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::connection::{Answer, Connection};
use crate::reason;
use crate::route::{Chosen, PathValue, Route, RouteName};
use crate::{Contract, ContractError};

/// The header that carries the session key.
const KEY_HEADER: &str = "x-session-api-key";
/// Most ordinary requests at once; interrupts and rejections are not counted.
const MAX_ORDINARY_REQUESTS: usize = 32;
/// An idle connection older than this is not used again: the server closes its own after five seconds.
const MAX_IDLE: Duration = Duration::from_secs(2);
/// The same for a change, which is not asked again when the connection proves dead: it must have served just now.
const MAX_IDLE_FOR_CHANGES: Duration = Duration::from_secs(1);

/// Which routes a transport may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Sessions,
    SetUp,
}

/// Which key a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The key of this server start.
    Right,
    /// No key.
    Missing,
    /// A key that was never given out.
    Wrong,
}

/// One request, not yet built.
pub(crate) struct Call<'a> {
    pub(crate) route: RouteName,
    pub(crate) path: PathValue<'a>,
    pub(crate) query: Chosen,
    pub(crate) body: Chosen,
    pub(crate) key: KeyKind,
    /// Whether a grant was consumed for it.
    pub(crate) granted: bool,
    /// Secrets in the body, kept out of what an error says.
    pub(crate) secrets: Vec<&'a Secret>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(route: RouteName, path: PathValue<'a>) -> Self {
        Self {
            route,
            path,
            query: Vec::new(),
            body: Vec::new(),
            key: KeyKind::Right,
            granted: false,
            secrets: Vec::new(),
        }
    }

    pub(crate) fn with_body(mut self, body: Chosen) -> Self {
        self.body = body;
        self
    }
}

/// A success: its status and its JSON.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) value: Value,
}

pub(crate) struct Transport {
    contract: &'static Contract,
    port: u16,
    key: Arc<Secret>,
    scope: Scope,
    ordinary: Semaphore,
    idle: Mutex<Option<(Instant, Connection)>>,
    sent: Vec<AtomicU64>,
    watch: Watch,
}

impl Transport {
    pub(crate) fn new(contract: &'static Contract, port: u16, key: Arc<Secret>, scope: Scope, watch: Watch) -> Self {
        Self {
            contract,
            port,
            key,
            scope,
            ordinary: Semaphore::new(MAX_ORDINARY_REQUESTS),
            idle: Mutex::new(None),
            sent: RouteName::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            watch,
        }
    }

    pub(crate) fn contract(&self) -> &'static Contract {
        self.contract
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn key(&self) -> &Secret {
        &self.key
    }

    /// How many requests have left, by route; routes never used are left out.
    pub(crate) fn requests_sent(&self) -> BTreeMap<&'static str, u64> {
        RouteName::ALL
            .iter()
            .zip(&self.sent)
            .map(|(name, count)| (name.as_str(), count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    pub(crate) fn count(&self, route: RouteName) {
        if let Some(count) = self.sent.get(route as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One that was counted did not leave after all.
    fn uncount(&self, route: RouteName) {
        if let Some(count) = self.sent.get(route as usize) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The route, when this transport may use it.
    pub(crate) fn route(&self, name: RouteName, granted: bool) -> Result<&'static Route, ContractError> {
        let outside = |what: &str| ContractError::OutsideContract { route: name, what: what.to_owned() };
        let route = self.contract.route(name).ok_or_else(|| outside("it is not in the contract"))?;
        if route.is_set_up() != (self.scope == Scope::SetUp) {
            return Err(outside("it belongs to the other client"));
        }
        if route.causes_steps() != granted {
            return Err(outside("a step needs a grant, and nothing else takes one"));
        }
        Ok(route)
    }

    /// One call that must succeed.
    pub(crate) async fn call(&self, call: Call<'_>) -> Result<Reply, ContractError> {
        let name = call.route;
        let route = self.route(name, call.granted)?;
        let answer = self.answer(route, &call).await?;
        if !route.success.contains(&answer.status) {
            let secrets = call.secrets.iter().copied().chain([&*self.key]);
            let detail = if answer.is_json { reason::of(&answer.body, secrets) } else { None };
            return Err(ContractError::Status { route: name, status: answer.status, detail });
        }
        let value = serde_json::from_slice(&answer.body)
            .map_err(|error| ContractError::malformed(name, format!("it is not JSON ({error})")))?;
        Ok(Reply { status: answer.status, value })
    }

    /// One call whose status is the finding, whatever it is.
    pub(crate) async fn probe(&self, call: Call<'_>) -> Result<u16, ContractError> {
        let route = self.route(call.route, call.granted)?;
        Ok(self.answer(route, &call).await?.status)
    }

    /// Passes the point on that side of a call.
    ///
    /// # Errors
    /// When its connection is lost there.
    pub(crate) fn pass(&self, side: Side, route: RouteName) -> Result<(), ContractError> {
        let detail = "it was cut off".to_owned();
        match (self.watch.pass(side, Kind::Call, route.as_str()), side) {
            (Passage::GoOn, _) => Ok(()),
            (Passage::Cut, Side::Before) => Err(ContractError::Unreachable { route, detail }),
            (Passage::Cut, Side::After) => Err(ContractError::ConnectionLost { route, detail }),
        }
    }

    async fn answer(&self, route: &'static Route, call: &Call<'_>) -> Result<Answer, ContractError> {
        let target = route.target(call.path, &call.query)?;
        let body = route.body(&call.body)?.map(|value| Bytes::from(value.to_string()));
        self.pass(Side::Before, route.name)?;
        let sent = AtomicBool::new(false);
        let limit = self.contract.timeout(route.timeout);
        let exchange = self.exchange(route, call, &target, body, &sent);
        let answer = tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_elapsed| {
            Err(ContractError::Timeout {
                route: route.name,
                limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
                sent: sent.load(Ordering::SeqCst),
            })
        });
        self.pass(Side::After, route.name)?;
        answer
    }

    async fn exchange(
        &self,
        route: &'static Route,
        call: &Call<'_>,
        target: &str,
        body: Option<Bytes>,
        sent: &AtomicBool,
    ) -> Result<Answer, ContractError> {
        let urgent = matches!(route.name, RouteName::Interrupt | RouteName::Reject);
        let _permit = if urgent { None } else { self.ordinary.acquire().await.ok() };
        let send = async |connection: Connection| {
            let request = self.request(route, call, target, body.clone())?;
            sent.store(true, Ordering::SeqCst);
            self.count(route.name);
            let outcome = connection.exchange(route.name, request, &route.success, route.max_reply_bytes).await;
            if let Err(ContractError::Unreachable { .. }) = &outcome {
                self.uncount(route.name);
            }
            outcome
        };
        let kept = match (urgent, route.is_read()) {
            (true, _) => None,
            (false, true) => self.take_idle(MAX_IDLE),
            (false, false) => self.take_idle(MAX_IDLE_FOR_CHANGES),
        };
        if let Some(connection) = kept {
            match send(connection).await {
                // Found closed before anything was written: it was not sent.
                Err(ContractError::Unreachable { .. }) => {}
                // The server may have closed it at any moment: a read, and only a read, is asked once more.
                Err(ContractError::ConnectionLost { .. }) if route.is_read() => {}
                outcome => return outcome.map(|(answer, connection)| self.keep(answer, connection)),
            }
        }
        let connection = Connection::open(route.name, self.port).await?;
        let (answer, connection) = send(connection).await?;
        Ok(if urgent { answer } else { self.keep(answer, connection) })
    }

    fn request(
        &self,
        route: &Route,
        call: &Call<'_>,
        target: &str,
        body: Option<Bytes>,
    ) -> Result<Request<Full<Bytes>>, ContractError> {
        let outside = |what: &str| ContractError::OutsideContract { route: route.name, what: what.to_owned() };
        let uri = target.parse::<Uri>().map_err(|_error| outside("its target is not a path"))?;
        let mut request = Request::builder()
            .method(route.method.clone())
            .uri(uri)
            .header(header::HOST, format!("127.0.0.1:{}", self.port))
            .header(header::ACCEPT, "application/json")
            .header(header::ACCEPT_ENCODING, "identity");
        if route.sends_key {
            match call.key {
                KeyKind::Right => request = request.header(KEY_HEADER, self.key_header(route.name)?),
                KeyKind::Wrong => request = request.header(KEY_HEADER, "gatepost-probe-not-a-key"),
                KeyKind::Missing => {}
            }
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.unwrap_or_default())).map_err(|_error| outside("it cannot be built"))
    }

    fn key_header(&self, route: RouteName) -> Result<HeaderValue, ContractError> {
        let mut value = HeaderValue::from_str(self.key.expose()).map_err(|_error| ContractError::OutsideContract {
            route,
            what: "the session key cannot stand in a header".to_owned(),
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The idle connection, which nothing else uses from then on, when it answered within this time and is open.
    fn take_idle(&self, within: Duration) -> Option<Connection> {
        let (since, connection) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        (since.elapsed() < within && connection.is_usable()).then_some(connection)
    }

    /// The idle connection as if it had answered that long before it did.
    #[cfg(test)]
    pub(crate) fn age_idle(&self, by: Duration) {
        if let Some((since, _)) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *since = since.checked_sub(by).unwrap();
        }
    }

    fn keep(&self, answer: Answer, connection: Option<Connection>) -> Answer {
        if let Some(connection) = connection {
            *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), connection));
        }
        answer
    }
}
