//! Decisions: a model chooses among several alternatives, each is called once, and all calls are one act.

use serde_json::json;

use super::script::{BOOK, LOOK, LOOK_ELSEWHERE, Script, ScriptedCall, unavailable};
use crate::adapt::{
    AlternativeTool, ConsultationKind, ConsultationLimits, ConsultationOutcome, ExecutionLevel,
    ExecutionMode, FaultPolicy, PolicyAction, PolicyChoice, ToolPolicies,
};
use crate::run::{
    CallStatus, ConsultationChoice, Decision, Effect, Event, Fault, FaultClass, Outcome, PlanMaker, Settings,
    Subject, UNCONFIRMED, Usage,
};

fn settings() -> Settings {
    let (level, mode) = (Some(ExecutionLevel::Intelligent), Some(ExecutionMode::Adaptive));
    Settings { rules: 5, level, mode, max_writes: 8, ..Settings::default() }
}

/// A run with these calls in a step of scene B, where nobody approves `pay` and `rent`. Each tool has two alternatives.
fn calling(calls: &[ScriptedCall], settings: Settings) -> Script {
    let mut run = Script::new(settings);
    run.plan(PlanMaker::Deterministic, &[("B", &[])]);
    run.reply_with_calls(1, calls);
    for number in run.state.calls.keys().copied().collect::<Vec<_>>() {
        run.state.calls.change(number, |call| {
            let by = if call.requested.effect == Effect::Read { ["peek", "glance"] } else { ["rent", "pay"] };
            call.requested.policies = Some(Box::new(declared(by)));
        });
    }
    run
}

/// Policies that call one of these tools after an outage.
fn declared(by: [&str; 2]) -> ToolPolicies {
    let policy = FaultPolicy { actions: Some(vec![PolicyAction::Alternative]), ..FaultPolicy::default() };
    let [first, second] = by.map(|tool| AlternativeTool {
        tool: tool.to_owned(),
        arguments: [("n".to_owned(), json!("/arguments/n"))].into(),
        same_result: tool == "glance",
    });
    ToolPolicies {
        by_class: [(FaultClass::Unavailable, policy)].into(),
        alternative: Some(first),
        others: vec![second],
        choose_by: "the second".to_owned(),
        ..ToolPolicies::default()
    }
}

/// How a call of an alternative fails: nothing repeats it.
fn broken() -> Outcome {
    Outcome::Failed { error: Fault::new("tool.broken", "no") }
}

fn about(consultation: u32) -> Subject {
    Subject::Consultation { consultation, kind: ConsultationKind::Decision }
}

/// The end of a decision with this alternative.
fn choice(run: &Script, consultation: u32, question: u32, at: u32) -> Event {
    let chosen = ConsultationChoice::Decision { at };
    Event::Consultation {
        consultation,
        subject: run.state.consultations[&consultation].subject,
        question: Some(question),
        how: run.state.consultation_outcome(question),
        refused: run.state.choice_refusal(consultation, &chosen),
        chosen: Some(chosen),
        reason: String::new(),
        model: None,
        ask: None,
        error: None,
    }
}

fn choose(run: &mut Script, consultation: u32, at: u32) {
    let question = run.reply(about(consultation));
    run.record(choice(run, consultation, question, at));
    run.settle();
}

#[test]
fn chosen_alternative_is_called_and_the_other_one_after_it() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, unavailable());
    assert_eq!(
        (run.begun().len(), run.consultation_questions()),
        (1, 1),
        "nothing is called before the choice"
    );
    choose(&mut run, 1, 1);
    assert_eq!(run.begun(), ["look {\"n\":1}", "glance {\"n\":1}"]);
    run.outcome(2, broken());
    assert_eq!(run.begun(), ["look {\"n\":1}", "glance {\"n\":1}", "peek {\"n\":1}"]);
    assert_eq!((run.state.calls[&1].replaced_by, run.state.calls[&3].replaces), (Some(3), Some(1)));
    run.done(3, json!("sunny"));
    assert!(matches!(run.state.outcome(1), Some(Outcome::Ok { .. })), "{:#?}", run.state.calls);
    assert_eq!(
        (run.state.resolved(1), run.consultation_questions()),
        (3, 1),
        "nobody is asked about the second one"
    );
}

#[test]
fn after_the_last_alternative_a_model_may_choose_how_to_continue() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, unavailable());
    choose(&mut run, 1, 0);
    run.outcome(2, broken());
    run.outcome(3, broken());
    let ids: Vec<&str> = run.state.consultations[&2].options.iter().map(|option| option.id()).collect();
    assert_eq!(ids, ["retry", "ask_user", "abort"], "no alternative is left");
    assert_eq!(run.state.calls.len(), 3);
}

