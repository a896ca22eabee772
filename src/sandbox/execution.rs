//! The execution of one program, in a worker.

use jiff::tz::TimeZone;
use monty::{MontyRepl, ReplFunctionCall, ReplNameLookup, ReplOsCall, ReplProgress, ReplStartError};
use monty_types::{
    CompileOptions, DictPairs, ExcType, ExtFunctionResult, MontyClassInstance, MontyClassType, MontyDate,
    MontyDateTime, MontyException, MontyObject, MontyTimeZone, MontyUuid, NameLookupResult, OsFunctionCall,
    PrintWriter, ResourceLimits, ResourceTracker,
};
use serde_json::{Map, Value};
use std::time::Duration;

use super::printed::Printed;
use super::protocol::{MAX_ARGUMENT_BYTES, MAX_MESSAGE_CHARS, MAX_SOURCE_BYTES, MAX_VALUE_BYTES};
use super::source::asynchronous;
use super::values::{from_json, to_json};
use crate::program::names::KEYWORDS;
use crate::program::{
    Finished, PastCall, PastOutcome, Program, ProgramCall, ProgramEntry, ProgramFault, ProgramFunction, Stop,
};

/// The name under which a program catches the error of a call.
const PRELUDE: &str = "ToolError = RuntimeError";

/// The name of what the host says about a call of a tool in Python.
const CONTEXT: &str = "context";

/// The name of the arguments of such a call.
const ARGUMENTS: &str = "__arguments__";

/// The depth of calls of functions within the program.
const MAX_RECURSION: usize = 200;

pub(super) fn execute(program: &Program) -> Stop {
    let mut printed = Printed::new(program.limits.printed_bytes);
    let mut execution = Execution { program, scenes: scenes(&program.functions), made: 0, is_entered: false };
    match execution.run(&mut printed) {
        Ok(LeftValues { status, answer_text, answer_rows, dry_run, returned }) => {
            let (printed, cut) = printed.into_parts();
            Stop::Finished(Finished { printed, cut, status, answer_text, answer_rows, returned, dry_run })
        }
        Err(Halt::Call { call, line }) => Stop::Call { call, line },
        Err(Halt::Fault(ExecutionFault { code, message, line })) => {
            let (printed, _) = printed.into_parts();
            let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
            Stop::Fault(ProgramFault { code: code.to_owned(), message, line, printed })
        }
    }
}

/// The values that a program leaves at its end.
#[derive(Default)]
struct LeftValues {
    status: Option<Value>,
    answer_text: Option<Value>,
    answer_rows: Option<Value>,
    dry_run: Option<Value>,
    /// What a tool in Python returned.
    returned: Option<Value>,
}

/// Why an execution ends before the program does.
enum Halt {
    /// At a call that was not made before.
    Call {
        call: ProgramCall,
        line: Option<u32>,
    },
    Fault(ExecutionFault),
}

struct ExecutionFault {
    code: &'static str,
    message: String,
    line: Option<u32>,
}

impl ExecutionFault {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), line: None }
    }

    fn at(self, line: Option<u32>) -> Self {
        Self { line, ..self }
    }
}

impl From<ExecutionFault> for Halt {
    fn from(fault: ExecutionFault) -> Self {
        Self::Fault(fault)
    }
}

/// Where the interpreter is after a step, or the error that the program did not catch.
type Progress = Result<ReplProgress, Box<ReplStartError>>;

struct Execution<'p> {
    program: &'p Program,
    /// The names of the scenes. The place of a name is the identity of its object.
    scenes: Vec<&'p str>,
    /// The calls that were made.
    made: usize,
    /// Whether the source was executed, and its function is called.
    is_entered: bool,
}

