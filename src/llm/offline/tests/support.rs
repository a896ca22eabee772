//! Builds prompts and executes plans with fake tools.

use serde_json::{Value, json};

use crate::llm::offline::OfflineModel;
use crate::llm::signature::{self, SceneLine, ToolLine};
use crate::llm::{Message, Purpose, Request, ToolChoice, ToolSpec, sections};
use crate::plan::{KnownScenes, Plan, PlanLimits, validate};

pub(super) const NOW: &str = "2026-05-04T09:00:00+02:00[Europe/Rome] Monday";

/// A tool's outcome, from its name and arguments.
pub(super) type Tool<'a> = &'a mut dyn FnMut(&str, &Value) -> Value;

#[derive(Clone)]
pub(super) struct World {
    pub scenes: Vec<Value>,
    pub turns: Vec<Value>,
    pub pending: Option<Value>,
    pub summary: Option<String>,
    /// Whether the planner's prompt has the order of required arguments; otherwise plans prepare no values that
    /// depend on it.
    pub exact: bool,
}

#[derive(Debug, Default)]
pub(super) struct RequestOutcome {
    pub plan: Value,
    pub scenes: Vec<String>,
    pub calls: Vec<(String, Value)>,
    pub answer: String,
    pub question: Option<Value>,
    /// All questions of all steps.
    pub questions: Vec<Value>,
    pub depends: Vec<Vec<u64>>,
    pub purposes: Vec<String>,
    /// The prepared writes of the plan, with their arguments.
    pub prepared: Vec<(String, Value)>,
}

impl RequestOutcome {
    pub fn call(&self, tool: &str) -> &Value {
        match self.calls.iter().find(|c| c.0 == tool) {
            Some(call) => &call.1,
            None => panic!("{tool} was not called: {self:#?}"),
        }
    }

    pub fn tools(&self) -> Vec<&str> {
        self.calls.iter().map(|c| c.0.as_str()).collect()
    }
}

impl World {
    /// A world of scenes in the form of `scene.toml`; arguments are objects without other properties.
    pub fn of(tomls: &[&str]) -> Self {
        let scenes = tomls
            .iter()
            .map(|t| {
                let scene: Value = serde_json::to_value(toml::from_str::<toml::Table>(t).unwrap()).unwrap();
                let tools: Vec<Value> = scene["tools"].as_array().unwrap().iter().map(tool).collect();
                json!({"scene": scene["name"], "description": scene["description"],
                       "examples": scene.get("examples").cloned().unwrap_or(json!([])), "tools": tools})
            })
            .collect();
        Self { scenes, turns: Vec::new(), pending: None, summary: None, exact: true }
    }

    /// Weather, people and vacation as they are shipped, and these scenes.
    pub fn shipped_and(more: &[&str]) -> Self {
        let shipped = [
            include_str!("../../../../scenes/weather/scene.toml"),
            include_str!("../../../../scenes/identity/scene.toml"),
            include_str!("../../../../scenes/vacation_management/scene.toml"),
        ];
        Self::of(&[&shipped[..], more].concat())
    }

    pub fn all() -> Self {
        Self::of(&[
            super::domains::WEATHER,
            super::domains::IDENTITY,
            super::domains::VACATION,
            super::domains::RESTAURANT,
            super::domains::HELPDESK,
            super::domains::LIBRARY,
            super::domains::ROOMS,
            super::domains::PARCELS,
        ])
    }

    fn conversation(&self) -> String {
        json!({"summary": self.summary, "turns": self.turns}).to_string()
    }

    /// The conversation in a scene's prompt: the last two turns, and those in which it took part.
    fn conversation_for(&self, scene: &str) -> String {
        let recent = self.turns.len().saturating_sub(2);
        let took_part = |turn: &Value| turn["calls"].as_array().unwrap().iter().any(|c| c["scene"] == scene);
        let turns: Vec<&Value> = self
            .turns
            .iter()
            .enumerate()
            .filter(|(at, turn)| *at >= recent || took_part(turn))
            .map(|(_, turn)| turn)
            .collect();
        json!({"summary": self.summary, "turns": turns}).to_string()
    }

