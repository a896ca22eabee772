//! The speech act of one clause, by closed classes of words: particles of negation, modals, question words,
//! verbs of saying and wishing, and forms of the past.

use super::lexicon;
use super::pattern::{any, end, find, is_infinitive, is_participle, is_past, is_verb};
use super::phrases::{
    ASKS, ASKS_MARKED, CANNOT, FILLERS, KIN, MAY_BE, MINDS, MISSED, NOT, NOT_INSIDE, POLITE, REASONS,
    REMINDS, REMINDS_ME_WHAT, SAID, TALES, TELLS, THANKS, THEY, THIRD, TO_KNOW, WH, WISHES, WOULD_BE,
};
use super::speech::Act;
use super::text::Token;

/// What a clause is, and whether it says so itself or only by what it lacks (a verb).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mood {
    /// Its act.
    pub act: Act,
    /// Whether some word says so.
    pub said: bool,
}

/// What the words of one clause do; `marked` where a question mark ends them.
pub(super) fn mood(words: &[&Token], marked: bool) -> Mood {
    let said = |act| Mood { act, said: true };
    if find(words, 3, THANKS).is_some() {
        return said(Act::Report);
    }
    let words = unfilled(words);
    if words.is_empty() {
        return Mood { act: Act::Request, said: false };
    }
    if let Some(at) = any(words, 0, REASONS) {
        let inner = mood(&words[at..], false);
        let told = matches!(inner.act, Act::Request | Act::Question);
        return if told { said(Act::Statement) } else { inner };
    }
    // "Tomorrow I need …".
    if let Some(at) = when(words) {
        let inner = mood(&words[at..], marked);
        if inner.said {
            return inner;
        }
    }
    if causes(words) {
        return said(Act::ThirdPerson);
    }
    if let Some(at) = any(words, 0, MINDS) {
        return said(behind(&words[at..], marked));
    }
    if any(words, 0, MISSED).is_some() {
        return said(Act::Report);
    }
    if any(words, 0, REMINDS_ME_WHAT).is_some() {
        return said(Act::Question);
    }
    if any(words, 0, REMINDS).is_some() {
        return said(Act::Reminder);
    }
    if tells(words) || quotes(words) || any(words, 0, TALES).is_some() {
        return said(Act::Quoted);
    }
    if find(words, 4, WOULD_BE).is_some() {
        return said(Act::Hypothetical);
    }
    if let Some(at) = any(words, 0, POLITE) {
        let rest = &words[at..];
        if rest.first().is_some_and(|t| t.is(&["not", "non"])) {
            return said(Act::Negated);
        }
        return said(behind(rest, marked));
    }
    if any(words, 0, TO_KNOW).is_some() {
        return said(Act::Question);
    }
    if wh(words) {
        return said(Act::Question);
    }
    if any(words, 0, &["i/we don/do/dont t/not? mind", "non mi/ci? dispiace/dispiacerebbe"]).is_some() {
        return said(Act::Statement);
    }
    if negated(words, marked) {
        return said(Act::Negated);
    }
    if any(words, 0, CANNOT).is_some() {
        return said(Act::Statement);
    }
    let names = |t: &Token| t.capital() && (!t.first || lexicon::is_first_name(&t.norm));
    let asks = any(words, 0, ASKS).is_some() || marked && any(words, 0, ASKS_MARKED).is_some();
    let of_name = marked
        && words[0].is(&["do", "does", "did", "is", "has", "can", "may", "should"])
        && words.get(1).is_some_and(|t| names(t));
    if asks || of_name {
        return said(Act::Question);
    }
    if let Some(at) = any(words, 0, WISHES) {
        // "I have had …" tells, "I had wanted to" too.
        if words.get(at - 1).is_some_and(|t| t.is(&["have", "ve"]))
            && words.get(at).is_some_and(|t| is_past(&t.norm))
        {
            return said(Act::Report);
        }
        return said(behind(&words[at..], marked));
    }
    if any(words, 0, MAY_BE).is_some() || future(words) {
        return said(Act::Statement);
    }
    other(words, marked)
}

