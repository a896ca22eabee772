//! What a clause says to, of or by another person: messages, quotations, wishes of others.

use crate::llm::offline::dates;
use crate::llm::offline::lexicon;
use crate::llm::offline::pattern::{Patterns, any, find, is_verb, patterns};
use crate::llm::offline::phrases::{KIN, SAID, TELLS, THEY, THIRD};
use crate::llm::offline::text::Token;

/// Whether the clause asks to tell, ask or write to another person.
pub(super) fn addresses_third_person(words: &[&Token]) -> bool {
    let Some(at) = any(words, 0, TELLS) else { return false };
    let verb = words[0];
    let rest = &words[at..];
    let writes = at > 1;
    if verb.is(&["let"]) {
        return rest.first().is_some_and(|t| !t.is(&["me", "us", "s", "know"]))
            && rest.iter().take(5).any(|t| t.is(&["know"]));
    }
    if writes
        && !verb.is(&[
            "write", "send", "draft", "compose", "prepare", "forward", "drop", "shoot", "scrivi", "scrivere",
            "manda", "mandare", "invia", "inviare", "prepara", "spedisci",
        ])
    {
        // "Chiedi a Marco di …", not "segnala al piano 3 …"; "report to …".
        let somebody = rest.first().is_some_and(|t| {
            is_person_name(t)
                || t.is(KIN)
                || t.is(&["tutti", "capo", "responsabile", "ufficio", "hr", "team", "the"])
        });
        return somebody || verb.is(&["say", "reply", "fai", "fa", "fate", "far"]);
    }
    if writes || has_addressee_suffix(verb) {
        return true;
    }
    let Some(who) = rest.first() else { return false };
    if who.is(&["me", "us", "for", "whether", "if", "about"]) {
        return false;
    }
    let complement = rest.iter().skip(1).take(5).any(|t| {
        t.is(&[
            "that", "to", "about", "if", "whether", "i", "we", "he", "she", "how", "when", "what", "di",
            "che", "se", "it", "for", "of",
        ])
    });
    let named = is_person_name(who)
        || who.is(KIN)
        || who.is(THEY)
        || who.is(&["him", "them", "il", "la", "i", "gli", "le", "the", "all", "tutti", "everyone", "hr"]);
    named && (complement || is_person_name(who) || who.is(&["him", "her", "them"]) || is_whole_person(rest))
}

/// Whether nothing but a person is named: "my manager", "il mio capo".
fn is_whole_person(words: &[&Token]) -> bool {
    let leads = |word: &&Token| word.is(KIN) || word.is(&["the", "il", "la", "i", "gli", "le", "lo"]);
    let led = words.iter().take_while(|word| leads(word)).count();
    matches!(&words[led..], [noun] if led > 0 && is_person_noun(noun))
}

fn has_addressee_suffix(verb: &Token) -> bool {
    verb.is(&[
        "digli", "dille", "ditegli", "scrivigli", "scrivile", "avvisalo", "avvisala", "avvertilo",
        "informalo", "chiedigli", "chiedile", "rispondigli", "rispondile", "ricordagli", "ricordale",
    ])
}

pub(super) fn is_person_name(token: &Token) -> bool {
    lexicon::is_first_name(&token.norm) && token.capital()
        || token.capital() && !token.first && !token.digit() && dates::month(&token.norm).is_none()
}

/// Whether a word is a noun for a person: "colleague", "capo".
pub(in crate::llm::offline) fn is_person_noun(token: &Token) -> bool {
    token.is(PERSON_NOUNS)
}

/// Whether the clause quotes another person.
pub(super) fn is_quotation(words: &[&Token]) -> bool {
    let by = any(words, 0, patterns!["according to", "secondo"]);
    if by.is_some_and(|at| {
        words.get(at).is_some_and(|t| is_person_name(t) || t.is(KIN) || t.is(&["the", "il", "la"]))
    }) {
        return true;
    }
    let Some((at, to)) = find(words, 6, SAID) else { return false };
    // The quoted person must not be the user.
    let before = &words[..at];
    if any(words, at, patterns!["c è scritto", "è scritto", "ce scritto"]).is_some() {
        return true;
    }
    if before.iter().all(|t| t.is(&["mi", "ci", "qui", "here", "it", "li"]))
        && words[at].is(&["dice", "dicono", "says", "è"])
    {
        return true;
    }
    if before.is_empty() || before.iter().any(|t| t.is(&["i", "we", "you", "ho", "to"])) {
        // "Mi ha detto di prenotare": the person is not named.
        return words[at].is(&["mi", "ci", "ha", "hanno", "dice", "dicono"])
            && before.is_empty()
            && words[at..to].len() > 1;
    }
    let someone = before.iter().any(|t| {
        is_person_name(t) || t.is(KIN) || t.is(THEY) || t.is(&["boss", "capo", "the", "il", "la", "it"])
    });
    let wants = words.get(to).is_some_and(|t| t.is(&["for", "about"]));
    someone && !wants
}

