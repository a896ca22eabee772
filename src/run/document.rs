//! Documents that a request names, and parts of their text.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};
use uuid::Uuid;

/// The id of a document: a UUIDv7, so that ids sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DocumentId(pub Uuid);

impl std::fmt::Display for DocumentId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for DocumentId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(DocumentId)
    }
}

/// The kind of a document, as its media type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[derive(Serialize, Deserialize, EnumString, IntoStaticStr, utoipa::ToSchema)]
pub enum DocumentMedia {
    /// Plain text.
    #[serde(rename = "text/plain")]
    #[strum(serialize = "text/plain")]
    Text,
    /// Markdown.
    #[serde(rename = "text/markdown")]
    #[strum(serialize = "text/markdown")]
    Markdown,
}

impl DocumentMedia {
    /// The media type.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the kind of a file with this name: Markdown by its ending, and text otherwise.
    pub fn of_file(name: &str) -> Self {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        match ending.as_deref() {
            Some("md" | "markdown" | "mdown" | "mkd") => Self::Markdown,
            _ => Self::Text,
        }
    }
}

/// A document as a run knows it. Its content is not part of the run: tools read it while it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedDocument {
    /// The document.
    pub id: DocumentId,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its name, as given by its user.
    pub name: String,
    /// Its media type, such as `text/markdown`. Text, so that journals of later releases with further types can be read.
    pub media: String,
    /// Length of its content, in bytes.
    pub bytes: u64,
    /// Its language, ISO 639-1, where it could be detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Its first heading, or else its first line, cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
}

/// A part of a document as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    /// Where it begins in the document, in bytes.
    pub start: u64,
    /// The text. It ends at `start` and its length in bytes.
    pub text: String,
}

impl DocumentText {
    /// The whole characters of `bytes`, which begin at `start` of a document; `None` if they are not part of a UTF-8 text.
    pub fn of(start: u64, bytes: &[u8]) -> Option<Self> {
        // A character has at most three bytes after its first.
        let skipped = bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
        let rest = bytes.get(skipped..)?;
        let whole = match std::str::from_utf8(rest) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(rest.get(..error.valid_up_to())?).ok()?
            }
            Err(_) => return None,
        };
        Some(Self { start: start + skipped as u64, text: whole.to_owned() })
    }
}
