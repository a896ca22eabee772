//! A small dictionary: everyday words that mean the same in several languages, and lists of words
//! that carry little meaning by themselves. General vocabulary only; it knows no scene.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use super::text;

/// One row is one concept. `!` marks an action (what is done, not what it is about), `~` words so
/// general that they say little about the subject.
const CONCEPTS: &str = "\
! book reserve prenotare prenota prenotazione booking reservation reserver reservieren buchen reservar fissare fissa riservare
! cancel annulla annullare cancella cancellare disdire disdici disdetta cancellation delete elimina eliminare revoke annuler stornieren cancelar remove rimuovi rimuovere
! open apri aprire apertura create crea creare creazione ouvrir eroffnen abrir
! report segnala segnalare segnalazione signaler melden
! list elenca elencare elenco lista listare mostra mostrare mostrami show display visualizza visualizzare
! search cerca cercare cercami ricerca find trova trovare trovami look lookup chercher suchen buscar
! send invia inviare manda mandare spedisci spedire envoyer senden enviar
! change modifica modificare cambia cambiare update aggiorna aggiornare aggiornamento edit sposta spostare reschedule rinvia rinviare
! add aggiungi aggiungere aggiunta insert inserisci inserire register registra registrare registrazione log annota annotare segna segnare record
! enroll iscrivi iscrivere iscrivimi iscrivermi iscrizione join signup enrol enrollment partecipa partecipare register attend
! start inizia iniziare comincia cominciare begin avvia avviare
! check verifica verificare controlla controllare
! upload carica caricare
! download scarica scaricare
! share condividi condividere
! spend spendi spendere speso spent
! rent noleggia noleggiare noleggio affitta affittare affitto rental hire
! sell vendi vendere vendita sale
! deliver consegna consegnare consegnato
! pick ritira ritirare ritiro pickup collect
! print stampa stampare
! invite invita invitare invito
! rate valuta valutare recensisci recensire review recensione
! water annaffia annaffiare innaffia
! turn accendi accendere spegni spegnere switch
! set imposta impostare regola regolare
! call chiama chiamare telefona telefonare
! swap scambia scambiare
! donate dona donare donazione
! complete completa completare finish finisci finire
! leave parti partire
! order ordina ordinare ordine ordinazione
! buy compra comprare acquista acquistare acquisto purchase
! pay paga pagare pagamento payment
! renew rinnova rinnovare rinnovo renewal proroga prorogare extend extension prolunga prolungare
! request richiedi richiedere richiesta chiedi chiedere ask apply demander anfordern beantragen pedir solicitar
! approve approva approvare approvatore approvatori approver approval approvazione autorizza autorizzare authorize
when quando
who chi
where dove
which quali quale
! track traccia tracciare tracking tracciamento rintraccia rintracciare seguire segui
! close chiudi chiudere chiusura
! assign assegna assegnare assegnazione
! borrow prestito prestare prendere loan lend
! return restituire restituisci restituzione riconsegna riconsegnare
! move trasferisci trasferire transfer bonifico trasferimento
! translate traduci tradurre traduzione translation
! plan pianifica pianificare schedule programma programmare calendarizza organizza organizzare organise organize
! submit inoltra inoltrare presenta presentare
! remind ricorda ricordami ricordare promemoria reminder
weather meteo tempo forecast previsione previsioni climate clima wetter tiempo temperature temperatura rain piove pioggia piovera rainy sunny sole umbrella ombrello snow neve nevica wind vento storm temporale cloudy nuvoloso cold freddo hot caldo warm
vacation ferie vacanza vacanze holiday leave congedo permesso pto urlaub conges vacaciones
holidays festivi festivita festivo feste bank
balance saldo restano rimangono resta rimane rimanenti residuo residui residue remaining left remain restare rimanere disponibilita
status stato situazione etat zustand estado
user utente utenti users account
username nomeutente login userid
name nome nominativo nom namen nombre
fullname
surname cognome lastname
person persona persone people guest guests ospite ospiti coperti coperto diners attendee attendees partecipanti partecipante participants participant seats posti posto seat invitati personen personnes personas pax party
employee dipendente dipendenti collega colleague colleagues colleghi staff worker impiegato
manager responsabile capo boss supervisor
restaurant ristorante ristoranti trattoria osteria pizzeria restaurants cenare pranzare mangiare eat dine
table tavolo tavoli tisch mesa
dinner cena
lunch pranzo pranzare
menu carta
meal pasto pasti
ticket segnalazione issue problema problem guasto incident fault ticketing disservizio
priority priorita urgency urgenza
printer stampante stampanti
screen monitor schermo display
computer pc laptop portatile notebook
mouse tastiera keyboard
network rete internet wifi vpn connessione connection
password credenziali credentials
hardware dispositivo apparecchio device
software programma applicazione application app
broken rotto rotta guasto guasta
library biblioteca
libro libri book books volume volumi volumes
author autore autrice autori authors
title titolo titoli intitolato titled
copy copia copie copies
member socio soci membro membri tessera card
room sala sale stanza stanze aula rooms camera raum salle
meeting riunione riunioni meetings incontro
projector proiettore
floor piano
desk scrivania postazione scrivanie
building edificio palazzo sede office ufficio uffici
parcel pacco pacchi spedizione spedizioni shipment package collo colli
delivery consegna consegne consegnare consegnato deliver delivered
courier corriere carrier
address indirizzo indirizzi
warehouse magazzino deposito
product prodotto prodotti article articolo articoli item items
quantity quantita pezzi pieces units unita pezzo
price prezzo prezzi cost costo costa costano quanto
amount importo somma cifra budget
money soldi denaro
euro euros eur
dollar dollari dollars usd
invoice fattura fatture
expense spesa spese rimborso reimbursement refund expenses rimborsi nota
contract contratto contratti
customer cliente clienti client clients customers
supplier fornitore fornitori vendor
city citta town comune comuni ville stadt ciudad
place luogo posizione location posto venue localita
country paese nazione stato
street via strada
airport aeroporto
flight volo voli
train treno treni
car auto macchina vehicle veicolo veicoli automobile cars
bike bici bicicletta biciclette bicycle
parking parcheggio parcheggiare
hotel albergo alberghi
gym palestra
course corso corsi class lezione lezioni classes courses training formazione
doctor medico dottore dottoressa visita
appointment appuntamento appuntamenti visit
patient paziente pazienti
pet animale animali pets
dog cane cani
cat gatto gatti
child bambino bambini children kid figlio kids
day giorno giorni days giornata tag jour dia dias jours tage
date data date datum
week settimana settimane weeks
month mese mesi months
year anno anni years
night notte notti nights
hour ora ore hours orario
minute minuto minuti minutes
duration durata length
start inizio begin beginning partenza iniziale dal
end fine termine ending finale until
morning mattina mattino mattinata
afternoon pomeriggio
evening sera serata
email mail posta
phone telefono cellulare telephone mobile numero
number numero codice code id identifier identificativo
reason motivo motivazione ragione causa cause because
note nota note commento comment comments remark osservazione
message messaggio messaggi text testo
subject oggetto argomento topic titolo
description descrizione dettagli details dettaglio
type tipo tipologia kind categoria category genere
size taglia dimensione misura formato
color colour colore
small piccolo piccola piccoli piccole
medium medio media medi mezzano
large grande grandi big grosso grossa
low basso bassa bassi basse
high alto alta alti alte elevata elevato
urgent urgente urgenti critical critico critica urgentemente asap
normal normale standard ordinaria ordinario
red rosso rossa rossi rosse
blue blu azzurro azzurra
green verde verdi
yellow giallo gialla
black nero nera neri nere
white bianco bianca bianchi
gray grey grigio grigia
economy economica economico
business affari
first prima primo
second seconda secondo
express espresso espressa rapida veloce fast
single singola singolo
double doppia doppio matrimoniale
triple tripla
family famiglia familiare familiari
indoor interno interna inside dentro indoors
outdoor esterno esterna outside fuori aperto terrace terrazza dehors outdoors
window finestra finestrino
aisle corridoio
smoking fumatori
vegetarian vegetariano vegetariana vegetariani vegetarians
vegan vegano vegana vegani
gluten celiaco glutine
sick malattia malato illness sickness ill
paid retribuito pagato
unpaid nonretribuito
remote remoto smartworking telelavoro
open aperto aperta aperti aperte
closed chiuso chiusa chiusi chiuse
active attivo attiva attivi active
pending attesa sospeso pendente
available disponibile disponibili libero libera liberi libere free availability
new nuovo nuova nuovi nuove
used usato usata
home casa domicilio
work lavoro
personal personale private privato privata
public pubblico pubblica
yes si
maintenance manutenzione
cleaning pulizia pulizie
electrical elettrico elettrica electric electricity luce
plumbing idraulico idraulica acqua water
heating riscaldamento
medicine medicina farmaco farmaci medicinale drug
pharmacy farmacia
recipe ricetta prescription
language lingua lingue
currency valuta
rate tasso cambio exchange
score punteggio punti points voto rating
survey sondaggio questionario
event evento eventi events
concert concerto concerti
cinema film movie movies
weight peso kg chili kilo
height altezza
distance distanza km chilometri
temperature gradi degrees
late ritardo delay
fine multa multe penalty
due scadenza scade deadline expiry expires
today oggi
supervisor tutor
department reparto dipartimento ufficio
team squadra gruppo group
project progetto progetti
task attivita compito tasks
timesheet ore
timetable orario orari schedule
salary stipendio busta paga payslip
shift turno turni
equipment attrezzatura attrezzature strumento tool
key chiave chiavi
badge tesserino
dish piatto piatti dishes portata
pizza pizze
coffee caffe
plant pianta piante
garden giardino
field campo campi court
tennis
football calcio
swimming piscina pool
museum museo musei
tour guida guidata visita
insurance assicurazione polizza policy
claim sinistro reclamo complaint
subscription abbonamento abbonamenti
newsletter
travel viaggio viaggi trip trips trasferta trasferte journey
lodging alloggio accommodation soggiorno stay
meals pasti vitto
food cibo alimentari
drink bevanda bevande drinks beverage
breakfast colazione
luggage bagaglio bagagli valigia baggage
ticket biglietto biglietti
electric elettrico elettrica elettriche
petrol benzina gasoline
hybrid ibrido ibrida
diesel gasolio
beginner principiante base principianti novice
intermediate intermedio intermedia
advanced avanzato avanzata esperto expert
morning mattutino
adult adulto adulti adults
student studente studenti students studentessa
teacher insegnante docente professore
grade voto classe
exam esame esami exams
lab laboratorio laboratory
blood sangue
tooth dente denti teeth dentist dentista
eye occhio occhi
skin pelle
heart cuore
bone ossa osso bones
stock giacenza giacenze scorte scorta inventory inventario
box scatola scatole boxes
pack confezione confezioni packs risma
paper carta
pen penna penne pens
notebook quaderno quaderni notebooks
chair sedia sedie chairs
lamp lampada lampadina bulb
door porta
window finestra finestre
kitchen cucina
bathroom bagno
bedroom
living soggiorno salotto
heater caldaia stufa boiler
leak perdita
noise rumore
damage danno danni
theft furto
accident incidente
fire incendio
flood allagamento
wheel ruota ruote
engine motore
oil olio
brake freno freni brakes
inspection revisione ispezione
service tagliando servizio
machine macchinario
sensor sensore
alarm allarme
light luce luci lights
wine vino
beer birra
bread pane
cake torta
fish pesce
meat carne
cheese formaggio
allergy allergia allergie
festive festa party
birthday compleanno
wedding matrimonio
gift regalo
flower fiore fiori flowers
tree albero alberi
farm fattoria azienda
beach spiaggia
mountain montagna
ski sci
boat barca
ferry traghetto
bus autobus pullman
taxi
ship nave
cargo merce merci goods
container
pallet bancale bancali
truck camion furgone van
driver autista conducente
passenger passeggero passeggeri passengers
destination destinazione meta
origin provenienza
departure partenza
arrival arrivo
gate
stop fermata
route percorso tratta
map mappa
internal interno
external esterno
daily giornaliero quotidiano giornaliera
weekly settimanale
monthly mensile
yearly annuale annual
cash contanti contante
transfer bonifico
cheque assegno check
bank banca
loan mutuo
tax tassa imposta
discount sconto
coupon buono
volunteer volontario volontari
shelter rifugio canile
adoption adozione
vaccine vaccino vaccinazione
candidate candidato candidati applicant
job posizione impiego
interview colloquio intervista
skill competenza
song canzone canzoni brano
playlist
album disco
artist artista
game gioco partita
match partita incontro
player giocatore
seat sedile
full completo completa complete intero intera entire whole
vote voto votare
energy energia bolletta bill meter contatore reading lettura
tyre gomme pneumatici tires
repair riparazione riparare ripara fix
";

