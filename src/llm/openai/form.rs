//! The form in which a reply is requested, as a stream or not, and what is known of a server's support for streams.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::super::Request;
use super::super::error::ErrorKind;
use super::super::options::StreamMode;

/// How a reply is requested, from the preferred form to the one that every server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// As a stream that reports its tokens at the end.
    Streamed,
    /// As a stream without the option to report tokens (`stream_options`).
    Bare,
    /// Not streamed.
    Whole,
}

impl Form {
    pub(super) fn is_streamed(self) -> bool {
        self != Form::Whole
    }

    fn of(number: u8) -> Self {
        match number {
            0 => Form::Streamed,
            1 => Form::Bare,
            _ => Form::Whole,
        }
    }
}

/// How many questions are not streamed after a first empty stream; each further one doubles it.
const FIRST_PAUSE: u32 = 8;

/// Maximum number of questions that are not streamed before a stream is retried.
const MAX_PAUSE: u32 = 1024;

/// Answers that nobody reads as they are written are not streamed if the last one took at most this part of the time
/// limit of a whole reply.
const SOON: u32 = 4;

/// The state of one model's streams, separately for questions with and without functions: some servers
/// stream only one of them. It is kept until the process ends or the configuration is reloaded.
#[derive(Debug, Default)]
pub(super) struct Streams {
    kinds: [SupportedFields; 2],
    /// Whether it was logged that its tokens are unknown.
    unmetered: AtomicBool,
}

#[derive(Debug, Default)]
struct SupportedFields {
    /// The most preferred form that was not refused.
    form: AtomicU8,
    /// Whether a stream has succeeded.
    works: AtomicBool,
    /// Questions that are not streamed before a stream is retried.
    pause: AtomicU32,
    /// Empty streams since the last successful one.
    empty: AtomicU32,
    /// Whether the last answer was complete in a small part of the time limit of a whole reply.
    is_soon_complete: AtomicBool,
}

