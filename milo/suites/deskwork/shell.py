"""Family `shell`: put a prepared folder in order; judged by the effect, not by the command."""

from __future__ import annotations

import random

from milo.core.task import Task
from milo.suites.deskwork.family import (
    Check,
    Draft,
    lines,
    number,
    pick_kind,
    task_from,
    unchanged,
    word,
)
from milo.suites.deskwork.words import CITIES, FIRST, FRUITS, GOODS, TOPICS, prose, sample

NAME = "shell"


def make(index: int, rng: random.Random) -> Task:
    """The task with this index."""
    return task_from(NAME, index, pick_kind(KINDS, index, rng))


def _texts(rng: random.Random, names: list[str]) -> dict[str, str]:
    return {name: prose(rng, name.split(".")[0]) + "\n" for name in names}


def _mixed(
    rng: random.Random, folder: str, wanted: str, others: str
) -> tuple[list[str], list[str]]:
    topics = sample(rng, TOPICS, rng.randint(5, 7))
    cut = rng.randint(2, 3)
    mine = [f"{folder}{topic}.{wanted}" for topic in topics[:cut]]
    return mine, [f"{folder}{topic}.{others}" for topic in topics[cut:]]


def _moved(files: dict[str, str], source: str, path: str) -> Check:
    return {"kind": "moved", "path": path, "source": source, "text": files[source]}


def rename_extension(rng: random.Random) -> Draft:
    """Change one extension into another."""
    old, new, other = sample(rng, ("txt", "md", "log", "dat", "text"), 3)
    mine, rest = _mixed(rng, "", old, other)
    files = _texts(rng, mine + rest)
    return Draft(
        instruction=(
            f"In this folder, rename every file that ends in `.{old}` so that it ends in `.{new}` "
            f"instead. Keep the rest of each name and the content. Leave all other files alone."
        ),
        files=files,
        goals=[_moved(files, path, path[: -len(old)] + new) for path in mine],
        guards=unchanged(files, rest),
        solution=f'for f in *.{old}; do mv "$f" "${{f%.{old}}}.{new}"; done',
    )


def move_extension(rng: random.Random) -> Draft:
    """Gather files of one type in a new folder."""
    kind, other = sample(rng, ("csv", "jpg", "pdf", "json", "txt"), 2)
    target = rng.choice(("sorted", "archive", "collected", "inbox"))
    mine, rest = _mixed(rng, "", kind, other)
    files = _texts(rng, mine + rest)
    return Draft(
        instruction=(
            f"Make a folder `{target}` and move all `.{kind}` files of the current folder into it. "
            f"The other files stay where they are."
        ),
        files=files,
        goals=[_moved(files, path, f"{target}/{path}") for path in mine],
        guards=unchanged(files, rest),
        solution=f"mkdir -p {target}\nmv *.{kind} {target}/",
    )


def copy_prefix(rng: random.Random) -> Draft:
    """Copy files by the beginning of their names."""
    prefix = rng.choice(("draft", "final", "old", "team"))
    target = rng.choice(("backup", "copies", "outbox"))
    topics = sample(rng, TOPICS, 6)
    mine = [f"papers/{prefix}-{topic}.txt" for topic in topics[:3]]
    rest = [f"papers/{topic}.txt" for topic in topics[3:]]
    files = _texts(rng, mine + rest)
    return Draft(
        instruction=(
            f"Copy every file in the folder `papers` whose name begins with `{prefix}-` into a new "
            f"folder `{target}` (next to `papers`), with the same name. Keep the originals."
        ),
        files=files,
        goals=[lines(path.replace("papers", target, 1), files[path]) for path in mine],
        guards=unchanged(files, mine + rest),
        solution=f"mkdir -p {target}\ncp papers/{prefix}-* {target}/",
    )


def count_matching(rng: random.Random) -> Draft:
    """Count the lines that hold a word."""
    wanted, *others = sample(rng, ("urgent", "open", "closed", "waiting", "paid"), 4)
    rows = [
        f"{rng.choice(TOPICS)} {rng.choice([wanted, *others])} {rng.choice(FIRST)}"
        for _ in range(rng.randint(9, 16))
    ]
    rows.append(f"{rng.choice(TOPICS)} {wanted} {rng.choice(FIRST)}")
    count = sum(wanted in row for row in rows)
    return Draft(
        instruction=(
            f"Count the lines of `tickets.txt` that contain the word `{wanted}` and write only "
            f"that number to `count.txt`."
        ),
        files={"tickets.txt": "\n".join(rows) + "\n"},
        goals=[number("count.txt", count)],
        solution=f"grep -c {wanted} tickets.txt > count.txt",
    )


