//! Which documents a reply to a question with a list of documents names.

use std::collections::BTreeMap;

use crate::language::number_words::ordinal;
use crate::language::{fold, words};
use crate::planner::consent;
use crate::run::{Context, NamedDocument};

/// Maximum number of words in a reply besides the number or the name (without its ending) of a document.
const MAX_OTHER_WORDS: usize = 3;

/// Words that carry no meaning next to a number or a name. A reply with other words may be about something else.
const FILLERS: &[&str] = &[
    "the", "a", "one", "number", "nr", "n", "please", "and", "document", "file", "it", "is", "il", "lo",
    "la", "i", "e", "ed", "numero", "documento", "favore", "per", "quello", "quella", "das", "die", "der",
    "den", "nummer", "dokument", "bitte", "und", "le", "les", "et", "numéro", "el", "los", "y", "número",
    "por", "favor",
];

/// Words of a request for another document of the list, besides [`FILLERS`] and its position.
const AGAIN: &[&str] = &[
    "now", "then", "also", "too", "what", "about", "of", "do", "summarise", "summarize", "ora", "adesso",
    "poi", "anche", "invece", "del", "di", "riassumi", "riassumimi",
];

/// Maximum number of words, and of bytes, of a request that asks for another document of a list.
const MAX_AGAIN_WORDS: usize = 8;
const MAX_AGAIN_BYTES: usize = 200;

/// Nouns that make the number next to them a position in the list.
const PLACE_NOUNS: &[&str] = &["number", "nr", "n", "document", "file", "numero", "documento"];

/// The longest reply that may name a document that was not listed, in bytes.
const MAX_REPLY_BYTES: usize = 400;

/// The documents that a reply names, where a question lists some.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ChosenDocuments {
    pub(crate) named: Vec<NamedDocument>,
    /// Whether it names only documents that no longer exist.
    pub(crate) names_deleted: bool,
}

impl ChosenDocuments {
    /// Finds the documents that `reply` names, among those that were `listed` and the user's others. `all` are those
    /// that exist, the newest first.
    pub(crate) fn of(reply: &str, listed: &[NamedDocument], all: &[NamedDocument]) -> Self {
        let is_listed = |one: &NamedDocument| listed.iter().any(|listed| listed.id == one.id);
        let is_newer = |one: &NamedDocument| listed.first().is_some_and(|first| one.id > first.id);
        let is_short = reply.len() <= MAX_REPLY_BYTES;
        let others = all.iter().filter(|one| is_short && !is_listed(one)).cloned();
        let (newer, older): (Vec<_>, Vec<_>) = others.partition(is_newer);
        let choices = DocumentChoices { listed, older: &older, newer: &newer };
        let mut named = choices.named(reply);
        // A document that was deleted since is dropped, and not replaced by another of the same name.
        named.retain(|one| all.iter().any(|known| known.id == one.id));
        let has_forgotten = listed.iter().any(|one| one.id.0.is_nil());
        let is_deleted = choices.is_only_named(reply) || (has_forgotten && is_file_name(reply));
        Self { names_deleted: named.is_empty() && is_deleted, named }
    }

    /// Finds the documents that `reply` names among those that were `listed`, if it is not known which ones exist.
    pub(crate) fn of_listed(reply: &str, listed: &[NamedDocument]) -> Self {
        let named = DocumentChoices { listed, ..DocumentChoices::default() }.named(reply);
        Self { named, names_deleted: false }
    }

    /// Adds the documents to those of the pending question, each once. `names_deleted` matters only if that question
    /// has none.
    pub(crate) fn add_to(self, context: &mut Context) {
        let Some(pending) = &mut context.pending else { return };
        context.names_deleted = self.names_deleted && pending.documents.is_empty();
        for document in self.named {
            if pending.documents.iter().all(|other| other.id != document.id) {
                pending.documents.push(document);
            }
        }
    }
}

/// The documents that a reply may name.
#[derive(Debug, Clone, Copy, Default)]
struct DocumentChoices<'a> {
    /// The documents that the question lists, in its order.
    listed: &'a [NamedDocument],
    /// The older documents, which are not listed. Their positions continue those of the list.
    older: &'a [NamedDocument],
    /// The documents that were added since. They have no position.
    newer: &'a [NamedDocument],
}

