//! The figures by which a clause is compared with the tools of the catalogue, chosen by the labelled requests of
//! the tests.
//!
//! *Scores* say how well a tool fits a clause, from 0 to about 1. *Weights* say how much a word counts, from 0
//! to about 1. *Similarities* say how alike two words are, from 0 to 1; the *match* of a word with a tool is its
//! best similarity to a word of the tool's texts, times the weight of that word there.

// Scores that decide.

/// Minimum score of a tool that fits.
pub(super) const FITS: f64 = 0.42;
/// Minimum score for a part of a sentence to be a separate request.
pub(super) const STRONG: f64 = 0.46;
/// Score of a tool that is known without a comparison.
pub(super) const CERTAIN: f64 = 1.0;
/// Scores that differ by no more than this count as equal.
pub(super) const EQUAL_SCORES: f64 = 1e-9;

/// Lead over another tool below which the choice is unclear.
pub(super) const CLEAR_LEAD: f64 = 0.015;
/// The same if the clause names no subject: a verb alone fits many tools.
pub(super) const CLEAR_LEAD_OF_VERB: f64 = 10.0 * CLEAR_LEAD;
/// Lead of a tool below which another read, whose values the words give, may be meant.
pub(super) const READ_ALTERNATIVE: f64 = 0.15;
/// Lead of a tool below which another write, which the words fit better, may be meant.
pub(super) const WRITE_ALTERNATIVE: f64 = 0.2;
/// Within this distance, a read of the scene of the previous words is preferred.
pub(super) const SAME_SCENE: f64 = 0.1;
/// Score of a tool from which words that may ask for a recap of the conversation are a request to the tool.
pub(super) const NO_RECAP: f64 = 0.7;

// Similarities and matches that decide.

/// Similarity from which a clause and an example count as the same.
pub(super) const SAME_AS_EXAMPLE: f64 = 0.93;
/// Similarity or match from which a word matches without doubt.
pub(super) const SURE_MATCH: f64 = 0.8;
/// Similarity above which two verbs are the same one.
pub(super) const SAME_VERB: f64 = 0.9;
/// Match from which a subject of the clause is a subject of the tool.
pub(super) const SHARED_SUBJECT: f64 = 0.5;
/// Match from which an action of the clause is an action of the tool.
pub(super) const SHARED_ACTION: f64 = 0.6;
/// Match below which a word after an opening verb is free text.
pub(super) const FREE_TEXT_BELOW: f64 = 0.5;

// Weights of words in a tool's texts, by text.

/// A word of an example of the tool.
pub(super) const EXAMPLE_WORD: f64 = 1.0;
/// A word of the tool's name, or the prefix of codes that an argument takes.
pub(super) const NAME_WORD: f64 = 0.9;
/// A word of the tool's description.
pub(super) const DESCRIPTION_WORD: f64 = 0.8;
/// A word of the scene's name or description.
pub(super) const SCENE_WORD: f64 = 0.6;
/// A value of an enumeration.
pub(super) const OPTION_WORD: f64 = 0.6;
/// A word of an example of another tool of the scene.
pub(super) const NEIGHBOUR_WORD: f64 = 0.5;
/// A word of an argument's name or description; the smallest of these weights.
pub(super) const ARGUMENT_WORD: f64 = 0.45;

// Weights of the slots that a clause and an example share.

pub(super) const DATE_SLOT: f64 = 0.25;
pub(super) const NUMBER_SLOT: f64 = 0.2;
pub(super) const NAME_SLOT: f64 = 0.2;
/// A value of an enumeration.
pub(super) const VALUE_SLOT: f64 = 0.25;
/// Being a question rather than an order.
pub(super) const QUESTION_SLOT: f64 = 0.4;

// Maximum weights of words, by kind; a word that many scenes have weighs less.

pub(super) const QUESTION_WORD: f64 = 0.3;
pub(super) const TIME_UNIT: f64 = 0.35;
pub(super) const ACTION: f64 = 0.6;
pub(super) const SUBJECT: f64 = 1.0;

// Misspelt words.

/// Minimum length of both words, in bytes.
pub(super) const MISSPELT_FROM: usize = 5;
/// Jaro-Winkler similarity above which one is the other one misspelt.
pub(super) const MISSPELT_ABOVE: f64 = 0.93;
/// Maximum number of insertions, deletions, replacements and swaps between them.
pub(super) const MISSPELT_WITHIN: usize = 2;
/// Similarity of a word and its misspelling.
pub(super) const MISSPELT: f64 = 0.75;
/// Similarity of another form of a French, German or Spanish word of an example.
pub(super) const FOREIGN_FORM: f64 = 0.9;

// Weights of the words of a clause, by role.

