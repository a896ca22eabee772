//! Requests in French, German and Spanish that only forbid something: "n'ajoute pas …", "füge … nicht hinzu", "no añadas …".
//! The clauses of these languages are not read, so a request is taken as forbidding as a whole or not at all: where it may ask
//! for anything besides, its writes stay in doubt and are asked about.

use super::super::clauses::ends_sentence;
use crate::llm::offline::lexicon;
use crate::llm::offline::pattern::{Patterns, any, patterns};
use crate::llm::offline::text::Token;

/// The most tokens of such a request.
const MAX_TOKENS: usize = 60;

/// What may stand before the verb, and courtesies between commas.
const LEADS: &str = "s il te vous plait svp merci bonjour salut surtout stp non bitte danke hallo nein por favor porfa hola gracias \
oye ok please";

/// Words that join, contrast, limit or condition: what they govern may be wanted.
const JOINS: &str = "mais et ou puis ensuite sinon alors plutot seulement que si quand avant sauf sans apres \
aber und oder sondern dann danach sonst wenn falls nur als erst stattdessen lieber weniger bevor damit sobald ohne \
pero y o e u sino luego despues entonces solo solamente si cuando antes mientras hasta sin salvo excepto mas menos \
and or but then";

/// Verbs whose negation urges: "n'oublie pas de …", "vergiss nicht …", "no dudes en …".
const URGES: &str = "oublie oubliez oublier hesite hesitez hesiter tarde tardez manque manquez attends attendez perds perdez pourquoi \
vergiss vergessen vergesst zogere zogern zogert warte warten saume warum \
olvides olvide olviden olvidar dudes dude duden tardes tarde dejes deje dejen esperes espere pierdas demores porque";

/// Words that are no verb in the imperative at the beginning of a German sentence.
const NO_GERMAN_ORDER: &str = "ich wir er sie es man du ihr das die der den dem was wie wann wo wer warum wieso heute morgen gestern \
mein meine unser unsere ist sind war hat habe haben hast hatte kann kannst konnen konntest konnten mochte mochten wird wurde wurden soll sollte hier da dort";

/// German negations of an order.
const GERMAN_NOT: &[&str] = &["nicht", "nie", "niemals", "kein", "keine", "keinen", "keinem", "keiner"];

/// Separable prefixes of German verbs.
const GERMAN_PREFIXES: &[&str] = &[
    "hinzu", "ab", "an", "auf", "aus", "ein", "mit", "zuruck", "weg", "um", "vor", "zu", "durch", "fest",
    "her", "hin",
];

/// Pronouns before or after a verb in French and Spanish.
const FRENCH_CLITICS: &[&str] =
    &["l", "le", "la", "les", "en", "y", "me", "m", "te", "t", "nous", "vous", "lui", "leur"];
const SPANISH_CLITICS: &[&str] = &["me", "te", "lo", "la", "los", "las", "le", "les", "se", "nos"];

static FRENCH: &Patterns = patterns![
    "ne pas/jamais/plus *",
    "je/j/on/nous/tu/vous/il ne/n veux/veut/voulons/souhaite/souhaitons/desire/dois/devez/devons/doit/faut pas/plus/jamais *",
    "il n est pas/plus necessaire/utile/besoin de/d",
    "il est interdit/inutile de/d",
    "evite/evitez/eviter/arrete/arretez/cesse/cessez de/d",
    "inutile/interdit/interdiction de/d",
    "pas/plus besoin de/d",
    "jamais *",
    "je/on/nous refuse/refusons de/d",
    "je/on/nous te/vous demande/demandons/prie/prions de ne pas/plus/jamais",
    "je/on/nous prefere/preferons/prefererais ne pas",
    "on/nous a/avons decide de ne pas",
];

