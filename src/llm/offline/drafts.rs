//! Steps before they have numbers: each clause of a request with the tool that serves it, by what somebody
//! does with the clause.

use std::rc::Rc;

use super::clauses::{self, Clause, Link};
use super::followup;
use super::lexicon;
use super::mood;
use super::plan::{OfflinePlanner, declares};
use super::prompt::Executed;
use super::pronouns;
use super::routing::{FITS, Hit, STRONG};
use super::schema::ArgumentKind;
use super::small_talk::{self, Talk};
use super::source::SourceText;
use super::speech::{self, Act, ConditionPart, act_of};
use super::text::{self, Features, Token};

/// By how little another tool may fit less well before it is not clear which one is meant.
const NEAR: f64 = 0.015;

/// A step before it has a number.
pub(super) struct StepDraft {
    /// The tool.
    pub hit: Hit,
    /// What the step is for.
    pub purpose: String,
    /// How it follows the one before.
    pub link: Link,
    /// It points back to what was said.
    pub points_back: bool,
    /// Its write, if it makes one, was not plainly asked for.
    pub unclear: bool,
}

/// What clauses have led to so far.
#[derive(Default)]
pub(super) struct Drafts {
    /// Steps, in order.
    pub list: Vec<StepDraft>,
    /// Clauses that ask for something that no tool serves, or that were not understood.
    pub unserved: Vec<String>,
    /// Statements that the next step is about.
    said_before: Vec<String>,
    /// A question that leads nowhere by itself, and may be what the next one is about.
    dangling: Option<String>,
    /// What was spoken of and not asked for.
    spoken: Vec<String>,
    /// Whether a pending question has its reply.
    replied: bool,
    previous: Option<Clause>,
}

impl OfflinePlanner {
    /// The steps of a request, and clauses that ask for something that no tool serves.
    pub fn drafts(&self, words: &str, executed: &[Executed]) -> (Vec<StepDraft>, Vec<String>) {
        if self.is_talk(words) {
            return (Vec::new(), Vec::new());
        }
        let mut drafts = Drafts::default();
        let clauses =
            if self.orders_only { clauses::split_orders(words, self) } else { clauses::split(words, self) };
        let clauses: Vec<Clause> = clauses.iter().flat_map(asked_of_each).collect();
        let mut then: Vec<Option<&str>> = clauses.iter().skip(1).map(|c| Some(c.text.as_str())).collect();
        then.push(None);
        for (clause, next) in clauses.iter().zip(then) {
            let next = next.filter(|_| clause.part == ConditionPart::Case);
            self.take(&mut drafts, clause, next);
        }
        drafts.unserved.extend(drafts.dangling.take());
        self.leave_out(&mut drafts.list, executed);
        (drafts.list, drafts.unserved)
    }

    /// Whether words are talk that no scene is for.
    fn is_talk(&self, words: &str) -> bool {
        let kind = small_talk::of(words);
        let best = || self.index.best(words, self.today(), None);
        match kind {
            Talk::Withdrawal => self.pending.is_some() || best().is_none(),
            Talk::Greeting | Talk::Thanks | Talk::Help => true,
            Talk::Recap => best().is_none_or(|hit| hit.score < 0.7),
            Talk::Other => false,
        }
    }

    /// Leaves out steps that only introduce somebody, and those that were done already.
    fn leave_out(&self, list: &mut Vec<StepDraft>, executed: &[Executed]) {
        // "Sono X. Chiedi … per me": who somebody says to be is told to the tool that takes a person, and
        // is no request by itself.
        let told: Vec<bool> = list
            .iter()
            .zip(list.iter().skip(1))
            .map(|(one, next)| {
                let takes = self.index.fields(next.hit).iter().any(|f| f.kind == ArgumentKind::Person);
                takes && next.hit.scene != one.hit.scene && self.introduces(&one.purpose)
            })
            .collect();
        let mut told = told.into_iter();
        list.retain(|_| !told.next().unwrap_or(false));
        // A re-plan does not do again what was done.
        list.retain(|d| {
            let tool = self.tool_name(d.hit);
            !executed.iter().any(|e| {
                e.scene == self.index.scenes[d.hit.scene].scene
                    && (e.purpose == d.purpose
                        || (self.writes(d.hit)
                            && e.calls.iter().any(|c| c.tool == tool && c.outcome == "ok")))
            })
        });
    }

