//! Tokens with their place in the text, and the similarity of words by form, stem and concept.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use compact_str::CompactString;
use rust_stemmers::{Algorithm, Stemmer};

use super::function_words::AND;
use super::lexicon;

/// Maximum length of a text in characters, so that the work on untrusted input is bounded.
pub(crate) const MAX_CHARS: usize = 4000;
/// Maximum number of words in the cache of features; a full cache is cleared.
const MAX_CACHED_FEATURES: usize = 16_384;
/// Minimum length of a French, German or Spanish stem that two words may share.
const MIN_FOREIGN_STEM: usize = 4;
/// Minimum length of what is left of a German verb without the ending of the third person.
const MIN_GERMAN_VERB: usize = 7;
/// Maximum total size in bytes of the texts in a [`TokenCache`].
const MAX_CACHED_BYTES: usize = 32 * 1024;

/// A cache of what was read from texts, by key and text, because a request and its parts are read many times.
/// A full cache is cleared.
pub(crate) struct TokenCache<K, V> {
    known: HashMap<K, HashMap<String, Rc<V>>>,
    bytes: usize,
}

impl<K, V> Default for TokenCache<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), bytes: 0 }
    }
}

impl<K: Copy + Eq + std::hash::Hash, V> TokenCache<K, V> {
    /// The cached value of a text.
    pub fn get(&self, key: K, text: &str) -> Option<Rc<V>> {
        self.known.get(&key)?.get(text).cloned()
    }

    /// Caches the value of a text.
    pub fn put(&mut self, key: K, text: &str, value: &Rc<V>) {
        if self.bytes + text.len() > MAX_CACHED_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += text.len();
        self.known.entry(key).or_default().insert(text.to_owned(), Rc::clone(value));
    }
}

/// A word, a number or a punctuation mark.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// As written.
    pub raw: CompactString,
    /// Lower case, accents kept (`è` is not `e`).
    pub lower: CompactString,
    /// Lower case without accents.
    pub norm: CompactString,
    /// Byte offset of its first character.
    pub start: usize,
    /// Byte offset after its last character.
    pub end: usize,
    /// Whether it is a word or a number, not punctuation.
    pub word: bool,
    /// Whether it begins a sentence.
    pub first: bool,
}

impl Token {
    /// Returns whether it begins with a capital.
    pub fn capital(&self) -> bool {
        self.raw.chars().next().is_some_and(char::is_uppercase)
    }

    /// Returns whether it contains a digit.
    pub fn digit(&self) -> bool {
        self.raw.chars().any(|c| c.is_ascii_digit())
    }

    /// Returns whether it is one of these (without accents).
    pub fn is(&self, words: &[&str]) -> bool {
        words.contains(&self.norm.as_str())
    }

    /// Returns whether it joins words: "and", "e", "und", but not the verb "è".
    pub fn is_and(&self) -> bool {
        self.is(AND) && (self.norm != "e" || self.lower == "e")
    }

    /// Returns whether it is one of these words, separated by blanks (without accents).
    pub fn among(&self, words: &str) -> bool {
        // Most words are not even a part of the list, which is soon told.
        words.contains(self.norm.as_str()) && words.split_whitespace().any(|word| word == self.norm)
    }

    /// Its features for comparison with other words.
    pub fn features(&self) -> Rc<Features> {
        features(&self.norm)
    }
}

/// The features by which two words are compared.
#[derive(Debug, Default)]
pub(crate) struct Features {
    /// The word without accents.
    pub norm: String,
    /// Italian stem.
    pub it: String,
    /// English stem.
    pub en: String,
    /// Rows of the lexicon.
    pub concepts: Vec<u16>,
    /// Hashes of its stems and meanings: words that share one are alike.
    pub hashes: Box<[u32]>,
    /// Its French, German and Spanish stem, once somebody asked for them.
    foreign: OnceCell<[String; 3]>,
}

impl Features {
    /// The similarity to another word, from 0 (unrelated) to 1 (the same word).
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

    /// The French, the German and the Spanish stem. In Spanish, "cierra" is a form of "cerrar".
    pub fn foreign_stems(&self) -> &[String; 3] {
        self.foreign.get_or_init(|| {
            let stem = |algorithm| Stemmer::create(algorithm).stem(&self.norm).into_owned();
            let spanish = stem(Algorithm::Spanish).replace("ie", "e").replace("ue", "o");
            // "Schließt" is a form of "schließen".
            let verb = self.norm.strip_suffix('t').filter(|verb| verb.len() >= MIN_GERMAN_VERB);
            let german = Stemmer::create(Algorithm::German).stem(verb.unwrap_or(&self.norm)).into_owned();
            [stem(Algorithm::French), german, spanish]
        })
    }

