//! Cues in French, German and Spanish, whose clauses are not read: any of them leaves a write in doubt.

use crate::llm::offline::lexicon;
use crate::llm::offline::pattern::{Patterns, any, patterns};
use crate::llm::offline::text::Token;

/// Negations, conditions, reports and possibilities that are words of no other language.
const CUES: &str = "pas jamais aucun aucune sans sauf rien inutile interdit interdite interdiction evitez eviter arretez arreter quand \
lorsque lorsqu dit disait demandait rappelle rappelez pourrais pourrait supposons hier \
nicht kein keine keinen keinem keiner nie niemals ohne wenn falls sobald sofern solange nachdem bevor sagte gesagt gestern vielleicht \
angenommen konnte vermeide verboten erinnere niemand weder ausser selbst hormis excepte moi-meme excepto \
nunca jamas tampoco nadie ninguno ninguna ningun cuando dijo prohibido prefiero recuerdame recuerda ayer quizas quiza podria podriamos \
ojala hemos";

/// Further ones, which are also words of other languages: by the language of the request.
const OWN_CUES: &[(&str, &str)] = &[
    ("fr", "si ai avons avez ont ne n ni evite arrete non plus cas condition est ete etait"),
    ("de", "habe haben hat hast ob nein lieber ist war wurde wurden worden"),
    ("es", "no si sin he has ha han ni nada evita evite deja mejor salvo caso esta estaba fue sido"),
    ("pt", "no nao se sem nem nada evite quando disse ontem talvez"),
];

/// "N'oublie pas de …", "vergiss nicht, …", "no dudes en …", "¿por qué no …?": these ask for something.
const URGES: &str = "oublie oubliez oublier hesite hesitez pourquoi vergiss vergessen zogere zogern warum olvides olvide dudes dude porque";

/// Words of a negation that urges.
const NEGATIONS: &[&str] = &["ne", "n", "pas", "nicht", "no"];

/// How requests begin in these languages, beside the verb that is asked for.
const LEADS: &str = "s il te vous plait svp peux pouvez pourriez voudrais veux aimerais faudrait devrais devriez oublie oubliez hesite hesitez pourquoi besoin \
souhaite bonjour salut merci bitte kannst konnen konnten konntest mochte mochten will wollen brauche wurde wurden vergiss zogere warum \
nicht hallo guten wurdest solltest hatte gern puedes puede podrias quiero quisiera queria necesito favor olvides olvide dudes dude hola buenos buenas gustaria no ne n \
pas por que en me nous uns mir se lo la nos stp tu vous du sie dass mal eben einmal kurz porfa usted veuillez voulez gibt hay";

/// Whether one of the words leaves a write in doubt, in a request of `language`.
pub(super) fn has_foreign_cue(words: &[&Token], language: Option<&str>) -> bool {
    let own = OWN_CUES.iter().find(|(code, _)| Some(*code) == language).map_or("", |(_, cues)| *cues);
    let urges = words.iter().any(|word| word.among(URGES)) || has_why_not(words);
    if (!urges && forbids_in_spanish(words))
        || supposes_in_french(words)
        || gives_thanks(words)
        || opens_with_preterite(words)
    {
        return true;
    }
    words.iter().any(|word| {
        let is_cue = word.among(CUES) || word.among(own);
        let is_name = word.capital() && !word.first;
        is_cue && !is_name && !(urges && word.is(NEGATIONS))
    })
}

/// "No canceles …", also where the words are too few to tell their language.
fn forbids_in_spanish(words: &[&Token]) -> bool {
    let [first, second, ..] = words else { return false };
    let is_form = second.norm.len() > 4 && ["es", "as"].iter().any(|end| second.norm.ends_with(end));
    first.is(&["no"]) && is_form && !second.norm.ends_with("ies")
}

/// "Ya cancelé …", "cerró …", "fermé …": the first word with a meaning ends as what is done, and not as an order.
fn opens_with_preterite(words: &[&Token]) -> bool {
    let is_small =
        |word: &Token| lexicon::is_stop_word(&word.norm) || is_foreign_lead(word) || word.is(&["ya"]);
    let first = words.iter().find(|word| !is_small(word));
    first.is_some_and(|verb| verb.norm.len() > 4 && verb.lower.ends_with(['é', 'ó']))
}

/// "Gracias por cancelar …", "merci d'avoir annulé …", "danke, dass …": what is thanked for is done. "Merci de fermer …" asks.
fn gives_thanks(words: &[&Token]) -> bool {
    let is_infinitive = |word: &Token| ["ar", "er", "ir"].iter().any(|end| word.norm.ends_with(end));
    let thanks = |at: usize| {
        any(words, at, patterns!["merci d avoir", "merci pour", "danke dass/fur/furs"]).is_some()
            || any(words, at, patterns!["gracias por"])
                .and_then(|end| words.get(end))
                .is_some_and(|verb| verb.norm.len() > 4 && is_infinitive(verb))
    };
    (0..words.len()).any(thanks)
}

/// "S'il pleut …"; "s'il te plaît" is polite.
fn supposes_in_french(words: &[&Token]) -> bool {
    let is_polite = |word: Option<&&Token>| word.is_some_and(|word| word.is(&["te", "vous"]));
    (1..words.len())
        .any(|at| words[at - 1].is(&["s"]) && words[at].is(&["il", "ils"]) && !is_polite(words.get(at + 1)))
}

/// "¿Por qué no …?".
fn has_why_not(words: &[&Token]) -> bool {
    words.windows(3).any(|three| three[0].is(&["por"]) && three[1].is(&["que"]) && three[2].is(&["no"]))
}

/// Whether a word may stand before the verb of a request in one of these languages.
pub(in crate::llm::offline) fn is_foreign_lead(word: &Token) -> bool {
    word.norm.split('-').all(|part| LEADS.split_whitespace().any(|lead| lead == part))
}

/// Whether a word says that something is, was or can be done, and does not ask for it: "er kann …".
pub(super) fn is_modal(word: &Token) -> bool {
    word.is(&["wird", "habe", "hab", "kann", "muss"])
}

/// Openings of polite requests.
static ASKS: &Patterns = patterns![
    "peux/pourrais/veux tu",
    "pouvez/pourriez/voulez vous",
    "peux-tu/pourrais-tu/veux-tu/pouvez-vous/pourriez-vous/voulez-vous",
    "tu peux/pourrais",
    "vous pouvez/pourriez",
    "est-ce que tu/vous peux/pourrais/pouvez/pourriez",
    "kannst/konntest/wurdest du",
    "konnen/konnten/wurden sie",
    "puedes/podrias/puede/podria",
];

/// Words of questions, and of what is to be told.
const TELLS: &str = "dire montrer afficher savoir expliquer verifier voir si combien quand quel quelle quels quelles comment pourquoi \
sagen zeigen nennen wissen erklaren prufen ob wie wieviel wieviele wann welche welcher wer was warum \
decir decirme mostrar mostrarme ensenarme saber explicar comprobar cuanto cuantos cuantas cuando cual cuales como quien que";

/// Whether a question in one of these languages asks the addressee to act and not to tell something.
pub(in crate::llm::offline) fn asks_to_act(words: &[&Token]) -> bool {
    any(words, 0, ASKS).is_some() && !words.iter().any(|word| word.among(TELLS))
}
