//! The words of requests: their language, the days, times and numbers that they mention, and whether they set a task on
//! a text; and questions for values that they lack.
//!
//! **Invariant:** pure, and knows nothing of models, plans or scenes.

mod actions;
pub(crate) mod calendar_words;
pub(crate) mod date_expression;
mod date_expression_reader;
pub(crate) mod dates;
mod denials;
mod detection;
pub(crate) mod entities;
pub(crate) mod figures;
pub(crate) mod function_words;
pub(crate) mod holidays;
pub(crate) mod lexicon;
pub(crate) mod number_words;
pub(crate) mod numbers;
pub(crate) mod pattern;
pub(crate) mod questions;
mod relative_dates;
pub(crate) mod schema;
pub(crate) mod statements;
pub(crate) mod text;
pub(crate) mod text_task;
pub(crate) mod times;

use serde_json::Value;

pub(crate) use actions::{asked_verb, asks_to_be_told, names_action, possible_verbs};
pub(crate) use denials::{ActReport, denies};
pub use detection::{detect, of_request};
pub use number_words::number_word;
pub(crate) use relative_dates::day_of_several_words;
pub(crate) use text::{first_sentence, fold, lower_words, words};

/// The days that a text mentions, as of `now`.
pub fn mentioned_days(text: &str, now: &jiff::Zoned) -> Vec<jiff::civil::Date> {
    entities::Entities::in_text(text, now.date()).days.iter().map(|day| day.date).collect()
}

/// Asks the user for missing arguments, in the user's language if it is supported. `missing` names
/// properties of the JSON Schema `parameters`. `before_18` words it as the rules before revision 18 do.
pub fn question_for_missing_arguments(
    parameters: &Value,
    missing: &[&str],
    language: &str,
    before_18: bool,
) -> String {
    let fields = schema::fields(parameters);
    let missing: Vec<_> = fields.iter().filter(|f| missing.contains(&f.name.as_str())).collect();
    let ask = if before_18 { questions::ask_for_missing_before_18 } else { questions::ask_for_missing };
    ask(&missing, Lang::of(language))
}

/// Returns whether a request or the chatbot's `instructions` set a task on a text: translate, correct, summarise or
/// name it, … The content of that text is then not a request.
pub fn is_background_task(request: &str, instructions: &str) -> bool {
    text_task::detect_text_task(request, instructions).is_some()
}

/// The languages of built-in sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lang {
    It,
    En,
    Fr,
    De,
    Es,
}

impl Lang {
    /// By its ISO 639-1 code; English for unsupported languages.
    pub fn of(code: &str) -> Self {
        match code.get(..2).unwrap_or_default() {
            "it" => Lang::It,
            "fr" => Lang::Fr,
            "de" => Lang::De,
            "es" => Lang::Es,
            _ => Lang::En,
        }
    }

    /// The text in this language; the order is Italian, English, French, German, Spanish.
    pub fn pick(self, texts: [&str; 5]) -> &str {
        match self {
            Lang::It => texts[0],
            Lang::En => texts[1],
            Lang::Fr => texts[2],
            Lang::De => texts[3],
            Lang::Es => texts[4],
        }
    }
}
