//! The arguments of `eval`.

use std::path::PathBuf;

use clap::Args;
use proscenium::eval::EvalRequirement;

/// `eval`
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Exit status: 0 every request was executed as labelled, 1 not, 2 invalid files,
labels or usage. With --require or --against, these decide instead.
Tools of the scenes are called for real, in a temporary data directory. HTTP
tools of a folder with a replies.json call a back end that replies as it says.")]
pub struct EvalArgs {
    /// YAML files of labelled requests or scenarios
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these requests, by id, with the conversations that they are in. May be repeated
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,
    /// Use the offline model, whatever models are configured
    #[arg(long)]
    pub rules: bool,
    /// How often each request is executed, for models that vary
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Maximum number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Maximum cost of model calls in US dollars: a call that could exceed it is not made, and its request is left out
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Maximum number of model calls: a request that is likely to exceed it, judging by earlier ones, is not begun
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_calls: Option<u64>,
    /// Call HTTP tools that write, of scenes without a replies.json
    #[arg(long)]
    pub allow_http_writes: bool,
    /// How many wrong requests are described
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub failures: usize,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Compare with an earlier report of --json, and fail if what was right is wrong now
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,
    /// Fail unless this holds, such as 'right>=95%' or 'wrong_writes=0'. May be repeated
    #[arg(long, value_name = "REQUIREMENT")]
    pub require: Vec<EvalRequirement>,
}

fn dollars(given: &str) -> Result<f64, String> {
    let usd = given.parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| "write US dollars above 0, such as 2.50".to_owned())
}
