//! The weather of a city on some days: a forecast where there is one, averages where there is none.

use jiff::ToSpan;
use jiff::civil::Date;
use proscenium::run::FaultClass;
use proscenium::tools::{ToolContext, ToolError, parse_settings};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gazetteer::{Climate, fold};
use super::open_meteo::{self, DAYS_AHEAD, Fault, Memory};
use super::own_cities;
use super::places::{Asked, Found, Place, find};

/// What `WeatherForecast_Get` is asked.
#[derive(Debug, Deserialize)]
pub struct Question {
    city: String,
    #[serde(default)]
    date: Option<String>,
    #[serde(default)]
    days: Option<f64>,
}

/// Where forecasts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    /// Open-Meteo where it can be reached, otherwise the averages.
    #[default]
    Auto,
    /// The averages that come with the scene.
    Bundled,
    /// Open-Meteo only.
    OpenMeteo,
}

/// `[settings]` of the scene.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub struct Settings {
    source: Source,
    geocoding_url: String,
    forecast_url: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: Source::Auto,
            geocoding_url: "https://geocoding-api.open-meteo.com/v1/search".to_owned(),
            forecast_url: "https://api.open-meteo.com/v1/forecast".to_owned(),
        }
    }
}

impl Settings {
    /// As the context has them.
    pub fn of(context: &ToolContext) -> Result<Self, ToolError> {
        context.settings_as("Weather", "weather.settings")
    }

    /// What is wrong with the scene's settings.
    pub fn check(settings: &Value) -> Result<(), ToolError> {
        parse_settings::<Self>(settings, "Weather", "weather.settings").map(drop)
    }

    fn may_ask(&self, memory: &Memory) -> bool {
        match self.source {
            Source::Bundled => false,
            Source::OpenMeteo => true,
            Source::Auto => memory.may_ask(),
        }
    }
}

/// One day of an answer, with its source.
struct Day {
    date: Date,
    fields: Map<String, Value>,
    approximate: bool,
}

