//! Classifies small talk, which no scene serves: greetings, thanks, "what can you do", and questions about
//! the conversation itself.

use super::lexicon;
use super::pattern::{Patterns, any, patterns, strip_fillers};
use super::speech;
use super::text::{self, Token};

/// The kind of small talk of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// "Ciao!"
    Greeting,
    /// "Grazie"
    Thanks,
    /// "Cosa sai fare?"
    Help,
    /// "Riassumimi quello che abbiamo discusso"
    Recap,
    /// "Lascia stare"
    Withdrawal,
    /// None of these.
    Other,
}

/// Classifies a request by its words alone.
pub(super) fn classify(request: &str) -> Talk {
    let tokens = text::tokens(request);
    let words = TalkWords(tokens.iter().filter(|t| t.word).map(|t| t.norm.as_str()).collect());
    match () {
        () if words.0.is_empty() => Talk::Other,
        () if words.asks_recap() => Talk::Recap,
        () if words.asks_capabilities() => Talk::Help,
        () if words.withdraws() || speech::only_takes_back(&tokens) => Talk::Withdrawal,
        () if words.are_polite() => {
            const THANKS: &[&str] =
                &["grazie", "thanks", "thank", "merci", "danke", "dank", "gracias", "obrigado", "thx", "ty"];
            if words.has(THANKS) { Talk::Thanks } else { Talk::Greeting }
        }
        () => Talk::Other,
    }
}

/// Orders to drop what a question is about that waits for a yes or a no.
static TAKES_BACK: &Patterns = patterns![
    "cancel/abort/drop/scrap/skip/undo it/that/this/them/everything/all",
    "cancel/drop/scrap/withdraw the/that/this/my request/order",
    "keep it/them/that/everything",
    "leave it/them/that alone/as? it? is?",
    "cancel/annulla/annule/anula",
    "annulla/cancella/ritira/scarta tutto/quella/quello/questa/questo/la/lo/le/li",
    "annulla/cancella/ritira la/questa/quella mia? richiesta/domanda",
    "annullala/annullalo/annullale/annullali/cancellala/cancellalo/scartala/scartalo",
    "tienila/tienilo/tienile/tienili/lasciala/lascialo/lasciale/lasciali",
    "tieni/lascia la/lo/le/li",
    "annule-la/annule-le/annule-les/annulez-la/annulez-le",
    "annule/annulez tout/ca/cela/la/le/les",
    "annule/annulez la/cette demande",
    "storniere/storniert es/sie/das/alles",
    "brich das/es/alles ab",
    "anulalo/anulala/cancelalo/cancelala/dejalo/dejala",
    "anula/cancela todo/eso/esto/lo/la",
    "anula/cancela la/esta solicitud",
];

/// Whether words take back what a question is about that waits for a yes or a no: "cancel that", "annullala". Without such a
/// question, they are about something that was done.
pub(super) fn takes_back_question(request: &str) -> bool {
    let tokens = text::tokens(request);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word && !lexicon::is_pleasantry(&t.norm)).collect();
    let own = strip_fillers(&words);
    let own = any(own, 0, patterns!["no/actually/anzi/wait/aspetta"]).map_or(own, |at| &own[at..]);
    TAKES_BACK.ends(own, 0).any(|end| end == own.len())
}

/// Whether a request is no more than a yes or a no.
pub(super) fn is_bare_consent(request: &str) -> bool {
    const CONSENT: [&str; 14] = [
        "yes", "no", "ok", "okay", "si", "oui", "non", "ja", "nein", "sure", "confermo", "confirm",
        "approvo", "approve",
    ];
    let tokens = text::tokens(request);
    let is_consent = |word: &str| CONSENT.contains(&word);
    let words = || tokens.iter().filter(|t| t.word).map(|t| t.norm.as_str());
    words().any(is_consent) && words().all(|word| is_consent(word) || lexicon::is_pleasantry(word))
}

/// The words of a request, without accents.
struct TalkWords<'a>(Vec<&'a str>);

