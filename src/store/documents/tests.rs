use std::path::Path;

use proptest::prelude::*;
use uuid::Uuid;

use super::super::Record;
use super::super::tests::{envelope, fresh, open, run_id, session, tenant};
use super::*;
use crate::plan::TaskId;
use crate::run::{Event, RunQueued, RunStatus};

const LIMITS: DocumentLimits = DocumentLimits { max_bytes: 8 << 20, max_per_user: 3 };

fn new(name: &str, user: &str) -> NewDocument {
    NewDocument { tenant: tenant(), user: user.to_owned(), name: name.to_owned(), media: DocumentMedia::Text }
}

async fn add(store: &Store, user: &str, text: &[u8], limits: DocumentLimits) -> Result<AddedDocument, Error> {
    let mut upload = store.documents().begin(new("notes.txt", user), limits).await?;
    for chunk in text.chunks(60_001) {
        upload.write(chunk).await?;
    }
    upload.finish().await
}

/// The names of the files of documents.
fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join(DOCUMENT_DIR)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn document_is_stored_once_for_each_user_and_read_in_parts() {
    let (tmp, store) = fresh().await;
    let documents = store.documents();
    let text =
        "\n  Il bilancio è in attivo.\nPiù di così non si può, perché il resto è già speso.\n".repeat(13_000);
    let added = add(&store, "ada", text.as_bytes(), LIMITS).await.unwrap();
    let row = added.document;
    assert!(added.is_new);
    assert_eq!((row.bytes, row.name.as_str(), row.user.as_str()), (text.len() as u64, "notes.txt", "ada"));
    assert_eq!(
        (row.heading.as_deref(), row.language.as_deref()),
        (Some("Il bilancio è in attivo."), Some("it"))
    );
    assert_eq!(row.sha256.len(), 64);
    assert_eq!(store.tenant_bytes(&tenant()).await.unwrap(), row.bytes);
    let again = add(&store, "ada", text.as_bytes(), LIMITS).await.unwrap();
    assert_eq!((again.is_new, again.document.id), (false, row.id));
    assert!(again.document.used >= row.used);
    let bob = add(&store, "bob", text.as_bytes(), LIMITS).await.unwrap();
    assert!(bob.is_new && bob.document.id != row.id && bob.document.sha256 == row.sha256);
    assert_eq!(files(tmp.path()).len(), 2);

    let (acme, rival) = (tenant(), TenantId::new("rival").unwrap());
    let (ours, ada) = (DocumentOwner::anyone(&acme), DocumentOwner::user(&acme, "ada"));
    let opened = documents.open(&ada, row.id).await.unwrap().unwrap();
    assert_eq!(opened.read(10..40).await.unwrap(), text.as_bytes()[10..40]);
    assert_eq!(opened.read(row.bytes - 3..row.bytes + 9).await.unwrap(), text.as_bytes()[text.len() - 3..]);
    assert!(opened.read(row.bytes..row.bytes + 9).await.unwrap().is_empty());
    assert_eq!(opened.read(0..u64::MAX).await.unwrap().len() as u64, MAX_READ_BYTES);
    // Both ends within `è`.
    let first = text.find('è').unwrap() as u64;
    let second = text[first as usize + 2..].find('è').unwrap() as u64 + first + 2;
    let part = opened.text(first + 1..second + 1).await.unwrap();
    assert_eq!(part.start, first + 2);
    assert_eq!(part.text, text[first as usize + 2..second as usize]);

    let listed = documents.list(&ours, &Page::default()).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id).collect::<Vec<_>>(), [bob.document.id, row.id]);
    let page = Page { limit: 1, after: Some(bob.document.id) };
    assert_eq!(documents.list(&ada, &page).await.unwrap().len(), 1);
    for other in [DocumentOwner::anyone(&rival), DocumentOwner::user(&acme, "bob")] {
        assert!(documents.open(&other, row.id).await.unwrap().is_none());
        assert!(documents.delete(&other, row.id).await.unwrap().is_none());
        let later = Timestamp::now().checked_add(jiff::SignedDuration::from_hours(1)).unwrap();
        documents.mark_used(&other, &[row.id], later).await.unwrap();
    }
    assert!(documents.get(&ours, row.id).await.unwrap().unwrap().used <= Timestamp::now());

    assert!(documents.delete(&ada, row.id).await.unwrap().is_some());
    assert!(documents.delete(&ada, row.id).await.unwrap().is_none());
    assert_eq!(opened.read(0..1).await.unwrap_err().code(), "document.deleted");
    assert_eq!(files(tmp.path()), [bob.document.id.to_string()]);
    assert_eq!(store.tenant_bytes(&tenant()).await.unwrap(), row.bytes);
    assert!(documents.delete(&ours, bob.document.id).await.unwrap().is_some());
    assert_eq!(documents.totals().await.unwrap(), (0, 0));
    assert!(files(tmp.path()).is_empty());
}

