//! Levels and modes, and how a narrower setting lowers a wider one.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// How much may be asked, and of whom, when something unexpected happens (`execution.level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ExecutionLevel {
    /// No model after the plan: results are worded by the tools' own sentences.
    Basic,
    /// A model may choose how to recover from a failure.
    Adaptive,
    /// A model may also interpret data, decide and adapt the plan.
    Intelligent,
    /// A model may also plan again at any point.
    Autonomous,
}

/// How much may change when something unexpected happens (`execution.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ExecutionMode {
    /// The same call may be repeated, and nothing else.
    Strict,
    /// What tools declare may also be done: another way to the same result, or leaving an optional call out.
    Adaptive,
    /// The unfinished part of the plan may also change.
    Creative,
}

impl ExecutionLevel {
    /// Its name, such as `basic`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// `own`, lowered to `wish` where that is lower. Unset ranks right above `basic`: there, a wish for more has no
    /// effect.
    #[must_use]
    pub fn narrowed(own: Option<Self>, wish: Option<Self>) -> Option<Self> {
        narrowed(own, wish, Self::Basic)
    }
}

impl ExecutionMode {
    /// Its name, such as `strict`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// `own`, lowered to `wish` where that is lower. Unset ranks right above `strict`: there, a wish for more has no
    /// effect.
    #[must_use]
    pub fn narrowed(own: Option<Self>, wish: Option<Self>) -> Option<Self> {
        narrowed(own, wish, Self::Strict)
    }
}

fn narrowed<T: Ord>(own: Option<T>, wish: Option<T>, lowest: T) -> Option<T> {
    match (own, wish) {
        (own, None) => own,
        (None, wish) => wish.filter(|wish| *wish == lowest),
        (Some(own), Some(wish)) => Some(own.min(wish)),
    }
}

/// The mode in force: with a level and no mode, what tools declare may be done.
pub fn completed(level: Option<ExecutionLevel>, mode: Option<ExecutionMode>) -> Option<ExecutionMode> {
    mode.or(level.map(|_| ExecutionMode::Adaptive))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::adapt::{Capabilities, capabilities};

    fn options<T: VariantArray + Copy + 'static>() -> Vec<Option<T>> {
        std::iter::once(None).chain(T::VARIANTS.iter().copied().map(Some)).collect()
    }

    #[test]
    fn request_never_adds_a_question_or_a_change_of_the_plan() {
        for level in options::<ExecutionLevel>() {
            for mode in options::<ExecutionMode>() {
                let own = capabilities(level, completed(level, mode));
                for wished_level in options::<ExecutionLevel>() {
                    for wished_mode in options::<ExecutionMode>() {
                        let lowered = ExecutionLevel::narrowed(level, wished_level);
                        let mode = ExecutionMode::narrowed(mode, wished_mode);
                        let may = capabilities(lowered, completed(lowered, mode));
                        let asks = |c: &Capabilities| {
                            [
                                c.asks_models, c.recovery, c.interpretation, c.decision, c.adaptation,
                                c.replanning, c.patches, c.check_replans,
                            ]
                        };
                        for (may, own) in asks(&may).into_iter().zip(asks(&own)) {
                            assert!(own || !may, "{level:?} {wished_level:?} {wished_mode:?}");
                        }
                    }
                }
            }
        }
    }
}
