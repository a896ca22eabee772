//! Whether a text denies something or says that something failed.

use super::text;

/// Words that deny, in English, Italian, French, German and Spanish.
const DENIALS: &str = "not no never without none nothing nor t cannot only already instead unable unfortunately sorry \
however but non mai senza nessun nessuno nessuna niente nulla gia solo purtroppo invece pero ma pas jamais sans rien \
deja mais malheureusement desole nicht nichts kein keine keinen nie ohne bereits leider aber nunca sin nada ya \
lamentablemente";

/// Beginnings of words that tell of a failure or a refusal, in the same languages.
const FAILURES: &str = "fail refus reject declin denied error problem impossib unavail conflict overlap rifiut respin \
fallit fallisc errore impossibil spiacent dispiac sovrappo echou echec erreur abgelehnt fehler fehlgeschlagen gescheitert \
unmoglich rechaz fallo imposib lament";

/// Whether some word denies something or says that something failed; what is denied is not read. The "no." before a number is no
/// such word.
pub(crate) fn denies(text: &str) -> bool {
    let tokens = text::tokens(text);
    let is_number = |at: usize| {
        let next = tokens.iter().skip(at + 1).find(|token| token.word);
        next.is_some_and(text::Token::digit)
    };
    tokens.iter().enumerate().filter(|(_, token)| token.word).any(|(at, token)| {
        let denies = token.among(DENIALS) && !(token.is(&["no"]) && is_number(at));
        denies || FAILURES.split_whitespace().any(|begins| token.norm.starts_with(begins))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_and_failures_are_told_from_plain_statements() {
        for told in [
            "I could not submit the request.",
            "It wasn't possible.",
            "There is already a request for these days.",
            "La richiesta è stata respinta.",
            "Non è stato possibile.",
            "Hai già una richiesta per questi giorni.",
            "La demande a été refusée.",
            "Das hat nicht geklappt.",
            "Ya existe una solicitud.",
            "No, these days overlap.",
        ] {
            assert!(denies(told), "{told}");
        }
        for plain in [
            "All done.",
            "I have submitted request no. 41 from 15 to 17 June.",
            "Fatto: ferie richieste dal 15 al 17 giugno, ne restano 23.",
            "Erledigt.",
            "",
        ] {
            assert!(!denies(plain), "{plain}");
        }
    }
}
