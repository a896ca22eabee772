//! Whether a text only asks for something by itself: each clause is a plain request or question, and none needs the
//! conversation. And whether it forbids an action, or only asks about it.

use super::speech::{self, Act};
use super::{lexicon, pronouns, text};
use crate::language;

/// What a text asks for, if it does nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainAsk {
    /// Every clause is a request for an action.
    Request,
    /// Some clause is a question.
    Question,
}

/// Words that refer to something said before, apart from [`lexicon::BACK_REFERENCES`].
const REFERENCES: &str = "this these he she him her his they their its one ones another other others else also too again instead more \
questo questa questi queste lui lei loro esso essa essi suo sua suoi sue altro altra altri altre anche ancora invece nuovo pure stesso \
dies diese dieser dieses es ihn ihm ihr sie auch wieder noch stattdessen andere anderen celui celle ceux ca cela ce lui leur aussi encore \
autre autres eso esto ese esa aquel otro otra otros tambien nuevamente le les";

/// Words that join clauses.
const JOINING: &[&str] =
    &["and", "then", "but", "or", "e", "ed", "poi", "ma", "o", "und", "dann", "et", "puis", "y", "luego"];

/// What `text` asks for; `None` where some clause does something else, such as forbidding, reporting, quoting or making
/// a condition, or where the text refers to what was said before.
pub(crate) fn plain_ask(text: &str) -> Option<PlainAsk> {
    let tokens = text::tokens(text);
    let quoted = speech::quoted(&tokens);
    let said = || tokens.iter().zip(&quoted).filter(|(token, quoted)| token.word && !**quoted);
    let refers = |token: &text::Token| {
        token.is(lexicon::BACK_REFERENCES)
            || token.is(lexicon::VAGUE_NOUNS)
            || token.among(REFERENCES)
            || (!token.capital() && pronouns::is_suffixed(&token.norm))
    };
    if said().any(|(token, _)| refers(token)) || pronouns::hands_back(&tokens) {
        return None;
    }
    let speech = speech::analyse(&tokens, &quoted);
    let is_whole = speech.runs.iter().all(|run| run.plain) && !speech.dropped.contains(&true);
    let mut asked = PlainAsk::Request;
    for act in speech.acts_of_tokens() {
        match act {
            Act::Request => {}
            Act::Question => asked = PlainAsk::Question,
            _ => return None,
        }
    }
    (is_whole && said().next().is_some()).then_some(asked)
}

/// The clauses of `text` that plainly ask for an action. One that gives a message for somebody is an order if nothing comes
/// before it: "Send a message to Ada".
pub(crate) fn requested_clauses(text: &str) -> Vec<String> {
    let tokens = text::tokens(text);
    let speech = speech::analyse(&tokens, &speech::quoted(&tokens));
    let requests = speech.clauses().into_iter().enumerate().filter(|(nth, (_, _, act, explicit))| {
        *explicit && (*act == Act::Request || (*nth == 0 && *act == Act::Quoted))
    });
    requests.map(|(_, (first, last, ..))| text::span(text, &tokens, first, last).to_owned()).collect()
}

/// The [`requested_clauses`] of `text`, cut at words that join clauses.
pub(crate) fn requested_parts(text: &str) -> Vec<String> {
    let parts_of = |clause: String| -> Vec<String> {
        let tokens = text::tokens(&clause);
        let parts = tokens.split(|token| token.is(JOINING)).filter_map(|part| {
            let (first, last) = (part.first()?, part.last()?);
            clause.get(first.start..last.end).map(str::to_owned)
        });
        parts.collect()
    };
    requested_clauses(text).into_iter().flat_map(parts_of).collect()
}

/// Whether a text only asks to be told something: it is a question, or an order to tell, show or look something up, and nothing
/// is joined to it, which might be another order in words that the rules do not know.
pub(crate) fn only_asks_to_be_told(text: &str) -> bool {
    let tokens = text::tokens(text);
    let speech = speech::analyse(&tokens, &speech::quoted(&tokens));
    // The rules read questions, and polite requests in their form, in these languages only.
    let reads_questions = || matches!(language::detect(text), Some("en" | "it"));
    let clauses = speech.clauses();
    let joins = |token: &text::Token| {
        token.is(JOINING) || matches!(token.raw.as_str(), "," | ";" | ":" | "." | "!" | "?" | "\n")
    };
    let last_word = tokens.iter().rposition(|token| token.word).unwrap_or_default();
    // "Do the same for 120" opens as a question does.
    let repeats =
        |token: &text::Token| token.is(&["same", "stesso", "stessa", "gleiche", "dasselbe", "meme", "mismo"]);
    // "Not the red one but the blue one": the verb of one clause serves the next.
    !clauses.is_empty()
        && !tokens.iter().take(last_word).any(|token| joins(token) || repeats(token))
        && speech.runs.iter().all(|run| run.verb.is_none())
        && clauses.into_iter().all(|(first, last, act, _)| match act {
            Act::Question => reads_questions(),
            Act::Request => language::asks_to_be_told(text::span(text, &tokens, first, last)),
            _ => false,
        })
}

/// How a text speaks of an action that it does not ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// It forbids the action: "do not book the room".
    Forbidden,
    /// It asks about the action: "can I book the room?".
    Question,
}

