//! Access control: one table of role, action and ownership.
//!
//! Runs, plans and approvals belong to the user of their `run_queued` event, a conversation to the user of
//! its first run, a document to the user who uploaded it. Hidden resources give 404 as if they did not exist;
//! visible ones without permission give 403.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// The role of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[derive(Serialize, Deserialize, utoipa::ToSchema, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Works with its own user's resources.
    #[default]
    User,
    /// As `user`, and sees and decides whatever was sent for approval in its tenant.
    Approver,
    /// Reads everything in its tenant; cannot start or change anything.
    Auditor,
    /// May do everything in its tenant, except send messages in another user's conversation.
    Admin,
    /// For a chatbot with a single key: each request names its end user, and has that user's rights.
    Service,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] = [Role::User, Role::Approver, Role::Auditor, Role::Admin, Role::Service];

    /// Its name on the wire, in the store and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// An action on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessAction {
    /// Start a run; in the named conversation, if any.
    Ask,
    /// Read it.
    Read,
    /// Decide its approvals.
    Decide,
    /// Modify its plan.
    ModifyPlan,
    /// Cancel it.
    Cancel,
    /// Resume it.
    Resume,
    /// Erase it.
    Erase,
    /// Read the usage of the whole tenant.
    ReadUsage,
    /// Rate its plan.
    Rate,
    /// Read the tenant's learned plans.
    ReadLearned,
    /// Delete learned plans of the tenant.
    EraseLearned,
    /// Add a document.
    AddDocument,
}

/// The relation of the caller to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The caller.
    Own,
    /// Another user; part of it was sent for approval.
    SentForApproval,
    /// Another user, or the whole tenant.
    Others,
}

/// The result of an access check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessVerdict {
    /// The action is allowed.
    Allowed,
    /// The action is forbidden, but the resource is visible: 403.
    Forbidden,
    /// The resource is hidden: 404.
    Hidden,
}

/// Decides whether a role may do an action with a resource.
pub fn may(role: Role, action: AccessAction, whose: Ownership) -> AccessVerdict {
    use AccessVerdict::{Allowed, Forbidden, Hidden};
    match (role, action, whose) {
        (Role::Auditor, AccessAction::Read | AccessAction::ReadUsage | AccessAction::ReadLearned, _) => {
            Allowed
        }
        (Role::Auditor, ..) => Forbidden,
        // A message in a conversation counts as its user's, so even an administrator may not send one.
        (Role::Admin, AccessAction::Ask, Ownership::SentForApproval | Ownership::Others) => Forbidden,
        (Role::Admin, ..) => Allowed,
        // They hold words of other users.
        (_, AccessAction::ReadLearned | AccessAction::EraseLearned, _) => Forbidden,
        (Role::User | Role::Service, AccessAction::ReadUsage, _) => Forbidden,
        (Role::Approver, AccessAction::ReadUsage, _) => Allowed,
        (Role::User | Role::Service | Role::Approver, _, Ownership::Own) => Allowed,
        (Role::User | Role::Service, ..) => Hidden,
        (
            Role::Approver,
            AccessAction::Read | AccessAction::Decide | AccessAction::ModifyPlan | AccessAction::Rate,
            Ownership::SentForApproval,
        ) => Allowed,
        (Role::Approver, AccessAction::Ask, _) => Hidden,
        (Role::Approver, _, Ownership::SentForApproval) => Forbidden,
        (Role::Approver, _, Ownership::Others) => Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: [AccessAction; 12] = [
        AccessAction::Ask,
        AccessAction::Read,
        AccessAction::Decide,
        AccessAction::ModifyPlan,
        AccessAction::Cancel,
        AccessAction::Resume,
        AccessAction::Erase,
        AccessAction::ReadUsage,
        AccessAction::Rate,
        AccessAction::ReadLearned,
        AccessAction::EraseLearned,
        AccessAction::AddDocument,
    ];

    #[test]
    fn access_table_is_exactly_as_documented() {
        let mut table = String::new();
        for (name, whose) in [
            ("own", Ownership::Own),
            ("put to people", Ownership::SentForApproval),
            ("others'", Ownership::Others),
        ] {
            for role in Role::ALL {
                let cells = ACTIONS.map(|action| match may(role, action, whose) {
                    AccessVerdict::Allowed => "yes",
                    AccessVerdict::Forbidden => "403",
                    AccessVerdict::Hidden => "404",
                });
                table.push_str(&format!("{name:<13} {:<8} {}\n", role.name(), cells.join(" ")));
            }
        }
        // The columns: ask, read, decide, change, stop, resume, erase, read usage, rate, read learned, erase learned,
        // add document.
        insta::assert_snapshot!(table, @r"
        own           user     yes yes yes yes yes yes yes 403 yes 403 403 yes
        own           approver yes yes yes yes yes yes yes yes yes 403 403 yes
        own           auditor  403 yes 403 403 403 403 403 yes 403 yes 403 403
        own           admin    yes yes yes yes yes yes yes yes yes yes yes yes
        own           service  yes yes yes yes yes yes yes 403 yes 403 403 yes
        put to people user     404 404 404 404 404 404 404 403 404 403 403 404
        put to people approver 404 yes yes yes 403 403 403 yes yes 403 403 403
        put to people auditor  403 yes 403 403 403 403 403 yes 403 yes 403 403
        put to people admin    403 yes yes yes yes yes yes yes yes yes yes yes
        put to people service  404 404 404 404 404 404 404 403 404 403 403 404
        others'       user     404 404 404 404 404 404 404 403 404 403 403 404
        others'       approver 404 404 404 404 404 404 404 yes 404 403 403 404
        others'       auditor  403 yes 403 403 403 403 403 yes 403 yes 403 403
        others'       admin    403 yes yes yes yes yes yes yes yes yes yes yes
        others'       service  404 404 404 404 404 404 404 403 404 403 403 404
        ");
    }

    #[test]
    fn role_names_round_trip() {
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.name());
        }
        assert_eq!(Role::from_name("root"), None);
    }
}