    /// Returns whether both are forms of one word in French, German or Spanish: "ferme" and "fermer".
    pub fn shares_foreign_stem(&self, other: &Features) -> bool {
        let stems = self.foreign_stems().iter().zip(other.foreign_stems());
        stems.into_iter().any(|(own, other)| own.len() >= MIN_FOREIGN_STEM && own == other)
    }

    /// Returns whether one of the two words reverses the other by its prefix: block and unblock, "attiva" and
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
    static FEATURES: RefCell<HashMap<String, Rc<Features>>> = RefCell::new(HashMap::new());
    static TOKENS: RefCell<TokenCache<(), Vec<Token>>> = RefCell::default();
    static STEMMERS: (Stemmer, Stemmer) =
        (Stemmer::create(Algorithm::Italian), Stemmer::create(Algorithm::English));
}

/// The Italian and the English stem of a word without accents.
pub(crate) fn stems(norm: &str) -> (String, String) {
    if norm.len() > 40 || !norm.chars().all(|c| c.is_ascii_alphabetic()) {
        return (norm.to_owned(), norm.to_owned());
    }
    // "Guidatrice" is the feminine of "guidatore".
    let agent = norm.strip_suffix("trice").or_else(|| norm.strip_suffix("trici"));
    // "Ricaricare" and "ricarica": the stemmer takes the end of the imperative for a suffix.
    let order = || norm.strip_suffix("re").filter(|verb| verb.len() > 4 && verb.ends_with('a'));
    let italian = agent.map(|stem| format!("{stem}tore")).or_else(|| order().map(str::to_owned));
    let italian = italian.unwrap_or_else(|| norm.to_owned());
    STEMMERS.with(|(it, en)| (it.stem(&italian).into_owned(), en.stem(norm).into_owned()))
}

/// The features of a word without accents; cached, because stemming is slow.
pub(crate) fn features(norm: &str) -> Rc<Features> {
    if let Some(known) = FEATURES.with(|cache| cache.borrow().get(norm).cloned()) {
        return known;
    }
    let (it, en) = stems(norm);
    let concepts = lexicon::concepts(norm, &it, &en);
    let hashes = [hash_of(0, &en), hash_of(0, &it)];
    let hashes = hashes.into_iter().chain(concepts.iter().map(|concept| hash_of(1, concept))).collect();
    let made =
        Rc::new(Features { norm: norm.to_owned(), it, en, concepts, hashes, foreign: OnceCell::new() });
    FEATURES.with(|cache| {
        let mut cache = cache.borrow_mut();
        if cache.len() >= MAX_CACHED_FEATURES {
            cache.clear();
        }
        cache.insert(norm.to_owned(), Rc::clone(&made));
    });
    made
}

/// A hash of a stem (`kind` 0) or a meaning (`kind` 1) of a word.
fn hash_of<T: Hash + ?Sized>(kind: u8, feature: &T) -> u32 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    feature.hash(&mut hasher);
    hasher.finish() as u32
}

/// The first [`MAX_CHARS`] characters.
pub(crate) fn cut(text: &str) -> &str {
    shorten(text, MAX_CHARS)
}

