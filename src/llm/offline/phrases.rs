//! Closed classes of words and phrases that determine the mood of a clause and how clauses govern each other.
//! Blanks separate words, `/` separates alternatives, `?` marks optional words: see `pattern`.

use super::pattern::{Patterns, patterns};

/// Openings that only stress the order after them: "don't forget to …".
pub(super) static MINDS: &Patterns = patterns![
    "don/do/dont t/not? forget/hesitate/fail/omit to",
    "dont forget/hesitate to",
    "please? remember to",
    "make/be sure to/you/that?",
    "feel free to",
    "non dimenticare/dimenticarti/dimenticarvi/dimenticate/scordare/scordarti/scordate/esitare/mancare/tralasciare di/a",
    "ricordati/ricordatevi/ricorda di",
    "assicurati/assicuratevi di/che",
    "i/we ask/beg/urge you to",
    "ti/vi/le chiedo/prego/pregherei di",
    "ti/vi/la prego di?",
    "go ahead and",
    "procedi a/con",
];

/// Openings of polite requests in the form of questions.
pub(super) static POLITE: &Patterns = patterns![
    "can/could/would/will/wont/wouldn/couldn/won t? you/u/ya please/kindly/also/just/maybe/then?",
    "would/do you mind",
    "i/we would/d be very? grateful/glad/happy/thankful/delighted if you can/could/would?",
    "i/we would/d really? appreciate it? if you can/could/would?",
    "it would/d be great/nice/good/lovely/helpful/awesome/wonderful/kind if you can/could/would?",
    "can/could/may i ask you to",
    "ti/le/vi sarei/saremmo grato/grata/grati se",
    "sarebbe bello/ottimo/utile/fantastico/perfetto se",
    "ho/avrei/avremmo/abbiamo bisogno che tu?",
    "mi fai/faresti/fareste il/la favore/piacere/cortesia di",
    "would/could you be so? able/kind/willing/good as? to?",
    "do/would you happen to",
    "do you think you can/could/might",
    "is there any? way/chance you can/could",
    "any chance you can/could",
    "i was? wonder/wondering if you can/could/might/would",
    "would it be possible for you to",
    "why don/dont/not t? you/we",
    "why not",
    "perche non mi/ci/ti/lo/la?",
    "puoi/potresti/potete/potreste mi/ci/lo/la/per? favore?",
    "non potresti/puoi/potete/potreste",
    "mi/ci/me/lo/la/li/le lo/la/li/le? puoi/potresti/potete/potreste/sai/sapresti",
    "puo/potrebbe mi/ci? <inf>",
    "riesci/riusciresti/riuscite a",
    "vuoi/vorresti <inf>",
    "ti/vi/le dispiace/dispiacerebbe/spiace/va/andrebbe di?",
    "saresti/sareste cosi? gentile/gentili/disponibile da/di/a?",
    "mind <ing>",
    "i/we d/would appreciate/love it if you",
    "it would/d be great/nice/good/helpful/lovely/kind if you",
    "i/we want/need/ask/d/would like? you to",
    "vorrei/vorremmo/voglio che",
];

/// Openings of wishes; the words after them say for what.
pub(super) static WISHES: &Patterns = patterns![
    "i/we really/just/also/still/would/d/ll? also? like/love/want/need/wish/prefer/wanna to?",
    "i/we just/also? wanted/hoped/needed to",
    "i/we was/were/am/m/re/are hoping/looking/trying to",
    "i/we have/ve got? to",
    "i/we must/should/gotta to?",
    "vorrei/vorremmo/voglio/vogliamo/volevo/volevamo/desidero/desideriamo/desideravo/gradirei",
    "mi/ci piacerebbe/serve/servono/servirebbe/servirebbero/occorre/occorrono/interessa",
    "ho/abbiamo/avrei/avremmo bisogno di?",
    "devo/dobbiamo/dovrei/dovremmo",
    "sto/stiamo/stavo cercando di?",
    "let s/me/us",
    "facciamo",
];