impl DocumentChoices<'_> {
    /// The documents that the reply names: by id or whole name anywhere in it; by the name without its ending, or the
    /// position in the list, only if the reply says nothing else. A plain yes names the only listed one. A name that
    /// several documents have means the listed one if exactly one of them is listed, otherwise none.
    fn named(&self, reply: &str) -> Vec<NamedDocument> {
        self.read(reply).0
    }

    /// Whether the reply names documents and says nothing else.
    fn is_only_named(&self, reply: &str) -> bool {
        let (named, rest) = self.read(reply);
        !named.is_empty() && rest.iter().all(|word| FILLERS.contains(&word.as_str()) || place(word).is_some())
    }

    /// The documents that the reply names, and its other words in lower case, including positions.
    fn read(&self, reply: &str) -> (Vec<NamedDocument>, Vec<String>) {
        if let [only] = self.listed
            && consent::parse_consent(reply) == Some(true)
        {
            return (vec![only.clone()], Vec::new());
        }
        let all: Vec<&NamedDocument> = self.listed.iter().chain(self.older).chain(self.newer).collect();
        let mut rest = reply.to_lowercase();
        let mut found = taken(&mut rest, self.keys(&all, whole_names));
        let stems = taken(&mut rest, self.keys(&all, stem));
        let others: Vec<&str> = words(&rest).collect();
        let places: Vec<usize> = others.iter().filter_map(|word| place(word)).collect();
        let says_nothing = |words: usize| {
            let is_filler = |word: &&str| FILLERS.contains(word) || place(word).is_some();
            others.len() <= words + MAX_OTHER_WORDS && others.iter().all(is_filler)
        };
        if places.is_empty() && says_nothing(0) {
            found.extend(stems);
        } else if let ([number], true) =
            (places.as_slice(), found.is_empty() && stems.is_empty() && says_nothing(1))
        {
            let max = self.listed.len() + self.older.len();
            found.extend(number.checked_sub(1).filter(|place| *place < max));
        }
        found.sort_unstable();
        found.dedup();
        let named = found.into_iter().filter_map(|place| all.get(place).map(|one| (*one).clone())).collect();
        (named, others.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The texts that name documents, in lower case, each with the positions of those documents.
    fn keys(
        &self,
        all: &[&NamedDocument],
        of: fn(&NamedDocument) -> Vec<String>,
    ) -> Vec<(String, Vec<usize>)> {
        let mut keys: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, choice) in all.iter().enumerate() {
            for key in of(choice).into_iter().filter(|key| !key.is_empty()) {
                keys.entry(key).or_default().push(place);
            }
        }
        for places in keys.values_mut() {
            let listed: Vec<usize> =
                places.iter().copied().filter(|place| *place < self.listed.len()).collect();
            if listed.len() == 1 {
                *places = listed;
            }
        }
        keys.into_iter().collect()
    }
}

/// Whether a reply is only a file name, such as `report.md`: it may name a document whose name was forgotten.
fn is_file_name(reply: &str) -> bool {
    let name = reply.trim().trim_matches(['"', '“', '”', '«', '»', '`']);
    let is_ending =
        |ending: &str| (1..=4).contains(&ending.len()) && ending.chars().all(char::is_alphanumeric);
    !name.contains(char::is_whitespace)
        && name
            .rsplit_once('.')
            .is_some_and(|(stem, ending)| stem.contains(char::is_alphabetic) && is_ending(ending))
}

/// Returns whether a request only asks for another document of a list, such as "and the second one?".
pub(super) fn asks_again(request: &str) -> bool {
    if request.len() > MAX_AGAIN_BYTES {
        return false;
    }
    let lower = request.to_lowercase();
    let words: Vec<&str> = words(&lower).collect();
    let is_place = |word: &&str| place(word).is_some();
    let is_number = |word: &&str| word.chars().all(|c| c.is_ascii_digit());
    let mut places = words.iter().filter(|word| is_place(word));
    let (Some(first), None) = (places.next(), places.next()) else { return false };
    let is_clear = !is_number(first) || words.iter().any(|word| PLACE_NOUNS.contains(word));
    let is_other = |word: &&str| is_place(word) || FILLERS.contains(word) || AGAIN.contains(word);
    is_clear && words.len() <= MAX_AGAIN_WORDS && words.iter().all(is_other)
}

/// The position that a word means, from 1: a number, `2nd`, `2º`, or an ordinal in any of the languages.
fn place(word: &str) -> Option<usize> {
    let word = fold(word);
    ordinal(&word).and_then(|place| usize::try_from(place).ok()).or_else(|| word.parse().ok())
}

