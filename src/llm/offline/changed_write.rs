//! Requests for another value of the write that was done last: "actually make it 15 December", "spostale al 15", "doch lieber am 15. Dezember".
//!
//! A tool of the scene that changes what was done takes the value. Where there is none, nothing is written: neither the undoing
//! nor a second write was asked for, and after a confirmed undoing a refused second write would leave the user with nothing. The
//! answer says so, with the words that ask for it.

use serde_json::{Value, json};

use super::Lang;
use super::clauses::{self, ClauseLink};
use super::corrections::after_correction;
use super::drafts::StepDraft;
use super::entities::Entities;
use super::followup::{IndexRouter, substitute_days};
use super::lexicon;
use super::memory;
use super::opening_act::{CHANGE_VERBS, OpeningAct};
use super::pattern::{Patterns, patterns, strip_fillers};
use super::plan::OfflinePlanner;
use super::prompt::PriorCall;
use super::pronouns::without_joined;
use super::repeated_write;
use super::routing::{Hit, ToolPlace};
use super::text::{self, Token};
use crate::language::number_words;

/// Maximum number of turns without a call after the write.
const MAX_TURNS: usize = 3;

/// Verbs that make of something what follows its pronoun.
const MAKE_VERBS: &str =
    "make set switch fai fa fate facciamo metti mach mache machen mets fais faites haz haga pon ponga put";

/// Orders that take a value without a pronoun.
const BARE_VERBS: &[&str] = &["facciamo", "fai", "fate", "mach", "machen", "mache"];

/// What stands for what was done.
static IT: &Patterns = patterns![
    "it/that/this/them/those/these/lo/la/li/le/les/l/los/las/ihn/sie/es/das/dies/diese/daraus/wir",
    "wir/wirs es/das/daraus?",
    "the/my/die/den/das/der/mein/meinen/il/la/le/lo/i/gli/mon/ma/mes/el/los/las/mi/mis ferie/vacanze/richiesta/appuntamento/prenotazione/request/booking/appointment/reservation/order/vacation/urlaub/termin/buchung/antrag/demande/reservation/rendez-vous/solicitud/reserva/cita/vacaciones",
];

/// Words that prefer another value.
static PREFERS: &Patterns = patterns![
    "actually/rather/instead/better/eigentlich/lieber/besser/stattdessen/anzi/meglio/piuttosto/invece/plutot/mejor/realmente",
    "doch lieber/besser/nur?",
    "en fait/realite/realidad plutot/mejor?",
    "let s",
    "on second thought/thoughts",
    "que sea/sean",
    "daraus",
    "a la place",
    "en su lugar",
];

/// What is to be done about a change.
pub(super) enum WriteChange {
    /// A step with this tool for these words; `is_clear`: without a question.
    Step { hit: Hit, purpose: String, is_clear: bool },
    /// No tool takes the value: the words that led to it, and those with the new value.
    Explained { done: Option<String>, instead: Option<String> },
}

impl OfflinePlanner {
    /// What is to be done about a request that only names another value for the write that was done last; `None` for any other.
    pub fn changed_write(&self, words: &str) -> Option<WriteChange> {
        if repeated_write::resolve(words, &self.conversation, &self.index, &self.now).is_some() {
            return None;
        }
        let value = NewValue::of(words, self)?;
        let mut turns = self.conversation.turns.iter().rev();
        let [call] = &turns.by_ref().take(MAX_TURNS).find(|turn| !turn.calls.is_empty())?.calls[..] else {
            return None;
        };
        let hit = self.index.named(&call.scene, &call.tool).filter(|hit| self.writes(*hit))?;
        let done = self.words_of(hit).map(|words| words.trim_end_matches(['.', '!', ' ']).to_owned());
        let noun_fits = |noun: &Token| done.as_ref().is_none_or(|done| names(done, noun));
        if !value.noun.as_ref().is_none_or(|noun| lexicon::is_time_unit(&noun.norm) || noun_fits(noun)) {
            return None;
        }
        let instead = done.as_ref().and_then(|done| value.put_into(done, self));
        let mut tools = self.tools_that_change(hit.scene, call, words);
        Some(match (tools.next(), tools.next()) {
            (Some(tool), None) if tool.place() != hit.place() => {
                WriteChange::Step { hit: tool, purpose: words.to_owned(), is_clear: false }
            }
            (Some(_), None) if let Some(purpose) = instead => {
                WriteChange::Step { hit, purpose, is_clear: true }
            }
            (_, _) => {
                let done = done.map(|done| text::shorten_to_words(&text::one_line(&done), 120));
                WriteChange::Explained { done, instead }
            }
        })
    }

