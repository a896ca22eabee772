//! Number words in English, Italian, French, German and Spanish.
//!
//! Every word of a text is looked up here several times, so an ordinary word must be rejected at once.

use std::collections::HashMap;
use std::sync::LazyLock;

#[rustfmt::skip]
const ENGLISH: &[(&str, u32)] = &[
    ("zero", 0), ("one", 1), ("two", 2), ("three", 3), ("four", 4), ("five", 5), ("six", 6), ("seven", 7),
    ("eight", 8), ("nine", 9), ("ten", 10), ("eleven", 11), ("twelve", 12), ("thirteen", 13), ("fourteen", 14),
    ("fifteen", 15), ("sixteen", 16), ("seventeen", 17), ("eighteen", 18), ("nineteen", 19), ("twenty", 20),
    ("thirty", 30), ("forty", 40), ("fifty", 50), ("sixty", 60), ("seventy", 70), ("eighty", 80), ("ninety", 90),
    ("dozen", 12), ("couple", 2), ("pair", 2), ("both", 2), ("hundred", 100), ("thousand", 1_000),
    ("million", 1_000_000), ("millions", 1_000_000),
];

#[rustfmt::skip]
const ITALIAN: &[(&str, u32)] = &[
    ("zero", 0), ("uno", 1), ("due", 2), ("tre", 3), ("quattro", 4), ("cinque", 5), ("sei", 6), ("sette", 7),
    ("otto", 8), ("nove", 9), ("dieci", 10), ("undici", 11), ("dodici", 12), ("tredici", 13), ("quattordici", 14),
    ("quindici", 15), ("sedici", 16), ("diciassette", 17), ("diciotto", 18), ("diciannove", 19), ("venti", 20),
    ("trenta", 30), ("quaranta", 40), ("cinquanta", 50), ("sessanta", 60), ("settanta", 70), ("ottanta", 80),
    ("novanta", 90), ("dozzina", 12), ("paio", 2), ("coppia", 2), ("entrambi", 2), ("entrambe", 2), ("ambedue", 2),
    ("cento", 100), ("mille", 1_000), ("mila", 1_000), ("milione", 1_000_000), ("milioni", 1_000_000),
];

#[rustfmt::skip]
const FRENCH: &[(&str, u32)] = &[
    ("deux", 2), ("trois", 3), ("six", 6), ("quatre", 4), ("cinq", 5), ("sept", 7), ("huit", 8), ("neuf", 9), ("dix", 10),
    ("onze", 11), ("douze", 12), ("treize", 13), ("quatorze", 14), ("quinze", 15), ("seize", 16), ("vingt", 20),
    ("trente", 30), ("quarante", 40), ("cinquante", 50), ("soixante", 60), ("cent", 100), ("mille", 1_000),
    ("million", 1_000_000), ("millions", 1_000_000),
];

#[rustfmt::skip]
const GERMAN: &[(&str, u32)] = &[
    ("eins", 1), ("zwei", 2), ("drei", 3), ("vier", 4), ("funf", 5), ("sechs", 6), ("sieben", 7), ("acht", 8),
    ("neun", 9), ("zehn", 10), ("elf", 11), ("zwolf", 12), ("dreizehn", 13), ("vierzehn", 14), ("funfzehn", 15),
    ("sechzehn", 16), ("siebzehn", 17), ("achtzehn", 18), ("neunzehn", 19), ("zwanzig", 20), ("dreissig", 30),
    ("vierzig", 40), ("funfzig", 50), ("sechzig", 60), ("siebzig", 70), ("achtzig", 80), ("neunzig", 90),
    ("dutzend", 12), ("hundert", 100), ("tausend", 1_000), ("millionen", 1_000_000),
];

#[rustfmt::skip]
const SPANISH: &[(&str, u32)] = &[
    ("dos", 2), ("tres", 3), ("cuatro", 4), ("cinco", 5), ("seis", 6), ("siete", 7), ("ocho", 8), ("nueve", 9),
    ("diez", 10), ("once", 11), ("doce", 12), ("trece", 13), ("catorce", 14), ("quince", 15), ("dieciseis", 16),
    ("diecisiete", 17), ("dieciocho", 18), ("diecinueve", 19), ("veinte", 20), ("treinta", 30), ("cuarenta", 40),
    ("cincuenta", 50), ("sesenta", 60), ("docena", 12), ("cien", 100), ("ciento", 100), ("mil", 1_000),
    ("milla", 1_000),
];

