//! A sensible model for a scripted server: `tests/scenarios/scripted.yaml` contains its plans and calls;
//! every word of its answers comes from its prompt.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::scenario::next_day;
use super::{Scripted, ScriptedCall, forced_tool, section, tool_names, tool_results};

/// What the model does for each request, by its words; `{i}` in the words stands for a day of the month, and
/// `{day}` in the arguments for the next such day.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct ModelScript(BTreeMap<String, RequestScript>);

/// What it does for one request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestScript {
    /// The steps of its plan; none if no scene is needed.
    #[serde(default)]
    steps: Vec<StepScript>,
    /// Its answer if no scene is needed; by default a summary of the conversation.
    says: Option<String>,
}

/// A step of its plan and the behaviour of the step's scene.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepScript {
    scene: String,
    #[serde(default)]
    after: Vec<u32>,
    /// Its replies with calls, in order: each call is a tool with its arguments.
    rounds: Vec<Vec<BTreeMap<String, Value>>>,
    /// The plan cannot contain the arguments of its writes.
    #[serde(default)]
    unprepared: bool,
}

impl ModelScript {
    /// The script of the scenarios.
    pub fn for_scenarios() -> Self {
        Self::parse(include_str!("../scenarios/scripted.yaml"))
    }

    /// Parses a script.
    pub fn parse(yaml: &str) -> Self {
        serde_norway::from_str(yaml).unwrap()
    }

    /// The model's reply.
    pub fn reply(&self, request: &Value) -> Scripted {
        match forced_tool(request) {
            Some("CreateExecutionPlan") => Scripted::forced(request, self.plan(request)),
            Some("CheckContinuation") => Scripted::forced(request, verdict(request)),
            Some("WriteSummary") => Scripted::forced(request, json!({"summary": summary(request)})),
            Some(other) => panic!("{other} is forced: {request:#}"),
            None if section(request, "scene").is_some() => self.scene(request),
            None if section(request, "mode").is_some() => Scripted::Text(self.answer(request)),
            None => panic!("an unexpected question: {request:#}"),
        }
    }

    /// The script for the request's words, with the day of the month in them.
    fn request_script(&self, request: &Value) -> (RequestScript, Option<i8>) {
        let words = section(request, "request").unwrap();
        if let Some(request_script) = self.0.get(&words) {
            return (request_script.clone(), None);
        }
        let of_a_day = self.0.iter().find_map(|(pattern, request_script)| {
            let (before, after) = pattern.split_once("{i}")?;
            let day = words.strip_prefix(before)?.strip_suffix(after)?.parse().ok()?;
            Some((request_script.clone(), Some(day)))
        });
        of_a_day.unwrap_or_else(|| panic!("the script does not contain {words:?}"))
    }

    /// The arguments of its plan.
    pub fn plan(&self, request: &Value) -> Value {
        let (request_script, day) = self.request_script(request);
        let shown = prepared_tools(request);
        let steps = request_script.steps.iter().zip(1..).map(|(step, number)| {
            let mut tools: Vec<&str> = Vec::new();
            for (tool, arguments) in step.rounds.iter().flatten().flatten() {
                let meant = if tool == "AskUser" { arguments["tool"].as_str() } else { Some(tool.as_str()) };
                tools.extend(meant.filter(|tool| !tools.contains(tool)));
            }
            let after = match step.after.as_slice() {
                [] => Value::Null,
                [one] => json!(one),
                several => json!(several),
            };
            let mut planned = json!({"step_number": number, "scene_name": step.scene,
                "purpose": format!("{} per l'utente", step.scene), "expected_tools": tools, "depends_on_step": after});
            let calls = step.rounds.iter().flatten().flatten().filter(|(tool, _)| !step.unprepared && shown.contains(tool));
            let calls: Vec<Value> = calls
                .map(|(tool, arguments)| {
                    let arguments: Value = serde_json::from_str(&on_day(day, arguments)).unwrap();
                    json!({"tool": tool, "arguments": arguments})
                })
                .collect();
            if !calls.is_empty() {
                planned["prepared_calls"] = json!(calls);
            }
            planned
        });
        let steps: Vec<Value> = steps.collect();
        json!({"needs_execution": !steps.is_empty(), "reasoning": "as the user asked", "steps": steps})
    }

