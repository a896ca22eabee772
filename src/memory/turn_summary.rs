//! The summary of turns in progress: the tree of `summary/` over a conversation, whose chunks are the turns.
//!
//! The summary so far comes first. The lines of a turn are its facts, or the sentences of longer lines, if they fit
//! into a part. A model is asked about the parts that do not fit, and then writes the whole summary from the remaining
//! facts. So most summaries take one question. A sentence of the model stays only if one turn that it cites says the
//! same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use super::SummaryJob;
use crate::llm::summaries::{self, PartFunction, PartMaterial, PartReading, SummaryMatter};
use crate::llm::{Message, OFFLINE, Purpose, Request, ToolChoice};
use crate::plan::PlanProblem;
use crate::run::{ReaderMode, Reply, RunStatus, Turn, TurnSpan};
use crate::summary::{
    self, ByteSpan, CitedText, GROUP, PART_BYTES, QuotedFact, SummarisedText, SummaryPart, SummaryTree,
    fitting,
};

/// Maximum number of questions of a summary beside that for the whole: what is left then is chosen by rules.
const MAX_QUESTIONS: u32 = 8;
/// Maximum size of a line that is one fact, in bytes.
const MAX_FACT: usize = 600;
/// Maximum size of a chunk of the summary so far, in bytes.
const MAX_EARLIER: usize = 2_000;
/// Maximum number of tokens of the whole.
const MAX_OUTPUT: u32 = 600;
/// The weight of facts that no model has weighed.
const WEIGHT: u32 = 500;

/// A summary of turns that a model wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenMemory {
    /// The text, without citations.
    pub text: String,
    /// The places that it cites, in the order of first use.
    pub sources: Vec<TurnSpan>,
    /// How many sentences were removed, since no turn that they cite says so.
    pub removed: usize,
}

/// How a part of a summary ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartEnd {
    /// The reply is used, and further parts follow.
    Read,
    /// The reply is not used: the part was made without a model, and further parts follow.
    MadeByRules,
    /// The reply is the whole summary.
    Written(WrittenMemory),
    /// The reply is not used, and the summary cannot be finished.
    Unusable,
}

/// A summary of turns in progress.
#[derive(Debug, Clone)]
pub struct TurnSummary {
    source: SummarisedText,
    /// For each chunk, its turn, from 1, or 0 for the summary so far; and where its text begins.
    turns: Vec<(usize, u64)>,
    tree: SummaryTree,
    facts: BTreeMap<u32, Vec<QuotedFact>>,
    asked: u32,
}

/// A turn as text: the request and answer, and one line for each call.
pub fn turn_text(turn: &Turn) -> String {
    let mut text = format!("User: {}\nAssistant", turn.request.trim());
    // Writing into a String cannot fail.
    if turn.status != RunStatus::Completed {
        let status: &str = turn.status.into();
        let _ = write!(text, " ({status})");
    }
    let _ = writeln!(text, ": {}", turn.answer.trim());
    for call in &turn.calls {
        let _ = writeln!(text, "{}.{} {} -> {}", call.scene, call.tool, call.arguments, call.result);
    }
    text
}

impl TurnSummary {
    /// The summary that `job` asks for. `language` is the user's, as ISO 639-1, if known. `None` if there is nothing to summarise.
    pub fn new(job: &SummaryJob, language: Option<&str>) -> Option<Self> {
        let (mut text, mut ends, mut turns) = (String::new(), Vec::new(), Vec::new());
        if let Some(earlier) = job.summary.as_deref().map(str::trim).filter(|earlier| !earlier.is_empty()) {
            text = format!("{earlier}\n");
            let chunks = summary::chunks(&text, MAX_EARLIER);
            ends.extend(chunks.iter().map(|chunk| chunk.span.end));
            turns.resize(ends.len(), (0, 0));
        }
        let first = job.through.saturating_sub(job.turns.len()) + 1;
        for (at, turn) in job.turns.iter().enumerate() {
            turns.push((first + at, text.len() as u64));
            text.push_str(&turn_text(turn));
            ends.push(text.len() as u64);
        }
        let tree = SummaryTree::new(u32::try_from(ends.len()).ok()?, GROUP);
        let source = SummarisedText::new(text, &ends, language.map(str::to_owned))?;
        Some(Self { source, turns, tree, facts: BTreeMap::new(), asked: 0 }).filter(|_| !ends.is_empty())
    }