impl TalkWords<'_> {
    fn has(&self, list: &[&str]) -> bool {
        self.0.iter().any(|w| list.contains(w))
    }

    /// Whether they are polite words and nothing else: "thanks a lot".
    fn are_polite(&self) -> bool {
        let is_lot = |at: usize| self.0[at] == "lot" && at > 0 && self.0[at - 1] == "a";
        self.0.iter().enumerate().all(|(at, word)| lexicon::is_pleasantry(word) || is_lot(at))
    }

    fn has_prefix(&self, list: &[&str]) -> bool {
        self.0.iter().any(|w| list.iter().any(|p| w.starts_with(p)))
    }

    fn has_phrase(&self, phrase: &[&str]) -> bool {
        self.0.windows(phrase.len()).any(|w| w == phrase)
    }

    /// Whether it asks for a summary of the conversation, or for what was asked, answered or done before.
    fn asks_recap(&self) -> bool {
        const OUTCOME: &[&[&str]] = &[
            &["did", "it", "work"],
            &["did", "that", "work"],
            &["go", "through"],
            &["did", "you", "do"],
            &["you", "just", "do"],
            &["buon", "fine"],
            &["ha", "funzionato"],
            &["cosa", "hai", "fatto"],
            &["es", "geklappt"],
            &["das", "geklappt"],
            &["hast", "du", "gemacht"],
            &["ca", "a", "marche"],
            &["as-tu", "fait"],
            &["ha", "funcionado"],
            &["has", "hecho"],
        ];
        let summary = self.has_prefix(&[
            "riassum", "riepilog", "ricapitol", "summar", "recap", "resum", "zusammenfass", "sintetizza",
            "riassunto",
        ]);
        let shared = self
            .has_prefix(&["discuss", "parlat", "conversa", "dialog", "chat", "talked", "besproch"])
            || self.has_phrase(&["so", "far"])
            || self.has(&["finora", "detto", "said", "besprochen"])
            || self.has_phrase(&["fin", "qui"]);
        let own = self.has(&["my", "our", "mio", "mia", "miei", "mie", "nostri", "nostre"]);
        if summary && (shared || self.0.len() <= 3 && !own) {
            return true;
        }
        let talked = self.has_prefix(&["discuss", "parlat", "talked", "conversa"])
            && (self.has(&["abbiamo", "we", "nostra", "our", "hemos", "cosa", "che", "what"])
                || self.has_prefix(&["conversa"]));
        let asked_before = (self.has(&["ti", "you"])
            && self.has_prefix(&["chiest", "asked", "domandat"])
            && self.has(&["ho", "i"]))
            || self.has_phrase(&["did", "i", "ask"])
            || (self.has_prefix(&["dett", "rispost"])
                && self.has(&["hai", "mi"])
                && self.has(&["cosa", "che"]))
            || self.has_phrase(&["did", "you", "say"])
            || self.0.len() <= 6 && OUTCOME.iter().any(|phrase| self.has_phrase(phrase))
            || self.has_phrase(&["did", "you", "tell"]);
        talked || asked_before
    }

    /// Whether it asks what can be done or who answers: "cosa sai fare?", "help", "who are you?".
    fn asks_capabilities(&self) -> bool {
        const WHO: &[&[&str]] = &[
            &["who", "are", "you"],
            &["what", "are", "you"],
            &["chi", "sei"],
            &["cosa", "sei"],
            &["wer", "bist", "du"],
            &["wer", "sind", "sie"],
            &["qui", "es-tu"],
            &["qui", "etes-vous"],
            &["quien", "eres"],
        ];
        const CAN: &[&[&str]] = &[
            &["was", "kannst", "du", "tun"],
            &["was", "kannst", "du", "alles"],
            &["was", "konnen", "sie", "tun"],
            &["kannst", "du", "mir", "helfen"],
            &["que", "peux-tu", "faire"],
            &["que", "sais-tu", "faire"],
            &["que", "pouvez-vous", "faire"],
            &["peux-tu", "m", "aider"],
            &["que", "puedes", "hacer"],
            &["que", "sabes", "hacer"],
            &["puedes", "ayudarme"],
        ];
        let count = self.0.len();
        if self.0.ends_with(&["was", "kannst", "du"]) {
            return true;
        }
        if count <= 4 && WHO.iter().any(|phrase| self.has_phrase(phrase)) {
            return true;
        }
        (self.has(&["puoi", "sai", "potete"])
            && self.has(&["fare", "aiutarmi"])
            && self.has(&["cosa", "che", "come"])
            && count <= 7)
            || (self.has_phrase(&["can", "you", "do"]) && self.has(&["what"]))
            || (count <= 7 && CAN.iter().any(|phrase| self.has_phrase(phrase)))
            || (count <= 2 && self.has(&["aiuto", "help", "aide", "hilfe", "ayuda"]))
            || (self.has_phrase(&["help", "me"]) && count <= 7 && self.has(&["how", "what"]))
    }

    /// Whether it takes back what was asked: "lascia stare", "never mind".
    fn withdraws(&self) -> bool {
        const PHRASES: &[&[&str]] = &[
            &["lascia", "stare"],
            &["lascia", "perdere"],
            &["never", "mind"],
            &["forget", "it"],
            &["leave", "it"],
            &["non", "importa"],
            &["non", "fa", "niente"],
            &["no", "grazie"],
            &["no", "thanks"],
            &["vergiss", "es"],
            &["lass", "es"],
            &["lass", "das"],
            &["lass", "gut", "sein"],
            &["nein", "danke"],
            &["laisse", "tomber"],
            &["non", "merci"],
            &["olvidalo"],
            &["dejalo"],
            &["no", "gracias"],
            &["better", "not"],
            &["rather", "not"],
            &["meglio", "no"],
            &["plutot", "pas"],
            &["lieber", "nicht"],
            &["mejor", "no"],
        ];
        const ALONE: &[&str] = &[
            "no", "nope", "non", "nein", "niente", "rien", "nichts", "nada", "annulla", "annule", "cancela",
            "cancel", "stop",
        ];
        let alone = |words: &[&str]| matches!(words, [word] if ALONE.contains(word));
        // "Never mind, cancel visit 12" asks for something else.
        let names_value = self.0.iter().any(|word| word.contains(|c: char| c.is_ascii_digit()));
        self.0.len() <= 5 && !names_value && (PHRASES.iter().any(|p| self.has_phrase(p)) || alone(&self.0))
    }
}

