//! The words of a question that are about no database in particular: what is asked, comparisons, groups, order.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Tongue;

/// What a word or phrase does in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Nothing: articles, pronouns, "show me".
    Filler,
    /// "of", "in", "from": links what follows.
    Link,
    /// A verb that only ties a thing to what it is tied to: "placed by", "taught by". What follows must say what.
    Tie,
    /// "with", "have".
    With,
    /// "where", which leads conditions, but not questions.
    Where,
    /// "how much": a value of one thing.
    HowMuch,
    /// "with a", "who have a": the thing is there.
    WithA,
    /// "with their", "along with": shown too.
    WithTheir,
    /// "which", "what".
    Which,
    /// "and", a comma.
    And,
    /// "or".
    Or,
    /// "not".
    Not,
    /// "without", "with no".
    Without,
    /// "have never placed an": there is none of what follows.
    Never,
    /// "at least one": there is one or more of what follows.
    AtLeastOne,
    /// "is missing", "is empty".
    Missing,
    /// "is known", "is not empty".
    Present,
    /// "how many".
    Count,
    /// "different".
    Distinct,
    /// "by": links a value, or groups.
    By,
    /// "per", in Italian also "for".
    Per,
    /// "each", "every".
    Each,
    /// "sorted by".
    SortedBy,
    /// "ascending".
    Ascending,
    /// "descending".
    Descending,
    /// "alphabetically".
    Alphabetical,
    /// "newest first".
    NewestFirst,
    /// "oldest first".
    OldestFirst,
    /// "average", "total".
    Aggregate(Function),
    /// "highest", "lowest".
    Extreme(Direction),
    /// "most expensive", "cheapest".
    Quality(Quality, Direction),
    /// "best", of a rating.
    Best(Direction),
    /// "most", of a number of things.
    Most,
    /// "fewest".
    Fewest,
    /// "most common".
    MostCommon,
    /// "top", "first".
    Top,
    /// "more than".
    Than(Comparison),
    /// "between".
    Between,
    /// "or more", after a number.
    OrMore,
    /// "or less", after a number.
    OrLess,
    /// "contains".
    Contains,
    /// "starts with".
    StartsWith,
    /// "ends with".
    EndsWith,
    /// "month", after "per".
    Period(Period),
    /// "monthly", "per month".
    PerPeriod(Period),
    /// A verb of price or weight: "cost more than".
    Verb(Quality),
    /// "million": so many zeros.
    Scale(usize),
    /// "when".
    When,
    /// "in total": a count or a sum.
    Total,
    /// A unit: "euros".
    Unit(&'static str),
    /// What the rules cannot do, and why.
    Beyond(Beyond),
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The mean of the values that are there.
    Average,
    /// The sum.
    Sum,
    /// The greatest.
    Max,
    /// The least.
    Min,
}

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The greatest first.
    Down,
    /// The least first.
    Up,
}

/// A quality that adjectives and verbs are about, and columns have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    /// A price.
    Price,
    /// A weight.
    Weight,
    /// A moment.
    Time,
    /// A birthday, backwards: the youngest is born last.
    Birth,
    /// A rating.
    Rating,
    /// A wage.
    Pay,
    /// A duration.
    Length,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// More.
    More,
    /// As much or more.
    AtLeast,
    /// Less.
    Less,
    /// As much or less.
    AtMost,
}

/// A period that rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Days.
    Day,
    /// Months of a year.
    Month,
    /// Years.
    Year,
}

/// What the rules cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Reasons.
    Why,
    /// What will happen, what would.
    Prediction,
    /// Changing data.
    Write,
    /// Shares, ratios, growth.
    Ratio,
    /// What is best, important, strange.
    Judgement,
    /// A comparison with something that is to be computed first, or among groups.
    Steps,
}

use Comparison as C;
use Direction::{Down, Up};
use Function as F;
use Period as P;
use Quality as Q;
use Role as R;

/// A phrase, by its words.
struct RolePhrase {
    role: Role,
    words: Vec<&'static str>,
}

/// The phrases of a language by their first word, in the order of the lists.
type RolePhrases = HashMap<&'static str, Vec<RolePhrase>>;

static ENGLISH_PHRASES: LazyLock<RolePhrases> = LazyLock::new(|| by_first_word(ENGLISH));
static ITALIAN_PHRASES: LazyLock<RolePhrases> = LazyLock::new(|| by_first_word(ITALIAN));

