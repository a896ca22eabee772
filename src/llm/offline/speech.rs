//! Speech acts: what somebody does with some words. Only a request asks for something to be done.

/// What somebody does with a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Asks for something: an order, a wish of the speaker, a polite question, or an ellipsis of one.
    Request,
    /// Says that something is not to be done.
    Negated,
    /// Asks to be told something, or whether something may be done.
    Question,
    /// Tells what was.
    Report,
    /// Asks for something in a certain case only, or is that case.
    Condition,
    /// Asks to be reminded of something.
    Reminder,
    /// Hands words on to somebody else, or repeats somebody's words.
    Quoted,
    /// Says what somebody else wants or does.
    ThirdPerson,
    /// Asks for a price, or what would be if.
    Hypothetical,
    /// Says how things are, or what may be.
    Statement,
}

/// What somebody does with some words.
pub(super) fn act_of(_clause: &str) -> Act {
    Act::Request
}
