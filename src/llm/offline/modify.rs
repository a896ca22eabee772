//! A plan changed as a person says, by rules: steps left out, or kept alone, or given other words, and new
//! ones for what was not planned.

use serde_json::{Value, json};

use super::text::{self, Token};

/// Words that have something left out.
const OUT: [&str; 29] = [
    "remove", "drop", "skip", "without", "delete", "omit", "exclude", "except", "dont", "not", "no", "senza",
    "togli", "rimuovi", "elimina", "salta", "escludi", "non", "tranne", "ohne", "entferne", "streiche",
    "nicht", "sans", "supprime", "enleve", "sin", "quita", "elimine",
];

/// Words that have everything else left out.
const ONLY: [&str; 9] =
    ["only", "just", "solo", "soltanto", "solamente", "nur", "seulement", "uniquement", "solamente"];

/// A step's number and what is known of it.
struct Known {
    number: u64,
    scene: String,
    tools: Vec<String>,
    purpose: String,
}

/// The steps of `plan` after `feedback`, numbered from `first`; `None` where the rules do not understand
/// what is to change. `planned` are the steps that the feedback's own words lead to.
pub(super) fn change(plan: &Value, feedback: &str, planned: &Value, first: u32) -> Option<Value> {
    let steps = plan["steps"].as_array()?;
    let known: Vec<Known> = steps.iter().map(Known::of).collect();
    let tokens = text::tokens(feedback);
    let (only, out) = (tokens.iter().any(is_only), leaves_out(&tokens));
    let meant = meant(&known, feedback, planned);
    let kept: Vec<Value> = if only && !meant.is_empty() {
        keep(steps, &meant)
    } else if out && !meant.is_empty() && meant.len() < steps.len() {
        let rest: Vec<u64> = known.iter().map(|s| s.number).filter(|n| !meant.contains(n)).collect();
        keep(steps, &rest)
    } else if out {
        return None;
    } else {
        reworded(steps, &known, feedback, planned)?
    };
    Some(numbered(&kept, first))
}

/// Whether words have something left out.
pub(super) fn leaves_out(tokens: &[Token]) -> bool {
    let short_not = |pair: &[Token]| pair[0].lower.ends_with('n') && pair[1].lower == "t";
    tokens.iter().any(is_out) || tokens.windows(2).any(short_not)
}

/// Whether a word has something left out.
pub(super) fn is_out(token: &Token) -> bool {
    token.word && OUT.contains(&token.lower.as_str())
}

/// Whether a word has everything else left out.
pub(super) fn is_only(token: &Token) -> bool {
    token.word && ONLY.contains(&token.lower.as_str())
}

/// The numbers of the steps that words name: "step 2".
pub(super) fn numbered_steps(tokens: &[Token]) -> Vec<u64> {
    let names = ["step", "passo", "schritt", "étape", "etape", "paso"];
    let pairs = tokens.windows(2).filter(|pair| names.contains(&pair[0].lower.as_str()));
    pairs.filter_map(|pair| pair[1].raw.parse().ok()).collect()
}

impl Known {
    fn of(step: &Value) -> Self {
        let text = |name: &str| step[name].as_str().unwrap_or_default().to_owned();
        let tools = step["expected_tools"].as_array().into_iter().flatten();
        Self {
            number: step["step_number"].as_u64().unwrap_or_default(),
            scene: text("scene_name"),
            tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
            purpose: text("purpose"),
        }
    }

    fn serves(&self, step: &Value) -> bool {
        let other = Self::of(step);
        self.scene == other.scene && self.tools.first() == other.tools.first()
    }
}

/// The steps that the feedback speaks of: by number, by the name of a scene, by the scene and tool
/// that its words lead to, or else by the words of the purpose.
fn meant(known: &[Known], feedback: &str, planned: &Value) -> Vec<u64> {
    let tokens = text::tokens(feedback);
    let words: Vec<&str> = tokens.iter().filter(|t| t.word).map(|t| t.norm.as_str()).collect();
    let numbers = numbered_steps(&tokens);
    let by_number: Vec<u64> = known.iter().map(|s| s.number).filter(|n| numbers.contains(n)).collect();
    if !by_number.is_empty() {
        return by_number;
    }
    let named = |step: &&Known| {
        let names = text::name_words(&step.scene);
        let stems: Vec<String> = names.iter().map(|name| text::stems(&text::fold(name)).0).collect();
        words.iter().any(|word| stems.contains(&text::stems(word).0))
    };
    let by_name: Vec<u64> = known.iter().filter(named).map(|s| s.number).collect();
    if !by_name.is_empty() && by_name.len() < known.len() {
        return by_name;
    }
    let led_to: Vec<&Value> = planned["steps"].as_array().into_iter().flatten().collect();
    let by_route: Vec<u64> =
        known.iter().filter(|s| led_to.iter().any(|p| s.serves(p))).map(|s| s.number).collect();
    if !by_route.is_empty() {
        return by_route;
    }
    let shares = |step: &&Known| {
        let own = text::tokens(&step.purpose);
        let telling = |t: &&text::Token| t.word && t.norm.chars().count() > 3;
        own.iter().filter(telling).any(|t| words.iter().any(|w| text::stems(w).0 == text::stems(&t.norm).0))
    };
    known.iter().filter(shares).map(|s| s.number).collect()
}

