//! A running daemon for callers that are no command of their own: typed requests, one reply each.

use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::token::TokenFile;
use crate::transport::{self, Call, Effect};

/// A daemon's socket and the token to ask it with.
#[derive(Debug, Clone)]
pub struct Daemon {
    socket: PathBuf,
    token_file: TokenFile,
}

impl Daemon {
    /// The daemon on this socket, asked with the token of this file.
    #[must_use]
    pub fn new(socket: PathBuf, token_file: TokenFile) -> Self {
        Self { socket, token_file }
    }

    /// Reads. `target` is a path and query of checked or encoded parts only.
    ///
    /// # Errors
    /// The daemon's refusal, or why there is no usable answer within `within`.
    pub async fn get<T: DeserializeOwned>(&self, target: &str, within: Duration) -> Result<T, Failure> {
        self.send(Method::GET, target, None, Effect::Read, within).await
    }

    /// Asks for a change.
    ///
    /// # Errors
    /// As [`Self::get`]; without an answer the exit code says that the outcome is unknown.
    pub async fn post<T: DeserializeOwned>(
        &self,
        target: &str,
        body: &impl Serialize,
        within: Duration,
    ) -> Result<T, Failure> {
        let body = serde_json::to_value(body)
            .map_err(|error| Failure::usage(format!("the request cannot be written: {error}")))?;
        self.send(Method::POST, target, Some(&body), Effect::Change, within).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: Option<&serde_json::Value>,
        effect: Effect,
        within: Duration,
    ) -> Result<T, Failure> {
        let call = Call { method, target: target.to_owned(), body, effect, within };
        let reply = transport::send(&self.socket, &self.token_file, call).await?;
        T::deserialize(reply).map_err(|_| Failure::malformed(target))
    }
}
