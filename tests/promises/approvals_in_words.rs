//! Waiting runs: their streams, and decisions in words.

use futures::future::join_all;
use proscenium::run::{Envelope, Event, SessionEvent};
use serde_json::{Value, json};

use crate::plans_api::{plan_path, settled_plan};
use crate::server_api::ask;
use crate::support::{Office, Reply, ServedEngine, Setup, Sse};

fn names(events: &[Sse]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// A message to the model `proscenium` in a conversation.
async fn send_message(served: &ServedEngine, session: &str, words: &str, stream: bool) -> Reply {
    let mut body = ask(words);
    body["model"] = json!("proscenium");
    body["stream"] = json!(stream);
    let request = served.request("POST", "/v1/chat/completions").header("x-session-id", session);
    Reply::of(request.json(&body).send().await.unwrap()).await
}

/// The text of a completion, streamed or not, with its finish reason.
fn words(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 200, "{reply:#?}");
    if !reply.header("content-type").starts_with("text/event-stream") {
        let choice = &reply.json()["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap().to_owned();
        return (text, choice["finish_reason"].as_str().unwrap().to_owned());
    }
    let (mut text, mut finish) = (String::new(), String::new());
    for event in reply.events() {
        let choice = &event.data["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        finish.push_str(choice["finish_reason"].as_str().unwrap_or_default());
    }
    (text, finish)
}

#[tokio::test]
async fn stream_ends_while_waiting_and_resumes_without_gap_or_repeat() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book");
    body["stream"] = json!(true);
    body["require_approval"] = json!(true);
    let reply = served.post("/api/chat", &body).await;
    let (run, before) = (reply.header("x-run-id").to_owned(), reply.events());
    let waits = before.last().unwrap();
    assert_eq!(
        (waits.name.as_str(), &waits.data["status"]),
        ("run_waiting", &json!("waiting")),
        "{before:#?}"
    );
    let asked = before.iter().find(|event| event.name == "approval_required").unwrap();
    assert_eq!(waits.data["approvals"], json!([asked.data["approval_id"]]));
    assert_eq!((&asked.data["about"], &asked.data["version"]), (&json!("plan"), &json!(1)));
    let plan = served.get(&format!("/api/plans/{}", asked.data["task_id"].as_str().unwrap())).await.json();
    assert_eq!(asked.data["hash"], plan["hash"]);

    let follow = async |after: &str| {
        let request =
            served.request("GET", &format!("/api/runs/{run}/events")).header("last-event-id", after);
        Reply::of(request.send().await.unwrap()).await.events()
    };
    // Nothing new has happened, and earlier events are published again to a new subscriber.
    assert!(follow(&waits.id).await.is_empty());
    assert_eq!(served.get(&format!("/api/runs/{run}/events")).await.events(), before);

    assert_eq!(served.post(&plan_path(&plan, "/approve"), &json!({})).await.status, 200);
    let rest = follow(&waits.id).await;
    assert_eq!(names(&rest).first(), Some(&"plan_approved"), "{rest:#?}");
    assert_eq!(rest.last().unwrap().data["status"], "completed", "{rest:#?}");
    assert_eq!(office.reached(), ["POST /Book"]);
    // A late subscriber may get the text in other pieces.
    let bare = |events: Vec<Sse>| -> Vec<(String, String)> {
        let events = events.into_iter().filter(|event| !event.name.starts_with("answer_"));
        events.map(|event| (event.id.split('.').next().unwrap().to_owned(), event.name)).collect()
    };
    let whole = served.get(&format!("/api/runs/{run}/events")).await.events();
    assert_eq!(bare(before.into_iter().chain(rest).collect()), bare(whole));
}

#[tokio::test]
async fn yes_in_words_decides_only_in_its_own_conversation() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("approval.plans", "writes")).await;
    for stream in [false, true] {
        let session = format!("s-{stream}");
        let first = send_message(&served, &session, "book", stream).await;
        let (asked, finish) = words(&first);
        assert_eq!(finish, "stop");
        for expected in ["Desk", "[Book]", "yes or no", first.header("x-run-id")] {
            assert!(asked.contains(expected), "{expected} in {asked}");
        }
        // A yes in another conversation is an ordinary message.
        let (other, _) = words(&send_message(&served, "another", "yes", stream).await);
        assert_eq!(other, "Yes to what?");
        assert!(office.reached().is_empty());

        let second = send_message(&served, &session, "Yes, please!", stream).await;
        let (reply_text, finish) = words(&second);
        assert_eq!(second.header("x-run-id"), first.header("x-run-id"));
        assert_eq!(finish, "stop");
        let run = served.get(&format!("/api/runs/{}", first.header("x-run-id"))).await.json();
        assert_eq!(run["status"], "completed", "{run:#}");
        // Text from before the yes is not repeated.
        assert_eq!(reply_text, run["answer"].as_str().unwrap());
        assert_eq!(office.reached(), ["POST /Book"]);
    }
}

