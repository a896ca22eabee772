//! The shipped scenes.

use serde_json::json;

use super::support::{World, check};

#[test]
fn shipped_scenes_are_routed_planned_and_filled() {
    check(
        &World::shipped_and(&[]),
        r#"
        Che tempo fa oggi a Milano? => WeatherForecast_Get {"city": "Milano", "date": "2026-05-04"}
        Il mio username è keysersoze e vorrei sapere il meteo a Milano
            => get_user_name {"username": "keysersoze"}; WeatherForecast_Get {"city": "Milano"}
        Vorrei richiedere 3 giorni di ferie dal 15 al 17 giugno => MakeRequest {"from": "2026-06-15", "to": "2026-06-17"}
        Voglio prendere ferie dal 10 giugno al 20 giugno => MakeRequest {"from": "2026-06-10", "to": "2026-06-20"}
        Qual è il mio nome completo? => get_user_name {}
        What is the weather in Milan, and then ask for three days off from 15 to 17 June
            => WeatherForecast_Get {"city": "Milan"}; MakeRequest {"from": "2026-06-15", "to": "2026-06-17"}
        Calcola la radice quadrata di 144 => nothing
        Ciao! Mi chiamo con username keysersoze e vorrei sapere il meteo a Milano oggi.
            => get_user_name {"username": "keysersoze"}; WeatherForecast_Get {"city": "Milano", "date": "2026-05-04"}
        Perfetto! Ora vorrei richiedere 5 giorni di ferie dal 15 giugno al 19 giugno.
            => MakeRequest {"from": "2026-06-15", "to": "2026-06-19"}
        Chi deve approvare la mia richiesta? => GetApprovers {}
        Riassumimi quello che abbiamo discusso finora => nothing
        What is the weather in Milan, and then ask for three days off
            => WeatherForecast_Get {"city": "Milan"}; asks from, to
        Quanti giorni di ferie ho? Poi chiedi ferie dal 15 al 17 giugno e dimmi quanti me ne restano
            => GetBalance {}; MakeRequest {"from": "2026-06-15", "to": "2026-06-17"}; GetBalance {}
        # The tool gets the requester and decides for whom it can act; there is no lookup.
        Sono mrossi. Chiedi 5 giorni di ferie per me dal 15 al 19 giugno
            => MakeRequest {"from": "2026-06-15", "to": "2026-06-19", "employee": "mrossi"}
        Quali sono le festività del 2027? => GetHolidays {"year": 2027}
        Annulla la richiesta di ferie numero 3 => CancelRequest {"request_id": 3}
        Cancel my vacation from 15 June => CancelRequest {"from": "2026-06-15"}
        Chi è mrossi? => get_user_name {"username": "mrossi"}
        Aggiungi la città di Cuneo, latitudine 44.39, longitudine 7.55
            => AddCity {"name": "Cuneo", "latitude": 44.39, "longitude": 7.55}
        Previsioni per Firenze nei prossimi 3 giorni => WeatherForecast_Get {"city": "Firenze", "days": 3}
        Cerca un collega che si chiama Weber => find_user {"name": "Weber"}
        Che tempo fa a Milano e a Roma? => WeatherForecast_Get {"city": "Milano"}; WeatherForecast_Get {"city": "Roma"}
        Is it warmer in Rome or in Milan? => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Milan"}
        Which of Rome, Naples and Palermo is the warmest?
            => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Naples"}; WeatherForecast_Get {"city": "Palermo"}
        Which of Rome and Milan is warmer? => WeatherForecast_Get {"city": "Rome"}; WeatherForecast_Get {"city": "Milan"}
        Write a poem about the sea => nothing
        What is the capital of Mongolia? => nothing
        Will I need an umbrella in Dublin tomorrow? What's the forecast?
            => WeatherForecast_Get {"city": "Dublin", "date": "2026-05-05"}
        Vorrei due giorni di ferie, il 3 e il 4 agosto, perché mi trasferisco
            => MakeRequest {"from": "2026-08-03", "to": "2026-08-04", "note": "mi trasferisco"}
    "#,
    );
}

#[test]
fn words_of_a_date_are_no_words_of_order() {
    check(
        &World::shipped_and(&[]),
        r#"
        Book the day after tomorrow off and tell me the weather in Rome
            => MakeRequest {"from": "2026-05-06", "to": "2026-05-06"}; WeatherForecast_Get {"city": "Rome"}
        Tell me the weather in Rome and book the day after tomorrow off
            => WeatherForecast_Get {"city": "Rome"}; MakeRequest {"from": "2026-05-06", "to": "2026-05-06"}
        Book the day after 15 June off and tell me my balance
            => MakeRequest {"from": "2026-06-16", "to": "2026-06-16"}; GetBalance {}
        Chiedi ferie il giorno prima di Natale e dimmi il meteo a Roma
            => MakeRequest {"from": "2026-12-24", "to": "2026-12-24"}; WeatherForecast_Get {"city": "Roma"}
        Book the Monday after next off and tell me the weather in Rome
            => WeatherForecast_Get {"city": "Rome"}; asks from, to
        Request 2 days before Christmas off => asks from, to
    "#,
    );
}

