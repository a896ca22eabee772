//! A provider that replies at once, or after a while: it inspects the request and sends prepared bytes.

#[path = "../shared/instant.rs"]
mod instant;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use instant::{PreparedReply, calls, words};
use serde_json::{Value, json};

use super::Failure;
use super::flow::BOOK;

/// The employee whose balance is read.
pub const EMPLOYEE: u64 = 4711;

/// Bodies in the order of arrival, if they are recorded.
pub type Record = Arc<Mutex<Vec<String>>>;

/// Serves until its runtime ends, on a free port. Each reply takes `latency`.
pub async fn start(record: Option<Record>, latency: Duration) -> Result<SocketAddr, Failure> {
    let replies = Replies::new();
    let reply = move |body: &str| {
        if let Some(record) = &record {
            record.lock().unwrap_or_else(PoisonError::into_inner).push(body.to_owned());
        }
        replies.to(body).clone()
    };
    Ok(instant::serve(latency, reply).await?)
}

/// All replies, as bytes on the wire.
struct Replies {
    plan: PreparedReply,
    plan_booking: PreparedReply,
    plan_prepared: PreparedReply,
    forecast: PreparedReply,
    balance: PreparedReply,
    booking: PreparedReply,
    weather: PreparedReply,
    leave: PreparedReply,
    check: PreparedReply,
}

impl Replies {
    fn new() -> Self {
        Self {
            plan: plan("Tell the balance of leave of the employee", "GetBalance", false),
            plan_booking: plan("Book the employee's leave from 2030-06-15 to 2030-06-17", "BookLeave", false),
            plan_prepared: plan("Tell the balance of leave of the employee", "GetBalance", true),
            forecast: calls(&[("GetForecast", json!({"city": "Milan"}))]),
            balance: calls(&[("GetBalance", json!({"employee": EMPLOYEE}))]),
            booking: calls(&[("BookLeave", json!({"from": "2030-06-15", "to": "2030-06-17"}))]),
            weather: words("In Milan it is 11 to 24 °C today (station 7)."),
            leave: words("That are 3 of the 12 days of leave."),
            check: calls(&[(
                "CheckContinuation",
                json!({"should_continue": false, "can_answer_now": true,
                    "reasoning": "Both scenes have done their step.", "missing_information": null,
                    "answer": "In Milan it is 11 to 24 °C today (station 7). That are 3 of the 12 days of leave."}),
            )]),
        }
    }

    /// The reply to a body, chosen by what only one kind of question contains.
    fn to(&self, body: &str) -> &PreparedReply {
        if body.contains("You are the scene Weather") {
            if body.contains("tool_call_id") { &self.weather } else { &self.forecast }
        } else if body.contains("You are the scene Leave") {
            match (body.contains("tool_call_id"), body.contains(BOOK)) {
                (true, _) => &self.leave,
                (false, true) => &self.booking,
                (false, false) => &self.balance,
            }
        } else if body.contains("CreateExecutionPlan") {
            match (body.contains("prepared_calls"), body.contains(BOOK)) {
                (true, _) => &self.plan_prepared,
                (false, true) => &self.plan_booking,
                (false, false) => &self.plan,
            }
        } else {
            &self.check
        }
    }
}

fn plan(purpose: &str, tool: &str, prepared: bool) -> PreparedReply {
    let mut plan = json!({"needs_execution": true, "reasoning": "Two scenes, which need nothing of each other", "steps": [
        {"step_number": 1, "scene_name": "Weather", "purpose": "Tell the weather in Milan today",
         "expected_tools": ["GetForecast"], "depends_on_step": null},
        {"step_number": 2, "scene_name": "Leave", "purpose": purpose,
         "expected_tools": [tool], "depends_on_step": null}]});
    if prepared {
        let calls =
            |tool: &str, arguments: Value| json!([{"tool": tool, "arguments": arguments.to_string()}]);
        plan["steps"][0]["prepared_calls"] = calls("GetForecast", json!({"city": "Milan"}));
        plan["steps"][1]["prepared_calls"] = calls("GetBalance", json!({"employee": EMPLOYEE}));
    }
    calls(&[("CreateExecutionPlan", plan)])
}
