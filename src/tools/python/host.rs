//! The functions of the host that a tool in Python may call.

use std::sync::Arc;

use crate::program::ProgramFunction;
use crate::staged::TableCall;
use crate::tools::Tool;

/// Ends a call as refused, with a text for the user. Each tool may call it.
pub const REFUSE: &str = "tool.refuse";

/// The prefix of functions of tables.
pub const TABLES: &str = "tables.";

/// The functions of the scene's tables, as tools declare them.
pub const TABLE_FUNCTIONS: [&str; 5] =
    ["tables.find", "tables.get", "tables.insert", "tables.update", "tables.delete"];

/// The prefix of HTTP requests.
pub const REQUESTS: &str = "requests.";

/// An HTTP request that a function may make: it only reads.
#[derive(Clone)]
pub struct HostRequest {
    /// Its name, without [`REQUESTS`].
    pub name: String,
    /// What it is given.
    pub parameters: Vec<String>,
    /// The request.
    pub tool: Arc<dyn Tool>,
}

impl std::fmt::Debug for HostRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Those of them that change something.
pub const CHANGES: [&str; 3] = ["tables.insert", "tables.update", "tables.delete"];

/// The functions that a tool may call which declares these. One that reads changes nothing, whatever it declares.
pub(super) fn functions(declared: &[String], requests: &[HostRequest], writes: bool) -> Vec<ProgramFunction> {
    let allowed = declared.iter().filter(|name| writes || !CHANGES.contains(&name.as_str()));
    let tables = allowed.filter_map(|name| {
        let function = name.strip_prefix(TABLES)?;
        Some(function_of(name, TableCall::parameters(function)))
    });
    let requests = requests.iter().map(|request| ProgramFunction {
        name: format!("{REQUESTS}{}", request.name),
        parameters: request.parameters.clone(),
    });
    tables.chain(requests).chain([function_of(REFUSE, &["message"])]).collect()
}

fn function_of(name: &str, parameters: &[&str]) -> ProgramFunction {
    ProgramFunction {
        name: name.to_owned(),
        parameters: parameters.iter().map(|name| (*name).to_owned()).collect(),
    }
}
