//! "How much": an amount, never rows.

use super::super::lexicon::{Function, Role};
use super::super::{Reason, Tongue, qualities};
use super::Reader;

/// Verbs behind "how much" with which something was received, spent or given.
const ENGLISH_PAST: [&str; 7] = ["was", "were", "did", "have", "has", "had", "came"];
/// The same in Italian.
const ITALIAN_PAST: [&str; 6] = ["abbiamo", "ho", "ha", "hanno", "avete", "avevamo"];

/// Amounts.
impl Reader<'_> {
    /// "How much was donated for research?" asks for the sum of the one amount that the rows have. "How much are the
    /// donations?" may ask for each of them.
    pub(super) fn how_much(&mut self) -> Result<(), Reason> {
        let draft = &self.draft;
        let computed = draft.count || draft.total || !draft.aggregates.is_empty();
        let shown = !draft.mentions.is_empty() || draft.extreme.is_some() || draft.when;
        if !draft.how_much || computed || shown || self.waiting.verb.is_some() {
            return Ok(());
        }
        let ordered = !draft.order.is_empty() || draft.limit.is_some() || draft.alphabetical;
        let ranked = draft.most || draft.most_common.is_some();
        let fans_out = draft.other.is_some_and(|other| !other.join.to_parent);
        let amount = qualities::amount(self.database, draft.main)
            .filter(|_| !ordered && !ranked && !fans_out && self.is_about_past());
        self.draft.aggregates.push((Function::Sum, amount.ok_or(Reason::HowMuch)?));
        self.draft.implied_money = true;
        Ok(())
    }

    /// "The sum of the payments" is hardly meant to have those that failed.
    pub(super) fn money_of_all_states(&self) -> Result<(), Reason> {
        let stated = self.draft.conditions.iter().any(|condition| {
            self.column(condition.column)
                .is_some_and(|column| matches!(&*column.name, "status" | "state" | "stato"))
        });
        let doubtful = self.draft.implied_money && self.has_states(self.draft.main) && !stated;
        if doubtful { Err(Reason::HowMuch) } else { Ok(()) }
    }

    /// Whether a verb behind "how much" says that something happened. "How much were the donations?" does not.
    fn is_about_past(&self) -> bool {
        let Some(at) = self.items.iter().position(|item| item.role == Some(Role::HowMuch)) else {
            return false;
        };
        let ends_past = |text: &str| text.ends_with("e stato") || text.ends_with("e stata");
        let asked = self.items.get(at).map_or("", |item| item.text.as_str());
        let verb = self.items.get(at + 1).map_or("", |item| item.text.as_str());
        let first = verb.split(' ').next().unwrap_or_default();
        let is_past = match self.tongue {
            Tongue::English => ENGLISH_PAST.contains(&first),
            Tongue::Italian => ITALIAN_PAST.contains(&first) || ends_past(asked) || ends_past(verb),
        };
        let is_named = matches!(first, "was" | "were") && self.draft.main_at.is_some();
        is_past && !is_named
    }
}
