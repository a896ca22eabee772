//! Binding a plan that succeeded to the template of its request: where each argument comes from.

use std::collections::BTreeMap;

use serde_json::Value;

use super::template::{RequestTemplate, SpanValue, TemplateSpan};
use crate::language::text;
use crate::plan::{Plan, PreparedCall, Reference, Step};
use crate::run::{LearnedCall, LearnedPlan, LearnedStep, SpanForm, ValueBinding};

/// How deep nested arguments are bound.
const MAX_DEPTH: u8 = 8;

/// The plan with placeholders in place of its values; `None` unless every argument is bound and every placeholder is used
/// exactly once. `definitions` are those of its tools.
pub(super) fn bind(
    plan: &Plan,
    template: &RequestTemplate,
    definitions: BTreeMap<String, String>,
) -> Option<LearnedPlan> {
    if plan.steps.is_empty() || !plan.unserved.is_empty() {
        return None;
    }
    let mut binder = Binder { template, uses: vec![0; template.spans.len()] };
    let steps = plan.steps.iter().map(|step| binder.step(step)).collect::<Option<Vec<_>>>()?;
    binder.uses.iter().all(|uses| *uses == 1).then_some(LearnedPlan { steps, definitions })
}

struct Binder<'a> {
    template: &'a RequestTemplate,
    /// How many arguments each placeholder fills.
    uses: Vec<u32>,
}

impl Binder<'_> {
    fn step(&mut self, step: &Step) -> Option<LearnedStep> {
        let is_prepared = |tool: &String| step.prepared_calls.iter().any(|call| call.tool == *tool);
        let is_whole = step.expected_tools.iter().all(is_prepared) && !step.prepared_calls.is_empty();
        // Expectations about these results may not apply to those of another request.
        if !is_whole || step.unclear || !step.if_needed.is_empty() || !step.expect.is_empty() {
            return None;
        }
        Some(LearnedStep {
            number: step.step_number,
            scene: step.scene_name.clone(),
            after: step.depends_on_step.iter().collect(),
            words: self.template.elements_of(&step.purpose),
            calls: step.prepared_calls.iter().map(|call| self.call(call)).collect::<Option<_>>()?,
            path: Vec::new(),
        })
    }

    fn call(&mut self, call: &PreparedCall) -> Option<LearnedCall> {
        let given = call.arguments.iter().filter(|(_, value)| !value.is_null());
        let bound = given.map(|(name, value)| {
            let binding = match Reference::of(value) {
                Some(reference) => ValueBinding::Result { reference },
                None => self.value(value, 0)?,
            };
            Some((name.clone(), binding))
        });
        Some(LearnedCall { tool: call.tool.clone(), arguments: bound.collect::<Option<_>>()? })
    }

    fn value(&mut self, value: &Value, depth: u8) -> Option<ValueBinding> {
        if depth >= MAX_DEPTH {
            return None;
        }
        match value {
            Value::String(_) | Value::Number(_) => self.leaf(value),
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, depth + 1));
                Some(ValueBinding::List { items: items.collect::<Option<_>>()? })
            }
            Value::Object(members) => {
                let members =
                    members.iter().map(|(name, value)| Some((name.clone(), self.value(value, depth + 1)?)));
                Some(ValueBinding::Object { members: members.collect::<Option<_>>()? })
            }
            // Words never say a flag.
            Value::Bool(_) | Value::Null => None,
        }
    }

    fn leaf(&mut self, value: &Value) -> Option<ValueBinding> {
        let forms = self.template.spans.iter().enumerate();
        let mut fitting = forms.filter_map(|(at, span)| Some((at, form(span, value)?)));
        match (fitting.next(), fitting.next()) {
            (Some((at, form)), None) => {
                drop(fitting);
                *self.uses.get_mut(at)? += 1;
                Some(ValueBinding::Span { span: u32::try_from(at).ok()?, form })
            }
            // Two placeholders have this value, and either may be meant.
            (Some(_), Some(_)) => None,
            (None, _) => {
                let text = value.as_str().filter(|text| self.is_said(text))?;
                Some(ValueBinding::Words { text: text.to_owned() })
            }
        }
    }

    /// Whether the template's own words contain the text.
    fn is_said(&self, said: &str) -> bool {
        let wanted: Vec<String> = text::tokens(said).iter().map(|token| token.lower.to_string()).collect();
        let has = |window: &[super::template::TemplateElement]| {
            window.iter().zip(&wanted).all(|(element, word)| !element.is_placeholder && element.text == *word)
        };
        // Tokenising cuts long texts.
        let is_short = said.len() <= text::MAX_CHARS;
        is_short && !wanted.is_empty() && self.template.elements.windows(wanted.len()).any(has)
    }
}

/// How the span's value is written as `value`, if that is its value.
fn form(span: &TemplateSpan, value: &Value) -> Option<SpanForm> {
    let forms: &[SpanForm] = match span.value {
        SpanValue::Day(_) => &[SpanForm::Date],
        SpanValue::Time(_) => &[SpanForm::Time, SpanForm::TimeWithSeconds],
        SpanValue::Number(_) => &[SpanForm::Number, SpanForm::Text],
        SpanValue::Name | SpanValue::Code => &[SpanForm::Text],
    };
    forms.iter().copied().find(|form| {
        let written = super::filling::written(span, *form);
        match (written, value) {
            (Some(Value::Number(own)), Value::Number(given)) => own.as_f64() == given.as_f64(),
            (Some(Value::String(own)), Value::String(given)) => {
                own == *given
                    || (span.value == SpanValue::Name && text::fold(own.trim()) == text::fold(given.trim()))
            }
            _ => false,
        }
    })
}
