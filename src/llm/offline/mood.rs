//! Detects the speech act of one clause by closed word classes: negations, modals, question words, verbs of
//! saying and wishing, and past forms.

use super::lexicon;
use super::pattern::{any, find, is_infinitive, is_participle, is_past, is_verb, patterns, strip_fillers};
use super::phrases::{
    ASKS, ASKS_MARKED, CANNOT, MAY_BE, MINDS, MISSED, NOT, NOT_INSIDE, POLITE, PRICE_OF, REASONS, REMINDS,
    REMINDS_ME_WHAT, TALES, THANKS, TO_KNOW, WH, WISHES, WOULD_BE,
};
use super::speech::Act;
use super::text::{Token, features};
pub(super) use others::is_person_noun;
use others::{addresses_third_person, is_about_third_person, is_causative, is_quotation};
use past::report_act;

mod others;
mod past;

/// From this similarity on, two words mean the same.
const SAME_WORD: f64 = 0.8;

/// The speech act of a clause, and whether its words express it or it is only the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClauseMood {
    /// The speech act.
    pub act: Act,
    /// Whether some word expresses it.
    pub explicit: bool,
}

/// Detects the speech act of a clause; `marked` if a question mark ends it.
pub(super) fn clause_mood(words: &[&Token], marked: bool) -> ClauseMood {
    let said = |act| ClauseMood { act, explicit: true };
    if find(words, 3, THANKS).is_some() {
        return said(Act::Report);
    }
    let words = strip_fillers(words);
    if words.is_empty() {
        return ClauseMood { act: Act::Request, explicit: false };
    }
    if let Some(at) = any(words, 0, REASONS) {
        let inner = clause_mood(&words[at..], false);
        let told = matches!(inner.act, Act::Request | Act::Question);
        return if told { said(Act::Statement) } else { inner };
    }
    // "Tomorrow I need …".
    if let Some(at) = time_prefix_end(words) {
        let inner = clause_mood(&words[at..], marked);
        if inner.explicit {
            return inner;
        }
    }
    act_by_opening(words, marked)
        .or_else(|| act_by_negation_or_question(words, marked))
        .or_else(|| act_by_wish(words, marked))
        .map_or_else(|| mood_by_verbs(words, marked), said)
}

/// The act that the opening words or the verbs of saying express: a causative, a reminder, a message, a
/// polite request.
fn act_by_opening(words: &[&Token], marked: bool) -> Option<Act> {
    if is_causative(words) {
        return Some(Act::ThirdPerson);
    }
    if let Some(at) = any(words, 0, MINDS) {
        return Some(act_after_lead(&words[at..], marked));
    }
    if any(words, 0, MISSED).is_some() {
        return Some(Act::Report);
    }
    if any(words, 0, REMINDS_ME_WHAT).is_some() {
        return Some(Act::Question);
    }
    if any(words, 0, REMINDS).is_some() {
        return Some(Act::Reminder);
    }
    if addresses_third_person(words) || is_quotation(words) || any(words, 0, TALES).is_some() {
        return Some(Act::Quoted);
    }
    if find(words, 4, WOULD_BE).is_some() || (find(words, 4, PRICE_OF).is_some() && !orders_change(words)) {
        return Some(Act::Hypothetical);
    }
    if marked && super::doubts::asks_to_act(words) {
        return Some(Act::Request);
    }
    let rest = &words[any(words, 0, POLITE)?..];
    if rest.first().is_some_and(|t| t.is(&["not", "non"])) {
        return Some(Act::Negated);
    }
    Some(act_after_lead(rest, marked))
}

/// Whether the words order to set or change something: "set the price of …", "porta il prezzo della lattiera a 12 euro".
fn orders_change(words: &[&Token]) -> bool {
    let order = |token: &Token| {
        ["set", "change", "raise", "lower"]
            .iter()
            .any(|verb| features(verb).similarity(&token.features()) > SAME_WORD)
    };
    let opens = words.first().is_some_and(|first| {
        !lexicon::is_stop_word(&first.norm)
            && !lexicon::is_question_word(&first.norm)
            && any(words, 0, PRICE_OF).is_none()
            && any(words, 0, MAY_BE).is_none()
    });
    let is_set_to = words.windows(2).any(|two| two[0].is(&["to", "a"]) && two[1].digit());
    words.iter().take(4).any(|token| order(token)) || (opens && is_set_to)
}

