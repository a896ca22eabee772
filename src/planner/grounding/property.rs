//! The kind of value of an argument, by the property's schema, name and description.

use std::cell::OnceCell;

use serde_json::Value;

use super::words::{self, name_words, singular};
use crate::schema::is_required;

/// The kind of a text value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PropertyKind {
    /// A calendar day.
    Date,
    /// A day and a time.
    Moment,
    /// A time of day.
    Time,
    /// An e-mail address.
    Email,
    /// A person's name.
    Person,
    /// A city, a country, an address.
    Place,
    /// Free text, which a model may compose.
    Free,
    /// Anything else.
    Other,
}

/// A property of a JSON Schema.
#[derive(Debug)]
pub(super) struct Property<'a> {
    /// Its schema; null if there is none.
    pub schema: &'a Value,
    /// Whether it is required.
    pub required: bool,
    names: Vec<String>,
    /// The schema with its title and description: of an item, that of its list.
    describing: &'a Value,
    described: OnceCell<Vec<String>>,
}

const PEOPLE: &[&str] = &[
    "person", "employee", "recipient", "user", "username", "contact", "assignee", "doctor", "patient",
    "guest", "customer", "client", "attendee", "participant", "owner", "manager", "approver", "member",
    "teacher", "student", "driver", "passenger", "traveler", "traveller", "sender", "payee", "beneficiary",
    "host", "colleague", "friend", "technician", "barber", "stylist", "reporter", "reviewer", "invitee",
    "who", "whom", "surname", "firstname", "lastname", "fullname", "nominee", "requester", "persona",
    "dipendente", "utente", "destinatario", "beneficiario", "cliente", "ospite", "paziente", "medico",
    "dottore", "collega", "socio", "cognome", "nominativo", "intestatario", "referente", "responsabile",
    "partecipante", "invitato", "amico", "holder", "dentist", "resident", "people",
];
const OF_PEOPLE: &[&str] =
    &["first", "last", "full", "family", "given", "nick", "display", "sur", "login", "contact"];
const PLACES: &[&str] = &[
    "city", "town", "location", "place", "destination", "origin", "country", "airport", "station", "region",
    "citta", "comune", "paese", "luogo", "destinazione", "origine", "indirizzo", "address", "stazione",
    "where",
];
const FREE: &[&str] = &[
    "description", "message", "note", "content", "title", "query", "purpose", "reason", "text", "body",
    "subject", "comment", "summary", "detail", "topic", "motivo", "messaggio", "nota", "oggetto",
    "descrizione", "testo", "titolo", "contenuto", "commento", "dettagli", "problem", "problema", "question",
    "prompt", "instruction", "remark", "memo", "caption", "issue", "keyword", "search", "q", "tweet", "post",
    "motivation", "argument", "feedback", "review", "code", "command", "script", "html", "data",
];
const CODES: &[&str] = &[
    "id", "number", "code", "no", "nr", "ref", "reference", "numero", "codice", "index", "key", "order",
    "ticket", "booking", "identifier",
];
const COUNTED: &[&str] = &[
    "people", "person", "guest", "diner", "attendee", "participant", "seat", "persone", "ospiti", "coperti",
    "partecipanti", "posti", "party", "adult", "passenger", "traveler", "traveller", "adulti", "pax",
    "cover",
];

impl<'a> Property<'a> {
    /// The property `name` of an object's schema; references resolve in `root`.
    pub fn of(schema: &'a Value, root: &'a Value, name: &str) -> Self {
        let schema = plain(schema, root);
        let own = schema.get("properties").and_then(|p| p.get(name)).unwrap_or(&Value::Null);
        let required = is_required(schema, name);
        let own = plain(own, root);
        let described = OnceCell::new();
        Self { schema: own, required, names: name_words(name), describing: own, described }
    }

    /// A property without a schema.
    pub fn unknown(name: &str) -> Self {
        let (schema, described) = (&Value::Null, OnceCell::new());
        Self { schema, required: true, names: name_words(name), describing: schema, described }
    }

    /// The items of the property, if it is a list.
    pub fn item(&self, root: &'a Value) -> Self {
        let schema = self.schema.get("items").map_or(&Value::Null, |items| plain(items, root));
        Self { schema, names: self.names.clone(), described: self.described.clone(), ..*self }
    }

    /// The first words of its title and description. Most values need none of them.
    fn described(&self) -> &[String] {
        self.described.get_or_init(|| {
            let text = |key: &str| self.describing.get(key).and_then(Value::as_str).unwrap_or_default();
            let words = words::words(&format!("{} {}", text("title"), text("description")));
            words.into_iter().take(60).map(|w| w.norm).collect()
        })
    }

    /// Returns whether the schema itself contains the value, as an enum value, a constant or a default.
    pub fn allows(&self, value: &Value) -> bool {
        let schema = self.schema;
        if schema.get("default") == Some(value) || schema.get("const") == Some(value) {
            return true;
        }
        if schema.get("enum").and_then(Value::as_array).is_some_and(|list| list.contains(value)) {
            return true;
        }
        let choices = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
        choices.into_iter().take(64).any(|choice| {
            choice.get("const") == Some(value)
                || choice.get("enum").and_then(Value::as_array).is_some_and(|list| list.contains(value))
        })
    }

    /// Returns whether its name contains one of these words.
    pub fn named(&self, words: &[&str]) -> bool {
        self.names.iter().any(|name| words.contains(&name.as_str()))
    }

