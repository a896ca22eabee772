//! The workers of a process: how they are started, kept and ended, and what their replies mean.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use tokio::runtime::Handle;

use super::frame::frame;
use super::module_reader;
use super::places::{WorkerPlace, WorkerPlaces};
use super::protocol::{
    MAX_ARGUMENT_BYTES, MAX_MESSAGE_CHARS, MAX_PROGRAM_BYTES, MAX_SOURCE_BYTES, MAX_VALUE_BYTES,
    PARENT_GRACE_MS, WORKER_GRACE_MS,
};
use super::worker_process::{ExceededLimit, WorkerFailure, WorkerProcess};
use super::{Options, ProgramCounts};
use crate::mutex::lock;
use crate::nesting::is_too_deep;
use crate::program::module::ReadModule;
use crate::program::{
    ExecutedProgram, Finished, Interpreter, Program, ProgramEntry, ProgramFault, ProgramFunction,
    ProgramLimits, Stop, Unavailable,
};

/// How many programs a worker executes before another takes its place.
const MAX_SERVED: u32 = 500;

/// How long a worker waits for its program's next execution: a call may wait for a person for days.
const IDLE: Duration = Duration::from_secs(30);

/// A worker, and the program that it executes.
#[derive(Debug)]
struct OwnedWorker {
    process: WorkerProcess,
    of: Identity,
    /// Since when it has executed nothing.
    idle_since: Instant,
}

impl OwnedWorker {
    fn new(process: WorkerProcess, of: Identity) -> Self {
        Self { process, of, idle_since: Instant::now() }
    }
}

/// What makes two executions those of one program; the seed tells those of different runs, and so of tenants, apart. An
/// interpreter that a program took over sees no other program: a worker executes one program only, though often, as its
/// calls return.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    source: String,
    seed: u64,
    now_ms: i64,
    functions: Vec<ProgramFunction>,
    entry: Option<ProgramEntry>,
}

impl Identity {
    fn of(program: &Program) -> Self {
        let Program { source, seed, now_ms, functions, entry, .. } = program;
        Self {
            source: source.clone(),
            seed: *seed,
            now_ms: *now_ms,
            functions: functions.clone(),
            entry: entry.clone(),
        }
    }
}

/// Executes programs in worker processes; clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    state: Arc<PoolState>,
    /// Where processes are watched.
    runtime: Option<Handle>,
    counts: ProgramCounts,
}

#[derive(Debug)]
struct PoolState {
    options: Options,
    places: WorkerPlaces,
    /// Workers that wait for their program's next execution, the oldest first.
    idle: Mutex<Vec<OwnedWorker>>,
    /// Workers that have executed nothing.
    spare: Mutex<Vec<WorkerProcess>>,
    /// Whether a spare worker is being started.
    starting: AtomicBool,
    /// Whether idle workers are being looked after.
    reaping: AtomicBool,
    reported: AtomicBool,
}

impl Pool {
    /// A pool without workers; they are started when they are needed.
    pub fn new(options: Options) -> Self {
        let state = PoolState {
            places: WorkerPlaces::new(options.workers),
            options,
            idle: Mutex::default(),
            spare: Mutex::default(),
            starting: AtomicBool::new(false),
            reaping: AtomicBool::new(false),
            reported: AtomicBool::new(false),
        };
        Self { state: Arc::new(state), runtime: None, counts: ProgramCounts::default() }
    }

    /// Watches processes on this runtime, which outlives the pool, and not on the one of the first that asks.
    #[must_use]
    pub fn on(self, runtime: Handle) -> Self {
        Self { runtime: Some(runtime), ..self }
    }

    /// Counts executions there.
    #[must_use]
    pub fn counted(self, counts: ProgramCounts) -> Self {
        Self { counts, ..self }
    }

    /// Starts as many workers as may execute at once, so that the first programs need not wait for them.
    ///
    /// # Errors
    /// If there is no worker.
    pub async fn warm(&self) -> Result<(), Unavailable> {
        let state = &self.state;
        while lock(&state.spare).len() < state.options.workers {
            let process = self.start().await?;
            lock(&state.spare).push(process);
        }
        Ok(())
    }
}

#[async_trait]
impl Interpreter for Pool {
    async fn execute(&self, program: &Program) -> Result<Stop, Unavailable> {
        self.execute_for("", program).await.map(|executed| executed.stop)
    }

    async fn execute_for(&self, tenant: &str, program: &Program) -> Result<ExecutedProgram, Unavailable> {
        let mut time = Duration::ZERO;
        let ended = self.ended(tenant, program, &mut time).await;
        self.counts.record(&ended);
        // Each counts: a thousand executions of half a millisecond take time.
        let millis = u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        Ok(ExecutedProgram { stop: ended?, millis: Some(millis) })
    }

    fn limits(&self) -> ProgramLimits {
        self.state.options.limits()
    }

    fn read_module(&self, source: &str) -> Result<ReadModule, Unavailable> {
        module_reader::read(self.state.options.worker.as_deref(), source)
    }
}

