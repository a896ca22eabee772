//! Changes a plan by rules as the approver requests: removes steps, keeps only some, changes their values, or
//! adds new ones.

use std::rc::Rc;

use jiff::Zoned;
use serde_json::{Value, json};

use super::index::CatalogueIndex;
use super::intended_steps::{self, is_negation};
use super::lexicon;
use super::reword::{self, ChangeReading, RewordedPurpose, StepWording};
use super::schema::ArgumentField;
use super::small_talk;
use super::text::{self, Features, Token};

/// Words that remove something.
const REMOVAL_WORDS: [&str; 29] = [
    "remove", "drop", "skip", "without", "delete", "omit", "exclude", "except", "dont", "not", "no", "senza",
    "togli", "rimuovi", "elimina", "salta", "escludi", "non", "tranne", "ohne", "entferne", "streiche",
    "nicht", "sans", "supprime", "enleve", "sin", "quita", "elimine",
];

const EXCEPTION_WORDS: [&str; 2] = ["except", "tranne"];

/// Words that remove everything else.
const ONLY_WORDS: [&str; 9] =
    ["only", "just", "solo", "soltanto", "solamente", "nur", "seulement", "uniquement", "solamente"];

/// Conjunctions between what is rejected and what is requested.
const BUT_WORDS: [&str; 8] = ["but", "ma", "bensi", "sino", "mais", "sondern", "invece", "instead"];

/// Words that request something in addition.
const ALSO_WORDS: [&str; 10] =
    ["also", "anche", "pure", "too", "inoltre", "plus", "additionally", "auch", "aussi", "tambien"];

const ADD_VERBS: [&str; 8] =
    ["add", "aggiungi", "aggiungere", "aggiungici", "insert", "inserisci", "include", "includi"];

const STEP_NOUNS: [&str; 9] =
    ["step", "passo", "schritt", "étape", "etape", "paso", "steps", "passi", "passaggio"];

/// A step of a plan, for comparison with the words of a change.
#[derive(Clone)]
pub(super) struct NumberedStep {
    pub number: u64,
    scene: String,
    tools: Vec<String>,
    pub purpose: String,
    words: Vec<Rc<Features>>,
}

/// Changes plans of a catalogue.
pub(super) struct OfflinePlanChange<'a> {
    /// The scenes.
    pub index: &'a CatalogueIndex,
    /// The current time.
    pub now: &'a Zoned,
    /// Plans words: the plan, and whether its steps serve all of the words.
    pub plan: &'a dyn Fn(&str) -> (Value, bool),
}

