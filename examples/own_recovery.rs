//! A recovery policy of one's own: `cargo run --example own_recovery`
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use proscenium::adapt::{ExecutionLevel, RecoveryAction};
use proscenium::parts::{Recovery, RecoveryChoice, RecoveryRequest};
use proscenium::run::{Effect, Fault, FaultClass};
use proscenium::tools::ToolError;
use proscenium::{Answer, Config, Engine, scene::Scene, scene::SceneTool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

/// Decides by a rule of the shop in place of a model: its warehouse is restarted now and then, so what it did not answer
/// is looked up once more; about anything else the customer is asked.
struct ShopRules;

#[async_trait]
impl Recovery for ShopRules {
    async fn recover(&self, question: RecoveryRequest) -> Result<RecoveryChoice, Fault> {
        let restarts = question.failure.class == FaultClass::Unavailable;
        let again = |option: &&RecoveryAction| matches!(option, RecoveryAction::Retry { .. });
        // What may be chosen is in the question. Anything else would be refused.
        let (action, reason) = match question.options.iter().find(again) {
            Some(retry) if restarts => (*retry, "the warehouse is being restarted"),
            _ => (RecoveryAction::AskUser, "the customer knows better"),
        };
        Ok(RecoveryChoice { action, reason: reason.to_owned() })
    }
}

/// Answers `message` with what is kept in `dir`; the warehouse does not answer the first `failures` times.
pub async fn ask(
    message: &str,
    dir: std::path::PathBuf,
    failures: u32,
) -> Result<Answer, Box<dyn std::error::Error>> {
    let calls = Arc::new(AtomicU32::new(0));
    let get = SceneTool::native("GetOrder", "Finds an order.", Effect::Read, move |order: Order, _| {
        let nth = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            if nth < failures {
                let down = ToolError::failed("warehouse.down", "connection refused");
                return Err(down.classed(FaultClass::Unavailable));
            }
            Ok(serde_json::json!({"number": order.number, "place": "Bologna"}))
        }
    });
    let orders = Scene::builder("Orders")
        .description("Orders of the shop: where they are.")
        .instructions("Use the tool. Never guess a number.")
        .example("Where is order 12?", "GetOrder")
        .tool(get.say("en", "Order {{ number }} is in {{ place }}."));
    let mut config = Config::default(); // no model is configured, so the offline model plans
    config.store.data_dir = dir;
    config.execution.level = Some(ExecutionLevel::Adaptive); // a recovery policy may be asked
    config.execution.policies.attempts = 1; // predefined logic repeats nothing
    let engine = Engine::builder(config).scene(orders.build()?).recovery(ShopRules).start().await?;
    let answer = engine.chat(engine.request(message, None)).await?;
    engine.stop().await?;
    Ok(answer)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is a program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let answer = ask("Where is order 41?", std::env::temp_dir().join("own-recovery"), 1).await?;
    println!("{}", answer.answer);
    for decision in &answer.metadata.decisions {
        println!("{}: {} {}", decision.purpose, decision.model, decision.decided.as_deref().unwrap_or(""));
    }
    Ok(())
}
