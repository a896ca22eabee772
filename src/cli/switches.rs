//! `tools`, `models` and `tenants`: switches things off and on, also while a server works with the data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::run::Effect;
use proscenium::store::{Error, ErrorCode, Store, SwitchKind, SwitchRow};
use serde::Serialize;

use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::switches_args::{DrainCommand, SwitchCommand};
use super::table::{self, TableLayout};
use super::text::one_line;
use super::{engine, keys};

/// One line of a list.
#[derive(Debug, Serialize)]
struct SwitchState {
    name: String,
    /// What it is, such as `read`.
    #[serde(skip_serializing_if = "String::is_empty")]
    about: String,
    off: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<SwitchRow>,
}

/// Runs `tools`.
pub async fn tools<W: Write>(
    what: Option<SwitchCommand>,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let catalogue = engine::catalogue(loaded)?;
    let about = |effect: Effect| if effect == Effect::Write { "write" } else { "read" };
    let known = catalogue.all().filter(|scene| scene.flow.is_none()).flat_map(|scene| {
        scene
            .tools
            .iter()
            .map(|tool| (format!("{}.{}", scene.name, tool.name), about(tool.effect).to_owned()))
    });
    switch_command(SwitchKind::Tool, what, known.collect(), loaded, out).await
}

/// Runs `models`.
pub async fn models<W: Write>(
    what: Option<SwitchCommand>,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let models = loaded.config.llm.models.iter();
    let known = models.map(|model| (model.name.clone(), one_line(&model.base_url))).collect();
    switch_command(SwitchKind::Model, what, known, loaded, out).await
}

/// Runs `tenants`.
pub async fn tenants<W: Write>(
    what: Option<DrainCommand>,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let (name, off, reason) = match what.unwrap_or(DrainCommand::List { json: false }) {
        DrainCommand::List { json } => {
            let known = known_tenants(loaded).await?;
            return list(SwitchKind::Tenant, known, json, loaded, out).await;
        }
        DrainCommand::Drain { name, reason } => (name, true, reason),
        DrainCommand::Resume { name, reason } => (name, false, reason),
    };
    // Tenants need no entry anywhere, so a name that nothing else mentions is not refused: it may be mistyped.
    let unmentioned = off && !known_tenants(loaded).await?.contains_key(name.as_str());
    change(SwitchKind::Tenant, name.as_str(), off, &reason, loaded, out).await?;
    if unmentioned {
        let note =
            "No key and no section of the configuration names this tenant: check the name, or undo this with";
        writeln!(out, "{note} `proscenium tenants resume {}`.", one_line(name.as_str()))?;
        out.flush()?;
    }
    Ok(Exit::Completed)
}

async fn switch_command<W: Write>(
    kind: SwitchKind,
    what: Option<SwitchCommand>,
    known: BTreeMap<String, String>,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let (name, off, reason) = match what.unwrap_or(SwitchCommand::List { json: false }) {
        SwitchCommand::List { json } => return list(kind, known, json, loaded, out).await,
        SwitchCommand::Disable { name, reason } => (name, true, reason),
        SwitchCommand::Enable { name, reason } => (name, false, reason),
    };
    // What has been removed from the configuration can still be switched on.
    if off && !known.contains_key(&name) {
        let word: &'static str = kind.into();
        let message = format!("there is no {word} {name:?}");
        return Err(Failure::new(&format!("{word}.unknown"), message)
            .help(format!("`proscenium {word}s list` lists them; name the server's configuration and scenes with --config and --scenes")));
    }
    change(kind, &name, off, &reason, loaded, out).await
}

