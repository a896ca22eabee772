//! Extracts the text of one field of a JSON object while a model is still streaming it.

/// Maximum number of characters that are kept of a key; the keys that matter are shorter.
const MAX_KEY: usize = 32;

/// Reads a JSON object in chunks of any size and returns the string of its field `text` as far as it has arrived,
/// but only once its field `hold` was read as false. Invalid JSON ends the reading.
#[derive(Debug)]
pub struct Partial {
    /// The name of the field that is false if the text may be shown.
    hold: &'static str,
    /// The name of the field with the text.
    text: &'static str,
    at: ReadPosition,
    key: String,
    /// The field that the value of `key` belongs to.
    field: PartialField,
    string: Unescape,
    /// The value of the field `hold`.
    held: Option<bool>,
    /// The part of the text that arrived before that was known.
    early: String,
    /// How many texts the object has. With a second one, it is unknown which of them counts.
    texts: u32,
}

/// Where in the object the reading is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReadPosition {
    /// Before it.
    #[default]
    Before,
    /// Before a key, or before the end of an empty object.
    Key { first: bool },
    /// In a key.
    InKey,
    /// After a key.
    Colon,
    /// Before a value.
    Value,
    /// In a value that is a string.
    InString,
    /// In a number, `true`, `false` or `null`.
    InWord,
    /// In a nested object or array, at this depth.
    Nested { depth: usize, in_string: bool, escaped: bool },
    /// After a value.
    Comma,
    /// After the whole object.
    Behind,
    /// It is not an object.
    Broken,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PartialField {
    Text,
    Hold,
    #[default]
    Other,
}

impl Partial {
    /// A reader that has read nothing yet, of an object with these fields.
    pub fn new(hold: &'static str, text: &'static str) -> Self {
        Self {
            hold,
            text,
            at: ReadPosition::default(),
            key: String::new(),
            field: PartialField::default(),
            string: Unescape::default(),
            held: None,
            early: String::new(),
            texts: 0,
        }
    }

