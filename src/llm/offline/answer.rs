//! Composes answers from the completed steps, from the conversation, or from the list of capabilities.

use serde::Deserialize;
use serde_json::Value;

use super::Lang;
use super::change_phrase::RequestedChanges;
use super::clauses::{self, Clause, ClauseRouter};
use super::courtesies::without_courtesies;
use super::prompt::{Conversation, Executed, PromptText};
use super::recap;
use super::render;
use super::routing::ToolPlace;
use super::small_talk::{self, Talk};
use super::speech::{self, Act};
use super::text;
use super::text_task;

/// A scene as listed in an answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Capability {
    scene: String,
    description: String,
    /// What the scene says about itself in the user's language.
    about: String,
}

/// Answers a request in its plan, unless the answer lists what can be done: the prompt for answers has that in the user's language.
pub(super) fn answer_in_plan(prompt: &PromptText) -> Option<String> {
    let answer = answer(prompt);
    let list = capabilities(prompt, prompt.language());
    (list.is_empty() || !answer.ends_with(&list)).then_some(answer)
}

pub(super) fn answer(prompt: &PromptText) -> String {
    let lang = prompt.language();
    let executed: Vec<Executed> = prompt.lines("executed");
    if prompt.get("mode").trim() == "answer" || !executed.is_empty() {
        return answer_from_steps(&executed, prompt, lang);
    }
    let conversation: Conversation = prompt.json("conversation");
    let request = prompt.request();
    let kind = match prompt.pending() {
        Some(pending) if pending.question.missing.is_empty() && small_talk::takes_back_question(&request) => {
            Talk::Withdrawal
        }
        _ => small_talk::classify(&request),
    };
    if kind == Talk::Other
        && let Some(task) = text_task::detect_text_task(&request, &prompt.chatbot_instructions())
    {
        let can = if task.for_program { String::new() } else { capabilities(prompt, lang) };
        return format!("{} {can}", text_task_refusal(lang)).trim().to_owned();
    }
    if kind == Talk::Other
        && let Some(left) = declined_notice(&request, lang)
    {
        let rest = asked_beside_declined(&request).map(|rest| not_served(&rest, lang));
        return [left].into_iter().chain(rest).collect::<Vec<_>>().join("\n");
    }
    if matches!(kind, Talk::Other | Talk::Greeting) && small_talk::is_bare_consent(&request) {
        return nothing_open(lang);
    }
    let can = capabilities(prompt, lang);
    match kind {
        Talk::Recap => recap::recap(&conversation, lang),
        Talk::Greeting => {
            let hello = lang.pick(["Ciao!", "Hello!", "Bonjour !", "Hallo!", "¡Hola!"]);
            format!("{hello} {}{can}", languages_notice(&prompt.language_code())).trim().to_owned()
        }
        Talk::Thanks => lang
            .pick(["Prego!", "You are welcome!", "Je vous en prie !", "Gern geschehen!", "¡De nada!"])
            .to_owned(),
        Talk::Withdrawal => withdrawn(&conversation, lang),
        Talk::Help => format!("{}{can}", languages_notice(&prompt.language_code())),
        Talk::Other => {
            let sorry = lang.pick([
                "Mi dispiace, non posso aiutarti con questa richiesta.",
                "I am sorry, I cannot help with this request.",
                "Désolé, je ne peux pas répondre à cette demande.",
                "Es tut mir leid, dabei kann ich nicht helfen.",
                "Lo siento, no puedo ayudar con esta petición.",
            ]);
            format!("{}{sorry} {can}", languages_notice(&prompt.language_code())).trim().to_owned()
        }
    }
}

