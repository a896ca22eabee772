//! Summaries of documents of our own making with known facts: flat beside hierarchical, with the offline model and with a
//! scripted model that makes mistakes. `cargo test --lib summary::tests -- --nocapture` prints the table.

use std::collections::HashSet;
use std::time::Instant;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Sample {
    name: String,
    language: String,
    facts: Vec<String>,
    text: String,
}

fn samples() -> Vec<Sample> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/summary/documents.yaml");
    serde_norway::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The whole of a summary, and what it took.
#[derive(Default)]
struct Told {
    text: String,
    questions: usize,
    tokens: usize,
}

impl Told {
    fn asked(&mut self, bytes: usize) {
        self.questions += 1;
        self.tokens += bytes * 2 / 7;
    }
}

/// What answers the questions of a summary.
trait Summariser {
    fn report(&self, text: &str, part: ByteSpan, language: &str) -> Vec<QuotedFact>;
    fn write(&self, text: &str, facts: &[QuotedFact], sources: &[CitedText], language: &str) -> String;
}

fn by_tree(summariser: &dyn Summariser, text: &str, language: &str, chunk_bytes: usize) -> Told {
    let mut told = Told::default();
    let parts: Vec<ByteSpan> = chunks(text, chunk_bytes).into_iter().map(|chunk| chunk.span).collect();
    let tree = SummaryTree::new(u32::try_from(parts.len()).unwrap(), GROUP);
    let mut facts: Vec<Vec<QuotedFact>> = vec![Vec::new()];
    for number in 1..=tree.parts() {
        let below =
            |of: std::ops::Range<u32>| of.flat_map(|part| facts[part as usize].clone()).collect::<Vec<_>>();
        let done = match tree.part(number).unwrap() {
            SummaryPart::Chunk(at) => {
                told.asked(parts[at as usize].len());
                fitting(summariser.report(text, parts[at as usize], language), PART_BYTES)
            }
            SummaryPart::RollUp(of) => {
                let all = below(of);
                told.asked(all.iter().map(QuotedFact::size).sum());
                fitting(all, PART_BYTES)
            }
            SummaryPart::Whole(of) => {
                let all = below(of);
                told.asked(all.iter().map(QuotedFact::size).sum());
                let sources: Vec<CitedText> = all.iter().map(|fact| source(text, fact)).collect();
                told.text = summariser.write(text, &all, &sources, language);
                Vec::new()
            }
        };
        assert!(done.iter().map(QuotedFact::size).sum::<usize>() <= PART_BYTES);
        facts.push(done);
    }
    told
}

fn source(text: &str, fact: &QuotedFact) -> CitedText {
    let shown = sentences_around(text, fact.span).of(text).unwrap();
    CitedText { text: shown.to_owned(), around: Default::default() }
}

/// The offline model.
struct Rules;

impl Summariser for Rules {
    fn report(&self, text: &str, part: ByteSpan, language: &str) -> Vec<QuotedFact> {
        extracted_facts(text, part, Some(language), PART_BYTES)
    }

    fn write(&self, text: &str, facts: &[QuotedFact], sources: &[CitedText], _: &str) -> String {
        let kept = quotable(facts.to_vec(), quoted_bytes(text.len() as u64));
        let is_kept = |fact: &QuotedFact| kept.iter().any(|known| known.span == fact.span);
        let sources: Vec<CitedText> = facts
            .iter()
            .zip(sources)
            .filter(|(fact, _)| is_kept(fact))
            .map(|(_, source)| source.clone())
            .collect();
        quoted_text(&sources).text
    }
}

/// A model that words facts anew and errs: every fourth claim has another number, every fifth quotation is its own.
struct Erring {
    /// Whether what it writes is verified.
    verified: bool,
}

impl Erring {
    fn words(at: usize, sentence: &str) -> String {
        let own = sentence.trim_end_matches('.').replace('\n', " ");
        if at % 4 != 3 {
            return own;
        }
        let wrong = |c: char| if c.is_ascii_digit() { (b'0' + (c as u8 - b'0' + 7) % 10) as char } else { c };
        own.chars().map(wrong).collect()
    }
}

impl Summariser for Erring {
    fn report(&self, text: &str, part: ByteSpan, language: &str) -> Vec<QuotedFact> {
        let own = part.of(text).unwrap();
        let important = extracted_facts(own, ByteSpan::new(0, own.len()), Some(language), PART_BYTES);
        let report = |(at, fact): (usize, &QuotedFact)| {
            let quote = fact.span.of(own).unwrap();
            let invented = format!("{quote} and {at}999 more");
            ReportedFact {
                claim: Self::words(at, quote),
                quote: if at % 5 == 4 { invented } else { quote.to_owned() },
            }
        };
        // It knows that what has neither a figure nor a name is of no importance.
        let matters = |fact: &&QuotedFact| {
            let said = fact.said(own);
            let mut inner = said.split(' ').skip(1);
            said.contains(|c: char| c.is_ascii_digit())
                || inner.any(|word| word.starts_with(char::is_uppercase))
        };
        let reported: Vec<_> = important.iter().filter(matters).enumerate().map(report).collect();
        located_facts(text, part, &reported, Some(language)).0
    }

    fn write(&self, text: &str, facts: &[QuotedFact], sources: &[CitedText], language: &str) -> String {
        let line =
            |(at, fact): (usize, &QuotedFact)| format!("{} [{}].", Self::words(at, &fact.said(text)), at + 1);
        let lines: Vec<String> = facts.iter().enumerate().map(line).collect();
        match self.verified {
            true => verified_text(&lines.join("\n"), sources, Some(language)).text,
            false => lines.join("\n"),
        }
    }
}

