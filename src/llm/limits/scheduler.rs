//! The order in which callers may call a model. Pure, but for the clock of its rates.
//!
//! An attempt first passes the limits of its tenant, in order of arrival, and then those of the model, where
//! tenants are served in turn. So a tenant that waits for its own limits takes nothing from the model's, and a tenant
//! with many waiting attempts delays another one by at most one turn.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::gate::{GateRefusal, QueuedNeeds, RateGate};
use super::{LimitRefusal, Options, PermitUse, Rates};
use crate::fairness::FairQueue;
use crate::llm::ticks::Ticks;
use crate::run::TenantId;

/// Maximum number of waiting attempts.
const MAX_WAITING: usize = 65_536;

/// An attempt that wants to pass.
#[derive(Debug)]
pub(crate) struct AttemptRequest<R> {
    /// What it needs.
    pub(crate) grant: PermitGrant,
    /// When it stops waiting.
    pub(crate) deadline: Instant,
    /// Where the outcome goes.
    pub(crate) reply: R,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PermitGrant {
    pub(crate) tenant: TenantId,
    pub(crate) model: String,
    pub(crate) tokens: u64,
}

/// An attempt that stopped waiting.
pub(crate) type AttemptOutcome<R> = (R, Result<PermitGrant, LimitRefusal>);

/// A queue in front of a gate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LineName {
    Tenant(TenantId),
    Model(String),
}

/// The attempts that wait at the gates of tenants and models.
#[derive(Debug)]
pub(crate) struct Scheduler<R> {
    options: Arc<Options>,
    clock: Ticks,
    tenants: HashMap<TenantId, TenantLine<R>>,
    models: HashMap<String, ModelLine<R>>,
    /// Lines whose first attempt may be able to pass.
    ready: BTreeSet<LineName>,
    /// When a line must be checked even if nothing happens.
    due: BTreeSet<(Instant, LineName)>,
    /// The number of waiting attempts.
    waiting: usize,
    /// The outcomes of attempts that ended outside of [`Scheduler::advance`].
    outcomes: Vec<AttemptOutcome<R>>,
}

#[derive(Debug)]
struct TenantLine<R> {
    gate: RateGate,
    waiting: VecDeque<AttemptRequest<R>>,
    timer: LineTimer,
}

#[derive(Debug)]
struct ModelLine<R> {
    gate: RateGate,
    waiting: FairQueue<TenantId, AttemptRequest<R>>,
    timer: LineTimer,
}

/// When a line is checked again, and until when rates block its first attempt.
#[derive(Debug, Default)]
struct LineTimer {
    at: Option<Instant>,
    blocked_until: Option<Instant>,
    /// Whether attempts in progress may let the first one pass before that.
    may_shorten: bool,
    /// No deadline is before this.
    earliest: Option<Instant>,
    /// Tokens that the first attempt needs.
    blocked_tokens: u64,
    /// Tokens that all its attempts need.
    tokens: u64,
}

impl<R> Scheduler<R> {
    pub(crate) fn new(options: Arc<Options>) -> Self {
        let clock = Ticks::new();
        let line = |(name, rates): (&String, &Rates)| {
            let gate = RateGate::of_model(name, rates, &clock);
            (name.clone(), ModelLine { gate, waiting: FairQueue::default(), timer: LineTimer::default() })
        };
        Self {
            models: options.models.iter().map(line).collect(),
            options,
            clock,
            tenants: HashMap::new(),
            ready: BTreeSet::new(),
            due: BTreeSet::new(),
            waiting: 0,
            outcomes: Vec::new(),
        }
    }

    /// Queues an attempt. The next [`Scheduler::advance`] returns its outcome, if it has one. Waiting ones that
    /// `is_gone` do not count against it.
    pub(crate) fn enter(&mut self, request: AttemptRequest<R>, now: Instant, is_gone: impl Fn(&R) -> bool) {
        let tokens = request.grant.tokens;
        // An attempt that can never pass takes nothing.
        let tenant = self.tenant_line(&request.grant.tenant).map(|line| &line.gate);
        let impossible = tenant.and_then(|gate| gate.check_possible(tokens).err());
        let model = self.models.get(&request.grant.model).map(|line| &line.gate);
        let impossible = impossible.or_else(|| model?.check_possible(tokens).err());
        if let Some(refusal) = impossible {
            return self.outcomes.push((request.reply, Err(refusal)));
        }
        let name = request.grant.tenant.clone();
        if self.tenants.contains_key(&name) && self.admit_at_tenant(&request, now).is_err() {
            self.remove_at_tenant(&name, |waiting| is_gone(&waiting.reply));
            if let Err(refusal) = self.admit_at_tenant(&request, now) {
                return self.outcomes.push((request.reply, Err(refusal)));
            }
        }
        let Some(line) = self.tenants.get_mut(&name) else { return self.enter_model(request, now, &is_gone) };
        if self.waiting >= MAX_WAITING {
            return self.outcomes.push((request.reply, Err(line.gate.refuse_place())));
        }
        self.waiting += 1;
        line.timer.add(&request);
        line.waiting.push_back(request);
        self.ready.insert(LineName::Tenant(name));
    }

