//! More unknown scenes: shipments, reminders, canteen, pets, loans of money, hotel rooms.

use super::domains::{IDENTITY, VACATION, WEATHER};
use super::support::{World, check};

const SHIPMENTS: &str = r#"
name = "Shipping"
description = "Creates shipments for customers and quotes their price."
examples = [
    { say = "Spedisci un pacco di 3 kg a Mario Neri, Torino, con corriere espresso", tool = "CreateShipment" },
    { say = "Ship a 2 kg parcel to Jane Roe in Leeds by standard service", tool = "CreateShipment" },
    { say = "Quanto costa spedire 10 kg in Germania?", tool = "QuotePrice" },
    { say = "How much is it to ship 4 kg to Spain?", tool = "QuotePrice" },
]
[[tools]]
name = "CreateShipment"
description = "Creates a shipment and books its pick-up."
effect = "write"
parameters.required = ["recipient", "city", "weight_kg", "service"]
[tools.parameters.properties]
recipient = { type = "string", description = "Full name of who receives it" }
city = { type = "string", description = "City of delivery" }
weight_kg = { type = "number", exclusiveMinimum = 0, description = "Weight in kilograms" }
service = { type = "string", enum = ["standard", "express", "same_day"], description = "standard, express (espresso) or same_day (in giornata)" }
pickup_date = { type = "string", format = "date", description = "Day of pick-up" }
fragile = { type = "boolean", description = "Whether the content is fragile" }
instructions = { type = "string", description = "Notes for the courier" }
[[tools]]
name = "QuotePrice"
description = "Price of a shipment."
effect = "read"
parameters.required = ["weight_kg", "country"]
parameters.properties = { weight_kg = { type = "number", description = "Weight in kilograms" }, country = { type = "string", description = "Country of destination" } }
"#;

const REMINDERS: &str = r#"
name = "Promemoria"
description = "Promemoria personali: ne crea di nuovi e li elenca. Personal reminders."
examples = [
    { say = "Ricordami di chiamare il dentista domani alle 9", tool = "create_reminder" },
    { say = "Remind me to water the plants on Sunday at 18:00", tool = "create_reminder" },
    { say = "Che promemoria ho?", tool = "list_reminders" },
    { say = "What are my reminders for tomorrow?", tool = "list_reminders" },
]
[[tools]]
name = "create_reminder"
description = "Crea un promemoria."
effect = "write"
parameters.required = ["text", "date"]
[tools.parameters.properties]
text = { type = "string", description = "Che cosa ricordare" }
date = { type = "string", format = "date", description = "Giorno" }
time = { type = "string", pattern = "^[0-9]{2}:[0-9]{2}$", description = "Ora, HH:MM" }
repeat = { type = "string", enum = ["none", "daily", "weekly"], description = "none, daily (ogni giorno, every day), weekly (ogni settimana, every week)" }
[[tools]]
name = "list_reminders"
description = "Elenca i promemoria."
effect = "read"
parameters.properties = { date = { type = "string", format = "date", description = "Solo quelli di questo giorno" } }
"#;

const CANTEEN: &str = r#"
name = "Mensa"
description = "La mensa aziendale: menu del giorno e prenotazione del pasto."
examples = [
    { say = "Cosa c'è oggi in mensa?", tool = "menu_of_day" },
    { say = "What is for lunch at the canteen tomorrow?", tool = "menu_of_day" },
    { say = "Prenotami un pasto vegetariano per mercoledì al secondo turno", tool = "book_meal" },
    { say = "Book a vegan meal for Wednesday, first shift", tool = "book_meal" },
]
[[tools]]
name = "menu_of_day"
description = "Menu di un giorno."
effect = "read"
parameters.required = ["day"]
parameters.properties = { day = { type = "string", format = "date", description = "Giorno" } }
[[tools]]
name = "book_meal"
description = "Prenota un pasto in mensa."
effect = "write"
parameters.required = ["day", "diet"]
[tools.parameters.properties]
day = { type = "string", format = "date", description = "Giorno del pasto" }
diet = { type = "string", enum = ["standard", "vegetarian", "vegan", "gluten_free"], description = "standard (normale), vegetarian (vegetariano), vegan (vegano), gluten_free (senza glutine, celiaco)" }
shift = { type = "integer", minimum = 1, maximum = 3, description = "Turno: 1, 2 o 3" }
guests = { type = "integer", minimum = 0, description = "Ospiti esterni" }
note = { type = "string", description = "Allergie o altre note per la cucina" }
"#;

