//! Models that cannot be used: depending on the configuration, the offline model replaces them and never writes,
//! or the request is refused with a clear error. Completed work is reported in either case.

use proscenium::plan::StepStatus;
use proscenium::run::{ApprovalScope, ApprovalSubject, Event, PlanMaker, RunStatus};
use proscenium::{CallOutcome, Config};
use serde_json::{Value, json};

use crate::support::planner_engine::{
    AnsweredRun, FROM_ANSWER, ModelRules, QuestionKind, Town, more, plan, requests, step,
};
use crate::support::{Scripted, ScriptedLlm, section};

const REQUEST: &str = "Find the book Dune and then book a parking space for tomorrow for the plate AB123CD.";

fn both() -> Value {
    plan(json!([
        step(1, "Library", &["FindBook"], Value::Null),
        step(2, "Parking", &["BookSpace"], json!(1)),
    ]))
}

/// Rules whose planner never gives a usable reply.
fn no_plan() -> ModelRules {
    ModelRules::of(both()).plan(|_, _| Scripted::Text("I would rather talk about the sea.".into()))
}

/// The read ran, and the write waits for confirmation with its arguments shown.
fn assert_read_and_asks_before_it_writes(town: &Town, finished: &AnsweredRun) {
    assert_eq!(town.log.names(), ["FindBook"], "{finished:#?}");
    assert_eq!(finished.answer.status, RunStatus::Waiting, "{finished:#?}");
    let calls = finished.answer.steps.iter().flat_map(|step| &step.tool_calls);
    assert!(calls.into_iter().all(|call| call.tool != "BookSpace"), "it has no outcome yet: {finished:#?}");
    let asked = finished.events.iter().find_map(|event| match event {
        Event::ApprovalRequired { matter: ApprovalSubject::Call { .. }, needed, .. } => Some(needed),
        _ => None,
    });
    let why = asked.unwrap_or_else(|| panic!("no approval is required: {finished:#?}")).why.join("; ");
    assert!(why.contains("BookSpace of Parking writes") && why.contains("could not be used"), "{why}");
}

/// The read ran, the write was refused, and the answer reports it.
fn assert_read_but_not_written(town: &Town, finished: &AnsweredRun) {
    assert_eq!(town.log.names(), ["FindBook"], "{finished:#?}");
    assert_eq!(finished.answer.status, RunStatus::Partial, "{finished:#?}");
    let calls = finished.answer.steps.iter().flat_map(|step| &step.tool_calls);
    let write = calls.into_iter().find(|call| call.tool == "BookSpace").unwrap();
    assert_eq!(write.outcome, CallOutcome::Refused);
    assert_eq!(write.error.as_ref().unwrap().code, "policy.fallback_write");
}

#[tokio::test]
async fn fallback_rules_plan_and_ask_before_writes_when_planning_fails() {
    let llm = no_plan().start();
    let town = Town::open(&llm, |config| config.planning.fallback_enabled = true).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(requests(&llm, QuestionKind::Plan).len(), 4);
    let [made] = finished.plans()[..] else { panic!("{finished:#?}") };
    assert_eq!(made.maker, PlanMaker::Fallback);
    assert_read_and_asks_before_it_writes(&town, &finished);
}

#[tokio::test]
async fn fallback_plan_never_writes_when_confirmation_is_off() {
    let llm = no_plan().start();
    let town = Town::open(&llm, |config| {
        config.planning.fallback_enabled = true;
        config.approval.calls = ApprovalScope::Never;
    })
    .await;
    let finished = town.ask(REQUEST).await;
    assert_read_but_not_written(&town, &finished);
    // The prompt for the answer states that nothing was written.
    let executed = section(&requests(&llm, QuestionKind::Check)[0], "executed").unwrap();
    assert!(executed.contains("nothing was written"), "{executed}");
}

