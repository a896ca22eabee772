//! Drafts the steps of a plan: routes each clause of a request to a tool according to its speech act.

use super::clauses::{self, Clause, ClauseLink, ClauseRouter as _};
use super::corrections::after_correction;
use super::doubts;
use super::followup;
use super::lexicon;
use super::mood::{self, is_declaration};
use super::pattern::strip_fillers;
use super::plan::OfflinePlanner;
use super::prompt::{Executed, PriorCall};
use super::pronouns;
use super::repeated_write;
use super::replies::says_only_days;
use super::routing::Hit;
use super::schema::ArgumentKind;
use super::small_talk::{self, Talk};
use super::speech::{self, Act, ConditionPart, act_of};
use super::text::{self, Token};
use super::weights::{self, FITS, STRONG, SURE_MATCH};
use super::who_questions::{opens_with_who, split_who_question};

/// A step without a number.
pub(super) struct StepDraft {
    /// The tool.
    pub hit: Hit,
    /// Its purpose.
    pub purpose: String,
    /// How it relates to the previous step.
    pub link: ClauseLink,
    /// Whether it refers back to an earlier clause.
    pub refers_back: bool,
    /// Whether its write, if any, was not clearly requested.
    pub unclear: bool,
}

/// The drafted steps and what is still open while the clauses are read.
#[derive(Default)]
pub(super) struct Drafts {
    /// Steps, in order.
    pub list: Vec<StepDraft>,
    /// Requests that no tool serves or that were not understood.
    pub unserved: Vec<String>,
    /// Statements that belong to the next step.
    preceding_statements: Vec<String>,
    /// A question that has no tool by itself and may be the subject of the next clause.
    open_question: Option<String>,
    /// Things that were mentioned but not requested.
    mentioned: Vec<String>,
    /// Whether a clause answered the pending question.
    pub pending_answered: bool,
    previous: Option<Clause>,
}

/// The parts of a request that the steps do not carry out.
#[derive(Default)]
pub(super) struct UnservedParts {
    /// Their words.
    pub words: Vec<String>,
    /// Whether the request's constraints forbid one of them.
    pub has_forbidden: bool,
    /// Those that only tools serve which are switched off.
    pub unavailable: Vec<String>,
}

impl OfflinePlanner {
    /// Drafts the steps of a request. Also returns the clauses that no tool serves.
    pub fn draft_steps(&self, words: &str, executed: &[Executed]) -> (Vec<StepDraft>, UnservedParts) {
        let is_first = self.pending.is_none() && executed.is_empty() && !self.orders_only;
        let of_last_turn = if is_first { self.steps_of_last_turn(words) } else { Vec::new() };
        if !of_last_turn.is_empty() {
            return self.only_allowed(of_last_turn, Vec::new());
        }
        if self.is_small_talk(words) {
            return (Vec::new(), UnservedParts::default());
        }
        let mut drafts = Drafts::default();
        // A name may look like a word of the catalogue, which would split the list.
        let whole = Clause {
            text: words.trim().to_owned(),
            link: ClauseLink::Next,
            act: Act::Question,
            part: ConditionPart::Whole,
        };
        let clauses = match split_who_question(&whole) {
            persons if persons.len() > 1 && opens_with_who(words) => persons,
            _ if self.orders_only => clauses::split_orders(words, self),
            _ => clauses::split(words, self),
        };
        let clauses: Vec<Clause> = clauses.iter().flat_map(split_who_question).collect();
        let mut then: Vec<Option<&str>> = clauses.iter().skip(1).map(|c| Some(c.text.as_str())).collect();
        then.push(None);
        for (clause, next) in clauses.iter().zip(then) {
            let next = next.filter(|_| clause.part == ConditionPart::Case);
            self.draft_clause(&mut drafts, clause, next);
        }
        drafts.unserved.extend(drafts.open_question.take());
        let asked = self.asked_again(words, &drafts.list).filter(|_| executed.is_empty());
        drafts.list.extend(asked);
        self.remove_redundant(&mut drafts.list, executed);
        // Words with a value and without a verb are no request by themselves: they say more of what is asked for.
        let is_rest = |words: &String| !self.has_verb_or_question(words) && self.has_day_or_name(words);
        if drafts.unserved.iter().any(is_rest) && !self.orders_only {
            drafts
                .list
                .iter_mut()
                .filter(|draft| self.writes(draft.hit))
                .for_each(|draft| draft.unclear = true);
        }
        self.doubt_writes(words, &mut drafts.list);
        self.only_allowed(drafts.list, drafts.unserved)
    }

