//! The template of a request: its words, with typed placeholders for its values.

use data_encoding::HEXLOWER;
use jiff::civil::{Date, Time};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::invisible;
use crate::language::date_expression::{DateExpression, DateExpressionKind};
use crate::language::dates::RangeRole;
use crate::language::entities::Entities;
use crate::language::text::{self, Token};
use crate::language::{self, dates, lexicon, pattern};
use crate::llm::offline::{PlainAsk, plain_ask};
use crate::run::{RunState, canonical_json};

/// The longest request that has a template, in characters. Tokenising cuts longer texts, and their plans are rarely
/// needed twice.
const MAX_CHARS: usize = 400;
const MAX_NAME_WORDS: usize = 3;

/// The template of one request, with the values that the request has in place of the placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestTemplate {
    /// SHA-256 in hex of the elements and the chatbot's instructions.
    pub(crate) id: String,
    /// Words, marks and placeholders such as `{day}`, in order.
    pub(crate) elements: Vec<TemplateElement>,
    /// The values of the placeholders, in order; a range of days has two.
    pub(crate) spans: Vec<TemplateSpan>,
    pub(crate) ask: PlainAsk,
    request: String,
}

/// A word, a mark or a placeholder of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateElement {
    /// Lower case, or the placeholder's name in braces.
    pub(crate) text: String,
    /// Whether it stands for values.
    pub(crate) is_placeholder: bool,
    /// The byte offset of its first character in the request.
    start: usize,
    /// The byte offset after its last character.
    end: usize,
}

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TemplateSpan {
    /// As written.
    pub(crate) text: String,
    /// What it means.
    pub(crate) value: SpanValue,
}

/// The meaning of a placeholder's words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SpanValue {
    Day(Date),
    /// A time of day.
    Time(Time),
    Number(f64),
    /// A name or a quotation; its case does not matter.
    Name,
    /// A code or an address.
    Code,
}

/// The template of a run's request, if its plan can be learned or reused at all: no memory, question, plan, constraint or
/// state of the caller may have a part in it.
pub(crate) fn template_of_run(state: &RunState) -> Option<RequestTemplate> {
    let queued = state.queued.as_ref()?;
    let is_plain = queued.plan.is_none() && queued.guidance.is_none();
    template_of_request(state).filter(|_| is_plain)
}

/// The template of a run's request, if it is executed, answers no question and names no document.
pub(super) fn template_of_request(state: &RunState) -> Option<RequestTemplate> {
    let (queued, started) = (state.queued.as_ref()?, state.started.as_ref()?);
    let is_executed = !queued.plan_only && !queued.options.dry_run && queued.documents.is_empty();
    if !is_executed || state.is_confirmation() || started.context.pending.is_some() {
        return None;
    }
    let instructions = queued.instructions.as_deref().unwrap_or_default();
    RequestTemplate::of(&queued.request, started.language.as_deref(), started.now.date(), instructions)
}

/// SHA-256 in hex of a user's name, for counting users without listing them.
pub(crate) fn user_hash(user: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(user.as_bytes()))
}

impl RequestTemplate {
    /// The template of a request; `None` if it is too long, sets a task on a text, is more than plain requests and
    /// questions, needs the conversation, or has days whose meaning is open.
    pub(crate) fn of(request: &str, language: Option<&str>, today: Date, instructions: &str) -> Option<Self> {
        let request = request.trim();
        let is_read = request.chars().count() <= MAX_CHARS && !request.chars().any(invisible::is_invisible);
        if !is_read || language::is_background_task(request, instructions) {
            return None;
        }
        let ask = plain_ask(request)?;
        let tokens = text::tokens(request);
        let reader = TemplateReader {
            request,
            tokens: &tokens,
            entities: &Entities::in_text(request, today),
            // Every noun has a capital.
            has_names: language != Some("de"),
        };
        let (elements, spans) = reader.read()?;
        let words: Vec<&str> = elements.iter().map(|element| element.text.as_str()).collect();
        let key = canonical_json(&json!({"words": words, "instructions": instructions}));
        let id = HEXLOWER.encode(&Sha256::digest(key.as_bytes()));
        Some(Self { id, elements, spans, ask, request: request.to_owned() })
    }

    /// The words and placeholders, for people and planners.
    pub(crate) fn words(&self) -> String {
        joined(&self.elements)
    }

    /// The words and placeholders of these elements; of all without them.
    pub(super) fn words_of(&self, elements: Option<(u32, u32)>) -> String {
        let part = elements.and_then(|(first, last)| self.elements.get(first as usize..=last as usize));
        joined(part.unwrap_or(&self.elements))
    }

    /// The elements that `part` of the request consists of, if it is one whole run of them.
    pub(crate) fn elements_of(&self, part: &str) -> Option<(u32, u32)> {
        let part = part.trim().trim_end_matches(['.', '!']);
        let start = self.request.find(part).filter(|_| !part.is_empty())?;
        let first = self.elements.iter().position(|element| element.start == start)?;
        let last = self.elements.iter().position(|element| element.end == start + part.len())?;
        (first <= last).then(|| Some((u32::try_from(first).ok()?, u32::try_from(last).ok()?))).flatten()
    }

    /// The part of the request that these elements are; the whole request without them.
    pub(crate) fn part(&self, elements: Option<(u32, u32)>) -> &str {
        let found = elements.and_then(|(first, last)| {
            let (first, last) = (self.elements.get(first as usize)?, self.elements.get(last as usize)?);
            self.request.get(first.start..last.end)
        });
        found.unwrap_or(&self.request)
    }
}

