//! What a request needs, by its words, in English and Italian: data, a statement, its explanation, or no data. Pure.

use super::values::PromptKind;

/// Words with which statements begin.
const STATEMENT_WORDS: [&str; 11] = [
    "select", "with", "insert", "update", "delete", "drop", "alter", "create", "truncate", "values",
    "replace",
];
/// Words that announce a statement.
const ANNOUNCING: [&str; 7] =
    ["sql", "query", "statement", "istruzione", "interrogazione", "queries", "select"];
/// Words that ask for an explanation of a statement.
const EXPLAIN: [&str; 20] = [
    "explain",
    "what does",
    "what is this",
    "describe",
    "meaning",
    "mean",
    "walk me through",
    "understand",
    "in plain",
    "spiega",
    "spiegami",
    "spieghi",
    "cosa fa",
    "che fa",
    "significa",
    "vuol dire",
    "descrivi",
    "capire",
    "in parole",
    "a cosa serve",
];
/// Words that ask for a correction.
const FIX: [&str; 28] = [
    "fix",
    "correct",
    "corrected",
    "repair",
    "debug",
    "wrong",
    "error",
    "errors",
    "broken",
    "mistake",
    "mistakes",
    "typo",
    "does not work",
    "doesn t work",
    "doesn't work",
    "not working",
    "fails",
    "correggi",
    "correggere",
    "sistema",
    "aggiusta",
    "ripara",
    "errore",
    "errori",
    "non funziona",
    "sbagliata",
    "sbagliato",
    "non va",
];
/// Words that ask whether a statement is right.
const CHECK: [&str; 17] = [
    "valid",
    "validate",
    "check",
    "verify",
    "is this ok",
    "is this right",
    "would this work",
    "does this work",
    "will this run",
    "valida",
    "valido",
    "controlla",
    "verifica",
    "verificare",
    "corretta",
    "corretto",
    "e giusta",
];
/// Words that ask for the execution of a statement.
const RUN: [&str; 24] = [
    "run",
    "execute",
    "run it",
    "execute it",
    "show me the result",
    "show the result",
    "show me the rows",
    "the results",
    "the result",
    "give me the rows",
    "what does it return",
    "esegui",
    "eseguila",
    "eseguire",
    "lancia",
    "lanciala",
    "fai girare",
    "il risultato",
    "i risultati",
    "mostrami le righe",
    "cosa restituisce",
    "che cosa restituisce",
    "e poi esegui",
    "and tell me",
];
/// Words that forbid it.
const NO_RUN: [&str; 17] = [
    "don t run",
    "do not run",
    "don t execute",
    "do not execute",
    "without running",
    "without executing",
    "not run it",
    "no need to run",
    "just the query",
    "only the query",
    "senza eseguirla",
    "senza eseguire",
    "non eseguirla",
    "non eseguire",
    "solo la query",
    "non lanciarla",
    "senza lanciarla",
];
/// Verbs with which a query is asked for.
const WRITE_VERBS: [&str; 22] = [
    "write",
    "generate",
    "draft",
    "prepare",
    "compose",
    "give me",
    "show me",
    "create",
    "build",
    "what would",
    "what is",
    "scrivi",
    "scrivimi",
    "genera",
    "generami",
    "prepara",
    "preparami",
    "dammi",
    "crea",
    "mostrami",
    "quale sarebbe",
    "fammi",
];
/// Verbs with which data is changed.
const CHANGE_VERBS: [&str; 38] = [
    "delete",
    "remove",
    "insert",
    "add",
    "update",
    "change",
    "set",
    "drop",
    "create",
    "modify",
    "rename",
    "erase",
    "cancel",
    "mark",
    "increase",
    "raise",
    "lower",
    "reduce",
    "register",
    "truncate",
    "elimina",
    "cancella",
    "rimuovi",
    "aggiungi",
    "inserisci",
    "aggiorna",
    "modifica",
    "cambia",
    "imposta",
    "crea",
    "annulla",
    "svuota",
    "togli",
    "rinomina",
    "aumenta",
    "abbassa",
    "segna",
    "registra",
];
/// What may stand before the verb of a wish.
const POLITE: [&str; 34] = [
    "please",
    "can you",
    "could you",
    "would you",
    "can",
    "could",
    "you",
    "i want to",
    "i would like to",
    "i d like to",
    "i need to",
    "let s",
    "now",
    "then",
    "ok",
    "hi",
    "hello",
    "ciao",
    "buongiorno",
    "per favore",
    "per piacere",
    "puoi",
    "potresti",
    "mi puoi",
    "vorrei",
    "voglio",
    "devo",
    "ora",
    "adesso",
    "poi",
    "mi",
    "and",
    "e",
    "salve",
];
/// Infinitives of the Italian verbs of change, after "puoi" or "vorrei".
const CHANGE_INFINITIVES: [&str; 15] = [
    "eliminare",
    "cancellare",
    "rimuovere",
    "aggiungere",
    "inserire",
    "aggiornare",
    "modificare",
    "cambiare",
    "impostare",
    "creare",
    "annullare",
    "svuotare",
    "togliere",
    "rinominare",
    "aumentare",
];
/// Words about the schema.
const SCHEMA: [&str; 17] = [
    "tables",
    "table",
    "columns",
    "column",
    "fields",
    "field",
    "schema",
    "database",
    "tabelle",
    "tabella",
    "colonne",
    "colonna",
    "campi",
    "campo",
    "relazioni",
    "banca dati",
    "base dati",
];
/// Words that ask for rows even where the schema is mentioned.
const DATA: [&str; 22] = [
    "rows",
    "row",
    "records",
    "record",
    "entries",
    "righe",
    "riga",
    "average",
    "sum",
    "total",
    "highest",
    "lowest",
    "most",
    "least",
    "top",
    "as a table",
    "in a table",
    "in tabella",
    "in una tabella",
    "media",
    "totale",
    "per month",
];
/// Greetings, thanks and questions about the assistant.
const TALK: [&str; 29] = [
    "hello",
    "hi",
    "hey",
    "good morning",
    "good evening",
    "thanks",
    "thank you",
    "what can you do",
    "how can you help",
    "who are you",
    "what can i ask",
    "help",
    "help me",
    "how do you work",
    "what do you do",
    "ciao",
    "salve",
    "buongiorno",
    "buonasera",
    "grazie",
    "cosa sai fare",
    "che cosa sai fare",
    "come puoi aiutarmi",
    "chi sei",
    "cosa posso chiedere",
    "che cosa posso chiedere",
    "aiuto",
    "aiutami",
    "cosa puoi fare",
];
/// Things of databases in general.
const CONCEPTS: [&str; 25] = [
    "sql",
    "join",
    "inner join",
    "left join",
    "outer join",
    "primary key",
    "foreign key",
    "index",
    "view",
    "null",
    "group by",
    "having",
    "order by",
    "subquery",
    "union",
    "cte",
    "window function",
    "normalization",
    "transaction",
    "chiave primaria",
    "chiave esterna",
    "indice",
    "vista",
    "sottoquery",
    "transazione",
];
/// How something is asked about in general.
const GENERAL_LEADS: [&str; 19] = [
    "what is a",
    "what is an",
    "what is",
    "what s a",
    "what are",
    "what does",
    "how do i",
    "how does",
    "how do you",
    "difference between",
    "cos e",
    "che cos e",
    "cosa e",
    "che cosa e",
    "cosa sono",
    "come si",
    "come funziona",
    "differenza tra",
    "differenza fra",
];
/// Words that refer to rows of before.
const THESE: [&str; 19] = [
    "these",
    "those",
    "them",
    "the rows",
    "the result",
    "the results",
    "the data above",
    "this data",
    "that",
    "queste",
    "questi",
    "quelle",
    "quelli",
    "le righe",
    "il risultato",
    "i risultati",
    "questi dati",
    "mostrali",
    "mostrale",
];
/// Ways of showing rows.
const SHOWING: [&str; 22] = [
    "format",
    "formatted",
    "table",
    "list",
    "bullet",
    "present",
    "show",
    "display",
    "markdown",
    "summarise",
    "summarize",
    "nicely",
    "formatta",
    "tabella",
    "elenco",
    "lista",
    "presenta",
    "mostra",
    "mostrali",
    "mostrale",
    "riassumi",
    "visualizza",
];

