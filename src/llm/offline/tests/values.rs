//! Values come from the words of the user, or are asked for.

use serde_json::{Value, json};

use super::domains::WEATHER;
use super::services::*;
use super::support::{RequestOutcome, World};

/// A scene, what is said to it, the tool meant, and every value that is in the words.
type Opening = (&'static str, &'static str, &'static str, Value);

/// The calls that are made or asked to be confirmed, each with its tool's required arguments.
fn offered(outcome: &RequestOutcome) -> Vec<(String, Value)> {
    let confirmed = outcome.questions.iter().filter(|q| q["missing"] == json!([]));
    let confirmed = confirmed.map(|q| (q["tool"].as_str().unwrap().to_owned(), q["known"].clone()));
    outcome.calls.iter().cloned().chain(confirmed).collect()
}

fn required(world: &World, tool: &str) -> Vec<String> {
    let tools = world.scenes.iter().flat_map(|s| s["tools"].as_array().unwrap());
    let tool = tools.into_iter().find(|t| t["name"] == tool).unwrap();
    let names = tool["parameters"]["required"].as_array();
    names.into_iter().flatten().map(|n| n.as_str().unwrap().to_owned()).collect()
}

/// What an opening led to: values that nobody said, and whether a call that could be made was not.
fn judged((scene, words, tool, said): &Opening) -> (Vec<String>, Option<String>) {
    let mut world = World::of(&[WEATHER, scene]);
    let outcome = world.run(words);
    let mut invented = Vec::new();
    for (name, arguments) in offered(&outcome) {
        let needed = required(&world, &name);
        for (argument, value) in arguments.as_object().unwrap() {
            if needed.contains(argument) && said.get(argument) != Some(value) {
                invented.push(format!("{words}\n   {name} {argument} = {value}"));
            }
        }
    }
    for question in &outcome.questions {
        for (argument, value) in question["known"].as_object().unwrap() {
            if said.get(argument) != Some(value) && *value != json!(false) {
                invented.push(format!("{words}\n   asks, with {argument} = {value}"));
            }
        }
    }
    let complete = !tool.is_empty() && required(&world, tool).iter().all(|n| said.get(n).is_some());
    let made = |(name, arguments): &(String, Value)| {
        name == tool && required(&world, tool).iter().all(|n| arguments[n] == said[n])
    };
    let lost = (complete && !offered(&outcome).iter().any(made)).then(|| {
        format!("{words}\n   want {tool} {said}\n   got  {:?} {:?}", outcome.calls, outcome.questions)
    });
    (invented, lost.or_else(|| asked_in_vain(&outcome, words)))
}

/// A clear request that was asked about all the same.
fn asked_in_vain(outcome: &RequestOutcome, words: &str) -> Option<String> {
    let vain = outcome.questions.iter().find(|q| q["missing"] == json!([]))?;
    Some(format!("{words}\n   needless question: {vain}"))
}

fn openings() -> Vec<Opening> {
    let mut all = partial();
    all.extend(whole());
    all
}

/// Openings that lack something.
fn partial() -> Vec<Opening> {
    vec![
        (MOVIES, "Find me a movie to watch", "FindMovies", json!({})),
        (MOVIES, "I'm looking for a good movie to see tonight", "FindMovies", json!({})),
        (MOVIES, "I feel like watching a film. Can you help me?", "FindMovies", json!({})),
        (MOVIES, "Can you get me some tickets for a movie?", "BuyMovieTickets", json!({})),
        (MOVIES, "Buy tickets for the show at 7pm", "BuyMovieTickets", json!({"show_time": "19:00"})),
        (
            MOVIES,
            "I want 2 movie tickets in Berkeley",
            "BuyMovieTickets",
            json!({"number_of_tickets": 2, "location": "Berkeley"}),
        ),
        (MOVIES, "I'd like to go to the cinema with my wife", "FindMovies", json!({})),
        (
            MOVIES,
            "Get me three tickets to Hellboy please",
            "BuyMovieTickets",
            json!({"number_of_tickets": 3, "movie_name": "Hellboy"}),
        ),
        (MOVIES, "Something funny to watch with the kids would be great", "FindMovies", json!({})),
        (BUSES, "Can you book me a bus?", "BuyBusTicket", json!({})),
        (BUSES, "I need a bus to go to a conference", "FindBus", json!({})),
        (BUSES, "I want to travel by bus from Las Vegas", "FindBus", json!({"from_location": "Las Vegas"})),
        (
            BUSES,
            "I'm planning a trip to Los Angeles and need a bus",
            "FindBus",
            json!({"to_location": "Los Angeles"}),
        ),
        (
            BUSES,
            "I need to leave from Las Vegas on the 3rd at half past 1 in the afternoon",
            "BuyBusTicket",
            json!({"from_location": "Las Vegas", "leaving_date": "2026-06-03", "leaving_time": "13:30"}),
        ),
        (
            BUSES,
            "Find a bus for two people leaving tomorrow",
            "FindBus",
            json!({"travelers": 2, "leaving_date": "2026-05-05"}),
        ),
        (
            BUSES,
            "Buy me a bus ticket to San Francisco",
            "BuyBusTicket",
            json!({"to_location": "San Francisco", "travelers": 1}),
        ),
        (
            BUSES,
            "I'd like to get out of town this weekend by bus",
            "FindBus",
            json!({"leaving_date": "2026-05-09"}),
        ),
        (BUSES, "Are there any buses to Sacramento?", "FindBus", json!({"to_location": "Sacramento"})),
        (BUSES, "Book bus tickets for me and my friends", "BuyBusTicket", json!({})),
        (
            BUSES,
            "I am going to visit my sister in Fresno. Can you find a bus?",
            "FindBus",
            json!({"to_location": "Fresno"}),
        ),
        (CARS, "I need to rent a car", "GetCarsAvailable", json!({})),
        (
            CARS,
            "I need a rental car in Seattle, pick up on March 3rd at 10:00",
            "GetCarsAvailable",
            json!({"city": "Seattle", "pickup_location": "Seattle", "pickup_date": "2027-03-03", "pickup_time": "10:00"}),
        ),
        (CARS, "Can you find me a car to drive around in?", "GetCarsAvailable", json!({})),
        (CARS, "Reserve an SUV for me", "ReserveCar", json!({"car_type": "SUV"})),
        (
            CARS,
            "I want to pick up a car on March 3rd",
            "GetCarsAvailable",
            json!({"pickup_date": "2027-03-03"}),
        ),
        (
            CARS,
            "Find a rental car in Los Angeles from March 3 to March 6",
            "GetCarsAvailable",
            json!({"city": "Los Angeles", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06"}),
        ),
        (
            CARS,
            "Reserve a standard car, I will return it on Friday",
            "ReserveCar",
            json!({"car_type": "Standard", "dropoff_date": "2026-05-08"}),
        ),
        (
            CARS,
            "I'm visiting London soon and will need a car",
            "GetCarsAvailable",
            json!({"city": "London", "pickup_location": "London"}),
        ),
        (MUSIC, "Please find a song for me", "PlaySong", json!({})),
        (MUSIC, "I want to listen to some music", "PlaySong", json!({})),
        (MUSIC, "Play something relaxing", "PlaySong", json!({})),
        (MUSIC, "Can you play some music for my party?", "PlaySong", json!({})),
        (MUSIC, "Play a song on the TV", "PlaySong", json!({"playback_device": "TV"})),
        (MUSIC, "I'm bored, play me a nice song", "PlaySong", json!({})),
        (MUSIC, "Search for some good music to dance to", "LookupMusic", json!({})),
        (MUSIC, "I would love to hear a song right now", "PlaySong", json!({})),
        (RESTAURANTS, "I'm looking for a place to eat", "FindRestaurants", json!({})),
        (RESTAURANTS, "I'm hungry, find me a restaurant", "FindRestaurants", json!({})),
        (RESTAURANTS, "I want some Mexican food", "FindRestaurants", json!({"cuisine": "Mexican"})),
        (
            RESTAURANTS,
            "Find a nice restaurant to celebrate in San Jose",
            "FindRestaurants",
            json!({"city": "San Jose"}),
        ),
        (RESTAURANTS, "Can you book a table for me?", "ReserveRestaurant", json!({})),
        (
            RESTAURANTS,
            "Book a table for two at 8pm",
            "ReserveRestaurant",
            json!({"number_of_seats": 2, "time": "20:00"}),
        ),
        (
            RESTAURANTS,
            "Reserve a table at Bistro Don",
            "ReserveRestaurant",
            json!({"restaurant_name": "Bistro Don"}),
        ),
        (
            RESTAURANTS,
            "I need a reservation in Napa for tomorrow evening",
            "ReserveRestaurant",
            json!({"location": "Napa", "date": "2026-05-05"}),
        ),
        (
            RESTAURANTS,
            "Make a reservation for my anniversary dinner at half past 7 in the evening",
            "ReserveRestaurant",
            json!({"time": "19:30"}),
        ),
        (
            RESTAURANTS,
            "We are 4 and would like to have dinner in Oakland on Friday",
            "ReserveRestaurant",
            json!({"number_of_seats": 4, "location": "Oakland", "date": "2026-05-08"}),
        ),
        (SALONS, "I need a haircut", "BookAppointment", json!({})),
        (SALONS, "Find a hair stylist for me", "FindStylist", json!({})),
        (
            SALONS,
            "Can you make an appointment for me next Friday?",
            "BookAppointment",
            json!({"appointment_date": "2026-05-08"}),
        ),
        (SALONS, "Book me an appointment with a good stylist", "BookAppointment", json!({})),
        (
            SALONS,
            "I'd like an appointment at quarter past 10",
            "BookAppointment",
            json!({"appointment_time": "10:15"}),
        ),
        (
            SALONS,
            "Book an appointment with Great Clips",
            "BookAppointment",
            json!({"stylist_name": "Great Clips"}),
        ),
        (
            SALONS,
            "I want to get my hair done tomorrow at 3pm",
            "BookAppointment",
            json!({"appointment_date": "2026-05-05", "appointment_time": "15:00"}),
        ),
        (SALONS, "Is there any place to get a haircut nearby?", "FindStylist", json!({})),
        (HOMES, "I'm moving and need an apartment", "FindApartment", json!({})),
        (HOMES, "Find an apartment to live in with my family", "FindApartment", json!({})),
        (HOMES, "I am looking for an apartment in San Jose", "FindApartment", json!({"area": "San Jose"})),
        (HOMES, "Find me a 2 bedroom apartment", "FindApartment", json!({"number_of_beds": 2})),
        (
            HOMES,
            "I need an apartment with 2 bathrooms in Campbell",
            "FindApartment",
            json!({"area": "Campbell", "number_of_baths": 2}),
        ),
        (HOMES, "Schedule a visit for tomorrow", "ScheduleVisit", json!({"visit_date": "2026-05-05"})),
        (
            HOMES,
            "I would like to see the property on March 3",
            "ScheduleVisit",
            json!({"visit_date": "2027-03-03"}),
        ),
        (
            HOMES,
            "Schedule a visit to Almaden Lake Apartments",
            "ScheduleVisit",
            json!({"property_name": "Almaden Lake Apartments"}),
        ),
        (HOMES, "Can you arrange a viewing at some point?", "ScheduleVisit", json!({})),
        (BANK, "Can you please check my balance?", "CheckBalance", json!({})),
        (BANK, "How much money do I have?", "CheckBalance", json!({})),
        (BANK, "I want to make a transfer", "TransferMoney", json!({})),
        (BANK, "Transfer some money to Diego", "TransferMoney", json!({"recipient_account_name": "Diego"})),
        (
            BANK,
            "Send 100 dollars from my savings",
            "TransferMoney",
            json!({"amount": 100, "account_type": "savings"}),
        ),
        (BANK, "I need to send money to a friend", "TransferMoney", json!({})),
        (BANK, "Transfer $500 for me please", "TransferMoney", json!({"amount": 500})),
        (BANK, "I'd like to pay back my brother", "TransferMoney", json!({})),
        (HOTELS, "I need a place to stay", "SearchHotel", json!({})),
        (
            HOTELS,
            "I'm going on vacation to Paris, France. Find me a hotel",
            "SearchHotel",
            json!({"destination": "Paris, France"}),
        ),
        (HOTELS, "Search for a hotel with 2 rooms", "SearchHotel", json!({"number_of_rooms": 2})),
        (HOTELS, "Find a hotel in Vancouver", "SearchHotel", json!({"destination": "Vancouver"})),
        (
            HOTELS,
            "Reserve a room starting tomorrow",
            "ReserveHotel",
            json!({"check_in_date": "2026-05-05", "number_of_rooms": 1}),
        ),
        (
            HOTELS,
            "Book 2 rooms at the Hilton Garden Inn on March 3",
            "ReserveHotel",
            json!({"number_of_rooms": 2, "hotel_name": "Hilton Garden Inn", "check_in_date": "2027-03-03"}),
        ),
        (HOTELS, "Can you help me find a hotel to relax for a few days?", "SearchHotel", json!({})),
        (
            HOTELS,
            "Find somewhere to sleep for one night in Delhi",
            "SearchHotel",
            json!({"destination": "Delhi"}),
        ),
        (EVENTS, "Find something to do this weekend", "FindEvents", json!({"date": "2026-05-09"})),
        (EVENTS, "I'm looking for a concert", "FindEvents", json!({"category": "Music"})),
        (EVENTS, "Are there any events to go to in Chicago?", "FindEvents", json!({"city": "Chicago"})),
        (EVENTS, "Buy tickets for Alessia Cara", "BuyEventTickets", json!({"event_name": "Alessia Cara"})),
        (
            EVENTS,
            "I want 4 event tickets for Friday",
            "BuyEventTickets",
            json!({"number_of_tickets": 4, "date": "2026-05-08"}),
        ),
        (EVENTS, "Get me tickets to a game in New York", "BuyEventTickets", json!({"city": "New York"})),
        (EVENTS, "I want to do something fun with my friends", "FindEvents", json!({})),
    ]
}

/// Openings that say all that is needed.
fn whole() -> Vec<Opening> {
    let bus = |from: &str, to: &str, date: &str, time: &str, travelers: u32| json!({"from_location": from, "to_location": to, "leaving_date": date, "leaving_time": time, "travelers": travelers});
    let table = |name: &str, city: &str, date: &str, time: &str, seats: u32| json!({"restaurant_name": name, "location": city, "date": date, "time": time, "number_of_seats": seats});
    vec![
        (MOVIES, "Find me a movie to watch in Los Angeles", "FindMovies", json!({"location": "Los Angeles"})),
        (MOVIES, "What's playing in San Jose tonight?", "FindMovies", json!({"location": "San Jose"})),
        (
            MOVIES,
            "I want to see a horror movie in Walnut Creek",
            "FindMovies",
            json!({"location": "Walnut Creek", "genre": "Horror"}),
        ),
        (
            MOVIES,
            "Can you find a good comedy to watch in Oakland, please?",
            "FindMovies",
            json!({"location": "Oakland", "genre": "Comedy"}),
        ),
        (
            MOVIES,
            "Please buy 2 tickets for Captain Marvel in Berkeley tomorrow at 7pm",
            "BuyMovieTickets",
            json!({"movie_name": "Captain Marvel", "number_of_tickets": 2, "location": "Berkeley", "show_date": "2026-05-05", "show_time": "19:00"}),
        ),
        (
            MOVIES,
            "I want three tickets to Pet Sematary in San Jose on March 3 at 18:30",
            "BuyMovieTickets",
            json!({"movie_name": "Pet Sematary", "number_of_tickets": 3, "location": "San Jose", "show_date": "2027-03-03", "show_time": "18:30"}),
        ),
        (
            BUSES,
            "Find a bus from Las Vegas to Los Angeles on March 8",
            "FindBus",
            json!({"from_location": "Las Vegas", "to_location": "Los Angeles", "leaving_date": "2027-03-08"}),
        ),
        (
            BUSES,
            "I need a bus to San Francisco from Fresno tomorrow",
            "FindBus",
            json!({"from_location": "Fresno", "to_location": "San Francisco", "leaving_date": "2026-05-05"}),
        ),
        (
            BUSES,
            "Are there any buses leaving from San Diego to Phoenix next Friday?",
            "FindBus",
            json!({"from_location": "San Diego", "to_location": "Phoenix", "leaving_date": "2026-05-08"}),
        ),
        (
            BUSES,
            "Please buy a bus ticket from Fresno to Sacramento tomorrow at 9am for 2 people",
            "BuyBusTicket",
            bus("Fresno", "Sacramento", "2026-05-05", "09:00", 2),
        ),
        (
            BUSES,
            "Book 3 seats on the bus from Anaheim to Long Beach on the 8th at 14:15",
            "BuyBusTicket",
            bus("Anaheim", "Long Beach", "2026-05-08", "14:15", 3),
        ),
        (
            BUSES,
            "I'd like to buy bus tickets to Las Vegas from San Diego for 4 travelers on March 3 at 10:00, thanks a lot",
            "BuyBusTicket",
            bus("San Diego", "Las Vegas", "2027-03-03", "10:00", 4),
        ),
        (
            CARS,
            "I need a rental car in Seattle from March 3 to March 6, pick up at 10:00",
            "GetCarsAvailable",
            json!({"city": "Seattle", "pickup_location": "Seattle", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06", "pickup_time": "10:00"}),
        ),
        (
            CARS,
            "Find a sedan in New York, pick up tomorrow at 2pm and drop off on Friday",
            "GetCarsAvailable",
            json!({"city": "New York", "pickup_date": "2026-05-05", "dropoff_date": "2026-05-08", "pickup_time": "14:00", "car_type": "Sedan"}),
        ),
        (
            CARS,
            "Reserve a compact at Union Station from the 5th until the 8th, pickup at noon",
            "ReserveCar",
            json!({"pickup_location": "Union Station", "pickup_date": "2026-05-05", "dropoff_date": "2026-05-08", "pickup_time": "12:00", "car_type": "Compact"}),
        ),
        (
            CARS,
            "Please book me an SUV at Portland Airport from March 3 at 10:00 to March 6",
            "ReserveCar",
            json!({"pickup_location": "Portland Airport", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06", "pickup_time": "10:00", "car_type": "SUV"}),
        ),
        (MUSIC, "Play Bohemian Rhapsody", "PlaySong", json!({"song_name": "Bohemian Rhapsody"})),
        (MUSIC, "Can you play the song Shape of You?", "PlaySong", json!({"song_name": "Shape of You"})),
        (
            MUSIC,
            "Please play \"Let it go\" on the TV",
            "PlaySong",
            json!({"song_name": "Let it go", "playback_device": "TV"}),
        ),
        (MUSIC, "I want to listen to Yellow Submarine", "PlaySong", json!({"song_name": "Yellow Submarine"})),
        (MUSIC, "Find songs by Taylor Swift", "LookupMusic", json!({"artist": "Taylor Swift"})),
        (MUSIC, "Search for music by Queen please", "LookupMusic", json!({"artist": "Queen"})),
        (
            RESTAURANTS,
            "I'm looking for an Italian place to eat in San Francisco",
            "FindRestaurants",
            json!({"cuisine": "Italian", "city": "San Francisco"}),
        ),
        (
            RESTAURANTS,
            "Find me a Chinese restaurant in Palo Alto",
            "FindRestaurants",
            json!({"cuisine": "Chinese", "city": "Palo Alto"}),
        ),
        (
            RESTAURANTS,
            "Where can I eat vegetarian food in Los Altos?",
            "FindRestaurants",
            json!({"cuisine": "Vegetarian", "city": "Los Altos"}),
        ),
        (
            RESTAURANTS,
            "Please reserve a table for 2 at Bistro Don in San Jose tomorrow at 7pm",
            "ReserveRestaurant",
            table("Bistro Don", "San Jose", "2026-05-05", "19:00", 2),
        ),
        (
            RESTAURANTS,
            "I'd like to book a table at The Anchor in Oakland on Friday at 20:00 for four people",
            "ReserveRestaurant",
            table("The Anchor", "Oakland", "2026-05-08", "20:00", 4),
        ),
        (
            RESTAURANTS,
            "Can you make a reservation for six at Taqueria El Paso in Napa on March 3 at 19:30?",
            "ReserveRestaurant",
            table("Taqueria El Paso", "Napa", "2027-03-03", "19:30", 6),
        ),
        (
            RESTAURANTS,
            "Book a table for 3 people at Luigi's in Napa tomorrow at 8pm for my family",
            "ReserveRestaurant",
            table("Luigi's", "Napa", "2026-05-05", "20:00", 3),
        ),
        (SALONS, "Find a hair stylist in San Rafael", "FindStylist", json!({"city": "San Rafael"})),
        (SALONS, "I need a hairdresser in Los Gatos", "FindStylist", json!({"city": "Los Gatos"})),
        (
            SALONS,
            "Book an appointment with Great Clips tomorrow at 11am",
            "BookAppointment",
            json!({"stylist_name": "Great Clips", "appointment_date": "2026-05-05", "appointment_time": "11:00"}),
        ),
        (
            SALONS,
            "Please make an appointment at Blush Salon on March 3 at 14:00",
            "BookAppointment",
            json!({"stylist_name": "Blush Salon", "appointment_date": "2027-03-03", "appointment_time": "14:00"}),
        ),
        (
            SALONS,
            "I want a haircut at Supercuts on Friday at 4pm asap",
            "BookAppointment",
            json!({"stylist_name": "Supercuts", "appointment_date": "2026-05-08", "appointment_time": "16:00"}),
        ),
        (
            HOMES,
            "Find a 2 bedroom apartment in San Jose",
            "FindApartment",
            json!({"area": "San Jose", "number_of_beds": 2}),
        ),
        (
            HOMES,
            "I'm looking for an apartment in Los Gatos with 3 bedrooms and 2 baths",
            "FindApartment",
            json!({"area": "Los Gatos", "number_of_beds": 3, "number_of_baths": 2}),
        ),
        (
            HOMES,
            "Schedule a visit to Almaden Lake Apartments on March 3",
            "ScheduleVisit",
            json!({"property_name": "Almaden Lake Apartments", "visit_date": "2027-03-03"}),
        ),
        (
            HOMES,
            "I want to see the Aspen Ridge property tomorrow, please",
            "ScheduleVisit",
            json!({"property_name": "Aspen Ridge", "visit_date": "2026-05-05"}),
        ),
        (
            BANK,
            "What's the balance of my savings account?",
            "CheckBalance",
            json!({"account_type": "savings"}),
        ),
        (
            BANK,
            "Check my checking account balance please",
            "CheckBalance",
            json!({"account_type": "checking"}),
        ),
        (
            BANK,
            "Transfer 500 dollars to Diego from my savings account",
            "TransferMoney",
            json!({"account_type": "savings", "amount": 500, "recipient_account_name": "Diego"}),
        ),
        (
            BANK,
            "I want to send $40 from checking to Amy Wong",
            "TransferMoney",
            json!({"account_type": "checking", "amount": 40, "recipient_account_name": "Amy Wong"}),
        ),
        (
            BANK,
            "Please transfer $1,200 from checking to Jerry, thanks",
            "TransferMoney",
            json!({"account_type": "checking", "amount": 1200, "recipient_account_name": "Jerry"}),
        ),
        (
            HOTELS,
            "Search for a hotel in New York with 2 rooms",
            "SearchHotel",
            json!({"destination": "New York", "number_of_rooms": 2}),
        ),
        (
            HOTELS,
            "I need one room in a hotel in Paris, France",
            "SearchHotel",
            json!({"destination": "Paris, France", "number_of_rooms": 1}),
        ),
        (
            HOTELS,
            "Please reserve 2 rooms at the Hilton Garden Inn from March 3 to March 5",
            "ReserveHotel",
            json!({"number_of_rooms": 2, "hotel_name": "Hilton Garden Inn", "check_in_date": "2027-03-03", "check_out_date": "2027-03-05"}),
        ),
        (
            HOTELS,
            "Book one room at Hotel Adlon from tomorrow until Friday because we visit Berlin",
            "ReserveHotel",
            json!({"number_of_rooms": 1, "hotel_name": "Hotel Adlon", "check_in_date": "2026-05-05", "check_out_date": "2026-05-08"}),
        ),
        (
            EVENTS,
            "Are there any concerts in Las Vegas?",
            "FindEvents",
            json!({"category": "Music", "city": "Las Vegas"}),
        ),
        (
            EVENTS,
            "Find sports events in New York next Friday",
            "FindEvents",
            json!({"category": "Sports", "city": "New York", "date": "2026-05-08"}),
        ),
        (
            EVENTS,
            "Buy 2 tickets for Mets Vs Reds in New York on March 3",
            "BuyEventTickets",
            json!({"event_name": "Mets Vs Reds", "number_of_tickets": 2, "city": "New York", "date": "2027-03-03"}),
        ),
        (
            EVENTS,
            "Can you get me four tickets to Alessia Cara in Los Angeles tomorrow?",
            "BuyEventTickets",
            json!({"event_name": "Alessia Cara", "number_of_tickets": 4, "city": "Los Angeles", "date": "2026-05-05"}),
        ),
    ]
}

#[test]
fn dialogue_openings_yield_no_invented_values() {
    let all = openings();
    let judged: Vec<_> = all.iter().map(judged).collect();
    let invented: Vec<&String> = judged.iter().flat_map(|j| &j.0).collect();
    let lost: Vec<&String> = judged.iter().filter_map(|j| j.1.as_ref()).collect();
    let complete = whole().len();
    let report = format!(
        "invented {}, lost {} of {complete}, {} openings\n{}\n{}",
        invented.len(),
        lost.len(),
        all.len(),
        invented.iter().map(|s| s.as_str()).collect::<Vec<_>>().join("\n"),
        lost.iter().map(|s| s.as_str()).collect::<Vec<_>>().join("\n")
    );
    assert!(invented.is_empty() && lost.len() * 100 <= complete * 15, "{report}");
}

const COLD_ROOM: &str = r#"
name = "ColdRoom"
description = "The temperature of the cold room."
[[examples]]
say = "Set the temperature to 4 degrees"
tool = "SetTemperature"
[[examples]]
say = "Imposta la temperatura a 4 gradi"
tool = "SetTemperature"
[[tools]]
name = "SetTemperature"
description = "Sets the temperature of the cold room, in degrees."
effect = "write"
[tools.parameters]
type = "object"
required = ["temperature"]
additionalProperties = false
[tools.parameters.properties.temperature]
type = "number"
description = "The temperature, in degrees."
"#;

#[test]
fn minus_before_a_number_is_part_of_it() {
    for words in ["Set the temperature to -5 degrees", "Imposta la temperatura a -5 gradi"] {
        let outcome = World::of(&[COLD_ROOM]).run(words);
        let offered = offered(&outcome);
        assert_eq!(offered, [("SetTemperature".to_owned(), json!({"temperature": -5}))], "{words}");
    }
}