/// The act of clauses with a question word, a negation or an auxiliary at the beginning.
fn act_by_negation_or_question(words: &[&Token], marked: bool) -> Option<Act> {
    if any(words, 0, TO_KNOW).is_some() || starts_with_wh_word(words) {
        return Some(Act::Question);
    }
    if any(words, 0, patterns!["i/we don/do/dont t/not? mind", "non mi/ci? dispiace/dispiacerebbe"]).is_some()
    {
        return Some(Act::Statement);
    }
    if is_negated(words, marked) {
        return Some(Act::Negated);
    }
    if any(words, 0, CANNOT).is_some() {
        return Some(Act::Statement);
    }
    let names = |t: &Token| t.capital() && (!t.first || lexicon::is_first_name(&t.norm));
    let asks = any(words, 0, ASKS).is_some() || marked && any(words, 0, ASKS_MARKED).is_some();
    let of_name = marked
        && words[0].is(&["do", "does", "did", "is", "has", "can", "may", "should"])
        && words.get(1).is_some_and(|t| names(t));
    (asks || of_name).then_some(Act::Question)
}

/// The act of clauses that begin with a wish, or that express a possibility or the future.
fn act_by_wish(words: &[&Token], marked: bool) -> Option<Act> {
    if let Some(at) = any(words, 0, WISHES) {
        // "I have had …" and "I had wanted to" are reports.
        if words.get(at - 1).is_some_and(|t| t.is(&["have", "ve"]))
            && words.get(at).is_some_and(|t| is_past(&t.norm))
        {
            return Some(Act::Report);
        }
        return Some(act_after_lead(&words[at..], marked));
    }
    (any(words, 0, MAY_BE).is_some() || is_future(words) || says_own_act(words)).then_some(Act::Statement)
}

/// Detects acts that only the verbs reveal: reports, third persons, states.
fn mood_by_verbs(words: &[&Token], marked: bool) -> ClauseMood {
    let said = |act| ClauseMood { act, explicit: true };
    let report = report_act(words);
    if let Some(act) = report {
        return said(if marked { Act::Question } else { act });
    }
    if is_about_third_person(words) {
        return said(if marked { Act::Question } else { Act::ThirdPerson });
    }
    let order = is_order(words);
    if marked && asks_addressee_to_act(words) {
        return said(Act::Request);
    }
    if marked && !order {
        return said(Act::Question);
    }
    if marked {
        return said(Act::Question);
    }
    if !order && (is_statement(words) || has_finite_verb(words)) {
        return said(Act::Statement);
    }
    ClauseMood { act: Act::Request, explicit: order }
}

/// The end of a time expression at the beginning of a clause.
fn time_prefix_end(words: &[&Token]) -> Option<usize> {
    let small = [
        "on", "in", "for", "at", "the", "il", "la", "nel", "per", "da", "dal", "of", "this", "questo",
        "questa", "from", "to", "al", "dalle", "alle",
    ];
    let at = words.iter().take(8).take_while(|t| is_date_word(t) || t.is(&small)).count();
    let told = words[..at].iter().any(|t| is_date_word(t) && !t.digit()) && at < words.len();
    told.then_some(at)
}

/// Whether a clause is a request in the form of a polite question.
pub(super) fn is_polite(words: &[&Token]) -> bool {
    any(strip_fillers(words), 0, POLITE).is_some()
}

/// Whether a clause only states that the speaker cannot do something: "I can't come on Monday".
pub(super) fn is_denial(words: &[&Token]) -> bool {
    any(strip_fillers(words), 0, CANNOT).is_some()
}

/// The act of the words after a request phrase.
fn act_after_lead(rest: &[&Token], marked: bool) -> Act {
    if rest.first().is_some_and(|t| t.is(&["i", "we", "he", "she", "they"])) {
        // "I wish I could …".
        return Act::Statement;
    }
    let inner = clause_mood(rest, false);
    match inner.act {
        Act::Negated | Act::Reminder | Act::Quoted | Act::Hypothetical => inner.act,
        Act::Question if any(rest, 0, TO_KNOW).is_some() || starts_with_wh_word(rest) => Act::Question,
        // A polite question without content requests nothing.
        _ if rest.is_empty() && marked => Act::Question,
        _ => Act::Request,
    }
}

/// Whether a question is about a past action: "did I book …?", "hai disdetto …?".
pub(super) fn asks_about_past(words: &[&Token]) -> bool {
    let words = strip_fillers(words);
    let aux = any(
        words,
        0,
        patterns![
            "did/have/has/was/were/had",
            "ho/hai/ha/abbiamo/avete/hanno gia? <pp>",
            "qualcuno/nessuno/chi ha gia? <pp>",
        ],
    );
    let known = any(words, 0, TO_KNOW);
    let told = |at: usize| {
        report_act(&words[at..]).is_some()
            || find(&words[at..], 4, patterns!["ho/hai/ha/abbiamo/avete/hanno gia? <pp>"]).is_some()
    };
    aux.is_some()
        && any(words, 0, patterns!["have you/i got"]).is_none()
        && words.iter().skip(1).any(|t| is_past(&t.norm) || is_participle(&t.norm) || words[0].is(&["did"]))
        || known.is_some_and(told)
}

