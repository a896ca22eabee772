use crate::{Engine, Answer, ChatRequest, Ticket};
use crate::run::*;
pub enum Submitted { New(Ticket), Before { run: RunId, session: SessionId } }
pub struct Row { pub day: jiff::civil::Date, pub model: String, pub purpose: String, pub calls: u64, pub input_tokens: u64, pub cached_input_tokens: u64, pub output_tokens: u64, pub cost_nano_usd: u64 }
impl Engine {
    pub async fn submit_once(&self, r: ChatRequest) -> Result<Submitted, Fault> { Ok(Submitted::New(self.submit(r).await?)) }
    pub async fn answer_of(&self, _: &TenantId, _: RunId) -> Result<Option<Answer>, Fault> { Ok(None) }
    pub async fn erase(&self, _: &TenantId, _: &SessionId) -> Result<bool, Fault> { Ok(false) }
    pub fn metrics(&self) -> String { String::new() }
    pub fn shed(&self, _: &str) {}
    pub async fn usage(&self, _: &TenantId, _: jiff::Timestamp, _: jiff::Timestamp) -> Result<Vec<Row>, Fault> { Ok(vec![]) }
    pub async fn wait(&self, _: &TenantId, _: RunId) -> Result<Answer, Fault> { Err(Fault::new("x","x")) }
}
