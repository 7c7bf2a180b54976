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
    """Takings of a day less costs."""
    a, b, p, c = rng.randint(23, 88), rng.randint(15, 79), rng.randint(3, 19), rng.randint(20, 99)
    good = rng.choice(GOODS)
    return (
        f"A shop sells {a} {good} in the morning and {b} in the afternoon, each for {p} dollars. "
        f"It pays {c} dollars of rent that day. How many dollars are left?",
        f"({a}+{b})*{p}-{c}",
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
    total = h * u + k * v + rng.randint(40, 300)
    return (
        f"A van drives {h} hours at {u} km per hour and then {k} hours at {v} km per hour. The "
        f"whole trip is {total} km long. How many km are left?",
        f"{total}-{h}*{u}-{k}*{v}",
    )


def packing(rng: random.Random) -> Problem:
    """Full boxes and a remainder."""
    size, boxes, rest = rng.randint(7, 24), rng.randint(9, 40), rng.randint(1, 6)
    total = size * boxes + rest
    used = rng.randint(12, 60)
    return (
        f"A farm has {total + used} {rng.choice(FRUITS)} seedlings. It plants {used} of them and "
        f"packs the rest into boxes of {size}. How many full boxes does it get?",
        f"({total + used}-{used})//{size}",
    )


def savings(rng: random.Random) -> Problem:
    """Weekly saving towards a price."""
    name, start, weekly = rng.choice(FIRST), rng.randint(30, 140), rng.randint(11, 38)
    weeks, spent = rng.randint(6, 19), rng.randint(10, 60)
    return (
        f"{name} has {start} dollars and saves {weekly} dollars a week. After {weeks} weeks {name} "
        f"spends {spent} dollars on a gift and half of what then remains on a bicycle. How many "
        f"dollars remain at the end?",
        f"({start}+{weekly}*{weeks}-{spent})/2",
    )


def workers(rng: random.Random) -> Problem:
    """Output per worker and day."""
    n, each, days = rng.randint(4, 14), rng.randint(12, 47), rng.randint(3, 9)
    bad = rng.randint(10, 90)
    return (
        f"In a workshop {n} people each make {each} {rng.choice(GOODS)} a day. In {days} days "
        f"{bad} pieces turn out faulty and 2 people are away on the last day. How many good "
        f"pieces are made?",
        f"{n}*{each}*{days}-2*{each}-{bad}",
    )


def average(rng: random.Random) -> Problem:
    """The mean of some numbers, then a difference."""
    scores = [rng.randint(41, 99) for _ in range(4)]
    scores[3] += -sum(scores) % 4
    goal = rng.randint(100, 130)
    return (
        f"Four crates weigh {scores[0]}, {scores[1]}, {scores[2]} and {scores[3]} kg. A lift "
        f"should carry {goal} kg. By how many kg is their average weight below that?",
        f"{goal}-({'+'.join(map(str, scores))})/4",
    )


def area(rng: random.Random) -> Problem:
    """A floor without a corner, at a price per square metre."""
    a, b, c, price = rng.randint(8, 25), rng.randint(7, 19), rng.randint(2, 6), rng.randint(9, 34)
    return (
        f"A hall is {a} m long and {b} m wide. A square corner of {c} m by {c} m gets no carpet. "
        f"Carpet costs {price} dollars per square metre. How many dollars does the carpet cost?",
        f"({a}*{b}-{c}*{c})*{price}",
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
    """Scaling a recipe and buying in packs."""
    serves, grams = rng.choice((4, 5, 6)), rng.choice((150, 180, 240, 300))
    times, pack = rng.randint(3, 8), rng.choice((250, 500))
    extra = rng.randint(10, 90)
    return (
        f"A recipe for {serves} people takes {grams} grams of flour. A cook makes it for "
        f"{serves * times} people and spills {extra} grams more. How many packs of {pack} grams "
        f"must the cook buy?",
        f"-(-({grams}*{times}+{extra})//{pack})",
    )


def hire(rng: random.Random) -> Problem:
    """A fixed fee and a rate, shared."""
    people, fee, rate = rng.choice((2, 4, 5)), rng.randint(15, 60), rng.randint(6, 22)
    hours = rng.randint(3, 11)
    fee += -(fee + rate * hours) % people
    return (
        f"Hiring a boat costs {fee} dollars plus {rate} dollars per hour. {people} friends hire it "
        f"for {hours} hours and share the cost equally, and each also buys a snack for 3 dollars. "
        f"How many dollars does each spend?",
        f"({fee}+{rate}*{hours})/{people}+3",
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
