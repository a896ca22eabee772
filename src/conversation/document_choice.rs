//! Which of the documents that a question lists a reply names.

use crate::planner::consent;
use crate::run::NamedDocument;

/// Most words of a reply beside a number or a name without its ending.
const MAX_OTHER_WORDS: usize = 3;

/// Words that say nothing beside a number or a name: a reply with others may be about something else.
const FILLERS: &[&str] = &[
    "the",
    "a",
    "one",
    "number",
    "nr",
    "n",
    "please",
    "and",
    "document",
    "file",
    "it",
    "is",
    "il",
    "lo",
    "la",
    "i",
    "e",
    "ed",
    "numero",
    "documento",
    "favore",
    "per",
    "quello",
    "quella",
    "das",
    "die",
    "der",
    "den",
    "nummer",
    "dokument",
    "bitte",
    "und",
    "le",
    "les",
    "et",
    "numéro",
    "el",
    "los",
    "y",
    "número",
    "por",
    "favor",
];

/// Those of `choices` that the reply names: by id or whole name anywhere in it, or by the name without its ending or the number in
/// the list, if it says nothing else. A plain yes names the only one. A name that several have names none.
pub(super) fn named(choices: &[NamedDocument], reply: &str) -> Vec<NamedDocument> {
    if let [only] = choices
        && consent::parse_consent(reply) == Some(true)
    {
        return vec![only.clone()];
    }
    let mut rest = reply.to_lowercase();
    let mut found = taken(&mut rest, keys(choices, whole_names));
    let stems = taken(&mut rest, keys(choices, stem));
    let others: Vec<&str> =
        rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let numbers: Vec<usize> = others.iter().filter_map(|word| word.parse().ok()).collect();
    let says_nothing = |words: usize| {
        let is_filler = |word: &&str| FILLERS.contains(word) || word.parse::<usize>().is_ok();
        others.len() <= words + MAX_OTHER_WORDS && others.iter().all(is_filler)
    };
    if numbers.is_empty() && says_nothing(0) {
        found.extend(stems);
    } else if let ([number], true) =
        (numbers.as_slice(), found.is_empty() && stems.is_empty() && says_nothing(1))
    {
        found.extend(number.checked_sub(1));
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter_map(|place| choices.get(place).cloned()).collect()
}

/// The places of the documents that `keys` name in a text, from which they are taken. Longest first, so that "report.md" is not
/// found in "old report.md".
fn taken(text: &mut String, mut keys: Vec<(String, Vec<usize>)>) -> Vec<usize> {
    let mut found = Vec::new();
    keys.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    for (key, places) in keys {
        while let Some(at) = whole(text, &key) {
            text.replace_range(at..at + key.len(), &" ".repeat(key.len()));
            if let [place] = places[..] {
                found.push(place);
            }
        }
    }
    found
}

/// What names documents, in lower case, and the places of those that it names.
fn keys(choices: &[NamedDocument], of: fn(&NamedDocument) -> Vec<String>) -> Vec<(String, Vec<usize>)> {
    let mut keys: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, choice) in choices.iter().enumerate() {
        for key in of(choice).into_iter().filter(|key| !key.is_empty()) {
            match keys.iter_mut().find(|(other, _)| *other == key) {
                Some((_, places)) => places.push(place),
                None => keys.push((key, vec![place])),
            }
        }
    }
    keys
}

/// The id; and the name, if it has an ending or several words: one that is a word may mean that word.
fn whole_names(choice: &NamedDocument) -> Vec<String> {
    let name = choice.name.trim().to_lowercase();
    let is_plain = name.chars().all(char::is_alphanumeric);
    let is_telling = !is_plain && name.chars().any(char::is_alphanumeric);
    [Some(choice.id.to_string()), is_telling.then_some(name)].into_iter().flatten().collect()
}

/// The name without its ending, or as a word. One of a letter or two, or only digits, is found in too many replies.
fn stem(choice: &NamedDocument) -> Vec<String> {
    let name = choice.name.trim().to_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem).to_owned();
    let is_telling = stem.chars().filter(|c| c.is_alphabetic()).count() > 2;
    is_telling.then_some(stem).into_iter().collect()
}

/// Where `key` stands in `text`, with no letter or digit beside it.
fn whole(text: &str, key: &str) -> Option<usize> {
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
}
