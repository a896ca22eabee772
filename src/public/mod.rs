//! What clients see of a run while it is carried out: public events, with ids to resume by.
//!
//! [`Teller`] says what an event of the journal is to a client; [`PublicStream`] tells a run's events in
//! order, from the journal and then live, with the answer's words between them as they are written.
//!
//! | event | data |
//! | --- | --- |
//! | `run_started` | `run_id`, `session_id`, `task_id`, `now` (RFC 9557), `language` (ISO 639-1 or null) |
//! | `planning` | `run_id`, `version`, `cause` |
//! | `plan_created`, `replanned` | `run_id`, `task_id`, `version`, `cause`, `maker`, `by` where a person made it, `plan` as in the answer document |
//! | `approval_required` | `run_id`, `task_id`, `approval_id`, `about` (`plan`, `call`, `outcome`), `hash`, `why`; of a plan its `version`, else `call`, `tool`, `arguments`, `effect`, `step_number`, `scene_name` |
//! | `plan_approved` | `run_id`, `task_id`, `version`, `by`, `begins` |
//! | `run_waiting` | `run_id`, `status` (`waiting`), `task_id`, `approvals`: the ids of what a person has to decide first; `error`, where the run was put aside: why |
//! | `step_started` | `run_id`, `step_number`, `scene_name`, `purpose` |
//! | `tool_started` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `effect`, `attempt`; `undoes`, the `call` of the write that it undoes, where it undoes one |
//! | `tool_completed` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `outcome`, `result` or `error`, `duration_ms` |
//! | `tool_skipped` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `outcome` (`skipped`), `first_call` |
//! | `step_completed` | `run_id`, `step_number`, `scene_name`, `status`, `result` |
//! | `step_failed` | `run_id`, `step_number`, `scene_name`, `status`, `error` |
//! | `continuation` | `run_id`, `round`, `should_continue`, `can_answer_now`, `reasoning`, `missing_information`, `degraded` |
//! | `answer_delta` | `text`: to be put behind what came before |
//! | `answer_reset` | nothing: what came before is not the answer |
//! | `answered` | `run_id`, `answer`, `degraded`; the deltas since the last reset are together the same text |
//! | `run_completed` | `run_id`, `status` |
//! | `run_failed` | `run_id`, `status`, `error` |
//! | `run_cancelled` | `run_id`, `status`, `by` |
//!
//! A run that waits for a person ends its stream with `run_waiting`; once somebody has decided, the rest is
//! told behind it (`Last-Event-ID`). The outcome of a write that a dry run only tells is `dry_run`.
//!
//! `call` numbers the tool calls of a run from 1; an `error` has `code` and `message`.

mod stream;
mod tell;

use serde_json::Value;

pub use stream::PublicStream;
pub(crate) use stream::Source;
pub use tell::Teller;

/// Where in a run's stream an event stands, as `seq.offset.epoch` (`Last-Event-ID`): the run's events up to
/// `seq` were told, and `offset` bytes of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventId {
    /// How often the run had been taken over by a new process when the event was told: bytes of an answer
    /// count only in the process that told them. Ids of earlier releases do not say it.
    pub epoch: Option<u32>,
    /// The number of the last event of the journal, from 1; 0 before the first.
    pub seq: u64,
    /// Bytes of the answer that were told since the last reset.
    pub offset: u64,
}

impl EventId {
    /// The place behind this event of the journal, which was read there.
    pub(crate) fn behind(seq: u64) -> Self {
        // What the journal has of it is its history, whoever wrote it.
        Self { epoch: Some(u32::MAX), seq, offset: 0 }
    }
}

/// A text that is no id of a public event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no event id: send back the id of the last event that came, such as 12.0.0")]
pub struct InvalidEventId {
    given: String,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.seq, self.offset)?;
        self.epoch.map_or(Ok(()), |epoch| write!(f, ".{epoch}"))
    }
}

impl std::str::FromStr for EventId {
    type Err = InvalidEventId;

    /// `12.345.0`; `12.345` and `12` of earlier releases.
    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let invalid = || InvalidEventId { given: text.chars().take(50).collect() };
        let number = |digits: &str| -> Result<u64, InvalidEventId> {
            match digits {
                "" => Err(invalid()),
                digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| invalid()),
                _ => Err(invalid()),
            }
        };
        let parts: Vec<&str> = text.trim().splitn(4, '.').collect();
        let (epoch, seq, offset) = match parts.as_slice() {
            [seq] => (None, *seq, "0"),
            [seq, offset] => (None, *seq, *offset),
            [seq, offset, epoch] => (Some(number(epoch)?), *seq, *offset),
            _ => return Err(invalid()),
        };
        let epoch = epoch.map(u32::try_from).transpose().map_err(|_| invalid())?;
        Ok(Self { epoch, seq: number(seq)?, offset: number(offset)? })
    }
}

/// An event as clients get it.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicEvent {
    /// To resume after it.
    pub id: EventId,
    /// Its name, see the module.
    pub name: &'static str,
    /// Its body: an object.
    pub data: Value,
}

impl PublicEvent {
    /// Whether the stream ends with it, unless the run is carried on or somebody decides just then.
    pub fn is_last(&self) -> bool {
        matches!(self.name, "run_completed" | "run_failed" | "run_cancelled" | "run_waiting")
    }
}

#[cfg(test)]
mod tests;
