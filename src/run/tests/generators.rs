//! Replies of models and results of tools in a generated world.

use serde_json::{Value, json};

use strum::IntoEnumIterator;

use super::world::Dice;
use crate::adapt::{AlternativeTool, CachedResult, FaultPolicy, PolicyAction, ToolPolicies};
use crate::fault::FaultClass;
use crate::plan::{DependsOn, PROGRAM, Plan, PreparedCall, Step, StepKind};
use crate::planner::{ADAPT_PLAN, required_call_approval};
use crate::run::{
    Effect, Fault, Outcome, PlanCause, PlanMade, PlanMaker, PlanningMaker, Question, Reply, ReplyCall,
    RequestedCall, RequiredApproval, RunState, Unconfirmed, Usage, Verdict, call_key,
};
use crate::scene::Catalogue;

/// The scenes, and the tools of each: a read, a plain write, a keyed write, a second read, and an undo.
const SCENES: [&str; 2] = ["A", "B"];
const TOOLS: [&str; 5] = ["look", "book", "pay", "peek", "unbook"];

/// A valid plan: a random DAG whose numbers have gaps and any order, and which may depend on finished
/// steps. With `changes`, it replaces the steps that have not begun.
pub fn plan(dice: &mut Dice, state: &RunState, max: u32, changes: bool) -> Plan {
    let count = if dice.pick(24) == 23 { 0 } else { 1 + dice.pick(max as usize) };
    let mut known: Vec<u32> = state.finished_steps().into_iter().collect();
    let mut number = state.last_fixed_step(changes);
    let mut steps = Vec::new();
    for _ in 0..count {
        number += 1 + dice.pick(2) as u32;
        let depends: DependsOn = known.iter().copied().filter(|_| dice.pick(3) == 2).collect();
        known.push(number);
        let expected_tools: Vec<String> =
            TOOLS.iter().filter(|_| dice.pick(3) == 2).map(|t| (*t).to_owned()).collect();
        let writes = expected_tools.iter().filter(|tool| matches!(tool.as_str(), "book" | "pay"));
        let prepared_calls = writes
            .filter_map(|tool| {
                let arguments = arguments(dice).as_object().cloned()?;
                (dice.pick(2) == 1).then(|| PreparedCall { tool: tool.clone(), arguments })
            })
            .collect();
        if state.settings().maker != PlanningMaker::Scenes && dice.pick(3) < 2 {
            steps.push(Step {
                step_number: number,
                kind: StepKind::Code,
                scene_name: PROGRAM.to_owned(),
                purpose: "something".to_owned(),
                depends_on_step: depends,
                scenes: SCENES.map(str::to_owned).to_vec(),
                ..Step::default()
            });
            continue;
        }
        steps.push(Step {
            step_number: number,
            scene_name: SCENES[dice.pick(2)].to_owned(),
            purpose: "something".to_owned(),
            expected_tools,
            depends_on_step: depends,
            prepared_calls,
            ..Step::default()
        });
    }
    for i in (1..steps.len()).rev() {
        steps.swap(i, dice.pick(i + 1));
    }
    // Dependencies point to any step, not only to lower numbers.
    if steps.len() > 1 && dice.pick(2) == 1 {
        let numbers: Vec<u32> = steps.iter().map(|s| s.step_number).collect();
        let turned =
            |n: u32| numbers.iter().position(|m| *m == n).map_or(n, |i| numbers[numbers.len() - 1 - i]);
        for step in &mut steps {
            step.step_number = turned(step.step_number);
            step.depends_on_step = step.depends_on_step.iter().map(turned).collect();
        }
    }
    Plan { needs_execution: count > 0, reasoning: String::new(), steps, ..Plan::default() }
}

