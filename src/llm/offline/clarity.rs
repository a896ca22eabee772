//! Decides whether a write is clearly requested: the verb, the tool's vocabulary and its values explain every
//! word. An unexplained word may change the meaning, so the write then needs confirmation.

use std::rc::Rc;

use super::date_expression::DateExpressionKind;
use super::doubts::is_foreign_lead;
use super::index::polite_lead_span;
use super::lexicon;
use super::schema::{ArgumentField, ArgumentKind};
use super::slots::Filled;
use super::source::SourceText;
use super::text::{self, Features, Token, features, fold, name_words};
use crate::language::function_words::BUT;
use crate::language::numbers;
use crate::llm::ToolSpec;

/// Light verbs without a meaning of their own: "make a booking", "take three days off".
const LIGHT_VERBS: &str = "\
make take get have keep hold tieni tenere tenete do put give go going let help would love prefer wish hope try \
looking arrange start starting happen proceed ahead fare faccia faresti prendere prendo prendi avere mettere \
metti dare desidero desidererei gradirei piacerebbe intendo andare aiutami aiutarmi procedi riesci \
riusciresti occupati potrei gonna wanna partire beginning ending possible possibile fate fatemi facciamo mettimi vado vai inizia iniziano comincia cominciano starts begins fai fammi";

/// What people do with what they ask for: "a book to read", "the car to drive to Rome".
const ACTIVITIES: &str = "\
plan planning see use listen listening hear read reading watch watching eat drink drive wear sign ascoltare sentire leggere guardare vedere mangiare bere \
guidare usare";

/// Words around a request: "one question", "a hand with this", "it would be appreciated".
const WORDS_ABOUT_REQUESTS: &str = "\
mano hand aiuto domanda question assistant assistente bot appreciate appreciated appreciation";

/// Verbs that carry out what a noun names: "record the sale of 2 jugs", "create a request".
const CARRYING_OUT_VERBS: &str = "\
record register enter file submit place process perform execute carry complete create schedule arrange organize organise registra \
registrare registrami inserisci inserire effettua effettuare esegui eseguire inoltra inoltrare compila crea creare fissa fissare \
organizza organizzare enregistre enregistrer effectue effectuer erfasse erfassen efectua efectuar registrar";

/// Verbs that note something, which may not be there yet: "segna 2 teiere".
const NOTING_VERBS: &str = "note log mark segna segnare segnami annota annotare annotami";

/// Words of manner, urgency and praise: they do not change the action.
const MANNER_WORDS: &str = "\
asap now adesso ora soon quickly quick immediately urgently urgent urgente urgentemente subito presto appena rapidamente \
velocemente fretta hurry kindly gentilmente cortesemente cortese possible possibile again nuovamente nuovo \
nuova right away straight directly direttamente nice good great lovely wonderful perfect bel bella bello \
buon buona buono ottimo ottima really very actually simply quietly much lot lots advance anticipo tante \
mille infinite well finally semplicemente davvero proprio intanto magari soltanto solo only nur seulement solamente uniquement whole intero \
interi intera total totale following seguente seguenti exactly esattamente precisely necessary necessario \
kind gentile sir madam dear caro cara everyone folks guys morning welcome \
cheers thx pls plz grazie cortesia favore anticipatamente regards saluti \
cordiali max circa";

/// Containers and units by which things are counted.
const COUNTER_NOUNS: &str = "\
copy copia box boxes pack packs packets bottle bottles pieces piece copies units kg kilos liters bags cans pairs sets sheets items \
scatole scatola pacchi confezioni confezione bottiglie pezzi copie chili litri risme fogli coppie posti seats tickets \
biglietti people persons adults kids guests persone adulti ospiti bambini children";

