//! Other forms of the verbs of examples in French, German and Spanish, and who has a thing.

use serde_json::json;

use super::domains::{DESK, IDENTITY, WEATHER};
use super::support::World;

#[test]
fn forms_of_the_verbs_of_examples_lead_to_their_tool() {
    for said in [
        "Pourrais-tu fermer le ticket 131 s'il te plaît ?",
        "Tu devrais fermer le ticket 131",
        "Könntest du bitte Ticket 131 schließen?",
        "¿Podrías cerrar la incidencia 131, por favor?",
        "Deberías cerrar la incidencia 131",
    ] {
        let outcome = World::of(&[DESK]).run(said);
        // Made, or asked about with its values.
        let asked = outcome.question.as_ref().map(|question| (&question["tool"], &question["known"]));
        let made = outcome.calls.first().map(|(tool, arguments)| (json!(tool), arguments.clone()));
        let led = made.or(asked.map(|(tool, known)| (tool.clone(), known.clone())));
        assert_eq!(led, Some((json!("CloseTicket"), json!({"number": 131}))), "{said}: {outcome:#?}");
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
fn who_has_a_thing_is_no_question_about_the_requester() {
    for said in ["Who has Dune?", "Chi ha Dune?", "Wer hat Dune?"] {
        let outcome = World::of(&[WEATHER, IDENTITY]).run(said);
        assert!(outcome.tools().is_empty(), "{said}: {outcome:#?}");
    }
}
