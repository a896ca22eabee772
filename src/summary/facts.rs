//! Facts of a document: claims with the words that they rest on.

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::evidence::SourceFigures;
use super::{ByteSpan, sentences};
use crate::language::words;

/// Maximum size of a quotation, in bytes.
const MAX_QUOTE: usize = 600;
/// The fewest letters and digits of a quotation.
const MIN_QUOTE: usize = 8;
/// Maximum size of a claim, in bytes.
const MAX_CLAIM: usize = 400;
/// What a fact takes beside its texts, in bytes, where its size is counted.
const FRAME: usize = 40;
/// What a quotation has around it in a text, in bytes: the mark of an item and its number.
const QUOTATION_FRAME: usize = 10;

/// A fact of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedFact {
    /// The claim in the words of a model. Absent where it is what the document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Where the document says so.
    pub span: ByteSpan,
    /// How important it is among those of its part, from 1,000 down.
    pub weight: u32,
}

impl QuotedFact {
    /// Its size where it is shown to a model, in bytes.
    pub fn size(&self) -> usize {
        self.claim.as_ref().map_or(0, String::len) + self.span.len() + FRAME
    }

    /// Returns the claim on one line.
    pub fn said(&self, text: &str) -> String {
        let quote = || crate::language::text::one_line(self.span.of(text).unwrap_or_default());
        self.claim.clone().unwrap_or_else(quote)
    }
}

/// A fact as a model reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReportedFact {
    /// The claim.
    pub claim: String,
    /// The words of the text that say so.
    pub quote: String,
}

/// The facts among those that a model reported of the part of `text` at `part`, the most important first: each with its
/// quotation found in that part. A claim with a number, date or name that its quotation does not have is
/// left out. Returns how many were dropped, because their quotations do not occur or were too long.
pub fn located_facts(
    text: &str,
    part: ByteSpan,
    reported: &[ReportedFact],
    language: Option<&str>,
) -> (Vec<QuotedFact>, u32) {
    let own = part.of(text).unwrap_or_default();
    let plain = PlainText::of(own);
    let mut facts: Vec<QuotedFact> = Vec::new();
    let mut dropped = 0;
    for (place, fact) in reported.iter().enumerate() {
        let Some(span) = plain.find(&fact.quote).filter(|span| span.len() <= MAX_QUOTE) else {
            dropped += 1;
            continue;
        };
        let span = span.moved(part.start);
        if facts.iter().any(|known| known.span == span) {
            continue;
        }
        let claim = supported_claim(text, span, fact.claim.trim(), language);
        let weight =
            1_000_u32.saturating_sub(u32::try_from(place).unwrap_or(u32::MAX).saturating_mul(20)).max(1);
        facts.push(QuotedFact { claim, span, weight });
    }
    (facts, dropped)
}

/// The claim, unless it says more than the quotation.
fn supported_claim(text: &str, span: ByteSpan, claim: &str, language: Option<&str>) -> Option<String> {
    if claim.is_empty() || claim.len() > MAX_CLAIM {
        return None;
    }
    let spoken = crate::language::detect(claim).or(language);
    let quote = span.of(text).unwrap_or_default();
    let missing = SourceFigures::of_text(quote, language).missing(0, claim, spoken);
    missing.is_empty().then(|| crate::language::text::one_line(claim))
}

/// As many facts as fit into `bound` bytes, the most important first; in their order in the document. The first of all
/// is kept whatever its size, which is bounded by itself.
pub fn fitting(facts: Vec<QuotedFact>, bound: usize) -> Vec<QuotedFact> {
    fitting_by(facts, bound, QuotedFact::size)
}

/// As many facts as can be quoted in a text of `bound` bytes, chosen and ordered like [`fitting`].
pub fn quotable(facts: Vec<QuotedFact>, bound: usize) -> Vec<QuotedFact> {
    fitting_by(facts, bound, |fact| fact.span.len() + QUOTATION_FRAME)
}