impl SupportedFields {
    /// Whether this question is one of those that are not streamed for now.
    fn pauses(&self) -> bool {
        self.pause.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl Streams {
    fn of(&self, request: &Request) -> &SupportedFields {
        &self.kinds[usize::from(!request.tools.is_empty())]
    }

    /// The form of the next question; `read` says that the reply is read as it arrives.
    pub(super) fn form(&self, wish: StreamMode, request: &Request, read: bool) -> Form {
        match wish {
            StreamMode::All => Form::Streamed,
            StreamMode::Shown if read && self.of(request).pauses() => Form::Whole,
            StreamMode::Shown if read => Form::of(self.of(request).form.load(Relaxed)),
            StreamMode::Shown | StreamMode::No => Form::Whole,
        }
    }

    /// Returns whether answers that nobody reads need not be streamed: the last one was complete so soon that a whole
    /// reply will arrive in time, too. The answers of a slow model are streamed, which shows that it is working.
    pub(super) fn is_soon_complete(&self, request: &Request) -> bool {
        self.of(request).is_soon_complete.load(Relaxed)
    }

    /// Records how long an answer took, of the time in which a whole one has to be complete; `None` if it failed.
    pub(super) fn answered(&self, request: &Request, took: Option<Duration>, limit: Duration) {
        let is_soon = took.is_some_and(|took| took.saturating_mul(SOON) <= limit);
        self.of(request).is_soon_complete.store(is_soon, Relaxed);
    }

    /// Records a complete stream; `metered` says that it reported its tokens. Returns true the first time that
    /// one did not.
    pub(super) fn worked(&self, request: &Request, metered: bool) -> bool {
        let known = self.of(request);
        known.works.store(true, Relaxed);
        known.empty.store(0, Relaxed);
        known.pause.store(0, Relaxed);
        !metered && !self.unmetered.swap(true, Relaxed)
    }

    /// Records that a stream in `form` failed before it had any content. Returns the form to request instead, which
    /// is remembered.
    pub(super) fn refused(
        &self,
        wish: StreamMode,
        request: &Request,
        form: Form,
        kind: &ErrorKind,
    ) -> Option<Form> {
        let next = next(form, kind).filter(|_| wish == StreamMode::Shown)?;
        self.of(request).form.fetch_max(next as u8, Relaxed);
        Some(next)
    }

    /// Records an empty stream. If this model has never streamed, the next questions are not streamed, and then a
    /// stream is retried, because the empty one may have been an accident.
    pub(super) fn record_empty_stream(&self, wish: StreamMode, request: &Request) {
        let known = self.of(request);
        if wish == StreamMode::Shown && !known.works.load(Relaxed) {
            let times = known.empty.fetch_add(1, Relaxed).min(16);
            known.pause.store(FIRST_PAUSE.saturating_mul(1 << times).min(MAX_PAUSE), Relaxed);
        }
    }

    /// The error, with a remedy if streaming may be its cause, because the model has never streamed.
    pub(super) fn explained(&self, request: &Request, form: Form, mut kind: ErrorKind) -> ErrorKind {
        let never = form.is_streamed() && !self.of(request).works.load(Relaxed);
        if let ErrorKind::Status { status: 400 | 405 | 415 | 422 | 501, detail, .. } = &mut kind
            && never
        {
            detail.push_str("; a stream was asked for: if that is why, set `stream = false` for it");
        }
        kind
    }
}

/// The form in which the server may accept the question that it refused.
fn next(form: Form, kind: &ErrorKind) -> Option<Form> {
    let ErrorKind::Status { status: 400..=407 | 410..=428 | 501, detail, .. } = kind else { return None };
    let lower = detail.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    // `stream`, `streaming`, `stream_options`; not `upstream`.
    let says = |word: &str| word.starts_with("stream") || word == "include_usage";
    let options = ["stream_options", "include_usage"].iter().any(|option| lower.contains(option));
    match form {
        Form::Streamed if options => Some(Form::Bare),
        Form::Streamed | Form::Bare if words.any(says) => Some(Form::Whole),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, detail: &str) -> ErrorKind {
        ErrorKind::Status { status, retry_after: None, detail: detail.to_owned() }
    }

    fn spoken() -> Request {
        Request {
            purpose: crate::llm::Purpose::Answer,
            messages: Vec::new(),
            tools: Vec::new(),
            choice: crate::llm::ToolChoice::None,
            temperature: None,
            max_output_tokens: None,
        }
    }

    #[test]
    fn answers_are_soon_complete_while_the_last_one_was() {
        let (streams, request) = (Streams::default(), spoken());
        let limit = Duration::from_secs(60);
        assert!(!streams.is_soon_complete(&request), "nothing is known of it");
        for (took, is_soon) in [(Some(15), true), (Some(16), false), (Some(1), true), (None, false)] {
            streams.answered(&request, took.map(Duration::from_secs), limit);
            assert_eq!(streams.is_soon_complete(&request), is_soon, "{took:?}");
        }
    }

    #[test]
    fn after_an_empty_stream_replies_are_whole_for_a_while_and_then_streamed_again() {
        let (streams, request) = (Streams::default(), spoken());
        let asked = |times: u32| -> Vec<Form> {
            (0..times).map(|_| streams.form(StreamMode::Shown, &request, true)).collect()
        };
        assert_eq!(asked(1), [Form::Streamed]);
        streams.record_empty_stream(StreamMode::Shown, &request);
        assert_eq!(asked(FIRST_PAUSE), vec![Form::Whole; FIRST_PAUSE as usize]);
        assert_eq!(asked(1), [Form::Streamed]);
        streams.record_empty_stream(StreamMode::Shown, &request);
        assert_eq!(asked(FIRST_PAUSE * 2 + 1).last(), Some(&Form::Streamed));
        streams.worked(&request, true);
        streams.record_empty_stream(StreamMode::Shown, &request);
        assert_eq!(asked(1), [Form::Streamed], "one that has worked is not given up");
    }

    #[test]
    fn what_a_server_refuses_of_a_stream_is_left_out() {
        for (status, detail, left) in [
            (400, "Unrecognized request argument supplied: stream_options", Some(Form::Bare)),
            (422, r#"[{"loc":["body","stream_options","include_usage"],"msg":"extra"}]"#, Some(Form::Bare)),
            (400, "Cannot use tools with stream", Some(Form::Whole)),
            (400, "`stream=true` is not allowed", Some(Form::Whole)),
            (501, "Streaming is not supported", Some(Form::Whole)),
            (400, "the upstream server does not answer", None),
            (400, "no such function", None),
            (503, "too many streams", None),
            (409, "the stream is busy", None),
        ] {
            assert_eq!(next(Form::Streamed, &refused(status, detail)), left, "{detail}");
        }
        let options = refused(400, "stream_options is not known");
        assert_eq!(next(Form::Bare, &options), Some(Form::Whole), "it ends in any case");
        assert_eq!(next(Form::Whole, &options), None);
    }
}
