//! Replies to questions: the step that goes on with what was asked for.

use jiff::civil::Date;

use super::clauses::{self, Clause, ClauseLink};
use super::corrections::{LEADS, after_correction};
use super::dates::RangeRole;
use super::drafts::{Drafts, StepDraft};
use super::entities::Entities;
use super::lexicon;
use super::pattern::strip_fillers;
use super::plan::OfflinePlanner;
use super::prompt::OpenQuestion;
use super::routing::{Hit, ToolPlace};
use super::schema::{ArgumentField, ArgumentKind};
use super::slots;
use super::small_talk;
use super::text::{self, Token};
use super::weights::STRONG;
use crate::language::function_words::{BUT, OR};

/// Words for what is added.
const ALSO: &[&str] =
    &["also", "too", "and", "anche", "e", "auch", "und", "aussi", "et", "tambien", "y", "please"];

impl OfflinePlanner {
    /// The step that continues after the pending question, if the clause answers it.
    pub fn draft_for_reply(&self, clause: &Clause, hit: Option<Hit>) -> Option<StepDraft> {
        let pending = self.pending.as_ref().filter(|_| !denies_value(&clause.text))?;
        let scene = self.index.scenes.iter().position(|s| s.scene == pending.scene)?;
        let tool = pending.question.tool.as_deref().and_then(|t| self.index.named(&pending.scene, t));
        let target = tool
            .or_else(|| {
                self.index.best(&pending.purpose, self.today(), Some(scene)).filter(|h| h.scene == scene)
            })
            .or_else(|| {
                self.index.scenes[scene].tools.first().map(|_| Hit::certain(ToolPlace { scene, tool: 0 }))
            })?;
        let same = hit.is_some_and(|h| h.place() == target.place());
        if hit.is_some_and(|h| h.score >= STRONG && !same) || self.is_question(&clause.text) && !same {
            return None;
        }
        let fields = self.index.fields(target);
        let missing: Vec<_> = fields
            .iter()
            .filter(|f| {
                pending.question.missing.is_empty() && f.required
                    || pending.question.missing.contains(&f.name)
            })
            .map(ArgumentField::as_asked)
            .collect();
        let filled = slots::fill(&missing, &clause.text, &self.now, &[], true);
        let is_text = missing.iter().any(|f| f.kind == ArgumentKind::Text);
        if !same && !missing.is_empty() && filled.values.is_empty() && hit.is_some()
            || !same && !is_text && self.opens_another(&clause.text, target)
        {
            return None;
        }
        // A reply that is complete by itself needs no words of the pending step.
        let is_whole = same && self.filled(target, &clause.text).missing(fields).is_empty();
        // "Shall I …?" lacks nothing, and only a yes answers it.
        let asks_consent = pending.question.missing.is_empty();
        let changed = || self.with_other_value(&pending.purpose, &clause.text).filter(|_| asks_consent);
        let purpose = if is_whole {
            clause.text.clone()
        } else if let Some(purpose) = changed() {
            purpose
        } else {
            let is_day = |f: &ArgumentField| matches!(f.kind, ArgumentKind::Date | ArgumentKind::DateTime);
            let lacks_day = !asks_consent && missing.iter().any(is_day);
            let (asked, reply) = match lacks_day {
                true => None,
                false => with_other_day(&pending.purpose, after_no(&clause.text), self.today())
                    .filter(|_| !self.names_two_days(pending, target) || self.begins_anew(&clause.text)),
            }
            .unwrap_or_else(|| (pending.purpose.clone(), clause.text.clone()));
            format!("{} {reply}", asked.trim_end_matches(['.', '?', '!', ' ']))
        };
        let unclear = self.was_unclear(pending, target)
            || asks_consent && !is_whole && !self.says_day(&clause.text)
            || offers_choice(&clause.text)
            || self.says_otherwise(pending, target, &clause.text, &filled.used);
        Some(StepDraft { hit: target, purpose, link: clause.link, refers_back: false, unclear })
    }

    /// Asks again about what waits for a yes, if a yes is only a part of the reply: "yes, and tell me the weather in Rome".
    pub fn draft_consent(&self, drafts: &mut Drafts, clause: &Clause) {
        let asks_consent = self.pending.as_ref().is_some_and(|pending| pending.question.missing.is_empty());
        if asks_consent
            && !drafts.pending_answered
            && small_talk::is_bare_consent(&clause.text)
            && let Some(draft) = self.draft_for_reply(clause, None)
        {
            drafts.pending_answered = true;
            drafts.list.push(StepDraft { unclear: true, ..draft });
        }
    }

