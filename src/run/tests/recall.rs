//! Earlier results in place of failed reads.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::script::{BOOK, LOOK, Script, ScriptedCall};
use crate::adapt::{CachedResult, ExecutionMode, FaultPolicy, PolicyAction, ToolPolicies};
use crate::run::{
    Action, Adaptation, CallStatus, Event, Fault, FaultClass, Outcome, PlanMaker, RecalledResult, Settings,
};

/// A run whose read fails, and that looks for an earlier result. Another step requests `other`.
fn recalling(other: &[ScriptedCall]) -> Script {
    let settings = Settings { rules: 4, mode: Some(ExecutionMode::Adaptive), ..Settings::default() };
    let mut run = Script::new(settings);
    run.state.at = "2026-05-04T09:00:00Z".parse().unwrap();
    run.plan(PlanMaker::Deterministic, &[("A", &[]), ("A", &[])]);
    run.reply_with_calls(1, &[LOOK]);
    if !other.is_empty() {
        run.reply_with_calls(2, other);
    }
    let policy = FaultPolicy { actions: Some(vec![PolicyAction::Cached]), ..FaultPolicy::default() };
    let policies = ToolPolicies {
        by_class: [(FaultClass::Unavailable, policy)].into(),
        cached: Some(CachedResult { max_age_s: 3600 }),
        ..ToolPolicies::default()
    };
    run.state.calls.change(1, |call| call.requested.policies = Some(Box::new(policies)));
    let error = Fault::new("http.status", "503").classed(FaultClass::Unavailable);
    run.outcome(1, Outcome::Failed { error });
    run
}

fn recalled(run: &Script, age_s: i64) -> Event {
    let found = RecalledResult {
        result: json!("sunny"),
        say: None,
        whole: None,
        at: run.state.at - SignedDuration::from_secs(age_s),
        run: run.state.run,
    };
    Event::Adapted { change: Adaptation::Recalled { call: 1, found: Some(Box::new(found)) } }
}

fn nothing() -> Event {
    Event::Adapted { change: Adaptation::Recalled { call: 1, found: None } }
}

#[test]
fn earlier_result_stands_for_the_failed_read() {
    let mut run = recalling(&[]);
    assert!(run.state.next().contains(&Action::Recall { call: 1 }));
    let event = recalled(&run, 60);
    run.record(event);
    let call = &run.state.calls[&1];
    assert!(matches!(&call.status, CallStatus::Done { outcome: Outcome::Ok { .. } }));
    assert_eq!(call.stale_since, Some("2026-05-04T08:59:00Z".parse::<Timestamp>().unwrap()));
    assert!(run.state.has_earlier_result());
    let answer = run.state.with_omissions("It is sunny.");
    // The run's zone is Europe/Rome.
    let line = "Ultimo aggiornamento 10:59, perché ora il servizio non è disponibile: look (n: 1)";
    assert!(answer.contains(line), "{answer}");
}

#[test]
fn result_that_is_too_old_or_from_the_future_is_not_used() {
    for (age, fits) in [(0, true), (3600, true), (3601, false), (-1, false), (i64::from(u32::MAX), false)] {
        let run = recalling(&[]);
        assert_eq!(run.state.check(&recalled(&run, age)).is_ok(), fits, "{age}");
    }
}

#[test]
fn without_an_earlier_result_the_call_has_failed() {
    let mut run = recalling(&[]);
    run.record(nothing());
    run.settle();
    assert!(matches!(run.state.outcome(1), Some(Outcome::Failed { .. })));
    assert!(!run.state.next().contains(&Action::Recall { call: 1 }), "it is looked for once");
}

#[test]
fn write_of_the_run_makes_earlier_results_void() {
    // It was begun before the failure.
    let run = recalling(&[BOOK]);
    assert!(matches!(run.state.outcome(1), Some(Outcome::Failed { .. })), "{:#?}", run.state.calls[&1]);
    // It begins between the choice and the result.
    let mut run = recalling(&[]);
    run.reply_with_calls(2, &[BOOK]);
    if run.state.calls[&2].attempts == 0 {
        run.record(Event::ToolStarted { call: 2, attempt: 1 });
    }
    let event = recalled(&run, 60);
    run.record(event);
    run.settle();
    assert!(matches!(run.state.outcome(1), Some(Outcome::Failed { .. })));
    assert!(!run.state.has_earlier_result());
}
