//! Steps of kind code: their programs, the inputs of these, and what later steps use of their results.

use serde_json::{Value, json};

use super::approval::{Approval, ApprovalSubject, Decision, EXPIRY};
use super::event::{Effect, Event, Fault, Outcome, PlanMaker, ProgramStop, RequestedCall, Subject};
use super::settings::PlanningMaker;
use super::state::{AskStatus, CallState, RunState, StepState};
use super::work::{CodeWork, DIVERGED, ProgramStepCall, STAGED_CONFLICT, StepWork, WrittenProgram};
use crate::invisible::one_line;
use crate::plan::{Reference, StepKind, StepStatus};
use crate::program::{PastCall, PastOutcome};

/// How many writes of a program a message lists.
const LISTED_WRITES: usize = 10;

impl RunState {
    /// Returns whether the first plan is one step of kind code, so that no planner is asked for it.
    pub fn is_planned_as_program(&self) -> bool {
        let given = self.queued.as_ref().is_some_and(|queued| queued.plan.is_some());
        self.settings().maker == PlanningMaker::Code && !given && !self.is_confirmation()
    }

    /// The calls of a program so far, with the outcomes that the program receives; `None` if one of them has no such
    /// outcome.
    pub fn past_calls(&self, work: &CodeWork) -> Option<Vec<PastCall>> {
        let calls = work.program_calls.iter();
        calls
            .map(|call| Some(PastCall { call: call.written.clone(), outcome: self.past_outcome(call.call)? }))
            .collect()
    }

    /// The outcome of a call as a program receives it; `None` while the call has none, and if it is unknown.
    pub(super) fn past_outcome(&self, call: u32) -> Option<PastOutcome> {
        match self.outcome(call)? {
            Outcome::Ok { result, whole: None, .. } if self.is_written(call) && is_truncated(result) => {
                // The program would take a part of the result for the whole.
                let note = "it was done; its result is too large for a program";
                Some(PastOutcome::Returned(json!({"done": true, "note": note})))
            }
            Outcome::Ok { result, whole, .. } => {
                Some(PastOutcome::Returned(whole.as_ref().unwrap_or(result).clone()))
            }
            Outcome::Unknown { .. } => None,
            outcome @ (Outcome::Refused { error } | Outcome::Failed { error }) => {
                let problem = self.calls.get(&call).and_then(|call| call.requested.problem.as_ref());
                // A message to the author of a program is no text for users; any other message may become one.
                Some(PastOutcome::Raised(match problem {
                    Some(_) => error.message.clone(),
                    None => outcome.user_text(self.language()),
                }))
            }
        }
    }