/// Persons with whom or for whom something is done. A tool may take one of them as an argument.
const COMPANIONS: &str = "\
wife husband partner girlfriend boyfriend brother sister mother father mom mum dad son daughter uncle aunt \
boss manager friend colleague client moglie marito compagno compagna fidanzato fidanzata fratello sorella \
madre padre mamma papa figlio figlia zio zia capo amico amica collega cliente nonna nonno";

/// Groups of such persons.
const COMPANION_GROUPS: &str = "\
family families kids children parents friends team colleagues guests famiglia bambini figli genitori amici \
squadra colleghi ospiti myself ourselves us me noi mio mia";

/// Words that introduce a reason.
const REASON_CUES: &str = "\
because since perche poiche siccome dato visto cause cosi";

/// Words that negate a part of the request.
const NEGATION_CUES: &str = "\
not non never mai unless except tranne eccetto salvo instead invece without senza cannot rather piuttosto \
but ma";

/// Verbs that turn a negation into an emphatic request ("don't forget to …").
const FORGET_VERBS: &str = "\
forget dimenticare dimenticarti dimenticate scordare scordarti hesitate";

/// Words that add another request.
const ADDITION_CUES: &str = "\
please also anche puoi potresti can could then poi inoltre";

/// Words for a part of the day next to a time.
const DAY_PARTS: &str = "\
sera serata mattina mattino mattinata pomeriggio notte evening morning afternoon night tonight stasera \
stamattina oclock clock ore ora pm am dinner lunch cena pranzo noon";

/// The vocabulary that explains words other than values: the texts of the tool and its scene.
pub(super) struct ToolVocabulary {
    words: Vec<Rc<Features>>,
    /// The first word of the tool's name: its action.
    verb: Option<Rc<Features>>,
    /// Whether some argument is a person's name.
    names_person: bool,
    /// Whether some argument is the employee whom the tool serves.
    serves_employee: bool,
    /// Whether some argument is a time of day.
    takes_time: bool,
    /// Whether some argument is a day.
    takes_day: bool,
}

impl ToolVocabulary {
    /// Collects the vocabulary of a tool, of the tools `beside` it, and of its scene's name and description.
    pub fn of_tool(
        tool: &ToolSpec,
        fields: &[ArgumentField],
        beside: &[&ToolSpec],
        scene: &str,
        about: &str,
    ) -> Self {
        let mut norms: Vec<String> = name_words(scene);
        for other in std::iter::once(&tool).chain(beside) {
            norms.extend(name_words(&other.name));
            norms.extend(content_norms(&other.description));
        }
        norms.extend(content_norms(about));
        let mut all: Vec<Rc<Features>> = norms.iter().map(|norm| features(norm)).collect();
        for field in fields {
            all.extend(field.cues.iter().chain(&field.hints).cloned());
            if let ArgumentKind::Enum(choices) = &field.kind {
                all.extend(choices.iter().flat_map(|c| &c.words).flatten().map(|w| features(w)));
            }
        }
        all.retain(|word| !lexicon::is_stop_word(&word.norm));
        all.sort_by(|a, b| a.norm.cmp(&b.norm));
        all.dedup_by(|a, b| a.norm == b.norm);
        Self {
            words: all,
            verb: name_words(&tool.name).first().map(|verb| features(verb)),
            names_person: fields.iter().any(|f| f.kind == ArgumentKind::Person),
            serves_employee: fields.iter().any(|f| {
                f.kind == ArgumentKind::Person && f.named(&["employee", "dipendente", "staff", "worker"])
            }),
            takes_time: fields.iter().any(|f| matches!(f.kind, ArgumentKind::Time | ArgumentKind::DateTime)),
            takes_day: fields.iter().any(|f| f.kind == ArgumentKind::Date),
        }
    }

    /// Whether the vocabulary has one of these words or a similar one.
    pub fn mentions_any(&self, words: &[&str]) -> bool {
        words.iter().any(|w| self.words.iter().any(|own| own.similarity(&features(w)) > 0.8))
    }

