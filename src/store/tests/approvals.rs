//! The list of approvals.

use super::plans::{about_plan, at, decided, queued, task};
use super::*;
use crate::run::{ApprovalId, ApprovalSubject, Decision, PlanCause, PlanMade, PlanMaker, RequiredApproval};

const CALL: ApprovalSubject = ApprovalSubject::Call { call: 7 };
const OUTCOME: ApprovalSubject = ApprovalSubject::Outcome { call: 8 };

fn put(approval: u32, matter: ApprovalSubject) -> Event {
    Event::ApprovalRequired { approval, matter, needed: RequiredApproval::default() }
}

async fn append(store: &Store, n: u128, session: &str, events: Vec<Event>) {
    let events = std::iter::once(Event::RunQueued(queued(n))).chain(events);
    write(store, (1..).zip(events).map(|(seq, e)| Record::Run(at(n, session, seq, e).into()))).await.unwrap();
}

fn id(n: u128, approval: u32) -> ApprovalId {
    ApprovalId { run: run_id(n), approval }
}

/// The states of the approvals of run `n`.
async fn states(store: &Store, n: u128) -> Vec<(u32, ApprovalState, bool)> {
    let all = store.approvals(&tenant(), &ApprovalFilter::default(), &Page::default()).await.unwrap();
    let own = all.iter().filter(|row| row.id.run == run_id(n));
    own.map(|row| (row.id.approval, row.state, row.decided.is_some())).collect()
}

fn edited(version: u32) -> Event {
    Event::PlanEdited(PlanMade::new(
        version,
        PlanCause::Edit,
        PlanMaker::Person,
        crate::plan::Plan {
            needs_execution: false,
            reasoning: String::new(),
            steps: Vec::new(),
            ..crate::plan::Plan::default()
        },
    ))
}

#[tokio::test]
async fn approval_stays_open_until_decided_or_lapsed() {
    use ApprovalState::{Decided, Lapsed, Open};
    let (_tmp, store) = fresh().await;
    let cancelled = || Event::RunCancelled { by: "boss".to_owned() };
    let asked = |version| Event::ModificationAsked { version, by: "boss".to_owned(), words: "x".to_owned() };
    let lapsed = |approval| Event::ApprovalLapsed {
        approval,
        matter: CALL,
        why: Vec::new(),
        needed: RequiredApproval::default(),
        edited: None,
        read: None,
    };
    let yes = |approval, matter| decided(approval, matter, Decision::Yes { hold: false });
    for (n, events, expected) in [
        (1, vec![put(1, CALL), put(2, OUTCOME)], vec![(1, Open, false), (2, Open, false)]),
        (2, vec![put(1, CALL), yes(1, CALL)], vec![(1, Decided, true)]),
        (3, vec![put(1, CALL), lapsed(1), put(2, CALL)], vec![(1, Lapsed, false), (2, Open, false)]),
        // The end lapses approvals of plans and calls, but not of outcomes.
        (
            4,
            vec![put(1, CALL), about_plan(2, 1), put(3, OUTCOME), cancelled()],
            vec![(1, Lapsed, false), (2, Lapsed, false), (3, Open, false)],
        ),
        (
            5,
            vec![put(1, OUTCOME), cancelled(), decided(1, OUTCOME, Decision::Done)],
            vec![(1, Decided, true)],
        ),
        // A new plan lapses the approvals of the previous one, open or decided, and nothing else.
        (6, vec![about_plan(1, 1), asked(2)], vec![(1, Lapsed, false)]),
        (
            7,
            vec![
                about_plan(1, 1),
                yes(1, ApprovalSubject::Plan { version: 1 }),
                put(2, OUTCOME),
                edited(2),
                about_plan(3, 2),
            ],
            vec![(1, Lapsed, true), (2, Open, false), (3, Open, false)],
        ),
        (8, vec![cancelled()], vec![]),
    ] {
        append(&store, n, "s1", events).await;
        assert_eq!(states(&store, n).await, expected, "run {n}");
    }
    let row = store.approval(&tenant(), id(2, 1)).await.unwrap().unwrap();
    assert_eq!((row.about, row.task, row.user.as_str()), (About::Call, task(2), "user2"));
    assert_eq!((row.session, row.state), (session("s1"), Decided));
    let when = |seq| at(2, "s1", seq, Event::RunWaiting {}).at;
    assert_eq!((row.created, row.decided), (when(2), Some(when(3))));
    assert_eq!(store.approval(&tenant(), id(2, 2)).await.unwrap(), None);
}

#[tokio::test]
async fn changes_of_one_commit_apply_in_order() {
    let (_tmp, store) = fresh().await;
    let events = [
        Event::RunQueued(queued(1)),
        about_plan(1, 1),
        edited(2),
        about_plan(2, 2),
        decided(2, ApprovalSubject::Plan { version: 2 }, Decision::No),
        Event::RunCancelled { by: "boss".to_owned() },
    ];
    let group = (1..).zip(events).map(|(seq, e)| Record::Run(at(1, "s1", seq, e).into()).to_row().unwrap());
    // Another stream that fails changes nothing.
    let alien = Record::Run(at(2, "s1", 9, about_plan(1, 1)).into()).to_row().unwrap();
    let outcomes = store.write(&[group.collect(), vec![alien]]).await.unwrap();
    assert_eq!(outcomes.iter().map(|o| o.failures.len()).collect::<Vec<_>>(), [0, 1]);
    let expected = [(1, ApprovalState::Lapsed, false), (2, ApprovalState::Decided, true)];
    assert_eq!(states(&store, 1).await, expected);
    assert!(states(&store, 2).await.is_empty());
}

