//! Scenes unknown when the rules were written, alone and together with Weather.

use serde_json::json;

use super::more::check;

const GYM: &str = r#"
name = "GymClasses"
description = "Corsi della palestra: orari, iscrizioni e disdette."
[[examples]]
say = "A che ora c'è pilates domani?"
tool = "class_timetable"
[[examples]]
say = "When is the yoga class on Monday?"
tool = "class_timetable"
[[examples]]
say = "Iscrivimi a spinning giovedì"
tool = "enroll"
[[examples]]
say = "Sign me up for yoga on Tuesday"
tool = "enroll"
[[tools]]
name = "class_timetable"
description = "Timetable of a class on a day."
effect = "read"
[tools.parameters]
type = "object"
required = ["class", "day"]
additionalProperties = false
properties = { class = { type = "string", enum = ["yoga", "pilates", "spinning", "swimming"], description = "swimming: nuoto" }, day = { type = "string", format = "date" } }
[[tools]]
name = "enroll"
description = "Enrolls somebody in a class."
effect = "write"
[tools.parameters]
type = "object"
required = ["class", "day", "level"]
additionalProperties = false
[tools.parameters.properties]
class = { type = "string", enum = ["yoga", "pilates", "spinning", "swimming"], description = "swimming: nuoto" }
day = { type = "string", format = "date", description = "Day of the class" }
level = { type = "string", enum = ["beginner", "advanced"], default = "beginner", description = "beginner (principiante, base), advanced (avanzato, esperto)" }
guests = { type = "integer", description = "How many friends come along" }
"#;

const EXPENSES: &str = r#"
name = "Expenses"
description = "Expense claims: submits receipts for reimbursement and shows what was spent."
[[examples]]
say = "Registra una spesa di 45 euro per il taxi di ieri"
tool = "add_expense"
[[examples]]
say = "Add an expense of 30 dollars for lunch with a client"
tool = "add_expense"
[[examples]]
say = "Quanto ho speso questo mese?"
tool = "expense_total"
[[examples]]
say = "How much did I spend in May?"
tool = "expense_total"
[[tools]]
name = "add_expense"
description = "Submits an expense for reimbursement."
effect = "write"
[tools.parameters]
type = "object"
required = ["amount", "currency", "category", "date"]
additionalProperties = false
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
[tools.parameters]
type = "object"
properties = { category = { type = "string", enum = ["travel", "meals", "lodging", "other"] } }
"#;

const CARS: &str = r#"
name = "CarPool"
description = "Auto aziendali: quali sono libere e come prenotarle / company cars."
[[examples]]
say = "Quali auto sono disponibili dal 3 al 5 marzo?"
tool = "available_cars"
[[examples]]
say = "Which cars are free from 3 to 5 March?"
tool = "available_cars"
[[examples]]
say = "Prenota un'auto elettrica dal 10 al 12 aprile per andare a Bologna"
tool = "book_car"
[[examples]]
say = "Book a diesel car from 10 to 12 April, destination Verona"
tool = "book_car"
[[tools]]
name = "available_cars"
description = "Company cars that are free in a period."
effect = "read"
[tools.parameters]
type = "object"
required = ["start_date", "end_date"]
additionalProperties = false
properties = { start_date = { type = "string", format = "date" }, end_date = { type = "string", format = "date" } }
[[tools]]
name = "book_car"
description = "Reserves a company car."
effect = "write"
[tools.parameters]
type = "object"
required = ["start_date", "end_date", "fuel", "destination"]
additionalProperties = false
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
[[examples]]
say = "Vorrei fissare una visita dal cardiologo il 4 maggio alle 11"
tool = "schedule_visit"
[[examples]]
say = "I need an appointment with a dermatologist on May 4th at 11am"
tool = "schedule_visit"
[[examples]]
say = "Che visite ho in programma?"
tool = "my_visits"
[[examples]]
say = "List my upcoming appointments"
tool = "my_visits"
[[tools]]
name = "schedule_visit"
description = "Schedules a visit with a specialist."
effect = "write"
[tools.parameters]
type = "object"
required = ["specialty", "when", "patient_name"]
additionalProperties = false
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
[[examples]]
say = "Ordina 20 penne blu per l'ufficio acquisti"
tool = "order_supplies"
[[examples]]
say = "Order 5 packs of paper for the sales office"
tool = "order_supplies"
[[examples]]
say = "Quanti quaderni abbiamo in magazzino?"
tool = "stock_level"
[[examples]]
say = "How many staplers are in stock?"
tool = "stock_level"
[[tools]]
name = "order_supplies"
description = "Orders office supplies."
effect = "write"
[tools.parameters]
type = "object"
required = ["item", "quantity", "deliver_by"]
additionalProperties = false
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
[tools.parameters]
type = "object"
required = ["item"]
additionalProperties = false
properties = { item = { type = "string", description = "Item" } }
"#;

