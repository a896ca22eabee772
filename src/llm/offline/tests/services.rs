//! Fixtures: invented services in the style of a public dialogue corpus, in which users reveal values step by
//! step and most first requests are incomplete.

pub(super) const MOVIES: &str = r#"
name = "Movies"
description = "Find movies playing nearby and buy tickets for a show."
examples = [
    { say = "Which movies are playing in Oakland?", tool = "FindMovies" },
    { say = "Find me a comedy in San Mateo", tool = "FindMovies" },
    { say = "Are there any horror films at the cinemas in Berkeley tonight?", tool = "FindMovies" },
    { say = "Buy 2 tickets for Hellboy in Fremont on March 3 at 7pm", tool = "BuyMovieTickets" },
    { say = "I want three tickets to Dumbo in San Jose tomorrow at 18:30", tool = "BuyMovieTickets" },
]
[[tools]]
name = "FindMovies"
description = "Searches movies by location and genre."
effect = "read"
parameters.required = ["location"]
[tools.parameters.properties]
location = { type = "string", description = "City in which the theatre is located" }
genre = { type = "string", enum = ["Comedy", "Horror", "Drama", "Action"], description = "Genre of the movie" }
theater_name = { type = "string", description = "Name of the theatre" }
[[tools]]
name = "BuyMovieTickets"
description = "Buys movie tickets for a particular show."
effect = "write"
parameters.required = ["movie_name", "number_of_tickets", "show_date", "location", "show_time"]
[tools.parameters.properties]
movie_name = { type = "string", description = "Name of the movie" }
number_of_tickets = { type = "integer", minimum = 1, maximum = 9, description = "Number of the movie tickets to be purchased" }
show_date = { type = "string", format = "date", description = "Date of the show" }
location = { type = "string", description = "City in which the theatre is located" }
show_time = { type = "string", format = "time", description = "Time of the show" }
"#;

pub(super) const BUSES: &str = r#"
name = "Buses"
description = "Find a bus journey between two cities and buy tickets for it."
examples = [
    { say = "Find a bus from Fresno to Sacramento on March 8", tool = "FindBus" },
    { say = "Are there buses from Anaheim to Long Beach next Friday?", tool = "FindBus" },
    { say = "Which buses go to San Diego from Phoenix tomorrow?", tool = "FindBus" },
    { say = "Buy a bus ticket from Fresno to Sacramento on March 8 at 9am for 2 people", tool = "BuyBusTicket" },
    { say = "Book two seats on the bus from Phoenix to San Diego tomorrow at 14:15", tool = "BuyBusTicket" },
    { say = "Get me bus tickets to Long Beach from Anaheim for 3 travelers on the 5th at half past 4", tool = "BuyBusTicket" },
]
[[tools]]
name = "FindBus"
description = "Find a bus journey for a given pair of cities."
effect = "read"
parameters.required = ["from_location", "to_location", "leaving_date"]
[tools.parameters.properties]
from_location = { type = "string", description = "City where bus is leaving from" }
to_location = { type = "string", description = "City where bus is going to" }
leaving_date = { type = "string", format = "date", description = "Date of bus leaving for journey" }
travelers = { type = "integer", minimum = 1, maximum = 5, description = "Number of travelers" }
[[tools]]
name = "BuyBusTicket"
description = "Buy tickets for a bus journey."
effect = "write"
parameters.required = ["from_location", "to_location", "leaving_date", "leaving_time", "travelers"]
[tools.parameters.properties]
from_location = { type = "string", description = "City where bus is leaving from" }
to_location = { type = "string", description = "City where bus is going to" }
leaving_date = { type = "string", format = "date", description = "Date of bus leaving for journey" }
leaving_time = { type = "string", format = "time", description = "Time of bus leaving for journey" }
travelers = { type = "integer", minimum = 1, maximum = 5, description = "Number of travelers for journey" }
"#;

