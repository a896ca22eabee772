//! Programs in generated worlds, with a small interpreter of their own language: one call or end a line.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::script::Script;
use super::sim::Sim;
use super::world::{Dice, World, worlds};
use crate::plan::{PROGRAM, Plan, Step, StepKind, StepStatus};
use crate::planner;
use crate::program::{
    Finished, PastOutcome, Program, ProgramCall, ProgramFault, ProgramLimits, ProgramResult, Stop,
    Unavailable,
};
use crate::run::{
    Action, CallStatus, Effect, Event, Fault, Outcome, PlanMaker, PlanningMaker, ProgramStop, RULES_REVISION,
    Repeat, Reply, RequestedCall, RunState, RunStatus, STAGED_CONFLICT, Settings, Subject, call_key,
};

/// The lines of a program: `A.look 1` calls, `A.book 0 catch` goes on if the call fails, `flip` makes another call whenever
/// it is executed, `end` fulfils the contract, and `bad` and `slow` are faults.
pub fn source(dice: &mut Dice) -> String {
    let mut lines = Vec::new();
    for _ in 0..dice.pick(6) {
        let scene = ["A", "B"][dice.pick(2)];
        let tool = ["look", "book", "pay", "peek", "unbook", "nothing"][dice.pick(6).min(dice.pick(7))];
        let catches = if dice.pick(3) < 2 { " catch" } else { "" };
        lines.push(match dice.pick(32) {
            31 => "flip".to_owned(),
            30 => "slow".to_owned(),
            _ => format!("{scene}.{tool} {}{catches}", dice.pick(3)),
        });
    }
    lines.push(["end", "end", "end", "bad"][dice.pick(4)].to_owned());
    lines.join("\n")
}

/// Executes a program as the contract of interpreters has it.
pub fn execute(program: &Program) -> Stop {
    let fault = |code: &str, message: &str, line: usize| {
        let line = u32::try_from(line + 1).ok();
        Stop::Fault(ProgramFault {
            code: code.to_owned(),
            message: message.to_owned(),
            line,
            printed: String::new(),
        })
    };
    for (at, line) in program.source.lines().enumerate() {
        let mut words = line.split(' ');
        let function = words.next().unwrap_or_default();
        let status = match function {
            "end" => Some(json!("success")),
            "bad" => Some(json!("whatever")),
            "slow" => return fault("code.time", "it takes too long", at),
            _ => None,
        };
        if status.is_some() {
            if at < program.calls.len() {
                return fault("code.diverged", "it ends before", at);
            }
            let text = Some(json!("It is done."));
            return Stop::Finished(Finished {
                printed: "printed".to_owned(),
                cut: false,
                status,
                answer_text: text,
                answer_rows: None,
                returned: None,
                dry_run: None,
            });
        }
        let mut arguments = Map::new();
        match function {
            "flip" => _ = arguments.insert("n".to_owned(), program.calls.len().into()),
            name if name.ends_with("unbook") => {
                _ = arguments.insert("id".to_owned(), words.next().unwrap_or("0").into());
            }
            _ => {
                let number: u32 = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
                arguments.insert("n".to_owned(), number.into());
            }
        }
        let function = if function == "flip" { "A.look" } else { function };
        if !program.functions.iter().any(|known| known.name == function) {
            return fault("code.error", "AttributeError: there is no such function", at);
        }
        let call = ProgramCall { function: function.to_owned(), arguments };
        let Some(past) = program.calls.get(at) else {
            return match at < program.limits.calls as usize {
                true => Stop::Call { call, line: u32::try_from(at + 1).ok() },
                false => fault("code.calls", "too many calls", at),
            };
        };
        if past.call != call {
            return fault("code.diverged", "another call", at);
        }
        if let (PastOutcome::Raised(message), false) = (&past.outcome, line.ends_with(" catch")) {
            return fault("code.error", &format!("RuntimeError: {message}"), at);
        }
    }
    fault("code.error", "no end", 0)
}

