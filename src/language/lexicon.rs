//! A small lexicon: everyday words with the same meaning in several languages, and lists of words that carry
//! little meaning by themselves. It contains general vocabulary only and knows no scene.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::text;

/// One concept per line. `!` marks an action, as opposed to a subject.
const CONCEPTS: &str = include_str!("dictionary.txt");

/// Pairs of adjacent words with the meaning of one word of the dictionary.
const WORD_PAIRS: &[(&str, &str, &str)] = &[
    ("days", "off", "vacation"),
    ("day", "off", "vacation"),
    ("time", "off", "vacation"),
    ("week", "off", "vacation"),
    ("weeks", "off", "vacation"),
    ("annual", "leave", "vacation"),
    ("giorno", "libero", "vacation"),
    ("giorni", "liberi", "vacation"),
    ("dia", "libre", "vacation"),
    ("dias", "libres", "vacation"),
    ("freien", "tag", "vacation"),
    ("freie", "tage", "vacation"),
    ("tage", "frei", "vacation"),
    ("nome", "utente", "username"),
    ("user", "name", "username"),
    ("help", "desk", "ticket"),
    ("public", "holidays", "holidays"),
    ("bank", "holidays", "holidays"),
    ("public", "holiday", "holidays"),
    ("bank", "holiday", "holidays"),
    ("working", "day", "holidays"),
    ("working", "days", "holidays"),
    ("giorno", "lavorativo", "holidays"),
    ("giorni", "lavorativi", "holidays"),
    ("jour", "ouvre", "holidays"),
    ("jours", "ouvres", "holidays"),
    ("dia", "laborable", "holidays"),
    ("dias", "laborables", "holidays"),
    ("jour", "ferie", "holidays"),
    ("jours", "feries", "holidays"),
    ("nota", "spese", "expense"),
    ("sign", "up", "enroll"),
    ("sign", "me", "enroll"),
    ("what", "time", "quando"),
    ("che", "ora", "quando"),
    ("che", "ore", "quando"),
    ("a", "che", "quando"),
    ("busta", "paga", "salary"),
];

/// Function words and polite words of several languages, without accents.
const STOP_WORDS: &str = "\
a ad ai al all alla alle allo agli anche ancora c che ci come con cosa d da dal dall dalla dalle dallo dai dagli de dei del dell della \
delle dello degli di e ed era essere fa fare fai faccio fammi gli ha hai hanno ho i il in io l la le li lei lo loro lui ma me mi mia mie mio miei \
ne nei nel nell nella nelle nello negli no noi non nostra nostro vostra vostro vostri vostre o od per perche piu po poi prima puoi potresti potrei posso qual quale quali quella quelle \
quelli quello quel quei questa queste questi questo se sei si sia siamo sono sta stai sto su sua suo sul sull sulla sulle sui suoi te ti tra fra tu tua tuo tuoi tutti \
tutto un una uno va vi solo soltanto solamente voglio vogliamo vorrei vorremmo volevo sapere dimmi dire dammi dare grazie favore cortesia piacere gentilmente serve servono servirebbe bisogno \
devo deve dobbiamo puo potete dopo ora adesso allora quindi inoltre infine ecco salve ciao buongiorno buonasera ok va bene perfetto finora avere avrei avremmo sarebbe fosse stata stato \
fara farai faranno sara saranno avra avro ci c ce the an and or of to for from by on at with is are was were be been am i you he she it we they me my mine your his her its our their this that these those there here \
do does did doing have has had can could would should will shall may might must d s t ll re ve m not no yes if then than so as too also but please thanks thank hello hi hey \
want wanted pending like need needs tell give let know get got make made us just only some any into about over up out off after before what which how \
le les des du et ou je tu il nous vous mon ma mes est avec pour dans sur que qui quel quelle fait-il fera-t-il \
wird noch sind sont sospeso still encore todavia viele wieviele meinen meiner meinem habe hab kann muss nummer sagen sag decir dime abbiamo \
der die das und oder ich du er wir ihr ein eine einen einem mit fur von zu im ist bitte mein meine wie was \
el los las y o yo nosotros mi mis es con para por que cual una unos hace hara \
os as um uma e com para meu minha";