#[test]
fn only_an_option_of_the_question_is_admitted() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, unavailable());
    let question = run.reply(about(1));
    assert!(run.state.check(&choice(&run, 1, question, 2)).is_err());
    let Event::Consultation { consultation, subject, question, how, .. } = choice(&run, 1, question, 0)
    else {
        panic!("no consultation")
    };
    let action = run.state.consultations[&1].options[0];
    let (chosen, reason) = (Some(ConsultationChoice::Recovery { action }), String::new());
    let (refused, model, ask, error) = (None, None, None, None);
    let other_kind = Event::Consultation {
        consultation,
        subject,
        question,
        how,
        chosen,
        refused,
        reason,
        model,
        ask,
        error,
    };
    assert!(run.state.check(&other_kind).is_err(), "a recovery was not asked for");
}

#[test]
fn without_an_answer_the_first_one_is_called() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, unavailable());
    let call = run.question(about(1));
    let (error, usage) = (Fault::new("llm.connect", "nobody is there"), Usage::default());
    run.record(Event::ModelFailed { call, error, usage, millis: 1, attempts: vec![] });
    run.settle();
    assert_eq!(run.begun(), ["look {\"n\":1}", "peek {\"n\":1}"]);
    let chosen = run.state.calls[&1].status.clone();
    assert!(
        matches!(chosen, CallStatus::Failing { chosen: Some(PolicyChoice::Alternative { at: 0 }), .. }),
        "{chosen:?}"
    );
}

#[test]
fn equal_failures_of_a_run_share_one_decision() {
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], settings());
    run.outcome(1, unavailable());
    run.outcome(2, unavailable());
    assert_eq!(
        (run.state.consultations.len(), run.consultation_questions()),
        (2, 1),
        "the second waits for the first"
    );
    choose(&mut run, 1, 1);
    let begun = run.begun();
    assert!(begun.contains(&"glance {\"n\":1}".to_owned()) && begun.contains(&"glance {\"n\":2}".to_owned()));
    assert_eq!((run.consultation_questions(), run.state.consulted), (1, 1));
    assert_eq!(run.state.consultations[&2].chosen, Some(ConsultationChoice::Decision { at: 1 }));
}

#[test]
fn write_refers_to_an_alternatives_result_only_where_that_one_is_the_same() {
    for (at, same) in [(0, false), (1, true)] {
        let mut run = calling(&[LOOK], settings());
        run.outcome(1, unavailable());
        choose(&mut run, 1, at);
        run.done(2, json!({"id": 7}));
        let id = crate::plan::Reference { step: 1, tool: "look".to_owned(), pointer: "/id".to_owned() };
        assert_eq!(run.state.referenced(&id, Effect::Write).is_ok(), same, "{at}");
        assert!(run.state.referenced(&id, Effect::Read).is_ok());
    }
}

#[test]
fn chosen_write_waits_for_its_own_yes_and_no_other_one_is_called() {
    let mut run = calling(&[BOOK], settings());
    run.outcome(1, unavailable());
    choose(&mut run, 1, 0);
    assert_eq!(run.refusal(2), Some(UNCONFIRMED));
    assert_eq!((run.begun(), run.state.calls.len()), (vec!["book {\"n\":1}".to_owned()], 2));
}

/// A write of scene A whose alternatives are `pay`, which an approver decides about, and `rent`.
fn booking_with_an_approver() -> Script {
    let mut run = Script::new(settings());
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.state.calls.change(1, |call| call.requested.policies = Some(Box::new(declared(["pay", "rent"]))));
    run.outcome(1, unavailable());
    choose(&mut run, 1, 0);
    run
}

#[test]
fn all_writes_in_place_of_one_are_one_act() {
    let mut run = booking_with_an_approver();
    run.decide(1, Decision::Yes { hold: false }, "lucia");
    run.outcome(2, broken());
    assert_eq!(run.begun(), ["book {\"n\":1}", "pay {\"n\":1}"]);
    assert_eq!(run.refusal(3), Some(UNCONFIRMED), "the yes was to another tool");
    assert_eq!(run.state.writes_asked_for(), 1);
    for (a, b) in [(1, 2), (2, 3), (3, 1), (3, 2)] {
        let (first, second) = (&run.state.calls[&a], &run.state.calls[&b]);
        assert!(run.state.is_same_act(first, second), "{a} {b}");
    }
}

#[test]
fn no_to_one_alternative_is_not_walked_around() {
    let mut run = booking_with_an_approver();
    run.decide(1, Decision::No, "lucia");
    assert_eq!((run.begun(), run.state.calls.len()), (vec!["book {\"n\":1}".to_owned()], 2));
    assert_eq!(run.refusal(2), Some("approval.refused"));
}

#[test]
fn decision_survives_a_crash_and_counts_once() {
    let mut run = calling(&[LOOK], settings());
    run.outcome(1, unavailable());
    run.record(Event::RunResumed { epoch: 1, restart: true, catalogue: None });
    run.settle();
    assert_eq!((run.consultation_questions(), run.state.consulted), (2, 1), "asked again, and counted once");
    choose(&mut run, 1, 1);
    assert_eq!(run.begun(), ["look {\"n\":1}", "glance {\"n\":1}"]);
    assert_eq!(
        run.state.consultation_outcome(run.state.consultations[&1].question.unwrap()),
        ConsultationOutcome::Asked
    );
}