/// Without the facts that say the same words as another one, of which the most important stays: a sentence below many
/// headings is told once.
pub fn distinct(mut facts: Vec<QuotedFact>, text: &str) -> Vec<QuotedFact> {
    sort_by_importance(&mut facts);
    let mut known = HashSet::new();
    facts.retain(|fact| {
        let said = fact.said(text);
        known.insert(words(&said).map(str::to_lowercase).collect::<Vec<_>>())
    });
    facts.sort_by_key(|fact| fact.span);
    facts
}

fn sort_by_importance(facts: &mut [QuotedFact]) {
    facts.sort_by_key(|fact| (Reverse(fact.weight), fact.span.start));
}

fn fitting_by(
    mut facts: Vec<QuotedFact>,
    bound: usize,
    size: impl Fn(&QuotedFact) -> usize,
) -> Vec<QuotedFact> {
    sort_by_importance(&mut facts);
    let mut used = 0;
    let mut kept = Vec::new();
    for fact in facts {
        if kept.is_empty() || used + size(&fact) <= bound {
            used += size(&fact);
            kept.push(fact);
        }
    }
    kept.sort_by_key(|fact| fact.span);
    kept
}

/// The sentences around a place of a text: what is read again before a fact is used.
pub fn sentences_around(text: &str, span: ByteSpan) -> ByteSpan {
    // A sentence is bounded, and so is what is searched for its ends.
    let start = usize::try_from(span.start).unwrap_or(usize::MAX).min(text.len());
    let end = usize::try_from(span.end).unwrap_or(usize::MAX).min(text.len());
    let from = text.floor_char_boundary(start.saturating_sub(MAX_QUOTE));
    let to = text.ceil_char_boundary(end.saturating_add(MAX_QUOTE).min(text.len()));
    let Some(around) = text.get(from..to) else { return span };
    let touching = sentences(around).into_iter().map(|sentence| sentence.moved(from as u64));
    let touching: Vec<ByteSpan> =
        touching.filter(|sentence| sentence.start < span.end && sentence.end > span.start).collect();
    match (touching.first(), touching.last()) {
        (Some(first), Some(last)) => {
            ByteSpan { start: first.start.min(span.start), end: last.end.max(span.end) }
        }
        _ => span,
    }
}

/// A text with single blanks and plain quotation marks, in lower case, and where each of its characters stands.
struct PlainText<'t> {
    own: &'t str,
    plain: String,
    /// For each byte of `plain`, the byte of `own` where its character begins; at the end, the length.
    places: Vec<usize>,
}

impl<'t> PlainText<'t> {
    fn of(own: &'t str) -> Self {
        let mut made =
            Self { own, plain: String::with_capacity(own.len()), places: Vec::with_capacity(own.len()) };
        for (at, c) in own.char_indices() {
            made.push(at, c);
        }
        made.places.push(own.len());
        made
    }

    fn push(&mut self, at: usize, c: char) {
        let before = self.plain.len();
        match c {
            c if c.is_whitespace() => {
                if !self.plain.ends_with(' ') {
                    self.plain.push(' ');
                }
            }
            '’' | '‘' | '`' => self.plain.push('\''),
            '“' | '”' | '«' | '»' | '„' => self.plain.push('"'),
            '–' | '—' | '‑' => self.plain.push('-'),
            // Marks of emphasis.
            '*' => {}
            c => self.plain.extend(c.to_lowercase()),
        }
        self.places.resize(self.places.len() + self.plain.len() - before, at);
    }

