//! Reads runs from the store without owning it, also while another process works with it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proscenium::config::LoadedConfig;
use proscenium::plan::{PlanStatus, TaskId};
use proscenium::run::{
    ApprovalId, DocumentId, Envelope, Event, RunId, RunState, RunStatus, SessionEvent, SessionId, TenantId,
};
use proscenium::store::{
    self, ApprovalFilter, ApprovalRow, DocumentOwner, DocumentRow, ErrorCode, MAX_PAGE, OpenDocument, Page,
    PlanFilter, PlanRow, RunFilter, RunRow, Store,
};
use proscenium::{Answer, MissingNodeDocument};
use secrecy::ExposeSecret;

use super::failure::Failure;
use super::ids::{IdPrefix, MIN_PREFIX, ambiguous};
use super::table::RunTableRow;
use super::{address, remote};

/// Maximum number of ids that are searched for a prefix.
const MAX_NAMED: u32 = 10_000;

/// Maximum number of suggested nodes of a flow.
const MAX_MISSING_NODES: u32 = 20;

/// The runs of one tenant.
#[derive(Debug, Clone)]
pub struct StoredRuns {
    store: Store,
    data_dir: PathBuf,
    tenant: TenantId,
    /// Whether an API key says which tenant it is.
    by_key: bool,
}

