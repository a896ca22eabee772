//! Splits an utterance into clauses at words of sequence and addition. At a plain "e", "and" or comma it
//! splits only if both sides are requests by themselves.

use super::comparisons::asks_which_of;
use super::connectives::{match_connective, match_reversal};
use super::entities::Entities;
use super::lexicon;
use super::mood;
use super::opening_act::OpeningAct;
use super::pattern::{is_verb, strip_fillers};
use super::pronouns;
use super::routing::ToolPlace;
use super::speech::{self, Act, ActRun, Speech};
use super::text::{self, Token};

/// Maximum number of clauses in a request; the rest stays in the last one.
const MAX_CLAUSES: usize = 12;

/// How a clause relates to the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClauseLink {
    /// First clause, or a new sentence.
    Next,
    /// To be done after it.
    Then,
    /// In addition to it.
    Also,
}

/// One request or statement of an utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    /// Its text.
    pub text: String,
    /// How it relates to the previous clause.
    pub link: ClauseLink,
    /// Its speech act.
    pub act: Act,
    /// Which part of a condition it is.
    pub part: speech::ConditionPart,
}

/// Routes parts of a sentence while it is split.
pub(super) trait ClauseRouter {
    /// The tool that serves these words, and whether the match is certain. `after` is the tool of the
    /// previous words, to which these may refer back.
    fn tool_for(&self, words: &str, after: Option<ToolPlace>) -> Option<(ToolPlace, bool)>;
    /// Whether the words contain their own verb or question.
    fn has_verb_or_question(&self, words: &str) -> bool;
    /// Whether the words name something in the tool's texts.
    fn names_tool_subject(&self, _words: &str, _tool: ToolPlace) -> bool {
        false
    }
    /// Whether words without a verb only give other values for the tool of the previous words.
    fn only_varies_values(&self, _before: &str, _words: &str, _tool: ToolPlace) -> bool {
        false
    }
}

/// Words removed from the beginning of a clause.
const OPENERS: &[&[&str]] = &[
    &["prima", "di", "tutto"],
    &["per", "prima", "cosa"],
    &["per", "cominciare"],
    &["first", "of", "all"],
    &["to", "start", "with"],
    &["innanzitutto"],
    &["anzitutto"],
    &["firstly"],
    &["secondly"],
    &["prima"],
    &["first"],
    &["d", "abord"],
    &["zuerst"],
    &["primero"],
    &["quindi"],
    &["so"],
    &["e"],
    &["ed"],
    &["and"],
    &["et"],
    &["und"],
    &["y"],
    &["also"],
    &["anche"],
    &["poi"],
    &["then"],
    &["now"],
    &["ora"],
    &["adesso"],
    &["in", "piu"],
    &["plus"],
    &["ma"],
    &["but"],
];

/// Splits a request into clauses in execution order, each with its speech act.
pub(super) fn split(request: &str, judge: &dyn ClauseRouter) -> Vec<Clause> {
    let tokens = text::tokens(request);
    let found = Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1));
    let Entities { quoted, taken, .. } = &*found;
    let speech = speech::analyse(&tokens, quoted);
    let part = ClausePart { text: request, tokens: &tokens, quoted, taken, speech: &speech };
    let mut out: Vec<Clause> = Vec::new();
    for run in &speech.runs {
        if run.plain {
            part.split_request(run, judge, &mut out);
        } else {
            part.add_non_request(run, &mut out);
        }
    }
    out.retain(|c| c.text.chars().any(char::is_alphanumeric));
    move_cases_first(&mut out);
    merge_excess_clauses(&mut out);
    out
}

/// Splits words that are all orders, whatever their form.
pub(super) fn split_orders(request: &str, judge: &dyn ClauseRouter) -> Vec<Clause> {
    let tokens = text::tokens(request);
    let found = Entities::in_text(request, jiff::civil::Date::constant(2026, 1, 1));
    let Entities { quoted, taken, .. } = &*found;
    let speech = Speech::default();
    let part = ClausePart { text: request, tokens: &tokens, quoted, taken, speech: &speech };
    let mut out: Vec<Clause> = Vec::new();
    let all = ActRun::plain(0, tokens.len().saturating_sub(1));
    part.split_request(&all, judge, &mut out);
    out.retain(|c| c.text.chars().any(char::is_alphanumeric));
    merge_excess_clauses(&mut out);
    out
}

