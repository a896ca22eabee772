//! The names of tools' parameters in Python.

use serde_json::Value;

use crate::schema::{is_required, property_names, required_names};

/// The words that Python does not take as a name.
pub const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The name of a parameter in Python: that of the schema, unless Python does not take it.
fn python_name(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

/// Returns whether Python takes a name as it is.
pub fn is_python_name(name: &str) -> bool {
    python_name(name) == name
}

/// The parameters of a JSON Schema of arguments, the required ones first in the order in which it requires them: their names
/// in the schema and in Python.
pub fn parameters(schema: &Value) -> Vec<(&str, String)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &&str| properties.is_some_and(|all| all.contains_key(*name));
    let required = required_names(schema).filter(is_known);
    let optional = property_names(schema).filter(|name| !is_required(schema, name));
    let mut found: Vec<(&str, String)> = Vec::new();
    for name in required.chain(optional) {
        let mut python = python_name(name);
        while found.iter().any(|(_, taken)| *taken == python) {
            python.push('_');
        }
        found.push((name, python));
    }
    found
}

/// The name of a tool as that of a function: `GetPrice` is `get_price`.
pub fn function_name(tool: &str) -> String {
    let mut name = String::new();
    let mut after_word = false;
    for c in tool.chars() {
        if c.is_ascii_uppercase() && after_word {
            name.push('_');
        }
        after_word = c.is_ascii_lowercase() || c.is_ascii_digit();
        name.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    python_name(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_have_names_that_python_takes() {
        let schema = json!({"required": ["to", "from"], "properties":
            {"2nd": {}, "from": {}, "item-id": {}, "item_id": {}, "to": {}}});
        let names: Vec<String> = parameters(&schema).into_iter().map(|(_, python)| python).collect();
        assert_eq!(names, ["to", "from_", "_2nd", "item_id", "item_id_"]);
        assert!(is_required(&schema, "to") && !is_required(&schema, "2nd"));
    }

    #[test]
    fn functions_are_named_after_their_tools() {
        let names = ["GetPrice", "sum2Items", "HTTPStatus", "get-price", "Is", "2nd"].map(function_name);
        assert_eq!(names, ["get_price", "sum2_items", "httpstatus", "get_price", "is_", "_2nd"]);
    }
}
