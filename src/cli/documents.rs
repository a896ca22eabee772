//! `documents`: adds, lists, shows and deletes documents, in the data directory or by the server that owns it.

use std::io::{IsTerminal, Write};

use jiff::tz::TimeZone;
use proscenium::UploadedDocument;
use proscenium::config::LoadedConfig;
use proscenium::run::{DocumentId, TenantId};
use proscenium::store::{DataDir, DocumentOwner, ErrorCode, NewDocument, OpenDocument, Store};
use reqwest::Method;
use serde::Deserialize;

use super::args::{DocumentsArgs, DocumentsCommand};
use super::document_file::DocumentFile;
use super::failure::{Exit, Failure};
use super::output::{self, Output};
use super::remote::RemoteServer;
use super::table::{self, TableLayout};
use super::text::{clean, count, one_line};
use super::{address, stored_runs};

/// How much of a document is read at once, in bytes.
const PIECE_BYTES: u64 = 256 * 1024;

/// Who changes documents.
enum DocumentKeeper {
    /// This process, which owns the data directory.
    Here(Store),
    /// The server that owns it.
    There(RemoteServer),
}

/// Runs the command.
pub async fn run<W: Write>(
    args: DocumentsArgs,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let zone = loaded.config.execution.zone().unwrap_or(TimeZone::UTC);
    let user = args.user.as_deref();
    match args.what {
        DocumentsCommand::Add { file, name, json } => {
            let file = DocumentFile::open(&file, name.as_deref())?;
            let added = add(file, loaded, user.is_some()).await?;
            if json {
                output::document(out, &added, false)?;
            } else {
                writeln!(
                    out,
                    "{} is the document {} ({}).",
                    one_line(&added.name),
                    added.id,
                    size(added.bytes)
                )?;
            }
        }
        DocumentsCommand::List { limit, json } => {
            let rows = stored_runs::open(loaded).await?.documents(user, limit).await?;
            let documents: Vec<UploadedDocument> = rows.into_iter().map(UploadedDocument::from).collect();
            match json {
                true => output::document(out, &documents, false)?,
                false => list(out, &documents, &zone)?,
            }
        }
        DocumentsCommand::Show { id, content, json } => {
            let stored = stored_runs::open(loaded).await?;
            let document = stored.document(stored.document_named(&id, user).await?).await?;
            match (content, json) {
                (true, _) => write_content(out, &document).await?,
                (_, true) => {
                    output::document(out, &UploadedDocument::from(document.row().clone()), false)?;
                }
                _ => show(out, &document.row().clone().into(), &zone)?,
            }
        }
        DocumentsCommand::Delete { id } => {
            let stored = stored_runs::open(loaded).await?;
            let id = stored.document_named(&id, user).await?;
            let tenant = stored.tenant().clone();
            tell_deleted(out, id, &delete(id, &tenant, loaded).await?)?;
        }
    }
    out.flush()?;
    Ok(Exit::Completed)
}

/// The data directory, or the server that owns it. `as_user` says that the command line names the user.
async fn keeper(loaded: &LoadedConfig, as_user: bool) -> Result<DocumentKeeper, Failure> {
    let dir = &loaded.config.store.data_dir;
    match DataDir::open(dir) {
        Ok(owned) => {
            let store = Store::open(owned).await?;
            store.limit_tenant_bytes(loaded.config.store.max_tenant_bytes);
            Ok(DocumentKeeper::Here(store))
        }
        Err(error) if error.kind() == ErrorCode::InUse => {
            let address = address::find(dir, error.into())?;
            let stored = stored_runs::open(loaded).await?;
            Ok(DocumentKeeper::There(RemoteServer::at(address.url, stored, as_user)?))
        }
        Err(error) => Err(error.into()),
    }
}

async fn add(file: DocumentFile, loaded: &LoadedConfig, as_user: bool) -> Result<UploadedDocument, Failure> {
    let store = match keeper(loaded, as_user).await? {
        DocumentKeeper::There(server) => return server.add_document(file).await,
        DocumentKeeper::Here(store) => store,
    };
    let (auth, limits) = (&loaded.config.auth, loaded.config.documents.limits());
    let new = NewDocument {
        tenant: auth.default_tenant.clone(),
        user: auth.default_user.clone(),
        name: file.name.clone(),
        media: file.media,
    };
    let added = match store.documents().begin(new, limits).await {
        Ok(upload) => file.store(upload).await,
        Err(error) => Err(error.into()),
    };
    store.close().await;
    Ok(added?.document.into())
}

