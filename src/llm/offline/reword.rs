//! A step's words with other values in them: new days, times, numbers and names in the place of the old.
//!
//! **Invariant:** what comes out reads as the old values with the new ones in their place, by the slot filling
//! of the step's scene, or nothing comes out.

use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::dates::RangeRole;
use super::lexicon;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots;
use super::source::SourceText;
use super::text::{self, Token};

/// How like two words are that speak of the same.
const SAME: f64 = 0.8;

/// Words that set a value.
const SETTING: [&str; 15] = [
    "make", "set", "put", "use", "update", "metti", "mettilo", "mettile", "fallo", "falla", "falle", "usa",
    "correggi", "cambi", "cambiamo",
];

/// Words of moving, after which "from … to …" may be from where to where.
const MOVING: [&str; 18] = [
    "change",
    "switch",
    "move",
    "shift",
    "reschedule",
    "postpone",
    "replace",
    "cambia",
    "cambiare",
    "modifica",
    "modificare",
    "sposta",
    "spostare",
    "spostale",
    "rimanda",
    "posticipa",
    "anticipa",
    "sostituisci",
];

/// Words of a change that say nothing of what it is.
const FRAME: [&str; 14] = [
    "instead",
    "rather",
    "invece",
    "piuttosto",
    "date",
    "dates",
    "data",
    "period",
    "periodo",
    "giorno",
    "giorni",
    "day",
    "days",
    "only",
];

/// Function words that say something of when, how much or whether.
const TELLING: [&str; 16] = [
    "prima", "dopo", "poi", "piu", "before", "after", "then", "over", "out", "off", "if", "se", "and",
    "about", "or", "not",
];

/// Days and nights, with the singular of each.
const LENGTHS: [(&str, &str, bool); 4] = [
    ("giorni", "giorno", false),
    ("days", "day", false),
    ("notti", "notte", true),
    ("nights", "night", true),
];

/// Whether words ask for a change of what there is.
pub(super) fn changes(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| t.is(&SETTING) || t.is(&MOVING))
}

/// A step whose words may change.
pub(super) struct Worded<'a> {
    /// The arguments of its tool.
    pub fields: &'a [ArgumentField],
    /// Words of its tool's and scene's names.
    pub verbs: Vec<String>,
    /// Its words.
    pub purpose: &'a str,
    /// Now.
    pub now: &'a Zoned,
}

/// How a step's words are to be changed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    /// Nothing else is wanted: one day stands for a range.
    pub only: bool,
    /// A bare value is enough.
    pub alone: bool,
    /// The words lead to the step's tool: a name needs no capital.
    pub sure: bool,
}

/// A step's new words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reworded {
    /// The words.
    pub purpose: String,
    /// The arguments that were said, by name.
    pub said: Vec<String>,
    /// Whether one of them had no value before.
    pub adds: bool,
}

/// A place in a text: the end of a range that it is, its first and its last token.
type RangeEnd = (RangeRole, usize, usize);

