//! The flow on autoagents: a basic agent with a structured output makes the plan, and a ReAct agent with two tools carries
//! it out. They are built for each flow, as its documentation shows, since an agent has the memory of one conversation;
//! they share one client.

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use autoagents::async_trait;
use autoagents::core::agent::memory::SlidingWindowMemory;
use autoagents::core::agent::prebuilt::executor::{
    BasicAgent, BasicAgentOutput, ReActAgent, ReActAgentOutput,
};
use autoagents::core::agent::task::Task;
use autoagents::core::agent::{AgentBuilder, AgentOutputT, DirectAgent};
use autoagents::core::tool::{ToolCallError, ToolRuntime, ToolT};
use autoagents::llm::LLMProvider;
use autoagents::llm::backends::openai::{OpenAI, OpenAIApiMode};
use autoagents::llm::builder::LLMBuilder;
use autoagents_derive::{AgentHooks, ToolInput, agent, tool};
use mimalloc::MiMalloc;
use peers::drive::Subject;
use peers::flow::{self, AGENT_PROMPT, MODEL, PLAN_PROMPT, Plan};
use peers::orders::subject;
use peers::{Failure, fail, failed};
use schemars::schema_for;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Messages of a conversation that an agent remembers, as in its documentation.
const WINDOW: usize = 10;

struct AutoAgents {
    llm: Arc<dyn LLMProvider>,
}

fn main() -> ExitCode {
    subject(|address| {
        let llm: Arc<OpenAI> = LLMBuilder::<OpenAI>::new()
            .api_key("none")
            .base_url(format!("http://{address}/v1/"))
            .model(MODEL)
            .api_mode(OpenAIApiMode::ChatCompletions)
            .build()
            .map_err(failed)?;
        Ok(AutoAgents { llm })
    })
}

impl Subject for AutoAgents {
    async fn flow(&self, n: u64) -> Result<(), Failure> {
        let memory = || Box::new(SlidingWindowMemory::new(WINDOW));
        let planner = AgentBuilder::<_, DirectAgent>::new(BasicAgent::new(Planner {}))
            .llm(self.llm.clone())
            .memory(memory())
            .build()
            .await
            .map_err(failed)?;
        let task = Task::new(flow::request(n)).with_system_prompt(PLAN_PROMPT);
        let planned: Planned = planner.agent.run(task).await.map_err(failed)?;
        let plan = planned.plan.ok_or_else(|| fail("a reply without a plan"))?;
        let finder = AgentBuilder::<_, DirectAgent>::new(ReActAgent::new(Finder {}))
            .llm(self.llm.clone())
            .memory(memory())
            .build()
            .await
            .map_err(failed)?;
        let task = Task::new(flow::task(n, &plan)?).with_system_prompt(AGENT_PROMPT);
        let answer: Answered = finder.agent.run(task).await.map_err(failed)?;
        flow::check(&answer.text)
    }
}

#[agent(name = "planner", description = "Plans how a request is carried out.", output = Planned)]
#[derive(Default, Clone, AgentHooks)]
struct Planner {}

/// What the planner returns.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Planned {
    plan: Option<Plan>,
}

/// Its derive macro knows no lists of objects.
impl AgentOutputT for Planned {
    fn output_schema() -> &'static str {
        "{}"
    }

    fn structured_output_format() -> Value {
        static FORMAT: LazyLock<Value> = LazyLock::new(
            || json!({"name": "Plan", "description": "A plan.", "schema": schema_for!(Plan), "strict": true}),
        );
        FORMAT.clone()
    }
}

impl From<BasicAgentOutput> for Planned {
    fn from(output: BasicAgentOutput) -> Self {
        Self { plan: output.try_parse().ok() }
    }
}

#[agent(
    name = "finder",
    description = "Tells who the people of the company are.",
    tools = [GetPerson, FindPeople],
    output = Answered,
)]
#[derive(Default, Clone, AgentHooks)]
struct Finder {}

/// What the agent with the tools returns: text.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answered {
    text: String,
}

impl AgentOutputT for Answered {
    fn output_schema() -> &'static str {
        "{}"
    }

    fn structured_output_format() -> Value {
        Value::Null
    }
}

impl From<ReActAgentOutput> for Answered {
    fn from(output: ReActAgentOutput) -> Self {
        Self { text: output.response }
    }
}

#[derive(Serialize, Deserialize, ToolInput, Debug)]
struct PersonOf {
    #[input(description = "The user name")]
    username: String,
}

#[tool(name = "GetPerson", description = "Tells who has a user name.", input = PersonOf)]
struct GetPerson {}

#[async_trait]
impl ToolRuntime for GetPerson {
    async fn execute(&self, arguments: Value) -> Result<Value, ToolCallError> {
        let of: PersonOf = serde_json::from_value(arguments)?;
        Ok(flow::person(&of.username))
    }
}

#[derive(Serialize, Deserialize, ToolInput, Debug)]
struct PeopleOf {
    #[input(description = "A part of the name")]
    name: String,
}

#[tool(name = "FindPeople", description = "Finds people by a part of their name.", input = PeopleOf)]
struct FindPeople {}

#[async_trait]
impl ToolRuntime for FindPeople {
    async fn execute(&self, arguments: Value) -> Result<Value, ToolCallError> {
        let of: PeopleOf = serde_json::from_value(arguments)?;
        Ok(flow::people(&of.name))
    }
}
