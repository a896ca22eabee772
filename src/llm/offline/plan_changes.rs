//! A plan changed as a person says, by rules: steps left out, or kept alone, or given other words, and new
//! ones for what was not planned.

use std::rc::Rc;

use jiff::Zoned;
use serde_json::{Value, json};

use super::index::CatalogueIndex;
use super::intended_steps::{self, is_negation};
use super::lexicon;
use super::reword::{self, How, Reworded, Worded};
use super::schema::ArgumentField;
use super::small_talk;
use super::text::{self, Features, Token};

/// Words that have something left out.
const OUT: [&str; 29] = [
    "remove", "drop", "skip", "without", "delete", "omit", "exclude", "except", "dont", "not", "no", "senza",
    "togli", "rimuovi", "elimina", "salta", "escludi", "non", "tranne", "ohne", "entferne", "streiche",
    "nicht", "sans", "supprime", "enleve", "sin", "quita", "elimine",
];

/// Words that except something from what is said.
const EXCEPT: [&str; 2] = ["except", "tranne"];

/// Words that have everything else left out.
const ONLY: [&str; 9] =
    ["only", "just", "solo", "soltanto", "solamente", "nur", "seulement", "uniquement", "solamente"];

/// Words between what is not wanted and what is.
const BUT: [&str; 8] = ["but", "ma", "bensi", "sino", "mais", "sondern", "invece", "instead"];

/// Words that have something done besides.
const ALSO: [&str; 10] =
    ["also", "anche", "pure", "too", "inoltre", "plus", "additionally", "auch", "aussi", "tambien"];

/// Words that add.
const ADD: [&str; 8] =
    ["add", "aggiungi", "aggiungere", "aggiungici", "insert", "inserisci", "include", "includi"];

/// Words for a step.
const STEP: [&str; 9] = ["step", "passo", "schritt", "étape", "etape", "paso", "steps", "passi", "passaggio"];

/// A step's number and what is known of it.
#[derive(Clone)]
pub(super) struct NumberedStep {
    pub number: u64,
    scene: String,
    tools: Vec<String>,
    pub purpose: String,
    words: Vec<Rc<Features>>,
}

/// What a plan is changed by.
pub(super) struct OfflinePlanChange<'a> {
    /// The scenes.
    pub index: &'a CatalogueIndex,
    /// Now.
    pub now: &'a Zoned,
    /// The steps that words lead to, and whether nothing is left of them.
    pub plan: &'a dyn Fn(&str) -> (Value, bool),
}

