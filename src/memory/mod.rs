//! Conversation memory: what a session remembers, truncated to fit into a prompt.
//!
//! **Invariant:** memory is a pure fold over the session's events, and no turn is lost: each is either kept
//! verbatim or covered by the summary.

mod digest;
mod estimate;
mod forget;
mod kept;
mod ledger;
mod options;
mod packed;
mod quotes;
#[cfg(test)]
mod tests;
mod truncate;
mod turn;
mod turn_summary;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::llm::sections::INSTRUCTIONS_PREFIX;
use crate::run::{Attempt, Context, Fault, PendingQuestion, RunId, SessionEvent, Turn, Usage};

pub(crate) use estimate::json_tokens;
pub use estimate::tokens;
pub(crate) use forget::without_document;
use kept::KeptTurn;
pub use ledger::{
    FactCounts, FactLedger, FactRefusal, LedgerFact, MAX_CLAIM_CHARS, MAX_FACT_BYTES, MAX_FACTS,
    content_hash, stated_fact_id,
};
pub use options::Options;
pub(crate) use packed::PackedHistory;
pub(crate) use turn::{cost_outside_turns, turn_after};
pub use turn::{pending_question, turn_ended};
pub use turn_summary::{PartEnd, TurnSummary, WrittenMemory, turn_text};

/// The minimum budget of [`Memory::context`], in tokens; a smaller one is raised to this.
pub const MIN_CONTEXT_TOKENS: usize = 256;

/// Maximum size of a kept turn, in tokens. The journal has the full turn.
pub const MAX_TURN_TOKENS: usize = 2000;

/// Maximum size of the summary, in tokens.
pub const MAX_SUMMARY_TOKENS: usize = 1000;

/// The size of a memory besides its turns and its summary, in bytes.
const MEMORY_BYTES: usize = 4096;

/// While the oldest turns are being summarised, the memory may exceed the number of turns that a prompt may have by a
/// quarter. So a request rarely waits for a summary, and in the meantime a prompt has a line for each turn that it
/// lacks.
const PART_BEYOND_PROMPT: usize = 4;

/// The memory of one conversation. Its serialised form is not stored: it only serves to pack waiting conversations in
/// memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    options: Options,
    /// The summary of the turns before the kept ones.
    summary: Option<String>,
    /// Number of turns that the summary covers, from the first turn of the conversation.
    covered: usize,
    /// The later turns, oldest first, each truncated to [`MAX_TURN_TOKENS`].
    turns: VecDeque<KeptTurn>,
    #[serde(with = "packed::as_json")]
    pending: Option<PendingQuestion>,
    /// The run of the latest turn that set `pending`.
    pending_run: Option<RunId>,
    /// The last question that lists documents, as long as the turns after it quote documents and ask nothing.
    #[serde(with = "packed::as_json")]
    listing: Option<Box<PendingQuestion>>,
    usage: Usage,
}

/// How full a memory is, in quarters of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MemoryFill {
    held: usize,
    /// The size of the last turn.
    last: usize,
    /// How many turns are kept verbatim.
    turns: usize,
}

impl MemoryFill {
    /// Returns whether the memory plus one more turn like the last would exceed its share of a window of `window` tokens, or hold
    /// more turns than a prompt may.
    pub(crate) fn needs_summary(&self, options: &Options, window: usize) -> bool {
        let limit = options.budget(window).saturating_mul(4);
        let is_full = self.held + self.last > limit || self.turns >= options.max_turns_in_prompt.max(1);
        is_full && self.turns > options.keep_turns.max(1)
    }

    /// Returns whether a summary is needed before the next request: the memory exceeds its share of a window of `window` tokens,
    /// or holds more than a quarter more turns than a prompt may. Then it also [needs](Self::needs_summary) one.
    pub(crate) fn is_overdue(&self, options: &Options, window: usize) -> bool {
        let limit = options.budget(window).saturating_mul(4);
        let max = options.max_turns_in_prompt.max(1);
        let is_over = self.held > limit || self.turns > max + max / PART_BEYOND_PROMPT;
        is_over && self.turns > options.keep_turns.max(1)
    }
}

/// A request to fold turns into the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryJob {
    /// Number of turns of the conversation that the new summary covers; goes into `Summarised`.
    pub through: usize,
    /// The summary so far.
    pub summary: Option<String>,
    /// The turns to fold in, oldest first.
    pub turns: Vec<Turn>,
}

/// Adds the chatbot's own instructions to the context. They are not a turn, so they precede the summary,
/// truncated to [`MAX_SUMMARY_TOKENS`].
pub fn with_instructions(mut context: Context, instructions: Option<&str>) -> Context {
    if let Some(text) = instructions.map(str::trim).filter(|text| !text.is_empty()) {
        let text = truncate::middle(text, MAX_SUMMARY_TOKENS * 4);
        let instructions_text = format!("{INSTRUCTIONS_PREFIX}{text}");
        context.summary = Some(match context.summary.take() {
            Some(summary) => format!("{instructions_text}\n{summary}"),
            None => instructions_text,
        });
    }
    context
}

