use std::cell::RefCell;
use std::collections::VecDeque;

use async_trait::async_trait;
use proscenium::Answer;
use proscenium::run::{Envelope, Event, RunId, RunState, RunStatus};
use tokio::sync::mpsc;

use super::super::assistant::{
    CommandExecutor, CommandTarget, CommandWithNote, FollowedTicket, PrintedDraft,
};
use super::super::follow::AGAIN;
use super::super::recorded;
use super::super::turns::LineInput;
use super::*;

/// Answers with what was written down; `None` refuses the message.
struct Scripted {
    script: RefCell<VecDeque<Option<RunStatus>>>,
    until_done: RefCell<Vec<(String, Option<String>)>>,
}

impl Scripted {
    fn new(script: &[Option<RunStatus>]) -> Self {
        Self { script: RefCell::new(script.iter().copied().collect()), until_done: RefCell::default() }
    }
}

/// A run that ends by itself, or (`None`) only when somebody wants it to.
struct Played {
    events: VecDeque<Envelope<Event>>,
    status: RunStatus,
    cancelled: mpsc::Sender<String>,
    ended: Option<mpsc::Receiver<String>>,
}

#[async_trait(?Send)]
impl Assistant for Scripted {
    async fn ask(
        &self,
        message: &str,
        session: Option<SessionId>,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        self.until_done.borrow_mut().push((message.to_owned(), session.map(|s| s.to_string())));
        match self.script.borrow_mut().pop_front().flatten() {
            Some(status) => {
                let (cancelled, ended) = mpsc::channel(4);
                let ended = (status == RunStatus::Cancelled).then_some(ended);
                Ok(Box::new(Played { events: recorded::needs_input().into(), status, cancelled, ended }))
            }
            None => {
                Err(Failure::new("session.full", "the conversation has 32 requests waiting")
                    .help("try later"))
            }
        }
    }

