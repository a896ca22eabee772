//! Unit tests of the fold, over handwritten events.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::layer::SubscriberExt;
use uuid::Uuid;

use super::names::{MAX_MODELS, MAX_SCENES, MAX_TOOLS};
use super::{
    Component, Exposition, LabelNames, LineFormat, LogLayer, RunMetrics, ServerMetrics, Subscriber,
    TenantBound, run_context, session_context,
};
use crate::config::TelemetryConfig;
use crate::plan::{Plan, Step, StepStatus, TaskId};
use crate::run::{
    ApprovalSubject, Attempt, Decision, Effect, Envelope, Event, Fault, Outcome, PlanCause, PlanMade,
    PlanMaker, Question, Reply, RequestedCall, RequiredApproval, RunId, RunQueued, RunStarted, RunStatus,
    SessionEvent, SessionId, Subject, TenantId, Usage, Verdict,
};
use crate::scene::{Catalogue, Scene, SceneTool};
use crate::store::{Record, StreamId};
use crate::tools::{ToolContext, native};

/// User text that must not leak into metrics or log lines.
const CANARY: &str = "canary-in-a-coal-mine";

fn names() -> Arc<LabelNames> {
    Arc::new(LabelNames::new(&Catalogue::default(), &["main".to_owned()]))
}

struct EventScript {
    tenant: TenantId,
    subscriber: Subscriber,
    names: Arc<LabelNames>,
    metrics: RunMetrics,
    run: u128,
    seq: u64,
    micros: i64,
}

impl EventScript {
    fn new() -> Self {
        let names = names();
        let metrics = RunMetrics::new(&names).unwrap();
        Self {
            tenant: TenantId::new("acme").unwrap(),
            subscriber: Subscriber::new(names.clone(), Some(metrics.clone())),
            names,
            metrics,
            run: 1,
            seq: 0,
            micros: 0,
        }
    }

    fn envelope<B>(&mut self, run: Option<RunId>, body: B) -> Envelope<B> {
        self.seq += 1;
        Envelope {
            seq: self.seq,
            run,
            session: SessionId::new("s").unwrap(),
            tenant: self.tenant.clone(),
            at: jiff::Timestamp::from_microsecond(self.micros).unwrap(),
            epoch: 0,
            schema: 1,
            body,
        }
    }

    /// Appends an event, `micros` after the previous one.
    fn after(&mut self, micros: i64, event: Event) -> &mut Self {
        self.micros += micros;
        let envelope = self.envelope(Some(RunId(Uuid::from_u128(self.run))), event);
        self.subscriber.observe(&Record::Run(envelope.into()));
        self
    }

    fn tell(&mut self, event: Event) -> &mut Self {
        self.after(0, event)
    }

    fn text(&self) -> String {
        Exposition::of_runs(&self.metrics).text()
    }

    #[track_caller]
    fn shows(&self, line: &str) {
        let text = self.text();
        assert!(text.lines().any(|l| l.strip_prefix("proscenium_") == Some(line)), "{line}\n{text}");
    }
}

fn queued() -> Event {
    let (request, user) = (CANARY.to_owned(), CANARY.to_owned());
    Event::RunQueued(RunQueued::new(request, user, TaskId(Uuid::nil())))
}

fn started() -> Event {
    Event::RunStarted(RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap()))
}

fn planned(steps: &[(u32, &str, &[&str])]) -> Event {
    let steps = steps.iter().map(|(number, scene, tools)| Step {
        step_number: *number,
        scene_name: (*scene).to_owned(),
        purpose: CANARY.to_owned(),
        expected_tools: tools.iter().map(|t| (*t).to_owned()).collect(),
        ..Step::default()
    });
    let plan = Plan {
        needs_execution: true,
        reasoning: CANARY.to_owned(),
        steps: steps.collect(),
        ..Plan::default()
    };
    Event::PlanCreated(PlanMade::new(1, PlanCause::Request, PlanMaker::Deterministic, plan))
}

fn requested(call: u32, tool: &str, effect: Effect) -> RequestedCall {
    RequestedCall {
        provider_id: CANARY.to_owned(),
        ..RequestedCall::new(call, tool, CANARY, json!({CANARY: CANARY}), effect)
    }
}

fn asked(call: u32, subject: Subject) -> Event {
    Event::ModelAsked {
        call,
        subject,
        attempt: 0,
        fallback: false,
        prompt_hash: String::new(),
        reserved: None,
    }
}

fn replied(call: u32, millis: u64, attempts: Vec<Attempt>) -> Event {
    let reply = Reply { text: CANARY.to_owned(), ..Reply::default() };
    Event::ModelReplied { call, reply, usage: Attempt::sum(&attempts), millis, attempts }
}

fn attempt(model: &str, purpose: &str, outcome: &str) -> Attempt {
    let usage =
        Usage { calls: 1, input_tokens: 10, cached_input_tokens: 4, output_tokens: 3, cost_nano_usd: 1_500 };
    let (model, purpose, outcome) = (model.to_owned(), purpose.to_owned(), outcome.to_owned());
    Attempt { model, purpose, outcome, usage, millis: 100, ..Attempt::default() }
}