    fn mentions(&self, token: &Token) -> bool {
        let word = token.features();
        self.words.iter().any(|own| own.similarity(&word) > 0.8)
    }
}

fn content_norms(text: &str) -> Vec<String> {
    let telling = |t: &Token| t.word && !lexicon::is_stop_word(&t.norm) && t.norm.len() > 1;
    text::tokens(text).iter().filter(|t| telling(t)).take(80).map(|t| t.norm.to_string()).collect()
}

/// The words that neither the vocabulary nor a value explains.
pub(super) fn unexplained_words(source: &SourceText, filled: &Filled, own: &ToolVocabulary) -> Vec<String> {
    let explained = explained_mask(source, filled);
    let is_foreign = matches!(crate::language::detect(source.text), Some("fr" | "de" | "es"));
    let is_foreign_infinitive = |norm: &str| {
        is_foreign && norm.len() > 4 && ["er", "ir", "re", "ar", "en"].iter().any(|end| norm.ends_with(end))
    };
    let mut out = Vec::new();
    let mut acted: Option<&str> = None;
    let mut object = None;
    // "… e la carta di credito" is no request by itself.
    if !expresses_wish(source, own, is_foreign) {
        out.push("…".to_owned());
    }
    // A tool that takes whole days does not know what a half one is.
    if own.takes_day && !own.takes_time {
        let is_part = |i: &usize| is_part_of_day(source, *i) || is_number_of_hours(source, filled, *i);
        let halves = (0..source.tokens.len()).filter(is_part);
        out.extend(halves.map(|i| source.tokens[i].raw.to_string()));
    }
    for (i, token) in source.tokens.iter().enumerate() {
        if explained[i] || is_foreign && says_nothing(token) {
            continue;
        }
        let name = token.digit() || (token.capital() && !token.first && !lexicon::is_stop_word(&token.norm));
        if own.serves_employee && is_other_beneficiary(source, i) {
            out.push(token.raw.to_string());
            continue;
        }
        let dated = source.found.taken[i];
        let new_date = dated && !is_restated(source, filled, i) && !lexicon::is_stop_word(&token.norm);
        if token.among(NEGATION_CUES) || new_date {
            out.push(token.raw.to_string());
            continue;
        }
        // The first verb led to the tool; another one is another request.
        let action = !name && lexicon::may_be_action(&token.features().concepts);
        if acted.is_none() && action {
            acted = Some(&token.norm);
            object = Some(i + 1);
            continue;
        }
        if is_part_of_word_pair(source, i)
            || dated
            || (!name && is_plain_word(token))
            || own.mentions(token)
            || (!name && is_neutral_word(source, i, own))
        {
            continue;
        }
        // "Fai lavare …": an infinitive is a verb too.
        let opens = || is_foreign && opens_after_leads(source, i);
        let verb = token.first || opens() || is_infinitive(&token.norm) || is_foreign_infinitive(&token.norm);
        if !name && (acted == Some(&token.norm) || acted.is_none() && verb) {
            acted = Some(&token.norm);
            object = Some(i + 1);
            continue;
        }
        let leads_value = is_foreign && acted.is_some() && filled.used.get(i + 1) == Some(&true);
        if (!name || leads_value && !token.digit()) && is_single_object(source, i, leads_value, &mut object) {
            continue;
        }
        out.push(token.raw.to_string());
    }
    out
}

