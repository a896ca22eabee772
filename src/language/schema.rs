//! Reads the arguments of a tool from its JSON Schema: the kind of each, and the words that refer to it.

use std::rc::Rc;

use serde_json::Value;

use super::dates::RangeRole;
use super::lexicon;
use super::text::{self, Features, features, name_words};
use crate::schema::required_names;

/// Maximum number of arguments of one tool; further ones are ignored.
const MAX_FIELDS: usize = 40;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ArgumentKind {
    /// A calendar day.
    Date,
    DateTime,
    Time,
    /// A number; `true` for an integer.
    Number(bool),
    Bool,
    Enum(Vec<EnumValue>),
    /// An e-mail address.
    Email,
    /// A web address.
    Uri,
    /// A city, an address, a country.
    Place,
    /// The name or user name of a person.
    Person,
    /// A code or an identifier.
    Id,
    Text,
    /// The name of a thing.
    Thing,
    /// A list of values of one kind.
    List(Box<ArgumentField>),
    Object(Vec<ArgumentField>),
    Fixed(Value),
}

/// One value of an enumeration and the words that mean it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EnumValue {
    /// The value.
    pub value: Value,
    /// The words of the value itself, then the glosses of the description.
    pub words: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
pub(crate) struct ArgumentField {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ArgumentKind,
    /// Whether it is required.
    pub required: bool,
    /// Its title and description in the schema.
    pub description: String,
    /// Words of its name.
    pub cues: Vec<Rc<Features>>,
    /// Content words of its description.
    pub hints: Vec<Rc<Features>>,
    /// Which end of a range it is.
    pub role: RangeRole,
    /// Examples in the schema.
    pub examples: Vec<String>,
    /// Its default value.
    pub default: Option<Value>,
    /// Minimum, for numbers.
    pub min: Option<f64>,
    /// Maximum, for numbers.
    pub max: Option<f64>,
}

impl PartialEq for ArgumentField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

impl ArgumentField {
    /// The argument as one that was asked for: who was asked for a person names one, in whatever form.
    pub fn as_asked(&self) -> Self {
        Self { required: self.required || self.kind == ArgumentKind::Person, ..self.clone() }
    }

    /// Similarity to a word: up to 1 for a word of its name, up to 0.6 for one of its description.
    pub fn similarity(&self, word: &Features) -> f64 {
        let best = |list: &[Rc<Features>]| list.iter().map(|f| f.similarity(word)).fold(0.0, f64::max);
        best(&self.cues).max(0.6 * best(&self.hints))
    }

    /// Returns whether its name or description has one of these words.
    pub fn mentions(&self, words: &[&str]) -> bool {
        self.cues.iter().chain(&self.hints).any(|f| words.contains(&f.norm.as_str()))
    }

    /// Returns whether it identifies one thing of several: a code, or the number of something.
    pub fn identifies(&self) -> bool {
        // "Number of seats" is a count.
        let number = matches!(self.kind, ArgumentKind::Number(_))
            && !self.named(&["of", "di"])
            && self.named(&["id", "number", "code", "numero", "codice", "reference"]);
        self.kind == ArgumentKind::Id || number
    }

    /// Returns whether a lookup may find it: an internal identifier, or the identifier of an existing thing to cancel
    /// or change (`verb` is the first word of the tool's name). The values of a new thing only the user knows.
    pub fn findable(&self, verb: &str) -> bool {
        self.identifies() && (self.named(&["id"]) || lexicon::is_special_action(&features(verb).concepts))
    }

    /// Returns whether it is a name or title: `song_name`, "Title of the book".
    pub fn is_name(&self) -> bool {
        const NAME: &[&str] = &["name", "nome", "title", "titolo", "nominativo"];
        self.named(NAME) || self.hints.first().is_some_and(|f| NAME.contains(&f.norm.as_str()))
    }

    /// Returns whether its name has one of these words.
    pub fn named(&self, words: &[&str]) -> bool {
        self.cues.iter().any(|f| words.contains(&f.norm.as_str()))
    }
}

/// The arguments of a tool, the required ones first in their own order.
pub(crate) fn fields(parameters: &Value) -> Vec<ArgumentField> {
    read_fields(parameters, 0)
}

fn read_fields(parameters: &Value, depth: u8) -> Vec<ArgumentField> {
    let Some(properties) = parameters.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: Vec<&str> = required_names(parameters).collect();
    let mut names: Vec<&str> = required.iter().copied().filter(|n| properties.contains_key(*n)).collect();
    names.extend(properties.keys().map(String::as_str).filter(|n| !required.contains(n)));
    names
        .into_iter()
        .take(MAX_FIELDS)
        .filter_map(|name| {
            properties.get(name).map(|schema| read_field(name, schema, required.contains(&name), depth))
        })
        .collect()
}

