//! What was understood of a question, and why one is declined, in the language of the question.

use super::description::DatabaseDescription;
use super::draft::column_of;
use super::lexicon::{Beyond, Comparison, Direction, Function, Period};
use super::request::{Answer, Condition, Group, Literal, Related, Request, Test};
use super::vocabulary::ColumnAt;
use super::{Reason, Tongue, numbers_of};

/// A text in both languages.
type Both = (&'static str, &'static str);

fn pick((english, italian): Both, tongue: Tongue) -> &'static str {
    match tongue {
        Tongue::English => english,
        Tongue::Italian => italian,
    }
}

/// What was understood: one sentence.
pub fn understood(request: &Request, database: &DatabaseDescription, tongue: Tongue) -> String {
    let teller = Teller { request, database, tongue };
    let mut parts = vec![teller.subject()];
    parts.extend(request.conditions.iter().map(|condition| teller.condition(condition)));
    parts.extend(request.related.iter().map(|related| teller.related(related)));
    parts.extend(request.groups.iter().map(|group| teller.group(group)));
    parts.extend(request.order.iter().map(|(column, direction)| teller.order(*column, *direction)));
    parts.extend(request.ranked.map(|direction| teller.rank(direction).to_owned()));
    if let Some(limit) = request.limit {
        parts.push(format!("{} {limit}", teller.say(("at most", "al massimo"))));
    }
    format!("{}.", parts.join(", "))
}

struct Teller<'a> {
    request: &'a Request,
    database: &'a DatabaseDescription,
    tongue: Tongue,
}

