//! `runs show`: renders one run from its journal.

use std::io::{self, Write};

use jiff::tz::TimeZone;
use proscenium::plan::{self, PlanStatus, StepStatus};
use proscenium::run::{
    Approval, ApprovalId, CallState, CallStatus, Decision, Envelope, Event, Fault, Outcome, PlanCause,
    PlanMade, RunState, StepState,
};
use proscenium::{AnswerFlow, Explanation, answer_text};

use super::flows::maker_text;
use super::narrate::steps_of;
use super::output::tokens;
use super::text::{clean, count, dollars, duration, json, one_line, short, whole_json};
use super::{pending_questions, table};

/// The parts of a run that are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShownParts {
    /// Only the plan, as a Mermaid flowchart.
    pub mermaid: bool,
    /// Also every event.
    pub events: bool,
}

/// Writes a run: `state` is the fold of `journal`, which has the times of its events.
pub fn run(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    state: &RunState,
    parts: ShownParts,
    zone: &TimeZone,
) -> io::Result<()> {
    if parts.mermaid {
        mermaid(out, journal, state)?;
    } else {
        head(out, journal, state, zone)?;
        plans(out, state)?;
        approvals(out, journal, state, zone, None)?;
        flows(out, state)?;
        calls(out, journal, state)?;
        if let Some(error) = &state.error {
            writeln!(out, "\nFailed [{}]: {}", error.code, one_line(&error.message))?;
        }
        let answer = answer_text(state);
        if state.answer.is_some() && !answer.trim().is_empty() {
            writeln!(out, "\nAnswer:\n{}", clean(answer.trim()))?;
        }
        if parts.events {
            events(out, journal, zone)?;
        }
        let usage = state.usage;
        let usage_text =
            tokens(usage.calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens);
        writeln!(out, "\n{usage_text}, {}", dollars(usage.cost_nano_usd as f64 / 1e9))?;
    }
    out.flush()
}

fn mermaid(out: &mut impl Write, journal: &[Envelope<Event>], state: &RunState) -> io::Result<()> {
    // Re-plans continue the numbers, so all versions are one chart.
    let all = plan::Plan {
        needs_execution: true,
        reasoning: String::new(),
        steps: state.plan_steps().map(|(_, s)| s.step.clone()).collect(),
        ..plan::Plan::default()
    };
    let notes = Explanation::new(journal, state, true).step_notes();
    write!(out, "{}", clean(&plan::mermaid_with_notes(&all, &notes)))
}

fn head(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    state: &RunState,
    zone: &TimeZone,
) -> io::Result<()> {
    let (Some(first), Some(last)) = (journal.first(), journal.last()) else { return Ok(()) };
    writeln!(out, "Run: {}", state.run)?;
    writeln!(out, "Request: {}", one_line(state.request()))?;
    writeln!(out, "Status: {}", state.status)?;
    let user = state.queued.as_ref().map_or("", |queued| queued.user.as_str());
    writeln!(out, "Session: {}, tenant {}, asked by {}", first.session, first.tenant, one_line(user))?;
    let at = first.at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    if state.status.is_terminal() {
        let took = duration(last.at.duration_since(first.at).as_secs_f64() * 1_000.0);
        writeln!(out, "Accepted: {at}, took {took}")
    } else {
        writeln!(out, "Accepted: {at}, not ended")
    }
}

/// One plan: the version in force as text, the versions before it, approvals and calls. Open questions are left to
/// [`pending_questions::write_all`], which shows them with the commands that decide them.
pub fn plan(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    state: &RunState,
    zone: &TimeZone,
) -> io::Result<()> {
    writeln!(out, "Run: {}, {}", state.run, state.status)?;
    if state.plans.is_empty() {
        writeln!(out, "There is no plan yet.")?;
    }
    plans(out, state)?;
    selected_approvals(out, journal, state, zone, |_, put| !put.is_open())?;
    flows(out, state)?;
    calls(out, journal, state)?;
    if let Some(error) = &state.error {
        writeln!(out, "\nFailed [{}]: {}", error.code, one_line(&error.message))?;
    }
    out.flush()
}

