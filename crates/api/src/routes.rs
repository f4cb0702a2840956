//! The route table: every path and method that exists, and who may use it.

use http::Method;
use rules::role::Role;

/// A method on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// The daemon answers.
    Healthz,
    /// The daemon can take a session.
    Readyz,
    /// The description of this surface.
    OpenApi,
    /// One look at everything.
    Status,
    /// Availability and set-up actions.
    Probe,
    /// Reviewed operations.
    Catalog,
    /// All sessions.
    SessionList,
    /// A new session.
    SessionCreate,
    /// A conversation that the server already has.
    SessionAttach,
    /// The snapshot.
    SessionShow,
    /// Ends a session.
    SessionClose,
    /// What waits for a decision.
    ApprovalList,
    /// One batch.
    ApprovalShow,
    /// An operation on a session.
    SessionAct,
    /// An operation without a session.
    ProviderAct,
    /// A receipt again.
    ReceiptShow,
    /// Events, as a page or a stream.
    Events,
    /// The signed word on canaries.
    Attestation,
    /// Links of the chain of receipts.
    Audit,
    /// A walk along the whole chain.
    AuditVerification,
    /// All tokens.
    TokenList,
    /// A new token.
    TokenCreate,
    /// Ends a token.
    TokenRevoke,
}

/// What a caller must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing, not even a token.
    Open,
    /// A token with this role.
    Role(Role),
    /// The owner's token.
    Owner,
    /// A token; the role is that of the operation in the body.
    ByOperation,
}

/// Identifiers taken from the path, unchecked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathParameters {
    /// `{session_id}`.
    pub session_id: Option<String>,
    /// `{approval_id}`.
    pub approval_id: Option<String>,
    /// `{client_action_id}`.
    pub client_action_id: Option<String>,
    /// `{token_name}`.
    pub token_name: Option<String>,
}

/// Why no endpoint was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoute {
    /// No such path.
    Path,
    /// The path exists with other methods only.
    Method(&'static [Endpoint]),
}

impl Endpoint {
    /// Every endpoint, in the order of the description.
    pub const ALL: [Self; 23] = [
        Self::Healthz,
        Self::Readyz,
        Self::OpenApi,
        Self::Status,
        Self::Probe,
        Self::Catalog,
        Self::SessionList,
        Self::SessionCreate,
        Self::SessionAttach,
        Self::SessionShow,
        Self::SessionClose,
        Self::ApprovalList,
        Self::ApprovalShow,
        Self::SessionAct,
        Self::ProviderAct,
        Self::ReceiptShow,
        Self::Events,
        Self::Attestation,
        Self::Audit,
        Self::AuditVerification,
        Self::TokenList,
        Self::TokenCreate,
        Self::TokenRevoke,
    ];

    /// Its method.
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::Healthz
            | Self::Readyz
            | Self::OpenApi
            | Self::Status
            | Self::Probe
            | Self::Catalog
            | Self::SessionList
            | Self::SessionShow
            | Self::ApprovalList
            | Self::ApprovalShow
            | Self::ReceiptShow
            | Self::Events
            | Self::Attestation
            | Self::Audit
            | Self::AuditVerification
            | Self::TokenList => Method::GET,
            Self::SessionCreate | Self::SessionAttach | Self::SessionAct | Self::ProviderAct | Self::TokenCreate => {
                Method::POST
            }
            Self::SessionClose | Self::TokenRevoke => Method::DELETE,
        }
    }

    /// Its path, with parameters in braces.
    #[must_use]
    pub const fn template(self) -> &'static str {
        match self {
            Self::Healthz => "/v1/healthz",
            Self::Readyz => "/v1/readyz",
            Self::OpenApi => "/v1/openapi.json",
            Self::Status => "/v1/status",
            Self::Probe => "/v1/probe",
            Self::Catalog => "/v1/catalog",
            Self::SessionList | Self::SessionCreate => "/v1/sessions",
            Self::SessionAttach => "/v1/sessions/attach",
            Self::SessionShow | Self::SessionClose => "/v1/sessions/{session_id}",
            Self::ApprovalList => "/v1/sessions/{session_id}/approvals",
            Self::ApprovalShow => "/v1/sessions/{session_id}/approvals/{approval_id}",
            Self::SessionAct => "/v1/sessions/{session_id}/actions",
            Self::ProviderAct => "/v1/actions",
            Self::ReceiptShow => "/v1/actions/{client_action_id}",
            Self::Events => "/v1/sessions/{session_id}/events",
            Self::Attestation => "/v1/sessions/{session_id}/attestation",
            Self::Audit => "/v1/audit",
            Self::AuditVerification => "/v1/audit/verification",
            Self::TokenList | Self::TokenCreate => "/v1/tokens",
            Self::TokenRevoke => "/v1/tokens/{token_name}",
        }
    }

    /// Who may use it. `ApprovalShow` asks for the approver besides when the query says `full=true`.
    #[must_use]
    pub const fn access(self) -> Access {
        match self {
            Self::Healthz | Self::Readyz | Self::OpenApi => Access::Open,
            Self::Status
            | Self::Probe
            | Self::Catalog
            | Self::SessionList
            | Self::SessionShow
            | Self::ApprovalList
            | Self::ApprovalShow
            | Self::ReceiptShow
            | Self::Events
            | Self::Attestation
            | Self::Audit
            | Self::AuditVerification => Access::Role(Role::Observer),
            Self::SessionCreate | Self::SessionAttach | Self::SessionClose => Access::Role(Role::Operator),
            Self::SessionAct | Self::ProviderAct => Access::ByOperation,
            Self::TokenList | Self::TokenCreate | Self::TokenRevoke => Access::Owner,
        }
    }

    /// Whether it can change something, so that a client that hangs up must not cancel it.
    #[must_use]
    pub fn mutates(self) -> bool {
        self.method() != Method::GET
    }

    /// Names its query may hold.
    #[must_use]
    pub const fn query_names(self) -> &'static [&'static str] {
        match self {
            Self::ApprovalShow => &["full"],
            Self::SessionClose => &["delete"],
            Self::Events => &["after", "limit", "wait_ms"],
            Self::Audit => &["after", "limit"],
            Self::Healthz
            | Self::Readyz
            | Self::OpenApi
            | Self::Status
            | Self::Probe
            | Self::Catalog
            | Self::SessionList
            | Self::SessionCreate
            | Self::SessionAttach
            | Self::SessionShow
            | Self::ApprovalList
            | Self::SessionAct
            | Self::ProviderAct
            | Self::ReceiptShow
            | Self::Attestation
            | Self::AuditVerification
            | Self::TokenList
            | Self::TokenCreate
            | Self::TokenRevoke => &[],
        }
    }
}

