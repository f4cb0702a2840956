// Requests that must be refused before they have any effect: plain data, run here against the server with a fake
// controller and elsewhere against the real daemon. Every entry is sent with the owner's token unless it says otherwise,
// so that what refuses it is its form and not its role.

/// What authorises the request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Token {
    /// The owner's token.
    Owner,
    /// No `Authorization` header.
    None,
    /// This value of the header; `{owner}` stands for the owner's token.
    Value(&'static str),
}

/// What is sent after the head.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    /// Nothing, and no `Content-Length`.
    None,
    /// These bytes.
    Bytes(&'static [u8]),
    /// A long one: head, a piece so many times, tail.
    Filled(&'static str, &'static str, usize, &'static str),
}

/// One request and how it must be refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Malformed {
    /// Unique, for messages.
    pub(crate) name: &'static str,
    /// Written into the request line as it stands.
    pub(crate) method: &'static str,
    /// Written into the request line as it stands.
    pub(crate) target: &'static str,
    /// Fields besides `Host`, `Authorization`, `Content-Length` and, for a body, `Content-Type`; one of these names here
    /// replaces it.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Authorisation.
    pub(crate) token: Token,
    /// Body.
    pub(crate) body: Body,
    /// Expected status.
    pub(crate) status: u16,
    /// Expected code; `None` where the HTTP library refuses the head itself, with no body.
    pub(crate) code: Option<&'static str>,
}

impl Malformed {
    const fn get(name: &'static str, target: &'static str, status: u16, code: &'static str) -> Self {
        let body = Body::None;
        Self { name, method: "GET", target, headers: &[], token: Token::Owner, body, status, code: Some(code) }
    }

    const fn post(
        name: &'static str,
        target: &'static str,
        body: &'static str,
        status: u16,
        code: &'static str,
    ) -> Self {
        let body = Body::Bytes(body.as_bytes());
        Self { name, method: "POST", target, headers: &[], token: Token::Owner, body, status, code: Some(code) }
    }

    const fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    const fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Self {
        self.headers = headers;
        self
    }

    const fn token(mut self, token: Token) -> Self {
        self.token = token;
        self
    }

    const fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    const fn no_code(mut self) -> Self {
        self.code = None;
        self
    }

    /// The request as it is sent, with this owner's token.
    pub(crate) fn bytes(&self, owner: &str) -> Vec<u8> {
        let body = match self.body {
            Body::None => None,
            Body::Bytes(bytes) => Some(bytes.to_vec()),
            Body::Filled(head, piece, times, tail) => Some(format!("{head}{}{tail}", piece.repeat(times)).into_bytes()),
        };
        let mut fields: Vec<(String, String)> = vec![("Host".into(), "localhost".into())];
        match self.token {
            Token::Owner => fields.push(("Authorization".into(), format!("Bearer {owner}"))),
            Token::None => {}
            Token::Value(value) => fields.push(("Authorization".into(), value.replace("{owner}", owner))),
        }
        if let Some(body) = &body {
            fields.push(("Content-Length".into(), body.len().to_string()));
            fields.push(("Content-Type".into(), "application/json".into()));
        }
        fields.retain(|(known, _)| !self.headers.iter().any(|(name, _)| name == known));
        fields.extend(self.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target).into_bytes();
        for (name, value) in fields {
            text.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        text.extend(b"\r\n");
        text.extend(body.unwrap_or_default());
        text
    }
}

/// A path below the session that the fake controller knows.
macro_rules! session {
    ($rest:literal) => {
        concat!("/v1/sessions/00000000-0000-4000-8000-000000000001", $rest)
    };
}

const ACTIONS: &str = session!("/actions");
const PROMPT: &str = r#"{"operation_id":"session.prompt.send","input":{"text":"hello"},"capability_generation":1,"client_action_id":"a1"}"#;

#[path = "table_bodies.rs"]
mod bodies;
#[path = "table_heads.rs"]
mod heads;

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Malformed> {
    heads::HEADS.iter().chain(bodies::BODIES)
}
