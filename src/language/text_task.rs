//! Detects tasks on a text: background tasks of chat programs (a title, tags, follow-up questions) and tasks
//! of users (translate, correct, summarise). The text is the object of the task, not a request.

use super::pattern::{Patterns, any, find, patterns, strip_fillers};
use super::text::{self, Token};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextTask {
    /// Verb in the name of a tool dedicated to this task, if there is one.
    pub tool_verb: Option<&'static str>,
    /// Whether a program requests it, so that no person reads the reply.
    pub for_program: bool,
}

/// Maximum number of sentences searched for a task.
const MAX_SENTENCES: usize = 16;

/// Tags and headings of prompts written by programs.
const PROMPT_MARKERS: &[&str] = &[
    "### task", "### guidelines", "### chat history", "<chat_history>", "<chat-history>", "<conversation>",
    "<messages>", "<message_history>", "<dialogue>", "<transcript>", "<chat>", "<user_message>",
    "<text_to_translate>",
];

/// Verbs whose object is always a text, each with the name of a tool dedicated to it.
static TEXT_ONLY_VERBS: &[(&Patterns, &str)] = &[
    (
        patterns!["translate/traduci/traducimi/traducete/tradurre/traduca/ubersetze/traduis/traduce"],
        "translate",
    ),
    (patterns!["proofread"], "proofread"),
    (patterns!["rewrite/riscrivi/riscrivere/riscrivimi"], "rewrite"),
    (patterns!["paraphrase/parafrasa/parafrasare"], "paraphrase"),
    (patterns!["rephrase/reword/riformula/riformulare"], "rephrase"),
];

/// Verbs whose object may be a text.
const TEXT_VERBS: &str = "assign/determine/identify/assegna/attribuisci/determina/identifica/correct/fix/improve/polish/rewrite/shorten/simplify/summarize/summarise/edit/revise/format/classify/categorize/categorise/tag/label/extract/analyze/analyse/complete/continue/convert/title/spellcheck/\
correggi/correggere/correggimi/sistema/migliora/riscrivi/riscrivere/accorcia/semplifica/riassumi/riassumere/riassumimi/sintetizza/rivedi/formatta/classifica/categorizza/estrai/analizza/completa/continua/rendi/resume/corrige/korrigiere";

/// Verbs for which a text in the same sentence or after a colon is enough.
const DIRECT_TEXT_VERBS: &str = "correct/improve/rewrite/summarize/summarise/shorten/simplify/correggi/migliora/riscrivi/riassumi/sintetizza/accorcia/semplifica";

/// Verbs that transform or judge the user's text.
const TRANSFORM_VERBS: &str = "return/output/turn/convert/transform/detect/score/rate/grade/evaluate/assess/judge/rank/parse/compress/condense/expand/reformulate/transliterate/clean/normalize/normalise/anonymize/anonymise/redact/mask/moderate/flag/annotate/predict/infer/repeat/echo/encode/decode/reformat/rephrase/paraphrase/proofread/translate/\
restituisci/restituire/trasforma/trasformare/converti/convertire/rileva/rilevare/individua/individuare/valuta/valutare/giudica/giudicare/estrarre/riformula/riformulare/ripeti/ripulisci/anonimizza/normalizza/etichetta/etichettare/classificare/tradurre/traduci/parafrasa";

/// Verbs of returning output to a program.
const OUTPUT_VERBS: &str = "return/output/generate/produce/restituisci/produci/genera/extract/estrai";

/// Phrases for the user's text that contain no noun.
static USER_TEXT_PATTERNS: &Patterns = patterns![
    "what/whatever/everything/anything/all that? the/a? user/users/they/people write/writes/say/says/type/types/send/sends/enter/enters/input/inputs",
    "cio/quello/quanto/tutto cio/quello/quanto? che? l? utente scrive/dice/invia/manda/digita",
    "cio/quello/quanto/tutto cio/quello/quanto? che? scrive/dice/invia/manda/digita l? utente",
];

/// Text qualities to detect or fix. A role named after one of them does only that.
const TEXT_QUALITIES: &str = "grammar spelling spell punctuation style sentiment intent tone topic keyword title query spam \
toxicity text sentence language headline tag";

/// Kinds of text, beside [`TRANSIENT_TEXT_NOUNS`].
const OTHER_TEXT_NOUNS: &str = "text sentence sentences passage email e-mail mail message messages letter article phrase prompt \
query history words draft discussion testo frase frasi brano messaggio messaggi lettera articolo \
parole bozza input";

