//! Backups of stores that are written, damaged backups, and restores that are interrupted at any point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::commit::{RestorePlace, refuse_half_restored};
use super::*;
use crate::memory::{self, Memory};
use crate::run::{DocumentMedia, Event, RunState, RunStatus, SessionEvent};
use crate::store::tests::{envelope, event, open, record, run_id, session, tenant};
use crate::store::{
    DATABASE_FILE, DOCUMENT_DIR, DataDir, DocumentLimits, DocumentOwner, ErrorCode, NewDocument, Page,
    Record, RunFilter, Store, SwitchKind,
};

fn options() -> BackupOptions {
    let (stop, progress) = (tokio_util::sync::CancellationToken::new(), ProgressSink::default());
    BackupOptions { timeout: std::time::Duration::from_secs(60), stop, progress }
}

async fn append(store: &Store, records: impl IntoIterator<Item = Record>) {
    let rows: Vec<_> = records.into_iter().map(|record| record.to_row().unwrap()).collect();
    let outcomes = store.write(&[rows]).await.unwrap();
    assert!(outcomes[0].failures.is_empty(), "{outcomes:?}");
}

async fn add_document(store: &Store, text: &str) -> crate::run::DocumentId {
    let (name, media) = (format!("{text}.txt"), DocumentMedia::Text);
    let new = NewDocument { tenant: tenant(), user: "keysersoze".to_owned(), name, media };
    let limits = DocumentLimits { max_bytes: 1_000_000, max_per_user: 1_000 };
    let mut upload = store.documents().begin(new, limits).await.unwrap();
    upload.write(text.as_bytes()).await.unwrap();
    upload.finish().await.unwrap().document.id
}

/// Every file below a directory, by its path.
fn files_below(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn places() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
    let tmp = tempfile::tempdir().unwrap();
    let (data, backup, target) =
        (tmp.path().join("data"), tmp.path().join("backup"), tmp.path().join("target"));
    (tmp, data, backup, target)
}

async fn restore(backup: &Path, target: &Path) -> RestoreReport {
    restore_backup(backup, target, RestoreOptions::default()).await.unwrap()
}

