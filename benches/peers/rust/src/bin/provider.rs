//! The provider that all subjects ask: one thread, prepared replies, at once. `--record` keeps what it is asked and replies.
//! It receives traces as well, which it drops.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mimalloc::MiMalloc;
use peers::Failure;
use peers::flow::{self, ANSWER};
use peers::instant::{self, PreparedReply, calls, words};
use peers::orders::{ended, listen, runtime};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Requests that it answered.
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Exports of traces that it received.
static EXPORTS: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    ended(serve())
}

/// Serves; each order is answered with the numbers of requests and of exports of traces so far, and with the bodies of requests
/// and replies if it keeps them.
fn serve() -> Result<(), Failure> {
    let record = std::env::args().any(|argument| argument == "--record");
    let recorded: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let replies = Replies::new();
    let keep = recorded.clone();
    let reply = move |body: &str| {
        ANSWERED.fetch_add(1, Relaxed);
        let reply = replies.to(body);
        if record {
            let text = String::from_utf8_lossy(reply);
            let said = text.split_once("\r\n\r\n").map_or("", |(_, said)| said);
            keep.lock().unwrap_or_else(PoisonError::into_inner).push((body.to_owned(), said.to_owned()));
        }
        reply.clone()
    };
    let taken: PreparedReply = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".as_slice().into();
    let receive = move |_: &str| {
        EXPORTS.fetch_add(1, Relaxed);
        taken.clone()
    };
    let runtime = runtime(Some(1))?;
    let address = runtime.block_on(instant::serve(Duration::ZERO, reply))?.to_string();
    let receiver = runtime.block_on(instant::serve(Duration::ZERO, receive))?.to_string();
    listen(&json!({"address": address, "receiver": receiver}), |_| {
        let recorded = std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));
        let (bodies, replies): (Vec<String>, Vec<String>) = recorded.into_iter().unzip();
        Ok(json!({"answered": ANSWERED.load(Relaxed), "exports": EXPORTS.load(Relaxed),
            "bodies": bodies, "replies": replies}))
    })
}

/// All replies, as bytes on the wire.
struct Replies {
    /// The plan of a framework: by a function of one of these names, or as the reply's format.
    plan_calls: Vec<(&'static str, PreparedReply)>,
    plan_words: PreparedReply,
    /// The plan of this server, with prepared calls and without.
    plan_prepared: PreparedReply,
    plan_steps: PreparedReply,
    tools: PreparedReply,
    answer: PreparedReply,
    /// The check of this server, with the answer and without.
    check: PreparedReply,
    check_apart: PreparedReply,
}

impl Replies {
    fn new() -> Self {
        let plan = json!(flow::plan());
        let by_function = |name: &'static str| (name, calls(&[(name, plan.clone())]));
        Self {
            plan_calls: ["submit", "final_result", "Plan"].map(by_function).into(),
            plan_words: words(&plan.to_string()),
            plan_prepared: calls(&[("CreateExecutionPlan", own_plan(true))]),
            plan_steps: calls(&[("CreateExecutionPlan", own_plan(false))]),
            tools: calls(&[("GetPerson", person()), ("FindPeople", people())]),
            answer: words(ANSWER),
            check: calls(&[("CheckContinuation", verdict(Some(ANSWER)))]),
            check_apart: calls(&[("CheckContinuation", verdict(None))]),
        }
    }

    /// The reply to a body, chosen by what only one kind of question contains.
    fn to(&self, body: &str) -> &PreparedReply {
        if body.contains("tool_call_id") {
            &self.answer
        } else if body.contains("CreateExecutionPlan") {
            if body.contains("prepared_calls") { &self.plan_prepared } else { &self.plan_steps }
        } else if body.contains("CheckContinuation") {
            // The name of the model tells that the answer is asked for separately.
            if body.contains("\"instant-apart\"") { &self.check_apart } else { &self.check }
        } else if body.contains("You plan how") {
            if body.contains("json_schema") {
                return &self.plan_words;
            }
            let named = self.plan_calls.iter().find(|(name, _)| body.contains(&format!("\"{name}\"")));
            named.map_or(&self.plan_words, |(_, reply)| reply)
        } else if body.contains("\"tools\":") {
            &self.tools
        } else {
            &self.answer
        }
    }
}

fn person() -> Value {
    json!({"username": "mrossi"})
}

fn people() -> Value {
    json!({"name": "Ferrari"})
}

/// A plan of one step, whose scene has both tools.
fn own_plan(prepared: bool) -> Value {
    let mut step = json!({"step_number": 1, "scene_name": "People", "purpose": "Tell who mrossi is and who is called Ferrari",
        "expected_tools": ["GetPerson", "FindPeople"], "depends_on_step": null});
    if prepared {
        step["prepared_calls"] = json!([
            {"tool": "GetPerson", "arguments": person().to_string()},
            {"tool": "FindPeople", "arguments": people().to_string()},
        ]);
    }
    json!({"needs_execution": true, "reasoning": "Two look-ups, which need nothing of each other", "steps": [step]})
}

fn verdict(answer: Option<&str>) -> Value {
    json!({"should_continue": false, "can_answer_now": true, "reasoning": "Both people were found.",
        "missing_information": null, "answer": answer})
}