/// The event of a program, as the reading of a reply has it.
pub fn written(state: &RunState, (step, call): (u32, u32), source: String, reloaded: bool) -> Event {
    let [begin, end] = crate::program::contract::BLOCK;
    let reply = Reply { text: format!("{begin}{source}{end}"), ..Reply::default() };
    planner::read_program(state, super::approvers::catalogue(reloaded), &reply, (call, step)).unwrap()
}

/// Worlds whose plans have programs.
fn program_worlds() -> impl Strategy<Value = World> {
    worlds().prop_map(|mut world| {
        world.settings.maker = PlanningMaker::Auto;
        world.settings.rules = RULES_REVISION;
        world
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    // `RunChecker`, `ConsentChecker` and `Sim` assert the rules themselves, at every event of every run.
    #[test]
    fn runs_with_programs_keep_all_rules_and_end_also_if_resumed_after_any_event(
        world in program_worlds(), at in any::<prop::sample::Index>()
    ) {
        let sim = Sim::run(world.clone());
        let max = sim.world.settings.max_retries + 1;
        for step in sim.state.steps.values() {
            let Some(work) = step.code() else { continue };
            if sim.events.iter().all(|event| !matches!(event, Event::RunReopened { .. } | Event::RunResumed { .. })) {
                prop_assert!(work.asked <= max, "{} questions", work.asked);
            }
            // Every call of a program came from an execution.
            for own in &work.program_calls {
                let opened = sim.events.iter().any(|event| matches!(event,
                    Event::ProgramReplied { stop: ProgramStop::Call { requested, .. }, .. } if requested.call == own.call));
                prop_assert!(opened);
            }
        }
        let events = sim.events;
        let mut sim = Sim::new(world);
        for event in &events[..1 + at.index(events.len() - 1)] {
            sim.record(event.clone());
        }
        if !sim.state.status.is_terminal() {
            sim.crash();
        }
        sim.finish();
    }
}

/// The properties hold of programs that end, are repaired, wait and diverge, because there are such.
#[test]
fn generated_programs_end_fail_wait_and_diverge() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = [0; 5];
    for _ in 0..1_500 {
        let mut world = program_worlds().new_tree(&mut runner).unwrap().current();
        (world.plan_only, world.dry_run, world.stops) = (false, false, 0);
        (world.settings.level, world.settings.mode) = (None, None);
        let sim = Sim::run(world);
        let written = sim.events.iter().filter(|event| matches!(event, Event::ProgramWritten { .. })).count();
        let diverged = |event: &Event| {
            matches!(event,
            Event::ProgramReplied { stop: ProgramStop::Fault { fault }, .. } if fault.code == "code.diverged")
        };
        let finished =
            |event: &Event| matches!(event, Event::ProgramReplied { stop: ProgramStop::Finished { .. }, .. });
        let waits = sim.events.iter().any(|event| matches!(event, Event::RunWaiting {}));
        let wrote = sim.state.calls.values().any(|call| {
            sim.state.is_program(call.step) && call.requested.effect == Effect::Write && call.attempts > 0
        });
        let found = [
            sim.events.iter().any(finished),
            written > sim.state.steps.values().filter(|step| step.code().is_some()).count(),
            waits && wrote,
            sim.events.iter().any(diverged),
            wrote,
        ];
        for (count, found) in seen.iter_mut().zip(found) {
            *count += u32::from(found);
        }
        if seen.iter().all(|count| *count > 2) {
            break;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// A run with one step of kind code, whose programs are given.
struct Written {
    script: Script,
}

impl Written {
    fn new(settings: Settings) -> Self {
        let settings = Settings { maker: PlanningMaker::Auto, rules: RULES_REVISION, ..settings };
        let mut run = Self { script: Script::new(settings) };
        run.plan(1);
        run
    }

    /// A plan arrives, of one step of kind code with this number: it is that of the plan, too.
    fn plan(&mut self, number: u32) {
        let script = &mut self.script;
        script.reply(Subject::Plan { version: number });
        let step = Step {
            step_number: number,
            kind: StepKind::Code,
            scene_name: PROGRAM.to_owned(),
            purpose: "something".to_owned(),
            scenes: vec!["A".to_owned(), "B".to_owned()],
            ..Step::default()
        };
        let plan = Plan { needs_execution: true, steps: vec![step], ..Plan::default() };
        let made = super::generators::made(&script.state, plan, PlanMaker::Deterministic);
        script.record(if number == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) });
        script.settle();
    }

    /// A model replies with this program, which is executed until something is to be awaited.
    fn program(&mut self, source: &str) {
        let call = self.script.reply(Subject::Program { step: 1 });
        let written = written(&self.script.state, (1, call), source.to_owned(), false);
        self.script.record(written);
        self.go_on();
    }

    /// A model replies with a program, whose only call is the commit of what it staged: that is requested at its end.
    fn staging_program(&mut self, step: u32) {
        self.begin(step);
        let stop = self.commit_call(step, true);
        self.stops(step, stop);
    }

    /// A model replies with a program for a step.
    fn begin(&mut self, step: u32) {
        let call = self.script.reply(Subject::Program { step });
        let written = written(&self.script.state, (step, call), "end".to_owned(), false);
        self.script.record(written);
        self.script.settle();
    }

    fn stops(&mut self, step: u32, stop: ProgramStop) {
        self.script.record(Event::ProgramReplied { step, stop, millis: 0 });
        self.script.settle();
    }

    /// A call of a tool `commit`: the commit of what the program staged, or of a tool that its scene has.
    fn commit_call(&self, id: u32, commits: bool) -> ProgramStop {
        let arguments = json!({"id": id.to_string(), "base": {"rows": [], "ranges": []}, "diff": []});
        let written = ProgramCall {
            function: "A.commit".to_owned(),
            arguments: arguments.as_object().filter(|_| !commits).cloned().unwrap_or_default(),
        };
        let requested = RequestedCall {
            scene: Some("A".to_owned()),
            repeat: Repeat::Key,
            ..RequestedCall::new(
                self.state().next_call(),
                "commit",
                call_key("A", "commit", &arguments, &[]),
                arguments,
                Effect::Write,
            )
        };
        let requested = Box::new(requested);
        let ends = commits.then(|| Box::new(sold()));
        ProgramStop::Call { written, line: None, is_untraced: false, requested, ends }
    }

    /// The outcome of the first call, a commit, stays unknown however often it is repeated under its key.
    fn commit_is_lost(&mut self) {
        while matches!(self.state().calls[&1].status, CallStatus::InFlight { .. }) {
            self.failed(1, Outcome::Unknown { error: Fault::new("staged.commit_unknown", "who knows") });
        }
    }

    /// The run ends with what it has.
    fn end(&mut self) {
        self.script.check(None, true, Some("Nobody knows."));
        assert!(self.state().status.is_terminal());
    }

    fn go_on(&mut self) {
        self.script.settle();
        while self.script.state.next().contains(&Action::Execute { step: 1 }) {
            let catalogue = super::approvers::catalogue(false);
            let program =
                planner::program(&self.script.state, catalogue, 1, ProgramLimits::default()).unwrap();
            let stop = Ok(execute(&program));
            let event = planner::program_replied(&self.script.state, catalogue, 1, stop, 3);
            self.script.record(event);
            self.script.settle();
        }
    }

    fn done(&mut self, call: u32, result: Value) {
        self.script.done(call, result);
        self.go_on();
    }

    fn failed(&mut self, call: u32, outcome: Outcome) {
        self.script.outcome(call, outcome);
        self.go_on();
    }

    fn state(&self) -> &RunState {
        &self.script.state
    }

    fn status(&self) -> StepStatus {
        self.state().steps[&1].status
    }

    fn error(&self) -> &str {
        self.state().steps[&1].error.as_ref().map_or("", |error| error.code.as_str())
    }
}

/// What a program that sells something comes to.
fn sold() -> ProgramResult {
    let (status, answer_text) = ("success".to_owned(), "It is sold.".to_owned());
    ProgramResult { status, answer_text, answer_rows: Vec::new(), dry_run: false, would_change: Vec::new() }
}

/// Nobody is asked to confirm or approve anything.
fn free() -> Settings {
    use crate::run::{ApprovalPolicy, ApprovalScope, ConfirmPolicy};
    let never = ApprovalScope::Never;
    let approval = ApprovalPolicy { plans: never, calls: never, by_oneself: true };
    Settings { confirm: ConfirmPolicy::Never, approval, ..Settings::default() }
}

#[test]
fn program_continues_with_each_result_and_answers() {
    let mut run = Written::new(free());
    run.program("A.look 1\nB.look 2\nend");
    run.done(1, json!({"value": 1}));
    assert_eq!(run.state().calls[&2].scene, "B");
    assert!(matches!(run.state().calls[&2].status, CallStatus::InFlight { .. }));
    run.done(2, json!({"value": 2}));
    assert_eq!((run.status(), run.state().status), (StepStatus::Completed, RunStatus::Completed));
    assert_eq!(run.state().answer.as_ref().unwrap().text, "It is done.");
    assert_eq!(run.state().steps[&1].code().unwrap().executions, 3);
    // One question for the plan and one for the program: no check, and no answer to be worded.
    assert_eq!(run.state().asks.len(), 2);
}

#[test]
fn write_that_a_person_has_to_approve_stops_the_program_in_the_middle() {
    use crate::run::{ApprovalPolicy, ApprovalScope, Decision};
    let approval = ApprovalPolicy { calls: ApprovalScope::Writes, ..free().approval };
    let mut run = Written::new(Settings { approval, ..free() });
    run.program("A.look 1\nA.book 1\nA.book 2 catch\nend");
    run.done(1, json!({"value": 1}));
    assert_eq!((run.state().status, run.state().calls[&2].attempts), (RunStatus::Waiting, 0));
    let before = run.state().steps[&1].code().unwrap().executions;
    run.script.crash();
    assert_eq!(run.state().next(), [], "a waiting program is executed");
    run.script.decide(1, Decision::Yes { hold: false }, "hockney");
    run.done(2, json!({"value": 2}));
    assert_eq!(run.state().steps[&1].code().unwrap().executions, before + 1);
    run.script.decide(2, Decision::No, "hockney");
    run.go_on();
    assert_eq!((run.status(), run.state().calls[&3].attempts), (StepStatus::Completed, 0));
    assert_eq!(run.script.begun(), [r#"look {"n":1}"#, r#"book {"n":1}"#]);
}

#[test]
fn fault_is_repaired_within_the_bound_and_a_call_is_not_made_again() {
    let mut run = Written::new(Settings { max_retries: 1, ..free() });
    run.program("A.book 1\nbad");
    run.done(1, json!({"value": 1}));
    let work = run.state().steps[&1].code().unwrap();
    assert_eq!(work.fault.as_ref().unwrap().code, "code.contract");
    // The corrected program makes the same call first: it is not made a second time.
    run.program("A.book 1\nend");
    assert_eq!((run.status(), run.script.begun().len()), (StepStatus::Completed, 1));

    let mut run = Written::new(Settings { max_retries: 1, ..free() });
    run.program("A.book 1\nbad");
    run.done(1, json!({"value": 1}));
    run.program("A.book 2\nend");
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.diverged"));
    assert_eq!(run.script.begun().len(), 1);

    let mut run = Written::new(Settings { max_retries: 1, ..free() });
    run.program("slow");
    run.program("bad");
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.contract"));
}

#[test]
fn failed_call_ends_the_step_unless_the_program_handles_it() {
    let failed = || Outcome::Failed { error: Fault::new("tool.down", "it is down") };
    let mut run = Written::new(free());
    run.program("A.look 1 catch\nA.peek 1\nend");
    run.failed(1, failed());
    run.failed(2, failed());
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "tool.down"));
    let asked = run.state().asks.values().filter(|ask| ask.subject == Subject::Program { step: 1 });
    assert_eq!(asked.count(), 1, "no other program helps");
}

#[test]
fn program_does_not_go_on_after_a_write_of_unknown_outcome() {
    let mut run = Written::new(free());
    run.program("A.book 1 catch\nA.pay 1\nend");
    run.failed(1, Outcome::Unknown { error: Fault::new("tool.lost", "who knows") });
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "tool.lost"));
    assert_eq!(run.script.begun().len(), 1);
}