/// What a deletion says.
#[derive(Debug, Deserialize)]
struct Deleted {
    erased_runs: Vec<String>,
    remembering_sessions: Vec<String>,
}

fn tell_deleted(out: &mut impl Write, id: DocumentId, left: &Deleted) -> std::io::Result<()> {
    let runs = count(left.erased_runs.len(), "run");
    writeln!(out, "The document {id} is deleted, and {runs} that named it.")?;
    let sessions: Vec<String> = left.remembering_sessions.iter().map(|one| one_line(one)).collect();
    if sessions.is_empty() {
        return Ok(());
    }
    let sessions = sessions.join(", ");
    writeln!(out, "Requests about it, and the events of later runs, are still in: {sessions}")
}

async fn delete(id: DocumentId, tenant: &TenantId, loaded: &LoadedConfig) -> Result<Deleted, Failure> {
    match keeper(loaded, false).await? {
        DocumentKeeper::There(server) => {
            let reply = server.send(Method::DELETE, &format!("/api/documents/{id}"), None).await?;
            server.read(reply).await
        }
        DocumentKeeper::Here(store) => {
            let deleted = store.documents().delete(&DocumentOwner::anyone(tenant), id).await;
            store.close().await;
            let deleted = deleted?.ok_or_else(|| unknown(id))?;
            Ok(Deleted {
                erased_runs: deleted.runs.iter().map(ToString::to_string).collect(),
                remembering_sessions: deleted.sessions.iter().map(ToString::to_string).collect(),
            })
        }
    }
}

/// The failure for a document that the tenant does not have.
pub fn unknown(id: DocumentId) -> Failure {
    Failure::new("document.unknown", format!("there is no document {id}"))
        .help("`proscenium documents list` shows their ids")
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn list(out: &mut impl Write, documents: &[UploadedDocument], zone: &TimeZone) -> std::io::Result<()> {
    if documents.is_empty() {
        writeln!(out, "There are no documents. `proscenium documents add FILE` adds one.")?;
        return out.flush();
    }
    let head = ["DOCUMENT", "ADDED", "USED", "USER", "SIZE", "NAME", "HEADING"].map(str::to_owned);
    let body = documents.iter().map(|one| {
        [
            one.id.to_string(),
            table::time(one.created_at, zone),
            table::time(one.used_at, zone),
            one_line(&one.user),
            size(one.bytes),
            one_line(&one.name),
            one.heading.as_deref().map(one_line).unwrap_or_default(),
        ]
    });
    let layout = TableLayout { right: &[4], optional: &[2, 3, 1], ids: Some(0) };
    table::aligned(out, head, body, &layout, table::width())
}

fn show(out: &mut impl Write, one: &UploadedDocument, zone: &TimeZone) -> std::io::Result<()> {
    writeln!(out, "Document {}", one.id)?;
    writeln!(out, "  name      {}", one_line(&one.name))?;
    writeln!(out, "  type      {}", one.media_type.name())?;
    writeln!(out, "  bytes     {}", one.bytes)?;
    if let Some(heading) = &one.heading {
        writeln!(out, "  heading   {}", one_line(heading))?;
    }
    if let Some(language) = &one.language {
        writeln!(out, "  language  {language}")?;
    }
    writeln!(out, "  user      {}", one_line(&one.user))?;
    writeln!(out, "  added     {}", table::time(one.created_at, zone))?;
    writeln!(out, "  used      {}", table::time(one.used_at, zone))?;
    writeln!(out, "  sha256    {}", one.sha256)
}

/// Writes the content; on a terminal, without control characters.
async fn write_content(out: &mut impl Write, document: &OpenDocument) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut at = 0;
    loop {
        let part = document.text(at..at + PIECE_BYTES).await?;
        if part.text.is_empty() {
            return Ok(());
        }
        at = part.start + part.text.len() as u64;
        match is_terminal {
            true => write!(out, "{}", clean(&part.text))?,
            false => out.write_all(part.text.as_bytes())?,
        }
    }
}