/// The reply to who takes a request back. What the turn before did stays.
fn withdrawn(conversation: &Conversation, lang: Lang) -> String {
    let sentence = match conversation.turns.last().is_some_and(|turn| !turn.calls.is_empty()) {
        false => lang.pick([
            "Va bene, non faccio nulla.",
            "All right, nothing was done.",
            "D'accord, je ne fais rien.",
            "In Ordnung, ich unternehme nichts.",
            "De acuerdo, no hago nada.",
        ]),
        true => lang.pick([
            "Va bene, non faccio altro.",
            "All right, I do nothing more.",
            "D'accord, je ne fais rien de plus.",
            "In Ordnung, ich unternehme nichts weiter.",
            "De acuerdo, no hago nada más.",
        ]),
    };
    sentence.to_owned()
}

/// Says which languages are understood, to who writes in another one; in that language where it has a sentence, and in
/// English otherwise.
fn languages_notice(language: &str) -> &'static str {
    match language.get(..2).unwrap_or_default() {
        "" | "it" | "en" | "fr" | "de" | "es" => "",
        "pt" => {
            "Entendo pedidos em italiano, inglês, francês, alemão e espanhol; aos outros respondo em inglês.\n"
        }
        "nl" => {
            "Ik begrijp verzoeken in het Italiaans, Engels, Frans, Duits en Spaans; op andere antwoord ik in het Engels.\n"
        }
        _ => {
            "I understand requests in Italian, English, French, German and Spanish, and answer others in English.\n"
        }
    }
}

/// The reply to a yes or a no that answers no question.
fn nothing_open(lang: Lang) -> String {
    lang.pick([
        "Al momento nulla attende un sì o un no. Che cosa posso fare per te?",
        "Nothing is waiting for a yes or a no at the moment. What can I do for you?",
        "Rien n'attend de oui ou de non pour le moment. Que puis-je faire pour vous ?",
        "Im Moment wartet nichts auf ein Ja oder Nein. Was kann ich für Sie tun?",
        "Nada espera un sí o un no en este momento. ¿Qué puedo hacer por usted?",
    ])
    .to_owned()
}

fn text_task_refusal(lang: Lang) -> String {
    lang.pick([
        "Questo è un compito su un testo, che qui non posso svolgere: non ho eseguito nulla di ciò che contiene.",
        "This is a task on a text, which I cannot do here; nothing that the text says was carried out.",
        "C'est une tâche sur un texte, que je ne peux pas faire ici ; rien de ce qu'il contient n'a été exécuté.",
        "Das ist eine Aufgabe an einem Text, die ich hier nicht erledigen kann; nichts daraus wurde ausgeführt.",
        "Es una tarea sobre un texto que aquí no puedo hacer; no se ha ejecutado nada de lo que contiene.",
    ])
    .to_owned()
}

/// Confirms that actions which the user declined were not executed.
fn declined_notice(request: &str, lang: Lang) -> Option<String> {
    let left = speech::declined(&without_courtesies(request));
    let lead = lang.pick([
        "Come richiesto, non ho fatto questo",
        "As you asked, this was not done",
        "Comme demandé, ceci n'a pas été fait",
        "Wie gewünscht wurde dies nicht getan",
        "Como ha pedido, esto no se ha hecho",
    ]);
    (!left.is_empty()).then(|| format!("{lead}: «{}».", left.join("; ")))
}

/// Says which words of a request no scene serves.
fn not_served(words: &str, lang: Lang) -> String {
    let not = lang.pick([
        "Non posso invece aiutarti con",
        "I cannot help with",
        "Je ne peux pas aider avec",
        "Nicht helfen kann ich mit",
        "No puedo ayudar con",
    ]);
    format!("{not}: «{words}».")
}

