//! Each subject in its own process, so that time and memory are its own. A child lives as long as its parent
//! holds its standard input.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proscenium::load::usage::{ProcessMeter, ProcessUsage};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use super::flow::{self, Kind, Part};
use super::load::{Load, Sample, drive};
use super::subject::{Bodies, Subject, http, serve};
use super::{Failure, fail, provider};

/// The first argument of a child.
pub const WORD: &str = "child";

/// The role of a child.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Role {
    /// The provider.
    Provider,
    /// The bare client, with the bodies it sends.
    Bare { provider: String, bodies: Vec<String> },
    /// The engine.
    Library { provider: String, data: PathBuf, off: Vec<Part>, kind: Kind },
    /// The engine behind its server.
    Server { provider: String, data: PathBuf, kind: Kind },
    /// A client of that server.
    Client { server: String, kind: Kind },
}

#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Mark,
    Run(Load),
    Usage,
}

#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    Ready { address: Option<String> },
    Marked,
    Ran(Sample),
    Used(ProcessUsage),
    Failed(String),
}

/// A child, seen from its parent.
pub struct Child {
    process: Process,
    orders: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
    /// Where it listens, if it listens.
    pub address: String,
    /// Its process id.
    pub id: u32,
}

impl Child {
    /// Starts a child and waits until it is ready.
    pub fn start(role: &Role) -> Result<Self, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(orders), Some(replies)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(fail("a child without pipes"));
        };
        let id = process.id();
        let replies = BufReader::new(replies).lines();
        let mut child = Self { process, orders, replies, address: String::new(), id };
        match child.say(role)? {
            Reply::Ready { address } => child.address = address.unwrap_or_default(),
            other => return Err(fail(format!("a child started with {other:?}"))),
        }
        Ok(child)
    }

    /// Counts time and memory from here on.
    pub fn mark(&mut self) -> Result<(), Failure> {
        match self.say(&Order::Mark)? {
            Reply::Marked => Ok(()),
            other => Err(fail(format!("a child replied {other:?}"))),
        }
    }

    /// Drives the load.
    pub fn run(&mut self, load: Load) -> Result<Sample, Failure> {
        match self.say(&Order::Run(load))? {
            Reply::Ran(sample) => Ok(sample),
            other => Err(fail(format!("a child replied {other:?}"))),
        }
    }

    /// Time and memory since the mark.
    pub fn usage(&mut self) -> Result<ProcessUsage, Failure> {
        match self.say(&Order::Usage)? {
            Reply::Used(usage) => Ok(usage),
            other => Err(fail(format!("a child replied {other:?}"))),
        }
    }

    fn say(&mut self, what: &impl Serialize) -> Result<Reply, Failure> {
        let mut line = serde_json::to_string(what)?;
        line.push('\n');
        self.orders.write_all(line.as_bytes())?;
        let reply = self.replies.next().ok_or_else(|| fail("a child ended"))??;
        match serde_json::from_str(&reply)? {
            Reply::Failed(why) => Err(fail(why)),
            reply => Ok(reply),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nothing that a child holds outlives the measurement.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The main function of a child.
pub fn main() -> Result<(), Failure> {
    let mut lines = std::io::stdin().lines();
    let role: Role = serde_json::from_str(&lines.next().ok_or_else(|| fail("no role"))??)?;
    let runtime = runtime(&role)?;
    let begun = runtime.block_on(begin(&role));
    let subject = match begun {
        Ok((subject, address)) => {
            say(&Reply::Ready { address })?;
            subject
        }
        Err(error) => return say(&Reply::Failed(format!("{role:?} did not start: {error}"))),
    };
    let mut meter = ProcessMeter::start()?;
    for line in lines {
        let reply = match serde_json::from_str(&line?)? {
            Order::Mark => {
                meter = ProcessMeter::start()?;
                Reply::Marked
            }
            Order::Usage => Reply::Used(meter.read()?),
            Order::Run(load) => match &subject {
                ChildResources::Drives(subject) => match runtime.block_on(drive(subject, load)) {
                    Ok(sample) => Reply::Ran(sample),
                    Err(error) => Reply::Failed(error.to_string()),
                },
                ChildResources::Serves(_) => Reply::Failed("it drives nothing".to_owned()),
            },
        };
        say(&reply)?;
    }
    Ok(())
}

fn say(reply: &Reply) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(reply)?)?;
    Ok(out.flush()?)
}

/// One thread for the provider, which is not measured; as many threads as cores for the others.
fn runtime(role: &Role) -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    if matches!(role, Role::Provider) {
        builder.worker_threads(1);
    }
    Ok(builder.enable_all().build()?)
}

/// What a child keeps alive.
enum ChildResources {
    Drives(Subject),
    Serves(#[expect(dead_code, reason = "kept while it serves")] Option<proscenium::http::Server>),
}

async fn begin(role: &Role) -> Result<(ChildResources, Option<String>), Failure> {
    Ok(match role.clone() {
        Role::Provider => {
            (ChildResources::Serves(None), Some(provider::start(None, Duration::ZERO).await?.to_string()))
        }
        Role::Bare { provider, bodies } => {
            let url = format!("http://{provider}/v1/chat/completions");
            let bodies = Arc::new(Bodies::of(&bodies)?);
            (ChildResources::Drives(Subject::Bare { http: http()?, url, bodies }), None)
        }
        Role::Library { provider, data, off, kind } => {
            let engine = flow::engine(flow::config(&provider, &data, &off, kind))?.start().await?;
            (ChildResources::Drives(Subject::Library { engine: Arc::new(engine), kind }), None)
        }
        Role::Server { provider, data, kind } => {
            let server = serve(flow::config(&provider, &data, &[], kind)).await?;
            let address = server.addr().to_string();
            (ChildResources::Serves(Some(server)), Some(address))
        }
        Role::Client { server, kind } => {
            let url = format!("http://{server}/api/chat");
            (ChildResources::Drives(Subject::Client { http: http()?, url, kind }), None)
        }
    })
}
