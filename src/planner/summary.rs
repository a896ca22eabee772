//! Summaries of documents, by steps and by calls of tools: the questions about their parts, and the reading of the
//! replies. Both need the text of the documents, which is not part of a run's state.

use super::prompt::forced;
use crate::llm::summaries::{self, PartFunction, PartMaterial, PartReading, SummaryMatter};
use crate::llm::{OFFLINE, Purpose, Request, sections};
use crate::plan::PlanProblem;
use crate::run::{
    AskStatus, Event, PartOutcome, Reply, RunState, Subject, SummaryOwner, SummaryWork, fitted_facts,
};
use crate::sentences;
use crate::summary::{
    self, ByteSpan, CitedText, PART_BYTES, QuotedFact, SummarisedText, SummaryPart, SummaryTree, VerifiedText,
};

/// Maximum number of sources that a summary lists.
const MAX_SOURCES: usize = 60;

/// A part that a question is about.
struct AskedPart<'a> {
    work: &'a SummaryWork,
    kind: SummaryPart,
    owner: SummaryOwner,
    part: u32,
}

impl<'a> AskedPart<'a> {
    fn of(state: &'a RunState, subject: Subject) -> Option<Self> {
        let (owner, part) = SummaryOwner::of(subject)?;
        let work = state.summary_work(owner)?;
        let kind = work.tree().as_ref().and_then(|tree: &SummaryTree| tree.part(part))?;
        Some(Self { work, kind, owner, part })
    }

    /// The facts that it is made of, in their order in the text.
    fn facts(&self) -> Vec<&'a QuotedFact> {
        match &self.kind {
            SummaryPart::Chunk(_) => Vec::new(),
            SummaryPart::RollUp(below) | SummaryPart::Whole(below) => self.work.facts_of(below.clone()),
        }
    }

    /// The text of the documents at the places of the part's facts, if the part is the whole summary.
    fn words(&self, source: &SummarisedText, facts: &[&QuotedFact]) -> Vec<CitedText> {
        match &self.kind {
            SummaryPart::Whole(_) => facts.iter().map(|fact| source.cited(fact)).collect(),
            SummaryPart::Chunk(_) | SummaryPart::RollUp(_) => Vec::new(),
        }
    }
}

/// The question about a part of a summary. Without the text, it contains no data and only serves to measure its size.
pub fn summary_request(state: &RunState, source: Option<&SummarisedText>, subject: Subject) -> Request {
    let mut data = String::new();
    let asked = AskedPart::of(state, subject);
    let owner = SummaryOwner::of(subject).map(|(owner, _)| owner);
    sections::push(&mut data, "purpose", owner.map_or("", |owner| state.summary_purpose(owner)));
    let kind = asked.as_ref().map_or(&SummaryPart::Chunk(0), |asked| &asked.kind);
    let PartFunction { system, tool } = summaries::part_function(SummaryMatter::Documents, kind);
    if let Some((asked, source)) = asked.as_ref().zip(source) {
        let facts = asked.facts();
        let words = asked.words(source, &facts);
        let material = PartMaterial { kind: &asked.kind, source, facts: &facts, words: &words };
        summaries::push_material(&mut data, &material, state.language().or(source.language()));
    }
    let mut request = forced(state, Purpose::Summary, system.to_owned(), data, tool, state.tries(subject));
    request.max_output_tokens = Some(summaries::MAX_OUTPUT);
    request
}

/// The event that the reply to question `call` about a part of a summary leads to.
pub fn read_summary(state: &RunState, source: &SummarisedText, call: u32, subject: Subject) -> Event {
    let replied = state.asks.get(&call).and_then(|ask| match &ask.status {
        AskStatus::Replied { reply } => Some((reply, ask.fallback)),
        _ => None,
    });
    let read = match (AskedPart::of(state, subject), replied) {
        (Some(asked), Some((reply, fallback))) => {
            let by_rules = fallback || reply.model == OFFLINE;
            outcome(state, source, &asked, reply, by_rules).map(|outcome| Event::SummaryPart {
                step: asked.owner.step,
                tool_call: asked.owner.tool_call,
                part: asked.part,
                call: Some(call),
                outcome,
            })
        }
        _ => Err(vec![PlanProblem::new("reply.none", "there is no reply to read")]),
    };
    read.unwrap_or_else(|problems| Event::ReplyRejected { call, problems })
}

