//! Names of countries and states, which follow place names: "Paris, France".

/// Countries and states in English and Italian, without accents. Words of a name are joined by `_`.
const COUNTRIES: &str = "\
afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahamas bahrain bangladesh belarus belgium belgio \
bolivia bosnia botswana brazil brasile bulgaria cambodia cambogia cameroon camerun canada chad chile cile china cina colombia congo \
costa_rica croatia croazia cuba cyprus cipro czechia czech_republic repubblica_ceca denmark danimarca ecuador egypt egitto \
england inghilterra estonia eritrea ethiopia etiopia finland finlandia france francia georgia germany germania ghana greece grecia \
guatemala haiti honduras hungary ungheria iceland islanda india indonesia iran iraq ireland irlanda israel israele italy italia \
jamaica giamaica japan giappone jordan giordania kazakhstan kenya kuwait laos latvia lettonia lebanon libano libya libia liechtenstein \
lithuania lituania luxembourg lussemburgo madagascar malaysia mali malta mauritius mexico messico moldova monaco mongolia montenegro \
morocco marocco mozambique mozambico myanmar namibia nepal netherlands paesi_bassi olanda new_zealand nuova_zelanda nicaragua niger \
nigeria north_macedonia norway norvegia oman pakistan panama paraguay peru philippines filippine poland polonia portugal portogallo qatar \
romania russia rwanda san_marino saudi_arabia arabia_saudita scotland scozia senegal serbia singapore slovakia slovacchia slovenia somalia \
south_africa sudafrica south_korea corea_del_sud spain spagna sri_lanka sudan sweden svezia switzerland svizzera syria siria taiwan tanzania \
thailand thailandia tunisia turkey turchia uganda ukraine ucraina united_kingdom regno_unito uk united_states stati_uniti usa uruguay \
uzbekistan venezuela vietnam wales galles yemen zambia zimbabwe \
alabama alaska arizona arkansas california colorado connecticut delaware florida hawaii idaho illinois indiana iowa kansas kentucky \
louisiana maine maryland massachusetts michigan minnesota mississippi missouri montana nebraska nevada new_hampshire new_jersey new_mexico \
north_carolina north_dakota ohio oklahoma oregon pennsylvania rhode_island south_carolina south_dakota tennessee texas utah vermont \
virginia west_virginia wisconsin wyoming ontario quebec";

/// Two-letter codes of US states and Canadian provinces.
const STATES: &str = "\
al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok or pa ri sc sd tn tx ut vt va \
wa wv wi wy dc on qc bc";

/// Whether a name in lower case without accents is a country or a state.
pub(super) fn is_country(name: &str) -> bool {
    let name = name.replace(' ', "_");
    COUNTRIES.split_whitespace().any(|country| country == name)
}

/// Whether two lower-case letters are the code of a state or province.
pub(super) fn is_state(letters: &str) -> bool {
    STATES.split_whitespace().any(|state| state == letters)
}