impl OfflinePlanChange<'_> {
    /// The steps of `plan` after `feedback`, numbered from `first`; `None` where the rules do not understand
    /// what is to change.
    pub fn of(&self, plan: &Value, feedback: &str, first: u32) -> Option<Value> {
        let steps = plan["steps"].as_array()?;
        let known: Vec<NumberedStep> = steps.iter().map(NumberedStep::of).collect();
        let feedback = feedback.trim().trim_end_matches(['.', '!', ' ']);
        let feedback = answered(feedback);
        let changed = self.changed(steps, &known, feedback)?;
        (changed != *steps && !changed.is_empty()).then(|| numbered(&changed, first))
    }

    fn changed(&self, steps: &[Value], known: &[NumberedStep], feedback: &str) -> Option<Vec<Value>> {
        let tokens = text::tokens(feedback);
        if let Some((old, new)) = contrast(feedback, &tokens) {
            return self.instead(steps, known, &old, &new);
        }
        let only = tokens.iter().any(is_only);
        if leaves_out(&tokens) {
            let soft = intended_steps::has_negation(&tokens);
            let hard = tokens.iter().any(|t| is_out(t) && !is_negation(t) && !t.is(&EXCEPT));
            let except = tokens.iter().any(|t| t.is(&EXCEPT));
            // "Don't remove …", "not only …", "remove all except …" say the contrary of each word.
            if (soft && (hard || except || only)) || (hard && except) {
                return None;
            }
            let gone = self.meant(known, feedback)?;
            return without(steps, &gone);
        }
        if only {
            return self.only(steps, known, feedback, &tokens);
        }
        let besides = tokens.windows(2).any(|p| p[0].is(&["as"]) && p[1].is(&["well"]));
        if besides || tokens.iter().any(|t| t.is(&ALSO) || t.is(&ADD)) {
            return self.more(steps, known, feedback, &tokens);
        }
        self.other(steps, known, feedback, &tokens)
    }

    fn meant(&self, known: &[NumberedStep], words: &str) -> Option<Vec<u64>> {
        intended_steps::find_intended_steps(known, words, &(self.plan)(words).0, self.index, self.now)
    }

    /// "Not this but that": a value for another, or a step left out for one that stays.
    fn instead(&self, steps: &[Value], known: &[NumberedStep], old: &str, new: &str) -> Option<Vec<Value>> {
        if leaves_out(&text::tokens(new)) || leaves_out(&text::tokens(old)) {
            return None;
        }
        let (numbers, old) = addressed(old);
        let (more, new) = addressed(new);
        let named =
            |step: &&NumberedStep| [&numbers, &more].iter().all(|n| n.is_empty() || n.contains(&step.number));
        let swapped = |step: &NumberedStep| {
            let fields = self.fields(step);
            let worded = self.worded(step, &fields);
            let gone = worded.has(&old)?;
            [false, true].into_iter().find_map(|alone| {
                let made = worded.reworded(&new, How { only: true, alone, sure: true })?;
                (made.said == gone).then_some(made)
            })
        };
        let found: Vec<(u64, Reworded)> =
            known.iter().filter(named).filter_map(|step| Some((step.number, swapped(step)?))).collect();
        match &found[..] {
            [(number, made)] => Some(put(steps, *number, &made.purpose)),
            [] if numbers.is_empty() && more.is_empty() => {
                let (gone, kept) = (self.meant(known, &old)?, self.meant(known, &new)?);
                let apart = !gone.iter().any(|n| kept.contains(n));
                apart.then(|| without(steps, &gone)).flatten()
            }
            _ => None,
        }
    }

    /// Everything else is left out, or a value is all that is wanted.
    fn only(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        if let Some(kept) = self.meant(known, feedback) {
            let gone: Vec<u64> = known.iter().map(|s| s.number).filter(|n| !kept.contains(n)).collect();
            return without(steps, &gone);
        }
        // "Only the vacation from … to …" may be either.
        let tells = |token: &Token| {
            let plain =
                lexicon::is_stop_word(&token.norm) || is_only(token) || lexicon::is_time_unit(&token.norm);
            let like =
                |step: &&NumberedStep| step.words.iter().any(|w| w.similarity(&token.features()) > 0.8);
            token.word
                && !plain
                && !token.digit()
                && !super::dates::is_calendar_word(&token.norm)
                && known.iter().any(|step| like(&step))
        };
        if known.len() > 1 && tokens.iter().any(tells) {
            return None;
        }
        let rest: Vec<&Token> = tokens.iter().filter(|t| !is_only(t)).collect();
        let words: Vec<&str> = rest.iter().map(|t| t.raw.as_str()).collect();
        let words = words.join(" ");
        self.revalued(steps, known, &words, How { only: true, ..How::default() })
    }

    /// Further steps.
    fn more(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        if reword::changes(tokens) || !numbered_steps(tokens).is_empty() {
            return None;
        }
        let (plan, whole) = (self.plan)(feedback);
        let mut new = led_to(&plan);
        if let Some(verb) = tokens.iter().find(|t| t.is(&ADD)) {
            // What is added is what its own words lead to, and no tool that adds.
            let (bare, _) = (self.plan)(feedback.get(verb.end..)?);
            let bare = led_to(&bare);
            let same = |(a, b): (&Value, &Value)| NumberedStep::of(a).serves(b);
            if bare.len() != new.len() || !bare.iter().zip(&new).all(same) {
                return None;
            }
            new = bare;
        }
        if !whole || new.is_empty() {
            return None;
        }
        let mut kept = steps.to_vec();
        for step in &new {
            self.add(&mut kept, known, step, feedback)?;
        }
        Some(kept)
    }

    /// A step behind the others, where there is none like it.
    fn add(&self, kept: &mut Vec<Value>, known: &[NumberedStep], step: &Value, feedback: &str) -> Option<()> {
        let new = NumberedStep::of(step);
        let fields = self.fields(&new);
        let said = self.worded(&new, &fields).values();
        let same = |other: &NumberedStep| other.serves(step) && self.worded(other, &fields).values() == said;
        // "Cancel the vacation" may mean the step.
        let cancels = text::tokens(feedback)
            .iter()
            .any(|t| t.features().concepts.iter().any(|c| lexicon::concept_words(*c).contains(&"cancel")));
        let open = cancels && known.iter().any(|k| k.scene == new.scene) && !said.missing(&fields).is_empty();
        if known.iter().any(same) || open {
            return None;
        }
        let next = kept.iter().filter_map(|s| s["step_number"].as_u64()).max().unwrap_or(0) + 1;
        let mut step = step.clone();
        step["step_number"] = json!(next);
        step["depends_on_step"] = Value::Null;
        kept.push(step);
        Some(())
    }

    /// Values for steps there are, and steps for what there is none of.
    fn other(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        let (plan, whole) = (self.plan)(feedback);
        let led = led_to(&plan);
        let new = led.iter().any(|step| !known.iter().any(|k| k.serves(step)));
        if !numbered_steps(tokens).is_empty() || reword::changes(tokens) || !new {
            let how = How::default();
            if let Some(changed) = self.revalued(steps, known, feedback, how) {
                return Some(changed);
            }
        }
        let words = tokens.iter().filter(|t| t.word).count();
        if led.is_empty()
            || words < 2
            || !whole
            || reword::changes(tokens)
            || !numbered_steps(tokens).is_empty()
        {
            return None;
        }
        let mut kept = steps.to_vec();
        for step in &led {
            let serving: Vec<&NumberedStep> = known.iter().filter(|k| k.serves(step)).collect();
            match serving[..] {
                [] => self.add(&mut kept, known, step, feedback)?,
                [one] => {
                    let purpose = self.restated(one, step["purpose"].as_str()?)?;
                    kept = put(&kept, one.number, &purpose);
                }
                _ => return None,
            }
        }
        Some(kept)
    }

    /// A step's words after words that lead to its tool: with their values, or themselves where they say all
    /// that the step says.
    fn restated(&self, step: &NumberedStep, words: &str) -> Option<String> {
        let fields = self.fields(step);
        let worded = self.worded(step, &fields);
        if let Some(made) = worded.reworded(words, How { sure: true, ..How::default() }) {
            return Some(made.purpose);
        }
        let new = NumberedStep { purpose: words.to_owned(), ..step.clone() };
        let (old, new) = (worded.values(), self.worded(&new, &fields).values());
        let all = old.values.keys().all(|name| new.values.contains_key(name));
        (all && !new.values.is_empty() && new.values != old.values).then(|| words.to_owned())
    }

    /// The one step that words can be about, with their values.
    fn revalued(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        how: How,
    ) -> Option<Vec<Value>> {
        let (numbers, words) = addressed(feedback);
        if numbers.len() > 1 || numbers.iter().any(|n| known.iter().all(|step| step.number != *n)) {
            return None;
        }
        let led = led_to(&(self.plan)(&words).0);
        let made = |step: &NumberedStep| {
            let sure = led.iter().any(|l| step.serves(l));
            let fields = self.fields(step);
            self.worded(step, &fields)
                .reworded(&words, How { sure, ..how })
                .map(|made| (step.number, sure, made))
        };
        let named = |step: &&NumberedStep| numbers.is_empty() || numbers.contains(&step.number);
        let mut found: Vec<_> = known.iter().filter(named).filter_map(made).collect();
        let sure = found.iter().any(|(_, sure, _)| *sure);
        found.retain(|(_, own, _)| *own || !sure);
        // What no step has yet may be meant for any of them.
        found.retain(|(_, own, made)| *own || !made.adds || !numbers.is_empty() || known.len() == 1);
        let changes = found.iter().any(|(_, _, made)| !made.adds);
        found.retain(|(_, _, made)| !made.adds || !changes);
        match &found[..] {
            [(number, _, made)] => Some(put(steps, *number, &made.purpose)),
            _ => None,
        }
    }

    fn fields(&self, step: &NumberedStep) -> Vec<ArgumentField> {
        let tool = step.tools.first().and_then(|tool| self.index.named(&step.scene, tool));
        tool.map(|hit| self.index.fields(hit).to_vec()).unwrap_or_default()
    }

    fn worded<'b>(&'b self, step: &'b NumberedStep, fields: &'b [ArgumentField]) -> Worded<'b> {
        let mut verbs = step.tools.first().map(|tool| text::name_words(tool)).unwrap_or_default();
        verbs.extend(text::name_words(&step.scene));
        Worded { fields, verbs, purpose: &step.purpose, now: self.now }
    }
}

