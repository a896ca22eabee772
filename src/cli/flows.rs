//! `flows`: the flows of the configuration.

use std::io::Write;

use proscenium::FlowDocument;
use proscenium::config::LoadedConfig;

use super::args::{FlowsArgs, FlowsCommand};
use super::engine;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::text::{clean, count, one_line};

/// Runs the command.
pub async fn run<W: Write>(
    flows: FlowsArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let catalogue = engine::catalogue(loaded)?;
    let all: Vec<FlowDocument> = catalogue.flows().map(|flow| FlowDocument::of(flow)).collect();
    match flows.what {
        FlowsCommand::List { json: true } => output::document(out, &all, false)?,
        FlowsCommand::List { json: false } => {
            for flow in &all {
                let nodes = count(flow.nodes.len(), "node");
                writeln!(out, "{} ({nodes}): {}", flow.name, one_line(&flow.description))?;
            }
            if all.is_empty() {
                writeln!(out, "There are no flows: add a flow.toml to a scene folder.")?;
            }
            out.flush()?;
        }
        FlowsCommand::Show { name, json } => {
            let Some(flow) = all.iter().find(|flow| flow.name == name) else {
                let names: Vec<&str> = all.iter().map(|flow| flow.name.as_str()).collect();
                let message = format!("there is no flow `{name}`; the flows are: {}", names.join(", "));
                return Err(Failure::new("flow.unknown", message));
            };
            match json {
                true => output::document(out, flow, false)?,
                false => show(out, flow)?,
            }
        }
    }
    Ok(Exit::Completed)
}

/// Writes a flow: its nodes, what follows each, and the diagram.
fn show(out: &mut impl Write, flow: &FlowDocument) -> std::io::Result<()> {
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
            let when =
                if edge.when.is_empty() { String::new() } else { format!(" if {}", edge.when.join(" and ")) };
            writeln!(out, "  then {}{}", edge.to, one_line(&when))?;
        }
    }
    writeln!(out, "\n{}", clean(&flow.mermaid))?;
    out.flush()
}
