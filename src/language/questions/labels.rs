//! What missing arguments are called in a question, without the formats and lists of values that a description has for
//! models.

use super::{common_label, join_list_with};
use crate::language::schema::{ArgumentField, ArgumentKind, EnumValue};
use crate::language::{Lang, detect, text};

/// Maximum length, in characters, of a description that a question quotes, and maximum number of values of a choice.
const MAX_CHARACTERS: usize = 80;
const MAX_VALUES: usize = 8;

/// The labels of missing arguments, no two of them equal.
pub(super) fn of(missing: &[&ArgumentField], lang: Lang) -> Vec<String> {
    let descriptions: Vec<&str> = missing.iter().map(|field| field.description.as_str()).collect();
    let written_in = detect(&descriptions.join(" ")).map(Lang::of);
    let labels: Vec<String> = missing.iter().map(|field| named(field, lang, written_in)).collect();
    let is_shared = |label: &String| labels.iter().filter(|other| *other == label).count() > 1;
    missing
        .iter()
        .zip(&labels)
        .map(|(field, label)| {
            let own = if is_shared(label) { apart(field, label, lang, written_in) } else { label.clone() };
            with_values(own, field, lang)
        })
        .collect()
}

/// A label without the values of a choice. `written_in` is the language of the descriptions, where it is known.
fn named(field: &ArgumentField, lang: Lang, written_in: Option<Lang>) -> String {
    if let Some(common) = common_label(field, lang) {
        return common.to_owned();
    }
    let about = matter(field);
    let everyday = everyday_name(field).map(|texts| lang.pick(texts).to_owned());
    let is_own = written_in == Some(lang) || written_in.is_none() && lang == Lang::En;
    let is_form = about.as_deref().is_some_and(|about| FORMS.contains(&first_word(about).as_str()));
    match (about, everyday) {
        (Some(about), None) if is_own => in_a_sentence(&about, lang),
        (Some(about), Some(_)) if is_own && !is_form => in_a_sentence(&about, lang),
        (_, Some(everyday)) => everyday,
        (Some(about), None) if written_in.is_none() => about,
        (Some(about), None) => format!("«{about}»"),
        (None, None) if lang == Lang::En => in_a_sentence(&name(field), lang),
        (None, None) => format!("«{}»", name(field)),
    }
}

/// The label of an argument whose everyday label another missing one has, too.
fn apart(field: &ArgumentField, label: &str, lang: Lang, written_in: Option<Lang>) -> String {
    match matter(field).filter(|_| written_in == Some(lang)) {
        Some(about) => in_a_sentence(&about, lang),
        None => format!("{label} («{}»)", name(field)),
    }
}

fn name(field: &ArgumentField) -> String {
    text::name_words(&field.name).join(" ")
}

/// What a description says that the argument is: its beginning, up to examples, formats and conditions; `None` if it only
/// lists the values.
fn matter(field: &ArgumentField) -> Option<String> {
    const OR: [&str; 4] = [" or ", " o ", " ou ", " oder "];
    let start = field.description.split(['.', ';', ':', '\n', '(', '`']).next().unwrap_or_default();
    let line = text::one_line(start);
    let parts: Vec<&str> = line.split(", ").collect();
    // "First name, family name or a part of one, as stated in the request"
    let list = parts.iter().position(|part| OR.iter().any(|or| part.contains(or))).unwrap_or(0);
    let about = parts[..=list].join(", ");
    let about = text::shorten_to_words(about.trim_matches([',', ' ']), MAX_CHARACTERS);
    let is_value = |value: &EnumValue| text::fold(&about).starts_with(&text::fold(&plain(value)));
    let lists_values = matches!(&field.kind, ArgumentKind::Enum(values) if values.iter().any(is_value));
    (!about.is_empty() && !lists_values).then_some(about)
}

/// A description as a part of a sentence: without a capital that only begins it, and in English with an article.
fn in_a_sentence(about: &str, lang: Lang) -> String {
    const WITHOUT_ARTICLE: &str = "the a an any each which what how who whom whose when where why whether from until till for at by \
in on to only your my its this that these those";
    let mut characters = about.chars();
    let (first, second) = (characters.next(), characters.next());
    let begins_a_word = second.is_none_or(|c| c.is_lowercase() || c == ' ' || c == '\'');
    let about = match first {
        Some(first) if begins_a_word && lang != Lang::De => {
            format!("{}{}", first.to_lowercase(), &about[first.len_utf8()..])
        }
        _ => about.to_owned(),
    };
    let opens = first_word(&about);
    let is_open = lang == Lang::En && !WITHOUT_ARTICLE.split_whitespace().any(|word| word == opens);
    if is_open { format!("the {about}") } else { about }
}

fn first_word(about: &str) -> String {
    text::fold(about.split_whitespace().next().unwrap_or_default())
}

