//! Grounding: whether the arguments of a write come from the user's text, from tool results, or by the
//! calendar from these.
//!
//! All possible readings of a text count. Doubting a correct value costs the user a question, so doubts
//! must be rare; a value without any source must not pass.
//!
//! **Invariant:** pure, without a clock or lookups, and bounded for any input.

mod address;
mod amounts;
mod calendar;
mod clock;
mod hidden;
mod literal;
mod lookalikes;
mod mentions;
mod names;
mod property;
mod quantity;
mod sources;
mod terms;
mod words;
mod written;

#[cfg(test)]
mod tests;

use std::cell::OnceCell;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use serde_json::Value;

pub use amounts::amounts_of_money;
use calendar::MentionedDates;
use clock::MentionedTimes;
pub use hidden::{as_written, has_invisible};
use literal::LiteralTexts;
use names::Vocabulary;
use property::{Property, PropertyKind};
use quantity::MentionedNumbers;
pub use sources::{DayNames, GroundingSources};
use written::{ParsedMoment, day, lasting, minute, moment, month, time};

use crate::language::lexicon;

/// Maximum number of values of one call that are checked; any further one counts as untraced.
const MAX_VALUES: usize = 256;
/// Maximum number of values of results that are read.
const MAX_FOUND: usize = 20_000;
/// How deep nested results are read.
const MAX_FOUND_DEPTH: u8 = 32;
/// How deep nested arguments are checked.
const MAX_DEPTH: u8 = 12;
/// Words that are numbers or months in other languages, but not in English.
const OTHER_IN_ENGLISH: &[&str] = &["due", "once", "sei", "dix", "elf", "mil", "mai"];

/// Returns whether an argument is optional free text, such as a note. `parameters` is the tool's JSON Schema.
pub fn is_optional_text(parameters: &Value, name: &str) -> bool {
    let property = Property::of(parameters, parameters, name);
    !property.required && property.kind() == PropertyKind::Free
}

/// Returns whether an argument may be left out. `parameters` is the tool's JSON Schema.
pub fn is_optional(parameters: &Value, name: &str) -> bool {
    !Property::of(parameters, parameters, name).required
}

/// The names of a write's arguments without a source, nested ones as JSON pointers; empty if all have one.
/// `parameters` is the JSON Schema of the tool's arguments.
pub fn untraced(parameters: &Value, arguments: &Value, sources: &GroundingSources) -> Vec<String> {
    // Reading the sources is most of the work, and calls without arguments are frequent.
    if has_no_values(arguments) {
        return Vec::new();
    }
    let evidence = Evidence::of(sources, arguments);
    let mut walk = ArgumentWalk { evidence: &evidence, root: parameters, seen: 0, out: Vec::new() };
    match arguments {
        Value::Object(map) => {
            for (name, value) in map {
                let property = Property::of(parameters, parameters, name);
                walk.visit(name, value, &property, 0);
            }
        }
        Value::Null => {}
        other => walk.visit("", other, &Property::unknown(""), 0),
    }
    walk.out
}

/// Whether nothing in the arguments needs a source.
fn has_no_values(arguments: &Value) -> bool {
    let is_free = |value: &Value| value.is_null() || value.is_boolean();
    match arguments {
        Value::Object(map) => map.len() <= MAX_VALUES && map.values().all(is_free),
        other => is_free(other),
    }
}

/// All sources of values. Their words, and their days, times and numbers, are read only once a value needs them: most
/// values were said literally.
struct Evidence<'a> {
    sources: &'a GroundingSources<'a>,
    arguments: &'a Value,
    said: LiteralTexts<'a>,
    words: OnceCell<Words>,
    figures: OnceCell<Figures>,
}

#[derive(Default)]
struct Words {
    vocabulary: Vocabulary,
    /// What was said, with spelled-out addresses in written form.
    spelled: String,
}

/// The days, times and numbers of all sources.
struct Figures {
    calendar: MentionedDates,
    clock: MentionedTimes,
    numbers: MentionedNumbers,
    instants: Vec<Timestamp>,
    /// The negative numbers of results.
    negatives: Vec<f64>,
}

