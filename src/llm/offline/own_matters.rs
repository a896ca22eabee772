//! Questions about what is the speaker's own: who they are, what they have asked for, how many days they have.

use super::lexicon;
use super::pattern::{self, patterns};
use super::senses::SEE;
use super::text::Token;

/// Whether words only ask who says them: "who am I?", "chi sono io?". In other languages their words are unknown ones, as those
/// of any question for a name.
pub(super) fn asks_who_speaks(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let own = pattern::strip_fillers(&words);
    patterns![
        "who am i", "what s/is my name", "what am i called", "chi sono io?", "qual e/è il mio nome",
        "wie heisse ich", "wer bin ich", "comment je m appelle", "comment m appelle-je", "qui suis-je",
        "como me llamo", "quien soy yo?"
    ]
    .ends(own, 0)
    .any(|end| end == own.len())
}

/// Whether words ask how many days the speaker has, without a word for what kind of days they are.
pub(super) fn asks_days_left(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asks = patterns![
        "how many days do/would/will i/we still? have",
        "how many days have/ve i/we",
        "how many days i/we ve? still? have/got",
        "quanti giorni ho/abbiamo/avrei",
        "combien de jours ai-je/avons-nous",
        "combien de jours j/nous ai/avons",
        "combien de jours il? me/nous reste/restent/reste-t-il",
        "wie viele tage habe/haben ich/wir",
        "cuantos dias tengo/tenemos",
    ];
    pattern::find(&words, words.len(), asks).is_some()
}

/// Whether words ask whether the speaker may do something: "kann ich am Montag …?", "any chance of …?".
pub(super) fn asks_permission(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asks = patterns![
        "any chance of/to/for",
        "what/how about",
        "is/would it be? ok/okay/fine/possible/alright if/to",
        "posso/potrei/possiamo",
        "puis-je/pourrais-je",
        "est-ce que je peux/pourrais",
        "je peux/pourrais",
        "kann/konnte/darf/durfte ich",
        "puedo/podria/podemos",
    ];
    pattern::any(pattern::strip_fillers(&words), 0, asks).is_some()
}

/// Whether words name nothing but what the speaker has asked for, in the plural: "my requests", "see all my leave requests".
pub(super) fn lists_own_acts(tokens: &[Token]) -> bool {
    const OWN: &[&str] = &["my", "our", "mie", "miei", "mes", "meine", "mis"];
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word && !lexicon::is_pleasantry(&t.norm)).collect();
    let Some(own) = words.iter().position(|t| t.is(OWN)) else { return false };
    let shows = |t: &&&Token| lexicon::is_lookup(&t.features().concepts) || t.is(SEE);
    let leads = words[..own].iter().all(|t| lexicon::is_stop_word(&t.norm) || shows(&t));
    let is_plural =
        |t: &&Token| t.norm.ends_with(['s', 'e', 'i']) && lexicon::may_be_action(&t.features().concepts);
    leads
        && words.len() <= own + 4
        && words.last().is_some_and(|last| words.len() > own + 1 && is_plural(last))
}

/// Whether a clause says what the speaker has done, and not how much: "what have I booked", "che ferie ho chiesto".
pub(super) fn asks_own_acts(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let has = pattern::find(
        &words,
        words.len(),
        patterns![
            "have/did i",
            "when/days am i next? off/on/away",
            "ho/abbiamo gia? <pp>",
            "habe/haben ich/wir",
            "ai-je/avons-nous",
            "est-ce que j ai",
            "he/hemos ya? <pp>",
            "que he/hemos"
        ],
    );
    // "Do I have any leave booked?"
    let is_planned = words.iter().any(|t| t.is(&["booked", "planned", "requested", "scheduled"]))
        && pattern::find(&words, words.len(), patterns!["do i/we have", "is/are there"]).is_some();
    (has.is_some() || is_planned) && !words.iter().any(|t| t.is(HOW_MANY))
}

/// Words that ask for an amount.
const HOW_MANY: &[&str] = &[
    "spend", "spent", "pay", "paid", "earn", "earned", "save", "saved", "speso", "pagato", "guadagnato",
    "ausgegeben", "bezahlt", "depense", "paye", "gastado", "pagado", "much", "many", "long", "quanto",
    "quanta", "quanti", "quante", "viel", "viele", "combien", "cuanto", "cuanta", "cuantos", "cuantas",
    "got", "left", "available",
];