    /// Returns whether the program of a step was written before the first result of a tool and calls `tool` of `scene` by name.
    pub fn is_foreseen_by_program(&self, step: &StepState, scene: &str, tool: &str) -> bool {
        let program = step.code().and_then(|work| work.program.as_ref());
        let Some(program) = program.filter(|program| program.is_foreseen) else { return false };
        let name = format!("{scene}.{tool}");
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        program.source.match_indices(&name).any(|(at, _)| {
            let before = program.source[..at].chars().next_back();
            let after = program.source[at + name.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    }

    /// Returns whether nobody decided about a call in time. A program does not continue after that as after a refusal.
    pub(super) fn was_left_undecided(&self, call: u32) -> bool {
        let about = ApprovalSubject::Call { call };
        let expired =
            |approval: &Approval| matches!(&approval.decided, Some((Decision::No, by)) if by == EXPIRY);
        self.approvals.values().any(|approval| approval.matter == about && expired(approval))
    }

    /// Returns whether another question waits for the user, so that words could not answer the question about `call`:
    /// one of any step if a program asks the question, and otherwise one of a program.
    pub(super) fn has_open_question_beside(&self, call: u32) -> bool {
        let is_of_program = self.is_of_program(ApprovalSubject::Call { call });
        let asks = |approval: &Approval| approval.is_open() && approval.needed.by_user;
        let mut open = self.approvals.values().filter(|approval| asks(approval));
        open.any(|approval| is_of_program || self.is_of_program(approval.matter))
    }

    /// The answer that the only step of the run gave, where that is a program.
    pub(super) fn answer_of_program(&self) -> Option<String> {
        let mut steps = self.plan_steps().map(|(_, step)| step);
        let (Some(only), None) = (steps.next(), steps.next()) else { return None };
        let result = only.code().filter(|_| only.status == StepStatus::Completed)?.result(self)?;
        Some(result.text())
    }

    /// Returns whether no check follows the steps, because the plan in force is a program or its program has answered.
    pub(super) fn is_answered_by_program(&self) -> bool {
        self.plan().is_some_and(|made| made.maker == PlanMaker::Code) || self.answer_of_program().is_some()
    }

    /// The value that a reference to a step of kind code stands for. It comes from a program that a model wrote, so it
    /// is no source for a write.
    pub(super) fn referenced_in_program(
        &self,
        step: &StepState,
        reference: &Reference,
        by: Effect,
    ) -> Result<Value, String> {
        let number = reference.step;
        if by == Effect::Write {
            return Err(format!("what the program of step {number} made is no source of a write"));
        }
        let finished = step.code().filter(|_| step.status == StepStatus::Completed);
        let finished = finished.and_then(|work| work.result(self));
        let output = finished.map(|result| json!(result));
        let output = output.ok_or_else(|| format!("step {number} did not complete"))?;
        let value = output.pointer(&reference.pointer).filter(|value| !value.is_null()).cloned();
        value.ok_or_else(|| {
            format!("what the program of step {number} made has nothing at {:?}", reference.pointer)
        })
    }

    /// Folds a program, or where an execution of it stopped.
    pub(super) fn fold_program(&mut self, event: &Event) {
        match event {
            Event::ProgramWritten { step, source, now_ms, seed, functions, .. } => {
                let subject = Subject::Program { step: *step };
                let asks = self.tries(subject).iter().filter_map(|call| self.asks.get(call));
                let asked = asks.filter(|ask| ask.status != AskStatus::Lost).count() as u32;
                let follows = |step: &StepState| step.step.depends_on_step.iter().next().is_some();
                let is_foreseen =
                    self.plans_before_results.is_none() && !self.steps.get(step).is_some_and(follows);
                let functions = functions.clone();
                let program = WrittenProgram {
                    source: source.clone(),
                    now_ms: *now_ms,
                    seed: *seed,
                    is_foreseen,
                    functions,
                };
                let keeps_calls = self.steps.get(step).and_then(StepState::code).is_some_and(|work| {
                    let calls = work.program_calls.iter().filter_map(|made| self.calls.get(&made.call));
                    calls.into_iter().any(|call| call.requested.effect == Effect::Write && call.attempts > 0)
                });
                self.use_reply_about(subject);
                self.step(*step, |state| {
                    if let StepWork::Code(work) = &mut state.work {
                        work.begin(program, asked, keeps_calls);
                    }
                });
            }
            Event::ProgramReplied { step, stop, millis } => {
                if let ProgramStop::Call { requested, is_untraced, ends, .. } = stop {
                    self.request_calls(*step, std::slice::from_ref(&**requested), false);
                    self.calls.change(requested.call, |call| {
                        call.is_untraced = *is_untraced;
                        call.is_commit = ends.is_some();
                    });
                }
                if !self.is_conflict_after_write(*step, stop, *millis) {
                    self.step(*step, |state| state.work.fold(event, &[]));
                }
            }
            _ => {}
        }
    }

    /// Keeps the calls of a program that met a conflict after it had written: it has failed, and does not begin again.
    fn is_conflict_after_write(&mut self, step: u32, stop: &ProgramStop, millis: u64) -> bool {
        let ProgramStop::Fault { fault } = stop else { return false };
        let work = self.steps.get(&step).and_then(StepState::code);
        let keeps =
            fault.code == STAGED_CONFLICT && work.is_some_and(|work| self.has_changed_by_program(work));
        if keeps {
            self.step(step, |state| {
                if let StepWork::Code(work) = &mut state.work {
                    work.executions += 1;
                    work.executed_ms = work.executed_ms.saturating_add(millis);
                    work.fault = Some(fault.clone());
                }
            });
        }
        keeps
    }

    /// Returns what a step of kind code keeps when it begins again: its program, unless it failed by itself before it changed
    /// anything, and its calls up to the last write that took effect, or up to the first that was not done. A program that failed
    /// by itself is kept with its fault: another one makes the same calls first. A program whose changes were committed, or may
    /// have been, is kept as it ended: it is neither executed again nor replaced, so nothing is committed a second time.
    pub(super) fn kept_program(&self, number: u32) -> Option<CodeWork> {
        let work = self.steps.get(&number)?.code()?;
        let program = work.program.clone()?;
        let calls = &work.program_calls;
        let is_undone = |call: u32| self.calls.get(&call).is_some_and(|call| self.is_undone(call));
        let may_be_committed = |last: &ProgramStepCall| {
            let outcome = self.outcome(last.call);
            last.is_commit(self) && matches!(outcome, Some(Outcome::Ok { .. } | Outcome::Unknown { .. }))
        };
        if calls.last().is_some_and(may_be_committed)
            && work.ending.is_some()
            && !calls.iter().any(|made| is_undone(made.call))
        {
            let (program_calls, ending) = (calls.clone(), work.ending.clone());
            return Some(CodeWork { program: Some(program), program_calls, ending, ..CodeWork::default() });
        }
        let call_of = |call: u32| self.calls.get(&call);
        let stands = |call: u32| {
            matches!(self.outcome(call), Some(Outcome::Ok { .. }))
                && call_of(call).is_some_and(|call| !self.is_undone(call))
        };
        let has_effect = |call: u32| {
            self.is_written(call) && stands(call) && call_of(call).is_some_and(|call| call.attempts > 0)
        };
        let written = calls.iter().rposition(|made| has_effect(made.call)).map_or(0, |at| at + 1);
        let is_own = work.has_own_fault(self);
        if is_own && written == 0 {
            return None;
        }
        let standing = calls.iter().take_while(|made| stands(made.call)).count();
        let kept = if is_own { calls.len().min(written.max(standing)) } else { written.max(standing) };
        let undone =
            calls[..kept].iter().any(|made| call_of(made.call).is_some_and(|call| self.is_undone(call)));
        // The program would be told that an undone write was done.
        let unavailable = undone.then(|| {
            let why = "a write in the middle of the program was undone, so that it cannot go on: ask for what is left in a new \
                       request";
            Fault::new("code.undone", why)
        });
        let fault = work.fault.clone().filter(|fault| is_own || fault.code == DIVERGED);
        let program_calls = calls[..kept].to_vec();
        Some(CodeWork { program: Some(program), program_calls, fault, unavailable, ..CodeWork::default() })
    }

    /// The writes that a program has called, by ordinal, without the commit of what it staged.
    pub fn writes_of_program<'a>(&'a self, work: &'a CodeWork) -> impl Iterator<Item = (u32, &'a CallState)> {
        let written = work.program_calls.iter().filter(move |call| !call.is_commit(self));
        let calls = written.filter_map(move |written| Some((written.call, self.calls.get(&written.call)?)));
        calls.filter(|(_, call)| call.requested.effect == Effect::Write)
    }

    /// The writes of a program that were done and not undone, in words; empty where there are none.
    pub fn done_by_program(&self, work: &CodeWork) -> String {
        let calls = self
            .writes_of_program(work)
            .filter(|(number, call)| self.was_made(*number) && !self.is_undone(call));
        let words = calls.filter_map(|(number, call)| match self.outcome(number)? {
            Outcome::Ok { say: Some(say), .. } => Some(one_line(say)),
            Outcome::Ok { .. } => {
                let RequestedCall { tool, arguments, .. } = &call.requested;
                Some(one_line(&format!("{}.{tool}({arguments})", call.scene)))
            }
            _ => None,
        });
        let mut words: Vec<String> = words.collect();
        let more = words.len().saturating_sub(LISTED_WRITES);
        words.truncate(LISTED_WRITES);
        if more > 0 {
            words.push(format!("and {more} more"));
        }
        words.join("; ")
    }

    /// Whether a call was made, or shares the outcome of one that was. In a dry run no write is made.
    fn was_made(&self, call: u32) -> bool {
        self.calls.get(&self.resolved(call)).is_some_and(|call| call.attempts > 0)
    }

    /// Returns whether a program has changed something, or may have, so that it cannot begin again.
    pub fn has_changed_by_program(&self, work: &CodeWork) -> bool {
        work.program_calls.iter().any(|written| {
            let nothing =
                matches!(self.outcome(written.call), Some(Outcome::Refused { .. } | Outcome::Failed { .. }));
            self.is_written(written.call) && self.was_made(written.call) && !nothing
        })
    }

    fn is_written(&self, call: u32) -> bool {
        self.calls.get(&call).is_some_and(|call| call.requested.effect == Effect::Write)
    }

    /// Checks that the outcome of a program's execution is due, and that a call has the next ordinal and names its scene.
    pub(super) fn admit_program_stop(&self, step: u32, stop: &ProgramStop) -> Result<(), String> {
        let ProgramStop::Call { requested, written, ends, .. } = stop else { return Ok(()) };
        if requested.call != self.next_call() {
            return Err("call ordinals must increase by one".to_owned());
        }
        let name = requested.scene.as_ref().map(|scene| format!("{scene}.{}", requested.tool));
        if name.as_ref() != Some(&written.function) {
            return Err("the call is not the one that the program wrote".to_owned());
        }
        let may_commit = requested.effect == Effect::Write && written.arguments.is_empty();
        if ends.is_some() && !may_commit {
            return Err("what a program writes is no commit of what it staged".to_owned());
        }
        let made = self.steps.get(&step).and_then(StepState::code).map_or(0, |work| work.program_calls.len());
        match made < self.settings().max_calls as usize {
            true => Ok(()),
            false => Err("the program has made as many calls as it may".to_owned()),
        }
    }

    /// Returns whether a step executes a program.
    pub fn is_program(&self, step: u32) -> bool {
        self.steps.get(&step).is_some_and(|step| step.step.kind == StepKind::Code)
    }
}

/// Whether a stored result is only a part of what the tool returned.
fn is_truncated(result: &Value) -> bool {
    let has_sizes = ["shown_bytes", "total_bytes"].iter().all(|name| result.get(name).is_some());
    has_sizes && result.get("truncated") == Some(&Value::Bool(true))
}
