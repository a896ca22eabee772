//! The list of plans.

use serde_json::json;
use sqlx::Row as _;

use super::*;
use crate::plan::{Plan, PlanStatus};
use crate::run::{
    ApprovalSubject, Attempt, Decision, Idempotency, PlanCause, PlanMade, PlanMaker, RequiredApproval,
    RunStarted,
};

/// Event `seq` of run `n` in the named session. Runs are one second apart.
pub(super) fn at(n: u128, session_name: &str, seq: u64, body: Event) -> Envelope<Event> {
    let later = jiff::SignedDuration::from_secs(i64::try_from(n).unwrap());
    let envelope = envelope(Some(run_id(n)), session_name, seq, body);
    Envelope { at: envelope.at + later, ..envelope }
}

/// A run's first event; the id of its plan differs from its own.
pub(super) fn queued(n: u128) -> RunQueued {
    RunQueued::new(format!("request {n}\n of somebody"), format!("user{n}"), task(n))
}

pub(super) fn task(n: u128) -> TaskId {
    TaskId(Uuid::from_u128(n + 1000))
}

fn made(version: u32, approval: bool) -> PlanMade {
    let plan: Plan = serde_json::from_value(
        json!({"needs_execution": true, "steps": [{"step_number": 1, "scene_name": "S"}]}),
    )
    .unwrap();
    let mut made = PlanMade::new(version, PlanCause::Request, PlanMaker::Deterministic, plan);
    made.approval =
        approval.then(|| RequiredApproval { hash: "h".to_owned(), ..RequiredApproval::default() });
    made
}

pub(super) fn about_plan(approval: u32, version: u32) -> Event {
    Event::ApprovalRequired {
        approval,
        matter: ApprovalSubject::Plan { version },
        needed: RequiredApproval::default(),
    }
}

pub(super) fn decided(approval: u32, matter: ApprovalSubject, decision: Decision) -> Event {
    Event::Decided { approval, matter, decision, by: "boss".to_owned(), note: None, word: None }
}

fn started() -> Event {
    let started = json!({"now": "2026-05-04T09:00:00+02:00[Europe/Rome]", "language": null,
        "settings": crate::run::Settings::default(), "catalogue": "", "context": crate::run::Context::default()});
    Event::RunStarted(serde_json::from_value::<RunStarted>(started).unwrap())
}

/// Appends events to run `n` one by one, and reads the status of run and plan after each.
pub(super) async fn story(store: &Store, n: u128, events: Vec<Event>) -> Vec<(RunStatus, PlanStatus, u32)> {
    let mut told = Vec::new();
    for (seq, event) in (1..).zip(events) {
        write(store, [Record::Run(at(n, "s1", seq, event).into())]).await.unwrap();
        let run = store.run(&tenant(), run_id(n)).await.unwrap().unwrap();
        let plan = store.plan(&tenant(), task(n)).await.unwrap().unwrap();
        told.push((run.status, plan.status, plan.version));
    }
    told
}

fn end(status: RunStatus) -> Event {
    Event::RunCompleted { status }
}