    /// Reads the next chunk. Returns the part of the text that may now be shown.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            self.read(c, &mut out);
        }
        out
    }

    /// Returns whether the object has ended and nothing followed it.
    pub fn is_whole(&self) -> bool {
        self.at == ReadPosition::Behind
    }

    fn read(&mut self, c: char, out: &mut String) {
        self.at = match self.at {
            ReadPosition::InKey => self.read_key(c),
            ReadPosition::InString => self.read_string(c, out),
            ReadPosition::InWord => self.read_word(c, out),
            ReadPosition::Nested { depth, in_string, escaped } => nested(depth, in_string, escaped, c),
            ReadPosition::Broken => ReadPosition::Broken,
            between if is_blank(c) => between,
            between => self.read_punctuation(between, c),
        };
    }

    /// Reads a character between the keys and values; blanks are skipped before.
    fn read_punctuation(&mut self, at: ReadPosition, c: char) -> ReadPosition {
        match (at, c) {
            (ReadPosition::Before, '{') => ReadPosition::Key { first: true },
            (ReadPosition::Key { first: true }, '}') => ReadPosition::Behind,
            (ReadPosition::Key { .. }, '"') => {
                self.key.clear();
                self.string = Unescape::default();
                ReadPosition::InKey
            }
            (ReadPosition::Colon, ':') => {
                self.begin_value();
                ReadPosition::Value
            }
            (ReadPosition::Value, '"') => {
                self.string = Unescape::default();
                ReadPosition::InString
            }
            (ReadPosition::Value, '{' | '[') => {
                ReadPosition::Nested { depth: 1, in_string: false, escaped: false }
            }
            (ReadPosition::Value, _) if c.is_ascii_alphanumeric() || c == '-' => {
                self.key.clear();
                self.key.push(c);
                ReadPosition::InWord
            }
            (ReadPosition::Comma, ',') => ReadPosition::Key { first: false },
            (ReadPosition::Comma, '}') => ReadPosition::Behind,
            _ => ReadPosition::Broken,
        }
    }

    fn read_key(&mut self, c: char) -> ReadPosition {
        match self.string.read(c) {
            PartialRead::End => ReadPosition::Colon,
            PartialRead::Broken => ReadPosition::Broken,
            PartialRead::Char(c) => {
                self.push_key(c);
                ReadPosition::InKey
            }
            PartialRead::More => ReadPosition::InKey,
        }
    }

    fn read_string(&mut self, c: char, out: &mut String) -> ReadPosition {
        match self.string.read(c) {
            PartialRead::End => ReadPosition::Comma,
            PartialRead::Broken => ReadPosition::Broken,
            PartialRead::Char(c) => {
                self.push_text(c, out);
                ReadPosition::InString
            }
            PartialRead::More => ReadPosition::InString,
        }
    }

    /// Reads a number, `true`, `false` or `null`; `key` holds what was read of it.
    fn read_word(&mut self, c: char, out: &mut String) -> ReadPosition {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.') {
            self.push_key(c);
            return ReadPosition::InWord;
        }
        if c != ',' && c != '}' && !is_blank(c) {
            return ReadPosition::Broken;
        }
        self.end_word(out);
        match c {
            ',' => ReadPosition::Key { first: false },
            '}' => ReadPosition::Behind,
            _ => ReadPosition::Comma,
        }
    }

    fn push_key(&mut self, c: char) {
        if self.key.len() < MAX_KEY {
            self.key.push(c);
        }
    }

    fn begin_value(&mut self) {
        self.field = match self.key.as_str() {
            key if key == self.text => {
                self.texts += 1;
                PartialField::Text
            }
            key if key == self.hold => PartialField::Hold,
            _ => PartialField::Other,
        };
    }

    /// Ends a word: if it is the value of the field `hold`, records it.
    fn end_word(&mut self, out: &mut String) {
        if self.field != PartialField::Hold {
            return;
        }
        let held = match (self.key.as_str(), self.held) {
            ("false", None) => Some(false),
            // Repeated, or not a boolean: nothing may be shown.
            _ => Some(true),
        };
        self.held = held;
        let early = std::mem::take(&mut self.early);
        if held == Some(false) {
            out.push_str(&early);
        }
    }

    fn push_text(&mut self, c: char, out: &mut String) {
        if self.field != PartialField::Text || self.texts > 1 {
            return;
        }
        match self.held {
            Some(false) => out.push(c),
            None => self.early.push(c),
            Some(true) => {}
        }
    }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Reads one character of an object or array that is skipped.
fn nested(depth: usize, in_string: bool, escaped: bool, c: char) -> ReadPosition {
    let deep = |depth, in_string, escaped| ReadPosition::Nested { depth, in_string, escaped };
    match c {
        _ if escaped => deep(depth, in_string, false),
        '\\' if in_string => deep(depth, true, true),
        '"' => deep(depth, !in_string, false),
        _ if in_string => deep(depth, true, false),
        '{' | '[' => deep(depth + 1, false, false),
        '}' | ']' if depth == 1 => ReadPosition::Comma,
        '}' | ']' => deep(depth - 1, false, false),
        _ => deep(depth, false, false),
    }
}

/// The characters of a JSON string, one at a time.
#[derive(Debug, Default)]
struct Unescape {
    escape: Escape,
    /// The first half of a character that is written as two escapes.
    high: Option<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Begun,
    /// After `\\u` and this many of its four digits.
    Hex { digits: u32, value: u32 },
}

enum PartialRead {
    Char(char),
    More,
    End,
    Broken,
}