/// Acts that only their verbs tell: reports, third persons, states.
fn other(words: &[&Token], marked: bool) -> Mood {
    let said = |act| Mood { act, said: true };
    let report = reports(words);
    if let Some(act) = report {
        return said(if marked { Act::Question } else { act });
    }
    if third(words) {
        return said(if marked { Act::Question } else { Act::ThirdPerson });
    }
    let order = orders(words);
    if marked && asked_to(words) {
        return said(Act::Request);
    }
    if marked && !order {
        return said(Act::Question);
    }
    if marked {
        return said(Act::Question);
    }
    if !order && (states(words) || says(words)) {
        return said(Act::Statement);
    }
    Mood { act: Act::Request, said: order }
}

/// Where the words that only say when end, at the beginning of a clause.
fn when(words: &[&Token]) -> Option<usize> {
    let small = [
        "on", "in", "for", "at", "the", "il", "la", "nel", "per", "da", "dal", "of", "this", "questo",
        "questa", "from", "to", "al", "dalle", "alle",
    ];
    let at = words.iter().take(8).take_while(|t| dated(t) || t.is(&small)).count();
    let told = words[..at].iter().any(|t| dated(t) && !t.digit()) && at < words.len();
    told.then_some(at)
}

/// Whether a clause is a polite question, whose mark is its own.
pub(super) fn is_polite(words: &[&Token]) -> bool {
    any(unfilled(words), 0, POLITE).is_some()
}

/// Whether a clause only denies something of the speaker: "I can't come on Monday".
pub(super) fn denies(words: &[&Token]) -> bool {
    any(unfilled(words), 0, CANNOT).is_some()
}

/// The act of what stands behind words that ask for it.
fn behind(rest: &[&Token], marked: bool) -> Act {
    if rest.first().is_some_and(|t| t.is(&["i", "we", "he", "she", "they"])) {
        // "I wish I could …".
        return Act::Statement;
    }
    let inner = mood(rest, false);
    match inner.act {
        Act::Negated | Act::Reminder | Act::Quoted | Act::Hypothetical => inner.act,
        Act::Question if any(rest, 0, TO_KNOW).is_some() || wh(rest) => Act::Question,
        // "I need you", "voglio che Luca": nothing is asked for by itself.
        _ if rest.is_empty() && marked => Act::Question,
        _ => Act::Request,
    }
}

/// Without what opens a clause and says nothing.
pub(super) fn unfilled<'a, 'b>(mut words: &'b [&'a Token]) -> &'b [&'a Token] {
    while let Some(at) =
        any(words, 0, FILLERS).or_else(|| words.first().filter(|t| t.lower == "sì").map(|_| 1))
    {
        let negation = words[0].is(&["only", "just", "solo"]) && at == words.len();
        if at == 0 || negation || words[0].lower == "è" {
            break;
        }
        words = &words[at..];
    }
    words
}

/// Whether a question is of what was done: "did I book …?", "hai disdetto …?".
pub(super) fn asks_past(words: &[&Token]) -> bool {
    let words = unfilled(words);
    let aux = any(
        words,
        0,
        &[
            "did/have/has/was/were/had",
            "ho/hai/ha/abbiamo/avete/hanno gia? <pp>",
            "qualcuno/nessuno/chi ha gia? <pp>",
        ],
    );
    let known = any(words, 0, TO_KNOW);
    let told = |at: usize| {
        reports(&words[at..]).is_some()
            || find(&words[at..], 4, &["ho/hai/ha/abbiamo/avete/hanno gia? <pp>"]).is_some()
    };
    aux.is_some()
        && any(words, 0, &["have you/i got"]).is_none()
        && words.iter().skip(1).any(|t| is_past(&t.norm) || is_participle(&t.norm) || words[0].is(&["did"]))
        || known.is_some_and(told)
}

/// Whether a question begins with a question word, by itself or behind "I'd like to know".
pub(super) fn asks_what(words: &[&Token]) -> bool {
    let words = unfilled(words);
    let known = any(words, 0, TO_KNOW).or_else(|| {
        let at = any(words, 0, WISHES)?;
        any(words, at, TO_KNOW)
    });
    match known {
        Some(at) => words.get(at - 1).is_some_and(|t| WH.contains(&t.norm.as_str())),
        None => !words.is_empty() && wh(words),
    }
}

