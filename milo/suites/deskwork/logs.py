"""Family `logs`: answer one question about a log file."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from milo.core.task import Task
from milo.suites.deskwork.family import Check, Draft, lines, number, pick_kind, task_from, word
from milo.suites.deskwork.words import FIRST, SERVICES, sample

NAME = "logs"


def make(index: int, rng: random.Random) -> Task:
    """The task with this index."""
    return task_from(NAME, index, pick_kind(KINDS, index, rng))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a service log."""

    time: str
    level: str
    service: str
    text: str

    def __str__(self) -> str:
        return f"{self.level} {self.time} {self.service} {self.text}"


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of an access log; `took` in milliseconds."""

    time: str
    path: str
    status: int
    took: int

    def __str__(self) -> str:
        return f"{self.time} GET {self.path} {self.status} {self.took}"


def _times(rng: random.Random, count: int) -> list[str]:
    start = rng.randint(7, 15) * 60
    minutes = sorted(rng.sample(range(170), count))
    return [f"{(start + m) // 60:02d}:{(start + m) % 60:02d}" for m in minutes]


def _entries(rng: random.Random, least: int = 20, most: int = 30) -> list[Entry]:
    services = sample(rng, SERVICES, 4)
    quiet = ("started", "ready", "cache warm", "job done", "user login")
    found = []
    for time in _times(rng, rng.randint(least, most)):
        level = rng.choices(("INFO", "WARN", "ERROR"), (5, 2, 4))[0]
        text = rng.choice(quiet) if level == "INFO" else f"E{rng.randint(11, 19)} failed"
        text = "slow reply" if level == "WARN" else text
        found.append(Entry(time, level, rng.choice(services), text))
    return found


def _hits(rng: random.Random, least: int = 20, most: int = 28) -> list[Hit]:
    paths = sample(rng, ("/home", "/cart", "/login", "/search", "/help", "/pay", "/news"), 5)
    times = _times(rng, rng.randint(least, most))
    took = rng.sample(range(12, 980), len(times))
    return [
        Hit(time, rng.choice(paths), rng.choice((200, 200, 200, 304, 404, 500)), took[i])
        for i, time in enumerate(times)
    ]


def _draft(
    question: str, log: list[Entry] | list[Hit], name: str, goal: Check, answer: str
) -> Draft:
    return Draft(
        instruction=question,
        files={name: "".join(f"{line}\n" for line in log)},
        goals=[goal],
        solution=answer,
    )


SERVICE_FORMAT = (
    "Lines of `app.log` look like `ERROR 08:15 mail E42 failed` (level, time, service, message)."
)
ACCESS_FORMAT = (
    "Lines of `access.log` look like `08:15 GET /shop 200 35`, where 200 is the status code and 35 "
    "the milliseconds that the request took."
)


def most_errors(rng: random.Random) -> Draft:
    """The service with the most lines of a level."""
    log = _entries(rng)
    level = rng.choice(("ERROR", "ERROR", "WARN"))
    top = rng.choice([entry.service for entry in log])
    text = "E20 failed" if level == "ERROR" else "slow reply"
    count = Counter(entry.service for entry in log if entry.level == level)
    while max([0, *(n for name, n in count.items() if name != top)]) >= count[top]:
        log.append(Entry(log[-1].time, level, top, text))
        count[top] += 1
    best = max(count, key=lambda service: count[service])
    return _draft(
        f"{SERVICE_FORMAT} Which service has the most {level} lines? Write its name to "
        f"`service.txt`.",
        log,
        "app.log",
        word("service.txt", best),
        f"awk '$1 == \"{level}\" {{print $3}}' app.log | sort | uniq -c | sort -rn | head -n 1 "
        f"| awk '{{print $2}}' > service.txt",
    )


def first_time(rng: random.Random) -> Draft:
    """When a service first logged a level."""
    log = _entries(rng)
    chosen = rng.choice([entry for entry in log if entry.level != "INFO"])
    same = [e for e in log if e.level == chosen.level and e.service == chosen.service]
    last = rng.random() < 0.4
    found = same[-1 if last else 0]
    return _draft(
        f"{SERVICE_FORMAT} At what time is the {'last' if last else 'first'} {chosen.level} line "
        f"of the service {chosen.service}? Write only the time to `time.txt`.",
        log,
        "app.log",
        word("time.txt", found.time),
        f'awk \'$1 == "{chosen.level}" && $3 == "{chosen.service}" {{print $2}}\' app.log '
        f"| {'tail' if last else 'head'} -n 1 > time.txt",
    )


def count_level(rng: random.Random) -> Draft:
    """How many lines a service has of a level."""
    log = _entries(rng)
    chosen = rng.choice([entry for entry in log if entry.level == "ERROR"])
    count = sum(e.level == "ERROR" and e.service == chosen.service for e in log)
    return _draft(
        f"{SERVICE_FORMAT} How many ERROR lines does the service {chosen.service} have? Write only "
        f"the number to `count.txt`.",
        log,
        "app.log",
        number("count.txt", count),
        f'awk \'$1 == "ERROR" && $3 == "{chosen.service}"\' app.log | wc -l > count.txt',
    )


def count_status(rng: random.Random) -> Draft:
    """How often a status code occurs; durations hold look-alikes."""
    log = _hits(rng)
    status = rng.choice(log).status
    log.append(Hit(log[-1].time, "/home", 200 if status != 200 else 404, status))
    count = sum(hit.status == status for hit in log)
    return _draft(
        f"{ACCESS_FORMAT} How many requests ended with status code {status}? Write only the number "
        f"to `count.txt`.",
        log,
        "access.log",
        number("count.txt", count),
        f"awk '$4 == {status}' access.log | wc -l > count.txt",
    )


def slowest(rng: random.Random) -> Draft:
    """The path of the slowest request."""
    log = _hits(rng)
    fast = rng.random() < 0.4
    found = (min if fast else max)(log, key=lambda hit: hit.took)
    return _draft(
        f"{ACCESS_FORMAT} Find the {'fastest' if fast else 'slowest'} request and write its path "
        f"to `path.txt`.",
        log,
        "access.log",
        word("path.txt", found.path),
        f"sort -k5 -{'n' if fast else 'rn'} access.log | head -n 1 | cut -d' ' -f3 > path.txt",
    )


def codes_in_order(rng: random.Random) -> Draft:
    """The error codes of one service, in order."""
    log = _entries(rng)
    counts = Counter(entry.service for entry in log if entry.level == "ERROR")
    service = max(sorted(counts), key=lambda name: -abs(counts[name] - 3))
    codes = [e.text.split()[0] for e in log if e.level == "ERROR" and e.service == service]
    return _draft(
        f"{SERVICE_FORMAT} The message of an ERROR line begins with its code, such as E42. Write "
        f"the codes of all ERROR lines of the service {service} to `codes.txt`, one per line, in "
        f"the order of the log.",
        log,
        "app.log",
        lines("codes.txt", "\n".join(codes)),
        f'awk \'$1 == "ERROR" && $3 == "{service}" {{print $4}}\' app.log > codes.txt',
    )


def total_time(rng: random.Random) -> Draft:
    """The time that the requests for one path took together."""
    log = _hits(rng)
    path = rng.choice(log).path
    total = sum(hit.took for hit in log if hit.path == path)
    return _draft(
        f"{ACCESS_FORMAT} Add up the durations, in milliseconds, of all requests for `{path}`. "
        f"Write only the sum to `sum.txt`.",
        log,
        "access.log",
        number("sum.txt", total),
        f"awk '$3 == \"{path}\" {{s += $5}} END {{print s}}' access.log > sum.txt",
    )


def distinct_paths(rng: random.Random) -> Draft:
    """The paths that failed, each once, sorted."""
    log = _hits(rng)
    status = rng.choice((404, 500))
    log.append(Hit(log[-1].time, log[0].path, status, 11))
    paths = sorted({hit.path for hit in log if hit.status == status})
    return _draft(
        f"{ACCESS_FORMAT} Which paths had at least one request with status code {status}? Write "
        f"each once to `paths.txt`, one per line, sorted alphabetically.",
        log,
        "access.log",
        lines("paths.txt", "\n".join(paths)),
        f"awk '$4 == {status} {{print $3}}' access.log | LC_ALL=C sort -u > paths.txt",
    )


def _door(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    """A door log in key=value form, and who is inside or outside at its end."""
    people = sample(rng, FIRST, 5)
    state: dict[str, str] = {}
    rows = []
    for time in _times(rng, rng.randint(20, 26)):
        who = rng.choice(people)
        state[who] = "out" if state.get(who) == "in" else "in"
        rows.append(f"{time} user={who} door={state[who]}")
    return rows, state


def last_seen(rng: random.Random) -> Draft:
    """Who is still inside, by the last event of each."""
    rows, state = _door(rng)
    inside = sorted(name for name, where in state.items() if where == "in")
    if not inside:
        rows.append(f"23:10 user={rows[0].split('=')[1].split()[0]} door=in")
        inside = [rows[0].split("=")[1].split()[0]]
    return Draft(
        instruction=(
            "`door.log` has one line per event, such as `08:15 user=Zoe door=in`. A person whose "
            "last event is `door=in` is still inside. Write the names of all who are still inside "
            "to `inside.txt`, one per line, sorted alphabetically."
        ),
        files={"door.log": "\n".join(rows) + "\n"},
        goals=[lines("inside.txt", "\n".join(inside))],
        solution=(
            "tr '=' ' ' < door.log | awk '{d[$3] = $5} END {for (p in d) if (d[p] == \"in\") "
            "print p}' | LC_ALL=C sort > inside.txt"
        ),
    )


def busiest_person(rng: random.Random) -> Draft:
    """How often one person came in."""
    rows, _ = _door(rng)
    who = rng.choice(rows).split("user=")[1].split()[0]
    count = sum(f"user={who} door=in" in row for row in rows)
    return Draft(
        instruction=(
            f"`door.log` has one line per event, such as `08:15 user=Zoe door=in`. How many times "
            f"did {who} come in (`door=in`)? Write only the number to `count.txt`."
        ),
        files={"door.log": "\n".join(rows) + "\n"},
        goals=[number("count.txt", count)],
        solution=f"grep -c 'user={who} door=in' door.log > count.txt",
    )


def count_lines(rng: random.Random) -> Draft:
    """How many lines have a level."""
    log = _entries(rng)
    level = rng.choice(("ERROR", "WARN", "INFO"))
    count = sum(entry.level == level for entry in log)
    return _draft(
        f"{SERVICE_FORMAT} How many lines of `app.log` have the level {level}? Write only the "
        f"number to `count.txt`.",
        log,
        "app.log",
        number("count.txt", count),
        f"awk '$1 == \"{level}\"' app.log | wc -l > count.txt",
    )


def code_time(rng: random.Random) -> Draft:
    """When an error code first occurs."""
    log = _entries(rng)
    chosen = rng.choice([entry for entry in log if entry.level == "ERROR"])
    code = chosen.text.split()[0]
    found = next(entry for entry in log if entry.text == chosen.text)
    return _draft(
        f"{SERVICE_FORMAT} At what time does the error code {code} occur for the first time? Write "
        f"only the time to `time.txt`.",
        log,
        "app.log",
        word("time.txt", found.time),
        f"grep -w {code} app.log | head -n 1 | cut -d' ' -f2 > time.txt",
    )


def level_lines(rng: random.Random) -> Draft:
    """All lines of a level."""
    log = _entries(rng)
    level = rng.choice(("ERROR", "WARN"))
    kept = "".join(f"{entry}\n" for entry in log if entry.level == level)
    return _draft(
        f"{SERVICE_FORMAT} Write all lines of `app.log` that have the level {level} to "
        f"`lines.txt`, unchanged and in the same order.",
        log,
        "app.log",
        lines("lines.txt", kept),
        f"awk '$1 == \"{level}\"' app.log > lines.txt",
    )


def count_path(rng: random.Random) -> Draft:
    """How many requests a path had."""
    log = _hits(rng)
    path = rng.choice(log).path
    count = sum(hit.path == path for hit in log)
    return _draft(
        f"{ACCESS_FORMAT} How many requests were for the path `{path}`? Write only the number to "
        f"`count.txt`.",
        log,
        "access.log",
        number("count.txt", count),
        f"awk '$3 == \"{path}\"' access.log | wc -l > count.txt",
    )


KINDS = (
    most_errors,
    count_lines,
    count_status,
    first_time,
    level_lines,
    slowest,
    code_time,
    codes_in_order,
    busiest_person,
    last_seen,
    count_path,
    total_time,
    count_level,
    distinct_paths,
)