/// Whether a token says that only a part of a day is meant: "half a day", "il pomeriggio del 14". Not "good morning".
fn is_part_of_day(source: &SourceText, i: usize) -> bool {
    const PARTS: &[&str] = &[
        "morning", "mornings", "afternoon", "afternoons", "evening", "mattina", "mattinata", "pomeriggio",
        "sera", "serata", "vormittag", "nachmittag", "matin", "matinee", "apres-midi", "soir", "tarde",
        "halbtags", "demi-journee",
    ];
    const HALVES: &[&str] =
        &["half", "mezza", "mezzo", "halber", "halben", "halbe", "media", "medio", "demi"];
    const DAYS: &[&str] =
        &["day", "days", "giornata", "giornate", "giorno", "tag", "tage", "jornada", "dia", "journee"];
    let before = |words: &[&str]| i > 0 && source.is(i - 1, words);
    let is_quoted = source.found.quoted.get(i).copied().unwrap_or_default();
    let is_half = source.is(i, HALVES) && (1..=2).any(|ahead| source.is(i + ahead, DAYS));
    !is_quoted && (is_half || source.is(i, PARTS) && !before(&["good", "guten", "schonen", "nice", "buona"]))
}

/// Whether a token is the unit of a number of hours that is no value: "two hours off on 15 June".
fn is_number_of_hours(source: &SourceText, filled: &Filled, i: usize) -> bool {
    const HOURS: &[&str] = &[
        "hour", "hours", "minute", "minutes", "ora", "ore", "minuti", "stunde", "stunden", "minuten",
        "heure", "heures", "hora", "horas", "minutos",
    ];
    let counts = |t: &Token| {
        t.digit() || numbers::word(&t.norm).is_some() || t.is(&["an", "un", "una", "une", "eine"])
    };
    let before = i.checked_sub(1).filter(|at| filled.used.get(*at) != Some(&true));
    source.is(i, HOURS) && before.is_some_and(|at| counts(&source.tokens[at]))
}

/// The tokens that are no words, or that a value, or the way in which it is said, explains.
fn explained_mask(source: &SourceText, filled: &Filled) -> Vec<bool> {
    let said = value_words(filled);
    let reason = reason_mask(source, filled);
    let preamble = preamble_mask(source, filled);
    let days = explained_days_mask(source, filled);
    let lead = polite_lead_span(&source.tokens);
    let is_explained = |(i, token): (usize, &Token)| {
        !token.word
            || filled.used.get(i).copied().unwrap_or(false)
            || said.iter().any(|word| token.norm == *word || is_same_number(&token.norm, word))
            || reason[i]
            || preamble[i]
            || days[i]
            || lead.contains(&token.start)
            || is_day_count(source, filled, i)
            || is_value_label(source, filled, i)
            || is_creator_name(source, filled, i)
            || is_part_of_do_not_forget(source, i)
    };
    source.tokens.iter().enumerate().map(is_explained).collect()
}

/// Whether two words are the same number: "24.50" and "24.5".
fn is_same_number(one: &str, other: &str) -> bool {
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
}

/// Whether a word only opens a request in a language of which few words are known.
fn says_nothing(token: &Token) -> bool {
    is_foreign_lead(token) && !token.among(NEGATION_CUES) && !token.is(&["ne", "n", "pas", "nicht"])
}

/// Whether only words of politeness and function words stand before a token.
fn opens_after_leads(source: &SourceText, i: usize) -> bool {
    source.tokens[..i]
        .iter()
        .filter(|t| t.word)
        .all(|t| is_foreign_lead(t) || lexicon::is_stop_word(&t.norm) || lexicon::is_pleasantry(&t.norm))
}

/// "Prenota un posto per …": whether a word is the single object noun after the verb that led to the tool.
/// `object` is the token after that verb until an object is found. `leads_value`: a value follows a noun of a language of which
/// few words are known ("Sperre Platz B3"); the planner compared it with the examples, which are not here.
fn is_single_object(source: &SourceText, i: usize, leads_value: bool, object: &mut Option<usize>) -> bool {
    let token = &source.tokens[i];
    let article = |k: usize| source.tokens[k].word && lexicon::is_stop_word(&source.tokens[k].norm);
    let alone = source.tokens.get(i + 1).is_none_or(|t| !t.word || lexicon::is_stop_word(&t.norm));
    let is_noun = alone && !super::candidates::is_amount(&token.norm) || leads_value && !token.first;
    is_noun && object.take().is_some_and(|from| (from..i).all(article))
}

