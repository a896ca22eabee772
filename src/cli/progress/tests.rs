use super::super::{output, recorded};
use super::*;
use proscenium::run::RunStatus;

fn plain(journal: &[Envelope<Event>]) -> String {
    let mut progress = ProgressDisplay::plain(Vec::new());
    for envelope in journal {
        progress.show(envelope).unwrap();
    }
    String::from_utf8(progress.finish()).unwrap()
}

#[test]
fn run_over_two_scenes_is_narrated_line_by_line_and_then_answered() {
    let mut out = plain(&recorded::two_scenes()).into_bytes();
    let answer = recorded::answer(RunStatus::Completed, "A Milano da 12 a 24 °C.\nFerie chieste.");
    let mut words = Vec::new();
    output::answer(&mut words, &mut out, &answer, true).unwrap();
    assert_eq!(String::from_utf8(words).unwrap(), "A Milano da 12 a 24 °C.\nFerie chieste.\n");
    let told = String::from_utf8(out).unwrap();
    assert!(!told.contains('\u{1b}'), "an escape came through");
    insta::assert_snapshot!(told, @r#"
    plan: 2 steps: User needs weather and vacation request
      1. Weather: Get weather information for Milan [WeatherForecast_Get, AddCity]
      2. VacationManagement: Submit vacation request [MakeRequest], after 1
    step 1 Weather: started
    step 1 Weather: WeatherForecast_Get {"city":"Milan"}: ok {"city":"Milan","max_c":24,"min_c":12,"source":"bundled \u001b[31mclimate\u001b[0m values"} (12 ms)
    step 1 Weather: WeatherForecast_Get {"city":"Milan"}: skipped, the same call was already made
    step 1 Weather: completed
    step 2 VacationManagement: started
    step 2 VacationManagement: MakeRequest {"from":"2026-06-15","to":"2026-06-17"}: ok {"days":3,"id":7} (12 ms)
    step 2 VacationManagement: completed
    check: more is needed: who approves it
    plan 2, for what is missing: 1 step: Approvers are missing
      3. VacationManagement: Find the approvers [GetApprovers], after 2
    step 3 VacationManagement: started
    step 3 VacationManagement: completed
    check 2: the request is answered: Everything was done


    5 model calls, 2100 tokens in (400 cached), 180 out, $0.0012, 1.23 s (overhead 3.4 ms)
    "#);
}

#[test]
fn a_failed_step_says_why_and_what_it_blocks() {
    insta::assert_snapshot!(plain(&recorded::failed_step()), @r#"
    plan: 2 steps
      1. Weather: Weather
      2. VacationManagement: Ask, after 1
    step 1 Weather: started
    step 1 Weather: WeatherForecast_Get {"city":"Milan","note":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…: failed [tool.timeout]: The service did not answer in time; please try again later. (5.00 s)
    model: failed [llm.unavailable]: connection refused
    step 1 Weather: failed [step.model]: the scene's model gave no reply
    step 2 VacationManagement: blocked [step.blocked]: step 1 did not complete
    check: it could not be made, so what was found is the answer (degraded)
    answer: no model worded it, so it lists what was done
    run: failed [run.nothing_done]: no step completed
    "#);
}

#[test]
fn question_to_the_user_is_shown_where_it_came_up() {
    insta::assert_snapshot!(plain(&recorded::needs_input()), @r"
    plan: 1 step: Vacation
      1. VacationManagement: Ask for three days off [MakeRequest]
    step 1 VacationManagement: started
    step 1 VacationManagement: needs input
    check: only the user can say what is missing
    ");
}

#[test]
fn a_plan_by_the_offline_model_says_so() {
    insta::assert_snapshot!(plain(&recorded::degraded_plan()), @r#"
    model: a reply that cannot be used: step 1: there is no scene "Wether"; scenes are Weather (and 1 more problem)
    plan: 1 step (degraded: by the offline model, since no model gave one)
      1. Weather: Weather in Milan
    step 1 Weather: started
    step 1 Weather: completed
    check: the request is answered
    "#);
}

#[test]
fn on_a_terminal_the_same_lines_are_written_above_the_spinners() {
    let journal = recorded::two_scenes();
    let mut live = ProgressDisplay::live(Vec::new(), ProgressDrawTarget::hidden());
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

#[test]
fn text_for_models_about_a_change_is_not_shown() {
    let waits = recorded::plan_waits();
    let mut events: Vec<Event> = waits.into_iter().map(|envelope| envelope.body).collect();
    let before = plain(&recorded::journal(events.clone())).lines().count();
    let problem = || proscenium::plan::PlanProblem::new("plan.unchanged", "change it as <feedback> says");
    events.push(Event::ModificationAsked { version: 2, by: "lucia".to_owned(), words: "blorp".to_owned() });
    for call in [7, 8] {
        events.push(Event::ReplyRejected { call, problems: vec![problem()] });
    }
    let error = proscenium::run::Fault::new("llm.unusable", "change it as <feedback> says");
    events.push(Event::PlanningFailed { version: 2, error });
    let told = plain(&recorded::journal(events));
    let told: Vec<&str> = told.lines().skip(before).collect();
    assert_eq!(told, ["lucia wants the plan changed: blorp"]);
}
