//! The closed catalog of reviewed operations.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One field of an operation's input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InputField {
    /// Name in the input object.
    pub name: String,
    /// `text`, `line`, `path`, `uuid`, `digest` or `choice`; all are JSON strings.
    pub type_name: String,
    /// Whether it must be given.
    pub required: bool,
    /// Greatest length in bytes.
    pub max_bytes: usize,
    /// The values it may take, where they are few and fixed.
    pub values: Vec<String>,
    /// What it means.
    pub doc: String,
}

/// A reviewed operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogEntry {
    /// Stable id.
    pub operation_id: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// The role its strongest form needs: an approver accepts, an operator rejects as well.
    pub role: String,
    /// How much it can change.
    pub risk: String,
    /// Its input.
    pub inputs: Vec<InputField>,
}

/// Every operation that exists; there is no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Catalog {
    /// In a fixed order.
    pub operations: Vec<CatalogEntry>,
}
