//! Tools in Python: functions of the `tools.py` beside a `scene.toml`, executed in the sandbox.
//!
//! A function sees its arguments and `context`, and calls what its tool declares of the host, nothing else ([`host`]). It has no
//! effect by itself: changes of the scene's tables are staged, and committed together once it has returned and its result was
//! checked. So whatever fails before that has done nothing. The commit keeps the result: the same idempotency key commits once,
//! and a repeated call gets the result of the first one.

pub mod host;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::bound::{MAX_STORED_BYTES, size};
use super::{TableSession, Tool, ToolContext, ToolError, ToolErrorKind};
use crate::invisible::one_line;
use crate::program::{
    Interpreter, PastCall, PastOutcome, Program, ProgramCall, ProgramEntry, ProgramFault, ProgramFunction,
    Stop, Unavailable,
};
use crate::run::FaultClass;
use host::{HostRequest, REFUSE, REQUESTS, TABLES};

/// The file of a scene's functions.
pub const TOOLS_FILE: &str = "tools.py";

/// How often a call is executed whose rows change meanwhile.
const MAX_ROUNDS: u32 = 3;

/// The fault code of staged changes whose rows changed meanwhile.
const CONFLICT: &str = "staged.conflict";

/// Maximum number of bytes of JSON that the calls of one execution return together: each execution gets all of them again.
const MAX_READ_BYTES: usize = 2 * 1024 * 1024;

/// The longest refusal, in characters.
const MAX_REFUSAL_CHARS: usize = 300;

/// When a call may be repeated for which no worker was free.
const BUSY_DELAY: Duration = Duration::from_secs(1);

/// A tool that is a function in Python.
#[derive(Debug)]
pub struct PythonTool {
    source: Arc<str>,
    function: String,
    /// The names of the parameters in the schema and in Python.
    parameters: Vec<(String, String)>,
    host: Vec<ProgramFunction>,
    requests: Vec<HostRequest>,
    writes: bool,
    timeout: Duration,
}

/// The terms of a tool in Python.
#[derive(Debug, Clone)]
pub struct PythonToolTerms {
    /// The text of `tools.py`.
    pub source: Arc<str>,
    /// The function in it.
    pub function: String,
    /// The names of its parameters in the schema and in Python.
    pub parameters: Vec<(String, String)>,
    /// The functions of tables that it may call, of [`host::TABLE_FUNCTIONS`].
    pub host: Vec<String>,
    /// The HTTP requests that it may make.
    pub requests: Vec<HostRequest>,
    /// Whether it changes tables.
    pub writes: bool,
    /// The timeout of one call, in milliseconds.
    pub timeout_ms: u64,
}

impl PythonTool {
    /// The tool.
    pub fn new(terms: PythonToolTerms) -> Self {
        let PythonToolTerms { source, function, parameters, host, requests, writes, timeout_ms } = terms;
        // Its deadline is before the caller's, which cannot tell whether a write was committed: a commit has this time.
        let spare = (timeout_ms / 10).min(1_000);
        let timeout = Duration::from_millis(timeout_ms - spare);
        let host = host::functions(&host, &requests, writes);
        Self { source, function, parameters, host, requests, writes, timeout }
    }

    /// Executes the function once, and commits what it staged.
    async fn execute(
        &self,
        interpreter: &dyn Interpreter,
        context: &ToolContext,
        arguments: &Value,
        deadline: Instant,
    ) -> Result<Value, ToolError> {
        let uses_tables = self.host.iter().any(|function| function.name.starts_with(TABLES));
        let tables = if uses_tables { Some(context.tables()?) } else { None };
        if let Some(tables) = tables.as_ref().filter(|_| self.writes)
            && let Some(done) = tables.committed_result().await?
        {
            return Ok(done);
        }
        let program = self.program(interpreter, context, arguments);
        let mut host = HostState { context, tables, raised: None };
        let returned = timeout_at(deadline, self.returned(interpreter, program, &mut host)).await;
        let returned = returned.unwrap_or_else(|_| {
            let message = format!("`{}` did not end within {} ms", self.function, self.timeout.as_millis());
            Err(ToolError::failed("python.time", message).classed(FaultClass::Timeout))
        })?;
        let bytes = size(&returned);
        if bytes > MAX_STORED_BYTES {
            let message = format!(
                "`{}` returned {bytes} bytes of JSON, and at most {MAX_STORED_BYTES} are allowed",
                self.function
            );
            return Err(ToolError::failed("python.result", message).classed(FaultClass::BadData));
        }
        match host.tables.filter(|_| self.writes) {
            Some(tables) => tables.commit_returning(returned).await,
            None => Ok(returned),
        }
    }