#[tokio::test]
async fn plan_status_follows_events() {
    use PlanStatus as P;
    use RunStatus as R;
    let (_tmp, store) = fresh().await;
    let plan = ApprovalSubject::Plan { version: 1 };
    let words = "other steps".to_owned();
    let lapsed = Event::ApprovalLapsed {
        approval: 2,
        matter: ApprovalSubject::Plan { version: 2 },
        why: vec![],
        needed: RequiredApproval::default(),
        edited: None,
        read: None,
    };
    let boss = || "boss".to_owned();
    let told = story(
        &store,
        1,
        vec![
            Event::RunQueued(queued(1)),
            started(),
            Event::PlanCreated(made(1, true)),
            about_plan(1, 1),
            Event::RunWaiting {},
            Event::ModificationAsked { version: 2, by: boss(), words },
            Event::Replanned(made(2, true)),
            about_plan(2, 2),
            Event::RunWaiting {},
            lapsed,
            about_plan(3, 2),
            Event::RunWaiting {},
            decided(3, ApprovalSubject::Plan { version: 2 }, Decision::Yes { hold: true }),
            Event::RunWaiting {},
            Event::Released { by: boss() },
            Event::StepStarted { step: 1 },
            // Events in the middle of execution do not change the plan's status.
            Event::Replanned(made(3, true)),
            about_plan(4, 3),
            Event::RunWaiting {},
            Event::CancelRequested { by: boss(), deadline: false, note: None },
            end(R::Partial),
            Event::RunReopened { by: boss() },
            end(R::Completed),
        ],
    )
    .await;
    let expected = [
        (R::Queued, P::Draft, 0),
        (R::Running, P::Draft, 0),
        (R::Running, P::Draft, 1),
        (R::Running, P::PendingApproval, 1),
        (R::Waiting, P::PendingApproval, 1),
        (R::Running, P::Draft, 1),
        (R::Running, P::Draft, 2),
        (R::Running, P::PendingApproval, 2),
        (R::Waiting, P::PendingApproval, 2),
        (R::Running, P::Draft, 2),
        (R::Running, P::PendingApproval, 2),
        (R::Waiting, P::PendingApproval, 2),
        (R::Running, P::Approved, 2),
        (R::Waiting, P::Approved, 2),
        (R::Running, P::Approved, 2),
        (R::Running, P::Executing, 2),
        (R::Running, P::Executing, 3),
        (R::Running, P::Executing, 3),
        (R::Waiting, P::Executing, 3),
        (R::Running, P::Executing, 3),
        (R::Partial, P::Failed, 3),
        (R::Running, P::Executing, 3),
        (R::Completed, P::Completed, 3),
    ];
    assert_eq!(told, expected);
    let row = store.plan(&tenant(), task(1)).await.unwrap().unwrap();
    assert_eq!((row.run, row.session, row.user.as_str()), (run_id(1), session("s1"), "user1"));
    assert_eq!(row.objective, "request 1 of somebody");
    let first = at(1, "s1", 1, Event::RunWaiting {}).at;
    let last = at(1, "s1", 23, Event::RunWaiting {}).at;
    assert_eq!((row.created, row.updated), (first, last));
    // A cancel request leaves a queued run queued; an edit revokes an approval.
    let told = story(
        &store,
        2,
        vec![Event::RunQueued(queued(2)), Event::CancelRequested { by: boss(), deadline: false, note: None }],
    )
    .await;
    assert_eq!(told[1], (R::Queued, P::Draft, 0));
    let told = story(
        &store,
        3,
        vec![
            Event::RunQueued(queued(3)),
            started(),
            Event::PlanCreated(made(1, true)),
            about_plan(1, 1),
            decided(1, plan, Decision::Yes { hold: true }),
            Event::RunWaiting {},
            Event::PlanEdited(made(2, true)),
            Event::RunCancelled { by: boss() },
        ],
    )
    .await;
    let expected = [
        (R::Running, P::Approved, 1),
        (R::Waiting, P::Approved, 1),
        (R::Running, P::Draft, 2),
        (R::Cancelled, P::Cancelled, 2),
    ];
    assert_eq!(told[4..], expected);
}

#[tokio::test]
async fn list_status_equals_run_state_status() {
    let (_tmp, store) = fresh().await;
    let events = |n: u128, plan_only: bool| {
        let queued = RunQueued { plan_only, ..queued(n) };
        vec![
            Event::RunQueued(queued),
            started(),
            Event::Planning { version: 1, cause: PlanCause::Request },
            Event::PlanCreated(made(1, false)),
            Event::StepStarted { step: 1 },
            Event::Replanned(made(2, false)),
            end(RunStatus::Completed),
        ]
    };
    for (n, plan_only) in [(1, false), (2, true)] {
        let mut events = events(n, plan_only);
        if plan_only {
            events.drain(4..6);
        }
        let told = story(&store, n, events.clone()).await;
        let mut state = crate::run::RunState::new(run_id(n));
        for (event, told) in events.iter().zip(told) {
            state.apply_checked(event, state.at);
            let machine = (state.status, state.plan_status, state.plans.len() as u32);
            assert_eq!(told, machine, "run {n}, after {}", event.name());
        }
        let expected = if plan_only { PlanStatus::Draft } else { PlanStatus::Completed };
        assert_eq!(state.plan_status, expected);
    }
}

