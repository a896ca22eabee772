//! The facts of one turn: those that its request states, its calls found, and its answer adds.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{MAX_CLAIM_CHARS, content_hash, packing};
use crate::language::{figures, statements, text};
use crate::run::{
    CallOrigin, DocumentQuote, DocumentSpan, Effect, FactEvidence, FactKind, FactSource, RunStatus, Turn,
    TurnCall, TurnOrigin, call_key, plain_leaves,
};

/// Maximum number of facts of one turn's calls.
const MAX_FOUND: usize = 64;
/// Maximum number of records and texts of one call's result.
const MAX_RECORDS: usize = 24;
/// Maximum number of sentences of an answer.
const MAX_CONCLUDED: usize = 6;
/// How deep results are read.
const MAX_DEPTH: u8 = 8;
/// Maximum number of members of a record, and elements of a list in one.
const MAX_MEMBERS: usize = 24;
const MAX_ELEMENTS: usize = 8;
/// Characters of the arguments in a claim.
const MAX_ARGUMENT_CHARS: usize = 120;

/// The call that a fact comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FindingCall {
    /// Scene, tool and arguments.
    #[serde(with = "packing::hex")]
    pub key: String,
    /// The scene.
    pub scene: String,
    /// Whether a later equal call replaces it.
    pub is_read: bool,
    /// The hash of its whole result.
    #[serde(with = "packing::hex")]
    pub result: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundFact {
    pub kind: FactKind,
    /// Its position in the turn, which does not depend on its words.
    pub place: String,
    pub claim: String,
    pub source: FactSource,
    pub hash: String,
    pub at: Option<Timestamp>,
    pub evidence: Option<FactEvidence>,
    pub call: Option<FindingCall>,
    pub is_lasting: bool,
    /// Further words by which it is found.
    pub words: String,
}

/// A claim of a user in a sentence.
pub(super) struct SaidClaim {
    /// The sentence, with the days that were meant.
    pub claim: String,
    /// `None` if it denies something.
    pub evidence: Option<FactEvidence>,
}

/// A sentence of a user, said on `today`.
pub(super) fn said(sentence: &str, today: Date) -> SaidClaim {
    said_claim(&statements::Statement::of(sentence, today))
}

fn said_claim(statement: &statements::Statement) -> SaidClaim {
    let days: Vec<String> = statement.days.iter().map(ToString::to_string).collect();
    let has_new = days.iter().any(|day| !statement.text.contains(day.as_str()));
    let claim =
        if has_new { format!("{} ({})", statement.text, days.join(", ")) } else { statement.text.clone() };
    let values = if days.is_empty() { Value::Null } else { json!(days) };
    let said = Some(statement.undated.clone());
    let evidence = (!statement.is_negated).then_some(FactEvidence { said, values, read: None });
    SaidClaim { claim: clip(&claim), evidence }
}

/// A claim on one line, of at most [`MAX_CLAIM_CHARS`].
fn clip(claim: &str) -> String {
    text::shorten_to_words(&text::one_line(claim), MAX_CLAIM_CHARS)
}

/// The facts of a turn, and how many of each kind its bounds left out. An answer may rest on the turn and on the
/// `known` claims.
pub(super) fn of(
    turn: &Turn,
    origin: Option<&TurnOrigin>,
    known: impl FnOnce() -> String,
) -> (Vec<FoundFact>, BTreeMap<FactKind, u64>) {
    let at = origin.map(|origin| origin.now.timestamp()).or_else(|| turn.run.and_then(|run| run.time()));
    let by = origin.map(|origin| origin.user.clone());
    let of_run = FactSource { run: turn.run, by, ..FactSource::default() };
    let today = match (origin, at) {
        (Some(origin), _) => origin.now.date(),
        (None, Some(at)) => at.to_zoned(jiff::tz::TimeZone::UTC).date(),
        (None, None) => Date::default(),
    };
    let mut found: Vec<FoundFact> = Vec::new();
    for statement in statements::statements(&turn.request, today) {
        let SaidClaim { claim, evidence } = said_claim(&statement);
        found.push(FoundFact {
            kind: FactKind::Given,
            place: format!("request@{}", statement.start),
            hash: content_hash(&statement.text),
            claim,
            source: of_run.clone(),
            at,
            evidence,
            call: None,
            is_lasting: statement.is_about_user,
            words: String::new(),
        });
    }
    let mut left_out = BTreeMap::new();
    let mut room = MAX_FOUND;
    for (place, call) in turn.calls.iter().enumerate() {
        let origin = origin.and_then(|origin| origin.calls.get(place));
        let quotes_documents = origin.is_some_and(|origin| origin.quotes_documents);
        if call.stale && !quotes_documents || origin.is_some_and(|origin| origin.void) {
            continue;
        }
        let reading = ResultReading::of((place, call), origin, &of_run, at);
        for fact in reading.facts {
            match room.checked_sub(1) {
                Some(rest) => {
                    room = rest;
                    found.push(fact);
                }
                None => *left_out.entry(fact.kind).or_default() += 1,
            }
        }
        if reading.left_out > 0 {
            *left_out.entry(FactKind::Verified).or_default() += reading.left_out;
        }
    }
    found.extend(origin.into_iter().flat_map(|origin| quoted(origin, &of_run, at)));
    found.extend(concluded(turn, origin, &of_run, at, known));
    (found, left_out)
}