    /// A purpose with the only value that a reply names, in the place of the only one of its kind: "no, Python". Not for days, which
    /// may be one of several.
    pub fn with_other_value(&self, purpose: &str, reply: &str) -> Option<String> {
        let value = NewValue::of(reply, self).filter(|value| value.kind != ValueKind::Days)?;
        value.put_into(purpose, self)
    }

    /// The plan for a change, with its first step and the maximum number of steps.
    pub fn plan_for_change(&self, change: WriteChange, (first, max): (u32, usize), lang: Lang) -> Value {
        match change {
            WriteChange::Step { hit, purpose, is_clear } => {
                let link = ClauseLink::Next;
                let draft = StepDraft { hit, purpose, link, refers_back: false, unclear: !is_clear };
                let (drafts, unserved) = self.only_allowed(vec![draft], Vec::new());
                self.build_plan(drafts, &unserved, first, max)
            }
            WriteChange::Explained { done, instead } => {
                let answer = explanation(done.as_deref(), instead.as_deref(), lang);
                let reasoning = "No tool takes the new value.";
                json!({"needs_execution": false, "reasoning": reasoning, "steps": [], "answer": answer})
            }
        }
    }

    /// The words of the conversation that led to a tool.
    fn words_of(&self, hit: Hit) -> Option<String> {
        let router = IndexRouter { index: &self.index, now: &self.now };
        let is_its = |words: &str| {
            self.index.route(words, self.today(), None).is_some_and(|h| h.place() == hit.place())
        };
        self.conversation.turns.iter().rev().find_map(|turn| {
            let clauses = clauses::split(&turn.request, &router);
            clauses.into_iter().map(|clause| clause.text).find(|words| is_its(words))
        })
    }

    /// The writes of a scene that change what a call did: the words say a value of theirs, and the call has all others.
    fn tools_that_change<'a>(
        &'a self,
        scene: usize,
        call: &'a PriorCall,
        words: &'a str,
    ) -> impl Iterator<Item = Hit> + 'a {
        let all = self
            .index
            .tools
            .iter()
            .map(|entry| Hit::certain(ToolPlace { scene: entry.scene, tool: entry.tool }));
        all.filter(move |hit| hit.scene == scene && self.writes(*hit)).filter(move |hit| {
            let name = text::name_words(self.tool_name(*hit));
            let changes = name.first().is_some_and(|verb| OpeningAct::Change.is_done_by(verb));
            let filled = self.filled(*hit, words);
            let mut open = filled.missing(self.index.fields(*hit)).into_iter().peekable();
            changes
                && !filled.values.is_empty()
                && open.peek().is_some()
                && open.all(|field| {
                    memory::argument_by_name(&call.arguments, field).is_some()
                        || memory::pick_from_result(&call.result, field, words, &self.now).is_some()
                })
        })
    }
}

/// What is said where no tool takes the new value.
fn explanation(done: Option<&str>, instead: Option<&str>, lang: Lang) -> String {
    let quoted = |text: &str| format!("«{text}»");
    let what = done.map_or_else(|| lang.pick(["Questo", "This", "Ceci", "Das", "Esto"]).to_owned(), quoted);
    let how = match lang {
        Lang::It => format!(
            "{what} è già fatto, e non l'ho modificato. Per sostituirlo, prima annullalo, se si può, e poi"
        ),
        Lang::Fr => format!(
            "{what} est déjà fait, et je ne l'ai pas modifié. Pour le remplacer, annulez-le d'abord, si c'est possible, puis"
        ),
        Lang::De => format!(
            "{what} ist schon erledigt, und ich habe nichts daran geändert. Um es zu ersetzen, machen Sie es zuerst rückgängig, falls das möglich ist, und"
        ),
        Lang::Es => format!(
            "{what} ya está hecho, y no lo he modificado. Para sustituirlo, anúlelo primero, si se puede, y luego"
        ),
        Lang::En => format!(
            "{what} is done already, and I have not changed it. To replace it, cancel it first, if that can be done, and then"
        ),
    };
    let then = match instead {
        Some(instead) => {
            let ask = lang.pick(["chiedi:", "ask:", "demandez :", "verlangen Sie dann:", "pida:"]);
            format!("{ask} {}", quoted(instead))
        }
        None => lang
            .pick([
                "chiedi di nuovo, per intero.",
                "ask again, in full.",
                "faites une nouvelle demande complète.",
                "fragen Sie dann noch einmal vollständig.",
                "vuelva a pedirlo completo.",
            ])
            .to_owned(),
    };
    format!("{how} {then}")
}

