//! The facts of an event that other modules need: one exhaustive match, which a new event extends.

use super::super::approval::{ApprovalSubject, Decision};
use super::{Adaptation, Event, RunStatus, Subject, TimerSubject, UnexpectedSubject};
use crate::plan::PlanStatus;

/// What the store, the metrics, the public stream and the replay derive from an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFacts<'a> {
    /// Its name in the journal.
    pub name: &'static str,
    /// The ordinal of its subject, which with the name identifies it within its run; 0 for the run itself.
    pub number: u32,
    /// Its name on client streams; `None` for internal events.
    pub public_name: Option<&'static str>,
    /// When it must be on disk.
    pub durability: Durability,
    /// What it changes in the run's status in lists.
    pub status: Option<StatusChange>,
    /// The plan status that it leads to. A plan that is executing stays so until it ends, whatever its later
    /// versions need; see `RunState::plan_after`.
    pub plan_status: Option<PlanStatus>,
    /// Where it comes from, for the replay.
    pub origin: Origin<'a>,
}

/// When an event must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the run continues, because something outside depends on it: an accepted request, a takeover, a
    /// person's decision and the request for it, an end.
    Always,
    /// Before the run continues if its call writes: a write's intent and outcome.
    IfWriting,
    /// With the next commit. After a crash it is made again.
    Deferred,
}

/// What an event changes in a run's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusChange {
    /// Sets the status.
    Set(RunStatus),
    /// Sets a waiting run to running; any other status stays.
    Resume,
}

impl StatusChange {
    /// The status after the change.
    #[must_use]
    pub fn apply(self, now: RunStatus) -> RunStatus {
        match self {
            StatusChange::Set(status) => status,
            StatusChange::Resume if now == RunStatus::Waiting => RunStatus::Running,
            StatusChange::Resume => now,
        }
    }
}

/// Where an event comes from, as far as the event alone tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin<'a> {
    /// From outside: the replay takes it as recorded.
    Outside {
        /// Whether the run was waiting for it, so that nothing else was due.
        awaited: bool,
    },
    /// The start of the run; what it freezes is taken as recorded.
    Start,
    /// A question to a model.
    Question {
        /// What it is about.
        subject: Subject,
        /// 0, then the number of the repair.
        attempt: u32,
        /// Whether the embedded rules are asked.
        fallback: bool,
        /// SHA-256 of the prompt, in hex.
        prompt_hash: &'a str,
    },
    /// The end of a question without a reply; only its cost, if the question was interrupted.
    QuestionFailure {
        /// The question's ordinal.
        call: u32,
    },
    /// The start of a tool call.
    Call {
        /// Its ordinal.
        call: u32,
        /// From 1.
        attempt: u32,
    },
    /// The end of a tool call, unless the state machine refused it.
    CallEnd {
        /// Its ordinal.
        call: u32,
    },
    /// A person is asked what a write did. From outside if the write is still in progress, because its run
    /// cannot be continued.
    OutcomeQuestion {
        /// The write's ordinal.
        call: u32,
    },
    /// The failure of the run; some codes are those of the driver.
    RunFailure {
        /// The fault's code.
        code: &'a str,
    },
    /// The state machine, or the reading of a reply: the replay makes it again.
    Machine,
}

impl<'a> EventFacts<'a> {
    /// An internal event that the state machine makes.
    fn internal(name: &'static str, number: u32) -> Self {
        Self {
            name,
            number,
            public_name: None,
            durability: Durability::Deferred,
            status: None,
            plan_status: None,
            origin: Origin::Machine,
        }
    }

    /// An event that clients see under its own name.
    fn public(name: &'static str, number: u32) -> Self {
        Self::internal(name, number).published(name)
    }

    fn published(self, name: &'static str) -> Self {
        Self { public_name: Some(name), ..self }
    }

    fn durable(self) -> Self {
        Self { durability: Durability::Always, ..self }
    }

    fn durable_if_writing(self) -> Self {
        Self { durability: Durability::IfWriting, ..self }
    }

    fn sets(self, status: RunStatus) -> Self {
        Self { status: Some(StatusChange::Set(status)), ..self }
    }

    fn resumes(self) -> Self {
        Self { status: Some(StatusChange::Resume), ..self }
    }

    fn plan(self, status: PlanStatus) -> Self {
        Self { plan_status: Some(status), ..self }
    }

    fn from(self, origin: Origin<'a>) -> Self {
        Self { origin, ..self }
    }

    /// From outside, whatever is due.
    fn external(self) -> Self {
        self.from(Origin::Outside { awaited: false })
    }