    /// The next part that a model is asked about, after the parts that need no question were done. `None` if there is
    /// nothing to summarise.
    pub fn next_part(&mut self) -> Option<u32> {
        for number in 1..=self.tree.parts() {
            if self.facts.contains_key(&number) {
                continue;
            }
            let facts = match self.tree.part(number)? {
                SummaryPart::Chunk(index) => self.sentences_of(index),
                SummaryPart::RollUp(below) => self.facts_of(below).into_iter().cloned().collect(),
                SummaryPart::Whole(below) => return (!self.facts_of(below).is_empty()).then_some(number),
            };
            let size: usize = facts.iter().map(QuotedFact::size).sum();
            if size > PART_BYTES && self.asked < MAX_QUESTIONS {
                self.asked += 1;
                return Some(number);
            }
            self.facts.insert(number, fitting(facts, PART_BYTES));
        }
        None
    }

    /// The question about a part.
    pub fn request(&self, part: u32) -> Request {
        let kind = self.tree.part(part).unwrap_or(SummaryPart::Chunk(0));
        let facts = self.facts_below(&kind);
        let words = self.words(&facts);
        let material = PartMaterial { kind: &kind, source: &self.source, facts: &facts, words: &words };
        let mut text = String::new();
        summaries::push_material(&mut text, &material, self.source.language());
        let PartFunction { system, tool } = summaries::part_function(SummaryMatter::Turns, &kind);
        let is_whole = matches!(kind, SummaryPart::Whole(_));
        Request {
            purpose: Purpose::Summary,
            messages: vec![Message::System { text: system.to_owned() }, Message::User { text }],
            choice: ToolChoice::Forced(tool.name.clone()),
            tools: vec![tool],
            temperature: Some(0.0),
            max_output_tokens: Some(if is_whole { MAX_OUTPUT } else { summaries::MAX_OUTPUT }),
        }
    }

    /// Ends a part with a model's reply about it. If the reply cannot be used, the part is made without a model, if
    /// possible.
    pub fn end_part(&mut self, part: u32, reply: &Reply, mode: ReaderMode) -> PartEnd {
        match self.read(part, reply, mode) {
            Ok(Some(written)) if !written.text.is_empty() => PartEnd::Written(written),
            Ok(None) => PartEnd::Read,
            Err(_) if self.make_by_rules(part) => PartEnd::MadeByRules,
            Ok(Some(_)) | Err(_) => PartEnd::Unusable,
        }
    }

    /// Takes what a model replied about a part: the text, if it is the whole.
    ///
    /// # Errors
    /// Why the reply cannot be used.
    pub(super) fn read(
        &mut self,
        part: u32,
        reply: &Reply,
        mode: ReaderMode,
    ) -> Result<Option<WrittenMemory>, Vec<PlanProblem>> {
        let kind = self.tree.part(part).unwrap_or(SummaryPart::Chunk(0));
        if reply.model == OFFLINE && matches!(kind, SummaryPart::Whole(_)) {
            // The offline model repeats what was said, and cites nothing.
            return summaries::written_text(reply, mode)
                .map(|text| Some(WrittenMemory { text, ..WrittenMemory::default() }));
        }
        let facts = self.facts_below(&kind);
        let words = self.words(&facts);
        let material = PartMaterial { kind: &kind, source: &self.source, facts: &facts, words: &words };
        // Some models call no function, and write the text.
        let is_prose = matches!(kind, SummaryPart::Whole(_))
            && reply.calls.is_empty()
            && !reply.text.trim_start().starts_with(['{', '[', '`']);
        let read = summaries::read_part(&material, reply, mode).or_else(|problems| match is_prose {
            true => summaries::read_prose(&material, reply).map(PartReading::Text),
            false => Err(problems),
        })?;
        let done = match read {
            PartReading::Facts(found, _) => {
                self.facts.insert(part, found);
                return Ok(None);
            }
            PartReading::Text(done) => done,
        };
        let cited = done.cited.iter().filter_map(|at| facts.get(*at));
        let sources = cited.filter_map(|fact| self.place_of(fact.span)).collect();
        Ok(Some(WrittenMemory { text: without_citations(&done.text), sources, removed: done.removed.len() }))
    }

