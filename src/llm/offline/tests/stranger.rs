//! Scenes unknown when the rules were written, alone and together with Weather.

use super::more::check_beside;

const GYM: &str = r#"
name = "GymClasses"
description = "Corsi della palestra: orari, iscrizioni e disdette."
examples = [
    { say = "A che ora c'è pilates domani?", tool = "class_timetable" },
    { say = "When is the yoga class on Monday?", tool = "class_timetable" },
    { say = "Iscrivimi a spinning giovedì", tool = "enroll" },
    { say = "Sign me up for yoga on Tuesday", tool = "enroll" },
]
[[tools]]
name = "class_timetable"
description = "Timetable of a class on a day."
effect = "read"
parameters.required = ["class", "day"]
parameters.properties = { class = { type = "string", enum = ["yoga", "pilates", "spinning", "swimming"], description = "swimming: nuoto" }, day = { type = "string", format = "date" } }
[[tools]]
name = "enroll"
description = "Enrolls somebody in a class."
effect = "write"
parameters.required = ["class", "day", "level"]
[tools.parameters.properties]
class = { type = "string", enum = ["yoga", "pilates", "spinning", "swimming"], description = "swimming: nuoto" }
day = { type = "string", format = "date", description = "Day of the class" }
level = { type = "string", enum = ["beginner", "advanced"], default = "beginner", description = "beginner (principiante, base), advanced (avanzato, esperto)" }
guests = { type = "integer", description = "How many friends come along" }
"#;

const EXPENSES: &str = r#"
name = "Expenses"
description = "Expense claims: submits receipts for reimbursement and shows what was spent."
examples = [
    { say = "Registra una spesa di 45 euro per il taxi di ieri", tool = "add_expense" },
    { say = "Add an expense of 30 dollars for lunch with a client", tool = "add_expense" },
    { say = "Quanto ho speso questo mese?", tool = "expense_total" },
    { say = "How much did I spend in May?", tool = "expense_total" },
]
[[tools]]
name = "add_expense"
description = "Submits an expense for reimbursement."
effect = "write"
parameters.required = ["amount", "currency", "category", "date"]
[tools.parameters.properties]
amount = { type = "number", description = "Amount spent" }
currency = { type = "string", enum = ["EUR", "USD", "GBP"], default = "EUR", description = "EUR (euro), USD (dollari, dollars), GBP (sterline, pounds)" }
category = { type = "string", enum = ["travel", "meals", "lodging", "other"], description = "travel (taxi, treno, train, volo, flight), meals (pranzo, cena, lunch, dinner), lodging (hotel, albergo), other (altro)" }
date = { type = "string", format = "date", description = "Day of the receipt" }
project = { type = "string", description = "Project code, e.g. PRJ-12" }
note = { type = "string", description = "Free text for the accountant" }
[[tools]]
name = "expense_total"
description = "Total of the user's expenses."
effect = "read"
parameters.properties = { category = { type = "string", enum = ["travel", "meals", "lodging", "other"] } }
"#;

const CARS: &str = r#"
name = "CarPool"
description = "Auto aziendali: quali sono libere e come prenotarle / company cars."
examples = [
    { say = "Quali auto sono disponibili dal 3 al 5 marzo?", tool = "available_cars" },
    { say = "Which cars are free from 3 to 5 March?", tool = "available_cars" },
    { say = "Prenota un'auto elettrica dal 10 al 12 aprile per andare a Bologna", tool = "book_car" },
    { say = "Book a diesel car from 10 to 12 April, destination Verona", tool = "book_car" },
]
[[tools]]
name = "available_cars"
description = "Company cars that are free in a period."
effect = "read"
parameters.required = ["start_date", "end_date"]
parameters.properties = { start_date = { type = "string", format = "date" }, end_date = { type = "string", format = "date" } }
[[tools]]
name = "book_car"
description = "Reserves a company car."
effect = "write"
parameters.required = ["start_date", "end_date", "fuel", "destination"]
[tools.parameters.properties]
start_date = { type = "string", format = "date", description = "Day of pick-up" }
end_date = { type = "string", format = "date", description = "Day of return" }
fuel = { type = "string", enum = ["electric", "diesel", "petrol"], description = "Engine" }
destination = { type = "string", description = "Where the trip goes" }
passengers = { type = "integer", minimum = 1, maximum = 8, description = "Number of people travelling" }
driver = { type = "string", description = "Full name of the driver, if not the user" }
purpose = { type = "string", description = "Why the car is needed" }
"#;

