//! What the chain is made of and what its verification says: plain data, and who signs.

/// Signs the chain's newest head, and knows its own signatures again.
pub trait Notary: Send + Sync {
    /// The signature of a message.
    fn sign(&self, message: &[u8]) -> Vec<u8>;

    /// Whether the signature is this notary's, of exactly this message.
    fn is_own(&self, message: &[u8], signature: &[u8]) -> bool;
}

/// A request that was refused before it had a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// Method and path, with its parameters in braces.
    pub request: String,
    /// Who asked.
    pub caller: String,
    /// The caller's key, when one that could be used was sent.
    pub client_action_id: Option<String>,
    /// The session, when one that could be was named.
    pub session_id: Option<String>,
    /// The operation, when one of the catalog was named.
    pub operation_id: Option<String>,
    /// Stable code of the refusal.
    pub code: String,
    /// Milliseconds since 1970, UTC.
    pub at_ms: i64,
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its number, gapless from 1.
    pub n: u64,
    /// What it says: canonical JSON.
    pub entry: String,
    /// SHA-256 over the digest of the link before it (32 zero bytes before the first) and the entry; 64 lower-case
    /// hexadecimal digits.
    pub digest: String,
}

/// The newest link's number and digest, signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    /// Number of the newest link.
    pub n: u64,
    /// Its digest, 64 lower-case hexadecimal digits.
    pub digest: String,
    /// The notary's signature of [`ChainHead::message`].
    pub signature: Vec<u8>,
}

impl ChainHead {
    /// What is signed.
    #[must_use]
    pub fn message(n: u64, digest: &str) -> Vec<u8> {
        format!("gatepost ledger head v1\n{n}\n{digest}\n").into_bytes()
    }
}

/// Some links in order, and the head at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPage {
    /// At most [`crate::MAX_AUDIT_LINKS`].
    pub links: Vec<Link>,
    /// Where the chain ends.
    pub head: ChainHead,
}

/// What is wrong with a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its digest is not that of its entry and the link before it.
    Digest,
    /// It is missing, though a later one or the head says that it was there.
    Gap,
    /// The head does not name the newest link.
    Head,
    /// The head's signature is missing or not this installation's.
    Signature,
    /// Its entry is not one that this version writes.
    Entry,
    /// The stored row differs from what its newest link says.
    RowDiffers,
    /// The stored row that it speaks of is gone.
    RowMissing,
    /// A stored row has no link; the number is that of the link it claims, 0 for none.
    NoLink,
}

impl Fault {
    /// Stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Digest => "digest",
            Self::Gap => "gap",
            Self::Head => "head",
            Self::Signature => "signature",
            Self::Entry => "entry",
            Self::RowDiffers => "row_differs",
            Self::RowMissing => "row_missing",
            Self::NoLink => "no_link",
        }
    }
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Number of the link.
    pub n: u64,
    /// What is wrong with it.
    pub fault: Fault,
    /// The same for people; quotes identifiers, never content.
    pub detail: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "link {} of the chain of receipts is broken ({}): {}",
            self.n,
            self.fault.as_str(),
            self.detail
        )
    }
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Links that were walked and hold.
    pub links: u64,
    /// Receipts, sessions, accepts and tokens that were compared with their links and hold.
    pub rows: u64,
    /// The first thing that is wrong; `None` when nothing is.
    pub broken: Option<Broken>,
}