    fn tools(&self, scene: &str) -> Vec<Value> {
        self.scenes.iter().find(|s| s["scene"] == scene).unwrap()["tools"].as_array().unwrap().clone()
    }

    pub fn plan(&self, request: &str) -> Value {
        self.planned(request, &[], json!({"type": "object"}))
    }

    /// The plan of a question whose forced tool has these parameters, with sections beside the usual ones.
    pub fn planned(&self, request: &str, parts: &[(&str, &str)], parameters: Value) -> Value {
        let lines: Vec<String> = self.scenes.iter().map(scene_line).collect();
        let mut text = String::new();
        sections::push(&mut text, "now", NOW);
        if let Some(language) = crate::language::detect(request) {
            sections::push(&mut text, "language", language);
        }
        sections::push(&mut text, "scenes", &lines.join("\n"));
        sections::push(&mut text, "conversation", &self.conversation());
        if let Some(pending) = &self.pending {
            sections::push(&mut text, "pending", &pending.to_string());
        }
        for (name, body) in parts {
            sections::push(&mut text, name, body);
        }
        sections::push(&mut text, "request", request);
        let schema = jsonschema::validator_for(&parameters).unwrap();
        let tool = spec("CreateExecutionPlan", parameters);
        let reply = send(
            Purpose::Plan,
            vec![Message::User { text }],
            vec![tool],
            ToolChoice::Forced("CreateExecutionPlan".into()),
        );
        let plan: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        let read: Plan = serde_json::from_value(plan.clone()).unwrap();
        let known = KnownScenes {
            flows: std::collections::BTreeSet::new(),
            summaries: std::collections::BTreeSet::new(),
            scenes: self
                .scenes
                .iter()
                .map(|s| {
                    let tools =
                        s["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned());
                    (s["scene"].as_str().unwrap().to_owned(), tools.collect())
                })
                .collect(),
        };
        let problems = validate(&read, &known, PlanLimits { max_steps: 10 }, &Default::default(), 0);
        assert!(problems.is_empty(), "{request}: {problems:?}");
        let errors: Vec<String> = schema.iter_errors(&plan).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{request}: {plan}: {errors:?}");
        plan
    }

    /// The forced tool's parameters where steps may carry prepared calls.
    pub fn preparing(&self) -> Value {
        let steps: Vec<Value> = self.scenes.iter().map(|scene| step_schema(scene, self.exact)).collect();
        json!({"type": "object", "properties": {"steps": {"type": "array", "items": {"anyOf": steps}}}})
    }

    /// One step's loop; returns its calls, its result and its question.
    fn step(
        &self,
        request: &str,
        step: &Value,
        earlier: &[Value],
        tool: Tool,
    ) -> (Vec<Value>, Option<String>, Vec<Value>) {
        let scene = step["scene_name"].as_str().unwrap();
        let expected: Vec<&str> =
            step["expected_tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let mut text = String::new();
        sections::push(&mut text, "scene", scene);
        sections::push(&mut text, "now", NOW);
        if let Some(language) = crate::language::detect(request) {
            sections::push(&mut text, "language", language);
        }
        sections::push(&mut text, "user", "keysersoze");
        sections::push(&mut text, "purpose", step["purpose"].as_str().unwrap());
        if step["unclear"] == true {
            sections::push(&mut text, "unclear", "true");
        }
        sections::push(&mut text, "expected_tools", &expected.join("\n"));
        sections::push(&mut text, "request", request);
        sections::push(
            &mut text,
            "earlier",
            &earlier.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        );
        sections::push(&mut text, "conversation", &self.conversation_for(scene));
        if let Some(pending) = self.pending.as_ref().filter(|pending| pending["scene"] == scene) {
            sections::push(&mut text, "pending", &pending.to_string());
        }
        let mut specs: Vec<ToolSpec> = self
            .tools(scene)
            .iter()
            .filter(|t| t["effect"] == "read" || expected.contains(&t["name"].as_str().unwrap()))
            .map(|t| ToolSpec {
                name: t["name"].as_str().unwrap().into(),
                description: t["description"].as_str().unwrap().into(),
                parameters: t["parameters"].clone().into(),
                strict: false,
            })
            .collect();
        specs.push(spec("AskUser", json!({"type": "object"})));
        let about =
            self.scenes.iter().find(|s| s["scene"] == scene).unwrap()["description"].as_str().unwrap();
        let system = format!("You are the scene {scene} of an assistant: {about}\nAct.");
        let mut messages = vec![Message::System { text: system }, Message::User { text }];
        let mut calls = Vec::new();
        for _ in 0..6 {
            let reply = send(Purpose::Scene, messages.clone(), specs.clone(), ToolChoice::Auto);
            if reply.calls.is_empty() {
                return (calls, Some(reply.text), Vec::new());
            }
            messages.push(Message::Assistant { text: reply.text.clone(), calls: reply.calls.clone() });
            let questions: Vec<Value> = reply
                .calls
                .iter()
                .filter(|call| call.name == "AskUser")
                .map(|call| serde_json::from_str(&call.arguments).unwrap())
                .collect();
            if !questions.is_empty() {
                return (calls, None, questions);
            }
            for call in &reply.calls {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                let spec = specs.iter().find(|s| s.name == call.name).unwrap();
                let validator = jsonschema::validator_for(&spec.parameters).unwrap();
                let errors: Vec<String> = validator.iter_errors(&arguments).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{request}: {} {arguments}: {errors:?}", call.name);
                let outcome = tool(&call.name, &arguments);
                messages.push(Message::Tool { call_id: call.id.clone(), text: outcome.to_string() });
                calls.push(json!({"tool": call.name, "arguments": arguments, "outcome": outcome["outcome"], "result": outcome.get("result"), "say": outcome.get("say")}));
            }
        }
        panic!("{request}: the loop of {scene} does not end: {calls:?}");
    }

    /// A request from plan to answer, remembered as a turn.
    pub fn ask(&mut self, request: &str, tool: Tool) -> RequestOutcome {
        let plan = self.planned(request, &[], self.preparing());
        let mut bare = plan.clone();
        for step in bare["steps"].as_array_mut().unwrap() {
            step.as_object_mut().unwrap().remove("prepared_calls");
        }
        assert_eq!(self.plan(request), bare, "{request}: prepared calls are all that is added");
        self.carried_out(request, plan, tool)
    }

    /// A plan carried out for a request and answered, remembered as a turn.
    pub fn carried_out(&mut self, request: &str, plan: Value, tool: Tool) -> RequestOutcome {
        let mut outcome = RequestOutcome { plan: plan.clone(), ..RequestOutcome::default() };
        let mut executed: Vec<Value> = Vec::new();
        for step in plan["steps"].as_array().unwrap() {
            let on: Vec<u64> = match &step["depends_on_step"] {
                Value::Number(n) => vec![n.as_u64().unwrap()],
                Value::Array(list) => list.iter().filter_map(Value::as_u64).collect(),
                _ => Vec::new(),
            };
            let earlier: Vec<Value> =
                executed.iter().filter(|e| on.contains(&e["step"].as_u64().unwrap())).cloned().collect();
            let (calls, result, questions) = self.step(request, step, &earlier, tool);
            let question = questions.first().cloned();
            let status = if question.is_some() { "needs_input" } else { "completed" };
            outcome.scenes.push(step["scene_name"].as_str().unwrap().to_owned());
            outcome.purposes.push(step["purpose"].as_str().unwrap().to_owned());
            outcome.depends.push(on);
            let mut keys: Vec<String> =
                calls.iter().map(|c| format!("{} {}", c["tool"], c["arguments"])).collect();
            keys.sort();
            let count = keys.len();
            keys.dedup();
            assert_eq!(count, keys.len(), "{request}: the same call twice in a step: {calls:?}");
            let prepared: Vec<(String, Value)> = step["prepared_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| (call["tool"].as_str().unwrap().to_owned(), call["arguments"].clone()))
                .collect();
            self.called_as_shown(request, step, &prepared, &calls, &questions);
            outcome.prepared.extend(prepared);
            for call in &calls {
                outcome.calls.push((call["tool"].as_str().unwrap().to_owned(), call["arguments"].clone()));
            }
            executed.push(json!({"step": step["step_number"], "scene": step["scene_name"], "purpose": step["purpose"], "status": status,
                "result": result, "question": question.as_ref().map(|q| q["question"].clone()), "calls": calls}));
            outcome.question = question.or(outcome.question);
            outcome.questions.extend(questions);
        }
        outcome.answer = if executed.is_empty() {
            self.out_of_scope(request)
        } else {
            self.verdict(request, &plan, &executed)
        };
        let pending_scene = executed.iter().find(|e| e["status"] == "needs_input").cloned();
        self.pending = pending_scene.map(|e| {
            let q = outcome.question.clone().unwrap();
            json!({"request": request, "scene": e["scene"], "purpose": e["purpose"],
                   "question": {"text": q["question"], "tool": q["tool"], "missing": q["missing"], "known": q["known"]}})
        });
        let calls: Vec<Value> = executed
            .iter()
            .flat_map(|e| e["calls"].as_array().unwrap().iter().map(|c| json!({"scene": e["scene"], "tool": c["tool"], "arguments": c["arguments"], "result": c["result"]})))
            .collect();
        self.turns.push(
            json!({"request": request, "answer": outcome.answer, "status": "completed", "calls": calls}),
        );
        outcome
    }

    /// The law of prepared calls: a step's writes are those that its plan showed, with the very arguments;
    /// what was not shown came from a look-up, an earlier step or the user.
    fn called_as_shown(
        &self,
        request: &str,
        step: &Value,
        prepared: &[(String, Value)],
        calls: &[Value],
        questions: &[Value],
    ) {
        let tools = self.tools(step["scene_name"].as_str().unwrap());
        let is_write = |name: &Value| tools.iter().any(|t| t["name"] == *name && t["effect"] == "write");
        let writes: Vec<(String, Value)> = calls
            .iter()
            .filter(|call| is_write(&call["tool"]))
            .map(|call| (call["tool"].as_str().unwrap().to_owned(), call["arguments"].clone()))
            .collect();
        let known: Vec<(String, Value)> = questions
            .iter()
            .filter(|question| is_write(&question["tool"]))
            .map(|q| (q["tool"].as_str().unwrap().to_owned(), q["known"].clone()))
            .collect();
        let asked = !known.is_empty();
        let writes = if asked { known } else { writes };
        // A question for several calls has the values of the first one. The others are of its tool; they are
        // incomplete, too, or wait for the confirmation.
        let (prepared, others) =
            prepared.split_at(if asked { prepared.len().min(writes.len()) } else { prepared.len() });
        for (tool, arguments) in others {
            assert_eq!(questions[0]["tool"], *tool, "{request}: {step} {questions:?}");
            let confirms = questions[0]["missing"].as_array().unwrap().is_empty();
            let schema = &tools.iter().find(|t| t["name"] == *tool).unwrap()["parameters"];
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let lacks = required.iter().any(|name| arguments.get(name.as_str().unwrap()).is_none());
            assert!(confirms || lacks, "{request}: {step} {questions:?}");
        }
        let looked_up = !asked && calls.len() > writes.len();
        if looked_up || (!asked && !step["depends_on_step"].is_null()) || !self.exact {
            let part = |a: &Value, b: &Value| {
                a.as_object().unwrap().iter().all(|(name, value)| b.get(name) == Some(value))
            };
            let shown = prepared.iter().zip(&writes).all(|(a, b)| a.0 == b.0 && part(&a.1, &b.1));
            assert!(shown && prepared.len() >= writes.len(), "{request}: {step} {calls:?}");
        } else {
            assert_eq!(prepared, writes, "{request}: {step} {calls:?} {questions:?}");
        }
    }

    /// A request with tools that say yes to everything.
    pub fn run(&mut self, request: &str) -> RequestOutcome {
        self.ask(
            request,
            &mut |tool, arguments| json!({"outcome": "ok", "result": {"done_by": tool, "with": arguments}}),
        )
    }

    fn verdict(&self, request: &str, plan: &Value, executed: &[Value]) -> String {
        let mut text = String::new();
        sections::push(&mut text, "now", NOW);
        if let Some(language) = crate::language::detect(request) {
            sections::push(&mut text, "language", language);
        }
        sections::push(&mut text, "request", request);
        sections::push(&mut text, "conversation", &self.conversation());
        sections::push(&mut text, "plan", &plan.to_string());
        sections::push(
            &mut text,
            "executed",
            &executed.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        );
        let tool = spec(
            "CheckContinuation",
            json!({"type": "object", "properties": {"answer": {"type": ["string", "null"]}}}),
        );
        let reply = send(
            Purpose::Continuation,
            vec![Message::User { text }],
            vec![tool],
            ToolChoice::Forced("CheckContinuation".into()),
        );
        let verdict: crate::run::Verdict = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert!(!verdict.should_continue);
        verdict.answer.unwrap()
    }

    fn out_of_scope(&self, request: &str) -> String {
        let mut text = String::new();
        if let Some(language) = crate::language::detect(request) {
            sections::push(&mut text, "language", language);
        }
        sections::push(&mut text, "mode", "decline");
        sections::push(&mut text, "request", request);
        sections::push(&mut text, "conversation", &self.conversation());
        let lines: Vec<String> = self
            .scenes
            .iter()
            .map(|s| json!({"scene": s["scene"], "description": s["description"]}).to_string())
            .collect();
        sections::push(&mut text, "capabilities", &lines.join("\n"));
        send(Purpose::Answer, vec![Message::User { text }], Vec::new(), ToolChoice::None).text
    }
}

/// A step of a scene in the schema of the planner's forced tool, with the calls that it may prepare.
/// With `ordered`, words tell what a tool requires, in its own order.
fn step_schema(scene: &Value, ordered: bool) -> Value {
    let tools = scene["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    let calls: Vec<Value> = tools
        .iter()
        .filter(|tool| tool["effect"] == "write")
        .map(|tool| {
            let mut arguments = tool["parameters"].clone();
            let required = arguments.as_object_mut().unwrap().remove("required");
            let names: Vec<&str> =
                required.iter().flat_map(|r| r.as_array().unwrap()).filter_map(Value::as_str).collect();
            if ordered && !names.is_empty() {
                arguments["description"] = json!(format!("What is known of: {}", names.join(", ")));
            }
            json!({"type": "object", "required": ["tool", "arguments"],
                   "properties": {"tool": {"type": "string", "enum": [tool["name"]]}, "arguments": arguments}})
        })
        .collect();
    let mut step = json!({
        "type": "object", "additionalProperties": false,
        "required": ["step_number", "scene_name", "purpose", "expected_tools", "depends_on_step"],
        "properties": {
            "step_number": {"type": "integer"},
            "scene_name": {"type": "string", "enum": [scene["scene"]]},
            "purpose": {"type": "string"},
            "expected_tools": {"type": "array", "items": {"type": "string", "enum": names}},
            "depends_on_step": {},
            "unclear": {"type": "boolean"}
        }
    });
    match calls.as_slice() {
        [] => {}
        [one] => step["properties"]["prepared_calls"] = json!({"type": "array", "items": one}),
        several => {
            step["properties"]["prepared_calls"] = json!({"type": "array", "items": {"anyOf": several}})
        }
    }
    step
}

/// The lines of a table, each a request and what comes of it: `request => Tool {arguments}; Tool {arguments}; asks NAMES`, or
/// `=> nothing`. A line that begins with `=>` continues the one before it, one with `#` is a comment.
pub(super) fn table(text: &str) -> Vec<(String, Value)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.collect::<Vec<_>>().join("\n").replace("\n=>", " =>");
    let row = |line: &str| {
        let (request, outcome) = line.split_once(" => ").unwrap();
        (request.to_owned(), expected(outcome))
    };
    lines.lines().map(row).collect()
}

/// Calls as lists of a tool and its arguments; with what the user is asked for, if anything, a list of both.
fn expected(outcome: &str) -> Value {
    let (mut calls, mut rest) = (Vec::new(), outcome.trim_start_matches("nothing"));
    while !rest.is_empty() {
        if let Some(names) = rest.strip_prefix("asks ") {
            return json!([calls, names.split(", ").collect::<Vec<_>>()]);
        }
        let (tool, arguments) = rest.split_once(' ').unwrap();
        let mut values = serde_json::Deserializer::from_str(arguments).into_iter::<Value>();
        calls.push(json!([tool, values.next().unwrap().unwrap()]));
        rest = arguments[values.byte_offset()..].trim_start_matches("; ");
    }
    json!(calls)
}

/// Checks a [`table`] of what is called or asked for, each request in a conversation of its own.
pub(super) fn check(world: &World, text: &str) {
    let cases = table(text);
    let mut wrong = Vec::new();
    for (request, want) in &cases {
        let outcome = world.clone().run(request);
        let calls: Vec<Value> = outcome.calls.iter().map(|c| json!([c.0, c.1])).collect();
        let got = match &outcome.question {
            Some(question) => json!([calls, question["missing"]]),
            None => json!(calls),
        };
        if got != *want {
            let known = outcome.question.map(|question| question["known"].clone());
            wrong.push(format!(
                "{request}\n   want {want}\n   got  {got}\n   {:?} known {known:?}",
                outcome.purposes
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// A tool of a scene, with its whole schema.
fn tool(declared: &Value) -> Value {
    let mut parameters = json!({"type": "object", "additionalProperties": false});
    for (key, value) in declared["parameters"].as_object().into_iter().flatten() {
        parameters[key] = value.clone();
    }
    json!({"name": declared["name"], "effect": declared["effect"], "description": declared["description"],
           "parameters": parameters})
}

fn spec(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.into(), description: String::new(), parameters: parameters.into(), strict: true }
}

pub(super) fn send(
    purpose: Purpose,
    messages: Vec<Message>,
    tools: Vec<ToolSpec>,
    choice: ToolChoice,
) -> crate::run::Reply {
    OfflineModel
        .complete(&Request { purpose, messages, tools, choice, temperature: None, max_output_tokens: None })
        .reply
}

/// A scene as the planner's prompt describes it.
pub fn scene_line(scene: &Value) -> String {
    let says = |tool: Option<&str>| -> Vec<String> {
        let all = scene["examples"].as_array().into_iter().flatten();
        all.filter(|e| e["tool"].as_str() == tool).map(|e| e["say"].as_str().unwrap().to_owned()).collect()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tools = scene["tools"].as_array().unwrap().iter();
    let line = SceneLine {
        scene: text(&scene["scene"]),
        description: text(&scene["description"]),
        tools: tools
            .map(|tool| ToolLine {
                name: text(&tool["name"]),
                effect: text(&tool["effect"]),
                description: text(&tool["description"]),
                arguments: signature::signature(&tool["parameters"]),
                examples: says(tool["name"].as_str()),
                ..ToolLine::default()
            })
            .collect(),
        examples: says(None),
    };
    serde_json::to_string(&line).unwrap()
}
