//! The facts of a conversation as clients get them, and as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::invisible::one_line;
use crate::memory::{FactLedger, LedgerFact};
use crate::run::{FactKind, FactSource, RunId, SessionId};

/// Which facts are listed.
#[derive(Debug, Clone, Default)]
pub struct FactFilter {
    /// Only these kinds; all if empty.
    pub kinds: Vec<FactKind>,
    /// Only facts that came up in this run.
    pub run: Option<RunId>,
    /// Also those that were superseded.
    pub with_superseded: bool,
}

impl FactFilter {
    fn admits(&self, fact: &LedgerFact) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&fact.kind))
            && self.run.is_none_or(|run| fact.source.run == Some(run))
            && (self.with_superseded || fact.superseded_by.is_none())
    }
}

/// A page of the facts of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FactPage {
    /// The conversation.
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// The oldest first. Contradictions stand side by side until one of them is superseded.
    pub facts: Vec<LedgerFact>,
    /// The `after` of the next page; absent if this is the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many facts were dropped because the conversation has too many, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
}

impl FactPage {
    /// At most `limit` facts of a ledger behind the one with the id `after`; `None` if there is none with that id.
    pub fn new(
        session_id: SessionId,
        ledger: &FactLedger,
        filter: &FactFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Option<Self> {
        let skipped = match after {
            Some(after) => ledger.facts().position(|fact| fact.id == after)? + 1,
            None => 0,
        };
        let mut rest = ledger.facts().skip(skipped).filter(|fact| filter.admits(fact));
        let facts: Vec<LedgerFact> = rest.by_ref().take(limit).cloned().collect();
        let next = rest.next().and_then(|_| facts.last()).map(|last| last.id.clone());
        let dropped = ledger.dropped().iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect();
        Some(Self { session_id, facts, next, dropped })
    }

    /// The page as Markdown: a section for each kind, the most trusted first.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Continuity of {}\n", one_line(self.session_id.as_str()));
        for kind in FactKind::ALL {
            let mut facts = self.facts.iter().filter(|fact| fact.kind == kind).peekable();
            if facts.peek().is_none() {
                continue;
            }
            let _ = write!(text, "\n## {}\n\n", heading(kind));
            for fact in facts {
                let _ = writeln!(text, "{}", line(fact));
            }
        }
        if self.facts.is_empty() {
            text.push_str("\nNothing is known.\n");
        }
        for (kind, count) in &self.dropped {
            let _ = write!(text, "\n{count} {kind} facts were dropped: the conversation has too many.\n");
        }
        text
    }
}

fn heading(kind: FactKind) -> &'static str {
    match kind {
        FactKind::Given => "Given: the user said it",
        FactKind::Verified => "Verified: a tool found it",
        FactKind::Quoted => "Quoted: a text says it",
        FactKind::Derived => "Derived: a model concluded it",
        FactKind::Guess => "Guess: a model said it, without a source",
    }
}

fn line(fact: &LedgerFact) -> String {
    // What others wrote must not look like Markdown of this document.
    let mut claim = String::new();
    for c in one_line(&fact.claim).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|') {
            claim.push('\\');
        }
        claim.push(c);
    }
    let struck = if fact.superseded_by.is_some() { format!("~~{claim}~~") } else { claim };
    let mut line = format!("- `{}` {struck}", fact.id);
    let mut notes = source_notes(&fact.source);
    notes.extend(fact.at.map(|at| at.strftime("%Y-%m-%d").to_string()));
    let is_there = if fact.is_unresolved { ", which is not there" } else { "" };
    notes.extend(fact.supersedes.as_ref().map(|id| format!("supersedes `{}`{is_there}", one_line(id))));
    notes.extend(fact.superseded_by.as_ref().map(|id| format!("superseded by `{id}`")));
    if !notes.is_empty() {
        let _ = write!(line, " ({})", notes.join(", "));
    }
    line
}

/// Where a fact comes from, in words.
fn source_notes(source: &FactSource) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(source.tool.as_ref().map(|tool| format!("`{}`", one_line(tool).replace('`', "'"))));
    if let Some(pointer) = source.pointer.as_ref().filter(|pointer| !pointer.is_empty()) {
        notes.push(format!("`{}`", one_line(pointer).replace('`', "'")));
    }
    if let Some(span) = &source.document {
        let document = one_line(&span.document).replace('`', "'");
        notes.push(format!("document `{document}` bytes {} to {}", span.start, span.end));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::content_hash;
    use crate::run::{SessionEvent, StatedFact};

    fn ledger() -> FactLedger {
        let stated = |claim: &str, supersedes: Option<String>| SessionEvent::Fact {
            fact: StatedFact {
                kind: FactKind::Given,
                claim: claim.to_owned(),
                source: FactSource::default(),
                hash: content_hash(claim),
                supersedes,
                replaces: None,
                confidence: None,
                at: "2026-06-01T09:00[Europe/Rome]".parse().unwrap(),
            },
        };
        let mut ledger = FactLedger::default();
        ledger.apply(1, &stated("The limit is *500* euros <b>", None));
        let first = ledger.facts().next().unwrap().id.clone();
        ledger.apply(2, &stated("The limit is 600 euros", Some(first)));
        ledger.apply(3, &stated("My manager is Rossi", None));
        ledger
    }

    fn page(filter: &FactFilter, after: Option<&str>, limit: usize) -> FactPage {
        FactPage::new(SessionId::new("s-1").unwrap(), &ledger(), filter, after, limit).unwrap()
    }

    #[test]
    fn facts_are_listed_page_by_page() {
        let all = FactFilter { with_superseded: true, ..FactFilter::default() };
        assert_eq!(page(&all, None, 10).facts.len(), 3);
        assert_eq!(page(&FactFilter::default(), None, 10).facts.len(), 2);
        let first = page(&all, None, 2);
        let second = page(&all, first.next.as_deref(), 2);
        assert_eq!((first.facts.len(), second.facts.len(), second.next), (2, 1, None));
        let guesses = FactFilter { kinds: vec![FactKind::Guess], ..all };
        assert!(page(&guesses, None, 10).facts.is_empty());
        assert!(FactPage::new(SessionId::new("s").unwrap(), &ledger(), &guesses, Some("none"), 1).is_none());
    }

    #[test]
    fn markdown_shows_kinds_sources_and_what_was_superseded() {
        let all = FactFilter { with_superseded: true, ..FactFilter::default() };
        insta::assert_snapshot!(page(&all, None, 10).markdown());
    }
}