/// Whether a question begins with a question word, directly or after "I'd like to know".
pub(super) fn opens_with_question_word(words: &[&Token]) -> bool {
    let words = strip_fillers(words);
    let known = any(words, 0, TO_KNOW).or_else(|| {
        let at = any(words, 0, WISHES)?;
        any(words, at, TO_KNOW)
    });
    match known {
        Some(at) => words.get(at - 1).is_some_and(|t| WH.contains(&t.norm.as_str())),
        None => !words.is_empty() && starts_with_wh_word(words),
    }
}

fn starts_with_wh_word(words: &[&Token]) -> bool {
    let prepositions = [
        "a", "in", "at", "for", "per", "da", "di", "con", "with", "from", "on", "until", "fino", "to", "by",
        "entro",
    ];
    let at = usize::from(words[0].is(&prepositions) && words.len() > 2);
    let Some(first) = words.get(at) else { return false };
    if at == 0 && first.is(&["che"]) {
        return words.get(1).is_some_and(|t| !t.is(&["ne", "io", "lui", "lei"]));
    }
    if at == 1 && first.is(&["che"]) {
        return words.get(2).is_some_and(|t| t.is(&["ora", "ore", "punto", "giorno", "piano", "cosa"]));
    }
    let about = any(words, 0, patterns!["how about", "what about", "how/what about <ing>"]).is_some();
    WH.contains(&first.norm.as_str()) && !about
}

/// Whether the clause forbids something or states that it is not wanted.
fn is_negated(words: &[&Token], marked: bool) -> bool {
    if any(
        words,
        0,
        patterns![
            "not/non only/solo/soltanto/solamente",
            "no problem/problema/thanks/grazie/worries",
            "niente male/paura",
        ],
    )
    .is_some()
    {
        return false;
    }
    let cannot = any(words, 0, CANNOT).is_some()
        && any(
            words,
            0,
            patterns![
                "i/we don/do/dont t/not? have to",
                "non ho/abbiamo piu? bisogno/intenzione",
                "non ti/vi/le? ho/abbiamo chiesto",
                "i/we didn/did t/not ask/want/say/mean",
                "non c è bisogno/necessita",
            ],
        )
        .is_none();
    if !cannot && any(words, 0, NOT).is_some() {
        return !(marked
            && any(words, 0, patterns!["don/dont t? you/i/we", "don/dont"])
                .is_some_and(|at| at > 1 && words[at - 1].is(&["you", "i", "we"])));
    }
    if words[0].is(&["non"]) && !cannot && is_negative_order(words, marked) {
        return true;
    }
    is_negated_inside(words)
}

/// Whether the verb after an Italian "non" is an order: "non prenotare", "non prenotate", "non prenoti".
fn is_negative_order(words: &[&Token], marked: bool) -> bool {
    let verb = words.iter().skip(1).find(|t| {
        !t.is(&[
            "mi", "ti", "ci", "vi", "lo", "la", "li", "le", "ne", "gli", "me", "te", "ce", "si", "glielo",
            "piu", "ancora",
        ])
    });
    let plural = |t: &Token| ["ate", "ete", "ite"].iter().any(|e| t.norm.ends_with(e)) && t.norm.len() > 5;
    let polite =
        |t: &Token| !marked && lexicon::may_be_action(&t.features().concepts) && t.norm.ends_with(['i', 'a']);
    verb.is_some_and(|t| is_infinitive(&t.norm) || plural(t) || polite(t))
}

/// Whether a negative order stands inside the clause and not only in an explanation.
fn is_negated_inside(words: &[&Token]) -> bool {
    let Some((at, _)) = find(words, words.len(), NOT_INSIDE) else { return false };
    let before = &words[..at];
    // "… because the lights do not work", "per non perdere …", "se non …": an explanation, a purpose, a
    // condition.
    let account =
        before.iter().any(|t| t.is(&["because", "perche", "che", "that", "who", "which", "since", "saying"]));
    let purpose = before.last().is_some_and(|t| t.is(&["per", "as", "so", "se", "if", "order"]));
    let free = before.iter().all(|t| {
        lexicon::is_stop_word(&t.norm)
            || lexicon::is_time_unit(&t.norm)
            || is_date_word(t)
            || lexicon::is_pleasantry(&t.norm)
    });
    let asked = words[at].is(&["not", "di", "che"])
        || before
            .iter()
            .any(|t| t.is(&["you", "better", "meglio", "preferisco", "preferirei", "rather", "prefer"]));
    !account && !purpose && (free || asked)
}

