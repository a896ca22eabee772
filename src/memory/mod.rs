//! Conversation memory: what a session remembers, cut to what a prompt has room for.
//!
//! **Invariant:** memory is a pure fold over the session's events, and no turn is lost: each is either
//! held word by word or covered by the summary.

mod cut;
mod digest;
mod estimate;
mod options;
pub mod prompt;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::VecDeque;

use crate::run::{Context, PendingQuestion, RunId, SessionEvent, Turn, Usage};

pub use estimate::tokens;
pub use options::Options;
pub use turn::{pending, turn_ended};

/// The least budget that [`Memory::context`] works with, in tokens; a smaller one counts as this.
pub const MIN_CONTEXT_TOKENS: usize = 256;

/// Most of one turn that is held, in tokens. The journal has it whole.
pub const MAX_TURN_TOKENS: usize = 2000;

/// Most of a summary that is held, in tokens.
pub const MAX_SUMMARY_TOKENS: usize = 1000;

/// What one conversation remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    options: Options,
    /// What stands for the turns before those held.
    summary: Option<String>,
    /// How many turns the summary covers, counted from the conversation's first.
    covered: usize,
    /// The turns after them, oldest first, each cut to [`MAX_TURN_TOKENS`].
    turns: VecDeque<Turn>,
    pending: Option<PendingQuestion>,
    /// The run that asked what is pending.
    asker: Option<RunId>,
    usage: Usage,
}

/// Turns to be folded into the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryJob {
    /// How many turns of the conversation the new summary covers; goes into `Summarised`.
    pub through: usize,
    /// The summary so far.
    pub summary: Option<String>,
    /// The turns to fold in, oldest first.
    pub turns: Vec<Turn>,
}

/// What is remembered, and the chatbot's own instructions above it: they are no turn, so they stand with
/// the summary, cut to [`MAX_SUMMARY_TOKENS`].
pub fn with_instructions(mut context: Context, instructions: Option<&str>) -> Context {
    if let Some(text) = instructions.map(str::trim).filter(|text| !text.is_empty()) {
        let text = cut::middle(text, MAX_SUMMARY_TOKENS * 4);
        let told = format!("The chatbot's instructions: {text}");
        context.summary = Some(match context.summary.take() {
            Some(summary) => format!("{told}\n{summary}"),
            None => told,
        });
    }
    context
}