impl Execution<'_> {
    fn run(&mut self, printed: &mut Printed) -> Result<LeftValues, Halt> {
        let program = self.program;
        if program.source.len() > MAX_SOURCE_BYTES {
            let message =
                format!("the program has {} bytes; at most {MAX_SOURCE_BYTES}", program.source.len());
            return Err(ExecutionFault::new("code.refused", message).into());
        }
        if let Some((word, line)) = asynchronous(&program.source) {
            let message =
                format!("`{word}` is not available: call functions one after the other, without `await`");
            return Err(ExecutionFault::new("code.refused", message).at(Some(line)).into());
        }
        let limits = ResourceLimits::default()
            .max_duration(Duration::from_millis(program.limits.time_ms))
            .max_memory(usize::try_from(program.limits.memory_bytes).unwrap_or(usize::MAX))
            .max_recursion_depth(MAX_RECURSION);
        let mut repl = MontyRepl::new("program", ResourceTracker::new(limits), CompileOptions::default());
        repl.feed_run(PRELUDE, Vec::new(), PrintWriter::Disabled).map_err(|error| self.fault_of(&error))?;
        let object = |(at, name): (usize, &&str)| ((*name).to_owned(), scene_object(name, at));
        let mut objects: Vec<_> = self.scenes.iter().enumerate().map(object).collect();
        objects.extend(program.entry.as_ref().map(|entry| (CONTEXT.to_owned(), from_json(&entry.context))));
        let progress = repl.feed_start(&program.source, objects, printed.writer());
        let (repl, _) = self.complete(progress, printed)?;
        match &program.entry {
            None => Ok(self.finish(repl)?),
            Some(entry) => self.enter(repl, entry, printed),
        }
    }

    /// Executes what was begun to its end; the value of its last expression.
    fn complete(
        &mut self,
        mut progress: Progress,
        printed: &mut Printed,
    ) -> Result<(MontyRepl, MontyObject), Halt> {
        loop {
            progress = match progress {
                Err(failed) => return Err(self.fault_of(&failed.error).into()),
                Ok(ReplProgress::Complete { repl, value }) => return Ok((repl, value)),
                Ok(ReplProgress::FunctionCall(call)) => self.call(call, printed)?,
                Ok(ReplProgress::NameLookup(lookup)) => self.name(lookup, printed),
                Ok(ReplProgress::OsCall(call)) => self.system(call, printed)?,
                Ok(ReplProgress::ResolveFutures(_)) => {
                    let message = "functions are called without `await`";
                    return Err(ExecutionFault::new("code.refused", message).into());
                }
            };
        }
    }

    /// Calls the function of a tool in Python.
    fn enter(
        &mut self,
        repl: MontyRepl,
        entry: &ProgramEntry,
        printed: &mut Printed,
    ) -> Result<LeftValues, Halt> {
        self.is_entered = true;
        let named = entry.arguments.keys().map(|name| format!("{name}={ARGUMENTS}[{name:?}]"));
        let call = format!("{}({})", entry.function, named.collect::<Vec<_>>().join(", "));
        let arguments = from_json(&Value::Object(entry.arguments.clone()));
        let progress = repl.feed_start(&call, vec![(ARGUMENTS.to_owned(), arguments)], printed.writer());
        let (_, value) = self.complete(progress, printed)?;
        self.check_calls()?;
        let mut left = MAX_VALUE_BYTES;
        let returned = to_json(value, &mut left).map_err(|why| {
            ExecutionFault::new("code.arguments", format!("what `{}` returns {why}", entry.function))
        })?;
        Ok(LeftValues { returned: Some(returned), ..LeftValues::default() })
    }

    /// All calls were made that were made when the program ran before.
    fn check_calls(&self) -> Result<(), ExecutionFault> {
        let Some(past) = self.program.calls.get(self.made) else { return Ok(()) };
        let message = format!(
            "the program ended after {} calls, and made `{}` next when it ran before",
            self.made, past.call.function
        );
        Err(ExecutionFault::new("code.diverged", message))
    }

    /// The name of the scene whose object has this identity.
    fn scene(&self, id: MontyUuid) -> Option<&str> {
        self.scenes.iter().enumerate().find(|(at, _)| scene_id(*at) == id).map(|(_, name)| *name)
    }

    /// A call of a function: the recorded outcome, or the end of this execution.
    fn call(&mut self, mut call: ReplFunctionCall, printed: &mut Printed) -> Result<Progress, Halt> {
        let name = match call.object_id {
            Some(id) => format!("{}.{}", self.scene(id).unwrap_or("object"), call.function_name),
            None => call.function_name.clone(),
        };
        if self.program.entry.is_some() && !self.is_entered {
            let message = format!("`{name}` is called outside of the functions of the file");
            return Err(ExecutionFault::new("code.refused", message).at(line_of(call, printed)).into());
        }
        let Some(function) = self.function(&name) else {
            let message = self.unknown(&name);
            let error = MontyException::new(ExcType::AttributeError, Some(message));
            return Ok(call.resume(ExtFunctionResult::Error(error), printed.writer()));
        };
        let arguments = arguments(function, std::mem::take(&mut call.args), std::mem::take(&mut call.kwargs));
        let arguments = match arguments {
            Ok(arguments) => arguments,
            Err(message) => {
                return Err(ExecutionFault::new("code.arguments", message).at(line_of(call, printed)).into());
            }
        };
        let made = ProgramCall { function: name, arguments };
        let at = self.made;
        if at >= usize::try_from(self.program.limits.calls).unwrap_or(usize::MAX) {
            let message = format!("the program makes more than {} calls", self.program.limits.calls);
            return Err(ExecutionFault::new("code.calls", message).at(line_of(call, printed)).into());
        }
        self.made += 1;
        let Some(PastCall { call: past, outcome }) = self.program.calls.get(at) else {
            let line = line_of(call, printed);
            return Err(Halt::Call { call: made, line });
        };
        if *past != made {
            return Err(diverged(at, &made, past).at(line_of(call, printed)).into());
        }
        let result = match outcome {
            PastOutcome::Returned(value) => ExtFunctionResult::Return(from_json(value)),
            PastOutcome::Raised(message) => {
                ExtFunctionResult::Error(MontyException::new(ExcType::RuntimeError, Some(message.clone())))
            }
        };
        Ok(call.resume(result, printed.writer()))
    }

    fn function(&self, name: &str) -> Option<&ProgramFunction> {
        self.program.functions.iter().find(|function| function.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let scene = scene_of(name);
        let of_scene = self.program.functions.iter().filter(|function| scene_of(&function.name) == scene);
        let names: Vec<String> = of_scene.map(|function| format!("`{}`", function.name)).collect();
        format!("there is no function `{name}`; there are {}", names.join(", "))
    }

    /// The value of a name that the program did not define.
    fn name(&self, lookup: ReplNameLookup, printed: &mut Printed) -> Progress {
        let found = match lookup.object_id() {
            None => NameLookupResult::Undefined,
            Some(id) => {
                let name = self.scene(id).map(|scene| format!("{scene}.{}", lookup.name));
                match name.filter(|name| self.function(name).is_some()) {
                    Some(name) => NameLookupResult::Value(MontyObject::Function { name, docstring: None }),
                    None => NameLookupResult::Undefined,
                }
            }
        };
        lookup.resume(found, printed.writer())
    }

    /// What a program asks of the system: its clock, which stands still; everything else ends it.
    fn system(&self, call: ReplOsCall, printed: &mut Printed) -> Result<Progress, Halt> {
        let now = jiff::Timestamp::from_millisecond(self.program.now_ms).unwrap_or_default();
        let value = match &call.function_call {
            OsFunctionCall::DateToday => date(&now.to_zoned(self.local())),
            OsFunctionCall::DateTimeNow(zone) => date_time(now, zone.as_ref(), self.local()),
            other => {
                let message = format!("`{}` is not available to a program", other.name());
                let line = line_of_error(call.abort(stopped(), printed.writer()));
                return Err(ExecutionFault::new("code.refused", message).at(line).into());
            }
        };
        Ok(call.resume(value, printed.writer()))
    }

    /// The time zone of a program: of a tool in Python, that of its run.
    fn local(&self) -> TimeZone {
        let seconds = self.program.entry.as_ref().map_or(0, |entry| entry.utc_offset_s);
        jiff::tz::Offset::from_seconds(seconds).map_or(TimeZone::UTC, TimeZone::fixed)
    }

    /// Reads what the program left.
    fn finish(&self, mut repl: MontyRepl) -> Result<LeftValues, ExecutionFault> {
        self.check_calls()?;
        let mut left = MAX_VALUE_BYTES;
        let mut values = [None, None, None, None];
        for (name, place) in ["STATUS", "answer_text", "answer_rows", "DRY_RUN"].into_iter().zip(&mut values)
        {
            let read = repl.feed_start(name, Vec::new(), PrintWriter::Disabled);
            let progress = read.map_err(|failed| self.fault_of(&failed.error))?;
            repl = match progress {
                ReplProgress::Complete { repl, value } => {
                    let json = to_json(value, &mut left);
                    let json =
                        json.map_err(|why| ExecutionFault::new("code.arguments", format!("`{name}` {why}")))?;
                    *place = Some(json);
                    repl
                }
                other => other.into_repl(),
            };
        }
        let [status, answer_text, answer_rows, dry_run] = values;
        Ok(LeftValues { status, answer_text, answer_rows, dry_run, returned: None })
    }

    /// The fault that an exception of the interpreter means.
    fn fault_of(&self, error: &MontyException) -> ExecutionFault {
        let message = error.message().unwrap_or_default();
        let code = match error.exc_type() {
            ExcType::SyntaxError => "code.syntax",
            // Syntax that the interpreter does not have.
            ExcType::NotImplementedError if message.contains("monty") || message.starts_with("Wildcard") => {
                "code.syntax"
            }
            ExcType::TimeoutError if message.starts_with("time limit exceeded") => "code.time",
            ExcType::MemoryError => "code.memory",
            _ => "code.error",
        };
        let message = match code {
            "code.time" => "the program takes too much time".to_owned(),
            "code.memory" => "the program uses too much memory".to_owned(),
            _ if error.exc_type() == ExcType::RuntimeError && self.was_raised(message) => {
                format!("ToolError: {message}")
            }
            _ => error.summary(),
        };
        // The call of the function is not a line of the source.
        let is_own = self.is_entered && error.traceback().len() < 2;
        ExecutionFault { code, message, line: line(error).filter(|_| !is_own) }
    }

    /// Whether a call that was made raised this message.
    fn was_raised(&self, message: &str) -> bool {
        let made = self.program.calls.iter().take(self.made);
        made.into_iter().any(|past| matches!(&past.outcome, PastOutcome::Raised(raised) if raised == message))
    }
}

