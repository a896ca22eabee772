//! The names in a PromQL expression: metrics, labels and values. Enough of the grammar for that; Prometheus
//! checks the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::exposition::Series;

/// Labels that an expression matches, and their possible values.
pub type LabelMatchers = Vec<(String, Vec<String>)>;

/// The names in an expression.
#[derive(Debug, Default, PartialEq)]
pub struct Names {
    /// Each metric with its matched labels, and their possible values.
    pub metrics: Vec<(String, LabelMatchers)>,
    /// Labels that are kept, removed or matched: `by (…)` and the like.
    pub labels: BTreeSet<String>,
}

const LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// `rate(…)`, `sum by (…)`.
const AFTER_A_FUNCTION: [&str; 3] = ["(", "by ", "without "];
const WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];

/// Reads an expression without variables.
pub fn names(expr: &str) -> Names {
    let mut names = Names::default();
    let mut rest = expr;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after.trim_start();
            if LISTS.contains(&word) {
                let (list, after) = enclosed(rest, '(', ')');
                names.labels.extend(list.split(',').map(|label| label.trim().to_owned()));
                rest = after;
            } else if rest.starts_with('{') {
                let (matchers, after) = enclosed(rest, '{', '}');
                names.metrics.push((word.to_owned(), read_matchers(matchers)));
                rest = after;
            } else if !AFTER_A_FUNCTION.iter().any(|after| rest.starts_with(after)) && !WORDS.contains(&word)
            {
                names.metrics.push((word.to_owned(), vec![]));
            }
        } else if first == '[' {
            rest = enclosed(rest, '[', ']').1;
        } else if first.is_ascii_digit() {
            // A number or a duration, such as 0.05 and 15m.
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    names
}

/// The text between two brackets, and the rest.
fn enclosed(text: &str, open: char, close: char) -> (&str, &str) {
    let inside = text.strip_prefix(open).unwrap_or_else(|| panic!("no {open}: {text}"));
    inside.split_once(close).unwrap_or_else(|| panic!("no {close}: {text}"))
}

/// `a="x", b=~"y|z"`; of a pattern, its words.
fn read_matchers(text: &str) -> Vec<(String, Vec<String>)> {
    let mut matchers = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (label, after) = rest.split_once('"').unwrap();
        let (value, after) = after.split_once('"').unwrap();
        let words = value.split('|').filter(|word| *word != ".*").map(str::to_owned).collect();
        matchers.push((label.trim_end_matches(['=', '~', '!']).trim().to_owned(), words));
        rest = after.trim_start_matches([',', ' ', '\n']);
    }
    matchers
}

/// The exported metrics: each metric, its labels, and their values.
pub struct Emitted(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

/// Labels that the scrape adds to every series.
const SCRAPED: [&str; 2] = ["instance", "job"];

impl Emitted {
    pub fn of(series: &Series) -> Self {
        let mut metrics: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for key in series.keys() {
            let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
            let of_metric = metrics.entry(name.to_owned()).or_default();
            for (label, values) in read_matchers(labels.trim_end_matches('}')) {
                of_metric.entry(label).or_default().extend(values);
            }
        }
        Self(metrics)
    }

    /// With metrics that rules record, of one series for each server.
    pub fn with_recorded<'a>(mut self, metrics: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.extend(metrics.into_iter().map(|metric| (metric.to_owned(), BTreeMap::new())));
        self
    }

    /// Every metric; a histogram counts as one.
    pub fn families(&self) -> BTreeSet<&str> {
        self.0.keys().map(|name| family(name)).collect()
    }

    /// Names in an expression that are not exported; `unseen` collects each `label=value` that the load did
    /// not produce.
    pub fn faults(&self, expr: &str, unseen: &mut BTreeSet<String>) -> Vec<String> {
        let names = names(expr);
        let mut faults = Vec::new();
        let mut known: BTreeSet<&str> = SCRAPED.into();
        for (metric, matchers) in &names.metrics {
            let Some(labels) = self.0.get(metric) else {
                if metric != "up" {
                    faults.push(format!("{metric} is not emitted"));
                }
                continue;
            };
            known.extend(labels.keys().map(String::as_str));
            for (label, values) in matchers.iter().filter(|(label, _)| !SCRAPED.contains(&label.as_str())) {
                match labels.get(label) {
                    None => faults.push(format!("{metric} has no label {label}")),
                    Some(there) => {
                        let missing = values.iter().filter(|value| !there.contains(*value));
                        unseen.extend(missing.map(|value| format!("{metric} {label}={value}")));
                    }
                }
            }
        }
        let strange = names.labels.iter().filter(|label| !known.contains(label.as_str()));
        faults.extend(strange.map(|label| format!("no metric of it has the label {label}")));
        faults
    }
}

/// The name under which a histogram's series are documented.
pub fn family(metric: &str) -> &str {
    let ends = ["_bucket", "_sum", "_count"];
    ends.iter().find_map(|end| metric.strip_suffix(end)).unwrap_or(metric)
}

#[test]
fn names_are_extracted_from_an_expression() {
    let read = names(
        r#"3600 * sum by (model, le) (rate(a_total{x=~"p|q", y!="z"}[5m] offset 15m)) / on (z) b > 0.5 and up"#,
    );
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    let matchers = vec![("x".to_owned(), owned(&["p", "q"])), ("y".to_owned(), owned(&["z"]))];
    let metrics = vec![("a_total".to_owned(), matchers), ("b".to_owned(), vec![]), ("up".to_owned(), vec![])];
    assert_eq!(read.metrics, metrics);
    assert_eq!(read.labels, owned(&["le", "model", "z"]).into_iter().collect());
}
