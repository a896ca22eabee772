//! `keys`: makes, lists and revokes API keys and sets their roles, also while a server works with the data directory.

use std::io::{self, Write};
use std::path::Path;

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::store::{ApiKey, ApiKeySecret, DataDir, Error, ErrorCode, KeyRules, Store};
use serde::Serialize;

use super::args::KeysCommand;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::table::{self, TableLayout};
use super::text::one_line;

/// Runs the command.
pub async fn run<W: Write, E: Write>(
    what: KeysCommand,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
    errors: &mut Output<E>,
) -> Result<Exit, Failure> {
    let dir = &loaded.config.store.data_dir;
    match what {
        KeysCommand::Create { tenant, user, label, role, expires, no_own_approval, json } => {
            let user = user.unwrap_or_else(|| loaded.config.auth.default_user.clone());
            let store = open(dir).await?;
            let rules = KeyRules { no_own_approval, role, expires };
            let made = store.create_key_with(&tenant, &user, &label, rules).await;
            store.close().await;
            let (key, secret) = made?;
            created(out, errors, &key, &secret, json)?;
        }
        KeysCommand::List { tenant, json } => {
            let store = Store::open_read_only(dir).await?;
            let keys = store.keys(tenant.as_ref()).await;
            store.close().await;
            let keys = keys?;
            if json {
                output::document(out, &keys, false)?;
            } else {
                let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
                list(out, &keys, &zone, table::width())?;
            }
        }
        KeysCommand::SetRole { id, role } => {
            let id = id_in(&id).ok_or_else(unknown)?;
            let store = open_existing(dir).await?;
            let known = store.set_role(id, role).await;
            store.close().await;
            if !known? {
                return Err(unknown());
            }
            writeln!(out, "Key {id} has the role {}.", role.name())?;
            out.flush()?;
        }
        KeysCommand::Revoke { id } => {
            let id = id_in(&id).ok_or_else(unknown)?;
            let store = open_existing(dir).await?;
            let known = store.revoke_key(id).await;
            store.close().await;
            if !known? {
                return Err(unknown());
            }
            writeln!(out, "Key {id} is revoked.")?;
            out.flush()?;
        }
    }
    Ok(Exit::Completed)
}

/// Opens an existing store: a new one would have no keys, so none is created.
async fn open_existing(dir: &Path) -> Result<Store, Failure> {
    match Store::open_read_only(dir).await {
        Ok(reading) => {
            reading.close().await;
            open(dir).await.map_err(Failure::from)
        }
        Err(error) if error.kind() == ErrorCode::Absent => Err(unknown()),
        Err(error) if error.kind() == ErrorCode::OlderSchema => open(dir).await.map_err(Failure::from),
        Err(error) => Err(error.into()),
    }
}

/// Opens the store as its owner, or beside the process that owns it.
pub(super) async fn open(dir: &Path) -> Result<Store, Error> {
    match DataDir::open(dir) {
        Ok(owned) => Store::open(owned).await,
        Err(error) if error.kind() == ErrorCode::InUse => Store::open_shared(dir).await,
        Err(error) => Err(error),
    }
}

/// The id in an argument: an id, or by mistake a whole key. Anything else is never repeated in a message, because it
/// may be a secret.
fn id_in(given: &str) -> Option<&str> {
    let id = given.strip_prefix("psk_").unwrap_or(given);
    let id = id.split('_').next().unwrap_or(id);
    let fits = id.len() == 16 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(id)
}

fn unknown() -> Failure {
    Failure::new("key.unknown", "there is no key of that id").help("`proscenium keys list` shows their ids")
}

/// A key as `keys create --json` prints it.
#[derive(Serialize)]
struct Created<'k> {
    #[serde(flatten)]
    made: &'k ApiKey,
    #[serde(rename = "key")]
    whole: &'k str,
}

/// Prints the key, alone on standard output so that a script can keep it; what it may do goes to standard error.
fn created(
    out: &mut impl Write,
    errors: &mut impl Write,
    key: &ApiKey,
    secret: &ApiKeySecret,
    json: bool,
) -> io::Result<()> {
    if json {
        return output::document(out, &Created { made: key, whole: secret.expose() }, false);
    }
    writeln!(out, "{}", secret.expose())?;
    out.flush()?;
    writeln!(
        errors,
        "This key is not shown again: keep it where only its user can read it.\n\
         It is for {} of tenant {}; `proscenium keys revoke {}` ends it.",
        one_line(&key.user),
        key.tenant,
        key.id
    )?;
    writeln!(errors, "Its role is {}.", key.role.name())?;
    if let Some(at) = key.expires {
        writeln!(errors, "It expires at {at}.")?;
    }
    if key.no_own_approval {
        writeln!(errors, "It may not approve what {} has asked for.", one_line(&key.user))?;
    }
    errors.flush()
}

