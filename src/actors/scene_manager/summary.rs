//! Summaries of the oldest turns; made without a model if need be, so that they always end.

use actix::prelude::*;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::SceneManager;
use super::stream::SessionStream;
use crate::actors::driver::RunServices;
use crate::actors::scene;
use crate::adapt::ExecutionLevel;
use crate::conversation::Input;
use crate::llm::{Caller, reader};
use crate::memory::{self, SummaryJob};
use crate::run::{Attempt, Fault, SessionEvent, Usage};
use crate::store;
use crate::telemetry::session_context;

/// What a summary needs, apart from the actor.
struct SummaryTask {
    shared: RunServices,
    stream: SessionStream,
    stop: CancellationToken,
}

impl SceneManager {
    pub(super) fn summarise(&mut self, job: SummaryJob, ctx: &mut Context<Self>) {
        let stop = CancellationToken::new();
        self.summary = Some(stop.clone());
        let summary = SummaryTask {
            shared: RunServices::clone(&self.options.shared.load()),
            stream: self.stream(),
            stop,
        };
        let work = async move {
            let events = summary.make(job).await;
            summary.stream.append(events).await
        }
        .instrument(session_context(&self.session, &self.tenant));
        let done = |manager: &mut Self, result: Result<Vec<(u64, SessionEvent)>, store::Error>| {
            manager.summary = None;
            match result {
                Ok(turns) => {
                    if let Some(account) = &manager.account {
                        account.record(turns.iter().map(|(_, event)| cost_nano_usd(event)).sum());
                    }
                    Input::Summarised { turns }
                }
                Err(error) => Input::StreamFailed(error.into()),
            }
        };
        self.feed_later(work, done, ctx);
    }
}

/// What an event of a conversation records as spent on models by itself.
fn cost_nano_usd(event: &SessionEvent) -> u64 {
    match event {
        SessionEvent::Summarised { usage, .. } | SessionEvent::SummaryFailed { usage, .. } => {
            usage.cost_nano_usd
        }
        SessionEvent::SessionStarted {}
        | SessionEvent::TurnEnded { .. }
        | SessionEvent::QuestionLapsed { .. }
        | SessionEvent::Fact { .. } => 0,
    }
}

impl SummaryTask {
    /// The events of a summary: a model's, or the failure and one made without a model.
    async fn make(&self, job: SummaryJob) -> Vec<SessionEvent> {
        // At `basic`, no model is asked besides the planner.
        if self.shared.level_of(&self.stream.tenant) == Some(ExecutionLevel::Basic) {
            let summary = job.fallback();
            let (through, usage, attempts) = (job.through, Usage::default(), Vec::new());
            return vec![SessionEvent::Summarised { through, summary, usage, attempts }];
        }
        let language = job.turns.last().and_then(|turn| crate::language::detect(&turn.request));
        let request = memory::prompt::summary_request(&job, language);
        let (tenant, session) = (self.stream.tenant.clone(), self.stream.session.clone());
        let caller = Caller { tenant, session, run: None, cache: None, voter: None, trace: None };
        let (error, usage, attempts) =
            match self.shared.gateway.complete(&caller, &request, false, &self.stop).await {
                Ok(done) => {
                    let (usage, attempts) = (done.usage, done.attempts);
                    let written = reader::after_thoughts(&done.reply.text).unwrap_or_default();
                    let summary = verified(&job, written, language).await;
                    if !summary.is_empty() {
                        done.confirm.accepted();
                        let through = job.through;
                        return vec![SessionEvent::Summarised { through, summary, usage, attempts }];
                    }
                    done.confirm.rejected();
                    let what = "the summary was empty, or nothing in it was said in the conversation";
                    (Fault::new("summary.empty", what), usage, attempts)
                }
                Err(error) => {
                    let failure = scene::FailedModelCall::from(error);
                    (failure.fault, Attempt::sum(&failure.attempts), failure.attempts)
                }
            };
        let summary = job.fallback();
        let (through, none, free) = (job.through, Vec::new(), Usage::default());
        vec![
            SessionEvent::SummaryFailed { error, usage, attempts },
            SessionEvent::Summarised { through, summary, usage: free, attempts: none },
        ]
    }
}

/// What a model wrote, as far as the turns say so.
async fn verified(job: &SummaryJob, written: &str, language: Option<&'static str>) -> String {
    let (of, written) = (job.clone(), written.to_owned());
    // Reading many turns takes long.
    let verified = tokio::task::spawn_blocking(move || of.verified(&written, language)).await;
    let verified = verified.unwrap_or_default();
    if !verified.removed.is_empty() {
        let removed = verified.removed.len();
        tracing::info!(removed, "sentences of a conversation's summary were removed: no turn says so");
    }
    verified.text
}
