//! A client of this server: sends the request of each flow to `POST /api/chat` over kept connections, and checks the
//! answer.

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

use mimalloc::MiMalloc;
use peers::drive::Subject;
use peers::flow::{self, TOOL_CALLS};
use peers::orders::subject;
use peers::{Failure, fail};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
}

fn main() -> ExitCode {
    subject(|address| {
        let key = std::env::var("PEERS_KEY").map_err(|_| fail("PEERS_KEY is the server's API key"))?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Client { http, url: format!("http://{address}/api/chat"), key })
    })
}

impl Subject for Client {
    async fn flow(&self, n: u64) -> Result<(), Failure> {
        let body = json!({"messages": [{"role": "user", "content": flow::request(n)}]});
        let reply = self.http.post(&self.url).bearer_auth(&self.key).json(&body).send().await?;
        let status = reply.status();
        let bytes = reply.bytes().await?;
        if !status.is_success() {
            return Err(fail(format!("{status}: {}", String::from_utf8_lossy(&bytes))));
        }
        let answer: Value = serde_json::from_slice(&bytes)?;
        let calls =
            answer["steps"].as_array().into_iter().flatten().filter_map(|step| step["tool_calls"].as_array());
        let done = calls.flatten().filter(|call| call["outcome"] == "ok").count() as u64;
        TOOL_CALLS.fetch_add(done, Relaxed);
        if answer["status"] != "completed" || done != 2 {
            return Err(fail(format!("a flow ended unexpectedly: {answer}")));
        }
        flow::check(answer["answer"].as_str().unwrap_or_default())
    }
}
