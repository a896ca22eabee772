//! When a recorded event and today's count as equal.

use serde_json::Value;

use crate::run::Event;

/// Returns whether two events are equal, except for the wording of faults: a fault is identified by its code, so an
/// improved message is no difference.
pub(super) fn is_same(recorded: &Event, today: &Event) -> bool {
    if recorded == today {
        return true;
    }
    // Most events differ in kind; only then is the comparison of their JSON worth its cost.
    recorded.name() == today.name()
        && match (serde_json::to_value(recorded), serde_json::to_value(today)) {
            (Ok(mut recorded), Ok(mut today)) => {
                drop_wording(&mut recorded);
                drop_wording(&mut today);
                recorded == today
            }
            _ => false,
        }
}

/// Removes the `message` of every fault, which is an object with a `code` and a `message`, and what requested calls
/// freeze of their tools. Arguments and
/// results of tools may look the same, so these are left as they are.
fn drop_wording(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // What a tool declares is frozen in the recorded call, and today's may differ.
            if fields.contains_key("provider_id") {
                fields.remove("policies");
                fields.remove("definition");
            }
            if fields.get("code").is_some_and(Value::is_string) {
                fields.remove("message");
            }
            for (name, value) in fields.iter_mut() {
                if !matches!(name.as_str(), "arguments" | "result" | "plan") {
                    drop_wording(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_wording),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::Fault;

    fn failed(code: &str, message: &str) -> Event {
        Event::RunFailed { error: Fault::new(code, message) }
    }

    #[test]
    fn faults_are_compared_by_code_and_not_by_wording() {
        let recorded = failed("run.poisonous", "it was cut off");
        assert!(is_same(&recorded, &failed("run.poisonous", "the run was interrupted")));
        assert!(!is_same(&recorded, &failed("run.crashed", "it was cut off")));
    }

    #[test]
    fn data_that_looks_like_a_fault_is_compared_completely() {
        let mut one =
            json!({ "result": { "code": "x", "message": "a" }, "error": { "code": "y", "message": "b" } });
        drop_wording(&mut one);
        assert_eq!(one, json!({ "result": { "code": "x", "message": "a" }, "error": { "code": "y" } }));
    }
}
