//! Parts of a request that are independent of the others, so that a flow can be given one alone. The lists of words are
//! for English, Italian, French, German and Spanish.

/// Words that may stand between the parts of a request.
const CONNECTIVES: [&str; 18] = [
    "and", "also", "then", "please", "plus", "e", "ed", "anche", "inoltre", "poi", "et", "puis", "aussi",
    "und", "auch", "dann", "y", "también",
];
/// Words that point to another part.
const POINTING: &str = "it its they them their theirs he him his she her this that these those ne quello quella \
quelli quelle loro suo sua suoi sue";
/// Words that restrict, forbid, exclude or correct something, or make it depend on something.
const RESTRICTING: &str = "\
not no non never none neither nor nobody nothing don dont doesn didn cannot unless without apart aside besides minus \
but instead rather only just if whether until otherwise remaining rest other others else already anymore actually sorry wait \
both respectively \
mai né senza tranne salvo fuorché fuori parte meno ma però invece piuttosto solo soltanto nessun nessuno nessuna niente \
solamente se finché altrimenti resto restanti altri altre già anzi aspetta entrambi entrambe rispettivamente \
pas ne ni jamais sans sauf hormis mais plutôt seulement uniquement si sinon reste autres déjà aucun aucune \
nicht kein keine keinen nie ohne außer ausser aber sondern statt nur wenn ob falls sonst rest andere schon beide \
nunca sin menos pero sino solo sólo solamente si aunque otros otras ya ningún ninguno ninguna ambos \
omit omits omitted omitting skip skipping ometti omettendo salta saltando escluso omettez omite";
/// How other such words begin: "excluding", "esclusi", "eccezione".
const RESTRICTING_STEMS: [&str; 10] =
    ["exclu", "esclu", "except", "eccett", "eccez", "excep", "ignor", "ausgenommen", "ausgeschl", "limit"];
/// Words with which a request begins to say to which place, time or thing all of it applies.
const FRAMES: &str = "in at for during since from among within nel nella nei nelle per durante da";
/// Words of a purpose that name only an action, and no object.
const NEUTRAL: &str = "\
the and for from with per all each their what which who when where how many much number count total list show find get give \
tell read look search retrieve fetch query queries sql data database information answer question request run execute missing \
remaining rest again needed user are was were did does has have also about any \
del dei della delle degli dello nel nella nei nelle dal dalla con che chi quando dove come quanti quante quanto quanta quali \
quale numero totale mostra elenca trova leggi cerca dammi dati informazioni risposta domanda richiesta tutti tutte gli una uno \
mancanti utente";
/// Minimum number of letters of a word that counts, and of the common beginning of two forms of a word.
const WORD_LETTERS: usize = 3;
const STEM_LETTERS: usize = 4;
/// The fewest words of a part.
const MIN_WORDS: usize = 2;

struct RequestWord {
    /// In lower case.
    text: String,
    /// The number of the sentence that it is in.
    sentence: usize,
}

/// Returns whether `purpose` is one of `parts`, and these make up the whole request but for connectives. A part is not
/// independent if it points to another one, or if words of another part may apply to it as well: the end of its
/// sentence, a restriction, the place or time with which its sentence begins, or a figure in its sentence.
pub(crate) fn is_part(request: &str, purpose: &str, parts: &[&str]) -> bool {
    let (all, own) = (words(request), texts(purpose));
    let mut parts: Vec<Vec<String>> = parts.iter().map(|part| texts(part)).collect();
    if points_back(purpose) || own.len() < MIN_WORDS || parts.len() < 2 || !parts.contains(&own) {
        return false;
    }
    // The longest first: another may begin with the same words.
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let mut taken = vec![false; all.len()];
    let mut own_start = None;
    for part in &parts {
        let Some(at) = place(&all, &taken, part) else { return false };
        taken.iter_mut().skip(at).take(part.len()).for_each(|taken| *taken = true);
        if *part == own {
            own_start = Some(at);
        }
    }
    let is_whole = all.iter().zip(&taken).all(|(word, taken)| *taken || is_connective(&word.text));
    let Some(start) = own_start.filter(|_| is_whole) else { return false };
    let (before, rest) = all.split_at_checked(start).unwrap_or_default();
    let (own, after) = rest.split_at_checked(own.len()).unwrap_or_default();
    let others: Vec<&RequestWord> = before.iter().chain(after).collect();
    let sentence = own.first().map(|word| word.sentence);
    let has_figure = own.iter().any(|word| is_figure(&word.text));
    let in_sentence = |word: &&&RequestWord| Some(word.sentence) == sentence;
    is_end(own, after)
        && !restrict(others.iter().map(|word| word.text.as_str()))
        && !others.iter().find(in_sentence).is_some_and(|word| is_frame(&word.text))
        && (has_figure || !others.iter().filter(in_sentence).any(|word| is_figure(&word.text)))
}

