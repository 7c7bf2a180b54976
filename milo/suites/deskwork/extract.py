"""Family `extract`: read a short text and write what it says as JSON with given keys and types."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from milo.core.task import Task
from milo.suites.deskwork.family import Draft, pick_kind, quoted, task_from
from milo.suites.deskwork.words import (
    CITIES,
    FIRST,
    FRUITS,
    GOODS,
    MONTHS,
    SERVICES,
    TOPICS,
    person,
    sample,
)

NAME = "extract"

Field = tuple[str, str, Sequence[Any]]
"""A key, its type and meaning in words, and the accepted values (the first is the reference)."""


def make(index: int, rng: random.Random) -> Task:
    """The task with this index."""
    return task_from(NAME, index, pick_kind(KINDS, index, rng))


def _draft(source: str, output: str, text: str, fields: Sequence[Field]) -> Draft:
    named = [f"`{key}` ({meaning})" for key, meaning, _ in fields]
    reference: Mapping[str, Any] = {key: accepted[0] for key, _, accepted in fields}
    return Draft(
        instruction=(
            f"Read `{source}` and write `{output}`: one JSON object with the keys "
            f"{', '.join(named[:-1])} and {named[-1]}. Use exactly these keys and types."
        ),
        files={source: text.strip() + "\n"},
        goals=[
            {"kind": "key", "path": output, "key": key, "accepted": list(accepted)}
            for key, _, accepted in fields
        ],
        solution=f"cat > {output} {quoted(json.dumps(reference))}",
    )


def order(rng: random.Random) -> Draft:
    """A customer's order, sometimes with a total to work out."""
    name, city, item = person(rng), rng.choice(CITIES), rng.choice(GOODS)
    count, price = rng.randint(3, 40), rng.choice((2.5, 4.5, 7.25, 12.5, 8.75, 15.5))
    other = rng.choice([good for good in GOODS if good != item])
    text = rng.choice(
        (
            f"Hello,\nthis is {name}. Last week we took {rng.randint(2, 9)} {other}, and now we "
            f"need {count} {item} for our shop in {city}. You quoted {price:.2f} euros each.\n",
            f"From: {name}\nWe would like {count} {item} (no {other} this time) at {price:.2f} "
            f"euros apiece, sent to {city}. The last delivery had {rng.randint(2, 9)} boxes.\n",
        )
    )
    fields: list[Field] = [
        ("customer", "string", [name]),
        ("item", "string", [item, item.rstrip("s")]),
        ("quantity", "integer", [count]),
        ("city", "string", [city]),
    ]
    if rng.random() < 0.5:
        fields[3] = ("total", "number, quantity times unit price", [round(count * price, 2)])
    return _draft("order.txt", "order.json", text, fields)


def booking(rng: random.Random) -> Draft:
    """A hotel booking with an ISO date."""
    name, city = person(rng), rng.choice(CITIES)
    day, month, nights = rng.randint(1, 28), rng.randint(1, 12), rng.randint(2, 9)
    guests, breakfast = rng.randint(1, 5), rng.random() < 0.5
    meal = "Breakfast is included." if breakfast else "They do not want breakfast."
    text = rng.choice(
        (
            f"Booking for {name}: arriving in {city} on {day} {MONTHS[month - 1]} 2024 and staying "
            f"{nights} nights. Guests: {guests}. {meal}",
            f"{name} called. Room in {city} for {guests} people, {nights} nights, first night is "
            f"{MONTHS[month - 1]} {day}, 2024. {meal}",
        )
    )
    fields: list[Field] = [
        ("guest", "string", [name]),
        ("arrival", "string, date as YYYY-MM-DD", [f"2024-{month:02d}-{day:02d}"]),
        ("nights", "integer", [nights]),
        ("breakfast", "boolean", [breakfast]),
    ]
    return _draft("booking.txt", "booking.json", text, fields)


def contact(rng: random.Random) -> Draft:
    """A contact card in running text."""
    first, last = person(rng).split()
    firm = f"{rng.choice(CITIES)} {rng.choice(('Timber', 'Glass', 'Paper', 'Textiles'))}"
    mail = f"{first.lower()}.{last.lower()}@{firm.split(maxsplit=1)[0].lower()}.example"
    phone = f"0{rng.randint(20, 99)}-{rng.randint(100000, 999999)}"
    fax = f"0{rng.randint(20, 99)}-{rng.randint(100000, 999999)}"
    text = (
        f"It was good to meet you at the fair. I run purchasing at {firm}. Write to {mail} or call "
        f"{phone} (the fax is {fax}).\nBest wishes\n{first} {last}\n"
    )
    fields: list[Field] = [
        ("first_name", "string", [first]),
        ("last_name", "string", [last]),
        ("company", "string", [firm]),
        ("email", "string", [mail]),
        ("phone", "string", [phone]),
    ]
    return _draft("card.txt", "contact.json", text, fields)


