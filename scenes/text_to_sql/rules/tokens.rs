//! A question as words: case and accents folded, elisions and hyphens taken apart, numbers, dates and quoted texts whole.

use super::Tongue;

/// A word of the question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Lower case, without accents; of a quoted text, the text as written.
    pub text: String,
    /// As written.
    pub written: String,
    /// Whether it stood in quotes.
    pub quoted: bool,
    /// Whether it is a punctuation mark.
    pub mark: bool,
}

const QUOTES: [(char, char); 5] = [('"', '"'), ('“', '”'), ('«', '»'), ('‘', '’'), ('\'', '\'')];

/// Takes a text apart.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&here) = chars.get(at) {
        if let Some((quoted, next)) = quotation(&chars, at) {
            out.push(Token { text: quoted.clone(), written: quoted, quoted: true, mark: false });
            at = next;
        } else if here.is_alphanumeric() {
            let next = word_end(&chars, at);
            let written: String = chars.iter().take(next).skip(at).collect();
            out.push(Token { text: folded(&written), written, quoted: false, mark: false });
            at = next;
        } else {
            if !here.is_whitespace() && !is_joint(&chars, at) {
                out.push(Token { text: here.into(), written: here.into(), quoted: false, mark: true });
            }
            at += 1;
        }
    }
    out
}

/// An apostrophe or a hyphen inside a word, which only takes it apart.
fn is_joint(chars: &[char], at: usize) -> bool {
    let is_word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
    let before = is_word(at.checked_sub(1));
    match chars.get(at) {
        Some('\'' | '’') => before,
        Some('-' | '_') => before && is_word(Some(at + 1)),
        _ => false,
    }
}

fn quotation(chars: &[char], at: usize) -> Option<(String, usize)> {
    let open = chars.get(at)?;
    let (_, close) = QUOTES.iter().find(|(opening, _)| opening == open)?;
    let after_word =
        at.checked_sub(1).and_then(|before| chars.get(before)).is_some_and(|c| c.is_alphanumeric());
    if after_word {
        return None;
    }
    let is_end = |end: usize| {
        chars.get(end) == Some(close) && !chars.get(end + 1).is_some_and(|next| next.is_alphanumeric())
    };
    let end = (at + 1..chars.len()).find(|end| is_end(*end))?;
    let inside: String = chars.iter().take(end).skip(at + 1).collect();
    (!inside.trim().is_empty()).then(|| (inside.trim().to_owned(), end + 1))
}

/// Letters and digits; in a number or a date also `.`, `,`, `/`, `-` and `:` between digits.
fn word_end(chars: &[char], start: usize) -> usize {
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let mut at = start;
    while let Some(here) = chars.get(at) {
        let inner =
            matches!(here, '.' | ',' | '/' | '-' | ':') && at > start && digit(at - 1) && digit(at + 1);
        let inner = inner && digit(start);
        if !(here.is_alphanumeric() || inner) {
            break;
        }
        at += 1;
    }
    at
}

/// Lower case, without accents.
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            'à' | 'á' | 'â' | 'ä' | 'ã' | 'å' => out.push('a'),
            'è' | 'é' | 'ê' | 'ë' => out.push('e'),
            'ì' | 'í' | 'î' | 'ï' => out.push('i'),
            'ò' | 'ó' | 'ô' | 'ö' | 'õ' | 'ø' => out.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => out.push('u'),
            'ç' => out.push('c'),
            'ñ' => out.push('n'),
            'ß' => out.push_str("ss"),
            '\u{300}'..='\u{36f}' => {}
            other => out.push(other),
        }
    }
    out
}

/// A word without its ending for number and, in Italian, gender.
pub fn stem(word: &str, tongue: Tongue) -> String {
    match tongue {
        Tongue::English => english_stem(word),
        Tongue::Italian => italian_stem(word),
    }
}

fn english_stem(word: &str) -> String {
    let cut = |tail: &str| word.strip_suffix(tail).map(str::to_owned);
    if word.len() < 4 || word.chars().any(|c| c.is_ascii_digit()) {
        return word.to_owned();
    }
    if word.len() > 4
        && let Some(root) = cut("ies")
    {
        return root + "y";
    }
    for tail in ["sses", "xes", "ches", "shes", "uses"] {
        if word.ends_with(tail) {
            return cut("es").unwrap_or_default();
        }
    }
    if word == "people" {
        return "person".to_owned();
    }
    match cut("s") {
        Some(root) if !root.ends_with(['s', 'u', 'i']) => root,
        _ => word.to_owned(),
    }
}

fn italian_stem(word: &str) -> String {
    if word.len() < 4 || word.chars().any(|c| c.is_ascii_digit()) {
        return word.to_owned();
    }
    let root = word.strip_suffix(['a', 'e', 'i', 'o']).unwrap_or(word);
    let root = root.strip_suffix('h').unwrap_or(root);
    let root = root.strip_suffix('i').unwrap_or(root);
    root.to_owned()
}

/// Whether the last word of an English phrase is a plural.
pub fn is_english_plural(text: &str) -> bool {
    text.split(' ').next_back().is_some_and(|word| english_stem(word) != word)
}