/// Whether a word is somebody else for whom something is requested: "give my team Friday off", "vacation for all of us"; not in
/// "for my wife's birthday".
fn is_other_beneficiary(source: &SourceText, i: usize) -> bool {
    const GIVES: &[&str] = &["give", "grant", "get", "book", "dai", "date", "concedi", "da"];
    const ALL: &[&str] =
        &["all", "everyone", "everybody", "tutti", "tutte", "staff", "tous", "alle", "todos"];
    const BEFORE: &[&str] = &[
        "the", "my", "our", "whole", "entire", "all", "of", "il", "la", "i", "mio", "mia", "miei", "nostro",
        "nostra", "tutto", "tutta", "tutti", "l", "a", "ad", "al", "alla", "ai",
    ];
    const OWN: &[&str] = &["myself", "ourselves", "us", "me", "noi", "mio", "mia"];
    let token = &source.tokens[i];
    let is_group =
        token.is(ALL) || token.among(COMPANIONS) || (token.among(COMPANION_GROUPS) && !token.is(OWN));
    let lead = (0..i).rev().find(|before| !source.is(*before, BEFORE));
    let is_led = lead.is_some_and(|before| {
        let opens = || {
            before == 0 || !source.tokens[before - 1].word || source.is(before - 1, &["please", "you", "to"])
        };
        source.is(before, &["for", "per", "pour", "fur", "para"]) || (source.is(before, GIVES) && opens())
    });
    // "For my family trip", "per il compleanno".
    let ends = source.tokens.get(i + 1).is_none_or(|next| {
        !next.word || source.found.taken[i + 1] || (lexicon::is_stop_word(&next.norm) && next.norm != "s")
    });
    is_group && is_led && ends
}

/// Whether a word says nothing of what is ordered: a light verb, or a word of manner.
pub(super) fn is_light(norm: &str) -> bool {
    is_among(norm, LIGHT_VERBS) || is_among(norm, MANNER_WORDS)
}

/// Whether the word at `at` only says how something is counted: "a copy of the book".
pub(super) fn is_counter(words: &[&Token], at: usize) -> bool {
    let is_of = |next: &&Token| next.is(&["of", "di", "del", "dei", "della", "delle"]);
    words[at].among(COUNTER_NOUNS) && words.get(at + 1).is_some_and(is_of)
}

/// Whether a word is a verb that only carries out what a noun names.
pub(super) fn is_carrying_out(norm: &str) -> bool {
    is_among(norm, CARRYING_OUT_VERBS)
}

/// Whether a word is a verb that notes something.
pub(super) fn is_noting(norm: &str) -> bool {
    is_among(norm, NOTING_VERBS)
}

fn is_among(norm: &str, words: &str) -> bool {
    words.split_whitespace().any(|word| word == norm)
}

fn is_plain_word(token: &Token) -> bool {
    lexicon::is_stop_word(&token.norm)
        || lexicon::is_pleasantry(&token.norm)
        || lexicon::is_question_word(&token.norm)
        || lexicon::is_time_unit(&token.norm)
}

/// Whether a word belongs to "don't forget to …", which is no refusal.
fn is_part_of_do_not_forget(source: &SourceText, i: usize) -> bool {
    let token = &source.tokens[i];
    let urged = (i + 1..i + 4).any(|k| source.tokens.get(k).is_some_and(|t| t.among(FORGET_VERBS)))
        || token.among(FORGET_VERBS);
    urged && (token.among(NEGATION_CUES) || token.among(FORGET_VERBS) || token.lower == "don")
}

/// "Annual leave": whether a word and its neighbour have one meaning together.
fn is_part_of_word_pair(source: &SourceText, i: usize) -> bool {
    let pair = |a: usize, b: usize| {
        let words = (source.tokens.get(a), source.tokens.get(b));
        matches!(words, (Some(a), Some(b)) if lexicon::pair_meaning(&a.norm, &b.norm).is_some())
    };
    pair(i, i + 1) || (i > 0 && pair(i - 1, i))
}