    /// The steps of a request that only says what is different from the turn before, or asks more about its things.
    fn steps_of_last_turn(&self, words: &str) -> Vec<StepDraft> {
        let step = |hit, purpose, unclear| StepDraft {
            hit,
            purpose,
            link: ClauseLink::Next,
            refers_back: false,
            unclear,
        };
        if let Some(again) = repeated_write::resolve(words, &self.conversation, &self.index, &self.now) {
            return vec![step(again.hit, again.purpose, !again.is_clear)];
        }
        // "Not Rome, Milan": no refusal of anything, but another value for the last read. "Both on Monday" is one, too.
        let corrects = after_correction(words).len() < words.len() || followup::opens_with_both(words);
        if corrects
            && self.told_last()
            && let Some((hit, purpose)) = followup::resolve(words, &self.conversation, &self.index, &self.now)
        {
            return vec![step(hit, purpose, false)];
        }
        let counted = self.reads_of_quantity_question(words);
        if counted.is_empty() {
            return self.compared_reads(words);
        }
        counted.into_iter().map(|(hit, purpose)| step(hit, purpose, false)).collect()
    }

    /// Steps with tools that may be called; the words of the others join those that no tool serves.
    pub fn only_allowed(
        &self,
        drafts: Vec<StepDraft>,
        mut unserved: Vec<String>,
    ) -> (Vec<StepDraft>, UnservedParts) {
        let is_on = |draft: &StepDraft| !self.is_switched_off(draft.hit.scene, self.tool_name(draft.hit));
        let is_allowed = |draft: &StepDraft| self.is_allowed(draft.hit.scene, self.tool_name(draft.hit));
        let (on, off): (Vec<_>, Vec<_>) = drafts.into_iter().partition(is_on);
        let (allowed, refused): (Vec<_>, Vec<_>) = on.into_iter().partition(is_allowed);
        let has_forbidden = !refused.is_empty();
        let unavailable: Vec<String> = off.into_iter().map(|draft| draft.purpose).collect();
        unserved.extend(refused.into_iter().map(|draft| draft.purpose));
        unserved.extend(unavailable.iter().cloned());
        (allowed, UnservedParts { words: unserved, has_forbidden, unavailable })
    }

    /// Whether words are small talk that no scene serves.
    pub fn is_small_talk(&self, words: &str) -> bool {
        if self.takes_back_question(words) {
            return true;
        }
        let kind = small_talk::classify(words);
        let best = || self.index.best(words, self.today(), None);
        match kind {
            Talk::Withdrawal => self.pending.is_some() || best().is_none(),
            Talk::Greeting | Talk::Thanks | Talk::Help => true,
            Talk::Recap => best().is_none_or(|hit| hit.score < weights::NO_RECAP),
            Talk::Other => false,
        }
    }

