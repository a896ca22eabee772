use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::llm::{Message, sections};
use crate::run::{
    CallOrigin, ConfirmedCall, DocumentId, DocumentQuote, DocumentSpan, Effect, Fault, NamedDocument,
    Question, ReaderMode, Reply, ReplyCall, RunId, RunStatus, TurnCall, TurnOrigin,
};

fn turn(n: usize) -> Turn {
    Turn {
        run: Some(RunId(uuid::Uuid::from_u128(n as u128))),
        request: format!("Che tempo fa a Milano il giorno {n}?"),
        answer: format!("A Milano il giorno {n} ci saranno da 12 a 21 °C."),
        status: RunStatus::Completed,
        calls: vec![TurnCall {
            scene: "Weather".to_owned(),
            tool: "WeatherForecast_Get".to_owned(),
            arguments: json!({"city": "Milan", "date": n}).into(),
            result: json!({"min_c": 12, "max_c": 21, "source": "bundled"}).into(),
            stale: false,
        }],
    }
}

fn ended(turn: Turn) -> SessionEvent {
    SessionEvent::TurnEnded {
        turn,
        pending: None,
        usage: Usage { calls: 1, ..Usage::default() },
        origin: None,
    }
}

fn question() -> PendingQuestion {
    PendingQuestion {
        request: "ask for three days off".to_owned(),
        scene: "VacationManagement".to_owned(),
        purpose: "Submit a vacation request".to_owned(),
        question: Question {
            text: "From which day to which day?".to_owned(),
            tool: Some("MakeRequest".to_owned()),
            missing: vec!["from".to_owned(), "to".to_owned()],
            known: Value::Null,
            choices: Vec::new(),
        },
        unconfirmed: Vec::new(),
        user: String::new(),
        run: None,
        documents: Vec::new(),
    }
}

fn size(context: &Context) -> usize {
    tokens(&serde_json::to_string(context).unwrap())
}

#[test]
fn short_conversation_is_kept_verbatim() {
    let memory = Memory::from_events(Options::default(), &[ended(turn(1)), ended(turn(2))]);
    let context = memory.context(2000);
    assert_eq!(
        context,
        Context {
            summary: None,
            turns: vec![turn(1), turn(2)],
            pending: None,
            facts: vec![],
            unfounded: vec![],
            names_deleted: false,
        }
    );
}

#[test]
fn list_of_documents_can_be_asked_about_again_until_the_conversation_continues() {
    let document = NamedDocument {
        id: DocumentId(uuid::Uuid::from_u128(7)),
        sha256: String::new(),
        name: "report.md".to_owned(),
        media: "text/markdown".to_owned(),
        bytes: 1,
        language: None,
        heading: None,
    };
    let quote = DocumentQuote {
        step: 1,
        claim: "They sold 4101 lamps.".to_owned(),
        span: DocumentSpan { document: document.id.to_string(), start: 0, end: 9 },
        sha256: String::new(),
    };
    let mut lists = question();
    lists.question.choices.push(document);
    let mut also_confirms = lists.clone();
    also_confirms.unconfirmed.push(ConfirmedCall {
        scene: "Rooms".to_owned(),
        tool: "Book".to_owned(),
        arguments: Value::Null,
        definition: String::new(),
        question: "Shall I book it?".to_owned(),
    });
    let after = |turns: &[(Option<&PendingQuestion>, bool)]| {
        let events = turns.iter().enumerate().map(|(n, (pending, quotes))| SessionEvent::TurnEnded {
            turn: turn(n),
            pending: pending.cloned(),
            usage: Usage::default(),
            origin: Some(TurnOrigin {
                now: "2026-06-01T09:00[Europe/Rome]".parse().unwrap(),
                user: "ada".to_owned(),
                by_model: false,
                has_made_values: false,
                quotes: if *quotes { vec![quote.clone()] } else { Vec::new() },
                calls: Vec::new(),
            }),
        });
        let events: Vec<SessionEvent> = events.collect();
        Memory::from_events(Options::default(), &events).listing_again()
    };
    let (lists, confirms, asks) = (Some(&lists), Some(&also_confirms), question());
    let again = after(&[(lists, false), (None, true), (None, true)]).unwrap();
    assert_eq!(again.pending(), lists);
    for turns in [
        &[(lists, false)][..],
        &[(lists, false), (None, false), (None, true)],
        &[(lists, false), (Some(&asks), true), (None, true)],
        &[(confirms, false), (None, true)],
        &[(None, true)],
    ] {
        assert!(after(turns).is_none(), "{turns:?}");
    }
}