#[tokio::test]
async fn unplannable_request_without_fallback_fails_and_executes_nothing() {
    let llm = no_plan().start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Failed);
    let error = finished.answer.error.as_ref().unwrap();
    assert_eq!(error.code, "llm.unusable");
    assert!(error.message.contains("4 replies") && error.message.contains("CreateExecutionPlan"), "{error}");
    assert!(finished.has("planning_failed") && finished.has("run_failed"));
    assert!(finished.plans().is_empty());
    assert!(town.log.calls().is_empty());
    assert_eq!(llm.count(), 4, "only the planner is asked");
}

/// Error code, provider and configuration of an outage.
type Outage = (&'static str, ScriptedLlm, fn(&mut Config));

/// Every kind of provider outage with its error code.
fn outages() -> Vec<Outage> {
    let dead = ScriptedLlm::sequence([Scripted::status(500)]);
    let silent = ScriptedLlm::sequence([Scripted::Silence]);
    let refused = ScriptedLlm::sequence([Scripted::status(401)]);
    let gone = ScriptedLlm::sequence([Scripted::status(500)]);
    vec![
        ("llm.status", dead, |_| {}),
        ("llm.unauthorized", refused, |_| {}),
        ("llm.silence", silent, |config| {
            config.llm.first_token_timeout_ms = 50;
            config.llm.max_attempts = 1;
        }),
        // No server listens on this port.
        ("llm.connect", gone, |config| config.llm.models[0].base_url = "http://127.0.0.1:1/v1".into()),
    ]
}

#[tokio::test]
async fn provider_outage_without_confirmation_reads_and_reports_no_write() {
    for (code, llm, configure) in outages() {
        let town = Town::open(&llm, |config| {
            configure(config);
            config.planning.fallback_enabled = true;
            config.approval.calls = ApprovalScope::Never;
        })
        .await;
        let finished = town.ask(REQUEST).await;
        assert_read_but_not_written(&town, &finished);
        let answer = &finished.answer.answer;
        assert!(answer.contains("shelf B4"), "{code}: {answer}");
        assert!(answer.contains("nothing was written"), "{code}: {answer}");
        let failed = finished.events.iter().find_map(|event| match event {
            Event::ModelFailed { error, .. } => Some(error.code.as_str()),
            _ => None,
        });
        assert_eq!(failed, Some(code), "the events say why");
    }
}

#[tokio::test]
async fn provider_outage_without_fallback_fails_with_the_reason() {
    for (code, llm, configure) in outages() {
        let town = Town::open(&llm, configure).await;
        let finished = town.ask(REQUEST).await;
        assert_eq!(finished.answer.status, RunStatus::Failed, "{code}");
        let error = finished.answer.error.as_ref().unwrap();
        assert_eq!(error.code, code);
        assert!(error.message.contains("scripted"), "the message names the model: {error}");
        assert!(town.log.calls().is_empty());
        assert!(finished.answer.steps.is_empty());
    }
}

/// A provider that fails permanently once the second step is reached.
fn dies_in_the_second_step() -> ModelRules {
    let dead = |request: &Value| section(request, "scene").as_deref() == Some("Parking");
    let well = ModelRules::of(both());
    ModelRules::of(both()).scene(move |request, nth| match dead(request) {
        true => Scripted::status(500),
        false => well.scene_reply(request, nth),
    })
}

#[tokio::test]
async fn scene_model_failure_mid_run_keeps_and_reports_completed_work() {
    let llm = dies_in_the_second_step().start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Partial, "{finished:#?}");
    let statuses: Vec<StepStatus> = finished.answer.steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Completed, StepStatus::Failed]);
    assert_eq!(finished.answer.steps[1].error.as_ref().unwrap().code, "llm.status");
    assert_eq!(town.log.names(), ["FindBook"]);
    let executed = section(&requests(&llm, QuestionKind::Check)[0], "executed").unwrap();
    assert!(executed.contains("\"status\":\"failed\""), "{executed}");
}

#[tokio::test]
async fn total_outage_mid_run_lists_completed_and_missing_work() {
    let llm = dies_in_the_second_step()
        .check(|_, _| Scripted::status(500))
        .answer(|_, _| Scripted::status(500))
        .start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(finished.answer.status, RunStatus::Partial);
    let answer = &finished.answer.answer;
    assert!(answer.contains("Library is done."), "{answer}");
    assert!(answer.contains("Parking") && answer.contains("The service is not available now"), "{answer}");
    let degraded = |event: &Event| matches!(event, Event::Answered { degraded: true, .. });
    assert!(finished.events.iter().any(degraded));
}

