//! Only clear requests make writes: sentences of every speech act over shipped and unknown scenes.

use serde_json::Value;

use super::support::{RequestOutcome, World};
use crate::llm::offline::speech::declined;

const FLEET: &str = r#"
name = "Fleet"
description = "Cars of the company: books them, tells fuel and mileage, reports damage."
examples = [
    { say = "Book AB123CD for tomorrow", tool = "book_car" },
    { say = "Prenota la macchina EF456GH per il 3 marzo", tool = "book_car" },
    { say = "How much fuel is in AB123CD?", tool = "fuel_level" },
    { say = "Quanto carburante ha EF456GH?", tool = "fuel_level" },
    { say = "Report damage on AB123CD: scratched door", tool = "report_damage" },
    { say = "Segnala un danno su EF456GH: paraurti rotto", tool = "report_damage" },
]
[[tools]]
name = "book_car"
description = "Books a car for a day."
effect = "write"
parameters.required = ["plate", "day"]
parameters.properties = { plate = { type = "string", description = "Plate of the car", examples = ["AB123CD"] }, day = { type = "string", format = "date", description = "Day" } }
[[tools]]
name = "fuel_level"
description = "Fuel left in a car."
effect = "read"
parameters.required = ["plate"]
parameters.properties = { plate = { type = "string", description = "Plate of the car", examples = ["AB123CD"] } }
[[tools]]
name = "report_damage"
description = "Reports damage on a car."
effect = "write"
parameters.required = ["plate", "damage"]
parameters.properties = { plate = { type = "string", description = "Plate of the car", examples = ["AB123CD"] }, damage = { type = "string", description = "What is damaged" } }
"#;

const DESK: &str = r#"
name = "Appointments"
description = "Appointments with doctors: books, cancels and lists them."
examples = [
    { say = "Book a visit with the dentist on 4 May at 11", tool = "book_visit" },
    { say = "Prenota una visita dal dentista il 4 maggio alle 11", tool = "book_visit" },
    { say = "Cancel appointment 12", tool = "cancel_appointment" },
    { say = "Disdici l'appuntamento 12", tool = "cancel_appointment" },
    { say = "Which appointments do I have?", tool = "list_appointments" },
    { say = "Quali appuntamenti ho?", tool = "list_appointments" },
]
[[tools]]
name = "book_visit"
description = "Books a visit with a doctor."
effect = "write"
parameters.required = ["doctor", "when"]
parameters.properties = { doctor = { type = "string", enum = ["dentist", "cardiologist"], description = "dentist (dentista), cardiologist (cardiologo)" }, when = { type = "string", format = "date-time", description = "Day and time" } }
[[tools]]
name = "cancel_appointment"
description = "Cancels an appointment."
effect = "write"
parameters.required = ["number"]
parameters.properties = { number = { type = "integer", description = "Number of the appointment" } }
[[tools]]
name = "list_appointments"
description = "Lists the appointments of the user."
effect = "read"
"#;

const BANK: &str = r#"
name = "Bank"
description = "Bank account: sends money and tells the balance."
examples = [
    { say = "Send 20 euros to Anna Bianchi", tool = "send_money" },
    { say = "Manda 20 euro ad Anna Bianchi", tool = "send_money" },
    { say = "What is my account balance?", tool = "account_balance" },
    { say = "Quanti soldi ho sul conto?", tool = "account_balance" },
]
[[tools]]
name = "send_money"
description = "Sends money to somebody."
effect = "write"
parameters.required = ["amount", "recipient"]
parameters.properties = { amount = { type = "number", description = "Euros" }, recipient = { type = "string", description = "First and last name of who receives it" } }
[[tools]]
name = "account_balance"
description = "Balance of the account."
effect = "read"
"#;

/// The shipped scenes with a library and three that were never seen.
pub(super) fn strangers() -> World {
    World::shipped_and(&[include_str!("../../../../tests/scenarios/library/scene.toml"), FLEET, DESK, BANK])
}

/// The writes that were carried out.
pub(super) fn writes(world: &World, outcome: &RequestOutcome) -> Vec<String> {
    let writes: Vec<&str> = world
        .scenes
        .iter()
        .flat_map(|scene| scene["tools"].as_array().unwrap())
        .filter(|tool| tool["effect"] == "write")
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let calls = outcome.calls.iter().filter(|(tool, _)| writes.contains(&tool.as_str()));
    calls.map(|(tool, arguments)| format!("{tool} {arguments}")).collect()
}