impl Memory {
    /// Remembers nothing yet.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The memory after `events`: how a conversation wakes as it was.
    pub fn from_events<'a>(options: Options, events: impl IntoIterator<Item = &'a SessionEvent>) -> Self {
        let mut memory = Self::new(options);
        for event in events {
            memory.apply(event);
        }
        memory
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::SessionStarted {} => {}
            SessionEvent::TurnEnded { turn, pending, usage } => {
                self.turns.push_back(cut::turn(turn, MAX_TURN_TOKENS * 4));
                // A run that waited for a person ends late: what a newer one has asked since stays.
                let late = self.pending.is_some() && turn.run.is_some() && turn.run < self.asker;
                if !late {
                    self.pending.clone_from(pending);
                    self.asker = turn.run;
                }
                self.usage += *usage;
            }
            SessionEvent::Summarised { through, summary, usage, .. } => {
                self.usage += *usage;
                // A summary that covers less than the one in force came too late.
                if *through >= self.covered {
                    let folded = (through - self.covered).min(self.turns.len());
                    self.turns.drain(..folded);
                    self.covered += folded;
                    self.summary = Some(cut::middle(summary, MAX_SUMMARY_TOKENS * 4));
                }
            }
            SessionEvent::SummaryFailed { usage, .. } => self.usage += *usage,
        }
    }

    /// What a run that starts now is told, in at most `budget` tokens by the rule of [`tokens`] over
    /// its JSON (at least [`MIN_CONTEXT_TOKENS`]): the summary always, the pending question, and the
    /// newest turns that fit, the last one always, shortened where it must be. Turns in between that
    /// are neither summarised nor fit stand in the summary with a line each.
    pub fn context(&self, budget: usize) -> Context {
        let mut context = Context::default();
        let frame = estimate::json(&context);
        let mut rest = budget.max(MIN_CONTEXT_TOKENS).saturating_mul(4).saturating_sub(frame);

        context.pending = self.pending.as_ref().and_then(|pending| cut::pending(pending, rest / 3));
        rest = rest.saturating_sub(context.pending.as_ref().map_or(0, estimate::json));

        let share = if self.turns.is_empty() { rest } else { rest / 3 };
        // Two quotation marks.
        let mut summary = self.summary.as_ref().map(|summary| cut::middle(summary, share.saturating_sub(2)));
        rest = rest.saturating_sub(summary.as_ref().map_or(2, |summary| cut::size(summary) + 2));

        // Room for the lines of turns that do not fit, needed only if there are such.
        let reserve = rest / 6;
        let mut turns = self.newest(rest);
        if turns.len() < self.turns.len() {
            turns = self.newest(rest - reserve);
            let left_out = self.turns.len() - turns.len();
            let used: usize = turns.iter().map(|turn| estimate::json(turn) + 1).sum();
            // Beside its text, the line break before it.
            let room = rest.saturating_sub(used + 2);
            let lines = digest::lines(self.turns.iter().take(left_out), room);
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

    /// The newest turns, oldest first, that fit `room` quarters of a token.
    fn newest(&self, room: usize) -> Vec<Turn> {
        let mut rest = room;
        let mut turns = VecDeque::new();
        for turn in self.turns.iter().rev().take(self.options.max_turns_in_prompt.max(1)) {
            // The last turn may take all there is; an older one no more than a third.
            let most = if turns.is_empty() { room.saturating_sub(1) } else { room / 3 };
            let turn = cut::turn(turn, most);
            let Some(left) = rest.checked_sub(estimate::json(&turn) + 1) else { break };
            rest = left;
            turns.push_front(turn);
        }
        turns.into()
    }

    /// What to summarise now, if the memory together with one more turn like the last would take more
    /// than its share of a window of `window` tokens, or hold more turns than a prompt may. The newest
    /// `keep_turns` stay. One job is never larger than the memory's share itself; where more is to be
    /// done, asking again after `Summarised` tells.
    pub fn needs_summary(&self, window: usize) -> Option<SummaryJob> {
        let keep = self.options.keep_turns.max(1);
        let most = self.options.max_turns_in_prompt.max(1);
        let foldable = self.turns.len().checked_sub(keep).filter(|n| *n > 0)?;
        let limit = self.options.budget(window).saturating_mul(4);
        let sizes: Vec<usize> = self.turns.iter().map(|turn| estimate::json(turn) + 1).collect();
        let mut held: usize = sizes.iter().sum::<usize>() + self.fixed();
        let next = sizes.last().copied().unwrap_or_default();
        if held + next <= limit && self.turns.len() < most {
            return None;
        }
        let mut count = 0;
        let mut job = 0;
        for size in sizes.iter().take(foldable) {
            // Half of the share is left free, so that not every turn asks for a summary.
            if count > 0 && held <= limit / 2 && self.turns.len() - count <= (most / 2).max(keep) {
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
            turns: self.turns.iter().take(count).map(|turn| cut::turn(turn, (limit / 2).max(800))).collect(),
        })
    }

    /// What the memory takes beside its turns, in quarters of a token.
    fn fixed(&self) -> usize {
        estimate::json(&Context {
            summary: self.summary.clone(),
            turns: Vec::new(),
            pending: self.pending.clone(),
        })
    }

    /// About how many tokens the whole memory would take in a prompt.
    pub fn tokens(&self) -> usize {
        let turns: usize = self.turns.iter().map(|turn| estimate::json(turn) + 1).sum();
        (turns + self.fixed()).div_ceil(4)
    }

    /// The turns held word by word, oldest first.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = &Turn> {
        self.turns.iter()
    }

    /// How many turns ended in the whole conversation.
    pub fn total_turns(&self) -> usize {
        self.covered + self.turns.len()
    }

    /// How many of them, the oldest, only the summary covers.
    pub fn covered(&self) -> usize {
        self.covered
    }

    /// The summary, if there is one.
    pub fn summary(&self) -> Option<&str> {
        self.summary.as_deref()
    }

    /// The question that the last turn ended with, if it did; that of the newest request, where an older one
    /// ended later.
    pub fn pending(&self) -> Option<&PendingQuestion> {
        self.pending.as_ref()
    }

    /// What the conversation has cost, its runs and its summaries.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}

impl SummaryJob {
    /// The summary that is made without a model: the one so far and a line for each turn, both bounded.
    /// Where summarising failed, `SummaryFailed` is appended and then `Summarised` with this text.
    pub fn fallback(&self) -> String {
        const HALF: usize = MAX_SUMMARY_TOKENS * 2;
        let lines = digest::lines(self.turns.iter(), HALF - 2);
        match &self.summary {
            Some(summary) => format!("{}\n{lines}", cut::middle(summary, HALF)),
            None => lines,
        }
    }
}
