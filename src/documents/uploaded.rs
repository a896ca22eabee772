//! Documents of users as clients get them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run::{DocumentId, DocumentMedia};
use crate::store::DocumentRow;

/// A document of a user, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadedDocument {
    /// Its id.
    #[schema(value_type = String, format = "uuid")]
    pub id: DocumentId,
    /// The name that the user gave it.
    pub name: String,
    /// Its media type.
    pub media_type: DocumentMedia,
    /// Length of its content, in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its first heading, or else its first line, cut to 120 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// Its language, ISO 639-1, where it could be detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The user whose it is.
    pub user: String,
    /// When it was uploaded.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When it was last uploaded or named by a request.
    #[schema(value_type = String, format = "date-time")]
    pub used_at: Timestamp,
}

impl From<DocumentRow> for UploadedDocument {
    fn from(row: DocumentRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            media_type: row.media,
            bytes: row.bytes,
            sha256: row.sha256,
            heading: row.heading,
            language: row.language,
            user: row.user,
            created_at: row.created,
            used_at: row.used,
        }
    }
}
