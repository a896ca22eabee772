//! The spans of stored journals.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::{AttributeValue, FinishedSpan, ModelServers, SpanRole, TraceFold, TraceOptions};
use crate::llm;
use crate::run::{Attempt, Envelope, Event, PlanScore};
use crate::trace_context::{SpanId, SpanKey, TraceSampler};

type Journal = Vec<Envelope<Event>>;

fn options() -> TraceOptions {
    let model = llm::ModelOptions {
        name: "main".to_owned(),
        model: Some("gpt-4o-mini".to_owned()),
        base_url: "https://models.example.com/v1".to_owned(),
        ..llm::ModelOptions::default()
    };
    let models = llm::Options { models: vec![model], ..llm::Options::default() };
    TraceOptions {
        sampler: TraceSampler { ratio: 1.0 },
        content: false,
        service: "proscenium".into(),
        models: ModelServers::new(&models),
    }
}

fn journal(name: &str) -> Journal {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replays").join(format!("{name}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn journals() -> Vec<(String, Journal)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replays");
    let names = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        Some(name.strip_suffix(".jsonl")?.to_owned())
    });
    names.map(|name| (name.clone(), journal(&name))).collect()
}

/// The spans that a process exports that folds these events after it was given the `known` ones.
fn spans(known: &[Envelope<Event>], events: &[Envelope<Event>], options: &TraceOptions) -> Vec<FinishedSpan> {
    let first = known.first().or(events.first()).unwrap();
    let mut fold = TraceFold::new(options, first).unwrap();
    for event in known {
        fold.observe(event);
    }
    events.iter().flat_map(|event| fold.observe(event)).collect()
}

/// Spans as a tree, in the order in which they began, with seconds since the first one.
fn tree(spans: &[FinishedSpan]) -> String {
    let begun = spans.iter().map(|span| span.started).min().unwrap();
    let mut children: BTreeMap<Option<SpanId>, Vec<&FinishedSpan>> = BTreeMap::new();
    let known: BTreeSet<SpanId> = spans.iter().map(|span| span.id).collect();
    for span in spans {
        children.entry(span.parent.filter(|id| known.contains(id))).or_default().push(span);
    }
    children.values_mut().for_each(|spans| spans.sort_by_key(|span| (span.started, span.ended)));
    let mut text = String::new();
    let mut open: Vec<(usize, &FinishedSpan)> = children[&None].iter().rev().map(|span| (0, *span)).collect();
    while let Some((depth, span)) = open.pop() {
        let seconds = |at: jiff::Timestamp| at.duration_since(begun).as_secs();
        let role = if span.role == SpanRole::Client { " client" } else { "" };
        let times = format!("{}..{}", seconds(span.started), seconds(span.ended));
        let _ = writeln!(text, "{}{} {times}{role}", "    ".repeat(depth), span.name);
        let common =
            ["proscenium.run.id", "proscenium.tenant", "gen_ai.conversation.id", "gen_ai.operation.name"];
        let own = span.attributes.iter().filter(|(name, _)| !common.contains(name));
        let own: Vec<String> = own.map(|(name, value)| format!("{name}={}", shown(value))).collect();
        if !own.is_empty() {
            let _ = writeln!(text, "{}  | {}", "    ".repeat(depth), own.join(" "));
        }
        for note in &span.notes {
            let about: Vec<String> =
                note.attributes.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
            let _ = writeln!(
                text,
                "{}  * {} {} {}",
                "    ".repeat(depth),
                seconds(note.at),
                note.name,
                about.join(" ")
            );
        }
        open.extend(children.get(&Some(span.id)).into_iter().flatten().rev().map(|span| (depth + 1, *span)));
    }
    text
}

fn shown(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Text(text) => text.clone(),
        AttributeValue::Int(number) => number.to_string(),
        AttributeValue::Real(number) => number.to_string(),
        AttributeValue::Flag(yes) => yes.to_string(),
        AttributeValue::List(texts) => texts.join(","),
    }
}

#[test]
fn stored_journals_have_these_spans() {
    for name in ["approved", "flow", "resumed-write", "undone"] {
        insta::assert_snapshot!(name, tree(&spans(&[], &journal(name), &options())));
    }
}

#[test]
fn each_span_is_exported_once_wherever_another_process_takes_the_run_over() {
    let journals = journals();
    assert!(journals.len() > 25, "{}", journals.len());
    for (name, journal) in journals {
        let whole = spans(&[], &journal, &options());
        for cut in 1..journal.len() {
            let mut both = spans(&[], &journal[..cut], &options());
            both.extend(spans(&journal[..cut], &journal[cut..], &options()));
            assert_eq!(both, whole, "{name} is taken over after event {cut}");
        }
    }
}

