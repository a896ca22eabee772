//! Filling a learned plan with the values of another request of its template.

use serde_json::{Map, Value};

use super::template::{RequestTemplate, SpanValue, TemplateSpan};
use crate::plan::{Plan, PreparedCall, Step};
use crate::run::{LearnedPlan, LearnedStep, SpanForm, ValueBinding};

/// The plan for the request; `None` if a placeholder has no value there.
pub(super) fn fill(learned: &LearnedPlan, template: &RequestTemplate, successes: u32) -> Option<Plan> {
    let steps = learned.steps.iter().map(|step| filled_step(step, template)).collect::<Option<Vec<_>>>()?;
    let requests = if successes == 1 { "request" } else { "requests" };
    Some(Plan {
        needs_execution: true,
        reasoning: format!("This plan has answered {successes} {requests} of this kind."),
        steps,
        ..Plan::default()
    })
}

fn filled_step(step: &LearnedStep, template: &RequestTemplate) -> Option<Step> {
    let calls = step.calls.iter().map(|call| {
        let given =
            call.arguments.iter().map(|(name, binding)| Some((name.clone(), value(binding, template)?)));
        let arguments = given.collect::<Option<Map<String, Value>>>()?;
        Some(PreparedCall { tool: call.tool.clone(), arguments })
    });
    let prepared_calls = calls.collect::<Option<Vec<_>>>()?;
    let mut expected_tools: Vec<String> = Vec::new();
    for call in &prepared_calls {
        if !expected_tools.contains(&call.tool) {
            expected_tools.push(call.tool.clone());
        }
    }
    Some(Step {
        step_number: step.number,
        scene_name: step.scene.clone(),
        purpose: template.part(step.words).to_owned(),
        expected_tools,
        depends_on_step: step.after.iter().copied().collect(),
        prepared_calls,
        ..Step::default()
    })
}

fn value(binding: &ValueBinding, template: &RequestTemplate) -> Option<Value> {
    Some(match binding {
        ValueBinding::Span { span, form } => written(template.spans.get(*span as usize)?, *form)?,
        ValueBinding::Words { text } => Value::String(text.clone()),
        ValueBinding::Result { reference } => reference.to_value(),
        ValueBinding::List { items } => {
            items.iter().map(|item| value(item, template)).collect::<Option<Vec<_>>>()?.into()
        }
        ValueBinding::Object { members } => {
            let members = members.iter().map(|(name, one)| Some((name.clone(), value(one, template)?)));
            Value::Object(members.collect::<Option<Map<String, Value>>>()?)
        }
    })
}

/// The value of a placeholder in this form; `None` if it has none.
pub(super) fn written(span: &TemplateSpan, form: SpanForm) -> Option<Value> {
    Some(match (form, span.value) {
        (SpanForm::Date, SpanValue::Day(day)) => day.to_string().into(),
        (SpanForm::Time, SpanValue::Time(time)) => time.strftime("%H:%M").to_string().into(),
        (SpanForm::TimeWithSeconds, SpanValue::Time(time)) => time.strftime("%H:%M:%S").to_string().into(),
        (SpanForm::Number, SpanValue::Number(number)) => json_number(number)?,
        (SpanForm::Text, SpanValue::Number(_) | SpanValue::Name | SpanValue::Code) => {
            span.text.clone().into()
        }
        _ => return None,
    })
}

/// Whole numbers have no fraction: schemas tell integers from numbers.
fn json_number(number: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 53 bits")]
        return Some(Value::from(number as i64));
    }
    serde_json::Number::from_f64(number).map(Value::Number)
}
