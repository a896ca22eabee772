//! A scene with two tools in Rust, and a request that needs both: `cargo run --example two_tools`
use proscenium::{Answer, Config, Engine, run::Effect, scene::Scene, scene::SceneTool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

/// Answers `message` with what is kept in `dir`.
pub async fn ask(message: &str, dir: std::path::PathBuf) -> Result<Answer, Box<dyn std::error::Error>> {
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
    let mut config = Config::default(); // no model is configured, so the offline model serves
    config.store.data_dir = dir;
    let engine = Engine::builder(config).scene(orders.build()?).start().await?;
    let answer = engine.chat(engine.request(message, None)).await?;
    engine.stop().await?;
    Ok(answer)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is a program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let answer = ask("Where is order 41, and then cancel order 2", std::env::temp_dir().join("shop")).await?;
    println!("{}", answer.answer);
    Ok(())
}
