//! Reads messages that approve a list with changes: "without payments", "yes, but also customers", "solo ordini".
//!
//! Every word of such a message has to be known, or be a name that the list contains or may contain: what is approved
//! is never guessed.

mod words;

use std::collections::BTreeSet;

use serde_json::Value;

use self::words::{Change, LISTED, PAUSE, PLACES, REFUSING, WORDS, Word};
use crate::language::lower_words;
use crate::run::ApprovableLists;

/// Longest message that is read as a change, in words.
const MAX_WORDS: usize = 200;

/// A message that begins with a word of a change and has at most this many words is a reply to the question.
const SHORT: usize = 4;

/// The same, if it also has a word for a list or what it contains.
const SHORT_ABOUT_LIST: usize = 8;

/// The meaning of a message for lists that wait for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListReading {
    /// It approves these arguments, whose lists are changed.
    Edited(Value),
    /// It replies to the question, but does not say clearly what is to change.
    Unclear,
    /// It is about something else.
    Other,
}

/// A part of a message: a word, or a name by its place among the names, which may be said as a place of the list.
enum Part {
    Word(Word),
    Name { at: usize, is_place: bool },
}

/// Reads what `message` says about the lists. The caller has excluded a plain yes or no.
pub fn read(message: &str, asked: &ApprovableLists) -> ListReading {
    let words = words_and_pauses(without_refusal(message));
    let spoken = words.iter().filter(|word| *word != PAUSE).count();
    if spoken == 0 || words.len() > MAX_WORDS || message.contains('?') {
        return ListReading::Other;
    }
    let names = Names::of(asked);
    let parts = names.parts(&words);
    let is_change = |part: &Part| matches!(part, Part::Word(Word::Change { .. } | Word::Not { .. }));
    let is_reply = |part: &Part| is_change(part) || matches!(part, Part::Word(Word::Yes | Word::Polite));
    let is_of_change =
        |part: &Part| is_change(part) || matches!(part, Part::Name { .. } | Part::Word(Word::Unknown));
    let begins = parts.iter().find(|&part| is_of_change(part));
    let names_something = parts.iter().any(|part| matches!(part, Part::Name { is_place: false, .. }));
    let names_place = parts.iter().any(|part| matches!(part, Part::Name { is_place: true, .. }));
    let knows_all = !parts.iter().any(|part| matches!(part, Part::Word(Word::Unknown)));
    // "The first table, orders" names one table in two ways.
    if knows_all && names_something && names_place {
        return ListReading::Unclear;
    }
    if knows_all && (names_something || names_place) {
        let changes = changes(&parts);
        return changes.and_then(|changes| names.changed(asked, &changes)).unwrap_or(ListReading::Unclear);
    }
    let is_listed = |word: &String| LISTED.split_whitespace().any(|listed| listed == word);
    let short = if words.iter().any(is_listed) { SHORT_ABOUT_LIST } else { SHORT };
    let is_short = spoken <= short && begins.is_some_and(is_change);
    let is_about_list = names_something && parts.iter().any(is_reply);
    if is_short || is_about_list { ListReading::Unclear } else { ListReading::Other }
}

/// The changes and the names that each applies to, in order; `None` if that is not clear.
fn changes(parts: &[Part]) -> Option<Vec<(Change, usize)>> {
    if parts.iter().any(|part| matches!(part, Part::Word(Word::Not { .. }))) {
        return excluded(parts).map(|name| vec![(Change::Remove, name)]);
    }
    let mut clauses = EditClauses { is_joined: true, ..EditClauses::default() };
    for part in parts {
        clauses.read(part)?;
    }
    clauses.end()
}

