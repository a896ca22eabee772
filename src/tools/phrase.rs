//! Renders sentences for tool results: the `say` templates of a scene.
//!
//! A template is minijinja over the fields of the result (or `result` itself if it is not an object) and
//! `arguments`. A template that uses a missing or null value renders no sentence at all, rather than one
//! with a gap; `{% if region %}` and `default(…)` handle optional values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::civil::Date;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior};
use serde_json::{Map, Value, json};

/// The longest sentence, in bytes; a longer one is discarded.
const MAX_BYTES: usize = 8 * 1024;

/// The longest prompt of a flow's node, in bytes.
const MAX_PROMPT_BYTES: usize = 256 * 1024;

/// The budget of such a prompt, in minijinja instructions.
const PROMPT_FUEL: u64 = 2_000_000;

/// Maximum number of templates of sentences that are kept compiled; further ones are compiled for each sentence.
const MAX_COMPILED: usize = 4096;

/// The budget of one sentence, in minijinja instructions.
const FUEL: u64 = 50_000;

/// The variable that holds the template's language, for filters.
const LANGUAGE: &str = "_language";

/// ISO 639-1, two letters each.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv \
cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig \
ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn \
mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk \
sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za \
zh zu";

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // A template is kept under its own text, which must not be read as the name of a file of some format.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let kept = AtomicUsize::new(0);
    environment.set_loader(move |template| {
        let has_room = kept.fetch_add(1, Ordering::Relaxed) < MAX_COMPILED;
        Ok(has_room.then(|| template.to_owned()))
    });
    environment.set_formatter(|out, state, value| {
        if value.is_none() {
            return Err(Error::new(ErrorKind::UndefinedError, "the value is null"));
        }
        minijinja::escape_formatter(out, state, value)
    });
    environment
});

/// For checking a template without data: missing values count as empty.
static LENIENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

/// For prompts: missing values are empty.
static PROMPTS: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    environment.set_fuel(Some(PROMPT_FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(32);
    environment.add_filter("day", day_filter);
    environment
}

/// Renders the sentence for a complete (not truncated) result in the user's language, else in English, else in any
/// language: a sentence is better than raw fields. `None` if there is no template, or if it uses a missing value.
pub fn say(
    templates: &BTreeMap<String, String>,
    language: Option<&str>,
    result: &Value,
    arguments: &Value,
) -> Option<String> {
    let wanted = primary_language(language.unwrap_or("en"));
    let of = |language: &str| templates.get_key_value(language);
    let (language, template) = of(&wanted).or_else(|| of("en")).or_else(|| templates.iter().next())?;
    render(template, language, result, arguments)
}

/// Renders one template in its language; `None` if it uses a missing value.
pub fn render(template: &str, language: &str, result: &Value, arguments: &Value) -> Option<String> {
    // A variable that the template does not even contain the name of need not be copied.
    let is_named = |name: &str| template.contains(name);
    let of_result = result.as_object().into_iter().flatten().filter(|(name, _)| is_named(name));
    let mut fields: BTreeMap<&str, &Value> = of_result.map(|(name, value)| (name.as_str(), value)).collect();
    if is_named("result") {
        fields.entry("result").or_insert(result);
    }
    if is_named("arguments") {
        fields.insert("arguments", arguments);
    }
    let language = json!(language);
    fields.insert(LANGUAGE, &language);
    let mut out = BoundedWriter::default();
    let compiled = ENVIRONMENT.get_template(template).or_else(|_| ENVIRONMENT.template_from_str(template));
    compiled.ok()?.render_captured_to(fields, &mut out).ok()?;
    let text = String::from_utf8(out.bytes).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Renders the prompt of a flow's node over its inputs; missing ones are empty. `None` if it cannot be rendered, or is
/// too long.
pub fn render_prompt(template: &str, inputs: &Map<String, Value>) -> Option<String> {
    let mut fields = inputs.clone();
    fields.insert(LANGUAGE.to_owned(), inputs.get("language").cloned().unwrap_or_else(|| json!("en")));
    let mut out = BoundedWriter { bytes: Vec::new(), max: MAX_PROMPT_BYTES };
    PROMPTS.template_from_str(template).ok()?.render_captured_to(fields, &mut out).ok()?;
    String::from_utf8(out.bytes).ok()
}

/// Checks a template's syntax, and the filters, tests and functions on the path that it takes without data.
/// The error says what is wrong.
pub fn check_template(template: &str) -> Result<(), String> {
    let compiled = LENIENT.template_from_str(template).map_err(|error| describe(&error))?;
    match compiled.render_captured_to(json!({LANGUAGE: "en"}), BoundedWriter::default()) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction
            ) =>
        {
            Err(describe(&error))
        }
        _ => Ok(()),
    }
}

/// The variables of a template that it does not define itself, with the attributes that are read of them:
/// `city`, `arguments.city`.
pub fn variables(template: &str) -> BTreeSet<String> {
    let compiled = LENIENT.template_from_str(template);
    compiled.map(|compiled| compiled.undeclared_variables(true).into_iter().collect()).unwrap_or_default()
}

/// Returns whether `code` is a language of ISO 639-1, in lower case.
pub fn is_language(code: &str) -> bool {
    code.len() == 2 && LANGUAGES.split(' ').any(|known| known == code)
}

