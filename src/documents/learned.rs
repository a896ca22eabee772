//! Learned plans and paths as clients get them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::learning::{LearnedStanding, standing};
use crate::run::Demotion;
use crate::store::LearnedRow;

/// A plan learned from executions, or a path through a flow.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LearnedDocument {
    /// Its id: SHA-256 of the template, in hex.
    pub id: String,
    /// The requests that it serves, with placeholders in braces.
    pub request: String,
    /// The flow through which it is a path; absent for a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Whether it may be reused now.
    pub standing: LearnedStanding,
    /// Why it was demoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demoted: Option<Demotion>,
    /// Until when it is suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub suspended_until: Option<Timestamp>,
    /// How often it succeeded since it was learned or demoted.
    pub successes: u32,
    /// How often it failed.
    pub failures: u32,
    /// How often it was reused.
    pub uses: u32,
    /// How many users said such requests; 3 stands for three or more.
    pub users: u32,
    /// Whether it outlives the conversations in which it was said.
    pub kept: bool,
    /// When it was learned.
    #[schema(value_type = String, format = "date-time")]
    pub created_at: Timestamp,
    /// When such a request was last answered.
    #[schema(value_type = String, format = "date-time")]
    pub seen_at: Timestamp,
    /// The steps and their calls: where each argument comes from, and the definitions of the tools. Of a path, one step
    /// with its nodes.
    pub plan: Value,
}

impl LearnedDocument {
    /// The document of a row at `now`, where `after` successes prove a plan.
    pub fn new(row: LearnedRow, after: u32, now: Timestamp) -> Self {
        Self {
            standing: standing(row.successes, row.demoted, row.suspended_until, after, now),
            // Serialising plain data cannot fail.
            plan: serde_json::to_value(&row.plan).unwrap_or_default(),
            flow: row.plan.flow_path().map(|(flow, _)| flow.to_owned()),
            suspended_until: row.suspended_until.filter(|until| now < *until),
            id: row.template,
            request: row.words,
            demoted: row.demoted,
            successes: row.successes,
            failures: row.failures,
            uses: row.uses,
            users: row.users,
            kept: row.kept,
            created_at: row.created,
            seen_at: row.seen,
        }
    }
}
