//! Interpretation: the shape of data as a model may see it, and the value that a mapping of places makes of the data.
//!
//! **Invariant:** a mapping has no values of its own. Every value that it makes is copied from the data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest data, in bytes of JSON, about which a model is asked, and the largest value that a mapping makes of it.
pub const MAX_MAPPED_BYTES: usize = 64 * 1024;

/// Maximum number of places of a mapping.
pub const MAX_MAPPED_PLACES: usize = 64;

const MAX_SHAPE_PLACES: usize = 160;

const MAX_SHAPE_BYTES: usize = 8 * 1024;

/// Maximum number of names of one object in a shape.
const MAX_SHAPE_NAMES: usize = 32;

/// The longest name in a shape, in characters.
const MAX_NAME: usize = 40;

/// Maximum number of names in one place.
const MAX_SEGMENTS: usize = 12;

const MAX_PLACE_BYTES: usize = 400;

/// The deepest value that a mapping makes.
const MAX_DEPTH: usize = 32;

/// Where a value of the expected result comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedPlace {
    /// A place of the expected result: a JSON Pointer in which `*` stands for every element of a list.
    pub to: String,
    /// The place of the data whose value is copied, with as many `*`.
    pub from: String,
}

/// A problem of a mapping: a code and a message, which names places as they were written and no value of the data.
pub type MappingProblem = (&'static str, String);

/// A part of a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    /// Every element of a list.
    Each,
    /// The field of an object, or `0` for the only element of a list.
    Name(String),
}