fn read_field(name: &str, schema: &Value, required: bool, depth: u8) -> ArgumentField {
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
    let role = range_role(&parts, &hints);
    let kind = argument_kind(schema, &parts, &hints, &description, depth);
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

/// Unwraps `anyOf`/`oneOf` with null, which schema generators write for optional arguments.
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

/// Which end of a range an argument is, by its name and the first words of its description.
fn range_role(name: &[String], hints: &[Rc<Features>]) -> RangeRole {
    const FROM: &[&str] = &[
        "from", "start", "begin", "beginning", "since", "dal", "da", "inizio", "checkin", "arrival", "first",
        "pickup", "after", "partenza", "departure", "opens", "min",
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

fn argument_kind(
    schema: &Value,
    name: &[String],
    hints: &[Rc<Features>],
    description: &str,
    depth: u8,
) -> ArgumentKind {
    if let Some(value) = schema.get("const") {
        return ArgumentKind::Fixed(value.clone());
    }
    if let Some(list) = enum_values(schema) {
        return ArgumentKind::Enum(with_words(&list, description));
    }
    match schema_type(schema) {
        "integer" => return ArgumentKind::Number(true),
        "number" => return ArgumentKind::Number(false),
        "boolean" => return ArgumentKind::Bool,
        "array" => {
            let item = schema.get("items").cloned().unwrap_or(Value::Null);
            let mut inner = read_field(&name.join("_"), &item, false, depth.saturating_add(1).min(3));
            if inner.description.is_empty() {
                inner.description = description.to_owned();
                inner.hints = hints.to_vec();
            }
            return ArgumentKind::List(Box::new(inner));
        }
        "object" => {
            return if depth < 2 {
                ArgumentKind::Object(read_fields(schema, depth + 1))
            } else {
                ArgumentKind::Thing
            };
        }
        _ => {}
    }
    kind_by_format(schema).unwrap_or_else(|| string_kind(name, hints, description))
}

/// The values of an enumeration with their descriptions: `enum`, or `oneOf`/`anyOf` of constants.
fn enum_values(schema: &Value) -> Option<Vec<(Value, String)>> {
    if let Some(list) = schema.get("enum").and_then(Value::as_array) {
        return Some(list.iter().map(|v| (v.clone(), String::new())).collect());
    }
    let list = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let constant = |s: &Value| {
        let gloss = s.get("description").or_else(|| s.get("title")).and_then(Value::as_str);
        Some((s.get("const")?.clone(), gloss.unwrap_or_default().to_owned()))
    };
    list.iter().map(constant).collect()
}

/// The JSON type of a schema.
fn schema_type(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(one)) => one.as_str(),
        Some(Value::Array(many)) => {
            many.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("string")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

/// The kind of a string by its `format`.
fn kind_by_format(schema: &Value) -> Option<ArgumentKind> {
    Some(match schema.get("format").and_then(Value::as_str)? {
        "date" => ArgumentKind::Date,
        "date-time" => ArgumentKind::DateTime,
        "time" => ArgumentKind::Time,
        "email" => ArgumentKind::Email,
        "uri" | "url" => ArgumentKind::Uri,
        "uuid" => ArgumentKind::Id,
        _ => return None,
    })
}

/// The kind of a string by the words of its name and description.
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
        // "Name of the restaurant" is no person; "number of the ticket" is a code.
        let words = hints.iter().take(6).map(|f| f.norm.as_str()).filter(|w| !named(w));
        let found = words.filter_map(word_kind).find(|k| *k != ArgumentKind::Date || hints.len() < 4);
        found.or_else(|| describes_person_name(hints, description).then_some(ArgumentKind::Person))
    };
    // The last word of a name determines its kind: `book_title` is a title, `room_id` an id.
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
                "full", "first", "last", "family", "given", "nick", "display", "login", "booking",
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

/// Whether a description is about the name of a person: "Name of the reader, if it is for somebody else",
/// "name of the director, such as Federico Fellini".
fn describes_person_name(hints: &[Rc<Features>], description: &str) -> bool {
    let name = hints.iter().take(2).any(|f| matches!(f.norm.as_str(), "name" | "nome"));
    let body = |f: &Rc<Features>| {
        matches!(f.norm.as_str(), "somebody" | "someone" | "anybody" | "qualcuno" | "altri" | "whom")
    };
    let tokens = text::tokens(description);
    let sample = tokens.windows(2).any(|pair| {
        !pair[0].first && pair.iter().all(|t| t.word && t.capital()) && lexicon::is_first_name(&pair[0].norm)
    });
    let pronoun = tokens.iter().filter(|t| t.word).any(|t| body(&t.features()));
    name && (pronoun || sample)
}

/// The kind of argument that a word names.
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
        | "destinatario" | "reader" | "lettore" | "borrower" | "student" | "studente" | "member"
        | "socio" | "assignee" | "who" | "name" | "nome" | "surname" | "cognome" | "contact" | "author"
        | "autore" | "patient" | "paziente" | "manager" | "approver" | "nominativo" => ArgumentKind::Person,
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

/// The values with the words that mean them: their own, and those next to them in the description ("low
/// (bassa), high = alta").
fn with_words(values: &[(Value, String)], description: &str) -> Vec<EnumValue> {
    let as_text = |v: &Value| match v {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    };
    let names: Vec<String> = values.iter().map(|(v, _)| text::fold(&as_text(v))).collect();
    let folded = text::fold(description);
    values
        .iter()
        .take(100)
        .zip(&names)
        .map(|((value, gloss), name)| {
            let own: Vec<String> =
                name_words(&as_text(value)).into_iter().filter(|w| !w.is_empty()).collect();
            let mut words = vec![own];
            words.extend(aliases(&text::fold(gloss)));
            if let Some(at) = find_whole_word(&folded, name) {
                let rest = &folded[at + name.len()..];
                let end = names
                    .iter()
                    .filter(|n| *n != name)
                    .filter_map(|n| find_whole_word(rest, n))
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

fn find_whole_word(text: &str, word: &str) -> Option<usize> {
    if word.is_empty() {
        return None;
    }
    text.match_indices(word).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// The glosses of one value, separated at commas, slashes and brackets.
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
