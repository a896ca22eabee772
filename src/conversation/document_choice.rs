//! Which of the documents that a question lists a reply names.

use crate::planner::consent;
use crate::run::NamedDocument;

/// Most words of a reply that names a document by its number in the list.
const MAX_NUMBER_WORDS: usize = 4;

/// Those of `choices` that the reply names, by id, by name, by the name without its ending, or by number. A plain yes
/// names the only one. A name that several have names none.
pub(super) fn named(choices: &[NamedDocument], reply: &str) -> Vec<NamedDocument> {
    if let [only] = choices
        && consent::parse_consent(reply) == Some(true)
    {
        return vec![only.clone()];
    }
    let mut rest = reply.to_lowercase();
    let mut found: Vec<usize> = Vec::new();
    // Longest first, so that "report.md" is not found in "old report.md".
    let mut keys = keys(choices);
    keys.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    for (key, places) in keys {
        while let Some(at) = whole(&rest, &key) {
            rest.replace_range(at..at + key.len(), &" ".repeat(key.len()));
            if let [place] = places[..] {
                found.push(place);
            }
        }
    }
    if found.is_empty() {
        found.extend(number(reply, choices.len()));
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter_map(|place| choices.get(place).cloned()).collect()
}

/// What names documents, in lower case, and the places of those that it names.
fn keys(choices: &[NamedDocument]) -> Vec<(String, Vec<usize>)> {
    let mut keys: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, choice) in choices.iter().enumerate() {
        let name = choice.name.trim().to_lowercase();
        let stem = name.rsplit_once('.').map(|(stem, _)| stem.to_owned());
        // A stem of a letter or two, or only digits, is found in too many replies.
        let is_telling = |key: &String| key.chars().filter(|c| c.is_alphabetic()).count() > 2;
        let stem = stem.filter(is_telling).filter(|stem| *stem != name);
        for key in [Some(choice.id.to_string()), Some(name), stem].into_iter().flatten() {
            match keys.iter_mut().find(|(other, _)| *other == key) {
                Some((_, places)) => places.push(place),
                None if key.is_empty() => {}
                None => keys.push((key, vec![place])),
            }
        }
    }
    keys
}

/// Where `key` stands in `text`, with no letter or digit beside it.
fn whole(text: &str, key: &str) -> Option<usize> {
    let is_apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
    text.match_indices(key).map(|(at, _)| at).find(|at| {
        is_apart(text[..*at].chars().next_back()) && is_apart(text[at + key.len()..].chars().next())
    })
}

/// The place that a short reply names by its number in the list, if that is its only number.
fn number(reply: &str, choices: usize) -> Option<usize> {
    let words: Vec<&str> = reply.split_whitespace().collect();
    if words.len() > MAX_NUMBER_WORDS {
        return None;
    }
    let bare = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).parse::<usize>().ok();
    let mut numbers = words.iter().filter_map(bare);
    let number = numbers.next().filter(|_| numbers.next().is_none())?;
    number.checked_sub(1).filter(|place| *place < choices)
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