/// A reply to the question for a patch: mostly of what may be changed, sometimes of anything.
pub fn patch(dice: &mut Dice, state: &RunState, about: u32, max: u32) -> Reply {
    let scope = state.patch_scope(about);
    let all: Vec<u32> = state.steps.keys().copied().collect();
    let mut new = plan(dice, state, max.min(3), false).steps;
    // Equal tasks are frequent, and some of them failed before.
    for step in &mut new {
        step.purpose = format!("task {}", dice.pick(12));
        let others: Vec<u32> = all.iter().copied().filter(|_| dice.pick(4) == 3).collect();
        step.depends_on_step = step.depends_on_step.iter().chain(others).collect();
    }
    let mut some = |of: &[u32], sides: usize| -> Vec<u32> {
        let any = if dice.pick(24) == 23 { all.as_slice() } else { of };
        any.iter().copied().filter(|_| dice.pick(sides) == 0).collect()
    };
    let replaced = some(&scope.replaceable, 2);
    let removed: Vec<u32> = some(&scope.removable, 6).into_iter().filter(|n| !replaced.contains(n)).collect();
    let replace: Vec<Value> =
        replaced.iter().zip(&new).map(|(step, with)| json!({"step": step, "with": with})).collect();
    let add: Vec<Value> = new.iter().skip(replace.len()).map(|step| json!(step)).collect();
    let arguments = json!({"reason": "so", "remove": removed, "replace": replace, "add": add}).to_string();
    let call = ReplyCall { id: "call_0".to_owned(), name: ADAPT_PLAN.to_owned(), arguments };
    Reply { calls: vec![call], ..Reply::default() }
}

pub fn made(state: &RunState, plan: Plan, maker: PlanMaker) -> PlanMade {
    let version = state.plans.len() as u32 + 1;
    let feedback = state.planning.as_ref().and_then(|planning| planning.feedback.as_ref());
    let cause = match feedback {
        Some(_) => PlanCause::Feedback,
        None if version == 1 => PlanCause::Request,
        None => PlanCause::Continuation,
    };
    let (by, why) = feedback.map(|f| (f.by.clone(), f.words.clone())).unzip();
    PlanMade { by, why, ..PlanMade::new(version, cause, maker, plan) }
}

/// A required approval with this hash.
pub fn needed(hash: &str) -> RequiredApproval {
    RequiredApproval {
        hash: hash.to_owned(),
        why: vec!["it writes".to_owned()],
        ..RequiredApproval::default()
    }
}

/// Arguments that are often equal, and even more often equal in their identity.
pub fn arguments(dice: &mut Dice) -> Value {
    json!({ "n": dice.pick(2), "x": [0.1, 1e-7, 3.0, null], "note": dice.pick(2) })
}

/// A required confirmation of a write.
fn unconfirmed() -> Unconfirmed {
    Unconfirmed { question: "Shall I?".to_owned(), why: vec!["odd".to_owned()], tool: "t".to_owned() }
}

/// Calls of few distinct keys, so that equal ones are frequent.
pub fn calls(
    dice: &mut Dice,
    state: &RunState,
    catalogue: &Catalogue,
    (step, ask): (u32, u32),
    trouble: u16,
) -> Vec<RequestedCall> {
    let of = state.steps.get(&step).map(|s| &s.step);
    let scene = of.map_or("A", |s| s.scene_name.as_str());
    let by_rules = state.asks.get(&ask).is_some_and(|ask| ask.fallback) || state.is_planned_by_rules(step);
    let adapts = state.settings().mode.is_some();
    (0..1 + dice.pick(4))
        .map(|i| {
            let tool = catalogue.get(scene).unwrap().tool(TOOLS[dice.pick(TOOLS.len())]).unwrap();
            let arguments = match tool.name.as_str() {
                "unbook" => json!({ "id": dice.pick(2) }),
                _ => arguments(dice),
            };
            let problem = dice.chance(trouble, 32).then(|| Fault::new("tool.arguments", "they do not fit"));
            // Some tools are repeatable, and some writes need confirmation.
            let new_rules = state.settings().has_rules(1) && tool.effect == Effect::Write;
            let occurrence = if new_rules { dice.pick(3) as u32 } else { 0 };
            let confirm = (new_rules && problem.is_none() && dice.chance(trouble, 24)).then(unconfirmed);
            let approval = match (&problem, of) {
                (None, Some(of)) => required_call_approval(state, of, tool, &arguments, occurrence, by_rules),
                _ => None,
            };
            RequestedCall {
                provider_id: "call_0".to_owned(),
                repeat: tool.repeat,
                problem,
                approval,
                undo: tool.undo.clone(),
                confirm,
                occurrence,
                policies: adapts.then(|| Box::new(policies(dice, &tool.name))),
                ..RequestedCall::new(
                    state.next_call() + i as u32,
                    &tool.name,
                    call_key(scene, &tool.name, &arguments, &tool.identity),
                    arguments,
                    tool.effect,
                )
            }
        })
        .collect()
}