const CLINIC: &str = r#"
name = "Clinic"
description = "Medical visits: books appointments with doctors and lists the next ones."
examples = [
    { say = "Vorrei fissare una visita dal cardiologo il 4 maggio alle 11", tool = "schedule_visit" },
    { say = "I need an appointment with a dermatologist on May 4th at 11am", tool = "schedule_visit" },
    { say = "Che visite ho in programma?", tool = "my_visits" },
    { say = "List my upcoming appointments", tool = "my_visits" },
]
[[tools]]
name = "schedule_visit"
description = "Schedules a visit with a specialist."
effect = "write"
parameters.required = ["specialty", "when", "patient_name"]
[tools.parameters.properties]
specialty = { type = "string", enum = ["cardiology", "dermatology", "orthopedics"], description = "cardiology (cardiologo, cuore, cardiologist), dermatology (dermatologo, pelle, dermatologist), orthopedics (ortopedico, ossa, orthopedist)" }
when = { type = "string", format = "date-time", description = "Day and time of the visit" }
patient_name = { type = "string", description = "First and last name of the patient" }
phone = { type = "string", description = "Phone number" }
first_visit = { type = "boolean", description = "Whether it is the first visit" }
reason = { type = "string", description = "Symptoms or reason of the visit" }
[[tools]]
name = "my_visits"
description = "Upcoming visits."
effect = "read"
"#;

const SHOP: &str = r#"
name = "OfficeSupplies"
description = "Cancelleria e materiale d'ufficio: ordini e giacenze."
examples = [
    { say = "Ordina 20 penne blu per l'ufficio acquisti", tool = "order_supplies" },
    { say = "Order 5 packs of paper for the sales office", tool = "order_supplies" },
    { say = "Quanti quaderni abbiamo in magazzino?", tool = "stock_level" },
    { say = "How many staplers are in stock?", tool = "stock_level" },
]
[[tools]]
name = "order_supplies"
description = "Orders office supplies."
effect = "write"
parameters.required = ["item", "quantity", "deliver_by"]
[tools.parameters.properties]
item = { type = "string", description = "What to order" }
quantity = { type = "integer", minimum = 1, description = "How many pieces" }
deliver_by = { type = "string", format = "date", description = "Latest day of delivery" }
urgent = { type = "boolean", description = "Whether it is urgent" }
contact_email = { type = "string", format = "email", description = "Who is told when it arrives" }
[[tools]]
name = "stock_level"
description = "Stock of an item."
effect = "read"
parameters.required = ["item"]
parameters.properties = { item = { type = "string", description = "Item" } }
"#;

#[test]
fn unknown_scene_is_served_alone() {
    check_beside(
        GYM,
        r#"
        Iscrivimi al corso di nuoto per venerdì, livello avanzato
            => enroll {"class": "swimming", "day": "2026-05-08", "level": "advanced"}
        I want to join the pilates class tomorrow with two friends
            => enroll {"class": "pilates", "day": "2026-05-05", "level": "beginner", "guests": 2}
        A che ora è la lezione di yoga sabato? => class_timetable {"class": "yoga", "day": "2026-05-09"}
        What time does spinning start on Thursday? => class_timetable {"class": "spinning", "day": "2026-05-07"}
    "#,
    );
    check_beside(
        EXPENSES,
        r#"
        Ieri ho speso 62,50 euro per una cena con il cliente, registrala
            => add_expense {"amount": 62.5, "currency": "EUR", "category": "meals", "date": "2026-05-03"}
        Please log a 120 dollar flight from yesterday on project PRJ-77
            => add_expense {"amount": 120, "currency": "USD", "category": "travel", "date": "2026-05-03", "project": "PRJ-77"}
        Aggiungi una spesa di €18 per il treno del 2 maggio 2026 con la nota "biglietto smarrito"
            => add_expense {"amount": 18, "currency": "EUR", "category": "travel", "date": "2026-05-02", "note": "biglietto smarrito"}
        Quanto ho speso in viaggi? => expense_total {"category": "travel"}
        What are my total expenses? => expense_total {}
        Inserisci una spesa di 30 euro per il taxi => asks date
        Scrivi una poesia sul mare => nothing
    "#,
    );
    check_beside(
        CARS,
        r#"
        Mi serve una macchina elettrica dal 15 al 17 giugno per Torino, siamo in 3
            => book_car {"start_date": "2026-06-15", "end_date": "2026-06-17", "fuel": "electric", "destination": "Torino", "passengers": 3}
        Reserve a petrol car from June 1st to June 3rd to go to Genoa for 2 people because we visit a customer
            => book_car {"start_date": "2026-06-01", "end_date": "2026-06-03", "fuel": "petrol", "destination": "Genoa", "passengers": 2, "purpose": "we visit a customer"}
        Ci sono macchine libere da lunedì a mercoledì? => available_cars {"start_date": "2026-05-11", "end_date": "2026-05-13"}
        Any cars available between 3 and 5 July? => available_cars {"start_date": "2026-07-03", "end_date": "2026-07-05"}
        Prenota un'auto diesel per Parma => asks start_date, end_date
        Chi ha vinto la gara di auto ieri sera? => nothing
    "#,
    );
    check_beside(
        CLINIC,
        r#"
        Prenota una visita dermatologica il 12 giugno alle 9:30 per Anna Bianchi
            => schedule_visit {"specialty": "dermatology", "when": "2026-06-12T09:30:00+02:00", "patient_name": "Anna Bianchi"}
        Book me an appointment with the orthopedist on Friday at 4pm, the patient is John Doe
            => schedule_visit {"specialty": "orthopedics", "when": "2026-05-08T16:00:00+02:00", "patient_name": "John Doe"}
        Quali visite ho? => my_visits {}
        What is the capital of Mongolia? => nothing
    "#,
    );
    check_beside(
        SHOP,
        r#"
        Ordina 12 evidenziatori entro il 20 maggio
            => order_supplies {"item": "evidenziatori", "quantity": 12, "deliver_by": "2026-05-20"}
        Order 3 boxes of markers by June 10, it is urgent, contact anna@example.com
            => order_supplies {"item": "markers", "quantity": 3, "deliver_by": "2026-06-10", "urgent": true, "contact_email": "anna@example.com"}
        Quante penne ci sono in magazzino? => stock_level {"item": "penne"}
        How many notebooks do we have in stock? => stock_level {"item": "notebooks"}
        Quanto fa 12 per 8? => nothing
    "#,
    );
}