fn wh(words: &[&Token]) -> bool {
    let prepositions = [
        "a", "in", "at", "for", "per", "da", "di", "con", "with", "from", "on", "until", "fino", "to", "by",
        "entro",
    ];
    let at = usize::from(words[0].is(&prepositions) && words.len() > 2);
    let Some(first) = words.get(at) else { return false };
    if at == 0 && first.is(&["che"]) {
        return words.get(1).is_some_and(|t| !t.is(&["ne", "io", "lui", "lei"]));
    }
    if at == 1 && first.is(&["che"]) {
        return words.get(2).is_some_and(|t| t.is(&["ora", "ore", "punto", "giorno", "piano", "cosa"]));
    }
    let about = any(words, 0, &["how about", "what about", "how/what about <ing>"]).is_some();
    WH.contains(&first.norm.as_str()) && !about
}

/// Whether the clause forbids, or says that something is not wanted.
fn negated(words: &[&Token], marked: bool) -> bool {
    if any(
        words,
        0,
        &[
            "not/non only/solo/soltanto/solamente",
            "no problem/problema/thanks/grazie/worries",
            "niente male/paura",
        ],
    )
    .is_some()
    {
        return false;
    }
    let cannot = any(words, 0, CANNOT).is_some()
        && any(
            words,
            0,
            &[
                "i/we don/do/dont t/not? have to",
                "non ho/abbiamo piu? bisogno/intenzione",
                "non ti/vi/le? ho/abbiamo chiesto",
                "i/we didn/did t/not ask/want/say/mean",
                "non c è bisogno/necessita",
            ],
        )
        .is_none();
    if !cannot && any(words, 0, NOT).is_some() {
        return !(marked
            && any(words, 0, &["don/dont t? you/i/we", "don/dont"])
                .is_some_and(|at| at > 1 && words[at - 1].is(&["you", "i", "we"])));
    }
    if words[0].is(&["non"]) && !cannot {
        let verb = words.iter().skip(1).find(|t| {
            !t.is(&[
                "mi", "ti", "ci", "vi", "lo", "la", "li", "le", "ne", "gli", "me", "te", "ce", "si",
                "glielo", "piu", "ancora",
            ])
        });
        // "Non prenotate", "non prenoti": an order to those who are addressed so.
        let plural =
            |t: &Token| ["ate", "ete", "ite"].iter().any(|e| t.norm.ends_with(e)) && t.norm.len() > 5;
        let polite = |t: &Token| {
            !marked && lexicon::may_be_action(&t.features().concepts) && t.norm.ends_with(['i', 'a'])
        };
        if verb.is_some_and(|t| is_infinitive(&t.norm) || plural(t) || polite(t)) {
            return true;
        }
    }
    let Some((at, _)) = find(words, words.len(), NOT_INSIDE) else { return false };
    let before = &words[..at];
    // "… because the lights do not work", "per non perdere …", "se non …": an account, a purpose, a case.
    let account =
        before.iter().any(|t| t.is(&["because", "perche", "che", "that", "who", "which", "since", "saying"]));
    let purpose = before.last().is_some_and(|t| t.is(&["per", "as", "so", "se", "if", "order"]));
    let free = before.iter().all(|t| {
        lexicon::is_stop(&t.norm) || lexicon::is_measure(&t.norm) || dated(t) || lexicon::is_chat(&t.norm)
    });
    let asked = words[at].is(&["not", "di", "che"])
        || before
            .iter()
            .any(|t| t.is(&["you", "better", "meglio", "preferisco", "preferirei", "rather", "prefer"]));
    !account && !purpose && (free || asked)
}

fn dated(token: &Token) -> bool {
    const DAYS: &[&str] = &[
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "lunedi",
        "martedi",
        "mercoledi",
        "giovedi",
        "venerdi",
        "sabato",
        "domenica",
        "tomorrow",
        "yesterday",
        "tonight",
        "ieri",
        "domani",
        "last",
        "next",
        "ago",
        "scorso",
        "scorsa",
        "prossimo",
        "prossima",
        "recently",
        "recentemente",
        "earlier",
        "previously",
        "already",
        "gia",
        "summer",
        "winter",
        "estate",
        "inverno",
        "ad",
        "during",
    ];
    token.digit() || super::dates::month(&token.norm).is_some() || DAYS.contains(&token.norm.as_str())
}

