//! The contract of a program: how a model's reply contains it, and what it has to leave when it ends. The host enforces
//! both, whatever the prompt says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Finished;

/// The marks around the program in a model's reply.
pub const BLOCK: [&str; 2] = ["<execute_python>", "</execute_python>"];

/// The values that `STATUS` may have, where no scene of the program declares others.
pub const STATUSES: [&str; 5] =
    ["success", "no_match", "insufficient_stock", "invalid_request", "unsupported_intent"];

/// Longest source of a program, in bytes.
pub const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// Longest `answer_text`, in characters.
const MAX_ANSWER_CHARS: usize = 1000;

/// Maximum number of sentences of `answer_text`.
const MAX_SENTENCES: usize = 2;

/// Maximum number of rows of `answer_rows`.
const MAX_ROWS: usize = 200;

/// Largest `answer_rows`, in bytes of its JSON.
const MAX_ROWS_BYTES: usize = 32 * 1024;

/// How much of an unusable value its message shows, in characters.
const SHOWN_CHARS: usize = 80;

/// The result of a program, as the contract has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// `STATUS`: one of the declared words.
    pub status: String,
    /// `answer_text`: one or two sentences.
    pub answer_text: String,
    /// `answer_rows`: flat objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer_rows: Vec<Map<String, Value>>,
    /// `DRY_RUN`: nothing that the program staged is changed, since the request is not clear.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// What a dry run would have changed: each row with its table, key, and values before and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_change: Vec<Value>,
}

/// Maximum number of rows of a result that are written out as text.
const SHOWN_ROWS: usize = 50;

impl ProgramResult {
    /// The result as a text: the answer, then a line for each row.
    pub fn text(&self) -> String {
        let mut text = self.answer_text.clone();
        for row in self.answer_rows.iter().take(SHOWN_ROWS) {
            let cells: Vec<String> =
                row.iter().map(|(name, value)| format!("{name}: {}", cell(value))).collect();
            text.push_str("\n- ");
            text.push_str(&cells.join(", "));
        }
        let more = self.answer_rows.len().saturating_sub(SHOWN_ROWS);
        if more > 0 {
            text.push_str(&format!("\n(+{more})"));
        }
        text
    }
}

/// A value of a row on one line.
fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// The program in a model's reply: what is between its only pair of marks.
///
/// # Errors
/// What is wrong with the reply, for the model.
pub fn source_of(reply: &str) -> Result<String, String> {
    let [begin, end] = BLOCK;
    let form = format!("reply with exactly one block {begin} … {end} around the whole program");
    let (begins, ends) = (reply.matches(begin).count(), reply.matches(end).count());
    if begins == 0 && ends == 0 {
        return Err(format!("the reply has no program: {form}"));
    }
    if begins > 1 || ends > 1 {
        return Err(format!("the reply has several or nested program blocks: {form}"));
    }
    let block = reply.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let Some((source, _)) = block else {
        return Err(format!("the program block is not complete: {form}"));
    };
    let source = without_fence(source);
    if source.trim().is_empty() {
        return Err(format!("the program is empty: {form}"));
    }
    if source.len() > MAX_SOURCE_BYTES {
        let bytes = source.len();
        return Err(format!("the program has {bytes} bytes, and at most {MAX_SOURCE_BYTES} are allowed"));
    }
    Ok(format!("{}\n", source.trim_end()))
}

/// The source without the Markdown fence that models write around code.
fn without_fence(source: &str) -> &str {
    let source = source.trim_matches(['\n', '\r']);
    let fenced = source.trim();
    let Some(inner) = fenced.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return source;
    };
    // The rest of the first line names the language.
    inner.split_once('\n').map_or(source, |(_, code)| code)
}

/// Returns what a program that came to its end has left, if that fulfils the contract with these words for `STATUS`.
///
/// # Errors
/// Everything that is missing or wrong, for the author of the program.
pub fn result_of(finished: &Finished, statuses: &[String]) -> Result<ProgramResult, String> {
    let mut wrong = Vec::new();
    let mut found = |part: Result<Value, String>| part.map_err(|what| wrong.push(what)).unwrap_or_default();
    let status = found(status_of(finished.status.as_ref(), statuses));
    let text = found(answer_of(finished.answer_text.as_ref()));
    let rows = rows_of(finished.answer_rows.as_ref()).map_err(|what| wrong.push(what)).unwrap_or_default();
    let dry_run = dry_run_of(finished.dry_run.as_ref()).map_err(|what| wrong.push(what)).unwrap_or_default();
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    let text_of = |value: Value| value.as_str().unwrap_or_default().trim().to_owned();
    let (status, answer_text) = (text_of(status), text_of(text));
    Ok(ProgramResult { status, answer_text, answer_rows: rows, dry_run, would_change: Vec::new() })
}

