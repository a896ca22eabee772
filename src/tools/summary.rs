//! The tool that summarises the documents of a request. A run makes the summary itself, part by part, so that it is journaled,
//! resumed and paid for like that of a step; nothing is left to be called.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Tool, ToolContext, ToolError};

/// Maximum number of characters of what a summary is for.
const MAX_PURPOSE: usize = 500;

/// A tool of `kind = "summary"`.
pub(crate) struct SummaryTool;

impl SummaryTool {
    /// The JSON Schema of its arguments, whatever its name.
    pub(crate) fn parameters() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "documents": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "description": "Ids of documents that the request names; all of them if this is left out"
                },
                "purpose": {
                    "type": "string",
                    "maxLength": MAX_PURPOSE,
                    "description": "What the summary is for, or what it should be about"
                }
            }
        })
    }
}

#[async_trait]
impl Tool for SummaryTool {
    async fn call(&self, _: ToolContext, _: Value) -> Result<Value, ToolError> {
        Err(ToolError::refused("summary.no_run", "documents are summarised by a run, and by no single call"))
    }
}
