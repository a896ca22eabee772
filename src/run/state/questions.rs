//! The questions of a run to models: their states, and which one is due.

use serde::Serialize;

use super::RunState;
use crate::plan::PlanProblem;
use crate::run::attempt::AskReservation;
use crate::run::consult::AskOrigin;
use crate::run::event::{Fault, Reply, Subject};

/// How often a question is asked again because its driver panicked (in journals of earlier releases:
/// because its process died). Then it counts as failed, so that a question that crashes its driver cannot
/// do so forever. Process crashes are counted by [`recovery`](crate::run::recovery).
const MAX_LOST_RETRIES: usize = 3;

/// Maximum number of problems of an unusable reply that its fault names.
const MAX_REPORTED_PROBLEMS: usize = 3;

/// A question to a model and its status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ask {
    /// Its subject.
    pub subject: Subject,
    /// 0, then the number of the repair.
    pub attempt: u32,
    /// Whether the offline model was asked instead of the models.
    pub fallback: bool,
    /// Its status.
    pub status: AskStatus,
    /// The budget reserved for it and not settled yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved: Option<AskReservation>,
    /// Where the reply came from; kept for consultations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<AskOrigin>,
}

/// The status of a question.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AskStatus {
    /// Under way.
    InFlight,
    /// A reply arrived and is to be read.
    Replied {
        /// The reply.
        reply: Reply,
    },
    /// The reply was read and used.
    Used {
        /// The reply; kept where the scene's conversation continues with it.
        reply: Reply,
    },
    /// The reply could not be used.
    Rejected {
        /// The reply, which is shown to the model with the problems.
        reply: Reply,
        /// The problems of the reply.
        problems: Vec<PlanProblem>,
    },
    /// No reply came.
    Failed {
        /// The reason.
        error: Fault,
    },
    /// The process that asked crashed.
    Lost,
}

/// The work on a question that is due.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::run) enum DueQuestion {
    /// Something is under way.
    Wait,
    /// Read this reply.
    Read(u32),
    Ask {
        attempt: u32,
        /// Whether the offline model is asked.
        fallback: bool,
    },
    /// All attempts failed.
    GiveUp(Fault),
}

impl RunState {
    /// Ordinals of the questions asked about `subject` since its last result, oldest first.
    pub fn tries(&self, subject: Subject) -> &[u32] {
        self.tries.get(&subject).map_or(&[], Vec::as_slice)
    }

    /// The ordinal of the next question to a model.
    pub fn next_ask(&self) -> u32 {
        self.asks.keys().next_back().copied().unwrap_or(0) + 1
    }

    /// Returns what is due for the ranking of the scenes by embeddings, which precedes the first plan. It is asked for once
    /// (and again after a restart of the process): if it fails, the plan does without it.
    pub(in crate::run) fn due_ranking(&self) -> Option<DueQuestion> {
        if self.settings().embeddings_timeout_ms == 0 || self.ranking.is_some() {
            return None;
        }
        let last = self.tries(Subject::Ranking).last();
        let Some((call, ask)) = last.and_then(|call| Some((*call, self.asks.get(call)?))) else {
            return Some(DueQuestion::Ask { attempt: 0, fallback: false });
        };
        match ask.status {
            AskStatus::InFlight => Some(DueQuestion::Wait),
            AskStatus::Replied { .. } | AskStatus::Used { .. } => Some(DueQuestion::Read(call)),
            AskStatus::Rejected { .. } | AskStatus::Failed { .. } | AskStatus::Lost => None,
        }
    }

    /// Returns what to do about the question on `subject`: at most `retries` repairs, then the
    /// offline model once if the settings allow it, then give up.
    pub(in crate::run) fn due_question(&self, subject: Subject, retries: u32) -> DueQuestion {
        let tries = self.tries(subject);
        let tried = || tries.iter().filter_map(|call| self.asks.get(call));
        let Some(last) = tries.last().and_then(|call| self.asks.get(call).map(|ask| (*call, ask))) else {
            // At `basic`, the offline model answers a request that needs no scene.
            return match (self.may_ask(subject), subject) {
                (true, _) => DueQuestion::Ask { attempt: 0, fallback: false },
                (false, Subject::Answer) if self.settings().fallback_enabled => {
                    DueQuestion::Ask { attempt: 0, fallback: true }
                }
                (false, _) => DueQuestion::GiveUp(self.unasked_fault(subject)),
            };
        };
        let (call, ask) = last;
        let repairs =
            tried().filter(|a| matches!(a.status, AskStatus::Rejected { .. }) && !a.fallback).count();
        let fault = match &ask.status {
            AskStatus::InFlight => return DueQuestion::Wait,
            AskStatus::Replied { .. } | AskStatus::Used { .. } => return DueQuestion::Read(call),
            AskStatus::Lost
                if tried().filter(|a| a.status == AskStatus::Lost).count() <= MAX_LOST_RETRIES =>
            {
                return DueQuestion::Ask { attempt: ask.attempt, fallback: ask.fallback };
            }
            AskStatus::Lost => Fault::new("llm.interrupted", "the process ended each time this was asked"),
            AskStatus::Rejected { problems, .. } => {
                if !ask.fallback && repairs <= retries as usize {
                    return DueQuestion::Ask { attempt: ask.attempt + 1, fallback: false };
                }
                let messages: Vec<&str> =
                    problems.iter().map(|p| p.message.as_str()).take(MAX_REPORTED_PROBLEMS).collect();
                let more = match problems.len().saturating_sub(messages.len()) {
                    0 => String::new(),
                    more => format!("; and {more} more like these"),
                };
                Fault::new(
                    "llm.unusable",
                    format!("{repairs} replies could not be used; the last: {}{more}", messages.join("; ")),
                )
            }
            AskStatus::Failed { error } => error.clone(),
        };
        if subject.has_fallback() && self.settings().fallback_enabled && !tried().any(|a| a.fallback) {
            DueQuestion::Ask { attempt: ask.attempt + 1, fallback: true }
        } else {
            DueQuestion::GiveUp(fault)
        }
    }

    /// Why no model worded an answer: the fault of the last question for it, such as an exceeded budget. Asking again
    /// later may not help.
    pub(in crate::run) fn unanswered_fault(&self) -> Fault {
        let last = self.asks.values().rev().find(|ask| ask.subject == Subject::Answer);
        match last.map(|ask| &ask.status) {
            Some(AskStatus::Failed { error }) if self.settings().has_rules(18) => error.clone(),
            _ => Fault::new("llm.no_answer", "no model could word an answer; try again later"),
        }
    }
}