    async fn draft(&self, _: &str, _: &mut Signals, _: &mut dyn Write) -> Result<PrintedDraft, Failure> {
        Err(Failure::new("none", "no script"))
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

#[async_trait(?Send)]
impl CommandExecutor for Scripted {
    async fn state(&self, run: RunId) -> Result<RunState, Failure> {
        Ok(proscenium::fold(run, &recorded::needs_input()))
    }

    async fn command(
        &self,
        _: CommandTarget,
        _: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        Err(Failure::new("none", "no script"))
    }
}

#[async_trait(?Send)]
impl FollowedTicket for Played {
    fn session(&self) -> SessionId {
        recorded::session()
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        let event = self.events.pop_front();
        if let (None, Some(ended)) = (&event, &mut self.ended) {
            ended.recv().await;
        }
        event
    }

    async fn cancel(&self, by: &str) {
        let _ = self.cancelled.send(by.to_owned()).await;
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        Ok(recorded::answer(self.status, "From which day?"))
    }
}

struct ScriptedTurns(VecDeque<NextInput>, bool);

#[async_trait(?Send)]
impl Turns for ScriptedTurns {
    fn is_interactive(&self) -> bool {
        self.1
    }

    async fn next(&mut self) -> Result<NextInput, Failure> {
        Ok(self.0.pop_front().unwrap_or(NextInput::End))
    }

    async fn ask(&mut self, _: &str, _: &str) -> Result<Option<String>, Failure> {
        Ok(None)
    }
}

fn scripted_turns(turns: &[&str], interactive: bool) -> ScriptedTurns {
    let turn = |text: &&str| match *text {
        "/new" => NextInput::New,
        text => NextInput::Message(text.to_owned()),
    };
    ScriptedTurns(turns.iter().map(turn).collect(), interactive)
}

async fn hold(
    script: &[Option<RunStatus>],
    turns: &[&str],
    interactive: bool,
) -> (Exit, Scripted, String, String) {
    let assistant = Scripted::new(script);
    let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
    let mut turns = scripted_turns(turns, interactive);
    let (_sender, mut signals) = silence();
    let mut runner = ChatRunner {
        assistant: &assistant,
        signals: &mut signals,
        show: Show::JsonLine,
        out: &mut out,
        errors: &mut errors,
    };
    let exit = runner.conversation(&mut turns, None).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (exit, assistant, text(out.into_inner()), text(errors))
}

fn silence() -> (mpsc::Sender<&'static str>, Signals) {
    let (sender, signals) = mpsc::channel(4);
    (sender, Signals::of(signals))
}

/// One message with these signals sent before it begins: the outcome, standard output and errors.
async fn ask(
    status: RunStatus,
    show: Show,
    sent: &[&'static str],
) -> (Result<(Exit, SessionId), Failure>, String, String) {
    let assistant = Scripted::new(&[Some(status)]);
    let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
    let (sender, mut signals) = silence();
    for name in sent {
        sender.try_send(name).unwrap();
    }
    let mut runner =
        ChatRunner { assistant: &assistant, signals: &mut signals, show, out: &mut out, errors: &mut errors };
    let ended = runner.once("Three days off", None, &mut scripted_turns(&[], false)).await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended, text(out.into_inner()), text(errors))
}

#[tokio::test]
async fn the_first_signal_stops_the_run_and_the_second_leaves_at_once() {
    let (ended, out, errors) = ask(RunStatus::Cancelled, Show::Json, &["Ctrl-C"]).await;
    assert_eq!(ended.unwrap().0, Exit::Failed);
    assert!(serde_json::from_str::<Answer>(&out).is_ok(), "{out}");
    assert_eq!(errors, format!("{AGAIN}\n"));
    for hangs in [Hangs::Asking, Hangs::Running, Hangs::Stopping, Hangs::Answering] {
        let assistant = Stubborn(hangs);
        let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
        let (sender, mut signals) = silence();
        sender.try_send("SIGTERM").unwrap();
        sender.try_send("SIGTERM").unwrap();
        let mut runner = ChatRunner {
            assistant: &assistant,
            signals: &mut signals,
            show: Show::Plain,
            out: &mut out,
            errors: &mut errors,
        };
        let left = runner.once("Three days off", None, &mut scripted_turns(&[], false)).await.unwrap_err();
        assert_eq!((left.code.as_str(), errors), (LEFT, format!("{AGAIN}\n").into_bytes()), "{hangs:?}");
    }
}

#[tokio::test]
async fn stop_signal_before_there_is_a_run_stops_the_run() {
    let (mut errors, (sender, mut signals)) = (Vec::new(), silence());
    sender.try_send("Ctrl-C").unwrap();
    let mut stop_signal = None;
    let (accept, accepted) = tokio::sync::oneshot::channel();
    let slowly = async {
        let status: RunStatus = accepted.await.unwrap();
        Scripted::new(&[Some(status)]).ask("Three days off", None).await
    };
    let acknowledged = async {
        // The signal is heard by now: both are polled in turn.
        tokio::task::yield_now().await;
        accept.send(RunStatus::Cancelled).unwrap();
    };
    let (ticket, ()) =
        tokio::join!(until_done(slowly, &mut signals, &mut stop_signal, &mut errors), acknowledged);
    assert_eq!(stop_signal, Some("Ctrl-C"));
    let ended = follow(ticket.unwrap(), &mut signals, stop_signal, Show::Quiet, &mut errors).await;
    assert_eq!(ended.unwrap().answer.status, RunStatus::Cancelled);
    assert_eq!(String::from_utf8(errors).unwrap(), format!("{AGAIN}\n"));
}

/// Never ends something.
struct Stubborn(Hangs);

/// What is never ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hangs {
    Asking,
    Running,
    Stopping,
    Answering,
}

impl Stubborn {
    async fn hangs(&self, what: &[Hangs]) {
        if what.contains(&self.0) {
            std::future::pending().await
        }
    }
}

#[async_trait(?Send)]
impl Assistant for Stubborn {
    async fn ask(&self, _: &str, _: Option<SessionId>) -> Result<Box<dyn FollowedTicket>, Failure> {
        self.hangs(&[Hangs::Asking]).await;
        Ok(Box::new(Stubborn(self.0)))
    }

