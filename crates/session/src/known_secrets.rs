//! Every secret that the daemon came to know, for the log.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use rules::redact::Redactor;

/// Most secrets that are kept in mind; each start of a server brings one, and the oldest of those go first.
const MAX_SECRETS: usize = 256;

/// What the log's redactor knows. It begins with nothing, since the daemon does.
#[derive(Default)]
pub struct KnownSecrets {
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Names and values, in the order in which they were learnt.
    secrets: VecDeque<(String, String)>,
    redactor: Option<Arc<Redactor>>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KnownSecrets").finish_non_exhaustive()
    }
}

impl KnownSecrets {
    /// From here on these `(name, value)` pairs are replaced.
    pub fn learn(&self, secrets: &[(String, String)]) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets {
            if !known.secrets.contains(secret) {
                known.secrets.push_back(secret.clone());
            }
        }
        while known.secrets.len() > MAX_SECRETS {
            // Those of the installation came first and live as long as the daemon.
            let oldest = known.secrets.iter().position(|(name, _)| name == "session_key").unwrap_or(0);
            known.secrets.remove(oldest);
        }
        known.redactor = Some(Arc::new(Redactor::new(known.secrets.iter().cloned().collect())));
    }

    /// What replaces them; `None` before there are any.
    #[must_use]
    pub fn redactor(&self) -> Option<Arc<Redactor>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).redactor.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_installation_are_never_forgotten_and_old_ones_of_servers_are() {
        let known = KnownSecrets::default();
        assert!(known.redactor().is_none());
        known.learn(&[("owner_token".to_owned(), "the-owners-token".to_owned())]);
        for number in 0..2 * MAX_SECRETS {
            known.learn(&[
                ("session_key".to_owned(), format!("key-of-server-{number:04}")),
                ("owner_token".to_owned(), "the-owners-token".to_owned()),
            ]);
        }
        let redactor = known.redactor().unwrap();
        let shown = redactor.redact_text("the-owners-token key-of-server-0511 key-of-server-0000").0;
        assert_eq!(shown, "«secret:owner_token» «secret:session_key» key-of-server-0000");
        assert!(!format!("{known:?}").contains("owners"));
    }
}
