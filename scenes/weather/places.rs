//! From a city's name as somebody says it to the one place that is meant, never to one that only looks like it.

use super::gazetteer::{City, Climate, fold, gazetteer};
use super::own_cities::OwnCity;

/// Beyond this, in km, the climate of the nearest city says nothing.
const TOO_FAR_KM: f64 = 500.0;

/// Somewhere with weather.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The name it is told by: English where the scene knows it.
    pub name: String,
    /// ISO 3166-1, two letters; empty where unknown.
    pub country: String,
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Whether the tenant added it.
    pub added: bool,
    /// The averages that hold for it, with the city they belong to and its distance in km.
    pub climate: Option<(&'static City, &'static Climate, f64)>,
}

impl Place {
    /// Somewhere by name and position, with the climate of the nearest city.
    pub fn at(name: &str, country: &str, latitude: f64, longitude: f64) -> Self {
        let climate = gazetteer().nearest_climate(latitude, longitude).filter(|(_, _, km)| *km <= TOO_FAR_KM);
        let (name, country) = (name.to_owned(), country.to_owned());
        Self { name, country, latitude, longitude, added: false, climate }
    }

    /// `Milan (IT)`.
    pub fn label(&self) -> String {
        if self.country.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.country) }
    }
}

impl From<&'static City> for Place {
    fn from(city: &'static City) -> Self {
        let City { name, country, latitude, longitude, .. } = *city;
        match &city.climate {
            Some(own) => Self {
                name: name.to_owned(),
                country: country.to_owned(),
                latitude,
                longitude,
                added: false,
                climate: Some((city, own, 0.0)),
            },
            None => Self::at(name, country, latitude, longitude),
        }
    }
}

impl From<&OwnCity> for Place {
    fn from(city: &OwnCity) -> Self {
        Self { added: true, ..Self::at(&city.name, &city.country, city.latitude, city.longitude) }
    }
}

/// What a name came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The one place that is meant.
    One(Box<Place>),
    /// Several places have this name.
    Several(Vec<Place>),
    /// None has; these names are near.
    Nowhere(Vec<String>),
}

/// The place called `asked`, among the scene's cities and those the tenant added. A country may follow the
/// name: `Paris, France`, `Paris (FR)`.
pub fn find(asked: &str, own: &[OwnCity]) -> Found {
    let (name, said) = Asked::read(asked);
    let mut places = called(&name, own);
    let country = match said {
        None => None,
        Some(said) => match gazetteer().country(&said) {
            Some(code) => Some(code),
            // What follows the name is no country: nothing is chosen in spite of it.
            None => {
                let whole = called(asked, own);
                if whole.is_empty() {
                    return Found::Nowhere(places.iter().map(Place::label).collect());
                }
                places = whole;
                None
            }
        },
    };
    if let Some(code) = country {
        let all = places.clone();
        places.retain(|place| place.country == code || place.country.is_empty());
        if places.is_empty() {
            return Found::Nowhere(all.iter().map(Place::label).collect());
        }
    }
    match places.len() {
        0 => Found::Nowhere(near(&name, own)),
        1 => Found::One(Box::new(places.remove(0))),
        _ => Found::Several(places),
    }
}

/// A name and what was said after it.
pub struct Asked;

impl Asked {
    /// `Paris, France` and `Paris (FR)` are `Paris` in a country; other names are themselves.
    pub fn read(asked: &str) -> (String, Option<String>) {
        let trimmed = asked.trim().trim_end_matches(')');
        match trimmed.rsplit_once([',', '(']) {
            Some((name, said)) if !fold(name).is_empty() && !fold(said).is_empty() => {
                (name.trim().to_owned(), Some(said.trim().to_owned()))
            }
            _ => (asked.trim().to_owned(), None),
        }
    }
}

fn called(name: &str, own: &[OwnCity]) -> Vec<Place> {
    let folded = fold(name);
    let bundled = gazetteer().named(name).map(Place::from);
    bundled.chain(own.iter().filter(|city| fold(&city.name) == folded).map(Place::from)).collect()
}

fn near(name: &str, own: &[OwnCity]) -> Vec<String> {
    let folded = fold(name);
    let added = own
        .iter()
        .filter(|city| strsim::damerau_levenshtein(&folded, &fold(&city.name)) <= 2)
        .map(|city| Place::from(city).label());
    added.chain(gazetteer().similar(name).into_iter().map(City::label)).take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, country: &str) -> OwnCity {
        OwnCity { name: name.to_owned(), country: country.to_owned(), latitude: 33.66, longitude: -95.55 }
    }

    fn name_of(found: Found) -> String {
        match found {
            Found::One(place) => place.label(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_country_may_follow_the_name() {
        for asked in ["Paris", "Parigi", "Paris, France", "Parigi, Francia", "Paris (FR)"] {
            assert_eq!(name_of(find(asked, &[])), "Paris (FR)", "{asked}");
        }
        assert_eq!(name_of(find("Washington, D.C.", &[])), "Washington (US)");
    }

    #[test]
    fn another_country_or_region_is_not_passed_over() {
        assert_eq!(find("Paris, US", &[]), Found::Nowhere(vec!["Paris (FR)".to_owned()]));
        assert_eq!(find("Paris, Texas", &[]), Found::Nowhere(vec!["Paris (FR)".to_owned()]));
    }

    #[test]
    fn two_cities_of_one_name_are_told_apart_by_their_country() {
        let own = [own("Paris", "US")];
        assert!(matches!(find("Paris", &own), Found::Several(places) if places.len() == 2));
        assert_eq!(name_of(find("Paris, US", &own)), "Paris (US)");
        assert_eq!(name_of(find("Paris, FR", &own)), "Paris (FR)");
    }

    #[test]
    fn a_slip_is_told_and_never_chosen() {
        assert_eq!(find("Millano", &[]), Found::Nowhere(vec!["Milan (IT)".to_owned()]));
    }

    #[test]
    fn a_place_in_the_middle_of_an_ocean_has_no_climate() {
        assert!(Place::at("Point Nemo", "", -48.9, -123.4).climate.is_none());
    }
}
