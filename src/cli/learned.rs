//! `learned`: plans learned from executions, of one tenant. It works on the store, also while a server owns it.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proscenium::LearnedDocument;
use proscenium::config::LoadedConfig;
use proscenium::run::TenantId;
use proscenium::store::{Error, Store};

use super::args::{LearnedArgs, LearnedCommand};
use super::failure::{Exit, Failure};
use super::keys;
use super::output::{self, Output};
use super::table::{self, TableLayout};
use super::text::one_line;

/// How many plans are read at once.
const PAGE: u32 = 500;
/// Minimum length of a prefix of an id.
const MIN_PREFIX: usize = 4;

/// Runs the command.
pub async fn run<W: Write>(
    learned: LearnedArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let tenant = learned.tenant.unwrap_or_else(|| loaded.config.auth.default_tenant.clone());
    let dir = &loaded.config.store.data_dir;
    let store = Store::open_read_only(dir).await?;
    let all = all(&store, &tenant, loaded.config.planning.learn_after).await;
    store.close().await;
    let all = all?;
    match learned.what {
        LearnedCommand::List { json: true } => output::document(out, &all, false)?,
        LearnedCommand::List { json: false } => {
            list(out, &all, &loaded.config.execution.zone().unwrap_or(TimeZone::UTC))?;
        }
        LearnedCommand::Show { id } => output::document(out, named(&all, &id)?, false)?,
        LearnedCommand::Export => {
            for one in &all {
                let line = serde_json::to_string(one).map_err(|error| {
                    Failure::new("learned.export", format!("a plan cannot be written as JSON: {error}"))
                })?;
                writeln!(out, "{line}")?;
            }
            out.flush()?;
        }
        LearnedCommand::Delete { id } => {
            let id = named(&all, &id)?.id.clone();
            let store = keys::open(dir).await?;
            let deleted = store.delete_learned(&tenant, &id).await;
            store.close().await;
            if !deleted? {
                return Err(unknown(&id));
            }
            writeln!(out, "The learned plan {id} is deleted.")?;
            out.flush()?;
        }
    }
    Ok(Exit::Completed)
}

async fn all(store: &Store, tenant: &TenantId, after: u32) -> Result<Vec<LearnedDocument>, Error> {
    let (mut all, now) = (Vec::new(), Timestamp::now());
    let mut last: Option<String> = None;
    loop {
        let page = store.learned_plans(tenant, last.as_deref(), PAGE).await?;
        let is_full = page.len() >= PAGE as usize;
        all.extend(page.into_iter().map(|row| LearnedDocument::new(row, after, now)));
        if !is_full {
            return Ok(all);
        }
        last = all.last().map(|one: &LearnedDocument| one.id.clone());
    }
}

/// The plan of which the id is given, or a unique prefix.
fn named<'a>(all: &'a [LearnedDocument], id: &str) -> Result<&'a LearnedDocument, Failure> {
    let mut found = all.iter().filter(|one| id.len() >= MIN_PREFIX && one.id.starts_with(id));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Failure::usage("id.ambiguous", format!("several ids begin with {id}"))),
        (None, _) => Err(unknown(id)),
    }
}

fn unknown(id: &str) -> Failure {
    let what = format!("there is no learned plan {}", one_line(id));
    Failure::new("learned.unknown", what).help("`proscenium learned list` shows their ids")
}

fn list(out: &mut impl Write, all: &[LearnedDocument], zone: &TimeZone) -> std::io::Result<()> {
    if all.is_empty() {
        writeln!(out, "Nothing learned yet. `planning.learn` says whether anything is.")?;
        return out.flush();
    }
    let head = ["ID", "STANDING", "SUCCESSES", "FAILURES", "USES", "USERS", "SEEN", "FLOW", "REQUEST"]
        .map(str::to_owned);
    let body = all.iter().map(|one| {
        [
            one.id.chars().take(12).collect(),
            <&'static str>::from(one.standing).to_owned(),
            one.successes.to_string(),
            one.failures.to_string(),
            one.uses.to_string(),
            if one.kept { "3+".to_owned() } else { one.users.to_string() },
            table::time(one.seen_at, zone),
            one.flow.as_deref().map(one_line).unwrap_or_default(),
            one_line(&one.request),
        ]
    });
    let layout = TableLayout { right: &[2, 3, 4, 5], optional: &[6, 3, 4, 7], ids: Some(0) };
    table::aligned(out, head, body, &layout, table::width())
}
