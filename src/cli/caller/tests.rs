use std::collections::VecDeque;
use std::sync::Arc;

use proscenium::config::{Config, ConfigFlags};
use proscenium::http;
use proscenium::run::RequestOptions;
use tokio::sync::mpsc;

use super::super::chat::ChatRunner;
use super::super::engine;
use super::super::failure::Exit;
use super::super::follow::Show;
use super::super::output::Output;
use super::super::remote;
use super::super::signals::Signals;
use super::super::turns::{NextInput, Turns};
use super::*;

struct Person {
    turns: VecDeque<&'static str>,
    says: VecDeque<&'static str>,
    asked: Vec<String>,
}

#[async_trait(?Send)]
impl Turns for Person {
    fn is_interactive(&self) -> bool {
        true
    }

    async fn next(&mut self) -> Result<NextInput, Failure> {
        Ok(self.turns.pop_front().map_or(NextInput::End, |message| NextInput::Message(message.to_owned())))
    }

    async fn ask(&mut self, question: &str, _: &str) -> Result<Option<String>, Failure> {
        self.asked.push(question.to_owned());
        Ok(self.says.pop_front().map(str::to_owned))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompt_asks_for_open_decisions_within_one_conversation() {
    let dir = tempfile::tempdir().unwrap();
    let env = [
        ("PROSCENIUM__EXECUTION__FIXED_NOW", "2026-05-04T09:00:00+02:00"),
        ("PROSCENIUM__SCENES__SETTINGS__Weather__SOURCE", "bundled"),
        ("PROSCENIUM__SERVER__ADDR", "127.0.0.1:0"),
    ];
    let env = env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let flags = ConfigFlags { data_dir: Some(dir.path().to_owned()), ..ConfigFlags::default() };
    let loaded = Config::load(None, env, flags).unwrap();
    let owner =
        Arc::new(engine::engine(loaded.clone()).await.unwrap_or_else(|failure| panic!("{failure:?}")));
    let server = http::Server::start(owner.clone(), &loaded.config).await.unwrap();
    let asked = address::ServerDefaults {
        tenant: owner.default_principal().0,
        values: settings::value_hashes(&loaded),
    };
    let left = address::leave(dir.path(), server.addr(), None, None, &asked).unwrap();

    let options = RequestOptions { require_approval: true, ..RequestOptions::default() };
    let asking = Asking { options, ..Asking::default() };
    let Err(owned) = engine::start(loaded.clone(), asking.clone()).await else { panic!("it has two owners") };
    assert!(remote::is_owned(&owned), "{owned:?}");
    let caller =
        ServerClient::new(&loaded, owned, asking, false).await.unwrap_or_else(|why| panic!("{why:?}"));
    let mut person = Person {
        turns: ["Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno", "Che tempo fa a Milano?"].into(),
        says: ["y", "n"].into(),
        asked: Vec::new(),
    };
    let (mut out, mut errors) = (Output::new(Vec::new()), Vec::new());
    let (_sender, names) = mpsc::channel(4);
    let mut runner = ChatRunner {
        assistant: &caller,
        signals: &mut Signals::of(names),
        show: Show::Plain,
        out: &mut out,
        errors: &mut errors,
    };
    assert_eq!(runner.conversation(&mut person, None).await, Ok(Exit::Completed));
    let (out, errors) = (String::from_utf8(out.into_inner()).unwrap(), String::from_utf8(errors).unwrap());
    assert!(out.starts_with("Proscenium.") && !errors.contains("error["), "{out}\n{errors}");
    assert_eq!(person.asked.len(), 2, "{out}");
    for what in ["plan 1: approved by ", "MakeRequest {\"from\":\"2026-06-15\"", "plan 1: not approved by "] {
        assert!(errors.contains(what), "no {what:?} in {errors}");
    }
    let runs = caller.server.stored().runs(10).await.unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].session, runs[1].session);

    drop(left);
    server.stop().await;
    owner.shut_down().await.unwrap();
}
