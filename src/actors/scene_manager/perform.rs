//! Performing the side effects of the conversation, one function each.

use actix::prelude::*;

use super::SceneManager;
use crate::actors::idle_conversations::{SHORT_STREAM, UnloadMessage};
use crate::actors::runtime_task::run_as_task;
use crate::actors::session_registry::SleepRequest;
use crate::actors::stream_end::SharedStreamEnd;
use crate::conversation::{Input, SideEffect};
use crate::store::StreamId;

impl SceneManager {
    /// Performs a side effect. The result is an input if it is known at once.
    pub(super) fn perform(&mut self, effect: SideEffect, ctx: &mut Context<Self>) -> Option<Input> {
        match effect {
            SideEffect::Load => self.load(ctx),
            SideEffect::Append(runs) => self.append(runs, ctx),
            SideEffect::Accept { caller, .. } => self.accept(caller),
            SideEffect::Refuse { caller, fault, is_shed } => self.refuse(caller, fault, is_shed),
            SideEffect::DecideByWords { caller, decision } => self.decide_by_words(caller, decision),
            SideEffect::Deliver { caller, run } => return self.deliver(caller, run),
            SideEffect::ReadRun { run, attempt } => self.read_run(run, attempt, ctx),
            SideEffect::Drive { run, commands } => return self.drive(run, commands, ctx),
            SideEffect::Finish { run, callers, fault } => self.finish(run, callers, fault),
            SideEffect::Summarise(job) => self.summarise(job, ctx),
            SideEffect::HurrySummary => {
                if let Some(summary) = &self.summary {
                    summary.hurry();
                }
            }
            SideEffect::CancelSummary => {
                if let Some(summary) = &self.summary {
                    summary.cancel();
                }
            }
            SideEffect::AppendFact { caller, fact } => self.append_fact(caller, fact, ctx),
            SideEffect::ReplyStated { caller, fact } => self.reply_stated(caller, fact),
            SideEffect::Erase { since } => self.erase(since, ctx),
            SideEffect::ReplyErased { caller, erased } => self.reply_erased(caller, erased),
            SideEffect::Hold { caller } => {
                let released = self.reply_held(caller);
                // An error means that it was dropped, which is how it ends.
                let work = async move { drop(released.await) };
                self.feed_later(work, |_: &mut Self, ()| Input::Released, ctx);
            }
            SideEffect::Reset => {
                self.end = SharedStreamEnd::default();
                self.open_account();
            }
            SideEffect::ReplyReady { caller } => self.reply_ready(caller),
            SideEffect::ReplyResumed { caller } => self.reply_resumed(caller),
            SideEffect::StartTimer => {
                let elapsed = |manager: &mut Self, ctx: &mut Context<Self>| {
                    (manager.timer, manager.idle_place) = (None, None);
                    manager.feed(Input::IdleElapsed, ctx);
                };
                self.timer = Some(ctx.run_later(self.options.idle, elapsed));
                if self.state.last_known() <= SHORT_STREAM {
                    self.idle_place = Some(self.options.idle_conversations.enter(ctx.address().recipient()));
                }
            }
            SideEffect::CancelTimer => self.stop_timer(ctx),
            SideEffect::RequestSleep { received } => self.request_sleep(received, ctx),
            SideEffect::Stop => ctx.stop(),
        }
        None
    }

    fn stop_timer(&mut self, ctx: &mut Context<Self>) {
        self.idle_place = None;
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
    }

    fn erase(&self, since: Option<jiff::Timestamp>, ctx: &mut Context<Self>) {
        let (store, journal) = (self.options.store.clone(), self.options.shared.load().journal.clone());
        let (tenant, session) = (self.tenant.clone(), self.session.clone());
        let work = run_as_task(async move {
            // Its sequence numbers begin again, also if the journal had rejected one.
            journal.reopen(StreamId::Session(tenant.clone(), session.clone())).await?;
            store.erase_if_unchanged(&tenant, &session, since).await
        });
        let erased = |_: &mut Self, erased: Result<bool, _>| Input::Erased(erased.map_err(Into::into));
        self.feed_later(work, erased, ctx);
    }

    fn request_sleep(&self, received: u64, ctx: &mut Context<Self>) {
        let (tenant, session) = (self.tenant.clone(), self.session.clone());
        let request = SleepRequest { tenant, session, generation: self.generation, received };
        let registry = self.registry.clone();
        let agreed = async move { registry.may_sleep(request).await };
        let input = |_: &mut Self, agreed| if agreed { Input::SleepAgreed } else { Input::SleepRefused };
        self.feed_later(agreed, input, ctx);
    }
}

impl Handler<UnloadMessage> for SceneManager {
    type Result = ();

    /// As if the timer had elapsed, unless it was stopped since.
    fn handle(&mut self, _: UnloadMessage, ctx: &mut Context<Self>) {
        if self.timer.is_some() {
            self.stop_timer(ctx);
            self.feed(Input::IdleElapsed, ctx);
        }
    }
}