/// A run whose events contain user text everywhere.
fn wordy(book: &mut EventScript) {
    let fault = || Fault::new("tool.said", CANARY);
    book.after(1_000, queued()).after(1_000, started());
    book.tell(Event::Planning { version: 1, cause: PlanCause::Request });
    book.tell(asked(1, Subject::Plan { version: 1 }));
    book.after(100_200, replied(1, 100, vec![attempt("main", "plan", "ok")]));
    let problem = crate::plan::PlanProblem { code: "x".to_owned(), message: CANARY.to_owned() };
    book.tell(Event::ReplyRejected { call: 1, problems: vec![problem] });
    book.tell(planned(&[(1, CANARY, &[CANARY]), (2, "B", &[])])).tell(Event::StepStarted { step: 1 });
    book.tell(asked(2, Subject::Scene { step: 1 })).after(50_000, replied(2, 50, vec![]));
    let calls = vec![requested(1, CANARY, Effect::Write), requested(2, CANARY, Effect::Read)];
    let question = Some(Question {
        text: CANARY.to_owned(),
        tool: None,
        missing: vec![CANARY.to_owned()],
        known: json!(CANARY),
        choices: Vec::new(),
    });
    book.tell(Event::SceneReplied { step: 1, call: 2, text: CANARY.to_owned(), calls, question, next: None });
    book.tell(Event::ToolStarted { call: 1, attempt: 1 });
    // The intent of a write waits for the disk, which is not tool time.
    book.after(
        9_000,
        Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Unknown { error: fault() },
            millis: 2,
            notes: None,
        },
    );
    book.tell(Event::ToolStarted { call: 2, attempt: 1 });
    let ok = Outcome::Ok { result: json!(CANARY), say: Some(CANARY.to_owned()), whole: None };
    book.after(1_500, Event::ToolCompleted { call: 2, outcome: ok, millis: 1, notes: None });
    book.tell(Event::StepCompleted { step: 1, result: CANARY.to_owned() });
    book.tell(Event::StepFailed { step: 2, status: StepStatus::Failed, error: fault() });
    let verdict = Verdict { reasoning: CANARY.to_owned(), ..Verdict::default() };
    book.tell(Event::Continuation { round: 1, verdict, degraded: false });
    book.tell(asked(3, Subject::Answer));
    let error = Fault::new("llm.status", CANARY);
    let attempts = vec![attempt("main", "answer", "status")];
    book.after(
        100_900,
        Event::ModelFailed { call: 3, error, usage: Attempt::sum(&attempts), millis: 100, attempts },
    );
    book.tell(Event::Answered { text: CANARY.to_owned(), degraded: true, error: None });
    book.tell(Event::CancelRequested { by: CANARY.to_owned(), deadline: false, note: None });
    book.after(500, Event::RunCompleted { status: RunStatus::Partial });
    let failed = SessionEvent::SummaryFailed { error: fault(), usage: Usage::default(), attempts: vec![] };
    let record = book.envelope(None, failed);
    book.subscriber.observe(&Record::Session(record));
}

