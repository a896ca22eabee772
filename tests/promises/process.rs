//! The real program in its own processes: an empty environment and a temporary directory.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The main request.
pub const MAIN: &str =
    "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno";

/// The shipped program.
pub const SHIPPED: &str = env!("CARGO_BIN_EXE_proscenium");
/// The same program with crash points, which is built for tests only.
pub const CRASHING: &str = env!("CARGO_BIN_EXE_proscenium-crashing");

/// A working directory and the environment of every process in it.
pub struct Desk {
    dir: TempDir,
    env: Vec<(String, String)>,
}

/// The output and exit status of a process.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Desk {
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

    /// A process that has not been started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(SHIPPED, arguments)
    }

    fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs with this text on standard input.
    pub fn pipe(&self, arguments: &[&str], input: &str) -> Ran {
        let mut held = self.hold(arguments);
        held.say(input);
        held.end()
    }

    /// Runs `chat --json` and returns the document.
    pub fn ask(&self, message: &str, more: &[&str]) -> Value {
        let arguments: Vec<&str> =
            ["chat", "--json", message].into_iter().chain(more.iter().copied()).collect();
        let ran = self.run(&arguments);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:#?}"))
    }

    /// Starts a process and leaves it running.
    pub fn hold(&self, arguments: &[&str]) -> Held {
        self.hold_with(arguments, &[])
    }

    /// Starts a process with these additional variables, and leaves it running. A crash point variable
    /// selects the program that has crash points.
    pub fn hold_with(&self, arguments: &[&str], env: &[(&str, String)]) -> Held {
        let crashes = env.iter().any(|(name, _)| name.starts_with("CRASH_"));
        self.hold_program(if crashes { CRASHING } else { SHIPPED }, arguments, env)
    }

    /// The same with a given program.
    pub fn hold_program(&self, program: &str, arguments: &[&str], env: &[(&str, String)]) -> Held {
        let mut command = self.command_of(program, arguments);
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Held { child, out, said: String::new(), err, complained: String::new() }
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

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            // A signal counts as -1.
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A running process. It is killed if it is dropped before its end.
pub struct Held {
    child: Child,
    out: BufReader<ChildStdout>,
    said: String,
    err: BufReader<ChildStderr>,
    complained: String,
}

impl Held {
    /// Writes to its standard input.
    pub fn say(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Reads its standard output up to a line that contains `what`.
    pub fn read_to(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                let mut complained = String::new();
                std::io::Read::read_to_string(&mut self.err, &mut complained).unwrap();
                panic!("no {what:?} in {}\n{complained}", self.said);
            }
            self.said.push_str(&line);
        }
    }

    /// The same; false if the process ends first.
    pub fn comes_to(&mut self, what: &str) -> bool {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            if self.out.read_line(&mut line).unwrap() == 0 {
                return false;
            }
            self.said.push_str(&line);
        }
        true
    }

    /// Reads its standard error up to a line that contains `what`.
    pub fn complains(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(self.err.read_line(&mut line).unwrap(), 0, "no {what:?} in {}", self.complained);
            self.complained.push_str(&line);
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

    /// Standard output read so far.
    pub fn said(&self) -> &str {
        &self.said
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
    pub fn end(mut self) -> Ran {
        drop(self.child.stdin.take());
        let mut said = std::mem::take(&mut self.said);
        std::io::Read::read_to_string(&mut self.out, &mut said).unwrap();
        let mut err = std::mem::take(&mut self.complained);
        std::io::Read::read_to_string(&mut self.err, &mut err).unwrap();
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        Ran { status, out: said, err }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