pub(super) const CARS: &str = r#"
name = "RentalCars"
description = "Rental cars: which are available, and reserving one."
examples = [
    { say = "Which rental cars are available in Portland from March 3 to March 6, pick up at 10:00?", tool = "GetCarsAvailable" },
    { say = "Search for a hatchback in Sydney, pick up tomorrow at 2pm and drop off on Friday", tool = "GetCarsAvailable" },
    { say = "I need a car in Seattle from the 5th until the 8th, pickup at noon", tool = "GetCarsAvailable" },
    { say = "Reserve a standard car at Portland Airport from March 3 at 10:00 to March 6", tool = "ReserveCar" },
    { say = "Book me an SUV at Union Station, pick up tomorrow at 2pm, return on Friday", tool = "ReserveCar" },
    { say = "Rent a compact at King Street Station from the 5th at noon until the 8th", tool = "ReserveCar" },
]
[[tools]]
name = "GetCarsAvailable"
description = "Discover cars available for rent in a certain location and period."
effect = "read"
parameters.required = ["city", "pickup_date", "pickup_time", "dropoff_date"]
[tools.parameters.properties]
city = { type = "string", description = "City where you want to rent the car" }
pickup_date = { type = "string", format = "date", description = "Date of the pick-up" }
pickup_time = { type = "string", format = "time", description = "Time of the pick-up" }
dropoff_date = { type = "string", format = "date", description = "Date of the drop-off" }
car_type = { type = "string", enum = ["Hatchback", "Sedan", "SUV"], description = "Type of the car" }
[[tools]]
name = "ReserveCar"
description = "Make a rental car reservation."
effect = "write"
parameters.required = ["pickup_location", "pickup_date", "pickup_time", "dropoff_date", "car_type"]
[tools.parameters.properties]
pickup_location = { type = "string", description = "Place to pick up the car" }
pickup_date = { type = "string", format = "date", description = "Date of the pick-up" }
pickup_time = { type = "string", format = "time", description = "Time of the pick-up" }
dropoff_date = { type = "string", format = "date", description = "Date of the drop-off" }
car_type = { type = "string", enum = ["Compact", "Standard", "SUV"], description = "Type of the car" }
add_insurance = { type = "boolean", description = "Whether to add insurance" }
"#;

pub(super) const MUSIC: &str = r#"
name = "Music"
description = "Search songs and play them on a device."
examples = [
    { say = "Search for songs by Ariana Grande", tool = "LookupMusic" },
    { say = "What is the latest album of Coldplay?", tool = "LookupMusic" },
    { say = "Find music by Miles Davis", tool = "LookupMusic" },
    { say = "Play Yesterday", tool = "PlaySong" },
    { say = "Play the song Halo in the kitchen", tool = "PlaySong" },
    { say = "I want to listen to Let It Be", tool = "PlaySong" },
]
[[tools]]
name = "LookupMusic"
description = "Search for a song by its artist."
effect = "read"
parameters.required = ["artist"]
parameters.properties = { artist = { type = "string", description = "Artist of the song" } }
[[tools]]
name = "PlaySong"
description = "Play a song on a device."
effect = "write"
parameters.required = ["song_name"]
[tools.parameters.properties]
song_name = { type = "string", description = "Name of the song" }
playback_device = { type = "string", enum = ["TV", "kitchen speaker", "bedroom speaker"], description = "Where to play it" }
"#;

pub(super) const RESTAURANTS: &str = r#"
name = "Restaurants"
description = "Find places to eat and reserve a table."
examples = [
    { say = "Find an Italian restaurant in San Jose", tool = "FindRestaurants" },
    { say = "Where can I eat Mexican food in Oakland?", tool = "FindRestaurants" },
    { say = "Look for a vegetarian restaurant in Napa", tool = "FindRestaurants" },
    { say = "Reserve a table for 2 at Bistro Don in San Jose on March 3 at 7pm", tool = "ReserveRestaurant" },
    { say = "Book a table at The Anchor in Oakland tomorrow at 8pm for four people", tool = "ReserveRestaurant" },
    { say = "I need a table for six at Luigi's in Napa on Friday at 19:30", tool = "ReserveRestaurant" },
]
[[tools]]
name = "FindRestaurants"
description = "Find a restaurant by cuisine and city."
effect = "read"
parameters.required = ["cuisine", "city"]
[tools.parameters.properties]
cuisine = { type = "string", enum = ["Italian", "Mexican", "Chinese", "Vegetarian"], description = "Cuisine of food served" }
city = { type = "string", description = "City in which the restaurant is located" }
[[tools]]
name = "ReserveRestaurant"
description = "Reserve a table at a restaurant."
effect = "write"
parameters.required = ["restaurant_name", "location", "time", "date", "number_of_seats"]
[tools.parameters.properties]
restaurant_name = { type = "string", description = "Name of the restaurant" }
location = { type = "string", description = "City where the restaurant is located" }
time = { type = "string", format = "time", description = "Time of the reservation" }
date = { type = "string", format = "date", description = "Date of the reservation" }
number_of_seats = { type = "integer", minimum = 1, maximum = 12, description = "Number of seats to reserve" }
"#;

