//! Speech acts of single clauses.

use crate::llm::offline::speech::{Act, act_of};

fn holds(act: Act, sentences: &[&str]) {
    let wrong: Vec<String> = sentences
        .iter()
        .filter(|sentence| act_of(sentence) != act)
        .map(|sentence| format!("{sentence}: {:?}", act_of(sentence)))
        .collect();
    assert!(wrong.is_empty(), "not {act:?}, {} of {}:\n{}", wrong.len(), sentences.len(), wrong.join("\n"));
}

#[test]
fn orders_wishes_and_polite_questions_are_requests() {
    holds(
        Act::Request,
        &[
            "Book a table for two at The Anchor on Friday at 7pm",
            "Please renew loan 4471",
            "I'd like to take vacation from 3 to 7 August",
            "I want to borrow \"Middlemarch\" for two weeks",
            "I need a room for eight people tomorrow from 10 to 12",
            "Can you book room Blue on Monday from 2pm to 3pm?",
            "Could you please cancel appointment 41",
            "Would you mind reserving a car for me?",
            "Would you order five packs of paper?",
            "Will you enroll me in yoga on Tuesday?",
            "Don't forget to book the table for Saturday",
            "Please don't hesitate to cancel my order 17",
            "Remember to renew my library card",
            "Why don't you book us a table for four tonight?",
            "Let's cancel the visit of 4 May",
            "I have to ship a parcel to Bari tomorrow",
            "I wanted to book a table for three tomorrow",
            "I was hoping to change my appointment to Monday",
            "I was wondering if you could reserve the green room",
            "Go ahead and request three days off from 15 to 17 June",
            "If possible, book a table near the window for Friday at 8pm",
            "Ok then, cancel number 12",
            "Submit vacation request",
            "Vacation from 15 to 17 June",
            "Open a ticket: my screen does not turn on",
            "Segnala che al piano 5 manca la luce",
            "Prenota la sala Verdi domani dalle 10 alle 12",
            "Vorrei prenotare un tavolo per due domani sera",
            "Mi serve una macchina elettrica dal 15 al 17 giugno",
            "Ho bisogno di un'auto dal 3 al 5 marzo",
            "Puoi annullare l'appuntamento 41?",
            "Potresti prenotarmi una visita per lunedì alle 9?",
            "Mi prenoti un tavolo per quattro sabato alle 20:30?",
            "Me lo prenoti?",
            "Devo disdire la visita di giovedì",
            "Volevo chiedere due giorni di ferie il 3 e il 4 agosto",
            "Non dimenticare di rinnovare il prestito 12",
            "Perché non mi prenoti la sala Rossa giovedì dalle 9 alle 10?",
            "Ricordati di ordinare 20 penne blu",
            "Avrei bisogno di \"Cuore\" dal 20 giugno",
            "Se possibile prenota la sala Blu domani alle 14 per 2 ore",
            "Per favore annulla la richiesta numero 3",
            "Prendo in prestito \"Dune\" per due settimane",
            "Fate consegnare il pacco TRK00042 il 20 maggio",
            "Ieri ho speso 20 euro per il taxi, registrala",
        ],
    );
}

#[test]
fn forbidden_actions_are_negated() {
    holds(
        Act::Negated,
        &[
            "Don't ask for vacation on 7 July",
            "Do not book AB123CD",
            "Please do not cancel my appointment",
            "Never order from that supplier again",
            "I don't want to renew the loan",
            "We don't need a room on Friday",
            "I no longer want to take vacation in August",
            "There's no need to open a ticket",
            "You don't have to book anything for me",
            "Avoid booking the green room",
            "I'd rather not cancel it",
            "I'm not asking you to book a table",
            "Under no circumstances send the money",
            "Could you not book the blue room?",
            "Make sure not to cancel the order",
            "On 7 July don't request vacation",
            "I ask you not to transfer the 50 euros",
            "Better not renew it",
            "Non disdire l'appuntamento 41",
            "Non prenotare la sala Verdi domani",
            "Non voglio chiedere ferie a luglio",
            "Non mi serve più la macchina",
            "Non c'è bisogno di prenotare",
            "Non annullate la mia richiesta",
            "Per favore non mandarmi il pacco a casa",
            "Evita di prenotare la sala Rossa",
            "Preferirei non rinnovare il prestito",
            "È meglio non disdire la visita",
            "Ti prego di non cancellare l'ordine 17",
            "Niente ferie il 7 luglio, grazie",
            "Non devi prenotare il tavolo",
            "Domani non prenotare nulla",
            "Non ti ho chiesto di annullare la visita",
            "Guai a disdire l'appuntamento: non disdirlo",
        ],
    );
}

