//! What a request leaves out at its end: "close 131 but not 120", "chiudi il 131, il 120 no", "close 131 and leave 120 alone". It
//! is left out before the request is planned, where the words only name something that the rest does not name; anything else
//! stays, and is asked about.

use super::entities::Entities;
use super::lexicon;
use super::mood;
use super::pattern::{Patterns, is_verb, patterns};
use super::phrases::SHADE;
use super::speech;
use super::text::{self, Token};
use crate::language::function_words::BUT;
use crate::language::number_words;

/// Words before what is replaced, which is not meant.
pub(super) static INSTEAD: &Patterns = patterns![
    "instead of",
    "rather than",
    "as opposed to",
    "invece di/del/della/dei/delle/che/dell",
    "anziche",
    "piuttosto che",
    "al posto di/del/della/dei/delle/dell",
    "in luogo di/del/della",
    "au lieu de/du/des/d",
    "a la place de/du/des/d",
    "plutot que/qu",
    "statt/anstatt",
    "anstelle von/der/des",
    "en vez/lugar de/del",
];

/// Words before what is excepted, which is not meant; what they limit is asked about.
pub(super) static EXCEPT: &Patterns = patterns![
    "except/excepting/excluding for?",
    "apart/aside from",
    "tranne/eccetto/fuorche",
    "ausser",
    "sauf/hormis/excepte",
    "excepto",
];

/// The most words of such a part.
const MAX_WORDS: usize = 8;
const NOT: &[&str] = &["not", "non", "nicht", "pas", "no"];
/// Negations that stand for an article.
const NO: &[&str] =
    &["no", "niente", "nessun", "nessuna", "kein", "keine", "keinen", "aucun", "aucune", "ningun", "ninguna"];
/// Words that stress a negation, or set it against what was said before.
const STRESS: &[&str] = &[
    "definitely", "certainly", "please", "assolutamente", "invece", "surtout", "auf", "keinen", "fall",
    "bitte", "instead", "ojo", "though", "por", "favor",
];
/// Courtesies after the last word of a request.
const COURTESIES: &[&str] = &[
    "please", "pls", "plz", "thanks", "thx", "bitte", "danke", "grazie", "stp", "svp", "merci", "porfa",
    "gracias",
];
/// Small words before the value.
const LEADS: &[&str] = &[
    "the", "il", "lo", "la", "l", "le", "i", "gli", "les", "der", "die", "das", "den", "el", "los", "las",
    "number", "numero", "nummer", "to", "a", "ad", "zu", "of", "for",
];
/// Those of them that say which thing is meant.
const ARTICLES: &[&str] =
    &["the", "il", "lo", "la", "l", "le", "i", "gli", "les", "der", "die", "das", "den", "el", "los", "las"];
/// Orders to leave something as it is, before what says how.
const LEAVE: &str = "leave keep lascia lasciate lasciamo lasciare tieni mantieni lass lasst belass behalte laisse laissez garde gardez \
deja dejen manten mantenga skip ignore exclude omit salta saltate ignora escludi ometti uberspring uberspringe ignoriere saute omite excluye";
/// The same with the thing as a pronoun.
const LEAVE_IT: &str = "lascialo lasciala lasciali lasciale saltalo saltala ignoralo ignorala dejalo dejala dejalos dejalas \
laisse-le laisse-la tienilo tienila";
/// Verbs of what stays as it is, and those before them.
const STAY: &str = "stay stays remain remains resta restano rimane rimangono bleibt bleiben reste restent queda quedan sigue va vanno";
const MUST: &[&str] =
    &["must", "should", "shall", "will", "has", "to", "deve", "soll", "muss", "doit", "debe", "can"];
/// How something is left.
const AS_IT_IS: &str = "bene gut bien fine alone open free out be as it is untouched unchanged stare perdere in pace aperto aperta aperti aperte libero \
libera liberi libere com e cosi offen frei ruhe aus so wie er sie es ist tranquille tranquilles ouvert ouverte libre libres en paix paz \
tranquila tranquilo abierta abierto quieta quieto como esta";

