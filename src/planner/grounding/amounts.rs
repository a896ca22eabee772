//! The amounts of money that a text says.

use std::collections::BTreeSet;

use super::quantity;
use super::words::{SourceWord, words};

/// Words and signs of currencies, before or after a number.
const CURRENCIES: &[&str] = &[
    "euro", "euros", "eur", "€", "$", "dollar", "dollars", "dollari", "usd", "£", "pound", "pounds", "gbp",
    "sterline", "franchi", "chf",
];

/// Words before a number that is a price.
const PRICED: &[&str] = &["at", "@"];

/// The largest amount that is read, in hundredths.
const MAX_AMOUNT: f64 = 1e15;

/// The amounts of money in a text, in hundredths: numbers with a currency, after "at", or with two decimals. A number that is
/// written in two ways (`1.500`) is both.
pub fn amounts_of_money(text: &str) -> BTreeSet<i64> {
    let words = words(text);
    let mut amounts = BTreeSet::new();
    let mut i = 0;
    while i < words.len() {
        let Some(found) = quantity::at(&words, i) else {
            i += 1;
            continue;
        };
        let before = found.first.checked_sub(1).and_then(|at| words.get(at));
        let is_priced = before.is_some_and(|word| word.is(CURRENCIES) || word.is(PRICED))
            || words.get(found.next).is_some_and(|word| word.is(CURRENCIES))
            || words.get(found.first..found.next).is_some_and(has_cents);
        if is_priced {
            let hundredths = found.values.iter().map(|value| (value * 100.0).round());
            let all = hundredths.filter(|amount| (0.0..MAX_AMOUNT).contains(amount));
            amounts.extend(all.map(|amount| amount as i64));
        }
        i = found.next.max(i + 1);
    }
    amounts
}

/// Whether a number ends with two decimals: `4.50`, `4,50`.
fn has_cents(number: &[SourceWord]) -> bool {
    match number {
        [.., mark, cents] => mark.is(&[".", ","]) && cents.norm.len() == 2 && cents.figure().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_with_a_currency_a_price_word_or_cents() {
        for (text, amounts) in [
            ("Sell 3 espresso cups", &[][..]),
            ("Sell 3 espresso cups at 4", &[400]),
            ("Sell 3 espresso cups at 4.50 each", &[450]),
            ("Vendi 3 tazzine a 4,50", &[450]),
            ("Vendi 3 tazzine a 4 euro l'una", &[400]),
            ("Sell 2 teapots for €20 and 1 jug for 12 dollars", &[1200, 2000]),
            ("It costs 1.500 euros", &[150, 150_000]),
            ("twenty euros for 2", &[2000]),
            ("Sold on 12.05.2026, 9 pieces", &[]),
        ] {
            assert_eq!(amounts_of_money(text).into_iter().collect::<Vec<_>>(), amounts, "{text}");
        }
    }
}