/// The only name of a message that says nothing but "not this one". Any other message with a "not" is unclear.
fn excluded(parts: &[Part]) -> Option<usize> {
    let not_at = parts.iter().position(|part| matches!(part, Part::Word(Word::Not { .. })))?;
    let (before, rest) = parts.split_at(not_at);
    let name_at = rest.iter().position(|part| matches!(part, Part::Name { .. }))?;
    let (between, after) = (rest.get(1..name_at)?, rest.get(name_at + 1..)?);
    let is_other = |part: &Part| matches!(part, Part::Word(Word::Other));
    let ends = |part: &Part| matches!(part, Part::Word(Word::Other | Word::Pause | Word::Polite));
    let leads = |part: &Part| ends(part) || matches!(part, Part::Word(Word::Good | Word::Keep | Word::Yes));
    let is_clear = before.iter().all(leads) && between.iter().all(is_other) && after.iter().all(ends);
    match (rest.first()?, rest.get(name_at)?) {
        // "No the second" may refuse the list and choose the second.
        (Part::Word(Word::Not { refuses: true }), _) if !between.is_empty() => None,
        (_, Part::Name { at, .. }) if is_clear => Some(*at),
        _ => None,
    }
}

/// The parts of a message without a "not" that were read so far.
#[derive(Default)]
struct EditClauses {
    out: Vec<(Change, usize)>,
    /// The change that applies to the names that follow.
    change: Option<Change>,
    /// A name that precedes the word for its change.
    waiting: Option<usize>,
    /// Whether the word for a change still needs a name.
    is_dangling: bool,
    /// Whether a word of `KEEP` still needs a name or a change.
    is_kept: bool,
    /// Whether the whole list was named.
    is_all: bool,
    /// Whether a name may follow: not directly after another one.
    is_joined: bool,
    /// Whether names are removed by words of `EXCEPT`, or by others.
    excepts: Option<bool>,
}

impl EditClauses {
    /// Reads the next part. `None` if the message is not clear.
    fn read(&mut self, part: &Part) -> Option<()> {
        let says_nothing = self.change.is_none() && self.waiting.is_none() && self.out.is_empty();
        let is_clear = match part {
            Part::Name { at, .. } => self.name(*at),
            Part::Word(Word::Change { change, may_follow, excepts }) => {
                self.change(*change, *may_follow, *excepts)
            }
            // "Remove everything except orders" removes the names that other messages with "except" keep.
            Part::Word(Word::All) => says_nothing && !std::mem::replace(&mut self.is_all, true),
            Part::Word(Word::Keep) => self.keep(),
            Part::Word(Word::Pause) => {
                self.is_joined = true;
                self.waiting.is_none() && !self.is_dangling
            }
            Part::Word(Word::And) => {
                self.is_joined = true;
                true
            }
            Part::Word(Word::Yes | Word::Good) => says_nothing,
            Part::Word(Word::Polite | Word::Other) => true,
            Part::Word(Word::Not { .. } | Word::Doubt | Word::Unknown) => false,
        };
        is_clear.then_some(())
    }

    fn name(&mut self, at: usize) -> bool {
        let is_joined = std::mem::replace(&mut self.is_joined, false);
        let is_kept = std::mem::replace(&mut self.is_kept, false);
        self.is_dangling = false;
        if let Some(change) = self.change {
            self.out.push((change, at));
            return is_joined;
        }
        // "Leave customers out, payments too" does not say what happens to payments.
        let is_first = self.waiting.replace(at).is_none() && (self.out.is_empty() || is_kept);
        is_joined && is_first && !self.is_all
    }

    fn change(&mut self, next: Change, may_follow: bool, excepts: bool) -> bool {
        let was_joined = std::mem::replace(&mut self.is_joined, true);
        self.is_kept = false;
        if next == Change::Remove && *self.excepts.get_or_insert(excepts) != excepts {
            return false;
        }
        if self.is_all && self.out.is_empty() && !excepts {
            return false;
        }
        if let Some(name) = self.waiting.take() {
            self.out.push((next, name));
            return may_follow;
        }
        let is_same = self.change == Some(next);
        if self.is_dangling {
            return is_same && next != Change::Remove;
        }
        // The same word again may repeat the change: "add orders, too". Another one directly after a name may belong to
        // that name: "without customers and payments too".
        self.is_dangling = !(is_same && may_follow);
        let is_clear = self.change.is_none() || is_same || was_joined || !may_follow;
        self.change = Some(next);
        is_clear
    }

