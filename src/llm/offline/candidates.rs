//! Finds name candidates: quotations, runs of capitalised words, codes, and unknown words after a
//! preposition or a cue word.

use std::rc::Rc;

use super::introductions::{begins_like_login, follows_introduction, is_login_like};
use super::lexicon;
use super::pattern;
use super::schema::ArgumentField;
use super::source::SourceText;
use super::text::{Features, Token};
use crate::language;
use crate::language::function_words::{AND, ARTICLES};

/// A span that may be a name.
#[derive(Debug, Clone)]
pub(super) struct NameCandidate {
    /// Index of its first token.
    pub first: usize,
    /// Index of its last token.
    pub last: usize,
    /// Its text, as written.
    pub text: String,
    /// Whether it is inside quotation marks.
    pub quoted: bool,
    /// Whether it begins with a capital.
    pub capital: bool,
    /// Whether it contains a digit.
    pub digits: bool,
    /// The preposition before it, empty if there is none.
    pub preposition: String,
    /// Cue words before it, nearest first, with their distance in words.
    pub cues: Vec<(Rc<Features>, usize)>,
    /// Whether it follows an introduction: "Sono X", "my name is X".
    pub is_introduction: bool,
    /// Whether a question asks who it is: "Chi è X", "who is X".
    pub is_asked_about: bool,
    /// Whether it is who has something: "X's booking", "does X have", "quanto ha X".
    pub is_owner: bool,
    /// Whether the word before it announces it: "the song X", "titled X".
    pub is_announced: bool,
    /// Whether it opens a sentence, so that its capital is weak evidence.
    pub opens_sentence: bool,
}

pub(super) const PLACE_PREPOSITIONS: &[&str] = &[
    "a", "ad", "in", "at", "to", "from", "da", "di", "per", "for", "near", "su", "nel", "nella", "of", "of",
    "verso", "en", "zu", "nach", "pour",
];
pub(super) const PERSON_PREPOSITIONS: &[&str] = &[
    "per", "for", "con", "with", "di", "of", "a", "ad", "to", "by", "del", "della", "dell", "dello", "from",
    "pour", "fur", "para",
];
pub(super) const VENUE_PREPOSITIONS: &[&str] =
    &["da", "dal", "al", "alla", "allo", "at", "presso", "in", "nel", "nella", "of", "il", "la"];
/// Verbs between a word that announces a name and the name: "the title is …".
const NAMING_VERBS: &[&str] =
    &["is", "sono", "am", "called", "named", "chiamato", "chiamata", "intitolato", "titled", "are"];
/// Further ones that are also conjunctions: "è" and "e" are equal without the accent.
const AMBIGUOUS_NAMING_VERBS: &[&str] = &["e", "sia"];
/// Words of amount: never a name, whatever precedes them.
const AMOUNT_WORDS: &str = "\
half mezza mezzo mezz meta quarter quarto past few several couple dozen paio pair pochi poche alcuni alcune \
lot lots bit other others another altro altra altri altre both entrambi entrambe more less most least enough \
whole intero intera one ones uno una anyone everyone everybody someone somebody qualcuno qualcosa something \
anything nessuno nobody";

/// Nouns that form an adverb with the preposition before them: "in advance", "at home", "in contanti".
const ADVERBIAL_NOUNS: &str = "\
advance person home work once particular general total cash hurry case fact order town fun now nearby abroad \
downtown center centre campus sure free anticipo contanti fretta casa lavoro piedi generale particolare \
totale giornata mattinata serata centro zona point school scuola mind bed pranzo cena colazione breakfast \
dinner lunch sale stock turno caso ordine meno";

/// Verbs between a noun for a person and what that person wants: "il mio collega vuole …".
const WISHES: &str = "\
vuole vorrebbe chiede deve wants needs asks veut voudrait demande mochte braucht quiere necesita pide";

/// Verbs that follow "to" in everyday wishes ("a place to eat"): not place names.
const ENGLISH_VERBS: &str = "\
be go eat see watch hear listen play drink stay live sleep rent buy visit travel ride drive leave get have \
find make take do know come meet spend celebrate relax rest enjoy attend try use work study learn read write \
dance sing swim walk run hike fly sit wait talk speak share save pay move return help give put look start \
stop finish keep bring pick drop plan explore shop cook tour sightsee unwind hang lend borrow reach arrive \
depart ask tell show say hold fix repair cut";

