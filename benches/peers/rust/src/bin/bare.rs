//! The bare client: the same requests by hand, over kept connections. It parses the plan and the arguments, calls the
//! functions and sends their results; no framework.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use peers::drive::Subject;
use peers::flow::{self, AGENT_PROMPT, MODEL, PLAN_PROMPT, Plan};
use peers::orders::subject;
use peers::{Failure, fail};
use schemars::schema_for;
use serde::Deserialize;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

struct Bare {
    http: reqwest::Client,
    url: String,
    plan_tool: Value,
    tools: Value,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct PersonOf {
    username: String,
}

#[derive(Deserialize)]
struct PeopleOf {
    name: String,
}

fn main() -> ExitCode {
    subject(|address| {
        let text = |description: &str| json!({"type": "string", "description": description});
        let tool = |name: &str, description: &str, parameters: Value| {
            json!({"type": "function", "function":
                {"name": name, "description": description, "parameters": parameters}})
        };
        let one = |name: &str, of: Value| json!({"type": "object", "properties": {name: of}, "required": [name], "additionalProperties": false});
        Ok(Bare {
            http: reqwest::Client::builder().no_proxy().build()?,
            url: format!("http://{address}/v1/chat/completions"),
            plan_tool: json!([tool("Plan", "A plan.", serde_json::to_value(schema_for!(Plan))?)]),
            tools: json!([
                tool("GetPerson", "Tells who has a user name.", one("username", text("The user name"))),
                tool(
                    "FindPeople",
                    "Finds people by a part of their name.",
                    one("name", text("A part of the name"))
                ),
            ]),
        })
    })
}

impl Bare {
    async fn ask(&self, body: &Value) -> Result<Message, Failure> {
        let reply = self.http.post(&self.url).json(body).send().await?.error_for_status()?;
        let mut reply: Completion = reply.json().await?;
        Ok(reply.choices.pop().ok_or_else(|| fail("a reply without choices"))?.message)
    }
}

impl Subject for Bare {
    async fn flow(&self, n: u64) -> Result<(), Failure> {
        let planned = self
            .ask(&json!({"model": MODEL, "tools": self.plan_tool,
                "tool_choice": {"type": "function", "function": {"name": "Plan"}},
                "messages": [{"role": "system", "content": PLAN_PROMPT}, {"role": "user", "content": flow::request(n)}]}))
            .await?;
        let call = planned.tool_calls.first().ok_or_else(|| fail("a reply without a plan"))?;
        let plan: Plan = serde_json::from_str(&call.function.arguments)?;
        let mut messages = vec![
            json!({"role": "system", "content": AGENT_PROMPT}),
            json!({"role": "user", "content": flow::task(n, &plan)?}),
        ];
        let asked = self.ask(&json!({"model": MODEL, "tools": self.tools, "messages": messages})).await?;
        let calls = asked.tool_calls.iter().map(|call| {
            let function = json!({"name": call.function.name, "arguments": call.function.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        });
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()}));
        for call in &asked.tool_calls {
            let result = match call.function.name.as_str() {
                "GetPerson" => {
                    flow::person(&serde_json::from_str::<PersonOf>(&call.function.arguments)?.username)
                }
                "FindPeople" => {
                    flow::people(&serde_json::from_str::<PeopleOf>(&call.function.arguments)?.name)
                }
                other => return Err(fail(format!("there is no tool {other}"))),
            };
            messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": result.to_string()}));
        }
        let answered = self.ask(&json!({"model": MODEL, "tools": self.tools, "messages": messages})).await?;
        flow::check(answered.content.as_deref().unwrap_or_default())
    }
}
