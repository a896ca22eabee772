//! The work of a step of kind code: a model writes a program, which is executed until it stops at a call. The call is made
//! as any other, and the program is executed again from its start with its outcome, until it ends.

use serde::Serialize;

use super::super::action::Action;
use super::super::event::{Effect, Event, Fault, Outcome, ProgramStop, Subject};
use super::super::next::record;
use super::super::state::{DueQuestion, RunState};
use crate::program::contract::STATUSES;
use crate::program::{PastOutcome, ProgramCall, ProgramFault, ProgramResult};

/// The fault code of a program that makes other calls when it is executed again.
pub(in crate::run) const DIVERGED: &str = "code.diverged";

/// The fault code of an exception that the program does not handle.
const ERROR: &str = "code.error";

/// The fault code of the error of a call, where the interpreter names it.
const CALL: &str = "code.call";

/// The fault code of what a person did not approve.
const NOT_APPROVED: &str = "approval.refused";

/// How many refusals of people a program may get.
const MAX_REFUSALS: usize = 1;

/// The fault code of a program whose rows were changed by others during its execution: it did nothing, and is executed
/// again.
pub const STAGED_CONFLICT: &str = "staged.conflict";

/// What the fault codes of programs begin with.
const CODE: &str = "code.";

/// The prefix of fault codes of staged changes that were not made: no other program is asked for then.
const STAGED: &str = "staged.";

/// How often a program whose rows change is executed from its reads.
const MAX_DRY_RUNS: u32 = 3;

/// How many characters of a raised message are compared with the fault of a program.
const COMPARED_CHARS: usize = 100;

/// The progress of a step of kind code.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CodeWork {
    /// The last program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<WrittenProgram>,
    /// Its calls, in their order.
    pub program_calls: Vec<ProgramStepCall>,
    /// How many questions were asked for the programs so far.
    pub asked: u32,
    /// How often programs of the step were executed.
    pub executions: u32,
    /// Milliseconds that the executions of the last program took.
    #[serde(skip_serializing_if = "crate::run::is_default")]
    pub executed_ms: u64,
    /// How often rows changed while the program was under way.
    #[serde(skip_serializing_if = "crate::run::is_default")]
    pub conflicts: u32,
    /// Why the last program did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<ProgramFault>,
    /// Why programs cannot be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Fault>,
    /// The result of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Box<ProgramResult>>,
    /// The result that the program has once its last call, which commits its staged changes, is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Box<ProgramResult>>,
    /// The program's output when it ended, within a bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub printed: String,
}

/// A program, with everything that its executions have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenProgram {
    /// The Python source.
    pub source: String,
    /// The time of its clock, in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// Where its random numbers start.
    pub seed: u64,
    /// Whether it was written before the first result of a tool or step, so that no result can have influenced which
    /// calls it makes.
    pub is_foreseen: bool,
    /// SHA-256 in hex of the definitions of the tools that it may call.
    pub functions: String,
}

/// A call of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramStepCall {
    /// The call's ordinal in the run.
    pub call: u32,
    /// The call as the program wrote it.
    pub written: ProgramCall,
}

impl ProgramStepCall {
    /// Returns whether it is the commit of what the program staged: the machine requests it, and the program wrote no such call.
    pub fn is_commit(&self, run: &RunState) -> bool {
        run.calls.get(&self.call).is_some_and(|call| call.is_commit)
    }
}

impl CodeWork {
    pub(super) fn fold(&mut self, event: &Event) {
        let Event::ProgramReplied { stop, millis, .. } = event else { return };
        self.executions += 1;
        self.executed_ms = self.executed_ms.saturating_add(*millis);
        match stop {
            ProgramStop::Call { written, requested, ends, .. } => {
                self.ending.clone_from(ends);
                self.program_calls.push(ProgramStepCall { call: requested.call, written: written.clone() });
            }
            ProgramStop::Finished { result, printed, .. } => {
                self.finished = Some(Box::new(result.clone()));
                self.printed.clone_from(printed);
            }
            ProgramStop::Fault { fault } if fault.code == STAGED_CONFLICT => {
                self.conflicts += 1;
                match self.conflicts < MAX_DRY_RUNS {
                    // A program that stages changes has no other writes, so it can begin again.
                    true => {
                        self.program_calls.clear();
                        self.ending = None;
                    }
                    false => self.fault = Some(fault.clone()),
                }
            }
            ProgramStop::Fault { fault } => self.fault = Some(fault.clone()),
            ProgramStop::Unavailable { error } => self.unavailable = Some(error.clone()),
        }
    }

    /// Takes a new program. With `keeps_calls`, the calls of the previous one are kept, and the new one must make the
    /// same calls first.
    pub(in crate::run) fn begin(&mut self, program: WrittenProgram, asked: u32, keeps_calls: bool) {
        self.program = Some(program);
        self.asked += asked;
        self.executed_ms = 0;
        self.fault = None;
        self.ending = None;
        if !keeps_calls {
            self.program_calls.clear();
        }
    }

