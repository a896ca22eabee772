//! Sentences about failures.

use super::pick;

/// The meaning of a failure for the user.
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
    /// A sentence for users, in English for languages without one.
    pub fn sentence(self, language: Option<&str>) -> &'static str {
        pick(language, self.sentences())
    }

    /// In the order of [`pick`].
    fn sentences(self) -> Sentences {
        match self {
            Self::NotFound => NOT_FOUND,
            Self::Invalid => INVALID,
            Self::Denied => DENIED,
            Self::Refused => REFUSED,
            Self::NotApproved => NOT_APPROVED,
            Self::Busy => BUSY,
            Self::Late => LATE,
            Self::Unavailable => UNAVAILABLE,
            Self::Stopped => STOPPED,
            Self::Unsupervised => UNSUPERVISED,
            Self::Failed => FAILED,
        }
    }
}

/// A sentence in the languages of [`pick`], in its order.
type Sentences = [&'static str; 5];

const NOT_FOUND: Sentences = [
    "Nothing was found for this.",
    "Non è stato trovato nulla.",
    "Dazu wurde nichts gefunden.",
    "Rien n'a été trouvé.",
    "No se ha encontrado nada.",
];

const INVALID: Sentences = [
    "The details were not accepted; please check them.",
    "I dati non sono stati accettati: controllali, per favore.",
    "Die Angaben wurden nicht angenommen; bitte prüfen Sie sie.",
    "Les données n'ont pas été acceptées ; veuillez les vérifier.",
    "Los datos no se han aceptado; compruébelos, por favor.",
];

const DENIED: Sentences = [
    "Access to this is not allowed.",
    "L'accesso non è consentito.",
    "Der Zugriff darauf ist nicht erlaubt.",
    "L'accès n'est pas autorisé.",
    "El acceso no está permitido.",
];

const REFUSED: Sentences = [
    "The request was refused.",
    "La richiesta è stata rifiutata.",
    "Die Anfrage wurde abgelehnt.",
    "La demande a été refusée.",
    "La solicitud ha sido rechazada.",
];

const NOT_APPROVED: Sentences = [
    "It was not approved, so nothing was changed.",
    "Non è stato approvato, quindi non è stato modificato nulla.",
    "Es wurde nicht genehmigt, daher wurde nichts geändert.",
    "Cela n'a pas été approuvé ; rien n'a donc été modifié.",
    "No se ha aprobado, así que no se ha cambiado nada.",
];

const BUSY: Sentences = [
    "The service is busy; please try again in a little while.",
    "Il servizio è occupato: riprova tra poco.",
    "Der Dienst ist ausgelastet; bitte versuchen Sie es gleich noch einmal.",
    "Le service est occupé ; veuillez réessayer dans un instant.",
    "El servicio está ocupado; inténtelo de nuevo en unos momentos.",
];

const LATE: Sentences = [
    "The service did not answer in time; please try again later.",
    "Il servizio non ha risposto in tempo: riprova più tardi.",
    "Der Dienst hat nicht rechtzeitig geantwortet; bitte versuchen Sie es später noch einmal.",
    "Le service n'a pas répondu à temps ; veuillez réessayer plus tard.",
    "El servicio no ha respondido a tiempo; inténtelo más tarde.",
];

const UNAVAILABLE: Sentences = [
    "The service is not available now; please try again later.",
    "Il servizio al momento non è disponibile: riprova più tardi.",
    "Der Dienst ist zurzeit nicht verfügbar; bitte versuchen Sie es später noch einmal.",
    "Le service n'est pas disponible pour le moment ; veuillez réessayer plus tard.",
    "El servicio no está disponible ahora; inténtelo más tarde.",
];

const STOPPED: Sentences = [
    "This was not carried out.",
    "Questo non è stato eseguito.",
    "Dies wurde nicht ausgeführt.",
    "Ceci n'a pas été exécuté.",
    "Esto no se ha ejecutado.",
];

const UNSUPERVISED: Sentences = [
    "The assistant works with limits at the moment, so nothing was written; please try again later.",
    "L'assistente al momento funziona in modo limitato, quindi non è stato scritto nulla: riprova più tardi.",
    "Der Assistent arbeitet zurzeit eingeschränkt, daher wurde nichts geschrieben; bitte versuchen Sie es später noch einmal.",
    "L'assistant fonctionne pour le moment de façon limitée ; rien n'a donc été écrit. Veuillez réessayer plus tard.",
    "El asistente funciona ahora de forma limitada, así que no se ha escrito nada; inténtelo más tarde.",
];

const FAILED: Sentences = [
    "This could not be done.",
    "Non è stato possibile farlo.",
    "Das konnte nicht erledigt werden.",
    "Cela n'a pas pu être fait.",
    "No se ha podido hacer.",
];

/// The sentence about a request that could not be completed because the server itself failed.
pub(crate) fn internal_error(language: Option<&str>) -> &'static str {
    pick(
        language,
        [
            "This could not be completed because of an internal error.",
            "Non è stato possibile completare la richiesta per un errore interno.",
            "Dies konnte wegen eines internen Fehlers nicht abgeschlossen werden.",
            "Cela n'a pas pu être mené à terme en raison d'une erreur interne.",
            "No se ha podido completar debido a un error interno.",
        ],
    )
}

/// The sentence about a write whose outcome is unknown.
pub(crate) fn unknown_outcome(language: Option<&str>) -> &'static str {
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
