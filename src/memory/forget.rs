//! The part of a conversation that is forgotten with a document: a rule over the events of its stream.
//!
//! - A turn that named the document keeps the user's words and the calls that do not depend on documents. Its answer,
//!   its quotations, the results of the other calls and the question that it ended with are erased. Of a write, which may
//!   have been confirmed with values of the document, the values that only the document has are erased.
//! - Later answers lose the sentences that repeat erased texts: a figure of three digits or more that is not a year, a name
//!   within a sentence, or five words in a row, that no kept text has.
//! - A turn that only listed the document, in the question which one is meant, keeps everything but its name; the other documents
//!   keep their places in the list.
//! - Summaries that cover such a turn are emptied; the memory makes others of the turns ([`super::Memory::apply`]).
//!
//! **Invariant:** every event stays, and every call and sentence keeps its place, so the facts that are left keep their ids.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::language::figures::KnownFigures;
use crate::language::{lower_words, statements};
use crate::run::{
    CallOrigin, CompactJson, DocumentId, Effect, NamedDocument, PendingQuestion, RunId, SessionEvent, Turn,
    TurnCall, TurnOrigin,
};

/// Replaces an erased text.
const ERASED: &str = "[erased]";
/// Replaces an erased sentence. It counts as a sentence wherever it stands, so that the others keep their positions.
const ERASED_SENTENCE: &str = "Erased;";
const ERASED_QUESTION: &str = "Erased?";
/// Replaces the answer of a turn of which nothing else is left.
const ERASED_ANSWER: &str = "[erased with a document]";
/// The fewest digits of a figure that identifies the source of a sentence.
const MIN_DIGITS: usize = 3;
/// Figures that may be years identify no source.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2100;
/// The number of words in a row that identify the source of a sentence.
const MIN_WORDS: usize = 5;

/// The events of a session's stream that change when a document is deleted with the runs that named it, as they are
/// afterwards. `events` is the whole stream.
pub(crate) fn without_document(
    events: &[(u64, SessionEvent)],
    document: DocumentId,
    runs: &BTreeSet<RunId>,
) -> Vec<(u64, SessionEvent)> {
    let named = NamedBy { id: document.to_string(), runs };
    let lists = |event: &SessionEvent| listing(event, document).is_some();
    let Some(first) = events.iter().position(|(_, event)| named.names_it(event) || lists(event)) else {
        return Vec::new();
    };
    let told = events.iter().position(|(_, event)| named.names_it(event)).unwrap_or(events.len());
    let mut texts = named.texts(events, told);
    let is_turn = |event: &SessionEvent| matches!(event, SessionEvent::TurnEnded { .. });
    let turns_before = events[..first].iter().filter(|(_, event)| is_turn(event)).count();
    let mut after: Vec<(u64, SessionEvent)> = events[first..].to_vec();
    // These come first, because what is left of them is kept.
    for (_, event) in after.iter_mut().filter(|(_, event)| named.names_it(event)) {
        if let SessionEvent::TurnEnded { turn, pending, origin, .. } = event {
            texts.forget_turn(turn, origin.as_mut());
            *pending = None;
        }
    }
    for ((_, event), (_, before)) in after.iter_mut().zip(&events[first..]) {
        match event {
            SessionEvent::TurnEnded { turn, pending, .. } if !named.names_it(before) => {
                if let (Some(at), Some(asked)) = (listing(before, document), pending.as_mut()) {
                    forget_listed(turn, asked, at);
                }
                if told < events.len() {
                    turn.answer = texts.without_sentences(&turn.answer);
                    texts.forget_question(pending, document);
                }
            }
            SessionEvent::Summarised { through, summary, sources, .. } if *through > turns_before => {
                summary.clear();
                sources.clear();
            }
            // What a person says in place of a fact of the document is the person's.
            SessionEvent::Fact { fact } => {
                if let Some(replaced) = &mut fact.replaces {
                    replaced.document = replaced.document.take().filter(|span| span.document != named.id);
                }
            }
            _ => {}
        }
    }
    let changed = after.into_iter().zip(&events[first..]).filter(|(after, before)| after != *before);
    changed.map(|(after, _)| after).collect()
}

/// A document, and the runs that named it.
struct NamedBy<'a> {
    /// The document's id as facts have it.
    id: String,
    runs: &'a BTreeSet<RunId>,
}

