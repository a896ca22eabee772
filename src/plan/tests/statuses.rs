//! The transition table of plan statuses, pair by pair, and its diagram in the documentation.

use super::super::PlanStatus;

/// The expected table, written by hand: one row per status, in the order of a plan's life cycle.
const EXPECTED_TRANSITIONS: [(&str, &[&str]); 7] = [
    ("draft", &["pending_approval", "approved", "failed", "cancelled"]),
    ("pending_approval", &["draft", "approved", "failed", "cancelled"]),
    ("approved", &["draft", "executing", "completed", "failed", "cancelled"]),
    ("executing", &["completed", "failed", "cancelled"]),
    ("completed", &[]),
    ("failed", &["executing"]),
    ("cancelled", &[]),
];

#[test]
fn transitions_follow_the_table_and_errors_name_both_statuses() {
    assert_eq!(PlanStatus::ALL.map(PlanStatus::name), EXPECTED_TRANSITIONS.map(|(name, _)| name));
    for (from, (_, may)) in PlanStatus::ALL.into_iter().zip(EXPECTED_TRANSITIONS) {
        for to in PlanStatus::ALL {
            let legal = from == to || may.contains(&to.name());
            assert_eq!(from.can_become(to), legal, "{from:?} -> {to:?}");
            match from.transition_to(to) {
                Ok(now) => assert!(legal && now == to),
                Err(illegal) => {
                    assert!(!legal);
                    let told = format!("a plan that is {} cannot become {}", from.name(), to.name());
                    assert_eq!(illegal.to_string(), told);
                }
            }
        }
    }
}

#[test]
fn each_status_has_one_name_equal_to_its_wire_name() {
    for status in PlanStatus::ALL {
        assert_eq!(PlanStatus::from_name(status.name()), Some(status));
        assert_eq!(serde_json::to_value(status).unwrap(), status.name());
    }
    assert_eq!(PlanStatus::from_name("Draft"), None);
}

#[test]
fn terminal_statuses_stay_except_failed_which_can_resume() {
    for status in PlanStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        let next = if status == PlanStatus::Failed { &[PlanStatus::Executing][..] } else { &[] };
        assert_eq!(status.successors(), next);
    }
    // Every status that is not terminal can fail and be cancelled.
    for status in PlanStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
        assert!(status.can_become(PlanStatus::Failed) && status.can_become(PlanStatus::Cancelled));
    }
}

#[test]
fn documentation_shows_the_current_transition_table() {
    let text = include_str!("../../../docs/internals/approvals.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Plan statuses\n")).unwrap();
    let drawn = section.split("```mermaid\n").nth(1).unwrap().split("```").next().unwrap();
    let moves = |from: PlanStatus| {
        from.successors().iter().map(move |to| format!("    {} --> {}", from.name(), to.name()))
    };
    let ended = PlanStatus::ALL.into_iter().filter(|status| status.is_terminal());
    let begin = ["stateDiagram-v2".to_owned(), "    [*] --> draft".to_owned()];
    let end = ended.map(|status| format!("    {} --> [*]", status.name()));
    let table: Vec<String> =
        begin.into_iter().chain(PlanStatus::ALL.into_iter().flat_map(moves)).chain(end).collect();
    assert_eq!(drawn.lines().collect::<Vec<_>>(), table);
}