impl Worded<'_> {
    /// The values of the step's own words.
    pub fn values(&self) -> slots::Filled {
        slots::fill(self.fields, self.purpose, self.now, &self.verbs, false)
    }

    /// The arguments of which `words` say the values that the step has; `None` where they say another, or
    /// something else.
    pub fn has(&self, words: &str) -> Option<Vec<String>> {
        let own = self.values().values;
        [false, true].into_iter().find_map(|alone| {
            let said = self.read(words, How { alone, sure: true, only: false })?.0;
            let same = said.iter().all(|(name, value)| own.get(name) == Some(value));
            same.then(|| said.keys().cloned().collect())
        })
    }

    /// What `words` say of the arguments, where nothing else is in them.
    fn read<'w>(&'w self, words: &'w str, how: How) -> Option<(Map<String, Value>, SourceText<'w>)> {
        let free = |f: &&ArgumentField| {
            !matches!(f.kind, ArgumentKind::Text | ArgumentKind::Object(_) | ArgumentKind::Fixed(_))
        };
        let fields: Vec<ArgumentField> = self.fields.iter().filter(free).cloned().collect();
        let mut source = SourceText::new(words, self.now);
        let mut filled = slots::fill_from(&fields, &mut source, &self.verbs, how.alone);
        let bare = slots::fill(&fields, "", self.now, &self.verbs, false).values;
        filled.values.retain(|name, value| bare.get(name) != Some(value));
        if filled.values.is_empty() || !filled.several.is_empty() {
            return None;
        }
        let values = filled.values;
        let shown = Value::Object(values.clone()).to_string();
        let days = source.found.days.iter().map(|day| day.date.to_string());
        let hours = source.found.times.iter().map(|hour| hour.time.strftime("%H:%M").to_string());
        if !days.chain(hours).all(|said| shown.contains(&said)) {
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
            how.sure || !needs || name.is_none_or(shaped)
        };
        if !fields.iter().all(named) {
            return None;
        }
        let said: Vec<&ArgumentField> = fields.iter().filter(|f| values.contains_key(&f.name)).collect();
        let own = text::tokens(self.purpose);
        let known = |(i, token): (usize, &Token)| {
            let features = token.features();
            let plain = lexicon::is_stop_word(&token.norm) || lexicon::is_pleasantry(&token.norm);
            let asks = lexicon::is_question_word(&token.norm) && token.norm != "come";
            !token.word
                || source.gone(i)
                || source.found.quoted[i]
                || (plain && !asks && !token.is(&TELLING))
                || token.is(&SETTING)
                || token.is(&MOVING)
                || token.is(&FRAME)
                || (!asks && own.iter().any(|o| o.word && o.features().similarity(&features) > SAME))
                || self.verbs.iter().any(|verb| text::features(verb).similarity(&features) > SAME)
                || said.iter().any(|field| field.similarity(&features) >= SAME)
                || self.counts(&source, i)
        };
        source.tokens.iter().enumerate().all(known).then_some((values, source))
    }

    /// Whether a word is the number of the days that are said beside it.
    fn counts(&self, source: &SourceText, i: usize) -> bool {
        let length = span_of(source);
        length.is_some() && counted(source).iter().any(|c| c.number == i && Some(c.days) == length)
    }

    /// The step's words with what `words` say in the place of what was said of the same.
    pub fn reworded(&self, words: &str, how: How) -> Option<Reworded> {
        let (said, new) = self.read(words, how)?;
        let old = SourceText::new(self.purpose, self.now);
        let before = self.values();
        if !before.several.is_empty() || self.is_moved(&old, &new) {
            return None;
        }
        // "Until Friday" is nothing for what has no end.
        let ended = |role: RangeRole| {
            self.fields
                .iter()
                .any(|f| f.role == role && f.kind != ArgumentKind::Time && said.contains_key(&f.name))
        };
        if new.found.days.iter().any(|day| day.role != RangeRole::Single && !ended(day.role)) {
            return None;
        }
        let mut edits = Edits { text: self.purpose, places: Vec::new(), behind: Vec::new() };
        let days = |s: &SourceText| -> Vec<RangeEnd> {
            s.found.days.iter().map(|d| (d.role, d.first, d.last)).collect()
        };
        let hours = |s: &SourceText| -> Vec<RangeEnd> {
            s.found.times.iter().map(|h| (h.role, h.first, h.last)).collect()
        };
        edits.moments(&old, &days(&old), &new, &days(&new), how.only)?;
        edits.moments(&old, &hours(&old), &new, &hours(&new), how.only)?;
        let mut wanted = before.values.clone();
        for field in self.fields {
            let Some(value) = said.get(&field.name) else { continue };
            let earlier = before.values.get(&field.name);
            wanted.insert(field.name.clone(), value.clone());
            match &field.kind {
                _ if earlier == Some(value) => {}
                ArgumentKind::Date | ArgumentKind::DateTime | ArgumentKind::Time => {}
                ArgumentKind::Number(_) => edits.number(&old, earlier, &new, value)?,
                ArgumentKind::Place
                | ArgumentKind::Person
                | ArgumentKind::Thing
                | ArgumentKind::Id
                | ArgumentKind::Email
                | ArgumentKind::Uri => {
                    edits.name(&old, earlier, &new, value)?;
                }
                _ => return None,
            }
        }
        let mut purpose = edits.made()?;
        let made = SourceText::new(&purpose, self.now);
        if !new.found.days.is_empty()
            && let Some((counted, from, to)) = recounted(&old, &made)?
        {
            for field in self.fields.iter().filter(|f| matches!(f.kind, ArgumentKind::Number(_))) {
                if f64::from(from) == wanted.get(&field.name).and_then(Value::as_f64).unwrap_or(-1.0)
                    && field.named(&["days", "giorni", "nights", "notti"])
                {
                    wanted.insert(field.name.clone(), json!(to));
                }
            }
            purpose = counted;
        }
        let purpose = text::one_line(&purpose);
        let worded = Worded { purpose: &purpose, verbs: self.verbs.clone(), ..*self };
        let after = worded.values();
        let sound = after.values == wanted && after.several.is_empty() && worded.is_in_order(&after.values);
        let adds = said.keys().any(|name| !before.values.contains_key(name));
        (sound && purpose != self.purpose).then(|| Reworded {
            purpose,
            said: said.keys().cloned().collect(),
            adds,
        })
    }

    /// "Move it from the 5th to the 12th": whether the beginning may be where it is moved from.
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

