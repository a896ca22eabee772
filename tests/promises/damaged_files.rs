//! Servers started on files left by a crash or a bad disk: a log that ends inside a record or contains a
//! wrong byte, a damaged or truncated database, a file of an older version. Whole records are there; damage
//! is reported, and nothing panics.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use super::disk_harness::{DiskHarness, Server};
use super::process::ProcessOutput;

const FILE: &str = "proscenium.db";
const LOG: &str = "proscenium.db-wal";

/// The log's header, and the header of each of its frames, which is followed by the frame's page.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// The files of a server that was killed after a few conversations: the database as it was at its start, and
/// everything else in the log.
struct LeftFiles {
    harness: DiskHarness,
    file: Vec<u8>,
    log: Vec<u8>,
}

impl LeftFiles {
    async fn of_a_killed_server() -> Self {
        let harness = DiskHarness::open();
        // The tables are in the file.
        assert_eq!(harness.start().end().status, 0);
        let server = harness.start();
        for book in ["b0", "b1", "b2"] {
            assert_eq!(server.ask(book, "s").await.unwrap().status, 200);
        }
        server.kill();
        let read = |name: &str| std::fs::read(harness.workspace.data().join(name)).unwrap();
        let (file, log) = (read(FILE), read(LOG));
        assert!(log.len() > 20 * 4096, "{}", log.len());
        Self { harness, file, log }
    }

    /// The data directory with this log.
    fn write_log(&self, log: &[u8]) {
        write_files(&self.harness.workspace.data(), &self.file, log);
    }

    /// Where each complete transaction of the log ends. A transaction's last frame contains the file's size
    /// in pages.
    fn commits(&self) -> Vec<usize> {
        let number = |at: usize| u32::from_be_bytes(self.log[at..at + 4].try_into().unwrap());
        let frame = FRAME + number(8) as usize;
        let frames = (HEADER..).step_by(frame).take_while(|at| at + frame <= self.log.len());
        let salt = number(16);
        frames
            .take_while(|at| number(at + 8) == salt)
            .filter(|at| number(at + 4) != 0)
            .map(|at| at + frame)
            .collect()
    }

    /// How many events of each run are complete in the first `length` bytes of the log.
    async fn whole_events(&self, length: usize) -> BTreeMap<String, i64> {
        let dir = tempfile::tempdir().unwrap();
        write_files(dir.path(), &self.file, &self.log[..length]);
        events(dir.path()).await
    }
}

fn write_files(data: &Path, file: &[u8], log: &[u8]) {
    let _ = std::fs::remove_file(data.join("proscenium.db-shm"));
    std::fs::write(data.join(FILE), file).unwrap();
    std::fs::write(data.join(LOG), log).unwrap();
}

async fn pool(data: &Path) -> SqlitePool {
    SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join(FILE))).await.unwrap()
}

/// How many events each run has.
async fn events(data: &Path) -> BTreeMap<String, i64> {
    let pool = pool(data).await;
    let sql = "SELECT stream, count(*) FROM journal WHERE stream LIKE 'run:%' GROUP BY stream";
    let rows: Vec<(String, i64)> = sqlx::query_as(sql).fetch_all(&pool).await.unwrap();
    pool.close().await;
    rows.into_iter().map(|(stream, count)| (stream.trim_start_matches("run:").to_owned(), count)).collect()
}

/// Asserts that everything can be read and resumed, and that new requests work.
async fn continues(server: Server) -> ProcessOutput {
    for row in server.settled_runs().await {
        let run = row["run_id"].as_str().unwrap();
        let document = server.get(&format!("/api/runs/{run}")).await;
        assert_eq!((document.status, &document.json()["status"]), (200, &row["status"]), "{document:#?}");
        let events = server.get(&format!("/api/runs/{run}/events")).await.events();
        assert!(events.last().unwrap().name.starts_with("run_"), "{events:#?}");
    }
    let reply = server.ask("b9", "s").await.unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (200, &json!("completed")), "{reply:#?}");
    let ran = server.end();
    assert_eq!(ran.status, 0, "{ran:?}");
    ran
}

