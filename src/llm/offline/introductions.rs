//! How people say who they are, "sono X", "this is X", and which words look like the user name of somebody.

use super::lexicon;
use super::pattern::{self, patterns};
use super::text::Token;

/// Whether the words before introduce a person: "sono X", "mi chiamo X", "I am X", "my name is X".
pub(super) fn follows_introduction(tokens: &[Token], i: usize) -> bool {
    let word = |back: usize, words: &[&str]| {
        i.checked_sub(back).and_then(|k| tokens.get(k)).is_some_and(|t| t.is(words))
    };
    (word(1, &["sono"])
        && i.checked_sub(2).is_none_or(|k| !tokens[k].word || tokens[k].is(&["io", "e", "ciao"])))
        || (word(1, &["chiamo"]) && word(2, &["mi"]))
        || (word(1, &["am"]) && word(2, &["i"]))
        || (word(1, &["m"]) && word(2, &["i"]))
        || (word(1, &["is"]) && word(2, &["name", "username"]) && word(3, &["my"]))
        || (word(1, &["suis", "bin", "soy"]))
        || announces_speaker(tokens, i)
}

/// Whether a sentence opens by saying who speaks: "this is mrossi, …", "Nina Weber here", "hier spricht …", "aquí …". Of other
/// names than logins and first names, it may say anything: "this is Rome".
fn announces_speaker(tokens: &[Token], i: usize) -> bool {
    let is_person =
        begins_like_login(&tokens[i]) || tokens[i].capital() && lexicon::is_first_name(&tokens[i].norm);
    let opens =
        tokens[..i].iter().rposition(|t| matches!(t.raw.as_str(), "." | "!" | "?" | "\n" | "," | ";"));
    let words: Vec<&Token> = tokens[opens.map_or(0, |mark| mark + 1)..i].iter().filter(|t| t.word).collect();
    let own = pattern::strip_fillers(&words);
    let leads = patterns![
        "this/it is/s",
        "hier ist/spricht/schreibt?",
        "am apparat",
        "qui parla/scrive?",
        "ici c? est?",
        "c est",
        "aqui habla/escribe?",
        "le? habla"
    ];
    let mut behind = tokens[i + 1..].iter().skip_while(|t| t.word && t.capital());
    let next = behind.next();
    let is_here = next.is_some_and(|t| t.is(&["here", "hier", "ici", "aqui"]));
    let next = if is_here { behind.next() } else { next };
    let is_led = leads.ends(own, 0).any(|end| end == own.len()) || own.is_empty() && is_here;
    is_person && is_led && next.is_none_or(|t| !t.word && !matches!(t.raw.as_str(), "'" | "’" | "?"))
}

/// Whether a word without a capital looks like a login and not like an adjective ("sono stanco").
pub(super) fn is_login_like(tokens: &[Token], i: usize) -> bool {
    let token = &tokens[i];
    let explicit =
        i > 0 && tokens[i - 1].is(&["chiamo"]) || (i > 1 && tokens[i - 2].is(&["name", "username"]));
    let ends = tokens
        .get(i + 1)
        .is_none_or(|t| !t.word || t.lower == "e" || t.is(&["and", "here", "hier", "ici", "aqui"]));
    let login = token.digit() || token.raw.contains(['_', '.', '-']) || begins_like_login(token);
    let italian = tokens[i.saturating_sub(1)].is(&["sono"]) && !token.norm.ends_with(['o', 'a', 'e']);
    let stop = lexicon::is_stop_word(&token.norm) || !token.features().concepts.is_empty();
    explicit || (ends && !stop && (login || italian))
}

/// Pairs of consonants with which words begin, in the languages of the shipped scenes.
const FIRST_CONSONANTS: &str = "bl br ch cl cr cz dj dr dw dz fj fl fr gh gl gn gr hr jh kh kl kn kr kw ll mc mn ph pf pl pn pr ps pt rh \
sb sc sd sf sg sh sk sl sm sn sp sq sr st sv sw sz th tr ts tw tz vl vr wh wr zb zd zh zl zm zw";

/// Whether a word begins with an initial and a surname, as no other word does: "mrossi", "lferrari".
pub(super) fn begins_like_login(token: &Token) -> bool {
    let is_vowel = |c: char| "aeiouy".contains(c);
    let word = token.norm.as_str();
    let is_plain =
        token.word && !token.capital() && word.len() >= 5 && word.bytes().all(|b| b.is_ascii_lowercase());
    let first = word.get(..2).filter(|_| is_plain && word.contains(is_vowel));
    let is_doubled = word.as_bytes().first() == word.as_bytes().get(1);
    first.is_some_and(|pair| {
        !pair.contains(is_vowel)
            && !is_doubled
            && !FIRST_CONSONANTS.split_whitespace().any(|known| known == pair)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_and_surname_look_like_a_login() {
        for (word, is_login) in [
            ("mrossi", true),
            ("lferrari", true),
            ("pgarcia", true),
            ("tired", false),
            ("sbagliato", false),
            ("ill", false),
            ("html", false),
            ("Mrossi", false),
            ("keysersoze", false),
            ("llamado", false),
        ] {
            let tokens = super::super::text::tokens(word);
            assert_eq!(begins_like_login(&tokens[0]), is_login, "{word}");
        }
    }

    #[test]
    fn who_speaks_is_announced_by_login_or_first_name() {
        for (said, announces) in [
            ("This is mrossi, book 15 December off", true),
            ("Hi, it's mrossi here. Book 15 December off", true),
            ("Nina Weber here: book 15 December off", true),
            ("Hallo, hier ist mrossi. Beantrage Urlaub", true),
            ("C'est Mario Rossi, demande un congé", true),
            ("Aquí Mario Rossi: pide vacaciones", true),
            ("This is Rome, isn't it", false),
            ("This is Mario's day off", false),
            ("It's Anna who books it", false),
            ("Is this mrossi?", false),
        ] {
            let tokens = super::super::text::tokens(said);
            let found = (0..tokens.len()).any(|i| tokens[i].word && announces_speaker(&tokens, i));
            assert_eq!(found, announces, "{said}");
        }
    }
}