/// A fault of any class, with or without a wait that a server asks for.
fn fault(dice: &mut Dice) -> Fault {
    let classes: Vec<FaultClass> = FaultClass::iter().collect();
    let code = ["tool.invented", "http.status", "http.unreachable", "scene.busy"][dice.pick(4)];
    let wait = [None, Some(0), Some(800), Some(9_000)][dice.pick(4)];
    let error = Fault::new(code, "it did not work").classed(classes[dice.pick(classes.len())]);
    error.after(wait.map(std::time::Duration::from_millis))
}

/// What a tool declares about its failures. Alternatives are mirrored.
fn policies(dice: &mut Dice, tool: &str) -> ToolPolicies {
    use PolicyAction::{Alternative, Cached, Fail, Retry, Skip};
    let lists = [
        None,
        Some(vec![Retry]),
        Some(vec![Retry, Skip]),
        Some(vec![Skip, Retry]),
        Some(vec![Fail]),
        Some(vec![Alternative]),
        Some(vec![Alternative, Retry]),
        Some(vec![Retry, Alternative, Skip]),
        Some(vec![Cached, Retry]),
        Some(vec![Alternative, Cached, Skip]),
    ];
    let mut policy = || FaultPolicy {
        actions: lists[dice.pick(lists.len())].clone(),
        attempts: [None, Some(2), Some(5)][dice.pick(3)],
        backoff_ms: [None, Some(0)][dice.pick(2)],
        max_wait_ms: None,
    };
    let classes = [FaultClass::Timeout, FaultClass::Unavailable, FaultClass::RateLimit, FaultClass::Other];
    let by_class = classes.into_iter().map(|class| (class, policy())).collect();
    let by = |tool: &str| AlternativeTool {
        tool: tool.to_owned(),
        arguments: ["n", "x", "note"]
            .map(|name| (name.to_owned(), json!(format!("/arguments/{name}"))))
            .into(),
        same_result: false,
    };
    // Two do not exist: a call of them is refused, and the next alternative is called.
    let all = [
        ("look", ["peek", "glance"]),
        ("peek", ["look", "gone"]),
        ("book", ["pay", "rent"]),
        ("pay", ["book", "lost"]),
    ];
    let names = all.iter().find(|(name, _)| *name == tool).map(|(_, by)| *by);
    let mut names: Vec<&str> = names.into_iter().flatten().collect();
    if dice.pick(2) == 1 {
        names.reverse();
    }
    names.truncate(1 + dice.pick(2));
    let mut alternatives = names.into_iter().map(by);
    let alternative = alternatives.next();
    let others: Vec<AlternativeTool> = alternatives.collect();
    let choose_by = if dice.pick(2) == 1 { "the one that is there" } else { "" }.to_owned();
    let cached = Some(CachedResult { max_age_s: 60 });
    let (optional, interpret) = (dice.pick(2) == 1, dice.pick(3) == 2);
    ToolPolicies { by_class, optional, alternative, others, choose_by, cached, interpret }
}

pub fn outcome(dice: &mut Dice, trouble: u16) -> Outcome {
    let error = fault(dice);
    if !dice.chance(trouble, 16) {
        let mut result =
            json!({ "value": (dice.pick(1000) as f64) / 7.0, "big": u64::MAX, "none": Value::Null });
        if dice.pick(8) == 7 {
            result["value"] = Value::Null;
        }
        let say = (dice.pick(2) == 1).then(|| "said".to_owned());
        return Outcome::Ok { result, say, whole: None };
    }
    match dice.pick(4) {
        0 => Outcome::Refused { error },
        1 => Outcome::Failed { error },
        _ => Outcome::Unknown { error },
    }
}

pub fn verdict(dice: &mut Dice, stubborn: bool) -> Verdict {
    let should_continue = stubborn || dice.pick(3) == 2;
    Verdict {
        should_continue,
        can_answer_now: !should_continue && dice.pick(4) != 3,
        reasoning: "because".to_owned(),
        missing_information: should_continue.then(|| "more".to_owned()),
        answer: (dice.pick(2) == 1).then(|| "answer".to_owned()),
    }
}

pub fn question() -> Question {
    Question {
        text: "When?".to_owned(),
        tool: None,
        missing: vec!["from".to_owned()],
        known: json!({ "to": 1.5 }),
        choices: Vec::new(),
    }
}

pub fn usage(dice: &mut Dice) -> Usage {
    Usage {
        calls: 1,
        input_tokens: dice.pick(1000) as u64,
        cached_input_tokens: dice.pick(10) as u64,
        output_tokens: dice.pick(100) as u64,
        cost_nano_usd: dice.pick(100_000) as u64,
    }
}