impl Pool {
    /// Where a program stops; `time` becomes the time that a worker took for it.
    async fn ended(&self, tenant: &str, program: &Program, time: &mut Duration) -> Result<Stop, Unavailable> {
        let state = &self.state;
        if program.source.len() > MAX_SOURCE_BYTES {
            let message =
                format!("the program has {} bytes; at most {MAX_SOURCE_BYTES}", program.source.len());
            return Ok(fault("code.refused", message));
        }
        let program = state.bounded(program);
        let Ok(frame) = frame(&program, MAX_PROGRAM_BYTES) else {
            return Ok(fault("code.refused", "the program and the results of its calls are too large"));
        };
        let _place = state.place(tenant).await?;
        let mut worker = self.worker(&program).await?;
        let grace = WORKER_GRACE_MS + PARENT_GRACE_MS;
        let deadline = Duration::from_millis(program.limits.time_ms.saturating_add(grace));
        let begun = Instant::now();
        let replied = worker.process.execute(&frame, deadline).await;
        *time = begun.elapsed();
        match replied {
            Ok(reply) => {
                let stop = checked(reply.stop, &program);
                // Only a program that goes on is executed again.
                let goes_on = matches!(stop, Stop::Call { .. });
                if goes_on && reply.reusable && worker.process.served < MAX_SERVED {
                    state.keep(worker);
                    self.reap();
                }
                Ok(stop)
            }
            // The worker is dropped, and with that killed.
            Err(failure) => Ok(failure_stop(&failure)),
        }
    }

    /// A worker for this program: the one that has executed it before, one that has executed nothing, or another one.
    async fn worker(&self, program: &Program) -> Result<OwnedWorker, Unavailable> {
        let of = Identity::of(program);
        while let Some(mut worker) = self.state.take(&of) {
            if !worker.process.has_ended() {
                return Ok(worker);
            }
        }
        while let Some(mut process) = self.state.take_spare() {
            if !process.has_ended() {
                self.prepare();
                return Ok(OwnedWorker::new(process, of));
            }
        }
        let process = self.start().await?;
        self.prepare();
        Ok(OwnedWorker::new(process, of))
    }

    /// Starts a spare worker meanwhile, so that the next program need not wait for one.
    fn prepare(&self) {
        let state = &self.state;
        if !lock(&state.spare).is_empty() || state.starting.swap(true, Relaxed) {
            return;
        }
        let pool = self.clone();
        let starting = async move {
            // An error occurs again where a worker is needed, and is reported there.
            if let Ok(process) = pool.start().await {
                lock(&pool.state.spare).push(process);
            }
            pool.state.starting.store(false, Relaxed);
        };
        self.spawn(starting);
    }

    /// Ends workers whose program does not go on, as long as there are any.
    fn reap(&self) {
        if self.state.reaping.swap(true, Relaxed) {
            return;
        }
        let state = Arc::downgrade(&self.state);
        self.spawn(async move {
            loop {
                tokio::time::sleep(IDLE).await;
                let Some(state) = state.upgrade() else { return };
                let mut idle = lock(&state.idle);
                idle.retain(|worker| worker.idle_since.elapsed() < IDLE);
                if idle.is_empty() {
                    // Before the list is free for the next idle worker.
                    state.reaping.store(false, Relaxed);
                    return;
                }
            }
        });
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.runtime {
            Some(runtime) => drop(runtime.spawn(task)),
            None => drop(tokio::spawn(task)),
        }
    }

    async fn start(&self) -> Result<WorkerProcess, Unavailable> {
        let options = &self.state.options;
        let Some(path) = options.worker.clone() else {
            let message =
                "no program is a worker: set `sandbox.worker`, and call `worker_main` in that program";
            return Err(unavailable(message));
        };
        let memory_mib = options.memory_mib;
        // All executions of a worker together; each has its own, stricter bound.
        let seconds = (options.time_ms / 1000 + 1).saturating_mul(u64::from(MAX_SERVED));
        let starting = async move { WorkerProcess::start(&path, memory_mib, seconds).await };
        let started = match &self.runtime {
            Some(runtime) => runtime.spawn(starting).await.map_err(|error| unavailable(error.to_string()))?,
            None => starting.await,
        };
        let (worker, missing) = started.map_err(unavailable)?;
        if !missing.is_empty() && !self.state.reported.swap(true, Relaxed) {
            let missing = missing.join(", ");
            tracing::warn!(
                code = "sandbox.confinement",
                missing,
                "the kernel lacks some of what confines programs"
            );
        }
        Ok(worker)
    }
}

impl PoolState {
    /// The idle worker of this program.
    fn take(&self, program: &Identity) -> Option<OwnedWorker> {
        let mut idle = lock(&self.idle);
        let at = idle.iter().position(|worker| worker.of == *program)?;
        Some(idle.remove(at))
    }

    fn take_spare(&self) -> Option<WorkerProcess> {
        lock(&self.spare).pop()
    }

    /// Keeps a worker for the next execution of its program, in place of the oldest if there are too many.
    fn keep(&self, mut worker: OwnedWorker) {
        worker.idle_since = Instant::now();
        let mut idle = lock(&self.idle);
        if idle.len() >= self.options.workers.max(1) {
            idle.remove(0);
        }
        idle.push(worker);
    }