    fn keep(&mut self) -> bool {
        let removes = self.is_dangling && self.change == Some(Change::Remove);
        if !self.is_dangling {
            self.change = None;
        }
        (self.is_kept, self.is_joined) = (true, true);
        self.waiting.is_none() && !removes
    }

    fn end(self) -> Option<Vec<(Change, usize)>> {
        let is_open = self.waiting.is_some() || self.is_dangling || self.is_kept;
        (!is_open && !self.out.is_empty()).then_some(self.out)
    }
}

/// The message without a refusal that it begins with.
fn without_refusal(message: &str) -> &str {
    let rest = message.split_once([',', '.', ';', ':', '!']);
    let rest = rest.filter(|(first, _)| REFUSING.contains(&first.trim().to_lowercase().as_str()));
    rest.map_or(message, |(_, rest)| rest)
}

/// The words of a text, in lower case, and its pauses.
fn words_and_pauses(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for piece in text.replace([',', ';', '\n', '–', '—'], " , ").split_whitespace() {
        let words = lower_words(piece);
        let is_pause = words.is_empty() || piece.ends_with(['.', ':', '!', ')']);
        out.extend(words);
        if is_pause {
            out.push(PAUSE.to_owned());
        }
    }
    out
}

/// The names that lists contain or may contain.
struct Names<'a> {
    /// Each with its list and its words.
    all: Vec<(&'a str, &'a str, Vec<String>)>,
    /// The indexes of the names that the list contains, in its order; empty if there are several lists.
    in_order: Vec<usize>,
}

impl<'a> Names<'a> {
    fn of(asked: &'a ApprovableLists) -> Self {
        let mut all: Vec<(&str, &str, Vec<String>)> = Vec::new();
        for (list, allowed) in &asked.lists {
            let contained = contained(asked, list);
            for name in contained.iter().copied().chain(allowed.iter().map(String::as_str)) {
                let words = lower_words(name);
                let is_new = all.iter().all(|(other, known, _)| (*other, *known) != (list.as_str(), name));
                if is_new && !words.is_empty() {
                    all.push((list, name, words));
                }
            }
        }
        let mut in_order = Vec::new();
        if let (Some(list), 1) = (asked.lists.keys().next(), asked.lists.len()) {
            let place = |name: &str| all.iter().position(|(own, known, _)| own == list && *known == name);
            let places: Option<Vec<usize>> = contained(asked, list).into_iter().map(place).collect();
            in_order = places.unwrap_or_default();
        }
        Self { all, in_order }
    }

    /// The name at the position of the list that a word says.
    fn name_in_place(&self, word: &str) -> Option<usize> {
        let row = PLACES.iter().position(|row| row.split_whitespace().any(|known| known == word))?;
        let place = if row + 1 == PLACES.len() { self.in_order.len().checked_sub(1)? } else { row };
        self.in_order.get(place).copied()
    }