fn plans(out: &mut impl Write, state: &RunState) -> io::Result<()> {
    let Some(queued) = &state.queued else { return Ok(()) };
    for (at, made) in state.plans.iter().enumerate() {
        let is_announced = changed(out, at.checked_sub(1).and_then(|before| state.plans.get(before)), made)?;
        // Its steps' numbers are those of the version that took its place.
        if state.plans.get(at + 1).is_some_and(|next| is_change(next.cause)) {
            if is_announced {
                writeln!(out, "Its steps, which were changed again before they began:")?;
            } else {
                writeln!(out, "\nVersion {}, which was changed before it began:", made.version)?;
            }
            steps_of(&made.plan).iter().try_for_each(|step| writeln!(out, "{step}"))?;
            continue;
        }
        for (at, line) in made.patch.iter().flat_map(|patch| patch.changes()).enumerate() {
            if at == 0 {
                writeln!(out, "\nVersion {}, which changes what was left of the one before:", made.version)?;
            }
            writeln!(out, "  {line}")?;
        }
        let status = plan_status(state, made);
        let (steps, calls) = (state.reported_step_statuses(), plan::KnownCalls::new());
        let text = plan::text_with_status(&made.plan, &queued.request, queued.task, status, &steps, &calls);
        write!(out, "\n{}", clean(&text))?;
    }
    Ok(())
}

fn is_change(cause: PlanCause) -> bool {
    matches!(cause, PlanCause::Feedback | PlanCause::Edit)
}

/// Writes what a person changed in a plan, and why; false if nothing was changed by a person.
fn changed(out: &mut impl Write, before: Option<&PlanMade>, made: &PlanMade) -> io::Result<bool> {
    let (Some(before), true) = (before, is_change(made.cause)) else { return Ok(false) };
    let by = made.by.as_deref().map(|by| format!(" by {}", one_line(by))).unwrap_or_default();
    let how = if made.cause == PlanCause::Feedback { "changed as was wanted" } else { "changed by hand" };
    let why = made.why.as_deref().map(|why| format!(": {}", short(why, 300))).unwrap_or_default();
    writeln!(out, "\nVersion {}, {how}{by}{why}", made.version)?;
    let changes = plan::diff(&before.plan, &made.plan);
    if changes.is_empty() {
        writeln!(out, "  nothing is different in its steps")?;
    }
    changes.iter().try_for_each(|line| writeln!(out, "  {}", one_line(line)))?;
    Ok(true)
}

/// Writes the approvals of a run and their decisions; only the one with the ordinal `only`, if given.
pub fn approvals(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    state: &RunState,
    zone: &TimeZone,
    only: Option<u32>,
) -> io::Result<()> {
    selected_approvals(out, journal, state, zone, |number, _| only.is_none_or(|only| only == number))
}

fn selected_approvals(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    state: &RunState,
    zone: &TimeZone,
    is_selected: impl Fn(u32, &Approval) -> bool,
) -> io::Result<()> {
    let selected = || state.approvals.iter().filter(|(number, put)| is_selected(**number, put));
    if selected().next().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{}:", count(selected().count(), "approval"))?;
    for (number, put) in selected() {
        let id = ApprovalId { run: state.run, approval: *number };
        writeln!(out, "  {id} {}", pending_questions::subject_line(state, put.matter))?;
        for why in &put.needed.why {
            writeln!(out, "     why: {}", short(why, 300))?;
        }
        writeln!(out, "     {}", decided(journal, *number, put, zone))?;
        if let Some((Decision::Edited { arguments, .. }, _)) = &put.decided {
            writeln!(out, "     with {}", whole_json(arguments))?;
        }
    }
    Ok(())
}

fn decided(journal: &[Envelope<Event>], number: u32, put: &Approval, zone: &TimeZone) -> String {
    let Some((decision, by)) = &put.decided else {
        return if put.lapsed {
            "not asked any more: what it was about has changed or ended"
        } else {
            "pending"
        }
        .to_owned();
    };
    let decision_event = journal.iter().find_map(|event| match &event.body {
        Event::Decided { approval, note, .. } if *approval == number => Some((event.at, note)),
        _ => None,
    });
    let at = decision_event.map(|(at, _)| format!(", {}", table::time(at, zone))).unwrap_or_default();
    let note = decision_event.and_then(|(_, note)| note.as_deref());
    let note = note.map(|note| format!(": {}", short(note, 300))).unwrap_or_default();
    let counts = if put.lapsed { "; it is no longer valid" } else { "" };
    match by.as_str() {
        "expiry" => {
            format!("{}: not decided in time{at}{counts}", pending_questions::decision_text(decision))
        }
        by => format!("{} by {}{at}{note}{counts}", pending_questions::decision_text(decision), one_line(by)),
    }
}