/// How meanings and what is kept are asked about.
const MEANINGS: [&str; 40] = [
    "mean",
    "means",
    "meaning",
    "stand for",
    "stands for",
    "what information",
    "which information",
    "what data",
    "which data",
    "what kind of data",
    "is stored",
    "are stored",
    "related to each other",
    "are related",
    "are linked",
    "are connected",
    "significa",
    "significano",
    "vuol dire",
    "vogliono dire",
    "che dati",
    "quali dati",
    "che informazioni",
    "quali informazioni",
    "sono collegati",
    "sono collegate",
    "difference between",
    "differenza tra",
    "differenza fra",
    "unit",
    "units",
    "currency",
    "valuta",
    "unita di misura",
    "linked to",
    "related to",
    "connected to",
    "relationship between",
    "what can i ask",
    "can i ask",
];
/// How a request begins that goes on with the one before.
const FOLLOWING: [&str; 22] = [
    "and",
    "or",
    "only",
    "now",
    "but",
    "what about",
    "how about",
    "same",
    "instead",
    "also",
    "then",
    "e",
    "ed",
    "o",
    "solo",
    "ora",
    "adesso",
    "ma",
    "invece",
    "stesso",
    "anche",
    "poi",
];
/// Words that stand for what was said before.
const REFERRING: [&str; 19] = [
    "these", "those", "them", "they", "their", "it", "its", "ones", "one", "queste", "questi", "quelle",
    "quelli", "loro", "essi", "esse", "lo", "li", "ne",
];

