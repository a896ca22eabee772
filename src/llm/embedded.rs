//! The offline model as a provider like any other.

use async_trait::async_trait;

use super::offline::{NAME, OfflineModel};
use super::{CallControl, Completion, Error, Provider, Request};

#[async_trait]
impl Provider for OfflineModel {
    fn name(&self) -> &str {
        NAME
    }

    async fn complete(&self, request: &Request, _: &CallControl) -> Result<Completion, Error> {
        // Called as a method of the type: it is pure, quick and cannot fail.
        Ok(OfflineModel::complete(self, request))
    }
}