/// Function words that distinguish English from Italian: only in English "a" is an article.
const ENGLISH_FUNCTION_WORDS: &str = "\
the to of for with my is are an you can please want need from at find book get me some and";
const ITALIAN_FUNCTION_WORDS: &str = "\
il lo gli di per con che un una del della alle dal al mi vorrei e ho non da nel ad voglio";

/// Words inside a name: "Il nome della rosa".
const NAME_INNER_WORDS: &[&str] =
    &["di", "della", "dello", "del", "dei", "degli", "delle", "de", "da", "of", "the", "von", "van"];

/// Finds all name candidates, in order.
pub(super) fn find_candidates(
    source: &SourceText,
    fields: &[ArgumentField],
    verbs: &[String],
) -> Vec<NameCandidate> {
    let tokens = &source.tokens;
    let finder = CandidateFinder { source, fields, verbs, english: is_english(tokens) };
    let mut out: Vec<NameCandidate> =
        source.found.quotes.iter().map(|(a, b)| build_candidate(source, *a, *b, true)).collect();
    let mut i = 0;
    while i < tokens.len() {
        if !tokens[i].word || source.is_taken(i) || source.found.quoted[i] {
            i += 1;
            continue;
        }
        let context = finder.context(i);
        let found =
            finder.capitalized_or_code(i, &context).or_else(|| finder.uncapitalized_name(i, &context));
        match found {
            Some((candidate, next)) => {
                out.push(candidate);
                i = next;
            }
            None => i += 1,
        }
    }
    out.sort_by_key(|c| c.first);
    out
}

/// What the words before a token say about it.
struct NameContext {
    /// Whether the word before announces a name: "the song X", "titled X".
    is_announced: bool,
    /// Whether it follows an introduction: "Sono X", "my name is X".
    is_introduction: bool,
    /// Whether a question asks who it is: "Chi è X", "who is X".
    is_asked_about: bool,
    /// Whether a question asks about it: "does X have", "quanto ha X"; for a first name, anywhere in the question.
    is_subject: bool,
}

/// Whether two words ask who somebody is: "who is", "chi è", "qui est", "wer ist", "quién es".
pub(super) fn asks_who_is(who: &Token, is: &Token) -> bool {
    match who.norm.as_str() {
        "who" => is.is(&["is", "s", "are"]),
        "chi" => is.lower == "è" || is.is(&["is", "s", "sono"]),
        "qui" => is.is(&["est"]),
        "wer" => is.is(&["ist"]),
        "quien" => is.is(&["es"]),
        _ => false,
    }
}

/// Nouns whose "of" leads to the person whose name it is.
const NAME_NOUNS: &[&str] = &[
    "name", "surname", "profile", "nome", "cognome", "completo", "profilo", "manager", "boss", "department",
    "email", "mail", "capo", "responsabile", "reparto",
];

/// Family names that are colours.
const COLOURED_NAMES: &[&str] = &["rossi", "bianchi", "neri", "verdi", "brown", "green", "white", "black"];

struct CandidateFinder<'a> {
    source: &'a SourceText<'a>,
    fields: &'a [ArgumentField],
    verbs: &'a [String],
    english: bool,
}

