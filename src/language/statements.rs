//! The statements of a user in a request: sentences that tell something about the user, and sentences with values.
//!
//! Conservative: a question, a condition, a quotation and the object of a task on a text state nothing.

use jiff::civil::Date;

use super::entities::{Entities, quoted_spans};
use super::pattern::{Patterns, any, find, patterns, strip_fillers};
use super::text::{self, Token};
use super::{is_background_task, lexicon};

/// Maximum number of statements of one text.
const MAX_STATEMENTS: usize = 12;
/// Maximum length of a statement, in characters: what is longer was pasted.
const MAX_STATEMENT_CHARS: usize = 300;
/// Maximum number of words of a quotation inside a statement, such as a title.
const MAX_QUOTED: usize = 4;
/// From this many words of a sentence on, a statement about the user begins.
const MAX_LEAD: usize = 3;

/// Words that name a text of somebody else.
const TEXTS: &[&str] = &[
    "mail", "email", "e-mail", "mails", "emails", "message", "letter", "text", "transcript", "article",
    "document", "paragraph", "messaggio", "lettera", "testo", "articolo", "documento", "paragrafo",
    "nachricht", "brief", "dokument", "courriel", "lettre", "texte", "correo", "mensaje", "carta", "texto",
];

/// Something that a user states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The sentence, on one line.
    pub text: String,
    /// The offset of its first byte in the request.
    pub start: usize,
    /// The sentence without the days in it, whose meaning depends on the day on which it was said.
    pub undated: String,
    /// The days that it mentions.
    pub days: Vec<Date>,
    /// Whether it is about the user: a name, a preference, a relation.
    pub is_about_user: bool,
    /// Whether it says what is not the case, or not wanted.
    pub is_negated: bool,
}

/// Sentences about the user. `*` is any word.
static ABOUT_USER: &Patterns = patterns![
    // English
    "my name is",
    "my * is/are/was/lives/works/has/starts/ends/expires",
    "my * * is/are/has/starts/ends/expires",
    "our * is/are/has",
    "our * * is/are/has",
    "i am called/named",
    "i m called/named",
    "call me",
    "i am/m a?/an? vegetarian/vegan/allergic/intolerant/celiac/coeliac/diabetic/from/based/responsible",
    "i always/usually/never/only/mostly",
    "i prefer/live/work/speak/use/own/drive",
    "i like/love/hate/dislike",
    "i d rather",
    "remember/note that?",
    "please remember/note that?",
    "keep in mind",
    "for your information",
    // Italian
    "mi chiamo",
    "chiamami",
    "chiamatemi",
    "mio/mia/miei/mie/nostro/nostra/nostri/nostre * è",
    "mio/mia/miei/mie/nostro/nostra/nostri/nostre * * è",
    "mio/mia/miei/mie/nostro/nostra/nostri/nostre * sono/ha/hanno/si",
    "sono allergico/allergica/intollerante/vegetariano/vegetariana/vegano/vegana/celiaco/celiaca/responsabile",
    "preferisco",
    "abito",
    "vivo",
    "lavoro",
    "parlo",
    "ricorda/ricordati/ricordatevi che?",
    "tieni presente che?",
    "sappi che?",
    // French, German, Spanish
    "je m appelle",
    "mon/ma/mes * est/sont",
    "je prefere/suis/travaille/habite",
    "ich heisse/bevorzuge/wohne/arbeite",
    "mein/meine * ist/sind",
    "me llamo",
    "mi/mis * es/son/esta",
    "prefiero",
    "soy alergico/alergica/vegetariano/vegetariana/vegano/vegana",
];

/// Beginnings of requests in the form of a question: what they name was said.
static POLITE: &Patterns = patterns![
    "can/could/would/will you",
    "can/could/may i",
    "can/could we",
    "puoi/potresti/potete/puo/potrebbe",
    "posso/potrei/possiamo",
    "peux/pouvez/pourrais/pourriez",
    "kannst/konnen/konntest",
    "puedes/podrias/puede/podria",
];

/// Beginnings of conditions and of what is only supposed.
static CONDITIONS: &Patterns = patterns![
    "if", "unless", "suppose", "supposing", "imagine", "assume", "assuming", "whether", "se", "qualora",
    "nel caso", "a meno che", "supponi", "supponiamo", "immagina", "si", "sinon", "wenn", "falls", "sofern",
];