fn outcome(
    state: &RunState,
    source: &SummarisedText,
    asked: &AskedPart<'_>,
    reply: &Reply,
    by_rules: bool,
) -> Result<PartOutcome, Vec<PlanProblem>> {
    let facts = asked.facts();
    if by_rules {
        return Ok(outcome_by_rules(state, source, asked, &facts));
    }
    let words = asked.words(source, &facts);
    let material = PartMaterial { kind: &asked.kind, source, facts: &facts, words: &words };
    let read = summaries::read_part(&material, reply, state.settings().reader)?;
    Ok(match read {
        PartReading::Facts(facts, dropped) => PartOutcome::Facts { facts, dropped },
        PartReading::Text(done) => with_coverage(state, source, asked, (facts.as_slice(), done)),
    })
}

/// The offline model's outcome for a part: sentences of the documents, word for word.
fn outcome_by_rules(
    state: &RunState,
    source: &SummarisedText,
    asked: &AskedPart<'_>,
    facts: &[&QuotedFact],
) -> PartOutcome {
    match &asked.kind {
        SummaryPart::Chunk(index) => {
            let part = source.chunk(*index).map_or_else(|| ByteSpan::new(0, 0), |chunk| chunk.span);
            let facts = summary::extracted_facts(source.text(), part, source.language(), PART_BYTES);
            PartOutcome::Facts { facts, dropped: 0 }
        }
        SummaryPart::RollUp(_) => {
            let facts = summary::distinct(summaries::chosen_facts(facts, &[]), source.text());
            let (facts, dropped) = fitted_facts(facts);
            PartOutcome::Facts { facts, dropped }
        }
        SummaryPart::Whole(_) => quoted(state, source, asked, facts),
    }
}

/// A summary without a model: the most important facts that fit, word for word.
fn quoted(
    state: &RunState,
    source: &SummarisedText,
    asked: &AskedPart<'_>,
    facts: &[&QuotedFact],
) -> PartOutcome {
    let bound = summary::quoted_bytes(asked.work.coverage().1);
    let facts = facts.iter().map(|fact| (*fact).clone()).collect();
    let kept = summary::quotable(summary::distinct(facts, source.text()), bound);
    let quotes: Vec<CitedText> = kept
        .iter()
        .map(|fact| CitedText {
            text: fact.span.of(source.text()).unwrap_or_default().to_owned(),
            around: Default::default(),
        })
        .collect();
    let kept: Vec<&QuotedFact> = kept.iter().collect();
    with_coverage(state, source, asked, (kept.as_slice(), summary::quoted_text(&quotes)))
}

/// The text with a note about how much of the documents it covers, and with its sources.
fn with_coverage(
    state: &RunState,
    source: &SummarisedText,
    asked: &AskedPart<'_>,
    (facts, done): (&[&QuotedFact], VerifiedText),
) -> PartOutcome {
    let mut text = done.text;
    let (read, all) = asked.work.coverage();
    if read < all {
        let percent = u64::try_from(u128::from(read) * 100 / u128::from(all.max(1))).unwrap_or(0);
        text.push_str(&format!("\n\n{}", sentences::summary_coverage(state.language(), percent)));
    }
    let cited: Vec<QuotedFact> =
        done.cited.iter().filter_map(|at| facts.get(*at)).map(|fact| (*fact).clone()).collect();
    let places: Vec<String> = cited
        .iter()
        .take(MAX_SOURCES)
        .enumerate()
        .map(|(at, fact)| format!("[{}] {}", at + 1, place(asked.work, source, fact)))
        .collect();
    if !places.is_empty() {
        text.push_str(&format!("\n\n{}", places.join("\n")));
    }
    let removed = u32::try_from(done.removed.len()).unwrap_or(u32::MAX);
    PartOutcome::Text { text, sources: cited, removed }
}

/// The place of a fact for people: its bytes in its document, which is named by its position if there are several, and
/// its headings.
fn place(work: &SummaryWork, source: &SummarisedText, fact: &QuotedFact) -> String {
    let documents = work.outline.as_ref().map_or(&[][..], |outline| &outline.documents);
    let (mut start, mut document) = (0, 0);
    for (at, one) in documents.iter().enumerate() {
        document = at;
        if fact.span.start < start + one.bytes {
            break;
        }
        start += one.bytes;
    }
    let headings =
        source.chunk_at(fact.span).map(|chunk| chunk.heading_path(source.text())).unwrap_or_default();
    let (from, to) = (fact.span.start.saturating_sub(start), fact.span.end.saturating_sub(start));
    let which = if documents.len() > 1 { format!("{}: ", document + 1) } else { String::new() };
    let headings = if headings.is_empty() {
        String::new()
    } else {
        format!(" ({})", summary::without_markup(&headings))
    };
    format!("{which}{from}–{to}{headings}")
}