fn led_to(plan: &Value) -> Vec<Value> {
    plan["steps"].as_array().cloned().unwrap_or_default()
}

/// Without the "no" that only answers, and without politeness at the end.
fn answered(feedback: &str) -> &str {
    let tokens = text::tokens(feedback);
    let mut words = feedback;
    if let [first, mark, next, ..] = &tokens[..]
        && (first.is(&["no", "nein"]) || lexicon::is_pleasantry(&first.norm))
        && !mark.word
        && next.word
    {
        words = words.get(next.start..).unwrap_or(words);
    }
    if let Some(comma) = words.rfind(',')
        && small_talk::is_only_polite(&words[comma + 1..])
    {
        words = &words[..comma];
    }
    words
}

/// What is not wanted and what is, where words set the one against the other.
fn contrast(words: &str, tokens: &[Token]) -> Option<(String, String)> {
    let count = tokens.len();
    let is = |i: usize, list: &[&str]| tokens.get(i).is_some_and(|t| t.is(list));
    let span = |a: usize, b: usize| if a < b { text::span(words, tokens, a, b - 1) } else { "" };
    let plain = |a: usize, b: usize| tokens[a..b].iter().all(|t| !t.word || lexicon::is_stop_word(&t.norm));
    let comma = |from: usize| (from..count).find(|i| tokens[*i].raw == ",");
    let told = |old: &str, new: &str| {
        let trimmed = |text: &str| text.trim_matches([',', ' ', ';']).to_owned();
        let (old, new) = (trimmed(old), trimmed(new));
        let both = !text::tokens(&old).is_empty() && !small_talk::is_only_polite(&new);
        both.then_some((old, new))
    };
    let instead = (0..count).find_map(|i| {
        let of = ["of", "di", "del", "della", "dei", "delle", "che"];
        let two =
            (is(i, &["instead", "invece"]) && is(i + 1, &of)) || (is(i, &["rather"]) && is(i + 1, &["than"]));
        let length = if two {
            2
        } else if is(i, &["al"]) && is(i + 1, &["posto"]) {
            3
        } else {
            usize::from(is(i, &["anziche"]))
        };
        (length > 0).then_some((i, i + length))
    });
    if let Some((at, from)) = instead {
        return match comma(from).filter(|_| plain(0, at)) {
            Some(comma) => told(span(from, comma), span(comma + 1, count)),
            None => told(span(from, count), span(0, at)),
        };
    }
    let soft = |i: usize| {
        is_negation(&tokens[i]) || (is(i + 1, &["t"]) && tokens[i].word && tokens[i].norm.ends_with('n'))
    };
    let all: Vec<usize> = (0..count).filter(|i| soft(*i)).collect();
    let [not] = all[..] else { return None };
    let after = if is_negation(&tokens[not]) { not + 1 } else { not + 2 };
    if let Some(but) = (after..count).find(|i| is(*i, &BUT)) {
        let new = format!("{} {}", span(0, not), span(but + 1, count));
        return told(span(after, but), &new);
    }
    let before = not.checked_sub(1).filter(|i| is(*i, &["e", "and"])).unwrap_or(not);
    if before > 0 && (tokens[before - 1].raw == "," || before < not) {
        return told(span(after, count), span(0, before));
    }
    let comma = comma(after).filter(|_| plain(0, not))?;
    let list = words.get(tokens[comma].end..)?;
    told(span(after, comma), list)
}

