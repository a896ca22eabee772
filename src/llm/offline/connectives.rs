//! Words of sequence and addition between the clauses of a request.

use super::clauses::ClauseLink;
use super::text::Token;
use crate::language::dates::month;
use crate::language::function_words::BUT;

/// Connectives of sequence (`Then`) and addition (`Also`), longer ones first.
const CONNECTIVES: &[(&[&str], ClauseLink)] = &[
    (&["dopo", "di", "che"], ClauseLink::Then),
    (&["una", "volta", "fatto"], ClauseLink::Then),
    (&["after", "that"], ClauseLink::Then),
    (&["once", "done"], ClauseLink::Then),
    (&["fatto", "questo"], ClauseLink::Then),
    (&["subito", "dopo"], ClauseLink::Then),
    (&["in", "seguito"], ClauseLink::Then),
    (&["per", "ultimo"], ClauseLink::Then),
    (&["per", "finire"], ClauseLink::Then),
    (&["e", "dopo"], ClauseLink::Then),
    (&["dopodiche"], ClauseLink::Then),
    (&["poi"], ClauseLink::Then),
    (&["then"], ClauseLink::Then),
    (&["afterwards"], ClauseLink::Then),
    (&["successivamente"], ClauseLink::Then),
    (&["infine"], ClauseLink::Then),
    (&["finally"], ClauseLink::Then),
    (&["lastly"], ClauseLink::Then),
    (&["puis"], ClauseLink::Then),
    (&["ensuite"], ClauseLink::Then),
    (&["enfin"], ClauseLink::Then),
    (&["danach"], ClauseLink::Then),
    (&["dann"], ClauseLink::Then),
    (&["luego"], ClauseLink::Then),
    (&["despues"], ClauseLink::Then),
    (&["depois"], ClauseLink::Then),
    (&["in", "addition"], ClauseLink::Also),
    (&["allo", "stesso", "tempo"], ClauseLink::Also),
    (&["at", "the", "same", "time"], ClauseLink::Also),
    (&["nel", "frattempo"], ClauseLink::Also),
    (&["and", "also"], ClauseLink::Also),
    (&["e", "anche"], ClauseLink::Also),
    (&["ed", "anche"], ClauseLink::Also),
    (&["e", "pure"], ClauseLink::Also),
    (&["et", "aussi"], ClauseLink::Also),
    (&["und", "auch"], ClauseLink::Also),
    (&["y", "tambien"], ClauseLink::Also),
    (&["inoltre"], ClauseLink::Also),
    (&["additionally"], ClauseLink::Also),
    (&["furthermore"], ClauseLink::Also),
    (&["moreover"], ClauseLink::Also),
    (&["meanwhile"], ClauseLink::Also),
    (&["ausserdem"], ClauseLink::Also),
    (&["nonche"], ClauseLink::Also),
];

/// The connective at a token: how many tokens it has, and how what follows relates to what stands before it.
pub(super) fn match_connective(tokens: &[Token], i: usize) -> Option<(usize, ClauseLink)> {
    // An "e" or "and" before the connective belongs to it.
    let lead = usize::from(tokens[i].is_and());
    for skip in if lead == 1 { [0, 1] } else { [0, 0] } {
        let at = i + skip;
        for (words, link) in CONNECTIVES {
            let fits = words.iter().enumerate().all(|(k, w)| {
                tokens.get(at + k).is_some_and(|t| t.norm == *w && (*w != "e" || t.lower == "e"))
            });
            if fits && is_clause_boundary(tokens, at, words) {
                return Some((skip + words.len(), *link));
            }
        }
    }
    // ", also …" and "… . Also, …"
    let comma = i > 0 && tokens[i - 1].raw == ",";
    if comma && tokens[i].is(&["also", "anche", "plus"]) && !is_day_of_list(tokens, i + 1) {
        return Some((1, ClauseLink::Also));
    }
    None
}

/// Whether the connective separates clauses and is not part of another expression.
fn is_clause_boundary(tokens: &[Token], at: usize, words: &[&str]) -> bool {
    let before = at.checked_sub(1).and_then(|k| tokens.get(k));
    let after = tokens.get(at + words.len());
    match words {
        ["then"] => !before.is_some_and(|t| t.is(&["back", "by", "since", "until", "till"])),
        [_, "also" | "anche" | "pure" | "aussi" | "auch" | "tambien"] => {
            !is_day_of_list(tokens, at + words.len())
        }
        ["poi"] => !before.is_some_and(|t| t.is(&["o", "in", "da"])),
        // "El día después de Navidad".
        ["despues"] | ["depois"] => !after.is_some_and(|t| t.is(&["de", "del", "do", "da"])),
        ["e", "dopo"] => !after.is_some_and(|t| t.is(&["domani"])),
        _ => true,
    }
}

/// Whether a day is all that follows, so that it belongs to the days before: "il 14 dicembre e anche il 16".
fn is_day_of_list(tokens: &[Token], at: usize) -> bool {
    let leads = ["il", "l", "the", "on", "am", "den", "le", "el"];
    let day = at + tokens[at..].iter().take_while(|t| t.is(&leads)).count();
    let next = tokens.get(day + 1);
    tokens.get(day).is_some_and(|t| t.digit() && t.norm.len() <= 4)
        && next.is_none_or(|t| !t.word || month(&t.norm).is_some())
}

/// Matches a connective that reverses the order: "…, but first …", "ma prima …".
pub(super) fn match_reversal(tokens: &[Token], i: usize) -> Option<usize> {
    let second = tokens.get(i + 1)?;
    let opens = tokens[i].is(BUT);
    if !opens || !second.is(&["prima", "first", "abord", "zuerst", "primero", "before"]) {
        return None;
    }
    let of_all = tokens.get(i + 2).is_some_and(|t| t.is(&["di", "that", "of"]))
        && tokens.get(i + 3).is_some_and(|t| t.is(&["tutto", "all"]));
    let that = tokens.get(i + 2).is_some_and(|t| t.is(&["that"]));
    Some(if of_all {
        4
    } else if that {
        3
    } else {
        2
    })
}
