//! The report of a restore: the runs that wait, and what the backup cannot know.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::manifest::BackupCounts;
use crate::run::{RunId, RunStatus, SessionId, TenantId};

/// The contents of a restored backup, and what is not in it. It is printed, and kept in the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// The directory of the backup.
    pub backup: String,
    /// SHA-256 of its manifest, in hex.
    pub manifest_sha256: String,
    /// When it was taken: what happened later is not in it.
    pub taken: Timestamp,
    /// When it was restored.
    pub restored: Timestamp,
    /// The version of the program that took it.
    pub version: String,
    /// The schema version of its database, before it was migrated.
    pub schema: usize,
    /// How much was in it.
    pub counts: BackupCounts,
    /// The runs that had not ended: each waits until a person resumes or cancels it.
    pub parked: Vec<RestoredRun>,
    /// How many conversations had a question that a yes would have answered by executing a call: it counts no more.
    #[serde(default)]
    pub lapsed_questions: u64,
    /// How many keys of the backup were revoked: those of which the earlier data directory says so, or all.
    #[serde(default)]
    pub revoked_keys: u64,
    /// The things that the backup cannot know.
    pub unknown: Vec<UnknownSince>,
    /// What happened after it was taken, as the earlier data directory tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<ChangesSince>,
    /// Why the earlier data directory was not compared, if it was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
    /// Why what the earlier data directory says of API keys was not carried over, if it was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_not_carried: Option<String>,
    /// Where the earlier content of the data directory is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

impl RestoreReport {
    /// The time of the restore in names of files.
    pub(super) fn stamp(&self) -> String {
        self.restored.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    /// The name of the file in the data directory that keeps it.
    pub fn file_name(&self) -> String {
        format!("{}{}.json", super::super::permissions::REPORT_PREFIX, self.stamp())
    }
}

/// A run that had not ended when the backup was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredRun {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its conversation.
    pub session: SessionId,
    /// The beginning of the request.
    pub request: String,
    /// Its status in the backup.
    pub status: RunStatus,
    /// Whether this program can read its events. If not, a program that can has to resume it; here it can be cancelled.
    pub readable: bool,
    /// Its fate after the backup was taken, if the earlier data directory tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterRun>,
}

/// The fate of a run after the backup was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterRun {
    /// Its last known status; absent if it was erased.
    pub status: Option<RunStatus>,
    /// The writes that it began or ended later, each as `Scene.Tool: outcome`.
    pub writes: Vec<String>,
}

/// Something that a backup cannot know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownSince {
    /// What may have happened after it was taken, and what follows from it.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// The changes after the backup was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesSince {
    /// Requests that were accepted.
    pub requests: u64,
    /// Decisions of people in the audit log.
    pub decisions: u64,
    /// The cost of models, by tenant.
    pub spent: Vec<SpentSince>,
    /// Single changes, at most a bounded number of each kind.
    pub changes: Vec<ChangedSince>,
    /// How many further changes there are.
    pub more: u64,
}

/// The spending of a tenant after the backup was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpentSince {
    /// The tenant.
    pub tenant: TenantId,
    /// Calls of models.
    pub calls: u64,
    /// Their cost in billionths of a dollar.
    pub cost_nano_usd: u64,
}

/// A change that the backup does not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChangedSince {
    /// Its kind.
    pub kind: ChangeSinceKind,
    /// The tenant; empty where it concerns none.
    pub tenant: String,
    /// The id or name of what was changed.
    pub id: String,
    /// More about it, such as its user; may be empty.
    pub about: String,
}

/// The kinds of changes that a backup does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ChangeSinceKind {
    /// A conversation was erased, and is there again.
    ConversationErased,
    /// A run was erased, and is there again.
    RunErased,
    /// A document was deleted, and is there again.
    DocumentDeleted,
    /// A document was added, and is gone.
    DocumentAdded,
    /// A key was revoked; it is revoked here, too.
    KeyRevoked,
    /// A key was created, and is gone.
    KeyCreated,
    /// A key got another role or expiry; it has it here, too.
    KeyChanged,
    /// A tool, model or tenant was switched, and is as before.
    Switched,
    /// A learned plan was demoted or deleted, and may be reused again.
    PlanDemoted,
}

/// Returns what no backup can know.
pub(super) fn unknown_since() -> Vec<UnknownSince> {
    let unknown =
        |what: &str, remedy: &str| UnknownSince { what: what.to_owned(), remedy: remedy.to_owned() };
    vec![
        unknown(
            "Writes: what unfinished runs did later. Each of them waits, and nothing of it continues by itself.",
            "Check what was done, then `proscenium plans resume` or `proscenium plans cancel` each of them.",
        ),
        unknown(
            "Erasures: conversations, runs and documents that were erased later are there again.",
            "Erase them again.",
        ),
        unknown(
            "Keys: those revoked later are valid again and changed roles are the earlier ones, unless a later data directory was \
             compared; those created later are gone.",
            "Compare `proscenium keys list` with your records, and revoke them again before the server starts.",
        ),
        unknown(
            "Switches: tools, models and tenants that were switched later are as they were.",
            "`proscenium tools`, `proscenium models` and `proscenium tenants` list and switch them.",
        ),
        unknown(
            "Money: what was spent later is in no report, and budgets can be spent a second time.",
            "Lower the budgets of the current period by what the provider's bill says.",
        ),
        unknown(
            "Requests: those accepted later are gone with their keys, so a client that repeats one has it executed again.",
            "Ask clients not to repeat requests of that time.",
        ),
        unknown(
            "Confirmations: a question that a user answered with yes later may be open again. In conversations of the server it counts \
             no more; a chatbot that keeps the conversation itself can still send the yes, for 15 minutes after the question.",
            "Tell users to check before they ask for it again.",
        ),
        unknown(
            "Decisions: the audit log ends at that time; a head that was noted later is not found in it.",
            "Keep the earlier data directory as evidence, if there is one.",
        ),
        unknown(
            "Documents, facts and learned plans that were added, corrected or demoted later are as they were.",
            "Add them again.",
        ),
        unknown(
            "Messages: the webhook may be notified a second time of approvals that are open in the backup.",
            "Receivers recognise them by `webhook-id`.",
        ),
    ]
}
