//! Which events are possible when. Checked before an event is appended and again before it is folded.

use super::action::Action;
use super::event::{Event, Outcome, PlanMade, Subject};
use super::state::{AskStatus, CallStatus, RunState};
use crate::plan::{self, StepStatus};

/// An event that cannot happen in the state it came to. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot follow: {why}")]
pub struct Illegal {
    /// The event's name.
    pub event: String,
    /// What stands against it.
    pub why: String,
}

impl RunState {
    /// Whether `event` can happen now: to be asked before it is appended, so that a journal holds
    /// only what took effect.
    ///
    /// # Errors
    /// [`Illegal`] with what stands against it.
    pub fn check(&self, event: &Event) -> Result<(), Illegal> {
        self.admit(event).map_err(|why| Illegal { event: event.key(), why })
    }

    /// Three kinds of events: those from outside (a request, a taking over, a wish to stop), the end
    /// of something under way, and all others, which happen only when [`RunState::next`] asks for them.
    fn admit(&self, event: &Event) -> Result<(), String> {
        require(!self.status.is_terminal(), "the run has ended")?;
        if let Event::RunQueued(_) = event {
            return require(self.queued.is_none(), "the request was accepted before");
        }
        require(self.queued.is_some(), "no request was accepted")?;
        match event {
            Event::RunQueued(_) | Event::CancelRequested { .. } | Event::RunFailed { .. } => Ok(()),
            Event::RunStarted(_) => require(self.started.is_none(), "it was started before"),
            Event::RunResumed { epoch } => require(*epoch > self.epoch, "a later epoch has taken the run over"),

            Event::ModelReplied { call, .. } | Event::ModelFailed { call, .. } => require(
                self.asks.get(call).is_some_and(|a| a.status == AskStatus::InFlight),
                "the question is not under way",
            ),
            Event::ToolCompleted { call, outcome, .. } => {
                match (self.calls.get(call).map(|c| &c.status), outcome) {
                    (Some(CallStatus::InFlight { .. }), _)
                    | (Some(CallStatus::Requested), Outcome::Refused { .. }) => Ok(()),
                    _ => Err("the call is not under way".to_owned()),
                }
            }

            Event::ModelAsked { call, subject, attempt, fallback, .. } => {
                // Several questions of one `next` may be asked in any order, so ordinals may come
                // out of order, and may have gaps; they never repeat.
                let highest = self.next_ask() as usize + self.steps.len();
                require(!self.asks.contains_key(call), "the question was asked before")?;
                require((1..=highest).contains(&(*call as usize)), "questions count up")?;
                let due = |a: &Action| {
                    matches!(a, Action::Ask { subject: s, attempt: n, fallback: f, .. }
                        if s == subject && n == attempt && f == fallback)
                };
                require(self.asks_for(due), "that question is not due")
            }
            Event::ToolStarted { call, attempt } => {
                require(self.asks_for(|a| *a == Action::Call { call: *call, attempt: *attempt }), "the call is not due")
            }
            Event::SceneReplied { step, call, calls, question, next, .. } => {
                let due = Action::Read { call: *call, subject: Subject::Scene { step: *step } };
                require(self.asks_for(|a| *a == due), "there is no such reply to read")?;
                let first = self.next_call();
                let counted = calls.iter().enumerate().all(|(i, c)| c.call == first + i as u32);
                require(counted, "calls count up by one")?;
                if next.is_none() {
                    return Ok(());
                }
                require(calls.is_empty() && question.is_none(), "a decision comes alone")?;
                require(self.steps.get(step).is_some_and(|s| !s.decided), "the scene has decided before")
            }
            Event::ReplyRejected { call, .. } => require(
                self.asks_for(|a| matches!(a, Action::Read { call: c, .. } if c == call)),
                "there is no reply to read",
            ),
            Event::PlanCreated(made) => {
                require(made.version == 1, "only the first plan is created; later ones replan")?;
                self.admit_plan(made)
            }
            Event::Replanned(made) => {
                require(made.version > 1, "the first plan is created")?;
                self.admit_plan(made)
            }
            Event::PlanningFailed { version, .. } => self.at(Subject::Plan { version: *version }),
            Event::Continuation { round, .. } => self.at(Subject::Continuation { round: *round }),
            Event::Answered { .. } => self.at(Subject::Answer),
            Event::StepFailed { step, status: StepStatus::Blocked, .. } => require(
                self.asks_for(|a| {
                    matches!(a, Action::Record { event: Event::StepFailed { step: s, status: StepStatus::Blocked, .. } }
                        if s == step)
                }),
                "the step is not blocked",
            ),
            Event::StepFailed { step, status, .. } => {
                require(status.is_terminal() && *status != StepStatus::Completed, "that is no way to fail")?;
                self.at(Subject::Scene { step: *step })
            }
            Event::StepCompleted { step, .. } => self.at(Subject::Scene { step: *step }),
            Event::RunCancelled { .. } => require(
                self.asks_for(|a| matches!(a, Action::Record { event: Event::RunCancelled { .. } })),
                "nobody wants it to stop, or a write is under way",
            ),
            Event::Planning { .. }
            | Event::StepStarted { .. }
            | Event::ToolSkipped { .. }
            | Event::RunCompleted { .. } => {
                require(self.asks_for(|a| matches!(a, Action::Record { event: e } if e == event)), "it is not due")
            }
        }
    }

    fn admit_plan(&self, made: &PlanMade) -> Result<(), String> {
        self.at(Subject::Plan { version: made.version })?;
        let limits = plan::Limits { max_steps: self.settings().max_steps };
        let problems = plan::structure(&made.plan, limits, &self.finished_steps(), self.last_step());
        match problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(()),
        }
    }

    /// Whether the machine stands at `subject`, with nothing under way for it: it wants to ask, to
    /// read, or to decide by itself.
    fn at(&self, subject: Subject) -> Result<(), String> {
        let here = self.asks_for(|action| match action {
            Action::Ask { subject: s, .. } | Action::Read { subject: s, .. } => *s == subject,
            Action::Record { event } => match event {
                Event::PlanningFailed { version, .. } => subject == Subject::Plan { version: *version },
                Event::Continuation { round, .. } => subject == Subject::Continuation { round: *round },
                Event::Answered { .. } => subject == Subject::Answer,
                Event::StepCompleted { step, .. } => subject == Subject::Scene { step: *step },
                Event::StepFailed { step, status, .. } => {
                    *status != StepStatus::Blocked && subject == Subject::Scene { step: *step }
                }
                _ => false,
            },
            Action::Start | Action::Call { .. } => false,
        });
        require(here, "the run does not stand there")
    }

    fn asks_for(&self, what: impl Fn(&Action) -> bool) -> bool {
        self.next().iter().any(what)
    }
}

fn require(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}