fn assert_no_write(sentences: &[&str]) {
    let mut wrong = Vec::new();
    for sentence in sentences {
        let mut world = strangers();
        let outcome = world.run(sentence);
        let done = writes(&world, &outcome);
        if !done.is_empty() {
            wrong.push(format!("{sentence}: {done:?} {:?}", outcome.purposes));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrote:\n{}", wrong.len(), sentences.len(), wrong.join("\n"));
}

#[test]
fn negated_orders_make_no_write() {
    assert_no_write(&[
        "Don't ask for vacation on 7 July",
        "Do not book AB123CD, only tell me the fuel",
        "Please don't cancel appointment 41",
        "I don't want to take vacation from 3 to 7 August",
        "We no longer need a visit with the dentist on 4 May at 11",
        "Never send 50 euros to Mario Rossi",
        "There is no need to book AB123CD for tomorrow",
        "I'd rather not cancel appointment 12",
        "Show me my appointments without cancelling number 41",
        "Don't book AB123CD or EF456GH for tomorrow",
        "I never asked you to send 20 euros to Anna Bianchi",
        "Instead of booking a visit with the dentist on 4 May at 11, list my appointments",
        "Non disdire l'appuntamento 41",
        "Non chiedere ferie il 7 luglio",
        "Non prenotare AB123CD per domani, dimmi solo quanto carburante ha",
        "Non voglio ferie dal 3 al 7 agosto",
        "Non mandare 50 euro a Mario Rossi",
        "Per favore non prenotarmi la visita dal dentista il 4 maggio alle 11",
        "Evita di disdire l'appuntamento 12",
        "Non c'è bisogno di prenotare EF456GH per il 3 marzo",
        "Preferirei non chiedere ferie a luglio, dal 7 al 9",
        "Dimmi i miei appuntamenti senza disdire il 41",
        "Non prenotate la macchina EF456GH per domani",
        "Niente ferie il 7 luglio, per favore",
    ]);
}

#[test]
fn withdrawn_requests_make_no_write() {
    assert_no_write(&[
        "Ask nobody for vacation from 3 to 7 August",
        "Nobody should cancel appointment 41",
        "I forbid you to book AB123CD for tomorrow",
        "Never ever cancel appointment 41",
        "Cancel appointment 41, or rather don't",
        "Cancel appointment 41, but I changed my mind",
        "Cancel appointment 41... no, forget it",
        "Cancel appointment 41? Never.",
        "Cancel appointment 41 no",
        "Book AB123CD for tomorrow. Just kidding.",
        "Send 50 euros to Mario Rossi - wait, no, don't",
        "I was going to ask for vacation on 9 July but no",
        "I'd like to book AB123CD for tomorrow, but I can't",
        "If it rains in Milan, book AB123CD for tomorrow, but no",
        "Send 50 euros to Mario Rossi. Cancel appointment 41. Just kidding.",
        "Repeat after me: cancel appointment 41",
        "Volevo disdire l'appuntamento 41 ma ho cambiato idea",
        "Volevo disdire l'appuntamento 41, ci ho ripensato",
        "Disdici l'appuntamento 41, anzi no",
        "Disdici l'appuntamento 41. Ci ho ripensato.",
        "Disdici l'appuntamento 41: no!",
        "Prenota AB123CD per domani, scherzavo",
        "Vorrei prenotare AB123CD per domani ma non posso",
        "Manda 50 euro a Mario Rossi, anzi lascia stare",
        "Vietato disdire l'appuntamento 41",
        "Mai disdire l'appuntamento 41",
        "Ti proibisco di prenotare EF456GH per domani",
        "Ripeti: disdici l'appuntamento 41",
    ]);
}

/// What follows a "no" is another request, and what is only read beside a withdrawn write is answered.
#[test]
fn request_after_a_withdrawn_one_is_executed() {
    for (sentence, expected) in [
        ("Cancel appointment 41, no, cancel appointment 12", "cancel_appointment {\"number\":12}"),
        ("Disdici l'appuntamento 41. No, disdici l'appuntamento 12", "cancel_appointment {\"number\":12}"),
        ("Show my appointments and book AB123CD for tomorrow, but no", "list_appointments {}"),
        (
            "Prenota AB123CD per domani, anzi no, dimmi quanto carburante ha EF456GH",
            "fuel_level {\"plate\":\"EF456GH\"}",
        ),
    ] {
        let mut world = strangers();
        let outcome = world.run(sentence);
        let calls: Vec<String> =
            outcome.calls.iter().map(|(tool, arguments)| format!("{tool} {arguments}")).collect();
        assert_eq!(calls, [expected], "{sentence}: {:?} {:?}", outcome.purposes, outcome.question);
    }
}

/// A "no" that belongs to a noun takes nothing back.
#[test]
fn no_after_a_noun_is_no_withdrawal() {
    for sentence in
        ["Prenota AB123CD per domani, assicurazione no", "Book AB123CD for tomorrow, insurance no"]
    {
        let declined = declined(sentence);
        assert!(declined.is_empty(), "{sentence}: {declined:?}");
    }
}

#[test]
fn reports_of_the_past_make_no_write() {
    assert_no_write(&[
        "Last year I took vacation from 10 to 12 August. How many days do I have left?",
        "I booked AB123CD for tomorrow",
        "Yesterday I cancelled appointment 41",
        "We have already sent 50 euros to Mario Rossi",
        "I asked for vacation from 3 to 7 August last week",
        "In March I booked a visit with the dentist on 4 May at 11",
        "I've cancelled appointment 12 already, what appointments do I have?",
        "You booked AB123CD for tomorrow",
        "L'anno scorso ho preso ferie dal 10 al 12 agosto. Quanti giorni mi restano?",
        "Ho prenotato AB123CD per domani",
        "Ieri ho disdetto l'appuntamento 41",
        "Abbiamo già mandato 50 euro a Mario Rossi",
        "La settimana scorsa ho chiesto ferie dal 3 al 7 agosto",
        "Ho già annullato l'appuntamento 12, quali appuntamenti ho?",
        "A marzo avevo prenotato una visita dal dentista il 4 maggio alle 11",
        "Hai prenotato EF456GH per domani?",
    ]);
}

#[test]
fn questions_about_permission_make_no_write() {
    assert_no_write(&[
        "Can I take vacation on 9 July?",
        "May I book AB123CD for tomorrow?",
        "Could I cancel appointment 41?",
        "Am I allowed to send 50 euros to Mario Rossi?",
        "Is it possible to take vacation from 3 to 7 August?",
        "I'd like to know if I can cancel appointment 12",
        "Should I book a visit with the dentist on 4 May at 11?",
        "When can I take vacation?",
        "Do I have to cancel appointment 41?",
        "How do I book AB123CD for tomorrow?",
        "Vacation on 9 July?",
        "Posso prendere ferie il 9 luglio?",
        "Posso prenotare AB123CD per domani?",
        "Si può disdire l'appuntamento 41?",
        "È possibile mandare 50 euro a Mario Rossi?",
        "Vorrei sapere se posso chiedere ferie dal 3 al 7 agosto",
        "Potrei disdire l'appuntamento 12?",
        "Devo prenotare una visita dal dentista il 4 maggio alle 11?",
        "Mi chiedo se posso prenotare EF456GH per domani",
        "Ho diritto a ferie dal 3 al 7 agosto?",
    ]);
}

#[test]
fn conditions_alone_make_no_write() {
    assert_no_write(&[
        "If it rains in Milan, book AB123CD for tomorrow",
        "Book AB123CD for tomorrow if it has fuel",
        "If my boss agrees, request vacation from 3 to 7 August",
        "Cancel appointment 41 unless it is on Monday",
        "Provided that I have days left, ask for vacation on 9 July",
        "What is the weather in Milan tomorrow, and if it is sunny ask for vacation on 9 July",
        "Do you have \"Emma\", and if so lend it to me for two weeks",
        "In case it snows, book a visit with the dentist on 4 May at 11",
        "If I have more than 100 euros send 50 euros to Mario Rossi",
        "As long as AB123CD has fuel, book it for tomorrow",
        "Se piove a Milano, prenota AB123CD per domani",
        "Prenota AB123CD per domani se ha carburante",
        "Se il capo è d'accordo chiedi ferie dal 3 al 7 agosto",
        "Disdici l'appuntamento 41 a meno che non sia lunedì",
        "Dimmi il meteo a Milano e, se c'è il sole, chiedi ferie il 9 luglio",
        "Avete \"Emma\"? In tal caso prestamelo per due settimane",
        "Nel caso in cui nevichi, prenota una visita dal dentista il 4 maggio alle 11",
        "Se ho più di 100 euro manda 50 euro a Mario Rossi",
        "Purché abbia carburante, prenota EF456GH per domani",
        "Appena ho dei giorni chiedi ferie il 9 luglio",
    ]);
}

#[test]
fn reminders_messages_and_quotations_make_no_write() {
    assert_no_write(&[
        "Remind me to ask for vacation on 7 July",
        "Tell Marco that I take vacation from 3 to 7 August",
        "Write an email to Anna saying I need vacation on 7 July",
        "He said: book AB123CD for tomorrow",
        "Can you remind me to cancel appointment 41?",
        "Ask Anna to book AB123CD for tomorrow",
        "My boss told me to cancel appointment 12",
        "Send a message to Luca: please send 50 euros to Mario Rossi",
        "Tell Marco that I cancel appointment 41 and book AB123CD for tomorrow",
        "\"Cancel appointment 41\" is what Anna wrote",
        "Let Sara know that I take vacation on 9 July",
        "Draft an email to HR to request vacation from 3 to 7 August",
        "Ricordami di chiedere ferie il 7 luglio",
        "Di' a Marco che prendo ferie dal 3 al 7 agosto",
        "Scrivi una mail ad Anna dicendo che chiedo ferie il 7 luglio",
        "Ha detto: prenota AB123CD per domani",
        "Puoi ricordarmi di disdire l'appuntamento 41?",
        "Chiedi ad Anna di prenotare AB123CD per domani",
        "Il mio capo mi ha detto di disdire l'appuntamento 12",
        "Manda un messaggio a Luca: manda 50 euro a Mario Rossi",
        "Fai sapere a Sara che prendo ferie il 9 luglio",
        "Scrivi a Paolo che disdico l'appuntamento 41",
    ]);
}

#[test]
fn prices_third_persons_and_possibilities_make_no_write() {
    assert_no_write(&[
        "How much is a visit with the dentist on 4 May at 11?",
        "What would happen if I cancelled appointment 41?",
        "What if I took vacation from 3 to 7 August?",
        "Suppose I send 50 euros to Mario Rossi",
        "How much does it cost to book AB123CD for tomorrow?",
        "Luca wants vacation from 3 to 7 August",
        "My brother wants to book AB123CD for tomorrow",
        "Anna needs a visit with the dentist on 4 May at 11",
        "She wants to cancel appointment 41",
        "Maybe I take vacation on 9 July",
        "I'm thinking of booking AB123CD for tomorrow",
        "I might cancel appointment 12",
        "Quanto costa una visita dal dentista il 4 maggio alle 11?",
        "Cosa succede se disdico l'appuntamento 41?",
        "Supponiamo che io chieda ferie dal 3 al 7 agosto",
        "Luca vuole ferie dal 3 al 7 agosto",
        "Mio fratello vuole prenotare AB123CD per domani",
        "Ad Anna serve una visita dal dentista il 4 maggio alle 11",
        "Lei vorrebbe disdire l'appuntamento 41",
        "Forse chiedo ferie il 9 luglio",
        "Sto pensando di prenotare EF456GH per domani",
        "Magari disdico l'appuntamento 12",
    ]);
}

/// A price is no booking, and what is said after it is none either.
#[test]
fn day_after_a_price_question_books_nothing() {
    for (price, day) in [
        ("How much is a visit with the dentist?", "tomorrow at 10"),
        ("Quanto costa una visita dal dentista?", "domani alle 10"),
    ] {
        let mut world = strangers();
        world.run(price);
        let outcome = world.run(day);
        assert_eq!(writes(&world, &outcome), Vec::<String>::new(), "{price} {day}");
    }
}

/// Plain requests are carried out without a question.
#[test]
fn plain_requests_make_writes() {
    let sentences: &[(&str, &str)] = &[
        ("Book AB123CD for tomorrow", "book_car"),
        ("Please book AB123CD for 9 July", "book_car"),
        ("Can you book AB123CD for tomorrow?", "book_car"),
        ("Could you book EF456GH for 3 August please?", "book_car"),
        ("I'd like to book AB123CD for tomorrow", "book_car"),
        ("I want to book EF456GH for 9 July", "book_car"),
        ("Would you mind booking AB123CD for tomorrow?", "book_car"),
        ("Don't forget to book AB123CD for tomorrow", "book_car"),
        ("Why don't you book AB123CD for tomorrow?", "book_car"),
        ("Hi, book AB123CD for tomorrow, thanks", "book_car"),
        ("If possible, book AB123CD for tomorrow", "book_car"),
        ("Prenota AB123CD per domani", "book_car"),
        ("Per favore prenota EF456GH per il 9 luglio", "book_car"),
        ("Puoi prenotare AB123CD per domani?", "book_car"),
        ("Potresti prenotarmi EF456GH per il 3 agosto?", "book_car"),
        ("Vorrei prenotare AB123CD per domani", "book_car"),
        ("Mi prenoti EF456GH per domani?", "book_car"),
        ("Non dimenticare di prenotare AB123CD per domani", "book_car"),
        ("Volevo prenotare EF456GH per domani", "book_car"),
        ("Ciao, prenota AB123CD per domani, grazie", "book_car"),
        ("Cancel appointment 41", "cancel_appointment"),
        ("Please cancel appointment 12", "cancel_appointment"),
        ("I need to cancel appointment 41", "cancel_appointment"),
        ("Could you cancel appointment 12?", "cancel_appointment"),
        ("I have to cancel appointment 41", "cancel_appointment"),
        ("Disdici l'appuntamento 41", "cancel_appointment"),
        ("Vorrei disdire l'appuntamento 12", "cancel_appointment"),
        ("Devo disdire l'appuntamento 41", "cancel_appointment"),
        ("Puoi disdire l'appuntamento 12 per favore?", "cancel_appointment"),
        ("Mi disdici l'appuntamento 41?", "cancel_appointment"),
        ("Ask for vacation from 3 to 7 August", "MakeRequest"),
        ("I would like to take vacation from 3 to 7 August", "MakeRequest"),
        ("Request three days off from 15 to 17 June", "MakeRequest"),
        ("I want vacation on 9 July", "MakeRequest"),
        ("Can you request vacation from 3 to 7 August for me?", "MakeRequest"),
        ("I'd love to take vacation from 10 to 12 August", "MakeRequest"),
        ("Book annual leave on 3 July for me", "MakeRequest"),
        ("How many days do I have left? Then request vacation from 3 to 7 August", "MakeRequest"),
        ("Chiedi ferie dal 3 al 7 agosto", "MakeRequest"),
        ("Vorrei chiedere ferie dal 3 al 7 agosto", "MakeRequest"),
        ("Voglio prendere ferie dal 10 al 12 agosto", "MakeRequest"),
        ("Richiedi tre giorni di ferie dal 15 al 17 giugno", "MakeRequest"),
        ("Mi servono ferie dal 3 al 7 agosto", "MakeRequest"),
        ("Potresti chiedere ferie per me il 9 luglio?", "MakeRequest"),
        ("Prenota le mie vacanze dal 3 al 14 agosto", "MakeRequest"),
        ("Dimmi quanti giorni mi restano e poi chiedi ferie il 9 luglio", "MakeRequest"),
        ("Send 50 euros to Mario Rossi", "send_money"),
        ("Please send 20 euros to Anna Bianchi", "send_money"),
        ("I need to send 50 euros to Mario Rossi", "send_money"),
        ("Could you send 50 euros to Mario Rossi?", "send_money"),
        ("Manda 50 euro a Mario Rossi", "send_money"),
        ("Vorrei mandare 20 euro ad Anna Bianchi", "send_money"),
        ("Puoi mandare 50 euro a Mario Rossi?", "send_money"),
        ("Book a visit with the dentist on 4 June at 11", "book_visit"),
        ("I need a visit with the dentist on 4 June at 11", "book_visit"),
        ("Can you book me a visit with the cardiologist on 9 July at 10?", "book_visit"),
        ("Prenota una visita dal dentista il 4 giugno alle 11", "book_visit"),
        ("Ho bisogno di una visita dal cardiologo il 9 luglio alle 10", "book_visit"),
        ("Mi prenoti una visita dal dentista il 4 giugno alle 11?", "book_visit"),
        ("Report damage on AB123CD: scratched door", "report_damage"),
        ("Segnala un danno su EF456GH: paraurti rotto", "report_damage"),
        ("Don't book AB123CD but EF456GH for tomorrow", "book_car"),
    ];
    let mut wrong = Vec::new();
    for (sentence, tool) in sentences {
        let mut world = strangers();
        let outcome = world.run(sentence);
        let done = writes(&world, &outcome);
        if outcome.question.is_some() || done.len() != 1 || !done[0].starts_with(tool) {
            wrong.push(format!("{sentence}: {done:?} {:?} {:?}", outcome.purposes, outcome.question));
        }
    }
    let most = sentences.len() / 20;
    assert!(wrong.len() <= most, "{} of {}:\n{}", wrong.len(), sentences.len(), wrong.join("\n"));
}

/// What is read beside what is not to be written is answered, and the rest is said in the answer.
#[test]
fn read_half_of_mixed_request_is_answered() {
    for (sentence, tool, said) in [
        ("Do not book AB123CD, only tell me the fuel", "fuel_level", "Do not book AB123CD"),
        (
            "Non prenotare AB123CD per domani, dimmi solo quanto carburante ha",
            "fuel_level",
            "Non prenotare AB123CD",
        ),
        ("Last year I took vacation from 10 to 12 August. How many days do I have left?", "GetBalance", ""),
        ("L'anno scorso ho preso ferie dal 10 al 12 agosto. Quanti giorni mi restano?", "GetBalance", ""),
        (
            "Don't cancel appointment 41, just list my appointments",
            "list_appointments",
            "Don't cancel appointment 41",
        ),
        ("Ho già annullato l'appuntamento 12, quali appuntamenti ho?", "list_appointments", ""),
    ] {
        let mut world = strangers();
        let outcome = world.run(sentence);
        assert_eq!(outcome.tools(), [tool], "{sentence}: {:?} {:?}", outcome.purposes, outcome.question);
        assert!(outcome.answer.contains(said), "{sentence}: {}", outcome.answer);
        assert_eq!(outcome.plan["unserved"], Value::Null, "{sentence}");
    }
}

#[test]
fn negation_alone_is_acknowledged() {
    for sentence in ["Non disdire l'appuntamento 41", "Don't ask for vacation on 7 July"] {
        let mut world = strangers();
        let outcome = world.run(sentence);
        assert!(outcome.calls.is_empty() && outcome.question.is_none(), "{sentence}: {outcome:?}");
        assert!(outcome.answer.contains(sentence), "{}", outcome.answer);
    }
}

/// The case is looked up, and what is to be done in it waits for that and is asked.
#[test]
fn condition_is_read_before_write_is_confirmed() {
    for (sentence, read, write) in [
        ("If it rains in Milan, book AB123CD for tomorrow", "WeatherForecast_Get", "book_car"),
        ("Se piove a Milano, prenota AB123CD per domani", "WeatherForecast_Get", "book_car"),
        (
            "What is the weather in Milan tomorrow, and if it is sunny ask for vacation on 9 July",
            "WeatherForecast_Get",
            "MakeRequest",
        ),
    ] {
        let mut world = strangers();
        let outcome = world.run(sentence);
        assert_eq!(outcome.tools(), [read], "{sentence}: {:?}", outcome.purposes);
        assert_eq!(outcome.depends, [vec![], vec![1]], "{sentence}");
        let question = outcome.question.unwrap();
        assert_eq!(question["tool"], write, "{sentence}");
    }
}

/// What may be meant is asked with the very call.
#[test]
fn permission_question_gets_confirmation_of_the_call() {
    for (sentence, tool) in [
        ("Can I take vacation on 9 July?", "MakeRequest"),
        ("Posso prendere ferie il 9 luglio?", "MakeRequest"),
        ("Luca wants to cancel appointment 41", "cancel_appointment"),
    ] {
        let mut world = strangers();
        let outcome = world.run(sentence);
        assert!(outcome.calls.is_empty(), "{sentence}: {:?}", outcome.calls);
        assert_eq!(outcome.question.as_ref().unwrap()["tool"], tool, "{sentence}: {:?}", outcome.purposes);
    }
}
