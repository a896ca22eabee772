//! Compares a report with an earlier one, and says which changes may be chance.

use std::collections::BTreeMap;

use serde::Serialize;

use super::report::{EvalReport, RequestReport};

/// What is less likely is not put down to chance.
const CHANCE: f64 = 0.05;

/// The changes since an earlier evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EvalComparison {
    /// Requests that were right and are wrong now, or that wrote what they did not write before.
    pub regressions: Vec<ChangedRequest>,
    /// Requests that are right in fewer executions than before, or in more, without being among the others: chance may
    /// do that.
    pub shifted: Vec<ChangedRequest>,
    /// Requests that were wrong and are right now.
    pub improved: Vec<ChangedRequest>,
    /// Requests that were not executed before.
    pub added: Vec<String>,
    /// Requests that are not executed now.
    pub removed: Vec<String>,
    /// Requests with other words or labels than before, which are not compared.
    pub relabelled: Vec<String>,
    /// The models before and now, if they are others.
    pub models: Option<[String; 2]>,
    /// How many requests became worse and better, if more became worse than chance has it.
    pub fallen: Option<[u32; 2]>,
}

/// A request that is executed otherwise than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedRequest {
    /// Its id.
    pub id: String,
    /// Right executions of all, before.
    pub before: [usize; 2],
    /// Right executions of all, now.
    pub now: [usize; 2],
    /// The present problem; empty if there is none.
    pub fault: String,
}

impl EvalComparison {
    /// Compares a report with an earlier one. A request that is executed several times is lost if it was always right and
    /// never is now, or if fewer executions are right than chance has it (Fisher's exact test, 5 %). The others that became
    /// worse are a regression together, if more of them did than became better (a sign test, 5 %).
    pub fn of(before: &EvalReport, now: &EvalReport) -> Self {
        let (old, new) = (executed(before), executed(now));
        let models = [before.subject.models(), now.subject.models()];
        let mut comparison = Self {
            added: new.keys().filter(|id| !old.contains_key(*id)).map(|id| (*id).to_owned()).collect(),
            removed: old.keys().filter(|id| !new.contains_key(*id)).map(|id| (*id).to_owned()).collect(),
            models: Some(models).filter(|[before, now]| before != now),
            ..Self::default()
        };
        let (mut worse, mut better) = (0, 0);
        for (id, request) in new {
            let Some(earlier) = old.get(id) else { continue };
            if earlier.labels != request.labels {
                comparison.relabelled.push(id.to_owned());
                continue;
            }
            let changed = ChangedRequest::of(earlier, request);
            worse += u32::from(request.share() < earlier.share());
            better += u32::from(request.share() > earlier.share());
            if changed.is_lost() || (request.has_wrong_write() && !earlier.has_wrong_write()) {
                comparison.regressions.push(changed);
            } else if request.is_right() && earlier.right_repetitions() == 0 {
                comparison.improved.push(changed);
            } else if earlier.share() != request.share() {
                comparison.shifted.push(changed);
            }
        }
        comparison.fallen = (binomial_tail(worse, worse + better) <= CHANCE).then_some([worse, better]);
        comparison
    }

    /// Returns whether something that was right is wrong now.
    pub fn is_regression(&self) -> bool {
        !self.regressions.is_empty() || self.fallen.is_some()
    }
}

/// The judged requests that were executed, by id.
fn executed(report: &EvalReport) -> BTreeMap<&str, &RequestReport> {
    let requests = report.requests.iter().filter(|request| request.share().is_some());
    requests.map(|request| (request.id.as_str(), request)).collect()
}

/// How likely `hits` or more of `count` are, if each is as likely as not. 1 of none.
fn binomial_tail(hits: u32, count: u32) -> f64 {
    let log_half = 0.5f64.ln() * f64::from(count);
    (hits..=count).map(|hits| (log_choose(count, hits) + log_half).exp()).sum::<f64>().min(1.0)
}

/// The logarithm of a binomial coefficient.
fn log_choose(of: u32, chosen: u32) -> f64 {
    (1..=chosen.min(of)).map(|n| (f64::from(of - chosen + n) / f64::from(n)).ln()).sum()
}

