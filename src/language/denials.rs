//! Denials and reports of failure in a text, and what an answer says of an act.

use std::ops::Range;
use std::sync::LazyLock;

use super::text::{self, Token};

/// Words that deny, in English, Italian, French, German and Spanish.
const DENIALS: &str = "not no never without none nothing nor t cannot only already instead unable unfortunately sorry \
however but non mai senza nessun nessuno nessuna niente nulla gia solo purtroppo invece pero ma pas jamais sans rien \
deja mais malheureusement desole nicht nichts kein keine keinen nie ohne bereits leider aber nunca sin nada ya \
lamentablemente";

/// Beginnings of words that tell of a failure or a refusal, in the same languages.
const FAILURES: &str = "fail refus reject declin denied error problem impossib unavail conflict overlap rifiut respin \
fallit fallisc errore impossibil spiacent dispiac sovrappo echou echec erreur abgelehnt fehler fehlgeschlagen gescheitert \
unmoglich rechaz fallo imposib lament";

static FAILURE_BEGINNINGS: LazyLock<Vec<&str>> = LazyLock::new(|| FAILURES.split_whitespace().collect());

/// Words of [`DENIALS`] that say nothing about whether an act was done: "already", "only", "however".
const NEUTRAL: &str = "only already instead however but gia solo invece pero ma deja mais bereits aber ya";

/// What ends a clause, beside the beginning of another sentence.
const CLAUSE_ENDS: [&str; 14] = [".", "!", "?", ";", ":", ",", "\n", "—", "–", "(", ")", "…", "¡", "¿"];

/// Words that join clauses.
const JOINS: &str = "and but e ed ma pero et mais und aber y";

const SENTENCE_ENDS: [&str; 5] = [".", "!", "?", "\n", "…"];

/// Forms of auxiliary verbs in which a finished act is told, in the same languages. What follows is not read, so that
/// irregular participles need no list.
const PERFECT: &str = "have has had ve been was were ho abbiamo ha hanno stato stata stati state habe haben hat wurde wurden \
avons ete hemos sido";

/// Words that say by themselves that something is done.
const DONE: &str = "done completed handled sorted confirmed arranged scheduled fatto fatta eseguito eseguita completato \
completata confermato confermata sistemato sistemata erledigt fait hecho";

/// What may follow "I" and "we" where no act is told.
const MODALS: &str = "am are m re can could will ll would d shall should may might must need do did see think understand want wish \
hope know apologise apologize";

/// Answers that deny no act although they have a word that denies.
const COURTESIES: [&[&str]; 5] = [
    &["no", "problem"],
    &["no", "problems"],
    &["no", "worries"],
    &["nessun", "problema"],
    &["non", "c", "e", "problema"],
];

/// Returns whether some word denies something or says that something failed; what is denied is not read. The "no." before a
/// number is no such word.
pub(crate) fn denies(text: &str) -> bool {
    let tokens = text::tokens(text);
    has_denial(&tokens, 0..tokens.len(), |_| true)
}

/// Whether some word in a part of a text that `counts` denies something or says that something failed.
fn has_denial(tokens: &[Token], part: Range<usize>, counts: impl Fn(&Token) -> bool) -> bool {
    let is_number = |at: usize| {
        let next = tokens.iter().skip(at + 1).find(|token| token.word);
        next.is_some_and(Token::digit)
    };
    let words = tokens.iter().enumerate().take(part.end).skip(part.start);
    words.filter(|(_, token)| token.word && counts(token)).any(|(at, token)| {
        let denies = token.among(DENIALS) && !(token.is(&["no"]) && is_number(at));
        denies || FAILURE_BEGINNINGS.iter().any(|begins| token.norm.starts_with(begins))
    })
}

/// The report of an answer about an act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ActReport {
    /// Some clause says that something was done.
    pub(crate) claims: bool,
    /// Some clause says that something was not done, or failed.
    pub(crate) denies: bool,
    /// Nothing but questions is said.
    pub(crate) only_asks: bool,
}

impl ActReport {
    /// Reads an answer, clause by clause. `names` tells whether words name the act. What follows a denial in its sentence is
    /// the reason and claims nothing, unless the speaker tells an act of their own.
    pub(crate) fn of(answer: &str, names: impl Fn(&str) -> bool) -> Self {
        let tokens = text::tokens(answer);
        let ends = sentence_ends(&tokens);
        let mut report = Self { only_asks: true, ..Self::default() };
        let (mut is_denied, mut sentence) = (false, None);
        for (first, after) in clauses(&tokens) {
            let clause = &tokens[first..after];
            let words: Vec<&Token> = clause.iter().filter(|token| token.word).collect();
            let mark = |at: usize| tokens.get(at).map(|token| token.raw.as_str());
            let end_of_sentence = ends.get(after).copied().flatten();
            // A denial holds until the end of its sentence.
            is_denied &= std::mem::replace(&mut sentence, end_of_sentence) == end_of_sentence;
            report.only_asks &= end_of_sentence.and_then(mark) == Some("?");
            if mark(after) != Some("?") && !is_courtesy(&words) {
                let denies = has_denial(&tokens, first..after, |token| !token.among(NEUTRAL));
                is_denied |= denies;
                let spoken = text::span(answer, &tokens, first, after - 1);
                let tells = || tells_an_act(&words) || names(spoken);
                report.claims |= !denies && (tells_own_act(&words) || (!is_denied && tells()));
                report.denies |= denies;
            }
        }
        report
    }

