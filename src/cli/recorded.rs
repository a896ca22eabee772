//! Recorded runs for the tests of what is shown: envelopes written by hand.

use proscenium::plan::{DependsOn, Plan, PlanProblem, Step, StepStatus, TaskId};
use proscenium::run::{
    ApprovalSubject, Decision, Effect, Envelope, Event, Fault, Outcome, PlanCause, PlanMade, PlanMaker,
    Question, Repeat, Reply, RequestedCall, RequiredApproval, RunId, RunQueued, RunStarted, RunStatus,
    SCHEMA, SessionId, Settings, Subject, TenantId, Undo, Usage, Verdict,
};
use proscenium::{Answer, AnswerUsage, Metadata, Timings};
use serde_json::{Value, json};
use uuid::Uuid;

pub fn run_id() -> RunId {
    RunId(Uuid::from_u128(0x0197_6c8e_0000_7000_8000_0000_0000_0001))
}

pub fn task_id() -> TaskId {
    TaskId(Uuid::from_u128(0x0197_6c8e_0000_7000_8000_0000_0000_0002))
}

pub fn session() -> SessionId {
    SessionId::new("s-1").unwrap()
}

/// The events as a journal, a quarter of a second apart.
pub fn journal(events: Vec<Event>) -> Vec<Envelope<Event>> {
    let start: jiff::Timestamp = "2026-05-04T07:00:00Z".parse().unwrap();
    (0u32..)
        .zip(events)
        .map(|(index, body)| Envelope {
            seq: u64::from(index) + 1,
            run: Some(run_id()),
            session: session(),
            tenant: TenantId::new("local").unwrap(),
            at: start + jiff::SignedDuration::from_millis(i64::from(index) * 250),
            epoch: 1,
            schema: SCHEMA,
            body,
        })
        .collect()
}

pub fn step(number: u32, scene: &str, purpose: &str, tools: &[&str], after: &[u32]) -> Step {
    Step {
        step_number: number,
        scene_name: scene.to_owned(),
        purpose: purpose.to_owned(),
        expected_tools: tools.iter().map(|t| (*t).to_owned()).collect(),
        depends_on_step: DependsOn::from_iter(after.iter().copied()),
        ..Step::default()
    }
}

pub fn made(version: u32, maker: PlanMaker, reasoning: &str, steps: Vec<Step>) -> PlanMade {
    let plan = Plan {
        needs_execution: !steps.is_empty(),
        reasoning: reasoning.to_owned(),
        steps,
        ..Plan::default()
    };
    let cause = if version == 1 { PlanCause::Request } else { PlanCause::Continuation };
    PlanMade::new(version, cause, maker, plan)
}

pub fn queued(request: &str) -> Vec<Event> {
    queued_with(request, Settings::default())
}

pub fn queued_with(request: &str, settings: Settings) -> Vec<Event> {
    vec![
        Event::RunQueued(RunQueued::new(request, "keysersoze", task_id())),
        Event::RunStarted(RunStarted {
            language: Some("it".to_owned()),
            settings,
            ..RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap())
        }),
        Event::Planning { version: 1, cause: PlanCause::Request },
    ]
}

pub fn asked(call: u32, subject: Subject, fallback: bool) -> Event {
    Event::ModelAsked { call, subject, attempt: 0, fallback, prompt_hash: String::new(), reserved: None }
}

pub fn replied(call: u32) -> Event {
    let usage = Usage {
        calls: 1,
        input_tokens: 400,
        cached_input_tokens: 100,
        output_tokens: 30,
        cost_nano_usd: 200_000,
    };
    Event::ModelReplied { call, reply: Reply::default(), usage, millis: 20, attempts: vec![] }
}

/// A scene's model is asked and replies, for nothing.
fn scene_asked(ask: u32, step: u32) -> [Event; 2] {
    let reply = Event::ModelReplied {
        call: ask,
        reply: Reply::default(),
        usage: Usage::default(),
        millis: 20,
        attempts: vec![],
    };
    [asked(ask, Subject::Scene { step }, false), reply]
}

