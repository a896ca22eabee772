//! `explain`: what happened unexpectedly in a run, what could be done about it, and who decided.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use proscenium::config::LoadedConfig;
use proscenium::{
    ExplainedConsultation, ExplainedCost, ExplainedDecider, ExplainedEvent, ExplainedResult,
    ExplainedSubject, Explanation,
};

use super::failure::{Exit, Failure};
use super::output::{Output, document};
use super::text::{count, dollars, duration, json, one_line, short};
use super::{args, flows, stored_runs};

/// Maximum number of columns of a message, of arguments, and of the request.
const WORDS: usize = 300;
const ARGUMENTS: usize = 60;

/// Runs the command.
pub async fn run<W: Write>(
    explain: args::Explain,
    loaded: &LoadedConfig,
    out: &mut Output<W>,
) -> Result<Exit, Failure> {
    let stored = stored_runs::open_of(loaded, explain.tenant).await?;
    let (journal, state) = stored.run(stored.run_named(&explain.run).await?).await?;
    let explanation = Explanation::new(&journal, &state, true);
    if explain.json {
        document(out, &explanation, false)?;
    } else {
        write(out, &explanation, &loaded.config.execution.zone().unwrap_or(TimeZone::UTC))?;
    }
    Ok(Exit::Completed)
}

fn write(out: &mut impl Write, explanation: &Explanation, zone: &TimeZone) -> io::Result<()> {
    writeln!(out, "Run: {}, {}", explanation.run_id, explanation.status)?;
    writeln!(out, "Request: {}", short(&explanation.request, WORDS))?;
    let level = explanation.level.map_or("not set", |level| level.name());
    let mode = explanation.mode.map_or("not set", |mode| mode.name());
    writeln!(out, "Level: {level}; mode: {mode}")?;
    for flow in &explanation.flows {
        writeln!(out, "\nStep {} {}, {}:", flow.step_number, flow.flow, flows::maker_text(flow.planned_by))?;
        flow.lines().iter().try_for_each(|line| writeln!(out, "  {}", one_line(line)))?;
    }
    if explanation.unexpected.is_empty() {
        writeln!(out, "\nNothing unexpected happened.")?;
        return out.flush();
    }
    for (index, event) in explanation.unexpected.iter().enumerate() {
        let at = event.at.to_zoned(zone.clone()).strftime("%H:%M:%S%.3f").to_string();
        writeln!(out, "\n{}. {at}  {}", index + 1, place(event))?;
        entry(out, event)?;
    }
    let events = count(explanation.unexpected.len(), "unexpected event");
    writeln!(out, "\nIn all: {events}; {}", cost_text(explanation.cost))?;
    out.flush()
}

fn entry(out: &mut impl Write, event: &ExplainedEvent) -> io::Result<()> {
    if let Some(arguments) = &event.arguments {
        writeln!(out, "   Arguments: {}", json(arguments, ARGUMENTS))?;
    }
    let attempt = event.attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
    writeln!(out, "   Failure: {} [{}]{attempt}", event.class.name(), event.code)?;
    if let Some(message) = event.message.as_deref().filter(|message| *message != event.say) {
        writeln!(out, "   Message: {}", short(message, WORDS))?;
    }
    writeln!(out, "   The user reads: {}", short(&event.say, WORDS))?;
    for option in &event.options {
        let sign = if option.allowed { "+" } else { "-" };
        writeln!(out, "   {sign} {}: {}", option.action, option.why)?;
    }
    if let Some(told) = &event.consultation {
        writeln!(out, "   Consulted: {}", consulted_text(told))?;
    }
    let by = match (event.decided_by, &event.by) {
        (ExplainedDecider::Policy, _) => "policies".to_owned(),
        (ExplainedDecider::Rules, _) => "the rules of every run".to_owned(),
        (ExplainedDecider::Person, Some(by)) => one_line(by),
        (ExplainedDecider::Part, _) => "a recovery policy of the program".to_owned(),
        (ExplainedDecider::Model, Some(model)) => format!("the model {}", one_line(model)),
        (ExplainedDecider::Model, None) => "an answer to an equal question".to_owned(),
        (ExplainedDecider::Person, None) => "a person, who has not decided yet".to_owned(),
    };
    let chosen = event.chosen.as_deref().map(|chosen| format!("{chosen}, ")).unwrap_or_default();
    writeln!(out, "   Decided: {chosen}by {by}")?;
    if let Some(tool) = &event.replaced_by {
        writeln!(out, "   In its place: {}", one_line(tool))?;
    }
    writeln!(out, "   Then: {}", then_text(event.then))?;
    writeln!(out, "   Cost: {}", cost_text(event.cost))
}

