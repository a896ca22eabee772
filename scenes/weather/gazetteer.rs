//! The cities that come with the scene: their names in many languages, where they are, and their climate.
//!
//! The data are in `data/`; each file says at its top what it holds and where it was taken from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Lines that cannot be read are left out; a test reads every one.
static GAZETTEER: LazyLock<Gazetteer> = LazyLock::new(Gazetteer::read);

/// All that comes with the scene.
pub fn gazetteer() -> &'static Gazetteer {
    &GAZETTEER
}

/// Where the climate averages of a city were taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// National meteorological services, through WMO.
    Wmo,
    /// NASA POWER, through Sunshine Atlas.
    Power,
}

impl Origin {
    /// The sentence that every result carries.
    pub fn source(self) -> &'static str {
        match self {
            Self::Wmo => {
                "WMO World Weather Information Service, climate averages (approximate), not a forecast"
            }
            Self::Power => {
                "NASA POWER 2001-2020 by Sunshine Atlas (CC BY 4.0), climate averages (approximate), not a forecast"
            }
        }
    }
}

/// What a month is like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Month {
    /// Mean of the daily minima, in °C.
    pub min_c: f64,
    /// Mean of the daily maxima, in °C.
    pub max_c: f64,
    /// Precipitation of the whole month, in mm.
    pub rain_mm: u32,
    /// Days with precipitation in the month, where the source gives them.
    pub rainy_days: Option<u32>,
}

/// The climate of a city.
#[derive(Debug, Clone, PartialEq)]
pub struct Climate {
    /// Where it was taken from.
    pub origin: Origin,
    /// The years it was averaged over, such as `1991-2020`; empty where the source gives none.
    pub period: &'static str,
    /// January to December.
    pub months: [Month; 12],
}

/// A city that comes with the scene.
#[derive(Debug, Clone, PartialEq)]
pub struct City {
    /// Its English name.
    pub name: &'static str,
    /// ISO 3166-1, two letters.
    pub country: &'static str,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Its names in other languages.
    pub others: Vec<&'static str>,
    /// Its own averages, where there are any.
    pub climate: Option<Climate>,
}

impl City {
    /// `Milan (IT)`.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.country)
    }
}

/// The cities, and the countries' names.
#[derive(Debug, Default)]
pub struct Gazetteer {
    cities: Vec<City>,
    by_name: BTreeMap<String, BTreeSet<usize>>,
    countries: BTreeMap<String, &'static str>,
}

impl Gazetteer {
    fn read() -> Self {
        let mut all = Self::default();
        for line in lines(include_str!("data/countries.csv")) {
            if let Some((code, names)) = line.split_once('|') {
                all.countries.insert(fold(code), code);
                all.countries.extend(names.split(';').map(|name| (fold(name), code)));
            }
        }
        all.cities.extend(lines(include_str!("data/climate.csv")).filter_map(city_with_climate));
        all.cities.extend(lines(include_str!("data/places.csv")).filter_map(city_without));
        for (index, city) in all.cities.iter().enumerate() {
            for name in std::iter::once(&city.name).chain(&city.others) {
                all.by_name.entry(fold(name)).or_default().insert(index);
            }
        }
        all
    }

    /// All cities.
    pub fn cities(&self) -> &[City] {
        &self.cities
    }

    /// The cities that have this name, whatever its language, case and accents.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &City> {
        self.by_name.get(&fold(name)).into_iter().flatten().filter_map(|index| self.cities.get(*index))
    }

    /// The two letters of a country given by them or by its name in one of five languages.
    pub fn country(&self, given: &str) -> Option<&'static str> {
        self.countries.get(&fold(given)).copied()
    }

    /// The nearest city with averages, and how far it is in km.
    pub fn nearest_climate(&self, latitude: f64, longitude: f64) -> Option<(&City, &Climate, f64)> {
        self.cities
            .iter()
            .filter_map(|city| {
                let climate = city.climate.as_ref()?;
                let km = distance_km((latitude, longitude), (city.latitude, city.longitude));
                Some((city, climate, km))
            })
            .min_by(|one, other| one.2.total_cmp(&other.2))
    }

    /// Up to three cities whose names are nearly `name`, nearest first: what may have been meant.
    pub fn similar(&self, name: &str) -> Vec<&City> {
        let asked = fold(name);
        let slips = if asked.chars().count() < 5 { 1 } else { 2 };
        let mut near: Vec<(usize, &City)> = self
            .by_name
            .iter()
            .map(|(known, indexes)| (strsim::damerau_levenshtein(&asked, known), indexes))
            .filter(|(distance, _)| *distance <= slips)
            .flat_map(|(distance, indexes)| {
                indexes.iter().filter_map(move |index| self.cities.get(*index).map(|city| (distance, city)))
            })
            .collect();
        near.sort_by_key(|(distance, city)| (*distance, city.name));
        let mut seen = BTreeSet::new();
        near.into_iter().map(|(_, city)| city).filter(|city| seen.insert(city.label())).take(3).collect()
    }
}

