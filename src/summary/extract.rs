//! Summaries without a model: the sentences that say most, word for word.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::blocks::{Block, BlockKind, blocks};
use super::facts::{QuotedFact, fitting};
use super::figures::is_function_word;
use super::stems::Stems;
use super::{ByteSpan, sentences};
use crate::language::words;

/// Maximum size of a sentence that is quoted, in bytes.
const MAX_SENTENCE: usize = 500;
/// The share of a sentence's words, in per cent, that earlier chosen sentences may have.
const MAX_KNOWN_PER_CENT: usize = 75;

/// A score that hardly any sentence has.
const BEST_SCORE: f64 = 4.0;

/// A sentence that may be quoted.
struct Candidate {
    span: ByteSpan,
    /// The stems of its words that carry meaning, each once.
    stems: Vec<u32>,
    words: usize,
    has_digits: bool,
    place: SentencePlace,
    /// The heading above it.
    heading: usize,
}

/// Where a sentence stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SentencePlace {
    /// The first one below a heading, or of the text.
    OpensSection,
    /// The first one of a paragraph, or an item of a list.
    OpensBlock,
    /// A row of a table.
    Row,
    /// Any other.
    Inside,
}

/// The sentences of the part of `text` at `part` that say most, as facts without claims of their own: at most as
/// many as fit into `bound` bytes, in their order. Takes time in proportion to the part.
pub fn extracted_facts(text: &str, part: ByteSpan, language: Option<&str>, bound: usize) -> Vec<QuotedFact> {
    let own = part.of(text).unwrap_or_default();
    let mut reader = CandidateReader::new(language);
    reader.read(own);
    let scores = reader.scores();
    let mut order: Vec<usize> = (0..reader.found.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    let (mut known, mut facts, mut used) = (HashSet::new(), Vec::new(), 0);
    for at in order {
        let candidate = &reader.found[at];
        let repeated = candidate.stems.iter().filter(|stem| known.contains(*stem)).count();
        let is_new = repeated * 100 <= candidate.stems.len() * MAX_KNOWN_PER_CENT || candidate.has_digits;
        let repeats = !is_new || (candidate.has_digits && repeated == candidate.stems.len() && repeated > 0);
        if repeats || used > bound {
            continue;
        }
        known.extend(candidate.stems.iter().copied());
        let fact =
            QuotedFact { claim: None, span: candidate.span.moved(part.start), weight: weight(scores[at]) };
        used += fact.size();
        facts.push(fact);
    }
    if facts.is_empty() {
        let span = opening(own).moved(part.start);
        facts.extend((!span.is_empty()).then_some(QuotedFact { claim: None, span, weight: 1 }));
    }
    fitting(facts, bound)
}

/// The beginning of a text that has no sentence to quote, such as a program, a table of numbers or a long line, so that
/// something is said of it.
fn opening(text: &str) -> ByteSpan {
    let whole = super::span::trimmed(text, ByteSpan::new(0, text.len()));
    let own = whole.of(text).unwrap_or_default();
    if !own.contains(char::is_alphanumeric) {
        return ByteSpan::new(0, 0);
    }
    let max = own.floor_char_boundary(MAX_SENTENCE);
    let end = match own.len() > max {
        true => own[..max].rfind(char::is_whitespace).unwrap_or(max),
        false => max,
    };
    super::span::trimmed(text, ByteSpan { end: whole.start + end as u64, ..whole })
}

/// A score as a weight: the same for equal scores of different parts, so that parts can be compared.
fn weight(score: f64) -> u32 {
    let thousandths = (score * 1_000.0 / BEST_SCORE).round().clamp(1.0, 1_000.0);
    // In range by the line above.
    thousandths as u32
}

/// Reads the sentences of a text.
struct CandidateReader {
    stems: Stems,
    numbers: HashMap<Rc<str>, u32>,
    /// In how many sentences each stem occurs.
    counts: Vec<u32>,
    /// The stems of each heading.
    headings: Vec<Vec<u32>>,
    found: Vec<Candidate>,
    /// The stems of the sentences so far: one that is repeated is neither counted nor quoted again.
    known: HashSet<Vec<u32>>,
    opens_section: bool,
}

impl CandidateReader {
    fn new(language: Option<&str>) -> Self {
        Self {
            stems: Stems::of(language),
            numbers: HashMap::new(),
            counts: Vec::new(),
            headings: vec![Vec::new()],
            found: Vec::new(),
            known: HashSet::new(),
            opens_section: true,
        }
    }

    fn read(&mut self, own: &str) {
        for block in blocks(own) {
            let text = block.span.of(own).unwrap_or_default();
            match block.kind {
                BlockKind::Heading(_) => {
                    let (stems, _) = self.stems_of(text);
                    self.headings.push(stems);
                    self.opens_section = true;
                }
                BlockKind::Code => {}
                BlockKind::Table => self.table(own, block),
                BlockKind::Paragraph | BlockKind::ListItem => {
                    for (at, sentence) in sentences(text).into_iter().enumerate() {
                        let opens = if self.opens_section {
                            SentencePlace::OpensSection
                        } else if at == 0 {
                            SentencePlace::OpensBlock
                        } else {
                            SentencePlace::Inside
                        };
                        self.add(own, sentence.moved(block.span.start), opens);
                    }
                }
            }
        }
    }

    /// The rows of a table below its first one, without the line between them.
    fn table(&mut self, own: &str, block: Block) {
        let mut at = block.span.start;
        for (row, line) in block.span.of(own).unwrap_or_default().split_inclusive('\n').enumerate() {
            let span = super::span::trimmed(own, ByteSpan { start: at, end: at + line.len() as u64 });
            at += line.len() as u64;
            if row > 0 && line.contains(char::is_alphanumeric) {
                self.add(own, span, SentencePlace::Row);
            }
        }
    }

    fn add(&mut self, own: &str, span: ByteSpan, place: SentencePlace) {
        let text = span.of(own).unwrap_or_default();
        let (stems, words) = self.stems_of(text);
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        if stems.is_empty() || span.len() > MAX_SENTENCE || !self.known.insert(stems.clone()) {
            return;
        }
        for stem in &stems {
            if let Some(count) = self.counts.get_mut(*stem as usize) {
                *count = count.saturating_add(1);
            }
        }
        self.opens_section = false;
        let heading = self.headings.len() - 1;
        self.found.push(Candidate { span, stems, words, has_digits, place, heading });
    }

    /// The stems of the words that carry meaning, each once, and the number of all words.
    fn stems_of(&mut self, text: &str) -> (Vec<u32>, usize) {
        let (mut found, mut all) = (Vec::new(), 0);
        for word in words(text) {
            all += 1;
            if word.len() < 3 || is_function_word(&word.to_lowercase()) {
                continue;
            }
            let stem = self.stems.stem(word);
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry(stem).or_insert(next);
            if number == next {
                self.counts.push(0);
            }
            if !found.contains(&number) {
                found.push(number);
            }
        }
        (found, all)
    }

    /// How much each sentence says: the frequency of its words, its place, and what its heading names.
    fn scores(&self) -> Vec<f64> {
        let max = self.counts.iter().max().copied().unwrap_or(1).max(1);
        let scale = f64::from(max).ln_1p();
        let frequency =
            |stem: &u32| f64::from(self.counts.get(*stem as usize).copied().unwrap_or(0)).ln_1p() / scale;
        let score = |candidate: &Candidate| {
            let sum: f64 = candidate.stems.iter().map(frequency).sum();
            let share = sum / (candidate.stems.len() as f64).sqrt().max(2.0);
            let heading = &self.headings[candidate.heading];
            let named = candidate.stems.iter().filter(|stem| heading.contains(stem)).count().min(2);
            let place = match candidate.place {
                SentencePlace::OpensSection => 0.35,
                SentencePlace::OpensBlock => 0.15,
                SentencePlace::Row | SentencePlace::Inside => 0.0,
            };
            let figures = if candidate.has_digits { 0.6 } else { 0.0 };
            let length = match candidate.words {
                0..=3 => 0.4,
                4..=45 => 1.0,
                _ => 0.8,
            };
            (share + place + figures + 0.15 * named as f64) * length
        };
        self.found.iter().map(score).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quotes<'t>(text: &'t str, language: &str, bound: usize) -> Vec<&'t str> {
        let facts = extracted_facts(text, ByteSpan::new(0, text.len()), Some(language), bound);
        facts.iter().map(|fact| fact.span.of(text).unwrap()).collect()
    }

    #[test]
    fn sentences_that_say_most_are_quoted_word_for_word() {
        let text = "# The new bridge\n\nThe city council approved the new bridge on 12 March 2026. It rained that day. \
                    People came and went.\n\n## Costs\n\nThe bridge costs 4.2 million euros, of which the state pays half. \
                    Nobody said much about it.\n\n```\nprint(\"bridge 99\")\n```\n";
        assert_eq!(
            quotes(text, "en", 210),
            [
                "The city council approved the new bridge on 12 March 2026.",
                "The bridge costs 4.2 million euros, of which the state pays half.",
            ]
        );
    }

    #[test]
    fn of_a_text_without_sentences_the_beginning_is_quoted() {
        for text in ["TODO", "| a | b |\n|---|---|\n| 1 | 2 |", "```\nfn main() {}\n```"] {
            assert_eq!(quotes(text, "en", 1_000), [text]);
        }
        let line = "città ".repeat(400);
        let [quoted] = quotes(&line, "it", 1_000)[..] else { panic!("one quotation") };
        assert!(quoted.len() <= MAX_SENTENCE && quoted.ends_with("città"), "{quoted}");
        assert_eq!(quotes(&"é".repeat(400), "en", 1_000), ["é".repeat(250)]);
        assert!(quotes("\n---\n*** ", "en", 1_000).is_empty());
    }

    #[test]
    fn a_repeated_sentence_is_quoted_once() {
        let text = "Il ponte costa 4 milioni di euro.\n\n".repeat(20);
        assert_eq!(quotes(&text, "it", 1_000), ["Il ponte costa 4 milioni di euro."]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn quotations_are_in_the_text_and_fit(text in "([A-Zà-ù][a-z0-9à€ ]{0,30}[.!?\n|#-] ?){0,40}|\\PC{0,600}") {
            let facts = extracted_facts(&text, ByteSpan::new(0, text.len()), Some("de"), 900);
            prop_assert!(facts.iter().map(QuotedFact::size).sum::<usize>() <= 900);
            prop_assert!(facts.iter().all(|fact| !fact.span.of(&text).unwrap().trim().is_empty()));
        }
    }
}