/// Pairs of neighbours that mean what one word of the dictionary means.
const PAIRS: &[(&str, &str, &str)] = &[
    ("days", "off", "vacation"),
    ("day", "off", "vacation"),
    ("time", "off", "vacation"),
    ("annual", "leave", "vacation"),
    ("nome", "utente", "username"),
    ("user", "name", "username"),
    ("help", "desk", "ticket"),
    ("public", "holidays", "holidays"),
    ("bank", "holidays", "holidays"),
    ("nota", "spese", "expense"),
    ("sign", "up", "enroll"),
    ("sign", "me", "enroll"),
    ("what", "time", "quando"),
    ("che", "ora", "quando"),
    ("che", "ore", "quando"),
    ("a", "che", "quando"),
    ("busta", "paga", "salary"),
];

/// Function words and politeness of several languages, without accents.
const STOP: &str = "\
a ad ai al all alla alle allo agli anche ancora c che ci come con cosa d da dal dall dalla dalle dallo dai dagli de dei del dell della \
delle dello degli di e ed era essere fa fare fai faccio fammi gli ha hai hanno ho i il in io l la le lei lo loro lui ma me mi mia mie mio miei \
ne nei nel nell nella nelle nello negli no noi non nostra nostro o od per perche piu po poi prima puoi potresti potrei posso qual quale quali quella quelle \
quelli quello quel quei questa queste questi questo se sei si sia siamo sono sta stai sto su sua suo sul sull sulla sulle sui suoi te ti tra fra tu tua tuo tuoi tutti \
tutto un una uno va vi voglio vogliamo vorrei vorremmo volevo sapere dimmi dire dammi dare grazie favore cortesia piacere gentilmente serve servono servirebbe bisogno \
devo deve dobbiamo puo potete dopo ora adesso allora quindi inoltre infine ecco salve ciao buongiorno buonasera ok va bene perfetto finora avere sarebbe fosse stata stato \
fara farai faranno sara saranno avra avro ci c ce the an and or of to for from by on at with is are was were be been am i you he she it we they me my mine your his her its our their this that these those there here \
do does did doing have has had can could would should will shall may might must d s t ll re ve m not no yes if then than so as too also but please thanks thank hello hi hey \
want wanted like need needs tell give let know get got make made us just some any into about over up out off after before what which how \
le les des du et ou je tu il nous vous mon ma mes est avec pour dans sur que qui quel quelle \
der die das und oder ich du er wir ihr ein eine einen einem mit fur von zu im ist bitte mein meine wie was \
el los las y o yo nosotros mi mis es con para por que cual una unos \
os as um uma e com para meu minha";