/// How `text` speaks of an action, if it names the action (`names`, given a clause) and no clause may ask for it. A
/// clause that names it in any other way than by forbidding it or by a question may ask for it.
pub(crate) fn unasked(text: &str, names: impl Fn(&str) -> bool) -> Option<Unasked> {
    let tokens = text::tokens(text);
    let speech = speech::analyse(&tokens, &speech::quoted(&tokens));
    if speech.runs.iter().any(|run| run.verb.is_some()) {
        // "Not the red one but the blue one": the verb of one clause serves the next.
        return None;
    }
    let (mut forbids, mut questions, mut orders) = (false, false, false);
    for (first, last, act, explicit) in speech.clauses() {
        orders |= act == Act::Request && explicit;
        if !names(text::span(text, &tokens, first, last)) {
            continue;
        }
        match act {
            Act::Negated => forbids = true,
            Act::Question => questions = true,
            _ => return None,
        }
    }
    match (forbids, questions && !orders) {
        (true, _) => Some(Unasked::Forbidden),
        (false, true) => Some(Unasked::Question),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_for_somebody_is_requested_and_what_it_says_is_not() {
        for said in ["Send a message to Mario", "Send a message to Mario: cancel order 7"] {
            let clauses = requested_clauses(said);
            assert_eq!(clauses.len(), 1, "{clauses:?}");
            assert_eq!(language::asked_verb(&clauses[0]).as_deref(), Some("send"));
        }
        assert!(requested_clauses("How are you? He wrote: cancel order 7").is_empty());
    }

    #[test]
    fn text_that_only_asks_to_be_told_something_asks_for_no_action() {
        for said in [
            "Read message 7",
            "Please show me message 7",
            "What does message 7 say?",
            "Find message 7",
            "Leggi il messaggio 7",
            "Cosa dice il messaggio 7?",
            "What is the weather in Milan?",
        ] {
            assert!(only_asks_to_be_told(said), "{said}");
        }
        for said in [
            "Delete message 7",
            "Read message 7 and archive it",
            "Read message 7, archive it",
            "Read message 7. Archive it.",
            "Which rooms are free? Take the blue one",
            "Can you book the blue room?",
            "Could you please order two teapots?",
            "Potresti prenotare la sala blu?",
            "I need Friday off",
            "Vorrei venerd\u{ec} libero",
            "Do the same for 120",
            "Message 7",
            "Yes",
            "",
        ] {
            assert!(!only_asks_to_be_told(said), "{said}");
        }
    }

    #[test]
    fn action_that_a_text_does_not_ask_for_is_forbidden_or_a_question() {
        let vacation = |said: &str| {
            unasked(said, |clause| {
                let about = ["Requests vacation for given days.", "Ask for a day off"];
                crate::language::names_action(clause, "MakeRequest", about.into_iter())
            })
        };
        for said in [
            "Do not request vacation on 30 July",
            "What is the weather in Milan? Please don't request vacation on 30 July.",
            "Non richiedere ferie il 30 luglio",
            "Tell me the weather, and never request vacation for me",
        ] {
            assert_eq!(vacation(said), Some(Unasked::Forbidden), "{said}");
        }
        for said in [
            "Can I request vacation on 31 July?",
            "Hello! Is it possible to request vacation from 15 to 17 June?",
            "Posso richiedere ferie il 31 luglio?",
        ] {
            assert_eq!(vacation(said), Some(Unasked::Question), "{said}");
        }
        for said in [
            "Request vacation on 30 July",
            "Can you request vacation on 31 July?",
            "Don't forget to request vacation from 15 to 17 June",
            "I don't want to work on 30 July, so request vacation for that day",
            "Request vacation on 30 July, not on 31 July",
            "Don't request the 30th, but request the 31st",
            "How many vacation days do I have? Then ask for vacation from 15 to 17 June",
            "Non voglio lavorare il 30 luglio: richiedi ferie",
            "Quanti giorni di ferie ho? Poi chiedi ferie dal 15 al 17 giugno e dimmi quanti me ne restano",
            "Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie dal 15 al 17 giugno",
            "What is the weather in Milan, and then ask for three days off from 15 to 17 June",
            "If it rains in Milan, request vacation on 30 July",
            "Can I take that day off? If so, request it",
            "Milan on Friday",
            "",
        ] {
            assert_eq!(vacation(said), None, "{said}");
        }
    }

    #[test]
    fn only_plain_requests_and_questions_are_asks() {
        for said in [
            "Show the weather in Milan tomorrow",
            "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno",
            "Mostrami il meteo a Milano e poi richiedi ferie dal 15 al 17 giugno",
            "Book a desk in room 12 for Friday",
        ] {
            assert_eq!(plain_ask(said), Some(PlainAsk::Request), "{said}");
        }
        for said in
            ["What is the weather in Milan?", "Che tempo fa a Roma?", "Can I take vacation on 9 July?"]
        {
            assert_eq!(plain_ask(said), Some(PlainAsk::Question), "{said}");
        }
        for said in [
            "Don't book a desk for Friday",
            "Non prenotare la sala per domani",
            "If it rains, cancel order 7",
            "Cancel order 7 if it rains",
            "Se piove annulla l'ordine 7",
            "Tell Marco that the meeting is cancelled",
            "Book it",
            "Cancel that order",
            "Potresti prenotarlo per domani",
            "Do the same for Rome",
            "Cancel the other order",
            "Yesterday I booked a desk for Friday",
            "",
        ] {
            assert_eq!(plain_ask(said), None, "{said}");
        }
    }
}
