//! Speech acts: what the user does with an utterance. Only a request asks for an action.
//!
//! A sentence is cut where a clause with its own verb begins. The act of a clause follows from its own words
//! (`mood`) or from the clause that governs it: "tell Marco that …", "if …, …", "don't … or …".

use super::entities;
use super::mood::{self, ClauseMood, clause_mood};
use super::pattern::strip_fillers;
use super::pattern::{any, end, is_infinitive, is_verb};
use super::phrases::{
    CORRECTS, IF, IF_SO, INSTEAD, KIND, POLITE_IF, PREAMBLES, SAY_AFTER_ME, SHADE, TEXTS, WHETHER,
};
use super::pronouns;
use super::text::{self, Token};
use conditions::{govern_by_condition, make_conditional, split_cases};

mod conditions;
mod withdrawal;

/// The speech act of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Asks for an action: an order, a wish, a polite question, or an ellipsis of one.
    Request,
    /// Forbids an action.
    Negated,
    /// Asks for information, or whether something is allowed.
    Question,
    /// Reports the past.
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

/// How a clause is joined to the previous one.
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

/// The speech act of a clause.
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

const QUOTED: ClauseMood = ClauseMood { act: Act::Quoted, explicit: true };

/// Quotes the clause after a colon that follows a noun for a text ("Practice sentence: …", "subject: …") or an order
/// to say it ("Repeat after me: …").
fn quote_after_text_nouns(units: &mut [ClauseUnit], tokens: &[Token]) {
    for n in 1..units.len() {
        let (head, tail) = units.split_at_mut(n);
        let Some(before) = head.last_mut().filter(|_| tail[0].join == ClauseJoin::Colon) else { continue };
        let words: Vec<&Token> = tokens[before.first..=before.last].iter().filter(|t| t.word).collect();
        let own = strip_fillers(&words);
        if SAY_AFTER_ME.iter().any(|pattern| end(own, 0, pattern) == Some(own.len())) {
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

/// Where a clause begins, how it is joined to the previous one, and what opens it.
type ClauseCut = (usize, ClauseJoin, ClauseOpener);

/// Cuts one sentence into clauses.
struct SpeechReader<'a> {
    tokens: &'a [Token],
    quoted: &'a [bool],
    first: usize,
    last: usize,
}

impl<'a> SpeechReader<'a> {
    /// The next words from a token on.
    fn words(&self, from: usize) -> Vec<&'a Token> {
        (from..=self.last)
            .filter(|i| !self.quoted[*i])
            .map(|i| &self.tokens[i])
            .filter(|t| t.word)
            .take(16)
            .collect()
    }

    /// The clauses of the sentence, each with the mood of its own words. `marked`: whether the sentence ends
    /// with a question mark. Sets `dropped` for the tokens that are not meant.
    fn units(&self, marked: bool, dropped: &mut [bool]) -> Vec<ClauseUnit> {
        let mut cuts: Vec<ClauseCut> = vec![(self.first, ClauseJoin::Start, ClauseOpener::None)];
        let mut join = ClauseJoin::Start;
        let mut i = self.first;
        while i <= self.last {
            let token = &self.tokens[i];
            if self.quoted[i] {
                i += 1;
                join = ClauseJoin::Bare;
                continue;
            }
            if let Some(next) = joins(token) {
                let is_repeated = join == ClauseJoin::Comma || join == ClauseJoin::Start && i > self.first;
                join = if is_repeated { next.max(join) } else { next };
                i += 1;
                continue;
            }
            if !token.word {
                i += 1;
                continue;
            }
            let words = self.words(i);
            let here = if i == self.first { ClauseJoin::Start } else { join };
            if let Some(count) = self.polite_condition(i, &words) {
                i = self.drop(i, count, dropped);
                continue;
            }
            if !self.withdraws(i, here, marked)
                && let Some(next) = self.drop_not_meant(i, &words, here, marked, dropped)
            {
                i = next;
                join = ClauseJoin::Comma;
                continue;
            }
            self.add_cut(i, &words, here, marked, &mut cuts);
            // A filler keeps the next word at the beginning of the clause: "and then …".
            let filler = words.len() > 1 && strip_fillers(&words[..1]).is_empty();
            join = if filler { here } else { ClauseJoin::Bare };
            i += 1;
        }
        self.build_units(&cuts, marked, dropped)
    }

    /// The number of words of a polite "if possible" at a token, which is no condition.
    fn polite_condition(&self, i: usize, words: &[&Token]) -> Option<usize> {
        let before = self.tokens[self.first..i].iter().rev().find(|t| t.word);
        let appreciates = i > 0
            && self.tokens[i - 1].is(&["it"])
            && self.tokens[..i - 1].last().is_some_and(|t| t.is(&["appreciate", "like", "love"]));
        if appreciates || before.is_some_and(|t| t.is(WHETHER) || t.is(KIND)) {
            return None;
        }
        any(words, 0, POLITE_IF)
    }

    /// Adds a cut if a clause begins at a token.
    fn add_cut(&self, i: usize, words: &[&Token], join: ClauseJoin, marked: bool, cuts: &mut Vec<ClauseCut>) {
        let opener = self.opener(i, words, join, marked);
        let is_joined = join != ClauseJoin::Bare && join != ClauseJoin::Start;
        let opens = is_joined && (join == ClauseJoin::But || self.opens_clause(words, join, marked));
        if opener == ClauseOpener::None && !opens && !self.is_final_no(i, words, marked) {
            return;
        }
        let at = self.clause_start(i);
        if cuts.last().is_some_and(|cut| cut.0 == at) || at == self.first {
            if let Some(cut) = cuts.last_mut() {
                cut.2 = opener;
            }
        } else {
            cuts.push((at, join, opener));
        }
    }

    /// Whether the words from a token up to the next punctuation mark take back what precedes them.
    fn withdraws(&self, i: usize, join: ClauseJoin, marked: bool) -> bool {
        if matches!(join, ClauseJoin::Bare | ClauseJoin::Start) {
            return false;
        }
        let piece =
            self.tokens[i..=self.last].iter().take_while(|t| t.word || matches!(t.raw.as_str(), "'" | "’"));
        let end = i + piece.clone().count();
        let words: Vec<&Token> = piece.filter(|t| t.word).collect();
        withdrawal::is_withdrawal(&words, join, marked && end > self.last)
    }

    /// Whether a token is a lone "no" at the end of the sentence.
    fn is_final_no(&self, i: usize, words: &[&Token], marked: bool) -> bool {
        let before = self.tokens[self.first..i].iter();
        let mut before: Vec<&Token> = before.rev().take_while(|t| t.word).collect();
        before.reverse();
        withdrawal::is_final_no(words, &before, marked)
    }

    /// The first of the fillers before a token at which a clause begins.
    fn clause_start(&self, i: usize) -> usize {
        let mut at = i;
        while at > self.first && !self.quoted[at - 1] {
            let before = &self.tokens[at - 1];
            let filler = before.word
                && joins(before).is_none()
                && strip_fillers(&[before]).is_empty()
                && before.lower != "è";
            if !filler {
                break;
            }
            at -= 1;
        }
        at
    }

    /// The last token of a clause without the punctuation and conjunctions at its end.
    fn trimmed_end(&self, first: usize, end: usize) -> usize {
        let mut last = end;
        while last > first
            && (!self.tokens[last].word && !matches!(self.tokens[last].raw.as_str(), "\"" | "”" | "»" | "'")
                || joins(&self.tokens[last]).is_some())
        {
            last -= 1;
        }
        last
    }

    fn build_units(&self, cuts: &[ClauseCut], marked: bool, dropped: &[bool]) -> Vec<ClauseUnit> {
        let mut out = Vec::new();
        for (n, (first, join, opener)) in cuts.iter().enumerate() {
            let end = cuts.get(n + 1).map_or(self.last, |next| next.0.saturating_sub(1));
            let last = self.trimmed_end(*first, end);
            let words: Vec<&Token> = (*first..=last)
                .filter(|i| !self.quoted[*i] && !dropped[*i])
                .map(|i| &self.tokens[i])
                .filter(|t| t.word)
                .collect();
            let quotes = words.is_empty() && (*first..=last).any(|i| self.quoted[i]);
            let is_last = n + 1 == cuts.len();
            let opened =
                any(strip_fillers(&words), 0, IF_SO).filter(|_| *opener == ClauseOpener::IfSo).unwrap_or(0);
            let own = if opened > 0 { &strip_fillers(&words)[opened..] } else { &words[..] };
            // "If so, lend it": the request begins after the opener.
            let begin = own
                .first()
                .filter(|_| opened > 0)
                .and_then(|t| (*first..=last).find(|i| self.tokens[*i].start == t.start));
            let first = &begin.unwrap_or(*first);
            let asked = out.iter().any(|unit: &ClauseUnit| unit.asks);
            let mark = marked && is_last && !asked;
            let mut mood = if quotes { self.quotation(*first, last) } else { clause_mood(own, mark) };
            let mut opener = *opener;
            if opener == ClauseOpener::Without {
                mood = ClauseMood { act: Act::Negated, explicit: true };
            } else if opener == ClauseOpener::None
                && !is_last
                && (is_preamble_words(own)
                    || cuts.get(n + 1).is_some_and(|next| next.1 == ClauseJoin::Colon)
                        && self.is_heading(*first, last, mood))
            {
                opener = ClauseOpener::Preamble;
                mood = ClauseMood { act: Act::Statement, explicit: true };
            }
            let asks = mood.explicit && mood.act == Act::Question || mood::is_polite(own);
            out.push(ClauseUnit {
                first: *first,
                last,
                join: *join,
                opener,
                mood,
                part: ConditionPart::Whole,
                verb: None,
                asks,
            });
        }
        out
    }

    /// Whether the words before a colon only introduce a request: "quick one: …", "my plans changed: …".
    fn is_heading(&self, first: usize, last: usize, mood: ClauseMood) -> bool {
        let values = (first..=last).any(|i| {
            let t = &self.tokens[i];
            self.quoted[i] || t.digit() || t.capital() && !t.first && t.norm != "i"
        });
        let text = self.tokens[first..=last].iter().any(|t| t.is(TEXTS));
        !text && !values && (!mood.explicit || matches!(mood.act, Act::Statement | Act::Report))
    }

    /// The mood of a clause that is entirely in quotation marks: a title, or an order of another person.
    fn quotation(&self, first: usize, last: usize) -> ClauseMood {
        let words: Vec<&Token> = self.tokens[first..=last].iter().filter(|t| t.word).collect();
        let whole = first == self.first && last + 1 >= self.last;
        let order = whole && words.len() > 3 && mood::is_order(&words) && is_verb(words[0]);
        ClauseMood { act: if order { Act::Quoted } else { Act::Request }, explicit: order }
    }

    /// Whether words after a conjunction begin a clause.
    fn opens_clause(&self, words: &[&Token], join: ClauseJoin, marked: bool) -> bool {
        let words = strip_fillers(words);
        if words.is_empty() {
            return false;
        }
        let mood = clause_mood(words, false);
        let relative = words[0]
            .is(&["che", "who", "which", "that", "whose", "dove", "where", "when", "quando", "come", "what"])
            && join == ClauseJoin::Comma
            || words[0].is(&["perche", "because", "poiche", "since", "as", "siccome"]);
        (mood.explicit || marked && mood::asks_addressee_to_act(words)) && !relative
    }

    fn opener(&self, i: usize, words: &[&Token], join: ClauseJoin, marked: bool) -> ClauseOpener {
        if join != ClauseJoin::Bare
            && any(words, 0, IF_SO).is_some()
            && (i > self.first
                || any(
                    words,
                    0,
                    &[
                        "if so/yes/not",
                        "se si/no",
                        "in that/tal/quel case/caso",
                        "otherwise",
                        "altrimenti",
                        "or else",
                        "in caso contrario/affermativo",
                    ],
                )
                .is_some())
        {
            return ClauseOpener::IfSo;
        }
        if any(words, 0, IF).is_some() {
            let before = self.tokens[self.first..i].iter().rev().find(|t| t.word);
            let asked = self.tokens[self.first..i].iter().any(|t| t.is(&["appreciate"]))
                || before.is_some_and(|t| t.is(KIND));
            let whether =
                (asked || before.is_some_and(|t| t.is(WHETHER))) && !words[0].is(&["unless", "qualora"]);
            let again = before.is_some_and(|t| t.is(&["e", "and"])) && marked && i == self.first + 1;
            let own = words[0].is(&["in", "nel"]) && any(words, 0, &["in case/the", "in/nel caso"]).is_none();
            let soon = words[0].is(&["appena"])
                && before.is_some_and(|t| t.is(&["ho", "ha", "hai", "abbiamo", "è", "e"]));
            let should = words[0].is(&["should"]) && (marked || i > self.first && join == ClauseJoin::Bare);
            let reflexive = words[0].is(&["se"])
                && words.get(1).is_some_and(|t| t.is(&["stesso", "stessa", "ne", "stessi"]));
            let except = any(words, 0, &["a meno di <num>"]).is_some();
            if !(whether || again || own || soon || should || reflexive || except) {
                return ClauseOpener::If;
            }
        }
        // "When a room is free, …"; not "when is …".
        let when = words[0].is(&["when", "whenever", "quando"])
            && i == self.first
            && !marked
            && self.tokens[i..=self.last].iter().any(|t| t.raw == ",");
        if when && !words.get(1).is_some_and(|t| t.is(&["is", "are", "do", "does", "can", "e"])) {
            return ClauseOpener::If;
        }
        if end(words, 0, "without <ing>").is_some() || end(words, 0, "senza <inf>").is_some() {
            return ClauseOpener::Without;
        }
        let corrects =
            join != ClauseJoin::Bare && join != ClauseJoin::Start && any(words, 0, CORRECTS).is_some();
        if corrects || self.withdraws(i, join, marked) {
            return ClauseOpener::Correction;
        }
        ClauseOpener::None
    }

    /// Marks `count` words from a token on, and the comma after them, as not meant. Returns the next token.
    fn drop(&self, from: usize, count: usize, dropped: &mut [bool]) -> usize {
        let mut i = from;
        let mut left = count;
        while i <= self.last && left > 0 {
            left -= usize::from(self.tokens[i].word);
            dropped[i] = true;
            i += 1;
        }
        if self.tokens.get(i).is_some_and(|t| t.raw == ",") && i <= self.last {
            dropped[i] = true;
            i += 1;
        }
        i
    }

    /// Drops words that name what is not meant: "not X but", ", not X", "instead of X". Returns the next token.
    /// Negated days are handled by the date expressions.
    fn drop_not_meant(
        &self,
        i: usize,
        words: &[&Token],
        join: ClauseJoin,
        marked: bool,
        dropped: &mut [bool],
    ) -> Option<usize> {
        if let Some(n) = any(words, 0, INSTEAD) {
            let clause = words.get(n).is_some_and(|t| t.norm.ends_with("ing") || is_infinitive(&t.norm));
            let count = if i == self.first || clause {
                self.words_to_mark(i)
            } else {
                n + self.noun_phrase_length(words, n)
            };
            return Some(self.drop(i, count, dropped));
        }
        if !words[0].is(&["not", "non"]) || marked && join == ClauseJoin::Start {
            return None;
        }
        let next = words.get(1)?;
        if next.is(SHADE)
            || is_infinitive(&next.norm)
            || is_verb(next) && !next.capital()
            || next.is(&["ho", "ha", "è", "c", "ci", "mi", "si", "to", "want", "wanting"])
        {
            return None;
        }
        let but = words.iter().take(9).position(|t| t.is(&["but", "ma", "bensi", "sondern", "mais"]));
        let tail = self.words_to_mark(i);
        let (count, named) = match but {
            Some(at) if at < tail || join != ClauseJoin::Comma => (at + 1, &words[1..at]),
            _ if join == ClauseJoin::Comma || join == ClauseJoin::But || join == ClauseJoin::And => {
                (tail.min(words.len()), &words[1..tail.clamp(1, words.len())])
            }
            _ => return None,
        };
        if but.is_none() && i == self.first
            || named.is_empty()
            || named.iter().all(|t| mood::is_date_token(t) || super::lexicon::is_stop_word(&t.norm))
        {
            return None;
        }
        Some(self.drop(i, count, dropped))
    }

    /// The number of words up to the next punctuation mark.
    fn words_to_mark(&self, i: usize) -> usize {
        let rest = self.tokens[i..=self.last].iter();
        rest.take_while(|t| t.word || matches!(t.raw.as_str(), "\"" | "'" | "”" | "“" | "«" | "»"))
            .filter(|t| t.word)
            .count()
    }

    /// The number of words of a noun phrase: up to a day, a time or another preposition.
    fn noun_phrase_length(&self, words: &[&Token], from: usize) -> usize {
        let stops = [
            "for", "from", "on", "at", "to", "per", "dal", "dalle", "alle", "il", "with", "con", "until",
            "and", "e", "but", "ma", "please",
        ];
        let first_is_day = words.get(from).is_some_and(|t| mood::is_date_token(t))
            || words.get(from).is_some_and(|t| t.is(&["il", "the"]))
                && words.get(from + 1).is_some_and(|t| mood::is_date_token(t));
        let mut n = 0;
        for t in words.iter().skip(from) {
            if n > 0 && (t.is(&stops) || mood::is_date_token(t) && !first_is_day) {
                break;
            }
            if first_is_day && n > 0 && !mood::is_date_token(t) && n > 1 {
                break;
            }
            n += 1;
        }
        n
    }
}

impl ClauseJoin {
    /// The stronger of two joins: ", and" is "and", ", but" is "but".
    fn max(self, other: ClauseJoin) -> ClauseJoin {
        if self == ClauseJoin::Comma { other } else { self }
    }
}

/// How a token joins clauses, if it does.
fn joins(token: &Token) -> Option<ClauseJoin> {
    Some(match token.raw.as_str() {
        "," | "(" | ")" | "-" | "–" | "—" | "…" => ClauseJoin::Comma,
        ":" => ClauseJoin::Colon,
        _ if token.lower == "e"
            || token.is(&["ed", "and", "et", "und", "y", "plus"]) && token.lower != "è" =>
        {
            ClauseJoin::And
        }
        _ if token.is(&["or", "nor", "o", "oppure", "ne"]) && token.lower != "ne" || token.lower == "né" => {
            ClauseJoin::Or
        }
        _ if token.is(&["but", "ma", "pero", "however", "though"]) => ClauseJoin::But,
        _ => return None,
    })
}

/// Gives clauses the acts of those that govern them.
fn govern(units: &mut Vec<ClauseUnit>, tokens: &[Token]) {
    for n in 0..units.len() {
        match units[n].opener {
            ClauseOpener::If => govern_by_condition(units, n, tokens),
            ClauseOpener::IfSo => make_conditional(&mut units[n]),
            ClauseOpener::Correction if !withdrawal::takes_back(&units[n], tokens) => {
                apply_correction(units, n);
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
fn apply_correction(units: &mut [ClauseUnit], n: usize) {
    let own = units[n].mood.explicit && units[n].mood.act == Act::Request;
    if n == 0 {
        return;
    }
    if own {
        units[n - 1].mood = ClauseMood { act: Act::Negated, explicit: true };
    } else {
        units[n - 1].mood = ClauseMood { act: Act::Question, explicit: true };
        units[n].mood = ClauseMood { act: Act::Question, explicit: true };
    }
}

/// Applies the act of a clause to the next one.
fn inherit(last: &mut ClauseUnit, unit: &mut ClauseUnit, tokens: &[Token]) {
    let words: Vec<&Token> = tokens[unit.first..=unit.last].iter().filter(|t| t.word).collect();
    let then =
        words.first().is_some_and(|t| t.is(&["then", "poi", "also", "anche", "inoltre", "afterwards"]));
    match last.mood.act {
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
                unit.verb = verb.map(|t| t.raw.clone());
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
