//! Paraphrases of requests: a name after a second "for", a scene mentioned by its name alone, values before the
//! verb. Also requests with words of a scene that are not for it.

use super::domains::{PARCELS, RESTAURANT, ROOMS};
use super::support::{World, check};

const LIBRARY: &str = include_str!("../../../../tests/scenarios/library/scene.toml");

const CINECLUB: &str = r#"
name = "Cineclub"
description = "The company's film club: looks films up by director or by country and keeps seats at a showing."
examples = [
    { say = "Avete film di Federico Fellini?", tool = "FindFilms" },
    { say = "Do you show any films by Akira Kurosawa?", tool = "FindFilms" },
    { say = "Tieni 2 posti per \"La strada\" il 12 giugno", tool = "KeepSeats" },
    { say = "Keep 3 seats for \"Ran\" on 3 July", tool = "KeepSeats" },
]
[[tools]]
name = "FindFilms"
description = "Looks films of the programme up."
effect = "read"
[tools.parameters.properties]
director = { type = "string", description = "Name of the director, such as Federico Fellini" }
country = { type = "string", description = "Country the film comes from" }
[[tools]]
name = "KeepSeats"
description = "Keeps seats at the showing of a film."
effect = "write"
parameters.required = ["film", "day", "seats"]
[tools.parameters.properties]
film = { type = "string", description = "Title of the film" }
day = { type = "string", format = "date", description = "Day of the showing" }
seats = { type = "integer", minimum = 1, maximum = 8, description = "How many seats" }
spectator = { type = "string", description = "Name of the person who comes, if it is somebody else" }
"#;

const WORKSHOP: &str = r#"
name = "ToolShed"
description = "Tools of the company's workshop: which there are, and lending them. Attrezzi dell'officina: quali ci sono e prestito."
examples = [
    { say = "Che attrezzi avete per il legno?", tool = "list_tools" },
    { say = "Which tools for metal are there?", tool = "list_tools" },
    { say = "Prestami il TL-101 dal 3 giugno per 2 giorni", tool = "lend_tool" },
    { say = "Lend me TL-102 from 3 June for 2 days", tool = "lend_tool" },
]
[[tools]]
name = "list_tools"
description = "Lists the tools there are."
effect = "read"
parameters.properties = { trade = { type = "string", enum = ["wood", "metal", "garden"], description = "wood (legno), metal (metallo), garden (giardino)" } }
[[tools]]
name = "lend_tool"
description = "Lends a tool for some days."
effect = "write"
parameters.required = ["code", "from", "days"]
[tools.parameters.properties]
code = { type = "string", description = "Code on the tool, like TL-100" }
from = { type = "string", format = "date", description = "First day, YYYY-MM-DD" }
days = { type = "integer", minimum = 1, maximum = 30, description = "For how many days" }
colleague = { type = "string", description = "Name of the colleague who uses it, if not the user" }
"#;

fn clubs() -> World {
    World::shipped_and(&[LIBRARY, CINECLUB, WORKSHOP])
}

#[test]
fn name_after_a_second_for_is_the_recipient() {
    check(
        &clubs(),
        r#"
        Reserve "Dubliners" from tomorrow for 7 days for Nina Weber
            => ReserveBook {"title": "Dubliners", "from": "2026-05-05", "days": 7, "reader": "Nina Weber"}
        Borrow "Persuasion" for two weeks from 8 June for Marta Conti
            => ReserveBook {"title": "Persuasion", "from": "2026-06-08", "days": 14, "reader": "Marta Conti"}
        Prenota "Il gattopardo" per Giulia Ferri dal 15 giugno per 10 giorni
            => ReserveBook {"title": "Il gattopardo", "from": "2026-06-15", "days": 10, "reader": "Giulia Ferri"}
        Riserva "Gente di Dublino" da domani per 7 giorni per Nina Weber
            => ReserveBook {"title": "Gente di Dublino", "from": "2026-05-05", "days": 7, "reader": "Nina Weber"}
        Keep 2 seats for "Amarcord" on 5 June for Nina Weber
            => KeepSeats {"film": "Amarcord", "day": "2026-06-05", "seats": 2, "spectator": "Nina Weber"}
        Tieni 4 posti per "Roma città aperta" il 19 giugno per Paolo Greco
            => KeepSeats {"film": "Roma città aperta", "day": "2026-06-19", "seats": 4, "spectator": "Paolo Greco"}
        Lend me TL-204 from tomorrow for 3 days for Karen Hill
            => lend_tool {"code": "TL-204", "from": "2026-05-05", "days": 3, "colleague": "Karen Hill"}
        Presta TL-330 a Giulia Ferri dal 3 giugno per 2 giorni
            => lend_tool {"code": "TL-330", "from": "2026-06-03", "days": 2, "colleague": "Giulia Ferri"}
        # Nobody else is named: the title's own name is no reader.
        Reserve "Clarissa Dalloway" from tomorrow for 7 days
            => ReserveBook {"title": "Clarissa Dalloway", "from": "2026-05-05", "days": 7}
        Reserve "Dubliners" by James Joyce from tomorrow for 7 days
            => ReserveBook {"title": "Dubliners", "from": "2026-05-05", "days": 7}
    "#,
    );
}

