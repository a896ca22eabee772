//! Facts that people state in a conversation, or correct: each is appended by itself, after those before it, so that
//! it is judged by the ledger that it changes.

use jiff::Zoned;

use super::commands::refuse;
use super::input::CallerId;
use super::side_effect::SideEffect;
use super::{Awake, ConversationState, MAX_COMMANDS, Phase, faults};
use crate::memory::{FactRefusal, content_hash, stated_fact_id};
use crate::run::{FactKind, FactSource, Fault, SessionEvent, StatedFact};

/// A person's statement of a fact.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactStatement {
    pub(crate) claim: String,
    /// The fact that it takes the place of, by its id or the beginning of it.
    pub(crate) corrects: Option<String>,
    pub(crate) by: String,
    /// When, and where.
    pub(crate) at: Zoned,
}

/// The result of a statement.
enum StatementOutcome {
    New(Box<StatedFact>),
    /// The person stated it before, as the fact with this id. A second one would stay in force when the first is
    /// corrected.
    Known(String),
}

impl ConversationState {
    pub(super) fn on_statement(
        &mut self,
        caller: CallerId,
        statement: FactStatement,
        out: &mut Vec<SideEffect>,
    ) {
        self.received += 1;
        match self.phase {
            // A conversation that is being erased does not change.
            Phase::Erasing { .. } => refuse(caller, faults::being_erased(&self.session), out),
            _ if self.backlog.statements.len() >= MAX_COMMANDS => {
                refuse(caller, faults::too_many_commands(), out)
            }
            _ => self.backlog.statements.push_back((caller, statement)),
        }
    }

    /// Appends the next statement, unless one is being appended.
    pub(super) fn append_statement(&mut self, out: &mut Vec<SideEffect>) {
        // A fact behind a turn that was not reported yet is not in the ledger by which the next one is judged.
        while !self.is_stating()
            && !self.history.is_behind()
            && let Some((caller, statement)) = self.backlog.statements.pop_front()
        {
            match self.stated_fact(statement) {
                Ok(StatementOutcome::Known(fact)) => out.push(SideEffect::ReplyStated { caller, fact }),
                Ok(StatementOutcome::New(fact)) => {
                    if let Phase::Awake(Awake { stating, .. }) = &mut self.phase {
                        *stating = true;
                    }
                    out.push(SideEffect::AppendFact { caller, fact: *fact });
                }
                Err(fault) => refuse(caller, fault, out),
            }
        }
    }

    fn stated_fact(&self, statement: FactStatement) -> Result<StatementOutcome, Fault> {
        let FactStatement { claim, corrects, by, at } = statement;
        // Nothing was asked here, or it was erased.
        if self.history.owner.is_none() {
            return Err(faults::unknown_session(&self.session));
        }
        let kind = FactKind::Given;
        let (supersedes, replaces) = match corrects {
            Some(id) => {
                let corrected = self.history.peeked(|known| {
                    let fact = known.ledger.correctable(&id, kind, &by);
                    fact.map(|fact| (Some(fact.id.clone()), Some(fact.source.clone()))).map_err(refusal_fault)
                });
                corrected.ok_or_else(|| faults::behind(&self.session))??
            }
            None => {
                let known =
                    self.history.peeked(|known| known.ledger.given(&claim, &by).map(|f| f.id.clone()));
                if let Some(known) = known.ok_or_else(|| faults::behind(&self.session))? {
                    return Ok(StatementOutcome::Known(known));
                }
                (None, None)
            }
        };
        let hash = content_hash(&claim);
        let source = FactSource { by: Some(by), ..FactSource::default() };
        let fact = StatedFact { kind, claim, source, hash, supersedes, replaces, confidence: None, at };
        Ok(StatementOutcome::New(Box::new(fact)))
    }

    pub(super) fn on_fact_appended(
        &mut self,
        caller: CallerId,
        result: Result<(u64, SessionEvent), Fault>,
        out: &mut Vec<SideEffect>,
    ) {
        if let Phase::Awake(Awake { stating, .. }) | Phase::Failing { stating, .. } = &mut self.phase {
            *stating = false;
        }
        match result {
            Ok((seq, event)) => {
                self.history.extend(vec![(seq, event)]);
                out.push(SideEffect::ReplyStated { caller, fact: stated_fact_id(seq) });
            }
            Err(fault) => {
                refuse(caller, fault.clone(), out);
                self.fail(&fault, out);
            }
        }
    }

    /// Returns whether a statement is being appended.
    pub(super) fn is_stating(&self) -> bool {
        matches!(self.phase, Phase::Awake(Awake { stating: true, .. }) | Phase::Failing { stating: true, .. })
    }
}

fn refusal_fault(refusal: FactRefusal) -> Fault {
    let code = match &refusal {
        FactRefusal::Unknown(_) => "fact.unknown",
        FactRefusal::Superseded { .. } => "fact.superseded",
        FactRefusal::User(_) => "fact.user",
        FactRefusal::Kind { .. } => "fact.kind",
    };
    Fault::new(code, refusal.to_string())
}