/// What a request needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedPrompt {
    /// Data, a statement, or neither.
    pub kind: PromptKind,
    /// Whether data is to be read.
    pub run: bool,
    /// Whether its statement is to be corrected.
    pub fix: bool,
    /// Its statement; empty if it has none.
    pub sql: String,
}

/// What a request needs, by its words. `has_rows` says whether rows of an earlier answer are there.
pub fn classify(request: &str, has_rows: bool) -> ClassifiedPrompt {
    let (around, sql) = split_statement(request);
    let said = folded(&around);
    if sql.is_empty() {
        return without_statement(&said, has_rows);
    }
    let runs = has_any(&said, &RUN) && !has_any(&said, &NO_RUN);
    let fixes = has_any(&said, &FIX);
    let checks = fixes || has_any(&said, &CHECK);
    if has_any(&said, &EXPLAIN) && !fixes && !runs {
        return ClassifiedPrompt { kind: PromptKind::Explain, run: false, fix: false, sql };
    }
    if !checks && changes_data(&sql) {
        return ClassifiedPrompt { kind: PromptKind::General, run: false, fix: false, sql: String::new() };
    }
    let run = runs || (!checks && !has_any(&said, &NO_RUN));
    ClassifiedPrompt { kind: PromptKind::Sql, run, fix: checks, sql }
}

fn without_statement(said: &str, has_rows: bool) -> ClassifiedPrompt {
    let of = |kind, run| ClassifiedPrompt { kind, run, fix: false, sql: String::new() };
    if has_rows && has_any(said, &THESE) && has_any(said, &SHOWING) {
        return of(PromptKind::Rows, false);
    }
    let wants_query =
        has_any(said, &["query", "sql", "statement", "interrogazione"]) && has_any(said, &WRITE_VERBS);
    if wants_query && !is_about_concepts(said) {
        let run = has_any(said, &RUN) && !has_any(said, &NO_RUN);
        return of(PromptKind::Question, run);
    }
    if is_wish_to_change(said) || is_talk(said) || is_about_concepts(said) || is_about_schema(said) {
        return of(PromptKind::General, false);
    }
    of(PromptKind::Question, !has_any(said, &NO_RUN))
}

