use super::super::{output, recorded};
use super::*;
use proscenium::run::RunStatus;

fn plain(journal: &[Envelope<Event>]) -> String {
    let mut progress = Progress::plain(Vec::new());
    for envelope in journal {
        progress.show(envelope).unwrap();
    }
    String::from_utf8(progress.finish()).unwrap()
}

#[test]
fn a_run_over_two_scenes_is_told_line_by_line_and_then_answered() {
    let mut out = plain(&recorded::two_scenes()).into_bytes();
    let answer = recorded::answer(RunStatus::Completed, "A Milano da 12 a 24 °C.\nFerie chieste.");
    output::answer(&mut out, &answer).unwrap();
    let told = String::from_utf8(out).unwrap();
    assert!(!told.contains('\u{1b}'), "an escape came through");
    insta::assert_snapshot!(told, @"");
}

#[test]
fn a_failed_step_says_why_and_what_it_blocks() {
    insta::assert_snapshot!(plain(&recorded::failed_step()), @"");
}

#[test]
fn a_question_to_the_user_is_told_where_it_came_up() {
    insta::assert_snapshot!(plain(&recorded::needs_input()), @"");
}

#[test]
fn a_plan_by_the_embedded_rules_says_so() {
    insta::assert_snapshot!(plain(&recorded::degraded_plan()), @"");
}

#[test]
fn on_a_terminal_the_same_lines_are_written_above_the_spinners() {
    let journal = recorded::two_scenes();
    let mut live = Progress::live(Vec::new(), ProgressDrawTarget::hidden());
    for envelope in &journal {
        live.show(envelope).unwrap();
    }
    let live = String::from_utf8(live.finish()).unwrap();
    let live = console::strip_ansi_codes(&live);
    let told: Vec<&str> = live.lines().map(|line| line.get(2..).unwrap_or_default().trim_start()).collect();
    let plain = plain(&journal);
    let plain: Vec<&str> = plain.lines().map(str::trim_start).collect();
    assert_eq!(told.len(), plain.len());
    for (told, plain) in told.iter().zip(&plain) {
        assert!(plain.ends_with(told) || told.ends_with(plain), "{told} / {plain}");
    }
}
