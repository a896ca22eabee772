//! The figures of runs and the names that they may have, which follow the configuration.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::{Kpis, Names};
use crate::scene::Catalogue;

/// Names and figures as they are now; clones share them. Whoever counts takes both at once
/// ([`Figures::now`]), which locks nothing: a place in the names is one in the figures.
#[derive(Debug, Clone)]
pub struct Figures(Arc<ArcSwap<Sheet>>);

/// Names, and the figures by their places. Of two sheets of one process the later one has the earlier one's
/// places and series, and more.
#[derive(Debug)]
pub struct Sheet {
    /// What labels may be called.
    pub names: Arc<Names>,
    /// Absent where nothing is counted.
    pub kpis: Option<Arc<Kpis>>,
}

impl Figures {
    /// Figures by these names, if there are to be any.
    pub fn new(names: Arc<Names>, kpis: Option<Arc<Kpis>>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Sheet { names, kpis })))
    }

    /// Names and figures as they are now.
    pub fn now(&self) -> Guard<Arc<Sheet>> {
        self.0.load()
    }

    /// The configuration has changed to these scenes and models: what is new gets a name of its own from
    /// here on, up to a bound, beyond which it counts as `other`. What went away keeps its series.
    pub fn follow(&self, catalogue: &Catalogue, models: &[String]) {
        self.0.rcu(|now| match now.names.with(catalogue, models) {
            None => now.clone(),
            Some(names) => {
                let kpis = now.kpis.as_ref().map(|kpis| Arc::new(kpis.along(&names)));
                Arc::new(Sheet { names: Arc::new(names), kpis })
            }
        });
    }
}