/// Writes the keys as a table; `width` is the terminal's, if there is one.
fn list(out: &mut impl Write, keys: &[ApiKey], zone: &TimeZone, width: Option<usize>) -> io::Result<()> {
    if keys.is_empty() {
        writeln!(out, "There are no keys.")?;
        return out.flush();
    }
    let time = |at: jiff::Timestamp| table::time(at, zone);
    let head = ["ID", "TENANT", "USER", "ROLE", "CREATED", "EXPIRES", "REVOKED", "OWN APPROVAL", "LABEL"]
        .map(str::to_owned);
    let rows = keys.iter().map(|key| {
        [
            key.id.clone(),
            key.tenant.to_string(),
            one_line(&key.user),
            role_text(key),
            time(key.created),
            key.expires.map_or_else(|| "-".to_owned(), time),
            key.revoked.map_or_else(|| "-".to_owned(), time),
            if key.no_own_approval { "no" } else { "yes" }.to_owned(),
            one_line(&key.label),
        ]
    });
    let layout = TableLayout { right: &[], optional: &[4, 7, 8], ids: None };
    table::aligned(out, head, rows, &layout, width)?;
    if keys.iter().any(|key| key.role_migrated) {
        writeln!(out, "\n(*) {MIGRATED}")?;
    }
    out.flush()
}

/// The note about keys that were created before there were roles.
pub(super) const MIGRATED: &str = "created before keys had roles, so it is an approver: it sees and decides pending \
    approvals of its tenant, and nothing else of other users; `proscenium keys set-role ID ROLE` sets another role, or \
    confirms this one";

fn role_text(key: &ApiKey) -> String {
    format!("{}{}", key.role.name(), if key.role_migrated { " (*)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_out_of_a_whole_key_and_nothing_else_is_an_id() {
        let id = "0123456789abcdef";
        assert_eq!(id_in(id), Some(id));
        assert_eq!(id_in(&format!("psk_{id}_{}", "f".repeat(64))), Some(id));
        for wrong in ["", "psk_", "0123456789abcde", "0123456789ABCDEF", "sk-something-else"] {
            assert_eq!(id_in(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn keys_are_listed_in_columns() {
        let key = |user: &str, revoked: Option<&str>, label: &str| ApiKey {
            id: "0123456789abcdef".to_owned(),
            tenant: proscenium::run::TenantId::new("acme").unwrap(),
            user: user.to_owned(),
            label: label.to_owned(),
            no_own_approval: revoked.is_some(),
            role: proscenium::access::Role::Approver,
            role_migrated: revoked.is_some(),
            expires: None,
            created: "2026-05-04T07:00:00Z".parse().unwrap(),
            revoked: revoked.map(|at| at.parse().unwrap()),
        };
        let keys = [key("keysersoze", None, "the chatbot"), key("山田", Some("2026-05-05T07:00:00Z"), "")];
        let mut out = Vec::new();
        let zone = TimeZone::get("Europe/Rome").unwrap();
        list(&mut out, &keys, &zone, None).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        ID                TENANT  USER        ROLE          CREATED              EXPIRES  REVOKED              OWN APPROVAL  LABEL
        0123456789abcdef  acme    keysersoze  approver      2026-05-04 09:00:00  -        -                    yes           the chatbot
        0123456789abcdef  acme    山田        approver (*)  2026-05-04 09:00:00  -        2026-05-05 09:00:00  no

        (*) created before keys had roles, so it is an approver: it sees and decides pending approvals of its tenant, and nothing else of other users; `proscenium keys set-role ID ROLE` sets another role, or confirms this one
        ");
        // On a terminal of 80 columns the ids stay whole: commands take no prefix of them.
        let mut out = Vec::new();
        list(&mut out, &keys, &zone, Some(80)).unwrap();
        let told = String::from_utf8(out).unwrap();
        insta::assert_snapshot!(told.split("\n\n").next().unwrap(), @r"
        ID                TENANT  USER        ROLE          EXPIRES  REVOKED
        0123456789abcdef  acme    keysersoze  approver      -        -
        0123456789abcdef  acme    山田        approver (*)  -        2026-05-05 09:00:00
        ");
    }
}
