//! Sentences for end users about a failure. The codes and messages of faults are for developers and operators: they name
//! addresses, responses and schemas.

use super::event::{Fault, Outcome};
use crate::sentences::{FailureKind, unknown_outcome};

impl FailureKind {
    /// The kind of a fault by its stable code and, for an HTTP response, its status. `None` for a code of a scene's
    /// own (such as `vacation.overlap`): its message is written for users.
    pub fn of(code: &str, status: Option<u16>) -> Option<Self> {
        let (area, rest) = code.split_once('.').unwrap_or((code, ""));
        Some(match (area, rest) {
            ("http", "status") => Self::of_status(status),
            ("http" | "tool" | "llm", "timeout") | ("run", "deadline" | "slow") => Self::Late,
            ("tool", "disabled" | "breaker_open" | "failing") => Self::Unavailable,
            ("http", "argument") | ("tool", "arguments") => Self::Invalid,
            ("tool", _) if rest.starts_with("arguments_") => Self::Invalid,
            ("approval", "refused") => Self::NotApproved,
            ("policy", "fallback_write") => Self::Unsupervised,
            ("tool" | "llm", "cancelled" | "interrupted") | ("step", "blocked") => Self::Stopped,
            ("scene" | "engine" | "session" | "budget", _) | ("summary", "busy") => Self::Busy,
            ("python" | "code", "time") | ("code", "total_time") => Self::Late,
            ("python", "conflict") => Self::Busy,
            ("python", "refused") => return None,
            ("python" | "code", _) => Self::Failed,
            (
                "flow",
                "no_edge" | "no_entry" | "max_node_steps" | "unknown_node" | "node_failed" | "unprepared",
            ) => Self::Failed,
            ("http" | "llm" | "store" | "sandbox", _) => Self::Unavailable,
            (
                "tool" | "step" | "run" | "level" | "reply" | "bound" | "plan" | "planner" | "executor"
                | "policy",
                _,
            ) => Self::Failed,
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
}

impl Fault {
    /// The sentence for users: its tool's own, or a neutral one. `None` if its message is written for users.
    pub fn user_sentence(&self, language: Option<&str>) -> Option<String> {
        let neutral = || FailureKind::of(&self.code, None).map(|kind| kind.sentence(language).to_owned());
        self.say.clone().or_else(neutral)
    }

    /// Returns what users read about it.
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
                // A neutral sentence would invite the user to try again, although the write may have been done.
                let internal = FailureKind::of(&error.code, None).is_some() || error.say.is_some();
                let own = error.say.as_deref().unwrap_or_default();
                internal.then(|| format!("{} {own}", unknown_outcome(language)).trim_end().to_owned())
            }
        }
    }

    /// Returns what users read about a call without a result; empty for a result.
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
            ("python.time", None, "The service did not answer in time; please try again later."),
            ("flow.no_edge", None, FailureKind::Failed.sentence(Some("en"))),
            ("code.error", None, FailureKind::Failed.sentence(Some("en"))),
            ("sandbox.busy", None, "The service is not available now; please try again later."),
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
