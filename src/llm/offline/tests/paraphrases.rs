//! Paraphrases of requests: a name after a second "for", a scene mentioned by its name alone, values before the
//! verb. Also requests with words of a scene that are not for it.

use serde_json::{Value, json};

use super::domains::{PARCELS, RESTAURANT, ROOMS};
use super::support::World;

const WEATHER: &str = include_str!("../../../../scenes/weather/scene.toml");
const IDENTITY: &str = include_str!("../../../../scenes/identity/scene.toml");
const VACATION: &str = include_str!("../../../../scenes/vacation_management/scene.toml");
const LIBRARY: &str = include_str!("../../../../tests/scenarios/library/scene.toml");

const CINECLUB: &str = r#"
name = "Cineclub"
description = "The company's film club: looks films up by director or by country and keeps seats at a showing."
[[examples]]
say = "Avete film di Federico Fellini?"
tool = "FindFilms"
[[examples]]
say = "Do you show any films by Akira Kurosawa?"
tool = "FindFilms"
[[examples]]
say = "Tieni 2 posti per \"La strada\" il 12 giugno"
tool = "KeepSeats"
[[examples]]
say = "Keep 3 seats for \"Ran\" on 3 July"
tool = "KeepSeats"
[[tools]]
name = "FindFilms"
description = "Looks films of the programme up."
effect = "read"
[tools.parameters]
type = "object"
additionalProperties = false
[tools.parameters.properties]
director = { type = "string", description = "Name of the director, such as Federico Fellini" }
country = { type = "string", description = "Country the film comes from" }
[[tools]]
name = "KeepSeats"
description = "Keeps seats at the showing of a film."
effect = "write"
[tools.parameters]
type = "object"
required = ["film", "day", "seats"]
additionalProperties = false
[tools.parameters.properties]
film = { type = "string", description = "Title of the film" }
day = { type = "string", format = "date", description = "Day of the showing" }
seats = { type = "integer", minimum = 1, maximum = 8, description = "How many seats" }
spectator = { type = "string", description = "Name of the person who comes, if it is somebody else" }
"#;

const WORKSHOP: &str = r#"
name = "ToolShed"
description = "Tools of the company's workshop: which there are, and lending them. Attrezzi dell'officina: quali ci sono e prestito."
[[examples]]
say = "Che attrezzi avete per il legno?"
tool = "list_tools"
[[examples]]
say = "Which tools for metal are there?"
tool = "list_tools"
[[examples]]
say = "Prestami il TL-101 dal 3 giugno per 2 giorni"
tool = "lend_tool"
[[examples]]
say = "Lend me TL-102 from 3 June for 2 days"
tool = "lend_tool"
[[tools]]
name = "list_tools"
description = "Lists the tools there are."
effect = "read"
[tools.parameters]
type = "object"
additionalProperties = false
properties = { trade = { type = "string", enum = ["wood", "metal", "garden"], description = "wood (legno), metal (metallo), garden (giardino)" } }
[[tools]]
name = "lend_tool"
description = "Lends a tool for some days."
effect = "write"
[tools.parameters]
type = "object"
required = ["code", "from", "days"]
additionalProperties = false
[tools.parameters.properties]
code = { type = "string", description = "Code on the tool, like TL-100" }
from = { type = "string", format = "date", description = "First day, YYYY-MM-DD" }
days = { type = "integer", minimum = 1, maximum = 30, description = "For how many days" }
colleague = { type = "string", description = "Name of the colleague who uses it, if not the user" }
"#;

fn check(cases: Vec<(&str, Value)>) {
    check_in(&[WEATHER, IDENTITY, VACATION, LIBRARY, CINECLUB, WORKSHOP], cases);
}

