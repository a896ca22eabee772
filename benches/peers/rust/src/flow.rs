//! The measured request: a plan, two tool calls, an answer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Failure, fail};

/// The model's name.
pub const MODEL: &str = "instant";

/// The system prompt of the plan. The provider recognises its first words.
pub const PLAN_PROMPT: &str = "You plan how a request is carried out. Give the steps in their order, each with its \
    purpose and the tool that serves it. The tools: GetPerson tells who has a user name; FindPeople finds people by a \
    part of their name.";

/// The system prompt of the model that has the tools.
pub const AGENT_PROMPT: &str = "You tell who the people of the company are. Carry out the plan with the tools, and then \
    answer in one sentence. Never guess a name: tell what the tools return.";

/// What the provider answers in the end.
pub const ANSWER: &str =
    "mrossi is Mario Rossi (Sales), and Ferrari is Lucia Ferrari (lferrari, Engineering).";

/// Tool calls that were executed in this process.
pub static TOOL_CALLS: AtomicU64 = AtomicU64::new(0);

/// The user's words in flow number `n`. No two flows have the same.
pub fn request(n: u64) -> String {
    format!("Who is mrossi, and who is called Ferrari? Ticket {n}")
}

/// A plan.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Plan {
    /// Why these steps.
    pub reasoning: String,
    /// What is done, in this order.
    pub steps: Vec<PlanStep>,
}

/// A step of a plan.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PlanStep {
    /// What it is for.
    pub purpose: String,
    /// The tool that serves it.
    pub tool: String,
}

/// The plan of the request.
pub fn plan() -> Plan {
    let step = |purpose: &str, tool: &str| PlanStep { purpose: purpose.to_owned(), tool: tool.to_owned() };
    Plan {
        reasoning: "Two look-ups, which need nothing of each other".to_owned(),
        steps: vec![
            step("Tell who mrossi is", "GetPerson"),
            step("Find the people who are called Ferrari", "FindPeople"),
        ],
    }
}

/// The words of the model that has the tools: the request, and the plan.
pub fn task(n: u64, plan: &Plan) -> Result<String, Failure> {
    if plan.steps.len() != 2 {
        return Err(fail(format!("a plan of two steps was expected, not {plan:?}")));
    }
    let steps = plan.steps.iter().map(|step| format!("\n- {} ({})", step.purpose, step.tool));
    Ok(format!("{}\n\nPlan:{}", request(n), steps.collect::<String>()))
}

/// What the tool `GetPerson` returns.
pub fn person(username: &str) -> Value {
    TOOL_CALLS.fetch_add(1, Relaxed);
    json!({"found": true, "username": username, "name": "Mario Rossi", "you": false})
}

/// What the tool `FindPeople` returns.
pub fn people(name: &str) -> Value {
    TOOL_CALLS.fetch_add(1, Relaxed);
    let found = json!({"username": "lferrari", "name": "Lucia Ferrari", "department": "Engineering"});
    json!({"name": name, "count": 1, "matches": [found], "more": false})
}

/// Whether the flow ended as expected.
pub fn check(answer: &str) -> Result<(), Failure> {
    if answer == ANSWER { Ok(()) } else { Err(fail(format!("an unexpected answer: {answer}"))) }
}