/// Whether a word has the ending of an Italian infinitive.
fn is_infinitive(norm: &str) -> bool {
    norm.len() > 4 && ["are", "ere", "ire"].iter().any(|end| norm.ends_with(end))
}

/// Whether there is a verb of action or wish, either a known one or the first word.
fn expresses_wish(source: &SourceText, own: &ToolVocabulary, is_foreign: bool) -> bool {
    const WISH: &str = "vorrei voglio vogliamo vorremmo want wants need needs like serve servono servirebbe bisogno please puoi \
potresti can could would mi ci me";
    let mut words = source.tokens.iter().filter(|t| t.word);
    let opens = |t: &&Token| {
        is_foreign && (is_foreign_lead(t) || lexicon::is_stop_word(&t.norm))
            || lexicon::is_pleasantry(&t.norm)
    };
    let head = words.clone().find(|t| !opens(t));
    let verb = |t: &Token| own.verb.as_ref().is_some_and(|v| v.similarity(&t.features()) > 0.8);
    head.is_some_and(|t| !lexicon::is_stop_word(&t.norm) && (!own.mentions(t) || verb(t)) && !t.digit())
        || words.any(|t| {
            t.among(LIGHT_VERBS)
                || t.among(ACTIVITIES)
                || t.among(WISH)
                || lexicon::may_be_action(&t.features().concepts)
                || super::pronouns::is_suffixed(&t.norm)
        })
}