/// Kinds of text that no system stores.
const TRANSIENT_TEXT_NOUNS: &str = "grammar spelling punctuation wording conversation chat dialogue transcript paragraph essay \
grammatica ortografia punteggiatura conversazione discussione dialogo paragrafo cronologia";

/// Words that point to a text.
const DEMONSTRATIVES: &str = "following this these below above seguente seguenti questo questa questi queste sottostante user \
user's utente";

const GENERATION_VERBS: &str = "generate/create/suggest/propose/write/provide/produce/name/craft/make/give/come/genera/generare/crea/creare/suggerisci/suggerire/proponi/proporre/scrivi/scrivere/fornisci/inventa/dai/dammi/indica";

/// Short texts about another one, beside [`PROGRAM_ONLY_NOUNS`].
const OTHER_GENERATED_NOUNS: &str = "title titles headline tag emojis caption summary translation labels titolo titoli etichetta label \
riassunto sintesi traduzione hashtag didascalia";

/// The generated nouns that name a text.
const TITLE_NOUNS: &str = "title titles headline headlines titolo titoli";

/// Outputs that only programs request.
const PROGRAM_ONLY_NOUNS: &str =
    "questions follow-ups followups tags keywords hashtags queries domande etichette chiave emoji";

/// What a chatbot is to return alone, beside generated nouns.
const FINISHED_OUTPUTS: &str = "corrected rewritten translated label category corretto tradotto riscritta categoria query json intent sentiment \
score rating topic yes true intento punteggio sentimento argomento";
/// Roles of chatbots that only work on texts.
const TEXT_ROLES: &str = "translator translation tagger tagging summarizer summariser summarization proofreader proofreading \
corrector classifier titling rewriter paraphraser autocompletion autocomplete copyeditor labeler traduttore \
traduzione correttore riassuntore classificatore titolista etichettatore";

fn is_text_noun(token: &Token) -> bool {
    token.among(TRANSIENT_TEXT_NOUNS) || token.among(OTHER_TEXT_NOUNS)
}

/// Whether the word is a short text about another one, such as a title.
fn is_generated_noun(token: &Token) -> bool {
    token.among(PROGRAM_ONLY_NOUNS) || token.among(OTHER_GENERATED_NOUNS)
}

/// Detects a text task in the request or in the chatbot's instructions.
pub(crate) fn detect_text_task(request: &str, instructions: &str) -> Option<TextTask> {
    if !instructions.trim().is_empty() && describes_text_tool(instructions) {
        return Some(TextTask { tool_verb: None, for_program: true });
    }
    let marked = has_prompt_marker(request);
    let tokens = text::tokens(request);
    let sentences = sentences(&tokens);
    // A program's prompt may state its task anywhere; a user starts with it.
    let max = if marked { MAX_SENTENCES } else { 2 };
    let found = sentences.iter().take(max).find_map(|sentence| sentence_task(sentence));
    let role = || {
        sentences
            .first()
            .is_some_and(|s| assigns_text_role(&word_tokens(s)) || opens_with_given_context(&word_tokens(s)))
    };
    let found = found.map(|task| TextTask { for_program: marked || task.for_program, ..task });
    found.or_else(|| (marked || role()).then_some(TextTask { tool_verb: None, for_program: true }))
}

/// Whether a text has a tag or heading of prompts written by programs.
fn has_prompt_marker(text: &str) -> bool {
    // All of them begin with one of these, and most texts have neither.
    let may_have = |text: &str| text.bytes().any(|byte| matches!(byte, b'#' | b'<'));
    let text = text::shorten(text, 16_000);
    let lower = may_have(text).then(|| text.to_lowercase());
    lower.is_some_and(|lower| PROMPT_MARKERS.iter().any(|mark| lower.contains(mark)))
}

