//! Speech acts: what the user does with an utterance. Only a request asks for an action.
//!
//! A sentence is cut where a clause with its own verb begins. The act of a clause follows from its own words
//! (`mood`) or from the clause that governs it: "tell Marco that …", "if …, …", "don't … or …".

use super::entities;
use super::mood::{self, ClauseMood};
use super::pattern::{Patterns, any, is_infinitive, is_verb, patterns, strip_fillers};
use super::phrases::{PREAMBLES, SAY_AFTER_ME, TALES, TEXTS};
use super::pronouns;
use super::text::{self, Token};
use conditions::{govern_by_condition, make_conditional, split_cases};
use cut::SpeechReader;

mod conditions;
mod cut;
mod prohibitions;
mod withdrawal;

/// The speech act of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Asks for an action: an order, a wish, a polite question, or an ellipsis of one.
    Request,
    Negated,
    /// Asks for information, or whether something is allowed.
    Question,
    Report,
    /// Asks for an action under a condition, or is that condition.
    Condition,
    /// Asks for a reminder. Only a reminder tool serves it.
    Reminder,
    /// A message to another person, or a quotation. Only a message tool serves it.
    Quoted,
    /// States what another person wants or does.
    ThirdPerson,
    /// Asks for a price or for a hypothetical outcome.
    Hypothetical,
    /// States a fact or a possibility.
    Statement,
}

impl Act {
    /// Whether its clauses are split and routed unchanged.
    fn is_plain(self) -> bool {
        matches!(self, Act::Request | Act::Question | Act::Statement)
    }
}

/// Which part of a conditional sentence a clause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionPart {
    /// Not part of a conditional sentence.
    Whole,
    /// The condition.
    Case,
    /// The action under the condition.
    Then,
}

/// A run of tokens with one act, or of plain tokens that are split into clauses later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActRun {
    /// The first token.
    pub first: usize,
    /// The last token.
    pub last: usize,
    /// The act; unused for plain runs, whose clauses have their own acts.
    pub act: Act,
    /// The part of a conditional sentence.
    pub part: ConditionPart,
    /// A verb taken from the previous clause: "(don't book Verdi,) but Blu".
    pub verb: Option<String>,
    /// Whether it is split and routed as a request.
    pub plain: bool,
}

impl ActRun {
    /// A plain run between two tokens.
    pub fn plain(first: usize, last: usize) -> Self {
        Self { first, last, act: Act::Request, part: ConditionPart::Whole, verb: None, plain: true }
    }
}

/// The speech acts of a text.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// All runs of the text, in order.
    pub runs: Vec<ActRun>,
    /// By token: the mood of its clause.
    acts: Vec<Option<ClauseMood>>,
    /// By token: whether it only names what is not meant, or is politeness: "not Verdi but", "if possible".
    pub dropped: Vec<bool>,
}

impl Speech {
    /// The acts of the clauses, by token.
    pub fn acts_of_tokens(&self) -> impl Iterator<Item = Act> {
        self.acts.iter().flatten().map(|mood| mood.act)
    }

    /// The clauses, as their first and last tokens with their act and whether some word expresses it. Neighbouring
    /// plain clauses with one act are one.
    pub fn clauses(&self) -> Vec<(usize, usize, Act, bool)> {
        let mut clauses: Vec<(usize, usize, Act, bool)> = Vec::new();
        for run in &self.runs {
            if !run.plain {
                clauses.push((run.first, run.last, run.act, true));
                continue;
            }
            let mut open: Option<(usize, usize, Act, bool)> = None;
            for at in run.first..=run.last {
                let Some(mood) = self.acts.get(at).copied().flatten() else { continue };
                open = match open {
                    Some((first, _, act, explicit)) if (act, explicit) == (mood.act, mood.explicit) => {
                        Some((first, at, act, explicit))
                    }
                    ended => {
                        clauses.extend(ended);
                        Some((at, at, mood.act, mood.explicit))
                    }
                };
            }
            clauses.extend(open);
        }
        clauses
    }

