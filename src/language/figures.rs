//! Figures of a text that another text contains, in any notation.

use std::collections::BTreeSet;

/// The figures of texts.
#[derive(Debug, Default)]
pub(crate) struct KnownFigures(BTreeSet<String>);

impl KnownFigures {
    /// Adds the figures of a text.
    pub(crate) fn add(&mut self, text: &str) {
        for run in runs(text) {
            // 12500 is 12.500 in some languages and 12,500 in others.
            let mut rest = run;
            while rest.len() > 3 {
                let (head, tail) = rest.split_at(rest.len() - 3);
                self.0.insert(bare(tail).to_owned());
                self.0.insert(bare(head).to_owned());
                rest = head;
            }
            self.0.insert(bare(run).to_owned());
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
    let mut known = KnownFigures::default();
    known.add(shown);
    known.untraced(answer)
}

/// Runs of digits.
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

    #[test]
    fn untraced_figures_are_listed() {
        assert_eq!(untraced_figures("23 giorni dal 17/06, 23", "22 giorni dal 15/06"), ["23", "17"]);
    }
}
