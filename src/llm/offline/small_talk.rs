//! Talk that no scene is for: greetings, thanks, "what can you do", and questions about the
//! conversation itself.

use super::lexicon;
use super::text;

/// What kind of talk a request is.
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

/// What kind of talk a request is, by its words alone.
pub(super) fn of(request: &str) -> Talk {
    let tokens = text::tokens(request);
    let words: Vec<&str> = tokens.iter().filter(|t| t.word).map(|t| t.norm.as_str()).collect();
    if words.is_empty() {
        return Talk::Other;
    }
    let has = |list: &[&str]| words.iter().any(|w| list.contains(w));
    let starts = |list: &[&str]| words.iter().any(|w| list.iter().any(|p| w.starts_with(p)));
    let phrase = |p: &[&str]| words.windows(p.len()).any(|w| w == p);
    let sums = starts(&[
        "riassum",
        "riepilog",
        "ricapitol",
        "summar",
        "recap",
        "resum",
        "zusammenfass",
        "sintetizza",
        "riassunto",
    ]);
    let shared = starts(&["discuss", "parlat", "conversa", "dialog", "chat", "talked", "besproch"])
        || phrase(&["so", "far"])
        || has(&["finora", "detto", "said", "besprochen"])
        || phrase(&["fin", "qui"]);
    let spoke = starts(&["discuss", "parlat", "talked", "conversa"])
        && (has(&["abbiamo", "we", "nostra", "our", "hemos", "cosa", "che", "what"])
            || starts(&["conversa"]));
    let asked_before = (has(&["ti", "you"]) && starts(&["chiest", "asked", "domandat"]) && has(&["ho", "i"]))
        || phrase(&["did", "i", "ask"])
        || (starts(&["dett", "rispost"]) && has(&["hai", "mi"]) && has(&["cosa", "che"]))
        || phrase(&["did", "you", "say"])
        || phrase(&["did", "you", "tell"]);
    let own = has(&["my", "our", "mio", "mia", "miei", "mie", "nostri", "nostre"]);
    if (sums && (shared || words.len() <= 3 && !own)) || spoke || asked_before {
        return Talk::Recap;
    }
    let can = (has(&["puoi", "sai", "potete"])
        && has(&["fare", "aiutarmi"])
        && has(&["cosa", "che", "come"])
        && words.len() <= 7)
        || (phrase(&["can", "you", "do"]) && has(&["what"]))
        || (words.len() <= 2 && has(&["aiuto", "help", "hilfe", "ayuda"]))
        || (phrase(&["help", "me"]) && words.len() <= 6 && has(&["how", "what"]));
    if can {
        return Talk::Help;
    }
    let withdrawn = words.len() <= 5
        && (phrase(&["lascia", "stare"])
            || phrase(&["lascia", "perdere"])
            || phrase(&["never", "mind"])
            || phrase(&["forget", "it"])
            || phrase(&["non", "importa"])
            || phrase(&["non", "fa", "niente"])
            || words == ["no"]
            || words == ["niente"]
            || words == ["annulla"]
            || words == ["cancel"]
            || words == ["stop"]
            || phrase(&["no", "grazie"])
            || phrase(&["no", "thanks"]));
    if withdrawn {
        return Talk::Withdrawal;
    }
    if words.iter().all(|w| lexicon::is_pleasantry(w)) {
        return if has(&["grazie", "thanks", "thank", "merci", "danke", "gracias", "obrigado"]) {
            Talk::Thanks
        } else {
            Talk::Greeting
        };
    }
    Talk::Other
}

/// Whether a clause is politeness only.
pub(super) fn is_chat(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    tokens.iter().filter(|t| t.word).all(|t| lexicon::is_pleasantry(&t.norm))
}
