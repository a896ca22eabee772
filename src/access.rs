//! Who may do what: a role, an action and whose thing it is, in one table.
//!
//! Runs, plans and approvals belong to the user of their `run_queued`, a conversation to that of its first.
//! What somebody may not see is told as if it were not there; what they see and may not do is refused.

use serde::{Deserialize, Serialize};

/// What a key is for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Works with what belongs to its own user.
    #[default]
    User,
    /// The same, and sees and decides what was put to people in its tenant.
    Approver,
    /// Reads everything of its tenant, and changes and starts nothing.
    Auditor,
    /// May do everything in its tenant but speak in another user's conversation.
    Admin,
    /// The one key of a chatbot: names its end user with each request, and acts with that user's rights.
    Service,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [Role::User, Role::Approver, Role::Auditor, Role::Admin, Role::Service];

    /// Its name on the wire, in the store and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Approver => "approver",
            Role::Auditor => "auditor",
            Role::Admin => "admin",
            Role::Service => "service",
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To start a run; in another's conversation, where it names one.
    Ask,
    /// To look at it.
    Read,
    /// To decide what waits in it.
    Decide,
    /// To change its plan.
    Change,
    /// To stop it.
    Stop,
    /// To carry it on.
    Resume,
    /// To erase it.
    Erase,
    /// To read what the whole tenant has used.
    ReadUsage,
}

/// Whose the thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// That of who asks.
    Own,
    /// Another user's, and something in it was put to people.
    PutToPeople,
    /// Another user's, or the whole tenant's.
    Others,
}

/// Whether it may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not, and the thing may be seen.
    Refused,
    /// It is told as if it were not there.
    Unseen,
}

/// Whether a role may do something with a thing.
pub fn may(role: Role, action: Action, whose: Whose) -> Verdict {
    use Verdict::{Allowed, Refused, Unseen};
    match (role, action, whose) {
        (Role::Auditor, Action::Read | Action::ReadUsage, _) => Allowed,
        (Role::Auditor, ..) => Refused,
        // Whoever speaks in a conversation is its user: also the administrator would be taken for them.
        (Role::Admin, Action::Ask, Whose::PutToPeople | Whose::Others) => Refused,
        (Role::Admin, ..) => Allowed,
        (Role::User | Role::Service, Action::ReadUsage, _) => Refused,
        (Role::Approver, Action::ReadUsage, _) => Allowed,
        (Role::User | Role::Service | Role::Approver, _, Whose::Own) => Allowed,
        (Role::User | Role::Service, ..) => Unseen,
        (Role::Approver, Action::Read | Action::Decide | Action::Change, Whose::PutToPeople) => Allowed,
        (Role::Approver, Action::Ask, _) => Unseen,
        (Role::Approver, _, Whose::PutToPeople) => Refused,
        (Role::Approver, _, Whose::Others) => Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: [Action; 8] = [
        Action::Ask,
        Action::Read,
        Action::Decide,
        Action::Change,
        Action::Stop,
        Action::Resume,
        Action::Erase,
        Action::ReadUsage,
    ];

    #[test]
    fn every_cell_of_the_table() {
        let mut table = String::new();
        for (name, whose) in
            [("own", Whose::Own), ("put to people", Whose::PutToPeople), ("others'", Whose::Others)]
        {
            for role in Role::ALL {
                let cells = ACTIONS.map(|action| match may(role, action, whose) {
                    Verdict::Allowed => "yes",
                    Verdict::Refused => "403",
                    Verdict::Unseen => "404",
                });
                table.push_str(&format!("{name:<13} {:<8} {}\n", role.name(), cells.join(" ")));
            }
        }
        // The columns: ask, read, decide, change, stop, resume, erase, read usage.
        insta::assert_snapshot!(table, @r"
        own           user     yes yes yes yes yes yes yes 403
        own           approver yes yes yes yes yes yes yes yes
        own           auditor  403 yes 403 403 403 403 403 yes
        own           admin    yes yes yes yes yes yes yes yes
        own           service  yes yes yes yes yes yes yes 403
        put to people user     404 404 404 404 404 404 404 403
        put to people approver 404 yes yes yes 403 403 403 yes
        put to people auditor  403 yes 403 403 403 403 403 yes
        put to people admin    403 yes yes yes yes yes yes yes
        put to people service  404 404 404 404 404 404 404 403
        others'       user     404 404 404 404 404 404 404 403
        others'       approver 404 404 404 404 404 404 404 yes
        others'       auditor  403 yes 403 403 403 403 403 yes
        others'       admin    403 yes yes yes yes yes yes yes
        others'       service  404 404 404 404 404 404 404 403
        ");
    }

    #[test]
    fn roles_are_known_by_their_names() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        assert_eq!(Role::named("root"), None);
    }
}
