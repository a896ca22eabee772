//! The record of a tool call's end: its result, compared with what is expected and bounded, or its failure.

use serde_json::Value;

use super::{SceneTool, ToolExpectations};
use crate::adapt::MAX_MAPPED_BYTES;
use crate::run::{DocumentId, Effect, Fault, FaultClass, Outcome, POSTCONDITION, ResultNotes};
use crate::tools::{ToolError, ToolErrorKind, bound, phrase};

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    /// Its outcome.
    pub outcome: Outcome,
    /// What was found about its result, if anything.
    pub notes: Option<Box<ResultNotes>>,
    /// Whether its result is stored whole.
    pub is_whole: bool,
}

impl From<Outcome> for CallEnd {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, notes: None, is_whole: true }
    }
}

/// The terms of a call that decide about its result.
#[derive(Debug, Clone, Copy)]
pub struct ResultTerms<'a> {
    /// The call's arguments.
    pub arguments: &'a Value,
    /// The user's language.
    pub language: Option<&'a str>,
    /// Whether the result is compared with what the tool declares.
    pub is_judged: bool,
    /// What the step expects of it besides.
    pub expected: Option<&'a ToolExpectations>,
}

impl SceneTool {
    /// The end of a call with its whole result.
    pub(crate) fn end_with_result(&self, terms: ResultTerms<'_>, result: Value) -> CallEnd {
        match self.judged(terms, &result) {
            Ok(rejected) => rejected,
            Err(breaches) => {
                let say = phrase::say(&self.say, terms.language, &result, terms.arguments);
                let (outcome, is_whole) = stored_result(result, self.max_result_bytes, say);
                CallEnd { outcome, notes: notes(breaches), is_whole }
            }
        }
    }

    /// The end of a call with a result that another executor gave, and its sentence for it.
    pub(crate) fn end_with_given_result(
        &self,
        terms: ResultTerms<'_>,
        result: Value,
        say: Option<String>,
    ) -> CallEnd {
        self.judged(terms, &result).unwrap_or_else(|breaches| CallEnd {
            outcome: Outcome::Ok { result, say, whole: None },
            notes: notes(breaches),
            is_whole: true,
        })
    }

    /// The end of a read whose result is not as its tool declares or its step expects: it has failed.
    ///
    /// # Errors
    /// The breaches of a result that counts nevertheless: a write was done, so they are only noted.
    fn judged(&self, terms: ResultTerms<'_>, result: &Value) -> Result<CallEnd, Vec<String>> {
        let declared = terms.is_judged.then_some(&self.expectations);
        let all = declared.into_iter().chain(terms.expected);
        let breaches: Vec<String> =
            all.flat_map(|expected| expected.breaches(terms.arguments, result)).collect();
        if breaches.is_empty() || self.effect == Effect::Write {
            return Err(breaches);
        }
        let message = format!("the result of {} is not as expected: {}", self.name, breaches.join("; "));
        let error = Fault::new(POSTCONDITION, message).classed(FaultClass::BadData);
        // A model may be asked about the shape of the whole.
        let mappable =
            self.expectations.is_to_be_interpreted(result) && bound::size(result) <= MAX_MAPPED_BYTES;
        let max = if mappable { MAX_MAPPED_BYTES } else { self.max_result_bytes };
        let rejected = Some(bound::truncate(result.clone(), max));
        let notes = Some(Box::new(ResultNotes { breaches, rejected, mappable, ..ResultNotes::default() }));
        Ok(CallEnd { outcome: Outcome::Failed { error }, notes, is_whole: true })
    }

    pub(crate) fn end_with_error(&self, error: ToolError) -> CallEnd {
        let fault = Fault::new(&error.code, error.message)
            .classed(error.class)
            .after(error.retry_after)
            .saying(error.say);
        let outcome = match (error.kind, self.effect) {
            (ToolErrorKind::Refused, _) => Outcome::Refused { error: fault },
            (ToolErrorKind::Unknown, Effect::Write) => Outcome::Unknown { error: fault },
            // A read has no effect, so an unknown outcome is a failure.
            (ToolErrorKind::Failed, _) | (ToolErrorKind::Unknown, Effect::Read) => {
                Outcome::Failed { error: fault }
            }
        };
        outcome.into()
    }

    /// The end of a call that began and that its tool did not finish: a write may have taken effect.
    pub(crate) fn end_unfinished(&self, code: &str, message: String) -> CallEnd {
        let class = if code == "tool.timeout" { FaultClass::Timeout } else { FaultClass::Other };
        let outcome = match self.effect {
            Effect::Read => Outcome::Failed { error: Fault::new(code, message).classed(class) },
            Effect::Write => {
                let message = format!("{message}; whether it took effect is unknown");
                Outcome::Unknown { error: Fault::new(code, message).classed(class) }
            }
        };
        outcome.into()
    }
}

impl CallEnd {
    /// The end of a call whose tool read these documents.
    pub(crate) fn with_documents(mut self, documents: Vec<DocumentId>) -> Self {
        if !documents.is_empty() {
            self.notes.get_or_insert_default().documents = documents;
        }
        self
    }

