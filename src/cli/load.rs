//! `load`: sends requests to a server, measures the answers, and checks that each accepted request was executed once.

pub mod args;
mod check;
mod client;
mod drive;
mod target;
mod watch;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jiff::Timestamp;
use proscenium::load::LoadFault;
use proscenium::load::compare::LoadComparison;
use proscenium::load::mix::{MAX_MIX_BYTES, RequestMix};
use proscenium::load::report::{LoadEnd, LoadReport, LoadSettings};
use proscenium::load::threshold::Threshold;
use proscenium::load::usage::ProcessMeter;
use proscenium::load::{html, measure, summary};
use uuid::Uuid;

use self::args::LoadArgs;
use self::client::LoadClient;
use self::drive::{LoadDriver, LoadPlan};
use self::target::{LoadKey, LoadProtocol, LoadTarget};
use self::watch::LoadWatch;
use super::failure::{Exit, Failure};
use super::open_files;
use super::output::Output;
use super::signals::Signals;
use super::text::clean;

/// Conversations at once, unless the command line says how many.
const SESSIONS: u32 = 8;
/// Maximum number of requests in flight, unless the command line says how many.
const MAX_IN_FLIGHT: u32 = 10_000;
/// Files that the process opens beside its connections.
const OTHER_FILES: u32 = 64;
/// Largest earlier report, in bytes.
const MAX_REPORT_BYTES: u64 = 64 * 1024 * 1024;
/// How long requests are sent, unless the command line says it.
const DURATION: std::time::Duration = std::time::Duration::from_secs(30);

/// Requirements of every load, unless a requirement names the same measure.
const ALWAYS: [&str; 2] = ["answered>0", "not_sent=0"];
/// The same where the ends of runs can be checked.
const WHERE_CHECKED: [&str; 2] = ["lost=0", "duplicates=0"];

impl From<LoadFault> for Failure {
    fn from(fault: LoadFault) -> Self {
        Failure::usage(fault.code, fault.message)
    }
}

/// Runs the command.
pub async fn run<W: Write>(args: LoadArgs, out: &mut Output<W>) -> Result<Exit, Failure> {
    let target = LoadTarget::parse(&args.url, args.remote)?;
    abortable(&args, target.protocol)?;
    let (mix, mix_name) = mix(&args)?;
    let keys = target::keys(args.keys.as_deref())?;
    let earlier = args.against.as_deref().map(earlier_report).transpose()?;
    for file in [&args.json, &args.html].into_iter().flatten() {
        writable(file)?;
    }
    let plan = plan(&args)?;
    let settings = settings(&args, &target, &plan, mix_name);
    let client = LoadClient::new(target, args.model.clone(), args.timeout, args.stream)?;
    reachable(&client, &args.url).await?;
    let report = load(&args, client, mix, keys, plan, settings).await?;
    let comparison = earlier.map(|earlier| LoadComparison::of(&earlier, &report));
    if let Some(file) = &args.json {
        let json = serde_json::to_vec_pretty(&report).map_err(|error| unwritten(file, &error))?;
        write_file(file, &json)?;
    }
    if let Some(file) = &args.html {
        write_file(file, html::page(&report, comparison.as_ref())?.as_bytes())?;
    }
    write!(out, "{}", clean(&summary::text(&report)))?;
    let mut is_worse = false;
    if let Some(comparison) = &comparison {
        write!(out, "\n{}", summary::comparison_text(comparison, args.regression))?;
        is_worse = args.regression.is_some_and(|tolerance| !comparison.regressions(tolerance).is_empty());
    }
    out.flush()?;
    Ok(if report.holds() && !is_worse { Exit::Completed } else { Exit::Failed })
}