    /// The act of the plain words between two tokens.
    pub fn between(&self, first: usize, last: usize) -> Act {
        let moods: Vec<ClauseMood> =
            self.acts.get(first..=last).unwrap_or_default().iter().copied().flatten().collect();
        let is_explicit = |act: Act| moods.iter().any(|m| m.act == act && m.explicit);
        [Act::Question, Act::Request, Act::Statement]
            .into_iter()
            .find(|act| is_explicit(*act))
            .unwrap_or_else(|| moods.first().map_or(Act::Request, |m| m.act))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseJoin {
    Start,
    Comma,
    Colon,
    And,
    Or,
    But,
    /// No conjunction or punctuation: "book it if …".
    Bare,
}

/// The expression that opens a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseOpener {
    None,
    /// A condition: "if …".
    If,
    /// The consequence of an earlier condition: "if so, …".
    IfSo,
    /// "Without …ing".
    Without,
    /// A correction: "anzi …", "no, …".
    Correction,
    /// A preamble of the following request.
    Preamble,
}

/// A clause while its sentence is analysed.
#[derive(Debug, Clone)]
struct ClauseUnit {
    first: usize,
    last: usize,
    join: ClauseJoin,
    opener: ClauseOpener,
    mood: ClauseMood,
    part: ConditionPart,
    verb: Option<String>,
    /// Whether the question mark at the end of the sentence may belong to it.
    asks: bool,
}

pub(super) fn act_of(clause: &str) -> Act {
    let tokens = text::tokens(clause);
    let speech = analyse(&tokens, &quoted(&tokens));
    let acts: Vec<Act> = speech
        .runs
        .iter()
        .map(|run| if run.plain { speech.between(run.first, run.last) } else { run.act })
        .collect();
    let order = [
        Act::Negated,
        Act::Condition,
        Act::Quoted,
        Act::Reminder,
        Act::ThirdPerson,
        Act::Hypothetical,
        Act::Question,
        Act::Request,
        Act::Report,
    ];
    order.into_iter().find(|act| acts.contains(act)).unwrap_or(acts.first().copied().unwrap_or(Act::Request))
}

/// Whether words only take back what was asked before them: "I changed my mind", "meglio di no".
pub(super) fn only_takes_back(tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
    let is_asked = tokens.iter().any(|token| token.raw == "?");
    withdrawal::is_withdrawal(&words, ClauseJoin::Start, is_asked)
}

/// The clauses of a text that forbid an action, as written.
pub(super) fn declined(text: &str) -> Vec<String> {
    let tokens = text::tokens(text);
    let speech = analyse(&tokens, &quoted(&tokens));
    let negated = speech.runs.iter().filter(|run| run.act == Act::Negated && !run.plain);
    negated.map(|run| text::span(text, &tokens, run.first, run.last).trim().to_owned()).collect()
}

/// The object of the verb of a clause: "do not book AB123CD" → "AB123CD".
pub(super) fn object(clause: &str) -> &str {
    let tokens = text::tokens(clause);
    let verb = tokens.iter().position(|t| t.word && (is_verb(t) || is_infinitive(&t.norm)));
    let rest = verb.and_then(|at| tokens.get(at + 1));
    rest.and_then(|t| clause.get(t.start..)).unwrap_or(clause).trim_end_matches(['.', '!', '?', ' ', ','])
}

/// Whether a clause only states that the speaker cannot do something.
pub(super) fn denies(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::is_denial(&words)
}

/// Whether a question asks for information and not for a yes or no.
pub(super) fn asks_what(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::opens_with_question_word(&words)
}

/// Whether a question asks for advice about an act, and not that it be done: "should I …?"
pub(super) fn asks_advice(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let asks = patterns![
        "should i/we",
        "devo/dovrei/dobbiamo/dovremmo/conviene",
        "dois-je/devrais-je/devons-nous",
        "soll/sollte/sollen/sollten ich/wir",
        "debo/deberia/debemos/deberiamos",
    ];
    any(strip_fillers(&words), 0, asks).is_some()
}

/// Questions for the state of what is the speaker's: "am I on vacation on 15 December?", "is my request approved?"
static ASKS_STATE: &Patterns = patterns![
    "am/are i/we",
    "do i/we have",
    "have/did i/we",
    "is/are/was/were/has/have my/our",
    "is/was/has it/that/this",
    "sono/siamo in",
    "ho/abbiamo",
    "e/sono stata/stato/state/stati",
    "e/sono gia? approvata/approvate/approvato/approvati/confermata/confermate/accettata/accettate",
    "il/la/i/le mio/mia/miei/mie",
    "mon/ma/mes * est-il/est-elle/sont-ils/sont-elles",
    "suis-je/ai-je/avons-nous/sommes-nous",
    "est-ce que je/j/nous/mon/ma/mes",
    "ist/sind/wurde/wurden mein/meine/unser/unsere/er/sie/es/das",
    "est-ce/est-il/est-elle/sont-ils/sont-elles deja? approuve/approuvee/approuves/approuvees/accepte/acceptee",
    "bin/habe/sind/haben ich/wir",
    "estoy/estamos",
    "tengo/tenemos",
    "esta/estan/fue/fueron *? mi/mis",
    "esta/estan ya? aprobada/aprobadas/aprobado/aprobados/confirmada/confirmadas/aceptada/aceptadas",
    "han aprobado/confirmado/aceptado/rechazado",
];

/// Questions for the time of what is the speaker's.
static ASKS_WHEN: &Patterns = patterns![
    "when is/are/was/were my/our",
    "quando sono/e/era/erano la/le/i/il mia/mie/miei/mio",
    "quand est/sont mon/ma/mes",
    "wann ist/sind mein/meine",
    "cuando es/son mi/mis",
];

/// Words for what remains or suffices.
const LEFT_OR_ENOUGH: &str = "\
left remaining enough restano rimangono rimasti rimaste rimanenti abbastanza reste restent assez ubrig genug quedan suficientes";

/// What is said of a request that was decided.
const DECIDED: &str = "\
approved confirmed accepted granted rejected refused denied declined approvata approvate approvato approvati confermata confermate \
confermato confermati accettata accettate accettato accettati rifiutata rifiutate rifiutato rifiutati approuvee approuvees approuve \
approuves acceptee acceptees accepte acceptes refusee refusees refuse refuses genehmigt bestatigt abgelehnt angenommen aprobada aprobadas \
aprobado aprobados confirmada confirmadas confirmado confirmados aceptada aceptadas rechazada rechazadas";

/// Whether a question asks for the state of what is the speaker's, on a day or whether that was decided, or when it is, and for
/// nothing to be done.
pub(super) fn asks_state(tokens: &[Token], has_day: bool) -> bool {
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let own = strip_fillers(&words);
    let inverts = own.first().is_some_and(|verb| verb.is(&["is", "was", "has", "have", "did", "am"]));
    let is_question = inverts || tokens.last().is_some_and(|last| last.raw == "?");
    let is_decided = || words.iter().any(|word| word.among(DECIDED));
    let asks_how_much = || words.iter().any(|word| word.among(LEFT_OR_ENOUGH));
    any(own, 0, ASKS_WHEN).is_some()
        || is_question && any(own, 0, ASKS_STATE).is_some() && (has_day || is_decided()) && !asks_how_much()
}

/// Whether a question is about a past action.
pub(super) fn asks_past(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::asks_about_past(&words)
}

/// Whether a clause only introduces a request: "I'm planning a trip", "can you help me?".
pub(super) fn is_preamble(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    is_preamble_words(&words)
}

fn is_preamble_words(words: &[&Token]) -> bool {
    let words = strip_fillers(words);
    let Some(at) = any(words, 0, PREAMBLES) else { return false };
    let rest = &words[at..];
    let plans = words[..at].iter().any(|t| {
        t.norm.ends_with("ing") && !t.is(&["writing", "contacting"])
            || t.is(&["organizzando", "pianificando", "preparando", "programmando"])
    });
    let content = rest
        .iter()
        .any(|t| !super::lexicon::is_stop_word(&t.norm) && !super::lexicon::is_pleasantry(&t.norm));
    plans || !content
}

/// By token: whether it is inside quotation marks.
pub(super) fn quoted(tokens: &[Token]) -> Vec<bool> {
    let mut quoted = vec![false; tokens.len()];
    for (a, b) in entities::quoted_spans(tokens) {
        quoted[a..=b].fill(true);
    }
    quoted
}

/// The speech acts of a text. `quoted` marks the tokens inside quotation marks.
pub(super) fn analyse(tokens: &[Token], quoted: &[bool]) -> Speech {
    let mut speech =
        Speech { runs: Vec::new(), acts: vec![None; tokens.len()], dropped: vec![false; tokens.len()] };
    if prohibitions::only_forbids(tokens, quoted) {
        forbid_all(&mut speech, tokens);
        return speech;
    }
    let mut units: Vec<ClauseUnit> = Vec::new();
    let mut start = 0;
    let mut in_message = false;
    while start < tokens.len() {
        let ends = |i: &usize| !quoted[*i] && super::clauses::ends_sentence(tokens, *i);
        let stop = (start..tokens.len()).find(ends).unwrap_or(tokens.len());
        if stop > start {
            let reader = SpeechReader { tokens, quoted, first: start, last: stop - 1 };
            let marked = tokens.get(stop).is_some_and(|t| t.raw == "?");
            let mut found = reader.units(marked, &mut speech.dropped);
            govern(&mut found, tokens);
            if in_message {
                found.iter_mut().for_each(|unit| unit.mood = QUOTED);
            }
            quote_after_text_nouns(&mut found, tokens);
            // A message after a colon extends to the end of the text.
            in_message |= opens_message(&found, tokens);
            units.extend(found);
        }
        start = stop + 1;
    }
    withdrawal::apply(&mut units, tokens);
    for unit in &units {
        speech.acts[unit.first..=unit.last].fill(Some(unit.mood));
    }
    speech.runs = merge_into_runs(units);
    speech
}

/// Makes the text one clause that forbids what it names.
fn forbid_all(speech: &mut Speech, tokens: &[Token]) {
    let word = |token: &Token| token.word;
    let (Some(first), Some(last)) = (tokens.iter().position(word), tokens.iter().rposition(word)) else {
        return;
    };
    let (act, part) = (Act::Negated, ConditionPart::Whole);
    speech.acts[first..=last].fill(Some(ClauseMood { act, explicit: true }));
    speech.runs = vec![ActRun { first, last, act, part, verb: None, plain: false }];
}

const QUOTED: ClauseMood = ClauseMood { act: Act::Quoted, explicit: true };

/// Quotes the clause after a colon that follows a noun for a text ("Practice sentence: …", "subject: …") or an order
/// to say it ("Repeat after me: …").
fn quote_after_text_nouns(units: &mut [ClauseUnit], tokens: &[Token]) {
    for n in 1..units.len() {
        let (head, tail) = units.split_at_mut(n);
        let Some(before) = head.last_mut().filter(|_| tail[0].join == ClauseJoin::Colon) else { continue };
        let words: Vec<&Token> = tokens[before.first..=before.last].iter().filter(|t| t.word).collect();
        let own = strip_fillers(&words);
        if SAY_AFTER_ME.ends(own, 0).any(|end| end == own.len()) {
            before.mood = QUOTED;
            tail[0].mood = QUOTED;
        } else if words.iter().any(|t| t.is(TEXTS)) && !before.mood.explicit {
            tail[0].mood = QUOTED;
        }
    }
}

/// Whether some clause opens a message with a colon.
fn opens_message(units: &[ClauseUnit], tokens: &[Token]) -> bool {
    let quoted = |unit: &ClauseUnit| unit.mood.act == Act::Quoted;
    let before_colon =
        units.iter().zip(units.iter().skip(1)).any(|(a, b)| quoted(a) && b.join == ClauseJoin::Colon);
    let with_colon = units.iter().any(|u| quoted(u) && tokens[u.first..=u.last].iter().any(|t| t.raw == ":"));
    before_colon || with_colon
}

/// Merges neighbouring clauses that are plain, or governed by the same act.
fn merge_into_runs(units: Vec<ClauseUnit>) -> Vec<ActRun> {
    let mut runs: Vec<ActRun> = Vec::new();
    for unit in units {
        let plain = unit.mood.act.is_plain()
            && unit.part == ConditionPart::Whole
            && unit.verb.is_none()
            && unit.opener != ClauseOpener::Preamble;
        match runs.last_mut() {
            Some(run) if run.plain && plain => run.last = unit.last,
            Some(run)
                if !run.plain
                    && !plain
                    && run.act == unit.mood.act
                    && governs_following(run.act)
                    && unit.join != ClauseJoin::Start =>
            {
                run.last = unit.last;
            }
            _ => runs.push(ActRun {
                first: unit.first,
                last: unit.last,
                act: unit.mood.act,
                part: unit.part,
                verb: unit.verb,
                plain,
            }),
        }
    }
    runs
}

/// Whether an act extends to the clauses joined to it.
fn governs_following(act: Act) -> bool {
    matches!(act, Act::Quoted | Act::Reminder)
}

/// Gives clauses the acts of those that govern them.
fn govern(units: &mut Vec<ClauseUnit>, tokens: &[Token]) {
    for n in 0..units.len() {
        match units[n].opener {
            ClauseOpener::If => govern_by_condition(units, n, tokens),
            ClauseOpener::IfSo => make_conditional(&mut units[n]),
            ClauseOpener::Correction if !withdrawal::takes_back(&units[n], tokens) => {
                apply_correction(units, n, tokens);
            }
            ClauseOpener::Correction
            | ClauseOpener::None
            | ClauseOpener::Without
            | ClauseOpener::Preamble => {}
        }
        let Some(last) = n.checked_sub(1) else { continue };
        let (head, tail) = units.split_at_mut(n);
        inherit(&mut head[last], &mut tail[0], tokens);
    }
    // "Ieri ho speso …, registrala": the report is the content of the order.
    for n in 1..units.len() {
        let back = pronouns::hands_back(&tokens[units[n].first..=units[n].last]);
        let states = matches!(units[n - 1].mood.act, Act::Report | Act::Statement);
        if back && states && units[n].mood.act == Act::Request {
            units[n - 1].mood = ClauseMood { act: Act::Request, explicit: false };
        }
    }
    split_cases(units, tokens);
}

/// Applies "X, anzi Y": the later clause holds. Without a verb of its own it is unclear what it corrects.
fn apply_correction(units: &mut [ClauseUnit], n: usize, tokens: &[Token]) {
    let own = units[n].mood.explicit && units[n].mood.act == Act::Request;
    let adds = tokens[units[n].first..=units[n].last].iter().any(|t| t.is(&["too", "also", "anche", "pure"]));
    let Some(before) = n.checked_sub(1) else { return };
    if own && adds {
        return;
    }
    if own {
        if matches!(units[before].mood.act, Act::Request | Act::Condition) {
            units[before].mood = ClauseMood { act: Act::Negated, explicit: true };
        }
    } else {
        units[n - 1].mood = ClauseMood { act: Act::Question, explicit: true };
        units[n].mood = ClauseMood { act: Act::Question, explicit: true };
    }
}

/// Whether a clause only asks for a text, and does not say what it is to be about.
fn is_whole_tale(unit: &ClauseUnit, tokens: &[Token]) -> bool {
    let words: Vec<&Token> = tokens[unit.first..=unit.last].iter().filter(|t| t.word).collect();
    let own = strip_fillers(&words);
    TALES.ends(own, 0).any(|end| end == own.len())
}

/// Applies the act of a clause to the next one.
fn inherit(last: &mut ClauseUnit, unit: &mut ClauseUnit, tokens: &[Token]) {
    let words: Vec<&Token> = tokens[unit.first..=unit.last].iter().filter(|t| t.word).collect();
    let then =
        words.first().is_some_and(|t| t.is(&["then", "poi", "also", "anche", "inoltre", "afterwards"]));
    match last.mood.act {
        // "Tell me a joke, and tell me the weather in Rome": the second part is no part of the text.
        Act::Quoted
            if is_whole_tale(last, tokens)
                && (mood::asks_to_be_told(&words) || unit.mood.act == Act::Question) => {}
        Act::Quoted | Act::Reminder if !then && unit.join != ClauseJoin::But => unit.mood = last.mood,
        Act::Negated if unit.opener == ClauseOpener::None && last.opener != ClauseOpener::Without => {
            let explicit = unit.mood.explicit;
            let infinitive = strip_fillers(&words)
                .first()
                .is_some_and(|t| is_infinitive(&t.norm) && t.norm.ends_with('e'));
            let reads = mood::asks_to_be_told(&words);
            if unit.join == ClauseJoin::Or || unit.join == ClauseJoin::And && infinitive {
                unit.mood = last.mood;
            } else if unit.join == ClauseJoin::And && unit.mood.act == Act::Request && !reads {
                unit.mood = ClauseMood { act: Act::Statement, explicit: true };
            } else if !explicit && unit.join == ClauseJoin::But {
                let verb = tokens[last.first..=last.last]
                    .iter()
                    .find(|t| t.word && (is_verb(t) || is_infinitive(&t.norm)));
                unit.verb = verb.map(|t| t.raw.to_string());
            }
        }
        Act::Hypothetical if unit.join == ClauseJoin::Colon => unit.mood = last.mood,
        Act::Report
            if unit.join == ClauseJoin::And && unit.mood.act == Act::Request && !unit.mood.explicit =>
        {
            unit.mood = last.mood;
        }
        _ => {}
    }
}