#[test]
fn count_of_what_no_scene_knows_is_answered_by_none() {
    check(
        &World::shipped_and(&[]),
        r#"
        How many apples do I have left? => nothing
        How many teapots do we have left? => nothing
        Quante mele mi restano? => nothing
        How many days do I have left? => GetBalance {}
        How many vacation days do I have left? => GetBalance {}
        Quanti giorni mi restano? => GetBalance {}
        Combien de jours de congé me reste-t-il ? => GetBalance {}
        Wie viele Urlaubstage habe ich noch? => GetBalance {}
    "#,
    );
}

#[test]
fn order_to_show_something_is_for_the_tool_that_is_named_after_it() {
    check(
        &World::shipped_and(&[]),
        r#"
        Show me the weather in Rome => WeatherForecast_Get {"city": "Rome"}
        Mostrami il meteo a Roma => WeatherForecast_Get {"city": "Roma"}
        Show me the cities in Italy => ListCities {"country": "Italy"}
        Show me my approvers => GetApprovers {}
    "#,
    );
}

#[test]
fn another_person_is_never_taken_for_the_user() {
    check(
        &World::shipped_and(&[]),
        r#"
        Request vacation for Sara from 15 to 17 June => MakeRequest {"from": "2026-06-15", "to": "2026-06-17", "employee": "Sara"}
        I am mrossi. Book 15 June off => MakeRequest {"from": "2026-06-15", "to": "2026-06-15", "employee": "mrossi"}
        Who is the approver of mrossi? => GetApprovers {"employee": "mrossi"}
        Chi approva le ferie di mrossi? => GetApprovers {"employee": "mrossi"}
        Chiedi ferie per Sara dal 15 al 17 giugno => MakeRequest {"from": "2026-06-15", "to": "2026-06-17", "employee": "Sara"}
        Book Lucia's vacation from 15 to 17 June => MakeRequest {"from": "2026-06-15", "to": "2026-06-17", "employee": "Lucia"}
        Cancel Mario's vacation from 15 June => CancelRequest {"from": "2026-06-15", "employee": "Mario"}
        How many vacation days does mrossi have left? => GetBalance {"employee": "mrossi"}
        Quanti giorni di ferie restano a Sara? => GetBalance {"employee": "Sara"}
        Show Sara's vacation requests => ListRequests {"employee": "Sara"}
        Which department does Mario work in? => get_user_profile {"username": "Mario"}
        In quale reparto lavora Mario? => get_user_profile {"username": "Mario"}
        What department is Sara Bianchi in? => get_user_profile {"username": "Sara Bianchi"}
        Who is the manager of lferrari? => get_user_profile {"username": "lferrari"}
        inform my manager => nothing
    "#,
    );
}

#[test]
fn number_of_days_without_a_last_day_is_asked_about() {
    for (turns, missing) in [
        (vec!["request 3 days off from 18 June"], json!(["to"])),
        (vec!["I want three days off", "15 June"], json!(["to"])),
        (vec!["voglio tre giorni di ferie", "15 giugno"], json!(["to"])),
        // The last day is proposed where it can be counted.
        (vec!["I want three days off", "from 15 June"], json!([])),
        (vec!["je voudrais trois jours de cong\u{e9} \u{e0} partir du 15 juin"], json!([])),
        (vec!["I want a week off from 15 June"], json!(["to"])),
        (vec!["request 3 days off next week"], json!(["from", "to"])),
        (vec!["three days off please, 15 to 16 June"], json!([])),
    ] {
        let mut world = World::shipped_and(&[]);
        let last = turns.iter().map(|turn| world.run(turn)).last().unwrap();
        let asked = last.question.as_ref().map(|question| question["missing"].clone());
        assert_eq!((last.calls.len(), asked), (0, Some(missing)), "{turns:?}");
    }
    for turns in [
        vec!["I want three days off", "from 15 June", "17 June"],
        vec!["I want three days off", "from 15 to 17 June"],
        vec!["five days off from 15 to 21 June"],
        vec!["I want a day off", "15 June"],
    ] {
        let mut world = World::shipped_and(&[]);
        let last = turns.iter().map(|turn| world.run(turn)).last().unwrap();
        assert_eq!(last.calls.len(), 1, "{turns:?}: {last:?}");
        assert_eq!(last.call("MakeRequest")["from"], "2026-06-15", "{turns:?}");
    }
}
