//! Standard output and standard error, and what is written there when a run has ended.

use std::io::{self, Write};

use proscenium::run::RunStatus;
use proscenium::{Answer, AnswerUsage};
use serde::Serialize;

use super::text::{clean, count, dollars, duration};
use super::wrap;

/// A writer whose reader may close it (`… | head`): everything after that is dropped, so that a run that has begun
/// ends normally.
#[derive(Debug)]
pub struct Output<W> {
    inner: W,
    gone: bool,
    /// The terminal's width, if lines are broken between words.
    width: Option<fn() -> Option<usize>>,
    /// The line that is not complete.
    line: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Over `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, gone: false, width: None, line: Vec::new() }
    }

    /// Breaks lines between words where `width` tells a terminal's width.
    #[must_use]
    pub fn wrapped(self, width: fn() -> Option<usize>) -> Self {
        Self { width: Some(width), ..self }
    }

    /// Returns whether the reader has closed the output.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// The inner writer.
    #[cfg(test)]
    pub fn into_inner(self) -> W {
        self.inner
    }

    fn quiet<T>(&mut self, result: io::Result<T>, done: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.gone = true;
                Ok(done)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gone {
            return Ok(bytes.len());
        }
        let Some(width) = self.width.and_then(|width| width()) else {
            let result = self.inner.write(bytes);
            return self.quiet(result, bytes.len());
        };
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]);
            let result = writeln!(self.inner, "{}", wrap::line(&text, width));
            self.quiet(result, ())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gone {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        let result = self.inner.write_all(&line).and_then(|()| self.inner.flush());
        self.quiet(result, ())
    }
}

/// Writes the answer's text to `out` and nothing else; a failure and, with `has_progress`, the costs to `errors`.
pub fn answer(
    out: &mut impl Write,
    errors: &mut impl Write,
    answer: &Answer,
    has_progress: bool,
) -> io::Result<()> {
    let words = clean(&answer.answer);
    // An answer says what went wrong in its own words.
    if let Some(error) = answer.error.as_ref().filter(|_| words.trim().is_empty()) {
        writeln!(errors, "\nThe run failed [{}]: {}", error.code, clean(&error.message))?;
    }
    // Open questions are shown separately, with the commands that decide them.
    if !words.trim().is_empty() && answer.status != RunStatus::Waiting {
        if has_progress {
            writeln!(errors)?;
        }
        // On a terminal, both streams are one text.
        errors.flush()?;
        writeln!(out, "{}", words.trim())?;
        out.flush()?;
    }
    if has_progress {
        let (total, overhead) = (answer.timings.total_ms, answer.timings.overhead_ms);
        writeln!(errors, "\n{}", figures(&answer.usage, total, overhead))?;
    }
    errors.flush()
}

/// `3 model calls, 1200 tokens in (200 cached), 90 out, $0.0006, 1.23 s (overhead 2.5 ms)`
fn figures(usage: &AnswerUsage, total_ms: f64, overhead_ms: f64) -> String {
    let session = if usage.session_cost_usd > usage.cost_usd {
        format!(" (conversation {})", dollars(usage.session_cost_usd))
    } else {
        String::new()
    };
    format!(
        "{}, {}{session}, {} (overhead {})",
        tokens(usage.llm_calls, usage.input_tokens, usage.cached_input_tokens, usage.output_tokens),
        dollars(usage.cost_usd),
        duration(total_ms),
        duration(overhead_ms),
    )
}

/// `3 model calls, 1200 tokens in (200 cached), 90 out`
pub fn tokens(calls: u32, input: u64, cached: u64, output: u64) -> String {
    let calls = count(calls as usize, "model call");
    format!("{calls}, {input} tokens in ({cached} cached), {output} out")
}

/// A document as JSON: over several lines, or on one.
pub fn document(out: &mut impl Write, document: &impl Serialize, one_line: bool) -> io::Result<()> {
    if one_line {
        serde_json::to_writer(&mut *out, document)?;
    } else {
        serde_json::to_writer_pretty(&mut *out, document)?;
    }
    writeln!(out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe whose reader has gone.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn closed_output_does_not_end_the_command() {
        let mut out = Output::new(Closed);
        writeln!(out, "first").unwrap();
        assert!(out.is_gone());
        writeln!(out, "second").unwrap();
        out.flush().unwrap();
    }

    #[test]
    fn lines_on_a_terminal_break_between_words() {
        let mut out = Output::new(Vec::new()).wrapped(|| Some(11));
        write!(out, "one two").unwrap();
        writeln!(out, " three four").unwrap();
        write!(out, "> and more than fits").unwrap();
        out.flush().unwrap();
        assert_eq!(String::from_utf8(out.into_inner()).unwrap(), "one two\nthree four\n> and more than fits");
        let mut pipe = Output::new(Vec::new()).wrapped(|| None);
        writeln!(pipe, "one two three four").unwrap();
        assert_eq!(pipe.into_inner(), b"one two three four\n");
    }

    #[test]
    fn the_conversation_s_cost_is_told_once_it_is_more_than_the_run_s() {
        let usage = AnswerUsage {
            llm_calls: 3,
            input_tokens: 1200,
            cached_input_tokens: 200,
            output_tokens: 90,
            cost_usd: 0.0006,
            session_cost_usd: 0.0006,
        };
        insta::assert_snapshot!(figures(&usage, 1234.0, 2.5), @"3 model calls, 1200 tokens in (200 cached), 90 out, $0.0006, 1.23 s (overhead 2.5 ms)");
        let later = AnswerUsage { session_cost_usd: 0.0015, ..usage };
        insta::assert_snapshot!(figures(&later, 61_000.0, 12.0), @"3 model calls, 1200 tokens in (200 cached), 90 out, $0.0006 (conversation $0.0015), 1 min 1 s (overhead 12 ms)");
    }
}