/// A run of which the only call has failed, and several models vote.
fn voting(vote: u32, max_per_run: u32) -> Script {
    let consultations = ConsultationLimits { vote, max_per_run, ..ConsultationLimits::default() };
    let mut run = calling(&[LOOK], Settings { consultations, ..settings() });
    run.outcome(1, unavailable());
    run
}

fn of_voter(voter: u32) -> Subject {
    Subject::Vote { consultation: 1, voter }
}

fn votes(run: &mut Script, voter: u32, at: u32) {
    let question = run.reply(of_voter(voter));
    let model = Some(format!("model {voter}"));
    run.record(Event::Voted { consultation: 1, voter, question, at, reason: String::new(), model });
    run.settle();
}

fn abstains(run: &mut Script, voter: u32) {
    let call = run.question(of_voter(voter));
    let (error, usage) = (Fault::new("llm.down", "gone"), Usage::default());
    run.record(Event::ModelFailed { call, error, usage, millis: 1, attempts: vec![] });
    run.settle();
}

fn vote_questions(run: &Script) -> usize {
    run.state.asks.values().filter(|ask| matches!(ask.subject, Subject::Vote { .. })).count()
}

#[test]
fn majority_decides_and_the_rest_is_not_waited_for() {
    let mut run = voting(3, 4);
    assert_eq!((vote_questions(&run), run.state.consulted), (3, 3), "all are asked at once, and counted");
    votes(&mut run, 3, 1);
    assert_eq!(run.begun(), ["look {\"n\":1}"], "one of three is no majority");
    votes(&mut run, 1, 1);
    assert_eq!(run.begun(), ["look {\"n\":1}", "glance {\"n\":1}"]);
    let own = &run.state.consultations[&1];
    assert_eq!(
        (own.ended, own.model.as_deref()),
        (true, Some("model 1")),
        "the earliest voter for it is named"
    );
    // The late reply is recorded and changes nothing.
    let before = run.state.consultations.clone();
    run.reply(of_voter(2));
    run.settle();
    assert_eq!(run.state.consultations, before);
    assert!(run.state.next().is_empty(), "{:?}", run.state.next());
}

#[test]
fn first_voter_breaks_a_tie() {
    for (first, second, expected) in [(1, 0, "glance"), (0, 1, "peek")] {
        let mut run = voting(2, 4);
        votes(&mut run, 2, second);
        votes(&mut run, 1, first);
        assert_eq!(run.begun()[1], format!("{expected} {{\"n\":1}}"));
    }
}

#[test]
fn voter_without_a_reply_abstains_and_without_any_vote_the_order_counts() {
    let mut run = voting(3, 4);
    abstains(&mut run, 1);
    abstains(&mut run, 3);
    votes(&mut run, 2, 1);
    assert_eq!(run.begun()[1], "glance {\"n\":1}");
    let mut run = voting(2, 4);
    abstains(&mut run, 1);
    abstains(&mut run, 2);
    assert_eq!(run.begun()[1], "peek {\"n\":1}");
    assert!(run.state.consultations[&1].unanswered);
}

#[test]
fn votes_are_within_the_bound_of_the_run() {
    let mut run = voting(3, 2);
    assert_eq!((vote_questions(&run), run.state.consultations[&1].voters), (2, 2));
    votes(&mut run, 1, 0);
    votes(&mut run, 2, 0);
    run.outcome(2, broken());
    run.outcome(3, broken());
    assert_eq!(run.state.consultations.len(), 2);
    assert!(run.state.consultations[&2].question.is_none(), "nothing is left for a recovery");
    let run = voting(3, 1);
    assert_eq!((vote_questions(&run), run.consultation_questions()), (0, 1), "one model decides");
}

#[test]
fn vote_is_the_reading_of_a_reply_and_for_an_option() {
    let mut run = voting(3, 4);
    let question = run.reply(of_voter(2));
    let vote =
        |voter, at| Event::Voted { consultation: 1, voter, question, at, reason: String::new(), model: None };
    assert!(run.state.check(&vote(2, 1)).is_ok());
    assert!(run.state.check(&vote(2, 2)).is_err(), "not offered");
    assert!(run.state.check(&vote(1, 1)).is_err(), "of another voter");
    let end = choice(&run, 1, question, 1);
    assert!(run.state.check(&end).is_err(), "one vote does not end it");
}

#[test]
fn equal_failures_of_a_run_share_one_vote() {
    let consultations = ConsultationLimits { vote: 2, max_per_run: 9, ..ConsultationLimits::default() };
    let mut run = calling(&[LOOK, LOOK_ELSEWHERE], Settings { consultations, ..settings() });
    run.outcome(1, unavailable());
    run.outcome(2, unavailable());
    assert_eq!((vote_questions(&run), run.state.consulted), (2, 4), "counted when they are opened");
    votes(&mut run, 1, 1);
    votes(&mut run, 2, 1);
    assert_eq!((vote_questions(&run), run.state.consulted), (2, 2), "nobody was asked for the second");
    assert_eq!(run.state.consultations[&2].chosen, Some(ConsultationChoice::Decision { at: 1 }));
}