    /// The end of a call with the key under which its result is found later, if it is whole and as expected.
    pub(crate) fn remembered(mut self, key: Option<String>) -> Self {
        let is_good = matches!(self.outcome, Outcome::Ok { .. }) && self.is_whole && self.notes.is_none();
        if let Some(key) = key.filter(|_| is_good) {
            self.notes = Some(Box::new(ResultNotes { remember: Some(key), ..ResultNotes::default() }));
        }
        self
    }

    /// The end of a program's read. A result that is not stored whole counts as a failure, because the program would
    /// compute with a part of it.
    pub(crate) fn whole_or_failed(self) -> Self {
        match self.outcome {
            Outcome::Ok { .. } if !self.is_whole => {
                let what = "its result is too large for a program: ask for less at once";
                Outcome::Failed { error: Fault::new("code.result", what) }.into()
            }
            _ => self,
        }
    }
}

/// What was found about a result that counts, if anything.
fn notes(breaches: Vec<String>) -> Option<Box<ResultNotes>> {
    (!breaches.is_empty()).then(|| Box::new(ResultNotes { breaches, ..ResultNotes::default() }))
}

/// The outcome with a result, and with the whole of it where a model is shown less; and whether the whole is there.
fn stored_result(result: Value, shown_bytes: usize, say: Option<String>) -> (Outcome, bool) {
    let size = bound::size(&result);
    let is_shown = size <= shown_bytes.max(bound::MIN_BOUND);
    let whole = (!is_shown && size <= bound::MAX_STORED_BYTES).then(|| result.clone());
    let is_whole = is_shown || whole.is_some();
    (Outcome::Ok { result: bound::truncate(result, shown_bytes), say, whole }, is_whole)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scene::Scene;
    use crate::tools::bound::MAX_STORED_BYTES;
    use crate::tools::{ToolContext, native};

    fn tool(effect: Effect) -> SceneTool {
        let schema = json!({"type": "object", "properties": {}});
        let does = native(|_: Value, _: ToolContext| async { Ok(Value::Null) });
        let tool = SceneTool::dynamic("Tool", "Does it.", effect, schema, does);
        let scene = Scene::builder("A").description("A").instructions("Do it.").example("do", "Tool");
        let mut tool = scene.tool(tool).build().unwrap().tools.remove(0);
        tool.expectations.not_empty = vec!["/rows".to_owned()];
        tool
    }

    fn end(effect: Effect, is_judged: bool, result: Value) -> CallEnd {
        let arguments = json!({});
        let terms = ResultTerms { arguments: &arguments, language: None, is_judged, expected: None };
        tool(effect).end_with_result(terms, result)
    }

    fn code(end: &CallEnd) -> Option<&str> {
        end.outcome.fault().map(|fault| fault.code.as_str())
    }

    #[test]
    fn unexpected_result_fails_a_read_and_is_noted_of_a_write() {
        let result = json!({"rows": []});
        let read = end(Effect::Read, true, result.clone());
        assert_eq!(code(&read), Some(POSTCONDITION));
        assert_eq!(read.notes.unwrap().rejected, Some(result.clone()));
        let written = end(Effect::Write, true, result.clone());
        assert!(matches!(written.outcome, Outcome::Ok { .. }) && written.notes.is_some(), "{written:?}");
        // A run without a mode compares nothing with what tools declare.
        assert_eq!(end(Effect::Read, false, result).notes, None);
    }

    #[test]
    fn only_a_write_that_may_have_taken_effect_has_an_unknown_outcome() {
        let unknown = || ToolError::unknown("store.commit", "the commit failed");
        let late = |effect| tool(effect).end_unfinished("tool.timeout", "it took too long".to_owned());
        for (effect, is_unknown) in [(Effect::Read, false), (Effect::Write, true)] {
            for end in [tool(effect).end_with_error(unknown()), late(effect)] {
                assert_eq!(matches!(end.outcome, Outcome::Unknown { .. }), is_unknown, "{end:?}");
            }
            let refused = tool(effect).end_with_error(ToolError::refused("shop.closed", "it is closed"));
            assert!(matches!(refused.outcome, Outcome::Refused { .. }), "{refused:?}");
        }
        assert_eq!(late(Effect::Read).outcome.fault().map(|fault| fault.class), Some(FaultClass::Timeout));
    }

    #[test]
    fn result_too_large_to_store_is_neither_remembered_nor_given_to_a_program() {
        let large = end(Effect::Read, false, json!("x".repeat(MAX_STORED_BYTES)));
        assert!(!large.is_whole);
        assert_eq!(large.clone().remembered(Some("key".to_owned())).notes, None);
        assert_eq!(code(&large.whole_or_failed()), Some("code.result"));
        let small = end(Effect::Read, false, json!({"rows": [1]}));
        assert_eq!(small.clone().whole_or_failed(), small);
        let key = small.remembered(Some("key".to_owned())).notes.and_then(|notes| notes.remember);
        assert_eq!(key.as_deref(), Some("key"));
    }
}