/// What a question needs for which the rules write no statement. `names_data` says whether it names anything of the
/// database: what does not, and does not go on with an earlier question, is not about its data; neither is what asks
/// for meanings.
pub fn without_answer(
    found: ClassifiedPrompt,
    request: &str,
    has_rows: bool,
    names_data: bool,
) -> ClassifiedPrompt {
    let said = folded(request);
    let of = |kind| ClassifiedPrompt { kind, run: false, fix: false, sql: String::new() };
    // A caller who gives rows and asks for nothing that can be looked up wants them shown.
    if has_rows {
        return of(PromptKind::Rows);
    }
    let goes_on =
        FOLLOWING.iter().any(|word| after_word(said.trim(), word).is_some()) || has_any(&said, &REFERRING);
    match has_any(&said, &MEANINGS) || !(names_data || goes_on) {
        true => of(PromptKind::General),
        false => found,
    }
}

/// Whether a request wants data to be changed.
pub fn is_about_change(request: &str) -> bool {
    let (around, sql) = split_statement(request);
    if sql.is_empty() { is_wish_to_change(&folded(&around)) } else { changes_data(&sql) }
}

/// Whether a folded text is a wish to change data: it begins with such a verb, after polite words.
fn is_wish_to_change(said: &str) -> bool {
    let mut rest = said.trim();
    while let Some(shorter) = POLITE.iter().find_map(|polite| after_word(rest, polite)) {
        rest = shorter;
    }
    let is_sum =
        ["add up", "set of", "change in", "changes in"].iter().any(|lead| after_word(rest, lead).is_some());
    let verbs = CHANGE_VERBS.iter().chain(&CHANGE_INFINITIVES);
    !is_sum && verbs.into_iter().any(|verb| after_word(rest, verb).is_some())
}

fn is_talk(said: &str) -> bool {
    let whole = said.trim();
    let is_short = whole.split(' ').count() <= 7;
    TALK.contains(&whole)
        || (is_short
            && has_any(
                said,
                &[
                    "what can you do",
                    "who are you",
                    "cosa sai fare",
                    "chi sei",
                    "what can i ask",
                    "cosa posso chiedere",
                    "cosa puoi fare",
                ],
            ))
        || (whole.split(' ').count() <= 3 && TALK.iter().any(|talk| after_word(whole, talk).is_some()))
}

fn is_about_concepts(said: &str) -> bool {
    has_any(said, &GENERAL_LEADS) && has_any(said, &CONCEPTS)
}

/// Whether a text asks about tables and columns rather than what is in them.
fn is_about_schema(said: &str) -> bool {
    has_any(said, &SCHEMA) && !has_any(said, &DATA)
}

/// Whether a statement is meant to change data.
fn changes_data(sql: &str) -> bool {
    let first = sql
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    !["select", "with", "values", "explain"].contains(&first.as_str())
        && STATEMENT_WORDS.contains(&first.as_str())
}

/// The rest of a text after the words with which it begins.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(word)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// A request without its statement, and the statement; which is empty if there is none.
fn split_statement(request: &str) -> (String, String) {
    if let Some((before, rest)) = request.split_once("```") {
        let (inner, after) = rest.split_once("```").unwrap_or((rest, ""));
        let inner = inner.trim_start();
        let has_word = inner.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("sql"));
        let sql = if has_word { inner.get(3..).unwrap_or_default() } else { inner };
        return (format!("{before} {after}"), sql.trim().to_owned());
    }
    let Some(start) = statement_start(request) else { return (request.to_owned(), String::new()) };
    let (before, sql) = request.split_at(start);
    let (sql, after) = statement_end(before, sql);
    (format!("{before} {after}"), sql.trim().trim_matches(['`', '“', '”']).trim().to_owned())
}