/// Moves a condition before its consequence: "Book it if it is free".
fn move_cases_first(clauses: &mut [Clause]) {
    for n in 1..clauses.len() {
        let follows = n > 1 && clauses[n - 2].part == speech::ConditionPart::Case;
        if clauses[n - 1].part == speech::ConditionPart::Then
            && clauses[n].part == speech::ConditionPart::Case
            && !follows
        {
            clauses.swap(n - 1, n);
            clauses[n - 1].link = clauses[n].link;
            clauses[n].link = ClauseLink::Then;
        }
    }
}

/// Merges the clauses beyond the maximum into the last one, so that none is lost.
fn merge_excess_clauses(clauses: &mut Vec<Clause>) {
    if clauses.len() > MAX_CLAUSES {
        let rest: Vec<String> = clauses.drain(MAX_CLAUSES..).map(|c| c.text).collect();
        if let Some(last) = clauses.last_mut() {
            last.text = format!("{}. {}", last.text, rest.join(". "));
        }
    }
}

/// Segments between sentence ends and connectives: first and last token, the link to the previous segment,
/// and whether it goes before that segment.
fn split_segments(tokens: &[Token], quoted: &[bool], run: &ActRun) -> Vec<(usize, usize, ClauseLink, bool)> {
    let mut out = Vec::new();
    let mut start = run.first;
    let mut link = ClauseLink::Next;
    let mut before = false;
    let mut i = start;
    let end = (run.last + 1).min(tokens.len());
    while i < end {
        if quoted[i] {
            i += 1;
            continue;
        }
        let found = if ends_sentence(tokens, i) {
            Some((1, ClauseLink::Next, false))
        } else if let Some(length) = match_reversal(tokens, i) {
            Some((length, ClauseLink::Then, true))
        } else {
            match_connective(tokens, i).map(|(length, link)| (length, link, false))
        };
        match found {
            Some((length, next, reverse)) => {
                let blank = start >= i || tokens[start..i].iter().all(|t| !t.word);
                if !blank {
                    out.push((start, i - 1, link, before));
                    link = next;
                } else if next != ClauseLink::Next {
                    // "…. Poi …": the connective overrides the end of the sentence.
                    link = next;
                }
                before = reverse || (blank && before && next == ClauseLink::Next);
                i += length;
                start = i;
            }
            None => i += 1,
        }
    }
    if start < end {
        out.push((start, end - 1, link, before));
    }
    out
}

pub(super) fn ends_sentence(tokens: &[Token], i: usize) -> bool {
    match tokens[i].raw.as_str() {
        "!" | "?" | ";" | "\n" | "…" => true,
        "." => {
            let next = tokens.get(i + 1);
            let before = if i > 0 { tokens[i - 1].norm.as_str() } else { "" };
            let short = [
                "sig", "sigra", "dr", "dott", "ing", "mr", "mrs", "ms", "prof", "st", "no", "n", "avv", "p",
                "a",
            ];
            next.is_none_or(|t| !t.word || t.capital() || t.digit() || before.len() > 3)
                && !short.contains(&before)
                && !is_ordinal_mark(tokens, i)
        }
        _ => false,
    }
}

/// Whether the full stop at `i` belongs to a day: "am 4. März", "14.12. - 16.12.". "Cancel request 5. May I …?" is none.
fn is_ordinal_mark(tokens: &[Token], i: usize) -> bool {
    let is_month = |token: &Token| super::dates::month(&token.norm).is_some() && !token.is(&["may", "march"]);
    let is_day = |token: &Token| token.digit() && token.norm.len() <= 2;
    let opens = |t: &Token| t.word && t.capital() && (is_verb(t) || lexicon::is_question_word(&t.norm));
    let is_dotted = i.checked_sub(1).is_some_and(|before| super::dates::is_dotted_day(tokens, before))
        && tokens.get(i + 1).is_some_and(|next| !opens(next));
    i.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(is_day)
        && tokens.get(i + 1).is_some_and(is_month)
        || is_dotted
}

struct ClausePart<'a> {
    text: &'a str,
    tokens: &'a [Token],
    quoted: &'a [bool],
    taken: &'a [bool],
    speech: &'a Speech,
}

