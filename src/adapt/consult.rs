//! The decision whether a model is consulted about something unexpected: one pure function of the facts.

use serde::{Deserialize, Serialize};

/// A reply that comes this late, in milliseconds before the run's deadline, is of no use.
const MIN_LEFT_MS: u64 = 2_000;

/// The kind of question that a model is consulted about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ConsultationKind {
    /// How to continue after a call failed.
    Recovery,
    /// Where the values of the expected result are in data of another shape.
    Interpretation,
    /// Which of several alternatives is called in place of a failed call.
    Decision,
    /// What to change in the part of the plan that is not finished.
    Adaptation,
}

impl ConsultationKind {
    /// Its name, such as `recovery`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The outcome of a consultation's question: a model was asked, or why none was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ConsultationOutcome {
    /// Predefined logic decided.
    Policy,
    /// An equal question was answered recently, or is being answered.
    Cached,
    /// A model was asked.
    Asked,
    /// The run had all its consultations, or a budget does not cover the question.
    OverBudget,
    /// A limit of requests or tokens did not let the question pass in time.
    RateLimited,
    /// Level, mode or the request do not allow it.
    NotAllowed,
}

impl ConsultationOutcome {
    /// Its name, such as `over_budget`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Why no model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AskRefusal {
    /// Predefined logic has an answer, or the tool declares that the failure is final.
    Decided,
    /// A write that may have taken effect: a person is asked.
    PersonDecides,
    /// Nothing but giving up is left.
    NoChoice,
    /// The run's deadline comes before a reply is of use.
    NoTime,
    /// No model answered an earlier consultation of the run.
    NoModel,
    /// Level and mode do not allow it.
    Level,
    /// The run executes exactly what its user confirmed.
    Confirmation,
    /// The run had all its consultations.
    RunLimit,
    /// A budget does not cover the question.
    Money,
    /// A limit did not let the question pass in time.
    Limits,
}

impl AskRefusal {
    /// Its name, such as `run_limit`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The outcome of a consultation that ends with this refusal.
    pub fn outcome(self) -> ConsultationOutcome {
        match self {
            Self::Decided | Self::PersonDecides | Self::NoChoice | Self::NoTime | Self::NoModel => {
                ConsultationOutcome::Policy
            }
            Self::Level | Self::Confirmation => ConsultationOutcome::NotAllowed,
            Self::RunLimit | Self::Money => ConsultationOutcome::OverBudget,
            Self::Limits => ConsultationOutcome::RateLimited,
        }
    }
}

/// `[execution.consultations]`: the bounds of a run's consultations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsultationLimits {
    /// Maximum number of consultations of a run in which a model is asked.
    pub max_per_run: u32,
    /// The longest that one question takes, waiting for limits and retries included, in milliseconds.
    pub timeout_ms: u64,
    /// Maximum number of changes of the unfinished part of a run's plan.
    pub max_patches: u32,
    /// How many steps in a row, of plans after the first, may end without a result before the run ends.
    pub max_idle_steps: u32,
    /// How many models vote in a decision. In a run, at most as many as there are models for decisions.
    pub vote: u32,
}

impl Default for ConsultationLimits {
    fn default() -> Self {
        Self { max_per_run: 4, timeout_ms: 15_000, max_patches: 2, max_idle_steps: 3, vote: 1 }
    }
}

/// The origin of a consultation's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOrigin {
    /// The reply to an equal question, stored or in progress.
    Shared,
    /// It was sent to a model.
    Sent,
    /// A budget did not cover it.
    NoMoney,
    /// A limit did not let it pass in time.
    NoTurn,
}

/// The facts that decide whether a model is asked, in the order in which they count. A fact that is not known yet has
/// the value that allows the question.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub struct AskingFacts {
    /// Predefined logic has an answer, or the failure is declared as final.
    pub decided: bool,
    /// A person decides.
    pub person_decides: bool,
    /// Level and mode allow it.
    pub allowed: bool,
    /// The run executes exactly what its user confirmed.
    pub confirmation: bool,
    /// How many choices there are besides giving up.
    pub choices: usize,
    /// Milliseconds until the run's deadline.
    pub left_ms: u64,
    /// No model answered an earlier consultation of the run.
    pub model_failed: bool,
    /// An equal question of the run was answered.
    pub answered_in_run: bool,
    /// How many consultations of the run have asked a model.
    pub asked_in_run: u32,
    /// The run's bounds.
    pub limits: ConsultationLimits,
    /// What became of the question, once it has ended.
    pub reply: Option<ReplyOrigin>,
}