#[test]
fn question_is_pending_until_the_next_turn_ends() {
    let mut memory = Memory::default();
    let asked = SessionEvent::TurnEnded {
        turn: turn(1),
        pending: Some(question()),
        usage: Usage::default(),
        origin: None,
    };
    memory.apply(&asked);
    assert_eq!(memory.context(2000).pending, Some(question()));
    memory.apply(&ended(turn(2)));
    assert_eq!(memory.context(2000).pending, None);
}

#[test]
fn late_run_keeps_question_of_newer_run() {
    let asks = |n: usize, text: &str| {
        let mut pending = question();
        pending.question.text = text.to_owned();
        SessionEvent::TurnEnded {
            turn: turn(n),
            pending: Some(pending),
            usage: Usage::default(),
            origin: None,
        }
    };
    let pending = |events: &[SessionEvent]| {
        let memory = Memory::from_events(Options::default(), events);
        memory.pending().map(|pending| pending.question.text.clone())
    };
    // The first run waited for a person while the second one asked something.
    let (newer, late, silent) = (asks(2, "newer"), asks(1, "late"), ended(turn(1)));
    assert_eq!(pending(&[newer.clone(), silent.clone()]).as_deref(), Some("newer"));
    assert_eq!(pending(&[newer.clone(), late.clone()]).as_deref(), Some("newer"));
    // If the newer run asks nothing, the late question stays pending until a newer turn ends.
    assert_eq!(pending(&[ended(turn(2)), late.clone()]).as_deref(), Some("late"));
    assert_eq!(pending(&[ended(turn(2)), late, ended(turn(3))]), None);
    assert_eq!(pending(&[newer, silent, ended(turn(3))]), None);
}

#[test]
fn conversation_usage_is_sum_of_turns_and_summaries() {
    let usage = |n| Usage { calls: 1, cost_nano_usd: n, ..Usage::default() };
    let fault = Fault::new("llm.timeout", "no reply");
    let memory = Memory::from_events(
        Options::default(),
        &[
            SessionEvent::TurnEnded { turn: turn(1), pending: None, usage: usage(5), origin: None },
            SessionEvent::SummaryFailed { error: fault, usage: usage(7), attempts: vec![] },
            SessionEvent::Summarised {
                through: 1,
                summary: "s".to_owned(),
                usage: usage(11),
                attempts: vec![],
                sources: vec![],
            },
        ],
    );
    assert_eq!(memory.usage(), Usage { calls: 3, cost_nano_usd: 23, ..Usage::default() });
}

fn replied(summary: &str) -> Reply {
    let call = ReplyCall {
        id: "1".to_owned(),
        name: "WriteSummary".to_owned(),
        arguments: json!({"summary": summary}).to_string(),
    };
    Reply { calls: vec![call], model: "main".to_owned(), ..Reply::default() }
}

