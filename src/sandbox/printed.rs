//! The output of a program, as far as it is kept.

use std::borrow::Cow;

use monty_types::{MontyException, PrintWriter, PrintWriterCallback};

/// Printed text, up to a bound. What is beyond it is dropped, which the program does not notice.
#[derive(Debug)]
pub(super) struct Printed {
    text: String,
    max: usize,
    cut: bool,
}

impl Printed {
    pub(super) fn new(max: usize) -> Self {
        Self { text: String::new(), max, cut: false }
    }

    pub(super) fn writer(&mut self) -> PrintWriter<'_> {
        PrintWriter::Callback(self)
    }

    /// The text, and whether some of it was dropped.
    pub(super) fn into_parts(self) -> (String, bool) {
        (self.text, self.cut)
    }

    fn add(&mut self, text: &str) {
        if self.cut {
            return;
        }
        let room = self.max.saturating_sub(self.text.len());
        let kept = text.floor_char_boundary(room.min(text.len()));
        self.text.push_str(text.get(..kept).unwrap_or_default());
        self.cut = kept < text.len();
    }
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.add(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.add(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_stays_cut() {
        let mut printed = Printed::new(5);
        printed.add("caff");
        printed.add("è");
        printed.add("x");
        assert_eq!(printed.into_parts(), ("caff".to_owned(), true));
        let mut printed = Printed::new(5);
        printed.add("caff\n");
        assert_eq!(printed.into_parts(), ("caff\n".to_owned(), false));
    }
}
