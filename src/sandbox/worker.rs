//! The process that executes programs, or reads a file of functions, from its start to its end.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use super::confinement::{restrict_files, restrict_process};
use super::execution::execute;
use super::frame;
use super::module;
use super::protocol::{CONFINEMENT_EXIT, Hello, PANIC_EXIT, PROTOCOL, READ_TIME_MS, WorkerReply};
use super::watch::{ExecutionWatch, ProcessMemory};
use crate::program::module::{ModuleProblem, ReadModule};
use crate::program::{Program, ProgramLimits, Stop};

/// The command with which a worker is started, before its bounds: mebibytes of memory and seconds of processor time.
pub const WORKER_COMMAND: &str = "sandbox-worker";

/// The argument after the bounds of a worker that reads one file of functions and executes nothing.
pub(super) const READS_MODULE: &str = "module";

/// The stack of the thread that executes programs. Only what is used of it is memory.
pub(super) const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Is a worker until its parent closes its standard input: confines this process, and executes the programs that it reads. A
/// library's own program calls this first of all if its first argument is [`WORKER_COMMAND`], before it starts any
/// thread or reads any setting.
pub fn worker_main() -> ExitCode {
    let mut arguments = std::env::args().skip(2);
    let mut bound = || arguments.next().and_then(|argument| argument.parse::<u64>().ok());
    let (Some(memory_mib), Some(seconds)) = (bound(), bound()) else { return ExitCode::from(2) };
    let work: WorkerTask = match arguments.next().as_deref() {
        None => programs,
        Some(READS_MODULE) => one_module,
        Some(_) => return ExitCode::from(2),
    };
    let memory = Arc::new(ProcessMemory::open());
    let watch = Arc::new(ExecutionWatch::default());
    let missing = restrict_files();
    let executing = {
        let (memory, watch) = (Arc::clone(&memory), Arc::clone(&watch));
        let bytes = memory_mib.saturating_mul(1024 * 1024);
        std::thread::Builder::new()
            .name("program".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || serve(work, &memory, &watch, missing, (bytes, seconds)))
    };
    match executing {
        Ok(_) => watch.watch(&memory),
        Err(_) => ExitCode::FAILURE,
    }
}

/// Ends the process with the thread that executes programs, also if that panics.
struct EndsProcess(i32);

impl Drop for EndsProcess {
    #[expect(
        clippy::disallowed_methods,
        reason = "the first thread watches for as long as the process lives"
    )]
    fn drop(&mut self) {
        std::process::exit(self.0);
    }
}

/// The work of a worker after it is confined and its engine knows it: with its memory, its watch, and its bound of memory.
type WorkerTask = fn(&ProcessMemory, &ExecutionWatch, u64) -> io::Result<()>;

fn serve(
    work: WorkerTask,
    memory: &ProcessMemory,
    watch: &ExecutionWatch,
    mut missing: Vec<String>,
    (memory_bytes, seconds): (u64, u64),
) {
    let mut end = EndsProcess(PANIC_EXIT);
    match restrict_process(memory, memory_bytes, seconds) {
        Ok(more) => missing.extend(more),
        Err(_) => {
            end.0 = CONFINEMENT_EXIT;
            return;
        }
    }
    let greeted = frame::write(&mut io::stdout().lock(), &Hello { protocol: PROTOCOL, missing });
    end.0 = match greeted.and_then(|()| work(memory, watch, memory_bytes)) {
        Ok(()) => 0,
        Err(_) => 1,
    };
}

fn programs(memory: &ProcessMemory, watch: &ExecutionWatch, memory_bytes: u64) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut number = 0;
    while let Some(program) = frame::read::<Program>(&mut input)? {
        number += 1;
        watch.begin(&program.limits);
        let stop = execute(&program);
        watch.end();
        // An allocator keeps what was used: the next program would be charged for it.
        let reusable = !matches!(stop, Stop::Fault(_)) && memory.grown_bytes() < memory_bytes / 4;
        frame::write(&mut output, &WorkerReply { number, stop, reusable })?;
    }
    Ok(())
}

/// Reads one file of functions, and says what it has.
fn one_module(_: &ProcessMemory, watch: &ExecutionWatch, memory_bytes: u64) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let Some(source) = frame::read::<String>(&mut input)? else { return Ok(()) };
    watch.begin(&ProgramLimits { time_ms: READ_TIME_MS, memory_bytes, ..ProgramLimits::default() });
    let found = module::read(&source);
    watch.end();
    match frame::write(&mut output, &found) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let message = "the file has too many names: make it smaller".to_owned();
            frame::write(&mut output, &ReadModule::Err(ModuleProblem { line: None, message }))
        }
        written => written,
    }
}