/// What is to be replaced in a text, by bytes, and what is to stand behind it.
struct Edits<'a> {
    text: &'a str,
    places: Vec<(usize, usize, String)>,
    behind: Vec<String>,
}

impl Edits<'_> {
    fn put(&mut self, source: &SourceText, first: usize, last: usize, words: &str) {
        // "Alle 9" becomes "alle 10", and not "alle alle 10".
        let opening = words.split_whitespace().next().map(text::fold);
        let lead =
            first.checked_sub(1).filter(|i| opening.as_deref() == Some(source.tokens[*i].norm.as_str()));
        let (start, end) = (source.tokens[lead.unwrap_or(first)].start, source.tokens[last].end);
        self.places.push((start, end, words.to_owned()));
    }

    /// Days or times: all of them, or the one end that was said.
    fn moments(
        &mut self,
        old: &SourceText,
        had: &[RangeEnd],
        new: &SourceText,
        said: &[RangeEnd],
        only: bool,
    ) -> Option<()> {
        let (Some(first), Some(last)) = (said.first(), said.last()) else { return Some(()) };
        let words = new.span(first.1, last.2);
        let (Some(start), Some(end)) = (had.first(), had.last()) else {
            self.behind.push(words.to_owned());
            return whole(new, said).then_some(());
        };
        let one = said.len() == 1;
        if one && had.len() == 2 && first.0 != RangeRole::Single {
            let at = had.iter().find(|place| place.0 == first.0)?;
            let apart = start.2 < end.1;
            self.put(old, at.1, at.2, words);
            return apart.then_some(());
        }
        // One day for a range may be where it begins, or all that is wanted.
        if (one && had.len() > 1 && !only) || !whole(old, had) || !whole(new, said) {
            return None;
        }
        self.put(old, start.1, end.2, words);
        Some(())
    }

    fn number(
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
        let said = of(new, value);
        let Some((first, last)) = said.first() else {
            // It follows from the days.
            return (!new.found.days.is_empty()).then_some(());
        };
        let [(a, b)] = of(old, earlier?)[..] else { return None };
        self.put(old, a, b, new.span(*first, *last));
        Some(())
    }

    fn name(
        &mut self,
        old: &SourceText,
        earlier: Option<&Value>,
        new: &SourceText,
        value: &Value,
    ) -> Option<()> {
        let name = value.as_str()?;
        let Some(earlier) = earlier else {
            let [(first, last)] = places(new, name)[..] else { return None };
            let led = first.checked_sub(1).filter(|i| lexicon::is_stop_word(&new.tokens[*i].norm));
            self.behind.push(new.span(led.unwrap_or(first), last).to_owned());
            return Some(());
        };
        let [(first, last)] = places(old, earlier.as_str()?)[..] else { return None };
        self.put(old, first, last, name);
        Some(())
    }

    fn made(mut self) -> Option<String> {
        self.places.sort();
        self.places.dedup();
        if self.places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return None;
        }
        let mut text = self.text.to_owned();
        for (start, end, words) in self.places.iter().rev() {
            text.replace_range(*start..*end, words);
        }
        for words in &self.behind {
            text = format!("{} {words}", text.trim_end_matches(['.', '!', ' ']));
        }
        Some(text)
    }
}

