//! The facts ledger of a conversation: what was said, found, quoted and concluded in it, as a fold of its stream.
//!
//! **Invariants:**
//!
//! - A fact supersedes only a fact of its own kind or of a lower one: no guess takes the place of what was given.
//! - A later result of an equal read replaces the whole earlier one, so a value is never separated from its unit.
//!   Whatever else contradicts stands side by side until a person decides.
//! - Bounded in number and bytes; what was dropped is counted. What was superseded goes first, then guesses, and what was
//!   given last.
//! - Of a superseded fact, only its claim, its source and the fact that superseded it are kept.
//! - The id of a fact depends on its event and its place in it, not on its words.

mod packing;
mod relevance;
#[cfg(test)]
mod tests;
mod turn_facts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::run::{
    Context, Effect, FactEvidence, FactKind, FactSource, RunId, SessionEvent, StatedFact, Turn, TurnOrigin,
    call_key,
};
use turn_facts::{FindingCall, FoundFact};

/// Maximum number of facts of one conversation.
pub const MAX_FACTS: usize = 2_000;
/// Maximum size of the facts of one conversation, in bytes.
pub const MAX_FACT_BYTES: usize = 1024 * 1024;
/// Maximum length of a claim, in characters.
pub const MAX_CLAIM_CHARS: usize = 400;
/// Maximum number of turns and calls of which the ledger remembers that their figures are no source. A prompt has fewer.
const MAX_REMEMBERED: usize = 512;
/// The size of an entry besides its texts, in bytes.
const ENTRY_BYTES: usize = 300;
/// Characters of an id.
const ID_CHARS: usize = 12;

/// A fact of a conversation's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LedgerFact {
    /// Its id, 12 hexadecimal digits.
    pub id: String,
    /// Its claim.
    pub claim: String,
    /// How it is known.
    pub kind: FactKind,
    /// Where it comes from.
    pub source: FactSource,
    /// SHA-256 in hex of the text or value at the source.
    pub hash: String,
    /// The fact that it takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// Whether that fact is missing: it was dropped, or this release does not find it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unresolved: bool,
    /// The fact that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The confidence in it, in percent.
    pub confidence: u8,
    /// When it came up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "date-time")]
    pub at: Option<Timestamp>,
}

/// Why a fact cannot take the place of another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactRefusal {
    /// No fact has this id, or several begin with it.
    #[error("no single fact of the conversation has the id {0:?}; `proscenium facts` lists them")]
    Unknown(String),
    /// It was superseded before.
    #[error("the fact {id} was superseded by {by}: correct that one")]
    Superseded {
        /// The fact.
        id: String,
        /// The fact that took its place.
        by: String,
    },
    /// It is another user's.
    #[error("the fact {0} is another user's")]
    User(String),
    /// The fact is of a higher kind.
    #[error("a {new} fact cannot take the place of a {old} one")]
    Kind {
        /// The kind of the new fact.
        new: &'static str,
        /// The kind of the fact.
        old: &'static str,
    },
}

/// A fact with the further data that the ledger needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LedgerEntry {
    #[serde(with = "packing::fact")]
    fact: LedgerFact,
    /// Its contribution to the sources of a write; `None` if there is none.
    evidence: Option<EntryEvidence>,
    /// The call that found it.
    call: Option<FindingCall>,
    /// The claim of the fact that it superseded.
    instead_of: Option<String>,
    /// Whether a write of the scene that it was read from came later.
    is_outdated: bool,
    /// Whether it may be shown without sharing a word with the request.
    is_lasting: bool,
    /// Its words, and those of the request in which it came up.
    #[serde(with = "packing::terms")]
    terms: Box<[u32]>,
    #[serde(with = "packing::terms")]
    topic: Box<[u32]>,
}

/// [`FactEvidence`] without the read that found it, which is that of the entry's call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EntryEvidence {
    said: Option<Box<str>>,
    /// As JSON, because most facts are never used: a tree of values takes five times as much memory.
    values: Box<str>,
}

