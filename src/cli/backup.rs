//! `backup` and `restore`: copies of the data directory.

use std::io::Write;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use proscenium::config::LoadedConfig;
use proscenium::run::RunStatus;
use proscenium::store::{
    self, BackupCounts, BackupManifest, BackupOptions, ChangesSince, Error, ErrorCode, ProgressSink,
    RestoreOptions, RestoreReport, RestoredRun,
};
use tokio_util::sync::CancellationToken;

use super::backup_args::{BackupArgs, RestoreArgs};
use super::failure::{Exit, Failure};
use super::invocation;
use super::output::{self, Output};
use super::signals::Signals;
use super::text::{count, dollars, one_line, short};

/// How many lines of a list are shown; all of them are in the report.
const MAX_LINES: usize = 20;
/// The longest part of a request that is shown, in columns.
const REQUEST: usize = 60;
/// Billionths in one.
const NANO: f64 = 1e9;

/// Runs `backup`.
pub async fn backup<W: Write>(
    args: BackupArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let (stop, bar) = (CancellationToken::new(), Bar::new());
    let options = BackupOptions { timeout: args.timeout, stop: stop.clone(), progress: bar.sink() };
    let taken = store::take_backup(&loaded.config.store.data_dir, &args.dir, options);
    let taken = until_signal(taken, &stop).await;
    bar.finish();
    let manifest = taken?.map_err(failure)?;
    if args.json {
        output::document(out, &manifest, false)?;
    } else {
        writeln!(out, "{} is a backup of {}.", args.dir.display(), loaded.config.store.data_dir.display())?;
        write_manifest(out, &manifest)?;
        writeln!(
            out,
            "`proscenium restore {} --check` verifies it. Configuration and scenes are not in it.",
            invocation::quoted(&args.dir)
        )?;
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Runs `restore`.
pub async fn restore<W: Write>(
    args: RestoreArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let (stop, bar) = (CancellationToken::new(), Bar::new());
    if args.check {
        let verified = store::verify_backup(&args.dir, stop.clone(), bar.sink());
        let verified = until_signal(verified, &stop).await;
        bar.finish();
        let manifest = verified?.map_err(failure)?;
        match args.json {
            true => output::document(out, &manifest, false)?,
            false => {
                writeln!(out, "{} is a whole backup.", args.dir.display())?;
                write_manifest(out, &manifest)?;
            }
        }
        out.flush()?;
        return Ok(Exit::Completed);
    }
    if let Some(dir) = &args.compare {
        check_compared(dir)?;
    }
    let options = RestoreOptions {
        replace: args.replace,
        compare: args.compare,
        revoke_keys: args.revoke_keys,
        stop: stop.clone(),
        progress: bar.sink(),
    };
    let data = &loaded.config.store.data_dir;
    let restored = store::restore_backup(&args.dir, data, options);
    let restored = until_signal(restored, &stop).await;
    bar.finish();
    let report = restored?.map_err(failure)?;
    match args.json {
        true => output::document(out, &report, false)?,
        false => write_report(out, data, &report)?,
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// Refuses a mistyped directory to compare with before anything is restored: keys that were revoked there would be valid
/// again.
fn check_compared(dir: &Path) -> Result<(), Failure> {
    if dir.join(store::DATABASE_FILE).exists() {
        return Ok(());
    }
    let what = format!("{} has no {}, so nothing was restored", dir.display(), store::DATABASE_FILE);
    let failure = Failure::new("restore.compare", what);
    Err(Failure { exit: Exit::Usage, ..failure }
        .help("name a data directory that was in use after the backup was taken, or leave --compare out"))
}

/// Waits for `work`, which a signal stops at its next safe point.
async fn until_signal<T>(work: impl Future<Output = T>, stop: &CancellationToken) -> Result<T, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new("backup.signals", format!("cannot listen for Ctrl-C: {error}")))?;
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            _ = signals.next() => stop.cancel(),
        }
    }
}

/// How far the copy is, on a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    fn sink(&self) -> ProgressSink {
        let bar = self.0.clone();
        ProgressSink::new(move |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        })
    }

    fn finish(self) {
        self.0.finish_and_clear();
    }
}

fn failure(error: Error) -> Failure {
    let kind = error.kind();
    let failure = Failure::from(error);
    match kind {
        ErrorCode::BackupTarget | ErrorCode::RestoreTarget | ErrorCode::BackupIncomplete => {
            Failure { exit: Exit::Usage, ..failure }
        }
        ErrorCode::InUse => failure.help("a backup is restored while no process uses the data directory"),
        _ => failure,
    }
}

fn write_manifest(out: &mut impl Write, manifest: &BackupManifest) -> std::io::Result<()> {
    writeln!(out, "Taken at {:.0} by version {}.", manifest.taken, manifest.version)?;
    writeln!(out, "{}, {} MB.", held(&manifest.counts), manifest.bytes().div_ceil(1_000_000))
}