/// A name as it is compared: no accents, no case, no punctuation, one space between words.
pub fn fold(name: &str) -> String {
    let ascii = deunicode::deunicode(name).to_lowercase();
    let plain: String = ascii
        .chars()
        .filter(|c| !matches!(c, '\'' | '`'))
        .map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The way over the ground, in km, on a sphere of the Earth's mean radius.
pub fn distance_km(from: (f64, f64), to: (f64, f64)) -> f64 {
    let (north, east) = ((to.0 - from.0).to_radians(), (to.1 - from.1).to_radians());
    let half = (north / 2.0).sin().powi(2)
        + from.0.to_radians().cos() * to.0.to_radians().cos() * (east / 2.0).sin().powi(2);
    2.0 * 6371.0 * half.sqrt().min(1.0).asin()
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn others(text: &'static str) -> Vec<&'static str> {
    text.split(';').filter(|name| !name.is_empty()).collect()
}

fn city_with_climate(line: &'static str) -> Option<City> {
    let [name, country, latitude, longitude, origin, period, min, max, rain, days, names] =
        line.split('|').collect::<Vec<_>>().try_into().ok()?;
    let origin = match origin {
        "wmo" => Origin::Wmo,
        "power" => Origin::Power,
        _ => return None,
    };
    let (min, max, rain) = (series(min)?, series(max)?, series(rain)?);
    let days = if days.is_empty() { None } else { Some(series(days)?) };
    let months = std::array::from_fn(|month| Month {
        min_c: min[month],
        max_c: max[month],
        rain_mm: rain[month] as u32,
        rainy_days: days.map(|days| days[month] as u32),
    });
    Some(City {
        name,
        country,
        latitude: latitude.parse().ok()?,
        longitude: longitude.parse().ok()?,
        others: others(names),
        climate: Some(Climate { origin, period, months }),
    })
}

fn city_without(line: &'static str) -> Option<City> {
    let [name, country, latitude, longitude, names] = line.split('|').collect::<Vec<_>>().try_into().ok()?;
    Some(City {
        name,
        country,
        latitude: latitude.parse().ok()?,
        longitude: longitude.parse().ok()?,
        others: others(names),
        climate: None,
    })
}

fn series(text: &str) -> Option<[f64; 12]> {
    let values: Vec<f64> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    values.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &str) -> &'static City {
        let found: Vec<_> = gazetteer().named(name).collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0]
    }

    #[test]
    fn every_line_of_the_data_is_read() {
        let written =
            lines(include_str!("data/climate.csv")).count() + lines(include_str!("data/places.csv")).count();
        assert_eq!(gazetteer().cities().len(), written);
    }

    #[test]
    fn at_least_a_hundred_cities_and_twenty_italian_ones_have_averages() {
        let with: Vec<_> = gazetteer().cities().iter().filter(|city| city.climate.is_some()).collect();
        assert!(with.len() >= 100, "{}", with.len());
        assert!(with.iter().filter(|city| city.country == "IT").count() >= 20);
    }

    #[test]
    fn averages_are_plausible_in_every_month_of_every_city() {
        for city in gazetteer().cities() {
            let Some(climate) = &city.climate else { continue };
            assert!(
                (-90.0..=90.0).contains(&city.latitude) && (-180.0..=180.0).contains(&city.longitude),
                "{city:?}"
            );
            for month in climate.months {
                assert!(month.min_c <= month.max_c, "{}: {month:?}", city.name);
                assert!(month.min_c >= -60.0 && month.max_c <= 55.0, "{}: {month:?}", city.name);
                assert!(month.rain_mm < 1500 && month.rainy_days.is_none_or(|days| days <= 31), "{month:?}");
            }
            let mean = |month: &Month| (month.min_c + month.max_c) / 2.0;
            let (january, july) = (mean(&climate.months[0]), mean(&climate.months[6]));
            if city.latitude > 30.0 {
                assert!(january < july, "{} is north of the tropics", city.name);
            } else if city.latitude < -30.0 {
                assert!(january > july, "{} is south of the tropics", city.name);
            }
        }
    }

    #[test]
    fn cities_are_known_by_their_names_in_other_languages() {
        for (asked, name) in [
            ("Milano", "Milan"),
            ("MILANO", "Milan"),
            ("milán", "Milan"),
            ("Mailand", "Milan"),
            ("Roma", "Rome"),
            ("Napoli", "Naples"),
            ("Firenze", "Florence"),
            ("Venezia", "Venice"),
            ("Torino", "Turin"),
            ("Genova", "Genoa"),
            ("Londra", "London"),
            ("Londres", "London"),
            ("Parigi", "Paris"),
            ("Monaco di Baviera", "Munich"),
            ("München", "Munich"),
            ("Muenchen", "Munich"),
            ("Berlino", "Berlin"),
            ("Vienna", "Vienna"),
            ("Wien", "Vienna"),
            ("Praga", "Prague"),
            ("Varsavia", "Warsaw"),
            ("Mosca", "Moscow"),
            ("Москва", "Moscow"),
            ("Bruxelles", "Brussels"),
            ("Lisbona", "Lisbon"),
            ("Atene", "Athens"),
            ("Il Cairo", "Cairo"),
            ("Pechino", "Beijing"),
            ("Nuova York", "New York"),
            ("Città del Messico", "Mexico City"),
            ("San Paolo", "São Paulo"),
            ("Zurigo", "Zurich"),
            ("Colonia", "Cologne"),
            ("Amburgo", "Hamburg"),
            ("Francoforte", "Frankfurt"),
            ("Stoccarda", "Stuttgart"),
            ("Norimberga", "Nuremberg"),
            ("Dresda", "Dresden"),
            ("Marsiglia", "Marseille"),
            ("Lione", "Lyon"),
            ("Nizza", "Nice"),
            ("Strasburgo", "Strasbourg"),
            ("Tolosa", "Toulouse"),
            ("Edimburgo", "Edinburgh"),
            ("Stoccolma", "Stockholm"),
            ("Copenaghen", "Copenhagen"),
            ("Dublino", "Dublin"),
            ("Bucarest", "Bucharest"),
            ("Gerusalemme", "Jerusalem"),
            ("Algeri", "Algiers"),
            ("Seul", "Seoul"),
            ("Nuova Delhi", "Delhi"),
            ("Padova", "Padua"),
            ("L'Aia", "The Hague"),
        ] {
            assert_eq!(only(asked).name, name, "{asked}");
        }
    }

    #[test]
    fn a_small_slip_is_suggested_and_nonsense_is_not() {
        let similar: Vec<_> = gazetteer().similar("Millano").iter().map(|city| city.label()).collect();
        assert_eq!(similar.first().map(String::as_str), Some("Milan (IT)"));
        assert!(gazetteer().similar("Xyzzyville").is_empty());
    }

    #[test]
    fn countries_are_known_by_code_and_by_name() {
        for given in ["it", "IT", "Italia", "Italy", "Italien"] {
            assert_eq!(gazetteer().country(given), Some("IT"));
        }
        assert_eq!(gazetteer().country("Lombardia"), None);
    }

    #[test]
    fn a_town_takes_the_climate_of_the_nearest_city() {
        let monza = only("Monza");
        let (city, _, km) = gazetteer().nearest_climate(monza.latitude, monza.longitude).unwrap();
        assert_eq!((city.name, km.round()), ("Milan", 15.0));
    }
}