impl Teller<'_> {
    fn say(&self, both: Both) -> &'static str {
        pick(both, self.tongue)
    }

    fn table(&self, at: usize) -> String {
        self.database.tables.get(at).map_or_else(String::new, |table| format!("`{}`", table.name))
    }

    fn column(&self, at: ColumnAt) -> String {
        let own = column_of(self.database, at).map_or("", |column| column.name.as_str());
        let table = self.database.tables.get(at.0).filter(|_| at.0 != self.request.main);
        table.map_or_else(|| format!("`{own}`"), |table| format!("`{}.{own}`", table.name))
    }

    fn columns(&self, list: &[ColumnAt]) -> String {
        list.iter().map(|column| self.column(*column)).collect::<Vec<_>>().join(", ")
    }

    fn subject(&self) -> String {
        let main = self.table(self.request.main);
        let joined = self.request.join.map_or_else(String::new, |join| {
            format!("{}{}", self.say((" joined with ", " insieme a ")), self.table(join.table))
        });
        let far: Vec<String> = self.request.far.iter().flatten().map(|join| self.table(join.table)).collect();
        let joined = match far.as_slice() {
            [] => joined,
            tables => format!("{}{}", self.say((" joined with ", " insieme a ")), tables.join(", ")),
        };
        let of = |what: String| format!("{what} {} {main}{joined}", self.say(("of", "di")));
        match &self.request.answer {
            Answer::Rows { columns, .. } if columns.is_empty() => of(self.say(("Rows", "Righe")).to_owned()),
            Answer::Rows { columns, distinct: true } => of(format!(
                "{} {}",
                self.say(("Different values of", "Valori diversi di")),
                self.columns(columns)
            )),
            Answer::Rows { columns, .. } => {
                of(format!("{} {}", self.say(("Values of", "Valori di")), self.columns(columns)))
            }
            Answer::Count => of(self.say(("Number of rows", "Numero di righe")).to_owned()),
            Answer::CountDistinct(column) => {
                let words = self.say(("Number of different values of", "Numero di valori diversi di"));
                of(format!("{words} {}", self.column(*column)))
            }
            Answer::Aggregates(list, _) => {
                let one = |(function, column): &(Function, ColumnAt)| {
                    format!("{} {}", self.say(function_words(*function)), self.column(*column))
                };
                of(capital(&list.iter().map(one).collect::<Vec<_>>().join(", ")))
            }
            Answer::Extreme(column, direction, _) => {
                let words = match direction {
                    Direction::Down => ("Rows with the highest", "Righe con il massimo di"),
                    Direction::Up => ("Rows with the lowest", "Righe con il minimo di"),
                };
                of(format!("{} {}", self.say(words), self.column(*column)))
            }
            Answer::Most => {
                let other = self.request.join.map_or_else(String::new, |join| self.table(join.table));
                format!(
                    "{} {main} {} {other}",
                    self.say(("Rows of", "Righe di")),
                    self.say(("with the most", "con più"))
                )
            }
            Answer::BusiestPeriod(column, period) => {
                let period = self.group(&Group::Period(*column, *period));
                let words = self.say(("Highest number of rows", "Massimo numero di righe"));
                format!("{} {period}", of(words.to_owned()))
            }
            Answer::MostCommon(column) => of(format!(
                "{} {}",
                self.say(("Most common value of", "Valore più comune di")),
                self.column(*column)
            )),
        }
    }

    fn condition(&self, condition: &Condition) -> String {
        let column = self.column(condition.column);
        let or = self.say((" or ", " o "));
        let list = |values: &[Literal]| values.iter().map(literal).collect::<Vec<_>>().join(or);
        match &condition.test {
            Test::OneOf(values) => format!("{column} {} {}", self.say(("is", "è")), list(values)),
            Test::NoneOf(values) => format!("{column} {} {}", self.say(("is not", "non è")), list(values)),
            Test::Compare(comparison, number) => {
                format!("{column} {} {number}", self.say(comparison_words(*comparison)))
            }
            Test::Between(low, high) => {
                format!("{column} {} {low} {} {high}", self.say(("from", "da")), self.say(("to", "a")))
            }
            Test::Is(true) => format!("{column} {}", self.say(("is true", "è vero"))),
            Test::Is(false) => format!("{column} {}", self.say(("is false", "è falso"))),
            Test::Null => format!("{column} {}", self.say(("is empty", "è vuoto"))),
            Test::NotNull => format!("{column} {}", self.say(("is not empty", "non è vuoto"))),
            Test::Days(from, to) => {
                let from = from.map(|day| format!(" {} {day}", self.say(("from", "dal"))));
                let last = to.and_then(|day| day.yesterday().ok());
                let to = last.map(|day| format!(" {} {day}", self.say(("up to", "fino al"))));
                format!("{column}{}{}", from.unwrap_or_default(), to.unwrap_or_default())
            }
            Test::Year(year) => {
                let test = numbers_of(*year).unwrap_or(Test::NotNull);
                self.condition(&Condition { column: condition.column, test })
            }
            Test::Like(_, text, _) => format!("{column} {} '{text}'", self.say(("matches", "corrisponde a"))),
        }
    }

    fn related(&self, related: &Related) -> String {
        let number = match (related.comparison, related.number) {
            (Comparison::Equal, 0) => self.say(("no", "nessuna")).to_owned(),
            (Comparison::Equal, number) => format!("{} {number}", self.say(("exactly", "esattamente"))),
            (Comparison::More, number) => format!("{} {number}", self.say(("more than", "più di"))),
            (_, number) => format!("{} {number}", self.say(("at least", "almeno"))),
        };
        let words = self.say(("with {} rows of", "con {} righe di")).replace("{}", &number);
        let words = if related.number == 0 { words.replace("nessuna righe", "nessuna riga") } else { words };
        let conditions: String =
            related.conditions.iter().map(|condition| format!(" ({})", self.condition(condition))).collect();
        format!("{words} {}{conditions}", self.table(related.join.table))
    }

    fn group(&self, group: &Group) -> String {
        let by = self.say(("by", "per"));
        match group {
            Group::Column(column) => format!("{by} {}", self.column(*column)),
            Group::Parent(_, table) => format!("{by} {}", self.table(*table)),
            Group::Period(column, period) => {
                let words = match period {
                    Period::Day => ("day of", "giorno di"),
                    Period::Month => ("month of", "mese di"),
                    Period::Year => ("year of", "anno di"),
                };
                format!("{by} {} {}", self.say(words), self.column(*column))
            }
        }
    }

    fn rank(&self, direction: Direction) -> &'static str {
        self.say(match direction {
            Direction::Up => ("the lowest first", "dal più basso"),
            Direction::Down => ("the highest first", "dal più alto"),
        })
    }

    fn order(&self, column: ColumnAt, direction: Direction) -> String {
        let words = match direction {
            Direction::Up => ("in ascending order of", "in ordine crescente di"),
            Direction::Down => ("in descending order of", "in ordine decrescente di"),
        };
        format!("{} {}", self.say(words), self.column(column))
    }
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Text(text) => format!("'{text}'"),
        Literal::Number(number) => number.clone(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn function_words(function: Function) -> Both {
    match function {
        Function::Average => ("average", "media di"),
        Function::Sum => ("total", "totale di"),
        Function::Max => ("highest", "massimo di"),
        Function::Min => ("lowest", "minimo di"),
    }
}

fn comparison_words(comparison: Comparison) -> Both {
    match comparison {
        Comparison::Equal => ("is", "è"),
        Comparison::NotEqual => ("is not", "non è"),
        Comparison::More => ("is more than", "è maggiore di"),
        Comparison::AtLeast => ("is at least", "è almeno"),
        Comparison::Less => ("is less than", "è minore di"),
        Comparison::AtMost => ("is at most", "è al massimo"),
    }
}

/// What the rules can do, after each reason.
const ABILITIES: Both = (
    "I can count, filter, group, sum and sort the rows of one table, with one more table that it refers to.",
    "So contare, filtrare, raggruppare, sommare e ordinare le righe di una tabella, con un'altra a cui si riferisce.",
);

/// Why a question is declined, and what the rules can do.
pub fn declined(reason: &Reason, tongue: Tongue) -> String {
    let why = match (reason, about_a_word(reason)) {
        (Reason::Ambiguous(word, [one, other]), _) => {
            let both = (
                "“{}” may be about `{one}` or `{other}`; please name the one that is meant.",
                "«{}» può riguardare `{one}` o `{other}`: indica quale.",
            );
            pick(both, tongue).replace("{one}", one).replace("{other}", other).replace("{}", word)
        }
        (_, Some((both, word))) => pick(both, tongue).replace("{}", word),
        (_, None) => pick(about_all(reason), tongue).to_owned(),
    };
    format!("{why} {}", pick(ABILITIES, tongue))
}

/// A reason with the word that it is about.
fn about_a_word(reason: &Reason) -> Option<(Both, &str)> {
    Some(match reason {
        Reason::UnknownWord(word) => {
            (("I do not know what “{}” means here.", "Non so che cosa significhi «{}» qui."), word)
        }
        Reason::Unclear(word) => {
            (("It is not clear what “{}” refers to.", "Non è chiaro a che cosa si riferisca «{}»."), word)
        }
        Reason::NoSuchValue(value) => {
            (("There is no “{}” in the database.", "«{}» non c'è nel database."), value)
        }
        Reason::TooFar(word) => (
            (
                "“{}” is not in the table that the question is about, nor in one next to it.",
                "«{}» non è nella tabella di cui si parla, né in una collegata direttamente.",
            ),
            word,
        ),
        Reason::UnclearDate(date) => (
            (
                "I cannot tell which date “{}” is; please write it with the year, such as 2026-03-05.",
                "Non so quale data sia «{}»; scrivila con l'anno, per esempio 2026-03-05.",
            ),
            date,
        ),
        Reason::Earlier(word) => (
            (
                "“{}” stands for something that is not in this question; please name it.",
                "«{}» sta per qualcosa che non è in questa domanda: indicalo.",
            ),
            word,
        ),
        Reason::LooseNumber(number) => {
            (("It is not clear what “{}” is about.", "Non è chiaro a che cosa si riferisca «{}»."), number)
        }
        Reason::Unit(unit) => (("The values are not in {}.", "I valori non sono in {}."), unit),
        _ => return None,
    })
}

/// A reason that is about the question as a whole.
fn about_all(reason: &Reason) -> Both {
    match reason {
        Reason::NoTime => {
            ("These rows have no date of that kind.", "Queste righe non hanno una data di questo tipo.")
        }
        Reason::WhichDay => (
            "These rows have more than one day or year; please say which one is meant.",
            "Queste righe hanno più di un giorno o di un anno: indica quale.",
        ),
        Reason::HowMany => (
            "How many of them? Please say a number, such as the top 5.",
            "Quanti? Indica un numero, per esempio i primi 5.",
        ),
        Reason::Who => (
            "It is not clear who is meant. Please name them, such as the customers.",
            "Non è chiaro chi si intenda. Indica per esempio i clienti.",
        ),
        Reason::HowMuch => (
            "It is not clear which amount is meant. Please ask for the sum or the list of an amount, and of which state.",
            "Non è chiaro quale importo si intenda. Chiedi la somma o l'elenco di un importo, e di quale stato.",
        ),
        Reason::ListedByGroup => (
            "Do you want the rows or how many there are in each group? Please ask for the number or for a list.",
            "Vuoi le righe o quante ce ne sono in ogni gruppo? Chiedi il numero oppure l'elenco.",
        ),
        Reason::Beyond(beyond) => beyond_words(*beyond),
        Reason::YesOrNo => {
            ("Please ask how many there are, or for a list.", "Chiedi quanti sono, oppure un elenco.")
        }
        Reason::NothingAsked => {
            ("I do not see which table this is about.", "Non vedo a quale tabella si riferisca la domanda.")
        }
        _ => (
            "I understood the question only in part, so I do not answer it.",
            "Ho capito la domanda solo in parte, quindi non rispondo.",
        ),
    }
}

fn beyond_words(beyond: Beyond) -> Both {
    match beyond {
        Beyond::Why => ("The data does not say why.", "I dati non dicono il perché."),
        Beyond::Prediction => (
            "The data says what was, not what will or would be.",
            "I dati dicono che cosa è stato, non che cosa sarà o sarebbe.",
        ),
        Beyond::Write => {
            ("Data is only read here, never changed.", "Qui i dati si leggono soltanto, non si modificano.")
        }
        Beyond::Ratio => (
            "Without a model I do not compute shares, ratios and trends.",
            "Senza un modello non calcolo quote, rapporti e andamenti.",
        ),
        Beyond::Judgement => (
            "Please say by which value this is to be judged, such as the highest price.",
            "Indica in base a quale valore, per esempio il prezzo più alto.",
        ),
        Beyond::Steps => (
            "This takes more steps than I can do without a model.",
            "Per questo servono più passaggi di quanti ne so fare senza un modello.",
        ),
    }
}
