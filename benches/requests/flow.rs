//! The measured request: two scenes, six model calls, two tool calls.

use proscenium::config::Config;
use proscenium::llm::limits::Rates;
use proscenium::llm::{ModelOptions, StreamMode};
use proscenium::run::{ConfirmPolicy, Effect, PrepareMode};
use proscenium::scene::{Scene, SceneTool};
use proscenium::{Builder, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::provider::EMPLOYEE;
use super::{Failure, fail};

/// How a flow comes by its tool calls, and what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Two reads, step by step: six model calls.
    Steps,
    /// A read and a write, step by step.
    Book,
    /// Two reads that the plan prepares: two model calls.
    Prepared,
}

impl Kind {
    /// Model calls in one flow: the plan, and the check with the answer; step by step, also two for each of two
    /// scenes.
    pub fn calls(self) -> u64 {
        if self == Kind::Prepared { 2 } else { CALLS }
    }
}

/// Model calls in one flow step by step.
pub const CALLS: u64 = 6;

/// The words that make the provider book a leave as well.
pub const BOOK: &str = "and book the leave";

/// The model's name.
const MODEL: &str = "instant";

/// Limits that are checked and never reached.
const PLENTY: u32 = 100_000_000;
/// Concurrent tool calls of a scene, so that no call waits for a permit.
const PLACES: u32 = 512;

/// What can be disabled to measure its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Waiting for the disk: the data directory is in memory.
    Disk,
    /// Looking replies up and storing them.
    Cache,
    /// Rates and permits of tenant and model.
    Limits,
    /// Money: run, conversation, tenant, day.
    Budget,
    /// The metrics of `/metrics`.
    Kpis,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 5] = [Part::Disk, Part::Cache, Part::Limits, Part::Budget, Part::Kpis];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Part::Disk => "the disk (journal in memory)",
            Part::Cache => "the cache",
            Part::Limits => "limits",
            Part::Budget => "the budget",
            Part::Kpis => "KPIs",
        }
    }
}

/// The request of flow number `n`. No two have the same words, so the cache never has the reply.
pub fn message(n: u64, kind: Kind) -> String {
    match kind {
        Kind::Steps => {
            format!("What is the weather in Milan, and tell me the balance of the leave of employee {n}")
        }
        Kind::Book => format!("What is the weather in Milan, {BOOK} of employee {n}"),
        // The provider prepares the call for one employee, and only values that were said are used.
        Kind::Prepared => format!(
            "What is the weather in Milan, and tell me the balance of the leave of employee {EMPLOYEE}, request {n}"
        ),
    }
}

/// Everything enabled except `off`, with the provider at `address` and the data under `data`.
pub fn config(address: &str, data: &std::path::Path, off: &[Part], kind: Kind) -> Config {
    let on = |part: Part| !off.contains(&part);
    let mut config = Config::default();
    config.llm.models = vec![ModelOptions {
        name: MODEL.to_owned(),
        base_url: format!("http://{address}/v1"),
        input_usd_per_million: 0.15,
        output_usd_per_million: 0.6,
        // The provider sends each reply whole.
        stream: StreamMode::No,
        ..ModelOptions::default()
    }];
    data.clone_into(&mut config.store.data_dir);
    config.planning.prepare = match kind {
        Kind::Prepared => PrepareMode::Always,
        Kind::Steps | Kind::Book => PrepareMode::Approval,
    };
    config.execution.time_zone = "Europe/Rome".to_owned();
    // The dates of the write come from the scripted model; the request does not contain them.
    config.execution.confirm = ConfirmPolicy::Never;
    config.telemetry.metrics = on(Part::Kpis);
    if !on(Part::Cache) {
        config.cache.max_bytes = 0;
    }
    if on(Part::Limits) {
        let rates = Rates {
            requests_per_minute: Some(PLENTY),
            tokens_per_minute: Some(PLENTY * 5),
            concurrent: Some(PLENTY),
        };
        config.limits.tenant = rates.clone();
        config.limits.models.insert(MODEL.to_owned(), rates);
    }
    if on(Part::Budget) {
        let usd = Some(1_000_000.0);
        config.budget.run_usd = usd;
        config.budget.session_usd = usd;
        config.budget.tenant_usd = usd;
        config.budget.day_usd = usd;
    }
    config
}

/// An engine with the two scenes, whose tools answer at once.
pub fn engine(config: Config) -> Result<Builder, Failure> {
    let built = |scene: Result<Scene, _>| scene.map_err(|faults| fail(format!("the scenes: {faults:?}")));
    Ok(Engine::builder(config).scene(built(weather())?).scene(built(leave())?))
}

#[derive(Deserialize, JsonSchema)]
struct GetForecast {
    /// The city's name.
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct GetBalance {
    /// The employee's number.
    employee: u32,
}

#[derive(Deserialize, JsonSchema)]
struct BookLeave {
    /// First day, YYYY-MM-DD.
    from: String,
    /// Last day, YYYY-MM-DD.
    to: String,
}

type Built = Result<Scene, proscenium::scene::SceneFaults>;

fn weather() -> Built {
    let forecast = |asked: GetForecast, _| async move {
        Ok(json!({"city": asked.city, "min_c": 11, "max_c": 24, "source": "station 7"}))
    };
    Scene::builder("Weather")
        .description("Weather forecasts for cities.")
        .instructions("Give the lowest and the highest temperature, and the source.")
        .concurrency(PLACES)
        .example("What is the weather in Rome?", "GetForecast")
        .example("Che tempo fa a Milano domani?", "GetForecast")
        .tool(
            SceneTool::native("GetForecast", "Gives today's forecast for a city.", Effect::Read, forecast)
                .say("en", "In {{ city }} it is {{ min_c }} to {{ max_c }} °C ({{ source }})."),
        )
        .build()
}

fn leave() -> Built {
    let balance = |asked: GetBalance, _| async move { Ok(json!({"employee": asked.employee, "days": 12})) };
    let book =
        |asked: BookLeave, _| async move { Ok(json!({"from": asked.from, "to": asked.to, "days": 3})) };
    Scene::builder("Leave")
        .description("Leave of employees: balances, and booking days off.")
        .instructions("Give the number of days.")
        .concurrency(PLACES)
        .example("How many days of leave are left?", "GetBalance")
        .example("Book my leave from 15 to 17 June", "BookLeave")
        .tool(
            SceneTool::native("GetBalance", "Gives an employee's balance of leave.", Effect::Read, balance)
                .say("en", "{{ days }} days are left."),
        )
        .tool(
            SceneTool::native("BookLeave", "Books days of leave.", Effect::Write, book)
                .say("en", "{{ days }} days are booked, from {{ from }} to {{ to }}."),
        )
        .build()
}