#[tokio::test]
async fn plan_status_continues_from_stored_row() {
    let (tmp, store) = fresh().await;
    let first = [
        Event::RunQueued(RunQueued { plan_only: true, ..queued(1) }),
        started(),
        Event::PlanCreated(made(1, false)),
    ];
    let group = (1..).zip(first).map(|(seq, event)| Record::Run(at(1, "s1", seq, event).into()));
    // All in one transaction.
    store.write(&[group.map(|record| record.to_row().unwrap()).collect()]).await.unwrap();
    store.close().await;
    drop(store);
    let store = open(tmp.path()).await;
    write(&store, [Record::Run(at(1, "s1", 4, end(RunStatus::Completed)).into())]).await.unwrap();
    let row = store.plan(&tenant(), task(1)).await.unwrap().unwrap();
    assert_eq!((row.status, row.version), (PlanStatus::Draft, 1));
    // Nothing has changed since it was created.
    assert_eq!(row.updated, at(1, "s1", 3, Event::RunWaiting {}).at);
}

#[tokio::test]
async fn plans_are_listed_newest_first_with_pages_and_filters() {
    let (_tmp, store) = fresh().await;
    for n in 1..=6 {
        let session = if n % 2 == 0 { "even" } else { "odd" };
        let mut events = vec![Event::RunQueued(queued(n)), started(), Event::PlanCreated(made(1, n > 4))];
        match n {
            1 => events.push(Event::RunFailed { error: Fault::new("x", "y") }),
            2 => events.push(end(RunStatus::Completed)),
            3 => events.push(Event::StepStarted { step: 1 }),
            5 | 6 => events.push(about_plan(1, 1)),
            _ => {}
        }
        write(&store, (1..).zip(events).map(|(seq, e)| Record::Run(at(n, session, seq, e).into())))
            .await
            .unwrap();
    }
    let other = TenantId::new("other").unwrap();
    let theirs = Envelope { tenant: other.clone(), ..at(7, "odd", 1, Event::RunQueued(queued(7))) };
    write(&store, [Record::Run(theirs.into())]).await.unwrap();
    let list = async |filter: PlanFilter, limit: u32, after: Option<u128>| {
        let page = Page { limit, after: after.map(task) };
        let rows = store.plans(&tenant(), &filter, &page).await.unwrap();
        rows.iter().map(|row| row.task.0.as_u128() - 1000).collect::<Vec<u128>>()
    };
    let all = PlanFilter::default;
    assert_eq!(list(all(), 50, None).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(list(all(), 2, None).await, [6, 5]);
    assert_eq!(list(all(), 2, Some(5)).await, [4, 3]);
    assert_eq!(list(all(), 50, Some(1)).await, []);
    // Neither another tenant's plan nor an unknown one is a valid cursor.
    assert_eq!(list(all(), 50, Some(7)).await, []);
    for (status, expected) in [
        (PlanStatus::Draft, vec![]),
        (PlanStatus::PendingApproval, vec![6, 5]),
        (PlanStatus::Approved, vec![4]),
        (PlanStatus::Executing, vec![3]),
        (PlanStatus::Completed, vec![2]),
        (PlanStatus::Failed, vec![1]),
        (PlanStatus::Cancelled, vec![]),
    ] {
        let filter = PlanFilter { status: Some(status), ..all() };
        assert_eq!(list(filter, 50, None).await, expected, "{}", status.name());
    }
    let waits = |name: Option<&str>| PlanFilter {
        session: name.map(session),
        status: Some(PlanStatus::PendingApproval),
        ..all()
    };
    assert_eq!(list(waits(None), 50, Some(6)).await, [5]);
    assert_eq!(list(waits(Some("even")), 50, None).await, [6]);
    assert_eq!(list(PlanFilter { session: Some(session("odd")), ..all() }, 50, None).await, [5, 3, 1]);
    let created = |n| Some(at(n, "s1", 1, Event::RunWaiting {}).at);
    assert_eq!(list(PlanFilter { since: created(3), until: created(5), ..all() }, 50, None).await, [4, 3]);
    assert_eq!(store.run_of_task(&tenant(), task(3)).await.unwrap(), Some(run_id(3)));
    for nobody in [store.run_of_task(&tenant(), task(7)).await, store.run_of_task(&other, task(3)).await] {
        assert_eq!(nobody.unwrap(), None);
    }
    assert_eq!(store.plan(&other, task(3)).await.unwrap(), None);
    let rows = store.plans(&other, &all(), &Page::default()).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.run).collect::<Vec<_>>(), [run_id(7)]);
}

