//! Tokens of clients: made and revoked by the owner, known by their digest alone.

use std::sync::{PoisonError, RwLock};

use host::Secret;
use host::secret::constant_time_eq;
use rules::jcs::sha256_hex;
use rules::refusal::{Refusal, RefusalCode};
use rules::role::Roles;
use rules::token::{MAX_TOKENS, TOKEN_PREFIX};
use store::TokenRecord;
use tokio::sync::watch;

use crate::clock;
use crate::supervisor::{Supervisor, owner};
use crate::view::{Caller, CreatedToken, TokenView};

/// Bytes of randomness in a token.
const RANDOM_BYTES: usize = 32;

/// Every token ever made, revoked ones too.
#[derive(Default)]
pub(crate) struct Tokens {
    known: RwLock<Vec<TokenRecord>>,
    /// One change at a time: what is recorded and what is known are the same.
    changing: tokio::sync::Mutex<()>,
    changes: watch::Sender<()>,
}

impl Tokens {
    fn all(&self) -> Vec<TokenRecord> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// INVARIANT I2: what was sent is compared by its digest, with every token, in a time that tells none of them apart.
    fn holder(&self, bearer: &str) -> Option<Caller> {
        let digest = sha256_hex(bearer.as_bytes());
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for token in known.iter() {
            let is_it = constant_time_eq(token.token_sha256.as_bytes(), digest.as_bytes());
            if is_it && token.revoked_at_ms.is_none() {
                found = Some(Caller { name: token.name.clone(), roles: roles(token) });
            }
        }
        found
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TokenRecord>)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_replace(());
    }
}

/// What cannot be read permits nothing.
fn roles(token: &TokenRecord) -> Roles {
    Roles::parse(&token.roles).unwrap_or(Roles::NONE)
}

fn view(token: &TokenRecord) -> TokenView {
    TokenView {
        name: token.name.clone(),
        roles: roles(token),
        created_at: clock::rfc3339(token.created_at_ms),
        revoked_at: token.revoked_at_ms.map(clock::rfc3339),
    }
}

impl Supervisor {
    /// Who holds this token, if anyone does.
    #[must_use]
    pub fn authenticate(&self, bearer: &str) -> Option<Caller> {
        owner(&self.shared().owner_token, bearer).or_else(|| self.shared().tokens.holder(bearer))
    }

    /// Tells of each token that was made or revoked from now on.
    #[must_use]
    pub fn token_changes(&self) -> watch::Receiver<()> {
        self.shared().tokens.changes.subscribe()
    }

    pub(crate) async fn take_up_tokens(&self) -> Result<(), Refusal> {
        let records = self.shared().records.ledger(store::Ledger::tokens).await?;
        self.shared().tokens.change(|known| *known = records);
        Ok(())
    }

    /// Every token, revoked ones too, oldest first, without what it is.
    #[must_use]
    pub fn tokens(&self) -> Vec<TokenView> {
        self.shared().tokens.all().iter().map(view).collect()
    }

    /// Makes a token of that name (valid, see [`rules::token`]). What it is, is in this answer and nowhere else.
    ///
    /// # Errors
    /// `token_exists`: a name is never used again, so that records say who did something. `too_many_tokens`,
    /// `internal`, and those of a write to the ledger.
    pub async fn create_token(&self, name: &str, roles: Roles) -> Result<CreatedToken, Refusal> {
        let tokens = &self.shared().tokens;
        let _only = tokens.changing.lock().await;
        let known = tokens.all();
        if known.iter().any(|token| token.name == name) {
            let detail =
                format!("a token named {name} was made already, and a name is never used again: choose another");
            return Err(Refusal::new(RefusalCode::TokenExists, detail));
        }
        if known.len() >= MAX_TOKENS {
            let detail = format!("{MAX_TOKENS} tokens were made, revoked ones among them: no more are");
            return Err(Refusal::new(RefusalCode::TooManyTokens, detail));
        }
        let random = Secret::random_hex(RANDOM_BYTES)
            .map_err(|error| Refusal::new(RefusalCode::Internal, format!("no randomness: {error}")))?;
        let token = Secret::new(format!("{TOKEN_PREFIX}{}", random.expose()));
        let record = TokenRecord {
            name: name.to_owned(),
            token_sha256: sha256_hex(token.expose().as_bytes()),
            roles: roles.to_string(),
            created_at_ms: clock::now_ms(),
            revoked_at_ms: None,
        };
        let written = record.clone();
        self.shared().records.write("insert_token", move |ledger| ledger.insert_token(written)).await?;
        let view = view(&record);
        tokens.change(|known| known.push(record));
        tracing::info!(name, roles = %roles, "a token was made");
        Ok(CreatedToken { view, token })
    }

    /// Revokes a token: the next request with it is refused, and what waits with it ends.
    ///
    /// # Errors
    /// `token_not_found`, and those of a write to the ledger: then it is revoked until this daemon ends, and no longer.
    pub async fn revoke_token(&self, name: &str) -> Result<TokenView, Refusal> {
        let tokens = &self.shared().tokens;
        let _only = tokens.changing.lock().await;
        let Some(mut record) = tokens.all().into_iter().find(|token| token.name == name) else {
            return Err(Refusal::new(RefusalCode::TokenNotFound, format!("no token is named {name}; list the tokens")));
        };
        let revoked_at_ms = *record.revoked_at_ms.get_or_insert_with(clock::now_ms);
        // First, so that a full disk leaves nobody in.
        tokens.change(|known| {
            let token = known.iter_mut().find(|token| token.name == name);
            if let Some(token) = token {
                token.revoked_at_ms = Some(revoked_at_ms);
            }
        });
        let name = name.to_owned();
        let id = name.clone();
        let write = move |ledger: &store::Ledger| ledger.revoke_token(&id, revoked_at_ms);
        self.shared().records.write("revoke_token", write).await.map_err(|refusal| {
            let detail =
                format!("the token is revoked until the daemon ends, and that is not recorded: {}", refusal.detail);
            Refusal::new(refusal.code, detail)
        })?;
        tracing::info!(name, "a token was revoked");
        Ok(view(&record))
    }
}
