//! Words: tokens with their place in the text, and what makes two words alike (form, stem, concept).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rust_stemmers::{Algorithm, Stemmer};

use super::lexicon;

/// Longest text that is looked at, in characters: work on what strangers write is bounded.
pub(super) const MAX_CHARS: usize = 4000;
/// Words whose stems are remembered; when full, the memory starts anew.
const MAX_MEMORY: usize = 16_384;
/// Bytes of the texts whose reading is remembered at most, by thread.
const MAX_REMEMBERED: usize = 32 * 1024;

/// What was read of texts, by the text and what it was read for. A request and its parts are looked at many
/// times; when full, the memory starts anew.
pub(super) struct TokenCache<K, V> {
    known: HashMap<K, HashMap<String, Rc<V>>>,
    bytes: usize,
}

impl<K, V> Default for TokenCache<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), bytes: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash, V> TokenCache<K, V> {
    /// What is remembered of a text.
    pub fn get(&self, key: K, text: &str) -> Option<Rc<V>> {
        self.known.get(&key)?.get(text).cloned()
    }

    /// Remembers what was read of a text.
    pub fn put(&mut self, key: K, text: &str, value: &Rc<V>) {
        if self.bytes + text.len() > MAX_REMEMBERED {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += text.len();
        self.known.entry(key).or_default().insert(text.to_owned(), Rc::clone(value));
    }
}

/// A word, a number or a punctuation mark.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// As written.
    pub raw: String,
    /// Lower case, accents kept (`è` is not `e`).
    pub lower: String,
    /// Lower case without accents.
    pub norm: String,
    /// Byte offset of its first character.
    pub start: usize,
    /// Byte offset behind its last.
    pub end: usize,
    /// Whether it is a word or a number, not a mark.
    pub word: bool,
    /// Whether it begins a sentence.
    pub first: bool,
}

impl Token {
    /// Whether it is written with a capital.
    pub fn capital(&self) -> bool {
        self.raw.chars().next().is_some_and(char::is_uppercase)
    }

    /// Whether it has a digit.
    pub fn digit(&self) -> bool {
        self.raw.chars().any(|c| c.is_ascii_digit())
    }

    /// Whether it is one of these (without accents).
    pub fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.norm.as_str())
    }

    /// Whether it is one of the words of a list in one text (without accents).
    pub fn among(&self, words: &str) -> bool {
        words.split_whitespace().any(|word| word == self.norm)
    }

    /// What makes it like other words.
    pub fn features(&self) -> Rc<Features> {
        features(&self.norm)
    }
}

/// What makes two words alike.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// Without accents.
    pub norm: String,
    /// Italian stem.
    pub it: String,
    /// English stem.
    pub en: String,
    /// Rows of the lexicon.
    pub concepts: Vec<u16>,
}

impl Features {
    /// From 0 (strangers) to 1 (the same word).
    pub fn similarity(&self, other: &Features) -> f64 {
        if self.norm == other.norm {
            return 1.0;
        }
        let short = self.norm.len() < 4 || other.norm.len() < 4;
        let stem = |a: &str, b: &str| a.len() > 2 && a == b;
        if !short && (stem(&self.it, &other.it) || stem(&self.en, &other.en)) {
            return 0.92;
        }
        if short && stem(&self.en, &other.en) {
            return 0.9;
        }
        if self.concepts.iter().any(|c| other.concepts.contains(c)) {
            return 0.85;
        }
        0.0
    }

    /// Whether one of the two words undoes what the other does, by its prefix: block and unblock, "attiva" and
    /// "disattiva".
    pub fn reverses(&self, other: &Features) -> bool {
        const UNDOING: &[&str] = &["un", "dis", "de", "s"];
        let undoes = |a: &Features, b: &Features| {
            let stems = UNDOING.iter().filter_map(|prefix| a.norm.strip_prefix(prefix));
            stems.filter(|stem| stem.len() > 3).any(|stem| features(stem).similarity(b) > 0.8)
        };
        self.norm != other.norm && (undoes(self, other) || undoes(other, self))
    }
}

thread_local! {
    static MEMORY: RefCell<HashMap<String, Rc<Features>>> = RefCell::new(HashMap::new());
    static TOKENS: RefCell<TokenCache<(), Vec<Token>>> = RefCell::default();
    static STEMMERS: (Stemmer, Stemmer) =
        (Stemmer::create(Algorithm::Italian), Stemmer::create(Algorithm::English));
}

/// Both stems of a word without accents.
pub(super) fn stems(norm: &str) -> (String, String) {
    if norm.len() > 40 || !norm.chars().all(|c| c.is_ascii_alphabetic()) {
        return (norm.to_owned(), norm.to_owned());
    }
    // "Guidatrice" is who is a "guidatore".
    let agent = norm.strip_suffix("trice").or_else(|| norm.strip_suffix("trici"));
    let italian = agent.map_or_else(|| norm.to_owned(), |stem| format!("{stem}tore"));
    STEMMERS.with(|(it, en)| (it.stem(&italian).into_owned(), en.stem(norm).into_owned()))
}