fn by_first_word(list: &[(Role, &'static str)]) -> RolePhrases {
    let mut found = RolePhrases::new();
    for (role, phrases) in list {
        for phrase in phrases.split('|') {
            let words: Vec<&'static str> = phrase.trim().split(' ').collect();
            if let Some(first) = words.first() {
                found.entry(first).or_default().push(RolePhrase { role: *role, words });
            }
        }
    }
    found
}

/// The longest phrase of the language that these words begin with: its role, and how many words. Of phrases of the same
/// length, the first one of the lists.
pub fn phrase(words: &[&str], tongue: Tongue) -> Option<(Role, usize)> {
    let phrases = match tongue {
        Tongue::English => &ENGLISH_PHRASES,
        Tongue::Italian => &ITALIAN_PHRASES,
    };
    let mut best = after_article(words, tongue);
    for RolePhrase { role, words: own } in phrases.get(*words.first()?).into_iter().flatten() {
        let len = own.len();
        let compares = matches!(role, R::Quality(..))
            && matches!(words.get(len), Some(&("di" | "than")))
            && own.last() == Some(&"meno");
        if words.starts_with(own) && !compares && best.is_none_or(|(_, other)| len > other) {
            best = Some((*role, len));
        }
    }
    best
}

/// "The most expensive" is "most expensive", not "the most" and something.
fn after_article(words: &[&str], tongue: Tongue) -> Option<(Role, usize)> {
    let (first, rest) = words.split_first()?;
    if !["the", "il", "lo", "la", "i", "gli", "le", "l"].contains(first) {
        return None;
    }
    let (role, len) = phrase(rest, tongue)?;
    matches!(role, R::Quality(..) | R::MostCommon | R::Extreme(_) | R::Aggregate(_))
        .then_some((role, len + 1))
}

const ENGLISH: &[(Role, &str)] = &[
    (
        R::Filler,
        "a|an|the|me|please|whats|what re|to date|in the company|in our company|within the company|do we offer|we offer|that we offer|do we run|do we get|did we get|we get|we got|pls|kindly show|show|show me|list|find|give|give me|tell me|tell|display|get|fetch|return|i|we|our|us|you|my|all|all the|all of the|any|there|that|these|those|who|whose|whom|is|are|was|were|be|been|do|does|did|it|them|they|can you|could you|i want to see|i want|i would like|i d like|i want to know|i need|let me see|what s|s|so far|in the database|in our database|in the catalogue|in our catalogue|currently|hello|hi|thanks|thank you|kindly|exist|a list of|the list of|list of|can you show me|could you show me|could you tell me|can you tell me|do we have|do you have|we have|you have|have we got|have been|has been|had been|there are|are there|what are|what is|which are|which is|named|called|recorded in the database|on record|registered in the database|titled|entitled|have got|see|know|to|for me|employ|assigned|given|charged|applied|did we receive|have we received|we received|we have received|yet|already|still|possible|only show|show only|list only|show me only|on file|used|use|to the catalogue|to our catalogue|to the catalog|catalogue|catalog",
    ),
    (
        R::Link,
        "of|in|from|at|on|to|within|into|equal to|equals|equal|as|for|through|via|by means of|using|set to|inside|whose|than|among|regarding|concerning|related to|=|:",
    ),
    (
        R::Link,
        "live in|lives in|living in|lived in|based in|are based in|is based in|located in|are located in|situated in|come from|comes from|coming from|resident in|residing in|reside in|work as|works as|working as|work in|works in|working in|belong to|belongs to|belonging to|live|lives|came|came in|came through|came in through|came from|come through|come in through|take place|takes place|took place|worth|come|based|located|work|made with|paid with",
    ),
    (R::By, "by"),
    (
        R::Tie,
        "scheduled|planned|scheduled for|planned for|placed|made|made by|placed by|supplied|supplied by|place|make|take|deliver|provided|provided by|provides|provide|runs|taught|taught by|written|written by|wrote|offer|offers|offered|offered by|run by|managed by|handled by|taken by|received by|received|receive|receives|given by|submitted by|posted by|supply|supplies|teach|teaches|issued by|granted to|awarded to|sold by|delivered by|left by|get|gets|got|contain|attended by|about",
    ),
    (R::With, "with|have|has|had|having|who have|that have|which have|who has|that has|whose"),
    (R::Where, "where"),
    (R::HowMuch, "how much|how much is|how much are"),
    (
        R::WithA,
        "with a|with an|who have a|who have an|that have a|that have an|which have a|which have an|has a|has an|have a|have an|having a|with any|with some|who gave a|who gave us a|who gave their|have given a",
    ),
    (
        R::WithTheir,
        "its|their|with their|with its|with his|along with|along with their|along with its|along with the|together with|together with their|together with its|together with the|and their|and its|showing|including|with the corresponding|and the corresponding|with the name of the|with the names of the|with the name of their|with the name of its|and the name of their|and the name of its|and the name of the",
    ),
    (R::Which, "which|what"),
    (R::And, "and|,|;|but|as well as|and also"),
    (R::Or, "or|or in|or from|and or"),
    (
        R::Not,
        "no longer|not|don t|doesn t|didn t|isn t|aren t|wasn t|weren t|haven t|hasn t|non|other than|except|excluding|not in|are not|is not|do not|does not|different from|anything but",
    ),
    (
        R::Without,
        "no|gave no|provided no|left no|without|without a|without an|without any|with no|have no|has no|lacking|lacking a|lack|lack a|that have no|who have no|who has no|don t have|don t have a|don t have an|don t have any|do not have|do not have a|do not have an|do not have any|out of|run out of|do we not know|don t we know|we don t know|we do not know|do not know|don t know|doesn t have|doesn t have a|doesn t have an|does not have|does not have a|does not have an|haven t got|have not given a|have not given their|never gave a|did not give a|didn t give a|did not give their|have no known|with no known|without a known",
    ),
    (R::AtLeastOne, "at least one|at least a|at least an|one or more"),
    (
        R::Never,
        "have never placed an|has never placed an|never placed an|who have never placed an|that have never placed an|which have never placed an|who never placed an|that never placed an|have never placed any|has never placed any|never placed any|who have never placed any|that have never placed any|which have never placed any|who never placed any|that never placed any|have not placed any|haven t placed any|have not yet placed any|haven t yet placed any|who have not placed any|who haven t placed any|have never made an|has never made an|never made an|who have never made an|that have never made an|which have never made an|who never made an|that never made an|have never made any|has never made any|never made any|who have never made any|that have never made any|which have never made any|who never made any|that never made any|have not made any|haven t made any|have not yet made any|haven t yet made any|who have not made any|who haven t made any|have never written a|has never written a|never written a|who have never written a|that have never written a|which have never written a|who never written a|that never written a|have never written any|has never written any|never written any|who have never written any|that have never written any|which have never written any|who never written any|that never written any|have not written any|haven t written any|have not yet written any|haven t yet written any|who have not written any|who haven t written any|have never received a|has never received a|never received a|who have never received a|that have never received a|which have never received a|who never received a|that never received a|have never received any|has never received any|never received any|who have never received any|that have never received any|which have never received any|who never received any|that never received any|have not received any|haven t received any|have not yet received any|haven t yet received any|who have not received any|who haven t received any|have never had a|has never had a|never had a|who have never had a|that have never had a|which have never had a|who never had a|that never had a|have never had any|has never had any|never had any|who have never had any|that have never had any|which have never had any|who never had any|that never had any|have not had any|haven t had any|have not yet had any|haven t yet had any|who have not had any|who haven t had any|did not place any|didn t place any|do not place any|don t place any|does not place any|doesn t place any|did not make any|didn t make any|do not make any|don t make any|does not make any|doesn t make any|did not write any|didn t write any|do not write any|don t write any|does not write any|doesn t write any|did not receive any|didn t receive any|do not receive any|don t receive any|does not receive any|doesn t receive any|did not teach any|didn t teach any|do not teach any|don t teach any|does not teach any|doesn t teach any|did not supply any|didn t supply any|do not supply any|don t supply any|does not supply any|doesn t supply any|placed no|wrote no|received no|teach no|supply no|who never wrote a|never wrote a|that never wrote a|never wrote any",
    ),
    (
        R::Missing,
        "is missing|are missing|missing|is empty|are empty|empty|is null|are null|is unknown|is not known|not known|unknown|is not set|is not given|not given|is not specified|is not available",
    ),
    (R::Present, "is known|are known|is not empty|is not null|is not missing|is given|is set"),
    (
        R::Count,
        "how many|the number of|number of|count|count of|the count of|count the|count the number of|total number of|the total number of|how many of|count how many|number|the total count of|amount of times|what is the number of|what is the total number of|how large is the number of",
    ),
    (R::Distinct, "without duplicates|without repetitions|different|distinct|unique|separate"),
    (
        R::Per,
        "per|for each|for every|in each|in every|by each|of each|of every|broken down by|grouped by|split by|divided by|at each|from each|on each|per each|by single|within each|group by|grouped according to",
    ),
    (R::Each, "each|every"),
    (
        R::SortedBy,
        "sorted by|ordered by|sort by|order by|sort them by|order them by|in order of|ranked by|sorted according to|sort|arranged by|listed by|by order of|sorted on",
    ),
    (
        R::Ascending,
        "ascending|in ascending order|from lowest to highest|from low to high|lowest first|smallest first|cheapest first|from smallest to largest|from the cheapest to the most expensive|from cheapest to most expensive|from the lowest to the highest|in increasing order|starting from the lowest|starting with the lowest|starting from the cheapest|starting with the cheapest|asc",
    ),
    (
        R::Descending,
        "descending|in descending order|from most to least|from most to fewest|from the most to the fewest|most first|the most first|most frequent first|the most frequent first|most common first|the most common first|from highest to lowest|from high to low|highest first|largest first|biggest first|most expensive first|from largest to smallest|from the most expensive to the cheapest|from most expensive to cheapest|from the highest to the lowest|in decreasing order|starting from the highest|starting with the highest|starting with the most expensive|starting from the most expensive|desc",
    ),
    (
        R::Alphabetical,
        "alphabetically|in alphabetical order|in alphabetic order|sorted alphabetically|ordered alphabetically|from a to z|sorted in alphabetical order",
    ),
    (
        R::NewestFirst,
        "newest first|latest first|most recent first|the newest first|the most recent first|from newest to oldest|starting with the most recent|starting from the most recent|from the newest to the oldest|from the most recent to the oldest",
    ),
    (
        R::OldestFirst,
        "oldest first|earliest first|from oldest to newest|the oldest first|chronologically|in chronological order|sorted chronologically|from the oldest to the newest|starting from the oldest|starting with the oldest",
    ),
    (R::Aggregate(F::Average), "average|the average|mean|on average|avg|averaged|average of"),
    (
        R::Aggregate(F::Sum),
        "total|sum of|sum|the sum of|the total|the sum of the|the total of|total of|sum up|combined|overall total|add up|total sum of",
    ),
    (R::Aggregate(F::Max), "maximum|max|the maximum"),
    (R::Aggregate(F::Min), "minimum|min|the minimum"),
    (
        R::Extreme(Down),
        "highest|the highest|largest|richest|the largest|greatest|biggest|the greatest|the biggest",
    ),
    (R::Extreme(Up), "lowest|the lowest|smallest|the smallest"),
    (
        R::Quality(Q::Price, Down),
        "most expensive|costliest|priciest|dearest|costs the most|costs most|cost the most|highest priced|with the highest price tag",
    ),
    (
        R::Quality(Q::Price, Up),
        "cheapest|least expensive|costs the least|cost the least|lowest priced|most economical",
    ),
    (R::Quality(Q::Weight, Down), "heaviest|weighs the most|weigh the most|weighs most"),
    (R::Quality(Q::Weight, Up), "lightest|weighs the least|weigh the least"),
    (R::Quality(Q::Time, Down), "most recent|latest|newest|last|the last|most recently"),
    (
        R::Quality(Q::Time, Up),
        "has been here the longest|have been here the longest|has worked here the longest|have worked here the longest|longest serving|longest standing|earliest",
    ),
    (R::Quality(Q::Birth, Down), "youngest"),
    (R::Quality(Q::Birth, Up), "oldest"),
    (
        R::Quality(Q::Rating, Down),
        "rate best|rate the best|rate highest|rate the highest|highest rated|best rated|top rated|highest rating",
    ),
    (
        R::Quality(Q::Rating, Up),
        "rate worst|rate the worst|rate lowest|rate the lowest|lowest rated|worst rated",
    ),
    (R::Quality(Q::Pay, Down), "best paid|highest paid|earns the most|earn the most|earns most"),
    (R::Quality(Q::Pay, Up), "worst paid|lowest paid|earns the least|earn the least|least paid"),
    (R::Quality(Q::Length, Down), "longest"),
    (R::Quality(Q::Length, Up), "shortest"),
    (
        R::Most,
        "most|the most|the highest number of|the largest number of|the greatest number of|highest number of|the biggest number of|largest number of",
    ),
    (
        R::Fewest,
        "fewest|the fewest|least|the least|the lowest number of|the smallest number of|lowest number of",
    ),
    (
        R::MostCommon,
        "most common|most frequent|most used|commonest|most often used|most widely used|most frequently used|most commonly used",
    ),
    (R::Top, "top|first"),
    (
        R::Than(C::More),
        "more than|greater than|higher than|larger than|bigger than|over|above|exceeding|exceeds|exceed|longer than|heavier than|costlier than|more expensive than|in excess of|>|bigger|upwards of|is more than|is over|is above|is greater than|is higher than|strictly more than",
    ),
    (
        R::Than(C::AtLeast),
        "at least|no less than|not less than|no fewer than|a minimum of|minimum of|> =|greater than or equal to|starting at|not below|at or above|more than or equal to",
    ),
    (
        R::Than(C::Less),
        "less than|lower than|smaller than|fewer than|under|below|cheaper than|shorter than|lighter than|<|is less than|is under|is below|is lower than|strictly less than",
    ),
    (
        R::Than(C::AtMost),
        "at most|no more than|not more than|up to|a maximum of|maximum of|< =|less than or equal to|not over|not above|at or below|not exceeding",
    ),
    (R::Than(C::Equal), "exactly|precisely|equal to"),
    (R::Than(C::NotEqual), "not equal to|! =|< >"),
    (R::Between, "between|in the range|ranging from|from|anywhere between"),
    (
        R::OrMore,
        "or more|or higher|or above|and above|or over|and over|or greater|and more|or better|and up|or longer|or heavier",
    ),
    (
        R::OrLess,
        "or less|or lower|or below|and below|or under|and under|or fewer|and less|or worse|or shorter",
    ),
    (
        R::Contains,
        "contains|containing|that contains|contain|includes the word|contains the word|containing the word|with the word|mention|mentions|mentioning|includes|including the word|that contain|has the word",
    ),
    (
        R::StartsWith,
        "starts with|starting with|start with|begins with|beginning with|begin with|that start with|that starts with",
    ),
    (R::EndsWith, "ends with|ending with|ending in|ends in|end with|end in|that end with"),
    (R::Period(P::Day), "day|days"),
    (R::Period(P::Month), "month|months|calendar month"),
    (R::Period(P::Year), "year|years|calendar year"),
    (R::PerPeriod(P::Day), "per day|daily|by day|each day|every day|for each day|day by day|on each day"),
    (
        R::PerPeriod(P::Month),
        "per month|monthly|by month|each month|every month|for each month|for every month|in each month|month by month|a month|per calendar month|by calendar month|grouped by month|in every month|of each month|broken down by month|split by month",
    ),
    (
        R::PerPeriod(P::Year),
        "per year|yearly|a year|by year|each year|every year|for each year|annually|year by year|in each year|for every year|in every year|per calendar year|grouped by year|of each year|broken down by year|split by year",
    ),
    (R::Verb(Q::Price), "cost|costs|costing|priced|priced at|sell for|sells for|selling for"),
    (R::Verb(Q::Weight), "weigh|weighs|weighing|heavier"),
    (R::Verb(Q::Pay), "earn|earns|earning|paid more|make more"),
    (R::Verb(Q::Length), "lasts|lasting"),
    (R::Verb(Q::Rating), "rated|scored"),
    (R::Scale(6), "million|millions"),
    (R::Scale(3), "thousand|k"),
    (R::When, "when|when was|when were|when did|on what date|on which date|on which day"),
    (R::Total, "in total|overall|altogether"),
    (R::Unit("EUR"), "euro|euros|eur|€"),
    (R::Unit("kg"), "kg|kilo|kilos|kilogram|kilograms|kilogrammes|kgs"),
    (R::Unit("%"), "%|percent|per cent"),
    (R::Unit("USD"), "dollar|dollars|usd|$"),
    (R::Unit("GBP"), "pound|pounds|gbp|£"),
    (R::Beyond(Beyond::Why), "why|how come|reason|reasons|cause|causes|explain why"),
    (
        R::Beyond(Beyond::Prediction),
        "will|predict|forecast|would|should|if|expect|expected|likely|projection|estimate|what if",
    ),
    (
        R::Beyond(Beyond::Write),
        "delete|insert|update|remove|drop|create|alter|set|change|cancel|add a|increase|decrease|truncate|rename|modify|erase",
    ),
    (
        R::Beyond(Beyond::Ratio),
        "percentage|ratio|share|proportion|fraction|growth|trend|correlation|median|rate of|what percent|variance|deviation|cumulative|running total|moving average|percentile|rank of",
    ),
    (R::Best(Down), "best|the best"),
    (R::Best(Up), "worst|the worst"),
    (
        R::Beyond(Beyond::Judgement),
        "good|bad|important|interesting|loyal|popular|successful|profitable|typical|normal|strange|suspicious",
    ),
    (
        R::Beyond(Beyond::Steps),
        "than the average|above average|above the average|below average|below the average|than average|compared to|compared with|versus|vs|compare|both|neither|either|same|never|only|ever|again|twice|at least once|more than once|each other|nobody|none|respectively|difference|nor|then|after that|previous one",
    ),
];

const ITALIAN: &[(Role, &str)] = &[
    (
        R::Filler,
        "assegnata|assegnato|assegnati|in assoluto|finora|fino ad oggi|fino a oggi|mi fai|fai|un elenco dei|un elenco degli|un elenco delle|un elenco di|elenco di|elenco|l elenco|l elenco di|lista|la lista di|una lista di|in azienda|nella nostra azienda|nell azienda|riceviamo|offriamo|registriamo|otteniamo|avevamo|giudicati|giudicate|giudicato|giudicata|considerati|considerate|considerato|considerata|ritenuti|ritenute|sono state giudicate|sono stati giudicati|mi dai|mi elenchi|mi mostri|mi dici|mi trovi|sai dirmi|si puo sapere|applicato|applicata|abbiamo ricevuto|abbiamo avuto|del catalogo|catalogo|ancora|gia|sua|suo|suoi|sue|possibili|possibile|mostra solo|mostrami solo|elenca solo|il|lo|la|i|gli|le|l|un|uno|una|mi|per favore|mostra|mostrami|mostrare|mostraci|elenca|elencami|elencare|elenco dei|elenco degli|elenco delle|l elenco dei|l elenco degli|l elenco delle|lista dei|lista degli|lista delle|la lista dei|la lista delle|la lista degli|trova|trovami|dammi|dimmi|fammi vedere|fai vedere|visualizza|vorrei|vorrei sapere|vorrei vedere|voglio sapere|voglio vedere|voglio|puoi dirmi|puoi mostrarmi|potresti dirmi|potresti mostrarmi|sapere|vedere|tutti|tutte|tutti i|tutti gli|tutte le|che|chi|cui|ci|ne|si|nostro|nostra|nostri|nostre|e stato|e stata|e stati|sono|sono stati|sono state|era|erano|ci sono|c e|vi sono|abbiamo|avete|esistono|esiste|qual e|quali sono|nel database|nella banca dati|in catalogo|a catalogo|nel catalogo|nel nostro catalogo|attualmente|ciao|buongiorno|grazie|al|questi|queste|quelli|quelle|quello|quella|presenti|presente|usato|usati|usata|usate|utilizzato|utilizzati|utilizzate|registrati nel database|risultano|risulta|noi|come si chiama|come si chiamano|si chiama|si chiamano|che si chiama|che si chiamano|di nome|riguardanti|chiamato|chiamata|chiamati|chiamate|hanno|ha|sono presenti|ancora state|ancora stati|gia state|gia stati|ci sono stati|ci sono state|qual e stato|qual e stata|quali sono stati|quali sono state|fornisci|indica|indicami|riporta|interessa|mi interessa|mi servono|mi serve|di cognome|avuto|avuti",
    ),
    (
        R::Link,
        "di|del|dello|della|dei|degli|delle|dell|d|in|nel|nello|nella|nei|negli|nelle|nell|a|ad|al|allo|alla|ai|agli|alle|all|da|dal|dallo|dalla|dai|dagli|dalle|dall|su|sul|sulla|sui|sugli|sulle|con il|con la|con lo|tramite|attraverso|mediante|via|come|=|:|con",
    ),
    (
        R::Link,
        "abitano a|abitano in|abitano|vivono a|vivono in|vivono|abita|vive|vivono nella|residenti a|residenti in|residenti|residente|risiedono|risiedono a|risiedono in|con sede in|con sede a|hanno sede|ha sede|si trovano|si trova|si fanno|si fa|si svolgono|si svolge|si tengono|si tiene|si sono svolti|si sono tenuti|provengono|provengono da|provenienti|provenienti da|vengono|vengono da|viene da|viene|lavorano come|lavorano|lavora come|lavora|appartengono a|appartengono|appartenenti a|appartenenti|appartiene|della categoria|situati|situate|pagati con|pagate con|pagato con|tramite il|valgono|vale|riguardano|riguarda|relativi a|relative a|relativi agli|relative agli|fanno parte|fa parte|che lavorano come|che fanno",
    ),
    (
        R::Tie,
        "previsti|previste|previsto|prevista|programmati|programmate|fissati|fissate|in programma|effettuati|effettuate|effettuato|fatti|fatte|fatto|forniti|fornite|fornito|forniscono|fornisce|insegnati|tenuti|tenute|tenuto|tengono|tiene|insegna|insegnano|scritte|scritti|scritta|scritto|ricevuti|ricevute|ricevuto|ricevono|offerti|offerte|offerto|offre|offrono|gestisce|gestiscono|gestiti|gestite|gestito|seguiti|seguite|venduti da|evasi|assegnate a|assegnati a|lasciate|lasciato|emessi|inviati|pubblicato|presi|presi in carico|raccolti|ordinati da|raggruppa|comprende|comprendono|compongono|ottenuto|registra",
    ),
    (R::HowMuch, "quanto|quanto e|quanto e stato|quanto e stata"),
    (
        R::With,
        "con|che hanno|che ha|avente|aventi|il cui|la cui|i cui|le cui|dove|per cui|per i quali|che abbiano|in cui",
    ),
    (
        R::WithA,
        "con un|con una|con uno|che hanno un|che hanno una|che ha un|che ha una|hanno un|hanno una|che hanno indicato un|che hanno indicato il|che hanno fornito un|che hanno lasciato un|hanno indicato un|hanno indicato il",
    ),
    (
        R::WithTheir,
        "il loro|la loro|i loro|le loro|il relativo|la relativa|il suo|la sua|con il loro|con la loro|con i loro|con le loro|con il relativo|con la relativa|con i relativi|con le relative|e il loro|e la loro|e il relativo|e la relativa|e i relativi|insieme al|insieme alla|insieme ai|insieme a|assieme al|assieme alla|con il rispettivo|con la rispettiva|con i rispettivi|con le rispettive|compreso il|compresa la|indicando|con il nome del|con il nome della|con il nome dei|con il nome delle|con il nome del loro|e il nome del|e il nome della|con il proprio|con la propria|e i loro|e le loro|e le relative|e il rispettivo|e la rispettiva",
    ),
    (R::Which, "quale|quali|qual|che cosa|cosa|quale e"),
    (R::And, "e|ed|,|;|ma|nonche|e anche|oltre a"),
    (R::Or, "o|oppure|o in|o a|o da|o di|ovvero|o nel|o al|o con"),
    (
        R::Not,
        "non|non sono piu|non e piu|non piu|che non sono piu|diverso da|diversa da|diversi da|diverse da|tranne|eccetto|esclusi|escluse|escluso|esclusa|tranne quelli|che non sono|non sono|non e|che non e|che non",
    ),
    (
        R::Without,
        "senza|senza un|non sappiamo|non sappiamo il|non sappiamo la|non sappiamo l|non conosciamo|non conosciamo l|non abbiamo|non abbiamo l|senza una|privi di|prive di|privo di|che non hanno|non hanno|non ha|che non ha|che non hanno un|che non hanno una|non hanno un|non hanno una|non ha un|non ha una|che non ha un|che non ha una|non hanno alcun|non hanno alcuna|non hanno nessun|non hanno nessuna|senza alcun|senza alcuna|senza nessun|senza nessuna|sprovvisti di|non hanno dato il|non hanno dato la|che non hanno dato il|che non hanno dato la|non hanno indicato il|non hanno indicato la|non hanno fornito il|che non hanno indicato il|che non hanno indicato la|che non hanno fornito il|non abbiamo il|non abbiamo la|non conosciamo il|non conosciamo la",
    ),
    (R::AtLeastOne, "almeno un|almeno una|uno o piu|una o piu"),
    (
        R::Never,
        "non hanno mai fatto|non hanno mai fatto un|non hanno mai fatto alcun|non hanno mai fatto nessun|non ha mai fatto|non ha mai fatto un|non ha mai fatto alcun|non ha mai fatto nessun|che non hanno mai fatto|che non hanno mai fatto un|che non hanno mai fatto alcun|che non hanno mai fatto nessun|che non ha mai fatto|che non ha mai fatto un|che non ha mai fatto alcun|che non ha mai fatto nessun|non hanno fatto alcun|non hanno fatto nessun|che non hanno fatto alcun|che non hanno fatto nessun|non hanno ancora fatto alcun|non hanno ancora fatto nessun|che non hanno ancora fatto alcun|che non hanno ancora fatto nessun|non hanno mai scritto|non hanno mai scritto una|non hanno mai scritto alcuna|non hanno mai scritto nessuna|non ha mai scritto|non ha mai scritto una|non ha mai scritto alcuna|non ha mai scritto nessuna|che non hanno mai scritto|che non hanno mai scritto una|che non hanno mai scritto alcuna|che non hanno mai scritto nessuna|che non ha mai scritto|che non ha mai scritto una|che non ha mai scritto alcuna|che non ha mai scritto nessuna|non hanno scritto alcuna|non hanno scritto nessuna|che non hanno scritto alcuna|che non hanno scritto nessuna|non hanno ancora scritto alcuna|non hanno ancora scritto nessuna|che non hanno ancora scritto alcuna|che non hanno ancora scritto nessuna|non hanno mai lasciato|non hanno mai lasciato una|non hanno mai lasciato alcuna|non hanno mai lasciato nessuna|non ha mai lasciato|non ha mai lasciato una|non ha mai lasciato alcuna|non ha mai lasciato nessuna|che non hanno mai lasciato|che non hanno mai lasciato una|che non hanno mai lasciato alcuna|che non hanno mai lasciato nessuna|che non ha mai lasciato|che non ha mai lasciato una|che non ha mai lasciato alcuna|che non ha mai lasciato nessuna|non hanno lasciato alcuna|non hanno lasciato nessuna|che non hanno lasciato alcuna|che non hanno lasciato nessuna|non hanno ancora lasciato alcuna|non hanno ancora lasciato nessuna|che non hanno ancora lasciato alcuna|che non hanno ancora lasciato nessuna|non hanno mai ricevuto|non hanno mai ricevuto una|non hanno mai ricevuto un|non hanno mai ricevuto alcuna|non hanno mai ricevuto nessuna|non hanno mai ricevuto alcun|non hanno mai ricevuto nessun|non ha mai ricevuto|non ha mai ricevuto una|non ha mai ricevuto un|non ha mai ricevuto alcuna|non ha mai ricevuto nessuna|non ha mai ricevuto alcun|non ha mai ricevuto nessun|che non hanno mai ricevuto|che non hanno mai ricevuto una|che non hanno mai ricevuto un|che non hanno mai ricevuto alcuna|che non hanno mai ricevuto nessuna|che non hanno mai ricevuto alcun|che non hanno mai ricevuto nessun|che non ha mai ricevuto|che non ha mai ricevuto una|che non ha mai ricevuto un|che non ha mai ricevuto alcuna|che non ha mai ricevuto nessuna|che non ha mai ricevuto alcun|che non ha mai ricevuto nessun|non hanno ricevuto alcuna|non hanno ricevuto nessuna|non hanno ricevuto alcun|non hanno ricevuto nessun|che non hanno ricevuto alcuna|che non hanno ricevuto nessuna|che non hanno ricevuto alcun|che non hanno ricevuto nessun|non hanno ancora ricevuto alcuna|non hanno ancora ricevuto nessuna|non hanno ancora ricevuto alcun|non hanno ancora ricevuto nessun|che non hanno ancora ricevuto alcuna|che non hanno ancora ricevuto nessuna|che non hanno ancora ricevuto alcun|che non hanno ancora ricevuto nessun|non hanno mai avuto|non hanno mai avuto una|non hanno mai avuto un|non hanno mai avuto alcuna|non hanno mai avuto nessuna|non hanno mai avuto alcun|non hanno mai avuto nessun|non ha mai avuto|non ha mai avuto una|non ha mai avuto un|non ha mai avuto alcuna|non ha mai avuto nessuna|non ha mai avuto alcun|non ha mai avuto nessun|che non hanno mai avuto|che non hanno mai avuto una|che non hanno mai avuto un|che non hanno mai avuto alcuna|che non hanno mai avuto nessuna|che non hanno mai avuto alcun|che non hanno mai avuto nessun|che non ha mai avuto|che non ha mai avuto una|che non ha mai avuto un|che non ha mai avuto alcuna|che non ha mai avuto nessuna|che non ha mai avuto alcun|che non ha mai avuto nessun|non hanno avuto alcuna|non hanno avuto nessuna|non hanno avuto alcun|non hanno avuto nessun|che non hanno avuto alcuna|che non hanno avuto nessuna|che non hanno avuto alcun|che non hanno avuto nessun|non hanno ancora avuto alcuna|non hanno ancora avuto nessuna|non hanno ancora avuto alcun|non hanno ancora avuto nessun|che non hanno ancora avuto alcuna|che non hanno ancora avuto nessuna|che non hanno ancora avuto alcun|che non hanno ancora avuto nessun|non hanno ancora alcun|non hanno ancora alcuna|non hanno ancora nessun|non hanno ancora nessuna|che non hanno ancora alcun|che non hanno ancora alcuna|che non hanno ancora nessun|che non hanno ancora nessuna|non ha ancora alcun|non ha ancora alcuna|non ha ancora nessun|non ha ancora nessuna|non insegnano alcun|non insegnano nessun|non insegnano alcuna|non insegnano nessuna|che non insegnano alcun|che non insegnano nessun|che non insegnano alcuna|che non insegnano nessuna|non tengono alcun|non tengono nessun|non tengono alcuna|non tengono nessuna|che non tengono alcun|che non tengono nessun|che non tengono alcuna|che non tengono nessuna|non forniscono alcun|non forniscono nessun|non forniscono alcuna|non forniscono nessuna|che non forniscono alcun|che non forniscono nessun|che non forniscono alcuna|che non forniscono nessuna",
    ),
    (
        R::Missing,
        "e vuoto|e vuota|vuoto|vuota|mancante|mancanti|manca|mancano|non e indicato|non e indicata|non indicato|non indicata|non e noto|non e nota|non noto|non nota|sconosciuto|sconosciuta|e sconosciuto|e sconosciuta|non disponibile|e nullo|e nulla|non specificato|non specificata|e mancante",
    ),
    (
        R::Present,
        "e noto|e nota|noto|nota|non e vuoto|non e vuota|e indicato|e indicata|non manca|non e nullo",
    ),
    (
        R::Count,
        "quanti|quante|quanti sono|quante sono|quanti sono i|quanti sono gli|quante sono le|il numero di|numero di|il numero dei|numero dei|il numero delle|numero delle|il numero degli|numero degli|conta|conta i|conta le|conta gli|contare|conteggio dei|conteggio delle|conteggio degli|il conteggio dei|numero totale di|il numero totale di|numero totale dei|il numero totale dei|numero totale degli|il numero totale degli|numero totale delle|il numero totale delle|numero complessivo di|numero complessivo dei|quanti diversi|a quanto ammonta il numero di|quante volte|qual e il numero di|qual e il numero dei|qual e il numero delle|qual e il numero degli|qual e il numero totale di|conteggio di|conteggio",
    ),
    (
        R::Distinct,
        "senza ripetizioni|senza duplicati|diversi|diverse|distinti|distinte|differenti|univoci|univoche|diversa|diverso",
    ),
    (
        R::Per,
        "per|per ogni|per ciascun|per ciascuna|per ciascuno|per singolo|per singola|in ogni|in ciascun|in ciascuna|di ogni|di ciascun|di ciascuna|da ogni|da ciascun|da ciascuna|suddivisi per|suddivise per|divisi per|divise per|raggruppati per|raggruppate per|ripartiti per|ripartite per|raggruppa per|a seconda del|a seconda della|in base al|in base alla|in base allo|in base a|suddiviso per|diviso per|raggruppato per|su ogni|con ogni|con ciascun|nei diversi|nelle diverse|per i diversi|per le diverse",
    ),
    (R::Each, "ogni|ciascun|ciascuna|ciascuno|ognuno|ognuna"),
    (
        R::SortedBy,
        "ordinati per|ordinate per|ordinato per|ordinata per|in ordine di|ordinali per|ordina per|ordinandoli per|ordinandole per|ordinati in base a|ordinati in base al|ordinati secondo|ordina|ordinami|ordinale per|disposti in ordine di|ordinati in ordine di",
    ),
    (
        R::Ascending,
        "crescente|in ordine crescente|dal piu basso al piu alto|dal piu economico al piu caro|dal piu economico|dal meno caro|dalla piu bassa alla piu alta|in modo crescente|dal piu economico al piu costoso|dal meno caro al piu caro|dal piu piccolo al piu grande|ascendente|in senso crescente|partendo dal piu economico|dal piu basso|a partire dal piu economico|dal meno costoso al piu costoso",
    ),
    (
        R::Descending,
        "decrescente|in ordine decrescente|dal piu numeroso|dal piu numeroso al meno numeroso|dalla piu numerosa|dal piu frequente|dal piu frequente al meno frequente|dalla piu frequente|a partire dal piu numeroso|dal piu alto al piu basso|dal piu caro al piu economico|dal piu caro|dal piu costoso|dalla piu alta alla piu bassa|in modo decrescente|dal piu costoso al piu economico|dal piu caro al meno caro|dal piu grande al piu piccolo|discendente|in senso decrescente|partendo dal piu caro|dal piu alto|a partire dal piu caro",
    ),
    (
        R::Alphabetical,
        "alfabeticamente|in ordine alfabetico|per ordine alfabetico|ordinati alfabeticamente|ordinate alfabeticamente|ordinati in ordine alfabetico|ordinate in ordine alfabetico|dalla a alla z",
    ),
    (
        R::NewestFirst,
        "dal piu recente|dalla piu recente|dai piu recenti|dalle piu recenti|dal piu recente al piu vecchio|dal piu recente al meno recente|dalla piu recente alla piu vecchia|prima i piu recenti|a partire dal piu recente|partendo dal piu recente|a partire dai piu recenti|partendo dai piu recenti|prima le piu recenti|dalla piu recente alla meno recente|dai piu recenti ai meno recenti",
    ),
    (
        R::OldestFirst,
        "dal piu vecchio|dalla piu vecchia|dai piu vecchi|dal meno recente|in ordine cronologico|dal piu vecchio al piu recente|in ordine di tempo|ordinati in ordine cronologico|dal meno recente al piu recente|a partire dal piu vecchio|partendo dal piu vecchio",
    ),
    (
        R::Aggregate(F::Average),
        "media|medio|medi|medie|in media|mediamente|la media dei|la media delle|la media degli|la media del|la media della|media dei|media delle|media degli|media del|media della|il valore medio del|il valore medio della|valore medio",
    ),
    (
        R::Aggregate(F::Sum),
        "totale|totali|somma|la somma di|la somma dei|la somma degli|la somma delle|somma dei|somma degli|somma delle|complessivo|complessiva|complessivi|complessive|il totale dei|il totale degli|il totale delle|il totale del|totale dei|totale degli|totale delle|totale del|la somma del|la somma della|il totale della|somma di",
    ),
    (R::Aggregate(F::Max), "massimo|massima|massimi|massime"),
    (R::Aggregate(F::Min), "minimo|minima|minimi|minime"),
    (
        R::Extreme(Down),
        "piu alto|piu alta|piu ricco|piu ricca|piu ricchi|piu ricche|piu alti|piu alte|piu elevato|piu elevata|piu elevati|piu elevate|piu grande|maggiore|maggior|piu grandi|maggiori",
    ),
    (R::Extreme(Up), "piu basso|piu bassa|piu bassi|piu basse|piu piccolo|piu piccola|minore|minor|minori"),
    (
        R::Quality(Q::Price, Down),
        "piu costoso|piu costosa|piu costosi|piu costose|piu caro|piu cara|piu cari|piu care|costa di piu|costano di piu",
    ),
    (
        R::Quality(Q::Price, Up),
        "piu economico|piu economica|piu economici|piu economiche|meno costoso|meno costosa|meno costosi|meno costose|meno caro|meno cara|meno cari|meno care|costa di meno|costano di meno|costa meno|costano meno",
    ),
    (R::Quality(Q::Weight, Down), "piu pesante|piu pesanti|pesa di piu|pesano di piu"),
    (
        R::Quality(Q::Weight, Up),
        "piu leggero|piu leggera|piu leggeri|piu leggere|pesa di meno|pesa meno|pesano di meno|pesano meno",
    ),
    (
        R::Quality(Q::Time, Down),
        "piu recente|piu recenti|piu di recente|per ultimo|per ultima|ultimo|ultima|ultimi|ultime|piu nuovo|piu nuova|piu nuovi",
    ),
    (R::Quality(Q::Time, Up), "da piu tempo|meno recente|meno recenti|primo in ordine di tempo"),
    (R::Quality(Q::Birth, Down), "piu giovane|piu giovani"),
    (R::Quality(Q::Birth, Up), "piu vecchio|piu vecchia|piu vecchi|piu anziano|piu anziana|piu anziani"),
    (R::Quality(Q::Rating, Down), "meglio valutato|meglio valutata|meglio valutati|meglio valutate"),
    (R::Quality(Q::Rating, Up), "peggio valutato|peggio valutata|peggio valutati"),
    (
        R::Quality(Q::Pay, Down),
        "meglio pagato|meglio pagata|meglio pagati|meglio pagate|piu pagato|piu pagati|piu pagata|guadagna di piu|guadagnano di piu|meglio retribuito|meglio retribuiti",
    ),
    (
        R::Quality(Q::Pay, Up),
        "peggio pagato|peggio pagati|meno pagato|meno pagati|guadagna di meno|guadagna meno|guadagnano di meno|guadagnano meno",
    ),
    (R::Quality(Q::Length, Down), "piu lungo|piu lunga|piu lunghi|piu lunghe|dura di piu|durano di piu"),
    (
        R::Quality(Q::Length, Up),
        "piu breve|piu brevi|piu corto|piu corta|piu corti|dura di meno|durano di meno",
    ),
    (
        R::Most,
        "piu|il maggior numero di|il numero maggiore di|il numero piu alto di|il piu alto numero di|il maggior numero",
    ),
    (R::Fewest, "meno|il minor numero di|il numero minore di|il numero piu basso di"),
    (
        R::MostCommon,
        "piu comune|piu comuni|piu frequente|piu frequenti|piu usato|piu usata|piu usati|piu utilizzato|piu utilizzata|piu utilizzati|piu diffuso|piu diffusa|piu diffusi",
    ),
    (R::Top, "primi|prime|primo|prima|per primo|per prima|top"),
    (
        R::Than(C::More),
        "piu di|piu del|maggiore di|maggiori di|maggiore a|superiore a|superiori a|superiore ai|superiore agli|superiori ai|superiori agli|superiore al|superiori al|oltre|oltre i|oltre gli|sopra|sopra i|sopra gli|al di sopra di|al di sopra dei|al di sopra del|che supera|che superano|supera|superano|supera i|superano i|che supera i|che superano i|piu alto di|piu alta di|piu pesanti di|piu cari di|piu costosi di|>|eccede|piu elevato di|piu alti di|piu alte di|che superano gli|superano gli|supera gli|piu lungo di|piu lunghi di",
    ),
    (
        R::Than(C::AtLeast),
        "almeno|non meno di|come minimo|minimo|un minimo di|> =|maggiore o uguale a|superiore o uguale a|superiori o uguali a|maggiori o uguali a|pari o superiore a|pari o superiori a|a partire da|non inferiore a|non inferiori a|uguale o superiore a|da almeno",
    ),
    (
        R::Than(C::Less),
        "meno di|meno del|minore di|minori di|inferiore a|inferiori a|inferiore ai|inferiore agli|inferiori ai|inferiori agli|inferiore al|inferiori al|sotto|sotto i|sotto gli|al di sotto di|al di sotto dei|al di sotto del|piu basso di|piu bassa di|piu leggeri di|piu economici di|<|piu bassi di|piu basse di",
    ),
    (
        R::Than(C::AtMost),
        "al massimo|al piu|non piu di|fino a|massimo|un massimo di|< =|minore o uguale a|inferiore o uguale a|inferiori o uguali a|minori o uguali a|pari o inferiore a|pari o inferiori a|non superiore a|non superiori a|uguale o inferiore a",
    ),
    (R::Than(C::Equal), "esattamente|pari a|uguale a|uguali a|precisamente"),
    (R::Than(C::NotEqual), "diverso da|! =|< >|diversi da"),
    (
        R::Between,
        "tra|fra|compreso tra|compresa tra|compresi tra|comprese tra|compreso fra|compresa fra|compresi fra|comprese fra|tra i|fra i|tra gli|da|dai|che va da|che vanno da|compreso tra i|compresi tra i|compresa tra i",
    ),
    (
        R::OrMore,
        "o piu|in su|e oltre|o superiore|o superiori|e piu|o maggiore|in poi|o oltre|o di piu|e superiori",
    ),
    (R::OrLess, "o meno|in giu|o inferiore|o inferiori|o minore|o di meno|e inferiori"),
    (
        R::Contains,
        "contiene|contengono|che contiene|che contengono|contenente|contenenti|contiene la parola|contengono la parola|che contiene la parola|che contengono la parola|con la parola|include la parola|contenente la parola|contenenti la parola|che menzionano|menziona|menzionano|che includono",
    ),
    (
        R::StartsWith,
        "inizia con|iniziano con|che inizia con|che iniziano con|comincia con|cominciano con|che comincia con|che cominciano con|inizia per|iniziano per|che inizia per|che iniziano per|comincia per|cominciano per",
    ),
    (
        R::EndsWith,
        "finisce con|finiscono con|termina con|terminano con|che finisce con|che finiscono con|finisce per|finiscono per|che termina con|che terminano con",
    ),
    (R::Period(P::Day), "giorno|giorni"),
    (R::Period(P::Month), "mese|mesi"),
    (R::Period(P::Year), "anno|anni"),
    (
        R::PerPeriod(P::Day),
        "per giorno|al giorno|ogni giorno|giornalieri|giornaliere|giornaliero|giorno per giorno|per ogni giorno|per ciascun giorno",
    ),
    (
        R::PerPeriod(P::Month),
        "per mese|al mese|ogni mese|mensili|mensile|mese per mese|per ogni mese|per ciascun mese|in ogni mese|in ciascun mese|ciascun mese|mensilmente|divisi per mese|suddivisi per mese|divise per mese|suddivise per mese|raggruppati per mese|raggruppate per mese|di ogni mese|di ciascun mese|mese dopo mese|suddiviso per mese|diviso per mese",
    ),
    (
        R::PerPeriod(P::Year),
        "per anno|all anno|ogni anno|annuali|annuale|anno per anno|per ogni anno|per ciascun anno|in ogni anno|in ciascun anno|ciascun anno|annualmente|divisi per anno|suddivisi per anno|divise per anno|suddivise per anno|raggruppati per anno|raggruppate per anno|di ogni anno|suddiviso per anno|diviso per anno",
    ),
    (R::Verb(Q::Price), "costa|costano|che costano|che costa|costare|in vendita a|venduti a"),
    (R::Verb(Q::Weight), "pesa|pesano|che pesano|che pesa"),
    (R::Verb(Q::Pay), "guadagna|guadagnano|che guadagnano|che guadagna|percepisce|percepiscono"),
    (R::Verb(Q::Rating), "valutati|valutate|valutato|valutata"),
    (R::Verb(Q::Length), "dura|durano|che durano|che dura"),
    (R::Scale(6), "milione|milioni|milione di|milioni di"),
    (R::Scale(3), "mila"),
    (R::When, "quando|quando e stato|quando e stata|in che data|in quale data|che giorno"),
    (R::Total, "in tutto|in totale|complessivamente|nel complesso"),
    (R::Unit("EUR"), "euro|eur|€"),
    (R::Unit("kg"), "kg|chilo|chili|chilogrammo|chilogrammi"),
    (R::Unit("%"), "%|percento|per cento"),
    (R::Unit("USD"), "dollaro|dollari|usd|$"),
    (R::Unit("GBP"), "sterlina|sterline|gbp|£"),
    (R::Beyond(Beyond::Why), "perche|come mai|motivo|motivi|ragione|ragioni|causa|cause|come si spiega"),
    (
        R::Beyond(Beyond::Prediction),
        "sara|saranno|prevedi|previsione|previsioni|sarebbe|sarebbero|se|prevedere|stima|dovremmo|dovrei|venderemo|avremo|probabilmente",
    ),
    (
        R::Beyond(Beyond::Write),
        "cancella|elimina|inserisci|aggiorna|aggiungi|rimuovi|modifica|crea|imposta|annulla|svuota|aumenta|cambia|rinomina|riduci",
    ),
    (
        R::Beyond(Beyond::Ratio),
        "percentuale|percentuali|rapporto|quota|proporzione|frazione|crescita|andamento|tendenza|correlazione|mediana|tasso|incidenza|cumulato|cumulata|progressivo|varianza|scarto",
    ),
    (R::Best(Down), "migliore|migliori|miglior"),
    (R::Best(Up), "peggiore|peggiori|peggior"),
    (
        R::Beyond(Beyond::Judgement),
        "buono|buoni|importante|importanti|interessante|interessanti|fedele|fedeli|popolare|popolari|redditizio|redditizi|tipico|normale|strano|sospetto",
    ),
    (
        R::Beyond(Beyond::Steps),
        "della media|rispetto|rispetto a|rispetto al|confronta|confronto|entrambi|entrambe|sia|ne|stesso|stessa|stessi|stesse|mai|solo|soltanto|solamente|piu volte|due volte|almeno una volta|nessuno|nessuna|nessun|rispettivamente|differenza|poi|neanche|nemmeno|superiore alla media|inferiore alla media|sopra la media|sotto la media|piu della media|meno della media",
    ),
];