impl CandidateFinder<'_> {
    /// Whether a token is a cue word of some argument.
    fn is_cue(&self, i: usize) -> bool {
        self.source.tokens.get(i).is_some_and(|t| {
            let content = t.word && !lexicon::is_stop_word(&t.norm);
            content && self.fields.iter().any(|f| f.cues.iter().any(|c| c.similarity(&t.features()) > 0.8))
        })
    }

    fn context(&self, i: usize) -> NameContext {
        let tokens = &self.source.tokens;
        let is_announced = i.checked_sub(1).is_some_and(|b| {
            self.is_cue(b)
                || (tokens[b].lower == "è"
                    || tokens[b].is(NAMING_VERBS)
                    || matches!(tokens[b].raw.as_str(), ":" | "#"))
                    && b.checked_sub(1).is_some_and(|b| self.is_cue(b))
        });
        let asks_who = |at: usize| asks_who_is(&tokens[at], &tokens[at + 1]);
        // "The full name of mrossi".
        let asks_name = |at: usize| tokens[at + 1].is(&["of", "di"]) && tokens[at].is(NAME_NOUNS);
        let is_asked_about = i.checked_sub(2).is_some_and(|at| asks_who(at) || asks_name(at));
        let is_question = || tokens.iter().take(3).any(|token| lexicon::is_question_word(&token.norm));
        let is_subject = i.checked_sub(1).is_some_and(|at| {
            let is_first_name = tokens[i].capital() && lexicon::is_first_name(&tokens[i].norm);
            // "For me and Mario": a tool that serves one person must not leave the other out.
            let is_beside_user =
                tokens[at].is(AND) && at > 0 && tokens[at - 1].is(&["me", "mich", "mir", "moi", "mi"]);
            let may = tokens[at].is(&["can", "could", "may", "puo", "kann", "darf", "peut", "puede"]);
            // "The balance of mrossi", "who approves for mrossi".
            let asks_which =
                |t: &Token| t.norm.starts_with("welch") || t.is(&["quel", "quelle", "que", "che"]);
            let asks_first = || is_question() || tokens.iter().take(3).any(asks_which);
            let asks = || asks_first() || tokens.iter().any(|token| token.raw == "?");
            let is_of_login = begins_like_login(&tokens[i])
                && (asks()
                    || tokens[at].is(&[
                        "of", "for", "about", "di", "per", "su", "de", "du", "pour", "von", "fur", "uber",
                        "para",
                    ]));
            tokens[at].is(&["does", "did", "has", "ha"])
                || is_of_login
                || is_first_name && (may || is_beside_user || tokens[at].word && asks_first())
        });
        NameContext {
            is_announced,
            is_introduction: follows_introduction(tokens, i),
            is_asked_about,
            is_subject,
        }
    }

    /// A code or a run of capitalised words that begins at a token, and the token after it.
    fn capitalized_or_code(&self, i: usize, context: &NameContext) -> Option<(NameCandidate, usize)> {
        let source = self.source;
        let tokens = &source.tokens;
        let opens = tokens[i].first && tokens[i].capital();
        let capital = self.is_capitalized_name(i, context);
        if !capital && !is_code(tokens, i, context) {
            return None;
        }
        let mut last = i;
        if capital {
            last = extend_over_country(source, extend_over_family(source, capitalized_run_end(source, i)));
        }
        let first = self.after_class_nouns(i, last);
        let mut made = context.apply_to(build_candidate(source, first, last, false));
        made.opens_sentence = opens && last == i && !context.is_announced;
        // "At Luigi's" names a place; in "Mario's booking" the name is Mario.
        if tokens.get(last + 1).is_some_and(|t| t.norm == "s" && t.start == tokens[last].end + 1) {
            match VENUE_PREPOSITIONS.contains(&made.preposition.as_str()) {
                true => made.text = source.span(made.first, last + 1).to_owned(),
                false => made.is_owner = true,
            }
        }
        Some((made, last + 1))
    }

    /// The first token of the name in a run of capitalised words without the German nouns before it, which say what it is the
    /// name of: "meinen Hund Argo", "Sperre Platz B3".
    fn after_class_nouns(&self, first: usize, last: usize) -> usize {
        const ARTICLES: &[&str] = &["der", "die", "das", "den", "dem", "des"];
        const OWNERS: &[&str] = &["mein", "unser", "dein", "ihr", "euer"];
        let tokens = &self.source.tokens;
        let language = language::detect(self.source.text);
        if first == last || language.is_some_and(|code| code != "de") {
            return first;
        }
        let is_code = tokens[last].digit() && tokens[last].raw.starts_with(|c: char| c.is_alphabetic());
        let before = first.checked_sub(1).map(|before| &tokens[before]);
        let is_owned = before.is_some_and(|word| {
            OWNERS.iter().any(|owner| word.norm.strip_prefix(owner).is_some_and(|end| end.len() < 3))
        });
        let is_led = is_owned || before.is_some_and(|word| word.is(ARTICLES));
        let opens = tokens[first].first && first + 1 < last || first == 1 && !pattern::is_verb(&tokens[0]);
        match () {
            () if is_code && (is_led || opens || language.is_some()) => last,
            () if is_owned => first + 1,
            () => first,
        }
    }

    /// Whether the capital of a token marks a name and not just the beginning of a sentence.
    fn is_capitalized_name(&self, i: usize, context: &NameContext) -> bool {
        let tokens = &self.source.tokens;
        let token = &tokens[i];
        let opens = token.first && token.capital();
        let common = opens
            && (lexicon::is_action(&token.features().concepts)
                || is_order_with_pronoun(&token.norm)
                || lexicon::is_question_word(&token.norm)
                || lexicon::is_pleasantry(&token.norm)
                || !token.features().concepts.is_empty()
                || opens_before_article(tokens, i)
                || self.verbs.iter().any(|verb| token.norm == *verb));
        // "Urlaub", "das Passwort von": German nouns have capitals.
        let is_led = || {
            let before = i.checked_sub(1).map(|before| &tokens[before]);
            let after = tokens.get(i + 1);
            before.is_some_and(|t| t.is(&["der", "die", "das", "den", "dem"]))
                && after.is_some_and(|t| t.is(&["von", "vom", "des", "fur"]))
        };
        // "Wer ist Rossi?"
        let is_asked_about = context.is_asked_about && token.is(COLOURED_NAMES);
        let is_german_noun = || {
            !opens
                && !is_asked_about
                && (!token.features().concepts.is_empty() || is_led())
                && language::detect(self.source.text) == Some("de")
        };
        token.capital()
            && !is_german_noun()
            && !(self.is_number_or_function_word(i, context)
                || is_calendar_word(tokens, i)
                || common
                || (lexicon::is_pleasantry(&token.norm) && opens))
    }

    /// Whether a token is a number word or a function word that begins no name; an announced single capital
    /// begins one.
    fn is_number_or_function_word(&self, i: usize, context: &NameContext) -> bool {
        let tokens = &self.source.tokens;
        let token = &tokens[i];
        // "Sara" is also "sarà", "Will" also "will".
        let is_first_name = token.capital() && !token.first && lexicon::is_first_name(&token.norm);
        let plain = super::numbers::word(&token.norm).is_some()
            || (lexicon::is_stop_word(&token.norm)
                && !is_first_name
                && !(context.is_announced && token.raw.len() == 1 && token.capital()));
        // "The Anchor", "La Lanterna": a capitalised article is part of the name. So is a function word of
        // another language: "Los Angeles", "Las Vegas".
        let article = token.capital()
            && (!token.first || token.is(&["los", "las", "el", "san"]))
            && (token.norm != "i" && lexicon::is_stop_word(&token.norm))
            && tokens.get(i + 1).is_some_and(|t| t.word && t.capital() && !self.source.is_taken(i + 1));
        plain && !article
    }

    /// A name without a capital that begins at a token, and the token after it.
    fn uncapitalized_name(&self, i: usize, context: &NameContext) -> Option<(NameCandidate, usize)> {
        let source = self.source;
        let tokens = &source.tokens;
        let token = &tokens[i];
        let possible = !self.is_number_or_function_word(i, context)
            && !is_calendar_word(tokens, i)
            && !token.among(AMOUNT_WORDS)
            && !token.among(WISHES);
        let unknown = possible
            && !lexicon::is_stop_word(&token.norm)
            && !lexicon::is_question_word(&token.norm)
            && (token.features().concepts.is_empty() || context.is_asked_about && token.is(COLOURED_NAMES))
            && !self.verbs.iter().any(|verb| token.norm == *verb)
            && !lexicon::is_pleasantry(&token.norm);
        // "From savings to main": both ends are names, whatever the words mean elsewhere.
        let end = possible && is_range_end(tokens, i);
        let led = || {
            let asked = context.is_asked_about || context.is_subject;
            self.follows_name_preposition(i) || context.is_announced || asked
        };
        if !(end || (unknown && led()) || (context.is_introduction && is_login_like(tokens, i))) {
            return None;
        }
        let mut last = i;
        // "per mario rossi": the unknown words that follow belong to the name.
        while last < i + 2 && self.continues_name(last + 1) {
            last += 1;
        }
        let made = build_candidate(source, i, if context.is_introduction { i } else { last }, false);
        Some((context.apply_to(made), last + 1))
    }

    fn follows_name_preposition(&self, i: usize) -> bool {
        let tokens = &self.source.tokens;
        i.checked_sub(1).is_some_and(|b| {
            let leads = tokens[b].is(PLACE_PREPOSITIONS)
                || tokens[b].is(PERSON_PREPOSITIONS)
                || tokens[b].is(VENUE_PREPOSITIONS);
            leads && !(self.english && tokens[b].is(ARTICLES)) && may_be_name_after(tokens, b, i)
        })
    }

    /// Whether a colour is a family name after a first name: "paola rossi".
    fn is_coloured_name(&self, i: usize) -> bool {
        let tokens = &self.source.tokens;
        tokens[i].is(COLOURED_NAMES) && i > 0 && lexicon::is_first_name(&tokens[i - 1].norm)
    }

    fn continues_name(&self, i: usize) -> bool {
        self.source.tokens.get(i).is_some_and(|t| {
            t.word
                && !t.digit()
                && !self.source.is_taken(i)
                && !lexicon::is_stop_word(&t.norm)
                && (t.features().concepts.is_empty() || self.is_coloured_name(i))
                && !super::dates::is_calendar_word(&t.norm)
                && !self.is_cue(i)
        })
    }
}

