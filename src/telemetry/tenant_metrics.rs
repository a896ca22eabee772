//! Requests and spending by tenant, for a bounded set of tenants; the others count together.
//!
//! The set only grows: a tenant that has a label keeps it, and one that counted as `other` keeps doing so, since a
//! counter that changes its label would look like a loss and a burst.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use prometheus::IntCounterVec;

use super::OTHER;
use super::labels::{ClosedLabel, RunOutcome};
use crate::mutex::lock;
use crate::run::TenantId;

/// Which tenants get labels of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantBound {
    /// Maximum number of tenants with a label.
    pub max: usize,
    /// Those that have one from the start, as far as there is room.
    pub first: Vec<TenantId>,
}

/// The metrics by tenant. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct TenantMetrics {
    pub(super) requests: IntCounterVec,
    /// In nano-USD.
    pub(super) cost: IntCounterVec,
    known: Arc<Mutex<KnownTenants>>,
}

#[derive(Debug)]
struct KnownTenants {
    max: usize,
    named: HashSet<TenantId>,
}

impl TenantMetrics {
    pub(super) fn new(requests: IntCounterVec, cost: IntCounterVec, bound: &TenantBound) -> Self {
        let mut named = HashSet::new();
        for tenant in &bound.first {
            if named.len() < bound.max {
                named.insert(tenant.clone());
            }
        }
        let known = KnownTenants { max: bound.max, named };
        Self { requests, cost, known: Arc::new(Mutex::new(known)) }
    }

    pub(super) fn count_request(&self, tenant: &TenantId, outcome: RunOutcome) {
        let labels = [self.label(tenant), outcome.name()];
        if let Ok(requests) = self.requests.get_metric_with_label_values(&labels) {
            requests.inc();
        }
    }

    pub(super) fn add_cost(&self, tenant: &TenantId, nano_usd: u64) {
        if let Ok(cost) = self.cost.get_metric_with_label_values(&[self.label(tenant)]) {
            cost.inc_by(nano_usd);
        }
    }

    fn label<'a>(&self, tenant: &'a TenantId) -> &'a str {
        let mut known = lock(&self.known);
        if known.named.contains(tenant) {
            return tenant.as_str();
        }
        if known.named.len() >= known.max {
            return OTHER;
        }
        known.named.insert(tenant.clone());
        tenant.as_str()
    }
}