/// Requests for information, after a wish or alone.
pub(super) static TO_KNOW: &Patterns = patterns![
    "to? know/understand/see/check/learn/hear/ask if/whether",
    "to? find out if/whether",
    "sapere/capire/vedere/chiedere/controllare/verificare/conoscere se",
    "sapere/capire quando/quanto/come/dove/chi/quale/quali/cosa/perche",
    "to? know/understand/see when/how/where/who/which/what/why",
    "tell/show me/us if/whether",
    "explain/show/tell/teach/advise me/us? how/why/when/what/who/which/where",
    "help me/us? to? understand",
    "spiegami/spiegaci/spiega/spiegare/mostrami/dimmi/insegnami/indicami come/perche/quando/cosa/chi/quale/quali/dove",
    "mi/ci spieghi/dici/mostri/insegni/puoi? spiegare/dire? come/perche/quando/cosa/se",
    "let me/us know if/whether",
    "dimmi/dicci/dica/dirmi se",
    "fammi/facci/farmi sapere se",
    "check/see/verify if/whether",
    "find out if/whether",
    "controlla/verifica/guarda/vedi/controllare/verificare se",
    "sai/sapete/sa/sapresti/sapreste/saprebbe dirmi/dirci? se",
    "sai/sapete/sa/sapresti/sapreste/saprebbe dirmi/dirci quando/come/dove/chi/quale/quali/quanto/quanti/quante",
    "do you know if/whether",
    "do you know when/how/where/who/which/what",
    "ask if/whether",
    "chiedo/chiedevo se",
    "i/we was? wonder/wondering if/whether/when/how",
    "wondering if/whether",
    "mi chiedo/chiedevo/domando/domandavo se/quando/come",
    "i/we don/do/dont t/not? know if/whether/when/how/what/which/who",
    "non so se/quando/come/quale/chi/cosa",
    "i m not sure if/whether",
    "i am not sure if/whether",
];

/// Thanks and apologies for past actions.
pub(super) static THANKS: &Patterns = patterns![
    "thanks/thank/thx you? so? much? for <ing>",
    "sorry/apologies for/that/if/about",
    "grazie per/di/che aver/avere/ha/hai/avete",
    "scusa/scusami/scusate/scusi se/per/che",
];

/// Regrets about actions that did not happen.
pub(super) static MISSED: &Patterns = patterns![
    "i/we should/could/would/might/d not? have <ed>",
    "had i/we",
    "avrei/avremmo/avresti voluto/dovuto/potuto/preferito",
];

pub(super) static REASONS: &Patterns = patterns![
    "since/because/as/given/seeing that? i/we/my",
    "siccome",
    "poiche",
    "dato/visto/considerato che",
    "perche ho/sono/abbiamo/mi",
];

/// A price that is asked for, unless the clause orders to change it.
pub(super) static PRICE_OF: &Patterns =
    patterns!["the? price/cost/fee of/for", "il? prezzo/costo di/per/del/della"];

/// Questions about prices and hypothetical outcomes.
pub(super) static WOULD_BE: &Patterns = patterns![
    "how much",
    "quanto mi/ci? costa/costano/viene/vengono/costerebbe/costerebbero/verrebbe/verrebbero/pago/pagherei/paghiamo/spenderei",
    "quanti soldi",
    "what if",
    "what would/will/happens/happened",
    "what will/would it cost",
    "suppose/supposing/imagine/assume/assuming",
    "let s say/suppose/assume/imagine",
    "say i/we",
    "supponiamo/supponi/ipotizziamo/immagina/immaginiamo/poniamo",
    "mettiamo/metti/ammettiamo che",
    "cosa/che cosa? succede/succederebbe/accadrebbe/accade",
    "what is/s/are the price/prices/cost/costs/fee/fees/rate/rates/charge",
    "qual e il prezzo/costo",
    "quali sono i prezzi/costi",
    "would it cost",
    "is it expensive",
    "e se io? <verb>",
    "se io? prendessi/prenotassi/cancellassi/annullassi/chiedessi/disdicessi",
    "if i/we were to",
    "pretend/simulate/imagine",
    "fai/facciamo/fate finta",
    "fingi/simula/simulare",
    "for/per/ad example/esempio",
    "give/show me? an example",
    "un/an esempio/example",
    "fammi/dammi un esempio",
    "hypothetically",
    "in theory",
    "ipoteticamente",
    "in teoria",
];

