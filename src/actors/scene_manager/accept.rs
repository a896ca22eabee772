//! A request's way into the conversation's queue: it is accepted when it is in the journal.

use std::time::Instant;

use actix::prelude::*;
use futures::future::join_all;
use jiff::Timestamp;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{SceneManager, Waiting};
use crate::actors::active_runs::RunWatch;
use crate::actors::driver::{self, store_fault};
use crate::answer::Answer;
use crate::crash;
use crate::plan::{Plan, TaskId};
use crate::run::{Envelope, Event, Fault, Idempotency, PendingQuestion, RunId, RunQueued, SCHEMA, Turn};
use crate::store::Record;
use crate::telemetry::{Component, QueueGuard};

/// A request to a conversation.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Submit {
    /// The conversation was named just now: nothing of it can be in the store.
    pub(crate) is_first: bool,
    pub(crate) message: String,
    pub(crate) user: String,
    pub(crate) plan_only: bool,
    /// Its client's name for it; the journal takes each once.
    pub(crate) idempotency: Option<Idempotency>,
    /// What was asked, for a client that sends again without a name.
    pub(crate) asked: Option<String>,
    /// Whether a yes may not approve what the same user has asked for.
    pub(crate) no_own_approval: bool,
    /// Whether the conversation has to be its user's, or a new one.
    pub(crate) own_session: bool,
    /// The conversation as the client tells it, where it is not kept here.
    pub(crate) history: Option<Vec<Turn>>,
    /// The chatbot's own instructions.
    pub(crate) instructions: Option<String>,
    /// How its questions use the cache.
    pub(crate) cache: Option<crate::llm::cache::Mode>,
    /// Its plan is to be approved by a person.
    pub(crate) require_approval: bool,
    /// Nothing is written.
    pub(crate) dry_run: bool,
    /// The plan, made by a person.
    pub(crate) plan: Option<Plan>,
    /// The question that the client's own conversation ended with.
    pub(crate) pending: Option<PendingQuestion>,
    pub(crate) received: Instant,
    pub(crate) reply: oneshot::Sender<Result<Accepted, Fault>>,
    /// From the registry on, until its turn comes.
    pub(crate) waiting: Option<QueueGuard>,
}

/// A request that is in the journal and will end in exactly one way.
pub(crate) struct Accepted {
    /// From its first event on; of a run that was decided about, from later on.
    pub(crate) watch: RunWatch,
    /// The number of the last event before the request; 0 where the run begins with it.
    pub(crate) before: u64,
    pub(crate) answer: oneshot::Receiver<Result<Answer, Fault>>,
}

/// A request on its way into the queue.
struct Place {
    waiting: Waiting,
    accepted: Accepted,
    reply: oneshot::Sender<Result<Accepted, Fault>>,
}

impl SceneManager {
    /// Puts requests into the journal, in the order they came; only then they are accepted.
    pub(super) fn accept(&mut self, submits: impl IntoIterator<Item = Submit>, ctx: &mut Context<Self>) {
        let mut appends = Vec::new();
        let mut places = Vec::new();
        let shared = self.options.shared.load_full();
        let journal = &shared.journal;
        let mut decisions = Vec::new();
        let is_nobodys = self.owner.is_none();
        for mut submit in submits {
            if let Err(fault) = self.may_speak(&submit) {
                submit.waiting = None;
                let _ = submit.reply.send(Err(fault));
                continue;
            }
            // A plan that is sent, or only wanted, is no word about another; nor is a request that is to
            // write nothing. One that wants its plans approved may say yes to one.
            let speaks = submit.plan.is_none() && !submit.plan_only && !submit.dry_run;
            match if speaks { self.says(&submit.message) } else { Ok(None) } {
                Ok(None) => {}
                Ok(Some(said)) => {
                    decisions.push((said, submit));
                    continue;
                }
                Err(fault) => {
                    let _ = submit.reply.send(Err(fault));
                    continue;
                }
            }
            if self.queue.len() + places.len() >= self.options.max_queued {
                let message = format!(
                    "{} requests of this conversation are waiting already; wait for an answer before sending more",
                    self.options.max_queued
                );
                submit.waiting = None;
                self.options.outside.shed(Component::SceneManager);
                let _ = submit.reply.send(Err(Fault::new("session.queue_full", message)));
                continue;
            }
            let words = if cfg!(feature = "crash-points") { submit.message.clone() } else { String::new() };
            let answers = if places.is_empty() { self.heard() } else { None };
            self.owner.get_or_insert_with(|| submit.user.clone());
            let (record, place) = self.place(submit, answers);
            let journal = journal.clone();
            appends.push(async move {
                crash::point(crash::BEFORE, "run_queued", &words);
                let appended = journal.append(vec![record], true).await;
                crash::point(crash::AFTER, "run_queued", &words);
                appended
            });
            places.push(place);
        }
        for (said, submit) in decisions {
            self.decide(&said, submit, ctx);
        }
        if places.is_empty() {
            self.proceed(ctx);
            return;
        }
        // Each by itself, since one that is refused takes no other with it; one commit carries them all.
        let appends = join_all(appends);
        // The next message is read when these are on disk. One wait for all of them: of several, the
        // actor would end the newest first.
        ctx.wait(appends.into_actor(self).map(move |results, manager, ctx| {
            let stored = results.iter().any(Result::is_ok);
            for (result, Place { waiting, accepted, reply }) in results.into_iter().zip(places) {
                // Whoever asked may have gone; the request is carried out all the same.
                let _ = reply.send(match result {
                    Ok(()) => {
                        manager.queue.push_back(waiting);
                        Ok(accepted)
                    }
                    Err(error) => Err(store_fault(&error)),
                });
            }
            if is_nobodys && !stored {
                manager.owner = None;
            }
            manager.proceed(ctx);
        }));
    }