#[test]
fn question_naming_the_scene_is_routed_to_it() {
    check(
        &clubs(),
        r#"
        C'è qualcosa di Primo Levi in biblioteca? => FindBooks {"author": "Primo Levi"}
        Which titles by Virginia Woolf does the library have? => FindBooks {"author": "Virginia Woolf"}
        In biblioteca avete qualcosa di Natalia Ginzburg? => FindBooks {"author": "Natalia Ginzburg"}
        Does the library have anything by Toni Morrison? => FindBooks {"author": "Toni Morrison"}
        Is there something by Kafka in the library? => FindBooks {"author": "Kafka"}
        Quali titoli di Elsa Morante ci sono in biblioteca? => FindBooks {"author": "Elsa Morante"}
        Che cosa c'è di Calvino nella vostra biblioteca? => FindBooks {"author": "Calvino"}
        C'è qualcosa di Wim Wenders al cineclub? => FindFilms {"director": "Wim Wenders"}
        Which pictures by Jane Campion does the film club have? => FindFilms {"director": "Jane Campion"}
        C'è qualcosa per il giardino in officina? => list_tools {"trade": "garden"}
        What does the workshop have for wood? => list_tools {"trade": "wood"}
    "#,
    );
}

#[test]
fn values_before_the_verb_fill_its_arguments() {
    check(
        &clubs(),
        r#"
        Mi serve "Gomorra" per 15 giorni a partire dal 12 maggio, potresti prenotarlo?
            => ReserveBook {"title": "Gomorra", "from": "2026-05-12", "days": 15}
        I need "Middlemarch" for 20 days from 9 June, could you reserve it?
            => ReserveBook {"title": "Middlemarch", "from": "2026-06-09", "days": 20}
        Avrei bisogno di "Il nome della rosa" dal 3 giugno per 7 giorni: me lo prenoti?
            => ReserveBook {"title": "Il nome della rosa", "from": "2026-06-03", "days": 7}
        "Cuore", dal 20 giugno per 10 giorni: puoi riservarlo? => ReserveBook {"title": "Cuore", "from": "2026-06-20", "days": 10}
        "Emma" from 3 July for 21 days at the station branch, please book it
            => ReserveBook {"title": "Emma", "from": "2026-07-03", "days": 21, "branch": "station"}
        I would love to read "Walden". From 8 June for 10 days. Can you reserve it?
            => ReserveBook {"title": "Walden", "from": "2026-06-08", "days": 10}
        Mi servono 3 posti per "Stromboli" il 20 giugno, potresti tenerli?
            => KeepSeats {"film": "Stromboli", "day": "2026-06-20", "seats": 3}
        2 seats for "Persona" on 8 July, can you keep them? => KeepSeats {"film": "Persona", "day": "2026-07-08", "seats": 2}
        Mi serve TL-118 dal 12 maggio per 4 giorni, potresti prestarmelo?
            => lend_tool {"code": "TL-118", "from": "2026-05-12", "days": 4}
        I need TL-307 for 5 days from 8 June, could you lend it to me? => lend_tool {"code": "TL-307", "from": "2026-06-08", "days": 5}
        Che tempo fa a Torino? Mi serve anche "Cuore" dal 20 giugno per 10 giorni, potresti prenotarlo?
            => WeatherForecast_Get {"city": "Torino"}; ReserveBook {"title": "Cuore", "from": "2026-06-20", "days": 10}
    "#,
    );
}

#[test]
fn words_of_a_scene_alone_are_no_request() {
    check(
        &clubs(),
        r#"
        Calcola la radice quadrata di 144 => nothing
        Write me a poem about libraries and the sea => nothing
        Scrivi un racconto ambientato in una biblioteca => nothing
        Who invented the public library? => nothing
        Qual è la biblioteca più antica del mondo? => nothing
        How do I become a librarian? => nothing
        Translate "where is the library" into Japanese => nothing
        What happened to the library of Alexandria? => nothing
        Che cosa significa la parola officina? => nothing
        Raccontami una barzelletta su un regista e un cineclub => nothing
        What is the Italian word for book? => nothing
        Mi serve un consiglio, potresti aiutarmi? => nothing
        I have 12 days until the exam, can you calm me down? => nothing
        Is there something by the door? => nothing
        C'è qualcosa di strano in questa frase? => nothing
        Who is the author of Don Quixote? => nothing
        Mi piace molto leggere i libri di Primo Levi => nothing
    "#,
    );
}