#[test]
fn summary_of_turns_is_kept_as_far_as_they_say_so_and_names_their_places() {
    let mut memory = Memory::new(Options { keep_turns: 1, max_turns_in_prompt: 3, ..Options::default() });
    let mut model = vec![
        "Ada pays Bob 99 [1]. She asked about Milano for 2 [2]. She asked about Milano for 3 [1].",
        "Ada asked about Milano: from 12 to 21 [1]. She owes 4711 euros to Mallory [1].",
    ];
    let mut told = Vec::new();
    for n in 1..=6 {
        let mut turn = turn(n);
        turn.request = format!("Sono Ada. {}", turn.request);
        memory.apply(&ended(turn));
        let Some(job) = memory.needs_summary(100_000) else { continue };
        let Some(written) = model.pop() else { continue };
        let mut summary = TurnSummary::new(&job, Some("en")).unwrap();
        let part = summary.next_part().unwrap();
        let request = summary.request(part);
        let [Message::System { .. }, Message::User { text }] = request.messages.as_slice() else {
            panic!("two messages")
        };
        told.push(sections::get(text, "facts").unwrap());
        let done = summary.read(part, &replied(written), ReaderMode::Strict).unwrap().unwrap();
        assert!(done.removed > 0 && !done.text.contains('['), "{done:?}");
        for place in &done.sources {
            let turn =
                place.turn.checked_sub(1).map(|at| turn_text(&job.turns[at + job.turns.len() - job.through]));
            let text = turn.or(job.summary.clone()).unwrap();
            assert!(
                text.get(place.start as usize..place.end as usize).unwrap().contains("Milano"),
                "{place:?}"
            );
        }
        let (through, usage, sources) = (job.through, Usage::default(), done.sources);
        memory.apply(&SessionEvent::Summarised {
            through,
            summary: done.text,
            usage,
            attempts: vec![],
            sources,
        });
    }
    assert_eq!(told.len(), 2);
    // What was remembered comes first, then turn by turn.
    assert!(told[1].lines().next().unwrap().contains("Ada asked about Milano: from 12 to 21."), "{told:#?}");
    let summary = memory.context(2000).summary.unwrap();
    for invented in ["99", "4711", "Mallory", "Bob"] {
        assert!(!summary.contains(invented), "{summary}");
    }
}

#[test]
fn summary_in_prose_is_kept_as_far_as_turns_say_so() {
    let mut own = turn(1);
    own.request = format!("Sono Ada. {}", own.request);
    let job = SummaryJob { through: 1, summary: None, turns: vec![own] };
    let mut summary = TurnSummary::new(&job, Some("en")).unwrap();
    let part = summary.next_part().unwrap();
    let text = "Ada asked about Milano: from 12 to 21.\nShe owes 4711 euros to Mallory.".to_owned();
    let reply = Reply { text, model: "main".to_owned(), ..Reply::default() };
    let done = summary.read(part, &reply, ReaderMode::Tolerant).unwrap().unwrap();
    assert_eq!(done.text, "Ada asked about Milano: from 12 to 21.");
    let broken = Reply { text: "{\"summary\": \"Milano\"".to_owned(), ..reply };
    assert!(summary.read(part, &broken, ReaderMode::Strict).is_err());
}

#[test]
fn long_turns_are_asked_about_and_left_to_rules_if_that_fails() {
    let mut long = turn(1);
    long.answer =
        (0..90).map(|n| format!("The hall number {n} has {} seats and a door. ", n + 700)).collect();
    let job = SummaryJob { through: 2, summary: None, turns: vec![long, turn(2)] };
    let mut summary = TurnSummary::new(&job, Some("en")).unwrap();
    assert_eq!(summary.next_part(), Some(1));
    assert!(summary.read(1, &replied("no facts"), ReaderMode::Strict).is_err());
    assert!(summary.make_by_rules(1));
    assert_eq!(summary.next_part(), Some(3));
    let size: usize = summary.request(3).messages.iter().map(|message| format!("{message:?}").len()).sum();
    assert!(size < 12_000, "{size}");
    assert!(!summary.make_by_rules(3));
}

