//! `runs show`: one run, told from its journal.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proscenium::plan::{self, PlanStatus, StepStatus, TaskId};
use proscenium::run::{Envelope, Event, Fault, Outcome, PlanMade, RunStatus, Usage};

use super::narrate::Narrator;
use super::output::tokens;
use super::text::{clean, count, dollars, duration, json, name, one_line, short};

/// What is shown of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parts {
    /// Only the plan, as a Mermaid flowchart.
    pub mermaid: bool,
    /// Also every event.
    pub events: bool,
}

/// How a call of the run stands.
enum Stand {
    Asked,
    Started,
    Ended(Outcome, u64),
    Skipped(u32),
    Refused(Fault),
}

/// What a journal says of its run.
#[derive(Default)]
struct Record {
    request: String,
    user: String,
    task: Option<TaskId>,
    plans: Vec<PlanMade>,
    steps: BTreeMap<u32, StepStatus>,
    calls: BTreeMap<u32, Stand>,
    narrator: Narrator,
    usage: Usage,
    answer: String,
    status: Option<RunStatus>,
    error: Option<Fault>,
    ended: Option<Timestamp>,
}

impl Record {
    fn of(journal: &[Envelope<Event>]) -> Self {
        let mut record = Self::default();
        for envelope in journal {
            record.apply(&envelope.body);
            if record.status.is_some_and(RunStatus::is_terminal) && record.ended.is_none() {
                record.ended = Some(envelope.at);
            }
        }
        record
    }

    fn apply(&mut self, event: &Event) {
        self.narrator.tell(event);
        match event {
            Event::RunQueued(queued) => {
                self.request.clone_from(&queued.request);
                self.user.clone_from(&queued.user);
                self.task = Some(queued.task);
                self.status = Some(RunStatus::Queued);
            }
            Event::RunStarted(_) | Event::RunResumed { .. } => self.status = Some(RunStatus::Running),
            Event::ModelReplied { usage, .. } | Event::ModelFailed { usage, .. } => self.usage += *usage,
            Event::PlanCreated(made) | Event::Replanned(made) => {
                for step in &made.plan.steps {
                    self.steps.insert(step.step_number, StepStatus::Pending);
                }
                self.plans.push(made.clone());
            }
            Event::StepStarted { step } => {
                self.steps.insert(*step, StepStatus::Running);
            }
            Event::SceneReplied { calls, .. } => {
                for call in calls {
                    let stand = call.problem.clone().map_or(Stand::Asked, Stand::Refused);
                    self.calls.insert(call.call, stand);
                }
            }
            Event::ToolStarted { call, .. } => {
                self.calls.insert(*call, Stand::Started);
            }
            Event::ToolCompleted { call, outcome, millis } => {
                self.calls.insert(*call, Stand::Ended(outcome.clone(), *millis));
            }
            Event::ToolSkipped { call, first } => {
                self.calls.insert(*call, Stand::Skipped(*first));
            }
            Event::StepCompleted { step, .. } => {
                self.steps.insert(*step, StepStatus::Completed);
            }
            Event::StepFailed { step, status, .. } => {
                self.steps.insert(*step, *status);
            }
            Event::Answered { text, .. } => self.answer.clone_from(text),
            Event::RunCompleted { status } => self.status = Some(*status),
            Event::RunFailed { error } => {
                self.status = Some(RunStatus::Failed);
                self.error = Some(error.clone());
            }
            Event::RunCancelled { .. } => self.status = Some(RunStatus::Cancelled),
            Event::Planning { .. }
            | Event::PlanningFailed { .. }
            | Event::ModelAsked { .. }
            | Event::ReplyRejected { .. }
            | Event::Continuation { .. }
            | Event::CancelRequested { .. } => {}
        }
    }

    /// Where a version of the plan stands.
    fn plan_status(&self, made: &PlanMade) -> PlanStatus {
        let mut steps = made.plan.steps.iter().filter_map(|step| self.steps.get(&step.step_number));
        if self.status == Some(RunStatus::Cancelled) {
            PlanStatus::Cancelled
        } else if steps.clone().all(|status| *status == StepStatus::Completed) {
            PlanStatus::Completed
        } else if self.status.is_some_and(RunStatus::is_terminal) {
            PlanStatus::Failed
        } else if steps.any(|status| *status != StepStatus::Pending) {
            PlanStatus::Executing
        } else {
            PlanStatus::Approved
        }
    }
}

/// Writes a run from its journal.
pub fn run(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    parts: Parts,
    zone: &TimeZone,
) -> io::Result<()> {
    let record = Record::of(journal);
    if parts.mermaid {
        mermaid(out, &record)?;
    } else {
        head(out, journal, &record, zone)?;
        plans(out, &record)?;
        calls(out, &record)?;
        if let Some(error) = &record.error {
            writeln!(out, "\nFailed [{}]: {}", error.code, one_line(&error.message))?;
        }
        if !record.answer.trim().is_empty() {
            writeln!(out, "\nAnswer:\n{}", clean(record.answer.trim()))?;
        }
        if parts.events {
            events(out, journal, zone)?;
        }
        let usage = record.usage;
        let told = tokens(usage.calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens);
        writeln!(out, "\n{told}, {}", dollars(usage.cost_nano_usd as f64 / 1e9))?;
    }
    out.flush()
}