impl EntryEvidence {
    fn of(evidence: FactEvidence) -> Self {
        Self { said: evidence.said.map(Into::into), values: evidence.values.to_string().into() }
    }

    fn values(&self) -> Value {
        // It was written from a value, so it can be read.
        serde_json::from_str(&self.values).unwrap_or_default()
    }
}

impl LedgerEntry {
    fn bytes(&self) -> usize {
        let values = self.evidence.as_ref().map_or(0, |evidence| evidence.values.len());
        ENTRY_BYTES + 2 * self.fact.claim.len() + values + 4 * (self.terms.len() + self.topic.len())
    }

    /// What it contributes to the sources of a write.
    fn fact_evidence(&self) -> Option<FactEvidence> {
        let evidence = self.evidence.as_ref()?;
        let said = evidence.said.as_deref().map(str::to_owned);
        let read = self.call.as_ref().filter(|call| call.is_read).map(|call| call.key.clone());
        Some(FactEvidence { said, values: evidence.values(), read })
    }

    /// Marks it as superseded by the fact with this id: it is not shown any more.
    fn supersede(&mut self, by: &str) {
        self.fact.superseded_by = Some(by.to_owned());
        (self.evidence, self.instead_of) = (None, None);
        (self.terms, self.topic) = (Box::default(), Box::default());
    }

    fn is_current(&self) -> bool {
        self.fact.superseded_by.is_none()
    }
}

/// How many facts a ledger has recorded since its stream began, dropped ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactCounts {
    /// By kind, in the order of [`FactKind::ALL`].
    pub recorded: [u64; FactKind::ALL.len()],
    /// How many facts were superseded.
    pub superseded: u64,
}

impl FactCounts {
    /// Returns what was recorded since `earlier`, a state of the same ledger.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut recorded = self.recorded;
        for (count, before) in recorded.iter_mut().zip(earlier.recorded) {
            *count = count.saturating_sub(before);
        }
        Self { recorded, superseded: self.superseded.saturating_sub(earlier.superseded) }
    }
}

/// The facts of one conversation. Its serialised form is not stored: it only serves to pack waiting conversations in
/// memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FactLedger {
    /// Oldest first.
    entries: Vec<LedgerEntry>,
    bytes: usize,
    dropped: BTreeMap<FactKind, u64>,
    counts: FactCounts,
    /// The calls of turns whose results were superseded by something else, by run and key; the latest ones. A ledger is always
    /// folded from the beginning of its stream, so none is missing.
    #[serde(with = "packing::calls")]
    contradicted: VecDeque<(Option<RunId>, String)>,
    /// The runs whose answers may have values that flows or steps without a tool made; the latest ones.
    unfounded: VecDeque<RunId>,
}