/// Negations of an order at the beginning of a clause.
pub(super) static NOT: &Patterns = patterns![
    "don t you/ever/even/yet?",
    "dont",
    "do not ever/yet/even?",
    "never ever? <verb>",
    "not to? <verb>",
    "by no means",
    "in no way",
    "on no account",
    "nobody/noone should/must/may/can/shall/will",
    "no one should/must/may/can/shall/will",
    "<verb> nobody/nothing",
    "<verb> no one",
    "i/we forbid/prohibit you/anyone/anybody? to/from?",
    "it would/d be a/an? mistake/error/wrong to",
    "no need",
    "there s/is no need",
    "you/u don/do/dont/needn t/not? need/have? to",
    "you needn t",
    "you must/should/shall/can/may not",
    "you mustn/shouldn t",
    "avoid/refrain/stop from? <ing>",
    "hold off",
    "forget about/what/that",
    "ignore what/that/my",
    "i/we refuse/decline to",
    "mi rifiuto di",
    "ci? rifiutiamo di",
    "rinuncio/rinunciamo a/alle/al/alla",
    "dimentica/dimenticati/ignora/ignorate quello/cio/di/che/la/il",
    "under no circumstances",
    "in no case",
    "i/we don/do/dont t/not? really? want/need/wish/intend/plan/like/expect/have",
    "i/we no longer want/need/wish",
    "i/we wouldn/would t/not want/like",
    "i/we m/am/are/re not asking/going/planning/looking/requesting/booking/ordering/cancelling",
    "i/we would/d rather/prefer/better not",
    "i/we d/would? prefer/rather you/to? not/don/didn",
    "i/we won t/not?",
    "i/we will not",
    "i/we never asked/wanted/said",
    "i/we didn/did t/not ask/want/say/mean",
    "non voglio/vogliamo/vorrei/vorremmo/intendo/intendiamo/desidero/serve/servono/occorre/bisogna/devi/dovete/dobbiamo/devo/deve/va",
    "non mi/ci/ti/ne serve/servono/serviva/interessa/occorre",
    "non ho/abbiamo piu? bisogno/intenzione",
    "non c è bisogno/necessita",
    "non ce bisogno",
    "non è necessario/il/richiesto/il",
    "non sto/stiamo chiedendo/cercando/prenotando",
    "non ti/vi/le? ho/abbiamo chiesto/detto/voluto",
    "preferirei/preferisco/preferiremmo non/di/che? non/no?",
    "evita/evitare/evitate/evitiamo/smetti/smettila/lascia di? <inf>",
    "risparmiati/risparmiatevi/risparmia/rinuncia/rinunciate di/a? <inf>",
    "fai/fa/fate/facciamo a meno di",
    "inutile <inf>",
    "meglio/guai/attento a? non <inf>",
    "in nessun caso",
    "per nessun/nessuna motivo/ragione",
    "mai <inf>",
    "mai e poi mai",
    "vietato/proibito <inf>",
    "ti/vi/le proibisco/vieto/impedisco/sconsiglio di?",
    "sarebbe un errore/sbaglio",
    "niente/nessun/nessuna/nessuno *",
    "no <verb>",
    "better not",
    "it s/is better not",
    "keinen/keine/nicht",
    "ne *",
];

/// Negations of an order anywhere in a clause.
pub(super) static NOT_INSIDE: &Patterns = patterns![
    "not to <verb>",
    "di non <inf>",
    "non <inf>",
    "non mi/ti/ci/lo/la/li/le/ne/gli/glielo/melo? lo/la/li/le? <inf>",
    "do not <verb>",
    "don t <verb>",
    "dont <verb>",
    "must/should not <verb>",
    "never <verb>",
    "che non si? prenoti/annulli/disdica/cancelli/chieda/invii",
];

/// Negations that state a fact: "I can't …", "non ho …".
pub(super) static CANNOT: &Patterns = patterns![
    "i/we don/do/dont t/not? have/see/find/know/remember/understand/think/mind/get/receive",
    "i/we can/cannot/cant/couldn t/not?",
    "i/we haven/hadn t",
    "non ho/hai/ha/abbiamo/avete/hanno/so/riesco/riusciamo/posso/possiamo/trovo/vedo/ricordo/capisco/è/sono/c/ci/funziona/funzionano",
    "i/we didn/did t/not",
];