/// Sends the load, checks the ends of its runs, and makes the report.
async fn load(
    args: &LoadArgs,
    client: LoadClient,
    mix: RequestMix,
    keys: Vec<LoadKey>,
    plan: LoadPlan,
    settings: LoadSettings,
) -> Result<LoadReport, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("load.signals", format!("cannot listen for Ctrl-C: {error}")))?;
    let meter = ProcessMeter::start().ok();
    // Ids of the load's conversations and requests, which no other load has.
    let name = Uuid::now_v7().simple().to_string();
    let name = name.get(..20).unwrap_or(&name).to_owned();
    let before = watch::scrape(&client, &keys).await;
    let began = Timestamp::now();
    let load = LoadDriver::new(client, mix, keys, plan, &name);
    let mut watch = LoadWatch::new(args.aborts.clone(), before);
    let ended = send(&load, &mut watch, &mut signals).await;
    watch.finish();
    let ended = ended?;
    let elapsed = load.elapsed();
    let loader = meter.and_then(|meter| meter.read().ok());
    let ends = tokio::select! {
        ends = check::ends(&load, began, args.grace) => ends,
        _ = signals.next() => return Err(given_up()),
    };
    if ends.is_ok() {
        tokio::select! {
            () = check::read_documents(&load) => {}
            _ = signals.next() => return Err(given_up()),
        }
    }
    let server = watch.server(&load).await;
    let mut report = LoadReport::new(settings, began, elapsed, ended, &load.recorder.borrow());
    (report.loader, report.server) = (loader, server);
    match ends {
        Ok(ends) => report.ends = Some(ends),
        Err(why) => report.ends_unchecked = Some(why),
    }
    report.add_final_measures();
    let thresholds = thresholds(&args.requirements, report.ends.is_some())?;
    report.thresholds = thresholds.iter().map(|threshold| threshold.check(&report.measures)).collect();
    Ok(report)
}

/// Sends all requests. The first signal ends the load, whose replies are still awaited; the second one ends the command.
async fn send(
    load: &Rc<LoadDriver>,
    watch: &mut LoadWatch,
    signals: &mut Signals,
) -> Result<LoadEnd, Failure> {
    let mut is_stopping = false;
    let run = load.run();
    let watching = watch.watch(load);
    tokio::pin!(run, watching);
    loop {
        tokio::select! {
            ended = &mut run => return Ok(ended),
            () = &mut watching => {}
            _ = signals.next() => {
                if std::mem::replace(&mut is_stopping, true) {
                    return Err(given_up());
                }
                load.end(LoadEnd::Interrupted);
            }
        }
    }
}

fn given_up() -> Failure {
    Failure::new("load.interrupted", "the load was given up before the ends of its runs were checked")
        .help("`proscenium runs` shows what the server still executes")
}

