//! What the state machine of a run costs per event, by the number of tool calls, compared with folding the same
//! events. See `benches/README.md`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it prints its measurements")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;
use proscenium::plan::{Plan, Step, TaskId};
use proscenium::run::{
    Effect, Event, Illegal, Outcome, PlanCause, PlanMade, PlanMaker, Reply, RequestedCall, RunId, RunQueued,
    RunStarted, RunState, Settings, Subject, Usage,
};
use serde_json::json;
use uuid::Uuid;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Why a measurement failed.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Numbers of tool calls of a run.
const CALLS: [u32; 3] = [10, 100, 1_000];

/// Calls of one reply where calls come in several replies.
const BATCH: u32 = 10;

/// How long each case is measured.
const SLICE: Duration = Duration::from_millis(600);

fn main() -> ExitCode {
    // `cargo test` runs benchmarks with this argument.
    let slice = if std::env::args().any(|arg| arg == "--bench") { SLICE } else { Duration::ZERO };
    match measure(slice) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(slice: Duration) -> Result<(), Failure> {
    println!("| replies | calls | events | decide and fold, ns/event | fold only, ns/event | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (name, of) in [("10 calls each", Some(BATCH)), ("one with all calls", None)] {
        for calls in CALLS {
            let events = journal(calls, of.unwrap_or(calls))?;
            let decided = time(slice, events.len(), || decide(&events))?;
            let folded = time(slice, events.len(), || {
                black_box(RunState::from_events(run(), &events));
                Ok(())
            })?;
            let ratio = decided / folded;
            println!("| {name} | {calls} | {} | {decided:.0} | {folded:.0} | {ratio:.2} |", events.len());
        }
    }
    Ok(())
}

/// Nanoseconds per event, the least of all repetitions.
fn time(
    slice: Duration,
    events: usize,
    mut work: impl FnMut() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    loop {
        let once = Instant::now();
        work()?;
        least = least.min(once.elapsed());
        if begin.elapsed() >= slice {
            return Ok(least.as_nanos() as f64 / events as f64);
        }
    }
}

/// As a driver does: what is due is computed once per event, and the event is checked against it.
fn decide(events: &[Event]) -> Result<(), Failure> {
    let mut state = RunState::new(run());
    for event in events {
        black_box(state.next());
        state.apply(event).map_err(|illegal: Illegal| illegal.to_string())?;
    }
    Ok(())
}

fn run() -> RunId {
    RunId(Uuid::from_u128(1))
}

/// The events of a run whose only step makes `calls` reads, `batch` per reply.
fn journal(calls: u32, batch: u32) -> Result<Vec<Event>, Failure> {
    let plan = Plan {
        needs_execution: true,
        steps: vec![Step { step_number: 1, scene_name: "Weather".to_owned(), ..Step::default() }],
        ..Plan::default()
    };
    let settings = Settings { max_rounds: calls + 2, max_calls: calls + 1, ..Settings::default() };
    let mut events = vec![
        Event::RunQueued(RunQueued::new("What is the weather?", "local", TaskId(Uuid::from_u128(2)))),
        Event::RunStarted(RunStarted {
            settings,
            ..RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse()?)
        }),
        Event::Planning { version: 1, cause: PlanCause::Request },
    ];
    events.extend(asked(1, Subject::Plan { version: 1 }));
    let made = PlanMade::new(1, PlanCause::Request, PlanMaker::Deterministic, plan);
    events.extend([Event::PlanCreated(made), Event::StepStarted { step: 1 }]);
    let mut ask = 1;
    for first in (1..=calls).step_by(batch as usize) {
        ask += 1;
        events.extend(asked(ask, Subject::Scene { step: 1 }));
        let numbers = first..(first + batch).min(calls + 1);
        let requested = numbers.clone().map(request).collect();
        events.push(Event::SceneReplied {
            step: 1,
            call: ask,
            text: String::new(),
            calls: requested,
            question: None,
            next: None,
        });
        events.extend(numbers.clone().map(|call| Event::ToolStarted { call, attempt: 1 }));
        let outcome = Outcome::Ok { result: json!({"max_c": 21}), say: None, whole: None };
        events.extend(numbers.map(|call| Event::ToolCompleted {
            call,
            outcome: outcome.clone(),
            millis: 1,
            notes: None,
        }));
    }
    Ok(events)
}

/// A question and its reply.
fn asked(call: u32, subject: Subject) -> [Event; 2] {
    let prompt_hash = String::new();
    [
        Event::ModelAsked { call, subject, attempt: 0, fallback: false, prompt_hash, reserved: None },
        Event::ModelReplied {
            call,
            reply: Reply::default(),
            usage: Usage::default(),
            millis: 1,
            attempts: Vec::new(),
        },
    ]
}

fn request(call: u32) -> RequestedCall {
    RequestedCall {
        provider_id: format!("call_{call}"),
        ..RequestedCall::new(
            call,
            "WeatherForecast_Get",
            format!("Weather WeatherForecast_Get {call}"),
            json!({"city": call}),
            Effect::Read,
        )
    }
}
