//! A model's summary of turns is kept only as far as the turns say so.

use super::SummaryJob;
use super::prompt::turn_line;
use crate::summary::{SupportedText, supported_text};

impl SummaryJob {
    /// The summary that a model wrote, without the sentences that have a number, a date or a name that neither the turns nor
    /// the summary so far have. `language` is the user's, as ISO 639-1, if known.
    pub fn verified(&self, written: &str, language: Option<&str>) -> SupportedText {
        let turns: Vec<String> = self.turns.iter().map(turn_line).collect();
        let sources = turns.iter().map(String::as_str).chain(self.summary.as_deref());
        supported_text(written, sources, language)
    }
}
