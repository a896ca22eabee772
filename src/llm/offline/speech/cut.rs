//! Cuts a sentence into clauses: where each begins, how it is joined, what opens it, and the mood of its own words.

use super::{Act, ClauseJoin, ClauseOpener, ClauseUnit, ConditionPart, is_preamble_words, withdrawal};
use crate::llm::offline::comparisons::asks_which_of;
use crate::llm::offline::dates;
use crate::llm::offline::exclusions::{EXCEPT, INSTEAD};
use crate::llm::offline::mood::{self, ClauseMood, clause_mood};
use crate::llm::offline::pattern::{any, is_infinitive, is_verb, patterns, strip_fillers};
use crate::llm::offline::phrases::{CORRECTS, IF, IF_SO, KIND, POLITE_IF, SHADE, TEXTS, WHETHER};
use crate::llm::offline::text::Token;

/// Where a clause begins, how it is joined to the previous one, and what opens it.
type ClauseCut = (usize, ClauseJoin, ClauseOpener);

/// Cuts one sentence into clauses.
pub(super) struct SpeechReader<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) quoted: &'a [bool],
    pub(super) first: usize,
    pub(super) last: usize,
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
    pub(super) fn units(&self, marked: bool, dropped: &mut [bool]) -> Vec<ClauseUnit> {
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
        let opens = is_joined
            && !self.chooses_among_names(i)
            && (join == ClauseJoin::But || self.opens_clause(words, join, marked));
        if opener == ClauseOpener::None && !opens && !self.is_final_no(i, words, marked) {
            return;
        }
        let at = self.clause_start(i);
        if cuts.last().is_some_and(|cut| cut.0 == at) || at == self.first {
            // "Actually, move it": the opener is a filler, too, and the clause begins at it.
            if let Some(cut) = cuts
                .last_mut()
                .filter(|cut| opener != ClauseOpener::None || cut.2 != ClauseOpener::Correction)
            {
                cut.2 = opener;
            }
        } else {
            cuts.push((at, join, opener));
        }
    }

    /// Whether a token is a name in a question for one of several: "which of Rome and Milan is warmer?".
    fn chooses_among_names(&self, i: usize) -> bool {
        let before: Vec<&Token> = self.tokens[self.first..i].iter().filter(|t| t.word).collect();
        self.tokens[i].capital() && asks_which_of(&before)
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
        if words.len() != 1 {
            return false;
        }
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
            let own = after_opener(&words, *opener);
            let opened = words.len() - own.len();
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
                    patterns![
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
            let own = words[0].is(&["in", "nel"])
                && any(words, 0, patterns!["in case/the", "in/nel caso"]).is_none();
            let soon = words[0].is(&["appena"])
                && before.is_some_and(|t| t.is(&["ho", "ha", "hai", "abbiamo", "è", "e"]));
            let should = words[0].is(&["should"]) && (marked || i > self.first && join == ClauseJoin::Bare);
            let reflexive = words[0].is(&["se"])
                && words.get(1).is_some_and(|t| t.is(&["stesso", "stessa", "ne", "stessi"]));
            let except = any(words, 0, patterns!["a meno di <num>"]).is_some();
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
        if any(words, 0, patterns!["without <ing>", "senza <inf>"]).is_some() {
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
        if let Some(n) = any(words, 0, EXCEPT).filter(|n| !starts_with_day(&words[*n..])) {
            let count =
                if i == self.first { self.words_to_mark(i) } else { n + self.noun_phrase_length(words, n) };
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
            || named
                .iter()
                .all(|t| mood::is_date_token(t) || crate::llm::offline::lexicon::is_stop_word(&t.norm))
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
        let first_is_day = starts_with_day(&words[from.min(words.len())..]);
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

/// The words of a clause after those that open it: "if so, lend it", "anzi chiudi il 131".
fn after_opener<'w, 't>(words: &'w [&'t Token], opener: ClauseOpener) -> &'w [&'t Token] {
    let own = strip_fillers(words);
    match opener {
        ClauseOpener::IfSo => any(own, 0, IF_SO).filter(|end| *end > 0).map_or(words, |end| &own[end..]),
        ClauseOpener::Correction => {
            let rest = any(words, 0, CORRECTS).map(|end| strip_fillers(&words[end..]));
            let is_order = |rest: &&[&Token]| {
                let mood = clause_mood(rest, false);
                mood.explicit && mood.act == Act::Request
            };
            rest.filter(|rest| !rest.is_empty()).filter(is_order).unwrap_or(words)
        }
        _ => words,
    }
}

/// Whether words begin with a day, also after an article.
fn starts_with_day(words: &[&Token]) -> bool {
    const ARTICLES: &[&str] = &["il", "the", "on", "am", "den", "dem", "le", "el"];
    let names_day = |t: &Token| mood::is_date_token(t) || dates::is_calendar_word(&t.norm);
    let is_day = |at: usize| words.get(at).is_some_and(|t| names_day(t));
    is_day(0) || words.first().is_some_and(|t| t.is(ARTICLES)) && is_day(1)
}

/// How a token joins clauses, if it does.
fn joins(token: &Token) -> Option<ClauseJoin> {
    Some(match token.raw.as_str() {
        "," | "(" | ")" | "-" | "–" | "—" | "…" => ClauseJoin::Comma,
        ":" => ClauseJoin::Colon,
        _ if token.is_and() || token.is(&["plus"]) => ClauseJoin::And,
        _ if token.is(&["or", "nor", "o", "oppure", "ne"]) && token.lower != "ne" || token.lower == "né" => {
            ClauseJoin::Or
        }
        _ if token.is(&["but", "ma", "pero", "however", "though"]) => ClauseJoin::But,
        _ => return None,
    })
}