    /// What a clause leads to, by its act; `then` is what is to be done in the case that it is.
    fn take(&self, drafts: &mut Drafts, clause: &Clause, then: Option<&str>) {
        if small_talk::is_chat(&clause.text) {
            return;
        }
        let near = drafts.list.last().map(|d| d.hit.scene);
        let act = if self.orders_only { Act::Request } else { clause.act };
        match act {
            Act::Negated | Act::Report => drafts.spoken.push(speech::object(&clause.text).to_owned()),
            Act::Quoted | Act::Reminder => match self.for_just_that(clause, near) {
                Some(hit) => drafts.push(hit, clause.text.clone(), clause, false),
                None => drafts.unserved.push(clause.text.clone()),
            },
            Act::Condition if clause.part == ConditionPart::Case => self.case(drafts, clause, then, near),
            Act::Hypothetical => match self.read(&clause.text, near) {
                Some(hit) => self.place(drafts, clause, Some((hit, clause.text.clone())), false),
                None => drafts.unserved.push(clause.text.clone()),
            },
            _ if !self.orders_only && speech::is_preamble(&clause.text) => {
                if self.brings(&clause.text) {
                    drafts.said_before.push(clause.text.clone());
                }
            }
            _ => self.asked(drafts, clause, act, near),
        }
        drafts.previous = Some(clause.clone());
    }

    /// A clause that asks for something, clearly or not.
    fn asked(&self, drafts: &mut Drafts, clause: &Clause, act: Act, near: Option<usize>) {
        let hit = self.route(clause, near, drafts.previous.as_ref());
        if !drafts.replied
            && act != Act::Condition
            && let Some(draft) = self.reply(clause, hit.as_ref().map(|h| h.0))
        {
            drafts.replied = true;
            drafts.list.push(draft);
            return;
        }
        let told = act == Act::Request && only_tells(&clause.text);
        let Some((found, mut purpose)) = self.looked_up(drafts, clause, hit, told, near) else {
            self.place(drafts, clause, None, false);
            return;
        };
        if !self.writes(found) {
            purpose = self.with_spoken(drafts, found, purpose);
            self.place(drafts, clause, Some((found, purpose)), false);
            return;
        }
        if act == Act::Question {
            if let Some(read) = self.read(&purpose, near).filter(|r| self.answers(*r, &purpose)) {
                self.place(drafts, clause, Some((read, purpose)), false);
                return;
            }
            let past = speech::asks_past(&clause.text);
            if past && let Some(read) = self.read(&purpose, near) {
                self.place(drafts, clause, Some((read, purpose)), false);
                return;
            }
            if past || speech::asks_what(&clause.text) {
                drafts.unserved.push(clause.text.clone());
                return;
            }
        }
        if act == Act::Condition {
            purpose = self.with_case(drafts, found, purpose);
        }
        let (found, doubt) = if self.orders_only || act != Act::Request {
            (found, false)
        } else {
            match self.undone_by_verb(found, &self.index.hits(&purpose, self.today(), near), &purpose) {
                Some(meant) => meant,
                None => self.clear(found, clause, near),
            }
        };
        let unclear = !self.orders_only && self.is_unclear(act, found) || doubt;
        self.place(drafts, clause, Some((found, purpose)), unclear);
    }

