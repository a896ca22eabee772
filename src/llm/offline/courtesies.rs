//! Words around a request that only press it or make it polite, and that could be taken for a condition, a refusal or a value:
//! "without delay", "no problem, …", "you need to …". They are left out before a request is planned, where nothing else can be
//! meant by them; elsewhere they stay, and what they leave open is asked about.

use std::ops::Range;

use super::corrections::with_corrections;
use super::exclusions::without_exclusion;
use super::pattern::{Patterns, any, is_infinitive, is_verb, patterns, strip_fillers};
use super::speech;
use super::text::{self, Token};

/// What opens a request before a comma or a colon.
static OPENINGS: &Patterns = patterns![
    "no problem/problems/problema/worries/rush",
    "not a problem",
    "nessun/nessuna problema/fretta",
    "if you don t mind",
    "if you would/do not mind",
    "se non ti/vi/le dispiace/secca/scoccia",
    "si ca ne te/vous derange/gene pas",
    "wenn es dir/euch/ihnen nichts ausmacht",
    "wenn es dir/euch/ihnen recht ist",
    "si no te/le/os importa/molesta",
    "quick/small one/request/thing",
    "facciamo cosi",
    "facciamo una cosa",
    "fai/fa cosi",
    "pls/plz",
];

/// What opens a request without a mark after it.
static PLEASE: &Patterns = patterns!["pls/plz"];

/// What presses a request at its end.
static CLOSINGS: &Patterns = patterns![
    "without any? further/more? delay/delays/hesitation/fail/ado",
    "no matter what",
    "senza alcun/ulteriore/ulteriori? indugio/indugi/ritardo/ritardi/esitazione/esitazioni/esitare/indugiare",
    "sans attendre/tarder/delai/hesiter",
    "ohne verzug/verzogerung/zogern",
    "sin demora/tardanza/tardar/dudar",
];

/// Duties of the addressee, before the verb that is asked for.
static DUTIES: &Patterns = patterns![
    "you/u need/have/must/ve/got got? to?",
    "you/u should",
    "dovresti/dovreste/devi/dovete",
    "tu devrais/dois",
    "vous devriez/devez",
    "il faudrait/faut",
    "du solltest/sollst/musst",
    "sie sollten/mussen",
    "tu? deberias/debes",
    "usted? deberia/debe",
    "tienes que",
];

/// What is no act to ask for after [`DUTIES`]: "you must be …", "devi aver …".
const NO_ACTS: &[&str] = &[
    "have", "be", "aver", "avere", "esser", "essere", "sapere", "avoir", "etre", "savoir", "haber", "ser",
    "estar", "tener", "saber", "know", "see",
];

/// Words after which the end of a request may be words of a text of its own: a message, a note, a report.
const TELLING: &str = "that saying says say said message note report write tell text mail email subject reason comment \
che dicendo dice scrivi messaggio nota segnala riferisci testo oggetto motivo commento";

/// Words of who says or thinks something.
const SAYING: &str = "said says told tells wrote writes thinks thought according apparently supposedly \
ha hanno dice dicono detto disse scritto secondo pare sembra";

/// The request without such words; as it is if there are none.
pub(super) fn without_courtesies(request: &str) -> String {
    let corrected = with_corrections(request);
    let request = corrected.as_deref().unwrap_or(request);
    let limited = without_exclusion(request, |_| false);
    let request = limited.as_deref().unwrap_or(request);
    let tokens = text::tokens(request);
    let quoted = speech::quoted(&tokens);
    let words: Vec<(usize, &Token)> =
        tokens.iter().enumerate().filter(|(at, token)| token.word && !quoted[*at]).collect();
    let lead = opening(&tokens, &words);
    let mut kept = lead..tokens.last().map_or(0, |token| token.end);
    if let Some(closing) = closing(&tokens, &words).filter(|closing| closing.start > lead) {
        let mark = request.get(closing.end..kept.end).unwrap_or_default();
        let own = request.get(lead..closing.start).unwrap_or_default().trim_end_matches([' ', ',']);
        return format!("{own}{mark}");
    }
    if lead == 0 {
        kept = 0..request.len();
    }
    request.get(kept).unwrap_or(request).to_owned()
}

/// The byte at which the request begins after its opening.
fn opening(tokens: &[Token], words: &[(usize, &Token)]) -> usize {
    let said: Vec<&Token> = words.iter().map(|(_, token)| *token).collect();
    // A courtesy may follow a greeting.
    let own = strip_fillers(&said);
    let skipped = said.len() - own.len();
    let after = |count: usize| words.get(skipped + count).map(|(at, token)| (*at, token.start));
    let is_marked =
        |at: usize| tokens[..at].last().is_some_and(|mark| matches!(mark.raw.as_str(), "," | ":"));
    let marked = any(own, 0, OPENINGS).and_then(after).filter(|(at, _)| is_marked(*at));
    let plain = || any(own, 0, PLEASE).and_then(after);
    let duty = || {
        let count = any(own, 0, DUTIES).filter(|_| !tokens.iter().any(|token| token.raw == "?"))?;
        let verb = own.get(count).filter(|verb| !verb.is(NO_ACTS))?;
        // German verbs stand at the end: "du solltest Ticket 131 schließen".
        let is_german = own[0].is(&["du", "sie"]);
        let is_order = match own[count - 1].norm.as_str() {
            "to" | "must" | "should" => is_verb(verb),
            _ if is_german => own.last().is_some_and(|verb| is_foreign_infinitive(verb)),
            _ => is_verb(verb) && is_infinitive(&verb.norm) || is_foreign_infinitive(verb),
        };
        after(count).filter(|(at, _)| is_order && is_one_clause(&tokens[*at..]))
    };
    marked.or_else(plain).or_else(duty).map_or(0, |(_, start)| start)
}

