//! `depends_on_step`: parsed from null, a number or a list of numbers; written in the shortest form.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The numbers of the steps that a step depends on, in the order given, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependsOn(Vec<u32>);

impl DependsOn {
    /// No dependency: the step may start at once.
    pub fn none() -> Self {
        Self::default()
    }

    /// The numbers, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Returns whether `step` is among the dependencies.
    pub fn contains(&self, step: u32) -> bool {
        self.0.contains(&step)
    }
}

impl FromIterator<u32> for DependsOn {
    fn from_iter<T: IntoIterator<Item = u32>>(iter: T) -> Self {
        let mut numbers = Vec::new();
        for number in iter {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        Self(numbers)
    }
}

impl Serialize for DependsOn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_none(),
            [one] => serializer.serialize_u32(*one),
            many => many.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DependsOn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DependsOnVisitor;

        impl<'de> Visitor<'de> for DependsOnVisitor {
            type Value = DependsOn;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("null, a step number or a list of step numbers")
            }

            fn visit_unit<E: Error>(self) -> Result<DependsOn, E> {
                Ok(DependsOn::none())
            }

            fn visit_none<E: Error>(self) -> Result<DependsOn, E> {
                Ok(DependsOn::none())
            }

            fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<DependsOn, D::Error> {
                d.deserialize_any(self)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<DependsOn, E> {
                match u32::try_from(number) {
                    Ok(number) => Ok(DependsOn(vec![number])),
                    Err(_) => Err(E::custom(format!("{number} is not a step number"))),
                }
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<DependsOn, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::custom(format!("{number} is not a step number"))),
                }
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<DependsOn, E> {
                // Some models write 1.0; a number with a fraction is not a step number.
                if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
                    self.visit_u64(number as u64)
                } else {
                    Err(E::custom(format!("{number} is not a step number")))
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<DependsOn, A::Error> {
                let mut numbers = Vec::new();
                while let Some(inner) = seq.next_element::<DependsOn>()? {
                    numbers.extend(inner.0);
                }
                Ok(numbers.into_iter().collect())
            }
        }

        deserializer.deserialize_any(DependsOnVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<DependsOn, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn null_number_and_list_are_parsed_and_written_in_shortest_form() {
        for (given, written) in
            [("null", "null"), ("[]", "null"), ("3", "3"), ("2.0", "2"), ("[3]", "3"), ("[1,2,1]", "[1,2]")]
        {
            let read = read(given).expect(given);
            assert_eq!(serde_json::to_string(&read).expect(given), written);
        }
    }

    #[test]
    fn invalid_step_numbers_are_rejected_with_a_reason() {
        for given in ["-1", "1.5", "\"one\"", "{}", "[[null, \"x\"]]"] {
            assert!(read(given).is_err(), "{given} was read");
        }
    }
}
