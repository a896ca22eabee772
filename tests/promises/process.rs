//! The real program in its own processes: an empty environment and a temporary directory.
//!
//! They inherit where the root certificates are, and nothing else: each of hundreds of processes would read those of the
//! whole system at its start, if `.ci/run` did not name a file with one.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::ScriptedLlm;

/// The main request.
pub const MAIN: &str =
    "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno";

/// The shipped program.
pub const SHIPPED: &str = env!("CARGO_BIN_EXE_proscenium");
/// The same program with crash points: an example, which tests have built and nobody installs.
pub static CRASHING: LazyLock<String> = LazyLock::new(|| {
    let path = Path::new(SHIPPED).with_file_name("examples").join("proscenium-crashing");
    assert!(path.exists(), "{} is missing; build it with `cargo build --examples`", path.display());
    path.into_os_string().into_string().unwrap()
});

/// Before the address of a server that is ready.
const SERVES_AT: &str = "proscenium serves at ";

/// The file with the root certificates.
const ROOTS: &str = "SSL_CERT_FILE";

/// A working directory and the environment of every process in it.
pub struct Workspace {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// The output and exit status of a process.
#[derive(Debug)]
pub struct ProcessOutput {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl ProcessOutput {
    /// Everything that it wrote: progress, then the answer.
    pub fn text(&self) -> String {
        format!("{}{}", self.err, self.out)
    }

    /// The errors and log lines on standard error, without progress.
    pub fn problems(&self) -> String {
        let is_problem =
            |line: &&str| ["error[", " WARN ", " ERROR ", " INFO "].iter().any(|mark| line.contains(mark));
        self.err.lines().filter(is_problem).collect()
    }
}

impl Workspace {
    /// An empty environment.
    pub fn bare() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), env: Vec::new() }
    }

    /// An environment with only a fixed clock and without internet access.
    pub fn new() -> Self {
        Self::bare()
            .with("PROSCENIUM__EXECUTION__FIXED_NOW", "2026-05-04T09:00:00+02:00")
            .with("PROSCENIUM__EXECUTION__TIME_ZONE", "Europe/Rome")
            .with("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "bundled")
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The default data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Writes a file below the working directory.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes `house.toml`, with a scripted model, only the scenes of the directory, and `more` sections.
    pub fn write_house(&self, llm: &ScriptedLlm, more: &str) {
        self.write("house.toml", &house(llm, more));
    }

    /// The same with prices of the model, and a budget that is large enough.
    pub fn write_priced_house(&self, llm: &ScriptedLlm, more: &str) {
        let house = house(llm, &format!("{more}[budget]\nday_usd = 1000.0\n"));
        let prices = "input_usd_per_million = 1.0\noutput_usd_per_million = 10.0\n";
        self.write("house.toml", &format!("{house}{prices}"));
    }

    /// A process that has not been started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(SHIPPED, arguments)
    }

    fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).env_clear();
        command.envs(std::env::var_os(ROOTS).map(|roots| (ROOTS, roots)));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> ProcessOutput {
        ProcessOutput::of(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs with this text on standard input.
    pub fn pipe(&self, arguments: &[&str], input: &str) -> ProcessOutput {
        let mut process = self.spawn(arguments);
        process.write(input);
        process.end()
    }

    /// Runs `chat --json` and returns the document.
    pub fn ask(&self, message: &str, more: &[&str]) -> Value {
        let arguments: Vec<&str> =
            ["chat", "--json", message].into_iter().chain(more.iter().copied()).collect();
        let ran = self.run(&arguments);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
    }

    /// Starts a process and leaves it running.
    pub fn spawn(&self, arguments: &[&str]) -> RunningProcess {
        self.spawn_with(arguments, &[])
    }

    /// A server on a free port that is ready, with more arguments.
    pub fn serve(&self, more: &[&str]) -> RunningProcess {
        let mut server = self.spawn(&[&["serve", "--addr", "127.0.0.1:0"], more].concat());
        server.served_at();
        server
    }

    /// Starts a process with these additional variables, and leaves it running. A crash point variable
    /// selects the program that has crash points.
    pub fn spawn_with(&self, arguments: &[&str], env: &[(&str, String)]) -> RunningProcess {
        let crashes = env.iter().any(|(name, _)| name.starts_with("CRASH_"));
        self.spawn_program(if crashes { CRASHING.as_str() } else { SHIPPED }, arguments, env)
    }

    /// The same with a given program.
    pub fn spawn_program(&self, program: &str, arguments: &[&str], env: &[(&str, String)]) -> RunningProcess {
        let mut command = self.command_of(program, arguments);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        RunningProcess { child, out, output: String::new(), err, errors: String::new() }
    }

    /// The contents of every file below the data directory.
    pub fn stored(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut folders = vec![self.data()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    all.extend(std::fs::read(path).unwrap());
                }
            }
        }
        all
    }
}

