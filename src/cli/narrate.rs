//! Renders journal events as lines for people. Pure: the lines depend on the events alone.

mod calls;
mod failures;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proscenium::flow::Flow;
use proscenium::plan::{Plan, StepStatus, diff};
use proscenium::run::{
    ApprovalSubject, Decision, Envelope, Event, Fault, PlanCause, PlanMade, PlanMaker, PlanScore,
    ProgramStop, Verdict,
};
use serde_json::Value;

use nodes::NarratedNode;

use super::pending_questions::decision_text;
use super::text::{count, json, one_line, short, whole_json};

/// Maximum width of arguments and of a result within a line, in columns.
const ARGUMENTS: usize = 120;
const RESULT: usize = 160;
const WORDS: usize = 300;

/// The kind of a line; a terminal shows it as a sign in front of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A plan, or a line of it.
    Plan,
    /// Something began.
    Begun,
    /// Something ended well.
    Done,
    /// Something did not work.
    Failed,
    /// Only the user can say what is missing.
    Asks,
    /// Something was omitted, or is worth knowing.
    Note,
}

/// One line of a narration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NarrationLine {
    /// The kind of the line.
    pub mark: Mark,
    /// Its words, one line, without anything that steers a terminal.
    pub text: String,
}

/// A tool call as a scene's model asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedToolCall {
    /// The step.
    pub step: u32,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// It was rendered as not called, so its outcome is not rendered.
    refused: bool,
    writes: bool,
    /// It has a result.
    succeeded: bool,
    /// The call whose place it takes.
    stands_for: Option<u32>,
}

/// Renders the events of one run in order; remembers what later events refer to.
#[derive(Debug, Clone, Default)]
pub struct Narrator {
    /// Scene and purpose of each step.
    steps: BTreeMap<u32, (String, String)>,
    /// The steps of nodes.
    nodes: BTreeMap<u32, NarratedNode>,
    calls: BTreeMap<u32, RequestedToolCall>,
    /// A question to the user came up: the answer asks it.
    asks: bool,
    /// The answer was given, so it says why the run failed.
    answered: bool,
    /// A person wants the plan changed, and no changed plan was made so far.
    modifying: bool,
    /// Model failures that were rendered, by code and message.
    failures: BTreeSet<(String, String)>,
    /// The flows of all plans, the newest first.
    flows: Vec<Flow>,
    /// The plan in force.
    plan: Option<Plan>,
    /// The run is quarantined.
    aside: bool,
}

