//! The published events: names and shapes are a stable interface.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::adapt::{AskRefusal, ConsultationOutcome, PolicyChoice, RecoveryAction, ToolForecast};
use crate::plan::{self, Plan, Step, StepStatus, TaskId};
use crate::run::{
    Adaptation, ConsultationChoice, ConsultationSubject, Effect, Envelope, Event, Fault, FaultClass, Outcome,
    PlanCause, PlanMade, PlanMaker, RequestedCall, RunId, RunQueued, RunStarted, RunStatus, SCHEMA,
    SessionId, Subject, TenantId, TimerSubject, UnexpectedSubject, Verdict,
};

fn envelope(seq: u64, body: Event) -> Envelope<Event> {
    Envelope {
        seq,
        run: Some(RunId(uuid::Uuid::from_u128(1))),
        session: SessionId::new("s-1").unwrap(),
        tenant: TenantId::new("acme").unwrap(),
        at: Timestamp::UNIX_EPOCH,
        epoch: 0,
        schema: SCHEMA,
        body,
    }
}

fn call(call: u32, tool: &str) -> RequestedCall {
    RequestedCall {
        provider_id: "secret-id".to_owned(),
        ..RequestedCall::new(call, tool, "secret-key".to_owned(), json!({"city": "Milan"}), Effect::Read)
    }
}