/// The state has the status of the plan in force and of the versions that it continues; earlier ones have ended.
fn plan_status(state: &RunState, made: &PlanMade) -> &'static str {
    if made.version >= state.first_version_in_force() {
        return state.reported_plan_status();
    }
    let mut steps = state.plan_steps().map(|(_, s)| s).filter(|s| s.version == made.version);
    let is_done = steps.all(|s| state.reported_step_status(s) == StepStatus::Completed);
    if is_done { PlanStatus::Completed.name() } else { PlanStatus::Failed.name() }
}

/// The nodes of the run's flows.
fn flows(out: &mut impl Write, state: &RunState) -> io::Result<()> {
    for flow in AnswerFlow::of_run(state) {
        let by = maker_text(flow.planned_by);
        writeln!(out, "\nNodes of step {} {}, {by}:", flow.step_number, one_line(&flow.flow))?;
        flow.lines().iter().try_for_each(|line| writeln!(out, "  {}", one_line(line)))?;
    }
    Ok(())
}

/// `step 1 Weather`, or `step 1 lookup, validate` of a flow's node.
fn place(state: &RunState, call: &CallState) -> String {
    let node = state.steps.get(&call.step).and_then(StepState::node);
    let flow = node.and_then(|node| Some((node, state.steps.get(&node.parent)?)));
    match flow {
        Some((node, flow)) => {
            format!("step {} {}, {}", node.parent, one_line(flow.step.label()), one_line(&node.node))
        }
        None => format!("step {} {}", call.step, one_line(&call.scene)),
    }
}

fn calls(out: &mut impl Write, journal: &[Envelope<Event>], state: &RunState) -> io::Result<()> {
    if state.calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}:", count(state.calls.len(), "tool call"))?;
    for (number, call) in &state.calls {
        // The last attempt's time.
        let millis = journal.iter().rev().find_map(|envelope| match &envelope.body {
            Event::ToolCompleted { call, millis, .. } if call == number => Some(*millis),
            _ => None,
        });
        writeln!(
            out,
            "  {number}. {}: {} {}\n     {}",
            place(state, call),
            one_line(&call.requested.tool),
            json(&call.requested.arguments, 400),
            outcome_text(call, millis)
        )?;
        if !call.breaches.is_empty() {
            let why = short(&call.breaches.join("; "), 300);
            writeln!(out, "     its result is not as expected: {why}")?;
        }
        if let Some(at) = call.stale_since {
            writeln!(out, "     the result of {at:.0}, since the tool failed")?;
        }
        if call.interpreted {
            writeln!(out, "     its result had another shape, and a model said where the values are")?;
        }
        if let Some(original) = call.replaces {
            writeln!(out, "     in place of call {original}")?;
        }
        if let Some(undone) = call.undoes {
            writeln!(out, "     undoes call {undone}")?;
        }
        if let Some(by) = call.undone_by {
            let done = matches!(state.outcome(by), Some(Outcome::Ok { .. }));
            writeln!(out, "     {} call {by}", if done { "undone by" } else { "to be undone by" })?;
        }
    }
    Ok(())
}

/// The result of a call.
fn outcome_text(call: &CallState, millis: Option<u64>) -> String {
    if let Some(problem) = &call.requested.problem {
        return error_text("not called", problem);
    }
    match &call.status {
        CallStatus::Requested => "not started".to_owned(),
        CallStatus::InFlight { .. } => "in flight".to_owned(),
        CallStatus::Again { attempt } => format!("to be called again, attempt {attempt}"),
        CallStatus::Failing { outcome, .. } => {
            outcome.fault().map_or_else(|| "failing".to_owned(), |error| error_text("this try failed", error))
        }
        CallStatus::BackedOff { attempt, until, .. } => format!("waits until {until} for try {attempt}"),
        CallStatus::Skipped { first } => format!("skipped, the same as call {first}"),
        CallStatus::Done { outcome } => match outcome {
            Outcome::Ok { result, .. } => {
                let took = millis.map(|ms| format!(" ({})", duration(ms as f64))).unwrap_or_default();
                format!("ok {}{took}", json(result, 400))
            }
            Outcome::Refused { error } => error_text("refused", error),
            Outcome::Failed { error } if call.left_out => error_text("failed, and was left out", error),
            Outcome::Failed { error } => error_text("failed", error),
            Outcome::Unknown { error } => error_text("it is unknown whether it was done", error),
        },
    }
}