/// Question words: they tell reads from writes and one read from another, but not subjects.
const ASKING: &str = "quanti quante quanto quanta chi dove quando quali quale cosa come how many much who whom where when what which whose why perche \
combien quand qui quoi wer wann wo wieviel cuantos cuando quien donde quantos quem onde";

/// Said to be polite, not to be done.
const CHAT: &str = "ciao salve buongiorno buonasera hello hi hey perfetto perfect ottimo bene great grazie thanks thank ok okay good morning \
evening afternoon buona giornata va d accordo capito benissimo fantastico bravo excellent super cool nice please scusa scusami sorry bonjour merci hallo danke hola gracias \
ola obrigado sera pomeriggio mille molte you very much tutto tante si yes certo sure arrivederci bye a presto addio there everyone tutti";

/// Words that point back at something said.
pub(super) const BACK: &[&str] = &[
    "ne", "lo", "li", "it", "them", "that", "those", "same", "stesso", "stessa", "stessi", "stesse", "quello",
    "quella", "quei", "quelle", "quel", "quegli", "there",
];

/// Usual first names: with one of them in front, two words with capitals are a person.
const FIRST_NAMES: &str = "\
mario luca marco anna giulia giuseppe giovanni paolo francesca francesco laura sara matteo andrea alessandro alessandra elena chiara lucia stefano \
roberto davide simone federico federica maria antonio luigi carlo carla ugo rosa bruno dario enrico fabio giorgio ivan leo lorenzo martina michele \
nicola paola pietro riccardo silvia sergio valentina vincenzo claudia claudio daniele daniela elisa emma gianni irene marta monica nina alice aldo \
john jane bob tom ann anne mary james robert michael david richard joseph thomas charles daniel matthew mark paul steven kevin brian george edward \
peter susan karen nancy lisa betty helen sandra emily jack harry oliver william henry lucy grace kate sam alex ben max jim joe bill mike dave chris \
pierre jean marie claire hans klaus peter carlos jose juan pedro miguel luis ana carmen";