#[test]
fn commit_of_unknown_outcome_is_left_to_a_person_and_not_made_again() {
    use crate::run::Decision;
    for (decision, status, executes) in
        [(Decision::Done, StepStatus::Completed, false), (Decision::NotDone, StepStatus::Running, true)]
    {
        let mut run = Written::new(free());
        run.staging_program(1);
        run.commit_is_lost();
        assert_eq!((run.status(), run.error()), (StepStatus::Failed, "staged.commit_unknown"));
        run.end();
        // Resumed before anybody has decided: it is neither executed again nor written anew.
        run.script.reopen();
        assert_eq!((run.status(), run.error()), (StepStatus::Failed, "staged.commit_unknown"));
        run.end();
        run.script.decide(1, decision, "hockney");
        run.script.reopen();
        assert_eq!(run.status(), status);
        assert_eq!(run.state().next().contains(&Action::Execute { step: 1 }), executes);
        assert_eq!((run.state().calls.len(), run.script.begun().len()), (1, 1));
        let asked = run.state().asks.values().filter(|ask| ask.subject == Subject::Program { step: 1 });
        assert_eq!(asked.count(), 1, "no other program is asked for");
        if !executes {
            let answer = &run.state().answer.as_ref().unwrap().text;
            assert!(answer.starts_with("It is sold."), "{answer}");
        }
    }
}