fn error_text(how: &str, error: &Fault) -> String {
    format!("{how} [{}]: {}", error.code, short(&error.message, 300))
}

fn events(out: &mut impl Write, journal: &[Envelope<Event>], zone: &TimeZone) -> io::Result<()> {
    writeln!(out, "\n{}:", count(journal.len(), "event"))?;
    for envelope in journal {
        let mut body = serde_json::to_value(&envelope.body)?;
        let kind = body
            .as_object_mut()
            .and_then(|body| body.remove("type"))
            .and_then(|kind| kind.as_str().map(str::to_owned))
            .unwrap_or_default();
        let at = envelope.at.to_zoned(zone.clone()).strftime("%H:%M:%S%.3f").to_string();
        writeln!(out, "  {:>4}  {at}  {kind} {}", envelope.seq, json(&body, 2_000))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::recorded;
    use super::*;

    fn shown(journal: &[Envelope<Event>], parts: ShownParts) -> String {
        let mut out = Vec::new();
        let state = proscenium::fold(recorded::run_id(), journal);
        run(&mut out, journal, &state, parts, &TimeZone::get("Europe/Rome").unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_is_shown_with_its_plans_its_calls_and_its_answer() {
        insta::assert_snapshot!(shown(&recorded::two_scenes(), ShownParts::default()), @r#"
        Run: 01976c8e-0000-7000-8000-000000000001
        Request: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Status: completed
        Session: s-1, tenant local, asked by keysersoze
        Accepted: 2026-05-04 09:00:00 CEST, took 8.25 s

        # Execution Plan: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: completed
        Reasoning: User needs weather and vacation request

        ## Step 1: Weather
        Tool: WeatherForecast_Get
        Input: Get weather information for Milan
        Tool: AddCity
        Status: completed

        ## Step 2: VacationManagement
        Tool: MakeRequest
        Input: Submit vacation request
        After: 1
        Status: completed

        # Execution Plan: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: completed
        Reasoning: Approvers are missing

        ## Step 3: VacationManagement
        Tool: GetApprovers
        Input: Find the approvers
        After: 2
        Status: completed

        3 tool calls:
          1. step 1 Weather: WeatherForecast_Get {"city":"Milan"}
             ok {"city":"Milan","max_c":24,"min_c":12,"source":"bundled \u001b[31mclimate\u001b[0m values"} (12 ms)
          2. step 1 Weather: WeatherForecast_Get {"city":"Milan"}
             skipped, the same as call 1
          3. step 2 VacationManagement: MakeRequest {"from":"2026-06-15","to":"2026-06-17"}
             ok {"days":3,"id":7} (12 ms)

        Answer:
        A Milano da 12 a 24 °C. Ferie chieste dal 15 al 17 giugno.

        2 model calls, 800 tokens in (200 cached), 60 out, $0.0004
        "#);
    }

    #[test]
    fn a_failed_run_says_why() {
        insta::assert_snapshot!(shown(&recorded::failed_step(), ShownParts::default()), @r#"
        Run: 01976c8e-0000-7000-8000-000000000001
        Request: Meteo a Milano, poi ferie
        Status: failed
        Session: s-1, tenant local, asked by keysersoze
        Accepted: 2026-05-04 09:00:00 CEST, took 4.00 s

        # Execution Plan: Meteo a Milano, poi ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: failed

        ## Step 1: Weather
        Input: Weather
        Status: failed

        ## Step 2: VacationManagement
        Input: Ask
        After: 1
        Status: blocked

        1 tool call:
          1. step 1 Weather: WeatherForecast_Get {"city":"Milan","note":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}
             failed [tool.timeout]: no reply within 5000 ms

        Failed [run.nothing_done]: no step completed

        Answer:
        Nothing was done.

        0 model calls, 0 tokens in (0 cached), 0 out, $0
        "#);
    }

    #[test]
    fn the_plan_as_a_flowchart_is_all_there_is() {
        insta::assert_snapshot!(shown(&recorded::two_scenes(), ShownParts { mermaid: true, events: false }), @r#"
        flowchart TD
            s1["1. Weather: Get weather information for Milan"]
            s2["2. VacationManagement: Submit vacation request"]
            s3["3. VacationManagement: Find the approvers"]
            s1 --> s2
            s2 --> s3
        "#);
    }

    #[test]
    fn every_event_has_a_line() {
        let journal = recorded::needs_input();
        let text = shown(&journal, ShownParts { mermaid: false, events: true });
        let lines: Vec<&str> =
            text.lines().skip_while(|line| !line.ends_with("events:")).skip(1).take(journal.len()).collect();
        assert_eq!(lines.len(), journal.len());
        assert!(lines[0].starts_with("     1  09:00:00.000  run_queued {"), "{}", lines[0]);
        assert!(lines[journal.len() - 1].contains("run_completed {\"status\":\"needs_input\"}"));
    }

    #[test]
    fn decisions_and_changes_of_people_are_shown() {
        let text = shown(&recorded::changed_and_approved(), ShownParts::default());
        let (_, approvals) = text.split_once("approvals:\n").unwrap();
        insta::assert_snapshot!(approvals.split_once("\n\n").unwrap().0, @r#"
          01976c8e-0000-7000-8000-000000000001.1 plan 1
             why: step 1: MakeRequest of VacationManagement writes
             not asked any more: what it was about has changed or ended
          01976c8e-0000-7000-8000-000000000001.2 plan 2
             why: step 1: MakeRequest of VacationManagement writes
             approved by lucia, 2026-05-04 09:00:02: less is fine
        "#);
        for part in [
            "\nVersion 1, which was changed before it began:\n  1. VacationManagement: Ask for three days off",
            "\nVersion 2, changed by hand by lucia: two are enough\n  ~ step 1 VacationManagement: purpose",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let mut out = Vec::new();
        let journal = recorded::changed_and_approved();
        let state = proscenium::fold(recorded::run_id(), &journal);
        plan(&mut out, &journal, &state, &TimeZone::UTC).unwrap();
        let plan = String::from_utf8(out).unwrap();
        assert!(plan.starts_with("Run: 01976c8e-0000-7000-8000-000000000001, completed\n"), "{plan}");
    }

    #[test]
    fn approval_that_nobody_has_decided_is_pending() {
        let mut journal = recorded::changed_and_approved();
        let asked = journal.iter().position(|e| matches!(e.body, Event::ApprovalRequired { .. })).unwrap();
        journal.truncate(asked + 1);
        let text = shown(&journal, ShownParts::default());
        assert!(text.contains("\n     pending\n"), "{text}");
    }

    #[test]
    fn a_version_that_was_made_and_changed_by_people_is_told_once() {
        let text = shown(&recorded::changed_twice(), ShownParts::default());
        assert_eq!(text.matches("\nVersion 2, ").count(), 1, "{text}");
        let (_, second) = text.split_once("\nVersion 2, ").unwrap();
        insta::assert_snapshot!(second.split_once("\n\n").unwrap().0, @r#"
        changed by hand by lucia: two are enough
          ~ step 1 VacationManagement: purpose "Ask for three days off" -> "Ask for two days off"
        Its steps, which were changed again before they began:
          1. VacationManagement: Ask for two days off [MakeRequest]
        "#);
        assert!(text.contains("\n\nVersion 3, changed by hand by lucia: one will do\n"), "{text}");
    }

    #[test]
    fn undone_calls_are_told_with_what_undid_them() {
        let text = shown(&recorded::undone(), ShownParts::default());
        let (_, calls) = text.split_once("2 tool calls:\n").unwrap();
        insta::assert_snapshot!(calls.split_once("\n\n").unwrap().0, @r#"
          1. step 1 VacationManagement: MakeRequest {"from":"2026-06-15","to":"2026-06-17"}
             ok {"request_id":7} (12 ms)
             undone by call 2
          2. step 1 VacationManagement: CancelRequest {"request_id":7}
             ok {"request_id":7} (12 ms)
             undoes call 1
        "#);
    }

    #[test]
    fn a_run_that_continues_is_shown_as_far_as_it_got() {
        let mut journal = recorded::two_scenes();
        let started = journal.iter().position(|e| matches!(e.body, Event::ToolStarted { .. })).unwrap();
        journal.truncate(started + 1);
        let text = shown(&journal, ShownParts::default());
        assert!(text.contains("Status: running") && text.contains("in flight"), "{text}");
    }
}