/// A requested call of a tool, with no policy, approval or undo.
fn requested(call: u32, tool: &str, arguments: Value, effect: Effect) -> RequestedCall {
    RequestedCall::new(call, tool, format!("{tool} {arguments}"), arguments, effect)
}

/// A scene's model, by question `ask`, wants the tool call `call`.
pub fn calls(ask: u32, step: u32, call: u32, tool: &str, arguments: Value, effect: Effect) -> Vec<Event> {
    let reply = Event::SceneReplied {
        step,
        call: ask,
        text: String::new(),
        calls: vec![RequestedCall {
            provider_id: "call_0".to_owned(),
            ..requested(call, tool, arguments, effect)
        }],
        question: None,
        next: None,
    };
    scene_asked(ask, step).into_iter().chain([reply]).collect()
}

pub fn done(call: u32, result: Value) -> Event {
    Event::ToolCompleted {
        call,
        outcome: Outcome::Ok { result, say: None, whole: None },
        millis: 12,
        notes: None,
    }
}

fn completed(step: u32, result: &str) -> Event {
    Event::StepCompleted { step, result: result.to_owned() }
}

fn verdict(round: u32, verdict: Verdict) -> Event {
    Event::Continuation { round, verdict, degraded: false }
}

fn end(text: &str, status: RunStatus) -> Vec<Event> {
    vec![
        Event::Answered { text: text.to_owned(), degraded: false, error: None },
        Event::RunCompleted { status },
    ]
}

/// The weather, then three days off, with an equal call skipped and a re-plan.
pub fn two_scenes() -> Vec<Envelope<Event>> {
    let mut events = queued("Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie");
    events.extend([
        asked(1, Subject::Plan { version: 1 }, false),
        replied(1),
        Event::PlanCreated(made(
            1,
            PlanMaker::Deterministic,
            "User needs weather\nand vacation request",
            vec![
                step(
                    1,
                    "Weather",
                    "Get weather information for Milan",
                    &["WeatherForecast_Get", "AddCity"],
                    &[],
                ),
                step(2, "VacationManagement", "Submit vacation request", &["MakeRequest"], &[1]),
            ],
        )),
        Event::StepStarted { step: 1 },
    ]);
    events.extend(calls(2, 1, 1, "WeatherForecast_Get", json!({"city": "Milan"}), Effect::Read));
    events.extend([
        Event::ToolStarted { call: 1, attempt: 1 },
        done(1, json!({"city": "Milan", "min_c": 12, "max_c": 24, "source": "bundled \u{1b}[31mclimate\u{1b}[0m values"})),
    ]);
    events.extend(calls(3, 1, 2, "WeatherForecast_Get", json!({"city": "Milan"}), Effect::Read));
    events.extend([
        Event::ToolSkipped { call: 2, first: 1 },
        completed(1, "A Milano da 12 a 24 °C."),
        Event::StepStarted { step: 2 },
    ]);
    events.extend(vacation_and_check());
    events.extend(later_plan());
    events.extend(end("A Milano da 12 a 24 °C. Ferie chieste dal 15 al 17 giugno.", RunStatus::Completed));
    journal(events)
}

/// The second step of [`two_scenes`] and the check that asks for more.
fn vacation_and_check() -> Vec<Event> {
    let mut events = Vec::new();
    let dates = json!({"from": "2026-06-15", "to": "2026-06-17"});
    events.extend(calls(4, 2, 3, "MakeRequest", dates, Effect::Write));
    events.extend([
        Event::ToolStarted { call: 3, attempt: 1 },
        done(3, json!({"id": 7, "days": 3})),
        completed(2, "Richiesta 7 inviata."),
        asked(5, Subject::Continuation { round: 1 }, false),
        replied(5),
        verdict(
            1,
            Verdict {
                should_continue: true,
                missing_information: Some("who approves it".to_owned()),
                ..Verdict::default()
            },
        ),
    ]);
    events
}