struct Tables {
    words: HashMap<String, Vec<u16>>,
    stems: HashMap<String, Vec<u16>>,
    actions: HashSet<u16>,
    rows: Vec<Vec<&'static str>>,
    stop: HashSet<&'static str>,
    asking: HashSet<&'static str>,
    chat: HashSet<&'static str>,
    names: HashSet<&'static str>,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut words: HashMap<String, Vec<u16>> = HashMap::new();
        let mut stems: HashMap<String, Vec<u16>> = HashMap::new();
        let mut actions = HashSet::new();
        let mut rows = Vec::new();
        let add = |map: &mut HashMap<String, Vec<u16>>, key: String, row: u16| {
            let list = map.entry(key).or_default();
            if !list.contains(&row) {
                list.push(row);
            }
        };
        for (number, line) in CONCEPTS.lines().enumerate() {
            let row = u16::try_from(number).unwrap_or(u16::MAX);
            let line = line.strip_prefix("! ").inspect(|_| {
                actions.insert(row);
            });
            let line = line.unwrap_or_else(|| CONCEPTS.lines().nth(number).unwrap_or_default());
            rows.push(line.split_whitespace().collect::<Vec<_>>());
            for word in line.split_whitespace() {
                add(&mut words, word.to_owned(), row);
                if word.len() >= 5 {
                    let (it, en) = text::stems(word);
                    add(&mut stems, it, row);
                    add(&mut stems, en, row);
                }
            }
        }
        Tables {
            words,
            stems,
            actions,
            rows,
            stop: STOP.split_whitespace().collect(),
            asking: ASKING.split_whitespace().collect(),
            chat: CHAT.split_whitespace().collect(),
            names: FIRST_NAMES.split_whitespace().collect(),
        }
    })
}

