//! Replies to questions: the step that goes on with what was asked for.

use super::clauses::{self, Clause};
use super::drafts::StepDraft;
use super::plan::OfflinePlanner;
use super::prompt::OpenQuestion;
use super::routing::{Hit, ToolPlace};
use super::slots;
use super::text::{self, Token};
use super::weights::STRONG;

impl OfflinePlanner {
    /// The step that continues after the pending question, if the clause answers it.
    pub fn draft_for_reply(&self, clause: &Clause, hit: Option<Hit>) -> Option<StepDraft> {
        let pending = self.pending.as_ref().filter(|_| !denies_value(&clause.text))?;
        let scene = self.index.scenes.iter().position(|s| s.scene == pending.scene)?;
        let tool = pending.question.tool.as_deref().and_then(|t| self.index.named(&pending.scene, t));
        let target = tool
            .or_else(|| {
                self.index.best(&pending.purpose, self.today(), Some(scene)).filter(|h| h.scene == scene)
            })
            .or_else(|| {
                self.index.scenes[scene].tools.first().map(|_| Hit::certain(ToolPlace { scene, tool: 0 }))
            })?;
        let same = hit.is_some_and(|h| h.place() == target.place());
        if hit.is_some_and(|h| h.score >= STRONG && !same) || self.is_question(&clause.text) && !same {
            return None;
        }
        let fields = self.index.fields(target);
        let missing: Vec<_> = fields
            .iter()
            .filter(|f| {
                pending.question.missing.is_empty() && f.required
                    || pending.question.missing.contains(&f.name)
            })
            .cloned()
            .collect();
        let filled = slots::fill(&missing, &clause.text, &self.now, &[], true);
        if !same && !missing.is_empty() && filled.values.is_empty() && hit.is_some() {
            return None;
        }
        // A reply that is complete by itself needs no words of the pending step.
        let purpose = if same && self.filled(target, &clause.text).missing(fields).is_empty() {
            clause.text.clone()
        } else {
            format!("{} {}", pending.purpose.trim_end_matches(['.', '?', '!', ' ']), clause.text)
        };
        let unclear = self.was_unclear(pending, target);
        Some(StepDraft { hit: target, purpose, link: clause.link, refers_back: false, unclear })
    }

    /// Whether the write of a pending question was not clearly requested.
    fn was_unclear(&self, pending: &OpenQuestion, hit: Hit) -> bool {
        let clauses = clauses::split(&pending.request, self);
        let own = clauses.iter().find(|c| pending.purpose.contains(c.text.trim_end_matches(['?', '.', '!'])));
        own.is_some_and(|clause| self.is_unclear(clause.act, hit))
    }
}

/// Whether a reply says which value is not meant: "not 120", "non il 120". In "no, 131", the value is meant.
fn denies_value(reply: &str) -> bool {
    let tokens = text::tokens(reply);
    let first = tokens.iter().position(|token| token.word);
    let denies = |token: &Token| token.is(&["not", "non", "nicht", "pas", "kein", "keine", "no"]);
    let goes_on = |at: usize| tokens.get(at + 1).is_some_and(|next| next.word);
    first.is_some_and(|at| denies(&tokens[at]) && goes_on(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_that_is_denied_answers_no_question() {
        for said in ["not 120", "Non il 120", "nicht 120", "pas le 120", "no la 120"] {
            assert!(denies_value(said), "{said}");
        }
        for said in ["120", "No, 131", "the 120", "nein, 131", "no", ""] {
            assert!(!denies_value(said), "{said}");
        }
    }
}