/// The features of a word without accents; remembered, since stemming is the slow part.
pub(super) fn features(norm: &str) -> Rc<Features> {
    if let Some(known) = MEMORY.with(|m| m.borrow().get(norm).cloned()) {
        return known;
    }
    let (it, en) = stems(norm);
    let concepts = lexicon::concepts(norm, &it, &en);
    let made = Rc::new(Features { norm: norm.to_owned(), it, en, concepts });
    MEMORY.with(|m| {
        let mut memory = m.borrow_mut();
        if memory.len() >= MAX_MEMORY {
            memory.clear();
        }
        memory.insert(norm.to_owned(), Rc::clone(&made));
    });
    made
}

/// The first [`MAX_CHARS`] characters.
pub(super) fn cut(text: &str) -> &str {
    shorten(text, MAX_CHARS)
}

/// The first `max` characters.
pub(super) fn shorten(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

/// Lower case without accents.
pub(super) fn fold(text: &str) -> String {
    deunicode::deunicode(text).to_lowercase()
}

/// The words, numbers and marks of a text. E-mail addresses, web addresses, codes (`AB-12`), dates
/// (`15/06`) and times (`18:30`) are one token each.
pub(super) fn tokens(text: &str) -> Rc<Vec<Token>> {
    let text = cut(text);
    if let Some(known) = TOKENS.with(|memory| memory.borrow().get((), text)) {
        return known;
    }
    let tokens = Rc::new(split(text));
    TOKENS.with(|memory| memory.borrow_mut().put((), text, &tokens));
    tokens
}

/// The words and numbers of a text, without accents.
pub(super) fn norms(text: &str) -> impl Iterator<Item = String> + use<> {
    let tokens = tokens(text);
    (0..tokens.len()).filter_map(move |i| tokens.get(i).filter(|t| t.word).map(|t| t.norm.clone()))
}

fn split(text: &str) -> Vec<Token> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let at = |i: usize| chars.get(i).map(|c| c.1);
    let offset = |i: usize| chars.get(i).map_or(text.len(), |c| c.0);
    let mut out: Vec<Token> = Vec::new();
    let mut first = true;
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i].1;
        if c == '\n' {
            push(&mut out, text, offset(i), offset(i + 1), false, false);
            first = true;
            i += 1;
            continue;
        }
        if c.is_whitespace() {
            i += 1;
            continue;
        }
        if !c.is_alphanumeric() {
            push(&mut out, text, offset(i), offset(i + 1), false, false);
            if matches!(c, '.' | '!' | '?') {
                first = true;
            }
            i += 1;
            continue;
        }
        let mut end = i;
        // An address runs to the next blank.
        let mut stop = i;
        while at(stop)
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '"' | '«' | '»' | '<' | '>' | '(' | ')'))
        {
            stop += 1;
        }
        let chunk = &text[offset(i)..offset(stop)];
        if chunk.contains("://") || (chunk.contains('@') && !chunk.starts_with('@')) {
            end = stop;
            while end > i + 1 && at(end - 1).is_some_and(|c| !c.is_alphanumeric() && c != '/') {
                end -= 1;
            }
        } else {
            while let Some(c) = at(end) {
                let next = at(end + 1);
                let digits = end > i
                    && at(end - 1).is_some_and(|c| c.is_ascii_digit())
                    && next.is_some_and(|c| c.is_ascii_digit());
                let inside = c.is_alphanumeric()
                    || (matches!(c, '-' | '_') && next.is_some_and(char::is_alphanumeric))
                    || (matches!(c, '.' | '/' | ':' | ',') && digits)
                    || (c == '°' && end > i);
                if !inside {
                    break;
                }
                end += 1;
            }
        }
        push(&mut out, text, offset(i), offset(end), true, first);
        first = false;
        i = end;
        // "e'" at the end of a word is how "è" is typed on many keyboards; inside a word an
        // apostrophe only joins; otherwise it is a quotation mark.
        if at(i).is_some_and(|c| matches!(c, '\'' | '’')) {
            let joins = at(i + 1).is_some_and(char::is_alphanumeric);
            let last = out.last_mut().filter(|t| t.lower == "e" && !joins);
            if let Some(last) = last {
                last.lower = "è".to_owned();
                i += 1;
            } else if joins {
                i += 1;
            }
        }
    }
    out
}

fn push(out: &mut Vec<Token>, text: &str, start: usize, end: usize, word: bool, first: bool) {
    let raw = text[start..end].to_owned();
    let lower = raw.to_lowercase();
    let norm = match raw.as_str() {
        "€" => "euro".to_owned(),
        "$" => "dollar".to_owned(),
        _ => fold(&raw).trim().to_owned(),
    };
    let word = word || matches!(raw.as_str(), "€" | "$");
    out.push(Token { raw, lower, norm, start, end, word, first });
}

/// The words of a name: `WeatherForecast_Get` → weather, forecast, get; and pairs of neighbours
/// written together (`user_name` → username).
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for c in name.chars().take(200) {
        let upper_after_lower =
            c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit());
        if (!c.is_alphanumeric() || upper_after_lower) && !word.is_empty() {
            words.push(fold(&std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.push(c);
        }
        before = Some(c);
    }
    if !word.is_empty() {
        words.push(fold(&word));
    }
    words
}

/// The text between the first and last of these tokens, both included, as written.
pub(super) fn span<'a>(text: &'a str, tokens: &[Token], first: usize, last: usize) -> &'a str {
    match (tokens.get(first), tokens.get(last)) {
        (Some(a), Some(b)) if a.start <= b.end => text.get(a.start..b.end).unwrap_or_default(),
        _ => "",
    }
}

/// One line, single blanks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