impl Unescape {
    fn read(&mut self, c: char) -> PartialRead {
        let escape = std::mem::take(&mut self.escape);
        // Only its second half may follow the first.
        let halved = self.high.is_some();
        match (escape, c) {
            (Escape::None, '\\') => {
                self.escape = Escape::Begun;
                PartialRead::More
            }
            (Escape::Begun, 'u') => {
                self.escape = Escape::Hex { digits: 0, value: 0 };
                PartialRead::More
            }
            (Escape::Hex { digits, value }, _) => match c.to_digit(16) {
                Some(digit) if digits < 3 => {
                    self.escape = Escape::Hex { digits: digits + 1, value: value * 16 + digit };
                    PartialRead::More
                }
                Some(digit) => self.unit(value * 16 + digit),
                None => PartialRead::Broken,
            },
            _ if halved => PartialRead::Broken,
            (Escape::None, '"') => PartialRead::End,
            (Escape::None, _) => PartialRead::Char(c),
            (Escape::Begun, '"' | '\\' | '/') => PartialRead::Char(c),
            (Escape::Begun, 'b') => PartialRead::Char('\u{8}'),
            (Escape::Begun, 'f') => PartialRead::Char('\u{c}'),
            (Escape::Begun, 'n') => PartialRead::Char('\n'),
            (Escape::Begun, 'r') => PartialRead::Char('\r'),
            (Escape::Begun, 't') => PartialRead::Char('\t'),
            (Escape::Begun, _) => PartialRead::Broken,
        }
    }