/// `step 1 Weather: GetForecast`, or what kind of question it was about.
fn place(event: &ExplainedEvent) -> String {
    let what = match (event.about, &event.tool) {
        (ExplainedSubject::Call, Some(tool)) => one_line(tool),
        (ExplainedSubject::Outcome, Some(tool)) => format!("what {} did is unknown", one_line(tool)),
        (ExplainedSubject::Call | ExplainedSubject::Outcome, None) => "a call".to_owned(),
        (ExplainedSubject::Forecast, Some(tool)) => format!("{} does not work at present", one_line(tool)),
        (ExplainedSubject::Forecast, None) => "a tool does not work at present".to_owned(),
        (ExplainedSubject::Model, _) => "a model gave no reply".to_owned(),
        (ExplainedSubject::Reply, _) => "a model's reply could not be used".to_owned(),
        (ExplainedSubject::Step, _) => "the step ended without its result".to_owned(),
        (ExplainedSubject::Run, _) => "further steps had no results".to_owned(),
        (ExplainedSubject::Program, _) => "a program could not be used".to_owned(),
        (ExplainedSubject::Plan, _) => "no plan could be made".to_owned(),
    };
    match (event.step_number, &event.scene_name) {
        (Some(step), Some(scene)) => format!("step {step} {}: {what}", one_line(scene)),
        _ => what,
    }
}

/// `asked, of retry, skip, abort: retry, because …`, or why no model was asked.
fn consulted_text(told: &ExplainedConsultation) -> String {
    let mut text = told.how.clone().unwrap_or_else(|| "not answered yet".to_owned());
    if let Some(why) = &told.why {
        text.push_str(&format!(" ({})", one_line(why)));
    }
    if !told.offered.is_empty() {
        text.push_str(&format!(", of {}", told.offered.join(", ")));
    }
    if let Some(chosen) = &told.chosen {
        text.push_str(&format!(": {chosen}"));
    }
    if !told.votes.is_empty() {
        text.push_str(&format!(" ({})", short(&told.votes.join("; "), WORDS)));
    }
    if !told.mapping.is_empty() {
        text.push_str(&format!(" ({})", short(&told.mapping.join("; "), WORDS)));
    }
    if let Some(refused) = &told.refused {
        text.push_str(&format!(", not done: {refused}"));
    }
    if let Some(reason) = &told.reason {
        text.push_str(&format!(", because {}", short(reason, WORDS)));
    }
    text
}

fn then_text(result: ExplainedResult) -> &'static str {
    match result {
        ExplainedResult::Pending => "in progress, or not decided yet",
        ExplainedResult::Succeeded => "the next attempt succeeded",
        ExplainedResult::FailedAgain => "the next attempt failed, too",
        ExplainedResult::GivenUp => "it was not attempted again",
        ExplainedResult::LeftOut => "it was left out",
        ExplainedResult::Replaced => "the tool in its place succeeded",
        ExplainedResult::PutToUser => "the tool in its place writes, so the user is asked first",
        ExplainedResult::Interpreted => {
            "a model said where the expected values are, and they were taken from there"
        }
        ExplainedResult::PlanChanged => "the unfinished part of the plan was changed",
        ExplainedResult::PlanKept => "the unfinished part of the plan stayed as it was",
        ExplainedResult::AskedUser => "the user was asked how to continue",
        ExplainedResult::PutToPerson => "a person is asked what it did",
        ExplainedResult::EmbeddedRules => "the offline model took over",
        ExplainedResult::AskedAgain => "the question was asked again",
        ExplainedResult::Told => "the user was told, and the step began",
        ExplainedResult::Decided => "a person said what it did",
    }
}

