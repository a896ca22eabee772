//! The tools of the Weather scene.

use std::sync::Arc;

use proscenium::tools::{NativeTools, ToolContext, ToolError, native};
use serde::Deserialize;
use serde_json::{Value, json};

mod forecast;
mod gazetteer;
mod open_meteo;
mod own_cities;
mod places;
#[cfg(test)]
mod tests;

use forecast::{Question, Settings};
use gazetteer::{fold, gazetteer};
use open_meteo::Memory;
use own_cities::OwnCity;
use places::Place;

/// Adds the scene's tools under the names that its `scene.toml` gives.
pub fn register(tools: NativeTools) -> NativeTools {
    let memory = Arc::new(Memory::default());
    let (asks, looks) = (Arc::clone(&memory), memory);
    tools
        .with_settings("Weather", forecast::Settings::check)
        .with(
            "weather.forecast",
            native(move |question: Question, context| {
                let memory = Arc::clone(&asks);
                async move { forecast::forecast(question, &context, &memory).await }
            }),
        )
        .with(
            "weather.add_city",
            native(|city: NewCity, context| async move { add_city(city, &context).await }),
        )
        .with(
            "weather.city_exists",
            native(move |asked: Name, context| {
                let memory = Arc::clone(&looks);
                async move { city_exists(&asked.city, &context, &memory).await }
            }),
        )
        .with(
            "weather.list_cities",
            native(|of: Listing, context| async move { list_cities(of, &context).await }),
        )
}

/// What `AddCity` is given.
#[derive(Debug, Deserialize)]
struct NewCity {
    name: String,
    #[serde(default)]
    country: Option<String>,
    latitude: f64,
    longitude: f64,
}

/// What `CityExists` is asked.
#[derive(Debug, Deserialize)]
struct Name {
    city: String,
}

/// What `ListCities` is asked.
#[derive(Debug, Deserialize)]
struct Listing {
    #[serde(default)]
    country: Option<String>,
}

async fn add_city(given: NewCity, context: &ToolContext) -> Result<Value, ToolError> {
    let name = given.name.trim();
    if fold(name).is_empty() || name.chars().count() > 100 || name.chars().any(char::is_control) {
        return Err(ToolError::refused("weather.no_city", "name the city, in at most 100 characters"));
    }
    if !(-90.0..=90.0).contains(&given.latitude) || !(-180.0..=180.0).contains(&given.longitude) {
        let message = format!(
            "latitude {} and longitude {} are nowhere: use degrees, -90 to 90 north and -180 to 180 east",
            given.latitude, given.longitude
        );
        return Err(ToolError::refused("weather.bad_position", message));
    }
    let country = country(given.country.as_deref())?.unwrap_or_default();
    let clash = gazetteer().named(name).find(|city| {
        let km = gazetteer::distance_km((city.latitude, city.longitude), (given.latitude, given.longitude));
        city.country == country || km < 50.0
    });
    if let Some(city) = clash {
        let message = format!("{} is already known; ask for its forecast", city.label());
        return Err(ToolError::refused("weather.city_known", message));
    }
    let city = OwnCity {
        name: name.to_owned(),
        country: country.to_owned(),
        latitude: given.latitude,
        longitude: given.longitude,
    };
    let place = Place::from(&own_cities::add(context, city).await?);
    let mut told = json!({
        "added": true,
        "city": place.name,
        "latitude": place.latitude,
        "longitude": place.longitude,
    });
    if !place.country.is_empty() {
        told["country"] = json!(place.country);
    }
    tell_climate(&mut told, &place);
    Ok(told)
}

async fn city_exists(asked: &str, context: &ToolContext, memory: &Memory) -> Result<Value, ToolError> {
    let settings = Settings::of(context)?;
    match forecast::locate(asked, context, &settings, memory).await {
        Ok(place) => {
            let mut told = json!({
                "exists": true,
                "asked_as": asked.trim(),
                "city": place.name,
                "added": place.added,
            });
            if !place.country.is_empty() {
                told["country"] = json!(place.country);
            }
            tell_climate(&mut told, &place);
            Ok(told)
        }
        Err(error) if matches!(error.code.as_str(), "weather.unknown_city" | "weather.ambiguous_city") => {
            let exists = error.code == "weather.ambiguous_city";
            Ok(
                json!({ "exists": exists, "asked_as": asked.trim(), "city": asked.trim(), "note": error.message }),
            )
        }
        Err(error) => Err(error),
    }
}

async fn list_cities(of: Listing, context: &ToolContext) -> Result<Value, ToolError> {
    let country = country(of.country.as_deref())?;
    let wanted = |code: &str| country.is_none_or(|country| country == code);
    let own = own_cities::all(context).await?;
    let added: Vec<_> =
        own.iter().filter(|city| wanted(&city.country)).map(|city| Place::from(city).label()).collect();
    let mut cities: Vec<_> =
        gazetteer().cities().iter().filter(|city| wanted(city.country)).map(gazetteer::City::label).collect();
    cities.sort();
    Ok(json!({ "count": cities.len() + added.len(), "cities": cities, "added": added }))
}

/// The code of a country that was given, if one was.
fn country(given: Option<&str>) -> Result<Option<&'static str>, ToolError> {
    let Some(given) = given.map(str::trim).filter(|given| !given.is_empty()) else {
        return Ok(None);
    };
    gazetteer().country(given).map(Some).ok_or_else(|| {
        let message = format!("{given:?} is no country that is known: use its two letters, such as IT");
        ToolError::refused("weather.unknown_country", message)
    })
}

/// Says whose averages hold for a place that has none of its own.
fn tell_climate(told: &mut Value, place: &Place) {
    if let Some((city, _, km)) = place.climate
        && km >= 1.0
    {
        told["climate_of"] = json!(city.name);
        told["distance_km"] = json!(km.round() as i64);
    }
}