    /// Removes steps that only introduce a person and steps that were already completed.
    fn remove_redundant(&self, list: &mut Vec<StepDraft>, executed: &[Executed]) {
        // "Sono X. Chiedi … per me": the name is an argument of the next tool, not a request by itself.
        let told: Vec<bool> = list
            .iter()
            .zip(list.iter().skip(1))
            .map(|(one, next)| {
                let takes = self.index.fields(next.hit).iter().any(|f| f.kind == ArgumentKind::Person);
                takes && next.hit.scene != one.hit.scene && self.is_introduction(&one.purpose)
            })
            .collect();
        let mut told = told.into_iter();
        list.retain(|_| !told.next().unwrap_or(false));
        // A re-plan does not repeat completed steps.
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

    /// Leaves writes to the user's confirmation where the request leaves open if they are wanted, or where a clause opens with
    /// another verb than those of its tool.
    fn doubt_writes(&self, request: &str, list: &mut [StepDraft]) {
        if self.orders_only || !list.iter().any(|draft| self.writes(draft.hit) && !draft.unclear) {
            return;
        }
        let is_open = doubts::has_doubt(request);
        for draft in list.iter_mut().filter(|draft| self.writes(draft.hit)) {
            draft.unclear |= is_open || self.opens_otherwise(draft);
        }
    }

    /// Drafts a clause according to its speech act. `then` is the consequence if the clause is a condition.
    fn draft_clause(&self, drafts: &mut Drafts, clause: &Clause, then: Option<&str>) {
        if small_talk::is_only_polite(&clause.text) {
            self.draft_consent(drafts, clause);
            return;
        }
        let near = drafts.list.last().map(|d| d.hit.scene).or_else(|| self.scene_of_mentioned(drafts));
        let act = if self.orders_only { Act::Request } else { clause.act };
        match act {
            Act::Negated | Act::Report => drafts.mentioned.push(speech::object(&clause.text).to_owned()),
            Act::Quoted | Act::Reminder => match self.dedicated_tool(clause, near) {
                Some(hit) => drafts.push(hit, clause.text.clone(), clause, false),
                None => drafts.unserved.push(clause.text.clone()),
            },
            Act::Condition if clause.part == ConditionPart::Case => {
                self.draft_case(drafts, clause, then, near)
            }
            Act::Hypothetical => match self.best_read(&clause.text, near) {
                Some(hit) => self.place_clause(drafts, clause, Some((hit, clause.text.clone())), false),
                None => drafts.unserved.push(clause.text.clone()),
            },
            _ if !self.orders_only && speech::is_preamble(&clause.text) => {
                if self.has_day_or_name(&clause.text) {
                    drafts.preceding_statements.push(clause.text.clone());
                }
            }
            _ => self.draft_asked(drafts, clause, act, near),
        }
        drafts.previous = Some(clause.clone());
    }

    /// Whether the last turn only told something.
    fn told_last(&self) -> bool {
        let calls = self.conversation.turns.last().map_or(&[][..], |turn| &turn.calls);
        let is_read =
            |call: &PriorCall| self.index.named(&call.scene, &call.tool).is_some_and(|hit| !self.writes(hit));
        !calls.is_empty() && calls.iter().all(is_read)
    }

    /// "And the milk jug?": the read of the turn before for another value, also where its words are those of a write.
    fn repeated_read(&self, drafts: &Drafts, clause: &Clause) -> Option<(Hit, String)> {
        let asks = clause.text.ends_with('?') && !self.has_verb_or_question(&clause.text);
        let read = || followup::resolve(&clause.text, &self.conversation, &self.index, &self.now);
        let last = self.conversation.turns.last().filter(|_| asks && drafts.list.is_empty())?;
        let is_read =
            |call: &PriorCall| self.index.named(&call.scene, &call.tool).is_some_and(|hit| !self.writes(hit));
        last.calls.last().filter(|call| is_read(call)).and_then(|_| read())
    }

    /// The scene of a previous clause that asks for nothing: "I sent 50 euros to Bob. What is my balance?"
    fn scene_of_mentioned(&self, drafts: &Drafts) -> Option<usize> {
        let said = drafts.previous.as_ref().filter(|c| matches!(c.act, Act::Negated | Act::Report))?;
        self.index.best(&said.text, self.today(), None).filter(|hit| hit.score >= STRONG).map(|hit| hit.scene)
    }

    /// Drafts a clause that requests something, clearly or not.
    fn draft_asked(&self, drafts: &mut Drafts, clause: &Clause, act: Act, near: Option<usize>) {
        let hit = self.route(clause, near, drafts.previous.as_ref());
        let hit = hit.or_else(|| self.read_of_other_value(drafts, clause));
        let tells = |hit| self.index.telling_state(hit, &clause.text, self.today());
        let hit = hit.map(|(hit, purpose)| (tells(hit), purpose));
        let hit = hit.filter(|(hit, _)| !self.undoes_something_else(*hit, &clause.text));
        if !drafts.pending_answered
            && act != Act::Condition
            && let Some(draft) = self.draft_for_reply(clause, hit.as_ref().map(|h| h.0))
        {
            drafts.pending_answered = true;
            drafts.list.push(draft);
            return;
        }
        if hit.as_ref().is_some_and(|(hit, _)| self.writes(*hit))
            && let Some((hit, purpose)) = self.repeated_read(drafts, clause)
        {
            drafts.push(hit, purpose, clause, false);
            return;
        }
        let told = act == Act::Request && only_asks_to_tell(&clause.text);
        let Some((found, mut purpose)) = self.prefer_complete_read(drafts, clause, hit, told, near) else {
            self.place_clause(drafts, clause, None, false);
            return;
        };
        if !self.writes(found) {
            purpose = self.with_mentioned(drafts, found, purpose);
            self.place_clause(drafts, clause, Some((found, purpose)), false);
            return;
        }
        if act == Act::Question {
            if let Some(read) = self.best_read(&purpose, near).filter(|r| self.read_answers(*r, &purpose)) {
                self.place_clause(drafts, clause, Some((read, purpose)), false);
                return;
            }
            let past = speech::asks_past(&clause.text);
            if past && let Some(read) = self.best_read(&purpose, near) {
                self.place_clause(drafts, clause, Some((read, purpose)), false);
                return;
            }
            if past || speech::asks_what(&clause.text) || speech::asks_advice(&clause.text) {
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
            match self.opposite_by_verb(found, &self.index.hits(&purpose, self.today(), near), &purpose) {
                Some(meant) => meant,
                None => self.disambiguate(found, clause, near),
            }
        };
        let unclear = !self.orders_only && self.is_unclear(act, found) || doubt;
        self.place_clause(drafts, clause, Some((found, purpose)), unclear);
    }

    /// Refines the tool of a clause. A request for information does not lead to a write, and a read whose
    /// required values are all given is preferred to one that lacks a value.
    fn prefer_complete_read(
        &self,
        drafts: &Drafts,
        clause: &Clause,
        hit: Option<(Hit, String)>,
        told: bool,
        near: Option<usize>,
    ) -> Option<(Hit, String)> {
        let hit = hit.map(|(hit, words)| {
            let read = (told && self.writes(hit)).then(|| self.best_read(&words, near)).flatten();
            (read.unwrap_or(hit), words)
        });
        match hit {
            Some((hit, words)) if self.writes(hit) => {
                if told {
                    self.read_about_mentioned(drafts, clause, near)
                } else {
                    Some((hit, words))
                }
            }
            Some((hit, words)) if self.lacks_required(hit, &words) => {
                let spoken = || {
                    self.read_about_mentioned(drafts, clause, near)
                        .filter(|(h, w)| !self.lacks_required(*h, w))
                };
                let whole =
                    |(hit, words): (Hit, String)| (self.complete_alternative(hit, &words, near), words);
                Some(spoken().unwrap_or_else(|| whole((hit, words))))
            }
            Some(hit) => Some(hit),
            None => self.read_about_mentioned(drafts, clause, near),
        }
    }

    /// Whether the words lack a required value of the tool.
    fn lacks_required(&self, hit: Hit, words: &str) -> bool {
        let fields = self.index.fields(hit);
        !self.filled(hit, words).missing(fields).is_empty()
    }

    /// Another read of the scene that scores nearly as well and has all required values, at least one of them
    /// from the words.
    fn complete_alternative(&self, hit: Hit, words: &str, near: Option<usize>) -> Hit {
        let whole = |h: &Hit| {
            let fields = self.index.fields(*h);
            let filled = self.filled(*h, words);
            let required = fields.iter().any(|f| f.required && filled.values.contains_key(&f.name));
            required && filled.missing(fields).is_empty()
        };
        let hits = self.index.hits(words, self.today(), near).into_iter();
        let others = hits.filter(|h| {
            h.scene == hit.scene
                && !self.writes(*h)
                && h.score >= FITS
                && hit.score - h.score < weights::READ_ALTERNATIVE
        });
        others.filter(whole).reduce(|a, b| if b.score > a.score { b } else { a }).unwrap_or(hit)
    }

    /// The read for a clause about something mentioned but not requested: "don't book AB123CD, just tell me
    /// its fuel".
    fn read_about_mentioned(
        &self,
        drafts: &Drafts,
        clause: &Clause,
        near: Option<usize>,
    ) -> Option<(Hit, String)> {
        let said = drafts.mentioned.last()?.trim_end_matches(['.', '?', '!', ' ']);
        let tokens = text::tokens(&clause.text);
        let quiet = |t: &Token| lexicon::is_stop_word(&t.norm) || lexicon::is_pleasantry(&t.norm);
        let mut content = tokens.iter().filter(|t| t.word && !quiet(t)).peekable();
        content.peek()?;
        if !content.all(|t| lexicon::is_question_word(&t.norm) || self.index.has_similar_word(&t.features()))
        {
            return None;
        }
        let mark = if clause.text.ends_with('?') { "?" } else { "" };
        let whole = format!("{} ({said}){mark}", clause.text.trim_end_matches(['.', '?', '!', ' ']));
        let read = self.best_read(&whole, near)?;
        let read = if self.lacks_required(read, &whole) {
            self.complete_alternative(read, &whole, near)
        } else {
            read
        };
        Some((read, whole))
    }

    /// "Che tempo fa a Roma e poi a Milano?": the read of the previous words, if the clause has no verb and says
    /// nothing but another value for it. The purpose takes the words before the previous value.
    fn read_of_other_value(&self, drafts: &Drafts, clause: &Clause) -> Option<(Hit, String)> {
        let (last, previous) = (drafts.list.last()?, drafts.previous.as_ref()?);
        let linked = clause.link != ClauseLink::Next && !self.has_verb_or_question(&clause.text);
        if !linked || self.writes(last.hit) || !last.purpose.contains(&previous.text) {
            return None;
        }
        let (before, own) = (self.filled(last.hit, &last.purpose), self.filled(last.hit, &clause.text));
        let tokens = text::tokens(&clause.text);
        let is_extra = |(i, token): (usize, &Token)| {
            token.word
                && own.used.get(i) != Some(&true)
                && !lexicon::is_stop_word(&token.norm)
                && !lexicon::is_pleasantry(&token.norm)
        };
        let whole = own.missing(self.index.fields(last.hit)).is_empty();
        if !whole || own.values == before.values || tokens.iter().enumerate().any(is_extra) {
            return None;
        }
        let said = text::tokens(&last.purpose);
        let value = said.iter().enumerate().position(|(i, _)| before.used.get(i) == Some(&true))?;
        let leads = |token: &&Token| token.word && tokens.first().is_some_and(|t| t.norm == token.norm);
        let value = value - usize::from(value > 0 && said.get(value - 1).as_ref().is_some_and(leads));
        let lead = last.purpose.get(..said[value].start)?.trim_end();
        (!lead.is_empty()).then(|| (last.hit, format!("{lead} {}", clause.text)))
    }

    /// Whether a write was not clearly requested. A statement is a clear request only if one of the tool's
    /// examples is a statement.
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

    fn best_read(&self, words: &str, near: Option<usize>) -> Option<Hit> {
        let hits = self.index.hits(words, self.today(), near).into_iter();
        let reads = hits.filter(|h| h.score >= FITS && !self.writes(*h));
        reads.reduce(Hit::or_better)
    }

    /// Whether a read answers a question that was routed to a write: its score is strong, no value is
    /// missing, and it uses the values in the words.
    fn read_answers(&self, read: Hit, words: &str) -> bool {
        let fields = self.index.fields(read);
        let filled = self.filled(read, words);
        let bare = self.filled(read, "");
        read.score >= STRONG
            && filled.missing(fields).is_empty()
            && (filled.values != bare.values || !self.has_day_or_name(words))
    }

    /// Drafts a condition as a read that may decide it.
    fn draft_case(&self, drafts: &mut Drafts, clause: &Clause, then: Option<&str>, near: Option<usize>) {
        let whole = then.map(|then| format!("{} ({})", clause.text, speech::object(then)));
        let words = std::iter::once(clause.text.clone()).chain(whole);
        let found = words.into_iter().find_map(|words| {
            let hit = self.best_read(&clause.text, near)?;
            let fields = self.index.fields(hit);
            let filled = self.filled(hit, &words);
            filled.missing(fields).is_empty().then_some((hit, words))
        });
        match found {
            Some((hit, words)) => drafts.push(hit, words, clause, false),
            None => {
                drafts.mentioned.push(clause.text.clone());
                drafts.unserved.push(clause.text.clone());
            }
        }
    }

    /// Completes a purpose with things mentioned before, if the tool lacks values.
    fn with_mentioned(&self, drafts: &Drafts, hit: Hit, purpose: String) -> String {
        let spoken = drafts.mentioned.iter().rev().take(2);
        self.complete_purpose(hit, purpose, spoken.map(|said| ("", said.as_str())))
    }

    /// Completes the consequence of a condition with values from the condition or the previous question.
    fn with_case(&self, drafts: &Drafts, hit: Hit, purpose: String) -> String {
        let before = drafts.list.last().map(|d| d.purpose.as_str());
        let spoken = drafts.mentioned.last().map(String::as_str);
        self.complete_purpose(hit, purpose, before.into_iter().chain(spoken).map(|said| ("", said)))
    }

    fn complete_purpose<'a>(
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

    /// The tool dedicated to the speech act of the clause: a reminder or a message.
    fn dedicated_tool(&self, clause: &Clause, near: Option<usize>) -> Option<Hit> {
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
            words.iter().chain(named).any(|w| text::features(w).similarity(&own) > SURE_MATCH)
        };
        let name = text::name_words(self.tool_name(hit));
        name.iter().any(|word| like(word)).then_some(hit)
    }

    /// Adds a clause to the previous step or as a new step.
    fn place_clause(&self, drafts: &mut Drafts, clause: &Clause, hit: Option<(Hit, String)>, unclear: bool) {
        let tokens = text::tokens(&clause.text);
        let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
        let order = mood::adds_order(&words) && !self.orders_only;
        let states = clause.act == Act::Statement && !self.orders_only;
        let tells = states || !self.orders_or_acts(&clause.text, order) || !order && is_declaration(&tokens);
        let Some((hit, purpose)) = hit else {
            self.place_unrouted(drafts, clause, tells);
            return;
        };
        let writes = self.writes(hit);
        if let Some(open) = drafts.open_question.take() {
            if !self.has_day_or_name(&purpose) && clause.link == ClauseLink::Next {
                drafts.preceding_statements.push(open);
            } else {
                drafts.unserved.push(open);
            }
        }
        let bare = !self.has_day_or_name(&purpose)
            && !writes
            && clause.link == ClauseLink::Next
            && !self.has_values_for(&purpose, hit);
        let refers = bare
            || !self.has_day_or_name(&purpose)
                && tokens
                    .iter()
                    .any(|t| t.is(&["it", "its", "lo", "la", "li", "le", "ne", "them", "suo", "sua"]));
        if let Some(last) = drafts.list.last_mut()
            && last.hit.scene == hit.scene
            && last.hit.tool == hit.tool
            && (tells || refers || is_declaration(&text::tokens(&last.purpose)))
            && (writes || tells || refers)
            && clause.link != ClauseLink::Then
            && !(self.has_day_or_time(&last.purpose) && self.has_day_or_time(&purpose))
        {
            last.purpose = format!("{}. {purpose}", last.purpose.trim_end_matches(['.', ' ']));
            // A plain order clarifies the purpose of a statement next to it.
            last.unclear &= unclear || clause.act != Act::Request;
            return;
        }
        let mut purpose = purpose;
        if !drafts.preceding_statements.is_empty() {
            purpose = self.with_statements(std::mem::take(&mut drafts.preceding_statements), purpose, hit);
        }
        let points_back = tokens
            .iter()
            .any(|t| t.is(&["it", "them", "lo", "la", "li", "le", "ne", "that", "those"]) && !t.first)
            && !drafts.list.is_empty();
        drafts.list.push(StepDraft { hit, purpose, link: clause.link, refers_back: points_back, unclear });
    }

    /// Prepends the preceding statements to a purpose. A write that has all its values takes no background
    /// statements.
    fn with_statements(&self, said: Vec<String>, purpose: String, hit: Hit) -> String {
        let fields = self.index.fields(hit);
        let complete = || self.filled(hit, &purpose).missing(fields).is_empty();
        let preambles = said.iter().any(|s| speech::is_preamble(s) || speech::denies(s));
        if preambles && self.writes(hit) && complete() {
            return purpose;
        }
        format!("{}. {purpose}", said.join(". "))
    }

    /// Places a clause that has no tool by itself.
    fn place_unrouted(&self, drafts: &mut Drafts, clause: &Clause, tells: bool) {
        let earlier = || followup::resolve(&clause.text, &self.conversation, &self.index, &self.now);
        if drafts.list.is_empty()
            && clause.act != Act::Condition
            && let Some((hit, purpose)) = earlier()
        {
            drafts.push(hit, purpose, clause, false);
        } else if tells && clause.link != ClauseLink::Then && clause.part == ConditionPart::Whole {
            match drafts.list.last_mut() {
                Some(last) => {
                    // "I want the 21st off. Also the 23rd."
                    let mark = if says_only_days(&clause.text, self.today()) { " &" } else { "." };
                    last.purpose =
                        format!("{}{mark} {}", last.purpose.trim_end_matches(['.', ' ']), clause.text);
                }
                None => drafts.preceding_statements.push(clause.text.clone()),
            }
        } else if self.has_day_or_name(&clause.text)
            && drafts.list.is_empty()
            && drafts.open_question.is_none()
        {
            drafts.open_question = Some(clause.text.clone());
        } else {
            drafts.unserved.push(clause.text.clone());
        }
    }

    fn orders_or_acts(&self, words: &str, order: bool) -> bool {
        order || clauses::ClauseRouter::has_verb_or_question(self, words)
    }
}

impl Drafts {
    fn push(&mut self, hit: Hit, purpose: String, clause: &Clause, unclear: bool) {
        let points_back = pronouns::hands_back(&text::tokens(&clause.text)) && !self.list.is_empty();
        self.list.push(StepDraft { hit, purpose, link: clause.link, refers_back: points_back, unclear });
    }
}

/// Whether words begin with a request to tell or show something.
fn only_asks_to_tell(words: &str) -> bool {
    let tokens = text::tokens(words);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let told = ["tell", "show", "list", "dimmi", "dirmi", "mostrami", "mostra", "elenca", "elencami"];
    strip_fillers(&words).first().is_some_and(|t| t.is(&told))
}

/// Whether words begin with a lookup verb or a request for information.
pub(super) fn opens_with_lookup(words: &str) -> bool {
    let tokens = text::tokens(words);
    let words: Vec<&Token> = tokens.iter().filter(|t| t.word).collect();
    let first = strip_fillers(&words).first();
    mood::asks_to_be_told(&words) || first.is_some_and(|t| lexicon::is_lookup(&t.features().concepts))
}
