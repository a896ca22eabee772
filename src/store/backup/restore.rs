//! Restoring a backup.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::super::documents::blocking;
use super::super::error::{Error, ErrorCode};
use super::super::record::{JournalRow, Record};
use super::super::{DATABASE_FILE, DOCUMENT_DIR, DataDir, RunRow, Store};
use super::changes::changes_since;
use super::commit::{RestorePlace, interrupted, refuse_half_restored};
use super::confirmations::lapse_questions;
use super::database::fold_log;
use super::files;
use super::keys::{carry_keys, revoke_all};
use super::manifest::{BackedUpFile, BackupManifest, MANIFEST, MANIFEST_HASH};
use super::report::{LaterRun, RestoreReport, RestoredRun, unknown_since};
use super::watch::{CopyWatch, ProgressSink};
use crate::run::recovery::CrashHistory;
use crate::run::{Envelope, Event, RunState, unreadable_restored_events, writes_since};

/// How many runs are parked in one transaction.
const RUNS_AT_ONCE: usize = 64;
/// The largest manifest that is read, in bytes.
const MAX_MANIFEST_BYTES: u64 = 512 * 1024 * 1024;

/// How a backup is restored.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Whether what is stored in the data directory is moved aside, within the directory, and compared.
    pub replace: bool,
    /// Another data directory to compare the backup with, which shows what happened after it was taken.
    pub compare: Option<PathBuf>,
    /// Whether all keys of the backup are revoked. Those of which the compared directory says so always are.
    pub revoke_keys: bool,
    /// Ends it early, as long as the data directory is as it was.
    pub stop: CancellationToken,
    /// Receives how far it is.
    pub progress: ProgressSink,
}

/// Verifies the backup at `backup`: its manifest, and length and hash of each of its files. Changes nothing.
///
/// # Errors
/// `backup.incomplete`, `backup.damaged`, `backup.newer_format`, `backup.interrupted`, `store.newer_schema`, `store.io`.
pub async fn verify_backup(
    backup: &Path,
    stop: CancellationToken,
    progress: ProgressSink,
) -> Result<BackupManifest, Error> {
    let backup = backup.to_owned();
    blocking(move || verify(&backup, &CopyWatch::new(None, stop, progress))).await
}

/// Restores the backup at `backup` into the data directory at `data`, which no process uses, and parks its unfinished
/// runs. Nothing is changed before the whole backup was verified; if it fails or is interrupted, the directory is as it was,
/// or nothing opens it until the restore was repeated.
///
/// # Errors
/// The errors of [`verify_backup`]; `restore.target` if the directory has content that is not to be replaced;
/// `restore.interrupted` if the restore of another backup has to be finished first; `store.in_use`, `store.full`,
/// `store.read_only`, `store.io`.
pub async fn restore_backup(
    backup: &Path,
    data: &Path,
    options: RestoreOptions,
) -> Result<RestoreReport, Error> {
    if let Some(report) = finish_interrupted(backup, data).await? {
        return Ok(report);
    }
    let manifest = verify_backup(backup, options.stop.clone(), options.progress.clone()).await?;
    check_content(&RestorePlace::new(data), options.replace)?;
    let dir = DataDir::open(data)?;
    let data = data.canonicalize().map_err(|error| files::file_error(data, "find the directory", &error))?;
    let place = RestorePlace::new(&data);
    check_content(&place, options.replace)?;
    let restored = restore_into(&place, backup, &data, &manifest, &options).await;
    let committed = match restored {
        Ok(report) => {
            let (place, written) = (place.clone(), report.clone());
            blocking(move || place.commit(&written)).await.map(|()| report)
        }
        Err(error) => Err(error),
    };
    if committed.is_err() && place.unfinished().is_ok_and(|marker| marker.is_none()) {
        // What cannot be removed is removed by the next restore.
        let _ = place.clear();
    }
    drop(dir);
    committed
}

/// Finishes a restore of the same backup that was interrupted while it put its files into place. It needs nothing of the
/// backup any more.
async fn finish_interrupted(backup: &Path, data: &Path) -> Result<Option<RestoreReport>, Error> {
    if refuse_half_restored(data).is_ok() {
        return Ok(None);
    }
    let dir = DataDir::lock(data)?;
    let data = data.canonicalize().map_err(|error| files::file_error(data, "find the directory", &error))?;
    let place = RestorePlace::new(&data);
    let Some(report) = place.unfinished()? else { return Ok(None) };
    let is_same = report.backup == backup.display().to_string()
        || read_manifest(backup)
            .and_then(|manifest| manifest.sha256())
            .is_ok_and(|hash| hash == report.manifest_sha256);
    if !is_same {
        return Err(interrupted(&data));
    }
    let finished = report.clone();
    blocking(move || place.finish(&finished)).await?;
    drop(dir);
    Ok(Some(report))
}