/// Openings of questions whether something is allowed or true.
pub(super) static ASKS: &Patterns = patterns![
    "do/does/did/is/are/was/were/am/has/have/had/can/could/may/might/should/shall/must/will/would/isn/aren/doesn/don/didn/won/can/couldn/shouldn t/not? i/we/you/he/she/it/they/there/this/that/these/those/the/my/our/your/any/anyone/someone/somebody/everyone/one/people/employees/luca/marco/anna",
    "posso/possiamo/potrei/potremmo",
    "si puo/possono/potrebbe",
    "mi/ci/le/lo/la puo/possono/posso/possiamo/potrei",
    "me lo/la/li/le posso",
    "e/sarebbe/era possibile",
    "è possibile",
    "ho/abbiamo/avrei diritto/il/titolo/modo/possibilita",
    "mi e/è permesso/consentito/concesso",
    "è/e permesso/consentito/concesso/vietato/ammesso",
    "any/some chance/way to/of/for/i/we",
    "is there any",
    "am i/are we",
    "chance to",
    "c è modo/possibilita",
    "ce modo",
    "avrei/avremmo potuto",
    "sarebbe fattibile",
    "sono/siamo autorizzato/autorizzata/autorizzati",
];

/// Openings of questions only if a question mark ends the clause.
pub(super) static ASKS_MARKED: &Patterns = patterns![
    "ho/hai/ha/abbiamo/avete/hanno/sono/sei/siamo/siete/devo/dobbiamo/serve/bisogna/occorre/conviene/esiste/esistono/fate/tenete/vendete/offrite/funziona/funzionano/vale/rimane/rimangono/resta/restano",
    "c/ce è/e",
    "ci sono/sarebbe/sarebbero",
    "è",
];

/// Requests for a reminder.
pub(super) static REMINDS: &Patterns = patterns![
    "remind me/us to/of/about/that/on/at/in/tomorrow/next/when/before/after/again",
    "remind me/us *",
    "set/put/add/create/make/leave me? a/an/another? reminder/note/alarm to/for/about/of/that",
    "ricordami/ricordaci/ricordarmi/ricordarci/rammentami/rammentarmi",
    "mi/ci ricordi/ricorderesti/ricorderai/rammenti/ricordate/ricordasse/ricordassi",
    "fammi ricordare",
    "don t let me forget",
    "dont let me forget",
    "note to self",
    "i/we must/should/need/have/can not/to/t? to? remember/forget to",
    "i mustn t forget to",
    "devo/dobbiamo/dovrei ricordarmi/ricordarci/ricordare di",
    "non devo dimenticare/dimenticarmi di",
    "promemoria",
    "reminder to/for/about",
    "wake me",
    "make a note",
    "imposta/crea/metti/mettimi/aggiungi/segna/fissa un/il/una? promemoria/sveglia",
    "segnati/segnami/annotati/appuntati di/che",
];

/// Questions about something the speaker has forgotten, which are no requests for a reminder.
pub(super) static REMINDS_ME_WHAT: &Patterns = patterns![
    "remind me/us what/who/how/which/where/when/why",
    "remind me/us of? my/the",
    "ricordami/ricordaci/mi/ci ricordi? quanti/quante/quanto/chi/cosa/che/quale/quali/dove/come/quando/il/la/i/le",
];