impl Memory {
    /// An empty memory.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The memory after `events`, which restores a conversation.
    pub fn from_events<'a>(options: Options, events: impl IntoIterator<Item = &'a SessionEvent>) -> Self {
        let mut memory = Self::new(options);
        for event in events {
            memory.apply(event);
        }
        memory
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::SessionStarted {} => {}
            SessionEvent::TurnEnded { turn, pending, usage, origin } => {
                self.turns.push_back(KeptTurn::of(turn));
                // A run that waited for a person may end late: a question that a newer run has asked since is
                // kept.
                let late = self.pending.is_some() && turn.run.is_some() && turn.run < self.pending_run;
                if !late {
                    self.pending.clone_from(pending);
                    self.pending_run = turn.run;
                    let quotes = origin.as_ref().is_some_and(|origin| !origin.quotes.is_empty());
                    self.listing = match pending {
                        Some(asked) if !asked.question.choices.is_empty() && asked.unconfirmed.is_empty() => {
                            Some(Box::new(asked.clone()))
                        }
                        None if quotes => self.listing.take(),
                        _ => None,
                    };
                }
                self.usage += *usage;
            }
            SessionEvent::Summarised { through, summary, usage, .. } => {
                self.usage += *usage;
                // A summary that covers less than the current one is outdated.
                if *through >= self.covered {
                    let folded = (through - self.covered).min(self.turns.len());
                    let turns: Vec<KeptTurn> = self.turns.drain(..folded).collect();
                    self.covered += folded;
                    self.summary = match summary.is_empty() {
                        false => Some(truncate::middle(summary, MAX_SUMMARY_TOKENS * 4)),
                        // It was erased with a document: a new one is made of the remaining turns.
                        true => {
                            let said = turns.iter().map(KeptTurn::said);
                            Some(fallback_summary(self.summary.as_deref(), said))
                        }
                    };
                }
            }
            SessionEvent::SummaryFailed { usage, .. } => self.usage += *usage,
            // Facts are in the ledger.
            SessionEvent::QuestionLapsed { .. } => self.pending = None,
            SessionEvent::Fact { .. } => {}
        }
    }

    /// Returns whether there is a last list of documents that [`Memory::listing_again`] asks about.
    pub(crate) fn may_list_again(&self) -> bool {
        self.pending.is_none() && self.listing.is_some()
    }

    /// The same memory with the last list of documents as its pending question, for a request that names another
    /// document of the list. `None` if a question is pending, or the conversation has moved on.
    pub(crate) fn listing_again(&self) -> Option<Self> {
        let listing = self.listing.as_deref().filter(|_| self.pending.is_none())?;
        Some(Self { pending: Some(listing.clone()), ..self.clone() })
    }

    /// The context for a run that starts now, in at most `budget` tokens (at least [`MIN_CONTEXT_TOKENS`]),
    /// measured by [`tokens`] over its JSON. It always holds the summary and the last turn, truncated if
    /// needed, and the pending question and further turns, newest first, if they fit. Turns in between,
    /// neither summarised nor fitting, get one line each in the summary.
    pub fn context(&self, budget: usize) -> Context {
        let mut context = Context::default();
        let frame = estimate::json_size(&context);
        let mut rest = budget.max(MIN_CONTEXT_TOKENS).saturating_mul(4).saturating_sub(frame);

        context.pending = self.pending.as_ref().and_then(|pending| truncate::pending(pending, rest / 3));
        rest = rest.saturating_sub(context.pending.as_ref().map_or(0, estimate::json_size));

        let share = if self.turns.is_empty() { rest } else { rest / 3 };
        // Minus two quotation marks.
        let mut summary =
            self.summary.as_ref().map(|summary| truncate::middle(summary, share.saturating_sub(2)));
        rest =
            rest.saturating_sub(summary.as_ref().map_or(2, |summary| truncate::json_text_size(summary) + 2));

        // Room for the lines of turns that do not fit, needed only if there are any.
        let reserve = rest / 6;
        let (mut turns, _) = self.newest_turns(rest);
        if turns.len() < self.turns.len() {
            let (fewer, used) = self.newest_turns(rest - reserve);
            turns = fewer;
            let left_out = self.turns.len() - turns.len();
            // Minus the line break before the lines.
            let room = rest.saturating_sub(used + 2);
            let lines = digest::lines(self.turns.iter().take(left_out).map(KeptTurn::said), room);
            summary = match summary {
                Some(summary) if !lines.is_empty() => Some(format!("{summary}\n{lines}")),
                None if !lines.is_empty() => Some(lines),
                summary => summary,
            };
        }
        context.summary = summary;
        context.turns = turns;
        context
    }

    /// The newest turns that fit into `room` quarters of a token, oldest first, and how much of it they take.
    fn newest_turns(&self, room: usize) -> (Vec<Turn>, usize) {
        let mut rest = room;
        let mut turns = VecDeque::new();
        for kept in self.turns.iter().rev().take(self.options.max_turns_in_prompt.max(1)) {
            // The last turn may take all the room, an older one at most a third.
            let max = if turns.is_empty() { room.saturating_sub(1) } else { room / 3 };
            let (turn, size) = kept.within(max);
            let Some(left) = rest.checked_sub(size) else { break };
            rest = left;
            turns.push_front(turn);
        }
        (turns.into(), room - rest)
    }

    /// Returns what to summarise now: `Some` if the memory plus one more turn like the last would exceed its share of
    /// a window of `window` tokens, or hold more turns than a prompt may. The newest `keep_turns` are kept. A
    /// job never exceeds the memory's share; if more must be summarised, call this again after `Summarised`.
    pub fn needs_summary(&self, window: usize) -> Option<SummaryJob> {
        let fill = self.fill();
        if !fill.needs_summary(&self.options, window) {
            return None;
        }
        let keep = self.options.keep_turns.max(1);
        let max = self.options.max_turns_in_prompt.max(1);
        let foldable = self.turns.len().saturating_sub(keep);
        let limit = self.options.budget(window).saturating_mul(4);
        let mut held = fill.held;
        let mut count = 0;
        let mut job = 0;
        for size in self.turns.iter().map(KeptTurn::size).take(foldable) {
            // Half of the share is freed, so that not every turn requests a summary.
            if count > 0 && held <= limit / 2 && self.turns.len() - count <= (max / 2).max(keep) {
                break;
            }
            if count > 0 && job + size > limit {
                break;
            }
            held -= size;
            job += size;
            count += 1;
        }
        Some(SummaryJob {
            through: self.covered + count,
            summary: self.summary.clone(),
            turns: self.turns.iter().take(count).map(|turn| turn.within((limit / 2).max(800)).0).collect(),
        })
    }

    /// How full it is.
    pub(crate) fn fill(&self) -> MemoryFill {
        let held = self.turns.iter().map(KeptTurn::size).sum::<usize>() + self.fixed_size();
        let last = self.turns.back().map_or(0, KeptTurn::size);
        MemoryFill { held, last, turns: self.turns.len() }
    }

    /// Its approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let turns: usize = self.turns.iter().map(KeptTurn::size).sum();
        MEMORY_BYTES + turns + self.summary.as_ref().map_or(0, String::len)
    }

    /// The size of the memory without its turns, in quarters of a token.
    fn fixed_size(&self) -> usize {
        const NULL: usize = 4;
        let frame = estimate::json_size(&Context::default()).saturating_sub(2 * NULL);
        let summary = self.summary.as_ref().map_or(NULL, estimate::json_size);
        frame + summary + self.pending.as_ref().map_or(NULL, estimate::json_size)
    }

    /// The approximate number of tokens of the whole memory in a prompt.
    pub fn tokens(&self) -> usize {
        self.fill().held.div_ceil(4)
    }

    /// The turns kept verbatim, oldest first.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = Turn> {
        self.turns.iter().map(KeptTurn::turn)
    }

    /// The number of turns that ended in the whole conversation.
    pub fn total_turns(&self) -> usize {
        self.covered + self.turns.len()
    }

    /// The number of oldest turns that only the summary covers.
    pub fn covered(&self) -> usize {
        self.covered
    }

    /// The summary, if there is one.
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// The pending question of the last turn, if there is one. If an older request ended later, the question
    /// of the newer one.
    pub fn pending(&self) -> Option<&PendingQuestion> {
        self.pending.as_ref()
    }

    /// The usage of the conversation, by its runs and its summaries.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}

