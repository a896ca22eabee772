//! Which writes are made at once and which need a confirmation.

use serde_json::{Value, json};

use super::domains::{HELPDESK, IDENTITY, LIBRARY, PARCELS, RESTAURANT, ROOMS, VACATION, WEATHER};
use super::services::{BANK, BUSES, EVENTS, HOMES, HOTELS, MUSIC, RESTAURANTS, SALONS};
use super::support::{RequestOutcome, World};

/// Requests that say all that is needed, with words as people add them.
const PLAIN: &[(&str, &str)] = &[
    (VACATION, "Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno"),
    (VACATION, "Ciao! Potresti chiedere ferie dal 15 al 17 giugno, per favore?"),
    (VACATION, "Vorrei ferie dal 3 al 7 agosto per andare al mare con la mia famiglia"),
    (VACATION, "Mi prendi ferie il 10 luglio? Grazie mille"),
    (VACATION, "Chiedi un giorno di ferie per il 3 luglio, il prima possibile"),
    (VACATION, "Ho bisogno di ferie dal 20 al 24 luglio perché mi sposo"),
    (VACATION, "Please request vacation from 15 to 17 June, thanks a lot"),
    (VACATION, "I'd like to take three days off from 15 to 17 June for my birthday"),
    (VACATION, "Can you book my vacation from 3 to 7 August asap?"),
    (VACATION, "I want to take vacation from 3 to 7 August with my family"),
    (VACATION, "Could you please ask for vacation on 10 July? Thank you very much"),
    (VACATION, "I need vacation from 20 to 24 July because my parents are visiting"),
    (VACATION, "Don't forget to request vacation from 15 to 17 June"),
    (VACATION, "Hi there, kindly submit a vacation request from 15 to 17 June"),
    (RESTAURANT, "Prenota un tavolo per due da Nonna Pina sabato alle 20:30, per favore"),
    (RESTAURANT, "Vorrei prenotare un tavolo per quattro da Gino domani alle 20 con la mia famiglia"),
    (RESTAURANT, "Mi prenoti un tavolo da Gino domani sera alle 8 per 3 persone? Grazie"),
    (RESTAURANT, "Please book a nice table for six at The Anchor on Friday at 7pm"),
    (RESTAURANT, "Can you reserve a table for two at The Anchor tomorrow at 8pm for our anniversary?"),
    (RESTAURANT, "I'd love a table for four at The Anchor on Friday at 7pm, thanks in advance"),
    (RESTAURANT, "Book a table on the terrace for two at The Anchor tomorrow at noon"),
    (HELPDESK, "Apri un ticket: il mio monitor non si accende"),
    (HELPDESK, "Per favore apri un ticket ad alta priorità: la stampante è rotta"),
    (HELPDESK, "Please open a ticket saying that my keyboard is sticky, thanks"),
    (HELPDESK, "Open a low priority ticket saying that the mouse does not work"),
    (LIBRARY, "Vorrei prendere in prestito \"Il barone rampante\" per 3 settimane, grazie"),
    (LIBRARY, "Please lend me \"The Hobbit\" for two weeks"),
    (LIBRARY, "Lend me \"Dracula\" for 3 weeks because I love horror"),
    (ROOMS, "Prenota la sala Verdi domani dalle 10 alle 12 per 8 persone, per favore"),
    (ROOMS, "Please book room Blue on Monday from 2pm to 3pm for my team"),
    (ROOMS, "Could you book room Blue on Monday from 2pm to 3pm with a projector?"),
    (PARCELS, "Consegna il pacco TRK00123 al vicino di casa il 12 maggio"),
    (PARCELS, "Please deliver parcel TRK00456 to the neighbour on 13 May, thanks"),
    (BUSES, "Please buy a bus ticket from Fresno to Sacramento tomorrow at 9am for 2 people"),
    (
        BUSES,
        "I need to book bus tickets from Anaheim to Long Beach on May 8 at 14:15 for 3 people, for my family",
    ),
    (
        BUSES,
        "Hey, can you get bus tickets from Phoenix to San Diego tomorrow at 14:15 for two travelers please",
    ),
    (MUSIC, "Play Bohemian Rhapsody please"),
    (MUSIC, "Could you play the song Halo on the TV?"),
    (MUSIC, "I want to listen to Let It Be right now"),
    (RESTAURANTS, "Reserve a table for 2 at Bistro Don in San Jose tomorrow at 7pm for a date with my wife"),
    (RESTAURANTS, "Please book a table at The Anchor in Oakland on Friday at 20:00 for four people, thanks!"),
    (SALONS, "Book an appointment with Great Clips tomorrow at 11am please"),
    (SALONS, "I'd like to make an appointment at Supercuts on Friday at 4pm, as soon as possible"),
    (HOMES, "Schedule a visit to Almaden Lake Apartments tomorrow for my family"),
    (HOMES, "Could you please schedule a visit to Aspen Ridge on May 12?"),
    (BANK, "Please transfer 500 dollars to Diego from my savings account"),
    (BANK, "Send $40 from checking to Amy Wong, thank you so much"),
    (BANK, "I need to transfer $1,200 from checking to Jerry asap"),
    (HOTELS, "Please reserve 2 rooms at the Hilton Garden Inn from May 10 to May 12"),
    (HOTELS, "Book one room at Hotel Adlon from tomorrow until Friday because we visit Berlin"),
    (EVENTS, "Buy 2 tickets for Mets Vs Reds in New York on May 10 please"),
    (EVENTS, "Can you get me four tickets to Alessia Cara in Los Angeles tomorrow? Thanks!"),
];