/// What is asked, and where that comes from.
fn mix(args: &LoadArgs) -> Result<(RequestMix, String), Failure> {
    let Some(file) = &args.mix else {
        return Ok(match args.messages.as_slice() {
            [] => (RequestMix::built_in()?, "built in".to_owned()),
            messages => (RequestMix::of_messages(messages)?, "messages".to_owned()),
        });
    };
    let shown = file.display().to_string();
    let is_long = std::fs::metadata(file).is_ok_and(|data| data.len() > MAX_MIX_BYTES as u64);
    if is_long {
        return Err(Failure::usage("load.mix", format!("{shown} has more than {MAX_MIX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage("load.mix", format!("{shown} cannot be read: {error}")))?;
    let mix = RequestMix::parse(&text)
        .map_err(|fault| Failure::usage(fault.code, format!("{shown}: {}", fault.message)))?;
    Ok((mix, shown))
}

/// Refuses thresholds of `--abort` that could not end the load, because they are not measured while it runs.
fn abortable(args: &LoadArgs, protocol: LoadProtocol) -> Result<(), Failure> {
    let without_documents = args.stream || protocol == LoadProtocol::OpenAi;
    for threshold in &args.aborts {
        let name = threshold.measure();
        if measure::is_final(name) || (without_documents && measure::is_of_documents(name)) {
            let what = format!("--abort '{threshold}': `{name}` is not measured while this load runs");
            return Err(Failure::usage("load.abort", what)
                .help("costs and overhead are known meanwhile for answers of /api that are not streamed"));
        }
    }
    Ok(())
}

fn plan(args: &LoadArgs) -> Result<LoadPlan, Failure> {
    let duration = args.duration.or_else(|| args.requests.is_none().then_some(DURATION));
    if duration.is_some_and(|duration| duration.is_zero() || args.ramp >= duration) {
        return Err(Failure::usage(
            "load.duration",
            "nothing would be measured: requests are sent for no longer than --ramp",
        )
        .help("give a longer --duration, or a shorter --ramp"));
    }
    let limit = open_files::raise_limit().map_or(u32::MAX, |limit| u32::try_from(limit).unwrap_or(u32::MAX));
    let files = limit.saturating_sub(OTHER_FILES);
    let max_in_flight = match args.rate {
        Some(_) => args.max_in_flight.unwrap_or_else(|| {
            if files < MAX_IN_FLIGHT {
                tracing::warn!(
                    code = "load.files", limit, needed = MAX_IN_FLIGHT + OTHER_FILES,
                    "fewer requests than usual can be in flight: the limit of open files is low (`ulimit -Hn`)"
                );
            }
            MAX_IN_FLIGHT.min(files).max(1)
        }),
        None => args.sessions.unwrap_or(SESSIONS),
    };
    if max_in_flight > files {
        let what =
            format!("{max_in_flight} requests in flight need as many open files, and the limit is {files}");
        return Err(Failure::usage("load.files", what)
            .help(format!("run `ulimit -n {}` first", u64::from(max_in_flight) + u64::from(OTHER_FILES))));
    }
    Ok(LoadPlan {
        sessions: args.sessions.unwrap_or(max_in_flight),
        rate: args.rate,
        max_in_flight,
        ramp: args.ramp,
        duration,
        requests: args.requests,
        think_time: args.think_time,
        turns: args.turns,
        seed: args.seed,
    })
}

fn settings(args: &LoadArgs, target: &LoadTarget, plan: &LoadPlan, mix: String) -> LoadSettings {
    LoadSettings {
        url: args.url.clone(),
        protocol: target.protocol.name().to_owned(),
        kind: if plan.rate.is_some() { "open" } else { "closed" }.to_owned(),
        sessions: plan.sessions,
        rate: plan.rate,
        max_in_flight: plan.max_in_flight,
        ramp_s: plan.ramp.as_secs_f64(),
        duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
        max_requests: plan.requests,
        think_time: plan.think_time.to_string(),
        turns: plan.turns,
        streamed: args.stream,
        mix,
        seed: plan.seed,
    }
}

/// Asks once whether anything listens, before a load of refused connections is measured.
async fn reachable(client: &LoadClient, url: &str) -> Result<(), Failure> {
    match client.get("/healthz", None).send().await {
        Err(error) if error.is_connect() => {
            let what = format!("nothing answers at {url}: {error}");
            Err(Failure::new("load.target", what).help("start it first, such as with `proscenium serve`"))
        }
        _ => Ok(()),
    }
}

/// The requirements of the command line, and those that always hold unless one of these names the same measure.
fn thresholds(given: &[Threshold], is_checked: bool) -> Result<Vec<Threshold>, Failure> {
    let checked = WHERE_CHECKED.iter().filter(|_| is_checked);
    let mut all = Vec::new();
    for text in ALWAYS.iter().chain(checked) {
        let threshold: Threshold = text.parse().map_err(Failure::from)?;
        if !given.iter().any(|given| given.measure() == threshold.measure()) {
            all.push(threshold);
        }
    }
    all.extend(given.iter().cloned());
    Ok(all)
}

fn earlier_report(file: &Path) -> Result<LoadReport, Failure> {
    let fault = |why: String| Failure::usage("load.against", format!("{}: {why}", file.display()));
    let length = std::fs::metadata(file).map_err(|error| fault(format!("it cannot be read: {error}")))?.len();
    if length > MAX_REPORT_BYTES {
        return Err(fault(format!("it has more than {MAX_REPORT_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| fault(format!("it cannot be read: {error}")))?;
    LoadReport::parse(&text).map_err(|parsed| fault(parsed.message))
}

/// Fails before the load if a report could not be written after it.
fn writable(file: &Path) -> Result<(), Failure> {
    let tried = std::fs::write(beside(file), []).and_then(|()| std::fs::remove_file(beside(file)));
    tried.map_err(|error| unwritten(file, &error))
}

/// Writes a report whole, or not at all.
fn write_file(file: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = std::fs::write(beside(file), bytes).and_then(|()| std::fs::rename(beside(file), file));
    written.map_err(|error| unwritten(file, &error))
}

/// A file in the same directory, which becomes the report when it is complete.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn unwritten(file: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::usage("load.file", format!("{} cannot be written: {error}", file.display()))
}
