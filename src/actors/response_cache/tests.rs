use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::llm::cache::{CacheUse, ReplyCache as _, ResolvedReply, resolve};
use crate::llm::{CallControl, Completion, Error, ErrorKind, Message, Request, RequestDigest, ToolChoice};
use crate::run::{Reply, TenantId, Usage};

fn question(words: &str) -> Request {
    Request {
        purpose: Purpose::Plan,
        messages: vec![Message::User { text: words.into() }],
        tools: vec![],
        choice: ToolChoice::Auto,
        temperature: Some(0.3),
        max_output_tokens: None,
    }
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn key(words: &str) -> CacheKey {
    CacheKey::new(&tenant("acme"), "m", &RequestDigest::of(&question(words)))
}

fn completion(text: &str) -> Completion {
    let reply = Reply { text: text.into(), finish_reason: Some("stop".into()), ..Reply::default() };
    Completion {
        reply,
        usage: Usage { calls: 1, output_tokens: 5, cost_nano_usd: 7, ..Usage::default() },
        first_token: None,
    }
}

fn ctl() -> CallControl {
    CallControl::new(CancellationToken::new(), 60_000)
}

fn cache_with(options: cache::Options) -> Handle {
    let handle = Handle::new(Options { cache: options, metrics: ServerMetrics::default() });
    handle.start(tokio::runtime::Handle::current());
    handle
}

fn cache() -> Handle {
    cache_with(cache::Options::default())
}

async fn panic(cache: &Handle) {
    assert_eq!(cache.0.mailbox.ask(CacheMessage::Panic).await, Err(MailboxError::Failed));
}

async fn resolve_with(
    cache: &Handle,
    words: &str,
    mode: Mode,
    ctl: &CallControl,
    ask: impl Future<Output = Result<Completion, Error>>,
) -> Result<ResolvedReply, Error> {
    let cache: Arc<dyn cache::ReplyCache> = Arc::new(cache.clone());
    // Questions of consultations begin so.
    let purpose = if words.starts_with("recover") { Purpose::Recovery } else { Purpose::Plan };
    let found = resolve(&cache, key(words), CacheUse { mode, purpose, max_output: 100 }, ctl, ask).await;
    found.map_err(|unresolved| unresolved.error)
}

async fn through(
    cache: &Handle,
    words: &str,
    mode: Mode,
    reply: Result<Completion, Error>,
) -> Result<ResolvedReply, Error> {
    resolve_with(cache, words, mode, &ctl(), async { reply }).await
}

/// Asks, and confirms what comes back.
async fn asked(cache: &Handle, words: &str, mode: Mode, reply: &str) -> (String, bool) {
    let found = through(cache, words, mode, Ok(completion(reply))).await.unwrap();
    found.confirm.accepted();
    (found.completion.reply.text, found.cached)
}

#[actix::test]
async fn confirmed_reply_is_served_again_for_free() {
    let cache = cache();
    assert_eq!(asked(&cache, "q", Mode::On, "one").await, ("one".into(), false));
    let found = through(&cache, "q", Mode::On, Ok(completion("two"))).await.unwrap();
    assert_eq!((found.completion.reply.text.as_str(), found.cached), ("one", true));
    assert_eq!(found.completion.usage, Usage::default());
    let report = CacheReport {
        hits: 1,
        misses: 1,
        stored: 1,
        saved_nano_usd: 7,
        entries: 1,
        ..CacheReport::default()
    };
    assert_eq!(cache.report().await.unwrap(), report);
}

#[actix::test]
async fn unconfirmed_rejected_cut_or_failed_reply_is_not_served_again() {
    let cache = cache();
    drop(through(&cache, "a", Mode::On, Ok(completion("unread"))).await.unwrap());
    assert!(!asked(&cache, "a", Mode::On, "read").await.1);

    let found = through(&cache, "b", Mode::On, Ok(completion("bad"))).await.unwrap();
    found.confirm.rejected();
    assert!(!asked(&cache, "b", Mode::On, "good").await.1);

    // Accepted by one reader and refused by another.
    let again = through(&cache, "b", Mode::On, Ok(completion("new"))).await.unwrap();
    assert!(again.cached);
    again.confirm.rejected();
    assert!(!asked(&cache, "b", Mode::On, "newer").await.1);

    for (nth, reason) in [None, Some("length"), Some("content_filter")].into_iter().enumerate() {
        let mut cut = completion("cut");
        cut.reply.finish_reason = reason.map(str::to_owned);
        let words = format!("c{nth}");
        through(&cache, &words, Mode::On, Ok(cut)).await.unwrap().confirm.accepted();
        assert!(!asked(&cache, &words, Mode::On, "whole").await.1, "{reason:?}");
    }
    // The server says `stop`, but the reply is as long as it may be.
    let mut full = completion("full");
    full.usage.output_tokens = 100;
    through(&cache, "d", Mode::On, Ok(full)).await.unwrap().confirm.accepted();
    assert!(!asked(&cache, "d", Mode::On, "whole").await.1);

    let failed = Error::new("m", ErrorKind::EmptyStream);
    assert!(through(&cache, "e", Mode::On, Err(failed)).await.is_err());
    assert!(!asked(&cache, "e", Mode::On, "well").await.1);
}

#[actix::test]
async fn each_mode_reads_and_writes_as_named() {
    let cache = cache();
    assert!(!asked(&cache, "q", Mode::Off, "off").await.1);
    assert!(!asked(&cache, "q", Mode::ReadOnly, "read only").await.1);
    assert_eq!(asked(&cache, "q", Mode::WriteOnly, "first").await, ("first".into(), false));
    assert_eq!(asked(&cache, "q", Mode::WriteOnly, "second").await, ("second".into(), false));
    assert_eq!(asked(&cache, "q", Mode::ReadOnly, "").await, ("second".into(), true));
    assert_eq!(asked(&cache, "q", Mode::Off, "off").await, ("off".into(), false));
}

#[test]
fn key_depends_on_tenant_model_and_every_part_of_the_question() {
    let base = question("q");
    let mut others = vec![
        CacheKey::new(&tenant("other"), "m", &RequestDigest::of(&base)),
        CacheKey::new(&tenant("acme"), "n", &RequestDigest::of(&base)),
        key("r"),
    ];
    let mut changed = |change: &dyn Fn(&mut Request)| {
        let mut request = base.clone();
        change(&mut request);
        others.push(CacheKey::new(&tenant("acme"), "m", &RequestDigest::of(&request)));
    };
    changed(&|r| r.purpose = Purpose::Answer);
    changed(&|r| r.temperature = None);
    changed(&|r| r.max_output_tokens = Some(3));
    changed(&|r| r.choice = ToolChoice::None);
    changed(&|r| r.messages.insert(0, Message::System { text: String::new() }));
    changed(&|r| r.messages = vec![Message::System { text: "q".into() }]);
    let tool = |parameters: serde_json::Value| crate::llm::ToolSpec {
        name: "t".into(),
        description: String::new(),
        parameters: parameters.into(),
        strict: false,
    };
    changed(&|r| r.tools.push(tool(serde_json::json!({}))));
    changed(&|r| r.tools.push(tool(serde_json::json!({"type": "object"}))));
    others.push(key("q"));
    let different: std::collections::HashSet<CacheKey> = others.iter().copied().collect();
    assert_eq!(different.len(), others.len());
    assert_eq!(key("q"), key("q"));
}

#[actix::test]
async fn equal_questions_in_progress_share_one_call() {
    let cache = cache();
    let asked = AtomicUsize::new(0);
    let (go, gone) = tokio::sync::watch::channel(false);
    let all = futures::future::join_all((0..50).map(|_| {
        let (cache, asked, mut gone) = (&cache, &asked, gone.clone());
        async move {
            let ask = async {
                asked.fetch_add(1, Relaxed);
                gone.wait_for(|go| *go).await.unwrap();
                Ok(completion("one"))
            };
            resolve_with(cache, "q", Mode::On, &ctl(), ask).await.unwrap()
        }
    }));
    let (found, _) = tokio::join!(all, async {
        // Behind all lookups.
        cache.report().await.unwrap();
        go.send(true).unwrap();
    });
    assert_eq!(asked.load(Relaxed), 1);
    assert!(found.iter().all(|found| found.completion.reply.text == "one"));
    let paid: u64 = found.iter().map(|found| found.completion.usage.cost_nano_usd).sum();
    assert_eq!((paid, cache.report().await.unwrap().shared), (7, 49));
}

#[actix::test]
async fn next_caller_asks_when_the_first_gives_up() {
    let cache = cache();
    for (kind, expected) in [(ErrorKind::Cancelled, "ok"), (ErrorKind::EmptyStream, "llm.empty_stream")] {
        let (go, mut gone) = tokio::sync::watch::channel(false);
        let first_ctl = ctl();
        let first = resolve_with(&cache, "q", Mode::On, &first_ctl, async move {
            gone.wait_for(|go| *go).await.unwrap();
            Err(Error::new("m", kind))
        });
        let second = async {
            // The first is in progress; this one stands behind it.
            let found = through(&cache, "q", Mode::On, Ok(completion("mine"))).await;
            found.map_or_else(|e| e.code(), |_| "ok")
        };
        let (_, second, _) = tokio::join!(first, second, async {
            cache.report().await.unwrap();
            go.send(true).unwrap();
        });
        assert_eq!(second, expected);
    }
}

#[actix::test]
async fn reply_expires_after_its_time_to_live() {
    let cache = cache_with(cache::Options { ttl_s: 60, ..cache::Options::default() });
    asked(&cache, "q", Mode::On, "old").await;
    cache.0.mailbox.notify(CacheMessage::Advance(Duration::from_secs(58)));
    assert_eq!(asked(&cache, "q", Mode::On, "new").await, ("old".into(), true));
    cache.0.mailbox.notify(CacheMessage::Advance(Duration::from_secs(2)));
    assert_eq!(asked(&cache, "q", Mode::On, "new").await, ("new".into(), false));
}

#[actix::test]
async fn reply_to_a_consultation_expires_earlier() {
    let cache =
        cache_with(cache::Options { ttl_s: 3_600, consultation_ttl_s: 60, ..cache::Options::default() });
    for words in ["recover", "plan"] {
        asked(&cache, words, Mode::On, "old").await;
    }
    cache.0.mailbox.notify(CacheMessage::Advance(Duration::from_secs(58)));
    assert_eq!(asked(&cache, "recover", Mode::On, "new").await, ("old".into(), true));
    cache.0.mailbox.notify(CacheMessage::Advance(Duration::from_secs(3)));
    assert_eq!(asked(&cache, "recover", Mode::On, "new").await, ("new".into(), false));
    assert_eq!(asked(&cache, "plan", Mode::On, "new").await, ("old".into(), true));
}

#[actix::test]
async fn cache_is_bounded_in_bytes() {
    let cache = cache_with(cache::Options { max_bytes: 20_000, ..cache::Options::default() });
    for n in 0..200 {
        asked(&cache, &n.to_string(), Mode::On, &"x".repeat(1_000)).await;
    }
    let entries = cache.report().await.unwrap().entries;
    assert!(entries * 1_000 <= 20_000, "{entries}");
    asked(&cache, "big", Mode::On, &"x".repeat(30_000)).await;
    cache.report().await.unwrap();
    assert!(!asked(&cache, "big", Mode::On, "x").await.1, "what is larger than the cache is not kept");
}

#[actix::test]
async fn panic_empties_the_cache_and_keeps_flights() {
    let cache = cache();
    asked(&cache, "q", Mode::On, "stored").await;
    let CacheLookup::Ask(Some(flight)) = cache.look_up(key("slow")).await.unwrap() else {
        panic!("nothing is stored")
    };
    let mut follower = cache.look_up(key("slow"));
    assert!(futures::poll!(&mut follower).is_pending());
    cache.0.mailbox.notify(CacheMessage::Panic(oneshot::channel().0));
    assert_eq!(cache.report().await.unwrap(), CacheReport::default());
    assert!(futures::poll!(&mut follower).is_pending(), "the first caller still asks");
    flight.land(&Ok(completion("slow")));
    let CacheLookup::Joined(Ok(joined)) = follower.await.unwrap() else { panic!("it asks itself") };
    assert_eq!(joined.reply.text, "slow");
    assert_eq!(asked(&cache, "q", Mode::On, "new").await, ("new".into(), false));
}

#[actix::test]
async fn failing_cache_does_not_fail_the_question() {
    let cache = cache();
    cache.stop();
    assert_eq!(asked(&cache, "q", Mode::On, "asked").await, ("asked".into(), false));
}

/// What happens in a random history.
#[derive(Debug, Clone)]
enum Step {
    Ask {
        question: u8,
    },
    /// The task of a caller is dropped: of the one that asks, or of one that waits.
    Drop {
        nth: usize,
    },
    Reply {
        nth: usize,
    },
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..2).prop_map(|question| Step::Ask { question }),
        2 => (0_usize..8).prop_map(|nth| Step::Drop { nth }),
        2 => (0_usize..8).prop_map(|nth| Step::Reply { nth }),
        1 => Just(Step::Panic),
    ]
}