/// The sentences of summaries of documents, with the places that they rest on.
fn quoted(origin: &TurnOrigin, of_run: &FactSource, at: Option<Timestamp>) -> Vec<FoundFact> {
    let fact = |(place, quote): (usize, &DocumentQuote)| FoundFact {
        kind: FactKind::Quoted,
        place: format!("quote {place}"),
        claim: clip(&quote.claim),
        source: FactSource { step: Some(quote.step), document: Some(quote.span.clone()), ..of_run.clone() },
        hash: quote.sha256.clone(),
        at,
        evidence: None,
        call: None,
        is_lasting: false,
        words: String::new(),
    };
    origin.quotes.iter().enumerate().map(fact).collect()
}

/// The texts of a turn whose figures its answer may have.
fn shown_texts<'t>(turn: &'t Turn, origin: Option<&'t TurnOrigin>) -> Vec<Cow<'t, str>> {
    let calls = turn.calls.iter().flat_map(|call| [call.arguments.text(), call.result.text()]);
    let says = origin.into_iter().flat_map(|origin| &origin.calls).filter_map(|call| call.say.as_deref());
    let quotes = origin.into_iter().flat_map(|origin| &origin.quotes).map(|quote| quote.claim.as_str());
    let quotes = quotes.collect::<Vec<_>>().join("\n");
    let now = origin.map(|origin| origin.now.date().to_string()).unwrap_or_default();
    let texts = [turn.request.as_str()].into_iter().chain(calls).chain(says);
    texts.map(Cow::Borrowed).chain([Cow::Owned(now), Cow::Owned(quotes)]).collect()
}

/// The sentences of an answer with figures that occur neither in the turn nor in the `known` claims.
fn concluded(
    turn: &Turn,
    origin: Option<&TurnOrigin>,
    of_run: &FactSource,
    at: Option<Timestamp>,
    known: impl FnOnce() -> String,
) -> Vec<FoundFact> {
    let is_worded = origin.is_none_or(|origin| origin.by_model);
    if !is_worded || !matches!(turn.status, RunStatus::Completed | RunStatus::Partial) {
        return Vec::new();
    }
    let shown = shown_texts(turn, origin);
    if figures::untraced_among(&turn.answer, shown.iter().map(AsRef::as_ref)).is_empty() {
        return Vec::new();
    }
    let mut shown = shown.join("\n");
    shown.push_str(&known());
    let has_made_values = origin.is_some_and(|origin| origin.has_made_values);
    let lines = text::shorten(&turn.answer, text::MAX_CHARS).lines();
    let sentences = lines.flat_map(statements::sentences).filter(|sentence| !sentence.ends_with('?'));
    let fact = |(place, sentence): (usize, &str)| {
        let untraced = figures::untraced_figures(sentence, &shown);
        // The values that it rests on are named beside it.
        let all = figures::untraced_figures(sentence, "").len();
        let kind = if has_made_values || untraced.len() < all { FactKind::Derived } else { FactKind::Guess };
        (!untraced.is_empty()).then(|| FoundFact {
            kind,
            place: format!("answer.{place}"),
            claim: clip(sentence),
            source: of_run.clone(),
            hash: content_hash(sentence),
            at,
            evidence: None,
            call: None,
            is_lasting: false,
            words: String::new(),
        })
    };
    sentences.enumerate().filter_map(fact).take(MAX_CONCLUDED).collect()
}

