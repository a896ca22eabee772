//! The times of day mentioned in texts, in minutes since midnight, and durations.

use std::collections::BTreeSet;

use super::quantity;
use super::words::SourceWord;
use crate::language::calendar_words::MIDNIGHT;
use crate::language::function_words::NUMBER_JOINTS;

const DAY: i32 = 1440;

#[derive(Debug, Default)]
pub(super) struct MentionedTimes {
    times: BTreeSet<i32>,
    lengths: BTreeSet<i32>,
    /// Whether "now", or a duration before or after it, was mentioned.
    moments: BTreeSet<i32>,
}

/// Words that make the following number an hour.
const LEADS: &[&str] = &[
    "at", "alle", "all", "alla", "dalle", "dall", "le", "ore", "ora", "um", "gegen", "ab", "las", "la",
    "les", "from", "to", "until", "till", "by", "around", "about", "between", "and", "e", "o", "or", "verso",
    "h", "-", "after", "before", "dopo", "prima", "since", "entro", "fino", "vers", "bis", "von", "sulle",
    "l", "per", "for", "than", "delle", "tra", "fra", "x", "ad",
];
const EARLY: &[&str] = &["am", "morning", "mattina", "mattino", "morgens", "matin", "manana"];
const LATE: &[&str] = &[
    "pm", "evening", "afternoon", "night", "tonight", "sera", "stasera", "pomeriggio", "abends",
    "nachmittags", "soir", "tarde", "noche",
];
const HOURS: &[&str] = &["oclock", "uhr", "heures", "h", "ore", "sharp", "horas"];
const QUARTER: &[&str] = &["quarter", "quarto", "quart", "viertel", "cuarto"];
const MINUTES: &[&str] = &["minutes", "minuti", "minute", "minuten"];
const HALF: &[&str] = &["half", "mezza", "mezzo", "demie", "demi", "halb", "media"];

impl MentionedTimes {
    /// Reads a text; marks in `dated` the words that are part of a time in figures and therefore not
    /// quantities. With `may_be_decimals`, a time with a dot is a possible quantity as well: "24.50".
    pub fn read(&mut self, words: &[SourceWord], dated: &mut [bool], may_be_decimals: bool) {
        let reader = ClockReader { words };
        let date = dated.to_vec();
        let free = |i: usize| !date.get(i).copied().unwrap_or(false);
        for i in 0..words.len() {
            if words[i].is(&["noon", "midday", "mezzogiorno", "midi", "mittag", "mittags", "mediodia"]) {
                let half = if reader.any(i + 1, 2, HALF) { 30 } else { 0 };
                self.times.extend([720, 720 + half]);
            }
            if words[i].is(MIDNIGHT) {
                self.times.insert(0);
            }
            if words[i].is(&[
                "now", "adesso", "ora", "subito", "immediately", "asap", "jetzt", "maintenant", "ahora",
            ]) {
                self.moments.insert(0);
            }
            if let Some((times, next)) = reader.figures(i).filter(|_| free(i)) {
                self.times.extend(times);
                let end = next.min(dated.len());
                let is_dotted = words.get(i + 1).is_some_and(|mark| mark.glued && mark.is(&["."]));
                if !(may_be_decimals && is_dotted) {
                    dated[i..end].fill(true);
                }
            } else if free(i) {
                self.times.extend(reader.spoken(i));
            }
            self.length(&reader, i);
        }
    }

    fn length(&mut self, reader: &ClockReader, i: usize) {
        let words = reader.words;
        let article = words[i].is(&["a", "an", "un", "una", "ein", "eine", "une", "one"]);
        let (values, next) = match quantity::at(words, i) {
            Some(found) => (found.values, found.next),
            None if article => (vec![1.0], i + 1),
            None => return,
        };
        let skip = usize::from(words.get(next).is_some_and(|w| w.is(&["an", "a", "di", "'", "-", "of"])));
        let glued = words[i].norm.trim_start_matches(|c: char| c.is_ascii_digit());
        let unit = match words.get(next + skip) {
            _ if !glued.is_empty() && glued.len() < words[i].norm.len() => glued,
            Some(word) => word.norm.as_str(),
            None => return,
        };
        let Some(unit) = quantity::minutes(unit).filter(|unit| (1.0..1440.0).contains(unit)) else { return };
        let half = words.iter().skip(next).take(4).any(|w| w.is(HALF) && unit > 1.0);
        for value in values.iter().filter(|v| (0.0..=10_000.0).contains(*v)) {
            let minutes = (value * unit).round() as i32;
            self.lengths.insert(minutes);
            if half {
                self.lengths.insert(minutes + 30);
            }
            // "an hour and 20 minutes"
            let more = words.iter().skip(next + skip + 1).take(2).find_map(|w| w.figure());
            self.lengths.extend(more.filter(|m| *m < 60 && unit > 1.0).map(|m| minutes + m as i32));
            self.moments.extend([minutes, -minutes]);
        }
    }