    /// The step that asks again what waits for a yes, after a question to the same scene that does not answer it, "who approves
    /// it?", or a yes that asks for something else, too.
    pub fn asked_again(&self, words: &str, drafts: &[StepDraft]) -> Option<StepDraft> {
        let pending = self.pending.as_ref().filter(|pending| pending.question.missing.is_empty())?;
        let tool = self.index.named(&pending.scene, pending.question.tool.as_deref()?)?;
        let is_beside = |draft: &StepDraft| draft.hit.scene == tool.scene;
        let asks = self.is_question(words) && drafts.iter().all(is_beside) || opens_with_consent(words);
        let asks = asks && !drafts.is_empty() && !drafts.iter().any(|draft| self.writes(draft.hit));
        asks.then(|| StepDraft {
            hit: tool,
            purpose: pending.purpose.clone(),
            link: ClauseLink::Next,
            refers_back: false,
            unclear: true,
        })
    }

    /// Whether words drop what a question is about that waits for a yes or a no, unless they name what it asks: "Shall I cancel …?",
    /// "Cancel it".
    pub fn takes_back_question(&self, words: &str) -> bool {
        let Some(pending) = self.pending.as_ref().filter(|pending| pending.question.missing.is_empty())
        else {
            return false;
        };
        let tool = pending.question.tool.as_deref().and_then(|tool| self.index.named(&pending.scene, tool));
        let tokens = text::tokens(words);
        let verb = tokens.iter().find(|token| token.word && !lexicon::is_pleasantry(&token.norm));
        let best = || self.index.best(&verb?.raw, self.today(), None);
        let names_it = || tool.zip(best()).is_some_and(|(tool, hit)| tool.place() == hit.place());
        small_talk::takes_back_question(words) && !names_it()
    }

    fn says_day(&self, words: &str) -> bool {
        !Entities::in_tokens(&text::tokens(words), self.today()).days.is_empty()
    }

    /// Whether words say from which day on: "from 14 December".
    fn begins_anew(&self, words: &str) -> bool {
        let found = Entities::in_tokens(&text::tokens(words), self.today());
        found.days.first().is_some_and(|day| day.role == RangeRole::From)
    }

    /// Whether what a question is about has several days, so that a reply may be any of them.
    fn names_two_days(&self, pending: &OpenQuestion, target: Hit) -> bool {
        let days = self.index.fields(target).iter().filter(|field| field.kind == ArgumentKind::Date);
        let mut known = days.filter_map(|field| pending.question.known.get(&field.name));
        let first = known.next();
        known.any(|day| Some(day) != first)
    }

    /// Whether words open with the verb of some tool that `target` does not mention.
    fn opens_another(&self, words: &str, target: Hit) -> bool {
        let tokens = text::tokens(words);
        let said: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
        strip_fillers(&said).first().is_some_and(|verb| {
            self.index.has_verb(&verb.features())
                && !self.index.tool_mentions(target, &verb.features(), false)
        })
    }

    /// Whether a reply names another person or thing than those that were known when it was asked for: "10:30 for my cat Luna".
    /// `used` says which of its words answer the question.
    fn says_otherwise(&self, pending: &OpenQuestion, target: Hit, reply: &str, used: &[bool]) -> bool {
        let known =
            |field: &&ArgumentField| pending.question.known.get(&field.name).is_some_and(|v| !v.is_null());
        let is_name = |field: &&ArgumentField| {
            matches!(
                field.kind,
                ArgumentKind::Person | ArgumentKind::Thing | ArgumentKind::Place | ArgumentKind::Id
            )
        };
        let fields: Vec<ArgumentField> =
            self.index.fields(target).iter().filter(known).filter(is_name).cloned().collect();
        let tokens = text::tokens(reply);
        let rest = tokens.iter().enumerate().filter(|(at, _)| used.get(*at) != Some(&true));
        let rest: Vec<&str> = rest.map(|(_, token)| token.raw.as_str()).collect();
        let has_name = tokens.iter().any(|token| token.capital() && !token.first);
        let said = slots::fill(&fields, &rest.join(" "), &self.now, &[], false);
        has_name
            && fields.iter().any(|field| {
                said.values
                    .get(&field.name)
                    .is_some_and(|value| pending.question.known.get(&field.name) != Some(value))
            })
    }

    /// Whether the write of a pending question was not clearly requested.
    fn was_unclear(&self, pending: &OpenQuestion, hit: Hit) -> bool {
        let clauses = clauses::split(&pending.request, self);
        let own = clauses.iter().find(|c| pending.purpose.contains(c.text.trim_end_matches(['?', '.', '!'])));
        own.is_some_and(|clause| self.is_unclear(clause.act, hit))
    }
}

/// Whether a reply leaves a choice: "10:30 or 11".
fn offers_choice(reply: &str) -> bool {
    text::tokens(reply).iter().any(|token| token.lower != "ò" && token.is(OR))
}