fn source_words(text: &str, language: Option<&str>) -> Vec<words::SourceWord> {
    let mut words = words::words(text);
    if language == Some("en") {
        for word in words.iter_mut().filter(|w| w.is(OTHER_IN_ENGLISH)) {
            *word = words::SourceWord::new(format!("{}'", word.norm), word.glued, word.capital);
        }
    }
    words
}

impl<'a> Evidence<'a> {
    fn of(sources: &'a GroundingSources<'a>, arguments: &'a Value) -> Self {
        Self {
            sources,
            arguments,
            said: LiteralTexts { texts: &sources.said, language: sources.language },
            words: OnceCell::new(),
            figures: OnceCell::new(),
        }
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.words().vocabulary
    }

    fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(self.sources))
    }

    fn figures(&self) -> &Figures {
        self.figures.get_or_init(|| Figures::of(self.sources, self.arguments))
    }
}

impl Words {
    fn of(sources: &GroundingSources<'_>) -> Self {
        let mut all = Self::default();
        for text in &sources.said {
            all.vocabulary.read(&source_words(text, sources.language));
            all.spelled.push(' ');
            all.spelled.push_str(&names::with_written_addresses(words::cut(text)));
        }
        let mut left = MAX_FOUND;
        for value in &sources.found {
            all.find(value, &mut left, 0);
        }
        all
    }