/// One question with as much of the text as fits, nothing of which is verified.
fn flat(summariser: &Erring, text: &str, language: &str, window: usize) -> Told {
    let mut told = Told::default();
    let shown = ByteSpan::new(0, text.floor_char_boundary(window.min(text.len())));
    told.asked(shown.len());
    let facts = summariser.report(text, shown, language);
    let sources: Vec<CitedText> = facts.iter().map(|fact| source(text, fact)).collect();
    told.text = summariser.write(text, &facts, &sources, language);
    told
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// How many of the facts the text tells.
fn told_facts(told: &str, facts: &[String]) -> usize {
    let told = plain(told);
    facts.iter().filter(|fact| told.contains(&plain(fact))).count()
}

fn digits(text: &str) -> HashSet<&str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).collect()
}

/// Runs of digits that the document does not have, without citations.
fn invented(told: &str, text: &str) -> usize {
    let known = digits(text);
    let cited = |piece: &str| piece.split_once(']').map_or(piece.to_owned(), |(_, rest)| rest.to_owned());
    let shown: String = told
        .split('[')
        .enumerate()
        .map(|(at, piece)| if at == 0 { piece.into() } else { cited(piece) })
        .collect();
    digits(&shown).difference(&known).count()
}

/// All samples of a language as one document, between sections of other texts: what is long is not important.
fn long(samples: &[Sample], language: &str, filler: usize) -> Sample {
    let own: Vec<&Sample> = samples.iter().filter(|sample| sample.language == language).collect();
    let aside = "People talked about the weather and about the way home. Some were tired, and some were not. The chairs were put away.\n\n";
    let texts: Vec<String> = own
        .iter()
        .map(|sample| format!("# {}\n\n{}\n\n# Talk\n\n{}", sample.name, sample.text, aside.repeat(filler)))
        .collect();
    Sample {
        name: format!("all in {language}"),
        language: language.to_owned(),
        facts: own.iter().flat_map(|sample| sample.facts.clone()).collect(),
        text: texts.join("\n\n"),
    }
}

/// A row of the table.
#[derive(Default)]
struct Row {
    told: usize,
    facts: usize,
    invented: usize,
    questions: usize,
    tokens: usize,
    micros: u128,
}

impl Row {
    fn add(&mut self, sample: &Sample, make: impl Fn(&Sample) -> Told) {
        let began = Instant::now();
        let told = make(sample);
        self.micros += began.elapsed().as_micros();
        self.told += told_facts(&told.text, &sample.facts);
        self.facts += sample.facts.len();
        self.invented += invented(&told.text, &sample.text);
        self.questions += told.questions;
        self.tokens += told.tokens;
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<34} {:>3} of {:<3} facts  {:>3} invented numbers  {:>3} questions  {:>7} tokens  {:>7} µs",
            self.told, self.facts, self.invented, self.questions, self.tokens, self.micros
        );
    }
}

#[test]
fn known_facts_are_in_the_summary_and_no_number_is_invented() {
    let samples = samples();
    assert!(samples.len() >= 20);
    let whole: Vec<Sample> = ["en", "de"].map(|language| long(&samples, language, 30)).into();
    let sizes: Vec<usize> = whole.iter().map(|sample| sample.text.len()).collect();
    println!("{} documents, and two of {sizes:?} bytes", samples.len());
    let window = 14_000;
    let (erring, careful) = (Erring { verified: false }, Erring { verified: true });
    type Make<'m> = &'m dyn Fn(&Sample) -> Told;
    let makes: [(&str, Make<'_>); 4] = [
        ("offline model", &|sample| by_tree(&Rules, &sample.text, &sample.language, 4_000)),
        ("erring model, flat", &|sample| flat(&erring, &sample.text, &sample.language, window)),
        ("erring model, flat and verified", &|sample| flat(&careful, &sample.text, &sample.language, window)),
        ("erring model, hierarchical", &|sample| by_tree(&careful, &sample.text, &sample.language, 4_000)),
    ];
    let mut rows = Vec::new();
    for (group, all) in [("short", &samples), ("long", &whole)] {
        for (name, make) in makes {
            let mut row = Row::default();
            all.iter().for_each(|sample| row.add(sample, make));
            row.print(&format!("{group}: {name}"));
            rows.push(row);
        }
    }
    let [short_rules, short_flat, short_checked, short_tree, long_rules, _, _, long_tree] = rows.as_slice()
    else {
        panic!("eight rows");
    };
    for verified in [short_rules, short_checked, short_tree, long_rules, long_tree] {
        assert_eq!(verified.invented, 0);
    }
    assert!(short_flat.invented > 10, "the model does not err");
    let share = |row: &Row| row.told * 100 / row.facts;
    assert!(share(short_rules) >= 90, "{}", share(short_rules));
    assert!(share(long_rules) >= 75, "{}", share(long_rules));
    assert!(share(long_tree) >= 70, "{}", share(long_tree));
}

#[test]
fn a_long_text_is_summarised_within_bounds() {
    let unit = long(&samples(), "en", 10);
    let mut text = unit.text.clone();
    for at in 0.. {
        if text.len() >= 600_000 {
            break;
        }
        text.push_str(&format!("\n\n# Report {at}\n\n{}", unit.text));
    }
    let told = by_tree(&Rules, &text, "en", CHUNK_BYTES);
    let chunks = text.len() / CHUNK_BYTES;
    assert!(told.questions <= chunks * 2 + chunks / 2, "{} questions for {chunks} chunks", told.questions);
    assert!((500..=2 * MAX_SUMMARY).contains(&told.text.len()), "{}", told.text.len());
    assert_eq!(invented(&told.text, &text), 0);
}
