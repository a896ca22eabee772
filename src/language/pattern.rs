//! Patterns of function words: `i/we do/don not/t want|need` and the like.
//!
//! A pattern is a sequence of words. `a/b` is one of several, `a?` is optional, `*` is any word, and a word in
//! angle brackets is a class: `<verb>` a verb of action, `<inf>` an Italian infinitive, `<ing>`, `<ed>` an
//! English past form, `<pp>` an Italian participle, `<ger>` an Italian gerund, `<num>`.

use super::lexicon;
use super::text::Token;

/// Fillers: words that open a clause and do not affect its act.
const FILLERS: &[&str] = &[
    "per favore/cortesia/piacere",
    "by the way",
    "guarda/senti/ascolta/sai/look/listen che?",
    "good morning/afternoon/evening/day",
    "buon giorno/pomeriggio",
    "a proposito",
    "of course",
    "ah",
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
    "take",
    "make",
    "have",
    "get",
    "do",
    "give",
    "put",
    "keep",
    "hold",
    "use",
    "go",
    "come",
    "bring",
    "let",
    "try",
    "write",
    "say",
    "tell",
    "reply",
    "answer",
    "withdraw",
    "file",
    "lodge",
    "issue",
    "apply",
    "arrange",
    "prolong",
    "block",
    "unblock",
    "freeze",
    "activate",
    "deactivate",
    "confirm",
    "charge",
    "refund",
    "top",
    "sign",
    "enter",
    "post",
    "notify",
    "contact",
    "email",
    "text",
    "prescribe",
    "play",
    "pause",
    "unlock",
    "lock",
    "raise",
    "postpone",
    "save",
    "store",
    "publish",
    "drop",
    "grant",
    "redirect",
    "ship",
    "wire",
    "debit",
    "credit",
    "reschedule",
    "claim",
    "grab",
    "fix",
    "bake",
    "sing",
    "draw",
    "help",
    "look",
    "mark",
    "cook",
    "read",
    "prendi",
    "prendere",
    "prendo",
    "prenda",
    "fai",
    "fare",
    "faccia",
    "metti",
    "mettere",
    "metta",
    "tieni",
    "tenere",
    "tenga",
    "dai",
    "porta",
    "portami",
    "scrivi",
    "scrivere",
    "blocca",
    "bloccare",
    "sblocca",
    "conferma",
    "confermare",
    "attiva",
    "attivare",
    "disattiva",
    "disattivare",
    "ritira",
    "posticipa",
    "anticipa",
    "usa",
    "presta",
    "prestami",
    "prestare",
    "riserva",
    "riservare",
    "disdici",
    "disdire",
    "spedisci",
    "paga",
    "pagare",
    "concedi",
    "assumi",
    "versa",
    "versare",
    "preleva",
    "prelevare",
    "ricarica",
    "ricaricare",
    "iscrivi",
    "tenta",
];

/// Irregular English past forms.
const PAST: &[&str] = &[
    "took",
    "taken",
    "had",
    "was",
    "were",
    "been",
    "got",
    "gotten",
    "made",
    "went",
    "gone",
    "bought",
    "paid",
    "sent",
    "told",
    "said",
    "gave",
    "given",
    "saw",
    "seen",
    "wrote",
    "written",
    "spent",
    "left",
    "lost",
    "broke",
    "broken",
    "forgot",
    "forgotten",
    "did",
    "done",
    "came",
    "found",
    "kept",
    "held",
    "met",
    "ran",
    "sold",
    "spoke",
    "began",
    "drove",
    "flew",
    "ate",
    "slept",
    "stole",
    "stolen",
    "lent",
    "put",
    "read",
    "thought",
    "chose",
    "chosen",
    "used",
    "withdrew",
    "rode",
    "woke",
    "swore",
    "hurt",
    "cut",
];

