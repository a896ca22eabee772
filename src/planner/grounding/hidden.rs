//! Invisible characters in the arguments of a model, such as those without width: a value that differs from what was said
//! by them alone is written as it was said, and any other one has a source only as it stands.

use serde_json::Value;

use super::{GroundingSources, names};
use crate::invisible::{is_invisible, without_invisible};

/// Maximum number of words with invisible characters that are looked up; any further one stays as it is.
const MAX_WORDS: usize = 64;

/// Returns whether a string of the value, or a name in it, has invisible characters.
pub fn has_invisible(value: &Value) -> bool {
    match value {
        Value::String(text) => has_invisible_text(text),
        Value::Array(list) => list.iter().any(has_invisible),
        Value::Object(map) => map.iter().any(|(name, one)| has_invisible_text(name) || has_invisible(one)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(super) fn has_invisible_text(text: &str) -> bool {
    // Joiners of emoji are visible. Nearly all texts have none of these characters.
    text.chars().any(|c| is_invisible(c) && !c.is_whitespace()) && without_invisible(text) != text
}

/// The arguments with each word as a source has it, where the model's differs from that by invisible characters alone.
pub fn as_written(mut arguments: Value, sources: &GroundingSources) -> Value {
    let texts: Vec<String> = sources.texts().into_iter().map(str::to_lowercase).collect();
    let mut left = MAX_WORDS;
    rewrite(&mut arguments, &texts, &mut left);
    arguments
}

/// Returns whether a source has the text exactly, with its invisible characters.
pub(super) fn is_written(text: &str, sources: &GroundingSources) -> bool {
    sources.texts().into_iter().any(|source| source.contains(text))
}

fn rewrite(value: &mut Value, texts: &[String], left: &mut usize) {
    match value {
        Value::String(text) if has_invisible_text(text) => {
            *text = text.split_inclusive(char::is_whitespace).map(|word| as_in(texts, word, left)).collect();
        }
        Value::Array(list) => list.iter_mut().for_each(|one| rewrite(one, texts, left)),
        Value::Object(map) => map.values_mut().for_each(|one| rewrite(one, texts, left)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A word without its invisible characters, if the texts, which are in lower case, have it only so.
fn as_in(texts: &[String], word: &str, left: &mut usize) -> String {
    let visible = without_invisible(word);
    if visible == word || *left == 0 {
        return word.to_owned();
    }
    *left -= 1;
    let lower = visible.to_lowercase();
    let said = lower.trim_matches(|c: char| !c.is_alphanumeric());
    let exact = word.trim().to_lowercase();
    let is_exact = texts.iter().any(|text| text.contains(&exact));
    match !is_exact && texts.iter().any(|text| names::contains_whole_words(text, said)) {
        true => visible,
        false => word.to_owned(),
    }
}
