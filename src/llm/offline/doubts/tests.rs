use super::*;

#[test]
fn request_that_leaves_a_write_open_is_in_doubt() {
    for said in [
        // Taken back or corrected.
        "Sell 2 teapots. Ignore that.",
        "Sell 2 teapots. Disregard my last sentence.",
        "Sell 2 teapots (don't actually do it)",
        "Sell 2 teapots. Sorry, I meant don't.",
        "Sell 2 teapots. That was a test, do nothing.",
        "Sell 2 teapots. No, 3 teapots!",
        "Sell 2 teapots. Sorry, 3.",
        "Sell 2 teapots, make that 3",
        "Vendi 2 teiere. Ignora quello che ho detto.",
        "Vendi 2 teiere (non farlo davvero)",
        "Vendi 2 teiere. Niente, dimentica.",
        "Vende 2 teteras, digo, 3",
        "These are done already:\n- sell 2 teapots",
        // No object, and only as if.
        "Sell no teapots today",
        "Great, sell 2 teapots again, as if that helped",
        // Conditions and later times.
        "Only if it rains, sell 2 teapots",
        "Sell 2 teapots only when I say so",
        "Sell 2 teapots. But only if my boss agrees.",
        "Sell 2 teapots after the customer has paid",
        "Once Marco has arrived, sell 2 teapots",
        "Were it to rain, sell 2 teapots",
        "Sell 2 teapots pending approval",
        "Wait until Marco is back, then sell 2 teapots",
        "Solo se piove, vendi 2 teiere",
        "Aspetta che torni Marco, poi vendi 2 teiere",
        "Dopo l'arrivo di Marco, vendi 2 teiere",
        "Prima di vendere 2 teiere, chiedi a Marco",
        "Vendi 2 teiere. Ma solo se il capo è d'accordo.",
        "Vendi 2 teiere salvo pioggia",
        "After Marco has arrived, sell 2 teapots",
        "e.g. sell 2 teapots",
        "Sell all but 2 teapots",
        // Refused in other words.
        "Cancel the plan to cancel request 5",
        "There's no point in taking back 2 teapots",
        "Never do this: sell 2 teapots",
        "Things NOT to do:\n- sell 2 teapots\n- restock 20 milk jugs",
        "Non fare questo: vendi 2 teiere",
        "Do ... not ... sell 2 teapots",
        "Cancel none of my requests",
        "Cancel all my requests except number 5",
        "Guai a vendere 2 teiere",
        "Nn vendere 2 teiere",
        "Mai registrare la vendita di 2 teiere",
        // To somebody else, or about it.
        "Anna, sell 2 teapots",
        "Marco: sell 2 teapots",
        "Dear Marco, sell 2 teapots",
        "@marco sell 2 teapots",
        "Registrare la vendita è stato un errore",
        "To sell 2 teapots is easy",
        "I love selling 2 teapots",
        "Someone ought to sell 2 teapots",
        "Un giorno vorrei poter vendere 2 teiere",
        "Ho aggiunto la città di Cuneo",
        "Dovremmo annullare la richiesta 5?",
        // What somebody else does.
        "On Monday Ada returns Dune",
        "Next week Marco will renew the loan",
        "In the afternoon the boss cancels request 5",
        "domani Marco venderà 3 teiere",
        "Marco annulla la richiesta 5",
        // Only supposed, or written by others.
        "In theory, sell 2 teapots",
        "Check whether there are 30 left and then sell 2 teapots",
        "Here is a mail I got: sell 2 teapots",
        "Request vacation from 15 to 19 June, but I'll work on 17 June",
        // Inexact amounts.
        "Sell about 3 teapots",
        "Sell up to 3 teapots",
        "Vendi circa 3 teiere",
        // Other languages.
        "Ne annule pas ma demande de congés numéro 5",
        "Demande pas de congés du 8 au 10 février",
        "Quand Marco appelle, demande des congés du 8 au 10 février",
        "J'ai demandé des congés du 8 au 10 février",
        "Storniere meinen Urlaubsantrag Nummer 5 nicht",
        "Beantrage Urlaub vom 8. bis 10. Februar, wenn es regnet",
        "Ayer cancelé mi solicitud de vacaciones número 5",
        "Jamás solicites vacaciones del 8 al 10 de febrero",
        "No canceles mi solicitud de vacaciones número 5",
        "Cuando llame Marco, cancela mi solicitud de vacaciones número 5",
    ] {
        assert!(has_doubt(said), "{said}");
    }
}

#[test]
fn plain_request_is_in_no_doubt() {
    for said in [
        "Sell 2 teapots",
        "Please sell 2 teapots as soon as you can",
        "Don't forget to sell 2 teapots",
        "Do not hesitate to cancel request no. 5",
        "For Anna sell 2 teapots",
        "Mark request 5 as paid",
        "On Monday sell 2 teapots",
        "Bitte Urlaub beantragen vom 8. bis 10. Februar",
        "Sell 2 teapots, no rush",
        "Request vacation from 15 to 19 June, I'll be back on 22 June",
        "Sell 2 teapots. No further questions, thanks.",
        "Cancel request number 5, it was a mistake",
        "Request vacation from 8 until 10 February",
        "Extend booking 17 until a quarter to eight in the evening",
        "Request a day of vacation on 15 June, not 16",
        "Request vacation from 15 to 17 June except the 16th",
        "Richiedi ferie dal 15 al 17 giugno tranne il 16",
        "Yesterday I spent 20 euros on a taxi, add it",
        "Request vacation after 10 June until the end of the month",
        "Request vacation from 8 to 10 February when you can",
        "Lend the book \"If Not Now, When?\" to Ada",
        "Lend the book Only When I Laugh to Ada",
        "What is the weather in Milan, and then sell 2 teapots",
        "Hi, could you sell 2 teapots for me?",
        "Can't you sell 2 teapots?",
        "Vendi 2 teiere appena puoi",
        "Non dimenticare di vendere 2 teiere",
        "Richiedi ferie dall'8 al 10 febbraio e poi dimmi quante me ne restano",
        "Per favore annulla la richiesta n. 5",
        "Demande des congés du 8 au 10 février",
        "N'oublie pas de demander des congés du 8 au 10 février",
        "Beantrage Urlaub vom 8. bis 10. Februar",
        "Solicita vacaciones del 8 al 10 de febrero",
        "No olvides solicitar vacaciones del 8 al 10 de febrero",
    ] {
        assert!(!has_doubt(said), "{said}");
    }
}

#[test]
fn unread_opening_word_leaves_a_write_in_doubt() {
    let asks =
        |token: &Token| token.is(&["demande", "demander", "conges", "solicita", "solicitar", "vacaciones"]);
    for said in [
        "Évite de demander des congés du 8 au 10 février",
        "Plus besoin de demander des congés du 8 au 10 février",
        "Deja de solicitar vacaciones del 8 al 10 de febrero",
        "Prefiero no solicitar vacaciones del 8 al 10 de febrero",
    ] {
        assert!(opens_unread(said, asks), "{said}");
    }
    for said in
        ["Demande des congés du 8 au 10 février", "Por favor, solicita vacaciones del 8 al 10 de febrero"]
    {
        assert!(!opens_unread(said, asks), "{said}");
    }
}