/// The first rows of a list, at most `limit`, read page by page. `id` is what the page after a row begins with.
async fn pages<Row, Id>(
    limit: u32,
    read: impl AsyncFn(&Page<Id>) -> Result<Vec<Row>, store::Error>,
    id: impl Fn(&Row) -> Id,
) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < limit as usize {
        let left = limit - rows.len() as u32;
        let page = Page { limit: left.min(MAX_PAGE), after: rows.last().map(&id) };
        let more = read(&page).await?;
        let is_last = more.len() < page.limit as usize;
        rows.extend(more);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

/// Opens the store for reading. The tenant is the configured one; while a server owns the data directory, it is
/// the tenant of the API key, or else the server's own.
///
/// # Errors
/// `auth.key` and `auth.expired` if the API key is not valid at the server that owns the data directory; the store's.
pub async fn open(loaded: &LoadedConfig) -> Result<StoredRuns, Failure> {
    let dir = &loaded.config.store.data_dir;
    let store = Store::open_read_only(dir).await?;
    let (data_dir, tenant) = (dir.clone(), loaded.config.auth.default_tenant.clone());
    let mut stored = StoredRuns { store, data_dir, tenant, by_key: false };
    // Only the address file of the owner counts: without a server, the key has no meaning.
    let none = || Failure::new(ErrorCode::InUse.as_str(), String::new());
    if let Ok(address) = address::find(dir, none())
        && stored.is_owned().await
    {
        stored.tenant = address.asked.map_or(stored.tenant, |asked| asked.tenant);
        if let Some(key) = remote::key() {
            stored = stored.of_key(key.expose_secret()).await?;
        }
    }
    Ok(stored)
}

/// Opens the store for reading the runs of a tenant; of the one of [`open`] if none is named. A user who can read the data
/// directory can read every tenant's runs; an API key that a server asks for shows those of its own tenant alone.
///
/// # Errors
/// `usage.tenant` if the API key is of another tenant; those of [`open`].
pub async fn open_of(loaded: &LoadedConfig, tenant: Option<TenantId>) -> Result<StoredRuns, Failure> {
    let stored = open(loaded).await?;
    match tenant {
        Some(tenant) if stored.by_key && tenant != stored.tenant => {
            let what =
                format!("the key in {} is of the tenant {}, not of {tenant}", remote::KEY, stored.tenant);
            Err(Failure::usage("usage.tenant", what).help("set it to a key of that tenant, or unset it"))
        }
        Some(tenant) => Ok(StoredRuns { tenant, ..stored }),
        None => Ok(stored),
    }
}

/// Refuses `--tenant` for a command that changes something, which is done for the caller's own tenant.
///
/// # Errors
/// `usage.tenant` if a tenant is named.
pub fn only_reads(tenant: Option<&TenantId>) -> Result<(), Failure> {
    let Some(tenant) = tenant else { return Ok(()) };
    let key = remote::KEY;
    Err(Failure::usage("usage.tenant", "--tenant is for commands that only show something").help(format!(
        "set PROSCENIUM__AUTH__DEFAULT_TENANT={tenant}, or while a server runs {key} to a key of that tenant"
    )))
}

impl StoredRuns {
    /// The runs of the key's tenant. An invalid key is refused as the server refuses it, so that no command shows
    /// another tenant's runs instead.
    async fn of_key(self, key: &str) -> Result<StoredRuns, Failure> {
        let refused = |code: &str, what: &str| Err(Failure::new(code, what).help(remote::KEY_HELP));
        match self.store.find_key(key).await? {
            Some(key) if key.is_expired(jiff::Timestamp::now()) => {
                refused("auth.expired", "the API key has expired")
            }
            Some(key) => Ok(StoredRuns { tenant: key.tenant, by_key: true, ..self }),
            None => refused("auth.key", "the API key is unknown or was revoked"),
        }
    }

    /// Returns whether a process currently owns the data directory.
    pub async fn is_owned(&self) -> bool {
        store::inspect(&self.data_dir).await.is_ok_and(|standing| standing.owner.is_some())
    }

    /// The tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// The documents, newest first; of one user, if it is given.
    pub async fn documents(&self, user: Option<&str>, limit: u32) -> Result<Vec<DocumentRow>, Failure> {
        let (owner, page) = (DocumentOwner { tenant: &self.tenant, user }, Page { limit, after: None });
        self.store.documents().list(&owner, &page).await.map_err(Failure::from)
    }

    /// A document, opened.
    pub async fn document(&self, id: DocumentId) -> Result<OpenDocument, Failure> {
        let owner = DocumentOwner::anyone(&self.tenant);
        let opened = self.store.documents().open(&owner, id).await?;
        opened.ok_or_else(|| super::documents::unknown(id))
    }

    /// The document of which the id is given, or a unique prefix.
    pub async fn document_named(&self, id: &IdPrefix, user: Option<&str>) -> Result<DocumentId, Failure> {
        if let Some(whole) = id.whole() {
            return Ok(DocumentId(whole));
        }
        let all = self.documents(user, MAX_NAMED).await?;
        id.only("document", all, |row| row.id.0).map(|row| row.id)
    }

    /// A run's status and the sequence number of its last event; `None` if there is no such run.
    pub async fn status(&self, run: RunId) -> Result<Option<(RunStatus, u64)>, Failure> {
        let row = self.store.run(&self.tenant, run).await?;
        Ok(row.map(|row| (row.status, row.last_seq)))
    }

    /// The answer document of a run, ended or not.
    pub async fn answer(&self, run: RunId) -> Result<Answer, Failure> {
        let journal = self.journal(run).await?;
        let unknown = || unknown(run);
        let cost = self.session_cost(&journal.first().ok_or_else(unknown)?.session).await?;
        Answer::of(run, &journal, cost).ok_or_else(unknown)
    }

    /// The newest nodes that were suggested for a flow.
    pub async fn missing_nodes(&self, flow: &str) -> Result<Vec<MissingNodeDocument>, Failure> {
        let rows = self.store.missing_nodes(&self.tenant, flow, None, MAX_MISSING_NODES).await;
        Ok(rows?.into_iter().map(MissingNodeDocument::from).collect())
    }

    /// The last runs, the newest first.
    pub async fn runs(&self, limit: u32) -> Result<Vec<RunTableRow>, Failure> {
        let page = Page { limit, after: None };
        let rows = self.store.runs(&self.tenant, &RunFilter::default(), &page).await?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let state = self.state(row.run).await?.1;
            runs.push(RunTableRow {
                run: row.run,
                at: row.created,
                status: row.status,
                session: row.session,
                error: state.error.map(|error| error.code),
                llm_calls: state.usage.calls,
                cost_nano_usd: state.usage.cost_nano_usd,
                request: row.request,
            });
        }
        Ok(runs)
    }

    /// The runs that need a person, the newest first, each with its open approvals.
    pub async fn parked(&self, limit: u32) -> Result<Vec<(RunRow, Vec<ApprovalRow>)>, Failure> {
        let filter = RunFilter { parked: true, ..RunFilter::default() };
        let page = Page { limit, after: None };
        let rows = self.store.runs(&self.tenant, &filter, &page).await?;
        let mut parked = Vec::with_capacity(rows.len());
        for row in rows {
            let open = ApprovalFilter { open_only: true, run: Some(row.run), ..ApprovalFilter::default() };
            let page = Page { limit: MAX_PAGE, after: None };
            let approvals = self.store.approvals(&self.tenant, &open, &page).await?;
            parked.push((row, approvals));
        }
        Ok(parked)
    }

    /// The other tenants of which runs wait for a person, in the order of their names; none where an API key says which
    /// tenant is shown.
    pub async fn other_waiting_tenants(&self) -> Result<BTreeSet<TenantId>, Failure> {
        if self.by_key {
            return Ok(BTreeSet::new());
        }
        let rows = self.store.unfinished_runs().await?;
        let waiting = rows.into_iter().filter(|row| row.status == RunStatus::Waiting);
        Ok(waiting.map(|row| row.tenant).filter(|tenant| *tenant != self.tenant).collect())
    }

    /// The run with an id, or with a unique prefix of one.
    pub async fn run_named(&self, prefix: &IdPrefix) -> Result<RunId, Failure> {
        if let Some(run) = prefix.whole() {
            return Ok(RunId(run));
        }
        let filter = RunFilter::default();
        let read = async |page: &Page<RunId>| self.store.runs(&self.tenant, &filter, page).await;
        let rows = pages(MAX_NAMED, read, |row| row.run).await?;
        prefix.only("run", rows.into_iter().map(|row| row.run), |run| run.0)
    }

    /// The conversation with a name, or with a unique beginning of one.
    pub async fn session_named(&self, name: &str) -> Result<SessionId, Failure> {
        let unknown = || {
            Failure::new("session.unknown", format!("there is no conversation {name:?}"))
                .help("`proscenium runs list` shows the conversation of each run")
        };
        let whole = SessionId::new(name).map_err(|_| unknown())?;
        if self.store.has_session(&self.tenant, &whole).await? {
            return Ok(whole);
        }
        if name.chars().count() < MIN_PREFIX {
            return Err(unknown());
        }
        let read = async |page: &Page<SessionId>| self.store.sessions(&self.tenant, page).await;
        let sessions =
            pages(MAX_NAMED, read, |row| row.session.clone()).await?.into_iter().map(|row| row.session);
        let mut named: Vec<SessionId> =
            sessions.filter(|session| session.as_str().starts_with(name)).collect();
        if named.len() > 1 {
            let names: Vec<String> = named.iter().map(ToString::to_string).collect();
            return Err(ambiguous("session", name, &names));
        }
        named.pop().ok_or_else(unknown)
    }

    /// The events of a conversation's own stream.
    pub async fn session_events(&self, session: &SessionId) -> Result<Vec<Envelope<SessionEvent>>, Failure> {
        self.store.session_events(&self.tenant, session).await.map_err(Failure::from)
    }

    /// The plan with an id, or with a unique prefix of one.
    pub async fn plan_named(&self, prefix: &IdPrefix) -> Result<PlanRow, Failure> {
        match prefix.whole() {
            Some(task) => self.plan(TaskId(task)).await,
            None => prefix.only("plan", self.plans(None, MAX_NAMED).await?, |row| row.task.0),
        }
    }

    /// The journal of a run, in order and not empty, and its fold.
    pub async fn run(&self, run: RunId) -> Result<(Vec<Envelope<Event>>, RunState), Failure> {
        let (journal, state) = self.state(run).await?;
        if journal.is_empty() {
            return Err(unknown(run));
        }
        Ok((journal, state))
    }

    /// The journal of a run, in order and not empty, unchecked by today's rules.
    pub async fn journal(&self, run: RunId) -> Result<Vec<Envelope<Event>>, Failure> {
        let journal = self.store.run_events(&self.tenant, run).await?;
        if journal.is_empty() { Err(unknown(run)) } else { Ok(journal) }
    }

    /// The last plans, the newest first.
    pub async fn plans(&self, shown: Option<&'static str>, limit: u32) -> Result<Vec<PlanRow>, Failure> {
        // Those that are not shown with a status of plans are stored as failed.
        let status = shown.map(|shown| PlanStatus::from_name(shown).unwrap_or(PlanStatus::Failed));
        let filter = PlanFilter { status, reported: shown, ..PlanFilter::default() };
        let read = async |page: &Page<TaskId>| self.store.plans(&self.tenant, &filter, page).await;
        pages(limit, read, |row| row.task).await
    }

    /// A plan's status as it is shown to people, which depends on how its run ended.
    pub async fn reported_plan_status(&self, row: &PlanRow) -> Result<&'static str, Failure> {
        let run = match row.status {
            PlanStatus::Failed => self.status(row.run).await?,
            _ => None,
        };
        Ok(run.map_or(row.status.name(), |(run, _)| run.reported_plan_status(row.status)))
    }

    /// Returns what the conversation of a run cost, in nano-USD.
    pub async fn session_cost(&self, session: &SessionId) -> Result<u64, Failure> {
        let usage = self.store.session_usage(&self.tenant, session).await?;
        Ok(usage.cost_nano_usd)
    }

    /// One plan's row.
    pub async fn plan(&self, task: TaskId) -> Result<PlanRow, Failure> {
        let row = self.store.plan(&self.tenant, task).await?;
        row.ok_or_else(|| unknown_plan(task))
    }

    /// Approvals, the oldest first; only the open ones unless `all`.
    pub async fn approvals(&self, all: bool, limit: u32) -> Result<Vec<ApprovalRow>, Failure> {
        let filter = ApprovalFilter { open_only: !all, ..ApprovalFilter::default() };
        let read = async |page: &Page<ApprovalId>| self.store.approvals(&self.tenant, &filter, page).await;
        pages(limit, read, |row| row.id).await
    }

    /// One approval.
    pub async fn approval(&self, id: ApprovalId) -> Result<ApprovalRow, Failure> {
        let row = self.store.approval(&self.tenant, id).await?;
        row.ok_or_else(|| {
            Failure::new("approval.unknown", format!("there is no approval {id}"))
                .help("`proscenium approvals list` lists pending approvals")
        })
    }

    /// The approval with an id, or with a unique prefix of one; open approvals are searched first.
    pub async fn approval_named(&self, text: &str) -> Result<ApprovalRow, Failure> {
        if let Ok(id) = text.parse() {
            return self.approval(id).await;
        }
        let help = "`proscenium approvals list` lists pending approvals";
        if text.chars().count() < MIN_PREFIX {
            let what = format!("give at least {MIN_PREFIX} characters of an approval's id, not {text:?}");
            return Err(Failure::usage("approval.ambiguous", what).help(help));
        }
        // The table shortens the run's id and leaves the ordinal: `01976c8e-0000.1`.
        let (run, ordinal) = text.split_once('.').unwrap_or((text, ""));
        let is_named = |row: &ApprovalRow| {
            let id = row.id;
            id.run.to_string().starts_with(run) && (ordinal.is_empty() || id.approval.to_string() == ordinal)
        };
        for all in [false, true] {
            let rows = self.approvals(all, MAX_NAMED).await?;
            let mut named: Vec<ApprovalRow> = rows.into_iter().filter(is_named).collect();
            if named.len() > 1 {
                let ids: Vec<String> = named.iter().map(|row| row.id.to_string()).collect();
                return Err(ambiguous("approval", text, &ids));
            }
            if let Some(row) = named.pop() {
                return Ok(row);
            }
        }
        Err(Failure::new("approval.unknown", format!("no approval's id begins with {text:?}")).help(help))
    }

    async fn state(&self, run: RunId) -> Result<(Vec<Envelope<Event>>, RunState), Failure> {
        let journal = self.store.run_events(&self.tenant, run).await?;
        let state = proscenium::fold(run, &journal);
        Ok((journal, state))
    }
}

fn unknown_plan(task: TaskId) -> Failure {
    Failure::new("plan.unknown", format!("there is no plan {task}"))
        .help("`proscenium plans list` shows the plans there are")
}

/// The error of an unknown run.
pub fn unknown(run: RunId) -> Failure {
    Failure::new("run.unknown", format!("there is no run {run}"))
        .help("`proscenium runs list` shows the runs of a tenant; `--tenant` names another one")
}