impl Narrator {
    /// The lines for an event, often none.
    pub fn narrate(&mut self, envelope: &Envelope<Event>) -> Vec<NarrationLine> {
        let (event, at) = (&envelope.body, envelope.at);
        match event {
            Event::ModelFailed { .. } | Event::ReplyRejected { .. } => self.narrate_model(event),
            Event::PlanRated { score, by, note, .. } => narrate_rating(*score, by, note.as_deref()),
            Event::PlanCreated(made) | Event::Replanned(made) | Event::PlanEdited(made) => {
                self.narrate_plan(made)
            }
            Event::PlanningFailed { .. } if std::mem::take(&mut self.modifying) => Vec::new(),
            Event::PlanningFailed { .. } | Event::ModificationAsked { .. } | Event::PlanRefused { .. } => {
                self.modifying |= matches!(event, Event::ModificationAsked { .. });
                narrate_planning(event)
            }
            Event::ApprovalRequired { .. }
            | Event::Decided { .. }
            | Event::ApprovalLapsed { .. }
            | Event::ListChangeAsked { .. }
            | Event::Released { .. } => self.narrate_approval(event),
            Event::Forecast { .. }
            | Event::StepStarted { .. }
            | Event::StepCompleted { .. }
            | Event::StepFailed { .. }
            | Event::FlowPlanned { .. }
            | Event::NodeStarted { .. }
            | Event::NodeReplied { .. }
            | Event::SceneReplied { .. }
            | Event::Prepared { .. }
            | Event::SummaryPlanned { .. }
            | Event::ProgramWritten { .. }
            | Event::ProgramReplied { .. } => self.narrate_work(event, at),
            Event::ToolStarted { .. }
            | Event::ToolCompleted { .. }
            | Event::ToolSkipped { .. }
            | Event::Compensating { .. }
            | Event::Adapted { .. } => self.narrate_call(event),
            Event::Unexpected { .. } | Event::Voted { .. } | Event::Consultation { .. } => {
                self.narrate_failure(event)
            }
            Event::Continuation { round, verdict, degraded } => {
                let is_whole = self.steps.keys().all(|step| self.is_achieved(*step));
                vec![check(*round, verdict, *degraded, is_whole, self.asks)]
            }
            Event::Answered { text, degraded, error } => self.narrate_answer(text, *degraded, error.as_ref()),
            // The error is shown in place of the answer.
            Event::RunFailed { .. } if !self.answered => Vec::new(),
            Event::RunPutAside { error, .. } => {
                self.aside = true;
                let why = short(&error.message, WORDS);
                line(Mark::Asks, format!("in quarantine until it is resumed [{}]: {why}", error.code))
            }
            Event::RunResumed { .. }
            | Event::RunReopened { .. }
            | Event::CancelRequested { .. }
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. } => narrate_run(event),
            // Nothing that a reader of the run has to know.
            _ => Vec::new(),
        }
    }

    /// The lines for a question that failed, or whose reply was rejected.
    fn narrate_model(&mut self, event: &Event) -> Vec<NarrationLine> {
        match event {
            // Problems of a reply are worded for models, and the command says how the change ended.
            Event::ReplyRejected { .. } if self.modifying => Vec::new(),
            Event::ModelFailed { error, .. } if !self.is_news(error) => Vec::new(),
            event => narrate_model(event),
        }
    }

    /// The lines for what happens in a step, apart from its calls.
    fn narrate_work(&mut self, event: &Event, at: Timestamp) -> Vec<NarrationLine> {
        match event {
            Event::Forecast { step, tools } => {
                let told = tools.iter().map(|tool| {
                    let how = if tool.open { "is not called at present" } else { "fails often at present" };
                    format!("{} {how}", one_line(&tool.tool))
                });
                line(
                    Mark::Note,
                    format!("{}: {}", self.step_label(*step), told.collect::<Vec<_>>().join(", ")),
                )
            }
            Event::StepStarted { .. } | Event::StepCompleted { .. } | Event::StepFailed { .. } => {
                self.narrate_step(event, at)
            }
            Event::FlowPlanned { .. } | Event::NodeStarted { .. } => self.narrate_flow(event, at),
            Event::NodeReplied { step, output, .. } => {
                self.node_returned(*step, output, None);
                Vec::new()
            }
            Event::SceneReplied { step, next: Some(tool), .. } => {
                line(Mark::Note, format!("{}: decides for {}", self.step_label(*step), one_line(tool)))
            }
            Event::SceneReplied { step, calls, question, .. } => {
                self.narrate_reply(*step, calls, question.as_ref())
            }
            Event::Prepared { step, calls, question, .. } => {
                self.node_prepared(*step, !calls.is_empty());
                self.narrate_reply(*step, calls, question.as_ref())
            }
            Event::SummaryPlanned { step, outline, .. } => {
                let chunks = count(outline.ends.len(), "chunk");
                let questions = count(outline.estimate.questions as usize, "question");
                line(
                    Mark::Note,
                    format!("{}: {chunks} of the documents, at most {questions}", self.step_label(*step)),
                )
            }
            Event::ProgramWritten { step, source, .. } => {
                let lines = count(source.lines().count(), "line");
                line(Mark::Note, format!("{}: a program of {lines}", self.step_label(*step)))
            }
            Event::ProgramReplied { step, stop, .. } => self.narrate_program_stop(*step, stop),
            _ => Vec::new(),
        }
    }

    /// A request for approval, its decision, its lapse, or a release.
    fn narrate_approval(&mut self, event: &Event) -> Vec<NarrationLine> {
        match event {
            // The question that follows says why.
            Event::ApprovalRequired { matter, .. } => {
                let what = match matter {
                    ApprovalSubject::Plan { version } => {
                        format!("plan {version}: waits for approval")
                    }
                    ApprovalSubject::Call { call } => {
                        format!("{}: waits for approval", self.call_label(*call))
                    }
                    ApprovalSubject::Outcome { call } => {
                        format!("{}: a person has to say what became of it", self.call_label(*call))
                    }
                };
                line(Mark::Asks, what)
            }
            Event::Decided { matter, decision, by, note, .. } => {
                if let (ApprovalSubject::Call { call }, Decision::Edited { arguments, .. }) =
                    (matter, decision)
                    && let Some(asked) = self.calls.get_mut(call)
                {
                    asked.arguments = arguments.clone();
                }
                let what = self.subject_label(*matter);
                let why = note.as_deref().map(behind).unwrap_or_default();
                // Nobody decided; the note says that.
                let by = if by == "expiry" { String::new() } else { format!(" by {}", one_line(by)) };
                line(Mark::Note, format!("{what}: {}{by}{why}", decision_text(decision)))
            }
            Event::ListChangeAsked { by, words, .. } => {
                line(Mark::Note, format!("{} replies: {}", one_line(by), short(words, WORDS)))
            }
            Event::ApprovalLapsed { matter, why, .. } => {
                let why = short(&why.join("; "), WORDS);
                line(
                    Mark::Note,
                    format!("{}: its approval is no longer valid: {why}", self.subject_label(*matter)),
                )
            }
            Event::Released { by } => {
                let what =
                    if std::mem::take(&mut self.aside) { "the run continues" } else { "the plan starts" };
                line(Mark::Note, format!("{what}, says {}", one_line(by)))
            }
            _ => Vec::new(),
        }
    }

    /// The lines for an answer, or for what ended the run before its work was done.
    fn narrate_answer(&mut self, text: &str, degraded: bool, error: Option<&Fault>) -> Vec<NarrationLine> {
        self.answered = !text.trim().is_empty();
        if let Some(error) = error {
            let why = short(&error.message, WORDS);
            return line(
                Mark::Failed,
                format!("run: ended before its work was done [{}]: {why}", error.code),
            );
        }
        let what = "answer: no model worded it, so it lists what was done";
        if degraded { line(Mark::Note, what.to_owned()) } else { Vec::new() }
    }

    fn narrate_step(&mut self, event: &Event, at: Timestamp) -> Vec<NarrationLine> {
        match event {
            Event::StepStarted { step } => line(Mark::Begun, format!("{}: started", self.step_label(*step))),
            // What it found is in the answer.
            Event::StepCompleted { step, .. } if !self.is_achieved(*step) => {
                line(Mark::Failed, format!("{}: did not succeed", self.step_label(*step)))
            }
            Event::StepCompleted { step, .. } => self.completed_node(*step, at).unwrap_or_else(|| {
                let mut lines = self.skipped_nodes(*step);
                lines.extend(line(Mark::Done, format!("{}: completed", self.step_label(*step))));
                lines
            }),
            Event::StepFailed { step, status, error } => {
                self.asks |= *status == StepStatus::NeedsInput;
                if self.is_told_of_call(*step, &error.code) && *status == StepStatus::Failed {
                    return Vec::new();
                }
                self.failed_step(*step, *status, error)
            }
            _ => Vec::new(),
        }
    }

    fn failed_step(&self, step: u32, status: StepStatus, error: &Fault) -> Vec<NarrationLine> {
        let (mark, how) = match status {
            StepStatus::NeedsInput => (Mark::Asks, "needs input"),
            StepStatus::Blocked => (Mark::Failed, "blocked"),
            StepStatus::Cancelled => (Mark::Note, "cancelled"),
            _ => (Mark::Failed, "failed"),
        };
        let step_words = self.step_label(step);
        match status {
            // The answer is the question.
            StepStatus::NeedsInput => line(mark, format!("{step_words}: {how}")),
            _ => line(mark, format!("{step_words}: {how} [{}]{}", error.code, behind(&error.message))),
        }
    }

    /// `step 1 Weather`, or `step 1 lookup, validate` of a flow's node.
    pub fn step_label(&self, step: u32) -> String {
        if let Some(node) = self.node_step(step) {
            return node;
        }
        match self.steps.get(&step) {
            Some((scene, _)) => format!("step {step} {}", one_line(scene)),
            None => format!("step {step}"),
        }
    }

    /// Returns the purpose of a step.
    pub fn purpose(&self, step: u32) -> &str {
        self.steps.get(&step).map_or("", |(_, purpose)| purpose)
    }

    /// The call with this ordinal.
    pub fn call(&self, call: u32) -> Option<&RequestedToolCall> {
        self.calls.get(&call)
    }

    /// `plan 1`, or a call.
    fn subject_label(&self, matter: ApprovalSubject) -> String {
        match matter {
            ApprovalSubject::Plan { version } => format!("plan {version}"),
            ApprovalSubject::Call { call } | ApprovalSubject::Outcome { call } => self.call_label(call),
        }
    }

    /// `step 1 Weather: WeatherForecast_Get {"city":"Milan"}`
    fn call_label(&self, call: u32) -> String {
        let Some(asked) = self.calls.get(&call) else { return format!("call {call}") };
        self.node_call(asked.step, &asked.tool).unwrap_or_else(|| {
            format!(
                "{}: {} {}",
                self.step_label(asked.step),
                one_line(&asked.tool),
                json(&asked.arguments, ARGUMENTS)
            )
        })
    }

    fn narrate_plan(&mut self, made: &PlanMade) -> Vec<NarrationLine> {
        let PlanMade { version, cause, maker, plan, by: person, why, patch, .. } = made;
        let which = match (version, cause) {
            (1, _) => "plan".to_owned(),
            (n, PlanCause::Continuation) => format!("plan {n}, for what is missing"),
            (n, PlanCause::Feedback) => format!("plan {n}, changed as was wanted"),
            (n, PlanCause::Edit) => format!("plan {n}, changed by hand"),
            (n, PlanCause::Adaptation) => format!("plan {n}, adapted"),
            (n, PlanCause::Request) => format!("plan {n}"),
        };
        let by = match (maker, person) {
            (PlanMaker::Person, Some(person)) => format!(" (by {})", one_line(person)),
            (PlanMaker::Deterministic | PlanMaker::Person, _) => String::new(),
            (PlanMaker::Code, _) => " (a program, without a planner)".to_owned(),
            (PlanMaker::Learned, _) => " (from earlier executions, without a planner)".to_owned(),
            (PlanMaker::Fallback, _) => {
                " (degraded: by the offline model, since no model gave one)".to_owned()
            }
        };
        let steps = if plan.steps.is_empty() {
            "no scene is needed".to_owned()
        } else {
            count(plan.steps.len(), "step")
        };
        let reason = why.as_deref().unwrap_or(&plan.reasoning);
        let head = format!("{which}: {steps}{by}{}", behind(reason));
        let mut lines = vec![NarrationLine { mark: Mark::Plan, text: head }];
        for step in &plan.steps {
            self.steps.insert(step.step_number, (step.label().to_owned(), one_line(&step.purpose)));
        }
        let earlier = std::mem::take(&mut self.flows);
        self.flows = made.flows.iter().cloned().chain(earlier).collect();
        lines.extend(steps_of(plan).into_iter().map(|text| NarrationLine { mark: Mark::Plan, text }));
        if let (Some(before), PlanCause::Feedback | PlanCause::Edit) = (&self.plan, cause) {
            let mut changes = diff(before, plan);
            if changes.is_empty() {
                changes.push("nothing is different in its steps".to_owned());
            }
            let changed = changes.iter().map(|line| format!("  {}", short(line, WORDS)));
            lines.extend(changed.map(|text| NarrationLine { mark: Mark::Note, text }));
        }
        let changes = patch.iter().flat_map(|patch| patch.changes());
        lines.extend(changes.map(|text| NarrationLine { mark: Mark::Note, text: format!("  {text}") }));
        self.plan = Some(plan.clone());
        self.modifying = false;
        lines
    }

    /// Where a program stopped: only its end and its faults are shown, since its calls are shown by themselves.
    fn narrate_program_stop(&mut self, step: u32, stop: &ProgramStop) -> Vec<NarrationLine> {
        match stop {
            ProgramStop::Call { requested, .. } => {
                self.narrate_reply(step, std::slice::from_ref(&**requested), None)
            }
            ProgramStop::Finished { result, .. } => line(
                Mark::Note,
                format!("{}: the program ends, {}", self.step_label(step), one_line(&result.status)),
            ),
            ProgramStop::Fault { fault } => {
                let what = short(&fault.message, WORDS);
                line(
                    Mark::Failed,
                    format!("{}: the program fails [{}]: {what}", self.step_label(step), fault.code),
                )
            }
            // The end of the step says why.
            ProgramStop::Unavailable { .. } => Vec::new(),
        }
    }

    /// Whether this failure of a model was not rendered before.
    fn is_news(&mut self, error: &Fault) -> bool {
        self.failures.insert((error.code.clone(), error.message.clone()))
    }

    /// Whether a call of the step succeeded, and each of its writes: a scene's words may claim more.
    fn is_achieved(&self, step: u32) -> bool {
        let calls = || self.calls.values().filter(|asked| asked.step == step);
        let done = |tool: &str| calls().any(|asked| asked.tool == tool && asked.succeeded);
        let nothing = calls().next().is_some() && !calls().any(|asked| asked.succeeded);
        !nothing && calls().all(|asked| !asked.writes || done(&asked.tool))
    }
}