/// Whether somebody else is to be told, asked or written to.
fn tells(words: &[&Token]) -> bool {
    let Some(at) = any(words, 0, TELLS) else { return false };
    let verb = words[0];
    let rest = &words[at..];
    let writes = at > 1;
    if verb.is(&["let"]) {
        return rest.first().is_some_and(|t| !t.is(&["me", "us", "s", "know"]))
            && rest.iter().take(5).any(|t| t.is(&["know"]));
    }
    if writes
        && !verb.is(&[
            "write", "send", "draft", "compose", "prepare", "forward", "drop", "shoot", "scrivi", "scrivere",
            "manda", "mandare", "invia", "inviare", "prepara", "spedisci",
        ])
    {
        // "Chiedi a Marco di …", not "segnala al piano 3 …"; "report to …".
        let somebody = rest.first().is_some_and(|t| {
            person(t) || t.is(KIN) || t.is(&["tutti", "capo", "responsabile", "ufficio", "hr", "team", "the"])
        });
        return somebody || verb.is(&["say", "reply", "fai", "fa", "fate", "far"]);
    }
    if writes || is_told_by_its_end(verb) {
        return true;
    }
    let Some(who) = rest.first() else { return false };
    if who.is(&["me", "us", "for", "whether", "if", "about"]) {
        return false;
    }
    let complement = rest.iter().skip(1).take(5).any(|t| {
        t.is(&[
            "that", "to", "about", "if", "whether", "i", "we", "he", "she", "how", "when", "what", "di",
            "che", "se", "it", "for", "of",
        ])
    });
    let named = person(who)
        || who.is(KIN)
        || who.is(THEY)
        || who.is(&["him", "them", "il", "la", "i", "gli", "le", "the", "all", "tutti", "everyone", "hr"]);
    named && (complement || person(who) || who.is(&["him", "her", "them"]))
}

fn is_told_by_its_end(verb: &Token) -> bool {
    verb.is(&[
        "digli",
        "dille",
        "ditegli",
        "scrivigli",
        "scrivile",
        "avvisalo",
        "avvisala",
        "avvertilo",
        "informalo",
        "chiedigli",
        "chiedile",
        "rispondigli",
        "rispondile",
        "ricordagli",
        "ricordale",
    ])
}

fn person(token: &Token) -> bool {
    lexicon::is_first_name(&token.norm) && token.capital()
        || token.capital() && !token.first && !token.digit() && super::dates::month(&token.norm).is_none()
}

/// Whether the clause repeats what somebody else said.
fn quotes(words: &[&Token]) -> bool {
    let by = any(words, 0, &["according to", "secondo"]);
    if by
        .is_some_and(|at| words.get(at).is_some_and(|t| person(t) || t.is(KIN) || t.is(&["the", "il", "la"])))
    {
        return true;
    }
    let Some((at, to)) = find(words, 6, SAID) else { return false };
    // Somebody who speaks, not the speaker.
    let before = &words[..at];
    if any(words, at, &["c è scritto", "è scritto", "ce scritto"]).is_some() {
        return true;
    }
    if before.iter().all(|t| t.is(&["mi", "ci", "qui", "here", "it", "li"]))
        && words[at].is(&["dice", "dicono", "says", "è"])
    {
        return true;
    }
    if before.is_empty() || before.iter().any(|t| t.is(&["i", "we", "you", "ho", "to"])) {
        // "Mi ha detto di prenotare": nobody is named.
        return words[at].is(&["mi", "ci", "ha", "hanno", "dice", "dicono"])
            && before.is_empty()
            && words[at..to].len() > 1;
    }
    let someone = before
        .iter()
        .any(|t| person(t) || t.is(KIN) || t.is(THEY) || t.is(&["boss", "capo", "the", "il", "la", "it"]));
    let wants = words.get(to).is_some_and(|t| t.is(&["for", "about"]));
    someone && !wants
}

