//! The flow on rig: an extractor makes the plan, and an agent with two tools carries it out. Both are built once, as its
//! documentation shows, and share one client.

use std::convert::Infallible;
use std::process::ExitCode;

use mimalloc::MiMalloc;
use peers::drive::Subject;
use peers::flow::{self, AGENT_PROMPT, MODEL, PLAN_PROMPT, Plan};
use peers::orders::subject;
use peers::{Failure, failed};
use rig_agent::extractor::{Extractor, ExtractorBuilder};
use rig_agent::prelude::*;
use rig_agent::tool::ToolContext;
use rig_core::providers::openai::OpenAIConfig;
use serde::Deserialize;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

struct Rig {
    planner: Extractor<Plan>,
    agent: Agent,
}

fn main() -> ExitCode {
    subject(|address| {
        let client = OpenAIConfig::new("none").with_base_url(format!("http://{address}/v1")).client();
        Ok(Rig {
            planner: ExtractorBuilder::<Plan>::new(client.chat(MODEL)).append_preamble(PLAN_PROMPT).build(),
            agent: AgentBuilder::new(client.chat(MODEL))
                .preamble(AGENT_PROMPT)
                .default_max_turns(4)
                .tool(GetPerson)
                .tool(FindPeople)
                .build(),
        })
    })
}

impl Subject for Rig {
    async fn flow(&self, n: u64) -> Result<(), Failure> {
        let planned = self.planner.extract(flow::request(n)).await.map_err(failed)?;
        let task = flow::task(n, &planned.output)?;
        let answered = self.agent.prompt(task).await.map_err(failed)?;
        flow::check(&answered.output())
    }
}

#[derive(Deserialize)]
struct PersonOf {
    username: String,
}

struct GetPerson;

impl Tool for GetPerson {
    const NAME: &'static str = "GetPerson";
    type Args = PersonOf;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Tells who has a user name.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"username": {"type": "string", "description": "The user name"}},
            "required": ["username"], "additionalProperties": false})
    }

    async fn call(&self, _context: &mut ToolContext, of: PersonOf) -> Result<Value, Infallible> {
        Ok(flow::person(&of.username))
    }
}

#[derive(Deserialize)]
struct PeopleOf {
    name: String,
}

struct FindPeople;

impl Tool for FindPeople {
    const NAME: &'static str = "FindPeople";
    type Args = PeopleOf;
    type Output = Value;
    type Error = Infallible;

    fn description(&self) -> String {
        "Finds people by a part of their name.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"name": {"type": "string", "description": "A part of the name"}},
            "required": ["name"], "additionalProperties": false})
    }

    async fn call(&self, _context: &mut ToolContext, of: PeopleOf) -> Result<Value, Infallible> {
        Ok(flow::people(&of.name))
    }
}