/// The steps of a plan, a line each, indented, and under each the calls whose arguments are known.
pub fn steps_of(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .flat_map(|step| {
            let tools = match step.expected_tools.as_slice() {
                [] => String::new(),
                tools => format!(" [{}]", one_line(&tools.join(", "))),
            };
            let after: Vec<String> = step.depends_on_step.iter().map(|d| d.to_string()).collect();
            let after =
                if after.is_empty() { String::new() } else { format!(", after {}", after.join(" and ")) };
            let (scene, purpose) = (one_line(step.label()), short(&step.purpose, WORDS));
            let line = format!("  {}. {scene}: {purpose}{tools}{after}", step.step_number);
            // In full, because an approval covers what is shown.
            let calls = step.prepared_calls.iter().map(|call| {
                format!(
                    "     {} {}",
                    one_line(&call.tool),
                    whole_json(&Value::Object(call.arguments.clone()))
                )
            });
            std::iter::once(line).chain(calls)
        })
        .collect()
}

fn line(mark: Mark, text: String) -> Vec<NarrationLine> {
    vec![NarrationLine { mark, text }]
}

/// A person's judgement of the plan.
fn narrate_rating(score: PlanScore, by: &str, note: Option<&str>) -> Vec<NarrationLine> {
    let judged = if score == PlanScore::Good { "good" } else { "bad" };
    line(Mark::Note, format!("plan: rated {judged} by {}{}", one_line(by), behind(note.unwrap_or_default())))
}