pub(super) const SALONS: &str = r#"
name = "Salons"
description = "Hair stylists: find one and book an appointment."
examples = [
    { say = "Find a hair stylist in San Rafael", tool = "FindStylist" },
    { say = "Is there a good hairdresser in Concord?", tool = "FindStylist" },
    { say = "Look for a unisex salon in Dublin", tool = "FindStylist" },
    { say = "Book an appointment with Great Clips on March 3 at 11am", tool = "BookAppointment" },
    { say = "Make an appointment at A Beautiful You tomorrow at 14:00", tool = "BookAppointment" },
    { say = "I want a haircut at Supercuts next Friday at half past 10", tool = "BookAppointment" },
]
[[tools]]
name = "FindStylist"
description = "Search for a hair stylist by city."
effect = "read"
parameters.required = ["city"]
[tools.parameters.properties]
city = { type = "string", description = "City where the salon is located" }
is_unisex = { type = "boolean", description = "Whether the salon is unisex" }
[[tools]]
name = "BookAppointment"
description = "Book an appointment with a hair stylist."
effect = "write"
parameters.required = ["stylist_name", "appointment_date", "appointment_time"]
[tools.parameters.properties]
stylist_name = { type = "string", description = "Name of the hair stylist or salon" }
appointment_date = { type = "string", format = "date", description = "Date of the appointment" }
appointment_time = { type = "string", format = "time", description = "Time of the appointment" }
"#;

pub(super) const HOMES: &str = r#"
name = "Homes"
description = "Apartments for rent: search them and schedule visits."
examples = [
    { say = "Find a 2 bedroom apartment in San Jose", tool = "FindApartment" },
    { say = "I am looking for an apartment in Campbell with 3 bedrooms", tool = "FindApartment" },
    { say = "Search apartments with one bed in Petaluma", tool = "FindApartment" },
    { say = "Schedule a visit to Almaden Lake Apartments on March 3", tool = "ScheduleVisit" },
    { say = "I want to see the Aspen Ridge property tomorrow", tool = "ScheduleVisit" },
    { say = "Plan a viewing of Kensington Place for next Friday", tool = "ScheduleVisit" },
]
[[tools]]
name = "FindApartment"
description = "Find an apartment in an area."
effect = "read"
parameters.required = ["area", "number_of_beds"]
[tools.parameters.properties]
area = { type = "string", description = "City where the apartment is located" }
number_of_beds = { type = "integer", minimum = 1, maximum = 6, description = "Number of bedrooms in the property" }
number_of_baths = { type = "integer", minimum = 1, maximum = 4, description = "Number of bathrooms in the property" }
[[tools]]
name = "ScheduleVisit"
description = "Schedule a visit to a property."
effect = "write"
parameters.required = ["property_name", "visit_date"]
[tools.parameters.properties]
property_name = { type = "string", description = "Name of the property or apartment complex" }
visit_date = { type = "string", format = "date", description = "Date of the visit" }
"#;

