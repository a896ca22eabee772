//! Sentences about what an answer does not mention.

/// The texts that introduce or follow the lines that an answer lacks, in one language.
pub(crate) struct OmissionTexts {
    language: &'static str,
    /// Precedes a part of the request that no scene serves, and what users read about a write that failed.
    pub(crate) unserved: &'static str,
    /// Precedes the tools whose calls a limit refused.
    pub(crate) cut: &'static str,
    /// Follows a write whose outcome is unknown.
    pub(crate) unknown: &'static str,
    /// Follows a write that was done and whose result is not as its tool declares.
    pub(crate) odd: &'static str,
    /// Precedes the time of an earlier result.
    pub(crate) as_of: &'static str,
    /// Follows that time and precedes the call.
    pub(crate) since_unavailable: &'static str,
    /// Precedes optional calls that failed and were left out.
    pub(crate) left_out: &'static str,
    /// Precedes tools that might have been needed, where no model was asked to decide.
    pub(crate) undecided: &'static str,
}

/// The languages of the shipped scenes; the first one is the fallback for all others.
const OMISSION_TEXTS: [OmissionTexts; 5] = [
    OmissionTexts {
        language: "en",
        unserved: "Not done:",
        cut: "Not everything was done; the limit of calls for one step was reached. Left out:",
        unknown: "it is not known whether this was done",
        odd: "done, but its result is not as expected",
        as_of: "As of",
        since_unavailable: "since the service is not available now:",
        left_out: "Left out, since it is not available now:",
        undecided: "Not done, since it was not decided whether it is needed:",
    },
    OmissionTexts {
        language: "it",
        unserved: "Non fatto:",
        cut: "Non è stato fatto tutto: è stato raggiunto il limite di chiamate di un passo. Mancano:",
        unknown: "non si sa se sia stato fatto",
        odd: "fatto, ma il risultato non è quello atteso",
        as_of: "Ultimo aggiornamento",
        since_unavailable: "perché ora il servizio non è disponibile:",
        left_out: "Tralasciato, perché ora non è disponibile:",
        undecided: "Non fatto, perché non è stato deciso se serva:",
    },
    OmissionTexts {
        language: "de",
        unserved: "Nicht erledigt:",
        cut: "Nicht alles wurde erledigt: die Höchstzahl an Aufrufen eines Schritts war erreicht. Es fehlt:",
        unknown: "es ist nicht bekannt, ob dies getan wurde",
        odd: "getan, doch das Ergebnis ist nicht wie erwartet",
        as_of: "Stand",
        since_unavailable: "da der Dienst zurzeit nicht verfügbar ist:",
        left_out: "Ausgelassen, da es zurzeit nicht verfügbar ist:",
        undecided: "Nicht getan, da nicht entschieden wurde, ob es nötig ist:",
    },
    OmissionTexts {
        language: "fr",
        unserved: "Non fait :",
        cut: "Tout n'a pas été fait : la limite d'appels d'une étape a été atteinte. Il manque :",
        unknown: "on ne sait pas si cela a été fait",
        odd: "fait, mais le résultat n'est pas celui attendu",
        as_of: "Dernière mise à jour",
        since_unavailable: "car le service est indisponible pour le moment :",
        left_out: "Omis, car indisponible pour le moment :",
        undecided: "Non fait, car il n'a pas été décidé si c'était nécessaire :",
    },
    OmissionTexts {
        language: "es",
        unserved: "No hecho:",
        cut: "No se ha hecho todo: se alcanzó el límite de llamadas de un paso. Falta:",
        unknown: "no se sabe si se hizo",
        odd: "hecho, pero el resultado no es el esperado",
        as_of: "Última actualización",
        since_unavailable: "porque el servicio no está disponible ahora:",
        left_out: "Omitido, porque ahora no está disponible:",
        undecided: "No hecho, porque no se decidió si hace falta:",
    },
];

impl OmissionTexts {
    /// The sentences of a language, or else the English ones.
    pub(crate) fn of(language: Option<&str>) -> &'static Self {
        let [first, ..] = &OMISSION_TEXTS;
        OMISSION_TEXTS.iter().find(|words| Some(words.language) == language).unwrap_or(first)
    }
}