/// Requests to tell, write to or ask another person.
pub(super) static TELLS: &Patterns = patterns![
    "tell/inform/notify/warn/advise/assure/remind/message/text/email/whatsapp/ping/call/phone",
    "write/reply/respond/say/answer/explain/talk/speak/report back? to",
    "let",
    "write/send/draft/compose/prepare/forward/drop/shoot me/him/her/them? a/an/the/another/this? short/quick/new/formal/polite? email/e-mail/mail/message/note/letter/text/sms/memo/reply/post/tweet/invitation",
    "ask",
    "di/dici/dica/dire/dite/digli/dille/dillo a/ad/al/alla/ai/alle/allo/agli/all",
    "digli/dille/digli/ditegli/scrivigli/scrivile/avvisalo/avvisala/avvertilo/informalo/chiedigli/chiedile/rispondigli/rispondile/ricordagli/ricordale",
    "scrivi/scrivere/scriva/rispondi/rispondere/comunica/comunicare/spiega/spiegare/racconta/riferisci/riferire/segnala/annuncia/ricorda/ricordare/chiedi/chiedere/domanda/domandare a/ad/al/alla/ai/alle/allo/agli/all",
    "avvisa/avvisare/avverti/avvertire/informa/informare/contatta/chiama",
    "scrivi/scrivere/manda/mandare/invia/inviare/prepara/spedisci un/una/il/la? breve? email/e-mail/mail/messaggio/lettera/sms/nota/biglietto/risposta",
    "fai/fa/fate/far sapere a/ad/al/alla/ai/che",
    "telefona/telefonare a/al/alla",
];

/// Requests to write a text that is no message: a story, a poem.
pub(super) static TALES: &Patterns = patterns![
    "write/tell/compose/invent/make/draft me/us/up? a/an/the/another? short/funny/little/long? story/poem/joke/essay/novel/song/tale/dialogue/script/speech/article/blog/example/sentence/function/program",
    "scrivi/scrivimi/racconta/raccontami/inventa/componi/fammi un/una/il/la breve/bella/divertente/corta/lunga? storia/poesia/racconto/barzelletta/canzone/saggio/favola/tema/dialogo/discorso/articolo/esempio/frase",
];

/// Verbs of reported speech.
pub(super) static SAID: &Patterns = patterns![
    "said/says/say/told/wrote/writes/asked/asks/answered/replied/claims/claimed/suggested/suggests/thinks/thought",
    "has/have said/told/written/asked",
    "ha/hanno detto/scritto/chiesto/risposto/suggerito/proposto",
    "mi/ci ha/hanno detto/scritto/chiesto",
    "dice/dicono/diceva/chiede/chiedono/scrive/sostiene/disse",
    "è scritto",
    "c è scritto",
];

/// Orders to say the words after them.
pub(super) static SAY_AFTER_ME: &Patterns = patterns![
    "repeat/echo/recite/pronounce/spell/say after? me/this/that/it/aloud?",
    "repeat/echo/recite/pronounce/spell/say the following? words/word/sentence",
    "ripeti/ripetete/ripetimi/recita/pronuncia dopo? di? me/questo/questa?",
    "ripeti/ripetete/recita/pronuncia le/la/questa/queste seguente/seguenti? parole/parola/frase",
];

/// Nouns for texts; a clause after such a noun and a colon is quoted.
pub(super) const TEXTS: &[&str] = &[
    "sentence", "text", "phrase", "quote", "example", "title", "subject", "email", "mail", "message",
    "letter", "memo", "poem", "headline", "caption", "lyrics", "frase", "testo", "citazione", "esempio",
    "titolo", "oggetto", "messaggio", "lettera", "poesia", "didascalia",
];

/// Verbs in the third person.
pub(super) static THIRD: &Patterns = patterns![
    "wants/needs/wishes/likes/has/is/was/would/d/will/must/should/can/could/may/might/takes/books/asks/plans/prefers/intends/hopes/gets/goes/requires/requests/orders/borrows/cancels/renews/doesn/isn/d",
    "want/need/wish/have/are/were/would/must/should",
    "vuole/vogliono/vorrebbe/vorrebbero/desidera/desiderano/deve/devono/dovrebbe/dovrebbero/ha/hanno/avrebbe/avrebbero/puo/possono/potrebbe/prende/prendono/chiede/chiedono/prenota/prenotano/va/vanno/sta/stanno/intende/pensa/ordina/annulla/disdice/rinnova/preferisce/voleva/volevano/prendera/fara/andra/si/è/sono/serve/servono/serviranno/parte/viene/arriva",
];