impl NameContext {
    fn apply_to(&self, candidate: NameCandidate) -> NameCandidate {
        NameCandidate {
            is_introduction: self.is_introduction,
            is_asked_about: self.is_asked_about,
            is_owner: self.is_subject,
            is_announced: self.is_announced,
            ..candidate
        }
    }
}

/// Whether a token is a code: "AB123", "4711", "mario_rossi".
fn is_code(tokens: &[Token], i: usize, context: &NameContext) -> bool {
    let token = &tokens[i];
    (token.digit()
        && (token.norm.len() >= 4
            || token.raw.chars().any(char::is_alphabetic)
            || context.is_announced
            || follows_number_sign(tokens, i)))
        || token.raw.contains('_')
}

/// Whether a token is a calendar word; "Marco Villa" contains no month name.
fn is_calendar_word(tokens: &[Token], i: usize) -> bool {
    let token = &tokens[i];
    let person = token.capital()
        && lexicon::is_first_name(&token.norm)
        && tokens.get(i + 1).is_some_and(|t| t.word && t.capital());
    super::dates::is_calendar_word(&token.norm) && !person
}

/// Whether a word expresses an amount.
pub(super) fn is_amount(norm: &str) -> bool {
    AMOUNT_WORDS.split_whitespace().any(|w| w == norm)
}

