"""Family `sums`: word problems in two to four steps, answered by one number in a file."""

from __future__ import annotations

import random
from collections.abc import Callable

from milo.core.task import Task
from milo.suites.deskwork.family import Draft, number, task_from
from milo.suites.deskwork.words import FIRST, FRUITS, GOODS

NAME = "sums"

Problem = tuple[str, str]
"""The text, and the Python expression that gives the answer."""


def make(index: int, rng: random.Random) -> Task:
    """The task with this index."""
    text, expression = PROBLEMS[index % len(PROBLEMS)](rng)
    value = float(eval(expression, {"__builtins__": {}}))  # our own arithmetic, no user input
    draft = Draft(
        instruction=f"{text} Write only the number to `answer.txt`.",
        files={},
        goals=[number("answer.txt", value, tolerance=0.005)],
        solution=f"python3 -c 'print({expression})' > answer.txt",
    )
    return task_from(NAME, index, draft)


def shop_day(rng: random.Random) -> Problem:
    """Takings of a day."""
    a, b, p = rng.randint(23, 88), rng.randint(15, 79), rng.randint(3, 19)
    return (
        f"A shop sells {a} {rng.choice(GOODS)} in the morning and {b} in the afternoon, each for "
        f"{p} dollars. How many dollars does it take in that day?",
        f"({a}+{b})*{p}",
    )


def discount(rng: random.Random) -> Problem:
    """A reduced price, then change from a note."""
    n, p, d = rng.randint(3, 12), rng.choice((15, 20, 40, 60)), rng.choice((5, 10, 20, 25))
    name = rng.choice(FIRST)
    note = (n * p // 100 + 1) * 100
    return (
        f"{name} buys {n} {rng.choice(GOODS)} at {p} dollars each and gets {d} percent off the "
        f"whole bill. {name} pays with {note} dollars. How many dollars come back?",
        f"{note}-{n}*{p}*(100-{d})/100",
    )


def trip(rng: random.Random) -> Problem:
    """Distance at two speeds."""
    u, v = rng.randint(41, 95), rng.randint(51, 119)
    h, k = rng.randint(2, 5), rng.randint(2, 6)
    return (
        f"A van drives {h} hours at {u} km per hour and then {k} hours at {v} km per hour. How "
        f"many km does it drive in total?",
        f"{h}*{u}+{k}*{v}",
    )


def packing(rng: random.Random) -> Problem:
    """What is left after a sale, in boxes."""
    size, boxes, sold = rng.randint(7, 24), rng.randint(9, 40), rng.randint(12, 60)
    return (
        f"A farm has {size * boxes + sold} {rng.choice(FRUITS)} plants. It sells {sold} of them "
        f"and packs the others into boxes of {size}. How many boxes does it fill?",
        f"({size * boxes + sold}-{sold})//{size}",
    )


def savings(rng: random.Random) -> Problem:
    """Weekly saving, then a gift."""
    name, start, weekly = rng.choice(FIRST), rng.randint(30, 140), rng.randint(11, 38)
    weeks, spent = rng.randint(6, 19), rng.randint(10, 60)
    return (
        f"{name} has {start} dollars and saves {weekly} dollars every week for {weeks} weeks. Then "
        f"{name} buys a gift for {spent} dollars. How many dollars does {name} have left?",
        f"{start}+{weekly}*{weeks}-{spent}",
    )


def workers(rng: random.Random) -> Problem:
    """Output per worker and day, less the faulty."""
    n, each, days = rng.randint(4, 14), rng.randint(12, 47), rng.randint(3, 9)
    bad = rng.randint(10, 90)
    return (
        f"In a workshop {n} people each make {each} {rng.choice(GOODS)} a day. After {days} days "
        f"{bad} of all these pieces are found faulty. How many good pieces are there?",
        f"{n}*{each}*{days}-{bad}",
    )


def average(rng: random.Random) -> Problem:
    """The mean of four numbers."""
    scores = [rng.randint(41, 99) for _ in range(4)]
    scores[3] += -sum(scores) % 4
    return (
        f"Four crates weigh {scores[0]}, {scores[1]}, {scores[2]} and {scores[3]} kg. What is "
        f"their average weight in kg?",
        f"({'+'.join(map(str, scores))})/4",
    )


def area(rng: random.Random) -> Problem:
    """A floor at a price per square metre, and a fixed fee."""
    a, b, fee, price = (
        rng.randint(8, 25),
        rng.randint(7, 19),
        rng.randint(40, 95),
        rng.randint(9, 34),
    )
    return (
        f"A hall is {a} m long and {b} m wide. Carpet costs {price} dollars per square metre, and "
        f"laying it costs {fee} dollars more. How many dollars does it cost in total?",
        f"{a}*{b}*{price}+{fee}",
    )


def ages(rng: random.Random) -> Problem:
    """Ages some years on."""
    one, two = rng.sample(FIRST, 2)
    age, times, years = rng.randint(6, 15), rng.randint(3, 5), rng.randint(3, 14)
    return (
        f"{one} is {age} years old and {two} is {times} times as old. How old will they be "
        f"together in {years} years?",
        f"{age}+{age}*{times}+2*{years}",
    )


def recipe(rng: random.Random) -> Problem:
    """Scaling a recipe."""
    serves, grams, times = (
        rng.choice((4, 5, 6)),
        rng.choice((150, 180, 240, 300)),
        rng.randint(3, 9),
    )
    return (
        f"A recipe for {serves} people takes {grams} grams of flour. How many grams of flour does "
        f"a cook need for {serves * times} people?",
        f"{grams}*{serves * times}//{serves}",
    )


def hire(rng: random.Random) -> Problem:
    """A fixed fee and a rate, shared."""
    people, fee, rate = rng.choice((2, 4, 5)), rng.randint(15, 60), rng.randint(6, 22)
    hours = rng.randint(3, 11)
    fee += -(fee + rate * hours) % people
    return (
        f"Hiring a boat costs {fee} dollars plus {rate} dollars per hour. {people} friends hire it "
        f"for {hours} hours and share the cost equally. How many dollars does each pay?",
        f"({fee}+{rate}*{hours})/{people}",
    )


def stock(rng: random.Random) -> Problem:
    """Stock after a sale of a share and a delivery."""
    crates, each = rng.randint(6, 18), rng.choice((12, 20, 24, 30))
    share, back, new = rng.choice((25, 50, 75)), rng.randint(3, 17), rng.randint(30, 160)
    return (
        f"A store has {crates * 2} crates with {each} {rng.choice(GOODS)} each. It sells {share} "
        f"percent of them, {back} come back, and a truck brings {new} more. How many are there "
        f"now?",
        f"{crates * 2}*{each}*(100-{share})/100+{back}+{new}",
    )


PROBLEMS: tuple[Callable[[random.Random], Problem], ...] = (
    shop_day,
    discount,
    trip,
    packing,
    savings,
    workers,
    average,
    area,
    ages,
    recipe,
    hire,
    stock,
)
