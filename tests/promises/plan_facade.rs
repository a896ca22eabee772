//! Plans for library users (`Engine::plans`): generate, modify, approve, cancel, status, list.

use proscenium::plan::PlanStatus;
use proscenium::run::RunStatus;
use serde_json::{Value, json};

use crate::support::planner_engine::{ModelRules, QuestionKind, Town, arguments_of, plan, requests, step};
use crate::support::{Scripted, section};

const REQUEST: &str = "Book a parking space for tomorrow for the plate AB123CD.";

/// A step whose write is shown with its arguments, so that the plan's approval covers it.
fn books_a_space(number: u32, depends: Value) -> Value {
    let mut step = step(number, "Parking", &["BookSpace"], depends);
    step["prepared_calls"] = json!([{"tool": "BookSpace", "arguments": arguments_of("BookSpace")}]);
    step
}

fn books() -> Value {
    plan(json!([books_a_space(1, Value::Null)]))
}

#[tokio::test]
async fn plan_is_generated_changed_approved_and_listed() {
    let both = plan(json!([step(1, "Library", &["FindBook"], Value::Null), books_a_space(2, json!(1)),]));
    let rules = ModelRules::of(books()).plan(move |request, _| {
        let changed = section(request, "feedback").is_some();
        Scripted::call("CreateExecutionPlan", if changed { both.clone() } else { books() })
    });
    let llm = rules.start();
    let town = Town::open(&llm, |_| {}).await;
    let plans = town.engine.plans();

    let made = plans.generate(REQUEST).await.unwrap();
    assert_eq!((made.status, made.version, made.approved), (PlanStatus::PendingApproval, 1, false));
    assert_eq!(made.plan.as_ref().unwrap().steps.len(), 1);
    assert!(town.log.names().is_empty(), "{made:#?}");

    let changed = plans.modify(made.task_id, 1, "find the book Dune first").await.unwrap();
    assert_eq!((changed.status, changed.version, changed.approved), (PlanStatus::PendingApproval, 2, false));
    let stale = plans.approve(made.task_id, 1).await.unwrap_err();
    assert_eq!(stale.code, "approval.changed");
    assert!(town.log.names().is_empty());

    let done = plans.approve(made.task_id, 2).await.unwrap();
    assert!(done.approved && done.run_status == RunStatus::Completed, "{done:#?}");
    assert_eq!(town.log.names(), ["FindBook", "BookSpace"]);
    let status = plans.status(made.task_id).await.unwrap();
    assert_eq!((status.status, status.approved), (PlanStatus::Completed, true));
    assert_eq!(plans.cancel(made.task_id, None).await.unwrap_err().code, "run.ended");
    let listed = plans.list(&proscenium::store::Page::default()).await.unwrap();
    assert_eq!(listed.iter().map(|row| (row.task_id, row.version)).collect::<Vec<_>>(), [(made.task_id, 2)]);
}

#[tokio::test]
async fn cancelled_plan_executes_nothing_and_was_not_approved() {
    let llm = ModelRules::of(books()).start();
    let town = Town::open(&llm, |_| {}).await;
    let plans = town.engine.plans();
    let made = plans.generate(REQUEST).await.unwrap();
    let cancelled = plans.cancel(made.task_id, Some("not today")).await.unwrap();
    assert_eq!((cancelled.status, cancelled.approved), (PlanStatus::Cancelled, false));
    assert!(town.log.names().is_empty());
}

#[tokio::test]
async fn plans_of_other_users_are_unknown() {
    let llm = ModelRules::of(books()).start();
    let town = Town::open(&llm, |_| {}).await;
    let made = town.engine.plans().generate(REQUEST).await.unwrap();
    let (tenant, _) = town.engine.default_principal();
    let others = town.engine.plans_of(tenant, "mallory");
    assert_eq!(others.status(made.task_id).await.unwrap_err().code, "plan.unknown");
    assert_eq!(others.approve(made.task_id, 1).await.unwrap_err().code, "plan.unknown");
    assert!(others.list(&proscenium::store::Page::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn supplied_plan_is_validated_and_waits_for_approval() {
    let llm = ModelRules::of(books()).start();
    let town = Town::open(&llm, |_| {}).await;
    let plans = town.engine.plans();
    let own = serde_json::from_value(books()).unwrap();
    let put = plans.supply(REQUEST, own).await.unwrap();
    assert_eq!((put.status, put.approved), (PlanStatus::PendingApproval, false));
    let unknown = plan(json!([step(1, "Theatre", &["Book"], Value::Null)]));
    let refused = plans.supply(REQUEST, serde_json::from_value(unknown).unwrap()).await.unwrap_err();
    assert_eq!(refused.code, "plan.invalid");
    assert!(refused.message.contains("Theatre"), "{refused}");
}

#[tokio::test]
async fn operators_instructions_reach_the_planner_and_no_other_question() {
    let llm = ModelRules::of(books()).start();
    let town = Town::open(&llm, |config| {
        config.planning.system_prompt = "Never plan more than one step per scene.".to_owned();
    })
    .await;
    town.ask(REQUEST).await;
    let has =
        |kind| requests(&llm, kind).iter().any(|asked| asked.to_string().contains("one step per scene"));
    assert!(has(QuestionKind::Plan));
    assert!(!has(QuestionKind::Check) && !has(QuestionKind::Scene));
    let config = |length: usize| {
        let mut config = proscenium::Config::default();
        config.planning.system_prompt = "x".repeat(length);
        config.problems()
    };
    assert!(config(8_000).is_empty());
    let [problem] = &config(8_001)[..] else { panic!("one problem") };
    assert_eq!(problem.keys, ["planning.system_prompt"]);
}