    /// The end of the step, the next execution of the program, or the question for one.
    pub(super) fn actions(&self, run: &RunState, number: u32) -> Vec<Action> {
        if let Some(result) = self.result(run) {
            return vec![record(Event::StepCompleted { step: number, result: result.text() })];
        }
        if let Some(error) = self.unavailable.clone().or_else(|| self.lasting_fault(run)) {
            return vec![record(Event::step_failed(number, self.with_done_writes(run, error)))];
        }
        match &self.fault {
            None if self.program.is_some() => vec![Action::Execute { step: number }],
            _ => self.question(run, number),
        }
    }

    /// The question for a program, or for another one in place of one with a fault.
    fn question(&self, run: &RunState, number: u32) -> Vec<Action> {
        let subject = Subject::Program { step: number };
        let max = run.settings().max_retries;
        // Questions for earlier programs of the step count as well.
        let due = match max.checked_sub(self.asked) {
            Some(left) => run.due_question(subject, left),
            None => DueQuestion::GiveUp(Fault::new(ERROR, "no further program is asked for")),
        };
        match due {
            DueQuestion::GiveUp(error) => {
                let error = self.fault.as_ref().map_or(error, fault_of_program);
                vec![record(Event::step_failed(number, self.with_done_writes(run, error)))]
            }
            due => run.question_actions(due, subject),
        }
    }

    /// Why no other program can help: a call failed or has an unknown outcome, or the program made other calls when it
    /// was executed again.
    fn lasting_fault(&self, run: &RunState) -> Option<Fault> {
        let last = self.program_calls.last();
        let outcome = last.and_then(|last| run.outcome(last.call));
        if let Some(Outcome::Unknown { error }) = outcome {
            return Some(error.clone());
        }
        let refused = self.program_calls.iter().filter_map(|made| run.outcome(made.call)?.fault());
        if let Some(error) = refused.filter(|error| error.code == NOT_APPROVED).nth(MAX_REFUSALS) {
            return Some(error.clone());
        }
        if let Some(made) = last.filter(|made| run.was_left_undecided(made.call)) {
            return run.outcome(made.call)?.fault().cloned();
        }
        let fault = self.fault.as_ref()?;
        // A dry run returns a report, which does not have the shape of a result.
        let is_dry = run.is_dry_run() && self.has_dry_write(run);
        if fault.code == DIVERGED || fault.code.starts_with(STAGED) || is_dry {
            return Some(fault_of_program(fault));
        }
        let called = last.and_then(|last| run.calls.get(&last.call))?;
        let raised = match run.past_outcome(last?.call) {
            Some(PastOutcome::Raised(message)) => message.chars().take(COMPARED_CHARS).collect::<String>(),
            _ => return None,
        };
        let is_unhandled = fault.code == CALL
            || (fault.code == ERROR && !raised.trim().is_empty() && fault.message.contains(&raised));
        // Invalid arguments are the program's own fault.
        outcome?.fault().filter(|_| is_unhandled && called.requested.problem.is_none()).cloned()
    }
}

impl CodeWork {
    /// A fault of the program, with what it did before: its writes stay done, and its staged changes were not made.
    fn with_done_writes(&self, run: &RunState, error: Fault) -> Fault {
        let done = run.done_by_program(self);
        // Messages of tools are shown to users.
        if done.is_empty() || !(error.code.starts_with(CODE) || error.code.starts_with(STAGED)) {
            return error;
        }
        Fault {
            message: format!("{}; these writes were done before, and no others: {done}", error.message),
            ..error
        }
    }

    /// Whether a write was only reported.
    fn has_dry_write(&self, run: &RunState) -> bool {
        let mut calls = self.program_calls.iter().filter_map(|made| run.calls.get(&made.call));
        calls.any(|call| call.requested.effect == Effect::Write && call.attempts == 0)
    }

    /// The result of the program: when it has ended, or once its staged changes are committed.
    pub fn result(&self, run: &RunState) -> Option<&ProgramResult> {
        let last = self.program_calls.last().and_then(|last| run.outcome(last.call));
        let is_done = matches!(last, Some(Outcome::Ok { .. }));
        self.finished.as_deref().or_else(|| self.ending.as_deref().filter(|_| is_done))
    }

    /// Returns whether the program ended with the status of success, and not to show what it would do.
    pub(in crate::run) fn claims_success(&self, run: &RunState) -> bool {
        self.result(run).is_some_and(|end| end.status == STATUSES[0] && !end.dry_run)
    }

    /// Returns whether the last program failed by a fault of its own, so that another one may help.
    pub(in crate::run) fn has_own_fault(&self, run: &RunState) -> bool {
        self.fault.is_some() && self.lasting_fault(run).is_none()
    }
}

/// A fault of a program, as the end of its step.
fn fault_of_program(fault: &ProgramFault) -> Fault {
    let at = fault.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    Fault::new(&fault.code, format!("the program failed: {at}{}", fault.message))
}
