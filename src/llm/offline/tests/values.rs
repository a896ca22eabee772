//! Values come from the words of the user, or are asked for.

use serde_json::{Value, json};

use super::domains::WEATHER;
use super::services::*;
use super::support::{RequestOutcome, World, table};

/// A scene, what is said to it, the tool meant, and every value that is in the words.
type Opening = (&'static str, String, String, Value);

/// The openings of tables by scene, each with one call.
fn openings(tables: &[(&'static str, &str)]) -> Vec<Opening> {
    let opening = |scene, (words, calls): (String, Value)| {
        (scene, words, calls[0][0].as_str().unwrap().to_owned(), calls[0][1].clone())
    };
    tables.iter().flat_map(|(scene, text)| table(text).into_iter().map(|row| opening(*scene, row))).collect()
}

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

/// Openings that lack something, by scene.
const PARTIAL: &[(&str, &str)] = &[
    (
        MOVIES,
        r#"
        Find me a movie to watch => FindMovies {}
        I'm looking for a good movie to see tonight => FindMovies {}
        I feel like watching a film. Can you help me? => FindMovies {}
        Can you get me some tickets for a movie? => BuyMovieTickets {}
        Buy tickets for the show at 7pm => BuyMovieTickets {"show_time": "19:00"}
        I want 2 movie tickets in Berkeley => BuyMovieTickets {"number_of_tickets": 2, "location": "Berkeley"}
        I'd like to go to the cinema with my wife => FindMovies {}
        Get me three tickets to Hellboy please => BuyMovieTickets {"number_of_tickets": 3, "movie_name": "Hellboy"}
        Something funny to watch with the kids would be great => FindMovies {}
    "#,
    ),
    (
        BUSES,
        r#"
        Can you book me a bus? => BuyBusTicket {}
        I need a bus to go to a conference => FindBus {}
        I want to travel by bus from Las Vegas => FindBus {"from_location": "Las Vegas"}
        I'm planning a trip to Los Angeles and need a bus => FindBus {"to_location": "Los Angeles"}
        I need to leave from Las Vegas on the 3rd at half past 1 in the afternoon
            => BuyBusTicket {"from_location": "Las Vegas", "leaving_date": "2026-06-03", "leaving_time": "13:30"}
        Find a bus for two people leaving tomorrow => FindBus {"travelers": 2, "leaving_date": "2026-05-05"}
        Buy me a bus ticket to San Francisco => BuyBusTicket {"to_location": "San Francisco", "travelers": 1}
        I'd like to get out of town this weekend by bus => FindBus {"leaving_date": "2026-05-09"}
        Are there any buses to Sacramento? => FindBus {"to_location": "Sacramento"}
        Book bus tickets for me and my friends => BuyBusTicket {}
        I am going to visit my sister in Fresno. Can you find a bus? => FindBus {"to_location": "Fresno"}
    "#,
    ),
    (
        CARS,
        r#"
        I need to rent a car => GetCarsAvailable {}
        I need a rental car in Seattle, pick up on March 3rd at 10:00
            => GetCarsAvailable {"city": "Seattle", "pickup_location": "Seattle", "pickup_date": "2027-03-03", "pickup_time": "10:00"}
        Can you find me a car to drive around in? => GetCarsAvailable {}
        Reserve an SUV for me => ReserveCar {"car_type": "SUV"}
        I want to pick up a car on March 3rd => GetCarsAvailable {"pickup_date": "2027-03-03"}
        Find a rental car in Los Angeles from March 3 to March 6
            => GetCarsAvailable {"city": "Los Angeles", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06"}
        Reserve a standard car, I will return it on Friday => ReserveCar {"car_type": "Standard", "dropoff_date": "2026-05-08"}
        I'm visiting London soon and will need a car => GetCarsAvailable {"city": "London", "pickup_location": "London"}
    "#,
    ),
    (
        MUSIC,
        r#"
        Please find a song for me => PlaySong {}
        I want to listen to some music => PlaySong {}
        Play something relaxing => PlaySong {}
        Can you play some music for my party? => PlaySong {}
        Play a song on the TV => PlaySong {"playback_device": "TV"}
        I'm bored, play me a nice song => PlaySong {}
        Search for some good music to dance to => LookupMusic {}
        I would love to hear a song right now => PlaySong {}
    "#,
    ),
    (
        RESTAURANTS,
        r#"
        I'm looking for a place to eat => FindRestaurants {}
        I'm hungry, find me a restaurant => FindRestaurants {}
        I want some Mexican food => FindRestaurants {"cuisine": "Mexican"}
        Find a nice restaurant to celebrate in San Jose => FindRestaurants {"city": "San Jose"}
        Can you book a table for me? => ReserveRestaurant {}
        Book a table for two at 8pm => ReserveRestaurant {"number_of_seats": 2, "time": "20:00"}
        Reserve a table at Bistro Don => ReserveRestaurant {"restaurant_name": "Bistro Don"}
        I need a reservation in Napa for tomorrow evening => ReserveRestaurant {"location": "Napa", "date": "2026-05-05"}
        Make a reservation for my anniversary dinner at half past 7 in the evening => ReserveRestaurant {"time": "19:30"}
        We are 4 and would like to have dinner in Oakland on Friday
            => ReserveRestaurant {"number_of_seats": 4, "location": "Oakland", "date": "2026-05-08"}
    "#,
    ),
    (
        SALONS,
        r#"
        I need a haircut => BookAppointment {}
        Find a hair stylist for me => FindStylist {}
        Can you make an appointment for me next Friday? => BookAppointment {"appointment_date": "2026-05-08"}
        Book me an appointment with a good stylist => BookAppointment {}
        I'd like an appointment at quarter past 10 => BookAppointment {"appointment_time": "10:15"}
        Book an appointment with Great Clips => BookAppointment {"stylist_name": "Great Clips"}
        I want to get my hair done tomorrow at 3pm => BookAppointment {"appointment_date": "2026-05-05", "appointment_time": "15:00"}
        Is there any place to get a haircut nearby? => FindStylist {}
    "#,
    ),
    (
        HOMES,
        r#"
        I'm moving and need an apartment => FindApartment {}
        Find an apartment to live in with my family => FindApartment {}
        I am looking for an apartment in San Jose => FindApartment {"area": "San Jose"}
        Find me a 2 bedroom apartment => FindApartment {"number_of_beds": 2}
        I need an apartment with 2 bathrooms in Campbell => FindApartment {"area": "Campbell", "number_of_baths": 2}
        Schedule a visit for tomorrow => ScheduleVisit {"visit_date": "2026-05-05"}
        I would like to see the property on March 3 => ScheduleVisit {"visit_date": "2027-03-03"}
        Schedule a visit to Almaden Lake Apartments => ScheduleVisit {"property_name": "Almaden Lake Apartments"}
        Can you arrange a viewing at some point? => ScheduleVisit {}
    "#,
    ),
    (
        BANK,
        r#"
        Can you please check my balance? => CheckBalance {}
        How much money do I have? => CheckBalance {}
        I want to make a transfer => TransferMoney {}
        Transfer some money to Diego => TransferMoney {"recipient_account_name": "Diego"}
        Send 100 dollars from my savings => TransferMoney {"amount": 100, "account_type": "savings"}
        I need to send money to a friend => TransferMoney {}
        Transfer $500 for me please => TransferMoney {"amount": 500}
        I'd like to pay back my brother => TransferMoney {}
    "#,
    ),
    (
        HOTELS,
        r#"
        I need a place to stay => SearchHotel {}
        I'm going on vacation to Paris, France. Find me a hotel => SearchHotel {"destination": "Paris, France"}
        Search for a hotel with 2 rooms => SearchHotel {"number_of_rooms": 2}
        Find a hotel in Vancouver => SearchHotel {"destination": "Vancouver"}
        Reserve a room starting tomorrow => ReserveHotel {"check_in_date": "2026-05-05", "number_of_rooms": 1}
        Book 2 rooms at the Hilton Garden Inn on March 3
            => ReserveHotel {"number_of_rooms": 2, "hotel_name": "Hilton Garden Inn", "check_in_date": "2027-03-03"}
        Can you help me find a hotel to relax for a few days? => SearchHotel {}
        Find somewhere to sleep for one night in Delhi => SearchHotel {"destination": "Delhi"}
    "#,
    ),
    (
        EVENTS,
        r#"
        Find something to do this weekend => FindEvents {"date": "2026-05-09"}
        I'm looking for a concert => FindEvents {"category": "Music"}
        Are there any events to go to in Chicago? => FindEvents {"city": "Chicago"}
        Buy tickets for Alessia Cara => BuyEventTickets {"event_name": "Alessia Cara"}
        I want 4 event tickets for Friday => BuyEventTickets {"number_of_tickets": 4, "date": "2026-05-08"}
        Get me tickets to a game in New York => BuyEventTickets {"city": "New York"}
        I want to do something fun with my friends => FindEvents {}
    "#,
    ),
];

/// Openings that say all that is needed.
const WHOLE: &[(&str, &str)] = &[
    (
        MOVIES,
        r#"
        Find me a movie to watch in Los Angeles => FindMovies {"location": "Los Angeles"}
        What's playing in San Jose tonight? => FindMovies {"location": "San Jose"}
        I want to see a horror movie in Walnut Creek => FindMovies {"location": "Walnut Creek", "genre": "Horror"}
        Can you find a good comedy to watch in Oakland, please? => FindMovies {"location": "Oakland", "genre": "Comedy"}
        Please buy 2 tickets for Captain Marvel in Berkeley tomorrow at 7pm
            => BuyMovieTickets {"movie_name": "Captain Marvel", "number_of_tickets": 2, "location": "Berkeley", "show_date": "2026-05-05", "show_time": "19:00"}
        I want three tickets to Pet Sematary in San Jose on March 3 at 18:30
            => BuyMovieTickets {"movie_name": "Pet Sematary", "number_of_tickets": 3, "location": "San Jose", "show_date": "2027-03-03", "show_time": "18:30"}
    "#,
    ),
    (
        BUSES,
        r#"
        Find a bus from Las Vegas to Los Angeles on March 8
            => FindBus {"from_location": "Las Vegas", "to_location": "Los Angeles", "leaving_date": "2027-03-08"}
        I need a bus to San Francisco from Fresno tomorrow
            => FindBus {"from_location": "Fresno", "to_location": "San Francisco", "leaving_date": "2026-05-05"}
        Are there any buses leaving from San Diego to Phoenix next Friday?
            => FindBus {"from_location": "San Diego", "to_location": "Phoenix", "leaving_date": "2026-05-08"}
        Please buy a bus ticket from Fresno to Sacramento tomorrow at 9am for 2 people
            => BuyBusTicket {"from_location": "Fresno", "to_location": "Sacramento", "leaving_date": "2026-05-05", "leaving_time": "09:00", "travelers": 2}
        Book 3 seats on the bus from Anaheim to Long Beach on the 8th at 14:15
            => BuyBusTicket {"from_location": "Anaheim", "to_location": "Long Beach", "leaving_date": "2026-05-08", "leaving_time": "14:15", "travelers": 3}
        I'd like to buy bus tickets to Las Vegas from San Diego for 4 travelers on March 3 at 10:00, thanks a lot
            => BuyBusTicket {"from_location": "San Diego", "to_location": "Las Vegas", "leaving_date": "2027-03-03", "leaving_time": "10:00", "travelers": 4}
    "#,
    ),
    (
        CARS,
        r#"
        I need a rental car in Seattle from March 3 to March 6, pick up at 10:00
            => GetCarsAvailable {"city": "Seattle", "pickup_location": "Seattle", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06", "pickup_time": "10:00"}
        Find a sedan in New York, pick up tomorrow at 2pm and drop off on Friday
            => GetCarsAvailable {"city": "New York", "pickup_date": "2026-05-05", "dropoff_date": "2026-05-08", "pickup_time": "14:00", "car_type": "Sedan"}
        Reserve a compact at Union Station from the 5th until the 8th, pickup at noon
            => ReserveCar {"pickup_location": "Union Station", "pickup_date": "2026-05-05", "dropoff_date": "2026-05-08", "pickup_time": "12:00", "car_type": "Compact"}
        Please book me an SUV at Portland Airport from March 3 at 10:00 to March 6
            => ReserveCar {"pickup_location": "Portland Airport", "pickup_date": "2027-03-03", "dropoff_date": "2027-03-06", "pickup_time": "10:00", "car_type": "SUV"}
    "#,
    ),
    (
        MUSIC,
        r#"
        Play Bohemian Rhapsody => PlaySong {"song_name": "Bohemian Rhapsody"}
        Can you play the song Shape of You? => PlaySong {"song_name": "Shape of You"}
        Please play "Let it go" on the TV => PlaySong {"song_name": "Let it go", "playback_device": "TV"}
        I want to listen to Yellow Submarine => PlaySong {"song_name": "Yellow Submarine"}
        Find songs by Taylor Swift => LookupMusic {"artist": "Taylor Swift"}
        Search for music by Queen please => LookupMusic {"artist": "Queen"}
    "#,
    ),
    (
        RESTAURANTS,
        r#"
        I'm looking for an Italian place to eat in San Francisco => FindRestaurants {"cuisine": "Italian", "city": "San Francisco"}
        Find me a Chinese restaurant in Palo Alto => FindRestaurants {"cuisine": "Chinese", "city": "Palo Alto"}
        Where can I eat vegetarian food in Los Altos? => FindRestaurants {"cuisine": "Vegetarian", "city": "Los Altos"}
        Please reserve a table for 2 at Bistro Don in San Jose tomorrow at 7pm
            => ReserveRestaurant {"restaurant_name": "Bistro Don", "location": "San Jose", "date": "2026-05-05", "time": "19:00", "number_of_seats": 2}
        I'd like to book a table at The Anchor in Oakland on Friday at 20:00 for four people
            => ReserveRestaurant {"restaurant_name": "The Anchor", "location": "Oakland", "date": "2026-05-08", "time": "20:00", "number_of_seats": 4}
        Can you make a reservation for six at Taqueria El Paso in Napa on March 3 at 19:30?
            => ReserveRestaurant {"restaurant_name": "Taqueria El Paso", "location": "Napa", "date": "2027-03-03", "time": "19:30", "number_of_seats": 6}
        Book a table for 3 people at Luigi's in Napa tomorrow at 8pm for my family
            => ReserveRestaurant {"restaurant_name": "Luigi's", "location": "Napa", "date": "2026-05-05", "time": "20:00", "number_of_seats": 3}
    "#,
    ),
    (
        SALONS,
        r#"
        Find a hair stylist in San Rafael => FindStylist {"city": "San Rafael"}
        I need a hairdresser in Los Gatos => FindStylist {"city": "Los Gatos"}
        Book an appointment with Great Clips tomorrow at 11am
            => BookAppointment {"stylist_name": "Great Clips", "appointment_date": "2026-05-05", "appointment_time": "11:00"}
        Please make an appointment at Blush Salon on March 3 at 14:00
            => BookAppointment {"stylist_name": "Blush Salon", "appointment_date": "2027-03-03", "appointment_time": "14:00"}
        I want a haircut at Supercuts on Friday at 4pm asap
            => BookAppointment {"stylist_name": "Supercuts", "appointment_date": "2026-05-08", "appointment_time": "16:00"}
    "#,
    ),
    (
        HOMES,
        r#"
        Find a 2 bedroom apartment in San Jose => FindApartment {"area": "San Jose", "number_of_beds": 2}
        I'm looking for an apartment in Los Gatos with 3 bedrooms and 2 baths
            => FindApartment {"area": "Los Gatos", "number_of_beds": 3, "number_of_baths": 2}
        Schedule a visit to Almaden Lake Apartments on March 3
            => ScheduleVisit {"property_name": "Almaden Lake Apartments", "visit_date": "2027-03-03"}
        I want to see the Aspen Ridge property tomorrow, please
            => ScheduleVisit {"property_name": "Aspen Ridge", "visit_date": "2026-05-05"}
    "#,
    ),
    (
        BANK,
        r#"
        What's the balance of my savings account? => CheckBalance {"account_type": "savings"}
        Check my checking account balance please => CheckBalance {"account_type": "checking"}
        Transfer 500 dollars to Diego from my savings account
            => TransferMoney {"account_type": "savings", "amount": 500, "recipient_account_name": "Diego"}
        I want to send $40 from checking to Amy Wong
            => TransferMoney {"account_type": "checking", "amount": 40, "recipient_account_name": "Amy Wong"}
        Please transfer $1,200 from checking to Jerry, thanks
            => TransferMoney {"account_type": "checking", "amount": 1200, "recipient_account_name": "Jerry"}
    "#,
    ),
    (
        HOTELS,
        r#"
        Search for a hotel in New York with 2 rooms => SearchHotel {"destination": "New York", "number_of_rooms": 2}
        I need one room in a hotel in Paris, France => SearchHotel {"destination": "Paris, France", "number_of_rooms": 1}
        Please reserve 2 rooms at the Hilton Garden Inn from March 3 to March 5
            => ReserveHotel {"number_of_rooms": 2, "hotel_name": "Hilton Garden Inn", "check_in_date": "2027-03-03", "check_out_date": "2027-03-05"}
        Book one room at Hotel Adlon from tomorrow until Friday because we visit Berlin
            => ReserveHotel {"number_of_rooms": 1, "hotel_name": "Hotel Adlon", "check_in_date": "2026-05-05", "check_out_date": "2026-05-08"}
    "#,
    ),
    (
        EVENTS,
        r#"
        Are there any concerts in Las Vegas? => FindEvents {"category": "Music", "city": "Las Vegas"}
        Find sports events in New York next Friday => FindEvents {"category": "Sports", "city": "New York", "date": "2026-05-08"}
        Buy 2 tickets for Mets Vs Reds in New York on March 3
            => BuyEventTickets {"event_name": "Mets Vs Reds", "number_of_tickets": 2, "city": "New York", "date": "2027-03-03"}
        Can you get me four tickets to Alessia Cara in Los Angeles tomorrow?
            => BuyEventTickets {"event_name": "Alessia Cara", "number_of_tickets": 4, "city": "Los Angeles", "date": "2026-05-05"}
    "#,
    ),
];

#[test]
fn dialogue_openings_yield_no_invented_values() {
    let whole = openings(WHOLE);
    let complete = whole.len();
    let all = [openings(PARTIAL), whole].concat();
    let judged: Vec<_> = all.iter().map(judged).collect();
    let invented: Vec<&String> = judged.iter().flat_map(|j| &j.0).collect();
    let lost: Vec<&String> = judged.iter().filter_map(|j| j.1.as_ref()).collect();
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
examples = [
    { say = "Set the temperature to 4 degrees", tool = "SetTemperature" },
    { say = "Imposta la temperatura a 4 gradi", tool = "SetTemperature" },
]
[[tools]]
name = "SetTemperature"
description = "Sets the temperature of the cold room, in degrees."
effect = "write"
parameters.required = ["temperature"]
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
