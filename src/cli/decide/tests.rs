use std::cell::RefCell;
use std::collections::VecDeque;

use async_trait::async_trait;
use proscenium::run::{Decision, Envelope, Event, Fault, RunId, SessionId};
use serde_json::json;
use tokio::sync::mpsc;

use super::super::assistant::{Assistant, CommandExecutor, CommandWithNote, FollowedTicket, PrintedDraft};
use super::super::failure::Exit;
use super::super::follow::Show;
use super::super::output::Output;
use super::super::recorded;
use super::super::signals::Signals;
use super::super::turns::NextInput;
use super::*;
use proscenium::Answer;

/// A run that waits, and what becomes of it with each command.
struct Waits {
    journal: RefCell<Vec<Envelope<Event>>>,
    then: RefCell<VecDeque<Result<Vec<Event>, Failure>>>,
    commands: RefCell<Vec<CommandAction>>,
}

impl Waits {
    fn new(journal: Vec<Envelope<Event>>, then: Vec<Result<Vec<Event>, Failure>>) -> Self {
        Self { journal: RefCell::new(journal), then: RefCell::new(then.into()), commands: RefCell::default() }
    }

    fn follow(&self, from: usize) -> Box<dyn FollowedTicket> {
        let journal = self.journal.borrow();
        let (before, news) = journal.split_at(from);
        let status = proscenium::fold(recorded::run_id(), &journal).status;
        Box::new(Played { before: before.to_vec(), news: news.to_vec().into(), status })
    }
}

struct Played {
    before: Vec<Envelope<Event>>,
    news: VecDeque<Envelope<Event>>,
    status: RunStatus,
}

#[async_trait(?Send)]
impl Assistant for Waits {
    async fn ask(&self, _: &str, _: Option<SessionId>) -> Result<Box<dyn FollowedTicket>, Failure> {
        Ok(self.follow(0))
    }

    async fn draft(&self, _: &str, _: &mut Signals, _: &mut dyn Write) -> Result<PrintedDraft, Failure> {
        Err(Failure::new("none", "no script"))
    }

