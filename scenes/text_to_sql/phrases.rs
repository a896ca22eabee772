//! The sentences of the scene, in five languages.

/// A language of these sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Italian.
    It,
    /// English, and every other language.
    En,
    /// French.
    Fr,
    /// German.
    De,
    /// Spanish.
    Es,
}

impl Speech {
    /// The language with an ISO 639-1 code, perhaps with a region.
    pub fn of(language: Option<&str>) -> Self {
        match language.and_then(|code| code.get(..2)) {
            Some("it") => Self::It,
            Some("fr") => Self::Fr,
            Some("de") => Self::De,
            Some("es") => Self::Es,
            _ => Self::En,
        }
    }

    /// Its code.
    pub fn code(self) -> &'static str {
        self.pick(["it", "en", "fr", "de", "es"])
    }

    /// The text in this language, of those in Italian, English, French, German and Spanish.
    pub fn pick(self, texts: [&'static str; 5]) -> &'static str {
        let [it, en, fr, de, es] = texts;
        match self {
            Self::It => it,
            Self::En => en,
            Self::Fr => fr,
            Self::De => de,
            Self::Es => es,
        }
    }

    /// That a query found nothing.
    pub fn no_rows(self) -> &'static str {
        self.pick([
            "Nessuna riga corrisponde.",
            "No rows match.",
            "Aucune ligne ne correspond.",
            "Keine Zeile passt.",
            "Ninguna fila coincide.",
        ])
    }

    /// That further rows are not shown.
    pub fn more_rows(self, more: usize) -> String {
        self.pick([
            "… e altre {n} righe, che qui non sono mostrate.",
            "… and {n} more rows, which are not shown here.",
            "… et {n} autres lignes, qui ne sont pas affichées ici.",
            "… und {n} weitere Zeilen, die hier nicht gezeigt werden.",
            "… y {n} filas más, que no se muestran aquí.",
        ])
        .replace("{n}", &more.to_string())
    }

    /// That the database has more rows than were read.
    pub fn truncated(self, read: usize) -> String {
        self.pick([
            "Il risultato è incompleto: sono state lette solo le prime {n} righe.",
            "The result is incomplete: only the first {n} rows were read.",
            "Le résultat est incomplet : seules les {n} premières lignes ont été lues.",
            "Das Ergebnis ist unvollständig: Nur die ersten {n} Zeilen wurden gelesen.",
            "El resultado está incompleto: solo se han leído las primeras {n} filas.",
        ])
        .replace("{n}", &read.to_string())
    }

    /// Yes or no.
    pub fn truth(self, value: bool) -> &'static str {
        match value {
            true => self.pick(["sì", "yes", "oui", "ja", "sí"]),
            false => self.pick(["no", "no", "non", "nein", "no"]),
        }
    }

    /// That a statement is valid.
    pub fn valid(self) -> &'static str {
        self.pick([
            "La query è valida:",
            "The query is valid:",
            "La requête est valide :",
            "Die Abfrage ist gültig:",
            "La consulta es válida:",
        ])
    }

    /// What introduces a statement that was corrected.
    pub fn corrected(self) -> &'static str {
        self.pick([
            "La query corretta:",
            "The corrected query:",
            "La requête corrigée :",
            "Die korrigierte Abfrage:",
            "La consulta corregida:",
        ])
    }

    /// What introduces a statement that was written and not executed.
    pub fn written(self) -> &'static str {
        self.pick([
            "La query, che non è stata eseguita:",
            "The query, which was not run:",
            "La requête, qui n'a pas été exécutée :",
            "Die Abfrage, die nicht ausgeführt wurde:",
            "La consulta, que no se ha ejecutado:",
        ])
    }

    /// What was wrong with a statement that was corrected.
    pub fn what_was_wrong(self) -> &'static str {
        self.pick([
            "Che cosa non andava:", "What was wrong:", "Ce qui n'allait pas :", "Was nicht stimmte:",
            "Qué estaba mal:",
        ])
    }

    /// What introduces why a statement is not executed.
    pub fn not_valid(self) -> &'static str {
        self.pick([
            "Questa query non può essere eseguita:",
            "This query cannot be run:",
            "Cette requête ne peut pas être exécutée :",
            "Diese Abfrage kann nicht ausgeführt werden:",
            "Esta consulta no se puede ejecutar:",
        ])
    }

    /// That no query was found that answers the question.
    pub fn given_up(self) -> &'static str {
        self.pick([
            "Non sono riuscito a scrivere una query che risponda alla domanda.",
            "I could not write a query that answers the question.",
            "Je n'ai pas réussi à écrire une requête qui réponde à la question.",
            "Ich konnte keine Abfrage schreiben, die die Frage beantwortet.",
            "No he podido escribir una consulta que responda a la pregunta.",
        ])
    }

    /// That an answer needs tables that may not be read.
    pub fn needs_tables(self, tables: &[String]) -> String {
        self.pick([
            "Per rispondere servirebbero tabelle che non si possono leggere senza approvazione: {t}.",
            "An answer would need tables that may not be read without approval: {t}.",
            "Une réponse demanderait des tables qui ne peuvent être lues sans approbation : {t}.",
            "Für eine Antwort wären Tabellen nötig, die ohne Freigabe nicht gelesen werden dürfen: {t}.",
            "Para responder harían falta tablas que no se pueden leer sin aprobación: {t}.",
        ])
        .replace("{t}", &tables.join(", "))
    }

    /// That data is not changed.
    pub fn only_reads(self) -> &'static str {
        self.pick([
            "I dati qui si possono solo leggere: non aggiungo, modifico né elimino nulla.",
            "Data can only be read here: I do not add, change or delete anything.",
            "Ici, les données peuvent seulement être lues : je n'ajoute, ne modifie et ne supprime rien.",
            "Daten können hier nur gelesen werden: Ich füge nichts hinzu, ändere und lösche nichts.",
            "Aquí los datos solo se pueden leer: no añado, modifico ni elimino nada.",
        ])
    }

    /// What introduces the list of tables.
    pub fn tables(self, database: &str) -> String {
        self.pick([
            "Le tabelle del database {d}:",
            "The tables of the database {d}:",
            "Les tables de la base {d} :",
            "Die Tabellen der Datenbank {d}:",
            "Las tablas de la base de datos {d}:",
        ])
        .replace("{d}", database)
    }

    /// What introduces the columns of a table.
    pub fn columns(self) -> &'static str {
        self.pick(["Le colonne:", "Its columns:", "Ses colonnes :", "Ihre Spalten:", "Sus columnas:"])
    }

    /// What can be asked.
    pub fn can_be_asked(self) -> &'static str {
        self.pick([
            "Puoi chiedere quanti, quali, elenchi, somme, medie, i primi o per mese; oppure far controllare, correggere o spiegare una query SQL.",
            "You can ask how many, which, for lists, totals, averages, the top ones or by month; or have an SQL query checked, corrected or explained.",
            "Vous pouvez demander combien, lesquels, des listes, des totaux, des moyennes, les premiers ou par mois ; ou faire vérifier, corriger ou expliquer une requête SQL.",
            "Sie können fragen, wie viele oder welche, nach Listen, Summen, Mittelwerten, den ersten oder pro Monat; oder eine SQL-Abfrage prüfen, korrigieren oder erklären lassen.",
            "Puede preguntar cuántos, cuáles, por listas, totales, medias, los primeros o por mes; o hacer comprobar, corregir o explicar una consulta SQL.",
        ])
    }

    /// That the rules do not read this language.
    pub fn no_rules(self) -> &'static str {
        self.pick([
            "Senza un modello capisco domande in italiano e in inglese.",
            "Without a model, I understand questions in English and Italian.",
            "Sans modèle, je comprends les questions en anglais et en italien.",
            "Ohne Modell verstehe ich Fragen auf Englisch und Italienisch.",
            "Sin un modelo, entiendo preguntas en inglés y en italiano.",
        ])
    }

    /// That no rows were given.
    pub fn no_given_rows(self) -> &'static str {
        self.pick([
            "Non ci sono righe da mostrare.",
            "There are no rows to show.",
            "Il n'y a pas de lignes à afficher.",
            "Es gibt keine Zeilen zu zeigen.",
            "No hay filas que mostrar.",
        ])
    }

    /// What the user reads when the database does not answer.
    pub fn database_unavailable(self) -> &'static str {
        self.pick([
            "Al momento il database non risponde.",
            "The database does not answer at the moment.",
            "La base de données ne répond pas pour le moment.",
            "Die Datenbank antwortet im Moment nicht.",
            "La base de datos no responde en este momento.",
        ])
    }
}