/// The label with the values that the user can choose among.
fn with_values(label: String, field: &ArgumentField, lang: Lang) -> String {
    let ArgumentKind::Enum(choices) = &field.kind else { return label };
    let mut values: Vec<String> =
        choices.iter().take(MAX_VALUES).map(|value| shown(value, field, lang)).collect();
    if choices.len() > MAX_VALUES {
        return format!("{label} ({}, …)", values.join(", "));
    }
    values.dedup();
    let or = lang.pick([" o ", " or ", " ou ", " oder ", " o "]);
    format!("{label} ({})", join_list_with(&values, or))
}

/// A value of a choice as users read it: in Italian by a part of the description that means it and looks Italian.
fn shown(value: &EnumValue, field: &ArgumentField, lang: Lang) -> String {
    let is_italian =
        |words: &&Vec<String>| words.iter().all(|word| word.ends_with(['a', 'e', 'i', 'o', 'à']));
    let gloss = value.words.iter().find(is_italian).filter(|_| lang == Lang::It);
    // "carta di credito": the words of a gloss are without the small ones.
    let is_gloss = |part: &&str, gloss: &[String]| {
        let words: Vec<String> = text::norms(part).collect();
        (words.first(), words.last()) == (gloss.first(), gloss.last())
    };
    let parts = || field.description.split([',', '(', ')', '=', ':']).map(str::trim);
    let said = gloss.and_then(|gloss| parts().find(|part| is_gloss(part, gloss)));
    said.map_or_else(|| plain(value).replace('_', " "), str::to_owned)
}

fn plain(value: &EnumValue) -> String {
    value.value.as_str().map_or_else(|| value.value.to_string(), str::to_owned)
}

/// Words that begin a description of the form of a value, and not of its matter.
const FORMS: [&str; 5] = ["text", "string", "testo", "texte", "texto"];

/// What an argument is called by a word of its name, in Italian, English, French, German and Spanish (German in the
/// accusative).
fn everyday_name(field: &ArgumentField) -> Option<[&'static str; 5]> {
    let words = text::name_words(&field.name);
    let has = |listed: &&str| words.iter().any(|word| word == listed);
    let row = EVERYDAY_NAMES.iter().find(|(listed, _)| listed.iter().any(has));
    row.map(|(_, texts)| *texts).or(match field.kind {
        ArgumentKind::Person => Some(["la persona", "the person", "la personne", "die Person", "la persona"]),
        ArgumentKind::Place => Some(["il luogo", "the place", "le lieu", "den Ort", "el lugar"]),
        _ => None,
    })
}