static SPANISH: &Patterns = patterns![
    "no quiero/queremos/deseo/deseamos/debes/debe/deben/necesito/necesitamos *",
    "no hay/tienes/tiene que *",
    "no hace falta *",
    "no es necesario/preciso *",
    "nunca/jamas/tampoco *",
    "de ningun/ninguna modo/manera",
    "en ningun caso",
    "evita/evite/eviten/evitar *",
    "deja/deje/dejen de *",
    "prohibido/prohibida *",
    "te/le/les/os? pido/pedimos/ruego que no *",
    "prefiero/preferimos/preferiria no *",
    "mejor no *",
    "he/hemos decidido no *",
    "nadie debe/deberia/puede *",
    "ni se te/le ocurra *",
];

/// German phrases before an infinitive that is not wanted, up to the comma.
static GERMAN_HEADS: &Patterns = patterns![
    "vermeide/vermeiden/unterlass/unterlasse/unterlassen sie? es",
    "hor/hore/horen sie? auf",
    "es ist nicht notig/notwendig/erforderlich",
    "es ist verboten/unnotig",
    "kein grund",
    "wag/wage/wagen sie? es nicht",
];

/// Joins of [`JOINS`] that are part of these phrases.
static OWN_JOINS: &Patterns = patterns![
    "no hay/tienes/tiene que",
    "te/le/les/os? pido/pedimos/ruego que",
    "no quiero/queremos que",
    "lieber nicht/kein/keine/keinen",
];

/// Whether a text is one sentence in one of these languages that forbids something and asks for nothing else.
pub(super) fn only_forbids(tokens: &[Token], quoted: &[bool]) -> bool {
    let Some(parts) = parts(tokens, quoted).filter(|_| tokens.len() <= MAX_TOKENS) else { return false };
    let Some((head, rest)) = parts.split_first() else { return false };
    let led = head.iter().take_while(|word| word.among(LEADS)).count();
    let own = &head[led..];
    // Alone, "no" is a reply and forbids nothing.
    if own.len() < 2 || own.iter().any(|word| word.among(URGES)) || is_joined(own) {
        return false;
    }
    // "Es ist nicht nötig, die Stadt hinzuzufügen, latitude 44.39"
    let is_whole = GERMAN_HEADS.ends(own, 0).any(|end| end == own.len());
    let (object, values) = rest.split_at(usize::from(is_whole).min(rest.len()));
    if !values.iter().all(|part| is_value(part)) {
        return false;
    }
    if is_whole {
        return object.iter().all(|part| has_zu_infinitive(part) && !is_joined(part)) && !object.is_empty();
    }
    forbids_in_french(own) || forbids_in_german(own) || forbids_in_spanish(own)
}

/// The words between the commas of the only sentence, without courtesies. `None` if there may be more than one sentence.
fn parts<'t>(tokens: &'t [Token], quoted: &[bool]) -> Option<Vec<Vec<&'t Token>>> {
    let mut parts: Vec<Vec<&Token>> = vec![Vec::new()];
    let is_said = |at: usize| quoted.get(at) != Some(&true);
    let last = tokens.iter().rposition(|token| token.word)?;
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| is_said(*at)) {
        if token.word {
            parts.last_mut()?.push(token);
            continue;
        }
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let is_ordinal = token.raw == "." && at < last && before.is_some_and(Token::digit);
        let is_apart = before.is_none_or(|before| before.end < token.start);
        match token.raw.as_str() {
            "?" | "¿" | ":" | "(" | ")" | "–" | "—" | "…" => return None,
            "-" if is_apart => return None,
            "," => parts.push(Vec::new()),
            _ if is_ordinal => {}
            _ if at < last && ends_sentence(tokens, at) => return None,
            _ => {}
        }
    }
    parts.retain(|part| part.iter().any(|word| !word.among(LEADS)));
    Some(parts)
}

/// Whether words between commas are no more than a value: "longitude 7.55".
fn is_value(part: &[&Token]) -> bool {
    let own: Vec<&Token> = part.iter().copied().filter(|word| !word.among(LEADS)).collect();
    let contrasts = is_joined(&own) || own.iter().any(|word| negates(word));
    own.len() <= 2 && own.last().is_some_and(|word| word.digit()) && !contrasts
}