const LOANS: &str = r#"
name = "StaffLoans"
description = "Loans of the company to its employees: simulation and request."
examples = [
    { say = "Vorrei chiedere un prestito di 5000 euro in 24 mesi per ristrutturare casa", tool = "request_loan" },
    { say = "I want to apply for a loan of 3000 euros over 12 months to buy a car", tool = "request_loan" },
    { say = "Quanto pagherei al mese per 10000 euro in 36 mesi?", tool = "simulate_loan" },
    { say = "What would be the monthly rate for 8000 euros over 18 months?", tool = "simulate_loan" },
]
[[tools]]
name = "request_loan"
description = "Requests a loan."
effect = "write"
parameters.required = ["amount", "months", "reason"]
[tools.parameters.properties]
amount = { type = "number", minimum = 500, maximum = 20000, description = "Amount in euros" }
months = { type = "integer", minimum = 6, maximum = 60, description = "Months to pay back" }
reason = { type = "string", description = "What the money is for" }
[[tools]]
name = "simulate_loan"
description = "Monthly rate of a loan."
effect = "read"
parameters.required = ["amount", "months"]
parameters.properties = { amount = { type = "number", description = "Amount in euros" }, months = { type = "integer", description = "Months to pay back" } }
"#;

const HOTEL: &str = r#"
name = "Guesthouse"
description = "Camere della foresteria aziendale / rooms of the company guesthouse."
examples = [
    { say = "Prenota una camera doppia dal 3 al 5 marzo per Carla Longo", tool = "reserve_room" },
    { say = "Reserve a single room from 3 to 5 March for Tom Hill", tool = "reserve_room" },
    { say = "Ci sono camere libere dal 3 al 5 marzo?", tool = "room_availability" },
    { say = "Are there free rooms from 3 to 5 March?", tool = "room_availability" },
]
[[tools]]
name = "reserve_room"
description = "Reserves a room of the guesthouse."
effect = "write"
parameters.required = ["check_in", "check_out", "room_type", "guest"]
[tools.parameters.properties]
check_in = { type = "string", format = "date", description = "Arrival" }
check_out = { type = "string", format = "date", description = "Departure" }
room_type = { type = "string", enum = ["single", "double", "suite"], description = "Kind of room" }
guest = { type = "string", description = "Name of the guest" }
breakfast = { type = "boolean", description = "With breakfast" }
adults = { type = "integer", description = "Number of adults" }
children = { type = "integer", description = "Number of children" }
[[tools]]
name = "room_availability"
description = "Free rooms of the guesthouse in a period."
effect = "read"
parameters.required = ["check_in", "check_out"]
parameters.properties = { check_in = { type = "string", format = "date" }, check_out = { type = "string", format = "date" } }
"#;

/// Checks a table of requests to this scene beside the shipped ones.
pub(super) fn check_beside(scene: &str, table: &str) {
    check(&World::of(&[WEATHER, IDENTITY, VACATION, scene]), table);
}

