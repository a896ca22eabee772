//! Replaces values in the purpose of a step: days, times, numbers and names.
//!
//! **Invariant:** slot filling reads the new purpose as the old values with exactly the requested ones replaced;
//! otherwise there is no new purpose.

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::dates::RangeRole;
use super::lexicon;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots;
use super::source::SourceText;
use super::text::{self, Token};

/// Similarity above which two words have the same meaning.
const SAME: f64 = 0.8;

/// Words that set a value.
const SETTING: [&str; 15] = [
    "make", "set", "put", "use", "update", "metti", "mettilo", "mettile", "fallo", "falla", "falle", "usa",
    "correggi", "cambi", "cambiamo",
];

/// Verbs of moving, after which "from … to …" may mean the old and the new value.
const MOVING: [&str; 18] = [
    "change", "switch", "move", "shift", "reschedule", "postpone", "replace", "cambia", "cambiare",
    "modifica", "modificare", "sposta", "spostare", "spostale", "rimanda", "posticipa", "anticipa",
    "sostituisci",
];

/// Words of a change that carry no value.
const FRAME: [&str; 14] = [
    "instead", "rather", "invece", "piuttosto", "date", "dates", "data", "period", "periodo", "giorno",
    "giorni", "day", "days", "only",
];

/// Function words that affect the meaning: time, amount, condition or negation.
const MEANINGFUL_FUNCTION_WORDS: [&str; 16] = [
    "prima", "dopo", "poi", "piu", "before", "after", "then", "over", "out", "off", "if", "se", "and",
    "about", "or", "not",
];

/// Units of days and nights: plural, singular, and whether it counts nights.
const DAY_UNITS: [(&str, &str, bool); 4] = [
    ("giorni", "giorno", false),
    ("days", "day", false),
    ("notti", "notte", true),
    ("nights", "night", true),
];

/// Whether words ask to change something existing.
pub(super) fn asks_to_change(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| t.is(&SETTING) || t.is(&MOVING))
}

/// A step whose purpose may change.
pub(super) struct StepWording<'a> {
    /// The arguments of its tool.
    pub fields: &'a [ArgumentField],
    /// Words of its tool's and scene's names.
    pub verbs: Vec<String>,
    /// Its purpose.
    pub purpose: &'a str,
    /// The current time.
    pub now: &'a Zoned,
}

/// How to read the words of a change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChangeReading {
    /// Whether the new value is all that is requested, so that one day replaces a range.
    pub exclusive: bool,
    /// Whether a bare value is enough.
    pub bare: bool,
    /// Whether the words lead to the step's tool, so that a name needs no capital.
    pub certain: bool,
}

/// The new purpose of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RewordedPurpose {
    /// The purpose.
    pub purpose: String,
    /// Names of the arguments in the change.
    pub arguments: Vec<String>,
    /// Whether one of them had no value before.
    pub adds: bool,
}

/// A span of a text: the end of a range that it expresses, its first and its last token.
type RangeEnd = (RangeRole, usize, usize);

