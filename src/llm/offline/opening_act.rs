//! Orders to change or to undo something that is there, and the tools that do so.

use super::lexicon;
use super::text::Token;

/// An act on something that is there, by the verb that opens a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpeningAct {
    Change,
    Undo,
    /// To give something back.
    Return,
    /// To give something back, by a verb that says so only with "back".
    GiveBack,
    /// To take something back: what was given, or what was asked for.
    TakeBack,
}

impl OpeningAct {
    /// The act that the verb at the beginning of `words` orders.
    pub fn of(words: &[Token]) -> Option<Self> {
        let (verb, rest) = words.split_first()?;
        // "Give the car back", and not "give me back pain relief".
        let is_back = || {
            let after = |token: &Token| !token.word || lexicon::is_stop_word(&token.norm) || token.digit();
            rest.iter()
                .position(|token| token.is(&["back"]))
                .is_some_and(|at| at == 0 || rest.get(at + 1).is_none_or(after))
        };
        match () {
            () if verb.is(&["take"]) && is_back() => Some(Self::TakeBack),
            () if verb.is(&["give", "bring", "hand"]) && is_back() => Some(Self::GiveBack),
            () if verb.among(CHANGE_VERBS) => Some(Self::Change),
            () if verb.among(UNDO_VERBS) => Some(Self::Undo),
            () if verb.among(RETURN_VERBS) => Some(Self::Return),
            () => None,
        }
    }

    /// Whether the verb alone says what the act is.
    pub fn is_in_verb(self) -> bool {
        !matches!(self, Self::GiveBack | Self::TakeBack)
    }

    /// Whether a tool whose name begins with this verb does it.
    pub fn is_done_by(self, verb: &str) -> bool {
        let verbs: &[&str] = match self {
            Self::Change => &[CHANGING_TOOLS],
            Self::Undo => &[UNDOING_TOOLS],
            Self::Return | Self::GiveBack => &[RETURNING_TOOLS],
            Self::TakeBack => &[RETURNING_TOOLS, UNDOING_TOOLS],
        };
        verbs.iter().flat_map(|verbs| verbs.split_whitespace()).any(|own| own == verb)
    }
}

/// Verbs in the names of tools that change something that is there.
const CHANGING_TOOLS: &str = "\
set change update edit modify move reschedule adjust put turn switch assign transfer rename extend renew shift alter patch save write";

/// Verbs in the names of tools that undo something that is there.
const UNDOING_TOOLS: &str = "\
cancel delete remove drop withdraw revoke void undo clear erase discard dismiss release revert purge forget stop end close \
unsubscribe unregister unbook";

/// Verbs that change something that is there.
pub(super) const CHANGE_VERBS: &str = "\
move reschedule postpone shift change modify edit alter extend shorten prolong delay sposta spostare spostami rimanda rinvia \
posticipa anticipa cambia cambiare modifica modificare prolunga allunga estendi accorcia riduci verschiebe verschieben andere andern \
verlangere verlangern verkurze deplace reporte decale modifie prolonge raccourcis mueve mover cambiar modificar aplaza extiende \
alarga acorta";

/// Verbs that undo something that is there.
const UNDO_VERBS: &str = "\
cancel delete remove withdraw revoke undo unbook annulla annullare annullami cancella cancellare cancellami elimina eliminare rimuovi \
rimuovere disdici disdire revoca storniere stornieren storno losche loschen entferne entfernen widerrufe annule annuler supprime \
supprimer retire cancela cancelar anula anular borra borrar elimina quita";

/// Verbs that give something back.
const RETURN_VERBS: &str = "return restituisci restituire restituisco rends rendre devuelve devolver";

/// Verbs in the names of tools that take or give something back.
const RETURNING_TOOLS: &str = "return refund take give hand bring release restore receive check";
