//! A flow as a Mermaid diagram.

use super::{Flow, Node, NodeKind};

/// A flow as a Mermaid flowchart. Nodes that are in `entered` are marked.
pub fn mermaid(flow: &Flow, entered: &[String]) -> String {
    let id =
        |name: &str| format!("n{}", flow.nodes.iter().position(|node| node.name == name).unwrap_or_default());
    let mut text = "flowchart TD\n".to_owned();
    for node in &flow.nodes {
        text.push_str(&format!("    {}{}\n", id(&node.name), shape(node)));
    }
    for node in &flow.nodes {
        for next in &node.possible_next_nodes {
            let tests: Vec<String> = node.conditions_of(next).map(|test| label(&test.text())).collect();
            let on = if tests.is_empty() { String::new() } else { format!("|\"{}\"|", tests.join(" and ")) };
            text.push_str(&format!("    {} -->{on} {}\n", id(&node.name), id(next)));
        }
    }
    let marked: Vec<String> =
        flow.nodes.iter().filter(|node| entered.contains(&node.name)).map(|node| id(&node.name)).collect();
    if !marked.is_empty() {
        text.push_str("    classDef entered stroke-width:3px\n");
        text.push_str(&format!("    class {} entered\n", marked.join(",")));
    }
    text
}

/// The shape of a node: a diamond where something is decided, rounded at an end.
fn shape(node: &Node) -> String {
    let name = label(&node.name);
    match (&node.kind, node.is_end()) {
        (NodeKind::Approval { .. } | NodeKind::Condition, _) => format!("{{\"{name}\"}}"),
        (_, true) => format!("([\"{name}\"])"),
        (_, false) => format!("[\"{name}\"]"),
    }
}

/// Text within quotes: Mermaid has no escape but entities.
fn label(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' => "#quot;".to_owned(),
            '<' => "#lt;".to_owned(),
            '>' => "#gt;".to_owned(),
            '#' => "#35;".to_owned(),
            '|' => "#124;".to_owned(),
            c if c.is_control() => " ".to_owned(),
            c => c.to_string(),
        })
        .collect()
}