/// Whether the instructions make the chatbot a text tool, so that the user's words are its object.
fn describes_text_tool(instructions: &str) -> bool {
    let lower = instructions.to_lowercase();
    if lower.contains("### task") {
        return true;
    }
    let tokens = text::tokens(instructions);
    let sentences = sentences(&tokens);
    sentences.iter().take(MAX_SENTENCES).enumerate().any(|(n, sentence)| {
        let all = word_tokens(sentence);
        // "If the user writes in another language, translate your answer" describes the chatbot's style.
        let manners = all.iter().take(12).any(|t| {
            t.is(&["if", "when", "se", "quando", "your", "tue", "tua", "answers", "replies", "risposte"])
        });
        let tasked = find(
            &all,
            3,
            patterns![
                "your only/sole/main? task/job/role/goal/purpose is to?",
                "il tuo unico/solo? compito/ruolo/scopo/lavoro è di?",
                "you must/will/should/only?",
            ],
        );
        let own = tasked.filter(|(from, _)| !manners || !all[*from].is(&["you"]));
        if let Some((_, at)) = own
            && (text_only_verb(&all[at..]).is_some()
                || is_text_task(&all[at..], sentence)
                || generates_short_text(&all[at..], sentence))
        {
            return true;
        }
        assigns_text_role(&all)
            || restricts_output(&all)
            || !manners && transforms_user_text(&all, sentence)
            || n < 3 && (opens_with_given_text(&all) || !manners && sentence_task(sentence).is_some())
    })
}

/// Whether the user's words are transformed or judged instead of obeyed: "Return the user's text without
/// mistakes", "you score whatever the user writes".
fn transforms_user_text(all: &[&Token], sentence: &[Token]) -> bool {
    let begins = |n: usize| {
        let Some(before) = n.checked_sub(1).and_then(|b| all.get(b)) else { return true };
        let between = sentence.iter().filter(|t| t.start >= before.end && t.end <= all[n].start);
        before.is(&[
            "you", "to", "then", "and", "e", "poi", "must", "will", "should", "only", "please", "di", "tu",
        ]) || between.into_iter().any(|t| matches!(t.raw.as_str(), "," | ":" | "-" | "–"))
    };
    let does = |n: &usize| any(all, *n, patterns![TRANSFORM_VERBS, TEXT_VERBS]).is_some();
    (0..all.len()).filter(does).filter(|n| begins(*n)).any(|n| {
        let near: Vec<&Token> = all[n + 1..].iter().take(12).copied().collect();
        let named = near.iter().position(|t| is_text_noun(t)).is_some_and(|at| {
            let user = |t: &&&Token| t.is(&["user", "user's", "users", "utente", "incoming", "input"]);
            near.iter().take(at + 4).any(|t| user(&t))
        });
        let json =
            any(all, n, patterns![OUTPUT_VERBS]).is_some() && near.iter().take(4).any(|t| t.is(&["json"]));
        named || json || find(&near, 4, USER_TEXT_PATTERNS).is_some()
    })
}

/// Whether a sentence begins like "Given a message, …".
fn opens_with_given_text(all: &[&Token]) -> bool {
    any(
        all,
        0,
        patterns!["given a/an/the/this/each/any", "for each/every", "dato/data un/una/il/la", "per ogni"],
    )
    .is_some_and(|at| all.iter().skip(at).take(2).any(|t| is_text_noun(t)))
}

/// Whether a noun is the agent of a text verb: "classifier", "extractor".
fn is_agent_noun(noun: &Token) -> bool {
    let norm = noun.norm.as_str();
    let Some(stem) = norm.strip_suffix("er").or_else(|| norm.strip_suffix("or")) else { return false };
    let stem = stem.strip_suffix('i').unwrap_or(stem);
    let doubled = stem.as_bytes().windows(2).last().is_some_and(|pair| pair[0] == pair[1]);
    let single = if doubled { &stem[..stem.len() - 1] } else { stem };
    let verbs = || TEXT_VERBS.split('/').chain(TRANSFORM_VERBS.split('/'));
    let is = |verb: &str| verb == single || verb.len() == stem.len() + 1 && verb.starts_with(stem);
    stem.len() >= 3 && verbs().any(is)
}

/// Whether a sentence restricts the output: "Reply only with the title", "do not answer the question".
fn restricts_output(all: &[&Token]) -> bool {
    let only = find(
        all,
        6,
        patterns![
            "reply/respond/answer/output/return/write/give/provide only/just/nothing with/but? the/a/an?",
            "only reply/respond/answer/output/return/write/give with? the/a/an?",
            "rispondi/restituisci/scrivi/fornisci solo/soltanto/esclusivamente con? il/la/le/i?",
            "output/return the",
        ],
    );
    let manner = |at: usize| all.get(at).is_some_and(|t| t.is(&["in", "to", "if", "when", "about", "su"]));
    let made = only.is_some_and(|(_, at)| {
        !manner(at) && all.iter().skip(at).take(5).any(|t| is_generated_noun(t) || t.among(FINISHED_OUTPUTS))
    });
    let silent = find(all, 3, patterns!["do not answer/follow/respond/execute/reply to? the/any? user/question/questions/request/requests/instructions/message/it/them", "don t answer/follow/respond to? the user/question/request/message", "non rispondere/eseguire alla/alle/la? domanda/domande/richiesta/utente"]).is_some();
    made || silent
}

