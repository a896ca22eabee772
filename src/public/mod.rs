//! Public events: what clients see of a run in progress, with ids to resume from.
//!
//! [`PublicProjection`] maps events of the journal to public events. [`PublicStream`] delivers a run's events
//! in order, first from the journal and then live, interleaved with the answer's text as it is produced.
//!
//! | event | data |
//! | --- | --- |
//! | `run_started` | `run_id`, `session_id`, `task_id`, `now` (RFC 9557), `language` (ISO 639-1 or null) |
//! | `planning` | `run_id`, `version`, `cause` |
//! | `plan_created`, `replanned` | `run_id`, `task_id`, `version`, `cause`, `maker`, `by` if a person made it, `plan` as in the answer document; a patched version has only its new steps, and `patch` (`removed`, and `replaced`: each replaced step with its new one) |
//! | `approval_required` | `run_id`, `task_id`, `approval_id`, `about` (`plan`, `call`, `outcome`), `hash`, `why`; for a plan its `version`, otherwise `call`, `tool`, `arguments`, `effect`, `step_number`, `scene_name` |
//! | `plan_approved` | `run_id`, `task_id`, `version`, `by`, `begins` |
//! | `run_waiting` | `run_id`, `status` (`waiting`), `task_id`, `approvals`: the ids of the pending approvals; `error`: the reason if the run was quarantined |
//! | `forecast` | `run_id`, `step_number`, `scene_name`, `tools` that the step may call and that do not work at present: `tool`, `open` (its calls end at once), `success_percent` and `latency_ms` of its recent calls |
//! | `step_started` | `run_id`, `step_number`, `scene_name`, `purpose` |
//! | `summary_planned` | `run_id`, `step_number`, `scene_name`, `parts`: how many parts the summary of the documents has, `estimate` (`questions`, `input_tokens`, `output_tokens`: what is asked of models at most), `cost_nano_usd` (what that costs at most, or null) |
//! | `summary_part` | `run_id`, `step_number`, `scene_name`, `part`: the number of a part that is done, from 1, `is_skipped`: whether it was not read |
//! | `program_written` | `run_id`, `step_number`, `scene_name` (`PROGRAM`), `source`: the program of a step of kind `code` |
//! | `program_replied` | `run_id`, `step_number`, `scene_name` (`PROGRAM`), `stop`: where an execution of the program stopped (`call` with `call` and `line`; `finished` with its `status` and `answer_rows`, and with `would_change` if it changed nothing because the request is not clear; `fault` with `error` and `line`; `unavailable` with `error`) |
//! | `tool_started` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `effect`, `attempt`; for an undo `undoes`: the `call` of the write that it undoes |
//! | `tool_completed` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `outcome`, `result` or `error`, `duration_ms`; `unexpected_result` (true) if the write was done and its result is not as its tool declares |
//! | `unexpected` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `attempt`, `class` of the failure, `chosen` (`action`: `retry`, `alternative`, `cached`, `skip`, `fail` or `consult`; for a retry `delay_ms`); about a step that failed `run_id`, `step_number`, `scene_name`, `class`, `chosen` (`consult` or `fail`) |
//! | `consultation` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `consultation`, `kind` (`recovery`, `interpretation`, `decision`, or without a call `adaptation`), `how` (`asked`, `cached`, `policy`, `over_budget`, `rate_limited`), `chosen` (`retry`, `alternative`, `cached`, `skip`, `ask_user` or `abort`; `alternative_1` to `alternative_4` for a tool in its place, `mapping` for an interpreted result, `patch` for a changed plan; absent where predefined logic decides), `refused` (why the choice is not carried out) |
//! | `backed_off` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `attempt` to come, `delay_ms` until then |
//! | `adapted` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `change`: `substituted` with `by`, the `call`, `tool` and `arguments` that take its place, or `recalled` with `as_of`, when the earlier result that is used was recorded (null if there is none), or `interpreted` with `found`, whether the expected values were in the result |
//! | `tool_skipped` | `run_id`, `step_number`, `scene_name`, `call`, `tool`, `arguments`, `outcome` (`skipped`), `first_call` |
//! | `step_completed` | `run_id`, `step_number`, `scene_name`, `status`, `result` |
//! | `step_failed` | `run_id`, `step_number`, `scene_name`, `status`, `error` |
//! | `continuation` | `run_id`, `round`, `should_continue`, `can_answer_now`, `reasoning`, `missing_information`, `degraded` |
//! | `answer_delta` | `text`: to be appended to the previous deltas |
//! | `answer_reset` | empty: discard the previous deltas |
//! | `answered` | `run_id`, `answer`, `degraded`; the deltas since the last reset add up to the same text |
//! | `run_completed` | `run_id`, `status` |
//! | `run_failed` | `run_id`, `status`, `error` |
//! | `run_cancelled` | `run_id`, `status`, `by` |
//!
//! The stream of a run that waits for a person ends with `run_waiting`. After the decision, later events are
//! available from there (`Last-Event-ID`). A write that a dry run only reports has the outcome `dry_run`.
//!
//! `call` numbers the tool calls of a run from 1; an `error` has `code` and `message`.

mod projection;
mod stream;

use serde_json::Value;

pub use projection::PublicProjection;
pub(crate) use stream::EventSource;
pub use stream::PublicStream;

/// The position of an event in a run's stream, as `seq.offset.epoch` (`Last-Event-ID`): the run's events up
/// to `seq` were sent, and `offset` bytes of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventId {
    /// How often a new process had taken over the run when the event was sent. The offset is valid only in
    /// the process that sent it. Absent in ids of earlier releases.
    pub epoch: Option<u32>,
    /// The sequence number of the last journal event, from 1; 0 before the first.
    pub seq: u64,
    /// Bytes of the answer that were sent since the last reset.
    pub offset: u64,
}

impl EventId {
    /// The position after this event of the journal.
    pub(crate) fn after_seq(seq: u64) -> Self {
        // A position read from the journal is valid in every epoch.
        Self { epoch: Some(u32::MAX), seq, offset: 0 }
    }
}

/// The text is not an event id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not an event id: send the id of the last event that was received, such as 12.0.0")]
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

/// A public event.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicEvent {
    /// Its id, to resume after it.
    pub id: EventId,
    /// Its name; see the module documentation.
    pub name: &'static str,
    /// Its body: an object.
    pub data: Value,
}

impl PublicEvent {
    /// Returns whether the stream ends with this event, unless the run is resumed or decided about at that moment.
    pub fn is_last(&self) -> bool {
        matches!(self.name, "run_completed" | "run_failed" | "run_cancelled" | "run_waiting")
    }
}

#[cfg(test)]
mod tests;