fn check_in(scenes: &[&str], cases: Vec<(&str, Value)>) {
    let mut wrong = Vec::new();
    for (request, want) in &cases {
        let mut world = World::of(scenes);
        let outcome = world.run(request);
        let calls: Vec<Value> = outcome.calls.iter().map(|c| json!([c.0, c.1])).collect();
        let got = match &outcome.question {
            Some(question) => json!([calls, question["missing"]]),
            None => json!(calls),
        };
        if got != *want {
            wrong.push(format!("{request}\n   want {want}\n   got  {got}\n   {:?}", outcome.purposes));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn one(tool: &str, arguments: Value) -> Value {
    json!([[tool, arguments]])
}

#[test]
fn name_after_a_second_for_is_the_recipient() {
    let reserve = |arguments| one("ReserveBook", arguments);
    let keep = |arguments| one("KeepSeats", arguments);
    let lend = |arguments| one("lend_tool", arguments);
    check(vec![
        (
            "Reserve \"Dubliners\" from tomorrow for 7 days for Nina Weber",
            reserve(json!({"title": "Dubliners", "from": "2026-05-05", "days": 7, "reader": "Nina Weber"})),
        ),
        (
            "Borrow \"Persuasion\" for two weeks from 8 June for Marta Conti",
            reserve(
                json!({"title": "Persuasion", "from": "2026-06-08", "days": 14, "reader": "Marta Conti"}),
            ),
        ),
        (
            "Prenota \"Il gattopardo\" per Giulia Ferri dal 15 giugno per 10 giorni",
            reserve(
                json!({"title": "Il gattopardo", "from": "2026-06-15", "days": 10, "reader": "Giulia Ferri"}),
            ),
        ),
        (
            "Riserva \"Gente di Dublino\" da domani per 7 giorni per Nina Weber",
            reserve(
                json!({"title": "Gente di Dublino", "from": "2026-05-05", "days": 7, "reader": "Nina Weber"}),
            ),
        ),
        (
            "Keep 2 seats for \"Amarcord\" on 5 June for Nina Weber",
            keep(json!({"film": "Amarcord", "day": "2026-06-05", "seats": 2, "spectator": "Nina Weber"})),
        ),
        (
            "Tieni 4 posti per \"Roma città aperta\" il 19 giugno per Paolo Greco",
            keep(
                json!({"film": "Roma città aperta", "day": "2026-06-19", "seats": 4, "spectator": "Paolo Greco"}),
            ),
        ),
        (
            "Lend me TL-204 from tomorrow for 3 days for Karen Hill",
            lend(json!({"code": "TL-204", "from": "2026-05-05", "days": 3, "colleague": "Karen Hill"})),
        ),
        (
            "Presta TL-330 a Giulia Ferri dal 3 giugno per 2 giorni",
            lend(json!({"code": "TL-330", "from": "2026-06-03", "days": 2, "colleague": "Giulia Ferri"})),
        ),
        // Nobody else is named: the title's own name is no reader.
        (
            "Reserve \"Clarissa Dalloway\" from tomorrow for 7 days",
            reserve(json!({"title": "Clarissa Dalloway", "from": "2026-05-05", "days": 7})),
        ),
        (
            "Reserve \"Dubliners\" by James Joyce from tomorrow for 7 days",
            reserve(json!({"title": "Dubliners", "from": "2026-05-05", "days": 7})),
        ),
    ]);
}

#[test]
fn question_naming_the_scene_is_routed_to_it() {
    let books = |author: &str| one("FindBooks", json!({"author": author}));
    let films = |director: &str| one("FindFilms", json!({"director": director}));
    let tools = |trade: &str| one("list_tools", json!({"trade": trade}));
    check(vec![
        ("C'è qualcosa di Primo Levi in biblioteca?", books("Primo Levi")),
        ("Which titles by Virginia Woolf does the library have?", books("Virginia Woolf")),
        ("In biblioteca avete qualcosa di Natalia Ginzburg?", books("Natalia Ginzburg")),
        ("Does the library have anything by Toni Morrison?", books("Toni Morrison")),
        ("Is there something by Kafka in the library?", books("Kafka")),
        ("Quali titoli di Elsa Morante ci sono in biblioteca?", books("Elsa Morante")),
        ("Che cosa c'è di Calvino nella vostra biblioteca?", books("Calvino")),
        ("C'è qualcosa di Wim Wenders al cineclub?", films("Wim Wenders")),
        ("Which pictures by Jane Campion does the film club have?", films("Jane Campion")),
        ("C'è qualcosa per il giardino in officina?", tools("garden")),
        ("What does the workshop have for wood?", tools("wood")),
    ]);
}

#[test]
fn values_before_the_verb_fill_its_arguments() {
    let reserve = |arguments| one("ReserveBook", arguments);
    let keep = |arguments| one("KeepSeats", arguments);
    let lend = |arguments| one("lend_tool", arguments);
    check(vec![
        (
            "Mi serve \"Gomorra\" per 15 giorni a partire dal 12 maggio, potresti prenotarlo?",
            reserve(json!({"title": "Gomorra", "from": "2026-05-12", "days": 15})),
        ),
        (
            "I need \"Middlemarch\" for 20 days from 9 June, could you reserve it?",
            reserve(json!({"title": "Middlemarch", "from": "2026-06-09", "days": 20})),
        ),
        (
            "Avrei bisogno di \"Il nome della rosa\" dal 3 giugno per 7 giorni: me lo prenoti?",
            reserve(json!({"title": "Il nome della rosa", "from": "2026-06-03", "days": 7})),
        ),
        (
            "\"Cuore\", dal 20 giugno per 10 giorni: puoi riservarlo?",
            reserve(json!({"title": "Cuore", "from": "2026-06-20", "days": 10})),
        ),
        (
            "\"Emma\" from 3 July for 21 days at the station branch, please book it",
            reserve(json!({"title": "Emma", "from": "2026-07-03", "days": 21, "branch": "station"})),
        ),
        (
            "I would love to read \"Walden\". From 8 June for 10 days. Can you reserve it?",
            reserve(json!({"title": "Walden", "from": "2026-06-08", "days": 10})),
        ),
        (
            "Mi servono 3 posti per \"Stromboli\" il 20 giugno, potresti tenerli?",
            keep(json!({"film": "Stromboli", "day": "2026-06-20", "seats": 3})),
        ),
        (
            "2 seats for \"Persona\" on 8 July, can you keep them?",
            keep(json!({"film": "Persona", "day": "2026-07-08", "seats": 2})),
        ),
        (
            "Mi serve TL-118 dal 12 maggio per 4 giorni, potresti prestarmelo?",
            lend(json!({"code": "TL-118", "from": "2026-05-12", "days": 4})),
        ),
        (
            "I need TL-307 for 5 days from 8 June, could you lend it to me?",
            lend(json!({"code": "TL-307", "from": "2026-06-08", "days": 5})),
        ),
        (
            "Che tempo fa a Torino? Mi serve anche \"Cuore\" dal 20 giugno per 10 giorni, potresti prenotarlo?",
            json!([
                ["WeatherForecast_Get", {"city": "Torino"}],
                ["ReserveBook", {"title": "Cuore", "from": "2026-06-20", "days": 10}]
            ]),
        ),
    ]);
}

#[test]
fn words_of_a_scene_alone_are_no_request() {
    let nothing = [
        "Calcola la radice quadrata di 144",
        "Write me a poem about libraries and the sea",
        "Scrivi un racconto ambientato in una biblioteca",
        "Who invented the public library?",
        "Qual è la biblioteca più antica del mondo?",
        "How do I become a librarian?",
        "Translate \"where is the library\" into Japanese",
        "What happened to the library of Alexandria?",
        "Che cosa significa la parola officina?",
        "Raccontami una barzelletta su un regista e un cineclub",
        "What is the Italian word for book?",
        "Mi serve un consiglio, potresti aiutarmi?",
        "I have 12 days until the exam, can you calm me down?",
        "Is there something by the door?",
        "C'è qualcosa di strano in questa frase?",
        "Who is the author of Don Quixote?",
        "Mi piace molto leggere i libri di Primo Levi",
    ];
    check(nothing.into_iter().map(|request| (request, json!([]))).collect());
}

#[test]
fn held_out_phrases_are_understood() {
    let reserve = |arguments| one("ReserveBook", arguments);
    let books = |author: &str| one("FindBooks", json!({"author": author}));
    let films = |director: &str| one("FindFilms", json!({"director": director}));
    let keep = |arguments| one("KeepSeats", arguments);
    let lend = |arguments| one("lend_tool", arguments);
    check(vec![
        (
            "Prenotami \"Sostiene Pereira\" dal 22 giugno per 5 giorni per Marco Villa",
            reserve(
                json!({"title": "Sostiene Pereira", "from": "2026-06-22", "days": 5, "reader": "Marco Villa"}),
            ),
        ),
        ("Avete niente di Dino Buzzati in biblioteca?", books("Dino Buzzati")),
        (
            "Are there any audiobooks by Agatha Christie in the library?",
            one("FindBooks", json!({"author": "Agatha Christie", "format": "audiobook"})),
        ),
        ("Cosa avete di Cesare Pavese in biblioteca?", books("Cesare Pavese")),
        ("Has the library got anything by Doris Lessing?", books("Doris Lessing")),
        (
            "Vorrei leggere \"Lessico famigliare\" dal 9 giugno per 12 giorni, lo puoi prenotare?",
            reserve(json!({"title": "Lessico famigliare", "from": "2026-06-09", "days": 12})),
        ),
        (
            "I'd like \"Stoner\" from 10 June for 14 days. Could you borrow it for me?",
            reserve(json!({"title": "Stoner", "from": "2026-06-10", "days": 14})),
        ),
        (
            "\"Atonement\", from 15 June, 10 days, reserve it please",
            reserve(json!({"title": "Atonement", "from": "2026-06-15", "days": 10})),
        ),
        (
            "Ho bisogno di \"Il barone rampante\" per 8 giorni dal 16 giugno, prenotalo per favore",
            reserve(json!({"title": "Il barone rampante", "from": "2026-06-16", "days": 8})),
        ),
        ("Avete qualcosa di Agnès Varda al cineclub?", films("Agnès Varda")),
        ("Does the film club show anything by Yasujiro Ozu?", films("Yasujiro Ozu")),
        (
            "Vorrei 2 posti per \"Solaris\" il 10 giugno, me li tieni?",
            keep(json!({"film": "Solaris", "day": "2026-06-10", "seats": 2})),
        ),
        (
            "Keep 1 seat for \"Alien\" on 12 June for Tom Baker",
            keep(json!({"film": "Alien", "day": "2026-06-12", "seats": 1, "spectator": "Tom Baker"})),
        ),
        ("In officina ci sono attrezzi per il metallo?", one("list_tools", json!({"trade": "metal"}))),
        (
            "TL-204 dal 3 giugno per 2 giorni per Giulia Ferri: puoi prestarglielo?",
            lend(json!({"code": "TL-204", "from": "2026-06-03", "days": 2, "colleague": "Giulia Ferri"})),
        ),
        (
            "I need TL-309 from 10 June for 3 days, can you lend it to Karen Hill?",
            lend(json!({"code": "TL-309", "from": "2026-06-10", "days": 3, "colleague": "Karen Hill"})),
        ),
    ]);
}

#[test]
fn questions_similar_to_a_scene_are_no_request() {
    let nothing = [
        "Do you have any idea who wrote Dracula?",
        "Is there a library in Rome?",
        "Ci sono biblioteche a Milano?",
        "Avete mai letto Primo Levi?",
        "C'è un cineclub a Bologna?",
        "Does the workshop open on Sunday?",
        "Which library is the oldest in Europe?",
        "Chi ha diretto La dolce vita?",
        "Write a story about a librarian called Nina Weber",
    ];
    check(nothing.into_iter().map(|request| (request, json!([]))).collect());
}

#[test]
fn room_table_and_parcel_scenes_accept_paraphrases() {
    let scenes = [WEATHER, IDENTITY, VACATION, ROOMS, RESTAURANT, PARCELS];
    let room = |room: &str, day: &str, start: &str, end: &str| {
        let at = |time: &str| format!("2026-05-{day}T{time}:00+02:00");
        one("book_room", json!({"room": room, "start": at(start), "end": at(end)}))
    };
    let table = |place: &str, date: &str, time: &str, guests: u32| {
        one("reserve_table", json!({"restaurant": place, "date": date, "time": time, "party_size": guests}))
    };
    let redirect = |code: &str, way: &str| {
        one("redirect_parcel", json!({"code": code, "day": "2026-05-12", "way": way}))
    };
    check_in(
        &scenes,
        vec![
            (
                "La sala Verdi domani dalle 10 alle 12, puoi prenotarla?",
                room("Verdi", "05", "10:00", "12:00"),
            ),
            (
                "I need room Blue on Friday from 2pm to 3pm, could you book it for me?",
                room("Blue", "08", "14:00", "15:00"),
            ),
            (
                "Siamo in quattro, sabato alle 20:30 da Nonna Pina: ci prenoti un tavolo?",
                table("Nonna Pina", "2026-05-09", "20:30", 4),
            ),
            (
                "A table for two at The Anchor on Friday at 7pm, please reserve it",
                table("The Anchor", "2026-05-08", "19:00", 2),
            ),
            ("Il pacco TRK00123, dov'è?", one("track_parcel", json!({"code": "TRK00123"}))),
            ("TRK00456 on 12 May to the neighbour, can you redirect it?", redirect("TRK00456", "neighbour")),
            (
                "Mi serve il pacco TRK00123 il 12 maggio nell'armadietto, potresti consegnarlo?",
                redirect("TRK00123", "locker"),
            ),
            ("Who owns The Anchor?", json!([])),
            ("Do the neighbours have a dog?", json!([])),
        ],
    );
}
