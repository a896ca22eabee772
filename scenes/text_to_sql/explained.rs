//! What a statement does, in words: its clauses, in the order in which they take effect. Pure.

use super::phrases::Speech;
use super::rules::description::{DatabaseDescription, TableDescription};

/// The clauses of a query, in the order in which they are written.
const CLAUSES: [(&str, ClauseKind); 9] = [
    ("with", ClauseKind::With),
    ("select", ClauseKind::Select),
    ("from", ClauseKind::From),
    ("where", ClauseKind::Where),
    ("group by", ClauseKind::GroupBy),
    ("having", ClauseKind::Having),
    ("order by", ClauseKind::OrderBy),
    ("limit", ClauseKind::Limit),
    ("union", ClauseKind::Union),
];
/// Bytes of a clause in a text.
const MAX_CLAUSE_BYTES: usize = 300;

/// A clause of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseKind {
    With,
    Select,
    From,
    Where,
    GroupBy,
    Having,
    OrderBy,
    Limit,
    Union,
}

/// What a statement does. It need not be one that may be executed.
pub fn explained(sql: &str, description: &DatabaseDescription, speech: Speech) -> String {
    let sql = sql.trim().trim_end_matches(';').trim();
    let first = sql.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    if first != "select" && first != "with" {
        return changes(&first, speech);
    }
    let clauses = clauses(sql);
    let mut lines = Vec::new();
    for kind in [
        ClauseKind::With,
        ClauseKind::From,
        ClauseKind::Where,
        ClauseKind::GroupBy,
        ClauseKind::Having,
        ClauseKind::Select,
        ClauseKind::OrderBy,
        ClauseKind::Limit,
        ClauseKind::Union,
    ] {
        // Of the queries that UNION combines, the first is told.
        if let Some((_, text)) = clauses.iter().find(|(own, _)| *own == kind) {
            lines.push(format!("- {} {}", lead(kind, speech), shortened(text, kind)));
        }
    }
    let tables = named_tables(sql, description);
    let told: Vec<String> = tables.iter().filter_map(|table| told_table(table, speech)).collect();
    if !told.is_empty() {
        lines.push(String::new());
        lines.extend(told);
    }
    format!("{}\n{}", introduction(speech), lines.join("\n"))
}

fn introduction(speech: Speech) -> &'static str {
    speech.pick([
        "Questa query, nell'ordine in cui agisce:",
        "This query, in the order in which it works:",
        "Cette requête, dans l'ordre où elle agit :",
        "Diese Abfrage, in der Reihenfolge, in der sie wirkt:",
        "Esta consulta, en el orden en que actúa:",
    ])
}

fn changes(first: &str, speech: Speech) -> String {
    let what = speech.pick([
        "Questa istruzione ({w}) non è una query: modificherebbe dati o struttura. Qui non viene eseguita.",
        "This statement ({w}) is no query: it would change data or structure. It is not run here.",
        "Cette instruction ({w}) n'est pas une requête : elle modifierait des données ou la structure. Elle n'est pas exécutée ici.",
        "Diese Anweisung ({w}) ist keine Abfrage: Sie würde Daten oder die Struktur ändern. Sie wird hier nicht ausgeführt.",
        "Esta instrucción ({w}) no es una consulta: modificaría datos o la estructura. Aquí no se ejecuta.",
    ]);
    what.replace("{w}", &first.to_uppercase())
}

fn lead(kind: ClauseKind, speech: Speech) -> &'static str {
    match kind {
        ClauseKind::With => speech.pick(["prepara", "prepares", "prépare", "bereitet vor", "prepara"]),
        ClauseKind::From => speech.pick(["legge da", "reads from", "lit dans", "liest aus", "lee de"]),
        ClauseKind::Where => speech.pick([
            "tiene solo le righe con",
            "keeps only rows with",
            "ne garde que les lignes avec",
            "behält nur Zeilen mit",
            "conserva solo las filas con",
        ]),
        ClauseKind::GroupBy => {
            speech.pick(["raggruppa per", "groups by", "regroupe par", "gruppiert nach", "agrupa por"])
        }
        ClauseKind::Having => speech.pick([
            "tiene solo i gruppi con",
            "keeps only groups with",
            "ne garde que les groupes avec",
            "behält nur Gruppen mit",
            "conserva solo los grupos con",
        ]),
        ClauseKind::Select => speech.pick(["mostra", "shows", "affiche", "zeigt", "muestra"]),
        ClauseKind::OrderBy => {
            speech.pick(["ordina per", "orders by", "trie par", "ordnet nach", "ordena por"])
        }
        ClauseKind::Limit => speech.pick([
            "si ferma dopo (righe)",
            "stops after (rows)",
            "s'arrête après (lignes)",
            "endet nach (Zeilen)",
            "se detiene tras (filas)",
        ]),
        ClauseKind::Union => speech.pick([
            "vi aggiunge le righe di",
            "adds the rows of",
            "y ajoute les lignes de",
            "fügt die Zeilen hinzu von",
            "añade las filas de",
        ]),
    }
}