/// Plays a history against the real actor: at most one caller asks each question, and none waits for ever.
async fn play(steps: Vec<Step>) {
    let cache = cache();
    let asking = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let mut callers = Vec::new();
    for step in steps {
        match step {
            Step::Ask { question } => {
                let (cache, asking) = (cache.clone(), asking.clone());
                let (reply, answer) = oneshot::channel::<()>();
                let caller: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
                    let ask = async {
                        let count = &asking[usize::from(question)];
                        let guard = Asking(count);
                        assert_eq!(count.fetch_add(1, Relaxed), 0, "two callers ask the same question");
                        let _ = answer.await;
                        drop(guard);
                        Ok(completion("reply"))
                    };
                    let words = question.to_string();
                    resolve_with(&cache, &words, Mode::On, &ctl(), ask).await.unwrap();
                });
                callers.push((caller, Some(reply)));
            }
            Step::Drop { nth } if nth < callers.len() => drop(callers.remove(nth)),
            Step::Reply { nth } if nth < callers.len() => callers[nth].1 = None,
            Step::Panic => panic(&cache).await,
            Step::Drop { .. } | Step::Reply { .. } => {}
        }
        poll_all(&cache, &mut callers).await;
    }
    for (_, reply) in &mut callers {
        *reply = None;
    }
    for _ in 0..callers.len() {
        poll_all(&cache, &mut callers).await;
    }
    assert!(callers.is_empty(), "{} callers wait for ever", callers.len());
}

