//! Summaries of the oldest turns; made without a model if need be, so that they always end.

use actix::prelude::*;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::SceneManager;
use super::stream::SessionStream;
use crate::actors::driver::RunServices;
use crate::actors::scene;
use crate::actors::summary_places::SummaryPlaces;
use crate::adapt::ExecutionLevel;
use crate::conversation::Input;
use crate::llm::Caller;
use crate::memory::{PartEnd, SummaryJob, TurnSummary, WrittenMemory};
use crate::run::{Attempt, Fault, SessionEvent, Usage};
use crate::store;
use crate::telemetry::session_context;

/// Ends or hurries a summary.
pub(super) struct SummaryControl {
    stop: CancellationToken,
    /// Cancelled when it waits for no place any more.
    urgent: CancellationToken,
}

impl SummaryControl {
    /// The summary ends earlier, with what it has cost.
    pub(super) fn cancel(&self) {
        self.stop.cancel();
    }

    /// The summary waits for no place.
    pub(super) fn hurry(&self) {
        self.urgent.cancel();
    }
}

/// What a summary needs, apart from the actor.
struct SummaryTask {
    shared: RunServices,
    stream: SessionStream,
    places: SummaryPlaces,
    stop: CancellationToken,
    urgent: CancellationToken,
}

impl SceneManager {
    pub(super) fn summarise(&mut self, job: SummaryJob, ctx: &mut Context<Self>) {
        let stop = CancellationToken::new();
        // One that ends waits for nothing, either.
        let urgent = stop.child_token();
        self.summary = Some(SummaryControl { stop: stop.clone(), urgent: urgent.clone() });
        let summary = SummaryTask {
            shared: RunServices::clone(&self.options.shared.load()),
            stream: self.stream(),
            places: self.options.summary_places.clone(),
            stop,
            urgent,
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
                        account.record(turns.iter().map(|(_, event)| event.cost_nano_usd()).sum());
                    }
                    Input::Summarised { turns }
                }
                Err(error) => Input::StreamFailed(error.into()),
            }
        };
        self.feed_later(work, done, ctx);
    }
}

impl SummaryTask {
    /// The events of a summary: a model's, or the failure and one made without a model.
    async fn make(&self, job: SummaryJob) -> Vec<SessionEvent> {
        // At `basic`, no model is asked besides the planner.
        if self.shared.level_of(&self.stream.tenant) == Some(ExecutionLevel::Basic) {
            return vec![job.made_by_rules()];
        }
        let mut spent = SpentOnSummary::default();
        let place = self.places.take(&self.urgent).await;
        let written = self.ask(&job, &mut spent).await;
        drop(place);
        job.events(written, spent.usage, spent.attempts)
    }

    /// Asks about the parts of the summary, one after the other, until the whole is written.
    async fn ask(&self, job: &SummaryJob, spent: &mut SpentOnSummary) -> Result<WrittenMemory, Fault> {
        let language = job.turns.last().and_then(|turn| crate::language::detect(&turn.request));
        let Some(mut summary) = TurnSummary::new(job, language) else { return Err(nothing()) };
        let (tenant, session) = (self.stream.tenant.clone(), self.stream.session.clone());
        let caller = Caller { tenant, session, run: None, cache: None, voter: None, trace: None };
        let mode = self.shared.settings.reader;
        while let Some(part) = summary.next_part() {
            let request = summary.request(part);
            let done = self.shared.gateway.complete(&caller, &request, false, &self.stop).await;
            let done = done.map_err(|error| spent.failed(scene::FailedModelCall::from(error)))?;
            spent.usage += done.usage;
            spent.attempts.extend(done.attempts);
            // Reading many turns takes long.
            let reader = self.places.take_reader(&self.urgent).await;
            let (reply, mut reading) = (done.reply, summary);
            let ended = tokio::task::spawn_blocking(move || {
                let end = reading.end_part(part, &reply, mode);
                drop(reader);
                (reading, end)
            });
            let ended = ended.await.map_err(|error| Fault::new("summary.failed", error.to_string()))?;
            summary = ended.0;
            match ended.1 {
                PartEnd::Read => done.confirm.accepted(),
                PartEnd::MadeByRules => done.confirm.rejected(),
                PartEnd::Written(written) => {
                    done.confirm.accepted();
                    if written.removed > 0 {
                        let removed = written.removed;
                        tracing::info!(
                            removed,
                            "sentences of a conversation's summary were removed: no turn says so"
                        );
                    }
                    return Ok(written);
                }
                PartEnd::Unusable => {
                    done.confirm.rejected();
                    return Err(nothing());
                }
            }
        }
        Err(nothing())
    }
}

/// What the questions of a summary cost.
#[derive(Default)]
struct SpentOnSummary {
    usage: Usage,
    attempts: Vec<Attempt>,
}

impl SpentOnSummary {
    fn failed(&mut self, failure: scene::FailedModelCall) -> Fault {
        self.usage += Attempt::sum(&failure.attempts);
        self.attempts.extend(failure.attempts);
        failure.fault
    }
}

fn nothing() -> Fault {
    Fault::new("summary.empty", "the summary was empty, or nothing in it was said in the conversation")
}