/// Whether words end in a German infinitive with "zu": "zu stornieren", "hinzuzufügen".
fn has_zu_infinitive(part: &[&Token]) -> bool {
    let Some(last) = part.last().filter(|word| word.norm.len() > 4 && word.norm.ends_with('n')) else {
        return false;
    };
    let before = part.len().checked_sub(2).and_then(|at| part.get(at));
    before.is_some_and(|word| word.is(&["zu"])) || last.norm.get(2..).is_some_and(|end| end.contains("zu"))
}

fn negates(word: &Token) -> bool {
    word.is(&["pas", "no"]) || word.is(GERMAN_NOT)
}

/// Whether some word joins, contrasts or conditions, or two words negate.
fn is_joined(words: &[&Token]) -> bool {
    let own = any(words, 0, OWN_JOINS).unwrap_or(0);
    let is_name = |word: &Token| word.capital() && !word.first;
    words[own..].iter().any(|word| word.among(JOINS) && !is_name(word))
        || words.iter().filter(|word| negates(word)).count() > 1
}

/// "N'ajoute pas …", "ne l'annule pas", "demande pas de …".
fn forbids_in_french(words: &[&Token]) -> bool {
    if any(words, 0, FRENCH).is_some() {
        return true;
    }
    let is_not = |at: usize| {
        words.get(at).is_some_and(|word| word.is(&["pas", "jamais", "plus", "rien", "aucun", "aucune"]))
    };
    if words[0].is(&["ne", "n"]) {
        let clitics = words[1..].iter().take(2).take_while(|word| word.is(FRENCH_CLITICS)).count();
        return (0..=clitics).any(|clitics| words.get(clitics + 1).is_some() && is_not(clitics + 2));
    }
    let is_verb = words[0].norm.len() > 3 && !lexicon::is_stop_word(&words[0].norm);
    is_verb && words[1].is(&["pas"])
}

/// "Füge … nicht hinzu", "beantrage keinen Urlaub …", "… nicht stornieren".
fn forbids_in_german(words: &[&Token]) -> bool {
    let Some(not) = words.iter().position(|word| word.is(GERMAN_NOT)) else {
        return words[0].is(&["niemand"]) && any(words, 1, patterns!["darf/soll/sollte/muss"]).is_some();
    };
    let speaks = any(
        words,
        0,
        patterns![
            "ich/wir will/wollen/mochte/mochten/wunsche/brauche/brauchen",
            "du/sie/ihr/man/niemand sollst/sollen/sollt/soll/darfst/durfen/darf/musst/mussen/muss/brauchst/brauchen",
        ],
    );
    if speaks.is_some() {
        return true;
    }
    // "Drucker funktioniert nicht"
    let states = words[1].norm.len() > 3 && words[1].norm.ends_with('t') && not > 1;
    if words[0].among(NO_GERMAN_ORDER) || states {
        return false;
    }
    let rest = &words[not + 1..];
    let is_prefix = |word: &Token| word.is(GERMAN_PREFIXES);
    let is_infinitive = |word: &Token| word.norm.len() > 4 && word.norm.ends_with('n') && !word.capital();
    let closes = match rest {
        [] => true,
        [one] => is_prefix(one) || is_infinitive(one) || one.is(&["mehr"]),
        [one, two] => one.is(&["mehr"]) && (is_prefix(two) || is_infinitive(two)),
        _ => false,
    };
    // "Verkaufen Sie nicht …"
    let addressed = not == 2 && words[1].is(&["sie"]);
    not == 0 || not == 1 || addressed || closes
}