    /// What a clause leads to: what only wants to be told something is no write, and of reads one that has all
    /// it needs goes before one that lacks a value.
    fn looked_up(
        &self,
        drafts: &Drafts,
        clause: &Clause,
        hit: Option<(Hit, String)>,
        told: bool,
        near: Option<usize>,
    ) -> Option<(Hit, String)> {
        let hit = hit.map(|(hit, words)| {
            let read = (told && self.writes(hit)).then(|| self.read(&words, near)).flatten();
            (read.unwrap_or(hit), words)
        });
        match hit {
            Some((hit, words)) if self.writes(hit) => {
                if told {
                    self.of_spoken(drafts, clause, near)
                } else {
                    Some((hit, words))
                }
            }
            Some((hit, words)) if self.lacks(hit, &words) => {
                let spoken = || self.of_spoken(drafts, clause, near).filter(|(h, w)| !self.lacks(*h, w));
                let whole = |(hit, words): (Hit, String)| (self.whole(hit, &words, near), words);
                Some(spoken().unwrap_or_else(|| whole((hit, words))))
            }
            Some(hit) => Some(hit),
            None => self.of_spoken(drafts, clause, near),
        }
    }

    /// Whether words lack a value that the tool needs.
    fn lacks(&self, hit: Hit, words: &str) -> bool {
        let fields = self.index.fields(hit);
        !self.filled(hit, words).missing(fields).is_empty()
    }

    /// Another read of the scene that fits nearly as well and to which the words give a value and all it needs.
    fn whole(&self, hit: Hit, words: &str, near: Option<usize>) -> Hit {
        let whole = |h: &Hit| {
            let fields = self.index.fields(*h);
            let filled = self.filled(*h, words);
            let required = fields.iter().any(|f| f.required && filled.values.contains_key(&f.name));
            required && filled.missing(fields).is_empty()
        };
        let hits = self.index.hits(words, self.today(), near).into_iter();
        let others = hits.filter(|h| {
            h.scene == hit.scene && !self.writes(*h) && h.score >= FITS && hit.score - h.score < 0.15
        });
        others.filter(whole).reduce(|a, b| if b.score > a.score { b } else { a }).unwrap_or(hit)
    }

    /// The read that answers a clause about what was spoken of before and not asked for: "don't book AB123CD,
    /// just tell me its fuel".
    fn of_spoken(&self, drafts: &Drafts, clause: &Clause, near: Option<usize>) -> Option<(Hit, String)> {
        let said = drafts.spoken.last()?.trim_end_matches(['.', '?', '!', ' ']);
        let tokens = text::tokens(&clause.text);
        let quiet = |t: &Token| lexicon::is_stop(&t.norm) || lexicon::is_chat(&t.norm);
        let mut content = tokens.iter().filter(|t| t.word && !quiet(t)).peekable();
        content.peek()?;
        if !content.all(|t| lexicon::is_asking(&t.norm) || self.index.knows(&t.features())) {
            return None;
        }
        let mark = if clause.text.ends_with('?') { "?" } else { "" };
        let whole = format!("{} ({said}){mark}", clause.text.trim_end_matches(['.', '?', '!', ' ']));
        let read = self.read(&whole, near)?;
        let read = if self.lacks(read, &whole) { self.whole(read, &whole, near) } else { read };
        Some((read, whole))
    }

    /// Whether a write that a clause leads to was not plainly asked for. How things are may be told in the
    /// words by which the tool's own examples ask for it.
    pub fn is_unclear(&self, act: Act, hit: Hit) -> bool {
        if !self.writes(hit) {
            return false;
        }
        let tool = self.tool_name(hit);
        let examples = &self.index.scenes[hit.scene].examples;
        let said_so = || {
            examples
                .iter()
                .filter(|e| e.tool.as_deref() == Some(tool))
                .any(|e| act_of(&e.say) == Act::Statement)
        };
        match act {
            Act::Request | Act::Reminder | Act::Quoted => false,
            Act::Statement => !said_so(),
            _ => true,
        }
    }