impl StepWording<'_> {
    /// The values in the step's purpose.
    pub fn values(&self) -> slots::Filled {
        slots::fill(self.fields, self.purpose, self.now, &self.verbs, false)
    }

    /// The arguments whose current values `words` state. `None` if they state another value or contain
    /// anything else.
    pub fn arguments_stated_in(&self, words: &str) -> Option<Vec<String>> {
        let own = self.values().values;
        [false, true].into_iter().find_map(|bare| {
            let stated = self.read(words, ChangeReading { bare, certain: true, exclusive: false })?.0;
            let same = stated.iter().all(|(name, value)| own.get(name) == Some(value));
            same.then(|| stated.keys().cloned().collect())
        })
    }

    /// The values of the arguments in `words`. `None` if the words contain anything else.
    fn read<'w>(
        &'w self,
        words: &'w str,
        how: ChangeReading,
    ) -> Option<(Map<String, Value>, SourceText<'w>)> {
        let free = |f: &&ArgumentField| {
            !matches!(f.kind, ArgumentKind::Text | ArgumentKind::Object(_) | ArgumentKind::Fixed(_))
        };
        let fields: Vec<ArgumentField> = self.fields.iter().filter(free).cloned().collect();
        let mut source = SourceText::new(words, self.now);
        let mut filled = slots::fill_from(&fields, &mut source, &self.verbs, how.bare);
        let bare = slots::fill(&fields, "", self.now, &self.verbs, false).values;
        filled.values.retain(|name, value| bare.get(name) != Some(value));
        if filled.values.is_empty() || !filled.several.is_empty() {
            return None;
        }
        let values = filled.values;
        let json = Value::Object(values.clone()).to_string();
        let days = source.found.days.iter().map(|day| day.date.to_string());
        let hours = source.found.times.iter().map(|hour| hour.time.strftime("%H:%M").to_string());
        if !days.chain(hours).all(|text| json.contains(&text)) {
            return None;
        }
        let named = |field: &ArgumentField| {
            let name = values.get(&field.name).and_then(Value::as_str);
            let shaped = |name: &str| {
                name.chars().any(|c| c.is_uppercase() || c.is_ascii_digit()) || source.found.quotes.len() == 1
            };
            let needs = matches!(
                field.kind,
                ArgumentKind::Place | ArgumentKind::Person | ArgumentKind::Thing | ArgumentKind::Id
            );
            how.certain || !needs || name.is_none_or(shaped)
        };
        if !fields.iter().all(named) {
            return None;
        }
        let stated: Vec<&ArgumentField> = fields.iter().filter(|f| values.contains_key(&f.name)).collect();
        let own = text::tokens(self.purpose);
        let known = |(i, token): (usize, &Token)| {
            let features = token.features();
            let plain = lexicon::is_stop_word(&token.norm) || lexicon::is_pleasantry(&token.norm);
            let asks = lexicon::is_question_word(&token.norm) && token.norm != "come";
            !token.word
                || source.is_taken(i)
                || source.found.quoted[i]
                || (plain && !asks && !token.is(&MEANINGFUL_FUNCTION_WORDS))
                || token.is(&SETTING)
                || token.is(&MOVING)
                || token.is(&FRAME)
                || (!asks && own.iter().any(|o| o.word && o.features().similarity(&features) > SAME))
                || self.verbs.iter().any(|verb| text::features(verb).similarity(&features) > SAME)
                || stated.iter().any(|field| field.similarity(&features) >= SAME)
                || is_day_count(&source, i)
        };
        source.tokens.iter().enumerate().all(known).then_some((values, source))
    }

    /// The step's purpose with the values of `words` in the place of the current ones.
    pub fn reword(&self, words: &str, how: ChangeReading) -> Option<RewordedPurpose> {
        let (stated, new) = self.read(words, how)?;
        let old = SourceText::new(self.purpose, self.now);
        let before = self.values();
        if !before.several.is_empty() || self.is_moved(&old, &new) || !self.has_ends_for(&new, &stated) {
            return None;
        }
        let (purpose, expected) = self.substitute(&stated, &before.values, &old, &new, how.exclusive)?;
        let (purpose, expected) = self.update_day_count(purpose, expected, &old, &new)?;
        let purpose = text::one_line(&purpose);
        let reworded = StepWording { purpose: &purpose, verbs: self.verbs.clone(), ..*self };
        let after = reworded.values();
        let sound =
            after.values == expected && after.several.is_empty() && reworded.is_in_order(&after.values);
        let adds = stated.keys().any(|name| !before.values.contains_key(name));
        (sound && purpose != self.purpose).then(|| RewordedPurpose {
            purpose,
            arguments: stated.keys().cloned().collect(),
            adds,
        })
    }

    /// Whether the step has an argument for each end of a range in the change: "until Friday" means nothing to
    /// a step without an end.
    fn has_ends_for(&self, new: &SourceText, stated: &Map<String, Value>) -> bool {
        let ended = |role: RangeRole| {
            self.fields
                .iter()
                .any(|f| f.role == role && f.kind != ArgumentKind::Time && stated.contains_key(&f.name))
        };
        new.found.days.iter().all(|day| day.role == RangeRole::Single || ended(day.role))
    }

    /// The purpose with the stated values, and the values that it should then have.
    fn substitute(
        &self,
        stated: &Map<String, Value>,
        before: &Map<String, Value>,
        old: &SourceText,
        new: &SourceText,
        exclusive: bool,
    ) -> Option<(String, Map<String, Value>)> {
        let mut edits = PurposeEdits { text: self.purpose, replacements: Vec::new(), appended: Vec::new() };
        let days = |s: &SourceText| -> Vec<RangeEnd> {
            s.found.days.iter().map(|d| (d.role, d.first, d.last)).collect()
        };
        let hours = |s: &SourceText| -> Vec<RangeEnd> {
            s.found.times.iter().map(|h| (h.role, h.first, h.last)).collect()
        };
        edits.replace_times(old, &days(old), new, &days(new), exclusive)?;
        edits.replace_times(old, &hours(old), new, &hours(new), exclusive)?;
        let mut expected = before.clone();
        for field in self.fields {
            let Some(value) = stated.get(&field.name) else { continue };
            let earlier = before.get(&field.name);
            expected.insert(field.name.clone(), value.clone());
            match &field.kind {
                _ if earlier == Some(value) => {}
                ArgumentKind::Date | ArgumentKind::DateTime | ArgumentKind::Time => {}
                ArgumentKind::Number(_) => edits.replace_number(old, earlier, new, value)?,
                ArgumentKind::Place
                | ArgumentKind::Person
                | ArgumentKind::Thing
                | ArgumentKind::Id
                | ArgumentKind::Email
                | ArgumentKind::Uri => edits.replace_name(old, earlier, new, value)?,
                _ => return None,
            }
        }
        Some((edits.apply()?, expected))
    }

    /// Updates the number of days in the purpose to its new days.
    fn update_day_count(
        &self,
        purpose: String,
        mut expected: Map<String, Value>,
        old: &SourceText,
        new: &SourceText,
    ) -> Option<(String, Map<String, Value>)> {
        if new.found.days.is_empty() {
            return Some((purpose, expected));
        }
        let Some((recounted, from, to)) = recount_days(old, &SourceText::new(&purpose, self.now))? else {
            return Some((purpose, expected));
        };
        for field in self.fields.iter().filter(|f| matches!(f.kind, ArgumentKind::Number(_))) {
            if f64::from(from) == expected.get(&field.name).and_then(Value::as_f64).unwrap_or(-1.0)
                && field.named(&["days", "giorni", "nights", "notti"])
            {
                expected.insert(field.name.clone(), json!(to));
            }
        }
        Some((recounted, expected))
    }

    /// "Move it from the 5th to the 12th": whether the first day may be the current one.
    fn is_moved(&self, old: &SourceText, new: &SourceText) -> bool {
        let from = |s: &SourceText| s.found.days.first().map(|day| day.date);
        let plain = |t: &Token| t.raw == ":" || t.is(&["date", "dates", "days", "giorni"]);
        new.found.days.iter().any(|day| day.role == RangeRole::From)
            && from(old) == from(new)
            && new.tokens.iter().any(|t| t.is(&MOVING))
            && !new.tokens.iter().any(plain)
    }

    fn is_in_order(&self, values: &Map<String, Value>) -> bool {
        let end = |role: RangeRole, kind: &ArgumentKind| {
            let field = self.fields.iter().find(|f| f.role == role && f.kind == *kind)?;
            values.get(&field.name)?.as_str()
        };
        [ArgumentKind::Date, ArgumentKind::DateTime].iter().all(|kind| {
            match (end(RangeRole::From, kind), end(RangeRole::To, kind)) {
                (Some(from), Some(to)) => from <= to,
                _ => true,
            }
        })
    }
}