/// The request without what its end leaves out. `None` if there is none. An order to leave something that does not say how
/// ("keep 120", "skip 120") counts if `is_nobodys` says of its verb that it is not that of some tool.
pub(super) fn without_exclusion(request: &str, is_nobodys: impl Fn(&Token) -> bool) -> Option<String> {
    let tokens = text::tokens(request);
    if speech::quoted(&tokens).contains(&true)
        || tokens.iter().any(|token| matches!(token.raw.as_str(), "?" | ":"))
    {
        return None;
    }
    let end = tokens.iter().rposition(|token| token.word && !token.is(COURTESIES))? + 1;
    let closes = |token: &Token| token.word || matches!(token.raw.as_str(), "." | "!" | ")" | ",");
    if !tokens[end..].iter().all(closes) {
        return None;
    }
    let begins = |at: &usize| {
        let token = &tokens[*at];
        token.is(BUT) || token.is_and() || matches!(token.raw.as_str(), "," | "(")
    };
    (1..end).filter(begins).rev().find_map(|at| {
        let mark = at.checked_sub(1).filter(|mark| tokens[*mark].raw == ",").unwrap_or(at);
        let said = &tokens[..mark];
        let joined = usize::from(tokens[at].word);
        let part: Vec<&Token> = tokens[at + joined..end]
            .iter()
            .filter(|token| token.word && !token.is(STRESS) && !token.is(BUT))
            .collect();
        let left = LeftOut { said, contrasts: joined == 1, is_nobodys: &is_nobodys };
        // "From 8 to 10 February but not the 9th": days are read with their exceptions.
        let may_be_day = has_days(request) && part.iter().any(|word| word.digit() && word.norm.len() < 3);
        let is_left_out = !may_be_day && said.iter().any(|token| token.word) && left.is_named_by(&part);
        is_left_out.then(|| {
            let tail = request.get(tokens[end - 1].end..).unwrap_or_default().replace(')', "");
            format!("{}{tail}", request.get(..tokens[mark].start).unwrap_or_default().trim_end())
        })
    })
}

/// What the end of a request may leave out.
struct LeftOut<'a> {
    /// The request before it.
    said: &'a [Token],
    /// Whether a word joins it to the request, and not only a comma.
    contrasts: bool,
    /// See [`without_exclusion`].
    is_nobodys: &'a dyn Fn(&Token) -> bool,
}

impl LeftOut<'_> {
    /// Whether words leave out what they name: "not 120", "il 120 no", "leave 120 alone", "120 stays open", "la 120 déjala".
    fn is_named_by(&self, words: &[&Token]) -> bool {
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
        if words.len() > MAX_WORDS {
            return false;
        }
        // After a comma, "no" before a value corrects what precedes it.
        if first.is(NOT) && (self.contrasts || !first.is(&["no"])) && self.is_value(&words[1..]) {
            return true;
        }
        if self.contrasts && first.is(NO) && self.is_noun(&words[1..]) {
            return true;
        }
        if last.is(NOT) && self.is_value(&words[..words.len() - 1]) {
            return true;
        }
        if first.among(LEAVE) {
            let own = &words[1..];
            let begin = own.iter().take_while(|word| word.among(AS_IT_IS)).count();
            let end = own.iter().rposition(|word| !word.among(AS_IT_IS)).map_or(begin, |at| at + 1);
            let says_how = begin > 0 || end < own.len();
            return (says_how || (self.is_nobodys)(first)) && self.is_value(&own[begin..end]);
        }
        let stays = |at: usize| words[at].among(STAY) || words[at].is(MUST) || words[at].among(LEAVE_IT);
        let Some(at) = (1..words.len()).find(|at| stays(*at)) else { return false };
        let rest = words[at..].iter().skip_while(|word| word.is(MUST));
        let rest: Vec<&&Token> = rest.collect();
        let is_left =
            rest.first().is_some_and(|verb| verb.among(LEAVE_IT) || verb.among(STAY) && rest.len() > 1);
        is_left && rest[1..].iter().all(|word| word.among(AS_IT_IS)) && self.is_value(&words[..at])
    }

    /// Whether words are no more than a new value, with a noun before it, or a new thing: "il 120", "the bay C7", "Omar", "the milk
    /// jug".
    fn is_value(&self, words: &[&Token]) -> bool {
        let own: Vec<&Token> = words.iter().copied().skip_while(|word| word.is(LEADS)).collect();
        let Some((value, nouns)) = own.split_last() else { return false };
        let is_said = |word: &Token| self.said.iter().any(|token| token.norm == word.norm);
        let is_plain = |word: &&Token| {
            (!is_verb(word) || is_said(word)) && !lexicon::is_stop_word(&word.norm) && !word.digit()
        };
        if is_number(value) || value.capital() && !lexicon::is_stop_word(&value.norm) {
            return nouns.len() <= 1
                && nouns.iter().all(is_plain)
                && !own.iter().any(|word| is_day(word))
                && self.is_new(words);
        }
        words.first().is_some_and(|lead| lead.is(ARTICLES)) && self.is_noun(&own)
    }

    /// Whether words are no more than a noun that the request does not have, with what describes it.
    fn is_noun(&self, words: &[&Token]) -> bool {
        let is_plain = |word: &&Token| {
            !is_verb(word)
                && !lexicon::is_stop_word(&word.norm)
                && !lexicon::is_pleasantry(&word.norm)
                && !word.digit()
                && !word.capital()
                && !word.is(SHADE)
                && !is_day(word)
                && !self.said.iter().any(|token| token.features().similarity(&word.features()) > SAME)
        };
        (1..=2).contains(&words.len()) && words.iter().all(is_plain)
    }

    /// Whether the request before does not name the value, and has another one of its kind.
    fn is_new(&self, part: &[&Token]) -> bool {
        let is_value = |word: &Token| is_number(word) || word.capital() && !lexicon::is_stop_word(&word.norm);
        part.iter().filter(|word| is_value(word)).all(|word| {
            let is_like = |token: &Token| {
                token.word && is_number(token) == is_number(word) && is_value(token) && !token.first
            };
            !self.said.iter().any(|token| token.norm == word.norm) && self.said.iter().any(is_like)
        })
    }
}

