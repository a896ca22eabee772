//! Templates: text and JSON with references to arguments, secrets and the requester.

use reqwest::header::HeaderValue;
use serde_json::{Map, Value};

use crate::tools::Principal;

/// A secret value of the environment, never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TemplateSecret(String);

impl TemplateSecret {
    pub(super) fn new(value: String) -> Self {
        Self(value)
    }

    /// Whether a header can have it: not if a line break ends it, as in a value read from a file.
    pub(super) fn fits_header(&self) -> bool {
        HeaderValue::from_str(&self.0).is_ok()
    }

    /// Redacts the secret in the text, in its percent-encoded form too. Values of three bytes or fewer are
    /// ignored, because they would redact unrelated text.
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

    /// Removes a prefix of the secret from the end of a truncated text.
    pub(super) fn redact_partial_suffix(&self, mut text: String) -> String {
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

impl std::fmt::Debug for TemplateSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The values of a template's references in one call.
#[derive(Clone, Copy)]
pub(super) struct TemplateValues<'a> {
    pub(super) arguments: &'a Map<String, Value>,
    pub(super) principal: &'a Principal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Argument(String),
    Secret(TemplateSecret),
    User,
    Tenant,
}

/// A text with references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
}

/// Why a text is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplateFlaw {
    Brace,
    /// `${…}` with anything other than `env:NAME`, `user` or `tenant`.
    Reference(String),
    /// The environment variable is unset or empty.
    Unset(String),
}

impl Template {
    /// Parses a template and resolves its secrets. Returns all flaws at once.
    pub(super) fn parse(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<TemplateFlaw>> {
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
                    ("user", _) => push_part(&mut parts, &mut literal, TemplatePart::User),
                    ("tenant", _) => push_part(&mut parts, &mut literal, TemplatePart::Tenant),
                    (_, Some(variable)) => match environment(variable).filter(|value| !value.is_empty()) {
                        Some(value) => push_part(
                            &mut parts,
                            &mut literal,
                            TemplatePart::Secret(TemplateSecret::new(value)),
                        ),
                        None => flaws.push(TemplateFlaw::Unset(variable.to_owned())),
                    },
                    _ => flaws.push(TemplateFlaw::Reference(name.to_owned())),
                }
            } else if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
            } else {
                match rest[1..].split_once('}') {
                    Some((name, after)) if rest.starts_with('{') && is_name(name) => {
                        push_part(&mut parts, &mut literal, TemplatePart::Argument(name.to_owned()));
                        rest = after;
                    }
                    _ => {
                        flaws.push(TemplateFlaw::Brace);
                        rest = &rest[1..];
                    }
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        if flaws.is_empty() { Ok(Self { parts }) } else { Err(flaws) }
    }

    /// The names of the arguments it refers to.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The secrets it contains.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &TemplateSecret> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Secret(secret) => Some(secret),
            _ => None,
        })
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// The argument's name, if the template is a single argument and nothing else.
    pub(super) fn whole_argument(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [TemplatePart::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// Expands the template: literal text passes through `written`, substituted values through `put_in`.
    /// `None` if an argument is absent or null.
    pub(super) fn expand(
        &self,
        values: TemplateValues<'_>,
        written: impl Fn(&str) -> String,
        put_in: impl Fn(&str) -> String,
    ) -> Option<String> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(&written(text)),
                TemplatePart::Argument(name) => {
                    out.push_str(&put_in(&value_text(values.arguments.get(name)?)?))
                }
                TemplatePart::Secret(secret) => out.push_str(&put_in(&secret.0)),
                TemplatePart::User => out.push_str(&put_in(&values.principal.user)),
                TemplatePart::Tenant => out.push_str(&put_in(values.principal.tenant.as_str())),
            }
        }
        Some(out)
    }
}

/// Adds the pending literal text and then the reference.
fn push_part(parts: &mut Vec<TemplatePart>, literal: &mut String, part: TemplatePart) {
    if !literal.is_empty() {
        parts.push(TemplatePart::Text(std::mem::take(literal)));
    }
    parts.push(part);
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// An argument as text; `None` for null.
pub(super) fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Encodes everything except the unreserved characters of RFC 3986 as `%XX`.
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
pub(super) enum BodyTemplate {
    Fixed(Value),
    Text(Template),
    Array(Vec<BodyTemplate>),
    Object(Vec<(String, BodyTemplate)>),
}

impl BodyTemplate {
    /// Parses every string of `value` with `read`.
    pub(super) fn parse(value: &Value, read: &mut impl FnMut(&str) -> Template) -> Self {
        match value {
            Value::String(text) => Self::Text(read(text)),
            Value::Array(elements) => Self::Array(elements.iter().map(|e| Self::parse(e, read)).collect()),
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(name, v)| (name.clone(), Self::parse(v, read))).collect())
            }
            other => Self::Fixed(other.clone()),
        }
    }

    /// Expands the JSON; `None` if it is an absent argument.
    pub(super) fn expand(&self, values: TemplateValues<'_>) -> Option<Value> {
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

    pub(super) fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::Array(elements) => elements.iter().flat_map(Self::templates).collect(),
            Self::Object(fields) => fields.iter().flat_map(|(_, body)| body.templates()).collect(),
        }
    }
}
