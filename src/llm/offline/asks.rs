//! Whether a text only asks for something by itself: each clause is a plain request or question, and none needs the
//! conversation.

use super::speech::{self, Act};
use super::{entities, lexicon, pronouns, text};

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

/// What `text` asks for; `None` where some clause does something else, such as forbidding, reporting, quoting or making
/// a condition, or where the text refers to what was said before.
pub(crate) fn plain_ask(text: &str) -> Option<PlainAsk> {
    let tokens = text::tokens(text);
    let mut quoted = vec![false; tokens.len()];
    for (first, last) in entities::quoted_spans(&tokens) {
        quoted[first..=last].fill(true);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