    /// Refuses an attempt that would wait too long because of its tenant's rates alone.
    fn admit_at_tenant(&self, request: &AttemptRequest<R>, now: Instant) -> Result<(), LimitRefusal> {
        let Some(line) = self.tenants.get(&request.grant.tenant) else { return Ok(()) };
        line.timer.admit(&line.gate, line.waiting.len(), line.timer.tokens, request, now)
    }

    /// Removes waiting attempts of a tenant.
    fn remove_at_tenant(
        &mut self,
        tenant: &TenantId,
        ends: impl Fn(&AttemptRequest<R>) -> bool,
    ) -> Vec<AttemptRequest<R>> {
        let Some(line) = self.tenants.get_mut(tenant) else { return Vec::new() };
        let (removed, kept): (VecDeque<_>, VecDeque<_>) = line.waiting.drain(..).partition(ends);
        line.waiting = kept;
        self.waiting -= removed.len();
        removed.iter().for_each(|request| line.timer.tokens -= request.grant.tokens);
        removed.into()
    }

    /// Returns what a permit held.
    pub(crate) fn give_back(&mut self, grant: &PermitGrant, usage: PermitUse) {
        if let Some(line) = self.tenants.get_mut(&grant.tenant) {
            line.gate.give_back(grant.tokens, usage);
            self.ready.insert(LineName::Tenant(grant.tenant.clone()));
        }
        if let Some(line) = self.models.get_mut(&grant.model) {
            line.gate.give_back(grant.tokens, usage);
            self.ready.insert(LineName::Model(grant.model.clone()));
        }
    }

    /// Takes what a permit holds that was granted before this scheduler existed.
    pub(crate) fn restore(&mut self, grant: &PermitGrant) {
        if let Some(line) = self.tenant_line(&grant.tenant) {
            line.gate.take_unchecked(grant.tokens);
        }
        if let Some(line) = self.models.get_mut(&grant.model) {
            line.gate.take_unchecked(grant.tokens);
        }
    }

