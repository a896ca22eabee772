//! The facts of an event that other modules need, area by area.

use super::super::approval::{ApprovalSubject, Decision};
use super::area::EventArea;
use super::{Adaptation, Event, RunStatus, Subject, TimerSubject, UnexpectedSubject};
use crate::plan::PlanStatus;

/// The facts that the store, the metrics, the public stream and the replay derive from an event.
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

/// The change of a run's status by an event.
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

/// Where an event comes from, as far as the event itself shows that.
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
        /// Its subject.
        subject: Subject,
        /// 0, then the number of the repair.
        attempt: u32,
        /// Whether the offline model is asked.
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
        match self.area() {
            EventArea::Run => self.run_facts(),
            EventArea::Question => self.question_facts(),
            EventArea::Planning => self.planning_facts(),
            EventArea::Approval => self.approval_facts(),
            EventArea::Step => self.step_facts(),
            EventArea::Flow => self.flow_facts(),
            EventArea::Program => self.program_facts(),
            EventArea::Summary => self.summary_facts(),
            EventArea::Call => self.call_facts(),
            EventArea::Failure => self.failure_facts(),
            EventArea::Answer => self.answer_facts(),
        }
    }

    /// The facts of an internal event that the state machine makes.
    fn internal(&self, number: u32) -> EventFacts<'_> {
        EventFacts::internal(self.into(), number)
    }

    /// The facts of an event that clients see under its own name.
    fn public(&self, number: u32) -> EventFacts<'_> {
        EventFacts::public(self.into(), number)
    }

    fn run_facts(&self) -> EventFacts<'_> {
        match self {
            Event::RunQueued(_) => {
                self.internal(0).external().durable().sets(RunStatus::Queued).plan(PlanStatus::Draft)
            }
            Event::RunStarted(_) => self.public(0).from(Origin::Start).sets(RunStatus::Running),
            // Durable, since otherwise repeated crashes caused by the run would not be counted.
            Event::RunResumed { epoch, .. } => self.internal(*epoch).external().durable(),
            Event::RunPutAside { .. } => {
                self.internal(0).published("run_waiting").external().durable().sets(RunStatus::Waiting)
            }
            Event::RunWaiting {} => self.public(0).durable().sets(RunStatus::Waiting),
            Event::RunReopened { .. } => {
                self.internal(0).external().durable().sets(RunStatus::Running).plan(PlanStatus::Executing)
            }
            Event::PlanRecalled(_) | Event::PlanObserved(_) => self.internal(0).external(),
            Event::PlanRated { .. } => self.internal(0).external().durable(),
            Event::CancelRequested { .. } => {
                self.internal(0).from(Origin::Outside { awaited: true }).durable().resumes()
            }
            Event::RunCompleted { status } => {
                let plan = match status {
                    RunStatus::Completed => PlanStatus::Completed,
                    _ => PlanStatus::Failed,
                };
                self.public(0).durable().sets(*status).plan(plan)
            }
            Event::RunFailed { error } => self
                .public(0)
                .from(Origin::RunFailure { code: &error.code })
                .durable()
                .sets(RunStatus::Failed)
                .plan(PlanStatus::Failed),
            Event::RunCancelled { .. } => {
                self.public(0).durable().sets(RunStatus::Cancelled).plan(PlanStatus::Cancelled)
            }
            _ => self.internal(0),
        }
    }

    fn question_facts(&self) -> EventFacts<'_> {
        match self {
            Event::ModelAsked { call, subject, attempt, fallback, prompt_hash, .. } => {
                self.internal(*call).from(Origin::Question {
                    subject: *subject,
                    attempt: *attempt,
                    fallback: *fallback,
                    prompt_hash,
                })
            }
            Event::ModelReplied { call, .. } => self.internal(*call).from(Origin::Outside { awaited: true }),
            Event::ModelFailed { call, .. } => {
                self.internal(*call).from(Origin::QuestionFailure { call: *call })
            }
            Event::ReplyRejected { call, .. } | Event::ScenesRanked { call, .. } => self.internal(*call),
            _ => self.internal(0),
        }
    }

    fn planning_facts(&self) -> EventFacts<'_> {
        match self {
            Event::Planning { version, .. } => self.public(*version),
            Event::PlanningFailed { version, .. } => self.internal(*version),
            Event::PlanCreated(made) | Event::Replanned(made) => {
                self.public(made.version).plan(made.initial_status())
            }
            Event::PlanEdited(made) => {
                self.internal(made.version).published("replanned").command().plan(made.initial_status())
            }
            Event::ModificationAsked { version, .. } => {
                self.internal(*version).command().plan(PlanStatus::Draft)
            }
            Event::PlanRefused { version, .. } => self.internal(*version).external(),
            _ => self.internal(0),
        }
    }

    fn approval_facts(&self) -> EventFacts<'_> {
        match self {
            // A requested approval must exist when the decision arrives, and the decision when it takes effect.
            Event::ApprovalRequired { approval, matter, .. } => {
                let facts = self.public(*approval).durable();
                match matter {
                    ApprovalSubject::Plan { .. } => facts.plan(PlanStatus::PendingApproval),
                    ApprovalSubject::Call { .. } => facts,
                    ApprovalSubject::Outcome { call } => facts.from(Origin::OutcomeQuestion { call: *call }),
                }
            }
            Event::Decided { approval, matter, decision, .. } => {
                let facts = self.internal(*approval).command();
                match (matter, decision) {
                    (ApprovalSubject::Plan { .. }, Decision::Yes { .. }) => {
                        facts.published("plan_approved").plan(PlanStatus::Approved)
                    }
                    _ => facts,
                }
            }
            Event::ListChangeAsked { approval, .. } => self.internal(*approval).command(),
            // The machine decided it, by what a model replied.
            Event::ApprovalLapsed { approval, read: Some(_), .. } => self.internal(*approval),
            Event::ApprovalLapsed { approval, matter, .. } => {
                let facts = self.internal(*approval).command();
                match matter {
                    ApprovalSubject::Plan { .. } => facts.plan(PlanStatus::Draft),
                    ApprovalSubject::Call { .. } | ApprovalSubject::Outcome { .. } => facts,
                }
            }
            Event::Released { .. } => self.internal(0).command(),
            _ => self.internal(0),
        }
    }

    fn step_facts(&self) -> EventFacts<'_> {
        match self {
            Event::Forecast { step, .. } => self.public(*step).external(),
            Event::StepStarted { step } => self.public(*step).plan(PlanStatus::Executing),
            Event::SceneReplied { call, .. } => self.internal(*call),
            Event::Prepared { step, .. } => self.internal(*step),
            Event::StepCompleted { step, .. } | Event::StepFailed { step, .. } => self.public(*step),
            _ => self.internal(0),
        }
    }

    fn flow_facts(&self) -> EventFacts<'_> {
        match self {
            Event::PathRecalled { step, .. } | Event::PathObserved { step, .. } => {
                self.internal(*step).external()
            }
            Event::FlowPlanned { step, .. } | Event::NodeStarted { step, .. } => self.public(*step),
            Event::NodeReplied { call, .. } => self.internal(*call),
            _ => self.internal(0),
        }
    }

    fn program_facts(&self) -> EventFacts<'_> {
        match self {
            Event::ProgramWritten { step, .. } => self.public(*step),
            Event::ProgramReplied { step, .. } => self.public(*step).from(Origin::Outside { awaited: true }),
            _ => self.internal(0),
        }
    }

    fn summary_facts(&self) -> EventFacts<'_> {
        match self {
            Event::SummaryPlanned { step, tool_call, .. } => {
                self.public(summary_number(*step, *tool_call)).external()
            }
            Event::SummaryStopped { step, tool_call, .. } => {
                self.internal(summary_number(*step, *tool_call)).external()
            }
            Event::SummaryPart { step, tool_call, part, call, .. } => {
                let facts = self.public(part_number(summary_number(*step, *tool_call), *part));
                // The reading of a reply needs the documents, which a replay does not have.
                if call.is_some() { facts.external() } else { facts }
            }
            _ => self.internal(0),
        }
    }

    fn call_facts(&self) -> EventFacts<'_> {
        match self {
            Event::ToolStarted { call, attempt } => {
                self.public(*call).durable_if_writing().from(Origin::Call { call: *call, attempt: *attempt })
            }
            Event::ToolCompleted { call, .. } => {
                self.public(*call).durable_if_writing().from(Origin::CallEnd { call: *call })
            }
            Event::ToolSkipped { call, .. } => self.public(*call),
            Event::Compensating { undoes, .. } => self.internal(*undoes),
            _ => self.internal(0),
        }
    }

    fn failure_facts(&self) -> EventFacts<'_> {
        match self {
            Event::Unexpected { subject, .. } => match subject {
                UnexpectedSubject::Call { call, .. } => self.public(*call).durable_if_writing(),
                UnexpectedSubject::Step { step } => self.public(*step),
                UnexpectedSubject::Run { idle_steps } => self.public(*idle_steps),
            },
            Event::Voted { question, .. } => self.internal(*question),
            Event::Consultation { consultation, .. } => self.public(*consultation).durable_if_writing(),
            // Durable, since otherwise a crash would end the wait that a server asked for.
            Event::BackedOff { call, .. } => self.public(*call).durable(),
            Event::TimerFired { timer: TimerSubject::Retry { call, .. } } => {
                self.internal(*call).from(Origin::Outside { awaited: true })
            }
            Event::Adapted { change: Adaptation::Recalled { call, .. } } => self.public(*call).external(),
            Event::Adapted {
                change: Adaptation::Substituted { call, .. } | Adaptation::Interpreted { call, .. },
            } => self.public(*call),
            _ => self.internal(0),
        }
    }

    fn answer_facts(&self) -> EventFacts<'_> {
        match self {
            Event::Continuation { round, .. } => self.public(*round),
            Event::Answered { .. } => self.public(0),
            _ => self.internal(0),
        }
    }

    /// The event's name in the journal.
    pub fn name(&self) -> &'static str {
        self.into()
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

    /// Returns whether the event ends the run.
    pub fn is_terminal(&self) -> bool {
        matches!(self.facts().status, Some(StatusChange::Set(status)) if status.is_terminal())
    }

    /// Returns what it records as spent on models, in nano-USD.
    pub(crate) fn cost_nano_usd(&self) -> u64 {
        match self {
            Event::ModelReplied { usage, .. } | Event::ModelFailed { usage, .. } => usage.cost_nano_usd,
            _ => 0,
        }
    }

    /// Returns whether this event must be on disk before the run continues. `writes` says whether its call writes.
    pub fn must_be_durable(&self, writes: bool) -> bool {
        match self.facts().durability {
            Durability::Always => true,
            Durability::IfWriting => writes,
            Durability::Deferred => false,
        }
    }
}

/// The number that identifies a summary in event names: that of its step, or for a call's summary a number after those
/// of all steps.
fn summary_number(step: u32, tool_call: Option<u32>) -> u32 {
    tool_call.map_or(step, |call| call.saturating_add(100_000))
}

/// The number that identifies a part of a summary among the parts of all summaries: a summary has fewer than 10,000
/// parts.
fn part_number(summary: u32, part: u32) -> u32 {
    summary.saturating_mul(10_000).saturating_add(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strum::VariantNames;

    use super::*;

    /// The last arm of each area is for events of other areas. No event may get its facts there by accident.
    #[test]
    fn every_event_states_its_facts() {
        let source = include_str!("facts.rs");
        for name in Event::VARIANTS {
            let words = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
            let variant = format!("Event::{}", words.collect::<String>());
            let states = |rest: &str| rest.starts_with([' ', '(']);
            assert!(source.split(&variant).skip(1).any(states), "{variant}");
        }
    }

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