#[tokio::test]
async fn torn_wal_is_recovered_to_the_last_whole_record() {
    let left = LeftFiles::of_a_killed_server().await;
    let commits = left.commits();
    // Their number depends on how many events were written together.
    assert!(commits.len() > 8, "{commits:?}");
    let last = *commits.last().unwrap();
    assert_eq!(left.whole_events(last).await.len(), 3);
    // After a complete transaction: one byte, a part of the header, of the page, of the next frames.
    let middle = commits[commits.len() / 2];
    let third = commits[commits.len() / 3];
    for (whole, torn) in
        [(0, 0), (0, 10), (0, HEADER + 7), (third, third + 1), (middle, middle + FRAME + 100), (last, last)]
    {
        left.write_log(&left.log[..torn]);
        let expected = left.whole_events(if whole == 0 { HEADER } else { whole }).await;
        continues(left.harness.start()).await;
        assert_events(&left.harness, &expected).await;
    }
    // The last record without its last byte.
    left.write_log(&left.log[..last - 1]);
    let expected = left.whole_events(commits[commits.len() - 2]).await;
    continues(left.harness.start()).await;
    assert_events(&left.harness, &expected).await;
}

/// Asserts that exactly these runs and events are there, besides new ones.
async fn assert_events(harness: &DiskHarness, expected: &BTreeMap<String, i64>) {
    let found = events(&harness.workspace.data()).await;
    for (run, count) in expected {
        let now = found.get(run).copied().unwrap_or_default();
        assert!(now >= *count, "{run} has {now} events of {count}");
    }
    assert_eq!(found.len(), expected.len() + 1, "{found:?} of {expected:?}");
}

#[tokio::test]
async fn corrupt_wal_is_recovered_to_the_record_before_the_wrong_byte() {
    let left = LeftFiles::of_a_killed_server().await;
    let commits = left.commits();
    for part in [1, 2, 3] {
        let whole = commits[commits.len() * part / 4];
        // In the header of the next frame, and in its page.
        for at in [whole + 9, whole + FRAME + 2000] {
            let mut log = left.log.clone();
            log[at] ^= 0x40;
            left.write_log(&log);
            let expected = left.whole_events(whole).await;
            continues(left.harness.start()).await;
            assert_events(&left.harness, &expected).await;
        }
    }
}

/// Starts a server on a damaged file: it reports the damage and ends, or it serves what it can read and
/// reports everything else. It never panics, and damaged data never looks empty.
async fn reports_damage(harness: &DiskHarness, runs: &[String], what: &str) -> bool {
    let server = match harness.try_start(&[]) {
        Ok(server) => server,
        Err(ran) => {
            assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{what}: {ran:?}");
            assert!(ran.err.contains("error[store.corrupt]"), "{what}: {}", ran.err);
            assert!(ran.err.contains(FILE) && ran.err.contains("backup"), "{what}: {}", ran.err);
            assert!(!ran.err.contains("panicked"), "{what}: {}", ran.err);
            return true;
        }
    };
    let mut reported = false;
    let mut paths = vec!["/api/runs".to_owned(), "/api/sessions".to_owned(), "/api/usage".to_owned()];
    paths.extend(runs.iter().map(|run| format!("/api/runs/{run}")));
    paths.extend(runs.iter().map(|run| format!("/api/runs/{run}/events")));
    for path in paths {
        let reply = server.get(&path).await;
        if reply.status == 200 {
            let body = if path == "/api/runs" { reply.json()["runs"].clone() } else { json!(["-"]) };
            reported |= body.as_array().unwrap().len() < runs.len() && path == "/api/runs";
            continue;
        }
        let problem = reply.json();
        let code = problem["code"].as_str().unwrap_or_else(|| panic!("{what}: {path}: {reply:#?}"));
        assert!(
            ["store.corrupt", "store.unreadable", "store.gap"].contains(&code),
            "{what}: {path}: {problem:#}"
        );
        reported = true;
    }
    let asked = server.ask("b9", "s").await.unwrap();
    if asked.status != 200 {
        assert!(asked.json()["code"].as_str().unwrap().starts_with("store."), "{what}: {asked:#?}");
        reported = true;
    }
    assert_eq!(server.get("/healthz").await.status, 200, "{what}");
    let ran = server.end();
    assert!(!ran.err.contains("panicked"), "{what}: {}", ran.err);
    reported
}