/// Whether a clause speaks of what somebody else wants or does.
fn third(words: &[&Token]) -> bool {
    let Some(at) = somebody(words) else { return false };
    let adverbs = [
        "also", "really", "just", "still", "always", "anche", "non", "ci", "mi", "gli", "le", "lo", "la",
        "ne", "would", "probably", "and", "e",
    ];
    let mut i = at;
    while words.get(i).is_some_and(|t| t.is(&adverbs)) && i < at + 3 && any(words, i, THIRD).is_none() {
        i += 1;
    }
    // "My screen is black": a thing wants nothing.
    let thing = words.iter().take(3).any(|t| t.is(KIN)) || words[0].is(&["the", "il", "la", "i", "le"]);
    let person =
        words[..at].iter().any(|t| t.is(PEOPLE) || lexicon::is_first_name(&t.norm)) || words[0].is(THEY);
    if thing && !person {
        return any(words, i, WANT).is_some();
    }
    any(words, i, THIRD).is_some() || to_whom(words)
}

const PEOPLE: &[&str] = &[
    "brother",
    "sister",
    "wife",
    "husband",
    "mother",
    "father",
    "son",
    "daughter",
    "friend",
    "friends",
    "colleague",
    "colleagues",
    "boss",
    "manager",
    "team",
    "assistant",
    "client",
    "customer",
    "partner",
    "neighbour",
    "neighbor",
    "boy",
    "girl",
    "cousin",
    "uncle",
    "aunt",
    "kids",
    "children",
    "parents",
    "mom",
    "dad",
    "director",
    "teacher",
    "doctor",
    "tenant",
    "guest",
    "fratello",
    "sorella",
    "moglie",
    "marito",
    "madre",
    "padre",
    "figlio",
    "figlia",
    "amico",
    "amica",
    "amici",
    "collega",
    "colleghi",
    "colleghe",
    "capo",
    "responsabile",
    "assistente",
    "cliente",
    "clienti",
    "vicino",
    "vicina",
    "ragazzo",
    "ragazza",
    "cugino",
    "cugina",
    "zio",
    "zia",
    "figli",
    "genitori",
    "mamma",
    "papa",
    "direttore",
    "direttrice",
    "nonna",
    "nonno",
    "ospite",
    "fidanzata",
    "fidanzato",
    "compagno",
    "compagna",
    "socio",
    "socia",
];

const WANT: &[&str] = &[
    "wants/needs/wishes/wishes/would/prefers/intends/hopes/plans/asks/requests",
    "want/wish",
    "has/have asked/to",
    "vuole/vogliono/vorrebbe/vorrebbero/desidera/desiderano/chiede/chiedono/preferisce/intende/voleva/volevano",
    "ha/hanno bisogno/chiesto",
];

/// "A Luca serve …", "gli serve …".
fn to_whom(words: &[&Token]) -> bool {
    end(words, 0, "a/ad * * serve/servono/servirebbe/servirebbero/piacerebbe/occorre").is_some()
        || end(words, 0, "a/ad * serve/servono/servirebbe/servirebbero/piacerebbe/occorre").is_some()
        || end(words, 0, "a/al/alla mio/mia/nostro/nostra * serve/servono/servirebbe/piacerebbe/occorre")
            .is_some()
        || end(words, 0, "gli/le serve/servono/servirebbe/piacerebbe/occorre").is_some()
}

/// Where the words for somebody else that open a clause end.
fn somebody(words: &[&Token]) -> Option<usize> {
    if to_whom(words) {
        return Some(1);
    }
    let first = words.first()?;
    if first.is(THEY) {
        return Some(1);
    }
    let article = usize::from(first.is(&["il", "la", "i", "le", "a", "un", "una", "uno", "the"]));
    if words.get(article).is_some_and(|t| t.is(KIN)) {
        let name = words.get(article + 2).is_some_and(|t| t.capital());
        return Some(article + 2 + usize::from(name));
    }
    if article == 1 && words.get(1).is_some_and(|t| !t.digit()) {
        let of = end(words, 2, "of/di mine/mio/ours/mine");
        let kin = end(
            words,
            1,
            "mio/mia/friend/colleague/collega/amico/amica/cliente/customer/client/capo/boss/manager/director/direttore *",
        );
        return of.or(kin.map(|_| 2)).or(Some(2).filter(|_| any(words, 2, THIRD).is_some()));
    }
    // The first word has a capital anyway: a name is known, or has another behind it.
    let mut i = 0;
    while words.get(i).is_some_and(|t| t.capital() && !t.is(&["i", "a", "e"])) && i < 3 {
        i += 1;
    }
    let known = lexicon::is_first_name(&first.norm);
    let verb = |t: &&&Token| {
        t.is(&[
            "wants", "needs", "wishes", "takes", "asks", "books", "would", "has", "is", "will", "vuole",
            "vorrebbe", "desidera", "ha", "deve", "prende", "avrebbe", "chiede", "dovrebbe", "vogliono",
            "and", "e",
        ])
    };
    let more =
        if words.get(1).is_some_and(|t| t.is(&["and", "e"])) && words.get(2).is_some_and(|t| t.capital()) {
            3
        } else {
            i
        };
    (i > 0 && (known || i > 1 || words.get(1).as_ref().is_some_and(verb))).then_some(more)
}

