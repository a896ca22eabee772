//! The words of messages that change a list, in the languages of the shipped scenes, and what each of them means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::planner::consent::{POLITE, YES};

/// Words by which names are removed, in the languages of the shipped scenes.
const REMOVE: &str = "without remove drop exclude except minus omit skip out \
    senza togli togliere rimuovi rimuovere escludi escludere tranne eccetto meno via fuori \
    sans enlève enlevez enlever retire retirez retirer supprime supprimez exclus excluez sauf excepté \
    ohne entferne entfernen außer ausser streiche streichen weg raus heraus \
    sin quita quite quitar elimina elimine eliminar excluye excluya excepto menos salvo off";

/// Words by which names are added.
const ADD: &str = "also add include too additionally \
    anche aggiungi aggiungere includi includere pure inoltre \
    aussi ajoute ajoutez ajouter inclus incluez également \
    auch zusätzlich füge hinzu hinzufügen dazu ergänze \
    también tambien añade añada añadir agrega agregue incluye incluya además";

/// Words by which a list is replaced.
const ONLY: &str =
    "only just solo soltanto solamente seulement uniquement juste nur bloß sólo solamente únicamente";

/// Words that turn around what follows, or exclude it.
const NOT: &str = "not no non don never pas ne nicht kein keine keinen ni nunca jamais mai nie";

/// Words that may also follow the names that they are about: "orders too", "leave orders out", "lass orders weg".
const AFTER: &str =
    "too also out off via fuori weg raus heraus hinzu dazu anche pure aussi également auch también tambien";

/// The words of `REMOVE` that mean an exception from the rest, rather than a removal.
const EXCEPT: &str = "without except minus senza tranne eccetto meno sans sauf excepté \
    ohne außer ausser sin excepto menos salvo";

/// Words that end the previous clause, and say that the following names stay or are used.
const KEEP: &str = "but use using take leave keep read want need in on \
    ma però usa usare prendi lascia mais utilise utilisez prends prenez \
    aber nimm nehmen verwende verwenden lass lassen pero use usar toma";

/// Words for all that a list contains.
const ALL: &str = "all everything tutte tutti tutto tout toutes toute tous alle alles todas todos todo";

/// Words that join two names.
const AND: &str = "and e ed et und y";

/// Words that make the meaning unclear.
const DOUBT: &str = "or o ou oder instead invece statt should may is";

/// Words that approve what precedes them, and so may end a clause.
const GOOD: &str = "fine right good bene bien gut";

/// Words without a meaning of their own here.
const OTHER: &str = "the a an of from to it this that these those them table tables list column \
    columns i you we can would like one ones t s as well then however \
    il lo la le gli i un uno una di del della delle dei dal dalla dalle a ad alla al tabella tabelle \
    elenco lista colonna colonne quella quelle quello va \
    le la les l un une des de du d à au aux table tables liste colonne colonnes \
    der die das den dem des ein eine einen von vom aus zu zur tabelle tabellen liste spalte spalten \
    el la los las un una unos unas de del a tabla tablas lista columna columnas";

/// A comma or another mark between the clauses of a message, as a word.
pub(super) const PAUSE: &str = ",";

/// Words for places of a list, from the first on; the last row is that of the last place.
pub(super) const PLACES: [&str; 6] = [
    "first 1st primo prima premier première erste ersten erster erstes primero primera",
    "second 2nd secondo seconda deuxième seconde zweite zweiten zweiter zweites segundo segunda",
    "third 3rd terzo terza troisième dritte dritten dritter drittes tercero tercera",
    "fourth 4th quarto quarta quatrième vierte vierten vierter viertes cuarto cuarta",
    "fifth 5th quinto quinta cinquième fünfte fünften fünfter fünftes",
    "last ultimo ultima dernier dernière letzte letzten letzter letztes último última",
];

/// A refusal of the list as it is, before a comma and what it should be: "no, only orders".
pub(super) const REFUSING: [&str; 5] = ["no", "n", "nope", "nein", "non"];

/// Words for a list and what it contains.
pub(super) const LISTED: &str = "one ones table tables list column columns tabella tabelle elenco lista colonna colonne quella quelle \
    liste colonne colonnes celle celles tabelle tabellen spalte spalten tabla tablas columna columnas";

/// The change to be made with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Remove,
    Add,
    Only,
}

/// The meaning of a word here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Whether it may also follow its names (`AFTER`), and whether it means an exception (`EXCEPT`).
    Change {
        change: Change,
        may_follow: bool,
        excepts: bool,
    },
    /// Whether it may also be a refusal of the whole: "no".
    Not {
        refuses: bool,
    },
    Keep,
    All,
    And,
    Pause,
    /// A yes, or praise.
    Yes,
    Good,
    Polite,
    Doubt,
    Other,
    Unknown,
}

/// The known words, in lower case.
pub(super) static WORDS: LazyLock<BTreeMap<&'static str, Word>> = LazyLock::new(|| {
    let mut known = BTreeMap::new();
    for (word, phrases) in [(Word::Yes, &YES[..]), (Word::Polite, &POLITE[..])] {
        known.extend(
            phrases.iter().flat_map(|phrase| phrase.split([' ', '\'', '-'])).map(|text| (text, word)),
        );
    }
    let rows = [
        (Word::Other, OTHER),
        (Word::Good, GOOD),
        (Word::And, AND),
        (Word::Keep, KEEP),
        (Word::All, ALL),
        (Word::Doubt, DOUBT),
        (Word::Pause, PAUSE),
    ];
    for (word, texts) in rows {
        known.extend(texts.split_whitespace().map(|text| (text, word)));
    }
    let not = |text: &'static str| (text, Word::Not { refuses: REFUSING.contains(&text) });
    known.extend(NOT.split_whitespace().map(not));
    let after: BTreeSet<&str> = AFTER.split_whitespace().collect();
    let except: BTreeSet<&str> = EXCEPT.split_whitespace().collect();
    for (change, words) in [(Change::Remove, REMOVE), (Change::Add, ADD), (Change::Only, ONLY)] {
        let word = |text: &'static str| {
            let (may_follow, excepts) = (after.contains(text), except.contains(text));
            (text, Word::Change { change, may_follow, excepts })
        };
        known.extend(words.split_whitespace().map(word));
    }
    known
});
