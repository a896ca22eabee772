//! Consultations: when a model is asked about a failed call, and what its choice leads to.

use super::script::{BOOK, LOOK, LOOK_ELSEWHERE, PAY, Script, ScriptedCall};
use crate::adapt::{
    AskRefusal, ConsultationKind, ConsultationLimits, ConsultationOutcome, ExecutionLevel, ExecutionMode,
    FaultPolicy, PolicyAction, PolicyChoice, PolicyDefaults, RecoveryAction, ToolPolicies,
};
use crate::plan::StepStatus;
use crate::run::{
    Action, Attempt, CallStatus, ConsultationChoice, Decision, Event, Fault, FaultClass, Outcome, PlanMaker,
    Reply, RunStatus, Settings, Subject, TimerSubject, Usage,
};

/// One attempt by predefined logic, so that a model is asked at the first failure.
fn settings() -> Settings {
    let policies = PolicyDefaults { attempts: 1, ..PolicyDefaults::default() };
    let (level, mode) = (Some(ExecutionLevel::Adaptive), Some(ExecutionMode::Adaptive));
    Settings { rules: 5, level, mode, policies, ..Settings::default() }
}

fn failed() -> Outcome {
    Outcome::Failed { error: Fault::new("http.status", "409").classed(FaultClass::Other) }
}

fn calling(calls: &[ScriptedCall], settings: Settings) -> Script {
    let mut run = Script::new(settings);
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, calls);
    run
}

fn about(consultation: u32) -> Subject {
    Subject::Consultation { consultation, kind: ConsultationKind::Recovery }
}

/// A model chooses the option with this id.
fn choose(run: &mut Script, consultation: u32, id: &str) {
    let question = run.reply(about(consultation));
    let event = choice(run, consultation, question, id);
    run.record(event);
    run.settle();
}

fn choice(run: &Script, consultation: u32, question: u32, id: &str) -> Event {
    let own = &run.state.consultations[&consultation];
    let action = own.option(id).unwrap_or_else(|| panic!("{id} is not offered: {:?}", own.options));
    let chosen = ConsultationChoice::Recovery { action };
    let asks = action == RecoveryAction::AskUser;
    Event::Consultation {
        consultation,
        subject: own.subject,
        question: Some(question),
        how: run.state.consultation_outcome(question),
        chosen: Some(chosen.clone()),
        refused: run.state.choice_refusal(consultation, &chosen),
        reason: "it may pass".to_owned(),
        model: None,
        ask: asks.then(|| run.state.question_how_to_continue(own.subject)).flatten(),
        error: None,
    }
}

fn fails_to_answer(run: &mut Script, consultation: u32, code: &str, attempts: Vec<Attempt>) {
    let call = run.question(about(consultation));
    let (error, usage) = (Fault::new(code, "nobody is there"), Usage::default());
    run.record(Event::ModelFailed { call, error, usage, millis: 1, attempts });
    run.settle();
}

fn ids(run: &Script, consultation: u32) -> Vec<&'static str> {
    run.state.consultations[&consultation].options.iter().map(|option| option.id()).collect()
}

fn is_failed(run: &Script, call: u32) -> bool {
    matches!(&run.state.calls[&call].status, CallStatus::Done { outcome: Outcome::Failed { .. } })
}

#[test]
fn chosen_retry_backs_off_and_is_made_again() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, failed());
    assert_eq!(ids(&run, 1), ["retry", "ask_user", "abort"]);
    choose(&mut run, 1, "retry");
    assert!(matches!(run.state.calls[&1].status, CallStatus::BackedOff { attempt: 2, .. }));
    run.record(Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 2 } });
    run.settle();
    run.outcome(1, failed());
    assert_eq!(ids(&run, 2), ["ask_user", "abort"], "once more is once");
    assert_eq!(run.state.consulted, 2);
}

