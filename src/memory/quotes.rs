//! The quotations in a run's summaries: each sentence of a summary with the place in a document that it rests on.

use super::ledger::MAX_CLAIM_CHARS;
use crate::language::text;
use crate::run::{DocumentQuote, DocumentSpan, PartOutcome, RunState, SummaryWork};

/// Maximum number of quotes that a turn's origin holds.
const MAX_QUOTES: usize = 24;

/// The quotes of the run's summaries, in the order of their steps.
pub(super) fn summary_quotes(state: &RunState) -> Vec<DocumentQuote> {
    let of_steps = state.steps.iter().filter_map(|(number, step)| Some((*number, step.summary()?)));
    let of_calls = state.calls.values().filter_map(|call| Some((call.step, call.summary.as_deref()?)));
    of_steps.chain(of_calls).flat_map(|(number, work)| quotes_of(number, work)).take(MAX_QUOTES).collect()
}

fn quotes_of(step: u32, work: &SummaryWork) -> Vec<DocumentQuote> {
    let (Some(outline), Some(tree)) = (&work.outline, work.tree()) else { return Vec::new() };
    let Some(PartOutcome::Text { text, sources, .. }) = work.parts.get(&tree.parts()) else {
        return Vec::new();
    };
    let quote = |(sentence, number): (&str, usize)| {
        let source = sources.get(number.checked_sub(1)?)?;
        let (document, place) = outline.place_of(source.span)?;
        let span = DocumentSpan { document: document.id.to_string(), start: place.start, end: place.end };
        let claim = text::shorten_to_words(&text::one_line(sentence), MAX_CLAIM_CHARS);
        (!claim.is_empty()).then(|| DocumentQuote { step, claim, span, sha256: document.sha256.clone() })
    };
    cited_sentences(text).into_iter().filter_map(quote).collect()
}

/// The sentences of a summary with the number of the first source behind each: `It costs 12 euros. [3]`.
fn cited_sentences(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for (at, _) in line.match_indices('[') {
            let rest = &line[at + 1..];
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let Ok(number) = rest[..digits].parse() else { continue };
            if !rest[digits..].starts_with(']') || at < start {
                continue;
            }
            let sentence =
                line[start..at].trim_matches(|c: char| c.is_whitespace() || matches!(c, '-' | '*'));
            if sentence.contains(char::is_alphanumeric) {
                found.push((sentence, number));
            }
            start = at + digits + 2;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_cited_by_the_first_number_behind_them() {
        let text = "# Costs\n- It costs 12 euros. [3][4] It is blue [1].\nNobody says so. [x]\n";
        assert_eq!(cited_sentences(text), [("It costs 12 euros.", 3), ("It is blue", 1)]);
        assert!(cited_sentences("[1] [ [12 è").is_empty());
    }
}