/// Whether a clause tells what was; what went wrong is a state that somebody may want mended.
fn reports(words: &[&Token]) -> Option<Act> {
    const TROUBLE: &[&str] = &[
        "lost",
        "broke",
        "broken",
        "forgot",
        "forgotten",
        "stolen",
        "stole",
        "damaged",
        "crashed",
        "failed",
        "stopped",
        "perso",
        "persa",
        "rotto",
        "rotta",
        "dimenticato",
        "rubato",
        "danneggiato",
        "smarrito",
        "smarrita",
        "bloccato",
        "bloccata",
        "smesso",
    ];
    let act = |t: &Token| if t.is(TROUBLE) { Act::Statement } else { Act::Report };
    for i in 0..words.len().min(12) {
        let t = words[i];
        if i > 0
            && (is_verb(t) && !is_past(&t.norm) && !is_participle(&t.norm) && !t.is(&["had", "have"]))
            && words[..i].iter().all(|w| !w.is(&["i", "we", "ho", "abbiamo", "ve"]))
            && !dated(t)
        {
            return None;
        }
        if t.is(&["because", "perche", "che", "that", "which", "who"]) {
            return None;
        }
        if t.is(&["i", "we", "you"]) {
            let mut k = i + 1;
            while words.get(k).is_some_and(|t| {
                t.is(&[
                    "already", "just", "also", "never", "once", "recently", "only", "then", "have", "had",
                    "ve", "d", "once", "actually", "usually", "always", "even",
                ])
            }) && k < i + 4
            {
                k += 1;
            }
            let verb = words.get(k)?;
            let polite =
                verb.is(&["wanted", "hoped", "needed", "wondered", "read", "put", "cut"]) && k == i + 1;
            return (is_past(&verb.norm) && !polite).then(|| act(verb));
        }
        let aux = t.is(&[
            "ho", "hai", "abbiamo", "avete", "hanno", "avevo", "avevamo", "aveva", "ha", "sono", "siamo",
            "ero", "eravamo",
        ]);
        if aux {
            let mut k = i + 1;
            while words.get(k).is_some_and(|t| {
                t.is(&["gia", "appena", "mai", "sempre", "anche", "solo", "poi", "non", "pure", "proprio"])
            }) {
                k += 1;
            }
            let verb = words.get(k).filter(|t| is_participle(&t.norm));
            let to_be = t.is(&["sono", "siamo"])
                && verb.is_some_and(|t| {
                    !t.is(&["stato", "stata", "stati", "andato", "andata", "andati"])
                        && !words[..i].iter().any(|w| w.is(&["mi", "ci"]))
                });
            if let Some(verb) = verb.filter(|_| !to_be) {
                let others =
                    t.is(&["ha", "hanno", "aveva"]) && words[..i].iter().any(|w| w.is(&["mi", "ci"]));
                return Some(if others { Act::Statement } else { act(verb) });
            }
        }
        // "Prendevo", "chiedevamo"; "prenotai".
        let imperfect = ["avo", "evo", "ivo", "avamo", "evamo", "ivamo"].iter().any(|e| t.norm.ends_with(e))
            && t.norm.len() > 5
            && (t.first || !t.capital())
            && !dated(t)
            && !t.is(&[
                "nuovo",
                "arrivo",
                "attivo",
                "motivo",
                "preventivo",
                "indicativo",
                "dispositivo",
                "bravo",
            ]);
        let once =
            t.norm.len() > 6 && t.norm.ends_with("ai") && lexicon::may_be_action(&t.features().concepts);
        if (imperfect || once) && (i == 0 || dated(words[i - 1]) || lexicon::is_stop(&words[i - 1].norm)) {
            return Some(Act::Report);
        }
        // "Luca booked …", "my payment failed".
        if i > 0 && i <= 3 && is_past(&t.norm) && !is_verb(words[0]) {
            let named = words[..i].iter().any(|w| person(w) || w.is(THEY));
            let owned = words[0].is(KIN) || words[0].is(&["the", "il", "la"]);
            if named {
                return Some(act(t));
            }
            if owned {
                return Some(Act::Statement);
            }
        }
    }
    None
}

