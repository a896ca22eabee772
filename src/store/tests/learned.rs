//! Learned plans: what is kept, for whom, and until when.

use std::collections::BTreeMap;

use super::plans::queued;
use super::*;
use crate::run::{
    Demotion, LearnedPlan, LearnedStep, LessonResult, PathRecall, PlanLesson, PlanRecall, PlanScore,
    RecallOutcome,
};

fn plan(scene: &str) -> LearnedPlan {
    let (scene, after, calls, path) = (scene.to_owned(), Vec::new(), Vec::new(), Vec::new());
    let step = LearnedStep { number: 1, scene, after, words: None, calls, path };
    LearnedPlan { steps: vec![step], ..LearnedPlan::default() }
}

struct Learner {
    store: Store,
    runs: u128,
}

impl Learner {
    async fn teach(&mut self, name: &str, event: Event) {
        self.runs += 1;
        let run = run_id(self.runs);
        let first = envelope(Some(run), name, 1, Event::RunQueued(queued(self.runs)));
        let second = envelope(Some(run), name, 2, event);
        let end = envelope(Some(run), name, 3, Event::RunCompleted { status: RunStatus::Completed });
        let rows = [first, second, end].map(|event| Record::Run(event.into()).to_row().unwrap());
        let outcomes = self.store.write(&[rows.into()]).await.unwrap();
        assert!(outcomes[0].failures.is_empty(), "{outcomes:?}");
    }

    async fn lesson(&mut self, name: &str, user: &str, scene: &str, result: LessonResult) {
        let (template, words) = ("t".to_owned(), "find {name}".to_owned());
        let lesson = PlanLesson { template, words, plan: Some(plan(scene)), result, user: user.to_owned() };
        self.teach(name, Event::PlanObserved(lesson)).await;
    }

    async fn known(&self, user: &str) -> Option<LearnedRow> {
        self.store.learned_plan(&tenant(), "t", user).await.unwrap()
    }
}

async fn learner(dir: &std::path::Path) -> Learner {
    Learner { store: open(dir).await, runs: 0 }
}

#[tokio::test]
async fn template_is_kept_once_three_users_said_it() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    for _ in 0..3 {
        learner.lesson("s-1", "ada", "A", LessonResult::Success).await;
    }
    learner.lesson("s-2", "bob", "A", LessonResult::Success).await;
    let known = learner.known("ada").await.unwrap();
    assert_eq!((known.successes, known.users, known.kept, known.by_user), (4, 2, false, true));
    assert!(!learner.known("eve").await.unwrap().by_user);
    learner.lesson("s-3", "eve", "A", LessonResult::Success).await;
    let known = learner.known("nobody").await.unwrap();
    assert_eq!((known.successes, known.users, known.kept), (5, 3, true));
    for name in ["s-1", "s-2", "s-3"] {
        learner.store.erase_session(&tenant(), &session(name)).await.unwrap();
    }
    assert!(learner.known("ada").await.is_some());
    let left: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM learned_users) + (SELECT count(*) FROM learned_sources)",
    )
    .fetch_one(learner.store.pool())
    .await
    .unwrap();
    assert_eq!(left, 0, "who said it is forgotten");
}

#[tokio::test]
async fn template_of_few_users_is_erased_with_any_of_its_conversations_or_runs() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    learner.lesson("s-1", "ada", "A", LessonResult::Success).await;
    learner.lesson("s-2", "ada", "A", LessonResult::Success).await;
    learner.store.erase_session(&tenant(), &session("s-2")).await.unwrap();
    assert_eq!(learner.known("ada").await, None);
    learner.lesson("s-1", "ada", "A", LessonResult::Success).await;
    assert!(learner.store.erase_run(&tenant(), run_id(learner.runs)).await.unwrap());
    assert_eq!(learner.known("ada").await, None);
}

#[tokio::test]
async fn other_plan_for_a_template_starts_again_and_failures_of_others_do_not_count() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    for user in ["ada", "bob", "eve"] {
        learner.lesson("s-1", user, "A", LessonResult::Success).await;
    }
    learner.lesson("s-1", "mallory", "B", LessonResult::Failure).await;
    learner.lesson("s-1", "mallory", "B", LessonResult::Outage).await;
    let known = learner.known("ada").await.unwrap();
    assert_eq!((known.demoted, known.suspended_until, known.kept), (None, None, true));
    learner.lesson("s-1", "mallory", "B", LessonResult::Success).await;
    let known = learner.known("ada").await.unwrap();
    assert_eq!((known.successes, known.users, known.kept, known.by_user), (1, 1, false, false));
    assert_eq!(known.plan, plan("B"));
}