/// A purpose without its day or its range of days, and the reply that says another one: "10:30, but on 4 December". `None` if
/// one of them has none, or several.
fn with_other_day(purpose: &str, reply: &str, today: Date) -> Option<(String, String)> {
    let (said, replied) = (text::tokens(purpose), text::tokens(reply));
    let (first, last, is_range) = only_days(&said, today)?;
    only_days(&replied, today).filter(|(.., other)| *other || !is_range)?;
    let lead = said[..first].iter().rev().take_while(|t| t.is(LEADS)).count();
    let before = purpose.get(..said[first - lead].start)?;
    let after = purpose.get(said[last].end..)?;
    let contrasts = |token: &&text::Token| token.is(BUT);
    let reply = match replied.iter().find(contrasts) {
        Some(but) => format!("{}{}", reply.get(..but.start)?, reply.get(but.end..)?),
        None => reply.to_owned(),
    };
    Some((format!("{}{after}", before.trim_end()), reply))
}

/// The first and last token of the only day or range of days in a text, and whether it is a range.
fn only_days(tokens: &[Token], today: Date) -> Option<(usize, usize, bool)> {
    match &Entities::in_tokens(tokens, today).days[..] {
        [day] => Some((day.first, day.last, false)),
        [from, to] if (from.role, to.role) == (RangeRole::From, RangeRole::To) => {
            Some((from.first.min(to.first), to.last.max(from.last), true))
        }
        _ => None,
    }
}

/// Whether words say yes and go on: "oui, et dis-moi la météo à Rome".
fn opens_with_consent(words: &str) -> bool {
    let tokens = text::tokens(words);
    let yes = ["yes", "yeah", "si", "oui", "ja", "ok", "okay", "sure"];
    let goes_on = tokens.get(1).is_some_and(|next| next.raw == "," || next.is_and());
    goes_on && tokens.first().is_some_and(|first| first.is(&yes))
}

/// Whether words name days and nothing else: "the 28th", "anche il 16".
pub(super) fn says_only_days(words: &str, today: Date) -> bool {
    let tokens = text::tokens(words);
    let days = Entities::in_tokens(&tokens, today).days;
    let is_day = |at: usize| days.iter().any(|day| (day.first..=day.last).contains(&at));
    let is_small = |token: &Token| !token.word || token.is(LEADS) || token.is(ALSO);
    !days.is_empty() && tokens.iter().enumerate().all(|(at, token)| is_small(token) || is_day(at))
}

/// The words of a reply after those that only turn down what was asked: "no, Thursday".
fn after_no(reply: &str) -> &str {
    let said = after_correction(reply);
    let tokens = text::tokens(said);
    let is_no = tokens.first().is_some_and(|token| token.is(&["no", "nope", "nein", "non"]));
    let is_mark = tokens.get(1).is_some_and(|mark| !mark.word);
    tokens.get(2).filter(|_| is_no && is_mark).and_then(|next| said.get(next.start..)).unwrap_or(said)
}

/// Whether a reply says which value is not meant: "not 120", "non il 120". In "no, 131", the value is meant.
fn denies_value(reply: &str) -> bool {
    let tokens = text::tokens(reply);
    let first = tokens.iter().position(|token| token.word);
    let denies = |token: &Token| token.is(&["not", "non", "nicht", "pas", "kein", "keine", "no"]);
    let goes_on = |at: usize| tokens.get(at + 1).is_some_and(|next| next.word);
    first.is_some_and(|at| denies(&tokens[at]) && goes_on(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_of_a_reply_takes_the_place_of_the_one_that_was_asked_for() {
        let today = Date::constant(2026, 11, 22);
        let replied = |purpose, reply| with_other_day(purpose, reply, today);
        assert_eq!(
            replied("Book a visit for Argo on 3 December", "10:30 but on 4 December"),
            Some(("Book a visit for Argo".to_owned(), "10:30  on 4 December".to_owned()))
        );
        assert_eq!(
            replied("Can I get next Friday off?", "Thursday"),
            Some(("Can I get off?".to_owned(), "Thursday".to_owned()))
        );
        assert_eq!(replied("Book a visit for Argo on 3 December", "10:30"), None);
        assert_eq!(after_no("no, Thursday"), "Thursday");
        assert_eq!(after_no("Sorry, I meant 3 December"), "3 December");
        assert_eq!(after_no("No"), "No");
        assert_eq!(replied("Book a visit for Argo", "on 4 December"), None);
        assert_eq!(replied("Book it from 3 to 5 December", "on 4 December"), None);
        assert_eq!(
            replied("Can I take vacation from 3 to 5 December?", "no, from 4 to 6 December"),
            Some(("Can I take vacation?".to_owned(), "no, from 4 to 6 December".to_owned()))
        );
    }

    #[test]
    fn value_that_is_denied_answers_no_question() {
        for said in ["not 120", "Non il 120", "nicht 120", "pas le 120", "no la 120"] {
            assert!(denies_value(said), "{said}");
        }
        for said in ["120", "No, 131", "the 120", "nein, 131", "no", ""] {
            assert!(!denies_value(said), "{said}");
        }
    }
}