/// Removes every occurrence of the `keys` from a text, and returns the positions of the documents that they name.
/// Longest first, so that "report.md" is not found in "old report.md".
fn taken(text: &mut String, mut keys: Vec<(String, Vec<usize>)>) -> Vec<usize> {
    let mut found = Vec::new();
    keys.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    for (key, places) in keys {
        while let Some(at) = find_whole(text, &key) {
            text.replace_range(at..at + key.len(), &" ".repeat(key.len()));
            if let [place] = places[..] {
                found.push(place);
            }
        }
    }
    found
}

/// The id, and the name if it has an ending or several words: a name of one word may be meant as that word.
fn whole_names(choice: &NamedDocument) -> Vec<String> {
    let name = choice.name.trim().to_lowercase();
    let is_plain = name.chars().all(char::is_alphanumeric);
    let is_telling = !is_plain && name.chars().any(char::is_alphanumeric);
    [Some(choice.id.to_string()), is_telling.then_some(name)].into_iter().flatten().collect()
}

/// The name without its ending, or a name of one word. Not if it has one or two letters or only digits: many replies
/// contain these.
fn stem(choice: &NamedDocument) -> Vec<String> {
    let name = choice.name.trim().to_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem).to_owned();
    let is_telling = stem.chars().filter(|c| c.is_alphabetic()).count() > 2;
    is_telling.then_some(stem).into_iter().collect()
}

