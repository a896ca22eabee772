//! Recalls argument values from earlier steps, earlier turns and the words of the conversation.

use jiff::Zoned;
use serde_json::{Value, json};

use super::lexicon;
use super::prompt::{Conversation, Executed, PromptText};
use super::pronouns::{self, Place};
use super::schema::{ArgumentField, ArgumentKind};
use super::slots;
use super::text::{self, fold, name_words};
use crate::llm::ToolSpec;

/// Maximum number of objects of a result that are searched.
const MAX_NODES: usize = 2000;

/// Words in the names of tools that only read.
const READ_WORDS: &[&str] = &[
    "get", "list", "find", "search", "show", "read", "check", "lookup", "forecast", "status", "track",
    "view", "fetch", "query", "count", "balance", "describe", "calculate", "compute", "convert", "simulate",
    "quote",
];

/// First words in the names of tools that write.
const WRITE_VERBS: &[&str] = &[
    "play", "set", "turn", "put", "make", "log", "mark", "post", "publish", "upload", "start", "stop",
    "block", "unblock", "lock", "unlock", "activate", "deactivate", "enable", "disable", "follow",
    "unfollow", "like", "rate", "vote", "sign", "join", "enter", "leave", "write", "save", "store",
    "transfer", "pause", "resume", "archive", "delete", "clear", "reset", "grant", "revoke", "invite",
    "attach", "merge", "close", "issue", "charge",
];

/// Whether a tool may change something, judged by its texts because prompts do not state effects: its name
/// or the first words of its description contain an action other than a lookup.
pub(super) fn may_write(tool: &ToolSpec) -> bool {
    let name = name_words(&tool.name);
    if name.iter().any(|w| READ_WORDS.contains(&w.as_str())) {
        return false;
    }
    let first = name.first().is_some_and(|w| WRITE_VERBS.contains(&w.as_str()));
    let does = |word: &str| {
        let concepts = &text::features(word).concepts;
        lexicon::is_action(concepts) && !lexicon::is_lookup(concepts)
    };
    let opening: Vec<String> = text::norms(&tool.description).take(2).collect();
    first || name.iter().chain(&opening).any(|w| does(w))
}

/// Whether a tool may write, judged also by ambiguous words of its name: "book" counts as a verb.
pub(super) fn name_suggests_write(tool: &ToolSpec) -> bool {
    let first = name_words(&tool.name).first().map(|word| text::features(word));
    may_write(tool)
        || first
            .is_some_and(|own| lexicon::may_be_action(&own.concepts) && !lexicon::is_lookup(&own.concepts))
}

/// Whether an argument may be recalled from earlier steps and turns. Days, numbers and free text require
/// words that refer `back`; names and identifiers do not.
pub(super) fn may_recall(field: &ArgumentField, tool: &ToolSpec, writes: bool, back: bool) -> bool {
    let naming = field.identifies()
        || matches!(
            field.kind,
            ArgumentKind::Person | ArgumentKind::Place | ArgumentKind::Email | ArgumentKind::Thing
        );
    // A write recalls only the identity of its object and of the user; a plate or a guest of an
    // earlier request does not apply.
    let verb = name_words(&tool.name);
    let own = field.findable(verb.first().map_or("", String::as_str))
        || field.named(&["username", "user", "login", "utente"]);
    back || (naming && !writes) || (own && writes)
}

/// Recalls a value for a required argument that [`may_recall`] allows.
pub(super) fn recall(
    field: &ArgumentField,
    tool: &ToolSpec,
    prompt: &PromptText,
    purpose: &str,
    back: bool,
) -> Option<Value> {
    let earlier: Vec<Executed> = prompt.lines("earlier");
    let conversation: Conversation = prompt.json("conversation");
    let now = prompt.now();
    let steady = field.identifies() || matches!(field.kind, ArgumentKind::Person | ArgumentKind::Email);
    for step in earlier.iter().rev() {
        for call in step.calls.iter().rev() {
            if let Some(value) = argument_by_name(&call.arguments, field)
                .or_else(|| pick_from_result(&call.result, field, purpose, &now))
            {
                return Some(value);
            }
        }
    }
    let scene = prompt.get("scene");
    let names_place = pronouns::place_in_list(&text::tokens(purpose)).is_some();
    for turn in conversation.turns.iter().rev().take(20) {
        for call in turn.calls.iter().rev() {
            let same = call.scene == scene.trim() || call.tool == tool.name;
            // The city of a weather request is not a delivery address unless the words refer back.
            if !(same || steady || back) || (field.identifies() && !same) {
                continue;
            }
            // "The second one" is one of a list, and not what was spoken of last.
            if let Some(value) = argument_by_name(&call.arguments, field).filter(|_| !names_place) {
                return Some(value);
            }
            if field.identifies()
                && same
                && let Some(value) = pick_from_result(&call.result, field, purpose, &now)
            {
                return Some(value);
            }
        }
        if steady {
            // "Il mio username è …" stated in a turn without calls.
            let mut probe = field.clone();
            probe.required = false;
            let said = slots::fill(std::slice::from_ref(&probe), &turn.request, &now, &[], false);
            if let Some(value) = said.values.get(&field.name) {
                return Some(value.clone());
            }
        }
    }
    None
}