#[tokio::test]
async fn failures_changes_and_ratings_demote_and_outages_suspend() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    for _ in 0..3 {
        learner.lesson("s", "ada", "A", LessonResult::Success).await;
    }
    learner.lesson("s", "ada", "A", LessonResult::Outage).await;
    let known = learner.known("ada").await.unwrap();
    assert!(known.suspended_until.is_some() && known.demoted.is_none() && known.successes == 3);
    let recall = |outcome| {
        let template = Some("t".to_owned());
        Event::PlanRecalled(PlanRecall { outcome, template, plan: None, hints: Vec::new() })
    };
    learner.teach("s", recall(RecallOutcome::Reused)).await;
    assert_eq!(learner.known("ada").await.unwrap().uses, 1);
    learner.teach("s", recall(RecallOutcome::Changed)).await;
    let known = learner.known("ada").await.unwrap();
    assert_eq!((known.demoted, known.successes), (Some(Demotion::Definition), 0));
    let rated = |score| {
        let (template, by) = (Some("t".to_owned()), "ada".to_owned());
        Event::PlanRated { template, paths: Vec::new(), score, by, note: None }
    };
    learner.teach("s", rated(PlanScore::Bad)).await;
    assert_eq!(learner.known("ada").await.unwrap().demoted, Some(Demotion::Rating));
    learner.lesson("s", "ada", "A", LessonResult::Failure).await;
    assert_eq!(learner.known("ada").await.unwrap().demoted, Some(Demotion::Rating));
    learner.teach("s", rated(PlanScore::Good)).await;
    assert_eq!(learner.known("ada").await.unwrap().demoted, None);
    let counts = learner.store.learned_counts(3, Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(counts.iter().map(|count| count.plans).sum::<u64>(), 1);
}

#[tokio::test]
async fn tenants_know_nothing_of_each_other_and_templates_are_bounded() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    learner.lesson("s", "ada", "A", LessonResult::Success).await;
    let other = TenantId::new("other").unwrap();
    assert_eq!(learner.store.learned_plan(&other, "t", "ada").await.unwrap(), None);
    assert!(!learner.store.delete_learned(&other, "t").await.unwrap());
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) INSERT INTO learned_plans \
         (tenant, template, words, plan, successes, kept, created, seen) \
         SELECT ?, 'x' || i, 'w', '{\"steps\":[],\"definitions\":{}}', 1, i <= 300, i, i FROM n",
    )
    .bind(tenant().as_str())
    .execute(learner.store.pool())
    .await
    .unwrap();
    assert!(learner.store.delete_learned(&tenant(), "t").await.unwrap());
    learner.lesson("s", "ada", "A", LessonResult::Success).await;
    let left: Vec<(i64, bool)> =
        sqlx::query_as("SELECT count(*), kept FROM learned_plans GROUP BY kept ORDER BY kept")
            .fetch_all(learner.store.pool())
            .await
            .unwrap();
    assert_eq!(left, [(700, false), (300, true)], "those of few users go first");
    assert!(learner.known("ada").await.is_some());
}

#[tokio::test]
async fn paths_of_a_flow_are_kept_beside_plans_and_rated_with_their_run() {
    let tmp = tempfile::tempdir().unwrap();
    let mut learner = learner(tmp.path()).await;
    learner.lesson("s", "ada", "A", LessonResult::Success).await;
    for template in ["p", "q"] {
        let plan = LearnedPlan::of_path("lookup", vec!["find".to_owned()], None, BTreeMap::new());
        let (template, words) = (template.to_owned(), "find {name}".to_owned());
        let (plan, user) = (Some(plan), "ada".to_owned());
        let lesson = PlanLesson { template, words, plan, result: LessonResult::Success, user };
        learner.teach("s", Event::PathObserved { step: 1, lesson }).await;
    }
    let hints = async |learner: &Learner, flow: Option<&str>| {
        let rows = learner.store.learned_for_hints(&tenant(), "ada", 1, flow).await.unwrap();
        rows.into_iter().map(|row| row.template).collect::<Vec<_>>()
    };
    assert_eq!(hints(&learner, None).await, ["t"]);
    assert_eq!(hints(&learner, Some("lookup")).await.len(), 2);
    assert!(hints(&learner, Some("other")).await.is_empty());
    let recall = |outcome| {
        let template = Some("p".to_owned());
        Event::PathRecalled {
            step: 1,
            recall: PathRecall { outcome, template, path: None, hints: Vec::new() },
        }
    };
    learner.teach("s", recall(RecallOutcome::Reused)).await;
    let of = async |learner: &Learner, template: &str| {
        learner.store.learned_plan(&tenant(), template, "ada").await.unwrap().unwrap()
    };
    assert_eq!(of(&learner, "p").await.uses, 1);
    learner.teach("s", recall(RecallOutcome::Changed)).await;
    assert_eq!(of(&learner, "p").await.demoted, Some(Demotion::Definition));
    let (paths, by) = (vec!["p".to_owned(), "q".to_owned()], "ada".to_owned());
    let rated = Event::PlanRated { template: None, paths, score: PlanScore::Bad, by, note: None };
    learner.teach("s", rated).await;
    for template in ["p", "q"] {
        assert_eq!(of(&learner, template).await.demoted, Some(Demotion::Rating));
    }
    assert_eq!(of(&learner, "t").await.demoted, None);
}
