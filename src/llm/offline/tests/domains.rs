//! Fixtures: scenes of several domains, written as chatbot developers would write them.

pub(super) const WEATHER: &str = r#"
name = "Weather"
description = "Weather and forecasts for cities."
examples = [
    { say = "Che tempo fa a Torino?", tool = "WeatherForecast_Get" },
    { say = "Vorrei sapere il meteo a Genova domani", tool = "WeatherForecast_Get" },
    { say = "What is the weather in Paris?", tool = "WeatherForecast_Get" },
    { say = "Aggiungi la città di Cuneo", tool = "AddCity" },
]
[[tools]]
name = "WeatherForecast_Get"
description = "Weather of a city on a day: temperatures, rain, wind."
effect = "read"
parameters.required = ["city"]
parameters.properties = { city = { type = "string", description = "City, in any language" }, date = { type = "string", format = "date", description = "Day, YYYY-MM-DD; today if absent" } }
[[tools]]
name = "AddCity"
description = "Add a city to the list of known cities."
effect = "write"
parameters.required = ["city"]
parameters.properties = { city = { type = "string", description = "City to add" } }
"#;

pub(super) const IDENTITY: &str = r#"
name = "Identity"
description = "Who the user is: full names behind usernames."
examples = [
    { say = "Il mio username è pippo", tool = "get_user_name" },
    { say = "Come mi chiamo?", tool = "get_user_name" },
    { say = "What is my full name? My username is jdoe", tool = "get_user_name" },
]
[[tools]]
name = "get_user_name"
description = "Full name of a user, by username."
effect = "read"
parameters.required = ["username"]
parameters.properties = { username = { type = "string", description = "Login name of the user" } }
"#;

pub(super) const VACATION: &str = r#"
name = "VacationManagement"
description = "Vacation: requests, balance, approvers, public holidays."
examples = [
    { say = "Vorrei 2 giorni di ferie dal 3 al 4 luglio", tool = "MakeRequest" },
    { say = "I want to take vacation from 3 to 7 August", tool = "MakeRequest" },
    { say = "Quante ferie mi rimangono?", tool = "GetBalance" },
    { say = "How many days of vacation do I have left?", tool = "GetBalance" },
    { say = "Chi approva le mie ferie?", tool = "GetApprovers" },
    { say = "Annulla la mia richiesta di ferie", tool = "CancelRequest" },
]
[[tools]]
name = "MakeRequest"
description = "Submit a vacation request for the user."
effect = "write"
parameters.required = ["from", "to"]
[tools.parameters.properties]
from = { type = "string", format = "date", description = "First day, YYYY-MM-DD" }
to = { type = "string", format = "date", description = "Last day, YYYY-MM-DD" }
comment = { type = "string", description = "A comment for the approver" }
employee = { type = "string", description = "Name or username of the person the vacation is for, if somebody was named" }
[[tools]]
name = "CancelRequest"
description = "Cancel a vacation request."
effect = "write"
parameters.required = ["request_id"]
parameters.properties = { request_id = { type = "integer", description = "Number of the request" } }
[[tools]]
name = "GetApprovers"
description = "Who approves the user's requests."
effect = "read"
[[tools]]
name = "GetBalance"
description = "Vacation days left."
effect = "read"
[[tools]]
name = "ListRequests"
description = "The user's vacation requests with their state."
effect = "read"
"#;

pub(super) const RESTAURANT: &str = r#"
name = "Dining"
description = "Books tables at partner restaurants and shows menus."
examples = [
    { say = "Prenota un tavolo per due da Nonna Pina sabato alle 20:30", tool = "reserve_table" },
    { say = "Book a table for six at The Anchor on Friday at 7pm", tool = "reserve_table" },
    { say = "Cosa c'è nel menu della Lanterna?", tool = "get_menu" },
    { say = "Show me the menu of The Anchor", tool = "get_menu" },
]
[[tools]]
name = "reserve_table"
description = "Reserves a table at a restaurant."
effect = "write"
parameters.required = ["restaurant", "date", "time", "party_size"]
[tools.parameters.properties]
restaurant = { type = "string", description = "Name of the restaurant" }
date = { type = "string", format = "date", description = "Day of the visit" }
time = { type = "string", description = "Time of arrival, HH:MM" }
party_size = { type = "integer", minimum = 1, maximum = 20, description = "How many guests" }
area = { type = "string", enum = ["indoor", "terrace"], description = "Where to sit: indoor (sala interna) or terrace (dehors)" }
guest_name = { type = "string", description = "Name the table is booked under" }
notes = { type = "string", description = "Allergies or wishes" }
[[tools]]
name = "get_menu"
description = "Menu of a restaurant with prices."
effect = "read"
parameters.required = ["restaurant"]
parameters.properties = { restaurant = { type = "string", description = "Name of the restaurant" } }
"#;

