//! Who signs the chain of receipts: the key of this installation, the same that signs attestations.

use std::sync::Arc;

use host::sign::{self, SigningKey};

/// The installation's key as the ledger's notary.
pub(crate) struct Installation(pub(crate) Arc<SigningKey>);

impl store::Notary for Installation {
    fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message)
    }

    fn is_own(&self, message: &[u8], signature: &[u8]) -> bool {
        sign::verify(&self.0.public_key(), message, signature).is_ok()
    }
}