/// "No añadas …", "no canceles …", "no cancelar …".
fn forbids_in_spanish(words: &[&Token]) -> bool {
    if any(words, 0, SPANISH).is_some() {
        return true;
    }
    if !words[0].is(&["no"]) {
        return false;
    }
    let clitics = words[1..].iter().take_while(|word| word.is(SPANISH_CLITICS)).count();
    let Some(verb) = words.get(clitics + 1).filter(|verb| verb.norm.len() > 4 && !verb.capital()) else {
        return false;
    };
    let ends = |ends: &[&str]| ends.iter().any(|end| verb.norm.ends_with(end));
    let is_order = !ends(&["ies"]) && ends(&["es", "as", "ar", "er", "ir"]);
    // "No cancele …", not "no funciona la impresora".
    let is_action = || lexicon::may_be_action(&verb.features().concepts);
    any(words, 0, patterns!["no gracias/problem/problems/problemas/worries"]).is_none()
        && (is_order || ends(&["e", "a", "en", "an"]) && is_action())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::offline::speech::quoted;
    use crate::llm::offline::text;

    fn forbids(said: &str) -> bool {
        let tokens = text::tokens(said);
        only_forbids(&tokens, &quoted(&tokens))
    }

    #[test]
    fn request_that_only_forbids_is_read_in_french_german_and_spanish() {
        for said in [
            "N'ajoute pas la ville de Cuneo, latitude 44.39, longitude 7.55",
            "Ne annule pas ma demande de congés numéro 5",
            "Ne l'annule pas",
            "S'il te plaît, n'annule pas ma demande de congés numéro 5.",
            "Surtout ne vends pas 3 espresso cups !",
            "Demande pas de congés du 8 au 10 février",
            "Je ne veux pas renouveler le prêt du livre Dune",
            "Évite de demander des congés du 8 au 10 février",
            "Füge die Stadt Cuneo nicht hinzu, latitude 44.39, longitude 7.55",
            "Storniere meinen Urlaubsantrag Nummer 5 nicht",
            "Bitte beantrage keinen Urlaub vom 8. bis 10. Februar",
            "Stornieren Sie nicht meinen Urlaubsantrag Nummer 5",
            "Meinen Urlaubsantrag Nummer 5 nicht stornieren",
            "Ich möchte meinen Urlaubsantrag Nummer 5 nicht stornieren",
            "No añadas la ciudad de Cuneo, latitude 44.39, longitude 7.55",
            "Por favor, no canceles mi solicitud de vacaciones número 5",
            "No cancele mi solicitud de vacaciones número 5, por favor",
            "No hay que cancelar mi solicitud de vacaciones número 5",
            "Nunca prestes el libro Dune a Ada",
            "Te pido que no canceles mi solicitud de vacaciones número 5",
            "Es ist nicht nötig, die Stadt Cuneo hinzuzufügen, latitude 44.39, longitude 7.55",
            "Vermeide es, meinen Urlaubsantrag Nummer 5 zu stornieren",
            "Lieber nicht meinen Urlaubsantrag Nummer 5 stornieren",
        ] {
            assert!(forbids(said), "{said}");
        }
    }

    #[test]
    fn request_that_may_ask_for_something_is_no_prohibition() {
        for said in [
            "N'oublie pas d'ajouter la ville de Cuneo",
            "Ne tarde pas à annuler ma demande numéro 5",
            "N'ajoute pas Cuneo mais ajoute Milan",
            "N'ajoute pas Cuneo, ajoute Milan",
            "Ne vends que 3 espresso cups",
            "Pourquoi n'ajoutes-tu pas Cuneo ?",
            "Ajoute la ville de Cuneo",
            "Je ne peux pas venir lundi, demande un congé",
            "Vergiss nicht, Urlaub zu beantragen",
            "Verkaufe nicht 3 Tassen, sondern 2",
            "Verkaufe 2 Tassen, nicht 3",
            "Füge die Stadt Cuneo hinzu",
            "Storniere den Antrag nicht. Beantrage Urlaub.",
            "Heute kommt Marco nicht",
            "Es ist nicht nötig, verkaufe 3 Tassen",
            "N'ajoute pas Cuneo - ajoute Milan",
            "Frag nicht, verkaufe 3 espresso cups",
            "Drucker funktioniert nicht",
            "No funciona la impresora",
            "No olvides cancelar mi solicitud de vacaciones número 5",
            "No dudes en cancelar mi solicitud",
            "No canceles la 5 sino la 6",
            "¿No canceles mi solicitud?",
            "No puedo venir el lunes, solicita vacaciones",
            "No problem, sell 2 teapots",
            "No thanks",
            "Sell 2 teapots, not 3",
            "Non vendere 2 teiere ma vendi 3 tazze",
            "Vendi 2 teiere",
            "",
        ] {
            assert!(!forbids(said), "{said}");
        }
    }
}