    fn program(&self, interpreter: &dyn Interpreter, context: &ToolContext, arguments: &Value) -> Program {
        let given = |(name, python): &(String, String)| Some((python.clone(), arguments.get(name)?.clone()));
        Program {
            source: self.source.to_string(),
            functions: self.host.clone(),
            now_ms: context.now.timestamp().as_millisecond(),
            // No two runs share a worker.
            seed: context.run.0.as_u64_pair().1,
            calls: Vec::new(),
            limits: interpreter.limits(),
            entry: Some(ProgramEntry {
                function: self.function.clone(),
                arguments: self.parameters.iter().filter_map(given).collect(),
                context: json!({
                    "user": context.principal.user,
                    "language": context.language,
                    "settings": context.settings,
                }),
                utc_offset_s: context.now.offset().seconds(),
            }),
        }
    }

    /// What the function returns, with the host functions that it calls performed.
    async fn returned(
        &self,
        interpreter: &dyn Interpreter,
        mut program: Program,
        host: &mut HostState<'_>,
    ) -> Result<Value, ToolError> {
        let tenant = host.context.principal.tenant.as_str();
        let mut read = 0;
        let max = usize::try_from(program.limits.calls).unwrap_or(usize::MAX);
        loop {
            let executed = interpreter.execute_for(tenant, &program).await;
            match executed.map_err(|error| unavailable(&error))?.stop {
                Stop::Finished(finished) => {
                    tracing::debug!(
                        function = self.function,
                        printed = finished.printed,
                        "a tool in Python ended"
                    );
                    // Nothing returned is null, and a worker's frame has no other word for null.
                    return Ok(finished.returned.unwrap_or_default());
                }
                Stop::Fault(fault) => {
                    let failed = self.failed(&fault);
                    return Err(host.unhandled(&fault).unwrap_or(failed));
                }
                Stop::Call { call, line } => {
                    if program.calls.len() >= max {
                        let message = format!("`{}` makes more than {max} calls", self.function);
                        return Err(ToolError::failed("python.calls", message));
                    }
                    let outcome = self.perform(&call, line, host).await?;
                    if let PastOutcome::Returned(value) = &outcome {
                        read += size(value);
                    }
                    if read > MAX_READ_BYTES {
                        let message = format!(
                            "{}the calls of `{}` returned {read} bytes of JSON together, and at most {MAX_READ_BYTES} are allowed",
                            at(line),
                            self.function
                        );
                        return Err(ToolError::failed("python.calls", message));
                    }
                    program.calls.push(PastCall { call, outcome });
                }
            }
        }
    }

    /// Performs a call of a function of the host. A table that refuses what the function asks for raises an exception in it, as
    /// does a request that fails.
    async fn perform(
        &self,
        call: &ProgramCall,
        line: Option<u32>,
        host: &mut HostState<'_>,
    ) -> Result<PastOutcome, ToolError> {
        if call.function == REFUSE {
            return Err(refusal(&call.arguments, line));
        }
        let name = call.function.strip_prefix(REQUESTS);
        if let Some(request) = self.requests.iter().find(|request| Some(request.name.as_str()) == name) {
            return Ok(host.request(request, &call.arguments).await);
        }
        let is_declared = self.host.iter().any(|function| function.name == call.function);
        let function = call.function.strip_prefix(TABLES).filter(|_| is_declared);
        let (Some(function), Some(tables)) = (function, &mut host.tables) else {
            let message = format!("{}`{}` is not a function of the host", at(line), call.function);
            return Err(ToolError::failed("python.forbidden", message));
        };
        match tables.perform(function, &call.arguments).await {
            Ok(value) => Ok(PastOutcome::Returned(value)),
            Err(error) if error.kind == ToolErrorKind::Refused && error.code != CONFLICT => {
                Ok(PastOutcome::Raised(error.message))
            }
            Err(error) => Err(error),
        }
    }