/// The shape of data: a line for each place, with the JSON types of its values there. It has neither values nor counts;
/// elements of a list are one place. Names that look like values, and everything beyond the bounds, are left out
/// without a trace.
pub fn shape(data: &Value) -> String {
    let mut places = Vec::new();
    add_shape(String::new(), &[data], 0, &mut places);
    let mut bytes = 0;
    let fitting = places.iter().take(MAX_SHAPE_PLACES).take_while(|line| {
        bytes += line.len() + 1;
        bytes <= MAX_SHAPE_BYTES
    });
    fitting.map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Adds the lines of `values`, which all are at one place.
fn add_shape(place: String, values: &[&Value], depth: usize, lines: &mut Vec<String>) {
    if lines.len() >= MAX_SHAPE_PLACES || values.is_empty() {
        return;
    }
    let types: BTreeSet<&str> = values.iter().map(|value| json_type(value)).collect();
    let types: Vec<&str> = types.into_iter().collect();
    lines.push(format!("{}: {}", if place.is_empty() { "\"\"" } else { &place }, types.join(" or ")));
    if depth >= MAX_SEGMENTS {
        return;
    }
    let elements: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    add_shape(format!("{place}/*"), &elements, depth + 1, lines);
    let mut fields: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for (name, value) in values.iter().filter_map(|value| value.as_object()).flatten() {
        if is_plain_name(name) {
            fields.entry(name).or_default().push(value);
        }
    }
    for (name, values) in fields.into_iter().take(MAX_SHAPE_NAMES) {
        add_shape(format!("{place}/{name}"), &values, depth + 1, lines);
    }
}

/// Whether a name looks like one that a programmer gave: a letter, then letters, digits, `_` and `-`.
fn is_plain_name(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    begins && name.len() <= MAX_NAME && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The value that `mapping` makes of `data`.
///
/// # Errors
/// Each problem.
pub fn map_data(mapping: &[MappedPlace], data: &Value) -> Result<Value, Vec<MappingProblem>> {
    if mapping.len() > MAX_MAPPED_PLACES {
        return Err(vec![("mapping.too_many", format!("use at most {MAX_MAPPED_PLACES} places"))]);
    }
    let mut problems = Vec::new();
    let mut paths = Vec::new();
    for (index, place) in mapping.iter().enumerate() {
        match path_pair(place) {
            Ok((to, from)) => paths.push(Path { index, to, from, at: Some(data) }),
            Err(problem) => problems.push(problem),
        }
    }
    let mut build = Build { mapping, found: vec![false; mapping.len()], problems, left: MAX_MAPPED_BYTES };
    let value = if build.problems.is_empty() { build.value(paths, 0) } else { None };
    if build.problems.is_empty() {
        for (place, _) in mapping.iter().zip(&build.found).filter(|(_, found)| !**found) {
            let message = format!("the data has nothing at {}", place.from);
            build.problems.push(("mapping.unknown_place", message));
        }
    }
    match value {
        Some(value) if build.problems.is_empty() => Ok(value),
        _ => {
            if build.problems.is_empty() {
                build.problems.push(("mapping.empty", "the mapping has no place".to_owned()));
            }
            build.problems.dedup();
            Err(build.problems)
        }
    }
}

/// The parts of a place.
type Segments = Vec<Segment>;

/// The parts of both places.
fn path_pair(place: &MappedPlace) -> Result<(Segments, Segments), MappingProblem> {
    let (to, from) = (segments(&place.to)?, segments(&place.from)?);
    let count = |path: &[Segment]| path.iter().filter(|segment| **segment == Segment::Each).count();
    if count(&to) != count(&from) {
        let message =
            format!("{} and {} must have the same number of *", short(&place.to), short(&place.from));
        return Err(("mapping.lists", message));
    }
    Ok((to, from))
}

fn segments(place: &str) -> Result<Vec<Segment>, MappingProblem> {
    if place.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |why: &str| Err(("mapping.pointer", format!("{} {why}", short(place))));
    let Some(rest) = place.strip_prefix('/') else { return wrong("is no JSON Pointer: begin with /") };
    if place.len() > MAX_PLACE_BYTES || rest.split('/').count() > MAX_SEGMENTS {
        return wrong("is too long");
    }
    Ok(rest
        .split('/')
        .map(|part| match part {
            "*" => Segment::Each,
            name => Segment::Name(name.replace("~1", "/").replace("~0", "~")),
        })
        .collect())
}

/// A place as it was written, cut.
fn short(place: &str) -> String {
    place.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// A place of the mapping, below the part of the value that is being made.
#[derive(Clone)]
struct Path<'d> {
    /// Its place in the mapping.
    index: usize,
    to: Vec<Segment>,
    from: Vec<Segment>,
    /// Where `from` begins; absent where the data has nothing there.
    at: Option<&'d Value>,
}

struct Build<'m> {
    mapping: &'m [MappedPlace],
    /// Whether the data has something at each place.
    found: Vec<bool>,
    problems: Vec<MappingProblem>,
    /// How many more bytes may be copied.
    left: usize,
}

impl Build<'_> {
    /// The part of the value in which `paths` end; `None` if the data has nothing for it.
    fn value(&mut self, paths: Vec<Path<'_>>, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || self.problems.len() > MAX_MAPPED_PLACES {
            return None;
        }
        let ends = paths.iter().filter(|path| path.to.is_empty()).count();
        let lists = paths.iter().filter(|path| path.to.first() == Some(&Segment::Each)).count();
        if (ends > 0 && paths.len() > 1) || (lists > 0 && lists < paths.len()) {
            let named = paths.iter().take(2).map(|path| short(&self.mapping[path.index].to));
            let message = format!("{} are not two different places", named.collect::<Vec<_>>().join(" and "));
            self.problems.push(("mapping.overlap", message));
            return None;
        }
        match (ends, lists) {
            (1.., _) => paths.first().and_then(|path| self.copy(path, depth)),
            (_, 1..) => self.list(paths, depth),
            _ => self.object(paths, depth),
        }
    }

    /// The value of the data where a path ends.
    fn copy(&mut self, path: &Path<'_>, depth: usize) -> Option<Value> {
        let value = self.resolve(path.index, path.at?, &path.from)?;
        self.found[path.index] = true;
        let size = size_within(value, self.left, MAX_DEPTH.saturating_sub(depth));
        let Some(size) = size else {
            let max = MAX_MAPPED_BYTES / 1024;
            self.problems
                .push(("mapping.too_large", format!("the result is larger than {max} KiB or too deep")));
            self.left = 0;
            return None;
        };
        self.left -= size;
        Some(value.clone())
    }

    /// The value at `from`, which has no `*`.
    fn resolve<'d>(&mut self, index: usize, at: &'d Value, from: &[Segment]) -> Option<&'d Value> {
        from.iter().try_fold(at, |value, segment| match (value, segment) {
            (Value::Object(map), Segment::Name(name)) => map.get(name),
            (Value::Array(list), Segment::Name(name)) if name == "0" => {
                if list.len() > 1 {
                    let place = &self.mapping[index].from;
                    let message =
                        format!("{} takes one element of a list: use * for every element", short(place));
                    self.problems.push(("mapping.element", message));
                    return None;
                }
                list.first()
            }
            _ => None,
        })
    }

    /// A list: its elements are made of the elements of the data's lists, which have one length.
    fn list(&mut self, paths: Vec<Path<'_>>, depth: usize) -> Option<Value> {
        let mut sources = Vec::new();
        for path in &paths {
            let each = path.from.iter().position(|segment| *segment == Segment::Each)?;
            let (before, after) = path.from.split_at(each);
            let list = path.at.and_then(|at| self.resolve(path.index, at, before)).and_then(Value::as_array);
            // An empty list has what its elements would have.
            self.found[path.index] |= list.is_some_and(Vec::is_empty);
            sources.push((path, list, after.get(1..).unwrap_or_default()));
        }
        let lengths: BTreeSet<usize> = sources.iter().filter_map(|(_, list, _)| list.map(Vec::len)).collect();
        if lengths.len() > 1 {
            let named = paths.iter().take(2).map(|path| short(&self.mapping[path.index].from));
            let message = format!(
                "the lists of {} do not have the same length, so their elements do not belong together",
                named.collect::<Vec<_>>().join(" and ")
            );
            self.problems.push(("mapping.lengths", message));
            return None;
        }
        let length = lengths.first().copied()?;
        let mut elements = Vec::new();
        for element in 0..length {
            let below = sources.iter().map(|(path, list, rest)| Path {
                index: path.index,
                to: path.to.get(1..).unwrap_or_default().to_vec(),
                from: rest.to_vec(),
                at: list.and_then(|list| list.get(element)),
            });
            let made = self.value(below.collect(), depth + 1);
            if !self.problems.is_empty() {
                return None;
            }
            let Some(made) = made else {
                // Without it, the other elements would change their places.
                let named =
                    paths.first().map(|path| short(&self.mapping[path.index].from)).unwrap_or_default();
                self.problems
                    .push(("mapping.missing", format!("not every element has something at {named}")));
                return None;
            };
            self.left = self.left.saturating_sub(2);
            elements.push(made);
        }
        Some(Value::Array(elements))
    }

    fn object(&mut self, paths: Vec<Path<'_>>, depth: usize) -> Option<Value> {
        let mut fields: BTreeMap<Segment, Vec<Path<'_>>> = BTreeMap::new();
        for mut path in paths {
            if path.to.is_empty() {
                continue;
            }
            let first = path.to.remove(0);
            fields.entry(first).or_default().push(path);
        }
        let mut object = Map::new();
        for (segment, paths) in fields {
            let Segment::Name(name) = segment else { continue };
            if let Some(value) = self.value(paths, depth + 1) {
                self.left = self.left.saturating_sub(name.len() + 4);
                object.insert(name, value);
            }
        }
        (!object.is_empty()).then_some(Value::Object(object))
    }
}

/// The size of a value in bytes of JSON, about; `None` if it is larger than `max` or deeper than `depth`.
fn size_within(value: &Value, max: usize, depth: usize) -> Option<usize> {
    let own = match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len() + 1,
        Value::String(text) => text.len() + 3,
        Value::Array(list) => {
            let below = depth.checked_sub(1)?;
            list.iter().try_fold(2, |sum, one| Some(sum + size_within(one, max.checked_sub(sum)?, below)?))?
        }
        Value::Object(map) => {
            let below = depth.checked_sub(1)?;
            map.iter().try_fold(2, |sum, (name, one)| {
                let sum = sum + name.len() + 4;
                Some(sum + size_within(one, max.checked_sub(sum)?, below)?)
            })?
        }
    };
    (own <= max).then_some(own)
}

#[cfg(test)]
mod tests;