/// Where the statement of a request begins.
fn statement_start(request: &str) -> Option<usize> {
    let announced = has_any(&folded(request), &ANNOUNCING);
    let mut words = word_starts(request).into_iter();
    words
        .find(|(at, word)| {
            let rest = request.get(*at..).unwrap_or_default();
            let before = request.get(..*at).unwrap_or_default().trim_end();
            let after_mark = before.is_empty() || before.ends_with([':', '`', '"', '\n', '“', '«', '?', '.']);
            let lower = word.to_lowercase();
            let is_upper = word.chars().all(char::is_uppercase);
            let is_word = STATEMENT_WORDS.contains(&lower.as_str());
            let is_misspelt = word.len() > 4
                && ["select", "insert", "delete", "update"]
                    .iter()
                    .any(|right| strsim::damerau_levenshtein(right, &lower) <= 1);
            match (is_word || is_misspelt, is_upper) {
                (false, _) => false,
                (true, true) => is_word || after_mark || announced,
                (true, false) => (after_mark || announced) && looks_like_sql(rest, &lower),
            }
        })
        .map(|(at, _)| at)
}

/// Whether a text that begins with a word of SQL goes on like SQL and not like a sentence.
fn looks_like_sql(rest: &str, first: &str) -> bool {
    let said = folded(rest);
    let has_marks = rest.contains(['*', '=', '(', ';', '<', '>']) || rest.contains("_");
    match first {
        "select" | "selec" | "selct" | "slect" => {
            said.contains(" from ")
                && (has_marks || !has_any(&said, &["the", "all the", "i", "le", "gli", "dei", "delle"]))
        }
        "with" => said.contains(" as ") && said.contains(" select "),
        "insert" => said.contains(" into "),
        "update" => said.contains(" set ") && has_marks,
        "delete" => said.contains(" from ") && has_marks,
        "drop" | "truncate" | "alter" | "create" => {
            said.contains(" table ") && rest.split_whitespace().count() <= 12 && has_marks
        }
        _ => said.contains(" from "),
    }
}

/// A statement without the words that follow it: behind a closing quote or a semicolon, or on a further line.
fn statement_end<'a>(before: &str, sql: &'a str) -> (&'a str, &'a str) {
    let closing = match before.trim_end().chars().last() {
        Some('`') => Some('`'),
        Some('“') => Some('”'),
        Some('«') => Some('»'),
        _ => None,
    };
    if let Some(end) = closing.and_then(|closing| sql.find(closing)) {
        let (sql, after) = sql.split_at(end);
        return (sql, after);
    }
    match sql.find(';') {
        Some(end)
            if sql.get(end + 1..).is_some_and(|rest| {
                !rest.trim().is_empty() && !rest.contains(';') && !begins_statement(rest)
            }) =>
        {
            let (sql, after) = sql.split_at(end);
            (sql, after.trim_start_matches(';'))
        }
        _ => match sql.find("\n\n") {
            Some(end) => sql.split_at(end),
            None => (sql, ""),
        },
    }
}

fn begins_statement(text: &str) -> bool {
    let first = text
        .split(|c: char| !c.is_alphabetic())
        .find(|word| !word.is_empty())
        .unwrap_or_default()
        .to_lowercase();
    STATEMENT_WORDS.contains(&first.as_str())
}

/// The words of a text with the bytes at which they begin.
fn word_starts(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_alphanumeric() || c == '_', start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                words.push((from, text.get(from..at).unwrap_or_default()));
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn has_any(said: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| said.contains(&format!(" {} ", phrase.replace('\'', " "))))
}