/// The normalised words of all values.
fn value_words(filled: &Filled) -> Vec<String> {
    let values = filled.values.values().chain(filled.several.iter().flat_map(serde_json::Map::values));
    let texts =
        values.filter_map(|v| v.as_str().map(str::to_owned).or_else(|| v.as_f64().map(|n| n.to_string())));
    let words = texts.flat_map(|t| fold(&t).split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    words.filter(|w| w.len() > 1 || w.chars().all(|c| c.is_ascii_digit())).collect()
}

/// Whether a word does not change the action: urgency, companions, light verbs, parts of the day next to a
/// time.
fn is_neutral_word(source: &SourceText, i: usize, own: &ToolVocabulary) -> bool {
    let token = &source.tokens[i];
    let before = i.checked_sub(1).map(|b| &source.tokens[b]);
    let mine = (i.saturating_sub(3)..i).any(|k| {
        source.is(
            k,
            &[
                "my", "our", "mio", "mia", "miei", "mie", "nostro", "nostra", "nostri", "for", "per", "with",
                "con",
            ],
        )
    });
    let kin = token.among(COMPANION_GROUPS) || (token.among(COMPANIONS) && !own.names_person);
    // "For my birthday", "per il mio compleanno": an occasion.
    let occasion = (i.saturating_sub(3)..i).any(|k| source.is(k, &["for", "per"]))
        && before
            .is_some_and(|t| t.is(&["my", "our", "mio", "mia", "nostro", "nostra", "miei", "mie", "nostri"]))
        && !token.among(COMPANIONS);
    // "A copy of the book": a counter noun.
    let counted =
        token.among(COUNTER_NOUNS) && source.is(i + 1, &["of", "di", "del", "dei", "della", "delle"]);
    let says_nothing =
        [LIGHT_VERBS, ACTIVITIES, CARRYING_OUT_VERBS, NOTING_VERBS, MANNER_WORDS, WORDS_ABOUT_REQUESTS]
            .iter()
            .any(|words| token.among(words));
    says_nothing
        || counted
        || (mine && kin)
        || occasion
        || (own.takes_time && token.among(DAY_PARTS))
        || super::pronouns::is_suffixed(&token.norm)
}

/// By token: whether it belongs to a reason that contains no request.
fn reason_mask(source: &SourceText, filled: &Filled) -> Vec<bool> {
    let tokens = &source.tokens;
    let mut out = vec![false; tokens.len()];
    let dated = |i: usize| source.found.taken.get(i).copied().unwrap_or(false);
    let used = |i: usize| filled.used.get(i).copied().unwrap_or(false);
    // "… to visit my parents", "… per andare al mare": a purpose after the values.
    let aims = |i: usize| {
        let verb = tokens.get(i + 1).is_some_and(|t| match tokens[i].norm.as_str() {
            "to" => super::candidates::is_verb(&t.norm),
            "per" => is_infinitive(&t.norm),
            _ => false,
        });
        verb && (0..i).any(used) && !(i..tokens.len()).any(used)
    };
    let opens = |i: usize| i > 0 && !dated(i + 1) && (tokens[i].among(REASON_CUES) || aims(i));
    let Some(first) = (0..tokens.len()).find(|i| opens(*i)) else { return out };
    let ends = |t: &Token| matches!(t.raw.as_str(), "." | "!" | "?" | ";");
    let last = (first..tokens.len()).find(|i| ends(&tokens[*i])).unwrap_or(tokens.len());
    let further = tokens[first + 1..last].iter().any(|t| t.among(ADDITION_CUES));
    let ordered = tokens[first + 1..last].windows(2).any(|pair| {
        (pair[0].raw == "," || pair[0].lower == "e" || pair[0].is(&["and"]))
            && lexicon::is_action(&pair[1].features().concepts)
    });
    if !further && !ordered {
        out[first..last].fill(true);
    }
    out
}

/// Whether a word labels the value next to it: "Targa AB123CD", "50 euro", "3 boxes of …".
fn is_value_label(source: &SourceText, filled: &Filled, i: usize) -> bool {
    let used = |k: usize| filled.used.get(k).copied().unwrap_or(false);
    let token = &source.tokens[i];
    let before = i.checked_sub(1).is_some_and(used);
    if super::number_arguments::is_currency(token) {
        return before || used(i + 1);
    }
    if before && token.among(COUNTER_NOUNS) {
        return source.found.numbers.iter().any(|n| n.last + 1 == i);
    }
    let link = |k: &usize| {
        let next = source.tokens.get(*k);
        next.is_some_and(|t| {
            t.lower == "è"
                || t.is(&["is", "number", "numero"])
                || matches!(t.raw.as_str(), ":" | "#" | "\"" | "«" | "“")
        })
    };
    let next = (i + 1..i + 4).find(|k| !link(k)).unwrap_or(i + 1);
    let value =
        source.tokens.get(next).is_some_and(|t| t.digit() || t.capital() || source.found.quoted[next]);
    // "Livello avanzato", "sede campus".
    let value = value || (next == i + 1 && used(next) && !lexicon::is_stop_word(&source.tokens[next].norm));
    // German nouns have capitals.
    let is_common = !token.capital() || (!token.first && crate::language::detect(source.text) == Some("de"));
    let noun = is_common && !token.digit() && !lexicon::is_action(&token.features().concepts);
    noun && value && used(next) && !source.found.taken[next]
}

/// Whether a word is the creator of the named thing: "Dubliners by James Joyce".
fn is_creator_name(source: &SourceText, filled: &Filled, i: usize) -> bool {
    let used = |k: usize| filled.used.get(k).copied().unwrap_or(false);
    let mut at = i;
    while at > 0 && source.tokens[at].capital() && i - at < 4 {
        at -= 1;
    }
    let before = (0..at).rev().find(|k| !matches!(source.tokens[*k].raw.as_str(), "\"" | "»" | "”"));
    at < i
        && source.is(at, &["by", "di", "of", "von", "de"])
        && before.is_some_and(|k| used(k) && !source.found.taken[k] && !source.tokens[k].digit())
}

/// Whether a sentence has neither a request nor a value: "I'm planning a trip", "my wallet was stolen".
fn is_background_sentence(source: &SourceText, first: usize, last: usize) -> bool {
    let words = source.span(first, last);
    let names = source.tokens[first..=last].iter().any(|t| {
        t.digit() || t.among(NEGATION_CUES) || (t.capital() && !t.first && !lexicon::is_stop_word(&t.norm))
    });
    let told = || {
        matches!(
            super::speech::act_of(words),
            super::speech::Act::Statement | super::speech::Act::Report | super::speech::Act::ThirdPerson
        )
    };
    super::speech::is_preamble(words) || (!names && told())
}

/// The text from the first sentence that is not background, used to detect its speech act.
pub(super) fn without_background(source: &SourceText, filled: &Filled) -> String {
    let background = preamble_mask(source, filled);
    let first = background.iter().position(|b| !b).unwrap_or(0);
    let from = (first..source.tokens.len()).find(|i| source.tokens[*i].word).unwrap_or(0);
    source.span(from, source.tokens.len().saturating_sub(1)).to_owned()
}

/// By token: whether it is part of a date expression that filled a value, or of excluded days, which fill
/// none.
fn explained_days_mask(source: &SourceText, filled: &Filled) -> Vec<bool> {
    let mut out = vec![false; source.tokens.len()];
    for expr in &source.found.date_expressions {
        let used = (expr.first..=expr.last).any(|i| filled.used.get(i).copied().unwrap_or(false));
        let is_excluded = matches!(expr.kind, DateExpressionKind::Excluded(..));
        if used || is_excluded {
            // "… but not on the 17th".
            let contrast = expr.first.checked_sub(1).filter(|before| is_excluded && source.is(*before, BUT));
            out[contrast.unwrap_or(expr.first)..=expr.last].fill(true);
        }
    }
    out
}

/// By token: whether it belongs to a background sentence, which only opens the conversation or states facts.
fn preamble_mask(source: &SourceText, filled: &Filled) -> Vec<bool> {
    let tokens = &source.tokens;
    let mut out = vec![false; tokens.len()];
    let mut first = 0;
    let ends = |t: &Token| matches!(t.raw.as_str(), "." | "!" | "?" | "\n");
    for end in (0..tokens.len()).filter(|i| ends(&tokens[*i])) {
        let used = (first..end).any(|i| filled.used.get(i).copied().unwrap_or(false));
        if end > first && !used && is_background_sentence(source, first, end - 1) {
            out[first..end].fill(true);
        }
        first = end + 1;
    }
    out
}

/// Whether a number counts the given days: "3 giorni" next to the dates.
fn is_day_count(source: &SourceText, filled: &Filled, i: usize) -> bool {
    let Some(number) = source.found.numbers.iter().find(|n| (n.first..=n.last).contains(&i)) else {
        return false;
    };
    let unit = source.tokens.get(number.last + 1);
    let days = source.found.days.iter().any(|d| filled.used.get(d.first).copied().unwrap_or(false));
    let counts = unit.is_some_and(|t| {
        lexicon::is_time_unit(&t.norm) || t.is(&["working", "lavorativi", "full", "interi"])
    });
    // "A" and "one" before a noun add nothing to the noun.
    let article = source.tokens[i].is(&["a", "an", "un", "una", "uno", "one"]);
    article || (counts && days && number.value.fract() == 0.0)
}

/// Whether an unused day or time repeats one that an argument uses: "Friday 12 June".
fn is_restated(source: &SourceText, filled: &Filled, i: usize) -> bool {
    let used =
        |first: usize, last: usize| (first..=last).any(|k| filled.used.get(k).copied().unwrap_or(false));
    let day = source.found.days.iter().find(|d| (d.first..=d.last).contains(&i));
    day.is_some_and(|day| source.found.days.iter().any(|o| o.date == day.date && used(o.first, o.last)))
        || source.found.times.iter().any(|h| (h.first..=h.last).contains(&i) && used(h.first, h.last))
}
