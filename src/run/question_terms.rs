//! How a question to a model is asked, as its subject requires.

use super::event::Subject;
use super::settings::CacheMode;
use super::state::RunState;

/// The terms of a model's call that follow from the subject of its question.
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
            // A document is deleted with all that was made of it, and a cache would keep its text.
            Subject::Summary { .. } => Some(CacheMode::Off),
            // What a request asks of the cache is about its own replies.
            _ if is_consultation => None,
            _ => of_request,
        };
        let timeout_ms = is_consultation.then(|| self.settings().consultations.timeout_ms);
        QuestionTerms { cache, voter: subject.voter(), timeout_ms }
    }
}