#[test]
fn held_out_phrases_are_understood() {
    check(
        &clubs(),
        r#"
        Prenotami "Sostiene Pereira" dal 22 giugno per 5 giorni per Marco Villa
            => ReserveBook {"title": "Sostiene Pereira", "from": "2026-06-22", "days": 5, "reader": "Marco Villa"}
        Avete niente di Dino Buzzati in biblioteca? => FindBooks {"author": "Dino Buzzati"}
        Are there any audiobooks by Agatha Christie in the library? => FindBooks {"author": "Agatha Christie", "format": "audiobook"}
        Cosa avete di Cesare Pavese in biblioteca? => FindBooks {"author": "Cesare Pavese"}
        Has the library got anything by Doris Lessing? => FindBooks {"author": "Doris Lessing"}
        Vorrei leggere "Lessico famigliare" dal 9 giugno per 12 giorni, lo puoi prenotare?
            => ReserveBook {"title": "Lessico famigliare", "from": "2026-06-09", "days": 12}
        I'd like "Stoner" from 10 June for 14 days. Could you borrow it for me?
            => ReserveBook {"title": "Stoner", "from": "2026-06-10", "days": 14}
        "Atonement", from 15 June, 10 days, reserve it please => ReserveBook {"title": "Atonement", "from": "2026-06-15", "days": 10}
        Ho bisogno di "Il barone rampante" per 8 giorni dal 16 giugno, prenotalo per favore
            => ReserveBook {"title": "Il barone rampante", "from": "2026-06-16", "days": 8}
        Avete qualcosa di Agnès Varda al cineclub? => FindFilms {"director": "Agnès Varda"}
        Does the film club show anything by Yasujiro Ozu? => FindFilms {"director": "Yasujiro Ozu"}
        Vorrei 2 posti per "Solaris" il 10 giugno, me li tieni? => KeepSeats {"film": "Solaris", "day": "2026-06-10", "seats": 2}
        Keep 1 seat for "Alien" on 12 June for Tom Baker
            => KeepSeats {"film": "Alien", "day": "2026-06-12", "seats": 1, "spectator": "Tom Baker"}
        In officina ci sono attrezzi per il metallo? => list_tools {"trade": "metal"}
        TL-204 dal 3 giugno per 2 giorni per Giulia Ferri: puoi prestarglielo?
            => lend_tool {"code": "TL-204", "from": "2026-06-03", "days": 2, "colleague": "Giulia Ferri"}
        I need TL-309 from 10 June for 3 days, can you lend it to Karen Hill?
            => lend_tool {"code": "TL-309", "from": "2026-06-10", "days": 3, "colleague": "Karen Hill"}
    "#,
    );
}

#[test]
fn questions_similar_to_a_scene_are_no_request() {
    check(
        &clubs(),
        r#"
        Do you have any idea who wrote Dracula? => nothing
        Is there a library in Rome? => nothing
        Ci sono biblioteche a Milano? => nothing
        Avete mai letto Primo Levi? => nothing
        C'è un cineclub a Bologna? => nothing
        Does the workshop open on Sunday? => nothing
        Which library is the oldest in Europe? => nothing
        Chi ha diretto La dolce vita? => nothing
        Write a story about a librarian called Nina Weber => nothing
    "#,
    );
}

#[test]
fn room_table_and_parcel_scenes_accept_paraphrases() {
    check(
        &World::shipped_and(&[ROOMS, RESTAURANT, PARCELS]),
        r#"
        La sala Verdi domani dalle 10 alle 12, puoi prenotarla?
            => book_room {"room": "Verdi", "start": "2026-05-05T10:00:00+02:00", "end": "2026-05-05T12:00:00+02:00"}
        I need room Blue on Friday from 2pm to 3pm, could you book it for me?
            => book_room {"room": "Blue", "start": "2026-05-08T14:00:00+02:00", "end": "2026-05-08T15:00:00+02:00"}
        Siamo in quattro, sabato alle 20:30 da Nonna Pina: ci prenoti un tavolo?
            => reserve_table {"restaurant": "Nonna Pina", "date": "2026-05-09", "time": "20:30", "party_size": 4}
        A table for two at The Anchor on Friday at 7pm, please reserve it
            => reserve_table {"restaurant": "The Anchor", "date": "2026-05-08", "time": "19:00", "party_size": 2}
        Il pacco TRK00123, dov'è? => track_parcel {"code": "TRK00123"}
        TRK00456 on 12 May to the neighbour, can you redirect it?
            => redirect_parcel {"code": "TRK00456", "day": "2026-05-12", "way": "neighbour"}
        Mi serve il pacco TRK00123 il 12 maggio nell'armadietto, potresti consegnarlo?
            => redirect_parcel {"code": "TRK00123", "day": "2026-05-12", "way": "locker"}
        Who owns The Anchor? => nothing
        Do the neighbours have a dog? => nothing
    "#,
    );
}
