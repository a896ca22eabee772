//! Speech acts: what somebody does with some words. Only a request asks for something to be done.
//!
//! A sentence is cut where a clause with a verb of its own begins. Each has an act by its own words
//! (`mood`), or by those that govern it: "tell Marco that …", "if …, …", "don't … or …".

use super::entities;
use super::mood::{self, ClauseMood, clause_mood, strip_fillers};
use super::pattern::{any, end, is_infinitive, is_verb};
use super::phrases::{CORRECTS, IF, IF_SO, INSTEAD, KIND, POLITE_IF, PREAMBLES, SHADE, TEXTS, WHETHER};
use super::pronouns;
use super::text::{self, Token};

/// What somebody does with a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Asks for something: an order, a wish of the speaker, a polite question, or an ellipsis of one.
    Request,
    /// Says that something is not to be done.
    Negated,
    /// Asks to be told something, or whether something may be done.
    Question,
    /// Tells what was.
    Report,
    /// Asks for something in a certain case only, or is that case.
    Condition,
    /// Asks to be reminded of something. Only a tool for just that serves it.
    Reminder,
    /// Hands words on to somebody else, or repeats somebody's words. Only a tool for just that serves it.
    Quoted,
    /// Says what somebody else wants or does.
    ThirdPerson,
    /// Asks for a price, or what would be if.
    Hypothetical,
    /// Says how things are, or what may be.
    Statement,
}

impl Act {
    /// Whether its clauses are split and routed as they stand.
    fn is_plain(self) -> bool {
        matches!(self, Act::Request | Act::Question | Act::Statement)
    }
}

/// Which part of a condition a clause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionPart {
    /// It belongs to no condition.
    Whole,
    /// The case.
    Case,
    /// What is to be done in that case.
    Then,
}

/// Neighbouring words that have one act, or plain ones that are split later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActRun {
    /// The first token.
    pub first: usize,
    /// The last token.
    pub last: usize,
    /// Their act; that of plain words is that of each clause.
    pub act: Act,
    /// Their part in a condition.
    pub part: ConditionPart,
    /// A verb that they borrow from before: "(don't book Verdi,) but Blu".
    pub verb: Option<String>,
    /// Whether they are split and routed as any request.
    pub plain: bool,
}

impl ActRun {
    /// Plain words between two tokens.
    pub fn plain(first: usize, last: usize) -> Self {
        Self { first, last, act: Act::Request, part: ConditionPart::Whole, verb: None, plain: true }
    }
}

/// The acts of a text.
#[derive(Debug, Default)]
pub(super) struct Speech {
    /// All its words, in order.
    pub runs: Vec<ActRun>,
    /// By token: the act of its clause, and whether some word says so.
    acts: Vec<Option<ClauseMood>>,
    /// By token: whether it only says what is not meant, or is politeness: "not Verdi but", "if possible".
    pub dropped: Vec<bool>,
}

impl Speech {
    /// The act of the plain words between two tokens.
    pub fn between(&self, first: usize, last: usize) -> Act {
        let moods: Vec<ClauseMood> =
            self.acts.get(first..=last).unwrap_or_default().iter().copied().flatten().collect();
        let said = |act: Act| moods.iter().any(|m| m.act == act && m.explicit);
        [Act::Question, Act::Request, Act::Statement]
            .into_iter()
            .find(|act| said(*act))
            .unwrap_or_else(|| moods.first().map_or(Act::Request, |m| m.act))
    }
}

/// How a clause is joined to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Start,
    Comma,
    Colon,
    And,
    Or,
    But,
    /// It follows without any mark: "book it if …".
    Bare,
}

/// What opens a clause beside its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opener {
    None,
    If,
    IfSo,
    Without,
    Anzi,
    Preamble,
}

#[derive(Debug, Clone)]
struct Unit {
    first: usize,
    last: usize,
    join: Join,
    opener: Opener,
    mood: ClauseMood,
    part: ConditionPart,
    verb: Option<String>,
    /// Whether a question mark at the end of the sentence may be its own.
    asks: bool,
}