/// Whether the word at `i` opens a sentence and an article follows, so that it is a verb and no name: "porta il prezzo …".
pub(super) fn opens_before_article(tokens: &[Token], i: usize) -> bool {
    let is_article = |token: &Token| {
        token.is(&["il", "lo", "gli", "le", "la", "les", "el", "los", "las", "den", "die", "das"])
    };
    tokens[i].first && tokens.get(i + 1).is_some_and(is_article)
}

/// Whether a word is an everyday English verb.
pub(super) fn is_verb(norm: &str) -> bool {
    ENGLISH_VERBS.split_whitespace().any(|w| w == norm)
}

/// Whether a text is English rather than Italian. It decides the reading of "a" and "i", words of both.
fn is_english(tokens: &[Token]) -> bool {
    let count = |words: &str| tokens.iter().filter(|t| t.among(words) && t.lower != "è").count();
    count(ENGLISH_FUNCTION_WORDS) > count(ITALIAN_FUNCTION_WORDS)
}

/// Whether a word is an imperative with a suffixed pronoun: "prestami", "trovaci".
fn is_order_with_pronoun(norm: &str) -> bool {
    let verb = norm.strip_suffix("mi").or_else(|| norm.strip_suffix("ci"));
    verb.filter(|v| v.len() > 3).is_some_and(|v| lexicon::may_be_action(&super::text::features(v).concepts))
}