fn scene_of(function: &str) -> &str {
    function.split_once('.').map_or(function, |(scene, _)| scene)
}

/// The names of the scenes that a program can write, sorted.
fn scenes(functions: &[ProgramFunction]) -> Vec<&str> {
    let mut names: Vec<&str> = functions.iter().map(|function| scene_of(&function.name)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| is_identifier(name));
    names
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !KEYWORDS.contains(&name)
}

/// The identity of the scene at this place of the sorted names.
fn scene_id(at: usize) -> MontyUuid {
    MontyUuid::from_u128((at as u128) << 1 | 1)
}

fn scene_object(name: &str, at: usize) -> MontyObject {
    let class_type = MontyClassType {
        name: name.to_owned(),
        id: MontyUuid::from_u128((at as u128 + 1) << 1),
        host_defined: true,
        is_dataclass: false,
        attrs: DictPairs::from(Vec::new()),
    };
    let attrs = DictPairs::from(Vec::new());
    MontyObject::ClassInstance(Box::new(MontyClassInstance { class_type, instance_id: scene_id(at), attrs }))
}

/// The arguments by name, or what is wrong with them.
fn arguments(
    function: &ProgramFunction,
    positional: Vec<MontyObject>,
    named: Vec<(MontyObject, MontyObject)>,
) -> Result<Map<String, Value>, String> {
    let of = &function.name;
    if positional.len() > function.parameters.len() {
        let parameters = function.parameters.join(", ");
        return Err(format!("`{of}` gets {} arguments; its parameters are ({parameters})", positional.len()));
    }
    let mut left = MAX_ARGUMENT_BYTES;
    let mut arguments = Map::new();
    let positional = function.parameters.iter().cloned().zip(positional);
    let named = named.into_iter().map(|(name, value)| match name {
        MontyObject::String(name) => (name, value),
        other => (other.py_repr(), value),
    });
    for (name, value) in positional.chain(named) {
        let json =
            to_json(value, &mut left).map_err(|why| format!("the argument `{name}` of `{of}` {why}"))?;
        left = left.saturating_sub(name.len());
        if arguments.insert(name.clone(), json).is_some() {
            return Err(format!("`{of}` gets the argument `{name}` twice"));
        }
    }
    Ok(arguments)
}

