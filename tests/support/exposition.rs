//! A strict parser for metrics in Prometheus' text format: whatever a Prometheus server would refuse, or an
//! operator could not read, fails the test.

use std::collections::{BTreeMap, BTreeSet};

/// Every series with its value, by name and labels as in the text.
pub type Series = BTreeMap<String, f64>;

/// The series of a text, each of a family with `HELP` and `TYPE`.
pub fn read(text: &str) -> Series {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line must end with a newline");
    let mut series = Series::new();
    let mut families = BTreeSet::new();
    let mut family: Option<(String, String)> = None;
    let mut helped: Option<String> = None;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap_or_else(|| panic!("no help text: {line}"));
            assert!(words.len() > 10 && words.ends_with('.'), "the help text is a sentence: {line}");
            assert!(families.insert(name.to_owned()), "duplicate: {line}");
            helped = Some(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(helped.take().as_deref(), Some(name), "no preceding help: {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(name.starts_with("proscenium_") || name.starts_with("process_"), "{line}");
            family = Some((name.to_owned(), kind.to_owned()));
        } else {
            let (name, kind) = family.as_ref().unwrap_or_else(|| panic!("no family: {line}"));
            let (key, value) = sample(line);
            let own = key.split('{').next().unwrap();
            let fits = match kind.as_str() {
                "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| own == format!("{name}{end}")),
                _ => own == name,
            };
            assert!(fits, "not of {name}: {line}");
            assert!(kind == "gauge" || value >= 0.0, "negative: {line}");
            assert!(series.insert(key, value).is_none(), "duplicate: {line}");
        }
    }
    histograms_add_up(&series);
    series
}

/// Name with labels, and value, of one line.
fn sample(line: &str) -> (String, f64) {
    let at = line.rfind(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let (key, value) = (&line[..at], &line[at + 1..]);
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
    assert!(value.is_finite(), "{line}");
    let name = key.split('{').next().unwrap();
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
    if let Some(labels) = key.strip_prefix(name).filter(|labels| !labels.is_empty()) {
        let labels = labels.strip_prefix('{').and_then(|l| l.strip_suffix('}'));
        let labels = labels.unwrap_or_else(|| panic!("unbalanced brackets: {line}"));
        let mut names = BTreeSet::new();
        for pair in labels.split("\",") {
            let (label, value) = pair.split_once("=\"").unwrap_or_else(|| panic!("malformed label: {line}"));
            assert!(
                names.insert(label) && label.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
                "{line}"
            );
            assert!(!value.trim_end_matches('"').is_empty(), "an empty label: {line}");
        }
    }
    (key.to_owned(), value)
}

/// Buckets are cumulative, and the last one contains everything.
fn histograms_add_up(series: &Series) {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (key, count) in series {
        let Some((before, rest)) = key.split_once("le=\"") else { continue };
        let (bound, after) = rest.split_once('"').unwrap();
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
        let whole = format!("{}{after}", before.trim_end_matches(','));
        let whole = whole.replace("_bucket{}", "_count").replace("_bucket{", "_count{");
        buckets.entry(whole).or_default().push((bound, *count));
    }
    for (whole, mut counts) in buckets {
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(counts.is_sorted_by(|a, b| a.1 <= b.1), "{whole}: {counts:?}");
        let (bound, all) = counts.last().unwrap();
        assert_eq!((*bound, *all), (f64::INFINITY, series[&whole]), "{whole}");
    }
}

/// The sum of the series of one family whose labels contain all of `labels`, such as `scene="Weather"`.
pub fn sum(series: &Series, name: &str, labels: &[&str]) -> f64 {
    let fits =
        |key: &&String| key.split('{').next() == Some(name) && labels.iter().all(|label| key.contains(label));
    series.keys().filter(fits).map(|key| series[key]).sum()
}
