//! The rules that the driver of a run asks for: takeovers, how questions are asked, and what still counts.

use super::generators;
use super::script::Script;
use super::sim::queued;
use crate::adapt::{ConsultationKind, ConsultationLimits, ExecutionMode, HealthReport};
use crate::fault::FaultClass;
use crate::plan::{Plan, PreparedCall, Step, StepKind};
use crate::run::{
    Action, AskReservation, BoundedAction, CacheMode, CallState, CallStatus, Effect, Event, Fault, Outcome,
    PlanMaker, QuestionTerms, Repeat, Settings, Subject, SummaryOutline, SummaryOwner, Usage,
};
use crate::summary;

/// A run that asks a scene's model while a write of another step is in flight.
fn asks_and_books() -> Script {
    let mut run = Script::new(Settings::default());
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[("book", Effect::Write, Repeat::Never, 1)]);
    run
}

fn late() -> Outcome {
    Outcome::Unknown { error: Fault::new("tool.timeout", "no answer") }
}

#[test]
fn takeover_charges_questions_and_names_writes_in_flight() {
    let mut run = Script::new(Settings::default());
    let call = run.question(Subject::Plan { version: 1 });
    run.record(Event::ModelFailed {
        call,
        error: Fault::new("llm.down", "gone"),
        usage: Usage::default(),
        millis: 1,
        attempts: vec![],
    });
    let Some(Action::Ask { call, subject, attempt, fallback }) = run.state.next().first().cloned() else {
        panic!("the offline model is asked: {:?}", run.state.next())
    };
    let reserved = AskReservation { model: "main".to_owned(), purpose: "plan".to_owned(), nano_usd: 700 };
    let (prompt_hash, reserved) = (String::new(), Some(reserved));
    run.record(Event::ModelAsked { call, subject, attempt, fallback, prompt_hash, reserved });
    let takeover = run.state.takeover(true, "c0ffee").unwrap();
    assert_eq!((takeover.cost_nano_usd, takeover.interrupted_writes), (700, vec![]));
    let expected_charge = |event: &Event| match event {
        Event::ModelFailed { call: charged, usage, .. } => *charged == call && usage.cost_nano_usd == 700,
        _ => false,
    };
    assert!(
        matches!(&takeover.events[..], [Event::RunResumed { epoch: 1, restart: true, catalogue: None }, charge]
            if expected_charge(charge)),
        "{:?}",
        takeover.events
    );

    let run = asks_and_books();
    let takeover = run.state.takeover(false, "other scenes").unwrap();
    let writes: Vec<u32> = takeover.interrupted_writes.iter().map(|(call, _)| *call).collect();
    assert_eq!(writes, [1]);
    assert!(matches!(&takeover.events[0],
        Event::RunResumed { restart: false, catalogue: Some(loaded), .. } if loaded == "other scenes"));
}

#[test]
fn takeover_names_no_write_that_was_unknown_before_and_takes_no_ended_run() {
    let mut run = asks_and_books();
    run.outcome(1, late());
    assert_eq!(run.state.takeover(true, "c0ffee").unwrap().interrupted_writes, []);

    let mut ended = Script::new(Settings::default());
    ended.cancel(false);
    assert!(ended.state.status.is_terminal());
    assert!(ended.state.takeover(true, "c0ffee").is_err());
}

#[test]
fn outcome_reports_on_its_tool_if_that_was_called() {
    let run = asks_and_books();
    let in_flight = &run.state.calls[&1];
    let requested = CallState { status: CallStatus::Requested, attempts: 0, ..in_flight.clone() };
    let ended = CallState { status: CallStatus::Done { outcome: late() }, attempts: 1, ..in_flight.clone() };
    let fault = |code: &str, class| Fault::new(code, "why").classed(class);
    let (works, fails) = (Some(HealthReport::Works), Some(HealthReport::Fails));
    for (outcome, want) in [
        (Outcome::Ok { result: serde_json::json!({}), say: None, whole: None }, works),
        (Outcome::Refused { error: fault("room.taken", FaultClass::Denied) }, works),
        (Outcome::Failed { error: fault("tool.timeout", FaultClass::Timeout) }, fails),
        (Outcome::Unknown { error: fault("tool.http", FaultClass::Unavailable) }, fails),
        (Outcome::Failed { error: fault("tool.cancelled", FaultClass::Timeout) }, None),
        (Outcome::Failed { error: fault("tool.breaker_open", FaultClass::Unavailable) }, None),
        (Outcome::Failed { error: fault("sandbox.busy", FaultClass::Unavailable) }, None),
    ] {
        assert_eq!(in_flight.health_report(&outcome), want, "{outcome:?}");
        assert_eq!(ended.health_report(&outcome), want, "{outcome:?}");
        assert_eq!(requested.health_report(&outcome), None, "{outcome:?}");
    }
}

#[test]
fn only_a_fault_of_the_run_itself_ends_it_by_force() {
    let mut run = Script::new(Settings::default());
    let fault = |code| Fault::new(code, "why");
    assert!(run.state.is_ended_by_force(&fault("run.illegal_event")));
    assert!(run.state.is_ended_by_force(&fault("store.bad_record")));
    assert!(!run.state.is_ended_by_force(&fault("store.full")), "it waits for the disk");
    run.cancel(false);
    assert!(!run.state.is_ended_by_force(&fault("store.bad_record")), "it has ended");
}

