//! Other forms of the verbs of examples in French, German and Spanish, and prices of things that the examples do not have.

use serde_json::json;

use super::domains::{IDENTITY, WEATHER};
use super::support::World;

const DESK: &str = r#"
name = "Desk"
description = "Tickets: tells their state and closes them."
[[examples]]
say = "Où en est le ticket 120 ?"
tool = "TicketState"
[[examples]]
say = "Wie ist der Stand von Ticket 120?"
tool = "TicketState"
[[examples]]
say = "¿Cómo va la incidencia 120?"
tool = "TicketState"
[[examples]]
say = "Ferme le ticket 120"
tool = "CloseTicket"
[[examples]]
say = "Schließe Ticket 120"
tool = "CloseTicket"
[[examples]]
say = "Cierra la incidencia 120"
tool = "CloseTicket"
[[tools]]
name = "TicketState"
description = "Tells the state of a ticket."
effect = "read"
[tools.parameters]
type = "object"
required = ["number"]
properties = { number = { type = "integer", description = "Number of the ticket" } }
[[tools]]
name = "CloseTicket"
description = "Closes a ticket."
effect = "write"
[tools.parameters]
type = "object"
required = ["number"]
properties = { number = { type = "integer", description = "Number of the ticket" } }
"#;

const PRICES: &str = r#"
name = "Prices"
description = "The prices of a shop: tells and changes them."
[[examples]]
say = "Cambia il prezzo delle teiere a 24 euro"
tool = "ChangePrice"
[[examples]]
say = "Quanto costa una teiera?"
tool = "GetPrice"
[[tools]]
name = "GetPrice"
description = "Tells what an item costs."
effect = "read"
[tools.parameters]
type = "object"
required = ["item"]
properties = { item = { type = "string", description = "Item" } }
[[tools]]
name = "ChangePrice"
description = "Changes the price of an item."
effect = "write"
[tools.parameters]
type = "object"
required = ["item", "price"]
properties = { item = { type = "string", description = "Item" }, price = { type = "number", description = "The new price in euros" } }
"#;

#[test]
fn forms_of_the_verbs_of_examples_lead_to_their_tool() {
    for said in [
        "Pourrais-tu fermer le ticket 131 s'il te plaît ?",
        "Tu devrais fermer le ticket 131",
        "Könntest du bitte Ticket 131 schließen?",
        "Du solltest Ticket 131 schließen",
        "¿Podrías cerrar la incidencia 131, por favor?",
        "Deberías cerrar la incidencia 131",
    ] {
        let outcome = World::of(&[DESK]).run(said);
        assert_eq!(outcome.tools(), ["CloseTicket"], "{said}: {outcome:#?}");
        assert_eq!(outcome.call("CloseTicket"), &json!({"number": 131}), "{said}");
    }
    for said in [
        "Devrais-tu fermer le ticket 131 ?",
        "Tu aurais dû fermer le ticket 131",
        "Solltest du Ticket 131 schließen?",
        "Eigentlich wollte ich Ticket 131 schließen",
        "¿Deberías cerrar la incidencia 131?",
        "No vayas a cerrar la incidencia 131",
    ] {
        let outcome = World::of(&[DESK]).run(said);
        assert!(!outcome.tools().contains(&"CloseTicket"), "{said}: {outcome:#?}");
    }
}

#[test]
fn price_is_that_of_the_thing_after_the_noun() {
    for said in ["Cambia il prezzo della lattiera a 12 euro", "Porta il prezzo della lattiera a 12 euro"] {
        let outcome = World::of(&[PRICES]).run(said);
        assert_eq!(outcome.call("ChangePrice"), &json!({"item": "lattiera", "price": 12}), "{said}");
    }
}

#[test]
fn who_has_a_thing_is_no_question_about_the_requester() {
    for said in ["Who has Dune?", "Chi ha Dune?", "Wer hat Dune?"] {
        let outcome = World::of(&[WEATHER, IDENTITY]).run(said);
        assert!(outcome.tools().is_empty(), "{said}: {outcome:#?}");
    }
}