    /// A whole `\u` escape.
    fn unit(&mut self, unit: u32) -> PartialRead {
        match (self.high.take(), unit) {
            (None, 0xD800..=0xDBFF) => {
                self.high = Some(unit);
                PartialRead::More
            }
            (Some(high), 0xDC00..=0xDFFF) => {
                let code = 0x1_0000 + ((high - 0xD800) << 10) + (unit - 0xDC00);
                char::from_u32(code).map_or(PartialRead::Broken, PartialRead::Char)
            }
            (None, _) => char::from_u32(unit).map_or(PartialRead::Broken, PartialRead::Char),
            (Some(_), _) => PartialRead::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn verdict() -> Partial {
        Partial::new("should_continue", "answer")
    }

    /// The output for a text that arrives in chunks of this many characters.
    fn read(text: &str, size: usize) -> String {
        let chars: Vec<char> = text.chars().collect();
        let mut partial = verdict();
        chars.chunks(size).map(|piece| partial.feed(&piece.iter().collect::<String>())).collect()
    }

    #[test]
    fn the_answer_is_given_as_it_comes_once_it_is_known_that_nothing_more_is_to_be_done() {
        let mut partial = verdict();
        assert_eq!(partial.feed(r#"{"should_continue": fal"#), "");
        assert_eq!(partial.feed(r#"se, "can_answer_now": true, "answer": "It is "#), "It is ");
        assert_eq!(partial.feed("su"), "su");
        assert_eq!(partial.feed(r#"nny.", "reasoning": "ok"}"#), "nny.");
        assert!(partial.is_whole());
    }

    #[test]
    fn answer_before_the_verdict_is_held_back_and_dropped_if_more_is_needed() {
        let mut partial = verdict();
        assert_eq!(partial.feed(r#"{"answer": "Sunny.", "should_continue": false"#), "");
        assert_eq!(partial.feed("}"), "Sunny.");
        for text in [
            r#"{"answer": "Sunny.", "should_continue": true}"#,
            r#"{"should_continue": true, "answer": "Sunny."}"#,
            r#"{"should_continue": "false", "answer": "Sunny."}"#,
            r#"{"should_continue": 0, "answer": "Sunny."}"#,
            r#"{"should_continue": true, "should_continue": false, "answer": "Sunny."}"#,
            r#"{"answer": "Sunny."}"#,
        ] {
            assert_eq!(read(text, 3), "", "{text}");
        }
    }

    #[test]
    fn escapes_may_be_cut_anywhere() {
        let text =
            r#"{"should_continue":false,"answer":"a\"b\\c\/\n\u00e8 \ud83d\ude00 \u2028 {\"answer\": 1}"}"#;
        for size in 1..text.len() {
            assert_eq!(read(text, size), "a\"b\\c/\n\u{e8} \u{1f600} \u{2028} {\"answer\": 1}");
        }
    }

    #[test]
    fn the_same_words_elsewhere_do_not_mislead() {
        let text = r#"{"plan": {"answer": "no", "should_continue": true, "x": ["}", "\"", {}]},
            "reasoning": "\"answer\": \"no\", \"should_continue\": true", "answers": "no",
            "\u0073hould_continue" : false , "\u0061nswer" : "yes"}"#;
        for size in [1, 2, 5, 1000] {
            assert_eq!(read(text, size), "yes");
        }
    }

    #[test]
    fn invalid_json_ends_the_reading() {
        let head = r#"{"should_continue": false, "answer": ""#;
        for (tail, given) in [
            (r"ok\q more", "ok"),
            (r"ok\ud83d more", "ok"),
            (r"ok\ud83d\ud83d more", "ok"),
            (r"ok\ude00 more", "ok"),
            (r"ok\u12x more", "ok"),
            ("ok\" more", "ok"),
            ("ok\", more", "ok"),
            ("ok\"} more", "ok"),
        ] {
            let text = format!("{head}{tail}");
            assert_eq!(read(&text, 2), given, "{text}");
            let mut partial = verdict();
            partial.feed(&text);
            assert!(!partial.is_whole(), "{text}");
        }
        for text in ["null", "[]", "\"{}\"", "```json\n{}", "{'answer': 'x'}"] {
            assert_eq!(read(&format!("{text}{head}more"), 4), "");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            any::<f64>().prop_map(|n| json!(n)),
            any::<String>().prop_map(Value::String),
            Just(json!("{\"should_continue\": true, \"answer\": \"x\\")),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((any_key(), inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    fn any_key() -> impl Strategy<Value = String> {
        prop_oneof![Just("answer".to_owned()), Just("should_continue".to_owned()), any::<String>()]
    }

    /// The fields in any order, as text; strings with everything escaped that can be, or nothing.
    fn written(fields: &[(String, Value)], escaped: bool, indented: bool) -> String {
        let one = |value: &Value| {
            let text =
                if indented { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
            let text = text.unwrap();
            if !escaped {
                return text;
            }
            let unit = |c: char| {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04X}")).collect::<String>()
            };
            text.chars().map(|c| if c.is_ascii() { c.to_string() } else { unit(c) }).collect()
        };
        let pairs = fields.iter().map(|(key, value)| format!("{} : {}", one(&json!(key)), one(value)));
        format!(" {{{}}} ", pairs.collect::<Vec<_>>().join(" ,\n"))
    }

    proptest! {
        #[test]
        fn what_is_given_of_any_object_in_any_pieces_is_its_answer(
            others in prop::collection::vec((any_key(), any_value()), 0..4),
            answer in prop::option::of(prop_oneof![any::<String>().prop_map(Value::String), any_value()]),
            should_continue in prop::option::of(prop_oneof![Just(json!(false)), Just(json!(true)), any_value()]),
            order in any::<u64>(),
            cuts in prop::collection::vec(1_usize..9, 1..20),
            (escaped, indented) in any::<(bool, bool)>(),
        ) {
            let mut object: Map<String, Value> = others.into_iter().collect();
            object.remove("answer");
            object.remove("should_continue");
            object.extend(answer.map(|value| ("answer".to_owned(), value)));
            object.extend(should_continue.map(|value| ("should_continue".to_owned(), value)));
            let mut fields: Vec<(String, Value)> = object.clone().into_iter().collect();
            let turn = order as usize % fields.len().max(1);
            fields.rotate_left(turn);
            if order % 2 == 0 {
                fields.reverse();
            }
            let text = written(&fields, escaped, indented);
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &Value::Object(object.clone()));
            let meant = match (object.get("should_continue"), object.get("answer")) {
                (Some(Value::Bool(false)), Some(Value::String(answer))) => answer.as_str(),
                _ => "",
            };
            let mut partial = verdict();
            let mut given = String::new();
            let mut rest: Vec<char> = text.chars().collect();
            for size in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let piece: String = rest.drain(..(*size).min(rest.len())).collect();
                given.push_str(&partial.feed(&piece));
                prop_assert!(meant.starts_with(&given), "{given:?} is not how {meant:?} begins");
            }
            prop_assert_eq!(given, meant);
            prop_assert!(partial.is_whole());
        }

        #[test]
        fn no_text_at_all_makes_it_panic(pieces in prop::collection::vec(r#"[{}\[\]",:\\ua-f0-9 ]{0,12}|\PC{0,4}"#, 0..12)) {
            let mut partial = verdict();
            for piece in pieces {
                partial.feed(&piece);
            }
        }
    }
}