    /// Where a quotation stands, whatever its blanks, case and quotation marks.
    fn find(&self, quote: &str) -> Option<ByteSpan> {
        let wanted = PlainText::of(quote.trim().trim_matches(['"', '“', '”', '«', '»', '…'])).plain;
        let wanted = wanted.trim().trim_end_matches("...");
        // A few letters stand anywhere.
        if wanted.chars().filter(|c| c.is_alphanumeric()).count() < MIN_QUOTE {
            return None;
        }
        let at = self.plain.find(wanted)?;
        let (start, last) = (*self.places.get(at)?, *self.places.get(at + wanted.len() - 1)?);
        let end = last + self.own.get(last..)?.chars().next().map_or(0, char::len_utf8);
        Some(ByteSpan::new(start, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reported(claim: &str, quote: &str) -> ReportedFact {
        ReportedFact { claim: claim.to_owned(), quote: quote.to_owned() }
    }

    #[test]
    fn quotations_are_found_and_claims_that_say_more_are_replaced() {
        let text = "Before. The “rent”\nof the hall rose to **1,200 euros** in March.";
        let part = ByteSpan::new(8, text.len());
        let (facts, dropped) = located_facts(
            text,
            part,
            &[
                reported("Rent is 1,200 euros.", "the \"rent\" of the hall rose to 1,200 EUROS"),
                reported("Rent rose by 300 euros.", "rose to 1,200 euros in March"),
                reported("Nothing.", "it was never said"),
                reported("Before.", "Before."),
                reported("The.", "The"),
            ],
            Some("en"),
        );
        let shown: Vec<_> = facts.iter().map(|fact| (fact.said(text), fact.span.of(text).unwrap())).collect();
        assert_eq!(
            shown,
            [
                ("Rent is 1,200 euros.".to_owned(), "The “rent”\nof the hall rose to **1,200 euros"),
                ("rose to **1,200 euros** in March".to_owned(), "rose to **1,200 euros** in March"),
            ]
        );
        assert_eq!(dropped, 3);
    }

    #[test]
    fn sentences_around_a_place_are_whole() {
        let text = "One. Two and three. Four.";
        let around = |start, end| sentences_around(text, ByteSpan::new(start, end)).of(text).unwrap();
        assert_eq!(
            (around(9, 12), around(2, 7), around(20, 25)),
            ("Two and three.", "One. Two and three.", "Four.")
        );
    }

    #[test]
    fn facts_that_say_the_same_are_told_once() {
        let text = "All rights reserved. Lund sold 12 lamps. All rights  reserved. ALL RIGHTS RESERVED.";
        let fact = |start, end, weight| QuotedFact { claim: None, span: ByteSpan::new(start, end), weight };
        let facts = vec![fact(0, 20, 5), fact(21, 40, 3), fact(41, 62, 9), fact(63, 83, 9)];
        assert_eq!(distinct(facts.clone(), text), [facts[1].clone(), facts[2].clone()]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn any_part_of_a_text_is_found_in_it(text in "\\PC{1,80}", from in 0_usize..80, len in 1_usize..40) {
            let start = text.floor_char_boundary(from);
            let quote = &text[start..text.ceil_char_boundary((start + len).min(text.len()))];
            if let Some(span) = PlainText::of(&text).find(quote) {
                let plain = |text: &str| PlainText::of(text).plain;
                let found = plain(span.of(&text).unwrap());
                let wanted = plain(quote.trim().trim_matches(['"', '“', '”', '«', '»', '…']));
                prop_assert_eq!(found.trim(), wanted.trim().trim_end_matches("..."));
            }
        }

        #[test]
        fn kept_facts_fit(sizes in proptest::collection::vec(0_usize..500, 0..30), bound in 600_usize..3_000) {
            let fact = |(at, size): (usize, &usize)| QuotedFact {
                claim: Some("x".repeat(*size)),
                span: ByteSpan::new(at * 10, at * 10 + 5),
                weight: u32::try_from(size % 7).unwrap(),
            };
            let facts: Vec<_> = sizes.iter().enumerate().map(fact).collect();
            let kept = fitting(facts.clone(), bound);
            prop_assert!(kept.iter().map(QuotedFact::size).sum::<usize>() <= bound);
            prop_assert_eq!(kept.is_empty(), facts.is_empty());
            prop_assert!(kept.windows(2).all(|two| two[0].span < two[1].span));
        }
    }
}