#[test]
fn abort_ends_its_step_and_what_has_not_begun_is_not_done() {
    let mut run = calling(&[LOOK, BOOK], settings());
    run.outcome(1, failed());
    choose(&mut run, 1, "abort");
    let step = &run.state.steps[&1];
    assert_eq!(
        (step.status, step.error.as_ref().unwrap().code.as_str()),
        (StepStatus::Failed, "http.status")
    );
    assert_eq!(run.state.calls[&2].attempts, 0);
    let CallStatus::Done { outcome: Outcome::Refused { error } } = &run.state.calls[&2].status else {
        panic!("{:?}", run.state.calls[&2].status)
    };
    assert_eq!(error.code, "step.stopped");
}

#[test]
fn question_to_the_user_ends_the_step_and_confirms_nothing() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, failed());
    choose(&mut run, 1, "ask_user");
    let step = &run.state.steps[&1];
    assert_eq!(step.status, StepStatus::NeedsInput);
    let text = &step.question.as_ref().unwrap().text;
    assert!(text.contains("look (n: 1)") && text.ends_with('?') && !text.contains("409"), "{text}");
    assert_eq!(run.state.unconfirmed(step).count(), 0);
}

#[test]
fn without_an_answer_predefined_logic_decides_and_nobody_is_asked_again() {
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], settings());
    run.outcome(1, failed());
    fails_to_answer(
        &mut run,
        1,
        "llm.connect",
        vec![Attempt { outcome: "connect".into(), ..Attempt::default() }],
    );
    assert!(is_failed(&run, 1) && run.state.consultations[&1].unanswered);
    run.outcome(2, failed());
    assert!(is_failed(&run, 2));
    assert_eq!((run.consultation_questions(), run.state.consultations.len()), (1, 1));
}

#[test]
fn consultation_outcome_says_why_no_model_was_asked() {
    let joined = || vec![Attempt { outcome: Attempt::JOINED.into(), ..Attempt::default() }];
    for (code, attempts, expected) in [
        ("budget.exceeded", vec![], ConsultationOutcome::OverBudget),
        ("limits.exceeded", vec![], ConsultationOutcome::RateLimited),
        ("llm.timeout", vec![], ConsultationOutcome::RateLimited),
        (
            "llm.timeout",
            vec![Attempt { outcome: "timeout".into(), ..Attempt::default() }],
            ConsultationOutcome::Asked,
        ),
        ("llm.malformed", joined(), ConsultationOutcome::Cached),
    ] {
        let mut run = calling(&[LOOK], settings());
        run.outcome(1, failed());
        fails_to_answer(&mut run, 1, code, attempts);
        assert_eq!(
            run.state.consultation_outcome(run.state.consultations[&1].question.unwrap()),
            expected,
            "{code}"
        );
        // An equal question in progress got no reply, either: nobody is asked again.
        let unanswered = matches!(expected, ConsultationOutcome::Asked | ConsultationOutcome::Cached);
        assert_eq!(run.state.consultations[&1].unanswered, unanswered, "{code}");
    }
}

#[test]
fn equal_failures_of_a_run_share_one_question() {
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], settings());
    run.outcome(1, failed());
    run.outcome(2, failed());
    assert_eq!(
        (run.state.consultations.len(), run.consultation_questions()),
        (2, 1),
        "the second waits for the first"
    );
    choose(&mut run, 1, "retry");
    assert!(matches!(run.state.calls[&2].status, CallStatus::BackedOff { attempt: 2, .. }));
    assert_eq!((run.consultation_questions(), run.state.consulted), (1, 1));
    assert!(run.state.consultations[&2].chosen.is_some());
}

#[test]
fn resumed_run_shares_no_choice_about_other_scenes() {
    for (loaded, questions) in [("as before", 1), ("other", 2)] {
        let mut run = calling(&[LOOK, LOOK_ELSEWHERE], settings());
        run.record(Event::RunResumed {
            epoch: 1,
            restart: true,
            catalogue: run.state.changed_catalogue("as before"),
        });
        run.settle();
        run.outcome(1, failed());
        choose(&mut run, 1, "retry");
        let catalogue = run.state.changed_catalogue(loaded);
        assert_eq!(catalogue.is_some(), questions == 2);
        run.record(Event::RunResumed { epoch: 2, restart: true, catalogue });
        run.settle();
        run.outcome(2, failed());
        assert_eq!((run.state.consultations.len(), run.consultation_questions()), (2, questions), "{loaded}");
    }
}