#[tokio::test]
async fn no_in_words_ends_the_run_and_reports_it() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("approval.plans", "writes")).await;
    for (session, stream) in [("s-1", false), ("s-2", true)] {
        let first = send_message(&served, session, "book", stream).await;
        let (reply_text, finish) = words(&send_message(&served, session, "no", stream).await);
        assert!(!reply_text.trim().is_empty() && finish == "stop", "{reply_text:?} {finish:?}");
        let run = served.get(&format!("/api/runs/{}", first.header("x-run-id"))).await.json();
        assert_eq!((&run["status"], &run["answer"]), (&json!("cancelled"), &json!(reply_text)), "{run:#}");
    }
    let mut body = ask("book");
    body["session_id"] = json!("s-3");
    served.post("/api/chat", &body).await;
    (body["messages"][0]["content"], body["stream"]) = (json!("no"), json!(false));
    let document = served.post("/api/chat", &body).await.json();
    assert_eq!(document["answer"], "It was stopped; nothing was done.", "{document:#}");
    assert!(office.reached().is_empty());
}

/// The messages of a client that keeps the conversation itself, and names none.
fn unnamed(exchanges: &[(&str, &str)], words: &str) -> Value {
    let mut messages = Vec::new();
    for (asked, answered) in exchanges {
        messages.push(json!({"role": "user", "content": asked}));
        messages.push(json!({"role": "assistant", "content": answered}));
    }
    messages.push(json!({"role": "user", "content": words}));
    json!({"model": "proscenium", "messages": messages})
}

#[tokio::test]
async fn reply_to_an_approval_in_a_conversation_that_the_client_keeps_decides_it() {
    let (office, served) = Office::serve().await;
    let say = async |exchanges: &[(&str, &str)], said: &str| {
        let request = served.request("POST", "/v1/chat/completions").json(&unnamed(exchanges, said));
        Reply::of(request.send().await.unwrap()).await
    };
    let hello = say(&[], "see").await;
    let before = ("see", words(&hello).0);
    let before = (before.0, before.1.as_str());
    let first = say(&[before], "pay").await;
    let waiting = words(&first).0;
    assert!(waiting.contains("Say yes or no here"), "{waiting}");
    office.reached();
    // Another text, another request or another history is not this conversation.
    for exchanges in [
        vec![before, ("pay", "Say yes or no here.")],
        vec![before, ("see", waiting.as_str())],
        vec![("book", before.1), ("pay", waiting.as_str())],
    ] {
        let answered = say(&exchanges, "yes").await;
        assert_ne!(answered.header("x-run-id"), first.header("x-run-id"), "{exchanges:?}");
    }
    assert!(!office.reached().contains(&"POST /Pay".to_owned()));
    let undecided = say(&[before, ("pay", &waiting)], "not yet").await;
    undecided.assert_error(409, "approval.ambiguous");
    let done = say(&[before, ("pay", &waiting)], "yes").await;
    assert_eq!(done.header("x-run-id"), first.header("x-run-id"), "{done:#?}");
    assert_eq!(office.reached(), ["POST /Pay"]);
    // The same reply again decides nothing.
    let again = say(&[before, ("pay", &waiting)], "yes").await;
    assert_ne!(again.header("x-run-id"), first.header("x-run-id"), "{again:#?}");
    assert!(!office.reached().contains(&"POST /Pay".to_owned()));
}