/// The first `max` characters.
pub(crate) fn shorten(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

/// The text, or as many whole words as fit into `max` characters, with an ellipsis.
pub(crate) fn shorten_to_words(text: &str, max: usize) -> String {
    let short = shorten(text, max);
    if short.len() == text.len() {
        return text.to_owned();
    }
    let whole = short.rsplit_once(' ').map_or(short, |(whole, _)| whole);
    format!("{}…", whole.trim_end_matches([' ', ',', ';', ':']))
}

/// The words of a text as they are written: its letters and digits between all other characters.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

pub(crate) fn lower_words(text: &str) -> Vec<String> {
    words(text).map(str::to_lowercase).collect()
}

/// The first sentence of a description: what follows it are hints for planners.
pub(crate) fn first_sentence(text: &str) -> &str {
    let is_end = |at: usize| {
        let next = text[at + 1..].trim_start().chars().next();
        text[at + 1..].starts_with(' ') && next.is_some_and(char::is_uppercase)
    };
    let end = text.match_indices(['.', '!', '?']).map(|(at, _)| at).find(|at| is_end(*at));
    end.map_or(text, |at| &text[..=at])
}

/// A text with more characters or words is prose.
const MAX_VALUE_CHARS: usize = 80;
const MAX_VALUE_WORDS: usize = 8;

/// Returns whether a text is somebody's words, and no value such as a name, a day or a code.
pub(crate) fn is_prose(text: &str) -> bool {
    text.chars().count() > MAX_VALUE_CHARS
        || text.split_whitespace().count() > MAX_VALUE_WORDS
        || text.trim().contains(['\n', '\r'])
}

/// Lower case without accents.
pub(crate) fn fold(text: &str) -> String {
    // The table of characters maps these to themselves.
    match text.bytes().all(|byte| byte < 0x7F) {
        true => text.to_ascii_lowercase(),
        false => deunicode::deunicode(text).to_lowercase(),
    }
}

/// The words, numbers and punctuation of a text. E-mail addresses, web addresses, codes (`AB-12`), dates
/// (`15/06`) and times (`18:30`) are one token each.
pub(crate) fn tokens(text: &str) -> Rc<Vec<Token>> {
    let text = cut(text);
    if let Some(known) = TOKENS.with(|cache| cache.borrow().get((), text)) {
        return known;
    }
    let tokens = Rc::new(Tokenizer::new(text).tokenize());
    TOKENS.with(|cache| cache.borrow_mut().put((), text, &tokens));
    tokens
}

/// The words and numbers of a text that is read once, without accents; as [`norms`] of it, beside the cache.
pub(crate) fn norms_once(text: &str) -> impl Iterator<Item = CompactString> {
    let tokens = Tokenizer::new(cut(text)).tokenize();
    tokens.into_iter().filter(|token| token.word).map(|token| token.norm)
}

/// The words and numbers of a text, without accents.
pub(crate) fn norms(text: &str) -> impl Iterator<Item = String> + use<> {
    let tokens = tokens(text);
    (0..tokens.len()).filter_map(move |i| tokens.get(i).filter(|t| t.word).map(|t| t.norm.to_string()))
}

/// Splits a text into tokens.
struct Tokenizer<'t> {
    text: &'t str,
    /// The characters with their byte offsets.
    chars: Vec<(usize, char)>,
    out: Vec<Token>,
}

impl<'t> Tokenizer<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, chars: text.char_indices().collect(), out: Vec::new() }
    }

    /// The character at an index.
    fn at(&self, i: usize) -> Option<char> {
        self.chars.get(i).map(|c| c.1)
    }

    /// The byte offset of a character.
    fn offset(&self, i: usize) -> usize {
        self.chars.get(i).map_or(self.text.len(), |c| c.0)
    }

    fn tokenize(mut self) -> Vec<Token> {
        let mut first = true;
        let mut i = 0;
        while let Some(c) = self.at(i) {
            if c.is_alphanumeric() {
                let end = self.address_end(i).unwrap_or_else(|| self.word_end(i));
                self.push(i, end, true, first);
                first = false;
                let end = self.skip_apostrophe(end);
                i = self.skip_mark_of_number(end);
                continue;
            }
            if c == '\n' || !c.is_whitespace() {
                self.push(i, i + 1, false, false);
                first |= matches!(c, '\n' | '.' | '!' | '?');
            }
            i += 1;
        }
        self.out
    }

    /// The end of an e-mail or web address, which extends to the next blank, if one begins at `i`.
    fn address_end(&self, i: usize) -> Option<usize> {
        let mut end = i;
        while self
            .at(end)
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '"' | '«' | '»' | '<' | '>' | '(' | ')'))
        {
            end += 1;
        }
        let chunk = &self.text[self.offset(i)..self.offset(end)];
        if !(chunk.contains("://") || (chunk.contains('@') && !chunk.starts_with('@'))) {
            return None;
        }
        while end > i + 1 && self.at(end - 1).is_some_and(|c| !c.is_alphanumeric() && c != '/') {
            end -= 1;
        }
        Some(end)
    }

    /// The end of the word or number that begins at `i`.
    fn word_end(&self, i: usize) -> usize {
        let mut end = i;
        while let Some(c) = self.at(end) {
            let next = self.at(end + 1);
            let digits = end > i
                && self.at(end - 1).is_some_and(|c| c.is_ascii_digit())
                && next.is_some_and(|c| c.is_ascii_digit());
            let inside = c.is_alphanumeric()
                || (matches!(c, '-' | '_') && next.is_some_and(char::is_alphanumeric))
                || (matches!(c, '.' | '/' | ':' | ',') && digits)
                || (c == '°' && end > i && self.at(end - 1).is_some_and(|c| c.is_ascii_digit()));
            if !inside {
                break;
            }
            end += 1;
        }
        end
    }

    /// Skips an apostrophe that belongs to the last word. "e'" at the end of a word is how "è" is typed on
    /// many keyboards; inside a word an apostrophe only joins; otherwise it is a quotation mark.
    fn skip_apostrophe(&mut self, i: usize) -> usize {
        if !self.at(i).is_some_and(|c| matches!(c, '\'' | '’')) {
            return i;
        }
        let joins = self.at(i + 1).is_some_and(char::is_alphanumeric);
        if let Some(last) = self.out.last_mut().filter(|t| t.lower == "e" && !joins) {
            last.lower = "è".into();
            return i + 1;
        }
        i + usize::from(joins)
    }

    /// Skips the mark after an abbreviation of "number" ("n. 7", "Nr. 7", "n° 7"), which ends no sentence. "no." is one
    /// only after another word: at its beginning, a sentence says no.
    fn skip_mark_of_number(&self, i: usize) -> usize {
        let blanks = usize::from(self.at(i + 1) == Some(' '));
        let is_before_digits = self.at(i + 1 + blanks).is_some_and(|c| c.is_ascii_digit());
        let mut words = self.out.iter().rev();
        let is_number = words.next().is_some_and(|last| match &*last.lower {
            "n" | "nr" | "num" => true,
            "no" => words.next().is_some_and(|before| before.word),
            _ => false,
        });
        i + usize::from(is_number && is_before_digits && matches!(self.at(i), Some('.' | '°')))
    }

    fn push(&mut self, start: usize, end: usize, word: bool, first: bool) {
        let (start, end) = (self.offset(start), self.offset(end));
        let raw = CompactString::new(&self.text[start..end]);
        let (lower, norm) = match raw.as_str() {
            "€" => (raw.clone(), "euro".into()),
            "$" => (raw.clone(), "dollar".into()),
            // As `fold`.
            text if text.bytes().all(|byte| byte < 0x7F) => {
                let lower = raw.to_ascii_lowercase();
                (lower.clone(), lower.trim().into())
            }
            text => (text.to_lowercase().into(), fold(text).trim().into()),
        };
        let word = word || matches!(raw.as_str(), "€" | "$");
        self.out.push(Token { raw, lower, norm, start, end, word, first });
    }
}