/// The rows a word belongs to: by its form, otherwise by a stem.
pub(super) fn concepts(norm: &str, it: &str, en: &str) -> Vec<u16> {
    let tables = tables();
    if let Some(found) = tables.words.get(norm) {
        return found.clone();
    }
    if norm.len() < 5 {
        return Vec::new();
    }
    let mut all = Vec::new();
    for stem in [it, en] {
        for row in tables.stems.get(stem).into_iter().flatten() {
            if !all.contains(row) {
                all.push(*row);
            }
        }
    }
    all
}

/// The one word that two neighbours stand for.
pub(super) fn pair(first: &str, second: &str) -> Option<&'static str> {
    PAIRS.iter().find(|(a, b, _)| *a == first && *b == second).map(|p| p.2)
}

/// Units of time: they count in every domain and are the subject of none.
pub(super) fn is_measure(norm: &str) -> bool {
    const MEASURES: &[&str] = &[
        "giorno", "giorni", "giornata", "day", "days", "settimana", "settimane", "week", "weeks", "mese", "mesi", "month", "months", "anno", "anni",
        "year", "years", "ora", "ore", "hour", "hours", "minuto", "minuti", "minute", "minutes", "time", "volta", "volte", "times", "number", "numero",
        "new", "nuovo", "nuova", "name", "cosa", "cose", "thing", "things",
        "start", "starts", "begin", "begins", "inizia", "comincia",
    ];
    MEASURES.contains(&norm)
}

/// Whether every meaning of the word is something that is done.
pub(super) fn is_action(concepts: &[u16]) -> bool {
    !concepts.is_empty() && concepts.iter().all(|c| tables().actions.contains(c))
}

/// Whether some meaning of the word is something that is done.
pub(super) fn may_be_action(concepts: &[u16]) -> bool {
    concepts.iter().any(|c| tables().actions.contains(c))
}

/// Whether the word is a doing that nobody means without saying it: to cancel, to change, to pay.
pub(super) fn is_special(concepts: &[u16]) -> bool {
    const SPECIAL: &[&str] = &["cancel", "change", "renew", "close", "return", "approve", "assign", "move", "pay", "translate"];
    concepts.iter().any(|c| row(*c).first().is_some_and(|w| SPECIAL.contains(w)) && tables().actions.contains(c))
}

/// Whether the word is a way of looking, which changes nothing.
pub(super) fn is_looking(concepts: &[u16]) -> bool {
    const LOOKING: &[&str] = &["list", "search", "track", "check", "translate", "download"];
    concepts.iter().any(|c| row(*c).first().is_some_and(|w| LOOKING.contains(w)))
}

/// Whether the word is a usual first name.
pub(super) fn is_first_name(norm: &str) -> bool {
    tables().names.contains(norm)
}

/// Function words.
pub(super) fn is_stop(norm: &str) -> bool {
    tables().stop.contains(norm)
}

/// Question words.
pub(super) fn is_asking(norm: &str) -> bool {
    tables().asking.contains(norm)
}

/// Greetings, thanks and approval.
pub(super) fn is_chat(norm: &str) -> bool {
    tables().chat.contains(norm)
}

/// The words of a row.
pub(super) fn row(concept: u16) -> &'static [&'static str] {
    tables().rows.get(concept as usize).map(Vec::as_slice).unwrap_or_default()
}