#[test]
fn information_questions_are_questions() {
    holds(
        Act::Question,
        &[
            "Can I take vacation on 9 July?",
            "May I borrow Emma for three weeks?",
            "Could we have the blue room on Monday?",
            "Am I allowed to renew loan 12?",
            "Is it possible to cancel appointment 41?",
            "Should I book a table for Friday?",
            "Do I have to cancel my visit?",
            "Do you have any books by Agatha Christie?",
            "How many vacation days do I have left?",
            "Who approves my request?",
            "When can I take vacation?",
            "I'd like to know if I can renew loan 12",
            "I wonder whether I could borrow two books",
            "Tell me if I can cancel the order",
            "Is there any way to change my booking?",
            "Does Anna work on Friday?",
            "Posso prendere ferie il 9 luglio?",
            "Potrei avere la sala Blu domani?",
            "Possiamo prenotare un tavolo per dieci?",
            "Si può disdire l'appuntamento 41?",
            "È possibile rinnovare il prestito 12?",
            "Vorrei sapere se posso rinnovare il prestito",
            "Volevo capire se si può annullare la visita",
            "Mi chiedo se posso cambiare la data",
            "Ho diritto a tre giorni di ferie a luglio?",
            "Quando posso prendere ferie?",
            "Chi approva le mie ferie?",
            "Devo prenotare la sala?",
            "Dimmi se posso disdire la visita",
            "Avete libri di Umberto Eco?",
            "Hai prenotato il tavolo?",
            "Did you book the table?",
        ],
    );
}

#[test]
fn past_events_are_reports() {
    holds(
        Act::Report,
        &[
            "Last year I took vacation from 10 to 12 August",
            "I booked a table for two yesterday",
            "We have already cancelled appointment 41",
            "I've renewed the loan twice",
            "Yesterday we ordered 20 pens",
            "I had booked room Blue for Monday",
            "I was on vacation from 3 to 7 August",
            "In May I transferred 50 euros to Mario",
            "I already asked for three days off",
            "On Monday I borrowed \"Dune\" for two weeks",
            "I sent the parcel last week",
            "You cancelled my visit",
            "Luca booked the green room yesterday",
            "L'anno scorso ho preso ferie dal 10 al 12 agosto",
            "Ho prenotato la sala Verdi per domani",
            "Abbiamo già disdetto l'appuntamento 41",
            "Ieri ho rinnovato il prestito 12",
            "La settimana scorsa ho ordinato 20 penne",
            "Avevo chiesto ferie dal 3 al 7 agosto",
            "A maggio ho trasferito 50 euro a Mario",
            "Ho già chiesto due giorni di ferie",
            "Lunedì abbiamo preso in prestito un libro",
            "Mi sono iscritto a yoga martedì",
            "Hai annullato la mia visita",
            "Prenotavo sempre la sala Blu",
            "Hanno cancellato il mio volo ieri",
        ],
    );
}