/// Whether a clause contains only polite words.
pub(super) fn is_only_polite(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    tokens.iter().filter(|t| t.word).all(|t| lexicon::is_pleasantry(&t.norm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_who_answers_is_told_what_can_be_done() {
        for said in [
            "Who are you?",
            "hey, who are you",
            "Chi sei?",
            "Wer bist du?",
            "Qui \u{ea}tes-vous ?",
            "\u{bf}Qui\u{e9}n eres?",
            "Hola, \u{bf}qu\u{e9} puedes hacer?",
            "Hallo, was kannst du?",
            "Bonjour, que sais-tu faire ?",
            "Hi there! How can you help me?",
        ] {
            assert_eq!(classify(said), Talk::Help, "{said}");
        }
        for said in [
            "Vergiss es", "Lass es", "Leave it", "Laisse tomber", "Olv\u{ed}dalo", "D\u{e9}jalo",
            "No, gracias", "Non", "Nein.", "Nein, lieber nicht", "Mejor no",
        ] {
            assert_eq!(classify(said), Talk::Withdrawal, "{said}");
        }
        for said in [
            "Was kannst du mir \u{fc}ber meinen Urlaub sagen?",
            "Who are you looking for today?",
            "Chi sei andato a trovare ieri?",
            "Who am I?",
        ] {
            assert_eq!(classify(said), Talk::Other, "{said}");
        }
    }
}