/// A text in lower case, without accents and marks, with a space around each word.
pub fn folded(text: &str) -> String {
    let plain = deunicode::deunicode(text).to_lowercase();
    let words: Vec<&str> =
        plain.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is expected of a request, as kind, run, fix.
    fn classified(request: &str) -> (PromptKind, bool, bool) {
        let found = classify(request, false);
        (found.kind, found.run, found.fix)
    }

    #[test]
    fn questions_read_data_unless_only_the_query_is_wanted() {
        for question in [
            "How many orders were placed in March?",
            "Quanti ordini sono stati fatti a marzo?",
            "Which orders were cancelled last month?",
            "Select the customers from Milan",
            "Show me the products that were added this year as a table",
            "Elenca i clienti con il totale degli ordini",
            "How many rows are in the table orders?",
            "Show me the latest updates of the prices",
        ] {
            assert_eq!(classified(question), (PromptKind::Question, true, false), "{question}");
        }
        for query in [
            "Write a query for the cheapest products, don't run it",
            "Scrivi la query per i clienti di Milano senza eseguirla",
            "Give me the SQL for the orders of March",
        ] {
            assert_eq!(classified(query), (PromptKind::Question, false, false), "{query}");
        }
        assert!(classified("Write a query for the orders of May and run it").1);
    }

    #[test]
    fn statements_are_found_and_what_is_to_be_done_with_them() {
        let cases = [
            ("Fix this SQL: SELEC name FORM products", false, true, "SELEC name FORM products"),
            ("Correggi questa query: SELECT nme FROM products", false, true, "SELECT nme FROM products"),
            ("Is this valid? SELECT count(*) FROM orders", false, true, "SELECT count(*) FROM orders"),
            ("SELECT name FROM categories", true, false, "SELECT name FROM categories"),
            ("select name from categories;", true, false, "select name from categories;"),
            ("Run this SQL: ```sql\nSELECT 1\n``` please", true, false, "SELECT 1"),
            ("Fix this query and run it: SELECT nme FROM products", true, true, "SELECT nme FROM products"),
            ("Esegui `SELECT 1 FROM orders` per favore", true, false, "SELECT 1 FROM orders"),
        ];
        for (request, run, fix, sql) in cases {
            let found = classify(request, false);
            assert_eq!((found.kind, found.run, found.fix), (PromptKind::Sql, run, fix), "{request}");
            assert_eq!(found.sql, sql, "{request}");
        }
        for explained in
            ["Explain this SQL: DELETE FROM orders", "Che cosa fa questa query? SELECT 1 FROM orders"]
        {
            assert_eq!(classified(explained), (PromptKind::Explain, false, false), "{explained}");
        }
    }

    #[test]
    fn what_needs_no_data_is_general() {
        for general in [
            "Hello!",
            "Ciao, cosa sai fare?",
            "Which tables are in the database?",
            "Quali colonne ha la tabella ordini?",
            "What is a left join?",
            "Delete all the orders of 2024",
            "Puoi cancellare gli ordini vecchi?",
            "DELETE FROM orders WHERE id = 3",
            "Please add a customer called Rossi",
        ] {
            assert_eq!(classified(general), (PromptKind::General, false, false), "{general}");
        }
    }

    #[test]
    fn question_that_names_nothing_of_the_database_is_general() {
        let kind = |request: &str, has_rows: bool, names_data: bool| {
            without_answer(classify(request, has_rows), request, has_rows, names_data).kind
        };
        assert_eq!(kind("Who won the cup in 1982?", false, false), PromptKind::General);
        assert_eq!(kind("What does the status of orders mean?", false, true), PromptKind::General);
        assert_eq!(kind("Which orders are odd?", false, true), PromptKind::Question);
        assert_eq!(kind("And in April?", false, false), PromptKind::Question);
        assert_eq!(kind("E solo quelli di Milano?", false, false), PromptKind::Question);
        assert_eq!(kind("Put the rows into a list", true, false), PromptKind::Rows);
    }

    #[test]
    fn rows_that_are_there_are_only_shown() {
        assert_eq!(classify("Show these rows as a table", true).kind, PromptKind::Rows);
        assert_eq!(classify("Mostrali in una tabella", true).kind, PromptKind::Rows);
        assert_eq!(classify("Show these rows as a table", false).kind, PromptKind::Question);
    }
}