/// The first row that has a word of the name counts: what a number or a name belongs to is before "number" and "name".
#[rustfmt::skip]
const EVERYDAY_NAMES: &[(&[&str], [&str; 5])] = &[
    (&["price", "cost", "prezzo"], ["il prezzo", "the price", "le prix", "den Preis", "el precio"]),
    (&["amount", "sum", "importo"], ["l'importo", "the amount", "le montant", "den Betrag", "el importe"]),
    (&["limit", "limite"], ["il limite", "the limit", "la limite", "das Limit", "el límite"]),
    (&["quantity", "qty", "pieces"], ["la quantità", "the quantity", "la quantité", "die Menge", "la cantidad"]),
    (&["currency", "valuta"], ["la valuta", "the currency", "la devise", "die Währung", "la moneda"]),
    (&["phone", "telephone", "mobile"], ["il numero di telefono", "the phone number", "le numéro de téléphone", "die Telefonnummer", "el número de teléfono"]),
    (&["title", "titolo"], ["il titolo", "the title", "le titre", "den Titel", "el título"]),
    (&["items", "products"], ["gli articoli", "the items", "les articles", "die Artikel", "los artículos"]),
    (&["item", "product"], ["l'articolo", "the item", "l'article", "den Artikel", "el artículo"]),
    (&["card"], ["la carta", "the card", "la carte", "die Karte", "la tarjeta"]),
    (&["account"], ["il conto", "the account", "le compte", "das Konto", "la cuenta"]),
    (&["plate", "targa"], ["la targa", "the number plate", "la plaque d'immatriculation", "das Kennzeichen", "la matrícula"]),
    (&["doctor"], ["il medico", "the doctor", "le médecin", "den Arzt oder die Ärztin", "el médico"]),
    (&["specialty", "speciality"], ["la specialità", "the specialty", "la spécialité", "das Fachgebiet", "la especialidad"]),
    (&["medicine", "drug"], ["il farmaco", "the medicine", "le médicament", "das Medikament", "el medicamento"]),
    (&["recipient"], ["il destinatario", "the recipient", "le destinataire", "den Empfänger", "el destinatario"]),
    (&["reader", "borrower"], ["il lettore", "the reader", "le lecteur", "den Leser", "el lector"]),
    (&["booking", "reservation"], ["il numero della prenotazione", "the booking number", "le numéro de la réservation", "die Buchungsnummer", "el número de la reserva"]),
    (&["order"], ["il numero dell'ordine", "the order number", "le numéro de la commande", "die Bestellnummer", "el número del pedido"]),
    (&["username", "user"], ["il nome utente", "the user name", "le nom d'utilisateur", "den Benutzernamen", "el nombre de usuario"]),
    (&["country"], ["il paese", "the country", "le pays", "das Land", "el país"]),
    (&["address"], ["l'indirizzo", "the address", "l'adresse", "die Adresse", "la dirección"]),
    (&["month", "mese"], ["il mese", "the month", "le mois", "den Monat", "el mes"]),
    (&["year", "anno"], ["l'anno", "the year", "l'année", "das Jahr", "el año"]),
    (&["days"], ["il numero di giorni", "the number of days", "le nombre de jours", "die Anzahl der Tage", "el número de días"]),
    (&["day"], ["il giorno", "the day", "le jour", "den Tag", "el día"]),
    (&["operation"], ["l'operazione", "the operation", "l'opération", "den Vorgang", "la operación"]),
    (&["class", "category", "type", "kind"], ["la categoria", "the category", "la catégorie", "die Kategorie", "la categoría"]),
    (&["reason", "purpose"], ["il motivo", "the reason", "le motif", "den Grund", "el motivo"]),
    (&["message", "text", "note", "comment"], ["il testo", "the text", "le texte", "den Text", "el texto"]),
    (&["name", "nome"], ["il nome", "the name", "le nom", "den Namen", "el nombre"]),
    (&["number", "numero"], ["il numero", "the number", "le numéro", "die Nummer", "el número"]),
    (&["code", "id", "codice"], ["il codice", "the code", "le code", "den Code", "el código"]),
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::language::question_for_missing_arguments;

    fn asked(properties: Value, language: &str) -> String {
        let names: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let parameters = json!({"type": "object", "required": names, "properties": properties});
        let question = question_for_missing_arguments(&parameters, &names, language, false);
        let list = question.split_once(':').unwrap().1.rsplit_once('.').unwrap().0;
        list.trim().to_owned()
    }

    #[test]
    fn formats_and_conditions_of_a_description_are_no_part_of_a_question() {
        for (name, description, language, expected) in [
            ("until", "The new end, HH:MM, 24 hours", "en", "the end time"),
            ("time", "The new time, HH:MM, 24 hours", "en", "the time"),
            ("date", "Day of the visit, YYYY-MM-DD", "de", "das Datum"),
            ("username", "User name, one word, as stated in the request.", "en", "the user name"),
            ("message", "The message, in the patient's words", "en", "the message"),
            ("text", "What is damaged, in the user's words", "en", "what is damaged"),
            ("text", "What is damaged, in the user's words", "de", "den Text"),
            ("limit", "The new limit in euros", "en", "the new limit in euros"),
            ("limit", "The new limit in euros", "fr", "la limite"),
            ("items", "Text that lists what is sold, with a number for each item", "es", "los artículos"),
            ("items", "Text that lists what is sold, with a number for each item", "en", "the items"),
            ("month", "The month, 1 (January) to 12 (December)", "it", "il mese"),
            (
                "who",
                "First name, family name or a part of one, as stated",
                "en",
                "the first name, family name or a part of one",
            ),
            ("pitch", "The pitch of the voice of the singer", "it", "«The pitch of the voice of the singer»"),
            ("pitch", "L'altezza della voce", "it", "l'altezza della voce"),
            ("pitch", "", "it", "«pitch»"),
            ("PNR", "PNR of the booking", "en", "the PNR of the booking"),
        ] {
            let schema = json!({name: {"type": "string", "description": description}});
            assert_eq!(asked(schema, language), expected, "{description} in {language}");
        }
    }

    #[test]
    fn values_to_choose_among_are_told_once() {
        let card = json!({"card": {"enum": ["debit", "credit", "prepaid"],
            "description": "Which card: debit (bancomat), credit (carta di credito) or prepaid (prepagata)"}});
        assert_eq!(asked(card.clone(), "en"), "which card (debit, credit or prepaid)");
        assert_eq!(asked(card.clone(), "it"), "la carta (debit, carta di credito o prepagata)");
        assert_eq!(asked(card, "de"), "die Karte (debit, credit oder prepaid)");
        let operation = json!({"operation": {"enum": ["transfer", "instant_transfer"],
            "description": "transfer (bonifico) or instant_transfer (bonifico istantaneo)"}});
        assert_eq!(asked(operation, "en"), "the operation (transfer or instant transfer)");
    }

    #[test]
    fn labels_of_two_arguments_differ() {
        let days = json!({
            "paid": {"type": "string", "format": "date", "description": "Day of the payment"},
            "sent": {"type": "string", "format": "date", "description": "Day of the shipment"},
        });
        assert_eq!(asked(days.clone(), "en"), "the day of the payment and the day of the shipment");
        assert_eq!(asked(days, "it"), "la data («paid») e la data («sent»)");
    }
}
