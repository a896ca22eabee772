//! What the server does by itself for what waits for people: it tells somebody, and what nobody decides in
//! time counts as refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;

use super::builder::Current;
use crate::actors::driver::store_fault;
use crate::actors::scene_manager::CommandMessage;
use crate::actors::session_registry;
use crate::notify::Messenger;
use crate::planner::{Command, Wish};
use crate::run::{ApprovalId, Fault};
use crate::store::{ApprovalRow, Code, Store};

/// How often it is looked for them.
const BETWEEN_PASSES: Duration = Duration::from_secs(1);
/// Most approvals that expire in one pass.
const MAX_A_PASS: usize = 256;
/// Most of them at once.
const AT_ONCE: usize = 8;
/// How long a run's answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one is left alone that could not be refused, and most that are.
const LEFT_ALONE: Duration = Duration::from_secs(60);
const MAX_LEFT_ALONE: usize = 4096;

/// Refuses what nobody has decided in time.
pub(super) struct Expiry {
    pub(super) store: Store,
    pub(super) registry: session_registry::Address,
    pub(super) current: Arc<ArcSwap<Current>>,
    /// Whether this process serves: only then it decides for others.
    pub(super) serves: Arc<AtomicBool>,
}

impl Expiry {
    /// A pass every second, until the task is dropped with its runtime.
    pub(super) async fn work(self) {
        let mut ticks = tokio::time::interval(BETWEEN_PASSES);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Those that could not be refused, and until when they are left alone.
        let mut stubborn: BTreeMap<ApprovalId, Instant> = BTreeMap::new();
        loop {
            ticks.tick().await;
            let expires_s = self.current.load().config.approval.expires_s;
            if expires_s == 0 || !self.serves.load(Ordering::Acquire) {
                continue;
            }
            if let Err(fault) = self.pass(Timestamp::now(), expires_s, &mut stubborn).await {
                if fault.code == Code::Stopped.as_str() {
                    return;
                }
                tracing::warn!(code = %fault.code, "what waits for people could not be read: {}", fault.message);
            }
        }
    }

    async fn pass(
        &self,
        now: Timestamp,
        expires_s: u64,
        stubborn: &mut BTreeMap<ApprovalId, Instant>,
    ) -> Result<(), Fault> {
        let Some(before) =
            i64::try_from(expires_s).ok().and_then(|s| now.checked_sub(SignedDuration::from_secs(s)).ok())
        else {
            return Ok(());
        };
        stubborn.retain(|_, until| *until > Instant::now());
        let limit = u32::try_from(MAX_A_PASS + stubborn.len()).unwrap_or(u32::MAX);
        let overdue =
            self.store.overdue_approvals(before, limit).await.map_err(|error| store_fault(&error))?;
        let overdue = overdue.into_iter().filter(|row| !stubborn.contains_key(&row.id)).take(MAX_A_PASS);
        let overdue: Vec<ApprovalRow> = overdue.collect();
        let refused = futures::stream::iter(overdue).map(|row| async move {
            let id = row.id;
            (id, self.refuse(row).await)
        });
        let refused: Vec<_> = refused.buffer_unordered(AT_ONCE).collect().await;
        for (id, result) in refused {
            match result {
                Ok(()) => tracing::info!(approval = %id, "nobody decided in time: it counts as refused"),
                // Somebody was just in time.
                Err(fault) if fault.code == "approval.decided" => {}
                Err(fault) => {
                    tracing::warn!(approval = %id, code = %fault.code, "it could not be refused: {}", fault.message);
                    if stubborn.len() < MAX_LEFT_ALONE {
                        stubborn.insert(id, Instant::now() + LEFT_ALONE);
                    }
                }
            }
        }
        Ok(())
    }

    async fn refuse(&self, row: ApprovalRow) -> Result<(), Fault> {
        let ApprovalId { run, approval } = row.id;
        let wish = Wish::Expire { approval };
        let command =
            Command { by: "expiry".to_owned(), note: None, wish, no_own_approval: false, keyed: false };
        let (reply, done) = oneshot::channel();
        self.registry.command(
            row.tenant,
            row.session,
            CommandMessage { run, command, reply, answer: None },
        )?;
        match tokio::time::timeout(PATIENCE, done).await {
            Ok(Ok(result)) => result.map_err(|refused| refused.fault),
            Ok(Err(_)) | Err(_) => {
                Err(Fault::new("run.not_reached", "the run did not take it in time; it is tried again"))
            }
        }
    }
}

/// Tells somebody of what waits.
pub(super) struct Teller {
    pub(super) messenger: Messenger,
    pub(super) current: Arc<ArcSwap<Current>>,
    /// Whether this process serves: only then it tells.
    pub(super) serves: Arc<AtomicBool>,
}

impl Teller {
    /// A pass every second, until the task is dropped with its runtime.
    pub(super) async fn work(self) {
        let mut ticks = tokio::time::interval(Messenger::BETWEEN);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.serves.load(Ordering::Acquire) {
                continue;
            }
            let current = self.current.load_full();
            let Some(target) = &current.webhook else { continue };
            if let Err(error) = self.messenger.pass(target, current.config.approval.expires_s).await {
                if error.code() == Code::Stopped.as_str() {
                    return;
                }
                tracing::warn!(code = error.code(), %error, "what nobody was told of could not be read");
            }
        }
    }
}
