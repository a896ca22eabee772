//! Detects the language of a text.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::words;

/// The weight of each listed word for each language, in their order: 1 if it is frequent there, and 2 more if it
/// occurs in no other.
static INDEX: LazyLock<HashMap<&'static str, [u32; WORDS.len()]>> = LazyLock::new(|| {
    let mut index = HashMap::<_, [u32; WORDS.len()]>::new();
    for (lists, worth) in [(WORDS, 1), (SURE, 2)] {
        for (language, (_, list)) in lists.iter().enumerate() {
            for word in list.split_whitespace() {
                // A word that is twice in a list counts once; bits are not added twice.
                index.entry(word).or_default()[language] |= worth;
            }
        }
    }
    index
});

/// Frequent and distinctive words by language. A word in several lists counts for each.
const WORDS: &[(&str, &str)] = &[
    (
        "it",
        "il lo la gli le un una uno di del della dei delle al alla allo ai dal dalla dalle nel nella sul sulla e ed è o che chi non per con su da in a \
sono sei siamo hai abbiamo avete hanno mi ti ci si ne me te anche come dove quando quanto quanti quante quale quali qual cosa questo questa \
quello quella mio mia miei mie tuo tua oggi domani dopodomani ieri vorrei voglio puoi posso devo fa fare dimmi mostrami grazie ciao buongiorno salve \
poi prima dopo infine inoltre giorno giorni settimana giugno luglio gennaio febbraio marzo aprile maggio agosto settembre ottobre novembre \
dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica più perché perfetto tempo meteo ferie ho fra tra dalle alle due tre sì \
numero rinnova prestito ordine annulla cancella prenota richiesta cerca aggiungi elimina città ad ed vendi richiedi chiedi \
magazzino prezzo libro lascia \
l i c adesso subito stasera sera mattina pomeriggio mese anno mostra elenca dammi manda invia apri chiudi blocca sblocca sposta disdici \
riporta restituisci presta ordina compra paga ricarica segnala togli metti prendi fammi aiutami aiuto anticipa posticipa rimanda libera \
conferma controlla trova scrivi buonasera sto sta stanno accordo va bene niente tutto tutti tutte conto saldo carta macchina auto visita \
medico libri prestiti sala riunione richieste festivi piove nevica freddo caldo danno costa mancano restano malato soldi no",
    ),
    (
        "en",
        "the an a of to in on at for from by with is are was be am i you he she it we they my your me and or not what which who where when how \
many much this that these those do does did can could would should will please thanks thank hello hi want need like tell show give get then \
also after before first finally today tomorrow yesterday day days week june july january february march april may august september october \
november december monday tuesday wednesday thursday friday saturday sunday about until have has off there any \
weather forecast number order cancel renew book loan find add city request as take move change \
his her its all never mind back up out down good morning evening afternoon night help stop agreed right list send lend return block \
unblock sell buy pay report open close lock unlock bring put keep set leave holidays public requests left account balance card car room \
meeting doctor visit price stock restock sales overdue books loans rain raining snow cold warm sunny sick free everything nothing only \
more im don cost no",
    ),
    (
        "fr",
        "le la les l un une des de du au aux et est dans pour que qui ne pas sur je tu il elle nous vous mon ma mes quel quelle quels combien où \
avec ce cette ces demain aujourd hui bonjour merci puis ensuite aussi jours semaine juin juillet janvier lundi mardi mercredi jeudi vendredi \
samedi dimanche voudrais veux fait temps suis j à être oui non congés congé annule annulez demande demandez météo février août aide résume résumez quelles \
en a ai as ont y ou se sa son ses leur nos vos votre notre mais si te toi moi plaît tout rien maintenant accord montre liste donne donnez \
envoie ouvre ferme bloque débloque déplace réserve rends rapporte prête prolonge commande achète vends paie recharge signale prends laisse \
aidez bonsoir bonne soir matin journée salle réunion voiture livre livres carte compte solde médecin retard malade pluie pleut neige froid \
chaud prix demandes fériés férié besoin mois année",
    ),
    (
        "de",
        "der die das den dem des ein eine einen einem und ist in zu für mit auf von vom bis im am ich du er sie es wir ihr mein meine nicht wie was \
wer wo wann welche viele heute morgen bitte danke hallo dann danach auch juni juli montag dienstag mittwoch donnerstag freitag samstag sonntag \
möchte will kann tage woche wetter nach über ja nein urlaub urlaubsantrag beantrage beantragen storniere stornieren antrag kannst \
könntest können märz februar hilfe \
an aus bei um zum zur beim mir dir uns euch meinen meinem meiner alles nichts jetzt noch gibt gib bring zeig zeige sende schick öffne \
schließ sperre entsperre buche verschiebe verkaufe kaufe bestelle überweise lade melde leihe verlängere liste lösche nimm mach hilf guten \
abend tag vielen dank einverstanden vergiss frei krank regnet schneit kalt warm sonnig konto kontostand karte auto buch bücher arzt termin \
raum anträge feiertag feiertage resturlaub brauche soll sollte muss habe hat haben kostet preis wird raus zurück monat jahr",
    ),
    (
        "es",
        "el la los las un una de del al y o en para que con por no es está son yo tú mi mis tu qué quién cuál cuántos cuántas dónde cuándo cómo \
hoy mañana hola gracias luego después también días semana junio julio enero lunes martes miércoles jueves viernes sábado domingo quiero \
quisiera puedo tiempo hace a desde hasta sí vacaciones solicitud solicita solicitar pide pedir cancela número puedes podrías febrero ayuda \
me te se lo le su sus he has ha hemos ahora nada todo todos hay tengo tiene necesito estoy muestra lista dame envía manda abre cierra \
bloquea desbloquea reserva mueve anula vende compra paga recarga informa presta renueva devuelve quita borra adelanta ayúdame buenos \
buenas noches tardes olvídalo acuerdo llueve nieva frío calor enfermo tarjeta cuenta saldo coche libro libros médico cita visita sala \
reunión precio festivos perfil solicitudes quedan cuesta cuánto dime mes año",
    ),
    (
        "pt",
        "o a os as um uma de do da dos das no na em para que com por não é está são eu você meu minha e ou qual quem onde quando como quantos \
hoje amanhã olá obrigado obrigada depois também dias semana junho julho segunda terça quarta quinta sexta quero queria posso tempo até ao \
bom boa noite tarde pode pedido férias tenho cancele meus minhas estou custa",
    ),
    (
        "nl",
        "de het een ik je jij wij u niet en of van voor naar met op aan is zijn heb hebt heeft kun kunt kan wil wilt moet morgen vandaag \
weer hoeveel wat wie waar wanneer hoe welke mijn nog goed goedemorgen goedenavond dag dagen dank bedankt graag alstublieft annuleer aanvraag \
vakantie vrij doen in",
    ),
];