/// Whether a text has a word like a noun.
fn names(text: &str, noun: &Token) -> bool {
    text::tokens(text).iter().any(|token| token.word && token.features().similarity(&noun.features()) > 0.8)
}

/// The kinds of values that a change names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Days,
    Time,
    Number,
    Name,
}

/// The new value of a change.
#[derive(Debug)]
struct NewValue {
    kind: ValueKind,
    /// Its words.
    text: String,
    /// The noun after a number.
    noun: Option<Token>,
}

impl NewValue {
    /// The value that words name, if they order or prefer nothing but another value of something.
    fn of(said: &str, planner: &OfflinePlanner) -> Option<Self> {
        if said.trim_end().ends_with('?') {
            return None;
        }
        let clause = after_correction(said);
        let mut is_change = clause.len() < said.len();
        let tokens = text::tokens(clause);
        let words: Vec<&Token> = tokens.iter().filter(|token| token.word).collect();
        let mut rest = &words[..];
        loop {
            let before = rest.len();
            rest = strip_fillers(rest);
            if let Some(end) = PREFERS.ends(rest, 0).max() {
                (rest, is_change) = (&rest[end..], true);
            } else if let [no, next, ..] = rest
                && no.is(&["no", "non", "nein", "nope"])
                && tokens.get(1).is_some_and(|mark| mark.raw == "," && mark.start < next.start)
            {
                (rest, is_change) = (&rest[1..], true);
            }
            if rest.len() == before {
                break;
            }
        }
        if let Some(after) = after_order(rest) {
            (rest, is_change) = (after, true);
        }
        let is_closing = |at: usize| PREFERS.ends(rest, at).any(|end| end == rest.len());
        if let Some(at) = (1..rest.len()).find(|at| is_closing(*at)) {
            (rest, is_change) = (&rest[..at], true);
        }
        let first = rest.first().filter(|_| is_change)?;
        let last = rest.last()?;
        Self::in_text(clause.get(first.start..last.end)?, planner)
    }

    /// The only value in a text that has nothing else.
    fn in_text(text: &str, planner: &OfflinePlanner) -> Option<Self> {
        let tokens = &text::tokens(text)[..];
        let found = Entities::in_tokens(tokens, planner.today());
        let spans = found.days.iter().map(|day| (ValueKind::Days, day.first, day.last));
        let spans = spans.chain(found.times.iter().map(|time| (ValueKind::Time, time.first, time.last)));
        let spans: Vec<_> = spans.collect();
        let is_spanned = |at: usize| spans.iter().any(|span| (span.1..=span.2).contains(&at));
        let is_plain = |at: usize| {
            let token = &tokens[at];
            !token.word || lexicon::is_pleasantry(&token.norm) || is_lead(token)
        };
        let open: Vec<usize> = (0..tokens.len()).filter(|at| !is_spanned(*at) && !is_plain(*at)).collect();
        let of = |kind, first: usize, last: usize, noun| {
            let text = text.get(tokens[first].start..tokens[last].end)?.to_owned();
            Some(Self { kind, text, noun })
        };
        match (&spans[..], &open[..]) {
            ([(kind, first, last)], []) => of(*kind, *first, *last, None),
            ([(ValueKind::Days, first, _), (ValueKind::Days, _, last)], []) => {
                of(ValueKind::Days, *first, *last, None)
            }
            ([], [one]) if is_number(&tokens[*one]) => of(ValueKind::Number, *one, *one, None),
            ([], [one]) if tokens[*one].capital() => of(ValueKind::Name, *one, *one, None),
            ([], [one, noun]) if is_number(&tokens[*one]) && noun - one == 1 => {
                of(ValueKind::Number, *one, *one, Some(tokens[*noun].clone()))
            }
            _ => None,
        }
    }