/// Reads the result of a call record by record: the plain values of one object stay together, such as a number and its
/// unit.
struct ResultReading<'a> {
    call: &'a TurnCall,
    /// Its place among the turn's calls.
    place: usize,
    origin: Option<&'a CallOrigin>,
    source: FactSource,
    at: Option<Timestamp>,
    finding: FindingCall,
    /// The values that the call was given: a tool that repeats them has found nothing.
    given: Vec<&'a Value>,
    /// `Tool(argument: value)`.
    head: String,
    /// The words of the names of its scene and tool.
    words: String,
    facts: Vec<FoundFact>,
    left_out: u64,
}

impl<'a> ResultReading<'a> {
    fn of(
        (place, call): (usize, &'a TurnCall),
        origin: Option<&'a CallOrigin>,
        of_run: &FactSource,
        at: Option<Timestamp>,
    ) -> Self {
        let source = FactSource {
            step: origin.map(|origin| origin.step),
            call: origin.map(|origin| origin.call),
            tool: Some(format!("{}.{}", call.scene, call.tool)),
            ..of_run.clone()
        };
        let effect = origin.map(|origin| origin.effect);
        let finding = FindingCall {
            key: call_key(&call.scene, &call.tool, &call.arguments, &[]),
            scene: call.scene.clone(),
            is_read: effect == Some(Effect::Read),
            result: content_hash(call.result.text()),
        };
        let given = if effect == Some(Effect::Write) { Vec::new() } else { plain_leaves(&call.arguments) };
        let arguments = call.arguments.as_object().map(named_values).unwrap_or_default();
        let arguments = text::shorten_to_words(&arguments, MAX_ARGUMENT_CHARS);
        let head = format!("{}({arguments})", call.tool);
        let words = text::name_words(&format!("{} {}", call.scene, call.tool)).join(" ");
        let (facts, left_out) = (Vec::new(), 0);
        let mut reading =
            Self { call, place, origin, source, at, finding, given, head, words, facts, left_out };
        reading.read(&call.result, &mut String::new(), 0);
        let quotes_documents = origin.is_some_and(|origin| origin.quotes_documents);
        if !quotes_documents && !reading.facts.iter().any(|fact| fact.kind == FactKind::Verified) {
            // That a read found nothing, or a write was done, is a fact as well.
            reading.add_record(String::new(), Map::new());
        }
        // The first one takes the place of an earlier result, which a quotation may not.
        reading.facts.sort_by_key(|fact| Reverse(fact.kind));
        reading
    }

    fn read(&mut self, value: &Value, pointer: &mut String, depth: u8) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Value::Object(members) => {
                if let Some(quote) = document_quote(members) {
                    return self.add_quote(quote.0, pointer.clone(), Some(quote.1));
                }
                let plain = members.iter().filter_map(|(name, value)| Some((name, self.plain(value)?)));
                let record: Map<String, Value> =
                    plain.take(MAX_MEMBERS).map(|(name, value)| (name.clone(), value)).collect();
                if !record.is_empty() {
                    self.add_record(pointer.clone(), record);
                }
                for (name, member) in members {
                    self.descend(member, &name.replace('~', "~0").replace('/', "~1"), pointer, depth);
                }
            }
            Value::Array(elements) => {
                for (place, element) in elements.iter().enumerate() {
                    self.descend(element, &place.to_string(), pointer, depth);
                }
            }
            Value::String(words) if text::is_prose(words) => self.add_quote(words, pointer.clone(), None),
            Value::Null => {}
            plain if depth == 0 && !self.given.contains(&plain) => {
                self.add_record(String::new(), Map::from_iter([("result".to_owned(), plain.clone())]));
            }
            _ => {}
        }
    }

    fn descend(&mut self, value: &Value, name: &str, pointer: &mut String, depth: u8) {
        if self.facts.len() >= MAX_RECORDS {
            self.left_out += 1;
            return;
        }
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(name);
        self.read(value, pointer, depth + 1);
        pointer.truncate(length);
    }

    /// The value, if it is plain and not one that the call was given: a number, a truth value, a short text, or a short list
    /// of these.
    fn plain(&self, value: &Value) -> Option<Value> {
        let is_plain = |value: &Value| match value {
            Value::Number(_) | Value::String(_) if self.given.contains(&value) => false,
            Value::Number(_) | Value::Bool(_) => true,
            Value::String(words) => !text::is_prose(words) && !words.trim().is_empty(),
            _ => false,
        };
        match value {
            Value::Array(list) => {
                let kept: Vec<Value> =
                    list.iter().filter(|one| is_plain(one)).take(MAX_ELEMENTS).cloned().collect();
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            value => is_plain(value).then(|| value.clone()),
        }
    }

    fn add_record(&mut self, pointer: String, record: Map<String, Value>) {
        let values = named_values(&record);
        let found = if values.is_empty() { self.head.clone() } else { format!("{}: {values}", self.head) };
        let say = self.origin.and_then(|origin| origin.say.as_deref()).map(text::one_line);
        // The tool's sentence is about the whole result.
        let is_first = !self.facts.iter().any(|fact| fact.evidence.is_some());
        let claim = match say.filter(|_| is_first) {
            Some(say) => format!("{} [{found}]", text::shorten_to_words(&say, MAX_CLAIM_CHARS / 2)),
            None => found,
        };
        let values = match self.origin.map(|origin| origin.effect) {
            // The arguments of a write were traced, confirmed or approved when it was made.
            Some(Effect::Write) => json!([record, plain_leaves(&self.call.arguments)]),
            _ => Value::Object(record),
        };
        let read = self.finding.is_read.then(|| self.finding.key.clone());
        let evidence = FactEvidence { said: None, values, read };
        self.add(FactKind::Verified, &claim, pointer, Some(evidence), None);
    }

    /// Adds somebody's words inside a result: a quotation, whatever they say.
    fn add_quote(&mut self, quote: &str, pointer: String, document: Option<DocumentSpan>) {
        let quote = text::shorten_to_words(&text::one_line(quote), MAX_CLAIM_CHARS / 2);
        let claim = if document.is_some() { quote } else { format!("{}: “{quote}”", self.head) };
        self.add(FactKind::Quoted, &claim, pointer, None, document);
    }

    fn add(
        &mut self,
        kind: FactKind,
        claim: &str,
        pointer: String,
        evidence: Option<FactEvidence>,
        document: Option<DocumentSpan>,
    ) {
        let hash = match pointer.as_str() {
            "" => self.finding.result.clone(),
            part => content_hash(&self.call.result.pointer(part).unwrap_or(&Value::Null).to_string()),
        };
        // The words of documents are quoted, even if they look like values.
        let (kind, evidence) = match self.origin.is_some_and(|origin| origin.quotes_documents) {
            true => (FactKind::Quoted, None),
            false => (kind, evidence),
        };
        self.facts.push(FoundFact {
            kind,
            place: format!("call {} {} {}", self.place, kind.name(), pointer),
            claim: clip(claim),
            source: FactSource { pointer: Some(pointer), document, ..self.source.clone() },
            hash,
            at: self.at,
            evidence,
            call: Some(self.finding.clone()),
            is_lasting: false,
            words: self.words.clone(),
        });
    }
}

/// The quotation that an object of a result represents: `{"quote", "document", "start", "end"}`.
fn document_quote(members: &Map<String, Value>) -> Option<(&str, DocumentSpan)> {
    let text = members.get("quote")?.as_str()?;
    let document = members.get("document")?.as_str()?.chars().take(128).collect();
    let (start, end) = (members.get("start")?.as_u64()?, members.get("end")?.as_u64()?);
    Some((text, DocumentSpan { document, start, end }))
}

/// `name: value, name: value`.
fn named_values(members: &Map<String, Value>) -> String {
    let named = |(name, value): (&String, &Value)| match value {
        Value::String(words) => format!("{name}: {}", text::one_line(words)),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            format!("{name}: {}", list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        other => format!("{name}: {other}"),
    };
    members.iter().filter(|(_, value)| !value.is_null()).map(named).collect::<Vec<_>>().join(", ")
}
