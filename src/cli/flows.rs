//! `flows`: the flows of the configuration, and paths through them.

use std::io::Write;

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::flow::PathMaker;
use proscenium::store::ErrorCode;
use proscenium::{AnswerFlow, FlowDocument};

use super::engine;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::stored_runs;
use super::text::{clean, count, one_line};

/// Lists the flows.
pub fn list<W: Write>(json: bool, loaded: &LoadedConfig, out: &mut Output<W>) -> Result<Exit, Failure> {
    let all = documents(loaded)?;
    if json {
        output::document(out, &all, false)?;
        return Ok(Exit::Completed);
    }
    for flow in &all {
        let nodes = count(flow.nodes.len(), "node");
        writeln!(out, "{} ({nodes}): {}", flow.name, one_line(&flow.description))?;
    }
    if all.is_empty() {
        writeln!(out, "There are no flows: add a flow.toml to a scene folder.")?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Shows a flow, with the nodes that path planners missed in it.
pub async fn show<W: Write>(
    name: &str,
    json: bool,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let mut all = documents(loaded)?;
    let Some(at) = all.iter().position(|flow| flow.name == name) else {
        return Err(unknown(name, all.iter().map(|flow| flow.name.as_str())));
    };
    let flow = &mut all[at];
    match stored_runs::open(loaded).await {
        Ok(stored) => flow.missing_nodes = stored.missing_nodes(name).await?,
        // Nothing is stored that could be shown.
        Err(none) if is_without_runs(&none) => {}
        Err(error) => return Err(error),
    }
    match json {
        true => output::document(out, flow, false)?,
        false => write_flow(out, flow)?,
    }
    Ok(Exit::Completed)
}

/// Whether there is no store yet, or one of an earlier release, which had no flows.
fn is_without_runs(failure: &Failure) -> bool {
    [ErrorCode::Absent, ErrorCode::OlderSchema].iter().any(|code| failure.code == code.as_str())
}

/// The failure of a command that names no flow.
pub fn unknown<'a>(name: &str, flows: impl Iterator<Item = &'a str>) -> Failure {
    let names: Vec<&str> = flows.collect();
    let known = match names.is_empty() {
        true => "there are none".to_owned(),
        false => format!("the flows are: {}", names.join(", ")),
    };
    Failure::new("flow.unknown", format!("there is no flow `{}`; {known}", one_line(name)))
}

fn documents(loaded: &LoadedConfig) -> Result<Vec<FlowDocument>, Failure> {
    Ok(engine::catalogue(loaded)?.flows().map(|flow| FlowDocument::of(flow)).collect())
}

/// Names who planned a path.
pub fn maker_text(maker: PathMaker) -> &'static str {
    match maker {
        PathMaker::Planner => "planned by a model",
        PathMaker::Rules => "planned by the offline model",
        PathMaker::Learned => "from earlier executions, without a planner",
        PathMaker::Graph => "not planned: the conditions of the graph decide",
    }
}

/// Writes the path through a flow that was planned for a request.
pub fn write_path(out: &mut impl Write, flow: &AnswerFlow) -> std::io::Result<()> {
    let by = maker_text(flow.planned_by);
    writeln!(out, "Path of step {} through {} ({by}):", flow.step_number, flow.flow)?;
    for (at, node) in flow.path.iter().enumerate() {
        writeln!(out, "  {}. {node}", at + 1)?;
    }
    if let Some(missing) = &flow.missing_node {
        let (name, description) = (&missing.name, one_line(&missing.description));
        writeln!(out, "  Missing in the flow, as the planner suggests: {name}: {description}")?;
    }
    writeln!(out)
}

/// Writes a flow: its nodes, what follows each, and the diagram.
fn write_flow(out: &mut impl Write, flow: &FlowDocument) -> std::io::Result<()> {
    writeln!(out, "{}: {}", flow.name, clean(&flow.description))?;
    if !flow.inputs.is_empty() {
        writeln!(out, "Inputs that may be given: {}", flow.inputs.join(", "))?;
    }
    writeln!(
        out,
        "Begins with: {}; enters at most {}",
        flow.entries.join(", "),
        count(flow.max_node_steps as usize, "node")
    )?;
    for node in &flow.nodes {
        let tool = node.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
        writeln!(out, "\n{} ({}{tool}): {}", node.name, node.kind, one_line(&node.description))?;
        for (what, names) in
            [("needs", &node.inputs), ("uses", &node.optional_inputs), ("produces", &node.outputs)]
        {
            if !names.is_empty() {
                writeln!(out, "  {what} {}", names.join(", "))?;
            }
        }
        for edge in flow.edges.iter().filter(|edge| edge.from == node.name) {
            let when = match edge.when.is_empty() {
                true => String::new(),
                false => format!(" if {}", one_line(&edge.when.join(" and "))),
            };
            writeln!(out, "  then {}{when}", edge.to)?;
        }
    }
    writeln!(out, "\n{}", clean(&flow.mermaid))?;
    if !flow.missing_nodes.is_empty() {
        writeln!(
            out,
            "Nodes that path planners wanted but the flow lacks, the newest first (suggestions of models, never executed):"
        )?;
    }
    for missing in &flow.missing_nodes {
        let day = missing.at.to_zoned(TimeZone::UTC).date();
        writeln!(
            out,
            "  - {} ({day}, run {}): {}",
            missing.name,
            missing.run_id,
            one_line(&missing.description)
        )?;
        if !missing.why.is_empty() {
            writeln!(out, "    {}", one_line(&missing.why))?;
        }
    }
    out.flush()
}