/// The lists, by language (ISO 639-1).
const LANGUAGES: [(&str, &[(&str, u32)]); 5] =
    [("en", ENGLISH), ("it", ITALIAN), ("fr", FRENCH), ("de", GERMAN), ("es", SPANISH)];

#[rustfmt::skip]
const ORDINALS: &[(&str, u32)] = &[
    ("first", 1), ("second", 2), ("third", 3), ("fourth", 4), ("fifth", 5), ("sixth", 6), ("seventh", 7),
    ("eighth", 8), ("ninth", 9), ("tenth", 10), ("eleventh", 11), ("twelfth", 12), ("thirteenth", 13),
    ("fourteenth", 14), ("fifteenth", 15), ("sixteenth", 16), ("seventeenth", 17), ("eighteenth", 18),
    ("nineteenth", 19), ("twentieth", 20), ("thirtieth", 30), ("primo", 1), ("prima", 1), ("secondo", 2),
    ("seconda", 2), ("terzo", 3), ("terza", 3), ("quarto", 4), ("quarta", 4), ("quinto", 5), ("quinta", 5),
    ("sesto", 6), ("sesta", 6), ("settimo", 7), ("settima", 7), ("ottavo", 8), ("ottava", 8), ("nono", 9),
    ("nona", 9), ("decimo", 10), ("decima", 10), ("undicesimo", 11), ("dodicesimo", 12), ("premier", 1),
    ("premiere", 1), ("deuxieme", 2), ("troisieme", 3), ("quatrieme", 4), ("erste", 1), ("ersten", 1), ("erster", 1),
    ("zweite", 2), ("zweiten", 2), ("dritte", 3), ("dritten", 3), ("vierte", 4), ("vierten", 4), ("funfte", 5),
    ("funften", 5), ("primero", 1), ("primera", 1), ("segundo", 2), ("segunda", 2), ("tercero", 3), ("tercera", 3),
    ("cuarto", 4),
];

static NUMBERS_BY_WORD: LazyLock<HashMap<&str, u32>> =
    LazyLock::new(|| by_word(LANGUAGES.iter().flat_map(|(_, list)| *list)));
static ORDINALS_BY_WORD: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| by_word(ORDINALS.iter()));

/// The tens from which numbers such as "ventuno" are made, as they begin: whole, and without their last vowel.
static TENS: LazyLock<Vec<(&str, &str, u32)>> = LazyLock::new(|| {
    let all = LANGUAGES.iter().flat_map(|(_, list)| *list);
    let tens = all.filter(|(_, value)| (20..100).contains(value) && value % 10 == 0);
    tens.map(|(word, value)| (*word, word.trim_end_matches(['i', 'a', 'e']), *value)).collect()
});

/// Bytes of the shortest number that is made of tens and a unit.
const SHORTEST_SUM: usize = 6;

fn by_word(list: impl Iterator<Item = &'static (&'static str, u32)>) -> HashMap<&'static str, u32> {
    let mut found = HashMap::new();
    for (word, value) in list {
        // Of a word that is listed twice, the first value counts.
        found.entry(*word).or_insert(*value);
    }
    found
}

/// The words of the lists of some languages (ISO 639-1), with their values.
pub(super) fn of_languages(codes: &[&str]) -> impl Iterator<Item = (&'static str, u32)> {
    let lists = LANGUAGES.iter().filter(move |(code, _)| codes.contains(code));
    lists.flat_map(|(_, list)| list.iter().copied())
}

/// The value of one word that is a whole number in a language (ISO 639-1): "three", in Italian also "ventuno". The word is
/// in lower case and without accents. `None` for other words and languages.
pub fn number_word(word: &str, language: &str) -> Option<u32> {
    let (_, list) = LANGUAGES.iter().find(|(code, _)| *code == language)?;
    let listed = list.iter().find(|(own, _)| *own == word).map(|(_, value)| *value);
    let is_one_word = matches!(language, "it" | "de") && small(word).is_none();
    listed.or_else(|| is_one_word.then(|| spoken(word)).flatten())
}