/// Refuses a directory with content, unless that is to be replaced.
fn check_content(place: &RestorePlace, replace: bool) -> Result<(), Error> {
    let content = place.content();
    if replace || content.is_empty() {
        return Ok(());
    }
    let what = format!(
        "the data directory is not empty ({}): name another one with --data-dir, or move its content aside with --replace",
        content.join(", ")
    );
    Err(Error::new(ErrorCode::RestoreTarget, what))
}

fn read_manifest(backup: &Path) -> Result<BackupManifest, Error> {
    BackupManifest::parse(&read(&backup.join(MANIFEST))?, &read(&backup.join(MANIFEST_HASH))?)
}

fn verify(backup: &Path, watch: &CopyWatch) -> Result<BackupManifest, Error> {
    let manifest = read_manifest(backup)?;
    watch.expect(manifest.bytes());
    for file in &manifest.files {
        let path = backup.join(&file.path);
        compare(&path, file, files::digest(&path, watch)?)?;
    }
    Ok(manifest)
}

/// Reads a file of the manifest.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_MANIFEST_BYTES => {
            std::fs::read(path).map_err(|error| files::file_error(path, "read the file", &error))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(files::file_error(path, "read the file", &error))
        }
        _ => Err(incomplete(path)),
    }
}

fn incomplete(path: &Path) -> Error {
    let what =
        format!("{}: there is no such file, so this is no whole backup; use another one", path.display());
    Error::new(ErrorCode::BackupIncomplete, what)
}

fn compare(path: &Path, file: &BackedUpFile, found: Option<files::FileDigest>) -> Result<(), Error> {
    let Some(found) = found else { return Err(incomplete(path)) };
    if found.bytes == file.bytes && found.sha256 == file.sha256 {
        return Ok(());
    }
    let what =
        format!("{}: the file is damaged: it is not what was backed up; use another backup", path.display());
    Err(Error::new(ErrorCode::BackupDamaged, what))
}

/// Prepares the restored files, with the unfinished runs parked.
async fn restore_into(
    place: &RestorePlace,
    backup: &Path,
    data: &Path,
    manifest: &BackupManifest,
    options: &RestoreOptions,
) -> Result<RestoreReport, Error> {
    files::check_room(data, manifest.bytes())?;
    let watch = CopyWatch::new(None, options.stop.clone(), ProgressSink::default());
    let (preparing, source, named) = (place.clone(), backup.to_owned(), manifest.files.clone());
    let prepared = blocking(move || copy_files(&preparing, &source, &named, &watch)).await?;
    let has_content = !place.content().is_empty();
    let old = options.compare.clone().or_else(|| has_content.then(|| data.to_owned()));
    let store = Store::open(DataDir::open(&prepared)?).await?;
    let filled = fill(&store, manifest, old.as_deref(), options.revoke_keys).await;
    store.close().await;
    let mut report = filled?;
    report.backup = backup.display().to_string();
    report.moved_to = has_content.then(|| place.kept_at(&report.stamp()));
    let lock = prepared.join("lock");
    std::fs::remove_file(&lock).map_err(|error| files::file_error(&lock, "remove the file", &error))?;
    let (database, earlier) = (prepared.join(DATABASE_FILE), data.join(DATABASE_FILE));
    let watch = CopyWatch::new(None, options.stop.clone(), ProgressSink::default());
    blocking(move || {
        // What parks the runs must not stay in a log.
        fold_log(&database, &watch)?;
        files::sync_and_digest(&database, &watch)?;
        match has_content.then(|| fold_log(&earlier, &watch)) {
            Some(Err(error)) if error.kind() == ErrorCode::Locked => Err(error),
            // A damaged database keeps its log, which is moved with it.
            _ => Ok(()),
        }
    })
    .await?;
    Ok(report)
}

fn copy_files(
    place: &RestorePlace,
    backup: &Path,
    named: &[BackedUpFile],
    watch: &CopyWatch,
) -> Result<PathBuf, Error> {
    let prepared = place.prepare()?;
    for file in named {
        let from = backup.join(&file.path);
        compare(&from, file, files::copy(&from, &prepared.join(&file.path), watch)?)?;
    }
    files::sync_dir(&prepared.join(DOCUMENT_DIR))?;
    Ok(prepared)
}

