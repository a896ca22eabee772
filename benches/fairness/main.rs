//! What a flood of one tenant does to the requests of another on the same server. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints what it has measured")]

mod client;

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use client::{Drive, Measured};
use mimalloc::MiMalloc;
use proscenium::access::Role;
use proscenium::http::Server;
use proscenium::run::{Effect, TenantId};
use proscenium::scene::{Scene, SceneTool};
use proscenium::store::KeyRules;
use proscenium::tools::ToolContext;
use proscenium::{Config, Engine};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The program's own.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why something could not be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The tenant that floods.
const FLOOD: &str = "flood";
/// The tenant that sends one request after the other.
const OTHER: &str = "other";
/// Clients of the flood at once.
const CLIENTS: u32 = 200;

/// A flood.
struct Part {
    name: &'static str,
    /// How long a tool call of the flood takes.
    tool_ms: u64,
    /// How long a tool call of the other tenant takes.
    other_ms: u64,
    /// `server.max_in_flight`, unless it is the default.
    max_in_flight: Option<usize>,
}

const PARTS: [Part; 5] = [
    Part { name: "calls of 2 s in one scene", tool_ms: 2000, other_ms: 0, max_in_flight: None },
    Part {
        name: "the same, `server.max_in_flight` = 50",
        tool_ms: 2000,
        other_ms: 0,
        max_in_flight: Some(50),
    },
    Part {
        name: "processor only (the offline model, tools that answer at once)",
        tool_ms: 0,
        other_ms: 0,
        max_in_flight: None,
    },
    Part { name: "the same, `server.max_in_flight` = 10", tool_ms: 0, other_ms: 0, max_in_flight: Some(10) },
    Part {
        name: "processor only, calls of 500 ms of the other tenant",
        tool_ms: 0,
        other_ms: 500,
        max_in_flight: None,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(client::WORD) => client::main(&arguments[1..]),
        _ => measure(arguments.iter().any(|argument| argument == "--quick")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(quick: bool) -> Result<(), Failure> {
    let millis = if quick { 2000 } else { 20_000 };
    println!(
        "| flood | quiet p50 ms | quiet p99 ms | flooded p50 ms | flooded p99 ms | p99 of quiet | requests | of the flood: done | refused |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for part in PARTS {
        let Measured { quiet, flooded, done, refused } = runtime.block_on(part.measure(millis))?;
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {done} | {refused} |",
            part.name,
            quiet.p50,
            quiet.p99,
            flooded.p50,
            flooded.p99,
            flooded.p99 / quiet.p99,
            flooded.requests
        );
    }
    Ok(())
}

impl Part {
    async fn measure(&self, millis: u64) -> Result<Measured, Failure> {
        let place = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(&place)?;
        let data = tempfile::Builder::new().prefix("fairness-").tempdir_in(place)?;
        let mut config = Config::default();
        data.path().clone_into(&mut config.store.data_dir);
        config.server.addr = "127.0.0.1:0".to_owned();
        config.server.max_in_flight = self.max_in_flight.unwrap_or(config.server.max_in_flight);
        let engine =
            Engine::builder(config.clone()).scene(weather(self.tool_ms, self.other_ms)?).start().await?;
        let engine = Arc::new(engine);
        let (flood, other) = (key(&engine, FLOOD).await?, key(&engine, OTHER).await?);
        let server = Server::start(engine.clone(), &config).await?;
        let drive = Drive { server: server.addr().to_string(), flood, other, clients: CLIENTS, millis };
        let order = serde_json::to_string(&drive)?;
        let mut client = Command::new(std::env::current_exe()?);
        client.args([client::WORD, &order]);
        let output = tokio::task::spawn_blocking(move || client.output()).await??;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let measured = serde_json::from_slice(&output.stdout)?;
        server.stop().await;
        // What is left of the flood ends with it.
        let _ = tokio::time::timeout(Duration::from_secs(10), engine.shut_down()).await;
        Ok(measured)
    }
}

async fn key(engine: &Engine, tenant: &str) -> Result<String, Failure> {
    let rules = KeyRules { role: Role::User, ..KeyRules::default() };
    let key = engine.store().create_key_with(&TenantId::new(tenant)?, "ada", "", rules).await?;
    Ok(key.1.expose().to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct GetForecast {
    /// The city's name.
    city: String,
}

/// A scene whose calls take `tool_ms` for the flood and `other_ms` for others.
fn weather(tool_ms: u64, other_ms: u64) -> Result<Scene, Failure> {
    let forecast = move |asked: GetForecast, context: ToolContext| async move {
        let takes_ms = if context.principal.tenant.as_str() == FLOOD { tool_ms } else { other_ms };
        if takes_ms > 0 {
            tokio::time::sleep(Duration::from_millis(takes_ms)).await;
        }
        Ok(json!({"city": asked.city, "min_c": 11, "max_c": 24}))
    };
    Scene::builder("Weather")
        .description("Weather forecasts for cities.")
        .instructions("Give the lowest and the highest temperature.")
        .example("What is the weather in Rome?", "GetForecast")
        .tool(
            SceneTool::native("GetForecast", "Gives today's forecast for a city.", Effect::Read, forecast)
                .say("en", "In {{ city }} it is {{ min_c }} to {{ max_c }} °C."),
        )
        .build()
        .map_err(|faults| format!("the scene: {faults:?}").into())
}
