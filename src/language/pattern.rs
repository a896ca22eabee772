//! Patterns of function words: `i/we do/don not/t want|need` and the like.
//!
//! A pattern is a sequence of words. `a/b` is one of several, `a?` is optional, `*` is any word, and a word in
//! angle brackets is a class: `<verb>` a verb of action, `<inf>` an Italian infinitive, `<ing>`, `<ed>` an
//! English past form, `<pp>` an Italian participle, `<ger>` an Italian gerund, `<num>`.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use super::lexicon::{self, WordSet};
use super::text::Token;

/// A list of patterns that is read once: `patterns!["in case", "nel/in caso"]`.
macro_rules! patterns {
    ($($pattern:expr),+ $(,)?) => {{
        static PATTERNS: $crate::language::pattern::Patterns =
            $crate::language::pattern::Patterns::new(&[$($pattern),+]);
        &PATTERNS
    }};
}
pub(crate) use patterns;

/// Fillers: words that open a clause and do not affect its act.
static FILLERS: &Patterns = patterns![
    "per favore/cortesia/piacere",
    "by the way",
    "guarda/senti/ascolta/sai/look/listen che?",
    "good morning/afternoon/evening/day",
    "buon giorno/pomeriggio",
    "a proposito",
    "of course",
    "ah",
    "hm",
    "hmm",
    "mmm",
    "uh",
    "um",
    "ehm",
    "oh",
    "eh",
    "beh",
    "so",
    "well",
    "then",
    "now",
    "also",
    "just",
    "only",
    "and",
    "but",
    "or",
    "e",
    "ed",
    "ma",
    "o",
    "oppure",
    "poi",
    "allora",
    "quindi",
    "anche",
    "please",
    "kindly",
    "gentilmente",
    "ok",
    "okay",
    "hi",
    "hello",
    "hey",
    "ciao",
    "salve",
    "buongiorno",
    "buonasera",
    "sorry",
    "scusa/scusami/scusi",
    "thanks",
    "grazie",
    "perfect/great/perfetto/bene/ottimo",
    "first",
    "actually",
    "instead",
    "invece",
    "piuttosto",
    "rather",
    "pero",
    "yes",
    "sure",
    "definitely/certainly",
    "certo",
    "dear",
    "dai",
    "ora",
    "adesso",
    "solo/soltanto/solamente",
    "innanzitutto",
    "et/und/y",
    "finally",
    "infine",
    "inoltre",
    "when you can/get",
    "quando puoi/riesci",
    "team",
    "guys",
];

/// Verbs of everyday orders that the dictionary does not have as actions.
const VERBS: &[&str] = &[
    "take", "make", "have", "get", "do", "give", "put", "keep", "hold", "use", "go", "come", "bring", "let",
    "try", "write", "say", "tell", "reply", "answer", "withdraw", "file", "lodge", "issue", "apply",
    "arrange", "prolong", "block", "unblock", "freeze", "activate", "deactivate", "confirm", "charge",
    "refund", "top", "sign", "enter", "post", "notify", "contact", "email", "text", "prescribe", "play",
    "pause", "unlock", "lock", "raise", "postpone", "save", "store", "publish", "drop", "grant", "redirect",
    "ship", "wire", "debit", "credit", "reschedule", "claim", "grab", "fix", "bake", "sing", "draw", "help",
    "look", "move", "mark", "cook", "read", "prendi", "prendere", "prendo", "prenda", "fai", "fare",
    "faccia", "metti", "mettere", "metta", "tieni", "tenere", "tenga", "dai", "porta", "portami", "scrivi",
    "scrivere", "blocca", "bloccare", "sblocca", "conferma", "confermare", "attiva", "attivare", "disattiva",
    "disattivare", "ritira", "posticipa", "anticipa", "usa", "presta", "prestami", "prestare", "riserva",
    "riservare", "disdici", "disdire", "spedisci", "paga", "pagare", "concedi", "assumi", "versa", "versare",
    "preleva", "prelevare", "ricarica", "ricaricare", "iscrivi", "tenta",
];

/// Irregular English past forms.
const PAST: &[&str] = &[
    "took", "taken", "had", "was", "were", "been", "got", "gotten", "made", "went", "gone", "bought", "paid",
    "sent", "told", "said", "gave", "given", "saw", "seen", "wrote", "written", "spent", "left", "lost",
    "broke", "broken", "forgot", "forgotten", "did", "done", "came", "found", "kept", "held", "met", "ran",
    "sold", "spoke", "began", "drove", "flew", "ate", "slept", "stole", "stolen", "lent", "put", "read",
    "thought", "chose", "chosen", "used", "withdrew", "rode", "woke", "swore", "hurt", "cut",
];

