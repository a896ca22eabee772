//! Why the conversation refuses something.

use crate::language::Lang;
use crate::run::{ApprovalId, Fault, SessionId};

/// There is no room for a request.
pub(crate) fn queue_full(max_queued: usize) -> Fault {
    let message = format!(
        "{max_queued} requests of this conversation are waiting already; wait for an answer before sending more"
    );
    Fault::new("session.queue_full", message)
}

/// There is no room for another conversation.
pub(crate) fn sessions_full(max_awake: usize) -> Fault {
    let message = format!("{max_awake} conversations are loaded, which is the limit; try again later");
    Fault::new("engine.sessions_full", message)
}

/// There is no room for a command.
pub(crate) fn too_many_commands() -> Fault {
    Fault::new("run.too_many_commands", "too many decisions about this run wait; try again in a moment")
}

/// The conversation cannot be erased now.
pub(crate) fn session_busy(session: &SessionId) -> Fault {
    let message = format!(
        "session {session} cannot be erased while one of its requests is in progress or waiting: wait for its end, or cancel it"
    );
    Fault::new("store.session_busy", message)
}

/// The conversation is being erased.
pub(super) fn being_erased(session: &SessionId) -> Fault {
    Fault::new("store.session_busy", format!("session {session} is being erased"))
}

/// The conversation's stream has events that are not known here, so it is read again before anything else happens.
pub(crate) fn behind(session: &SessionId) -> Fault {
    let message = format!("session {session} is being read again; try again in a moment");
    Fault::new("session.behind", message)
}

/// The conversation belongs to another user, for whom it does not exist.
pub(super) fn unknown_session(session: &SessionId) -> Fault {
    Fault::new("session.unknown", format!("there is no session `{session}`"))
}

/// The driver of a run panicked each time.
pub(super) fn crashed() -> Fault {
    let message = "the run stopped with an internal error (its driver ended with an internal error each \
                   time); what it did is in its events";
    Fault::new("run.crashed", message)
}

/// A yes or a no, while several decisions are open.
pub(super) fn ambiguous(approvals: &[String]) -> Fault {
    let message = format!(
        "{} decisions wait in this conversation: say which one is meant, with POST /api/approvals/{{id}} and one of {}",
        approvals.len(),
        approvals.join(", ")
    );
    Fault::new("approval.ambiguous", message)
}

/// A reply to a decision that is neither a yes nor a no.
pub(super) fn undecided(approval: ApprovalId, language: Lang) -> Fault {
    let text = language.pick([
        "è ancora aperta e nulla è stato fatto. Rispondi solo sì o no; per chiedere altro, rispondi prima no",
        "is still open, and nothing was done. Reply with only yes or no; to ask for something else, say no first",
        "est toujours ouverte et rien n'a été fait. Répondez seulement oui ou non ; pour demander autre chose, répondez d'abord non",
        "ist noch offen, und nichts wurde getan. Antworten Sie nur mit ja oder nein; für etwas anderes zuerst mit nein",
        "sigue abierta y no se ha hecho nada. Responda solo sí o no; para pedir otra cosa, responda primero no",
    ]);
    Fault::new("approval.ambiguous", format!("{} {approval} {text}", approval_word(language)))
}

/// A reply to a question about a list that does not say clearly how the list is to be changed.
pub(super) fn unclear_change(approval: ApprovalId, language: Lang) -> Fault {
    let text = language.pick([
        "è ancora aperta e nulla è stato fatto. Rispondi sì o no, oppure di' come cambiare l'elenco con i nomi che vi compaiono: «senza NOME», «anche NOME», «solo NOME»",
        "is still open, and nothing was done. Reply with yes or no, or change the list by the names that were shown: \"without NAME\", \"also NAME\", \"only NAME\"",
        "est toujours ouverte et rien n'a été fait. Répondez oui ou non, ou changez la liste avec les noms affichés : « sans NOM », « aussi NOM », « seulement NOM »",
        "ist noch offen, und nichts wurde getan. Antworten Sie mit ja oder nein, oder ändern Sie die Liste mit den gezeigten Namen: „ohne NAME“, „auch NAME“, „nur NAME“",
        "sigue abierta y no se ha hecho nada. Responda sí o no, o cambie la lista con los nombres mostrados: «sin NOMBRE», «también NOMBRE», «solo NOMBRE»",
    ]);
    Fault::new("approval.ambiguous", format!("{} {approval} {text}", approval_word(language)))
}

fn approval_word(language: Lang) -> &'static str {
    language.pick(["L'approvazione", "The approval", "L'approbation", "Die Genehmigung", "La aprobación"])
}