/// The words of an identifier: `WeatherForecast_Get` → weather, forecast, get.
pub(crate) fn name_words(name: &str) -> Vec<String> {
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
pub(crate) fn span<'a>(text: &'a str, tokens: &[Token], first: usize, last: usize) -> &'a str {
    match (tokens.get(first), tokens.get(last)) {
        (Some(a), Some(b)) if a.start <= b.end => text.get(a.start..b.end).unwrap_or_default(),
        _ => "",
    }
}

/// The text on one line, with single blanks.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_e_with_its_accent_joins_nothing() {
        let is_and = |word: &str| tokens(word)[0].is_and();
        assert!(["and", "And", "e", "E", "ed", "et", "und", "y"].into_iter().all(is_and));
        assert!(!["è", "È", "é", "o", "plus", ","].into_iter().any(is_and));
    }

    #[test]
    fn mark_after_an_abbreviation_of_number_ends_no_sentence() {
        for text in ["request n. 7", "request n.7", "request no. 7", "request Nr. 7", "request n° 7"] {
            let found = tokens(text);
            assert_eq!(found.len(), 3, "{text}: {found:?}");
            assert!(found[2].norm == "7" && !found[2].first, "{text}: {found:?}");
        }
        for text in ["No. 7 days", "yes, no. 7 days", "request n. Then 7", "the 7°"] {
            assert_ne!(tokens(text).len(), 3, "{text}");
        }
        assert_eq!(tokens("the 7°")[1].raw, "7°");
    }

    proptest::proptest! {
        /// Texts without accents are folded without a look into the table of characters.
        #[test]
        fn words_are_folded_as_the_table_says(text in "([a-zA-Z0-9 '.,\n@/€èÈßİ½北\u{7F}-]{0,12}|(?s).{0,12}){0,4}") {
            let plain = |text: &str| deunicode::deunicode(text).to_lowercase();
            proptest::prop_assert_eq!(fold(&text), plain(&text));
            for token in tokens(&text).iter().filter(|token| !matches!(token.raw.as_str(), "€" | "$")) {
                let folded = plain(&token.raw);
                proptest::prop_assert_eq!(token.norm.as_str(), folded.trim());
            }
        }
    }
}
