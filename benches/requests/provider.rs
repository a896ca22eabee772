//! A provider that replies at once, or after a while: it inspects the request and sends prepared bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::flow::BOOK;
use super::{Failure, fail};

/// The employee whose balance is read.
pub const EMPLOYEE: u64 = 4711;

/// Longer requests do not belong to the benchmark.
const MOST_BYTES: usize = 1 << 20;

/// Bodies in the order of arrival, if they are recorded.
pub type Record = Arc<Mutex<Vec<String>>>;

/// Serves until its runtime ends, on a free port. Each reply takes `latency`.
pub async fn start(record: Option<Record>, latency: Duration) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let replies = Arc::new(Replies::new());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (replies, record) = (replies.clone(), record.clone());
            // The client reports broken connections.
            tokio::spawn(async move { drop(serve(stream, &replies, record, latency).await) });
        }
    });
    Ok(address)
}

async fn serve(
    mut stream: TcpStream,
    replies: &Replies,
    record: Option<Record>,
    latency: Duration,
) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let (head, length) = loop {
            if let Some(head) = find(&buffer, b"\r\n\r\n") {
                break (head + 4, content_length(&buffer[..head])?);
            }
            if buffer.len() > MOST_BYTES || stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        if length > MOST_BYTES {
            return Err(fail("the request is too long"));
        }
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        let body = std::str::from_utf8(&buffer[head..head + length])?;
        if let Some(record) = &record {
            record.lock().unwrap_or_else(PoisonError::into_inner).push(body.to_owned());
        }
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        stream.write_all(replies.to(body)).await?;
        buffer.drain(..head + length);
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &[u8]) -> Result<usize, Failure> {
    let head = std::str::from_utf8(head)?;
    let line = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then_some(value)
    });
    Ok(line.unwrap_or("0").trim().parse()?)
}

/// All replies, as bytes on the wire.
struct Replies {
    plan: Vec<u8>,
    plan_booking: Vec<u8>,
    plan_prepared: Vec<u8>,
    forecast: Vec<u8>,
    balance: Vec<u8>,
    booking: Vec<u8>,
    weather: Vec<u8>,
    leave: Vec<u8>,
    check: Vec<u8>,
}

impl Replies {
    fn new() -> Self {
        Self {
            plan: plan("Tell the balance of leave of the employee", "GetBalance", false),
            plan_booking: plan("Book the employee's leave from 2030-06-15 to 2030-06-17", "BookLeave", false),
            plan_prepared: plan("Tell the balance of leave of the employee", "GetBalance", true),
            forecast: call("GetForecast", &json!({"city": "Milan"})),
            balance: call("GetBalance", &json!({"employee": EMPLOYEE})),
            booking: call("BookLeave", &json!({"from": "2030-06-15", "to": "2030-06-17"})),
            weather: words("In Milan it is 11 to 24 °C today (station 7)."),
            leave: words("That are 3 of the 12 days of leave."),
            check: call(
                "CheckContinuation",
                &json!({"should_continue": false, "can_answer_now": true,
                    "reasoning": "Both scenes have done their step.", "missing_information": null,
                    "answer": "In Milan it is 11 to 24 °C today (station 7). That are 3 of the 12 days of leave."}),
            ),
        }
    }

    /// The reply to a body, chosen by what only one kind of question contains.
    fn to(&self, body: &str) -> &[u8] {
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

fn plan(purpose: &str, tool: &str, prepared: bool) -> Vec<u8> {
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
    call("CreateExecutionPlan", &plan)
}

fn call(name: &str, arguments: &Value) -> Vec<u8> {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let calls = json!([{"id": "call_0", "type": "function", "function": function}]);
    reply(&json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

fn words(text: &str) -> Vec<u8> {
    reply(&json!({"role": "assistant", "content": text}), "stop")
}

fn reply(message: &Value, reason: &str) -> Vec<u8> {
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000,
        "model": "instant", "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}})
    .to_string();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