/// The second plan of [`two_scenes`].
fn later_plan() -> Vec<Event> {
    vec![
        Event::Planning { version: 2, cause: PlanCause::Continuation },
        Event::Replanned(made(
            2,
            PlanMaker::Deterministic,
            "Approvers are missing",
            vec![step(3, "VacationManagement", "Find the approvers", &["GetApprovers"], &[2])],
        )),
        Event::StepStarted { step: 3 },
        completed(3, "Approva Verbal Kint."),
        verdict(
            2,
            Verdict {
                can_answer_now: true,
                reasoning: "Everything was done".to_owned(),
                ..Verdict::default()
            },
        ),
    ]
}

/// A tool that fails, and a step that waits for it in vain.
pub fn failed_step() -> Vec<Envelope<Event>> {
    let mut events = queued("Meteo a Milano, poi ferie");
    events.extend([
        Event::PlanCreated(made(
            1,
            PlanMaker::Deterministic,
            "",
            vec![step(1, "Weather", "Weather", &[], &[]), step(2, "VacationManagement", "Ask", &[], &[1])],
        )),
        Event::StepStarted { step: 1 },
    ]);
    let arguments = json!({"city": "Milan", "note": "x".repeat(300)});
    events.extend(calls(1, 1, 1, "WeatherForecast_Get", arguments, Effect::Read));
    events.extend([
        Event::ToolStarted { call: 1, attempt: 1 },
        Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Failed { error: Fault::new("tool.timeout", "no reply within 5000 ms") },
            millis: 5000,
            notes: None,
        },
        asked(2, Subject::Scene { step: 1 }, false),
        Event::ModelFailed {
            call: 2,
            error: Fault::new("llm.unavailable", "connection refused"),
            usage: Usage::default(),
            millis: 3,
            attempts: vec![],
        },
        Event::StepFailed {
            step: 1,
            status: StepStatus::Failed,
            error: Fault::new("step.model", "the scene's model gave no reply"),
        },
        Event::StepFailed {
            step: 2,
            status: StepStatus::Blocked,
            error: Fault::new("step.blocked", "step 1 did not complete"),
        },
        Event::Continuation { round: 1, verdict: Verdict::default(), degraded: true },
        Event::Answered { text: "Nothing was done.".to_owned(), degraded: true, error: None },
        Event::RunFailed { error: Fault::new("run.nothing_done", "no step completed") },
    ]);
    journal(events)
}

/// Dates that only the user can say.
pub fn needs_input() -> Vec<Envelope<Event>> {
    let mut events = queued("Ask for three days off");
    events.extend([
        Event::PlanCreated(made(
            1,
            PlanMaker::Deterministic,
            "Vacation",
            vec![step(1, "VacationManagement", "Ask for three days off", &["MakeRequest"], &[])],
        )),
        Event::StepStarted { step: 1 },
    ]);
    events.extend(scene_asked(1, 1));
    events.extend([
        Event::SceneReplied {
            step: 1,
            call: 1,
            text: String::new(),
            calls: Vec::new(),
            question: Some(Question {
                text: "From which day to which day?".to_owned(),
                tool: Some("MakeRequest".to_owned()),
                missing: vec!["from".to_owned(), "to".to_owned()],
                known: Value::Null,
                choices: Vec::new(),
            }),
            next: None,
        },
        Event::StepFailed {
            step: 1,
            status: StepStatus::NeedsInput,
            error: Fault::new("step.needs_input", "From which day to which day?"),
        },
        verdict(1, Verdict { missing_information: Some("the dates".to_owned()), ..Verdict::default() }),
    ]);
    events.extend(end("From which day to which day?", RunStatus::NeedsInput));
    journal(events)
}

