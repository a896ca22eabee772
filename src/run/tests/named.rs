//! Named runs, each with a snapshot of the whole state after every event.

use serde_json::json;

use super::script::{BOOK, LOOK, PAY, Script};
use crate::plan::StepStatus;
use crate::run::{
    Effect, Event, Fault, Outcome, PlanMaker, RULES_REVISION, Repeat, RunStatus, Settings, Subject, Usage,
};

fn script() -> Script {
    Script::new(Settings::default())
}

#[test]
fn two_scenes_in_order() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!({ "weather": "sunny" }));
    run.reply_with_end(1, "It is sunny.", false);
    run.reply_with_calls(2, &[BOOK]);
    run.done(2, json!({ "id": 7 }));
    run.reply_with_end(2, "Booked.", false);
    run.check(None, true, Some("It is sunny, and it is booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
    insta::assert_snapshot!(run.story());
}

#[test]
fn duplicate_call_across_parallel_steps_runs_once() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.reply_with_calls(2, &[LOOK]);
    assert!(run.state.next().is_empty(), "the second waits for the first");
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.reply_with_end(2, "Sunny too.", false);
    run.check(None, true, Some("Sunny."));
    insta::assert_snapshot!(run.story());
}

#[test]
fn write_cut_off_by_a_crash_is_unknown_and_holds_its_tool() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.record(Event::RunResumed { epoch: 1, restart: false, catalogue: None });
    run.settle();
    run.reply_with_calls(1, &[BOOK, ("book", Effect::Write, Repeat::Never, 2), LOOK]);
    run.done(4, json!("nothing there"));
    run.reply_with_end(1, "It is not known whether it was booked.", false);
    run.check(None, true, Some("Nobody knows."));
    assert_eq!(run.state.status, RunStatus::Partial);
    assert_eq!(run.state.calls.values().filter(|c| c.attempts > 0).count(), 2, "one write and one read ran");
    insta::assert_snapshot!(run.story());
}

#[test]
fn keyed_write_is_repeated_once_with_the_same_key() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[PAY]);
    run.record(Event::RunResumed { epoch: 1, restart: false, catalogue: None });
    run.settle();
    run.outcome(1, Outcome::Unknown { error: Fault::new("tool.timeout", "no reply") });
    assert_eq!(run.state.calls[&1].attempts, 2);
    run.reply_with_end(1, "It is not known whether it was paid.", false);
    run.check(None, true, Some("Nobody knows."));
    assert_eq!(run.state.status, RunStatus::Partial);
}

#[test]
fn replan_after_the_check_depends_on_completed_steps() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.check(Some("the booking"), false, None);
    run.plan(PlanMaker::Deterministic, &[("B", &[1])]);
    run.reply_with_calls(2, &[BOOK]);
    run.done(2, json!({ "id": 7 }));
    run.reply_with_end(2, "Booked.", false);
    run.check(None, true, Some("Sunny and booked."));
    assert_eq!(run.state.status, RunStatus::Completed);
    insta::assert_snapshot!(run.story());
}

#[test]
fn missing_user_input_is_asked_for() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.reply_with_end(2, "", true);
    run.check(None, false, Some("Sunny. When do you want to go?"));
    assert_eq!(run.state.status, RunStatus::NeedsInput);
    insta::assert_snapshot!(run.story());
}

#[test]
fn cancellation_waits_for_the_write_in_flight_and_starts_nothing() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[BOOK, LOOK]);
    run.record(Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    assert!(run.state.next().is_empty());
    run.done(1, json!({ "id": 7 }));
    assert_eq!(run.state.status, RunStatus::Cancelled);
    assert!(run.state.outcome(1).is_some() && run.state.calls[&2].attempts == 0);
    insta::assert_snapshot!(run.story());
}