#[tokio::test]
async fn run_end_after_restart_lapses_open_approvals() {
    let (tmp, store) = fresh().await;
    append(&store, 1, "s1", vec![put(1, CALL), Event::RunWaiting {}]).await;
    store.close().await;
    drop(store);
    let store = open(tmp.path()).await;
    let end = Event::RunFailed { error: Fault::new("x", "y") };
    write(&store, [Record::Run(at(1, "s1", 4, end).into())]).await.unwrap();
    assert_eq!(states(&store, 1).await, [(1, ApprovalState::Lapsed, false)]);
}

#[tokio::test]
async fn approvals_are_listed_oldest_first_with_pages_and_filters() {
    let (_tmp, store) = fresh().await;
    append(&store, 1, "a", vec![put(1, CALL), put(2, OUTCOME)]).await;
    append(&store, 2, "b", vec![about_plan(1, 1)]).await;
    append(
        &store,
        3,
        "a",
        vec![about_plan(1, 1), decided(1, ApprovalSubject::Plan { version: 1 }, Decision::No)],
    )
    .await;
    let other = TenantId::new("other").unwrap();
    for (seq, event) in [(1, Event::RunQueued(queued(4))), (2, put(1, CALL))] {
        let theirs = Envelope { tenant: other.clone(), ..at(4, "a", seq, event) };
        write(&store, [Record::Run(theirs.into())]).await.unwrap();
    }
    let list = async |tenant: &TenantId, filter: ApprovalFilter, page: Page<ApprovalId>| {
        let rows = store.approvals(tenant, &filter, &page).await.unwrap();
        rows.iter().map(|row| (row.id.run.0.as_u128(), row.id.approval)).collect::<Vec<_>>()
    };
    let (all, first) = (ApprovalFilter::default, Page::default);
    assert_eq!(list(&tenant(), all(), first()).await, [(1, 1), (1, 2), (2, 1), (3, 1)]);
    let after = |n, approval| Page { limit: 2, after: Some(id(n, approval)) };
    assert_eq!(list(&tenant(), all(), Page { limit: 2, after: None }).await, [(1, 1), (1, 2)]);
    assert_eq!(list(&tenant(), all(), after(1, 2)).await, [(2, 1), (3, 1)]);
    assert_eq!(list(&tenant(), all(), after(3, 1)).await, []);
    assert_eq!(list(&tenant(), all(), after(4, 1)).await, []);
    let open_only = ApprovalFilter { open_only: true, ..all() };
    assert_eq!(list(&tenant(), open_only.clone(), first()).await, [(1, 1), (1, 2), (2, 1)]);
    assert_eq!(list(&tenant(), open_only.clone(), after(1, 1)).await, [(1, 2), (2, 1)]);
    let in_a = ApprovalFilter { session: Some(session("a")), ..open_only };
    assert_eq!(list(&tenant(), in_a, first()).await, [(1, 1), (1, 2)]);
    for (about, expected) in
        [(About::Plan, vec![(2, 1), (3, 1)]), (About::Call, vec![(1, 1)]), (About::Outcome, vec![(1, 2)])]
    {
        let filter = ApprovalFilter { about: Some(about), ..all() };
        assert_eq!(list(&tenant(), filter, first()).await, expected);
    }
    assert_eq!(list(&other, all(), first()).await, [(4, 1)]);
    assert_eq!(store.approval(&other, id(1, 1)).await.unwrap(), None);
    // Overdue approvals are found across tenants; outcome approvals never expire.
    let all = store.overdue_approvals(Timestamp::now(), 10).await.unwrap();
    assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [id(1, 1), id(2, 1), id(4, 1)]);
    assert_eq!(store.overdue_approvals(all[1].created, 10).await.unwrap(), all[..1]);
    assert_eq!(store.overdue_approvals(Timestamp::now(), 2).await.unwrap(), all[..2]);
}

#[tokio::test]
async fn delivered_notifications_are_not_repeated_and_postponed_ones_return() {
    let (tmp, store) = fresh().await;
    append(&store, 1, "a", vec![put(1, CALL), put(2, OUTCOME), about_plan(3, 1), Event::RunWaiting {}]).await;
    append(&store, 2, "a", vec![put(1, CALL)]).await;
    let now = Timestamp::now();
    let later = |s| now + jiff::SignedDuration::from_secs(s);
    let untold = async |at| {
        let rows = store.pending_notifications(at, 10).await.unwrap();
        rows.iter().map(|row| (row.approval.id, row.attempts)).collect::<Vec<_>>()
    };
    assert_eq!(untold(now).await, [(id(1, 1), 0), (id(1, 2), 0), (id(1, 3), 0), (id(2, 1), 0)]);
    assert_eq!(store.pending_notifications(now, 2).await.unwrap().len(), 2);
    store.set_notified(id(1, 1), now).await.unwrap();
    store.postpone_notification(id(1, 2), Some(later(5))).await.unwrap();
    store.postpone_notification(id(1, 3), None).await.unwrap();
    assert_eq!(untold(now).await, [(id(2, 1), 0)]);
    assert_eq!(untold(later(5)).await, [(id(1, 2), 1), (id(2, 1), 0)]);
    // A decided approval needs no notification.
    let end = Event::RunCancelled { by: "boss".to_owned() };
    write(&store, [Record::Run(at(2, "a", 3, end).into())]).await.unwrap();
    store.close().await;
    drop(store);
    let store = open(tmp.path()).await;
    let rows = store.pending_notifications(later(5), 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| (row.approval.id, row.attempts)).collect::<Vec<_>>(), [(id(1, 2), 1)]);
    let waiting = WaitingCounts { runs: 1, plans: 1, calls: 1, outcomes: 1 };
    assert_eq!(store.waiting_counts().await.unwrap(), waiting);
}
