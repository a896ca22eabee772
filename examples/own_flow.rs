//! A flow with functions in Rust, and the paths that requests take through it: `cargo run --example own_flow`
use proscenium::flow::{Flow, Node, ValueTest};
use proscenium::plan::Plan;
use proscenium::run::PlanGuidance;
use proscenium::scene::{Scene, SceneFaults};
use proscenium::{Answer, ChatRequest, Config, Engine};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    /// The user's words.
    request: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Parcel {
    /// The parcel's number.
    number: u32,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Story {
    place: String,
    /// The days that it is late, where that was asked.
    late: Option<u32>,
}

/// The flow of a parcel service.
pub fn parcels() -> Result<Scene, SceneFaults> {
    Flow::builder("parcels")
        .description("Says where a parcel is, and how late.")
        .inputs(&["number"])
        .example("Where is parcel 12?", &["read_number", "locate", "tell"])
        .example("Parcel 12: is it late, and how much?", &["read_number", "locate", "measure_delay", "tell"])
        .example("Where is it?", &["locate", "tell"])
        .example("Hello, what can you do for me?", &["greet"])
        .entries(&["read_number", "locate", "greet"])
        .before("locate", "tell")
        .excludes("greet", &["locate"])
        .node(
            Node::native(
                "read_number",
                "Finds the parcel's number in the request.",
                |said: Words, _| async move {
                    let number: Option<u32> =
                        said.request.split(|c: char| !c.is_numeric()).find_map(|word| word.parse().ok());
                    Ok(json!({"number": number}))
                },
            )
            .outputs(&["number"])
            .next_if("locate", ValueTest::exists("number"))
            .next_if("greet", ValueTest::is_missing("number")),
        )
        .node(
            Node::native("locate", "Looks up where the parcel is.", |parcel: Parcel, _| async move {
                let place = if parcel.number.is_multiple_of(2) { "Bologna" } else { "Parma" };
                Ok(json!({"place": place}))
            })
            .outputs(&["place"])
            .next(&["tell", "measure_delay"]),
        )
        .node(
            Node::native(
                "measure_delay",
                "Computes how many days the parcel is late.",
                |parcel: Parcel, _| async move { Ok(json!({"late": parcel.number % 5})) },
            )
            .outputs(&["late"])
            .next(&["tell"]),
        )
        .node(
            Node::native("tell", "Tells what was found.", |story: Story, _| async move {
                let late = story.late.map(|days| format!(" It is {days} days late.")).unwrap_or_default();
                Ok(json!({"text": format!("The parcel is in {}.{late}", story.place)}))
            })
            .outputs(&["text"])
            .say("en", "{{ text }}"),
        )
        .node(
            Node::native("greet", "Says what the service does.", |_: Words, _| async move {
                Ok(json!({"text": "I tell you where your parcel is."}))
            })
            .outputs(&["text"])
            .say("en", "{{ text }}"),
        )
        .build()
}

/// Requests, what is known with each, and the path that each should take.
pub const REQUESTS: [(&str, Option<u32>, &[&str]); 5] = [
    ("Hello there, what can you do?", None, &["greet"]),
    ("Where is my parcel 41?", None, &["read_number", "locate", "tell"]),
    ("Is parcel 18 late, and by how much?", None, &["read_number", "locate", "measure_delay", "tell"]),
    ("Where is it now?", Some(7), &["locate", "tell"]),
    ("Please tell me where parcel 3 is", None, &["read_number", "locate", "tell"]),
];

/// An engine with the flow, which keeps its data in `dir`.
pub async fn start(dir: std::path::PathBuf) -> Result<Engine, Box<dyn std::error::Error>> {
    let mut config = Config::default(); // no model is configured, so the offline model plans
    config.store.data_dir = dir;
    Ok(Engine::builder(config).scene(parcels()?).start().await?)
}

/// Sends a request to the flow by its name. A plan alone executes nothing.
pub async fn send(
    engine: &Engine,
    message: &str,
    number: Option<u32>,
    plan_only: bool,
) -> Result<Answer, String> {
    let request = ChatRequest {
        plan: Some(Plan::of_flow("parcels", message)),
        guidance: PlanGuidance::of(None, number.map(|number| json!({"number": number})), true),
        plan_only,
        ..engine.request(message, None)
    };
    engine.chat(request).await.map_err(|fault| fault.to_string())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "it is a program")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = start(std::env::temp_dir().join("own-flow")).await?;
    for (message, number, expected) in REQUESTS {
        let planned = send(&engine, message, number, true).await?.metadata.planned_execution_path;
        println!("{message}\n  planned:  {}\n  expected: {}", planned.join(" → "), expected.join(" → "));
    }
    println!("{}", send(&engine, REQUESTS[2].0, None, false).await?.answer);
    engine.stop().await?;
    Ok(())
}