    /// Adds a time that a result has.
    pub fn add(&mut self, minute: i32) {
        self.times.insert(minute);
    }

    /// Returns whether the time was mentioned, or is a mentioned duration before or after a mentioned time.
    pub fn supports(&self, minute: i32, now: i32) -> bool {
        let is_mentioned = |minute: i32| self.times.contains(&minute.rem_euclid(DAY));
        is_mentioned(minute)
            || self.lengths.iter().take(64).any(|n| is_mentioned(minute - n) || is_mentioned(minute + n))
            || self.moments.iter().take(64).any(|n| {
                let gap = (minute - now - n).rem_euclid(DAY);
                gap <= 2 || gap >= DAY - 2
            })
    }

    /// Returns whether the duration was mentioned.
    pub fn has_duration(&self, minutes: f64) -> bool {
        self.lengths.iter().any(|n| (f64::from(*n) - minutes).abs() < 0.01)
    }
}

struct ClockReader<'a> {
    words: &'a [SourceWord],
}

impl ClockReader<'_> {
    fn is(&self, i: usize, list: &[&str]) -> bool {
        self.words.get(i).is_some_and(|w| w.is(list))
    }

    fn before(&self, i: usize, back: usize, list: &[&str]) -> bool {
        i.checked_sub(back).is_some_and(|k| self.is(k, list))
    }

    fn any(&self, i: usize, reach: usize, list: &[&str]) -> bool {
        (i..i + reach).any(|k| self.is(k, list))
    }

    fn hour(&self, i: usize) -> Option<i32> {
        let word = self.words.get(i)?;
        let value = word.figure().filter(|_| word.norm.len() <= 2).or_else(|| word.spoken())?;
        i32::try_from(value).ok().filter(|hour| (0..=24).contains(hour))
    }

    /// The hour as written, and in the other half of the day if that may be meant.
    fn possible_hours(&self, hour: i32, next: usize) -> Vec<i32> {
        // "am", "a.m.", "in the morning", "di sera"
        let dots = |a: &str| self.is(next, &[a]) && self.is(next + 1, &["."]) && self.is(next + 2, &["m"]);
        let early = self.is(next, &["am"]) || dots("a") || self.any(next, 3, &EARLY[1..]);
        let late = self.is(next, &["pm"]) || dots("p") || self.any(next, 3, &LATE[1..]);
        let (first, second) = (hour % 12, hour % 12 + 12);
        match (early, late) {
            _ if hour > 12 => vec![hour % 24],
            (true, false) => vec![first],
            (false, true) => vec![second, if hour == 12 { 0 } else { second }],
            _ => vec![first, second],
        }
    }

    /// `18:30`, `18.30`, `18h30`, `6pm`, `1830` after "at".
    fn figures(&self, i: usize) -> Option<(Vec<i32>, usize)> {
        let word = self.words.get(i)?;
        if let (Some(hour), Some(mark), Some(more)) =
            (self.hour(i), self.words.get(i + 1), self.words.get(i + 2))
            && word.figure().is_some()
            && mark.glued
            && more.glued
            && (mark.is(&[":"])
                || (mark.is(&["."])
                    && (self.before(i, 1, LEADS) || self.is(i + 3, HOURS) || self.is(i + 3, &["am", "pm"]))))
        {
            // "8:30pm"
            let split = more.norm.find(|c: char| !c.is_ascii_digit()).unwrap_or(more.norm.len());
            let minutes: i32 = more.norm.get(..split).filter(|m| m.len() == 2)?.parse().ok()?;
            let late = match more.norm.get(split..) {
                Some("pm") => vec![hour % 12 + 12],
                Some("am") => vec![hour % 12],
                Some("" | "h" | "z") => self.possible_hours(hour, i + 3),
                _ => return None,
            };
            let past = (minutes < 60).then(|| late.iter().map(|h| h * 60 + minutes).collect());
            return past.map(|times| (times, i + 3));
        }
        let split = word.norm.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0);
        if let Some(at) = split {
            let hour: i32 = word.norm.get(..at)?.parse().ok().filter(|hour| (0..=24).contains(hour))?;
            let hours = match word.norm.get(at..)? {
                "pm" => vec![hour % 12 + 12],
                "am" => vec![hour % 12],
                "h" | "uhr" => vec![hour % 24],
                tail => {
                    let minutes: i32 = tail.strip_prefix('h')?.parse().ok().filter(|m| *m < 60)?;
                    return Some((vec![hour % 24 * 60 + minutes], i + 1));
                }
            };
            return Some((hours.iter().map(|h| h * 60).collect(), i + 1));
        }
        let whole =
            word.figure().filter(|_| word.norm.len() == 4 && self.before(i, 1, &["at", "ore", "alle"]))?;
        let (hour, minutes) = (i32::try_from(whole / 100).ok()?, i32::try_from(whole % 100).ok()?);
        (hour < 24 && minutes < 60).then(|| (vec![hour * 60 + minutes], i + 1))
    }

    /// "at 5", "half past one", "le nove meno un quarto", "nine thirty", "halb neun".
    fn spoken(&self, i: usize) -> Vec<i32> {
        let Some(hour) = self.hour(i) else { return Vec::new() };
        let mut out = Vec::new();
        if self.is_full_hour(i) {
            self.add_times(&mut out, hour, 0, i + 1 + usize::from(self.is(i + 1, HOURS)));
        }
        if let Some(minutes) = self.minutes_before(i) {
            self.add_times(&mut out, hour, minutes, i + 1);
        }
        if self.before(i, 1, &["halb"]) {
            self.add_times(&mut out, hour, -30, i + 1);
        }
        self.add_with_minutes_after(&mut out, hour, i);
        out
    }

    /// Adds the hour shifted by `minutes`, in both halves of the day if both may be meant. `next` is the word
    /// that may name the half.
    fn add_times(&self, out: &mut Vec<i32>, hour: i32, minutes: i32, next: usize) {
        out.extend(self.possible_hours(hour, next).iter().map(|h| (h * 60 + minutes).rem_euclid(DAY)));
    }

    /// Whether the number at `i` is an hour by itself: "quarter to nine" is not nine, "from 10 to 12" is
    /// twelve.
    fn is_full_hour(&self, i: usize) -> bool {
        let part = self.any(i + 1, 3, &LATE[1..]) || self.any(i + 1, 3, &EARLY[1..]);
        let marked =
            self.is(i + 1, HOURS) || self.is(i + 1, &["am", "pm"]) || self.is(i + 1, &["o", "a", "p"]);
        let off = self.before(i, 2, QUARTER) || self.before(i, 2, HALF) || self.before(i, 2, MINUTES);
        let off = off && self.before(i, 1, &["past", "to", "till", "before", "of", "after", "nach", "vor"]);
        !off && (self.before(i, 1, LEADS) || marked || part || self.words.len() <= 2)
    }

    /// The number of minutes that the word at `k` names: a quarter, a half, or a number below 60.
    fn minutes_at(&self, k: usize) -> Option<i32> {
        let word = self.words.get(k)?;
        let value = if word.is(QUARTER) {
            Some(15)
        } else if word.is(HALF) {
            Some(30)
        } else {
            word.spoken().or(word.figure()).and_then(|v| i32::try_from(v).ok())
        };
        value.filter(|v| (1..60).contains(v))
    }

    /// Minutes before the hour at `i`: "quarter to nine", "10 past 8", "viertel vor neun".
    fn minutes_before(&self, i: usize) -> Option<i32> {
        let sign = if self.before(i, 1, &["past", "after", "nach"]) {
            1
        } else if self.before(i, 1, &["to", "before", "till", "vor", "of"]) {
            -1
        } else {
            return None;
        };
        let back = 1 + usize::from(self.before(i, 2, MINUTES));
        Some(sign * i.checked_sub(back + 1).and_then(|k| self.minutes_at(k))?)
    }

    /// Minutes after the hour at `i`: "le due e mezza", "le nove meno un quarto", "nine thirty".
    fn add_with_minutes_after(&self, out: &mut Vec<i32>, hour: i32, i: usize) {
        let mut at = i + 1 + usize::from(self.is(i + 1, &["heures", "h", "uhr", "ore"]));
        let sign = match () {
            () if self.is(at, NUMBER_JOINTS) => 1,
            () if self.is(at, &["meno", "moins", "menos"]) => -1,
            () => 0,
        };
        at += usize::from(sign != 0);
        let three = self.is(at, &["tre"]) && self.is(at + 1, &["quarti"]);
        at += usize::from(self.is(at, &["un", "le", "una", "a"]));
        if three {
            self.add_times(out, hour, 45, at + 2);
        } else if let Some(minutes) = self.minutes_at(at).filter(|m| sign != 0 || *m >= 10) {
            if !self.before(i, 1, LEADS) && sign == 0 {
                return;
            }
            self.add_times(out, hour, if sign < 0 { -minutes } else { minutes }, at + 1);
            // "venti e cinquanta cinque"
            if let Some(unit) = self.words.get(at + 1).and_then(SourceWord::spoken).filter(|u| *u < 10)
                && minutes >= 20
            {
                self.add_times(out, hour, minutes + unit as i32, at + 2);
            }
        }
    }
}