#[tokio::test]
async fn failed_plans_are_found_by_the_status_that_is_shown() {
    let (_tmp, store) = fresh().await;
    let ends = [RunStatus::Failed, RunStatus::Partial, RunStatus::NeedsInput, RunStatus::Completed];
    for (n, status) in (1..).zip(ends) {
        let events =
            [Event::RunQueued(queued(n)), started(), Event::PlanCreated(made(1, false)), end(status)];
        let records = (1..).zip(events).map(|(seq, e)| Record::Run(at(n, "s1", seq, e).into()));
        write(&store, records).await.unwrap();
    }
    for (shown, expected) in RunStatus::reported_plan_statuses().map(|shown| match shown {
        "failed" => (shown, vec![run_id(1)]),
        "partial" => (shown, vec![run_id(2)]),
        "needs_input" => (shown, vec![run_id(3)]),
        "completed" => (shown, vec![run_id(4)]),
        other => (other, vec![]),
    }) {
        let filter = PlanFilter { reported: Some(shown), ..PlanFilter::default() };
        let rows = store.plans(&tenant(), &filter, &Page::default()).await.unwrap();
        assert_eq!(rows.iter().map(|row| row.run).collect::<Vec<_>>(), expected, "{shown}");
    }
}

#[tokio::test]
async fn plan_list_uses_an_index() {
    let (_tmp, store) = fresh().await;
    let page = Page { limit: 5, after: Some(task(1)) };
    for status in [None, Some(PlanStatus::Completed), Some(PlanStatus::PendingApproval)] {
        for session in [None, Some(session("s1"))] {
            let filter = PlanFilter { status, session, ..PlanFilter::default() };
            let sql = crate::store::plans::list_query(&tenant(), &filter, &page).into_string();
            let plan = sqlx::query(sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", sql.as_str())));
            let rows = plan.fetch_all(store.pool()).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            assert!(!plan.iter().any(|line| line.contains("TEMP B-TREE")), "{filter:?}: {plan:#?}");
            assert!(plan[0].contains("USING INDEX runs_"), "{filter:?}: {plan:#?}");
        }
    }
}

/// Events of an old program's journal, and the resulting plan statuses.
fn old() -> Vec<(u128, Vec<Event>, PlanStatus, u32)> {
    let queued = |n| Event::RunQueued(queued(n));
    let only = |n: u128| Event::RunQueued(RunQueued { plan_only: true, ..super::plans::queued(n) });
    let plan = |version| {
        let made = made(version, false);
        if version == 1 { Event::PlanCreated(made) } else { Event::Replanned(made) }
    };
    let step = || Event::StepStarted { step: 1 };
    vec![
        (1, vec![queued(1)], PlanStatus::Draft, 0),
        (2, vec![queued(2), started()], PlanStatus::Draft, 0),
        (3, vec![queued(3), started(), plan(1)], PlanStatus::Approved, 1),
        (4, vec![queued(4), started(), plan(1), step(), plan(2)], PlanStatus::Executing, 2),
        (5, vec![queued(5), started(), plan(1), step(), end(RunStatus::Completed)], PlanStatus::Completed, 1),
        (6, vec![queued(6), started(), plan(1), step(), end(RunStatus::NeedsInput)], PlanStatus::Failed, 1),
        (7, vec![queued(7), Event::RunFailed { error: Fault::new("x", "y") }], PlanStatus::Failed, 0),
        (8, vec![queued(8), Event::RunCancelled { by: "boss".to_owned() }], PlanStatus::Cancelled, 0),
        (9, vec![only(9), started(), plan(1), end(RunStatus::Completed)], PlanStatus::Draft, 1),
        (10, vec![only(10), started()], PlanStatus::Draft, 0),
    ]
}

/// Creates a store as a program with the first three schema versions did.
async fn old_store(path: &Path) {
    let store = Store::open_with(DataDir::open(path).unwrap(), &schema::MIGRATIONS[..3]).await.unwrap();
    for (n, events, ..) in old() {
        let records = (1..).zip(events).map(|(seq, event)| at(n, "s1", seq, event));
        for envelope in records {
            let row = Record::Run(envelope.into()).to_row().unwrap();
            sqlx::query("INSERT INTO journal VALUES (?, ?, 's1', 'acme', ?, 1, 1, ?)")
                .bind(row.stream.to_string())
                .bind(row.seq)
                .bind(row.at)
                .bind(&row.body)
                .execute(store.pool())
                .await
                .unwrap();
            let status = row.change.status.map(|standing| standing.apply(RunStatus::Running));
            sqlx::query(
                "INSERT INTO runs VALUES (?1, 'acme', 's1', ?2, 'queued', ?3, ?3, 1, 1) ON CONFLICT (run) \
                 DO UPDATE SET last_seq = ?4, updated = ?3, status = coalesce(?5, status)",
            )
            .bind(run_id(n).to_string())
            .bind(row.change.request.unwrap_or_default())
            .bind(row.at)
            .bind(row.seq)
            .bind(status.map(<&'static str>::from))
            .execute(store.pool())
            .await
            .unwrap();
        }
    }
    store.close().await;
}

#[tokio::test]
async fn migration_builds_plan_list_from_journal() {
    let tmp = tempfile::tempdir().unwrap();
    old_store(tmp.path()).await;
    let store = open(tmp.path()).await;
    for (n, events, status, version) in old() {
        let row = store.plan(&tenant(), task(n)).await.unwrap().unwrap();
        assert_eq!((row.run, row.status, row.version), (run_id(n), status, version), "run {n}");
        assert_eq!((row.user, row.objective), (format!("user{n}"), format!("request {n} of somebody")));
        assert_eq!(row.created, at(n, "s1", 1, Event::RunWaiting {}).at);
        let state = crate::run::RunState::from_events(run_id(n), &events);
        assert_eq!((row.status, row.version), (state.plan_status, state.plans.len() as u32), "run {n}");
    }
    assert!(
        store.approvals(&tenant(), &ApprovalFilter::default(), &Page::default()).await.unwrap().is_empty()
    );
    // An unfinished run continues, and its plan with it.
    let more = [(4, 6, end(RunStatus::Completed)), (10, 3, Event::PlanCreated(made(1, false)))];
    write(&store, more.map(|(n, seq, event)| Record::Run(at(n, "s1", seq, event).into()))).await.unwrap();
    let stands = async |n| store.plan(&tenant(), task(n)).await.unwrap().unwrap().status;
    assert_eq!((stands(4).await, stands(10).await), (PlanStatus::Completed, PlanStatus::Draft));
}

#[tokio::test]
async fn damaged_event_does_not_block_migration() {
    let tmp = tempfile::tempdir().unwrap();
    old_store(tmp.path()).await;
    let options = SqliteConnectOptions::new().filename(tmp.path().join(DATABASE_FILE));
    let beside = pool(1).connect_with(options).await.unwrap();
    sqlx::query("UPDATE journal SET body = substr(body, 2) WHERE seq = 1").execute(&beside).await.unwrap();
    beside.close().await;
    let store = open(tmp.path()).await;
    let rows = store.plans(&tenant(), &PlanFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(rows.len(), old().len());
    assert!(rows.iter().all(|row| row.task.0 == row.run.0 && row.user.is_empty()));
}

#[tokio::test]
async fn erased_run_leaves_only_its_usage() {
    let (tmp, store) = fresh().await;
    let usage = Usage { calls: 1, input_tokens: 10, cost_nano_usd: 7, ..Usage::default() };
    let attempt =
        Attempt { model: "main".to_owned(), purpose: "plan".to_owned(), usage, ..Attempt::default() };
    let failed = Event::ModelFailed {
        call: 1,
        error: Fault::new("x", "y"),
        usage,
        millis: 0,
        attempts: vec![attempt],
    };
    let events = |n: u128, secret: &str| {
        let idempotency = Some(Idempotency { key: format!("key {n}"), hash: String::new() });
        let request = secret.to_owned();
        vec![
            Event::RunQueued(RunQueued { idempotency, request, ..queued(n) }),
            started(),
            failed.clone(),
            Event::PlanCreated(made(1, true)),
            about_plan(1, 1),
        ]
    };
    let secret = "myverysecretword";
    for (n, secret) in [(1, secret), (2, "nothing")] {
        let records = (1..).zip(events(n, secret)).map(|(seq, e)| Record::Run(at(n, "s1", seq, e).into()));
        write(&store, records).await.unwrap();
    }
    let other = TenantId::new("other").unwrap();
    assert!(!store.erase_run(&other, run_id(1)).await.unwrap());
    let busy = store.erase_run(&tenant(), run_id(1)).await.unwrap_err();
    assert_eq!(busy.code(), "store.run_busy");
    let cancelled = Event::RunCancelled { by: "boss".to_owned() };
    write(&store, [Record::Run(at(1, "s1", 6, cancelled.clone()).into())]).await.unwrap();
    let before = store.usage(None, None).await.unwrap();
    assert!(store.erase_run(&tenant(), run_id(1)).await.unwrap());
    assert_eq!(store.usage(None, None).await.unwrap(), before);
    assert_eq!(before[&tenant()].calls, 2);
    assert!(store.run_events(&tenant(), run_id(1)).await.unwrap().is_empty());
    assert_eq!(store.run(&tenant(), run_id(1)).await.unwrap(), None);
    assert_eq!(store.plan(&tenant(), task(1)).await.unwrap(), None);
    assert_eq!(store.claimed_request(&tenant(), "keysersoze", "key 1").await.unwrap(), None);
    for name in [DATABASE_FILE, "proscenium.db-wal"] {
        let bytes = std::fs::read(tmp.path().join(name)).unwrap_or_default();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{name}");
    }
    assert!(!store.erase_run(&tenant(), run_id(1)).await.unwrap());
    let left = store.approvals(&tenant(), &ApprovalFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(left.iter().map(|row| row.id.run).collect::<Vec<_>>(), [run_id(2)]);
    // The rest is erased with the conversation.
    write(&store, [Record::Run(at(2, "s1", 6, cancelled).into())]).await.unwrap();
    assert!(store.erase_session(&tenant(), &session("s1")).await.unwrap());
    for table in ["plans", "approvals", "journal", "runs", "idempotency"] {
        let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    assert_eq!(store.usage(None, None).await.unwrap(), before);
}