/// Compares the restored store with the earlier one, and parks its unfinished runs.
async fn fill(
    store: &Store,
    manifest: &BackupManifest,
    old: Option<&Path>,
    revoke_keys: bool,
) -> Result<RestoreReport, Error> {
    let (since, not_compared) = match old {
        None => (None, None),
        Some(old) => match changes_since(store, old).await {
            Ok(since) => (Some(since), None),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    let restored = Timestamp::now();
    let compared = old.filter(|_| since.is_some());
    let parked = park_runs(store, manifest.taken, restored, compared).await?;
    let lapsed_questions = lapse_questions(store, manifest.taken, restored).await?;
    let mut revoked_keys = 0;
    let mut keys_not_carried = None;
    if let Some(old) = old {
        match carry_keys(store, old).await {
            Ok(revoked) => revoked_keys += revoked,
            Err(error) => keys_not_carried = Some(error.to_string()),
        }
    }
    if revoke_keys {
        revoked_keys += revoke_all(store).await?;
    }
    // The server that ran when the backup was taken has not crashed.
    store.set_crash_history(&CrashHistory::default()).await?;
    Ok(RestoreReport {
        backup: String::new(),
        manifest_sha256: manifest.sha256()?,
        taken: manifest.taken,
        restored,
        version: manifest.version.clone(),
        schema: manifest.schema,
        counts: manifest.counts,
        parked,
        lapsed_questions,
        revoked_keys,
        unknown: unknown_since(),
        since,
        not_compared,
        keys_not_carried,
        moved_to: None,
    })
}

/// Parks every unfinished run by events in its own stream.
async fn park_runs(
    store: &Store,
    taken: Timestamp,
    now: Timestamp,
    old: Option<&Path>,
) -> Result<Vec<RestoredRun>, Error> {
    let earlier = match old {
        Some(old) => Some(Store::open_read_only(old).await?),
        None => None,
    };
    let rows = store.unfinished_runs().await?;
    let mut parked = Vec::with_capacity(rows.len());
    for some in rows.chunks(RUNS_AT_ONCE) {
        let mut groups = Vec::with_capacity(some.len());
        for row in some {
            let (events, state) = parking_events(store, row, taken).await?;
            groups.push(journal_rows(row, events, now)?);
            let later = match (&earlier, &state) {
                (Some(earlier), Some(state)) => later_run(earlier, row, state).await?,
                _ => None,
            };
            parked.push(RestoredRun {
                run: row.run,
                tenant: row.tenant.clone(),
                session: row.session.clone(),
                request: row.request.clone(),
                status: row.status,
                readable: state.is_some(),
                later,
            });
        }
        for outcome in store.append(&groups, true).await? {
            if let Some((_, error)) = outcome.failures.into_iter().next() {
                return Err(error);
            }
        }
    }
    if let Some(earlier) = earlier {
        earlier.close().await;
    }
    Ok(parked)
}

/// The events that park a run, and its state in the backup if this program can read it.
async fn parking_events(
    store: &Store,
    row: &RunRow,
    taken: Timestamp,
) -> Result<(Vec<Event>, Option<RunState>), Error> {
    match store.run_events(&row.tenant, row.run).await {
        Ok(events) => {
            let mut state = RunState::from_journal(row.run, &events);
            // A takeover may raise the epoch without another event.
            state.epoch = state.epoch.max(row.epoch);
            Ok((state.restored_events(taken), Some(state)))
        }
        Err(error) if error.is_damaged_stream() => {
            Ok((unreadable_restored_events(row.epoch, taken).to_vec(), None))
        }
        Err(error) => Err(error),
    }
}

fn journal_rows(row: &RunRow, events: Vec<Event>, now: Timestamp) -> Result<Vec<JournalRow>, Error> {
    let epoch = row.epoch.saturating_add(1);
    let record = |(seq, body): (u64, Event)| {
        let envelope = Envelope::of_run(row.run, &row.tenant, &row.session, seq, epoch, now, body);
        Record::Run(envelope.into()).to_row()
    };
    (row.last_seq + 1..).zip(events).map(record).collect()
}

/// What became of a run in the earlier data directory.
async fn later_run(earlier: &Store, row: &RunRow, state: &RunState) -> Result<Option<LaterRun>, Error> {
    let Some(last) = earlier.run(&row.tenant, row.run).await? else {
        return Ok(Some(LaterRun { status: None, writes: Vec::new() }));
    };
    let writes = match earlier.run_events(&row.tenant, row.run).await {
        Ok(events) => writes_since(state, &RunState::from_journal(row.run, &events)),
        Err(error) if error.is_damaged_stream() => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(LaterRun { status: Some(last.status), writes }))
}
