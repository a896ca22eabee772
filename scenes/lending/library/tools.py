"""The loans of a small library. Each function is the tool of the same name in scene.toml."""

from datetime import date, timedelta

WORDS = {
    "en": {
        "lent": "{title} is lent to {reader} already.",
        "full": "{reader} has {most} books already.",
        "not_lent": "{title} is not lent.",
        "renewed": "The loan of {title} was renewed {most} times already.",
        "overdue": "{title} is overdue and cannot be renewed.",
    },
    "it": {
        "lent": "{title} è già in prestito a {reader}.",
        "full": "{reader} ha già {most} libri.",
        "not_lent": "{title} non è in prestito.",
        "renewed": "Il prestito di {title} è già stato rinnovato {most} volte.",
        "overdue": "{title} è scaduto e non può essere rinnovato.",
    },
}


def list_loans(reader):
    name = reader.strip()
    books = by_day(loans_of(name))
    return {"reader": name, "books": [{"title": row["title"], "due": row["due"]} for row in books]}


def list_overdue():
    late = by_day(tables.find("loans", where={"due": {"lt": date.today()}}))
    return {"loans": [{"title": row["title"], "reader": row["reader"], "days": days_late(row)} for row in late]}


def lend_book(title, reader):
    title, name = title.strip(), reader.strip()
    row = tables.get("loans", key=title.lower())
    if row:
        refuse("lent", title=row["title"], reader=row["reader"])
    if len(loans_of(name)) >= setting("max_books"):
        refuse("full", reader=name, most=setting("max_books"))
    due = date.today() + timedelta(days=setting("loan_days"))
    loan = {"key": title.lower(), "title": title, "reader": name, "reader_key": name.lower()}
    loan["due"] = due
    loan["renewals"] = 0
    tables.insert("loans", values=loan)
    return {"title": title, "reader": name, "due": due}


def renew_loan(title):
    row = loan_of(title)
    if days_late(row) > 0:
        refuse("overdue", title=row["title"])
    if row["renewals"] >= setting("max_renewals"):
        refuse("renewed", title=row["title"], most=setting("max_renewals"))
    due = date.fromisoformat(row["due"]) + timedelta(days=setting("loan_days"))
    tables.update("loans", key=row["key"], values={"due": due, "renewals": row["renewals"] + 1})
    return {"title": row["title"], "reader": row["reader"], "due": due}


def take_back(title):
    row = loan_of(title)
    tables.delete("loans", key=row["key"])
    return {"title": row["title"], "reader": row["reader"], "late": max(days_late(row), 0)}


def loan_of(title):
    row = tables.get("loans", key=title.strip().lower())
    if not row:
        refuse("not_lent", title=title.strip())
    return row


def loans_of(name):
    return tables.find("loans", where={"reader_key": name.lower()})


def days_late(row):
    return (date.today() - date.fromisoformat(row["due"])).days


def by_day(rows):
    return sorted(rows, key=lambda row: row["due"])


def setting(name):
    return context["settings"][name]


def refuse(reason, **values):
    words = WORDS.get(context["language"], WORDS["en"])
    tool.refuse(words[reason].format(**values))
