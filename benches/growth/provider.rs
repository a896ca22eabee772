//! A provider in a process of its own that replies at once: it plans a look-up for each employee that the request names,
//! and prepares the calls.

#[path = "../shared/instant.rs"]
mod instant;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use instant::{PreparedReply, calls, words};
use serde_json::{Value, json};

use super::{Failure, fail};

/// The first argument of the provider's process.
pub const WORD: &str = "provider";

/// The first employee that a request names.
pub const EMPLOYEE: u64 = 5001;

/// What stands before the employees in a request, and after them.
const BEFORE: &str = "of the leave of the employees ";
const AFTER: &str = ", request";

/// Request number `n`, with so many steps. No two have the same words, so that no reply comes from the cache.
pub fn message(n: u64, steps: u32) -> String {
    let employees: Vec<String> =
        (EMPLOYEE..EMPLOYEE + u64::from(steps)).map(|number| number.to_string()).collect();
    format!("Tell the balance {BEFORE}{}{AFTER} {n}", employees.join(", "))
}

/// The provider's process; it is ended when this is dropped.
pub struct Provider {
    process: Child,
    /// Where it listens.
    pub address: String,
}

impl Provider {
    /// Starts it.
    pub fn start() -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = process.stdout.take().ok_or_else(|| fail("a provider without pipes"))?;
        let mut address = String::new();
        BufReader::new(said).read_line(&mut address)?;
        Ok(Self { process, address: address.trim().to_owned() })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The main function of the provider's process, which ends with its input.
pub fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let check = calls(&[(
        "CheckContinuation",
        json!({"should_continue": false, "can_answer_now": true, "reasoning": "All balances were told.",
            "missing_information": null, "answer": "Each of them has 12 days left."}),
    )]);
    let summary = words("The user asked for balances of leave, and was told 12 days each.");
    let reply = move |body: &str| {
        if body.contains("CreateExecutionPlan") {
            plan(body)
        } else if body.contains("CheckContinuation") {
            check.clone()
        } else {
            summary.clone()
        }
    };
    let address = runtime.block_on(instant::serve(Duration::ZERO, reply))?;
    writeln!(std::io::stdout(), "{address}")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn plan(body: &str) -> PreparedReply {
    let named = body.rsplit_once(BEFORE).and_then(|(_, rest)| rest.split_once(AFTER));
    let employees = named.map_or("", |(named, _)| named).split(", ");
    let steps =
        employees.filter_map(|number| number.parse::<u64>().ok()).enumerate().map(|(index, employee)| {
            let call = json!({"tool": "GetBalance", "arguments": json!({"employee": employee}).to_string()});
            json!({"step_number": index + 1, "scene_name": "Leave", "expected_tools": ["GetBalance"],
            "purpose": format!("Tell the balance of leave of employee {employee}"), "depends_on_step": null,
            "prepared_calls": [call]})
        });
    let steps: Vec<Value> = steps.collect();
    let plan = json!({"needs_execution": true, "reasoning": "One look-up each", "steps": steps});
    calls(&[("CreateExecutionPlan", plan)])
}