def incident(rng: random.Random) -> Draft:
    """A note about a failure, with a duration to work out."""
    service, cause_service = sample(rng, SERVICES, 2)
    hour, minute, length = rng.randint(8, 19), rng.randint(0, 29), rng.randint(5, 29)
    users, level = rng.randint(20, 900), rng.choice(("low", "medium", "high"))
    text = (
        f"The {service} service went down at {hour:02d}:{minute:02d} and was back at "
        f"{hour:02d}:{minute + length:02d}. At first we suspected {cause_service}. About {users} "
        f"users noticed. We rate the severity as {level}."
    )
    fields: list[Field] = [
        ("service", "string, the one that failed", [service, f"{service} service"]),
        ("start", "string, HH:MM", [f"{hour:02d}:{minute:02d}"]),
        ("minutes", "integer, how long it was down", [length]),
        ("severity", "string", [level]),
    ]
    return _draft("note.txt", "incident.json", text, fields)


def invoice(rng: random.Random) -> Draft:
    """An invoice with lines to count and add up."""
    seller, count = f"{rng.choice(CITIES)} Supplies", rng.randint(2, 4)
    rows = [
        (item, rng.randint(2, 9), rng.choice((3, 5, 8, 12, 20, 25)))
        for item in sample(rng, GOODS, count)
    ]
    ident, paid = f"R-{rng.randint(1000, 9999)}", rng.random() < 0.5
    body = "\n".join(
        f"{number} x {item} at {price} = {number * price}" for item, number, price in rows
    )
    state = "Paid in cash, thank you." if paid else "Please pay within 14 days."
    text = f"{seller}\nInvoice {ident}\n{body}\n{state}\n"
    fields: list[Field] = [
        ("number", "string, the invoice number", [ident, f"Invoice {ident}"]),
        ("items", "list of strings, item names in order", [[item for item, _, _ in rows]]),
        ("total", "number, sum of the lines", [sum(n * price for _, n, price in rows)]),
        ("paid", "boolean", [paid]),
    ]
    return _draft("invoice.txt", "invoice.json", text, fields)


def delivery(rng: random.Random) -> Draft:
    """A carrier's message about a parcel."""
    code = f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNPQ')}{rng.randint(10000, 99999)}"
    start, end = sample(rng, CITIES, 2)
    grams = rng.randint(2, 38) * 250
    fragile = rng.random() < 0.5
    text = (
        f"Parcel {code} left {start} this morning and will reach {end} tomorrow. It weighs {grams} "
        f"grams. {'Handle with care: it is fragile.' if fragile else 'No special handling.'}"
    )
    fields: list[Field] = [
        ("code", "string", [code]),
        ("from", "string", [start]),
        ("to", "string", [end]),
        ("weight_kg", "number", [grams / 1000]),
        ("fragile", "boolean", [fragile]),
    ]
    return _draft("message.txt", "parcel.json", text, fields)


def meeting(rng: random.Random) -> Draft:
    """A message about a meeting that was moved."""
    people = sample(rng, FIRST, rng.randint(3, 4))
    topic, room = rng.choice(TOPICS), rng.choice(("Oak", "Birch", "Cedar", "Maple"))
    days = sample(rng, ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"), 2)
    hour = rng.randint(9, 16)
    text = (
        f"The {topic} meeting moves from {days[0]} to {days[1]}, {hour}:30, room {room}. "
        f"{', '.join(people[:-1])} and {people[-1]} will come."
    )
    fields: list[Field] = [
        ("topic", "string", [topic, f"{topic} meeting"]),
        ("day", "string, the new day", [days[1]]),
        ("room", "string", [room, f"room {room}"]),
        ("people", "list of strings, in order", [people]),
    ]
    return _draft("mail.txt", "meeting.json", text, fields)


def harvest(rng: random.Random) -> Draft:
    """A grower's report with amounts per fruit."""
    fruits = sample(rng, FRUITS, 3)
    crates = [rng.randint(4, 60) for _ in fruits]
    lost = rng.randint(1, 3)
    text = (
        f"This week {rng.choice(FIRST)} picked {crates[0]} crates of {fruits[0]}, {crates[1]} of "
        f"{fruits[1]} and {crates[2]} of {fruits[2]}. {lost} crates of {fruits[1]} were spoiled."
    )
    best = fruits[crates.index(max(crates))]
    fields: list[Field] = [
        (fruits[0], "integer, crates picked", [crates[0]]),
        (fruits[2], "integer, crates picked", [crates[2]]),
        ("spoiled", "integer", [lost]),
        ("most", "string, the fruit with the most crates", [best]),
    ]
    return _draft("harvest.txt", "harvest.json", text, fields)


KINDS = (order, booking, contact, incident, invoice, delivery, meeting, harvest)