    /// The tool where it is clearly ahead; one that only looks where that fits as well, or whether there is
    /// doubt.
    fn clear(&self, hit: Hit, clause: &Clause, near: Option<usize>) -> (Hit, bool) {
        let others = self.index.hits(&clause.text, self.today(), near);
        let same = |h: &Hit| h.scene == hit.scene && h.tool == hit.tool;
        if !others.iter().any(|h| same(h) && (h.score - hit.score).abs() < 1e-9) {
            // It was found by other words than the clause's own.
            return (hit, false);
        }
        // "Blocca" is no "sblocca": the tool whose examples begin so is meant.
        if let Some(named) = self.named_by_verb(hit, &others, &clause.text) {
            return (named, false);
        }
        if let Some(fuller) = self.takes_more(hit, &others, &clause.text) {
            return (fuller, false);
        }
        // "Cancel that one": a verb alone is said of many things.
        let near = if has_subject(&clause.text) { NEAR } else { 10.0 * NEAR };
        let close = others.iter().filter(|h| !same(h) && h.score > FITS && hit.score - h.score < near);
        let best = close.reduce(|a, b| if b.score > a.score { b } else { a });
        match best {
            Some(other) if !self.writes(*other) && looks(&clause.text) => (*other, false),
            Some(_) => (hit, true),
            None => (hit, false),
        }
    }

    /// Another write whose examples have the verb that opens the clause, where those of `hit` have it not.
    fn named_by_verb(&self, hit: Hit, others: &[Hit], words: &str) -> Option<Hit> {
        let verb = opening_verb(words)?;
        let has = |h: &Hit| {
            let tool = self.tool_name(*h);
            let examples = self.index.scenes[h.scene].examples.iter();
            let own = examples.filter(|e| e.tool.as_deref() == Some(tool));
            let says =
                |say: &str| text::tokens(say).iter().take(4).any(|t| t.features().similarity(&verb) > 0.9);
            own.into_iter().any(|e| says(&e.say))
                || text::name_words(tool).iter().any(|w| text::features(w).similarity(&verb) > 0.9)
        };
        if has(&hit) {
            return None;
        }
        // The values of a choice are not told to a planner.
        let lacking = |h: &Hit| {
            let fields = self.index.fields(*h);
            let missing = self.filled(*h, words);
            missing
                .missing(fields)
                .iter()
                .any(|f| !matches!(f.kind, ArgumentKind::Enum(_) | ArgumentKind::Text | ArgumentKind::Thing))
        };
        let called = |h: &Hit| {
            let own = text::name_words(self.tool_name(*h));
            own.first().is_some_and(|word| text::features(word).similarity(&verb) > 0.8) && !lacking(h)
        };
        let lacks = lacking(&hit);
        let near =
            others.iter().filter(|h| h.scene == hit.scene && self.writes(**h) && hit.score - h.score < 0.2);
        near.filter(|h| h.tool != hit.tool && (has(h) || (lacks && called(h))))
            .copied()
            .reduce(|a, b| if b.score > a.score { b } else { a })
    }

    /// Where the verb that opens the clause undoes what the tool does: the tool that does what it says, or doubt.
    pub fn undone_by_verb(&self, hit: Hit, others: &[Hit], words: &str) -> Option<(Hit, bool)> {
        let verb = opening_verb(words)?;
        let own = |h: &Hit| text::name_words(self.tool_name(*h)).first().map(|word| text::features(word));
        let undone = |h: &Hit| own(h).is_some_and(|o| o.similarity(&verb) < 0.8 && o.reverses(&verb));
        if !undone(&hit) {
            return None;
        }
        let like = |h: &&Hit| own(h).is_some_and(|o| o.similarity(&verb) > 0.8 && !o.reverses(&verb));
        let other = others.iter().filter(|h| h.scene == hit.scene && self.writes(**h)).find(like);
        Some(other.map_or((hit, true), |other| (*other, false)))
    }

