//! Arguments of a tool, read from its JSON Schema: what kind of thing each is, and which words speak
//! of it.

use std::rc::Rc;

use serde_json::Value;

use super::dates::RangeRole;
use super::lexicon;
use super::text::{self, Features, features, name_words};

/// Most arguments of one tool that are looked at.
const MAX_FIELDS: usize = 40;

/// What kind of thing an argument is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ArgumentKind {
    /// A calendar day.
    Date,
    /// A day and a time.
    DateTime,
    /// A time of day.
    Time,
    /// A number; `true` where it is whole.
    Number(bool),
    /// Yes or no.
    Bool,
    /// One of these.
    Enum(Vec<EnumValue>),
    /// An e-mail address.
    Email,
    /// A web address.
    Uri,
    /// A city, an address, a country.
    Place,
    /// Somebody's name or user name.
    Person,
    /// A code or an identifier.
    Id,
    /// Words of the user's own.
    Text,
    /// A name of a thing.
    Thing,
    /// Several of a kind.
    List(Box<ArgumentField>),
    /// An object with arguments of its own.
    Object(Vec<ArgumentField>),
    /// Always the same.
    Fixed(Value),
}

/// One value of an enumeration and the words that mean it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EnumValue {
    /// The value.
    pub value: Value,
    /// Its own words and what the description says of it.
    pub words: Vec<Vec<String>>,
}

/// One argument.
#[derive(Debug, Clone)]
pub(super) struct ArgumentField {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ArgumentKind,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What the schema says of it.
    pub description: String,
    /// Words of its name.
    pub cues: Vec<Rc<Features>>,
    /// Telling words of its description.
    pub hints: Vec<Rc<Features>>,
    /// Which end of a range it is.
    pub role: RangeRole,
    /// Examples in the schema.
    pub examples: Vec<String>,
    /// What it is when nothing is said.
    pub default: Option<Value>,
    /// Least value, of numbers.
    pub min: Option<f64>,
    /// Greatest value, of numbers.
    pub max: Option<f64>,
}

impl PartialEq for ArgumentField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

impl ArgumentField {
    /// Whether one of these words is in its name (1), its description (0.6) or neither (0).
    pub fn speaks_of(&self, word: &Features) -> f64 {
        let best = |list: &[Rc<Features>]| list.iter().map(|f| f.similarity(word)).fold(0.0, f64::max);
        best(&self.cues).max(0.6 * best(&self.hints))
    }

    /// Whether name or description has one of these words.
    pub fn says(&self, words: &[&str]) -> bool {
        self.cues.iter().chain(&self.hints).any(|f| words.contains(&f.norm.as_str()))
    }

    /// Whether it says which one of several: a code, or the number of something.
    pub fn identifies(&self) -> bool {
        // "Number of seats" counts.
        let number = matches!(self.kind, ArgumentKind::Number(_))
            && !self.named(&["of", "di"])
            && self.named(&["id", "number", "code", "numero", "codice", "reference"]);
        self.kind == ArgumentKind::Id || number
    }

    /// Whether a look-up may find it: an internal identifier, or which one of the things there are is
    /// to be cancelled or changed (`verb` is the first word of the tool's name). What a new thing needs
    /// is the user's to say.
    pub fn findable(&self, verb: &str) -> bool {
        self.identifies() && (self.named(&["id"]) || lexicon::is_special_action(&features(verb).concepts))
    }

    /// Whether it is what something is called: `song_name`, "Title of the book".
    pub fn is_name(&self) -> bool {
        const NAME: &[&str] = &["name", "nome", "title", "titolo", "nominativo"];
        self.named(NAME) || self.hints.first().is_some_and(|f| NAME.contains(&f.norm.as_str()))
    }

    /// Whether its name has one of these words.
    pub fn named(&self, words: &[&str]) -> bool {
        self.cues.iter().any(|f| words.contains(&f.norm.as_str()))
    }
}

/// The arguments of a tool: the required ones first, in their own order.
pub(super) fn fields(parameters: &Value) -> Vec<ArgumentField> {
    read(parameters, 0)
}