#[tokio::test]
async fn rules_replace_a_failed_scene_model_and_ask_before_writes() {
    let llm = dies_in_the_second_step().start();
    let town = Town::open(&llm, |config| config.planning.fallback_enabled = true).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(finished.plans()[0].maker, PlanMaker::Deterministic);
    assert_read_and_asks_before_it_writes(&town, &finished);
}

/// The line of an answer whose text does not mention the booking.
const BOOKED: &str = "BookSpace (day: 2026-05-05, plate: AB123CD)";

#[tokio::test]
async fn failed_check_is_answered_from_completed_work() {
    let llm = ModelRules::of(both()).check(|_, _| Scripted::status(500)).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    // The text does not mention the booking, so it is appended.
    let answer = format!("{FROM_ANSWER}\n{BOOKED}");
    assert_eq!(
        (finished.answer.status, finished.answer.answer.as_str()),
        (RunStatus::Completed, answer.as_str())
    );
    let degraded = |event: &Event| matches!(event, Event::Continuation { degraded: true, .. });
    assert!(finished.events.iter().any(degraded));
}

#[tokio::test]
async fn failed_check_and_answer_list_completed_work() {
    let dead = |_: &Value, _: usize| Scripted::status(500);
    let llm = ModelRules::of(both()).check(dead).answer(dead).start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    assert_eq!(finished.answer.status, RunStatus::Completed);
    assert_eq!(finished.answer.answer, format!("Library is done.\nParking is done.\n{BOOKED}"));
}

#[tokio::test]
async fn failed_replan_reports_completed_work() {
    let play = ModelRules::of(both())
        .plan(|request, nth| match nth {
            0 => Scripted::forced(request, plan(json!([step(1, "Library", &["FindBook"], Value::Null)]))),
            _ => Scripted::status(500),
        })
        .check(|request, _| Scripted::forced(request, more("The parking space.")));
    let llm = play.start();
    let town = Town::open(&llm, |_| {}).await;
    let finished = town.ask(REQUEST).await;
    assert_eq!((finished.answer.status, finished.answer.answer.as_str()), (RunStatus::Partial, FROM_ANSWER));
    assert_eq!(town.log.names(), ["FindBook"]);
    let answer = &requests(&llm, QuestionKind::Answer)[0];
    assert_eq!(section(answer, "undone").as_deref(), Some("The parking space."));
}

#[tokio::test]
async fn greeting_is_answered_by_the_rules_during_an_outage() {
    let llm = ScriptedLlm::sequence([Scripted::status(500)]);
    let town = Town::open(&llm, |config| config.planning.fallback_enabled = true).await;
    let finished = town.ask("Hello! What can you do?").await;
    assert_eq!(finished.answer.status, RunStatus::Partial, "{finished:#?}");
    assert!(finished.answer.answer.contains("Library"), "{}", finished.answer.answer);
    assert_eq!(finished.answer.error, None);
}

#[tokio::test]
async fn truncated_answer_is_retried_or_replaced_by_results() {
    let cut = || Scripted::Text("The book is on".into()).finished("length");
    for (second, text) in
        [(Scripted::Text(FROM_ANSWER.into()), FROM_ANSWER), (cut(), "Library is done.\nParking is done.")]
    {
        let play = ModelRules::of(both()).answer(move |_, nth| if nth == 0 { cut() } else { second.clone() });
        let llm = play.start();
        let town = Town::open(&llm, |config| config.planning.answer_with_check = false).await;
        let finished = town.ask(REQUEST).await;
        assert_eq!(requests(&llm, QuestionKind::Answer).len(), 2);
        let answer = format!("{text}\n{BOOKED}");
        assert_eq!((finished.answer.status, finished.answer.answer), (RunStatus::Completed, answer));
    }
}