#[test]
fn unknown_scene_is_served_alone() {
    check(vec![
        (
            GYM,
            "Iscrivimi al corso di nuoto per venerdì, livello avanzato",
            json!([["enroll", {"class": "swimming", "day": "2026-05-08", "level": "advanced"}]]),
        ),
        (
            GYM,
            "I want to join the pilates class tomorrow with two friends",
            json!([["enroll", {"class": "pilates", "day": "2026-05-05", "level": "beginner", "guests": 2}]]),
        ),
        (
            GYM,
            "A che ora è la lezione di yoga sabato?",
            json!([["class_timetable", {"class": "yoga", "day": "2026-05-09"}]]),
        ),
        (
            GYM,
            "What time does spinning start on Thursday?",
            json!([["class_timetable", {"class": "spinning", "day": "2026-05-07"}]]),
        ),
        (
            EXPENSES,
            "Ieri ho speso 62,50 euro per una cena con il cliente, registrala",
            json!([["add_expense", {"amount": 62.5, "currency": "EUR", "category": "meals", "date": "2026-05-03"}]]),
        ),
        (
            EXPENSES,
            "Please log a 120 dollar flight from yesterday on project PRJ-77",
            json!([["add_expense", {"amount": 120, "currency": "USD", "category": "travel", "date": "2026-05-03", "project": "PRJ-77"}]]),
        ),
        (
            EXPENSES,
            "Aggiungi una spesa di €18 per il treno del 2 maggio 2026 con la nota \"biglietto smarrito\"",
            json!([["add_expense", {"amount": 18, "currency": "EUR", "category": "travel", "date": "2026-05-02", "note": "biglietto smarrito"}]]),
        ),
        (EXPENSES, "Quanto ho speso in viaggi?", json!([["expense_total", {"category": "travel"}]])),
        (EXPENSES, "What are my total expenses?", json!([["expense_total", {}]])),
        (EXPENSES, "Inserisci una spesa di 30 euro per il taxi", json!([[], ["date"]])),
        (
            CARS,
            "Mi serve una macchina elettrica dal 15 al 17 giugno per Torino, siamo in 3",
            json!([["book_car", {"start_date": "2026-06-15", "end_date": "2026-06-17", "fuel": "electric", "destination": "Torino", "passengers": 3}]]),
        ),
        (
            CARS,
            "Reserve a petrol car from June 1st to June 3rd to go to Genoa for 2 people because we visit a customer",
            json!([["book_car", {"start_date": "2026-06-01", "end_date": "2026-06-03", "fuel": "petrol", "destination": "Genoa", "passengers": 2, "purpose": "we visit a customer"}]]),
        ),
        (
            CARS,
            "Ci sono macchine libere da lunedì a mercoledì?",
            json!([["available_cars", {"start_date": "2026-05-11", "end_date": "2026-05-13"}]]),
        ),
        (
            CARS,
            "Any cars available between 3 and 5 July?",
            json!([["available_cars", {"start_date": "2026-07-03", "end_date": "2026-07-05"}]]),
        ),
        (CARS, "Prenota un'auto diesel per Parma", json!([[], ["start_date", "end_date"]])),
        (
            CLINIC,
            "Prenota una visita dermatologica il 12 giugno alle 9:30 per Anna Bianchi",
            json!([["schedule_visit", {"specialty": "dermatology", "when": "2026-06-12T09:30:00+02:00", "patient_name": "Anna Bianchi"}]]),
        ),
        (
            CLINIC,
            "Book me an appointment with the orthopedist on Friday at 4pm, the patient is John Doe",
            json!([["schedule_visit", {"specialty": "orthopedics", "when": "2026-05-08T16:00:00+02:00", "patient_name": "John Doe"}]]),
        ),
        (CLINIC, "Quali visite ho?", json!([["my_visits", {}]])),
        (
            SHOP,
            "Ordina 12 evidenziatori entro il 20 maggio",
            json!([["order_supplies", {"item": "evidenziatori", "quantity": 12, "deliver_by": "2026-05-20"}]]),
        ),
        (
            SHOP,
            "Order 3 boxes of markers by June 10, it is urgent, contact anna@example.com",
            json!([["order_supplies", {"item": "markers", "quantity": 3, "deliver_by": "2026-06-10", "urgent": true, "contact_email": "anna@example.com"}]]),
        ),
        (SHOP, "Quante penne ci sono in magazzino?", json!([["stock_level", {"item": "penne"}]])),
        (SHOP, "How many notebooks do we have in stock?", json!([["stock_level", {"item": "notebooks"}]])),
        (SHOP, "Quanto fa 12 per 8?", json!([])),
        (EXPENSES, "Scrivi una poesia sul mare", json!([])),
        (CLINIC, "What is the capital of Mongolia?", json!([])),
        (CARS, "Chi ha vinto la gara di auto ieri sera?", json!([])),
    ]);
}

