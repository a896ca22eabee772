//! What the conversation remembers: its stream folded in order, and cut to a summary in time.

use actix::prelude::*;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::SceneManager;
use crate::actors::driver::store_fault;
use crate::actors::runtime_task::run_as_task;
use crate::actors::scene;
use crate::llm::{Caller, Purpose};
use crate::memory::{self, Memory};
use crate::run::{Attempt, Context as Remembered, Envelope, Fault, RunState, SCHEMA, SessionEvent, Usage};
use crate::store::{Record, StreamId};

impl SceneManager {
    pub(super) fn remembered(&self, run: &RunState) -> Remembered {
        let Some(queued) = run.queued.as_ref().filter(|_| run.started.is_none()) else {
            return Remembered::default();
        };
        let window = self.options.shared.load().gateway.context_window(Purpose::Plan) as usize;
        let budget = self.options.memory.budget(window);
        let remembered = match &queued.history {
            Some(turns) => {
                let mut memory = Memory::new(self.options.memory.clone());
                let last = turns.len().saturating_sub(1);
                for (at, turn) in turns.clone().into_iter().enumerate() {
                    let pending = queued.pending.clone().filter(|_| at == last);
                    memory.apply(&SessionEvent::TurnEnded { turn, pending, usage: Usage::default() });
                }
                memory.context(budget)
            }
            None => self.memory.as_ref().map(|m| m.context(budget)).unwrap_or_default(),
        };
        memory::with_instructions(remembered, queued.instructions.as_deref())
    }

    /// Remembers an event of the session's stream, in its order: several runs may end at once.
    pub(super) fn remember(&mut self, seq: u64, event: SessionEvent) {
        // It may have been read from the stream meanwhile.
        if seq <= self.remembered {
            return;
        }
        self.early_turns.insert(seq, event);
        while let Some(event) = self.early_turns.remove(&(self.remembered + 1)) {
            self.remembered += 1;
            if let Some(memory) = &mut self.memory {
                memory.apply(&event);
            }
        }
    }

    /// Has the oldest turns summarised; without a model if need be, so that it always ends.
    pub(super) fn summarise(&mut self, job: memory::SummaryJob, ctx: &mut Context<Self>) {
        let language = job.turns.last().and_then(|turn| crate::llm::language::detect(&turn.request));
        let request = memory::prompt::summary_request(&job, language);
        let gateway = self.options.shared.load().gateway.clone();
        let journal = self.options.shared.load().journal.clone();
        let (session, tenant, seq) = (self.session.clone(), self.tenant.clone(), self.seq.clone());
        let store = self.options.store.clone();
        let caller = Caller { tenant: tenant.clone(), session: session.clone(), run: None, cache: None };
        let stop = CancellationToken::new();
        self.summary = Some(stop.clone());
        let work = async move {
            let mut events = Vec::new();
            match gateway.complete(&caller, &request, false, &stop).await {
                Ok(done) if !done.reply.text.trim().is_empty() => {
                    done.confirm.accepted().await;
                    events.push(SessionEvent::Summarised {
                        through: job.through,
                        summary: done.reply.text.trim().to_owned(),
                        usage: done.usage,
                        attempts: done.attempts,
                    });
                }
                other => {
                    let (error, usage, attempts) = match other {
                        Ok(done) => {
                            done.confirm.rejected().await;
                            (Fault::new("summary.empty", "the summary was empty"), done.usage, done.attempts)
                        }
                        Err(error) => {
                            let failure = scene::FailedModelCall::from(error);
                            (failure.fault, Attempt::sum(&failure.attempts), failure.attempts)
                        }
                    };
                    events.push(SessionEvent::SummaryFailed { error, usage, attempts });
                    events.push(SessionEvent::Summarised {
                        through: job.through,
                        summary: job.fallback(),
                        usage: Usage::default(),
                        attempts: Vec::new(),
                    });
                }
            }
            let mut seq = seq.lock().await;
            let first = *seq + 1;
            let records = events
                .iter()
                .enumerate()
                .map(|(i, body)| {
                    Record::Session(Envelope {
                        seq: first + i as u64,
                        run: None,
                        session: session.clone(),
                        tenant: tenant.clone(),
                        at: Timestamp::now(),
                        epoch: 0,
                        schema: SCHEMA,
                        body: body.clone(),
                    })
                })
                .collect();
            if let Err(error) = journal.append(records, true).await {
                // Runs that are driven beside the queue end in this stream, too.
                let stands = run_as_task(async move {
                    journal.reopen(StreamId::Session(tenant.clone(), session.clone())).await.ok()?;
                    let events = store.session_events(&tenant, &session).await.ok()?;
                    Some(events.last().map_or(0, |last| last.seq))
                });
                *seq = stands.await.unwrap_or(*seq);
                return Err(error);
            }
            *seq += events.len() as u64;
            Ok((first, events))
        };
        ctx.spawn(work.into_actor(self).map(|result, manager, ctx| {
            manager.summary = None;
            match result {
                Ok((first, events)) => {
                    for (at, event) in events.into_iter().enumerate() {
                        manager.remember(first + at as u64, event);
                    }
                    manager.busy = false;
                    manager.summarised(ctx);
                }
                // What is remembered is not what the stream has; nothing begins until it is read anew.
                Err(error) => {
                    let fault = store_fault(&error);
                    for waiting in std::mem::take(&mut manager.queue) {
                        if let Some(answer) = waiting.answer {
                            let _ = answer.send(Err(fault.clone()));
                        }
                    }
                    manager.failed = Some(error);
                    manager.proceed(ctx);
                }
            }
        }));
    }
}