    async fn draft(&self, _: &str, _: &mut Signals, _: &mut dyn Write) -> Result<PrintedDraft, Failure> {
        std::future::pending().await
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

#[async_trait(?Send)]
impl CommandExecutor for Stubborn {
    async fn state(&self, _: RunId) -> Result<RunState, Failure> {
        std::future::pending().await
    }

    async fn command(
        &self,
        _: CommandTarget,
        _: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        Ok(Box::new(Stubborn(self.0)))
    }
}

#[async_trait(?Send)]
impl FollowedTicket for Stubborn {
    fn session(&self) -> SessionId {
        recorded::session()
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        self.hangs(&[Hangs::Running, Hangs::Stopping]).await;
        None
    }

    async fn cancel(&self, _: &str) {
        self.hangs(&[Hangs::Stopping]).await;
    }

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_signal_between_the_lines_of_a_pipe_ends_it() {
    let assistant = Scripted::new(&[]);
    let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
    let (sender, mut signals) = silence();
    sender.try_send("SIGTERM").unwrap();
    let mut runner = ChatRunner {
        assistant: &assistant,
        signals: &mut signals,
        show: Show::Plain,
        out: &mut out,
        errors: &mut errors,
    };
    let mut turns = LineInput::new(NeverRead);
    assert_eq!(runner.conversation(&mut turns, None).await.unwrap_err().code, LEFT);
}

/// An input on which nothing ever comes.
struct NeverRead;

impl std::io::Read for NeverRead {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        loop {
            std::thread::park();
        }
    }
}

#[tokio::test]
async fn json_is_the_answer_document_and_nothing_else() {
    let (ended, out, _) = ask(RunStatus::NeedsInput, Show::Json, &[]).await;
    assert_eq!(ended.unwrap(), (Exit::NeedsInput, recorded::session()));
    let read: Answer = serde_json::from_str(&out).unwrap();
    assert_eq!(read, recorded::answer(RunStatus::NeedsInput, "From which day?"));
}

#[tokio::test]
async fn standard_output_is_the_answer_alone() {
    let (_, out, errors) = ask(RunStatus::NeedsInput, Show::Quiet, &[]).await;
    let how = "\nTo answer:\n  proscenium chat --session s-1 \"your answer\"\n";
    assert_eq!((out.as_str(), errors.as_str()), ("From which day?\n", how));
    let (_, out, errors) = ask(RunStatus::NeedsInput, Show::Plain, &[]).await;
    assert_eq!(out, "From which day?\n");
    insta::assert_snapshot!(errors, @r#"
    plan: 1 step: Vacation
      1. VacationManagement: Ask for three days off [MakeRequest]
    step 1 VacationManagement: started
    step 1 VacationManagement: needs input
    check: only the user can say what is missing


    5 model calls, 2100 tokens in (400 cached), 180 out, $0.0012, 1.23 s (overhead 3.4 ms)

    To answer:
      proscenium chat --session s-1 "your answer"
    "#);
}

#[tokio::test]
async fn the_turns_of_a_conversation_share_a_session_until_a_new_one_is_wanted() {
    let completed = [Some(RunStatus::Completed); 3];
    let (exit, assistant, out, errors) = hold(&completed, &["a", "b", "/new", "c"], true).await;
    assert_eq!((exit, errors.as_str()), (Exit::Completed, ""));
    assert_eq!(out.lines().filter(|line| line.starts_with('{')).count(), 3);
    let sessions: Vec<Option<String>> =
        assistant.until_done.into_inner().into_iter().map(|(_, s)| s).collect();
    assert_eq!(sessions, [None, Some("s-1".to_owned()), None]);
}

#[tokio::test]
async fn a_pipe_ends_with_the_status_of_its_last_turn_unless_one_failed() {
    use RunStatus::{Completed, Failed, NeedsInput};
    let (exit, ..) = hold(&[Some(NeedsInput), Some(Completed)], &["a", "b"], false).await;
    assert_eq!(exit, Exit::Completed);
    let (exit, ..) = hold(&[Some(Completed), Some(NeedsInput)], &["a", "b"], false).await;
    assert_eq!(exit, Exit::NeedsInput);
    let (exit, ..) = hold(&[Some(Failed), Some(Completed)], &["a", "b"], false).await;
    assert_eq!(exit, Exit::Failed);
}

#[tokio::test]
async fn refused_message_is_reported_and_conversation_continues() {
    let (exit, _, out, errors) = hold(&[None, Some(RunStatus::Completed)], &["a", "b"], false).await;
    assert_eq!(exit, Exit::Failed);
    assert_eq!(out.lines().count(), 1);
    insta::assert_snapshot!(errors, @r"
    error[session.full]: the conversation has 32 requests waiting
      help: try later
    ");
}