/// Whether some word is a verb, so that the clause is no ellipsis of a request.
fn says(words: &[&Token]) -> bool {
    words.iter().enumerate().any(|(n, t)| {
        let subject = t.is(&["i", "we", "you", "he", "she", "they"]) && t.norm.len() + n > 1 || t.raw == "I";
        let doing = t.norm.len() > 5 && t.norm.ends_with("ing") && is_verb(t) && n > 0;
        subject && words.get(n + 1).is_some_and(|next| !dated(next)) || doing && !t.capital()
    })
}

/// "Let Marco book …", "have Anna cancel …": somebody else is to do it.
fn causes(words: &[&Token]) -> bool {
    let verb = words[0].is(&["let", "have", "get", "make", "lascia", "fai", "fa"]);
    let who = words
        .get(1)
        .is_some_and(|t| person(t) || t.is(&["him", "her", "them"]) || lexicon::is_first_name(&t.norm));
    let then = words.iter().skip(2).take(2).any(|t| is_verb(t) || t.is(&["to"]));
    verb && who && then
}

/// "Prenderò ferie", "andremo a Roma".
fn future(words: &[&Token]) -> bool {
    const WISHED: &[&str] = &["vorrei", "gradirei", "preferirei", "desidererei"];
    let would = |t: &Token| t.norm.len() > 6 && t.norm.ends_with("rei") && !t.is(WISHED);
    if words.iter().take(2).any(|t| would(t) && is_verb(t)) {
        return true;
    }
    words.iter().take(3).any(|t| {
        t.lower.ends_with("rò") && t.norm.len() > 3
            || t.norm.ends_with("remo") && t.norm.len() > 6 && t.norm != "estremo" && t.norm != "supremo"
    })
}

/// "Mi prenoti un tavolo?", "prenoti la sala?": who is asked does it.
pub(super) fn asked_to(words: &[&Token]) -> bool {
    let clitics = ["mi", "ci", "me", "ce", "lo", "la", "li", "le", "ne", "ti", "te", "gliela", "glielo"];
    let Some(at) = words.iter().position(|t| !t.is(&clitics)) else { return false };
    let verb = words[at];
    let ends = verb.norm.len() > 3 && verb.norm.ends_with('i') && !verb.capital() | verb.first;
    let known = ["hai", "sei", "sai", "vai", "fai", "stai", "devi", "avrai", "giorni", "ieri", "oggi"];
    let plural = verb.norm.len() > 5 && ["ate", "ete", "ite"].iter().any(|e| verb.norm.ends_with(e));
    (ends || plural || verb.is(&["fai", "dai"])) && !verb.is(&known[..4]) && (at > 0 || is_verb(verb))
}