fn narrate_model(event: &Event) -> Vec<NarrationLine> {
    match event {
        Event::ModelFailed { error, .. } => {
            line(Mark::Failed, format!("model: failed [{}]: {}", error.code, short(&error.message, WORDS)))
        }
        Event::ReplyRejected { problems, .. } => {
            let first = problems.first().map(|p| short(&p.message, RESULT)).unwrap_or_default();
            let more = match problems.len() {
                0 | 1 => String::new(),
                n => format!(" (and {})", count(n - 1, "more problem")),
            };
            line(Mark::Note, format!("model: a reply that cannot be used: {first}{more}"))
        }
        _ => Vec::new(),
    }
}

fn narrate_planning(event: &Event) -> Vec<NarrationLine> {
    match event {
        Event::PlanningFailed { version, error } => line(
            Mark::Failed,
            format!("plan {version}: none could be made [{}]{}", error.code, behind(&error.message)),
        ),
        Event::ModificationAsked { by, words, .. } => {
            line(Mark::Note, format!("{} wants the plan changed: {}", one_line(by), short(words, WORDS)))
        }
        Event::PlanRefused { problems, .. } => {
            let messages: Vec<&str> = problems.iter().map(|p| p.message.as_str()).collect();
            line(Mark::Failed, format!("the plan cannot be executed: {}", short(&messages.join("; "), WORDS)))
        }
        _ => Vec::new(),
    }
}