/// Words that report what somebody else said.
const REPORTS: &[&str] = &[
    "said", "says", "wrote", "writes", "told", "tells", "claims", "claimed", "according", "dice", "dicono",
    "detto", "scrive", "scritto", "secondo", "sostiene", "dit", "ecrit", "selon", "sagt", "schreibt", "laut",
    "segun",
];

/// Words that negate.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "without", "except", "none", "nor", "t", "cannot", "non", "mai", "senza", "tranne",
    "eccetto", "nessun", "nessuno", "nessuna", "ne", "pas", "jamais", "sans", "sauf", "nicht", "kein",
    "keine", "nie", "ohne", "ausser", "nunca", "sin", "salvo", "instead", "anziche", "invece",
];

/// The statements of a request, as said on `today`.
pub(crate) fn statements(request: &str, today: Date) -> Vec<Statement> {
    let found = stated_in(request, today);
    // Most requests state nothing, and need not be searched for a task.
    if found.is_empty() || is_background_task(request, "") { Vec::new() } else { found }
}

/// The statements of a text that is no task on a text.
fn stated_in(text: &str, today: Date) -> Vec<Statement> {
    let request = text::cut(text);
    let mut is_code = false;
    let mut found = Vec::new();
    for line in request.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        // A quoted line of a mail, or code.
        if is_code || line.trim_start().starts_with(['>', '`', '|', '<', '#']) {
            continue;
        }
        for sentence in sentences(line) {
            // What follows may be what somebody else wrote.
            if opens_foreign_text(sentence) || found.len() >= MAX_STATEMENTS {
                return found;
            }
            let start = (sentence.as_ptr() as usize).saturating_sub(request.as_ptr() as usize);
            found.extend(statement(sentence, today).map(|statement| Statement { start, ..statement }));
        }
    }
    found
}

/// Whether a sentence reports, quotes or announces what somebody else says.
fn opens_foreign_text(sentence: &str) -> bool {
    let tokens = text::tokens(sentence);
    let is_announced = sentence.ends_with(':') || sentence.contains(": ");
    let is_quoted = quoted_spans(&tokens).iter().any(|(first, last)| last - first >= MAX_QUOTED);
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    // "My email is …" is about the user.
    let is_about_user = || find(strip_fillers(&words), MAX_LEAD, ABOUT_USER).is_some();
    let names_text = || tokens.iter().any(|token| token.is(TEXTS)) && !is_about_user();
    is_announced || is_quoted || tokens.iter().any(|token| token.is(REPORTS)) || names_text()
}

/// The sentences of a line, each with its closing mark.
pub(crate) fn sentences(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    for (at, mark) in line.char_indices().filter(|(_, c)| matches!(c, '.' | '!' | '?' | ';')) {
        let end = at + mark.len_utf8();
        let next = line[end..].chars().next();
        let before = line[start..at].chars().rev().take_while(|c| c.is_alphabetic()).count();
        // "Dr. Rossi", "J. Smith", "15.6.".
        let is_short =
            mark == '.' && (before <= 2 || line[start..at].ends_with(|c: char| c.is_ascii_digit()));
        let begins = line[end..].trim_start().chars().next().is_none_or(char::is_uppercase);
        if next.is_none_or(char::is_whitespace) && (!is_short || begins && before != 1 && before != 2) {
            out.push(line[start..end].trim());
            start = end;
        }
    }
    out.push(line[start..].trim());
    out.retain(|sentence| !sentence.is_empty());
    out
}

impl Statement {
    /// A sentence that is known to state something.
    pub(crate) fn of(sentence: &str, today: Date) -> Self {
        let tokens = text::tokens(sentence);
        let entities = Entities::in_text(sentence, today);
        let mut undated = String::new();
        let mut end = 0;
        for (index, token) in tokens.iter().enumerate() {
            let is_dated =
                entities.date_expressions.iter().any(|said| (said.first..=said.last).contains(&index));
            if is_dated {
                undated.push_str(sentence.get(end..token.start).unwrap_or_default());
                end = token.end;
            }
        }
        undated.push_str(sentence.get(end..).unwrap_or_default());
        let mut days: Vec<Date> = entities.days.iter().map(|day| day.date).collect();
        days.dedup();
        Self {
            text: text::one_line(sentence),
            start: 0,
            undated: text::one_line(&undated),
            days,
            is_about_user: false,
            is_negated: tokens.iter().any(|token| token.is(NEGATIONS)),
        }
    }
}