impl FactLedger {
    /// The ledger after the events of a session's stream, with their sequence numbers.
    pub fn from_events<'a>(events: impl IntoIterator<Item = (u64, &'a SessionEvent)>) -> Self {
        let mut ledger = Self::default();
        for (seq, event) in events {
            ledger.apply(seq, event);
        }
        ledger
    }

    /// Applies the event with the sequence number `seq`.
    pub fn apply(&mut self, seq: u64, event: &SessionEvent) {
        match event {
            SessionEvent::TurnEnded { turn, origin, .. } => {
                let (found, left_out) = turn_facts::of(turn, origin.as_ref(), || self.trusted_claims());
                for (kind, count) in left_out {
                    *self.dropped.entry(kind).or_default() += count;
                }
                let topic = relevance::terms(&turn.request);
                for fact in found {
                    self.add_found(seq, fact, &topic);
                }
                self.outdate(turn, origin.as_ref());
                if origin.as_ref().is_some_and(|origin| origin.has_made_values) {
                    self.unfounded.extend(turn.run);
                    self.unfounded.drain(..self.unfounded.len().saturating_sub(MAX_REMEMBERED));
                }
            }
            SessionEvent::Fact { fact } => self.add_stated(seq, fact),
            SessionEvent::SessionStarted {}
            | SessionEvent::QuestionLapsed { .. }
            | SessionEvent::Summarised { .. }
            | SessionEvent::SummaryFailed { .. } => {}
        }
        self.keep_bounds();
    }

    /// Marks facts that were read from the scenes that a turn wrote to, before the last of these writes, as outdated.
    fn outdate(&mut self, turn: &Turn, origin: Option<&TurnOrigin>) {
        let places = origin.into_iter().flat_map(|origin| &origin.calls);
        let writes = turn.calls.iter().zip(places).filter(|(_, place)| place.effect == Effect::Write);
        let mut last: BTreeMap<&str, u32> = BTreeMap::new();
        for (call, place) in writes {
            let of_scene = last.entry(&call.scene).or_default();
            *of_scene = place.call.max(*of_scene);
        }
        if last.is_empty() {
            return;
        }
        for entry in &mut self.entries {
            let source = &entry.fact.source;
            let is_before =
                |write: &u32| source.run != turn.run || source.call.is_none_or(|call| call < *write);
            let read = entry.call.as_ref().filter(|call| call.is_read);
            let write = read.and_then(|call| last.get(call.scene.as_str()));
            entry.is_outdated |= write.is_some_and(is_before);
        }
    }

    fn add_found(&mut self, seq: u64, found: FoundFact, topic: &[u32]) {
        let FoundFact { kind, place, claim, source, hash, at, evidence, call, is_lasting, words } = found;
        let id = fact_id(seq, &place);
        let is_there = |entry: &LedgerEntry| {
            let fact = &entry.fact;
            let is_same = fact.kind == kind && fact.claim == claim && fact.source.by == source.by;
            match &call {
                // A resumed run has a turn for each of its ends.
                Some(_) => is_same && (fact.source.run, fact.source.call) == (source.run, source.call),
                None => is_same && entry.is_current(),
            }
        };
        if self.entries.iter().any(|entry| entry.fact.id == id || is_there(entry)) {
            return;
        }
        if let Some(read) = call.as_ref().filter(|call| call.is_read) {
            let is_earlier = |entry: &&mut LedgerEntry| {
                let is_equal = entry.call.as_ref().is_some_and(|call| call.is_read && call.key == read.key);
                let (old, new) = (&entry.fact.source, &source);
                // An older run that ended late may have read before this one, and the reads of another user are that
                // user's own.
                let is_before = old.run <= new.run && (old.run, old.call) != (new.run, new.call);
                let is_above = entry.fact.kind > kind;
                is_equal && entry.is_current() && is_before && old.by == new.by && !is_above
            };
            for entry in self.entries.iter_mut().filter(is_earlier) {
                self.bytes -= entry.bytes();
                entry.supersede(&id);
                self.bytes += entry.bytes();
                self.counts.superseded += 1;
                if entry.call.as_ref().is_none_or(|call| call.result != read.result) {
                    contradict(&mut self.contradicted, entry);
                }
            }
        }
        let terms = relevance::terms(&format!("{claim} {words}"));
        let (supersedes, superseded_by, is_unresolved) = (None, None, false);
        let confidence = kind.confidence();
        let fact = LedgerFact {
            id,
            claim,
            kind,
            source,
            hash,
            supersedes,
            is_unresolved,
            superseded_by,
            confidence,
            at,
        };
        let (topic, instead_of, is_outdated) = (topic.into(), None, false);
        let evidence = evidence.map(EntryEvidence::of);
        self.push(LedgerEntry { fact, evidence, call, instead_of, is_outdated, is_lasting, terms, topic });
    }

    fn add_stated(&mut self, seq: u64, stated: &StatedFact) {
        let kind = stated.kind;
        let said = turn_facts::said(&stated.claim, stated.at.date());
        let id = stated_fact_id(seq);
        let target = stated.supersedes.as_ref().and_then(|_| self.target_of(stated));
        let is_unresolved = stated.supersedes.is_some() && target.is_none();
        let mut supersedes = stated.supersedes.clone().filter(|_| is_unresolved);
        let mut instead_of = None;
        if let Some(target) = target.and_then(|at| self.entries.get_mut(at)) {
            let is_own = target.fact.source.by.is_none() || target.fact.source.by == stated.source.by;
            if kind >= target.fact.kind && target.is_current() && is_own {
                self.bytes -= target.bytes();
                target.supersede(&id);
                self.bytes += target.bytes();
                self.counts.superseded += 1;
                supersedes = Some(target.fact.id.clone());
                instead_of = Some(target.fact.claim.clone());
                contradict(&mut self.contradicted, target);
            }
        }
        let terms =
            relevance::terms(&format!("{} {}", said.claim, instead_of.as_deref().unwrap_or_default()));
        let evidence = said.evidence.filter(|_| kind == FactKind::Given).map(EntryEvidence::of);
        let fact = LedgerFact {
            id,
            claim: said.claim,
            kind,
            source: stated.source.clone(),
            hash: stated.hash.clone(),
            supersedes,
            is_unresolved,
            superseded_by: None,
            confidence: stated.confidence.unwrap_or(kind.confidence()).min(100),
            at: Some(stated.at.timestamp()),
        };
        let (is_lasting, is_outdated) = (kind == FactKind::Given, false);
        let (call, topic) = (None, Box::default());
        self.push(LedgerEntry { fact, evidence, call, instead_of, is_outdated, is_lasting, terms, topic });
    }

    /// The entry that a stated fact supersedes: found by its id, or by its source.
    fn target_of(&self, stated: &StatedFact) -> Option<usize> {
        let is_meant = |entry: &LedgerEntry| Some(&entry.fact.id) == stated.supersedes.as_ref();
        let comes_from = |entry: &LedgerEntry| {
            let source = &entry.fact.source;
            source.call.is_some() && Some(source) == stated.replaces.as_ref()
        };
        self.entries.iter().position(is_meant).or_else(|| self.entries.iter().position(comes_from))
    }

    fn push(&mut self, entry: LedgerEntry) {
        self.bytes += entry.bytes();
        let mut counts = FactKind::ALL.iter().zip(&mut self.counts.recorded);
        if let Some((_, count)) = counts.find(|(kind, _)| **kind == entry.fact.kind) {
            *count += 1;
        }
        self.entries.push(entry);
    }

    /// Drops the least important entries until the bounds hold.
    fn keep_bounds(&mut self) {
        if self.entries.len() <= MAX_FACTS && self.bytes <= MAX_FACT_BYTES {
            return;
        }
        let surplus = surplus(&self.entries, MAX_FACTS, MAX_FACT_BYTES);
        let mut at = 0;
        self.entries.retain(|entry| {
            let stays = !surplus.contains(&at);
            at += 1;
            if !stays {
                self.bytes -= entry.bytes();
                *self.dropped.entry(entry.fact.kind).or_default() += 1;
            }
            stays
        });
    }

    /// The claims that a model's sentence may rest on.
    fn trusted_claims(&self) -> String {
        let trusted = self.entries.iter().filter(|entry| entry.fact.kind >= FactKind::Quoted);
        trusted.map(|entry| entry.fact.claim.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Its approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // Beside its texts, an entry has a dozen members and its call.
        2 * self.bytes
    }

    /// All facts, the oldest first.
    pub fn facts(&self) -> impl ExactSizeIterator<Item = &LedgerFact> {
        self.entries.iter().map(|entry| &entry.fact)
    }

    /// How many facts the bounds have dropped, by kind.
    pub fn dropped(&self) -> &BTreeMap<FactKind, u64> {
        &self.dropped
    }

    /// How many facts were recorded and superseded.
    pub fn counts(&self) -> FactCounts {
        self.counts
    }

    /// The fact with this id, or the only one whose id begins with it.
    ///
    /// # Errors
    /// [`FactRefusal::Unknown`] if there is none, or several.
    pub fn find(&self, id: &str) -> Result<&LedgerFact, FactRefusal> {
        let mut found = self.facts().filter(|fact| !id.is_empty() && fact.id.starts_with(id));
        match (found.next(), found.next()) {
            (Some(fact), None) => Ok(fact),
            _ => Err(FactRefusal::Unknown(id.chars().take(64).collect())),
        }
    }

    /// The fact that a new one of the kind `new` of the user `by` may supersede, by its id or the beginning of it.
    ///
    /// # Errors
    /// If there is none, if it was superseded, if it is another user's, or if its kind is higher.
    pub fn correctable(&self, id: &str, new: FactKind, by: &str) -> Result<&LedgerFact, FactRefusal> {
        let fact = self.find(id)?;
        match &fact.superseded_by {
            Some(by) => Err(FactRefusal::Superseded { id: fact.id.clone(), by: by.clone() }),
            None if fact.source.by.as_deref().is_some_and(|of| of != by) => {
                Err(FactRefusal::User(fact.id.clone()))
            }
            None if new < fact.kind => Err(FactRefusal::Kind { new: new.name(), old: fact.kind.name() }),
            None => Ok(fact),
        }
    }

    /// The fact with this claim that the user `by` gave, and that was not superseded.
    pub(crate) fn given(&self, claim: &str, by: &str) -> Option<&LedgerFact> {
        self.facts().find(|fact| {
            fact.kind == FactKind::Given
                && fact.superseded_by.is_none()
                && fact.claim == claim
                && fact.source.by.as_deref() == Some(by)
        })
    }

    /// Adds to the context of a run that starts now what it should know of the facts: those that the request of `user` is
    /// about, in at most `budget` tokens, without those that the context's turns show. In any case, results of its turns
    /// that were superseded by something else are marked as stale, and answers with made values as unfounded.
    pub fn inform(&self, context: &mut Context, request: &str, user: &str, budget: usize) {
        // Without contradicted calls, no call has to be read.
        let turns = context.turns.iter_mut().filter(|_| !self.contradicted.is_empty());
        for turn in turns {
            for call in turn.calls.iter_mut().filter(|call| !call.stale) {
                let key = call_key(&call.scene, &call.tool, &call.arguments, &[]);
                call.stale = self.contradicted.iter().any(|(run, of)| *run == turn.run && *of == key);
            }
        }
        let runs = context.turns.iter().filter_map(|turn| turn.run);
        context.unfounded = runs.filter(|run| self.unfounded.contains(run)).collect();
        if budget > 0 {
            context.facts = relevance::select(&self.entries, context, request, user, budget);
        }
    }
}

