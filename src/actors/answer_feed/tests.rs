//! Every reader ends with the whole answer, however often it disconnects and resumes.

use proptest::prelude::*;

use super::*;
use crate::run::{Fault, RunStatus, Subject, Usage, Verdict};

fn answered(text: &str) -> Event {
    Event::Answered { text: text.to_owned(), degraded: false, error: None }
}

fn asked() -> Event {
    Event::ModelAsked {
        call: 1,
        subject: Subject::Answer,
        attempt: 0,
        fallback: false,
        prompt_hash: String::new(),
        reserved: None,
    }
}

fn shown() -> AnswerPreview {
    let state = crate::run::RunState::new(crate::run::RunId(uuid::Uuid::nil()));
    AnswerPreview::of(&state, Subject::Answer).unwrap()
}

fn writer(feed: &Arc<AnswerFeed>) -> FeedWriter {
    FeedWriter { feed: feed.clone(), number: feed.lock().begin_writer(), shown: Mutex::new(shown()) }
}

/// A client's text and position.
#[derive(Debug, Clone)]
struct Client {
    text: String,
    cursor: AnswerCursor,
    seq: u64,
}

impl Client {
    fn new() -> Self {
        Self { text: String::new(), cursor: AnswerCursor { generation: None, offset: 0 }, seq: 0 }
    }

    fn read(&mut self, feed: &AnswerFeed) -> bool {
        let piece = feed.read(&mut self.cursor);
        if piece.reset {
            self.text.clear();
        }
        self.text.push_str(&piece.text);
        assert_eq!(self.cursor.offset, self.text.len());
        piece.reset
    }
}

#[test]
fn model_streams_while_somebody_reads_or_may_do_so() {
    let feed = Arc::new(AnswerFeed::new());
    assert!(!feed.may_be_read());
    let follower = feed.add_follower();
    assert!(feed.may_be_read() && !feed.has_readers());
    let reader = feed.add_reader();
    drop(follower);
    assert!(feed.may_be_read());
    drop(reader);
    assert!(!feed.may_be_read());
}

#[test]
fn readers_get_each_piece_once_and_late_readers_everything() {
    let feed = Arc::new(AnswerFeed::new());
    let writer = writer(&feed);
    let mut client = Client::new();
    for piece in ["It ", "is", " so."] {
        writer.text(piece);
        assert!(!client.read(&feed));
    }
    assert_eq!(client.text, "It is so.");
    feed.apply_event(9, &answered("It is so."));
    assert!(!client.read(&feed));
    let mut late = Client::new();
    late.read(&feed);
    assert_eq!((client.text.as_str(), late.text.as_str()), ("It is so.", "It is so."));
}

#[test]
fn journalled_answer_is_final() {
    let feed = Arc::new(AnswerFeed::new());
    let late = writer(&feed);
    late.text("Half an ");
    feed.apply_event(9, &answered("Another."));
    late.text("answer");
    late.restart();
    late.whole(&Reply { text: "Half an answer".to_owned(), ..Reply::default() });
    feed.apply_event(10, &Event::RunCompleted { status: RunStatus::Completed });
    writer(&feed).text("more");
    let mut client = Client::new();
    client.read(&feed);
    assert_eq!(client.text, "Another.");
}

#[test]
fn writer_of_an_earlier_question_is_ignored() {
    let feed = Arc::new(AnswerFeed::new());
    let early = writer(&feed);
    early.text("Early");
    feed.apply_event(8, &asked());
    let now = writer(&feed);
    early.text(" bird");
    now.text("Now");
    early.restart();
    let mut client = Client::new();
    client.read(&feed);
    assert_eq!(client.text, "Now");
}