#[test]
fn choice_that_is_made_after_a_change_is_shared() {
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], settings());
    run.outcome(1, failed());
    run.record(Event::RunResumed { epoch: 1, restart: true, catalogue: Some("other".to_owned()) });
    run.settle();
    run.outcome(2, failed());
    assert_eq!(
        run.consultation_questions(),
        2,
        "the lost question is put again, about the scenes as they are"
    );
    choose(&mut run, 1, "retry");
    assert!(run.state.consultations[&2].chosen.is_some());
    assert_eq!(run.consultation_questions(), 2);
}

#[test]
fn run_has_a_bound_of_consultations() {
    let limits = ConsultationLimits { max_per_run: 1, ..ConsultationLimits::default() };
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], Settings { consultations: limits, ..settings() });
    run.outcome(1, failed());
    let other = Outcome::Failed { error: Fault::new("shop.closed", "closed") };
    run.outcome(2, other);
    assert!(is_failed(&run, 2), "another scenario is beyond the bound");
    choose(&mut run, 1, "retry");
    assert_eq!(run.consultation_questions(), 1);
    let limits = ConsultationLimits { max_per_run: 0, ..ConsultationLimits::default() };
    let mut run = calling(&[LOOK], Settings { consultations: limits, ..settings() });
    run.outcome(1, failed());
    assert!(is_failed(&run, 1) && run.state.consultations.is_empty());
}

/// The event that records the failure of the run's only call.
fn noted(settings: Settings, call: ScriptedCall, outcome: Outcome, policies: Option<ToolPolicies>) -> Event {
    let mut run = calling(&[call], settings);
    run.state.calls.change(1, |call| call.requested.policies = policies.map(Box::new));
    run.state.apply(&Event::ToolCompleted { call: 1, outcome, millis: 1, notes: None }).unwrap();
    match run.state.next() {
        [Action::Record { event: event @ Event::Unexpected { .. } }] => event.clone(),
        other => panic!("nothing unexpected: {other:?}"),
    }
}

fn unasked(event: &Event) -> (Option<AskRefusal>, PolicyAction) {
    let Event::Unexpected { unasked, chosen, options, .. } = event else { panic!("{event:?}") };
    assert_eq!(options.is_empty(), !matches!(chosen, PolicyChoice::Consult { .. }));
    (*unasked, chosen.action())
}

#[test]
fn reasons_not_to_ask_are_recorded_from_revision_5_on() {
    let no_level = || Settings { level: None, ..settings() };
    let final_list = FaultPolicy { actions: Some(vec![PolicyAction::Fail]), ..FaultPolicy::default() };
    let is_final =
        ToolPolicies { by_class: [(FaultClass::Other, final_list)].into(), ..ToolPolicies::default() };
    let busy =
        || Outcome::Failed { error: Fault::new("http.status", "503").classed(FaultClass::Unavailable) };
    for (settings, call, outcome, policies, expected) in [
        (settings(), LOOK, failed(), None, (None, PolicyAction::Consult)),
        (no_level(), LOOK, failed(), None, (Some(AskRefusal::Level), PolicyAction::Fail)),
        (settings(), LOOK, failed(), Some(is_final), (Some(AskRefusal::Decided), PolicyAction::Fail)),
        (settings(), BOOK, busy(), None, (Some(AskRefusal::NoChoice), PolicyAction::Fail)),
        (settings(), BOOK, failed(), None, (None, PolicyAction::Consult)),
        (Settings { rules: 4, ..no_level() }, LOOK, failed(), None, (None, PolicyAction::Fail)),
    ] {
        let event = noted(settings, call, outcome, policies);
        assert_eq!(unasked(&event), expected, "{event:?}");
    }
}