/// Question words: they distinguish reads from writes and reads from each other, but carry no subject.
const QUESTION_WORDS: &str = "quanti quante quanto quanta chi dove quando quali quale cosa come how many much who whom where when what which whose why perche \
combien quand qui quoi wer wann wo wieviel cuantos cuando quien donde quantos quem onde";

/// Units of time, and other words that occur in every domain.
const TIME_UNITS: &str = "\
giorno giorni giornata day days settimana settimane week weeks mese mesi month months anno anni year years ora ore \
hour hours tag tage tagen jour jours dia dias minuto minuti minute minutes mins time volta volte times number numero new nuovo nuova name cosa cose thing \
things night nights notte notti start starts begin begins inizia comincia";

/// Greetings, thanks and approval: polite words that request nothing.
const PLEASANTRIES: &str = "ciao salve buongiorno buonasera hello hi hey perfetto perfect ottimo bene great grazie thanks thank ok okay good morning \
evening afternoon buona giornata va d accordo capito benissimo fantastico bravo excellent super cool nice please scusa scusami sorry bonjour merci hallo danke hola gracias \
ola obrigado sera pomeriggio mille molte you very much tutto tante vielen dank schonen oui ja beaucoup muchas si yes certo sure arrivederci bye a presto addio there everyone tutti thx ty";

/// Words that refer back to something mentioned before.
pub(crate) const BACK_REFERENCES: &[&str] = &[
    "ne", "lo", "li", "it", "them", "that", "those", "same", "stesso", "stessa", "stessi", "stesse",
    "quello", "quella", "quei", "quelle", "quel", "quegli", "there",
];

/// Words that refer to a thing without naming it.
pub(crate) const VAGUE_NOUNS: &[&str] =
    &["qualcosa", "qualcuno", "niente", "nulla", "something", "anything", "nothing", "someone", "somebody"];

/// Common first names: two capitalised words that begin with one of them are a person.
const FIRST_NAMES: &str = "\
mario luca marco anna giulia giuseppe giovanni paolo francesca francesco laura sara matteo andrea alessandro alessandra elena chiara lucia stefano \
roberto davide simone federico federica maria antonio luigi carlo carla ugo rosa bruno dario enrico fabio giorgio ivan leo lorenzo martina michele \
nicola paola pietro riccardo silvia sergio valentina vincenzo claudia claudio daniele daniela elisa emma gianni irene marta monica nina alice aldo \
john jane bob tom ann anne mary james robert michael david richard joseph thomas charles daniel matthew mark paul steven kevin brian george edward \
peter susan karen nancy lisa betty helen sandra emily jack harry oliver william henry lucy grace kate sam alex ben max jim joe bill mike dave chris \
pierre jean marie claire hans klaus peter carlos jose juan pedro miguel luis ana carmen";

/// The concepts of the dictionary. It is read when a word's meaning is first asked for: all its words are stemmed.
#[derive(Default)]
struct Dictionary {
    words: HashMap<String, Vec<u16>>,
    stems: HashMap<String, Vec<u16>>,
    actions: HashSet<u16>,
    rows: Vec<Vec<&'static str>>,
}

impl Dictionary {
    fn read() -> Self {
        let mut dictionary = Self::default();
        let add = |map: &mut HashMap<String, Vec<u16>>, key: String, row: u16| {
            let list = map.entry(key).or_default();
            if !list.contains(&row) {
                list.push(row);
            }
        };
        for (number, line) in CONCEPTS.lines().enumerate() {
            let row = u16::try_from(number).unwrap_or(u16::MAX);
            let action = line.strip_prefix("! ");
            if action.is_some() {
                dictionary.actions.insert(row);
            }
            let words: Vec<&str> = action.unwrap_or(line).split_whitespace().collect();
            for word in &words {
                add(&mut dictionary.words, (*word).to_owned(), row);
                if word.len() >= 5 {
                    let (it, en) = text::stems(word);
                    add(&mut dictionary.stems, it, row);
                    add(&mut dictionary.stems, en, row);
                }
            }
            dictionary.rows.push(words);
        }
        dictionary
    }
}

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::read);