    /// Words with these days in the place of as many others, or of the only one. A single day keeps the words that lead to it.
    fn days_in(
        &self,
        base: &str,
        tokens: &[Token],
        old: &Entities,
        planner: &OfflinePlanner,
    ) -> Option<String> {
        let fresh = text::tokens(&self.text);
        let new = Entities::in_tokens(&fresh, planner.today());
        match (&old.days[..], &new.days[..]) {
            ([old], [_]) => {
                let (from, to) = (tokens.get(after_leads(tokens, old.first))?, tokens.get(old.last)?);
                let value = self.text.get(fresh.get(after_leads(&fresh, 0))?.start..)?;
                Some(format!("{}{value}{}", base.get(..from.start)?, base.get(to.end..)?))
            }
            (before, after) if before.len() == after.len() || before.len() == 1 => {
                Some(substitute_days(base, &self.text, &fresh, &new, &planner.now))
            }
            _ => None,
        }
    }

    /// Words with this value in the place of the only one of its kind.
    fn put_into(&self, base: &str, planner: &OfflinePlanner) -> Option<String> {
        let tokens = text::tokens(base);
        let found = Entities::in_tokens(&tokens, planner.today());
        let only = |is_like: &dyn Fn(usize) -> bool| {
            let mut like =
                (0..tokens.len()).filter(|at| tokens[*at].word && !found.taken[*at] && is_like(*at));
            like.next().filter(|_| like.next().is_none())
        };
        let (first, last) = match self.kind {
            ValueKind::Days => return self.days_in(base, &tokens, &found, planner),
            ValueKind::Time => match &found.times[..] {
                [time] => (after_leads(&tokens, time.first), time.last),
                _ => return None,
            },
            ValueKind::Number => {
                let noun = self.noun.as_ref();
                let counts = |at: usize| {
                    noun.is_none_or(|noun| {
                        tokens.get(at + 1).is_some_and(|t| t.features().similarity(&noun.features()) > 0.8)
                    })
                };
                let at = only(&|at| is_number(&tokens[at])).filter(|at| counts(*at))?;
                (at, at)
            }
            ValueKind::Name => {
                let is_name = |at: usize| {
                    tokens[at].capital() && !tokens[at].first && tokens[at].features().concepts.is_empty()
                };
                let at = only(&is_name)?;
                (at, at)
            }
        };
        let (before, after) = (base.get(..tokens[first].start)?, base.get(tokens[last].end..)?);
        let own = text::tokens(&self.text);
        let value = self.text.get(own.get(after_leads(&own, 0))?.start..)?;
        Some(format!("{before}{value}{after}"))
    }
}

/// The place in `tokens` of the first one from `first` that does not only lead to a day or a time: "(on) the 15th".
fn after_leads(tokens: &[Token], first: usize) -> usize {
    const LEADS: &[&str] = &[
        "on", "from", "to", "il", "al", "dal", "l", "le", "au", "du", "am", "den", "dem", "at", "um", "alle",
        "all", "a", "las", "auf", "vom", "el", "del",
    ];
    (first..tokens.len()).find(|at| tokens[*at].word && !tokens[*at].is(LEADS)).unwrap_or(first)
}

/// The words after an order to change what was done: "move it to", "spostale al", "facciamo".
fn after_order<'t, 'a>(words: &'t [&'a Token]) -> Option<&'t [&'a Token]> {
    let (verb, rest) = words.split_first()?;
    let is_verb = |norm: &str| {
        CHANGE_VERBS.split_whitespace().chain(MAKE_VERBS.split_whitespace()).any(|verb| verb == norm)
    };
    if is_verb(&verb.norm) {
        return match IT.ends(rest, 0).max() {
            Some(end) => rest.get(end..),
            None => verb.is(BARE_VERBS).then_some(rest),
        };
    }
    without_joined(&verb.norm).any(is_verb).then_some(rest)
}

/// Whether a word only leads to a value.
fn is_lead(token: &Token) -> bool {
    lexicon::is_stop_word(&token.norm)
        || token.is(&[
            "to", "for", "on", "at", "until", "in", "en", "au", "auf", "am", "um", "al", "alle", "bis",
            "sur", "para",
        ])
}

fn is_number(token: &Token) -> bool {
    token.digit() && !token.raw.contains(char::is_alphabetic) || number_words::spoken(&token.norm).is_some()
}
