//! Checks tools of `kind = "summary"`, which declare only their name and description.

use super::document::Located;
use super::draft::{CallDraft, ExpectDraft, ToolDraft};
use super::fault::FaultReport;
use crate::run::Effect;
use crate::tools::summary::SummaryTool;

/// Gives such a tool its parameters. Reports what it may not declare.
pub(super) fn complete(draft: &mut ToolDraft, shown: &str, report: &FaultReport) {
    let Some(CallDraft::Summary { line }) = draft.call else { return };
    if draft.effect.as_ref().is_some_and(|effect| effect.value == Effect::Write) {
        let message = format!("{shown} summarises documents and writes nothing");
        report.error(line, "summary_tool", message, "write effect = \"read\"");
    }
    let ExpectDraft { not_empty, ranges, same, schema, interpret } = &draft.expect;
    let expects = !not_empty.is_empty()
        || !same.is_empty()
        || ranges.is_some()
        || schema.is_some()
        || interpret.is_some();
    let declared =
        [("parameters", draft.parameters.is_some()), ("expect", expects), ("cached", draft.cached.is_some())];
    for (key, _) in declared.iter().filter(|(_, is_declared)| *is_declared) {
        let message = format!("{shown} has kind = \"summary\" and declares `{key}`");
        let remedy = format!("remove `{key}`: arguments and results of all summaries are the same");
        report.error(line, "summary_tool", message, remedy);
    }
    draft.parameters = Some(Located::without_line(SummaryTool::parameters()));
}