#[test]
fn tool_of_a_scene_that_is_called_commit_is_no_commit() {
    let refused = |code: &str| Outcome::Refused { error: Fault::new(code, "no") };
    // A commit whose rows changed is done by the one that follows.
    let mut staged = Written::new(free());
    staged.staging_program(1);
    assert!(staged.state().calls[&1].is_commit);
    staged.script.outcome(1, refused(STAGED_CONFLICT));
    let (code, message) = (STAGED_CONFLICT.to_owned(), "a row changed".to_owned());
    let fault = ProgramFault { code, message, line: None, printed: String::new() };
    staged.stops(1, ProgramStop::Fault { fault });
    let stop = staged.commit_call(2, true);
    staged.stops(1, stop);
    staged.script.done(2, json!({}));
    staged.script.settle();
    assert!(!staged.state().is_unserved(&staged.state().steps[&1]));

    // Two calls of a tool of the same name and arguments are two writes.
    let mut own = Written::new(free());
    own.begin(1);
    let stop = own.commit_call(1, false);
    own.stops(1, stop);
    assert!(!own.state().calls[&1].is_commit);
    own.script.outcome(1, refused("ledger.closed"));
    let ProgramStop::Call { written, line, is_untraced, requested, .. } = own.commit_call(2, false) else {
        unreachable!()
    };
    let forged = ProgramStop::Call {
        written: written.clone(),
        line,
        is_untraced,
        requested: requested.clone(),
        ends: Some(Box::new(sold())),
    };
    let forged = Event::ProgramReplied { step: 1, stop: forged, millis: 0 };
    assert!(own.state().check(&forged).is_err());
    own.stops(1, ProgramStop::Call { written, line, is_untraced, requested, ends: None });
    own.script.done(2, json!({}));
    own.stops(1, ProgramStop::Finished { result: sold(), printed: String::new(), cut: false });
    assert!(own.state().is_unserved(&own.state().steps[&1]));
    let work = own.state().steps[&1].code().unwrap();
    assert_eq!(own.state().writes_of_program(work).count(), 2);
}

