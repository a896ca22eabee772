//! Questions to the user, worded from the argument schemas.

mod labels;
mod labels_before_18;

use serde_json::Value;

use super::Lang;
use super::dates::RangeRole;
use super::schema::{ArgumentField, ArgumentKind};
use super::text;

pub(crate) fn ask_for_missing(missing: &[&ArgumentField], lang: Lang) -> String {
    ask_for(&labels::of(missing, lang), lang)
}

/// Asks for missing arguments as the rules before revision 18 do.
pub(crate) fn ask_for_missing_before_18(missing: &[&ArgumentField], lang: Lang) -> String {
    let labels: Vec<String> = missing.iter().map(|field| labels_before_18::label(field, lang)).collect();
    ask_for(&labels, lang)
}

fn ask_for(labels: &[String], lang: Lang) -> String {
    let list = join_list(labels, lang);
    let lead = lang.pick([
        "Per procedere mi serve ancora sapere:",
        "To go on I still need to know:",
        "Pour continuer, il me faut encore :",
        "Um fortzufahren, brauche ich noch:",
        "Para continuar necesito saber:",
    ]);
    let please = lang.pick([
        "Me lo puoi indicare?",
        "Can you tell me?",
        "Pouvez-vous me le dire ?",
        "Können Sie mir das sagen?",
        "¿Me lo puede decir?",
    ]);
    format!("{lead} {list}. {please}")
}

/// The name of documents among missing values.
pub(crate) const DOCUMENT: &str = "document";

/// Says that the document of a list which was named is deleted; before [`ask_for_document`].
pub(crate) fn deleted_document(lang: Lang) -> &'static str {
    lang.pick([
        "Quel documento è stato eliminato.",
        "That document was deleted.",
        "Ce document a été supprimé.",
        "Dieses Dokument wurde gelöscht.",
        "Ese documento se ha eliminado.",
    ])
}

/// Asks which documents are meant, of these with their names and bytes.
pub(crate) fn ask_for_document(documents: &[(String, u64)], more: u64, lang: Lang) -> String {
    if documents.is_empty() {
        let none = lang.pick([
            "Quale documento intendi? Non ce n'è ancora nessuno: aggiungine uno e nominalo.",
            "Which document do you mean? There is none yet: add one, and name it.",
            "De quel document s'agit-il ? Il n'y en a encore aucun : ajoutez-en un et nommez-le.",
            "Welches Dokument meinen Sie? Es gibt noch keines: Fügen Sie eines hinzu und nennen Sie es.",
            "¿Qué documento quiere decir? Aún no hay ninguno: añada uno y nómbrelo.",
        ]);
        return none.to_owned();
    }
    let lead = lang.pick([
        "Quale documento intendi? Rispondi con il nome o il numero:",
        "Which document do you mean? Reply with its name or number:",
        "De quel document s'agit-il ? Répondez par son nom ou son numéro :",
        "Welches Dokument meinen Sie? Antworten Sie mit Name oder Nummer:",
        "¿Qué documento quiere decir? Responda con su nombre o su número:",
    ]);
    let line = |(at, (name, bytes)): (usize, &(String, u64))| {
        format!("\n{}. {} ({} kB)", at + 1, name, bytes.div_ceil(1000))
    };
    let lines: String = documents.iter().enumerate().map(line).collect();
    let further = lang.pick([
        "altri documenti, che puoi indicare con il nome",
        "further documents, which you can name",
        "autres documents, que vous pouvez nommer",
        "weitere Dokumente, die Sie nennen können",
        "otros documentos, que puede nombrar",
    ]);
    let further = if more > 0 { format!("\n({further}: {more})") } else { String::new() };
    format!("{lead}{lines}{further}")
}

/// Asks for another day instead of `day`, which no calendar has.
pub(crate) fn ask_for_possible_day(day: &str, lang: Lang) -> String {
    let text = lang.pick([
        "non è una data: che giorno intendi?",
        "is not a date: which day do you mean?",
        "n'est pas une date : quel jour voulez-vous dire ?",
        "ist kein Datum: Welchen Tag meinen Sie?",
        "no es una fecha: ¿qué día quiere decir?",
    ]);
    format!("«{day}» {text}")
}

/// Asks whether to make a call, with the tool's name in words and all its arguments.
pub(crate) fn ask_to_confirm(tool: &str, arguments: &Value, lang: Lang) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values: Vec<String> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{}: {}", text::name_words(name).join(" "), plain(value)))
        .collect();
    let lead = lang.pick([
        "Vuoi che proceda con questo?",
        "Shall I do this?",
        "Dois-je faire ceci ?",
        "Soll ich das tun?",
        "¿Debo hacer esto?",
    ]);
    let call = text::name_words(tool).join(" ");
    if values.is_empty() {
        format!("{lead} {call}")
    } else {
        format!("{lead} {call} ({})", values.join(", "))
    }
}