/// Whether a clause begins with something to be done.
pub(super) fn orders(words: &[&Token]) -> bool {
    let words = unfilled(words);
    let Some(first) = words.first() else { return false };
    let object = words.get(1).is_some_and(|t| {
        t.is(&[
            "me", "us", "a", "an", "the", "my", "our", "some", "all", "every", "un", "uno", "una", "il",
            "lo", "la", "i", "gli", "le", "mi", "ci", "dei", "delle", "del", "it", "them", "him", "tutti",
            "tutte", "this", "that", "up", "another",
        ])
    });
    let noun = !first.features().concepts.is_empty() && !lexicon::may_be_action(&first.features().concepts);
    let closed = lexicon::is_stop(&first.norm)
        || lexicon::is_chat(&first.norm)
        || lexicon::is_asking(&first.norm)
        || lexicon::is_measure(&first.norm)
        || dated(first)
        || first.digit();
    let clitic = first.norm.len() > 6
        && ["ami", "imi", "emi", "aci", "ici", "eci", "alo", "ala", "ilo", "ila", "amelo", "imelo"]
            .iter()
            .any(|e| first.norm.ends_with(e))
        && !noun;
    let plural = first.norm.ends_with('s') && !first.norm.ends_with("ss");
    // "Cancelling it was a mistake", "disdire è stato un errore".
    let named = !told_form(first)
        || words.iter().skip(1).any(|t| t.lower == "è" || t.is(&["was", "were", "is", "era", "sarebbe"]))
            && is_infinitive(&first.norm);
    if named {
        return false;
    }
    let told = first.is(&[
        "tell", "give", "show", "let", "get", "make", "do", "dimmi", "dammi", "fammi", "dai", "fai", "fate",
        "fare",
    ]);
    told || is_verb(first) && !closed
        || clitic && !closed
        || object && !noun && !closed && !plural && (!first.capital() || first.first)
}

/// Whether a word has no form of a verb that only names what is done: "cancelling", "disdicendo".
fn told_form(token: &Token) -> bool {
    let ends = |end: &str| token.norm.len() > end.len() + 3 && token.norm.ends_with(end);
    let past = ends("ed") && is_past(&token.norm)
        || ["ato", "ata", "uto", "uta", "ito", "ita"].iter().any(|end| ends(end))
            && is_participle(&token.norm);
    !(past || ends("ing") || ends("ando") && token.norm != "comando" || ends("endo"))
}

/// Whether a part of a sentence orders something beside what stands before it, and not only how, or to be
/// told what came of it.
pub(super) fn orders_more(words: &[&Token]) -> bool {
    let own = unfilled(words);
    let closing = any(own, 0, MINDS).is_some()
        || any(
            own,
            0,
            &[
                "let me/us know",
                "fammi/facci/fatemi sapere",
                "make sure",
                "tell me/us if/when/once/whether/the",
                "confirm/conferma",
                "thank/thanks/grazie",
                "dimmi/dammi se/quando/conferma",
            ],
        )
        .is_some();
    let content = own.iter().skip(1).any(|t| !lexicon::is_stop(&t.norm) && !dated(t));
    !closing && content && orders(own)
}

/// Whether a clause says how things are.
fn states(words: &[&Token]) -> bool {
    let there = any(words, 0, &["there is/are/s", "c è", "ci sono", "ce"]).is_some();
    let copula = |t: &Token| {
        t.lower == "è"
            || t.is(&[
                "is", "are", "am", "isn", "aren", "doesn", "sono", "siamo", "non", "works", "has", "deve",
                "hanno", "ha", "was", "were", "won", "cannot",
            ])
    };
    !there && words.len() > 1 && words.iter().take(6).skip(1).any(|t| copula(t))
        || !there && words[0].is(&["siamo", "sono", "non", "è", "it", "we", "si"])
}

/// Whether a word is part of a day or says when.
pub(super) fn is_day(token: &Token) -> bool {
    dated(token) && !token.digit()
        || token.digit() && token.norm.trim_end_matches(|c: char| c.is_alphabetic()).len() <= 2
}

/// Whether a clause only wants to be told something.
pub(super) fn tells_me(words: &[&Token]) -> bool {
    let words = unfilled(words);
    words.first().is_some_and(|t| {
        t.is(&[
            "tell",
            "show",
            "list",
            "check",
            "dimmi",
            "dirmi",
            "mostrami",
            "mostra",
            "elenca",
            "elencami",
            "controlla",
            "verifica",
            "fammi",
            "let",
            "give",
            "dammi",
            "what",
            "how",
            "when",
            "who",
            "where",
            "which",
            "quanti",
            "quanto",
            "quante",
            "chi",
            "dove",
            "quando",
            "quale",
            "quali",
            "find",
            "search",
            "cerca",
            "trova",
        ])
    })
}