fn is_date_word(token: &Token) -> bool {
    const DAYS: &[&str] = &[
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "lunedi", "martedi",
        "mercoledi", "giovedi", "venerdi", "sabato", "domenica", "tomorrow", "yesterday", "tonight", "ieri",
        "domani", "last", "next", "ago", "scorso", "scorsa", "prossimo", "prossima", "recently",
        "recentemente", "earlier", "previously", "already", "gia", "summer", "winter", "estate", "inverno",
        "ad", "during",
    ];
    token.digit() || super::dates::month(&token.norm).is_some() || DAYS.contains(&token.norm.as_str())
}

/// Whether the clause has a finite verb or gerund and so is not an elliptical request.
fn has_finite_verb(words: &[&Token]) -> bool {
    words.iter().enumerate().any(|(n, t)| {
        let subject = t.is(&["i", "we", "you", "he", "she", "they"]) && t.norm.len() + n > 1 || t.raw == "I";
        let doing = t.norm.len() > 5 && t.norm.ends_with("ing") && is_verb(t) && n > 0;
        subject && words.get(n + 1).is_some_and(|next| !is_date_word(next)) || doing && !t.capital()
    })
}

/// Whether the speaker does it: "lo chiudo io", "la cierro yo".
fn says_own_act(words: &[&Token]) -> bool {
    words.windows(2).any(|two| {
        two[1].is(&["io", "yo"]) && two[0].norm.len() > 3 && two[0].norm.ends_with('o') && !two[0].capital()
    })
}

/// Whether a clause is in the future: "Prenderò ferie", "andremo a Roma".
fn is_future(words: &[&Token]) -> bool {
    const WISHED: &[&str] = &["vorrei", "gradirei", "preferirei", "desidererei"];
    let would = |t: &Token| t.norm.len() > 6 && t.norm.ends_with("rei") && !t.is(WISHED);
    if words.iter().take(2).any(|t| would(t) && is_verb(t)) {
        return true;
    }
    words.iter().take(3).any(|t| {
        t.lower.ends_with("rò") && t.norm.len() > 3
            || t.norm.ends_with("remo") && t.norm.len() > 6 && t.norm != "estremo" && t.norm != "supremo"
    })
}

/// Whether a question asks the addressee to act: "Mi prenoti un tavolo?", "prenoti la sala?".
pub(super) fn asks_addressee_to_act(words: &[&Token]) -> bool {
    let clitics = ["mi", "ci", "me", "ce", "lo", "la", "li", "le", "ne", "ti", "te", "gliela", "glielo"];
    let Some(at) = words.iter().position(|t| !t.is(&clitics)) else { return false };
    let verb = words[at];
    let ends = verb.norm.len() > 3 && verb.norm.ends_with('i') && !verb.capital() | verb.first;
    // "Hai …?" and "sai …?" ask about the addressee.
    let about_addressee = ["hai", "sei", "sai", "vai"];
    let plural = verb.norm.len() > 5 && ["ate", "ete", "ite"].iter().any(|e| verb.norm.ends_with(e));
    (ends || plural || verb.is(&["fai", "dai"])) && !verb.is(&about_addressee) && (at > 0 || is_verb(verb))
}

/// Whether a clause begins with an order.
pub(super) fn is_order(words: &[&Token]) -> bool {
    let words = strip_fillers(words);
    let Some(first) = words.first() else { return false };
    let object = words.get(1).is_some_and(|t| {
        t.is(&[
            "me", "us", "a", "an", "the", "my", "our", "some", "all", "every", "un", "uno", "una", "il",
            "lo", "la", "i", "gli", "le", "mi", "ci", "dei", "delle", "del", "it", "them", "him", "tutti",
            "tutte", "this", "that", "up", "another",
        ])
    });
    let noun = !first.features().concepts.is_empty() && !lexicon::may_be_action(&first.features().concepts);
    let closed = lexicon::is_stop_word(&first.norm)
        || lexicon::is_pleasantry(&first.norm)
        || lexicon::is_question_word(&first.norm)
        || lexicon::is_time_unit(&first.norm)
        || is_date_word(first)
        || first.digit();
    let clitic = first.norm.len() > 6
        && ["ami", "imi", "emi", "aci", "ici", "eci", "alo", "ala", "ilo", "ila", "amelo", "imelo"]
            .iter()
            .any(|e| first.norm.ends_with(e))
        && !noun;
    let plural = first.norm.ends_with('s') && !first.norm.ends_with("ss");
    // "Cancelling it was a mistake", "disdire è stato un errore".
    let named = !may_be_order_form(first)
        || words.iter().skip(1).any(|t| t.lower == "è" || t.is(&["was", "were", "is", "era", "sarebbe"]))
            && is_infinitive(&first.norm);
    if named {
        return false;
    }
    let told = first.is(&[
        "tell", "give", "show", "let", "get", "make", "do", "dimmi", "dammi", "fammi", "dai", "fai", "fate",
        "fare",
    ]);
    told || is_verb(first) && !closed
        || clitic && !closed
        || object && !noun && !closed && !plural && (!first.capital() || first.first)
}