/// Whether a word is X or Y in "from X to Y".
fn is_range_end(tokens: &[Token], i: usize) -> bool {
    const FROM: &[&str] = &["from", "da", "dal", "dalla", "von"];
    const TO: &[&str] = &["to", "a", "al", "alla", "zu", "nach"];
    let at = |n: Option<usize>, words: &[&str]| n.and_then(|n| tokens.get(n)).is_some_and(|t| t.is(words));
    let word =
        |n: usize| tokens.get(n).is_some_and(|t| t.word && !lexicon::is_stop_word(&t.norm) && !t.digit());
    let back = |n: usize| i.checked_sub(n);
    (at(back(1), FROM) && at(Some(i + 1), TO) && word(i + 2))
        || (at(back(1), TO)
            && back(2).is_some_and(word)
            && at(back(3), FROM)
            && !tokens[i].among(ENGLISH_VERBS))
}

/// Whether a word without a capital may be a name after the preposition at `lead`: not an infinitive and not
/// part of an adverb.
fn may_be_name_after(tokens: &[Token], lead: usize, i: usize) -> bool {
    if tokens[i].among(ADVERBIAL_NOUNS) {
        return false;
    }
    // "To watch", "to visit my sister": a word with an object is a verb.
    let object = tokens.get(i + 1).is_some_and(|t| {
        t.word
            && (t.is(ARTICLES)
                || t.is(&["my", "our", "some", "it", "them", "her", "his", "their", "this", "that"]))
    });
    !tokens[lead].is(&["to"]) || !(tokens[i].among(ENGLISH_VERBS) || object)
}

fn follows_number_sign(tokens: &[Token], i: usize) -> bool {
    i > 0
        && (tokens[i - 1].raw == "#"
            || tokens[i - 1].is(&["numero", "number", "nummer", "n", "no", "nr", "codice", "code", "id"]))
}

/// The last token of a name with its family suffix: "Gino e figli", "Smith and sons".
fn extend_over_family(source: &SourceText, last: usize) -> usize {
    let and =
        source.tokens.get(last + 1).is_some_and(|t| t.raw == "&" || t.lower == "e" || t.is(&["and", "und"]));
    let kin = source.is(
        last + 2,
        &[
            "figli", "figlio", "figlie", "sons", "son", "daughters", "fratelli", "brothers", "soci", "co",
            "company", "partners",
        ],
    );
    if and && kin { last + 2 } else { last }
}

/// The last token of a place name with its country or state: "Paris, France", "Portland, OR".
fn extend_over_country(source: &SourceText, last: usize) -> usize {
    let tokens = &source.tokens;
    let comma = tokens.get(last + 1).is_some_and(|t| t.raw == ",");
    let capital = |i: usize| tokens.get(i).is_some_and(|t| t.word && t.capital() && !source.is_taken(i));
    let is_country = |first: usize, last: usize| {
        let name = super::text::fold(source.span(first, last));
        let short = name.len() == 2 && tokens[first].raw.chars().all(char::is_uppercase);
        super::countries::is_country(&name) || (short && super::countries::is_state(&name))
    };
    if !comma || !capital(last + 2) || is_country(last, last) {
        return last;
    }
    let end = capitalized_run_end(source, last + 2);
    if is_country(last + 2, end) { end } else { last }
}

/// The last token of a run of capitalised words: "Il nome della Rosa", "Mario Rossi".
fn capitalized_run_end(source: &SourceText, first: usize) -> usize {
    let tokens = &source.tokens;
    let mut last = first;
    let good = |i: usize| {
        tokens.get(i).is_some_and(|t| {
            t.word
                && (t.capital() || t.digit())
                && !source.is_taken(i)
                && !source.found.quoted[i]
                && !super::dates::is_calendar_word(&t.norm)
        })
    };
    while last < first + 8 {
        if good(last + 1) && (tokens[last + 1].capital() || tokens[last + 1].norm.len() <= 4) {
            last += 1;
        } else if tokens.get(last + 1).is_some_and(|t| t.is(NAME_INNER_WORDS)) {
            let next = if tokens.get(last + 2).is_some_and(|t| t.is(&["the", "l", "la"])) {
                last + 3
            } else {
                last + 2
            };
            if good(next) && tokens[next].capital() && !tokens[last + 1].is(&["da"]) {
                last = next;
            } else {
                break;
            }
        } else {
            break;
        }
    }
    last
}

