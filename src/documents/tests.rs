use super::*;
use crate::plan::{DependsOn, Step};
use crate::run::{SCHEMA, TenantId};

/// A version whose plan has about this many bytes.
fn edited(version: u32, bytes: usize) -> Envelope<Event> {
    let step = Step {
        step_number: 1,
        kind: crate::plan::StepKind::Scene,
        scene_name: "Desk".to_owned(),
        purpose: format!("{version} {}", "x".repeat(bytes)),
        expected_tools: Vec::new(),
        depends_on_step: DependsOn::none(),
        prepared_calls: Vec::new(),
        unclear: false,
    };
    let plan =
        Plan { needs_execution: true, reasoning: String::new(), steps: vec![step], unserved: Vec::new() };
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