    /// The program, with bounds that the workers can keep.
    fn bounded(&self, program: &Program) -> Program {
        let max = self.options.limits();
        let ProgramLimits { time_ms, total_ms, memory_bytes, printed_bytes, calls } = program.limits;
        let limits = ProgramLimits {
            time_ms: time_ms.min(max.time_ms),
            total_ms,
            memory_bytes: memory_bytes.min(max.memory_bytes),
            printed_bytes: printed_bytes.min(max.printed_bytes),
            calls: calls.min(max.calls),
        };
        Program { limits, ..program.clone() }
    }

    /// Waits for a place among the workers, within bounds.
    async fn place(&self, tenant: &str) -> Result<WorkerPlace, Unavailable> {
        let wait = Duration::from_millis(self.options.wait_ms);
        self.places.take(tenant, wait).await.ok_or_else(busy)
    }
}

fn busy() -> Unavailable {
    let message = "all workers execute other programs: try again, or raise `sandbox.workers`".to_owned();
    Unavailable { code: "sandbox.busy", message }
}

pub(super) fn unavailable(message: impl Into<String>) -> Unavailable {
    Unavailable { code: "sandbox.unavailable", message: message.into() }
}

fn fault(code: &str, message: impl Into<String>) -> Stop {
    let (code, message) = (code.to_owned(), message.into());
    Stop::Fault(ProgramFault { code, message, line: None, printed: String::new() })
}

/// What the end of a worker means for its program.
fn failure_stop(failure: &WorkerFailure) -> Stop {
    match failure.exceeded_limit() {
        Some(ExceededLimit::Time | ExceededLimit::Processor) => {
            return fault("code.time", "the program takes too much time");
        }
        Some(ExceededLimit::Memory) => return fault("code.memory", "the program uses too much memory"),
        None => {}
    }
    match failure {
        WorkerFailure::Ended(status) => {
            let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
            tracing::warn!(
                code = "code.crashed",
                status,
                "a worker of the sandbox ended while it executed a program"
            );
        }
        WorkerFailure::Garbled | WorkerFailure::Late => {
            tracing::warn!(code = "code.crashed", "a worker of the sandbox replied something unreadable");
        }
    }
    fault("code.crashed", "the interpreter failed on this program: write it in a simpler way")
}

/// The reply of a worker, if it keeps the bounds that the worker was given. A worker whose interpreter was taken over could
/// reply anything.
fn checked(stop: Stop, program: &Program) -> Stop {
    let limits = program.limits;
    let holds = match &stop {
        Stop::Call { call, .. } => {
            program.functions.iter().any(|function| function.name == call.function)
                && written(call.arguments.values()) <= MAX_ARGUMENT_BYTES
                && program.calls.len() < usize::try_from(limits.calls).unwrap_or(usize::MAX)
                && !is_too_deep(call.arguments.values())
        }
        Stop::Finished(finished) => {
            let Finished { status, answer_text, answer_rows, returned, dry_run, .. } = finished;
            let values = [status, answer_text, answer_rows, returned, dry_run];
            finished.printed.len() <= limits.printed_bytes
                && written(values.into_iter().flatten()) <= MAX_VALUE_BYTES
                && !is_too_deep(values.into_iter().flatten())
        }
        Stop::Fault(fault) => {
            fault.printed.len() <= limits.printed_bytes
                && FAULT_CODES.contains(&fault.code.as_str())
                && fault.message.chars().count() <= MAX_MESSAGE_CHARS
        }
    };
    if holds { stop } else { failure_stop(&WorkerFailure::Garbled) }
}

/// The bytes of these values as JSON, of which a reply holds no more than a frame.
fn written<'v>(values: impl IntoIterator<Item = &'v Value>) -> usize {
    values.into_iter().map(|value| value.to_string().len()).sum()
}

/// The faults that a worker finds.
const FAULT_CODES: [&str; 8] = [
    "code.arguments", "code.calls", "code.diverged", "code.error", "code.memory", "code.refused",
    "code.syntax", "code.time",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_worker_is_an_error_and_nothing_is_executed() {
        let missing = Options { worker: Some("/nonexistent/worker".into()), ..Options::default() };
        for options in [Options::default(), missing] {
            let pool = Pool::new(options);
            let error = pool.execute(&program("1")).await.unwrap_err();
            assert_eq!(error.code, "sandbox.unavailable");
            assert_eq!(pool.warm().await.unwrap_err().code, "sandbox.unavailable");
        }
    }

    #[tokio::test]
    async fn program_that_is_no_worker_is_none() {
        let pool = Pool::new(Options { worker: Some("/bin/true".into()), ..Options::default() });
        let error = pool.execute(&program("1")).await.unwrap_err();
        assert!(error.message.contains("ended before it was confined"), "{error}");
    }

    fn program(source: &str) -> Program {
        Program {
            source: source.to_owned(),
            functions: Vec::new(),
            now_ms: 0,
            seed: 0,
            calls: Vec::new(),
            limits: Options::default().limits(),
            entry: None,
        }
    }
}