pub(super) const HELPDESK: &str = r#"
name = "ServiceDesk"
description = "IT support: opens tickets for broken or missing equipment and tells their status."
examples = [
    { say = "Apri un ticket: il mio monitor non si accende", tool = "open_ticket" },
    { say = "Segnala un guasto alla rete, è urgente", tool = "open_ticket" },
    { say = "Open a low priority ticket saying that my keyboard is sticky", tool = "open_ticket" },
    { say = "A che punto è il ticket INC-2041?", tool = "ticket_status" },
    { say = "What is the status of ticket INC-77?", tool = "ticket_status" },
]
[[tools]]
name = "open_ticket"
description = "Opens a support ticket."
effect = "write"
parameters.required = ["description", "priority"]
[tools.parameters.properties]
description = { type = "string", description = "What is wrong, in the user's words" }
priority = { type = "string", enum = ["low", "normal", "high"], default = "normal", description = "Priority: low (bassa), normal (normale), high (alta, urgente)" }
category = { type = "string", enum = ["hardware", "software", "network"], description = "hardware (stampante, monitor, mouse), software (programmi), network (rete, wifi)" }
[[tools]]
name = "ticket_status"
description = "Status of a ticket by its code."
effect = "read"
parameters.required = ["ticket_id"]
parameters.properties = { ticket_id = { type = "string", description = "Code of the ticket, like INC-1234" } }
"#;

pub(super) const LIBRARY: &str = r#"
name = "Library"
description = "The company library: searches the catalogue, lends and renews books."
examples = [
    { say = "Avete libri di Umberto Eco?", tool = "search_books" },
    { say = "Do you have any books by Agatha Christie?", tool = "search_books" },
    { say = "Vorrei prendere in prestito \"Il barone rampante\" per 3 settimane", tool = "borrow_book" },
    { say = "Lend me \"The Hobbit\" for two weeks", tool = "borrow_book" },
]
[[tools]]
name = "search_books"
description = "Searches the catalogue by title or author."
effect = "read"
parameters.required = ["query"]
parameters.properties = { query = { type = "string", description = "Title, author or words of the title" } }
[[tools]]
name = "borrow_book"
description = "Borrows a book for some weeks."
effect = "write"
parameters.required = ["title", "weeks"]
[tools.parameters.properties]
title = { type = "string", description = "Title of the book" }
weeks = { type = "integer", minimum = 1, maximum = 8, description = "For how many weeks" }
"#;

pub(super) const ROOMS: &str = r#"
name = "MeetingRooms"
description = "Sale riunioni della sede: disponibilità e prenotazione."
examples = [
    { say = "Prenota la sala Verdi domani dalle 10 alle 12 per 8 persone", tool = "book_room" },
    { say = "Book room Blue on Monday from 2pm to 3pm for the budget review", tool = "book_room" },
    { say = "Quali sale sono libere venerdì mattina?", tool = "free_rooms" },
    { say = "Which rooms are free tomorrow?", tool = "free_rooms" },
]
[[tools]]
name = "book_room"
description = "Prenota una sala riunioni."
effect = "write"
parameters.required = ["room", "start", "end"]
[tools.parameters.properties]
room = { type = "string", description = "Nome della sala" }
start = { type = "string", format = "date-time", description = "Inizio" }
end = { type = "string", format = "date-time", description = "Fine" }
attendees = { type = "integer", description = "Numero di partecipanti" }
projector = { type = "boolean", description = "Serve il proiettore" }
[[tools]]
name = "free_rooms"
description = "Sale libere in un giorno."
effect = "read"
parameters.required = ["day"]
parameters.properties = { day = { type = "string", format = "date", description = "Giorno" } }
"#;