/// Returns whether `part` is the end of a sentence of the request, so that nothing follows that may apply to it as
/// well, as in "how many orders were placed and how much was paid in Milan".
pub(crate) fn ends_sentence(request: &str, part: &str) -> bool {
    let (all, own) = (words(request), texts(part));
    let Some(start) = place(&all, &vec![false; all.len()], &own) else { return false };
    let (_, rest) = all.split_at_checked(start).unwrap_or_default();
    rest.split_at_checked(own.len()).is_some_and(|(own, after)| is_end(own, after))
}

/// Returns whether a text restricts, excludes or corrects something: then its parts are not independent.
pub(crate) fn restricts(text: &str) -> bool {
    let words = texts(text);
    restrict(words.iter().map(String::as_str))
}

/// Returns whether a text begins with the place, time or thing to which it, and perhaps the following text, applies.
pub(crate) fn begins_with_frame(text: &str) -> bool {
    texts(text).first().is_some_and(|word| is_frame(word))
}

/// Returns whether a text points to something that was said before.
pub(crate) fn points_back(text: &str) -> bool {
    texts(text).iter().any(|word| POINTING.split_whitespace().any(|other| word == other))
}

/// Returns whether a purpose names nothing that the user's texts do not name, in whatever form of the word.
pub(crate) fn says_no_more<'a>(users: impl IntoIterator<Item = &'a str>, purpose: &str) -> bool {
    let said: Vec<String> = users.into_iter().flat_map(texts).collect();
    let names = |word: &&String| {
        word.chars().count() >= WORD_LETTERS && !NEUTRAL.split_whitespace().any(|other| other == *word)
    };
    texts(purpose).iter().filter(names).all(|word| said.iter().any(|other| is_form_of(word, other)))
}

/// Whether two words are the same, or begin alike up to their last two letters.
fn is_form_of(word: &str, other: &str) -> bool {
    let alike = word.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let shorter = word.chars().count().min(other.chars().count());
    word == other || alike >= STEM_LETTERS.max(shorter.saturating_sub(2))
}

fn is_end(own: &[RequestWord], after: &[RequestWord]) -> bool {
    let sentence = own.last().map(|word| word.sentence);
    // "please" may follow.
    after.iter().take_while(|word| Some(word.sentence) == sentence).all(|word| is_connective(&word.text))
}

fn restrict<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let mut last = "";
    for word in words {
        let is_left_out = word == "out" && matches!(last, "leave" | "leaving" | "left");
        // "isn't"
        let is_negated = word == "t" && last.ends_with('n');
        let is_listed = RESTRICTING.split_whitespace().any(|other| other == word);
        if is_left_out
            || is_negated
            || is_listed
            || RESTRICTING_STEMS.iter().any(|stem| word.starts_with(stem))
        {
            return true;
        }
        last = word;
    }
    false
}

fn is_frame(word: &str) -> bool {
    FRAMES.split_whitespace().any(|frame| frame == word)
}