impl OfflinePlanChange<'_> {
    /// The steps of `plan` after `feedback`, numbered from `first`. `None` if the rules do not understand the
    /// change.
    pub fn apply(&self, plan: &Value, feedback: &str, first: u32) -> Option<Value> {
        let steps = plan["steps"].as_array()?;
        let known: Vec<NumberedStep> = steps.iter().map(NumberedStep::of).collect();
        let feedback = feedback.trim().trim_end_matches(['.', '!', ' ']);
        let feedback = strip_politeness(feedback);
        let changed = self.change_steps(steps, &known, feedback)?;
        (changed != *steps && !changed.is_empty()).then(|| renumber(&changed, first))
    }

    fn change_steps(&self, steps: &[Value], known: &[NumberedStep], feedback: &str) -> Option<Vec<Value>> {
        let tokens = text::tokens(feedback);
        if let Some((old, new)) = split_contrast(feedback, &tokens) {
            return self.replace(steps, known, &old, &new);
        }
        let only = tokens.iter().any(is_only);
        if has_removal(&tokens) {
            let soft = intended_steps::has_negation(&tokens);
            let hard = tokens.iter().any(|t| is_removal(t) && !is_negation(t) && !t.is(&EXCEPTION_WORDS));
            let except = tokens.iter().any(|t| t.is(&EXCEPTION_WORDS));
            // "Don't remove …", "not only …", "remove all except …" mean the opposite of each word.
            if (soft && (hard || except || only)) || (hard && except) {
                return None;
            }
            let removed = self.find_steps(known, feedback)?;
            return without(steps, &removed);
        }
        if only {
            return self.keep_only(steps, known, feedback, &tokens);
        }
        let as_well = tokens.windows(2).any(|p| p[0].is(&["as"]) && p[1].is(&["well"]));
        if as_well || tokens.iter().any(|t| t.is(&ALSO_WORDS) || t.is(&ADD_VERBS)) {
            return self.add_steps(steps, known, feedback, &tokens);
        }
        self.change_or_add(steps, known, feedback, &tokens)
    }

    /// The numbers of the steps that words refer to.
    fn find_steps(&self, known: &[NumberedStep], words: &str) -> Option<Vec<u64>> {
        intended_steps::find_intended_steps(known, words, &(self.plan)(words).0, self.index, self.now)
    }

    /// "Not this but that": replaces a value, or removes a step and keeps another.
    fn replace(&self, steps: &[Value], known: &[NumberedStep], old: &str, new: &str) -> Option<Vec<Value>> {
        if has_removal(&text::tokens(new)) || has_removal(&text::tokens(old)) {
            return None;
        }
        let (numbers, old) = split_step_number(old);
        let (more, new) = split_step_number(new);
        let named =
            |step: &&NumberedStep| [&numbers, &more].iter().all(|n| n.is_empty() || n.contains(&step.number));
        let swapped = |step: &NumberedStep| {
            let fields = self.fields(step);
            let wording = self.wording(step, &fields);
            let replaced = wording.arguments_stated_in(&old)?;
            [false, true].into_iter().find_map(|bare| {
                let reading = ChangeReading { exclusive: true, bare, certain: true };
                let made = wording.reword(&new, reading)?;
                (made.arguments == replaced).then_some(made)
            })
        };
        let found: Vec<(u64, RewordedPurpose)> =
            known.iter().filter(named).filter_map(|step| Some((step.number, swapped(step)?))).collect();
        match &found[..] {
            [(number, made)] => Some(with_purpose(steps, *number, &made.purpose)),
            [] if numbers.is_empty() && more.is_empty() => {
                let (removed, kept) = (self.find_steps(known, &old)?, self.find_steps(known, &new)?);
                let apart = !removed.iter().any(|n| kept.contains(n));
                apart.then(|| without(steps, &removed)).flatten()
            }
            _ => None,
        }
    }

    /// Keeps only the named steps, or sets a value that replaces a range.
    fn keep_only(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        if let Some(kept) = self.find_steps(known, feedback) {
            let removed: Vec<u64> = known.iter().map(|s| s.number).filter(|n| !kept.contains(n)).collect();
            return without(steps, &removed);
        }
        // "Only the vacation from … to …" may mean either.
        let names_step = |token: &Token| {
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
        if known.len() > 1 && tokens.iter().any(names_step) {
            return None;
        }
        let rest: Vec<&Token> = tokens.iter().filter(|t| !is_only(t)).collect();
        let words: Vec<&str> = rest.iter().map(|t| t.raw.as_str()).collect();
        let words = words.join(" ");
        self.change_values(
            steps,
            known,
            &words,
            ChangeReading { exclusive: true, ..ChangeReading::default() },
        )
    }

    /// Adds the steps of the feedback's own plan.
    fn add_steps(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        if reword::asks_to_change(tokens) || !numbered_steps(tokens).is_empty() {
            return None;
        }
        let (plan, whole) = (self.plan)(feedback);
        let mut new = steps_of(&plan);
        if let Some(verb) = tokens.iter().find(|t| t.is(&ADD_VERBS)) {
            // The words after the verb determine the step, not a tool that adds something.
            let (bare, _) = (self.plan)(feedback.get(verb.end..)?);
            let bare = steps_of(&bare);
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
            self.append(&mut kept, known, step, feedback)?;
        }
        Some(kept)
    }

    /// Appends a step. `None` if the plan has the same one.
    fn append(
        &self,
        kept: &mut Vec<Value>,
        known: &[NumberedStep],
        step: &Value,
        feedback: &str,
    ) -> Option<()> {
        let new = NumberedStep::of(step);
        let fields = self.fields(&new);
        let values = self.wording(&new, &fields).values();
        let same =
            |other: &NumberedStep| other.serves(step) && self.wording(other, &fields).values() == values;
        // "Cancel the vacation" may mean the step.
        let cancels = text::tokens(feedback)
            .iter()
            .any(|t| t.features().concepts.iter().any(|c| lexicon::concept_words(*c).contains(&"cancel")));
        let open =
            cancels && known.iter().any(|k| k.scene == new.scene) && !values.missing(&fields).is_empty();
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

    /// Changes values of existing steps and adds steps for other requests.
    fn change_or_add(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        tokens: &[Token],
    ) -> Option<Vec<Value>> {
        let (plan, whole) = (self.plan)(feedback);
        let planned = steps_of(&plan);
        let new = planned.iter().any(|step| !known.iter().any(|k| k.serves(step)));
        if !numbered_steps(tokens).is_empty() || reword::asks_to_change(tokens) || !new {
            let how = ChangeReading::default();
            if let Some(changed) = self.change_values(steps, known, feedback, how) {
                return Some(changed);
            }
        }
        let words = tokens.iter().filter(|t| t.word).count();
        if planned.is_empty()
            || words < 2
            || !whole
            || reword::asks_to_change(tokens)
            || !numbered_steps(tokens).is_empty()
        {
            return None;
        }
        let mut kept = steps.to_vec();
        for step in &planned {
            let serving: Vec<&NumberedStep> = known.iter().filter(|k| k.serves(step)).collect();
            match serving[..] {
                [] => self.append(&mut kept, known, step, feedback)?,
                [one] => {
                    let purpose = self.restated_purpose(one, step["purpose"].as_str()?)?;
                    kept = with_purpose(&kept, one.number, &purpose);
                }
                _ => return None,
            }
        }
        Some(kept)
    }

    /// The purpose of a step after words that lead to its tool: its own with the values of the words, or the
    /// words if they have values for everything in the step.
    fn restated_purpose(&self, step: &NumberedStep, words: &str) -> Option<String> {
        let fields = self.fields(step);
        let wording = self.wording(step, &fields);
        if let Some(made) = wording.reword(words, ChangeReading { certain: true, ..ChangeReading::default() })
        {
            return Some(made.purpose);
        }
        let new = NumberedStep { purpose: words.to_owned(), ..step.clone() };
        let (old, new) = (wording.values(), self.wording(&new, &fields).values());
        let all = old.values.keys().all(|name| new.values.contains_key(name));
        (all && !new.values.is_empty() && new.values != old.values).then(|| words.to_owned())
    }

    /// Changes the values of the one step that the words can be about.
    fn change_values(
        &self,
        steps: &[Value],
        known: &[NumberedStep],
        feedback: &str,
        how: ChangeReading,
    ) -> Option<Vec<Value>> {
        let (numbers, words) = split_step_number(feedback);
        if numbers.len() > 1 || numbers.iter().any(|n| known.iter().all(|step| step.number != *n)) {
            return None;
        }
        let planned = steps_of(&(self.plan)(&words).0);
        let made = |step: &NumberedStep| {
            let certain = planned.iter().any(|l| step.serves(l));
            let fields = self.fields(step);
            self.wording(step, &fields)
                .reword(&words, ChangeReading { certain, ..how })
                .map(|made| (step.number, certain, made))
        };
        let named = |step: &&NumberedStep| numbers.is_empty() || numbers.contains(&step.number);
        let mut found: Vec<_> = known.iter().filter(named).filter_map(made).collect();
        let certain = found.iter().any(|(_, certain, _)| *certain);
        found.retain(|(_, own, _)| *own || !certain);
        // A value that no step has yet may be meant for any of them.
        found.retain(|(_, own, made)| *own || !made.adds || !numbers.is_empty() || known.len() == 1);
        let changes = found.iter().any(|(_, _, made)| !made.adds);
        found.retain(|(_, _, made)| !made.adds || !changes);
        match &found[..] {
            [(number, _, made)] => Some(with_purpose(steps, *number, &made.purpose)),
            _ => None,
        }
    }

    fn fields(&self, step: &NumberedStep) -> Vec<ArgumentField> {
        let tool = step.tools.first().and_then(|tool| self.index.named(&step.scene, tool));
        tool.map(|hit| self.index.fields(hit).to_vec()).unwrap_or_default()
    }

    fn wording<'b>(&'b self, step: &'b NumberedStep, fields: &'b [ArgumentField]) -> StepWording<'b> {
        let mut verbs = step.tools.first().map(|tool| text::name_words(tool)).unwrap_or_default();
        verbs.extend(text::name_words(&step.scene));
        StepWording { fields, verbs, purpose: &step.purpose, now: self.now }
    }
}