/// Openings of statements about possibilities, intentions and the future.
pub(super) static MAY_BE: &Patterns = patterns![
    "maybe/perhaps/possibly/probably",
    "forse/magari/chissa/probabilmente/eventualmente",
    "i/we may/might/could/think/guess/suppose/believe/hope/plan/intend/consider/will/ll/shall/can",
    "i/we was/were planning/thinking/considering/wondering",
    "i/we am/m/are/re going/planning/thinking/considering/organizing/organising/travelling/traveling/taking/leaving/flying/visiting/moving/wondering/preparing/working/on/off/away",
    "i/we have/ve been",
    "i/we d/would? consider",
    "how about",
    "what about <ing>",
    "che ne dici/dite/pensi",
    "sto/stai/sta/stiamo/stavo/stavamo <ger>",
    "di/ogni solito/anno/mese/settimana/giorno/volta/estate",
    "i/we usually/normally/always/often/generally/sometimes",
    "usually/normally/generally/every",
    "normalmente/generalmente/solitamente/spesso",
    "ci penso/pensiamo",
    "lo/la faccio/facciamo io/noi",
    "sto/stiamo/stavo/stavamo pensando/valutando/considerando/organizzando/pianificando/programmando/andando/partendo/preparando/per",
    "penso/pensiamo/pensavo/pensavamo/spero/speravo/credo/conto/contiamo/intendo/vado/andiamo/parto/partiamo di/che/a/in/per?",
    "ho/abbiamo intenzione/in/idea",
    "i/we don/do t/not mind",
    "i m/am",
    "non mi/ci? dispiace/dispiacerebbe",
];

/// Openings of preambles before a request.
pub(super) static PREAMBLES: &Patterns = patterns![
    "go ahead",
    "can/could/would/will you please/kindly? go ahead",
    "can/could/would/will you? please? do me a/another favor/favour",
    "do me a favor/favour",
    "fammi/mi un favore/piacere",
    "mi fai/faresti un favore/piacere",
    "i/we have/ve got? a/an/another/one/some/two quick/small/simple/short/urgent? question/questions/request/requests/problem/doubt/favour/favor",
    "i/we need/want/would/d/could use? like? your/some/a? help/hand/assistance/information/info/advice",
    "can/could/would/will you please/kindly? help/assist me/us? out/with? this/something/please?",
    "i/we am/m/are/re just/currently? planning/organizing/organising/preparing/arranging/thinking a/an/my/our/the/about? trip/holiday/travel/party/visit/journey/weekend/vacation/event/evening/meeting/dinner/move",
    "ho/abbiamo/avrei/avremmo una/un/alcune/qualche/due piccola/piccolo/breve/altra? domanda/domande/richiesta/richieste/dubbio/problema/favore/cosa/cose/curiosita",
    "puoi/potresti/potete/potreste/mi/ci puoi/potresti/potete? aiutarmi/aiutarci/aiutare/dare/darmi una? mano?",
    "ho/abbiamo/avrei/avremmo bisogno di un/una/del/qualche? aiuto/mano/informazione/informazioni/assistenza/supporto",
    "mi serve/servirebbe un/una/del? aiuto/mano",
    "sto/stiamo organizzando/pianificando/preparando/programmando un/una/il/la/le? viaggio/vacanza/festa/gita/weekend/trasferta/cena/evento/ferie",
    "i m/am writing/contacting",
    "ti/le/vi devo/volevo/vorrei chiedere una cosa",
    "posso farti/chiederti/farle una? domanda/cosa",
    "can/may/could i ask you? a/something/one question?",
    "my name is",
    "mi chiamo",
    "scrivo per",
];

pub(super) const WH: &[&str] = &[
    "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "chi", "cosa", "quale", "quali",
    "qual", "quando", "quanti", "quante", "quanto", "quanta", "dove", "perche", "come", "combien", "quand",
    "wer", "wann", "wo", "wieviel", "cuando", "cuantos", "quien", "donde", "cos",
];

pub(super) const KIN: &[&str] =
    &["my", "our", "his", "her", "their", "mio", "mia", "miei", "mie", "nostro", "nostra", "suo", "sua"];

pub(super) const THEY: &[&str] = &[
    "he", "she", "they", "lui", "lei", "loro", "somebody", "someone", "everybody", "everyone", "nobody",
    "qualcuno", "nessuno", "tutti",
];