/// A list of words as a set, made when it is first asked.
pub(super) type WordSet = LazyLock<HashSet<&'static str>>;

static STOP_WORD_SET: WordSet = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
static QUESTION_WORD_SET: WordSet = LazyLock::new(|| QUESTION_WORDS.split_whitespace().collect());
static TIME_UNIT_SET: WordSet = LazyLock::new(|| TIME_UNITS.split_whitespace().collect());
static PLEASANTRY_SET: WordSet = LazyLock::new(|| PLEASANTRIES.split_whitespace().collect());
static FIRST_NAME_SET: WordSet = LazyLock::new(|| FIRST_NAMES.split_whitespace().collect());

/// The concepts of a word: by its form, otherwise by a stem.
pub(crate) fn concepts(norm: &str, it: &str, en: &str) -> Vec<u16> {
    let dictionary = &*DICTIONARY;
    if let Some(found) = dictionary.words.get(norm) {
        return found.clone();
    }
    if norm.len() < 5 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for stem in [it, en] {
        for row in dictionary.stems.get(stem).into_iter().flatten() {
            if !all.contains(row) {
                all.push(*row);
            }
        }
    }
    all
}

/// The single word with the meaning of two adjacent words.
pub(crate) fn pair_meaning(first: &str, second: &str) -> Option<&'static str> {
    WORD_PAIRS.iter().find(|(a, b, _)| *a == first && *b == second).map(|p| p.2)
}

/// Returns whether the word is a unit of time, which occurs in every domain and is the subject of none.
pub(crate) fn is_time_unit(norm: &str) -> bool {
    TIME_UNIT_SET.contains(norm)
}

/// Returns whether every meaning of the word is an action.
pub(crate) fn is_action(concepts: &[u16]) -> bool {
    !concepts.is_empty() && concepts.iter().all(|c| DICTIONARY.actions.contains(c))
}

/// Returns whether some meaning of the word is an action.
pub(crate) fn may_be_action(concepts: &[u16]) -> bool {
    concepts.iter().any(|c| DICTIONARY.actions.contains(c))
}

/// Returns whether the word is an action that users always state explicitly: to cancel, to change, to pay.
pub(crate) fn is_special_action(concepts: &[u16]) -> bool {
    const SPECIAL: &[&str] =
        &["cancel", "change", "renew", "close", "return", "approve", "assign", "move", "pay", "translate"];
    concepts.iter().any(|c| {
        concept_words(*c).first().is_some_and(|w| SPECIAL.contains(w)) && DICTIONARY.actions.contains(c)
    })
}

/// Returns whether the word is a lookup action, which changes nothing.
pub(crate) fn is_lookup(concepts: &[u16]) -> bool {
    const LOOKING: &[&str] = &["list", "search", "track", "check", "translate", "download"];
    concepts.iter().any(|c| concept_words(*c).first().is_some_and(|w| LOOKING.contains(w)))
}

/// Returns whether the word is a common first name.
pub(crate) fn is_first_name(norm: &str) -> bool {
    FIRST_NAME_SET.contains(norm)
}

pub(crate) fn is_stop_word(norm: &str) -> bool {
    STOP_WORD_SET.contains(norm)
}

pub(crate) fn is_question_word(norm: &str) -> bool {
    QUESTION_WORD_SET.contains(norm)
}

/// Returns whether the word is a greeting, thanks or approval.
pub(crate) fn is_pleasantry(norm: &str) -> bool {
    PLEASANTRY_SET.contains(norm)
}

pub(crate) fn concept_words(concept: u16) -> &'static [&'static str] {
    DICTIONARY.rows.get(concept as usize).map(Vec::as_slice).unwrap_or_default()
}