    /// The calls of the current round, or the results in words.
    fn scene(&self, request: &Value) -> Scripted {
        let (request_script, day) = self.request_script(request);
        let place = section(request, "step").unwrap();
        let number: usize = place.split(' ').next().unwrap().parse().unwrap();
        let messages = request["messages"].as_array().unwrap();
        let round = messages.iter().filter(|message| message["role"] == "assistant").count();
        let offered = tool_names(request);
        let calls = request_script.steps[number - 1].rounds.get(round).into_iter().flatten().flatten();
        let calls: Vec<ScriptedCall> = calls
            .map(|(tool, arguments)| {
                assert!(offered.contains(&tool.as_str()), "{tool} is not offered: {request:#}");
                // Ids repeat, as with real servers.
                ScriptedCall {
                    id: "call_0".to_owned(),
                    name: tool.clone(),
                    arguments: on_day(day, arguments),
                }
            })
            .collect();
        if calls.is_empty() {
            Scripted::Text(results_text(&tool_results(request)))
        } else {
            Scripted::Calls { text: String::new(), calls }
        }
    }

    fn answer(&self, request: &Value) -> String {
        if section(request, "mode").as_deref() == Some("answer") {
            return executed(request);
        }
        let (request_script, _) = self.request_script(request);
        request_script.says.unwrap_or_else(|| {
            let memory: Value = serde_json::from_str(&section(request, "conversation").unwrap()).unwrap();
            let turns = memory["turns"].as_array().unwrap().iter().map(turn_summary);
            let summary = memory["summary"].as_str().map(str::to_owned);
            summary.into_iter().chain(turns).collect::<Vec<_>>().join("\n")
        })
    }
}

/// The results of a step's calls, as the scene phrases them.
fn results_text(results: &[Value]) -> String {
    let words = results.iter().filter(|result| result["outcome"] != "skipped");
    let words = words.map(|result| {
        let texts = result["say"].as_str().or(result.pointer("/error/message").and_then(Value::as_str));
        texts.map_or_else(|| result["result"].to_string(), str::to_owned)
    });
    words.collect::<Vec<_>>().join(" ")
}

fn lines(request: &Value, name: &str) -> Vec<Value> {
    let body = section(request, name).unwrap_or_default();
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Results, completed work and questions, one per line.
fn executed(request: &Value) -> String {
    let texts = lines(request, "executed").into_iter().filter_map(|line| {
        let words = ["result", "question", "error"].into_iter().find_map(|key| line[key].as_str());
        words.map(str::to_owned)
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn verdict(request: &Value) -> Value {
    let asked =
        lines(request, "executed").into_iter().find_map(|line| line["question"].as_str().map(str::to_owned));
    json!({"should_continue": false, "can_answer_now": asked.is_none(), "reasoning": "everything was dealt with",
        "missing_information": asked, "answer": executed(request)})
}

/// What each fact says, cited: the request of a turn, the arguments of a call, or a line of the summary so far.
fn summary(request: &Value) -> String {
    let said = |(fact, number): (&Value, usize)| {
        let words = fact["words"].as_str().unwrap();
        let told = match words.split_once(" -> ") {
            Some((call, _)) => call.split_once(' ').map_or("", |(_, arguments)| arguments),
            None => words.trim_start_matches("User: ").trim_start_matches("- ").trim_end_matches('.'),
        };
        (!words.starts_with("Assistant")).then(|| format!("- {told} [{number}]."))
    };
    lines(request, "facts").iter().zip(1..).filter_map(said).collect::<Vec<_>>().join("\n")
}

/// A request and the arguments of its calls.
fn turn_summary(turn: &Value) -> String {
    let calls = turn["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let facts: Vec<String> = calls.iter().map(|call| call["arguments"].to_string()).collect();
    format!("- {} {}", turn["request"].as_str().unwrap_or_default(), facts.join(", "))
}

/// Arguments with the requested day of the month.
fn on_day(day: Option<i8>, arguments: &Value) -> String {
    let arguments = arguments.to_string();
    day.map_or(arguments.clone(), |day| arguments.replace("{day}", &next_day(day)))
}

/// The tools whose calls the plan has to contain, from the schema of the forced tool.
fn prepared_tools(request: &Value) -> Vec<String> {
    let steps = &request["tools"][0]["function"]["parameters"]["properties"]["steps"]["items"];
    let several = steps["anyOf"].as_array();
    let scenes = several.into_iter().flatten().chain([steps]);
    let calls = scenes.filter_map(|scene| scene["properties"]["prepared_calls"]["items"]["anyOf"].as_array());
    let names = calls.flatten().map(|call| &call["properties"]["tool"]["enum"][0]);
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}
