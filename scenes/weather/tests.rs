//! The tools as a scene's model calls them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proscenium::run::{RunId, SessionId, TenantId};
use proscenium::tools::{
    NativeTools, Principal, RunDocuments, SceneStore, ToolContext, ToolError, ToolErrorKind,
};
use serde_json::{Value, json};

const SCENE: &str = include_str!("scene.toml");

async fn context(settings: Value) -> ToolContext {
    let pool =
        sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    sqlx::raw_sql(include_str!("schema.sql")).execute(&pool).await.unwrap();
    ToolContext {
        principal: Principal { tenant: TenantId::new("acme").unwrap(), user: "keysersoze".to_owned() },
        now: "2026-05-04T09:00:00+02:00[Europe/Rome]".parse().unwrap(),
        language: Some("it".to_owned()),
        session: SessionId::new("s1").unwrap(),
        run: "01900000-0000-7000-8000-000000000000".parse::<RunId>().unwrap(),
        step: 1,
        idempotency_key: Some("key-1".to_owned()),
        store: SceneStore::new(pool),
        documents: RunDocuments::default(),
        http: reqwest::Client::new(),
        interpreter: None,
        settings,
        cancelled: Default::default(),
        trace_parent: None,
    }
}

async fn bundled() -> ToolContext {
    context(json!({ "source": "bundled" })).await
}

async fn call(context: &ToolContext, tool: &str, arguments: Value) -> Result<Value, ToolError> {
    super::register(NativeTools::new()).get(tool).unwrap().call(context.clone(), arguments).await
}

/// Serves the same reply to every request and counts them.
fn serve(status: &'static str, body: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let served = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                request.push(byte[0]);
            }
            served.fetch_add(1, Ordering::SeqCst);
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    (address, count)
}

/// An address where nobody listens.
fn nobody() -> String {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    format!("http://{address}/v1")
}

fn daily() -> String {
    json!({ "daily": {
        "time": ["2026-05-04", "2026-05-05"],
        "temperature_2m_min": [11.4, 12.0], "temperature_2m_max": [21.6, 23.0],
        "precipitation_sum": [0.34, null], "precipitation_probability_max": [20, 5], "weather_code": [61, 0],
    }})
    .to_string()
}

#[tokio::test]
async fn milano_today_is_told_by_the_averages_of_its_month() {
    let told = call(&bundled().await, "weather.forecast", json!({ "city": "Milano" })).await.unwrap();
    assert_eq!(
        told,
        json!({
            "city": "Milan", "asked_as": "Milano", "country": "IT", "date": "2026-05-04",
            "min_c": 12, "max_c": 22, "rain_mm": 96, "rainy_days": 9, "rain_of": "month", "approximate": true,
            "source": "WMO World Weather Information Service, climate averages 1971-2000 (approximate), not a forecast",
        })
    );
}

#[tokio::test]
async fn several_days_are_told_one_by_one_and_across_months() {
    let asked = json!({ "city": "Roma", "date": "2026-05-31", "days": 2 });
    let told = call(&bundled().await, "weather.forecast", asked).await.unwrap();
    let dates: Vec<_> = told["days"].as_array().unwrap().iter().map(|day| day["date"].clone()).collect();
    assert_eq!(dates, ["2026-05-31", "2026-06-01"]);
    assert_ne!(told["days"][0]["max_c"], told["days"][1]["max_c"]);
    assert_eq!(told["date"], "2026-05-31");
}

#[tokio::test]
async fn past_days_are_told_by_averages_too() {
    let asked = json!({ "city": "London", "date": "2020-01-10" });
    let told = call(&bundled().await, "weather.forecast", asked).await.unwrap();
    assert_eq!((&told["date"], &told["approximate"]), (&json!("2020-01-10"), &json!(true)));
}

#[tokio::test]
async fn what_is_no_date_or_too_many_days_is_refused() {
    let context = bundled().await;
    for (asked, code) in [
        (json!({ "city": "Milan", "date": "domani" }), "weather.bad_date"),
        (json!({ "city": "Milan", "date": "2026-02-30" }), "weather.bad_date"),
        (json!({ "city": "Milan", "days": 8 }), "weather.bad_days"),
        (json!({ "city": "Milan", "days": 0 }), "weather.bad_days"),
        (json!({ "city": "Milan", "date": "9999-12-31", "days": 2 }), "weather.bad_date"),
        (json!({ "city": "  " }), "weather.no_city"),
    ] {
        let error = call(&context, "weather.forecast", asked).await.unwrap_err();
        assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Refused, code));
    }
}

#[tokio::test]
async fn an_unknown_city_is_refused_with_what_may_have_been_meant() {
    let error = call(&bundled().await, "weather.forecast", json!({ "city": "Millano" })).await.unwrap_err();
    assert_eq!(error.code, "weather.unknown_city");
    assert!(
        error.message.contains("Did you mean Milan (IT)?") && error.message.contains("AddCity"),
        "{error}"
    );
}