fn build_candidate(source: &SourceText, first: usize, last: usize, quoted: bool) -> NameCandidate {
    let tokens = &source.tokens;
    let (preposition, mut cues) = words_before(source, first);
    // The first word of a run may itself be a cue: "Sala Verdi".
    if last > first && !quoted {
        cues.insert(0, (tokens[first].features(), 0));
    }
    NameCandidate {
        first,
        last,
        text: source.span(first, last).to_owned(),
        quoted,
        capital: tokens[first].capital(),
        digits: tokens[first..=last].iter().any(Token::digit),
        preposition,
        cues,
        is_introduction: false,
        is_asked_about: false,
        is_owner: false,
        is_announced: false,
        opens_sentence: false,
    }
}

/// The preposition before a name, and the cue words before it, nearest first, with their distance in words.
fn words_before(source: &SourceText, first: usize) -> (String, Vec<(Rc<Features>, usize)>) {
    let tokens = &source.tokens;
    let mut cues = Vec::new();
    let mut preposition = String::new();
    let mut steps = 0;
    for i in (0..first).rev() {
        let token = &tokens[i];
        // A capitalised cue word may open the sentence; any other name ends the search for cues.
        if !token.word {
            if matches!(token.raw.as_str(), ":" | "#" | "\"" | "«" | "“" | "'" | "‘") {
                continue;
            }
            break;
        }
        steps += 1;
        let joins = token.is_and() || token.is(&["or"]);
        // "… for 7 days for X", "2 seats for X": a counted noun is a cue for its number only.
        let leads =
            token.is(PLACE_PREPOSITIONS) || token.is(PERSON_PREPOSITIONS) || token.is(VENUE_PREPOSITIONS);
        let counted =
            !leads && source.found.numbers.iter().any(|n| n.last + 1 == i && tokens[n.last].digit());
        if steps > 5
            || source.found.taken[i]
            || joins
            || counted
            || (token.capital() && !token.first && token.norm != "i")
        {
            break;
        }
        // An article is never the preposition.
        if leads && preposition.is_empty() && cues.is_empty() && (!token.is(ARTICLES) || token.is(&["a"])) {
            preposition.push_str(&token.norm);
        }
        if !(lexicon::is_stop_word(&token.norm) || token.is(NAMING_VERBS) || token.is(AMBIGUOUS_NAMING_VERBS))
        {
            cues.push((token.features(), steps));
            if i > 0
                && let Some(joined) = lexicon::pair_meaning(&tokens[i - 1].norm, &token.norm)
            {
                cues.insert(cues.len() - 1, (super::text::features(joined), steps));
            }
            if cues.len() >= 2 {
                break;
            }
        }
    }
    (preposition, cues)
}

/// The name by which the user introduces themselves: "sono X", "my name is X".
pub(super) fn introduced_name(text: &str, now: &jiff::Zoned) -> Option<String> {
    let source = SourceText::new(text, now);
    find_candidates(&source, &[], &[]).into_iter().find(|c| c.is_introduction).map(|c| c.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn german_noun_before_a_code_or_an_owned_name_is_no_part_of_it() {
        let now: jiff::Zoned = "2026-11-22T09:00:00+01:00[Europe/Rome]".parse().unwrap();
        for (said, name) in [
            ("Sperre Platz B3", "B3"),
            ("Könntest du Platz B3 sperren?", "B3"),
            ("Buche einen Termin für meinen Hund Argo", "Argo"),
            ("Ruf die Deutsche Bank an", "Deutsche Bank"),
            ("Verleihe den Harry Potter an Ada", "Harry Potter"),
            ("Book Room B3 for Ada", "Room B3"),
        ] {
            let found = find_candidates(&SourceText::new(said, &now), &[], &[]);
            let names: Vec<&str> = found.iter().map(|candidate| candidate.text.as_str()).collect();
            assert!(names.contains(&name), "{said}: {names:?}");
        }
    }
}