/// A plan by the offline model after replies that could not be used.
pub fn degraded_plan() -> Vec<Envelope<Event>> {
    let settings = Settings { max_retries: 0, ..Settings::default() };
    let mut events = queued_with("Che tempo fa a Milano?", settings);
    events.extend([
        asked(1, Subject::Plan { version: 1 }, false),
        replied(1),
        Event::ReplyRejected {
            call: 1,
            problems: vec![
                PlanProblem::new(
                    "plan.unknown_scene",
                    "step 1: there is no scene \"Wether\"; scenes are Weather",
                ),
                PlanProblem::new("plan.circle", "steps 1 and 2 wait for each other"),
            ],
        },
        Event::ModelAsked {
            call: 2,
            subject: Subject::Plan { version: 1 },
            attempt: 1,
            fallback: true,
            prompt_hash: String::new(),
            reserved: None,
        },
        replied(2),
        Event::PlanCreated(made(
            1,
            PlanMaker::Fallback,
            "",
            vec![step(1, "Weather", "Weather in Milan", &[], &[])],
        )),
        Event::StepStarted { step: 1 },
        completed(1, "Sunny."),
        verdict(1, Verdict { can_answer_now: true, ..Verdict::default() }),
    ]);
    events.extend(end("Sunny.", RunStatus::Completed));
    journal(events)
}

/// An approval that is required.
fn needed(hash: &str, why: &str) -> RequiredApproval {
    RequiredApproval { hash: hash.to_owned(), why: vec![why.to_owned()], ..RequiredApproval::default() }
}

fn put(approval: u32, matter: ApprovalSubject, needed: RequiredApproval) -> [Event; 2] {
    [Event::ApprovalRequired { approval, matter, needed }, Event::RunWaiting {}]
}

pub fn decided(approval: u32, matter: ApprovalSubject, decision: Decision, note: Option<&str>) -> Event {
    Event::Decided {
        approval,
        matter,
        decision,
        by: "lucia".to_owned(),
        note: note.map(str::to_owned),
        word: None,
    }
}

const WRITES: &str = "step 1: MakeRequest of VacationManagement writes";

fn vacation(purpose: &str) -> PlanMade {
    let steps = vec![step(1, "VacationManagement", purpose, &["MakeRequest"], &[])];
    made(1, PlanMaker::Deterministic, "Vacation", steps)
}

/// A plan that waits for a yes.
pub fn plan_waits() -> Vec<Envelope<Event>> {
    let mut events = queued("Ask for three days off");
    let needed = needed("hash-1", WRITES);
    let made = PlanMade { approval: Some(needed.clone()), ..vacation("Ask for three days off") };
    events.push(Event::PlanCreated(made));
    events.extend(put(1, ApprovalSubject::Plan { version: 1 }, needed));
    journal(events)
}

/// The events after a yes to a call: it is made, and the run completes.
pub fn carried_out(step: u32, call: u32) -> Vec<Event> {
    let mut events = vec![
        Event::ToolStarted { call, attempt: 1 },
        done(call, json!({"request_id": 7})),
        completed(step, "Request 7 was made."),
        verdict(1, Verdict { can_answer_now: true, ..Verdict::default() }),
    ];
    events.extend(end("Request 7 was made.", RunStatus::Completed));
    events
}

fn three_days() -> Value {
    json!({"from": "2026-06-15", "to": "2026-06-17"})
}

/// A call that waits for a yes.
pub fn call_waits() -> Vec<Envelope<Event>> {
    let mut events = queued("Ask for three days off");
    events.extend([Event::PlanCreated(vacation("Ask for three days off")), Event::StepStarted { step: 1 }]);
    let needed = needed("hash-2", "MakeRequest of VacationManagement writes");
    for mut event in calls(1, 1, 1, "MakeRequest", three_days(), Effect::Write) {
        if let Event::SceneReplied { calls, .. } = &mut event {
            calls.iter_mut().for_each(|call| call.approval = Some(needed.clone()));
        }
        events.push(event);
    }
    events.extend(put(1, ApprovalSubject::Call { call: 1 }, needed));
    journal(events)
}

