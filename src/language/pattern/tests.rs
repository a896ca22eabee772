//! Patterns are matched as their definition says, on sentences made of their own words.

use std::path::Path;

use proptest::arbitrary::any as arbitrary;
use proptest::prelude::{TestCaseError, prop, prop_assert_eq, proptest};
use proptest::sample::select;

use super::*;
use crate::language::text;

/// Words of the classes, and words that fit nothing.
const OTHER_WORDS: &[&str] = &[
    "book", "prenotare", "prenotarlo", "booking", "booked", "parlando", "prenotato", "7", "12:30", "è", "È",
    "e'", "e", "sì", "zebra", "Milano", "",
];

/// Whether a word fits a part of a pattern, by definition.
fn fits(token: &Token, part: &str) -> bool {
    match part {
        "*" => true,
        "<verb>" => {
            VERBS.contains(&token.norm.as_str()) || lexicon::may_be_action(&token.features().concepts)
        }
        "<inf>" => is_infinitive(&token.norm),
        "<ing>" => token.norm.len() > 4 && token.norm.ends_with("ing"),
        "<ed>" => is_past(&token.norm),
        "<ger>" => token.norm.len() > 5 && (token.norm.ends_with("ando") || token.norm.ends_with("endo")),
        "<pp>" => is_participle(&token.norm),
        "<num>" => token.digit(),
        "è" => token.lower == "è",
        _ => part.split('/').any(|word| word == token.norm),
    }
}

/// The end of a pattern that begins at `at`, by definition.
fn plain_end(words: &[&Token], at: usize, pattern: &str) -> Option<usize> {
    let mut i = at;
    for part in pattern.split(' ') {
        match part.strip_suffix('?') {
            Some(part) => i += usize::from(words.get(i).is_some_and(|t| fits(t, part))),
            None => {
                if !fits(words.get(i)?, part) {
                    return None;
                }
                i += 1;
            }
        }
    }
    Some(i)
}

/// The Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("pattern/tests.rs")
        {
            found.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The string at the beginning of a source, and what follows it.
fn string(source: &str) -> (String, &str) {
    let body = source.strip_prefix('"').unwrap();
    let end = body.find('"').unwrap();
    // A line that ends with a backslash goes on at the first word of the next one.
    let lines: Vec<&str> = body[..end].split("\\\n").collect();
    let text = lines.iter().enumerate().map(|(n, line)| if n == 0 { *line } else { line.trim_start() });
    (text.collect(), &body[end + 1..])
}

/// The patterns of a list, given the source behind its opening bracket.
fn listed(file: &str, mut rest: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\n', ',']);
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').unwrap().1;
        } else if rest.starts_with('"') {
            let (pattern, after) = string(rest);
            patterns.push(pattern);
            rest = after;
        } else if rest.starts_with(']') {
            return patterns;
        } else {
            let (name, after) = rest.split_at(rest.find([',', ']']).unwrap());
            let definition = file.split_once(&format!("const {name}: &str =")).unwrap().1;
            patterns.push(string(definition.trim_start()).0);
            rest = after;
        }
    }
}

/// All lists of patterns of the code.
static LISTS: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let lists = files.iter().flat_map(|file| {
        // Not in a comment or a macro.
        let begins = file.match_indices("patterns![").filter(move |(at, _)| !file[..*at].ends_with('`'));
        begins.map(move |(at, begin)| listed(file, &file[at + begin.len()..]))
    });
    let leaked = |pattern: String| -> &'static str { pattern.leak() };
    lists.map(|list| list.into_iter().map(leaked).collect()).collect()
});