#[test]
fn summary_without_a_usable_reply_is_made_by_rules_and_its_cost_is_recorded() {
    let mut long = turn(1);
    long.answer = (0..90).map(|n| format!("The hall number {n} has {n} seats and a door. ")).collect();
    let job = SummaryJob { through: 2, summary: None, turns: vec![long, turn(2)] };
    let mut summary = TurnSummary::new(&job, Some("en")).unwrap();
    assert_eq!(summary.next_part(), Some(1));
    assert_eq!(summary.end_part(1, &replied("no facts"), ReaderMode::Strict), PartEnd::MadeByRules);
    assert_eq!(summary.next_part(), Some(3));
    let broken = Reply { text: "{".to_owned(), model: "main".to_owned(), ..Reply::default() };
    assert_eq!(summary.end_part(3, &broken, ReaderMode::Strict), PartEnd::Unusable);

    let (error, usage) =
        (Fault::new("summary.empty", "empty"), Usage { cost_nano_usd: 7, ..Usage::default() });
    let events = job.events(Err(error), usage, Vec::new());
    let [SessionEvent::SummaryFailed { .. }, SessionEvent::Summarised { through: 2, summary, .. }] =
        events.as_slice()
    else {
        panic!("{events:?}")
    };
    assert_eq!(*summary, job.fallback());
    assert_eq!(events.iter().map(SessionEvent::cost_nano_usd).sum::<u64>(), 7);
    let written = WrittenMemory { text: "Milano".to_owned(), ..WrittenMemory::default() };
    let events = job.events(Ok(written), usage, Vec::new());
    assert!(
        matches!(events.as_slice(), [SessionEvent::Summarised { through: 2, summary, .. }] if summary == "Milano")
    );
    assert_eq!(events[0].cost_nano_usd(), 7);
}

#[test]
fn long_conversation_is_summarised_within_small_window() {
    let window = 2048;
    let mut memory = Memory::default();
    let mut summaries = 0;
    for n in 1..=15 {
        memory.apply(&ended(turn(n)));
        if let Some(job) = memory.needs_summary(window) {
            summaries += 1;
            memory.apply(&SessionEvent::Summarised {
                through: job.through,
                summary: job.fallback(),
                usage: Usage::default(),
                attempts: vec![],
                sources: vec![],
            });
        }
        assert!(memory.tokens() <= window / 2, "turn {n}: {} tokens", memory.tokens());
        assert!(memory.turns().len() >= n.min(4));
    }
    assert!((1..=5).contains(&summaries), "{summaries}");
    let all = serde_json::to_string(&memory.context(window / 2)).unwrap();
    for n in 1..=15 {
        assert!(all.contains(&format!("a Milano il giorno {n}?")), "day {n} is forgotten: {all}");
    }
}

#[test]
fn turns_that_do_not_fit_get_one_line_each() {
    let events: Vec<SessionEvent> = (1..=12).map(|n| ended(turn(n))).collect();
    let context = Memory::from_events(Options::default(), &events).context(800);
    assert!(context.turns.len() < 12);
    let first_held = context.turns.first().unwrap().request.clone();
    let summary = context.summary.unwrap();
    assert!(summary.contains("→"));
    assert!(!summary.contains(&first_held));
    let last_told = 12 - context.turns.len();
    assert!(summary.contains(&format!("il giorno {last_told}?")), "{summary}");
}

#[test]
fn huge_turn_is_truncated_with_a_note() {
    let mut huge = turn(1);
    huge.request = "please ".repeat(100_000);
    huge.calls[0].result = json!({"rows": vec!["row"; 10_000]}).into();
    let memory = Memory::from_events(Options::default(), &[ended(huge)]);
    assert!(memory.tokens() <= MAX_TURN_TOKENS + 20);
    let context = memory.context(1000);
    assert!(context.turns[0].request.contains("[cut, 700000 characters in all]"));
    assert!(context.turns[0].calls[0].result.to_string().contains("more"));
    assert_eq!(context.turns[0].calls[0].arguments["city"], "Milan");
}