#[test]
fn conditional_requests_are_conditions() {
    holds(
        Act::Condition,
        &[
            "If it rains in Milan, book a table for two at Gino",
            "Book the green room if it is free tomorrow",
            "If my boss agrees, request three days off from 15 to 17 June",
            "Cancel my visit unless it is on Monday",
            "Provided that room Blue is free, book it",
            "Order ten pens as long as they are blue",
            "In case the train is late, cancel the table",
            "If so, lend it to me",
            "Otherwise cancel the order",
            "When a place is free, enroll me in yoga",
            "As soon as it is available, reserve \"Emma\"",
            "If it snows book a car for Saturday",
            "Should it rain, cancel the tour",
            "If there are seats left, keep two for me",
            "Only if it is free, renew loan 12",
            "Se piove a Milano, prenota un tavolo per due",
            "Prenota la sala Verdi se è libera domani",
            "Se il capo è d'accordo chiedi ferie dal 15 al 17 giugno",
            "Disdici la visita a meno che non sia lunedì",
            "Nel caso in cui piova, annulla il tour",
            "Qualora fosse libera, prenota la sala Blu",
            "Rinnova il prestito purché sia gratuito",
            "A patto che costi meno di 20 euro, prenota un posto",
            "In tal caso prenotala",
            "Altrimenti annulla l'ordine",
            "Appena è disponibile riserva \"Cuore\"",
            "Se ci sono posti liberi tienimene due",
            "Se nevica prenota un'auto per sabato",
            "Se sì, prestamelo per due settimane",
        ],
    );
}

#[test]
fn reminder_requests_are_reminders() {
    holds(
        Act::Reminder,
        &[
            "Remind me to ask for vacation on 7 July",
            "Remind me tomorrow to book a table",
            "Can you remind me to renew loan 12?",
            "Set a reminder to cancel the visit",
            "Please remind us to order pens",
            "I must remember to request three days off",
            "Don't let me forget to book the room",
            "Note to self: cancel appointment 41",
            "I need to remember to renew the card",
            "Could you set me a reminder for the booking",
            "Remind me about the vacation request",
            "Ricordami di chiedere ferie il 7 luglio",
            "Puoi ricordarmi di prenotare il tavolo?",
            "Mi ricordi di disdire la visita?",
            "Fammi ricordare di ordinare le penne",
            "Imposta un promemoria per rinnovare il prestito",
            "Ricordaci di prenotare la sala",
            "Devo ricordarmi di annullare l'ordine",
            "Mettimi un promemoria per la visita di lunedì",
            "Non devo dimenticare di chiedere le ferie",
            "Promemoria: prenotare la sala Verdi",
        ],
    );
}

#[test]
fn messages_to_others_are_quoted() {
    holds(
        Act::Quoted,
        &[
            "Tell Marco that I take vacation from 3 to 7 August",
            "Ask Anna to book the green room",
            "Write an email to Anna saying I need vacation on 7 July",
            "Send a message to my boss that I cancel the visit",
            "Let Luca know that I booked the room",
            "He said: book it for Friday",
            "My boss told me to cancel appointment 41",
            "Inform the team that we order ten pens",
            "Write to Paolo that I renew the loan",
            "Could you tell Sara that I want three days off?",
            "I'd like to tell Marco that I take vacation in August",
            "Anna wrote: please transfer 50 euros",
            "Draft a short email to HR to request vacation on 9 July",
            "They asked me to order 20 pens",
            "Text my wife that I booked a table for two",
            "Di' a Marco che prendo ferie dal 3 al 7 agosto",
            "Chiedi ad Anna di prenotare la sala Verdi",
            "Scrivi a Luca che disdico la visita",
            "Scrivi una mail al capo per chiedere ferie il 9 luglio",
            "Manda un messaggio ad Anna: prenota la sala",
            "Avvisa Paolo che rinnovo il prestito",
            "Digli di annullare l'ordine",
            "Il mio capo ha detto di prenotare la sala Blu",
            "Marco mi ha scritto: annulla la richiesta 3",
            "Fai sapere a Sara che prendo ferie domani",
            "Informa Giulia che ho bisogno di tre giorni",
            "Mi hanno chiesto di ordinare 20 penne",
            "\"Book the green room for tomorrow\"",
        ],
    );
}