impl ChangedRequest {
    /// Whether it is right less often than chance has it, by Fisher's exact test; with one execution each, whether it was
    /// right and is not.
    fn is_lost(&self) -> bool {
        let [[was, of_before], [is, of_now]] = [self.before, self.now];
        if was == of_before && is == 0 {
            return was > 0;
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let (was, of_before, is, of_now) = (count(was), count(of_before), count(is), count(of_now));
        let right = was + is;
        let all = log_choose(of_before + of_now, right);
        let likely = |now: u32| match right.checked_sub(now) {
            Some(before) if before <= of_before => {
                (log_choose(of_now, now) + log_choose(of_before, before) - all).exp()
            }
            _ => 0.0,
        };
        (0..=is.min(of_now)).map(likely).sum::<f64>() <= CHANCE
    }

    fn of(before: &RequestReport, now: &RequestReport) -> Self {
        let of = |request: &RequestReport| [request.right_repetitions(), request.repetitions.len()];
        let fault = now.first_wrong().and_then(|repetition| repetition.faults.first());
        let fault = fault.map(|fault| format!("{}: {}", fault.kind, fault.detail)).unwrap_or_default();
        Self { id: now.id.clone(), before: of(before), now: of(now), fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::executed::ExecutedRequest;
    use crate::eval::judge::{EvalFault, EvalFaultKind, Judgement};
    use crate::eval::labels::LabelledRequest;
    use crate::eval::report::{EvalSubject, JudgedRequest};

    /// A report of requests, each with its executions: `+` is right, `-` wrong, `w` a wrong write.
    fn report(requests: &[(&str, &str)]) -> EvalReport {
        let repetition = |mark: char| {
            let kind = match mark {
                '+' => return (ExecutedRequest::default(), Judgement::default()),
                'w' => EvalFaultKind::WrongWrite,
                _ => EvalFaultKind::MissingCall,
            };
            let faults = vec![EvalFault { kind, detail: "Send".to_owned() }];
            (ExecutedRequest::default(), Judgement { faults, ..Judgement::default() })
        };
        let judged = requests.iter().map(|(id, repetitions)| JudgedRequest {
            request: LabelledRequest { id: (*id).to_owned(), plain: true, ..LabelledRequest::default() },
            repetitions: repetitions.chars().map(repetition).collect(),
        });
        EvalReport::of(EvalSubject::default(), &judged.collect::<Vec<_>>())
    }

    fn ids(changed: &[ChangedRequest]) -> String {
        changed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_request_that_was_right_and_is_wrong_is_a_regression() {
        let before = report(&[("a", "+"), ("b", "+"), ("c", "-"), ("d", "-"), ("old", "+"), ("w", "-")]);
        let now = report(&[("a", "+"), ("b", "-"), ("c", "+"), ("d", "-"), ("new", "-"), ("w", "w")]);
        let compared = EvalComparison::of(&before, &now);
        assert_eq!((ids(&compared.regressions), ids(&compared.improved)), ("b w".into(), "c".into()));
        assert_eq!((compared.added, compared.removed), (vec!["new".to_owned()], vec!["old".to_owned()]));
        assert_eq!(compared.regressions[0].fault, "missing_call: Send");
        assert!(!EvalComparison::of(&now, &now).is_regression());
    }

    #[test]
    fn chance_among_few_executions_is_no_regression() {
        let before = report(&[("a", "+++"), ("b", "++-"), ("c", "+++")]);
        let compared = EvalComparison::of(&before, &report(&[("a", "+-+"), ("b", "+++"), ("c", "---")]));
        assert_eq!((ids(&compared.regressions), ids(&compared.shifted)), ("c".into(), "a b".into()));
        // Five of five to one of five is more than that, and so are many requests that are each a little worse.
        let lost = EvalComparison::of(&report(&[("a", "+++++")]), &report(&[("a", "+----")]));
        assert!(lost.is_regression() && lost.fallen.is_none(), "{lost:?}");
        let ids: Vec<String> = (0..8).map(|number| number.to_string()).collect();
        let all = |marks: &'static str| -> Vec<(&str, &str)> {
            ids.iter().map(|id| (id.as_str(), marks)).collect()
        };
        let fallen = EvalComparison::of(&report(&all("+++")), &report(&all("++-")));
        assert!(fallen.regressions.is_empty() && fallen.fallen == Some([8, 0]), "{fallen:?}");
    }

    #[test]
    fn other_labels_are_not_compared() {
        let (before, mut now) = (report(&[("a", "+")]), report(&[("a", "-")]));
        now.requests[0].labels = "other".to_owned();
        now.subject.models = vec!["m".to_owned()];
        let compared = EvalComparison::of(&before, &now);
        assert!(!compared.is_regression() && compared.relabelled == ["a"] && compared.models.is_some());
    }
}