fn dry_run_of(dry_run: Option<&Value>) -> Result<bool, String> {
    match dry_run {
        None => Ok(false),
        Some(Value::Bool(dry_run)) => Ok(*dry_run),
        Some(other) => Err(format!("DRY_RUN is {}: it has to be True or False", shown(other))),
    }
}

fn status_of(status: Option<&Value>, statuses: &[String]) -> Result<Value, String> {
    let all = statuses.join(", ");
    match status {
        None => Err(format!("STATUS is not set: set it to exactly one of {all}")),
        Some(Value::String(word)) if statuses.contains(word) => Ok(Value::String(word.clone())),
        Some(other) => Err(format!("STATUS is {}: set it to exactly one of {all}", shown(other))),
    }
}

fn answer_of(text: Option<&Value>) -> Result<Value, String> {
    let text = match text {
        None => return Err("answer_text is not set: set it to one or two sentences for the user".to_owned()),
        Some(Value::String(text)) => text.trim(),
        Some(other) => return Err(format!("answer_text is {}: it has to be a text", shown(other))),
    };
    let length = text.chars().count();
    if length > MAX_ANSWER_CHARS {
        return Err(format!(
            "answer_text has {length} characters, and at most {MAX_ANSWER_CHARS} are allowed: put lists into answer_rows"
        ));
    }
    match sentences(text) {
        0 => Err("answer_text is empty: set it to one or two sentences for the user".to_owned()),
        count if count > MAX_SENTENCES => Err(format!(
            "answer_text has {count} sentences or lines, and at most {MAX_SENTENCES} are allowed: put lists into \
             answer_rows"
        )),
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn rows_of(rows: Option<&Value>) -> Result<Vec<Map<String, Value>>, String> {
    let rows = match rows {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(rows)) => rows,
        Some(other) => return Err(format!("answer_rows is {}: it has to be a list of dicts", shown(other))),
    };
    if rows.len() > MAX_ROWS {
        return Err(format!("answer_rows has {} rows, and at most {MAX_ROWS} are allowed", rows.len()));
    }
    let flat = |row: &Value| {
        let row = row.as_object()?;
        let is_flat = row.values().all(|value| !value.is_object() && !value.is_array());
        is_flat.then(|| row.clone())
    };
    let mut found = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(row) = flat(row) else {
            return Err(format!(
                "answer_rows[{at}] is {}: each row has to be a dict of texts, numbers, booleans and None",
                shown(row)
            ));
        };
        found.push(row);
    }
    let bytes = Value::Array(rows.clone()).to_string().len();
    if bytes > MAX_ROWS_BYTES {
        return Err(format!(
            "answer_rows has {bytes} bytes as JSON, and at most {MAX_ROWS_BYTES} are allowed"
        ));
    }
    Ok(found)
}

/// How many sentences a text has; a line break ends one, too. The dot of a number or of a short abbreviation ends none.
fn sentences(text: &str) -> usize {
    text.lines().map(sentences_of_line).sum()
}

fn sentences_of_line(line: &str) -> usize {
    let (mut count, mut has_words, mut word) = (0, false, String::new());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c.is_whitespace() {
            word.clear();
            continue;
        }
        let is_last = rest.peek().is_none_or(|next| next.is_whitespace());
        let ends = match c {
            '!' | '?' | '…' | '。' => is_last,
            '.' => is_last && !is_abbreviation(&word),
            _ => false,
        };
        has_words |= c.is_alphanumeric();
        word.push(c);
        if ends && has_words {
            (count, has_words) = (count + 1, false);
        }
    }
    count + usize::from(has_words)
}

/// Whether a dot after `word` belongs to it: `Dr`, `Sig`, `e.g`, `ca`.
fn is_abbreviation(word: &str) -> bool {
    let letters = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_short_title = letters.chars().count() <= 3
        && letters.starts_with(char::is_uppercase)
        && letters.chars().any(char::is_lowercase);
    let is_known = ["ca", "etc", "art", "no", "vs", "approx", "pcs", "pz", "max", "min"]
        .contains(&letters.to_lowercase().as_str());
    is_short_title
        || is_known
        || (letters.contains('.') && letters.chars().all(|c| c.is_alphabetic() || c == '.'))
}