#[test]
fn another_plan_commits_nothing_while_the_outcome_of_a_commit_is_unknown() {
    let mut run = Written::new(free());
    run.staging_program(1);
    run.commit_is_lost();
    run.script.check(Some("the sale"), false, None);
    run.plan(2);
    run.staging_program(2);
    let Some(Outcome::Refused { error }) = run.state().outcome(2) else {
        panic!("{:?}", run.state().outcome(2))
    };
    assert_eq!((error.code.as_str(), run.script.begun().len()), ("tool.held", 1));
}

#[test]
fn program_that_differs_when_it_is_executed_again_ends() {
    let mut run = Written::new(free());
    run.program("flip\nA.book 1\nend");
    run.done(1, json!({"value": 1}));
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.diverged"));
    assert_eq!(run.script.begun(), [r#"look {"n":0}"#]);
}

#[test]
fn without_a_sandbox_the_step_fails_and_resuming_continues_where_it_was() {
    let mut run = Written::new(free());
    run.program("A.look 1\nend");
    run.script.done(1, json!({"value": 1}));
    let none = Unavailable { code: "sandbox.unavailable", message: "there is none".to_owned() };
    let catalogue = super::approvers::catalogue(false);
    let event = planner::program_replied(&run.script.state, catalogue, 1, Err(none), 0);
    run.script.record(event);
    run.script.settle();
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "sandbox.unavailable"));
    run.script.check(None, true, None);
    run.script.reopen();
    run.go_on();
    assert_eq!((run.status(), run.script.begun().len()), (StepStatus::Completed, 1));
}

