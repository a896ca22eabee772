//! A planner, a maker of plans for approval, and an executor of one's own: `cargo run --example own_parts`
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use proscenium::parts::{Executor, Generator, Planner, PlannerRequest, ToolExecution, ToolRunner};
use proscenium::plan::{DependsOn, Plan, Step};
use proscenium::run::{Effect, Fault, Outcome, Verdict};
use proscenium::{Answer, Config, Engine, scene::Scene, scene::SceneTool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

/// Plans by a rule of the shop in place of a model: an order is looked at before anything else.
struct Rules;

#[async_trait]
impl Planner for Rules {
    async fn plan(&self, question: PlannerRequest) -> Result<Plan, Fault> {
        let first = question.state.last_step() + 1;
        let step = |number: u32, tool: &str, after: Option<u32>| Step {
            step_number: number,
            scene_name: "Orders".to_owned(),
            purpose: question.state.request().to_owned(),
            expected_tools: vec![tool.to_owned()],
            depends_on_step: after.into_iter().collect::<DependsOn>(),
            ..Step::default()
        };
        let mut steps = vec![step(first, "GetOrder", None)];
        if question.state.request().to_lowercase().contains("cancel") {
            steps.push(step(first + 1, "CancelOrder", Some(first)));
        }
        Ok(Plan { needs_execution: true, reasoning: "the shop's rules".to_owned(), steps, ..Plan::default() })
    }

    async fn check(&self, _: PlannerRequest) -> Result<Verdict, Fault> {
        Ok(Verdict { can_answer_now: true, reasoning: "one plan is enough".to_owned(), ..Verdict::default() })
    }
}

#[async_trait]
impl Generator for Rules {
    async fn generate(&self, question: PlannerRequest) -> Result<Plan, Fault> {
        let mut plan = self.plan(question.clone()).await?;
        // What a person wants changed: "look only".
        if question.feedback.is_some_and(|feedback| feedback.words.contains("look only")) {
            plan.steps.truncate(1);
        }
        Ok(plan)
    }
}

/// Writes down every call before the scene's own tool carries it out.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Executor for Ledger {
    async fn execute(&self, call: ToolExecution, scene: &dyn ToolRunner) -> Outcome {
        if let Ok(mut lines) = self.0.lock() {
            lines.push(format!("{} {}", call.tool, call.arguments));
        }
        scene.call(&call).await
    }
}

/// Answers `message` with what is kept in `dir`; gives the lines of the ledger, too.
pub async fn ask(
    message: &str,
    dir: std::path::PathBuf,
) -> Result<(Answer, Vec<String>), Box<dyn std::error::Error>> {
    let get = SceneTool::native("GetOrder", "Finds an order.", Effect::Read, |order: Order, _| async move {
        Ok(serde_json::json!({"number": order.number, "place": "Bologna"}))
    });
    let cancel = SceneTool::native("CancelOrder", "Cancels one.", Effect::Write, |o: Order, _| async move {
        Ok(serde_json::json!({"number": o.number, "refund": 30}))
    });
    let orders = Scene::builder("Orders")
        .description("Orders of the shop: where they are, and cancelling them.")
        .instructions("Use the tools. Never guess a number.")
        .example("Where is order 12?", "GetOrder")
        .example("Cancel order 7", "CancelOrder")
        .tool(get.say("en", "Order {{ number }} is in {{ place }}."))
        .tool(cancel.say("en", "Order {{ number }} is cancelled, {{ refund }} euros come back."));
    let mut config = Config::default(); // no model is configured, so the offline model fills the arguments
    config.store.data_dir = dir;
    let ledger = Ledger::default();
    let engine = Engine::builder(config)
        .scene(orders.build()?)
        .planner(Rules)
        .generator(Rules)
        .executor(ledger.clone())
        .start()
        .await?;
    let answer = engine.chat(engine.request(message, None)).await?;
    engine.stop().await?;
    let lines = ledger.0.lock().map(|lines| lines.clone()).unwrap_or_default();
    Ok((answer, lines))
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is a program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (answer, lines) = ask("Cancel order 41", std::env::temp_dir().join("own-parts")).await?;
    println!("{}\n\nThe ledger: {}", answer.answer, lines.join("; "));
    Ok(())
}
