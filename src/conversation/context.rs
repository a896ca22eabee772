//! What a run knows of the conversation when it starts.

use super::{ConversationState, document_choice};
use crate::memory::{self, Memory};
use crate::run::{Context, RunState, SessionEvent, Usage};

/// Tokens of the words around the facts in a prompt.
const FACTS_SECTION: usize = 96;

impl ConversationState {
    /// The context of a run that starts now; empty for one that started before, whose context is in its
    /// journal. A client that keeps its conversation itself sends the turns with its request.
    pub(crate) fn context_for(&self, run: &RunState) -> Context {
        let Some(queued) = run.queued.as_ref().filter(|_| run.started.is_none()) else {
            return Context::default();
        };
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
                let ledger = self.history.ledger();
                let most = self.limits.memory.facts_tokens;
                // Facts are a part of the memory's share. Turns leave them room, where it is a small part of theirs.
                let reserved = if ledger.facts().len() > 0 && budget >= 8 * most { most } else { 0 };
                let mut context = self.history.memory().context(budget - reserved);
                self.name_chosen_documents(&mut context, &queued.request);
                let held = memory::tokens(&serde_json::to_string(&context).unwrap_or_default());
                let tokens = most.min(budget.saturating_sub(held + FACTS_SECTION));
                ledger.inform(&mut context, &queued.request, &queued.user, tokens);
                context
            }
        };
        memory::with_instructions(context, queued.instructions.as_deref())
    }

    /// A reply to the question which documents are meant names them: the request is about these.
    fn name_chosen_documents(&self, context: &mut Context, reply: &str) {
        let Some(pending) = &mut context.pending else { return };
        let asked = self.history.memory().pending().map(|asked| asked.question.choices.as_slice());
        for document in document_choice::named(asked.unwrap_or_default(), reply) {
            if pending.documents.iter().all(|other| other.id != document.id) {
                pending.documents.push(document);
            }
        }
    }
}