/// Irregular Italian participles.
const PARTICIPLES: &[&str] = &[
    "preso",
    "presa",
    "presi",
    "prese",
    "fatto",
    "fatta",
    "fatti",
    "chiesto",
    "chiesta",
    "richiesto",
    "richiesta",
    "messo",
    "messa",
    "speso",
    "spesi",
    "scritto",
    "scritta",
    "detto",
    "letto",
    "visto",
    "vista",
    "stato",
    "stata",
    "stati",
    "rotto",
    "rotta",
    "perso",
    "persa",
    "aperto",
    "aperta",
    "chiuso",
    "chiusa",
    "disdetto",
    "disdetta",
    "corretto",
    "vinto",
    "scelto",
    "scelta",
    "deciso",
    "iscritto",
    "iscritta",
    "rimasto",
    "rimasta",
    "successo",
    "mosso",
    "spento",
    "acceso",
    "offerto",
    "risposto",
    "sottoscritto",
    "smesso",
    "trascorso",
    "permesso",
    "tratto",
];

/// Words that end in -ed but are no past forms.
const NOT_PAST: &[&str] = &[
    "need", "feed", "speed", "seed", "bed", "red", "hundred", "indeed", "exceed", "proceed", "shed", "united",
];

/// Words that end like an infinitive but are none.
const NOT_INF: &[&str] =
    &["mare", "cuore", "piacere", "potere", "bere", "settore", "ore", "ancore", "lettere", "camere", "opere"];

/// Whether a word is a verb of action.
pub(crate) fn is_verb(token: &Token) -> bool {
    VERBS.contains(&token.norm.as_str()) || lexicon::may_be_action(&token.features().concepts)
}

/// Whether a normalised word is one of the verbs of everyday orders.
pub(crate) fn is_verb_form(norm: &str) -> bool {
    VERBS.contains(&norm)
}

/// Whether a word is an English past form.
pub(crate) fn is_past(norm: &str) -> bool {
    PAST.contains(&norm)
        || norm.len() > 4
            && norm.ends_with("ed")
            && !NOT_PAST.contains(&norm)
            && norm.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Whether a word is an Italian participle.
pub(crate) fn is_participle(norm: &str) -> bool {
    const ENDS: &[&str] =
        &["ato", "ata", "ati", "ate", "uto", "uta", "uti", "ute", "ito", "ita", "iti", "ite"];
    PARTICIPLES.contains(&norm) || norm.len() > 4 && ENDS.iter().any(|end| norm.ends_with(end))
}

/// Whether a word is an Italian infinitive, also with suffixed pronouns.
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

fn fits(token: &Token, part: &str) -> bool {
    match part {
        "*" => true,
        "<verb>" => is_verb(token),
        "<inf>" => is_infinitive(&token.norm),
        "<ing>" => token.norm.len() > 4 && token.norm.ends_with("ing"),
        "<ed>" => is_past(&token.norm),
        "<ger>" => token.norm.len() > 5 && (token.norm.ends_with("ando") || token.norm.ends_with("endo")),
        "<pp>" => is_participle(&token.norm),
        "<num>" => token.digit(),
        // "È" must not match "e".
        "è" => token.lower == "è",
        _ => part.split('/').any(|word| word == token.norm),
    }
}

/// The end of a pattern that begins at `at`. `None` if it does not match.
pub(crate) fn end(words: &[&Token], at: usize, pattern: &str) -> Option<usize> {
    let mut i = at;
    for part in pattern.split(' ') {
        match part.strip_suffix('?') {
            Some(part) => i += usize::from(words.get(i).is_some_and(|t| fits(t, part))),
            None => {
                if !fits(words.get(i)?, part) {
                    return None;
                }
                i += 1;
            }
        }
    }
    Some(i)
}

/// The end of the first of these patterns that matches at `at`.
pub(crate) fn any(words: &[&Token], at: usize, patterns: &[&str]) -> Option<usize> {
    patterns.iter().find_map(|pattern| end(words, at, pattern))
}

/// The begin and end of the first match of these patterns that begins within the first `max` words.
pub(crate) fn find(words: &[&Token], max: usize, patterns: &[&str]) -> Option<(usize, usize)> {
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