/// The text of `house.toml`, which ends with the keys of its model.
fn house(llm: &ScriptedLlm, more: &str) -> String {
    format!(
        "[scenes]\nbuiltin = false\nallow_private_addresses = true\n{more}\
         [[llm.models]]\nname = \"scripted\"\nbase_url = \"{}\"\nforcing = \"named\"\n",
        llm.base_url()
    )
}

impl ProcessOutput {
    fn of(output: Output) -> Self {
        Self {
            // A signal counts as -1.
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// The document that a command has printed.
pub fn document(ran: &ProcessOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
}

/// Asserts that a command ended with this status and error, with nothing on standard output.
pub fn assert_refused(ran: &ProcessOutput, status: i32, code: &str, expected: &[&str]) {
    assert_eq!((ran.status, ran.out.as_str()), (status, ""), "{ran:?}");
    assert!(ran.err.contains(&format!("error[{code}]")), "{}", ran.err);
    for what in expected {
        assert!(ran.err.contains(what), "no {what:?} in {}", ran.err);
    }
}

/// A running process. It is killed if it is dropped before its end.
pub struct RunningProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    output: String,
    err: BufReader<ChildStderr>,
    errors: String,
}

impl RunningProcess {
    /// Writes to its standard input.
    pub fn write(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Reads its standard output up to a line that contains `what`.
    pub fn read_until(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                let mut errors = String::new();
                std::io::Read::read_to_string(&mut self.err, &mut errors).unwrap();
                panic!("no {what:?} in {}\n{errors}", self.output);
            }
            self.output.push_str(&line);
        }
    }

    /// The same; false if the process ends first.
    pub fn try_read_until(&mut self, what: &str) -> bool {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return false;
            }
            self.output.push_str(&line);
        }
        true
    }

    /// Reads its standard output until it serves; its address.
    pub fn served_at(&mut self) -> String {
        self.read_until(SERVES_AT);
        self.address()
    }

    /// The same; `None` if the process ends first.
    pub fn try_served_at(&mut self) -> Option<String> {
        self.try_read_until(SERVES_AT).then(|| self.address())
    }

    /// The address of a server that is ready.
    pub fn address(&self) -> String {
        self.output.rsplit(SERVES_AT).next().unwrap().trim().to_owned()
    }

    /// Reads its standard error up to a line that contains `what`.
    pub fn read_stderr_until(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(self.err.read_line(&mut line).unwrap(), 0, "no {what:?} in {}", self.errors);
            self.errors.push_str(&line);
        }
    }

    /// Whether it has exited.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The most memory that it has held, in bytes, where the kernel says so.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
    }

    /// Standard output read so far.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// Sends a signal by its name, such as `INT`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    }

    /// Kills it as a power failure would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes its standard input and waits for its end.
    pub fn end(mut self) -> ProcessOutput {
        drop(self.child.stdin.take());
        let mut output = std::mem::take(&mut self.output);
        std::io::Read::read_to_string(&mut self.out, &mut output).unwrap();
        let mut err = std::mem::take(&mut self.errors);
        std::io::Read::read_to_string(&mut self.err, &mut err).unwrap();
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        ProcessOutput { status, out: output, err }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