#[test]
fn wishes_of_others_are_third_person() {
    holds(
        Act::ThirdPerson,
        &[
            "Luca wants vacation from 3 to 7 August",
            "My brother wants to borrow \"Emma\" for two weeks",
            "Anna needs a room on Friday from 10 to 12",
            "My colleague would like to cancel her visit",
            "She wants to book a table for two",
            "They need ten pens by Monday",
            "Marco and Anna want the green room tomorrow",
            "A friend of mine needs an appointment",
            "Somebody should cancel appointment 41",
            "My wife would love a table at Gino on Friday at 8pm",
            "Paolo Greco wants to renew loan 12",
            "The customer asks for a refund",
            "Giulia takes vacation from 10 to 12 June",
            "Luca vuole ferie dal 3 al 7 agosto",
            "Mio fratello vuole prendere in prestito \"Cuore\"",
            "Anna ha bisogno della sala Verdi venerdì dalle 10 alle 12",
            "La mia collega vorrebbe disdire la visita",
            "Lui desidera prenotare un tavolo",
            "Loro devono ordinare dieci penne entro lunedì",
            "A Marco serve la sala Blu domani",
            "Un mio amico vorrebbe un appuntamento",
            "Giulia prende ferie dal 10 al 12 giugno",
            "Paolo deve rinnovare il prestito 12",
            "Gli serve una macchina dal 3 al 5 marzo",
            "Marco e Anna vogliono la sala Verdi",
        ],
    );
}

#[test]
fn prices_and_hypotheses_are_hypothetical() {
    holds(
        Act::Hypothetical,
        &[
            "How much is a visit with the cardiologist?",
            "How much does it cost to rent a car for two days?",
            "What would happen if I cancelled my booking?",
            "What if I took vacation from 3 to 7 August?",
            "Suppose I book the green room for Friday",
            "What's the price of a table for ten?",
            "What happens if I cancel appointment 41?",
            "Imagine I order twenty pens",
            "Let's say I transfer 50 euros to Mario",
            "What would it cost to renew loan 12?",
            "What are the fees for a transfer of 50 euros?",
            "Supposing I took three days off in June",
            "Hypothetically, I cancel the order",
            "Say I book two seats for \"Alien\"",
            "Assuming I borrow Emma for a month",
            "Quanto costa una visita dal cardiologo?",
            "Quanto verrebbe noleggiare un'auto per due giorni?",
            "Cosa succede se annullo la prenotazione?",
            "Che succederebbe se prendessi ferie ad agosto?",
            "E se prenotassi la sala Verdi?",
            "Supponiamo che io prenoti la sala Blu",
            "Mettiamo che ordini venti penne",
            "Qual è il prezzo di un tavolo per dieci?",
            "Quanto pago se rinnovo il prestito 12?",
            "Immagina che io disdica la visita",
            "In teoria potrei chiedere ferie il 9 luglio",
            "Quanto mi costa spedire 5 kg in Francia?",
        ],
    );
}

#[test]
fn facts_and_possibilities_are_statements() {
    holds(
        Act::Statement,
        &[
            "Maybe I take vacation in August",
            "I'm thinking of booking a table for Friday",
            "I might cancel the visit",
            "I'm going to take vacation from 3 to 7 August",
            "I think I need a new keyboard",
            "The printer on floor 3 is broken",
            "Perhaps a table for two on Friday",
            "I'll be away from 10 to 12 June",
            "I can't log in",
            "I don't mind booking the green room",
            "My screen is black",
            "I plan to renew loan 12",
            "Forse prendo ferie ad agosto",
            "Sto pensando di prenotare un tavolo per venerdì",
            "Magari annullo la visita",
            "Prenderò ferie dal 3 al 7 agosto",
            "La stampante al terzo piano è rotta",
            "Pensavo di chiedere tre giorni di ferie",
            "Ho intenzione di rinnovare il prestito 12",
            "Siamo in quattro",
            "Non riesco ad accedere",
            "Il mio schermo è nero",
            "Ho perso la tessera",
        ],
    );
}
