//! Figures of the server under load, from its metrics in the Prometheus text format.

use serde::{Deserialize, Serialize};

/// The server's metrics at one moment; `None` for what it does not export.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerSample {
    /// Resident memory in bytes.
    pub memory_bytes: Option<f64>,
    /// Seconds of processor time since its start.
    pub cpu_seconds: Option<f64>,
    /// Model replies from its cache, and from equal questions in progress.
    pub cache_hits: Option<f64>,
    /// Model calls that the cache had no reply for.
    pub cache_misses: Option<f64>,
}

/// The resources that the server used during the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Why there are no figures, such as `HTTP 403`; absent if the metrics were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Whether its counters began anew during the load: it was started again.
    #[serde(default)]
    pub restarted: bool,
    /// Resident memory before the load, in bytes.
    pub memory_before_bytes: Option<f64>,
    /// The highest that was seen.
    pub memory_max_bytes: Option<f64>,
    /// After the load and the ends of its runs.
    pub memory_after_bytes: Option<f64>,
    /// Seconds of processor time.
    pub cpu_seconds: Option<f64>,
    /// Lookups in the cache of model replies that gave one.
    pub cache_hits: Option<f64>,
    /// Those that did not.
    pub cache_misses: Option<f64>,
}

impl ServerSample {
    /// Reads an exposition. The figures of the process have Prometheus' own names, or those with the server's prefix.
    pub fn parse(exposition: &str) -> Self {
        let mut sample = Self::default();
        for line in exposition.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let name = name.strip_prefix("proscenium_").unwrap_or(name);
            match name {
                "process_resident_memory_bytes" => _ = sample.memory_bytes.get_or_insert(value),
                "process_cpu_seconds_total" => _ = sample.cpu_seconds.get_or_insert(value),
                "llm_cache_requests_total" => {
                    let is_miss = labels.contains("\"miss\"");
                    let figure = if is_miss { &mut sample.cache_misses } else { &mut sample.cache_hits };
                    *figure = Some(figure.unwrap_or_default() + value);
                }
                _ => {}
            }
        }
        sample
    }
}

impl ServerFigures {
    /// Figures that could not be read.
    pub fn unread(why: impl Into<String>) -> Self {
        Self { unread: Some(why.into()), ..Self::default() }
    }

    /// From the samples before and after the load, and the highest memory in between.
    pub fn between(before: &ServerSample, after: &ServerSample, memory_max_bytes: Option<f64>) -> Self {
        // A server that was restarted counts from zero again.
        let grown = |from: Option<f64>, to: Option<f64>| match (from, to) {
            (Some(from), Some(to)) if to >= from => Some(to - from),
            (_, to) => to,
        };
        let fell = |from: Option<f64>, to: Option<f64>| from.zip(to).is_some_and(|(from, to)| to < from);
        let restarted = fell(before.cpu_seconds, after.cpu_seconds)
            || fell(before.cache_hits, after.cache_hits)
            || fell(before.cache_misses, after.cache_misses);
        let max = [before.memory_bytes, after.memory_bytes, memory_max_bytes].into_iter().flatten();
        Self {
            unread: None,
            restarted,
            memory_before_bytes: before.memory_bytes,
            memory_max_bytes: max.reduce(f64::max),
            memory_after_bytes: after.memory_bytes,
            cpu_seconds: grown(before.cpu_seconds, after.cpu_seconds),
            cache_hits: grown(before.cache_hits, after.cache_hits),
            cache_misses: grown(before.cache_misses, after.cache_misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_under_both_names_and_missing_ones_stay_absent() {
        let before = ServerSample::parse(
            "# HELP x y\nproscenium_llm_cache_requests_total{result=\"hit\"} 2\n\
             proscenium_llm_cache_requests_total{result=\"joined\"} 1\n\
             proscenium_llm_cache_requests_total{result=\"miss\"} 5\nprocess_resident_memory_bytes 1e6\nproscenium_process_resident_memory_bytes 1e6\nbroken\n",
        );
        assert_eq!(
            (before.cache_hits, before.cache_misses, before.cpu_seconds),
            (Some(3.0), Some(5.0), None)
        );
        let after = ServerSample { cache_hits: Some(10.0), ..before };
        let figures = ServerFigures::between(&before, &after, Some(3e6));
        assert_eq!(
            (figures.cache_hits, figures.memory_max_bytes, figures.cpu_seconds),
            (Some(7.0), Some(3e6), None)
        );
        assert!(!figures.restarted && ServerFigures::between(&after, &before, None).restarted);
    }
}
