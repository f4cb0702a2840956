//! Everything that the API said.

use crate::outside::Secrets;
use gatepost_tests::Session;

/// Everything that the API said.
#[derive(Default)]
pub(crate) struct Replies(Vec<(String, String)>);

impl Replies {
    /// Reads everything that can be read.
    pub(crate) fn collect(&mut self, session: &Session) {
        let mut paths: Vec<String> = ["healthz", "readyz", "openapi.json", "status", "probe", "catalog", "sessions"]
            .map(|name| format!("/v1/{name}"))
            .into();
        paths.extend(["", "/approvals", "/attestation", "/events?limit=1000"].map(|below| session.path(below)));
        let pending = session.pending();
        paths.extend(pending.map(|approval| session.path(&format!("/approvals/{}?full=true", approval.approval_id))));
        for path in paths {
            let reply = session.client().get(&path).unwrap();
            assert_eq!(reply.status, 200, "{path}: {}", reply.text);
            self.0.push((path, format!("{:?}\n{}", reply.headers, reply.text)));
        }
        for operation in
            ["provider.auth.read", "provider.config.read", "provider.usage.read", "provider.diagnostics.read"]
        {
            let body = serde_json::json!({
                "operation_id": operation, "input": {}, "client_action_id": format!("read-{}", self.0.len()),
            });
            let reply = session.client().post("/v1/actions", &body).unwrap();
            assert_eq!(reply.status, 200, "{operation}: {}", reply.text);
            self.0.push((operation.to_owned(), reply.text));
        }
    }

    pub(crate) fn holding(&self, secrets: &Secrets) -> Vec<String> {
        assert!(self.0.len() > 20);
        let named = |(path, text): &(String, String)| {
            let names = secrets.in_bytes(text.as_bytes());
            names.into_iter().map(|name| format!("{name} in the reply of {path}")).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(named).collect()
    }
}