#[test]
fn fallback_plans_when_models_fail_and_its_write_is_refused() {
    let mut run = script();
    let call = run.question(Subject::Plan { version: 1 });
    let error = Fault::new("llm.unreachable", "nobody is there");
    run.record(Event::ModelFailed { call, error, usage: Usage::default(), millis: 9, attempts: vec![] });
    run.settle();
    run.plan(PlanMaker::Fallback, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK, BOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny, and nothing was booked.", false);
    run.check(None, true, Some("Sunny. Nothing was booked."));
    assert_eq!(run.state.status, RunStatus::Partial);
    assert_eq!(run.state.calls[&2].attempts, 0);
    insta::assert_snapshot!(run.story());
}

#[test]
fn write_before_the_deadline_is_reported_despite_an_unfinished_step() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[BOOK]);
    run.done(1, json!("booked as 7"));
    run.record(Event::CancelRequested { by: "deadline".to_owned(), deadline: true, note: None });
    run.settle();
    assert_eq!(run.state.status, RunStatus::Partial);
    let answer = run.state.answer.unwrap().text;
    assert!(answer.contains("booked as 7"), "{answer}");
}

fn ranked() -> Script {
    Script::new(Settings { embeddings_timeout_ms: 2_000, ..Settings::default() })
}

fn failed(call: u32) -> Event {
    Event::ModelFailed {
        call,
        error: Fault::new("llm.status", "it answered with status 500"),
        usage: Usage::default(),
        millis: 1,
        attempts: vec![],
    }
}

#[test]
fn scenes_are_ranked_before_the_first_plan_and_only_once() {
    let mut run = ranked();
    assert_eq!(run.question(Subject::Ranking), 1);
    assert!(run.state.next().is_empty(), "the plan waits for the ranking");
    run.reply(Subject::Ranking);
    run.record(Event::ScenesRanked { call: 1, scenes: vec!["B".to_owned(), "A".to_owned()] });
    run.settle();
    assert_eq!(run.state.ranking.as_deref(), Some(&["B".to_owned(), "A".to_owned()][..]));
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    run.check(Some("the rest"), true, None);
    assert_eq!(run.question(Subject::Plan { version: 2 }), run.state.next_ask() - 1, "the ranking is kept");
    assert!(run.state.asks.values().filter(|ask| ask.subject == Subject::Ranking).count() == 1);
}

#[test]
fn plan_is_made_without_a_ranking_that_failed_or_was_lost() {
    let lost = Event::RunResumed { epoch: 1, restart: false, catalogue: None };
    let rejected = Event::ReplyRejected { call: 1, problems: vec![] };
    for (has_reply, end) in [(false, failed(1)), (false, lost), (true, rejected)] {
        let mut run = ranked();
        if has_reply {
            run.reply(Subject::Ranking);
        }
        run.record(end);
        run.settle();
        assert_eq!(run.state.ranking, None);
        assert_eq!(run.question(Subject::Plan { version: 1 }), 2);
    }
    let mut run = ranked();
    run.record(Event::RunResumed { epoch: 1, restart: true, catalogue: None });
    run.settle();
    assert_eq!(run.question(Subject::Ranking), 2, "a restart is not its fault");
}

#[test]
fn ranking_is_admitted_only_where_its_reply_is_to_be_read() {
    let mut run = ranked();
    let ranking = |call| Event::ScenesRanked { call, scenes: vec!["A".to_owned()] };
    assert!(run.state.check(&ranking(1)).is_err(), "it is in flight");
    run.reply(Subject::Ranking);
    assert!(run.state.check(&ranking(2)).is_err());
    assert!(run.state.check(&ranking(1)).is_ok());
    let mut run = script();
    run.reply(Subject::Plan { version: 1 });
    assert!(run.state.check(&ranking(1)).is_err(), "another question");
}

#[test]
fn cancellation_after_the_answer_has_no_effect() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    run.done(1, json!("sunny"));
    run.reply_with_end(1, "Sunny.", false);
    let round = 1;
    let call = run.question(Subject::Continuation { round });
    run.record(Event::ModelReplied {
        call,
        reply: Default::default(),
        usage: Usage::default(),
        millis: 1,
        attempts: vec![],
    });
    let verdict =
        crate::run::Verdict { can_answer_now: true, answer: Some("Sunny.".to_owned()), ..Default::default() };
    run.record(Event::Continuation { round, verdict, degraded: false });
    run.record(Event::Answered { text: "Sunny.".to_owned(), degraded: false, error: None });
    run.record(Event::CancelRequested { by: "keysersoze".to_owned(), deadline: false, note: None });
    run.settle();
    assert_eq!(run.state.status, RunStatus::Completed);
}