pub(super) const BANK: &str = r#"
name = "Bank"
description = "Bank accounts: balances and transfers of money."
examples = [
    { say = "What is the balance of my savings account?", tool = "CheckBalance" },
    { say = "How much money is in my checking account?", tool = "CheckBalance" },
    { say = "Show my checking balance", tool = "CheckBalance" },
    { say = "Transfer 500 dollars to Diego from my savings account", tool = "TransferMoney" },
    { say = "Send $40 from checking to Amy Wong", tool = "TransferMoney" },
    { say = "I need to make a transfer of 1,200 dollars from checking to Jerry", tool = "TransferMoney" },
]
[[tools]]
name = "CheckBalance"
description = "Get the balance of an account."
effect = "read"
parameters.required = ["account_type"]
parameters.properties = { account_type = { type = "string", enum = ["checking", "savings"], description = "The account type of the user" } }
[[tools]]
name = "TransferMoney"
description = "Transfer money to another user."
effect = "write"
parameters.required = ["account_type", "amount", "recipient_account_name"]
[tools.parameters.properties]
account_type = { type = "string", enum = ["checking", "savings"], description = "The account type of the user" }
amount = { type = "number", description = "The amount of money to transfer" }
recipient_account_name = { type = "string", description = "The name of the recipient of the money" }
"#;

pub(super) const HOTELS: &str = r#"
name = "Hotels"
description = "Hotels: search accommodation and reserve rooms."
examples = [
    { say = "Search for a hotel in Paris with 2 rooms", tool = "SearchHotel" },
    { say = "Find me a four star hotel in Toronto, one room", tool = "SearchHotel" },
    { say = "I need a place to stay in London, 3 rooms", tool = "SearchHotel" },
    { say = "Reserve 2 rooms at the Hilton Garden Inn from March 3 to March 5", tool = "ReserveHotel" },
    { say = "Book one room at Hotel Adlon from tomorrow until Friday", tool = "ReserveHotel" },
    { say = "I want a room at The Ritz from 5 to 8 June", tool = "ReserveHotel" },
]
[[tools]]
name = "SearchHotel"
description = "Find a hotel in a city."
effect = "read"
parameters.required = ["destination", "number_of_rooms"]
[tools.parameters.properties]
destination = { type = "string", description = "City or town where the hotel is" }
number_of_rooms = { type = "integer", minimum = 1, maximum = 3, description = "Number of rooms" }
[[tools]]
name = "ReserveHotel"
description = "Reserve rooms at a hotel."
effect = "write"
parameters.required = ["hotel_name", "check_in_date", "check_out_date", "number_of_rooms"]
[tools.parameters.properties]
hotel_name = { type = "string", description = "Name of the hotel" }
check_in_date = { type = "string", format = "date", description = "Start date of the stay" }
check_out_date = { type = "string", format = "date", description = "End date of the stay" }
number_of_rooms = { type = "integer", minimum = 1, maximum = 3, description = "Number of rooms to reserve" }
"#;

pub(super) const EVENTS: &str = r#"
name = "Events"
description = "Events such as concerts and matches: find them and buy tickets."
examples = [
    { say = "Find concerts in Seattle", tool = "FindEvents" },
    { say = "Are there any sports events in New York next Friday?", tool = "FindEvents" },
    { say = "What music events are there in Chicago on March 3?", tool = "FindEvents" },
    { say = "Buy 2 tickets for Mets Vs Reds in New York on March 3", tool = "BuyEventTickets" },
    { say = "Get me four tickets to Alessia Cara in Seattle tomorrow", tool = "BuyEventTickets" },
    { say = "I need one ticket for the Cardinals game in Chicago on Friday", tool = "BuyEventTickets" },
]
[[tools]]
name = "FindEvents"
description = "Find events in a city by category."
effect = "read"
parameters.required = ["category", "city"]
[tools.parameters.properties]
category = { type = "string", enum = ["Music", "Sports"], description = "Category of event: Music (concert, concerts), Sports (match, game)" }
city = { type = "string", description = "City where the event is happening" }
date = { type = "string", format = "date", description = "Date of the event" }
[[tools]]
name = "BuyEventTickets"
description = "Buy tickets for an event."
effect = "write"
parameters.required = ["event_name", "number_of_tickets", "date", "city"]
[tools.parameters.properties]
event_name = { type = "string", description = "Name of the event" }
number_of_tickets = { type = "integer", minimum = 1, maximum = 9, description = "Number of tickets to buy" }
date = { type = "string", format = "date", description = "Date of the event" }
city = { type = "string", description = "City where the event is happening" }
"#;
