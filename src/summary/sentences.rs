//! Where the sentences of a text end.

use super::ByteSpan;
use crate::language::dates;

/// Words before a full stop that does not end a sentence, in lower case and without their own stops.
const ABBREVIATIONS: &[&str] = &[
    "art", "av", "avv", "bzw", "ca", "cap", "cf", "co", "corp", "dott", "dr", "dra", "eg", "etc", "evtl",
    "ex", "fig", "geb", "ggf", "hr", "ie", "inc", "ing", "jr", "ltd", "max", "min", "mme", "mr", "mrs", "ms",
    "mt", "nr", "no", "num", "pag", "par", "pp", "prof", "rev", "sec", "sig", "sigg", "sr", "sra", "srl",
    "st", "str", "tel", "usw", "vgl", "vol", "vs", "zb",
];

/// Maximum size of a sentence, in bytes: a text without a full stop is not one sentence.
const MAX_SENTENCE: usize = 4_000;

/// How many marks may follow the end of a sentence: the search for what follows them is bounded.
const MAX_CLOSING: usize = 8;

/// The sentences of a text, in order, without blanks around them. Takes time in proportion to the text.
pub fn sentences(text: &str) -> Vec<ByteSpan> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let is_end = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | '…' => ends_sentence(text, start, at, end),
            '\n' => text[end..].starts_with('\n') || text[end..].starts_with("\r\n"),
            _ => false,
        };
        if !is_end && end - start < MAX_SENTENCE {
            continue;
        }
        let mut end = end;
        while let Some((next, mark)) = chars.peek().copied()
            && is_end
            && is_closing(mark)
        {
            chars.next();
            end = next + mark.len_utf8();
        }
        push(text, ByteSpan::new(start, end), &mut found);
        start = end;
    }
    push(text, ByteSpan::new(start, text.len()), &mut found);
    found
}

fn push(text: &str, span: ByteSpan, found: &mut Vec<ByteSpan>) {
    let own = super::span::trimmed(text, span);
    if !own.is_empty() {
        found.push(own);
    }
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '»' | '”' | '’' | ')' | ']' | '.' | '!' | '?' | '…')
}

/// Whether the mark at `at` ends the sentence that began at `start`.
fn ends_sentence(text: &str, start: usize, at: usize, end: usize) -> bool {
    let closing = text[end..].chars().take(MAX_CLOSING).take_while(|c| is_closing(*c));
    let rest = &text[end + closing.map(char::len_utf8).sum::<usize>()..];
    let follows = rest.trim_start();
    if follows.is_empty() {
        return true;
    }
    if !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let next = follows.chars().next().unwrap_or(' ');
    if next.is_lowercase() {
        return false;
    }
    if text.as_bytes().get(at) != Some(&b'.') {
        return true;
    }
    let before = &text[start..at];
    let word =
        before.rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '\'' | '’')).next().unwrap_or("");
    if word.len() > 12 {
        return true;
    }
    let bare: String = word.chars().filter(|c| *c != '.').flat_map(char::to_lowercase).collect();
    let is_initial =
        word.chars().filter(|c| c.is_alphabetic()).count() == 1 && !word.contains(char::is_numeric);
    if is_initial && word.chars().next().is_some_and(char::is_uppercase)
        || ABBREVIATIONS.contains(&bare.as_str())
    {
        return false;
    }
    // "am 3. März 2026"; "1. Costs" is an item of a list.
    let is_ordinal = (1..=2).contains(&bare.len()) && bare.bytes().all(|byte| byte.is_ascii_digit());
    !(is_ordinal && (before.trim() == word || is_month(follows)))
}

fn is_month(text: &str) -> bool {
    let word: String = text.chars().take_while(|c| c.is_alphabetic()).take(12).collect();
    dates::month(&crate::language::fold(&word)).is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|span| span.of(text).unwrap()).collect()
    }

    #[test]
    fn sentences_end_where_readers_expect_it() {
        assert_eq!(
            shown("Dr. Rossi paid 3.5 million. \"Really?\" J. R. Smith left on 3. März 2026. Ende"),
            ["Dr. Rossi paid 3.5 million.", "\"Really?\"", "J. R. Smith left on 3. März 2026.", "Ende"]
        );
        assert_eq!(
            shown("Il sig. Neri arrivò... poi partì.\n\nCosì finì!"),
            ["Il sig. Neri arrivò... poi partì.", "Così finì!"]
        );
        assert_eq!(shown("Cost was 12. Then it fell."), ["Cost was 12.", "Then it fell."]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn sentences_lose_only_blanks(text in "\\PC{0,300}|([A-Za-z0-9à€\u{1F600} ]{0,9}[.!?\n\"»]{0,3} ?){0,40}") {
            let kept: String = shown(&text).concat().split_whitespace().collect();
            let all: String = text.split_whitespace().collect();
            prop_assert_eq!(kept, all);
        }
    }
}