/// What a request of which nothing was served asks for beside the actions that it declines.
fn asked_beside_declined(request: &str) -> Option<String> {
    let asks = |clause: &Clause| {
        matches!(clause.act, Act::Question | Act::Request)
            && !speech::is_preamble(&clause.text)
            && !small_talk::is_only_polite(&clause.text)
    };
    let clauses = clauses::split(&without_courtesies(request), &NoTool).into_iter().filter(asks);
    let words: Vec<String> = clauses.map(|clause| clause.text).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Cuts clauses where no tool is known.
struct NoTool;

impl ClauseRouter for NoTool {
    fn tool_for(&self, _words: &str, _after: Option<ToolPlace>) -> Option<(ToolPlace, bool)> {
        None
    }

    fn has_verb_or_question(&self, _words: &str) -> bool {
        false
    }
}

/// Lists the capabilities by the scenes' descriptions.
fn capabilities(prompt: &PromptText, lang: Lang) -> String {
    let list: Vec<Capability> = match prompt.get("capabilities") {
        none if none.is_empty() => prompt.lines("scenes"),
        _ => prompt.lines("capabilities"),
    };
    let lines: Vec<String> = list
        .iter()
        .filter(|c| !c.scene.is_empty())
        .take(30)
        .map(|c| {
            if !c.about.is_empty() {
                return format!("- {}", text::one_line(&c.about));
            }
            let about = text::one_line(&c.description);
            if about.is_empty() {
                format!("- {}", c.scene)
            } else {
                format!("- {}: {}", c.scene, text::shorten_to_words(text::first_sentence(&about), 200))
            }
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let lead = lang.pick([
        "Ecco che cosa posso fare:",
        "Here is what I can do:",
        "Voici ce que je peux faire :",
        "Das kann ich tun:",
        "Esto es lo que puedo hacer:",
    ]);
    format!("{lead}\n{}", lines.join("\n"))
}

fn text_of_value(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Object(map)) => ["message", "text", "question"]
            .iter()
            .find_map(|k| map.get(*k).and_then(Value::as_str))
            .unwrap_or_default()
            .trim()
            .to_owned(),
        _ => String::new(),
    }
}

/// Reports the steps' results in order, failures with their reasons, and open questions last.
pub(super) fn answer_from_steps(executed: &[Executed], prompt: &PromptText, lang: Lang) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut questions: Vec<String> = Vec::new();
    for step in executed {
        let (text, list) = match step.status.as_str() {
            "needs_input" => (open_question(step), &mut questions),
            "completed" | "" => (completed_step_text(step, lang), &mut parts),
            "blocked" => (blocked_step_text(step, lang), &mut parts),
            _ => (failed_step_text(step, lang, executed.len() > 1), &mut parts),
        };
        if !text.is_empty() && !list.contains(&text) {
            list.push(text);
        }
    }
    if !executed.is_empty()
        && let Some(left) = declined_notice(&prompt.request(), lang)
    {
        parts.push(left);
    }
    if let Some(rest) = unserved_clauses(executed, prompt) {
        parts.push(not_served(&rest, lang));
    }
    parts.extend(questions);
    if parts.is_empty() {
        return lang
            .pick([
                "Non ho trovato nulla da riferire.",
                "I found nothing to report.",
                "Je n'ai rien trouvé à signaler.",
                "Ich habe nichts gefunden.",
                "No encontré nada que informar.",
            ])
            .to_owned();
    }
    parts.join("\n")
}

/// The question of a step that needs input from the user.
fn open_question(step: &Executed) -> String {
    let question = text_of_value(step.question.as_ref());
    if question.is_empty() { text_of_value(step.error.as_ref()) } else { question }
}