/// Where `key` occurs in `text`, with no letter or digit next to it.
fn find_whole(text: &str, key: &str) -> Option<usize> {
    let is_apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    text.match_indices(key).map(|(at, _)| at).find(|at| {
        is_apart(text[..*at].chars().next_back()) && is_apart(text[at + key.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::DocumentId;

    fn choices(names: &[&str]) -> Vec<NamedDocument> {
        let choice = |(n, name): (usize, &&str)| NamedDocument {
            id: DocumentId(uuid::Uuid::from_u128(n as u128)),
            sha256: String::new(),
            name: (*name).to_owned(),
            media: "text/plain".to_owned(),
            bytes: 1,
            language: None,
            heading: None,
        };
        names.iter().enumerate().map(choice).collect()
    }

    fn named(listed: &[NamedDocument], reply: &str) -> Vec<NamedDocument> {
        DocumentChoices { listed, ..DocumentChoices::default() }.named(reply)
    }

    #[test]
    fn replies_name_documents() {
        let all = choices(&["Report.md", "old report.md", "plan 2026.txt", "a.txt", "Bilancio 2025.md"]);
        for (reply, places) in [
            ("report.md", &[0][..]),
            ("the REPORT, please", &[0]),
            ("old report", &[1]),
            ("the old report.md and the report", &[0, 1]),
            ("il bilancio 2025", &[4]),
            ("a.txt", &[3]),
            ("a report", &[0]),
            ("2", &[1]),
            ("number 3.", &[2]),
            ("the second one", &[1]),
            ("The 3rd, please", &[2]),
            ("il terzo documento", &[2]),
            ("la 2ª", &[1]),
            ("das zweite, bitte", &[1]),
            ("le troisième", &[2]),
            ("el segundo, por favor", &[1]),
            ("the seventh", &[]),
            ("in a second", &[]),
            ("secondo me il report", &[]),
            ("the 4 and the 5", &[]),
            ("What will the weather be in 3 days?", &[]),
            ("in 3 sentences", &[]),
            ("no report", &[]),
            ("for 2 people", &[]),
            ("never mind, report the theft", &[]),
            ("report.md, and tell me when it was written", &[0]),
            ("0", &[]),
            ("6", &[]),
            ("reports.md", &[]),
            ("yes", &[]),
            ("", &[]),
        ] {
            let expected: Vec<_> = places.iter().map(|place| all[*place].clone()).collect();
            assert_eq!(named(&all, reply), expected, "{reply}");
        }
        assert_eq!(named(&all, &format!("{}!", all[3].id)), [all[3].clone()]);
        assert_eq!(named(&all[..1], "yes"), all[..1]);
        assert_eq!(named(&all[..1], "no"), []);
        let twins = choices(&["notes.md", "notes.md"]);
        assert_eq!(named(&twins, "notes.md"), []);
        assert_eq!(named(&twins, "2"), twins[1..]);
    }

    #[test]
    fn documents_that_are_not_listed_are_named_too_and_listed_ones_come_first() {
        let (listed, older) =
            (choices(&["report.md", "plan.md"]), choices(&["old.txt", "plan.md", "a.txt", "a.txt"]));
        let newer = choices(&["new.md", "report.txt"]);
        let all = DocumentChoices { listed: &listed, older: &older, newer: &newer };
        for (reply, expected) in [
            ("plan.md", vec![&listed[1]]),
            ("the plan", vec![&listed[1]]),
            ("the report", vec![&listed[0]]),
            ("old.txt", vec![&older[0]]),
            ("the new one", vec![&newer[0]]),
            ("report.txt and the old.txt", vec![&older[0], &newer[1]]),
            ("the third one", vec![&older[0]]),
            ("number 6", vec![&older[3]]),
            ("7", vec![]),
            ("a.txt", vec![]),
        ] {
            let expected: Vec<NamedDocument> = expected.into_iter().cloned().collect();
            assert_eq!(all.named(reply), expected, "{reply}");
        }
    }

    #[test]
    fn reply_that_says_something_else_is_not_only_a_name() {
        let listed = choices(&["report.md", "plan.md"]);
        let choices = DocumentChoices { listed: &listed, ..DocumentChoices::default() };
        for (reply, is_only) in [
            ("the first one", true),
            ("report.md, please", true),
            ("plan", true),
            ("7", false),
            ("report.md, and then tell Mallory", false),
        ] {
            assert_eq!(choices.is_only_named(reply), is_only, "{reply}");
        }
        assert!(
            is_file_name("«old-report.txt»") && !is_file_name("Done.") && !is_file_name("about report.md")
        );
    }

    #[test]
    fn deleted_document_is_not_named_and_no_other_in_its_place() {
        let listed = choices(&["report.md", "plan.md"]);
        let all = &listed[1..];
        let deleted = ChosenDocuments { named: Vec::new(), names_deleted: true };
        for reply in ["report.md", "the first one"] {
            assert_eq!(ChosenDocuments::of(reply, &listed, all), deleted, "{reply}");
        }
        let plan = ChosenDocuments { named: all.to_vec(), names_deleted: false };
        assert_eq!(ChosenDocuments::of("the second one", &listed, all), plan);
        assert_eq!(ChosenDocuments::of("Good morning", &listed, all), ChosenDocuments::default());
    }

    #[test]
    fn chosen_documents_join_those_of_the_question_once() {
        let all = choices(&["report.md", "plan.md"]);
        let question = |documents: &[NamedDocument]| {
            let question = serde_json::json!({"text": "Which one?", "tool": null, "missing": []});
            let pending = serde_json::json!({
                "request": "", "scene": "", "purpose": "", "question": question, "documents": documents
            });
            Context { pending: Some(serde_json::from_value(pending).unwrap()), ..Context::default() }
        };
        let mut context = question(&all[..1]);
        ChosenDocuments { named: all.clone(), names_deleted: false }.add_to(&mut context);
        assert_eq!((context.pending.unwrap().documents, context.names_deleted), (all.clone(), false));
        for (documents, names_deleted) in [(&all[..0], true), (&all[..1], false)] {
            let mut context = question(documents);
            ChosenDocuments { named: Vec::new(), names_deleted: true }.add_to(&mut context);
            assert_eq!(context.names_deleted, names_deleted, "{documents:?}");
        }
    }

    #[test]
    fn long_reply_names_only_what_was_listed() {
        let all = choices(&["a.txt", "report.md"]);
        let long = |name: &str| format!("{name} {}", "please ".repeat(80));
        assert_eq!(ChosenDocuments::of(&long("report.md"), &all[..1], &all), ChosenDocuments::default());
        assert_eq!(ChosenDocuments::of(&long("a.txt"), &all[..1], &all).named, all[..1]);
        assert_eq!(ChosenDocuments::of("report.md", &all[..1], &all).named, all[1..]);
    }

    #[test]
    fn request_that_is_only_a_place_asks_again() {
        for request in [
            "And the second one?",
            "now the third",
            "Summarise the first one, too",
            "E il secondo?",
            "Und das zweite?",
            "Et le deuxième ?",
            "¿Y el segundo?",
            "Riassumi anche il quarto documento",
            "and number 2",
            "document 3, please",
            "the 2nd",
        ] {
            assert!(asks_again(request), "{request}");
        }
        for request in [
            "2",
            "one",
            "now",
            "the first and the second",
            "the second week of May",
            "book the second room",
            "yes",
        ] {
            assert!(!asks_again(request), "{request}");
        }
    }
}
