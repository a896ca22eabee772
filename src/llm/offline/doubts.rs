//! Whether some words of a request leave open if its writes are wanted at all, or now: conditions, negations and
//! corrections that the speech acts of its clauses do not cover, words to somebody else, and openings in languages of
//! which only a few words are known. In doubt, a write is asked about and not made.

use super::entities::Entities;
use super::exclusions::EXCEPT;
use super::lexicon;
use super::mood;
use super::pattern::{Patterns, any, find, is_infinitive, is_participle, is_verb, patterns, strip_fillers};
use super::phrases::WISHES;
use super::speech::{self, Act, ConditionPart, Speech};
use super::text::{self, Token};
use crate::language;
use foreign::has_foreign_cue;
pub(super) use foreign::{asks_to_act, is_foreign_lead};
use retractions::is_retracted;
use subjects::says_what_somebody_does;

mod foreign;
mod retractions;
mod subjects;

/// Conditions and later times, whatever follows them.
static CONDITIONS: &Patterns = patterns![
    "only if/when/once/after/with/provided",
    "iff",
    "unless",
    "whenever *",
    "every/each time",
    "provided/providing that/it/he/she/they/my/the/there",
    "pending *",
    "subject to",
    "depending on",
    "in the event",
    "on condition",
    "wait/waiting till/until/for",
    "solo se/quando/dopo/quanto",
    "qualora",
    "ove *",
    "casomai/semmai",
    "finche",
    "salvo *",
    "purche",
    "ogni volta",
    "ogniqualvolta",
    "nel/in caso di/che",
    "aspetta/aspettate/attendi/aspettiamo che/il/la/l",
    "prima che",
    "dopo che",
    "dopo aver/avere parlato/sentito/chiesto/avvisato/ricevuto/ottenuto/avuto",
    "una volta che",
];

/// Words before a clause or an event on which an act waits: see [`waits_for_event`].
const EVENT_CUES: &[&str] = &[
    "when", "once", "after", "before", "until", "till", "while", "moment", "if", "quando", "dopo", "appena",
    "se",
];

/// Words that begin a clause or an event after [`EVENT_CUES`].
const EVENT_SUBJECTS: &[&str] = &[
    "i", "you", "we", "he", "she", "it", "they", "my", "our", "his", "her", "their", "the", "somebody",
    "someone", "everyone", "everybody", "people", "il", "lo", "la", "l", "i", "gli", "le", "te", "me", "lui",
    "lei", "loro", "arriva", "chiama", "torna", "apre", "chiude", "è", "ha", "hanno", "ho", "avra", "sara",
    "there",
];

/// What follows [`EVENT_CUES`] where nothing is waited for: "when you can", "before the end of June".
static NO_EVENT: &Patterns = patterns![
    "when/if you/u can/get/have/like/want/please/feel/re/are/could",
    "when/if it s/is convenient/possible",
    "once a/an/per",
    "while you re/are",
    "quando puoi/riesci/hai/vuoi/ti/ne",
    "se puoi/riesci/hai/vuoi/ti/possibile/ne",
    "appena possibile/puoi/riesci",
    "dopo di che",
];

/// Refusals, and words for nobody and nothing.
static REFUSALS: &Patterns = patterns![
    "no <ing>",
    "no point/reason/need/way/longer/cause",
    "none of",
    "neither",
    "nor",
    "nobody",
    "nothing",
    "no one",
    "nessuno/nessuna/nessun",
    "niente/nulla",
    "nn",
    "guai",
    "mai <inf>",
    "vietato/proibito",
    "all/everything/anything but",
    "except/excluding/excepting",
    "tranne/eccetto/fuorche",
    "forbidden/prohibited",
    "no sorry/wait/actually/hang/hold/hmm",
    "no scusa/aspetta/anzi",
    "plan/intention/idea/proposal/attempt to <verb>",
];

/// What only sounds like a wish, or is about other people or an example.
static NO_ORDERS: &Patterns = patterns![
    "i/we love/enjoy/hate/like/adore/miss <ing>",
    "someone/somebody/anybody/anyone/everybody/everyone/one/people ought/should/must/needs/need/could/can",
    "i/we d/would like/love to be able",
    "vorrei/vorremmo/voglio/vogliamo poter/potere",
    "o/or no/not",
];

/// Amounts that are not exact, before a number.
const VAGUE: &[&str] = &[
    "about", "around", "roughly", "approximately", "approx", "nearly", "almost", "circa", "almeno",
    "massimo", "minimo", "quasi", "environ", "etwa", "ungefahr", "mindestens", "hochstens", "unos", "unas",
    "aproximadamente", "least", "most", "under", "over", "maximum", "minimum", "max",
];