/// Whether a word may be the verb of an order: not a participle or gerund such as "cancelling",
/// "disdicendo".
fn may_be_order_form(token: &Token) -> bool {
    let ends = |end: &str| token.norm.len() > end.len() + 3 && token.norm.ends_with(end);
    let past = ends("ed") && is_past(&token.norm)
        || ["ato", "ata", "uto", "uta", "ito", "ita"].iter().any(|end| ends(end))
            && is_participle(&token.norm);
    !(past || ends("ing") || ends("ando") && token.norm != "comando" || ends("endo"))
}

/// Whether a part of a sentence adds an order, other than one about manner or about reporting the result.
pub(super) fn adds_order(words: &[&Token]) -> bool {
    let own = strip_fillers(words);
    let closing = any(own, 0, MINDS).is_some()
        || any(
            own,
            0,
            patterns![
                "let me/us know",
                "fammi/facci/fatemi sapere",
                "make sure",
                "tell me/us if/when/once/whether/the",
                "confirm/conferma",
                "thank/thanks/grazie",
                "dimmi/dammi se/quando/conferma",
            ],
        )
        .is_some();
    let content = own.iter().skip(1).any(|t| !lexicon::is_stop_word(&t.norm) && !is_date_word(t));
    !closing && content && is_order(own)
}

/// Whether a clause states a fact.
fn is_statement(words: &[&Token]) -> bool {
    let there = any(words, 0, patterns!["there is/are/s", "c è", "ci sono", "ce"]).is_some();
    let copula = |t: &Token| {
        t.lower == "è"
            || t.is(&[
                "is", "are", "am", "isn", "aren", "doesn", "sono", "siamo", "non", "works", "has", "deve",
                "hanno", "ha", "was", "were", "won", "cannot",
            ])
    };
    !there && words.len() > 1 && words.iter().take(6).skip(1).any(|t| copula(t))
        || !there && words[0].is(&["siamo", "sono", "non", "è", "it", "we", "si"])
}

/// Whether a word is part of a date or expresses a time.
pub(super) fn is_date_token(token: &Token) -> bool {
    is_date_word(token) && !token.digit()
        || token.digit() && token.norm.trim_end_matches(|c: char| c.is_alphabetic()).len() <= 2
}

/// Whether a clause only asks for information.
pub(super) fn asks_to_be_told(words: &[&Token]) -> bool {
    let words = strip_fillers(words);
    words.first().is_some_and(|t| {
        t.is(&[
            "tell", "show", "list", "check", "dimmi", "dirmi", "mostrami", "mostra", "elenca", "elencami",
            "controlla", "verifica", "fammi", "let", "give", "dammi", "what", "how", "when", "who", "where",
            "which", "quanti", "quanto", "quante", "chi", "dove", "quando", "quale", "quali", "find",
            "search", "cerca", "trova",
        ])
    })
}
/// Whether the words state a fact and ask for nothing: "la stampante è rotta", "we are four".
pub(super) fn is_declaration(tokens: &[Token]) -> bool {
    let words: Vec<_> = tokens.iter().filter(|t| t.word).collect();
    let question = words.first().is_some_and(|t| lexicon::is_question_word(&t.norm))
        || tokens.iter().any(|t| t.raw == "?");
    let wish = words.iter().take(6).any(|t| {
        t.is(&[
            "vorrei", "voglio", "dimmi", "dammi", "fammi", "puoi", "potresti", "can", "could", "please",
            "want", "like", "mostrami",
        ])
    });
    let verb = words.iter().any(|t| {
        t.lower == "è"
            || t.is(&[
                "is", "are", "am", "sono", "siamo", "non", "not", "was", "ho", "hanno", "ha", "have", "has",
                "it", "deve", "devo", "must", "mi", "we",
            ])
    });
    let opens = words.first().is_some_and(|t| lexicon::is_action(&t.features().concepts));
    !question && !wish && !opens && verb
}