    /// The attempts that may pass now, or have to be refused. Those that `is_gone` are forgotten.
    pub(crate) fn advance(&mut self, now: Instant, is_gone: impl Fn(&R) -> bool) -> Vec<AttemptOutcome<R>> {
        while let Some((at, line)) = self.due.first().cloned().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, line.clone()));
            self.ready.insert(line);
        }
        // Tenants sort before models, so an attempt that passes its tenant's limits reaches its model in the same
        // round.
        while let Some(line) = self.ready.pop_first() {
            match &line {
                LineName::Tenant(tenant) => self.advance_tenant(tenant, now, &is_gone),
                LineName::Model(model) => self.advance_model(model, now, &is_gone),
            }
            self.set_timer(line, now);
        }
        std::mem::take(&mut self.outcomes)
    }

    /// When [`Scheduler::advance`] must be called even if nothing happens.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Removes all waiting attempts, in order of their deadlines.
    pub(crate) fn take_waiting(&mut self) -> Vec<AttemptRequest<R>> {
        let tenants = self.tenants.values_mut().flat_map(|line| line.waiting.drain(..));
        let models = self.models.values_mut().flat_map(|line| line.waiting.remove_unless(|_| false));
        let mut waiting: Vec<_> = tenants.chain(models).collect();
        waiting.sort_by_key(|request| request.deadline);
        waiting
    }

    /// The queue of a tenant; absent if tenants are not limited.
    fn tenant_line(&mut self, tenant: &TenantId) -> Option<&mut TenantLine<R>> {
        let rates = &self.options.tenant;
        if *rates == Rates::default() {
            return None;
        }
        Some(self.tenants.entry(tenant.clone()).or_insert_with(|| TenantLine {
            gate: RateGate::of_tenant(tenant.as_str(), rates, &self.clock),
            waiting: VecDeque::new(),
            timer: LineTimer::default(),
        }))
    }

    fn enter_model(&mut self, request: AttemptRequest<R>, now: Instant, is_gone: &impl Fn(&R) -> bool) {
        let name = request.grant.model.clone();
        if !self.models.contains_key(&name) {
            return self.outcomes.push((request.reply, Ok(request.grant)));
        }
        if self.admit_at_model(&request, now).is_err() {
            for gone in self.remove_at_model(&name, |waiting| is_gone(&waiting.reply)) {
                self.leave_model(&gone.grant);
            }
            if let Err(refusal) = self.admit_at_model(&request, now) {
                return self.refuse_at_model(request, refusal);
            }
        }
        let Some(line) = self.models.get_mut(&name) else { return };
        if self.waiting >= MAX_WAITING {
            let refusal = line.gate.refuse_place();
            return self.refuse_at_model(request, refusal);
        }
        self.waiting += 1;
        line.timer.add(&request);
        line.waiting.push(request.grant.tenant.clone(), request);
        self.ready.insert(LineName::Model(name));
    }

    /// Refuses an attempt that would wait too long because of its model's rates alone.
    fn admit_at_model(&self, request: &AttemptRequest<R>, now: Instant) -> Result<(), LimitRefusal> {
        let Some(line) = self.models.get(&request.grant.model) else { return Ok(()) };
        // Tenants take turns, so only those of its own tenant are certain to pass before it.
        let own = line.waiting.len_of(&request.grant.tenant);
        let certain = if own == line.waiting.len() { line.timer.tokens } else { 0 };
        line.timer.admit(&line.gate, own, certain, request, now)
    }

    /// Removes waiting attempts of a model.
    fn remove_at_model(
        &mut self,
        model: &str,
        ends: impl Fn(&AttemptRequest<R>) -> bool,
    ) -> Vec<AttemptRequest<R>> {
        let Some(line) = self.models.get_mut(model) else { return Vec::new() };
        let removed = line.waiting.remove_unless(|request| !ends(request));
        self.waiting -= removed.len();
        removed.iter().for_each(|request| line.timer.tokens -= request.grant.tokens);
        removed
    }

    /// Ends the waiting of an attempt that has passed its tenant's limits.
    fn leave_model(&mut self, grant: &PermitGrant) {
        if let Some(line) = self.tenants.get_mut(&grant.tenant) {
            line.gate.give_back(grant.tokens, PermitUse::Unused);
            self.ready.insert(LineName::Tenant(grant.tenant.clone()));
        }
    }

    fn refuse_at_model(&mut self, request: AttemptRequest<R>, refusal: LimitRefusal) {
        self.leave_model(&request.grant);
        self.outcomes.push((request.reply, Err(refusal)));
    }

    fn advance_tenant(&mut self, tenant: &TenantId, now: Instant, is_gone: &impl Fn(&R) -> bool) {
        while let Some((request, ended)) = self.next_at_tenant(tenant, now, is_gone) {
            match ended {
                None => self.enter_model(request, now, is_gone),
                Some(refusal) => self.outcomes.push((request.reply, Err(refusal))),
            }
        }
        // Any of the others may have waited long enough.
        if !self.tenants.get(tenant).is_some_and(|line| line.timer.is_due(now)) {
            return;
        }
        let ends = |request: &AttemptRequest<R>| request.deadline <= now || is_gone(&request.reply);
        for request in self.remove_at_tenant(tenant, ends) {
            let Some(line) = self.tenants.get_mut(tenant) else { return };
            let refusal = line.gate.refuse_expired(request.grant.tokens);
            self.outcomes.push((request.reply, Err(refusal)));
        }
    }

    /// The next attempt that stops waiting at its tenant, with why it is refused if it is.
    fn next_at_tenant(
        &mut self,
        tenant: &TenantId,
        now: Instant,
        is_gone: &impl Fn(&R) -> bool,
    ) -> Option<(AttemptRequest<R>, Option<LimitRefusal>)> {
        let TenantLine { gate, waiting, timer } = self.tenants.get_mut(tenant)?;
        timer.blocked_until = None;
        let first = waiting.front()?;
        let ended = if is_gone(&first.reply) {
            Some(gate.refuse_place())
        } else {
            match gate.take(first.grant.tokens) {
                Ok(()) => None,
                Err(blocked) if is_hopeless(first, &blocked, now) => Some(blocked.refusal),
                Err(blocked) => {
                    timer.block(&blocked, first.grant.tokens, now);
                    return None;
                }
            }
        };
        let request = waiting.pop_front()?;
        self.waiting -= 1;
        timer.tokens -= request.grant.tokens;
        Some((request, ended))
    }

    fn advance_model(&mut self, model: &str, now: Instant, is_gone: &impl Fn(&R) -> bool) {
        while let Some((request, refusal)) = self.next_at_model(model, now, is_gone) {
            match refusal {
                Some(refusal) => self.refuse_at_model(request, refusal),
                None => self.outcomes.push((request.reply, Ok(request.grant))),
            }
        }
        // Any of the others may have waited long enough, also behind one whose turn it is.
        if !self.models.get(model).is_some_and(|line| line.timer.is_due(now)) {
            return;
        }
        let ends = |request: &AttemptRequest<R>| request.deadline <= now || is_gone(&request.reply);
        for request in self.remove_at_model(model, ends) {
            let Some(line) = self.models.get_mut(model) else { return };
            let refusal = line.gate.refuse_expired(request.grant.tokens);
            self.refuse_at_model(request, refusal);
        }
    }

    /// The next attempt that stops waiting at a model, with why it is refused if it is.
    fn next_at_model(
        &mut self,
        model: &str,
        now: Instant,
        is_gone: &impl Fn(&R) -> bool,
    ) -> Option<(AttemptRequest<R>, Option<LimitRefusal>)> {
        let ModelLine { gate, waiting, timer } = self.models.get_mut(model)?;
        timer.blocked_until = None;
        let mut ended = None;
        let mut is_blocked = false;
        let next = waiting.pop(|_, request| {
            // No other tenant may pass the one whose turn it is: otherwise a large call would never get its tokens.
            if is_blocked {
                return false;
            }
            if is_gone(&request.reply) {
                ended = Some(gate.refuse_place());
                return true;
            }
            match gate.take(request.grant.tokens) {
                Ok(()) => true,
                Err(blocked) if is_hopeless(request, &blocked, now) => {
                    ended = Some(blocked.refusal);
                    true
                }
                Err(blocked) => {
                    timer.block(&blocked, request.grant.tokens, now);
                    is_blocked = true;
                    false
                }
            }
        });
        let (_, request) = next?;
        self.waiting -= 1;
        timer.tokens -= request.grant.tokens;
        Some((request, ended))
    }

    fn set_timer(&mut self, line: LineName, now: Instant) {
        let timer = match &line {
            LineName::Tenant(tenant) => self.tenants.get_mut(tenant).map(|found| {
                found.timer.update_earliest(now, found.waiting.iter().map(|request| request.deadline));
                &mut found.timer
            }),
            LineName::Model(model) => self.models.get_mut(model).map(|found| {
                found.timer.update_earliest(now, found.waiting.iter().map(|request| request.deadline));
                &mut found.timer
            }),
        };
        let Some(timer) = timer else { return };
        let at = [timer.earliest, timer.blocked_until].into_iter().flatten().min();
        if let Some(before) = std::mem::replace(&mut timer.at, at) {
            self.due.remove(&(before, line.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, line));
        }
    }

    /// Moves the clock of the rates.
    #[cfg(test)]
    pub(crate) fn advance_clock(&self, by: std::time::Duration) {
        self.clock.advance(by);
    }
}