/// Conditions and exceptions that leave a write open whatever the clause around them is.
static ANYWHERE: &Patterns = patterns![
    "only if/when/once/after",
    "solo se/quando/dopo",
    "all/everything/anything but",
    "tutto/tutti/tutte tranne/meno",
    "as if/though",
    "check/verify if/whether",
    "find out if/whether",
    "controlla/controllate/verifica/verificate/guarda/guardate se",
    "in theory",
    "hypothetically",
    "in teoria",
    "ipoteticamente",
    "en theorie/teoria",
    "theoretisch/hypothetisch",
    "come se",
    "comme si",
    "als ob",
    "como si",
];

/// Whom to ask before an act: "prima di vendere, chiedi a Marco".
const CONSULTS: &[&str] = &[
    "chiedi", "chiedete", "domanda", "domandate", "parla", "parlate", "avvisa", "avvisate", "avverti",
    "consulta", "consultate",
];

/// Whether something in a request leaves open if its writes are wanted.
pub(super) fn has_doubt(request: &str) -> bool {
    let tokens = text::tokens(request);
    let quoted = speech::quoted(&tokens);
    let speech = speech::analyse(&tokens, &quoted);
    let silent = silent_tokens(request, &tokens, &quoted);
    // Capitals inside a sentence are names: "lend Only When I Laugh".
    let is_name = |token: &Token| token.capital() && !token.first && !is_shouted(token);
    let is_said = |(at, token): &(usize, &Token)| token.word && !silent[*at] && !is_name(token);
    let said: Vec<&Token> = tokens.iter().enumerate().filter(is_said).map(|(_, token)| token).collect();
    is_addressed_to_somebody(&tokens)
        || is_example(request)
        || asks_or_supposes(&tokens, &said)
        || find(&said, said.len(), ANYWHERE).is_some()
        || find(&said, said.len(), EXCEPT).is_some()
        || (find(&said, said.len(), patterns!["prima di <inf>"]).is_some()
            && said.iter().any(|word| word.is(CONSULTS)))
        || said.iter().any(|token| token.lower == "né")
        || has_lone_condition(&speech)
        || is_retracted(&tokens, &silent)
        || may_depend_on_what_is_left(&tokens)
        || says_when_at_work(&tokens, &silent, request)
        || has_foreign_cue(&said, language::detect(request))
        || waits_anywhere(&speech, &tokens, &quoted, &silent)
        || has_unread_cue(&speech, &tokens, &silent)
}

/// Whether a wish is followed by a question for what is left, on which it may depend: "I'd like to take next week off, how many days
/// do I have left?"
fn may_depend_on_what_is_left(tokens: &[Token]) -> bool {
    let Some(comma) = tokens.iter().rposition(|token| token.raw == ",") else { return false };
    let (wish, question) = tokens.split_at(comma);
    let wish: Vec<&Token> = wish.iter().filter(|token| token.word).collect();
    let question: Vec<&Token> = question.iter().filter(|token| token.word).collect();
    let asks = patterns![
        "quanti/quante/quanto/quanta",
        "how many/much",
        "ho/abbiamo abbastanza",
        "do i/we have enough"
    ];
    let left = [
        "left", "remain", "remaining", "enough", "restano", "resta", "rimangono", "rimane", "avanzano", "ho",
        "abbiamo",
    ];
    tokens.last().is_some_and(|mark| mark.raw == "?")
        && any(strip_fillers(&wish), 0, WISHES).is_some()
        && any(&question, 0, asks).is_some()
        && question.iter().any(|token| token.is(&left))
}

/// Whether the speaker says that they work on some of several days, which limits what they ask for: "Book 14 to 18 December off,
/// but I'll work on Wednesday".
fn says_when_at_work(tokens: &[Token], silent: &[bool], request: &str) -> bool {
    const NOUN_LEADS: &[&str] = &["il", "del", "al", "mio", "di", "per", "dal", "sul"];
    let works = patterns![
        "i/we ll/will? work",
        "i/we ll/will/m/am/re/are be? working",
        "i/we ll/will/m/am/re/are/have/need/must to? be? in/at the? office/work",
        "i/we have/need/must/ve got? to? work",
        "lavoro/lavoriamo",
        "devo/dobbiamo lavorare",
        "sono/saro/siamo/saremo in/al ufficio/lavoro",
        "ich arbeite",
        "arbeite ich",
        "ich muss arbeiten",
        "muss ich arbeiten",
        "je travaille",
        "je dois travailler",
        "trabajo",
        "tengo que trabajar",
    ];
    let is_said = |(token, silent): &(&Token, &bool)| token.word && !**silent;
    let said: Vec<&Token> = tokens.iter().zip(silent).filter(is_said).map(|(token, _)| token).collect();
    find(&said, said.len(), works).is_some_and(|(first, _)| first == 0 || !said[first - 1].is(NOUN_LEADS))
        && Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1)).date_expressions.len() > 1
}

