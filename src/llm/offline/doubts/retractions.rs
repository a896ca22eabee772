//! Words after a request that take it back, correct it, or forbid what is listed after them.

use crate::llm::offline::pattern::{Patterns, any, find, is_verb, patterns, strip_fillers};
use crate::llm::offline::phrases::CORRECTS;
use crate::llm::offline::text::Token;

/// Beginnings of a part of a sentence that takes back or corrects what precedes it.
static RETRACTS: &Patterns = patterns![
    "ignore/disregard/scrap/strike/discard/revert/undo that/this/it/everything/all/my/the/what",
    "forget/cancel/skip/stop/drop that/this/it/everything/what",
    "forget about? it/that/this",
    "never mind",
    "nevermind",
    "that/this/it was/is/s just/only? a/an? test/joke/lie",
    "just/only? testing/kidding/joking",
    "do nothing",
    "don/dont/do t/not? actually/really? do/bother/touch/execute/run",
    "i meant/mean",
    "make that/it",
    "correction",
    "hold on",
    "hold off",
    "wait",
    "actually no/not/don/dont",
    "better/rather not",
    "or/maybe? not",
    "no wait/stop/leave/don/dont/not/make/to/from/number/a/an/the",
    "no <num>",
    "no one/two/three/four/five/six/seven/eight/nine/ten",
    "not <num>",
    "stop it/that/this",
    "ignora/ignorate/dimentica/dimenticate/scorda/lascia/annulla quello/cio/tutto/questo/questa/stare/perdere/che",
    "dimenticalo/dimenticala/ignoralo/ignorala/scordalo/lascialo/lasciala",
    "era/è solo? una/un/uno? prova/scherzo/test",
    "non fare/farlo/farla/eseguire/eseguirlo",
    "volevo dire",
    "intendevo",
    "aspetta/aspettate/fermo/ferma/fermati/alt",
    "no aspetta/lascia/non/ferma/fermo/anzi/a/al/alla/il/la/dal",
    "meglio di? no",
    "non <num>",
    "laisse/laissez tomber",
    "oublie/oubliez",
    "non attends/laisse/pas",
    "en fait non",
    "je plaisante/rigole",
    "vergiss es/das",
    "lass es/das",
    "nein doch/warte/lieber/nicht",
    "doch nicht",
    "es war nur? ein",
    "dejalo/dejala/olvidalo/olvidala",
    "no espera/mejor/dejalo/hagas",
    "es una? broma",
    "digo",
    "mejor dicho",
    "quiero decir",
    "je veux dire",
    "ich meine/meinte",
];

/// Parts that take back what precedes them if they say nothing else.
const ALONE: &[&str] = &[
    "no", "nope", "nah", "not", "stop", "don t", "dont", "do not", "niente", "dimentica", "lascia", "nein",
    "halt", "stopp", "warte", "espera", "attends", "abort", "undo", "not that", "cancel", "oops", "ops",
];

/// Words of a heading that forbid what is listed after it.
static FORBIDS: &Patterns = patterns![
    "not/never/dont",
    "don t",
    "non/mai/vietato/proibito",
    "forbidden/prohibited/wrong",
    "nicht/nie/verboten",
    "pas/jamais",
    "no/nunca/prohibido",
];

/// What may be said in a heading that forbids, beside the negation; anything else may be what it forbids itself.
const HEADING: &str = "do this that these the following any of things thing what you must should never not please don t dont to be done \
cose cosa da fare questo queste seguente seguenti non mai vietato proibito forbidden prohibited wrong nicht machen mach das dies folgendes \
verboten a ne pas faire ceci cela jamais no hagas esto nunca prohibido hacer lista list it for now we i is are todo nie";

/// Words of a heading for what others wrote: "here is a mail I got: …".
const MESSAGES: &str = "mail mails email e-mail message messages sms letter memo forwarded received messaggio messaggi lettera ricevuto \
courriel lettre recu nachricht brief erhalten correo mensaje carta recibido";

/// What ends a part of a sentence.
const MARKS: [&str; 13] = [",", ".", ";", ":", "!", "?", "…", "-", "–", "—", "(", ")", "\n"];

/// Whether a part of the text takes back or corrects what precedes it, or a heading forbids what follows it, or says that others
/// wrote it.
pub(super) fn is_retracted(tokens: &[Token], silent: &[bool]) -> bool {
    let parts = parts(tokens, silent);
    let mut said = false;
    let mut apologised = false;
    for (at, (words, mark)) in parts.iter().enumerate() {
        let is_message = || words.iter().any(|word| word.among(MESSAGES));
        if *mark == ":" && (is_forbidding_heading(words) || is_reporting_heading(words) || is_message()) {
            return true;
        }
        let own = strip_fillers(words);
        // What follows a plain "no" and is a request of its own was read as such: "cancel 41, no, cancel 12".
        let restarts = || {
            parts
                .get(at + 1)
                .is_some_and(|(next, _)| strip_fillers(next).first().is_some_and(|verb| is_verb(verb)))
        };
        let is_no = own.len() == 1 && own[0].is(&["no", "nope"]) || any(own, 0, CORRECTS) == Some(own.len());
        if said
            && (takes_back(own) && !(is_no && restarts())
                || apologised && own.first().is_some_and(|word| word.digit()))
        {
            return true;
        }
        apologised = own.is_empty()
            && words.iter().any(|word| word.is(&["sorry", "scusa", "scusami", "pardon", "scusi"]));
        said |= !own.is_empty();
    }
    false
}

fn takes_back(words: &[&Token]) -> bool {
    let is_alone = ALONE.iter().any(|phrase| {
        phrase.split(' ').count() == words.len()
            && phrase.split(' ').zip(words).all(|(said, word)| word.norm == said)
    });
    is_alone || any(words, 0, RETRACTS).is_some()
}

fn is_forbidding_heading(words: &[&Token]) -> bool {
    find(words, words.len(), FORBIDS).is_some() && words.iter().all(|word| word.among(HEADING))
}

/// Whether what follows a heading is said to be done: "these are done already: …".
fn is_reporting_heading(words: &[&Token]) -> bool {
    const DONE: &str = "done already finished completed yesterday fatto fatte fatti gia ieri fait faits faites deja hier erledigt \
gemacht schon gestern hecho hecha hechos hechas ya ayer";
    words.iter().any(|word| word.among(DONE))
        && !words.iter().any(|word| word.is(&["be", "want", "need", "get", "voglio", "serve"]))
}

/// The words between marks, and the mark after them.
fn parts<'a>(tokens: &'a [Token], silent: &[bool]) -> Vec<(Vec<&'a Token>, &'a str)> {
    let mut parts: Vec<(Vec<&Token>, &str)> = Vec::new();
    let mut words: Vec<&Token> = Vec::new();
    for (token, _) in tokens.iter().zip(silent).filter(|(_, silent)| !**silent) {
        if token.word {
            words.push(token);
        } else if MARKS.contains(&token.raw.as_str()) && !words.is_empty() {
            parts.push((std::mem::take(&mut words), token.raw.as_str()));
        }
    }
    if !words.is_empty() {
        parts.push((words, ""));
    }
    parts
}