#[test]
fn unknown_scene_is_served_beside_weather() {
    check_beside(
        GYM,
        r#"
        Dimmi che tempo fa a Milano, e poi iscrivimi a yoga venerdì
            => WeatherForecast_Get {"city": "Milano"}; enroll {"class": "yoga", "day": "2026-05-08", "level": "beginner"}
        First sign me up for yoga on Friday, then tell me the weather in Rome
            => enroll {"class": "yoga", "day": "2026-05-08", "level": "beginner"}; WeatherForecast_Get {"city": "Rome"}
        Sign me up for yoga on Friday and also tell me the weather in Rome
            => enroll {"class": "yoga", "day": "2026-05-08", "level": "beginner"}; WeatherForecast_Get {"city": "Rome"}
        Iscrivimi a yoga venerdì e dimmi il meteo a Milano
            => enroll {"class": "yoga", "day": "2026-05-08", "level": "beginner"}; WeatherForecast_Get {"city": "Milano"}
    "#,
    );
    check_beside(
        CARS,
        r#"
        Prenota un'auto elettrica dal 15 al 17 giugno per Torino, e poi dimmi il meteo a Milano
            => book_car {"start_date": "2026-06-15", "end_date": "2026-06-17", "fuel": "electric", "destination": "Torino"}; WeatherForecast_Get {"city": "Milano"}
        First tell me the weather in Rome, then book an electric car from 15 to 17 June to Torino
            => WeatherForecast_Get {"city": "Rome"}; book_car {"start_date": "2026-06-15", "end_date": "2026-06-17", "fuel": "electric", "destination": "Torino"}
    "#,
    );
    check_beside(
        EXPENSES,
        r#"
        Che tempo fa a Milano? Inoltre registra una spesa di 20 euro per il taxi di ieri
            => WeatherForecast_Get {"city": "Milano"}; add_expense {"amount": 20, "currency": "EUR", "category": "travel", "date": "2026-05-03"}
        Add an expense of 20 euros for yesterday's taxi and then give me the forecast for Rome
            => add_expense {"amount": 20, "currency": "EUR", "category": "travel", "date": "2026-05-03"}; WeatherForecast_Get {"city": "Rome"}
        Meteo a Milano e quanto ho speso? => WeatherForecast_Get {"city": "Milano"}; expense_total {}
    "#,
    );
    check_beside(
        SHOP,
        r#"
        Voglio sapere il meteo a Milano, e poi ordinare 10 penne entro il 20 maggio
            => WeatherForecast_Get {"city": "Milano"}; order_supplies {"item": "penne", "quantity": 10, "deliver_by": "2026-05-20"}
        What's the weather in Rome and how many pens are in stock?
            => WeatherForecast_Get {"city": "Rome"}; stock_level {"item": "pens"}
    "#,
    );
    check_beside(
        CLINIC,
        r#"
        Prima dimmi che visite ho, poi il meteo a Milano => my_visits {}; WeatherForecast_Get {"city": "Milano"}
        Quali visite ho in programma e che tempo fa a Milano? => my_visits {}; WeatherForecast_Get {"city": "Milano"}
    "#,
    );
}