fn steps_of(plan: &Value) -> Vec<Value> {
    plan["steps"].as_array().cloned().unwrap_or_default()
}

/// Strips a "no" that only answers from the beginning, and politeness from the end.
fn strip_politeness(feedback: &str) -> &str {
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

/// Splits words that contrast two things into what is rejected and what is requested: "not X but Y".
fn split_contrast(words: &str, tokens: &[Token]) -> Option<(String, String)> {
    let count = tokens.len();
    let is = |i: usize, list: &[&str]| tokens.get(i).is_some_and(|t| t.is(list));
    let span = |a: usize, b: usize| if a < b { text::span(words, tokens, a, b - 1) } else { "" };
    let plain = |a: usize, b: usize| tokens[a..b].iter().all(|t| !t.word || lexicon::is_stop_word(&t.norm));
    let comma = |from: usize| (from..count).find(|i| tokens[*i].raw == ",");
    let both = |old: &str, new: &str| {
        let trimmed = |text: &str| text.trim_matches([',', ' ', ';']).to_owned();
        let (old, new) = (trimmed(old), trimmed(new));
        let present = !text::tokens(&old).is_empty() && !small_talk::is_only_polite(&new);
        present.then_some((old, new))
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
            Some(comma) => both(span(from, comma), span(comma + 1, count)),
            None => both(span(from, count), span(0, at)),
        };
    }
    let soft = |i: usize| {
        is_negation(&tokens[i]) || (is(i + 1, &["t"]) && tokens[i].word && tokens[i].norm.ends_with('n'))
    };
    let all: Vec<usize> = (0..count).filter(|i| soft(*i)).collect();
    let [not] = all[..] else { return None };
    let after = if is_negation(&tokens[not]) { not + 1 } else { not + 2 };
    if let Some(but) = (after..count).find(|i| is(*i, &BUT_WORDS)) {
        let new = format!("{} {}", span(0, not), span(but + 1, count));
        return both(span(after, but), &new);
    }
    let before = not.checked_sub(1).filter(|i| is(*i, &["e", "and"])).unwrap_or(not);
    if before > 0 && (tokens[before - 1].raw == "," || before < not) {
        return both(span(after, count), span(0, before));
    }
    let comma = comma(after).filter(|_| plain(0, not))?;
    let list = words.get(tokens[comma].end..)?;
    both(span(after, comma), list)
}