impl SummaryJob {
    /// The events of a summary that models were asked for, which cost `usage` over these `attempts`: the summary that
    /// they wrote; or why there is none, and a summary made without a model, so that each summary ends.
    pub fn events(
        &self,
        written: Result<WrittenMemory, Fault>,
        usage: Usage,
        attempts: Vec<Attempt>,
    ) -> Vec<SessionEvent> {
        match written {
            Ok(WrittenMemory { text: summary, sources, .. }) => {
                let through = self.through;
                vec![SessionEvent::Summarised { through, summary, usage, attempts, sources }]
            }
            Err(error) => {
                vec![SessionEvent::SummaryFailed { error, usage, attempts }, self.made_by_rules()]
            }
        }
    }

    /// The event of a summary that is made without a model.
    pub fn made_by_rules(&self) -> SessionEvent {
        SessionEvent::Summarised {
            through: self.through,
            summary: self.fallback(),
            usage: Usage::default(),
            attempts: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// The summary made without a model: the summary so far and one line per turn, both bounded.
    pub fn fallback(&self) -> String {
        let said = self.turns.iter().map(|turn| (turn.request.as_str(), turn.answer.as_str()));
        fallback_summary(self.summary.as_deref(), said)
    }
}

fn fallback_summary<'a>(
    summary: Option<&str>,
    said: impl DoubleEndedIterator<Item = (&'a str, &'a str)> + ExactSizeIterator,
) -> String {
    const HALF: usize = MAX_SUMMARY_TOKENS * 2;
    let lines = digest::lines(said, HALF - 2);
    match summary {
        Some(summary) => format!("{}\n{lines}", truncate::middle(summary, HALF)),
        None => lines,
    }
}