fn is_number(word: &Token) -> bool {
    word.digit() || number_words::spoken(&word.norm).is_some()
}

/// From this similarity on, two words mean the same.
const SAME: f64 = 0.8;

/// Whether a word belongs to a day or a time, which are read with their exceptions.
fn is_day(word: &Token) -> bool {
    (mood::is_date_token(word) && !word.digit())
        || lexicon::is_time_unit(&word.norm)
        || word.raw.contains(['/', '.', ':'])
}

fn has_days(request: &str) -> bool {
    !Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1)).days.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_that_is_left_out_is_no_part_of_the_request() {
        for (said, own) in [
            ("Close ticket 131 but not 120", "Close ticket 131"),
            ("Close ticket 131, not 120.", "Close ticket 131."),
            ("Close 131 but definitely not ticket 120", "Close 131"),
            ("Chiudi il ticket 131, il 120 no", "Chiudi il ticket 131"),
            ("Blocca la baia B3 ma non la C7", "Blocca la baia B3"),
            ("Ferme le ticket 131 mais pas le 120", "Ferme le ticket 131"),
            ("Bloque la travée B3, mais surtout pas la C7", "Bloque la travée B3"),
            ("Schließe Ticket 131, aber nicht 120", "Schließe Ticket 131"),
            ("Sperre Platz B3, C7 aber nicht", "Sperre Platz B3"),
            ("Cierra la incidencia 131 pero no la 120", "Cierra la incidencia 131"),
            ("Assign ticket 131 to Omar, not to Laura", "Assign ticket 131 to Omar"),
            ("close 131 but leave 120 alone pls", "close 131 pls"),
            ("Close ticket 131 (not 120).", "Close ticket 131."),
            ("Close ticket 131 and keep 120 open", "Close ticket 131"),
            ("Close 131, ignore 120", "Close 131"),
            ("Cancel request 3 but keep request 4", "Cancel request 3"),
            ("Block bay B3, but C7 must stay free", "Block bay B3"),
            ("Sell two teapots, not three", "Sell two teapots"),
            ("Sell two teapots, leave the milk jugs", "Sell two teapots"),
            ("Sell two teapots but no milk jug", "Sell two teapots"),
            ("Vendi due teiere, la lattiera invece no", "Vendi due teiere"),
            ("Vendi due teiere e lascia stare la lattiera", "Vendi due teiere"),
            ("Chiudi il ticket 131, il 120 lascialo stare", "Chiudi il ticket 131"),
            ("Chiudi il ticket 131, il 120 resta aperto", "Chiudi il ticket 131"),
            ("Blocca la baia B3, la C7 va bene così", "Blocca la baia B3"),
            ("Schließe Ticket 131 und lass 120 offen", "Schließe Ticket 131"),
            ("Schließe Ticket 131 und nicht 120", "Schließe Ticket 131"),
            ("Sperre Platz B3, C7 bleibt frei", "Sperre Platz B3"),
            ("Ferme le ticket 131 et laisse le 120 tranquille", "Ferme le ticket 131"),
            ("Cierra la incidencia 131 y deja la 120 en paz", "Cierra la incidencia 131"),
            ("Cierra la incidencia 131, la 120 déjala", "Cierra la incidencia 131"),
        ] {
            assert_eq!(without_exclusion(said, |_| true).as_deref(), Some(own), "{said}");
        }
    }

    #[test]
    fn what_may_mean_more_stays() {
        for said in [
            "Close ticket 131",
            "Close ticket 131, not yet",
            "Close ticket 131, not now",
            "Close tickets 120, 131 and 133, well, not 133",
            "Close ticket 131 but not before Laura agrees",
            "Close ticket 131 but don't close 120",
            "Cierra la 120, no la 131",
            "Cierra la 120, no, la 131",
            "Ship order 5512 on 3 December, not on 4 December",
            "Richiedi ferie dall'8 al 10 febbraio ma non il 9",
            "Did you close ticket 131 but not 120?",
            "Close it but not 120",
            "Annulla la richiesta 1, no",
            "Lend \"Love, not 5\" to Ada",
            "Not 120",
            "Assign 131 to Omar and leave 120 with Laura",
            "Close ticket 131 and leave a note",
            "Close the door and leave the light on",
            "Sell two teapots but no more",
            "Sell two teapots but not today",
            "Sell two teapots and keep two teapots",
            "",
        ] {
            assert_eq!(without_exclusion(said, |_| true), None, "{said}");
        }
        // Some tool skips tracks.
        assert_eq!(without_exclusion("Play track 3 and skip track 4", |_| false), None);
    }
}