fn shortened(text: &str, kind: ClauseKind) -> String {
    let line = proscenium::invisible::one_line(text);
    let line = match (kind, line.as_str()) {
        (ClauseKind::Select, "*") => return "`*`".to_owned(),
        _ => line.replace('`', "'"),
    };
    match line.char_indices().find(|(at, _)| *at >= MAX_CLAUSE_BYTES) {
        Some((end, _)) => format!("`{}…`", line.get(..end).unwrap_or_default()),
        None => format!("`{line}`"),
    }
}

/// The clauses of the outermost query, with their texts.
fn clauses(sql: &str) -> Vec<(ClauseKind, String)> {
    let mut found: Vec<(ClauseKind, usize, usize)> = Vec::new();
    for (at, depth) in word_places(sql) {
        if depth > 0 || found.last().is_some_and(|(_, _, end)| at < *end) {
            continue;
        }
        let rest = sql.get(at..).unwrap_or_default();
        if let Some((kind, length)) = clause_at(rest) {
            found.push((kind, at, at + length));
            if kind == ClauseKind::Union {
                break;
            }
        }
    }
    let ends = found.iter().skip(1).map(|(_, at, _)| *at).chain([sql.len()]);
    let text = |(kind, _, from): &(ClauseKind, usize, usize), end: usize| {
        (*kind, sql.get(*from..end).unwrap_or_default().trim().to_owned())
    };
    found.iter().zip(ends).map(|(clause, end)| text(clause, end)).collect()
}

/// The clause with which a text begins, and the bytes of its words.
fn clause_at(rest: &str) -> Option<(ClauseKind, usize)> {
    CLAUSES.iter().find_map(|(words, kind)| {
        let mut length = 0;
        for word in words.split(' ') {
            let after = rest.get(length..)?;
            length += after.len() - after.trim_start().len();
            let own = rest.get(length..length + word.len())?;
            if !own.eq_ignore_ascii_case(word) {
                return None;
            }
            length += word.len();
        }
        let goes_on = rest.get(length..)?.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
        (!goes_on).then_some((*kind, length))
    })
}

/// Where words begin outside texts and comments, with the number of open parentheses.
fn word_places(sql: &str) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let (mut depth, mut quote, mut in_word) = (0_usize, None, false);
    for (at, c) in sql.char_indices() {
        if let Some(open) = quote {
            if c == open {
                quote = None;
            }
            continue;
        }
        let is_word = c.is_alphanumeric() || c == '_';
        if is_word && !in_word {
            places.push((at, depth));
        }
        in_word = is_word;
        match c {
            '\'' | '"' => quote = Some(c),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    places
}

/// The tables that a statement names.
fn named_tables<'a>(sql: &str, description: &'a DatabaseDescription) -> Vec<&'a TableDescription> {
    let words: Vec<String> = sql
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    description.tables.iter().filter(|table| words.contains(&table.name.to_lowercase())).collect()
}

fn told_table(table: &TableDescription, speech: Speech) -> Option<String> {
    let texts = &table.description;
    let text = texts.get(speech.code()).or_else(|| texts.get("en")).or_else(|| texts.values().next())?;
    Some(format!("{}: {}", table.name, proscenium::invisible::one_line(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_told_in_the_order_in_which_they_work() {
        let sql = "SELECT status, count(*) AS orders FROM orders WHERE order_date >= '2026-01-01 from where' \
                   GROUP BY status HAVING count(*) > 3 ORDER BY orders DESC LIMIT 5;";
        insta::assert_snapshot!(explained(sql, &DatabaseDescription::default(), Speech::En), @r"
        This query, in the order in which it works:
        - reads from `orders`
        - keeps only rows with `order_date >= '2026-01-01 from where'`
        - groups by `status`
        - keeps only groups with `count(*) > 3`
        - shows `status, count(*) AS orders`
        - orders by `orders DESC`
        - stops after (rows) `5`
        ");
    }

    #[test]
    fn inner_queries_stay_in_their_clause_and_changes_are_said() {
        let sql = "SELECT name FROM (SELECT name FROM products WHERE price > 3) AS dear";
        let told = explained(sql, &DatabaseDescription::default(), Speech::It);
        assert!(told.contains("legge da `(SELECT name FROM products WHERE price > 3) AS dear`"), "{told}");
        assert!(!told.contains("tiene solo"), "{told}");
        let told = explained("DELETE FROM orders", &DatabaseDescription::default(), Speech::En);
        assert!(told.contains("DELETE") && told.contains("not run here"), "{told}");
    }
}