fn describe(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// `it-IT` and `it_IT` are `it`.
fn primary_language(language: &str) -> String {
    language.split(['-', '_']).next().unwrap_or_default().to_lowercase()
}

fn day_filter(state: &State, value: minijinja::Value) -> Result<String, Error> {
    if value.is_undefined() || value.is_none() {
        // Only the lenient check accepts a missing value.
        return match state.undefined_behavior() {
            UndefinedBehavior::Chainable => Ok(String::new()),
            _ => Err(Error::new(ErrorKind::UndefinedError, "there is no date")),
        };
    }
    let text = value.to_string();
    let language = state.lookup(LANGUAGE).map(|l| l.to_string()).unwrap_or_default();
    Ok(format_day(&text, &language).unwrap_or(text))
}

/// Formats an ISO date (or the date of an ISO time) in the given language: it, en, fr, de or es, and English
/// for any other. `None` if the text is not a date.
pub fn format_day(iso: &str, language: &str) -> Option<String> {
    let date: Date = iso.get(..10)?.parse().ok()?;
    let (day, year) = (date.day(), date.year());
    let index = usize::try_from(date.month()).ok()?.checked_sub(1)?;
    let month = month_names(language).split(' ').nth(index)?;
    Some(match (language, day) {
        ("fr", 1) => format!("1er {month} {year}"),
        ("de", _) => format!("{day}. {month} {year}"),
        ("es", _) => format!("{day} de {month} de {year}"),
        _ => format!("{day} {month} {year}"),
    })
}

/// The names of the twelve months, separated by spaces.
fn month_names(language: &str) -> &'static str {
    match language {
        "it" => {
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
        }
        "fr" => "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "de" => "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "es" => "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        _ => "January February March April May June July August September October November December",
    }
}

struct BoundedWriter {
    bytes: Vec<u8>,
    max: usize,
}

impl Default for BoundedWriter {
    fn default() -> Self {
        Self { bytes: Vec::new(), max: MAX_BYTES }
    }
}

impl std::io::Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max {
            return Err(std::io::Error::other("the sentence is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn italian(template: &str, result: Value) -> Option<String> {
        render(template, "it", &result, &json!({"city": "Milano"}))
    }

    #[test]
    fn sentence_uses_result_fields_and_arguments() {
        let result = json!({"date": "2026-06-15", "min_c": 17.5, "max_c": 28});
        assert_eq!(
            italian("A {{ arguments.city }} il {{ date | day }}: da {{ min_c }} a {{ max_c }} °C.", result),
            Some("A Milano il 15 giugno 2026: da 17.5 a 28 °C.".into())
        );
        assert_eq!(italian("Sono {{ result | length }}.", json!([1, 2, 3])), Some("Sono 3.".into()));
    }

    #[test]
    fn missing_or_null_value_yields_no_sentence_unless_guarded() {
        assert_eq!(italian("A {{ town }}.", json!({})), None);
        assert_eq!(italian("A {{ town }}.", json!({"town": null})), None);
        assert_eq!(italian("Il {{ date | day }}.", json!({"date": null})), None);
        let careful = "Meteo{% if town %} a {{ town }}{% endif %}.";
        assert_eq!(italian(careful, json!({"town": null})), Some("Meteo.".into()));
        assert_eq!(italian(careful, json!({})), Some("Meteo.".into()));
    }

    #[test]
    fn missing_language_falls_back_to_another() {
        let templates: BTreeMap<String, String> =
            [("it", "Fatto."), ("en", "Done.")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let sentence = |language| say(&templates, language, &json!({}), &json!({}));
        assert_eq!(sentence(Some("it")), Some("Fatto.".into()));
        assert_eq!(sentence(Some("it-CH")), Some("Fatto.".into()));
        assert_eq!(sentence(Some("fr")), Some("Done.".into()));
        assert_eq!(sentence(None), Some("Done.".into()));
        let italian: BTreeMap<String, String> = [("it".to_owned(), "Fatto.".to_owned())].into();
        assert_eq!(say(&italian, Some("fr"), &json!({}), &json!({})), Some("Fatto.".into()));
        assert_eq!(say(&BTreeMap::new(), Some("fr"), &json!({}), &json!({})), None);
    }

    #[test]
    fn days_are_formatted_per_language() {
        let written =
            ["it", "en", "fr", "de", "es", "sv"].map(|language| format_day("2026-06-01", language).unwrap());
        assert_eq!(
            written,
            [
                "1 giugno 2026", "1 June 2026", "1er juin 2026", "1. Juni 2026", "1 de junio de 2026",
                "1 June 2026"
            ]
        );
        assert_eq!(format_day("2026-06-15T10:00:00Z", "it"), Some("15 giugno 2026".into()));
        assert_eq!(format_day("domani", "it"), None);
        assert_eq!(italian("{{ arguments.city | day }}", json!({})), Some("Milano".into()));
    }

    #[test]
    fn runaway_template_is_stopped() {
        assert_eq!(
            italian(
                "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
                json!({})
            ),
            None
        );
        assert_eq!(italian("{{ text }}", json!({"text": "x".repeat(MAX_BYTES + 1)})), None);
    }

    #[test]
    fn broken_template_is_detected_without_data() {
        assert!(check_template("A {{ city }} il {{ date | day }}").is_ok());
        assert!(check_template("{% for r in requests %}{{ r.from | day }}{% endfor %}").is_ok());
        assert!(check_template("A {{ city").is_err());
        let error = check_template("A {{ city | shout }}").unwrap_err();
        assert!(error.contains("shout"), "{error}");
    }

    #[test]
    fn languages_are_those_of_iso_639_1() {
        assert!(is_language("it") && is_language("zu") && is_language("aa"));
        assert!(!is_language("xx") && !is_language("IT") && !is_language("ita") && !is_language("a "));
        assert_eq!(LANGUAGES.split(' ').count(), 184);
    }
}