#[tokio::test]
async fn progress_before_a_kept_answer_does_not_hide_the_run_that_a_yes_decides() {
    let office = Office::open();
    let served = ServedEngine::start(office.setup().set("server.progress", "text")).await;
    let say = async |exchanges: &[(&str, &str)], said: &str| {
        let mut body = unnamed(exchanges, said);
        body["stream"] = json!(true);
        Reply::of(served.request("POST", "/v1/chat/completions").json(&body).send().await.unwrap()).await
    };
    let first = say(&[], "pay").await;
    let kept = words(&first).0;
    assert!(kept.contains("Planning…\n") && kept.contains("Say yes or no here"), "{kept}");
    let done = say(&[("pay", &kept)], "yes").await;
    assert_eq!(done.header("x-run-id"), first.header("x-run-id"), "{done:#?}");
    assert!(office.reached().contains(&"POST /Pay".to_owned()));
}

#[tokio::test]
async fn stream_opened_by_a_yes_publishes_only_later_events() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let first = served.post("/api/chat", &body).await.json();
    assert_eq!(first["status"], "waiting", "{first:#}");
    let mut body = ask("ok, go ahead");
    (body["session_id"], body["stream"]) = (json!("s-1"), json!(true));
    let events = served.post("/api/chat", &body).await.events();
    let names = names(&events);
    assert_eq!((names[0], *names.last().unwrap()), ("plan_approved", "run_completed"), "{names:?}");
    assert_eq!(events[0].data["run_id"], first["run_id"]);
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn conditional_yes_decides_nothing_and_repeats_what_is_open() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let first = served.post("/api/chat", &body).await.json();
    for said in ["yes, but from 20 to 21 July", "not yet", "sì, ma non oggi"] {
        let mut body = ask(said);
        body["session_id"] = json!("s-1");
        let reply = served.post("/api/chat", &body).await;
        assert_eq!(reply.status, 409, "{reply:#?}");
        let approval = first["approvals"][0]["approval_id"].as_str().unwrap();
        assert!(reply.body.contains(approval), "{reply:#?}");
    }
    assert!(office.reached().is_empty());
    let mut body = ask("yes");
    body["session_id"] = json!("s-1");
    let done = served.post("/api/chat", &body).await.json();
    assert_eq!((&done["run_id"], &done["status"]), (&first["run_id"], &json!("completed")), "{done:#}");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn open_approval_is_repeated_in_the_language_of_its_request() {
    let (_office, served) = Office::serve().await;
    let mut body = ask("prenota la sala per favore");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    served.post("/api/chat", &body).await;
    body["messages"][0]["content"] = json!("aspetta");
    let problem = served.post("/api/chat", &body).await.assert_problem(409, "approval.ambiguous");
    assert!(problem["detail"].as_str().unwrap().contains("Rispondi solo sì o no"), "{problem:#}");
}

#[tokio::test]
async fn yes_with_nothing_open_gets_an_answer_in_its_language() {
    let served = ServedEngine::start(Setup::offline()).await;
    for (said, expected) in [
        ("yes", "Nothing is waiting for a yes or a no"),
        ("ok", "Nothing is waiting for a yes or a no"),
        ("sì", "Al momento nulla attende un sì o un no"),
        ("oui", "Rien n'attend de oui ou de non"),
        ("ja", "Im Moment wartet nichts auf ein Ja oder Nein"),
    ] {
        let answer = served.post("/api/chat", &ask(said)).await.json();
        assert!(answer["answer"].as_str().unwrap().starts_with(expected), "{said}: {answer:#}");
    }
}

