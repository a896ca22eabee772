//! The envelope that carries an event in the journal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::ids::{RunId, SessionId, TenantId};
use super::super::session::SessionEvent;
use super::{Event, SCHEMA};

/// One record of the journal. `seq` counts from 1 within its stream: a run's, or (with `run` absent)
/// a session's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope<B> {
    /// Position in the stream, from 1 without gaps.
    pub seq: u64,
    /// The run, absent on a session's own stream.
    pub run: Option<RunId>,
    /// The conversation.
    pub session: SessionId,
    /// The tenant that is billed.
    pub tenant: TenantId,
    /// When it was appended, by the clock of the engine.
    pub at: Timestamp,
    /// How many times the run was taken over; writers with an older epoch are refused.
    pub epoch: u32,
    /// The version of the format, see [`SCHEMA`].
    pub schema: u16,
    /// The event.
    pub body: B,
}

impl Envelope<Event> {
    /// An event of a run, in the present format.
    pub fn of_run(
        run: RunId,
        tenant: &TenantId,
        session: &SessionId,
        seq: u64,
        epoch: u32,
        at: Timestamp,
        body: Event,
    ) -> Self {
        let (tenant, session) = (tenant.clone(), session.clone());
        Self { seq, run: Some(run), session, tenant, at, epoch, schema: SCHEMA, body }
    }
}

impl Envelope<SessionEvent> {
    /// An event of a session's own stream, in the present format.
    pub fn of_session(
        tenant: &TenantId,
        session: &SessionId,
        seq: u64,
        at: Timestamp,
        body: SessionEvent,
    ) -> Self {
        let (tenant, session) = (tenant.clone(), session.clone());
        Self { seq, run: None, session, tenant, at, epoch: 0, schema: SCHEMA, body }
    }
}