/// What somebody does with some words.
pub(super) fn act_of(clause: &str) -> Act {
    let tokens = text::tokens(clause);
    let speech = of(&tokens, &quoted(&tokens));
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

/// The clauses of a text that say that something is not to be done, in its words.
pub(super) fn declined(text: &str) -> Vec<String> {
    let tokens = text::tokens(text);
    let speech = of(&tokens, &quoted(&tokens));
    let negated = speech.runs.iter().filter(|run| run.act == Act::Negated && !run.plain);
    negated.map(|run| text::span(text, &tokens, run.first, run.last).trim().to_owned()).collect()
}

/// What the verb of a clause is said of: "do not book AB123CD" → "AB123CD".
pub(super) fn object(clause: &str) -> &str {
    let tokens = text::tokens(clause);
    let verb = tokens.iter().position(|t| t.word && (is_verb(t) || is_infinitive(&t.norm)));
    let rest = verb.and_then(|at| tokens.get(at + 1));
    rest.and_then(|t| clause.get(t.start..)).unwrap_or(clause).trim_end_matches(['.', '!', '?', ' ', ','])
}

/// Whether a clause only denies something of the speaker.
pub(super) fn denies(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::is_denial(&words)
}

/// Whether a question asks for something to be told, and not whether something may be done or is so.
pub(super) fn asks_what(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::opens_with_question_word(&words)
}

/// Whether a question is of what was done.
pub(super) fn asks_past(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::asks_about_past(&words)
}

/// Whether a clause only leads to what is asked behind it: "I'm planning a trip", "can you help me?".
pub(super) fn is_preamble(clause: &str) -> bool {
    let tokens = text::tokens(clause);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    leads(&words)
}

/// Whether words only lead to what is asked behind them.
fn leads(words: &[&Token]) -> bool {
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

fn quoted(tokens: &[Token]) -> Vec<bool> {
    let mut quoted = vec![false; tokens.len()];
    for (a, b) in entities::quoted_spans(tokens) {
        quoted[a..=b].fill(true);
    }
    quoted
}

/// The acts of a text; `quoted` tells which of its tokens stand in quotation marks.
pub(super) fn of(tokens: &[Token], quoted: &[bool]) -> Speech {
    let mut speech =
        Speech { runs: Vec::new(), acts: vec![None; tokens.len()], dropped: vec![false; tokens.len()] };
    let mut units: Vec<Unit> = Vec::new();
    let mut start = 0;
    let mut open: Option<Act> = None;
    while start < tokens.len() {
        let ends = |i: &usize| !quoted[*i] && super::clauses::ends_sentence(tokens, *i);
        let stop = (start..tokens.len()).find(ends).unwrap_or(tokens.len());
        if stop > start {
            let reader = SpeechReader { tokens, quoted, first: start, last: stop - 1 };
            let marked = tokens.get(stop).is_some_and(|t| t.raw == "?");
            let mut found = reader.units(marked, &mut speech.dropped);
            govern(&mut found, tokens);
            if let Some(act) = open {
                found.iter_mut().for_each(|unit| unit.mood = ClauseMood { act, explicit: true });
            }
            // A message behind a colon goes on to the end.
            // "Practice sentence: …", "subject: …".
            for n in 1..found.len() {
                let (head, tail) = found.split_at_mut(n);
                let Some(before) = head.last() else { continue };
                let names = tokens[before.first..=before.last].iter().any(|t| t.is(TEXTS));
                if tail[0].join == Join::Colon && names && !before.mood.explicit {
                    tail[0].mood = ClauseMood { act: Act::Quoted, explicit: true };
                }
            }
            let told = found
                .iter()
                .zip(found.iter().skip(1))
                .any(|(a, b)| a.mood.act == Act::Quoted && b.join == Join::Colon);
            let colon = found
                .iter()
                .any(|u| u.mood.act == Act::Quoted && tokens[u.first..=u.last].iter().any(|t| t.raw == ":"));
            if told || colon {
                open = Some(Act::Quoted);
            }
            units.extend(found);
        }
        start = stop + 1;
    }
    for unit in &units {
        speech.acts[unit.first..=unit.last].fill(Some(unit.mood));
    }
    for unit in units {
        let plain = unit.mood.act.is_plain()
            && unit.part == ConditionPart::Whole
            && unit.verb.is_none()
            && unit.opener != Opener::Preamble;
        match speech.runs.last_mut() {
            Some(run) if run.plain && plain => run.last = unit.last,
            Some(run)
                if !run.plain
                    && !plain
                    && run.act == unit.mood.act
                    && governs(run.act)
                    && unit.join != Join::Start =>
            {
                run.last = unit.last;
            }
            _ => speech.runs.push(ActRun {
                first: unit.first,
                last: unit.last,
                act: unit.mood.act,
                part: unit.part,
                verb: unit.verb,
                plain,
            }),
        }
    }
    speech
}

/// Whether an act goes on over the clauses that are joined to it.
fn governs(act: Act) -> bool {
    matches!(act, Act::Quoted | Act::Reminder)
}

struct SpeechReader<'a> {
    tokens: &'a [Token],
    quoted: &'a [bool],
    first: usize,
    last: usize,
}

impl<'a> SpeechReader<'a> {
    /// The words from a token on.
    fn words(&self, from: usize) -> Vec<&'a Token> {
        (from..=self.last)
            .filter(|i| !self.quoted[*i])
            .map(|i| &self.tokens[i])
            .filter(|t| t.word)
            .take(16)
            .collect()
    }

    /// The clauses of the sentence, each with the act that its own words say.
    fn units(&self, marked: bool, dropped: &mut [bool]) -> Vec<Unit> {
        let mut cuts: Vec<(usize, Join, Opener)> = vec![(self.first, Join::Start, Opener::None)];
        let mut join = Join::Start;
        let mut i = self.first;
        while i <= self.last {
            let token = &self.tokens[i];
            if self.quoted[i] {
                i += 1;
                join = Join::Bare;
                continue;
            }
            if let Some(next) = joins(token) {
                join = if join == Join::Comma || join == Join::Start && i > self.first {
                    next.max(join)
                } else {
                    next
                };
                i += 1;
                continue;
            }
            if !token.word {
                i += 1;
                continue;
            }
            let words = self.words(i);
            let here = if i == self.first { Join::Start } else { join };
            let before = self.tokens[self.first..i].iter().rev().find(|t| t.word);
            let kind = i > 0
                && self.tokens[i - 1].is(&["it"])
                && self.tokens[..i - 1].last().is_some_and(|t| t.is(&["appreciate", "like", "love"]));
            if !kind
                && !before.is_some_and(|t| t.is(WHETHER) || t.is(KIND))
                && let Some(n) = any(&words, 0, POLITE_IF)
            {
                i = self.drop(i, n, dropped);
                continue;
            }
            if let Some(n) = self.not_meant(i, &words, here, marked, dropped) {
                i = n;
                join = Join::Comma;
                continue;
            }
            let opener = self.opener(i, &words, here, marked);
            let opens = here != Join::Bare
                && here != Join::Start
                && (here == Join::But || self.opens(&words, here, marked));
            if opener != Opener::None || opens {
                let at = self.begins(i);
                if cuts.last().is_some_and(|cut| cut.0 == at) || at == self.first {
                    if let Some(cut) = cuts.last_mut() {
                        cut.2 = opener;
                    }
                } else {
                    cuts.push((at, here, opener));
                }
            }
            // What only opens leaves the clause at its beginning: "and then …".
            let filler = words.len() > 1 && strip_fillers(&words[..1]).is_empty();
            join = if filler { here } else { Join::Bare };
            i += 1;
        }
        self.made(&cuts, marked, dropped)
    }

    /// The clause that begins at a token begins with what only opens it.
    fn begins(&self, i: usize) -> usize {
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

    fn made(&self, cuts: &[(usize, Join, Opener)], marked: bool, dropped: &[bool]) -> Vec<Unit> {
        let mut out = Vec::new();
        for (n, (first, join, opener)) in cuts.iter().enumerate() {
            let end = cuts.get(n + 1).map_or(self.last, |next| next.0.saturating_sub(1));
            let mut last = end;
            // A joining word at the end belongs to neither.
            while last > *first
                && (!self.tokens[last].word
                    && !matches!(self.tokens[last].raw.as_str(), "\"" | "”" | "»" | "'")
                    || joins(&self.tokens[last]).is_some())
            {
                last -= 1;
            }
            let words: Vec<&Token> = (*first..=last)
                .filter(|i| !self.quoted[*i] && !dropped[*i])
                .map(|i| &self.tokens[i])
                .filter(|t| t.word)
                .collect();
            let quotes = words.is_empty() && (*first..=last).any(|i| self.quoted[i]);
            let is_last = n + 1 == cuts.len();
            let opened =
                any(strip_fillers(&words), 0, IF_SO).filter(|_| *opener == Opener::IfSo).unwrap_or(0);
            let own = if opened > 0 { &strip_fillers(&words)[opened..] } else { &words[..] };
            // "If so, lend it": what is asked begins behind it.
            let begin = own
                .first()
                .filter(|_| opened > 0)
                .and_then(|t| (*first..=last).find(|i| self.tokens[*i].start == t.start));
            let first = &begin.unwrap_or(*first);
            let asked = out.iter().any(|unit: &Unit| unit.asks);
            let mark = marked && is_last && !asked;
            let mut mood = if quotes { self.quotation(*first, last) } else { clause_mood(own, mark) };
            let mut opener = *opener;
            if opener == Opener::Without {
                mood = ClauseMood { act: Act::Negated, explicit: true };
            } else if opener == Opener::None
                && !is_last
                && (leads(own)
                    || cuts.get(n + 1).is_some_and(|next| next.1 == Join::Colon)
                        && self.heads(*first, last, mood))
            {
                opener = Opener::Preamble;
                mood = ClauseMood { act: Act::Statement, explicit: true };
            }
            let asks = mood.explicit && mood.act == Act::Question || mood::is_polite(own);
            out.push(Unit {
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

    /// Whether words before a colon only head what is asked: "quick one: …", "my plans changed: …".
    fn heads(&self, first: usize, last: usize, mood: ClauseMood) -> bool {
        let values = (first..=last).any(|i| {
            let t = &self.tokens[i];
            self.quoted[i] || t.digit() || t.capital() && !t.first && t.norm != "i"
        });
        let text = self.tokens[first..=last].iter().any(|t| t.is(TEXTS));
        !text && !values && (!mood.explicit || matches!(mood.act, Act::Statement | Act::Report))
    }

    /// A clause that stands in quotation marks as a whole: a title, or somebody's order.
    fn quotation(&self, first: usize, last: usize) -> ClauseMood {
        let words: Vec<&Token> = self.tokens[first..=last].iter().filter(|t| t.word).collect();
        let whole = first == self.first && last + 1 >= self.last;
        let order = whole && words.len() > 3 && mood::is_order(&words) && is_verb(words[0]);
        ClauseMood { act: if order { Act::Quoted } else { Act::Request }, explicit: order }
    }

    fn opens(&self, words: &[&Token], join: Join, marked: bool) -> bool {
        let words = strip_fillers(words);
        if words.is_empty() {
            return false;
        }
        let mood = clause_mood(words, false);
        let relative = words[0]
            .is(&["che", "who", "which", "that", "whose", "dove", "where", "when", "quando", "come", "what"])
            && join == Join::Comma
            || words[0].is(&["perche", "because", "poiche", "since", "as", "siccome"]);
        (mood.explicit || marked && mood::asks_addressee_to_act(words)) && !relative
    }

    fn opener(&self, i: usize, words: &[&Token], join: Join, marked: bool) -> Opener {
        if join != Join::Bare
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
            return Opener::IfSo;
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
            let should = words[0].is(&["should"]) && (marked || i > self.first && join == Join::Bare);
            let reflexive = words[0].is(&["se"])
                && words.get(1).is_some_and(|t| t.is(&["stesso", "stessa", "ne", "stessi"]));
            let except = any(words, 0, &["a meno di <num>"]).is_some();
            if !(whether || again || own || soon || should || reflexive || except) {
                return Opener::If;
            }
        }
        // "When a room is free, …"; not "when is …".
        let when = words[0].is(&["when", "whenever", "quando"])
            && i == self.first
            && !marked
            && self.tokens[i..=self.last].iter().any(|t| t.raw == ",");
        if when && !words.get(1).is_some_and(|t| t.is(&["is", "are", "do", "does", "can", "e"])) {
            return Opener::If;
        }
        if end(words, 0, "without <ing>").is_some() || end(words, 0, "senza <inf>").is_some() {
            return Opener::Without;
        }
        if join != Join::Bare && join != Join::Start && any(words, 0, CORRECTS).is_some() {
            return Opener::Anzi;
        }
        Opener::None
    }

    /// Leaves `count` words from a token on, and the comma behind them, out of what is meant.
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

    /// Words that name what is not meant: "not X but", ", not X", "instead of X". Days are left to those who
    /// read days.
    fn not_meant(
        &self,
        i: usize,
        words: &[&Token],
        join: Join,
        marked: bool,
        dropped: &mut [bool],
    ) -> Option<usize> {
        if let Some(n) = any(words, 0, INSTEAD) {
            let clause = words.get(n).is_some_and(|t| t.norm.ends_with("ing") || is_infinitive(&t.norm));
            let count = if i == self.first || clause { self.to_mark(i) } else { n + self.phrase(words, n) };
            return Some(self.drop(i, count, dropped));
        }
        if !words[0].is(&["not", "non"]) || marked && join == Join::Start {
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
        let tail = self.to_mark(i);
        let (count, named) = match but {
            Some(at) if at < tail || join != Join::Comma => (at + 1, &words[1..at]),
            _ if join == Join::Comma || join == Join::But || join == Join::And => {
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

    /// How many words there are to the next mark.
    fn to_mark(&self, i: usize) -> usize {
        let rest = self.tokens[i..=self.last].iter();
        rest.take_while(|t| t.word || matches!(t.raw.as_str(), "\"" | "'" | "”" | "“" | "«" | "»"))
            .filter(|t| t.word)
            .count()
    }

    /// How many words a thing has: up to a day, a time or another preposition.
    fn phrase(&self, words: &[&Token], from: usize) -> usize {
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

impl Join {
    /// The stronger of two marks: ", and" is "and", ", but" is "but".
    fn max(self, other: Join) -> Join {
        if self == Join::Comma { other } else { self }
    }
}

/// How a token joins clauses, where it does.
fn joins(token: &Token) -> Option<Join> {
    Some(match token.raw.as_str() {
        "," | "(" | ")" | "-" | "–" | "—" | "…" => Join::Comma,
        ":" => Join::Colon,
        _ if token.lower == "e"
            || token.is(&["ed", "and", "et", "und", "y", "plus"]) && token.lower != "è" =>
        {
            Join::And
        }
        _ if token.is(&["or", "nor", "o", "oppure", "ne"]) && token.lower != "ne" || token.lower == "né" => {
            Join::Or
        }
        _ if token.is(&["but", "ma", "pero", "however", "though"]) => Join::But,
        _ => return None,
    })
}

/// Gives clauses the acts of those that govern them.
fn govern(units: &mut Vec<Unit>, tokens: &[Token]) {
    for n in 0..units.len() {
        match units[n].opener {
            Opener::If => condition(units, n, tokens),
            Opener::IfSo => conditional(&mut units[n]),
            Opener::Anzi => corrected(units, n),
            Opener::None | Opener::Without | Opener::Preamble => {}
        }
        let Some(last) = n.checked_sub(1) else { continue };
        let (head, tail) = units.split_at_mut(n);
        inherit(&mut head[last], &mut tail[0], tokens);
    }
    // "Ieri ho speso …, registrala": what was is what the order is about.
    for n in 1..units.len() {
        let back = pronouns::hands_back(&tokens[units[n].first..=units[n].last]);
        let told = matches!(units[n - 1].mood.act, Act::Report | Act::Statement);
        if back && told && units[n].mood.act == Act::Request {
            units[n - 1].mood = ClauseMood { act: Act::Request, explicit: false };
        }
    }
    split_cases(units, tokens);
}

fn conditional(unit: &mut Unit) {
    if unit.mood.act != Act::Negated {
        unit.part = ConditionPart::Then;
        unit.mood = ClauseMood { act: Act::Condition, explicit: true };
    }
}

/// The clause at `n` is a case; those behind it, or the one before it, are what is to be done then.
fn condition(units: &mut [Unit], n: usize, tokens: &[Token]) {
    let would_be =
        n > 0 && units[n - 1].mood.act == Act::Hypothetical || units[n].mood.act == Act::Hypothetical;
    if would_be {
        let from = n.saturating_sub(1);
        units[from..].iter_mut().for_each(|u| u.mood = ClauseMood { act: Act::Hypothetical, explicit: true });
        return;
    }
    units[n].part = ConditionPart::Case;
    units[n].mood = ClauseMood { act: Act::Condition, explicit: true };
    let backward = n > 0 && units[n].join == Join::Bare;
    if backward {
        conditional_if_plain(&mut units[n - 1]);
        return;
    }
    let mut found = false;
    for unit in units.iter_mut().skip(n + 1) {
        let more = matches!(unit.join, Join::And | Join::Or)
            && !found
            && matches!(unit.mood.act, Act::Statement | Act::ThirdPerson | Act::Report);
        if unit.opener != Opener::None {
            break;
        }
        if more {
            unit.part = ConditionPart::Case;
            unit.mood = ClauseMood { act: Act::Condition, explicit: true };
        } else {
            found = true;
            conditional_if_plain(unit);
        }
    }
    if !found && n > 0 && !has_order(&units[n], tokens) {
        conditional_if_plain(&mut units[n - 1]);
    }
}

fn conditional_if_plain(unit: &mut Unit) {
    if !matches!(unit.mood.act, Act::Negated | Act::Quoted | Act::Reminder | Act::Hypothetical) {
        conditional(unit);
    }
}

/// Where an order begins within a case: "if it rains book …".
fn order_within(unit: &Unit, tokens: &[Token]) -> Option<usize> {
    const LINKS: &[&str] = &[
        "i", "we", "you", "he", "she", "it", "they", "to", "can", "could", "will", "would", "the", "a", "an",
        "my", "di", "per", "puo", "posso", "devo", "il", "la", "lo", "un", "una", "non", "not", "is", "are",
        "be", "no", "any", "mi", "ci", "le", "i", "gli", "del", "della", "this", "that", "if", "se", "ha",
        "ho", "has", "have", "do", "does", "been", "e", "still", "public",
    ];
    (unit.first + 2..unit.last).find(|i| {
        let before = tokens[..*i].iter().rev().find(|t| t.word);
        let token = &tokens[*i];
        let verb = token.word && is_verb(token) && !token.digit() && (!token.capital());
        let linked = before.is_none_or(|t| t.is(LINKS) && t.lower != "è");
        let object = tokens[i + 1..].iter().find(|t| t.word).is_some_and(|t| {
            t.digit()
                || t.capital()
                || t.is(&[
                    "a", "an", "the", "me", "my", "it", "them", "us", "un", "una", "uno", "il", "la", "le",
                    "i", "gli", "lo", "room", "sala", "vacation", "ferie", "two", "three", "due", "tre",
                    "for", "per", "all", "one", "tickets",
                ])
        });
        let suffixed = pronouns::is_suffixed(&token.norm);
        verb && !linked && (object || suffixed)
    })
}

fn has_order(unit: &Unit, tokens: &[Token]) -> bool {
    order_within(unit, tokens).is_some()
}

/// Cuts cases that hold what is to be done then.
fn split_cases(units: &mut Vec<Unit>, tokens: &[Token]) {
    let mut n = 0;
    while n < units.len() {
        let unit = &units[n];
        let alone = unit.part == ConditionPart::Case
            && unit.opener == Opener::If
            && !units.get(n + 1).is_some_and(|u| u.part == ConditionPart::Then);
        if alone && let Some(at) = order_within(unit, tokens) {
            let mut then = unit.clone();
            then.first = at;
            then.part = ConditionPart::Then;
            then.opener = Opener::None;
            units[n].last = at - 1;
            units.insert(n + 1, then);
        }
        n += 1;
    }
}

/// "X, anzi Y": what is said later holds; without a verb of its own it is not clear what.
fn corrected(units: &mut [Unit], n: usize) {
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

/// What the clause before does to the next one.
fn inherit(last: &mut Unit, unit: &mut Unit, tokens: &[Token]) {
    let words: Vec<&Token> = tokens[unit.first..=unit.last].iter().filter(|t| t.word).collect();
    let then =
        words.first().is_some_and(|t| t.is(&["then", "poi", "also", "anche", "inoltre", "afterwards"]));
    match last.mood.act {
        Act::Quoted | Act::Reminder if !then && unit.join != Join::But => unit.mood = last.mood,
        Act::Negated if unit.opener == Opener::None && last.opener != Opener::Without => {
            let said = unit.mood.explicit;
            let infinitive = strip_fillers(&words)
                .first()
                .is_some_and(|t| is_infinitive(&t.norm) && t.norm.ends_with('e'));
            let reads = mood::asks_to_be_told(&words);
            if unit.join == Join::Or || unit.join == Join::And && infinitive {
                unit.mood = last.mood;
            } else if unit.join == Join::And && unit.mood.act == Act::Request && !reads {
                unit.mood = ClauseMood { act: Act::Statement, explicit: true };
            } else if !said && unit.join == Join::But {
                let verb = tokens[last.first..=last.last]
                    .iter()
                    .find(|t| t.word && (is_verb(t) || is_infinitive(&t.norm)));
                unit.verb = verb.map(|t| t.raw.clone());
            }
        }
        Act::Hypothetical if unit.join == Join::Colon => unit.mood = last.mood,
        Act::Report if unit.join == Join::And && unit.mood.act == Act::Request && !unit.mood.explicit => {
            unit.mood = last.mood;
        }
        _ => {}
    }
}