    /// Makes a part without a model. Returns whether that is possible: the whole can be made of other parts only by a
    /// model.
    pub(super) fn make_by_rules(&mut self, part: u32) -> bool {
        let facts = match self.tree.part(part) {
            Some(SummaryPart::Chunk(index)) => {
                let span = self.source.chunk(index).map_or_else(|| ByteSpan::new(0, 0), |chunk| chunk.span);
                summary::extracted_facts(self.source.text(), span, self.source.language(), PART_BYTES)
            }
            Some(SummaryPart::RollUp(below)) => {
                let below = self.facts_of(below).into_iter().cloned().collect();
                fitting(summary::distinct(below, self.source.text()), PART_BYTES)
            }
            Some(SummaryPart::Whole(_)) | None => return false,
        };
        self.facts.insert(part, facts);
        true
    }

    /// The facts of a chunk without a model: its lines, or their sentences.
    fn sentences_of(&self, index: u32) -> Vec<QuotedFact> {
        let Some(chunk) = self.source.chunk(index) else { return Vec::new() };
        let text = self.source.text();
        let (mut spans, mut start): (Vec<ByteSpan>, u64) = (Vec::new(), chunk.span.start);
        for line in chunk.span.of(text).unwrap_or_default().split_inclusive('\n') {
            let span = ByteSpan { start, end: start + line.len() as u64 };
            start = span.end;
            if line.len() <= MAX_FACT {
                spans.extend(trimmed(text, span));
            } else {
                let found = summary::sentences(line).into_iter().map(|own| own.moved(span.start));
                spans.extend(found.filter_map(|span| trimmed(text, span)));
            }
        }
        spans.into_iter().map(|span| QuotedFact { claim: None, span, weight: WEIGHT }).collect()
    }

    fn facts_of(&self, parts: std::ops::Range<u32>) -> Vec<&QuotedFact> {
        parts.filter_map(|part| self.facts.get(&part)).flatten().collect()
    }

    fn facts_below(&self, kind: &SummaryPart) -> Vec<&QuotedFact> {
        match kind {
            SummaryPart::Chunk(_) => Vec::new(),
            SummaryPart::RollUp(below) | SummaryPart::Whole(below) => self.facts_of(below.clone()),
        }
    }

    /// The text of the conversation at the places of facts, read again: the words of each fact, and its whole turn as
    /// context, once for all facts of the turn.
    fn words(&self, facts: &[&QuotedFact]) -> Vec<CitedText> {
        let mut last: (Option<usize>, Arc<str>) = (None, Arc::default());
        let words = |fact: &&QuotedFact| {
            let own = fact.span.of(self.source.text()).unwrap_or_default().to_owned();
            let text = if fact.claim.is_some() { self.source.cited(fact).text } else { own };
            let at = self.source.index_at(fact.span);
            if last.0 != at {
                let turn =
                    self.source.chunk_at(fact.span).and_then(|chunk| chunk.span.of(self.source.text()));
                last = (at, turn.unwrap_or_default().into());
            }
            CitedText { text, around: last.1.clone() }
        };
        facts.iter().map(words).collect()
    }

    /// The turn that holds a place, and the place in its text.
    fn place_of(&self, span: ByteSpan) -> Option<TurnSpan> {
        let (turn, start) = *self.turns.get(self.source.index_at(span)?)?;
        let (from, to) = (span.start.saturating_sub(start), span.end.saturating_sub(start));
        Some(TurnSpan { turn, start: from, end: to })
    }
}

/// The place without blanks at its ends; `None` if nothing is left.
fn trimmed(text: &str, span: ByteSpan) -> Option<ByteSpan> {
    let own = span.of(text)?;
    let start = span.start + (own.len() - own.trim_start().len()) as u64;
    let len = own.trim().len() as u64;
    (len > 0).then_some(ByteSpan { start, end: start + len })
}

/// The text without ` [1]` and the like.
fn without_citations(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" [") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inner = &from[2..];
        let digits = inner.len() - inner.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match inner[digits..].strip_prefix(']').filter(|_| digits > 0) {
            Some(after) => rest = after,
            None => {
                out.push_str(" [");
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}