/// Whether a word is the number of the days in the text.
fn is_day_count(source: &SourceText, i: usize) -> bool {
    let length = day_span(source);
    length.is_some() && find_day_counts(source).iter().any(|c| c.number == i && Some(c.days) == length)
}

struct PurposeEdits<'a> {
    text: &'a str,
    /// Byte ranges with their replacements.
    replacements: Vec<(usize, usize, String)>,
    /// Words to append.
    appended: Vec<String>,
}

impl PurposeEdits<'_> {
    fn replace(&mut self, source: &SourceText, first: usize, last: usize, words: &str) {
        // "Alle 9" becomes "alle 10", and not "alle alle 10".
        let opening = words.split_whitespace().next().map(text::fold);
        let lead =
            first.checked_sub(1).filter(|i| opening.as_deref() == Some(source.tokens[*i].norm.as_str()));
        let (start, end) = (source.tokens[lead.unwrap_or(first)].start, source.tokens[last].end);
        self.replacements.push((start, end, words.to_owned()));
    }

    /// Replaces days or times: all of them, or the one end that the change states.
    fn replace_times(
        &mut self,
        old: &SourceText,
        old_ends: &[RangeEnd],
        new: &SourceText,
        new_ends: &[RangeEnd],
        exclusive: bool,
    ) -> Option<()> {
        let (Some(first), Some(last)) = (new_ends.first(), new_ends.last()) else { return Some(()) };
        let words = new.span(first.1, last.2);
        let (Some(start), Some(end)) = (old_ends.first(), old_ends.last()) else {
            self.appended.push(words.to_owned());
            return is_contiguous(new, new_ends).then_some(());
        };
        let one = new_ends.len() == 1;
        if one && old_ends.len() == 2 && first.0 != RangeRole::Single {
            let at = old_ends.iter().find(|place| place.0 == first.0)?;
            let apart = start.2 < end.1;
            self.replace(old, at.1, at.2, words);
            return apart.then_some(());
        }
        // One day for a range may be its beginning, or all that is requested.
        if (one && old_ends.len() > 1 && !exclusive)
            || !is_contiguous(old, old_ends)
            || !is_contiguous(new, new_ends)
        {
            return None;
        }
        self.replace(old, start.1, end.2, words);
        Some(())
    }

    fn replace_number(
        &mut self,
        old: &SourceText,
        earlier: Option<&Value>,
        new: &SourceText,
        value: &Value,
    ) -> Option<()> {
        let of = |source: &SourceText, value: &Value| -> Vec<(usize, usize)> {
            let same = source.found.numbers.iter().filter(|n| Some(n.value) == value.as_f64());
            same.map(|n| (n.first, n.last)).collect()
        };
        let stated = of(new, value);
        let Some((first, last)) = stated.first() else {
            // The number follows from the days.
            return (!new.found.days.is_empty()).then_some(());
        };
        let [(a, b)] = of(old, earlier?)[..] else { return None };
        self.replace(old, a, b, new.span(*first, *last));
        Some(())
    }

    fn replace_name(
        &mut self,
        old: &SourceText,
        earlier: Option<&Value>,
        new: &SourceText,
        value: &Value,
    ) -> Option<()> {
        let name = value.as_str()?;
        let Some(earlier) = earlier else {
            let [(first, last)] = find_spans(new, name)[..] else { return None };
            let led = first.checked_sub(1).filter(|i| lexicon::is_stop_word(&new.tokens[*i].norm));
            self.appended.push(new.span(led.unwrap_or(first), last).to_owned());
            return Some(());
        };
        let [(first, last)] = find_spans(old, earlier.as_str()?)[..] else { return None };
        self.replace(old, first, last, name);
        Some(())
    }

    /// The edited text. `None` if edits overlap.
    fn apply(mut self) -> Option<String> {
        self.replacements.sort();
        self.replacements.dedup();
        if self.replacements.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return None;
        }
        let mut text = self.text.to_owned();
        for (start, end, words) in self.replacements.iter().rev() {
            text.replace_range(*start..*end, words);
        }
        for words in &self.appended {
            text = format!("{} {words}", text.trim_end_matches(['.', '!', ' ']));
        }
        Some(text)
    }
}

