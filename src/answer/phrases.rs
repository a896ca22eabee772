//! Texts in the user's language: what a waiting run waits for and how to decide it, and what a cancelled run
//! had done, for clients that get only text.

use std::fmt::Write;

use serde_json::Value;

use super::open_approvals;
use crate::invisible::{self, one_line};
use crate::language;
use crate::run::{
    ApprovalId, ApprovalSubject, CallState, CallStatus, Decision, Effect, Outcome, RequiredApproval,
    RunState, exact_json,
};

/// Maximum number of names that are offered to be added to a list.
const MAX_OFFERED: usize = 40;

/// Maximum length of a call's arguments in these texts, in characters. The document has them in full.
const MAX_ARGUMENTS: usize = 4_000;

/// The sentences of one language.
struct AnswerPhrases {
    language: &'static str,
    /// Introduces the steps of a plan.
    plan: &'static str,
    /// Introduces the new steps of a plan whose unfinished part was changed.
    patch: &'static str,
    /// Precedes the step that a new step takes the place of.
    in_place_of: &'static str,
    /// Precedes a step that is not done any more.
    dropped: &'static str,
    /// Introduces the writes.
    calls: &'static str,
    /// Introduces a plan that was approved and has not started.
    held: &'static str,
    /// Introduces the reason why a plan could not be changed.
    unmodified: &'static str,
    /// That a reply did not say clearly how a list is to be changed.
    unread: &'static str,
    /// How to decide one approval; its id follows.
    decide: &'static str,
    /// The same if it is too long to be shown in full.
    decide_elsewhere: &'static str,
    /// The same if requesters may not approve their own requests.
    decide_by_another: &'static str,
    /// How to decide what the user is asked.
    reply: &'static str,
    /// How to change the list of such a question: what precedes the examples, a name that is removed, one that is added,
    /// and the names that may be added.
    change: [&'static str; 4],
    /// How to decide several approvals; their ids follow.
    decide_each: &'static str,
    /// How to start an approved plan; its id follows.
    begin: &'static str,
    /// How to resume a quarantined run; the plan's id follows.
    aside: &'static str,
    /// How to resume or cancel a run that was restored from a backup; the plan's id follows.
    restored: &'static str,
    /// For a run that was cancelled before it did anything.
    nothing: &'static str,
    /// Introduces what a cancelled run had done.
    stopped: &'static str,
    /// Follows a write that was undone when the run was cancelled.
    undone: &'static str,
    /// Follows a write about which a person said later that it was done.
    found_done: &'static str,
    /// Follows one about which a person said that it was not done.
    found_not_done: &'static str,
}

/// The languages of the shipped scenes; the first one is the fallback.
const PHRASES: [AnswerPhrases; 5] = [
    AnswerPhrases {
        language: "en",
        plan: "This plan waits for approval; nothing has been done of it yet:",
        patch: "The rest of the plan is to be changed, since not all of it worked. What is new waits for approval; nothing has been done of it yet:",
        in_place_of: "in place of",
        dropped: "Not done any more:",
        calls: "This waits for approval before it is done:",
        held: "This plan is approved and waits to be started:",
        unmodified: "The plan could not be changed as you asked, and is as it was:",
        unread: "I could not tell from your reply what is to change in the list; nothing was done.",
        decide: "Say yes or no here, or decide the approval",
        decide_elsewhere: "It is too long to be shown here whole. Look at it, and decide the approval",
        decide_by_another: "Another person has to approve it, since you asked for it; say no to take it back. The approval:",
        reply: "Reply yes or no.",
        change: ["To change the list, write for example:", "without", "also", "It may also contain:"],
        decide_each: "Several things wait. Decide each by its approval:",
        begin: "To start it, approve it again for execution:",
        aside: "The server stopped several times in a row while it was working on this alone, so it was set aside. To continue it, resume it:",
        restored: "This was restored from a backup and is on hold, since it may have gone on after the backup was taken. Check what was done, then resume or cancel it:",
        nothing: "It was stopped; nothing was done.",
        stopped: "It was stopped; this much had been done:",
        undone: "it was undone",
        found_done: "checked since then, it was done",
        found_not_done: "checked since then, it was not done",
    },
    AnswerPhrases {
        language: "it",
        plan: "Questo piano attende un'approvazione; non ne è ancora stato fatto nulla:",
        patch: "Il resto del piano va cambiato, perché non tutto ha funzionato. Ciò che è nuovo attende un'approvazione; non ne è ancora stato fatto nulla:",
        in_place_of: "al posto di",
        dropped: "Non si fa più:",
        calls: "Questo attende un'approvazione prima di essere fatto:",
        held: "Questo piano è approvato e attende che qualcuno lo faccia partire:",
        unmodified: "Il piano non ha potuto essere cambiato come hai chiesto ed è rimasto com'era:",
        unread: "Dalla tua risposta non è chiaro che cosa va cambiato nell'elenco; nulla è stato fatto.",
        decide: "Rispondi sì o no qui, oppure decidi l'approvazione",
        decide_elsewhere: "È troppo lungo per essere mostrato qui per intero. Guardalo e decidi l'approvazione",
        decide_by_another: "Deve approvarlo un'altra persona, perché lo hai chiesto tu; rispondi no per ritirarlo. L'approvazione:",
        reply: "Rispondi sì o no.",
        change: ["Per cambiare l'elenco scrivi per esempio:", "senza", "anche", "Può contenere anche:"],
        decide_each: "Più cose attendono. Decidi ciascuna con la sua approvazione:",
        begin: "Per farlo partire, approvalo ancora una volta chiedendo di eseguirlo:",
        aside: "Il server si è fermato più volte di seguito mentre eseguiva solo questa richiesta, che è stata quindi messa da parte. Per continuare va ripresa:",
        restored: "Questa richiesta è stata ripristinata da un backup ed è sospesa, perché dopo il backup potrebbe essere proseguita. Occorre verificare che cosa è stato fatto, poi riprenderla o annullarla:",
        nothing: "È stato annullato; non è stato fatto nulla.",
        stopped: "È stato annullato; fin qui era stato fatto:",
        undone: "è stato annullato",
        found_done: "da una verifica successiva risulta fatto",
        found_not_done: "da una verifica successiva risulta non fatto",
    },
    AnswerPhrases {
        language: "de",
        plan: "Dieser Plan wartet auf Zustimmung; noch ist nichts davon getan:",
        patch: "Der Rest des Plans soll geändert werden, weil nicht alles gelungen ist. Das Neue wartet auf Zustimmung; noch ist nichts davon getan:",
        in_place_of: "anstelle von",
        dropped: "Wird nicht mehr getan:",
        calls: "Das wartet auf Zustimmung, bevor es getan wird:",
        held: "Dieser Plan ist genehmigt und wartet darauf, dass jemand ihn beginnen lässt:",
        unmodified: "Der Plan konnte nicht wie gewünscht geändert werden und ist, wie er war:",
        unread: "Aus Ihrer Antwort geht nicht hervor, was an der Liste zu ändern ist; nichts wurde getan.",
        decide: "Antworten Sie hier mit ja oder nein, oder entscheiden Sie die Genehmigung",
        decide_elsewhere: "Es ist zu lang, um hier ganz gezeigt zu werden. Sehen Sie es an und entscheiden Sie die Genehmigung",
        decide_by_another: "Eine andere Person muss zustimmen, da Sie darum gebeten haben; mit nein ziehen Sie es zurück. Die Genehmigung:",
        reply: "Antworten Sie mit ja oder nein.",
        change: [
            "Um die Liste zu ändern, schreiben Sie zum Beispiel:",
            "ohne",
            "auch",
            "Sie kann auch enthalten:",
        ],
        decide_each: "Mehreres wartet. Entscheiden Sie jedes mit seiner Genehmigung:",
        begin: "Damit er beginnt, genehmigen Sie ihn noch einmal und lassen ihn ausführen:",
        aside: "Der Server ist mehrmals hintereinander ausgefallen, während er nur daran gearbeitet hat; deshalb wurde dies zurückgestellt. Damit es weitergeht, muss es fortgesetzt werden:",
        restored: "Dies wurde aus einer Sicherung wiederhergestellt und ist angehalten, weil es nach der Sicherung weitergegangen sein kann. Bitte prüfen, was getan wurde; danach kann es fortgesetzt oder abgebrochen werden:",
        nothing: "Es wurde abgebrochen; nichts wurde getan.",
        stopped: "Es wurde abgebrochen; so viel war getan:",
        undone: "es wurde rückgängig gemacht",
        found_done: "eine spätere Prüfung ergab: es wurde getan",
        found_not_done: "eine spätere Prüfung ergab: es wurde nicht getan",
    },
    AnswerPhrases {
        language: "fr",
        plan: "Ce plan attend une approbation ; rien n'en a encore été fait :",
        patch: "Le reste du plan doit être changé, car tout n'a pas fonctionné. Ce qui est nouveau attend une approbation ; rien n'en a encore été fait :",
        in_place_of: "à la place de",
        dropped: "N'est plus fait :",
        calls: "Ceci attend une approbation avant d'être fait :",
        held: "Ce plan est approuvé et attend que quelqu'un le fasse commencer :",
        unmodified: "Le plan n'a pas pu être changé comme vous l'avez demandé et reste tel quel :",
        unread: "Votre réponse ne dit pas clairement ce qu'il faut changer dans la liste ; rien n'a été fait.",
        decide: "Répondez oui ou non ici, ou décidez l'approbation",
        decide_elsewhere: "C'est trop long pour être montré ici en entier. Regardez-le et décidez l'approbation",
        decide_by_another: "Une autre personne doit l'approuver, puisque vous l'avez demandé ; répondez non pour y renoncer. L'approbation :",
        reply: "Répondez oui ou non.",
        change: [
            "Pour changer la liste, écrivez par exemple :",
            "sans",
            "aussi",
            "Elle peut aussi contenir :",
        ],
        decide_each: "Plusieurs choses attendent. Décidez chacune par son approbation :",
        begin: "Pour commencer, approuvez-le encore une fois en demandant de l'exécuter :",
        aside: "Le serveur s'est arrêté plusieurs fois de suite alors qu'il ne traitait que cette demande ; elle a donc été mise de côté. Pour continuer, il faut la reprendre :",
        restored: "Cette demande a été restaurée à partir d'une sauvegarde et est suspendue, car elle a pu se poursuivre après la sauvegarde. Vérifiez ce qui a été fait, puis reprenez-la ou annulez-la :",
        nothing: "C'est annulé ; rien n'a été fait.",
        stopped: "C'est annulé ; voici ce qui avait été fait :",
        undone: "cela a été annulé",
        found_done: "après vérification, cela a été fait",
        found_not_done: "après vérification, cela n'a pas été fait",
    },
    AnswerPhrases {
        language: "es",
        plan: "Este plan espera una aprobación; todavía no se ha hecho nada de él:",
        patch: "El resto del plan debe cambiarse, porque no todo funcionó. Lo nuevo espera una aprobación; todavía no se ha hecho nada de ello:",
        in_place_of: "en lugar de",
        dropped: "Ya no se hace:",
        calls: "Esto espera una aprobación antes de hacerse:",
        held: "Este plan está aprobado y espera a que alguien lo haga empezar:",
        unmodified: "El plan no se pudo cambiar como pidió y sigue como estaba:",
        unread: "Su respuesta no dice con claridad qué hay que cambiar en la lista; no se ha hecho nada.",
        decide: "Responda sí o no aquí, o decida la aprobación",
        decide_elsewhere: "Es demasiado largo para mostrarlo aquí entero. Mírelo y decida la aprobación",
        decide_by_another: "Debe aprobarlo otra persona, porque lo ha pedido usted; responda no para retirarlo. La aprobación:",
        reply: "Responda sí o no.",
        change: ["Para cambiar la lista, escriba por ejemplo:", "sin", "también", "También puede contener:"],
        decide_each: "Varias cosas esperan. Decida cada una con su aprobación:",
        begin: "Para que empiece, apruébelo una vez más pidiendo que se ejecute:",
        aside: "El servidor se detuvo varias veces seguidas mientras solo trabajaba en esto, por lo que se dejó aparte. Para continuar hay que reanudarlo:",
        restored: "Esto se restauró desde una copia de seguridad y está detenido, porque pudo continuar después de la copia. Compruebe qué se hizo y luego reanúdelo o cancélelo:",
        nothing: "Se ha cancelado; no se ha hecho nada.",
        stopped: "Se ha cancelado; esto ya se había hecho:",
        undone: "se ha deshecho",
        found_done: "comprobado después: se hizo",
        found_not_done: "comprobado después: no se hizo",
    },
];

/// Words what the run waits for, and how to decide it.
pub(super) fn render_waiting(state: &RunState) -> String {
    let words = phrases_for(state);
    let task = state.queued.as_ref().map(|queued| queued.task.to_string()).unwrap_or_default();
    if state.aside.is_some() {
        let why = if state.copied.is_some() { words.restored } else { words.aside };
        return format!("{why} {task}");
    }
    let mut out = String::new();
    // Writing into a String cannot fail.
    if let Some(fault) = &state.unmodified {
        let _ = match fault.user_sentence(None) {
            // Its message is for the planner.
            Some(_) => writeln!(out, "{}.", words.unmodified.trim_end_matches([' ', ':'])),
            None => writeln!(out, "{} {}", words.unmodified, one_line(&fault.message)),
        };
    }
    let waits: Vec<(ApprovalId, ApprovalSubject)> = open_approvals(state)
        .map(|(id, approval)| (id, approval.matter))
        .filter(|(_, matter)| !matches!(matter, ApprovalSubject::Outcome { .. }))
        .collect();
    let held = state.is_held();
    if held || waits.iter().any(|(_, matter)| matches!(matter, ApprovalSubject::Plan { .. })) {
        let is_patch = state.plan().is_some_and(|made| made.patch.is_some());
        let waits = if is_patch { words.patch } else { words.plan };
        let _ = writeln!(out, "{}", if held { words.held } else { waits });
        write_steps(&mut out, state, words);
    }
    if let Some((call, needed)) = state.only_question_to_user().filter(|_| is_shown_whole(state)) {
        if state.unread_words.is_some() {
            let _ = writeln!(out, "{}", words.unread);
        }
        write_question(&mut out, call, needed, words);
        return out;
    }
    write_calls(&mut out, state, &waits, words);
    let _ = match waits.as_slice() {
        [] => write!(out, "{} {task}", words.begin),
        [(id, _)] if !may_requester_approve(state, *id) => write!(out, "{} {id}.", words.decide_by_another),
        [(id, _)] => {
            let how = if is_shown_whole(state) { words.decide } else { words.decide_elsewhere };
            write!(out, "{how} {id}.")
        }
        several => {
            let ids: Vec<String> = several.iter().map(|(id, _)| id.to_string()).collect();
            write!(out, "{} {}", words.decide_each, ids.join(", "))
        }
    };
    out
}

/// Whether the settings let the requester approve this: what the user alone is asked, always.
fn may_requester_approve(state: &RunState, id: ApprovalId) -> bool {
    let is_for_user = open_approvals(state).any(|(open, approval)| open == id && approval.needed.by_user);
    is_for_user || state.settings().approval.by_oneself
}

/// The calls among what waits, with their arguments.
fn write_calls(
    out: &mut String,
    state: &RunState,
    waits: &[(ApprovalId, ApprovalSubject)],
    words: &AnswerPhrases,
) {
    let calls = waits.iter().filter_map(|(_, matter)| match matter {
        ApprovalSubject::Call { call } => state.calls.get(call),
        _ => None,
    });
    for (n, call) in calls.enumerate() {
        if n == 0 {
            let _ = writeln!(out, "{}", words.calls);
        }
        let arguments = truncate_arguments(&exact_json(&call.requested.arguments));
        let (tool, scene) = (one_line(&call.requested.tool), one_line(&call.scene));
        let _ = writeln!(out, "- {tool} ({scene}): {arguments}");
    }
}

/// Writes a question to the user, with the lists that it is about and how they can be changed.
fn write_question(out: &mut String, call: &CallState, needed: &RequiredApproval, words: &AnswerPhrases) {
    // Writing into a String cannot fail.
    for why in &needed.why {
        let _ = writeln!(out, "{}", invisible::escape_text(why));
    }
    // The question about a commit has each changed row; its arguments are the same rows and their versions.
    let fields = call.requested.arguments.as_object().filter(|_| !call.is_commit).into_iter().flatten();
    for (name, value) in fields {
        match (needed.lists.get(name), value.as_array()) {
            (Some(_), Some(elements)) => {
                for element in elements {
                    let _ = writeln!(out, "- {}", one_line(element.as_str().unwrap_or_default()));
                }
            }
            _ => _ = writeln!(out, "{}: {}", one_line(name), invisible::escape_json(&exact_json(value))),
        }
    }
    out.push_str(words.reply);
    let arguments = &call.requested.arguments;
    for (name, allowed) in &needed.lists {
        let elements = arguments.get(name).and_then(Value::as_array).into_iter().flatten();
        let contained: Vec<&str> = elements.filter_map(Value::as_str).collect();
        let others: Vec<&str> =
            allowed.iter().map(String::as_str).filter(|name| !contained.contains(name)).collect();
        let [example, without, also, may_contain] = words.change;
        // A list never becomes empty.
        let removable = contained.last().filter(|_| contained.len() > 1);
        let examples = [(without, removable), (also, others.first())];
        let examples =
            examples.into_iter().filter_map(|(how, name)| Some(format!("{how} {}", one_line(name?))));
        let examples: Vec<String> = examples.collect();
        if examples.is_empty() {
            continue;
        }
        let _ = write!(out, " {example} {}.", examples.join("; "));
        if !others.is_empty() {
            let shown: Vec<String> = others.iter().take(MAX_OFFERED).map(|name| one_line(name)).collect();
            let more = if others.len() > MAX_OFFERED { ", …" } else { "." };
            let _ = write!(out, "\n{may_contain} {}{more}", shown.join(", "));
        }
    }
}

/// Returns whether the text shows everything that waits in full.
pub(super) fn is_shown_whole(state: &RunState) -> bool {
    let fits =
        |arguments: &Value| invisible::escape_json(&exact_json(arguments)).chars().count() <= MAX_ARGUMENTS;
    let steps = state.plan().map(|made| made.plan.steps.as_slice()).unwrap_or_default();
    let prepared = || steps.iter().flat_map(|step| &step.prepared_calls);
    open_approvals(state).all(|(_, approval)| match approval.matter {
        ApprovalSubject::Plan { .. } => prepared().all(|call| fits(&Value::Object(call.arguments.clone()))),
        ApprovalSubject::Call { call } => {
            state.calls.get(&call).is_none_or(|call| fits(&call.requested.arguments))
        }
        ApprovalSubject::Outcome { .. } => true,
    })
}

/// Words what a cancelled run had done.
pub(super) fn render_stopped(state: &RunState) -> String {
    let words = phrases_for(state);
    let done = |call: &&CallState| {
        call.requested.effect == Effect::Write
            && call.attempts > 0
            && call.undoes.is_none()
            && matches!(
                &call.status,
                CallStatus::Done { outcome: Outcome::Ok { .. } | Outcome::Unknown { .. } }
            )
    };
    let mut done = state.calls.values().filter(done).peekable();
    if done.peek().is_none() {
        return words.nothing.to_owned();
    }
    let mut out = words.stopped.to_owned();
    for call in done {
        let (tool, scene) = (one_line(&call.requested.tool), one_line(&call.scene));
        let unknown = matches!(&call.status, CallStatus::Done { outcome: Outcome::Unknown { .. } });
        let mark = if unknown { " (?)" } else { "" };
        let arguments = truncate_arguments(&exact_json(&call.requested.arguments));
        // Writing into a String cannot fail.
        let _ = write!(out, "\n- {tool} ({scene}): {arguments}{mark}");
        if state.is_undone(call) {
            let _ = write!(out, ": {}", words.undone);
        }
    }
    out
}

/// An answer with a line for each write whose outcome was unknown when it was given, and that a person resolved.
pub(super) fn with_findings(state: &RunState, answer: &str) -> String {
    let words = phrases_for(state);
    let mut out = answer.to_owned();
    for approval in state.approvals.values() {
        let ApprovalSubject::Outcome { call } = approval.matter else { continue };
        let finding = match &approval.decided {
            Some((Decision::Done, _)) => words.found_done,
            Some((Decision::NotDone, _)) => words.found_not_done,
            _ => continue,
        };
        let Some(call) = state.calls.get(&call) else { continue };
        // Writing into a String cannot fail.
        let _ = write!(out, "\n{}: {finding}", state.describe_call(call));
    }
    out
}

/// Writes the steps of the current plan, one per line.
fn write_steps(out: &mut String, state: &RunState, words: &AnswerPhrases) {
    let Some(made) = state.plan() else { return };
    let patch = made.patch.as_ref();
    // A removed step is in the version that planned it, and in no state of a step any more.
    let planned = || state.plans.iter().rev().flat_map(|made| &made.plan.steps);
    let named = |number: &u32| {
        let step = planned().find(|step| step.step_number == *number);
        step.map(|step| format!("{number}. {}: {}", one_line(step.label()), one_line(&step.purpose)))
    };
    for step in &made.plan.steps {
        let tools: Vec<String> = step.expected_tools.iter().map(|tool| one_line(tool)).collect();
        let tools = if tools.is_empty() { String::new() } else { format!(" [{}]", tools.join(", ")) };
        let (number, scene, purpose) = (step.step_number, one_line(step.label()), one_line(&step.purpose));
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{number}. {scene}: {purpose}{tools}");
        let old = patch.and_then(|patch| patch.replaced.iter().find(|(_, new)| **new == number));
        if let Some(old) = old.and_then(|(old, _)| named(old)) {
            let _ = writeln!(out, "   {} {old}", words.in_place_of);
        }
        for call in &step.prepared_calls {
            let arguments = truncate_arguments(&exact_json(&Value::Object(call.arguments.clone())));
            let _ = writeln!(out, "   {}: {arguments}", one_line(&call.tool));
        }
    }
    for old in patch.iter().flat_map(|patch| &patch.removed).filter_map(named) {
        let _ = writeln!(out, "{} {old}", words.dropped);
    }
}

fn phrases_for(state: &RunState) -> &'static AnswerPhrases {
    let told = state.started.as_ref().and_then(|started| started.language.as_deref());
    let language = told.or_else(|| language::detect(state.request()));
    let own = PHRASES.iter().find(|words| Some(words.language) == language);
    let [default, ..] = &PHRASES;
    own.unwrap_or(default)
}

/// Arguments for people: truncated if too long, with invisible characters escaped.
fn truncate_arguments(text: &str) -> String {
    let text = invisible::escape_json(text);
    match text.char_indices().nth(MAX_ARGUMENTS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_complete_and_listed_once() {
        for (number, words) in PHRASES.iter().enumerate() {
            let all = [
                words.plan, words.patch, words.calls, words.held, words.unmodified, words.unread,
                words.decide, words.decide_elsewhere, words.decide_by_another, words.decide_each,
                words.nothing, words.stopped, words.found_done, words.found_not_done,
            ];
            assert!(all.iter().all(|said| said.len() > 20), "{}", words.language);
            assert!(
                !words.in_place_of.is_empty() && !words.undone.is_empty() && words.dropped.ends_with(':')
            );
            for other in &PHRASES[number + 1..] {
                assert_ne!(words.language, other.language);
                assert!(all.iter().all(|said| ![other.plan, other.calls, other.decide].contains(said)));
            }
        }
    }
}