/// Reports values that exceeded the maximum number of calls.
pub(crate) fn too_many_notice(values: &[String], lang: Lang) -> String {
    let lead = lang.pick([
        "Non ho ancora fatto, perché sono troppi in una volta:",
        "Not done yet, since these are too many at once:",
        "Pas encore fait, car c'est trop à la fois :",
        "Noch nicht erledigt, da es zu viele auf einmal sind:",
        "Aún no hecho, porque son demasiados a la vez:",
    ]);
    format!("{lead} {}.", join_list(values, lang))
}

/// Reports that no offered tool can execute the step.
pub(crate) fn no_tool_notice(lang: Lang) -> String {
    lang.pick([
        "Non ho uno strumento per fare questo.",
        "I have no tool to do this.",
        "Je n'ai pas d'outil pour faire cela.",
        "Ich habe kein Werkzeug dafür.",
        "No tengo una herramienta para hacer esto.",
    ])
    .to_owned()
}

/// Joins a list as in "a, b e c".
pub(crate) fn join_list(parts: &[String], lang: Lang) -> String {
    join_list_with(parts, lang.pick([" e ", " and ", " et ", " und ", " y "]))
}

fn join_list_with(parts: &[String], and: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{}{and}{last}", head.join(", ")),
    }
}

/// The everyday label of an argument, if there is one.
fn common_label(field: &ArgumentField, lang: Lang) -> Option<&'static str> {
    const PEOPLE_WORDS: &[&str] =
        &["people", "guests", "persons", "persone", "coperti", "ospiti", "attendees", "seats"];
    let texts = match &field.kind {
        ArgumentKind::Date => date_labels(field.role),
        ArgumentKind::DateTime => date_time_labels(field.role),
        ArgumentKind::Time => time_labels(field.role),
        ArgumentKind::Email => [
            "l'indirizzo e-mail",
            "the e-mail address",
            "l'adresse e-mail",
            "die E-Mail-Adresse",
            "la dirección de correo",
        ],
        ArgumentKind::Number(_) if field.named(PEOPLE_WORDS) => [
            "il numero di persone",
            "the number of people",
            "le nombre de personnes",
            "die Anzahl der Personen",
            "el número de personas",
        ],
        ArgumentKind::Number(_) if field.named(&["latitude", "latitudine"]) => {
            ["la latitudine", "the latitude", "la latitude", "die geografische Breite", "la latitud"]
        }
        ArgumentKind::Number(_) if field.named(&["longitude", "longitudine"]) => {
            ["la longitudine", "the longitude", "la longitude", "die geografische Länge", "la longitud"]
        }
        ArgumentKind::Place if field.named(&["city", "citta", "town"]) => {
            ["la città", "the city", "la ville", "die Stadt", "la ciudad"]
        }
        _ => return None,
    };
    Some(lang.pick(texts))
}

fn date_labels(role: RangeRole) -> [&'static str; 5] {
    match role {
        RangeRole::From => [
            "la data di inizio", "the start date", "la date de début", "das Anfangsdatum",
            "la fecha de inicio",
        ],
        RangeRole::To => {
            ["la data di fine", "the end date", "la date de fin", "das Enddatum", "la fecha de fin"]
        }
        RangeRole::Single => ["la data", "the date", "la date", "das Datum", "la fecha"],
    }
}

fn date_time_labels(role: RangeRole) -> [&'static str; 5] {
    match role {
        RangeRole::From => [
            "data e ora di inizio",
            "start date and time",
            "la date et l'heure de début",
            "Datum und Uhrzeit des Beginns",
            "fecha y hora de inicio",
        ],
        RangeRole::To => [
            "data e ora di fine",
            "end date and time",
            "la date et l'heure de fin",
            "Datum und Uhrzeit des Endes",
            "fecha y hora de fin",
        ],
        RangeRole::Single => {
            ["data e ora", "date and time", "la date et l'heure", "Datum und Uhrzeit", "fecha y hora"]
        }
    }
}

fn time_labels(role: RangeRole) -> [&'static str; 5] {
    match role {
        RangeRole::From => {
            ["l'ora di inizio", "the start time", "l'heure de début", "die Anfangszeit", "la hora de inicio"]
        }
        RangeRole::To => ["l'ora di fine", "the end time", "l'heure de fin", "die Endzeit", "la hora de fin"],
        RangeRole::Single => ["l'ora", "the time", "l'heure", "die Uhrzeit", "la hora"],
    }
}