/// Whether only function words are between these spans.
fn is_contiguous(source: &SourceText, places: &[RangeEnd]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return true };
    let own = |i: usize| places.iter().any(|place| (place.1..=place.2).contains(&i));
    (first.1..=last.2).all(|i| {
        let token = &source.tokens[i];
        own(i) || !token.word || lexicon::is_stop_word(&token.norm)
    })
}

/// The occurrences of a name, by first and last token.
fn find_spans(source: &SourceText, name: &str) -> Vec<(usize, usize)> {
    let count = source.tokens.len();
    let ends = (0..count).flat_map(|a| (a..count.min(a + 10)).map(move |b| (a, b)));
    ends.filter(|(a, b)| source.span(*a, *b) == name).collect()
}

/// The number of days from the first to the last day of the text. `None` if it has no days, or several that
/// are no range.
fn day_span(source: &SourceText) -> Option<i32> {
    let days: Vec<Date> = source.found.days.iter().map(|day| day.date).collect();
    match days[..] {
        [_] => Some(1),
        [from, to] => from.until(to).ok().map(|span| span.get_days() + 1),
        _ => None,
    }
}

/// A number of days or nights in a text.
struct DayCount {
    /// Token of the number.
    number: usize,
    /// Token of the unit.
    unit: usize,
    days: i32,
    nights: bool,
}