/// Whether a word has the ending of a French, German or Spanish infinitive.
fn is_foreign_infinitive(token: &Token) -> bool {
    let ends = ["er", "ir", "re", "ar", "en", "ern", "eln"].iter().any(|end| token.norm.ends_with(end));
    token.norm.len() > 3 && ends && !token.is(NO_ACTS)
}

/// Whether nothing follows that may say whose words these are, or may be another clause: "you need to …, said Marco".
fn is_one_clause(tokens: &[Token]) -> bool {
    let last = tokens.iter().rposition(|token| token.word).unwrap_or_default();
    let is_plain =
        |token: &Token| token.word || matches!(token.raw.as_str(), "'" | "’" | "\"" | "“" | "”" | "«" | "»");
    tokens[..=last.min(tokens.len().saturating_sub(1))]
        .iter()
        .all(|token| is_plain(token) && !token.among(SAYING))
}

/// The bytes of what presses the request at its end.
fn closing(tokens: &[Token], words: &[(usize, &Token)]) -> Option<Range<usize>> {
    let said: Vec<&Token> = words.iter().map(|(_, token)| *token).collect();
    if tokens.iter().any(|token| token.raw == ":") || said.iter().any(|word| word.among(TELLING)) {
        return None;
    }
    let from = said.len().saturating_sub(6);
    let found = (from..said.len()).find(|at| any(&said, *at, CLOSINGS) == Some(said.len()))?;
    Some(said[found].start..said.last()?.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_only_press_a_request_are_left_out() {
        for (said, own) in [
            ("Lend the book Dune to Ada without delay", "Lend the book Dune to Ada"),
            (
                "Cancel my leave request number 5 without any further delay.",
                "Cancel my leave request number 5.",
            ),
            ("Cancel my leave request number 5, no matter what!", "Cancel my leave request number 5!"),
            (
                "Annulla la mia richiesta di ferie numero 5 senza indugio",
                "Annulla la mia richiesta di ferie numero 5",
            ),
            ("No problem, renew the loan of the book Dune", "renew the loan of the book Dune"),
            ("Not a problem: sell 3 espresso cups", "sell 3 espresso cups"),
            ("If you don't mind, take back the book Dune", "take back the book Dune"),
            ("Si no te importa, cierra la incidencia 131", "cierra la incidencia 131"),
            ("Si ça ne te dérange pas, ferme le ticket 131", "ferme le ticket 131"),
            ("Wenn es dir nichts ausmacht, sperre Platz B3", "sperre Platz B3"),
            ("Quick one: take back 2 teapots", "take back 2 teapots"),
            ("pls add the city of Cuneo", "add the city of Cuneo"),
            ("Facciamo così: rifornisci 20 lattiere", "rifornisci 20 lattiere"),
            ("You need to take back 2 teapots", "take back 2 teapots"),
            ("Dovresti vendere 3 tazzine da caffè", "vendere 3 tazzine da caffè"),
            ("Hi, you need to cancel request 5", "cancel request 5"),
            ("You should cancel request 5", "cancel request 5"),
            ("Tu devrais annuler la demande 5", "annuler la demande 5"),
            ("Vous devriez fermer le ticket 131", "fermer le ticket 131"),
            ("Il faudrait fermer le ticket 131", "fermer le ticket 131"),
            ("Du solltest Ticket 131 schließen", "Ticket 131 schließen"),
            ("Sie müssen den Antrag 5 stornieren", "den Antrag 5 stornieren"),
            ("Deberías cancelar la solicitud 5", "cancelar la solicitud 5"),
            ("Tienes que cerrar la incidencia 131", "cerrar la incidencia 131"),
        ] {
            assert_eq!(without_courtesies(said), own, "{said}");
        }
    }

    #[test]
    fn words_that_may_mean_something_stay() {
        for said in [
            "Sell 2 teapots",
            "No problem",
            "No, cancel request 5",
            "If you don't mind the rain, sell 2 teapots",
            "Cancel request 5 without telling Marco",
            "Tell Marco that I will come without delay",
            "Open a ticket: the parcel came without delay",
            "Sell 2 teapots without the lids",
            "You need to sell 3 cups?",
            "You don't need to sell 3 cups",
            "You needn't sell 3 cups",
            "You must not sell 3 cups",
            "You must have sold 3 cups",
            "You need to sell 3 cups, said Marco",
            "You need to sell 3 cups according to Marco",
            "Dovresti vendere 3 tazzine, dice Marco",
            "You have 3 cups",
            "You have to be careful",
            "Non dovresti vendere 3 tazzine",
            "Dovresti aver venduto 3 tazzine",
            "Devi sapere che Marco non c'è",
            "You should have sold 3 cups",
            "You should know the number",
            "You should not sell 3 cups",
            "Should you sell 3 cups?",
            "You should sell 3 cups, I think",
            "Tu devrais annuler la demande 5 ?",
            "Tu aurais dû annuler la demande 5",
            "Du solltest vorsichtig sein, Marco kommt",
            "Du hättest Ticket 131 schließen sollen",
            "Deberías haber cancelado la solicitud 5",
            "¿Deberías cancelar la solicitud 5?",
            "Lend the book \"No problem, sell it\" to Ada",
            "  ",
            "",
        ] {
            assert_eq!(without_courtesies(said), said, "{said}");
        }
    }
}
