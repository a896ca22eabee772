//! The capabilities that a level and a mode allow together, as one table.

use strum::VariantArray;

use super::{ExecutionLevel, ExecutionMode};

/// The things that may happen in a run: the intersection of its level and its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a table of what is allowed")]
pub struct Capabilities {
    /// Models are asked after the plan: scenes, the check, the answer.
    pub asks_models: bool,
    /// A model may be consulted about a failed call.
    pub recovery: bool,
    /// A model may be consulted about data of another shape than expected.
    pub interpretation: bool,
    /// A model may be consulted where several ways are open.
    pub decision: bool,
    /// A model may be consulted for a change of the unfinished part of the plan.
    pub adaptation: bool,
    /// A model may plan again at any point.
    pub replanning: bool,
    /// The same call may be repeated.
    pub repeats: bool,
    /// A declared alternative may be called.
    pub alternatives: bool,
    /// The last good result may be used.
    pub cached: bool,
    /// An optional call may be left out.
    pub skips: bool,
    /// The unfinished part of the plan may change.
    pub patches: bool,
    /// The check may ask for another plan.
    pub check_replans: bool,
}

/// Returns what `level` and `mode` allow together; where one is unset, as without it.
pub fn capabilities(level: Option<ExecutionLevel>, mode: Option<ExecutionMode>) -> Capabilities {
    use ExecutionLevel::{Adaptive, Autonomous, Basic, Intelligent};
    let asks_models = level != Some(Basic);
    let changes = mode >= Some(ExecutionMode::Adaptive);
    let creative = mode == Some(ExecutionMode::Creative);
    Capabilities {
        asks_models,
        recovery: level >= Some(Adaptive) && mode.is_some(),
        interpretation: level >= Some(Intelligent) && changes,
        decision: level >= Some(Intelligent) && changes,
        adaptation: level >= Some(Intelligent) && creative,
        replanning: level == Some(Autonomous) && creative,
        repeats: mode.is_some(),
        alternatives: changes,
        cached: changes,
        skips: changes,
        patches: level >= Some(Intelligent) && creative,
        check_replans: asks_models && mode != Some(ExecutionMode::Strict),
    }
}

/// The table of `docs/internals/failures.md`: a row for each level and mode.
pub fn capabilities_table() -> String {
    let mut lines = vec![
        "| level | mode | asked after the plan | consultations | predefined logic may | patches | check's re-plan |"
            .to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    for level in ExecutionLevel::VARIANTS {
        for mode in ExecutionMode::VARIANTS {
            let may = capabilities(Some(*level), Some(*mode));
            let cells = [
                level.name().to_owned(),
                mode.name().to_owned(),
                if may.asks_models { "scenes, check, answer" } else { "nobody" }.to_owned(),
                consultations(may),
                logic(may),
                yes(may.patches),
                yes(may.check_replans),
            ];
            lines.push(format!("| {} |", cells.join(" | ")));
        }
    }
    lines.join("\n")
}

fn yes(allowed: bool) -> String {
    if allowed { "yes" } else { "no" }.to_owned()
}

/// The names of what is allowed.
fn listed(all: &[(bool, &str)]) -> String {
    let names: Vec<&str> = all.iter().filter(|(allowed, _)| *allowed).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn consultations(may: Capabilities) -> String {
    let recovery = if may.skips { "recovery" } else { "recovery (retry, ask the user, abort)" };
    listed(&[
        (may.recovery, recovery),
        (may.interpretation, "interpretation"),
        (may.decision, "decision"),
        (may.adaptation, "adaptation"),
        (may.replanning, "re-planning at any point"),
    ])
}

fn logic(may: Capabilities) -> String {
    listed(&[
        (may.repeats, "repeat"),
        (may.alternatives, "alternative"),
        (may.cached, "cached"),
        (may.skips, "skip"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_grow_with_level_and_with_mode() {
        let flags = |c: Capabilities| {
            [
                c.asks_models, c.recovery, c.interpretation, c.decision, c.adaptation, c.replanning,
                c.repeats, c.alternatives, c.cached, c.skips, c.patches, c.check_replans,
            ]
        };
        for level in ExecutionLevel::VARIANTS {
            for mode in ExecutionMode::VARIANTS {
                let may = flags(capabilities(Some(*level), Some(*mode)));
                for lower in ExecutionLevel::VARIANTS.iter().filter(|lower| *lower <= level) {
                    for narrower in ExecutionMode::VARIANTS.iter().filter(|narrower| *narrower <= mode) {
                        let less = flags(capabilities(Some(*lower), Some(*narrower)));
                        assert!(less.iter().zip(may).all(|(less, more)| more || !less), "{level:?} {mode:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_level_and_mode_nothing_is_repeated_and_models_are_asked() {
        let may = capabilities(None, None);
        assert!(may.asks_models && may.check_replans);
        assert!(!(may.repeats || may.alternatives || may.skips || may.recovery || may.patches));
    }
}