fn is_figure(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_digit())
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
    use proptest::prelude::*;

    use super::{ends_sentence, is_part, restricts, says_no_more};

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
            // The rest of the sentence may apply to both.
            ("How many orders were placed, and what is the weather in Milan?", orders, weather, false),
            (
                "how many orders were placed and how much was paid in Milan?",
                orders,
                "how much was paid in Milan",
                false,
            ),
            ("How many orders were placed? What is the weather in Milan?", orders, weather, true),
            ("What is the weather in Milan, and how many orders were placed, please?", orders, weather, true),
            // So may an exclusion in one part, and the place or time with which the sentence begins.
            (
                "how much was paid without discount and how many orders were placed?",
                orders,
                "how much was paid without discount",
                false,
            ),
            (
                "Cancelled ones excluded. How many orders were placed?",
                orders,
                "Cancelled ones excluded",
                false,
            ),
            (
                "In Milan what was paid, and how many orders were placed?",
                orders,
                "In Milan what was paid",
                false,
            ),
        ] {
            assert_eq!(is_part(request, purpose, &[other, purpose]), expected, "{request}");
        }
    }

    #[test]
    fn restrictions_are_found_in_several_languages() {
        for words in [
            "all orders excluding returns",
            "gli ordini esclusi i resi",
            "a parte i resi",
            "fatta eccezione per i resi",
            "alle Bestellungen ohne Rabatt",
            "leave out the returns",
            "those that aren't paid",
            "for Milan and Rome respectively",
            "limited to Milan",
        ] {
            assert!(restricts(words), "{words}");
        }
        for words in ["how many orders were placed in Milan", "quanti ordini sono stati fatti a marzo"] {
            assert!(!restricts(words), "{words}");
        }
    }

    #[test]
    fn purpose_says_no_more_than_the_user_only_in_the_user_s_words() {
        let request = "Show me the reviews of July 2026, and how many customers wrote them";
        for (purpose, expected) in [
            ("number of customers", true),
            ("The reviews of July", true),
            ("Count each customer who wrote a review", true),
            ("salary and iban of employees", false),
            ("reviews of August", false),
            ("customers' tax codes", false),
            ("reviews of July with the e-mail of the staff", false),
            ("pay of all", false),
        ] {
            assert_eq!(says_no_more([request], purpose), expected, "{purpose}");
        }
        assert!(says_no_more([request, "in August, please"], "reviews of August"), "said in another text");
    }

    const THINGS: [&str; 5] = ["orders", "customers", "refunds", "products", "reviews"];
    const TAILS: [&str; 8] = [
        "in Milan", "by card", "this year", "with a discount", "without a discount", "a Milano",
        "tranne i resi", "online",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn part_before_the_tail_of_its_sentence_is_none(
            things in prop::sample::subsequence(THINGS.to_vec(), 2..4),
            tail in prop::sample::select(TAILS.to_vec()),
            joint in prop::sample::select(vec![", ", " and ", ", and also ", " e "]),
        ) {
            let mut parts: Vec<String> = things.iter().map(|thing| format!("how many {thing} are there")).collect();
            parts.last_mut().unwrap().push_str(&format!(" {tail}"));
            let request = format!("{}?", parts.join(joint));
            let all: Vec<&str> = parts.iter().map(String::as_str).collect();
            for part in &all[..all.len() - 1] {
                prop_assert!(!is_part(&request, part, &all), "{part}: {request}");
                prop_assert!(!ends_sentence(&request, part), "{part}: {request}");
            }
        }

        #[test]
        fn sentences_of_their_own_are_parts_unless_one_restricts(
            things in prop::sample::subsequence(THINGS.to_vec(), 2..4),
            tail in prop::sample::select(TAILS.to_vec()),
        ) {
            let mut parts: Vec<String> = things.iter().map(|thing| format!("how many {thing} are there")).collect();
            parts.last_mut().unwrap().push_str(&format!(" {tail}"));
            let request = format!("{}?", parts.join("? "));
            let all: Vec<&str> = parts.iter().map(String::as_str).collect();
            for part in &all[..all.len() - 1] {
                prop_assert_eq!(is_part(&request, part, &all), !restricts(tail), "{}: {}", part, &request);
            }
        }
    }
}
