//! A learned plan whose tool changes or fails is not reused again: within one request.

use std::fs;

use proscenium::LearnedStanding;
use proscenium::run::{Demotion, Event, RecallOutcome, RunStatus};
use serde_json::{Value, json};

use crate::support::planner_engine::{ModelRules, plan, step};
use crate::support::{
    FaultyBackend, FinishedRun, Misbehaviour, Scripted, ScriptedLlm, Setup, TestEngine, section,
};

fn scene(address: &str, description: &str) -> String {
    format!(
        "name = \"Orders\"\ndescription = \"Orders of the shop.\"\ninstructions = \"Look them up.\"\n\
         examples = [{{ say = \"Show order 7\", tool = \"GetOrder\" }}]\n[[tools]]\nname = \"GetOrder\"\n\
         description = \"{description}\"\neffect = \"read\"\n\
         parameters = {{ type = \"object\", required = [\"number\"], properties = {{ number = {{ type = \"integer\", \
         description = \"The order's number\" }} }} }}\nhttp = {{ method = \"GET\", url = \"{address}/orders/{{number}}\" }}\n\
         say = {{ en = \"Order: {{{{ text }}}}.\" }}\n"
    )
}

fn planner() -> ScriptedLlm {
    let rule = |request: &Value, _| {
        let words = section(request, "request").unwrap();
        let number: u64 = words.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
        let mut planned = step(1, "Orders", &["GetOrder"], Value::Null);
        let arguments = json!({"number": number}).to_string();
        planned["prepared_calls"] = json!([{"tool": "GetOrder", "arguments": arguments}]);
        planned["if_needed"] = json!([]);
        Scripted::forced(request, plan(json!([planned])))
    };
    ModelRules::of(Value::Null).plan(rule).start()
}

struct Shop {
    llm: ScriptedLlm,
    backend: FaultyBackend,
    scenes: tempfile::TempDir,
    test: TestEngine,
}

impl Shop {
    async fn open(script: impl Fn(&str, usize) -> Misbehaviour + Send + Sync + 'static) -> Self {
        let (llm, backend) = (planner(), FaultyBackend::start(script));
        let scenes = tempfile::tempdir().unwrap();
        fs::create_dir(scenes.path().join("orders")).unwrap();
        let shop = backend.address().to_owned();
        fs::write(scenes.path().join("orders/scene.toml"), scene(&shop, "Tells where an order is.")).unwrap();
        let host = shop.trim_start_matches("http://");
        let setup = Setup::scripted(&llm)
            .alone()
            .scenes(scenes.path())
            .set("scenes.allow_hosts", format!("[\"{host}\"]"))
            .set("planning.learn", "reuse")
            .set("execution.level", "basic");
        Self { test: setup.start().await, llm, backend, scenes }
    }

    async fn ask(&self, number: u32) -> (FinishedRun, RecallOutcome) {
        let run = self.test.chat(&format!("s-{number}"), &format!("Show order {number}.")).await;
        let recalled = run.events.iter().find_map(|event| match &event.body {
            Event::PlanRecalled(recall) => Some(recall.outcome),
            _ => None,
        });
        (run, recalled.unwrap())
    }

    async fn prove(&self) {
        for number in 1..=3 {
            assert_eq!(self.ask(number).await.0.answer.status, RunStatus::Completed);
        }
        assert_eq!(self.ask(4).await.1, RecallOutcome::Reused);
        assert_eq!(self.llm.count(), 3);
    }

    async fn known(&self) -> proscenium::LearnedDocument {
        self.test.engine.learned_plans(&self.test.tenant, None, 10).await.unwrap().remove(0)
    }
}

#[tokio::test]
async fn changed_definition_demotes_within_one_request() {
    let shop = Shop::open(|_, _| Misbehaviour::Answer).await;
    shop.prove().await;
    let changed = scene(shop.backend.address(), "Tells who packed an order.");
    fs::write(shop.scenes.path().join("orders/scene.toml"), changed).unwrap();
    shop.test.engine.reload(shop.test.config.clone()).await.unwrap();
    let (run, outcome) = shop.ask(5).await;
    assert_eq!((run.answer.status, outcome), (RunStatus::Completed, RecallOutcome::Changed));
    assert_eq!(shop.llm.count(), 4, "the planner was asked");
    // It is learned anew, as the tool is now.
    let known = shop.known().await;
    assert_eq!((known.successes, known.standing), (1, LearnedStanding::Unproven));
    for number in 6..=7 {
        assert_eq!(shop.ask(number).await.1, RecallOutcome::Unproven);
    }
    assert_eq!(shop.ask(8).await.1, RecallOutcome::Reused);
}

#[tokio::test]
async fn failing_back_end_suspends_and_a_missing_object_demotes_within_one_request() {
    let shop = Shop::open(|place, _| match place {
        "GET /orders/5" => Misbehaviour::Status(503, Vec::new()),
        "GET /orders/7" => Misbehaviour::Status(404, Vec::new()),
        _ => Misbehaviour::Answer,
    })
    .await;
    shop.prove().await;
    let (run, outcome) = shop.ask(5).await;
    assert_eq!(outcome, RecallOutcome::Reused);
    assert_ne!(run.answer.status, RunStatus::Completed);
    assert_eq!(shop.known().await.standing, LearnedStanding::Suspended);
    assert_eq!(shop.ask(6).await.1, RecallOutcome::Suspended);
    assert_eq!(shop.llm.count(), 4, "the planner was asked");
    shop.ask(7).await;
    let known = shop.known().await;
    assert_eq!((known.standing, known.demoted), (LearnedStanding::Demoted, Some(Demotion::Failure)));
}