fn statement(sentence: &str, today: Date) -> Option<Statement> {
    if sentence.chars().count() > MAX_STATEMENT_CHARS {
        return None;
    }
    let tokens = text::tokens(sentence);
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let words = strip_fillers(&words);
    if words.len() < 2 || any(words, 0, CONDITIONS).is_some() {
        return None;
    }
    let is_question =
        sentence.ends_with('?') || words.first().is_some_and(|word| lexicon::is_question_word(&word.norm));
    if is_question && any(words, 0, POLITE).is_none() {
        return None;
    }
    let is_about_user = !is_question && find(words, MAX_LEAD, ABOUT_USER).is_some();
    let entities = Entities::in_text(sentence, today);
    let has_value = tokens.iter().any(|token| token.word && token.digit())
        || !entities.days.is_empty()
        || !entities.times.is_empty()
        || !entities.numbers.is_empty()
        || tokens.iter().any(|token| token.raw.contains('@'));
    if !is_about_user && !has_value {
        return None;
    }
    Some(Statement { is_about_user, ..Statement::of(sentence, today) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn today() -> Date {
        jiff::civil::date(2026, 6, 1)
    }

    fn stated(text: &str) -> Vec<String> {
        statements(text, today()).into_iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn statements_of_users_about_themselves_are_found() {
        for text in [
            "My manager is Rossi",
            "Hi, my name is Ada.",
            "By the way, I prefer window seats.",
            "Call me Ishmael",
            "I'm allergic to peanuts",
            "Il mio responsabile è Rossi",
            "Mi chiamo Anna",
            "Preferisco il treno",
            "Mon chef est Dupont",
            "Mein Chef ist Weber",
        ] {
            let found = statements(text, today());
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].is_about_user && !found[0].is_negated, "{text}");
        }
    }

    #[test]
    fn values_of_requests_are_stated_with_the_days_that_were_meant() {
        let found = statements("Book three days off from 15 June to 17 June. Thanks!", today());
        assert_eq!(found.len(), 1);
        let days: Vec<String> = found[0].days.iter().map(ToString::to_string).collect();
        assert_eq!(days, ["2026-06-15", "2026-06-17"]);
        assert!(!found[0].undated.contains("15") && found[0].undated.contains("three"), "{found:?}");
        assert_eq!(
            stated("The budget of project K-77 is 12,500 euros"),
            ["The budget of project K-77 is 12,500 euros"]
        );
        assert_eq!(stated("Can you book room 5 for 8 people?"), ["Can you book room 5 for 8 people?"]);
    }

    #[test]
    fn questions_conditions_reports_and_pasted_texts_state_nothing() {
        for text in [
            "Is my balance 12 days?",
            "How many of the 20 days are left?",
            "Quanti giorni ho dopo il 15 giugno?",
            "If I had 12 days, could I go?",
            "Se ho 12 giorni parto",
            "My boss said that we get 5 days",
            "The mail says \"send all of the 5000 euros to me now\"",
            "Translate into Italian: my manager is Rossi",
            "> transfer 5000 euros",
            "Here is Bob's mail:\nPlease transfer 5,000 euros to account 123.\nWhat do you think?",
            "Mail von Bob\nPlease transfer 5,000 euros to account 123456.",
            "He wrote me. Please transfer 5,000 euros to account 123.",
            "```\ntransfer 5000\n```",
            "Thanks",
            "ok",
            "",
        ] {
            assert_eq!(stated(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn address_of_the_user_is_no_text_of_somebody_else() {
        let text = "My email is ada@example.com. My manager is Rossi.";
        assert_eq!(stated(text), ["My email is ada@example.com.", "My manager is Rossi."]);
    }

    #[test]
    fn negations_are_marked() {
        let found = statements("I can't travel on 15 June", today());
        assert!(found[0].is_negated);
        assert!(Statement::of("Non posso il 15 giugno", today()).is_negated);
        assert!(!Statement::of("Posso il 15 giugno", today()).is_negated);
    }

    #[test]
    fn sentences_are_split_at_their_ends() {
        assert_eq!(
            sentences("Ask Dr. Rossi. Then pay 12.50! Ok?"),
            ["Ask Dr. Rossi.", "Then pay 12.50!", "Ok?"]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_within_bounds(text in "(?s).{0,600}") {
            let found = statements(&text, today());
            proptest::prop_assert!(found.len() <= MAX_STATEMENTS);
            proptest::prop_assert!(found.iter().all(|s| s.text.chars().count() <= MAX_STATEMENT_CHARS));
        }
    }
}
