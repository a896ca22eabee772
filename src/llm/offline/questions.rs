//! Questions to the user, worded from what the schema says of the arguments.

use serde_json::Value;

use super::dates::RangeRole;
use super::lexicon;
use super::prompt::Lang;
use super::schema::{ArgumentField, ArgumentKind};
use super::text;

/// The question for what is missing.
pub(super) fn question(missing: &[&ArgumentField], lang: Lang) -> String {
    let labels: Vec<String> = missing.iter().map(|f| label(f, lang)).collect();
    let list = join(&labels, lang);
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

/// The question whether a call is to be made: the tool's name in words, and its arguments as they are.
pub(super) fn confirm(tool: &str, arguments: &Value, lang: Lang) -> String {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let told: Vec<String> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{}: {}", text::name_words(name).join(" "), shown(value)))
        .collect();
    let lead = lang.pick([
        "Vuoi che proceda con questo?",
        "Shall I do this?",
        "Dois-je faire ceci ?",
        "Soll ich das tun?",
        "¿Debo hacer esto?",
    ]);
    let call = text::name_words(tool).join(" ");
    if told.is_empty() { format!("{lead} {call}") } else { format!("{lead} {call} ({})", told.join(", ")) }
}

/// What is said of values for which there was no room.
pub(super) fn left(values: &[String], lang: Lang) -> String {
    let lead = lang.pick([
        "Non ho ancora fatto, perché sono troppi in una volta:",
        "Not done yet, since these are too many at once:",
        "Pas encore fait, car c'est trop à la fois :",
        "Noch nicht erledigt, da es zu viele auf einmal sind:",
        "Aún no hecho, porque son demasiados a la vez:",
    ]);
    format!("{lead} {}.", join(values, lang))
}

/// What is said where no tool is offered that could do the step.
pub(super) fn cannot(lang: Lang) -> String {
    lang.pick([
        "Non ho uno strumento per fare questo.",
        "I have no tool to do this.",
        "Je n'ai pas d'outil pour faire cela.",
        "Ich habe kein Werkzeug dafür.",
        "No tengo una herramienta para hacer esto.",
    ])
    .to_owned()
}

/// "a, b e c".
pub(super) fn join(parts: &[String], lang: Lang) -> String {
    let and = lang.pick([" e ", " and ", " et ", " und ", " y "]);
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{}{and}{last}", head.join(", ")),
    }
}

/// An argument in words: what everybody calls it, with the schema's own description where that is in
/// the user's language.
fn label(field: &ArgumentField, lang: Lang) -> String {
    let common = common(field, lang);
    let description = short(&field.description);
    let told = crate::llm::language::detect(&description).map_or(lang, Lang::of);
    let mut label = match common {
        Some(common) if told == lang && !description.is_empty() && field.kind != ArgumentKind::Date => {
            format!("{common} ({description})")
        }
        Some(common) => common.to_owned(),
        None if !description.is_empty() && told == lang => description,
        None if !description.is_empty() => format!("{} ({description})", translated(field, lang)),
        None => translated(field, lang),
    };
    if let ArgumentKind::Enum(choices) = &field.kind {
        let values: Vec<String> = choices
            .iter()
            .take(8)
            .map(|c| c.value.as_str().map_or_else(|| c.value.to_string(), str::to_owned))
            .collect();
        label.push_str(&format!(" ({})", values.join(", ")));
    }
    label
}

/// The first sentence of a description, without hints for machines.
fn short(description: &str) -> String {
    let first = description.split(['.', ';', '\n', '(']).next().unwrap_or_default();
    let first = first.split(", YYYY").next().unwrap_or(first).replace("YYYY-MM-DD", "").replace("HH:MM", "");
    text::shorten(text::one_line(&first).trim_end_matches([',', ' ', ':']), 80).to_owned()
}

fn common(field: &ArgumentField, lang: Lang) -> Option<&'static str> {
    let pick = |t: [&'static str; 5]| {
        Some(match lang {
            Lang::It => t[0],
            Lang::En => t[1],
            Lang::Fr => t[2],
            Lang::De => t[3],
            Lang::Es => t[4],
        })
    };
    match (&field.kind, field.role) {
        (ArgumentKind::Date, RangeRole::From) => pick([
            "la data di inizio",
            "the start date",
            "la date de début",
            "das Anfangsdatum",
            "la fecha de inicio",
        ]),
        (ArgumentKind::Date, RangeRole::To) => {
            pick(["la data di fine", "the end date", "la date de fin", "das Enddatum", "la fecha de fin"])
        }
        (ArgumentKind::Date, RangeRole::Single) => {
            pick(["la data", "the date", "la date", "das Datum", "la fecha"])
        }
        (ArgumentKind::DateTime, RangeRole::From) => pick([
            "data e ora di inizio",
            "start date and time",
            "la date et l'heure de début",
            "Datum und Uhrzeit des Beginns",
            "fecha y hora de inicio",
        ]),
        (ArgumentKind::DateTime, RangeRole::To) => pick([
            "data e ora di fine",
            "end date and time",
            "la date et l'heure de fin",
            "Datum und Uhrzeit des Endes",
            "fecha y hora de fin",
        ]),
        (ArgumentKind::DateTime, RangeRole::Single) => {
            pick(["data e ora", "date and time", "la date et l'heure", "Datum und Uhrzeit", "fecha y hora"])
        }
        (ArgumentKind::Time, RangeRole::From) => pick([
            "l'ora di inizio",
            "the start time",
            "l'heure de début",
            "die Anfangszeit",
            "la hora de inicio",
        ]),
        (ArgumentKind::Time, RangeRole::To) => {
            pick(["l'ora di fine", "the end time", "l'heure de fin", "die Endzeit", "la hora de fin"])
        }
        (ArgumentKind::Time, RangeRole::Single) => {
            pick(["l'ora", "the time", "l'heure", "die Uhrzeit", "la hora"])
        }
        (ArgumentKind::Email, _) => pick([
            "l'indirizzo e-mail",
            "the e-mail address",
            "l'adresse e-mail",
            "die E-Mail-Adresse",
            "la dirección de correo",
        ]),
        (ArgumentKind::Number(_), _)
            if field.named(&[
                "people",
                "guests",
                "persons",
                "persone",
                "coperti",
                "ospiti",
                "attendees",
                "seats",
            ]) =>
        {
            pick([
                "il numero di persone",
                "the number of people",
                "le nombre de personnes",
                "die Anzahl der Personen",
                "el número de personas",
            ])
        }
        (ArgumentKind::Place, _) if field.named(&["city", "citta", "town"]) => {
            pick(["la città", "the city", "la ville", "die Stadt", "la ciudad"])
        }
        _ => None,
    }
}

/// The words of the name, each in the user's language where the dictionary has it.
fn translated(field: &ArgumentField, lang: Lang) -> String {
    let words: Vec<String> = text::name_words(&field.name)
        .iter()
        .map(|word| {
            if lang != Lang::It {
                return word.clone();
            }
            let known = text::features(word);
            let row = known.concepts.first().map(|c| lexicon::concept_words(*c)).unwrap_or_default();
            let italian = row
                .iter()
                .find(|w| crate::llm::language::detect(w) == Some("it") || w.ends_with(['o', 'a', 'e', 'i']));
            italian.map_or_else(|| word.clone(), |w| (*w).to_owned())
        })
        .collect();
    words.join(" ")
}
