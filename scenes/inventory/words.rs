//! What the tools say when they refuse, in the user's language.

use proscenium::tools::{ToolContext, ToolError};

use super::money;
use super::names::Item;

/// The most items that a sentence lists.
const MOST_LISTED: usize = 12;

/// The words of one language: Italian, or English for everybody else.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Whether it is Italian.
    pub is_italian: bool,
}

impl Words {
    /// Those of the requester.
    pub fn of(context: &ToolContext) -> Self {
        Self { is_italian: context.language.as_deref().is_some_and(|language| language.starts_with("it")) }
    }

    /// The language's code.
    pub fn language(self) -> &'static str {
        if self.is_italian { "it" } else { "en" }
    }

    /// Words that count one piece.
    pub fn articles(self) -> &'static [&'static str] {
        if self.is_italian { &["un", "uno", "una"] } else { &["a", "an"] }
    }

    fn refused(self, code: &str, english: String, italian: String) -> ToolError {
        ToolError::refused(&format!("inventory.{code}"), if self.is_italian { italian } else { english })
    }

    fn listed(self, items: &[&Item]) -> String {
        let names: Vec<&str> =
            items.iter().take(MOST_LISTED).map(|item| item.name(self.is_italian)).collect();
        let more = if items.len() > MOST_LISTED { ", …" } else { "" };
        format!("{}{more}", names.join(", "))
    }

    /// The shop has no such item.
    pub fn no_item(self, said: &str, items: &[Item]) -> ToolError {
        let (said, all) = (short(said), self.listed(&items.iter().collect::<Vec<_>>()));
        self.refused(
            "no_item",
            format!("The shop has no item called “{said}”. Its items are: {all}."),
            format!("Il negozio non ha nessun articolo «{said}». Gli articoli sono: {all}."),
        )
    }

    /// Several items fit.
    pub fn which_of(self, items: &[&Item]) -> ToolError {
        let all = self.listed(items);
        self.refused(
            "which_item",
            format!("Several items fit: {all}. Nothing was done; please say which one."),
            format!("Ci sono più articoli possibili: {all}. Non è stato fatto nulla: indica quale."),
        )
    }

    /// A word beside an item is not understood.
    pub fn unknown_words(self, said: &str) -> ToolError {
        let said = short(said);
        self.refused(
            "words",
            format!("“{said}” is not understood. Nothing was done; please name items and numbers alone."),
            format!("«{said}» non è chiaro. Non è stato fatto nulla: indica solo articoli e quantità."),
        )
    }

    /// An item without a number.
    pub fn how_many(self, said: &str) -> ToolError {
        let said = short(said);
        self.refused(
            "quantity",
            format!("How many pieces of “{said}”? Nothing was done."),
            format!("Quanti pezzi di «{said}»? Non è stato fatto nulla."),
        )
    }

    /// A number that counts no pieces.
    pub fn bad_number(self, said: &str) -> ToolError {
        let said = short(said);
        self.refused(
            "quantity",
            format!(
                "{said} is not a number of pieces, which is a whole number from 1 to 100000. Nothing was done."
            ),
            format!(
                "{said} non è una quantità: serve un numero intero da 1 a 100000. Non è stato fatto nulla."
            ),
        )
    }

    /// There are fewer pieces than asked for.
    pub fn too_few(self, item: &Item, wanted: i64) -> ToolError {
        let (name, stock) = (item.name(self.is_italian), item.stock);
        self.refused(
            "insufficient_stock",
            format!("{name}: {wanted} asked for, {stock} in stock. Nothing was done."),
            format!("{name}: richiesti {wanted}, in magazzino {stock}. Non è stato fatto nulla."),
        )
    }

    /// A price that is none.
    pub fn bad_price(self, said: &str) -> ToolError {
        let said = short(said);
        self.refused(
            "price",
            format!("{said} is no price: it has to be above 0, in euros and cents. Nothing was done."),
            format!("{said} non è un prezzo: deve essere maggiore di 0, in euro e centesimi. Non è stato fatto nulla."),
        )
    }

    /// The price is already this one.
    pub fn same_price(self, item: &Item) -> ToolError {
        let (name, price) = (item.name(self.is_italian), money::text(item.price_cents));
        let comma = price.replace('.', ",");
        self.refused(
            "same_price",
            format!("{name} costs €{price} already."),
            format!("{name} costa già {comma} €."),
        )
    }

    /// An amount that cannot be counted.
    pub fn too_much(self) -> ToolError {
        self.refused(
            "amount",
            "The numbers are too large. Nothing was done.".to_owned(),
            "I numeri sono troppo grandi. Non è stato fatto nulla.".to_owned(),
        )
    }

    /// The stock kept changing while it was done.
    pub fn busy(self) -> ToolError {
        self.refused(
            "busy",
            "The stock changed in the meantime. Nothing was done; please try again.".to_owned(),
            "Nel frattempo il magazzino è cambiato. Non è stato fatto nulla: riprova.".to_owned(),
        )
    }

    /// A period that ends before it begins, or is too long.
    pub fn bad_period(self) -> ToolError {
        self.refused(
            "period",
            "The period ends before it begins, or has more than a year.".to_owned(),
            "Il periodo finisce prima di iniziare o supera un anno.".to_owned(),
        )
    }
}

fn short(said: &str) -> String {
    said.chars().filter(|c| !c.is_control()).take(60).collect()
}
