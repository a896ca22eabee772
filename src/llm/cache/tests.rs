use std::sync::atomic::AtomicUsize;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::llm::{Message, ToolChoice};

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
    CacheKey::new(&tenant("acme"), "m", &question(words))
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

fn cache() -> Cache {
    Cache::new(&Options::default())
}

async fn through(
    cache: &Cache,
    words: &str,
    mode: Mode,
    reply: Result<Completion, Error>,
) -> Result<CacheLookup, Error> {
    cache.through(key(words), mode, 100, &ctl(), async { reply }).await
}

/// Asks, and confirms what comes back.
async fn asked(cache: &Cache, words: &str, mode: Mode, reply: &str) -> (String, bool) {
    let found = through(cache, words, mode, Ok(completion(reply))).await.unwrap();
    found.confirm.accepted().await;
    (found.completion.reply.text, found.cached)
}

#[tokio::test]
async fn a_confirmed_reply_is_given_again_and_costs_nothing() {
    let cache = cache();
    assert_eq!(asked(&cache, "q", Mode::On, "one").await, ("one".into(), false));
    let found = through(&cache, "q", Mode::On, Ok(completion("two"))).await.unwrap();
    assert_eq!((found.completion.reply.text.as_str(), found.cached), ("one", true));
    assert_eq!(found.completion.usage, Usage::default());
    let stats = CacheStats { hits: 1, misses: 1, stored: 1, saved_nano_usd: 7, ..CacheStats::default() };
    assert_eq!(cache.stats(), stats);
}

#[tokio::test]
async fn what_was_not_confirmed_or_rejected_or_cut_or_failed_is_not_given_again() {
    let cache = cache();
    drop(through(&cache, "a", Mode::On, Ok(completion("unread"))).await.unwrap());
    assert!(!asked(&cache, "a", Mode::On, "read").await.1);

    let found = through(&cache, "b", Mode::On, Ok(completion("bad"))).await.unwrap();
    found.confirm.rejected().await;
    assert!(!asked(&cache, "b", Mode::On, "good").await.1);

    // Accepted by one reader and refused by another.
    let again = through(&cache, "b", Mode::On, Ok(completion("new"))).await.unwrap();
    assert!(again.cached);
    again.confirm.rejected().await;
    assert!(!asked(&cache, "b", Mode::On, "newer").await.1);

    for (nth, reason) in [None, Some("length"), Some("content_filter")].into_iter().enumerate() {
        let mut cut = completion("cut");
        cut.reply.finish_reason = reason.map(str::to_owned);
        let words = format!("c{nth}");
        through(&cache, &words, Mode::On, Ok(cut)).await.unwrap().confirm.accepted().await;
        assert!(!asked(&cache, &words, Mode::On, "whole").await.1, "{reason:?}");
    }
    // The server says `stop`, but the reply is as long as it may be.
    let mut full = completion("full");
    full.usage.output_tokens = 100;
    through(&cache, "d", Mode::On, Ok(full)).await.unwrap().confirm.accepted().await;
    assert!(!asked(&cache, "d", Mode::On, "whole").await.1);

    let failed = Error::new("m", ErrorKind::EmptyStream);
    assert!(through(&cache, "e", Mode::On, Err(failed)).await.is_err());
    assert!(!asked(&cache, "e", Mode::On, "well").await.1);
}

#[tokio::test]
async fn each_mode_does_what_it_says() {
    let cache = cache();
    assert!(!asked(&cache, "q", Mode::Off, "off").await.1);
    assert!(!asked(&cache, "q", Mode::ReadOnly, "read only").await.1);
    assert_eq!(asked(&cache, "q", Mode::WriteOnly, "first").await, ("first".into(), false));
    assert_eq!(asked(&cache, "q", Mode::WriteOnly, "second").await, ("second".into(), false));
    assert_eq!(asked(&cache, "q", Mode::ReadOnly, "").await, ("second".into(), true));
    assert_eq!(asked(&cache, "q", Mode::Off, "off").await, ("off".into(), false));
}

#[test]
fn every_part_of_a_question_and_its_tenant_and_model_are_in_the_key() {
    let base = question("q");
    let mut others = vec![
        CacheKey::new(&tenant("other"), "m", &base),
        CacheKey::new(&tenant("acme"), "n", &base),
        key("r"),
    ];
    let mut changed = |change: &dyn Fn(&mut Request)| {
        let mut request = base.clone();
        change(&mut request);
        others.push(CacheKey::new(&tenant("acme"), "m", &request));
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
    let different: std::collections::HashSet<[u8; 32]> = others.iter().map(|key| key.0).collect();
    assert_eq!(different.len(), others.len());
    assert_eq!(key("q"), key("q"));
}

#[tokio::test]
async fn equal_questions_under_way_are_one_flight() {
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
            cache.through(key("q"), Mode::On, 100, &ctl(), ask).await.unwrap()
        }
    }));
    let (found, _) = tokio::join!(all, async { go.send(true).unwrap() });
    assert_eq!(asked.load(Relaxed), 1);
    assert!(found.iter().all(|found| found.completion.reply.text == "one"));
    let paid: u64 = found.iter().map(|found| found.completion.usage.cost_nano_usd).sum();
    assert_eq!((paid, cache.stats().shared), (7, 49));
}

#[tokio::test]
async fn when_the_first_gives_up_another_asks_and_a_models_failure_is_everybodys() {
    let cache = cache();
    for (kind, expected) in [(ErrorKind::Cancelled, "ok"), (ErrorKind::EmptyStream, "llm.empty_stream")] {
        let (go, mut gone) = tokio::sync::watch::channel(false);
        let first_ctl = ctl();
        let first = cache.through(key("q"), Mode::On, 100, &first_ctl, async move {
            gone.wait_for(|go| *go).await.unwrap();
            Err(Error::new("m", kind))
        });
        let second = async {
            // The first is in progress; this one stands behind it.
            let found = through(&cache, "q", Mode::On, Ok(completion("mine"))).await;
            found.map_or_else(|e| e.code(), |_| "ok")
        };
        let (_, second, _) = tokio::join!(first, second, async { go.send(true).unwrap() });
        assert_eq!(second, expected);
    }
}

#[tokio::test]
async fn a_reply_is_kept_for_its_time_and_no_longer() {
    let cache = Cache::new(&Options { ttl_s: 60, ..Options::default() });
    asked(&cache, "q", Mode::On, "old").await;
    cache.inner.clock.advance(Duration::from_secs(58));
    assert_eq!(asked(&cache, "q", Mode::On, "new").await, ("old".into(), true));
    cache.inner.clock.advance(Duration::from_secs(2));
    assert_eq!(asked(&cache, "q", Mode::On, "new").await, ("new".into(), false));
}

#[tokio::test]
async fn the_cache_is_bounded_in_bytes() {
    let cache = Cache::new(&Options { max_bytes: 20_000, ..Options::default() });
    for n in 0..200 {
        asked(&cache, &n.to_string(), Mode::On, &"x".repeat(1_000)).await;
    }
    let entries = cache.entries().await;
    assert!(entries * (1_000 + OVERHEAD as u64) <= 20_000, "{entries}");
    asked(&cache, "big", Mode::On, &"x".repeat(30_000)).await;
    cache.entries().await;
    assert!(!asked(&cache, "big", Mode::On, "x").await.1, "what is larger than the cache is not kept");
}