/// Whether words have something left out.
pub(super) fn leaves_out(tokens: &[Token]) -> bool {
    let short_not = |pair: &[Token]| pair[0].lower.ends_with('n') && pair[1].lower == "t";
    tokens.iter().any(is_out) || tokens.windows(2).any(short_not)
}

/// Whether a word has something left out.
pub(super) fn is_out(token: &Token) -> bool {
    token.word && OUT.contains(&token.lower.as_str())
}

/// Whether a word has everything else left out.
pub(super) fn is_only(token: &Token) -> bool {
    token.word && ONLY.contains(&token.lower.as_str())
}

/// Whether a word is one for a step.
pub(super) fn is_step(token: &Token) -> bool {
    STEP.contains(&token.lower.as_str())
}

/// The numbers of the steps that words name: "step 2", "steps 1 and 2".
pub(super) fn numbered_steps(tokens: &[Token]) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut named = false;
    for token in tokens {
        let number = token.raw.parse::<u64>().ok().filter(|_| named);
        let joins = token.raw == "," || token.lower == "e" || token.is(&["and"]);
        numbers.extend(number);
        named = is_step(token) || (named && (number.is_some() || joins));
    }
    numbers
}

/// The numbers of the steps that words are about, and the words without them.
fn addressed(words: &str) -> (Vec<u64>, String) {
    let tokens = text::tokens(words);
    let numbers = numbered_steps(&tokens);
    let at = tokens.windows(2).position(|pair| is_step(&pair[0]) && pair[1].raw.parse::<u64>().is_ok());
    let [_] = numbers[..] else { return (numbers, words.to_owned()) };
    let Some(at) = at else { return (numbers, words.to_owned()) };
    let colon = tokens.get(at + 2).filter(|t| matches!(t.raw.as_str(), ":" | "," | "-"));
    let end = colon.unwrap_or(&tokens[at + 1]).end;
    let start = tokens[at].start;
    let rest = format!("{} {}", words.get(..start).unwrap_or_default(), words.get(end..).unwrap_or_default());
    (numbers, rest.trim().to_owned())
}

