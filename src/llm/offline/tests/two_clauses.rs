//! Requests with two clauses: each does what its own words ask for, and what one of them excludes or corrects is not done.

use serde_json::{Value, json};

use super::domains::DESK;
use super::support::World;

/// The calls of the last of some requests of a conversation.
fn calls(requests: &[&str]) -> Vec<Value> {
    let mut world = World::of(&[DESK]);
    let mut made = Vec::new();
    for request in requests {
        made =
            world.run(request).calls.into_iter().map(|(tool, arguments)| json!([tool, arguments])).collect();
    }
    made
}

fn closed(number: u64) -> Vec<Value> {
    vec![json!(["CloseTicket", {"number": number}])]
}

#[test]
fn clause_with_its_own_verb_is_not_carried_out_with_the_verb_before_it() {
    let both = [json!(["RenewLoan", {"title": "Dune"}]), json!(["TakeBack", {"title": "Emma"}])];
    assert_eq!(calls(&["Renew Dune and take back Emma"]), both);
    assert_eq!(
        calls(&["Lend Dune to Ada and take back Emma"]),
        [json!(["LendBook", {"title": "Dune", "reader": "Ada"}]), json!(["TakeBack", {"title": "Emma"}])]
    );
    for request in [
        "Renew Dune and burn Emma",
        "Renew Dune and reserve Emma for Bob",
        "Renew Dune and gift-wrap the Emma",
    ] {
        let made = calls(&[request]);
        assert!(made.iter().all(|call| *call == both[0]), "{request}: {made:?}");
    }
}

#[test]
fn list_of_tuples_takes_the_verb_of_its_first_part() {
    let lent = |title: &str, reader: &str| json!(["LendBook", {"title": title, "reader": reader}]);
    let both = [lent("Dune", "Ada"), lent("Emma", "Bob")];
    assert_eq!(calls(&["Lend Dune to Ada and Emma to Bob"]), both);
    assert_eq!(calls(&["Presta Dune ad Ada ed Emma a Bob"]), both);
}

#[test]
fn what_is_left_out_or_replaced_is_not_done() {
    for request in [
        "Close ticket 131 but leave 120 alone pls",
        "Close ticket 131 instead of 120",
        "Close ticket 131, not 120",
        "Close ticket 131 and skip 120",
        "Chiudi il ticket 131 e lascia stare il 120",
        "Chiudi il ticket 131 invece del 120",
        "Schließe Ticket 131 statt 120",
        "Schließe Ticket 131 und lass 120 offen",
        "Ferme le ticket 131 au lieu du 120",
        "Ferme le ticket 131 et laisse le 120 tranquille",
        "Cierra la incidencia 131 en vez de la 120",
        "Cierra la incidencia 131, la 120 déjala",
        "Close ticket 120, no wait, close ticket 131",
        "Chiudi il ticket 120, anzi chiudi il ticket 131",
    ] {
        assert_eq!(calls(&[request]), closed(131), "{request}");
    }
    let moved = json!(["MoveVisit", {"number": 12, "day": "2026-12-05"}]);
    assert!(
        calls(&["Cancel visit 12, actually move it to 5 December"]).iter().all(|call| *call == moved),
        "the correction alone is meant"
    );
    for request in [
        "Schließe alle Tickets außer 120",
        "Close all tickets except 120",
        "Ferme tous les tickets sauf le 120",
        "Risparmiati di chiudere il ticket 131",
        "Ya cancelé la visita 12",
        "Cerró la incidencia 131",
    ] {
        assert!(calls(&[request]).is_empty(), "{request}");
    }
}

#[test]
fn german_verb_with_its_prefix_leads_to_the_tool_of_its_order() {
    let mut world = World::of(&[DESK]);
    let asked =
        world.run("Kannst du den Termin 12 absagen?").question.map(|question| question["known"].clone());
    assert_eq!(asked, Some(json!({"number": 12})));
    assert!(calls(&["Kann ich den Termin 12 absagen?"]).is_empty());
}

#[test]
fn polite_words_of_other_languages_need_no_confirmation() {
    for request in [
        "Pourriez-vous fermer le ticket 131 ?",
        "Je voudrais fermer le ticket 131",
        "Veuillez fermer le ticket 131",
        "Por favor, cierra la incidencia 131",
        "Quiero cerrar la incidencia 131",
    ] {
        assert_eq!(calls(&[request]), closed(131), "{request}");
    }
    // No example speaks of accounts.
    assert!(calls(&["Schließe Konto 131"]).is_empty());
}

#[test]
fn write_is_repeated_for_another_value_where_the_user_says_so() {
    for (first, again) in [
        ("Close ticket 131", "do the same for 120"),
        ("Close ticket 131", "and ticket 120 too"),
        ("Chiudi il ticket 131", "fai lo stesso per il 120"),
        ("Schließe Ticket 131", "mach dasselbe mit 120"),
    ] {
        assert_eq!(calls(&[first, again]), closed(120), "{again}");
    }
    for (first, again) in [
        ("Lend the book Dune to Ada", "do the same for Bob"),
        ("Assign ticket 131 to Omar", "no, to Laura"),
        ("What is the state of ticket 131?", "do the same if Laura agrees"),
    ] {
        assert!(calls(&[first, again]).is_empty(), "{again}");
    }
}

#[test]
fn pronoun_stands_for_what_was_said_before_it() {
    let made = calls(&["What is the state of ticket 131?", "close it and assign 120 to Omar"]);
    assert!(!made.contains(&closed(120)[0]), "{made:?}");
    assert!(calls(&["A che punto è il ticket 131?", "grazie, lo chiudo io"]).is_empty());
}