/// Whether a sentence assigns the role of a text tool: "You are a translator".
fn assigns_text_role(all: &[&Token]) -> bool {
    let Some((_, at)) = find(
        all,
        4,
        patterns![
            "you are/re a/an/the",
            "act as a/an/the",
            "sei un/una/il",
            "agisci come un/una",
            "i want you to act as a/an",
        ],
    ) else {
        return false;
    };
    let firm = "agency company office department bureau firm for of at agenzia ufficio";
    let names = all
        .iter()
        .skip(at)
        .take(6)
        .take_while(|t| !t.is(&["for", "of", "at", "who", "that", "di", "per", "che", "della"]));
    let names: Vec<&&Token> = names.collect();
    names.iter().enumerate().any(|(n, t)| {
        let next = names.get(n + 1);
        let maker = next.is_some_and(|t| {
            t.is(&["maker", "generator", "generation", "writer", "bot", "creator", "model"])
        });
        let crafts = t.among(TEXT_QUALITIES)
            && next.is_some_and(|t| {
                t.norm.len() > 5
                    && (t.norm.ends_with("er") || t.norm.ends_with("or"))
                    && !t.is(&["teacher", "tutor"])
            });
        crafts
            || (t.among(TEXT_ROLES) || is_agent_noun(t)) && !next.is_some_and(|t| t.among(firm))
            || t.is(&["title", "query", "tag", "keyword", "headline"]) && maker
            || t.is(&["generatore", "creatore"]) && all.iter().any(|t| is_generated_noun(t))
    }) || makes_titles(&all[at..])
}

/// Whether a role ends in making titles: "… assistant tasked with generating concise titles".
fn makes_titles(role: &[&Token]) -> bool {
    const MAKING: &str = "generate generates generating create creates creating write writes writing produce produces \
producing determine determines determining crafting crafts genera crea scrive scrivere generare creare inventa inventare";
    let making = role.iter().take(14).position(|t| t.among(MAKING));
    making.is_some_and(|at| role[at + 1..].iter().take(4).any(|t| t.among(TITLE_NOUNS)))
}

/// Whether a sentence begins like "Given the following conversation, …".
fn opens_with_given_context(all: &[&Token]) -> bool {
    let opened = any(
        all,
        0,
        patterns![
            "given/considering/using the/this",
            "based on the/this/my/our?",
            "data/considerata la/questa",
            "dato/considerato il/questo",
            "in base al/alla/a/all",
        ],
    );
    opened.is_some_and(|at| {
        all.iter().skip(at).take(4).any(|t| {
            t.among(TRANSIENT_TEXT_NOUNS) || t.is(&["text", "messages", "testo", "messaggi", "history"])
        })
    })
}

/// Splits tokens into sentences and lines.
fn sentences(tokens: &[Token]) -> Vec<&[Token]> {
    let ends = |t: &Token| matches!(t.raw.as_str(), "." | "!" | "?" | "\n");
    let parts = tokens.split(ends);
    parts.filter(|part| part.iter().any(|t| t.word)).collect()
}

fn word_tokens(sentence: &[Token]) -> Vec<&Token> {
    sentence.iter().filter(|t| t.word).collect()
}

/// The task that a sentence sets.
fn sentence_task(sentence: &[Token]) -> Option<TextTask> {
    let all = word_tokens(sentence);
    let all = strip_fillers(&all);
    let polite = any(
        all,
        0,
        patterns![
            "can/could/would/will you please/kindly/help? me?",
            "puoi/potresti/potete/mi puoi/potresti?",
            "i d/would/want/need like? you? to",
            "vorrei che tu?",
            "task",
            "help me to?",
            "mi puoi/potresti",
            "aiutami a",
            "your task is to",
        ],
    );
    let own = polite.map_or(all, |at| strip_fillers(&all[at..]));
    if let Some(verb) = text_only_verb(own) {
        return (own.len() > 1).then_some(TextTask { tool_verb: Some(verb), for_program: false });
    }
    if is_text_task(own, sentence) {
        let sums =
            own[0].is(&["summarize", "summarise", "riassumi", "riassumere", "sintetizza", "riassumimi"]);
        return Some(TextTask { tool_verb: sums.then_some("summarize"), for_program: false });
    }
    generates_short_text(own, sentence).then_some(TextTask { tool_verb: None, for_program: true })
}