#[tokio::test]
async fn a_town_is_told_with_the_city_whose_averages_hold_for_it() {
    let told = call(&bundled().await, "weather.forecast", json!({ "city": "Monza" })).await.unwrap();
    assert_eq!(
        (&told["city"], &told["climate_of"], &told["distance_km"]),
        (&json!("Monza"), &json!("Milan"), &json!(15))
    );
}

#[tokio::test]
async fn a_city_is_added_once_under_its_key_and_only_for_its_tenant() {
    let mut context = bundled().await;
    let cuneo = json!({ "name": "Cuneo", "country": "Italia", "latitude": 44.39, "longitude": 7.55 });
    let first = call(&context, "weather.add_city", cuneo.clone()).await.unwrap();
    assert_eq!(
        (&first["city"], &first["country"], &first["climate_of"]),
        (&json!("Cuneo"), &json!("IT"), &json!("Turin"))
    );
    assert_eq!(call(&context, "weather.add_city", cuneo.clone()).await.unwrap(), first);

    let told = call(&context, "weather.forecast", json!({ "city": "cuneo" })).await.unwrap();
    assert_eq!((&told["city"], &told["climate_of"]), (&json!("Cuneo"), &json!("Turin")));
    let list = call(&context, "weather.list_cities", json!({ "country": "IT" })).await.unwrap();
    assert_eq!(list["added"], json!(["Cuneo (IT)"]));

    context.idempotency_key = Some("key-2".to_owned());
    assert_eq!(call(&context, "weather.add_city", cuneo).await.unwrap_err().code, "weather.city_known");

    context.principal.tenant = TenantId::new("other").unwrap();
    let error = call(&context, "weather.forecast", json!({ "city": "Cuneo" })).await.unwrap_err();
    assert_eq!(error.code, "weather.unknown_city");
}

#[tokio::test]
async fn what_cannot_be_added_is_refused() {
    let context = bundled().await;
    for (city, code) in [
        (json!({ "name": "Milano", "latitude": 45.46, "longitude": 9.19 }), "weather.city_known"),
        (
            json!({ "name": "Milan", "country": "IT", "latitude": 40.0, "longitude": 9.19 }),
            "weather.city_known",
        ),
        (json!({ "name": "Nowhere", "latitude": 95.0, "longitude": 0.0 }), "weather.bad_position"),
        (
            json!({ "name": "Nowhere", "country": "Atlantis", "latitude": 1.0, "longitude": 0.0 }),
            "weather.unknown_country",
        ),
        (json!({ "name": "!", "latitude": 1.0, "longitude": 0.0 }), "weather.no_city"),
    ] {
        assert_eq!(call(&context, "weather.add_city", city).await.unwrap_err().code, code);
    }
}

#[tokio::test]
async fn whether_a_city_exists_is_told_and_not_refused() {
    let context = bundled().await;
    let known = call(&context, "weather.city_exists", json!({ "city": "Monaco di Baviera" })).await.unwrap();
    assert_eq!((&known["exists"], &known["city"]), (&json!(true), &json!("Munich")));
    let unknown = call(&context, "weather.city_exists", json!({ "city": "Atlantide" })).await.unwrap();
    assert_eq!(unknown["exists"], json!(false));
}

#[tokio::test]
async fn the_list_of_cities_fits_into_a_result() {
    let list = call(&bundled().await, "weather.list_cities", json!({})).await.unwrap();
    assert!(list["count"].as_u64().unwrap() >= 100 && list.to_string().len() < 16_384);
}

#[tokio::test]
async fn open_meteo_forecasts_its_days_and_averages_tell_the_rest() {
    let (url, _) = serve("200 OK", daily());
    let context = context(json!({ "source": "open-meteo", "forecast_url": url })).await;
    let told = call(&context, "weather.forecast", json!({ "city": "Milano" })).await.unwrap();
    assert_eq!(
        told,
        json!({
            "city": "Milan", "asked_as": "Milano", "country": "IT", "date": "2026-05-04", "min_c": 11, "max_c": 22,
            "rain_mm": 0.3, "rain_percent": 20, "rain_of": "day", "sky": "rain", "approximate": false,
            "source": "Open-Meteo.com (CC BY 4.0), forecast",
        })
    );
    let later =
        call(&context, "weather.forecast", json!({ "city": "Milano", "date": "2026-07-01" })).await.unwrap();
    assert_eq!(later["approximate"], json!(true));
    assert!(later["note"].as_str().unwrap().contains("16 days"), "{later}");
}

#[tokio::test]
async fn without_a_network_auto_tells_averages_and_open_meteo_fails() {
    let auto = context(json!({ "source": "auto", "forecast_url": nobody() })).await;
    let told = call(&auto, "weather.forecast", json!({ "city": "Milano" })).await.unwrap();
    assert_eq!(told["approximate"], json!(true));
    assert!(told["note"].as_str().unwrap().contains("could not be reached"), "{told}");

    let only = context(json!({ "source": "open-meteo", "forecast_url": nobody() })).await;
    let error = call(&only, "weather.forecast", json!({ "city": "Milano" })).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "weather.open_meteo"));
}