/// Answers it.
pub async fn forecast(
    question: Question,
    context: &ToolContext,
    memory: &Memory,
) -> Result<Value, ToolError> {
    let settings = Settings::of(context)?;
    let dates = dates(&question, context)?;
    let place = locate(&question.city, context, &settings, memory).await?;
    let (live, note) = live(&place, &dates, context, &settings, memory).await?;
    let days = dates
        .iter()
        .map(|date| match live.iter().find(|day| day.date == *date) {
            Some(day) => Ok(forecast_day(day)),
            None => match place.climate {
                Some((_, climate, _)) => Ok(average_day(climate, *date)),
                None => Err(no_climate(&place, *date)),
            },
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(answer(&question.city, &place, days, note))
}

/// The place that a name means. Where the scene does not know it, Open-Meteo is asked if it may be.
pub async fn locate(
    asked: &str,
    context: &ToolContext,
    settings: &Settings,
    memory: &Memory,
) -> Result<Place, ToolError> {
    let asked = asked.trim();
    if fold(asked).is_empty() || asked.chars().count() > 100 {
        return Err(ToolError::refused("weather.no_city", "name a city, in at most 100 characters"));
    }
    let near = match find(asked, &own_cities::all(context).await?) {
        Found::One(place) => return Ok(*place),
        Found::Several(places) => return Err(ambiguous(asked, places.iter().map(Place::label))),
        Found::Nowhere(near) => near,
    };
    if !settings.may_ask(memory) {
        return Err(unknown(asked, near, context.language.as_deref()));
    }
    let (name, said) = Asked::read(asked);
    let language = context.language.as_deref().unwrap_or("en");
    let request = open_meteo::places(&context.http, &settings.geocoding_url, &name, language);
    let hits = match unless_cancelled(context, request).await? {
        Ok(hits) => hits,
        Err(fault) => {
            memory.note(fault.reached);
            return Err(match settings.source {
                Source::OpenMeteo => unavailable(&fault),
                _ => unknown(asked, near, context.language.as_deref()),
            });
        }
    };
    memory.note(true);
    let code = said.as_deref().and_then(|said| super::gazetteer::gazetteer().country(said));
    if said.is_some() && code.is_none() {
        return Err(unknown(
            asked,
            hits.iter().map(label).chain(near).take(3).collect(),
            context.language.as_deref(),
        ));
    }
    let known = near.into_iter().chain(hits.iter().map(label)).take(3).collect();
    match meant(&hits, &name, code) {
        MeantPlace::One(hit) => Ok(Place::at(&hit.name, &hit.country_code, hit.latitude, hit.longitude)),
        MeantPlace::Several(same) => Err(ambiguous(asked, same.into_iter().map(label))),
        MeantPlace::None => Err(unknown(asked, known, context.language.as_deref())),
    }
}

/// What a name means, of the places that Open-Meteo knows.
enum MeantPlace<'a> {
    One(&'a open_meteo::Hit),
    /// Two of about the same size in several countries: which one is meant is only the user's to say.
    Several(Vec<&'a open_meteo::Hit>),
    None,
}

/// The place called `name`, in the country if one was said: the largest.
fn meant<'a>(hits: &'a [open_meteo::Hit], name: &str, code: Option<&str>) -> MeantPlace<'a> {
    let people = |hit: &open_meteo::Hit| hit.population.unwrap_or(0.0);
    let is_meant = |hit: &&open_meteo::Hit| {
        fold(&hit.name) == fold(name) && code.is_none_or(|code| hit.country_code == code)
    };
    let mut same: Vec<_> = hits.iter().filter(is_meant).collect();
    same.sort_by(|one, other| people(other).total_cmp(&people(one)));
    match same.as_slice() {
        [] => MeantPlace::None,
        [first, second, ..]
            if first.country_code != second.country_code && people(second) * 2.0 >= people(first) =>
        {
            MeantPlace::Several(same)
        }
        [first, ..] => MeantPlace::One(first),
    }
}

/// The days that Open-Meteo forecasts, and why it forecasts none of the others.
async fn live(
    place: &Place,
    dates: &[Date],
    context: &ToolContext,
    settings: &Settings,
    memory: &Memory,
) -> Result<(Vec<open_meteo::Day>, Option<String>), ToolError> {
    if settings.source == Source::Bundled {
        return Ok((Vec::new(), None));
    }
    let today = context.now.date();
    let end = today.saturating_add((DAYS_AHEAD - 1).days());
    let ahead: Vec<Date> = dates.iter().copied().filter(|date| (today..=end).contains(date)).collect();
    let outside = (ahead.len() < dates.len()).then(|| {
        format!("a forecast covers {DAYS_AHEAD} days from {today}; other days are told by averages")
    });
    let (Some(first), Some(last)) = (ahead.first(), ahead.last()) else {
        return Ok((Vec::new(), outside));
    };
    if !settings.may_ask(memory) {
        return Ok((
            Vec::new(),
            Some("Open-Meteo could not be reached; averages are told instead".to_owned()),
        ));
    }
    let position = (place.latitude, place.longitude);
    let request = open_meteo::days(&context.http, &settings.forecast_url, position, *first, *last);
    match unless_cancelled(context, request).await? {
        Ok(days) => {
            memory.note(true);
            Ok((days, outside))
        }
        Err(fault) => {
            memory.note(fault.reached);
            if settings.source == Source::OpenMeteo {
                return Err(unavailable(&fault));
            }
            Ok((Vec::new(), Some("Open-Meteo could not be reached; averages are told instead".to_owned())))
        }
    }
}

async fn unless_cancelled<T>(context: &ToolContext, work: impl Future<Output = T>) -> Result<T, ToolError> {
    tokio::select! {
        done = work => Ok(done),
        () = context.cancelled.cancelled() => {
            Err(ToolError::failed("weather.cancelled", "the request was cancelled before the forecast came"))
        }
    }
}

fn dates(question: &Question, context: &ToolContext) -> Result<Vec<Date>, ToolError> {
    let first = match question.date.as_deref().map(str::trim).filter(|date| !date.is_empty()) {
        None => context.now.date(),
        Some(given) => given.parse().map_err(|_| {
            let message =
                format!("{given:?} is not a date: write it as YYYY-MM-DD, such as {}", context.now.date());
            ToolError::refused("weather.bad_date", message)
        })?,
    };
    let days = question.days.unwrap_or(1.0);
    if !(1.0..=7.0).contains(&days) || days.fract() != 0.0 {
        let message = format!("{days} days cannot be told: ask for 1 to 7");
        return Err(ToolError::refused("weather.bad_days", message));
    }
    (0..days as i64)
        .map(|day| first.checked_add(day.days()))
        .collect::<Result<_, _>>()
        .map_err(|_| ToolError::refused("weather.bad_date", format!("{first} is too far away")))
}

fn average_day(climate: &Climate, date: Date) -> Day {
    let month = climate.months[(date.month() - 1) as usize];
    let mut fields = Map::new();
    fields.insert("min_c".to_owned(), number(month.min_c.round()));
    fields.insert("max_c".to_owned(), number(month.max_c.round()));
    fields.insert("rain_mm".to_owned(), json!(month.rain_mm));
    if let Some(days) = month.rainy_days {
        fields.insert("rainy_days".to_owned(), json!(days));
    }
    fields.insert("rain_of".to_owned(), json!("month"));
    fields.insert("approximate".to_owned(), json!(true));
    fields.insert("source".to_owned(), json!(source(climate)));
    Day { date, fields, approximate: true }
}

fn source(climate: &Climate) -> String {
    match climate.period {
        "" => climate.origin.source().to_owned(),
        period if climate.origin.source().contains(period) => climate.origin.source().to_owned(),
        period => {
            climate.origin.source().replacen("climate averages", &format!("climate averages {period}"), 1)
        }
    }
}

fn forecast_day(day: &open_meteo::Day) -> Day {
    let mut fields = Map::new();
    fields.insert("min_c".to_owned(), number(day.min_c.round()));
    fields.insert("max_c".to_owned(), number(day.max_c.round()));
    if let Some(mm) = day.rain_mm {
        fields.insert("rain_mm".to_owned(), number((mm * 10.0).round() / 10.0));
    }
    if let Some(percent) = day.rain_percent {
        fields.insert("rain_percent".to_owned(), number(percent.round()));
    }
    fields.insert("rain_of".to_owned(), json!("day"));
    if let Some(sky) = day.sky {
        fields.insert("sky".to_owned(), json!(sky));
    }
    fields.insert("approximate".to_owned(), json!(false));
    fields.insert("source".to_owned(), json!(open_meteo::SOURCE));
    Day { date: day.date, fields, approximate: false }
}

/// Whole numbers without a point, as people write them.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
}

