//! Whether the purpose of a step is a part of the request that stands by itself.

/// Words that may stand between the parts of a request.
const CONNECTIVES: [&str; 18] = [
    "and", "also", "then", "please", "plus", "e", "ed", "anche", "inoltre", "poi", "et", "puis", "aussi",
    "und", "auch", "dann", "y", "también",
];
/// Words that point to another part.
const POINTING: &str = "it its they them their theirs he him his she her this that these those ne quello quella \
quelli quelle loro suo sua suoi sue";
/// The fewest words of a part.
const MIN_WORDS: usize = 2;

struct RequestWord {
    /// In lower case.
    text: String,
    /// The number of the sentence that it is in.
    sentence: usize,
}

/// Whether `purpose` is one of `parts`, and these are the whole request but for connectives. A part that points to
/// another, and one without a figure in a sentence where another has one, do not stand by themselves.
pub(super) fn is_part(request: &str, purpose: &str, parts: &[&str]) -> bool {
    let (all, own) = (words(request), texts(purpose));
    let points = own.iter().any(|word| POINTING.split_whitespace().any(|other| word == other));
    let mut parts: Vec<Vec<String>> = parts.iter().map(|part| texts(part)).collect();
    if points || own.len() < MIN_WORDS || parts.len() < 2 || !parts.contains(&own) {
        return false;
    }
    // The longest first: another may begin with the same words.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let mut taken = vec![false; all.len()];
    let mut own_sentence = None;
    for part in &parts {
        let Some(at) = place(&all, &taken, part) else { return false };
        taken.iter_mut().skip(at).take(part.len()).for_each(|taken| *taken = true);
        if *part == own {
            own_sentence = all.get(at).map(|word| word.sentence);
        }
    }
    let is_whole = all.iter().zip(&taken).all(|(word, taken)| *taken || is_connective(&word.text));
    let is_figure = |text: &str| text.chars().any(|c| c.is_ascii_digit());
    let has_figure = own.iter().any(|word| is_figure(word));
    let mut others = all.iter().filter(|word| Some(word.sentence) == own_sentence);
    is_whole && (has_figure || !others.any(|word| is_figure(&word.text)))
}

/// Where a part stands in the request, in words that no other part has.
fn place(all: &[RequestWord], taken: &[bool], part: &[String]) -> Option<usize> {
    if part.is_empty() {
        return None;
    }
    let is_here = |at: &usize| {
        let here = all.iter().zip(taken).skip(*at).take(part.len());
        let is_same = here.zip(part).all(|((word, taken), wanted)| !*taken && word.text == *wanted);
        is_same && at + part.len() <= all.len()
    };
    (0..all.len()).find(is_here)
}

fn is_connective(word: &str) -> bool {
    CONNECTIVES.contains(&word)
}

fn texts(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.text).collect()
}

fn words(text: &str) -> Vec<RequestWord> {
    let mut found = Vec::new();
    let mut sentence = 0;
    for chunk in text.split_whitespace() {
        let pieces = chunk.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty());
        found.extend(pieces.map(|piece| RequestWord { text: piece.to_lowercase(), sentence }));
        sentence += usize::from(chunk.ends_with(['.', '!', '?', ';']));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::is_part;

    #[test]
    fn purpose_is_a_part_only_where_nothing_else_is_said() {
        let weather = "What is the weather in Milan";
        let orders = "how many orders were placed";
        let paid = "how much was paid";
        for (request, purpose, other, expected) in [
            ("What is the weather in Milan, and how many orders were placed?", orders, weather, true),
            ("Cancel appointment 41. How many orders were placed?", orders, "Cancel appointment 41", true),
            ("In March 2026, how many orders were placed and how much was paid?", orders, paid, false),
            (
                "Leave out cancelled ones: how many orders were placed and how much was paid?",
                paid,
                orders,
                false,
            ),
            (
                "how many orders were placed and how much was paid in March 2026?",
                orders,
                "how much was paid in March 2026",
                false,
            ),
            (
                "What is the weather in Milan, and how many orders were placed in March?",
                orders,
                weather,
                false,
            ),
            ("How many orders were placed, and what is their total?", "what is their total", orders, false),
            ("Show reorders and how much was paid", "orders", paid, false),
            ("how many orders were placed", orders, weather, false),
        ] {
            assert_eq!(is_part(request, purpose, &[other, purpose]), expected, "{request}");
        }
    }
}