#[tokio::test]
async fn ambiguous_yes_to_several_approvals_is_not_guessed() {
    let (office, served) = Office::serve().await;
    let mut body = ask("pay");
    body["session_id"] = json!("s-1");
    let first = served.post("/api/chat", &body).await.json();
    let second = served.post("/api/chat", &body).await.json();
    let mut yes = ask("yes");
    yes["session_id"] = json!("s-1");
    let problem = served.post("/api/chat", &yes).await.assert_problem(409, "approval.ambiguous");
    for answer in [&first, &second] {
        let id = answer["approvals"][0]["approval_id"].as_str().unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(id), "{problem:#}");
    }
    let error = send_message(&served, "s-1", "yes", true).await;
    error.assert_error(409, "approval.ambiguous");
    assert_eq!(error.header("x-should-retry"), "false");
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn pending_approval_is_described_in_the_users_language() {
    let (office, served) = Office::serve().await;
    let mut body = ask("prenota la sala per favore");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let answer = served.post("/api/chat", &body).await.json();
    let reply_text = answer["answer"].as_str().unwrap();
    assert!(reply_text.starts_with("Questo piano attende un'approvazione"), "{reply_text}");
    assert!(reply_text.contains("1. Desk: Desk per l'utente [Book]"), "{reply_text}");
    assert!(reply_text.contains(answer["approvals"][0]["approval_id"].as_str().unwrap()), "{reply_text}");
    let plan = json!({"task_id": answer["task_id"], "run_id": answer["run_id"]});
    served.post(&plan_path(&plan, "/approve"), &json!({"execute": false})).await;
    settled_plan(&served, &plan).await;
    let held = served.get(&format!("/api/runs/{}", answer["run_id"].as_str().unwrap())).await.json();
    assert!(held["answer"].as_str().unwrap().starts_with("Questo piano è approvato"), "{held:#}");
    assert_eq!(held.get("approvals"), None::<&Value>, "{held:#}");
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn yes_with_an_idempotency_key_decides_once() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book and then pay");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let first = served.post("/api/chat", &body).await.json();
    assert_eq!(first["status"], "waiting", "{first:#}");
    let send_message = async |words: &str, key: &str, stream: bool| {
        let mut body = ask(words);
        (body["session_id"], body["stream"]) = (json!("s-1"), json!(stream));
        let request = served.request("POST", "/api/chat").header("idempotency-key", key).json(&body);
        Reply::of(request.send().await.unwrap()).await
    };
    let replies = join_all((0..100).map(|_| send_message("yes", "k-1", false))).await;
    let mut started = 0;
    for reply in &replies {
        assert_eq!(reply.status, 200, "{reply:#?}");
        // The plan was approved, and now the payment waits: none of these replies was about the payment.
        let answer = reply.json();
        assert_eq!(
            (&answer["run_id"], &answer["status"]),
            (&first["run_id"], &json!("waiting")),
            "{answer:#}"
        );
        started += usize::from(reply.headers.get("idempotent-replayed").is_none());
    }
    assert_eq!((started, office.reached()), (1, vec!["POST /Book".to_owned()]));

    // Other words under the same key are a different request.
    let other = send_message("no", "k-1", false).await;
    other.assert_problem(422, "request.idempotency_conflict");
    // Text from before the yes is not repeated, as for the first one.
    let events = send_message("yes", "k-1", true).await.events();
    assert_eq!(names(&events).first(), Some(&"plan_approved"), "{:?}", names(&events));
    assert_eq!(names(&events).last(), Some(&"run_waiting"), "{:?}", names(&events));

    let done = send_message("yes", "k-2", false).await.json();
    assert_eq!((&done["status"], &done["run_id"]), (&json!("completed"), &first["run_id"]), "{done:#}");
    assert_eq!(office.reached(), ["POST /Pay"]);
    // Both keys belong to the run, which has ended.
    for key in ["k-1", "k-2"] {
        assert_eq!(send_message("yes", key, false).await.json()["answer"], done["answer"], "{key}");
    }
    assert!(office.reached().is_empty());
}