/// The indexes of the least important entries, without which at most `max` entries and `max_bytes` bytes are left.
fn surplus(entries: &[LedgerEntry], max: usize, max_bytes: usize) -> BTreeSet<usize> {
    let mut bytes: usize = entries.iter().map(LedgerEntry::bytes).sum();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_unstable_by_key(|at| (entries[*at].is_current(), entries[*at].fact.kind, *at));
    let mut left = entries.len();
    let is_over = |at: &usize| {
        let over = left > max || bytes > max_bytes;
        left -= 1;
        bytes -= entries[*at].bytes();
        over
    };
    order.into_iter().take_while(is_over).collect()
}

/// Remembers that the result that an entry comes from is no longer valid.
fn contradict(contradicted: &mut VecDeque<(Option<RunId>, String)>, entry: &LedgerEntry) {
    let Some(call) = &entry.call else { return };
    let of = (entry.fact.source.run, call.key.clone());
    if !contradicted.contains(&of) {
        contradicted.push_back(of);
        contradicted.drain(..contradicted.len().saturating_sub(MAX_REMEMBERED));
    }
}

/// The id of the fact stated by the event with the sequence number `seq`.
pub fn stated_fact_id(seq: u64) -> String {
    fact_id(seq, "stated")
}

/// The id of a fact: by its event and its position in it.
fn fact_id(seq: u64, place: &str) -> String {
    let mut id = content_hash(&format!("{seq}\n{place}"));
    id.truncate(ID_CHARS);
    id
}

/// SHA-256 in hex of a text.
pub fn content_hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}