pub(super) static POLITE_IF: &Patterns = patterns![
    "if possible/needed/necessary/convenient/appropriate",
    "if at all possible",
    "if need be",
    "if you can/could/please/like/want/wish/may/wouldn/don t? mind?",
    "if it s/is? not? ok/okay/fine/possible/alright/convenient",
    "if it s/is? not a/too? problem/trouble/much/hard trouble?",
    "if that s/is ok/okay/fine/possible/alright",
    "if i may",
    "if i m/am not mistaken",
    "if i remember correctly/right/well",
    "if it helps",
    "se possibile/necessario/serve/occorre",
    "se puoi/potete/potresti/puo/riesci/riuscite/vuoi/volete/credi",
    "se ti/vi/le va/pare",
    "se non ti/vi/le dispiace/spiace/disturba/crea",
    "se non e/è un problema",
    "se hai/avete un? tempo/attimo/minuto",
    "se non sbaglio/erro",
    "se ricordo bene",
    "se per te/voi/lei? va bene",
    "se è/e possibile",
];

pub(super) static IF: &Patterns = patterns![
    "only if",
    "if",
    "unless",
    "provided/providing that?",
    "as long as",
    "so long as",
    "in case",
    "on condition that",
    "in the event",
    "assuming that?",
    "should it/there/the/he/she/they",
    "as soon as",
    "once it/he/she/they/my/the/there/our",
    "after it/he/she/they",
    "after/once my/our/the * agrees/confirms/approves/says/comes/leaves/arrives/answers/replies/signs/pays",
    "dopo/una volta? che",
    "depending on/whether/if",
    "a seconda di/del/della/dei/delle/che",
    "solo se",
    "se",
    "qualora",
    "nel/in caso che?",
    "a condizione che/di",
    "a patto che/di",
    "purche",
    "a meno che/di",
    "sempre che",
    "ammesso che",
    "posto che",
    "salvo che",
    "non appena",
    "appena",
    "falls",
    "wenn",
];

pub(super) static IF_SO: &Patterns = patterns![
    "if so/yes/not",
    "if it is/isn/does/has/can",
    "if they are",
    "if there is/are",
    "in that/this/such case",
    "otherwise",
    "or else",
    "se si/no",
    "in tal/quel/questo caso",
    "altrimenti",
    "in caso contrario/affermativo/negativo/positivo",
    "sennò",
    "senno",
];

/// Words after which "if" means "whether".
pub(super) const WHETHER: &[&str] = &[
    "know", "see", "check", "ask", "asked", "wonder", "wondering", "me", "us", "sure", "out", "verify",
    "understand", "decide", "tell", "sapere", "dimmi", "dirmi", "dirci", "vedere", "vedi", "guarda",
    "controlla", "controllare", "verifica", "verificare", "capire", "chiedo", "chiedere", "chiedi", "sicuro",
    "sicura", "chiedevo", "domando", "chiesto", "what", "as", "even", "sai", "sapete", "so", "come", "anche",
    "se",
];

/// Words after which "if" is a polite "that".
pub(super) const KIND: &[&str] = &[
    "grateful", "great", "nice", "good", "glad", "happy", "helpful", "lovely", "wonderful", "awesome",
    "kind", "thankful", "grato", "grata", "grati", "bello", "utile", "fantastico", "ottimo", "perfetto",
];

pub(super) static CORRECTS: &Patterns = patterns![
    "anzi no?",
    "no anzi",
    "no wait",
    "wait no?",
    "scratch that",
    "i mean",
    "o meglio",
    "or rather",
    "no sorry/scusa",
    "actually <verb>",
    "correction",
    "no aspetta",
    "aspetta no?",
    "actually no",
    "on second thought/thoughts",
    "ripensandoci",
];

/// Words after "not" that limit or soften and make no contrast.
pub(super) const SHADE: &[&str] = &[
    "later", "more", "less", "before", "after", "until", "too", "oltre", "piu", "prima", "dopo", "meno",
    "only", "solo", "soltanto", "even", "all", "just", "yet", "exceeding", "longer", "so", "very", "troppo",
    "molto", "fino", "necessarily",
];
