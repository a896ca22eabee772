//! Background work for pending approvals: notifies the webhook, and refuses approvals that were not decided in
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::oneshot;

use super::builder::ActiveConfig;
use crate::actors::scene_manager::CommandMessage;
use crate::actors::session_registry;
use crate::notify::WebhookNotifier;
use crate::planner::Command;
use crate::run::{ApprovalId, Fault, RESTORED};
use crate::store::{ApprovalRow, ErrorCode, Store};
use crate::telemetry::run_context;

/// Time between two passes.
const BETWEEN_PASSES: Duration = Duration::from_secs(1);
/// Maximum number of approvals that expire in one pass.
const MAX_PER_PASS: usize = 256;
/// Maximum number of concurrent refusals.
const MAX_CONCURRENT: usize = 8;
/// How long to wait for a run's reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Backoff after a failed refusal, and the maximum number of approvals in backoff.
const FAILURE_BACKOFF: Duration = Duration::from_secs(60);
const MAX_BACKED_OFF: usize = 4096;

/// Refuses approvals that were not decided in time.
pub(super) struct ApprovalExpiry {
    pub(super) store: Store,
    pub(super) registry: session_registry::Address,
    pub(super) current: Arc<ArcSwap<ActiveConfig>>,
    /// Whether this process serves requests. Only then may approvals expire.
    pub(super) is_serving: Arc<AtomicBool>,
}

impl ApprovalExpiry {
    /// Runs a pass every second, until the task is dropped with its runtime.
    pub(super) async fn run_forever(self) {
        let mut ticks = tokio::time::interval(BETWEEN_PASSES);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Approvals in backoff, and until when.
        let mut backed_off: BTreeMap<ApprovalId, Instant> = BTreeMap::new();
        loop {
            ticks.tick().await;
            let expires_s = self.current.load().config.approval.expires_s;
            if expires_s == 0 || !self.is_serving.load(Ordering::Acquire) {
                continue;
            }
            if let Err(fault) = self.pass(Timestamp::now(), expires_s, &mut backed_off).await {
                if fault.code == ErrorCode::Stopped.as_str() {
                    return;
                }
                tracing::warn!(code = %fault.code, "cannot read overdue approvals: {}", fault.message);
            }
        }
    }

    async fn pass(
        &self,
        now: Timestamp,
        expires_s: u64,
        backed_off: &mut BTreeMap<ApprovalId, Instant>,
    ) -> Result<(), Fault> {
        let Some(before) =
            i64::try_from(expires_s).ok().and_then(|s| now.checked_sub(SignedDuration::from_secs(s)).ok())
        else {
            return Ok(());
        };
        backed_off.retain(|_, until| *until > Instant::now());
        let limit = u32::try_from(MAX_PER_PASS + backed_off.len()).unwrap_or(u32::MAX);
        let overdue = self.store.overdue_approvals(before, limit).await?;
        let overdue = overdue.into_iter().filter(|row| !backed_off.contains_key(&row.id)).take(MAX_PER_PASS);
        let overdue: Vec<ApprovalRow> = overdue.collect();
        let refused = futures::stream::iter(overdue).map(|row| async move {
            let (id, lines) = (row.id, run_context(row.id.run, &row.session, &row.tenant));
            (id, lines, self.refuse(row).await)
        });
        let refused: Vec<_> = refused.buffer_unordered(MAX_CONCURRENT).collect().await;
        for (id, lines, result) in refused {
            let _context = lines.entered();
            match result {
                Ok(()) => tracing::info!(approval = %id, "approval expired: it counts as refused"),
                // Somebody decided just in time.
                Err(fault) if fault.code == "approval.decided" => {}
                Err(fault) => {
                    if fault.code != RESTORED {
                        tracing::warn!(approval = %id, code = %fault.code, "cannot refuse an expired approval: {}", fault.message);
                    }
                    if backed_off.len() < MAX_BACKED_OFF {
                        backed_off.insert(id, Instant::now() + FAILURE_BACKOFF);
                    }
                }
            }
        }
        Ok(())
    }

    async fn refuse(&self, row: ApprovalRow) -> Result<(), Fault> {
        let ApprovalId { run, approval } = row.id;
        let command = Command::expire(approval);
        let (reply, done) = oneshot::channel();
        self.registry.command(
            row.tenant,
            row.session,
            CommandMessage { run, command, reply, answer: None },
        )?;
        match tokio::time::timeout(REPLY_TIMEOUT, done).await {
            Ok(Ok(result)) => result.map_err(|refused| refused.fault),
            Ok(Err(_)) | Err(_) => {
                Err(Fault::new("run.not_reached", "the run did not reply in time; this is retried"))
            }
        }
    }
}

/// Notifies the webhook of pending approvals.
pub(super) struct ApprovalNotifier {
    pub(super) messenger: WebhookNotifier,
    pub(super) current: Arc<ArcSwap<ActiveConfig>>,
    /// Whether this process serves requests. Only then does it send notifications.
    pub(super) is_serving: Arc<AtomicBool>,
}

impl ApprovalNotifier {
    /// Runs a pass every second, until the task is dropped with its runtime.
    pub(super) async fn run_forever(self) {
        let mut ticks = tokio::time::interval(WebhookNotifier::BETWEEN);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if !self.is_serving.load(Ordering::Acquire) {
                continue;
            }
            let current = self.current.load_full();
            let Some(target) = &current.webhook else { continue };
            if let Err(error) = self.messenger.send_pending(target, current.config.approval.expires_s).await {
                if error.code() == ErrorCode::Stopped.as_str() {
                    return;
                }
                tracing::warn!(code = error.code(), %error, "cannot read pending notifications");
            }
        }
    }
}