#[test]
fn text_that_is_not_the_answer_is_retracted() {
    let error = Fault::new("x", "y");
    for event in [
        asked(),
        Event::ModelFailed {
            call: 1,
            error: error.clone(),
            usage: Usage::default(),
            millis: 1,
            attempts: Vec::new(),
        },
        Event::ReplyRejected { call: 1, problems: Vec::new() },
        Event::Continuation { round: 1, verdict: Verdict::default(), degraded: false },
        Event::RunFailed { error },
        Event::RunCancelled { by: "x".to_owned() },
    ] {
        let feed = Arc::new(AnswerFeed::new());
        writer(&feed).text("No");
        let mut client = Client::new();
        client.read(&feed);
        feed.apply_event(5, &event);
        assert!(client.read(&feed), "{event:?}");
        assert_eq!(client.text, "");
    }
}

#[test]
fn text_from_an_earlier_process_is_reset() {
    let feed = Arc::new(AnswerFeed::new());
    feed.apply_event(7, &asked());
    let writer = writer(&feed);
    writer.text("It is another answer.");
    for (seq, goes_on) in [(5, false), (6, false), (7, true)] {
        let mut cursor = feed.resume(seq, "It is".len());
        assert_eq!(feed.read(&mut cursor).reset, !goes_on, "behind {seq}");
    }
}

#[test]
fn oversized_text_arrives_with_the_answer() {
    let feed = Arc::new(AnswerFeed::new());
    let writer = writer(&feed);
    let much = "x".repeat(AnswerText::MAX_BYTES - 1);
    writer.text(&much);
    writer.text("yy");
    writer.text("z");
    let mut early = Client::new();
    early.read(&feed);
    assert_eq!(early.text.len(), much.len());
    let whole = format!("{much}yyz");
    feed.apply_event(5, &answered(&whole));
    let mut client = Client::new();
    client.read(&feed);
    assert!(client.text == whole);
}

#[derive(Debug, Clone)]
enum Deed {
    Write(&'static str),
    Restart,
    Journal,
    Ask,
    Read(usize),
    /// Disconnects and resumes with an event id, which may lag behind its last one.
    Return(usize, u64),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => prop::sample::select(vec!["a", "è", "🙂", "aa", "ab"]).prop_map(Deed::Write),
        1 => Just(Deed::Restart),
        2 => Just(Deed::Journal),
        1 => Just(Deed::Ask),
        3 => (0..3_usize).prop_map(Deed::Read),
        3 => (0..3_usize, 0..3_u64).prop_map(|(client, lag)| Deed::Return(client, lag)),
    ];
    prop::collection::vec(deed, 0..40)
}

proptest! {
    #[test]
    fn readers_that_go_and_come_back_end_with_the_answer(deeds in deeds(), replaced in any::<bool>()) {
        let feed = Arc::new(AnswerFeed::new());
        let mut now = writer(&feed);
        let mut clients = [Client::new(), Client::new(), Client::new()];
        // No reader has an event that was not applied to the feed.
        let mut seq = 1;
        feed.apply_event(seq, &Event::StepStarted { step: 1 });
        for deed in deeds {
            match deed {
                Deed::Write(piece) => now.text(piece),
                Deed::Restart => now.restart(),
                Deed::Journal => {
                    seq += 1;
                    feed.apply_event(seq, &Event::StepStarted { step: 1 });
                }
                Deed::Ask => {
                    seq += 1;
                    feed.apply_event(seq, &asked());
                    now = writer(&feed);
                }
                Deed::Read(client) => {
                    clients[client].read(&feed);
                    clients[client].seq = seq;
                }
                Deed::Return(client, lag) => {
                    let client = &mut clients[client];
                    // A reader may be behind the events, never ahead of them.
                    let id = client.seq.saturating_sub(lag);
                    client.cursor = feed.resume(id, client.text.len());
                }
            }
        }
        let mut all = Client::new();
        all.read(&feed);
        let so_far = all.text;
        let answer = if replaced { "aè".to_owned() } else { format!("{so_far}b") };
        feed.apply_event(seq + 1, &answered(&answer));
        for mut client in clients {
            client.read(&feed);
            prop_assert_eq!(&client.text, &answer);
        }
    }
}