/// A word that looks like a name and occurs nowhere in the catalogue.
pub(super) const UNKNOWN_NAME: f64 = 0.1;
/// A word after a preposition that occurs nowhere in the catalogue.
pub(super) const UNKNOWN_COMPLEMENT: f64 = 0.5;
/// Factor of another word that occurs nowhere in the catalogue, in a question: its subject must be known, or no
/// scene can answer it.
pub(super) const UNKNOWN_IN_QUESTION: f64 = 1.25;
/// Factor of such a word elsewhere.
pub(super) const UNKNOWN_ELSEWHERE: f64 = 0.9;
/// Factor of a word that looks like a name and is also a word of the catalogue.
pub(super) const KNOWN_NAME: f64 = 0.7;
/// Factor of a word in an explanation: "because …".
pub(super) const EXPLANATION: f64 = 0.15;
/// A name that a question asks about.
pub(super) const ASKED_NAME: f64 = 0.05;
/// Maximum weight of all words together that occur nowhere in the catalogue.
pub(super) const ALL_UNKNOWN: f64 = 2.5;
/// Maximum weight of a word that is a value for the tool.
pub(super) const VALUE: f64 = 0.15;
/// Maximum weight of a word that only announces a value: "contact …".
pub(super) const ANNOUNCEMENT: f64 = 0.35;
/// Weight above which a word that occurs nowhere in the catalogue may be what the clause is about.
pub(super) const POSSIBLE_SUBJECT: f64 = 0.5;
/// Weight above which a word is important to the clause.
pub(super) const IMPORTANT: f64 = 0.45;

// The score: the larger one of two sums, before it is adjusted.

/// Share of the likeness to the best example.
pub(super) const LIKENESS_SHARE: f64 = 0.55;
/// Share of the part of the clause's words that the tool's texts cover.
pub(super) const COVER_SHARE: f64 = 0.45;
/// Score of a clause whose words the tool's texts cover completely, without an example.
pub(super) const COVER_ALONE: f64 = 0.7;
/// Covered weight of subjects from which [`COVER_ALONE`] counts in full.
pub(super) const ENOUGH_SUBJECTS: f64 = 1.2;

// Adjustments of the score to the kind of tool.

/// Added if the tool does not have the verb of a question about a person.
pub(super) const LACKS_WHO_VERB: f64 = -0.1;
/// Added if users would have stated the tool's action explicitly, and did not.
pub(super) const UNSTATED_ACTION: f64 = -0.18;
/// Added if a tool that writes is to answer a question.
pub(super) const WRITE_FOR_QUESTION: f64 = -0.1;
/// Added if the clause expresses a wish and the tool writes.
pub(super) const WRITE_FOR_WISH: f64 = 0.06;
/// Added if the clause expresses a wish and the tool only reads.
pub(super) const READ_FOR_WISH: f64 = -0.06;
/// Added if the clause has a day and the tool takes one.
pub(super) const TAKES_DAY: f64 = 0.05;
/// Added if the clause has a day and the tool takes none.
pub(super) const TAKES_NO_DAY: f64 = -0.03;
/// Added if the clause has a time of day and the tool takes one.
pub(super) const TAKES_TIME: f64 = 0.06;
/// Added if the clause has a time of day and the tool takes none.
pub(super) const TAKES_NO_TIME: f64 = -0.04;

// Adjustments of the score to the words of the clause.

/// Added if the clause opens with the tool's verb.
pub(super) const OPENS_WITH_VERB: f64 = 0.1;
/// Added if the clause is about the speaker.
pub(super) const ABOUT_SPEAKER: f64 = 0.05;
/// Added to a list if the clause asks what the speaker has done.
pub(super) const LISTS_OWN_ACTS: f64 = 0.15;
/// Added if a question has an important word that occurs nowhere in the catalogue.
pub(super) const UNMATCHED_QUESTION: f64 = -0.05;
/// Factor if the clause refers back to the tool's scene and shares no subject with the tool.
pub(super) const REFERS_BACK_WITHOUT_SUBJECT: f64 = 1.3;
/// Added if the clause refers back to the tool's scene and shares a subject with the tool.
pub(super) const REFERS_BACK_WITH_SUBJECT: f64 = 0.1;
/// Factor if the clause shares no subject with the tool.
pub(super) const WITHOUT_SUBJECT: f64 = 0.9;
/// Added if the clause asks for "what is the …" and the tool has no word for it.
pub(super) const LACKS_ASKED_WORD: f64 = -0.25;
/// The clause has a word of another read's name.
pub(super) const NAMES_ANOTHER: f64 = -0.1;
/// The clause has the verb of another write of the scene, and not this write's.
pub(super) const ANOTHER_ACTION: f64 = -0.25;

// A clause that asks for what a scene has, with a value for the tool: "c'è qualcosa di X in biblioteca?".

/// Score below which it gets a score of its own.
pub(super) const STOCK_BELOW: f64 = STRONG + 0.1;
/// What its own score has of the usual one, besides [`STRONG`].
pub(super) const STOCK_SHARE: f64 = 0.2;

// Places, counted in words from the beginning of a clause.

/// A question word opens a question among the first words.
pub(super) const QUESTION_WORDS_WITHIN: usize = 3;
/// A question in general has its question word among the first words.
pub(super) const GENERAL_QUESTION_WITHIN: usize = 2;
/// The word that opens a clause has fewer words before it.
pub(super) const OPENS_BEFORE: usize = 5;
/// Minimum length of a content word, in bytes.
pub(super) const MIN_CONTENT_WORD: usize = 2;