fn narrate_run(event: &Event) -> Vec<NarrationLine> {
    match event {
        Event::RunResumed { .. } => line(Mark::Note, "resumed after an interruption".to_owned()),
        Event::RunReopened { by } => {
            line(Mark::Note, format!("resumed from where it failed, by {}", one_line(by)))
        }
        Event::CancelRequested { deadline: true, .. } => {
            line(Mark::Note, "run: its time is over, it stops at the next safe point".to_owned())
        }
        Event::CancelRequested { by, note, .. } => {
            let why = note.as_deref().map(behind).unwrap_or_default();
            line(Mark::Note, format!("run: {} stops it at the next safe point{why}", one_line(by)))
        }
        Event::RunFailed { error } => {
            line(Mark::Failed, format!("run: failed [{}]{}", error.code, behind(&error.message)))
        }
        Event::RunCancelled { by } => line(Mark::Note, format!("run: cancelled by {}", one_line(by))),
        _ => Vec::new(),
    }
}

/// The line of a check; `is_whole` if every step achieved its purpose, `asks` if the answer is a question.
fn check(round: u32, verdict: &Verdict, degraded: bool, is_whole: bool, asks: bool) -> NarrationLine {
    let check = if round == 1 { "check".to_owned() } else { format!("check {round}") };
    let missing = verdict.missing_information.as_deref().filter(|text| !text.trim().is_empty());
    let why = behind(missing.unwrap_or(&verdict.reasoning));
    let (mark, text) = if degraded {
        (
            Mark::Note,
            format!("{check}: it could not be made, so what was found is the answer (degraded){why}"),
        )
    } else if verdict.should_continue {
        (Mark::Note, format!("{check}: more is needed{why}"))
    } else if verdict.can_answer_now && !is_whole {
        (Mark::Note, format!("{check}: not everything was done{}", behind(&verdict.reasoning)))
    } else if verdict.can_answer_now {
        (Mark::Done, format!("{check}: the request is answered{}", behind(&verdict.reasoning)))
    } else {
        let why = if asks { "" } else { &why };
        (Mark::Asks, format!("{check}: only the user can say what is missing{why}"))
    };
    NarrationLine { mark, text }
}

fn behind(text: &str) -> String {
    let text = short(text, WORDS);
    if text.is_empty() { text } else { format!(": {text}") }
}