    async fn stop(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

#[async_trait(?Send)]
impl CommandExecutor for Waits {
    async fn state(&self, run: RunId) -> Result<RunState, Failure> {
        Ok(proscenium::fold(run, &self.journal.borrow()))
    }

    async fn command(
        &self,
        _: CommandTarget,
        command: CommandWithNote,
    ) -> Result<Box<dyn FollowedTicket>, Failure> {
        self.commands.borrow_mut().push(command.action);
        let events = self.then.borrow_mut().pop_front().unwrap()?;
        let from = self.journal.borrow().len();
        let all = self.journal.take().into_iter().map(|envelope| envelope.body).chain(events).collect();
        self.journal.replace(recorded::journal(all));
        Ok(self.follow(from))
    }
}

#[async_trait(?Send)]
impl FollowedTicket for Played {
    fn session(&self) -> SessionId {
        recorded::session()
    }

    fn before(&mut self) -> Vec<Envelope<Event>> {
        std::mem::take(&mut self.before)
    }

    async fn next(&mut self) -> Option<Envelope<Event>> {
        self.news.pop_front()
    }

    async fn cancel(&self, _: &str) {}

    async fn answer(self: Box<Self>) -> Result<Answer, Failure> {
        Ok(recorded::answer(self.status, "Request 7 was made."))
    }
}

/// A person, and what was asked: each question with what stood in the line.
struct Person {
    says: VecDeque<&'static str>,
    asked: Vec<(String, String)>,
    sits: bool,
}

#[async_trait(?Send)]
impl Turns for Person {
    fn is_interactive(&self) -> bool {
        self.sits
    }

    async fn next(&mut self) -> Result<NextInput, Failure> {
        Ok(NextInput::End)
    }

    async fn ask(&mut self, question: &str, initial: &str) -> Result<Option<String>, Failure> {
        self.asked.push((question.to_owned(), initial.to_owned()));
        Ok(self.says.pop_front().map(str::to_owned))
    }
}

/// What a chat came to, what it asked and said.
struct Chat {
    exit: Exit,
    asked: Vec<(String, String)>,
    out: String,
    errors: String,
}

async fn chat(waits: &Waits, says: &[&'static str], sits: bool, show: Show) -> Chat {
    let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
    let (_sender, names) = mpsc::channel(4);
    let mut signals = Signals::of(names);
    let mut person = Person { says: says.iter().copied().collect(), asked: Vec::new(), sits };
    let mut runner =
        ChatRunner { assistant: waits, signals: &mut signals, show, out: &mut out, errors: &mut errors };
    let (exit, _) = runner.once("Ask for three days off", None, &mut person).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Chat { exit, asked: person.asked, out: text(out.into_inner()), errors: text(errors) }
}

fn decision(hash: &str, choice: ApproverChoice) -> CommandAction {
    CommandAction::Decide { approval: 1, choice, hash: Some(hash.to_owned()) }
}

const PLAN: ApprovalSubject = ApprovalSubject::Plan { version: 1 };
const CALL: ApprovalSubject = ApprovalSubject::Call { call: 1 };

fn done() -> Vec<Event> {
    let yes = Decision::Yes { hold: false };
    std::iter::once(recorded::decided(1, CALL, yes, None)).chain(recorded::carried_out(1, 1)).collect()
}

#[tokio::test]
async fn a_yes_at_the_prompt_decides_what_was_shown_and_shows_what_happens() {
    let waits = Waits::new(recorded::call_waits(), vec![Ok(done())]);
    let chat = chat(&waits, &["what?", "y"], true, Show::Plain).await;
    assert_eq!(chat.exit, Exit::Completed);
    assert_eq!(*waits.commands.borrow(), [decision("hash-2", ApproverChoice::Yes)]);
    assert_eq!(chat.asked, [(QUESTION.to_owned(), String::new()), (QUESTION.to_owned(), String::new())]);
    let progress = [
        "step 1 VacationManagement: MakeRequest {\"from\":\"2026-06-15\",\"to\":\"2026-06-17\"}: waits for approval",
        ": approved by lucia",
        // What happens then is told with the names that were told before.
        "step 1 VacationManagement: MakeRequest {\"from\":\"2026-06-15\",\"to\":\"2026-06-17\"}: ok",
    ];
    let shown = [
        "Waits for a person's yes: step 1 VacationManagement: MakeRequest with exactly these arguments",
        "    \"to\": \"2026-06-17\"",
        "why: MakeRequest of VacationManagement writes",
        "Please type y, n, e or l.",
        "Request 7 was made.",
    ];
    for (text, order) in [(&chat.errors, &progress[..]), (&chat.out, &shown[..])] {
        let mut rest = text.as_str();
        for told in order {
            let Some((_, behind)) = rest.split_once(told) else { panic!("no {told:?} in {text}") };
            rest = behind;
        }
        assert!(!rest.contains("To decide:"), "{rest}");
    }
}

#[tokio::test]
async fn no_is_accepted() {
    let no =
        vec![recorded::decided(1, PLAN, Decision::No, None), Event::RunCancelled { by: "lucia".to_owned() }];
    let waits = Waits::new(recorded::plan_waits(), vec![Ok(no)]);
    let chat = chat(&waits, &["N"], true, Show::Plain).await;
    assert_eq!(chat.exit, Exit::Failed);
    assert_eq!(*waits.commands.borrow(), [decision("hash-1", ApproverChoice::No)]);
    assert!(chat.errors.contains("run: cancelled by lucia"), "{}", chat.errors);
}

#[tokio::test]
async fn arguments_are_changed_in_a_line_until_they_fit() {
    let refusal = Failure::new("approval.arguments", "to: it is no date");
    let waits = Waits::new(recorded::call_waits(), vec![Err(refusal), Ok(done())]);
    let (bad, worse) = ("{\"from\":", "{\"from\":\"2026-06-15\",\"to\":\"soon\"}");
    let good = "{\"from\":\"2026-06-15\",\"to\":\"2026-06-16\"}";
    let chat = chat(&waits, &["e", bad, "3", worse, good], true, Show::Plain).await;
    assert_eq!(chat.exit, Exit::Completed);
    let asked: Vec<(&str, &str)> = chat.asked.iter().map(|(q, i)| (q.as_str(), i.as_str())).collect();
    let now = "{\"from\":\"2026-06-15\",\"to\":\"2026-06-17\"}";
    let expected = [(QUESTION, ""), (ARGUMENTS, now), (ARGUMENTS, bad), (ARGUMENTS, "3"), (ARGUMENTS, worse)];
    assert_eq!(asked, expected);
    let edited =
        |to: &str| decision("hash-2", ApproverChoice::Edited(json!({"from": "2026-06-15", "to": to})));
    assert_eq!(*waits.commands.borrow(), [edited("soon"), edited("2026-06-16")]);
    assert!(
        chat.out.contains("That is not valid JSON: ") && chat.out.contains("Arguments are a JSON object")
    );
    assert_eq!(chat.errors.matches("error[approval.arguments]: to: it is no date\n").count(), 1);
}

#[tokio::test]
async fn a_plan_is_changed_in_words_and_asked_again() {
    let asked = Event::ModificationAsked { version: 2, by: "lucia".to_owned(), words: "two days".to_owned() };
    let error = Fault::new("llm.unusable", "no model knew how");
    let failed = Event::PlanningFailed { version: 2, error };
    let again = Event::RunWaiting {};
    let waits = Waits::new(recorded::plan_waits(), vec![Ok(vec![asked, failed, again])]);
    let chat = chat(&waits, &["e", "two days", "l"], true, Show::Plain).await;
    assert_eq!(chat.exit, Exit::NeedsInput);
    let words = "two days".to_owned();
    assert_eq!(*waits.commands.borrow(), [CommandAction::Modify { words, version: Some(1) }]);
    assert!(chat.out.contains("this change was not understood; the plan is as it was\n"), "{}", chat.out);
    assert!(!chat.errors.contains("no model knew how") && !chat.out.contains("no model knew how"));
}

#[tokio::test]
async fn postponed_question_is_shown_with_its_commands() {
    let waits = Waits::new(recorded::plan_waits(), Vec::new());
    let chat = chat(&waits, &[], true, Show::Plain).await;
    assert_eq!((chat.exit, waits.commands.borrow().len()), (Exit::NeedsInput, 0));
    let (_, last_paragraph) = chat.errors.rsplit_once("\n\n").unwrap();
    insta::assert_snapshot!(last_paragraph, @r#"
    Waits for a person's yes: plan 1, executed as shown
    why: step 1: MakeRequest of VacationManagement writes
    To decide:
      proscenium plans approve 01976c8e-0000-7000-8000-000000000002 --version 1 --hash hash-1
      proscenium plans modify 01976c8e-0000-7000-8000-000000000002 --version 1 "what is to change"
      proscenium plans cancel 01976c8e-0000-7000-8000-000000000002
    "#);
}

#[tokio::test]
async fn nothing_is_asked_without_a_terminal() {
    for show in [Show::Plain, Show::Json] {
        let waits = Waits::new(recorded::call_waits(), Vec::new());
        let chat = chat(&waits, &["y"], show == Show::Json, show).await;
        assert_eq!((chat.exit, chat.asked.len()), (Exit::NeedsInput, 0));
        let told = format!("proscenium approvals decide {}.1 yes\n", recorded::run_id());
        assert_eq!(chat.errors.contains(&told), show == Show::Plain, "{}", chat.errors);
    }
}