fn held(counts: &BackupCounts) -> String {
    let BackupCounts { runs, unfinished_runs, conversations, documents } = *counts;
    let number = |number: u64, one| count(usize::try_from(number).unwrap_or(usize::MAX), one);
    format!(
        "{} ({unfinished_runs} unfinished), {}, {}",
        number(runs, "run"),
        number(conversations, "conversation"),
        number(documents, "document")
    )
}

fn write_report(out: &mut impl Write, data: &Path, report: &RestoreReport) -> std::io::Result<()> {
    writeln!(out, "{} is restored from {}: {}.", data.display(), report.backup, held(&report.counts))?;
    writeln!(out, "The backup was taken at {:.0}. Nothing that happened later is in it.", report.taken)?;
    if let Some(kept) = &report.moved_to {
        writeln!(out, "What was there before is in {kept}: delete it when you no longer need it.")?;
    }
    write_parked(out, &report.parked)?;
    match (&report.since, &report.not_compared) {
        (Some(since), _) => write_since(out, since)?,
        (None, Some(why)) => {
            writeln!(out, "\nThe earlier data directory was not compared: {}", one_line(why))?;
            if report.keys_not_carried.is_none() {
                writeln!(out, "Only the roles, limits and revocations of its API keys were carried over.")?;
            }
        }
        (None, None) => {}
    }
    if let Some(why) = &report.keys_not_carried {
        writeln!(out, "\nIts API keys were not carried over: {}", one_line(why))?;
        writeln!(
            out,
            "Revoke what was revoked there: `proscenium keys list` shows the keys, `keys revoke` ends one."
        )?;
    }
    if report.lapsed_questions > 0 {
        let asked = usize::try_from(report.lapsed_questions).unwrap_or(usize::MAX);
        writeln!(
            out,
            "\nQuestions that waited for a yes before a call are no longer valid, in {}.",
            count(asked, "conversation")
        )?;
    }
    writeln!(out, "\nThe backup cannot know:")?;
    for unknown in &report.unknown {
        writeln!(out, "  {}\n    {}", unknown.what, unknown.remedy)?;
    }
    if report.revoked_keys > 0 {
        let keys = usize::try_from(report.revoked_keys).unwrap_or(usize::MAX);
        writeln!(out, "\nRevoked here, too: {}.", count(keys, "key"))?;
    }
    writeln!(out, "\nAll of this is in {}.", data.join(report.file_name()).display())
}

fn write_parked(out: &mut impl Write, parked: &[RestoredRun]) -> std::io::Result<()> {
    if parked.is_empty() {
        return writeln!(out, "\nNo run was unfinished.");
    }
    writeln!(
        out,
        "\n{} unfinished; each waits until it is resumed or cancelled:",
        count(parked.len(), "run")
    )?;
    for run in parked.iter().take(MAX_LINES) {
        let status = <&'static str>::from(run.status);
        writeln!(out, "  {} {} ({status}): {}", run.tenant, run.run, short(&run.request, REQUEST))?;
        if let Some(later) = &run.later {
            let became = later.status.map_or("erased", <&'static str>::from);
            let writes = match (later.writes.is_empty(), later.status) {
                (true, Some(RunStatus::Queued | RunStatus::Running | RunStatus::Waiting)) => {
                    "no write".to_owned()
                }
                (true, _) => "no write that is known".to_owned(),
                (false, _) => one_line(&later.writes.join(", ")),
            };
            writeln!(out, "    later {became}; {writes}")?;
        }
        if !run.readable {
            writeln!(out, "    this version cannot read it; it can be cancelled")?;
        }
    }
    more(out, parked.len().saturating_sub(MAX_LINES) as u64)?;
    writeln!(
        out,
        "`proscenium runs --parked` lists them (`--tenant`: of another tenant); `proscenium plans resume` and `cancel` end \
         the wait."
    )
}

fn write_since(out: &mut impl Write, since: &ChangesSince) -> std::io::Result<()> {
    writeln!(
        out,
        "\nSince then, as the earlier data directory tells: {} requests, {} decisions.",
        since.requests, since.decisions
    )?;
    for spent in &since.spent {
        let usd = dollars(spent.cost_nano_usd as f64 / NANO);
        writeln!(out, "  {} spent {usd} in {} calls, which no budget counts", spent.tenant, spent.calls)?;
    }
    for change in since.changes.iter().take(MAX_LINES) {
        let kind = <&'static str>::from(change.kind).replace('_', " ");
        let parts = [kind.as_str(), &change.tenant, &change.id, &change.about];
        let parts: Vec<String> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| one_line(part)).collect();
        writeln!(out, "  {}", parts.join(" "))?;
    }
    more(out, since.more + since.changes.len().saturating_sub(MAX_LINES) as u64)
}

fn more(out: &mut impl Write, more: u64) -> std::io::Result<()> {
    if more > 0 { writeln!(out, "  and {more} more") } else { Ok(()) }
}