fn read(parameters: &Value, depth: u8) -> Vec<ArgumentField> {
    let Some(properties) = parameters.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: Vec<&str> = parameters
        .get("required")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut names: Vec<&str> = required.iter().copied().filter(|n| properties.contains_key(*n)).collect();
    names.extend(properties.keys().map(String::as_str).filter(|n| !required.contains(n)));
    names
        .into_iter()
        .take(MAX_FIELDS)
        .filter_map(|name| {
            properties.get(name).map(|schema| field(name, schema, required.contains(&name), depth))
        })
        .collect()
}

fn field(name: &str, schema: &Value, required: bool, depth: u8) -> ArgumentField {
    let schema = unwrap_choice(schema);
    let text_of = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    let description = [text_of("title"), text_of("description")].join(" ").trim().to_owned();
    let parts = name_words(name);
    let mut cue_words = parts.clone();
    cue_words.extend(parts.windows(2).filter_map(|p| lexicon::pair_meaning(&p[0], &p[1])).map(str::to_owned));
    if parts.len() > 1 {
        cue_words.push(parts.concat());
    }
    let cues: Vec<Rc<Features>> = cue_words.iter().map(|w| features(w)).collect();
    let hints: Vec<Rc<Features>> = text::tokens(&description)
        .iter()
        .filter(|t| t.word && !lexicon::is_stop_word(&t.norm) && t.norm.len() > 1)
        .take(60)
        .map(text::Token::features)
        .collect();
    let examples = schema
        .get("examples")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let role = role(&parts, &hints);
    let kind = kind(schema, &parts, &hints, &description, depth);
    ArgumentField {
        name: name.to_owned(),
        kind,
        required,
        description,
        cues,
        hints,
        role,
        examples,
        default: schema.get("default").cloned(),
        min: schema.get("minimum").and_then(Value::as_f64),
        max: schema.get("maximum").and_then(Value::as_f64),
    }
}

/// `anyOf`/`oneOf` with null, as generators of schemas write optional arguments.
fn unwrap_choice(schema: &Value) -> &Value {
    for key in ["anyOf", "oneOf"] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            let mut real = list.iter().filter(|s| s.get("type").and_then(Value::as_str) != Some("null"));
            if let (Some(one), None) = (real.next(), real.next()) {
                return one;
            }
        }
    }
    schema
}

fn role(name: &[String], hints: &[Rc<Features>]) -> RangeRole {
    const FROM: &[&str] = &[
        "from",
        "start",
        "begin",
        "beginning",
        "since",
        "dal",
        "da",
        "inizio",
        "checkin",
        "arrival",
        "first",
        "pickup",
        "after",
        "partenza",
        "departure",
        "opens",
        "min",
    ];
    const TO: &[&str] = &[
        "to", "end", "until", "till", "al", "fine", "checkout", "last", "return", "ritorno", "rientro",
        "finish", "before", "dropoff", "through", "max",
    ];
    let in_name = |list: &[&str]| name.iter().any(|w| list.contains(&w.as_str()));
    let check = |word: &str| name.windows(2).any(|p| p[0] == "check" && p[1] == word);
    if in_name(TO) || check("out") {
        return RangeRole::To;
    }
    if in_name(FROM) || check("in") {
        return RangeRole::From;
    }
    let early = |list: &[&str]| hints.iter().take(4).any(|f| list.contains(&f.norm.as_str()));
    let first = &["first", "start", "begin", "beginning", "inizio", "primo"];
    let last = &["last", "end", "fine", "ultimo", "termine"];
    match (early(first), early(last)) {
        (true, false) => RangeRole::From,
        (false, true) => RangeRole::To,
        _ => RangeRole::Single,
    }
}