/// By token: whether it is quoted, or part of a day or a time, which are read with their exceptions ("not on the 16th").
fn silent_tokens(request: &str, tokens: &[Token], quoted: &[bool]) -> Vec<bool> {
    // Which days are meant does not matter here.
    let found = Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1));
    let mut silent: Vec<bool> =
        quoted.iter().enumerate().map(|(at, quoted)| *quoted || found.taken.get(at) == Some(&true)).collect();
    for expression in &found.date_expressions {
        silent[expression.first..=expression.last].fill(true);
    }
    // "Mai" is a month, and a refusal in Italian. "Ayer" is a day, and a cue of a report in a language whose clauses are not read.
    for (token, silent) in tokens.iter().zip(&mut silent) {
        *silent &= !token.is(&["mai", "ayer", "hier", "gestern"]);
    }
    silent
}

/// Whether a request only gives an example: "e.g. …".
fn is_example(request: &str) -> bool {
    let begins = request.trim_start().to_lowercase();
    ["e.g.", "i.e.", "p.es.", "z.b.", "p.ej."].iter().any(|mark| begins.starts_with(mark))
}

/// Whether words are in a language of which the rules know few.
pub(super) fn is_little_known(words: &str) -> bool {
    matches!(language::detect(words), Some("fr" | "de" | "es" | "pt"))
}

/// Whether words in a language of which few words are known open with something else than a verb or noun of the tool, by
/// `is_tools`: "évite de demander …", "prefiero no …".
pub(super) fn opens_unread(purpose: &str, is_tools: impl Fn(&Token) -> bool) -> bool {
    if !is_little_known(purpose) {
        return false;
    }
    let tokens = text::tokens(purpose);
    let is_lead = |token: &&Token| {
        let is_small = lexicon::is_stop_word(&token.norm) || lexicon::is_pleasantry(&token.norm);
        (is_small && !foreign::is_modal(token)) || is_foreign_lead(token)
    };
    let first = tokens.iter().filter(|token| token.word).find(|token| !is_lead(token));
    first.is_some_and(|token| !token.digit() && !is_tools(token))
}

/// Whether the noun between verb and value, in such a language, is none of the tool's, by `is_tools`: "Sperre Konto B3". `used`
/// says of each word whether it is a value.
pub(super) fn names_unread(purpose: &str, used: &[bool], is_tools: impl Fn(&Token) -> bool) -> bool {
    if !is_little_known(purpose) {
        return false;
    }
    let tokens = text::tokens(purpose);
    let is_small = |token: &Token| {
        lexicon::is_stop_word(&token.norm) || lexicon::is_pleasantry(&token.norm) || is_foreign_lead(token)
    };
    let own = tokens.iter().enumerate().filter(|(_, token)| token.word && !is_small(token));
    own.skip(1).take(1).any(|(at, noun)| {
        let is_value = used.get(at) == Some(&true) || noun.digit();
        !is_value && used.get(at + 1) == Some(&true) && !is_tools(noun)
    })
}

/// Whether the first words are for another person: "Anna, …", "Marco: …", "Dear Marco, …", "@marco …".
fn is_addressed_to_somebody(tokens: &[Token]) -> bool {
    let greets = |token: &Token| {
        token.is(&[
            "dear", "hi", "hey", "hello", "caro", "cara", "ciao", "lieber", "liebe", "cher", "chere",
            "querido", "querida",
        ])
    };
    let at = tokens.first().map_or(0, |token| usize::from(greets(token)));
    let Some(name) = tokens.get(at) else { return false };
    if name.raw.starts_with('@') {
        return true;
    }
    let is_marked =
        tokens.get(at + 1).is_some_and(|mark| matches!(mark.raw.as_str(), "," | ":" | "-" | "–" | "—"));
    let is_named = || lexicon::is_first_name(&name.norm) || is_called(tokens, at);
    name.capital() && is_marked && is_named()
}