/// The argument of an earlier call with the same name.
pub(super) fn argument_by_name(arguments: &Value, field: &ArgumentField) -> Option<Value> {
    arguments.get(&field.name).filter(|v| !v.is_null() && !v.is_object() && !v.is_array()).cloned()
}

/// Whether the argument is the requester's name, by its description or by a "my" in the request for a read.
pub(super) fn is_requester_name(
    field: &ArgumentField,
    tool: &ToolSpec,
    purpose: &str,
    request: &str,
) -> bool {
    if field.kind != ArgumentKind::Person
        && !(field.kind == ArgumentKind::Id
            && field.mentions(&["username", "user", "employee", "utente", "dipendente"]))
    {
        return false;
    }
    let about = fold(&field.description);
    let own = [
        "own", "who asks", "asking", "your", "caller", "current user", "requester", "chi chiede", "proprio",
        "logged",
    ];
    if own.iter().any(|w| about.contains(w)) {
        return true;
    }
    let user =
        field.mentions(&["user", "username", "employee", "utente", "dipendente", "login", "member", "socio"]);
    const OTHERS: &[&str] = &[
        "colleague", "colleagues", "coworkers", "team", "collega", "colleghi", "colleghe", "collegue",
        "collegues", "equipe", "kollegen", "kolleginnen", "kollege", "companeros", "equipo",
    ];
    let said = text::tokens(&format!("{purpose} {request}"));
    let mine = said.iter().any(|t| {
        t.is(&["mio", "mia", "miei", "mie", "my", "mine", "mi", "mon", "ma", "mein", "meine", "i", "io"])
    }) && !said.iter().any(|t| t.is(OTHERS));
    user && mine && !may_write(tool)
}

/// Picks the value of an argument from a result: the property with its name, or the identifier of the entry
/// that fits the words best.
pub(super) fn pick_from_result(
    result: &Value,
    field: &ArgumentField,
    purpose: &str,
    now: &Zoned,
) -> Option<Value> {
    let mut entries: Vec<&Value> = Vec::new();
    let tokens = text::tokens(purpose);
    let place = pronouns::place_in_list(&tokens).map(|(_, place)| place);
    // "The first one" is one of a list: what one write returned is none.
    match (place, result) {
        (Some(_), Value::Object(fields)) => {
            let lists = fields.values().filter(|value| value.is_array());
            lists.for_each(|list| collect_values(list, &mut entries));
        }
        _ => collect_values(result, &mut entries),
    }
    let keys = |entry: &Value| -> Option<Value> {
        let object = entry.as_object()?;
        let exact = object.get(&field.name);
        let parts = name_words(&field.name);
        let id = ["id", "code", "number", "reference", "codice"];
        let is_id = parts.iter().any(|p| id.contains(&p.as_str()));
        let tail = parts.iter().rev().find(|p| id.contains(&p.as_str()));
        let loose = tail
            .and_then(|t| object.get(t))
            .or_else(|| object.get("id").filter(|_| is_id))
            .or_else(|| object.iter().find(|(k, _)| is_id && k.ends_with("_id")).map(|(_, v)| v));
        exact.or(loose).filter(|v| v.is_string() || v.is_number()).cloned()
    };
    let mut fitting: Vec<(usize, Value)> = Vec::new();
    let days: Vec<String> = super::entities::Entities::in_tokens(&tokens, now.date())
        .days
        .iter()
        .map(|d| d.date.to_string())
        .collect();
    for entry in entries {
        let Some(value) = keys(entry) else { continue };
        let said: Vec<String> =
            entry.as_object().into_iter().flatten().filter_map(|(_, v)| v.as_str()).map(fold).collect();
        let fits = tokens
            .iter()
            .filter(|t| t.norm.len() > 3 && said.iter().any(|s| s.contains(t.norm.as_str())))
            .count()
            + days.iter().filter(|d| said.iter().any(|s| s.starts_with(d.as_str()))).count() * 2;
        if !fitting.iter().any(|(_, v)| *v == value) {
            fitting.push((fits, value));
        }
    }
    let value = match place {
        Some(Place::Nth(at)) => fitting.into_iter().nth(at)?.1,
        Some(Place::Last) => fitting.pop().filter(|_| !fitting.is_empty())?.1,
        None => only_best(fitting)?,
    };
    Some(match (&field.kind, value) {
        (ArgumentKind::Number(_), value) => value,
        (_, Value::Number(n)) => json!(n.to_string()),
        (_, value) => value,
    })
}

/// The value that fits best. If several fit equally well, only the user can choose.
fn only_best(fitting: Vec<(usize, Value)>) -> Option<Value> {
    let best = fitting.iter().map(|fit| fit.0).max()?;
    let mut top = fitting.into_iter().filter(|fit| fit.0 == best);
    top.next().filter(|_| top.next().is_none()).map(|fit| fit.1)
}

fn collect_values<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    if out.len() >= MAX_NODES {
        return;
    }
    match value {
        Value::Array(list) => list.iter().for_each(|v| collect_values(v, out)),
        Value::Object(map) => {
            out.push(value);
            map.values().for_each(|v| collect_values(v, out));
        }
        _ => {}
    }
}