    /// The message as words and names. The longest name counts. A name that several lists or names share, or that is a
    /// known word, does not count.
    fn parts(&self, words: &[String]) -> Vec<Part> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while let Some(word) = words.get(at) {
            match self.name_at(&words[at..]) {
                Some((name, length)) => {
                    parts.push(Part::Name { at: name, is_place: false });
                    // A name like "first" may be meant as a position: both are recorded, which makes the message
                    // unclear.
                    let place = self.name_in_place(word).filter(|_| length == 1);
                    parts.extend(place.map(|at| Part::Name { at, is_place: true }));
                    at += length;
                }
                None => {
                    let place = self.name_in_place(word).map(|at| Part::Name { at, is_place: true });
                    let word = || Part::Word(WORDS.get(word.as_str()).copied().unwrap_or(Word::Unknown));
                    parts.push(place.unwrap_or_else(word));
                    at += 1;
                }
            }
        }
        parts
    }

    /// The name that the words begin with, and how many words it has. A name of a schema may be said without it.
    fn name_at(&self, words: &[String]) -> Option<(usize, usize)> {
        let fits = |own: &[String]| words.starts_with(own) && !is_known_word(own);
        let whole = self.all.iter().enumerate().map(|(at, (_, name, own))| (at, *name, own.as_slice()));
        let last = |(at, name, _): (usize, &'a str, _)| {
            let last = name.rsplit_once('.').map(|(_, last)| lower_words(last))?;
            Some((at, last))
        };
        let mut found: Vec<(usize, usize)> =
            whole.clone().filter(|(.., own)| fits(own)).map(|(at, _, own)| (at, own.len())).collect();
        if found.is_empty() {
            let short = whole.filter_map(last).filter(|(_, own)| !own.is_empty() && fits(own));
            found = short.map(|(at, own)| (at, own.len())).collect();
        }
        let longest = found.iter().map(|(_, length)| *length).max()?;
        let mut best = found.into_iter().filter(|(_, length)| *length == longest);
        best.next().filter(|_| best.next().is_none())
    }

    /// The arguments with the changes. `None`, and so no approval, if a name is both added and removed, or added
    /// although the list contains it, if a list would become empty, or if nothing changes.
    fn changed(&self, asked: &ApprovableLists, changes: &[(Change, usize)]) -> Option<ListReading> {
        let removed: BTreeSet<usize> =
            changes.iter().filter(|(change, _)| *change == Change::Remove).map(|(_, name)| *name).collect();
        if changes.iter().any(|(change, name)| *change != Change::Remove && removed.contains(name)) {
            return None;
        }
        let mut arguments = asked.arguments.clone();
        for list in asked.lists.keys() {
            let of_list =
                |name: usize| self.all.get(name).filter(|(own, ..)| own == list).map(|(_, name, _)| *name);
            let own: Vec<(Change, &str)> =
                changes.iter().filter_map(|(change, name)| Some((*change, of_list(*name)?))).collect();
            if own.is_empty() {
                continue;
            }
            let replaces = own.iter().any(|(change, _)| *change == Change::Only);
            let mut names = if replaces { Vec::new() } else { contained(asked, list) };
            // "Remove orders and additionally customers" adds nothing that is in the list.
            if own.iter().any(|(change, name)| *change == Change::Add && names.contains(name)) {
                return None;
            }
            for (change, name) in own {
                names.retain(|known| *known != name || change != Change::Remove);
                if change != Change::Remove && !names.contains(&name) {
                    names.push(name);
                }
            }
            if names.is_empty() {
                return None;
            }
            *arguments.get_mut(list)? = names.into();
        }
        (arguments != asked.arguments).then_some(ListReading::Edited(arguments))
    }
}