    /// The failure of a call whose function did not come to its end. Nothing was done.
    fn failed(&self, fault: &ProgramFault) -> ToolError {
        let (code, class) = match fault.code.as_str() {
            "code.time" => ("python.time", FaultClass::Timeout),
            "code.memory" => ("python.memory", FaultClass::Other),
            "code.calls" => ("python.calls", FaultClass::Other),
            "code.crashed" => ("python.crashed", FaultClass::Other),
            "code.refused" => ("python.forbidden", FaultClass::Other),
            "code.arguments" => ("python.result", FaultClass::BadData),
            _ => ("python.error", FaultClass::Other),
        };
        let (function, line) = (&self.function, fault.line);
        tracing::warn!(code, function, line, "a tool in Python failed");
        // These may have values of the user.
        tracing::debug!(
            function,
            why = fault.message,
            printed = fault.printed,
            "how a tool in Python failed"
        );
        ToolError::failed(code, format!("{}{}", at(line), fault.message)).classed(class)
    }
}

/// What the functions of the host work with during one execution.
struct HostState<'c> {
    context: &'c ToolContext,
    tables: Option<TableSession>,
    /// Why the last request failed, and the message that the function gets.
    raised: Option<(ToolError, String)>,
}

impl HostState<'_> {
    async fn request(&mut self, request: &HostRequest, arguments: &Map<String, Value>) -> PastOutcome {
        let made = request.tool.call(self.context.clone(), Value::Object(arguments.clone())).await;
        let made = made.and_then(|value| match size(&value) {
            bytes if bytes <= MAX_STORED_BYTES => Ok(value),
            bytes => {
                let message = format!(
                    "{REQUESTS}{} returned {bytes} bytes of JSON, and at most {MAX_STORED_BYTES} are allowed",
                    request.name
                );
                Err(ToolError::failed("http.too_large", message).classed(FaultClass::BadData))
            }
        });
        match made {
            Ok(value) => PastOutcome::Returned(value),
            Err(error) => {
                // No address and no word of the back end: a function may show its message to a user.
                let status = error.status.map(|status| format!(" {status}")).unwrap_or_default();
                let message = format!("{REQUESTS}{} failed: {}{status}", request.name, error.code);
                self.raised = Some((error, message.clone()));
                PastOutcome::Raised(message)
            }
        }
    }

    /// The failure of the last request, if the function did not handle it.
    fn unhandled(&mut self, fault: &ProgramFault) -> Option<ToolError> {
        let (error, told) = self.raised.take().filter(|_| fault.code == "code.error")?;
        (fault.message == format!("ToolError: {told}")).then_some(error)
    }
}

#[async_trait]
impl Tool for PythonTool {
    async fn call(&self, context: ToolContext, arguments: Value) -> Result<Value, ToolError> {
        let Some(interpreter) = context.interpreter.clone() else {
            let message = "there is no sandbox for tools in Python: use a build with the feature `sandbox` and set \
                           `sandbox.worker`, or give the engine an interpreter";
            return Err(unavailable(&Unavailable {
                code: "sandbox.unavailable",
                message: message.to_owned(),
            }));
        };
        let deadline = Instant::now() + self.timeout;
        let mut rounds = 1;
        loop {
            match self.execute(&*interpreter, &context, &arguments, deadline).await {
                Err(error) if error.code == CONFLICT && rounds < MAX_ROUNDS => rounds += 1,
                Err(error) if error.code == CONFLICT => {
                    return Err(ToolError::failed("python.conflict", error.message));
                }
                ended => return ended,
            }
        }
    }
}

/// The place of a line at the beginning of a message.
fn at(line: Option<u32>) -> String {
    line.map(|line| format!("{TOOLS_FILE}:{line}: ")).unwrap_or_default()
}

fn unavailable(error: &Unavailable) -> ToolError {
    let failed = ToolError::failed(error.code, error.message.clone());
    match error.code {
        "sandbox.busy" => failed.classed(FaultClass::RateLimit).after(Some(BUSY_DELAY)),
        _ => failed.classed(FaultClass::Unavailable),
    }
}

/// The end of a call by `tool.refuse(message)`.
fn refusal(arguments: &Map<String, Value>, line: Option<u32>) -> ToolError {
    let message = one_line(arguments.get("message").and_then(Value::as_str).unwrap_or_default());
    if message.is_empty() || arguments.len() > 1 {
        let message = format!("{}`tool.refuse` takes a text for the user, and nothing else", at(line));
        return ToolError::failed("python.error", message);
    }
    ToolError::refused("python.refused", message.chars().take(MAX_REFUSAL_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests;