    /// Another write of the scene that takes every number that was said and lacks nothing, where `hit` has no
    /// use for a number.
    fn takes_more(&self, hit: Hit, others: &[Hit], words: &str) -> Option<Hit> {
        let source = SourceText::new(words, &self.now);
        let takes = |h: &Hit| {
            let fields = self.index.fields(*h);
            let filled = self.filled(*h, words);
            let used = |i: usize| filled.used.get(i) == Some(&true);
            let all =
                source.found.numbers.iter().all(|n| n.first == n.last && n.value == 1.0 || used(n.first));
            (all, filled.missing(fields).is_empty())
        };
        if source.found.numbers.is_empty() || takes(&hit).0 {
            return None;
        }
        let near = others.iter().filter(|h| h.scene == hit.scene && h.tool != hit.tool && self.writes(**h));
        near.filter(|h| hit.score - h.score < 0.2 && takes(h) == (true, true))
            .copied()
            .reduce(|a, b| if b.score > a.score { b } else { a })
    }

    /// The best read for some words.
    fn read(&self, words: &str, near: Option<usize>) -> Option<Hit> {
        let hits = self.index.hits(words, self.today(), near).into_iter();
        let reads = hits.filter(|h| h.score >= FITS && !self.writes(*h));
        reads.reduce(|a, b| if b.score > a.score + 1e-9 { b } else { a })
    }

    /// Whether a read answers a question that was taken for a write: it fits for sure, needs nothing that was
    /// not said, and looks by what was said.
    fn answers(&self, read: Hit, words: &str) -> bool {
        let fields = self.index.fields(read);
        let filled = self.filled(read, words);
        let bare = self.filled(read, "");
        read.score >= STRONG
            && filled.missing(fields).is_empty()
            && (filled.values != bare.values || !self.brings(words))
    }

    /// A case: what may tell whether it is so is looked up.
    fn case(&self, drafts: &mut Drafts, clause: &Clause, then: Option<&str>, near: Option<usize>) {
        let whole = then.map(|then| format!("{} ({})", clause.text, speech::object(then)));
        let words = std::iter::once(clause.text.clone()).chain(whole);
        let found = words.into_iter().find_map(|words| {
            let hit = self.read(&clause.text, near)?;
            let fields = self.index.fields(hit);
            let filled = self.filled(hit, &words);
            filled.missing(fields).is_empty().then_some((hit, words))
        });
        match found {
            Some((hit, words)) => drafts.push(hit, words, clause, false),
            None => {
                drafts.spoken.push(clause.text.clone());
                drafts.unserved.push(clause.text.clone());
            }
        }
    }

    /// A purpose with what was spoken of before, where the tool lacks that.
    fn with_spoken(&self, drafts: &Drafts, hit: Hit, purpose: String) -> String {
        let spoken = drafts.spoken.iter().rev().take(2);
        self.completed(hit, purpose, spoken.map(|said| ("", said.as_str())))
    }

    /// What is to be done in a case, with what the case or the question before it names.
    fn with_case(&self, drafts: &Drafts, hit: Hit, purpose: String) -> String {
        let before = drafts.list.last().map(|d| d.purpose.as_str());
        let spoken = drafts.spoken.last().map(String::as_str);
        self.completed(hit, purpose, before.into_iter().chain(spoken).map(|said| ("", said)))
    }

    fn completed<'a>(
        &self,
        hit: Hit,
        purpose: String,
        said: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> String {
        let fields = self.index.fields(hit);
        let lacks = |words: &str| self.filled(hit, words).missing(fields).len();
        let now = lacks(&purpose);
        if now == 0 {
            return purpose;
        }
        let plain = purpose.trim_end_matches(['.', '?', '!', ' ']).to_owned();
        let mark = if purpose.trim_end().ends_with('?') { "?" } else { "" };
        said.map(|(_, said)| format!("{plain} ({}){mark}", said.trim_end_matches(['.', '?', '!', ' '])))
            .find(|words| lacks(words) < now)
            .unwrap_or(purpose)
    }

