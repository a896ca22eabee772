//! The attributes of spans that do not come from events, and the destination of finished spans.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::span::SpanSink;
use crate::llm;
use crate::trace_context::TraceSampler;

/// The name of a model at its server, and the server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelServer {
    /// The id that the server knows the model by.
    pub id: String,
    /// The server's host and port.
    pub address: Option<(String, u16)>,
}

/// The configured models by their names; replaced when the configuration is.
#[derive(Debug, Clone, Default)]
pub struct ModelServers(Arc<ArcSwap<BTreeMap<String, ModelServer>>>);

impl ModelServers {
    /// The models of these options.
    pub fn new(options: &llm::Options) -> Self {
        let servers = Self::default();
        servers.replace(options);
        servers
    }

    /// Takes the models of other options.
    pub fn replace(&self, options: &llm::Options) {
        let server = |model: &llm::ModelOptions| {
            let url = reqwest::Url::parse(&model.base_url).ok();
            let address =
                url.and_then(|url| Some((url.host_str()?.to_owned(), url.port_or_known_default()?)));
            (model.name.clone(), ModelServer { id: model.id().to_owned(), address })
        };
        self.0.store(Arc::new(options.models.iter().map(server).collect()));
    }

    /// The model of this name, if it is configured.
    pub(super) fn get(&self, name: &str) -> Option<ModelServer> {
        self.0.load().get(name).cloned()
    }
}

/// How spans are made.
#[derive(Debug, Clone)]
pub struct TraceOptions {
    /// Which runs have spans.
    pub sampler: TraceSampler,
    /// Whether spans have texts of users, models and tools.
    pub content: bool,
    /// The name of this service, which is also that of the workflow.
    pub service: Arc<str>,
    /// The configured models.
    pub models: ModelServers,
}

/// The traces of runs: how their spans are made, and where they go.
#[derive(Clone)]
pub struct RunTraces {
    /// How they are made.
    pub options: TraceOptions,
    /// Receives each when it has ended.
    pub sink: Arc<dyn SpanSink>,
}

impl std::fmt::Debug for RunTraces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunTraces").field("options", &self.options).finish_non_exhaustive()
    }
}