/// Finds the endpoint of a method and the segments of a path.
///
/// # Errors
/// When the path is unknown, or known with other methods only.
pub fn find(method: &Method, segments: &[&str]) -> Result<(Endpoint, PathParameters), NoRoute> {
    let (endpoints, parameters) = at_path(segments).ok_or(NoRoute::Path)?;
    match endpoints.iter().find(|endpoint| endpoint.method() == *method) {
        Some(endpoint) => Ok((*endpoint, parameters)),
        None => Err(NoRoute::Method(endpoints)),
    }
}

/// The methods of a path, for `Allow`.
#[must_use]
pub fn allow(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(|endpoint| endpoint.method().to_string()).collect::<Vec<_>>().join(", ")
}

fn at_path(segments: &[&str]) -> Option<(&'static [Endpoint], PathParameters)> {
    use Endpoint as E;
    let none = PathParameters::default();
    let session = |id: &&str| PathParameters { session_id: Some((*id).to_owned()), ..PathParameters::default() };
    Some(match segments {
        ["v1", "healthz"] => (&[E::Healthz], none),
        ["v1", "readyz"] => (&[E::Readyz], none),
        ["v1", "openapi.json"] => (&[E::OpenApi], none),
        ["v1", "status"] => (&[E::Status], none),
        ["v1", "probe"] => (&[E::Probe], none),
        ["v1", "catalog"] => (&[E::Catalog], none),
        ["v1", "audit"] => (&[E::Audit], none),
        ["v1", "audit", "verification"] => (&[E::AuditVerification], none),
        ["v1", "tokens"] => (&[E::TokenList, E::TokenCreate], none),
        ["v1", "tokens", name] => (&[E::TokenRevoke], PathParameters { token_name: Some((*name).to_owned()), ..none }),
        ["v1", "actions"] => (&[E::ProviderAct], none),
        ["v1", "actions", id] => {
            (&[E::ReceiptShow], PathParameters { client_action_id: Some((*id).to_owned()), ..none })
        }
        ["v1", "sessions"] => (&[E::SessionList, E::SessionCreate], none),
        ["v1", "sessions", "attach"] => (&[E::SessionAttach], none),
        ["v1", "sessions", id] => (&[E::SessionShow, E::SessionClose], session(id)),
        ["v1", "sessions", id, "approvals"] => (&[E::ApprovalList], session(id)),
        ["v1", "sessions", id, "approvals", approval] => {
            (&[E::ApprovalShow], PathParameters { approval_id: Some((*approval).to_owned()), ..session(id) })
        }
        ["v1", "sessions", id, "actions"] => (&[E::SessionAct], session(id)),
        ["v1", "sessions", id, "events"] => (&[E::Events], session(id)),
        ["v1", "sessions", id, "attestation"] => (&[E::Attestation], session(id)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_reached_by_its_own_template() {
        for endpoint in Endpoint::ALL {
            let segments: Vec<&str> = endpoint.template().split('/').skip(1).collect();
            let (found, _) = find(&endpoint.method(), &segments).unwrap();
            assert_eq!(found, endpoint);
        }
    }

    #[test]
    fn parameters_come_from_their_places() {
        let (endpoint, parameters) = find(&Method::GET, &["v1", "sessions", "s", "approvals", "a"]).unwrap();
        assert_eq!(endpoint, Endpoint::ApprovalShow);
        assert_eq!(parameters.session_id.as_deref(), Some("s"));
        assert_eq!(parameters.approval_id.as_deref(), Some("a"));
    }

    #[test]
    fn another_method_names_the_ones_that_exist() {
        let Err(NoRoute::Method(endpoints)) = find(&Method::PUT, &["v1", "sessions", "s"]) else {
            panic!("PUT must not be found");
        };
        assert_eq!(allow(endpoints), "GET, DELETE");
        assert_eq!(find(&Method::GET, &["v1", "sessions", "attach"]), Err(NoRoute::Method(&[Endpoint::SessionAttach])));
        assert_eq!(find(&Method::GET, &["v2", "status"]), Err(NoRoute::Path));
        assert_eq!(find(&Method::GET, &["v1", "status", ""]), Err(NoRoute::Path));
    }
}