impl ClausePart<'_> {
    /// The clauses of a plain request, in execution order.
    fn split_request(&self, run: &ActRun, judge: &dyn ClauseRouter, out: &mut Vec<Clause>) {
        let mut own: Vec<Clause> = Vec::new();
        for (first, last, link, before) in split_segments(self.tokens, self.quoted, run) {
            let mut inner = self.split_sequence(first, last, judge);
            if let Some(head) = inner.first_mut() {
                head.link = link;
            }
            if before && let Some(mut earlier) = own.pop() {
                // "…, but first …": this clause goes before the previous one.
                if let Some(head) = inner.first_mut() {
                    head.link = earlier.link;
                }
                earlier.link = ClauseLink::Then;
                inner.push(earlier);
            }
            own.extend(inner);
        }
        out.append(&mut own);
    }

    /// Adds the clause of words that are not a plain request: before the previous one, if it is a question that says so.
    fn add_non_request(&self, run: &ActRun, out: &mut Vec<Clause>) {
        let mut clause = self.non_request_clause(run);
        let asks = matches!(run.act, Act::Question | Act::Hypothetical);
        let opens = [run.first.saturating_sub(1), run.first];
        let reverses = asks && opens.into_iter().any(|i| match_reversal(self.tokens, i).is_some());
        match out.pop_if(|_| reverses) {
            Some(mut earlier) => {
                clause.link = earlier.link;
                earlier.link = ClauseLink::Then;
                out.extend([clause, earlier]);
            }
            None => out.push(clause),
        }
    }

    /// The clause of words that are not a plain request.
    fn non_request_clause(&self, run: &ActRun) -> Clause {
        let then = self.tokens[run.first..=run.last].iter().find(|t| t.word);
        let then = then.is_some_and(|t| t.is(&["then", "poi", "dopo", "infine", "finally"]));
        let link =
            if then || run.part == speech::ConditionPart::Then { ClauseLink::Then } else { ClauseLink::Next };
        let mut clause = self.clause(run.first, run.last, link);
        if let Some(verb) = &run.verb {
            clause.text = format!("{verb} {}", clause.text);
        }
        Clause { act: run.act, part: run.part, ..clause }
    }

    /// The text between two tokens, without the dropped ones.
    fn meant_text(&self, first: usize, last: usize) -> String {
        let dropped = |i: usize| self.speech.dropped.get(i) == Some(&true);
        let mut text = String::new();
        let mut from = None;
        for i in first..=last + 1 {
            let ends = i > last || dropped(i);
            match (from, ends) {
                (None, false) => from = Some(i),
                (Some(start), true) => {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(text::span(self.text, self.tokens, start, i - 1).trim());
                    from = None;
                }
                _ => {}
            }
        }
        let text = text.trim_end_matches([',', ' ']);
        // "Sell 2 teapots but (not the jug)".
        let is_cut = dropped(last);
        let contrast =
            [" but", " ma", " però", " mais", " aber", " pero"].iter().find_map(|but| text.strip_suffix(but));
        contrast.filter(|_| is_cut).unwrap_or(text).trim_end_matches([',', ' ']).to_owned()
    }

    fn clause(&self, first: usize, last: usize, link: ClauseLink) -> Clause {
        let (first, last) = self.trim_span(first, last);
        let mut text = self.meant_text(first, last);
        // Trimming removes a closing quotation mark; restore it.
        if self.tokens.get(last + 1).is_some_and(|t| matches!(t.raw.as_str(), "\"" | "»" | "”"))
            && self.quoted.get(last) == Some(&true)
        {
            text = self.meant_text(first, last + 1);
        }
        // Restore the question mark, without which the clause is not read as a question.
        if self.tokens.get(last + 1).is_some_and(|t| t.raw == "?") {
            text.push('?');
        }
        let act = self.speech.between(first, last);
        Clause { text, link, act, part: speech::ConditionPart::Whole }
    }

    /// Trims marks at both ends and opening words.
    fn trim_span(&self, mut first: usize, mut last: usize) -> (usize, usize) {
        while first < last
            && !self.tokens[last].word
            && !matches!(self.tokens[last].raw.as_str(), "\"" | "»" | "”" | "'")
        {
            last -= 1;
        }
        let mut again = true;
        while again && first < last {
            again = false;
            let mark = &self.tokens[first];
            if !mark.word && !matches!(mark.raw.as_str(), "\"" | "«" | "“" | "'" | "#" | "¿") {
                first += 1;
                again = true;
                continue;
            }
            for opener in OPENERS {
                let fits = opener.iter().enumerate().all(|(k, w)| {
                    first + k < last
                        && self.tokens[first + k].norm == *w
                        && (*w != "e" || self.tokens[first + k].lower == "e")
                });
                let next = self.tokens.get(first + opener.len());
                let kept = match opener {
                    ["prima"] => next.is_some_and(|t| t.is(&["di", "classe", "che", "possibile"])),
                    ["first"] => next.is_some_and(|t| {
                        t.is(&["class", "floor", "name", "of", "available", "day"])
                            || super::dates::month(&t.norm).is_some()
                    }),
                    ["e"] | ["and"] | ["y"] | ["et"] | ["und"] | ["ed"] => false,
                    _ => false,
                };
                if fits && !kept {
                    first += opener.len();
                    again = true;
                    break;
                }
            }
        }
        (first, last)
    }

    /// The clauses of one segment, in execution order.
    fn split_sequence(&self, first: usize, last: usize, judge: &dyn ClauseRouter) -> Vec<Clause> {
        let (start, _) = self.trim_span(first, last);
        self.split_leading_order(start, last, judge)
            .or_else(|| (start + 1..last).find_map(|i| self.split_inner_order(start, i, last, judge)))
            .unwrap_or_else(|| self.split_conjunctions(first, last, judge))
    }

    fn is_word(&self, i: usize, words: &[&str]) -> bool {
        self.tokens.get(i).is_some_and(|t| t.is(words))
    }

    /// "Prima di X, Y" and "after X, Y": splits a segment that begins with a word of order.
    fn split_leading_order(
        &self,
        start: usize,
        last: usize,
        judge: &dyn ClauseRouter,
    ) -> Option<Vec<Clause>> {
        let word = |i: usize, words: &[&str]| self.is_word(i, words);
        let before = (word(start, &["prima"]) && word(start + 1, &["di", "che"])) || word(start, &["before"]);
        let after = (word(start, &["dopo"]) && !word(start + 1, &["domani"]))
            || word(start, &["after", "once"])
            || (word(start, &["una"]) && word(start + 1, &["volta"]));
        if !(before || after) {
            return None;
        }
        let comma = (start..=last).find(|i| self.tokens[*i].raw == "," && !self.quoted[*i])?;
        if comma >= last {
            return None;
        }
        let from =
            start + if word(start + 1, &["di", "che", "aver", "avere", "volta", "having"]) { 2 } else { 1 };
        let (x, y) = (self.span_text(from, comma - 1), self.span_text(comma + 1, last));
        if judge.tool_for(&x, None).is_none() || judge.tool_for(&y, None).is_none() {
            return None;
        }
        let mut inner = self.split_conjunctions(from, comma - 1, judge);
        let main = self.split_conjunctions(comma + 1, last, judge);
        if before && main.first().is_some_and(|clause| clause.act == Act::Question) {
            // "Before I pay, how much is left?": it may depend on the answer.
            inner.iter_mut().for_each(|clause| clause.act = Act::Question);
        }
        Some(if before { in_sequence(main, inner) } else { in_sequence(inner, main) })
    }

    /// "Y prima di X" and "Y after X": splits a segment at a word of order inside it.
    fn split_inner_order(
        &self,
        start: usize,
        i: usize,
        last: usize,
        judge: &dyn ClauseRouter,
    ) -> Option<Vec<Clause>> {
        // A word of a date, such as "the day after tomorrow", is no word of order.
        if self.quoted[i] || self.taken[i] {
            return None;
        }
        let word = |i: usize, words: &[&str]| self.is_word(i, words);
        let before = (word(i, &["prima"]) && word(i + 1, &["di"])) || word(i, &["before"]);
        let after = (word(i, &["dopo"]) && word(i + 1, &["aver", "avere", "che"])) || word(i, &["after"]);
        let from = i + if word(i + 1, &["di", "aver", "avere", "che", "having"]) { 2 } else { 1 };
        if !(before || after) || from > last {
            return None;
        }
        let (y, x) = (self.span_text(start, i - 1), self.span_text(from, last));
        let (a, b) = (judge.tool_for(&y, None)?, judge.tool_for(&x, None)?);
        if a.0 == b.0 || !b.1 {
            return None;
        }
        let (one, two) = if before { ((start, i - 1), (from, last)) } else { ((from, last), (start, i - 1)) };
        let head = self.split_conjunctions(one.0, one.1, judge);
        Some(in_sequence(head, self.split_conjunctions(two.0, two.1, judge)))
    }

    fn span_text(&self, first: usize, last: usize) -> String {
        if first > last {
            return String::new();
        }
        self.clause(first, last, ClauseLink::Next).text
    }

    /// Whether a part begins with a preposition and so belongs to the previous part ("a nome X").
    fn starts_with_preposition(&self, first: usize) -> bool {
        let words = [
            "a", "ad", "al", "con", "per", "di", "da", "in", "su", "nel", "nella", "at", "with", "for",
            "under", "by", "on", "to", "of", "from",
        ];
        self.tokens[first..].iter().find(|t| t.word).is_some_and(|t| t.is(&words))
    }

    /// Whether a part has a verb and a day or time but no object: "…, pick up tomorrow at 2pm".
    fn only_adds_time(&self, first: usize, last: usize) -> bool {
        let content = |i: &usize| {
            let token = &self.tokens[*i];
            token.word
                && !self.taken[*i]
                && (lexicon::is_question_word(&token.norm) || !lexicon::is_stop_word(&token.norm))
        };
        let rest: Vec<usize> = (first..=last).filter(content).collect();
        let timed = self.taken[first..=last].contains(&true);
        let verb = rest.first().is_some_and(|i| lexicon::is_action(&self.tokens[*i].features().concepts));
        timed && rest.len() == 1 && verb
    }

    /// Whether a part opens with an order to undo something, and the part before it does not: "book the 14th and cancel the 16th".
    fn undoes_beside(&self, current: (usize, usize), next: (usize, usize)) -> bool {
        let undoes = |(first, last): (usize, usize)| {
            let words: Vec<&Token> = self.tokens[first..=last].iter().filter(|t| t.word).collect();
            let verb = strip_fillers(&words).first().copied();
            verb.is_some_and(|verb| OpeningAct::of(std::slice::from_ref(verb)) == Some(OpeningAct::Undo))
        };
        undoes(next) && !undoes(current)
    }

    fn has_own_order(&self, first: usize, last: usize) -> bool {
        let part = &self.tokens[first..=last];
        let words: Vec<&Token> = part.iter().filter(|t| t.word).collect();
        mood::adds_order(&words) && !pronouns::hands_back(part) && !self.only_adds_time(first, last)
    }

    /// Whether a part asks its own question and is not a relative clause of the previous part.
    fn has_own_question(&self, first: usize, last: usize) -> bool {
        let words: Vec<&Token> = self.tokens[first..=last].iter().filter(|t| t.word).collect();
        let comma = first > 0 && self.tokens[first - 1].raw == ",";
        let relative = comma
            && words.first().is_some_and(|t| {
                t.is(&["which", "whose", "whom", "where", "when", "why", "dove", "quando", "come", "perche"])
            });
        let content =
            words.iter().any(|t| !lexicon::is_stop_word(&t.norm) && !lexicon::is_question_word(&t.norm));
        content && !relative && mood::opens_with_question_word(&words)
    }

    /// Whether the text that follows may belong to an explanation or message: "… because …", "segnala che …".
    fn may_open_account(&self, first: usize, last: usize) -> bool {
        let account = ["because", "perche", "that", "saying", "poiche", "since", "so", "about"];
        let wish = ["like", "want", "need", "love", "wish", "prefer", "you", "wanted", "have"];
        let ask = ["dimmi", "dirmi", "sapere", "mostrami", "a", "in", "di"];
        (first..=last).any(|i| {
            let token = &self.tokens[i];
            let before = |words: &[&str]| i > first && self.tokens[i - 1].is(words);
            // "Send 60 euros to Ivo" names a recipient; "report that …", "remind me to …" open a message.
            let verb = self.tokens.get(i + 1).is_some_and(|t| is_verb(t) && !t.capital() && !t.digit());
            token.raw == ":"
                || token.is(&account)
                || token.is(&["che"]) && i > first && !before(&ask)
                || token.is(&["to"]) && verb && !before(&wish)
        })
    }

    /// Whether an order only refers back to the preceding statement ("…, potresti prenotarlo?"), so that the
    /// statement contains the values and both are one request.
    fn completes_statement(
        &self,
        said: (usize, usize),
        order: (usize, usize),
        left: Option<(ToolPlace, bool)>,
        right: Option<(ToolPlace, bool)>,
        judge: &dyn ClauseRouter,
    ) -> bool {
        if !pronouns::hands_back(&self.tokens[order.0..=order.1]) {
            return false;
        }
        match (left, right) {
            (None, _) => true,
            (Some(l), Some(r)) if l.0 == r.0 => true,
            // The statement alone has no certain tool, and both together have the tool of the order.
            (Some((_, false)), Some(r)) => {
                judge.tool_for(&self.span_text(said.0, order.1), None).is_some_and(|whole| whole.0 == r.0)
            }
            _ => false,
        }
    }

    /// Splits at "e", "and" and commas where both sides are requests by themselves.
    fn split_conjunctions(&self, first: usize, last: usize, judge: &dyn ClauseRouter) -> Vec<Clause> {
        let pieces = self.conjoined_pieces(first, last);
        let mut out: Vec<(usize, usize)> = Vec::new();
        for (a, b) in pieces.into_iter().take(40) {
            let Some(current) = out.last_mut() else {
                out.push((a, b));
                continue;
            };
            if self.is_separate_request(*current, (a, b), judge) {
                out.push((a, b));
            } else {
                current.1 = b;
            }
        }
        out.into_iter()
            .enumerate()
            .map(|(n, (a, b))| self.clause(a, b, if n == 0 { ClauseLink::Next } else { ClauseLink::Also }))
            .collect()
    }

    /// The spans between the conjunctions and commas of a span.
    fn conjoined_pieces(&self, first: usize, last: usize) -> Vec<(usize, usize)> {
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        let mut start = first;
        let mut account = false;
        for i in first..=last.min(self.tokens.len().saturating_sub(1)) {
            let token = &self.tokens[i];
            // The text after a colon is one message; conjunctions in it do not split.
            account |= token.raw == ":";
            let joins = token.raw == "," || token.is_and() || token.is(&["plus"]);
            let as_well = token.is(&["as"]) && self.is_word(i + 1, &["well"]) && self.is_word(i + 2, &["as"]);
            let oltre = token.is(&["oltre"]) && self.is_word(i + 1, &["a", "al", "alla"]);
            if (joins || as_well || oltre) && !self.quoted[i] && !account && i > start && i < last {
                pieces.push((start, i - 1));
                start = i + if as_well {
                    3
                } else if oltre {
                    2
                } else {
                    1
                };
            }
        }
        if start <= last {
            pieces.push((start, last));
        }
        pieces
    }

    /// Whether the span `next` is a request besides `current` and not part of it.
    fn is_separate_request(
        &self,
        current: (usize, usize),
        next: (usize, usize),
        judge: &dyn ClauseRouter,
    ) -> bool {
        let (a, b) = next;
        let left = judge.tool_for(&self.span_text(current.0, current.1), None);
        let words = self.span_text(a, b);
        let right = judge.tool_for(&words, left.map(|l| l.0));
        let apart = match (left, right) {
            (Some((l, _)), Some((r, sure))) if l != r => {
                (sure && !self.starts_with_preposition(a)) || judge.has_verb_or_question(&words)
            }
            (Some(_), Some((_, sure))) => sure && judge.has_verb_or_question(&words),
            // "Il mio username è X e vorrei …", "Devo partire, dimmi …"
            (None, Some((_, sure))) => sure && judge.has_verb_or_question(&words),
            // "… and order a pizza": a request even if no tool serves it.
            (Some((l, _)), None) => {
                let more = self.has_own_order(a, b) || self.has_own_question(a, b);
                more && !self.may_open_account(current.0, current.1) && !judge.names_tool_subject(&words, l)
            }
            _ => false,
        };
        let apart = apart
            && !left.is_some_and(|(l, _)| {
                !judge.has_verb_or_question(&words)
                    && judge.only_varies_values(&self.span_text(current.0, current.1), &words, l)
            });
        let only_adds_time = self.only_adds_time(a, b) && !self.undoes_beside(current, next);
        let before: Vec<&Token> = self.tokens[current.0..a].iter().filter(|token| token.word).collect();
        let only_adds_name = self.tokens[a].capital() && asks_which_of(&before);
        apart
            && !only_adds_time
            && !only_adds_name
            && !self.completes_statement(current, next, left, right, judge)
    }
}

/// Clauses followed by others that are to be done after them.
fn in_sequence(mut first: Vec<Clause>, mut then: Vec<Clause>) -> Vec<Clause> {
    if let Some(head) = then.first_mut() {
        head.link = ClauseLink::Then;
    }
    first.append(&mut then);
    first
}