impl NamedBy<'_> {
    /// Whether the turn named the document, or quotes it.
    fn names_it(&self, event: &SessionEvent) -> bool {
        let SessionEvent::TurnEnded { turn, origin, .. } = event else { return false };
        let mut quotes = origin.iter().flat_map(|origin| &origin.quotes);
        turn.run.is_some_and(|run| self.runs.contains(&run))
            || quotes.any(|quote| quote.span.document == self.id)
    }

    /// The texts of a stream, by what happens to them. `told` is the position of the first turn that named the
    /// document.
    fn texts(&self, events: &[(u64, SessionEvent)], told: usize) -> ForgottenTexts {
        let mut texts = ForgottenTexts::default();
        for (at, (_, event)) in events.iter().enumerate() {
            if let SessionEvent::TurnEnded { turn, pending, origin, .. } = event {
                match self.names_it(event) {
                    true => texts.sort_told(turn, pending.as_ref(), origin.as_ref()),
                    false => texts.sort_other(turn, origin.as_ref(), at < told),
                }
            }
        }
        texts
    }
}

/// The place of a document in the list of a turn's question.
fn listing(event: &SessionEvent, document: DocumentId) -> Option<usize> {
    let SessionEvent::TurnEnded { pending: Some(asked), .. } = event else { return None };
    asked.question.choices.iter().position(|choice| choice.id == document)
}

/// Forgets the name of the document at this place of a question's list.
fn forget_listed(turn: &mut Turn, asked: &mut PendingQuestion, at: usize) {
    let Some(choice) = asked.question.choices.get_mut(at) else { return };
    let name = std::mem::replace(&mut choice.name, ERASED.to_owned());
    *choice = NamedDocument {
        id: DocumentId(uuid::Uuid::nil()),
        sha256: String::new(),
        bytes: 0,
        language: None,
        heading: None,
        ..choice.clone()
    };
    let (line, erased) = (format!("{}. {name} (", at + 1), format!("{}. {ERASED} (", at + 1));
    for (text, replacement) in
        [(&mut turn.answer, ERASED_ANSWER), (&mut asked.question.text, ERASED_QUESTION)]
    {
        *text = text.replacen(&line, &erased, 1);
        if text.contains(&name) && !is_part_of_others(&name, &asked.question.choices) {
            replacement.clone_into(text);
        }
    }
}

/// Whether the name is found in that of another document of a list.
fn is_part_of_others(name: &str, choices: &[NamedDocument]) -> bool {
    choices.iter().any(|choice| choice.name.contains(name))
}

/// Whether a call of a turn that named documents does not depend on them, as far as the journal shows.
fn is_apart(turn: &Turn, origin: Option<&TurnOrigin>, at: usize) -> bool {
    let is_stale = turn.calls.get(at).is_none_or(|call| call.stale);
    !is_stale && place(origin, at).is_some_and(|place| !place.quotes_documents && !place.void)
}

fn place(origin: Option<&TurnOrigin>, at: usize) -> Option<&CallOrigin> {
    origin.and_then(|origin| origin.calls.get(at))
}

/// The texts of a stream, by what happens to them.
#[derive(Debug, Default)]
struct ForgottenTexts {
    /// What documents say: quotations, and the results of tools that looked at them.
    sources: KnownText,
    /// Everything that is erased: these, and the answers that may repeat them.
    gone: KnownText,
    kept: KnownText,
}

impl ForgottenTexts {
    /// Sorts the texts of a turn that named the document.
    fn sort_told(&mut self, turn: &Turn, pending: Option<&PendingQuestion>, origin: Option<&TurnOrigin>) {
        self.kept.add(&turn.request);
        self.gone.add(&turn.answer);
        if let Some(pending) = pending {
            self.gone.add(&pending.question.text);
            self.gone.add(&pending.question.known.to_string());
        }
        if let Some(origin) = origin {
            self.kept.add(&origin.now.date().to_string());
            origin.quotes.iter().for_each(|quote| self.add_source(&quote.claim));
        }
        for (at, call) in turn.calls.iter().enumerate() {
            let is_write = place(origin, at).is_some_and(|place| place.effect == Effect::Write);
            match is_apart(turn, origin, at) {
                // Its values may be the document's.
                true if is_write => {}
                true => self.keep_call(call),
                false => {
                    self.add_source(&call.arguments.to_string());
                    self.add_source(&call.result.to_string());
                }
            }
        }
    }