#[test]
fn unknown_scene_is_served_beside_weather() {
    let milan = json!(["WeatherForecast_Get", {"city": "Milano"}]);
    let rome = json!(["WeatherForecast_Get", {"city": "Rome"}]);
    let enroll = json!(["enroll", {"class": "yoga", "day": "2026-05-08", "level": "beginner"}]);
    let car = json!(["book_car", {"start_date": "2026-06-15", "end_date": "2026-06-17", "fuel": "electric", "destination": "Torino"}]);
    let expense =
        json!(["add_expense", {"amount": 20, "currency": "EUR", "category": "travel", "date": "2026-05-03"}]);
    let pens = json!(["order_supplies", {"item": "penne", "quantity": 10, "deliver_by": "2026-05-20"}]);
    check(vec![
        (GYM, "Dimmi che tempo fa a Milano, e poi iscrivimi a yoga venerdì", json!([milan, enroll])),
        (GYM, "First sign me up for yoga on Friday, then tell me the weather in Rome", json!([enroll, rome])),
        (GYM, "Sign me up for yoga on Friday and also tell me the weather in Rome", json!([enroll, rome])),
        (GYM, "Iscrivimi a yoga venerdì e dimmi il meteo a Milano", json!([enroll, milan])),
        (
            CARS,
            "Prenota un'auto elettrica dal 15 al 17 giugno per Torino, e poi dimmi il meteo a Milano",
            json!([car, milan]),
        ),
        (
            CARS,
            "First tell me the weather in Rome, then book an electric car from 15 to 17 June to Torino",
            json!([rome, car]),
        ),
        (
            EXPENSES,
            "Che tempo fa a Milano? Inoltre registra una spesa di 20 euro per il taxi di ieri",
            json!([milan, expense]),
        ),
        (
            EXPENSES,
            "Add an expense of 20 euros for yesterday's taxi and then give me the forecast for Rome",
            json!([expense, rome]),
        ),
        (EXPENSES, "Meteo a Milano e quanto ho speso?", json!([milan, ["expense_total", {}]])),
        (
            SHOP,
            "Voglio sapere il meteo a Milano, e poi ordinare 10 penne entro il 20 maggio",
            json!([milan, pens]),
        ),
        (
            SHOP,
            "What's the weather in Rome and how many pens are in stock?",
            json!([rome, ["stock_level", {"item": "pens"}]]),
        ),
        (CLINIC, "Prima dimmi che visite ho, poi il meteo a Milano", json!([["my_visits", {}], milan])),
        (CLINIC, "Quali visite ho in programma e che tempo fa a Milano?", json!([["my_visits", {}], milan])),
    ]);
}
