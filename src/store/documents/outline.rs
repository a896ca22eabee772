//! The outline of a document from its beginning: its first heading and its language.

use crate::invisible::one_line;
use crate::language;
use crate::run::DocumentMedia;

/// How much of a document is looked at, in bytes.
pub(super) const HEAD_BYTES: usize = 16 * 1024;
/// The longest heading, in characters.
const MAX_HEADING_CHARS: usize = 120;
/// How much text is enough to tell its language, in characters.
const LANGUAGE_CHARS: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// Its first heading, or else its first line that is not blank, cut.
    pub(super) heading: Option<String>,
    /// Its language, ISO 639-1.
    pub(super) language: Option<&'static str>,
}

impl Outline {
    /// Reads the beginning of a document.
    pub(super) fn of(media: DocumentMedia, head: &str) -> Self {
        let head = head.strip_prefix('\u{feff}').unwrap_or(head);
        let heading = match media {
            DocumentMedia::Markdown => first_heading(head).or_else(|| first_line(head)),
            DocumentMedia::Text => first_line(head),
        };
        let heading: Option<String> =
            heading.map(|line| one_line(line).chars().take(MAX_HEADING_CHARS).collect());
        let sample: String = head.chars().take(LANGUAGE_CHARS).collect();
        Self { heading, language: language::detect(&sample) }
    }
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The text of the first heading of Markdown (`# …` to `###### …`) outside of code blocks.
fn first_heading(text: &str) -> Option<&str> {
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        match (fence, mark) {
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, Some(mark)) => fence = Some(mark),
            (None, None) => {
                let marks = line.chars().take_while(|c| *c == '#').count();
                let rest = line.get(marks..).unwrap_or_default();
                let title = rest.trim().trim_end_matches('#').trim_end();
                if (1..=6).contains(&marks) && rest.starts_with([' ', '\t']) && !title.is_empty() {
                    return Some(title);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_is_the_first_one_outside_of_code_or_the_first_line() {
        use DocumentMedia::{Markdown, Text};
        for (media, text, expected) in [
            (Markdown, "intro\n\n## The *plan* ##\n# Later", Some("The *plan*")),
            (Markdown, "```sh\n# no heading\n```\n# Yes", Some("Yes")),
            (Markdown, "~~~\n```\n# no\n~~~\n#none\n\n####### none\n# Real", Some("Real")),
            (Markdown, "\u{feff}#hash\n", Some("#hash")),
            (Text, "\n\n  Annual report  \n# x", Some("Annual report")),
            (Text, " \n\t\n", None),
        ] {
            assert_eq!(Outline::of(media, text).heading.as_deref(), expected, "{text:?}");
        }
        let long = Outline::of(Text, &"\u{202e}è ".repeat(500)).heading.unwrap();
        assert!(long.chars().count() <= MAX_HEADING_CHARS && !long.contains('\u{202e}'), "{long}");
    }

    #[test]
    fn language_is_detected_from_the_beginning() {
        let of = |text| Outline::of(DocumentMedia::Text, text).language;
        assert_eq!(
            of("Il fatturato dell'anno è cresciuto del dodici per cento, più che nel 2024."),
            Some("it")
        );
        assert_eq!(of("The revenue of the year has grown by twelve percent, more than in 2024."), Some("en"));
    }
}