fn diverged(at: usize, made: &ProgramCall, past: &ProgramCall) -> ExecutionFault {
    let number = at + 1;
    let what = if made.function == past.function {
        format!("call {number}, `{}`, has other arguments than when the program ran before", made.function)
    } else {
        format!(
            "call {number} is `{}`, and was `{}` when the program ran before",
            made.function, past.function
        )
    };
    ExecutionFault::new("code.diverged", what)
}

/// The exception that ends an execution that is not continued. Programs cannot catch it.
fn stopped() -> MontyException {
    MontyException::new(ExcType::RuntimeError, Some("stopped".to_owned()))
}

/// The line of a call, by ending the execution there.
fn line_of(call: ReplFunctionCall, printed: &mut Printed) -> Option<u32> {
    line_of_error(call.abort(stopped(), printed.writer()))
}

fn line_of_error(ended: Progress) -> Option<u32> {
    ended.err().and_then(|failed| line(&failed.error))
}

fn line(error: &MontyException) -> Option<u32> {
    error.traceback().last().map(|frame| frame.start.line)
}

fn date(now: &jiff::Zoned) -> MontyObject {
    MontyObject::Date(MontyDate {
        year: now.year().into(),
        month: positive(now.month()),
        day: positive(now.day()),
    })
}

fn date_time(now: jiff::Timestamp, zone: Option<&MontyTimeZone>, local: TimeZone) -> MontyObject {
    let offset = zone.and_then(|zone| jiff::tz::Offset::from_seconds(zone.offset_seconds).ok());
    let now = now.to_zoned(offset.map_or(local, TimeZone::fixed));
    MontyObject::DateTime(MontyDateTime {
        year: now.year().into(),
        month: positive(now.month()),
        day: positive(now.day()),
        hour: positive(now.hour()),
        minute: positive(now.minute()),
        second: positive(now.second()),
        microsecond: u32::try_from(now.subsec_nanosecond() / 1000).unwrap_or_default(),
        offset_seconds: zone.map(|zone| zone.offset_seconds),
        timezone_name: zone.and_then(|zone| zone.name.clone()),
    })
}

/// A part of a date or time.
fn positive(part: i8) -> u8 {
    u8::try_from(part).unwrap_or_default()
}
