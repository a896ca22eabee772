//! Erasing a conversation: by its own actor, so that every request comes either before or after it.

use actix::prelude::*;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::SceneManager;
use crate::actors::driver::{SessionSeq, store_fault};
use crate::actors::runtime_task::run_as_task;
use crate::memory::Memory;
use crate::run::{Fault, SessionId};
use crate::store::{self, StreamId};

/// The wish to have the conversation erased, unless it has changed at `since` or later.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Erase {
    pub(crate) since: Option<Timestamp>,
    /// Whether anything was erased.
    pub(crate) reply: oneshot::Sender<Result<bool, Fault>>,
}

/// Why a conversation cannot be erased now.
pub(crate) fn session_busy(session: &SessionId) -> Fault {
    let message = format!(
        "session {session} cannot be erased while a request of it is at work or waits: wait for its end, or cancel it"
    );
    Fault::new(store::ErrorCode::SessionBusy.as_str(), message)
}

impl SceneManager {
    /// Erases the conversation, at which nothing is at work, for everybody who wishes so. What comes
    /// meanwhile waits and begins anew. `unread` says why it could not be read, if it could not.
    pub(super) fn erase(&mut self, unread: Option<store::Error>, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let wishes = std::mem::take(&mut self.erasing);
        // Somebody's wish goes before what is only old.
        let any = wishes.iter().any(|wish| wish.since.is_none());
        let since = if any { None } else { wishes.iter().filter_map(|wish| wish.since).max() };
        let (store, journal) = (self.options.store.clone(), self.options.shared.load().journal.clone());
        let (tenant, session) = (self.tenant.clone(), self.session.clone());
        let work = run_as_task(async move {
            // Its numbers begin again, also where the journal had refused one.
            journal.reopen(StreamId::Session(tenant.clone(), session.clone())).await?;
            store.erase_if_unchanged(&tenant, &session, since).await
        });
        // The next message is read when it is done.
        ctx.wait(work.into_actor(self).map(move |erased, manager, ctx| {
            if erased == Ok(true) {
                manager.begin_anew();
            }
            for wish in wishes {
                // Whoever wished it may have gone.
                let _ = wish.reply.send(erased.clone().map_err(|error| store_fault(&error)));
            }
            match unread {
                Some(error) if manager.memory.is_none() => manager.give_up(error, ctx),
                _ if manager.early.is_empty() => manager.sleep(ctx),
                _ => manager.woken(ctx),
            }
        }));
    }

    /// Goes on after a summary, which wishes to erase have ended early. A request that came meanwhile
    /// was accepted, and goes before them.
    pub(super) fn summarised(&mut self, ctx: &mut Context<Self>) {
        if !self.erasing.is_empty() && self.queue.is_empty() && self.taken_up.is_empty() {
            return self.erase(None, ctx);
        }
        for wish in std::mem::take(&mut self.erasing) {
            let _ = wish.reply.send(Err(session_busy(&self.session)));
        }
        self.proceed(ctx);
    }

    fn begin_anew(&mut self) {
        self.memory = Some(Memory::new(self.options.memory.clone()));
        self.owner = None;
        self.seq = SessionSeq::default();
        self.remembered = 0;
        self.early_turns.clear();
        self.parked.clear();
        // The account is forgotten with its last holder.
        self.account = None;
        let shared = self.options.shared.load();
        let budget = &shared.gateway.guards().budget;
        self.account = Some(budget.hold_session(&self.tenant, &self.session, 0));
    }
}

impl Handler<Erase> for SceneManager {
    type Result = ();

    fn handle(&mut self, wish: Erase, ctx: &mut Context<Self>) {
        self.received += 1;
        let run = self.busy && self.summary.is_none();
        let busy = run || !self.queue.is_empty() || !self.early.is_empty() || !self.taken_up.is_empty();
        if busy || self.erasing.len() >= self.options.max_queued {
            let _ = wish.reply.send(Err(session_busy(&self.session)));
        } else if let Some(summary) = &self.summary {
            // It is of no use any more; what it has cost is recorded first.
            summary.cancel();
            self.erasing.push(wish);
        } else if self.memory.is_some() {
            self.erasing.push(wish);
            self.erase(None, ctx);
        } else {
            self.erasing.push(wish);
        }
    }
}