    /// The tool that is for just what the first words say: to remind, to write to somebody.
    fn for_just_that(&self, clause: &Clause, near: Option<usize>) -> Option<Hit> {
        let (words, named): (&[&str], &[&str]) = match clause.act {
            Act::Reminder => (&["remind", "reminder", "ricorda"], &["reminder", "remind"]),
            _ => (
                &["message", "messaggio", "email", "mail", "notify", "tell", "write"],
                &["message", "email", "mail", "notify", "tell", "sms", "chat"],
            ),
        };
        let hit = self.index.route(&clause.text, self.today(), near)?;
        let like = |word: &str| {
            let own = text::features(word);
            words.iter().chain(named).any(|w| text::features(w).similarity(&own) > 0.8)
        };
        let name = text::name_words(self.tool_name(hit));
        name.iter().any(|word| like(word)).then_some(hit)
    }

    /// Puts a clause where it belongs: with the step before it, or as one of its own.
    fn place(&self, drafts: &mut Drafts, clause: &Clause, hit: Option<(Hit, String)>, unclear: bool) {
        let tokens = text::tokens(&clause.text);
        let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
        let order = mood::orders_more(&words) && !self.orders_only;
        let states = clause.act == Act::Statement && !self.orders_only;
        let tells = states || !self.acts_or(&clause.text, order) || !order && declares(&tokens);
        let Some((hit, purpose)) = hit else {
            self.unrouted(drafts, clause, tells);
            return;
        };
        let writes = self.writes(hit);
        if let Some(open) = drafts.dangling.take() {
            if !self.brings(&purpose) && clause.link == Link::Next {
                drafts.said_before.push(open);
            } else {
                drafts.unserved.push(open);
            }
        }
        let bare =
            !self.brings(&purpose) && !writes && clause.link == Link::Next && !self.wants_more(&purpose, hit);
        let refers = bare
            || !self.brings(&purpose)
                && tokens
                    .iter()
                    .any(|t| t.is(&["it", "its", "lo", "la", "li", "le", "ne", "them", "suo", "sua"]));
        if let Some(last) = drafts.list.last_mut()
            && last.hit.scene == hit.scene
            && last.hit.tool == hit.tool
            && (tells || refers || declares(&text::tokens(&last.purpose)))
            && (writes || tells || refers)
            && clause.link != Link::Then
            && !(self.repeats(&last.purpose) && self.repeats(&purpose))
        {
            last.purpose = format!("{}. {purpose}", last.purpose.trim_end_matches(['.', ' ']));
            // A plain order makes clear what a statement beside it is for.
            last.unclear &= unclear || clause.act != Act::Request;
            return;
        }
        let mut purpose = purpose;
        if !drafts.said_before.is_empty() {
            purpose = self.about(std::mem::take(&mut drafts.said_before), purpose, hit);
        }
        let points_back = tokens
            .iter()
            .any(|t| t.is(&["it", "them", "lo", "la", "li", "le", "ne", "that", "those"]) && !t.first)
            && !drafts.list.is_empty();
        drafts.list.push(StepDraft { hit, purpose, link: clause.link, points_back, unclear });
    }

    /// A purpose with the statements that stand before it. A write that has all it needs takes no more.
    fn about(&self, said: Vec<String>, purpose: String, hit: Hit) -> String {
        let fields = self.index.fields(hit);
        let complete = || self.filled(hit, &purpose).missing(fields).is_empty();
        let preambles = said.iter().any(|s| speech::is_preamble(s) || speech::denies(s));
        if preambles && self.writes(hit) && complete() {
            return purpose;
        }
        format!("{}. {purpose}", said.join(". "))
    }