/// A plan that a person changed, and another approved.
pub fn changed_and_approved() -> Vec<Envelope<Event>> {
    let mut events: Vec<Event> = plan_waits().into_iter().map(|envelope| envelope.body).collect();
    let needed = needed("hash-3", WRITES);
    events.push(Event::PlanEdited(PlanMade {
        version: 2,
        cause: PlanCause::Edit,
        maker: PlanMaker::Person,
        approval: Some(needed.clone()),
        by: Some("lucia".to_owned()),
        why: Some("two are enough".to_owned()),
        ..vacation("Ask for two days off")
    }));
    let matter = ApprovalSubject::Plan { version: 2 };
    events.extend(put(2, matter, needed));
    events.push(decided(2, matter, Decision::Yes { hold: false }, Some("less is fine")));
    events.push(Event::StepStarted { step: 1 });
    events.extend(calls(1, 1, 1, "MakeRequest", three_days(), Effect::Write));
    events.extend(carried_out(1, 1));
    journal(events)
}

/// A plan that a person has changed twice, and that waits.
pub fn changed_twice() -> Vec<Envelope<Event>> {
    let mut events: Vec<Event> = plan_waits().into_iter().map(|envelope| envelope.body).collect();
    for (version, purpose, why) in
        [(2, "Ask for two days off", "two are enough"), (3, "Ask for one day off", "one will do")]
    {
        let needed = needed(&format!("hash-{version}"), WRITES);
        events.push(Event::PlanEdited(PlanMade {
            version,
            cause: PlanCause::Edit,
            maker: PlanMaker::Person,
            approval: Some(needed.clone()),
            by: Some("lucia".to_owned()),
            why: Some(why.to_owned()),
            ..vacation(purpose)
        }));
        events.extend(put(version, ApprovalSubject::Plan { version }, needed));
    }
    journal(events)
}

/// A write that was done, and undone when the run was cancelled.
pub fn undone() -> Vec<Envelope<Event>> {
    let mut events = queued("Ask for three days off");
    events.extend([Event::PlanCreated(vacation("Ask for three days off")), Event::StepStarted { step: 1 }]);
    let undo = Undo {
        tool: "CancelRequest".to_owned(),
        arguments: [("request_id".to_owned(), json!("/result/request_id"))].into(),
        repeat: Repeat::Never,
        required: Vec::new(),
        identity: Vec::new(),
    };
    for mut event in calls(1, 1, 1, "MakeRequest", three_days(), Effect::Write) {
        if let Event::SceneReplied { calls, .. } = &mut event {
            calls.iter_mut().for_each(|call| call.undo = Some(undo.clone()));
        }
        events.push(event);
    }
    let undoing = requested(2, "CancelRequest", json!({"request_id": 7}), Effect::Write);
    events.extend([
        Event::ToolStarted { call: 1, attempt: 1 },
        done(1, json!({"request_id": 7})),
        Event::CancelRequested { by: "lucia".to_owned(), deadline: false, note: None },
        Event::Compensating { undoes: 1, requested: undoing },
        Event::ToolStarted { call: 2, attempt: 1 },
        done(2, json!({"request_id": 7})),
        Event::RunCancelled { by: "lucia".to_owned() },
    ]);
    journal(events)
}

/// A document with the given end.
pub fn answer(status: RunStatus, words: &str) -> Answer {
    Answer {
        run_id: run_id(),
        session_id: session(),
        task_id: task_id(),
        status,
        answer: words.to_owned(),
        plan: None,
        steps: Vec::new(),
        writes: Vec::new(),
        approvals: Vec::new(),
        metadata: Metadata::default(),
        usage: AnswerUsage::new(
            Usage {
                calls: 5,
                input_tokens: 2100,
                cached_input_tokens: 400,
                output_tokens: 180,
                cost_nano_usd: 1_200_000,
            },
            1_200_000,
        ),
        timings: Timings { total_ms: 1234.0, overhead_ms: 3.4 },
        error: None,
    }
}

#[test]
fn the_recorded_runs_are_runs() {
    for journal in
        [two_scenes(), failed_step(), needs_input(), degraded_plan(), changed_and_approved(), undone()]
    {
        let state = proscenium::fold(run_id(), &journal);
        assert!(state.status.is_terminal());
    }
    for journal in [plan_waits(), call_waits()] {
        assert_eq!(proscenium::fold(run_id(), &journal).status, RunStatus::Waiting);
    }
}