fn keep(steps: &[Value], numbers: &[u64]) -> Vec<Value> {
    let wanted = |step: &&Value| step["step_number"].as_u64().is_some_and(|n| numbers.contains(&n));
    steps.iter().filter(wanted).cloned().collect()
}

/// Steps whose words the feedback replaces, and new ones behind them.
fn reworded(steps: &[Value], known: &[Known], feedback: &str, planned: &Value) -> Option<Vec<Value>> {
    let mut kept = steps.to_vec();
    let led_to: Vec<&Value> = planned["steps"].as_array().into_iter().flatten().collect();
    if led_to.is_empty() {
        // Words that lead nowhere by themselves can only be about the one step there is, or the one meant.
        let meant = meant(known, feedback, planned);
        let number = match (meant.as_slice(), known) {
            ([one], _) => *one,
            ([], [only]) => only.number,
            _ => return None,
        };
        let at = known.iter().position(|s| s.number == number)?;
        kept[at]["purpose"] = json!(joined(&known[at].purpose, feedback));
        return Some(kept);
    }
    let mut next = known.iter().map(|s| s.number).max().unwrap_or(0) + 1;
    for new in led_to {
        match known.iter().position(|s| s.serves(new)) {
            Some(at) => kept[at]["purpose"] = new["purpose"].clone(),
            None => {
                let mut step = new.clone();
                step["step_number"] = json!(next);
                step["depends_on_step"] = Value::Null;
                next += 1;
                kept.push(step);
            }
        }
    }
    Some(kept)
}

fn joined(purpose: &str, feedback: &str) -> String {
    text::one_line(&format!("{}. {}", purpose.trim_end_matches(['.', ' ']), feedback.trim()))
}

/// Numbers from `first` on, with dependencies on what is left.
fn numbered(steps: &[Value], first: u32) -> Value {
    let old: Vec<u64> = steps.iter().filter_map(|step| step["step_number"].as_u64()).collect();
    let renamed = |n: u64| old.iter().position(|o| *o == n).map(|at| u64::from(first) + at as u64);
    let list: Vec<Value> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| {
            let mut step = step.clone();
            step["step_number"] = json!(u64::from(first) + at as u64);
            let on: Vec<u64> = match &step["depends_on_step"] {
                Value::Array(list) => list.iter().filter_map(Value::as_u64).filter_map(renamed).collect(),
                one => one.as_u64().and_then(renamed).into_iter().collect(),
            };
            step["depends_on_step"] = match on.as_slice() {
                [] => Value::Null,
                [one] => json!(one),
                many => json!(many),
            };
            step
        })
        .collect();
    json!(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Value {
        json!({"steps": [
            {"step_number": 1, "scene_name": "Weather", "purpose": "Meteo a Milano",
             "expected_tools": ["WeatherForecast_Get"], "depends_on_step": null},
            {"step_number": 2, "scene_name": "VacationManagement", "purpose": "ferie dal 15 al 17 giugno",
             "expected_tools": ["MakeRequest"], "depends_on_step": 1},
        ]})
    }

    fn purposes(steps: &Value) -> Vec<String> {
        let list = steps.as_array().unwrap().iter();
        list.map(|s| format!("{} {} {}", s["step_number"], s["purpose"], s["depends_on_step"])).collect()
    }

    #[test]
    fn steps_are_left_out_or_kept_alone_by_number_or_name() {
        let nothing = json!({"steps": []});
        let without = [
            "remove step 1",
            "senza il meteo",
            "Without the weather please",
            "togli il passo 1",
            "I don't need the weather",
        ];
        for words in without {
            let changed = change(&plan(), words, &nothing, 1).unwrap();
            assert_eq!(purposes(&changed), [r#"1 "ferie dal 15 al 17 giugno" null"#], "{words}");
        }
        for words in ["only the weather", "solo il passo 1"] {
            let changed = change(&plan(), words, &nothing, 3).unwrap();
            assert_eq!(purposes(&changed), [r#"3 "Meteo a Milano" null"#], "{words}");
        }
    }

    #[test]
    fn words_that_lead_to_a_planned_tool_replace_its_purpose_and_others_are_new_steps() {
        let led_to = json!({"steps": [
            {"step_number": 1, "scene_name": "VacationManagement", "purpose": "ferie dal 22 al 24 giugno",
             "expected_tools": ["MakeRequest"], "depends_on_step": null},
            {"step_number": 2, "scene_name": "Identity", "purpose": "chi sono",
             "expected_tools": ["Me"], "depends_on_step": null}]});
        let changed = change(&plan(), "ferie dal 22 al 24 giugno, e chi sono", &led_to, 1).unwrap();
        let told =
            [r#"1 "Meteo a Milano" null"#, r#"2 "ferie dal 22 al 24 giugno" 1"#, r#"3 "chi sono" null"#];
        assert_eq!(purposes(&changed), told);
    }

    #[test]
    fn what_is_not_understood_changes_nothing() {
        let nothing = json!({"steps": []});
        assert_eq!(change(&plan(), "make it nicer", &nothing, 1), None);
        assert_eq!(change(&plan(), "remove everything", &nothing, 1), None);
    }
}