/// A whole file, and the runs in it.
async fn whole_file() -> (DiskHarness, Vec<u8>, Vec<String>) {
    let harness = DiskHarness::open();
    let server = harness.start();
    let mut runs = Vec::new();
    for book in ["b0", "b1", "b2"] {
        let reply = server.ask(book, book).await.unwrap();
        runs.push(reply.json()["run_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(server.end().status, 0);
    let data = harness.workspace.data();
    assert!(!data.join(LOG).exists(), "everything is in the file");
    let file = std::fs::read(data.join(FILE)).unwrap();
    (harness, file, runs)
}

#[tokio::test]
async fn damaged_page_is_reported_without_a_panic() {
    let (harness, file, runs) = whole_file().await;
    let pages = file.len() / 4096;
    // A plain run damages the first page and every third one, `SOAK=1` damages each.
    let step = if std::env::var_os("SOAK").is_some() { 1 } else { 3 };
    let (mut reported, mut damages) = (0, 0);
    for page in (0..pages).step_by(step) {
        damages += 1;
        let mut damaged = file.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xa5);
        write_files(&harness.workspace.data(), &damaged, b"");
        reported += usize::from(reports_damage(&harness, &runs, &format!("page {page} of {pages}")).await);
    }
    // Damage in unused indexes and free pages may go unnoticed.
    assert!(reported * 2 > damages, "only {reported} of {damages} damaged pages were reported");
}

#[tokio::test]
async fn damaged_header_is_reported_and_the_file_left_unchanged() {
    let (harness, file, runs) = whole_file().await;
    // The format's magic number, the page size, and the whole header.
    for range in [0..16, 16..18, 0..100] {
        let mut damaged = file.clone();
        damaged[range.clone()].fill(0);
        write_files(&harness.workspace.data(), &damaged, b"");
        assert!(reports_damage(&harness, &runs, &format!("bytes {range:?}")).await);
        assert_eq!(std::fs::read(harness.workspace.data().join(FILE)).unwrap(), damaged);
    }
}

#[tokio::test]
async fn truncated_file_is_reported() {
    let (harness, file, runs) = whole_file().await;
    for part in [1, 2, 3] {
        write_files(&harness.workspace.data(), &file[..file.len() * part / 4], b"");
        assert!(reports_damage(&harness, &runs, &format!("{part} quarters")).await);
    }
}

/// The file as an older version would have made it: the tables of its schema version with their contents.
async fn downgrade(data: &Path, version: usize) {
    let migrations = [
        include_str!("../../migrations/0001_journal.sql"),
        include_str!("../../migrations/0002_keys_and_idempotency.sql"),
    ];
    let old = TempDir::new().unwrap();
    let options = SqliteConnectOptions::new().filename(old.path().join(FILE)).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    for sql in &migrations[..version] {
        sqlx::raw_sql(*sql).execute(&pool).await.unwrap();
    }
    let new = data.join(FILE).display().to_string();
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("ATTACH ? AS new").bind(new).execute(&mut *connection).await.unwrap();
    for sql in [
        "INSERT INTO journal SELECT stream, seq, session, tenant, at, epoch, schema, body FROM new.journal",
        "INSERT INTO runs SELECT run, tenant, session, request, status, created, updated, epoch, last_seq \
         FROM new.runs",
        "INSERT INTO sessions SELECT tenant, session, created, updated, turns, epoch, last_seq FROM new.sessions",
        "PRAGMA application_id = 1347571539",
    ] {
        sqlx::query(sql).execute(&mut *connection).await.unwrap();
    }
    let sql = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {version}"));
    sqlx::query(sql).execute(&mut *connection).await.unwrap();
    sqlx::query("DETACH new").execute(&mut *connection).await.unwrap();
    drop(connection);
    pool.close().await;
    std::fs::copy(old.path().join(FILE), data.join(FILE)).unwrap();
}

#[tokio::test]
async fn older_file_is_migrated_and_served() {
    for version in [1, 2] {
        let (harness, _, runs) = whole_file().await;
        downgrade(&harness.workspace.data(), version).await;
        // Read-only commands work only after a writer has migrated the file.
        let looked = harness.workspace.run(&["runs", "list"]);
        assert_eq!(
            (looked.status, looked.err.contains("error[store.older_schema]")),
            (1, true),
            "{looked:?}"
        );
        let server = harness.start();
        let listed = server.settled_runs().await;
        let mut found: Vec<&Value> = listed.iter().map(|row| &row["run_id"]).collect();
        found.reverse();
        assert_eq!(json!(found), json!(runs), "version {version}");
        continues(server).await;
        let pool = pool(&harness.workspace.data()).await;
        let now: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&pool).await.unwrap();
        assert!(now >= 3, "{now}");
        pool.close().await;
    }
}

#[tokio::test]
async fn file_of_a_newer_version_is_refused_unchanged() {
    let (harness, mut file, _) = whole_file().await;
    // SQLite keeps `user_version` in bytes 60 to 63 of the file, big-endian.
    file[60..64].copy_from_slice(&999u32.to_be_bytes());
    write_files(&harness.workspace.data(), &file, b"");
    let ran = harness.try_start(&[]).err().unwrap();
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
    assert!(ran.err.contains("error[store.newer_schema]") && ran.err.contains("999"), "{}", ran.err);
    assert_eq!(std::fs::read(harness.workspace.data().join(FILE)).unwrap(), file);
}
