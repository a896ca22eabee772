//! Labels of missing arguments as the rules before revision 18 word them: a recorded run keeps its questions.

use super::common_label;
use crate::language::schema::{ArgumentField, ArgumentKind};
use crate::language::{Lang, detect, lexicon, text};

/// The label of an argument: its everyday name, with the schema's description if that is in the user's
/// language.
pub(super) fn label(field: &ArgumentField, lang: Lang) -> String {
    let common = common_label(field, lang);
    let description = first_sentence(&field.description);
    let written_in = detect(&description).map_or(lang, Lang::of);
    let mut label = match common {
        Some(common) if written_in == lang && !description.is_empty() && field.kind != ArgumentKind::Date => {
            format!("{common} ({description})")
        }
        Some(common) => common.to_owned(),
        None if !description.is_empty() && written_in == lang => description,
        None if !description.is_empty() => format!("{} ({description})", translated_name(field, lang)),
        None => translated_name(field, lang),
    };
    if let ArgumentKind::Enum(choices) = &field.kind {
        let values: Vec<String> = choices
            .iter()
            .take(8)
            .map(|c| c.value.as_str().map_or_else(|| c.value.to_string(), str::to_owned))
            .collect();
        label.push_str(&format!(" ({})", values.join(", ")));
    }
    label
}

/// The first sentence of a description, without format hints.
fn first_sentence(description: &str) -> String {
    let first = description.split(['.', ';', '\n', '(']).next().unwrap_or_default();
    let first = first.split(", YYYY").next().unwrap_or(first).replace("YYYY-MM-DD", "").replace("HH:MM", "");
    text::shorten(text::one_line(&first).trim_end_matches([',', ' ', ':']), 80).to_owned()
}

/// The words of the argument's name, each in the user's language if the dictionary has it.
fn translated_name(field: &ArgumentField, lang: Lang) -> String {
    let words: Vec<String> = text::name_words(&field.name)
        .iter()
        .map(|word| {
            if lang != Lang::It {
                return word.clone();
            }
            let known = text::features(word);
            let row = known.concepts.first().map(|c| lexicon::concept_words(*c)).unwrap_or_default();
            let italian = row.iter().find(|w| detect(w) == Some("it") || w.ends_with(['o', 'a', 'e', 'i']));
            italian.map_or_else(|| word.clone(), |w| (*w).to_owned())
        })
        .collect();
    words.join(" ")
}
