use super::*;
use crate::plan::Step;
use crate::run::{SCHEMA, TenantId};

/// A version whose plan has about this many bytes.
fn edited(version: u32, bytes: usize) -> Envelope<Event> {
    let step = Step {
        step_number: 1,
        scene_name: "Desk".to_owned(),
        purpose: format!("{version} {}", "x".repeat(bytes)),
        ..Step::default()
    };
    let plan = Plan { needs_execution: true, reasoning: String::new(), steps: vec![step], ..Plan::default() };
    Envelope {
        seq: u64::from(version),
        run: None,
        session: SessionId::new("s").unwrap(),
        tenant: TenantId::new("t").unwrap(),
        at: Timestamp::UNIX_EPOCH,
        epoch: 0,
        schema: SCHEMA,
        body: Event::PlanEdited(PlanMade::new(version, PlanCause::Edit, PlanMaker::Person, plan)),
    }
}

#[test]
fn oversized_version_history_is_read_page_by_page() {
    let journal: Vec<_> = (1..=39).map(|version| edited(version, 80_000)).collect();
    let mut seen = Vec::new();
    let mut page = VersionPage::default();
    loop {
        let (versions, before) = versions_of_page(&journal, page);
        let bytes = serde_json::to_vec(&versions).unwrap().len();
        assert!(!versions.is_empty() && bytes < plan::MAX_VERSIONS_BYTES + 100_000, "{bytes}");
        seen.splice(0..0, versions.iter().map(|version| version.version));
        match before {
            Some(before) => page.before = Some(before),
            None => break,
        }
    }
    assert_eq!(seen, (1..=39).collect::<Vec<_>>());
    // A version larger than a page is a page of one.
    let (alone, before) =
        versions_of_page(&[edited(1, 1_200_000), edited(2, 1_200_000)], VersionPage::default());
    assert_eq!((alone.len(), before), (1, Some(2)));
}

fn approval(subject: SubjectDocument, decision: Option<ApprovalDecision>) -> ApprovalDocument {
    let id = "019e0000-0000-7000-8000-000000000001";
    ApprovalDocument {
        approval_id: format!("{id}.2").parse().unwrap(),
        task_id: TaskId(id.parse().unwrap()),
        session_id: SessionId::new("s").unwrap(),
        user: "ada".to_owned(),
        objective: "book".to_owned(),
        why: vec!["it writes".to_owned()],
        hash: "h".to_owned(),
        state: crate::store::ApprovalState::Open,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        decision,
        by_user: false,
        lists: Default::default(),
        subject,
    }
}

#[test]
fn json_of_an_approval_is_one_flat_object_with_the_members_of_its_subject() {
    let call = || CallDocument {
        step_number: 1,
        scene: "Hotel".to_owned(),
        tool: "book".to_owned(),
        arguments: serde_json::json!({"n": 2}),
        shown: "n: 2".to_owned(),
        effect: crate::run::Effect::Write,
    };
    let outcome = SubjectDocument::Outcome {
        call: call(),
        attempts: 1,
        error: Some(Fault::new("tool.lost", "no reply")),
        idempotency_key: "key".to_owned(),
    };
    let decision = ApprovalDecision {
        choice: "done".to_owned(),
        by: "bob".to_owned(),
        at: Timestamp::UNIX_EPOCH,
        note: Some("seen".to_owned()),
    };
    let plan =
        Plan { needs_execution: false, reasoning: String::new(), steps: Vec::new(), ..Plan::default() };
    let plan = SubjectDocument::Plan { version: 3, plan, shown: "Plan".to_owned() };
    let mut of_user = approval(SubjectDocument::Call(call()), None);
    of_user.by_user = true;
    of_user.lists.insert("tables".to_owned(), vec!["orders".to_owned()]);
    let documents = [
        approval(plan, None),
        approval(SubjectDocument::Call(call()), None),
        approval(outcome, Some(decision)),
        of_user,
    ];
    let json = documents.each_ref().map(|document| serde_json::to_string(document).unwrap());
    for (document, json) in documents.iter().zip(&json) {
        assert_eq!(document, &serde_json::from_str::<ApprovalDocument>(json).unwrap());
    }
    insta::assert_snapshot!(json.join("\n"));
    let cut = json[1].replace(r#""scene":"Hotel","#, "");
    let error = serde_json::from_str::<ApprovalDocument>(&cut).unwrap_err();
    assert!(error.to_string().contains("about `call`"), "{error}");
}