/// Irregular Italian participles.
const PARTICIPLES: &[&str] = &[
    "preso", "presa", "presi", "prese", "fatto", "fatta", "fatti", "chiesto", "chiesta", "richiesto",
    "richiesta", "messo", "messa", "speso", "spesi", "scritto", "scritta", "detto", "letto", "visto",
    "vista", "stato", "stata", "stati", "rotto", "rotta", "perso", "persa", "aperto", "aperta", "chiuso",
    "chiusa", "disdetto", "disdetta", "corretto", "vinto", "scelto", "scelta", "deciso", "iscritto",
    "iscritta", "rimasto", "rimasta", "successo", "mosso", "spento", "acceso", "offerto", "risposto",
    "sottoscritto", "smesso", "trascorso", "permesso", "tratto",
];

/// Words that end in -ed but are no past forms.
const NOT_PAST: &[&str] = &[
    "need", "feed", "speed", "seed", "bed", "red", "hundred", "indeed", "exceed", "proceed", "shed", "united",
];

/// Words that end like an infinitive but are none.
const NOT_INF: &[&str] =
    &["mare", "cuore", "piacere", "potere", "bere", "settore", "ore", "ancore", "lettere", "camere", "opere"];

static VERB_SET: WordSet = LazyLock::new(|| VERBS.iter().copied().collect());
static PAST_SET: WordSet = LazyLock::new(|| PAST.iter().copied().collect());
static PARTICIPLE_SET: WordSet = LazyLock::new(|| PARTICIPLES.iter().copied().collect());

/// Returns whether a word is a verb of action.
pub(crate) fn is_verb(token: &Token) -> bool {
    is_verb_form(&token.norm) || lexicon::may_be_action(&token.features().concepts)
}

/// Returns whether a normalised word is one of the verbs of everyday orders.
pub(crate) fn is_verb_form(norm: &str) -> bool {
    VERB_SET.contains(norm)
}

/// Returns whether a word is an English past form.
pub(crate) fn is_past(norm: &str) -> bool {
    PAST_SET.contains(norm)
        || norm.len() > 4
            && norm.ends_with("ed")
            && !NOT_PAST.contains(&norm)
            && norm.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Returns whether a word is an Italian participle.
pub(crate) fn is_participle(norm: &str) -> bool {
    const ENDS: &[&str] =
        &["ato", "ata", "ati", "ate", "uto", "uta", "uti", "ute", "ito", "ita", "iti", "ite"];
    PARTICIPLE_SET.contains(norm) || norm.len() > 4 && ENDS.iter().any(|end| norm.ends_with(end))
}

/// Returns whether a word is an Italian infinitive, also with suffixed pronouns.
pub(crate) fn is_infinitive(norm: &str) -> bool {
    const CLITICS: &[&str] = &[
        "", "melo", "mela", "meli", "mele", "glielo", "gliela", "glieli", "gliele", "mi", "ti", "ci", "vi",
        "si", "lo", "la", "li", "le", "ne", "gli", "mene", "tene",
    ];
    if norm.len() < 4 || NOT_INF.contains(&norm) {
        return false;
    }
    let stem =
        |verb: &str| verb.len() > 2 && ["ar", "er", "ir", "or", "ur"].iter().any(|end| verb.ends_with(end));
    norm.strip_suffix('e').is_some_and(stem)
        || CLITICS.iter().skip(1).any(|c| norm.strip_suffix(c).is_some_and(|v| stem(v) && v.len() > 3))
}

/// A list of patterns, written as [`patterns!`]. It is read when it is first asked.
pub(crate) struct Patterns {
    written: &'static [&'static str],
    read: OnceLock<ReadPatterns>,
}

impl Patterns {
    pub(crate) const fn new(written: &'static [&'static str]) -> Self {
        Self { written, read: OnceLock::new() }
    }

    /// The ends of those patterns that match at `at`, in the order of the list.
    pub(crate) fn ends<'p>(&'p self, words: &'p [&Token], at: usize) -> impl Iterator<Item = usize> + 'p {
        let read = self.read.get_or_init(|| ReadPatterns::of(self.written));
        let tried = read.that_may_begin_with(words.get(at).map(|word| word.norm.as_str()));
        tried.iter().filter_map(move |number| end(&read.patterns[*number], words, at))
    }
}

/// A list of patterns in the form in which they are matched. Most words begin no pattern of a list, so that one lookup is all
/// that they cost.
struct ReadPatterns {
    patterns: Vec<Vec<PatternPart>>,
    /// The patterns, by their place in the list, that may begin with a word that some pattern names as its first.
    by_first_word: HashMap<&'static str, Vec<usize>>,
    /// The patterns that may begin with any other word, or with none: they begin with a class of words.
    by_class: Vec<usize>,
}

