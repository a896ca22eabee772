//! How often each fault was found.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Judged, PlayedRequest};
use crate::support::eval::Class;

/// The counts of the table.
#[derive(Default)]
pub(super) struct Tally {
    requests: usize,
    calls: usize,
    writes: usize,
    wrong_writes: usize,
    invented: usize,
    dropped: usize,
    scenes: usize,
    scenes_right: usize,
    out_of_scope: usize,
    tools_out_of_scope: usize,
    plain: usize,
    plain_done: usize,
    needless: usize,
    asks: usize,
    unasked: usize,
    other_reads: usize,
}

impl Tally {
    pub(super) fn add(&mut self, played: &PlayedRequest, judged: &Judged) {
        let labelled = &played.labelled;
        self.requests += 1;
        self.calls += played.calls.len();
        self.writes += played.calls.iter().filter(|made| made.writes).count();
        self.wrong_writes += judged.wrong_writes.len();
        self.invented += judged.invented.len();
        self.dropped += usize::from(!judged.dropped.is_empty());
        self.scenes += usize::from(judged.scenes.is_some());
        self.scenes_right += usize::from(judged.scenes == Some(true));
        self.out_of_scope += usize::from(labelled.class == Class::OutOfScope);
        self.tools_out_of_scope += usize::from(judged.tools_out_of_scope);
        self.plain += usize::from(labelled.plain);
        self.plain_done += usize::from(labelled.plain && judged.left == 0);
        self.needless += usize::from(judged.needless);
        self.asks += usize::from(labelled.asks);
        self.unasked += usize::from(judged.unasked);
        self.other_reads += judged.other_reads;
    }

    /// The quality bars: name, count, total, the bar, and whether it is met.
    pub(super) fn bars(&self) -> [(&'static str, usize, usize, &'static str, bool); 6] {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        [
            ("wrong writes", self.wrong_writes, self.writes, "0", self.wrong_writes == 0),
            (
                "calls with an unmentioned value",
                self.invented,
                self.calls,
                "<= 5%",
                share(self.invented, self.calls) <= 0.05,
            ),
            ("requests with a dropped half", self.dropped, self.requests, "0", self.dropped == 0),
            (
                "exact scene sets",
                self.scenes_right,
                self.scenes,
                ">= 85%",
                share(self.scenes_right, self.scenes) >= 0.85,
            ),
            (
                "out-of-scope requests that call a tool",
                self.tools_out_of_scope,
                self.out_of_scope,
                "<= 0.5%",
                share(self.tools_out_of_scope, self.out_of_scope) <= 0.005,
            ),
            (
                "needless questions",
                self.needless,
                self.plain,
                "<= 10%",
                share(self.needless, self.plain) <= 0.1,
            ),
        ]
    }

    pub(super) fn table(&self) -> String {
        let mut table = format!("{} requests\n", self.requests);
        let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
        for (what, part, whole, bar, kept) in self.bars() {
            let kept = if kept { "met" } else { "NOT MET" };
            let share = percent(part, whole);
            writeln!(table, "| {what:<40} | {part:>4} of {whole:>4} | {share:>5.1}% | {bar:>7} | {kept} |")
                .unwrap();
        }
        for (what, part, whole) in [
            ("plain requests executed completely", self.plain_done, self.plain),
            ("questions that were not asked", self.unasked, self.asks),
            ("reads with other values than labelled", self.other_reads, self.calls - self.writes),
        ] {
            let share = percent(part, whole);
            writeln!(table, "| {what:<40} | {part:>4} of {whole:>4} | {share:>5.1}% |         |  |").unwrap();
        }
        table
    }
}

/// One line per class: where the faults are.
pub(super) fn by_class(all: &[(PlayedRequest, Judged)]) -> String {
    let mut classes: BTreeMap<Class, Tally> = BTreeMap::new();
    for (played, judged) in all {
        classes.entry(played.labelled.class).or_default().add(played, judged);
    }
    let mut table =
        "| class | requests | wrong writes | invented | dropped | wrong scenes | needless | unasked |\n"
            .to_owned();
    for (class, t) in classes {
        let (class, wrong_scenes) = (format!("{class:?}"), t.scenes - t.scenes_right);
        let cells = [t.requests, t.wrong_writes, t.invented, t.dropped, wrong_scenes, t.needless, t.unasked];
        let cells: Vec<String> = cells.iter().map(ToString::to_string).collect();
        writeln!(table, "| {class} | {} |", cells.join(" | ")).unwrap();
    }
    table
}

/// The faulty requests, by fault.
pub(super) fn faults(all: &[(PlayedRequest, Judged)]) -> String {
    let mut lines = String::new();
    for (played, judged) in all {
        let mut wrong: Vec<String> = vec![];
        wrong.extend(judged.wrong_writes.iter().map(|call| format!("wrong write: {call}")));
        wrong.extend(judged.invented.iter().map(|value| format!("not mentioned: {value}")));
        wrong.extend(judged.dropped.iter().map(|half| format!("dropped: {half}")));
        if judged.scenes == Some(false) {
            wrong.push(format!("scenes, meant: {:?}", played.labelled.scenes.as_deref().unwrap_or_default()));
        }
        for (fault, what) in [
            (judged.other_reads > 0, "a read with other values (no bar)"),
            (judged.tools_out_of_scope, "a tool out of scope"),
            (judged.needless, "a needless question"),
            (judged.unasked, "no question (no bar)"),
            (played.labelled.plain && judged.left > 0 && !judged.needless, "not executed (no bar)"),
        ] {
            wrong.extend(fault.then(|| what.to_owned()));
        }
        if !wrong.is_empty() {
            writeln!(lines, "- {}\n    FAULT {}", played.brief(), wrong.join("\n    FAULT ")).unwrap();
        }
    }
    lines
}