    /// Sorts the texts of another turn. Its answer may repeat the document, unless it came before.
    fn sort_other(&mut self, turn: &Turn, origin: Option<&TurnOrigin>, is_before: bool) {
        self.kept.add(&turn.request);
        turn.calls.iter().for_each(|call| self.keep_call(call));
        if let Some(origin) = origin {
            self.kept.add(&origin.now.date().to_string());
            let says = origin.calls.iter().filter_map(|call| call.say.as_deref());
            says.for_each(|say| self.kept.add(say));
        }
        if is_before {
            self.kept.add(&turn.answer);
        }
    }

    fn add_source(&mut self, text: &str) {
        self.sources.add(text);
        self.gone.add(text);
    }

    fn keep_call(&mut self, call: &TurnCall) {
        self.kept.add(&call.arguments.to_string());
        self.kept.add(&call.result.to_string());
    }

    /// Erases the content of a turn that named the document, except what may be kept.
    fn forget_turn(&mut self, turn: &mut Turn, origin: Option<&mut TurnOrigin>) {
        let before = origin.as_deref().cloned();
        let keeps: Vec<bool> = (0..turn.calls.len()).map(|at| is_apart(turn, before.as_ref(), at)).collect();
        let mut says = Vec::new();
        for (at, (call, keeps)) in turn.calls.iter_mut().zip(&keeps).enumerate() {
            if !keeps {
                (call.arguments, call.result, call.stale) =
                    (CompactJson::default(), CompactJson::default(), true);
                continue;
            }
            let Some(write) = place(before.as_ref(), at).filter(|call| call.effect == Effect::Write) else {
                continue;
            };
            call.arguments.edit(|arguments| self.strike(arguments));
            call.result.edit(|result| self.strike(result));
            says.extend(write.say.clone().filter(|say| !self.kept.lacks(&self.sources, say)));
            self.keep_call(call);
        }
        if let Some(origin) = origin {
            origin.quotes.clear();
            for (call, keeps) in origin.calls.iter_mut().zip(&keeps) {
                call.void |= !keeps;
                call.say = call.say.take().filter(|say| *keeps && !self.kept.lacks(&self.sources, say));
            }
        }
        turn.answer = if says.is_empty() { ERASED_ANSWER.to_owned() } else { says.join(" ") };
    }

    /// Erases what a later question says about the document.
    fn forget_question(&self, pending: &mut Option<PendingQuestion>, document: DocumentId) {
        let Some(asked) = pending else { return };
        let is_about_it = asked.documents.iter().any(|named| named.id == document);
        let repeats = self.kept.lacks(&self.gone, &asked.question.text)
            || self.kept.lacks(&self.gone, &asked.question.known.to_string());
        asked.documents.retain(|named| named.id != document);
        asked.question.choices.retain(|named| named.id != document);
        if is_about_it || repeats {
            *pending = None;
        }
    }

    /// Erases the texts and numbers of a value that only documents contain.
    fn strike(&self, value: &mut Value) {
        match value {
            Value::Array(list) => list.iter_mut().for_each(|one| self.strike(one)),
            Value::Object(members) => members.values_mut().for_each(|one| self.strike(one)),
            Value::String(text) if self.is_from_documents(text) => ERASED.clone_into(text),
            Value::Number(number) if self.is_from_documents(&number.to_string()) => {
                *value = Value::String(ERASED.to_owned());
            }
            _ => {}
        }
    }

    /// Whether all words of a value are words of documents, and not all of them are words of kept texts.
    fn is_from_documents(&self, value: &str) -> bool {
        let words = lower_words(value);
        let all = |known: &KnownText| words.iter().all(|word| known.words.contains(word));
        let is_told = !words.is_empty() && all(&self.sources) && !all(&self.kept);
        is_told || self.kept.lacks(&self.sources, value)
    }