    /// Adds the words of a result: its texts are read like the user's.
    fn find(&mut self, value: &Value, left: &mut usize, depth: u8) {
        if *left == 0 || depth > MAX_FOUND_DEPTH {
            return;
        }
        *left -= 1;
        match value {
            Value::String(text) => self.vocabulary.read(&source_words(text, None)),
            Value::Number(number) => self.vocabulary.read(&words::words(&number.to_string())),
            Value::Array(list) => list.iter().for_each(|one| self.find(one, left, depth + 1)),
            Value::Object(map) => {
                for (name, one) in map {
                    self.vocabulary.read(&words::words(name));
                    self.find(one, left, depth + 1);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl Figures {
    fn of(sources: &GroundingSources<'_>, arguments: &Value) -> Self {
        let mut figures = Self {
            calendar: MentionedDates::new(sources.now.date(), sources.names),
            clock: MentionedTimes::default(),
            numbers: MentionedNumbers::default(),
            instants: Vec::new(),
            negatives: Vec::new(),
        };
        for text in &sources.said {
            figures.read(&source_words(text, sources.language), sources.exact);
        }
        let mut left = MAX_FOUND;
        for value in &sources.found {
            figures.find(value, &mut left, 0);
        }
        figures.count_lists(arguments);
        figures.measure(arguments);
        figures
    }

    fn read(&mut self, words: &[words::SourceWord], may_be_decimals: bool) {
        let mut dated = self.calendar.read(words);
        self.clock.read(words, &mut dated, may_be_decimals);
        self.numbers.read(words, &dated);
    }

    /// Adds those of a result: its texts are read like the user's.
    fn find(&mut self, value: &Value, left: &mut usize, depth: u8) {
        if *left == 0 || depth > MAX_FOUND_DEPTH {
            return;
        }
        *left -= 1;
        match value {
            Value::String(text) => {
                self.read(&source_words(text, None), false);
                self.instants.extend(text.parse::<Timestamp>().ok());
                if let Some(moment) = moment(text) {
                    self.clock.add(minute(moment.local.time()));
                    self.instants.extend(moment.instant);
                }
            }
            Value::Number(number) => {
                if let Some(value) = number.as_f64() {
                    if value < 0.0 {
                        self.negatives.push(value);
                    }
                    self.numbers.add(value, None);
                }
            }
            Value::Array(list) => list.iter().for_each(|one| self.find(one, left, depth + 1)),
            Value::Object(map) => map.values().for_each(|one| self.find(one, left, depth + 1)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Adds the lengths of the call's own lists.
    fn count_lists(&mut self, arguments: &Value) {
        let mut open = vec![arguments];
        let mut left = MAX_VALUES;
        while let Some(value) = open.pop().filter(|_| left > 0) {
            left -= 1;
            match value {
                Value::Array(list) => {
                    self.numbers.add(list.len() as f64, None);
                    open.extend(list.iter().take(MAX_VALUES));
                }
                Value::Object(map) => open.extend(map.values().take(MAX_VALUES)),
                _ => {}
            }
        }
    }

    /// Adds the durations between the call's own days and times.
    fn measure(&mut self, arguments: &Value) {
        let texts = arguments.as_object().into_iter().flat_map(|map| map.values()).filter_map(Value::as_str);
        let texts: Vec<&str> = texts.take(MAX_VALUES).collect();
        let dates: Vec<Date> = texts.iter().filter_map(|t| day(t)).take(8).collect();
        let times: Vec<DateTime> = texts.iter().filter_map(|t| moment(t).map(|m| m.local)).take(8).collect();
        for (a, b) in dates.iter().flat_map(|a| dates.iter().map(move |b| (a, b))).filter(|(a, b)| a < b) {
            let days = b.duration_since(*a).as_hours() / 24;
            self.numbers.add(days as f64, Some("days"));
            self.numbers.add((days + 1) as f64, Some("days"));
            self.numbers.add(working(*a, *b), Some("days"));
        }
        for (a, b) in times.iter().flat_map(|a| times.iter().map(move |b| (a, b))).filter(|(a, b)| a < b) {
            self.numbers.add(b.duration_since(*a).as_mins() as f64, Some("minutes"));
        }
    }
}

impl Evidence<'_> {
    fn traces_date(&self, date: Date) -> bool {
        self.figures().calendar.supports(date)
    }

    fn traces_time(&self, time: Time) -> bool {
        self.figures().clock.supports(minute(time), minute(self.sources.now.time()))
    }

    /// Whether a day with a time has a source; one with an offset may be in another time zone.
    fn traces_moment(&self, moment: &ParsedMoment) -> bool {
        if moment.instant.is_some_and(|instant| self.figures().instants.contains(&instant)) {
            return true;
        }
        let local = |at: DateTime| {
            // The start and the end of a day stand for the whole day.
            let ends = matches!((at.hour(), at.minute()), (0, 0) | (23, 59));
            self.traces_date(at.date()) && (ends || self.traces_time(at.time()))
        };
        let here =
            moment.instant.map(|instant| instant.to_zoned(self.sources.now.time_zone().clone()).datetime());
        local(moment.local) || here.is_some_and(local) || self.in_a_while(moment)
    }

    /// "in 20 hours": the moment is as far from now as a duration in the text.
    fn in_a_while(&self, moment: &ParsedMoment) -> bool {
        let seconds = moment.local.duration_since(self.sources.now.datetime()).as_secs();
        let minutes = seconds as f64 / 60.0;
        [-2.0, -1.0, 0.0, 1.0, 2.0]
            .iter()
            .any(|slip| self.figures().clock.has_duration((minutes + slip).round()))
            && seconds > -86_400 * 8
    }
}

struct ArgumentWalk<'e, 'a> {
    evidence: &'e Evidence<'a>,
    root: &'e Value,
    seen: usize,
    out: Vec<String>,
}

impl ArgumentWalk<'_, '_> {
    fn visit(&mut self, path: &str, value: &Value, property: &Property, depth: u8) {
        self.seen += 1;
        if self.seen > MAX_VALUES || depth > MAX_DEPTH {
            if self.seen <= MAX_VALUES + 1 || depth > MAX_DEPTH {
                self.out.push(path.to_owned());
            }
            return;
        }
        if property.allows(value) {
            return;
        }
        // A nested path is a JSON pointer.
        let inner = |key: &str| {
            let key = key.replace('~', "~0").replace('/', "~1");
            if depth == 0 {
                format!("/{}/{key}", path.replace('~', "~0").replace('/', "~1"))
            } else {
                format!("{path}/{key}")
            }
        };
        match value {
            Value::Object(map) => {
                for (name, one) in map.iter().take(MAX_VALUES + 1) {
                    let property = Property::of(property.schema, self.root, name);
                    // A name that no schema declares is a value, too.
                    let is_value = self.evidence.sources.strict && property.schema.is_null();
                    if is_value && !self.evidence.traces_text(name.trim(), &Property::unknown("")) {
                        self.out.push(inner(name));
                    }
                    self.visit(&inner(name), one, &property, depth + 1);
                }
            }
            Value::Array(list) => {
                for (at, one) in list.iter().take(MAX_VALUES + 1).enumerate() {
                    self.visit(&inner(&at.to_string()), one, &property.item(self.root), depth + 1);
                }
            }
            Value::Number(number) => {
                let value = number.as_f64().unwrap_or(f64::NAN);
                if !self.evidence.traces_number(value, property) {
                    self.out.push(path.to_owned());
                }
            }
            Value::String(text) => {
                if !self.evidence.traces_text(text.trim(), property) {
                    self.out.push(path.to_owned());
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

impl Evidence<'_> {
    /// Whether a negative number has a source for its sign.
    fn traces_sign(&self, value: f64, property: &Property) -> bool {
        let words = ["minus", "meno", "negative", "negativo", "moins", "menos", "below", "sotto", "unter"];
        property.schema.get("minimum").and_then(Value::as_f64).is_some_and(|minimum| minimum < 0.0)
            || self.figures().negatives.contains(&value)
            || self.words().spelled.contains(&format!("-{}", value.abs()))
            || words.iter().any(|word| names::contains_whole_words(&self.words().spelled, word))
    }

    fn traces_number(&self, value: f64, property: &Property) -> bool {
        if self.sources.strict && value < 0.0 && !self.traces_sign(value, property) {
            return false;
        }
        if self.said.has_number(value)
            || self.figures().numbers.supports(value)
            || self.figures().clock.has_duration(value) && property.named(&["minutes", "duration"])
        {
            return true;
        }
        for (part, names) in [
            ("day", ["day", "giorno", "tag"]),
            ("month", ["month", "mese", "monat"]),
            ("year", ["year", "anno", "jahr"]),
        ] {
            let named = property.named(&names) && !property.named(&["days", "months", "years"]);
            if named && value.fract() == 0.0 && self.figures().calendar.supports_part(part, value as i64) {
                return true;
            }
        }
        // "the first one", "al terzo".
        if self.figures().numbers.has_ordinal(value) && !property.is_code() {
            return true;
        }
        if value == 0.0 {
            return !property.required || self.figures().numbers.mentions_none();
        }
        if value == 1.0 || property.is_least(value) {
            let one = if property.counts_people() {
                self.figures().numbers.mentions_speaker_only()
            } else {
                self.figures().numbers.mentions_singular()
            };
            return !property.required && !property.is_code() || value == 1.0 && one && !property.is_code();
        }
        false
    }

    fn traces_text(&self, text: &str, property: &Property) -> bool {
        if text.is_empty() {
            return true;
        }
        let kind = property.kind();
        if self.sources.exact && kind != PropertyKind::Free && hidden::has_invisible_text(text) {
            return hidden::is_written(text, self.sources);
        }
        let is_as_written = || self.has_its_addresses(text) && self.has_its_lookalikes(text);
        if kind != PropertyKind::Free && !is_as_written() {
            return false;
        }
        if let Some(traced) = self.traces_day_or_time(text, kind) {
            return traced;
        }
        let words = words::words(text);
        if self.is_said(text, &words, kind, property) {
            return true;
        }
        match kind {
            PropertyKind::Email => self.vocabulary().has(text) || self.has_text(text),
            PropertyKind::Person => (words.len() > 8 && !self.sources.strict) || self.traces_person(text),
            PropertyKind::Free => true,
            PropertyKind::Place if !text.contains('/') => {
                let is_long = text.split_whitespace().count() >= 4;
                let traced = is_long || self.vocabulary().has_place(text);
                traced && (!self.sources.strict || self.traces_figured_words(text))
            }
            _ => self.traces_code(text, &words, property),
        }
    }

    /// Whether a text was said literally, if no rule requires more than its words.
    fn is_said(
        &self,
        text: &str,
        words: &[words::SourceWord],
        kind: PropertyKind,
        property: &Property,
    ) -> bool {
        self.said.has(text)
            && !(kind == PropertyKind::Person && is_numeral(words))
            && !(self.sources.lists && property.lists_numbers())
    }

    fn traces_person(&self, text: &str) -> bool {
        if is_numeral(&words::words(text)) {
            return self.sources.user.eq_ignore_ascii_case(text);
        }
        self.vocabulary().has_person(text, self.sources.user) || (text.contains('@') && self.has_text(text))
    }

    /// Whether the text occurs in a source, as written or spelled out.
    fn has_text(&self, text: &str) -> bool {
        names::contains_whole_words(&self.words().spelled, words::fold(text).trim())
    }

    /// Whether a day or a time, recognised by schema or format, has a source; `None` if it is neither.
    fn traces_day_or_time(&self, text: &str, kind: PropertyKind) -> Option<bool> {
        if let Some(date) = day(text) {
            return Some(self.traces_date(date));
        }
        if let Some(moment) = moment(text) {
            return Some(self.traces_moment(&moment));
        }
        if let Some(time) = time(text) {
            return Some(self.traces_time(time));
        }
        if let Some((year, month)) = month(text) {
            return Some(self.figures().calendar.supports_month(year, month));
        }
        if let Some(minutes) = lasting(text) {
            let known = |by: f64| self.figures().numbers.supports(minutes / by);
            let derived = self.figures().clock.has_duration(minutes)
                || [1.0, 60.0, 1440.0, 10_080.0].into_iter().any(known);
            // A code may look like a duration: "PT000M".
            return Some(derived || self.vocabulary().has(text) || self.has_text(text));
        }
        // "15 June 2027", "June 15 at 10:00".
        if matches!(kind, PropertyKind::Date | PropertyKind::Moment | PropertyKind::Time) {
            return Some(self.has_worded_time(text, kind));
        }
        None
    }

    /// Whether a day or a time in words has a source, where the schema asks for figures.
    fn has_worded_time(&self, text: &str, kind: PropertyKind) -> bool {
        if self.vocabulary().has(text) || self.has_text(text) {
            return true;
        }
        let words = words::words(text);
        let mut own = MentionedDates::new(self.sources.now.date(), self.sources.names);
        let dated = own.read(&words);
        let said = own.all().any(|date| self.traces_date(date));
        if kind == PropertyKind::Date || dated.iter().any(|d| *d) {
            return said;
        }
        let figures: Vec<&words::SourceWord> = words.iter().filter(|w| w.figure().is_some()).collect();
        figures.iter().all(|w| self.vocabulary().has(&w.norm))
    }

    /// Whether each word of a list of things with their numbers was said or found: "thirty" as well as "30".
    fn traces_listed_words(&self, words: &[words::SourceWord]) -> bool {
        words.iter().filter(|word| word.norm.chars().all(char::is_alphabetic)).all(|word| {
            match word.spoken() {
                Some(1) => true,
                Some(number) => self.figures().numbers.supports(f64::from(number)),
                None => lexicon::is_stop_word(&word.norm) || self.vocabulary().knows(&word.norm),
            }
        })
    }

    /// Whether a code, an address, a path or any other text with digits has a source.
    fn traces_code(&self, text: &str, words: &[words::SourceWord], property: &Property) -> bool {
        if self.sources.lists && property.lists_numbers() && !self.traces_listed_words(words) {
            return false;
        }
        let blanks = text.split_whitespace().count();
        let digits = text.chars().any(|c| c.is_ascii_digit());
        if text.contains('@') && blanks == 1 {
            return self.vocabulary().has(text)
                || self.has_text(text)
                || self.traces_person(text.trim_start_matches('@'));
        }
        if blanks >= 4 {
            return !self.sources.strict || self.traces_figured_words(text);
        }
        if self.sources.strict
            && property.is_account()
            && !words.iter().all(|w| self.vocabulary().knows(&w.norm))
        {
            return self.vocabulary().has(text) || self.has_text(text);
        }
        if text.contains(['/', '\\']) {
            return self.traces_path(text);
        }
        if !digits {
            return !self.sources.strict || self.traces_figured_words(text);
        }
        if let Ok(value) = text.parse::<f64>()
            && self.figures().numbers.supports(value)
        {
            return true;
        }
        if self.vocabulary().has(text) || self.has_text(text) || self.traces_telephone(text) {
            return true;
        }
        // "APT-41" from "appointment 41", where the schema shows the format of such codes.
        words.iter().filter(|w| w.norm.chars().any(char::is_alphanumeric)).all(|word| {
            let figures = word.norm.trim_matches(char::is_alphabetic);
            let letters = word.norm.trim_matches(|c: char| c.is_ascii_digit());
            let known = figures.is_empty()
                || self.vocabulary().has(figures)
                || figures.parse::<f64>().is_ok_and(|v| self.figures().numbers.supports(v));
            let short = letters.len() <= 2 && blanks > 1;
            known
                && (letters.is_empty()
                    || short
                    || self.vocabulary().knows(letters)
                    || property.speaks_of(letters))
        })
    }

    /// Whether every word of a text with a digit, or with the marks of an address inside, has a source.
    fn traces_figured_words(&self, text: &str) -> bool {
        if self.vocabulary().has(text) || self.has_text(text) || self.traces_telephone(text) {
            return true;
        }
        let is_inner =
            |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).contains(['@', '/', '.']);
        let mut marked = text.split_whitespace().filter(|word| is_inner(word));
        if !marked.all(|word| {
            self.traces_path(word) || self.traces_day_or_time(word, PropertyKind::Other) == Some(true)
        }) {
            return false;
        }
        let words = words::words(text);
        let mut own = MentionedDates::new(self.sources.now.date(), self.sources.names);
        let dated = own.read(&words);
        let is_known_date = own.all().any(|date| self.traces_date(date));
        words.iter().zip(dated).filter(|(word, _)| word.norm.contains(|c: char| c.is_ascii_digit())).all(
            |(word, is_dated)| {
                (is_dated && is_known_date)
                    || self.vocabulary().has(&word.norm)
                    || word.norm.parse().is_ok_and(|value| self.figures().numbers.supports(value))
                    || self.has_worded_time(text, PropertyKind::Moment) && is_known_date
            },
        )
    }

    /// Whether each specific part of a path or an address is known.
    fn traces_path(&self, text: &str) -> bool {
        let common =
            ["", ".", "..", "~", "http:", "https:", "www", "com", "org", "net", "it", "html", "home"];
        self.vocabulary().has(text)
            || self.has_text(text)
            || text.split(['/', '\\']).filter(|part| !common.contains(part)).all(|part| {
                let inner = |piece: &str| common.contains(&piece) || self.vocabulary().has(piece);
                self.vocabulary().has(part) || part.split('.').all(inner)
            })
    }

    /// The same telephone number with another country code or trunk prefix.
    fn traces_telephone(&self, text: &str) -> bool {
        let figures: String = text.chars().filter(char::is_ascii_digit).collect();
        let marks = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '(' | ')' | '.' | ' ' | '/');
        let tail = |n: usize| figures.get(figures.len().saturating_sub(n)..).unwrap_or_default();
        text.chars().all(marks)
            && figures.len() >= 8
            && (1..=4)
                .filter_map(|cut| figures.len().checked_sub(cut))
                .filter(|n| *n >= 7)
                .any(|n| self.vocabulary().has(tail(n)))
    }
}

/// Whether a text consists of number words, so that it names nobody.
fn is_numeral(words: &[words::SourceWord]) -> bool {
    words.iter().all(|word| word.spoken().is_some() || word.is(&["half", "mezzo", "mezza", "day"]))
}

/// Working days from one day to another, inclusive.
fn working(from: Date, to: Date) -> f64 {
    use jiff::civil::Weekday::{Saturday, Sunday};
    let days = from.series(jiff::Span::new().days(1)).take_while(|day| *day <= to).take(400);
    days.filter(|day| !matches!(day.weekday(), Saturday | Sunday)).count() as f64
}