    /// Whether a request may be one of this conversation: another user's is told as if it were not there,
    /// and nobody decides in it by words, or has its memory told.
    fn may_speak(&self, submit: &Submit) -> Result<(), Fault> {
        match &self.owner {
            Some(owner) if submit.own_session && *owner != submit.user => {
                let what = format!("there is no session `{}`", self.session);
                Err(Fault::new("session.unknown", what))
            }
            _ => Ok(()),
        }
    }

    /// The run whose question the user has heard last, if a word of the conversation may be about it: nothing
    /// of a later run is under way or waits.
    fn heard(&self) -> Option<RunId> {
        if !self.queue.is_empty() {
            return None;
        }
        let last = match (self.at_work, &self.shown) {
            // Its answer may be read before its driver has left.
            (Some(run), Some(live)) if live.feed.is_closed() => run,
            (Some(_), _) => return None,
            (None, _) => self.memory.as_ref()?.pending()?.run?,
        };
        let later = |run: &RunId| *run > last;
        let waits = self.parked.keys().any(later) || self.taken_up.keys().any(later);
        (!waits).then_some(last)
    }

    /// A request's first record, and its place in the queue.
    fn place(&self, submit: Submit, answers: Option<RunId>) -> (Record, Place) {
        let run = RunId(Uuid::now_v7());
        let queued = RunQueued {
            plan_only: submit.plan_only,
            idempotency: submit.idempotency,
            asked: submit.asked,
            history: submit.history,
            instructions: submit.instructions,
            cache: submit.cache,
            require_approval: submit.require_approval,
            dry_run: submit.dry_run,
            plan: submit.plan,
            answers: submit.pending.as_ref().map_or(answers, |pending| pending.run),
            pending: submit.pending,
            ..RunQueued::new(submit.message, submit.user, TaskId(Uuid::now_v7()))
        };
        let envelope = Envelope {
            seq: 1,
            run: Some(run),
            session: self.session.clone(),
            tenant: self.tenant.clone(),
            at: Timestamp::now(),
            epoch: 0,
            schema: SCHEMA,
            body: Event::RunQueued(queued.clone()),
        };
        let (live, watch) =
            self.options.shared.load().live.register(run, queued.task, &self.tenant, &self.session);
        let (answer, answered) = oneshot::channel();
        let place = Place {
            waiting: Waiting {
                run: driver::AcceptedRun::new(run, queued, live),
                received: submit.received,
                answer: Some(answer),
                queued: submit.waiting,
                crashes: 0,
            },
            accepted: Accepted { watch, before: 0, answer: answered },
            reply: submit.reply,
        };
        (Record::Run(envelope.into()), place)
    }
}

impl Handler<Submit> for SceneManager {
    type Result = ();

    fn handle(&mut self, mut submit: Submit, ctx: &mut Context<Self>) {
        self.received += 1;
        if self.memory.is_some() && self.failed.is_none() {
            self.accept([submit], ctx);
        } else if self.early.len() < self.options.max_queued {
            self.early.push_back(submit);
        } else {
            submit.waiting = None;
            self.options.outside.shed(Component::SceneManager);
            let _ = submit
                .reply
                .send(Err(Fault::new("session.queue_full", "too many requests wait for this conversation")));
        }
    }
}