#[test]
fn late_summary_changes_only_usage() {
    let mut memory = Memory::default();
    for n in 1..=6 {
        memory.apply(&ended(turn(n)));
    }
    let summarised = |through, summary: &str| SessionEvent::Summarised {
        through,
        summary: summary.to_owned(),
        usage: Usage::default(),
        attempts: vec![],
        sources: vec![],
    };
    memory.apply(&summarised(4, "of four"));
    let before = memory.clone();
    memory.apply(&summarised(2, "of two"));
    assert_eq!(memory, before);
    assert_eq!((memory.covered(), memory.total_turns()), (4, 6));
}

#[test]
fn fallback_summary_stays_bounded_when_repeated() {
    let mut summary = None;
    for n in 0..50 {
        let turns = (n * 10..n * 10 + 10).map(turn).collect();
        let job = SummaryJob { through: n * 10 + 10, summary, turns };
        let text = job.fallback();
        assert!(tokens(&text) <= MAX_SUMMARY_TOKENS, "{}", tokens(&text));
        assert!(text.contains(&format!("il giorno {}?", n * 10 + 9)));
        summary = Some(text);
    }
}

#[test]
fn a_session_event_keeps_its_form_in_the_journal() {
    let event = SessionEvent::Summarised {
        through: 2,
        summary: "s".to_owned(),
        usage: Usage::default(),
        attempts: vec![],
        sources: vec![],
    };
    let text = serde_json::to_string(&event).unwrap();
    assert!(text.starts_with(r#"{"type":"summarised","through":2,"summary":"s","usage":"#), "{text}");
    assert_eq!(serde_json::from_str::<SessionEvent>(&text).unwrap(), event);
    assert_eq!(
        serde_json::from_str::<SessionEvent>(r#"{"type":"session_started"}"#).unwrap(),
        SessionEvent::SessionStarted {}
    );
}

#[test]
fn out_of_range_options_are_named() {
    let options =
        Options { window_share: 1.5, keep_turns: 0, max_turns_in_prompt: 0, facts_tokens: usize::MAX };
    let all: Vec<String> = options.problems().into_iter().flat_map(|wrong| wrong.keys).collect();
    for key in
        ["memory.window_share", "memory.keep_turns", "memory.max_turns_in_prompt", "memory.facts_tokens"]
    {
        assert!(all.iter().any(|told| told == key), "{key}: {all:?}");
    }
    assert!(Options::default().problems().is_empty());
}

/// The events of `turns` turns, each with two calls, about the place that `place` names for a turn.
fn two_calls_a_turn(turns: usize, place: impl Fn(usize) -> usize) -> Vec<SessionEvent> {
    let now: jiff::Zoned = "2026-06-01T09:00[Europe/Rome]".parse().unwrap();
    let ended = |n: usize| {
        let at = place(n);
        let weather = json!({"city": format!("Town {at}"), "country": "IT", "date": "2026-06-01", "min_c": at % 17,
            "max_c": 17 + at % 19, "rain_mm": at * 7 % 90, "rain_of": "month", "approximate": true,
            "source": "World Weather Information Service, climate averages 1971-2000, not a forecast"});
        let balance = json!({"allowance_days": 26, "remaining_days": 26 - at % 9, "requested_days": at % 9,
            "year": 2026, "for": {"name": "Ada Lovelace", "username": "ada"}});
        let call = |scene: &str, tool: &str, arguments: Value, result: Value| TurnCall {
            scene: scene.to_owned(),
            tool: tool.to_owned(),
            arguments: arguments.into(),
            result: result.into(),
            stale: false,
        };
        let says = [
            format!("Town {at}: {} to {} °C, {} mm of rain.", at % 17, 17 + at % 19, at * 7 % 90),
            format!("You have {} vacation days left of 26 in 2026.", 26 - at % 9),
        ];
        let origin = |call: u32, say: &str| CallOrigin {
            step: call,
            call,
            effect: Effect::Read,
            say: Some(say.to_owned()),
            void: false,
            quotes_documents: false,
        };
        SessionEvent::TurnEnded {
            turn: Turn {
                request: format!(
                    "What is the weather in Town {at}, and how many vacation days do I have left?"
                ),
                answer: says.join("\n"),
                calls: vec![
                    call("Weather", "WeatherForecast_Get", json!({"city": format!("Town {at}")}), weather),
                    call("VacationManagement", "GetBalance", json!({"team": at}), balance),
                ],
                ..turn(n)
            },
            pending: None,
            usage: Usage { calls: 2, input_tokens: 8_405, ..Usage::default() },
            origin: Some(TurnOrigin {
                now: now.clone(),
                user: "ada".to_owned(),
                by_model: true,
                has_made_values: false,
                quotes: Vec::new(),
                calls: vec![origin(1, &says[0]), origin(2, &says[1])],
            }),
        }
    };
    (1..=turns).map(ended).collect()
}

/// The bytes of a conversation that waits after these events, and the number of its facts.
fn waiting(events: &[SessionEvent]) -> (usize, usize) {
    let memory = Memory::from_events(Options::default(), events);
    let ledger = FactLedger::from_events((1..).zip(events));
    let packed = PackedHistory::of(&memory, &ledger).unwrap();
    assert_eq!(packed.unpacked().unwrap(), (memory, ledger.clone()));
    (packed.bytes(), ledger.facts().len())
}

#[test]
fn conversation_that_waits_takes_a_few_kilobytes_and_grows_little_with_equal_questions() {
    let (other_questions, facts) = waiting(&two_calls_a_turn(20, |n| n * 31));
    assert!(facts >= 60, "{facts}");
    assert!(other_questions < 20 * 1024, "20 turns, {facts} facts: {other_questions} bytes");
    let [twenty, forty] = [20, 40].map(|turns| waiting(&two_calls_a_turn(turns, |_| 7)).0);
    assert!(twenty < 8 * 1024, "20 equal turns: {twenty} bytes");
    let each = (forty - twenty) / 20;
    assert!(each < 400, "{each} bytes for each further equal turn");
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,60}",
        1 => "\\PC{0,40}",
        1 => "[\"\\\\\n\u{1}<&]{0,300}",
        1 => (1usize..3000).prop_map(|n| "parola è ".repeat(n)),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), any_text().prop_map(Value::from),];
    leaf.prop_recursive(4, 40, 12, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,8}", inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let call = ("[A-Za-z]{1,64}", "[A-Za-z_]{1,64}", any_value(), any_value()).prop_map(
        |(scene, tool, arguments, result)| {
            let (arguments, result) = (arguments.into(), result.into());
            TurnCall { scene, tool, arguments, result, stale: false }
        },
    );
    (any::<Option<u128>>(), any_text(), any_text(), proptest::collection::vec(call, 0..6)).prop_map(
        |(run, request, answer, calls)| Turn {
            run: run.map(|n| RunId(uuid::Uuid::from_u128(n))),
            request,
            answer,
            status: RunStatus::NeedsInput,
            calls,
        },
    )
}