    /// A clause that leads nowhere by itself.
    fn unrouted(&self, drafts: &mut Drafts, clause: &Clause, tells: bool) {
        let earlier = || followup::resolve(&clause.text, &self.conversation, &self.index, &self.now);
        if drafts.list.is_empty()
            && clause.act != Act::Condition
            && let Some((hit, purpose)) = earlier()
        {
            drafts.push(hit, purpose, clause, false);
        } else if tells && clause.link != Link::Then && clause.part == ConditionPart::Whole {
            match drafts.list.last_mut() {
                Some(last) => {
                    last.purpose = format!("{}. {}", last.purpose.trim_end_matches(['.', ' ']), clause.text);
                }
                None => drafts.said_before.push(clause.text.clone()),
            }
        } else if self.brings(&clause.text) && drafts.list.is_empty() && drafts.dangling.is_none() {
            drafts.dangling = Some(clause.text.clone());
        } else {
            drafts.unserved.push(clause.text.clone());
        }
    }

    fn acts_or(&self, words: &str, order: bool) -> bool {
        order || clauses::Judge::acts(self, words)
    }
}

impl Drafts {
    fn push(&mut self, hit: Hit, purpose: String, clause: &Clause, unclear: bool) {
        let points_back = pronouns::hands_back(&text::tokens(&clause.text)) && !self.list.is_empty();
        self.list.push(StepDraft { hit, purpose, link: clause.link, points_back, unclear });
    }
}

/// Whether words name something beside what is done, numbers and function words.
fn has_subject(words: &str) -> bool {
    text::tokens(words).iter().any(|t| {
        let quiet = lexicon::is_stop(&t.norm) || lexicon::is_chat(&t.norm) || lexicon::is_measure(&t.norm);
        t.word
            && !quiet
            && !t.digit()
            && !lexicon::is_action(&t.features().concepts)
            && !t.is(&["one", "ones"])
    })
}

/// "Who are nweber and prossi?", "tell me who nweber is": a question for each of the names, with the name at
/// its end. Any other clause is left as it is.
fn asked_of_each(clause: &Clause) -> Vec<Clause> {
    let tokens = text::tokens(&clause.text);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let is = |t: &Token| t.lower == "è" || t.is(&["is", "are", "sono"]);
    let who = words.iter().position(|t| t.is(&["who", "chi"]));
    let names = who.and_then(|who| {
        let rest = words.get(who + 1..)?;
        let (first, last) = (rest.first()?, rest.last()?);
        match (is(first), is(last)) {
            (true, false) => rest.get(1..),
            (false, true) => rest.get(..rest.len() - 1),
            _ => None,
        }
    });
    let joins = |t: &&Token| t.is(&["and", "e", "ed"]);
    let name = |t: &Token| !lexicon::is_stop(&t.norm) && t.features().concepts.is_empty();
    let all = |names: &&[&Token]| !names.is_empty() && names.iter().all(|t| joins(t) || name(t));
    let (Some(who), Some(names)) = (who, names.filter(all)) else { return vec![clause.clone()] };
    let opens = clause.text.get(..words[who].end).unwrap_or_default();
    let verb = if words[who].is(&["chi"]) { "è" } else { "is" };
    let rows = names.split(joins).filter(|row| !row.is_empty());
    rows.filter_map(|row| {
        let named = clause.text.get(row.first()?.start..row.last()?.end)?;
        Some(Clause { text: format!("{opens} {verb} {named}?"), ..clause.clone() })
    })
    .collect()
}

/// Whether words only want something to be told.
fn only_tells(words: &str) -> bool {
    let tokens = text::tokens(words);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let told = ["tell", "show", "list", "dimmi", "dirmi", "mostrami", "mostra", "elenca", "elencami"];
    mood::unfilled(&words).first().is_some_and(|t| t.is(&told))
}

/// Whether words begin with a way of looking.
fn looks(words: &str) -> bool {
    let tokens = text::tokens(words);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let first = mood::unfilled(&words).first();
    mood::tells_me(&words) || first.is_some_and(|t| lexicon::is_looking(&t.features().concepts))
}

/// The word with which a clause begins to ask.
fn opening_verb(words: &str) -> Option<Rc<Features>> {
    let tokens = text::tokens(words);
    let said: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    mood::unfilled(&said).first().map(|t| t.features())
}
