//! The format of a log line: one JSON object for programs, one line of text for people. Pure; `log_layer.rs` provides
//! the content.

use std::fmt::Write;

use jiff::Timestamp;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;
use tracing::Level;

use crate::setting::redact_secrets;

/// Maximum length of one value of a line, in bytes.
const MAX_VALUE_BYTES: usize = 8192;

/// The field with the message.
const MESSAGE: &str = "message";

/// The keys of a JSON line that are not fields.
const OWN_KEYS: [&str; 3] = ["timestamp", "level", "target"];

/// The fields that end a line of text, in this order.
const IDS: [&str; 3] = ["run", "session", "tenant"];

/// The crate's own prefix of targets, which text leaves out.
const OWN_PREFIX: &str = "proscenium::";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// For people: time, level, module, message, fields; last the ids of run, conversation and tenant.
    Text {
        /// Whether level and time are marked with the escapes of a terminal.
        has_colors: bool,
    },
    /// One flat JSON object: `timestamp`, `level`, `target`, `message`, and each field under its own name, among them
    /// `run`, `session` and `tenant`.
    Json,
}

/// The fields of a line or a span, by name, in order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct LineFields(Vec<(&'static str, Value)>);

impl LineFields {
    /// Sets a field. A text is redacted and bounded.
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        let value = match value {
            Value::String(text) => Value::String(bounded(redact_secrets(text))),
            other => other,
        };
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn take_text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        match self.0.remove(at).1 {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Removes the fields whose names begin with `prefix`.
    pub(super) fn remove_all(&mut self, prefix: &str) {
        self.0.retain(|(name, _)| !name.starts_with(prefix));
    }

    /// Adds the fields of an enclosing span, except those that are set already.
    pub(super) fn add_outer(&mut self, outer: &Self) {
        for (name, value) in &outer.0 {
            if !self.0.iter().any(|(known, _)| known == name) {
                self.0.push((name, value.clone()));
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct LogLine<'l> {
    pub(super) at: Timestamp,
    pub(super) level: Level,
    pub(super) target: &'l str,
    pub(super) fields: &'l LineFields,
}

impl LogLine<'_> {
    /// The line with its end.
    pub(super) fn format(&self, format: LineFormat) -> String {
        let mut line = match format {
            LineFormat::Text { has_colors } => self.text(has_colors),
            // Plain data always serializes.
            LineFormat::Json => self.json().unwrap_or_default(),
        };
        line.push('\n');
        line
    }

    fn json(&self) -> Option<String> {
        let mut out = Vec::with_capacity(256);
        let mut serializer = serde_json::Serializer::new(&mut out);
        let mut map = serializer.serialize_map(None).ok()?;
        map.serialize_entry("timestamp", &format!("{:.6}", self.at)).ok()?;
        map.serialize_entry("level", self.level.as_str()).ok()?;
        map.serialize_entry("target", self.target).ok()?;
        for (name, value) in &self.fields.0 {
            // No key occurs twice.
            match OWN_KEYS.contains(name) {
                true => map.serialize_entry(&format!("field_{name}"), value).ok()?,
                false => map.serialize_entry(name, value).ok()?,
            }
        }
        map.end().ok()?;
        String::from_utf8(out).ok()
    }

    fn text(&self, has_colors: bool) -> String {
        let (dim, color, plain) = match (has_colors, self.level) {
            (false, _) => ("", "", ""),
            (true, Level::ERROR) => ("\x1b[2m", "\x1b[31m", "\x1b[0m"),
            (true, Level::WARN) => ("\x1b[2m", "\x1b[33m", "\x1b[0m"),
            (true, Level::INFO) => ("\x1b[2m", "\x1b[32m", "\x1b[0m"),
            (true, _) => ("\x1b[2m", "\x1b[34m", "\x1b[0m"),
        };
        let target = self.target.strip_prefix(OWN_PREFIX).unwrap_or(self.target);
        let mut out =
            format!("{dim}{:.3}{plain} {color}{:>5}{plain} {target}:", self.at, self.level.as_str());
        if let Some((_, Value::String(message))) = self.fields.0.iter().find(|(name, _)| *name == MESSAGE) {
            out.push(' ');
            push_visible(&mut out, message);
        }
        let is_own = |name: &str| name == MESSAGE || IDS.contains(&name);
        for (name, value) in self.fields.0.iter().filter(|(name, _)| !is_own(name)) {
            push_field(&mut out, name, value);
        }
        for id in IDS {
            if let Some((name, value)) = self.fields.0.iter().find(|(name, _)| *name == id) {
                push_field(&mut out, name, value);
            }
        }
        out
    }
}

/// Adds ` name=value`; a text is in quotes if it would not be read as one word.
fn push_field(out: &mut String, name: &str, value: &Value) {
    // Writing to a text does not fail.
    let _ = match value {
        Value::String(text) if is_word(text) => write!(out, " {name}={text}"),
        Value::String(text) => write!(out, " {name}={text:?}"),
        other => write!(out, " {name}={other}"),
    };
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\'))
}

/// Adds a text with everything escaped that could begin a line or move a terminal's cursor.
fn push_visible(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
}

/// The text, cut to the maximum length.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_VALUE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_VALUE_BYTES));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(fields: &[(&'static str, Value)], format: LineFormat) -> String {
        let mut all = LineFields::default();
        for (name, value) in fields {
            all.set(name, value.clone());
        }
        let at = "2026-05-04T07:00:00.1234567Z".parse().unwrap();
        LogLine { at, level: Level::WARN, target: "proscenium::runs", fields: &all }.format(format)
    }

    const TEXT: LineFormat = LineFormat::Text { has_colors: false };

    #[test]
    fn text_is_one_line_with_the_ids_at_its_end() {
        let fields = [
            ("message", json!("tool call failed")),
            ("run", json!("0199")),
            ("tenant", json!("acme")),
            ("scene", json!("Weather")),
            ("reason", json!("first\nsecond \"third\"")),
            ("millis", json!(12)),
            ("session", json!("s-1")),
        ];
        insta::assert_snapshot!(
            line(&fields, TEXT).trim_end(),
            @r#"2026-05-04T07:00:00.123Z  WARN runs: tool call failed scene=Weather reason="first\nsecond \"third\"" millis=12 run=0199 session=s-1 tenant=acme"#
        );
        let colored = line(&fields[..1], LineFormat::Text { has_colors: true });
        assert!(colored.contains("\u{1b}[33m WARN\u{1b}[0m runs: tool call failed"), "{colored:?}");
    }

    #[test]
    fn no_text_begins_a_line_or_controls_a_terminal() {
        let evil = "a\r\nERROR forged\u{1b}[2J\u{202e}";
        for fields in [[("message", json!(evil))], [("why", json!(evil))]] {
            for format in [TEXT, LineFormat::Json] {
                let line = line(&fields, format);
                assert_eq!(line.find('\n'), Some(line.len() - 1), "{line:?}");
                assert!(!line.contains('\u{1b}') && !line.contains('\r'), "{line:?}");
            }
            assert!(!line(&fields, TEXT).contains('\u{202e}'));
        }
    }

    #[test]
    fn json_has_each_key_once() {
        let mut fields = LineFields::default();
        for (name, value) in [("message", json!("m")), ("run", json!("own")), ("level", json!("basic"))] {
            fields.set(name, value);
        }
        let mut outer = LineFields::default();
        for (name, value) in [("run", json!("outer")), ("session", json!("s")), ("step", json!(1))] {
            outer.set(name, value);
        }
        fields.add_outer(&outer);
        let at = "2026-05-04T07:00:00Z".parse().unwrap();
        let line = LogLine { at, level: Level::INFO, target: "t", fields: &fields }.format(LineFormat::Json);
        insta::assert_snapshot!(
            line.trim_end(),
            @r#"{"timestamp":"2026-05-04T07:00:00.000000Z","level":"INFO","target":"t","message":"m","run":"own","field_level":"basic","session":"s","step":1}"#
        );
    }

    #[test]
    fn secrets_are_struck_and_long_values_cut() {
        let key = format!("psk_0a1b_{}", "x".repeat(40));
        let fields = [("message", json!(format!("GET http://u:hunter2@host with {key}")))];
        for format in [TEXT, LineFormat::Json] {
            let line = line(&fields, format);
            assert!(!line.contains("hunter2") && !line.contains("xxxx"), "{line}");
            assert!(line.contains("http://u:***@host with psk_***"), "{line}");
        }
        assert!(line(&[("why", json!("é".repeat(20_000)))], LineFormat::Json).len() < MAX_VALUE_BYTES + 200);
    }
}
