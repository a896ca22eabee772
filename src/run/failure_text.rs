//! What end users read about a failure. The codes and messages of faults are for developers and operators: they name
//! addresses, responses and schemas.

use super::event::{Fault, Outcome};

/// What a failure means for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// What was asked for does not exist.
    NotFound,
    /// The values that were given are not accepted.
    Invalid,
    /// The caller may not do this.
    Denied,
    /// It was refused for a reason that only the detail names.
    Refused,
    /// A person did not approve it.
    NotApproved,
    /// Too much is being asked for at the moment.
    Busy,
    /// There was no answer in time.
    Late,
    /// The service cannot be reached, or has a problem of its own.
    Unavailable,
    /// It was stopped, or its turn did not come.
    Stopped,
    /// A write that only rules had planned, because no model answered.
    Unsupervised,
    /// Anything else.
    Failed,
}

impl FailureKind {
    /// The kind of a fault by its stable code and, for an HTTP response, its status. `None` for a code of a scene's
    /// own (such as `vacation.overlap`): its message is written for users.
    pub fn of(code: &str, status: Option<u16>) -> Option<Self> {
        let (area, rest) = code.split_once('.').unwrap_or((code, ""));
        Some(match (area, rest) {
            ("http", "status") => Self::of_status(status),
            ("http" | "tool" | "llm", "timeout") | ("run", "deadline" | "slow") => Self::Late,
            ("http", "argument") | ("tool", "arguments") => Self::Invalid,
            ("tool", _) if rest.starts_with("arguments_") => Self::Invalid,
            ("approval", "refused") => Self::NotApproved,
            ("policy", "fallback_write") => Self::Unsupervised,
            ("tool" | "llm", "cancelled" | "interrupted") | ("step", "blocked") => Self::Stopped,
            ("scene" | "engine" | "session" | "budget", _) => Self::Busy,
            ("http" | "llm" | "store", _) => Self::Unavailable,
            ("tool" | "step" | "run" | "reply" | "bound" | "plan" | "planner" | "executor" | "policy", _) => {
                Self::Failed
            }
            _ => return None,
        })
    }

    fn of_status(status: Option<u16>) -> Self {
        match status {
            Some(400 | 413 | 414 | 415 | 422) => Self::Invalid,
            Some(401 | 403 | 407) => Self::Denied,
            Some(404 | 410) => Self::NotFound,
            Some(408 | 504) => Self::Late,
            Some(425 | 429) => Self::Busy,
            Some(402..=499) => Self::Refused,
            Some(500..) => Self::Unavailable,
            _ => Self::Failed,
        }
    }

    /// A sentence for users, in English for languages without one.
    pub fn sentence(self, language: Option<&str>) -> &'static str {
        pick(language, self.sentences())
    }

    /// In the order of [`pick`].
    fn sentences(self) -> [&'static str; 5] {
        match self {
            Self::NotFound => [
                "Nothing was found for this.",
                "Non è stato trovato nulla.",
                "Dazu wurde nichts gefunden.",
                "Rien n'a été trouvé.",
                "No se ha encontrado nada.",
            ],
            Self::Invalid => [
                "The details were not accepted; please check them.",
                "I dati non sono stati accettati: controllali, per favore.",
                "Die Angaben wurden nicht angenommen; bitte prüfen Sie sie.",
                "Les données n'ont pas été acceptées ; veuillez les vérifier.",
                "Los datos no se han aceptado; compruébelos, por favor.",
            ],
            Self::Denied => [
                "Access to this is not allowed.",
                "L'accesso non è consentito.",
                "Der Zugriff darauf ist nicht erlaubt.",
                "L'accès n'est pas autorisé.",
                "El acceso no está permitido.",
            ],
            Self::Refused => [
                "The request was refused.",
                "La richiesta è stata rifiutata.",
                "Die Anfrage wurde abgelehnt.",
                "La demande a été refusée.",
                "La solicitud ha sido rechazada.",
            ],
            Self::NotApproved => [
                "It was not approved, so nothing was changed.",
                "Non è stato approvato, quindi non è stato modificato nulla.",
                "Es wurde nicht genehmigt, daher wurde nichts geändert.",
                "Cela n'a pas été approuvé ; rien n'a donc été modifié.",
                "No se ha aprobado, así que no se ha cambiado nada.",
            ],
            Self::Busy => [
                "The service is busy; please try again in a little while.",
                "Il servizio è occupato: riprova tra poco.",
                "Der Dienst ist ausgelastet; bitte versuchen Sie es gleich noch einmal.",
                "Le service est occupé ; veuillez réessayer dans un instant.",
                "El servicio está ocupado; inténtelo de nuevo en unos momentos.",
            ],
            Self::Late => [
                "The service did not answer in time; please try again later.",
                "Il servizio non ha risposto in tempo: riprova più tardi.",
                "Der Dienst hat nicht rechtzeitig geantwortet; bitte versuchen Sie es später noch einmal.",
                "Le service n'a pas répondu à temps ; veuillez réessayer plus tard.",
                "El servicio no ha respondido a tiempo; inténtelo más tarde.",
            ],
            Self::Unavailable => [
                "The service is not available now; please try again later.",
                "Il servizio al momento non è disponibile: riprova più tardi.",
                "Der Dienst ist zurzeit nicht verfügbar; bitte versuchen Sie es später noch einmal.",
                "Le service n'est pas disponible pour le moment ; veuillez réessayer plus tard.",
                "El servicio no está disponible ahora; inténtelo más tarde.",
            ],
            Self::Stopped => [
                "This was not carried out.",
                "Questo non è stato eseguito.",
                "Dies wurde nicht ausgeführt.",
                "Ceci n'a pas été exécuté.",
                "Esto no se ha ejecutado.",
            ],
            Self::Unsupervised => [
                "The assistant works with limits at the moment, so nothing was written; please try again later.",
                "L'assistente al momento funziona in modo limitato, quindi non è stato scritto nulla: riprova più tardi.",
                "Der Assistent arbeitet zurzeit eingeschränkt, daher wurde nichts geschrieben; bitte versuchen Sie es später noch einmal.",
                "L'assistant fonctionne pour le moment de façon limitée ; rien n'a donc été écrit. Veuillez réessayer plus tard.",
                "El asistente funciona ahora de forma limitada, así que no se ha escrito nada; inténtelo más tarde.",
            ],
            Self::Failed => [
                "This could not be done.",
                "Non è stato possibile farlo.",
                "Das konnte nicht erledigt werden.",
                "Cela n'a pas pu être fait.",
                "No se ha podido hacer.",
            ],
        }
    }
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

