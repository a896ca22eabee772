//! Waking from the store and going back to sleep, so that no request on its way is lost and no run is driven
//! twice.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::prelude::*;

use super::{SceneManager, carry, decide};
use crate::actors::driver::store_fault;
use crate::actors::runtime_task::run_as_task;
use crate::actors::session_registry::Asleep;
use crate::llm::budget::BudgetScope;
use crate::memory::Memory;
use crate::store;

impl SceneManager {
    fn wake(&mut self, ctx: &mut Context<Self>) {
        let (store, tenant, session) =
            (self.options.store.clone(), self.tenant.clone(), self.session.clone());
        let shared = self.options.shared.load();
        let (budget, journal) = (shared.gateway.guards().budget.clone(), shared.journal.clone());
        let carries_on = self.options.carries_on.load(Ordering::Acquire);
        let live = shared.live.clone();
        let read = run_as_task(async move {
            // Where the actor before this one died, its drivers go on by themselves.
            live.wait_until_session_idle(&tenant, &session).await;
            let left = carry::unfinished(&store, &journal, &tenant, &session, carries_on).await?;
            let events = store.session_events(&tenant, &session).await?;
            let owner = store.session_owner(&tenant, &session).await?;
            // What is not limited need not be added up.
            let spent = match budget.limit(BudgetScope::Session) {
                Some(_) => store.session_usage(&tenant, &session).await?.cost_nano_usd,
                None => 0,
            };
            Ok::<_, store::Error>((events, owner, left, budget.hold_session(&tenant, &session, spent)))
        });
        ctx.spawn(read.into_actor(self).map(|read, manager, ctx| match read {
            Ok((events, owner, left, account)) => {
                manager.owner = owner;
                manager.account = Some(account);
                let mut memory = Memory::new(manager.options.memory.clone());
                for event in &events {
                    memory.apply(&event.body);
                    manager.remembered = event.seq;
                }
                // Nobody else holds it before the first run is driven.
                manager.seq = Arc::new(tokio::sync::Mutex::new(manager.remembered));
                manager.memory = Some(memory);
                // What the conversation was told before it slept is what its last turn is not newer than.
                let last = events.last().map(|event| event.at);
                manager.parked = left.parked;
                // Of several that wait, the one that came last is what was said last.
                let newest = manager.parked.values().map(|parked| parked.since).max();
                for parked in manager.parked.values_mut() {
                    parked.told &=
                        last.is_none_or(|last| last < parked.since) && Some(parked.since) == newest;
                }
                manager.take_over(left.runs);
                manager.woken(ctx);
            }
            Err(error) => manager.give_up(error, ctx),
        }));
    }

    /// Does what came while the conversation woke.
    pub(super) fn woken(&mut self, ctx: &mut Context<Self>) {
        for wish in std::mem::take(&mut self.early_wishes) {
            self.carry_out(wish, ctx);
        }
        if self.erasing.is_empty() {
            let early = std::mem::take(&mut self.early);
            self.accept(early, ctx);
        } else {
            self.erase(None, ctx);
        }
    }

    /// Ends a conversation that cannot be read, or whose stream takes nothing more; no run of it is driven
    /// then, since another actor would have a second driver take that up. First the registry forgets it, as when it sleeps: so what is on its way here is answered, and what comes after that
    /// answer meets an actor that reads anew.
    pub(super) fn give_up(&mut self, error: store::Error, ctx: &mut Context<Self>) {
        self.memory = None;
        // What cannot be read can be erased.
        if !self.erasing.is_empty() {
            return self.erase(Some(error), ctx);
        }
        let forgotten = self.ask_to_sleep();
        ctx.spawn(forgotten.into_actor(self).map(|agreed, manager, ctx| {
            if !agreed {
                return manager.give_up(error, ctx);
            }
            for wish in std::mem::take(&mut manager.early_wishes) {
                let _ = wish.reply.send(Err(decide::refused(error.code(), error.to_string())));
            }
            for submit in std::mem::take(&mut manager.early) {
                let _ = submit.reply.send(Err(store_fault(&error)));
            }
            ctx.stop();
        }));
    }

    /// Asks the registry to be forgotten; it agrees if no request is on its way here.
    pub(super) fn sleep(&mut self, ctx: &mut Context<Self>) {
        // The timer may have fired just as a request came; whatever is at work proceeds afterwards.
        if self.busy || !self.queue.is_empty() || !self.taken_up.is_empty() {
            return;
        }
        let ask = self.ask_to_sleep();
        ctx.spawn(ask.into_actor(self).map(|agreed, manager, ctx| {
            if agreed && !manager.busy && manager.queue.is_empty() && manager.taken_up.is_empty() {
                ctx.stop();
            } else {
                manager.proceed(ctx);
            }
        }));
    }

    /// Asks the registry whether nothing is on its way here; where it agrees it has forgotten this actor.
    fn ask_to_sleep(&self) -> impl Future<Output = bool> + 'static + use<> {
        let wish = Asleep {
            tenant: self.tenant.clone(),
            session: self.session.clone(),
            life: self.life,
            received: self.received,
        };
        let registry = self.registry.clone();
        async move { registry.may_sleep(wish).await }
    }
}

impl Actor for SceneManager {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        if self.memory.is_none() {
            self.wake(ctx);
        }
    }
}