    /// Whether its name contains one of these words, in the singular or the plural.
    fn is_named_in_any_number(&self, words: &[&str]) -> bool {
        self.names.iter().any(|name| words.contains(&name.as_str()) || words.contains(&singular(name)))
    }

    /// Returns whether it identifies one of several things.
    pub fn is_code(&self) -> bool {
        let counts = self
            .described()
            .iter()
            .take(4)
            .any(|w| matches!(w.as_str(), "many" | "count" | "quanti" | "quante"));
        let of = self
            .names
            .windows(2)
            .any(|pair| matches!((pair[0].as_str(), pair[1].as_str()), ("number" | "numero", "of" | "di")));
        let people = self
            .described()
            .windows(2)
            .take(4)
            .any(|pair| matches!(pair[0].as_str(), "of" | "di") && COUNTED.contains(&singular(&pair[1])));
        !counts
            && !of
            && !people
            && self.is_named_in_any_number(CODES)
            && !self.is_named_in_any_number(COUNTED)
    }

    /// Returns whether it names an account.
    pub fn is_account(&self) -> bool {
        self.named(&["iban", "account", "wallet", "bic", "swift", "konto", "conto"])
    }

    /// Returns whether it counts people.
    pub fn counts_people(&self) -> bool {
        self.is_named_in_any_number(COUNTED)
            || self.described().iter().take(6).any(|w| COUNTED.contains(&singular(w)))
    }

    /// Returns whether the value is its minimum.
    pub fn is_least(&self, value: f64) -> bool {
        self.schema.get("minimum").and_then(Value::as_f64) == Some(value)
    }

    /// Returns whether name, description, examples or pattern contain the letters of a code.
    pub fn speaks_of(&self, letters: &str) -> bool {
        let examples = self.schema.get("examples").map(Value::to_string).unwrap_or_default();
        let pattern = self.schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
        self.described()
            .iter()
            .any(|w| w == letters || w.trim_end_matches(|c: char| c.is_ascii_digit()) == letters)
            || words::fold(&examples).contains(letters)
            || words::fold(pattern).contains(letters)
    }

    /// Returns whether it is a required text that lists things with a number for each.
    pub fn lists_numbers(&self) -> bool {
        let describes = |words: &[&str]| self.described().iter().any(|word| words.contains(&word.as_str()));
        self.required
            && describes(&["lists", "list", "elenca", "elenco"])
            && describes(&["number", "quantity", "numero", "quantita"])
    }

    /// The kind of a text in this property.
    pub fn kind(&self) -> PropertyKind {
        match self.schema.get("format").and_then(Value::as_str) {
            Some("date") => return PropertyKind::Date,
            Some("date-time") => return PropertyKind::Moment,
            Some("time") => return PropertyKind::Time,
            Some("email") => return PropertyKind::Email,
            _ => {}
        }
        let last = self.names.last().map(String::as_str).unwrap_or_default();
        let of = self.names.len().checked_sub(2).and_then(|i| self.names.get(i)).map(String::as_str);
        let is = |list: &[&str], word: &str| list.contains(&word) || list.contains(&singular(word));
        if matches!(last, "email" | "mail" | "emails") {
            return PropertyKind::Email;
        }
        if is(PEOPLE, last) {
            return PropertyKind::Person;
        }
        if is(&["name", "nome"], last) {
            return match of {
                Some(of) if is(PEOPLE, of) || OF_PEOPLE.contains(&of) => PropertyKind::Person,
                None if self.describes_somebody() => PropertyKind::Person,
                _ => PropertyKind::Other,
            };
        }
        if is(PLACES, last) {
            return PropertyKind::Place;
        }
        if is(FREE, last) && !(last == "code" || last == "data") {
            return PropertyKind::Free;
        }
        if self.names_of_person() { PropertyKind::Person } else { PropertyKind::Other }
    }

    /// Whether a property called just `name` holds a person's name: its description is empty or mentions
    /// people.
    fn describes_somebody(&self) -> bool {
        let words = self.described();
        let plain = words.iter().filter(|w| w.chars().all(char::is_alphabetic) && w.len() > 3).count() < 2;
        plain || words.iter().take(8).any(|w| PEOPLE.contains(&w.as_str()) || PEOPLE.contains(&singular(w)))
    }

    /// "Who …", "Name of the guest", "username of the colleague".
    fn names_of_person(&self) -> bool {
        let head: Vec<&str> = self
            .described()
            .iter()
            .map(String::as_str)
            .filter(|w| {
                !matches!(
                    *w,
                    "the" | "of" | "a" | "an" | "il" | "la" | "del" | "della" | "di" | "l" | "'" | "s"
                )
            })
            .take(3)
            .collect();
        let person = |w: &&str| PEOPLE.contains(w) || PEOPLE.contains(&singular(w));
        match head.as_slice() {
            ["name" | "nome" | "names", rest @ ..] => rest.iter().take(1).any(person),
            [first, ..] => {
                matches!(*first, "who" | "whom" | "username" | "chi" | "recipient" | "destinatario")
            }
            [] => false,
        }
    }
}

/// The schema after resolving a reference, or the only alternative that is not null.
fn plain<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut at = schema;
    for _ in 0..4 {
        if let Some(to) = at.get("$ref").and_then(Value::as_str) {
            let Some(found) = to.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) else { break };
            at = found;
            continue;
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| at.get(*key)?.as_array());
        let mut real =
            choices.into_iter().flatten().filter(|c| c.get("type").and_then(Value::as_str) != Some("null"));
        match (real.next(), real.next()) {
            (Some(one), None) => at = one,
            _ => break,
        }
    }
    at
}
