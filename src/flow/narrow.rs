//! A flow without some of its nodes.

use std::collections::BTreeSet;

use super::Flow;

impl Flow {
    /// The flow without `removed` and without the nodes from which no end can be reached any more. If an end can be
    /// reached by other nodes, paths go around the removed ones; otherwise no node is left.
    pub fn without(&self, removed: &BTreeSet<String>) -> Flow {
        let mut left: BTreeSet<&str> = BTreeSet::new();
        // Backwards from the ends. Each round adds a node, or is the last one.
        loop {
            let leads_on = |next: &String| left.contains(next.as_str());
            let found = self.nodes.iter().find(|node| {
                let is_new = !removed.contains(&node.name) && !left.contains(node.name.as_str());
                is_new && (node.is_end() || node.possible_next_nodes.iter().any(leads_on))
            });
            match found {
                Some(node) => left.insert(&node.name),
                None => break,
            };
        }
        let stays = |name: &String| left.contains(name.as_str());
        let mut flow = self.clone();
        flow.nodes.retain(|node| stays(&node.name));
        for node in &mut flow.nodes {
            node.possible_next_nodes.retain(stays);
            node.conditions.retain(|condition| stays(&condition.next));
        }
        flow.entries.retain(stays);
        flow.examples.retain(|example| example.path.iter().all(stays));
        flow
    }
}