/// Whether nothing of its own stands between these.
fn whole(source: &SourceText, places: &[RangeEnd]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return true };
    let own = |i: usize| places.iter().any(|place| (place.1..=place.2).contains(&i));
    (first.1..=last.2).all(|i| {
        let token = &source.tokens[i];
        own(i) || !token.word || lexicon::is_stop_word(&token.norm)
    })
}

/// Where a name stands, by first and last token.
fn places(source: &SourceText, name: &str) -> Vec<(usize, usize)> {
    let count = source.tokens.len();
    let ends = (0..count).flat_map(|a| (a..count.min(a + 10)).map(move |b| (a, b)));
    ends.filter(|(a, b)| source.span(*a, *b) == name).collect()
}

/// How many days the words speak of; `None` where they name none, or several that are no range.
fn span_of(source: &SourceText) -> Option<i32> {
    let days: Vec<Date> = source.found.days.iter().map(|day| day.date).collect();
    match days[..] {
        [_] => Some(1),
        [from, to] => from.until(to).ok().map(|span| span.get_days() + 1),
        _ => None,
    }
}

/// A number of days or nights in a text.
struct Counted {
    number: usize,
    unit: usize,
    days: i32,
    nights: bool,
}

fn counted(source: &SourceText) -> Vec<Counted> {
    let unit = |i: usize| {
        let token = source.tokens.get(i)?;
        LENGTHS.iter().find(|(many, one, _)| token.is(&[many, one]))
    };
    let number = |i: usize| {
        let said = source.found.numbers.iter().find(|n| n.first == i && n.last == i);
        said.map(|n| n.value as i32).or_else(|| source.is(i, &["un", "una", "a"]).then_some(1))
    };
    let found = (1..source.tokens.len()).filter_map(|i| {
        let nights = unit(i)?.2;
        let count = number(i - 1)?;
        Some(Counted { number: i - 1, unit: i, days: count + i32::from(nights), nights })
    });
    found.collect()
}

/// The new words with the number of days that the old had, as it is now, and both numbers. `None` where that
/// is not sure; nothing where no number was said.
#[expect(clippy::option_option, reason = "not sure, not said, and said are three things")]
fn recounted(old: &SourceText, made: &SourceText) -> Option<Option<(String, i32, i32)>> {
    let new = counted(made);
    let working = |t: &Token| {
        t.norm.starts_with("lavorativ") || t.norm.starts_with("ferial") || t.is(&["working", "business"])
    };
    let [one] = &new[..] else { return (new.is_empty() && !made.tokens.iter().any(working)).then_some(None) };
    let length = span_of(made)?;
    let shown = |days: i32| days - i32::from(one.nights);
    if one.days == length {
        return Some(None);
    }
    if span_of(old) != Some(one.days) || made.tokens.iter().any(working) || shown(length) < 1 {
        return None;
    }
    let (many, single, _) = LENGTHS.iter().find(|l| made.tokens[one.unit].is(&[l.0, l.1]))?;
    let unit = if shown(length) == 1 { single } else { many };
    let mut text = made.text.to_owned();
    text.replace_range(
        made.tokens[one.number].start..made.tokens[one.unit].end,
        &format!("{} {unit}", shown(length)),
    );
    Some(Some((text, shown(one.days), shown(length))))
}
