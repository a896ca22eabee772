//! After a load: whether the accepted runs ended, each once, and what their documents add to the record.

use std::cell::RefCell;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use proscenium::load::ends::{MAX_TRACKED, RunEnds};
use proscenium::load::report::LoadUsage;
use reqwest::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::remote;
use super::client::document_usage;
use super::drive::LoadDriver;
use super::target::LoadProtocol;

/// Runs on a page of the list.
const PAGE: usize = 500;
/// Longest page that is read, in bytes.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of documents of runs that are read.
const MAX_DOCUMENTS: usize = 2_000;
/// Documents that are read at once.
const AT_ONCE: usize = 8;
/// Runs that began longer before the load are not looked at. The clocks of client and server may differ.
const BEFORE: SignedDuration = SignedDuration::from_mins(10);

/// A page of `GET /api/runs`.
#[derive(Deserialize)]
struct ListedRuns {
    runs: Vec<ListedRun>,
}

#[derive(Deserialize)]
struct ListedRun {
    run_id: Uuid,
    session_id: String,
    status: String,
    created: Timestamp,
}

/// Returns what became of the accepted runs, at most `grace` after the load, which began at `began`.
///
/// # Errors
/// Why it cannot be said: the server names no runs, or does not list them.
pub async fn ends(load: &LoadDriver, began: Timestamp, grace: Duration) -> Result<RunEnds, String> {
    let is_openai = load.client().target().protocol == LoadProtocol::OpenAi;
    if is_openai && load.ledger.borrow().is_empty() {
        return Err("the server's replies name no runs".to_owned());
    }
    let until = Instant::now() + grace;
    let mut wait = Duration::from_millis(50);
    let mut first = Uuid::nil();
    loop {
        for key in load.keys() {
            list(load, key.secret.as_ref(), began, first).await?;
        }
        let (now, unsettled) = (Instant::now(), load.ledger.borrow().first_unsettled());
        match unsettled {
            // The rows before it say what they said.
            Some(unsettled) if now < until => first = unsettled,
            _ => return Ok(load.ledger.borrow().ends()),
        }
        tokio::time::sleep_until((now + wait).min(until)).await;
        wait = (wait * 2).min(Duration::from_secs(2));
    }
}

/// Reads the list of runs that a key may see, newest first, back to the beginning of the load, or to the run `first`.
async fn list(
    load: &LoadDriver,
    key: Option<&SecretString>,
    began: Timestamp,
    first: Uuid,
) -> Result<(), String> {
    let oldest = began.checked_sub(BEFORE).unwrap_or(Timestamp::MIN);
    let mut after = String::new();
    for _ in 0..=MAX_TRACKED / PAGE {
        let request = load.client().get(&format!("/api/runs?limit={PAGE}{after}"), key);
        let response = request.send().await.map_err(|error| format!("GET /api/runs: {error}"))?;
        if response.status() != StatusCode::OK {
            return Err(format!("GET /api/runs: HTTP {}", response.status().as_u16()));
        }
        let page = remote::bytes(response, MAX_PAGE_BYTES).await?;
        let page: ListedRuns =
            serde_json::from_slice(&page).map_err(|error| format!("GET /api/runs: {error}"))?;
        let mut ledger = load.ledger.borrow_mut();
        for run in &page.runs {
            ledger.listed(run.run_id, &run.session_id, &run.status);
        }
        match page.runs.last() {
            Some(last) if page.runs.len() == PAGE && last.created >= oldest && last.run_id > first => {
                after = format!("&after={}", last.run_id)
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Reads documents of runs whose replies did not tell the server's times, as streamed answers and those of the OpenAI
/// protocol: at most 2,000, evenly spread. Where these are all, their usage is that of the load.
pub async fn read_documents(load: &LoadDriver) {
    if load.recorder.borrow().server_overhead.count() > 0 {
        return;
    }
    let sample = load.ledger.borrow().sample(MAX_DOCUMENTS);
    let is_complete = sample.len() as u64 == load.recorder.borrow().counts().answered;
    let usage = RefCell::new(LoadUsage::default());
    let read = stream::iter(&sample).for_each_concurrent(AT_ONCE, |(run, conversation, latency)| {
        let usage = &usage;
        async move {
            let key = load.keys().get(load.key_of(*conversation)).and_then(|key| key.secret.as_ref());
            let Ok(response) = load.client().get(&format!("/api/runs/{run}"), key).send().await else {
                return;
            };
            let Ok(document) = remote::bytes(response, MAX_PAGE_BYTES).await else { return };
            let document: Value = serde_json::from_slice(&document).unwrap_or(Value::Null);
            let answer = document_usage(&document);
            usage.borrow_mut().add(&answer);
            if let Some(times) = answer.times {
                load.recorder.borrow_mut().overhead(*latency, times);
            }
        }
    });
    read.await;
    let usage = usage.into_inner();
    if is_complete && usage.cost_usd.is_some() {
        load.recorder.borrow_mut().set_usage(usage);
    }
}