#[test]
fn more_unknown_scenes_are_served_alone_and_beside_weather() {
    check_beside(
        SHIPMENTS,
        r#"
        Devo spedire un pacco fragile da 2,5 kg a Lucia Verdi a Bari, servizio standard, ritiro domani
            => CreateShipment {"recipient": "Lucia Verdi", "city": "Bari", "weight_kg": 2.5, "service": "standard", "pickup_date": "2026-05-05", "fragile": true}
        Please send 12 kg to Bob Stone in Bristol with the express service
            => CreateShipment {"recipient": "Bob Stone", "city": "Bristol", "weight_kg": 12, "service": "express"}
        Quanto mi costa spedire 5 kg in Francia? => QuotePrice {"weight_kg": 5, "country": "Francia"}
        What's the price to ship 7.5 kg to Italy? => QuotePrice {"weight_kg": 7.5, "country": "Italy"}
        Spedisci un pacco di 3 kg a Mario Neri con corriere espresso => asks city
        Dimmi il meteo a Roma, e poi quanto costa spedire 5 kg in Francia
            => WeatherForecast_Get {"city": "Roma"}; QuotePrice {"weight_kg": 5, "country": "Francia"}
        Chi ha scritto i Promessi Sposi? => nothing
    "#,
    );
    check_beside(
        REMINDERS,
        r#"
        Ricordami di comprare il latte venerdì alle 18:30
            => create_reminder {"text": "comprare il latte", "date": "2026-05-08", "time": "18:30"}
        Remind me tomorrow at 9 to send the report
            => create_reminder {"text": "send the report", "date": "2026-05-05", "time": "09:00"}
        Mostrami i promemoria di domani => list_reminders {"date": "2026-05-05"}
        Do I have any reminders? => list_reminders {}
        Prima dimmi il meteo a Roma, poi ricordami di prendere l'ombrello domani
            => WeatherForecast_Get {"city": "Roma"}; create_reminder {"text": "prendere l'ombrello", "date": "2026-05-05"}
        What is the capital of Mongolia? => nothing
    "#,
    );
    check_beside(
        CANTEEN,
        r#"
        Cosa si mangia domani in mensa? => menu_of_day {"day": "2026-05-05"}
        Vorrei prenotare un pasto senza glutine per giovedì al primo turno
            => book_meal {"day": "2026-05-07", "diet": "gluten_free", "shift": 1}
        I'd like a vegetarian meal on Friday with 2 guests, note: no peanuts
            => book_meal {"day": "2026-05-08", "diet": "vegetarian", "guests": 2, "note": "no peanuts"}
        Prenota un pasto vegano per domani e dimmi che tempo fa a Roma
            => book_meal {"day": "2026-05-05", "diet": "vegan"}; WeatherForecast_Get {"city": "Roma"}
    "#,
    );
    check_beside(
        LOANS,
        r#"
        Vorrei un prestito di 7.500 euro in 36 mesi perché devo cambiare l'auto
            => request_loan {"amount": 7500, "months": 36, "reason": "devo cambiare l'auto"}
        Apply for a loan of 4000 euros over 2 years because of medical expenses
            => request_loan {"amount": 4000, "months": 24, "reason": "medical expenses"}
        Che rata avrei per 6000 euro in 24 mesi? => simulate_loan {"amount": 6000, "months": 24}
        First the weather in Roma, then simulate a loan of 9000 euros over 48 months
            => WeatherForecast_Get {"city": "Roma"}; simulate_loan {"amount": 9000, "months": 48}
        Vorrei chiedere un prestito => asks amount, months, reason
        Calcola la radice quadrata di 144 => nothing
    "#,
    );
    check_beside(
        HOTEL,
        r#"
        Mi prenoti una doppia con colazione dal 10 al 12 luglio per Ugo Foscolo, 2 adulti e 1 bambino
            => reserve_room {"check_in": "2026-07-10", "check_out": "2026-07-12", "room_type": "double", "guest": "Ugo Foscolo", "breakfast": true, "adults": 2, "children": 1}
        I need a suite for Ann Lee for 3 nights from 1 June
            => reserve_room {"check_in": "2026-06-01", "check_out": "2026-06-04", "room_type": "suite", "guest": "Ann Lee"}
        Avete camere disponibili dal 20 al 22 maggio? => room_availability {"check_in": "2026-05-20", "check_out": "2026-05-22"}
        Tell me the weather in Roma and also whether rooms are free from 20 to 22 May
            => WeatherForecast_Get {"city": "Roma"}; room_availability {"check_in": "2026-05-20", "check_out": "2026-05-22"}
        Scrivi una poesia sul mare => nothing
    "#,
    );
}

const PARKING: &str = r#"
name = "Parking"
description = "Company parking: free spots and reservations for cars, motorbikes and vans."
examples = [
    { say = "Prenota un posto auto per lunedì, targa AB123CD", tool = "reserve_spot" },
    { say = "Reserve a parking spot on Monday for my van, plate XY987ZT", tool = "reserve_spot" },
    { say = "Ci sono posti liberi nel parcheggio domani?", tool = "free_spots" },
    { say = "How many parking spots are free tomorrow?", tool = "free_spots" },
]
[[tools]]
name = "reserve_spot"
description = "Reserves a parking spot for a day."
effect = "write"
parameters.required = ["date", "plate", "vehicle"]
[tools.parameters.properties]
date = { type = "string", format = "date", description = "Day of the reservation" }
plate = { type = "string", description = "Licence plate, e.g. AB123CD" }
vehicle = { type = "string", enum = ["car", "motorbike", "van"], description = "car (auto), motorbike (moto) or van (furgone)" }
hours = { type = "integer", minimum = 1, maximum = 24, description = "For how many hours" }
driver = { type = "string", description = "Name of the driver" }
note = { type = "string", description = "Free note for the porter" }
[[tools]]
name = "free_spots"
description = "Number of free parking spots on a day."
effect = "read"
parameters.required = ["date"]
parameters.properties = { date = { type = "string", format = "date", description = "Day" } }
"#;

