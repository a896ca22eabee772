//! The table of a plan's statuses, pair by pair, and the picture that the documentation shows of it.

use super::super::PlanStatus;

/// The table once more, written by hand: a row a status, in the order of a plan's life.
const MAY: [(&str, &[&str]); 7] = [
    ("draft", &["pending_approval", "approved", "failed", "cancelled"]),
    ("pending_approval", &["draft", "approved", "failed", "cancelled"]),
    ("approved", &["draft", "executing", "completed", "failed", "cancelled"]),
    ("executing", &["completed", "failed", "cancelled"]),
    ("completed", &[]),
    ("failed", &["executing"]),
    ("cancelled", &[]),
];

#[test]
fn every_pair_of_statuses_is_legal_as_the_table_says_or_refused_with_both_named() {
    assert_eq!(PlanStatus::ALL.map(PlanStatus::name), MAY.map(|(name, _)| name));
    for (from, (_, may)) in PlanStatus::ALL.into_iter().zip(MAY) {
        for to in PlanStatus::ALL {
            let legal = from == to || may.contains(&to.name());
            assert_eq!(from.may_become(to), legal, "{from:?} -> {to:?}");
            match from.become_status(to) {
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
fn a_name_is_one_statuss_and_the_one_on_the_wire() {
    for status in PlanStatus::ALL {
        assert_eq!(PlanStatus::named(status.name()), Some(status));
        assert_eq!(serde_json::to_value(status).unwrap(), status.name());
    }
    assert_eq!(PlanStatus::named("Draft"), None);
}

#[test]
fn an_end_stays_except_that_what_failed_can_be_carried_on() {
    for status in PlanStatus::ALL.into_iter().filter(|status| status.is_terminal()) {
        let next = if status == PlanStatus::Failed { &[PlanStatus::Executing][..] } else { &[] };
        assert_eq!(status.followed_by(), next);
    }
    // Whatever has not ended can fail and be cancelled.
    for status in PlanStatus::ALL.into_iter().filter(|status| !status.is_terminal()) {
        assert!(status.may_become(PlanStatus::Failed) && status.may_become(PlanStatus::Cancelled));
    }
}

#[test]
fn the_documentation_shows_the_table_as_it_is() {
    let text = include_str!("../../../ARCHITECTURE.md");
    let section = text.split("\n## ").find(|section| section.starts_with("Statuses of a plan\n")).unwrap();
    let drawn = section.split("```mermaid\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(drawn, PlanStatus::diagram());
}