/// Words that the patterns of a list name.
fn words_of(list: &[&'static str]) -> Vec<&'static str> {
    let parts = list.iter().flat_map(|pattern| pattern.split(' '));
    parts
        .flat_map(|part| part.trim_end_matches('?').split('/'))
        .filter(|word| !word.starts_with(['<', '*']))
        .collect()
}

/// A sentence made of a pattern: a word for each part, some left out.
fn sentence_of(pattern: &str, picks: &[(usize, bool)]) -> Vec<String> {
    let mut words = Vec::new();
    for (part, (pick, is_left_out)) in pattern.split(' ').zip(picks.iter().cycle()) {
        let (part, is_optional) = part.strip_suffix('?').map_or((part, false), |part| (part, true));
        let choices: Vec<&str> =
            if part.starts_with(['<', '*']) { OTHER_WORDS.to_vec() } else { part.split('/').collect() };
        if !(is_optional && *is_left_out) {
            words.push(choices[pick % choices.len()].to_owned());
        }
    }
    words
}

/// Compares a list with its definition at each place of a sentence.
fn compare(list: &[&'static str], patterns: &Patterns, sentence: &str) -> Result<(), TestCaseError> {
    let tokens = text::tokens(sentence);
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let ends_at =
        |at: usize| list.iter().filter_map(|pattern| plain_end(&words, at, pattern)).collect::<Vec<_>>();
    for at in 0..words.len() + 2 {
        let ends: Vec<usize> = patterns.ends(&words, at).collect();
        prop_assert_eq!(&ends, &ends_at(at), "{} from word {}", sentence, at);
        prop_assert_eq!(super::any(&words, at, patterns), ends.first().copied());
    }
    let first = |max: usize| (0..words.len().min(max)).find_map(|at| Some((at, *ends_at(at).first()?)));
    for max in [0, 3, words.len()] {
        prop_assert_eq!(find(&words, max, patterns), first(max), "{} within {}", sentence, max);
    }
    Ok(())
}

fn leaked(list: &[&'static str]) -> &'static Patterns {
    Box::leak(Box::new(Patterns::new(list.to_vec().leak())))
}

#[test]
fn all_lists_of_the_code_are_known() {
    assert!(LISTS.len() > 60, "{}", LISTS.len());
    for known in ["when you can/get", "<verb> no one", "prima di <inf>", "return/output/generate"] {
        let lists = LISTS.iter().flatten();
        assert!(lists.clone().any(|pattern| pattern.starts_with(known)), "{known}");
    }
    assert!(
        LISTS.iter().flatten().all(|pattern| !pattern.is_empty() && !pattern.contains(['\\', '\n', '"']))
    );
}

#[test]
fn each_pattern_matches_the_sentences_that_it_describes() {
    let picks = [(0, false)];
    for list in LISTS.iter() {
        let patterns = leaked(list);
        for pattern in list {
            let sentence = sentence_of(pattern, &picks).join(" ");
            compare(list, patterns, &sentence).unwrap();
        }
    }
}

proptest! {
    /// Sentences of the words of a list, of one of its patterns, and of other words.
    #[test]
    fn lists_match_as_their_definition_says(
        list in arbitrary::<usize>(),
        pattern in arbitrary::<usize>(),
        picks in prop::collection::vec((arbitrary::<usize>(), arbitrary::<bool>()), 1..8),
        around in prop::collection::vec((arbitrary::<usize>(), arbitrary::<bool>()), 0..12),
        before in 0..4_usize,
    ) {
        let list = &LISTS[list % LISTS.len()];
        let words = words_of(list);
        let word = |(pick, is_own): &(usize, bool)| match *is_own && !words.is_empty() {
            true => words[pick % words.len()].to_owned(),
            false => OTHER_WORDS[pick % OTHER_WORDS.len()].to_owned(),
        };
        let mut sentence: Vec<String> = around.iter().map(word).collect();
        let at = before.min(sentence.len());
        let rest = sentence.split_off(at);
        sentence.extend(sentence_of(list[pattern % list.len()], &picks));
        sentence.extend(rest);
        compare(list, leaked(list), &sentence.join(" "))?;
    }

    /// Lists that the code does not have: classes between words, options at the beginning, patterns that match no word.
    #[test]
    fn any_list_matches_as_its_definition_says(
        list in prop::collection::vec(
            prop::collection::vec(
                select(vec![
                    "a", "b", "a/b", "a?", "b?", "a/c?", "*", "*?", "<verb>", "<inf>?", "<num>", "è", "è?", "e", "e/è", "c",
                ]),
                1..4,
            ),
            1..6,
        ),
        sentence in prop::collection::vec(select(vec!["a", "b", "c", "è", "e", "7", "book", "prenotare", "z"]), 0..6),
    ) {
        let list: Vec<&'static str> = list.iter().map(|parts| -> &'static str { parts.join(" ").leak() }).collect();
        compare(&list, leaked(&list), &sentence.join(" "))?;
    }
}