const FAULTS: &str = r#"
name = "Facilities"
description = "Building maintenance: reports faults in the offices and says who is on duty."
examples = [
    { say = "Segnala un guasto all'ascensore del piano 2, gravità alta", tool = "report_fault" },
    { say = "Report a fault: the heating on floor 1 is off, severity low", tool = "report_fault" },
    { say = "Chi è di turno domani?", tool = "on_duty" },
    { say = "Who is on duty on Saturday?", tool = "on_duty" },
]
[[tools]]
name = "report_fault"
description = "Reports a fault to the maintenance team."
effect = "write"
parameters.required = ["floor", "description", "severity"]
[tools.parameters.properties]
floor = { type = "integer", minimum = -2, maximum = 12, description = "Floor (piano)" }
description = { type = "string", description = "What is wrong" }
severity = { type = "string", enum = ["low", "medium", "high"], description = "Severity (gravità): low = bassa, medium = media, high = alta" }
reporter_email = { type = "string", format = "email", description = "E-mail for updates" }
[[tools]]
name = "on_duty"
description = "Who is on duty on a day."
effect = "read"
parameters.required = ["date"]
parameters.properties = { date = { type = "string", format = "date" } }
"#;

#[test]
fn parking_and_fault_scenes_accept_many_phrasings() {
    check_beside(
        PARKING,
        r#"
        Prenotami un posto per la moto venerdì, targa GH456KL
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}
        vorrei parcheggiare la moto venerdì, la targa è GH456KL
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}
        I need a parking spot for my motorbike on Friday, plate GH456KL
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}
        Please reserve a spot for a van with plate ZZ111YY on 20 May for 6 hours, note: deliver to the back door
            => reserve_spot {"date": "2026-05-20", "plate": "ZZ111YY", "vehicle": "van", "hours": 6, "note": "deliver to the back door"}
        Quanti posti liberi ci sono venerdì? => free_spots {"date": "2026-05-08"}
        Is there any free parking the day after tomorrow? => free_spots {"date": "2026-05-06"}
        Prenota un posto auto per venerdì => asks plate
        Dimmi che tempo fa a Roma, e poi prenota un posto per la moto venerdì, targa GH456KL
            => WeatherForecast_Get {"city": "Roma"}; reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}
        First reserve a spot for my motorbike on Friday, plate GH456KL, then tell me the weather in Roma
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}; WeatherForecast_Get {"city": "Roma"}
        Reserve a spot for my motorbike on Friday, plate GH456KL, and also tell me the weather in Roma
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}; WeatherForecast_Get {"city": "Roma"}
        Dopo aver prenotato un posto per la moto venerdì con targa GH456KL, dimmi che tempo fa a Roma
            => reserve_spot {"date": "2026-05-08", "plate": "GH456KL", "vehicle": "motorbike"}; WeatherForecast_Get {"city": "Roma"}
        Vorrei sapere il meteo a Roma e quanti posti liberi ci sono venerdì nel parcheggio
            => WeatherForecast_Get {"city": "Roma"}; free_spots {"date": "2026-05-08"}
        Scrivi una poesia sul mare => nothing
        Calcola la radice quadrata di 144 => nothing
    "#,
    );
    check_beside(
        FAULTS,
        r#"
        C'è un guasto al piano 3: la porta non si chiude. Gravità media.
            => report_fault {"floor": 3, "description": "la porta non si chiude", "severity": "medium"}
        Segnala che al piano 5 manca la luce, gravità alta
            => report_fault {"floor": 5, "description": "al piano 5 manca la luce", "severity": "high"}
        Please report a high severity fault on floor 7: water is leaking, my email is a.b@c.org
            => report_fault {"floor": 7, "description": "water is leaking", "severity": "high", "reporter_email": "a.b@c.org"}
        Chi è di turno sabato? => on_duty {"date": "2026-05-09"}
        Who's on duty tomorrow, and what's the weather in Roma? => on_duty {"date": "2026-05-05"}; WeatherForecast_Get {"city": "Roma"}
        Segnala un guasto al piano 2: ascensore fermo, gravità bassa. Poi dimmi il meteo a Roma.
            => report_fault {"floor": 2, "description": "ascensore fermo", "severity": "low"}; WeatherForecast_Get {"city": "Roma"}
        Segnala un guasto => asks floor, description, severity
        Chi ha scritto i Promessi Sposi? => nothing
    "#,
    );
}