impl LineTimer {
    /// Notes that the first attempt, with so many tokens, cannot pass yet.
    fn block(&mut self, blocked: &GateRefusal, tokens: u64, now: Instant) {
        self.blocked_until = blocked.wait.map(|wait| now + wait);
        (self.blocked_tokens, self.may_shorten) = (tokens, blocked.may_shorten);
    }

    /// Counts an attempt that begins to wait.
    fn add<R>(&mut self, request: &AttemptRequest<R>) {
        self.tokens += request.grant.tokens;
        self.earliest = Some(self.earliest.map_or(request.deadline, |at| at.min(request.deadline)));
    }

    /// Keeps the bound until it is reached, so that not every change has to check every attempt.
    fn update_earliest(&mut self, now: Instant, mut deadlines: impl Iterator<Item = Instant>) {
        if self.is_due(now) {
            self.earliest = deadlines.min();
        } else if deadlines.next().is_none() {
            self.earliest = None;
        }
    }

    /// Whether a deadline may be reached.
    fn is_due(&self, now: Instant) -> bool {
        self.earliest.is_some_and(|at| at <= now)
    }

    /// Refuses an attempt that would wait beyond its deadline because of rates alone, behind `waiting` others with
    /// `tokens`.
    fn admit<R>(
        &self,
        gate: &RateGate,
        waiting: usize,
        tokens: u64,
        request: &AttemptRequest<R>,
        now: Instant,
    ) -> Result<(), LimitRefusal> {
        let Some(first) = self.blocked_until.filter(|_| !self.may_shorten) else { return Ok(()) };
        let between = QueuedNeeds {
            requests: waiting.saturating_sub(1) as u64,
            tokens: tokens.saturating_sub(self.blocked_tokens),
        };
        let first = first.saturating_duration_since(now);
        let (wait, refusal) = gate.least_wait(first, between, request.grant.tokens);
        if now + wait > request.deadline { Err(refusal) } else { Ok(()) }
    }
}

/// Whether a blocked attempt cannot pass by its deadline.
fn is_hopeless<R>(request: &AttemptRequest<R>, blocked: &GateRefusal, now: Instant) -> bool {
    match blocked.wait.filter(|_| !blocked.may_shorten) {
        Some(wait) => now + wait > request.deadline,
        None => now >= request.deadline,
    }
}
