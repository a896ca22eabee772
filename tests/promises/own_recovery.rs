//! A recovery policy of a library's user: it chooses as a model would, and no more.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proscenium::adapt::{ConsultationOutcome, ExecutionLevel, RecoveryAction};
use proscenium::parts::{Recovery, RecoveryChoice, RecoveryRequest};
use proscenium::run::{Effect, Event, Fault, FaultClass, RunStatus};
use proscenium::scene::{Scene, SceneTool};
use proscenium::tools::ToolError;
use proscenium::{Config, Engine, ExplainedDecider, Explanation};

use crate::support::journal;
use crate::support::planner_engine::AnsweredRun;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

/// What a policy does.
#[derive(Clone, Copy)]
enum Conduct {
    /// Chooses the first option.
    First,
    /// Chooses what is not offered, and then the first option.
    Unoffered { times: u32 },
    /// Returns an error whose code means something for models.
    Error,
    /// Panics.
    Panics,
    /// Never returns.
    Hangs,
}

/// A policy with the questions that it was asked.
#[derive(Clone)]
struct Policy {
    conduct: Conduct,
    asked: Arc<Mutex<Vec<RecoveryRequest>>>,
}

impl Policy {
    fn of(conduct: Conduct) -> Self {
        Self { conduct, asked: Arc::default() }
    }

    fn asked(&self) -> Vec<RecoveryRequest> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Recovery for Policy {
    async fn recover(&self, question: RecoveryRequest) -> Result<RecoveryChoice, Fault> {
        let nth = self.asked().len() as u32;
        let first = question.options[0];
        self.asked.lock().unwrap().push(question);
        let choice = |action| Ok(RecoveryChoice { action, reason: "the shop's rules".to_owned() });
        match self.conduct {
            Conduct::Unoffered { times } if nth < times => choice(RecoveryAction::Skip),
            Conduct::First | Conduct::Unoffered { .. } => choice(first),
            Conduct::Error => Err(Fault::new("budget.exceeded", "no money for rules")),
            Conduct::Panics => panic!("the policy is broken"),
            Conduct::Hangs => std::future::pending().await,
        }
    }
}

/// What became of a request, how often its tool was called, and the explanation.
struct Asked {
    run: AnsweredRun,
    calls: u32,
    explained: Explanation,
}

/// Asks for an order whose tool fails once.
async fn ask(policy: &Policy, configure: impl FnOnce(&mut Config)) -> Asked {
    let dir = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let counter = calls.clone();
    let get = SceneTool::native("GetOrder", "Finds an order.", Effect::Read, move |order: Order, _| {
        let nth = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            if nth == 0 {
                let down = ToolError::failed("warehouse.down", "10.0.0.7 refused the connection");
                return Err(down.classed(FaultClass::Unavailable));
            }
            Ok(serde_json::json!({"number": order.number, "place": "Bologna"}))
        }
    });
    let orders = Scene::builder("Orders")
        .description("Orders of the shop: where they are.")
        .instructions("Use the tool. Never guess a number.")
        .example("Where is order 12?", "GetOrder")
        .tool(get.say("en", "Order {{ number }} is in {{ place }}."))
        .build()
        .unwrap();
    let mut config = Config::default();
    config.store.data_dir = dir.path().to_owned();
    config.execution.level = Some(ExecutionLevel::Adaptive);
    config.execution.policies.attempts = 1;
    configure(&mut config);
    let engine = Engine::builder(config).scene(orders).recovery(policy.clone()).start().await.unwrap();
    let request = engine.request("Where is order 41?", None);
    let tenant = request.tenant.clone();
    let answer = engine.chat(request).await.unwrap();
    let stored = engine.store().run_events(&tenant, answer.run_id).await.unwrap();
    journal::assert_replayed(answer.run_id, &stored, &engine.catalogue());
    let state = proscenium::fold(answer.run_id, &stored);
    let explained = Explanation::new(&stored, &state, true);
    let events = stored.into_iter().map(|event| event.body).collect();
    engine.stop().await.unwrap();
    Asked { run: AnsweredRun { answer, events }, calls: calls.load(Ordering::SeqCst), explained }
}