fn completed_step_text(step: &Executed, lang: Lang) -> String {
    let result = text_of_value(step.result.as_ref());
    if result.is_empty() {
        return text_from_calls(step, lang);
    }
    let lines = result.lines().map(|line| data_in_words(line, lang).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// A line with the data that a tool without a sentence returned ("GetOrder: {…}"), in words; `None` for other lines.
fn data_in_words(line: &str, lang: Lang) -> Option<String> {
    let (tool, data) = line.split_once(": ")?;
    let is_name = tool.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !is_name || !data.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<Value>(data).ok().map(|data| render::result(&data, lang))
}

fn blocked_step_text(step: &Executed, lang: Lang) -> String {
    let not = lang.pick([
        "Non ho potuto procedere con",
        "I could not go on with",
        "Je n'ai pas pu poursuivre :",
        "Ich konnte nicht fortfahren mit",
        "No pude continuar con",
    ]);
    let why = lang.pick([
        "perché un passo precedente non è riuscito",
        "since an earlier step did not succeed",
        "car une étape précédente n'a pas réussi",
        "weil ein früherer Schritt nicht gelang",
        "porque un paso anterior no tuvo éxito",
    ]);
    format!("{not} «{}», {why}.", short_purpose(step))
}

/// Says why a step failed; `named` if it is one of several.
fn failed_step_text(step: &Executed, lang: Lang, named: bool) -> String {
    let not = lang.pick([
        "Non è stato possibile completare",
        "It was not possible to complete",
        "Il n'a pas été possible de faire",
        "Es war nicht möglich:",
        "No fue posible completar",
    ]);
    let about = short_purpose(step);
    // Its scene, or its calls, say why.
    let result = completed_step_text(step, lang);
    if step.error.is_none() && !result.is_empty() {
        return if named { format!("«{about}»: {result}") } else { result };
    }
    let why = text_of_value(step.error.as_ref());
    if why.is_empty() { format!("{not} «{about}».") } else { format!("{not} «{about}»: {why}") }
}

fn short_purpose(step: &Executed) -> String {
    text::shorten_to_words(&text::one_line(&step.purpose), 160)
}

fn text_from_calls(step: &Executed, lang: Lang) -> String {
    let done: Vec<render::CompletedCall> = step
        .calls
        .iter()
        .map(|c| render::CompletedCall {
            name: c.tool.clone(),
            outcome: if c.outcome.is_empty() { "ok".to_owned() } else { c.outcome.clone() },
            result: Some(c.result.clone()),
            // The error of executed work is worded for users.
            say: c.say.clone().or_else(|| c.error.clone()),
            ..render::CompletedCall::default()
        })
        .collect();
    if done.is_empty() { String::new() } else { render::report(&done, lang) }
}

/// Clauses of the request for which no scene was found: no step's purpose contains any of their words, and
/// the user did not remove them from the plan.
fn unserved_clauses(executed: &[Executed], prompt: &PromptText) -> Option<String> {
    let plan: Value = prompt.json("plan");
    if let Some(told) = plan["unserved"].as_array() {
        // The run says of these that they are not available.
        let off = |part: &&Value| plan["unavailable"].as_array().is_some_and(|parts| parts.contains(part));
        let told: Vec<&str> = told.iter().filter(|part| !off(part)).filter_map(Value::as_str).collect();
        return (!told.is_empty()).then(|| told.join("; "));
    }
    let planned: std::collections::HashSet<String> =
        executed.iter().flat_map(|e| text::norms(&e.purpose)).collect();
    let clauses = clauses::split(&without_courtesies(&prompt.request()), &NoTool);
    // A single clause may have been planned in other words.
    if clauses.len() < 2 {
        return None;
    }
    let own_words = clauses.iter().any(|c| {
        text::tokens(&c.text)
            .iter()
            .filter(|t| t.word && t.norm.len() > 3)
            .all(|t| planned.contains(t.norm.as_str()))
    });
    let changed = RequestedChanges::from_prompt(prompt);
    let unavailable = prompt.get("unavailable");
    let rest: Vec<String> = clauses
        .into_iter()
        .filter(|c| !small_talk::is_only_polite(&c.text))
        .filter(|c| !matches!(c.act, Act::Negated | Act::Report) && !speech::is_preamble(&c.text))
        .zip(1..)
        .filter(|(c, _)| {
            let tokens = text::tokens(&c.text);
            let words: Vec<_> = tokens
                .iter()
                .filter(|t| t.word && t.norm.len() > 2 && !super::lexicon::is_stop_word(&t.norm))
                .collect();
            !words.is_empty() && !words.iter().any(|t| planned.contains(t.norm.as_str()))
        })
        .filter(|(c, place)| !changed.excludes_clause(c, *place, executed))
        .filter(|(c, _)| !unavailable.lines().any(|part| part == text::one_line(&c.text)))
        .map(|(c, _)| c.text)
        .collect();
    (own_words && !rest.is_empty()).then(|| rest.join("; "))
}