    /// A person's command about a run that may be waiting.
    fn command(self) -> Self {
        self.external().durable().resumes()
    }
}

impl Event {
    /// Its facts. The only place where an event's kind decides its name, number, durability, statuses,
    /// public form and origin.
    pub fn facts(&self) -> EventFacts<'_> {
        let internal = |number| EventFacts::internal(self.into(), number);
        let public = |number| EventFacts::public(self.into(), number);
        match self {
            Event::RunQueued(_) => {
                internal(0).external().durable().sets(RunStatus::Queued).plan(PlanStatus::Draft)
            }
            Event::RunStarted(_) => public(0).from(Origin::Start).sets(RunStatus::Running),
            // Durable, since otherwise repeated crashes caused by the run would not be counted.
            Event::RunResumed { epoch, .. } => internal(*epoch).external().durable(),
            Event::RunPutAside { .. } => {
                internal(0).published("run_waiting").external().durable().sets(RunStatus::Waiting)
            }
            Event::Planning { version, .. } => public(*version),
            Event::PlanRecalled(_) | Event::PlanObserved(_) => internal(0).external(),
            Event::PathRecalled { step, .. } | Event::PathObserved { step, .. } => internal(*step).external(),
            Event::PlanRated { .. } => internal(0).external().durable(),
            Event::ModelAsked { call, subject, attempt, fallback, prompt_hash, .. } => {
                internal(*call).from(Origin::Question {
                    subject: *subject,
                    attempt: *attempt,
                    fallback: *fallback,
                    prompt_hash,
                })
            }
            Event::ModelReplied { call, .. } => internal(*call).from(Origin::Outside { awaited: true }),
            Event::ModelFailed { call, .. } => internal(*call).from(Origin::QuestionFailure { call: *call }),
            Event::PlanningFailed { version, .. } => internal(*version),
            Event::ReplyRejected { call, .. } | Event::ScenesRanked { call, .. } => internal(*call),
            Event::PlanCreated(made) => public(made.version).plan(made.initial_status()),
            Event::Replanned(made) => public(made.version).plan(made.initial_status()),
            Event::PlanEdited(made) => {
                internal(made.version).published("replanned").command().plan(made.initial_status())
            }
            Event::ModificationAsked { version, .. } => internal(*version).command().plan(PlanStatus::Draft),
            // A requested approval must exist when the decision arrives, and the decision when it takes effect.
            Event::ApprovalRequired { approval, matter, .. } => {
                let facts = public(*approval).durable();
                match matter {
                    ApprovalSubject::Plan { .. } => facts.plan(PlanStatus::PendingApproval),
                    ApprovalSubject::Call { .. } => facts,
                    ApprovalSubject::Outcome { call } => facts.from(Origin::OutcomeQuestion { call: *call }),
                }
            }
            Event::Decided { approval, matter, decision, .. } => {
                let facts = internal(*approval).command();
                match (matter, decision) {
                    (ApprovalSubject::Plan { .. }, Decision::Yes { .. }) => {
                        facts.published("plan_approved").plan(PlanStatus::Approved)
                    }
                    _ => facts,
                }
            }
            Event::ListChangeAsked { approval, .. } => internal(*approval).command(),
            // The machine decided it, by what a model replied.
            Event::ApprovalLapsed { approval, read: Some(_), .. } => internal(*approval),
            Event::ApprovalLapsed { approval, matter, .. } => {
                let facts = internal(*approval).command();
                match matter {
                    ApprovalSubject::Plan { .. } => facts.plan(PlanStatus::Draft),
                    ApprovalSubject::Call { .. } | ApprovalSubject::Outcome { .. } => facts,
                }
            }
            Event::Released { .. } => internal(0).command(),
            Event::RunWaiting {} => public(0).durable().sets(RunStatus::Waiting),
            Event::PlanRefused { version, .. } => internal(*version).external(),
            Event::RunReopened { .. } => {
                internal(0).external().durable().sets(RunStatus::Running).plan(PlanStatus::Executing)
            }
            Event::Compensating { undoes, .. } => internal(*undoes),
            Event::Forecast { step, .. } => public(*step).external(),
            Event::StepStarted { step } => public(*step).plan(PlanStatus::Executing),
            Event::FlowPlanned { step, .. } | Event::NodeStarted { step, .. } => public(*step),
            Event::SceneReplied { call, .. } | Event::NodeReplied { call, .. } => internal(*call),
            Event::Prepared { step, .. } => internal(*step),
            Event::SummaryPlanned { step, tool_call, .. } => {
                public(summary_number(*step, *tool_call)).external()
            }
            Event::SummaryStopped { step, tool_call, .. } => {
                internal(summary_number(*step, *tool_call)).external()
            }
            Event::SummaryPart { step, tool_call, part, call, .. } => {
                let facts = public(part_number(summary_number(*step, *tool_call), *part));
                // The reading of a reply needs the documents, which a replay does not have.
                if call.is_some() { facts.external() } else { facts }
            }
            Event::ProgramWritten { step, .. } => public(*step),
            Event::ProgramReplied { step, .. } => public(*step).from(Origin::Outside { awaited: true }),
            Event::ToolStarted { call, attempt } => {
                public(*call).durable_if_writing().from(Origin::Call { call: *call, attempt: *attempt })
            }
            Event::ToolCompleted { call, .. } => {
                public(*call).durable_if_writing().from(Origin::CallEnd { call: *call })
            }
            Event::Unexpected { subject, .. } => match subject {
                UnexpectedSubject::Call { call, .. } => public(*call).durable_if_writing(),
                UnexpectedSubject::Step { step } => public(*step),
                UnexpectedSubject::Run { idle_steps } => public(*idle_steps),
            },
            Event::Voted { question, .. } => internal(*question),
            Event::Consultation { consultation, .. } => public(*consultation).durable_if_writing(),
            // Durable, since otherwise a crash would end the wait that a server asked for.
            Event::BackedOff { call, .. } => public(*call).durable(),
            Event::TimerFired { timer: TimerSubject::Retry { call, .. } } => {
                internal(*call).from(Origin::Outside { awaited: true })
            }
            Event::Adapted { change: Adaptation::Substituted { call, .. } } => public(*call),
            Event::Adapted { change: Adaptation::Interpreted { call, .. } } => public(*call),
            Event::Adapted { change: Adaptation::Recalled { call, .. } } => {
                public(*call).from(Origin::Outside { awaited: false })
            }
            Event::ToolSkipped { call, .. } => public(*call),
            Event::StepCompleted { step, .. } => public(*step),
            Event::StepFailed { step, .. } => public(*step),
            Event::Continuation { round, .. } => public(*round),
            Event::Answered { .. } => public(0),
            Event::CancelRequested { .. } => {
                internal(0).from(Origin::Outside { awaited: true }).durable().resumes()
            }
            Event::RunCompleted { status } => {
                let plan = match status {
                    RunStatus::Completed => PlanStatus::Completed,
                    _ => PlanStatus::Failed,
                };
                public(0).durable().sets(*status).plan(plan)
            }
            Event::RunFailed { error } => public(0)
                .from(Origin::RunFailure { code: &error.code })
                .durable()
                .sets(RunStatus::Failed)
                .plan(PlanStatus::Failed),
            Event::RunCancelled { .. } => {
                public(0).durable().sets(RunStatus::Cancelled).plan(PlanStatus::Cancelled)
            }
        }
    }

    /// The event's name in the journal.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// The event's name and the ordinal of its subject: stable within a run.
    pub fn key(&self) -> String {
        let EventFacts { name, number, .. } = self.facts();
        format!("{name}/{number}")
    }

    /// The event's name on client streams; `None` for internal events.
    pub fn public_name(&self) -> Option<&'static str> {
        self.facts().public_name
    }

    /// Whether the event ends the run.
    pub fn is_terminal(&self) -> bool {
        matches!(self.facts().status, Some(StatusChange::Set(status)) if status.is_terminal())
    }

    /// Whether this event must be on disk before the run continues. `writes` says whether its call writes.
    pub fn must_be_durable(&self, writes: bool) -> bool {
        match self.facts().durability {
            Durability::Always => true,
            Durability::IfWriting => writes,
            Durability::Deferred => false,
        }
    }
}

/// The number of a summary: that of its step, or one behind those of all steps for that of a call.
fn summary_number(step: u32, tool_call: Option<u32>) -> u32 {
    tool_call.map_or(step, |call| call.saturating_add(100_000))
}

/// The number of a part of a summary among those of all summaries: a summary has fewer than 10,000 parts.
fn part_number(summary: u32, part: u32) -> u32 {
    summary.saturating_mul(10_000).saturating_add(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strum::VariantNames;

    use super::*;

    #[test]
    fn names_are_the_tags_of_the_journal() {
        for name in Event::VARIANTS {
            let read = serde_json::from_value::<Event>(json!({ "type": name }));
            match read {
                Ok(event) => assert_eq!(event.name(), *name),
                Err(error) => assert!(!error.to_string().contains("unknown variant"), "{error}"),
            }
        }
    }
}