impl NumberedStep {
    fn of(step: &Value) -> Self {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let tools = step["expected_tools"].as_array().into_iter().flatten();
        let (scene, purpose) = (text("scene_name"), text("purpose"));
        let telling =
            |t: &Token| t.word && !lexicon::is_stop_word(&t.norm) && !lexicon::is_time_unit(&t.norm);
        let own = text::tokens(&purpose);
        let own = own.iter().filter(|t| telling(t)).map(|t| t.norm.clone());
        let words =
            text::name_words(&scene).into_iter().chain(own).map(|word| text::features(&word)).collect();
        Self {
            number: step["step_number"].as_u64().unwrap_or_default(),
            scene,
            tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
            purpose,
            words,
        }
    }

    /// The telling words of its scene's name and of its purpose.
    pub fn words(&self) -> &[Rc<Features>] {
        &self.words
    }

    /// Whether a step has the same scene and tool.
    pub fn serves(&self, step: &Value) -> bool {
        let tool = step["expected_tools"].as_array().and_then(|tools| tools.first()).and_then(Value::as_str);
        step["scene_name"] == self.scene.as_str() && tool == self.tools.first().map(String::as_str)
    }
}

/// The steps but those with these numbers, where some are left.
fn without(steps: &[Value], numbers: &[u64]) -> Option<Vec<Value>> {
    let stays = |step: &&Value| step["step_number"].as_u64().is_some_and(|n| !numbers.contains(&n));
    let kept: Vec<Value> = steps.iter().filter(stays).cloned().collect();
    (!kept.is_empty() && kept.len() < steps.len()).then_some(kept)
}

/// The steps with other words for one of them.
fn put(steps: &[Value], number: u64, purpose: &str) -> Vec<Value> {
    let mut kept = steps.to_vec();
    for step in kept.iter_mut().filter(|step| step["step_number"] == number) {
        step["purpose"] = json!(purpose);
    }
    kept
}

/// Numbers from `first` on, with dependencies on what is left.
fn numbered(steps: &[Value], first: u32) -> Value {
    let old: Vec<u64> = steps.iter().filter_map(|step| step["step_number"].as_u64()).collect();
    let renamed = |n: u64| old.iter().position(|o| *o == n).map(|at| u64::from(first) + at as u64);
    let list: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            let mut step = step.clone();
            step["step_number"] = json!(u64::from(first) + at as u64);
            let on: Vec<u64> = match &step["depends_on_step"] {
                Value::Array(list) => list.iter().filter_map(Value::as_u64).filter_map(renamed).collect(),
                one => one.as_u64().and_then(renamed).into_iter().collect(),
            };
            step["depends_on_step"] = match on.as_slice() {
                [] => Value::Null,
                [one] => json!(one),
                many => json!(many),
            };
            step
        })
        .collect();
    json!(list)
}
