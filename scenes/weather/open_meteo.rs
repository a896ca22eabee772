//! Forecasts from Open-Meteo over HTTP.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What every result that comes from it says.
pub const SOURCE: &str = "Open-Meteo.com (CC BY 4.0), forecast";
/// Days of a forecast, today included.
pub const DAYS_AHEAD: i64 = 16;
/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it is left alone after it could not be reached.
const REST: Duration = Duration::from_secs(300);
/// More than any of its replies.
const MOST_BYTES: usize = 256 * 1024;

/// Remembers that Open-Meteo could not be reached, so that not every call waits for it.
#[derive(Debug, Default)]
pub struct Memory {
    failed_at: Mutex<Option<Instant>>,
}

impl Memory {
    /// Whether it is worth asking.
    pub fn may_ask(&self) -> bool {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.is_none_or(|at| at.elapsed() >= REST)
    }

    /// Takes note of how a request went.
    pub fn note(&self, reached: bool) {
        let mut failed_at = self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        *failed_at = if reached { None } else { Some(Instant::now()) };
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Whether the server answered at all.
    pub reached: bool,
    /// What went wrong.
    pub message: String,
}

/// One day of a forecast.
#[derive(Debug, Clone, PartialEq)]
pub struct Day {
    /// Which.
    pub date: Date,
    /// °C.
    pub min_c: f64,
    /// °C.
    pub max_c: f64,
    /// Precipitation of the day, in mm.
    pub rain_mm: Option<f64>,
    /// How likely there is precipitation, in percent.
    pub rain_percent: Option<f64>,
    /// The sky, in an English word or two.
    pub sky: Option<&'static str>,
}

/// A place that was found by name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Hit {
    /// In the language asked for.
    pub name: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// ISO 3166-1, two letters.
    #[serde(default)]
    pub country_code: String,
    /// How many live there, where known.
    pub population: Option<f64>,
}

#[derive(Deserialize)]
struct Hits {
    #[serde(default)]
    results: Vec<Hit>,
}

/// The places called `name`, at most five, as Open-Meteo ranks them.
pub async fn places(
    http: &reqwest::Client,
    url: &str,
    name: &str,
    language: &str,
) -> Result<Vec<Hit>, Fault> {
    let asked = [("name", name), ("count", "5"), ("language", language), ("format", "json")];
    get::<Hits>(http, url, &asked).await.map(|hits| hits.results)
}

#[derive(Deserialize)]
struct Reply {
    daily: Daily,
}

#[derive(Deserialize)]
struct Daily {
    time: Vec<String>,
    temperature_2m_min: Vec<Option<f64>>,
    temperature_2m_max: Vec<Option<f64>>,
    #[serde(default)]
    precipitation_sum: Vec<Option<f64>>,
    #[serde(default)]
    precipitation_probability_max: Vec<Option<f64>>,
    #[serde(default)]
    weather_code: Vec<Option<f64>>,
}

/// The days from `first` to `last` at a position; days without temperatures are left out.
pub async fn days(
    http: &reqwest::Client,
    url: &str,
    position: (f64, f64),
    first: Date,
    last: Date,
) -> Result<Vec<Day>, Fault> {
    let (latitude, longitude) = (format!("{:.4}", position.0), format!("{:.4}", position.1));
    let (first, last) = (first.to_string(), last.to_string());
    let asked = [
        ("latitude", latitude.as_str()),
        ("longitude", longitude.as_str()),
        (
            "daily",
            "temperature_2m_min,temperature_2m_max,precipitation_sum,precipitation_probability_max,weather_code",
        ),
        ("timezone", "auto"),
        ("start_date", first.as_str()),
        ("end_date", last.as_str()),
    ];
    let daily = get::<Reply>(http, url, &asked).await?.daily;
    let at = |values: &[Option<f64>], index: usize| values.get(index).copied().flatten();
    let day = |(index, date): (usize, &String)| {
        Some(Day {
            date: date.parse().ok()?,
            min_c: at(&daily.temperature_2m_min, index)?,
            max_c: at(&daily.temperature_2m_max, index)?,
            rain_mm: at(&daily.precipitation_sum, index),
            rain_percent: at(&daily.precipitation_probability_max, index),
            sky: at(&daily.weather_code, index).and_then(sky),
        })
    };
    Ok(daily.time.iter().enumerate().filter_map(day).collect())
}

/// WMO's code of the weather, in words.
fn sky(code: f64) -> Option<&'static str> {
    Some(match code as i64 {
        0 => "clear",
        1 => "mainly clear",
        2 => "partly cloudy",
        3 => "overcast",
        45 | 48 => "fog",
        51..=57 => "drizzle",
        61..=67 => "rain",
        71..=77 => "snow",
        80..=82 => "rain showers",
        85 | 86 => "snow showers",
        95..=99 => "thunderstorm",
        _ => return None,
    })
}

async fn get<T: DeserializeOwned>(
    http: &reqwest::Client,
    url: &str,
    asked: &[(&str, &str)],
) -> Result<T, Fault> {
    let fault = |reached: bool, message: String| Fault { reached, message };
    let url = reqwest::Url::parse_with_params(url, asked)
        .map_err(|error| fault(true, format!("{url:?} is not an address: {error}")))?;
    let host = url.host_str().unwrap_or("Open-Meteo").to_owned();
    let lost = |error: reqwest::Error| {
        let why = if error.is_timeout() {
            "no reply within 2 s".to_owned()
        } else {
            error.without_url().to_string()
        };
        fault(false, format!("{host}: {why}"))
    };
    let mut response = http.get(url).timeout(PATIENCE).send().await.map_err(lost)?;
    let status = response.status();
    if !status.is_success() {
        // The server's own faults and its limits pass; a refusal concerns this request only.
        let reached = !(status.is_server_error() || status.as_u16() == 429);
        return Err(fault(reached, format!("{host} answered {status}")));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lost)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(fault(true, format!("{host} sent more than {MOST_BYTES} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|error| fault(true, format!("{host} sent something else: {error}")))
}