#[test]
fn cost_of_questions_and_outcomes_of_writes_are_recorded_at_the_end() {
    let mut run = asks_and_books();
    let completed = |call| Event::ToolCompleted { call, outcome: late(), millis: 1, notes: None };
    run.reply_with_calls(2, &[("look", Effect::Read, Repeat::Never, 1)]);
    assert!(run.state.is_recorded_at_end(&completed(1)), "a write");
    assert!(!run.state.is_recorded_at_end(&completed(2)), "a read");
    let (error, usage) = (Fault::new("llm.cancelled", "ended"), Usage::default());
    let failed = Event::ModelFailed { call: 1, error, usage, millis: 1, attempts: vec![] };
    assert!(run.state.is_recorded_at_end(&failed));
}

#[test]
fn text_of_documents_is_never_cached_and_consultations_use_no_cache_of_the_request() {
    let Event::RunQueued(mut request) = queued(false) else { panic!("no request") };
    request.options.cache = Some(CacheMode::On);
    let consultations = ConsultationLimits { timeout_ms: 1_234, ..ConsultationLimits::default() };
    let settings = Settings { consultations, ..Settings::default() };
    let run = Script::of(Event::RunQueued(request), settings);
    let terms = |subject| run.state.question_terms(subject);
    let own = QuestionTerms { cache: Some(CacheMode::On), voter: None, timeout_ms: None };
    assert_eq!(terms(Subject::Plan { version: 1 }), own);
    let summary = SummaryOwner::step(1).subject(1);
    assert_eq!(terms(summary), QuestionTerms { cache: Some(CacheMode::Off), ..own });
    let recovery = Subject::Consultation { consultation: 1, kind: ConsultationKind::Recovery };
    let consulted = QuestionTerms { cache: None, voter: None, timeout_ms: Some(1_234) };
    assert_eq!(terms(recovery), consulted);
    let vote = Subject::Vote { consultation: 1, voter: 2 };
    assert_eq!(terms(vote), QuestionTerms { voter: Some(1), ..consulted });
}

#[test]
fn health_of_tools_counts_in_runs_with_a_mode() {
    let prepared = PreparedCall { tool: "prepared".to_owned(), arguments: serde_json::Map::new() };
    let step = Step {
        step_number: 1,
        scene_name: "A".to_owned(),
        expected_tools: vec!["look".to_owned(), "book".to_owned()],
        prepared_calls: vec![prepared],
        ..Step::default()
    };
    for mode in [None, Some(ExecutionMode::Strict)] {
        let mut run = Script::new(Settings { mode, ..Settings::default() });
        let plan = Plan { needs_execution: true, steps: vec![step.clone()], ..Plan::default() };
        run.reply(Subject::Plan { version: 1 });
        let made = generators::made(&run.state, plan, PlanMaker::Deterministic);
        run.record(Event::PlanCreated(made));
        let tools: Vec<&str> = run.state.tools_to_forecast(1).into_iter().collect();
        let expected: &[&str] = if mode.is_some() { &["book", "look", "prepared"] } else { &[] };
        assert_eq!((tools.as_slice(), run.state.tools_to_forecast(2).len()), (expected, 0));
    }
}

#[test]
fn documents_of_one_request_have_a_bound_of_chunks_together() {
    let mut run = Script::new(Settings::default());
    let step =
        |n| Step { step_number: n, kind: StepKind::Summary, scene_name: "S".to_owned(), ..Step::default() };
    let plan = Plan { needs_execution: true, steps: vec![step(1), step(2)], ..Plan::default() };
    run.reply(Subject::Plan { version: 1 });
    run.record(Event::PlanCreated(generators::made(&run.state, plan, PlanMaker::Deterministic)));
    run.settle();
    assert!(run.state.check_summary_chunks(1_000).is_ok());
    let outline = SummaryOutline {
        documents: Vec::new(),
        ends: (1..=600).collect(),
        group: summary::GROUP,
        language: None,
        estimate: summary::estimate(&[]),
        cost_nano_usd: None,
    };
    run.record(Event::SummaryPlanned { step: 1, tool_call: None, outline });
    assert!(run.state.check_summary_chunks(400).is_ok());
    assert_eq!(run.state.check_summary_chunks(401).unwrap_err().code, "summary.too_large");
}

#[test]
fn beyond_its_bound_of_events_a_run_only_records_and_ends_once_its_write_has_an_outcome() {
    let asks =
        Action::Ask { call: 1, subject: Subject::Continuation { round: 1 }, attempt: 0, fallback: false };
    let records = Action::Record { event: Event::RunWaiting {} };
    let mut run = asks_and_books();
    let max = run.state.seq;
    assert_eq!(run.state.bounded(&asks, max), BoundedAction::Perform);
    assert_eq!(run.state.bounded(&records, max - 1), BoundedAction::Perform);
    assert_eq!(run.state.bounded(&asks, max - 1), BoundedAction::AwaitWrite);
    run.outcome(1, late());
    let BoundedAction::End(fault) = run.state.bounded(&asks, max - 1) else { panic!("the run is not ended") };
    assert_eq!(fault.code, "run.too_many_events");
}
