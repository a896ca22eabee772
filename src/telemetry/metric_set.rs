//! The metrics of runs together with their label names, which follow the configuration.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::{Kpis, LabelNames};
use crate::scene::Catalogue;

/// The current label names and metrics; clones share them. Both are loaded together and lock-free
/// ([`MetricSet::load`]), so that an index into the names is valid in the metrics.
#[derive(Debug, Clone)]
pub struct MetricSet(Arc<ArcSwap<MetricSnapshot>>);

/// Label names, and the metrics indexed by them. A later snapshot of the same process keeps all indices and
/// series of an earlier one and may add more.
#[derive(Debug)]
pub struct MetricSnapshot {
    /// The allowed label values.
    pub names: Arc<LabelNames>,
    /// Absent if metrics are disabled.
    pub kpis: Option<Arc<Kpis>>,
}

impl MetricSet {
    /// Metrics with these label names; `kpis` is absent if metrics are disabled.
    pub fn new(names: Arc<LabelNames>, kpis: Option<Arc<Kpis>>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(MetricSnapshot { names, kpis })))
    }

    /// The current names and metrics.
    pub fn load(&self) -> Guard<Arc<MetricSnapshot>> {
        self.0.load()
    }

    /// Applies a changed configuration: new scenes, tools and models get their own names from now on, up to a
    /// bound beyond which they count as `other`. Removed ones keep their series.
    pub fn update(&self, catalogue: &Catalogue, models: &[String]) {
        self.0.rcu(|now| match now.names.extended(catalogue, models) {
            None => now.clone(),
            Some(names) => {
                let kpis = now.kpis.as_ref().map(|kpis| Arc::new(kpis.with_names(&names)));
                Arc::new(MetricSnapshot { names: Arc::new(names), kpis })
            }
        });
    }
}
