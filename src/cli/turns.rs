//! Sources of a conversation's turns: a prompt on a terminal, or the lines of a pipe.

use std::io::{self, BufRead, BufReader, Read, Stdin};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustyline::DefaultEditor;
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use tokio::sync::oneshot;

use super::failure::Failure;
use super::text::clean;

/// Longest line of a pipe, in bytes.
const MAX_LINE_BYTES: u64 = 256 * 1024;
/// Maximum number of lines in the prompt's history.
const MAX_HISTORY: usize = 1_000;

/// The next input of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextInput {
    /// A request.
    Message(String),
    /// `/new`: a new conversation.
    New,
    /// `/help`
    Help,
    /// An unknown command.
    Unknown(String),
    /// The end of the input.
    End,
}

/// A source of turns.
#[async_trait(?Send)]
pub trait Turns {
    /// Whether the input is interactive.
    fn is_interactive(&self) -> bool;
    /// The next turn.
    async fn next(&mut self) -> Result<NextInput, Failure>;
    /// Asks the user; `initial` is the editable initial content of the line. `None` if there is no reply.
    async fn ask(&mut self, question: &str, initial: &str) -> Result<Option<String>, Failure>;
}

/// Each line that is not empty is a request; commands are for people.
#[derive(Debug)]
pub struct LineInput<R> {
    // Taken while a thread waits for a line.
    reader: Option<NumberedLines<R>>,
}

#[derive(Debug)]
struct NumberedLines<R> {
    reader: BufReader<R>,
    /// How many lines were read.
    count: u64,
}

impl LineInput<Stdin> {
    /// The lines of standard input.
    pub fn of_stdin() -> Self {
        Self::new(io::stdin())
    }
}

impl<R: Read> LineInput<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader: Some(NumberedLines { reader: BufReader::new(reader), count: 0 }) }
    }
}

#[async_trait(?Send)]
impl<R: Read + Send + 'static> Turns for LineInput<R> {
    fn is_interactive(&self) -> bool {
        false
    }

    async fn next(&mut self) -> Result<NextInput, Failure> {
        let Some(mut reader) = self.reader.take() else { return Ok(NextInput::End) };
        let (reader, line) = aside(move || {
            let line = reader.next_line();
            (reader, line)
        })
        .await?;
        self.reader = Some(reader);
        Ok(line?.map_or(NextInput::End, NextInput::Message))
    }

    async fn ask(&mut self, _: &str, _: &str) -> Result<Option<String>, Failure> {
        Ok(None)
    }
}

/// Runs `work` on a separate thread, because reading a line blocks and must not delay the end of the process.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (sender, result) = oneshot::channel();
    let cannot = |why: String| Failure::new("input.read", format!("the input cannot be read: {why}"));
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || {
            // The caller may have been dropped.
            let _ = sender.send(work());
        })
        .map_err(|error| cannot(error.to_string()))?;
    result.await.map_err(|_| cannot("its thread stopped".to_owned()))
}

impl<R: Read> NumberedLines<R> {
    fn next_line(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let mut line = String::new();
            self.count += 1;
            let count = self.count;
            let read = (&mut self.reader).take(MAX_LINE_BYTES + 1).read_line(&mut line).map_err(|error| {
                Failure::usage("input.read", format!("line {count} of the input cannot be read: {error}"))
            })?;
            if read == 0 {
                return Ok(None);
            }
            if line.len() as u64 > MAX_LINE_BYTES {
                let message = format!("line {count} of the input has more than {MAX_LINE_BYTES} bytes");
                return Err(Failure::usage("input.too_long", message).help("split it into several requests"));
            }
            if !line.trim().is_empty() {
                return Ok(Some(line.trim().to_owned()));
            }
        }
    }
}

/// An interactive prompt with a history.
pub struct InteractivePrompt {
    // Taken while a thread waits for a line.
    editor: Option<DefaultEditor>,
    history: PathBuf,
}

