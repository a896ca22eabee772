//! The built-in sentences that end users read and the journal keeps: English, Italian, German, French and Spanish.
//!
//! **Invariant:** a leaf without logic. A changed sentence applies to new events only: recorded ones keep theirs.

mod failures;
mod omissions;
mod recovery;

pub use failures::FailureKind;
pub(crate) use failures::{internal_error, unknown_outcome};
pub(crate) use omissions::OmissionTexts;
pub(crate) use recovery::ask_how_to_continue;

/// Introduces the call that a dry run would have made.
pub(crate) fn dry_run(language: Option<&str>) -> &'static str {
    match language {
        Some("it") => "Simulazione, non è stato scritto nulla. Sarebbe stato chiamato",
        Some("de") => "Probelauf, nichts wurde geschrieben. Gerufen worden wäre",
        Some("fr") => "Simulation, rien n'a été écrit. Aurait été appelé :",
        Some("es") => "Simulación, no se ha escrito nada. Se habría llamado a",
        _ => "Dry run, nothing was written. This would have been called:",
    }
}

/// Says that nothing was changed.
pub(crate) fn unchanged(language: Option<&str>) -> &'static str {
    pick(
        language,
        [
            "Nothing was changed.",
            "Non è stato modificato nulla.",
            "Es wurde nichts geändert.",
            "Rien n'a été modifié.",
            "No se ha cambiado nada.",
        ],
    )
}

/// Says that the request's own constraints do not allow `parts` of it.
pub(crate) fn beyond_constraints(language: Option<&str>, parts: &str) -> String {
    let lead = pick(
        language,
        [
            "Not done, since the constraints of the request do not allow it:",
            "Non fatto, perché i vincoli della richiesta non lo consentono:",
            "Nicht gemacht, weil die Vorgaben der Anfrage es nicht erlauben:",
            "Pas fait, car les contraintes de la demande ne le permettent pas :",
            "No se ha hecho, porque las restricciones de la petición no lo permiten:",
        ],
    );
    format!("{lead} «{parts}».")
}

/// Says that `parts` of a request were not done since what would do them is switched off.
pub(crate) fn not_available(language: Option<&str>, parts: &str) -> String {
    let lead = pick(
        language,
        [
            "Not done, since it is not available now:",
            "Non fatto, perché ora non è disponibile:",
            "Nicht erledigt, da es zurzeit nicht verfügbar ist:",
            "Non fait, car indisponible pour le moment :",
            "No se ha hecho, porque ahora no está disponible:",
        ],
    );
    format!("{lead} «{parts}».")
}

/// The sentence of [`beyond_constraints`] in runs with rules before revision 10.
pub(crate) fn not_allowed(language: Option<&str>, parts: &str) -> String {
    let lead = pick(
        language,
        [
            "Not done, since the request itself does not allow it:",
            "Non fatto, perché la richiesta stessa non lo consente:",
            "Nicht gemacht, weil die Anfrage selbst es nicht erlaubt:",
            "Pas fait, car la demande elle-même ne le permet pas :",
            "No se ha hecho, porque la propia petición no lo permite:",
        ],
    );
    format!("{lead} «{parts}».")
}

/// Says how much of the documents a summary covers.
pub(crate) fn summary_coverage(language: Option<&str>, percent: u64) -> String {
    let [before, after] = match language.and_then(|language| language.get(..2)) {
        Some("it") => ["Il riassunto copre circa il", "% dei documenti: il resto non è stato letto."],
        Some("de") => ["Die Zusammenfassung umfasst etwa", "% der Dokumente: der Rest wurde nicht gelesen."],
        Some("fr") => ["Le résumé couvre environ", "% des documents : le reste n'a pas été lu."],
        Some("es") => {
            ["El resumen abarca aproximadamente el", "% de los documentos: el resto no se ha leído."]
        }
        _ => ["The summary covers about", "% of the documents: the rest was not read."],
    };
    format!("{before} {percent}{after}")
}

/// The sentence in the language; they are in English, Italian, German, French and Spanish.
fn pick(language: Option<&str>, sentences: [&'static str; 5]) -> &'static str {
    let [en, it, de, fr, es] = sentences;
    match language.and_then(|language| language.get(..2)) {
        Some("it") => it,
        Some("de") => de,
        Some("fr") => fr,
        Some("es") => es,
        _ => en,
    }
}
