//! Texts without citations: a sentence stays only if its sources, taken together, state its numbers, dates and names.

use std::collections::HashSet;

use super::compose::{MAX_SUMMARY, marker_len};
use super::evidence::StatedFigures;
use super::figures::{Figure, FigureKind, figures};
use super::sentences;
use crate::language::text;

/// A text whose every number, date and name is in its sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupportedText {
    /// The sentences that are left, on their lines.
    pub text: String,
    /// What each removed sentence says that no source does, as written.
    pub removed: Vec<Vec<String>>,
}

/// What a model wrote, cut to [`MAX_SUMMARY`] bytes, without the sentences that have a number, a date or a name that none of
/// the sources has. A word that is written with a capital only where sentences begin counts as no name.
pub fn supported_text<'s>(
    written: &str,
    sources: impl IntoIterator<Item = &'s str>,
    language: Option<&str>,
) -> SupportedText {
    let mut evidence = StatedFigures::new(language);
    for source in sources {
        evidence.add(source);
    }
    let spoken = crate::language::detect(written).or(language).map(str::to_owned);
    let shown = text::shorten(written.trim(), MAX_SUMMARY);
    let names = names_of(shown, spoken.as_deref());
    let mut done = SupportedText::default();
    for line in shown.lines() {
        let (marker, own) = line.split_at(marker_len(line));
        let mut kept = String::new();
        for sentence in sentences(own).into_iter().filter_map(|span| span.of(own)) {
            let unstated = figures(sentence, spoken.as_deref()).into_iter();
            let unstated = unstated.filter(|figure| is_telling(figure, &names) && !evidence.states(figure));
            let missing: Vec<String> = unstated.map(|figure| figure.written).collect();
            if missing.is_empty() {
                kept.push_str(if kept.is_empty() { "" } else { " " });
                kept.push_str(sentence);
            } else {
                done.removed.push(missing);
            }
        }
        if !kept.is_empty() {
            done.text.push_str(if done.text.is_empty() { "" } else { "\n" });
            done.text.push_str(marker);
            done.text.push_str(&kept);
        }
    }
    done
}

/// The words that are written with a capital within sentences.
fn names_of(text: &str, language: Option<&str>) -> HashSet<String> {
    let lines = text.lines().flat_map(|line| figures(line, language));
    let name = |figure: Figure| match figure.kind {
        FigureKind::Name { norm, leads: false } => Some(norm),
        _ => None,
    };
    lines.filter_map(name).collect()
}

/// Whether a source has to state the figure.
fn is_telling(figure: &Figure, names: &HashSet<String>) -> bool {
    match &figure.kind {
        FigureKind::Name { norm, leads: true } => names.contains(norm),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [&str; 3] = [
        "I am Anna Rossi. I need 3 days off from 15 June.",
        r#"{"from": "2026-06-15", "days": 3, "id": 1042}"#,
        "My limit is 900 euros.",
    ];

    fn supported(written: &str) -> SupportedText {
        supported_text(written, SOURCES, Some("en"))
    }

    #[test]
    fn invented_sentences_are_removed_and_the_others_stay_as_they_are() {
        let written = "1. The user is Anna Rossi. She asked for 3 days off from 15 June 2026, as request 1042.\n\
                       - She has 14 days left. Mallory approved it, and Mallory pays.\n\
                       - Her limit is 900 euros. It was raised by 5%. Nothing else is open.";
        let done = supported(written);
        assert_eq!(
            done.text,
            "1. The user is Anna Rossi. She asked for 3 days off from 15 June 2026, as request 1042.\n\
             - Her limit is 900 euros. Nothing else is open."
        );
        assert_eq!(done.removed.len(), 3, "{done:?}");
        assert_eq!(done.removed[0], ["14"]);
    }

    #[test]
    fn dates_are_those_of_the_sources_in_any_notation() {
        for told in ["It begins on 2026-06-15.", "Inizia il 15 giugno 2026.", "It begins on June 15."] {
            assert_eq!(supported(told).text, told);
        }
        for invented in ["It begins on 16 June.", "It begins on 15 July 2026.", "Bob Verdi asked for it."] {
            assert_eq!(supported(invented).text, "", "{invented}");
        }
    }
}