struct Asking<'a>(&'a AtomicUsize);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

type WaitingCaller = (std::pin::Pin<Box<dyn Future<Output = ()>>>, Option<oneshot::Sender<()>>);

async fn poll_all(cache: &Handle, callers: &mut Vec<WaitingCaller>) {
    for _ in 0..3 {
        let mut waiting = Vec::new();
        for mut caller in std::mem::take(callers) {
            if futures::poll!(&mut caller.0).is_pending() {
                waiting.push(caller);
            }
        }
        *callers = waiting;
        cache.report().await.unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is asked, dropped and restarted in whatever order: one call at a time for equal questions, and
    /// nobody waits for a call that does not exist.
    #[test]
    fn no_history_doubles_a_call_or_strands_a_caller(steps in prop::collection::vec(step(), 1..40)) {
        actix::System::new().block_on(play(steps));
    }
}

/// No lookup follows, so nothing else would make the actor apply its new size.
#[actix::test]
async fn cache_that_is_turned_off_lets_go_of_its_replies() {
    let cache = cache();
    asked(&cache, "q", Mode::On, "r").await;
    // The actor has handled everything and sleeps.
    cache.report().await.unwrap();
    tokio::task::yield_now().await;
    cache.configure(cache::Options { max_bytes: 0, ..cache::Options::default() });
    let mut queued = usize::MAX;
    while queued > 0 {
        tokio::task::yield_now().await;
        queued = 0;
        cache.0.mailbox.retain(|_| {
            queued += 1;
            true
        });
    }
    assert_eq!(cache.report().await.unwrap().entries, 0);
}