#[tokio::test]
async fn upload_that_is_no_text_or_too_large_leaves_nothing() {
    let (tmp, store) = fresh().await;
    let small = DocumentLimits { max_bytes: 300_000, ..LIMITS };
    let mut cut = vec![b'a'; 299_990];
    cut.push(0xe2);
    let mut broken = vec![b'a'; 270_000];
    broken.extend([0xc3, 0x28]);
    for (text, code, says) in [
        (&b""[..], "document.empty", "empty"),
        (" \n---\n\u{200b}".as_bytes(), "document.empty", "without a word"),
        (&b"a\0b"[..], "document.encoding", "from byte 1 on: there is a NUL"),
        (&broken[..], "document.encoding", "from byte 270000 on"),
        (&cut[..], "document.encoding", "from byte 299990 on: it ends within a character"),
        (&[b'a'; 300_001][..], "document.too_large", "300000 bytes (documents.max_bytes)"),
    ] {
        let error = add(&store, "ada", text, small).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(says), "{error}");
    }
    let name = store.documents().begin(new("a\u{202e}b", "ada"), small).await.unwrap_err();
    assert_eq!(name.code(), "document.name");
    let mut left = store.documents().begin(new("left", "ada"), small).await.unwrap();
    left.write(b"begun").await.unwrap();
    assert_eq!(files(tmp.path()).len(), 1);
    drop(left);
    assert!(files(tmp.path()).is_empty());

    for number in 0..3 {
        add(&store, "ada", format!("text {number}").as_bytes(), small).await.unwrap();
    }
    assert_eq!(add(&store, "ada", b"one more", small).await.unwrap_err().code(), "document.too_many");
    assert!(!add(&store, "ada", b"text 1", small).await.unwrap().is_new);
    store.limit_tenant_bytes(Some(25));
    let error = add(&store, "bob", b"0123456789", small).await.unwrap_err();
    assert_eq!(error.code(), "store.quota");
    assert!(error.to_string().contains("has 18 bytes"), "{error}");
    assert!(add(&store, "bob", b"0123456", small).await.unwrap().is_new);
    assert_eq!(add(&store, "bob", b"x", small).await.unwrap_err().code(), "store.quota");
    assert_eq!(files(tmp.path()).len(), 4);
}

#[tokio::test]
async fn start_removes_what_a_crash_left_and_rows_whose_file_is_gone() {
    let (tmp, store) = fresh().await;
    let kept = add(&store, "ada", b"kept", LIMITS).await.unwrap().document;
    let lost = add(&store, "ada", b"lost", LIMITS).await.unwrap().document;
    store.close().await;
    let dir = tmp.path().join(DOCUMENT_DIR);
    std::fs::remove_file(dir.join(lost.id.to_string())).unwrap();
    for name in [Uuid::now_v7().to_string(), format!("{}.part", Uuid::now_v7()), "README".to_owned()] {
        std::fs::write(dir.join(name), "x").unwrap();
    }
    let store = open(tmp.path()).await;
    assert_eq!(files(tmp.path()), [kept.id.to_string(), "README".to_owned()]);
    let acme = tenant();
    let ours = DocumentOwner::anyone(&acme);
    assert!(store.documents().get(&ours, lost.id).await.unwrap().is_none());
    assert_eq!(store.tenant_bytes(&acme).await.unwrap(), 4);
    let read = store.documents().open(&ours, kept.id).await.unwrap().unwrap();
    assert_eq!(read.read(0..9).await.unwrap(), b"kept");
    // Without the whole directory, the rows are kept, and the same content takes its place again.
    store.close().await;
    std::fs::rename(&dir, tmp.path().join("elsewhere")).unwrap();
    let store = open(tmp.path()).await;
    let read = store.documents().open(&ours, kept.id).await.unwrap().unwrap();
    assert_eq!(read.read(0..9).await.unwrap_err().code(), "document.deleted");
    let again = add(&store, "ada", b"kept", LIMITS).await.unwrap();
    assert_eq!((again.is_new, again.document.id), (false, kept.id));
    assert_eq!(read.read(0..9).await.unwrap(), b"kept");
    assert_eq!(files(tmp.path()), [kept.id.to_string()]);
}