fn any_pending() -> impl Strategy<Value = PendingQuestion> {
    (any_text(), "[A-Za-z]{1,64}", any_text(), any_text(), "[A-Za-z_]{1,64}", any_value()).prop_map(
        |(request, scene, purpose, text, tool, known)| PendingQuestion {
            request,
            scene,
            purpose,
            question: Question {
                text,
                tool: Some(tool),
                missing: vec!["from".to_owned()],
                known,
                choices: Vec::new(),
            },
            unconfirmed: Vec::new(),
            user: String::new(),
            run: None,
            documents: Vec::new(),
        },
    )
}

/// Does what a driver does with a turn: remembers it, and summarises when needed.
fn drive(
    memory: &mut Memory,
    events: &mut Vec<SessionEvent>,
    event: SessionEvent,
    window: usize,
    summary: &str,
) {
    memory.apply(&event);
    events.push(event);
    if let Some(job) = memory.needs_summary(window) {
        let event = SessionEvent::Summarised {
            through: job.through,
            summary: summary.to_owned(),
            usage: Usage::default(),
            attempts: vec![],
            sources: vec![],
        };
        memory.apply(&event);
        events.push(event);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn context_never_exceeds_budget_or_loses_turns(
        turns in proptest::collection::vec((any_turn(), proptest::option::of(any_pending())), 1..14),
        window in 256usize..6000,
        budget in MIN_CONTEXT_TOKENS..3000,
        summary in any_text(),
    ) {
        let mut memory = Memory::default();
        let mut events = Vec::new();
        let (mut open, mut asker) = (false, None);
        for (n, (turn, pending)) in turns.iter().enumerate() {
            let ended = SessionEvent::TurnEnded {
                turn: turn.clone(),
                pending: pending.clone(),
                usage: Usage { calls: 1, ..Usage::default() },
                origin: None,
            };
            drive(&mut memory, &mut events, ended, window, &summary);

            prop_assert_eq!(memory.total_turns(), n + 1);
            prop_assert_eq!(memory.covered() + memory.turns().len(), n + 1);
            prop_assert!(memory.turns().len() >= (n + 1).min(4));
            prop_assert_eq!(memory.covered() > 0, memory.summary().is_some());

            let context = memory.context(budget);
            prop_assert!(size(&context) <= budget, "{} tokens of {}", size(&context), budget);
            prop_assert!(!context.turns.is_empty(), "the last turn is always told");
            prop_assert_eq!(&context.turns.last().unwrap().run, &turn.run);
            if !(open && turn.run.is_some() && turn.run < asker) {
                (open, asker) = (pending.is_some(), turn.run);
            }
            prop_assert_eq!(context.pending.is_some(), open);
            prop_assert!(memory.summary().is_none() || context.summary.is_some());
            if memory.turns().len() > context.turns.len() {
                prop_assert!(context.summary.is_some(), "turns left out are told of");
            }
        }
        let packed = PackedHistory::of(&memory, &FactLedger::default()).unwrap();
        prop_assert_eq!(&packed.unpacked().unwrap().0, &memory);
        prop_assert_eq!(Memory::from_events(Options::default(), &events), memory);
    }

    #[test]
    fn summary_job_folds_oldest_turns_within_its_share(
        turns in proptest::collection::vec(any_turn(), 5..30),
        window in 800usize..8000,
    ) {
        let events: Vec<SessionEvent> = turns.into_iter().map(ended).collect();
        let memory = Memory::from_events(Options::default(), &events);
        if let Some(job) = memory.needs_summary(window) {
            prop_assert_eq!(job.through, job.turns.len());
            prop_assert!(job.turns.len() + 4 <= events.len());
            let room = window / 2 + 8;
            let lines: usize = job.turns.iter().map(|turn| tokens(&turn_text(turn))).sum();
            prop_assert!(lines <= room, "{lines} tokens of {room}");
        }
    }

    #[test]
    fn memory_is_overdue_where_a_prompt_does_not_hold_it(
        turns in proptest::collection::vec(any_turn(), 1..30),
        window in 800usize..8000,
        max in 5usize..24,
    ) {
        let options = Options { max_turns_in_prompt: max, ..Options::default() };
        let mut memory = Memory::new(options.clone());
        for turn in turns {
            memory.apply(&ended(turn));
            let is_overdue = memory.fill().is_overdue(&options, window);
            // A request that waits, waits for something.
            prop_assert!(!is_overdue || memory.needs_summary(window).is_some());
            let kept = memory.turns().len();
            if kept <= options.keep_turns {
                prop_assert!(!is_overdue);
            } else if !is_overdue {
                prop_assert!(kept <= max + max / 4);
                // A few tokens more: the frame of a prompt without a summary is larger.
                let context = memory.context(options.budget(window) + 4);
                prop_assert!(kept > max || context.turns.len() == kept, "{} of {kept}", context.turns.len());
            }
        }
    }
}
