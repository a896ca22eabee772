//! What people want of a run under way, or of one that was taken up for it.

use tokio::sync::mpsc;

use super::Driver;
use crate::actors::live::Order;
use crate::planner;
use crate::run::{Action, Event, Fault};

impl Driver {
    /// Carries out what people want, as far as they have said so.
    pub(super) async fn carry_out(&mut self) -> Result<(), Fault> {
        while let Some(order) = self.orders.as_mut().and_then(|orders| orders.try_recv().ok()) {
            self.obey(order).await?;
        }
        Ok(())
    }

    /// Whether the run can be left: nobody wants anything of it, and whoever does from now on takes it up
    /// again.
    pub(super) fn is_left(&mut self) -> bool {
        let ended = self.state.status.is_terminal();
        let Some(orders) = &mut self.orders else { return true };
        self.live.leave(orders, || !ended && self.wishes.has_changed().unwrap_or(false))
    }

    /// One order: the events that carry it out are on disk before it is answered.
    pub(super) async fn obey(&mut self, order: Order) -> Result<(), Fault> {
        let Order { command, mut word, reply } = order;
        let mut events = match planner::command(&self.state, &self.shared.catalogue, &command) {
            Ok(events) => events,
            Err(mut refused) => {
                if let Some(lapse) = refused.record.take() {
                    self.record(lapse.0).await?;
                    // Whoever looks again finds what is asked now.
                    self.put().await?;
                }
                self.refused.push((reply, refused));
                return Ok(());
            }
        };
        self.said |= word.is_some();
        for event in &mut events {
            // In the same commit, so that whoever sends it again is known whenever it was decided.
            if let Event::Decided { word: said, .. } = event {
                *said = word.take();
            }
            self.reopened |= matches!(event, Event::RunReopened { .. });
        }
        // Each can happen after those before it, or they would not be its events. All of them are there, or
        // none: a run that was carried on for a decision has that decision.
        self.append_together(events).await?;
        // Whoever asked may have gone.
        let _ = reply.send(Ok(()));
        Ok(())
    }

    /// An approval whose tools have changed counts no more.
    pub(super) async fn see_what_lapsed(&mut self) -> Result<(), Fault> {
        while let Some(event) = planner::lapsed(&self.state, &self.shared.catalogue) {
            self.record(event).await?;
        }
        Ok(())
    }

    /// Has what is due to be put to a person put to one.
    async fn put(&mut self) -> Result<(), Fault> {
        while let Some(Action::Record {
            event: event @ (Event::ApprovalRequired { .. } | Event::RunWaiting {}),
        }) = self.state.next().into_iter().next()
        {
            self.append(event).await?;
        }
        Ok(())
    }
}

/// The next order; for ever where there can be none.
pub(super) async fn next_order(orders: &mut Option<mpsc::Receiver<Order>>) -> Option<Order> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}