fn find_day_counts(source: &SourceText) -> Vec<DayCount> {
    let unit = |i: usize| {
        let token = source.tokens.get(i)?;
        DAY_UNITS.iter().find(|(many, one, _)| token.is(&[many, one]))
    };
    let number = |i: usize| {
        let number = source.found.numbers.iter().find(|n| n.first == i && n.last == i);
        number.map(|n| n.value as i32).or_else(|| source.is(i, &["un", "una", "a"]).then_some(1))
    };
    let found = (1..source.tokens.len()).filter_map(|i| {
        let nights = unit(i)?.2;
        let count = number(i - 1)?;
        Some(DayCount { number: i - 1, unit: i, days: count + i32::from(nights), nights })
    });
    found.collect()
}

/// The new text `made` with its number of days updated, the old number and the new one. `Some(None)` if there
/// is no number to update; `None` if the new number is uncertain.
#[expect(clippy::option_option, reason = "uncertain, absent and updated are three cases")]
fn recount_days(old: &SourceText, made: &SourceText) -> Option<Option<(String, i32, i32)>> {
    let new = find_day_counts(made);
    let working = |t: &Token| {
        t.norm.starts_with("lavorativ") || t.norm.starts_with("ferial") || t.is(&["working", "business"])
    };
    let [one] = &new[..] else { return (new.is_empty() && !made.tokens.iter().any(working)).then_some(None) };
    let length = day_span(made)?;
    let in_unit = |days: i32| days - i32::from(one.nights);
    if one.days == length {
        return Some(None);
    }
    if day_span(old) != Some(one.days) || made.tokens.iter().any(working) || in_unit(length) < 1 {
        return None;
    }
    let (many, single, _) = DAY_UNITS.iter().find(|l| made.tokens[one.unit].is(&[l.0, l.1]))?;
    let unit = if in_unit(length) == 1 { single } else { many };
    let mut text = made.text.to_owned();
    text.replace_range(
        made.tokens[one.number].start..made.tokens[one.unit].end,
        &format!("{} {unit}", in_unit(length)),
    );
    Some(Some((text, in_unit(one.days), in_unit(length))))
}