impl ReadPatterns {
    fn of(written: &[&'static str]) -> Self {
        let patterns =
            written.iter().map(|pattern| pattern.split(' ').map(PatternPart::of).collect()).collect();
        let mut read = Self { patterns, by_first_word: HashMap::new(), by_class: Vec::new() };
        for (number, pattern) in read.patterns.iter().enumerate() {
            let Some(first_words) = first_words(pattern) else {
                // Each word may begin it. All lists keep the order of the patterns, since the first match counts.
                read.by_class.push(number);
                read.by_first_word.values_mut().for_each(|numbers| numbers.push(number));
                continue;
            };
            for word in first_words {
                let numbers = read.by_first_word.entry(word).or_insert_with(|| read.by_class.clone());
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
        read
    }

    /// The patterns that may begin with a word, by their place in the list.
    fn that_may_begin_with(&self, word: Option<&str>) -> &[usize] {
        word.and_then(|word| self.by_first_word.get(word)).unwrap_or(&self.by_class)
    }
}

/// The words with which a pattern may begin; `None` if it may begin with a class of words, or match no word at all.
fn first_words(pattern: &[PatternPart]) -> Option<Vec<&'static str>> {
    let mut first = Vec::new();
    for part in pattern {
        let WordClass::These(words) = &part.words else { return None };
        first.extend(words.iter().copied());
        if !part.is_optional {
            return Some(first);
        }
    }
    None
}

/// A part of a pattern, which one word fits.
struct PatternPart {
    words: WordClass,
    is_optional: bool,
}

/// The words that fit a part of a pattern.
enum WordClass {
    Any,
    /// A verb of action.
    Verb,
    Infinitive,
    /// An English form that ends with "-ing".
    Ing,
    /// An English past form.
    Past,
    Gerund,
    Participle,
    Number,
    /// "È", which must not match "e".
    AccentedE,
    /// One of these, without accents.
    These(Vec<&'static str>),
}

impl PatternPart {
    fn of(written: &'static str) -> Self {
        let word = written.strip_suffix('?').unwrap_or(written);
        let words = match word {
            "*" => WordClass::Any,
            "<verb>" => WordClass::Verb,
            "<inf>" => WordClass::Infinitive,
            "<ing>" => WordClass::Ing,
            "<ed>" => WordClass::Past,
            "<ger>" => WordClass::Gerund,
            "<pp>" => WordClass::Participle,
            "<num>" => WordClass::Number,
            "è" => WordClass::AccentedE,
            _ => WordClass::These(word.split('/').collect()),
        };
        Self { words, is_optional: word.len() < written.len() }
    }

    fn fits(&self, token: &Token) -> bool {
        let norm = token.norm.as_str();
        match &self.words {
            WordClass::Any => true,
            WordClass::Verb => is_verb(token),
            WordClass::Infinitive => is_infinitive(norm),
            WordClass::Ing => norm.len() > 4 && norm.ends_with("ing"),
            WordClass::Past => is_past(norm),
            WordClass::Gerund => norm.len() > 5 && (norm.ends_with("ando") || norm.ends_with("endo")),
            WordClass::Participle => is_participle(norm),
            WordClass::Number => token.digit(),
            WordClass::AccentedE => token.lower == "è",
            WordClass::These(words) => words.contains(&norm),
        }
    }
}

/// The end of a pattern that begins at `at`. `None` if it does not match.
fn end(pattern: &[PatternPart], words: &[&Token], at: usize) -> Option<usize> {
    let mut i = at;
    for part in pattern {
        let fits = words.get(i).is_some_and(|token| part.fits(token));
        if !fits && !part.is_optional {
            return None;
        }
        i += usize::from(fits);
    }
    Some(i)
}

/// The end of the first of these patterns that matches at `at`.
pub(crate) fn any(words: &[&Token], at: usize, patterns: &Patterns) -> Option<usize> {
    patterns.ends(words, at).next()
}

/// The begin and end of the first match of these patterns that begins within the first `max` words.
pub(crate) fn find(words: &[&Token], max: usize, patterns: &Patterns) -> Option<(usize, usize)> {
    (0..words.len().min(max)).find_map(|at| Some((at, any(words, at, patterns)?)))
}

/// Strips fillers from the beginning of a clause.
pub(crate) fn strip_fillers<'a, 'b>(mut words: &'b [&'a Token]) -> &'b [&'a Token] {
    while let Some(at) =
        any(words, 0, FILLERS).or_else(|| words.first().filter(|t| t.lower == "sì").map(|_| 1))
    {
        let negation = words[0].is(&["only", "just", "solo"]) && at == words.len();
        if at == 0 || negation || words[0].lower == "è" {
            break;
        }
        words = &words[at..];
    }
    words
}

#[cfg(test)]
mod tests;