#[test]
fn write_that_may_be_done_is_referred_to_a_person_and_no_model_is_asked() {
    let mut run = calling(&[BOOK], settings());
    run.outcome(
        1,
        Outcome::Unknown { error: Fault::new("http.timeout", "late").classed(FaultClass::Timeout) },
    );
    assert_eq!(
        (run.consultation_questions(), run.state.approvals.len(), run.state.consultations.len()),
        (0, 1, 0)
    );
}

#[test]
fn keyed_write_gets_one_more_attempt_under_its_key_or_is_referred_to_a_person() {
    let late = || Outcome::Unknown { error: Fault::new("http.timeout", "late").classed(FaultClass::Timeout) };
    for (id, attempts) in [("retry", 3), ("abort", 2)] {
        let mut run = calling(&[PAY], settings());
        run.outcome(1, late());
        run.record(Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 2 } });
        run.settle();
        run.outcome(1, late());
        assert_eq!(ids(&run, 1), ["retry", "abort"]);
        choose(&mut run, 1, id);
        if id == "retry" {
            run.record(Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 3 } });
            run.settle();
            run.outcome(1, late());
        }
        assert_eq!(run.state.calls[&1].attempts, attempts);
        assert!(matches!(&run.state.calls[&1].status, CallStatus::Done { outcome: Outcome::Unknown { .. } }));
        assert_eq!(run.state.approvals.len(), 1, "{id}: a person is asked what it did");
    }
}

#[test]
fn consultation_survives_a_crash_and_ends_with_a_cancellation() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, failed());
    run.record(Event::RunResumed { epoch: 1, restart: true, catalogue: None });
    run.settle();
    assert_eq!((run.consultation_questions(), run.state.consulted), (2, 1), "asked again, and counted once");
    let question = run.reply(about(1));
    let late = choice(&run, 1, question, "retry");
    run.record(Event::CancelRequested { by: "lucia".to_owned(), deadline: false, note: None });
    assert!(run.state.check(&late).is_err(), "a late reply is not read");
    run.settle();
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert!(is_failed(&run, 1));
}

#[test]
fn resumed_run_forgets_what_was_chosen_before() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, failed());
    choose(&mut run, 1, "abort");
    while !run.state.status.is_terminal() {
        let subject = run.state.asks.values().next_back().unwrap().subject;
        let call = run.question(subject);
        let (error, usage) = (Fault::new("llm.down", "gone"), Usage::default());
        run.record(Event::ModelFailed { call, error, usage, millis: 1, attempts: vec![] });
        run.settle();
    }
    run.record(Event::RunReopened { by: "lucia".to_owned() });
    run.settle();
    assert_eq!((run.state.consulted, run.state.steps[&1].stopped), (0, false));
    run.reply_with_calls(1, &[LOOK]);
    run.outcome(2, failed());
    assert_eq!(run.state.consulted, 1, "the same scenario is asked about again");
}

#[test]
fn persons_repetition_of_a_write_ends_the_stop_of_its_step() {
    let late = || Outcome::Unknown { error: Fault::new("http.timeout", "late").classed(FaultClass::Timeout) };
    let mut run = calling(&[PAY], settings());
    run.outcome(1, late());
    run.record(Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 2 } });
    run.settle();
    run.outcome(1, late());
    choose(&mut run, 1, "abort");
    run.decide(1, Decision::Again, "lucia");
    assert!(!run.state.steps[&1].stopped);
    assert_eq!(run.state.calls[&1].status, CallStatus::InFlight { attempt: 3 });
}

#[test]
fn reply_says_where_it_came_from() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, failed());
    let call = run.question(about(1));
    let joined = Attempt { model: "small".into(), outcome: Attempt::JOINED.into(), ..Attempt::default() };
    let (reply, usage) = (Reply::default(), Usage::default());
    run.record(Event::ModelReplied { call, reply, usage, millis: 1, attempts: vec![joined] });
    assert_eq!(run.state.consultation_outcome(call), ConsultationOutcome::Cached);
    let origin = run.state.asks[&call].origin.as_ref().unwrap();
    assert_eq!(origin.model.as_deref(), Some("small"));
}