#[tokio::test]
async fn backup_of_a_written_store_is_one_moment_and_parks_what_was_unfinished() {
    let (tmp, data, backup, target) = places();
    let store = open(&data).await;
    append(&store, [record(1, 1), record(1, 2)]).await;
    let ended = Event::RunCompleted { status: RunStatus::Completed };
    append(&store, [record(2, 1), Record::Run(envelope(Some(run_id(2)), "s1", 2, ended).into())]).await;
    let kept = add_document(&store, "kept").await;
    let (writing, stop) = (store.clone(), tokio_util::sync::CancellationToken::new());
    let stopped = stop.clone();
    // Runs and documents come and go all the time.
    let writer = tokio::spawn(async move {
        let mut n = 100;
        while !stopped.is_cancelled() {
            append(&writing, (1..=20).map(|seq| record(n, seq))).await;
            let id = add_document(&writing, &format!("document {n}")).await;
            if n % 2 == 0 {
                let tenant = tenant();
                writing.documents().delete(&DocumentOwner::anyone(&tenant), id).await.unwrap();
            }
            n += 1;
        }
    });
    let manifest = take_backup(&data, &backup, options()).await.unwrap();
    stop.cancel();
    writer.await.unwrap();
    store.close().await;
    assert_eq!(
        verify_backup(&backup, stop.clone(), ProgressSink::default()).await.unwrap_err().code(),
        "backup.interrupted"
    );
    assert_eq!(manifest.files.len() as u64, manifest.counts.documents + 1);
    let left: Vec<_> = std::fs::read_dir(tmp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let report = restore(&backup, &target).await;
    assert_eq!(report.parked.len() as u64, manifest.counts.unfinished_runs);
    let store = open(&target).await;
    let filter = RunFilter { status: Some(RunStatus::Waiting), ..RunFilter::default() };
    let waiting = store.runs(&tenant(), &filter, &Page { limit: 500, after: None }).await.unwrap();
    assert_eq!(waiting.len(), report.parked.len());
    for row in &waiting {
        let events = store.run_events(&tenant(), row.run).await.unwrap();
        assert_eq!((events.len() as u64, row.epoch), (row.last_seq, 2));
        assert!(events.len() == 22 || row.run == run_id(1), "a run was cut: {}", events.len());
        let state = RunState::from_journal(row.run, &events);
        assert!(state.is_quarantined() && state.next().is_empty() && state.copied == Some(manifest.taken));
    }
    assert_eq!(store.run(&tenant(), run_id(2)).await.unwrap().unwrap().status, RunStatus::Completed);
    let (documents, _) = store.documents().totals().await.unwrap();
    assert_eq!(documents, manifest.counts.documents);
    let tenant = tenant();
    let owner = DocumentOwner::anyone(&tenant);
    let document = store.documents().open(&owner, kept).await.unwrap().unwrap();
    assert_eq!(document.read(0..10).await.unwrap(), b"kept");
    store.close().await;
    // A restored directory is restored like any other.
    let again = take_backup(&target, &tmp.path().join("again"), options()).await.unwrap();
    assert_eq!(again.counts.unfinished_runs, manifest.counts.unfinished_runs);
}

#[tokio::test]
async fn damaged_or_incomplete_backup_is_refused_and_nothing_is_changed() {
    let (tmp, data, backup, target) = places();
    let store = open(&data).await;
    append(&store, [record(1, 1)]).await;
    add_document(&store, "hello").await;
    store.close().await;
    take_backup(&data, &backup, options()).await.unwrap();
    let before = files_below(tmp.path());
    let whole = files_below(&backup);
    assert_eq!(whole.len(), 4);
    for (path, bytes) in &whole {
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        // The last byte of the manifest's hash is the end of its line.
        let shorter = bytes[..bytes.len().min(60) - 1].to_vec();
        for (content, code) in [
            (Some(changed), "backup.damaged"),
            (Some(shorter), "backup.damaged"),
            (None, "backup.incomplete"),
        ] {
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
            let error = restore_backup(&backup, &target, RestoreOptions::default()).await.unwrap_err();
            assert_eq!(error.code(), code, "{path:?}: {error}");
            assert!(!target.exists());
        }
        std::fs::write(path, bytes).unwrap();
    }
    assert!(files_below(tmp.path()) == before);
    // A directory with content, and one that is used.
    let error = restore_backup(&backup, &data, RestoreOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorCode::RestoreTarget);
    let used = DataDir::open(&target).unwrap();
    let error = restore_backup(&backup, &target, RestoreOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorCode::InUse);
    drop(used);
    restore(&backup, &target).await;
}

#[tokio::test]
async fn backup_is_made_only_at_a_new_place_and_a_killed_one_leaves_nothing() {
    let (tmp, data, backup, _) = places();
    assert_eq!(take_backup(&data, &backup, options()).await.unwrap_err().code(), "store.absent");
    let store = open(&data).await;
    append(&store, [record(1, 1)]).await;
    std::fs::create_dir(&backup).unwrap();
    std::fs::write(backup.join("x"), "").unwrap();
    for place in [backup.clone(), data.join("backup"), backup.join("x"), tmp.path().join("a/b")] {
        let error = take_backup(&data, &place, options()).await.unwrap_err();
        assert_eq!(error.code(), "backup.target", "{place:?}");
    }
    std::fs::remove_file(backup.join("x")).unwrap();
    let late = BackupOptions { timeout: std::time::Duration::ZERO, ..options() };
    assert_eq!(take_backup(&data, &backup, late).await.unwrap_err().code(), "backup.timeout");
    // As a killed backup leaves it.
    let left = tmp.path().join(".proscenium-partial-other");
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("lock"), "").unwrap();
    std::fs::write(left.join(DATABASE_FILE), "copied").unwrap();
    take_backup(&data, &backup, options()).await.unwrap();
    assert!(!left.exists() && backup.join("manifest.json").exists());
    store.close().await;
}