#[tokio::test]
async fn other_processes_leave_uploads_of_the_owner_alone() {
    let (tmp, store) = fresh().await;
    let mut upload = store.documents().begin(new("notes.txt", "ada"), LIMITS).await.unwrap();
    upload.write(b"half").await.unwrap();
    let part = files(tmp.path());
    drop(Store::open_shared(tmp.path()).await.unwrap());
    drop(Store::open_read_only(tmp.path()).await.unwrap());
    assert_eq!(files(tmp.path()), part);
    assert!(upload.finish().await.unwrap().is_new);
}

#[tokio::test]
async fn uploads_in_progress_count_in_the_quota() {
    let (_tmp, store) = fresh().await;
    store.limit_tenant_bytes(Some(100));
    let mut first = store.documents().begin(new("first", "ada"), LIMITS).await.unwrap();
    let mut second = store.documents().begin(new("second", "bob"), LIMITS).await.unwrap();
    first.write(&[b'a'; 60]).await.unwrap();
    let error = second.write(&[b'b'; 60]).await.unwrap_err();
    assert!(error.code() == "store.quota" && error.to_string().contains("has 60 bytes"), "{error}");
    drop(second);
    first.write(&[b'a'; 40]).await.unwrap();
    drop(first);
    assert!(add(&store, "bob", &[b'b'; 100], LIMITS).await.unwrap().is_new);
}

/// Run `n`, which names a document; ended if `status` says so.
async fn run_naming(store: &Store, n: u128, document: &DocumentRow, status: Option<RunStatus>) {
    run_naming_in(store, ("s1", n), document, status).await;
}

async fn run_naming_in(
    store: &Store,
    (session, n): (&str, u128),
    document: &DocumentRow,
    status: Option<RunStatus>,
) {
    let mut queued = RunQueued::new("what does it say?", "ada", TaskId(Uuid::from_u128(n)));
    queued.documents.push(document.named());
    let mut events = vec![Event::RunQueued(queued)];
    events.extend(status.map(|status| Event::RunCompleted { status }));
    for (seq, event) in events.into_iter().enumerate() {
        let record = Record::Run(envelope(Some(run_id(n)), session, seq as u64 + 1, event).into());
        let outcomes = store.write(&[vec![record.to_row().unwrap()]]).await.unwrap();
        assert!(outcomes[0].failures.is_empty(), "{outcomes:?}");
    }
}