#[test]
fn run_events_update_the_expected_metrics() {
    let mut book = EventScript::new();
    wordy(&mut book);
    book.shows(r#"requests_total{outcome="partial"} 1"#);
    book.shows(r#"plans_total{kind="scene",outcome="partial"} 1"#);
    book.shows(r#"plan_quality_ratio_sum{kind="scene",outcome="partial"} 0.5"#);
    book.shows(r#"tool_mutations_total{outcome="unknown",scene="other",tool="other"} 1"#);
    book.shows(r#"llm_tokens_total{model="main",purpose="plan",type="input"} 6"#);
    book.shows(r#"llm_tokens_total{model="main",purpose="plan",type="cached_input"} 4"#);
    book.shows(r#"llm_cost_usd_total{model="main",purpose="answer"} 0.0000015"#);
    book.shows(r#"llm_requests_total{model="main",outcome="status",purpose="answer"} 1"#);
    // The time from start to end, minus 100.2 + 50 + 3 (at most, of 9) + 1.5 + 100.9 ms.
    book.shows("orchestration_overhead_seconds_sum 0.0065");
    book.shows(r#"request_duration_seconds_sum{outcome="partial"} 0.2631"#);
    book.shows(r#"runs_in_flight{state="running"} 0"#);
    assert_eq!(book.subscriber.tracked_runs(), 0);
}

#[test]
fn plan_that_asks_the_user_is_not_a_failed_one_unless_a_step_failed() {
    let asks = |script: &mut EventScript, other: StepStatus, run: u128| {
        script.run = run;
        script.tell(queued()).tell(started()).tell(planned(&[(1, "A", &[]), (2, "B", &[])]));
        let error = Fault::new("step.input", "which one?");
        script.tell(Event::StepFailed { step: 1, status: StepStatus::NeedsInput, error: error.clone() });
        script.tell(Event::StepFailed { step: 2, status: other, error });
        script.tell(Event::RunCompleted { status: RunStatus::NeedsInput });
    };
    let mut script = EventScript::new();
    asks(&mut script, StepStatus::Blocked, 1);
    script.shows(r#"plans_total{kind="scene",outcome="needs_input"} 1"#);
    script.shows(r#"requests_total{outcome="needs_input"} 1"#);
    asks(&mut script, StepStatus::Failed, 2);
    script.shows(r#"plans_total{kind="scene",outcome="failed"} 1"#);
    script.shows(r#"plans_total{kind="scene",outcome="needs_input"} 1"#);
    script.shows(r#"requests_by_scope_total{scope="served"} 2"#);
}

#[test]
fn requests_are_counted_by_what_scenes_serve_of_them() {
    let mut script = EventScript::new();
    let of = |needs_execution: bool, unserved: &[&str]| {
        let Event::PlanCreated(mut made) = planned(&[(1, "A", &[])]) else { panic!("a plan") };
        made.plan.needs_execution = needs_execution;
        made.plan.unserved = unserved.iter().map(|part| (*part).to_owned()).collect();
        Event::PlanCreated(made)
    };
    let plans =
        [of(true, &[]), of(true, &["the moon"]), of(false, &["the moon"]), of(false, &[]), of(false, &[])];
    for (run, plan) in plans.into_iter().enumerate() {
        script.run = run as u128 + 1;
        script.tell(queued()).tell(started()).tell(plan);
        script.tell(Event::RunCompleted { status: RunStatus::Completed });
    }
    // Without a plan.
    script.run = 9;
    script.tell(queued()).tell(started()).tell(Event::RunFailed { error: Fault::new("llm.status", "no") });
    for (scope, count) in [("served", 1), ("partly", 1), ("unserved", 1), ("conversation", 2)] {
        script.shows(&format!(r#"requests_by_scope_total{{scope="{scope}"}} {count}"#));
    }
}

#[test]
fn tenants_beyond_the_bound_count_together_and_keep_their_label() {
    let bound = TenantBound { max: 2, first: vec![TenantId::new("acme").unwrap()] };
    let mut script = EventScript::new();
    let names = Arc::new(LabelNames::new(&Catalogue::default(), &[]).with_tenants(bound));
    script.metrics = RunMetrics::new(&names).unwrap();
    script.subscriber = Subscriber::new(names, Some(script.metrics.clone()));
    let none = Event::PlanCreated(PlanMade::new(
        1,
        PlanCause::Request,
        PlanMaker::Deterministic,
        Plan { needs_execution: false, ..Plan::default() },
    ));
    for (run, tenant) in ["first", "second", "first", "third", "acme"].into_iter().enumerate() {
        script.run = run as u128 + 1;
        script.tenant = TenantId::new(tenant).unwrap();
        script.tell(queued()).tell(started()).tell(asked(1, Subject::Plan { version: 1 }));
        script.tell(replied(1, 1, vec![attempt("main", "plan", "ok")])).tell(none.clone());
        script.tell(Event::RunCompleted { status: RunStatus::Completed });
    }
    for (tenant, requests, cost) in
        [("first", 2, "0.000003"), ("other", 2, "0.000003"), ("acme", 1, "0.0000015")]
    {
        script
            .shows(&format!(r#"tenant_requests_total{{outcome="completed",tenant="{tenant}"}} {requests}"#));
        script.shows(&format!(r#"tenant_cost_usd_total{{tenant="{tenant}"}} {cost}"#));
    }
    script.shows(r#"requests_by_scope_total{scope="conversation"} 5"#);
    assert!(!script.text().contains("\"second\"") && !script.text().contains("\"third\""));
}

#[test]
fn scrape_with_five_hundred_scenes_stays_bounded() {
    let names: Vec<String> = (0..500).map(|n| format!("Scene{n}")).collect();
    let scenes: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &["Do"] as &[&str])).collect();
    let catalogue = catalogue(&scenes);
    let mut script = EventScript::new();
    script.names = Arc::new(LabelNames::new(&catalogue, &["main".to_owned()]));
    script.metrics = RunMetrics::new(&script.names).unwrap();
    script.subscriber = Subscriber::new(script.names.clone(), Some(script.metrics.clone()));
    let empty = script.text().len();
    for name in &names {
        script.runs(name, "Do", "main");
    }
    // A scene with one tool that was called has about 40 series.
    let (text, of_scenes) = (script.text(), script.text().len() - empty);
    assert!(text.contains(r#"step_duration_seconds_count{outcome="completed",scene="Scene499"} 1"#));
    assert!(of_scenes / names.len() < 5_000, "{} bytes a scene", of_scenes / names.len());
}

#[test]
fn replanned_plan_counts_a_missing_step() {
    let mut book = EventScript::new();
    book.tell(queued()).tell(started()).tell(planned(&[(1, "A", &[])]));
    book.tell(Event::StepStarted { step: 1 });
    book.tell(Event::StepCompleted { step: 1, result: String::new() });
    let Event::PlanCreated(mut made) = planned(&[(2, "A", &[])]) else { panic!("a plan") };
    (made.version, made.cause) = (2, PlanCause::Continuation);
    book.tell(Event::Replanned(made)).tell(Event::StepStarted { step: 2 });
    book.tell(Event::StepCompleted { step: 2, result: String::new() });
    book.tell(Event::RunCompleted { status: RunStatus::Completed });
    book.shows(r#"replans_total{cause="continuation"} 1"#);
    book.shows(r#"plan_quality_ratio_sum{kind="scene",outcome="completed"} 1.5"#);
    book.shows(r#"plan_quality_ratio_count{kind="scene",outcome="completed"} 2"#);
}

#[test]
fn invented_names_create_no_new_series() {
    let mut book = EventScript::new();
    let mut series = Vec::new();
    for n in 0..1_000_u32 {
        book.run = u128::from(n) + 1;
        let invented = format!("invented-{n}");
        book.tell(queued()).tell(started()).tell(planned(&[(1, &invented, &[&invented])]));
        book.tell(Event::StepStarted { step: 1 }).tell(asked(1, Subject::Scene { step: 1 }));
        book.tell(replied(1, 1, vec![attempt(&invented, &invented, &invented)]));
        let calls = vec![requested(1, &invented, Effect::Write)];
        book.tell(Event::SceneReplied {
            step: 1,
            call: 1,
            text: String::new(),
            calls,
            question: None,
            next: None,
        });
        book.tell(Event::ToolStarted { call: 1, attempt: 1 });
        let error = Fault::new(&invented, &*invented);
        book.tell(Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Failed { error: error.clone() },
            millis: 0,
            notes: None,
        });
        book.tell(Event::StepFailed { step: 1, status: StepStatus::Failed, error: error.clone() });
        book.tell(Event::RunFailed { error });
        if n == 0 {
            series = book.text().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        }
    }
    let after: Vec<String> = book.text().lines().map(|l| l.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(series, after);
    assert!(!book.text().contains("invented"));
    book.shows(r#"llm_requests_total{model="other",outcome="other",purpose="other"} 1000"#);
}

fn catalogue(scenes: &[(&str, &[&str])]) -> Catalogue {
    Catalogue::new(scenes.iter().map(|(name, tools)| {
        let scene = Scene::builder(name).description("Does it.").instructions("Do it.");
        let tools = tools.iter().map(|tool| {
            let work = native(|_: serde_json::Value, _: ToolContext| async { Ok(json!(null)) });
            let schema = json!({"type": "object", "properties": {}});
            SceneTool::dynamic(tool, "Does it.", Effect::Read, schema, work)
        });
        let scene = scene.example("Do it", "Do");
        tools.fold(scene, |scene, tool| scene.tool(tool)).build().unwrap()
    }))
}

impl EventScript {
    /// A run of one step, whose scene calls one tool.
    fn runs(&mut self, scene: &str, tool: &str, model: &str) -> &mut Self {
        self.run += 1;
        self.tell(queued()).tell(started()).tell(planned(&[(1, scene, &[tool])]));
        self.tell(Event::StepStarted { step: 1 }).tell(asked(1, Subject::Scene { step: 1 }));
        self.tell(replied(1, 1, vec![attempt(model, "scene", "ok")]));
        let calls = vec![requested(1, tool, Effect::Read)];
        let text = String::new();
        self.tell(Event::SceneReplied { step: 1, call: 1, text, calls, question: None, next: None });
        self.tell(Event::ToolStarted { call: 1, attempt: 1 });
        let outcome = Outcome::Ok { result: json!(null), say: None, whole: None };
        self.tell(Event::ToolCompleted { call: 1, outcome, millis: 0, notes: None });
        self.tell(Event::StepCompleted { step: 1, result: String::new() });
        self.tell(Event::RunCompleted { status: RunStatus::Completed })
    }

    /// Applies a changed configuration.
    fn extend_names(&mut self, catalogue: &Catalogue, models: &[String]) {
        if let Some(names) = self.names.extended(catalogue, models) {
            self.names = names.into();
            self.subscriber.set_names(self.names.clone());
        }
    }

    /// The values of a label over all series.
    fn values(&self, label: &str) -> BTreeSet<String> {
        let text = self.text();
        let begin = format!("{label}=\"");
        let after = text.lines().filter_map(|line| line.split_once(&begin)).map(|(_, rest)| rest);
        after.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
    }
}

#[test]
fn configuration_change_adds_new_names_and_keeps_old_series() {
    let mut book = EventScript::new();
    let models = |name: &str| [name.to_owned()];
    book.runs("Garden", "Do", "spare").shows(r#"steps_total{outcome="completed",scene="other"} 1"#);
    book.extend_names(&catalogue(&[("Garden", &["Do"])]), &models("spare"));
    book.runs("Garden", "Do", "spare").runs("Garden", "Else", "main");
    book.shows(r#"steps_total{outcome="completed",scene="Garden"} 2"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Garden",tool="Do"} 1"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Garden",tool="other"} 1"#);
    // The initial model, which was removed, and the new one.
    book.shows(r#"llm_requests_total{model="main",outcome="ok",purpose="scene"} 1"#);
    book.shows(r#"llm_requests_total{model="spare",outcome="ok",purpose="scene"} 1"#);
    book.shows(r#"steps_total{outcome="completed",scene="other"} 1"#);

    // A run planned before the change ends in its old series, as do removed names.
    book.run += 1;
    book.tell(queued()).tell(started()).tell(planned(&[(1, "Garden", &["Do"])]));
    book.extend_names(&catalogue(&[("Kiosk", &["Do", "Sell"]), ("Attic", &["Do"])]), &models("third"));
    book.tell(Event::StepStarted { step: 1 }).tell(Event::StepCompleted { step: 1, result: String::new() });
    book.tell(Event::RunCompleted { status: RunStatus::Completed });
    book.runs("Kiosk", "Sell", "third").runs("Garden", "Do", "spare").runs("Attic", "Do", "offline");
    // A tool added to a scene later.
    book.extend_names(&catalogue(&[("Garden", &["Do", "Mow"])]), &models("main"));
    book.runs("Garden", "Mow", "main");
    book.shows(r#"steps_total{outcome="completed",scene="Garden"} 5"#);
    book.shows(r#"steps_total{outcome="completed",scene="Kiosk"} 1"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Kiosk",tool="Sell"} 1"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Garden",tool="Do"} 2"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Garden",tool="Mow"} 1"#);
    book.shows(r#"tool_calls_total{outcome="ok",scene="Attic",tool="Do"} 1"#);
    book.shows(r#"llm_requests_total{model="third",outcome="ok",purpose="scene"} 1"#);
    book.shows(r#"llm_requests_total{model="spare",outcome="ok",purpose="scene"} 2"#);
    book.shows(r#"llm_requests_total{model="offline",outcome="ok",purpose="scene"} 1"#);
    book.shows(r#"runs_in_flight{state="running"} 0"#);
    assert_eq!(book.values("scene"), ["Attic", "Garden", "Kiosk", "other"].map(str::to_owned).into());
}

#[test]
fn configuration_changes_never_exceed_the_series_limit() {
    let mut book = EventScript::new();
    let scenes = MAX_SCENES + 20;
    for n in 0..scenes {
        let invented = format!("Invented{n}");
        let tools: Vec<String> = (0..12).map(|n| format!("Do{n}")).collect();
        let tools: Vec<&str> = tools.iter().map(String::as_str).chain(["Do"]).collect();
        book.extend_names(&catalogue(&[(&invented, &tools)]), std::slice::from_ref(&invented));
        book.runs(&invented, "Do11", &invented);
    }
    let now = &book.names;
    let sizes = [&now.scene_axis, &now.tool_axis, &now.model_axis].map(|axis| axis.len());
    // One extra each for `other`.
    assert_eq!(sizes, [MAX_SCENES, MAX_TOOLS, MAX_MODELS].map(|max| max + 1));
    assert_eq!(book.values("scene").len(), MAX_SCENES + 1);
    // The offline model and the initial model are on the list but were not called.
    assert_eq!(book.values("model").len(), MAX_MODELS - 2 + 1);
    let room = MAX_MODELS - 2;
    book.shows(&format!(
        r#"llm_requests_total{{model="other",outcome="ok",purpose="scene"}} {}"#,
        scenes - room
    ));
    book.shows(r#"steps_total{outcome="completed",scene="Invented499"} 1"#);
    book.shows(r#"steps_total{outcome="completed",scene="other"} 20"#);
    // Tools of scenes that were not listed count as `other` of `other`.
    book.shows(r#"tool_calls_total{outcome="ok",scene="Invented0",tool="Do11"} 1"#);
    assert!(!book.text().contains("Invented500"));
}

#[test]
fn events_without_run_start_are_still_counted() {
    let mut book = EventScript::new();
    book.tell(Event::RunResumed { epoch: 1, restart: false, catalogue: None });
    book.tell(replied(7, 5, vec![attempt("main", "scene", "ok")]));
    let ok = Outcome::Ok { result: json!(1), say: None, whole: None };
    book.tell(Event::ToolCompleted { call: 3, outcome: ok, millis: 4, notes: None });
    book.tell(Event::ToolSkipped { call: 4, first: 3 });
    book.tell(Event::StepCompleted { step: 2, result: String::new() });
    book.tell(Event::RunCompleted { status: RunStatus::Completed });
    book.shows(r#"recovered_runs_total{outcome="completed"} 1"#);
    book.shows(r#"tool_calls_total{outcome="skipped",scene="other",tool="other"} 1"#);
    book.shows(r#"steps_total{outcome="completed",scene="other"} 1"#);
}

#[test]
fn usage_of_older_events_counts_under_reply_model() {
    let mut book = EventScript::new();
    book.tell(asked(1, Subject::Answer));
    let reply = Reply { model: "main".to_owned(), ..Reply::default() };
    let usage = Usage { calls: 1, input_tokens: 9, ..Usage::default() };
    book.tell(Event::ModelReplied { call: 1, reply, usage, millis: 1, attempts: vec![] });
    book.shows(r#"llm_tokens_total{model="main",purpose="answer",type="input"} 9"#);
}

#[test]
fn tracked_unfinished_runs_are_bounded() {
    let mut book = EventScript::new();
    for n in 0..70_000 {
        book.run = n;
        book.tell(queued());
    }
    assert_eq!(book.subscriber.tracked_runs(), 65_536);
    book.shows(r#"runs_in_flight{state="queued"} 65536"#);
    book.subscriber.forget(&StreamId::Run(RunId(Uuid::from_u128(69_999))));
    book.shows(r#"runs_in_flight{state="queued"} 65535"#);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log lines that the wordy run must produce.
const LINES: [&str; 8] = [
    "plan made",
    "tool call ended",
    "the outcome of a write is unknown",
    "step ended",
    "no model replied",
    "run cancellation requested",
    "run ended",
    "no model could summarise the conversation",
];

/// The log of a script, filtered by level, once it has these lines.
fn logged(level: &str, lines: &[&str], script: impl Fn(&mut EventScript)) -> String {
    let log = Log::default();
    let writer = log.clone();
    let config = TelemetryConfig { log: level.to_owned(), ..TelemetryConfig::default() };
    let lines_of = LogLayer::new(LineFormat::Json, move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(config.filter().unwrap()).with(lines_of);
    let listener = tracing::Dispatch::new(subscriber);
    let mut text = String::new();
    // With a single dispatcher, `tracing` decides a callsite's interest by the default dispatcher of the
    // thread that reaches it first: another test's thread could disable it. With two, it asks all
    // dispatchers.
    let _another = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish());
    // Interest that was decided before is rebuilt.
    for _ in 0..100 {
        log.0.lock().unwrap().clear();
        tracing::dispatcher::with_default(&listener, || {
            tracing::callsite::rebuild_interest_cache();
            script(&mut EventScript::new());
        });
        text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        if lines.iter().all(|line| text.contains(*line)) {
            break;
        }
        std::thread::yield_now();
    }
    text
}

#[test]
fn log_lines_contain_outcomes_but_no_user_text() {
    let text = logged("trace", &LINES, wordy);
    for line in LINES {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let about_runs: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &about_runs {
        assert!(line["session"] == "s" && line["tenant"] == "acme", "{line:#}");
        assert!(line["run"].is_string() || line["message"] == LINES[7], "{line:#}");
    }
    assert!(!text.contains(CANARY), "{text}");
}

#[test]
fn lines_of_any_module_have_the_ids_of_their_context_for_any_logged_value() {
    let (session, tenant) = (SessionId::new("s-1").unwrap(), TenantId::new("acme").unwrap());
    for level in ["proscenium::llm=warn", "proscenium::runs=off,proscenium::llm=warn"] {
        let text = logged(level, &["no reply", "no summary"], |book| {
            let run = RunId(Uuid::from_u128(book.run));
            run_context(run, &session, &tenant).in_scope(|| {
                tracing::warn!(target: "proscenium::llm::gateway", run = "own", "no reply");
            });
            session_context(&session, &tenant).in_scope(|| {
                tracing::warn!(target: "proscenium::llm::gateway", "no summary");
            });
        });
        let ids = |line: &str| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            ["run", "session", "tenant"].map(|id| line[id].as_str().map(str::to_owned))
        };
        let own = |text: &str| Some(text.to_owned());
        let found: Vec<_> = text.lines().map(ids).collect();
        assert_eq!(found, [[own("own"), own("s-1"), own("acme")], [None, own("s-1"), own("acme")]], "{text}");
    }
}

#[test]
fn failed_tool_call_is_logged_once_with_code_reason_run_and_session() {
    let text = logged("warn", &["tool call failed"], |book| {
        book.tell(queued()).tell(started());
        book.tell(planned(&[(1, "A", &[])])).tell(Event::StepStarted { step: 1 });
        let calls = vec![requested(1, "Look", Effect::Read), requested(2, "Put", Effect::Write)];
        book.tell(Event::SceneReplied {
            step: 1,
            call: 1,
            text: String::new(),
            calls,
            question: None,
            next: None,
        });
        let message = format!("shop.example answered 503 Service Unavailable: {CANARY}");
        let failed = Outcome::Failed { error: Fault::new("http.status", message) };
        let refused = Outcome::Refused { error: Fault::new("shop.closed", CANARY) };
        for (call, outcome) in [(1, failed), (2, refused)] {
            book.tell(Event::ToolStarted { call, attempt: 1 });
            book.tell(Event::ToolCompleted { call, outcome, millis: 1, notes: None });
        }
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&line["level"], &line["code"]), (&json!("WARN"), &json!("http.status")), "{line:#}");
    assert_eq!(line["reason"], "the back end answered with status 503");
    assert!(line["run"].is_string() && line["session"] == "s" && line["tenant"] == "acme", "{line:#}");
    assert!(!text.contains(CANARY), "{text}");
}

#[test]
fn queue_depth_counts_until_guard_is_dropped() {
    let server_metrics = ServerMetrics::default();
    let (first, second) =
        (server_metrics.enqueue(Component::Scene), server_metrics.enqueue(Component::Scene));
    assert_eq!((server_metrics.depth(Component::Scene), server_metrics.depth(Component::Http)), (2, 0));
    drop((first, second));
    server_metrics.shed(Component::Http);
    assert_eq!((server_metrics.depth(Component::Scene), server_metrics.shed_count(Component::Http)), (0, 1));
}

/// A plan of these steps that requires approval.
fn to_approve(version: u32, cause: PlanCause, steps: &[(u32, &str, &[&str])]) -> PlanMade {
    let Event::PlanCreated(mut made) = planned(steps) else { panic!("a plan") };
    (made.version, made.cause, made.approval) = (version, cause, Some(RequiredApproval::default()));
    made
}

fn put(approval: u32, matter: ApprovalSubject) -> Event {
    Event::ApprovalRequired { approval, matter, needed: RequiredApproval::default() }
}

fn decided(approval: u32, matter: ApprovalSubject, decision: Decision, by: &str) -> Event {
    Event::Decided {
        approval,
        matter,
        decision,
        by: by.to_owned(),
        note: Some(CANARY.to_owned()),
        word: None,
    }
}

#[test]
fn human_edits_and_decision_times_are_counted_across_restarts() {
    const SECOND: i64 = 1_000_000;
    let mut book = EventScript::new();
    book.tell(queued()).tell(started());
    book.tell(Event::PlanCreated(to_approve(1, PlanCause::Request, &[(1, "A", &[]), (2, "B", &["b"])])));
    book.tell(put(1, ApprovalSubject::Plan { version: 1 })).tell(Event::RunWaiting {});
    assert_eq!(book.subscriber.tracked_runs(), 0);
    // Another process takes over the run without having seen its events.
    let journal = |book: &mut EventScript| {
        let run = Some(RunId(Uuid::from_u128(book.run)));
        let made = to_approve(1, PlanCause::Request, &[(1, "A", &[]), (2, "B", &["b"])]);
        [
            queued(),
            started(),
            Event::PlanCreated(made),
            put(1, ApprovalSubject::Plan { version: 1 }),
            Event::RunWaiting {},
        ]
        .map(|event| book.envelope(run, event))
    };
    let events = journal(&mut book);
    book.subscriber.restore(&events);
    // One step is changed, one is new, one is unchanged.
    let edited = to_approve(2, PlanCause::Edit, &[(1, "A", &[]), (2, "C", &[]), (3, "D", &[])]);
    book.after(5 * SECOND, Event::PlanEdited(edited));
    book.tell(put(2, ApprovalSubject::Plan { version: 2 }));
    let words = CANARY.to_owned();
    book.after(SECOND, Event::ModificationAsked { version: 3, by: CANARY.to_owned(), words });
    book.tell(Event::Replanned(to_approve(3, PlanCause::Feedback, &[(1, "A", &[])])));
    book.tell(put(3, ApprovalSubject::Plan { version: 3 })).tell(Event::RunWaiting {});
    let events = {
        let run = Some(RunId(Uuid::from_u128(book.run)));
        let made = to_approve(3, PlanCause::Feedback, &[(1, "A", &[])]);
        [
            queued(),
            started(),
            Event::PlanCreated(made),
            put(3, ApprovalSubject::Plan { version: 3 }),
            Event::RunWaiting {},
        ]
        .map(|event| book.envelope(run, event))
    };
    book.subscriber.restore(&events);
    book.after(
        90 * SECOND,
        decided(3, ApprovalSubject::Plan { version: 3 }, Decision::Yes { hold: false }, CANARY),
    );
    book.tell(put(4, ApprovalSubject::Call { call: 1 })).tell(put(5, ApprovalSubject::Call { call: 2 }));
    book.tell(put(6, ApprovalSubject::Outcome { call: 3 }));
    let new = Decision::Edited { arguments: json!({CANARY: CANARY}), key: CANARY.to_owned() };
    book.after(2 * SECOND, decided(4, ApprovalSubject::Call { call: 1 }, new, CANARY));
    book.after(SECOND, decided(5, ApprovalSubject::Call { call: 2 }, Decision::No, "expiry"));
    book.tell(Event::RunCompleted { status: RunStatus::Partial });
    book.shows(r#"human_edits_total{action="plan"} 1"#);
    book.shows(r#"human_edits_total{action="feedback"} 1"#);
    book.shows(r#"human_edits_total{action="arguments"} 1"#);
    book.shows(r#"human_edited_steps_sum{action="plan"} 2"#);
    book.shows(r#"human_edited_steps_sum{action="feedback"} 2"#);
    book.shows(r#"approval_wait_seconds_sum{action="yes"} 90"#);
    book.shows(r#"approval_wait_seconds_sum{action="edited"} 2"#);
    book.shows(r#"approval_wait_seconds_sum{action="expired"} 3"#);
    assert!(!book.text().contains(CANARY));
    book.metrics.set_waiting(7);
    book.shows(r#"runs_in_flight{state="waiting"} 7"#);
}

#[test]
fn reopened_run_is_one_request_and_counts_new_work() {
    let mut book = EventScript::new();
    let reopened = || Event::RunReopened { by: CANARY.to_owned() };
    let begins = [queued(), started(), planned(&[(1, "A", &[]), (2, "B", &[])])];
    let fails = [
        Event::StepStarted { step: 1 },
        Event::StepCompleted { step: 1, result: CANARY.to_owned() },
        Event::StepFailed { step: 2, status: StepStatus::Failed, error: Fault::new("x", CANARY) },
        Event::RunCompleted { status: RunStatus::Partial },
    ];
    let before: Vec<Event> = begins.into_iter().chain(fails).collect();
    for event in before.clone() {
        book.after(1000, event);
    }
    let counts = [
        r#"requests_total{outcome="partial"} 1"#,
        r#"requests_total{outcome="completed"} 0"#,
        r#"request_duration_seconds_count{outcome="partial"} 1"#,
        "orchestration_overhead_seconds_count 1",
        r#"plans_total{kind="scene",outcome="partial"} 1"#,
        r#"plan_quality_ratio_count{kind="scene",outcome="partial"} 1"#,
    ];
    counts.iter().for_each(|line| book.shows(line));
    // The process that resumes the run restores its tracker.
    let run = Some(RunId(Uuid::from_u128(book.run)));
    let journal: Vec<_> = before.into_iter().map(|event| book.envelope(run, event)).collect();
    book.subscriber.restore(&journal);
    book.after(1000, reopened()).tell(Event::StepStarted { step: 2 });
    book.shows(r#"runs_in_flight{state="running"} 1"#);
    let mut again = to_approve(2, PlanCause::Continuation, &[(3, "C", &[])]);
    again.approval = None;
    book.tell(Event::StepCompleted { step: 2, result: CANARY.to_owned() });
    book.tell(Event::Replanned(again)).tell(Event::StepStarted { step: 3 });
    book.tell(Event::StepCompleted { step: 3, result: CANARY.to_owned() });
    book.tell(Event::RunCompleted { status: RunStatus::Completed });
    counts.iter().for_each(|line| book.shows(line));
    // What the run has done since.
    book.shows(r#"plans_total{kind="scene",outcome="completed"} 1"#);
    book.shows(r#"steps_total{outcome="completed",scene="other"} 3"#);
    book.shows(r#"steps_total{outcome="failed",scene="other"} 1"#);
    book.shows(r#"recovered_runs_total{outcome="completed"} 0"#);
    book.shows(r#"runs_in_flight{state="running"} 0"#);
}

#[test]
fn run_that_was_restored_in_the_middle_of_a_step_logs_what_follows_under_its_ids() {
    let lines = ["tool call ended", "step ended", "run ended"];
    let text = logged("info", &lines, |book| {
        let run = Some(RunId(Uuid::from_u128(book.run)));
        let before = [
            queued(),
            started(),
            planned(&[(1, "A", &["a"])]),
            Event::StepStarted { step: 1 },
            Event::SceneReplied {
                step: 1,
                call: 1,
                text: String::new(),
                calls: vec![requested(1, "a", Effect::Write)],
                question: None,
                next: None,
            },
            put(1, ApprovalSubject::Call { call: 1 }),
            Event::RunWaiting {},
        ];
        let journal: Vec<_> = before.into_iter().map(|event| book.envelope(run, event)).collect();
        book.subscriber.restore(&journal);
        let yes = Decision::Yes { hold: false };
        book.after(1_000_000, decided(1, ApprovalSubject::Call { call: 1 }, yes, CANARY));
        book.tell(Event::ToolStarted { call: 1, attempt: 1 });
        let outcome = Outcome::Ok { result: json!(CANARY), say: None, whole: None };
        book.tell(Event::ToolCompleted { call: 1, outcome, millis: 1, notes: None });
        book.tell(Event::StepCompleted { step: 1, result: CANARY.to_owned() });
        book.tell(Event::RunCompleted { status: RunStatus::Completed });
    });
    let found: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<_> = found.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(messages, lines, "{text}");
    assert!(found.iter().all(|line| line["run"].is_string() && line["tenant"] == "acme"), "{text}");
}

#[test]
fn approval_wait_is_excluded_from_request_time_and_overhead() {
    const DAY: i64 = 24 * 60 * 60 * 1_000_000;
    let mut book = EventScript::new();
    let events = [
        (0, queued()),
        (0, started()),
        (2_000, put(1, ApprovalSubject::Plan { version: 1 })),
        (0, Event::RunWaiting {}),
    ];
    let run = Some(RunId(Uuid::from_u128(book.run)));
    let mut journal = Vec::new();
    for (micros, event) in events {
        book.micros += micros;
        journal.push(book.envelope(run, event));
    }
    // The process that resumes the run restores its tracker.
    book.subscriber.restore(&journal);
    book.after(
        3 * DAY,
        decided(1, ApprovalSubject::Plan { version: 1 }, Decision::Yes { hold: false }, CANARY),
    );
    book.after(1_000, Event::RunCompleted { status: RunStatus::Completed });
    book.shows("orchestration_overhead_seconds_sum 0.003");
    book.shows(r#"request_duration_seconds_sum{outcome="completed"} 0.003"#);
}
