//! The offline model as a provider like any other.

use async_trait::async_trait;

use super::offline::{NAME, OfflineModel};
use super::{CallControl, Completion, Error, ErrorKind, Provider, Purpose, Request};

#[async_trait]
impl Provider for OfflineModel {
    fn name(&self) -> &str {
        NAME
    }

    async fn complete(&self, request: &Request, _: &CallControl) -> Result<Completion, Error> {
        // Asking again would change nothing: a node declares what happens without a model.
        if request.purpose == Purpose::Program {
            let detail = "the offline model writes no programs; configure a model";
            return Err(Error::new(NAME, ErrorKind::NotConfigured { detail: detail.to_owned() }));
        }
        if request.purpose == Purpose::Node {
            let detail = "the offline model answers no node of a flow; configure a model";
            return Err(Error::new(NAME, ErrorKind::NotConfigured { detail: detail.to_owned() }));
        }
        // Called as a method of the type: it is pure, quick and cannot fail.
        Ok(OfflineModel::complete(self, request))
    }
}