    /// An answer without the sentences that repeat erased texts.
    fn without_sentences(&self, answer: &str) -> String {
        if !self.kept.lacks(&self.gone, answer) {
            return answer.to_owned();
        }
        let line = |line: &str| {
            let mut out = String::new();
            let mut rest = line;
            for sentence in statements::sentences(line) {
                let Some(at) = rest.find(sentence) else { continue };
                out.push_str(&rest[..at]);
                out.push_str(match self.kept.lacks(&self.gone, sentence) {
                    true if sentence.ends_with('?') => ERASED_QUESTION,
                    true => ERASED_SENTENCE,
                    false => sentence,
                });
                rest = &rest[at + sentence.len()..];
            }
            out.push_str(rest);
            out
        };
        answer.lines().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The content of texts: their figures, their words, and hashes of their words in a row.
#[derive(Debug, Default)]
struct KnownText {
    figures: KnownFigures,
    words: HashSet<String>,
    /// Words that are written with a capital within sentences.
    names: HashSet<String>,
    rows: HashSet<u64>,
}

impl KnownText {
    fn add(&mut self, text: &str) {
        self.figures.add(text);
        let words = lower_words(text);
        self.rows.extend(words.windows(MIN_WORDS).map(hash));
        self.words.extend(words);
        self.names.extend(names(text));
    }

    /// Whether `text` has a figure, a name or words in a row that `other` has and these texts do not.
    fn lacks(&self, other: &KnownText, text: &str) -> bool {
        let unknown = other.figures.untraced(text);
        let is_year = |figure: &String| figure.parse().is_ok_and(|figure| YEARS.contains(&figure));
        let is_telling =
            |figure: &String| figure.len() >= MIN_DIGITS && !is_year(figure) && !unknown.contains(figure);
        if self.figures.untraced(text).iter().any(is_telling) {
            return true;
        }
        if names(text).any(|name| other.names.contains(&name) && !self.words.contains(&name)) {
            return true;
        }
        let words = lower_words(text);
        words.windows(MIN_WORDS).map(hash).any(|row| other.rows.contains(&row) && !self.rows.contains(&row))
    }
}

/// The words of a text that are written with a capital and do not begin a sentence, in lower case. German writes all nouns so.
fn names(text: &str) -> impl Iterator<Item = String> {
    let is_german = crate::language::detect(text) == Some("de");
    let words = text.split_inclusive(|c: char| !c.is_alphanumeric()).filter(move |_| !is_german);
    let mut begins = true;
    words.filter_map(move |piece| {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_name = !begins && word.chars().count() > 2 && word.starts_with(char::is_uppercase);
        begins = piece.ends_with(['.', '!', '?', ':', ';', '\n', '•', '-']) || (word.is_empty() && begins);
        is_name.then(|| word.to_lowercase())
    })
}

fn hash(words: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::{FactLedger, LedgerFact, Memory, Options};
    use crate::run::{DocumentQuote, DocumentSpan, Question, RunStatus, Usage};

    const REPORT: DocumentId = DocumentId(uuid::Uuid::from_u128(7));

    fn run(n: usize) -> RunId {
        RunId(uuid::Uuid::from_u128(n as u128))
    }

    fn call(tool: &str, arguments: Value, result: Value) -> (TurnCall, CallOrigin) {
        let call = TurnCall {
            scene: "Desk".to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.into(),
            result: result.into(),
            stale: tool == "Read",
        };
        let effect = if tool == "Book" { Effect::Write } else { Effect::Read };
        let say = (tool == "Book").then(|| "The room Blue is booked under 1042.".to_owned());
        let quotes_documents = tool == "Read";
        (call, CallOrigin { step: 1, call: 1, effect, say, void: false, quotes_documents })
    }

    fn ended(
        n: usize,
        said: (&str, &str),
        calls: Vec<(TurnCall, CallOrigin)>,
        quote: Option<&str>,
    ) -> SessionEvent {
        let (calls, places) = calls.into_iter().unzip();
        let quote = quote.map(|claim| DocumentQuote {
            step: 1,
            claim: claim.to_owned(),
            span: DocumentSpan { document: REPORT.to_string(), start: 0, end: 9 },
            sha256: String::new(),
        });
        let origin = TurnOrigin {
            now: "2026-06-01T09:00[Europe/Rome]".parse().unwrap(),
            user: "ada".to_owned(),
            by_model: true,
            has_made_values: false,
            quotes: quote.into_iter().collect(),
            calls: places,
        };
        let (request, answer) = (said.0.to_owned(), said.1.to_owned());
        let turn = Turn { run: Some(run(n)), request, answer, status: RunStatus::Completed, calls };
        SessionEvent::TurnEnded { turn, pending: None, usage: Usage::default(), origin: Some(origin) }
    }

    fn summarised(through: usize, summary: &str) -> SessionEvent {
        let usage = Usage { calls: 1, ..Usage::default() };
        SessionEvent::Summarised {
            through,
            summary: summary.to_owned(),
            usage,
            attempts: Vec::new(),
            sources: Vec::new(),
        }
    }

    fn numbered(events: Vec<SessionEvent>) -> Vec<(u64, SessionEvent)> {
        (1..).zip(events).collect()
    }

    /// The stream after the runs that named the document were erased with it.
    fn forgotten(events: &[(u64, SessionEvent)], runs: &[usize]) -> Vec<(u64, SessionEvent)> {
        let runs = runs.iter().copied().map(run).collect();
        let mut after = events.to_vec();
        for (seq, event) in without_document(events, REPORT, &runs) {
            after[seq as usize - 1].1 = event;
        }
        after
    }

    fn facts(events: &[(u64, SessionEvent)]) -> Vec<LedgerFact> {
        FactLedger::from_events(events.iter().map(|(seq, event)| (*seq, event))).facts().cloned().collect()
    }

    #[test]
    fn forgetting_a_document_removes_only_what_it_said() {
        let report = json!({"text": "The branch in Lund sold 4101 lamps to Mallory."});
        let booked =
            call("Book", json!({"room": "Blue", "guest": "Mallory", "seats": 4}), json!({"id": 1042}));
        let told = vec![call("Read", json!({}), report), booked];
        let events = numbered(vec![
            ended(1, ("My limit is 900 euros.", "Noted: 900 euros."), vec![], None),
            ended(
                2,
                (
                    "Summarise the report and book the room Blue for 4.",
                    "Lund sold 4101 lamps. Blue is booked: 1042.",
                ),
                told,
                Some("The branch in Lund sold 4101 lamps."),
            ),
            summarised(2, "Ada's limit is 900 euros; Lund sold 4101 lamps."),
            ended(
                3,
                (
                    "How many lamps?",
                    "They sold 4,101 lamps. Is it for Blue? Your booking is 1042, the limit 900 euros.",
                ),
                vec![],
                None,
            ),
            ended(
                4,
                ("And days?", "You have 22 days."),
                vec![call("Days", json!({}), json!({"days": 22}))],
                None,
            ),
        ]);
        let after = forgotten(&events, &[2]);
        let text = serde_json::to_string(&after).unwrap();
        for gone in ["4101", "4,101", "Lund", "Mallory"] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        let SessionEvent::TurnEnded { turn, origin, .. } = &after[1].1 else { unreachable!() };
        assert_eq!(turn.answer, "The room Blue is booked under 1042.");
        assert_eq!(turn.calls[1].arguments, json!({"room": "Blue", "guest": "[erased]", "seats": 4}));
        assert_eq!(turn.calls[0].result, Value::Null);
        assert_eq!(turn.calls[1].result, json!({"id": 1042}));
        assert!(origin.as_ref().is_some_and(|origin| origin.calls[0].void && origin.quotes.is_empty()));
        let SessionEvent::TurnEnded { turn, .. } = &after[3].1 else { unreachable!() };
        assert_eq!(turn.answer, "Erased; Is it for Blue? Your booking is 1042, the limit 900 euros.");
        assert_eq!(after[0], events[0]);
        assert_eq!(after[4], events[4]);

        let memory = Memory::from_events(Options::default(), after.iter().map(|(_, event)| event));
        let summary = memory.summary().unwrap();
        assert!(summary.contains("900 euros") && summary.contains("1042"), "{summary}");
        assert_eq!(memory.usage().calls, 1);
        let claims: Vec<String> = facts(&after).into_iter().map(|fact| fact.claim).collect();
        assert!(claims.iter().any(|claim| claim.contains("1042")), "{claims:?}");
        assert!(claims.iter().any(|claim| claim.contains("900 euros")), "{claims:?}");
        // Nothing named another document.
        assert_eq!(without_document(&events, DocumentId(uuid::Uuid::nil()), &BTreeSet::new()), []);
    }

    #[test]
    fn name_of_a_listed_document_is_gone_and_the_others_keep_their_places() {
        let choice = |id: u128, name: &str| NamedDocument {
            id: DocumentId(uuid::Uuid::from_u128(id)),
            sha256: "5a".to_owned(),
            name: name.to_owned(),
            media: "text/plain".to_owned(),
            bytes: 900,
            language: None,
            heading: None,
        };
        let text = "Which document do you mean?\n1. old plan.md (1 kB)\n2. plan.md (1 kB)\n3. tax.md (1 kB)"
            .to_owned();
        let asked = PendingQuestion {
            request: "Summarise it".to_owned(),
            scene: "Summary".to_owned(),
            purpose: "Summarise it".to_owned(),
            question: Question {
                text: text.clone(),
                tool: None,
                missing: vec!["document".to_owned()],
                known: Value::Null,
                choices: vec![choice(5, "old plan.md"), choice(7, "plan.md"), choice(9, "tax.md")],
            },
            unconfirmed: Vec::new(),
            user: String::new(),
            run: None,
            documents: Vec::new(),
        };
        let mut listed = ended(1, ("Summarise it", &text), vec![], None);
        if let SessionEvent::TurnEnded { pending, .. } = &mut listed {
            *pending = Some(asked);
        }
        let other = ended(2, ("How many days?", "You have 22 days of plan 4101."), vec![], None);
        let events = numbered(vec![
            listed,
            other.clone(),
            summarised(2, "There are old plan.md, plan.md and tax.md."),
        ]);
        let after = forgotten(&events, &[]);
        let SessionEvent::TurnEnded { turn, pending: Some(asked), .. } = &after[0].1 else { unreachable!() };
        let expected = text.replace("2. plan.md", "2. [erased]");
        assert_eq!((&turn.answer, &asked.question.text), (&expected, &expected));
        let names: Vec<&str> = asked.question.choices.iter().map(|choice| choice.name.as_str()).collect();
        assert_eq!(names, ["old plan.md", "[erased]", "tax.md"]);
        assert_ne!(asked.question.choices[1].id, REPORT);
        assert_eq!(after[1].1, other);
        assert_eq!(after[2].1, summarised(2, ""));
    }

    #[test]
    fn names_and_figures_tell_where_a_sentence_comes_from_and_years_do_not() {
        let (mut gone, mut kept) = (KnownText::default(), KnownText::default());
        gone.add("The branch in Lund sold 4101 lamps in 2027 to Mallory Smith.");
        kept.add("Anna books for Smith.");
        for (text, repeats) in [
            ("Then Mallory pays.", true),
            ("It was sold in Lund.", true),
            ("Smith pays: for Smith.", false),
            ("They sold 4,101 of them.", true),
            ("It ends in 2027.", false),
            ("Ask the branch in Rome.", false),
            ("Wurde in Lund verkauft, und die Lampen sind nicht da.", false),
            ("She told the branch in lund sold a lot.", true),
        ] {
            assert_eq!(kept.lacks(&gone, text), repeats, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn facts_that_are_left_keep_their_ids(
            turns in prop::collection::vec((prop::collection::vec(0..5usize, 0..6), 0..4u8, any::<bool>()), 1..8)
        ) {
            const SENTENCES: [&str; 5] = [
                "The code is 7311.",
                "You have 220 days in 2031.",
                "Was the code 7311?",
                "It costs 555 euros.",
                "The hall is open",
            ];
            let mut told = Vec::new();
            let mut events = Vec::new();
            for (n, (sentences, kind, is_summarised)) in turns.iter().enumerate() {
                let answer: Vec<&str> = sentences.iter().map(|at| SENTENCES[*at]).collect();
                let quote = (*kind == 0).then_some(SENTENCES[0]);
                told.extend(quote.map(|_| n));
                // Before the first one, nothing of the document is known.
                let answer = if told.is_empty() { String::new() } else { answer.join(" ") };
                let found = call("Days", json!({}), json!({"price": 555}));
                events.push(ended(n, ("The room is 12.", &answer), vec![found], quote));
                if *is_summarised {
                    events.push(summarised(n + 1, "So far: 7311."));
                }
            }
            let events = numbered(events);
            let after = forgotten(&events, &told);
            if !told.is_empty() {
                let first = events.iter().position(|(_, event)| {
                    matches!(event, SessionEvent::TurnEnded { turn, .. } if turn.run == told.first().copied().map(run))
                });
                let text = serde_json::to_string(&after[first.unwrap()..]).unwrap();
                prop_assert!(!text.contains("7311"), "{}", text);
            }
            let before = facts(&events);
            for fact in facts(&after) {
                if let Some(old) = before.iter().find(|old| old.id == fact.id) {
                    prop_assert_eq!(&old.claim, &fact.claim);
                }
            }
        }
    }
}
