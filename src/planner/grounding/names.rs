//! Names and identifiers: whether their words occur in the sources.

use std::collections::HashSet;

use super::words::{SourceWord, fold, words};

/// Maximum number of distinct words that are searched for typing errors.
const MAX_VOCABULARY: usize = 50_000;
/// Longest text that is searched for identifiers, in bytes.
const MAX_RUN: usize = 1024 * 1024;

/// The words of the sources.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    known: HashSet<String>,
    /// Letters and digits without punctuation and whitespace; a NUL marks the beginning of a run of letters
    /// or digits.
    run: String,
}

const TITLES: &[&str] = &[
    "mr", "mrs", "ms", "miss", "dr", "dott", "dottor", "dottoressa", "dottssa", "prof", "professor",
    "professoressa", "sig", "signor", "signora", "sigra", "ing", "avv", "herr", "frau", "madame", "monsieur",
    "sir", "the", "di", "de", "da", "la", "and", "e", "of", "del", "della", "ssa", "ra",
];
/// Words for the speaker in place of a name.
const SELF: &[&str] = &[
    "me", "myself", "self", "user", "i", "io", "currentuser", "current", "employee", "requester", "utente",
    "moi", "ich",
];

impl Vocabulary {
    /// Adds a text.
    pub fn read(&mut self, words: &[SourceWord]) {
        if self.run.len() > MAX_RUN {
            return;
        }
        for word in words {
            if self.known.len() < MAX_VOCABULARY && !self.known.contains(&word.norm) {
                self.known.insert(word.norm.clone());
            }
            for part in runs(&word.norm) {
                self.run.push('\0');
                self.run.push_str(part);
            }
        }
        self.run.push_str("\0\u{1}");
    }

    /// Returns whether the value occurs in a source, ignoring punctuation and whitespace, and not as part of a
    /// longer word.
    pub fn has(&self, value: &str) -> bool {
        let mut wanted = String::new();
        for word in words(value).iter().filter(|w| w.norm.chars().any(char::is_alphanumeric)) {
            for part in runs(&word.norm) {
                wanted.push('\0');
                wanted.push_str(part);
            }
        }
        if wanted.is_empty() {
            return true;
        }
        wanted.push('\0');
        if self.run.contains(&wanted) {
            return true;
        }
        // Split at other positions: "AB123 CD" and "AB 123CD", "mariorossi".
        let bare: String = wanted.chars().filter(|c| *c != '\0').collect();
        bare.len() >= 4 && self.is_split_into_words(&bare)
    }

    /// Whether consecutive whole words make up `bare`.
    fn is_split_into_words(&self, bare: &str) -> bool {
        let parts: Vec<&str> = self.run.split('\0').filter(|part| !part.is_empty()).collect();
        (0..parts.len()).any(|start| {
            let mut rest = bare;
            for part in parts.iter().skip(start).take(12) {
                match rest.strip_prefix(part) {
                    Some("") => return true,
                    Some(more) => rest = more,
                    None => return false,
                }
            }
            false
        })
    }

    /// Returns whether a word is known, or one letter away from a known one.
    pub fn knows(&self, norm: &str) -> bool {
        let stem = norm.strip_suffix('s').filter(|stem| stem.len() > 2);
        self.known.contains(norm)
            || stem.is_some_and(|stem| self.known.contains(stem))
            || self.known.contains(&format!("{norm}s"))
            || (norm.chars().count() >= 4 && self.known.iter().any(|known| one_slip(known, norm)))
    }

    /// Returns whether every word of a person's name is known, or the name is `user`'s.
    pub fn has_person(&self, name: &str, user: &str) -> bool {
        let parts: Vec<SourceWord> =
            words(name).into_iter().filter(|w| w.norm.chars().any(char::is_alphanumeric)).collect();
        let own: Vec<String> = words(user).into_iter().map(|w| w.norm).collect();
        let whole: String = parts.iter().map(|w| w.norm.as_str()).collect();
        if parts.is_empty() || whole == own.concat() || SELF.contains(&whole.as_str()) {
            return true;
        }
        let long = parts.iter().filter(|w| w.norm.len() > 1 && !TITLES.contains(&w.norm.as_str())).count();
        parts.iter().all(|word| {
            let norm = word.norm.as_str();
            (norm.len() == 1 && long > 0)
                || TITLES.contains(&norm)
                || own.iter().any(|own| own == norm)
                || self.knows(norm)
        }) || self.has(name)
    }