impl InteractivePrompt {
    /// A prompt whose history is in `data_dir`.
    pub fn new(data_dir: &Path) -> Result<Self, Failure> {
        let settings = rustyline::Config::builder()
            .max_history_size(MAX_HISTORY)
            .map_err(unusable)?
            .auto_add_history(true)
            .build();
        let mut editor = DefaultEditor::with_config(settings).map_err(unusable)?;
        let history = data_dir.join("chat_history");
        // A first start has no history, and the prompt works without one.
        if let Err(error) = editor.load_history(&history) {
            tracing::debug!(%error, path = %history.display(), "no history of the prompt");
        }
        Ok(Self { editor: Some(editor), history })
    }
}

fn unusable(error: ReadlineError) -> Failure {
    Failure::new("input.terminal", format!("the terminal cannot be used for a prompt: {error}"))
        .help("give the message on the command line: proscenium chat \"…\"")
}

#[async_trait(?Send)]
impl Turns for InteractivePrompt {
    fn is_interactive(&self) -> bool {
        true
    }

    async fn next(&mut self) -> Result<NextInput, Failure> {
        loop {
            let Some(mut editor) = self.editor.take() else { return Ok(NextInput::End) };
            let (editor, read) = aside(move || {
                let read = editor.readline("> ");
                (editor, read)
            })
            .await?;
            let editor = self.editor.insert(editor);
            match read {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => {
                    if let Err(error) = editor.save_history(&self.history) {
                        tracing::debug!(%error, path = %self.history.display(), "the history was not saved");
                    }
                    return Ok(turn(&line));
                }
                // Ctrl-C drops the line; Ctrl-D ends.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(NextInput::End),
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    async fn ask(&mut self, question: &str, initial: &str) -> Result<Option<String>, Failure> {
        let Some(mut editor) = self.editor.take() else { return Ok(None) };
        let (question, initial) = (question.to_owned(), initial.to_owned());
        let (mut editor, read) = aside(move || {
            // The answer to a question is not kept in the history of requests.
            editor.set_auto_add_history(false);
            let read = editor.readline_with_initial(&question, (&initial, ""));
            (editor, read)
        })
        .await?;
        editor.set_auto_add_history(true);
        self.editor = Some(editor);
        match read {
            Ok(line) => Ok(Some(line)),
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(None),
            Err(error) => Err(unusable(error)),
        }
    }
}

/// The meaning of a line of the prompt.
fn turn(line: &str) -> NextInput {
    match line.trim() {
        "/new" => NextInput::New,
        "/help" | "/?" => NextInput::Help,
        "/quit" | "/exit" => NextInput::End,
        command if command.starts_with('/') && !command.contains(' ') => NextInput::Unknown(clean(command)),
        message => NextInput::Message(message.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_line_of_a_pipe_is_a_turn_and_empty_ones_are_none() {
        let mut lines = LineInput::new(&b"Che tempo fa?\n\n  \n/new\nE a Roma?"[..]);
        let mut turns = Vec::new();
        loop {
            match lines.next().await.unwrap() {
                NextInput::End => break,
                turn => turns.push(turn),
            }
        }
        let lines = ["Che tempo fa?", "/new", "E a Roma?"];
        assert_eq!(turns, lines.map(|line| NextInput::Message(line.to_owned())));
    }

    #[tokio::test]
    async fn line_that_is_no_text_is_refused_by_its_number() {
        let mut lines = LineInput::new(&b"Che tempo fa?\n\nE a Citt\xe0?\n"[..]);
        assert_eq!(lines.next().await.unwrap(), NextInput::Message("Che tempo fa?".to_owned()));
        let failure = lines.next().await.unwrap_err();
        assert_eq!(failure.code, "input.read");
        assert!(failure.message.starts_with("line 3 of the input cannot be read: "), "{}", failure.message);
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused() {
        let mut lines = LineInput::new(io::repeat(b'a'));
        let failure = lines.next().await.unwrap_err();
        assert_eq!(failure.code, "input.too_long");
    }

    #[test]
    fn a_slash_begins_a_command_of_the_prompt() {
        assert_eq!(turn(" /new "), NextInput::New);
        assert_eq!(turn("/quit"), NextInput::End);
        assert_eq!(turn("/nwe"), NextInput::Unknown("/nwe".to_owned()));
        assert_eq!(turn("/2 of the days"), NextInput::Message("/2 of the days".to_owned()));
    }
}