impl Fault {
    /// The sentence for users: its tool's own, or a neutral one. `None` if its message is written for users.
    pub fn user_sentence(&self, language: Option<&str>) -> Option<String> {
        let neutral = || FailureKind::of(&self.code, None).map(|kind| kind.sentence(language).to_owned());
        self.say.clone().or_else(neutral)
    }

    /// What users read about it.
    pub fn user_text(&self, language: Option<&str>) -> String {
        self.user_sentence(language).unwrap_or_else(|| self.message.clone())
    }
}

impl Outcome {
    /// The sentence for users about a call without a result. `None` for a result, and if the fault's message is written
    /// for users.
    pub fn user_sentence(&self, language: Option<&str>) -> Option<String> {
        match self {
            Self::Ok { .. } => None,
            Self::Refused { error } | Self::Failed { error } => error.user_sentence(language),
            Self::Unknown { error } => {
                // A neutral sentence would invite to try again, and the write may have been done.
                let internal = FailureKind::of(&error.code, None).is_some() || error.say.is_some();
                let own = error.say.as_deref().unwrap_or_default();
                internal.then(|| format!("{} {own}", unknown_outcome(language)).trim_end().to_owned())
            }
        }
    }

    /// What users read about a call without a result; empty for a result.
    pub fn user_text(&self, language: Option<&str>) -> String {
        match (self.user_sentence(language), self) {
            (Some(sentence), _) => sentence,
            (None, Self::Refused { error } | Self::Failed { error } | Self::Unknown { error }) => {
                error.message.clone()
            }
            (None, Self::Ok { .. }) => String::new(),
        }
    }
}

/// The sentence about a write whose outcome is unknown.
fn unknown_outcome(language: Option<&str>) -> &'static str {
    pick(
        language,
        [
            "It is not known whether this was done; it has to be checked before it is repeated.",
            "Non si sa se sia stato fatto: va verificato prima di ripeterlo.",
            "Es ist nicht bekannt, ob dies getan wurde; vor einer Wiederholung muss es geprüft werden.",
            "On ne sait pas si cela a été fait ; il faut le vérifier avant de recommencer.",
            "No se sabe si se ha hecho; hay que comprobarlo antes de repetirlo.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_faults_have_neutral_sentences() {
        for (code, status, english) in [
            ("http.status", Some(404), "Nothing was found for this."),
            ("http.status", Some(403), "Access to this is not allowed."),
            ("http.status", Some(409), "The request was refused."),
            ("http.status", Some(422), "The details were not accepted; please check them."),
            ("http.status", Some(429), "The service is busy; please try again in a little while."),
            ("http.status", Some(503), "The service is not available now; please try again later."),
            ("http.unreachable", None, "The service is not available now; please try again later."),
            ("tool.timeout", None, "The service did not answer in time; please try again later."),
            ("tool.arguments", None, "The details were not accepted; please check them."),
        ] {
            let kind = FailureKind::of(code, status).unwrap();
            assert_eq!(kind.sentence(Some("en")), english, "{code} {status:?}");
            assert_eq!(kind.sentence(Some("zz")), english);
            assert_ne!(kind.sentence(Some("it-IT")), english);
        }
    }

    #[test]
    fn messages_of_scenes_are_for_users() {
        let fault = Fault::new("vacation.overlap", "those days are taken");
        assert_eq!(fault.user_sentence(Some("it")), None);
        assert_eq!(fault.user_text(Some("it")), "those days are taken");
        let fault = Fault { say: Some("Quei giorni sono presi.".into()), ..fault };
        assert_eq!(fault.user_text(Some("it")), "Quei giorni sono presi.");
    }

    #[test]
    fn unknown_outcome_does_not_invite_to_try_again() {
        let outcome = Outcome::Unknown { error: Fault::new("http.status", "POST http://x answered 503") };
        let text = outcome.user_text(Some("en"));
        assert!(text.contains("not known whether this was done"), "{text}");
        assert!(!text.contains("http") && !text.contains("try again"), "{text}");
    }
}