/// `12 ms in failed attempts, waited 252 ms, 1 model call ($0.0004)`
fn cost_text(cost: ExplainedCost) -> String {
    let mut parts = Vec::new();
    if cost.took_ms > 0 {
        parts.push(format!("{} in failed attempts", duration(cost.took_ms as f64)));
    }
    if cost.waited_ms > 0 {
        parts.push(format!("waited {}", duration(cost.waited_ms as f64)));
    }
    if cost.llm_calls > 0 {
        parts.push(format!("{} ({})", count(cost.llm_calls as usize, "model call"), dollars(cost.cost_usd)));
    }
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use proscenium::adapt::{ExecutionMode, PolicyAction, PolicyChoice, RefusedAction, WeighedAction};
    use proscenium::run::{
        ApprovalSubject, Decision, Effect, Envelope, Event, Fault, FaultClass, Outcome, PlanMaker,
        RequiredApproval, Settings, TimerSubject, UnexpectedSubject,
    };
    use serde_json::json;

    use super::super::recorded;
    use super::*;

    fn failed(call: u32) -> Event {
        let message = "GET http://127.0.0.1:9/forecast?city=Milan answered 503 Service Unavailable";
        let error = Fault::new("http.status", message)
            .classed(FaultClass::Unavailable)
            .saying(Some("Il servizio al momento non è disponibile: riprova più tardi.".to_owned()));
        Event::ToolCompleted { call, outcome: Outcome::Failed { error }, millis: 12, notes: None }
    }

    fn unexpected(attempt: u32, weighed: Vec<WeighedAction>, chosen: PolicyChoice) -> Event {
        Event::Unexpected {
            subject: UnexpectedSubject::Call { call: 1, attempt },
            class: FaultClass::Unavailable,
            code: "http.status".to_owned(),
            weighed,
            chosen,
            unasked: None,
            options: Vec::new(),
        }
    }

    /// A read that is retried and then left out, and a write whose outcome a person finds out.
    fn eventful() -> Vec<Envelope<Event>> {
        let steps = vec![
            recorded::step(1, "Weather", "The weather in Milan", &[], &[]),
            recorded::step(2, "VacationManagement", "Ask for three days off", &[], &[]),
        ];
        let settings = Settings { mode: Some(ExecutionMode::Adaptive), ..Settings::default() };
        let mut events = recorded::queued_with("Meteo a Milano, poi ferie", settings);
        events.push(Event::PlanCreated(recorded::made(1, PlanMaker::Deterministic, "", steps)));
        events.push(Event::StepStarted { step: 1 });
        events.extend(recorded::calls(1, 1, 1, "GetForecast", json!({"city": "Milan"}), Effect::Read));
        let retry = WeighedAction { action: PolicyAction::Retry, refused: None };
        events.extend([
            Event::ToolStarted { call: 1, attempt: 1 },
            failed(1),
            unexpected(1, vec![retry], PolicyChoice::Retry { delay_ms: 250 }),
            Event::BackedOff { call: 1, attempt: 2, delay_ms: 250, asked_ms: None },
            Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 2 } },
            Event::ToolStarted { call: 1, attempt: 2 },
            failed(1),
        ]);
        let spent = WeighedAction { refused: Some(RefusedAction::NoAttemptsLeft), ..retry };
        let skip = WeighedAction { action: PolicyAction::Skip, refused: None };
        events.push(unexpected(2, vec![spent, skip], PolicyChoice::Skip));
        events.push(Event::StepStarted { step: 2 });
        let days = json!({"from": "2026-06-15", "to": "2026-06-17"});
        events.extend(recorded::calls(2, 2, 2, "MakeRequest", days, Effect::Write));
        let error = Fault::new("tool.timeout", "no reply within 5000 ms").classed(FaultClass::Timeout);
        let matter = ApprovalSubject::Outcome { call: 2 };
        events.extend([
            Event::ToolStarted { call: 2, attempt: 1 },
            Event::ToolCompleted { call: 2, outcome: Outcome::Unknown { error }, millis: 5_000, notes: None },
            Event::ApprovalRequired { approval: 1, matter, needed: RequiredApproval::default() },
            recorded::decided(1, matter, Decision::Done, None),
        ]);
        recorded::journal(events)
    }

    fn explained(journal: &[Envelope<Event>], with_messages: bool) -> Explanation {
        Explanation::new(journal, &proscenium::fold(recorded::run_id(), journal), with_messages)
    }

    fn shown(journal: &[Envelope<Event>]) -> String {
        let mut out = Vec::new();
        write(&mut out, &explained(journal, true), &TimeZone::get("Europe/Rome").unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn unexpected_events_are_told_with_options_decisions_and_costs() {
        insta::assert_snapshot!(shown(&eventful()));
    }

    #[test]
    fn failures_in_runs_without_a_mode_are_told_too() {
        insta::assert_snapshot!(shown(&recorded::failed_step()));
        let quiet = shown(&recorded::two_scenes());
        assert!(quiet.ends_with("\nNothing unexpected happened.\n"), "{quiet}");
    }

    #[test]
    fn models_that_fail_are_told() {
        insta::assert_snapshot!(shown(&recorded::degraded_plan()));
    }

    #[test]
    fn users_get_no_messages_of_back_ends() {
        let all = serde_json::to_string(&explained(&eventful(), false)).unwrap();
        assert!(!all.contains("127.0.0.1") && !all.contains("5000 ms"), "{all}");
        assert!(serde_json::to_string(&explained(&eventful(), true)).unwrap().contains("127.0.0.1"));
    }

    #[test]
    fn notes_of_steps_stand_in_the_flowchart() {
        let notes = explained(&eventful(), false).step_notes();
        assert_eq!(notes[&1], ["GetForecast retried 1×, left out"]);
        assert_eq!(notes[&2], ["MakeRequest outcome decided by a person"]);
    }
}
