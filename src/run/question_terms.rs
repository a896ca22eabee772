//! The settings of a question to a model, by its subject.

use super::event::Subject;
use super::settings::CacheMode;
use super::state::RunState;

/// The settings of a model call that follow from the subject of its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionTerms {
    /// How it uses the cache of replies; `None` for what is configured.
    pub cache: Option<CacheMode>,
    /// In a vote, the place of the only model that is asked, from 0.
    pub voter: Option<usize>,
    /// The longest time until a reply, in milliseconds; `None` for the limits of the models.
    pub timeout_ms: Option<u64>,
}

impl RunState {
    /// How a question about `subject` is asked.
    pub fn question_terms(&self, subject: Subject) -> QuestionTerms {
        let of_request = self.queued.as_ref().and_then(|queued| queued.options.cache);
        let is_consultation = subject.consultation().is_some();
        let cache = match subject {
            // A deleted document is deleted with everything derived from it, and a cache would keep its text.
            Subject::Summary { .. } => Some(CacheMode::Off),
            // The cache mode of a request concerns its own replies only.
            _ if is_consultation => None,
            _ => of_request,
        };
        let timeout_ms = is_consultation.then(|| self.settings().consultations.timeout_ms);
        QuestionTerms { cache, voter: subject.voter(), timeout_ms }
    }
}
