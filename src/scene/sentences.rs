//! Checks the sentences of tools: about results, before writes, and for statuses of a back end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{Located, LocatedTexts};
use super::fault::FaultReport;
use super::parameters;
use crate::nearest::did_you_mean;
use crate::schema::property_names;
use crate::tools::phrase;

/// Checks the language that a text is declared for.
fn check_language(language: &str, line: Option<u32>, report: &FaultReport) {
    if !phrase::is_language(language) {
        let remedy = "use the two letters of ISO 639-1 in lower case, such as it or en";
        report.error(line, "say_language", format!("{language:?} is not a language code"), remedy);
    }
}

/// What a scene or flow says about itself, by language.
pub(super) fn checked_about(texts: LocatedTexts, report: &FaultReport) -> BTreeMap<String, String> {
    texts.iter().for_each(|(language, text)| check_language(language, text.line, report));
    texts.into_iter().map(|(language, text)| (language, text.value.trim().to_owned())).collect()
}

/// Checks one sentence of `tool`, without regard to its variables: its language, its syntax and its filters.
pub(super) fn check_sentence(tool: &str, language: &str, template: &Located<String>, report: &FaultReport) {
    check_language(language, template.line, report);
    if let Err(error) = phrase::check_template(&template.value) {
        let message = format!("the sentence of {tool} in {language:?} cannot be used: {error}");
        report.error(
            template.line,
            "say_template",
            message,
            "write it as \"{{ city }} on {{ date | day }}\", with Jinja's built-in filters and `day`",
        );
    }
    for name in braced(&template.value, "{", "}") {
        let message = format!("the sentence of {tool} in {language:?} shows {{{name}}} as it is written");
        let remedy = format!("write {{{{ {name} }}}} for a value");
        report.warning(template.line, "say_braces", message, remedy);
    }
}

/// Checks the sentences of a tool: about its results, and the questions before it writes.
pub(super) fn check(
    tool: &str,
    say: &LocatedTexts,
    confirm: &LocatedTexts,
    parameters: &Value,
    report: &FaultReport,
) {
    for (language, template) in say.iter().chain(confirm) {
        check_sentence(tool, language, template, report);
    }
    check_variables(tool, say, parameters, report);
    check_variables_of_call(tool, confirm, &[], parameters, report);
}

/// Checks the variables of sentences about a call without its result: they see `arguments`, and `others`.
pub(super) fn check_variables_of_call(
    tool: &str,
    sentences: &LocatedTexts,
    others: &[&str],
    parameters: &Value,
    report: &FaultReport,
) {
    for (language, text) in sentences {
        for variable in phrase::variables(&text.value) {
            let root = root_of(&variable);
            if root == "arguments" {
                check_argument(tool, language, text, &variable, parameters, report);
            } else if !others.contains(&root) {
                let remedy = match property_names(parameters).any(|name| name == root) {
                    true => format!("write {{{{ arguments.{root} }}}}"),
                    false => "there is no result to tell here: use {{ arguments.NAME }}".to_owned(),
                };
                report.error(text.line, "say_variable", unknown(tool, language, &variable), remedy);
            }
        }
    }
}

/// Checks the variables of sentences about results. An argument is declared; the fields of a result are not, so one of them
/// counts as misspelt if it is nearly `arguments`, or a field that the sentence of another language uses.
fn check_variables(tool: &str, sentences: &LocatedTexts, parameters: &Value, report: &FaultReport) {
    let used: Vec<BTreeSet<String>> = sentences.values().map(|text| phrase::variables(&text.value)).collect();
    for ((language, text), own) in sentences.iter().zip(&used) {
        for variable in own {
            let root = root_of(variable);
            if root == "arguments" {
                check_argument(tool, language, text, variable, parameters, report);
                continue;
            }
            let others = || used.iter().filter(|other| *other != own).flatten().map(|other| root_of(other));
            let is_known = root == "result" || others().any(|other| other == root);
            let meant = did_you_mean(root, std::iter::once("arguments").chain(others()));
            if is_known || meant.is_empty() {
                continue;
            }
            let message = unknown(tool, language, variable);
            if meant == did_you_mean(root, ["arguments"]) {
                report.error(text.line, "say_variable", message, meant);
            } else {
                report.warning(text.line, "say_variable", message, meant);
            }
        }
    }
}

/// Checks that `variable`, such as `arguments.city`, is a parameter of the tool.
fn check_argument(
    tool: &str,
    language: &str,
    text: &Located<String>,
    variable: &str,
    parameters: &Value,
    report: &FaultReport,
) {
    let known: Vec<&str> = property_names(parameters).collect();
    let name = variable.split('.').nth(1).unwrap_or_default();
    if !name.is_empty() && !known.contains(&name) {
        let remedy = parameters::hint(name, &known);
        report.error(text.line, "say_variable", unknown(tool, language, variable), remedy);
    }
}

fn unknown(tool: &str, language: &str, variable: &str) -> String {
    format!("the sentence of {tool} in {language:?} has an unknown variable {variable:?}")
}

/// The variable whose attributes are read: `city` of `city.name`.
fn root_of(variable: &str) -> &str {
    variable.split('.').next().unwrap_or_default()
}

/// The names between exactly these braces, such as `number` of `{number}`, where they are words of letters, digits, `_` and
/// `.`.
pub(super) fn braced<'t>(text: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
    text.match_indices(open).filter_map(move |(at, _)| {
        let (before, after) = (&text[..at], &text[at + open.len()..]);
        let (inside, rest) = after.split_once(close)?;
        let name = inside.trim();
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        // `{{ number }}` is not between single braces, and `{{{number}}}` not between double ones.
        (is_name && !before.ends_with('{') && !rest.starts_with('}')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_between_exactly_these_braces() {
        let of = |text, open, close| braced(text, open, close).collect::<Vec<_>>();
        assert_eq!(of("Order {number} is in { place }, {{ city }}", "{", "}"), ["number", "place"]);
        assert_eq!(of("{% if a %}{{ {1: 2} }}{# b #}{} {a b} {7}", "{", "}"), Vec::<&str>::new());
        assert_eq!(of("/{{number}}/{{ city }}/{a}/{{{b}}}", "{{", "}}"), ["number", "city"]);
    }
}
