//! Renders values for snapshots: a value that fits is written on one line, others with one line per member,
//! sorted by name.

use std::fmt::Write;

use serde_json::Value;

/// Longest value written on one line.
const WIDTH: usize = 118;

/// Writes `value` below its name, indented by `indent` spaces.
pub fn part(name: &str, value: &Value, indent: usize, out: &mut String) {
    let line = format!("{:indent$}{name}: {}", "", inline(value));
    if line.chars().count() <= WIDTH || !opens(value) {
        out.push_str(&line);
        out.push('\n');
        return;
    }
    let _ = writeln!(out, "{:indent$}{name}:", "");
    parts(value, indent + 2, out);
}

/// Writes the members of an object or a list, each below its name or index.
pub fn parts(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(fields) => {
            for name in sorted(fields.keys()) {
                part(name, &fields[name], indent, out);
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                part(&format!("[{n}]"), item, indent, out);
            }
        }
        plain => {
            let _ = writeln!(out, "{:indent$}{}", "", inline(plain));
        }
    }
}

fn opens(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                sorted(fields.keys()).map(|name| format!("{name}: {}", inline(&fields[name]))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// Sorts names, with numbers in numeric order.
fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = &'a String> {
    let mut names: Vec<&String> = names.collect();
    names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(0), *name));
    names.into_iter()
}
