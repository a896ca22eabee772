//! `facts`: what a conversation knows, and corrections. Facts are read from the store, also while a server owns it; what
//! is stated goes to that server, or is appended here if there is none.

use std::io::Write;

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::memory::{FactLedger, LedgerFact};
use proscenium::run::{Fault, SessionId};
use proscenium::{FactFilter, FactPage};
use reqwest::Method;
use serde_json::json;

use super::args::FactsArgs;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::remote::{self, RemoteServer};
use super::stored_runs::{self, StoredRuns};
use super::table::{self, TableLayout};
use super::text::one_line;
use super::{address, engine, wrap};

/// The indent of the further lines of a fact.
const HANGING: usize = 4;

/// Runs the command.
pub async fn run<W: Write>(
    facts: FactsArgs,
    loaded: LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let stored = stored_runs::open_of(&loaded, facts.tenant.clone()).await?;
    let session = stored.session_named(&facts.session).await?;
    let stated = match (&facts.correct, &facts.add) {
        (Some(correction), _) => correction.first().zip(correction.get(1)).map(|(id, text)| (text, Some(id))),
        (None, Some(text)) => Some((text, None)),
        (None, None) => None,
    };
    if let Some((claim, corrects)) = stated {
        let corrects = match corrects {
            Some(id) => Some(stored.facts(&session).await?.find(id).map_err(unknown)?.id.clone()),
            None => None,
        };
        let fact = state(&session, claim, corrects, facts.user.is_some(), stored, loaded).await?;
        if facts.json {
            output::document(out, &fact, false)?;
        } else {
            writeln!(out, "{}: {}", fact.id, one_line(&fact.claim))?;
            out.flush()?;
        }
        return Ok(Exit::Completed);
    }
    let run = match &facts.run {
        Some(run) => Some(stored.run_named(run).await?),
        None => None,
    };
    let filter = FactFilter { kinds: facts.kind.clone(), run, with_superseded: facts.all };
    let ledger = stored.facts(&session).await?;
    let page = FactPage::new(session, &ledger, &filter, None, usize::MAX);
    let page = page.ok_or_else(|| Failure::new("fact.unknown", "there is no such fact"))?;
    if facts.json {
        output::document(out, &page, false)?;
    } else if facts.markdown {
        write!(out, "{}", page.markdown())?;
        out.flush()?;
    } else {
        list(out, &page, &zone, table::width())?;
    }
    Ok(Exit::Completed)
}

fn unknown(refusal: proscenium::memory::FactRefusal) -> Failure {
    Failure::new("fact.unknown", refusal.to_string())
}

/// Facts are shown whole: on a terminal in several lines, the further ones indented.
fn list(out: &mut impl Write, page: &FactPage, zone: &TimeZone, width: Option<usize>) -> std::io::Result<()> {
    if page.facts.is_empty() {
        writeln!(out, "Nothing is known.")?;
        return out.flush();
    }
    let head = ["ID", "KIND", "WHEN", "FACT"].map(str::to_owned);
    let body = page.facts.iter().map(|fact| {
        let when = fact.at.map(|at| table::time(at, zone)).unwrap_or_default();
        let claim = match &fact.superseded_by {
            Some(by) => format!("(superseded by {by}) {}", one_line(&fact.claim)),
            None => one_line(&fact.claim),
        };
        [fact.id.clone(), fact.kind.name().to_owned(), when, claim]
    });
    let mut rows = Vec::new();
    table::aligned(&mut rows, head, body, &TableLayout { right: &[], optional: &[2], ids: Some(0) }, None)?;
    for row in String::from_utf8_lossy(&rows).lines() {
        match width {
            Some(width) => writeln!(out, "{}", wrap::hanging_by(row, width, HANGING))?,
            None => writeln!(out, "{row}")?,
        }
    }
    for (kind, count) in &page.dropped {
        writeln!(out, "{count} {kind} facts were dropped: the conversation has too many.")?;
    }
    out.flush()
}

/// States a fact by the server that owns the data directory, or here.
async fn state(
    session: &SessionId,
    claim: &str,
    corrects: Option<String>,
    as_user: bool,
    stored: StoredRuns,
    loaded: LoadedConfig,
) -> Result<LedgerFact, Failure> {
    let data_dir = loaded.config.store.data_dir.clone();
    let (tenant, user) = (loaded.config.auth.default_tenant.clone(), loaded.config.auth.default_user.clone());
    let failed = |fault: Fault| Failure::new(&fault.code, fault.message);
    match engine::engine(loaded).await {
        Ok(engine) => {
            let stated = engine.state_fact(&tenant, session, &user, claim, corrects.as_deref()).await;
            let stopped = engine.stop().await;
            stopped?;
            stated.map_err(failed)
        }
        Err(failure) if remote::is_owned(&failure) => {
            let server = RemoteServer::at(address::find(&data_dir, failure)?.url, stored, as_user)?;
            let body = json!({"claim": claim, "supersedes": corrects});
            let path = format!("/api/sessions/{session}/facts");
            let reply = server.send(Method::POST, &path, Some(&body)).await?;
            server.read(reply).await
        }
        Err(failure) => Err(failure),
    }
}

impl StoredRuns {
    async fn facts(&self, session: &SessionId) -> Result<FactLedger, Failure> {
        let events = self.session_events(session).await?;
        Ok(FactLedger::from_events(events.iter().map(|event| (event.seq, &event.body))))
    }
}