fn answer(asked: &str, place: &Place, days: Vec<Day>, note: Option<String>) -> Value {
    let mut told = Map::new();
    told.insert("city".to_owned(), json!(place.name));
    told.insert("asked_as".to_owned(), json!(asked.trim()));
    if !place.country.is_empty() {
        told.insert("country".to_owned(), json!(place.country));
    }
    if days.iter().any(|day| day.approximate)
        && let Some((city, _, km)) = place.climate
        && km >= 1.0
    {
        told.insert("climate_of".to_owned(), json!(city.name));
        told.insert("distance_km".to_owned(), number(km.round()));
    }
    if let Some(note) = note {
        told.insert("note".to_owned(), json!(note));
    }
    let several = days.len() > 1;
    let mut days = days.into_iter().map(|day| {
        let mut fields = Map::from_iter([("date".to_owned(), json!(day.date))]);
        fields.extend(day.fields);
        fields
    });
    if several {
        let days: Vec<_> = days.collect();
        told.extend(days.first().cloned().unwrap_or_default());
        told.insert("days".to_owned(), json!(days));
    } else {
        told.extend(days.next().unwrap_or_default());
    }
    Value::Object(told)
}

fn label(hit: &open_meteo::Hit) -> String {
    format!("{} ({})", hit.name, hit.country_code)
}

fn unknown(asked: &str, near: Vec<String>, language: Option<&str>) -> ToolError {
    let meant = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(", ")) };
    let message = format!(
        "no city called {asked:?} is known.{meant} A city that is missing can be added with AddCity, by its \
         name, latitude and longitude."
    );
    let near = near.join(", ");
    let say = match (language, near.is_empty()) {
        (Some("it"), true) => format!("Non conosco una città di nome «{asked}»."),
        (Some("it"), false) => format!("Non conosco una città di nome «{asked}». Intendevi {near}?"),
        (Some("fr"), true) => format!("Je ne connais pas de ville nommée « {asked} »."),
        (Some("fr"), false) => {
            format!("Je ne connais pas de ville nommée « {asked} ». Vouliez-vous dire {near} ?")
        }
        (Some("de"), true) => format!("Eine Stadt namens „{asked}“ ist nicht bekannt."),
        (Some("de"), false) => format!("Eine Stadt namens „{asked}“ ist nicht bekannt. Meinten Sie {near}?"),
        (Some("es"), true) => format!("No conozco ninguna ciudad llamada «{asked}»."),
        (Some("es"), false) => format!("No conozco ninguna ciudad llamada «{asked}». ¿Se refiere a {near}?"),
        (_, true) => format!("No city called {asked:?} is known."),
        (_, false) => format!("No city called {asked:?} is known. Did you mean {near}?"),
    };
    ToolError::refused("weather.unknown_city", message).classed(FaultClass::NotFound).saying(say)
}

fn ambiguous(asked: &str, places: impl Iterator<Item = String>) -> ToolError {
    let places: Vec<_> = places.take(5).collect();
    let message = format!(
        "{asked:?} may be {}: say the country after the name, as in \"Paris, FR\"",
        places.join(" or ")
    );
    ToolError::refused("weather.ambiguous_city", message).classed(FaultClass::BadData)
}

fn unavailable(fault: &Fault) -> ToolError {
    let message =
        format!("the forecast could not be had from Open-Meteo ({}); try again later", fault.message);
    ToolError::failed("weather.open_meteo", message).classed(FaultClass::Unavailable)
}

fn no_climate(place: &Place, date: Date) -> ToolError {
    let message = format!(
        "nothing is known of the weather in {} on {date}: no city with averages is near",
        place.label()
    );
    ToolError::failed("weather.no_climate", message).classed(FaultClass::NotFound)
}