#[test]
fn resumed_program_keeps_its_writes_and_ignores_later_source() {
    let mut run = Written::new(Settings { max_retries: 0, ..free() });
    run.program("A.look 1\nA.book 1\nbad");
    run.done(1, json!({"value": 1}));
    run.done(2, json!({"value": 1}));
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.contract"));
    run.script.check(None, true, None);
    if !run.state().status.is_terminal() {
        run.script.answer("done");
    }
    run.script.reopen();
    run.program("A.look 1\nA.book 2\nend");
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.diverged"));
    assert_eq!(run.script.begun().len(), 2, "{:?}", run.script.begun());
}

#[test]
fn person_refuses_again_and_the_program_ends() {
    use crate::run::{ApprovalPolicy, ApprovalScope, Decision};
    let approval = ApprovalPolicy { calls: ApprovalScope::Writes, ..free().approval };
    let mut run = Written::new(Settings { approval, ..free() });
    run.program("A.book 1 catch\nA.book 2 catch\nA.look 1\nend");
    run.script.decide(1, Decision::No, "hockney");
    run.go_on();
    run.script.decide(2, Decision::No, "hockney");
    run.go_on();
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "approval.refused"));
    assert_eq!(run.script.begun().len(), 0);
}

#[test]
fn executions_of_a_program_take_a_bounded_time_in_all() {
    let mut run = Written::new(Settings { max_retries: 1, ..free() });
    run.program("A.look 1\nB.look 2\nend");
    run.script.done(1, json!({"value": 1}));
    let catalogue = super::approvers::catalogue(false);
    let limits = |total_ms| ProgramLimits { total_ms, ..ProgramLimits::default() };
    let slow = Stop::Fault(ProgramFault {
        code: "code.time".to_owned(),
        message: "it takes too long".to_owned(),
        line: None,
        printed: String::new(),
    });
    // The first execution took 3 ms.
    let cut = planner::program(run.state(), catalogue, 1, limits(5)).unwrap();
    assert_eq!(cut.limits.time_ms, 2);
    let Stop::Fault(fault) = planner::within_total_time(slow.clone(), cut.limits, limits(5)) else {
        panic!("no fault")
    };
    assert_eq!(fault.code, "code.total_time");
    assert_eq!(planner::within_total_time(slow.clone(), limits(9), limits(9)), slow);
    let fault = planner::program(run.state(), catalogue, 1, limits(3)).unwrap_err();
    assert_eq!(fault.code, "code.total_time");
    let event = planner::program_replied(run.state(), catalogue, 1, Ok(Stop::Fault(fault)), 0);
    run.script.record(event);
    run.script.settle();
    // Another program begins anew.
    run.program("A.look 1\nend");
    assert_eq!((run.status(), run.state().steps[&1].code().unwrap().executed_ms), (StepStatus::Completed, 6));
}

#[test]
fn flood_of_calls_is_bounded() {
    let mut run = Written::new(Settings { max_calls: 3, max_retries: 0, ..free() });
    run.program(&format!("{}end", "A.look 1 catch\nA.pay 1 catch\n".repeat(9)));
    for call in 1..=3 {
        if matches!(run.state().calls[&call].status, CallStatus::InFlight { .. }) {
            run.done(call, json!({"value": 1}));
        }
    }
    assert_eq!((run.status(), run.error()), (StepStatus::Failed, "code.calls"));
    assert_eq!(run.state().calls.len(), 3);
}