async fn change<W: Write>(
    kind: SwitchKind,
    name: &str,
    off: bool,
    reason: &str,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let store = keys::open(&loaded.config.store.data_dir).await?;
    let changed = switch(&store, kind, name, off, (reason, &loaded.config.auth.default_user)).await;
    store.close().await;
    let (word, now): (&'static str, _) = (
        kind.into(),
        match (kind, off) {
            (SwitchKind::Tenant, true) => "is drained: its new requests are refused, and runs under way end",
            (SwitchKind::Tenant, false) => "is not drained: its requests are accepted",
            (_, true) => "is switched off",
            (_, false) => "is switched on",
        },
    );
    if changed? {
        writeln!(out, "The {word} {} {now}; a running server applies it within a second.", one_line(name))?;
    } else {
        writeln!(out, "The {word} {} {now} already.", one_line(name))?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Changes the switch, unless it is set so already.
async fn switch(
    store: &Store,
    kind: SwitchKind,
    name: &str,
    off: bool,
    (reason, by): (&str, &str),
) -> Result<bool, Error> {
    let is_off = store.switches().await?.iter().any(|row| row.kind == kind && row.name == name && row.off);
    if is_off == off {
        return Ok(false);
    }
    store.switch(kind, name, off, reason, by).await.map(|_| true)
}

async fn list<W: Write>(
    kind: SwitchKind,
    known: BTreeMap<String, String>,
    json: bool,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let states = switch_states(kind, &known, stored(loaded).await?);
    if json {
        output::document(out, &states, false)?;
        return Ok(Exit::Completed);
    }
    if states.is_empty() {
        let none = match kind {
            SwitchKind::Model => {
                "No model is configured: the offline model serves, and cannot be switched off."
            }
            SwitchKind::Tool => "There are no tools.",
            SwitchKind::Tenant => "There are no tenants.",
        };
        writeln!(out, "{none}")?;
        out.flush()?;
        return Ok(Exit::Completed);
    }
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let head = ["NAME", "ABOUT", "STATE", "SINCE", "BY", "REASON"].map(str::to_owned);
    let body = states.iter().map(|state| {
        let words = if kind == SwitchKind::Tenant { ["serves", "drained"] } else { ["on", "off"] };
        let (since, by, reason) = state.changed.as_ref().map_or_else(Default::default, |row| {
            (table::time(row.at, &zone), one_line(&row.by), one_line(&row.reason))
        });
        [
            one_line(&state.name),
            state.about.clone(),
            words[usize::from(state.off)].to_owned(),
            since,
            by,
            reason,
        ]
    });
    table::aligned(
        out,
        head,
        body,
        &TableLayout { right: &[], optional: &[1, 3], ids: None },
        table::width(),
    )?;
    Ok(Exit::Completed)
}

/// The states of the switches of a kind, by name: of everything in `known` (name and description), and of whatever else
/// is switched off.
fn switch_states(
    kind: SwitchKind,
    known: &BTreeMap<String, String>,
    rows: Vec<SwitchRow>,
) -> Vec<SwitchState> {
    let of_kind = rows.into_iter().filter(|row| row.kind == kind);
    let mut changed: BTreeMap<String, SwitchRow> = of_kind.map(|row| (row.name.clone(), row)).collect();
    let off = changed.values().filter(|row| row.off).map(|row| row.name.clone());
    let names: BTreeSet<String> = known.keys().cloned().chain(off).collect();
    let state = |name: String| {
        let changed = changed.remove(&name);
        let off = changed.as_ref().is_some_and(|row| row.off);
        SwitchState { about: known.get(&name).cloned().unwrap_or_default(), name, off, changed }
    };
    names.into_iter().map(state).collect()
}

/// The newest change of each switch; none where nothing is stored yet.
async fn stored(loaded: &LoadedConfig) -> Result<Vec<SwitchRow>, Failure> {
    let Some(store) = reading(loaded).await? else { return Ok(Vec::new()) };
    let rows = store.switches().await;
    store.close().await;
    rows.map_err(Failure::from)
}

/// Tenants that are named anywhere: by a key, the configuration, or as the default.
async fn known_tenants(loaded: &LoadedConfig) -> Result<BTreeMap<String, String>, Failure> {
    let config = &loaded.config;
    let mut known: BTreeMap<String, String> =
        config.tenants.keys().map(|name| (name.clone(), "configured".to_owned())).collect();
    if let Some(store) = reading(loaded).await? {
        let keys = store.keys(None).await;
        store.close().await;
        let valid = keys?.into_iter().filter(|key| key.revoked.is_none());
        known.extend(valid.map(|key| (key.tenant.to_string(), "has keys".to_owned())));
    }
    known.insert(config.auth.default_tenant.to_string(), "default".to_owned());
    Ok(known)
}

async fn reading(loaded: &LoadedConfig) -> Result<Option<Store>, Failure> {
    match Store::open_read_only(&loaded.config.store.data_dir).await {
        Ok(store) => Ok(Some(store)),
        Err(error) if error.kind() == ErrorCode::Absent => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_that_are_off_are_listed_even_if_what_they_are_about_is_gone() {
        let row = |kind, name: &str, off| SwitchRow {
            kind,
            name: name.to_owned(),
            off,
            reason: String::new(),
            by: "keysersoze".to_owned(),
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        let rows = vec![
            row(SwitchKind::Tool, "a.Read", true),
            row(SwitchKind::Tool, "b.Gone", true),
            row(SwitchKind::Tool, "b.GoneAndOn", false),
            row(SwitchKind::Model, "a.Write", true),
        ];
        let known = ["a.Read", "a.Write"].map(|name| (name.to_owned(), "read".to_owned())).into();
        let states = switch_states(SwitchKind::Tool, &known, rows);
        let shown: Vec<_> = states.iter().map(|s| (s.name.as_str(), s.about.as_str(), s.off)).collect();
        assert_eq!(shown, [("a.Read", "read", true), ("a.Write", "read", false), ("b.Gone", "", true)]);
    }
}
