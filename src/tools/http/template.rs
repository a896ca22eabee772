//! Text and JSON with references to arguments, secrets and who asks.

use serde_json::{Map, Value};

use crate::tools::Principal;

/// A value of the environment that nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(value: String) -> Self {
        Self(value)
    }

    /// The text with the secret blotted out, also as it is written in an address. Three characters or
    /// fewer are no secret, and would blot out half of every text.
    pub(super) fn redact(&self, mut text: String) -> String {
        if self.0.len() <= 3 {
            return text;
        }
        for written in [&self.0, &percent_encode(&self.0)] {
            if text.contains(written) {
                text = text.replace(written, "***");
            }
        }
        text
    }

    /// The text without a beginning of the secret that stands at its end.
    pub(super) fn redact_end(&self, mut text: String) -> String {
        let begun = self
            .0
            .char_indices()
            .map(|(at, _)| at)
            .rev()
            .find(|at| *at > 3 && text.ends_with(&self.0[..*at]));
        if let Some(length) = begun {
            text.truncate(text.len() - length);
        }
        text
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What a template's references stand for in one call.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) principal: &'a Principal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Argument(String),
    Secret(Secret),
    User,
    Tenant,
}

/// Text with references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flaw {
    /// A brace that opens or closes nothing.
    Brace,
    /// `${…}` with something else than `env:NAME`, `user` or `tenant`.
    Reference(String),
    /// The environment has no such variable, or an empty one.
    Unset(String),
}

impl Template {
    /// Reads a template, resolving secrets at once. The flaws are all there are.
    pub(super) fn parse(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<Flaw>> {
        let mut parts = Vec::new();
        let mut flaws = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '$']) {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("${") {
                let (name, after) = after.split_once('}').unwrap_or((after, ""));
                rest = after;
                match (name, name.strip_prefix("env:")) {
                    ("user", _) => push(&mut parts, &mut literal, Part::User),
                    ("tenant", _) => push(&mut parts, &mut literal, Part::Tenant),
                    (_, Some(variable)) => match environment(variable).filter(|value| !value.is_empty()) {
                        Some(value) => push(&mut parts, &mut literal, Part::Secret(Secret::new(value))),
                        None => flaws.push(Flaw::Unset(variable.to_owned())),
                    },
                    _ => flaws.push(Flaw::Reference(name.to_owned())),
                }
            } else if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
            } else {
                match rest[1..].split_once('}') {
                    Some((name, after)) if rest.starts_with('{') && is_name(name) => {
                        push(&mut parts, &mut literal, Part::Argument(name.to_owned()));
                        rest = after;
                    }
                    _ => {
                        flaws.push(Flaw::Brace);
                        rest = &rest[1..];
                    }
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        if flaws.is_empty() { Ok(Self { parts }) } else { Err(flaws) }
    }

    /// The names of the arguments it refers to.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The secrets it carries.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(secret) => Some(secret),
            _ => None,
        })
    }

    /// Whether it is the same in every call.
    pub(super) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The one argument that it is, with nothing around it.
    pub(super) fn whole_argument(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The text, with what is written passed through `written` and what is put in through `put_in`.
    /// `None` where an argument is absent or null.
    pub(super) fn expand(
        &self,
        values: Values<'_>,
        written: impl Fn(&str) -> String,
        put_in: impl Fn(&str) -> String,
    ) -> Option<String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(&written(text)),
                Part::Argument(name) => out.push_str(&put_in(&text(values.arguments.get(name)?)?)),
                Part::Secret(secret) => out.push_str(&put_in(&secret.0)),
                Part::User => out.push_str(&put_in(&values.principal.user)),
                Part::Tenant => out.push_str(&put_in(values.principal.tenant.as_str())),
            }
        }
        Some(out)
    }
}

/// Adds the text gathered so far and then the reference.
fn push(parts: &mut Vec<Part>, literal: &mut String, part: Part) {
    if !literal.is_empty() {
        parts.push(Part::Text(std::mem::take(literal)));
    }
    parts.push(part);
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// An argument as text; `None` for null.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Everything but what RFC 3986 calls unreserved, as `%XX`.
pub(super) fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// JSON with references in its strings.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Fixed(Value),
    Text(Template),
    Array(Vec<Body>),
    Object(Vec<(String, Body)>),
}

impl Body {
    /// Reads every string of `value` through `read`.
    pub(super) fn read(value: &Value, read: &mut impl FnMut(&str) -> Template) -> Self {
        match value {
            Value::String(text) => Self::Text(read(text)),
            Value::Array(elements) => Self::Array(elements.iter().map(|e| Self::read(e, read)).collect()),
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(name, v)| (name.clone(), Self::read(v, read))).collect())
            }
            other => Self::Fixed(other.clone()),
        }
    }

    /// The JSON; `None` where it is an argument that is absent.
    pub(super) fn expand(&self, values: Values<'_>) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value.clone()),
            Self::Text(template) => match template.whole_argument() {
                Some(name) => values.arguments.get(name).filter(|value| !value.is_null()).cloned(),
                None => template.expand(values, str::to_owned, str::to_owned).map(Value::String),
            },
            Self::Array(elements) => {
                Some(Value::Array(elements.iter().filter_map(|element| element.expand(values)).collect()))
            }
            Self::Object(fields) => Some(Value::Object(
                fields.iter().filter_map(|(name, body)| Some((name.clone(), body.expand(values)?))).collect(),
            )),
        }
    }

    /// Every template inside.
    pub(super) fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::Array(elements) => elements.iter().flat_map(Self::templates).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, body)| body.templates()).collect(),
        }
    }
}
