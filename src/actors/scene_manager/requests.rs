//! Appends the first event of each new run of a conversation, those that wait together in one commit.

use std::time::Duration;

use actix::prelude::*;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::SceneManager;
use super::callers::WaitingCaller;
use super::messages::{Acceptance, RequestMessage};
use super::runs::RunEntry;
use crate::conversation::{Input, NewRun};
use crate::crash;
use crate::run::{Envelope, Event, Fault, RunId};
use crate::store::{Record, SwitchKind};

/// When a drained tenant's client may ask again.
const DRAIN_RETRY: Duration = Duration::from_secs(30);

impl SceneManager {
    /// Appends the first event of each run by itself, since one that is rejected must not take others with
    /// it; one commit carries them all.
    pub(super) fn append(&mut self, runs: Vec<NewRun>, ctx: &mut Context<Self>) {
        let shared = self.options.shared.load_full();
        let journal = shared.journal.clone();
        let drained = shared.switches.load().get(SwitchKind::Tenant, self.tenant.as_str()).map(Fault::from);
        let drained = drained.map(|fault| fault.after(Some(DRAIN_RETRY)));
        let mut ids = Vec::new();
        let mut appends = Vec::new();
        for NewRun { caller, run, answers } in runs {
            let Some(WaitingCaller::Request(request)) = self.callers.remove(&caller) else { continue };
            // Only crash points look at them.
            let words = if cfg!(any(feature = "crash-points", debug_assertions)) {
                request.queued.request.clone()
            } else {
                String::new()
            };
            let (record, appended) = self.enter(run, *request, answers);
            self.callers.insert(caller, appended);
            ids.push(run);
            let (journal, drained) = (journal.clone(), drained.clone());
            appends.push(async move {
                if let Some(fault) = drained {
                    return Err(fault);
                }
                crash::point(crash::BEFORE, "run_queued", &words);
                let appended = journal.append(vec![record], true).await;
                crash::point(crash::AFTER, "run_queued", &words);
                appended.map_err(Into::into)
            });
        }
        let appended =
            |_: &mut Self, results| Input::Appended(ids.into_iter().zip::<Vec<_>>(results).collect());
        self.feed_later(join_all(appends), appended, ctx);
    }

    /// Enters a request among the live runs, so that it can be followed from its first event.
    fn enter(
        &mut self,
        run: RunId,
        request: RequestMessage,
        answers: Option<RunId>,
    ) -> (Record, WaitingCaller) {
        let mut queued = request.queued;
        queued.answers = queued.pending.as_ref().map_or(answers, |pending| pending.run);
        let (at, body) = (Timestamp::now(), Event::RunQueued(queued.clone()));
        let envelope = Envelope::of_run(run, &self.tenant, &self.session, 1, 0, at, body);
        let live = self.options.shared.load().live.clone();
        let (entered, watch) = live.register(run, queued.task, &self.tenant, &self.session);
        let entry = RunEntry::new(run, queued, entered, request.received, request.waiting);
        self.runs.insert(run, Box::new(entry));
        let (answer, answered) = oneshot::channel();
        let accepted = Box::new(Acceptance { watch, before: 0, answer: answered });
        (Record::Run(envelope.into()), WaitingCaller::Appended { reply: request.reply, accepted, answer })
    }
}