#[tokio::test]
async fn deletion_erases_the_runs_that_named_a_document_once_they_have_ended() {
    let (_tmp, store) = fresh().await;
    let (documents, acme) = (store.documents(), tenant());
    let ours = DocumentOwner::anyone(&acme);
    let named = add(&store, "ada", b"named", LIMITS).await.unwrap().document;
    let other = add(&store, "ada", b"other", LIMITS).await.unwrap().document;
    run_naming(&store, 1, &named, Some(RunStatus::Completed)).await;
    run_naming(&store, 2, &named, None).await;
    run_naming(&store, 3, &other, Some(RunStatus::Completed)).await;
    let later = Timestamp::now().checked_add(jiff::SignedDuration::from_hours(1)).unwrap();
    let refused = documents.delete(&ours, named.id).await.unwrap_err();
    assert!(refused.code() == "document.in_use" && refused.to_string().contains(&run_id(2).to_string()));
    assert!(documents.delete(&DocumentOwner::user(&acme, "bob"), named.id).await.unwrap().is_none());
    // Retention passes over it, and deletes the other with its run.
    assert_eq!(documents.delete_unused(later).await.unwrap(), 1);
    assert!(documents.get(&ours, other.id).await.unwrap().is_none());
    let end = Event::RunCompleted { status: RunStatus::Cancelled };
    let end = Record::Run(envelope(Some(run_id(2)), "s1", 2, end).into()).to_row().unwrap();
    store.write(&[vec![end]]).await.unwrap();
    let deleted = documents.delete(&ours, named.id).await.unwrap().unwrap();
    assert_eq!((deleted.runs, deleted.sessions), (vec![run_id(1), run_id(2)], vec![session("s1")]));
    for table in ["journal", "runs", "plans", "documents", "document_uses"] {
        let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let rows: i64 = sqlx::query_scalar(sql).fetch_one(store.pool()).await.unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    assert_eq!(store.tenant_bytes(&acme).await.unwrap(), 0);
}

/// Holds every conversation but one.
struct AllBut(&'static str, ErrorCode);

#[async_trait::async_trait]
impl ConversationHold for AllBut {
    type Error = Error;

    async fn hold(&self, _: &TenantId, session: &crate::run::SessionId) -> Result<Box<dyn Send>, Error> {
        if session.as_str() == self.0 { Err(Error::new(self.1, "not now")) } else { Ok(Box::new(())) }
    }

    fn code(error: &Error) -> &str {
        error.code()
    }
}

#[tokio::test]
async fn deletion_is_refused_as_a_whole_or_continues_until_everything_is_forgotten() {
    let (tmp, store) = fresh().await;
    let (documents, acme) = (store.documents(), tenant());
    let ours = DocumentOwner::anyone(&acme);
    let named = add(&store, "ada", b"named", LIMITS).await.unwrap().document;
    run_naming_in(&store, ("s1", 1), &named, Some(RunStatus::Completed)).await;
    run_naming_in(&store, ("s2", 2), &named, None).await;
    let runs = async |store: &Store| -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM runs").fetch_one(store.pool()).await.unwrap()
    };
    assert_eq!(documents.delete(&ours, named.id).await.unwrap_err().code(), "document.in_use");
    assert!(runs(&store).await == 2 && documents.get(&ours, named.id).await.unwrap().is_some());
    let end = Event::RunCompleted { status: RunStatus::Completed };
    let end = Record::Run(envelope(Some(run_id(2)), "s2", 2, end).into()).to_row().unwrap();
    store.write(&[vec![end]]).await.unwrap();

    // A conversation that is at work just then does not keep the others from forgetting it.
    let busy = AllBut("s1", ErrorCode::DocumentInUse);
    assert_eq!(documents.delete_holding(&ours, named.id, &busy).await.unwrap_err().code(), "document.in_use");
    // The next attempt ends in the middle, as with the process.
    let dies = AllBut("s1", ErrorCode::Stopped);
    assert!(documents.delete_holding(&ours, named.id, &dies).await.is_err());
    assert_eq!(runs(&store).await, 1);
    assert!(documents.open(&ours, named.id).await.unwrap().is_none());
    assert_eq!(documents.list(&ours, &Page::default()).await.unwrap(), []);
    let again = add(&store, "ada", b"named", LIMITS).await.unwrap();
    assert!(again.is_new && again.document.id != named.id);
    store.close().await;

    let store = open(tmp.path()).await;
    assert_eq!(store.documents().delete_unused(Timestamp::UNIX_EPOCH).await.unwrap(), 1);
    assert_eq!((runs(&store).await, files(tmp.path())), (0, vec![again.document.id.to_string()]));
    assert!(store.documents().get_to_delete(&ours, named.id).await.unwrap().is_none());
    assert_eq!(store.tenant_bytes(&acme).await.unwrap(), 5);
}

#[tokio::test]
async fn unused_documents_are_deleted_and_used_ones_kept() {
    let (_tmp, store) = fresh().await;
    let documents = store.documents();
    let old = add(&store, "ada", b"old", LIMITS).await.unwrap().document;
    let named = add(&store, "ada", b"named", LIMITS).await.unwrap().document;
    let since = named.used.checked_add(jiff::SignedDuration::from_secs(60)).unwrap();
    let acme = tenant();
    let ours = DocumentOwner::anyone(&acme);
    documents.mark_used(&ours, &[named.id], since).await.unwrap();
    assert_eq!(documents.delete_unused(since).await.unwrap(), 1);
    assert!(documents.get(&ours, old.id).await.unwrap().is_none());
    assert_eq!(documents.get(&ours, named.id).await.unwrap().unwrap().used, since);
}

#[tokio::test]
async fn retention_passes_over_a_document_whose_conversation_cannot_be_read() {
    let (_tmp, store) = fresh().await;
    let (documents, acme) = (store.documents(), tenant());
    let oldest = add(&store, "ada", b"oldest", LIMITS).await.unwrap().document;
    add(&store, "ada", b"newer", LIMITS).await.unwrap();
    run_naming(&store, 1, &oldest, Some(RunStatus::Completed)).await;
    let started = envelope(None, "s1", 1, crate::run::SessionEvent::SessionStarted {});
    store.write(&[vec![Record::Session(started).to_row().unwrap()]]).await.unwrap();
    sqlx::query("UPDATE journal SET body = '{' WHERE stream LIKE 'session:%'")
        .execute(store.pool())
        .await
        .unwrap();
    let later = Timestamp::now().checked_add(jiff::SignedDuration::from_hours(1)).unwrap();
    assert_eq!(documents.delete_unused(later).await.unwrap(), 1);
    let ours = DocumentOwner::anyone(&acme);
    assert!(documents.get(&ours, oldest.id).await.unwrap().is_some());
    assert_eq!(documents.delete(&ours, oldest.id).await.unwrap_err().code(), "store.unreadable");
}

#[tokio::test]
async fn only_the_owner_of_the_directory_changes_documents() {
    let (tmp, store) = fresh().await;
    let row = add(&store, "ada", b"text", LIMITS).await.unwrap().document;
    let shared = Store::open_shared(tmp.path()).await.unwrap();
    let acme = tenant();
    let ours = DocumentOwner::anyone(&acme);
    assert_eq!(shared.documents().delete(&ours, row.id).await.unwrap_err().code(), "store.read_only");
    let refused = shared.documents().begin(new("x", "ada"), LIMITS).await.unwrap_err();
    assert_eq!(refused.code(), "store.read_only");
    assert!(shared.documents().get(&ours, row.id).await.unwrap().is_some());
}

#[cfg(unix)]
#[tokio::test]
async fn files_of_documents_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (tmp, store) = fresh().await;
    let row = add(&store, "ada", b"text", LIMITS).await.unwrap().document;
    let dir = tmp.path().join(DOCUMENT_DIR);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&dir.join(row.id.to_string()))), (0o700, 0o600));
    store.close().await;
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(open(tmp.path()).await);
    assert_eq!(mode(&dir), 0o700);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever range is asked for, what is read is the whole characters in it.
    #[test]
    fn any_range_of_any_text_is_whole_characters(text in "[a-zè€𝄞\n]{1,400}", ends in (0u64..1300, 0u64..1300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let read = runtime.block_on(async {
            let tmp = tempfile::tempdir().unwrap();
            let path = tmp.path().join("text");
            std::fs::write(&path, &text).unwrap();
            let row = DocumentRow {
                id: DocumentId(Uuid::nil()),
                tenant: tenant(),
                user: String::new(),
                name: String::new(),
                media: DocumentMedia::Text,
                bytes: text.len() as u64,
                sha256: String::new(),
                heading: None,
                language: None,
                created: Timestamp::UNIX_EPOCH,
                used: Timestamp::UNIX_EPOCH,
            };
            OpenDocument::new(path, row).text(ends.0..ends.1).await.unwrap()
        });
        let (from, to) = (read.start as usize, read.start as usize + read.text.len());
        if !read.text.is_empty() {
            prop_assert_eq!(&text[from..to], read.text.as_str());
        }
        let inner = |at: u64| (at as usize).min(text.len());
        let mut whole = (inner(ends.0)..=inner(ends.1)).filter(|at| text.is_char_boundary(*at));
        let (first, last) = (whole.clone().next(), whole.next_back());
        let expected = first.zip(last).map_or(0, |(first, last)| last - first);
        prop_assert_eq!(read.text.len(), expected);
    }
}