/// Decides whether a model is asked, and if not, why: predefined logic comes first, then the reply to an equal
/// question, budgets and limits. `None` means that the model is asked.
pub fn whether_to_ask(facts: &AskingFacts) -> Option<(ConsultationOutcome, Option<AskRefusal>)> {
    let refused = |why: AskRefusal| Some((why.outcome(), Some(why)));
    if facts.decided {
        refused(AskRefusal::Decided)
    } else if facts.person_decides {
        refused(AskRefusal::PersonDecides)
    } else if !facts.allowed {
        refused(AskRefusal::Level)
    } else if facts.confirmation {
        refused(AskRefusal::Confirmation)
    } else if facts.choices == 0 {
        refused(AskRefusal::NoChoice)
    } else if facts.left_ms < MIN_LEFT_MS {
        refused(AskRefusal::NoTime)
    } else if facts.model_failed {
        refused(AskRefusal::NoModel)
    } else if facts.answered_in_run {
        Some((ConsultationOutcome::Cached, None))
    } else {
        match facts.reply {
            Some(ReplyOrigin::Shared) => Some((ConsultationOutcome::Cached, None)),
            Some(ReplyOrigin::NoMoney) => refused(AskRefusal::Money),
            Some(ReplyOrigin::NoTurn) => refused(AskRefusal::Limits),
            Some(ReplyOrigin::Sent) => Some((ConsultationOutcome::Asked, None)),
            None if facts.asked_in_run >= facts.limits.max_per_run => refused(AskRefusal::RunLimit),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strum::VariantArray;

    use super::*;

    /// Facts under which the question is put.
    fn open() -> AskingFacts {
        AskingFacts {
            decided: false,
            person_decides: false,
            allowed: true,
            confirmation: false,
            choices: 1,
            left_ms: MIN_LEFT_MS,
            model_failed: false,
            answered_in_run: false,
            asked_in_run: 3,
            limits: ConsultationLimits::default(),
            reply: None,
        }
    }

    /// What each fact alone leads to, in the order in which they count.
    #[expect(clippy::type_complexity, reason = "a table")]
    fn rows() -> Vec<(fn(&mut AskingFacts), ConsultationOutcome, Option<AskRefusal>)> {
        use ConsultationOutcome::{Asked, Cached, NotAllowed, OverBudget, Policy, RateLimited};
        vec![
            (|f| f.decided = true, Policy, Some(AskRefusal::Decided)),
            (|f| f.person_decides = true, Policy, Some(AskRefusal::PersonDecides)),
            (|f| f.allowed = false, NotAllowed, Some(AskRefusal::Level)),
            (|f| f.confirmation = true, NotAllowed, Some(AskRefusal::Confirmation)),
            (|f| f.choices = 0, Policy, Some(AskRefusal::NoChoice)),
            (|f| f.left_ms = MIN_LEFT_MS - 1, Policy, Some(AskRefusal::NoTime)),
            (|f| f.model_failed = true, Policy, Some(AskRefusal::NoModel)),
            (|f| f.answered_in_run = true, Cached, None),
            (|f| f.reply = Some(ReplyOrigin::Shared), Cached, None),
            (|f| f.reply = Some(ReplyOrigin::NoMoney), OverBudget, Some(AskRefusal::Money)),
            (|f| f.reply = Some(ReplyOrigin::NoTurn), RateLimited, Some(AskRefusal::Limits)),
            (|f| f.reply = Some(ReplyOrigin::Sent), Asked, None),
            (|f| f.asked_in_run = 4, OverBudget, Some(AskRefusal::RunLimit)),
        ]
    }

    #[test]
    fn question_is_put_only_where_nothing_speaks_against_it() {
        assert_eq!(whether_to_ask(&open()), None);
        for (change, outcome, why) in rows() {
            let mut facts = open();
            change(&mut facts);
            assert_eq!(whether_to_ask(&facts), Some((outcome, why)), "{facts:?}");
        }
    }

    proptest! {
        #[test]
        fn first_fact_in_the_order_counts(
            applies in proptest::collection::vec(any::<bool>(), 13), reply in 8..12_usize
        ) {
            let mut facts = open();
            let mut first = None;
            for (row, (change, outcome, why)) in rows().into_iter().enumerate() {
                // A question has one end.
                let is_reply = (8..12).contains(&row);
                if applies[row] && (!is_reply || row == reply) {
                    change(&mut facts);
                    first = first.or(Some((outcome, why)));
                }
            }
            prop_assert_eq!(whether_to_ask(&facts), first);
        }
    }

    #[test]
    fn every_refusal_counts_as_a_question_that_was_not_asked() {
        for why in AskRefusal::VARIANTS {
            let outcome = why.outcome();
            assert!(!matches!(outcome, ConsultationOutcome::Asked | ConsultationOutcome::Cached), "{why:?}");
        }
    }
}