    /// Returns whether one word of a place is known, by its name or by its name in another language.
    pub fn has_place(&self, name: &str) -> bool {
        let parts: Vec<SourceWord> =
            words(name).into_iter().filter(|w| w.norm.chars().any(char::is_alphanumeric)).collect();
        let code = name.len() <= 4 && name.chars().all(|c| c.is_ascii_uppercase());
        code || parts.iter().any(|w| w.norm.len() > 2 && (self.knows(&w.norm) || self.is_variant(&w.norm)))
            || self.has(name)
    }

    /// "Milan" and "Milano", "Firenze" and "Florence".
    fn is_variant(&self, norm: &str) -> bool {
        let other = |row: &&&str| row.split(' ').any(|name| name == norm);
        let translated =
            EXONYMS.iter().find(other).is_some_and(|row| row.split(' ').any(|n| self.known.contains(n)));
        let head: String = norm.chars().take(5).collect();
        translated || (head.len() == 5 && self.known.iter().any(|known| known.starts_with(&head)))
    }
}

const EXONYMS: &[&str] = &[
    "florence firenze florenz florencia",
    "rome roma rom",
    "milan milano mailand",
    "turin torino",
    "naples napoli neapel",
    "venice venezia venedig venise",
    "genoa genova genua genes",
    "padua padova",
    "leghorn livorno",
    "mantua mantova",
    "paris parigi",
    "london londra londres",
    "munich monaco munchen",
    "germany germania deutschland allemagne alemania",
    "france francia frankreich",
    "spain spagna spanien espana espagne",
    "italy italia italien italie",
    "vienna wien",
    "cologne koln colonia",
    "brussels bruxelles brussel",
    "geneva ginevra geneve genf",
    "zurich zurigo",
    "prague praga",
    "warsaw varsavia warszawa",
    "lisbon lisboa lisbona",
    "athens atene",
    "moscow mosca",
    "england inghilterra",
    "switzerland svizzera schweiz suisse",
    "austria osterreich autriche",
    "usa america states",
    "uk kingdom regno",
    "sicily sicilia",
    "tuscany toscana",
    "nice nizza",
    "lyon lione",
    "basel basilea bale",
    "copenhagen copenaghen",
    "york nyc",
    "angeles la",
    "francisco sf",
    "beijing pechino",
    "tokyo tokio",
    "cairo kairo",
    "seville siviglia sevilla",
];

/// Runs of letters and of digits.
fn runs(norm: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut before: Option<bool> = None;
    for (at, c) in norm.char_indices() {
        if !c.is_alphanumeric() {
            return out;
        }
        let digit = c.is_ascii_digit();
        if before.is_some_and(|b| b != digit) {
            out.push(&norm[start..at]);
            start = at;
        }
        before = Some(digit);
    }
    if before.is_some() {
        out.push(&norm[start..]);
    }
    out
}

/// One letter added, removed, or two swapped; a replaced letter only inside long words, since "Mario" and
/// "Maria" are two people.
fn one_slip(a: &str, b: &str) -> bool {
    if a.len() < 3 || a.len().abs_diff(b.len()) > 2 {
        return false;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = if a.len() <= b.len() { (&a, &b) } else { (&b, &a) };
    if long.len() - short.len() > 1 || long.len() < 4 {
        return false;
    }
    let head = short.iter().zip(long.iter()).take_while(|(x, y)| x == y).count();
    if short.len() < long.len() {
        return short[head..] == long[head + 1..];
    }
    if head == short.len() {
        return true;
    }
    let swapped = head + 1 < short.len() && short[head] == long[head + 1] && short[head + 1] == long[head];
    if swapped && short[head + 2..] == long[head + 2..] {
        return true;
    }
    short.len() >= 6 && head + 1 < short.len() && short[head + 1..] == long[head + 1..]
}

/// Folded, with spelled-out addresses such as "mario dot rossi at acme dot it" in written form.
pub(super) fn with_written_addresses(text: &str) -> String {
    let folded = fold(text);
    let mut out = String::new();
    let mut joins = true;
    for word in folded.split_whitespace() {
        let mark = match word {
            "dot" | "punto" | "punkt" | "point" => Some("."),
            "at" | "chiocciola" | "arroba" => Some("@"),
            _ => None,
        };
        if mark.is_none() && !joins {
            out.push(' ');
        }
        out.push_str(mark.unwrap_or(word));
        joins = mark.is_some();
    }
    out
}

/// Returns whether `part` occurs in `text`, not as part of a longer word.
pub(super) fn contains_whole_words(text: &str, part: &str) -> bool {
    let edge = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    !part.is_empty()
        && text.match_indices(part).any(|(at, _)| {
            edge(text[..at].chars().next_back()) && edge(text[at + part.len()..].chars().next())
        })
}
