//! The result of an evaluation, as a document that later evaluations are compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::counts::EvalCounts;
use super::executed::ExecutedRequest;
use super::interval::ShareInterval;
use super::judge::{EvalFault, EvalFaultKind, Judgement};
use super::labels::LabelledRequest;
use crate::run::RunStatus;

/// The format of the document.
pub const REPORT_FORMAT: &str = "proscenium-eval/1";
/// Maximum length of an answer and of a call, in characters.
const MAX_TEXT: usize = 500;
/// Maximum number of calls of a request.
const MAX_CALLS: usize = 50;

/// A request with all its executions.
#[derive(Debug, Clone)]
pub struct JudgedRequest {
    /// The request.
    pub request: LabelledRequest,
    /// Its executions, with how they compare with the labels. None if it was left out.
    pub repetitions: Vec<(ExecutedRequest, Judgement)>,
}

impl JudgedRequest {
    /// A request that was not executed yet.
    pub fn new(request: &LabelledRequest) -> Self {
        Self { request: request.clone(), repetitions: Vec::new() }
    }
}

/// The subject of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalSubject {
    /// The models that could be asked; none: the offline model.
    pub models: Vec<String>,
    /// How often each request was executed.
    pub repeat: usize,
    /// How many requests were executed at once, at most: the times are those under that load.
    pub concurrency: usize,
    /// The version of this program.
    pub version: String,
}

impl EvalSubject {
    /// The models in words.
    pub fn models(&self) -> String {
        match self.models.as_slice() {
            [] => "the offline model".to_owned(),
            models => models.join(", "),
        }
    }
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// [`REPORT_FORMAT`].
    pub format: String,
    /// The subject of the evaluation.
    pub subject: EvalSubject,
    /// Requests.
    pub count: usize,
    /// Requests that were not executed, because it was stopped or no more may be spent.
    pub left_out: usize,
    /// Why the rest was not executed, if that is not what was asked for: an engine did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// What was spent on requests that count as not executed, because money ended while they were: US dollars, beside the
    /// cost in `counts`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_off_usd: f64,
    /// The mean share of right executions of a request, 0 to 1.
    pub right: f64,
    /// Its bounds. Requests are counted, not executions, which are not independent of each other.
    pub right_interval: ShareInterval,
    /// The counts of all executions.
    pub counts: EvalCounts,
    /// Milliseconds of a request.
    pub latency: LatencyFigures,
    /// Conditions in words, which were not judged.
    pub unjudged: usize,
    /// The requests, in the order of the files.
    pub requests: Vec<RequestReport>,
}

/// Milliseconds from the acceptance of a request to its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Half of the requests took no longer.
    pub p50_ms: f64,
    /// 95 of 100 requests took no longer.
    pub p95_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// A request, and how it was executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestReport {
    /// Its id.
    pub id: String,
    /// Its file.
    pub file: PathBuf,
    /// The line where it begins.
    pub line: usize,
    /// Its class; empty without one.
    pub class: String,
    /// The user's words.
    pub say: String,
    /// Whether it has a label that is judged.
    pub judged: bool,
    /// A hash of its words and labels.
    pub labels: String,
    /// Conditions in words, which were not judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
    /// Its executions. None if it was left out.
    pub repetitions: Vec<RepetitionReport>,
}

/// One execution of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepetitionReport {
    /// Whether everything was as labelled.
    pub right: bool,
    /// The differences from the labels.
    pub faults: Vec<EvalFault>,
    /// How it ended; absent if it could not be executed.
    pub status: Option<RunStatus>,
    /// The scenes that took part.
    pub scenes: Vec<String>,
    /// The calls, with their arguments.
    pub calls: Vec<String>,
    /// Labelled calls that were not executed completely.
    pub left: usize,
    /// The answer, shortened.
    pub answer: String,
    /// Calls to models.
    pub model_calls: u32,
    /// Prompt and completion tokens.
    pub tokens: u64,
    /// US dollars.
    pub cost_usd: f64,
    /// Milliseconds.
    pub ms: f64,
}

impl EvalReport {
    /// The report of these requests.
    pub fn of(subject: EvalSubject, requests: &[JudgedRequest]) -> Self {
        let mut counts = EvalCounts::default();
        for JudgedRequest { request, repetitions } in requests {
            repetitions.iter().for_each(|(executed, judgement)| counts.add(request, executed, judgement));
        }
        let reports: Vec<RequestReport> = requests.iter().map(RequestReport::of).collect();
        let shares: Vec<f64> = reports.iter().filter_map(RequestReport::share).collect();
        let right = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        Self {
            format: REPORT_FORMAT.to_owned(),
            subject,
            count: reports.len(),
            left_out: reports.iter().filter(|one| one.is_left_out()).count(),
            ended_early: None,
            cut_off_usd: 0.0,
            right,
            right_interval: ShareInterval::wilson(right, shares.len()),
            latency: LatencyFigures::of(
                reports.iter().flat_map(|one| &one.repetitions).map(|repetition| repetition.ms),
            ),
            counts,
            unjudged: reports.iter().map(|one| one.unjudged.len()).sum(),
            requests: reports,
        }
    }