#[tokio::test]
async fn yes_decides_with_require_approval_but_not_with_dry_run() {
    let (office, served) = Office::serve().await;
    let send_message = async |words: &str, how: &str| {
        let mut body = ask(words);
        (body["session_id"], body[how]) = (json!("s-1"), json!(true));
        served.post("/api/chat", &body).await.json()
    };
    let first = send_message("book", "require_approval").await;
    assert_eq!(first["status"], "waiting", "{first:#}");
    let dry = send_message("yes", "dry_run").await;
    assert_ne!(dry["run_id"], first["run_id"], "{dry:#}");
    assert!(office.reached().is_empty());
    // The latest message is no longer about the plan.
    let other = send_message("yes", "require_approval").await;
    assert_ne!(other["run_id"], first["run_id"], "{other:#}");
    assert!(office.reached().is_empty());

    let second = send_message("book", "require_approval").await;
    served.post(&format!("/api/runs/{}/cancel", first["run_id"].as_str().unwrap()), &json!({})).await;
    served.get(&format!("/api/runs/{}/events", first["run_id"].as_str().unwrap())).await;
    let done = send_message("yes", "require_approval").await;
    assert_eq!((&done["run_id"], &done["status"]), (&second["run_id"], &json!("completed")), "{done:#}");
    assert_eq!(office.reached(), ["POST /Book"]);
}

#[tokio::test]
async fn yes_retried_by_the_client_decides_once() {
    let (office, served) = Office::serve().await;
    for stream in [false, true] {
        let session = format!("s-{stream}");
        let mut body = ask("book and then pay");
        (body["session_id"], body["require_approval"]) = (json!(session), json!(true));
        let first = served.post("/api/chat", &body).await.json();
        let (reply_text, _) = words(&send_message(&served, &session, "yes", stream).await);
        assert_eq!(office.reached(), ["POST /Book"]);
        // The client did not get the answer.
        let mut body = ask("yes");
        (body["model"], body["stream"]) = (json!("proscenium"), json!(stream));
        let request = served.request("POST", "/v1/chat/completions").header("x-session-id", &session);
        let request = request.header("x-stainless-retry-count", "1").json(&body);
        let again = Reply::of(request.send().await.unwrap()).await;
        assert_eq!(again.header("x-run-id"), first["run_id"].as_str().unwrap());
        assert_eq!(words(&again).0, reply_text);
        assert!(office.reached().is_empty());
    }
}