#[test]
fn spans_form_one_tree_and_have_no_text_of_users_models_and_tools() {
    for (name, journal) in journals() {
        let spans = spans(&[], &journal, &options());
        let ids: BTreeSet<SpanId> = spans.iter().map(|span| span.id).collect();
        assert_eq!(ids.len(), spans.len(), "{name}: an id occurs twice");
        let Event::RunQueued(queued) = &journal[0].body else { panic!("{name}") };
        let roots: Vec<_> = spans.iter().filter(|span| span.parent.is_none()).collect();
        assert_eq!((roots.len(), &*roots[0].name), (1, "invoke_workflow proscenium"), "{name}");
        let answer = journal.iter().find_map(|event| match &event.body {
            Event::Answered { text, .. } => Some(text.as_str()),
            _ => None,
        });
        for span in &spans {
            assert!(span.parent.is_none_or(|parent| ids.contains(&parent)), "{name}: {span:?}");
            assert!(span.started <= span.ended && span.started >= journal[0].at, "{name}: {span:?}");
            assert_eq!(span.trace, roots[0].trace);
            let run = span.attribute("proscenium.run.id").map(shown);
            assert_eq!(run, journal[0].run.map(|run| run.to_string()), "{name}: {span:?}");
            let said = format!("{span:?}");
            assert!(!said.contains(&queued.request), "{name}: {span:?}");
            assert!(answer.is_none_or(|answer| !said.contains(answer)), "{name}: {span:?}");
        }
        let asked = journal.iter().filter(|event| matches!(event.body, Event::ModelAsked { .. })).count();
        let called = journal.iter().filter(|event| matches!(event.body, Event::ToolStarted { .. })).count();
        let of = |operation: &str| {
            let has = |span: &&FinishedSpan| {
                span.attribute("gen_ai.operation.name").map(shown).as_deref() == Some(operation)
            };
            spans.iter().filter(has).count()
        };
        assert_eq!((of("chat") + of("embeddings"), of("execute_tool")), (asked, called), "{name}");
    }
}

#[test]
fn content_is_in_spans_where_it_is_switched_on() {
    let journal = journal("approved");
    let Event::RunQueued(queued) = &journal[0].body else { panic!() };
    let spans = spans(&[], &journal, &TraceOptions { content: true, ..options() });
    let root = spans.last().unwrap();
    assert!(root.attribute("gen_ai.input.messages").map(shown).unwrap().contains(&queued.request));
    assert!(root.attribute("gen_ai.output.messages").is_some());
    let tool = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    assert!(tool.attribute("gen_ai.tool.call.arguments").is_some());
    assert!(tool.attribute("gen_ai.tool.call.result").is_some());
    assert!(
        spans
            .iter()
            .any(|span| span.name.starts_with("chat") && span.attribute("gen_ai.output.messages").is_some())
    );
}

#[test]
fn attempts_are_placed_before_the_end_of_their_question_and_have_the_ids_that_were_sent() {
    let mut journal = journal("approved");
    for event in &mut journal {
        if let Event::ModelReplied { reply, attempts, .. } = &mut event.body {
            let of = |outcome: &str, after_millis, millis| Attempt {
                model: "main".to_owned(),
                outcome: outcome.to_owned(),
                after_millis,
                millis,
                ..Attempt::default()
            };
            reply.model = "main".to_owned();
            *attempts = vec![of("rate_limited", 0, 100), of(Attempt::OK, 300, 400)];
        }
    }
    let spans = spans(&[], &journal, &options());
    let chat = spans.iter().find(|span| span.name == "chat gpt-4o-mini").unwrap();
    assert_eq!(chat.attribute("server.address").map(shown).as_deref(), Some("models.example.com"));
    let attempts: Vec<_> = spans.iter().filter(|span| span.parent == Some(chat.id)).collect();
    let millis = |at: jiff::Timestamp| chat.ended.duration_since(at).as_millis();
    let placed: Vec<_> = attempts.iter().map(|span| (millis(span.started), millis(span.ended))).collect();
    assert_eq!(placed, [(700, 600), (400, 0)]);
    assert_eq!(attempts[0].error.as_deref(), Some("rate_limited"));
    assert_eq!(attempts[1].attribute("http.request.resend_count"), Some(&AttributeValue::Int(1)));
    let sent = |index| {
        let trace = crate::trace_context::RunTrace::new(journal[0].run.unwrap().0, None, options().sampler);
        trace.span(SpanKey::ModelAttempt { call: 1, index })
    };
    assert_eq!([attempts[0].id, attempts[1].id], [sent(0), sent(1)]);
}

#[test]
fn run_that_continues_after_its_end_has_a_further_span_within_the_first() {
    let mut journal = journal("failed");
    let mut first = spans(&[], &journal, &options());
    let more = |journal: &mut Journal, body: Event| {
        let mut next = journal.last().unwrap().clone();
        (next.seq, next.body) = (next.seq + 1, body);
        next.at += jiff::SignedDuration::from_secs(1);
        journal.push(next);
    };
    let end = journal.last().unwrap().body.clone();
    let rated =
        Event::PlanRated { template: None, paths: vec![], score: PlanScore::Bad, by: "x".into(), note: None };
    more(&mut journal, rated);
    assert_eq!(spans(&[], &journal, &options()), first, "what is said after the end makes no span");
    more(&mut journal, Event::RunReopened { by: "x".to_owned() });
    more(&mut journal, end);
    let all = spans(&[], &journal, &options());
    let root = first.pop().unwrap();
    assert_eq!(all[first.len()], root, "the first span stays as it was exported");
    let [again] = &all[first.len() + 1..] else { panic!("{all:?}") };
    assert_eq!((&*again.name, again.parent), (&*root.name, Some(root.id)));
}

#[test]
fn run_whose_client_does_not_record_it_has_no_spans() {
    let mut first = journal("approved").remove(0);
    let Event::RunQueued(queued) = &mut first.body else { panic!() };
    queued.trace_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00".parse().ok();
    assert!(queued.trace_parent.is_some() && TraceFold::new(&options(), &first).is_none());
}