/// Whether words remove something.
pub(super) fn has_removal(tokens: &[Token]) -> bool {
    let short_not = |pair: &[Token]| pair[0].lower.ends_with('n') && pair[1].lower == "t";
    tokens.iter().any(is_removal) || tokens.windows(2).any(short_not)
}

/// Whether a word removes something.
pub(super) fn is_removal(token: &Token) -> bool {
    token.word && REMOVAL_WORDS.contains(&token.lower.as_str())
}

/// Whether a word removes everything else.
pub(super) fn is_only(token: &Token) -> bool {
    token.word && ONLY_WORDS.contains(&token.lower.as_str())
}

/// Whether a word is a noun for a step.
pub(super) fn is_step(token: &Token) -> bool {
    STEP_NOUNS.contains(&token.lower.as_str())
}

/// The step numbers in words: "step 2", "steps 1 and 2".
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

/// The step numbers in words, and the words without a single such number.
fn split_step_number(words: &str) -> (Vec<u64>, String) {
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
        let is_content =
            |t: &Token| t.word && !lexicon::is_stop_word(&t.norm) && !lexicon::is_time_unit(&t.norm);
        let own = text::tokens(&purpose);
        let own = own.iter().filter(|t| is_content(t)).map(|t| t.norm.to_string());
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

    /// The content words of its scene's name and of its purpose.
    pub fn words(&self) -> &[Rc<Features>] {
        &self.words
    }

    /// Whether a step has the same scene and tool.
    pub fn serves(&self, step: &Value) -> bool {
        let tool = step["expected_tools"].as_array().and_then(|tools| tools.first()).and_then(Value::as_str);
        step["scene_name"] == self.scene.as_str() && tool == self.tools.first().map(String::as_str)
    }
}

/// The steps except those with these numbers. `None` if none or all would remain.
fn without(steps: &[Value], numbers: &[u64]) -> Option<Vec<Value>> {
    let stays = |step: &&Value| step["step_number"].as_u64().is_some_and(|n| !numbers.contains(&n));
    let kept: Vec<Value> = steps.iter().filter(stays).cloned().collect();
    (!kept.is_empty() && kept.len() < steps.len()).then_some(kept)
}

fn with_purpose(steps: &[Value], number: u64, purpose: &str) -> Vec<Value> {
    let mut kept = steps.to_vec();
    for step in kept.iter_mut().filter(|step| step["step_number"] == number) {
        step["purpose"] = json!(purpose);
    }
    kept
}

/// Renumbers steps from `first` on and removes dependencies on removed steps.
fn renumber(steps: &[Value], first: u32) -> Value {
    let old: Vec<u64> = steps.iter().filter_map(|step| step["step_number"].as_u64()).collect();
    let new_number = |n: u64| old.iter().position(|o| *o == n).map(|at| u64::from(first) + at as u64);
    let list: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            let mut step = step.clone();
            step["step_number"] = json!(u64::from(first) + at as u64);
            let on: Vec<u64> = match &step["depends_on_step"] {
                Value::Array(list) => list.iter().filter_map(Value::as_u64).filter_map(new_number).collect(),
                one => one.as_u64().and_then(new_number).into_iter().collect(),
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