#[tokio::test]
async fn document_without_its_file_is_named() {
    let (_tmp, data, backup, _) = places();
    let store = open(&data).await;
    let id = add_document(&store, "hello").await;
    let file = data.join(DOCUMENT_DIR).join(id.to_string());
    for content in [Some("hallo"), None] {
        match content {
            Some(content) => std::fs::write(&file, content).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let error = take_backup(&data, &backup, options()).await.unwrap_err();
        assert!(error.code() == "backup.document" && error.to_string().contains(&id.to_string()), "{error}");
        assert!(!backup.exists());
    }
    store.close().await;
}

#[tokio::test]
async fn question_that_a_yes_would_answer_with_a_call_counts_no_more() {
    let (_tmp, data, backup, target) = places();
    let store = open(&data).await;
    let call =
        json!({"scene": "Desk", "tool": "Book", "arguments": {}, "definition": "", "question": "Sure?"});
    let asked = |calls: serde_json::Value| -> SessionEvent {
        let question = json!({"text": "Sure?", "tool": "Book", "missing": []});
        let pending = json!({"request": "r", "scene": "Desk", "purpose": "p", "question": question, "unconfirmed": calls});
        let turn =
            json!({"run": null, "request": "r", "answer": "Sure?", "status": "needs_input", "calls": []});
        serde_json::from_value(json!({"type": "turn_ended", "turn": turn, "pending": pending})).unwrap()
    };
    // A yes, a value, and a question that was answered since.
    append(&store, [Record::Session(envelope(None, "yes", 1, asked(json!([call.clone()]))))]).await;
    append(&store, [Record::Session(envelope(None, "value", 1, asked(json!([]))))]).await;
    append(
        &store,
        [
            Record::Session(envelope(None, "answered", 1, asked(json!([call])))),
            Record::Session(envelope(None, "answered", 2, asked(json!([])))),
        ],
    )
    .await;
    store.close().await;
    take_backup(&data, &backup, options()).await.unwrap();
    assert_eq!(restore(&backup, &target).await.lapsed_questions, 1);
    let store = open(&target).await;
    for (name, waits) in [("yes", false), ("value", true), ("answered", true)] {
        let events = store.session_events(&tenant(), &session(name)).await.unwrap();
        let told = Memory::from_events(memory::Options::default(), events.iter().map(|event| &event.body));
        assert_eq!(told.pending().is_some(), waits, "{name}");
    }
    store.close().await;
}

#[tokio::test]
async fn replaced_directory_tells_what_happened_since_and_its_revoked_keys_stay_revoked() {
    let (_tmp, data, backup, _) = places();
    let store = open(&data).await;
    append(&store, [record(1, 1)]).await;
    let ended = Event::RunCompleted { status: RunStatus::Completed };
    append(
        &store,
        [
            Record::Run(envelope(Some(run_id(2)), "s2", 1, event(2, 1).body).into()),
            Record::Run(envelope(Some(run_id(2)), "s2", 2, ended).into()),
        ],
    )
    .await;
    let (revoked, _) = store.create_key(&tenant(), "u", "").await.unwrap();
    let (valid, _) = store.create_key(&tenant(), "v", "").await.unwrap();
    take_backup(&data, &backup, options()).await.unwrap();
    store.revoke_key(&revoked.id).await.unwrap();
    store.erase_run(&tenant(), run_id(2)).await.unwrap();
    store.switch(SwitchKind::Tool, "Desk.Look", true, "", "o").await.unwrap();
    append(&store, [record(3, 1)]).await;
    let cancelled = Event::RunCancelled { by: "o".to_owned() };
    append(&store, [Record::Run(envelope(Some(run_id(1)), "s1", 2, cancelled).into())]).await;
    // As a killed process leaves it: with a log.
    let killed = data.with_file_name("killed");
    std::fs::create_dir(&killed).unwrap();
    for name in [DATABASE_FILE, "proscenium.db-wal"] {
        std::fs::copy(data.join(name), killed.join(name)).unwrap();
    }
    store.close().await;

    let options = RestoreOptions { replace: true, ..RestoreOptions::default() };
    let report = restore_backup(&backup, &killed, options).await.unwrap();
    let since = report.since.clone().unwrap_or_else(|| panic!("{:?}", report.not_compared));
    let kinds: Vec<ChangeSinceKind> = since.changes.iter().map(|change| change.kind).collect();
    assert_eq!(
        kinds,
        [ChangeSinceKind::ConversationErased, ChangeSinceKind::KeyRevoked, ChangeSinceKind::Switched]
    );
    assert_eq!((since.requests, report.revoked_keys), (1, 1));
    let later = report.parked[0].later.as_ref().unwrap();
    assert_eq!((report.parked[0].run, later.status), (run_id(1), Some(RunStatus::Cancelled)));
    let kept = PathBuf::from(report.moved_to.clone().unwrap());
    let old = open(&kept).await;
    assert_eq!(old.run(&tenant(), run_id(3)).await.unwrap().unwrap().last_seq, 1);
    old.close().await;
    let store = open(&killed).await;
    assert!(store.run(&tenant(), run_id(3)).await.unwrap().is_none());
    let keys = store.keys(None).await.unwrap();
    let is_valid = |id: &str| keys.iter().any(|key| key.id == id && key.revoked.is_none());
    assert!(is_valid(&valid.id) && !is_valid(&revoked.id));
    store.close().await;
    let written = std::fs::read(killed.join(report.file_name())).unwrap();
    assert_eq!(serde_json::from_slice::<RestoreReport>(&written).unwrap(), report);
    let revoking = RestoreOptions { replace: true, revoke_keys: true, ..RestoreOptions::default() };
    let report = restore_backup(&backup, &killed, revoking).await.unwrap();
    assert_eq!(report.revoked_keys, 2);
}

#[tokio::test]
async fn directory_of_another_schema_is_not_compared_and_its_keys_are_carried_over() {
    let (_tmp, data, backup, target) = places();
    let store = open(&data).await;
    append(&store, [record(1, 1)]).await;
    let (revoked, _) = store.create_key(&tenant(), "u", "").await.unwrap();
    take_backup(&data, &backup, options()).await.unwrap();
    store.revoke_key(&revoked.id).await.unwrap();
    sqlx::query("PRAGMA user_version = 16").execute(store.pool()).await.unwrap();
    store.close().await;
    let comparing = RestoreOptions { compare: Some(data.clone()), ..RestoreOptions::default() };
    let report = restore_backup(&backup, &target, comparing.clone()).await.unwrap();
    assert!(report.not_compared.unwrap().contains("schema version 16"));
    assert_eq!((report.keys_not_carried, report.revoked_keys), (None, 1));
    // A directory that cannot be read tells nothing of keys.
    let absent = RestoreOptions { compare: Some(data.with_file_name("absent")), ..comparing };
    let report = restore_backup(&backup, &data.with_file_name("second"), absent).await.unwrap();
    assert!(report.not_compared.is_some() && report.keys_not_carried.is_some() && report.revoked_keys == 0);
}

/// The renames of a commit, one by one, as [`RestorePlace::finish`] makes them.
fn renames(data: &Path, report: &RestoreReport) -> Vec<(PathBuf, PathBuf)> {
    let (new, old) = (data.join("restoring/new"), data.join("restoring/old"));
    let name = report.file_name();
    let mut all = vec![(data.join("proscenium.db-wal"), old.join("proscenium.db-wal"))];
    all.push((data.join(DOCUMENT_DIR), old.join(DOCUMENT_DIR)));
    all.push((new.join(DOCUMENT_DIR), data.join(DOCUMENT_DIR)));
    all.push((new.join(&name), data.join(&name)));
    all.push((data.join(DATABASE_FILE), old.join(DATABASE_FILE)));
    all.push((new.join(DATABASE_FILE), data.join(DATABASE_FILE)));
    all.push((old, PathBuf::from(report.moved_to.clone().unwrap())));
    all
}

#[tokio::test]
async fn restore_that_is_killed_between_any_two_renames_is_finished_by_the_next() {
    let (_tmp, source, backup, _) = places();
    let store = open(&source).await;
    append(&store, [record(1, 1)]).await;
    store.close().await;
    take_backup(&source, &backup, options()).await.unwrap();
    let report = restore(&backup, &source.with_file_name("sample")).await;
    for done in 0..=7 {
        let data = source.with_file_name(format!("target{done}"));
        std::fs::create_dir_all(data.join(DOCUMENT_DIR)).unwrap();
        for name in [DATABASE_FILE, "proscenium.db-wal", "documents/d"] {
            std::fs::write(data.join(name), format!("old {name}")).unwrap();
        }
        let place = RestorePlace::new(&data);
        let new = place.prepare().unwrap();
        std::fs::write(new.join(DATABASE_FILE), "new").unwrap();
        std::fs::write(new.join(report.file_name()), "report").unwrap();
        std::fs::create_dir(data.join("restoring/old")).unwrap();
        let moved_to = Some(data.join("before-restore-1").display().to_string());
        let report = RestoreReport { moved_to, ..report.clone() };
        refuse_half_restored(&data).unwrap();
        std::fs::write(data.join("restoring/committing"), serde_json::to_vec(&report).unwrap()).unwrap();
        for (from, to) in renames(&data, &report).into_iter().take(done) {
            std::fs::rename(from, to).unwrap();
        }
        assert_eq!(DataDir::open(&data).unwrap_err().code(), "restore.interrupted");
        assert_eq!(place.unfinished().unwrap().as_ref(), Some(&report));
        place.finish(&report).unwrap();
        let read = |path: &str| std::fs::read_to_string(data.join(path)).unwrap();
        assert_eq!((read(DATABASE_FILE), read(&report.file_name())), ("new".to_owned(), "report".to_owned()));
        for name in [DATABASE_FILE, "proscenium.db-wal", "documents/d"] {
            assert_eq!(read(&format!("before-restore-1/{name}")), format!("old {name}"), "{done}");
        }
        assert!(!data.join("restoring").exists() && !data.join("proscenium.db-wal").exists());
        assert_eq!(std::fs::read_dir(data.join(DOCUMENT_DIR)).unwrap().count(), 0);
        refuse_half_restored(&data).unwrap();
    }
}

#[tokio::test]
async fn interrupted_restore_is_finished_only_with_its_own_backup() {
    let (tmp, data, backup, target) = places();
    let store = open(&data).await;
    append(&store, [record(1, 1)]).await;
    store.close().await;
    take_backup(&data, &backup, options()).await.unwrap();
    let other = tmp.path().join("other");
    take_backup(&data, &other, options()).await.unwrap();
    let report = restore(&backup, &target).await;
    std::fs::create_dir_all(target.join("restoring/new")).unwrap();
    std::fs::write(target.join("restoring/committing"), serde_json::to_vec(&report).unwrap()).unwrap();
    let error = restore_backup(&other, &target, RestoreOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorCode::RestoreInterrupted);
    assert_eq!(restore(&backup, &target).await, report);
    open(&target).await.close().await;
}