/// Whether a clause is about what another person wants or does.
pub(super) fn is_about_third_person(words: &[&Token]) -> bool {
    let Some(at) = third_person_end(words) else { return false };
    let adverbs = [
        "also", "really", "just", "still", "always", "anche", "non", "ci", "mi", "gli", "le", "lo", "la",
        "ne", "would", "probably", "and", "e",
    ];
    let mut i = at;
    while words.get(i).is_some_and(|t| t.is(&adverbs)) && i < at + 3 && any(words, i, THIRD).is_none() {
        i += 1;
    }
    // "My screen is black": the subject is a thing, not a person.
    let thing = words.iter().take(3).any(|t| t.is(KIN)) || words[0].is(&["the", "il", "la", "i", "le"]);
    let person = words[..at].iter().any(|t| t.is(PERSON_NOUNS) || lexicon::is_first_name(&t.norm))
        || words[0].is(THEY);
    if thing && !person {
        return any(words, i, WANT_PATTERNS).is_some();
    }
    any(words, i, THIRD).is_some() || has_dative_subject(words)
}

const PERSON_NOUNS: &[&str] = &[
    "brother", "sister", "wife", "husband", "mother", "father", "son", "daughter", "friend", "friends",
    "colleague", "colleagues", "boss", "manager", "team", "assistant", "client", "customer", "partner",
    "neighbour", "neighbor", "boy", "girl", "cousin", "uncle", "aunt", "kids", "children", "parents", "mom",
    "dad", "director", "teacher", "doctor", "tenant", "guest", "fratello", "sorella", "moglie", "marito",
    "madre", "padre", "figlio", "figlia", "amico", "amica", "amici", "collega", "colleghi", "colleghe",
    "capo", "responsabile", "assistente", "cliente", "clienti", "vicino", "vicina", "ragazzo", "ragazza",
    "cugino", "cugina", "zio", "zia", "figli", "genitori", "mamma", "papa", "direttore", "direttrice",
    "nonna", "nonno", "ospite", "fidanzata", "fidanzato", "compagno", "compagna", "socio", "socia",
];

static WANT_PATTERNS: &Patterns = patterns![
    "wants/needs/wishes/wishes/would/prefers/intends/hopes/plans/asks/requests",
    "want/wish",
    "has/have asked/to",
    "vuole/vogliono/vorrebbe/vorrebbero/desidera/desiderano/chiede/chiedono/preferisce/intende/voleva/volevano",
    "ha/hanno bisogno/chiesto",
];

/// Whether a dative names the person in need: "A Luca serve …", "gli serve …".
fn has_dative_subject(words: &[&Token]) -> bool {
    let serves = patterns![
        "a/ad * * serve/servono/servirebbe/servirebbero/piacerebbe/occorre",
        "a/ad * serve/servono/servirebbe/servirebbero/piacerebbe/occorre",
        "a/al/alla mio/mia/nostro/nostra * serve/servono/servirebbe/piacerebbe/occorre",
        "gli/le serve/servono/servirebbe/piacerebbe/occorre",
    ];
    any(words, 0, serves).is_some()
}

/// The end of the words for another person at the beginning of a clause.
fn third_person_end(words: &[&Token]) -> Option<usize> {
    if has_dative_subject(words) {
        return Some(1);
    }
    let first = words.first()?;
    if first.is(THEY) {
        return Some(1);
    }
    let article = usize::from(first.is(&["il", "la", "i", "le", "a", "un", "una", "uno", "the"]));
    if words.get(article).is_some_and(|t| t.is(KIN)) {
        let name = words.get(article + 2).is_some_and(|t| t.capital());
        return Some((article + 2 + usize::from(name)).min(words.len()));
    }
    if article == 1 && words.get(1).is_some_and(|t| !t.digit()) {
        let of = any(words, 2, patterns!["of/di mine/mio/ours/mine"]);
        let kin = any(
            words,
            1,
            patterns![
                "mio/mia/friend/colleague/collega/amico/amica/cliente/customer/client/capo/boss/manager/director/direttore *",
            ],
        );
        return of.or(kin.map(|_| 2)).or(Some(2).filter(|_| any(words, 2, THIRD).is_some()));
    }
    // The first word is always capitalised: a name must be known or be followed by another name or a verb.
    let mut i = 0;
    while words.get(i).is_some_and(|t| t.capital() && !t.is(&["i", "a", "e"])) && i < 3 {
        i += 1;
    }
    let known = lexicon::is_first_name(&first.norm);
    let verb = |t: &&&Token| {
        t.is(&[
            "wants", "needs", "wishes", "takes", "asks", "books", "would", "has", "is", "will", "vuole",
            "vorrebbe", "desidera", "ha", "deve", "prende", "avrebbe", "chiede", "dovrebbe", "vogliono",
            "and", "e",
        ])
    };
    let more =
        if words.get(1).is_some_and(|t| t.is(&["and", "e"])) && words.get(2).is_some_and(|t| t.capital()) {
            3
        } else {
            i
        };
    (i > 0 && (known || i > 1 || words.get(1).as_ref().is_some_and(verb))).then_some(more)
}

/// Whether another person is to act: "Let Marco book …", "have Anna cancel …".
pub(super) fn is_causative(words: &[&Token]) -> bool {
    let verb = words[0].is(&["let", "have", "get", "make", "lascia", "fai", "fa"]);
    let who = words.get(1).is_some_and(|t| {
        is_person_name(t) || t.is(&["him", "her", "them"]) || lexicon::is_first_name(&t.norm)
    });
    let then = words.iter().skip(2).take(2).any(|t| is_verb(t) || t.is(&["to"]));
    verb && who && then
}
