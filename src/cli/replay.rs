//! `replay`: compares a stored run with the decisions of the current code.

use std::io::{self, Write};
use std::path::PathBuf;

use proscenium::config::LoadedConfig;
use proscenium::llm::{Message, Request};
use proscenium::replay::{self, PromptDifference, ReplayDifference, ReplayReport};
use proscenium::run::{Envelope, Event, RunId};
use serde_json::Value;

use super::failure::{Exit, Failure};
use super::ids::IdPrefix;
use super::output::{Output, document};
use super::text::{clean, count, one_line, short};
use super::{args, changes, engine, stored_runs};

/// Maximum width of a reason within a line, in columns.
const WHY: usize = 300;

/// The recording that is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A run of the store.
    Run(IdPrefix),
    /// A file that `--export` wrote.
    File(PathBuf),
}

impl std::str::FromStr for Recorded {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        match given.parse() {
            Ok(run) => Ok(Recorded::Run(run)),
            Err(_) if given.ends_with(".jsonl") => Ok(Recorded::File(given.into())),
            Err(error) => Err(format!("it is neither a run's id nor the name of a .jsonl file: {error}")),
        }
    }
}

/// Replays a run and reports the result, or writes its events.
pub async fn run<W: Write>(
    replay: args::Replay,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let events = recorded(&replay, loaded).await?;
    if replay.export {
        out.write_all(replay::write(&events).as_bytes())?;
        out.flush()?;
        return Ok(Exit::Completed);
    }
    let catalogue = engine::catalogue(loaded)?;
    // Every event of a run has its id.
    let run = events.first().and_then(|event| event.run).unwrap_or(RunId(uuid::Uuid::nil()));
    let mut replayed = replay::replay(run, &events, &catalogue);
    if replay.json {
        if !replay.diff {
            replayed.wordings.iter_mut().for_each(|wording| wording.request = None);
        }
        document(out, &replayed, false)?;
    } else {
        write_report(out, &replayed, replay.diff)?;
    }
    Ok(if replayed.same { Exit::Completed } else { Exit::Failed })
}

async fn recorded(asked: &args::Replay, loaded: &LoadedConfig) -> Result<Vec<Envelope<Event>>, Failure> {
    let path = match &asked.run {
        Recorded::Run(run) => {
            let stored = stored_runs::open_of(loaded, asked.tenant.clone()).await?;
            return stored.journal(stored.run_named(run).await?).await;
        }
        Recorded::File(path) => path,
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage("replay.file", format!("{} cannot be read: {error}", path.display()))
    })?;
    replay::read(&text)
        .map_err(|fault| Failure::usage(&fault.code, format!("{}: {}", path.display(), fault.message)))
}

/// Writes the verdict, then every difference.
fn write_report(out: &mut impl Write, replayed: &ReplayReport, diff: bool) -> io::Result<()> {
    let held = replayed.held;
    writeln!(
        out,
        "run {}: {}, {}: {}, {}, {} read, {}",
        replayed.run_id,
        replayed.status,
        count(replayed.events, "event"),
        count(held.decisions, "decision"),
        count(held.questions, "question"),
        if held.replies == 1 { "1 reply".to_owned() } else { format!("{} replies", held.replies) },
        count(held.calls, "tool call"),
    )?;
    let places = replayed.differences.len() + replayed.more_differences;
    match places {
        0 => writeln!(out, "the current code decides the same")?,
        some => writeln!(out, "the current code decides differently in {}", count(some, "place"))?,
    }
    if let Some(scenes) = replayed.scenes.as_ref().filter(|scenes| scenes.changed) {
        writeln!(
            out,
            "the scenes or their settings have changed since, or --config and --scenes name others (catalogue {}, \
             now {}): questions are then worded differently, and replies may be read differently",
            short_hash(&scenes.recorded),
            short_hash(&scenes.today)
        )?;
    }
    let worded = replayed.wordings.len() + replayed.more_wordings;
    if worded > 0 {
        writeln!(
            out,
            "worded differently today: {worded} of {}; the replies are taken as they were",
            count(held.questions, "question"),
        )?;
    }
    if !replayed.status.is_terminal() {
        writeln!(out, "the run has not ended; {}", goes_on(&replayed.due))?;
    }
    for difference in &replayed.differences {
        differs(out, difference, diff)?;
    }
    more(out, replayed.more_differences, "difference")?;
    if diff {
        for wording in &replayed.wordings {
            worded_otherwise(out, wording)?;
        }
        more(out, replayed.more_wordings, "question")?;
    } else if places + worded > 0 {
        writeln!(out, "--diff shows them")?;
    }
    out.flush()
}

fn more(out: &mut impl Write, left: usize, what: &str) -> io::Result<()> {
    match left {
        0 => Ok(()),
        _ => writeln!(out, "and {} more", count(left, what)),
    }
}

fn goes_on(due: &[Value]) -> String {
    let names: Vec<&str> = due.iter().map(what).collect();
    match names.is_empty() {
        true => "the current code would wait for work in progress".to_owned(),
        false => format!("the current code would continue with {}", names.join(", ")),
    }
}

/// The name of an event or of an action.
fn what(value: &Value) -> &str {
    value["type"].as_str().or(value["action"].as_str()).unwrap_or_default()
}

fn differs(out: &mut impl Write, difference: &ReplayDifference, diff: bool) -> io::Result<()> {
    let (seq, event) = (difference.seq, &difference.event);
    let kind = difference.kind;
    writeln!(out, "\nevent {seq} {event} [{kind}]: {}", short(&difference.why, WHY))?;
    if diff {
        writeln!(out, "--- recorded\n+++ today")?;
        let today: Vec<String> = difference.today.iter().map(pretty).collect();
        write!(out, "{}", clean(&changes::of(&pretty(&difference.recorded), &today.concat())))?;
    }
    Ok(())
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn worded_otherwise(out: &mut impl Write, wording: &PromptDifference) -> io::Result<()> {
    let (seq, call) = (wording.seq, wording.call);
    writeln!(out, "\nevent {seq} model_asked [wording]: question {call} is worded differently")?;
    writeln!(out, "--- recorded: only its hash is known, {}", one_line(&wording.recorded))?;
    writeln!(out, "+++ today: {}", wording.today)?;
    match &wording.request {
        Some(request) => write_request(out, request),
        None => Ok(()),
    }
}

/// A request as it is sent to its model.
fn write_request(out: &mut impl Write, request: &Request) -> io::Result<()> {
    for message in &request.messages {
        let (role, text) = match message {
            Message::System { text } => ("system", text),
            Message::User { text } => ("user", text),
            Message::Assistant { text, .. } => ("assistant", text),
            Message::Tool { text, .. } => ("tool", text),
        };
        writeln!(out, "  [{role}]")?;
        for line in clean(text).lines() {
            writeln!(out, "  {line}")?;
        }
        if let Message::Assistant { calls, .. } = message {
            for call in calls {
                writeln!(out, "  calls {} {}", one_line(&call.name), one_line(&call.arguments))?;
            }
        }
    }
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    writeln!(out, "  [tools] {} ({})", tools.join(", "), one_line(&serde_json::to_string(&request.choice)?))
}

fn short_hash(hash: &str) -> String {
    let short: String = one_line(hash).chars().take(12).collect();
    if short.is_empty() { "unknown".to_owned() } else { short }
}