pub(super) const PARCELS: &str = r#"
name = "Parcels"
description = "Tracks parcels and changes their delivery."
examples = [
    { say = "Dov'è il mio pacco TRK00123?", tool = "track_parcel" },
    { say = "Where is my parcel TRK00456?", tool = "track_parcel" },
    { say = "Consegna il pacco TRK00123 in via Roma 5 il 12 marzo", tool = "redirect_parcel" },
    { say = "Deliver parcel TRK00456 to the neighbour on 3 May", tool = "redirect_parcel" },
]
[[tools]]
name = "track_parcel"
description = "Where a parcel is now."
effect = "read"
parameters.required = ["code"]
parameters.properties = { code = { type = "string", description = "Tracking code of the parcel", examples = ["TRK00999"] } }
[[tools]]
name = "redirect_parcel"
description = "Changes the day or the way a parcel is delivered."
effect = "write"
parameters.required = ["code", "day"]
[tools.parameters.properties]
code = { type = "string", description = "Tracking code of the parcel", examples = ["TRK00999"] }
day = { type = "string", format = "date", description = "New day of delivery" }
way = { type = "string", enum = ["home", "locker", "neighbour"], description = "home (a casa), locker (armadietto), neighbour (vicino di casa)" }
"#;

pub(super) const DESK: &str = r#"
name = "Desk"
description = "The help desk and the library: tickets are closed and assigned, visits are cancelled and moved, books are lent, renewed and taken back."
examples = [
    { say = "Close ticket 120", tool = "CloseTicket" },
    { say = "Chiudi il ticket 120", tool = "CloseTicket" },
    { say = "Ferme le ticket 120", tool = "CloseTicket" },
    { say = "Schließe Ticket 120", tool = "CloseTicket" },
    { say = "Cierra la incidencia 120", tool = "CloseTicket" },
    { say = "What is the state of ticket 120?", tool = "TicketState" },
    { say = "A che punto è il ticket 120?", tool = "TicketState" },
    { say = "Wie ist der Stand von Ticket 120?", tool = "TicketState" },
    { say = "Où en est le ticket 120 ?", tool = "TicketState" },
    { say = "¿Cómo va la incidencia 120?", tool = "TicketState" },
    { say = "Assign ticket 120 to Laura", tool = "AssignTicket" },
    { say = "Assegna il ticket 120 a Laura", tool = "AssignTicket" },
    { say = "Cancel visit 12", tool = "CancelVisit" },
    { say = "Sage den Termin 12 ab", tool = "CancelVisit" },
    { say = "Move visit 12 to 5 December", tool = "MoveVisit" },
    { say = "Lend the book Dune to Ada", tool = "LendBook" },
    { say = "Presta il libro Dune ad Ada", tool = "LendBook" },
    { say = "Renew the loan of the book Dune", tool = "RenewLoan" },
    { say = "Take back the book Dune", tool = "TakeBack" },
]
[[tools]]
name = "TicketState"
description = "Tells the state of a ticket and who works on it."
effect = "read"
parameters.required = ["number"]
parameters.properties = { number = { type = "integer", description = "Number of the ticket" } }
[[tools]]
name = "CloseTicket"
description = "Closes a ticket."
effect = "write"
parameters.required = ["number"]
parameters.properties = { number = { type = "integer", description = "Number of the ticket" } }
[[tools]]
name = "AssignTicket"
description = "Assigns a ticket to an agent."
effect = "write"
parameters.required = ["number", "agent"]
parameters.properties = { number = { type = "integer", description = "Number of the ticket" }, agent = { type = "string", description = "Name of the agent" } }
[[tools]]
name = "CancelVisit"
description = "Cancels a visit."
effect = "write"
parameters.required = ["number"]
parameters.properties = { number = { type = "integer", description = "Number of the visit" } }
[[tools]]
name = "MoveVisit"
description = "Moves a visit to another day."
effect = "write"
parameters.required = ["number", "day"]
parameters.properties = { number = { type = "integer", description = "Number of the visit" }, day = { type = "string", format = "date", description = "New day" } }
[[tools]]
name = "LendBook"
description = "Lends a book to a reader."
effect = "write"
parameters.required = ["title", "reader"]
parameters.properties = { title = { type = "string", description = "Title of the book" }, reader = { type = "string", description = "Name of the reader" } }
[[tools]]
name = "RenewLoan"
description = "Renews the loan of a book."
effect = "write"
parameters.required = ["title"]
parameters.properties = { title = { type = "string", description = "Title of the book" } }
[[tools]]
name = "TakeBack"
description = "Takes a lent book back."
effect = "write"
parameters.required = ["title"]
parameters.properties = { title = { type = "string", description = "Title of the book" } }
"#;