def largest_file(rng: random.Random) -> Draft:
    """Name the largest or smallest file of a folder."""
    large = rng.random() < 0.6
    names = [f"data/{topic}.txt" for topic in sample(rng, TOPICS, 5)]
    sizes = rng.sample(range(1, 8), 5)
    files = {
        name: "".join(prose(rng, "row") + "\n" for _ in range(size))
        for name, size in zip(names, sizes, strict=True)
    }
    ordered = sorted(names, key=lambda name: len(files[name]), reverse=large)
    best = ordered[0].split("/")[1]
    adjective = "largest" if large else "smallest"
    return Draft(
        instruction=(
            f"Which file in the folder `data` is the {adjective} in bytes? Write its name, "
            f"without the folder, to `{adjective}.txt`."
        ),
        files=files,
        goals=[word(f"{adjective}.txt", best, ordered[0])],
        solution=f"ls -S{'' if large else 'r'} data | head -n 1 > {adjective}.txt",
    )


def merge_unique(rng: random.Random) -> Draft:
    """Merge two lists into one, sorted and without repeats."""
    pool = sample(rng, CITIES, 9)
    shared = pool[:2]
    first, second = pool[2:6] + shared, pool[6:] + shared
    rng.shuffle(first)
    rng.shuffle(second)
    names = sample(rng, ("north", "south", "east", "west"), 2)
    merged = "\n".join(sorted({*first, *second})) + "\n"
    return Draft(
        instruction=(
            f"Merge `{names[0]}.txt` and `{names[1]}.txt` into `all.txt`: one entry per line, "
            f"sorted alphabetically, each entry only once."
        ),
        files={
            f"{names[0]}.txt": "\n".join(first) + "\n",
            f"{names[1]}.txt": "\n".join(second) + "\n",
        },
        goals=[lines("all.txt", merged)],
        solution=f"LC_ALL=C sort -u {names[0]}.txt {names[1]}.txt > all.txt",
    )


def _table(rng: random.Random) -> tuple[list[str], list[list[str]]]:
    header = ["name", "city", "item", "amount"]
    rows = [
        [name, rng.choice(CITIES), rng.choice(GOODS), str(rng.randint(2, 95))]
        for name in sample(rng, FIRST, rng.randint(5, 8))
    ]
    return header, rows


def _csv(header: list[str], rows: list[list[str]]) -> str:
    return "".join(",".join(row) + "\n" for row in [header, *rows])


def csv_column(rng: random.Random) -> Draft:
    """Extract one column of a table."""
    header, rows = _table(rng)
    at = rng.randrange(4)
    return Draft(
        instruction=(
            f"`sales.csv` has a header line with the columns name, city, item, amount. Write the "
            f"values of the column `{header[at]}`, without the header, to `column.txt`, one per "
            f"line, in the same order."
        ),
        files={"sales.csv": _csv(header, rows)},
        goals=[lines("column.txt", "\n".join(row[at] for row in rows))],
        solution=f"tail -n +2 sales.csv | cut -d, -f{at + 1} > column.txt",
    )