fn end(run: &AnsweredRun) -> (ConsultationOutcome, bool) {
    let mut ends = run.events.iter().filter_map(|event| match event {
        Event::Consultation { how, chosen, .. } => Some((*how, chosen.is_some())),
        _ => None,
    });
    ends.next_back().unwrap()
}

#[tokio::test]
async fn own_policy_chooses_in_place_of_a_model() {
    let policy = Policy::of(Conduct::First);
    let Asked { run, calls, explained } = ask(&policy, |_| {}).await;
    assert_eq!((run.answer.status, calls), (RunStatus::Completed, 2), "{run:#?}");
    assert!(run.answer.answer.contains("Order 41 is in Bologna."), "{}", run.answer.answer);
    assert_eq!(end(&run), (ConsultationOutcome::Asked, true));
    let [question] = &policy.asked()[..] else { panic!("asked {} times", policy.asked().len()) };
    let failure = &question.failure;
    assert_eq!(
        (failure.scene.as_str(), failure.tool.as_str(), failure.class, failure.effect),
        ("Orders", "GetOrder", FaultClass::Unavailable, Effect::Read)
    );
    let ids: Vec<&str> = question.options.iter().map(|option| option.id()).collect();
    assert_eq!(ids, ["retry", "ask_user", "abort"]);
    // It is told what a model would be told: nothing that a back end or the user said.
    let prompt = format!("{:?}", question.request);
    assert!(!prompt.contains("10.0.0.7") && !prompt.contains("41"), "{prompt}");
    // Journalled like a model's reply, and named as what it is.
    let decided = run.answer.metadata.decisions.iter().find(|one| one.decided.is_some()).unwrap();
    assert_eq!((decided.model.as_str(), decided.decided.as_deref()), ("replaced", Some("retry")));
    let entry = explained.unexpected.first().unwrap();
    assert_eq!((entry.decided_by, entry.chosen.as_deref()), (ExplainedDecider::Part, Some("retry")));
    assert_eq!(entry.consultation.as_ref().unwrap().reason.as_deref(), Some("the shop's rules"));
}

#[tokio::test]
async fn choice_that_was_not_offered_is_returned_and_then_given_up() {
    let policy = Policy::of(Conduct::Unoffered { times: 1 });
    let Asked { run, calls, .. } = ask(&policy, |_| {}).await;
    assert_eq!((run.answer.status, calls), (RunStatus::Completed, 2), "{run:#?}");
    assert_eq!(run.rejected(), [["consultation.choice"]]);
    let asked = policy.asked();
    assert!(asked[0].problems.is_empty());
    assert_eq!(asked[1].problems[0].code, "consultation.choice");

    let policy = Policy::of(Conduct::Unoffered { times: u32::MAX });
    let Asked { run, calls, .. } = ask(&policy, |config| config.planning.max_retries = 1).await;
    assert_eq!((end(&run).1, calls, policy.asked().len()), (false, 1, 2), "{run:#?}");
    assert_ne!(run.answer.status, RunStatus::Completed);
}

#[tokio::test]
async fn policy_that_panics_hangs_or_fails_leaves_the_decision_to_predefined_logic() {
    for conduct in [Conduct::Panics, Conduct::Hangs, Conduct::Error] {
        let policy = Policy::of(conduct);
        let Asked { run, calls, .. } =
            ask(&policy, |config| config.execution.consultations.timeout_ms = 1000).await;
        // It counts as asked, whatever the code of its error would mean for a model.
        assert_eq!(end(&run), (ConsultationOutcome::Asked, false), "{run:#?}");
        assert_eq!((calls, policy.asked().len()), (1, 1));
        assert_ne!(run.answer.status, RunStatus::Completed);
        assert!(!run.answer.answer.is_empty());
    }
}

#[tokio::test]
async fn own_policy_is_not_asked_where_no_model_may_be_asked() {
    for level in [None, Some(ExecutionLevel::Basic)] {
        let policy = Policy::of(Conduct::First);
        let Asked { run, calls, .. } = ask(&policy, |config| config.execution.level = level).await;
        assert_eq!((policy.asked().len(), calls), (0, 1), "{run:#?}");
    }
}