/// Whether the word at `at` may only be the name of somebody who is called before an order: "Omar, close ticket 131".
fn is_called(tokens: &[Token], at: usize) -> bool {
    let name = &tokens[at];
    let is_plain = name.raw.chars().all(char::is_alphabetic) && name.raw.chars().any(char::is_lowercase);
    let is_said = lexicon::is_stop_word(&name.norm)
        || lexicon::is_pleasantry(&name.norm)
        || lexicon::is_time_unit(&name.norm)
        || !name.features().concepts.is_empty()
        || is_verb(name)
        || mood::is_date_token(name)
        || strip_fillers(&[name]).is_empty()
        || is_foreign_lead(name)
        || ["ly", "mente", "ment"].iter().any(|end| name.norm.ends_with(end))
        || name.is(&["anzi", "dunque", "perfavore", "assistant", "bot"]);
    let comma = tokens.get(at + 1).is_some_and(|mark| mark.raw == ",");
    let words: Vec<&Token> = tokens[at + 1..].iter().filter(|token| token.word).collect();
    is_plain && !is_said && comma && mood::is_order(&words)
}

/// Whether the first words ask about a duty ("dovremmo annullare la visita?") or suppose something ("were it to rain, …").
fn asks_or_supposes(tokens: &[Token], said: &[&Token]) -> bool {
    let asks = tokens.iter().any(|token| token.raw == "?");
    match asks {
        true => said.first().is_some_and(|first| first.is(&["dovremmo", "dovrei", "dobbiamo"])),
        false => any(said, 0, patterns!["were/had/should it/he/she/they/there/my/the/i/we"]).is_some(),
    }
}

/// Whether a condition has no consequence in its own sentence: "…. But only if it rains."
fn has_lone_condition(speech: &Speech) -> bool {
    let runs = &speech.runs;
    let is_then =
        |at: Option<usize>| at.and_then(|at| runs.get(at)).is_some_and(|run| run.part == ConditionPart::Then);
    (0..runs.len()).any(|at| {
        runs[at].part == ConditionPart::Case && !is_then(at.checked_sub(1)) && !is_then(Some(at + 1))
    })
}

/// Whether a clause that is read as a request or a statement has a cue that its act does not cover.
fn has_unread_cue(speech: &Speech, tokens: &[Token], silent: &[bool]) -> bool {
    let clauses = speech.clauses();
    clauses.iter().enumerate().any(|(number, (first, last, act, _))| {
        let is_said = |at: &usize| tokens[*at].word && !silent[*at] && speech.dropped.get(*at) != Some(&true);
        let words: Vec<&Token> = (*first..=*last).filter(is_said).map(|at| &tokens[at]).collect();
        let own = strip_fillers(&words);
        // "Ho speso 20 euro, registrala": what is reported is then asked for.
        let is_ordered =
            || clauses.get(number + 1).is_some_and(|(next, ..)| is_order_about_it(&tokens[*next]));
        match act {
            Act::Request => {
                is_request_in_doubt(&words)
                    || (is_report(own) && !is_ordered())
                    || says_what_somebody_does(&tokens[*first..=*last], &silent[*first..=*last])
            }
            Act::Statement | Act::ThirdPerson | Act::Report => {
                any(own, 0, CONDITIONS).is_some() || (*act == Act::Statement && is_no_order(own))
            }
            _ => false,
        }
    })
}

/// Whether a word is an Italian order about what was mentioned: "registrala".
fn is_order_about_it(word: &Token) -> bool {
    word.norm.len() > 6 && ["alo", "ala", "ilo", "ila"].iter().any(|end| word.norm.ends_with(end))
}

fn is_request_in_doubt(words: &[&Token]) -> bool {
    let plain: Vec<&Token> =
        words.iter().copied().filter(|token| !token.capital() || token.first || is_shouted(token)).collect();
    find(&plain, plain.len(), CONDITIONS).is_some()
        || find(&plain, plain.len(), REFUSALS).is_some()
        || orders_none(words)
        || is_vague(words)
        || is_no_order(words)
        || (!words.is_empty()
            && words.iter().all(|token| token.is(&["not", "non", "don", "t", "dont", "do", "never", "mai"])))
}

/// Whether a verb has no object: "book no visit"; not "cancel no. 12".
fn orders_none(words: &[&Token]) -> bool {
    words.windows(3).any(|three| is_verb(three[0]) && three[1].is(&["no"]) && !three[2].digit())
}