/// Words of only one language; one of them has the weight of several others.
const SURE: &[(&str, &str)] = &[
    (
        "it",
        "è che gli della delle dei nel nella sono vorrei voglio dimmi oggi domani giugno luglio ferie poi perché più chi anche dal alle qual quanti quante \
rinnova prestito annulla cancella prenota aggiungi elimina città mio meteo ciao grazie ho buongiorno perfetto sì vendi richiedi lascia",
    ),
    (
        "en",
        "the weather forecast cancel renew what which how from is are my please then and tomorrow today with would you june july i off me thanks hello",
    ),
    (
        "fr",
        "je est dans quel quelle quels quelles mon résume bonjour merci puis demain aujourd les des vous et où oui congés congé annule",
    ),
    (
        "de",
        "der die das und ist ich nicht wie heute bitte danke dann für den mit möchte ja nein urlaub beantrage storniere",
    ),
    (
        "es",
        "el y los las qué hoy mañana hola gracias luego quiero está cuántos cómo sí vacaciones solicitud pide podrías",
    ),
    ("pt", "não você obrigado obrigada hoje amanhã olá quero os um uma meu minha em é"),
    ("nl", "het een ik niet voor mijn hoeveel wat goedemorgen bedankt alstublieft kun vandaag"),
];

/// Letters and signs of only these languages, of those with lists.
const LETTERS: &[(&str, &str)] =
    &[("it", "òì"), ("fr", "œîûùëçê"), ("de", "äöüß"), ("es", "¿¡ñíóúá"), ("pt", "ãõçíóú")];