/// A value for a message, cut to a few characters.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn statuses() -> Vec<String> {
        STATUSES.map(str::to_owned).to_vec()
    }

    fn finished(status: Value, text: Value, rows: Option<Value>) -> Finished {
        Finished {
            printed: String::new(),
            cut: false,
            status: Some(status),
            answer_text: Some(text),
            answer_rows: rows,
            returned: None,
            dry_run: None,
        }
    }

    #[test]
    fn a_reply_has_exactly_one_block() {
        let [begin, end] = BLOCK;
        let block = |code: &str| format!("{begin}{code}{end}");
        assert_eq!(source_of(&format!("Here: {}!", block("\nx = 1\n"))), Ok("x = 1\n".to_owned()));
        assert_eq!(
            source_of(&block("\n```python\nif x:\n    y()\n```\n")),
            Ok("if x:\n    y()\n".to_owned())
        );
        for (reply, what) in [
            ("x = 1".to_owned(), "has no program"),
            (block("x = 1") + &block("y = 2"), "several or nested"),
            (block(&block("x = 1")), "several or nested"),
            (format!("{begin}x = 1"), "not complete"),
            (format!("x = 1{end}"), "not complete"),
            (format!("{end}x = 1{begin}"), "not complete"),
            (block(" \n "), "is empty"),
            (block("```python\n```"), "is empty"),
            (block(&"x = 1\n".repeat(20_000)), "at most"),
        ] {
            let error = source_of(&reply).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn values_of_a_program_are_taken_exactly() {
        let rows = json!([{"item": "lamp", "stock": 3, "price": 2.5, "on_sale": true, "note": null}]);
        let done = result_of(&finished(json!("success"), json!(" Done. "), Some(rows)), &statuses()).unwrap();
        assert_eq!((done.status.as_str(), done.answer_text.as_str()), ("success", "Done."));
        assert_eq!(done.text(), "Done.\n- item: lamp, note: -, on_sale: true, price: 2.5, stock: 3");
        let own = ["booked".to_owned()];
        assert!(result_of(&finished(json!("booked"), json!("Done."), None), &own).is_ok());
        assert!(result_of(&finished(json!("success"), json!("Done."), None), &own).is_err());
        for (status, text, rows, what) in [
            (json!("Success"), json!("Done."), None, "STATUS is \"Success\""),
            (json!(true), json!("Done."), None, "STATUS is true"),
            (json!(["success"]), json!("Done."), None, "STATUS is"),
            (json!("success no_match"), json!("Done."), None, "STATUS is"),
            (json!("success"), json!(" "), None, "answer_text is empty"),
            (json!("success"), json!("... !"), None, "answer_text is empty"),
            (json!("success"), json!(12), None, "has to be a text"),
            (json!("success"), json!("First. Second. Third."), None, "3 sentences"),
            (json!("success"), json!("a\nb\nc"), None, "3 sentences or lines"),
            (json!("success"), json!("x".repeat(2000)), None, "characters"),
            (json!("success"), json!("Done."), Some(json!({})), "list of dicts"),
            (json!("success"), json!("Done."), Some(json!([{"a": [1]}])), "answer_rows[0]"),
            (json!("success"), json!("Done."), Some(json!([1])), "answer_rows[0]"),
            (json!("success"), json!("Done."), Some(json!(vec![json!({}); 201])), "201 rows"),
        ] {
            let error = result_of(&finished(status, text, rows), &statuses()).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        let dry =
            |value| Finished { dry_run: Some(value), ..finished(json!("success"), json!("Done."), None) };
        assert!(result_of(&dry(json!(true)), &statuses()).unwrap().dry_run);
        let error = result_of(&dry(json!("yes")), &statuses()).unwrap_err();
        assert!(error.contains("DRY_RUN is \"yes\""), "{error}");
        let nothing = Finished { status: None, answer_text: None, ..finished(json!(1), json!(1), None) };
        let error = result_of(&nothing, &statuses()).unwrap_err();
        assert!(error.contains("STATUS is not set") && error.contains("answer_text is not set"), "{error}");
    }

    #[test]
    fn numbers_and_abbreviations_end_no_sentence() {
        for (text, count) in [
            ("The lamp costs 3.50 EUR. There are 2.", 2),
            ("Dr. Rossi bought it", 1),
            ("We sold 3 pcs. of it. Thanks!", 2),
            ("Really?! Yes", 2),
            ("Sold e.g. lamps…", 1),
            ("Fatto.", 1),
            ("", 0),
        ] {
            assert_eq!(sentences(text), count, "{text}");
        }
    }

    proptest! {
        /// No text of a model makes the host fail, and what is taken is what was between the marks.
        #[test]
        fn any_reply_is_read_or_refused(before in ".{0,20}", code in "[ -~\n]{0,60}", after in ".{0,20}") {
            let [begin, end] = BLOCK;
            let reply = format!("{before}{begin}{code}{end}{after}");
            if let Ok(source) = source_of(&reply) {
                prop_assert!(code.contains(source.trim()));
            }
        }

        #[test]
        fn any_end_is_taken_or_refused(status in ".{0,12}", text in ".{0,60}") {
            let end = finished(json!(status), json!(text), None);
            match result_of(&end, &statuses()) {
                Ok(result) => {
                    prop_assert!(STATUSES.contains(&result.status.as_str()));
                    prop_assert!(!result.answer_text.is_empty());
                }
                Err(why) => prop_assert!(!why.is_empty()),
            }
        }
    }
}
