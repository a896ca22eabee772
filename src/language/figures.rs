//! Figures of a text that another text contains, in any notation.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(crate) struct KnownFigures(BTreeSet<String>);

impl KnownFigures {
    pub(crate) fn add(&mut self, text: &str) {
        for figure in figures(text) {
            if !self.0.contains(figure) {
                self.0.insert(figure.to_owned());
            }
        }
    }

    /// Figures of `answer`, as written, that none of the texts contains. Single digits are ignored: they number
    /// lists and count a few items.
    pub(crate) fn untraced(&self, answer: &str) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for run in runs(answer).filter(|run| bare(run).len() > 1 && !self.0.contains(bare(run))) {
            if !out.iter().any(|one| one == run) {
                out.push(run.to_owned());
            }
        }
        out
    }
}

/// Figures of `answer`, as written, that `shown` does not contain ([`KnownFigures::untraced`]).
pub(crate) fn untraced_figures(answer: &str, shown: &str) -> Vec<String> {
    untraced_among(answer, [shown])
}

/// Figures of `answer`, as written, that none of the `shown` texts contains.
pub(crate) fn untraced_among<'t>(answer: &str, shown: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut wanted: Vec<&str> = Vec::new();
    for run in runs(answer).filter(|run| bare(run).len() > 1) {
        if !wanted.contains(&run) {
            wanted.push(run);
        }
    }
    // An answer has few figures, and what was shown may have thousands.
    for figure in shown.into_iter().flat_map(figures) {
        if wanted.is_empty() {
            break;
        }
        wanted.retain(|run| bare(run) != figure);
    }
    wanted.into_iter().map(str::to_owned).collect()
}

/// The figures that a text has, in any notation.
fn figures(text: &str) -> impl Iterator<Item = &str> {
    runs(text).flat_map(|run| {
        // 12500 is 12.500 in some languages and 12,500 in others.
        let ends = (1..).map(|groups| 3 * groups).take_while(move |end| *end < run.len());
        let parts = ends.flat_map(move |end| {
            let (head, rest) = run.split_at(run.len() - end);
            [head, rest.get(..3).unwrap_or_default()]
        });
        parts.chain([run]).map(bare)
    })
}

fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty())
}

fn bare(run: &str) -> &str {
    run.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_traced_in_any_notation() {
        let shown = r#"{"from": "2026-06-05", "days_left": 22, "price": 12500.75, "rain_mm": 96}"#;
        for answer in ["5 giugno 2026, 05/06/2026", "22 days", "12.500,75 €", "1. 96 mm\n2. none", "3 days"]
        {
            assert_eq!(untraced_figures(answer, shown), [""; 0], "{answer}");
        }
    }

    proptest::proptest! {
        #[test]
        fn figures_are_searched_as_they_are_collected(answer in "[0-9 .,a]{0,40}", shown in "[0-9 .,a]{0,60}") {
            let mut known = KnownFigures::default();
            for run in runs(&shown) {
                let mut rest = run;
                while rest.len() > 3 {
                    let (head, tail) = rest.split_at(rest.len() - 3);
                    known.0.extend([bare(tail).to_owned(), bare(head).to_owned()]);
                    rest = head;
                }
                known.0.insert(bare(run).to_owned());
            }
            proptest::prop_assert_eq!(untraced_figures(&answer, &shown), known.untraced(&answer));
            // Texts are searched as if they were one.
            let texts: Vec<&str> = shown.split('a').collect();
            proptest::prop_assert_eq!(untraced_among(&answer, texts), known.untraced(&answer));
            let mut added = KnownFigures::default();
            added.add(&shown);
            proptest::prop_assert_eq!(added.0, known.0);
        }
    }

    #[test]
    fn untraced_figures_are_listed() {
        assert_eq!(untraced_figures("23 giorni dal 17/06, 23", "22 giorni dal 15/06"), ["23", "17"]);
    }
}