#[tokio::test]
async fn after_a_failure_it_is_left_alone_for_a_while() {
    let (url, asked) = serve("503 Service Unavailable", String::new());
    let context = context(json!({ "source": "auto", "forecast_url": url })).await;
    let tools = super::register(NativeTools::new());
    for _ in 0..3 {
        let told =
            tools.get("weather.forecast").unwrap().call(context.clone(), json!({ "city": "Milano" })).await;
        assert_eq!(told.unwrap()["approximate"], json!(true));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_city_that_only_open_meteo_knows_is_found_by_its_exact_name() {
    let hits = json!({ "results": [
        { "name": "Tromsø", "latitude": 69.65, "longitude": 18.96, "country_code": "NO", "population": 64448 },
        { "name": "Tromsdalen", "latitude": 69.64, "longitude": 19.0, "country_code": "NO" },
    ]});
    let (geocoding, _) = serve("200 OK", hits.to_string());
    let (forecast, _) = serve("200 OK", daily());
    let context = context(json!({ "geocoding_url": geocoding, "forecast_url": forecast })).await;
    let told = call(&context, "weather.forecast", json!({ "city": "Tromso" })).await.unwrap();
    assert_eq!(
        (&told["city"], &told["country"], &told["max_c"]),
        (&json!("Tromsø"), &json!("NO"), &json!(22))
    );
    let error = call(&context, "weather.forecast", json!({ "city": "Tromsoe City" })).await.unwrap_err();
    assert!(error.message.contains("Tromsø (NO)"), "{error}");
}

#[tokio::test]
async fn settings_that_do_not_fit_are_named() {
    let context = context(json!({ "source": "crystal-ball" })).await;
    let error = call(&context, "weather.forecast", json!({ "city": "Milano" })).await.unwrap_err();
    assert_eq!((error.kind, error.code.as_str()), (ToolErrorKind::Failed, "weather.settings"));
}

#[test]
fn the_scene_names_exactly_the_tools_that_are_registered() {
    let scene: toml::Value = toml::from_str(SCENE).unwrap();
    let mut named: Vec<_> =
        scene["tools"].as_array().unwrap().iter().map(|t| t["native"].as_str().unwrap()).collect();
    named.sort_unstable();
    let tools = super::register(NativeTools::new());
    assert_eq!(named, tools.names().collect::<Vec<_>>());
    let offered: Vec<_> =
        scene["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    for example in scene["examples"].as_array().unwrap() {
        assert!(offered.contains(&example["tool"].as_str().unwrap()), "{example}");
    }
}

/// Renders a tool's sentence in every language, with nothing undefined allowed.
fn sentences(tool: &str, result: &Value) -> Vec<String> {
    let scene: toml::Value = toml::from_str(SCENE).unwrap();
    let say =
        scene["tools"].as_array().unwrap().iter().find(|t| t["name"].as_str() == Some(tool)).unwrap()["say"]
            .clone();
    let mut templates = minijinja::Environment::new();
    templates.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    templates.add_filter("day", |date: String| date);
    let languages = ["it", "en", "fr", "de", "es"];
    assert_eq!(say.as_table().unwrap().len(), languages.len());
    languages.map(|language| templates.render_str(say[language].as_str().unwrap(), result).unwrap()).to_vec()
}

#[tokio::test]
async fn results_are_told_in_five_languages() {
    let context = bundled().await;
    let milano = call(&context, "weather.forecast", json!({ "city": "Milano" })).await.unwrap();
    let told = sentences("WeatherForecast_Get", &milano);
    assert_eq!(
        told[0],
        "Milano (Milan): 2026-05-04 da 12 a 22 °C, 96 mm di pioggia in tutto il mese. Sono medie climatiche \
         approssimative, non previsioni. Fonte: WMO World Weather Information Service, climate averages 1971-2000 \
         (approximate), not a forecast."
    );
    let monza = call(&context, "weather.forecast", json!({ "city": "Monza", "days": 3 })).await.unwrap();
    assert!(sentences("WeatherForecast_Get", &monza)[1].contains("(values of Milan, 15 km away)"));
    let cuneo = json!({ "name": "Cuneo", "latitude": 44.39, "longitude": 7.55 });
    let added = call(&context, "weather.add_city", cuneo).await.unwrap();
    assert!(sentences("AddCity", &added)[0].starts_with("Ho aggiunto la città Cuneo; "));
    for city in ["Milano", "Atlantide"] {
        let exists = call(&context, "weather.city_exists", json!({ "city": city })).await.unwrap();
        assert!(sentences("CityExists", &exists).iter().all(|sentence| sentence.contains(city)));
    }
    let list = call(&context, "weather.list_cities", json!({ "country": "PT" })).await.unwrap();
    assert!(sentences("ListCities", &list)[0].contains("Lisbon (PT)"));
}