/// The value of one word that is a whole number in any of the languages: "three", "ventuno", "duecentocinquanta".
pub(crate) fn spoken(norm: &str) -> Option<u32> {
    if norm.len() > 40 {
        return None;
    }
    if let Some(value) = small(norm) {
        return Some(value);
    }
    for (mark, by) in [("mila", 1000), ("mille", 1000), ("tausend", 1000), ("cento", 100), ("hundert", 100)] {
        if let Some((head, tail)) = split_at_mark(norm, mark) {
            let head = if head.is_empty() { 1 } else { spoken(head)? };
            let tail = if tail.is_empty() { 0 } else { spoken(tail)? };
            return head.checked_mul(by)?.checked_add(tail);
        }
    }
    // fünfundzwanzig
    if let Some((unit, tens)) = split_at_mark(norm, "und")
        && let (Some(unit), Some(tens)) = (spoken_unit(unit), small(tens).filter(|t| (20..100).contains(t)))
    {
        return Some(tens + unit);
    }
    // ventuno, ventitre, trentotto
    if norm.len() < SHORTEST_SUM {
        return None;
    }
    TENS.iter().find_map(|(tens, stem, value)| {
        let rest = norm.strip_prefix(stem)?;
        spoken_unit(norm.strip_prefix(tens).unwrap_or(rest)).map(|unit| value + unit)
    })
}

/// The parts before and after the first `mark`. For texts as short as words this is faster than `str::split_once`,
/// which prepares a search.
fn split_at_mark<'a>(norm: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    let at = norm.as_bytes().windows(mark.len()).position(|window| window == mark.as_bytes())?;
    Some((norm.get(..at)?, norm.get(at + mark.len()..)?))
}

fn small(norm: &str) -> Option<u32> {
    NUMBERS_BY_WORD.get(norm).copied()
}

fn spoken_unit(norm: &str) -> Option<u32> {
    if norm == "ein" { Some(1) } else { small(norm).filter(|value| (1..10).contains(value)) }
}

/// The value of an ordinal: "third", "terzo", "3rd", "3o".
pub(crate) fn ordinal(norm: &str) -> Option<u32> {
    if let Some(value) = ORDINALS_BY_WORD.get(norm) {
        return Some(*value);
    }
    let digits = norm.trim_end_matches(|c: char| !c.is_ascii_digit());
    let tail = norm.get(digits.len()..)?;
    let marked =
        matches!(tail, "st" | "nd" | "rd" | "th" | "o" | "a" | "er" | "e" | "eme" | "deg" | "degdeg");
    if marked && (1..=3).contains(&digits.len()) {
        return digits.parse().ok();
    }
    // "trentesimo"; "twenty-first" is two words.
    let head = norm.strip_suffix("esimo").or_else(|| norm.strip_suffix("esima"))?;
    ["", "i", "a", "o", "e"].iter().find_map(|end| spoken(&format!("{head}{end}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_language_are_numbers_in_it_alone() {
        assert_eq!(number_word("thirteen", "en"), Some(13));
        assert_eq!(number_word("sei", "it"), Some(6));
        assert_eq!(number_word("ventuno", "it"), Some(21));
        assert_eq!(number_word("duecentocinquanta", "it"), Some(250));
        assert_eq!(number_word("funfundzwanzig", "de"), Some(25));
        for (word, language) in [("sei", "en"), ("once", "en"), ("six", "it"), ("elf", "en"), ("ten", "xx")] {
            assert_eq!(number_word(word, language), None, "{word} in {language}");
        }
    }

    #[test]
    fn words_of_all_languages_are_numbers_in_any_text() {
        for (word, value) in
            [("six", 6), ("once", 11), ("mila", 1000), ("milioni", 1_000_000), ("tremila", 3000)]
        {
            assert_eq!(spoken(word), Some(value), "{word}");
        }
        assert_eq!((spoken("unicorn"), spoken("funfundhundert")), (None, None));
    }
}
