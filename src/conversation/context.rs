//! The context that a run gets of its conversation when it starts.

use super::waiting_history::RememberedHistory;
use super::{ConversationState, document_choice};
use crate::memory::{self, Memory};
use crate::run::{Context, NamedDocument, RunQueued, RunState, SessionEvent, Usage};

/// Tokens of the text around the facts in a prompt.
const FACTS_SECTION: usize = 96;

/// The context of a conversation for a run that starts.
#[derive(Debug, Default)]
pub(crate) struct StartingContext {
    /// What it knows; stored with it.
    pub(crate) context: Context,
    /// The documents that the pending question lists: its request may name some of them, or others.
    pub(crate) listed: Vec<NamedDocument>,
}

impl ConversationState {
    /// The context of a run that starts now; empty for one that started before, whose context is in its
    /// journal. A client that keeps its conversation itself sends the turns with its request. `None` if what the conversation
    /// remembers cannot be read.
    pub(crate) fn context_for(&mut self, run: &RunState) -> Option<StartingContext> {
        let Some(queued) = run.queued.as_ref().filter(|_| run.started.is_none()) else {
            return Some(StartingContext::default());
        };
        let mut listed = Vec::new();
        let budget = self.limits.memory.budget(self.limits.window);
        let context = match &queued.history {
            Some(turns) => {
                let mut memory = Memory::new(self.limits.memory.clone());
                let last = turns.len().saturating_sub(1);
                for (at, turn) in turns.iter().cloned().enumerate() {
                    let pending = queued.pending.clone().filter(|_| at == last);
                    memory.apply(&SessionEvent::TurnEnded {
                        turn,
                        pending,
                        usage: Usage::default(),
                        origin: None,
                    });
                }
                memory.context(budget)
            }
            None => {
                // A question that waits for a person's decision is the newer one.
                let asks_again =
                    || self.runs.parked().next().is_none() && document_choice::asks_again(&queued.request);
                let options = &self.limits.memory;
                let read =
                    |known: &RememberedHistory| own_context(known, queued, options, budget, asks_again);
                let (context, choices) = self.history.remembered(read)?;
                listed = choices;
                context
            }
        };
        let context = memory::with_instructions(context, queued.instructions.as_deref());
        Some(StartingContext { context, listed })
    }
}

/// The context for a run from what its conversation remembers, in at most `budget` tokens, and the documents that the
/// pending question lists.
fn own_context(
    known: &RememberedHistory,
    queued: &RunQueued,
    options: &memory::Options,
    budget: usize,
    asks_again: impl FnOnce() -> bool,
) -> (Context, Vec<NamedDocument>) {
    let RememberedHistory { memory, ledger } = known;
    let max = options.facts_tokens;
    let has_facts = ledger.facts().len() > 0;
    // Facts are a part of the memory's share. Turns leave room for them if that is a small part of theirs.
    let reserved = if has_facts && budget >= 8 * max { max } else { 0 };
    let again = (memory.may_list_again() && asks_again()).then(|| memory.listing_again()).flatten();
    let memory = again.as_ref().unwrap_or(memory);
    let mut context = memory.context(budget - reserved);
    let listed = memory.pending().into_iter().flat_map(|asked| asked.question.choices.clone()).collect();
    // Without facts no room is needed.
    let room =
        |context: &Context| max.min(budget.saturating_sub(memory::json_tokens(context) + FACTS_SECTION));
    let tokens = if has_facts { room(&context) } else { 0 };
    ledger.inform(&mut context, &queued.request, &queued.user, tokens);
    (context, listed)
}