/// The items that a list contains now.
fn contained<'a>(asked: &'a ApprovableLists, list: &str) -> Vec<&'a str> {
    let elements = asked.arguments.get(list).and_then(Value::as_array);
    elements.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn is_known_word(words: &[String]) -> bool {
    matches!(words, [word] if WORDS.contains_key(word.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn asked() -> ApprovableLists {
        let allowed = ["orders", "customers", "payments", "order_items", "sales.refunds", "hr.pay", "it.pay"];
        ApprovableLists {
            arguments: json!({"tables": ["orders", "customers", "order_items"], "note": "x"}),
            lists: BTreeMap::from([("tables".to_owned(), allowed.map(str::to_owned).to_vec())]),
        }
    }

    fn tables(message: &str) -> Option<Vec<String>> {
        match read(message, &asked()) {
            ListReading::Edited(arguments) => {
                assert_eq!(arguments["note"], "x");
                Some(serde_json::from_value(arguments["tables"].clone()).unwrap())
            }
            _ => None,
        }
    }

    #[test]
    fn names_are_removed_added_and_chosen_in_five_languages() {
        let cases: [(&str, &[&str]); 37] = [
            ("Take the second one off", &["orders", "order_items"]),
            ("yes, but without the first and the last", &["customers"]),
            ("only the third", &["order_items"]),
            ("senza la seconda", &["orders", "order_items"]),
            ("togli l'ultima", &["orders", "customers"]),
            ("ohne die zweite", &["orders", "order_items"]),
            ("sans la dernière", &["orders", "customers"]),
            ("without customers", &["orders", "order_items"]),
            ("Yes, but without the table customers, please.", &["orders", "order_items"]),
            ("remove customers and order items", &["orders"]),
            ("leave customers out", &["orders", "order_items"]),
            ("not customers", &["orders", "order_items"]),
            ("No, without \"customers\".", &["orders", "order_items"]),
            ("everything except orders", &["customers", "order_items"]),
            ("also payments", &["orders", "customers", "order_items", "payments"]),
            ("add payments too", &["orders", "customers", "order_items", "payments"]),
            ("payments too", &["orders", "customers", "order_items", "payments"]),
            ("yes, only ORDERS", &["orders"]),
            ("no, only orders and payments", &["orders", "payments"]),
            ("without customers, but also payments", &["orders", "order_items", "payments"]),
            ("also refunds", &["orders", "customers", "order_items", "sales.refunds"]),
            ("also sales.refunds", &["orders", "customers", "order_items", "sales.refunds"]),
            ("senza la tabella customers", &["orders", "order_items"]),
            ("sì, ma senza customers", &["orders", "order_items"]),
            ("anche payments, grazie", &["orders", "customers", "order_items", "payments"]),
            ("aggiungi anche payments", &["orders", "customers", "order_items", "payments"]),
            ("solo orders", &["orders"]),
            ("non customers", &["orders", "order_items"]),
            ("sans la table customers", &["orders", "order_items"]),
            ("oui, mais seulement orders", &["orders"]),
            ("ajoutez aussi payments", &["orders", "customers", "order_items", "payments"]),
            ("ohne customers", &["orders", "order_items"]),
            ("ja, aber lass customers weg", &["orders", "order_items"]),
            ("bitte auch payments", &["orders", "customers", "order_items", "payments"]),
            ("nur die Tabelle orders", &["orders"]),
            ("sí, pero sin customers", &["orders", "order_items"]),
            ("también la tabla payments", &["orders", "customers", "order_items", "payments"]),
        ];
        for (message, expected) in cases {
            assert_eq!(
                tables(message).as_deref(),
                Some(&*expected.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()),
                "{message}"
            );
        }
    }

    #[test]
    fn replies_that_say_no_clear_change_are_not_guessed() {
        let unclear = [
            "orders",
            "without custmers",
            "don't remove orders",
            "not only orders",
            "without customers and payments too",
            "payments, without orders",
            "without orders, customers and order items",
            "also pay",
            "yes, orders if you must",
            "also without payments",
            "without orders but add orders",
            "without the first table, customers",
            "drop the one about the people",
            "togli la tabella con i clienti",
            "not the fifth",
            "yes, the second one",
        ];
        for message in unclear {
            assert_eq!(read(message, &asked()), ListReading::Unclear, "{message}");
        }
        let other = [
            "How many orders are there?",
            "What is the weather",
            "show me all of the orders of march",
            "please book the first train to Milan for me",
            "remove the appointment of Friday from my calendar",
            "hello",
            "",
        ];
        for message in other {
            assert_eq!(read(message, &asked()), ListReading::Other, "{message}");
        }
    }

    #[test]
    fn messages_that_may_mean_the_opposite_are_unclear() {
        let unclear = [
            // All but some.
            "remove everything except orders",
            "remove all but the second",
            "take all off but the first",
            "drop them except orders",
            "take the tables off, except orders",
            "togli tutto tranne la seconda",
            "entferne alles außer die erste",
            "lass alles weg außer orders",
            "enlève tout sauf la première",
            "quita todo menos la primera",
            "all but the second",
            "drop the last but one",
            // A "not" before another change.
            "don't take the second one off",
            "I don't want orders off",
            "don't leave orders out",
            "never leave orders out",
            "non togliere la seconda",
            "ne retirez pas la première",
            "nicht orders weg",
            "no quita orders",
            // What stays beside what goes.
            "drop the second, keep the first",
            "drop them and keep orders",
            "leave the second in and take the third off",
            "leave the second in and the third off",
            "I need orders, customers out",
            "orders is fine, customers out",
            "leave customers out, payments too",
            "remove orders and also customers",
            "drop the first, the second is right",
            "remove orders and use customers",
            "take orders, leave customers out",
            "without orders use payments instead",
            "togli la prima e prendi la seconda",
            "enlève la première, prends la deuxième",
            "entferne die erste und nimm die zweite",
            "quita la primera, usa la segunda",
            // One instead of another.
            "add payments instead of orders",
            "also payments instead of customers",
            "aggiungi payments invece di orders",
            "auch payments statt orders",
            "ajoute payments ou refunds",
            "también payments o refunds",
            // A refusal or a correction.
            "not the first but the second",
            "not the first, the second",
            "not this one, the second",
            "no orders, customers",
            "no I want the second",
            "no, no, the second",
            "non la prima ma la seconda",
            "non la deuxième",
            "nicht die erste, die zweite",
            "no la segunda",
            // A place that is also an adverb, and what is in the list already.
            "togli prima la seconda",
            "remove the second to last",
            "also the second",
            "only orders, customers and order items",
            "is it ok without customers",
        ];
        for message in unclear {
            assert_eq!(read(message, &asked()), ListReading::Unclear, "{message}");
        }
    }

    #[test]
    fn a_name_that_is_also_a_place_is_unclear() {
        let asked = ApprovableLists {
            arguments: json!({"columns": ["last", "first", "city"]}),
            lists: BTreeMap::from([(
                "columns".to_owned(),
                ["last", "first", "city"].map(str::to_owned).to_vec(),
            )]),
        };
        for message in ["without first", "only last", "not the last"] {
            assert_eq!(read(message, &asked), ListReading::Unclear, "{message}");
        }
        let expected = ListReading::Edited(json!({"columns": ["last", "first"]}));
        assert_eq!(read("without city", &asked), expected);
    }

    proptest! {
        #[test]
        fn whatever_is_said_only_allowed_names_are_approved_and_never_none(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "without", "also", "only", "not", "yes", "no", "orders", "customers", "payments", "order_items",
                    "refunds", "too", "and", "salaries", "senza", ",", "weg", "first", "second", "last", "off",
                    "keep", "all", "except", "but", "instead",
                ]),
                0..12,
            )
        ) {
            let message = words.join(" ");
            if let ListReading::Edited(arguments) = read(&message, &asked()) {
                let needed = crate::run::RequiredApproval {
                    by_user: true,
                    lists: asked().lists,
                    ..crate::run::RequiredApproval::default()
                };
                prop_assert_eq!(needed.check_edit(&asked().arguments, &arguments), Ok(()), "{}", message);
                prop_assert!(!words.contains(&"salaries"), "{}", message);
                // A name that was not said stays as it is, unless only others were chosen.
                let tables = arguments["tables"].as_array().unwrap();
                if !words.contains(&"only") {
                    for (name, place) in [("orders", "first"), ("customers", "second"), ("order_items", "last")] {
                        let said = words.contains(&name) || words.contains(&place);
                        prop_assert!(tables.contains(&json!(name)) || said, "{}", message);
                    }
                }
                for name in ["payments", "sales.refunds"] {
                    let said = words.iter().any(|word| name.ends_with(word));
                    prop_assert!(said || !tables.contains(&json!(name)), "{}", message);
                }
            }
        }
    }
}
