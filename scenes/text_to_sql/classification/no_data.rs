//! Requests that need no data: greetings, and questions about the assistant, about databases in general, and about what
//! this one keeps.

use super::super::folded_text::{after_word, has_any};

/// Greetings, thanks and questions about the assistant.
#[rustfmt::skip]
const TALK: &[&str] = &[
    "hello", "hi", "hey", "good morning", "good evening", "thanks", "thank you", "what can you do",
    "how can you help", "who are you", "what can i ask", "help", "help me", "how do you work", "what do you do",
    "ciao", "salve", "buongiorno", "buonasera", "grazie", "cosa sai fare", "che cosa sai fare", "come puoi aiutarmi",
    "chi sei", "cosa posso chiedere", "che cosa posso chiedere", "aiuto", "aiutami", "cosa puoi fare",
];
/// Things of databases in general.
#[rustfmt::skip]
const CONCEPTS: &[&str] = &[
    "sql", "join", "inner join", "left join", "outer join", "primary key", "foreign key", "index", "view", "null",
    "group by", "having", "order by", "subquery", "union", "cte", "window function", "normalization", "transaction",
    "chiave primaria", "chiave esterna", "indice", "vista", "sottoquery", "transazione",
];
/// How something is asked about in general.
#[rustfmt::skip]
const GENERAL_LEADS: &[&str] = &[
    "what is a", "what is an", "what is", "what s a", "what are", "what does", "how do i", "how does", "how do you",
    "difference between", "cos e", "che cos e", "cosa e", "che cosa e", "cosa sono", "come si", "come funziona",
    "differenza tra", "differenza fra",
];
/// Words about the schema.
#[rustfmt::skip]
const SCHEMA: &[&str] = &[
    "tables", "table", "columns", "column", "fields", "field", "schema", "database", "tabelle", "tabella", "colonne",
    "colonna", "campi", "campo", "relazioni", "banca dati", "base dati",
];
/// Words that ask for rows even where the schema is mentioned.
#[rustfmt::skip]
const DATA: &[&str] = &[
    "rows", "row", "records", "record", "entries", "righe", "riga", "average", "sum", "total", "highest", "lowest",
    "most", "least", "top", "as a table", "in a table", "in tabella", "in una tabella", "media", "totale",
    "per month",
];
/// How meanings and what is kept are asked about.
#[rustfmt::skip]
const MEANINGS: &[&str] = &[
    "mean", "means", "meaning", "stand for", "stands for", "what information", "which information", "what data",
    "which data", "what kind of data", "is stored", "are stored", "related to each other", "are related",
    "are linked", "are connected", "significa", "significano", "vuol dire", "vogliono dire", "che dati",
    "quali dati", "che informazioni", "quali informazioni", "sono collegati", "sono collegate", "difference between",
    "differenza tra", "differenza fra", "unit", "units", "currency", "valuta", "unita di misura", "linked to",
    "related to", "connected to", "relationship between", "what can i ask", "can i ask",
];

/// Whether a folded text is a greeting, thanks, or a question about the assistant.
pub(super) fn is_talk(said: &str) -> bool {
    let whole = said.trim();
    let is_short = whole.split(' ').count() <= 7;
    TALK.contains(&whole)
        || (is_short
            && has_any(
                said,
                &[
                    "what can you do", "who are you", "cosa sai fare", "chi sei", "what can i ask",
                    "cosa posso chiedere", "cosa puoi fare",
                ],
            ))
        || (whole.split(' ').count() <= 3 && TALK.iter().any(|talk| after_word(whole, talk).is_some()))
}

/// Whether a folded text asks about databases in general.
pub(super) fn is_about_concepts(said: &str) -> bool {
    has_any(said, GENERAL_LEADS) && has_any(said, CONCEPTS)
}

/// Whether a text asks about tables and columns rather than what is in them.
pub(super) fn is_about_schema(said: &str) -> bool {
    has_any(said, SCHEMA) && !has_any(said, DATA)
}

/// Whether a folded text asks what names mean or what is kept.
pub(super) fn is_about_meanings(said: &str) -> bool {
    has_any(said, MEANINGS)
}