#[test]
fn waiting_call_keeps_its_place_in_the_call_limit() {
    let mut run = Script::new(Settings { max_calls: 2, ..Settings::default() });
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    // The first waits for the equal call of the other step; one more may run in parallel, not two.
    run.reply_with_calls(
        2,
        &[LOOK, ("look", Effect::Read, Repeat::Never, 2), ("look", Effect::Read, Repeat::Never, 3)],
    );
    assert_eq!(run.state.calls[&3].attempts, 1);
    assert_eq!(run.state.outcome(4), None, "whether there is a place for it is not known yet");
    run.done(1, json!("sunny"));
    assert_eq!(run.state.calls[&4].attempts, 1, "the first shared an outcome and left its place");
}

#[test]
fn step_without_text_or_result_fails() {
    let mut run = script();
    run.plan(PlanMaker::Deterministic, &[("A", &[])]);
    run.reply_with_end(1, " ", false);
    assert_eq!(run.state.steps[&1].status, StepStatus::Failed);
}

#[test]
fn run_that_crashes_every_driver_is_ended() {
    let mut run = Script::new(Settings { fallback_enabled: false, ..Settings::default() });
    for epoch in 1..6 {
        if !run.state.status.is_terminal() {
            run.record(Event::RunResumed { epoch, restart: false, catalogue: None });
            run.settle();
        }
    }
    assert_eq!(run.state.status, RunStatus::Failed);
    let error = run.state.error.as_ref().unwrap();
    assert_eq!((error.code.as_str(), &error.say), ("run.poisonous", &None));
    assert_eq!((run.state.epoch, run.state.asks.len()), (3, 3));
}

/// Has each of three drivers crash, which ends the run.
fn crash_every_driver(run: &mut Script) {
    for epoch in 1..=3 {
        run.record(Event::RunResumed { epoch, restart: false, catalogue: None });
        run.settle();
    }
    assert!(run.state.status.is_terminal());
}

#[test]
fn user_reads_in_their_language_that_a_run_was_ended_by_crashes_and_the_journal_says_why() {
    let settings = Settings { rules: RULES_REVISION, ..Settings::default() };
    let mut run = Script::new(settings.clone());
    crash_every_driver(&mut run);
    let error = run.state.error.clone().unwrap();
    assert_eq!(
        error.user_text(run.state.language()),
        "Non è stato possibile completare la richiesta per un errore interno."
    );
    assert!(error.message.contains("3 times in a row"), "{error:?}");

    // Something was done before.
    let mut run = Script::new(settings);
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[1])]);
    run.reply_with_calls(1, &[BOOK]);
    run.done(1, json!({ "id": 7 }));
    run.reply_with_end(1, "Prenotato.", false);
    crash_every_driver(&mut run);
    let answer = &run.state.answer.as_ref().unwrap().text;
    assert!(answer.starts_with("Prenotato.\n"), "{answer}");
    assert!(
        answer.ends_with("\nNon è stato possibile completare la richiesta per un errore interno."),
        "{answer}"
    );
    assert!(!answer.contains("process") && !answer.contains("times"), "{answer}");
    assert_eq!(run.state.status, RunStatus::Partial);
    let story = run.story();
    assert!(story.contains("run.poisonous") && story.contains("3 times in a row"), "{story}");
}

#[test]
fn question_that_crashes_every_driver_fails() {
    let mut run = Script::new(Settings { fallback_enabled: false, ..Settings::default() });
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("B", &[])]);
    for epoch in 1..=4 {
        // The run makes progress each time, but this question never does.
        run.reply_with_calls(2, &[("look", Effect::Read, Repeat::Never, epoch)]);
        run.record(Event::RunResumed { epoch, restart: false, catalogue: None });
        run.settle();
        let number = *run.state.calls.keys().next_back().unwrap();
        run.done(number, json!("sunny"));
    }
    let step = &run.state.steps[&1];
    assert_eq!(step.status, StepStatus::Failed);
    assert_eq!(step.error.as_ref().unwrap().code, "llm.interrupted");
    assert_eq!(run.state.status, RunStatus::Running);
}