/// Whether a clause waits for an event, also one that is read as a report and dropped: "once Marco has arrived, …".
fn waits_anywhere(speech: &Speech, tokens: &[Token], quoted: &[bool], silent: &[bool]) -> bool {
    speech.clauses().into_iter().any(|(first, last, act, _)| {
        let heard: Vec<usize> = (first..=last).filter(|at| tokens[*at].word && !quoted[*at]).collect();
        let words: Vec<&Token> = heard.iter().map(|at| &tokens[*at]).collect();
        let is_date: Vec<bool> = heard.iter().map(|at| silent[*at]).collect();
        matches!(act, Act::Request | Act::Statement | Act::ThirdPerson | Act::Report)
            && (0..words.len()).any(|at| waits_for_event(&words, &is_date, at))
    })
}

fn is_shouted(token: &Token) -> bool {
    token.raw.len() > 1 && token.raw.chars().all(char::is_uppercase)
}

/// Whether a clause or an event begins at `at` on which an act waits: "once Marco has arrived", "dopo l'arrivo di Marco"; not
/// "after 10 June". `is_date` says of each word whether it belongs to a day or a time.
fn waits_for_event(words: &[&Token], is_date: &[bool], at: usize) -> bool {
    let (Some(cue), Some(next)) = (words.get(at), words.get(at + 1)) else { return false };
    if !cue.is(EVENT_CUES) || (cue.capital() && !cue.first) || any(words, at, NO_EVENT).is_some() {
        return false;
    }
    let is_article = next.is(&["the", "il", "lo", "la", "l", "le", "gli", "a", "un", "una"]);
    let next_words = words.iter().zip(is_date).skip(at + 1).take(if is_article { 3 } else { 1 });
    let is_dated = is_date[at]
        || next_words.into_iter().any(|(word, is_date)| {
            *is_date
                || word.digit()
                || mood::is_date_token(word)
                || lexicon::is_time_unit(&word.norm)
                || word.is(&["end", "fine"])
        });
    let is_named = lexicon::is_first_name(&next.norm) && next.capital();
    // "Marco" is also a month, in Portuguese.
    is_named || (!is_dated && (next.is(EVENT_SUBJECTS) || next.lower == "è"))
}

/// Whether an amount is not exact: "about 3", "up to 3", "2 or 3", "2 to 3".
fn is_vague(words: &[&Token]) -> bool {
    let is_number = |at: usize| {
        words.get(at).is_some_and(|word| {
            word.digit() && !word.raw.contains(':') || language::number_word(&word.norm, "en").is_some()
        })
    };
    let is_unit = |at: usize| {
        words.get(at).is_some_and(|word| {
            mood::is_date_token(word) && !word.digit() || lexicon::is_time_unit(&word.norm)
        })
    };
    (0..words.len()).any(|at| {
        let before = words[at];
        let vague = before.is(VAGUE) || (before.is(&["to"]) && at > 0 && words[at - 1].is(&["up"]));
        vague && is_number(at + 1) && !is_unit(at + 2)
    })
}

/// Whether words only sound like an order: a wish to be able to, an infinitive as a subject.
fn is_no_order(words: &[&Token]) -> bool {
    let own = strip_fillers(words);
    let Some(first) = own.first() else { return false };
    let is_subject = is_infinitive(&first.norm)
        || (first.is(&["to"]) && own.get(1).is_some_and(|verb| is_verb(verb)))
        || (first.norm.len() > 5 && first.norm.ends_with("ing"));
    let judges = |token: &&Token| {
        token.lower == "è" || token.is(&["is", "was", "era", "sarebbe", "isn", "wasn", "seems", "sembra"])
    };
    find(own, own.len(), NO_ORDERS).is_some() || (is_subject && own.iter().skip(1).any(judges))
}

/// Whether words open with an Italian perfect, also one of an irregular participle: "ho aggiunto …".
fn is_report(words: &[&Token]) -> bool {
    const IRREGULAR: [&str; 8] = ["nto", "nta", "rto", "rta", "sto", "sta", "sso", "ssa"];
    let has_auxiliary =
        words.first().is_some_and(|first| first.is(&["ho", "hai", "ha", "abbiamo", "avete", "hanno"]));
    let needs = words.get(1).is_some_and(|token| token.is(&["bisogno"]));
    let is_done =
        |token: &&Token| is_participle(&token.norm) || IRREGULAR.iter().any(|end| token.norm.ends_with(end));
    has_auxiliary && !needs && words.iter().skip(1).take(3).any(is_done)
}

#[cfg(test)]
mod tests;
