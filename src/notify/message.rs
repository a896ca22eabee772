//! The message about an open approval.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::run::{ApprovalId, ApprovalSubject, RunId, RunState, SessionId};
use crate::store::{About, ApprovalRow};

/// A message in the format of Standard Webhooks. It says what the approval is about and where to find it,
/// but omits arguments and plans, which only authorised clients may read.
#[derive(Debug, Serialize)]
pub(super) struct ApprovalMessage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: Timestamp,
    data: ApprovalMessageData<'a>,
}

#[derive(Debug, Serialize)]
struct ApprovalMessageData<'a> {
    approval_id: ApprovalId,
    run_id: RunId,
    task_id: crate::plan::TaskId,
    session_id: &'a SessionId,
    tenant: &'a str,
    user: &'a str,
    about: About,
    why: &'a [String],
    hash: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scene: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

impl<'a> ApprovalMessage<'a> {
    /// The message for an approval of this run; `None` if the run has no such approval. An approval expires,
    /// as a refusal, after `expires_s` seconds; never if that is 0.
    pub(super) fn of(row: &'a ApprovalRow, state: &'a RunState, expires_s: u64) -> Option<Self> {
        let put = state.approvals.get(&row.id.approval)?;
        let (version, call) = match put.matter {
            ApprovalSubject::Plan { version } => (Some(version), None),
            ApprovalSubject::Call { call } | ApprovalSubject::Outcome { call } => {
                (None, state.calls.get(&call))
            }
        };
        let expires = i64::try_from(expires_s).ok().filter(|s| *s > 0 && row.about != About::Outcome);
        let data = ApprovalMessageData {
            approval_id: row.id,
            run_id: row.id.run,
            task_id: row.task,
            session_id: &row.session,
            tenant: row.tenant.as_str(),
            user: &row.user,
            about: row.about,
            why: &put.needed.why,
            hash: &put.needed.hash,
            version,
            scene: call.map(|call| call.scene.as_str()),
            tool: call.map(|call| call.requested.tool.as_str()),
            created_at: row.created,
            expires_at: expires.and_then(|s| row.created.checked_add(SignedDuration::from_secs(s)).ok()),
        };
        Some(Self { kind: "approval.required", timestamp: row.created, data })
    }
}
