//! The progress of a plan for people, in the language of their request: one line for an event.

use serde_json::Value;

use crate::language::Lang;
use crate::public::PublicEvent;

/// The progress line of an event, if it has one. Users see only the steps of the plan. The nodes of a flow are steps of
/// the run, too: for each, the line says without a name that a further part of the flow's step began.
pub(super) fn progress_line(event: &PublicEvent, lang: Lang) -> Option<String> {
    let count = |name: &str| event.data.get(name).and_then(Value::as_u64).unwrap_or_default();
    let is_of_node = event.data.get("flow_step").is_some();
    let said =
        |texts: [&str; 5]| Some(format!("{} {}\n", step_of(event, is_of_node, lang), lang.pick(texts)));
    match event.name {
        "planning" => {
            let planning =
                ["Preparo un piano…", "Planning…", "Je prépare un plan…", "Ich plane…", "Preparo un plan…"];
            Some(format!("{}\n", lang.pick(planning)))
        }
        "plan_created" | "replanned" => listed_steps(event, lang),
        "forecast" => said([
            "al momento potrebbe non funzionare",
            "may not work at present",
            "ne fonctionnera peut-être pas pour le moment",
            "funktioniert zurzeit vielleicht nicht",
            "puede que ahora no funcione",
        ]),
        "step_started" => said(["iniziato", "started", "commencée", "begonnen", "iniciado"]),
        "node_started" => {
            let part = lang.pick(["parte", "part", "partie", "Teil", "parte"]);
            Some(format!("{} {part} {}\n", step_of(event, is_of_node, lang), count("part")))
        }
        "backed_off" => {
            let again = lang.pick([
                "nuovo tentativo tra", "trying again in", "nouvel essai dans", "neuer Versuch in",
                "nuevo intento en",
            ]);
            let seconds = count("delay_ms").div_ceil(1000);
            Some(format!("{} {again} {seconds} s\n", step_of(event, is_of_node, lang)))
        }
        "step_completed" | "step_failed" if is_of_node => None,
        "step_completed" => said(["fatto", "done", "terminée", "erledigt", "hecho"]),
        "step_failed" => said(["non fatto", "not done", "non terminée", "nicht erledigt", "no hecho"]),
        _ => None,
    }
}

/// The steps of a new plan, a line each.
fn listed_steps(event: &PublicEvent, lang: Lang) -> Option<String> {
    let steps = event.data.pointer("/plan/steps").and_then(Value::as_array)?;
    let lines = steps.iter().map(|step| {
        let part = |name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = step.get("step_number").and_then(Value::as_u64).unwrap_or_default();
        format!("{number}. {}{} {}\n", part("scene_name"), colon(lang), part("purpose"))
    });
    Some(lines.collect())
}

/// What a line is about: `Step 1, Weather:`.
fn step_of(event: &PublicEvent, is_of_node: bool, lang: Lang) -> String {
    let [number, name] = if is_of_node { ["flow_step", "flow"] } else { ["step_number", "scene_name"] };
    let number = event.data.get(number).and_then(Value::as_u64).unwrap_or_default();
    let name = event.data.get(name).and_then(Value::as_str).unwrap_or_default();
    let step = lang.pick(["Passo", "Step", "Étape", "Schritt", "Paso"]);
    format!("{step} {number}, {name}{}", colon(lang))
}

fn colon(lang: Lang) -> &'static str {
    if lang == Lang::Fr { " :" } else { ":" }
}