fn joined(elements: &[TemplateElement]) -> String {
    let words: Vec<&str> = elements.iter().map(|element| element.text.as_str()).collect();
    words.join(" ")
}

struct TemplateReader<'a> {
    request: &'a str,
    tokens: &'a [Token],
    entities: &'a Entities,
    has_names: bool,
}

/// A placeholder's name, the index of its last token, and its values.
type Placeholder = (&'static str, usize, Vec<TemplateSpan>);

impl TemplateReader<'_> {
    fn read(&self) -> Option<(Vec<TemplateElement>, Vec<TemplateSpan>)> {
        let (mut elements, mut spans) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(token) = self.tokens.get(at) {
            let (text, last, is_placeholder) = match self.placeholder(at)? {
                Some((name, last, values)) => {
                    spans.extend(values);
                    (format!("{{{name}}}"), last, true)
                }
                // A brace would look like a placeholder.
                None if token.raw.contains(['{', '}']) => return None,
                None => (token.lower.to_string(), at, false),
            };
            let end = self.tokens.get(last)?.end;
            elements.push(TemplateElement { text, is_placeholder, start: token.start, end });
            at = last + 1;
        }
        while elements.last().is_some_and(|last| matches!(last.text.as_str(), "." | "!")) {
            elements.pop();
        }
        (!elements.is_empty()).then_some((elements, spans))
    }

    /// The placeholder that begins at a token; `None` in place of all where the request cannot have a template.
    fn placeholder(&self, at: usize) -> Option<Option<Placeholder>> {
        let found = self.entities;
        if let Some((_, last)) = found.quotes.iter().find(|(first, _)| *first == at) {
            return Some(Some(("quote", *last, vec![self.span(at, *last, SpanValue::Name)])));
        }
        if let Some(expression) = found.date_expressions.iter().find(|expression| expression.first == at) {
            return self.days(expression).map(Some);
        }
        if let Some(hour) = found.times.iter().find(|hour| hour.first == at) {
            let name = match hour.role {
                RangeRole::Single => "time",
                RangeRole::From => "time from",
                RangeRole::To => "time until",
            };
            return Some(Some((name, hour.last, vec![self.span(at, hour.last, SpanValue::Time(hour.time))])));
        }
        if let Some(number) = found.numbers.iter().find(|number| number.first == at) {
            let span = self.span(at, number.last, SpanValue::Number(number.value));
            return Some(Some(("number", number.last, vec![span])));
        }
        // A word inside a day or a time that does not begin there: the readers overlap.
        if found.taken.get(at).copied().unwrap_or(false) {
            return None;
        }
        let token = self.tokens.get(at)?;
        if is_code(token) {
            return Some(Some(("code", at, vec![self.span(at, at, SpanValue::Code)])));
        }
        let names = self.tokens.get(at..)?.iter().take_while(|token| self.is_name(token)).count();
        match names {
            0 => Some(None),
            1..=MAX_NAME_WORDS => {
                let last = at + names - 1;
                Some(Some(("name", last, vec![self.span(at, last, SpanValue::Name)])))
            }
            _ => None,
        }
    }

    fn days(&self, expression: &DateExpression) -> Option<Placeholder> {
        let (name, days): (_, &[Date]) = match &expression.kind {
            DateExpressionKind::Single(day) => ("day", &[*day]),
            DateExpressionKind::Range(from, to) => ("days", &[*from, *to]),
            DateExpressionKind::Bound(RangeRole::From, day) => ("day from", &[*day]),
            DateExpressionKind::Bound(RangeRole::To, day) => ("day until", &[*day]),
            DateExpressionKind::Bound(RangeRole::Single, _)
            | DateExpressionKind::Excluded(..)
            | DateExpressionKind::BeforeOrAfter(..)
            | DateExpressionKind::Unclear => return None,
        };
        let spans = days.iter().map(|day| self.span(expression.first, expression.last, SpanValue::Day(*day)));
        Some((name, expression.last, spans.collect()))
    }

    fn span(&self, first: usize, last: usize, value: SpanValue) -> TemplateSpan {
        let range = self.tokens.get(first).zip(self.tokens.get(last)).map(|(a, b)| a.start..b.end);
        let text = range.and_then(|range| self.request.get(range)).unwrap_or_default().to_owned();
        TemplateSpan { text, value }
    }

    /// Whether a word is part of a name. A word that could be more than that is none, so that a name hides no request.
    fn is_name(&self, token: &Token) -> bool {
        let known = |norm: &str| {
            lexicon::is_stop_word(norm)
                || lexicon::is_pleasantry(norm)
                || lexicon::is_question_word(norm)
                || dates::is_calendar_word(norm)
        };
        self.has_names
            && token.word
            && token.capital()
            && !token.first
            && !token.digit()
            && token.raw.chars().count() > 1
            && !known(&token.norm)
            && !pattern::is_verb(token)
            && !pattern::is_infinitive(&token.norm)
            && token.features().concepts.is_empty()
    }
}

/// Whether a token is an address, or a code with digits such as `AB-12`.
fn is_code(token: &Token) -> bool {
    let has_letters = token.raw.chars().any(char::is_alphabetic);
    token.word && (token.raw.contains('@') || token.raw.contains("://") || (token.digit() && has_letters))
}