/// One run with every public event.
fn events() -> Vec<Event> {
    let step = Step {
        step_number: 1,
        scene_name: "Weather".to_owned(),
        purpose: "Get the weather".to_owned(),
        expected_tools: vec!["Get".to_owned()],
        depends_on_step: plan::DependsOn::none(),
        ..Step::default()
    };
    let plan =
        Plan { needs_execution: true, reasoning: "asked".to_owned(), steps: vec![step], ..Plan::default() };
    let made = |cause| PlanMade::new(1, cause, PlanMaker::Deterministic, plan.clone());
    let error = Fault::new("tool.timeout", "too slow");
    let verdict = Verdict {
        can_answer_now: true,
        reasoning: "done".to_owned(),
        answer: Some("Sunny.".to_owned()),
        ..Verdict::default()
    };
    vec![
        Event::RunQueued(RunQueued::new("secret request", "u", TaskId(uuid::Uuid::from_u128(2)))),
        Event::RunStarted(RunStarted {
            language: Some("it".to_owned()),
            catalogue: "secret-hash".to_owned(),
            ..RunStarted::new("2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap())
        }),
        Event::Planning { version: 1, cause: PlanCause::Request },
        Event::ModelAsked {
            call: 1,
            subject: Subject::Answer,
            attempt: 0,
            fallback: false,
            prompt_hash: "secret-hash".to_owned(),
            reserved: None,
        },
        Event::PlanCreated(made(PlanCause::Request)),
        Event::StepStarted { step: 1 },
        Event::SceneReplied {
            step: 1,
            call: 2,
            text: "secret thought".to_owned(),
            calls: vec![call(1, "Get"), call(2, "Get")],
            question: None,
            next: None,
        },
        Event::ToolStarted { call: 1, attempt: 1 },
        Event::ToolCompleted {
            call: 1,
            outcome: Outcome::Ok { result: json!({"max_c": 24}), say: Some("24".to_owned()), whole: None },
            millis: 7,
            notes: None,
        },
        Event::ToolCompleted {
            call: 2,
            outcome: Outcome::Failed { error: error.clone() },
            millis: 9,
            notes: None,
        },
        Event::ToolSkipped { call: 2, first: 1 },
        Event::StepCompleted { step: 1, result: "Sunny.".to_owned() },
        Event::StepFailed { step: 1, status: StepStatus::Failed, error: error.clone() },
        Event::Continuation { round: 1, verdict, degraded: false },
        Event::Replanned(made(PlanCause::Continuation)),
        Event::Answered { text: "Sunny.".to_owned(), degraded: false, error: None },
        Event::RunCompleted { status: RunStatus::Completed },
        Event::RunFailed { error },
        Event::RunCancelled { by: "keysersoze".to_owned() },
        Event::Unexpected {
            subject: UnexpectedSubject::Call { call: 1, attempt: 1 },
            class: FaultClass::Timeout,
            code: "secret.code".to_owned(),
            weighed: Vec::new(),
            chosen: PolicyChoice::Retry { delay_ms: 250 },
            unasked: Some(AskRefusal::Decided),
            options: Vec::new(),
        },
        Event::BackedOff { call: 1, attempt: 2, delay_ms: 250, asked_ms: None },
        Event::TimerFired { timer: TimerSubject::Retry { call: 1, attempt: 2 } },
        Event::Adapted {
            change: Adaptation::Substituted { call: 1, requested: Box::new(call(3, "GetElsewhere")) },
        },
        Event::Forecast {
            step: 1,
            tools: vec![ToolForecast {
                tool: "Get".to_owned(),
                open: true,
                success_percent: 20,
                latency_ms: 400,
            }],
        },
        Event::Consultation {
            consultation: 1,
            subject: ConsultationSubject::Recovery { call: 1, attempt: 1 },
            question: Some(3),
            how: ConsultationOutcome::Asked,
            chosen: Some(ConsultationChoice::Recovery { action: RecoveryAction::Retry { delay_ms: 250 } }),
            refused: None,
            reason: "secret".to_owned(),
            model: Some("secret".to_owned()),
            ask: None,
            error: None,
        },
    ]
}

#[test]
fn every_public_event_has_its_documented_shape() {
    let mut teller = PublicProjection::default();
    let told: Vec<PublicEvent> = events()
        .into_iter()
        .zip(1..)
        .filter_map(|(event, seq)| teller.project(&envelope(seq, event)))
        .collect();
    let text: Vec<String> =
        told.iter().map(|event| format!("{} {} {}", event.id, event.name, event.data)).collect();
    let run = "\"run_id\":\"00000000-0000-0000-0000-000000000001\"";
    let task = "\"task_id\":\"00000000-0000-0000-0000-000000000002\"";
    let plan = r#""plan":{"needs_execution":true,"reasoning":"asked","steps":[{"depends_on_step":null,"expected_tools":["Get"],"purpose":"Get the weather","scene_name":"Weather","step_number":1}]}"#;
    let step = r#""scene_name":"Weather""#;
    let error = r#""error":{"code":"tool.timeout","message":"too slow"}"#;
    let milan = r#""arguments":{"city":"Milan"}"#;
    let expected = [
        format!(
            r#"2.0.0 run_started {{"language":"it","now":"2026-05-04T09:00:00+02:00[Europe/Rome]",{run},"session_id":"s-1",{task}}}"#
        ),
        format!(r#"3.0.0 planning {{"cause":"request",{run},"version":1}}"#),
        format!(
            r#"5.0.0 plan_created {{"cause":"request","maker":"deterministic",{plan},{run},{task},"version":1}}"#
        ),
        format!(r#"6.0.0 step_started {{"purpose":"Get the weather",{run},{step},"step_number":1}}"#),
        format!(
            r#"8.0.0 tool_started {{{milan},"attempt":1,"call":1,"effect":"read",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"9.0.0 tool_completed {{{milan},"call":1,"duration_ms":7,"outcome":"ok","result":{{"max_c":24}},{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"10.0.0 tool_completed {{{milan},"call":2,"duration_ms":9,{error},"outcome":"failed",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"11.0.0 tool_skipped {{{milan},"call":2,"first_call":1,"outcome":"skipped",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"12.0.0 step_completed {{"result":"Sunny.",{run},{step},"status":"completed","step_number":1}}"#
        ),
        format!(r#"13.0.0 step_failed {{{error},{run},{step},"status":"failed","step_number":1}}"#),
        format!(
            r#"14.0.0 continuation {{"can_answer_now":true,"degraded":false,"missing_information":null,"reasoning":"done","round":1,{run},"should_continue":false}}"#
        ),
        format!(
            r#"15.0.0 replanned {{"cause":"continuation","maker":"deterministic",{plan},{run},{task},"version":1}}"#
        ),
        format!(r#"16.0.0 answered {{"answer":"Sunny.","degraded":false,{run}}}"#),
        format!(r#"17.0.0 run_completed {{{run},"status":"completed"}}"#),
        format!(r#"18.0.0 run_failed {{{error},{run},"status":"failed"}}"#),
        format!(r#"19.0.0 run_cancelled {{"by":"keysersoze",{run},"status":"cancelled"}}"#),
        format!(
            r#"20.0.0 unexpected {{{milan},"attempt":1,"call":1,"chosen":{{"action":"retry","delay_ms":250}},"class":"timeout",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"21.0.0 backed_off {{{milan},"attempt":2,"call":1,"delay_ms":250,{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"23.0.0 adapted {{{milan},"by":{{{milan},"call":3,"tool":"GetElsewhere"}},"call":1,"change":"substituted",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
        format!(
            r#"24.0.0 forecast {{{run},{step},"step_number":1,"tools":[{{"latency_ms":400,"open":true,"success_percent":20,"tool":"Get"}}]}}"#
        ),
        format!(
            r#"25.0.0 consultation {{{milan},"call":1,"chosen":"retry","consultation":1,"how":"asked","kind":"recovery",{run},{step},"step_number":1,"tool":"Get"}}"#
        ),
    ];
    assert_eq!(text, expected);
    assert!(!text.join("").contains("secret"), "{text:#?}");
    assert_eq!(told.iter().filter(|event| event.is_last()).count(), 3);
}

#[test]
fn event_ids_round_trip_and_reject_everything_else() {
    for (text, epoch, seq, offset) in [
        ("0.0", None, 0, 0),
        ("12.345", None, 12, 345),
        ("7", None, 7, 0),
        (" 7.1 ", None, 7, 1),
        ("12.345.2", Some(2), 12, 345),
    ] {
        let id: EventId = text.parse().unwrap();
        assert_eq!(id, EventId { epoch, seq, offset });
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    for text in
        ["", ".", "1.", ".1", "-1", "+1", "1.2.3.4", "1.1.4294967296", "a", "99999999999999999999999", "1.-2"]
    {
        let error = text.parse::<EventId>().unwrap_err();
        assert!(error.to_string().contains("id of the last event"));
    }
}

#[test]
fn diverged_history_resumes_at_the_last_common_event() {
    // Two processes were killed, after events 4 and 6.
    let epochs = [0, 0, 0, 0, 1, 1, 2, 2, 2];
    let journal: Vec<Envelope<Event>> = epochs
        .into_iter()
        .zip(1..)
        .map(|(epoch, seq)| Envelope { epoch, ..envelope(seq, Event::RunWaiting {}) })
        .collect();
    for (told, after) in [
        // Delivered by the process that wrote it.
        ("3.0.0", 3),
        ("6.0.1", 6),
        ("9.0.2", 9),
        // Delivered and lost.
        ("5.0.0", 4),
        ("40.0.0", 4),
        ("8.0.1", 6),
        ("9.0.5", 9),
        // More than exists: at least the last event is delivered again.
        ("12.0.2", 8),
        ("12.0.5", 8),
        // Delivered by an earlier release, whose ids have no epoch.
        ("3.0", 3),
        ("5.0", 4),
        ("10.0", 4),
    ] {
        assert_eq!(stream::last_common_seq(told.parse().unwrap(), &journal), after, "{told}");
    }
    assert_eq!(stream::last_common_seq("3.0.0".parse().unwrap(), &[]), 0);
}