/// Maximum number of words of a short request, in which one listed word decides.
const MAX_SHORT: usize = 8;

/// The language of a request: as detected; where its words fit several languages, or none, that of the conversation's
/// `earlier` requests (the latest first), then the `configured` one.
pub fn of_request<'t>(
    request: &str,
    earlier: impl Iterator<Item = &'t str>,
    configured: Option<&str>,
) -> Option<String> {
    let mut around = earlier.filter_map(detect).map(str::to_owned).chain(configured.map(str::to_owned));
    let lower = lower_start(request);
    let words = words_of(&lower);
    let scores = scores_of(request, &words);
    let Some(detected) = detect_by(request, &words, &scores) else { return around.next() };
    let possible = best_fits(&scores);
    if possible.len() < 2 {
        return Some(detected.to_owned());
    }
    around.find(|code| possible.contains(&code.as_str())).or_else(|| Some(detected.to_owned()))
}

/// The languages that the listed words of a text fit best, and equally.
fn best_fits(scores: &[(&'static str, u32)]) -> Vec<&'static str> {
    let max = scores.first().map_or(0, |(_, score)| *score);
    scores.iter().filter(|(_, score)| max > 0 && *score == max).map(|(code, _)| *code).collect()
}

/// The start of a text without the words that may be names: those with a capital, but for the first.
fn plain_letters(text: &str) -> String {
    let start: String = text.chars().take(2000).collect();
    let mut words = start.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    words.filter(|word| !word.contains(char::is_uppercase)).fold(first, |all, word| all + " " + word)
}

fn lower_start(text: &str) -> String {
    text.chars().take(2000).collect::<String>().to_lowercase()
}

fn words_of(lower: &str) -> Vec<&str> {
    words(lower).take(300).collect()
}

/// Each language with the weight of its words and letters, the highest first.
fn scores_of(text: &str, words: &[&str]) -> Vec<(&'static str, u32)> {
    let mut scores: Vec<(&'static str, u32)> = WORDS.iter().map(|(code, _)| (*code, 0)).collect();
    for weights in words.iter().filter_map(|word| INDEX.get(word)) {
        for ((_, score), worth) in scores.iter_mut().zip(weights) {
            *score += worth;
        }
    }
    let letters = plain_letters(text);
    for (code, list) in LETTERS {
        if letters.chars().any(|letter| list.contains(letter)) {
            scores.iter_mut().filter(|(of, _)| of == code).for_each(|(_, score)| *score += 2);
        }
    }
    // Stable: of two equal scores, the order of the list decides.
    scores.sort_by_key(|s| std::cmp::Reverse(s.1));
    scores
}

/// The ISO 639-1 code of the text's language, by its function words, and by its letters if it is long enough; `None`
/// if neither is certain.
pub fn detect(text: &str) -> Option<&'static str> {
    let lower = lower_start(text);
    let words = words_of(&lower);
    detect_by(text, &words, &scores_of(text, &words))
}

/// The language of a text, given its words and their weights.
fn detect_by(text: &str, words: &[&str], scores: &[(&'static str, u32)]) -> Option<&'static str> {
    if words.is_empty() {
        return None;
    }
    let (best, second) = match scores {
        [best, second, ..] => (*best, *second),
        _ => return None,
    };
    if best.1 > second.1 && (best.1 >= 2 || words.len() <= 2 || best.1 * 3 >= words.len() as u32) {
        // A text in a language without a list shares a few short words with the listed ones.
        let covered = best.1 as usize * 4 >= words.len();
        return if covered { Some(best.0) } else { surely(text).or(Some(best.0)) };
    }
    if best.1 > 0 && best.1 == second.1 {
        // Which of the languages that fit equally: by the letters, or else by the order of the list.
        let by_letters = by_letters(text, &best_fits(scores)).filter(|_| words.len() > 1);
        return by_letters.or(Some(best.0)).filter(|_| best.1 >= 2 || by_letters.is_some());
    }
    // A short request with words of only one language.
    let only = Some(best.0).filter(|_| best.1 > 0 && second.1 == 0 && words.len() <= MAX_SHORT);
    surely(text).or(only)
}

/// The language of a text by its letters among all that are known, if it is long enough to be certain. It is slow: only
/// where the words do not decide.
fn surely(text: &str) -> Option<&'static str> {
    let info = Some(text).filter(|text| text.chars().count() >= 12).and_then(whatlang::detect)?;
    iso(info.lang()).filter(|_| info.is_reliable())
}

/// The language among `codes` whose letters a text fits best, of those that have built-in sentences.
fn by_letters(text: &str, codes: &[&str]) -> Option<&'static str> {
    use whatlang::Lang;
    let listed = [Lang::Ita, Lang::Eng, Lang::Fra, Lang::Deu, Lang::Spa];
    let allowed =
        listed.into_iter().filter(|lang| iso(*lang).is_some_and(|code| codes.contains(&code))).collect();
    iso(whatlang::Detector::with_allowlist(allowed).detect(text)?.lang())
}

fn iso(lang: whatlang::Lang) -> Option<&'static str> {
    use whatlang::Lang;
    Some(match lang {
        Lang::Ita => "it",
        Lang::Eng => "en",
        Lang::Fra => "fr",
        Lang::Deu => "de",
        Lang::Spa => "es",
        Lang::Por => "pt",
        Lang::Nld => "nl",
        Lang::Pol => "pl",
        Lang::Rus => "ru",
        Lang::Ukr => "uk",
        Lang::Tur => "tr",
        Lang::Ara => "ar",
        Lang::Cmn => "zh",
        Lang::Jpn => "ja",
        Lang::Kor => "ko",
        Lang::Swe => "sv",
        Lang::Dan => "da",
        Lang::Fin => "fi",
        Lang::Ces => "cs",
        Lang::Ell => "el",
        Lang::Hun => "hu",
        Lang::Ron => "ro",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_detected_by_function_words() {
        for (text, code) in [
            ("E a Roma?", "it"),
            ("E domani?", "it"),
            ("dal 15 al 17 giugno", "it"),
            ("From 15 to 17 June", "en"),
            ("And in Rome?", "en"),
            ("What about tomorrow?", "en"),
            ("Che tempo fa oggi a Milano?", "it"),
            ("Il mio username è keysersoze", "it"),
            ("What is the weather in Milan, and then ask for three days off", "en"),
            ("Chi deve approvare la mia richiesta?", "it"),
            ("Calcola la radice quadrata di 144", "it"),
            ("Ciao!", "it"),
            ("Thanks!", "en"),
            ("Quel temps fait-il à Paris demain ?", "fr"),
            ("Wie ist das Wetter in Berlin?", "de"),
            ("¿Qué tiempo hace hoy en Madrid?", "es"),
            ("Qual é a previsão do tempo em Lisboa amanhã?", "pt"),
            ("Prenota un tavolo per due", "it"),
            ("Book a table for two", "en"),
            ("for 4 people", "en"),
            ("per 4 persone", "it"),
            ("weather in Rome", "en"),
            ("Rinnova il prestito numero 1", "it"),
            ("Renew loan number 1", "en"),
            ("Annulla l'ordine 13", "it"),
            ("Cancel order 12", "en"),
            ("Résume le document", "fr"),
            ("Mon adresse e-mail ?", "fr"),
            ("Quelles villes sont en Italie ?", "fr"),
            ("Aide", "fr"),
            ("Hilfe", "de"),
            ("Ayuda", "es"),
        ] {
            assert_eq!(detect(text), Some(code), "{text}");
        }
    }

    #[test]
    fn language_of_a_few_words_is_detected() {
        let texts = [
            (
                "it",
                "Riporta l'auto|Blocca la carta|Disdici l'appuntamento|Piove a Genova?|Va bene|Aiuto|Apri la macchina|Elenca i prestiti|Segnala un danno",
            ),
            (
                "en",
                "Bring back Dune|Public holidays|Never mind|List loans|Overdue books|Good evening|I'm late|Wind in Trieste",
            ),
            (
                "fr",
                "Rends la voiture|Bloque la carte|Déplace la visite|D'accord|Ouvre un compte|Livres en retard|Salle libre ?|J'ai perdu ma clé",
            ),
            (
                "de",
                "Feiertage|Hilf mir|Guten Abend|Verlängere Dune|Nimm mir Heiligabend frei|Lösche alles|Raum frei?|Drei Nächte in Venedig",
            ),
            (
                "es",
                "Bloquea la tarjeta|Reserva un coche|¿Necesito un paraguas?|Mi perfil|Anula la cita|Ahora no|¿Hay sala libre?|Envía 50 euros a Marco",
            ),
            ("pt", "Cancele o meu pedido de férias|Quero pedir férias|Bom dia"),
            ("nl", "Wat is het weer in Amsterdam?|Ik wil morgen vrij|Hoeveel vakantiedagen heb ik nog?"),
        ];
        for (code, list) in texts {
            for text in list.split('|') {
                assert_eq!(detect(text), Some(code), "{text}");
            }
        }
        // Letters of names say nothing.
        assert_eq!(detect("Weather in München"), Some("en"));
        assert_eq!(detect("Il meteo a Córdoba"), Some("it"));
    }

    #[test]
    fn conversation_decides_an_ambiguous_request_and_then_the_configuration() {
        let of =
            |request, earlier: &[&str], configured| of_request(request, earlier.iter().copied(), configured);
        assert_eq!(of("Milano 15/6", &["Che tempo fa?"], Some("en")), Some("it".into()));
        assert_eq!(of("Milano 15/6", &["144", "What is the weather?"], Some("it")), Some("en".into()));
        assert_eq!(of("Milano 15/6", &[], Some("de")), Some("de".into()));
        assert_eq!(of("Milano 15/6", &[], None), None);
        for (reply, before, code) in [
            ("non", "Je voudrais des congés", "fr"),
            ("non", "Vorrei delle ferie", "it"),
            ("no", "Quiero vacaciones", "es"),
            ("no", "Vorrei delle ferie", "it"),
            ("nein", "Ich möchte Urlaub", "de"),
        ] {
            assert_eq!(of(reply, &[before], Some("en")).as_deref(), Some(code), "{reply} after {before}");
        }
        // "in" is a word of several languages.
        assert_eq!(of("in Rome", &["What is the weather?"], Some("it")), Some("en".into()));
        assert_eq!(of("in Rome", &[], Some("de")), Some("de".into()));
        assert_eq!(of("What is the weather in Rome?", &["Che tempo fa?"], Some("it")), Some("en".into()));
    }

    #[test]
    fn text_without_known_words_has_no_sure_language() {
        for text in ["", "   ", "144", "keysersoze", "???", "Milano"] {
            assert_eq!(detect(text), None, "{text:?}");
        }
    }
}