fn text_only_verb(own: &[&Token]) -> Option<&'static str> {
    TEXT_ONLY_VERBS.iter().find(|(verbs, _)| any(own, 0, verbs).is_some()).map(|w| w.1)
}

/// Whether the words set a task on an existing text: "Correct the grammar of …", "summarise this
/// conversation".
fn is_text_task(own: &[&Token], sentence: &[Token]) -> bool {
    let check = any(
        own,
        0,
        patterns![
            "check/verify/controlla/verifica/correct/fix/correggi the/my/this/la/l/il/mia? grammar/spelling/punctuation/grammatica/ortografia/punteggiatura",
        ],
    );
    if check.is_some() {
        return true;
    }
    if any(own, 0, patterns![TEXT_VERBS]).is_none() {
        return false;
    }
    let near: Vec<&&Token> = own.iter().skip(1).take(7).collect();
    let these = near.iter().take(5).any(|t| t.among(DEMONSTRATIVES));
    let named = near.iter().any(|t| is_text_noun(t));
    // "Correct this: …".
    let behind = sentence.iter().skip_while(|t| t.start < own[0].end);
    let mark = behind.clone().filter(|t| t.word).take(2).last().map(|t| t.end);
    let colon = |t: &Token| matches!(t.raw.as_str(), ":" | "\"" | "“" | "«");
    let at_once = any(own, 0, patterns![DIRECT_TEXT_VERBS]).is_some()
        && (own.get(1).is_some_and(|t| t.among(DEMONSTRATIVES)) || own.len() == 1)
        && behind.clone().any(|t| colon(t) && mark.is_none_or(|end| t.start <= end + 1));
    let quoted = behind.clone().any(colon);
    at_once
        || sums_up_as_title(own)
        || named && (these || quoted)
        || near.iter().any(|t| t.among(TRANSIENT_TEXT_NOUNS))
}

/// Whether the words are like "Summarize the session as a 10-word title".
fn sums_up_as_title(own: &[&Token]) -> bool {
    let verb = any(own, 0, patterns!["summarize/summarise/riassumi/riassumere/sintetizza"]);
    let rest = verb.map_or(&own[..0], |at| &own[at..own.len().min(at + 9)]);
    let title = rest.iter().position(|t| t.among(TITLE_NOUNS)).unwrap_or(0);
    rest[..title].iter().any(|t| t.is(&["as", "into", "in", "to", "come"]))
}

/// Whether the words ask for a short text about another: "Generate a concise title for …", "name 1-3 broad
/// tags …", "suggest 3-5 questions".
fn generates_short_text(own: &[&Token], sentence: &[Token]) -> bool {
    if any(own, 0, patterns![GENERATION_VERBS]).is_none() {
        return false;
    }
    let links = [
        "for", "of", "about", "with", "to", "per", "di", "su", "con", "called", "titled", "that", "and", "e",
        "on", "in", "from", "da",
    ];
    let up_to = |t: &&&Token| t.is(&["up", "to", "at", "with", "of", "word", "words", "per"]);
    let Some(at) = own.iter().skip(1).take(9).position(|t| is_generated_noun(t)).map(|at| at + 1) else {
        return false;
    };
    let linked = own[1..at].iter().filter(|t| !up_to(t)).any(|t| t.is(&links));
    if linked {
        return false;
    }
    let rest = &own[at + 1..];
    let of_text = rest.iter().take(14).any(|t| {
        is_text_noun(t)
            || t.among(DEMONSTRATIVES)
            || t.is(&["next", "themes", "themselves", "topic", "summarizing", "categorizing"])
    });
    let colon = sentence.iter().any(|t| t.raw == ":");
    of_text
        || colon
        || own[at].among(PROGRAM_ONLY_NOUNS) && !own[0].is(&["give", "make", "dammi", "dai", "name"])
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn markers_are_found_in_any_text(
            text in "([#< ]{0,4}(TASK|guidelines|chat_history|Transcript|chat|Messages|İK)[> ]{0,2}){0,4}|(?s).{0,40}"
        ) {
            let lower = text.to_lowercase();
            let marked = PROMPT_MARKERS.iter().any(|mark| lower.contains(mark));
            proptest::prop_assert_eq!(has_prompt_marker(&text), marked);
        }
    }

    #[test]
    fn programs_mark_their_prompts() {
        for marker in PROMPT_MARKERS {
            assert!(has_prompt_marker(&format!("Please. {} now", marker.to_uppercase())), "{marker}");
        }
    }
}