    /// The report in a document.
    ///
    /// # Errors
    /// What is wrong with the document.
    pub fn parse(text: &str) -> Result<Self, String> {
        // First, since a report of another format may have other fields.
        let document: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        match document["format"].as_str() {
            Some(REPORT_FORMAT) => serde_json::from_value(document).map_err(|error| error.to_string()),
            Some(other) => Err(format!("its format is {other:?}, and not {REPORT_FORMAT:?}")),
            None => Err(format!("it has no format, and is not a report of {REPORT_FORMAT:?}")),
        }
    }

    /// Returns whether every request was executed, and each time as labelled.
    pub fn is_right(&self) -> bool {
        self.requests.iter().all(RequestReport::is_right)
    }

    /// By class, how many executions there were, how many were right, and how many had which fault.
    pub fn classes(&self) -> BTreeMap<&str, ClassCounts> {
        let mut classes: BTreeMap<&str, ClassCounts> = BTreeMap::new();
        for request in self.requests.iter().filter(|request| request.judged) {
            let class = classes.entry(request.class.as_str()).or_default();
            for repetition in &request.repetitions {
                class.executed += 1;
                class.right += usize::from(repetition.right);
                let kinds: BTreeSet<EvalFaultKind> =
                    repetition.faults.iter().map(|fault| fault.kind).collect();
                kinds.into_iter().for_each(|kind| *class.faults.entry(kind).or_default() += 1);
            }
        }
        classes
    }
}

/// The executions of a class of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Executions.
    pub executed: usize,
    /// Right ones.
    pub right: usize,
    /// Executions with a fault, by kind.
    pub faults: BTreeMap<EvalFaultKind, usize>,
}

impl RequestReport {
    fn of(judged: &JudgedRequest) -> Self {
        let request = &judged.request;
        Self {
            id: request.id.clone(),
            file: request.file.clone(),
            line: request.line,
            class: request.class.clone().unwrap_or_default(),
            say: request.say.clone(),
            judged: request.is_judged(),
            labels: request.fingerprint(),
            unjudged: request.unjudged().into_iter().map(str::to_owned).collect(),
            repetitions: judged.repetitions.iter().map(RepetitionReport::of).collect(),
        }
    }

    /// How many of its executions were right.
    pub fn right_repetitions(&self) -> usize {
        self.repetitions.iter().filter(|repetition| repetition.right).count()
    }

    /// The share of right executions, 0 to 1; `None` if it was left out or is not judged.
    pub fn share(&self) -> Option<f64> {
        (self.judged && !self.repetitions.is_empty())
            .then(|| self.right_repetitions() as f64 / self.repetitions.len() as f64)
    }

    /// Returns whether it was left out.
    pub fn is_left_out(&self) -> bool {
        self.repetitions.is_empty()
    }

    /// Returns whether it was executed, and each time as labelled, if it is judged.
    pub fn is_right(&self) -> bool {
        !self.is_left_out() && (!self.judged || self.share() == Some(1.0))
    }

    /// Returns whether a write in any of its executions was not asked for.
    pub fn has_wrong_write(&self) -> bool {
        let mut faults = self.repetitions.iter().flat_map(|repetition| &repetition.faults);
        faults.any(|fault| fault.kind == EvalFaultKind::WrongWrite)
    }

    /// The first execution that was not right, if it is judged.
    pub fn first_wrong(&self) -> Option<&RepetitionReport> {
        self.repetitions.iter().filter(|_| self.judged).find(|repetition| !repetition.right)
    }
}

impl RepetitionReport {
    fn of((executed, judgement): &(ExecutedRequest, Judgement)) -> Self {
        Self {
            right: judgement.is_right(),
            faults: judgement
                .faults
                .iter()
                .map(|fault| EvalFault { kind: fault.kind, detail: truncated(&fault.detail) })
                .collect(),
            status: executed.status,
            scenes: executed.scenes().into_iter().collect(),
            calls: executed.calls.iter().take(MAX_CALLS).map(|call| truncated(&call.to_string())).collect(),
            left: judgement.left,
            answer: truncated(&executed.answer),
            model_calls: executed.model_calls,
            tokens: executed.input_tokens + executed.output_tokens,
            cost_usd: executed.cost_usd,
            ms: executed.ms,
        }
    }
}

impl LatencyFigures {
    fn of(times: impl Iterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        // The nearest rank.
        let at = |share: f64| {
            let rank = (share * times.len() as f64).ceil() as usize;
            times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { p50_ms: at(0.5), p95_ms: at(0.95), max_ms: at(1.0) }
    }
}

fn is_zero(amount: &f64) -> bool {
    *amount == 0.0
}

fn truncated(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