fn mermaid(out: &mut impl Write, record: &Record) -> io::Result<()> {
    // Re-plans continue the numbers, so all versions are one chart.
    let all = plan::Plan {
        needs_execution: true,
        reasoning: String::new(),
        steps: record.plans.iter().flat_map(|made| made.plan.steps.clone()).collect(),
    };
    write!(out, "{}", clean(&plan::mermaid(&all)))
}

fn head(
    out: &mut impl Write,
    journal: &[Envelope<Event>],
    record: &Record,
    zone: &TimeZone,
) -> io::Result<()> {
    let Some(first) = journal.first() else { return Ok(()) };
    if let Some(run) = first.run {
        writeln!(out, "Run: {run}")?;
    }
    writeln!(out, "Request: {}", one_line(&record.request))?;
    writeln!(out, "Status: {}", record.status.map(|status| name(&status)).unwrap_or_default())?;
    writeln!(
        out,
        "Session: {}, tenant {}, asked by {}",
        first.session,
        first.tenant,
        one_line(&record.user)
    )?;
    let at = first.at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    match record.ended {
        Some(ended) => {
            let took = duration(ended.duration_since(first.at).as_secs_f64() * 1_000.0);
            writeln!(out, "Accepted: {at}, took {took}")
        }
        None => writeln!(out, "Accepted: {at}, not ended"),
    }
}

fn plans(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let Some(task) = record.task else { return Ok(()) };
    for made in &record.plans {
        let status = record.plan_status(made);
        let text = plan::text(&made.plan, &record.request, task, status, &record.steps);
        write!(out, "\n{}", clean(&text))?;
    }
    Ok(())
}

fn calls(out: &mut impl Write, record: &Record) -> io::Result<()> {
    if record.calls.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}:", count(record.calls.len(), "tool call"))?;
    for (number, stand) in &record.calls {
        let Some(asked) = record.narrator.call(*number) else { continue };
        let how = match stand {
            Stand::Asked => "not started".to_owned(),
            Stand::Started => "in flight".to_owned(),
            Stand::Skipped(first) => format!("skipped, the same as call {first}"),
            Stand::Refused(error) => format!("not called [{}]: {}", error.code, short(&error.message, 300)),
            Stand::Ended(Outcome::Ok { result, .. }, ms) => {
                format!("ok {} ({})", json(result, 400), duration(*ms as f64))
            }
            Stand::Ended(Outcome::Refused { error }, _) => told("refused", error),
            Stand::Ended(Outcome::Failed { error }, _) => told("failed", error),
            Stand::Ended(Outcome::Unknown { error }, _) => told("nobody knows whether it was done", error),
        };
        writeln!(
            out,
            "  {number}. {}: {} {}\n     {how}",
            record.narrator.step(asked.step),
            one_line(&asked.tool),
            json(&asked.arguments, 400)
        )?;
    }
    Ok(())
}

fn told(how: &str, error: &Fault) -> String {
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

    fn shown(journal: &[Envelope<Event>], parts: Parts) -> String {
        let mut out = Vec::new();
        run(&mut out, journal, parts, &TimeZone::get("Europe/Rome").unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_is_shown_with_its_plans_its_calls_and_its_answer() {
        insta::assert_snapshot!(shown(&recorded::two_scenes(), Parts::default()), @r#"
        Run: 01976c8e-0000-7000-8000-000000000001
        Request: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Status: completed
        Session: s-1, tenant local, asked by keysersoze
        Accepted: 2026-05-04 09:00:00 CEST, took 6.75 s

        # Execution Plan: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: completed
        Reasoning: User needs weather and vacation request

        ## Step 1: Weather
        Purpose: Get weather information for Milan
        Tool: WeatherForecast_Get
        Tool: AddCity
        Status: completed

        ## Step 2: VacationManagement
        Purpose: Submit vacation request
        Tool: MakeRequest
        After: 1
        Status: completed

        # Execution Plan: Voglio sapere il meteo a Milano e poi richiedere 3 giorni di ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: completed
        Reasoning: Approvers are missing

        ## Step 3: VacationManagement
        Purpose: Find the approvers
        Tool: GetApprovers
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
        insta::assert_snapshot!(shown(&recorded::failed_step(), Parts::default()), @r#"
        Run: 01976c8e-0000-7000-8000-000000000001
        Request: Meteo a Milano, poi ferie
        Status: failed
        Session: s-1, tenant local, asked by keysersoze
        Accepted: 2026-05-04 09:00:00 CEST, took 3.25 s

        # Execution Plan: Meteo a Milano, poi ferie
        Task ID: 01976c8e-0000-7000-8000-000000000002
        Status: failed

        ## Step 1: Weather
        Purpose: Weather
        Status: failed

        ## Step 2: VacationManagement
        Purpose: Ask
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
        insta::assert_snapshot!(shown(&recorded::two_scenes(), Parts { mermaid: true, events: false }), @r#"
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
        let text = shown(&journal, Parts { mermaid: false, events: true });
        let lines: Vec<&str> =
            text.lines().skip_while(|line| !line.ends_with("events:")).skip(1).take(journal.len()).collect();
        assert_eq!(lines.len(), journal.len());
        assert!(lines[0].starts_with("     1  09:00:00.000  run_queued {"), "{}", lines[0]);
        assert!(lines[journal.len() - 1].contains("run_completed {\"status\":\"needs_input\"}"));
    }

    #[test]
    fn a_run_that_goes_on_is_shown_as_far_as_it_got() {
        let mut journal = recorded::two_scenes();
        journal.truncate(9);
        let text = shown(&journal, Parts::default());
        assert!(text.contains("Status: running") && text.contains("in flight"), "{text}");
    }
}