def csv_filter(rng: random.Random) -> Draft:
    """Keep the rows above a threshold."""
    header, rows = _table(rng)
    amounts = sorted(int(row[3]) for row in rows)
    limit = amounts[len(rows) // 2 - 1]
    kept = [row for row in rows if int(row[3]) > limit]
    return Draft(
        instruction=(
            f"`sales.csv` has the columns name, city, item, amount. Write to `big.csv` the header "
            f"line and all rows whose amount is greater than {limit}, in the same order."
        ),
        files={"sales.csv": _csv(header, rows)},
        goals=[lines("big.csv", _csv(header, kept))],
        solution=f"awk -F, 'NR==1 || $4 > {limit}' sales.csv > big.csv",
    )


def csv_total(rng: random.Random) -> Draft:
    """Add up a column, for all rows or for one value of another column."""
    header, rows = _table(rng)
    city = rng.choice(rows)[1]
    for row in rows[:3]:
        row[1] = city
    total = sum(int(row[3]) for row in rows if row[1] == city)
    return Draft(
        instruction=(
            f"`sales.csv` has the columns name, city, item, amount. Add up the amounts of all rows "
            f"whose city is {city} and write only the sum to `total.txt`."
        ),
        files={"sales.csv": _csv(header, rows)},
        goals=[number("total.txt", total)],
        solution=f"awk -F, '$2 == \"{city}\" {{s += $4}} END {{print s}}' sales.csv > total.txt",
    )


def delete_empty(rng: random.Random) -> Draft:
    """Delete the empty files and nothing else."""
    topics = sample(rng, TOPICS, 7)
    folder = rng.choice(("inbox", "notes", "scans"))
    empty = [f"{folder}/{topic}.txt" for topic in topics[: rng.randint(2, 3)]]
    rest = [f"{folder}/{topic}.txt" for topic in topics[3:]]
    files = {**_texts(rng, rest), **dict.fromkeys(empty, "")}
    return Draft(
        instruction=(
            f"Delete every empty file in the folder `{folder}`. Keep all files that have content."
        ),
        files=files,
        goals=[{"kind": "absent", "path": path} for path in empty],
        guards=unchanged(files, rest),
        solution=f"find {folder} -type f -empty -delete",
    )


def replace_text(rng: random.Random) -> Draft:
    """Replace a word in all files of one kind."""
    old, new = sample(rng, CITIES, 2)
    topics = sample(rng, TOPICS, 5)
    mine = [f"{topic}.txt" for topic in topics[:2]]
    rest = [f"{topics[2]}.txt", f"{topics[3]}.bak"]
    files = {path: f"Office: {old}\n{prose(rng, 'site')}\nGo to {old} by train.\n" for path in mine}
    files |= {rest[0]: prose(rng, "site") + "\n", rest[1]: f"Office: {old}\n"}
    return Draft(
        instruction=(
            f"In all `.txt` files of this folder, replace every `{old}` by `{new}`. Do not change "
            f"any other file."
        ),
        files=files,
        goals=[lines(path, files[path].replace(old, new)) for path in mine],
        guards=unchanged(files, rest),
        solution=f"sed -i 's/{old}/{new}/g' *.txt",
    )


def list_sizes(rng: random.Random) -> Draft:
    """List files with their sizes."""
    names = sorted(f"{topic}.txt" for topic in sample(rng, TOPICS, 4))
    files = {f"docs/{name}": prose(rng, name) + "\n" for name in names}
    listing = "\n".join(f"{name} {len(files[f'docs/{name}'])}" for name in names)
    return Draft(
        instruction=(
            "Write `index.txt`: one line for every file in the folder `docs`, sorted by name, each "
            "line holding the file name, one space, and its size in bytes (for instance "
            "`example.txt 120`)."
        ),
        files=files,
        goals=[lines("index.txt", listing)],
        solution='cd docs\nfor f in *; do echo "$f $(stat -c %s "$f")"; done > ../index.txt',
    )


def count_extensions(rng: random.Random) -> Draft:
    """Count the files of each kind."""
    topics = sample(rng, TOPICS, 8)
    kinds = sample(rng, ("txt", "csv", "png", "json"), 3)
    names = [f"{topic}.{kinds[i % 3 if i < 4 else i % 2]}" for i, topic in enumerate(topics)]
    counts = {kind: sum(name.endswith(f".{kind}") for name in names) for kind in kinds}
    wanted = sample(rng, kinds, 2)
    goals = [number(f"{kind}.count", counts[kind]) for kind in wanted]
    return Draft(
        instruction=(
            f"Count the files in the folder `drop` by type. Write the number of `.{wanted[0]}` "
            f"files to `{wanted[0]}.count` and the number of `.{wanted[1]}` files to "
            f"`{wanted[1]}.count` (in the current folder)."
        ),
        files={f"drop/{name}": prose(rng, name) + "\n" for name in names},
        goals=goals,
        solution="\n".join(f"ls drop | grep -c '\\.{kind}$' > {kind}.count" for kind in wanted),
    )


def cut_lines(rng: random.Random) -> Draft:
    """Take some lines from the beginning or the end of a file."""
    rows = [
        f"{i}. {rng.choice(FRUITS)} {rng.randint(1, 99)}" for i in range(1, rng.randint(12, 18))
    ]
    count = rng.randint(3, 6)
    first = rng.random() < 0.5
    part = rows[:count] if first else rows[-count:]
    return Draft(
        instruction=(
            f"Write the {'first' if first else 'last'} {count} lines of `stock.txt` to "
            f"`part.txt`, in reverse order (the last of them comes first)."
        ),
        files={"stock.txt": "\n".join(rows) + "\n"},
        goals=[lines("part.txt", "\n".join(reversed(part)))],
        solution=f"{'head' if first else 'tail'} -n {count} stock.txt | tac > part.txt",
    )


KINDS = (
    rename_extension,
    count_matching,
    csv_column,
    move_extension,
    merge_unique,
    largest_file,
    copy_prefix,
    csv_filter,
    delete_empty,
    csv_total,
    replace_text,
    list_sizes,
    count_extensions,
    cut_lines,
)