/// Requests with something in them that no argument takes, or that may mean something else.
const DOUBTFUL: &[(&str, &str)] = &[
    (VACATION, "Request vacation from 15 to 17 June unless it rains"),
    (VACATION, "Ask for half a day of vacation on 7 July"),
    (VACATION, "Chiedi mezza giornata di ferie il 7 luglio"),
    (VACATION, "Request vacation on 7 July for my brother"),
    (VACATION, "Chiedi ferie il 7 luglio per mio fratello"),
    (VACATION, "Request unpaid vacation from 15 to 17 June"),
    (VACATION, "Chiedi ferie dal 15 al 17 giugno solo se il progetto Alfa è finito"),
    (RESTAURANT, "Book a table for two at The Anchor on Friday at 7pm with a dog"),
    (RESTAURANT, "Prenota un tavolo per due da Gino domani alle 20 accanto al camino"),
    (RESTAURANTS, "Reserve a table for 2 at Bistro Don in San Jose tomorrow at 7pm except by the window"),
    (ROOMS, "Prenota la sala Verdi domani dalle 10 alle 12 con catering e una lavagna"),
    (BANK, "Transfer 500 dollars to Diego from my savings account every month"),
    (BANK, "Send $40 from checking to Amy Wong once the invoice is approved"),
    (HOTELS, "Reserve 2 rooms at the Hilton Garden Inn from May 10 to May 12 with a jacuzzi"),
    (MUSIC, "Play Halo backwards"),
    (PARCELS, "Consegna il pacco TRK00123 in via Roma 5 il 12 maggio"),
];

fn run(scene: &str, words: &str) -> RequestOutcome {
    let mut scenes = vec![WEATHER, IDENTITY, VACATION];
    scenes.retain(|s| *s != scene);
    scenes.push(scene);
    World::of(&scenes).run(words)
}

fn is_confirmation(question: &Value) -> bool {
    question["missing"] == json!([])
}

#[test]
fn plain_requests_are_executed_without_confirmation() {
    let mut asked = Vec::new();
    for (scene, words) in PLAIN {
        let outcome = run(scene, words);
        if outcome.calls.is_empty() || !outcome.questions.is_empty() {
            asked.push(format!("{words}\n   {:?} {:?}", outcome.calls, outcome.questions));
        }
    }
    assert!(asked.len() * 10 <= PLAIN.len(), "{} of {}\n{}", asked.len(), PLAIN.len(), asked.join("\n"));
}

#[test]
fn unexplained_words_of_a_write_lead_to_confirmation() {
    let mut done = Vec::new();
    for (scene, words) in DOUBTFUL {
        let outcome = run(scene, words);
        if !outcome.calls.is_empty() {
            done.push(format!("{words}\n   {:?}", outcome.calls));
        }
    }
    assert!(done.is_empty(), "{} of {}\n{}", done.len(), DOUBTFUL.len(), done.join("\n"));
}

#[test]
fn confirmation_contains_the_call_with_all_arguments() {
    let outcome = run(VACATION, "Request unpaid vacation from 15 to 17 June");
    let [question] = &outcome.questions[..] else { panic!("{outcome:?}") };
    assert!(is_confirmation(question), "{question}");
    assert_eq!(question["tool"], "MakeRequest");
    assert_eq!(question["known"], json!({"from": "2026-06-15", "to": "2026-06-17"}));
    assert!(question["question"].as_str().unwrap().contains("2026-06-15"), "{question}");
}

#[test]
fn words_that_only_press_a_request_need_no_confirmation() {
    for words in [
        "Request vacation from 15 to 17 June without delay",
        "Request vacation from 15 to 17 June no matter what",
        "No problem, request vacation from 15 to 17 June",
        "If you don't mind, request vacation from 15 to 17 June",
        "Quick one: request vacation from 15 to 17 June",
        "pls request vacation from 15 to 17 June",
        "You need to request vacation from 15 to 17 June",
        "Dovresti richiedere ferie dal 15 al 17 giugno",
        "Facciamo così: richiedi ferie dal 15 al 17 giugno",
        "Richiedi ferie dal 15 al 17 giugno senza indugio",
    ] {
        let outcome = run(VACATION, words);
        let days = json!({"from": "2026-06-15", "to": "2026-06-17"});
        assert_eq!(outcome.calls, [("MakeRequest".to_owned(), days)], "{words}: {:?}", outcome.questions);
        assert_eq!(outcome.plan.get("unserved"), None, "{words}: {:#}", outcome.plan);
    }
}

#[test]
fn what_is_only_forbidden_in_french_german_or_spanish_is_said_not_to_be_done() {
    for (words, lead) in [
        ("N'annule pas ma demande de congés numéro 5", "Comme demandé"),
        ("Storniere meinen Urlaubsantrag Nummer 5 nicht", "Wie gewünscht"),
        ("Füge die Stadt Cuneo nicht hinzu, latitude 44.39, longitude 7.55", "Wie gewünscht"),
        ("No añadas la ciudad de Cuneo, latitude 44.39, longitude 7.55", "Como ha pedido"),
    ] {
        let outcome = run(VACATION, words);
        assert!(outcome.calls.is_empty() && outcome.questions.is_empty(), "{words}: {outcome:?}");
        assert!(outcome.answer.starts_with(lead) && outcome.answer.contains(words), "{}", outcome.answer);
    }
    // What is to be done beside it stays in doubt.
    let outcome = run(VACATION, "N'annule pas ma demande numéro 5, annule la numéro 6");
    assert!(outcome.calls.is_empty(), "{outcome:?}");
}
