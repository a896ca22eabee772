//! The arguments of `load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use proscenium::load::schedule::{self, ThinkTime};
use proscenium::load::threshold::Threshold;

const AFTER: &str = "\
Exit status: 0 all requirements hold, 1 one does not (or the load was aborted,
interrupted or is a regression), 2 invalid usage.
Always required, unless a requirement names the same measure: answered>0,
not_sent=0, lost=0 and duplicates=0 (the last two where they can be checked).
Keys: the environment variable PROSCENIUM_API_KEY, or --keys.";

/// `load`
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER)]
pub struct LoadArgs {
    /// The server: http://HOST:PORT for POST /api/chat, or the base address of an OpenAI-compatible one, such as
    /// http://HOST:PORT/v1
    pub url: String,
    /// Permit a server that is not on this machine: its models cost money, and its tools may write
    #[arg(long)]
    pub remote: bool,
    /// Conversations at once: each sends, waits for the answer, and sends again [default: 8]; with --rate, most
    /// conversations that are alive: new ones begin until there are as many [default: --max-in-flight]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub sessions: Option<u32>,
    /// Requests a second, whatever the server does (open loop): latencies count from the intended start
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// Maximum number of requests in flight with --rate; further ones are counted as not sent [default: 10000, or what the
    /// limit of open files permits]
    #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_in_flight: Option<u32>,
    /// Time in which the load rises; its requests are not in the durations
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = schedule::duration)]
    pub ramp: Duration,
    /// For how long requests are sent [default: 30s without --requests]
    #[arg(long, value_name = "TIME", value_parser = schedule::duration)]
    pub duration: Option<Duration>,
    /// How many requests are sent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub requests: Option<u64>,
    /// Wait between an answer and the next request of its conversation: 5s, or 1s..5s
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub think_time: ThinkTime,
    /// Requests of a conversation, instead of as many as its scenario has: they are repeated
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub turns: Option<u32>,
    /// Stream the answers, and measure the time to their first text
    #[arg(long)]
    pub stream: bool,
    /// File of scenarios with the requests to send, instead of the built-in questions
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    pub mix: Option<PathBuf>,
    // In a help text, `{n}` is a line break.
    /// A request to send. May be repeated; `n` in braces becomes its number
    #[arg(long = "message", value_name = "TEXT")]
    pub messages: Vec<String>,
    /// File of API keys: NAME KEY [SHARE] on each line; conversations are divided by the shares
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Model to name in the OpenAI protocol
    #[arg(long, value_name = "NAME", default_value = "proscenium")]
    pub model: String,
    /// How long an answer may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = schedule::duration)]
    pub timeout: Duration,
    /// How long accepted runs may still take to end after the load
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = schedule::duration)]
    pub grace: Duration,
    /// Seed of the choices of conversations, keys and think times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Require that a measure holds, such as 'p99_overhead<50ms' or 'error_rate<0.1%'. May be repeated
    #[arg(long = "require", value_name = "THRESHOLD")]
    pub requirements: Vec<Threshold>,
    /// End the load once this holds, such as 'error_rate>50%' or 'cost>$5'. May be repeated
    #[arg(long = "abort", value_name = "THRESHOLD")]
    pub aborts: Vec<Threshold>,
    /// Compare with the report of an earlier load (--json)
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Fail if a measure is worse than the earlier one by more than this share, such as 10%
    #[arg(long, value_name = "SHARE", requires = "against", value_parser = share)]
    pub regression: Option<f64>,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as one HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.001..=100_000.0).contains(rate));
    rate.ok_or_else(|| "write requests a second, from 0.001 to 100000".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
    let share = percent.filter(|percent| (0.0..=10_000.0).contains(percent)).map(|percent| percent / 100.0);
    share.ok_or_else(|| "write a share such as 10%".to_owned())
}