fn kind(
    schema: &Value,
    name: &[String],
    hints: &[Rc<Features>],
    description: &str,
    depth: u8,
) -> ArgumentKind {
    if let Some(value) = schema.get("const") {
        return ArgumentKind::Fixed(value.clone());
    }
    let choices = schema
        .get("enum")
        .and_then(Value::as_array)
        .map(|list| list.iter().map(|v| (v.clone(), String::new())).collect::<Vec<_>>());
    let choices = choices.or_else(|| {
        let list = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
        let all: Option<Vec<_>> = list
            .iter()
            .map(|s| {
                let said = s.get("description").or_else(|| s.get("title")).and_then(Value::as_str);
                Some((s.get("const")?.clone(), said.unwrap_or_default().to_owned()))
            })
            .collect();
        all
    });
    if let Some(list) = choices {
        return ArgumentKind::Enum(choices_of(&list, description));
    }
    let types = match schema.get("type") {
        Some(Value::String(one)) => one.as_str(),
        Some(Value::Array(many)) => {
            many.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("string")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    };
    match types {
        "integer" => return ArgumentKind::Number(true),
        "number" => return ArgumentKind::Number(false),
        "boolean" => return ArgumentKind::Bool,
        "array" => {
            let item = schema.get("items").cloned().unwrap_or(Value::Null);
            let mut inner = field(&name.join("_"), &item, false, depth.saturating_add(1).min(3));
            if inner.description.is_empty() {
                inner.description = description.to_owned();
                inner.hints = hints.to_vec();
            }
            return ArgumentKind::List(Box::new(inner));
        }
        "object" => {
            return if depth < 2 {
                ArgumentKind::Object(read(schema, depth + 1))
            } else {
                ArgumentKind::Thing
            };
        }
        _ => {}
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => return ArgumentKind::Date,
        Some("date-time") => return ArgumentKind::DateTime,
        Some("time") => return ArgumentKind::Time,
        Some("email") => return ArgumentKind::Email,
        Some("uri" | "url") => return ArgumentKind::Uri,
        Some("uuid") => return ArgumentKind::Id,
        _ => {}
    }
    string_kind(name, hints, description)
}

fn string_kind(name: &[String], hints: &[Rc<Features>], description: &str) -> ArgumentKind {
    let upper = description.to_uppercase();
    if upper.contains("HH:MM") {
        return if upper.contains("YYYY") { ArgumentKind::DateTime } else { ArgumentKind::Time };
    }
    if upper.contains("YYYY-MM-DD") {
        return ArgumentKind::Date;
    }
    let named = |w: &str| matches!(w, "name" | "nome");
    let hinted = || {
        // "Name of the restaurant" makes no person of a restaurant, "number of the ticket" a code.
        let words = hints.iter().take(6).map(|f| f.norm.as_str()).filter(|w| !named(w));
        let found = words.filter_map(word_kind).find(|k| *k != ArgumentKind::Date || hints.len() < 4);
        found.or_else(|| names_somebody(hints, description).then_some(ArgumentKind::Person))
    };
    // The last word of a name is what it is: `book_title` is a title, `room_id` an id.
    match name {
        [one] if named(one) => hinted()
            .filter(|k| matches!(k, ArgumentKind::Place | ArgumentKind::Person))
            .unwrap_or(ArgumentKind::Person),
        [.., of, last] if named(last) => match word_kind(of) {
            Some(kind) => kind,
            None if name.iter().any(|w| word_kind(w) == Some(ArgumentKind::Person) && !named(w)) => {
                ArgumentKind::Person
            }
            None if [
                "full",
                "first",
                "last",
                "family",
                "given",
                "nick",
                "display",
                "login",
                "booking",
                "reservation",
            ]
            .contains(&of.as_str()) =>
            {
                ArgumentKind::Person
            }
            None => ArgumentKind::Thing,
        },
        _ => name.iter().rev().find_map(|w| word_kind(w)).or_else(hinted).unwrap_or(ArgumentKind::Thing),
    }
}

/// "Name of the reader, if it is for somebody else", "name of the director, such as Federico Fellini":
/// whether a description speaks of a name that somebody has.
fn names_somebody(hints: &[Rc<Features>], description: &str) -> bool {
    let name = hints.iter().take(2).any(|f| matches!(f.norm.as_str(), "name" | "nome"));
    let body = |f: &Rc<Features>| {
        matches!(f.norm.as_str(), "somebody" | "someone" | "anybody" | "qualcuno" | "altri" | "whom")
    };
    let tokens = text::tokens(description);
    let sample = tokens.windows(2).any(|pair| {
        !pair[0].first && pair.iter().all(|t| t.word && t.capital()) && lexicon::is_first_name(&pair[0].norm)
    });
    let said = tokens.iter().filter(|t| t.word).any(|t| body(&t.features()));
    name && (said || sample)
}

fn word_kind(word: &str) -> Option<ArgumentKind> {
    Some(match word {
        "date" | "data" | "giorno" | "day" | "datum" => ArgumentKind::Date,
        "time" | "ora" | "orario" | "hour" => ArgumentKind::Time,
        "email" | "mail" => ArgumentKind::Email,
        "url" | "uri" | "website" | "link" => ArgumentKind::Uri,
        "city" | "citta" | "place" | "location" | "luogo" | "town" | "country" | "paese" | "destination"
        | "destinazione" | "origin" | "origine" | "address" | "indirizzo" | "comune" | "airport"
        | "station" | "stazione" | "region" => ArgumentKind::Place,
        "user" | "username" | "utente" | "person" | "persona" | "employee" | "dipendente" | "colleague"
        | "collega" | "customer" | "cliente" | "guest" | "ospite" | "owner" | "recipient"
        | "destinatario" | "member" | "socio" | "assignee" | "who" | "name" | "nome" | "surname"
        | "cognome" | "contact" | "author" | "autore" | "patient" | "paziente" | "manager" | "approver"
        | "nominativo" => ArgumentKind::Person,
        "id" | "code" | "codice" | "number" | "numero" | "tracking" | "reference" | "ref" | "isbn"
        | "sku" | "identifier" | "key" | "plate" | "targa" | "uuid" => ArgumentKind::Id,
        "subject" | "note" | "notes" | "reason" | "message" | "comment" | "comments" | "text"
        | "description" | "body" | "motivo" | "messaggio" | "nota" | "oggetto" | "descrizione"
        | "problem" | "problema" | "details" | "dettagli" | "content" | "query" | "question" | "summary"
        | "remarks" | "motivation" | "commento" | "testo" | "topic" | "purpose" | "q" | "search"
        | "keywords" | "fault" | "issue" | "memo" => ArgumentKind::Text,
        _ => return None,
    })
}

/// The values with the words that mean them: their own, and those that stand beside them in the
/// description ("low (bassa), high = alta").
fn choices_of(values: &[(Value, String)], description: &str) -> Vec<EnumValue> {
    let said = |v: &Value| match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    let names: Vec<String> = values.iter().map(|(v, _)| text::fold(&said(v))).collect();
    let folded = text::fold(description);
    values
        .iter()
        .take(100)
        .zip(&names)
        .map(|((value, gloss), name)| {
            let own: Vec<String> = name_words(&said(value)).into_iter().filter(|w| !w.is_empty()).collect();
            let mut words = vec![own];
            words.extend(aliases(&text::fold(gloss)));
            if let Some(at) = whole_word(&folded, name) {
                let rest = &folded[at + name.len()..];
                let end = names
                    .iter()
                    .filter(|n| *n != name)
                    .filter_map(|n| whole_word(rest, n))
                    .chain(rest.find(['.', ';', '\n']))
                    .min()
                    .unwrap_or(rest.len());
                words.extend(aliases(&rest[..end]));
            }
            words.retain(|w| !w.is_empty());
            EnumValue { value: value.clone(), words }
        })
        .collect()
}

fn whole_word(text: &str, word: &str) -> Option<usize> {
    if word.is_empty() {
        return None;
    }
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Separate glosses of one value: at commas, slashes and brackets.
fn aliases(text: &str) -> Vec<Vec<String>> {
    text.split([',', '/', '(', ')', '=', ':', '|', '"', '\'', '«', '»'])
        .map(|part| {
            part.split(|c: char| !c.is_alphanumeric() && c != '-')
                .filter(|w| w.len() > 1 && !lexicon::is_stop_word(w) && *w != "per" && *w != "default")
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty() && words.len() <= 3)
        .take(8)
        .collect()
}