    /// Returns whether it says that the act was not done, and nowhere that it was.
    pub(crate) fn is_denied(self) -> bool {
        self.denies && !self.claims
    }
}

/// For each token, the end of its sentence; none if the text ends before.
fn sentence_ends(tokens: &[Token]) -> Vec<Option<usize>> {
    let mut ends = vec![None; tokens.len()];
    let mut next = None;
    // From the end, since an answer may have as many clauses as words.
    for (at, token) in tokens.iter().enumerate().rev() {
        if SENTENCE_ENDS.contains(&token.raw.as_str()) {
            next = Some(at);
        }
        ends[at] = next;
    }
    ends
}

/// The clauses of a text that have words: the first token of each, and the one after its last.
fn clauses(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut clauses = Vec::new();
    let mut first = 0;
    for at in 0..=tokens.len() {
        let ends = tokens.get(at).is_none_or(|token| {
            let joins = token.among(JOINS) && tokens.get(at + 1).is_some_and(opens_clause);
            CLAUSE_ENDS.contains(&token.raw.as_str()) || joins
        });
        if !ends {
            continue;
        }
        if tokens[first..at].iter().any(|token| token.word) {
            clauses.push((first, at));
        }
        first = at + 1;
    }
    clauses
}

/// Whether a word after "and" begins a clause of its own.
fn opens_clause(token: &Token) -> bool {
    token.among(PERFECT)
        || token.raw == "I"
        || token.is(&["we", "it", "you", "your", "ich", "wir", "je", "nous", "yo"])
}

/// Whether the words of a clause deny no act although one of them denies: "no problem".
fn is_courtesy(words: &[&Token]) -> bool {
    COURTESIES.iter().any(|courtesy| {
        words.len() == courtesy.len()
            && words.iter().zip(courtesy.iter()).all(|(word, said)| word.norm == *said)
    })
}

/// Whether the words of a clause tell what the speaker did: "I" or "we" with a verb of its own, "ho …", or a word for "done".
fn tells_own_act(words: &[&Token]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let speaks = word.raw == "I" || word.is(&["we"]);
        let next = words.get(at + 1);
        word.among(DONE)
            || (speaks && next.is_some_and(|next| !next.among(MODALS)))
            || (next.is_some_and(|next| !next.digit())
                && word.is(&["ho", "abbiamo", "habe", "haben", "avons", "hemos"]))
    })
}

/// Whether the words of a clause tell a finished act: an auxiliary verb before something else than a number ("you have 5 euros").
fn tells_an_act(words: &[&Token]) -> bool {
    words.windows(2).any(|pair| pair[0].among(PERFECT) && !pair[1].digit())
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

    #[test]
    fn answer_claims_an_act_in_any_verb_and_denies_it_only_where_nothing_is_claimed() {
        let report = |answer: &str| ActReport::of(answer, |words| words.contains("transfer"));
        for claimed in [
            "I have sent 50 euros to Bob.",
            "I've gone ahead and sent it.",
            "It's done.",
            "All done. No problem!",
            "Sorry for the wait, I have already sent it.",
            "Fatto!",
            "Submitted as request no. 41, the transfer is on its way.",
            "Ho prenotato la sala, ma non ho trovato il meteo.",
            "La sala è stata presa.",
            "Unfortunately I could not tell the weather. We put the room aside.",
            "Your transfer is on its way, but Anna has to approve it. Anything else?",
        ] {
            assert!(report(claimed).claims && !report(claimed).is_denied(), "{claimed}");
        }
        for denied in [
            "The account of Bob is closed: nothing was sent.",
            "I could not send it.",
            "Non ho prenotato nulla.",
            "The transfer failed. You have 5 euros left.",
            "The transfer failed. Shall I try again?",
            "I could not send it, as the account has been closed.",
            "Non è stato possibile: il conto è stato chiuso.",
            "Unfortunately, that is not possible.",
        ] {
            assert!(report(denied).is_denied() && !report(denied).claims, "{denied}");
        }
        for neither in ["Sure thing.", "No problem!", "There is a request for these days already."] {
            let report = report(neither);
            assert!(!report.claims && !report.denies && !report.only_asks, "{neither}");
        }
        assert!(report("Which account, and how much?").only_asks);
        assert!(!report("Have you sent it?").claims);
    }
}