#[tokio::test]
async fn failing_conversation_stream_leaves_the_run_to_its_driver() {
    let (office, served) = Office::serve().await;
    let send_message = async |words: &str| {
        let mut body = ask(words);
        body["session_id"] = json!("s-1");
        served.post("/api/chat", &body).await
    };
    assert_eq!(send_message("hello").await.json()["status"], "completed");
    let pay = send_message("pay").await.json();
    assert_eq!(pay["status"], "waiting", "{pay:#}");
    office.till.close();
    let id = pay["approvals"][0]["approval_id"].as_str().unwrap();
    let yes = served.post(&format!("/api/approvals/{id}"), &json!({"decision": "yes"})).await;
    assert_eq!(yes.status, 200, "{yes:#?}");

    // A foreign row in the conversation's stream makes the next append fail.
    let pool = served.engine.store().pool();
    sqlx::query(
        "CREATE TRIGGER strange AFTER UPDATE ON sessions WHEN NEW.last_seq = 2 BEGIN \
         INSERT INTO journal (stream, seq, session, tenant, at, epoch, schema, body) \
         VALUES ('session:' || NEW.tenant || '/' || NEW.session, 3, NEW.session, NEW.tenant, NEW.updated, 0, 1, \
         '{\"type\":\"session_started\"}'); \
         UPDATE sessions SET last_seq = 3 WHERE tenant = NEW.tenant AND session = NEW.session; END",
    )
    .execute(pool)
    .await
    .unwrap();
    assert_eq!(send_message("hello").await.json()["status"], "completed");
    let fact = served.post("/api/sessions/s-1/facts", &json!({"claim": "The room is small"})).await;
    assert_eq!(fact.json()["code"], "store.conflict", "{fact:#?}");
    // Nothing starts while the payment is driven: whatever would start it would drive the payment, too.
    let insist = async {
        loop {
            let reply = send_message("hello").await;
            if reply.status == 200 {
                return reply;
            }
            assert_eq!(reply.json()["code"], "store.conflict", "{reply:#?}");
        }
    };
    tokio::pin!(insist);
    // Meanwhile equal requests in other conversations are answered.
    let others = async {
        for other in 0..5 {
            let mut body = ask("hello");
            body["session_id"] = json!(format!("other-{other}"));
            assert_eq!(served.post("/api/chat", &body).await.json()["status"], "completed");
        }
    };
    tokio::select! {
        biased;
        early = &mut insist => panic!("it started: {early:#?}"),
        () = others => {}
    }
    office.till.open();
    // The conversation was loaded again.
    assert_eq!(insist.await.json()["status"], "completed");
    let events = served.get(&format!("/api/runs/{}/events", pay["run_id"].as_str().unwrap())).await.events();
    assert_eq!(events.last().unwrap().data["status"], "completed", "{events:#?}");
    let run = pay["run_id"].as_str().unwrap().parse().unwrap();
    let journal = served.events(run).await;
    let taken_over = |event: &Envelope<Event>| matches!(event.body, Event::RunResumed { .. });
    assert!(!journal.iter().any(taken_over), "{journal:#?}");
    assert_eq!(office.reached(), ["POST /Pay"]);
    let turns = served.session("s-1").await;
    let paid = |event: &&SessionEvent| matches!(event, SessionEvent::TurnEnded { turn, .. } if turn.run == Some(run));
    assert_eq!(turns.iter().filter(paid).count(), 1, "{turns:#?}");
}

#[tokio::test]
async fn refused_yes_does_not_answer_the_replacement_question() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let first = served.post("/api/chat", &body).await.json();
    let plan = json!({"task_id": first["task_id"], "run_id": first["run_id"]});
    let mut other = first["plan"].clone();
    other["steps"][0]["purpose"] = json!("Book another one");
    let mut yes = ask("yes");
    yes["session_id"] = body["session_id"].clone();
    let (path, change) = (plan_path(&plan, "/modify"), json!({"plan": other}));
    let (changed, answered) = tokio::join!(served.post(&path, &change), served.post("/api/chat", &yes));
    if changed.status == 200 && answered.body.contains("Book another one") {
        // The yes came first, the change revoked it, and its answer shows the current state.
        served.post("/api/chat", &yes).await;
        assert_eq!(office.reached(), ["POST /Book"]);
    } else if changed.status == 200 {
        // The conversation was not shown the current plan.
        served.post("/api/chat", &yes).await;
        assert!(office.reached().is_empty(), "{answered:#?}");
    } else {
        settled_plan(&served, &plan).await;
        assert_eq!(office.reached(), ["POST /Book"], "{changed:#?}");
    }
}

#[tokio::test]
async fn yes_after_a_refused_decision_answers_the_pending_question() {
    let (office, served) = Office::serve().await;
    let mut body = ask("book");
    (body["session_id"], body["require_approval"]) = (json!("s-1"), json!(true));
    let first = served.post("/api/chat", &body).await.json();
    let plan = json!({"task_id": first["task_id"], "run_id": first["run_id"]});
    let refused = served.post(&plan_path(&plan, "/approve"), &json!({"version": 9})).await;
    refused.assert_problem(409, "approval.changed");
    let mut yes = ask("yes");
    yes["session_id"] = body["session_id"].clone();
    let done = served.post("/api/chat", &yes).await.json();
    assert_eq!((&done["run_id"], &done["status"]), (&first["run_id"], &json!("completed")));
    assert_eq!(office.reached(), ["POST /Book"]);
}
